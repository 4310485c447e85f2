"""How far outputs of a graph of sized.py move by rounding alone: numpy computes it several times,
and each time rounds at other places.

In such a run inputs and weights are moved by 3e-6 of what they are, operands of each node by a bit.
What is computed as a difference of terms about as large as one (log softmax = x - max - log(sum))
may be off by bits of these, even where nothing is left: 0 in one order, -1e-7 in another.

A sum of n terms is off by some sqrt(n) bits of what the terms are by their sizes, however little is
left of them: the same function of the sizes alone tells how much that is.

    y = ReduceMean(x)    0.002, of 4000 numbers of about 50 whose sum nearly cancels

A function that jumps (a cast to int or bool, a comparison, argmax) is decided by how near its
operand is to the jump, and not by whether one of the runs happens to lie beyond it: where the jump
is within what rounding moves the operand by, the result is either of two.

    t = LogSoftmax(x)    0, in the runs up to 2e-7 from that
    c = Cast(t, bool)    false, or true
"""

import numpy as np
from onnx import helper
from sized import reads

BIT = 2.0**-23
RUNS = 8
# Computed with terms about as large as one, whatever the result is.
TERMS = {"LogSoftmax", "Softplus", "Elu", "HardSwish", "LSTM", "GRU", "RNN"}
# Of operands: the first is summed over what is left of its elements for each of the result's; of
# products, over a row of it, or over what a channel of the second has.
SUMS = {"ReduceSum", "ReduceMean", "GlobalAveragePool"}
PRODUCTS = {
    "MatMul": lambda x, y: x.shape[-1],
    "Conv": lambda x, w, *b: w[0].size if w.size else 0,
    "CumSum": lambda x, axis: x.shape[int(axis)],
}
# Of sums whose factors are sines: no more terms than the operand has elements, each no more than the
# largest. What is imaginary and 0 is a sum that cancels, of either sign.
SPECTRA = {"DFT", "STFT"}
COMPARISONS = {"Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"}
PICKS = {"ArgMax": 1, "ArgMin": -1, "Hardmax": 1}
# Operands that say what is computed, and are nothing that rounds.
SETTINGS = {"Resize": (1, 2)}
STEPS = {"Floor", "Ceil", "Round", "Sign", "QuantizeLinear", *COMPARISONS, *PICKS}


def is_float(a):
    return a.dtype.kind == "f"


def moved_by(a, share, move):
    """Floats of 32 bits, each up to this share larger or smaller."""
    if a.dtype != np.float32:
        return a
    return np.asarray(a * (1 + share * move.uniform(-1, 1, a.shape)), np.float32)


def jumps(node, operands, result):
    """Whether a small change of an operand may make a large one of the result."""
    if not is_float(operands[0]):
        return False
    return node.op_type in STEPS or (node.op_type == "Cast" and not is_float(result))


def reach(exact, runs):
    """How far rounding may move each element: four times as far as it did."""
    if not is_float(exact):
        return np.zeros(exact.shape)
    wide = exact.astype(np.float64)
    moved = [np.abs(r.astype(np.float64) - wide) for r in runs]
    return 4 * np.maximum.reduce(moved)


def other_operands(node, operands, far):
    """Operands within their reach at which a function that jumps has another result, if it has one
    at any."""
    first, *rest = [np.asarray(a, np.float64) if is_float(a) else a for a in operands]
    if node.op_type in PICKS:  # what was picked is less than all others
        axis = helper.get_node_attr_value(node, "axis")
        sign = PICKS[node.op_type]
        picked = np.argmax(sign * first, axis)
        at = np.arange(first.shape[axis]).reshape([-1] + [1] * (first.ndim - 1 - axis % first.ndim))
        chosen = at == np.expand_dims(picked, axis)
        yield [first + sign * far[0] * np.where(chosen, -1, 1)]
        return
    for side in (-1, 1):
        yield [
            first + side * far[0],
            *(a - side * f if f.any() else a for a, f in zip(rest, far[1:])),
        ]
    # where a number is tested for another: it is that one
    one = rest[0] if node.op_type in COMPARISONS else 0.0
    total = far[0] + (far[1] if node.op_type in COMPARISONS else 0)
    yield [np.where(np.abs(first - one) <= total, one, first), *rest]


class Runs:
    """One computation by exact operands, and RUNS beside it."""

    def __init__(self, model, case, results):
        self.move = np.random.default_rng(0)
        self.results = results
        start = {**{k: a[case] for k, a in model.inputs.items()}, **model.weights}
        self.exact = dict(start)
        self.moved = [
            {k: moved_by(a, 3e-6, self.move) for k, a in start.items()} for _ in range(RUNS)
        ]
        for node, function in zip(model.nodes, model.functions):
            self.step(node, function)

    def step(self, node, function):
        names = reads(node)
        operands = [self.exact[k] for k in names]
        exact = self.results(function, operands)
        made = []
        settings = {k for i in SETTINGS.get(node.op_type, ()) for k in node.input[i : i + 1]}
        for run in self.moved:
            moved = [
                self.exact[k] if k in settings else moved_by(run[k], BIT, self.move) for k in names
            ]
            made.append(self.results(function, moved))
        if node.op_type in TERMS:
            made = [[self.terms(y, np.maximum(np.abs(y), 1), 2) for y in ys] for ys in made]
        if node.op_type in SUMS or node.op_type in PRODUCTS:
            made = [[self.terms(y, *self.sizes(node, function, operands, y))] for (y,) in made]
        if node.op_type in SPECTRA:
            x = np.abs(operands[0])
            made = [[self.terms(y, x.max(initial=0), np.sqrt(x.size) / 2)] for (y,) in made]
        if jumps(node, operands, exact[0]):
            self.choose(node, function, names, exact, made)
        self.exact.update(zip(node.output, exact))
        for run, ys in zip(self.moved, made):
            run.update(zip(node.output, ys))

    def sizes(self, node, function, operands, y):
        """Of a sum: the same sum of the sizes of its terms, and the root of their number."""
        x = operands[0]
        one = PRODUCTS.get(node.op_type, lambda x, *rest: x.size / max(y.size, 1))(*operands)
        all_sizes = [np.abs(a) if is_float(a) else a for a in operands]
        return (self.results(function, all_sizes)[0] if is_float(x) else 0), np.sqrt(one) / 2

    def terms(self, y, size, bits):
        return np.asarray(y + bits * BIT * size * self.move.uniform(-1, 1, y.shape), y.dtype)

    def choose(self, node, function, names, exact, made):
        """Results that may be either are the other one in the first run, and in half of the rest."""
        operands = [self.exact[k] for k in names]
        far = [reach(a, [run[k] for run in self.moved]) for k, a in zip(names, operands)]
        for others in other_operands(node, operands, far):
            other = self.results(function, others)[0]
            either = other != exact[0]
            for i, ys in enumerate(made):
                flip = either if i == 0 else either & (self.move.random(either.shape) < 0.5)
                ys[0] = np.where(flip, other, ys[0]).astype(ys[0].dtype)


def largest_moves(model, case, results):
    """Of each output, how far it moves by rounding, as a share of its range."""
    runs = Runs(model, case, results)
    moves = {}
    for o in model.outputs:
        a = np.asarray(runs.exact[o], np.float64)
        moved = [np.abs(a - np.asarray(r[o], np.float64)).max() for r in runs.moved if a.size]
        moves[o] = max(moved, default=0) / (np.abs(a).max(initial=0) or 1)
    return moves
