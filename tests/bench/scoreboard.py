#!/usr/bin/env python3
"""How fast compiled models are, beside other engines: docs/performance.md and the table in README.md.

    scoreboard.py cpu OUT.json [--precision bf16] [--threads N] MODEL.onnx...    beside ONNX Runtime
                                              and OpenVINO, where they are installed
    scoreboard.py gpu OUT.json resnet18:f16:1 bert_base:f32:32...    networks of torchvision and
                                              transformers beside torch.compile in a CUDA graph
    scoreboard.py firmware OUT.json --onnx2c PROGRAM --emx PROGRAM MODEL.onnx...
    scoreboard.py llm OUT.json --llama DIR [--threads N] MODEL.gguf...    beside llama.cpp, which is
                                              built in DIR; or a program that is built already
    scoreboard.py suite OUT.json CASES        the official cases; --page FILE: what run.py wrote
    scoreboard.py page [--check]              writes both pages from tests/bench/scores/*.json

Each but `page` measures on the machine at hand and writes one table: title, machine, date, versions,
command, columns, rows. The file of a table lies in tests/bench/scores/; the pages are those joined,
in the order of the names. Engines run in turns, so all meet the same load. The last column is
ingot's; `base` is the one that README.md compares it with. A table without a base has counts.
"""

import argparse
import datetime
import json
import math
import pathlib
import platform
import re
import subprocess
import sys

import measures

TREE = pathlib.Path(__file__).resolve().parents[2]
SCORES = TREE / "tests/bench/scores"
BEGIN, END = "<!-- scoreboard.py -->\n", "<!-- end -->\n"


# ---- one table -----------------------------------------------------------------------------------


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*: (.*)", text)
    family = re.search(r"cpu family\s*: (\d+)\n\s*model\s*: (\d+)", text.replace("\t", ""))
    more = f", family {family[1]} model {family[2]}" if family else ""
    return (name[1] if name else platform.machine()) + more


def gpu():
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True).stdout.split("\n")[0]


def commit():
    """What ingot was built from, where this is a checkout."""
    git = ["git", "-C", str(TREE), "rev-parse", "--short=8", "HEAD"]
    try:
        done = subprocess.run(git, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# Options that a reader needs to measure the same; those of other tools' places are not among them
TOLD = ("target", "precision", "threads", "prompt", "answer", "dim")
MORE_IS_BETTER = ("llm",)


def command_of(o, parser):
    text = f"tests/bench/scoreboard.py {o.command} OUT.json"
    for name in TOLD:
        value = getattr(o, name, None)
        if value and value != parser.get_default(name):
            text += "".join(
                f" --{name} {v}" for v in (value if isinstance(value, list) else [value])
            )
    what = {"gpu": " ".join(map(str, o.models)), "llm": "MODEL.gguf...", "suite": "CASES"}
    return f"{text} {what.get(o.command, 'MODEL.onnx...')}"


def measure(o, parser):
    before = json.loads(o.out.read_text())["rows"] if o.add and o.out.exists() else []
    version = measures.call(o.ingot, "--version").split()[1]
    at = o.commit or commit()
    for columns, rows, versions, unit in getattr(measures, o.command)(o):
        print(rows[-1], flush=True)
        said = {
            "title": o.title,
            "machine": o.machine or (gpu() if o.command == "gpu" else processor()),
            "date": datetime.date.today().isoformat(),
            "versions": [*versions, f"ingot {version}" + (f" ({at})" if at else "")],
            "command": command_of(o, parser),
            "unit": unit + (f"; {o.note}" if o.note else ""),
            "base": None if o.command == "suite" else o.base or columns[1],
            "columns": columns,
            "rows": before + rows,
        }
        if o.command in MORE_IS_BETTER:
            said["more_is_better"] = True
        o.out.write_text(json.dumps(said, indent=1) + "\n")  # whole after each row
    return 0


# ---- the pages ---------------------------------------------------------------------------------


def mean_ratio(table):
    """ingot's figure by the base's, the geometric mean over the rows that have both."""
    at = table["columns"].index(table["base"])
    pairs = [(r[-1], r[at]) for r in table["rows"] if r[at] and r[-1]]
    if table.get("more_is_better"):
        pairs = [(b, a) for a, b in pairs]
    return math.exp(sum(math.log(a / b) for a, b in pairs) / len(pairs)), len(pairs)


def figure(x):
    if x is None:
        return ""
    return x if isinstance(x, str) else f"{x:,.0f}" if abs(x) >= 100 or x == int(x) else f"{x:.3g}"


INTRODUCTION = """# Performance

How fast compiled models are, compared with other engines. `tests/bench/scoreboard.py page` writes this page and the table in the [README](../README.md) from the files in
`tests/bench/scores/`; do not edit them. Each file is the output of one run of the script on one machine, which need not be the one that writes the page. Its table names the
machine, versions (with the commit of ingot), day and command. Compare figures within a table, not between tables: machines differ, and shared machines vary from hour to hour. [measurements.md](measurements.md) shows what single decisions of the compiler gain.

"""


def section(t):
    text = f"## {t['title']}\n\n"
    text += f"{t['machine']}. {t['date']}. {', '.join(t['versions'])}. Unit: {t['unit']}.\n\n"
    text += f"<!-- not run: measures -->\n```sh\n{t['command']}\n```\n\n"
    columns = t["columns"] + [f"ingot / {t['base']}"] * bool(t["base"])
    text += f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    for row in t["rows"]:
        cells = [figure(x) for x in row]
        if t["base"]:
            base = row[t["columns"].index(t["base"])]
            cells.append(f"{row[-1] / base:.2f}" if base and row[-1] else "")
        text += f"| {' | '.join(cells)} |\n"
    if not t["base"]:
        return text + "\n"
    ratio, n = mean_ratio(t)
    what = "Speed" if t.get("more_is_better") else "Time"
    mean = 1 / ratio if t.get("more_is_better") else ratio
    return f"{text}\n{what} of ingot divided by that of {t['base']}, geometric mean of {n}: **{mean:.2f}**.\n\n"


def performance(tables):
    return (INTRODUCTION + "".join(map(section, tables))).rstrip("\n") + "\n"


def summary(tables):
    text = (
        "| what | machine | compared with | speedup (mean of) | measured |\n|---|---|---|---|---|\n"
    )
    for t in tables:
        if not t["base"]:
            continue
        ratio, n = mean_ratio(t)
        version = next((v for v in t["versions"] if v.startswith(t["base"])), t["base"])
        text += (
            f"| {t['title']} | {t['machine']} | {version} | {1 / ratio:.2f} ({n}) | {t['date']} |\n"
        )
    for t in (t for t in tables if not t["base"]):
        _, cases, passed, *_ = t["rows"][-1]
        text += f"| {t['title']} | {t['machine']} | {t['versions'][0]} | "
        text += f"{passed:,} of {cases:,} cases pass | {t['date']} |\n"
    return text


def pages(check):
    tables = [json.loads(f.read_text()) for f in sorted(SCORES.glob("*.json"))]
    readme = TREE / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    wanted = {
        TREE / "docs/performance.md": performance(tables),
        readme: before + BEGIN + summary(tables) + END + rest.partition(END)[2],
    }
    stale = [p for p, text in wanted.items() if not p.exists() or p.read_text() != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(TREE)}: tests/bench/scoreboard.py page writes it anew")
        else:
            path.write_text(wanted[path])
    return int(check and bool(stale))


# ---- the command line ----------------------------------------------------------------------------


def measuring(verbs, name, models=pathlib.Path, **defaults):
    """What all commands that measure have."""
    p = verbs.add_parser(name)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("models", type=models, nargs="*" if name == "suite" else "+")
    p.add_argument("--ingot", type=pathlib.Path, default=TREE / "build/ingot")
    p.add_argument("--title", default=name)
    p.add_argument("--machine", help="what to call it (default: what it says of itself)")
    p.add_argument("--note", help="more about how it was measured")
    p.add_argument("--commit", help="what ingot was built from, where git does not tell")
    p.add_argument("--add", action="store_true", help="add the rows to those in OUT.json")
    p.add_argument("--base", help="the engine that README.md compares with (default: the first)")
    p.set_defaults(**defaults)
    return p


def parsers():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="command", required=True)
    page = verbs.add_parser("page")
    page.add_argument("--check", action="store_true")
    cpu = measuring(verbs, "cpu")
    cpu.add_argument("--precision", choices=("bf16", "f16"))
    cpu.add_argument("--dim", action="append", default=[])
    gpu = measuring(verbs, "gpu", models=str)
    gpu.add_argument("--work", help="a folder for bundles (default: a new one)")
    gpu.add_argument("--limit", type=float, default=1e6, help="seconds after which nothing begins")
    one = verbs.add_parser("gpu-case")
    one.add_argument("case")
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("--ingot", type=pathlib.Path)
    firmware = measuring(verbs, "firmware")
    firmware.add_argument("--onnx2c")
    firmware.add_argument("--emx")
    firmware.add_argument("--version", action="append", default=[], help="of onnx2c, of emx")
    llm = measuring(verbs, "llm")
    llm.add_argument("--llama", required=True)
    llm.add_argument("--prompt", type=int, default=128)
    llm.add_argument("--answer", type=int, default=64)
    suite = measuring(verbs, "suite")
    suite.add_argument("--page", type=pathlib.Path)
    for p in (cpu, llm):
        p.add_argument("--target", default="native" if p is cpu else "c:native")
        p.add_argument("--threads", type=int, default=1)
        p.add_argument("--rounds", type=int, default=4)
        p.add_argument("--seconds", type=float, default=0.4)
    suite.add_argument("--jobs", type=int, default=4, help="cases at a time")
    return parser, verbs.choices


def main():
    parser, commands = parsers()
    o = parser.parse_args()
    if o.command == "page":
        return pages(o.check)
    if o.command == "gpu-case":
        return measures.gpu_case(o.case, o.ingot, o.folder)
    return measure(o, commands[o.command])


if __name__ == "__main__":
    sys.exit(main())
