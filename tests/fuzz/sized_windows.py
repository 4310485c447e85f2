"""Convolutions and pools, as sized_ops.py has other operators."""

import numpy as np
from sized import wide

F = np.float32


def windows(a, kernel, strides, dilations, pads, fill):
    """The operand under each tap of a window, stacked."""
    n = len(kernel)
    a = np.pad(
        a, [(0, 0), (0, 0)] + [(pads[i], pads[n + i]) for i in range(n)], constant_values=fill
    )
    out = [
        (a.shape[2 + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(n)
    ]
    if any(o < 1 for o in out):
        raise ValueError
    taps = []
    for tap in np.ndindex(*kernel):
        at = [
            slice(t * g, t * g + (o - 1) * s + 1, s)
            for t, g, o, s in zip(tap, dilations, out, strides)
        ]
        taps.append(a[(slice(None), slice(None), *at)])
    return np.stack(taps)


def drawn_window(d, n, dilate=True):
    r = d.r
    kernel = [r.choice((1, 2, 3, 3, 5)) for _ in range(n)]
    dilations = [r.choice((1, 1, 1, 2)) if dilate else 1 for _ in range(n)]
    pads = [r.randint(0, (k - 1) * g) for k, g in zip(kernel * 2, dilations * 2)]
    return kernel, [r.choice((1, 1, 2)) for _ in range(n)], dilations, pads


def picture(d):
    good = [k for k in d.fresh if d.rank(k) in (3, 4) and d.kind(k) == "f" and d.fixed(k, 1)]
    if good and d.r.random() < 0.8:
        return d.r.choice(good[-4:])
    axes = d.shape(d.r.choice((3, 4)))
    axes[1] = d.r.choice((1, 2, 3, 4, 8))
    return d.input(axes)


def conv(d):
    r, x = d.r, picture(d)
    c, n = d.fixed(x, 1), d.rank(x) - 2
    groups = r.choice([1, 1, c] + [g for g in range(1, c + 1) if c % g == 0])
    out = groups * r.choice((1, 2, 3, 4))
    kernel, strides, dilations, pads = drawn_window(d, n)
    w = d.weight(out, c // groups, *kernel)

    def function(a, w, *b):
        if not a.size:
            a = np.zeros(a.shape, np.float64)
        taps = windows(a, kernel, strides, dilations, pads, 0)
        taps = taps.reshape(taps.shape[0], taps.shape[1], groups, c // groups, *taps.shape[3:])
        v = w.reshape(groups, out // groups, c // groups, -1)
        y = np.einsum("kngi...,goik->ngo...", taps, v)
        y = y.reshape(y.shape[0], out, *y.shape[3:])
        return y + b[0].reshape(-1, *[1] * n) if b else y

    return d.add(
        "Conv",
        [x, w] + ([d.weight(out)] if r.random() < 0.5 else []),
        wide(function),
        group=groups,
        strides=strides,
        dilations=dilations,
        pads=pads,
    )


def pool(d):
    r, x = d.r, picture(d)
    n = d.rank(x) - 2
    if r.random() < 0.2:
        if any(0 in d.sizes(x, 2 + i) for i in range(n)):
            return None
        op, f = r.choice((("GlobalAveragePool", np.mean), ("GlobalMaxPool", np.max)))
        return d.add(op, [x], wide(lambda a: f(a, tuple(range(2, 2 + n)), keepdims=True)))
    kernel, strides, dilations, pads = drawn_window(d, n, False)
    pads = [min(p, k - 1) for p, k in zip(pads, kernel * 2)]
    if r.random() < 0.5:
        return d.add(
            "MaxPool",
            [x],
            wide(lambda a: windows(a, kernel, strides, dilations, pads, -np.inf).max(0)),
            kernel_shape=kernel,
            strides=strides,
            pads=pads,
        )
    include = r.randint(0, 1)

    def function(a):
        count = np.ones_like(a) if not include else None
        s = windows(a, kernel, strides, dilations, pads, 0).sum(0)
        return s / (
            np.prod(kernel)
            if include
            else windows(count, kernel, strides, dilations, pads, 0).sum(0)
        )

    return d.add(
        "AveragePool",
        [x],
        wide(function),
        kernel_shape=kernel,
        strides=strides,
        pads=pads,
        count_include_pad=include,
    )
