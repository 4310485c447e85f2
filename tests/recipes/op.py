"""Add an op: the cube root, which every C library has, with an ONNX operator of that name; one of
two operands, the hypotenuse."""

import numpy as np
from checks import compilers
from onnx import TensorProto

HEADINGS = ("Add an op", "Add an ONNX operator")
PROGRAMS = ("ingot", "interp_test", "num_test", "ops_test", "vec_test")

NUMBERS = """/* The cube root of the C library (glibc and musl: below 1 ulp). */
IGRT_INLINE float igrt_cbrt_f32(float x)
{
    return cbrtf(x);
}

IGRT_INLINE double igrt_cbrt_f64(double x)
{
    return cbrt(x);
}

/* sqrt(x * x + y * y), where x * x may be no float. */
IGRT_INLINE float igrt_hypot_f32(float x, float y)
{
    return hypotf(x, y);
}

IGRT_INLINE double igrt_hypot_f64(double x, double y)
{
    return hypot(x, y);
}

"""


def write(tree):
    tree.insert(
        "compiler/ir/ops.def",
        'OP(SQRT, ',
        'OP(CBRT,     "cbrt",     1, UNARY,   NONE,    16,   64)',
    )
    tree.replace("compiler/ingot.h", "V(erf) V(sqrt)", "V(erf) V(sqrt) V(cbrt)")
    tree.insert(
        "runtime_min/igrt_num.h",
        "/* x * y + z: one rounding where the ISA has a fused multiply-add, else two. */",
        NUMBERS,
        before=True,
    )
    tree.insert(
        "compiler/eval/interp_alu.c",
        "EACH(SQRT, C, M(sqrt)(a[i]))",
        "            EACH(CBRT, C, igrt_cbrt_##T(a[i])) \\",
    )
    tree.insert(
        "compiler/eval/element_error.c",
        "case OP_SQRT:",
        "    case OP_CBRT: return e == 0 ? 0 : fabs(a) > 2 * e ? fabs(y) * e / fabs(a) : 2 * cbrt(e);",
    )
    tree.insert(
        "runtime_min/igrt_vec_math.h",
        "IGRT_LANES1(f32, float, N, atanh, atanhf)",
        "    IGRT_LANES1(f32, float, N, cbrt, cbrtf) \\",
    )
    tree.insert(
        "runtime_min/igrt_vec64.h",
        "IGRT_LANES1(f64, double, N, erf, igrt_erf_f64)",
        "    IGRT_LANES1(f64, double, N, cbrt, igrt_cbrt_f64) \\",
    )
    tree.insert(
        "docs/numerics.md",
        "| erf | the C library's (glibc, musl: below 1 ulp) |",
        "| cbrt | the C library's; of zeros and infinities the same |",
    )
    tree.insert("tests/unit/interp_test.c", "CHECK(erf, erff(v))", "    CHECK(cbrt, cbrtf(v))")
    tree.insert(
        "tests/unit/num_test.c",
        "assert_true(fabs(igrt_erf_f64(0.5)",
        "    assert_true(igrt_cbrt_f32(-27) == -3 && signbit(igrt_cbrt_f64(-0.0)));",
    )
    tree.insert(
        "tests/unit/vec_test.c", "UNARY(N, atanh, atanhf)", "            UNARY(N, cbrt, cbrtf) \\"
    )
    # the ONNX operator
    tree.insert(
        "importers/onnx/onnx_ops.def",
        'ONNX_OP("com.microsoft", CDist,',
        'ONNX_OP("com.microsoft", Cbrt,                 1, 1, 1, 1, 0, cbrt)',
    )
    tree.insert("importers/onnx/onnx_math.c", "UNARY(sqrt)", "UNARY(cbrt)")
    write_binary(tree)


def write_binary(tree):
    tree.insert(
        "compiler/ir/ops.def", "OP(POW, ", 'OP(HYPOT,    "hypot",    2, BINARY,  NONE,    16,   64)'
    )
    tree.replace("compiler/ingot.h", "V(fmod) V(pow) V(max)", "V(fmod) V(pow) V(hypot) V(max)")
    tree.insert(
        "compiler/builder/elementwise.c",
        "BINARY_OP(pow,  POW,",
        "BINARY_OP(hypot, HYPOT, FLOATS, false)",
    )
    tree.insert(
        "compiler/eval/interp_alu.c",
        "EACH(SQRT, C, M(sqrt)(a[i]))",
        "            EACH(HYPOT, C, igrt_hypot_##T(a[i], b[i])) \\",
    )
    tree.insert(
        "compiler/eval/element_error.c",
        "    case OP_POW: return power(",
        "    case OP_HYPOT: return ea + eb;",
    )
    tree.insert(
        "runtime_min/igrt_vec_math.h",
        "IGRT_LANES2(f32, float, N, pow, powf)",
        "    IGRT_LANES2(f32, float, N, hypot, hypotf) \\",
    )
    tree.insert(
        "runtime_min/igrt_vec64.h",
        "IGRT_LANES2(f64, double, N, pow, igrt_pow_f64)",
        "    IGRT_LANES2(f64, double, N, hypot, igrt_hypot_f64) \\",
    )
    tree.insert(
        "tests/unit/interp_test.c", "CHECK(pow, powf(u, v))", "    CHECK(hypot, hypotf(u, v))"
    )
    tree.insert(
        "tests/unit/vec_test.c", "BINARY(N, pow, powf)", "            BINARY(N, hypot, hypotf) \\"
    )
    tree.insert(
        "importers/onnx/onnx_ops.def",
        'ONNX_OP("com.microsoft", CDist,',
        'ONNX_OP("com.microsoft", Hypot,                1, 2, 2, 1, 0, hypot)',
    )
    tree.insert("importers/onnx/onnx_math.c", "BINARY(div)", "BINARY(hypot)")


def check(tried):
    tried.tests(*PROGRAMS[1:])
    x = np.random.default_rng(1).standard_normal((5, 39)).astype(np.float32)
    nodes = [
        ("Cbrt", ["x"], ["a"], {"domain": "com.microsoft", "name": "root"}),
        ("Hypot", ["a", "x"], ["y"], {"domain": "com.microsoft"}),
    ]
    nodes += [
        ("Cast", ["x"], ["b"], {"to": TensorProto.DOUBLE}),
        ("Cbrt", ["b"], ["c"], {"domain": "com.microsoft"}),
        ("Hypot", ["c", "b"], ["z"], {"domain": "com.microsoft"}),
    ]
    wide = x.astype(np.float64)
    cubes = {"y": np.hypot(np.cbrt(x), x), "z": np.hypot(np.cbrt(wide), wide)}
    model, data = tried.model("op", nodes, {"x": x}, cubes, domain="com.microsoft", version=1)
    tried.verify(model)
    for target in ("opencl", "cuda:sm_80"):
        tried.verify(model, "--target", target, "--interpret")
    for target, cc in [("c", cc) for cc in compilers()] + [
        ("c:c99", "gcc"),
        ("c:x86-64-v4", "gcc"),
    ]:
        if target == "c:x86-64-v4":
            tried.compile(model, target)
        else:
            tried.run(model, data, target, cc)
    ran = tried.run(model, data, "opencl", "gcc")
    cuda = tried.compile(model, "cuda:sm_80")  # by NVRTC, where it is
    assert "igrt_cbrt_f32(" in tried.text(cuda, ".cu")
    # it has no word of WGSL, which the compiler says
    single = tried.model(
        "wgsl", nodes[:2], {"x": x}, {"y": cubes["y"]}, domain="com.microsoft", version=1
    )[0]
    tried.refused(
        4,
        "(node 'root' (Cbrt) and others): WGSL has no 'cbrt' of floats: add igrt_cbrt_f32() to runtime_min/igrt_num.wgsl, or",
        "compile",
        single,
        "--target",
        "wgsl",
        "-o",
        tried.work / "op_wgsl",
    )
    saved = [tried.work / f"op{i}.sched" for i in range(2)]
    tried.compile(model, "c:c99", "--save-sched", saved[0])
    audited = tried.audited(
        tried.compile(model, "c:c99", "--sched", saved[0], "--save-sched", saved[1])
    )
    assert saved[0].read_bytes() == saved[1].read_bytes(), "another .sched"
    assert "cbrt" in tried.text(tried.compile(model, "c"))
    return f"OpenCL {'ran' if ran else 'skipped'}, audit {'done' if audited else 'skipped'}"
