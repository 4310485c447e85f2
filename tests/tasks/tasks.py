#!/usr/bin/env python3
"""What people want to do with ingot, each as a script of at most 40 lines that knows the docs alone.

    tasks.py --ingot build/ingot [TASK...]

Each starts in a folder that has examples/ and nothing else, with ingot and python3 on the PATH.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ingot", type=pathlib.Path, required=True)
    parser.add_argument("tasks", nargs="*")
    o = parser.parse_args()
    bad = 0
    for task in sorted([*HERE.glob("*.sh"), *HERE.glob("*.py")]):
        if task.name == "tasks.py" or o.tasks and task.stem not in o.tasks:
            continue
        if len(task.read_text().splitlines()) > 40:
            print(f"{task.name}: more than 40 lines")
            bad += 1
        with tempfile.TemporaryDirectory(prefix="ingot-task-") as work:
            work = pathlib.Path(work)
            (work / "bin").mkdir()
            (work / "bin/ingot").symlink_to(o.ingot.resolve())
            (work / "bin/python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            (work / "bin/python3").chmod(0o755)
            (work / "examples").symlink_to(TREE / "examples")
            env = dict(os.environ, INGOT=str(o.ingot.resolve()), INGOT_CACHE=str(work / "cache"))
            env["PATH"] = f"{work / 'bin'}:{env['PATH']}"
            env["PYTHONPATH"] = str(TREE / "compiler/tools/python")
            command = [sys.executable if task.suffix == ".py" else "sh", str(task)]
            done = subprocess.run(
                command,
                cwd=work,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            print(f"{task.stem}: {'good' if not done.returncode else 'FAILED'}", flush=True)
            if done.returncode:
                print(done.stdout)
                bad += 1
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
