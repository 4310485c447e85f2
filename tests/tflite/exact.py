"""A TensorFlow Lite model of floats computed in f64, by NumPy: which of two f32 results is nearer to it?

    outs = evaluate(data, ins)      raises NotImplementedError: an operator is not here

Integers of constants that are dequantised, and a few operators of images, are all there is.
"""

import numpy as np
from ai_edge_litert import schema_py_generated as schema

NAMES = {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}
TYPES = {0: np.float32, 1: np.float16, 2: np.int32, 4: np.int64}


def activated(x, kind):
    bounds = {0: (-np.inf, np.inf), 1: (0, np.inf), 2: (-1, 1), 3: (0, 6)}
    if kind not in bounds:
        raise NotImplementedError(f"activation {kind}")
    return np.clip(x, *bounds[kind])


def windows(x, size, strides, dilations, same, fill=0.0):
    """Of each place of the window: the elements that are there, [N, H, W, C]."""
    pads, outs = [(0, 0)], []
    for n, k, s, d in zip(x.shape[1:3], size, strides, dilations):
        reach = (k - 1) * d + 1
        out = -(-n // s) if same else (n - reach) // s + 1
        pad = max(0, (out - 1) * s + reach - n) if same else 0
        pads.append((pad // 2, pad - pad // 2))
        outs.append(out)
    x = np.pad(x, [*pads, (0, 0)], constant_values=fill)
    for i in range(size[0]):
        for j in range(size[1]):
            at = [
                slice(k * d, k * d + (out - 1) * s + 1, s)
                for k, d, out, s in zip((i, j), dilations, outs, strides)
            ]
            yield (i, j), x[:, at[0], at[1]]


def of_conv(o, x, w, b=0.0):
    args = (w.shape[1:3], (o.strideH, o.strideW), (o.dilationHFactor, o.dilationWFactor))
    y = sum(v @ w[:, i, j].T for (i, j), v in windows(x, *args, o.padding == 0))
    return activated(y + b, o.fusedActivationFunction)


def of_depthwise(o, x, w, b=0.0):
    args = (w.shape[1:3], (o.strideH, o.strideW), (o.dilationHFactor, o.dilationWFactor))
    x = np.repeat(x, w.shape[3] // x.shape[3], 3)
    y = sum(v * w[0, i, j] for (i, j), v in windows(x, *args, o.padding == 0))
    return activated(y + b, o.fusedActivationFunction)


def of_max_pool(o, x):
    args = ((o.filterHeight, o.filterWidth), (o.strideH, o.strideW), (1, 1), o.padding == 0)
    y = None
    for _, v in windows(x, *args, fill=-np.inf):
        y = v if y is None else np.maximum(y, v)
    return activated(y, o.fusedActivationFunction)


def places(o, n, to):
    if o.alignCorners and to > 1:
        return np.arange(to) * ((n - 1) / (to - 1))
    return (
        (np.arange(to) + 0.5) * (n / to) - 0.5 if o.halfPixelCenters else np.arange(to) * (n / to)
    )


def of_bilinear(o, x, size):
    for axis, to in ((1, int(size[0])), (2, int(size[1]))):
        n = x.shape[axis]
        at = np.maximum(places(o, n, to), 0)
        low = np.minimum(at.astype(int), n - 1)
        share = (at - low).reshape([-1 if a == axis else 1 for a in range(4)])
        high = np.minimum(low + 1, n - 1)
        x = np.take(x, low, axis) * (1 - share) + np.take(x, high, axis) * share
    return x


def of_nearest(o, x, size):
    if o.alignCorners:
        raise NotImplementedError("nearest, corners aligned")
    for axis, to in ((1, int(size[0])), (2, int(size[1]))):
        n = x.shape[axis]
        at = (np.arange(to) + (0.5 if o.halfPixelCenters else 0)) * (n / to)
        x = np.take(x, np.minimum(at.astype(int), n - 1), axis)
    return x


def of_two(function):
    return lambda o, a, b: activated(function(a, b), o.fusedActivationFunction)


OPERATORS = {
    "DEQUANTIZE": lambda o, x: x,
    "CONV_2D": of_conv,
    "DEPTHWISE_CONV_2D": of_depthwise,
    "MAX_POOL_2D": of_max_pool,
    "RESIZE_BILINEAR": of_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": of_nearest,
    "ADD": of_two(np.add),
    "SUB": of_two(np.subtract),
    "MUL": of_two(np.multiply),
    "SQUARED_DIFFERENCE": lambda o, a, b: (a - b) ** 2,
    "MEAN": lambda o, x, a: x.mean(tuple(map(int, np.atleast_1d(a))), keepdims=bool(o.keepDims)),
    "MIRROR_PAD": lambda o, x, p: np.pad(x, p, "symmetric" if o.mode else "reflect"),
    "CONCATENATION": lambda o, *x: np.concatenate(x, o.axis),
    "RSQRT": lambda o, x: 1 / np.sqrt(x),
    "RELU": lambda o, x: np.maximum(x, 0),
    "LOGISTIC": lambda o, x: 1 / (1 + np.exp(-x)),
}


def wide(x):
    return x.astype(np.float64) if np.issubdtype(x.dtype, np.floating) else x


def evaluate(data, ins):
    m = schema.ModelT.InitFromPackedBuf(data, 0)
    g, value = m.subgraphs[0], {}
    for i, t in enumerate(g.tensors):
        bytes_of = m.buffers[t.buffer].data
        if bytes_of is None or not len(bytes_of):
            continue
        if t.type not in TYPES:
            raise NotImplementedError(f"constants of type {t.type}")
        shape = [] if t.shape is None else [int(n) for n in t.shape]
        value[i] = wide(np.frombuffer(bytes(bytes_of), TYPES[t.type]).reshape(shape))
    value |= {int(i): wide(x) for i, x in zip(g.inputs, ins)}
    for op in g.operators:
        code = m.operatorCodes[op.opcodeIndex]
        name = NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)]
        if name not in OPERATORS:
            raise NotImplementedError(name)
        taken = [value[int(i)] for i in op.inputs if i >= 0]
        value[int(op.outputs[0])] = OPERATORS[name](op.builtinOptions, *taken)
    return [value[int(i)] for i in g.outputs]
