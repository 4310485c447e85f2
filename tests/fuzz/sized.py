"""A random ONNX graph in the making whose sizes the run knows: every tensor's values at several
sizes, by numpy.

A case is one choice of all free dims. A node is drawn with a function of arrays, and has to be good
in every case: so a graph is valid for the least and the greatest size, and what numpy makes of it
is the oracle. Nothing but numpy is needed."""

import random

import numpy as np
from onnx import AttributeProto, helper, numpy_helper

OPSET, IR = 21, 10
SINCE = {
    "RMSNormalization": 23,
    "RotaryEmbedding": 23,
    "Attention": 23,
    "Swish": 24,
    "TensorScatter": 24,
}
SIZES = (1, 1, 2, 3, 4, 4, 5, 7, 8, 8, 9, 16, 17)
LANES = (2, 4, 4, 8, 8, 16, 32)
MOST = 6000  # elements of a tensor
LARGEST, FAINT, LEAST = 1e4, 1e-4, 1e-30


def info(name, dtype, shape=None):
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape
    )


def opset_of(nodes):
    return max([OPSET, *(SINCE.get(n.op_type, 0) for n in nodes if not n.domain)])


class Model:
    """Nodes and their functions in order; values of the inputs, of each case; the initializers;
    names of the outputs; the bounds of free dims, and for each axis of an input its size or the
    name of its dim."""

    def __init__(self, nodes, functions, inputs, axes, weights, outputs, dims, cases):
        self.nodes, self.functions, self.inputs, self.axes, self.weights = (
            nodes,
            functions,
            inputs,
            axes,
            weights,
        )
        self.outputs, self.dims, self.cases = outputs, dims, cases

    def proto(self):
        known = self.values(0)
        graph = helper.make_graph(
            self.nodes,
            "g",
            [info(k, a[0].dtype, self.axes[k]) for k, a in self.inputs.items()],
            [info(o, known[o].dtype, [None] * known[o].ndim) for o in self.outputs],
            [numpy_helper.from_array(a, k) for k, a in self.weights.items()],
        )
        imports = {"": opset_of(self.nodes)}
        imports.update((n.domain, 1) for n in self.nodes if n.domain)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid(*i) for i in imports.items()], ir_version=IR
        )

    def values(self, case):
        """All tensors in this case."""
        value = {**{k: a[case] for k, a in self.inputs.items()}, **self.weights}
        for node, function in zip(self.nodes, self.functions):
            value.update(zip(node.output, results(function, [value[k] for k in reads(node)])))
        return value

    def bounds(self):
        """The words that give the free dims their bounds."""
        return [w for k, (lo, hi) in self.dims.items() for w in ("--dim", f"{k}={lo}..{hi}")]

    def lines(self):
        for k, a in self.inputs.items():
            yield f"input {k} {a[0].dtype}[{','.join(map(str, self.axes[k]))}]"
        for k, a in self.weights.items():
            yield f"weight {k} {a.dtype}{list(a.shape)}" + (
                f" = {a.tolist()}" if a.size <= 8 else ""
            )
        for n in self.nodes:
            args = ", ".join(f"{a.name}={helper.get_attribute_value(a)}" for a in n.attribute)
            mark = "".join(" *" for o in n.output if o in self.outputs)
            yield f"{', '.join(n.output)} = {n.op_type}({', '.join(n.input)}) {args}{mark}"

    def pruned(self, dropped, outputs, values):
        """Without a node and what the outputs do not need; what is missing becomes an input, whose
        value in each case is known."""
        need, kept = set(outputs), []
        for i in reversed(range(len(self.nodes))):
            n = self.nodes[i]
            if i != dropped and need & set(n.output):
                kept.insert(0, i)
                need |= set(reads(n))
        nodes = [self.nodes[i] for i in kept]
        made = {o for n in nodes for o in n.output}
        read = {k for n in nodes for k in reads(n)}
        cut = [k for k in values[0] if k in read and k not in made and k not in self.weights]
        inputs = {k: [v[k] for v in values] for k in cut}
        dims, axes = {}, {}
        for k, a in inputs.items():
            axes[k] = list(self.axes[k]) if k in self.axes else axes_of(a, self.cases)
            for i, axis in enumerate(axes[k]):
                if axis is None:
                    axes[k][i] = f"{k}_{i}"
                    dims[f"{k}_{i}"] = (min(v.shape[i] for v in a), max(v.shape[i] for v in a))
                elif not isinstance(axis, int):
                    dims[axis] = self.dims[axis]
        return Model(
            nodes,
            [self.functions[i] for i in kept],
            inputs,
            axes,
            {k: a for k, a in self.weights.items() if k in read},
            [o for o in dict.fromkeys(outputs) if o in made],
            dims,
            self.cases,
        )


def axes_of(arrays, cases):
    """For each axis its size, the dim that it has in every case, or None."""
    axes = []
    for i in range(arrays[0].ndim):
        sizes = [a.shape[i] for a in arrays]
        same = [k for k in cases[0] if sizes == [c[k] for c in cases]]
        axes.append(same[0] if same else sizes[0] if len(set(sizes)) == 1 else None)
    return axes


def all_nodes(nodes):
    """Nodes, and those of their bodies."""
    for n in nodes:
        yield n
        for a in n.attribute:
            yield from all_nodes(a.g.node)


def reads(node):
    """What a node reads: its operands, then what graphs inside of it have from outside."""
    outside = {}
    for a in node.attribute:
        if a.type == AttributeProto.GRAPH:
            own = {v.name for v in (*a.g.input, *a.g.initializer)}
            own |= {o for n in a.g.node for o in n.output}
            outside.update((k, 0) for n in a.g.node for k in reads(n) if k not in own)
    return [*(k for k in node.input if k), *outside]


def wide(function):
    """Computed in f64, rounded to f32 once."""
    return lambda *a: np.asarray(function(*[np.asarray(v, np.float64) for v in a]), np.float32)


halves_away = False


def to_integers(x, zero):
    """The nearest integers with `zero` added. Of two that are as near the even one; or, as cores
    without an FPU do it, the one that is further from zero then."""
    if halves_away:
        return np.sign(x + zero) * np.floor(np.abs(x + zero) + 0.5)
    return np.rint(x) + zero


def results(function, operands):
    with np.errstate(all="ignore"):
        made = function(*operands)
    return [np.asarray(a) for a in (made if isinstance(made, tuple) else (made,))]


def drawn_dims(r):
    """Bounds of one or two free dims, and cases: the least, none or one, the lanes, one more, the
    greatest."""
    dims, sizes = {}, {}
    for k in ("n", "m")[: r.choice((1, 1, 2))]:
        lanes = r.choice(LANES)
        lo = r.choice((0, 1, 1, 1, lanes))
        hi = max(lo + 1, r.choice((1, lanes, lanes + 1, 2 * lanes, 3 * lanes + 1)))
        dims[k] = (lo, hi)
        sizes[k] = sorted({lo, hi, *(s for s in (1, lanes, lanes + 1) if lo <= s <= hi)})
    cases = [{k: s[0] for k, s in sizes.items()}, {k: s[-1] for k, s in sizes.items()}]
    cases += [{k: r.choice(s) for k, s in sizes.items()} for _ in range(3)]
    return dims, [c for i, c in enumerate(cases) if c not in cases[:i]]


class Drawing:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.np = np.random.default_rng(self.r.getrandbits(32))
        self.dims, self.cases = drawn_dims(self.r)
        self.nodes, self.functions, self.inputs, self.weights, self.value, self.axes = (
            [],
            [],
            {},
            {},
            {},
            {},
        )
        self.fresh = []  # names of tensors that may be operands, newest last
        self.count = 0

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    # -- leaves

    def const(self, values, dtype=np.int64):
        k, a = self.name("w"), np.array(values, dtype)
        self.weights[k] = a
        self.value[k] = [a] * len(self.cases)
        return k

    def random(self, shape, dtype=np.float32):
        """Small integers, where sums are exact, or normal."""
        if dtype == np.float32:
            whole = self.r.random() < 0.4
            return (
                self.np.integers(-4, 5, shape) if whole else self.np.standard_normal(shape)
            ).astype(np.float32)
        if dtype == bool:
            return self.np.integers(0, 2, shape).astype(bool)
        return self.np.integers(0 if np.iinfo(dtype).min == 0 else -9, 10, shape).astype(dtype)

    def weight(self, *shape):
        return self.const(self.random(shape), np.float32)

    def input(self, axes, dtype=np.float32):
        k = self.name("x")
        self.inputs[k] = self.value[k] = [
            self.random([c.get(v, v) for v in axes], dtype) for c in self.cases
        ]
        self.axes[k] = list(axes)
        self.fresh.append(k)
        return k

    def shape(self, rank):
        """Mostly with a free dim."""
        while True:
            axes = [self.r.choice(SIZES) for _ in range(rank)]
            for k in self.dims:
                if rank and self.r.random() < 0.8:
                    axes[self.r.randrange(rank)] = k
            if (
                np.prod([max(c.get(v, v) for c in self.cases) for v in axes], dtype=np.int64)
                <= MOST
            ):
                return axes

    def pick(self, low=0, high=5, kinds="f"):
        """An operand whose rank is in [low, high], mostly a new one; else an input."""
        good = [k for k in self.fresh if low <= self.rank(k) <= high and self.kind(k) in kinds]
        if good and self.r.random() < 0.93:
            return good[-1] if self.r.random() < 0.5 else self.r.choice(good)
        dtype = {"f": np.float32, "b": bool}.get(
            kinds[0], self.r.choice((np.int64, np.int32, np.int8, np.uint8))
        )
        return self.input(self.shape(self.r.randint(low, min(high, max(low, 4)))), dtype)

    # -- what is known of a tensor

    def rank(self, k):
        return self.value[k][0].ndim

    def dtype(self, k):
        return self.value[k][0].dtype

    def kind(self, k):
        """f: f32; i: integers; b: bool; h, d: other floats, which only casts read."""
        d = self.dtype(k)
        return {"f": {2: "h", 4: "f", 8: "d"}.get(d.itemsize), "u": "i"}.get(d.kind, d.kind)

    def sizes(self, k, axis):
        return [a.shape[axis] for a in self.value[k]]

    def fixed(self, k, axis):
        """The size of an axis if all cases have the same; else None."""
        s = self.sizes(k, axis)
        return s[0] if len(set(s)) == 1 else None

    def alike(self, x):
        """Other tensors with the type and, in all cases, the shape of x."""
        shapes = [a.shape for a in self.value[x]]
        return [
            k
            for k in self.fresh
            if k != x
            and self.dtype(k) == self.dtype(x)
            and [a.shape for a in self.value[k]] == shapes
        ]

    def twin(self, x):
        """An operand of the shape of x: an earlier one, or an input where that can be."""
        same, axes = self.alike(x), axes_of(self.value[x], self.cases)
        if same and (self.r.random() < 0.5 or None in axes):
            return self.r.choice(same)
        return x if None in axes else self.input(axes, self.dtype(x).type)

    def other(self, x):
        """An operand that broadcasts with x."""
        if self.r.random() < 0.4:
            return self.twin(x)
        axes = [
            1 if v is None or self.r.random() < 0.4 else v
            for v in axes_of(self.value[x], self.cases)
        ]
        axes = axes[self.r.randint(0, len(axes)) :] if self.r.random() < 0.4 else axes
        if all(isinstance(v, int) for v in axes) and self.r.random() < 0.7:
            return self.const(self.random(axes, self.dtype(x).type), self.dtype(x))
        return self.input(axes, self.dtype(x).type)

    # -- nodes

    def moved(self, arrays):
        return [
            a
            if a.dtype.kind != "f" or not a.size
            else np.where(
                a != 0, a + self.np.uniform(-1, 1, a.shape) * 1e-4 * np.abs(a).max(), 0
            ).astype(a.dtype)
            for a in arrays
        ]

    def add(
        self,
        op,
        inputs,
        function,
        nout=1,
        steps=False,
        domain="",
        most=MOST,
        captured=(),
        **attributes,
    ):
        """Appends a node if its values are good in every case; `steps`: it jumps, so its operands
        must be far from that; `captured`: operands that graphs inside of it read."""
        attributes = {k: v for k, v in attributes.items() if v is not None}
        made = []
        for case in range(len(self.cases)):
            operands = [self.value[k][case] for k in (*inputs, *captured) if k]
            try:
                got = results(function, operands)
                again = results(function, self.moved(operands)) if steps else got
            except (ValueError, IndexError, ZeroDivisionError):
                return None
            if any(not np.array_equal(a, b) for a, b in zip(got, again)):
                return None
            for a in got:
                if a.size > most or a.ndim > 6:
                    return None
                size = np.abs(a.astype(np.float64))
                if a.dtype.kind in "fiu" and a.size and not size.max() < LARGEST:
                    return None
                if (
                    a.dtype.kind == "f"
                    and size.any()
                    and (size.max() < FAINT or size[size != 0].min() < LEAST)
                ):
                    # the model may take it for zero, or what is left of larger numbers is rounding
                    return None
            made.append(got)
        if len({tuple((a.ndim, a.dtype) for a in got) for got in made}) != 1:
            return None
        node = helper.make_node(
            op,
            inputs,
            [self.name("t") for _ in range(nout)],
            self.name("n"),
            domain=domain or None,
            **attributes,
        )
        self.nodes.append(node)
        self.functions.append(function)
        for i, k in enumerate(node.output):
            self.value[k] = [got[i] for got in made]
            self.fresh.append(k)
        return node.output[0]

    def finish(self):
        used = {i for n in self.nodes for i in reads(n)}
        outputs = [
            o for n in self.nodes for o in n.output if o not in used or self.r.random() < 0.12
        ]
        self.r.shuffle(outputs)
        inputs = {k: a for k, a in self.inputs.items() if k in used}
        named = {v for k in inputs for v in self.axes[k]}
        return Model(
            self.nodes,
            self.functions,
            inputs,
            {k: self.axes[k] for k in inputs},
            {k: a for k, a in self.weights.items() if k in used},
            outputs,
            {k: b for k, b in self.dims.items() if k in named},
            self.cases,
        )
