#!/usr/bin/env python3
"""Are the recipes of docs/recipes.md true? Each is followed in a copy of the tree, which is built, and what was added is tried.

    recipes.py --work build/recipes [RECIPE...]   all together in one copy, unless some are named
    recipes.py --work build/recipes --apart       one after the other, each alone, by cc and file by file, with all warnings

op       the cube root: interpreter, lanes, C of gcc and clang, OpenCL, CUDA, audit, .sched, verify, an ONNX operator
opt      a loop that runs backwards: .sched, verify, the interpreter of statements, candidates, random ones
rewrite  abs(-x): tests/ir, --no-rewrite
target   OpenCL C by names of its own, with a language and a driver: compile, run, verify, the list, audit
importer a text format with several networks and values of its own: compile, run, verify, check, inspect, --entry
unit     a matrix unit for bytes: compile, run, verify

A file that a recipe's test changes has to be one that the recipe names (tree.py). The copy and its build stay in the folder: what is the
same is not built again. Exit status 77, skipped: no checkout, or no Python with onnx.
"""

import argparse
import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bundle")]
try:
    import checks
    import tree
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

RECIPES = ("op", "opt", "rewrite", "target", "importer", "unit")


def build(work, programs, apart):
    made, log = work / "build", work / "build.log"
    configure = [
        "cmake",
        "-S",
        work / "tree",
        "-B",
        made,
        "-DCMAKE_BUILD_TYPE=Unoptimised",
        "-DINGOT_TESTS=ON",
    ]
    # as Debug, but for what only a debugger reads: an eighth of the time
    configure += ["-DCMAKE_C_FLAGS_UNOPTIMISED=-O0 -DINGOT_VERIFY=1"]
    # clang takes half as long as gcc where nothing is optimised, and eight files as one a third less
    compiler = "cc" if apart else shutil.which("clang") or "cc"
    configure += [f"-DCMAKE_C_COMPILER={compiler}", f"-DINGOT_TOGETHER={'OFF' if apart else 'ON'}"]
    # all is new where a list of ops or passes is: ccache would only take longer
    configure += ["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld"] if shutil.which("ld.lld") else []
    if shutil.which("gcc-ar") and shutil.which("gcc-ranlib"):  # ar loads clang's plugin each time
        configure += [f"-DCMAKE_{t.upper()}={shutil.which(f'gcc-{t}')}" for t in ("ar", "ranlib")]
    by_ninja = {"CMAKE_GENERATOR": "Ninja"} if shutil.which("ninja") else {}
    env = dict(os.environ, **by_ninja)
    with log.open("w") as out:
        for command in (configure, ["cmake", "--build", made, "-j2", "--target", *programs]):
            if subprocess.run(command, env=env, stdout=out, stderr=subprocess.STDOUT).returncode:
                out.flush()
                lines = log.read_text().splitlines()
                faults = [
                    i
                    for i, line in enumerate(lines)
                    if "rror:" in line or "undefined reference" in line
                ]
                raise checks.Wrong(
                    "\n".join(lines[faults[0] : faults[0] + 8] if faults else lines[-20:])
                )
    return made


def follow(work, names, apart):
    """All of these in one copy."""
    copy = tree.Tree()
    recipes = [importlib.import_module(name) for name in names]
    for r in recipes:
        copy.follow(*r.HEADINGS)
        r.write(copy)
    copy.write(work / "tree")
    made = build(work, sorted({p for r in recipes for p in r.PROGRAMS}), apart)
    tried = checks.Tried(work, made)
    for name, r in zip(names, recipes):
        print(f"{name}: {r.check(tried)}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=pathlib.Path, default=tree.TREE / "build/recipes")
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("recipes", nargs="*", choices=[*RECIPES, []])
    options = parser.parse_args()
    if not (tree.TREE / ".git").exists():
        print("skipped: no checkout")
        return 77
    names = options.recipes or list(RECIPES)
    options.work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("INGOT_CACHE", str(options.work.resolve() / "cache"))
    try:
        for together in [[n] for n in names] if options.apart else [names]:
            follow(options.work.resolve(), together, options.apart)
    except (checks.Wrong, tree.Unnamed, AssertionError) as e:
        print(f"FAILED: {e or traceback.format_exc(limit=-1)}")
        return 1
    times = os.times()
    print(f"{times.children_user + times.children_system:.0f} s of CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
