#!/usr/bin/env python3
"""The text of CUDA kernels, run without a GPU: what a whole bundle computes beside the same model
in C.

    emulator.py --ingot build/ingot [CHECK...]

An emitted .cu becomes C++ (tests/emulator/), and runs from the first item on and from the last. The
interpreter of statements knows what the statements mean; this finds what the text and the headers
that it calls (igrt_mma.h, igrt_wgmma.h, igrt_run.h) make of them: which item has which element of a
fragment, what items swap, where a cluster's groups put what they give, which phase of a token is
waited for.

    products   of f16, bf16 and f32 by mma.sync, with operands by rows and by columns, lines that
               are no multiple of 16 bytes, rows that only the run counts
    bytes      products and convolutions of i8 and u8 by mma.sync, whose results are those of C to
               the bit: with signs and without, zero points that windows are padded with, operands
               by rows and by columns
    sums       what is added to products of mma.sync and of warpgroups: in memory of its own and in
               the result's, with ends that fill no block
    windows    convolutions: groups of a cluster that share terms, warpgroups with copied windows
    attention  rows of scores in registers, of f16 and f32; as many as a run says
    vectors    a matrix times a vector, by 16 bytes; of bytes by dp4a; of digits of words
    boxes      products of warpgroups, of operands that boxes bring: f16, and f32 by tf32
    branches   an If, a Loop that ends by a condition, one in the other: in a graph, and by the host
    faults     a wait, a fence, a phase, a barrier that is not as it should be: each is found
    items      norms, softmax, pools, depthwise windows, small shared sums, stores at places of data
    runs       depthwise windows, pools and sums of two values by 16 bytes at a time

Exit status 77, skipped: there is no Python with onnx, or no C++ compiler.
"""

import functools
import sys

try:
    import numpy as np
    from emulated import (
        GELU,
        F,
        H,
        I,
        L,
        NARROW,
        PIECES,
        Pair,
        U,
        beside,
        digits,
        emulate,
        errors,
        gelu,
        half_lines,
        larger,
        more_rows,
        places,
        programs,
        residuals,
        sized,
        some,
        stays,
    )
    from run import Wrong, call, compilers, main, program
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def products(ingot, work):
    one = [("MatMul", ["x", "w"], "p"), ("Relu", ["p"], "y")]
    two = [("MatMul", ["x", "w"], "p"), ("Relu", ["p"], "q"), ("MatMul", ["q", "v"], "y")]
    told = [
        beside(
            ingot,
            work,
            "halves",
            "cuda:sm_80",
            ([("x", H, [72, 64])], one, ("y", H, [72, 40]), [("w", some(64, 40))]),
            2e-3,
            ["igrt_mma_dot_f16("],
        ),
        beside(
            ingot,
            work,
            "given",
            "cuda:sm_80",
            ([("x", H, [72, 64]), ("w", H, [64, 40])], one, ("y", H, [72, 40]), []),
            2e-3,
            ["igrt_mma_dot_f16("],
        ),
        larger(ingot, work),
        beside(
            ingot,
            work,
            "single",
            "cuda:sm_80",
            (
                [("x", F, [70, 72])],
                one,
                ("y", F, [70, 40]),
                [("w", some(72, 40, dtype=np.float32))],
            ),
            1e-6,
            ["igrt_mma_dot_tf32x3("],
        ),
        beside(
            ingot,
            work,
            "rows",
            "cuda:sm_80",
            (
                [("x", H, [72, 64])],
                two,
                ("y", H, [72, 40]),
                [("w", some(64, 53)), ("v", some(53, 40))],
            ),
            2e-3,
            ["igrt_copy_part_async_16("],
        ),
        beside(
            ingot,
            work,
            "wide",
            "cuda:sm_80",
            ([("x", H, [784, 64])], one, ("y", H, [784, 256]), [("w", some(64, 256))]),
            2e-3,
            ["igrt_row_16(", "igrt_mma_b_two_"],
        ),
        beside(
            ingot,
            work,
            "short",
            "few",
            ([("x", H, [512, 16])], one, ("y", H, [512, 96]), [("w", some(16, 96))]),
            2e-3,
            ["igrt_row_16("],
        ),
        sized(ingot, work, "sized", "cuda:sm_80", (83, 64, 40), 300, ["igrt_mma_dot_f16("]),
    ]
    print(", ".join(errors(told)))


def sums(ingot, work):
    row, pair, single = (
        ["igrt_row_of_16(a0", "igrt_row_turned("],
        ["igrt_pair_of_16("],
        ["igrt_pair_of_32(a0"],
    )
    told = [
        beside(ingot, work, "rows", "few", residuals(H, 208, 128), 4e-3, row),
        beside(ingot, work, "ends", "few", residuals(H, 201, 128), 4e-3, row),
        beside(ingot, work, "pairs", "cuda:sm_80", residuals(H, 72, 40), 4e-3, pair),
        beside(ingot, work, "single", "few", residuals(F, 201, 128), 4e-6, single),
        beside(
            ingot,
            work,
            "boxes",
            "groups",
            residuals(H, 144, 256, 256, apart=True),
            4e-3,
            [*row, "igrt_wgmma64_dot_f16<"],
        ),
        beside(
            ingot,
            work,
            "terms",
            "few_groups",
            residuals(F, 144, 128, 256),
            4e-6,
            [*single, "igrt_wgmma_dot_tf32x3("],
        ),
        beside(ingot, work, "gelu", "few_groups", gelu(376, 384), 2e-3, GELU),
    ]
    print(", ".join(errors(told)))


def quantized(op, x, y, shape, dtypes, zeros, bias=(), **attributes):
    """A QLinearConv or QLinearMatMul from x to y, and its constants: types and zero points are of
    x, of the weights and of y."""
    rng, name = np.random.default_rng(2), {I: np.int8, U: np.uint8}
    low = {I: -128, U: 0}[dtypes[1]]
    values = {
        "xs": np.float32(0.02),
        "w": rng.integers(low, low + 256, shape).astype(name[dtypes[1]]),
        "ws": np.float32(0.01),
        "ys": np.float32(0.7),
    }
    values |= {
        key: name[dtype](zero) for key, dtype, zero in zip(("xz", "wz", "yz"), dtypes, zeros)
    }
    given = [f"{y}_{k}" for k in ("xs", "xz", "w", "ws", "wz", "ys", "yz")]
    return (op, [x, *given, *(k for k, _ in bias)], y, attributes), [
        *((f"{y}_{k}", np.asarray(v)) for k, v in values.items()),
        *bias,
    ]


def byte_matrices(ingot, work, unit):
    told = []
    for name, dtypes, zero, (m, k, n), target in (
        ("bytes", (U, I, U), 7, (72, 64, 40), "cuda:sm_80"),
        ("signs", (I, I, I), -3, (70, 104, 40), "cuda:sm_90a"),
    ):
        node, weights = quantized("QLinearMatMul", "x", "y", (k, n), dtypes, (zero, 0, 5))
        told.append(
            beside(
                ingot,
                work,
                name,
                target,
                ([("x", dtypes[0], [m, k])], [node], ("y", dtypes[2], [m, n]), weights),
                0,
                [unit],
            )
        )
    for name, dtypes in (("given", (I, U)), ("unsigned", (U, U))):
        node = ("MatMulInteger", ["x", "w"], "y")
        told.append(
            beside(
                ingot,
                work,
                name,
                "cuda:sm_80",
                (
                    [("x", dtypes[0], [72, 70]), ("w", dtypes[1], [70, 40])],
                    [node],
                    ("y", L, [72, 40]),
                    [],
                ),
                0,
                [unit],
            )
        )
    return told


def byte_products(ingot, work):
    unit = "igrt_mma_dot_"
    told = byte_matrices(ingot, work, unit)
    bias, edge = (
        [("b", np.random.default_rng(3).integers(-999, 999, 32).astype(np.int32))],
        {"pads": [1, 1, 1, 1]},
    )
    node, weights = quantized(
        "QLinearConv",
        "x",
        "y",
        (32, 3, 7, 7),
        (U, I, U),
        (0, 0, 5),
        bias,
        pads=[3, 3, 3, 3],
        strides=[2, 2],
    )
    told.append(
        beside(
            ingot,
            work,
            "image",
            "cuda:sm_80",
            ([("x", U, [1, 3, 11, 11])], [node], ("y", U, [1, 32, 6, 6]), weights),
            0,
            [unit],
        )
    )
    for name, dtype, zero, channels, more, copy in (
        ("window", I, 3, 32, edge, "igrt_copy_or_async_16("),
        ("narrow", U, 9, 24, edge | {"strides": [2, 2]}, "igrt_copy_or_async_8("),
        ("whole", U, 0, 32, edge, "igrt_copy_async_16("),
    ):
        first, of_first = quantized(
            "QLinearConv", "x", "p", (channels, 16, 1, 1), (dtype, I, dtype), (1, 0, zero)
        )
        node, weights = quantized(
            "QLinearConv",
            "p",
            "y",
            (32, channels, 3, 3),
            (dtype, I, dtype),
            (zero, 0, 5),
            bias,
            **more,
        )
        size = 8 // more.get("strides", [1])[0] + 1
        told.append(
            beside(
                ingot,
                work,
                name,
                "cuda:sm_80",
                (
                    [("x", dtype, [1, 16, 9, 9])],
                    [first, node],
                    ("y", dtype, [1, 32, size, size]),
                    [*of_first, *weights],
                ),
                0,
                [unit, copy],
            )
        )
    for channels, copy in ((16, "igrt_copy_16("), (24, "igrt_copy_8("), (32, "igrt_copy_16(")):
        node, weights = quantized(
            "QLinearConv", "x", "y", (40, channels, 1, 1), (I, I, I), (-9, 0, 5)
        )
        told.append(
            beside(
                ingot,
                work,
                f"few{channels}",
                "cuda:sm_80",
                ([("x", I, [1, channels, 24, 24])], [node], ("y", I, [1, 40, 24, 24]), weights),
                0,
                [unit, copy],
            )
        )
    # Four taps at once, of weights that the results beside do not move with: they lie as they are.
    node, weights = quantized("QLinearConv", "x", "y", (24, 5, 4), (U, I, U), (0, 0, 5))
    sound = ([("x", U, [1, 5, 39])], [node], ("y", U, [1, 24, 36]), weights)
    told.append(beside(ingot, work, "taps", "cuda:sm_80", sound, 0, ["igrt_dot_u8_i8("]))
    first, of_first = quantized(
        "QLinearConv", "x", "p", (32, 1, 3, 3), (I, I, I), (-9, 0, -128), group=32, **edge
    )
    node, weights = quantized("QLinearConv", "p", "y", (16, 32, 1, 1), (I, I, I), (-128, 0, 5))
    told.append(
        beside(
            ingot,
            work,
            "apart",
            "cuda:sm_80",
            (
                [("x", I, [1, 32, 24, 24])],
                [first, node],
                ("y", I, [1, 16, 24, 24]),
                [*of_first, *weights],
            ),
            0,
            [unit],
        )
    )
    print(", ".join(errors(told)))


def windows(ingot, work):
    one = [
        ("Conv", ["x", "w"], "p", PADS),
        ("Relu", ["p"], "q"),
        ("Conv", ["q", "w"], "r", PADS | {"strides": [2, 2]}),
        ("Add", ["r", "z"], "y"),
    ]
    told = [
        beside(
            ingot,
            work,
            "window",
            "cuda:sm_80",
            (
                [("x", H, [1, 32, 9, 9]), ("z", H, [1, 32, 5, 5])],
                one,
                ("y", H, [1, 32, 5, 5]),
                [("w", some(32, 32, 3, 3))],
            ),
            2e-3,
            ["igrt_mma_dot_f16("],
        ),
        *(
            beside(ingot, work, name, target, WINDOWS, 3e-3, ["igrt_cluster_give<", text])
            for name, target, text in (
                ("cluster", "cuda:sm_90a", "igrt_mma_b_two_"),
                ("backward", "small_cache", "__builtin_assume(i"),
            )
        ),
        beside(
            ingot,
            work,
            "taps",
            "few_groups",
            TAPS,
            2e-3,
            ["igrt_window_4(", "igrt_wgmma64_dot_f16<"],
        ),
        half_lines(ingot, work),
        larger(ingot, work),
        beside(
            ingot,
            work,
            "single",
            "cuda:sm_80",
            (
                [("x", F, [1, 32, 9, 9]), ("z", F, [1, 32, 5, 5])],
                one,
                ("y", F, [1, 32, 5, 5]),
                [("w", some(32, 32, 3, 3, dtype=np.float32))],
            ),
            2e-6,
            ["igrt_mma_dot_tf32x3("],
        ),
    ]
    print(", ".join(errors(told)))


def attention(ingot, work):
    turn = [("Transpose", ["k"], "t", {"perm": [0, 2, 1]})]
    rows = turn + [
        ("MatMul", ["x", "t"], "s"),
        ("Add", ["s", "z"], "a"),
        ("Softmax", ["a"], "p"),
        ("MatMul", ["p", "v"], "y"),
    ]
    told, warps, groups = [], ("cuda:sm_80", "igrt_mma_quad_max("), ("cuda:sm_90a", "_rows_")
    for name, (target, text), dtype, tolerance, heads, kv, queries, keys, each in (
        ("halves", warps, H, 3e-3, 2, 2, 37, 37, 64),
        ("single", warps, F, 1e-5, 2, 2, 64, 128, 64),
        ("blocks", warps, H, 3e-3, 1, 1, 72, 600, 64),
        ("blocks_single", warps, F, 1e-5, 1, 1, 40, 530, 64),
        ("masked", warps, H, 3e-3, 1, 1, 576, 576, 64),
        ("groups", groups, H, 3e-3, 1, 1, 70, 520, 64),
        ("groups_masked", groups, H, 3e-3, 1, 1, 576, 576, 64),
        ("groups_wide", groups, H, 3e-3, 1, 1, 70, 530, 128),
        ("groups_heads", groups, H, 3e-3, 2, 1, 40, 640, 96),
        ("sized", warps, H, 3e-3, 2, 2, ("n", 72), ("t", 600), 64),
    ):
        inputs = [
            ("x", dtype, [heads, queries, each]),
            ("k", dtype, [kv, keys, each]),
            ("v", dtype, [kv, keys, each]),
            ("z", dtype, [queries, keys]),
        ]
        seen = []
        if name.endswith("masked"):  # blocks that a group's rows leave out are none of their loop's
            seen = [("z", np.where(np.tri(queries), 0, -np.inf).astype(np.float16))]
        made = (inputs[: 4 - len(seen)], rows, ("y", dtype, [heads, queries, each]), seen)
        dims = ["n=1..100", "t=1..700"] if name == "sized" else []
        told.append(beside(ingot, work, name, target, made, tolerance, [text], dims=dims))
    # a mask of coordinates, which leaves some blocks whole, and the longest rows first
    shape, shared = [2, 2, 576, 64], [2, 1, 576, 64]
    made = (
        [("x", H, shape), ("k", H, shared), ("v", H, shared)],
        [("Attention", ["x", "k", "v"], "y", {"is_causal": 1})],
        ("y", H, shape),
        [],
    )
    for name, (target, *text) in ("causal", warps), ("groups_causal", (*groups, "if (!v")):
        told.append(beside(ingot, work, name, target, made, 3e-3, text))
    made = ([("x", H, [2, 2, 17, 64]), *made[0][1:]], made[1], ("y", H, [2, 2, 17, 64]), [])
    told.append(beside(ingot, work, "one_block", warps[0], made, 3e-3))
    told += more_rows(ingot, work, groups[0])
    print(", ".join(errors(told)))


def vectors(ingot, work):
    product, told = [("MatMul", ["w", "x"], "y")], []
    for name, dtype, near, text in (
        ("halves", H, 2e-3, "igrt_run_u16("),
        ("single", F, 1e-6, "igrt_run_f32("),
    ):
        made = [("x", dtype, [1024]), ("w", dtype, [100, 1024])], product, ("y", dtype, [100]), []
        told.append(beside(ingot, work, name, "cuda:sm_80", made, near, [text]))
    for name, dtype in (("signed", I), ("unsigned", U)):
        node, weights = quantized(
            "QLinearMatMul", "x", "y", (320, 72), (dtype, I, dtype), (3, 0, 5)
        )
        made = [("x", dtype, [1, 320])], [node], ("y", dtype, [1, 72]), weights
        wanted = ["igrt_dot_", "(__builtin_assume_aligned("]
        told.append(beside(ingot, work, name, "cuda:sm_75", made, 0, wanted))
    told += digits(ingot, work, "digits", "cuda:sm_90a", (768, 2048))
    print(", ".join(errors(told)))


def items(ingot, work):
    """A block of a network with depthwise windows and a scale of channels, and of one with
    norms."""
    pads = {"pads": [1, 1, 1, 1], "group": 48}
    scale = [
        ("GlobalAveragePool", ["d"], "m"),
        ("Conv", ["m", "u"], "h"),
        ("Relu", ["h"], "i"),
        ("Conv", ["i", "e"], "j"),
        ("Sigmoid", ["j"], "k"),
        ("Mul", ["d", "k"], "y"),
    ]
    block = [("Conv", ["x", "w"], "c", pads), ("Relu", ["c"], "d"), *scale]
    weights = [
        ("w", some(48, 1, 3, 3, dtype=np.float32)),
        ("u", some(8, 48, 1, 1, dtype=np.float32)),
        ("e", some(48, 8, 1, 1, dtype=np.float32)),
    ]
    norms = [("LayerNormalization", ["x", "g", "b"], "n"), ("Softmax", ["n"], "y")]
    told = [
        beside(
            ingot,
            work,
            "block",
            "cuda:sm_90a",
            ([("x", F, [1, 48, 14, 14])], block, ("y", F, [1, 48, 14, 14]), weights),
            1e-5,
        )
    ]
    for name, shape, nodes, words in (
        ("norms", [5, 200], norms, ["__syncthreads();"]),
        ("rows", [1100, 512], norms[:1], ["igrt_held_run(h", "igrt_four_to("]),
    ):
        vectors = [(key, some(shape[1], dtype=np.float32)) for key in "gb"]
        graph = ([("x", F, shape)], nodes, (nodes[-1][2], F, shape), vectors)
        told.append(beside(ingot, work, name, "cuda:sm_90a", graph, 1e-5, words))
    for how in ("none", "add", "max"):
        words = ["__ballot_sync(", "left &= left - 1"]
        told.append(beside(ingot, work, f"places_{how}", "few", places(how), 0, words))
    print(", ".join(errors(told)))


def runs(ingot, work):
    """Channels lie side by side behind a product; rows are read beyond both ends."""
    told = []
    for name, dtype, number, tolerance, word in (
        ("halves", H, np.float16, 2e-3, "eight"),
        ("single", F, np.float32, 2e-6, "four"),
    ):
        nodes = [
            ("Conv", ["x", "w"], "a"),
            ("Conv", ["a", "d", "b"], "c", PADS | {"group": 16}),
            ("Sigmoid", ["c"], "s"),
            ("Mul", ["c", "s"], "e"),
            ("MaxPool", ["e"], "m", {"kernel_shape": [3, 3], "pads": [1] * 4}),
            ("Add", ["m", "e"], "f"),
            ("Conv", ["f", "w"], "y"),
        ]
        weights = [
            ("w", some(16, 16, 1, 1, dtype=number)),
            ("d", some(16, 1, 3, 3, dtype=number)),
            ("b", some(16, dtype=number)),
        ]
        made = [("x", dtype, [1, 16, 8, 8])], nodes, ("y", dtype, [1, 16, 8, 8]), weights
        text = [f"igrt_{word}_{what}(" for what in ("of", "at", "to")]
        told.append(beside(ingot, work, name, "tiny", made, tolerance, text))
    of_four = [("AveragePool", ["x"], "y", {"kernel_shape": [1, 4], "strides": [1, 4]})]
    made = [("x", H, [1, 4, 8, 64])], of_four, ("y", H, [1, 4, 8, 16]), []
    told.append(beside(ingot, work, "four", "cuda:sm_80", made, 2e-3, ["igrt_half_u16("]))
    print(", ".join(errors(told)))


ONE = [("MatMul", ["x", "w"], "p"), ("Relu", ["p"], "y")]
SIX = [("x", H, [6, 512])], ONE, ("y", H, [6, 128]), [("w", some(512, 128) / 8)]
HALVES = [("x", H, [128, 512])], ONE, ("y", H, [128, 128]), [("w", some(512, 128) / 8)]
SINGLE = (
    [("x", F, [384, 256])],
    ONE,
    ("y", F, [384, 384]),
    [("w", some(256, 384, dtype=np.float32))],
)
TURNED = [("x", F, [192, 1536]), ("w", F, [1536, 192])], ONE, ("y", F, [192, 192]), []
HEADS = (
    [("x", F, [4, 384, 16]), ("v", F, [4, 16, 64])],
    [
        ("MatMul", ["x", "v"], "h"),
        ("Transpose", ["h"], "t", {"perm": [1, 0, 2]}),
        ("Reshape", ["t", "s"], "r"),
        ("Gemm", ["r", "w"], "y", {"transB": 1}),
    ],
    ("y", F, [384, 384]),
    [("s", np.array([384, 256])), ("w", some(384, 256, dtype=np.float32))],
)
NORMS = [("x", F, [5, 200])], [("Softmax", ["x"], "y")], ("y", F, [5, 200]), []
COPIES = [("x", H, [72, 256])], ONE, ("y", H, [72, 40]), [("w", some(256, 40))]
PADS = {"pads": [1, 1, 1, 1]}
# what the 1x1 convolution stores lies with its channels side by side
TAPS = (
    [("x", H, [2, 64, 9, 9])],
    [
        ("Conv", ["x", "v"], "p"),
        ("Relu", ["p"], "q"),
        ("Conv", ["q", "w"], "r", PADS),
        ("Relu", ["r"], "s"),
        ("Conv", ["s", "w"], "y", {"pads": [2, 1, 2, 1], "strides": [2, 2], "dilations": [2, 1]}),
    ],
    ("y", H, [2, 64, 5, 5]),
    [("v", some(64, 64, 1, 1)), ("w", some(64, 64, 3, 3))],
)
WINDOWS = (
    [("x", H, [1, 256, 7, 7])],
    [
        ("Conv", ["x", "w"], "p", PADS),
        ("Relu", ["p"], "q"),
        ("Conv", ["q", "v"], "r", PADS),
        ("Relu", ["r"], "y"),
    ],
    ("y", H, [1, 256, 7, 7]),
    [("w", some(256, 256, 3, 3)), ("v", some(256, 256, 3, 3) / 16)],
)


def boxes(ingot, work):
    told = [
        beside(
            ingot,
            work,
            "halves",
            "few_groups",
            HALVES,
            2e-3,
            ["igrt_box_2(", "igrt_wgmma64_dot_f16<"],
        ),
        beside(
            ingot,
            work,
            "single",
            "cuda:sm_90a",
            SINGLE,
            2e-6,
            ["igrt_box_2(", "igrt_wgmma_dot_tf32x3("],
        ),
        beside(
            ingot,
            work,
            "turned",
            "cuda:sm_90a",
            TURNED,
            2e-6,
            ["_copy_1536x192(", "igrt_wgmma_dot_tf32x3("],
        ),
    ]
    told.append(beside(ingot, work, "six", "cuda:sm_90a", SIX, 2e-3, ["igrt_wgmma8_dot_f16<"]))
    joined = "cuda:sm_90a", HEADS, 2e-6, ["JOIN r0 r1", "igrt_wgmma_dot_tf32x3("]
    told.append(beside(ingot, work, "heads", *joined))
    for name, dtypes, (m, k, n) in (
        ("signs", (I, I, I), (384, 512, 384)),
        ("bytes", (U, I, U), (400, 576, 400)),
    ):
        node, weights = quantized("QLinearMatMul", "x", "y", (k, n), dtypes, (0, 0, 5))
        told.append(
            beside(
                ingot,
                work,
                name,
                "cuda:sm_90a",
                ([("x", dtypes[0], [m, k])], [node], ("y", dtypes[2], [m, n]), weights),
                0,
                ["igrt_box_2(", "igrt_wgmma64_dot_"],
            )
        )
    for name, rows, most in (("sized", 70, 400), ("one_block", 5, 64)):
        boxed = "few_groups", (rows, 256, 256), most, ["igrt_box_2(", "_dot_f16<"]
        told.append(sized(ingot, work, name, *boxed))
    print(", ".join(errors(told + stays(ingot, work))))


# Models, the tolerance, and what of the text becomes what else.
FAULTS = {
    ("halves", "few_groups"): (
        HALVES,
        2e-3,
        {
            "a place that is taken for filled": (
                "tokens, iteration % depth), iteration / depth & 1);\n    asm volatile(\"wgmma.fence",
                "tokens, iteration % depth), ~(iteration / depth) & 1);\n    asm volatile(\"wgmma.fence",
            ),
            "a place that is taken for free": (
                "(iteration / depth & 1) ^ 1);",
                "iteration / depth & 1);",
            ),
            "a place freed before its products are done": ("wgmma.wait_group.sync.aligned 1;", ""),
            "sums read before the products are done": ("wgmma.wait_group.sync.aligned 0;", ""),
            "no fence before products": ("wgmma.fence.sync.aligned;", ""),
            "no fence of tokens": ("fence.mbarrier_init.release.cluster;", ""),
            "atoms that lie elsewhere": ("(1024 >> 4) << 32", "(512 >> 4) << 32"),
            "no swizzle": ("(uint64_t)1 << 62", "(uint64_t)2 << 62"),
            "bytes that no box brings": ('"r"(bytes)', '"r"(bytes + 16)'),
        },
    ),
    ("single", "cuda:sm_90a"): (
        SINGLE,
        2e-6,
        {
            "no fence of memory": ("fence.proxy.async.shared::cta;", ""),
            "no barrier of the warpgroup": ("bar.sync %0, 128;", ""),
            "rests of one block": ("rests += iteration % 2 * (32 * N);", ""),
            "rows of another warp": ("/ 32 % 4 * 16", "/ 32 % 2 * 16"),
        },
    ),
    ("sums", "few"): (
        residuals(H, 208, 128),
        4e-3,
        {
            "each item's loads from one block": (
                "*(const uint4 *)(from + 6 * q)",
                "*(const uint4 *)from",
            ),
            "a swap of other items": (
                "y = __shfl_xor_sync(0xffffffffu, y, 2);",
                "y = __shfl_xor_sync(0xffffffffu, y, 1);",
            ),
        },
    ),
    ("norms", "cuda:sm_80"): (NORMS, 1e-5, {"no barrier": ("__syncthreads();", "")}),
    ("copies", "cuda:sm_80"): (
        COPIES,
        2e-3,
        {
            "no wait for copies": ("cp.async.wait_group", "cp.async.nothing"),
            "no barrier": ("__syncthreads();", ""),
        },
    ),
    ("windows", "cuda:sm_90a"): (
        WINDOWS,
        3e-3,
        {"no barrier of the cluster": ("barrier.cluster.wait.acquire.aligned;", "")},
    ),
    ("pieces", "cuda:sm_90a"): PIECES,
}


def replaced(old, new, text):
    return text.replace(old, new)


def faults(ingot, work):
    pairs = programs(
        [
            Pair(ingot, work, name, target, made, tolerance, NARROW if name == "pieces" else ())
            for (name, target), (made, tolerance, _) in FAULTS.items()
        ]
    )
    plans = [
        (pair, work / f"{pair.name}_fault{i}", what, *texts)
        for pair, (_, _, plans) in zip(pairs, FAULTS.values())
        for i, (what, texts) in enumerate(plans.items())
    ]
    for pair, folder, what, old, new in plans:
        if not any(old in f.read_text() for f in pair.bundle.glob("*_kernels.cu")):
            raise Wrong(f"{pair.name}: no {old} in the text")
    emulate.drivers(
        [
            (pair.bundle, folder, functools.partial(replaced, old, new))
            for pair, folder, _, old, new in plans
        ]
    )
    for pair, folder, what, *_ in plans:
        try:
            for order in emulate.ORDERS:
                pair.run(folder, order)
        except Wrong:
            continue
        raise Wrong(f"{pair.name}: not found: {what}")
    print(f"{len(plans)} faults found")


def branches(ingot, work):
    from onnx.reference import ReferenceEvaluator
    from on_device import decides
    import onnx

    rng, told = np.random.default_rng(3), []
    inputs = [
        (rng.standard_normal((4, 16)) + shift).astype(np.float32) for shift in (-1, 0, 1, -0.3)
    ]
    for kind in ("if", "loop", "nested"):
        path, bundle, folder = decides(kind, work), work / kind, work / f"{kind}_driver"
        wanted = [ReferenceEvaluator(onnx.load(path)).run(None, {"x": x})[0] for x in inputs]
        call(ingot, "compile", path, "-o", bundle, "--target", "cuda:sm_80", "-q")
        program(bundle, compilers()[0], "-O0")
        emulate.driver(bundle, folder)
        for driver in ("13000", "12030"):  # nodes of the graph; the host asks
            for i, (x, want) in enumerate(zip(inputs, wanted)):
                given = work / f"{kind}_{driver}_{i}"
                given.mkdir()
                np.save(given / "input_0.npy", x)
                call(
                    bundle / "model",
                    given,
                    given,
                    env=emulate.environment(folder, emulate.ORDERS[i % 2])
                    | {"CUDA_STUB_DRIVER": driver},
                )
                error = abs(np.load(given / "output_0.npy") - want).max() / abs(want).max()
                if not error <= 1e-5:
                    raise Wrong(f"{kind}, driver {driver}, input {i}: {error:.1e} of the range")
        told.append(kind)
    print(", ".join(told))


if __name__ == "__main__":
    if not emulate.CXX:
        print("skipped: no C++ compiler")
        sys.exit(77)
    sys.exit(
        main(
            __doc__,
            {
                "products": products,
                "boxes": boxes,
                "sums": sums,
                "bytes": byte_products,
                "windows": windows,
                "attention": attention,
                "vectors": vectors,
                "items": items,
                "runs": runs,
                "branches": branches,
                "faults": faults,
            },
        )
    )
