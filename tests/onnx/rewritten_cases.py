#!/usr/bin/env python3
"""The official node cases, rewritten: what the standard also allows of each operator.

    rewritten_cases.py OUT_DIR --cases build/onnx-cases [--kinds types,empty,...] [--filter REGEX]
        [--sample N]

Of the cases of one node, those of an operator that differ in attributes, version or ranks are
written again as

    types       one type parameter, or two, of another type that the schema allows
    extremes    the same with numbers of the whole range, infinities and NaN
    empty       an axis of no elements, and the others that have to be like it
    scalars     tensors of one element without axes, and scalars as vectors of one element
    optional    an input, an output or an attribute left out
    negative    axes counted from behind
    versions    each older and newer version of the operator, inputs becoming attributes

A folder of each, in the layout that run.py reads. The results are ONNX Runtime's; without it, for
narrow floats, those of the same in f32, rounded; else those of onnx's reference evaluator. Where
two of them differ, each has a case of its own, named after it with an @ in between: one has to pass
(--judge). What none computes is no case.

    rewritten_cases.py OUT_DIR --judge RESULTS.json       the results of run.py: what is wrong

Exit status of --judge 1 when something is.
"""

import argparse
import collections
import concurrent.futures
import functools
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import sys
import traceback
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bounded_dims  # noqa: E402
import defined  # noqa: E402
import drawn  # noqa: E402
import exact  # noqa: E402
import results as tables  # noqa: E402
import values  # noqa: E402

NAMES = {
    "float": "float32",
    "double": "float64",
    "float4e2m1": "float4_e2m1fn",
    "float8e8m0": "float8_e8m0fnu",
    **{f"float8{k}": f"float8_{k[:4]}{k[4:]}" for k in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")},
}
# Attributes that name the type of an output
TYPED = ("to", "dtype", "output_dtype", "output_datatype")
DIVISORS = {"Div": (1,), "Mod": (1,)}
NARROW = ("float16", "bfloat16")
FLOAT32 = np.dtype(np.float32)
LEAST, MOST = 6, 60  # of a case, of an operator: rewritings of one kind
# Integers between integers: the reference evaluator cuts the weights, ONNX Runtime has no such types
FRACTIONS = {("GridSample", "T1"), ("Resize", "T1"), ("Resize", "T"), ("Upsample", "T")}
SKIPPED = {"If", "Loop", "Scan", "SequenceMap", "Optional", "StringNormalizer", "ImageDecoder"}


def dtype_of(text):
    """The dtype of "tensor(float8e5m2)"; None of what is no tensor of numbers."""
    name = re.fullmatch(r"tensor\((\w+)\)", text)
    if not name or name[1] in ("string", "complex64", "complex128"):
        return None
    name = NAMES.get(name[1], name[1])
    return None if name.startswith("float6") else np.dtype(getattr(ml_dtypes, name, name))


def is_float(dtype):
    return dtype.kind == "f" or "float" in dtype.name


def limits(dtype):
    info = ml_dtypes.finfo(dtype) if is_float(dtype) else ml_dtypes.iinfo(dtype)
    return float(info.min) if is_float(dtype) else int(info.min), (
        float(info.max) if is_float(dtype) else int(info.max)
    )


def converted(a, dtype, nonzero):
    """The numbers of an array, as far as another type has them; fractions become small integers."""
    if dtype == np.bool_:
        return np.asarray(a.astype(np.float64) > 0)
    if a.dtype == np.bool_ or is_float(dtype):
        out = a.astype(np.float32 if dtype.itemsize < 4 else dtype)
    else:
        wide = a.astype(np.float64) if is_float(a.dtype) else a.astype(object)
        if is_float(a.dtype):
            wide = np.nan_to_num(wide, nan=0, posinf=1e6, neginf=-1e6)
            wide = np.rint(wide if np.array_equal(wide, np.rint(wide)) else wide * 3)
        lo, hi = limits(dtype)
        wide = np.abs(wide) if lo == 0 else wide
        out = np.asarray(np.clip(wide, lo, hi), np.int64 if hi < 1 << 63 else np.uint64)
    if nonzero:
        out = np.where(out == 0, np.ones_like(out), out)
    if is_float(dtype) and dtype.itemsize == 1:
        out = np.clip(out, *limits(dtype))
    return np.asarray(out).astype(dtype)


def extreme(a, dtype, rng, nonzero):
    """The array, a half of whose numbers are drawn of the whole range."""
    out = np.array(a)
    if dtype == np.bool_:
        return rng.random(a.shape) < 0.5
    lo, hi = limits(dtype)
    if is_float(dtype):
        special = np.array([np.inf, -np.inf, np.nan, -0.0, hi, lo, hi / 2, 0.49999997])
        new = np.where(
            rng.random(a.shape) < 0.5,
            special[rng.integers(0, len(special), a.shape)],
            rng.standard_normal(a.shape) * 30,
        )
        if dtype.itemsize == 1:
            new = np.where(np.isfinite(new), new, 1)
    else:
        edge = np.array([lo, hi, lo + 1, hi - 1, hi // 2], object)
        new = edge[rng.integers(0, len(edge), a.shape)]
        if not nonzero or lo == 0:
            new = np.where(rng.random(a.shape) < 0.5, new, np.asarray(a).astype(object))
        new = np.asarray(new, np.int64 if hi < 1 << 63 else np.uint64)
    mask = rng.random(a.shape) < 0.5
    with np.errstate(all="ignore"):
        out = np.where(mask, np.asarray(new).astype(dtype), out).astype(dtype)
    return np.where(out == 0, np.ones_like(out), out) if nonzero else out


# -- a model of one node -----------------------------------------------------------------------


class One:
    """A node, the values of its inputs by name, which of them are constants, the opset."""

    def __init__(self, node, feeds, consts, opset):
        self.node, self.feeds, self.consts, self.opset = node, feeds, set(consts), opset

    def but(self, node=None, feeds=None, opset=None):
        kept = onnx.NodeProto()
        kept.CopyFrom(node or self.node)
        feeds = dict(self.feeds if feeds is None else feeds)
        return One(kept, feeds, self.consts, opset or self.opset)

    @property
    def schema(self):
        return onnx.defs.get_schema(self.node.op_type, self.opset, self.node.domain)

    def names(self):
        seen = dict.fromkeys(n for n in self.node.input if n)
        return [n for n in seen if self.feeds.get(n) is not None]

    def outputs(self):
        return [o for o in self.node.output if o]

    def model(self, results=None):
        """Its outputs are declared where results are given."""
        info, weights = [], []
        for n in self.names():
            v = self.feeds[n]
            if n in self.consts:
                weights.append(numpy_helper.from_array(np.asarray(v), n))
            else:
                kind = helper.np_dtype_to_tensor_dtype(v.dtype)
                info.append(helper.make_tensor_value_info(n, kind, v.shape))
        told = [
            helper.make_tensor_value_info(o, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for o, v in zip(self.outputs(), results or [])
        ] or [helper.make_empty_tensor_value_info(o) for o in self.outputs()]
        graph = helper.make_graph([self.node], "rewritten", info, told, weights)
        domains = {"": self.opset, self.node.domain: self.opset}
        if self.node.domain not in ("", "ai.onnx"):
            domains[""] = 18
        imports = [helper.make_opsetid(*d) for d in domains.items()]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


def one_of(source):
    """A case of the suite as a One, or None."""
    node, model = source.node, source.model
    if node.op_type in SKIPPED or drawn.may_draw(model):
        return None
    declared = list(model.graph.input) + list(model.graph.output)
    if any(v.type.WhichOneof("value") != "tensor_type" for v in declared):
        return None
    feeds, consts = dict(source.data[0]), {}
    for t in model.graph.initializer:
        consts[t.name] = numpy_helper.to_array(t)
    for i in bounded_dims.CONSTANT.get(node.op_type, ()):
        if i < len(node.input) and node.input[i] in feeds:
            consts[node.input[i]] = feeds[node.input[i]]
    feeds.update(consts)
    if any(v is not None and v.dtype.kind in "OSUc" for v in feeds.values()):
        return None
    if node.op_type in ("Cast", "CastLike"):  # what a type has no number for is undefined
        for k, v in feeds.items():
            feeds[k] = np.clip(np.abs(np.nan_to_num(v.astype(np.float32))), 0.5, 1.5)
            feeds[k] = feeds[k].astype(v.dtype)
    opset = next(o.version for o in model.opset_import if o.domain == node.domain)
    kept = onnx.NodeProto()
    kept.CopyFrom(node)
    return One(kept, {k: v for k, v in feeds.items() if v is not None}, consts, opset)


def without(node, name):
    out = onnx.NodeProto()
    out.CopyFrom(node)
    del out.attribute[:]
    out.attribute.extend(a for a in node.attribute if a.name != name)
    return out


def with_attribute(node, name, value):
    out = without(node, name)
    out.attribute.append(helper.make_attribute(name, value))
    return out


# -- rewritings: each yields (label, One) ------------------------------------------------------


def formal(schema, i):
    """The formal parameter of the input of number i."""
    return schema.inputs[min(i, len(schema.inputs) - 1)]


def parameters(one):
    """The type parameters of the inputs: name -> (names of inputs, allowed dtypes)."""
    schema, found = one.schema, {}
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    for i, n in enumerate(one.node.input):
        f = formal(schema, i) if schema.inputs else None
        if n and f and f.type_str in allowed and n in one.feeds:
            dtypes = [d for d in map(dtype_of, allowed[f.type_str]) if d is not None]
            found.setdefault(f.type_str, ([], dtypes))[0].append(n)
    return found


def settled(one, binding):
    """Whether the standard, or one of the judges, says what such types give."""
    op, node = one.node.op_type, one.node
    for p, dtype in binding.items():
        if is_float(dtype):
            if op == "DequantizeLinear" and dtype.name == "float8_e8m0fnu":
                return False  # which has no sign
            if op == "DequantizeLinear" and p == "T1" and len(node.input) > 2:
                return False  # the zero point of floats is 0
            continue
        if (op, p) in FRACTIONS:
            mode = defined.attribute(node, "mode")
            return mode is not None and mode.s == b"nearest"
        if (op, p) == ("Attention", "U") and dtype != np.bool_:
            return False  # ONNX Runtime reads such masks as if they were floats
    names = [n for p in binding for n in parameters(one)[p][0]]
    return op != "BitCast" or all(
        dtype.itemsize == one.feeds[n].dtype.itemsize for dtype in binding.values() for n in names
    )


def retyped(one, binding, rng=None):
    """With the types of {parameter: dtype}; with a generator, extremes too where there were floats,
    or in what is no index."""
    found, feeds = parameters(one), dict(one.feeds)
    for p, dtype in binding.items():
        for n in found[p][0]:
            nonzero = any(
                i < len(one.node.input) and one.node.input[i] == n
                for i in DIVISORS.get(one.node.op_type, ())
            )
            nonzero = nonzero and not is_float(dtype)
            feeds[n] = converted(one.feeds[n], dtype, nonzero)
            if rng and is_float(one.feeds[n].dtype) and n not in one.consts:
                feeds[n] = extreme(feeds[n], dtype, rng, nonzero)
    node, schema = one.node, one.schema
    of = {f.name: f.type_str for f in schema.inputs}
    value = defined.attribute(node, "value")
    if value is not None and value.type == onnx.AttributeProto.TENSOR and not of:
        node = with_attribute(node, "value", value.t)
    return one.but(node, feeds)


def bindings(one):
    """Each parameter of each other type; two of the same; pairs that the name draws."""
    found = parameters(one)
    current = {p: np.dtype(one.feeds[names[0]].dtype) for p, (names, _) in found.items()}
    for p, (_, dtypes) in found.items():
        for d in dtypes:
            if d != current[p]:
                yield {p: d}
    for p, q in itertools.combinations(found, 2):
        both = [d for d in found[p][1] if d in found[q][1]]
        for d in both:
            if d not in (current[p], current[q]):
                yield {p: d, q: d}
        rng = random.Random(f"{one.node.op_type}{p}{q}")
        for _ in range(3):
            yield {p: rng.choice(found[p][1]), q: rng.choice(found[q][1])}
    if len(found) > 2:
        same = set.intersection(*(set(d) for _, d in found.values()))
        for d in sorted(same, key=str):
            yield dict.fromkeys(found, d)


def label_of(binding):
    return "_".join(f"{p}_{d.name}" for p, d in binding.items())


def types(one):
    for b in bindings(one):
        if settled(one, b):
            yield label_of(b), retyped(one, b)
    # what attributes say of outputs
    schema = one.schema
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    for name in TYPED:
        if name in schema.attributes and schema.outputs:
            for text in allowed.get(schema.outputs[0].type_str, ()):
                d = dtype_of(text)
                if d is not None:
                    kind = helper.np_dtype_to_tensor_dtype(d)
                    node = with_attribute(one.node, name, kind)
                    yield f"{name}_{d.name}", one.but(node)
                    drawn_types = [b for b in bindings(one) if len(b) == 1 and settled(one, b)]
                    for b in random.Random(text).sample(drawn_types, min(4, len(drawn_types))):
                        yield f"{label_of(b)}_{name}_{d.name}", retyped(one.but(node), b)
    for a in one.node.attribute:
        if a.name == "value" and a.type == onnx.AttributeProto.TENSOR and schema.outputs:
            for text in allowed.get(schema.outputs[0].type_str, ()):
                d = dtype_of(text)
                if d is not None:
                    t = numpy_helper.from_array(converted(numpy_helper.to_array(a.t), d, False))
                    yield f"value_{d.name}", one.but(with_attribute(one.node, "value", t))


def extremes(one):
    current = {p: np.dtype(one.feeds[names[0]].dtype) for p, (names, _) in parameters(one).items()}
    some = [{p: d} for p, d in current.items() if is_float(d)]
    for b in itertools.chain(some, (b for b in bindings(one) if len(b) == 1)):
        seed = hashlib.blake2b(f"{one.node.op_type}{label_of(b)}".encode()).digest()
        yield label_of(b), retyped(one, b, np.random.default_rng(list(seed[:8])))


def empty(one):
    base = [(n, axis, s) for n in one.names() for axis, s in enumerate(one.feeds[n].shape) if s]
    for n, axis, size in base:
        others = [(k, i) for k, i, s in base if s == size and (k, i) != (n, axis)][:4]
        for count in range(len(others) + 1):
            for more in itertools.combinations(others, count):
                feeds = dict(one.feeds)
                for k, i in ((n, axis), *more):
                    feeds[k] = np.take(feeds[k], [], i)
                tail = "".join(f"_{k}{i}" for k, i in more)
                yield f"{n}{axis}{tail}", one.but(feeds=feeds)


def scalars(one):
    for n in one.names():
        v = one.feeds[n]
        if v.shape in ((), (1,)):
            feeds = {**one.feeds, n: v.reshape((1,) if v.shape == () else ())}
            yield n, one.but(feeds=feeds)
        elif v.size:
            feeds = {**one.feeds, n: v.ravel()[0].reshape(())}
            yield f"{n}_first", one.but(feeds=feeds)
            yield f"{n}_ones", one.but(feeds={**one.feeds, n: v.ravel()[:1].reshape([1] * v.ndim)})
    feeds = {n: v.ravel()[0].reshape(()) if v.size else v for n, v in one.feeds.items()}
    yield "all", one.but(feeds=feeds)


def optional(one):
    def cut(node, names):
        while names and not names[-1]:
            names.pop()
        return names

    for i, n in enumerate(one.node.input):
        if n:
            kept = one.but()
            names = list(one.node.input)
            names[i] = ""
            del kept.node.input[:]
            kept.node.input.extend(names)
            kept.feeds = {k: v for k, v in one.feeds.items() if k in names}
            yield f"no_{n}_blank", kept
            short = kept.but()
            short.node.input[:] = cut(short.node, names)
            if list(short.node.input) != list(kept.node.input):
                yield f"no_{n}", short
    for i, o in enumerate(one.node.output):
        if o and len(one.outputs()) > 1:
            kept = one.but()
            kept.node.output[i] = ""
            yield f"no_output_{i}", kept
            short = kept.but()
            del short.node.output[i:]
            if short.outputs():
                yield f"outputs_{i}", short
    for f in one.schema.outputs[len(one.node.output) :]:
        more = one.but()
        more.node.output.append(f"more_{f.name}")
        yield f"more_{f.name}", more
    for a in one.node.attribute:
        yield f"without_{a.name}", one.but(without(one.node, a.name))


def ranks_of(one, base):
    """The ranks that axes may count from."""
    shapes = [v.ndim for v in one.feeds.values()] + [np.ndim(v) for v in base]
    return sorted(set(shapes), reverse=True)


def negative(one):
    base = judged(one)
    if not base:
        return
    base = next(iter(base.values()))
    for rank in ranks_of(one, base):
        for a in one.node.attribute:
            if a.name in ("axis", "axes", "batch_dims", "axis_w") or a.name.endswith("axis"):
                old = helper.get_attribute_value(a)
                new = [x - rank if x >= 0 else x + rank for x in np.ravel(old).astype(int).tolist()]
                value = new if isinstance(old, (list, tuple)) else new[0]
                yield f"{a.name}_{rank}", one.but(with_attribute(one.node, a.name, value)), base
        for i, n in enumerate(one.node.input):
            f = formal(one.schema, i) if one.schema.inputs else None
            if n in one.feeds and f and f.name in ("axis", "axes"):
                v = one.feeds[n]
                feeds = {**one.feeds, n: np.where(v >= 0, v - rank, v + rank).astype(v.dtype)}
                yield f"{n}_{rank}", one.but(feeds=feeds), base


def since(op, domain):
    found = {
        s.since_version
        for s in onnx.defs.get_all_schemas_with_history()
        if s.name == op and s.domain == domain
    }
    return sorted(found)


def versions(one):
    """In each other version: what is no input there is an attribute of the name, and the other way
    round; what it does not know is left out."""
    now = one.schema
    for v in since(one.node.op_type, one.node.domain):
        if v == now.since_version:
            continue
        old = onnx.defs.get_schema(one.node.op_type, v, one.node.domain)
        if old.deprecated:
            continue
        made, inputs = one.but(opset=v), []
        given = {}
        for i, n in enumerate(one.node.input):
            f = formal(now, i)
            given.setdefault(f.name, []).append(n)
        taken = [a.name for a in one.node.attribute]
        del made.node.attribute[:]
        made.node.attribute.extend(a for a in one.node.attribute if a.name in old.attributes)
        for f in old.inputs:
            if f.name in given:
                inputs += given.pop(f.name)
            elif f.name in taken:
                value = np.asarray(helper.get_attribute_value(defined.attribute(one.node, f.name)))
                if value.dtype.kind == "f":
                    value = value.astype(np.float32)
                made.feeds[f"from_{f.name}"] = value
                made.consts.add(f"from_{f.name}")
                inputs.append(f"from_{f.name}")
            else:
                positional = [k for k in given if now.inputs[0].name == k or len(old.inputs) == 1]
                inputs += given.pop(positional[0]) if positional and f is old.inputs[0] else [""]
        for name, sources in given.items():
            if name in old.attributes and sources[0] in one.feeds:
                value = one.feeds[sources[0]]
                value = value.tolist()
                if value != []:
                    made.node.attribute.append(helper.make_attribute(name, value))
        while inputs and not inputs[-1]:
            inputs.pop()
        made.node.input[:] = inputs
        made.feeds = {k: x for k, x in made.feeds.items() if k in inputs}
        yield f"version_{v}", made


KINDS = {
    "types": types,
    "extremes": extremes,
    "empty": empty,
    "scalars": scalars,
    "optional": optional,
    "negative": negative,
    "versions": versions,
}


# -- judges ------------------------------------------------------------------------------------


def castable(dtype):
    """What numpy and ONNX Runtime exchange such a tensor as."""
    if dtype.type.__module__ != "ml_dtypes":
        return None
    return np.dtype(np.float32 if is_float(dtype) else np.int8)


def by_ort(one, rounded=None):
    """Types that numpy lacks go in and out by casts, which are exact. `rounded`: a type that is
    computed in f32."""
    model = one.model()
    graph, feeds, before, after = model.graph, dict(one.feeds), [], []
    for n in one.names():
        v = feeds[n]
        wide = castable(v.dtype) if rounded is None or v.dtype != rounded else FLOAT32
        if not wide:
            continue
        if n in one.consts:
            if rounded is None:
                continue
            t = next(t for t in graph.initializer if t.name == n)
            t.CopyFrom(numpy_helper.from_array(v.astype(wide), n))
            continue
        info = next(i for i in graph.input if i.name == n)
        info.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(wide)
        feeds[n] = v.astype(wide)
        if rounded is not None and v.dtype == rounded:
            continue
        info.name = f"{n}/wide"
        feeds[info.name] = feeds.pop(n)
        kind = helper.np_dtype_to_tensor_dtype(v.dtype)
        before.append(helper.make_node("Cast", [info.name], [n], to=kind))
    wanted, to = [], {}
    kinds = inferred(one)
    for o in one.outputs():
        dtype = kinds.get(o)
        wide = castable(dtype) if dtype is not None and rounded is None else None
        if wide:
            kind = helper.np_dtype_to_tensor_dtype(wide)
            after.append(helper.make_node("Cast", [o], [f"{o}/wide"], to=kind))
        if wide or None not in (rounded, dtype) and dtype == rounded:
            to[o] = dtype
        wanted.append(f"{o}/wide" if wide else o)
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.output[:]
    graph.output.extend(helper.make_empty_tensor_value_info(w) for w in wanted)
    if before or after:
        for o in model.opset_import:
            if o.domain in ("", "ai.onnx"):
                if o.version < 13:
                    raise ValueError("no such cast in this opset")
    options = exact.options()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    got = exact.results(model, feeds, wanted, options)
    with np.errstate(all="ignore"):
        return [
            np.asarray(v).astype(to[o]) if o in to else np.asarray(v)
            for o, v in zip(one.outputs(), got)
        ]


def inferred(one):
    """The dtypes of outputs by onnx's inference."""
    model = onnx.shape_inference.infer_shapes(one.model())
    found = {}
    for v in [*model.graph.output, *model.graph.value_info]:
        kind = v.type.tensor_type.elem_type
        if kind and kind != TensorProto.STRING:
            found[v.name] = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
    return found


def by_reference(one):
    with np.errstate(all="ignore"):
        got = ReferenceEvaluator(one.model()).run(None, one.feeds)
    kinds, out = inferred(one), []
    for o, v in zip(one.outputs(), got):
        v = np.asarray(v)
        if o in kinds and v.dtype != kinds[o]:
            raise ValueError(f"{v.dtype} for {kinds[o]}")
        out.append(v)
    return out


def judged(one):
    """Results by judge, the best first."""
    onnx.checker.check_node(one.node, checking_context(one))
    found = {}
    narrow = [v.dtype for v in one.feeds.values() if v.dtype.name in NARROW]
    judges = {"ort": by_ort}
    for d in narrow:
        judges["f32"] = functools.partial(by_ort, rounded=d)
    judges["reference"] = by_reference
    for name, judge in judges.items():
        try:
            got = judge(one)
            if all(isinstance(v, np.ndarray) and v.dtype.kind not in "OSUc" for v in got):
                found[name] = got
        except Exception as e:  # it does not compute this
            if os.environ.get("SHOW_JUDGES"):
                print(name, type(e).__name__, str(e)[:300], file=sys.stderr)
    return found


def checking_context(one):
    context = onnx.checker.C.CheckerContext()
    context.ir_version = 10
    context.opset_imports = {"": one.opset, one.node.domain: one.opset}
    return context


# -- all of them -------------------------------------------------------------------------------


def equal(a, b):
    try:
        for x, y in zip(a, b):
            values.compare(x, y, 1e-3, 1e-6)
    except values.Mismatch:
        return False
    return True


def write(folder, one, got):
    bounded_dims.write(folder, one.model(got), [({n: one.feeds[n] for n in one.names()}, got)])


def rewritings(kind, one, most):
    """At most so many, drawn."""
    every = {re.sub(r"[^\w]", "_", label): made for label, *made in KINDS[kind](one)}
    rng = random.Random(f"{kind}{one.node.op_type}{len(every)}{most}")
    for label in rng.sample(sorted(every), min(most, len(every))):
        made, *base = every[label]
        yield label, made, base[0] if base else None


def of_case(folder, out, kinds, most):
    """Writes what a case gives, at most so many of a kind; how many of each."""
    warnings.simplefilter("ignore")
    count = collections.Counter()
    try:
        source = bounded_dims.Source(folder)
        one = one_of(source)
    except Exception as e:
        print(f"{folder.name}: {type(e).__name__}: {e}", file=sys.stderr)
        return count
    if one is None:
        return count
    name = folder.name.replace("test_", "", 1)
    for kind in kinds:
        try:
            for label, made, base in rewritings(kind, one, most):
                try:
                    if not defined.by_standard(made):
                        continue
                    found = judged(made)
                except Exception:  # the standard's checker does not take it
                    continue
                if base is not None:
                    found = {k: v for k, v in found.items() if equal(v, base)}
                if kind in ("empty", "scalars", "optional", "versions") and "ort" not in found:
                    found = {}
                count[kind] += bool(found)
                given = []
                for judge, got in found.items():
                    if any(equal(got, g) for g in given):
                        continue
                    given.append(got)
                    tail = f"@{judge}" if len(given) > 1 or judge != "ort" else ""
                    write(out / kind / f"{name}__{label}{tail}", made, got)
        except Exception:
            print(f"{folder.name}: {kind}: {traceback.format_exc()}", file=sys.stderr)
    return count


def chosen(opt):
    """(folder, how many of a kind) of all cases."""
    found = bounded_dims.sources(opt.cases)
    folders = []
    for (_, op), cases in sorted(found.items(), key=lambda v: v[0][1]):
        if not opt.filter or re.search(opt.filter, op):
            most = max(LEAST, MOST // len(cases)) if cases else 0
            folders += [(c.folder, most) for c in sorted(cases, key=lambda c: c.name)]
    return folders


def isolated(folder, out, kinds, most):
    """of_case() in a process of its own, which a judge may end."""
    read, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        done = of_case(folder, out, kinds, most)
        os.write(write_end, json.dumps(done).encode())
        os._exit(0)
    os.close(write_end)
    text = b""
    while part := os.read(read, 65536):
        text += part
    os.close(read)
    os.waitpid(pid, 0)
    if not text:
        print(f"{folder.name}: a judge has ended the process", file=sys.stderr)
    return collections.Counter(json.loads(text or b"{}"))


def generate(opt):
    total = collections.Counter()
    shutil.rmtree(opt.out, ignore_errors=True)
    folders = chosen(opt)
    if opt.sample:
        folders = sorted(random.Random(opt.seed).sample(folders, min(opt.sample, len(folders))))
    with concurrent.futures.ThreadPoolExecutor(opt.jobs) as pool:
        for c in pool.map(lambda f: isolated(f[0], opt.out, opt.kinds, f[1]), folders):
            total.update(c)
    for kind in opt.kinds:
        print(f"{kind}: {total[kind]}")


def judge(opt):
    """What no judge's results agree with."""
    found = collections.defaultdict(list)
    for r in json.loads(opt.judge.read_text()):
        found[r["name"].split("@")[0]].append(r)
    count, why = collections.Counter(), collections.defaultdict(list)
    rank = ("passed", "refused", "failed", "crash")
    for name, rs in found.items():
        best = min(rs, key=lambda r: rank.index(r["status"]))
        count[best["status"]] += 1
        if best["status"] != "passed":
            why[(best["status"], tables.group(best["reason"]))].append(name)
    for (status, reason), names in sorted(why.items(), key=lambda kv: -len(kv[1])):
        print(f"{status} {len(names)}: {reason}\n    {' '.join(names[:6])}")
    print(", ".join(f"{n} {s}" for s, n in count.items()))
    return 1 if count["failed"] or count["crash"] else 0


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    a = p.add_argument
    a("out", type=pathlib.Path, metavar="OUT_DIR")
    a("--cases", nargs="+", type=pathlib.Path, default=[pathlib.Path("build/onnx-cases")])
    a("--kinds", type=lambda s: s.split(","), default=list(KINDS))
    a("--filter", metavar="REGEX", help="only operators that match")
    a("--sample", type=int, metavar="N", help="only N of the cases, drawn by --seed")
    a("--seed", type=int, default=0)
    a("--jobs", type=int, default=os.cpu_count() or 2)
    a("--judge", type=pathlib.Path, metavar="RESULTS.json")
    opt = p.parse_args()
    if opt.judge:
        return judge(opt)
    return generate(opt)


if __name__ == "__main__":
    sys.exit(main())
