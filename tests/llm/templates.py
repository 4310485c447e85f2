#!/usr/bin/env python3
"""Chat templates give the texts that jinja2 gives, and so do the texts around turns that are cut out of them.

    templates.py --texts build/tests/chat_texts                1 s: templates of the kinds that there are, and what they give
    templates.py .. --real FOLDER                              those of FOLDER/*.jinja beside jinja2, as Hugging Face sets it up
                                                               (llama.cpp's source has 60 in models/templates)
    templates.py .. --mutate N                                 N mutations: a text, or a reason

Exit status 77, skipped: there is no jinja2 for --real.
"""

import argparse
import datetime
import pathlib
import random
import subprocess
import sys
import tempfile

U, S, A, V = "What is up?", "Be brief.", "Not much.", "And now?"
TALKS = {
    "u": [("user", U)],
    "su": [("system", S), ("user", U)],
    "uau": [("user", U), ("assistant", A), ("user", V)],
}
# name: template, and what it gives for each talk; None: it refuses that
CASES = {
    "roles in tags": (
        "{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' + m['content'] + eos_token + '\\n' }}"
        "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}{% endfor %}",
        f"<|user|>\n{U}</s>\n<|assistant|>\n",
        f"<|system|>\n{S}</s>\n<|user|>\n{U}</s>\n<|assistant|>\n",
        f"<|user|>\n{U}</s>\n<|assistant|>\n{A}</s>\n<|user|>\n{V}</s>\n<|assistant|>\n",
    ),
    "a system prompt of its own": (
        """{%- if messages[0].role == 'system' %}
    {%- set told = messages[0].content | trim %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set told = "Help." if not date is defined else date %}
    {%- set rest = messages %}
{%- endif %}
{{- bos_token ~ '<sys>' ~ told ~ '</sys>' }}
{%- for m in rest %}
    {{- '<' ~ m.role ~ '>' ~ m.content | trim ~ '</t>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<assistant>' }}
{%- endif %}
""",
        f"<s><sys>Help.</sys><user>{U}</t><assistant>",
        f"<s><sys>{S}</sys><user>{U}</t><assistant>",
        f"<s><sys>Help.</sys><user>{U}</t><assistant>{A}</t><user>{V}</t><assistant>",
    ),
    "turns that have to alternate": (
        "{{ bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('roles') }}{% endif %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'].strip() + ' [/INST]' }}"
        "{% else %}{{ ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}",
        f"<s>[INST] {U} [/INST]",
        None,
        f"<s>[INST] {U} [/INST] {A}</s>[INST] {V} [/INST]",
    ),
    "macros, namespaces, what goes before and comes after": (
        """{% macro turn(who, text='') -%}
<{{ who }}:{{ text|length }}>{{ text }}
{%- endmacro %}
{# white space #}
{% set ns = namespace(n=0, last=none) %}
{% for m in messages if m.role != 'system' %}
    {%- set ns.n = ns.n + 1 -%}
    {%- if loop.previtem is defined %},{% endif -%}
    {{- turn(m.role, text=m.content) -}}
    {%- set ns.last = m -%}
{% else %}none{% endfor %}
{{- '|' ~ ns.n ~ (ns.last.role if ns.last else '') -}}
{%- set told = messages | selectattr('role', 'equalto', 'system') | map(attribute='content') | list -%}
{{- told | join('+') }}{{ messages[::-1][0]['content'].split(' ')[-1] }}{{ 'x' in 'xyz' and not 2 in [1, 3] }}{{ 7 // 2 }}
""",
        f"<user:11>{U}|1userup?True3",
        f"<user:11>{U}|1user{S}up?True3",
        f"<user:11>{U},<assistant:9>{A},<user:8>{V}|3usernow?True3",
    ),
}
# what is cut out of them: system before and after, before the first turn, behind it, between; T: white space goes
FORMS = {
    "roles in tags": (
        "<|system|>\n",
        "</s>\n<|user|>\n",
        "<|user|>\n",
        "</s>\n<|assistant|>\n",
        "</s>\n<|user|>\n",
        "",
    ),
    "a system prompt of its own": (
        "<sys>",
        "</sys><user>",
        "<sys>Help.</sys><user>",
        "</t><assistant>",
        "</t><user>",
        "trims",
    ),
    "turns that have to alternate": (
        "[INST] ",
        "\n\n",
        "[INST] ",
        " [/INST]",
        "</s>[INST] ",
        "trims",
    ),
}


def run(program, path, *given):
    done = subprocess.run([program, path, "<s>", "</s>", *given], capture_output=True)
    if done.returncode not in (0, 3):
        sys.exit(f"{path}: status {done.returncode}\n{done.stderr.decode()}")
    return None if done.returncode else done.stdout.decode(errors="replace")


def said(talk):
    return [x for turn in talk for x in turn]


def cases(program, folder):
    for name, (text, *want) in CASES.items():
        path = folder / "t.jinja"
        path.write_text(text)
        for talk, w in zip(TALKS.values(), want):
            got = run(program, path, *said(talk))
            if got != w:
                sys.exit(f"{name}: {got!r}, and it should be {w!r}")
        form = run(program, path, "form")
        if name in FORMS and tuple(form.split("\0")) != FORMS[name]:
            sys.exit(f"{name}: around turns {form!r}, and it should be {FORMS[name]}")
    print(f"{len(CASES)} templates")


def mutate(program, folder, n):
    rng, texts = random.Random(n), [t.encode() for t, *_ in CASES.values()]
    for i in range(n):
        t = bytearray(rng.choice(texts))
        for _ in range(rng.randint(1, 4)):
            at, end = sorted(rng.randrange(len(t)) for _ in range(2))
            other = rng.choice(texts)
            t[at : rng.choice([at, at + 1, end])] = rng.choice(
                [b"", bytes([rng.randrange(256)]), other[at % len(other) :][: rng.randrange(20)]]
            )
            t = t or bytearray(b"x")
        (folder / "m.jinja").write_bytes(t)
        run(program, folder / "m.jinja", *said(TALKS["uau"]))
        run(program, folder / "m.jinja", "form")
    print(f"{n} mutations")


def real(program, files):
    try:
        import jinja2.ext
        import jinja2.sandbox
    except ModuleNotFoundError as e:
        print(f"skipped: {e}")
        sys.exit(77)

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            parser.stream.skip(1)
            return parser.parse_statements(["name:endgeneration"], drop_needle=True)

    def refuse(why):
        raise jinja2.TemplateError(why)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    day = datetime.datetime(2024, 7, 26)
    env.globals |= {"raise_exception": refuse, "strftime_now": day.strftime}
    same, known = 0, 0
    for f in files:
        for talk in TALKS.values():
            try:
                want = env.from_string(f.read_text()).render(
                    messages=[{"role": r, "content": c} for r, c in talk],
                    bos_token="<s>",
                    eos_token="</s>",
                    add_generation_prompt=True,
                    tools=None,
                    documents=None,
                )
            except Exception:
                continue
            known += 1
            got = run(program, f, *said(talk))
            same += got == want
            if got != want:
                print(f"{f.name}: {got!r:.300}\n  and it should be {want!r:.300}")
    print(f"{same} of {known} texts are jinja2's")
    if same < known:
        sys.exit(1)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--texts", required=True)
    p.add_argument("--real", type=pathlib.Path)
    p.add_argument("--mutate", type=int, default=60)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cases(a.texts, pathlib.Path(folder))
        mutate(a.texts, pathlib.Path(folder), a.mutate)
    if a.real:
        real(a.texts, sorted(a.real.glob("*.jinja")))


if __name__ == "__main__":
    main()
