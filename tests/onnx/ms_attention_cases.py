"""Cases of ms_cases.py: attention, and the rotary embedding before it."""

import numpy as np
from case_writer import FLOAT, RNG, floats, ints, scalar


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
