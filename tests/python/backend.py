#!/usr/bin/env python3
"""The official ONNX runner (onnx.backend.test) on ingot.onnx_backend: its score.

    backend.py [--ingot build/ingot] [--jobs N] [--include REGEX]... [--least N]

Every case of the installed onnx package is run: compiled for the sizes of its inputs and, where
they decide shapes, for their values, built as a shared library, called through NumPy arrays, and
judged by the runner. Prints what did not pass and why, and the score; status 1 below --least.
Without --ingot the installed package is tested.
"""

import argparse
import concurrent.futures
import os
import pathlib
import sys
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]


def cases(include):
    """The runner's cases for the CPU, by name."""
    import onnx.backend.test
    import ingot.onnx_backend

    test = onnx.backend.test.BackendTest(ingot.onnx_backend, __name__)
    for pattern in include:
        test.include(pattern)
    every = {}
    for suite in test.test_suite:
        name = suite.id().rsplit(".", 1)[1]
        skipped = getattr(getattr(suite, suite._testMethodName), "__unittest_skip__", False)
        if name.endswith("_cpu") and not skipped:
            every[name] = suite
    return every


found = None


def judge(name, include):
    """Name, and why it does not pass ("" if it does, None if the runner skips it)."""
    global found
    found = found or cases(include)
    result = unittest.TestResult()
    found[name].run(result)
    if result.skipped:
        return name, None
    bad = result.failures + result.errors
    return name, " ".join(bad[0][1].strip().splitlines()[-1].split()) if bad else ""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ingot", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--least", type=int, default=0)
    o = parser.parse_args()
    if o.ingot:
        os.environ["INGOT"] = str(o.ingot.resolve())
        os.environ["PYTHONPATH"] = os.pathsep.join(
            [str(TREE / "compiler/tools/python"), os.environ.get("PYTHONPATH", "")]
        )
        sys.path.insert(0, str(TREE / "compiler/tools/python"))
    try:
        names = sorted(cases(o.include))
    except ImportError as e:
        print(f"skipped: {e}")
        return 77
    passed, bad, skipped = 0, [], []
    with concurrent.futures.ProcessPoolExecutor(o.jobs) as pool:
        for name, why in pool.map(judge, names, [o.include] * len(names), chunksize=4):
            if why is None:
                skipped.append(name)
            elif why:
                bad.append(name)
                print(f"{name}: {why[:300]}", flush=True)
            else:
                passed += 1
            if sys.stderr.isatty():
                print(
                    f"\r{passed + len(bad) + len(skipped)} of {len(names)} ",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
    import onnx

    print(
        f"onnx {onnx.__version__}: {passed} of {len(names)} cases pass, {len(bad)} do not, {len(skipped)} are skipped by the runner"
    )
    return 1 if passed < o.least else 0


if __name__ == "__main__":
    sys.exit(main())
