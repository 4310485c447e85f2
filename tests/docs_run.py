#!/usr/bin/env python3
"""The commands of README.md and docs do what they say.

    docs_run.py --ingot build/ingot [PAGE...]      server, quantising ...; without, all pages

In a page, each block that is fenced as ```sh or ```python is run, in the order of the page and in
one folder, which has the tree's examples/, and the network of examples/digits under the names that
pages have for a model of the reader's (MODELS), with data for it in data/. A line `# needs: a b` at
the top of a block names Python packages, or programs, without which it is skipped; a block of Python
without an import goes on where the one before it ended; an HTML comment
`<!-- not run: WHY -->` above it says why it is never run. tests/docs.py finds commands that are in
no such block. Exit status 77: nothing could be run.

The kernel that docs/how_to_read_a_report.md edits is one of its network. In docs/troubleshooting.md every message (`### `..``, or in a table of statuses) is one that some
source has.
"""

import argparse
import importlib.util
import pathlib
import re
import shutil
import sys

import newcomer

TREE = newcomer.TREE
BLOCK = re.compile(r"(?:<!-- not run: (.*?) -->\n\n?)?^```(sh|python)\n(.*?)^```$", re.M | re.S)


MODELS = ("model.onnx", "resnet18.onnx", "kws.onnx")


def missing(code):
    needs = re.match(r"# needs: (.*)", code)
    wanted = needs[1].split() if needs else []
    return [n for n in wanted if not importlib.util.find_spec(n) and not shutil.which(n)]


def lay_out(run, text):
    """What pages take for granted: a model, and an input of zeros with what comes of it."""
    for name in MODELS:
        if re.search(rf"(?<![\w/]){re.escape(name)}", text):
            run(["cp", "examples/digits/digits.onnx", name])
    if "mkdir data" not in text and re.search(
        r" data$| data ", "\n".join(m[2] for m in BLOCK.findall(text)), re.M
    ):
        head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }"
        zeros = rf"\223NUMPY\001\000\166\000{head:<117}\n"
        run(
            [
                "sh",
                "-c",
                f'mkdir data; printf "$0" >data/input_0.npy; head -c 256 /dev/zero >>data/input_0.npy',
                zeros,
            ]
        )
        run(["ingot", "run", "model.onnx", "--input", "data/input_0.npy", "--output-dir", "data"])


def run_page(page, ingot):
    """What fails, and how many blocks ran."""
    blocks = [m.groups() for m in BLOCK.finditer(page.read_text())]
    failed, ran, python = [], 0, ""
    with newcomer.folder(ingot) as run:
        lay_out(run, page.read_text())
        for why, language, code in blocks:
            lacks = missing(code)
            if why or lacks:
                print(f"{page.name}: not run: {why or ', '.join(lacks) + ' not installed'}")
                continue
            if language == "python":
                python = code if re.search(r"^import|^from", code, re.M) else python + code
            command = ["sh", "-euc", code] if language == "sh" else [sys.executable, "-c", python]
            done = run(command, JOBS="2", CC=None)
            ran += 1
            if done.returncode:
                failed.append(f"{page.name}: status {done.returncode}:\n{code}{done.stdout}")
                break
    return failed, ran


def plain(text):
    """Source text in which strings that are divided over lines are whole."""
    return re.sub(r'"\s*\n\s*"', "", text)


def unknown_messages():
    page = (TREE / "docs/troubleshooting.md").read_text()
    told = re.findall(r"^### `(.*)`$", page, re.M)
    told += [
        m
        for row in re.findall(r"^\| [\d, ]+ \| (.*?) \|", page, re.M)
        for m in re.findall("`(.*?)`", row)
    ]
    files = [
        f
        for d in ("compiler", "codegen", "importers", "runtime_min")
        for f in (TREE / d).rglob("*")
    ]
    code = plain(
        "\n".join(f.read_text(errors="replace") for f in files if f.suffix in (".c", ".h", ".py"))
    )
    wrong = []
    for message in told:
        parts = [p.strip(" '") for p in message.split("..") if p.strip(" '")]
        if not all(p in code for p in parts):
            wrong.append(f"docs/troubleshooting.md: no source says `{message}`")
    return wrong


def unknown_keys(ingot):
    """Keys of kernels in the page that edits one, which no kernel of its network has."""
    told = set(
        re.findall(r"kernel ([0-9a-f]{16})", (TREE / "docs/how_to_read_a_report.md").read_text())
    )
    with newcomer.folder(ingot) as run:
        model = "examples/digits/digits.onnx"
        run(["ingot", "compile", model, "-o", "out", "--target", "c", "--save-sched", "a.sched"])
        plan = run(["cat", "a.sched"]).stdout
    return [
        f"docs/how_to_read_a_report.md: no kernel has the key {k}"
        for k in sorted(told)
        if k not in plan
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ingot", type=pathlib.Path, required=True)
    parser.add_argument("pages", nargs="*")
    o = parser.parse_args()
    if not shutil.which("make"):
        print("skipped: there is no make")
        return 77
    pages = [TREE / "README.md", *sorted((TREE / "docs").glob("*.md"))]
    chosen = [p for p in pages if not o.pages or p.stem in o.pages]
    failed, ran = unknown_messages() + unknown_keys(o.ingot.resolve()), 0
    for page in chosen:
        bad, n = run_page(page, o.ingot.resolve())
        failed += bad
        ran += n
    print("\n".join(failed) or f"{ran} blocks ran")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
