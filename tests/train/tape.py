"""Reverse mode in numpy, in f64: what training.py holds trained models beside.

A Var has a value and, after backward() of a scalar, a gradient. Written for the few operators of
those models, each with its adjoint beside it; shares nothing with the compiler."""

import numpy as np


def reduced(g, shape):
    """A gradient of a broadcast, summed back to the operand's shape."""
    g = g.sum(tuple(range(g.ndim - len(shape))))
    return g.sum(tuple(a for a, d in enumerate(shape) if d == 1 and g.shape[a] != 1), keepdims=True)


class Var:
    def __init__(self, value, parents=()):
        self.value = np.asarray(value, np.float64)
        self.parents = parents  # (Var, gradient of it from that of self)
        self.grad = None

    def backward(self):
        order, seen = [], set()

        def visit(v):
            if id(v) not in seen:
                seen.add(id(v))
                for p, _ in v.parents:
                    visit(p)
                order.append(v)

        visit(self)
        for v in order:
            v.grad = np.zeros_like(v.value)
        self.grad = np.ones_like(self.value)
        for v in reversed(order):
            for p, back in v.parents:
                p.grad = p.grad + back(v.grad)

    @property
    def shape(self):
        return self.value.shape

    def __add__(self, other):
        b = as_var(other)
        return Var(
            self.value + b.value,
            ((self, lambda g: reduced(g, self.shape)), (b, lambda g: reduced(g, b.shape))),
        )

    def __mul__(self, other):
        b = as_var(other)
        return Var(
            self.value * b.value,
            (
                (self, lambda g: reduced(g * b.value, self.shape)),
                (b, lambda g: reduced(g * self.value, b.shape)),
            ),
        )

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + -as_var(other)

    def __truediv__(self, other):
        return self * as_var(other) ** -1.0

    def __pow__(self, p):
        return Var(self.value**p, ((self, lambda g: g * p * self.value ** (p - 1)),))

    def __matmul__(self, b):
        def t(x):
            return np.swapaxes(x, -1, -2)

        return Var(
            self.value @ b.value,
            (
                (self, lambda g: reduced(g @ t(b.value), self.shape)),
                (b, lambda g: reduced(t(self.value) @ g, b.shape)),
            ),
        )

    def sum(self, axis=None, keepdims=False):
        def back(g):
            if axis is not None and not keepdims:
                g = np.expand_dims(g, axis)
            return np.broadcast_to(g, self.shape)

        return Var(self.value.sum(axis=axis, keepdims=keepdims), ((self, back),))

    def mean(self, axis=None, keepdims=False):
        y = self.sum(axis, keepdims)
        return y * (y.value.size / self.value.size)

    def reshape(self, *shape):
        return Var(self.value.reshape(shape), ((self, lambda g: g.reshape(self.shape)),))

    def transpose(self, *axes):
        inverse = np.argsort(axes)
        return Var(self.value.transpose(axes), ((self, lambda g: g.transpose(inverse)),))

    def take(self, index):
        """Rows of the first axis."""

        def back(g):
            x = np.zeros_like(self.value)
            np.add.at(x, index, g)
            return x

        return Var(self.value[index], ((self, back),))


def as_var(x):
    return x if isinstance(x, Var) else Var(x)


def elementwise(x, y, slope):
    return Var(y, ((x, lambda g: g * slope),))


def relu(x):
    return elementwise(x, np.maximum(x.value, 0), x.value > 0)


def tanh(x):
    y = np.tanh(x.value)
    return elementwise(x, y, 1 - y * y)


def exp(x):
    y = np.exp(x.value)
    return elementwise(x, y, y)


def log(x):
    return elementwise(x, np.log(x.value), 1 / x.value)


def log_softmax(x, axis):
    d = x - x.value.max(axis=axis, keepdims=True)
    return d - log(exp(d).sum(axis, keepdims=True))


def softmax(x, axis=-1):
    return exp(log_softmax(x, axis))


def conv(x, w, stride, pad, each=False):
    """[N, C, H, W] by [M, C, K, K]; each: a channel by its own [C, 1, K, K]. Tap after tap."""
    k = w.shape[-1]
    padded = np.pad(x.value, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    n, rows, columns = len(padded), *((d - k) // stride + 1 for d in padded.shape[2:])
    taps = list(np.ndindex(k, k))

    def at(a, i, j):
        return a[:, :, i : i + stride * rows : stride, j : j + stride * columns : stride]

    def flat(a):
        return a.reshape(*a.shape[:2], -1)

    def times(i, j, a, turned=False):
        v = w.value[:, :, i, j]
        return v * flat(a) if each else np.matmul(v.T if turned else v, flat(a))

    def back_x(g):
        dx = np.zeros_like(padded)
        for tap in taps:
            at(dx, *tap)[:] += times(*tap, g, True).reshape(n, -1, rows, columns)
        return dx[:, :, pad : dx.shape[2] - pad, pad : dx.shape[3] - pad]

    def back_w(g):
        dw = np.zeros_like(w.value)
        for i, j in taps:
            part = flat(at(padded, i, j))
            dw[:, :, i, j] = (
                (flat(g) * part).sum((0, 2))[:, None]
                if each
                else np.matmul(flat(g), part.transpose(0, 2, 1)).sum(0)
            )
        return dw

    y = sum(times(*tap, at(padded, *tap)) for tap in taps)
    return Var(y.reshape(n, -1, rows, columns), ((x, back_x), (w, back_w)))


def max_pool(x, kernel, stride, pads):
    """[N, C, H, W]; the gradient goes to the first of equals."""
    padded = np.pad(x.value, ((0, 0), (0, 0), *pads), constant_values=-np.inf)
    view = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))
    windows = view[:, :, ::stride, ::stride].reshape(*view[:, :, ::stride, ::stride].shape[:4], -1)
    first = windows.argmax(-1)

    def back(g):
        dx = np.zeros_like(padded)
        n, c, h, w = np.indices(first.shape)
        at = (n, c, h * stride + first // kernel[1], w * stride + first % kernel[1])
        np.add.at(dx, at, g)
        (top, left), (rows, columns) = (p[0] for p in pads), x.shape[2:]
        return dx[:, :, top : top + rows, left : left + columns]

    return Var(windows.max(-1), ((x, back),))


def fake_quantised(x, scale, zero, lo, hi):
    """Rounded to integers and back; where they are within their range the slope is 1."""
    q = np.round(x.value / scale) + zero
    inside = (q >= lo) & (q <= hi)
    return elementwise(x, (np.clip(q, lo, hi) - zero) * scale, inside)


def cross_entropy(x, labels, axis=1, smoothing=0.0, ignored=None):
    """As torch.nn.functional.cross_entropy has it."""
    classes = x.shape[axis]
    counts = np.ones(labels.shape, bool) if ignored is None else labels != ignored
    one_hot = np.moveaxis(np.eye(classes)[np.where(counts, labels, 0)], -1, axis)
    p = (one_hot * (1 - smoothing) + smoothing / classes) * np.expand_dims(counts, axis)
    return -(log_softmax(x, axis) * p).sum() * (1 / counts.sum())


def mse(y, target):
    d = y - target
    return (d * d).mean()


class Optimizer:
    """Formulas as torch.optim documents them; weights: name -> array of f64."""

    def __init__(self, kind, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=None, nesterov=False):
        self.kind, self.b1, self.b2, self.eps, self.nesterov = kind, beta1, beta2, epsilon, nesterov
        self.decay = (0.01 if kind == "adamw" else 0.0) if decay is None else decay
        self.m, self.v, self.t = {}, {}, 0

    def step(self, weights, grads, rate):
        self.t += 1
        for name, g in grads.items():
            w = weights[name]
            if self.kind != "adamw":
                g = g + self.decay * w
            if self.kind == "sgd":
                weights[name] = w - rate * g
            elif self.kind == "momentum":
                m = self.m[name] = self.b1 * self.m.get(name, 0) + g
                weights[name] = w - rate * (g + self.b1 * m if self.nesterov else m)
            else:
                m = self.m[name] = self.b1 * self.m.get(name, 0) + (1 - self.b1) * g
                v = self.v[name] = self.b2 * self.v.get(name, 0) + (1 - self.b2) * g * g
                if self.kind == "adamw":
                    w = w - rate * self.decay * w
                weights[name] = w - rate * m / (1 - self.b1**self.t) / (
                    np.sqrt(v / (1 - self.b2**self.t)) + self.eps
                )


def clipped(grads, most):
    norm = np.sqrt(sum((g * g).sum() for g in grads.values()))
    scale = min(1.0, most / (norm + 1e-6))
    return {name: g * scale for name, g in grads.items()}
