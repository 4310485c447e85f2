"""What graphs of sized.py are made of: each function adds nodes, with what they mean in numpy, of
operands that suit them."""

import functools
import math

import numpy as np
from onnx import TensorProto
from sized import axes_of, to_integers, wide
from sized_windows import conv, pool

F = np.float32
NUMBERS = (0.0, 0.0, 1.0, -1.0, 2.0, 3.0, 5.0, 0.5, 0.25, 4.0, 8.0, -2.0)


erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


UNARY = {
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": sigmoid,
    "Tanh": np.tanh,
    "Neg": np.negative,
    "Abs": np.abs,
    "Exp": np.exp,
    "Sin": np.sin,
    "Cos": np.cos,
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Erf": erf,
    "Elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "LeakyRelu": lambda x: np.where(x >= 0, x, 0.01 * x),
}
JUMPS = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.rint, "Sign": np.sign}
BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
COMPARE = {
    "Greater": np.greater,
    "Less": np.less,
    "GreaterOrEqual": np.greater_equal,
    "LessOrEqual": np.less_equal,
    "Equal": np.equal,
}


def unary(d):
    r = d.r
    if r.random() < 0.2:
        op = r.choice(list(JUMPS))
        return d.add(op, [d.pick()], wide(JUMPS[op]), steps=True)
    if r.random() < 0.15:
        x = d.add("Sigmoid", [d.pick()], wide(sigmoid))
        op, f = r.choice((("Sqrt", np.sqrt), ("Log", np.log), ("Reciprocal", np.reciprocal)))
        return x and d.add(op, [x], wide(f))
    op = r.choice(list(UNARY))
    return d.add(op, [d.pick()], wide(UNARY[op]))


def binary(d):
    r, x = d.r, d.pick(0, 5, "fffi")
    op = r.choice(("Add", "Add", "Sub", "Mul", "Mul", "Max", "Min", "Div"))
    y = d.other(x)
    if op == "Div" and d.kind(x) == "f":
        y = d.add("Abs", [y], np.abs)
        y = y and d.add("Add", [y, d.const(0.5, F)], np.add)
        return y and d.add("Div", [x, y], wide(np.divide))
    if op in ("Max", "Min", "Div"):
        n = r.randint(1, 3)
        pick = np.maximum if op == "Max" else np.minimum
        xs = [x, y] + [d.other(x) for _ in range(n - 1)]
        return d.add("Max" if op == "Max" else "Min", xs, lambda *a: functools.reduce(pick, a))
    pair = [x, y]
    r.shuffle(pair)
    return d.add(op, pair, BINARY[op])


def number(d, x, per_channel=None):
    """A scalar, a number for each of a fixed axis' places, or a whole tensor of one number."""
    r = d.r
    axis = per_channel if per_channel is not None else -1
    n = d.fixed(x, axis) if d.rank(x) else None
    if n and r.random() < 0.3:
        return d.const(
            np.array([r.choice(NUMBERS) for _ in range(n)]).reshape([n] + [1] * (-axis - 1)), F
        )
    return d.const([r.choice(NUMBERS)] if r.random() < 0.3 else r.choice(NUMBERS), F)


def chain(d):
    """What two or more parts do with numbers of their own."""
    r, steps = d.r, []
    for _ in range(r.randint(1, 3)):
        steps.append(
            r.choice(
                (
                    "Mul",
                    "Add",
                    "Add",
                    "Sub",
                    "Max",
                    "Relu",
                    "Div",
                    "Slice",
                    "Pad",
                    "Clip",
                    "LeakyRelu",
                    "Gather",
                    "Where",
                    "Softmax",
                    "CumSum",
                )
            )
        )
    return steps


def link(d, op, x):
    """One step of a chain, its numbers drawn anew."""
    r, rank = d.r, d.rank(x)
    if op in ("Mul", "Add", "Sub"):
        return d.add(op, [x, number(d, x)], BINARY[op])
    if op == "Max":
        return d.add(op, [x, number(d, x)], np.maximum)
    if op == "Div":
        return d.add(op, [x, d.const(r.choice((1.0, 2.0, 4.0, 0.5, 3.0)), F)], wide(np.divide))
    if op == "Relu":
        return d.add(op, [x], lambda a: np.maximum(a, F(0)))
    if op == "LeakyRelu":
        alpha = r.choice((0.0, 0.5, 0.25, 1.0))
        return d.add(op, [x], lambda a: np.where(a >= 0, a, F(alpha) * a).astype(F), alpha=alpha)
    if op == "Clip":
        lo, hi = sorted(r.sample(NUMBERS, 2))
        return d.add(op, [x, d.const(lo, F), d.const(hi, F)], lambda a, u, v: np.clip(a, u, v))
    if op == "Where":
        c = d.add("Greater", [x, d.const(r.choice(NUMBERS), F)], np.greater, steps=True)
        return c and d.add("Where", [c, x, number(d, x)], np.where)
    if not rank:
        return x
    axis = r.randrange(rank)
    if op == "Softmax":
        return d.add(op, [x], softmax(axis), axis=axis)
    if op == "CumSum":
        return cumsum_of(d, x, axis)
    if op == "Slice":
        start = r.choice((0, 0, 1, 2))
        return sliced(d, x, [start], [2**31 - 1], [axis], [1])
    if op == "Pad":
        pads = [0] * 2 * rank
        pads[axis], pads[rank + axis] = r.choice((0, 1, 2)), r.choice((0, 1))
        return padded(d, x, pads, "constant", r.choice((0.0, 0.0, 1.0, 3.0)))
    n = d.fixed(x, axis)
    return (
        d.add(
            "Gather",
            [x, d.const([r.randrange(n) for _ in range(2)])],
            lambda a, i: np.take(a, i, axis),
            axis=axis,
        )
        if n
        else x
    )


def twins(d):
    """Parts that are equal but for numbers, zeros among them; joined, added or kept apart."""
    r, x = d.r, d.pick(0, 4)
    steps, ends = chain(d), []
    for _ in range(r.choice((2, 2, 3, 4))):
        y = d.twin(x) if r.random() < 0.8 else x
        for op in steps:
            y = link(d, op, y) or y
        ends.append(y)
    what = r.randrange(3)
    if what == 0 and d.rank(x):
        axis = r.randrange(d.rank(x))
        return d.add("Concat", ends, lambda *a: np.concatenate(a, axis), axis=axis)
    if what == 1:
        y = ends[0]
        for z in ends[1:]:
            y = joined_by(d, y, z) or y
        return y
    return ends[-1]


def joined_by(d, y, z):
    op = d.r.choice(list(BINARY))
    return d.add(op, [y, z], BINARY[op])


def concat(d):
    """Of 2, 4 or 8 parts: earlier tensors that fit, inputs, pieces."""
    r, x = d.r, d.pick(1, 4, "fffi")
    axis, parts = r.randrange(d.rank(x)), []
    axes = axes_but(d, x, axis)
    fit = [
        k
        for k in d.fresh
        if d.dtype(k) == d.dtype(x) and d.rank(k) == d.rank(x) and axes_but(d, k, axis) == axes
    ]
    for _ in range(r.choice((2, 3, 4, 4, 8, 8))):
        what = r.randrange(4)
        y = r.choice(fit or [x])
        if what == 0 and d.kind(y) == "f":
            op = r.choice(list(UNARY))
            y = d.add(op, [y], wide(UNARY[op])) or y
        elif what == 1 and all(s is not None for s in known(d, x, axis)):
            sizes = known(d, x, axis)
            sizes[axis] = r.choice((1, 2, 3, 4, 8) + tuple(d.dims))
            y = (
                d.input(sizes, d.dtype(x).type)
                if r.random() < 0.7 or any(isinstance(s, str) for s in sizes)
                else d.const(d.random(sizes, d.dtype(x).type), d.dtype(x))
            )
        elif what == 2:
            start = r.randint(0, 2)
            y = sliced(d, y, [start], [start + r.choice((1, 2, 100))], [axis], [1]) or y
        parts.append(y)
    rank = d.rank(x)
    return d.add(
        "Concat",
        parts,
        lambda *a: np.concatenate(a, axis),
        axis=axis - (rank if r.random() < 0.3 else 0),
    )


def axes_but(d, k, axis):
    return [s.shape[:axis] + s.shape[axis + 1 :] for s in d.value[k]]


def known(d, x, axis):
    axes = axes_of(d.value[x], d.cases)
    axes[axis] = 1
    return axes


def cumsum_of(d, x, axis):
    exclusive, reverse = d.r.randint(0, 1), d.r.randint(0, 1)

    def function(a, _):
        b = np.flip(a, axis) if reverse else a
        s = np.cumsum(b, axis, dtype=np.float64 if a.dtype == F else a.dtype)
        s = s - b if exclusive else s
        return (np.flip(s, axis) if reverse else s).astype(a.dtype)

    return d.add(
        "CumSum",
        [x, d.const(axis - (d.rank(x) if d.r.random() < 0.3 else 0))],
        function,
        exclusive=exclusive,
        reverse=reverse,
    )


def scan(d):
    x = d.pick(1, 4, "ffff")
    if d.kind(x) == "i" and d.dtype(x).itemsize < 4:
        return None
    return cumsum_of(d, x, d.r.randrange(d.rank(x)))


def softmax(axis, log=False):
    def function(x):
        if not x.size:
            return x
        e = np.exp(x - x.max(axis, keepdims=True))
        s = e.sum(axis, keepdims=True)
        return x - x.max(axis, keepdims=True) - np.log(s) if log else e / s

    return wide(function)


def normalise(d):
    r, x = d.r, d.pick(1, 4)
    rank, what = d.rank(x), r.randrange(5)
    axis = r.randrange(rank)
    if what <= 1:
        return d.add(
            ("Softmax", "LogSoftmax")[what],
            [x],
            softmax(axis, what),
            axis=axis - (rank if r.random() < 0.3 else 0),
        )
    if what == 2:
        p = r.choice((1, 2))
        y = d.add("Abs", [x], np.abs)
        y = y and d.add("Add", [y, d.const(0.5, F)], np.add)
        return y and d.add(
            "LpNormalization",
            [y],
            wide(lambda a: a / (np.abs(a) ** p).sum(axis, keepdims=True) ** (1 / p)),
            axis=axis,
            p=p,
        )
    if what == 3 and rank >= 2 and d.fixed(x, 1):
        c = d.fixed(x, 1)
        v = [d.const(d.np.standard_normal(c), F) for _ in range(3)] + [
            d.const(np.abs(d.np.standard_normal(c)) + 0.3, F)
        ]
        wider = [slice(None)] + [None] * (rank - 2)
        return d.add(
            "BatchNormalization",
            [x] + v,
            wide(
                lambda a, s, b, m, q: (
                    (a - m[tuple(wider)]) / np.sqrt(q[tuple(wider)] + 1e-5) * s[tuple(wider)]
                    + b[tuple(wider)]
                )
            ),
        )
    shape = [d.fixed(x, i) for i in range(axis, rank)]
    if None in shape or np.prod(shape) < 2:
        return None
    s, b = d.const(d.np.standard_normal(shape), F), d.const(d.np.standard_normal(shape), F)
    over = tuple(range(axis, rank))

    def function(a, s, b):
        c = a - a.mean(over, keepdims=True)
        return c / np.sqrt((c * c).mean(over, keepdims=True) + 1e-5) * s + b

    return d.add("LayerNormalization", [x, s, b], wide(function), axis=axis)


REDUCE = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceL1": lambda a, axis, keepdims: np.abs(a).sum(axis, keepdims=keepdims),
    "ReduceL2": lambda a, axis, keepdims: np.sqrt((a * a).sum(axis, keepdims=keepdims)),
    "ReduceSumSquare": lambda a, axis, keepdims: (a * a).sum(axis, keepdims=keepdims),
}


def any_order(a, axes):
    """Whether no product of some of these overflows or vanishes in f32: what an order of factors
    is free to make 0, infinite, or nan."""
    size = np.log2(np.abs(a, dtype=np.float64), where=a != 0, out=np.zeros(a.shape))
    return all(
        np.abs(part(size, 0).sum(axes)).max(initial=0) < 100 for part in (np.maximum, np.minimum)
    )


def reduce(d):
    r, x = d.r, d.pick(1, 5)
    rank, keep = d.rank(x), r.randint(0, 1)
    if r.random() < 0.15:
        axis, op = r.randrange(rank), r.choice(("ArgMax", "ArgMin"))
        f = np.argmax if op == "ArgMax" else np.argmin
        return d.add(
            op,
            [x],
            lambda a: f(a, axis, keepdims=bool(keep)).astype(np.int64),
            steps=True,
            axis=axis,
            keepdims=keep,
        )
    axes = tuple(r.sample(range(rank), r.randint(1, rank)))
    op = r.choice(list(REDUCE))
    if op == "ReduceMean" and any(0 in d.sizes(x, i) for i in axes):
        return None
    if op == "ReduceProd" and not all(any_order(a, axes) for a in d.value[x]):
        return None
    return d.add(
        op,
        [x, d.const(axes)],
        lambda a, _: wide(lambda v: REDUCE[op](v, axis=axes, keepdims=bool(keep)))(a),
        keepdims=keep,
    )


def sliced(d, x, starts, ends, axes, steps):
    def function(a, s, e, ax, st):
        at = [slice(None)] * a.ndim
        for lo, hi, i, step in zip(s, e, ax, st):
            n = a.shape[i]
            lo, hi = lo + n if lo < 0 else lo, hi + n if hi < 0 else hi
            lo, hi = (
                (min(max(lo, 0), n), min(max(hi, 0), n))
                if step > 0
                else (min(max(lo, 0), n - 1), min(max(hi, -1), n - 1))
            )
            at[i] = np.arange(lo, hi, step) if n else np.arange(0)
            a = np.take(a, at[i], i)
        return a

    return d.add("Slice", [x] + [d.const(v) for v in (starts, ends, axes, steps)], function)


def slice_(d):
    r, x = d.r, d.pick(1, 5, "ffib")
    axes = r.sample(range(d.rank(x)), r.randint(1, d.rank(x)))
    steps = [r.choice((1, 1, 1, 2, 3, -1, -2)) for _ in axes]
    starts = [
        r.choice((0, 0, 1, 2, -1, -3, 5)) if s > 0 else r.choice((2**31 - 1, -1, -2, 3))
        for s in steps
    ]
    ends = [
        r.choice((2**31 - 1, 2**31 - 1, -1, 3, 4, 8))
        if s > 0
        else r.choice((-(2**31), -(2**31), 0, 1))
        for s in steps
    ]
    return sliced(d, x, starts, ends, axes, steps)


def padded(d, x, pads, mode, value=None):
    rank = d.rank(x)

    def function(a, p, *v):
        p = [int(k) for k in p]
        at = [slice(max(0, -p[i]), a.shape[i] - max(0, -p[rank + i])) for i in range(rank)]
        if any(s.stop < s.start for s in at):
            raise ValueError
        a = a[tuple(at)]
        width = [(max(0, p[i]), max(0, p[rank + i])) for i in range(rank)]
        if mode != "constant" and any(s == 0 and sum(w) for s, w in zip(a.shape, width)):
            raise ValueError
        if mode == "reflect" and any(max(w) >= max(s, 1) for s, w in zip(a.shape, width)):
            raise ValueError
        return np.pad(
            a, width, mode, **(dict(constant_values=v[0] if v else 0) if mode == "constant" else {})
        )

    return d.add(
        "Pad",
        [x, d.const(pads)] + ([d.const(value, d.dtype(x))] if value is not None else []),
        function,
        mode=mode,
    )


def pad(d):
    r, x = d.r, d.pick(1, 4, "ffi")
    mode = r.choice(("constant", "constant", "edge", "reflect", "wrap"))
    few = (
        (0, 0, 1, -1, 2, 3, -2)
        if mode == "constant" or r.random() < 0.1 and mode != "wrap"
        else (0, 0, 1, 2, 3)
    )
    pads = [r.choice(few) for _ in range(2 * d.rank(x))]
    return padded(
        d,
        x,
        pads,
        mode,
        r.choice((0, 1, -2, None))
        if mode == "constant" and np.dtype(d.dtype(x)).kind != "u"
        else None,
    )


def matmul(d):
    r, x = d.r, d.pick(2, 4)
    k = d.fixed(x, -1)
    what = r.randrange(4)
    if what == 0:  # with itself: no constant operand
        perm = list(range(d.rank(x)))
        perm[-2:] = perm[:-3:-1]
        y = d.add("Transpose", [x], lambda a: a.transpose(perm), perm=perm)
        s = y and d.add("MatMul", [x, y], wide(np.matmul))
        s = s and d.add("Mul", [s, d.const(0.125, F)], np.multiply)
        s = s and d.add("Softmax", [s], softmax(-1), axis=-1)
        return s and d.add("MatMul", [s, x], wide(np.matmul))
    if not k:
        return None
    n = r.choice((1, 2, 3, 4, 8, 9, 16) + tuple(d.dims))
    w = d.input([k, n]) if isinstance(n, str) or r.random() < 0.3 else d.weight(k, n)
    y = d.add("MatMul", [x, w], wide(np.matmul))
    if y and d.fixed(y, -1) and r.random() < 0.6:
        y = d.add("Add", [y, d.weight(d.fixed(y, -1))], np.add) or y
    return y


def reshape(d):
    r, x = d.r, d.pick(1, 5, "ffib")
    rank, what = d.rank(x), r.randrange(6)
    if what == 0:
        axis = r.randint(0, rank)
        return d.add(
            "Flatten",
            [x],
            lambda a: a.reshape(math.prod(a.shape[:axis]), math.prod(a.shape[axis:])),
            axis=axis,
        )
    if what == 1:
        axis = r.randint(0, rank)
        return d.add("Unsqueeze", [x, d.const([axis])], lambda a, _: np.expand_dims(a, axis))
    if what == 2:
        ones = [i for i in range(rank) if d.fixed(x, i) == 1]
        return (
            d.add("Squeeze", [x, d.const(ones[:1])], lambda a, _: np.squeeze(a, ones[0]))
            if ones
            else None
        )
    if what == 3:  # neighbours merged, all but one of them fixed
        i = r.randrange(max(1, rank - 1))
        shape = [0] * rank
        shape[i : i + 2] = [-1]
        if i + 2 < rank and 0 in [s for k in range(i + 2, rank) for s in d.sizes(x, k)]:
            return None
        if i + 2 < rank:
            sizes = [d.fixed(x, k) for k in range(i + 2, rank)]
            if None in sizes:
                return None
            shape[i + 1 :] = sizes
    elif what == 4:  # one axis in two
        i = r.randrange(rank)
        n = d.fixed(x, i)
        some = [k for k in range(2, n + 1) if n % k == 0] if n else []
        rest = [d.fixed(x, k) for k in range(i + 1, rank)]
        if not some or None in rest:
            return None
        k = r.choice(some)
        shape = [0] * i + r.choice(([k, n // k], [n // k, k])) + rest
    else:
        return by_shape(d, x)

    def function(a, s):
        if 0 in a.shape and -1 in s:
            raise ValueError  # what -1 stands for is anybody's guess
        return a.reshape([a.shape[i] if v == 0 else v for i, v in enumerate(s)])

    return d.add("Reshape", [x, d.const(shape)], function)


def by_shape(d, x):
    """The form that exporters write: sizes of the tensor itself, computed when it runs."""
    r, rank = d.r, d.rank(x)
    s = d.add("Shape", [x], lambda a: np.array(a.shape, np.int64))
    d.fresh.pop()
    i = r.randrange(rank)
    picked = d.add("Gather", [s, d.const([i])], lambda a, k: a[k], axis=0)
    d.fresh.pop()
    if r.random() < 0.4:
        return d.add(
            "Expand",
            [d.const(d.random((1,)), F), picked],
            lambda a, k: np.broadcast_to(a, k).copy(),
        )
    tail = [d.fixed(x, k) for k in range(rank) if k != i]
    if None in tail:
        return None
    whole = d.add(
        "Concat", [picked, d.const([math.prod(tail)])], lambda *a: np.concatenate(a), axis=0
    )
    d.fresh.pop()
    return d.add(
        "Reshape",
        [x, whole],
        lambda a, k: a.reshape([a.shape[i] if v == 0 else v for i, v in enumerate(k)]),
    )


def transpose(d):
    x = d.pick(2, 5, "ffib")
    perm = list(range(d.rank(x)))
    d.r.shuffle(perm)
    return d.add("Transpose", [x], lambda a: a.transpose(perm), perm=perm)


def split(d):
    r, x = d.r, d.pick(1, 4)
    axis = r.randrange(d.rank(x))
    n = d.fixed(x, axis)
    if not n or n < 2:
        return None
    k = r.randint(2, min(n, 4))
    cut = sorted(r.randint(0, n) for _ in range(k - 1))
    return d.add(
        "Split",
        [x, d.const([b - a for a, b in zip([0] + cut, cut + [n])])],
        lambda a, _: tuple(np.split(a, cut, axis)),
        k,
        axis=axis,
    )


def spread(d):
    r, x = d.r, d.pick(1, 4, "ffib")
    if r.random() < 0.5:
        times = [r.choice((1, 1, 2, 3)) for _ in range(d.rank(x))]
        return d.add("Tile", [x, d.const(times)], np.tile)
    shape = [r.choice((1, 2, 4)) if d.fixed(x, i) == 1 else 1 for i in range(d.rank(x))]
    shape = [r.choice((1, 3))] * r.randint(0, 1) + shape
    return d.add(
        "Expand",
        [x, d.const(shape)],
        lambda a, s: np.broadcast_to(a, np.broadcast_shapes(a.shape, tuple(s))).copy(),
    )


def gather(d):
    r, x = d.r, d.pick(1, 4, "ffi")
    axis = r.randrange(d.rank(x))
    least = min(d.sizes(x, axis))
    if not least:
        return None
    i = d.np.integers(-least, least, r.choice(((), (1,), (3,), (4,), (2, 3), (8,)))).astype(
        r.choice((np.int64, np.int32))
    )
    return d.add("Gather", [x, d.const(i, i.dtype)], lambda a, k: np.take(a, k, axis), axis=axis)


def where(d):
    r, x = d.r, d.pick()
    op = r.choice(list(COMPARE))
    c = d.add(op, [x, d.other(x)], COMPARE[op], steps=True)
    if c and r.random() < 0.3:
        c = d.add("Not", [c], np.logical_not)
    return c and d.add("Where", [c, x, d.other(x)], np.where)


CASTS = {
    TensorProto.INT64: np.int64,
    TensorProto.INT32: np.int32,
    TensorProto.BOOL: bool,
    TensorProto.FLOAT16: np.float16,
    TensorProto.DOUBLE: np.float64,
    TensorProto.INT8: np.int8,
    TensorProto.UINT8: np.uint8,
    TensorProto.FLOAT: F,
}


def cast(d):
    r, x = d.r, d.pick(0, 5, "ffib")
    to = r.choice(list(CASTS))
    if CASTS[to] in (np.int8, np.uint8) and d.kind(x) == "f":
        to = TensorProto.INT32  # outside of the range it is anybody's guess
    y = d.add(
        "Cast",
        [x],
        lambda a: a.astype(CASTS[to]),
        steps=d.kind(x) == "f" and CASTS[to] not in (np.float16, np.float64, F),
        to=to,
    )
    return (
        y and d.add("Cast", [y], lambda a: a.astype(F), to=TensorProto.FLOAT)
        if r.random() < 0.8
        else y
    )


def quantised(d):
    """Through bytes and back, with a layer between in half the cases. Scales are powers of two:
    ties are ties in every arithmetic."""
    r, x = d.r, d.pick(1, 4)
    kind = r.choice((np.int8, np.uint8))
    lo, hi = np.iinfo(kind).min, np.iinfo(kind).max

    def bytes_of(x):
        top = max(max(np.abs(a).max(initial=0) for a in d.value[x]), 0.01)
        scale, zero = F(2.0 ** np.ceil(np.log2(top / 100))), kind(r.randint(max(lo, -20), 120))
        q = d.add(
            "QuantizeLinear",
            [x, d.const(scale, F), d.const(zero, kind)],
            lambda a, s, z: np.clip(to_integers(a / s, z), lo, hi).astype(kind),
            steps=True,
        )
        return q and d.add(
            "DequantizeLinear",
            [q, *d.nodes[-1].input[1:]],
            lambda a, s, z: ((a.astype(F) - z) * s).astype(F),
        )

    y = bytes_of(x)
    k = d.fixed(x, -1)
    if y and k and r.random() < 0.6 and d.rank(x) > 1:
        n = r.choice((1, 3, 4, 8, 16))
        w = d.const(d.np.integers(-100, 100, (k, n)), np.int8)
        scale = d.const(2.0 ** d.np.integers(-9, -5, n) if r.random() < 0.5 else F(1 / 128), F)
        v = d.add("DequantizeLinear", [w, scale], lambda a, s: (a * s).astype(F), axis=1)
        if v:
            d.fresh.pop()
            y = d.add("MatMul", [y, v], wide(np.matmul))
            y = y and bytes_of(y)
    return y


def scatter(d):
    """Rows of a tensor replaced, at constant places."""
    r, x = d.r, d.pick(1, 3)
    least = min(d.sizes(x, 0))
    if not least or None in known(d, x, 0):
        return None
    rows = sorted(r.sample(range(least), r.randint(1, min(3, least))))
    sizes = known(d, x, 0)
    sizes[0] = len(rows)

    def function(a, i, u):
        a = a.copy()
        a[i[:, 0]] = u
        return a

    return d.add("ScatterND", [x, d.const([[i] for i in rows]), d.input(sizes)], function)


def triangle(d):
    x = d.pick(2, 4)
    upper = d.r.randint(0, 1)
    return d.add("Trilu", [x], np.triu if upper else np.tril, upper=upper)


OPS = {
    twins: 14,
    unary: 8,
    binary: 9,
    concat: 10,
    scan: 7,
    normalise: 8,
    reduce: 8,
    slice_: 6,
    pad: 6,
    matmul: 6,
    conv: 5,
    pool: 3,
    reshape: 7,
    transpose: 5,
    split: 3,
    spread: 4,
    gather: 5,
    where: 4,
    cast: 4,
    quantised: 4,
    scatter: 2,
    triangle: 2,
}
