#!/usr/bin/env python3
"""Is the compiler itself C for another machine than this one?

    machines.py --build build       status 77, skipped: no clang, or no headers of the other machine

Files that ask which machine they are compiled for are read by clang as for the other one, with the
warnings of the tree: nobody else looks at what is behind the other #if.
"""

import argparse
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[1]
ROOMS = "compiler", "codegen", "importers", "runtime_min", "targets"
MACHINES = "aarch64", "x86_64"
ASKS = re.compile(r"#.*\b__(aarch64|x86_64|arm|riscv|SSE\w*|AVX\w*|ARM_\w+)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    commands = {
        pathlib.Path(c["file"]): shlex.split(c["command"])
        for c in json.loads((parser.parse_args().build / "compile_commands.json").read_text())
    }
    if not shutil.which("clang"):
        print("skipped: no clang")
        return 77
    read, wrong = 0, []
    for machine in MACHINES:
        if not pathlib.Path(f"/usr/{machine}-linux-gnu/include/stdio.h").exists():
            continue  # also this machine's own, whose headers lie elsewhere
        for file, words in sorted(commands.items()):
            inside = file.is_relative_to(TREE) and file.relative_to(TREE).parts[0] in ROOMS
            if not inside or not ASKS.search(file.read_text()):
                continue
            flags = [w for w in words if re.match(r"-(I|D|W|std=)", w)]
            done = subprocess.run(
                ["clang", f"--target={machine}-linux-gnu", "-fsyntax-only", "-Werror"]
                + ["-isystem", f"/usr/{machine}-linux-gnu/include"]
                + [*flags, "-Wno-unknown-warning-option", file],
                capture_output=True,
                text=True,
            )
            read += 1
            wrong += [done.stderr] if done.returncode else []
    print("\n".join(wrong) or f"{read} files")
    return 1 if wrong else 0 if read else 77


if __name__ == "__main__":
    sys.exit(main())
