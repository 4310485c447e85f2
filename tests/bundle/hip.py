#!/usr/bin/env python3
"""HIP, without a GPU of AMD's: what the text of kernels computes, what its compiler takes, and what
the host asks of the runtime.

    hip.py --ingot build/ingot [CHECK...]

    calls      with hip_stub.c in the runtime's place: init uploads weights and records the steps, a
               run is one launch; with other memory they are recorded again, into the graph that there
               is; whichever call fails, all that was made is let go
    kernels    run on the host (tests/emulator/), from the first item on and from the last: products,
               sums that neighbours in a wave share, norms, windows, bytes; an If and a Loop, for which
               the host asks
    objects    the same models compiled for three architectures, in one bundle

Exit status 77, skipped: there is no Python with onnx, or no C++ compiler.
"""

import collections
import os
import subprocess
import sys

try:
    import hipcc
    import numpy as np
    from emulated import F, H, beside, emulate, errors, model, some
    from on_device import build, decides, network
    from on_device_programs import CUDA
    from run import HERE, Wrong, call, compilers, main, program
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

PAIRS = {
    "hipMalloc": "hipFree",
    "hipStreamCreateWithFlags": "hipStreamDestroy",
    "hipModuleLoadData": "hipModuleUnload",
    "hipStreamEndCapture": "hipGraphDestroy",
    "hipGraphInstantiate": "hipGraphExecDestroy",
}


def f32(*shape):
    return some(*shape, dtype=np.float32)


NODES = {
    "product": (
        [("x", F, [70, 72])],
        [("MatMul", ["x", "w"], "p"), ("Relu", ["p"], "y")],
        ("y", F, [70, 40]),
        [("w", f32(72, 40))],
    ),
    "norm": (
        [("x", F, [6, 256])],
        [
            ("LayerNormalization", ["x", "g", "b"], "n", {"axis": -1}),
            ("Softmax", ["n"], "y", {"axis": -1}),
        ],
        ("y", F, [6, 256]),
        [("g", f32(256)), ("b", f32(256))],
    ),
    "halves": (
        [("x", H, [24, 64])],
        [("MatMul", ["x", "w"], "p"), ("Erf", ["p"], "y")],
        ("y", H, [24, 32]),
        [("w", some(64, 32))],
    ),
    "windows": (
        [("x", F, [1, 8, 20, 20])],
        [
            ("Conv", ["x", "w"], "c", {"pads": [1, 1, 1, 1]}),
            ("Sigmoid", ["c"], "s"),
            ("MaxPool", ["s"], "y", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ],
        ("y", F, [1, 16, 10, 10]),
        [("w", f32(16, 8, 3, 3))],
    ),
}
TOLERANCE = {"halves": 2e-3}


def kernels(ingot, work):
    os.environ["INGOT_HIPCC"] = "none"
    told = errors(
        [
            beside(ingot, work, name, "hip", made, TOLERANCE.get(name, 2e-6))
            for name, made in NODES.items()
        ]
    )
    print(", ".join([*told, *branches(ingot, work), sized(ingot, work)]))


def reference(ingot, work, name, path, options, inputs):
    """Beside onnx's own evaluator; the text of the kernels."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    bundle, folder = work / name, work / f"{name}_driver"
    call(ingot, "compile", path, "-o", bundle, "--target", "hip", "-q", *options)
    program(bundle, compilers()[0], "-O0")
    text = emulate.driver(bundle, folder)
    for given in inputs:
        for i, x in enumerate(given.values()):
            np.save(folder / f"input_{i}.npy", x)
        want = ReferenceEvaluator(onnx.load(path)).run(None, given)[0]
        for order in emulate.ORDERS:
            call(bundle / "model", folder, folder, env=emulate.environment(folder, order))
            error = abs(np.load(folder / "output_0.npy") - want).max() / abs(want).max()
            if not error <= 1e-5:
                raise Wrong(f"{name}, {order}: {error:.1e} of the range")
    return text


def branches(ingot, work):
    """The host asks what a condition is, as the graph cannot."""
    x = np.random.default_rng(3).standard_normal((4, 16)).astype(np.float32)
    for kind in ("if", "loop"):
        reference(ingot, work, kind, decides(kind, work), [], [{"x": x - 1}, {"x": x + 1}])
    return ["if", "loop"]


def sized(ingot, work):
    """A length that the run knows: lanes of a wave share a sum, and kernels are recorded anew."""
    shapes = [("x", F, [1, "n"]), ("w", F, ["n", 64])]
    nodes = [("MatMul", ["x", "w"], "y")]
    path = model(work / "sized.onnx", shapes, nodes, ("y", F, [1, 64]))
    inputs = [{"x": f32(1, n), "w": f32(n, 64)} for n in (700, 33)]
    text = reference(ingot, work, "sized", path, ["--dim", "n=1..1024"], inputs)
    kernels = text.split('extern "C"', 1)[1]
    if "igrt_across_" not in kernels and "igrt_halves_" not in kernels:
        raise Wrong("sized: neighbours share nothing")
    return "sized"


def objects(ingot, work):
    os.environ["INGOT_HIPCC"] = str(hipcc.compiler(work))
    for name, made in NODES.items():
        inputs, nodes, output, weights = made
        path, bundle = model(work / f"{name}.onnx", inputs, nodes, output, weights), work / name
        told = call(ingot, "compile", path, "-o", bundle, "--target", "hip", "-q", "--no-check")
        if "is not installed" in told or hipcc.images(bundle) == 0:
            print("skipped: no compiler for AMD's GPUs")
            return
        if hipcc.images(bundle) != 3:
            raise Wrong(f"{name}: not an object for each of three architectures")
    for target, words in (("hip:gfx", "has no GPU"), ("hip:sm_80", "has no GPU")):
        p = subprocess.run(
            [ingot, "compile", path, "-o", work / "no", "--target", target],
            capture_output=True,
            text=True,
        )
        if p.returncode == 0 or words not in p.stderr:
            raise Wrong(f"{target}: {p.stderr}")
    print(f"{len(NODES)} models for three architectures")


# -- calls ---------------------------------------------------------------------------------------


class Stub:
    def __init__(self, work):
        self.folder, self.log = work / "stub", work / "log"
        self.folder.mkdir()
        words = ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
        call(
            *words, HERE / "hip_stub.c", HERE / "cuda_stub.c", "-o", self.folder / "libamdhip64.so"
        )

    def calls(self, program, *args, **env):
        """The status, and a list of HIP's calls for init, each run, and the end."""
        self.log.unlink(missing_ok=True)
        more = {name: str(self.log) for name in ("HIP_STUB_LOG", "CUDA_STUB_LOG")}
        more |= {"LD_LIBRARY_PATH": str(self.folder)}
        more |= {name: "exitcode=99" for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS")}
        done = subprocess.run([program, *args], env=os.environ | more | env)
        parts = [p.split("\n")[1:-1] for p in self.log.read_text().split("== ")[1:]]
        return done.returncode, [[c for c in p if c.startswith("hip")] for p in parts]


def want(good, what):
    if not good:
        raise Wrong(what)


def each_call_fails(stub, program, *args):
    """The first call of each name, one in the middle, the last: what was made is let go."""
    names = collections.Counter(c for p in stub.calls(program, *args)[1] for c in p)
    for name, n in names.items():
        for at in sorted({1, (n + 1) // 2, n}):
            fail = {"HIP_STUB_FAIL": name, "HIP_STUB_AT": str(at)}
            status, parts = stub.calls(program, *args, **fail)
            count = collections.Counter(c for p in parts for c in p)
            left = [m for m, end in PAIRS.items() if count[m] - (m == name) != count[end]]
            want(status != 99 and not left, f"{name}, time {at}: status {status}, left {left}")


def calls(ingot, work):
    os.environ["INGOT_HIPCC"] = "none"
    stub = Stub(work)
    program = build(
        ingot,
        network(work / "fixed.onnx", [4, 16]),
        "hip",
        CUDA.replace("{IN}", "{.x = 0}").replace("{OUT}", "{.y = 0}"),
        work,
    )
    status, (init, *runs, end) = stub.calls(program)
    n = init.count("hipModuleLaunchKernel")
    steps = ["hipStreamBeginCapture", *["hipModuleLaunchKernel"] * n, "hipStreamEndCapture"]
    begin = ["hipInit", "hipStreamCreateWithFlags"]
    want(status == 0 and n >= 2 and init[:2] == begin, f"init: {init}")
    made = [*steps, "hipGraphInstantiate", "hipGraphDestroy"]
    want(init[-len(made) :] == made, f"init does not record the steps: {init}")
    run = ["hipMemcpyHtoDAsync", "hipGraphLaunch", "hipMemcpyDtoHAsync", "hipStreamSynchronize"]
    want(runs == [run] * 3, f"runs on the host: {runs}")
    want(
        end.count("hipFree") == init.count("hipMalloc") and end[-1] == "hipStreamDestroy",
        f"the end: {end}",
    )
    again = [*steps, "hipGraphExecUpdate", "hipGraphDestroy", "hipGraphLaunch"]
    status, (init, *runs, end) = stub.calls(program, "device")
    want(runs == [again, ["hipGraphLaunch"], again], f"runs on the device: {runs}")
    status, (init, *runs, end) = stub.calls(program, "profile")
    want(
        status == 0 and all(r.count("hipModuleLaunchKernel") == n for r in runs),
        f"a profile: {runs}",
    )
    fail = {"HIP_STUB_FAIL": "hipStreamBeginCapture"}
    status, (init, *runs, end) = stub.calls(program, **fail)
    want(
        status == 0 and all(r.count("hipModuleLaunchKernel") == n for r in runs),
        f"a stream that cannot be recorded: {runs}",
    )
    for where in ("host", "device", "profile"):
        each_call_fails(stub, program, where)
    for which, good in (("1", 0), ("GPU-10111213-1415-1617-1819", 0), ("7", 16)):
        status, _ = stub.calls(program, WHICH_GPU=which)
        want(status == good, f"the GPU {which}: status {status}")
    status, parts = stub.calls(program, HIP_STUB_FAIL="hipModuleLoadData", HIP_STUB_ERROR="209")
    want(status == 17, f"kernels of another GPU: status {status}")
    print(f"{n} launches in a graph")


if __name__ == "__main__":
    if not emulate.CXX:
        print("skipped: no C++ compiler")
        sys.exit(77)
    sys.exit(main(__doc__, {"calls": calls, "kernels": kernels, "objects": objects}))
