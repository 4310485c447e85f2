#!/usr/bin/env python3
"""What a bundle promises, checked on small models with nothing but the emitted folder.

    run.py --ingot build/ingot [CHECK...]       all checks unless some are named

    identical   two compiles from different working directories write the same bytes
    together    three models link into one program, and all run; those of c:c99 also under tcc, if
                there is one
    runtime     the runtime is below 8 KB of code; no object but the driver's allocates
    strict      builds without a warning as C99 under gcc and clang, in vectors and (c:c99) without
    sanitized   the selftests pass under ASan and UBSan, and find a changed weight
    shapes      run-time dims, loops and counts that the data decides give the right values
    empty       where a run's sizes leave loops without an iteration nothing is read behind a
                buffer, under ASan
    inspect     `ingot inspect --json` has every field that tools rely on
    cached      a second `ingot run` compiles nothing
    profiled    `ingot bench --per-kernel --json` tells time, rates and share of the roof of every
                step
    verified    `ingot verify` names a broken kernel, its step, source, element and values; sums
                that cancel are told from it

Exit status 77, skipped: there is no Python with onnx.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
    import models
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
RUNTIME_TEXT = 8 * 1024
ALLOCATORS = {"malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "strdup"}
STRICT = "-O1 -std=c99 -pedantic -Wall -Wextra -Werror"
# Nothing is optimised away that could be found, and clang compiles kernels in a quarter of the time
SANITIZE = "-O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all"
sys.path.append(str(HERE.parent / "onnx"))
import joined  # noqa: E402
import objects  # noqa: E402


class Wrong(Exception):
    pass


def call(*command, cwd=None, env=None, good=(0,)):
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env=dict(os.environ, **(env or {})),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if done.returncode not in good:
        raise Wrong(
            f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def without_fault(ingot, work, path, *flags):
    """What verify --interpret tells of kernels without a fault."""
    cache = {"INGOT_CACHE": str(work / "cache")}
    told = call(ingot, "verify", path, "--interpret", *flags, env=cache)
    if "no fault" not in told:
        raise Wrong(told)
    return told


def compile_model(ingot, work, name, *flags, out=None):
    """The bundle's folder."""
    model = work / f"{name}.onnx"
    if not model.exists():
        model.write_bytes(models.build(name))
    out = out or work / name
    call(ingot, "compile", model, "-o", out, "--name", name, *flags)
    return out


def make(bundle, cc, flags):
    if any(p.suffix in (".o", ".a", ".so") or p.name == "model" for p in bundle.rglob("*")):
        call("make", "-s", "-C", bundle, "clean")
    objects.make(
        bundle,
        cc,
        flags,
        lambda words: call(*words),
        f"LDFLAGS={flags if 'sanitize' in flags else ''}",
    )


def program(bundle, cc, flags):
    """As make(), for those who run the bundle and do not look at how it is built."""

    done = objects.program(bundle, cc, flags, attempt)
    if done.rc:
        raise Wrong(f"{bundle}: {done.stdout}{done.stderr}")


def attempt(words):
    """A command that may fail, as objects.py wants it run."""
    done = subprocess.run([str(w) for w in words], text=True, capture_output=True)
    done.rc = done.returncode
    return done


def programs(bundles, cc, flags):
    """The programs of bundles, by folder: as program(), but compiled as one where that can be."""
    made = joined.programs(bundles, cc, flags, attempt)
    for bundle in bundles:
        if bundle not in made:
            program(bundle, cc, flags)
            made[bundle] = bundle / "model"
    return made


def compilers():
    found = [cc for cc in ("gcc", "clang") if shutil.which(cc)]
    if not found:
        raise Wrong("neither gcc nor clang is installed")
    return found


def fingerprint(folder):
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


# -- the checks --------------------------------------------------------------------------------


def identical(ingot, work):
    for name in models.MODELS:
        for weights in ("array", "blob"):
            here, there = work / "here" / name, work / "there" / "deeper" / name
            prints = []
            for folder in (here, there):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                (folder / f"{name}.onnx").write_bytes(models.build(name))
                call(
                    ingot,
                    "compile",
                    f"{name}.onnx",
                    "-o",
                    "out",
                    "--name",
                    name,
                    "--weights",
                    weights,
                    cwd=folder,
                )
                prints.append(fingerprint(folder / "out"))
            if prints[0] != prints[1]:
                raise Wrong(
                    f"{name}: {[f for f in prints[0] if prints[0][f] != prints[1].get(f)]} differ"
                )
    print(f"{len(models.MODELS)} models, twice each")


TOGETHER = """
#include <stdio.h>
#include "mlp.h"
#include "cnn.h"
#include "lstm.h"

static unsigned char arena[3][1 << 20];

#define CHECK(model, MODEL, i)                                                        \\
    do {                                                                              \\
        model##_ctx ctx;                                                              \\
        model##_config config = {.struct_size = sizeof config};                       \\
        config.arena = (void *)(((unsigned long)arena[i] + 63) / 64 * 64);            \\
        config.arena_bytes = sizeof arena[i] - 64;                                    \\
        if (model##_init(&ctx, &config) || model##_selftest(&ctx)) {                  \\
            puts("FAILED " #model);                                                   \\
            return 1;                                                                 \\
        }                                                                             \\
        model##_deinit(&ctx);                                                         \\
    } while (0)

int main(void)
{
    CHECK(mlp, MLP, 0);
    CHECK(cnn, CNN, 1);
    CHECK(lstm, LSTM, 2);
    puts("all");
    return 0;
}
"""


def together(ingot, work):
    source, program = work / "together.c", work / "together"
    source.write_text(TOGETHER)
    built = [("cc", "c", "incbin")] + [("tcc", "c:c99", "array")] * bool(shutil.which("tcc"))
    for cc, target, weights in built:
        bundles = [
            compile_model(ingot, work, name, "--target", target, "--weights", how)
            for name, how in zip(("mlp", "cnn", "lstm"), ("array", weights, "array"))
        ]
        archives = [b / f"lib{b.name}.a" for b in bundles]
        for bundle, archive in zip(bundles, archives):
            call("make", "-s", "-C", bundle, f"CC={cc}", "CFLAGS=-O1", archive.name)
        call(
            cc,
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
            program,
            source,
            *(f"-I{b}" for b in bundles),
            *archives,
            "-lm",
        )
        if call(program) != "all\n":
            raise Wrong(f"the program with three models of {target} under {cc} said something else")
        print(f"mlp, cnn (weights by {weights}) and lstm in one program, {target} under {cc}")


def runtime(ingot, work):
    worst = 0
    for name in models.MODELS:
        bundle = compile_model(ingot, work, name)
        make(bundle, "cc", "-O2")
        objects = sorted(bundle.glob("*.o")) + sorted(bundle.glob("host/*.o"))
        runtime = {
            p.stem
            for folder in ("", "lib")
            for p in (HERE.parents[1] / "runtime_min" / folder).glob("*.c")
        }
        ours = [o for o in objects if o.stem.removeprefix(name + "_") in runtime | {"igrt_pool"}]
        text = sum(int(line.split()[0]) for line in call("size", *ours).splitlines()[1:])
        worst = max(worst, text)
        if not ours or text >= RUNTIME_TEXT:
            raise Wrong(f"{name}: {text} bytes of runtime in {[o.name for o in ours]}")
        ours = [o for o in objects if o.parent == bundle or o.stem == "igrt_pool"]
        for line in call("nm", "-A", "-u", *ours).splitlines():  # FILE: U SYMBOL
            if line.split()[-1] in ALLOCATORS:
                raise Wrong(f"{name}: {line}")
    print(
        f"at most {worst} bytes of runtime with cc -O2, library kernels and thread pool included; nothing allocates"
    )


def lanes_of(bundle, name, needed):
    """The headers of lanes that lie in a bundle are those that its kernels include, and what these
    include; some are needed."""
    there = {p.name for p in bundle.glob("igrt_vec*.h")}
    reached, todo = set(), [*bundle.glob("*.c")]
    while todo:
        for header in re.findall(r'#include "(igrt_\w+\.h)"', todo.pop().read_text()):
            if header not in reached and (bundle / header).exists():
                reached.add(header)
                todo.append(bundle / header)
    if there - reached or not needed <= there:
        raise Wrong(f"{name}: nothing includes {there - reached}, {needed - there} is not there")
    return there


def strict(ingot, work):
    few = lanes_of(compile_model(ingot, work, "mlp"), "mlp", {"igrt_vec_f32.h"})
    if few & {"igrt_vec_i32.h", "igrt_vec_narrow.h", "igrt_vec_apart.h"}:
        raise Wrong(f"mlp, whose kernels compute on f32, has {few}")
    for i, name in enumerate(models.MODELS):
        bundle = compile_model(ingot, work, name, "--weights", ("array", "blob")[i % 2])
        lanes_of(bundle, name, {"igrt_vec_narrow.h"} if name == "f16" else set())
        for cc in compilers():
            make(bundle, cc, STRICT)
        plain = compile_model(ingot, work, name, "--target", "c:c99", out=work / "c99")
        if lanes_of(plain, name, set()):
            raise Wrong(f"{name}: c:c99 has vectors")
        for cc in compilers():
            make(plain, cc, STRICT)
            if "selftest: ok" not in call(plain / name, "--selftest"):
                raise Wrong(f"{name}: c:c99 under {cc} gives other values")
    print(f"{len(models.MODELS)} models under {' and '.join(compilers())}")


def sanitized(ingot, work):
    cc = compilers()[-1]
    for name in models.MODELS:
        bundle = compile_model(ingot, work, name, "--weights", "blob")
        program(bundle, cc, SANITIZE)
        if "selftest: ok" not in call(bundle / name, "--poison", "--selftest"):
            raise Wrong(f"{name}: no selftest")
    blob = work / "mlp" / "mlp.weights"
    data = bytearray(blob.read_bytes())
    data[3] ^= 0x40
    blob.write_bytes(data)
    call(work / "mlp" / "mlp", "--selftest", good=(3,))  # the checksum
    call(work / "mlp" / "mlp", "--no-checksum", "--selftest", good=(6,))  # the values
    print(f"{len(models.MODELS)} selftests under {cc} {SANITIZE}")


def shapes(ingot, work):
    call(sys.executable, HERE / "hard_shapes.py", work / "hard")
    for folder, flags in (("plain", ()), ("dim", ("--dim", "batch=1..8"))):
        cases = sorted(p.name for p in (work / "hard" / folder).iterdir())
        wanted = work / f"{folder}.txt"
        wanted.write_text("".join(f"{folder}/{c}\n" for c in cases))
        print(
            call(
                sys.executable,
                HERE.parent / "onnx" / "run.py",
                "--ingot",
                ingot,
                *flags,
                "--baseline",
                wanted,
                work / "hard" / folder,
            )
            .strip()
            .splitlines()[-1]
        )


def empty(ingot, work):
    call(sys.executable, HERE / "hard_shapes.py", work / "hard")
    n = 0
    for case in sorted((work / "hard" / "dim").iterdir()):
        bundle = work / "empty" / case.name
        call(
            ingot,
            "compile",
            case / "model.onnx",
            "-o",
            bundle,
            "--dim",
            "batch=1..8",
            "--name",
            "model",
        )
        program(bundle, compilers()[0], SANITIZE)
        for data in sorted(case.glob("test_data_set_*")):
            given, got = work / "in", work / "out"
            for folder in (given, got):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
            for f in data.glob("input_*.pb"):
                np.save(given / f"{f.stem}.npy", numpy_helper.to_array(onnx.load_tensor(f)))
            call(bundle / "model", "--poison", given, got)
            for f in data.glob("output_*.pb"):
                if not np.allclose(
                    np.load(got / f"{f.stem}.npy"),
                    numpy_helper.to_array(onnx.load_tensor(f)),
                    rtol=1e-4,
                    atol=1e-5,
                ):
                    raise Wrong(f"{case.name}, {data.name}: {f.stem}")
            n += 1
    print(f"{n} runs of bundles under {compilers()[0]} {SANITIZE}")


def inspect(ingot, work):
    kinds = set()
    model = work / "cnn.onnx"
    for name in ("cnn", "halos"):
        compile_model(ingot, work, name)
    call(sys.executable, HERE / "hard_shapes.py", work / "hard")
    for model in (model, work / "halos.onnx", *(work / "hard" / "plain").glob("*/model.onnx")):
        told = json.loads(call(ingot, "inspect", model, "--json"))
        if model.parent.name == "scales" and (
            [bool(s.get("scalars")) for s in told["steps"]]
            != [False, True, True, False, True, True]
            or any(told["steps"][i]["name"] != told["steps"][i + 1]["name"] for i in (1, 4))
        ):
            raise Wrong(f"{model}: layers that differ in scales are several kernels")
        for field in ("arena_bytes", "weights_bytes", "steps"):
            if field not in told:
                raise Wrong(f"{model}: no {field}")
        for step in told["steps"]:
            for field, kind in (
                ("kind", str),
                ("name", str),
                ("source", list),
                ("opts", list),
                ("flops", int),
                ("bytes", int),
            ):
                if not isinstance(step.get(field), kind):
                    raise Wrong(f"{model}: {field} of {step}")
            for source in step["source"]:
                if set(source) != {"node", "op"}:
                    raise Wrong(f"{model}: source {source}")
            kinds.add(step["kind"])
    if (
        not {"generated", "library", "if", "loop"}
        <= kinds
        <= {"generated", "library", "copy", "if", "loop"}
    ):
        raise Wrong(f"kinds {kinds}")
    told = json.loads(call(ingot, "inspect", work / "halos.onnx", "--json"))
    if any(s["kind"] == "generated" and not s["source"] for s in told["steps"]):
        raise Wrong("a halo has a step of its own")
    told = json.loads(call(ingot, "inspect", work / "cnn.onnx", "--json"))
    largest = max(
        s["flops"] for s in told["steps"]
    )  # the first convolution; its input may be copied before
    if told["weights_bytes"] < 4 * (8 * 27 + 8 * 9 + 40) or largest < 2 * 27 * 8 * 256:
        raise Wrong("sizes of cnn")
    print(f"steps of kinds {', '.join(sorted(kinds))}")


def cached(ingot, work):
    model = work / "cnn.onnx"
    compile_model(ingot, work, "cnn")
    np.save(work / "x.npy", np.ones((1, 3, 16, 16), np.float32))
    counting = work / "counting.sh"  # a compiler that tells how often it was called to compile
    counting.write_text(
        f'#!/bin/sh\ncase " $* " in *" -c "*) echo >>{work}/calls ;; esac\nexec cc "$@"\n'
    )
    counting.chmod(0o755)
    env, calls, told = {"INGOT_CACHE": str(work / "cache"), "CC": str(counting)}, [], []
    for _ in range(2):
        told.append(call(ingot, "run", model, "--input", work / "x.npy", env=env))
        calls.append((work / "calls").read_text().count("\n"))
    if told[0] != told[1] or not told[0].startswith("scores: f32[1,5] "):
        raise Wrong(f"{told}")
    if not calls[0] or calls[1] > calls[0]:
        raise Wrong(f"compiled {calls[0]} files, then {calls[1] - calls[0]}")
    env["CC"] = "false"  # another compiler: another entry, which cannot be built
    call(ingot, "run", model, "--input", work / "x.npy", env=env, good=(5,))
    (work / "cc").symlink_to(
        shutil.which("cc")
    )  # found from here, whatever folder it then works in
    (work / "tmp").mkdir()
    env.update(CC="./cc", TMPDIR=str(work / "tmp"))
    if call(ingot, "run", model, "--input", work / "x.npy", env=env, cwd=work) != told[0] or list(
        (work / "tmp").iterdir()
    ):
        raise Wrong(f"under ./cc and $TMPDIR: {list((work / 'tmp').iterdir())} left")
    call(
        ingot,
        "run",
        model,
        "--input",
        work / "x.npy",
        env={**env, "TMPDIR": str(work / "none")},
        cwd=work,
        good=(6,),
    )
    strict = work / "strict.sh"  # a compiler that refuses a flag of another one
    strict.write_text(
        '#!/bin/sh\nfor word; do [ "$word" != -fno-predictive-commoning ] || exit 1; done\nexec cc "$@"\n'
    )
    strict.chmod(0o755)
    if (
        call(ingot, "run", model, "--input", work / "x.npy", env={**env, "CC": str(strict)})
        != told[0]
    ):
        raise Wrong("under a compiler that knows no -fno-predictive-commoning")
    print(f"{calls[0]} files, then none")


def profiled(ingot, work):
    compile_model(ingot, work, "cnn")
    env = {"INGOT_CACHE": str(work / "cache")}
    flags = ("bench", work / "cnn.onnx", "--per-kernel", "--seconds", "0.1")
    told = json.loads(call(ingot, *flags, "--json", env=env))
    steps = json.loads(call(ingot, "inspect", work / "cnn.onnx", "--target", "c:native", "--json"))[
        "steps"
    ]
    kernels = told["kernels"]
    if sorted(k["step"] for k in kernels) != [s["step"] for s in steps] or told["median_ms"] <= 0:
        raise Wrong(f"{told}")
    if [k["ms"] for k in kernels] != sorted((k["ms"] for k in kernels), reverse=True):
        raise Wrong(f"not sorted: {kernels}")
    flops = {s["step"]: s["flops"] for s in steps}
    for k in kernels:
        if (
            abs(k["gflops"] * k["ms"] * 1e6 - flops[k["step"]])
            > 0.01 * flops[k["step"]] + 1e6 * 1e-3 * k["ms"] + 1e3
        ):
            raise Wrong(f"{k} of {flops[k['step']]} operations")
    table = call(ingot, *flags, env=env).splitlines()
    if (
        len(table) != len(steps) + 3
        or json.loads(table[-1])["kernels"][0].keys() != kernels[0].keys()
    ):
        raise Wrong("\n".join(table))
    # four products of bytes are one operation of a lane: the roof of dots is not that of
    # multiply-adds
    compile_model(ingot, work, "quantized")
    told = json.loads(
        call(
            ingot,
            "bench",
            work / "quantized.onnx",
            "--per-kernel",
            "--seconds",
            "0.01",
            "--json",
            "--target",
            "c",
            env=env,
        )
    )
    dots = {
        s["name"]
        for s in json.loads(
            call(ingot, "inspect", work / "quantized.onnx", "--target", "c", "--json")
        )["steps"]
        if any(o.startswith("DOT ") for o in s["opts"])
    }
    for k in told["kernels"]:
        if (k["roof"] == "dots") > (k["name"] in dots) or (
            k["roof"] == "operations" and k["name"] in dots
        ):
            raise Wrong(f"{k}: dots are in {dots}")
    print(
        f"{len(kernels)} steps; {told['peak_gflops']} GFLOP/s, {told['cache_gbps']} and {told['memory_gbps']} GB/s"
    )


def cancelling(ingot, work):
    """Sums of x and -x: no digit of theirs is the naive form's, and all are as near as f32 can have
    them; one that is not is named. They are stored at i1*2 + i0."""
    g = models.Graph(1)
    x = g.input("x", models.F, 2, 4, 2048)
    both = g.op("Concat", x, g.op("Neg", x), axis=2)
    rows = g.op("Transpose", g.op("ReduceSum", both, g.const([2]), keepdims=0), perm=[1, 0])
    g.output("y", g.op("Reshape", rows, g.const([8])), models.F, 8)
    model, env = work / "cancel.onnx", {"INGOT_CACHE": str(work / "cancel")}
    model.write_bytes(g.bytes())
    told = call(ingot, "verify", "-v", model, env=env)
    if (
        not re.search(r"; \d are sums that cancel, as near as f32 can have them", told)
        or "differ," in told
    ):
        raise Wrong(f"sums that cancel: {told}")
    for source in next((work / "cancel").glob("*/model")).parent.glob("model_kernels_*.c"):
        text = source.read_text()
        start = re.search(r"^void model_\w*reducesum\w*\([^)]*?float \*restrict (\w+)", text, re.M)
        if start:
            end = text.index("\n}\n", start.start())
            source.write_text(f"{text[:end]}\n    {start[1]}[1] += 0.1f;{text[end:]}")
            call("make", "-s", "-C", source.parent, "model")
    done = subprocess.run(
        [ingot, "verify", model], text=True, capture_output=True, env={**os.environ, **env}
    )
    if done.returncode != 7 or "1 of 8 numbers differ" not in done.stderr:
        raise Wrong(f"a sum beyond rounding: status {done.returncode}\n{done.stdout}{done.stderr}")


def logging_compiler(work, name):
    """A C compiler that writes its words to a file of that name. One for all: an object is kept by
    its compiler."""
    script = work / "cc.sh"
    if not script.exists():  # its date is part of the key
        script.write_text(f'#!/bin/sh\necho "$@" >>{work}/$CC_LOG.log\nexec cc "$@"\n')
        script.chmod(0o755)
    os.environ["CC_LOG"] = name
    return str(script)


def verified(ingot, work):
    """A kernel that is broken in the cache is named: step, kernel, file, source node, element and
    both values."""
    g = models.Graph(
        3
    )  # rows of scores in places: the naive kernel, in more parts than there is room for, wrote beyond them
    q, k = g.input("q", models.F, 2, 12, 8), g.input("k", models.F, 2, 8, 1100)
    q = g.op("MatMul", q, g.weight(2, 8, 8))
    x = g.op("MatMul", g.op("Softmax", g.op("MatMul", q, k)), g.weight(2, 1100, 8))
    g.output("y", g.op("Add", x, g.op("Tanh", q)), models.F, 2, 12, 8)
    (work / "rows.onnx").write_bytes(g.bytes())
    call(
        ingot,
        "verify",
        work / "rows.onnx",
        "--target",
        "c:native",
        env={"INGOT_CACHE": str(work / "rows")},
    )
    names = ("mlp", "lstm", "cnn")
    for name in names:
        (work / f"{name}.onnx").write_bytes(models.build(name))
        env = {
            "INGOT_CACHE": str(work / ("cnn" if name == "cnn" else "cache")),
            "CC": logging_compiler(work, name),
        }
        told = call(ingot, "verify", work / f"{name}.onnx", env=env)
        if "compared with their naive forms" not in told or "differ," in told:
            raise Wrong(f"{name}: {told}")
    drivers = [(work / f"{name}.log").read_text().count("host/driver.c") for name in names[:2]]
    if drivers[0] == 0 or drivers[1] != 0:
        raise Wrong(f"the driver is compiled once for all models of a cache: {drivers}")
    apart = work / "apart"  # a compiler that cannot have small sources as one gets each
    apart.write_text(
        f'#!/bin/sh\ncase "$*" in *whole.c*) exit 1 ;; esac\nexec {os.environ.get("CC", "cc")} "$@"\n'
    )
    apart.chmod(0o755)
    call(
        ingot,
        "verify",
        work / "mlp.onnx",
        env={"INGOT_CACHE": str(work / "one_by_one"), "CC": str(apart)},
    )
    steps = json.loads(call(ingot, "inspect", work / "cnn.onnx", "--target", "c:native", "--json"))[
        "steps"
    ]
    entry = next((work / "cnn").glob("*/model")).parent
    broken = 0
    for step in steps:
        if not step["opts"]:
            continue
        for source in sorted(entry.glob("model_kernels_*.c")):
            text = source.read_text()
            start = re.search(rf"^void model_{step['name']}\(float \*restrict (\w+)", text, re.M)
            if start:
                break
        end = text.index("\n}\n", start.start())
        source.write_text(f"{text[:end]}\n    {start[1]}[1] += 3.0f;{text[end:]}")
        call("make", "-s", "-C", entry, "model")
        done = subprocess.run(
            [ingot, "verify", work / "cnn.onnx"],
            text=True,
            capture_output=True,
            env={**os.environ, **env},
        )
        wanted = f"cnn.onnx: step {step['step']}, {step['name']}, {source.name}, '{step['source'][0]['node']}'"
        lines = [line for line in done.stderr.splitlines() if ": step " in line]
        if (
            done.returncode != 7
            or len(lines) != 1
            or wanted not in lines[0]
            or "its naive form gives" not in lines[0]
        ):
            raise Wrong(f"{wanted}: status {done.returncode}\n{done.stdout}{done.stderr}")
        source.write_text(text)
        broken += 1
    if not broken:
        raise Wrong("no kernel of cnn has opts")
    cancelling(ingot, work)
    print(f"{len(names)} models; {broken} broken kernels named")


def in_place():
    """The last sum, of many terms, is added to what it takes the place of: the items of a group
    read that, wait for each other, and one of them writes."""
    g = models.Graph(5)
    h = g.op("Tanh", g.op("MatMul", g.input("x", models.F, 12, 64), g.weight(64, 64)))
    y = g.op("MatMul", g.op("Tanh", g.op("MatMul", h, g.weight(64, 128))), g.weight(128, 64))
    g.output("out", g.op("MatMul", g.op("Add", y, h), g.weight(64, 8)), models.F, 12, 8)
    return g.bytes()


def sized(op, shape, *axes):
    """One operator over axes of an input with the free dim n."""
    g = models.Graph(1)
    g.opset = 18
    g.input("x", models.F, *shape)
    g.output(
        "y",
        g.op(op, "x", g.const(axes, np.int64), keepdims=0),
        models.F,
        *[None] * (len(shape) - len(axes)),
    )
    return g.bytes()


def interpreted_sizes(ingot, work, env):
    """None of an axis: a GPU has no work items then. Products below the smallest normal number:
    zero in every order."""
    product, largest = work / "product.onnx", work / "largest.onnx"
    product.write_bytes(sized("ReduceProd", (8, 2, "n"), 0, 2))
    largest.write_bytes(sized("ReduceMax", (4, 3, "n"), 0))
    np.save(
        work / "small.npy", models.Graph(4).rng.uniform(0.64, 0.70, (8, 2, 32)).astype(np.float32)
    )
    np.save(work / "none.npy", np.zeros((4, 3, 0), np.float32))
    cancel = work / "cancel.onnx"  # as far apart as terms of their size allow
    cancel.write_bytes(sized("ReduceSum", (8, "n"), 1))
    terms = models.Graph(6).rng.standard_normal((8, 600)).astype(np.float32)
    np.save(work / "cancel.npy", np.concatenate((terms, -terms), 1))
    for model, data, bounds, targets in (
        (product, "small.npy", "n=1..32", ("c", "c:cortex-a53", "c:x86-64-v4")),
        (largest, "none.npy", "n=0..8", ("c", "opencl", "cuda:sm_80")),
        (cancel, "cancel.npy", "n=1..2000", ("c:x86-64-v4", "cuda:sm_80")),
    ):
        for target in targets:
            told = call(
                ingot,
                "verify",
                model,
                "--interpret",
                "--target",
                target,
                "--dim",
                bounds,
                "--input",
                work / data,
                env=env,
            )
            if "no fault" not in told or "differ," in told:
                raise Wrong(f"{model.name} for {target}: {told}")


def interpreted(ingot, work):
    """What cannot run here is judged all the same, by the interpreter of statements: no compiler,
    no device."""
    steps = 0
    env = {"INGOT_CACHE": str(work / "cache"), "CC": "false"}
    for name in (*models.MODELS, "in_place"):
        (work / f"{name}.onnx").write_bytes(
            in_place() if name == "in_place" else models.build(name)
        )
        for target in ("c:cortex-m4", "c:armv8-a", "c:x86-64-v4", "opencl", "cuda"):
            told = call(
                ingot, "verify", work / f"{name}.onnx", "--interpret", "--target", target, env=env
            )
            found = re.search(rf"interpreted for {target}: (\d+) steps, .* no fault", told)
            if (
                not found
                or "compared with their naive forms" not in told
                or "differ," in told
                or "compared with the interpreter's" not in told
            ):
                raise Wrong(f"{name} for {target}: {told}")
            steps += int(found[1])
    interpreted_sizes(ingot, work, env)
    (work / "cleared.onnx").write_bytes(models.cleared())
    told = call(
        ingot, "verify", work / "cleared.onnx", "--interpret", "--target", "c:x86-64-v3", env=env
    )
    if "no fault" not in told:
        raise Wrong(told)
    told = call(ingot, "verify", work / "mlp.onnx", "--target", "c:cortex-m4", env=env)
    if "its kernels are interpreted" not in told:
        raise Wrong(told)
    print(f"{steps} steps interpreted")


CHECKS = {
    f.__name__: f
    for f in (
        identical,
        together,
        runtime,
        strict,
        sanitized,
        shapes,
        empty,
        inspect,
        cached,
        profiled,
        verified,
        interpreted,
    )
}


def main(doc, checks):
    """The command line of a file of checks, by name."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ingot", default="build/ingot", type=pathlib.Path)
    parser.add_argument("checks", nargs="*", choices=[*checks, []])
    options = parser.parse_args()
    failed = False
    for name in options.checks or checks:
        with tempfile.TemporaryDirectory(prefix="ingot-bundle-") as work:
            try:
                print(f"{name}: ", end="", flush=True)
                checks[name](options.ingot.resolve(), pathlib.Path(work))
            except Wrong as e:
                print(f"FAILED: {e}")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(__doc__, CHECKS))
