#!/usr/bin/env python3
"""The host side of GPU bundles: what init and run ask of the driver, and memory that is the
caller's.

    on_device.py --ingot build/ingot

CUDA: with cuda_stub.c in the driver's place, which writes the calls down. Init uploads weights and
records the steps; a run is one launch; with memory of the device a run neither allocates nor waits,
and where the sizes are others, what is recorded gets these: nothing is recorded again. Whichever
call fails, at whatever time, all that was made is let go. OpenCL: on whatever device there is,
results in the caller's buffers are those of a run on the host.

Exit status 77, skipped: no Python with onnx.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import models
    from on_device_programs import CUDA, OPENCL
    from onnx import TensorProto, helper, numpy_helper
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
faults = []

PAIRS = {
    "cuMemAlloc": "cuMemFree",
    "cuStreamCreate": "cuStreamDestroy",
    "cuDevicePrimaryCtxRetain": "cuDevicePrimaryCtxRelease",
    "cuModuleLoadDataEx": "cuModuleUnload",
    "cuStreamEndCapture": "cuGraphDestroy",
    "cuGraphInstantiateWithFlags": "cuGraphExecDestroy",
}


def want(good, what):
    if not good:
        faults.append(what)


def network(path, shape, last=None, dims=()):
    g = models.Graph(1)
    x = g.input("x", TensorProto.FLOAT, *shape)
    h = g.op("Relu", g.op("MatMul", x, g.weight(16, 32)))
    h = g.op("Softmax", g.op("MatMul", h, g.weight(32, 16)), axis=-1)
    if last:
        h = last(g, h)
    g.output("y", h, TensorProto.FLOAT, *(dims or shape))
    path.write_bytes(g.bytes())
    return path


def build(ingot, model, target, program, work, *options):
    out = work / f"{model.stem}_{target}"
    done = subprocess.run(
        [ingot, "compile", model, "-o", out, "--target", target, "-q", *options],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr)
    (out / "program.c").write_text(program)
    sources = sorted(str(p) for p in out.glob("*.c"))
    subprocess.run(
        [
            "cc",
            "-std=c99",
            "-D_POSIX_C_SOURCE=200809L",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-g",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            "-I",
            out,
            *sources,
            "-o",
            out / "program",
            "-lm",
            "-ldl",
        ],
        check=True,
    )
    return out / "program"


def calls(program, stub, work, *args, **env):
    """The status, and a list of calls for init, each run, and the end."""
    log = work / "log"
    log.unlink(missing_ok=True)
    done = subprocess.run(
        [program, *args],
        env=os.environ
        | {
            "LD_LIBRARY_PATH": str(stub),
            "CUDA_STUB_LOG": str(log),
            "ASAN_OPTIONS": "exitcode=99",
            "UBSAN_OPTIONS": "exitcode=99",
        }
        | env,
    )
    parts = [p.split("\n")[1:-1] for p in log.read_text().split("== ")[1:]]
    return done.returncode, [[c.split("_v")[0] for c in p] for p in parts]


def each_call_fails(program, stub, work, *args):
    """The first call of each name, one in the middle, the last."""
    names = collections.Counter(
        c.split()[0] for p in calls(program, stub, work, *args)[1] for c in p
    )
    for name, n in names.items():
        for at in sorted({1, (n + 1) // 2, n}):
            status, parts = calls(
                program, stub, work, *args, CUDA_STUB_FAIL=name, CUDA_STUB_AT=str(at)
            )
            count = collections.Counter(c.split()[0] for p in parts for c in p)
            left = [
                make for make, end in PAIRS.items() if count[make] - (make == name) != count[end]
            ]
            want(
                status in range(20) and not left,
                f"{name} fails the {at}th time: status {status}, not let go: {left}",
            )


def sizes_of_images(ingot, work):
    """Images for two machines beside weights: a network of 27 kernels and 100 MB (ResNet-50) has to
    stay below 1.5 times its weights, so a kernel, in both images and as the text that they are
    written as, below 1.9 MB; a sixth of that here, of the kinds of kernels that such a network
    has."""
    g = models.Graph(1)
    x = y = g.input("x", TensorProto.FLOAT, 1, 256, 28, 28)
    for i, (inside, outside, window) in enumerate(((256, 64, 1), (64, 64, 3), (64, 256, 1))):
        w = g.const(
            np.random.default_rng(i)
            .standard_normal((outside, inside, window, window))
            .astype(np.float32)
        )
        y = g.op("Relu", g.op("Conv", y, w, pads=[window // 2] * 4))
    g.output("y", g.op("Add", x, y), TensorProto.FLOAT, 1, 256, 28, 28)
    (work / "bottleneck.onnx").write_bytes(g.bytes())
    done = subprocess.run(
        [
            ingot,
            "compile",
            work / "bottleneck.onnx",
            "-o",
            work / "bottleneck",
            "--target",
            "cuda:sm_80+sm_90a",
            "-q",
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        want(False, f"a bottleneck: {done.stderr}")
        return
    text, names = (
        (work / "bottleneck" / f"model_kernels.{suffix}").read_text() for suffix in ("c", "h")
    )
    kernels, most = int(re.search(r"MODEL_KERNELS = (\d+)", names)[1]), 300_000
    want(
        text.count("compiled for sm_") == 2 and len(text) < kernels * most,
        f"two images of {kernels} kernels: {len(text)} bytes of text",
    )


def recorded(ingot, model, program, stub, work):
    """A run on the host, whose steps init records, and the memory that it takes; how many launches
    there are."""
    status, (init, *runs, end) = calls(program, stub, work)
    want(status == 0, f"a run on the host: status {status}")
    launches = init.count("cuLaunchKernel")
    record = init[init.index("cuStreamBeginCapture") :] if "cuStreamBeginCapture" in init else []
    want(
        launches >= 2
        and record
        == ["cuStreamBeginCapture"]
        + ["cuLaunchKernel"] * launches
        + ["cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphDestroy"],
        f"init does not record the steps: {init}",
    )
    want(init.count("cuMemcpyHtoDAsync") == 2, f"weights that are uploaded at init: {init}")
    for run in runs:
        want(
            run
            == ["cuMemcpyHtoDAsync", "cuGraphLaunch", "cuMemcpyDtoHAsync", "cuStreamSynchronize"],
            f"a run on the host: {run}",
        )
    want(
        end.count("cuMemFree") == init.count("cuMemAlloc") and "cuGraphExecDestroy" in end,
        f"deinit: {end}",
    )

    # what --max-vram counts is what init asks for
    taken = sum(map(int, re.findall(r"^cuMemAlloc_v2 (\d+)", (work / "log").read_text(), re.M)))
    for limit, good in ((taken, 0), (taken - 1, 4)):
        done = subprocess.run(
            [
                ingot,
                "compile",
                model,
                "-o",
                work / f"limit{good}",
                "--target",
                "cuda",
                "-q",
                "--max-vram",
                str(limit),
            ],
            capture_output=True,
            text=True,
        )
        want(
            done.returncode == good and ("--max-vram" in done.stderr) == (good != 0),
            f"--max-vram {limit}: status {done.returncode}: {done.stderr}",
        )
    return launches


def fixed_sizes(program, stub, work, launches):
    """Operands of the device, a profile, and calls that fail."""
    status, (init, *runs, end) = calls(program, stub, work, "device")
    want(status == 0, f"a run on the device: status {status}")
    again = (
        ["cuStreamBeginCapture"]
        + ["cuLaunchKernel"] * launches
        + ["cuStreamEndCapture", "cuGraphExecUpdate", "cuGraphDestroy", "cuGraphLaunch"]
    )
    want("cuGraphInstantiateWithFlags" in init, f"init on the device: {init}")
    want(runs == [again, ["cuGraphLaunch"], again], f"runs on the device: {runs}")
    want(
        end.count("cuMemFree") == init.count("cuMemAlloc"),
        f"memory of the caller's is let go: {end}",
    )

    status, (init, *runs, end) = calls(program, stub, work, "profile")
    want(
        status == 0
        and "cuStreamBeginCapture" not in init
        and all(r.count("cuLaunchKernel") == launches for r in runs),
        f"a profile: {runs}",
    )
    status, (init, *runs, end) = calls(
        program, stub, work, CUDA_STUB_FAIL="cuStreamBeginCapture_v2"
    )
    want(
        status == 0 and all(r.count("cuLaunchKernel") == launches for r in runs),
        f"a stream that cannot be recorded: {runs}",
    )
    status, (init, *runs, end) = calls(
        program, stub, work, CUDA_STUB_FAIL="cuGraphInstantiateWithFlags"
    )
    want(
        status == 16 and init.count("cuMemFree") == init.count("cuMemAlloc"),
        f"init that fails: status {status}, {init}",
    )

    for where in ("host", "device", "profile"):
        each_call_fails(program, stub, work, where)


def which_gpu(program, stub, work):
    for which, device in (
        ("1", 1),
        ("2", 2),
        ("GPU-10111213-1415-1617-1819", 1),
        ("20212223", 2),
        ("0001020304050607", 0),
    ):
        status, (init, *_) = calls(program, stub, work, WHICH_GPU=which)
        want(
            status == 0 and f"cuDevicePrimaryCtxRetain {device}" in init,
            f"the GPU {which}: status {status}, {init}",
        )
    for which in (
        "3",
        "GPU-11",
        "2021222",
        "202122231",
        "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f20",
        "x",
    ):
        want(calls(program, stub, work, WHICH_GPU=which)[0] == 16, f"a GPU {which} was found")


def early_launches(program, stub, work, launches):
    """Kernels that wait by themselves: launches begin early."""
    status, (init, *runs, end) = calls(program, stub, work, CUDA_STUB_PTX="90")
    want(
        status == 0
        and init.count("cuLaunchKernelEx early") == launches
        and "cuLaunchKernel" not in init,
        f"kernels for sm_90: {init}",
    )
    want(
        "griddepcontrol.wait" in (program.parent / "model_kernels.cu").read_text(),
        "kernels that do not wait",
    )
    status, (init, *runs, end) = calls(program, stub, work, CUDA_STUB_PTX="80")
    want(status == 0 and init.count("cuLaunchKernel") == launches, f"kernels for sm_80: {init}")


def images(ingot, model, stub, work):
    """Several images: the next one where the driver does not take one."""
    program = build(
        ingot, model, "cuda", CUDA.replace("{IN}", "{.x = 0}").replace("{OUT}", "{.y = 0}"), work
    )
    status, (init, *runs, end) = calls(program, stub, work, CUDA_STUB_FAIL="cuModuleLoadDataEx")
    want(
        status == 17 and init.count("cuModuleLoadDataEx") == 1,
        f"an image that is for another device: status {status}",
    )
    done = subprocess.run(
        [ingot, "compile", model, "-o", work / "two", "--target", "cuda:sm_90+ptx"],
        capture_output=True,
        text=True,
    )
    if "not installed" not in done.stderr:
        text = (work / "two/model_kernels.c").read_text()
        want(
            "compiled for sm_90 " in text and "compiled for any machine" in text,
            f"cuda:sm_90+ptx: {done.stderr}",
        )
        done = subprocess.run(
            [ingot, "compile", model, "-o", work / "since", "--target", "cuda:sm_90a+compute_80"],
            capture_output=True,
            text=True,
        )
        text = (work / "since/model_kernels.c").read_text() if not done.returncode else ""
        since = text.partition("compiled for compute_80 ")[2].partition("{")[2].partition("}")[0]
        want(
            "compiled for sm_90a " in text
            and b".target sm_80" in bytes(int(x) for x in since.split(",") if x.strip()),
            f"PTX since sm_80: {done.stderr}",
        )
        done = subprocess.run(
            [ingot, "compile", model, "-o", work / "none", "--target", "cuda:sm_90+sm_1"],
            capture_output=True,
            text=True,
        )
        want(
            done.returncode == 2 and "sm_1" in done.stderr and not (work / "none").exists(),
            f"cuda:sm_90+sm_1: {done.stderr}",
        )

        sizes_of_images(ingot, work)


def run_time_sizes(ingot, stub, work):
    """The first run records its steps, runs of other sizes change what is recorded."""
    model = network(work / "sizes.onnx", ["n", 16])
    sized = (
        CUDA.replace("{IN}", "{.x = 0, .x_dims = {3, 16}}")
        .replace("{OUT}", "{.y = 0}")
        .replace("mark(\"run\");", "in.x_dims[0] = i < 2 ? 3 : 7;\n        mark(\"run\");")
    )
    program = build(ingot, model, "cuda", sized, work, "--dim", "n=1..8")
    for where in ("host", "device"):
        status, (init, *runs, end) = calls(program, stub, work, where)
        want(
            status == 0 and "cuStreamBeginCapture" not in init,
            f"sizes of run time, {where}: status {status}, {init}",
        )
        around = (
            (["cuMemcpyHtoDAsync"], ["cuMemcpyDtoHAsync", "cuStreamSynchronize"])
            if where == "host"
            else ([], [])
        )
        inside = [r[len(around[0]) : len(r) - len(around[1])] for r in runs]
        want(
            all(
                r[: len(around[0])] + r[len(r) - len(around[1]) :] == around[0] + around[1]
                for r in runs
            ),
            f"sizes of run time, {where}: {runs}",
        )
        launches = inside[0].count("cuLaunchKernel")
        want(
            inside[0]
            == ["cuStreamBeginCapture"]
            + ["cuLaunchKernel"] * launches
            + ["cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch"],
            f"sizes of run time, {where}, the first run: {inside[0]}",
        )
        want(
            inside[1] == ["cuGraphLaunch"],
            f"sizes of run time, {where}, the same again: {inside[1]}",
        )
        want(
            "cuGraphExecDestroy" in end and "cuGraphDestroy" in end,
            f"sizes of run time, {where}, deinit: {end}",
        )
        want(
            len(inside[2]) == launches + 1
            and all(c.startswith("cuGraphExecKernelNodeSetParams") for c in inside[2][:-1])
            and inside[2][-1] == "cuGraphLaunch",
            f"sizes of run time, {where}, other ones: {inside[2]}",
        )
        status, (init, *runs, end) = calls(
            program, stub, work, where, CUDA_STUB_FAIL="cuStreamGetCaptureInfo_v3"
        )
        want(
            status == 0 and any("cuGraphExecUpdate" in r for r in runs),
            f"sizes of run time, {where}, of a driver that does not tell nodes: {runs}",
        )
        each_call_fails(program, stub, work, where)
        groups = [int(c.split(",")[1].split()[0]) for c in inside[2][:-1]]
        want(
            groups[0] == 2,
            f"sizes of run time, {where}: {groups} groups for 7 rows of 32, 128 a group",
        )


def boxes(ingot, stub, work):
    """Boxes of memory that the caller has not named yet."""
    g = models.Graph(1)
    x = g.input("x", TensorProto.FLOAT16, 1024, 512)
    g.output(
        "y",
        g.op("MatMul", x, g.const(np.ones((512, 1024), np.float16))),
        TensorProto.FLOAT16,
        1024,
        1024,
    )
    (work / "boxes.onnx").write_bytes(g.bytes())
    program = build(
        ingot,
        work / "boxes.onnx",
        "cuda:sm_90a",
        CUDA.replace("{IN}", "{.x = 0}").replace("{OUT}", "{.y = 0}"),
        work,
        "--weights",
        "array",
    )
    status, (init, *runs, end) = calls(program, stub, work, "device")
    want(
        status == 0
        and init.count("cuTensorMapEncodeTiled") == 1
        and runs[0].count("cuTensorMapEncodeTiled") == 2,
        f"boxes: status {status}, {init}, {runs}",
    )


def loops(ingot, stub, work):
    """A loop whose iterations the host counts is recorded whole; one of sizes of run time is enqueued;
    neither waits."""

    def recurrent(rows, *options):
        g = models.Graph(3)
        x = g.input("x", TensorProto.FLOAT, 5, rows, 8)
        h = g.op("LSTM", x, g.weight(1, 64, 8), g.weight(1, 64, 16), hidden_size=16, n=3)[0]
        g.output("y", g.op("Relu", h), TensorProto.FLOAT, 5, 1, rows, 16)
        path = work / f"lstm_{rows}.onnx"
        path.write_bytes(g.bytes())
        text = CUDA.replace(
            "{IN}", "{.x = 0, .x_dims = {5, 3, 8}}" if options else "{.x = 0}"
        ).replace("{OUT}", "{.y = 0}")
        return build(ingot, path, "cuda", text, work, *options)

    program = recurrent(2)
    status, (init, *runs, end) = calls(program, stub, work)
    launches = init.count("cuLaunchKernel")
    want(
        status == 0 and launches >= 5 and "cuGraphInstantiateWithFlags" in init,
        f"a loop: status {status}, {init}",
    )
    want(
        all(
            r == ["cuMemcpyHtoDAsync", "cuGraphLaunch", "cuMemcpyDtoHAsync", "cuStreamSynchronize"]
            for r in runs
        ),
        f"a loop: {runs}",
    )
    status, (init, *runs, end) = calls(program, stub, work, "device")
    want(
        status == 0
        and runs[1] == ["cuGraphLaunch"]
        and not any("Synchronize" in c for r in runs for c in r),
        f"a loop, on the device: {runs}",
    )
    program = recurrent("n", "--dim", "n=1..4")
    status, (init, *runs, end) = calls(program, stub, work, "device")
    want(
        status == 0
        and all(
            r.count("cuLaunchKernel") == launches
            and "cuGraphLaunch" not in r
            and "cuStreamSynchronize" not in r
            for r in runs
        ),
        f"a loop with sizes of run time: {runs}",
    )


def host_step(ingot, stub, work):
    """A step of the host."""
    model = network(
        work / "sorted.onnx",
        [4, 16],
        lambda g, h: g.op("TopK", h, g.const([3], np.int64), n=2)[0],
        [4, 3],
    )
    program = build(
        ingot, model, "cuda", CUDA.replace("{IN}", "{.x = 0}").replace("{OUT}", "{.y = 0}"), work
    )
    status, parts = calls(program, stub, work, "device")
    want(
        status
        == int(
            re.search(
                r"ERR_CONFIG, (\d+)", (HERE.parent.parent / "runtime_min/igrt.h").read_text()
            )[1]
        ),
        f"a step of the host, on the device: status {status}",
    )
    want(calls(program, stub, work)[0] == 0, "a step of the host")


def cuda(ingot, work):
    stub = work / "stub"
    stub.mkdir()
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            "-Wall",
            "-Wextra",
            "-Werror",
            HERE / "cuda_stub.c",
            "-o",
            stub / "libcuda.so.1",
        ],
        check=True,
    )
    model = network(work / "fixed.onnx", [4, 16])
    program = build(
        ingot, model, "cuda", CUDA.replace("{IN}", "{.x = 0}").replace("{OUT}", "{.y = 0}"), work
    )
    launches = recorded(ingot, model, program, stub, work)
    fixed_sizes(program, stub, work, launches)
    which_gpu(program, stub, work)
    early_launches(program, stub, work, launches)
    images(ingot, model, stub, work)
    run_time_sizes(ingot, stub, work)
    boxes(ingot, stub, work)
    loops(ingot, stub, work)
    branches(ingot, stub, work)
    host_step(ingot, stub, work)


def decides(kind, work):
    """A model whose middle only the data decides about: an If, a Loop that ends by a condition, one
    inside the other."""

    def sub(name, nodes, inputs, outputs):
        return helper.make_graph(
            nodes,
            name,
            *([helper.make_tensor_value_info(*v) for v in vs] for vs in (inputs, outputs)),
        )

    node, F, shape = helper.make_node, TensorProto.FLOAT, [4, 16]
    branch = node(
        "If",
        ["c"],
        ["z"],
        then_branch=sub(
            "then",
            [node("MatMul", ["h", "w"], ["a"]), node("Relu", ["a"], ["t"])],
            [],
            [("t", F, shape)],
        ),
        else_branch=sub("else", [node("Tanh", ["h"], ["e"])], [], [("e", F, shape)]),
    )
    steps = [node("MatMul", ["v", "w"], ["v1"])]
    test = [node("ReduceSum", ["v2"], ["s2"], keepdims=0), node("Less", ["s2", "far"], ["c2"])]
    if kind == "nested":
        steps = [
            node("ReduceMax", ["v"], ["big"], keepdims=0),
            node("Less", ["big", "one"], ["small"]),
            node(
                "If",
                ["small"],
                ["v1"],
                then_branch=sub("up", [node("Add", ["v", "one"], ["u"])], [], [("u", F, shape)]),
                else_branch=sub("on", [node("Mul", ["v", "five"], ["d"])], [], [("d", F, shape)]),
            ),
        ]
    steps += [node("Sigmoid", ["v1"], ["grown"]), node("Add", ["v", "grown"], ["v2"])]
    loop = node(
        "Loop",
        ["most", "c", "h"],
        ["z"],
        body=sub(
            "body",
            steps + test,
            [("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("v", F, shape)],
            [("c2", TensorProto.BOOL, []), ("v2", F, shape)],
        ),
    )
    nodes = [
        node("Tanh", ["x"], ["h"]),
        node("ReduceSum", ["h"], ["s"], keepdims=0),
        node("Less", ["s", "five"], ["c"]),
        branch if kind == "if" else loop,
        node("MatMul", ["z", "w"], ["last"]),
        node("Relu", ["last"], ["y"]),
    ]
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(np.asarray(v), n)
        for n, v in (
            ("w", (rng.standard_normal((16, 16)) / 4).astype(np.float32)),
            ("one", np.float32(1)),
            ("five", np.float32(5)),
            ("far", np.float32(300)),
            ("most", np.int64(2**63 - 1)),
        )
    ]
    graph = helper.make_graph(
        nodes, "g", *([helper.make_tensor_value_info(n, F, shape)] for n in "xy"), weights
    )
    path = work / f"{kind}.onnx"
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
    return path


def branches(ingot, stub, work):
    """What only the data decides is a part of the record; a driver that cannot record that is asked
    for the condition by the host."""
    for kind, wanted in (
        ("if", {"if": 2, "while": 0, "body": 2}),
        ("loop", {"if": 0, "while": 1, "body": 1}),
        ("nested", {"if": 2, "while": 1, "body": 3}),
    ):
        program = build(
            ingot,
            decides(kind, work),
            "cuda",
            CUDA.replace("{IN}", "{.x = 0}").replace("{OUT}", "{.y = 0}"),
            work,
        )
        status, (init, *runs, end) = calls(program, stub, work)
        record = (
            init[init.index("cuStreamBeginCapture") :] if "cuStreamBeginCapture" in init else []
        )
        told = {
            "if": record.count("cuGraphAddNode if"),
            "while": record.count("cuGraphAddNode while"),
            "body": record.count("cuStreamEndBody"),
        }
        want(
            status == 0
            and told == wanted
            and record.count("cuStreamBeginCaptureToGraph") == wanted["body"]
            and record[-3:-1] == ["cuStreamEndCapture", "cuGraphInstantiateWithFlags"],
            f"{kind}: status {status}, {init}",
        )
        for i, call in enumerate(
            record
        ):  # what a node decides by is enqueued before it; what is in it, behind it
            before, behind = record[i - 1], record[i + 1 : i + 4]
            want(
                not call.startswith("cuGraphAddNode")
                or (
                    before in ("cuLaunchKernel", "cuStreamUpdateCaptureDependencies")
                    and behind[0] == "cuStreamUpdateCaptureDependencies"
                    and ("cuStreamCreate" in behind[1] or behind[1] == "cuGraphAddNode if")
                ),
                f"{kind}: {record}",
            )
        want(
            all(
                r
                == [
                    "cuMemcpyHtoDAsync",
                    "cuGraphLaunch",
                    "cuMemcpyDtoHAsync",
                    "cuStreamSynchronize",
                ]
                for r in runs
            ),
            f"{kind}: {runs}",
        )
        status, (init, *runs, end) = calls(program, stub, work, "device")
        want(
            status == 0
            and runs[1] == ["cuGraphLaunch"]
            and not any("Synchronize" in c for r in runs for c in r),
            f"{kind}, on the device: {runs}",
        )
        for older, tries in (
            ({"CUDA_STUB_DRIVER": "12030"}, 0),
            ({"CUDA_STUB_FAIL": "cuModuleLoadDataEx", "CUDA_STUB_AT": "2"}, 0),
            ({"CUDA_STUB_FAIL": "cuGraphAddNode"}, 1),
        ):
            status, (init, *runs, end) = calls(program, stub, work, **older)
            want(
                status == 0
                and init.count("cuStreamBeginCapture") == tries
                and all(
                    "cuGraphLaunch" not in r and r.count("cuStreamSynchronize") > 1 for r in runs
                ),
                f"{kind}, {older}: {status} {init} {runs}",
            )
        for where in ("host", "device"):
            each_call_fails(program, stub, work, where)


def opencl(ingot, work):
    model = network(work / "cl.onnx", [4, 16])
    program = build(ingot, model, "opencl", "enum { X = 64, Y = 64 };" + OPENCL, work)
    done = subprocess.run(
        [program],
        capture_output=True,
        text=True,
        env=os.environ | {"POCL_CACHE_DIR": str(work / "pocl"), "ASAN_OPTIONS": "detect_leaks=0"},
    )  # a device's compiler leaks
    want(done.returncode in (0, 77), f"OpenCL: status {done.returncode} {done.stdout}{done.stderr}")
    return "no OpenCL device" if done.returncode == 77 else "OpenCL"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ingot", required=True)
    ingot = parser.parse_args().ingot
    with tempfile.TemporaryDirectory() as folder:
        cuda(ingot, pathlib.Path(folder))
        where = opencl(ingot, pathlib.Path(folder))
    print("\n".join(faults) or f"ok: CUDA by its calls, {where}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
