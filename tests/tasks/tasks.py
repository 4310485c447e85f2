#!/usr/bin/env python3
"""What people want to do with ingot, each as a script of less than 40 lines that knows the docs alone.

    tasks.py --ingot build/ingot [TASK...]

Each starts in a folder that has examples/ and nothing else, with ingot and python3 on the PATH. One
that ends with status 77 lacks a program, and is skipped.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import newcomer  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ingot", type=pathlib.Path, required=True)
    parser.add_argument("tasks", nargs="*")
    o = parser.parse_args()
    bad = 0
    for task in sorted([*HERE.glob("*.sh"), *HERE.glob("*.py")]):
        if task.name == "tasks.py" or o.tasks and task.stem not in o.tasks:
            continue
        if len(task.read_text().splitlines()) >= 40:
            print(f"{task.name}: 40 lines or more")
            bad += 1
        with newcomer.folder(o.ingot) as run:
            done = run([sys.executable if task.suffix == ".py" else "sh", str(task)])
            good = {0: "good", 77: f"skipped: {done.stdout.strip()[-80:]}"}
            print(f"{task.stem}: {good.get(done.returncode, 'FAILED')}", flush=True)
            if done.returncode not in good:
                print(done.stdout)
                bad += 1
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
