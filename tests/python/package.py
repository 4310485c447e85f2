#!/usr/bin/env python3
"""The Python package, as a user has it.

    package.py --ingot build/ingot [CHECK...]

    calls       positional and by name, out=, several outputs, threads, memories, states, a folder
                that was moved, one model twice
    copies      dense arrays of the declared dtype are read and written where they lie
    dims        sizes within bounds, empty ones, sequences, optionals, strings, types that NumPy
                lacks
    mistakes    each raises the documented exception with one line that says what is wrong and what
                would be right
    loads       load(): the cache, run(None, feeds), clones, threads, asyncio, profiles, pickles, close
    dlpack      tensors of other libraries are read and written where they lie: TVM's, PyTorch's, if they
                are there
    zig         without make and cc the library is built by ziglang, if it is there
    stubs       __init__.pyi has what the package has, and the same parameters
    options     keywords are the command line's options
    runner      the official ONNX runner drives ingot.onnx_backend (a part of its cases)

Exit status 77, skipped: there is no Python with onnx, or no make.
"""

import argparse
import asyncio
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests/bundle"))

try:
    import ml_dtypes
    import numpy as np
    import onnx
    from onnx import TensorProto, helper
    import models
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

F, I, S = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
info, node = helper.make_tensor_value_info, helper.make_node


def model(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def ramp(*shape):
    return (np.arange(np.prod(shape)) % 17 / 7 - 1).reshape(shape).astype(np.float32)


GIVEN_CC = os.environ.get("CC")


def compiler(cc=GIVEN_CC):
    """The C compiler from here on is this one, else that of the environment; None: what ingot finds by itself."""
    os.environ.pop("CC", None)
    if cc:
        os.environ["CC"] = cc


def Model(folder, **more):
    return ingot.Model(folder, cflags="-O0", **more)


def check(good, what):
    if not good:
        raise AssertionError(what)


def calls(work):
    ingot.compile(models.build("cnn"), work / "cnn", name="cnn")
    net = Model(work / "cnn")
    x = ramp(1, 3, 16, 16)
    y = net(x)
    check(y.shape == (1, 5) and y.dtype == np.float32 and np.isfinite(y).all(), y)
    check(
        np.array_equal(net(image=x), y) and np.array_equal(net.run({"image": x})["scores"], y),
        "by name",
    )
    check(np.array_equal(net(x.tolist()), y), "lists")
    net.selftest()
    check(
        [str(t) for t in net.inputs + net.outputs]
        == ["'image' float32[1,3,16,16]", "'scores' float32[1,5]"],
        net.inputs,
    )
    out = np.zeros((1, 5), np.float32)
    check(
        np.shares_memory(net.run({"image": x}, out={"scores": out})["scores"], out)
        and np.array_equal(out, y),
        "out=",
    )
    check(np.array_equal(Model(work / "cnn", threads=3)(x), y), "threads")
    ingot.compile(
        models.build("cnn"), work / "blob", name="cnn", weights="blob", memory=["fast=8k", "slow"]
    )
    shutil.move(work / "blob", work / "moved")
    moved = Model(str(work / "moved"))
    check(np.array_equal(moved(x), y), "blob, memories")
    results, many = (
        [],
        [threading.Thread(target=lambda: results.append(moved(x))) for _ in range(8)],
    )
    for t in many:
        t.start()
    for t in many:
        t.join()
    check(len(results) == 8 and all(np.array_equal(r, y) for r in results), "from threads")
    # compiled anew in the same folder: built anew
    ingot.compile(models.build("mlp"), work / "cnn", name="mlp")
    check(Model(work / "cnn")(ramp(4, 20)).shape == (4, 10), "another model in the folder")
    two = model(
        [node("Split", ["x"], ["a", "b"], axis=0), node("Neg", ["b"], ["c"])],
        [info("x", F, [4, 2])],
        [info("a", F, [2, 2]), info("c", F, [2, 2])],
    )
    ingot.compile(two, work / "two")
    a, c = Model(work / "two")(ramp(4, 2))
    check(np.array_equal(a, ramp(4, 2)[:2]) and np.array_equal(c, -ramp(4, 2)[2:]), "two outputs")


def copies(work):
    large = model(
        [node("Add", ["x", "x"], ["y"])], [info("x", F, [64, 1000])], [info("y", F, [64, 1000])]
    )
    ingot.compile(large, work / "large")
    net = Model(work / "large")
    seen = []  # the addresses that cross from Python to C
    table = net._table

    def run(context, given, made):
        address = lambda struct: int.from_bytes(bytes(struct)[:8], sys.byteorder)
        seen[:] = [address(given), address(made)]
        return table.run(context, given, made)

    net._table = type(
        "Table",
        (),
        {
            "run": staticmethod(run),
            "inputs_bytes": table.inputs_bytes,
            "outputs_bytes": table.outputs_bytes,
            "deinit": table.deinit,
            "fault": table.fault,
        },
    )
    x = ramp(64, 1000)
    y = net(x)
    check(seen == [x.ctypes.data, y.ctypes.data], f"{seen}: {x.ctypes.data}, {y.ctypes.data}")
    wide = np.zeros((64, 2000), np.float32)
    check(
        np.array_equal(net(wide[:, ::2]), wide[:, ::2]) and seen[0] != wide.ctypes.data,
        "not dense: copied",
    )
    x.flags.writeable = False
    check(np.array_equal(net(x), y), "an input that cannot be written")


def dims(work):
    ingot.compile(
        model(
            [node("Add", ["x", "x"], ["y"]), node("Shape", ["x"], ["n"])],
            [info("x", F, ["batch", 3])],
            [info("y", F, ["batch", 3]), info("n", I, [2])],
        ),
        work / "dims",
        dim={"batch": (0, 5)},
    )
    net = Model(work / "dims")
    check(net.inputs[0].shape == ((0, 5), 3), net.inputs)
    for n in (0, 1, 5):
        y, shape = net(ramp(n, 3))
        check(np.array_equal(y, 2 * ramp(n, 3)) and shape.tolist() == [n, 3], n)
    sequence = helper.make_value_info(
        "s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(F, [None]))
    )
    ingot.compile(
        model(
            [node("ConcatFromSequence", ["s"], ["y"], axis=0)], [sequence], [info("y", F, [None])]
        ),
        work / "sequence",
        dim={"s": (1, 3), "s_0": (1, 4)},
    )
    net = Model(work / "sequence")
    check(net.inputs[0].length == 3 and len(net.inputs[0].elements) == 3, net.inputs)
    check(np.array_equal(net([ramp(2), ramp(4)]), np.concatenate([ramp(2), ramp(4)])), "a sequence")
    optional = helper.make_value_info(
        "o", helper.make_optional_type_proto(helper.make_tensor_type_proto(F, [2]))
    )
    ingot.compile(
        model(
            [node("OptionalHasElement", ["o"], ["y"])],
            [optional],
            [info("y", TensorProto.BOOL, [])],
        ),
        work / "optional",
    )
    net = Model(work / "optional")
    check(
        net(None).item() is False and net().item() is False and net(ramp(2)).item() is True,
        "an optional",
    )
    text = model(
        [node("Concat", ["a", "b"], ["y"], axis=0)],
        [info("a", S, [2]), info("b", S, [1])],
        [info("y", S, [3])],
    )
    ingot.compile(text, work / "text")
    net = Model(work / "text")
    check(net(["x", "größer"], np.array(["z"], object)).tolist() == ["x", "größer", "z"], "strings")
    for kind, dtype in (
        (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
        (TensorProto.FLOAT16, np.float16),
        (TensorProto.INT4, ml_dtypes.int4),
        (TensorProto.UINT4, ml_dtypes.uint4),
        (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
    ):
        m = model([node("Identity", ["x"], ["y"])], [info("x", kind, [3])], [info("y", kind, [3])])
        m.opset_import[0].version = 21
        ingot.compile(m, work / dtype.__name__)
        x = np.array([1, 2, -3 if dtype is not ml_dtypes.uint4 else 3]).astype(dtype)
        y = Model(work / dtype.__name__)(x)
        check(
            y.dtype == x.dtype and np.array_equal(y.astype(np.float32), x.astype(np.float32)),
            f"{dtype}: {y}",
        )
    # an LSTM's state is an output here; random numbers and their seed are a state of the context
    random = model([node("RandomUniform", [], ["y"], shape=[4])], [], [info("y", F, [4])])
    ingot.compile(random, work / "random")
    net = Model(work / "random", seed=7)
    first, second = net(), net()
    net.reset()
    check(not np.array_equal(first, second) and np.array_equal(net(), first), "reset")
    check(not np.array_equal(Model(work / "random", seed=8)(), first), "seed")


def wrong_inputs(work, net, gather, x):
    """For mistakes()."""
    kinds = (("x", "y", TensorProto.UINT8), ("s", "t", S))
    ingot.compile(
        model(
            [node("Identity", [x], [y]) for x, y, _ in kinds],
            [info(x, k, [2]) for x, _, k in kinds],
            [info(y, k, [2]) for _, y, k in kinds],
        ),
        work / "byte",
    )
    byte, both = Model(work / "byte"), np.zeros(3, np.uint8)
    check(byte([True, 255], ["a", b"b"])[0].tolist() == [1, 255], "lists")
    return [
        (ingot.InputError, "takes a dict", lambda: net.run(None, [x])),
        (ingot.InputError, "given >f4[4,20]", lambda: net(x.astype(">f4"))),
        (ingot.InputError, "inhomogeneous", lambda: net([[1, 2], [3]])),
        (ingot.InputError, "given <U1[1]", lambda: net(["1"])),
        (ingot.InputError, "given object[]", lambda: net({"x": 1})),
        (ingot.InputError, "int64[1..8] was given float64[1]", lambda: gather(ramp(1, 2), [0.5])),
        (ingot.InputError, "uint8[2] was given 256", lambda: byte([0, 256], ["", ""])),
        (ingot.InputError, "uint8[2] was given -1", lambda: byte([-1, 0], ["", ""])),
        (ingot.InputError, "given None, which is no string", lambda: byte([0, 0], [None, ""])),
        (ingot.InputError, "a zero ends a string", lambda: byte([0, 0], ["a\0b", ""])),
        (
            ingot.InputError,
            "overlaps an input",
            lambda: byte.run({"x": both[:2], "s": ["", ""]}, out={"y": both[1:]}),
        ),
    ]


def mistakes(work):
    ingot.compile(models.build("mlp"), work / "mlp", name="mlp", weights="blob")
    net = Model(work / "mlp")
    x = ramp(4, 20)
    ingot.compile(
        model(
            [node("Gather", ["x", "i"], ["y"])],
            [info("x", F, ["n", 2]), info("i", I, ["n"])],
            [info("y", F, ["n", 2])],
        ),
        work / "gather",
        dim={"n": (1, 8)},
    )
    gather = Model(work / "gather")
    ingot.compile(models.build("mlp"), work / "mcu", target="c:cortex-m4")
    (work / "broken.onnx").write_bytes(models.build("mlp")[:100])
    (work / "full").mkdir()
    (work / "full" / "letter").write_text("dear")
    ingot.compile(models.build("mlp"), work / "damaged", weights="blob")
    weights = work / "damaged" / "model.weights"
    Model(work / "damaged")
    unknown = model([node("Nonsense", ["x"], ["y"])], [info("x", F, [1])], [info("y", F, [1])])
    complex_numbers = model(
        [node("Identity", ["x"], ["y"])],
        [info("x", TensorProto.COMPLEX64, [3])],
        [info("y", TensorProto.COMPLEX64, [3])],
    )
    free = model([node("Neg", ["x"], ["y"])], [info("x", F, ["n"])], [info("y", F, ["n"])])

    def damage(change):
        data = bytearray(weights.read_bytes())
        change(data)
        weights.write_bytes(data)
        return Model(work / "damaged")

    wanted = [
        (
            ingot.RunError,
            "input 'x' float32[4,20] was given float64[4,20]",
            lambda: net(x.astype(np.float64)),
        ),
        (ingot.RunError, "input 'x' float32[4,20] was given float32[4,19]", lambda: net(x[:, :19])),
        (ingot.RunError, "input 'x' float32[4,20] was given float32[80]", lambda: net(x.ravel())),
        (ingot.RunError, "mlp: missing: 'x' float32[4,20]", lambda: net()),
        (ingot.RunError, "there is no input 'image'; there are: x", lambda: net(image=x)),
        (ingot.RunError, "2 inputs are given, and it has 1", lambda: net(x, x)),
        (ingot.RunError, "given twice", lambda: net(x, x=x)),
        (ingot.RunError, "there is no output 'z'", lambda: net.run({"x": x}, out={"z": x})),
        (
            ingot.RunError,
            "dense writable array float32[4,10]",
            lambda: net.run({"x": x}, out={"y": np.zeros((4, 10))}),
        ),
        (
            ingot.RunError,
            "input 'x' float32[1..8,2] was given float32[9,2]",
            lambda: gather(ramp(9, 2), np.zeros(9, np.int64)),
        ),
        (ingot.RunError, "has to be", lambda: gather(ramp(3, 2), np.zeros(4, np.int64))),
        (
            ingot.FileError,
            "cannot be opened",
            lambda: ingot.compile(work / "nothing.onnx", work / "out"),
        ),
        (
            ingot.InvalidModel,
            "broken.onnx",
            lambda: ingot.compile(work / "broken.onnx", work / "out"),
        ),
        (
            ingot.InvalidModel,
            "not an ONNX model",
            lambda: ingot.compile(b"PK\3\4 no model", work / "out"),
        ),
        (ingot.Error, "Nonsense", lambda: ingot.compile(unknown, work / "out")),
        (ingot.Unsupported, "--dim n=", lambda: ingot.compile(free, work / "out")),
        (
            ingot.Unsupported,
            "complex numbers are not compiled",
            lambda: ingot.compile(complex_numbers, work / "out"),
        ),
        (
            ingot.UsageError,
            "c:nothing",
            lambda: ingot.compile(models.build("mlp"), work / "out", target="c:nothing"),
        ),
        (
            ingot.UsageError,
            "--wieghts",
            lambda: ingot.compile(models.build("mlp"), work / "out", wieghts="blob"),
        ),
        (ingot.FileError, "full", lambda: ingot.compile(models.build("mlp"), work / "full")),
        (ingot.FileError, "not a bundle", lambda: Model(work / "full")),
        (ingot.FileError, "not a bundle", lambda: Model(work / "nothing")),
        (ingot.ToolError, "another machine", lambda: Model(work / "mcu")),
        (ingot.RunError, "checksum", lambda: damage(lambda d: d.__setitem__(9, d[9] ^ 1))),
        (
            ingot.FileError,
            "but this model was built for",
            lambda: damage(lambda d: d.__delitem__(slice(64, None))),
        ),
        *wrong_inputs(work, net, gather, x),
    ]
    for kind, text, act in wanted:
        try:
            act()
        except kind as e:
            check(
                text in str(e) and (kind is ingot.UsageError or "\n" not in str(e)),
                f"{text!r}: {e}",
            )
            continue
        raise AssertionError(f"no {kind.__name__}: {text}")
    check(not (work / "out").exists(), "nothing is left of what failed")
    check(net(x).shape == (4, 10), "and it still runs")
    without_compiler(work)
    return len(wanted) + 1


def without_compiler(work):
    compiler("no-such-compiler")
    try:
        ingot.compile(models.build("mlp"), work / "fresh")
        Model(work / "fresh")
        raise AssertionError("no compiler")
    except ingot.ToolError as e:
        check("no-such-compiler" in str(e), e)
    finally:
        compiler()


def loads(work):
    from ingot import cache

    compiler(None)
    os.environ["INGOT_CACHE"] = str(work / "cache")
    m = model([node("Add", ["x", "x"], ["y"])], [info("x", F, ["n", 2])], [info("y", F, ["n", 2])])
    file = work / "m.onnx"
    file.write_bytes(m.SerializeToString())
    said = []
    more = dict(dim={"n": (1, 4)}, cflags="-O1", target="c")
    net = ingot.load(file, progress=said.append, **more)
    check(any("builds libmodel.so" in line for line in said), said)
    x = ramp(3, 2)
    check(np.array_equal(net(x), 2 * x), "values")
    check(np.array_equal(net.run(None, {"x": x})[0], 2 * x), "run(None, feeds)")
    check(np.array_equal(net.run(["y"], {"x": x})[0], 2 * x), "run([name], feeds)")
    check(
        [(t.name, t.type) for t in net.get_inputs() + net.get_outputs()]
        == [("x", "tensor(float)"), ("y", "tensor(float)")],
        "types",
    )
    cache.compile, compiled = None, cache.compile  # from now on nothing is compiled
    try:
        timed = ingot.load(file, profile=True, threads=2, **more)
        again = pickle.loads(pickle.dumps(timed))
        check(np.array_equal(again(x), 2 * x), "pickled")
        copy = timed.clone(threads=1)
        check(np.shares_memory(copy(x), x) is False and np.array_equal(copy(x), 2 * x), "clone")
        timed(x), timed(x)
        steps = timed.profile(clear=True)
        check(steps[0].calls == 2 and steps[0].seconds > 0 and not timed.profile(), steps)

        async def both():
            return await asyncio.gather(timed.run_async({"x": x}), copy.run_async(None, {"x": x}))

        named, listed = asyncio.run(both())
        check(np.array_equal(named["y"], 2 * x) and np.array_equal(listed[0], 2 * x), "asyncio")
    finally:
        cache.compile = compiled
    # the file has changed: it is compiled again
    m.graph.node[0].op_type = "Mul"
    file.write_bytes(m.SerializeToString())
    check(np.array_equal(ingot.load(file, **more)(x), x * x), "another file")
    check(np.array_equal(net(x), 2 * x), "what was loaded stays as it was")
    with ingot.load(m, **more) as net:
        check(np.array_equal(net(x), x * x), "a ModelProto, by its bytes")
    for act in (lambda: net(x), net.reset, net.selftest, lambda: net.states, lambda: net.target):
        try:
            act()
            raise AssertionError("it runs after close()")
        except ingot.RunError as e:
            check("closed" in str(e), e)
    net.close()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # fork() beside threads: that is the point
        child = os.fork()
    if not child:  # has threads of its own, and ends without those of the parent
        os._exit(not np.array_equal(timed(x), 2 * x) or bool(timed.close()))
    for _ in range(360_000):  # an hour, of what hangs: a machine may be busy
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
    check(ended and status == 0, "a process that was forked")
    for kind, text, act in (
        (ValueError, "float64[3,2]", lambda: copy(x.astype(float))),
        (ingot.InputError, "takes a dict", lambda: copy.run(x)),
        (ingot.RunError, "profile=True", lambda: net.profile()),
        (ValueError, "c:nothing", lambda: ingot.load(m, **{**more, "target": "c:nothing"})),
        (ingot.Unsupported, 'dim={"n": (1, 16)}', lambda: ingot.load(file)),
        (OSError, "cannot be opened", lambda: ingot.load(work / "no.onnx")),
    ):
        try:
            act()
            raise AssertionError(f"no {kind.__name__}: {text}")
        except kind as e:
            check(text in str(e) and isinstance(e, ingot.Error), e)
    check(re.fullmatch(r"\d+\.\d+\.\d+", ingot.__version__), ingot.__version__)
    del os.environ["INGOT_CACHE"]
    compiler()


def dlpack(work):
    ingot.compile(
        model([node("Add", ["x", "x"], ["y"])], [info("x", F, [4, 6])], [info("y", F, [4, 6])]),
        work / "add",
    )
    net = Model(work / "add")

    class Foreign:
        """A tensor of another library."""

        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **words):
            return self.x.__dlpack__(**words)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    class OnGpu(Foreign):
        def __dlpack_device__(self):
            return (2, 1)

    x, y = ramp(4, 6), np.zeros((4, 6), np.float32)
    from ingot import dlpack as protocol

    seen = protocol.View(Foreign(x))
    check(seen.address == x.ctypes.data and np.shares_memory(seen.array(), x), "where it lies")
    check(np.array_equal(net(Foreign(x)), 2 * x), "an input")
    check(np.array_equal(net(Foreign(ramp(6, 4).T)), 2 * ramp(6, 4).T), "an input with strides")
    foreign = Foreign(y)
    check(net.run({"x": x}, out={"y": foreign})["y"] is foreign, "an output: the caller's own")
    check(np.array_equal(y, 2 * x), "an output, written where it lies")
    fixed = Foreign(ramp(4, 6))
    fixed.x.setflags(write=False)
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":  # has DLPack 1.0
        check(np.array_equal(net(fixed), 2 * x), "an input that is read only")
        try:
            net.run({"x": x}, out={"y": fixed})
            raise AssertionError("an output that is read only")
        except ingot.InputError as e:
            check("writable" in str(e), e)
    for value, text in (
        (Foreign(x.astype(np.float64)), "was given float64[4,6]"),
        (Foreign(x[:3]), "was given float32[3,6]"),
        (OnGpu(x), "lies on cuda:1, and this model takes tensors of the CPU"),
    ):
        try:
            net(value)
            raise AssertionError(text)
        except ingot.InputError as e:
            check(text in str(e), e)
    return f"with NumPy{tvm(net)}{pytorch(work, net)}"


def tvm(net):
    """Apache TVM's tensors: another implementation of the protocol, in C, of a few MB."""
    try:
        import tvm_ffi
    except ImportError:
        return ""
    x, y = ramp(4, 6), np.zeros((4, 6), np.float32)
    t, into = tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y)
    made = net(t)
    theirs = tvm_ffi.from_dlpack(made)
    check(np.array_equal(np.from_dlpack(theirs), 2 * x), "TVM in and out")
    check(np.shares_memory(np.from_dlpack(theirs), made), "an output, where it lies")
    del made
    check(np.array_equal(np.from_dlpack(theirs), 2 * x), "an output that TVM alone holds")
    check(net.run({"x": t}, out={"y": into})["y"] is into, "out=")
    check(np.array_equal(y, 2 * x), "an output, written where TVM's tensor lies")
    return ", TVM"


def pytorch(work, net):
    try:
        import torch
    except ImportError:
        return ""
    t, into = torch.arange(24.0).reshape(4, 6), torch.zeros(4, 6)
    check(torch.equal(torch.from_dlpack(net(t)), 2 * t), "PyTorch in and out")
    check(net.run({"x": t.T.reshape(6, 4).T.contiguous()}, out={"y": into})["y"] is into, "out=")
    half = model(
        [node("Identity", ["x"], ["y"])],
        [info("x", TensorProto.BFLOAT16, [3])],
        [info("y", TensorProto.BFLOAT16, [3])],
    )
    ingot.compile(half, work / "half")
    into = torch.zeros(3, dtype=torch.bfloat16)
    Model(work / "half").run({"x": torch.ones(3, dtype=torch.bfloat16)}, out={"y": into})
    check(into.tolist() == [1, 1, 1], "bfloat16")
    try:
        net(t.requires_grad_())
        raise AssertionError("a tensor with a gradient")
    except ingot.InputError as e:
        check("detach" in str(e), e)
    return ", PyTorch"


def zig(work):
    from ingot.zig import words

    got = words(["-march=x86-64-v3", "-mtune=generic", "-O2"])
    check(got == ["-march=x86_64_v3", "-O2", "-fno-sanitize=undefined"], got)
    asked = [sys.executable, "-m", "ingot.zig", "--version"]
    path = os.pathsep.join([str(pathlib.Path(ingot.__file__).parents[1]), *sys.path])
    done = subprocess.run(
        asked, env=dict(os.environ, PYTHONPATH=path), capture_output=True, text=True
    )
    check("Warning" not in done.stderr, done.stderr)
    ingot.compile(models.build("mlp"), work / "fat", target="c:x86-64-v2,x86-64-v3", weights="blob")
    path, os.environ["PATH"] = os.environ["PATH"], "/nothing"
    compiler(None)
    try:
        try:
            import ziglang  # noqa: F401
        except ImportError:
            try:
                Model(work / "fat")
                raise AssertionError("without a compiler")
            except ingot.ToolError as e:
                check("pip install ziglang" in str(e), e)
            compiler(shutil.which("gcc", path=path) or shutil.which("clang", path=path))
            (work / "bin").mkdir()
            for tool in ("as", "ld"):
                (work / "bin" / tool).symlink_to(shutil.which(tool, path=path))
            os.environ["PATH"] = str(work / "bin")
        check(Model(work / "fat")(ramp(4, 20)).shape == (4, 10), "built without make")
    finally:
        os.environ["PATH"] = path
        compiler()


def stubs(work):
    import ast
    import builtins
    import inspect

    text = (pathlib.Path(ingot.__file__).parent / "__init__.pyi").read_text()
    tree = ast.parse(text)
    told = {n.name: n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    check(sorted(told) == sorted(ingot.__all__), set(told) ^ set(ingot.__all__))
    known = {*dir(builtins), *told}
    for n in tree.body:
        known |= {a.asname or a.name for a in getattr(n, "names", ())}  # of an import
        known |= {t.id for t in getattr(n, "targets", ())}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    check(used <= known, used - known)
    for name, n in told.items():
        pairs = [(name, n, getattr(ingot, name))]
        if isinstance(n, ast.ClassDef):
            defs = [d for d in n.body if isinstance(d, (ast.FunctionDef, ast.AsyncFunctionDef))]
            pairs = [(f"{name}.{d.name}", d, getattr(pairs[0][2], d.name)) for d in defs]
        for what, d, real in pairs:
            if not inspect.isfunction(real):
                continue  # a property
            args = d.args
            names = [a.arg for a in args.posonlyargs + args.args]
            names += [args.vararg.arg] if args.vararg else []
            names += [a.arg for a in args.kwonlyargs] + ([args.kwarg.arg] if args.kwarg else [])
            check(names == list(inspect.signature(real).parameters), f"{what}: {names}")


def options(work):
    from ingot.command import arguments

    got = arguments(
        dict(
            name="n",
            dim={"batch": (1, 8), "seq": 128, "past": "batch"},
            bind={"k": np.array([2, 3]), "t": 0.5},
            opt_level=0,
            memory=["dtcm=64k", "sram"],
            max_ram=None,
            no_bind=True,
        )
    )
    want = (
        "--name n --dim batch=1..8 --dim seq=128 --dim past=batch --bind k=2,3 --bind t=0.5 -O0 --memory dtcm=64k --memory sram "
        "--no-bind"
    ).split()
    check(got == want, got)
    dynamic = model(
        [node("Reshape", ["x", "shape"], ["y"])],
        [info("x", F, [6]), info("shape", I, [2])],
        [info("y", F, ["a", "b"])],
    )
    ingot.compile(dynamic, work / "bound", bind={"shape": [2, 3]}, opt_level=0)
    check(Model(work / "bound")(ramp(6), np.array([2, 3])).shape == (2, 3), "bind")
    try:
        Model(work / "bound")(ramp(6), np.array([3, 2]))
        raise AssertionError("another value than the bound one")
    except ingot.RunError as e:
        check(e.status == 11, e)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ingot.compile(models.build("cnn"), work / "quiet")
        check(not said, [str(w.message) for w in said])


# What the cases below are of: to import one of these modules is to compute its cases, which takes 6 s of all.
NODES = "reshape sequenceinsert rangeop gru optionalhaselement expand cast identity string_concat argmax conv"


def node_cases():
    import importlib
    import onnx.backend.test.case.node as node

    for name in NODES.split():
        importlib.import_module(f"{node.__name__}.{name}")
    return node._NodeTestCases


def runner(work):
    import onnx.backend.test
    import ingot.onnx_backend

    with unittest.mock.patch("onnx.backend.test.loader.load_node_model_tests", node_cases):
        test = onnx.backend.test.BackendTest(ingot.onnx_backend, __name__, {"cflags": "-O0"})
    test.include(
        r"^test_(reshape_extended|sequence_insert_at_back|range_float|gru_defaults|optional_has_element_optional|expand_dim_ch|cast_FLOAT_to_BFLOAT16|"
        r"identity_sequence|string_concat|argmax_default|Linear_no_bias|conv_with_strides_padding)\w*_cpu$"
    )
    with open(os.devnull, "w") as quiet:
        result = unittest.TextTestRunner(quiet, verbosity=0).run(test.test_suite)
    ran = result.testsRun - len(result.skipped)
    bad = [f"{t}: {text.splitlines()[-1]}" for t, text in result.failures + result.errors]
    check(ran >= 22 and not bad, f"{ran} ran; {bad}")
    x = np.array([1, -2], np.float32)
    relu = helper.make_node("Relu", ["x"], ["y"])
    check(ingot.onnx_backend.run_node(relu, [x])[0].tolist() == [1, 0], "run_node")
    check(not ingot.onnx_backend.supports_device("CUDA"), "no CUDA")
    return ran


CHECKS = {
    f.__name__: f
    for f in (calls, copies, dims, mistakes, loads, dlpack, zig, stubs, options, runner)
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--ingot", type=pathlib.Path, help="the program; else that of the installed package"
    )
    parser.add_argument("checks", nargs="*", choices=[*CHECKS, []])
    o = parser.parse_args()
    global ingot
    if o.ingot:
        os.environ["INGOT"] = str(o.ingot.resolve())
        sys.path.insert(0, str(TREE / "compiler/tools/python"))
    import ingot

    if not shutil.which("make"):
        print("skipped: there is no make")
        return 77
    for name in o.checks or CHECKS:
        with tempfile.TemporaryDirectory(prefix="ingot-python-") as work:
            n = CHECKS[name](pathlib.Path(work))
            print(f"{name}: good{f', {n}' if n else ''}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
