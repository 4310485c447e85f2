#!/usr/bin/env python3
"""Bundles for several targets: a GPU and C where there is none, C for several machines.

    fat.py --ingot build/ingot [CHECK...]     all checks unless some are named

    chosen      which half runs: the GPU's where there is one (cuda_stub.c, which writes calls down,
                is the driver), else that of C, which gives the bytes of a bundle for C; who asks
                for a GPU that there is not gets a status; several contexts in one program
    strict      builds without a warning as C99 under gcc and clang; under sanitizers, with a driver
                and without
    weights     as arrays, as a file and linked in: the same results; what both halves read is in
                the file once
    sizes       run-time dims and a state that grows, in either half
    built       by CMake, from C++, as a shared library from Python
    decided     the same bytes from the same input, and from the decisions that were saved; what is
                refused
    opencl      the same with OpenCL, on whatever device there is
    machines    C for several machines: which one runs here and as older processors (qemu-user), by
                name, by the environment; weights are shared; CMake; a GPU beside; refusals

Exit status 77, skipped: there is no Python with onnx.
"""

import os
import pathlib
import shutil
import subprocess
import sys

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    import models
    from run import SANITIZE, STRICT, Wrong, call, compilers, fingerprint, main, make
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
TARGET = "cuda:sm_90+c"
VECTORS = (
    "cuda:sm_90+c:x86-64-v3"  # weights of products lie in panels, in other ones than on the GPU
)
DEVICE, CONFIG, BUILD = 16, 2, 17

# PROGRAM TARGET GPU FLAGS: which half runs and what y is of each context, "-" where nothing is
# asked; two contexts, the second one on C
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"
static _Alignas(64) unsigned char arena[2][MODEL_ARENA_BYTES(1)], weights[MODEL_WEIGHTS_BYTES + 64];
static float x[4 * 20], y[4 * 10];
static void mark(const char *text)
{
    FILE *f = getenv("CUDA_STUB_LOG") ? fopen(getenv("CUDA_STUB_LOG"), "a") : NULL;
    if (f) {
        fprintf(f, "== %s\\n", text);
        fclose(f);
    }
}
int main(int argc, char **argv)
{
    static model_ctx ctx[2];
    const model_inputs in = {.x = x};
    model_outputs out = {.y = y};
    FILE *f = argc > 4 ? fopen(argv[4], "rb") : NULL;
    if (f && fread(weights, 1, MODEL_WEIGHTS_BYTES, f) != MODEL_WEIGHTS_BYTES)
        return 99;
    for (int i = 0; i < 80; i++)
        x[i] = (float)(i % 13) / 4 - 1;
    for (int i = 0; i < 2; i++) {
        model_config config = {.struct_size = sizeof config, .arena = arena[i], .arena_bytes = sizeof arena[i]};
        config.weights = weights;
        config.weights_bytes = MODEL_WEIGHTS_BYTES;
        config.target = i ? "c" : strcmp(argv[1], "-") ? argv[1] : NULL;
        config.gpu = i || !strcmp(argv[2], "-") ? NULL : argv[2];
        config.flags = i ? 0 : (unsigned)atoi(argv[3]);
        mark(i ? "init of C" : "init");
        const model_status status = model_init(&ctx[i], &config);
        if (status != IGRT_OK) {
            printf("init %d\\n", (int)status);
            return 0;
        }
    }
    for (int k = 0; k < 4; k++) {
        memset(y, 0, sizeof y);
        mark(k % 2 ? "run of C" : "run");
        const model_status status = model_run(&ctx[k % 2], &in, &out);
        printf("%s %d", model_target(&ctx[k % 2]), (int)status);
        for (int i = 0; i < 40 && model_target(&ctx[k % 2])[1] == 0; i++)
            printf(" %a", (double)y[i]);
        puts("");
    }
    for (int i = 0; i < 2; i++) {
        mark("deinit");
        model_deinit(&ctx[i]);
    }
    return 0;
}
"""


def mlp(work):
    path = work / "mlp.onnx"
    path.write_bytes(models.build("mlp"))
    return path


def program(ingot, model, out, *flags, cc="cc", cflags="-O0 -std=c11", target=TARGET, text=PROGRAM):
    call(ingot, "compile", model, "-o", out, "--target", target, "-q", *flags)
    (out / "program").mkdir()
    (out / "program/program.c").write_text(text)
    sources = sorted(out.glob("*.c")) + sorted(out.glob("*.S")) + [out / "program/program.c"]
    call(
        cc,
        *cflags.split(),
        "-I.",
        "-I",
        out,
        *sources,
        "-o",
        out / "program/run",
        "-lm",
        "-ldl",
        cwd=out,
    )
    return out / "program/run"


def driver(work):
    """cuda_stub.c: the environment that has it."""
    stub = work / "stub"
    stub.mkdir(exist_ok=True)
    call("cc", "-shared", "-fPIC", HERE / "cuda_stub.c", "-o", stub / "libcuda.so.1")
    return {"LD_LIBRARY_PATH": str(stub), "CUDA_STUB_LOG": str(work / "log")}


def lines(run, *words, env=None, weights=None):
    return call(
        run, *(words or ("-", "-", "0")), *([weights] if weights else []), env=env
    ).splitlines()


def numbers(line):
    return np.array([float.fromhex(v) for v in line.split()[2:]])


def logged(work):
    """The calls of each stage, by its name and number."""
    parts = (work / "log").read_text().split("== ")[1:]
    return [(p.split("\n")[0], [c.split("_v")[0] for c in p.split("\n")[1:-1]]) for p in parts]


def want(good, what):
    if not good:
        raise Wrong(what)


def by_numpy():
    model = onnx.load_model_from_string(models.build("mlp")).graph
    w = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in model.initializer}
    a, b = [n for n in model.node if n.op_type == "Gemm"]
    x = (np.arange(80) % 13 / 4 - 1).reshape(4, 20)
    h = np.maximum(x @ w[a.input[1]].T + w[a.input[2]], 0) @ w[b.input[1]].T + w[b.input[2]]
    e = np.exp(h - h.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).ravel()


def driver_says(work, stub):
    """The driver's program tells why it runs by C, or does not."""
    make(work / "out", "cc", "-O0")
    (work / "data").mkdir()
    np.save(work / "data/input_0.npy", np.zeros((4, 20), np.float32))
    stub_less = {"LD_LIBRARY_PATH": ""}
    for env, words, says in (
        (stub_less, (), "by C: there is no CUDA driver"),
        (stub_less, ("--target", "cuda"), "status 16): there is no CUDA driver"),
        (stub_less, ("--target", "c"), None),
        (stub, (), None),
        (stub, ("--gpu", "7"), "status 16): there is no GPU, or not the one"),
        (
            stub | {"CUDA_STUB_FAIL": "cuMemAlloc", "CUDA_STUB_ERROR": "2"},
            (),
            "by C: the GPU has too little memory free",
        ),
        (
            stub | {"CUDA_STUB_FAIL": "cuMemAlloc", "CUDA_STUB_ERROR": "2"},
            ("--target", "cuda"),
            "status 16): the GPU has too little memory free",
        ),
        (
            stub | {"CUDA_STUB_FAIL": "cuModuleLoadDataEx", "CUDA_STUB_ERROR": "209"},
            (),
            "by C: the kernels are not compiled for this GPU",
        ),
        (stub | {"CUDA_STUB_FAIL": "cuStreamCreate"}, (), "by C: a call of the CUDA driver failed"),
    ):
        done = subprocess.run(
            [work / "out/model", *words, work / "data", work / "y"],
            capture_output=True,
            text=True,
            env=os.environ | env,
        )
        want(
            done.stderr.count("\n") == (says is not None)
            and (says or "") in done.stderr
            and (done.returncode == 0) == ("status" not in (says or "")),
            f"{env}, {words}: status {done.returncode}: {done.stderr}",
        )


def chosen(ingot, work):
    run = program(ingot, mlp(work), work / "out")
    alone = program(
        ingot,
        mlp(work),
        work / "alone",
        target="c",
        text=PROGRAM.replace("model_target(&ctx[k % 2])", '"c"').replace(
            'config.target = i ? "c" :', 'config.user = i ? NULL :'
        ),
    )
    stub = driver(work)
    want(
        not any(
            (pathlib.Path(d) / "libcuda.so.1").exists()
            for d in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")
        ),
        "there is a driver here",
    )

    # no driver: C, in both contexts
    got, same = lines(run), lines(alone)
    want(len(got) == 4 and got == same, f"without a driver: {got}, and the bundle for C: {same}")
    want(np.abs(numbers(got[0]) - by_numpy()).max() < 1e-6, f"without a driver: {got[0]}")
    want(lines(run, "c", "-", "0") == got, "asked for C")

    driver_says(work, stub)
    for words, status in (
        (("cuda", "-", "0"), DEVICE),
        (("-", "0", "0"), DEVICE),
        (("-", "-", "2"), DEVICE),
        (("c", "0", "0"), CONFIG),
        (("c", "-", "2"), CONFIG),
        (("opencl", "-", "0"), CONFIG),
        (("", "-", "0"), CONFIG),
    ):
        want(
            lines(run, *words) == [f"init {status}"],
            f"without a driver, {words}: {lines(run, *words)}",
        )

    # a driver: the GPU's half in the first context, C in the second
    def with_driver(*words, **env):
        (work / "log").unlink(missing_ok=True)
        return lines(run, *words, env=stub | env), logged(work)

    for words in (("-", "-", "0"), ("cuda", "-", "0"), ("-", "1", "0"), ("-", "-", "2")):
        told, stages = with_driver(*words)
        want(
            [t[:3] for t in told[::2]] == ["cud", "cud"] and told[1::2] == got[1::2],
            f"with a driver, {words}: {told}",
        )
        want([t.split()[1] for t in told] == ["0"] * 4, f"with a driver, {words}: {told}")
        names, called = [s[0] for s in stages], [s[1] for s in stages]
        want(
            names
            == ["init", "init of C", "run", "run of C", "run", "run of C", "deinit", "deinit"],
            f"{words}: {names}",
        )
        want(called[1] == called[3] == called[5] == called[7] == [], f"C asks the driver: {stages}")
        want(
            "cuStreamBeginCapture" in called[0] and "cuGraphLaunch" in called[2],
            f"{words}: the GPU's half: {stages}",
        )
        want(
            called[0].count("cuMemAlloc") == called[6].count("cuMemFree"),
            f"{words}: memory is not let go: {stages}",
        )
    told, stages = with_driver("c", "-", "0")
    want(
        told == got and not any(c for _, c in stages),
        f"asked for C, with a driver: {told} {stages}",
    )
    want(with_driver("-", "7", "0")[0] == [f"init {DEVICE}"], "a GPU 7 was found")

    # what is there cannot run it: C, unless the GPU was asked for; nothing stays behind on it
    for fail, status in (
        ("cuInit", DEVICE),
        ("cuDeviceGet", DEVICE),
        ("cuModuleLoadDataEx", BUILD),
        ("cuGraphInstantiateWithFlags", DEVICE),
    ):
        told, stages = with_driver("-", "-", "0", CUDA_STUB_FAIL=fail)
        want(told == got, f"where {fail} fails: {told}")
        want(
            stages[0][1].count("cuMemAlloc") == stages[0][1].count("cuMemFree"),
            f"where {fail} fails: {stages[0]}",
        )
        for words in (("cuda", "-", "0"), ("-", "0", "0")):
            told = with_driver(*words, CUDA_STUB_FAIL=fail)[0]
            want(told == [f"init {status}"], f"where {fail} fails, {words}: {told}")
    print("by calls of the driver, and by results")


def strict(ingot, work):
    out = work / "out"
    stub = driver(work)
    call(ingot, "compile", mlp(work), "-o", out, "--target", TARGET, "--weights", "blob")
    for cc in compilers():
        make(out, cc, STRICT)
        call(out / "model", "--selftest")
        call(
            out / "model", "--selftest", "--target", "cuda", env=stub, good=(6,)
        )  # a driver that computes nothing
    (out / "program.c").write_text(PROGRAM)
    sources = [*sorted(out.glob("*.c"))]
    for cc in compilers():
        run = work / f"run_{cc}"
        call(cc, *SANITIZE.split(), "-std=c11", "-I", out, *sources, "-o", run, "-lm", "-ldl")
        for env in ({}, stub, stub | {"CUDA_STUB_FAIL": "cuModuleLoadDataEx"}):
            told = lines(
                run,
                "-",
                "-",
                "0",
                weights=out / "model.weights",
                env=env | {"ASAN_OPTIONS": "detect_leaks=0"},
            )
            want(len(told) == 4 and all(t.split()[1] == "0" for t in told), f"{cc}, {env}: {told}")
    print("gcc, clang" if len(compilers()) > 1 else compilers()[0])


def embedding(work):
    """A table that is looked up: it lies as it is, on whatever machine; and a product, whose
    weights do not."""
    rng = np.random.default_rng(3)
    table = rng.standard_normal((500, 64)).astype(np.float32)
    w = rng.standard_normal((64, 96)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "i"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, [32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [32, 96])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(w, "w")],
    )
    path = work / "embedding.onnx"
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
    return path, table, w


def weights(ingot, work):
    first = None
    for how in ("array", "blob", "incbin"):
        run = program(ingot, mlp(work), work / how, "--weights", how)
        got = lines(run, weights=work / how / "model.weights" if how == "blob" else None)
        first = first or got
        want(len(got) == 4 and got == first, f"--weights {how}: {got}")

    model, table, w = embedding(work)
    out = work / "shared"
    told = subprocess.run(
        [ingot, "compile", model, "-o", out, "--target", VECTORS, "--weights", "blob"],
        capture_output=True,
        text=True,
    )
    size = (out / "model.weights").stat().st_size
    want(
        told.returncode == 0 and table.nbytes + w.nbytes < size < 2 * table.nbytes,
        f"{size} bytes of weights, of a table of {table.nbytes}: {told.stderr}",
    )
    want(f"weights of all {size} bytes" in told.stderr, told.stderr)
    index = np.arange(32) * 15
    data = work / "data"
    data.mkdir()
    np.save(data / "input_0.npy", index)
    make(out, "cc", "-O0")
    call(out / "model", data, work / "y")
    y = np.load(work / "y/output_0.npy")
    want(
        np.abs(y - table[index].astype(np.float64) @ w).max() < 1e-4,
        "what is looked up in weights of both halves",
    )
    whole, stub = (out / "model.weights").read_bytes(), driver(work)
    for at, cpu, gpu in (
        (0, 0, 3),
        (size // 2, 3, 3),
        (size - 1, 3, 0),
    ):  # weights of the GPU's half, of both, of the half for C
        (out / "model.weights").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        call(out / "model", data, work / "y", good=(cpu,))
        call(out / "model", data, work / "y", env=stub, good=(gpu,))
    print(f"arrays, a file, linked in; {size} bytes for two halves of {table.nbytes} + {w.nbytes}")


GROWS = """
#include <stdio.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
static float row[4] = {1, 2, 3, 4}, y[4], x[8 * 4], z[8 * 4];
int main(int argc, char **argv)
{
    static model_ctx ctx;
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    config.target = argc > 1 ? argv[1] : NULL;
    if (model_init(&ctx, &config)) return 1;
    for (int i = 0; i < 9; i++) {
        model_inputs in = {.row = row, .x = x, .x_dims = {i % 8 + 1, 4}};
        model_outputs out = {.y = y, .z = z};
        if (i == 7) in.x_dims[0] = 9;
        for (int k = 0; k < 32; k++) x[k] = (float)(k + i);
        const model_status status = model_run(&ctx, &in, &out);
        printf("%d %d %g %g %d %g %s\\n", (int)status, (int)model_length_past(&ctx), (double)y[0], (double)y[3], (int)out.z_dims[0], (double)z[1],
               ctx.fault.what ? "fault" : "none");
        if (status && model_reset(&ctx)) return 2;
    }
    model_deinit(&ctx);
    return 0;
}
"""


def sizes(ingot, work):
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Concat", ["past", "row"], ["present"], axis=0),
        helper.make_node("ReduceSum", ["present", "first"], ["y"], keepdims=0),
        helper.make_node("Add", ["x", "x"], ["z"]),
    ]
    f = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "g",
        [value("row", f, [1, 4]), value("past", f, ["past", 4]), value("x", f, ["n", 4])],
        [value("y", f, [4]), value("present", f, ["next", 4]), value("z", f, ["n", 4])],
        [numpy_helper.from_array(np.int64([0]), "first")],
    )
    model = work / "grows.onnx"
    model.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
    flags = ("--dim", "past=0..5", "--dim", "n=1..8", "--state", "past=present")
    run = program(ingot, model, work / "out", *flags, text=GROWS)
    told = call(run).splitlines()
    sums = [f"0 {i + 1} {i + 1} {4 * (i + 1)} {i + 1} {2 * (1 + i)} none" for i in range(6)]
    want(
        told[:6] == sums
        and told[6].split()[0] == told[7].split()[0] == "10"
        and told[7].endswith("fault"),
        "\n".join(told),
    )
    want(told[8].split()[:2] == ["0", "1"], "\n".join(told))
    stub = driver(work)
    told = [t.split() for t in call(run, env=stub).splitlines()]
    want(
        [t[:2] for t in told[:6]] == [["0", str(i + 1)] for i in range(6)]
        and told[6][0] == told[7][0] == "10",
        f"on the GPU's half: {told}",
    )
    print("both halves count rows")


CPP = """
#include "model.hpp"
#include <cstdio>
#include <vector>
int main()
{
    model::model m(igrt::load("model.weights"));
    std::vector<float> x(80), y(40);
    model::inputs in;
    model::outputs out;
    in.x = x;
    out.y = y;
    model::model other = std::move(m);
    other.run(in, out);
    std::printf("%s\\n", other.target());
    model_config config = {};
    config.target = "cuda";
    try {
        model::model gpu(igrt::load("model.weights"), config);
    } catch (const igrt::error &e) {
        std::printf("%d\\n", (int)e.status());
    }
    return 0;
}
"""


def built(ingot, work):
    out, prefix = work / "out", work / "prefix"
    call(ingot, "compile", mlp(work), "-o", out, "--target", TARGET, "--weights", "blob")
    call("cmake", "-S", out, "-B", work / "b")
    call("cmake", "--build", work / "b")
    call(work / "b/model", "--selftest")
    call("cmake", "--install", work / "b", "--prefix", prefix)
    user = work / "user"
    user.mkdir()
    (user / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.15)\nproject(u LANGUAGES C CXX)\nfind_package(model REQUIRED)\n"
        "add_executable(u u.c)\ntarget_link_libraries(u PRIVATE model::model_model)\n"
        "add_executable(v v.cpp)\ntarget_compile_features(v PRIVATE cxx_std_17)\n"
        "target_link_libraries(v PRIVATE model::model_model)\n"
    )
    (user / "u.c").write_text(
        '#include "model.h"\nint main(void) { return model_init(0, 0) != IGRT_ERR_NULL; }\n'
    )
    (user / "v.cpp").write_text(CPP)
    call(
        "cmake",
        "-S",
        user,
        "-B",
        user / "b",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror",
    )
    call("cmake", "--build", user / "b")
    call(user / "b/u")
    told = call(user / "b/v", cwd=out).split()
    want(told == ["c", str(DEVICE)], f"from C++: {told}")
    sys.path.insert(0, str(HERE.parent.parent / "compiler/tools/python"))
    import ingot as binding

    x = np.float32(np.arange(80) % 13 / 4 - 1).reshape(4, 20)
    for target in (None, "c"):
        m = binding.Model(out, target=target)
        want(
            m.target == "c" and np.abs(m(x).ravel() - by_numpy()).max() < 1e-6,
            f"from Python, target={target}: {m.target}",
        )
    try:
        binding.Model(out, target="cuda")
        raise Wrong("from Python: there is a GPU")
    except binding.RunError as e:
        want(e.status == DEVICE, f"from Python: {e}")
    print("CMake, C++, Python")


def decided(ingot, work):
    model, flags = mlp(work), ("--target", TARGET, "--weights", "blob")
    call(ingot, "compile", model, "-o", work / "a", *flags, "--save-sched", work / "s.sched")
    call(ingot, "compile", model, "-o", work / "b", *flags)
    call(ingot, "compile", model, "-o", work / "c", *flags, "--sched", work / "s.sched")
    a, b, c = (fingerprint(work / k) for k in "abc")
    want(a == b, f"{[f for f in a if a[f] != b.get(f)]} differ")
    want(a == c, f"{[f for f in a if a[f] != c.get(f)]} differ by the decisions that were saved")
    # each half is what a bundle for its target is: the same kernels, names apart
    for target, name in (("cuda:sm_90", "model_cuda"), ("c", "model_c")):
        call(
            ingot,
            "compile",
            model,
            "-o",
            work / name,
            "--target",
            target,
            "--name",
            name,
            "--weights",
            "blob",
        )
        for file in (work / name).glob(f"{name}_kernels*"):
            want(
                file.read_bytes() == (work / "a" / file.name).read_bytes(),
                f"{file.name} differs from that of --target {target}",
            )
    refused = (
        (("compile", "-o", work / "no", "--target", "c+cuda"), 2, "c+cuda"),
        (("compile", "-o", work / "no", "--target", "cuda+opencl"), 2, "opencl"),
        (("compile", "-o", work / "no", "--target", TARGET, "--max-vram", "1k"), 4, "--max-vram"),
        # by default everything is computed in one kernel then, without an arena
        (
            ("compile", "-o", work / "no", "--target", TARGET, "--max-ram", "64", "--fuse", "none"),
            4,
            "--max-ram",
        ),
        (("inspect", "--target", TARGET), 2, "give one of them: cuda:sm_90 or c"),
        (("verify", "--target", TARGET), 2, "give one of them"),
        (("compile", "-o", work / "no", "--target", "cuda+c:nothing"), 2, "c:nothing"),
    )
    for (command, *words), status, says in refused:
        done = subprocess.run(
            [ingot, command, model, *words],
            capture_output=True,
            text=True,
            env=os.environ | {"INGOT_CACHE": str(work / "cache")},
        )
        want(
            done.returncode == status and says in done.stderr and not (work / "no").exists(),
            f"{command} {words}: status {done.returncode}: {done.stderr}",
        )
    # run and bench build both
    told = call(
        ingot,
        "bench",
        model,
        "--target",
        TARGET,
        "--seconds",
        "0.01",
        env={"INGOT_CACHE": str(work / "cache")},
    )
    want('"target": "c"' in told, told)
    print("equal bytes; refusals")


def opencl(ingot, work):
    run = program(ingot, mlp(work), work / "out", target="opencl+c")
    env = {"POCL_CACHE_DIR": str(work / "pocl")}
    shutil.rmtree(work / "pocl", ignore_errors=True)
    told = lines(run, env=env)
    device = told[0].split()[0] == "opencl"
    want(
        len(told) == 4 and all(t.split()[1] == "0" for t in told) and told[1].split()[0] == "c",
        f"{told}",
    )
    want(
        (lines(run, "opencl", "-", "0", env=env) == [f"init {DEVICE}"]) == (not device),
        "asked for OpenCL",
    )
    make(work / "out", "cc", "-O0")
    call(work / "out/model", "--selftest", env=env)
    call(work / "out/model", "--selftest", "--target", "c", env=env)
    print("on an OpenCL device" if device else "there is no OpenCL device: by C")


MACHINES = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "sapphirerapids")
# what qemu calls a processor: the machine that it is. It has no AVX-512 of its own.
OLDER = {"Nehalem": "x86-64-v2", "Haswell": "x86-64-v3", "Skylake-Server": "x86-64-v3"}


def ran(*words, env=None):
    """Which target a driver says that it has timed."""
    at = next(i for i, w in enumerate(words) if str(w).endswith("/model"))
    before, after = words[1 : at + 1], words[at + 1 :]
    told = call(words[0], *before, "--bench", "0.01", *after, env=env)
    return told.split('"target": "')[1].split('"')[0]


def panels(ingot, work):
    """A tile of the smaller machine takes half of a block of weights: it asks for the next block, too."""
    weight = numpy_helper.from_array(np.ones((512, 512), np.float32), "w")
    made = helper.make_model(
        helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            "product",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16, 512])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 512])],
            [weight],
        )
    )
    onnx.save(made, work / "product.onnx")
    out = work / "panels"
    target = "c:x86-64-v2,x86-64-v4"
    call(ingot, "compile", work / "product.onnx", "-o", out, "--target", target)
    for name in ("x86_64_v2", "x86_64_v4"):
        text = (out / f"model_{name}_kernels_0.c").read_text()
        want("igrt_prefetch(" in text, f"{name} does not ask for the next block of weights")


def machines(ingot, work):
    if os.uname().machine != "x86_64":
        print("machines: skipped, this is no x86-64")
        return
    out, model = work / "out", mlp(work)
    flags = ("--weights", "blob", "--threads", "2")
    call(ingot, "compile", model, "-o", out, "--target", "c:" + ",".join(MACHINES), *flags)
    make(out, "cc", "-O1 -Wall -Wextra -Werror -ffunction-sections")
    data = work / "data"
    data.mkdir()
    np.save(data / "input_0.npy", np.float32(np.arange(80) % 13 / 4 - 1).reshape(4, 20))
    here = ran(out / "model", data)
    want(here in MACHINES, f"here runs {here}")
    for name in MACHINES[: MACHINES.index(here) + 1]:
        want(ran(out / "model", data, "--target", name) == name, f"--target {name}")
        want(ran(out / "model", data, env={"INGOT_TARGET": name}) == name, f"$INGOT_TARGET {name}")
        call(out / "model", "--selftest", "--target", name)
        call(out / "model", data, work / "y", "--target", name)
        y = np.load(work / "y/output_0.npy")
        want(np.abs(y.ravel() - by_numpy()).max() < 1e-6, f"{name} is wrong")
    for name in MACHINES[MACHINES.index(here) + 1 :]:
        call(out / "model", "--selftest", "--target", name, good=(4,))
    call(out / "model", "--selftest", "--target", "z80", good=(4,))
    qemu = shutil.which("qemu-x86_64")
    for cpu, name in OLDER.items() if qemu else ():
        told = ran(qemu, "-cpu", cpu, out / "model", data)
        want(told == name, f"a {cpu} runs {told}")
        call(qemu, "-cpu", cpu, out / "model", "--selftest")
    panels(ingot, work)
    alone = {}
    for name in MACHINES:
        call(ingot, "compile", model, "-o", work / name, "--target", f"c:{name}", *flags)
        alone[name] = (work / name / "model.weights").stat().st_size
    size = (out / "model.weights").stat().st_size
    want(max(alone.values()) <= size <= 1.35 * max(alone.values()), f"{size} bytes of {alone}")
    call("cmake", "-S", out, "-B", work / "b")
    call("cmake", "--build", work / "b")
    want(ran(work / "b/model", data) == here, "built by CMake")
    # with a GPU that is not there; as arrays, and linked in
    for weights in ("array", "incbin"):
        both = work / f"both_{weights}"
        target = "cuda:sm_90+c:x86-64-v2,x86-64-v3"
        call(ingot, "compile", model, "-o", both, "--target", target, "--weights", weights)
        make(both, "cc", "-O0")
        want(ran(both / "model", data, "--target", "c") in MACHINES[:2], "beside a GPU")
        call(both / "model", "--selftest")
    for target, says in (
        ("c:x86-64-v2,x86-64-v2", "named twice"),
        ("c:x86-64-v2,cortex-m4", "'cortex-m4' is none"),
        ("c:x86-64-v2,armv8-a", "they do not run the same programs"),
        ("c:x86-64-v2,nothing", "c:nothing"),
    ):
        done = subprocess.run(
            [ingot, "compile", model, "-o", work / "no", "--target", target],
            capture_output=True,
            text=True,
        )
        want(
            done.returncode == 2 and says in done.stderr and not (work / "no").exists(),
            f"{target}: status {done.returncode}: {done.stderr}",
        )
    print(f"{here} here; as {len(OLDER) if qemu else 0} older ones; {size} bytes of {alone}")


CHECKS = {
    "chosen": chosen,
    "strict": strict,
    "weights": weights,
    "sizes": sizes,
    "built": built,
    "decided": decided,
    "opencl": opencl,
    "machines": machines,
}
if __name__ == "__main__":
    sys.exit(main(__doc__, CHECKS))
