#!/usr/bin/env python3
"""Writes ONNX cases of ONNX Runtime's own operators (domain com.microsoft), with its results as the
truth.

    ms_cases.py OUT_DIR        OUT_DIR/NAME/{model.onnx,test_data_set_0/...}; exit status 77 without
                               ONNX Runtime

Each operator with every optional input and attribute that its CPU kernel runs. Judged by
run.py --data-dims --tolerance-range 1e-4 OUT_DIR.
"""

import sys

from case_writer import (
    MS,
    NODE,
    RNG,
    VALUE,
    Cases,
    floats,
    ints,
    scalar,
)  # first: it ends where something is missing

import numpy as np
import onnx
import onnxruntime as ort
from ms_attention_cases import attention, grouped, multi_head, rotary
from ms_quantised_cases import blocks, eight_bits, linear, recurrent
from onnx import helper, numpy_helper


class MsCases(Cases):
    domains = {MS: 1}

    def case(
        self,
        name,
        op,
        inputs,
        outputs=1,
        version=17,
        consts=(),
        domain=MS,
        types=None,
        **attributes,
    ):
        """One node; inputs: name -> value, None for one left out; those named in consts are
        initializers."""
        names = [k if v is not None else "" for k, v in inputs.items()]
        out = outputs if isinstance(outputs, list) else [f"y{i}" for i in range(outputs)]
        node = NODE(op, names, out, domain=domain, **attributes)
        given = [(k, v) for k, v in inputs.items() if v is not None]
        self.add(
            f"ms_{op.lower()}_{name}",
            node,
            [(k, v) for k, v in given if k not in consts],
            version,
            [(k, v) for k, v in given if k in consts],
            types or {},
        )

    def free(self, name, nodes, dims, sets, consts=()):
        """Dims that the run knows: of each input (numbers or names); a data set for each feed of
        sets."""
        types = {k: helper.np_dtype_to_tensor_dtype(v.dtype) for k, v in sets[0].items()}
        graph = helper.make_graph(
            nodes,
            name,
            [VALUE(k, types[k], d) for k, d in dims.items()],
            [helper.make_empty_tensor_value_info(o) for o in nodes[-1].output if o],
            [numpy_helper.from_array(np.asarray(v), k) for k, v in consts],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
        )
        model.ir_version = 10
        session = ort.InferenceSession(
            model.SerializeToString(), self.options, providers=["CPUExecutionProvider"]
        )
        del model.graph.output[:]
        for i, feeds in enumerate(sets):
            data = self.out / name / f"test_data_set_{i}"
            data.mkdir(parents=True, exist_ok=True)
            results = session.run(None, feeds)
            for kind, some in (("input", [feeds[k] for k in dims]), ("output", results)):
                for k, v in enumerate(some):
                    (data / f"{kind}_{k}.pb").write_bytes(
                        numpy_helper.from_array(v, f"{kind}{k}").SerializeToString()
                    )
        model.graph.output.extend(
            VALUE(o.name, helper.np_dtype_to_tensor_dtype(v.dtype), [None] * v.ndim)
            for o, v in zip(session.get_outputs(), results)
        )
        onnx.save(model, self.out / name / "model.onnx")
        self.n += 1


# -- products and what follows them -------------------------------------------------------------


def fused(cases):
    conv = {"x": floats(2, 4, 9, 8), "w": floats(6, 2, 3, 3), "b": floats(6)}
    for act, params in (
        ("Relu", None),
        ("Tanh", None),
        ("Sigmoid", None),
        ("LeakyRelu", [0.2]),
        ("Clip", [-0.3, 0.4]),
        ("HardSigmoid", [0.3, 0.4]),
    ):
        attrs = {"activation_params": params} if params else {}
        cases.case(
            act.lower(),
            "FusedConv",
            conv,
            activation=act,
            group=2,
            pads=[1, 0, 2, 1],
            strides=[2, 1],
            **attrs,
        )
    cases.case("sum", "FusedConv", {**conv, "z": floats(2, 6, 7, 6)}, activation="Relu", group=2)
    cases.case(
        "sum_no_bias",
        "FusedConv",
        {**conv, "b": None, "z": floats(2, 6, 7, 6)},
        activation="Relu",
        group=2,
    )
    for act, attrs in (
        ("Relu", {}),
        ("LeakyRelu", {"activation_alpha": 0.2}),
        ("Sigmoid", {}),
        ("Tanh", {}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
        ("Elu", {"activation_alpha": 0.7}),
        ("ThresholdedRelu", {"activation_alpha": 0.3}),
        ("Softplus", {}),
        ("Softsign", {}),
    ):
        cases.case(
            act.lower(),
            "FusedGemm",
            {"a": floats(5, 7), "b": floats(6, 7), "c": floats(6)},
            activation=act,
            transB=1,
            alpha=0.5,
            beta=2.0,
            **attrs,
        )
    cases.case(
        "plain", "FusedGemm", {"a": floats(7, 5), "b": floats(7, 6)}, activation="Relu", transA=1
    )
    for ta in (0, 1):
        for tb in (0, 1):
            a, b = floats(2, 3, 4, 5), floats(2, 3, 5, 6)
            cases.case(
                f"{ta}{tb}",
                "FusedMatMul",
                {
                    "a": a.swapaxes(-1, -2).copy() if ta else a,
                    "b": b.swapaxes(-1, -2).copy() if tb else b,
                },
                transA=ta,
                transB=tb,
                alpha=0.3,
            )
            a, b = floats(4, 2, 3, 5), floats(5, 2, 3, 6)  # rows before the batches
            a = a.transpose(3, 1, 2, 0).copy() if ta else a
            b = b.transpose(3, 1, 2, 0).copy() if tb else b
            cases.case(
                f"batch{ta}{tb}",
                "FusedMatMul",
                {"a": a, "b": b},
                transA=ta,
                transB=tb,
                transBatchA=1,
                transBatchB=1,
            )
    cases.case("vector", "FusedMatMul", {"a": floats(5), "b": floats(2, 5, 6)}, transA=1, alpha=2.0)
    cases.case("column", "FusedMatMul", {"a": floats(2, 6, 5), "b": floats(5)}, transB=1)
    cases.case("2d", "FusedMatMul", {"a": floats(6, 5), "b": floats(6, 7)}, transA=1)
    cases.case("plain", "Gelu", {"x": floats(3, 40) * 4})
    cases.case("plain", "BiasGelu", {"x": floats(3, 5, 8) * 3, "b": floats(8)})
    cases.case("plain", "FastGelu", {"x": floats(3, 5, 8) * 3})
    cases.case("bias", "FastGelu", {"x": floats(3, 5, 8) * 3, "b": floats(8)})
    cases.case("plain", "QuickGelu", {"x": floats(3, 5, 8) * 3})
    cases.case("alpha", "QuickGelu", {"x": floats(3, 5, 8) * 3}, alpha=0.8)
    for dtype in (np.uint8, np.int8):
        cases.case(
            np.dtype(dtype).name,
            "NhwcMaxPool",
            {"x": ints(dtype, 2, 9, 8, 5)},
            kernel_shape=[3, 2],
            strides=[2, 1],
            pads=[1, 0, 1, 1],
            dilations=[1, 2],
            ceil_mode=1,
        )
    cases.case("plain", "TransposeMatMul", {"a": floats(2, 5, 4), "b": floats(2, 5, 6)}, transA=1)


# -- normalisations -----------------------------------------------------------------------------


def norms(cases):
    x, g, b = floats(2, 5, 16), floats(16), floats(16)
    for name, skip in (
        ("full", floats(2, 5, 16)),
        ("batch", floats(1, 5, 16)),
        ("rows", floats(5, 16)),
    ):
        cases.case(
            name,
            "SkipLayerNormalization",
            {"x": x, "s": skip, "g": g, "b": b, "c": floats(16)},
            ["y", "", "", "sum"],
            epsilon=1e-5,
        )
        cases.case(
            name,
            "SkipSimplifiedLayerNormalization",
            {"x": x, "s": skip, "g": g, "c": floats(16)},
            ["y", "", "", "sum"],
            epsilon=1e-5,
        )
    cases.case("least", "SkipLayerNormalization", {"x": x, "s": floats(2, 5, 16), "g": g})
    cases.case("beta", "SkipLayerNormalization", {"x": x, "s": floats(2, 5, 16), "g": g, "b": b})
    cases.case(
        "bias",
        "SkipLayerNormalization",
        {"x": x, "s": floats(2, 5, 16), "g": g, "b": None, "c": floats(16)},
    )
    cases.case(
        "2d", "SkipLayerNormalization", {"x": floats(5, 16), "s": floats(5, 16), "g": g, "b": b}
    )
    cases.case("least", "SkipSimplifiedLayerNormalization", {"x": x, "s": floats(2, 5, 16), "g": g})
    cases.case("plain", "SimplifiedLayerNormalization", {"x": x, "g": g}, domain="")
    cases.case(
        "axis",
        "SimplifiedLayerNormalization",
        {"x": x, "g": floats(5, 16)},
        domain="",
        axis=1,
        epsilon=1e-3,
    )
    cases.case(
        "old", "LayerNormalization", {"x": x, "g": g, "b": b}, domain="", version=13, epsilon=1e-3
    )
    ids, seg = (
        RNG.integers(0, 20, (2, 6)).astype(np.int32),
        RNG.integers(0, 2, (2, 6)).astype(np.int32),
    )
    emb = {
        "i": ids,
        "s": seg,
        "w": floats(20, 16),
        "p": floats(9, 16),
        "t": floats(2, 16),
        "g": g,
        "b": b,
    }
    mask = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], np.int32)
    cases.case("plain", "EmbedLayerNormalization", emb, ["y", "index"], epsilon=1e-5)
    cases.case(
        "mask", "EmbedLayerNormalization", {**emb, "m": mask}, ["y", "index"], mask_index_type=1
    )
    cases.case("nomask", "EmbedLayerNormalization", emb, ["y", "index"], mask_index_type=0)
    cases.case(
        "nosegment",
        "EmbedLayerNormalization",
        {**emb, "s": None, "t": None},
        ["y", "index"],
        epsilon=1e-5,
    )
    cases.case(
        "sum",
        "EmbedLayerNormalization",
        {**emb, "m": mask},
        ["y", "index", "sum"],
        mask_index_type=1,
    )
    for name, at in (
        ("places", RNG.integers(0, 9, (2, 6))),
        ("places1", RNG.integers(0, 9, (1, 6))),
    ):
        cases.case(
            name,
            "EmbedLayerNormalization",
            {**emb, "m": None, "at": at.astype(np.int32)},
            ["y", "index", "sum"],
        )
    tables = [ints(np.uint8, *emb[k].shape) for k in "wptgb"]
    scales = [scalar(np.float32, v) for v in (0.01, 0.02, 0.03, 0.01, 0.02)]
    zeros = [scalar(np.uint8, v) for v in (128, 120, 130, 60, 127)]
    q = {
        "i": ids,
        "s": seg,
        **{f"t{i}": t for i, t in enumerate(tables)},
        "m": mask,
        **{f"s{i}": t for i, t in enumerate(scales)},
        **{f"z{i}": t for i, t in enumerate(zeros)},
    }
    cases.case("plain", "QEmbedLayerNormalization", q, ["y", "index"], epsilon=1e-5)
    cases.case(
        "nosegment",
        "QEmbedLayerNormalization",
        {**q, "s": None, "t2": None, "s2": None, "z2": None, "m": None},
        ["y", "index"],
    )


# -- dims that the run knows --------------------------------------------------------------------


def embedded(cases, sizes):
    embed = [
        NODE(
            "EmbedLayerNormalization",
            ["i", "t", "w", "p", "s", "g", "c", "m"],
            ["e", "n"],
            domain=MS,
        ),
        NODE("SkipLayerNormalization", ["e", "e", "g", "c"], ["y"], domain=MS),
    ]
    cases.free(
        "ms_dims_embed",
        embed,
        {"i": ["b", "s"], "t": ["b", "s"], "m": ["b", "s"]},
        [
            {
                "i": RNG.integers(0, 50, (b, s)).astype(np.int32),
                "t": RNG.integers(0, 2, (b, s)).astype(np.int32),
                "m": np.tril(np.ones((b, s), np.int32)),
            }
            for b, s, _ in sizes
        ],
        [
            ("w", floats(50, 32)),
            ("p", floats(40, 32)),
            ("s", floats(2, 32)),
            ("g", floats(32)),
            ("c", floats(32)),
        ],
    )


def run_time(cases):
    sizes = ((1, 1, 5), (1, 4, 0), (2, 6, 0), (2, 1, 7), (1, 3, 5))  # batch, sequence, past
    angle = floats(64, 8)
    angles = [("cos", np.cos(angle)), ("sin", np.sin(angle))]
    # as exporters write it: lengths and their maximum come from an attention mask
    nodes = [
        NODE("Shape", ["mask"], ["shape"]),
        NODE("Gather", ["shape", "one"], ["columns"], axis=0),
        NODE("Cast", ["columns"], ["total"], to=onnx.TensorProto.INT32),
        NODE("ReduceSum", ["mask", "axes"], ["sum"], keepdims=0),
        NODE("Sub", ["sum", "one"], ["last"]),
        NODE("Cast", ["last"], ["length"], to=onnx.TensorProto.INT32),
        NODE(
            "GroupQueryAttention",
            ["q", "k", "v", "pk", "pv", "length", "total", "cos", "sin"],
            ["y", "yk", "yv"],
            domain=MS,
            num_heads=4,
            kv_num_heads=2,
            do_rotary=1,
        ),
    ]
    cases.free(
        "ms_dims_gqa",
        nodes,
        {
            "q": ["b", "s", 64],
            "k": ["b", "s", 32],
            "v": ["b", "s", 32],
            "pk": ["b", 2, "p", 16],
            "pv": ["b", 2, "p", 16],
            "mask": ["b", "t"],
        },
        [
            {
                "q": floats(b, s, 64),
                "k": floats(b, s, 32),
                "v": floats(b, s, 32),
                "pk": floats(b, 2, p, 16),
                "pv": floats(b, 2, p, 16),
                "mask": np.ones((b, s + p), np.int64),
            }
            for b, s, p in sizes
        ],
        [("one", np.int64(1)), ("axes", np.array([1])), *angles],
    )
    node = NODE(
        "MultiHeadAttention",
        ["q", "k", "v", "bias", "m", "", "pk", "pv"],
        ["y", "yk", "yv"],
        domain=MS,
        num_heads=4,
        unidirectional=1,
    )
    cases.free(
        "ms_dims_mha",
        [node],
        {
            "q": ["b", "s", 32],
            "k": ["b", "s", 32],
            "v": ["b", "s", 32],
            "m": ["b", "t"],
            "pk": ["b", 4, "p", 8],
            "pv": ["b", 4, "p", 8],
        },
        [
            {
                "q": floats(b, s, 32),
                "k": floats(b, s, 32),
                "v": floats(b, s, 32),
                "m": RNG.integers(0, 2, (b, s + p)).astype(np.int32),
                "pk": floats(b, 4, p, 8),
                "pv": floats(b, 4, p, 8),
            }
            for b, s, p in sizes
        ],
        [("bias", floats(96))],
    )
    weights = [("w", floats(32, 96)), ("bias", floats(96))]
    for name, dims, mask in (
        ("keys", ["b", "s"], lambda b, s: RNG.integers(0, 2, (b, s))),
        ("ends", ["b"], lambda b, s: RNG.integers(1, s + 1, b)),
    ):
        cases.free(
            f"ms_dims_attention_{name}",
            [NODE("Attention", ["x", "w", "bias", "m"], ["y"], domain=MS, num_heads=4)],
            {"x": ["b", "s", 32], "m": dims},
            [{"x": floats(b, s, 32), "m": mask(b, s).astype(np.int32)} for b, s, _ in sizes],
            weights,
        )
    embedded(cases, sizes)
    cases.free(
        "ms_dims_rotary",
        [NODE("RotaryEmbedding", ["x", "p", "cos", "sin"], ["y"], domain=MS)],
        {"x": ["b", "s", 32], "p": ["b", "s"]},
        [{"x": floats(b, s, 32), "p": RNG.integers(0, 60, (b, s))} for b, s, _ in sizes],
        angles,
    )


def others(cases):
    for metric in ("euclidean", "sqeuclidean"):
        cases.case(metric, "CDist", {"a": floats(5, 7), "b": floats(4, 7)}, metric=metric)
    cases.case("plain", "ExpandDims", {"x": floats(5, 7), "a": scalar(np.int32, -1)}, consts=("a",))
    cases.case("plain", "GatherND", {"x": floats(5, 7), "i": np.array([[1], [-2]])})
    cases.case(
        "plain",
        "Pad",
        {"x": floats(5, 7), "p": np.array([1, 0, 2, 3]), "v": floats(1)},
        consts=("p",),
    )
    cases.case(
        "two", "Range", {"a": scalar(np.float32, 2), "b": scalar(np.float32, 9)}, consts=("a", "b")
    )
    cases.case(
        "three",
        "Range",
        {"a": scalar(np.int64, 2), "b": scalar(np.int64, 19), "c": scalar(np.int64, 3)},
        consts=("a", "b", "c"),
    )
    for upper in (0, 1):
        cases.case(
            str(upper),
            "Trilu",
            {"x": floats(5, 7), "k": scalar(np.int64, -1)},
            upper=upper,
            consts=("k",),
        )
    for mode in ("bilinear", "nearest"):
        cases.case(
            mode,
            "GridSample",
            {"x": floats(1, 2, 5, 6), "g": floats(1, 3, 4, 2) * 2},
            mode=mode,
            padding_mode="border",
            align_corners=1,
        )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ort.set_default_logger_severity(4)
    cases = MsCases(sys.argv[1])
    for family in (
        fused,
        norms,
        attention,
        multi_head,
        grouped,
        rotary,
        eight_bits,
        recurrent,
        blocks,
        linear,
        run_time,
        others,
    ):
        family(cases)
    print(cases.n, "cases")


if __name__ == "__main__":
    main()
