"""What random graphs are made of: each function adds nodes to a drawing, of operands that suit
them."""

import numpy as np
from onnx import TensorProto

from drawing import CHANNELS, SIZES


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
    w = d.leaf(
        d.normal(
            out, c // groups, *kernel, scale=1 / np.sqrt(max(1, c // groups * np.prod(kernel)))
        )
    )
    bias = [d.leaf(d.normal(out))] if r.random() < 0.6 else []
    return d.add(
        "Conv",
        [x, w] + bias,
        group=groups,
        strides=strides,
        dilations=dilations,
        pads=pads,
        auto_pad=auto,
        kernel_shape=kernel if r.random() < 0.5 else None,
    )


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
    return d.add(
        "ConvTranspose",
        [x, w] + bias,
        group=groups,
        strides=strides,
        dilations=dilations,
        pads=pads,
        auto_pad=auto,
        output_padding=more,
    )


def pool(d):
    x = d.picture()
    n = d.value[x].ndim - 2
    if d.r.random() < 0.2:
        return d.add(d.r.choice(("GlobalAveragePool", "GlobalMaxPool")), [x])
    kernel, strides, dilations, pads, auto = windows(d, n, (1, 2, 2, 3, 3, 5))
    ceil = d.r.randint(0, 1) if not auto else None
    reach = [(k - 1) * s + 1 for k, s in zip(kernel, dilations)]
    padded = [
        v + (pads[i] + pads[i + n] if pads else 0) for i, v in enumerate(d.value[x].shape[2:])
    ]
    if auto in (None, "VALID") and any(v < k for v, k in zip(padded, reach)):
        return None  # ONNX Runtime gives one value where the standard has none
    if auto and any(k < s for k, s in zip(kernel, strides)):
        return None  # ONNX Runtime pads by less than nothing
    if d.r.random() < 0.5:
        return d.add(
            "MaxPool",
            [x],
            kernel_shape=kernel,
            strides=strides,
            dilations=dilations,
            pads=pads,
            auto_pad=auto,
            ceil_mode=ceil,
        )
    return d.add(
        "AveragePool",
        [x],
        kernel_shape=kernel,
        strides=strides,
        pads=pads,
        auto_pad=auto,
        ceil_mode=ceil,
        dilations=dilations if d.r.random() < 0.3 else None,
        count_include_pad=d.r.randint(0, 1),
    )


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
    letters = "abcd"[: a.ndim]
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
    op = d.r.choice(
        (
            "Relu",
            "Relu",
            "Sigmoid",
            "Erf",
            "Exp",
            "Tanh",
            "HardSwish",
            "HardSigmoid",
            "Clip",
            "LeakyRelu",
            "Elu",
            "Gelu",
            "Softplus",
            "Neg",
            "Abs",
            "Sqrt",
            "Log",
            "Sin",
            "Cos",
            "Floor",
            "Round",
            "Sign",
            "Mish",
            "Softsign",
            "Selu",
            "Reciprocal",
            "CumSum",
        )
    )
    if op == "Clip":
        return d.add(
            "Clip", [x, d.const(-0.5, np.float32), d.const(d.r.choice((0.75, 6.0)), np.float32)]
        )
    if op in ("Sqrt", "Log", "Reciprocal"):
        x = d.add("Sigmoid", [x])
        return x and d.add(op, [x])
    if op == "CumSum":
        if not d.value[x].ndim:
            return None
        return d.add(
            "CumSum",
            [x, d.const(d.r.randrange(-d.value[x].ndim, d.value[x].ndim))],
            exclusive=d.r.randint(0, 1),
            reverse=d.r.randint(0, 1),
        )
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
    op = r.choice(
        (
            "Softmax",
            "LogSoftmax",
            "LayerNormalization",
            "BatchNormalization",
            "InstanceNormalization",
            "GroupNormalization",
            "LpNormalization",
            "LRN",
            "RMSNormalization",
        )
    )
    x = (
        d.picture()
        if op in ("InstanceNormalization", "GroupNormalization", "LRN")
        else d.pick(1 if op != "BatchNormalization" else 2)
    )
    a = d.value[x]
    axis = r.randrange(-a.ndim, a.ndim)
    if op in ("Softmax", "LogSoftmax"):
        return d.add(op, [x], axis=axis)
    if op == "LayerNormalization":
        s = a.shape[axis:] if axis else a.shape
        if np.prod(s) < 2:
            return None
        return d.add(
            op,
            [x, d.leaf(d.normal(*s))] + ([d.leaf(d.normal(*s))] if r.random() < 0.7 else []),
            axis=axis,
        )
    if op == "BatchNormalization":
        p = [d.normal(a.shape[1]) for _ in range(4)]
        p[3] = np.abs(p[3]) + 0.3
        return d.add(op, [x] + [d.leaf(v, r.random() < 0.9) for v in p])
    if op == "GroupNormalization":
        groups = r.choice([g for g in range(1, a.shape[1] + 1) if a.shape[1] % g == 0] or [1])
        return d.add(
            op, [x, d.leaf(d.normal(a.shape[1])), d.leaf(d.normal(a.shape[1]))], num_groups=groups
        )
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
        return d.add(
            r.choice(("ArgMax", "ArgMin")),
            [x],
            steps=True,
            axis=axis,
            keepdims=r.randint(0, 1),
            select_last_index=r.randint(0, 1),
        )
    op = r.choice(
        (
            "ReduceSum",
            "ReduceMean",
            "ReduceMax",
            "ReduceMin",
            "ReduceProd",
            "ReduceL1",
            "ReduceL2",
            "ReduceSumSquare",
            "ReduceLogSumExp",
        )
    )
    axes = sorted(r.sample(range(a.ndim), r.randint(0, a.ndim)))
    axes = [v - a.ndim if r.random() < 0.3 else v for v in axes]
    return d.add(
        op, [x] + ([d.const(axes)] if axes or r.random() < 0.5 else []), keepdims=r.randint(0, 1)
    )


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
                shape[i : i + 2] = [shape[i] * shape[i + 1]]
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
    value = (
        [d.const(r.choice((0, 1, -2)), a.dtype)] if mode == "constant" and r.random() < 0.5 else []
    )
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
        ends.append(hi if s > 0 else r.choice((-(2**31), 0, lo)))
    y = d.add("Slice", [x] + [d.const(v) for v in (starts, ends, axes, steps)])
    return y


def concat(d):
    x = d.pick(1, 5, "ffib")
    a, r = d.value[x], d.r
    axis = r.randrange(a.ndim)
    fit = [
        k
        for k in d.fresh
        if d.value[k].dtype == a.dtype
        and d.value[k].ndim == a.ndim
        and d.value[k].shape[:axis] + d.value[k].shape[axis + 1 :]
        == a.shape[:axis] + a.shape[axis + 1 :]
    ]
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
    """Dense blocks and the like: concats in longer ones, values in several, splits that are joined
    again."""
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
            some = (
                parts
                if r.random() < 0.6
                else parts[r.randrange(len(parts)) :] + r.choices(parts, k=r.randint(0, 2))
            )
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
    return d.add(
        "Gather",
        [x, d.leaf(np.asarray(i, r.choice((np.int64, np.int32))), r.random() < 0.5)],
        axis=axis,
    )


def cast(d):
    x = d.pick(0, 6, "fffib")
    kind = d.value[x].dtype.kind
    to = d.r.choice(
        [
            TensorProto.INT64,
            TensorProto.FLOAT16,
            TensorProto.BOOL,
            TensorProto.INT32,
            TensorProto.UINT8,
            TensorProto.INT8,
            TensorProto.DOUBLE,
        ]
    )
    if to in (TensorProto.UINT8, TensorProto.INT8) and kind == "f":
        to = TensorProto.INT64  # outside of the range it is anybody's guess
    y = d.add(
        "Cast",
        [x],
        to=to,
        steps=kind == "f" and to not in (TensorProto.FLOAT16, TensorProto.DOUBLE),
    )
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
        return d.add(
            "Resize",
            [x, "", d.const(scales, np.float32)],
            mode=mode,
            coordinate_transformation_mode=where,
            nearest_mode=r.choice(("floor", "round_prefer_floor")) if mode == "nearest" else None,
        )
    if what == 3:
        return d.add("Trilu", [x], upper=r.randint(0, 1))
    n = a.shape[-1]
    if n < 2:
        return None
    return d.add(
        "TopK", [x, d.const([r.randint(1, n)])], 2, steps=True, axis=-1, largest=r.randint(0, 1)
    )


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
    y = d.add(
        "Conv",
        [x, w] + ([d.leaf(d.normal(c))] if r.random() < 0.5 else []),
        group=groups,
        pads=[k // 2] * 2 * n,
    )
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
    return d.np.integers(max(lo, zero - most), min(hi, zero + most) + 1, shape).astype(
        dtype
    ), dtype(zero)


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
    what = r.choice(
        (
            "conv",
            "conv",
            "conv",
            "matmul",
            "QLinearConv",
            "QLinearConv",
            "QLinearMatMul",
            "ConvInteger",
            "MatMulInteger",
        )
    )
    small = 9 if what.endswith("Integer") else 128
    shape = (
        list(d.value[d.image(r.choice((1, 2, 2)))].shape)
        if "onv" in what
        else [r.choice(SIZES), r.choice((3, 4, 8, 12, 16, 31, 64, 100))]
    )
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
            groups = r.choice(
                [1, 1, channels] + [g for g in range(1, channels + 1) if channels % g == 0]
            )
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
        wscale = (
            np.float32(2.0 ** d.np.integers(-10, -3, out)) if per_channel else power(d, -10, -4)
        )
        wscale = d.leaf(np.asarray(wscale, np.float32), True)
        step = d.value[scale] * d.value[wscale]
        bias = d.np.integers(-3000, 3000, out).astype(np.int32)
        if what.endswith("Integer"):
            y = d.add(what, [x, w, zero, wzero], **more)
            return y and d.add("Cast", [y], to=TensorProto.FLOAT)
        if what.startswith("QLinear"):
            top = d.const(np.float32(2.0 ** r.randint(-3, 4)), np.float32)
            to = d.const(r.randint(0, 100), r.choice(kinds))
            y = d.add(
                what,
                [x, scale, zero, w, wscale, wzero, top, to]
                + ([d.leaf(bias, True)] if conv_like and r.random() < 0.7 else []),
                **more,
            )
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


OPS = {
    conv: 12,
    residual: 5,
    conv_transpose: 4,
    pool: 7,
    matmul: 9,
    attend: 2,
    einsum: 3,
    binary: 12,
    unary: 12,
    where: 3,
    normalise: 7,
    reduce: 7,
    reshape: 6,
    transpose: 5,
    pad: 4,
    slice_: 5,
    concat: 6,
    split: 3,
    joined: 3,
    spread: 3,
    gather: 3,
    cast: 4,
    special: 3,
    quantised: 5,
}
