#!/usr/bin/env python3
"""Do docs and comments speak of what there is?

In README.md and docs/*.md each file that `backticks` or a link name is one of the tree, or one that
some source writes or includes; each `function()` is a word of some source. So is each file that the
comments of C sources name. Of names that hold a placeholder (<name>, NAME, a bundle's model_) what
is left is looked for. They tell of each option of the command line, matrix unit and status of a
bundle, opt and folder of the compiler, headings that links name are there, and there are as many
operators as README.md says. Phrases that are not idiomatic English (CLUMSY) stay out. Commands stand in blocks that tests/docs_run.py runs, or that say why not. A file whose first line names one names itself. docs/architecture.md is
what one reads first, and stays as short as that wants.
"""

import os
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[1]
ENDINGS = r"\.(?:c|h|cpp|hpp|py|sh|mjs|def|md|cmake|html|toml)"
NAME = re.compile(
    r"(?<![\w./%-])(?:\.\./)*((?:[\w*-]|<\w+>)(?:[\w.*/-]|<\w+>)*" + ENDINGS + r")(?![\w-])"
)
SHORT = 3000  # words
COMMAND = re.compile(
    r"^    (?:\w+=\S+ )*(?:ingot [a-z]+ |ingot$|(?:make|cmake|ctest|pip|python3?|node|sh|clang|gcc|cc|qemu-\w+) |"
    r"(?:out|build|tests|examples)/[\w/.]+ )",
    re.M,
)
# Phrases that a reader has to read twice, with what to write instead
CLUMSY = {
    r"unless told( otherwise)?": "by default; if you do not set it",
    r"otherwise than": "differently from",
    r"what is dear|dearest": "what takes most time",
    r"all else": "everything else",
    r"by fours|by pairs": "in groups of four, in pairs",
    r"anew": "again",
    r"of late": "recently",
    r"nobody looks at": "ignored",
    r"beside(?= (?!other work))": "next to; compared with; in addition to",
    r"for who": "for those who",
}
MESSAGES = re.compile(r"^(compiler|codegen|importers|targets|runtime_min)/.*\.(c|h|hpp|js|mjs|py)$")
STRING = r"\"((?:[^\"\\\n]|\\.)+)\""  # of C
STRINGS = {False: re.compile(STRING), True: re.compile(STRING + r"|'((?:[^'\\\n]|\\.)+)'")}
IN_COMMENTS = re.compile(r"(?<![\w./%>-])([a-z][\w-]*\.(?:c|h|py|sh|def))(?![\w-])")


def of_checkout():
    try:
        return subprocess.run(
            ["git", "ls-files"], cwd=TREE, capture_output=True, text=True
        ).stdout.split()
    except FileNotFoundError:
        return []


def headings(text):
    """As GitHub names them in addresses."""
    return {
        re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-")
        for h in re.findall(r"^#+ (.*)$", text, re.M)
    }


def told_all(text, code, docs):
    """What is wrong with counts of README.md; names of lists that no page tells."""
    told = {
        "compiler/tools/cli/cli_table.c": r'^    \{"(--?[\w-]+)"',
        "compiler/kernel/units.def": r'^UNIT\(\w+,\s+"([^"]+)"',
        "runtime_min/igrt.h": r"^    (IGRT_ERR_\w+)",
        "compiler/kernel/opts.def": r'^OPT\(\w+, "(\w+)"',
        "compiler/CMakeLists.txt": r"^ingot_room\((\w+)",
    }
    refused = set(
        re.findall(r"onnx_(\w+)\(Lowering \*n\)\n\{\n    return unsupported", code)
    )  # they only say why
    domains = [
        d
        for d, lower in re.findall(
            r'^ONNX_OP\("([^"]*)",.* (\w+)\)$', text["importers/onnx/onnx_ops.def"], re.M
        )
        if lower not in refused
    ]
    counted = {
        "operators (": len(domains) - domains.count("com.microsoft"),
        "of `ai.onnx.ml`": domains.count("ai.onnx.ml"),
        "operators of ONNX Runtime (": domains.count("com.microsoft"),
    }
    wrong = [
        f"README.md: there are {n} {what}"
        for what, n in counted.items()
        if f"{n} {what}" not in text["README.md"]
    ]
    wrong += [
        f"{f}: {name} is not in README.md or docs"
        for f, form in told.items()
        for name in re.findall(form, text[f], re.M)
        if not re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", docs)
    ]
    return wrong


def clumsy(file, text, spans):
    """Phrases of CLUMSY in these parts of a text."""
    return [
        f"{file}:{text.count(chr(10), 0, m.start()) + 1}: '{m[0]}': write '{better}'"
        for begin, end in spans
        for phrase, better in CLUMSY.items()
        for m in re.compile(rf"\b(?:{phrase})\b", re.I).finditer(text, begin, end)
    ]


def main():
    files = of_checkout()
    if not files:
        print("skipped: no checkout")
        return 77
    tails = {"/".join(f.split("/")[i:]) for f in files for i in range(f.count("/") + 1)}
    text = {
        f: (TREE / f).read_text(errors="replace")
        for f in files
        if f.endswith(
            (".c", ".h", ".hpp", ".def", ".py", ".cmake", ".txt", ".sh", ".js", ".mjs", ".md")
        )
    }
    code = "\n".join(t for f, t in text.items() if not f.endswith(".md") and f != "tests/docs.py")
    written = "\n".join(re.findall(r'"[^"\n]*"|\'[^\'\n]*\'|<[\w./]+\.h>', code))
    words = set(re.findall(r"\w+", code))

    def known(name):
        if (
            name in tails
            or name in written
            or re.sub(r"\d+", "%d", name) in written
            or re.fullmatch(r"[A-Z]+\.\w+|<\w+>.*", name)
        ):
            return True
        if name.startswith(("model.", "model_")):
            return "%s" + name[5:] in written or name[6:] in tails
        wild = "".join(
            ".*" if p[0] in "*<" else re.escape(p) for p in re.split(r"(\*|<\w+>)", name) if p
        )
        return any(re.fullmatch(wild, t) for t in tails)

    docs = "\n".join(
        t
        for f, t in text.items()
        if f == "README.md" or f.startswith("docs/") and f.endswith(".md")
    )
    wrong = told_all(text, code, docs)
    first = {f: re.match(r"/\*(?:\n \*)? ([\w.]+\.(?:c|h|def)) - ", t) for f, t in text.items()}
    wrong += [
        f"{f}: its first line says {m[1]}"
        for f, m in first.items()
        if m and m[1] != os.path.basename(f)
    ]
    long = len(text["docs/architecture.md"].split())
    wrong += [f"docs/architecture.md: {long} words are more than {SHORT}"] if long > SHORT else []
    for f, t in text.items():
        if f == "README.md" or f.startswith("docs/") and f.endswith(".md"):
            parts = [
                (m.start(), m[1] or m[2]) for m in re.finditer(r"`([^`\n]+)`|\]\(([^)#:\s]+)", t)
            ]
            names = [
                (at, m[1]) for at, part in parts for m in NAME.finditer(part) if not known(m[1])
            ]
            names += [
                (at, m[0])
                for at, part in parts
                for m in re.finditer(r"\b(\w+)\(\)", part)
                if m[1] not in words and m[1].removeprefix("model") not in code
            ]
        elif f.endswith((".c", ".h", ".def")):
            names = [
                (c.start() + m.start(), m[1])
                for c in re.finditer(r"/\*.*?\*/", t, re.S)
                for m in IN_COMMENTS.finditer(c[0])
                if not known(m[1])
            ]
        else:
            names = None
        if f.endswith(".md"):
            wrong += clumsy(f, t, [(0, len(t))])
        elif MESSAGES.match(f):
            strings = STRINGS[f.endswith(("js", "py"))]
            wrong += clumsy(f, t, [m.span() for m in strings.finditer(t)])
        if names is None:
            continue
        if f.endswith(".md"):
            names += [
                (at, m[0])
                for at, part in parts
                for m in re.finditer(r"(?<![\w-])--[a-z][\w-]+", part)
                if not re.search(re.escape(m[0]) + r"(?![\w-])", code)
            ]
            names += [
                (m.start(), f"heading {m[2]}")
                for m in re.finditer(r"\]\(([^)#:\s]*)#([\w-]+)\)", t)
                if m[2]
                not in headings(
                    text.get(
                        os.path.normpath(os.path.join(os.path.dirname(f), m[1])) if m[1] else f, ""
                    )
                )
            ]
        wrong += [f"{f}:{t.count(chr(10), 0, at) + 1}: there is no {name}" for at, name in names]
        if f.endswith(".md"):
            plain = re.sub(r"^```.*?^```$", lambda m: "\n" * m[0].count("\n"), t, flags=re.M | re.S)
            wrong += [
                f"{f}:{plain.count(chr(10), 0, m.start()) + 1}: a command outside of a block that tests/docs_run.py runs"
                for m in COMMAND.finditer(plain)
            ]
    print("\n".join(wrong) or f"{len(text)} files")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
