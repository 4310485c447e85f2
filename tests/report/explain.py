#!/usr/bin/env python3
"""What a terminal is told: `ingot explain`, -v to -vvvv, and times that were measured; what is
refused, and how.

explain.py --ingot build/ingot
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parent.parent / "examples" / "digits" / "digits.onnx"
MOST_LINES = 40


class Wrong(Exception):
    pass


def run(*command, status=0, **env):
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, env={**os.environ, **env}
    )
    if done.returncode != status:
        raise Wrong(
            f"{' '.join(map(str, command))}: status {done.returncode}, not {status}\n{done.stderr}"
        )
    return done.stdout, done.stderr


def explained(ingot, told):
    """Every node, step and named tensor, in at most 40 lines that name what the JSON names."""
    for node in told["source"]:
        text, _ = run(ingot, "explain", DIGITS, node["node"])
        steps = [
            s for s in told["steps"] if {"node": node["node"], "op": node["op"]} in s["source"]
        ]
        if len(text.splitlines()) > MOST_LINES or any(s["name"] not in text for s in steps):
            raise Wrong(f"explain {node['node']}: {text}")
        if not steps and "became" not in text:
            raise Wrong(f"explain {node['node']} does not say what became of it: {text}")
    for s in told["steps"]:
        short = s["name"].split("_")[0]
        if run(ingot, "explain", DIGITS, s["step"]) != run(ingot, "explain", DIGITS, short):
            raise Wrong(f"step {s['step']} is not {short}")
        lengths = [
            len(run(ingot, "explain", DIGITS, short, *flag)[0])
            for flag in ((), ("-v",), ("-vv",), ("-vvv",), ("-vvvv",))
        ]
        if lengths != sorted(set(lengths)):
            raise Wrong(f"explain {short}: -v to -vvvv tell {lengths} characters")
    kernel = told["kernel_list"][0]
    if kernel["code"].strip() not in run(ingot, "explain", DIGITS, kernel["name"], "-vvv")[
        0
    ].replace("\n            ", "\n"):
        raise Wrong("-vvv does not have the text of the kernel")
    tensor = next(t for t in told["tensors"] if t["kind"] == "weight" and t["name"])
    if "read by" not in run(ingot, "explain", DIGITS, tensor["name"])[0]:
        raise Wrong(f"explain {tensor['name']}")
    if "did you mean 'conv1' (Conv)" not in run(ingot, "explain", DIGITS, "nv1", status=2)[1]:
        raise Wrong("no name is suggested")
    every = run(ingot, "explain", DIGITS)[0]
    for s in told["steps"]:
        line = (
            rf"^ +{s['step']} .* %  {s['name']} +{re.escape(s['form'])} +{re.escape(s['layer'])}$"
        )
        if not re.search(line, every, re.MULTILINE):
            raise Wrong(f"explain without a node: no {line}\n{every}")


def verbose(ingot, told):
    """-v: the steps; -vv: kernels; -vvv: decisions; -vvvv: nodes."""
    counts = []
    for flag in ("-v", "-vv", "-vvv", "-vvvv"):
        text = run(ingot, "inspect", DIGITS, "--dump", "plan", flag)[1]
        counts.append(len(text.splitlines()))
        wanted = [s["name"] for s in told["steps"]]
        if flag >= "-vv":
            wanted += [k["expression"].splitlines()[0] for k in told["kernel_list"]]
        if flag >= "-vvv":
            wanted += [n["why"] for n in told["notes"]] + [
                t for k in told["kernel_list"] for t in k["tried"]
            ]
        missing = [w for w in wanted if w not in text]
        if missing:
            raise Wrong(f"{flag}: {missing[:3]}")
    if counts != sorted(set(counts)):
        raise Wrong(f"-v to -vvvv: {counts} lines")


def measured(ingot, work):
    """Times of `ingot bench` reach the JSON; those of another plan are refused."""
    out, _ = run(
        ingot,
        "bench",
        DIGITS,
        "--per-kernel",
        "--json",
        "--seconds",
        "0.05",
        INGOT_CACHE=str(work / "cache"),
    )
    times = work / "times.json"
    times.write_text(out)
    told = json.loads(
        run(ingot, "inspect", DIGITS, "--json", "--target", "c:native", "--times", times)[0]
    )
    bench = {k["step"]: k["ms"] for k in json.loads(out.splitlines()[-1])["kernels"]}
    if not told["machine"]["measured"] or any(
        abs(s["ms"] - bench[s["step"]]) > 1e-4 * s["ms"] + 1e-6 for s in told["steps"]
    ):
        raise Wrong("the measured times are not in the JSON")
    if (
        "measured"
        not in run(ingot, "explain", DIGITS, "k02", "--target", "c:native", "--times", times)[0]
    ):
        raise Wrong("explain does not say what was measured")
    if (
        "it is of the target c:native"
        not in run(ingot, "inspect", DIGITS, "--json", "--target", "c", "--times", times, status=3)[
            1
        ]
    ):
        raise Wrong("times of another target are taken")
    for text, status in (
        ("", 3),
        ("{", 3),
        ('{"kernels": []}', 3),
        ('{"kernels": 3, "peak_gflops": 1}', 3),
        ("[" * 100, 3),
        (
            '{"kernels": [{"step": 1e9, "ms": 1, "name": "x"}], "peak_gflops": 1, "cache_gbps": 1, "memory_gbps": 1}',
            3,
        ),
    ):
        times.write_text(text)
        run(ingot, "inspect", DIGITS, "--json", "--times", times, status=status)
        run(ingot, "inspect", DIGITS, "-o", work / "no.html", "--diff", times, status=status)
    for flags in (
        ("--times", work / "nosuch"),
        ("-o", work / "no.html", "--diff", work / "nosuch"),
        ("-o", work / "no" / "no.html", "--no-assembly"),
    ):
        run(ingot, "inspect", DIGITS, *flags, status=6)
    for flags in (
        ("-o", work / "no.html", "--json"),
        ("--diff", times),
        ("--dot", "--times", times),
    ):
        run(ingot, "inspect", DIGITS, *flags, status=2)
    if list(work.glob("no.html*")):
        raise Wrong("a page is left behind")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    ingot = p.parse_args().ingot
    told = json.loads(run(ingot, "inspect", DIGITS, "--json")[0])
    with tempfile.TemporaryDirectory() as work:
        explained(ingot, told)
        verbose(ingot, told)
        measured(ingot, pathlib.Path(work))
    print(
        f"{len(told['source'])} nodes and {len(told['steps'])} steps explained; -v to -vvvv; measured times"
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as e:
        print(f"failed: {e}")
        sys.exit(1)
