#!/usr/bin/env python3
"""Compiled models from C++.

    cpp.py --ingot build/ingot

    headers     every header that a user may include, alone: C99 and C11, C++98 to C++20, g++ and
                clang++, without a warning
    program     <name>.hpp: containers, moves, two models, weights from a file, memories; mistakes
                are told, by exceptions and without
    shapes      run-time dims, sequences and optionals through <name>.hpp

INGOT_ALL=1 takes every pair of a compiler and a standard, else the oldest with g++ and the newest
with clang++.

Exit status 77, skipped: there is no Python with onnx, or no C++ compiler.
"""

import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys

try:
    import numpy as np
    from onnx import TensorProto, helper
    from run import Wrong, call, compile_model, main
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

TREE = pathlib.Path(__file__).resolve().parents[2]
ALL = bool(os.environ.get("INGOT_ALL"))
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
SANITIZE = ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
COMPILERS = [c for c in ("g++", "clang++") if shutil.which(c)]
C_COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
PRIVATE = re.compile(
    r"_(kernels|weights|igrt|checks)\.h$|igrt_(bits|small|num|vec\w*|lib|case|gpu_\w+|text)\.h$|driver_(npy|session)\.h$"
)  # of the emitted C's own
# names that C++ has for itself, and one that comes twice
NAMES = ("class", "new", "this", "x.1", "x_1", "template")


def pairs(compilers, standards):
    """(compiler, standard) to try."""
    if ALL:
        return list(itertools.product(compilers, standards))
    return [(compilers[0], standards[0]), (compilers[-1], standards[-1])]


def named(work):
    """A model whose tensors have such names."""
    F = TensorProto.FLOAT
    nodes = [helper.make_node("Sum", list(NAMES), ["operator"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, F, [3]) for n in NAMES],
        [helper.make_tensor_value_info("operator", F, [3])],
    )
    path = work / "named.onnx"
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
    return path


def headers(ingot, work):
    files = [
        TREE / "compiler" / "ingot.h",
        TREE / "compiler" / "ingot_ops.h",
        TREE / "compiler" / "ingot_train.h",
        TREE / "importers" / "ingot_model.h",
        TREE / "importers" / "onnx" / "ingot_onnx.h",
        TREE / "importers" / "safetensors" / "safetensors.h",
    ]
    bundles = [
        compile_model(ingot, work, "lstm", out=work / "host", *()),
        compile_model(ingot, work, "mlp", "--target", "opencl", out=work / "cl"),
        compile_model(ingot, work, "mlp", "--target", "cuda", out=work / "cuda"),
        compile_model(
            ingot,
            work,
            "mlp",
            "--weights",
            "blob",
            "--memory",
            "fast=64",
            "--memory",
            "slow",
            out=work / "memories",
        ),
    ]
    call(ingot, "compile", named(work), "-o", work / "named", "--name", "named")
    found = {}
    for bundle in [*bundles, work / "named"]:
        for h in sorted([*bundle.rglob("*.h"), *bundle.rglob("*.hpp")]):
            if not PRIVATE.search(h.name):
                found.setdefault(h.name if h.name.startswith(("igrt", "driver")) else str(h), h)
    files += found.values()
    commands = []
    for h in files:
        where = [
            f"-I{d}" for d in (h.parent, h.parent.parent, TREE / "compiler", TREE / "importers")
        ]
        hpp = h.suffix == ".hpp"
        for cc, std in pairs(COMPILERS, (17, 20) if hpp else ("98", "03", 11, 14, 17, 20)):
            for more in ([], ["-fno-exceptions"]) if hpp else ([],):
                commands.append(
                    [
                        cc,
                        f"-std=c++{std}",
                        *more,
                        *STRICT,
                        *where,
                        "-x",
                        "c++",
                        "-fsyntax-only",
                        "-include",
                        h,
                        "-",
                    ]
                )
        if not hpp:
            commands += [
                [
                    cc,
                    f"-std=c{std}",
                    *STRICT,
                    *where,
                    "-x",
                    "c",
                    "-fsyntax-only",
                    "-include",
                    h,
                    "-",
                ]
                for cc, std in pairs(C_COMPILERS, (99, 11))
            ]
    for command in commands:
        done = subprocess.run(
            [str(c) for c in command],
            input="int main(void) { return 0; }\n",
            text=True,
            capture_output=True,
        )
        if done.returncode:
            raise Wrong(f"{' '.join(map(str, command))}:\n{done.stderr[:2000]}")
    done = subprocess.run(
        [COMPILERS[0], "-std=c++14", "-x", "c++", "-fsyntax-only", f"-I{work / 'named'}", "-"],
        input='#include "named.hpp"\n',
        text=True,
        capture_output=True,
    )
    if "needs C++17" not in done.stderr:
        raise Wrong(f"C++14 is not told that it is too old: {done.stderr[:300]}")
    print(f"{len(files)} headers, {len(commands)} times")


PROGRAM = r"""
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif
#include <type_traits>
#include "mlp.hpp"
#include "cnn.hpp"

static_assert(!std::is_copy_constructible<mlp::model>::value, "copies");
static_assert(std::is_nothrow_move_constructible<mlp::model>::value, "moves");
static_assert(mlp::input_size::x == 80 && mlp::output_size::y == 40, "sizes");

static float sum(const std::vector<float> &v)
{
    float s = 0;
    for (float x : v)
        s += x;
    return s;
}

static mlp::model make()
{
    mlp::model m(igrt::load("mlp/mlp.weights"));
    return m;
}

template <class F> static void wrong(F f, igrt_status status, const char *text)
{
#ifdef IGRT_NO_EXCEPTIONS
    (void)text;
    assert(f() == status);
#else
    try {
        (void)f();
    } catch (const igrt::error &e) {
        if (e.status() == status && std::string(e.what()).find(text) != std::string::npos)
            return;
        std::fprintf(stderr, "%d %s\n", e.status(), e.what());
    }
    assert(!"no error");
#endif
}

int main()
{
    wrong([] { return igrt::load("mlp/none").size() ? IGRT_OK : IGRT_ERR_WEIGHTS_MISSING; },
          IGRT_ERR_WEIGHTS_MISSING, "mlp/none: the file cannot be read");
    mlp::model a = make(), b = make();
    assert(a && b);
    a = std::move(b);
    std::vector<float> x(mlp::input_size::x, 0.5f), y(mlp::output_size::y);
    mlp::inputs in;
    mlp::outputs out;
    in.x = x;
    out.y = y;
    igrt_status s = a.run(in, out);
    assert(s == IGRT_OK && std::fabs(sum(y) - 4) < 1e-4); /* four rows of a softmax */
    const float array[80] = {};
    std::array<float, 41> larger{};
    in.x = array;
    out.y = larger;
    s = a.run(in, out);
    assert(s == IGRT_OK && larger[40] == 0);
#if __cplusplus >= 202002L
    in.x = std::span<float>(x);
#endif
    s = a.selftest();
    assert(s == IGRT_OK);

    x.resize(79);
    in.x = x;
    wrong([&] { return a.run(in, out); }, IGRT_ERR_DIM, "mlp: a dim is out of its declared bounds or differs between inputs: the number of elements of input 'x' is 79; it has to be 80");
    assert(a.fault().value == 79 && a.fault().least == 80);
    x.resize(80);
    in.x = x;
    out.y = igrt::span<float>(larger.data(), 39);
    wrong([&] { return a.run(in, out); }, IGRT_ERR_DIM, "is 39; it has to be at least 40");
    out.y = y;
    wrong([&] { return b.run(in, out); }, IGRT_ERR_NULL, "mlp"); /* it was moved from */
    wrong([&] { return mlp::model(igrt::memory()).status(); }, IGRT_ERR_WEIGHTS_MISSING, "weights are missing");
    igrt::memory damaged = igrt::load("mlp/mlp.weights");
    damaged.data()[5] ^= 1;
    wrong([&] { return mlp::model(std::move(damaged)).status(); }, IGRT_ERR_WEIGHTS_CHECKSUM, "checksum");
    unsigned char small[64];
    wrong([&] {
        cnn::model m([&] { cnn_config c = {}; c.memory = nullptr; c.threads = -1; (void)small; return c; }());
        return m.status();
    }, IGRT_ERR_CONFIG, "config");

    cnn::model c;
    cnn::inputs image;
    cnn::outputs scores;
    std::vector<float> pixels(cnn::input_size::image, 1.0f);
    std::array<float, cnn::output_size::scores> five{};
    image.image = pixels;
    scores.scores = five;
    s = c.run(image, scores);
    assert(s == IGRT_OK && std::isfinite(five[0]));
    std::puts("good");
}
"""


def built(work, text, bundles, cc, std, *flags):
    """The program, with the bundles' libraries; what it prints."""
    source = work / "main.cpp"
    source.write_text(text)
    binary = work / "program"
    libraries = [b / f"lib{b.name}.a" for b in bundles]
    call(
        cc,
        f"-std=c++{std}",
        *STRICT,
        *flags,
        *[f"-I{b}" for b in bundles],
        "-o",
        binary,
        source,
        *libraries,
        "-lm",
        "-pthread",
    )
    said = call(binary, cwd=work)
    if said.strip() != "good":
        raise Wrong(f"{cc} C++{std} {flags}: {said}")


def program(ingot, work):
    bundles = [
        compile_model(ingot, work, "mlp", "--weights", "blob"),
        compile_model(ingot, work, "cnn", "--memory", "fast=8k", "--memory", "slow"),
    ]
    for b in bundles:
        call("make", "-s", "-C", b, f"lib{b.name}.a", "CFLAGS=-O1")
    n = 0
    ways = [(17, SANITIZE), (20, []), (17, ["-fno-exceptions"])]
    for cc, (std, flags) in (
        itertools.product(COMPILERS, ways)
        if ALL
        else [(COMPILERS[0], ways[0]), (COMPILERS[-1], ways[1]), (COMPILERS[0], ways[2])]
    ):
        built(work, PROGRAM, bundles, cc, std, *flags)
        n += 1
    print(f"{n} programs")


SHAPES = r"""
#include <cassert>
#include <cstdio>
#include <vector>
#include "shapes.hpp"

int main()
{
    shapes::model m;
    std::vector<float> a{1, 2, 3, 4, 5, 6}, b{10, 20, 30}, doubled(shapes::output_size::doubled), joined(shapes::output_size::joined);
    shapes::inputs in;
    shapes::outputs out;
    in.x = a;
    in.x_dims[0] = 2;
    in.x_dims[1] = 3;
    in.s[0] = a;
    in.s_dims[0][0] = 2, in.s_dims[0][1] = 3;
    in.s[1] = b;
    in.s_dims[1][0] = 1, in.s_dims[1][1] = 3;
    in.s_length = 2;
    out.doubled = doubled;
    out.joined = joined;
    m.run(in, out);
    assert(out.doubled_dims[0] == 2 && out.doubled_dims[1] == 3 && doubled[5] == 12);
    assert(out.joined_dims[0] == 3 && joined[8] == 30 && joined[0] == 1);
    in.s_length = 1; /* the second is not looked at */
    in.s[1] = igrt::span<const float>();
    m.run(in, out);
    assert(out.joined_dims[0] == 2 && joined[5] == 6);
    in.x_dims[0] = 3;
    try {
        m.run(in, out);
        return 1;
    } catch (const igrt::error &e) {
        assert(e.status() == IGRT_ERR_DIM && m.fault().value == 6 && m.fault().least == 9);
    }
    std::vector<float> nothing;
    in.x = nothing;
    in.x_dims[0] = 0;
    m.run(in, out);
    assert(out.doubled_dims[0] == 0);
    std::puts("good");
}
"""


def shapes(ingot, work):
    F = TensorProto.FLOAT
    nodes = [
        helper.make_node("Add", ["x", "x"], ["doubled"]),
        helper.make_node("ConcatFromSequence", ["s"], ["joined"], axis=0),
    ]
    sequence = helper.make_value_info(
        "s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(F, [None, 3]))
    )
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", F, ["n", 3]), sequence],
        [
            helper.make_tensor_value_info("doubled", F, ["n", 3]),
            helper.make_tensor_value_info("joined", F, [None, 3]),
        ],
    )
    (work / "shapes.onnx").write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
    out = work / "shapes"
    call(
        ingot,
        "compile",
        work / "shapes.onnx",
        "-o",
        out,
        "--name",
        "shapes",
        "--dim",
        "n=0..4",
        "--dim",
        "s=1..2",
        "--dim",
        "s_0=1..4",
    )
    call("make", "-s", "-C", out, "libshapes.a", "CFLAGS=-O1")
    for cc in COMPILERS if ALL else COMPILERS[:1]:
        built(work, SHAPES, [out], cc, 17, *SANITIZE)
    print("dims and sequences")


if not COMPILERS:
    print("skipped: there is no C++ compiler")
    sys.exit(77)
sys.exit(main(__doc__, {"headers": headers, "program": program, "shapes": shapes}))
