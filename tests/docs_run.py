#!/usr/bin/env python3
"""The commands of README.md and docs do what they say.

    docs_run.py --ingot build/ingot [PAGE...]      server, quantising ...; without, all pages

In a page, each block that is fenced as ```sh or ```python is run, in the order of the page and in
one folder, which has the tree's examples/. A line `# needs: a b` at the top of a block names Python
packages without which it is skipped; an HTML comment `<!-- not run: WHY -->` above it says why it is
never run. Exit status 77: nothing could be run.

In docs/troubleshooting.md every message (`### `..``, or in a table of statuses) is one that some
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


def missing(code):
    needs = re.match(r"# needs: (.*)", code)
    return [n for n in needs[1].split() if not importlib.util.find_spec(n)] if needs else []


def run_page(page, ingot):
    """What fails, and how many blocks ran."""
    blocks = [m.groups() for m in BLOCK.finditer(page.read_text())]
    failed, ran = [], 0
    with newcomer.folder(ingot) as run:
        for why, language, code in blocks:
            lacks = missing(code)
            if why or lacks:
                print(f"{page.name}: not run: {why or ', '.join(lacks) + ' not installed'}")
                continue
            command = ["sh", "-euc", code] if language == "sh" else [sys.executable, "-c", code]
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
    failed, ran = unknown_messages(), 0
    for page in chosen:
        bad, n = run_page(page, o.ingot.resolve())
        failed += bad
        ran += n
    print("\n".join(failed) or f"{ran} blocks ran")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
