#!/usr/bin/env python3
"""Bundles as WebAssembly: built by their own Makefile with clang and wasi-libc, run by Node.

    wasm.py --ingot build/ingot

    same        models for wasm32 and wasm32-simd128 give what the native bundle gives; vectors are
                v128 in the one only
    weights     blob, array and incbin give the same bytes, from any folder, with relative and
                absolute paths
    freestanding  a model without its driver links to a module that imports nothing
    dots        in lanes give what igrt_dot.h gives; relaxed ones where clang and Node have them,
                and an older clang says that it has not
    told        what cannot work is said: `ingot run` of a wasm target, a missing module, a missing
                input

Exit status 77, skipped: there is no Python with onnx, or no clang for wasm with wasi-libc, or no
Node.
"""

import os
import pathlib
import shutil
import subprocess
import sys

try:
    import numpy as np
    import onnx
    import models
    from run import Wrong, call, compile_model, compilers, main, objects, program
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = ("wasm32", "wasm32-simd128")
FLAGS = "-O1 -Wall -Wextra -Werror"
EMPTY = "int main(void) { return 0; }"


def missing():
    for tool in ("node", "clang", "llvm-ar", "llvm-nm", "wasm-ld"):
        if not shutil.which(tool):
            return tool
    done = subprocess.run(
        ["clang", "--target=wasm32-wasi", "-x", "c", "-", "-o", "/dev/null"],
        input=EMPTY,
        text=True,
        capture_output=True,
    )
    return "wasi-libc" if done.returncode else None


def make(bundle):
    objects.make(bundle, "clang", FLAGS, lambda words: call(*words))


def save_inputs(folder, name):
    folder.mkdir()
    rng = np.random.default_rng(1)
    for i, v in enumerate(onnx.load_from_string(models.build(name)).graph.input):
        shape = [d.dim_value for d in v.type.tensor_type.shape.dim]
        np.save(folder / f"input_{i}.npy", rng.standard_normal(shape).astype(np.float32))


def results(folder):
    return [np.load(p) for p in sorted(folder.glob("output_*.npy"))]


def vectors(bundle):
    """Whether any kernel loads 16 bytes at once."""
    text = call("llvm-objdump", "-d", *sorted(bundle.glob("*_kernels_*.o")))
    return "v128.load" in text


def same(ingot, work):
    worst = 0.0
    for name in ("cnn", "lstm"):
        save_inputs(work / f"in-{name}", name)
        native = compile_model(ingot, work, name)
        program(native, compilers()[0], "-O0")
        call(native / name, work / f"in-{name}", work / "out")
        want = results(work / "out")
        for target in TARGETS:
            bundle = compile_model(
                ingot, work, name, "--target", f"c:{target}", out=work / f"{name}-{target}"
            )
            make(bundle)
            if name == "cnn" and vectors(bundle) != (target == "wasm32-simd128"):
                raise Wrong(f"{name}, {target}: vectors: {vectors(bundle)}")
            call("node", bundle / "run.mjs", "--selftest")
            call("node", bundle / "run.mjs", work / f"in-{name}", work / f"out-{target}")
            got = results(work / f"out-{target}")
            if not got or [x.shape for x in got] != [x.shape for x in want]:
                raise Wrong(f"{name}, {target}: {[x.shape for x in got]}")
            error = max(float(np.abs(x - y).max() / np.abs(y).max()) for x, y in zip(got, want))
            worst = max(worst, error)
            if not error < 1e-5:
                raise Wrong(f"{name}, {target}: differs by {error:g}")
            shutil.rmtree(work / f"out-{target}")
        shutil.rmtree(work / "out")
    print(f"2 models, {len(TARGETS)} targets, largest difference {worst:.1g}")


def weights(ingot, work):
    save_inputs(work / "in", "mlp")
    seen = set()
    for mode in ("array", "blob", "incbin"):
        bundle = compile_model(
            ingot, work, "mlp", "--target", "c:wasm32", "--weights", mode, out=work / mode
        )
        make(bundle)
        here = bundle / "deep"
        here.mkdir()
        for out, command in {
            work / "a": ["../run.mjs", "../../in", "../../a"],
            here / "b": ["../run.mjs", work / "in", "b"],
            work / "c": [bundle / "run.mjs", work / "in", work / "c"],
        }.items():
            call("node", *command, cwd=here)
            seen.add((out / "output_0.npy").read_bytes())
            shutil.rmtree(out)
    if len(seen) != 1:
        raise Wrong(f"{len(seen)} different results")
    print("3 modes, 3 ways to name files")


def freestanding(ingot, work):
    bundle = compile_model(ingot, work, "mlp", "--target", "c:wasm32-simd128", "--weights", "array")
    call("make", "-s", "-C", bundle, "libmlp.a")
    module = work / "mlp.wasm"
    call(
        "clang",
        "--target=wasm32-wasi",
        "-nostartfiles",
        "-Wl,--no-entry",
        "-Wl,--export=mlp_run",
        "-Wl,--export=mlp_init",
        "-o",
        module,
        bundle / "libmlp.a",
        "-lm",
    )
    said = call(
        "node",
        "-e",
        "const m = new WebAssembly.Module(require('fs').readFileSync(process.argv[1]));"
        "console.log(WebAssembly.Module.imports(m).length, WebAssembly.Module.exports(m).map(e => e.name).sort().join())",
        module,
    ).strip()
    if said != "0 memory,mlp_init,mlp_run":
        raise Wrong(f"imports, exports: {said}")
    print(f"{module.stat().st_size} bytes")


RUN = "WebAssembly.instantiate(require('fs').readFileSync(process.argv[1])).then((m) => console.log(m.instance.exports.wrong()))"
VALID = "console.log(WebAssembly.validate(require('fs').readFileSync(process.argv[1])))"


def knows_relaxed(module):
    """Not as an experiment: V8 11.3 computes dots of it otherwise than its successors."""
    return call("node", "-e", VALID, module).strip() == "true"


def dots(ingot, work):
    (work / "in").mkdir()
    runtime = HERE.parents[1] / "runtime_min"

    def built(clang, *flags):
        command = [clang, "--target=wasm32-wasi", "-msimd128", "-O2", "-Wall", "-Werror", *flags]
        command += ["-nostdlib", "-Wl,--no-entry", f"-I{runtime}", "-o", work / "dots.wasm"]
        command.append(HERE / "wasm_dots.c")
        return subprocess.run([str(c) for c in command], capture_output=True, text=True)

    done = built("clang")
    if done.returncode or call("node", "-e", RUN, work / "dots.wasm").strip() != "0":
        raise Wrong(f"line {call('node', '-e', RUN, work / 'dots.wasm')}: {done.stderr}")
    ran = "not relaxed"
    for clang in filter(None, map(shutil.which, ["clang", *(f"clang-{n}" for n in range(16, 24))])):
        done = built(clang, "-mrelaxed-simd")
        if done.returncode and ("wasm-ld" in done.stderr or "wasm-component-ld" in done.stderr):
            continue  # its linker is a package of its own
        if done.returncode and "clang 16 and newer" not in done.stderr:
            raise Wrong(done.stderr)
        if done.returncode or not knows_relaxed(work / "dots.wasm"):
            continue
        if call("node", "-e", RUN, work / "dots.wasm").strip() != "0":
            raise Wrong(f"relaxed, {clang}")
        ran = f"and relaxed, by {clang}"
    print(f"14 dots, {ran}")


def told(ingot, work):
    bundle = compile_model(ingot, work, "mlp", "--target", "c:wasm32")

    def said(status, words, *command):
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode != status or words not in done.stderr or done.stderr.count("\n") != 1:
            raise Wrong(
                f"{' '.join(map(str, command))}: status {done.returncode}, not {status}, '{words}': {done.stderr}"
            )

    said(1, "make builds it", "node", bundle / "run.mjs", "--selftest")
    call("make", "-s", "-C", bundle)
    said(2, "No such file or directory", "node", bundle / "run.mjs", work, work / "out")
    save_inputs(work / "in", "mlp")
    said(
        2,
        "`node run.mjs` runs it",
        ingot,
        "run",
        work / "mlp.onnx",
        "--target",
        "c:wasm32",
        "--input",
        work / "in/input_0.npy",
        "--no-cache",
    )
    print("3 mistakes")


os.environ.pop("CC", None)  # the Makefile knows its compiler
why = missing()
if why:
    print(f"skipped: there is no {why}")
    sys.exit(77)
sys.exit(
    main(
        __doc__,
        {
            "same": same,
            "weights": weights,
            "freestanding": freestanding,
            "dots": dots,
            "told": told,
        },
    )
)
