"""Cases of ms_cases.py: operators of 8 bits, recurrent ones, products of blocks of few bits."""

import ml_dtypes
import numpy as np
from case_writer import MS, NODE, RNG, floats, ints, scalar


# -- 8 bits -------------------------------------------------------------------------------------


def elements_of_bytes(cases, t):
    f32, name, z = np.float32, np.dtype(t).name, lambda v: scalar(t, v)
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
    return a, b, x


def windows_of_bytes(cases, t, a, b, x):
    f32, name, z = np.float32, np.dtype(t).name, lambda v: scalar(t, v)
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


def products_of_bytes(cases, t):
    f32, name, z = np.float32, np.dtype(t).name, lambda v: scalar(t, v)
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


def eight_bits(cases):
    for t in (np.uint8, np.int8):
        a, b, x = elements_of_bytes(cases, t)
        windows_of_bytes(cases, t, a, b, x)
        products_of_bytes(cases, t)
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
    cases.case("int32", "DequantizeLinear", {"x": ints(np.int32, 3, 4), "s": np.float32(1e-6)})
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
    gathered_blocks(cases)


def gathered_blocks(cases):
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
