"""Gradients of every kind of ONNX operator that has one, in f64, beside differences.

    check_gradients.py --check BUILD/tests/gradient_check [--keep DIR] [NAME...]

Each case is a model of one node.  What is no constant of its list is an input; floats get a
gradient.  Then operators without one, which have to be errors.
"""

import argparse
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import helper
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)

rng = np.random.default_rng(5)


def normal(*shape):
    return rng.standard_normal(shape)


def between(lo, hi, *shape):
    return rng.uniform(lo, hi, shape)


def distinct(*shape):
    """No two are nearer than 0.05."""
    n = int(np.prod(shape))
    return (rng.permutation(n) * 0.07 - n * 0.035).reshape(shape)


def ints(*values):
    return np.array(values, np.int64)


class Const:
    """An input of the node whose value the model has."""

    def __init__(self, value):
        self.value = value


def case(op, *inputs, outputs=1, version=None, domain="", **attributes):
    return op, inputs, outputs, version, domain, attributes


def elementwise():
    yield from (
        (n, case(n, normal(3, 7)))
        for n in (
            "Abs Neg Exp Sin Cos Tan Sinh Cosh Tanh Asinh Atan Erf Sigmoid Softplus Softsign Relu "
            "Elu Selu Celu LeakyRelu Gelu "
            "HardSigmoid HardSwish Mish ThresholdedRelu Floor Ceil Sign Identity Shrink"
        ).split()
    )
    yield from ((n, case(n, between(0.4, 2, 3, 7))) for n in ("Log", "Sqrt", "Reciprocal"))
    yield from ((n, case(n, between(-0.8, 0.8, 3, 7))) for n in ("Asin", "Acos", "Atanh"))
    yield "Swish", case("Swish", normal(3, 7), version=24)
    yield "Acosh", case("Acosh", between(1.3, 3, 3, 7))
    yield from (
        (n, case(n, normal(3, 1, 5), normal(4, 1)))
        for n in ("Add", "Sub", "Mul", "Max", "Min", "PRelu")
    )
    yield from ((n, case(n, normal(2, 3), normal(3), normal(2, 1))) for n in ("Sum", "Mean"))
    yield "Div", case("Div", normal(3, 1, 5), between(0.5, 2, 4, 1))
    yield "Pow", case("Pow", between(0.5, 2, 3, 4), normal(4))
    yield "PowSquare", case("Pow", normal(3, 4), Const(np.array(2.0)))
    yield "Mod", case("Mod", between(1, 4, 3, 4), between(0.6, 0.9, 4), fmod=1)
    yield "Where", case("Where", rng.integers(0, 2, (3, 4)).astype(bool), normal(3, 4), normal(4))
    yield "Clip", case("Clip", normal(4, 5), Const(np.array(-0.5)), Const(np.array(0.7)))
    yield "Dropout", case("Dropout", normal(3, 4))


def products():
    yield "MatMul", case("MatMul", normal(2, 3, 4), normal(4, 5))
    yield "MatMulVector", case("MatMul", normal(4), normal(2, 4, 3))
    yield (
        "Gemm",
        case(
            "Gemm", normal(4, 3), normal(5, 4), normal(5), transA=1, transB=1, alpha=0.5, beta=2.0
        ),
    )
    yield "Einsum", case("Einsum", normal(2, 3, 4), normal(4, 3, 5), equation="bij,jik->bk")
    yield "EinsumDiagonal", case("Einsum", normal(3, 3), equation="ii->i")
    conv = dict(strides=[2, 3], pads=[1, 0, 2, 1], dilations=[1, 2], group=2)
    yield "Conv", case("Conv", normal(2, 4, 7, 9), normal(6, 2, 3, 2), normal(6), **conv)
    yield "ConvSame", case("Conv", normal(2, 3, 5, 5), normal(4, 3, 3, 3), pads=[1, 1, 1, 1])
    yield "ConvPoint", case("Conv", normal(2, 4, 7, 9), normal(6, 4, 1, 1), strides=[2, 2])
    yield (
        "ConvDepth",
        case(
            "Conv",
            normal(1, 4, 6, 6),
            normal(4, 1, 3, 3),
            group=4,
            strides=[2, 2],
            pads=[1, 1, 1, 1],
        ),
    )
    yield "ConvLine", case("Conv", normal(2, 3, 9), normal(4, 3, 3), strides=[2])
    yield (
        "ConvCube",
        case("Conv", normal(1, 2, 4, 5, 4), normal(3, 2, 2, 3, 2), pads=[0, 1, 0, 1, 0, 1]),
    )
    yield (
        "ConvTranspose",
        case(
            "ConvTranspose",
            normal(2, 4, 3, 4),
            normal(4, 3, 3, 2),
            strides=[2, 1],
            pads=[1, 0, 0, 1],
        ),
    )
    yield (
        "ConvTransposeGroups",
        case("ConvTranspose", normal(1, 4, 3, 4), normal(4, 3, 3, 2), group=2, strides=[2, 3]),
    )
    yield (
        "Attention",
        case("Attention", normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4), version=23),
    )


def pools():
    yield (
        "MaxPool",
        case(
            "MaxPool", distinct(2, 3, 7, 8), kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]
        ),
    )
    yield "MaxPoolApart", case("MaxPool", distinct(2, 3, 6, 8), kernel_shape=[2, 2], strides=[2, 2])
    yield (
        "MaxPoolDilated",
        case(
            "MaxPool", distinct(2, 3, 9, 8), kernel_shape=[3, 2], strides=[2, 1], dilations=[2, 2]
        ),
    )
    yield (
        "AveragePool",
        case(
            "AveragePool",
            normal(2, 3, 7, 8),
            kernel_shape=[3, 2],
            strides=[1, 2],
            pads=[1, 0, 1, 0],
        ),
    )
    yield "LpPool", case("LpPool", normal(2, 3, 7, 8), kernel_shape=[2, 2], strides=[2, 2])
    yield from (
        (n, case(n, distinct(2, 3, 5, 4)))
        for n in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
    )


def norms():
    yield "LayerNormalization", case("LayerNormalization", normal(2, 3, 6), normal(6), normal(6))
    yield (
        "InstanceNormalization",
        case("InstanceNormalization", normal(2, 3, 4, 4), normal(3), normal(3)),
    )
    yield (
        "GroupNormalization",
        case("GroupNormalization", normal(2, 4, 3, 3), normal(4), normal(4), num_groups=2),
    )
    yield "RMSNormalization", case("RMSNormalization", normal(2, 6), normal(6), version=23)
    yield "LRN", case("LRN", normal(2, 5, 3, 3), size=3)
    yield "LpNormalization", case("LpNormalization", normal(2, 5))
    yield "MeanVarianceNormalization", case("MeanVarianceNormalization", normal(2, 3, 3, 3))
    stats = normal(3), between(0.5, 2, 3)
    yield (
        "BatchNormalization",
        case("BatchNormalization", normal(4, 3, 2, 2), normal(3), normal(3), *stats),
    )
    yield (
        "BatchNormalizationTraining",
        case(
            "BatchNormalization",
            normal(4, 3, 2, 2),
            normal(3),
            normal(3),
            Const(np.zeros(3)),
            Const(np.ones(3)),
            training_mode=1,
            outputs=3,
        ),
    )
    yield from ((n, case(n, normal(3, 6))) for n in ("Softmax", "LogSoftmax"))


def reductions():
    yield from (
        (
            "Reduce" + n,
            case("Reduce" + n, between(0.5, 1.5, 3, 4, 5), Const(ints(0, 2)), keepdims=0),
        )
        for n in "Sum Mean Max Min Prod L1 L2 SumSquare LogSum LogSumExp".split()
    )
    yield "CumSum", case("CumSum", normal(3, 4), Const(np.array(1)), reverse=1, exclusive=1)


def movement():
    yield "Transpose", case("Transpose", normal(2, 3, 4), perm=[2, 0, 1])
    yield "Reshape", case("Reshape", normal(2, 6), Const(ints(3, 4)))
    yield "Concat", case("Concat", normal(2, 3), normal(2, 4), axis=1)
    yield "Split", case("Split", normal(2, 5), Const(ints(2, 3)), axis=1, outputs=2)
    yield (
        "Slice",
        case(
            "Slice",
            normal(9, 5),
            Const(ints(8, 1)),
            Const(ints(0, 4)),
            Const(ints(0, 1)),
            Const(ints(-3, 2)),
        ),
    )
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield "Pad_" + mode, case("Pad", normal(4, 5), Const(ints(2, 1, 1, 3)), mode=mode)
    yield "Tile", case("Tile", normal(2, 3), Const(ints(2, 3)))
    yield "Expand", case("Expand", normal(3, 1), Const(ints(2, 3, 4)))
    yield "DepthToSpace", case("DepthToSpace", normal(1, 8, 2, 3), blocksize=2)
    yield "SpaceToDepth", case("SpaceToDepth", normal(1, 2, 4, 6), blocksize=2)
    yield "Trilu", case("Trilu", normal(4, 5))
    yield "Flatten", case("Flatten", normal(2, 3, 4))
    yield "Squeeze", case("Squeeze", normal(2, 1, 4), Const(ints(1)))
    yield "ReverseSequence", case("ReverseSequence", normal(4, 3), Const(ints(2, 4, 3)))
    scales = Const(np.array([1, 1, 1.5, 2], np.float32))
    yield from (
        ("Resize_" + m, case("Resize", normal(1, 2, 4, 5), None, scales, mode=m))
        for m in ("linear", "nearest", "cubic")
    )
    yield (
        "Upsample",
        case(
            "Resize",
            normal(1, 2, 3, 3),
            None,
            Const(np.array([1, 1, 2, 2], np.float32)),
            mode="nearest",
        ),
    )


def places():
    yield "Gather", case("Gather", normal(5, 3), ints(4, 0, 4, -3))
    yield "GatherElements", case("GatherElements", normal(5, 3), np.array([[4, 0, 1], [4, 2, 1]]))
    yield "GatherND", case("GatherND", normal(5, 3), np.array([[4, 0], [4, 2], [4, 0]]))
    for reduction in ("none", "add", "mul", "max", "min"):
        yield (
            "ScatterElements_" + reduction,
            case(
                "ScatterElements",
                distinct(5, 3),
                np.array([[4, 0, 1], [3, 2, 0]]),
                distinct(2, 3) + 0.01,
                reduction=reduction,
            ),
        )
        yield (
            "ScatterND_" + reduction,
            case(
                "ScatterND",
                distinct(5, 3),
                np.array([[4], [1]]),
                distinct(2, 3) + 0.01,
                reduction=reduction,
            ),
        )
    yield "TopK", case("TopK", distinct(3, 6), Const(ints(2)), outputs=2)
    grid = np.stack(np.meshgrid(np.linspace(-0.93, 0.81, 3), np.linspace(-0.77, 0.9, 4)), -1)[None]
    yield "GridSample", case("GridSample", normal(1, 2, 5, 6), grid, mode="linear")
    yield (
        "MaxUnpool",
        case(
            "MaxUnpool",
            normal(1, 1, 2, 2),
            np.array([[[[5, 7], [13, 15]]]]),
            kernel_shape=[2, 2],
            strides=[2, 2],
        ),
    )
    yield "Compress", case("Compress", normal(4, 3), Const(np.array([True, False, True])), axis=0)


def recurrent():
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for direction in ("forward", "reverse", "bidirectional"):
            n = 1 + (direction == "bidirectional")
            yield (
                op + "_" + direction,
                case(
                    op,
                    normal(4, 2, 3),
                    normal(n, 2 * gates, 3),
                    normal(n, 2 * gates, 2),
                    normal(n, 4 * gates),
                    hidden_size=2,
                    direction=direction,
                    outputs=2,
                ),
            )
    yield (
        "GRU_after",
        case(
            "GRU",
            normal(4, 2, 3),
            normal(1, 6, 3),
            normal(1, 6, 2),
            normal(1, 12),
            hidden_size=2,
            linear_before_reset=1,
            outputs=2,
        ),
    )


GROUPS = (elementwise, products, pools, norms, reductions, movement, places, recurrent)
# A gradient that is not known, and what is told of it.
ERRORS = {
    "Det": (case("Det", normal(3, 3)), "there is no rule for 'det'"),
    "Unique": (case("Unique", normal(6), outputs=1), "there is no rule for 'unique'"),
    "CompressByData": (
        case("Compress", normal(4, 3), np.array([True, False, True]), axis=0),
        "there is no rule for 'compress'",
    ),
    "CastThrough": (case("Cast", normal(4), to=onnx.TensorProto.INT32), "through integers"),
}


def model_of(name, spec):
    op, inputs, outputs, version, domain, attributes = spec
    names, values, constants = [], [], []
    for i, x in enumerate(inputs):
        if x is None:
            names.append("")
            continue
        names.append(f"x{i}")
        value = np.ascontiguousarray(x.value if isinstance(x, Const) else x)
        if isinstance(x, Const):
            constants.append(onnx.numpy_helper.from_array(value, names[-1]))
        else:
            values.append((names[-1], value))
    out = [f"y{i}" for i in range(outputs)]
    nodes = [helper.make_node(op, names, out, name=name, domain=domain, **attributes)]
    if op == "Cast":
        nodes.append(helper.make_node("Cast", out, ["z"], name="back", to=onnx.TensorProto.DOUBLE))
        out = ["z"]
    types = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in values
    ]
    results = [onnx.ValueInfoProto(name=o) for o in out]
    graph = helper.make_graph(nodes, name, types, results, constants)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", version or 22)], ir_version=10
    )
    model = onnx.shape_inference.infer_shapes(model)
    return model, values


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--check", required=True)
    p.add_argument("--keep")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    cases = {n: (c, None) for g in GROUPS for n, c in g()} | ERRORS
    cases = {n: c for n, c in cases.items() if not a.names or n in a.names}
    with tempfile.TemporaryDirectory(prefix="ingot_gradients_") as work:
        work = a.keep or work
        os.makedirs(work, exist_ok=True)
        for name, (spec, _) in cases.items():
            model, values = model_of(name, spec)
            onnx.save(model, f"{work}/{name}.onnx")
            with open(f"{work}/{name}.in", "wb") as f:
                for _, v in values:
                    f.write(v.tobytes())
        run = subprocess.run(
            [os.path.abspath(a.check), *cases], cwd=work, capture_output=True, text=True
        )
    said = dict(line.split(": ", 1) for line in run.stdout.splitlines())
    faults = 0
    for name, (_, wanted) in cases.items():
        got = said.get(name, "nothing was told")
        if got != "right" if wanted is None else wanted not in got:
            faults += 1
            print(f"{name}: {got}")
    print(f"{len(cases)} operators: {faults} faults")
    return 1 if faults or run.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
