"""Operators for graphs of sized.py whose oracle is ONNX Runtime: pictures, signals, indices, types of
few bits, recurrent layers."""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper
from sized import axes_of
from sized_runtime import node
from sized_windows import picture

F = np.float32


def maybe(d, value, chance=0.5):
    return value if d.r.random() < chance else None


def numbers(d, shape, lo, hi, dtype=np.int64):
    """Integers, as an initializer or as an input of which nothing is known."""
    axes = shape if isinstance(shape, list) else list(shape)
    if all(isinstance(v, int) for v in axes) and d.r.random() < 0.5:
        return d.const(d.np.integers(lo, hi + 1, axes), dtype)
    k = d.name("x")
    d.inputs[k] = d.value[k] = [
        d.np.integers(lo, hi + 1, [c.get(v, v) for v in axes]).astype(dtype) for c in d.cases
    ]
    d.axes[k] = axes
    return k


def some(d):
    """Dims of at least one; ONNX Runtime itself ends by a few operators without elements."""
    return [k for k, (lo, _) in d.dims.items() if lo]


def sizes_of(d, x):
    s = node(d, "Shape", [x])
    d.fresh.remove(s)
    return s


def hidden(d, k):
    """Nothing else is to read it."""
    if k in d.fresh:
        d.fresh.remove(k)
    return k


# -- pictures ----------------------------------------------------------------------------------


def resize(d):
    """By scales, by sizes, by a size that follows from another tensor's as exporters write it."""
    r, x = d.r, picture(d)
    rank = d.rank(x)
    mode = r.choice(
        ("nearest", "linear", "linear", "cubic") if rank == 4 else ("nearest", "linear")
    )
    where = r.choice(
        ("asymmetric", "half_pixel", "half_pixel", "align_corners", "pytorch_half_pixel")
    )
    more = dict(mode=mode, coordinate_transformation_mode=where)
    if mode == "nearest":
        more["nearest_mode"] = r.choice(
            ("floor", "round_prefer_floor", "ceil", "round_prefer_ceil")
        )
    if mode == "cubic":
        more.update(cubic_coeff_a=r.choice((-0.5, -0.75)), exclude_outside=r.randint(0, 1))
    elif mode == "linear" and r.random() < 0.2:
        more["antialias"] = 1
    how = r.randrange(4)
    if how == 0:
        some = (1.0, 2.0, 3.0) if where == "align_corners" else (0.5, 1.0, 2.0, 3.0, 1.5)
        scales = [1.0, 1.0] + [r.choice(some) for _ in range(rank - 2)]
        return node(d, "Resize", [x, "", d.const(scales, F)], **more)
    if how == 1:
        sizes = [r.randint(1, 9) for _ in range(rank - 2)]
        return node(d, "Resize", [x, "", "", d.const(sizes)], axes=list(range(2, rank)), **more)
    s = sizes_of(d, x)
    if how == 2:
        head = hidden(d, node(d, "Slice", [s, d.const([0]), d.const([2]), d.const([0])]))
        tail = hidden(d, node(d, "Slice", [s, d.const([2]), d.const([rank]), d.const([0])]))
        two = hidden(d, node(d, "Mul", [tail, d.const(r.choice((1, 2, 3)))]))
        whole = hidden(d, node(d, "Concat", [head, two], axis=0))
        return node(d, "Resize", [x, "", "", whole], **more)
    f = hidden(d, node(d, "Cast", [s], to=TensorProto.FLOAT))
    scale = d.const([1.0, 1.0] + [r.choice((0.5, 1.5, 2.0))] * (rank - 2), F)
    f = hidden(d, node(d, "Mul", [f, scale]))
    f = hidden(d, node(d, "Floor", [f]))
    whole = hidden(d, node(d, "Cast", [f], to=TensorProto.INT64))
    return node(d, "Resize", [x, "", "", whole], **more)


def sample(d):
    r, x = d.r, picture(d)
    rank = d.rank(x)
    if rank not in (4, 5):
        return None
    axes = axes_of(d.value[x], d.cases)
    if axes[0] is None:
        return None
    shape = [axes[0]] + [r.choice((1, 2, 3, 5, *d.dims)) for _ in range(rank - 2)]
    if r.random() < 0.4:
        theta = d.input([axes[0], rank - 2, rank - 1])
        c = axes[1]
        if any(not isinstance(v, int) for v in shape) or not isinstance(c, int):
            return None
        size = d.const([shape[0], c, *shape[1:]])
        grid = node(d, "AffineGrid", [theta, size], align_corners=r.randint(0, 1))
    else:
        grid = d.input([*shape, rank - 2])
        grid = node(d, "Mul", [grid, d.const(r.choice((0.3, 0.7, 1.0)), F)])
    mode = r.choice(("linear", "nearest", "cubic") if rank == 4 else ("linear", "nearest"))
    return grid and node(
        d,
        "GridSample",
        [x, grid],
        steps=mode == "nearest",
        mode=mode,
        padding_mode=r.choice(("zeros", "border", "reflection")),
        align_corners=r.randint(0, 1),
    )


def fits(d, x, kernel, pads=None):
    pads = pads or [0] * 2 * len(kernel)
    return all(
        min(d.sizes(x, i + 2)) + pads[i] + pads[i + len(kernel)] >= k for i, k in enumerate(kernel)
    )


def unpool(d):
    r, x = d.r, picture(d)
    n = d.rank(x) - 2
    kernel = [r.choice((1, 2, 2, 3)) for _ in range(n)]
    strides = [k if r.random() < 0.8 else 1 for k in kernel]
    if not fits(d, x, kernel):
        return None
    y = node(d, "MaxPool", [x], 2, kernel_shape=kernel, strides=strides)
    if not y:
        return None
    i = d.nodes[-1].output[1]
    return node(d, "MaxUnpool", [y, i], kernel_shape=kernel, strides=strides)


def lp(d):
    r, x = d.r, picture(d)
    n = d.rank(x) - 2
    if r.random() < 0.3:
        return node(d, "GlobalLpPool", [x], p=r.choice((1, 2, 3)))
    kernel = [r.choice((1, 2, 3)) for _ in range(n)]
    pads = maybe(d, [r.randint(0, k - 1) for k in kernel * 2])
    return fits(d, x, kernel, pads) and node(
        d,
        "LpPool",
        [x],
        kernel_shape=kernel,
        p=r.choice((1, 2, 3)),
        strides=[r.choice((1, 2)) for _ in kernel],
        pads=pads,
    )


def local(d):
    x = picture(d)
    return node(d, "LRN", [x], size=d.r.choice((1, 3, 5, 2)), alpha=0.1, beta=0.75, bias=1.0)


def roi(d):
    r, x = d.r, picture(d)
    n = min(d.sizes(x, 0))
    if d.rank(x) != 4 or not n:
        return None
    m = r.choice((0, 1, 2, 3, *d.dims))
    a, b = d.input([m, 2]), d.input([m, 2])
    rois = node(
        d, "Concat", [hidden(d, node(d, "Abs", [a])), hidden(d, node(d, "Abs", [b]))], axis=1
    )
    batch = numbers(d, [m], 0, n - 1)
    return rois and node(
        d,
        "RoiAlign",
        [x, rois, batch],
        output_height=r.choice((1, 2, 3)),
        output_width=r.choice((1, 2, 3)),
        sampling_ratio=r.choice((0, 1, 2)),
        spatial_scale=r.choice((1.0, 0.5)),
        mode=r.choice(("avg", "max")),
        coordinate_transformation_mode=r.choice(("half_pixel", "output_half_pixel")),
    )


def blocks(d):
    r, x = d.r, picture(d)
    if d.rank(x) != 4:
        return None
    if r.random() < 0.5:
        return node(d, "SpaceToDepth", [x], blocksize=r.choice((1, 2, 3)))
    return node(d, "DepthToSpace", [x], blocksize=r.choice((1, 2)), mode=r.choice(("DCR", "CRD")))


def columns(d):
    r = d.r
    kernel = [r.choice((1, 2, 3)) for _ in range(2)]
    image = [k + r.randint(0, 4) for k in kernel]
    c = r.choice((1, 2, 3))
    strides = [r.choice((1, 1, 2)) for _ in kernel]
    pads = [r.randint(0, 1) for _ in range(4)]
    many = [(image[i] + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i in range(2)]
    x = d.input([r.choice((1, 2, *d.dims)), c * int(np.prod(kernel)), int(np.prod(many))])
    return node(d, "Col2Im", [x, d.const(image), d.const(kernel)], strides=strides, pads=pads)


def crop_pad(d):
    r, x = d.r, d.pick(1, 4)
    axes = sorted(r.sample(range(d.rank(x)), r.randint(1, d.rank(x))))
    sizes = [r.choice((1, 2, 4, 7, 9)) for _ in axes]
    return node(d, "CenterCropPad", [x, d.const(sizes)], axes=axes)


def transposed(d):
    r, x = d.r, picture(d)
    c = d.fixed(x, 1)
    if not c:
        return None
    n = d.rank(x) - 2
    groups = r.choice([g for g in (1, 1, 2, c) if c % g == 0])
    kernel = [r.choice((1, 2, 3, 4)) for _ in range(n)]
    strides = [r.choice((1, 2, 3)) for _ in kernel]
    pads = [r.randint(0, (k - 1) // 2) for k in kernel * 2]
    return node(
        d,
        "ConvTranspose",
        [x, d.weight(c, r.choice((1, 2, 3)), *kernel)],
        group=groups,
        strides=strides,
        pads=maybe(d, pads),
        dilations=maybe(d, [r.choice((1, 2)) for _ in kernel], 0.3),
        output_padding=maybe(d, [r.randint(0, s - 1) for s in strides], 0.4),
    )


# -- signals -----------------------------------------------------------------------------------


def fourier(d):
    r = d.r
    n = r.choice((1, 2, 4, 5, 6, 8, 9, 12, 16, 20))
    batch = r.choice((1, 2, 3, *d.dims))
    if r.random() < 0.4:
        length = r.choice((16, 24, 33))
        step = r.choice((1, 4, 8))
        x = d.input([batch, length, r.choice((1, 1, 2))])
        size = r.choice((4, 8, 16))
        window = maybe(d, d.weight(size))
        return node(
            d,
            "STFT",
            [x, d.const(step), window or "", d.const(size)],
            onesided=r.randint(0, 1) if d.axes[x][2] == 1 else 0,
        )
    inverse = r.random() < 0.3
    x = d.input([batch, n, 3, 2 if inverse else r.choice((1, 2))])
    return node(
        d,
        "DFT",
        [
            x,
            d.const(r.choice((n, n, n + 1, max(1, n - 1)))) if r.random() < 0.4 else "",
            d.const(1),
        ],
        inverse=int(inverse),
        onesided=0 if inverse or d.axes[x][3] == 2 else r.randint(0, 1),
    )


# -- indices -----------------------------------------------------------------------------------


def reverse(d):
    r, x = d.r, d.pick(2, 4)
    t, b = r.choice(((0, 1), (1, 0)))
    axes = axes_of(d.value[x], d.cases)
    most = min(d.sizes(x, t))
    if axes[b] is None or most < 1:
        return None
    return node(
        d, "ReverseSequence", [x, numbers(d, [axes[b]], 1, most)], time_axis=t, batch_axis=b
    )


def kept(d):
    """Elements, or parts of an axis, where a condition holds."""
    r, x = d.r, d.pick(1, 3)
    axis = r.choice((None, *range(d.rank(x))))
    n = r.choice((1, 2, 3, 5))
    if n > min([int(np.prod(a.shape)) if axis is None else a.shape[axis] for a in d.value[x]]):
        return None
    c = d.const(d.np.integers(0, 2, n), bool)
    return node(d, "Compress", [x, c], axis=axis)


def ties(d):
    r, x = d.r, d.pick(1, 4)
    x = node(d, "Round", [x], steps=True)
    if not x:
        return None
    axis = r.randrange(d.rank(x))
    k = r.randint(0, min(6, min(d.sizes(x, axis))))
    at = node(d, "TopK", [x, d.const([k])], 2, axis=axis, largest=r.randint(0, 1))
    if r.random() < 0.3:
        return node(
            d, "ArgMax", [x], axis=axis, select_last_index=r.randint(0, 1), keepdims=r.randint(0, 1)
        )
    return at


def one_hot(d):
    r = d.r
    depth = r.choice((1, 3, 4, 8))
    x = numbers(d, [r.choice((1, 3, *d.dims)), r.choice((1, 2))], -depth - 1, depth + 1)
    values = d.const(r.choice(([0, 1], [2, -3], [1, 0])), r.choice((F, np.int64, F)))
    return node(d, "OneHot", [x, d.const(depth), values], axis=r.choice((-1, 0, 1, 2)))


def scatter_nd(d):
    r, x = d.r, d.pick(1, 4)
    rank = d.rank(x)
    k = r.randint(1, rank)
    axes = axes_of(d.value[x], d.cases)
    least = [min(d.sizes(x, i)) for i in range(k)]
    if 0 in least or None in axes[k:]:
        return None
    n = r.choice((1, 2, 3, 7))
    at = np.stack(
        [
            d.np.integers(-s if len(set(d.sizes(x, i))) == 1 else 0, s, n)
            for i, s in enumerate(least)
        ],
        -1,
    )
    how = r.choice((None, "add", "mul", "max", "min"))
    if how is None:
        at = np.unique(np.where(at < 0, at + [d.sizes(x, i)[0] for i in range(k)], at), axis=0)
        n = len(at)
    i = d.const(at)
    if r.random() < 0.5:
        i = d.name("x")
        d.inputs[i] = d.value[i] = [at] * len(d.cases)
        d.axes[i] = list(at.shape)
    return node(d, "ScatterND", [x, i, d.input([n, *axes[k:]])], reduction=how)


def gather_nd(d):
    r, x = d.r, d.pick(2, 4)
    axes = axes_of(d.value[x], d.cases)
    b = r.choice((0, 0, 1))
    k = r.randint(1, d.rank(x) - b)
    least = [min(d.sizes(x, i)) for i in range(b, b + k)]
    if 0 in least or None in axes[:b]:
        return None
    i = numbers(d, [*axes[:b], r.choice((1, 2, 3, *d.dims)), k], 0, min(least) - 1)
    return node(d, "GatherND", [x, i], batch_dims=b)


def gather_elements(d):
    r, x = d.r, d.pick(1, 4)
    axes = axes_of(d.value[x], d.cases)
    axis = r.randrange(d.rank(x))
    n = min(d.sizes(x, axis))
    if n < 1 or None in axes[:axis] + axes[axis + 1 :]:
        return None
    axes[axis] = r.choice((1, 2, 5, *d.dims))
    return node(d, "GatherElements", [x, numbers(d, axes, 0, n - 1)], axis=axis)


def positions(d):
    """NonZero, and what is gathered there."""
    r, x = d.r, d.pick(1, 3)
    c = node(d, "Greater", [x, d.const(0, F)], steps=True)
    at = c and node(d, "NonZero", [c])
    if not at:
        return None
    t = hidden(d, node(d, "Transpose", [at], perm=[1, 0]))
    hidden(d, at)
    return node(d, "GatherND", [x, t])


def distinct(d):
    r, x = d.r, d.pick(1, 2)
    x = node(d, "Round", [x], steps=True)
    if not x:
        return None
    if not all(a.size for a in d.value[x]):
        return None
    axis = r.choice((None, 0))
    return node(d, "Unique", [x], r.choice((1, 4)), axis=axis, sorted=r.choice((1, 1, 0)))


def band(d):
    r, x = d.r, d.pick(2, 4)
    return node(d, "Trilu", [x, numbers(d, [], -3, 3)], upper=r.randint(0, 1))


def counted(d):
    """A Range by a size, as exporters write positions, added to something."""
    r, x = d.r, d.pick(1, 4)
    axis = r.randrange(d.rank(x))
    s = sizes_of(d, x)
    n = hidden(d, node(d, "Gather", [s, d.const(axis)]))
    lo, step = r.choice((0, 0, 1, -2)), r.choice((1, 1, 2))
    i = node(d, "Range", [d.const(lo), n, d.const(step)])
    if not i:
        return None
    f = node(d, "Cast", [i], to=TensorProto.FLOAT)
    what = r.randrange(3)
    if what == 0:
        m = hidden(d, node(d, "Unsqueeze", [f, d.const([1])]))
        return node(d, "Mul", [m, f])
    if what == 1 and lo == 0 and step == 1:
        return node(d, "Gather", [x, i], axis=axis)
    a = hidden(d, node(d, "Unsqueeze", [i, d.const([0])]))
    b = hidden(d, node(d, "Unsqueeze", [i, d.const([1])]))
    return node(d, r.choice(("LessOrEqual", "Less", "Equal")), [a, b])


# -- integers ----------------------------------------------------------------------------------


def bits(d):
    r = d.r
    dtype = r.choice((np.uint8, np.uint32, np.uint64, np.int8, np.int32, np.int64, np.uint16))
    x = d.pick(0, 4, "i")
    x = node(d, "Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    y = x and d.other(x)
    if not y:
        return None
    what = r.choice(
        ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift", "Mod", "Min", "Max")
    )
    if what == "BitwiseNot":
        return node(d, what, [x])
    if what == "Mod":
        one = d.const(r.choice((3, 7, 2, 5)), dtype)
        return node(d, what, [x, one], fmod=r.choice((0, 1)))
    if what == "BitShift":
        if np.dtype(dtype).kind != "u":
            return None
        return node(
            d, what, [x, d.const(r.randint(0, 9), dtype)], direction=r.choice(("LEFT", "RIGHT"))
        )
    return node(d, what, [x, y])


def modulo(d):
    x = d.pick(0, 4)
    return node(d, "Mod", [x, d.const(d.r.choice((1.5, 2.0, -0.7)), F)], steps=True, fmod=1)


# -- types of few bits -------------------------------------------------------------------------

FEW = {
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "i4": ml_dtypes.int4,
    "u4": ml_dtypes.uint4,
    "bf16": ml_dtypes.bfloat16,
    "f4": ml_dtypes.float4_e2m1fn,
    "i16": np.int16,
    "u16": np.uint16,
    "i8": np.int8,
    "u8": np.uint8,
}


def few(d):
    """Through a small type and back, by casts or by scales: of all, of a channel, of blocks."""
    r, x = d.r, d.pick(1, 4)
    kind = r.choice(list(FEW))
    to = helper.np_dtype_to_tensor_dtype(np.dtype(FEW[kind]))
    if kind == "bf16" or r.random() < 0.3:
        if kind[0] in "iu":
            return None
        y = node(d, "Cast", [x], to=to, steps=True)
        return y and node(d, "Cast", [y], to=TensorProto.FLOAT)
    if kind == "f4":
        return None
    what = r.choice(("all", "channel", "blocks"))
    axis = r.randrange(d.rank(x))
    n = d.fixed(x, axis)
    size = None
    if what == "all":
        shape = []
    elif what == "channel":
        if not n:
            return None
        shape = [n]
    else:
        if not n or n % 2:
            return None
        axes = axes_of(d.value[x], d.cases)
        size = r.choice([b for b in (2, 4, 8, n) if n % b == 0])
        axes[axis] = n // size
        if any(not isinstance(v, int) for v in axes):
            return None
        shape = axes
    scale = d.const(2.0 ** d.np.integers(-6, 1, shape), F)
    zero = d.const(
        np.zeros(shape) if "f" in kind or r.random() < 0.5 else d.np.integers(0, 7, shape),
        FEW[kind],
    )
    more = dict(axis=axis if what != "all" else None, block_size=size)
    y = node(d, "QuantizeLinear", [x, scale, zero], steps=True, **more)
    return y and node(d, "DequantizeLinear", [y, scale, zero], **more)


def narrow_weights(d):
    """A product with weights of 4 or 8 bits, dequantised by channels or blocks."""
    r, x = d.r, d.pick(2, 4)
    k = d.fixed(x, d.rank(x) - 1)
    if not k:
        return None
    n = r.choice((1, 3, 4, 8, 16))
    kind = r.choice(("i4", "u4", "i8", "u8", "f8e4m3", "f8e5m2"))
    dtype = np.dtype(FEW[kind])
    lo, hi = {"i4": (-8, 7), "u4": (0, 15), "i8": (-128, 127), "u8": (0, 255)}.get(kind, (-4, 4))
    w = d.const(d.np.integers(lo, hi + 1, (k, n)), dtype)
    what = r.choice(("all", "channel", "rows", "blocks"))
    size = r.choice([b for b in (1, 2, 4, 8, 16, k) if k % b == 0])
    shape = {"all": [], "channel": [n], "rows": [k], "blocks": [k // size, n]}[what]
    scale = d.const(2.0 ** d.np.integers(-5, 0, shape), F)
    zero = d.const(np.zeros(shape) if "f" in kind else d.np.integers(0, 7, shape), dtype)
    f = node(
        d,
        "DequantizeLinear",
        [w, scale] + ([zero] if r.random() < 0.6 else []),
        axis={"all": None, "channel": 1, "rows": 0, "blocks": 0}[what],
        block_size=size if what == "blocks" else None,
    )
    return f and node(d, "MatMul", [x, f])


# -- recurrent layers --------------------------------------------------------------------------


def cells(d):
    r = d.r
    op, gates = r.choice((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    steps, batch = r.choice((1, 3, 5, *some(d))), r.choice((1, 2, 4, *some(d)))
    inputs, size = r.choice((1, 3, 8)), r.choice((1, 4, 5))
    way = r.choice(("forward", "reverse", "bidirectional"))
    n = 2 if way == "bidirectional" else 1
    x = d.input([steps, batch, inputs])
    names = [x, d.weight(n, gates * size, inputs), d.weight(n, gates * size, size)]
    names.append(maybe(d, d.weight(n, (2 if op != "RNN" else 2) * gates * size)) or "")
    least = min(c.get(steps, steps) for c in d.cases)
    names.append(
        numbers(d, [batch], min(1, least), least, np.int32) if least and r.random() < 0.3 else ""
    )
    names.append(d.input([n, batch, size]) if r.random() < 0.4 else "")
    more = dict(hidden_size=size, direction=way)
    if op == "LSTM":
        names.append(d.input([n, batch, size]) if r.random() < 0.4 else "")
        names.append(d.weight(n, 3 * size) if r.random() < 0.3 else "")
        more["input_forget"] = r.choice((None, None, 0))
    if op == "GRU":
        more["linear_before_reset"] = r.randint(0, 1)
    if r.random() < 0.2:
        more["clip"] = r.choice((0.5, 2.0))
    if r.random() < 0.3:
        one = {
            "LSTM": ["HardSigmoid", "Relu", "Tanh"],
            "GRU": ["HardSigmoid", "Softsign"],
            "RNN": ["Relu"],
        }[op]
        more["activations"] = one * n
    while names and not names[-1]:
        names.pop()
    y = node(d, op, names, r.choice((1, 2, 3)) if op == "LSTM" else r.choice((1, 2)), **more)
    return y


# -- norms and activations ---------------------------------------------------------------------


def norms(d):
    r, x = d.r, d.pick(2, 4)
    rank, c = d.rank(x), d.fixed(x, 1)
    last = d.fixed(x, rank - 1)
    what = r.choice(("group", "rms", "layer", "lp", "mvn", "instance", "batch"))
    if what == "group" and c:
        g = r.choice([v for v in range(1, c + 1) if c % v == 0])
        return node(
            d, "GroupNormalization", [x, d.weight(c), d.weight(c)], num_groups=g, epsilon=0.01
        )
    if what == "rms" and last:
        return node(d, "RMSNormalization", [x, d.weight(last)], epsilon=0.01)
    if what == "layer" and last:
        return node(d, "LayerNormalization", [x, d.weight(last)], r.choice((1, 1, 3)), epsilon=0.01)
    if what == "lp":
        return node(d, "LpNormalization", [x], axis=r.randrange(rank), p=r.choice((1, 2)))
    if what == "mvn":
        axes = sorted(r.sample(range(rank), r.randint(1, rank)))
        return (
            node(d, "MeanVarianceNormalization", [x], axes=axes)
            if all(min(d.sizes(x, i)) > 1 for i in axes)
            else None
        )
    if what == "instance" and c and rank > 2:
        return node(d, "InstanceNormalization", [x, d.weight(c), d.weight(c)], epsilon=0.01)
    if what == "batch" and c:
        var = d.const(d.np.uniform(0.5, 2, c), F)
        return node(d, "BatchNormalization", [x, d.weight(c), d.weight(c), d.weight(c), var])
    return None


def bends(d):
    r, x = d.r, d.pick(0, 4)
    op, more = r.choice(
        (
            ("Celu", dict(alpha=1.5)),
            ("Shrink", dict(bias=0.5, lambd=0.5)),
            ("Mish", {}),
            ("ThresholdedRelu", dict(alpha=0.4)),
            ("HardSigmoid", {}),
            ("Selu", {}),
            ("Softsign", {}),
            ("Gelu", dict(approximate="tanh")),
            ("Gelu", {}),
            ("Hardmax", {}),
            ("Swish", dict(alpha=1.5)),
            ("Asinh", {}),
            ("Atan", {}),
            ("IsNaN", {}),
            ("IsInf", {}),
            ("Sinh", {}),
            ("Erf", {}),
        )
    )
    if op == "Hardmax" and (not d.rank(x) or not all(a.size for a in d.value[x])):
        return None
    return node(d, op, [x], steps=op in ("Shrink", "ThresholdedRelu", "Hardmax"), **more)


def einsum(d):
    r = d.r
    n, m, k = (r.choice((1, 3, 4, 8, *some(d))) for _ in range(3))
    b, h = r.choice((1, 2, *some(d))), r.choice((1, 3))
    what, *shapes = r.choice(
        (
            ("ij,jk->ik", (n, k), (k, m)),
            ("ij,jk->ki", (n, k), (k, m)),
            ("bij,bjk->bik", (b, n, k), (b, k, m)),
            ("bhqd,bhkd->bhqk", (b, h, n, k), (b, h, m, k)),
            ("ij->", (n, m)),
            ("ij->ji", (n, m)),
            ("ii->i", (n, n)),
            ("i,j->ij", (n,), (m,)),
            ("bij,bj->bi", (b, n, k), (b, k)),
            ("...ij,...jk->...ik", (b, n, k), (k, m)),
            ("bqhd,bkhd->bhqk", (b, n, h, k), (b, m, h, k)),
            ("ij,ij->j", (n, m), (n, m)),
            ("ijk,jil->kl", (n, m, k), (m, n, h)),
            ("ij,jk,kl->il", (n, m), (m, k), (k, h)),
            ("bnd,de->bne", (b, n, 5), (5, h)),
        )
    )
    return node(d, "Einsum", [d.input(list(s)) for s in shapes], equation=what)


NODES = {
    resize: 5,
    sample: 3,
    unpool: 2,
    lp: 2,
    local: 1,
    roi: 2,
    blocks: 2,
    columns: 2,
    crop_pad: 2,
    transposed: 3,
    fourier: 3,
    reverse: 2,
    kept: 2,
    ties: 2,
    one_hot: 2,
    scatter_nd: 3,
    gather_nd: 3,
    gather_elements: 3,
    positions: 2,
    distinct: 1,
    band: 2,
    counted: 4,
    bits: 3,
    modulo: 1,
    few: 5,
    narrow_weights: 4,
    cells: 4,
    norms: 5,
    bends: 4,
    einsum: 4,
}
