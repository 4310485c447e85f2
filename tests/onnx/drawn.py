"""What a model draws at random, and how results are judged that depend on it.

Each generator draws other numbers, so such an output cannot be compared element by element. Which
outputs these are is found anew for each data set, by following names from the nodes that draw:
Bernoulli, Multinomial, RandomNormal, RandomUniform, their ...Like, and Dropout whose training_mode
is true and whose ratio is not 0. Dropout that is told otherwise by an input, an initializer or a
constant draws nothing. All other outputs are compared as usual.

An output that depends on a drawn number has the type and shape of the expected one, and is

    of RandomUniform    within low..high; mean and variance as told, within 5 sigma
    of RandomNormal     no further than 10 sigma from the mean; mean and variance as told, within 5
                        sigma
    of Bernoulli        zeros and ones, certain where the probability is 0 or 1; as many ones as
                        told, within 5 sigma
    of Multinomial      one of the classes; each as often as told, within 5 sigma
    of Dropout          0 or the input's value over 1 - ratio, within the tolerance; as many zeros
                        as told, within 5 sigma; the mask is true where the value is kept
    further down        zeros and ones where the expected one is, as many as there within 5 sigma;
                        else finite where that one is finite

Sigma is that of the statistic, which is looked at where it has a variance to speak of: 30 numbers
for a mean and a variance, a variance of 1 for a count. What a node is told (probabilities, ratio)
has to be known: an input of the model, an initializer or a constant. If it is not, the output is
judged like one further down.
"""

import math

import numpy as np
from onnx import helper, numpy_helper

from values import Mismatch, compare

ENOUGH = 30
SIGMAS = 5
ALWAYS = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}
NAMES = ALWAYS | {"Dropout"}


def inner_graphs(node):
    for a in node.attribute:
        yield from ([a.g] if a.HasField("g") else []) + list(a.graphs)


def all_nodes(nodes):
    for n in nodes:
        yield n
        for g in inner_graphs(n):
            yield from all_nodes(g.node)


def may_draw(model):
    """Whether a node may draw, for any data."""
    bodies = [model.graph.node, *(f.node for f in model.functions)]
    return any(
        n.op_type in NAMES and (n.op_type != "Dropout" or len(n.input) > 2)
        for b in bodies
        for n in all_nodes(b)
    )


class Drawn:
    """Of a model and the values of its inputs by name: the outputs that depend on drawn numbers, by
    `outputs`."""

    def __init__(self, model, inputs):
        self.known, self.functions = dict(inputs), {(f.domain, f.name): f for f in model.functions}
        for t in model.graph.initializer:
            self.known.setdefault(t.name, None)
            if not t.external_data and self.known[t.name] is None:
                self.known[t.name] = numpy_helper.to_array(t)
        self.maker, self.depends = {}, set()
        nodes = list(model.graph.node)
        for n in nodes:
            if n.op_type == "Constant":
                value = {a.name: helper.get_attribute_value(a) for a in n.attribute}
                if "value" in value:
                    self.known[n.output[0]] = numpy_helper.to_array(value["value"])
                elif "value_float" in value or "value_int" in value:
                    self.known[n.output[0]] = np.array(next(iter(value.values())))
        before = -1
        while before != len(self.depends):  # nodes may come in any order
            before = len(self.depends)
            for n in nodes:
                if self.draws(n):
                    self.maker.update((o, n) for o in n.output if o)
                if o_is_drawn(n, self):
                    self.depends.update(o for o in n.output if o)
        self.outputs = {o.name for o in model.graph.output} & self.depends

    def value(self, node, i, otherwise=None):
        """Of input i, or None if it is not known."""
        if i >= len(node.input) or not node.input[i]:
            return otherwise
        return self.known.get(node.input[i])

    def draws(self, node):
        if node.op_type in ALWAYS:
            return True
        if node.op_type != "Dropout" or len(node.input) < 3:
            return False
        training = self.value(node, 2, np.array(False))
        ratio = self.value(node, 1, np.array(0.5))
        return (training is None or bool(training)) and (ratio is None or float(ratio) != 0)

    def draws_inside(self, node):
        """In a branch, a body or a function that it calls; what decides it in there is not
        followed."""
        f = self.functions.get((node.domain, node.op_type))
        bodies = [g.node for g in inner_graphs(node)] + ([f.node] if f else [])
        return any(
            n.op_type in ALWAYS
            or (n.op_type == "Dropout" and len(n.input) > 2)
            or self.calls_drawing(n)
            for b in bodies
            for n in all_nodes(b)
        )

    def calls_drawing(self, node):
        f = self.functions.get((node.domain, node.op_type))
        return bool(f) and any(
            n.op_type in NAMES or self.calls_drawing(n) for n in all_nodes(f.node)
        )

    def compare(self, name, got, want, results, **tolerance):
        """Raises Mismatch, or returns the largest error. results: those of the model's outputs by
        name."""
        if name not in self.outputs:
            return compare(got, want, **tolerance)
        if (
            not isinstance(got, np.ndarray)
            or not isinstance(want, np.ndarray)
            or got.dtype != want.dtype
            or got.shape != want.shape
        ):
            return compare(got, want, **tolerance)  # which says so
        node = self.maker.get(name)
        rule = RULES.get(node.op_type) if node else None
        if got.size and not (rule and rule(self, node, name, got, results, tolerance)):
            further_down(got, want)
        return 0.0


def o_is_drawn(node, drawn):
    """Whether a node's outputs depend on a drawn number."""
    if drawn.draws(node) or drawn.draws_inside(node):
        return True
    read = set(node.input).union(
        *(n.input for g in inner_graphs(node) for n in all_nodes(g.node)),
        *([o.name for o in g.output] for g in inner_graphs(node)),
    )
    if (
        node.op_type == "Dropout" and len(node.input) > 1
    ):  # it drops nothing: ratio and seed do not matter
        read = {node.input[0]} | ({node.input[2]} if len(node.input) > 2 else set())
    return bool(read & drawn.depends)


# -- rules: False where what the node is told is not known ----------------------------------------


def within(what, seen, expected, sigma):
    if not abs(seen - expected) <= SIGMAS * sigma:
        raise Mismatch(
            f"{what} is {seen:.6g}, {abs(seen - expected) / sigma:.1f} sigma from {expected:.6g}"
        )


def attributes(node, **otherwise):
    return {**otherwise, **{a.name: helper.get_attribute_value(a) for a in node.attribute}}


def moments(got, mean, variance, kurtosis):
    n, x = got.size, got.astype(np.float64)
    if n >= ENOUGH:
        within("its mean", float(x.mean()), mean, math.sqrt(variance / n))
        within(
            "its variance",
            float(((x - mean) ** 2).mean()),
            variance,
            variance * math.sqrt((kurtosis - 1) / n),
        )


def uniform(_, node, name, got, results, tolerance):
    a = attributes(node, low=0.0, high=1.0)
    low, high = (np.array(a[k]).astype(got.dtype) for k in ("low", "high"))
    if not ((got >= low) & (got <= high)).all():
        raise Mismatch(f"a number is outside of {low}..{high}")
    moments(got, (a["low"] + a["high"]) / 2, (a["high"] - a["low"]) ** 2 / 12, 1.8)
    return True


def normal(_, node, name, got, results, tolerance):
    a = attributes(node, mean=0.0, scale=1.0)
    far = np.abs(got.astype(np.float64) - a["mean"])
    if not (far <= 10 * a["scale"]).all():
        raise Mismatch(f"a number is {far.max():.6g} from the mean {a['mean']:.6g}")
    moments(got, a["mean"], a["scale"] ** 2, 3)
    return True


def ones(got):
    if not np.isin(got, (0, 1)).all():
        raise Mismatch("a value is neither 0 nor 1")
    return got.astype(np.float64)


def counted(what, seen, p):
    variance = float((p * (1 - p)).sum())
    if variance >= 1:
        within(what, float(seen), float(p.sum()), math.sqrt(variance))


def bernoulli(drawn, node, name, got, results, tolerance):
    p, y = drawn.value(node, 0), ones(got)
    if p is None:
        return False
    p = np.asarray(p, np.float64)
    if (y[p <= 0] != 0).any() or (y[p >= 1] != 1).any():
        raise Mismatch("what is certain has not come")
    counted("the number of ones", y.sum(), p)
    return True


def multinomial(drawn, node, name, got, results, tolerance):
    logits = drawn.value(node, 0)
    if logits is None:
        return False
    if not ((got >= 0) & (got < logits.shape[1])).all():
        raise Mismatch("no class has that number")
    p = np.exp(np.asarray(logits, np.float64) - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    for k in range(logits.shape[1]):
        counted(f"the number of class {k}", (got == k).sum(), np.repeat(p[:, k], got.shape[1]))
    return True


def dropout(drawn, node, name, got, results, tolerance):
    x, ratio = drawn.value(node, 0), drawn.value(node, 1, np.array(0.5))
    if x is None or ratio is None:
        return False
    ratio, x = float(ratio), np.asarray(x)
    if name == node.output[0]:
        kept = got != 0
        scaled = (
            (x.astype(np.float64) / (1 - ratio)).astype(x.dtype) if ratio < 1 else np.zeros_like(x)
        )
        compare(got, np.where(kept, scaled, got).astype(got.dtype), **tolerance)
        some = x != 0
    else:
        kept, some = got.astype(bool), np.ones(x.shape, bool)
        y = results.get(node.output[0])
        if isinstance(y, np.ndarray) and ((y != 0) != (kept & (x != 0))).any():
            raise Mismatch("the mask is not that of the values")
    counted("the number of values kept", kept[some].sum(), np.full(int(some.sum()), 1 - ratio))
    return True


RULES = {
    "Bernoulli": bernoulli,
    "Multinomial": multinomial,
    "RandomNormal": normal,
    "RandomNormalLike": normal,
    "RandomUniform": uniform,
    "RandomUniformLike": uniform,
    "Dropout": dropout,
}


def further_down(got, want):
    if want.dtype.kind == "O":
        return
    if np.isin(want, (0, 1)).all():
        share = (ones(got).mean() + ones(want).mean()) / 2
        if 2 * got.size * share * (1 - share) >= 1:  # of a difference of two counts
            within(
                "the number of ones",
                float(ones(got).sum()),
                float(ones(want).sum()),
                math.sqrt(2 * got.size * share * (1 - share)),
            )
    elif want.dtype.kind in "fc" and not np.isfinite(got[np.isfinite(want)]).all():
        raise Mismatch("it is not finite")
