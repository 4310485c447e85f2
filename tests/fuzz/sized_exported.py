"""What exporters and ONNX Runtime's optimiser write, for graphs of sized.py: shapes computed from
shapes, attention with caches, fused operators, products of few bits. The oracle is ONNX Runtime."""

import numpy as np
from onnx import TensorProto
from sized import axes_of
from sized_nodes import hidden, maybe, numbers, sizes_of, some
from sized_runtime import MS, node

F = np.float32


def size(d, x, axis, flat=True):
    """A size of x as a list of one, or a scalar."""
    s = sizes_of(d, x)
    if flat and d.r.random() < 0.5:
        ends = [d.const([axis]), d.const([axis + 1]), d.const([0])]
        return hidden(d, node(d, "Slice", [s, *ends]))
    n = hidden(d, node(d, "Gather", [s, d.const(axis)], axis=0))
    return hidden(d, node(d, "Unsqueeze", [n, d.const([0])])) if flat else n


def steps(d, *chain):
    """Nodes one after the other; each: op, operands of which None is the last result."""
    y = None
    for op, inputs, *more in chain:
        y = node(d, op, [y if k is None else k for k in inputs], **(more[0] if more else {}))
        if not y:
            return None
        hidden(d, y)
    d.fresh.append(y)
    return y


# -- shapes ------------------------------------------------------------------------------------


def expanded(d):
    """torch.expand: -1 keeps a size."""
    r, x = d.r, d.pick(1, 4)
    axes = axes_of(d.value[x], d.cases)
    ones = [i for i, v in enumerate(axes) if v == 1]
    i = r.choice(ones) if ones else r.randrange(len(axes) + 1)
    if not ones:
        x = node(d, "Unsqueeze", [x, d.const([i])])
        axes.insert(i, 1)
    other = d.pick(1, 4)
    n = size(d, other, r.randrange(d.rank(other)))
    parts = [d.const([-1])] * len(axes)
    parts[i] = n
    wish = hidden(d, node(d, "Concat", parts, axis=0))
    ones = hidden(d, node(d, "Expand", [d.const([1]), d.const([len(axes)])]))
    minus = hidden(d, node(d, "Mul", [ones, d.const(-1)]))
    same = hidden(d, node(d, "Equal", [wish, minus]))
    shape = hidden(d, node(d, "Where", [same, ones, wish]))
    return node(d, "Expand", [x, shape])


def windowed(d):
    """Padded to a multiple of a window, and cut into windows."""
    r, x = d.r, d.pick(2, 3)
    axis, w = r.randrange(d.rank(x)), r.choice((2, 3, 4, 7))
    rest = [d.fixed(x, i) for i in range(d.rank(x)) if i != axis]
    if None in rest:
        return None
    n = size(d, x, axis)
    more = hidden(d, node(d, "Mod", [n, d.const([w])]))
    more = hidden(d, node(d, "Sub", [d.const([w]), more]))
    more = hidden(d, node(d, "Mod", [more, d.const([w])]))
    zero = d.const([0])
    pads = [zero] * 2 * d.rank(x)
    pads[d.rank(x) + axis] = more
    p = hidden(d, node(d, "Concat", pads, axis=0))
    x = node(d, "Pad", [x, p])
    if not x:
        return None
    n = size(d, x, axis)
    many = hidden(d, node(d, "Div", [n, d.const([w])]))
    parts = [d.const([s]) for s in rest]
    parts[axis:axis] = [many, d.const([w])]
    shape = hidden(d, node(d, "Concat", parts, axis=0))
    return node(d, "Reshape", [x, shape])


def halves(d):
    """chunk(2) and its like: cut at a place that follows from a size; the rest rolled to the front."""
    r, x = d.r, d.pick(1, 4)
    axis = r.randrange(d.rank(x))
    n = size(d, x, axis)
    by, what = d.const([r.choice((2, 3))]), r.randrange(4)
    at = hidden(d, node(d, "Div", [n, by]))
    if what == 0:
        at = hidden(d, node(d, "Sub", [n, at]))
    if what == 1:
        at = d.const([r.choice((1, -1, 2))])
    first = node(d, "Slice", [x, d.const([0]), at, d.const([axis])])
    last = node(d, "Slice", [x, at, d.const([np.iinfo(np.int64).max]), d.const([axis])])
    if not first or not last:
        return None
    if r.random() < 0.6:
        return node(d, "Concat", [last, first], axis=axis)
    return last


def pieces(d):
    """Split where the run knows how long the pieces are."""
    r, x = d.r, d.pick(1, 3)
    axis = r.randrange(d.rank(x))
    n = size(d, x, axis)
    first = hidden(d, node(d, "Div", [n, d.const([2])]))
    rest = hidden(d, node(d, "Sub", [n, first]))
    cut = hidden(d, node(d, "Concat", [first, rest], axis=0))
    return node(d, "Split", [x, cut], 2, axis=axis)


def merged(d):
    """Two or three axes as one, worked on, and split again by their sizes."""
    r, x = d.r, d.pick(2, 4)
    axes = axes_of(d.value[x], d.cases)
    i = r.randrange(len(axes) - 1)
    if any(0 in d.sizes(x, k) for k in range(len(axes))):
        return None
    parts = [size(d, x, k) for k in range(len(axes))]
    shape = parts[:i] + [d.const([-1])] + parts[i + 2 :]
    shape = hidden(d, node(d, "Concat", shape, axis=0))
    y = node(d, "Reshape", [x, shape])
    if not y:
        return None
    op = r.choice(("Relu", "Softmax", "CumSum", "Transpose", "ReduceSum"))
    if op == "ReduceSum":
        return node(d, op, [y, d.const([i])], keepdims=r.randint(0, 1))
    if op == "CumSum":
        y = node(d, op, [y, d.const(i)])
    elif op == "Softmax":
        y = node(d, op, [y], axis=i)
    elif op == "Relu":
        y = node(d, op, [y])
    else:
        return node(d, op, [y], perm=list(reversed(range(d.rank(y)))))
    whole = hidden(d, node(d, "Concat", parts, axis=0))
    return y and node(d, "Reshape", [y, whole])


def causal(d):
    """A triangle cut from a constant by the run's sizes, and what is below it hidden."""
    r = d.r
    n = r.choice((3, *some(d)))
    x = d.input([r.choice((1, 2, *some(d))), n, n])
    most = max(d.sizes(x, 1)) + r.randint(0, 3)
    mask = d.const(np.tril(np.ones((1, most, most), bool)), bool)
    s = size(d, x, 1)
    for axis in (1, 2):
        mask = node(d, "Slice", [mask, d.const([0]), s, d.const([axis])])
        mask = mask and hidden(d, mask)
    if r.random() < 0.4:
        i = node(d, "Range", [d.const(0), size(d, x, 1, False), d.const(1)])
        a = hidden(d, node(d, "Unsqueeze", [hidden(d, i), d.const([1])]))
        b = hidden(d, node(d, "Unsqueeze", [i, d.const([0])]))
        mask = hidden(d, node(d, "GreaterOrEqual", [a, b]))
    y = node(
        d, "Where", [mask, x, d.const(r.choice((-1e9, -65504.0)) if r.random() < 0.5 else 0, F)]
    )
    return hidden(d, y) and node(d, "Softmax", [y], axis=-1)


def averaged(d):
    """A mean over what a mask keeps; divided by its count."""
    r = d.r
    b, n, c = r.choice((1, 2, *d.dims)), r.choice((3, *some(d))), r.choice((1, 4, 8))
    x, m = d.input([b, n, c]), numbers(d, [b, n], 0, 1)
    f = hidden(d, node(d, "Cast", [m], to=TensorProto.FLOAT))
    f = hidden(d, node(d, "Unsqueeze", [f, d.const([2])]))
    y = hidden(d, node(d, "Mul", [x, f]))
    y = hidden(d, node(d, "ReduceSum", [y, d.const([1])], keepdims=0))
    k = hidden(d, node(d, "ReduceSum", [f, d.const([1])], keepdims=0))
    k = hidden(d, node(d, "Clip", [k, d.const(1e-3, F)]))
    return node(d, "Div", [y, k])


def positions_of(d):
    """Position numbers by a running sum over a mask, and rows of a table by them."""
    r = d.r
    b, n = r.choice((1, 2, *d.dims)), r.choice((3, 5, *some(d)))
    m = numbers(d, [b, n], 0, 1)
    most = max(c.get(n, n) for c in d.cases)
    p = hidden(d, node(d, "CumSum", [m, d.const(1)]))
    p = hidden(d, node(d, "Mul", [p, m]))
    p = hidden(d, node(d, "Add", [p, d.const(r.choice((0, 1)))]))
    return node(d, "Gather", [d.weight(most + 2, r.choice((1, 4, 8))), p])


def tiled(d):
    r, x = d.r, d.pick(1, 3)
    axes = axes_of(d.value[x], d.cases)
    reps = [r.choice((1, 1, 2, 3)) for _ in axes]
    if r.random() < 0.4 and 1 in axes:
        other = d.pick(1, 4)
        parts = [d.const([1])] * len(axes)
        parts[axes.index(1)] = size(d, other, r.randrange(d.rank(other)))
        return node(d, "Tile", [x, hidden(d, node(d, "Concat", parts, axis=0))])
    return node(d, "Tile", [x, d.const(reps)])


def like(d):
    """zeros_like, full_like, arange of a tensor's size, added to it."""
    r, x = d.r, d.pick(1, 4)
    s = sizes_of(d, x)
    value = TensorProto(data_type=TensorProto.FLOAT, dims=[1], float_data=[r.choice((0, 1, 2.5))])
    y = node(d, "ConstantOfShape", [s], value=value)
    if r.random() < 0.3:
        z = node(d, "NonZero", [y])
        return z and node(d, "Shape", [z])
    return y and node(d, r.choice(("Add", "Sub", "Mul")), [x, y])


def stretched(d):
    """A picture brought to the size of another one, then joined with it."""
    r = d.r
    n = r.choice((1, 2, *d.dims))
    a = d.input([n, r.choice((1, 2, 4)), r.choice((3, 4, *some(d))), r.choice((2, 3, *some(d)))])
    b = d.input([n, r.choice((1, 2, 4)), r.choice((5, 8, *some(d))), r.choice((2, 7, *some(d)))])
    head = hidden(d, node(d, "Slice", [sizes_of(d, a), d.const([0]), d.const([2])]))
    tail = hidden(d, node(d, "Slice", [sizes_of(d, b), d.const([2]), d.const([4])]))
    whole = hidden(d, node(d, "Concat", [head, tail], axis=0))
    mode = r.choice(("nearest", "linear", "cubic"))
    y = node(
        d,
        "Resize",
        [a, "", "", whole],
        mode=mode,
        coordinate_transformation_mode=r.choice(("asymmetric", "half_pixel", "align_corners")),
        nearest_mode="floor" if mode == "nearest" else None,
    )
    return y and node(d, "Concat", [y, b], axis=1)


# -- attention ---------------------------------------------------------------------------------


def attends(d):
    """Attention of opset 23, heads in an axis or in the last one; with a mask, a past."""
    r = d.r
    b, h = r.choice((1, 2, *some(d))), r.choice((1, 2, 4))
    kv = r.choice([g for g in (1, 2, h) if h % g == 0])
    n, m, size, vs = (
        r.choice((1, 4, *some(d))),
        r.choice((1, 5, 8, *some(d))),
        r.choice((4, 8)),
        r.choice((4, 8)),
    )
    flat = r.random() < 0.4
    more = dict(is_causal=r.choice((0, 0, 1)), softcap=maybe(d, 2.0, 0.2), scale=maybe(d, 0.3, 0.3))
    if flat:
        more.update(q_num_heads=h, kv_num_heads=kv)
        names = [d.input([b, n, h * size]), d.input([b, m, kv * size]), d.input([b, m, kv * vs])]
    else:
        names = [d.input([b, h, n, size]), d.input([b, kv, m, size]), d.input([b, kv, m, vs])]
    past = r.choice((0, 3)) if r.random() < 0.3 else None
    if past and n != m:  # ONNX Runtime alone lets a single query see all keys then
        more["is_causal"] = 0
    mask = ""
    if r.random() < 0.4 and past is None:
        shape = r.choice(([n, m], [1, 1, n, m], [b, 1, n, m], [b, h, n, m]))
        mask = d.input(shape, r.choice((F, F, bool)))
    names.append(mask)
    if past is not None:
        names += [d.input([b, kv, past, size]), d.input([b, kv, past, vs])]
    while not names[-1]:
        names.pop()
    return node(d, "Attention", names, 1 if past is None else 3, **more)


def rotates(d):
    r = d.r
    b, h, n, half = (
        r.choice((1, 2, *some(d))),
        r.choice((1, 2)),
        r.choice((1, 4, *some(d))),
        r.choice((2, 4)),
    )
    x = d.input([b, h, n, 2 * half])
    most = max(2, max(c.get(n, n) for c in d.cases) + r.randint(0, 3))  # verify draws 0 and 1
    tables = [d.weight(most, half), d.weight(most, half)]
    if r.random() < 0.5:
        at = numbers(d, [b, n], 0, most - 1)
        if r.random() < 0.5:
            return node(
                d, "RotaryEmbedding", [x, at, *tables], domain=MS, interleaved=r.randint(0, 1)
            )
        return node(d, "RotaryEmbedding", [x, *tables, at], interleaved=r.randint(0, 1))
    tables = [d.input([b, n, half]), d.input([b, n, half])]
    return node(d, "RotaryEmbedding", [x, *tables], interleaved=r.randint(0, 1))


def multi_head(d):
    r = d.r
    b, h, size = r.choice((1, 2, *some(d))), r.choice((1, 2, 4)), r.choice((4, 8))
    n, m = r.choice((1, 4, *some(d))), r.choice((1, 5, 8, *some(d)))
    names = [d.input([b, n, h * size]), d.input([b, m, h * size]), d.input([b, m, h * size])]
    names.append(maybe(d, d.weight(3 * h * size), 0.3) or "")
    names.append(numbers(d, [b, m], 0, 1, np.int32) if r.random() < 0.3 else "")
    names.append(d.input([r.choice((1, b)), r.choice((1, h)), n, m]) if r.random() < 0.3 else "")
    while not names[-1]:
        names.pop()
    return node(
        d,
        "MultiHeadAttention",
        names,
        domain=MS,
        num_heads=h,
        unidirectional=r.choice((0, 0, 1)),
        scale=maybe(d, 0.4, 0.3),
    )


def grouped(d):
    """A decoder's step: a past of some length, keys turned by their positions."""
    r = d.r
    b, kv, wide = r.choice((1, 2)), r.choice((1, 2)), r.choice((8, 16))
    h, n = kv * r.choice((1, 2)), r.choice((1, 3, *some(d)))
    past = r.choice((0, 2, 4)) if n != 1 else r.choice((0, 3, 4))
    if isinstance(n, str):
        past = 0
    names = [d.input([b, n, h * wide]), d.input([b, n, kv * wide]), d.input([b, n, kv * wide])]
    names += [d.input([b, kv, past, wide]), d.input([b, kv, past, wide])] if past else ["", ""]
    total = [past + c.get(n, n) for c in d.cases]
    mask = numbers(d, [b, n if isinstance(n, str) else past + n], 1, 1)
    k = hidden(d, node(d, "ReduceSum", [mask, d.const([1])], keepdims=0))
    k = hidden(d, node(d, "Sub", [k, d.const(1)]))
    names.append(hidden(d, node(d, "Cast", [k], to=TensorProto.INT32)))
    k = size(d, mask, 1, False)
    names.append(hidden(d, node(d, "Cast", [k], to=TensorProto.INT32)))
    rotary = r.random() < 0.4
    if rotary:
        names += [d.weight(max(total) + 1, wide // 2), d.weight(max(total) + 1, wide // 2)]
    return node(
        d,
        "GroupQueryAttention",
        names,
        3,
        domain=MS,
        num_heads=h,
        kv_num_heads=kv,
        do_rotary=int(rotary),
        rotary_interleaved=r.randint(0, 1) if rotary else None,
        softcap=maybe(d, 3.0, 0.2),
        local_window_size=maybe(d, 2, 0.2),
        scale=maybe(d, 0.3, 0.3),
    )


# -- fused ------------------------------------------------------------------------------------


def skipped(d):
    r, x = d.r, d.pick(3, 3)
    c = d.fixed(x, 2)
    y = c and d.twin(x)
    if not y or not all(a.size for a in d.value[x]):
        return None
    if r.random() < 0.4:
        more = [maybe(d, d.weight(c), 0.5) or ""]
        names = [x, y, d.weight(c)] + [k for k in more if k]
        op = "SkipSimplifiedLayerNormalization"
    else:
        names, op = [x, y, d.weight(c)], "SkipLayerNormalization"
        if r.random() < 0.6:
            names.append(d.weight(c))
            names += [d.weight(c)] if r.random() < 0.5 else []
    return node(d, op, names, domain=MS, epsilon=0.01)


def fused_bend(d):
    r, x = d.r, d.pick(1, 4)
    c = d.fixed(x, d.rank(x) - 1)
    op = r.choice(("BiasGelu", "FastGelu", "QuickGelu", "Gelu"))
    if op == "BiasGelu" and not c:
        return None
    bias = (
        [d.weight(c)] if op == "BiasGelu" or (op == "FastGelu" and c and r.random() < 0.5) else []
    )
    return node(d, op, [x, *bias], domain=MS)


def fused_product(d):
    r, x = d.r, d.pick(2, 4)
    a, b, k = r.randint(0, 1), r.randint(0, 1), None
    k = d.fixed(x, d.rank(x) - (2 if a else 1))
    if not k:
        return None
    n = r.choice((1, 3, 4, 8))
    w = d.weight(*((n, k) if b else (k, n)))
    if d.rank(x) == 2 and r.random() < 0.4:
        act = r.choice(("Relu", "Sigmoid", "Tanh", "LeakyRelu"))
        return node(
            d,
            "FusedGemm",
            [x, w, d.weight(n)],
            domain=MS,
            transA=a,
            transB=b,
            activation=act,
            activation_alpha=0.1 if act == "LeakyRelu" else None,
        )
    return node(d, "FusedMatMul", [x, w], domain=MS, transA=a, transB=b, alpha=r.choice((1.0, 0.5)))


def few_bits(d):
    """MatMulNBits."""
    r, x = d.r, d.pick(2, 3)
    k = d.fixed(x, d.rank(x) - 1)
    if not k:
        return None
    bits, block, n = r.choice((2, 4, 4, 4, 8)), r.choice((16, 32, 64)), r.choice((1, 3, 8, 16))
    many = -(-k // block)
    w = d.const(d.np.integers(0, 256, (n, many, block * bits // 8)), np.uint8)
    names = [x, w, d.const(2.0 ** d.np.integers(-5, 0, n * many), F)]
    if r.random() < 0.6:
        zeros = d.np.integers(0, 256, n * -(-many * bits // 8))
        names.append(d.const(zeros, np.uint8))
        if r.random() < 0.3:
            names += ["", d.weight(n)]
    elif r.random() < 0.3:
        names += ["", "", d.weight(n)]
    return node(
        d,
        "MatMulNBits",
        names,
        domain=MS,
        K=k,
        N=n,
        bits=bits,
        block_size=block,
        accuracy_level=r.choice((0, 0, 1)),
    )


def on_the_fly(d):
    """Quantised as it comes: DynamicQuantizeLinear, MatMulInteger, scaled; or as one operator."""
    r, x = d.r, d.pick(2, 3)
    k = d.fixed(x, d.rank(x) - 1)
    if not k or not all(a.size for a in d.value[x]):
        return None
    n = r.choice((1, 3, 8, 16))
    w = d.const(d.np.integers(-128, 128, (k, n)), np.int8)
    scale = d.const(2.0 ** d.np.integers(-7, -3, r.choice(((), (n,)))), F)
    if r.random() < 0.4:
        return node(d, "DynamicQuantizeMatMul", [x, w, scale], domain=MS, steps=True)
    q = node(d, "DynamicQuantizeLinear", [x], 3, steps=False)
    if not q:
        return None
    names = [hidden(d, k) for k in d.nodes[-1].output]
    y = node(d, "MatMulInteger", [q, w, names[2]])
    f = y and hidden(d, node(d, "Cast", [hidden(d, y)], to=TensorProto.FLOAT))
    s = f and hidden(d, node(d, "Mul", [names[1], scale]))
    return s and node(d, "Mul", [f, s])


def eight_bits(d):
    """QLinearAdd and others between a quantisation and its reverse."""
    r, x = d.r, d.pick(1, 4)
    kind = r.choice((np.int8, np.uint8))
    lo, hi = np.iinfo(kind).min, np.iinfo(kind).max

    def parameters():
        return [d.const(2.0 ** r.randint(-6, 0), F), d.const(r.randint(lo, hi), kind)]

    s = parameters()
    q = node(d, "QuantizeLinear", [x, *s], steps=True)
    if not q:
        return None
    hidden(d, q)
    t, op = (
        parameters(),
        r.choice(
            (
                "QLinearAdd",
                "QLinearMul",
                "QLinearSigmoid",
                "QLinearLeakyRelu",
                "QLinearConcat",
                "QLinearWhere",
                "QLinearGlobalAveragePool",
                "QLinearSoftmax",
            )
        ),
    )
    if op in ("QLinearAdd", "QLinearMul"):
        other = d.const(d.np.integers(lo, hi + 1, r.choice(((), (1,)))), kind)
        y = node(d, op, [q, *s, other, *parameters(), *t], domain=MS, steps=True)
    elif op == "QLinearConcat":
        y = node(d, op, [*t, q, *s, q, *s], domain=MS, axis=r.randrange(d.rank(x)))
    elif op == "QLinearWhere":
        c = node(d, "Greater", [x, d.const(0, F)], steps=True)
        y = c and node(d, op, [c, q, *s, d.const(0, kind), *parameters(), *t], domain=MS)
    elif op == "QLinearGlobalAveragePool":
        y = node(d, op, [q, *s, *t], domain=MS) if d.rank(x) == 4 else None
    elif op == "QLinearSoftmax":
        y = node(d, op, [q, *s, *t], domain=MS, axis=-1, opset=13)
    else:
        y = node(d, op, [q, *s, *t], domain=MS, alpha=0.1 if "Leaky" in op else None)
    return y and node(d, "DequantizeLinear", [hidden(d, y), *t])


EXPORTED = {
    expanded: 4,
    windowed: 4,
    halves: 5,
    pieces: 4,
    merged: 4,
    causal: 3,
    averaged: 2,
    positions_of: 2,
    tiled: 3,
    like: 2,
    stretched: 3,
    attends: 4,
    rotates: 2,
    multi_head: 3,
    grouped: 3,
    skipped: 3,
    fused_bend: 3,
    fused_product: 3,
    few_bits: 3,
    on_the_fly: 3,
    eight_bits: 3,
}
