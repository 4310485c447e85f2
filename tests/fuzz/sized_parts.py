"""Larger parts of graphs of sized.py: attention, layers that are alike, loops and branches, layers of
bytes; and operators that pick elements by others."""

import functools

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from sized import axes_of, info, to_integers, wide
from sized_ops import softmax
from sized_windows import F, drawn_window, picture, windows

# -- attention ---------------------------------------------------------------------------------

SCORES = 40000  # elements of a tensor of them


def attention(d):
    """softmax(q k^T s + mask) v, of one to three heads; sometimes with more keys than a row has
    registers."""
    r = d.r
    many = r.random() < 0.08
    heads, size = (1, 16) if many else (r.choice((1, 2, 3)), r.choice((4, 8, 16, 16, 32)))
    free = list(d.dims)
    queries = r.choice((1, 3, 16, 17, *free, *free))
    keys = r.choice((513, 576, 601)) if many else r.choice((1, 2, 8, 16, 33, *free, *free))
    groups = heads if heads == 1 or r.random() < 0.7 else 1
    q, k, v = (
        d.input([1, h, n, size]) for h, n in ((heads, queries), (groups, keys), (groups, keys))
    )
    t = d.add("Transpose", [k], lambda a: a.transpose(0, 1, 3, 2), perm=[0, 1, 3, 2])
    s = t and d.add("MatMul", [q, t], wide(np.matmul), most=SCORES)
    s = s and d.add("Mul", [s, d.const(size**-0.5, F)], np.multiply, most=SCORES)
    if s and r.random() < 0.5:
        mask = d.input([queries, keys]) if r.random() < 0.5 else d.input([1, 1, 1, keys])
        s = d.add("Add", [s, mask], np.add, most=SCORES)
    s = s and d.add("Softmax", [s], softmax(-1), axis=-1, most=SCORES)
    y = s and d.add("MatMul", [s, v], wide(np.matmul))
    for k in list(d.fresh):  # nothing else is to read these
        if max(a.size for a in d.value[k]) > 6000:
            d.fresh.remove(k)
    if y and r.random() < 0.4:
        y = d.add("Transpose", [y], lambda a: a.transpose(0, 2, 1, 3), perm=[0, 2, 1, 3])
        y = y and d.add(
            "Reshape",
            [y, d.const([0, 0, -1])],
            lambda a, _: a.reshape(*a.shape[:2], heads * size) if a.size else fail(),
        )
    return y


def fail():
    raise ValueError


# -- layers that are alike ---------------------------------------------------------------------


def layers(d):
    """Blocks of equal kernels with weights of their own, which a plan rolls up."""
    r = d.r
    x = d.pick(2, 4)
    width = d.fixed(x, -1)
    if not width or width > 17:
        width = r.choice((3, 4, 8, 16))
        x = d.input([r.choice((1, 5, *d.dims)), width])
    inner = r.choice((width, 4, 16))
    norm, gate, bias = r.random() < 0.4, r.random() < 0.3, r.random() < 0.7
    for _ in range(r.randint(3, 7)):
        y = x
        if norm:
            y = norm_of(d, y, width)
        h = y and d.add("MatMul", [y, small(d, width, inner)], wide(np.matmul))
        if h and bias:
            h = d.add("Add", [h, small(d, inner)], np.add)
        h = h and d.add("Relu", [h], lambda a: np.maximum(a, 0))
        if h and gate:
            g = d.add("MatMul", [y, small(d, width, inner)], wide(np.matmul))
            h = g and d.add("Mul", [h, g], np.multiply)
        h = h and d.add("MatMul", [h, small(d, inner, width)], wide(np.matmul))
        y = h and d.add("Add", [x, h], np.add)
        if not y:
            return None
        x = y
    return x


def small(d, *shape):
    return d.const(d.np.standard_normal(shape) * 0.3, F)


def norm_of(d, x, width):
    s, b = d.const(d.np.standard_normal(width), F), d.const(d.np.standard_normal(width), F)

    def function(a, s, b):
        c = a - a.mean(-1, keepdims=True)
        return c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * s + b

    return width > 1 and d.add("LayerNormalization", [x, s, b], wide(function), axis=-1)


def conv_of(a, w, pads, strides=(1, 1)):
    taps = windows(a, w.shape[2:], strides, (1, 1), pads, 0)
    return np.einsum("kncyx,ock->noyx", taps, w.reshape(*w.shape[:2], -1))


def conv_layers(d):
    """3x3 windows that leave the size, as blocks of networks of images have them."""
    r = d.r
    c = r.choice((4, 8, 16))
    free = list(d.dims)
    x = d.input([1, c, r.choice((4, 5, 7, *free)), r.choice((4, 6, 8, *free))])
    pads = [1, 1, 1, 1]
    for _ in range(r.randint(2, 4)):
        y = d.add(
            "Conv", [x, small(d, c, c, 3, 3)], wide(lambda a, w: conv_of(a, w, pads)), pads=pads
        )
        y = y and d.add("Relu", [y], lambda a: np.maximum(a, 0))
        y = y and d.add("Add", [x, y], np.add)
        if not y:
            return None
        x = y
    return x


# -- bytes -------------------------------------------------------------------------------------


def whole_input(d, axes):
    """Small integers."""
    k = d.input(axes)
    for case, a in enumerate(d.value[k]):
        d.value[k][case] = d.np.integers(-4, 5, a.shape).astype(F)
    return k


def bytes_of(d, x, kind):
    """x quantised by a power of two, and back. All numbers of these layers are whole, times a power
    of two: their sums are exact, and ties are ties, in every arithmetic."""
    lo, hi = np.iinfo(kind).min, np.iinfo(kind).max
    top = max(max(np.abs(a).max(initial=0) for a in d.value[x]), 0.01)
    scale = d.const(F(2.0 ** np.ceil(np.log2(top / 100))), F)
    zero = d.const(kind(d.r.randint(max(lo, -20), 120)), kind)
    q = d.add(
        "QuantizeLinear",
        [x, scale, zero],
        lambda a, s, z: np.clip(to_integers(a / s, z), lo, hi).astype(kind),
    )
    return q and d.add(
        "DequantizeLinear", [q, scale, zero], lambda a, s, z: ((a.astype(F) - z) * s).astype(F)
    )


def weights_of(d, *shape):
    """Bytes, and a scale for all or for each channel."""
    w = d.const(d.np.integers(-100, 101, shape), np.int8)
    many = d.r.random() < 0.5
    scale = d.const(2.0 ** d.np.integers(-9, -5, shape[0]) if many else F(1 / 128), F)
    axis = [slice(None)] + [None] * (len(shape) - 1)
    v = d.add(
        "DequantizeLinear",
        [w, scale],
        lambda a, s: (a * (s[tuple(axis)] if many else s)).astype(F),
        axis=0,
    )
    if v:
        d.fresh.remove(v)
    return v


def byte_layers(d):
    """Convolutions of bytes whose windows may be transformed, one or two of them."""
    r = d.r
    c, kind = r.choice((3, 8, 16, 16, 32)), r.choice((np.int8, np.uint8))
    free = list(d.dims)
    x = whole_input(d, [1, c, r.choice((4, 5, 8, *free)), r.choice((4, 6, 9, *free))])
    y = bytes_of(d, x, kind)
    for _ in range(r.randint(1, 2)):
        out = r.choice((4, 16))
        stride = r.choice((1, 1, 1, 2))
        pads = r.choice(([1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 2]))
        w = y and weights_of(d, out, d.fixed(y, 1), 3, 3)
        y = w and d.add(
            "Conv",
            [y, w],
            wide(functools.partial(conv_of, pads=pads, strides=(stride, stride))),
            pads=pads,
            strides=[stride, stride],
        )
        if y and r.random() < 0.6:
            y = d.add("Relu", [y], lambda a: np.maximum(a, 0))
        y = y and bytes_of(d, y, kind)
        if not y:
            return None
    return y


def whole_products(d):
    """MatMulInteger, with zero points or none."""
    r = d.r
    kind = r.choice((np.int8, np.uint8))
    k, n = r.choice((1, 4, 7, 16, 33)), r.choice((1, 3, 4, 8, 16))
    x = d.input([r.choice((1, 5, *d.dims)), k], kind)
    w = d.const(d.random((k, n), np.int8), np.int8)
    inputs = [x, w]
    if r.random() < 0.6:
        inputs += [
            d.const(kind(r.randint(0, 9)), kind),
            d.const(np.int8(r.randint(-5, 5)), np.int8),
        ]

    def function(a, b, *z):
        p, q = z if z else (0, 0)
        return (a.astype(np.int32) - np.int32(p)) @ (b.astype(np.int32) - np.int32(q))

    y = d.add("MatMulInteger", inputs, function)
    return y and d.add("Cast", [y], lambda a: a.astype(F), to=TensorProto.FLOAT)


# -- loops and branches ------------------------------------------------------------------------


def body(d, nodes, inputs, outputs, weights=()):
    return helper.make_graph(
        nodes,
        d.name("g"),
        inputs,
        outputs,
        [numpy_helper.from_array(np.asarray(a), k) for k, a in weights],
    )


def trips(d, of, stacked):
    """How often: a number, the size of an axis, or what an input says, of which nothing is known."""
    r = d.r
    if r.random() < 0.4 or (stacked and not d.rank(of)):
        return d.const(r.choice((0, 1, 2, 3, 5)), np.int64)
    if stacked or r.random() < 0.5 and d.rank(of):
        i = r.randrange(d.rank(of))
        s = d.add("Shape", [of], lambda a: np.array(a.shape, np.int64))
        n = d.add("Gather", [s, d.const(i)], lambda a, k: a[k], axis=0)
        d.fresh = [k for k in d.fresh if k not in (s, n)]
        return n
    k = d.name("x")
    d.inputs[k] = d.value[k] = [np.int64(r.randint(0, 5)) for _ in d.cases]
    d.axes[k] = []
    return k


def loop(d):
    """v = relu(v * a + b), stacked; ended by the counter in some."""
    r, v = d.r, d.pick(0, 3)
    i, c, x, go, p, s, y, out, a, b, most = (d.name("b") for _ in range(11))
    stack, early = r.random() < 0.6, r.randint(1, 3) if r.random() < 0.4 else None
    n = trips(d, v, stack)
    rank = d.rank(v)
    nodes = [
        helper.make_node("Mul", [x, a], [p]),
        helper.make_node("Add", [p, b], [s]),
        helper.make_node("Relu", [s], [y]),
    ]
    weights = [(a, F(r.choice((0.5, 1, -1, 0)))), (b, F(r.choice((0, 1, 0.25))))]
    if early:
        weights.append((most, np.int64(early)))
        nodes.append(helper.make_node("Less", [i, most], [go]))
    else:
        nodes.append(helper.make_node("Identity", [c], [go]))
    outputs = [info(go, bool, []), info(y, F, [None] * rank)]
    if stack:
        nodes.append(helper.make_node("Neg", [x], [out]))
        outputs.append(info(out, F, [None] * rank))
    graph = body(
        d,
        nodes,
        [info(i, np.int64, []), info(c, bool, []), info(x, F, [None] * rank)],
        outputs,
        weights,
    )

    def function(n, v):
        each = []
        for k in range(int(n)):
            each.append(-v)
            v = np.maximum(v * weights[0][1] + weights[1][1], 0).astype(F)
            if early and not k < early:
                break
        return (v, np.stack(each) if each else np.zeros((0, *v.shape), F)) if stack else v

    return d.add("Loop", [n, "", v], function, 2 if stack else 1, body=graph)


def scan_rows(d):
    """s = (s + row) / 2 along the first axis, forwards or back."""
    r, x = d.r, d.pick(1, 3)
    axes = axes_of(d.value[x], d.cases)[1:]
    if None in axes:
        return None
    start, back = d.input(axes), r.randint(0, 1)
    s, row, p, q, out, half = (d.name("b") for _ in range(6))
    nodes = [
        helper.make_node("Add", [s, row], [p]),
        helper.make_node("Mul", [p, half], [q]),
        helper.make_node("Sub", [q, row], [out]),
    ]
    shape = [None] * len(axes)
    graph = body(
        d,
        nodes,
        [info(s, F, shape), info(row, F, shape)],
        [info(q, F, shape), info(out, F, shape)],
        [(half, F(0.5))],
    )

    def function(s, a):
        each = []
        for row in a[::-1] if back else a:
            s = (s + row) * F(0.5)
            each.append(s - row)
        return s, np.stack(each) if each else a

    return d.add(
        "Scan", [start, x], function, 2, num_scan_inputs=1, body=graph, scan_input_directions=[back]
    )


def branch(d):
    """One of two functions of a tensor outside, by what an input says."""
    r, x = d.r, d.pick(0, 4)
    c = d.input([], bool)
    graphs, numbers = [], [F(r.choice((0, 1, 2, 0.5))) for _ in range(2)]
    for number, op in zip(numbers, ("Mul", "Add")):
        y, k = d.name("b"), d.name("b")
        graphs.append(
            body(
                d,
                [helper.make_node(op, [x, k], [y])],
                [],
                [info(y, F, [None] * d.rank(x))],
                [(k, number)],
            )
        )
    return d.add(
        "If",
        [c],
        lambda c, a: (a * numbers[0] if c else a + numbers[1]).astype(F),
        captured=[x],
        then_branch=graphs[0],
        else_branch=graphs[1],
    )


# -- what is picked by other elements ----------------------------------------------------------


def top(d):
    r, x = d.r, d.pick(1, 4)
    axis, largest = r.randrange(d.rank(x)), r.randint(0, 1)
    k = r.randint(0, min(4, min(d.sizes(x, axis))))
    how = r.random()
    if how < 0.3:  # a sort of all
        s = d.add("Shape", [x], lambda a: np.array(a.shape[axis:][:1]), start=axis, end=axis + 1)
    elif how < 0.5:  # so many as an input says
        s = d.add(
            "Clip",
            [d.input([1], np.int64), d.const(0), d.const(k)],
            lambda a, u, v: np.clip(a, u, v),
        )
    else:
        s = d.const([k])

    def function(a, k):
        at = np.argsort(-a if largest else a, axis, kind="stable").take(range(int(k[0])), axis)
        return np.take_along_axis(a, at, axis), at.astype(np.int64)

    return s and d.add("TopK", [x, s], function, 2, steps=True, axis=axis, largest=largest)


def picked(d):
    """Elements at constant places, each by itself, or replaced."""
    r, x = d.r, d.pick(1, 3)
    axis, least = r.randrange(d.rank(x)), min(min(d.sizes(x, i)) for i in range(d.rank(x)))
    if not least:
        return None
    shape = [r.randint(1, min(3, least)) for _ in range(d.rank(x))]
    n = min(d.sizes(x, axis))
    at = d.np.permuted(
        np.broadcast_to(
            np.arange(n).reshape([n] + [1] * (len(shape) - 1 - axis)),
            [n if i == axis else s for i, s in enumerate(shape)],
        ),
        axis=axis,
    ).take(range(min(shape[axis], n)), axis)
    if r.random() < 0.3:
        at = at - n if all(s == n for s in d.sizes(x, axis)) else at
    if r.random() < 0.5:

        def pick(a, i):
            i = np.where(i < 0, i + a.shape[axis], i)
            return np.take_along_axis(
                a[tuple(slice(s) if k != axis else slice(None) for k, s in enumerate(i.shape))],
                i,
                axis,
            )

        return d.add("GatherElements", [x, d.const(at)], pick, axis=axis)
    how = r.choice((None, "add", "mul", "max"))
    by = {"add": np.add, "mul": np.multiply, "max": np.maximum}

    def put(a, i, u):
        a = a.copy()
        i = np.where(i < 0, i + a.shape[axis], i)
        places = list(np.indices(i.shape))
        places[axis] = i
        a[tuple(places)] = by[how](a[tuple(places)], u) if how else u
        return a

    return d.add(
        "ScatterElements", [x, d.const(at), d.weight(*at.shape)], put, axis=axis, reduction=how
    )


def collided(d):
    """Many updates of few places, by constants that often name one alone, or by what an input
    says; the last one stays, or they are joined."""
    r, x = d.r, d.pick(1, 3)
    rank = d.rank(x)
    axis, sizes = r.randrange(rank), [min(d.sizes(x, i)) for i in range(rank)]
    if not min(sizes):
        return None
    shape = [
        r.choice((s, 1, max(1, s - 1))) if i != axis else r.choice((1, 3, 4, 8, 9))
        for i, s in enumerate(sizes)
    ]
    few = r.randint(1, min(2, sizes[axis]))
    at = d.np.integers(0, few, shape) + r.randint(0, sizes[axis] - few)
    if d.fixed(x, axis) and r.random() < 0.3:
        at = at - d.fixed(x, axis)
    how = r.choice((None, "add", "mul", "max", "min"))
    by = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    if how is None:  # which of them stays is nobody's business
        at = np.broadcast_to(at.take([0], axis), at.shape[:axis] + (1,) + at.shape[axis + 1 :])
    if sizes[axis] > 1 and r.random() < 0.25:  # `verify --train` draws 0 and 1
        index = d.name("x")
        d.inputs[index] = d.value[index] = [at.astype(np.int64)] * len(d.cases)
        d.axes[index] = list(at.shape)
    else:
        index = d.const(at)

    def put(a, i, u):
        a = a.copy()
        for place in np.ndindex(*i.shape):
            to = list(place)
            to[axis] = int(i[place])
            a[tuple(to)] = by[how](a[tuple(to)], u[place]) if how else u[place]
        return a

    updates = d.weight(*at.shape) if r.random() < 0.5 else d.input(list(at.shape))
    return d.add("ScatterElements", [x, index, updates], put, axis=axis, reduction=how)


def one_place(d):
    """Elements of an axis of one element, again and again: their gradients are added up."""
    r, x = d.r, d.pick(1, 4)
    ones = [i for i in range(d.rank(x)) if d.fixed(x, i) == 1]
    if not ones:
        return None
    axis = r.choice(ones)
    i = d.const(d.np.integers(-1, 1, r.choice(((3,), (4,), (2, 3), (8,), (1,)))))
    return d.add("Gather", [x, i], lambda a, k: np.take(a, k, axis), axis=axis)


def hot(d):
    """Rows of zeros with one place."""
    r = d.r
    depth = r.choice((1, 3, 8, 9))
    k = d.input([r.choice((1, 4, *d.dims))], np.int64)
    i = d.add("Clip", [k, d.const(0), d.const(depth - 1)], lambda a, u, v: np.clip(a, u, v))
    two = F([r.choice((0, -1)), r.choice((1, 3))])

    def function(i, _, v):
        return np.where(np.arange(depth) == i[:, None], v[1], v[0])

    return i and d.add("OneHot", [i, d.const(depth), d.const(two, F)], function, axis=-1)


def hardmax(d):
    x = d.pick(1, 4)
    axis = d.r.randrange(d.rank(x))

    def function(a):
        if not a.size:
            return a
        at = np.expand_dims(np.argmax(a, axis), axis)
        y = np.zeros_like(a)
        np.put_along_axis(y, at, 1, axis)
        return y

    return d.add("Hardmax", [x], function, steps=True, axis=axis)


def summed(d):
    """Einsum: products of two tensors over some axes."""
    r = d.r
    form = r.choice(("ij,jk->ik", "bij,bkj->bik", "ij,ij->i", "ij,k->jk", "bij->bji"))
    names = form.split("->")[0].split(",")
    x = d.pick(len(names[0]), len(names[0]))
    size = dict(zip(names[0], axes_of(d.value[x], d.cases)))
    if None in size.values():
        return None
    operands = [x]
    if len(names) > 1:
        operands.append(d.input([size.get(k) or r.choice((1, 3, 8, *d.dims)) for k in names[1]]))
    return d.add("Einsum", operands, wide(lambda *a: np.einsum(form, *a)), equation=form)


def larger(d):
    """Resize of a picture by a whole number or a half, or ConvTranspose."""
    r, x = d.r, picture(d)
    n = d.rank(x) - 2
    if r.random() < 0.5:
        by = [r.choice((1.0, 2.0, 3.0)) for _ in range(n)]

        def nearest(a, _):
            for i, k in enumerate(by):
                a = np.repeat(a, int(k), 2 + i)
            return a

        return d.add(
            "Resize",
            [x, "", d.const([1, 1, *by], F)],
            nearest,
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
    c, out = d.fixed(x, 1), r.choice((1, 3, 4))
    kernel, strides, _, _ = drawn_window(d, n, False)
    w = small(d, c, out, *kernel)

    def function(a, w):
        if not a.size:
            raise ValueError
        y = np.zeros(
            (a.shape[0], out, *((s - 1) * t + k for s, t, k in zip(a.shape[2:], strides, kernel)))
        )
        for at in np.ndindex(*kernel):
            place = tuple(
                slice(i, i + (s - 1) * t + 1, t) for i, s, t in zip(at, a.shape[2:], strides)
            )
            y[(slice(None), slice(None), *place)] += np.einsum(
                "nc...,co->no...", a, w[(slice(None), slice(None), *at)]
            )
        return y

    return d.add("ConvTranspose", [x, w], wide(function), strides=strides)


def recurrent(d):
    """LSTM, whose length is a dim in most."""
    r = d.r
    steps, batch, size, state = (
        r.choice((1, 4, *d.dims, *d.dims)),
        r.choice((1, 2, 3)),
        r.choice((1, 4, 8)),
        r.choice((1, 4, 8)),
    )
    x, w, q, b = (
        d.input([steps, batch, size]),
        small(d, 1, 4 * state, size),
        small(d, 1, 4 * state, state),
        small(d, 1, 8 * state),
    )

    def function(x, w, q, b):
        h = c = np.zeros((batch, state))
        each = np.zeros((x.shape[0], 1, batch, state))
        for t in range(x.shape[0]):
            i, o, f, g = np.split(
                x[t] @ w[0].T + h @ q[0].T + b[0, : 4 * state] + b[0, 4 * state :], 4, -1
            )
            i, o, f = (1 / (1 + np.exp(-v)) for v in (i, o, f))
            c = f * c + i * np.tanh(g)
            h = o * np.tanh(c)
            each[t, 0] = h
        return tuple(np.asarray(v, F) for v in (each, h[None], c[None]))

    return d.add(
        "LSTM",
        [x, w, q, b],
        lambda *a: function(*[np.asarray(v, np.float64) for v in a]),
        3,
        hidden_size=state,
    )


PARTS = {
    attention: 5,
    layers: 4,
    conv_layers: 2,
    byte_layers: 4,
    whole_products: 3,
    loop: 4,
    scan_rows: 3,
    branch: 3,
    top: 3,
    picked: 4,
    collided: 4,
    one_place: 2,
    hot: 2,
    hardmax: 2,
    summed: 3,
    larger: 3,
    recurrent: 2,
}
