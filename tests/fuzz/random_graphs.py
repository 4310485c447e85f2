#!/usr/bin/env python3
"""Draws random ONNX graphs by seed; compares the compiled bundle with ONNX Runtime.

    random_graphs.py --ingot build/ingot --n 300 --seed 1 [--target c:native] [--ops joined,conv] [--sanitize] [--dims]

Graph N of a seed is always the same: 3 to 15 nodes, as a chain with side branches, weights as
initializers or as inputs, several outputs. A node that ONNX Runtime refuses, or that gives no finite
values, is not drawn. With --dims one size of the inputs, where ONNX Runtime takes others, is known to the run only: the
least, the greatest and one between are tried. Each model is compiled ahead of time, made by every compiler of --cc with
all warnings being errors, and its program run on npy data:

    passed     |got - want| <= 1e-3 |want| + 1e-5 range (more where there are f16); integers and bool exact
    unstable   wrong, but ONNX Runtime's own outputs move as much when its inputs move by 3e-6
    refused    the compiler said that it cannot; the message must name a node, else it is a failure
    wrong, crash

What is wrong or crashes is made smaller: outputs are dropped, and nodes become inputs that have their
values, as long as the fault stays. The rest is told in one line a node, and left in --keep.
Exit status 1 when there was a fault, 77 without ONNX Runtime.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time

try:
    import ml_dtypes  # noqa: F401
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"random_graphs.py: skipped: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "onnx"))
import objects  # noqa: E402
from process import SETTINGS, call, crashed, first_line  # noqa: E402

OPSET, IR = 21, 10
CHANNELS = (1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 17, 23, 24, 32, 37)
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19, 31)
MOST = 40000  # elements of a tensor
MARCH = {"c": "", "c:c99": "", "c:native": "-march=native", "c:x86-64-v3": "-march=x86-64-v3"}
SANITIZE = "-g -fsanitize=address,undefined -fno-sanitize-recover=all"
FAULTS = ("wrong", "crash")
ort.set_default_logger_severity(4)


# -- a model and its values --------------------------------------------------------------------

class Model:
    """Nodes in order, the values of the inputs and initializers, the names of the outputs; the axes (input, axis) that
    have the free dim n, and its sizes."""
    def __init__(self, nodes, inputs, weights, outputs, free=(), sizes=()):
        self.nodes, self.inputs, self.weights, self.outputs = nodes, inputs, weights, outputs
        self.free, self.sizes = free, sizes

    def at(self, size):
        """The model in which n has this size; values are repeated, or left out."""
        inputs = dict(self.inputs)
        for k, axis in self.free:
            inputs[k] = np.take(inputs[k], np.arange(size) % inputs[k].shape[axis], axis)
        return Model(self.nodes, inputs, self.weights, self.outputs)

    def proto(self, known):
        def info(name, a):
            shape = ["n" if (name, i) in self.free else d for i, d in enumerate(a.shape)]
            if self.free and name in self.outputs:
                shape = [None] * a.ndim
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), shape)
        outputs = [info(o, known[o]) if o in known else onnx.ValueInfoProto(name=o) for o in self.outputs]
        graph = helper.make_graph(self.nodes, "g", [info(k, a) for k, a in self.inputs.items()], outputs,
                                  [numpy_helper.from_array(a, k) for k, a in self.weights.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)

    def oracle(self, move=None):
        """The outputs by ONNX Runtime; with `move`, a generator of noise, of inputs moved a little."""
        inputs, weights = self.inputs, self.weights
        if move is not None:
            def moved(a):
                if a.dtype != np.float32 or not a.size:
                    return a
                return np.asarray(a * (1 + 3e-6 * move.uniform(-1, 1, a.shape)), np.float32)
            inputs = {k: moved(a) for k, a in inputs.items()}
            sizes = {k for n in self.nodes if n.op_type == "Resize" for k in n.input[2:]}
            weights = {k: a if k in sizes else moved(a) for k, a in weights.items()}
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        proto = Model(self.nodes, inputs, weights, self.outputs).proto({})
        session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return dict(zip(self.outputs, session.run(self.outputs, inputs)))

    def lines(self):
        if self.free:
            yield f"n = {self.sizes}: " + ", ".join(f"axis {axis} of {k}" for k, axis in self.free)
        for k, a in {**self.inputs, **self.weights}.items():
            small = f" = {a.tolist()}" if a.size <= 6 else ""
            yield f"{'input' if k in self.inputs else 'weight'} {k} {a.dtype}{list(a.shape)}{small}"
        for n in self.nodes:
            args = ", ".join(f"{a.name}={helper.get_attribute_value(a)}" for a in n.attribute)
            mark = "".join(" *" for o in n.output if o in self.outputs)
            yield f"{', '.join(n.output)} = {n.op_type}({', '.join(n.input)}) {args}{mark}"


# -- drawing -----------------------------------------------------------------------------------

class Drawing:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.np = np.random.default_rng(self.r.getrandbits(32))
        self.nodes, self.inputs, self.weights, self.value = [], {}, {}, {}
        self.fresh = []  # names of tensors that may be operands, newest last
        self.count = 0

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def leaf(self, a, weight=None):
        """A new input or initializer of this value."""
        if weight is None:
            weight = self.r.random() < 0.75
        k = self.name("w" if weight else "x")
        (self.weights if weight else self.inputs)[k] = self.value[k] = a
        return k

    def const(self, values, dtype=np.int64):
        return self.leaf(np.array(values, dtype), True)

    def normal(self, *shape, scale=1.0):
        return (self.np.standard_normal(shape) * scale).astype(np.float32)

    def shape(self, rank):
        while True:
            s = [self.r.choice(SIZES) for _ in range(rank)]
            if self.r.random() < 0.02 and rank:
                s[self.r.randrange(rank)] = 0
            if np.prod(s, dtype=np.int64) <= MOST:
                return s

    def image(self, spatial):
        n, c = self.r.choice((1, 1, 1, 2, 3)), self.r.choice(CHANNELS)
        top = {1: 61, 2: 23, 3: 9}[spatial]
        while True:
            s = [n, c] + [self.r.randint(1, top) for _ in range(spatial)]
            if np.prod(s) <= MOST:
                return self.leaf(self.normal(*s), False)

    def pick(self, low=0, high=8, kinds="f"):
        """An operand whose rank is in [low, high], mostly a new one; else a leaf."""
        good = [k for k in self.fresh if low <= self.value[k].ndim <= high and self.value[k].dtype.kind in kinds
                and self.value[k].dtype != np.float16]
        if good and self.r.random() < 0.95:
            return good[-1] if self.r.random() < 0.6 else self.r.choice(good)
        shape = self.shape(self.r.randint(low, min(high, max(low, 4))))
        if "f" in kinds:
            return self.leaf(self.normal(*shape), False)
        if "i" in kinds:
            return self.leaf(self.np.integers(-9, 10, shape).astype(np.int64), False)
        return self.leaf(self.np.integers(0, 2, shape).astype(bool), False)

    def picture(self):
        good = [k for k in self.fresh if 3 <= self.value[k].ndim <= 5 and self.value[k].dtype == np.float32]
        if good and self.r.random() < 0.85:
            return good[-1] if self.r.random() < 0.7 else self.r.choice(good)
        return self.image(self.r.choice((1, 2, 2, 2, 3)))

    def other(self, x):
        """An operand that broadcasts with x: an earlier tensor of its shape, or a new leaf."""
        a = self.value[x]
        same = [k for k in self.fresh if self.value[k].dtype == a.dtype and self.value[k].shape == a.shape and k != x]
        if same and self.r.random() < 0.5:
            return self.r.choice(same)
        s = [1 if self.r.random() < 0.3 else d for d in a.shape]
        s = s[self.r.randint(0, len(s)):] if self.r.random() < 0.4 else s
        if self.r.random() < 0.1:  # x itself is spread
            s = [self.r.choice((2, 3, 5)) if d == 1 else d for d in s]
        if a.dtype.kind == "i":
            return self.leaf(self.np.integers(-5, 6, s).astype(a.dtype))
        return self.leaf(self.normal(*s))

    def evaluate(self, node, move=False):
        values = {k: self.value[k] for k in node.input if k}
        if move:
            for k, a in values.items():
                if a.dtype.kind == "f" and a.size:
                    noise = self.np.uniform(-1, 1, a.shape) * 1e-4 * np.abs(a).max()
                    values[k] = (a + np.where(a != 0, noise, 0)).astype(a.dtype)
        return list(Model([node], values, {}, list(node.output)).oracle().values())

    def add(self, op, inputs, nout=1, steps=False, **attributes):
        """Appends a node if its values are good; `steps`: it jumps, so its operands must be far from that."""
        attributes = {k: v for k, v in attributes.items() if v is not None}
        node = helper.make_node(op, inputs, [self.name("t") for _ in range(nout)], self.name("n"), **attributes)
        try:
            got = self.evaluate(node)
            if steps:
                again = self.evaluate(node, True)
                if any(not np.array_equal(a, b) for a, b in zip(got, again)):
                    return None
        except Exception:  # it refuses
            return None
        sized = all(self.value[k].size for k in inputs if k)
        for a in got:
            if "Pool" in op and sized and not a.size:
                return None  # a window that does not fit: invalid
            if "Reduce" in op and not sized and not self.value[inputs[0]].size:
                return None  # ONNX Runtime has shapes of its own for these
            if not isinstance(a, np.ndarray) or a.size > MOST or a.ndim > 6:
                return None
            if a.dtype.kind in "fi" and a.size and not np.abs(a.astype(np.float64)).max() < 1e4:
                return None
        self.nodes.append(node)
        for k, a in zip(node.output, got):
            self.value[k] = a
            self.fresh.append(k)
        return node.output[0]

    def finish(self):
        used = {i for n in self.nodes for i in n.input}
        outputs = [o for n in self.nodes for o in n.output if o not in used or self.r.random() < 0.12]
        self.r.shuffle(outputs)
        inputs = {k: a for k, a in self.inputs.items() if k in used}
        weights = {k: a for k, a in self.weights.items() if k in used}
        return Model(self.nodes, inputs, weights, outputs)


def windows(d, n, sizes):
    r = d.r
    kernel = [r.choice(sizes) for _ in range(n)]
    strides = [r.choice((1, 1, 1, 2, 3)) for _ in range(n)]
    dilations = [r.choice((1, 1, 1, 1, 2, 3)) for _ in range(n)]
    if r.random() < 0.2:
        return kernel, strides, [1] * n, None, r.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    reach = [(k - 1) * s + 1 for k, s in zip(kernel, dilations)]
    same = r.random() < 0.4
    pads = [e // 2 if same else r.randint(0, max(0, e - 1)) for e in reach * 2]
    return kernel, strides, dilations, pads, None


def conv(d):
    x = d.picture()
    a, r = d.value[x], d.r
    n, c = a.ndim - 2, a.shape[1]
    groups = r.choice([1, 1, 1, c] + [g for g in range(1, c + 1) if c % g == 0]) if c else 1
    out = groups * r.choice([m for m in CHANNELS if m * groups <= 40] or [1])
    kernel, strides, dilations, pads, auto = windows(d, n, (1, 1, 2, 3, 3, 3, 4, 5, 7))
    w = d.leaf(d.normal(out, c // groups, *kernel, scale=1 / np.sqrt(max(1, c // groups * np.prod(kernel)))))
    bias = [d.leaf(d.normal(out))] if r.random() < 0.6 else []
    return d.add("Conv", [x, w] + bias, group=groups, strides=strides, dilations=dilations, pads=pads, auto_pad=auto,
                 kernel_shape=kernel if r.random() < 0.5 else None)


def conv_transpose(d):
    x = d.picture()
    a, r = d.value[x], d.r
    n, c = a.ndim - 2, a.shape[1]
    groups = r.choice([1, 1, c] + [g for g in range(1, c + 1) if c % g == 0]) if c else 1
    out = r.choice([m for m in CHANNELS if m * groups <= 24] or [1])
    kernel, strides, dilations, pads, auto = windows(d, n, (1, 2, 3, 3, 4, 5))
    if auto and any(k < s for k, s in zip(kernel, strides)):
        return None  # ONNX Runtime: smaller than the input times the stride
    w = d.leaf(d.normal(c, out, *kernel, scale=1 / np.sqrt(max(1, c // groups))))
    bias = [d.leaf(d.normal(out * groups))] if r.random() < 0.5 else []
    more = [r.randint(0, s - 1) for s in strides] if r.random() < 0.4 else None
    return d.add("ConvTranspose", [x, w] + bias, group=groups, strides=strides, dilations=dilations, pads=pads,
                 auto_pad=auto, output_padding=more)


def pool(d):
    x = d.picture()
    n = d.value[x].ndim - 2
    if d.r.random() < 0.2:
        return d.add(d.r.choice(("GlobalAveragePool", "GlobalMaxPool")), [x])
    kernel, strides, dilations, pads, auto = windows(d, n, (1, 2, 2, 3, 3, 5))
    ceil = d.r.randint(0, 1) if not auto else None
    reach = [(k - 1) * s + 1 for k, s in zip(kernel, dilations)]
    padded = [v + (pads[i] + pads[i + n] if pads else 0) for i, v in enumerate(d.value[x].shape[2:])]
    if auto in (None, "VALID") and any(v < k for v, k in zip(padded, reach)):
        return None  # ONNX Runtime gives one value where the standard has none
    if auto and any(k < s for k, s in zip(kernel, strides)):
        return None  # ONNX Runtime pads by less than nothing
    if d.r.random() < 0.5:
        return d.add("MaxPool", [x], kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, auto_pad=auto,
                     ceil_mode=ceil)
    return d.add("AveragePool", [x], kernel_shape=kernel, strides=strides, pads=pads, auto_pad=auto, ceil_mode=ceil,
                 dilations=dilations if d.r.random() < 0.3 else None, count_include_pad=d.r.randint(0, 1))


def matmul(d):
    x = d.pick(1, 4)
    a, r = d.value[x], d.r
    k = a.shape[-1]
    n = r.choice(CHANNELS)
    w = [k, n] if r.random() < 0.85 else [k]
    if a.ndim > 2 and len(w) == 2 and r.random() < 0.5:
        w = [b if r.random() < 0.7 else 1 for b in a.shape[:-2]] + w
    w = d.leaf(d.normal(*w, scale=1 / np.sqrt(max(1, k))))
    if len(d.value[w].shape) == a.ndim == 2 and r.random() < 0.3:
        c = d.leaf(d.normal(*r.choice(([n], [1], [a.shape[0], 1], [1, n], [a.shape[0], n], []))))
        return d.add("Gemm", [x, w, c], alpha=r.choice((1.0, 0.5)), beta=r.choice((1.0, 2.0)))
    if a.ndim == 2 and r.random() < 0.2:
        w = d.leaf(d.normal(n, a.shape[0], scale=1 / np.sqrt(max(1, a.shape[0]))))
        return d.add("Gemm", [x, w], transA=1, transB=1)
    y = d.add("MatMul", [x, w])
    if y and r.random() < 0.5:
        y = d.add("Add", [y, d.leaf(d.normal(d.value[y].shape[-1] if d.value[y].ndim else 1))]) or y
    return y


def attend(d):
    """Scores of a tensor with itself, transposed: no constant operand."""
    x = d.pick(2, 4)
    a = d.value[x]
    perm = list(range(a.ndim))
    perm[-2:] = perm[:-3:-1]
    y = d.add("Transpose", [x], perm=perm)
    s = y and d.add("MatMul", [x, y])
    s = s and d.add("Mul", [s, d.const(1 / max(1, a.shape[-1]), np.float32)])
    s = s and d.add("Softmax", [s], axis=-1)
    return s and d.add("MatMul", [s, x])


def einsum(d):
    r = d.r
    x = d.pick(2, 4)
    a = d.value[x]
    letters = "abcd"[:a.ndim]
    size = dict(zip(letters, a.shape), n=r.choice((1, 2, 5, 7)))
    right = "".join(r.sample(letters, r.randint(1, a.ndim)) + (["n"] if r.random() < 0.7 else []))
    every = [c for c in letters + "n" if c in letters + right]
    out = "".join(r.sample(every, r.randint(0, min(4, len(every)))))
    w = d.leaf(d.normal(*[size[c] for c in right], scale=0.3))
    return d.add("Einsum", [x, w], equation=f"{letters},{right}->{out}")


def binary(d):
    op = d.r.choice(("Add", "Add", "Sub", "Mul", "Mul", "Div", "Max", "Min", "Pow", "PRelu"))
    x = d.pick(0, 6, "fi" if op in ("Add", "Sub", "Mul", "Max", "Min") else "f")
    pair = [x, d.other(x)]
    if op == "Pow":
        x = d.add("Abs", [x])
        return x and d.add("Pow", [x, d.const(d.r.choice((0.5, 2.0, 3.0, 1.5)), np.float32)])
    if op == "Div":
        y = d.add("Abs", [pair[1]])
        y = y and d.add("Add", [y, d.const(0.5, np.float32)])
        return y and d.add("Div", [x, y])
    if op in ("Add", "Sub", "Mul") and d.r.random() < 0.3:
        pair.reverse()
    return d.add(op, pair)


def unary(d):
    x = d.pick()
    op = d.r.choice(("Relu", "Relu", "Sigmoid", "Erf", "Exp", "Tanh", "HardSwish", "HardSigmoid", "Clip", "LeakyRelu", "Elu",
                     "Gelu", "Softplus", "Neg", "Abs", "Sqrt", "Log", "Sin", "Cos", "Floor", "Round", "Sign", "Mish",
                     "Softsign", "Selu", "Reciprocal", "CumSum"))
    if op == "Clip":
        return d.add("Clip", [x, d.const(-0.5, np.float32), d.const(d.r.choice((0.75, 6.0)), np.float32)])
    if op in ("Sqrt", "Log", "Reciprocal"):
        x = d.add("Sigmoid", [x])
        return x and d.add(op, [x])
    if op == "CumSum":
        if not d.value[x].ndim:
            return None
        return d.add("CumSum", [x, d.const(d.r.randrange(-d.value[x].ndim, d.value[x].ndim))],
                     exclusive=d.r.randint(0, 1), reverse=d.r.randint(0, 1))
    return d.add(op, [x], steps=op in ("Floor", "Round", "Sign"))


def where(d):
    x = d.pick()
    y = d.other(x)
    c = d.add(d.r.choice(("Greater", "Less", "GreaterOrEqual")), [x, y], steps=True)
    if d.r.random() < 0.3 and c:
        c = d.add("Not", [c])
    return c and d.add("Where", [c, x, d.other(x)] if d.r.random() < 0.7 else [c, y, x])


def normalise(d):
    r = d.r
    op = r.choice(("Softmax", "LogSoftmax", "LayerNormalization", "BatchNormalization", "InstanceNormalization",
                   "GroupNormalization", "LpNormalization", "LRN", "RMSNormalization"))
    x = d.picture() if op in ("InstanceNormalization", "GroupNormalization", "LRN") else d.pick(1 if op != "BatchNormalization" else 2)
    a = d.value[x]
    axis = r.randrange(-a.ndim, a.ndim)
    if op in ("Softmax", "LogSoftmax"):
        return d.add(op, [x], axis=axis)
    if op == "LayerNormalization":
        s = a.shape[axis:] if axis else a.shape
        if np.prod(s) < 2:
            return None
        return d.add(op, [x, d.leaf(d.normal(*s))] + ([d.leaf(d.normal(*s))] if r.random() < 0.7 else []), axis=axis)
    if op == "BatchNormalization":
        p = [d.normal(a.shape[1]) for _ in range(4)]
        p[3] = np.abs(p[3]) + 0.3
        return d.add(op, [x] + [d.leaf(v, r.random() < 0.9) for v in p])
    if op == "GroupNormalization":
        groups = r.choice([g for g in range(1, a.shape[1] + 1) if a.shape[1] % g == 0] or [1])
        return d.add(op, [x, d.leaf(d.normal(a.shape[1])), d.leaf(d.normal(a.shape[1]))], num_groups=groups)
    if op == "InstanceNormalization":
        return d.add(op, [x, d.leaf(d.normal(a.shape[1])), d.leaf(d.normal(a.shape[1]))])
    if op == "LRN":
        return d.add(op, [x], size=r.choice((1, 3, 5)))
    return d.add(op, [x], axis=axis, p=r.choice((1, 2))) if op == "LpNormalization" else None


def reduce(d):
    x = d.pick(0, 6, "ffi")
    a, r = d.value[x], d.r
    if r.random() < 0.15 and a.ndim:
        axis = r.randrange(-a.ndim, a.ndim)
        if not a.shape[axis]:
            return None  # the standard does not say which of no elements is the largest
        return d.add(r.choice(("ArgMax", "ArgMin")), [x], steps=True, axis=axis,
                     keepdims=r.randint(0, 1), select_last_index=r.randint(0, 1))
    op = r.choice(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                   "ReduceSumSquare", "ReduceLogSumExp"))
    axes = sorted(r.sample(range(a.ndim), r.randint(0, a.ndim)))
    axes = [v - a.ndim if r.random() < 0.3 else v for v in axes]
    return d.add(op, [x] + ([d.const(axes)] if axes or r.random() < 0.5 else []), keepdims=r.randint(0, 1))


def reshape(d):
    x = d.pick(0, 6, "ffib")
    a, r = d.value[x], d.r
    what = r.randrange(4)
    if what == 0:
        return d.add("Flatten", [x], axis=r.randint(0, a.ndim))
    if what == 1 and a.ndim < 6:
        return d.add("Unsqueeze", [x, d.const([r.randint(0, a.ndim)])])
    factors = []
    n = a.size
    for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        while n and n % p == 0:
            factors.append(p)
            n //= p
    if n > 1:
        factors.append(n)
    rank = r.randint(1, 5)
    shape = [1] * rank
    for f in factors:
        shape[r.randrange(rank)] *= f
    if what == 2:  # order kept: neighbours merged
        shape = list(a.shape)
        for _ in range(r.randint(0, 2)):
            if len(shape) > 1:
                i = r.randrange(len(shape) - 1)
                shape[i:i + 2] = [shape[i] * shape[i + 1]]
        shape = shape or [1]
    if a.size and r.random() < 0.5:
        shape[r.randrange(len(shape))] = -1
    return d.add("Reshape", [x, d.const(shape)])


def transpose(d):
    x = d.pick(1, 6, "ffib")
    perm = list(range(d.value[x].ndim))
    d.r.shuffle(perm)
    return d.add("Transpose", [x], perm=perm)


def pad(d):
    x = d.pick(1, 5, "ffi")
    a, r = d.value[x], d.r
    mode = r.choice(("constant", "constant", "edge", "reflect", "wrap"))
    pads = [r.choice((0, 0, 1, 2, 3)) for _ in range(2 * a.ndim)]
    if mode == "constant" and r.random() < 0.3:
        pads = [r.choice((0, 0, 1, -1, 2)) for _ in pads]
    if mode == "constant" and a.ndim > 2:
        pads[1] = pads[a.ndim + 1] = 0
    value = [d.const(r.choice((0, 1, -2)), a.dtype)] if mode == "constant" and r.random() < 0.5 else []
    return d.add("Pad", [x, d.const(pads)] + value, mode=mode)


def slice_(d):
    x = d.pick(1, 6, "ffib")
    a, r = d.value[x], d.r
    axes = r.sample(range(a.ndim), r.randint(1, a.ndim))
    steps = [r.choice((1, 1, 1, 2, 3, -1, -2)) for _ in axes]
    starts, ends = [], []
    for ax, s in zip(axes, steps):
        n = a.shape[ax]
        lo = r.randint(0, max(0, n // 2))
        hi = r.choice((n, 2**31 - 1, r.randint(0, n), -1, n - 1))
        starts.append(lo if s > 0 else r.choice((n - 1, 2**31 - 1, n // 2)))
        ends.append(hi if s > 0 else r.choice((-2**31, 0, lo)))
    y = d.add("Slice", [x] + [d.const(v) for v in (starts, ends, axes, steps)])
    return y


def concat(d):
    x = d.pick(1, 5, "ffib")
    a, r = d.value[x], d.r
    axis = r.randrange(a.ndim)
    fit = [k for k in d.fresh if d.value[k].dtype == a.dtype and d.value[k].ndim == a.ndim
           and d.value[k].shape[:axis] + d.value[k].shape[axis + 1:] == a.shape[:axis] + a.shape[axis + 1:]]
    parts = [r.choice(fit or [x]) for _ in range(r.randint(1, 3))] + [x]
    if a.dtype == np.float32 and r.random() < 0.5:
        s = list(a.shape)
        s[axis] = r.choice((1, 2, 3, 5))
        parts.append(d.leaf(d.normal(*s)))
    r.shuffle(parts)
    return d.add("Concat", parts, axis=axis - (a.ndim if r.random() < 0.3 else 0))


def split(d):
    x = d.pick(1, 5, "ffi")
    a, r = d.value[x], d.r
    axis = r.randrange(a.ndim)
    n = a.shape[axis]
    if n < 2:
        return None
    if r.random() < 0.4:
        k = r.randint(2, min(n, 4))
        return d.add("Split", [x], k, axis=axis, num_outputs=k)
    cut = sorted(r.randint(0, n) for _ in range(r.randint(1, 2)))
    parts = [b - c for b, c in zip(cut + [n], [0] + cut)]
    return d.add("Split", [x, d.const(parts)], len(parts), axis=axis)


def joined(d):
    """Dense blocks and the like: concats in longer ones, values in several, splits that are joined again."""
    x = d.pick(2, 5)
    r, rank = d.r, d.value[x].ndim
    axis = 1 if r.random() < 0.6 else r.randrange(rank)
    image = axis == 1 and rank > 2
    parts, y = [x], x
    for _ in range(r.randint(2, 5)):
        c, n = d.value[y].shape[axis], rank - 2
        what = r.randrange(5)
        if what == 0 and c > 1:
            cut = sorted(r.randint(0, c) for _ in range(r.randint(1, 2)))
            sizes = [b - a for a, b in zip([0] + cut, cut + [c])]
            if d.add("Split", [y, d.const(sizes)], len(sizes), axis=axis):
                parts += d.nodes[-1].output
        elif what == 1 and image and c and d.value[y].size:
            out, k = r.choice((1, 3, 4, 8, 16)), r.choice((1, 1, 3))
            w = d.leaf(d.normal(out, c, *[k] * n, scale=1 / np.sqrt(c * k**n)))
            parts.append(d.add("Conv", [y, w], pads=[k // 2] * 2 * n))
        else:
            parts.append(d.add(r.choice(("Relu", "Sigmoid", "Neg", "Tanh")), [y]))
        parts = [k for k in parts if k]
        y = r.choice(parts)
        if r.random() < 0.7:
            some = parts if r.random() < 0.6 else parts[r.randrange(len(parts)):] + r.choices(parts, k=r.randint(0, 2))
            y = d.add("Concat", some, axis=axis - (rank if r.random() < 0.3 else 0)) or y
            if r.random() < 0.3:
                parts = [y]
    return d.add("Concat", parts, axis=axis)


def spread(d):
    x = d.pick(0, 5, "ffib")
    a, r = d.value[x], d.r
    if r.random() < 0.5 or not a.ndim:
        s = [r.choice((1, 2, 3, 5)) if v == 1 else v for v in a.shape]
        return d.add("Expand", [x, d.const([r.choice((1, 2, 4))] * r.randint(0, 1) + s)])
    return d.add("Tile", [x, d.const([r.choice((1, 1, 2, 3)) for _ in a.shape])])


def gather(d):
    x = d.pick(1, 5, "ffi")
    a, r = d.value[x], d.r
    axis = r.randrange(a.ndim)
    n = a.shape[axis]
    if not n:
        return None
    what = r.randrange(5)
    if what == 0:  # computed indices
        i = d.add("ArgMax", [x], steps=True, axis=axis, keepdims=1)
        return i and d.add("GatherElements", [x, i], axis=axis)
    if what == 1:
        s = list(a.shape)
        s[axis] = r.choice((1, 2, 5))
        i = d.leaf(d.np.integers(-n, n, s), r.random() < 0.5)
        return d.add("GatherElements", [x, i], axis=axis)
    if what == 2:
        k = r.randint(1, a.ndim)
        if 0 in a.shape[:k]:
            return None
        i = np.stack([d.np.integers(0, v, (3,)) for v in a.shape[:k]], -1)
        return d.add("GatherND", [x, d.leaf(i, r.random() < 0.5)])
    i = d.np.integers(-n, n, r.choice(((), (1,), (3,), (2, 3), (7,))))
    return d.add("Gather", [x, d.leaf(np.asarray(i, r.choice((np.int64, np.int32))), r.random() < 0.5)], axis=axis)


def cast(d):
    x = d.pick(0, 6, "fffib")
    kind = d.value[x].dtype.kind
    to = d.r.choice([TensorProto.INT64, TensorProto.FLOAT16, TensorProto.BOOL, TensorProto.INT32, TensorProto.UINT8,
                     TensorProto.INT8, TensorProto.DOUBLE])
    if to in (TensorProto.UINT8, TensorProto.INT8) and kind == "f":
        to = TensorProto.INT64  # outside of the range it is anybody's guess
    y = d.add("Cast", [x], to=to, steps=kind == "f" and to not in (TensorProto.FLOAT16, TensorProto.DOUBLE))
    if y and d.r.random() < 0.4:
        y = d.add(d.r.choice(("Add", "Mul", "Neg", "Abs")), [y] * 2) or d.add("Neg", [y]) or y
    if y and d.r.random() < 0.8:
        y = d.add("Cast", [y], to=TensorProto.FLOAT)
    return y


def special(d):
    x = d.picture()
    a, r = d.value[x], d.r
    what = r.randrange(5)
    if what == 0 and a.ndim == 4:
        return d.add("DepthToSpace", [x], blocksize=2, mode=r.choice(("DCR", "CRD")))
    if what == 1 and a.ndim == 4:
        return d.add("SpaceToDepth", [x], blocksize=r.choice((2, 3)))
    if what == 2:
        scales = [1.0, 1.0] + [r.choice((0.5, 1.5, 2.0, 3.0)) for _ in a.shape[2:]]
        mode = r.choice(("nearest", "linear") + (("cubic",) if a.ndim == 4 else ()))
        where = r.choice(("asymmetric", "half_pixel", "align_corners"))
        if where == "align_corners" and any(v * s % 1 for v, s in zip(a.shape, scales)):
            return None  # a size that is no integer: ONNX Runtime rounds first
        return d.add("Resize", [x, "", d.const(scales, np.float32)], mode=mode,
                     coordinate_transformation_mode=where,
                     nearest_mode=r.choice(("floor", "round_prefer_floor")) if mode == "nearest" else None)
    if what == 3:
        return d.add("Trilu", [x], upper=r.randint(0, 1))
    n = a.shape[-1]
    if n < 2:
        return None
    return d.add("TopK", [x, d.const([r.randint(1, n)])], 2, steps=True, axis=-1, largest=r.randint(0, 1))


def residual(d):
    """conv, norm, activation, and the input again."""
    x = d.picture()
    a, r = d.value[x], d.r
    c, n = a.shape[1], a.ndim - 2
    if not c or not a.size:
        return None
    groups = r.choice((1, 1, c))
    k = r.choice((1, 3, 3, 5))
    w = d.leaf(d.normal(c, c // groups, *[k] * n, scale=1 / np.sqrt(c // groups * k**n)))
    y = d.add("Conv", [x, w] + ([d.leaf(d.normal(c))] if r.random() < 0.5 else []), group=groups, pads=[k // 2] * 2 * n)
    if y and r.random() < 0.5:
        p = [d.normal(c) for _ in range(3)] + [np.abs(d.normal(c)) + np.float32(0.3)]
        y = d.add("BatchNormalization", [y] + [d.leaf(v, True) for v in p])
    if y and r.random() < 0.6:
        y = d.add(r.choice(("Relu", "Sigmoid", "HardSwish", "Tanh")), [y])
    y = y and d.add("Add", [y, x])
    return y and (d.add("Relu", [y]) if r.random() < 0.5 else y)


def integers(d, shape, dtype, most=128):
    """Numbers around a zero point of their own: the whole type, or less of it."""
    lo, hi = np.iinfo(dtype).min, np.iinfo(dtype).max
    zero = d.r.choice((0, (lo + hi + 1) // 2, d.r.randint(lo, hi)))
    return d.np.integers(max(lo, zero - most), min(hi, zero + most) + 1, shape).astype(dtype), dtype(zero)


def power(d, least, most):
    return np.float32(2.0 ** d.r.randint(least, most))


def requantised(d, x, kind):
    """Rounded to 8 bits. Scales are powers of two, so that ties are ties in every arithmetic."""
    top = max(np.abs(d.value[x]).max(initial=0), 1e-3)
    scale = np.float32(2.0 ** np.ceil(np.log2(top / d.r.choice((100, 128, 160, 255)))))
    lo, hi = np.iinfo(kind).min, np.iinfo(kind).max
    return [d.const(scale, np.float32), d.const(d.r.randint(lo, hi), kind)]


def quantised(d):
    """Layers on numbers of 8 bits, exact in f32 (so is ONNX Runtime): any difference is a fault."""
    r, kinds = d.r, (np.uint8, np.int8)
    what = r.choice(("conv", "conv", "conv", "matmul", "QLinearConv", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"))
    small = 9 if what.endswith("Integer") else 128
    shape = list(d.value[d.image(r.choice((1, 2, 2)))].shape) if "onv" in what else [r.choice(SIZES), r.choice((3, 4, 8, 12, 16, 31, 64, 100))]
    q, zero = integers(d, shape, r.choice(kinds), small)
    x, zero, scale = d.leaf(q, False), d.const(zero, q.dtype), d.const(power(d, -8, -2), np.float32)
    for layer in range(r.randint(1, 3)):
        a = d.value[x]
        channels, conv_like = a.shape[1], "onv" in what
        if not a.size:
            return None
        out = r.choice([m for m in CHANNELS if m <= 40])
        more = {}
        if conv_like:
            n = a.ndim - 2
            groups = r.choice([1, 1, channels] + [g for g in range(1, channels + 1) if channels % g == 0])
            out = groups * r.choice([m for m in CHANNELS if m * groups <= 40] or [1])
            kernel, strides, dilations, pads, _ = windows(d, n, (1, 1, 2, 3, 3, 4, 5))
            more = dict(group=groups, strides=strides, dilations=dilations, pads=pads)
            shape = [out, channels // groups] + kernel
        else:
            shape = [channels, out]
        v, wzero = integers(d, shape, r.choice(kinds), small)
        per_channel = r.random() < 0.5 and out > 1
        zeros = np.full(out, wzero) if per_channel else wzero
        if per_channel and r.random() < 0.3:
            zeros = integers(d, [out], v.dtype.type)[0]
        w, wzero = d.leaf(v, True), d.leaf(np.asarray(zeros), True)
        wscale = np.float32(2.0 ** d.np.integers(-10, -3, out)) if per_channel else power(d, -10, -4)
        wscale = d.leaf(np.asarray(wscale, np.float32), True)
        step = d.value[scale] * d.value[wscale]
        bias = d.np.integers(-3000, 3000, out).astype(np.int32)
        if what.endswith("Integer"):
            y = d.add(what, [x, w, zero, wzero], **more)
            return y and d.add("Cast", [y], to=TensorProto.FLOAT)
        if what.startswith("QLinear"):
            top = d.const(np.float32(2.0 ** r.randint(-3, 4)), np.float32)
            to = d.const(r.randint(0, 100), r.choice(kinds))
            y = d.add(what, [x, scale, zero, w, wscale, wzero, top, to] + ([d.leaf(bias, True)] if conv_like and r.random() < 0.7 else []),
                      **more)
            if not y:
                return None
            x, scale, zero = y, top, to
            continue
        f = d.add("DequantizeLinear", [x, scale, zero])
        g = d.add("DequantizeLinear", [w, wscale, wzero], axis=0 if conv_like else 1)
        if not f or not g:
            return None
        b = [d.leaf((bias * step).astype(np.float32), True)] if r.random() < 0.7 else []
        y = d.add("Conv", [f, g] + b, **more) if conv_like else d.add("MatMul", [f, g])
        if y and not conv_like and b:
            y = d.add("Add", [y, b[0]])
        if y and r.random() < 0.5:
            y = d.add("Relu", [y])
        if not y or r.random() < 0.2:
            return y
        scale, zero = requantised(d, y, r.choice(kinds))
        x = d.add("QuantizeLinear", [y, scale, zero])
        if not x:
            return None
    return d.add("DequantizeLinear", [x, scale, zero])


OPS = {conv: 12, residual: 5, conv_transpose: 4, pool: 7, matmul: 9, attend: 2, einsum: 3, binary: 12, unary: 12, where: 3,
       normalise: 7, reduce: 7, reshape: 6, transpose: 5, pad: 4, slice_: 5, concat: 6, split: 3, joined: 3, spread: 3,
       gather: 3, cast: 4, special: 3, quantised: 5}


def draw(seed, only):
    ops = {f: n for f, n in OPS.items() if not only or f.__name__.strip("_") in only}
    while True:
        d = Drawing(seed)
        d.fresh.append(d.image(d.r.choice((1, 2, 2, 2, 3))) if d.r.random() < 0.65 else d.pick(0, 4))
        want = d.r.randint(3, 15)
        for _ in range(4 * want):
            if len(d.nodes) >= want:
                break
            d.r.choices(list(ops), ops.values())[0](d)
        m = d.finish()
        if m.nodes and m.outputs:
            return m
        seed += "'"


def bounded(model, seed):
    """The model with a free dim: an axis of an input, and if need be all axes of its size; else as it is."""
    r = random.Random(f"{seed} dims")
    axes = [(k, i) for k, a in model.inputs.items() for i, s in enumerate(a.shape) if s]
    r.shuffle(axes)
    for k, i in axes[:6]:
        size = model.inputs[k].shape[i]
        equal = tuple(p for p in axes if model.inputs[p[0]].shape[p[1]] == size)
        top = r.choice((size + r.randint(1, 4), 2 * size, 3 * size + 1))
        for low in (1, size):
            for free in dict.fromkeys((((k, i),), equal)):
                sizes = sorted({low, top, r.randint(low, top)})
                m = Model(model.nodes, model.inputs, model.weights, model.outputs, free, sizes)
                try:
                    got = [m.at(s).oracle() for s in sizes]
                except Exception:
                    continue
                plain = all(a.ndim == got[0][o].ndim and a.size <= MOST and np.isfinite(a.astype(np.float64)).all()
                            for g in got for o, a in g.items())
                if plain and all(a.size for a in got[-1].values()) == all(a.size for a in got[0].values()):
                    return m
    return model


# -- judging -----------------------------------------------------------------------------------

def difference(got, want, half):
    """None, or how the two differ."""
    if got is None:
        return "no output"
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    if not want.size:
        return None
    if want.dtype.kind != "f":
        bad = got != want
    else:
        g, w = got.astype(np.float64), want.astype(np.float64)
        span = np.abs(w).max(initial=0.0, where=np.isfinite(w)) or 1.0
        with np.errstate(all="ignore"):
            rtol, atol = (1e-2, 2e-3) if half else (1e-3, 1e-5)
            bad = ~((np.abs(g - w) <= rtol * np.abs(w) + atol * span) | (g == w) | (np.isnan(g) & np.isnan(w)))
    if not bad.any():
        return None
    at = tuple(int(v[0]) for v in np.nonzero(np.atleast_1d(bad)))
    return f"{int(bad.sum())} of {bad.size} values differ, first at {list(at)}: " \
           f"{np.atleast_1d(got)[at]!s} for {np.atleast_1d(want)[at]!s}"


def judge(model, want, opt, work):
    """(status, why, the outputs that are wrong)."""
    work = pathlib.Path(work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    file, bundle = work / "model.onnx", work / "bundle"
    onnx.save(model.proto(want), file)
    target = ["--target", opt.target] if opt.target != "c" else []
    if model.free:
        target += ["--dim", f"n={model.sizes[0]}..{model.sizes[-1]}"]
    done = call([opt.ingot, "compile", file, "-o", bundle, *target, *opt.compile_arg], opt.timeout, opt.env)
    if done.timed_out:
        return "crash", "compile: timed out", []
    if crashed(done):
        return "crash", f"compile: {crashed(done)}", []
    if done.rc in (1, 4):
        named = any(re.search(rf"\b{n.name}\b", done.err) for n in model.nodes)
        return ("refused" if named else "wrong"), first_line(done.err) + ("" if named else " (names no node)"), []
    if done.rc:
        return "wrong", f"compile: status {done.rc}: {first_line(done.err)}", []
    flags = f"-O1 {MARCH.get(opt.target, '')} -std=c99 -Wall -Wextra -Wpedantic -Werror -Wno-psabi {opt.cflags}"
    flags += " " + SANITIZE if opt.sanitize else ""
    for cc in opt.cc.split(","):
        call(["make", "-s", "-C", bundle, "clean"], opt.timeout, opt.env)
        foreign = [] if opt.target in MARCH else ["FLAGS=-std=c99 -ffp-contract=off -pthread -I."]  # of another machine: what C it has
        done = objects.make(bundle, cc, flags, lambda words: call(words, opt.timeout, opt.env), *foreign)
        if done.rc:
            return "crash", f"make: {'timed out' if done.timed_out else first_line(done.err)}", []
        for size in model.sizes or (None,):
            one = model.at(size) if size else model
            result = judge_run(one, one.oracle() if size else want, opt, work)
            if result[0] != "passed":
                at = f"n = {size}: " if size else ""
                return result[0], at + result[1], result[2]
    return "passed", "", []


def judge_run(model, want, opt, work):
    """The same of the program that has been built."""
    bundle = work / "bundle"
    for folder in (work / "in", work / "out"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    for i, a in enumerate(model.inputs.values()):
        np.save(work / "in" / f"input_{i}.npy", np.asarray(a, order="C"))
    done = call([bundle / "model", work / "in", work / "out"], opt.timeout, opt.env)
    if done.rc or crashed(done):
        return "crash", f"run: {'timed out' if done.timed_out else crashed(done) or first_line(done.err)}", []
    half = any(a.dtype == np.float16 for a in want.values()) or any(
        n.op_type == "Cast" and helper.get_attribute_value(n.attribute[0]) == TensorProto.FLOAT16 for n in model.nodes)
    wrong = {}
    for i, o in enumerate(model.outputs):
        made = work / "out" / f"output_{i}.npy"
        why = difference(np.load(made) if made.exists() else None, want[o], half)
        if why:
            wrong[o] = (made, why)
    if not wrong:
        return "passed", "", []
    # what moves as much by itself tells nothing
    firm = set(wrong)
    move = np.random.default_rng(0)
    for _ in range(8):
        moved = model.oracle(move)
        for o in list(firm):
            got = np.load(wrong[o][0]) if wrong[o][0].exists() else None
            if got is None or got.shape != want[o].shape or got.dtype != want[o].dtype or not got.size:
                continue
            g, w, m = (v.astype(np.float64) for v in (got, want[o], moved[o]))
            if np.abs(g - w).max() <= 3 * np.abs(m - w).max():
                firm.discard(o)
    if not firm:
        return "unstable", f"{list(wrong)[0]}: {wrong[list(wrong)[0]][1]}", []
    worst = sorted(firm)
    return "wrong", f"{worst[0]}: {wrong[worst[0]][1]}", worst


def pruned(nodes, model, values, outputs):
    """These nodes of a model, without what the outputs do not need; what is missing becomes an input."""
    need, kept = set(outputs), []
    for n in reversed(nodes):
        if need & set(n.output):
            kept.insert(0, n)
            need |= set(n.input)
    made = {o for n in kept for o in n.output}
    outputs = [o for o in dict.fromkeys(outputs) if o in made]
    cut = {k: values[k] for n in kept for k in n.input if k and k not in made and k not in model.weights}
    weights = {k: a for k, a in model.weights.items() if any(k in n.input for n in kept)}
    free = tuple(p for p in model.free if p[0] in cut)
    return Model(kept, cut, weights, outputs, free, model.sizes if free else ())


def shrink(model, fault, wrong, opt, work):
    """The smallest model found that still has a fault of this kind."""
    every = Model(model.nodes, model.inputs, model.weights, [o for n in model.nodes for o in n.output])
    values = {**model.inputs, **model.weights, **every.oracle()}
    end = time.monotonic() + opt.shrink_s

    def faulty(m):
        if not m.nodes or not m.outputs or time.monotonic() > end:
            return None
        try:
            status, why, bad = judge(m, {o: values[o] for o in m.outputs}, opt, work)
        except Exception:
            return None
        return (why, bad) if status == fault[0] else None

    best, why = model, fault[1]
    for o in wrong or model.outputs:
        m = pruned(best.nodes, best, values, [o])
        got = faulty(m)
        if got:
            best, why = m, got[0]
            break
    again = not model.free  # the size of a value that becomes an input may be any function of n
    while again:
        again = False
        for i in range(len(best.nodes)):
            for outputs in (best.outputs, list(best.nodes[i].input)):
                m = pruned(best.nodes[:i] + best.nodes[i + 1:], best, values, outputs)
                got = faulty(m) if 0 < len(m.nodes) < len(best.nodes) else None
                if got:
                    best, why, again = m, got[0], True
                    break
            if again:
                break
    for o in best.outputs[1:]:
        m = pruned(best.nodes, best, values, [p for p in best.outputs if p != o])
        got = faulty(m)
        if got:
            best, why = m, got[0]
    return best, why, values


def one(args):
    """Graph `index` of the seed, in a worker."""
    index, opt = args
    name = f"{opt.seed}/{index}"
    work = pathlib.Path(tempfile.mkdtemp(prefix="graph-", dir=opt.work))
    result = {"name": name, "status": "crash", "why": "", "ops": [], "lines": [], "dims": False}
    try:
        model = draw(name, opt.ops)
        model = bounded(model, name) if opt.dims else model
        result.update(ops=[n.op_type for n in model.nodes], dims=bool(model.free))
        try:
            want = model.oracle()
        except Exception as e:
            return {**result, "status": "skipped", "why": str(e)[:200]}
        status, why, wrong = judge(model, want, opt, work)
        result.update(status=status, why=why.replace(str(work) + "/", ""))
        if status in FAULTS:
            small, why, values = model, why, {**want}
            try:
                if opt.shrink_s:
                    small, why, values = shrink(model, (status, why), wrong, opt, work)
            except Exception as e:  # ONNX Runtime refuses some when every tensor is an output
                result["why"] += f" (not made smaller: {str(e)[:80]})"
            result.update(lines=list(small.lines()), small=why.replace(str(work) + "/", ""))
            if opt.keep:
                kept = opt.keep / name.replace("/", "-")
                judge(small, {o: values[o] for o in small.outputs}, opt, kept)
                onnx.save(model.proto(want), kept / "whole.onnx")
                for i, o in enumerate(small.outputs):
                    np.save(kept / f"want_{i}.npy", values[o])
    except Exception as e:
        result["why"] = f"harness: {type(e).__name__}: {e}"
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return result


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a = p.add_argument
    a("--ingot", type=pathlib.Path, default=pathlib.Path("build/ingot"))
    a("--n", type=int, default=100)
    a("--first", type=int, default=0, help="number of the first graph")
    a("--seed", default="0")
    a("--ops", type=lambda s: s.split(","), help="draw only these, e.g. joined,conv,pool")
    a("--target", default="c")
    a("--jobs", type=int, default=2)
    a("--cc", default="gcc", help="C compiler, or several with commas")
    a("--dims", action="store_true", help="a size of the inputs is known to the run only")
    a("--cflags", default="", help="more flags")
    a("--compile-arg", action="append", default=[], metavar="ARG")
    a("--sanitize", action="store_true", help="build the bundles with ASan and UBSan")
    a("--timeout", type=float, default=60)
    a("--shrink-s", type=float, default=60, help="seconds to make one fault smaller; 0: not")
    a("--keep", type=pathlib.Path, help="leave what is wrong here")
    a("--show", action="store_true", help="only print the graphs")
    opt = p.parse_args()
    opt.ingot = opt.ingot.absolute()
    opt.env = dict(os.environ, **SETTINGS)
    if opt.keep:
        opt.keep = opt.keep.absolute()
        opt.keep.mkdir(parents=True, exist_ok=True)
    numbers = range(opt.first, opt.first + opt.n)
    if opt.show:
        for i in numbers:
            model = draw(f"{opt.seed}/{i}", opt.ops)
            model = bounded(model, f"{opt.seed}/{i}") if opt.dims else model
            print(f"{opt.seed}/{i}", *model.lines(), sep="\n    ")
        return 0
    began, results = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="ingot-graphs-") as opt.work:
        objects.folder()
        with concurrent.futures.ProcessPoolExecutor(opt.jobs) as workers:
            for r in workers.map(one, [(i, opt) for i in numbers]):
                results.append(r)
                if r["status"] != "passed":
                    print(f"{r['status']:8} {r['name']}: {r['why']}", flush=True)
                if r["lines"]:
                    print("    " + "\n    ".join([r["small"]] + r["lines"]), flush=True)
    count = collections.Counter(r["status"] for r in results)
    ops = collections.Counter(o for r in results for o in r["ops"])
    dims = f"{sum(r['dims'] for r in results)} with a free dim, " if opt.dims else ""
    print(f"{len(results)} graphs, {dims}{sum(ops.values())} nodes of {len(ops)} operators, --target {opt.target}: "
          + ", ".join(f"{n} {s}" for s, n in sorted(count.items())) + f" ({time.monotonic() - began:.0f} s)")
    return 1 if any(count[s] for s in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
