#!/usr/bin/env python3
"""Judges ingot on what ONNX Runtime makes of a model: the files of its optimiser and of its
quantisers.

    ort_models.py --ingot build/ingot [--forms basic,extended,...] MODELS...      folders with
        model.onnx, or .onnx files

Each float model is written again in these forms below --work, a folder of each form with its
inputs:

    basic, extended   by the optimiser (SessionOptions.optimized_model_filepath); the level "all"
                      depends on the machine
    qoperator, qdq    quantize_static: 8 bits, weights per channel where it can, operators that are
                      quantised or pairs around them
    dynamic           quantize_dynamic: weights in 8 bits, activations at run time
    nbits             MatMulNBits: weights of products in 4 bits, by blocks

`ingot run` then runs each file, and so does ONNX Runtime, as it stands. They agree where no output
differs by more than 1e-4 of its range; in the 8-bit forms, by more than one step of the scale that
the output was last quantised with. That is the unit of the table: up to 1 is "right".

What is over 1 is "unstable" if no implementation can be held to that bar, because ONNX Runtime is
not within it of itself: it differs by more than 1 from itself, and by at least half as much as
ingot does, when nothing is changed that may matter:

    opt    its optimiser is on (level all) instead of off
    1e-6   its float weights are moved towards zero by about 1e-6 of their values, ten units in the
           last place (three draws)
    f64    InstanceNormalization, ReduceMean and ReduceSum are computed in f64

In a deep network of 8 bits one value that falls to the other side of a half moves all that follow,
boxes with almost equal scores change places, and f32 sums over a million elements have errors of
their own. All else over 1 is "wrong".

Inputs are those of test_data_set_0 where it is there, else random numbers; free dims have the
data's sizes, else 1, or what --dim says. Exit status 1 when something is wrong, refused or crashed,
77 without ONNX Runtime.
"""

import argparse
import collections
import concurrent.futures
import logging
import pathlib
import shutil
import sys
import tempfile

try:
    import ml_dtypes  # noqa: F401
    import numpy as np
    import onnx
    import onnx.version_converter
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"ort_models.py: skipped: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import exact  # noqa: E402
import values  # noqa: E402
from process import call, crashed, first_line  # noqa: E402

LEVELS = {
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def session(model, level="none", write=None):
    """Of a file, or of its bytes."""
    options = exact.options()
    options.graph_optimization_level = LEVELS[level]
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if write:
        options.optimized_model_filepath = str(write)
    return ort.InferenceSession(
        model if isinstance(model, bytes) else str(model),
        options,
        providers=["CPUExecutionProvider"],
    )


# -- inputs -------------------------------------------------------------------------------------


def free_inputs(graph):
    weights = {t.name for t in graph.initializer}
    return [v for v in graph.input if v.name not in weights]


def drawn(info, dims, rng):
    """Random numbers of an input's type and shape."""
    tensor = info.type.tensor_type
    shape = [
        d.dim_value if d.HasField("dim_value") else dims.get(d.dim_param, 1)
        for d in tensor.shape.dim
    ]
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        if "mask" in info.name.lower():
            return np.ones(shape, dtype)
        return rng.integers(0, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def feeds_of(path, dims):
    """What the model's first data set holds, or random numbers: a value for each input."""
    inputs = free_inputs(onnx.load(path, load_external_data=False).graph)
    data, rng = path.parent / "test_data_set_0", np.random.default_rng(1)
    out = {}
    for i, info in enumerate(inputs):
        file = data / f"input_{i}.pb"
        out[info.name] = (
            values.load_pb(file, "tensor_type") if file.exists() else drawn(info, dims, rng)
        )
    return out


# -- forms --------------------------------------------------------------------------------------


class Reader:
    """What quantize_static calibrates with."""

    def __init__(self, feeds):
        self.feeds = iter([feeds])

    def get_next(self):
        return next(self.feeds, None)


def optimised(level):
    def write(source, target, feeds):
        session(source, level, target)

    return write


def standard(graph):
    """What no later opset has (ImageScaler, Crop, Affine), in operators that it has."""
    nodes = []
    for n in graph.node:
        if n.op_type not in ("ImageScaler", "Crop", "Affine"):
            nodes.append(n)
            continue
        attr = {a.name: helper.get_attribute_value(a) for a in n.attribute}
        x, y = n.input[0], n.output[0]
        if n.op_type == "Crop":
            left, top, right, bottom = attr["border"]
            nodes.append(
                helper.make_node(
                    "Slice",
                    [x],
                    [y],
                    n.name,
                    axes=[2, 3],
                    starts=[top, left],
                    ends=[-bottom or 1 << 30, -right or 1 << 30],
                )
            )
            continue
        scale, bias = (
            (attr.get("scale", 1.0), np.reshape(attr["bias"], (1, -1, 1, 1)))
            if n.op_type == "ImageScaler"
            else (attr.get("alpha", 1.0), attr.get("beta", 0.0))
        )
        for name, v in ((f"{y}/scale", scale), (f"{y}/bias", bias)):
            graph.initializer.append(numpy_helper.from_array(np.asarray(v, np.float32), name))
        nodes += [
            helper.make_node("Mul", [x, f"{y}/scale"], [f"{y}/scaled"], f"{n.name}_scale"),
            helper.make_node("Add", [f"{y}/scaled", f"{y}/bias"], [y], n.name),
        ]
    del graph.node[:]
    graph.node.extend(nodes)


def modern(source, target):
    """As the quantisers want it: of an opset that knows scales by axis, no weights among the
    inputs, no old shapes."""
    model = onnx.load(source)
    if all(t.data_type != TensorProto.FLOAT or not t.dims for t in model.graph.initializer):
        raise ValueError("the model has no weights in f32")
    standard(model.graph)
    weights = {t.name for t in model.graph.initializer}
    inputs = [v for v in model.graph.input if v.name not in weights]
    del model.graph.input[:]
    del model.graph.value_info[:]
    model.graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, 4)
    if next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx")) < 13:
        model = onnx.version_converter.convert_version(model, 13)
    onnx.save(model, target)


def quantised_statically(form):
    def write(source, target, feeds):
        from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
        from onnxruntime.quantization.shape_inference import quant_pre_process

        with tempfile.TemporaryDirectory() as tmp:
            wide, ready = pathlib.Path(tmp) / "wide.onnx", pathlib.Path(tmp) / "ready.onnx"
            modern(source, wide)
            quant_pre_process(str(wide), str(ready), skip_symbolic_shape=True)
            for per_channel in (True, False):  # of some models the quantiser can do the latter only
                try:
                    quantize_static(
                        str(ready),
                        str(target),
                        Reader(feeds),
                        per_channel=per_channel,
                        quant_format=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator,
                        activation_type=QuantType.QUInt8,
                        weight_type=QuantType.QInt8,
                    )
                    return
                except ValueError:
                    if not per_channel:
                        raise

    return write


def quantised_dynamically(source, target, feeds):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as tmp:
        wide = pathlib.Path(tmp) / "wide.onnx"
        modern(source, wide)
        quantize_dynamic(str(wide), str(target), weight_type=QuantType.QUInt8)


def quantised_in_4_bits(source, target, feeds):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=False)
    quantizer.process()
    onnx.save(quantizer.model.model, target)


FORMS = {
    "basic": optimised("basic"),
    "extended": optimised("extended"),
    "qoperator": quantised_statically("qoperator"),
    "qdq": quantised_statically("qdq"),
    "dynamic": quantised_dynamically,
    "nbits": quantised_in_4_bits,
}
EIGHT_BITS = ("qoperator", "qdq", "dynamic")
SELVES = ("opt", "1e-6", "f64")


def write_form(form, source, folder, feeds):
    """None, or why ONNX Runtime does not write this form."""
    target = folder / "model.onnx"
    folder.mkdir(parents=True)
    try:
        FORMS[form](source, target, feeds)
    except Exception as error:  # whatever the quantisers stumble over is no fault of ours
        return f"{type(error).__name__}: {first_line(str(error))}"
    inputs = free_inputs(onnx.load(target, load_external_data=False).graph)
    strange = [v.name for v in inputs if v.name not in feeds]
    if strange:
        return f"the file has inputs that the model has not: {', '.join(strange)}"
    data = folder / "data"
    data.mkdir()
    for i, info in enumerate(inputs):
        (data / f"input_{i}.pb").write_bytes(
            numpy_helper.from_array(feeds[info.name], info.name).SerializeToString()
        )
    return None


# -- judging ------------------------------------------------------------------------------------


def last_scale(graph, name):
    """The scale that an output was last quantised with, found upwards through its producers; None
    without one."""
    consts = {t.name: t for t in graph.initializer}
    maker = {o: n for n in graph.node for o in n.output}
    seen, queue = set(), collections.deque([name])
    while queue:
        node = maker.get(queue.popleft())
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        at = {
            "DequantizeLinear": 1,
            "QLinearConv": 6,
            "QLinearMatMul": 6,
            "QGemm": 7,
            "QuantizeLinear": 1,
        }.get(node.op_type)
        if at is None and node.op_type.startswith("QLinear"):
            at = {"QLinearConcat": 0, "QLinearAdd": 6, "QLinearMul": 6}.get(node.op_type, 3)
        if at is not None and at < len(node.input) and node.input[at] in consts:
            return float(np.max(numpy_helper.to_array(consts[node.input[at]])))
        queue.extend(node.input)
    return None


def difference(got, want, step):
    """The largest difference in units of what is allowed."""
    if got is None or got.shape != want.shape or got.dtype != want.dtype:
        return np.inf
    g, w = np.atleast_1d(got.astype(np.float64)), np.atleast_1d(want.astype(np.float64))
    if not w.size:
        return 0.0
    same = (g == w) | (np.isnan(g) & np.isnan(w))
    error = np.where(same, 0, np.abs(g - w))
    return np.inf if np.isnan(error).any() else float(error.max()) / step


def allowed(graph, name, want, form):
    """How much an output may differ."""
    finite = want.astype(np.float64)
    finite = finite[np.isfinite(finite)]
    span = float(finite.max() - finite.min()) if finite.size else 0.0
    span = span or float(np.abs(finite).max(initial=0.0)) or 1.0
    if want.dtype.kind not in "f":
        return 1.0 if form in EIGHT_BITS and want.dtype.itemsize == 1 else 0.5
    if form in EIGHT_BITS:
        return max(last_scale(graph, name) or span / 255, 1e-4 * span) * 1.001
    return 1e-4 * span


def moved(model, rng):
    """The model with its float weights moved by 1e-6 of their values, but for those that decide
    shapes, and exponents."""
    kept = {
        i for n in model.graph.node if n.op_type in ("Resize", "Upsample", "Pow") for i in n.input
    }
    for t in model.graph.initializer:
        if t.data_type == TensorProto.FLOAT and t.name not in kept:
            w = numpy_helper.to_array(t)
            w = w * (
                1 - 1e-6 * np.abs(rng.standard_normal(w.shape))
            )  # towards zero: no mask becomes infinite
            t.CopyFrom(numpy_helper.from_array(w.astype(np.float32), t.name))
    return model.SerializeToString()


def wide_sums(model):
    """The model with its norms and sums over many elements in f64; None without any."""
    nodes, graph = [], model.graph
    weights = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    for n in graph.node:
        x, y = n.input[0] if n.input else "", n.output[0]
        if n.op_type in ("ReduceMean", "ReduceSum"):
            wide = onnx.NodeProto()
            wide.CopyFrom(n)
            wide.input[0], wide.output[0] = f"{y}_wide_in", f"{y}_wide"
            nodes += [
                helper.make_node("Cast", [x], [f"{y}_wide_in"], to=TensorProto.DOUBLE),
                wide,
                helper.make_node("Cast", [f"{y}_wide"], [y], to=TensorProto.FLOAT),
            ]
        elif (
            n.op_type == "InstanceNormalization" and n.input[1] in weights and n.input[2] in weights
        ):

            def v(name):
                return f"{y}_wide_{name}"

            epsilon = next((a.f for a in n.attribute if a.name == "epsilon"), 1e-5)
            shape = (1, -1, 1, 1)
            for name, w in (
                ("s", weights[n.input[1]].reshape(shape)),
                ("b", weights[n.input[2]].reshape(shape)),
                ("e", np.array(epsilon)),
            ):
                graph.initializer.append(numpy_helper.from_array(w.astype(np.float64), v(name)))
            for op, ins, out, more in (
                ("Cast", [x], v("x"), {"to": TensorProto.DOUBLE}),
                ("GlobalMean", [v("x")], v("m"), {}),
                ("Sub", [v("x"), v("m")], v("d"), {}),
                ("Mul", [v("d"), v("d")], v("q"), {}),
                ("GlobalMean", [v("q")], v("v"), {}),
                ("Add", [v("v"), v("e")], v("ve"), {}),
                ("Sqrt", [v("ve")], v("r"), {}),
                ("Div", [v("d"), v("r")], v("n"), {}),
                ("Mul", [v("n"), v("s")], v("ns"), {}),
                ("Add", [v("ns"), v("b")], v("y"), {}),
                ("Cast", [v("y")], y, {"to": TensorProto.FLOAT}),
            ):
                if op == "GlobalMean":  # of images
                    opset = next(
                        o.version for o in model.opset_import if o.domain in ("", "ai.onnx")
                    )
                    if opset < 18:
                        more = {"axes": [2, 3]}
                    else:
                        graph.initializer.append(
                            numpy_helper.from_array(np.array([2, 3]), f"{out}_axes")
                        )
                        ins = [*ins, f"{out}_axes"]
                    nodes.append(helper.make_node("ReduceMean", ins, [out], **more))
                else:
                    nodes.append(helper.make_node(op, ins, [out], **more))
        else:
            nodes.append(n)
    if len(nodes) == len(graph.node):
        return None
    del graph.node[:]
    graph.node.extend(nodes)
    return model.SerializeToString()


def selves(form, model, wanted, want, feeds, allow):
    """How far ONNX Runtime is from itself, by what was changed: {"opt": 0.3, ...}."""

    def far(other):
        return max((difference(o, w, s) for o, w, s in zip(other, want, allow) if s), default=0.0)

    drawn = (
        session(moved(onnx.load(model), np.random.default_rng(seed))).run(wanted, feeds)
        for seed in range(3)
    )
    own = {"opt": far(session(model, "all").run(wanted, feeds)), "1e-6": max(map(far, drawn))}
    try:
        wide = wide_sums(onnx.load(model))
        own["f64"] = far(session(wide).run(wanted, feeds)) if wide else 0.0
    except Exception:  # a rank or opset that the rewriting does not know
        own["f64"] = 0.0
    return own


def judged(form, folder, feeds, opt):
    """(status, largest difference over the allowed one, ONNX Runtime's own, a remark)"""
    model = folder / "model.onnx"
    graph = onnx.load(model).graph
    wanted = [o.name for o in graph.output]
    feeds = {v.name: feeds[v.name] for v in free_inputs(graph)}
    try:
        want = session(model).run(wanted, feeds)
    except Exception as error:
        return "skipped", 0, {}, f"ONNX Runtime: {first_line(str(error))}"
    out = folder / "out"
    done = call(
        [
            opt.ingot,
            "run",
            model,
            "--data",
            folder / "data",
            "--output-dir",
            out,
            "--target",
            opt.target,
            *(f"--dim={d}" for d in opt.dim),
        ],
        opt.timeout,
    )
    if done.timed_out:
        return "slow", 0, {}, f"not done after {opt.timeout} s"
    if crashed(done):
        return "crash", 0, {}, crashed(done)
    if done.rc:
        return ("refused" if done.rc == 4 else "failed"), 0, {}, first_line(done.err)
    worst, allow = 0.0, []
    for i, (name, w) in enumerate(zip(wanted, want)):
        plain = isinstance(w, np.ndarray) and w.dtype != object
        allow.append(allowed(graph, name, w, form) if plain else None)
        if not plain:
            continue
        file = out / f"output_{i}.pb"
        got = (
            values.load_pb(file, "tensor_type")
            if file.exists()
            else values.load_npy(out / f"output_{i}", w)
        )
        worst = max(worst, difference(got, w, allow[i]))
    if worst <= 1:
        return "right", worst, {}, ""
    own = selves(form, model, wanted, want, feeds, allow)
    most = max(own.values())
    return ("unstable" if most > 1 and worst <= 2 * most else "wrong"), worst, own, ""


def family(work):
    """All forms of one model."""
    path, opt = work
    name = path.parent.name if path.name == "model.onnx" else path.stem
    dims = dict((k, int(v)) for k, v in (d.split("=") for d in opt.dim if ".." not in d))
    rows, forms = [], opt.forms.split(",")
    try:
        feeds = feeds_of(path, dims)
    except Exception as error:
        rows, forms = [(name, "-", "skipped", 0, {}, str(error))], []
    for form in forms:
        folder = opt.work / name / form
        if not (opt.keep and (folder / "data").exists()):
            shutil.rmtree(folder, ignore_errors=True)
            why = write_form(form, path, folder, feeds)
            if why:
                rows.append((name, form, "skipped", 0, {}, why))
                continue
        rows.append((name, form, *judged(form, folder, feeds, opt)))
        if not opt.keep:
            shutil.rmtree(folder, ignore_errors=True)
    for name, form, status, ours, own, remark in rows:
        cells = " ".join(f"{own[k]:9.3g}" if k in own else f"{'':9}" for k in SELVES)
        print(f"{name:28} {form:10} {status:9} {ours:9.3g} {cells}  {remark}".rstrip(), flush=True)
    return rows


def models(paths):
    for p in map(pathlib.Path, paths):
        if p.is_file():
            yield p
        elif (p / "model.onnx").exists():
            yield p / "model.onnx"
        else:
            yield from sorted(p.glob("*/model.onnx"))


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", default="build/ingot")
    p.add_argument("--forms", default=",".join(FORMS))
    p.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/ort-models"))
    p.add_argument(
        "--keep",
        action="store_true",
        help="leave the files in --work, and use those that are there",
    )
    p.add_argument("--target", default="c:native")
    p.add_argument("--dim", action="append", default=[], help="NAME=N, as for ingot run")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--timeout", type=int, default=600)
    p.add_argument("models", nargs="+")
    opt = p.parse_args()
    unknown = set(opt.forms.split(",")) - set(FORMS)
    if unknown:
        p.error(f"unknown form: {', '.join(sorted(unknown))}")
    logging.disable(logging.WARNING)
    ort.set_default_logger_severity(4)
    print(
        f"{'model':28} {'form':10} {'status':9} {'ours':>9} "
        + " ".join(f"{'ort ' + k:>9}" for k in SELVES)
        + "  remark"
    )
    with concurrent.futures.ThreadPoolExecutor(opt.jobs) as pool:
        rows = [
            r for rows in pool.map(family, [(m, opt) for m in models(opt.models)]) for r in rows
        ]
    count = collections.Counter(r[2] for r in rows)
    print(", ".join(f"{n} {s}" for s, n in sorted(count.items())))
    return 1 if any(count[s] for s in ("wrong", "refused", "failed", "crash", "slow")) else 0


if __name__ == "__main__":
    sys.exit(main())
