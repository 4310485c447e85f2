#!/usr/bin/env python3
"""Custom operators (docs/custom_ops.md): examples/custom_op compiled, verified, run and linked
beside itself; states, sizes known at run time and folding; functions of one element within kernels;
and wrong uses, each of which ends in one message with file, line and node.

    custom.py --ingot build/ingot
"""

import argparse
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ModuleNotFoundError:
    print("skipped: no onnx package")
    sys.exit(77)

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "custom_op"
STRICT = "-std=c99 -pedantic -O1 -Wall -Wextra -Werror"
faults = []


def call(args, **more):
    return subprocess.run(
        [str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


def expect(what, good, done=None):
    if not good:
        faults.append(what)
        print(
            f"FAILED: {what}" + (f"\n{done.returncode}\n{done.stdout}{done.stderr}" if done else "")
        )


def one_node(
    path,
    op_type="F",
    inputs=(("x", TensorProto.FLOAT, [2, 3]),),
    outputs=1,
    constants=(),
    out_type=TensorProto.FLOAT,
    **attributes,
):
    names = [i[0] for i in inputs] + [c[0] for c in constants]
    ys = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, ys, "node7", domain="acme.com", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(y, out_type, None) for y in ys],
        [numpy_helper.from_array(v, n) for n, v in constants],
    )
    onnx.save(
        helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("acme.com", 1)],
            ir_version=8,
        ),
        str(path),
    )


def example(ingot, work):
    made = call([sys.executable, EXAMPLE / "make_model.py", work])
    expect("make_model.py", made.returncode == 0, made)
    model, data = work / "model.onnx", work / "test_data_set_0"
    ops = [
        "--op",
        f"acme.com:Swish={EXAMPLE}/swish.c",
        "--op",
        f"acme.com:RankBlend={EXAMPLE}/rank_blend.c:rank_blend",
    ]
    for command in ("verify", "run"):
        done = call([ingot, command, model, *ops, "--data", data])
        expect(command, done.returncode == 0, done)
    done = call([ingot, "bench", model, *ops, "--data", data, "--seconds", "0.01", "--json"])
    expect("bench", done.returncode == 0 and "median_ms" in done.stdout, done)
    done = call([ingot, "check", model, *ops])
    expect("check", done.returncode == 0, done)
    done = call([ingot, "check", model])
    expect("check without --op", done.returncode == 4, done)
    # two models with the same operators in one program, strictly
    for name in ("one", "two"):
        done = call(
            [
                ingot,
                "compile",
                model,
                *ops,
                "--dim",
                "batch=1..8",
                "--name",
                name,
                "-o",
                work / name,
            ]
        )
        expect(f"compile {name}", done.returncode == 0, done)
        done = call(["make", "-C", work / name, f"CFLAGS={STRICT}", "-s"])
        expect(f"make {name}", done.returncode == 0, done)
        np.save(
            work / "input_0.npy", numpy_helper.to_array(onnx.load_tensor(str(data / "input_0.pb")))
        )
        done = call([work / name / name, work, work / "out"])
        want = numpy_helper.to_array(onnx.load_tensor(str(data / "output_0.pb")))
        expect(
            f"output of {name}",
            done.returncode == 0
            and np.allclose(np.load(work / "out" / "output_0.npy"), want, 1e-4, 1e-5),
            done,
        )
    done = call([ingot, "audit", work / "one"])
    expect("audit", done.returncode == 0 and "0 findings" in done.stdout, done)
    main = work / "both.c"
    main.write_text(
        '#include "one.h"\n#include "two.h"\nint main(void) { one_ctx a; two_ctx b; '
        "return one_init(&a, 0) == 0 && two_init(&b, 0) == 0; }\n"
    )
    done = call(
        [
            *shlex.split(os.environ.get("CC", "cc")),
            "-std=c99",
            f"-I{work}/one",
            f"-I{work}/two",
            main,
            work / "one" / "libone.a",
            work / "two" / "libtwo.a",
            "-lm",
            "-o",
            work / "both",
        ]
    )
    expect("two models in one program", done.returncode == 0, done)


def kinds(ingot, work):
    """A state, dims by expressions, several outputs and types; a source whose content changes;
    folding."""
    source = work / "kinds.c"
    source.write_text("""#include <stdbool.h>
#include <stdint.h>
/* state[seen] = [1]
 * out[y] = [x_dim0 + 1, 2*k]
 * out[big] = in[x]
 * default[k] = 2 */
void f(const int32_t *x, int64_t n_x, int32_t k, int64_t *y, bool *big, int64_t *seen, int n_y)
{
    seen[0] += n_x;
    for (int64_t i = 0; i < n_y; i++)
        y[i] = seen[0] + k;
    for (int64_t i = 0; i < n_x; i++)
        big[i] = x[i] > 10;
}
""")
    model = work / "kinds.onnx"
    node = helper.make_node("F", ["x"], ["y", "b"], "n", domain="acme.com")
    again = helper.make_node("F", ["x"], ["y2"], "m", domain="acme.com", k=3)  # a state of its own
    graph = helper.make_graph(
        [node, again],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT32, [2])],
        [
            helper.make_tensor_value_info("y", TensorProto.INT64, [3, 4]),
            helper.make_tensor_value_info("b", TensorProto.BOOL, [2]),
            helper.make_tensor_value_info("y2", TensorProto.INT64, [3, 6]),
        ],
    )
    onnx.save(
        helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("acme.com", 1)],
            ir_version=8,
        ),
        str(model),
    )
    np.save(work / "x.npy", np.array([3, 30], np.int32))
    flags = ["--op", f"acme.com:F={source}", "--input", work / "x.npy"]
    for command in ("verify", "run"):
        done = call([ingot, command, model, *flags])
        expect(f"kinds: {command}", done.returncode == 0, done)
    expect(
        "kinds: values",
        "i64[3,4] 4 4 4" in done.stdout
        and "bool[2] 0 1" in done.stdout
        and "i64[3,6] 5 5 5" in done.stdout,
        done,
    )
    source.write_text(source.read_text().replace("seen[0] + k", "seen[0] + k + 5"))
    done = call([ingot, "run", model, *flags])
    expect("kinds: changed source", done.returncode == 0 and "i64[3,4] 9 9 9" in done.stdout, done)
    # constants are folded by the same source: nothing of it is in the bundle
    (work / "twice.c").write_text("/* elementwise */\nfloat twice(float x) { return 2 * x; }\n")
    one_node(work / "fold.onnx", inputs=(), constants=[("c", np.array([1, 2], np.float32))])
    done = call(
        [
            ingot,
            "compile",
            work / "fold.onnx",
            "--op",
            f"acme.com:F={work}/twice.c",
            "-o",
            work / "fold",
        ]
    )
    expect("folded", done.returncode == 0 and not list((work / "fold").glob("*_op_*")), done)
    (work / "crash.c").write_text(
        "/* elementwise */\nfloat twice(float x) { return x / (float)*(volatile int *)8; }\n"
    )
    one_node(work / "crash.onnx")
    done = call([ingot, "verify", work / "crash.onnx", "--op", f"acme.com:F={work}/crash.c"])
    expect("crash", done.returncode == 5 and "signal" in done.stderr, done)


# Functions of one element, of every type that lanes hold and of some that they do not; names and
# macros of both files clash.
FIRST = """#include <stdbool.h>
#include <stdint.h>
#define N 3
typedef float real;
enum { LIMIT = N };
static const real table[N] = {0.5f, 1.0f, 2.0f};
static real pick(real x) { return x > 0 ? table[LIMIT - 1] : table[0]; }
/* elementwise */
float leak(float x) { float y = x * x * 0.25f + 0.5f * x; return x > 0 ? x : y; }
/* elementwise */
real knee(real x, real y) { return pick(x) * y; }
/* elementwise
 * default[k] = 2 */
int8_t shift(int8_t x, int32_t y, int32_t k) { return (int8_t)((x + y) / k); }
/* elementwise */
bool above(float x, bool on) { return on && x > 0.5f; }
/* elementwise */
double wide(double x, int64_t n) { return x * 1e300 * (double)n / 1e300; }
"""
SECOND = """#define N 7
static float pick(float x) { return x * N; }
/* elementwise */
float seven(float x) { return pick(x); }
"""


def elementwise(ingot, work):
    """Within the kernels around them, in lanes, of all types; the same results as numpy."""
    (work / "first.c").write_text(FIRST)
    (work / "second.c").write_text(SECOND)
    F, I8, I32, I64, B, D = (
        TensorProto.FLOAT,
        TensorProto.INT8,
        TensorProto.INT32,
        TensorProto.INT64,
        TensorProto.BOOL,
        TensorProto.DOUBLE,
    )
    names = {
        "leak": "first",
        "knee": "first",
        "shift": "first",
        "above": "first",
        "wide": "first",
        "seven": "second",
    }
    ops = [f"--op=acme.com:{n}={work}/{f}.c:{n}" for n, f in names.items()]

    def own(op, ins, out, **attributes):
        return helper.make_node(op, ins, [out], op + out, domain="acme.com", **attributes)

    rng = np.random.default_rng(1)
    w = rng.standard_normal((8, 37)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], "product"),
        own("leak", ["h"], "l"),
        own("seven", ["l"], "s"),
        helper.make_node("Relu", ["s"], ["y0"], "relu"),
        own("knee", ["h", "v"], "y1"),
        own("above", ["h", "b"], "a"),
        helper.make_node("Where", ["a", "h", "v"], ["y2"], "where"),
        own("shift", ["i", "j"], "y3", k=3),
        own("wide", ["d", "n"], "y4"),
    ]
    inputs = {
        "x": (F, [5, 8]),
        "v": (F, [37]),
        "b": (B, [5, 1]),
        "i": (I8, [5, 37]),
        "j": (I32, [5, 37]),
        "d": (D, [4]),
        "n": (I64, [4]),
    }
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(k, *v) for k, v in inputs.items()],
        [helper.make_tensor_value_info(f"y{i}", t, None) for i, t in enumerate((F, F, F, I8, D))],
        [numpy_helper.from_array(w, "w")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme.com", 1)]
    model = work / "elementwise.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(model))
    v = {
        "x": rng.standard_normal((5, 8)).astype(np.float32),
        "v": rng.standard_normal(37).astype(np.float32),
        "b": np.array([[True], [False]] * 2 + [[True]]),
        "i": rng.integers(-60, 60, (5, 37)).astype(np.int8),
        "j": rng.integers(-60, 60, (5, 37)).astype(np.int32),
        "d": rng.standard_normal(4),
        "n": np.array([1, 2, 3, 4]),
    }
    h = v["x"] @ w
    leak = np.where(h > 0, h, h * h * np.float32(0.25) + np.float32(0.5) * h)
    total = v["i"].astype(np.int32) + v["j"]
    want = [
        np.maximum(leak * np.float32(7), 0),
        np.where(h > 0, np.float32(2), np.float32(0.5)) * v["v"],
        np.where(v["b"] & (h > 0.5), h, v["v"]),
        (np.sign(total) * (abs(total) // 3)).astype(np.int8),
        v["d"] * v["n"],
    ]
    data = work / "elementwise"
    data.mkdir()
    for what, values in (("input", v.values()), ("output", want)):
        for i, a in enumerate(values):
            (data / f"{what}_{i}.pb").write_bytes(
                numpy_helper.from_array(np.asarray(a), f"{what}{i}").SerializeToString()
            )
    for target in ["c:c99"] + (["c:x86-64-v3"] if platform.machine() == "x86_64" else []):
        done = call([ingot, "run", model, *ops, "--data", data, "--target", target])
        expect(f"elementwise: {target}", done.returncode == 0, done)
    done = call([ingot, "verify", model, *ops, "--data", data])
    expect("elementwise: verify", done.returncode == 0, done)
    for cc in ("cc", "clang"):
        out = work / f"elementwise_{cc}"
        done = call([ingot, "compile", model, *ops, "-o", out])
        built = (
            call(["make", "-C", out, f"CC={cc}", f"CFLAGS={STRICT} -Wconversion", "-s"])
            if shutil.which(cc)
            else done
        )
        expect(f"elementwise: {cc}", done.returncode == 0 and built.returncode == 0, built)
    kernels = "".join(f.read_text() for f in out.glob("*_kernels_*.c"))
    expect(
        "fused, in lanes",
        all(f"{n}_x4(" in kernels for n in ("leak", "seven", "knee", "above", "shift"))
        and re.search(r"op_seven_x4\(op_leak_x4\(", kernels)
        and not list(out.glob("*_op_*")),
    )
    if platform.machine() == "x86_64" and "clang" not in os.environ.get("CC", ""):
        in_vectors(ingot, work)
    done = call([ingot, "compile", model, *ops, "--target", "opencl", "-o", work / "gpu"])
    expect(
        "a step of its own on a GPU",
        done.returncode == 0 and (work / "gpu" / "model_op_leak.c").exists(),
        done,
    )
    of_one_value(ingot, work)


def in_vectors(ingot, work):
    """The loop over lanes is vector instructions."""
    one_node(work / "packed.onnx", inputs=(("x", TensorProto.FLOAT, [64]),))
    done = call(
        [
            ingot,
            "compile",
            work / "packed.onnx",
            f"--op=acme.com:F={work}/first.c:leak",
            "--target",
            "c:x86-64-v3",
            "-o",
            work / "packed",
        ]
    )
    for level in ("-O2", "-O3"):
        built = call(
            [
                "cc",
                "-std=c99",
                "-march=x86-64-v3",
                "-ffp-contract=off",
                level,
                "-c",
                work / "packed" / "model_kernels_0.c",
                "-o",
                work / "packed.o",
            ]
        )
        code = call(["objdump", "-d", work / "packed.o"]).stdout
        packed, single = (len(re.findall(rf"\tvmul{p}\b", code)) for p in ("ps", "ss"))
        expect(
            f"packed at {level}: {packed} instructions of vectors, {single} of numbers",
            packed > single,
            built,
        )


def of_one_value(ingot, work):
    """All elements alike: one call while compiling."""
    (work / "endless.c").write_text(
        "/* elementwise */\nfloat f(float x) { for (volatile int i = 0; i < 1; i--) i = -5; return x; }\n"
    )
    (work / "twice.c").write_text(
        "#include <math.h>\n/* elementwise */\nfloat twice(float x) { return x > 2 ? (float)NAN : 2 * x; }\n"
    )
    for value in (1, 3):
        one_node(
            work / "same.onnx", inputs=(), constants=[("c", np.full((2, 3), value, np.float32))]
        )
        done = call([ingot, "run", work / "same.onnx", f"--op=acme.com:F={work}/twice.c"])
        expect(
            f"uniform {value}",
            done.returncode == 0 and ("f32[2,3] 2 2" if value == 1 else "nan nan") in done.stdout,
            done,
        )
    done = call(
        [
            ingot,
            "compile",
            work / "same.onnx",
            f"--op=acme.com:F={work}/endless.c",
            "-o",
            work / "same",
        ],
        env={**os.environ, "INGOT_OP_SECONDS": "1"},
    )
    expect(
        "it does not end",
        done.returncode == 5
        and "did not end within 1 seconds" in done.stderr
        and not (work / "same").exists(),
        done,
    )


GOOD = "/* out[y] = in[x] */\nvoid f(const float *x, float *y, long n_x, float beta) { for (long i = 0; i < n_x; i++) y[i] = beta * x[i]; }\n"
WRONG = [  # name, source, its line, words of the message, what the node has
    ("missing_function", GOOD, 1, "no function 'g'", dict(function=":g")),
    ("missing_file", None, 1, "cannot be opened", {}),
    ("wrong_type", GOOD.replace("const float", "const double"), 2, "is f32", {}),
    ("no_tensor_type", GOOD.replace("const float", "const long"), 2, "is 'const long *'", {}),
    (
        "too_few_parameters",
        GOOD,
        2,
        "takes 1 inputs, the node has 2",
        dict(inputs=(("x", TensorProto.FLOAT, [2]), ("z", TensorProto.FLOAT, [2]))),
    ),
    ("too_few_outputs", GOOD, 2, "has 1 outputs, the node 2", dict(outputs=2)),
    ("unknown_attribute", GOOD, 2, "attribute 'gamma'", dict(gamma=1.0)),
    ("missing_attribute", GOOD, 2, "no attribute of that name", dict(beta=None)),
    ("attribute_type", GOOD, 2, "is an integer", dict(beta=3)),
    ("cplusplus", GOOD, 1, "C++", dict(suffix=".cpp")),
    ("syntax_error", GOOD.replace("y[i] =", "y[i] = ;"), 2, "expected expression", {}),
    ("no_rule", GOOD.replace("out[y] = in[x]", "prose"), 2, "out[y] = in[x]", {}),
    ("wrong_rule", GOOD.replace("in[x]", "in[z]"), 1, "no input has that name", {}),
    ("rule_of_nothing", GOOD.replace("out[y]", "out[q]"), 1, "'q'", {}),
    ("rank", GOOD.replace("long n_x", "long x_dim4").replace("n_x", "x_dim4"), 2, "rank 2", {}),
    ("scratch_unsaid", GOOD.replace("float beta", "float beta, void *scratch"), 2, "scratch", {}),
    (
        "two_functions",
        GOOD + "void h(int a);\nvoid h(int a) { (void)a; }\n",
        1,
        "several functions (f, h)",
        {},
    ),
    ("own_header", '#include "own.h"\n' + GOOD, 1, "own.h", {}),
    ("global", "int count;\n" + GOOD, 1, "'count' outlives", {}),
    (
        "static",
        GOOD.replace("{ for", "{ static int calls; calls++; for"),
        2,
        "'calls' outlives",
        {},
    ),
    ("table", "static float table[4];\n" + GOOD, 1, "'table' outlives", {}),
    (
        "rank_of_output",
        GOOD.replace("long n_x", "long y_dim9").replace("n_x", "y_dim9"),
        2,
        "rank 2",
        {},
    ),
    ("variadic", GOOD.replace("float beta)", "float beta, ...)"), 2, "all of its parameters", {}),
    (
        "passes_struct",
        "struct s { int a; };\n" + GOOD.replace("float beta", "struct s beta"),
        3,
        "struct s",
        {},
    ),
    ("result", GOOD.replace("void f", "float *f"), 2, "return void", {}),
]


def wrong(ingot, work):
    (work / "own.h").write_text("\n")
    for name, source, line, words, more in WRONG:
        more = dict(more)
        function, suffix = more.pop("function", ""), more.pop("suffix", ".c")
        more.setdefault("beta", 1.0)
        if more["beta"] is None:
            del more["beta"]
        model, file = work / f"{name}.onnx", work / f"{name}{suffix}"
        one_node(model, **more)
        if source is not None:
            file.write_text(source)
        done = call(
            [ingot, "compile", model, "--op", f"acme.com:F={file}{function}", "-o", work / "wrong"]
        )
        status = 6 if source is None else 3
        good = (
            done.returncode == status
            and done.stderr.count("\n") == 1
            and f"{file}:{line}: " in done.stderr
            and "'node7' (F)" in done.stderr
            and words in done.stderr
            and not (work / "wrong").exists()
        )
        expect(f"wrong use: {name}", good, done)
    one_node(work / "good.onnx", beta=1.0)
    (work / "good.c").write_text(GOOD)
    done = call(
        [
            ingot,
            "compile",
            work / "good.onnx",
            "--op",
            f"acme.com:F={work}/good.c",
            "-o",
            work / "good",
        ]
    )
    expect("the right use", done.returncode == 0, done)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--ingot", required=True)
    ingot = pathlib.Path(p.parse_args().ingot).resolve()
    work = pathlib.Path(tempfile.mkdtemp(prefix="ingot-custom-"))
    os.environ["INGOT_CACHE"] = str(work / "cache")
    one_node(work / "probe.onnx", beta=1.0)
    (work / "probe.c").write_text(GOOD)
    probe = call(
        [
            ingot,
            "compile",
            work / "probe.onnx",
            "--op",
            f"acme.com:F={work}/probe.c",
            "-o",
            work / "probe",
        ]
    )
    if probe.returncode == 4 and "libclang" in probe.stderr:
        print("skipped: built without libclang")
        return 77
    for test in (example, kinds, elementwise, wrong):
        test(ingot, work)
    shutil.rmtree(work)
    print("FAILED" if faults else "passed")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
