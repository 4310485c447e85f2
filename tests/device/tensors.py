#!/usr/bin/env python3
"""Tensors of PyTorch on a CUDA device in and out of a model by DLPack, as docs/python.md promises.

    tensors.py --ingot build/ingot [--device cpu]     needs torch and onnx, and a GPU or --device cpu

    in, out     inputs are read and outputs written where they lie; torch.from_dlpack(output) has
                the address of the output, and keeps it when the output is dropped
    streams     work that torch has enqueued before is waited for, and torch's that follows waits,
                in a stream of ours and in the caller's
    many        300 runs of which nobody waits for the end, tensors dropped at once: all are right
    types       f32, f16, bf16, int64, bool
    mistakes    a tensor elsewhere, of another type or shape, or with strides: a sentence refuses it

Exit status 77, skipped: no torch, no onnx, or no GPU.
"""

import argparse
import os
import pathlib
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]

try:
    import torch
    from onnx import TensorProto as T
    from onnx import helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

KINDS = {
    T.FLOAT: torch.float32,
    T.FLOAT16: torch.float16,
    T.BFLOAT16: torch.bfloat16,
    T.INT64: torch.int64,
    T.BOOL: torch.bool,
}


def check(good, what):
    if not good:
        raise AssertionError(what)


def model(op, kind, *shape):
    x, y = (helper.make_tensor_value_info(n, kind, shape) for n in "xy")
    inputs = ["x", "x"] if op == "Add" else ["x"]
    graph = helper.make_graph([helper.make_node(op, inputs, ["y"])], "g", [x], [y])
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


class Device:
    def __init__(self, ingot, name):
        self.ingot, self.name = ingot, name
        self.gpu = name == "cuda"

    def load(self, *of, **more):
        how = {"target": "cuda:native", "on_device": True} if self.gpu else {"target": "c:native"}
        return self.ingot.load(model(*of), **how, **more)

    def wait(self):
        if self.gpu:
            torch.cuda.synchronize()


def in_and_out(d):
    net = d.load("Add", T.FLOAT, 64, 1000)
    x = torch.randn(64, 1000, device=d.name)
    y = net(x)
    t = torch.from_dlpack(y)
    check(t.device.type == d.name and torch.equal(t, 2 * x), "Add")
    at = y.memory.address if d.gpu else y.ctypes.data
    check(t.data_ptr() == at, "from_dlpack copies")
    del y
    others = [net(torch.randn(64, 1000, device=d.name)) for _ in range(4)]
    check(torch.equal(t, 2 * x) and len(others) == 4, "an output that torch alone holds")
    into = torch.zeros(64, 1000, device=d.name)
    before = into.data_ptr()
    net.run({"x": x}, out={"y": into})
    check(torch.equal(into, 2 * x) and into.data_ptr() == before, "out=")


def streams(d):
    """A long product is enqueued before; the result is read by what torch enqueues behind."""
    n = 4096 if d.gpu else 256
    net = d.load("Add", T.FLOAT, n, n)
    a = torch.randn(n, n, device=d.name)
    for _ in range(3):
        x = a
        for _ in range(8):
            x = x @ a / n**0.5
        z = torch.from_dlpack(net(x)) + 1
        check(torch.equal(z, 2 * x + 1), "ours, behind torch's")
    if not d.gpu:
        return
    side = torch.cuda.Stream()
    net = d.load("Add", T.FLOAT, n, n, stream=side.cuda_stream)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        x = a
        for _ in range(8):
            x = x @ a / n**0.5
        into = torch.zeros(n, n, device=d.name)
        net.run({"x": x}, out={"y": into})
        z = into + 1
        side.synchronize()
        check(torch.equal(z, 2 * x + 1), "in the caller's stream")
        z = torch.from_dlpack(net(x)) + 1
    side.synchronize()
    check(torch.equal(z, 2 * x + 1), "an output of ours in the caller's stream")


def many(d):
    net = d.load("Add", T.FLOAT, 256, 256)
    results = []
    for i in range(300):
        x = torch.full((256, 256), float(i), device=d.name)
        results.append(torch.from_dlpack(net(x)))
        del x
    for i, y in enumerate(results):
        check(bool((y == 2 * i).all()), f"run {i}")


def types(d):
    for kind, dtype in KINDS.items():
        net = d.load("Identity", kind, 5, 7)
        x = torch.randint(0, 2, (5, 7), device=d.name).to(dtype)
        try:
            x.__dlpack__()
        except RuntimeError as e:  # bool, until PyTorch 2.2
            print(f"  without {dtype}: {e}")
            continue
        into = torch.zeros(5, 7, dtype=dtype, device=d.name)
        net.run({"x": x}, out={"y": into})
        check(torch.equal(into, x), dtype)


def mistakes(d):
    net, x = d.load("Add", T.FLOAT, 4, 6), torch.ones(4, 6, device=d.name)
    wrong = [(x.double(), "float64"), (x[:3], "3,6"), (x.clone().requires_grad_(), "detach")]
    if d.gpu:
        wrong += [(x.cpu(), "not on the GPU"), (x.t().contiguous().t(), "contiguous")]
    for value, text in wrong:
        try:
            net(value)
        except d.ingot.InputError as e:
            check(text in str(e), f"{text}: {e}")
        else:
            raise AssertionError(f"taken: {text}")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    o = p.parse_args()
    if o.device == "cuda" and not torch.cuda.is_available():
        print("skipped: there is no GPU")
        return 77
    os.environ["INGOT"] = str(o.ingot.resolve())
    sys.path.insert(0, str(TREE / "compiler/tools/python"))
    import ingot

    with tempfile.TemporaryDirectory() as cache:
        os.environ["INGOT_CACHE"] = cache
        d, bad = Device(ingot, o.device), 0
        for f in (in_and_out, streams, many, types, mistakes):
            try:
                f(d)
                print(f"{o.device} {f.__name__}: good", flush=True)
            except Exception as e:
                bad += 1
                print(f"{o.device} {f.__name__}: FAILED: {type(e).__name__}: {e}", flush=True)
            d.wait()
    print(f"torch {torch.__version__}, {bad} failed")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
