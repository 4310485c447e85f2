#!/usr/bin/env python3
"""Writes ONNX cases of ONNX Runtime's own operators (domain com.microsoft), with its results as the truth.

    ms_cases.py OUT_DIR        OUT_DIR/NAME/{model.onnx,test_data_set_0/...}; exit status 77 without ONNX Runtime

Each operator with every optional input and attribute that its CPU kernel runs. Judged by
run.py --data-dims --tolerance-range 1e-4 OUT_DIR.
"""

import sys

from more_cases import (
    FLOAT,
    NODE,
    RNG,
    VALUE,
    Cases,
    floats,
    ints,
)  # first: it ends where something is missing

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

MS = "com.microsoft"


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
        """One node; inputs: name -> value, None for one left out; those named in consts are initializers."""
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
        """Dims that the run knows: of each input (numbers or names); a data set for each feed of sets."""
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


def scalar(dtype, v):
    return np.array(v, dtype)


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


# -- attention ----------------------------------------------------------------------------------


def attention(cases):
    b, s, hidden, heads, past = 2, 5, 24, 4, 3
    base = {"x": floats(b, s, 16), "w": floats(16, 3 * hidden), "b": floats(3 * hidden)}
    keep = {"consts": ("w", "b")}
    masks = {
        "none": None,
        "ends": np.array([3, 5], np.int32),
        "spans": np.array([4, 5, 1, 2], np.int32),
        "packed": np.array([3, 5, 0, 3, 8, 0, 3, 8], np.int32),
        "keys": np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], np.int32),
        "full": RNG.integers(0, 2, (b, s, s)).astype(np.int32),
    }
    for name, mask in masks.items():
        for uni in (0, 1):
            cases.case(
                f"{name}_{uni}",
                "Attention",
                {**base, "m": mask},
                num_heads=heads,
                unidirectional=uni,
                **keep,
            )
    cases.case(
        "filter",
        "Attention",
        {**base, "m": masks["keys"]},
        num_heads=heads,
        mask_filter_value=-2.5,
        **keep,
    )
    cases.case(
        "nothing", "Attention", {**base, "m": np.zeros((b, s), np.int32)}, num_heads=heads, **keep
    )
    for shape in ((b, heads, s, s), (1, heads, s, s), (b, 1, s, s), (1, 1, s, s)):
        cases.case(
            "add_" + "".join(map(str, shape)),
            "Attention",
            {**base, "m": masks["keys"], "p": None, "a": floats(*shape)},
            num_heads=heads,
            **keep,
        )
    kept = floats(2, b, heads, past, hidden // heads)
    for uni in (0, 1):
        cases.case(
            f"past_{uni}",
            "Attention",
            {**base, "m": None, "p": kept},
            2,
            num_heads=heads,
            unidirectional=uni,
            **keep,
        )
        one = {
            **base,
            "x": floats(b, 1, 16),
            "m": np.array([[1, 1, 0, 1], [1, 1, 1, 1]], np.int32),
            "p": kept,
        }
        cases.case(
            f"past_one_{uni}", "Attention", one, 2, num_heads=heads, unidirectional=uni, **keep
        )
    both = {**base, "m": np.ones((b, s + past), np.int32), "p": kept}
    cases.case("past_all", "Attention", both, 2, num_heads=heads, unidirectional=1, **keep)
    cases.case("present", "Attention", base, 2, num_heads=heads, unidirectional=1, **keep)
    cases.case(
        "sizes",
        "Attention",
        {"x": base["x"], "w": floats(16, 24 + 24 + 32), "b": floats(80)},
        num_heads=heads,
        qkv_hidden_sizes=[24, 24, 32],
        **keep,
    )
    for t in (np.uint8,):
        quant = {
            "x": ints(t, b, s, 16),
            "w": ints(np.int8, 16, 3 * hidden),
            "b": floats(3 * hidden),
            "xs": scalar(np.float32, 0.02),
            "ws": scalar(np.float32, 0.01),
            "m": np.array([3, 5], np.int32),
            "xz": scalar(t, 7),
            "wz": scalar(np.int8, 0),
        }
        name = np.dtype(t).name
        keep = {"consts": ("w", "b", "ws", "wz", "xs", "xz")}
        cases.case(name, "QAttention", quant, num_heads=heads, **keep)
        cases.case(
            name + "_past",
            "QAttention",
            {**quant, "m": None, "p": kept},
            2,
            num_heads=heads,
            unidirectional=1,
            **keep,
        )
        cases.case(
            name + "_columns",
            "QAttention",
            {
                **quant,
                "ws": np.abs(floats(3 * hidden)) * 0.02 + 0.001,
                "wz": np.zeros(3 * hidden, np.int8),
                "m": None,
            },
            num_heads=heads,
            **keep,
        )


def multi_head(cases):
    b, s, t, size, heads, past = 2, 5, 7, 24, 4, 3
    base = {"q": floats(b, s, size), "k": floats(b, t, size), "v": floats(b, t, 32)}
    none = {"b": None, "m": None, "a": None}
    bias = floats(2 * size + 32)
    cases.case("plain", "MultiHeadAttention", base, num_heads=heads)
    cases.case("bias", "MultiHeadAttention", {**base, "b": bias}, num_heads=heads, scale=0.3)
    for name, mask in (
        ("ends", np.array([3, 7], np.int32)),
        ("packed", np.array([3, 7, 0, 5, 10, 0, 3, 10], np.int32)),
        ("keys", RNG.integers(0, 2, (b, t)).astype(np.int32)),
        ("full", RNG.integers(0, 2, (b, s, t)).astype(np.int32)),
    ):
        cases.case(
            f"mask_{name}", "MultiHeadAttention", {**base, "b": bias, "m": mask}, num_heads=heads
        )
        cases.case(
            f"mask_{name}_uni",
            "MultiHeadAttention",
            {**base, "b": None, "m": mask},
            num_heads=heads,
            unidirectional=1,
            mask_filter_value=-3.0,
        )
    for shape in ((b, heads, s, t), (1, heads, s, t), (b, 1, s, t), (1, 1, s, t)):
        cases.case(
            "add_" + "".join(map(str, shape)),
            "MultiHeadAttention",
            {**base, "b": None, "m": np.array([3, 7], np.int32), "a": floats(*shape)},
            num_heads=heads,
        )
    cases.case("uni", "MultiHeadAttention", base, num_heads=heads, unidirectional=1)
    cases.case("present", "MultiHeadAttention", {**base, "b": bias}, 3, num_heads=heads)
    self_ = {"q": floats(b, s, size), "k": floats(b, s, size), "v": floats(b, s, size)}
    kept = {
        "pk": floats(b, heads, past, size // heads),
        "pv": floats(b, heads, past, size // heads),
    }
    for uni in (0, 1):
        cases.case(
            f"past_{uni}",
            "MultiHeadAttention",
            {**self_, **none, "b": floats(3 * size), **kept},
            3,
            num_heads=heads,
            unidirectional=uni,
        )
        cases.case(
            f"past_mask_{uni}",
            "MultiHeadAttention",
            {
                **self_,
                **none,
                "m": RNG.integers(0, 2, (b, s + past)).astype(np.int32),
                "a": floats(1, heads, s, s + past),
                **kept,
            },
            3,
            num_heads=heads,
            unidirectional=uni,
        )
    empty = {"pk": floats(b, heads, 0, size // heads), "pv": floats(b, heads, 0, size // heads)}
    cases.case(
        "past_empty",
        "MultiHeadAttention",
        {**self_, **none, "b": floats(3 * size), **empty},
        3,
        num_heads=heads,
    )
    apart = {
        "q": floats(b, s, size),
        "k": floats(b, heads, t, size // heads),
        "v": floats(b, heads, t, size // heads),
    }
    cases.case("apart", "MultiHeadAttention", apart, num_heads=heads)
    cases.case(
        "apart_bias_mask",
        "MultiHeadAttention",
        {**apart, "b": None, "m": np.array([3, 7], np.int32)},
        num_heads=heads,
    )
    cases.case(
        "scores",
        "MultiHeadAttention",
        {**base, "b": bias, "m": np.array([3, 7], np.int32)},
        ["y", "", "", "qk"],
        types={"qk": FLOAT},
        num_heads=heads,
    )


def grouped(cases):
    heads, kv, size = 4, 2, 16

    def inputs(b, s, past, total, lengths, packed=False, rotary=False, half=8, **more):
        wide = heads * size + (2 * kv * size if packed else 0)
        d = {
            "q": floats(b, s, wide),
            "k": None if packed else floats(b, s, kv * size),
            "v": None if packed else floats(b, s, kv * size),
            "pk": floats(b, kv, past, size) if past is not None else None,
            "pv": floats(b, kv, past, size) if past is not None else None,
            "len": np.array(lengths, np.int32),
            "total": np.array(total, np.int32),
        }
        angle = floats(40, half) * 6
        d["cos"], d["sin"] = (np.cos(angle), np.sin(angle)) if rotary else (None, None)
        d["pos"] = d["bias"] = d["sink"] = None
        d.update(more)
        while d and list(d.values())[-1] is None:
            d.popitem()
        return d

    def case(name, d, **attrs):
        cases.case(
            name,
            "GroupQueryAttention",
            d,
            ["y", "pk2", "pv2"],
            consts=("total", "cos", "sin"),
            num_heads=heads,
            kv_num_heads=kv,
            **attrs,
        )

    for packed in (False, True):
        for rotary in (0, 1, 2):
            attrs = {"do_rotary": int(rotary > 0), "rotary_interleaved": int(rotary == 2)}
            tail = f"{int(packed)}{rotary}"
            case(f"prompt_{tail}", inputs(2, 6, None, 6, [5, 5], packed, rotary), **attrs)
            case(f"prompt_room_{tail}", inputs(2, 6, 10, 6, [5, 5], packed, rotary), **attrs)
            case(f"next_{tail}", inputs(2, 1, 6, 7, [6, 6], packed, rotary), **attrs)
            case(f"next_ragged_{tail}", inputs(2, 1, 10, 7, [6, 3], packed, rotary), **attrs)
            case(f"empty_{tail}", inputs(2, 6, 0, 6, [5, 5], packed, rotary), **attrs)
            case(f"chunk_{tail}", inputs(1, 3, 5, 8, [7], packed, rotary), **attrs)
    case("half_rotation", inputs(2, 1, 6, 7, [6, 6], False, True, half=8 // 2 * 2), do_rotary=1)
    case("scale", inputs(2, 6, None, 6, [5, 5]), scale=0.3)
    case("softcap", inputs(1, 3, 5, 8, [7]), softcap=0.4)
    for window in (1, 2, 4):
        case(f"window_{window}", inputs(2, 6, None, 6, [5, 5]), local_window_size=window)
        case(f"window_next_{window}", inputs(2, 1, 10, 7, [6, 3]), local_window_size=window)
    case("smooth", inputs(2, 6, None, 6, [5, 5]), smooth_softmax=1)
    case("sink", inputs(2, 6, None, 6, [5, 5], sink=floats(heads)))
    case(
        "sink_window", inputs(1, 3, 5, 8, [7], sink=floats(heads)), local_window_size=2, softcap=0.5
    )
    case("bias", inputs(2, 6, None, 6, [5, 5], bias=floats(2, heads, 6, 6)))
    case("bias_one", inputs(1, 3, 5, 8, [7], bias=floats(1, 1, 3, 8)), softcap=0.4)
    case("bias_room", inputs(2, 1, 10, 7, [6, 3], bias=floats(2, heads, 1, 7)))
    at = np.arange(4, 10)[None]
    case(
        "positions_prompt",
        inputs(2, 6, None, 6, [5, 5], rotary=True, pos=np.concatenate([at, at])),
        do_rotary=1,
    )
    case(
        "positions_next",
        inputs(2, 1, 10, 7, [6, 3], rotary=True, pos=np.array([[2], [9]])),
        do_rotary=1,
    )
    case(
        "positions_chunk",
        inputs(1, 3, 5, 8, [7], rotary=True, pos=np.array([[5, 6, 7]])),
        do_rotary=1,
    )
    case("both_ways", inputs(2, 6, None, 6, [5, 5]), causal=0)
    for stage in (1, 2):
        cases.case(
            f"qk_{stage}",
            "GroupQueryAttention",
            inputs(1, 3, 5, 8, [7], bias=floats(1, 1, 3, 8)),
            ["y", "pk2", "pv2", "qk"],
            consts=("total",),
            num_heads=heads,
            kv_num_heads=kv,
            qk_output=stage,
            softcap=0.7,
        )
        cases.case(
            f"qk_prompt_{stage}",
            "GroupQueryAttention",
            inputs(2, 6, None, 6, [5, 5]),
            ["y", "pk2", "pv2", "qk"],
            consts=("total",),
            num_heads=heads,
            kv_num_heads=kv,
            qk_output=stage,
        )


def rotary(cases):
    angle = floats(20, 8) * 6
    angles = {"cos": np.cos(angle), "sin": np.sin(angle)}
    for inter in (0, 1):
        many = {"p": RNG.integers(0, 20, (2, 5))}
        cases.case(
            f"merged_{inter}",
            "RotaryEmbedding",
            {"x": floats(2, 5, 48), **many, **angles},
            interleaved=inter,
        )
        cases.case(
            f"offset_{inter}",
            "RotaryEmbedding",
            {"x": floats(2, 5, 48), "p": np.array([4]), **angles},
            interleaved=inter,
        )
        cases.case(
            f"heads_{inter}",
            "RotaryEmbedding",
            {"x": floats(2, 3, 5, 16), **many, **angles},
            interleaved=inter,
        )
        cases.case(
            f"part_{inter}",
            "RotaryEmbedding",
            {"x": floats(2, 5, 72), **many, **angles},
            interleaved=inter,
            num_heads=3,
            rotary_embedding_dim=16,
        )


# -- 8 bits -------------------------------------------------------------------------------------


def eight_bits(cases):
    f32 = np.float32
    for t in (np.uint8, np.int8):
        name, z = np.dtype(t).name, (lambda v, t=t: scalar(t, v))
        a, b = ints(t, 3, 4, 5), ints(t, 4, 1)
        for op in ("QLinearAdd", "QLinearMul"):
            cs = f32(0.05 if op == "QLinearAdd" else 0.0193)
            d = {
                "a": a,
                "as": f32(0.03),
                "az": z(5),
                "b": b,
                "bs": f32(0.02),
                "bz": z(9),
                "cs": cs,
                "cz": z(11),
            }
            cases.case(name, op, d)
        y = {
            "ys": f32(0.021317),
            "yz": z(20),
        }  # no ratio that makes halves, which any rounding may turn
        x = {"x": ints(t, 2, 3, 4, 7), "xs": f32(0.0307), "xz": z(7)}
        cases.case(name, "QLinearLeakyRelu", {**x, **y}, alpha=0.2)
        cases.case(
            name, "QLinearSigmoid", {**x, "ys": f32(1 / 256), "yz": z(0 if t == np.uint8 else -128)}
        )
        for opset, axis in ((13, 1), (13, -1), (9, 1), (12, 2)):
            cases.case(
                f"{name}_{opset}_{axis}",
                "QLinearSoftmax",
                {**x, "ys": f32(1 / 256), "yz": z(0 if t == np.uint8 else -128)},
                opset=opset,
                axis=axis,
            )
        cases.case(name, "QLinearGlobalAveragePool", {**x, **y})
        cases.case(name + "_last", "QLinearGlobalAveragePool", {**x, **y}, channels_last=1)
        for last in (0, 1):
            shape = (2, 9, 8, 4) if last else (2, 4, 9, 8)
            for count in (0, 1):
                cases.case(
                    f"{name}_{last}{count}",
                    "QLinearAveragePool",
                    {**x, "x": ints(t, *shape), **y},
                    channels_last=last,
                    count_include_pad=count,
                    kernel_shape=[3, 2],
                    pads=[1, 0, 1, 1],
                    strides=[2, 1],
                )
        conv = {
            **x,
            "x": ints(t, 2, 9, 8, 4),
            "w": ints(np.int8, 6, 2, 3, 3),
            "ws": np.abs(floats(6)) * 0.02 + 0.001,
            "wz": np.zeros(6, np.int8),
            "ys": f32(0.7),
            "yz": z(3),
            "b": RNG.integers(-900, 900, 6).astype(np.int32),
        }
        cases.case(
            name + "_last",
            "QLinearConv",
            conv,
            channels_last=1,
            group=2,
            pads=[1, 0, 2, 1],
            strides=[2, 1],
        )
        parts = {
            "ys": f32(0.04),
            "yz": z(3),
            "a": ints(t, 2, 3, 4),
            "as": f32(0.02),
            "az": z(1),
            "b": ints(t, 2, 5, 4),
            "bs": f32(0.05),
            "bz": z(10),
        }
        cases.case(name, "QLinearConcat", parts, axis=1)
        where = {
            "c": RNG.random((3, 4, 5)) < 0.5,
            "a": a,
            "as": f32(0.03),
            "az": z(5),
            "b": b,
            "bs": f32(0.02),
            "bz": z(9),
            "cs": f32(0.04),
            "cz": z(11),
        }
        cases.case(name, "QLinearWhere", where, consts=("as", "az", "bs", "bz", "cs", "cz"))
        for trans in (0, 1):
            w = ints(np.int8, 7, 6)
            gemm = {
                "a": ints(t, 5, 7),
                "as": f32(0.02),
                "az": z(4),
                "b": w.T.copy() if trans else w,
                "bs": np.abs(floats(6)) * 0.01 + 0.001,
                "bz": np.zeros(6, np.int8),
                "c": RNG.integers(-500, 500, 6).astype(np.int32),
            }
            cases.case(
                f"{name}_{trans}",
                "QGemm",
                {**gemm, "ys": f32(0.3), "yz": z(9)},
                transB=trans,
                alpha=0.7,
            )
            cases.case(
                f"{name}_float_{trans}",
                "QGemm",
                {**gemm, "bs": f32(0.02), "bz": scalar(np.int8, 3)},
                transB=trans,
            )
        cases.case(
            name,
            "MatMulIntegerToFloat",
            {
                "a": ints(t, 2, 5, 7),
                "b": ints(np.int8, 7, 6),
                "as": f32(0.02),
                "bs": np.abs(floats(6)) * 0.02,
                "az": z(3),
                "bz": ints(np.int8, 6),
                "c": floats(6),
            },
        )
        cases.case(
            name + "_least",
            "MatMulIntegerToFloat",
            {
                "a": ints(t, 5, 7),
                "b": ints(np.uint8, 7, 6) if t == np.uint8 else ints(np.int8, 7, 6),
                "as": f32(0.02),
                "bs": f32(0.03),
            },
        )
        cases.case(
            name,
            "DynamicQuantizeMatMul",
            {"a": floats(2, 5, 7), "b": ints(t, 7, 6), "bs": f32(0.03), "bz": z(5)},
        )
        cases.case(
            name + "_columns",
            "DynamicQuantizeMatMul",
            {
                "a": floats(5, 7),
                "b": ints(t, 7, 6),
                "bs": np.abs(floats(6)) * 0.02,
                "bz": ints(t, 6),
                "c": floats(6),
            },
        )
    for t in (np.uint8, np.int8, np.uint16, np.int16, ml_dtypes.uint4, ml_dtypes.int4):
        z = np.array([3, 1, 5, 2]).astype(t)
        s = np.abs(floats(4)) + 0.1
        values = RNG.integers(0, 8, (3, 4, 6)).astype(t)
        for axis, scale, zero in ((1, s, z), (None, s[0], z[0])):
            name, attrs = (
                f"{np.dtype(t).name}_{axis}",
                {"domain": MS, **({} if axis is None else {"axis": axis})},
            )
            down = NODE("DequantizeLinear", ["q", "s", "z"], ["y"], **attrs)
            cases.add(
                "ms_dequantizelinear_" + name,
                [down],
                [("s", scale)],
                21,
                [("q", values), ("z", zero)],
            )
            up = NODE("QuantizeLinear", ["x", "s", "z"], ["q"], **attrs)
            cases.add(
                "ms_quantizelinear_" + name,
                [up, down],
                [("x", floats(3, 4, 6) * 4), ("s", scale)],
                21,
                [("z", zero)],
            )
    cases.case("int32", "DequantizeLinear", {"x": ints(np.int32, 3, 4), "s": f32(1e-6)})
    cases.case(
        "plain",
        "MatMulInteger16",
        {"a": ints(np.int16, 5, 3) // 32, "b": ints(np.int16, 3, 6) // 32},
    )


def recurrent(cases):
    for direction in ("forward", "reverse", "bidirectional"):
        d = 2 if direction == "bidirectional" else 1
        for variant in ("plain", "columns", "all"):
            t = np.int8 if variant == "columns" else np.uint8
            shape = (d, 24) if variant == "columns" else (d,)
            zero = np.zeros(shape, t) if t == np.int8 else np.full(shape, 131, t)
            scale = np.abs(floats(*shape)) * 0.004 + 0.004
            x = {
                "x": floats(5, 3, 4),
                "w": ints(t, d, 4, 24),
                "r": ints(t, d, 6, 24),
                "b": None,
                "len": None,
                "h": None,
                "c": None,
                "p": None,
                "ws": scale,
                "wz": zero,
                "rs": scale[::-1].copy(),
                "rz": zero,
            }
            if variant == "all":
                x.update(b=floats(d, 48), h=floats(d, 3, 6), c=floats(d, 3, 6), p=floats(d, 18))
            cases.case(
                f"{direction}_{variant}",
                "DynamicQuantizeLSTM",
                x,
                3,
                consts=("w", "r", "ws", "wz", "rs", "rz"),
                hidden_size=6,
                direction=direction,
            )


# -- blocks -------------------------------------------------------------------------------------


def blocks(cases):
    k, rows = 72, 10
    for bits in (2, 4, 8):
        for block in (16, 32):
            count = -(-k // block)
            b = RNG.integers(0, 256, (rows, count, block * bits // 8)).astype(np.uint8)
            s = np.abs(floats(rows * count)) * 0.1 + 0.01
            z = RNG.integers(0, 256, rows * -(-count * bits // 8)).astype(np.uint8)
            attrs = {"K": k, "N": rows, "bits": bits, "block_size": block}
            for name, more in (
                ("least", {}),
                ("zeros", {"z": z}),
                ("bias", {"z": z, "g": None, "c": floats(rows)}),
            ):
                try:
                    cases.case(
                        f"{bits}_{block}_{name}",
                        "MatMulNBits",
                        {"a": floats(2, 3, k), "b": b, "s": s, **more},
                        consts=("b", "s", "z", "c"),
                        **attrs,
                    )
                except Exception as error:  # what the CPU's kernel has no form for
                    print(f"MatMulNBits {bits} bits, {name}: {str(error)[:90]}")
            if bits == 4:
                cases.case(
                    f"{block}_float_zeros",
                    "MatMulNBits",
                    {"a": floats(3, k), "b": b, "s": s, "z": floats(rows * count) * 8},
                    consts=("b", "s", "z"),
                    **attrs,
                )
                cases.case(
                    f"{block}_groups",
                    "MatMulNBits",
                    {
                        "a": floats(3, k),
                        "b": b,
                        "s": s,
                        "z": None,
                        "g": (np.arange(k)[::-1] // block).astype(np.int32),
                    },
                    consts=("b", "s", "g"),
                    **attrs,
                )
    for kind in (0, 1):
        for odd in (rows, 9):
            n = k * odd
            cases.case(
                f"{kind}_{odd}",
                "MatMulBnb4",
                {
                    "a": floats(3, k),
                    "b": RNG.integers(0, 256, (n + 1) // 2).astype(np.uint8),
                    "s": np.abs(floats(-(-n // 16))),
                },
                consts=("b", "s"),
                K=k,
                N=odd,
                block_size=16,
                quant_type=kind,
            )
    for t in (ml_dtypes.uint4, ml_dtypes.int4):
        low = 0 if t == ml_dtypes.uint4 else -8
        data = RNG.integers(low, low + 16, (12, 40)).astype(t)
        zero = RNG.integers(low, low + 16, (12, 3)).astype(t)
        d = {"x": data, "i": np.array([[3, 0], [11, -2]]), "s": np.abs(floats(12, 3))}
        name = np.dtype(t).name
        cases.case(
            name,
            "GatherBlockQuantized",
            {**d, "z": zero},
            version=21,
            consts=("x", "s", "z"),
            block_size=16,
            gather_axis=0,
            quantize_axis=1,
        )
        cases.case(
            name + "_least", "GatherBlockQuantized", d, version=21, consts=("x", "s"), block_size=16
        )
        cases.case(
            name + "_rows",
            "GatherBlockQuantized",
            {**d, "s": np.abs(floats(1, 40))},
            version=21,
            consts=("x", "s"),
            block_size=16,
            gather_axis=0,
            quantize_axis=0,
        )
        cases.case(
            name + "_columns",
            "GatherBlockQuantized",
            {**d, "s": np.abs(floats(1, 40))},
            version=21,
            consts=("x", "s"),
            block_size=16,
            gather_axis=1,
            quantize_axis=0,
        )
    for bits in (4, 8):
        d = {
            "x": RNG.integers(0, 256, (12, 48 * bits // 8)).astype(np.uint8),
            "i": np.array([3, 0, 11]),
            "s": np.abs(floats(12, 3)),
            "z": RNG.integers(0, 256, (12, -(-3 * bits // 8))).astype(np.uint8),
        }
        cases.case(
            f"bytes_{bits}",
            "GatherBlockQuantized",
            d,
            consts=("x", "s", "z"),
            bits=bits,
            block_size=16,
            gather_axis=0,
            quantize_axis=1,
        )
        d.pop("z")
        cases.case(
            f"bytes_{bits}_least",
            "GatherBlockQuantized",
            d,
            consts=("x", "s"),
            bits=bits,
            block_size=16,
            gather_axis=0,
            quantize_axis=1,
        )


def linear(cases):
    for act in ("none", "silu"):
        x = {"x": floats(2, 6, 5), "w": floats(6, 1, 4), "b": floats(6), "p": floats(2, 6, 3)}
        cases.case(act, "CausalConvWithState", x, 2, activation=act)
        cases.case(
            act + "_least", "CausalConvWithState", {"x": x["x"], "w": x["w"]}, 2, activation=act
        )
    b, t, heads, kv, dk, dv = 2, 5, 4, 2, 8, 6
    for rule in ("linear", "gated", "delta", "gated_delta"):
        d = {
            "q": floats(b, t, heads * dk),
            "k": floats(b, t, kv * dk),
            "v": floats(b, t, kv * dv),
            "s": floats(b, kv, dk, dv),
            "decay": -np.abs(floats(b, t, kv)) if "gated" in rule else None,
            "beta": np.abs(floats(b, t, kv)) if "delta" in rule else None,
        }
        while list(d.values())[-1] is None:
            d.popitem()
        cases.case(
            rule, "LinearAttention", d, 2, q_num_heads=heads, kv_num_heads=kv, update_rule=rule
        )


# -- dims that the run knows --------------------------------------------------------------------


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
