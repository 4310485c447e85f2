"""A random ONNX graph in the making: its nodes, the values of its tensors, and which of them may be
operands."""

import random

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

OPSET, IR = 21, 10
CHANNELS = (1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 17, 23, 24, 32, 37)
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19, 31)
MOST = 40000  # elements of a tensor


class Model:
    """Nodes in order, the values of the inputs and initializers, the names of the outputs; the axes
    (input, axis) that have the free dim n, and its sizes."""

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
            return helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(a.dtype), shape
            )

        outputs = [
            info(o, known[o]) if o in known else onnx.ValueInfoProto(name=o) for o in self.outputs
        ]
        graph = helper.make_graph(
            self.nodes,
            "g",
            [info(k, a) for k, a in self.inputs.items()],
            outputs,
            [numpy_helper.from_array(a, k) for k, a in self.weights.items()],
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR
        )

    def oracle(self, move=None):
        """The outputs by ONNX Runtime; with `move`, a generator of noise, of inputs moved a
        little."""
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
        session = ort.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
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
        good = [
            k
            for k in self.fresh
            if low <= self.value[k].ndim <= high
            and self.value[k].dtype.kind in kinds
            and self.value[k].dtype != np.float16
        ]
        if good and self.r.random() < 0.95:
            return good[-1] if self.r.random() < 0.6 else self.r.choice(good)
        shape = self.shape(self.r.randint(low, min(high, max(low, 4))))
        if "f" in kinds:
            return self.leaf(self.normal(*shape), False)
        if "i" in kinds:
            return self.leaf(self.np.integers(-9, 10, shape).astype(np.int64), False)
        return self.leaf(self.np.integers(0, 2, shape).astype(bool), False)

    def picture(self):
        good = [
            k
            for k in self.fresh
            if 3 <= self.value[k].ndim <= 5 and self.value[k].dtype == np.float32
        ]
        if good and self.r.random() < 0.85:
            return good[-1] if self.r.random() < 0.7 else self.r.choice(good)
        return self.image(self.r.choice((1, 2, 2, 2, 3)))

    def other(self, x):
        """An operand that broadcasts with x: an earlier tensor of its shape, or a new leaf."""
        a = self.value[x]
        same = [
            k
            for k in self.fresh
            if self.value[k].dtype == a.dtype and self.value[k].shape == a.shape and k != x
        ]
        if same and self.r.random() < 0.5:
            return self.r.choice(same)
        s = [1 if self.r.random() < 0.3 else d for d in a.shape]
        s = s[self.r.randint(0, len(s)) :] if self.r.random() < 0.4 else s
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
        """Appends a node if its values are good; `steps`: it jumps, so its operands must be far
        from that."""
        attributes = {k: v for k, v in attributes.items() if v is not None}
        node = helper.make_node(
            op, inputs, [self.name("t") for _ in range(nout)], self.name("n"), **attributes
        )
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
        outputs = [
            o for n in self.nodes for o in n.output if o not in used or self.r.random() < 0.12
        ]
        self.r.shuffle(outputs)
        inputs = {k: a for k, a in self.inputs.items() if k in used}
        weights = {k: a for k, a in self.weights.items() if k in used}
        return Model(self.nodes, inputs, weights, outputs)
