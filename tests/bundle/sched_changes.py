#!/usr/bin/env python3
"""How much of a plan's file still applies when its model changes.

    sched_changes.py --ingot build/ingot [--target T] MODEL.onnx...

Of each model, the share of entries of its .sched file that apply after

    end       an operator is added behind the first output
    middle    an operator is added in the middle
    names     nodes and tensors have other names
    order     nodes are written in another order
    weights   weights have other values

Status 1 if less than 100, 95, 100, 100, 100 % do.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

FLOAT = onnx.TensorProto.FLOAT


def floats(model):
    """Names of values known to be f32."""
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:  # beyond 2 GB, or operators of its own
        pass
    values = list(model.graph.value_info) + list(model.graph.output)
    return {v.name for v in values if v.type.tensor_type.elem_type == FLOAT}


def insert(model, at, op):
    """Whoever reads the first output of node `at` reads op of it; an output of the model keeps its
    name."""
    g = model.graph
    node = g.node[at]
    name = node.output[0]
    if name in {o.name for o in g.output}:
        node.output[0] = name + "_before"
        g.node.insert(at + 1, onnx.helper.make_node(op, [node.output[0]], [name]))
    else:
        for n in g.node:
            for i, x in enumerate(n.input):
                if x == name:
                    n.input[i] = name + "_after"
        g.node.insert(at + 1, onnx.helper.make_node(op, [name], [name + "_after"]))


def end(model):
    made = {o: i for i, n in enumerate(model.graph.node) for o in n.output}
    known = floats(model)
    at = [made[o.name] for o in model.graph.output if o.name in known and o.name in made]
    insert(model, at[0], "Neg")


def middle(model):
    nodes, known = model.graph.node, floats(model)
    weights = {w.name for w in model.graph.initializer}
    # what depends on an input and is no constant that is unpacked; between Conv and QuantizeLinear,
    # as an activation would be, and not behind DequantizeLinear, where it would make a product of
    # floats of one of integers
    for at in range(len(nodes) // 2, len(nodes)):
        n = nodes[at]
        if (
            n.op_type not in ("Constant", "DequantizeLinear")
            and n.output[0] in known
            and n.input
            and not weights.issuperset(n.input)
        ):
            insert(model, at, "Tanh")
            return
    raise SystemExit("nothing in the middle")


def subgraphs(g):
    yield g
    for n in g.node:
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from subgraphs(a.g)


def names(model):
    g = model.graph
    fixed = {v.name for v in list(g.input) + list(g.output)} | {""}
    new = lambda x: x if x in fixed else "v_" + x[::-1]
    for k, sub in enumerate(subgraphs(g)):
        fixed |= {v.name for v in list(sub.input) + list(sub.output)}
    for k, sub in enumerate(subgraphs(g)):
        for i, n in enumerate(sub.node):
            n.name = f"other{k}_{i}"
            n.input[:] = [new(x) for x in n.input]
            n.output[:] = [new(x) for x in n.output]
        for w in sub.initializer:
            w.name = new(w.name)
        del sub.value_info[:]


def order(model):
    """The last possible node first, as far as sources come before."""
    g = model.graph
    left, known, out = (
        list(g.node),
        {w.name for w in g.initializer} | {v.name for v in g.input} | {""},
        [],
    )
    inner = lambda n: {
        x
        for a in n.attribute
        if a.type == onnx.AttributeProto.GRAPH
        for s in subgraphs(a.g)
        for m in s.node
        for x in m.input
    }
    made = {o for n in left for o in n.output}
    while left:
        for i in range(len(left) - 1, -1, -1):
            if all(x in known or x not in made for x in [*left[i].input, *inner(left[i])]):
                break
        n = left.pop(i)
        known |= set(n.output)
        out.append(n)
    del g.node[:]
    g.node.extend(out)


def weights(model):
    rng = np.random.default_rng(1)
    for sub in subgraphs(model.graph):
        for w in sub.initializer:
            if w.data_type == FLOAT and len(w.dims) > 1 and np.prod(w.dims) > 16:
                x = numpy_helper.to_array(w)
                w.CopyFrom(
                    numpy_helper.from_array(
                        (x + 0.01 * rng.standard_normal(x.shape)).astype(np.float32), w.name
                    )
                )


CHANGES = {end: 100, middle: 95, names: 100, order: 100, weights: 100}


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    p.add_argument("--target", default="c:x86-64-v4")
    p.add_argument("models", nargs="+", type=pathlib.Path)
    o = p.parse_args()
    bad = 0
    for path in o.models:
        told = []
        with tempfile.TemporaryDirectory() as d:
            file, changed = pathlib.Path(d, "a.sched"), pathlib.Path(d, "model.onnx")
            ask = [o.ingot, "inspect", "--target", o.target, "--dump", "plan"]
            subprocess.run(
                [
                    o.ingot,
                    "compile",
                    "--target",
                    o.target,
                    path,
                    "-o",
                    pathlib.Path(d, "out"),
                    "--save-sched",
                    file,
                    "-q",
                ],
                check=True,
            )
            for change, least in CHANGES.items():
                model = onnx.load(path)
                change(model)
                onnx.save(model, changed)
                done = subprocess.run(
                    [*ask, changed, "--sched", file, "-v"],
                    text=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                )
                found = re.search(r"(\d+) of (\d+) entries apply", done.stderr)
                if done.returncode or not found:
                    sys.exit(f"{path}: {change.__name__}: {done.stderr}")
                applied, lines = map(int, found.groups())
                bad += 100 * applied < least * lines
                told.append(f"{change.__name__} {applied} of {lines}")
        print(f"{path.parent.name}: {', '.join(told)}", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
