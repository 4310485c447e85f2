#!/usr/bin/env python3
"""device.py, bars.py, networks.py and the tuning of a network on a GPU without a device: packs,
runs what was packed from another folder, and looks at the JSON.

A driver that does nothing (tests/bundle/cuda_stub.c), with times made up from the names of kernels,
stands for the GPU when a network is tuned, and a compiler that compiles nothing for NVRTC: prepared
here, carried without its sources and weights, measured in two pieces of which one ends by a kernel
that is at fault, then replayed.

    dry_run.py --ingot build/ingot        status 77, skipped: no Python with onnx
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def call(*command, cwd=None):
    return subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, cwd=cwd
    )


def network():
    """Products of matrices and what is between them, f16."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    widths, nodes, weights, x = (256, 512, 128, 256), [], [], "x"
    for i, (k, n) in enumerate(zip(widths, widths[1:])):
        weights.append(
            numpy_helper.from_array(
                (np.random.default_rng(i).standard_normal((k, n)) / k**0.5).astype(np.float16),
                f"w{i}",
            )
        )
        nodes += [
            helper.make_node("MatMul", [x, f"w{i}"], [f"m{i}"]),
            helper.make_node("Relu", [f"m{i}"], [x := f"r{i}"]),
        ]
    nodes.append(helper.make_node("Softmax", [x], ["y"], axis=-1))
    values = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [192, 256])] for name in "xy"
    ]
    return helper.make_model(
        helper.make_graph(nodes, "g", *values, weights),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )


def made_up(kernel):
    """What cuda_stub.c has a kernel take."""
    h = 2166136261
    for c in kernel.encode():
        h = (h ^ c) * 16777619 % 2**32
    return (h >> 16) % 16 + 1


def functions(text):
    """By name: kernels of a .cu file, without their names."""
    found = {}
    for part in re.split(r"\n(?=/\* k\d)", text)[1:]:
        name = re.search(r"\bmodel_(k\d\w+)\(", part)
        found[name[1]] = part[part.index("extern") :].replace(name[1], "k")
    return found


def nvrtc_stub(work):
    """The environment in which the compiler of kernels is one that compiles nothing."""
    (work / "nvrtc").mkdir()
    source, made = HERE.parent / "bundle/nvrtc_stub.c", work / "nvrtc/libnvrtc.so"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", made], check=True)
    return {"LD_LIBRARY_PATH": f"{made.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}"}


def refused(run, tune, work, groups, want):
    """tune --prepare where the compiler of kernels does not take one, or ends by it: a way is left
    out, and nothing else; what is none of the ways ends it."""
    done = run(*tune, "--prepare", work / "all")
    names = (
        re.findall(r"void .*?(model_k\w+)\(", (work / "all/model_kernels.cu").read_text())
        if not done.returncode
        else []
    )
    ways = [name for name in names if re.search(r"_w\d+$", name)]
    if not ways:
        want(False, f"tune --prepare by a stub: {done.stderr}")
        return
    bad, worse, own = (
        ways[len(ways) // 2],
        ways[-1],
        next(name for name in names if name not in ways),
    )
    done = run(
        *tune, "--prepare", work / "but", NVRTC_STUB_FAIL=f"{bad}(", NVRTC_STUB_CRASH=f"{worse}("
    )
    for name, why in (bad, "error: the stub"), (worse, "the compiler ended by signal 6"):
        want(
            done.returncode == 0
            and f"{name.removeprefix('model_')} is left out: it does not compile for sm_90a: {why}"
            in done.stderr,
            f"a way that does not compile: {done.stderr}",
        )
    if done.returncode == 0:
        text, groups_now = (
            (work / "but/model_kernels.cu").read_text(),
            [json.loads(line) for line in (work / "but/ways.json").read_text().splitlines()[1:]],
        )
        want(
            [name for name in names if f"{name}(" in text]
            == [name for name in names if name not in (bad, worse)],
            "what is left of the kernels",
        )
        fewer = [len(g["ways"]) - len(h["ways"]) for g, h in zip(groups, groups_now)]
        want(
            sum(fewer) == 2
            and min(fewer) == 0
            and f"{{{', '.join(str(len(g['ways'])) for g in groups_now)}}}"
            in (work / "but/ways.h").read_text(),
            f"what is left of the ways: {fewer}",
        )
    done = run(*tune, "--prepare", work / "none", NVRTC_STUB_FAIL=f"{own}(")
    want(
        done.returncode == 2
        and "the cuda kernels do not compile for sm_90a: error: the stub" in done.stderr
        and not (work / "none").exists(),
        f"a kernel that does not compile: {done.stderr}",
    )


def by_stub(ways, stub):
    """A program of candidates runs on a driver that is none."""
    stub.mkdir()
    subprocess.run(
        ["cc", "-shared", "-fPIC", HERE.parent / "bundle/cuda_stub.c", "-o", stub / "libcuda.so.1"],
        check=True,
    )
    (ways / "model").rename(ways / "program")
    (ways / "model").write_text(
        f'#!/bin/sh\nINGOT_CLOCK= LD_PRELOAD={stub}/libcuda.so.1 exec ./program "$@"\n'
    )
    (ways / "model").chmod(0o755)


def tuned(ingot, work, want):
    """tune --prepare, --measure in two pieces, and a build with the file that came of it."""
    import onnx

    (work / "here").mkdir()
    model, ways, stub = work / "here/m.onnx", work / "ways", work / "stub"
    onnx.save(network(), model)
    env = (
        os.environ
        | nvrtc_stub(work)
        | {
            "INGOT_CACHE": str(work / "cache"),
            "INGOT_TUNE": str(work / "tune.db"),
            "INGOT_CLOCK": "steps",
        }
    )

    def run(*args, **more):
        return subprocess.run(
            [ingot, *map(str, args)], capture_output=True, text=True, env=env | more
        )

    tune = "tune", model, "--target", "cuda:sm_90a"
    done = run(*tune, "--prepare", work / "made")
    if "without SQLite" in done.stderr:
        return
    want(done.returncode == 0, f"tune --prepare: {done.stderr}")
    kernels = functions((work / "made/model_kernels.cu").read_text())
    groups = [json.loads(line) for line in (work / "made/ways.json").read_text().splitlines()[1:]]
    want(
        sum(len(g["ways"]) for g in groups) > 30,
        f"other kernels: {[len(g['ways']) for g in groups]}",
    )
    refused(run, tune, work, groups, want)
    ways.mkdir()
    for name in "model", "ways.json":  # all that travels
        shutil.copy(work / "made" / name, ways)
    shutil.rmtree(work / "made")
    by_stub(ways, stub)
    device = {"LD_LIBRARY_PATH": f"{stub}:{env['LD_LIBRARY_PATH']}", "CUDA_STUB_US": "20"}
    fault = sorted(k for k in kernels if k.endswith("_w2"))[-1]
    done = run(
        *tune,
        "--measure",
        ways,
        "--budget",
        "0.4s",
        **device,
        CUDA_STUB_FAIL="cuModuleLoadDataEx",
        CUDA_STUB_AT="3",
    )  # the second way: the network's own is the first
    first = (ways / "times.json").read_text()
    want(
        done.returncode == 0 and 2 < first.count('"done"') < 40,
        f"the first piece: {done.stderr}{first.count('done')} ways",
    )
    failed = [
        x["done"] for x in map(json.loads, first.splitlines()) if x.get("verdict") == "failed"
    ]
    want(len(failed) == 1, f"a way that cannot be loaded: {failed}")
    failed = {f"{groups[g]['name']}_w{way}" for _, g, way in failed}
    done = run(
        *tune,
        "--measure",
        ways,
        "--budget",
        "2m",
        "-o",
        work / "one.sched",
        **device,
        CUDA_STUB_CRASH=f"model_{fault}",
    )
    times = (ways / "times.json").read_text()
    want(done.returncode == 0 and times.startswith(first), f"the second piece: {done.stderr}")
    told = [json.loads(line) for line in times.splitlines()]
    want(
        sum("try" in x for x in told) - sum("done" in x for x in told) == 1,
        "the kernel that is at fault is tried once, without an end",
    )
    done = run(
        *tune, "--measure", ways, "--budget", "0", "-o", work / "two.sched", "--explain"
    )  # without a device
    want(
        all(f"{g['name']}\n" in done.stdout for g in groups)
        and done.stdout.count("1 failed") == 1
        and " right, " in done.stdout,
        f"--explain: {done.stdout}",
    )
    want(
        done.returncode == 0
        and (work / "one.sched").read_text() == (work / "two.sched").read_text(),
        f"the file, later: {done.stderr}",
    )
    bundles = []
    for folder, cache in ("a", "cache"), ("b/c", "other"):
        done = run(
            "compile",
            model,
            "--target",
            "cuda:sm_90a",
            "--sched",
            work / "one.sched",
            "-o",
            work / folder,
            "-q",
            INGOT_CACHE=str(work / cache),
        )
        want(done.returncode == 0, f"replay: {done.stderr}")
        bundles.append({p.name: p.read_bytes() for p in (work / folder).rglob("*") if p.is_file()})
    want(bundles[0] == bundles[1], "two replays are the same bytes")
    built = functions(bundles[0]["model_kernels.cu"].decode())
    for name, text in built.items():
        others = {
            k: made_up(f"model_{k}")
            for k in kernels
            if (k == name or re.fullmatch(name + r"_w\d+", k)) and k not in failed | {fault}
        }
        least = [kernels[k] for k, us in others.items() if us == min(others.values())]
        want(text in least, f"{name} is not the fastest of {others}")


def networks(ingot, work, want):
    """networks.py: what it packs and runs, and that it tells what is wrong."""
    import numpy as np

    sys.path[:0] = [str(HERE)]
    import device
    import networks as script

    for name, model in device.zoo().items():
        (work / f"{name}.onnx").write_bytes(model)
    done = call(
        HERE / "networks.py",
        "pack",
        work / "networks",
        "--ingot",
        ingot,
        "--whole",
        "qdq",
        *(work / f"{name}.onnx" for name in ("resnet", "qdq")),
    )
    want(done.returncode == 0, f"pack of networks: {done.stdout}{done.stderr}")
    (work / "networks").rename(work / "elsewhere")
    done = call(
        "networks.py",
        "run",
        "--work",
        work / "at",
        "--target",
        "c:native",
        "--seconds",
        "0.01",
        "--jobs",
        "2",
        cwd=work / "elsewhere",
    )
    rows = (
        json.loads((work / "elsewhere/networks.json").read_text())["networks"]
        if done.returncode == 0
        else {}
    )
    want(
        set(rows) == {"resnet", "qdq"}
        and all(
            r["errors"] and not r["wrong"] and r["ms"] > 0 and r["kernels"] for r in rows.values()
        ),
        f"networks: {done.stdout}{done.stderr}",
    )
    done = call(
        "networks.py",
        "run",
        "--work",
        work / "at",
        "--target",
        "nonsense",
        "--filter",
        "resnet",
        cwd=work / "elsewhere",
    )
    want(
        done.returncode == 1 and "status 2" in done.stdout and "1 wrong resnet" in done.stdout,
        f"networks of no target: {done.stdout}{done.stderr}",
    )
    done = call(
        "networks.py",
        "run",
        "--work",
        work / "at",
        "--limit",
        "0",
        "--filter",
        "resnet",
        cwd=work / "elsewhere",
    )
    want(
        done.returncode == 0 and "no time left" in done.stdout,
        f"networks without time: {done.stdout}{done.stderr}",
    )
    done = call(
        "networks.py",
        "run",
        "--work",
        work / "at",
        *("--target", "c:native", "--target", "nonsense"),
        *("--seconds", "0.001", "--rounds", "2", "--filter", "qdq"),
        cwd=work / "elsewhere",
    )
    rows = json.loads((work / "elsewhere/networks.json").read_text())["networks"]
    want(
        [(r["wrong"], r.get("kernels_ms", 0) > 0) for r in rows.values()]
        == [(False, True), (True, False)],
        f"networks of several targets: {done.stdout}{done.stderr}",
    )
    one, nan = np.ones((2, 3), np.float32), np.full((2, 3), np.nan, np.float32)
    want(
        script.error_of(one, one) == script.error_of(nan, nan) == 0
        and script.error_of(one * 1.5, one) == 0.5,
        "errors",
    )
    want(
        all(
            isinstance(script.error_of(*pair), str)
            for pair in ((one, nan), (nan, one), (one[0], one), (one * np.inf, one))
        ),
        "errors that are no numbers",
    )
    want(
        script.error_of(np.array([1, 2, 3, 5]), np.array([1, 2, 3, 4])) == 0.25,
        "errors of integers",
    )


def in_turns(ingot, work, want):
    """bars.py's steps beside torch, by stubs of the driver and of torch: what they compute is
    nothing, what they are asked for is in turns."""
    fakes, there = work / "fakes", work / "turns"
    fakes.mkdir()
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            HERE.parent / "bundle/cuda_stub.c",
            "-o",
            fakes / "libcuda.so.1",
        ],
        check=True,
    )
    shutil.copy(HERE / "torch_stub.py", fakes / "torch.py")
    done = call(HERE / "bars.py", "pack", there, "--ingot", ingot, "--small")
    want(done.returncode == 0, f"pack of turns: {done.stdout}{done.stderr}")
    env = os.environ | {
        "LD_LIBRARY_PATH": f"{fakes}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        "PYTHONPATH": str(fakes),
    }
    done = subprocess.run(
        [
            sys.executable,
            "bars.py",
            "run",
            "--out",
            "bars.json",
            "--work",
            there / "work",
            "--steps",
            "products,causal,attention,vector",
        ],
        capture_output=True,
        text=True,
        cwd=there,
        env=env,
    )
    found = json.loads((there / "bars.json").read_text())
    for name in "product_64_f16", "product_32x64_f16", "causal_64_576", "attention", "vector":
        row = found.get(name, {})
        want(
            any(row.get(k, 0) > 0 for k in ("torch_by_ours", "ours_by_torch")),
            f"{name} in turns: {row} {done.stdout}{done.stderr}",
        )
    script = (
        "import torch, turns\n"
        "ms = turns.turns(torch, {'ours': (lambda: torch.trace.append('ours'), False), 'torch': (lambda: None, True)}, None, rounds=4, warm=2, block_ms=1)\n"
        "print(' '.join(torch.trace)); print({k: len(v) for k, v in ms.items()})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=there, env=env
    )
    calls, _, rounds = done.stdout.strip().partition("\n")
    ours, row = " ".join(["ours"] * 5), "| {} | | {} |"
    blocks = [row.format(*pair) for pair in (("graph", ours), (ours, "graph")) * 3]
    want(
        calls.endswith(" ".join(blocks)) and rounds == "{'ours': 4, 'torch': 4}",
        f"blocks in turns: {done.stdout}{done.stderr}",
    )


def packed(ingot, work, want):
    """Models that are packed here and run elsewhere; False: they cannot be packed."""
    done = call(HERE / "device.py", "pack", f"{work}/here", "--ingot", ingot, "--products", "64")
    if done.returncode == 77:
        print(done.stdout, end="")
        return False
    want(done.returncode == 0, f"pack: {done.stdout}{done.stderr}")
    there = pathlib.Path(work, "there")
    pathlib.Path(work, "here").rename(there)
    want(not list(there.rglob("weights.bin")), "weights travel")
    done = call(
        "device.py",
        "run",
        "--out",
        "result.json",
        "--targets",
        "c:native,cuda,nonsense",
        "--seconds",
        "0.01",
        "--filter",
        "resnet",
        cwd=there,
    )
    want(
        done.returncode == 1,
        f"run: status {done.returncode}, with a target that there is not: {done.stdout}{done.stderr}",
    )
    found = json.loads((there / "result.json").read_text())
    want(found["machine"]["cores"] > 0, "no machine is told")
    row = found["models"]["resnet"]
    want(
        row["c:native"].get("verify") == "ok" and row["c:native"].get("median_ms", 0) > 0,
        f"c:native: {row['c:native']}",
    )
    want(row["c:native"].get("kernels"), "the kernels are not told")
    if not found["machine"]["gpus"]:
        want(row["cuda"] == {"verify": "skipped: no NVIDIA GPU"}, f"cuda: {row['cuda']}")
    want("status 2" in row["nonsense"]["verify"], f"nonsense: {row['nonsense']}")
    call(
        "device.py",
        "run",
        "--out",
        "products.json",
        "--targets",
        "c:native,c:native+bf16",
        "--seconds",
        "0.01",
        "--filter",
        "product_64_f32",
        cwd=there,
    )
    row = json.loads((there / "products.json").read_text())["models"].get("product_64_f32", {})
    want(
        all(
            row.get(t, {}).get("verify") == "ok" and row[t].get("median_ms", 0) > 0
            for t in ("c:native", "c:native+bf16")
        ),
        f"product: {row}",
    )
    call("device.py", "run", "--limit", "0", cwd=there)
    found = json.loads((there / "result.json").read_text())
    want(
        found["models"]["qdq"]["c:native"]["verify"] == "skipped: out of time", "a run without time"
    )
    return True


def bars(ingot, work, want):
    """bars.py, packed and run."""
    few = "plain/tiles", "plain/rows"
    done = call(HERE.parent / "bundle/hard_shapes.py", f"{work}/hard")
    pathlib.Path(work, "few").write_text("\n".join(few))
    done = call(
        HERE / "bars.py",
        "pack",
        f"{work}/bars",
        "--ingot",
        ingot,
        "--small",
        "--ready",
        "--target",
        "c:native",
        "--cases",
        f"{work}/hard",
        "--list",
        f"{work}/few",
    )
    want(done.returncode == 0, f"pack of bars: {done.stdout}{done.stderr}")
    done = call(
        "bars.py",
        "run",
        "--out",
        "bars.json",
        "--work",
        f"{work}/bars/work",
        "--target",
        "c:native",
        "--steps",
        "attention,launch,vector,branches,cases",
        cwd=f"{work}/bars",
    )
    found = (
        json.loads(pathlib.Path(work, "bars", "bars.json").read_text())
        if done.returncode == 0
        else {}
    )
    want(
        found.get("launch", {}).get("us_a_kernel", 0) > 0
        and found.get("vector", {}).get("error", 1) < 1e-2
        and found.get("cases", {}).get("passed") == len(few)
        and all(
            found.get(f"branches_{kind}", {}).get("error", 1) < 1e-4
            for kind in ("if", "loop", "nested")
        ),
        f"bars: {done.stdout}{done.stderr}",
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ingot", required=True)
    ingot = pathlib.Path(parser.parse_args().ingot).resolve()
    faults = []

    def want(good, what):
        if not good:
            faults.append(what)

    with tempfile.TemporaryDirectory() as work:
        if not packed(ingot, work, want):
            return 77
        bars(ingot, work, want)
        networks(ingot, pathlib.Path(work), want)

        in_turns(ingot, pathlib.Path(work), want)
        (pathlib.Path(work) / "tune").mkdir()
        tuned(ingot, pathlib.Path(work) / "tune", want)
        done = call(HERE / "device.py", "pack", f"{work}/much", "--ingot", ingot, "--most", "0")
        want(done.returncode == 1 and "more than 0 MiB" in done.stderr, "a size that is too much")
    print("\n".join(faults) or "ok: packed, run elsewhere, told; tuned in pieces, replayed")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
