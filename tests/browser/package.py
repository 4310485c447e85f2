#!/usr/bin/env python3
"""--package web: models of the tree, and of other folders, in a page of a headless Chromium, by
WebGPU (SwiftShader) and by WebAssembly, there by one thread and by three, which give the same bytes.

    package.py --ingot build/ingot [--keep DIR] [MODEL DATA ..]

MODEL DATA: further ones, an .onnx file and a folder of input_N.pb, output_N.pb.  Exit status 77,
skipped: there is no Chromium.
"""

import argparse
import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import chromium
from misuse import misuse

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

chromium.FLAGS = chromium.WEBGPU
ARRAY = {"f4": "Float32Array", "i1": "Int8Array", "u1": "Uint8Array", "b1": "Uint8Array"}
ARRAY |= {"i4": "Int32Array", "i8": "BigInt64Array", "f2": "Uint16Array"}
RUN = """(async () => {
    const {load, model} = await import('%s');
    const told = [], m = await load(undefined, {progress: (p) => told.push(p), by: '%s', threads: %d});
    const inputs = {};
    for (const [i, [name]] of model.inputs.entries()) {
        const [array, text] = (%s)[i];
        inputs[name] = new globalThis[array](Uint8Array.from(atob(text), (c) => c.charCodeAt()).buffer);
    }
    let outs = await m.run(inputs);
    const since = performance.now();
    outs = await m.run(inputs);
    const ms = performance.now() - since;
    const wrong = await m.run({}).then(() => 'none', (e) => e.message);
    m.destroy();
    return JSON.stringify({by: m.by, threads: m.threads, told: told.length, ms, wrong, outs: Object.values(outs).map((o) =>
        btoa(Array.from(new Uint8Array(o.buffer, o.byteOffset, o.byteLength), (c) => String.fromCharCode(c)).join('')))});
})()"""


def tensor(path):
    t = onnx.TensorProto()
    t.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(t)


def numbered(data, what):
    return [
        tensor(p)
        for p in sorted(data.glob(f"{what}_*.pb"), key=lambda p: int(p.stem[len(what) + 1 :]))
    ]


def call(*args, status=0):
    done = subprocess.run([str(a) for a in args], stdout=-1, stderr=-2, text=True)
    assert done.returncode == status, f"{args}: status {done.returncode}\n{done.stdout}"
    return done.stdout


def in_page(page, folder, by, inputs, outputs, threads=1):
    given = [(ARRAY[x.dtype.str[1:]], base64.b64encode(x.tobytes()).decode()) for x in inputs]
    got = json.loads(page.value(RUN % (f"/{folder}/model.mjs", by, threads, json.dumps(given))))
    assert got["by"] == by, got
    assert "is missing" in got["wrong"] or not inputs, got["wrong"]
    worst = 0.0
    for text, want in zip(got["outs"], outputs):
        have = np.frombuffer(base64.b64decode(text), want.dtype).reshape(want.shape)
        scale = max(1e-30, float(np.abs(want.astype("f8")).max()))
        worst = max(worst, float(np.abs(have.astype("f8") - want.astype("f8")).max()) / scale)
    assert len(got["outs"]) == len(outputs)
    return worst, got


def own(folder):
    """A convolution, a product in rows, a recurrence and a product of bytes, of the reference
    implementation."""
    folder.mkdir(exist_ok=True)
    from onnx import TensorProto as T
    from onnx import helper

    r = np.random.default_rng(1)
    w = {
        "c": r.standard_normal((8, 3, 3, 3), "f4"),
        "w": r.standard_normal((1, 20, 8), "f4"),
        "r": r.standard_normal((1, 20, 5), "f4"),
        "v": r.integers(-128, 128, (96, 40)).astype("i1"),
    }
    nodes = [
        ("Conv", ["x", "c"], ["a"], {"pads": [1, 1, 1, 1]}),
        ("Relu", ["a"], ["b"], {}),
        ("ReduceMean", ["b"], ["m"], {"axes": [3], "keepdims": 0}),
        ("Transpose", ["m"], ["t"], {"perm": [2, 0, 1]}),
        ("LSTM", ["t", "w", "r"], ["y"], {"hidden_size": 5}),
        ("Softmax", ["y"], ["z"], {"axis": 3}),
        ("ArgMax", ["m"], ["k"], {"axis": 1}),
        ("MatMulInteger", ["q", "v"], ["d"], {}),
    ]
    graph = helper.make_graph(
        [helper.make_node(op, i, o, **a) for op, i, o, a in nodes],
        "page",
        [
            helper.make_tensor_value_info("x", T.FLOAT, (1, 3, 7, 9)),
            helper.make_tensor_value_info("q", T.UINT8, (64, 96)),
        ],
        [
            helper.make_tensor_value_info("z", T.FLOAT, (7, 1, 1, 5)),
            helper.make_tensor_value_info("k", T.INT64, (1, 1, 7)),
            helper.make_tensor_value_info("d", T.INT32, (64, 40)),
        ],
        [numpy_helper.from_array(a, n) for n, a in w.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    x = r.standard_normal((1, 3, 7, 9), "f4")
    from onnx.reference import ReferenceEvaluator

    q = r.integers(0, 256, (64, 96)).astype("u1")
    outs = ReferenceEvaluator(model).run(None, {"x": x, "q": q})
    return folder / "model.onnx", [x, q], outs


def alone(browser, site, inputs, outputs, name):
    """From a server that sends no headers: one thread, whatever is asked for."""
    with chromium.serve(site) as address:
        page = browser.page(address + "index.html")
        page.wait("document.readyState == 'complete'")
        error, got = in_page(page, name, "wasm", inputs, outputs, threads=3)
        assert got["threads"] == 1 and error < 1e-3, (got["threads"], error)
        assert not page.errors, page.errors


def relaxed(page, site):
    """Relaxed dots, where there is a clang that has them, and its linker."""
    of = [n for n in range(16, 24) if shutil.which(f"clang-{n}") and shutil.which(f"wasm-ld-{n}")]
    if not of:
        return
    clang = f"clang-{of[0]}"
    tests = pathlib.Path(__file__).resolve().parents[1]
    flags = ["--target=wasm32-wasi", "-msimd128", "-mrelaxed-simd", "-O2", "-nostdlib"]
    flags += ["-Wl,--no-entry", f"-I{tests.parent / 'runtime_min'}"]
    call(clang, *flags, "-o", site / "dots.wasm", tests / "bundle/wasm_dots.c")
    said = page.value(
        "WebAssembly.instantiateStreaming(fetch('/dots.wasm')).then(({instance: {exports: {wrong}}}) =>"
        " Array.from({length: 100}, wrong).join(''))"  # compiled twice meanwhile
    )
    assert said == 100 * "0", said
    print("relaxed dots: those of igrt_dot.h")


def few_items(browser, opt, address, site, model):
    """An adapter whose groups are too small for the package."""
    words = ("-o", site / "items", "--target", "wgsl:items1024", "--package", "web")
    call(opt.ingot, "compile", model, *words)
    page = browser.page(address + "index.html")
    page.wait("document.readyState == 'complete'")
    said = page.value(
        """(async () => {
        const limits = {maxComputeInvocationsPerWorkgroup: 256, maxComputeWorkgroupSizeX: 256};
        Object.defineProperty(GPUAdapter.prototype, 'limits', {get: () => limits});
        const {load} = await import('/items/model.mjs');
        return load().then(() => 'none', (e) => e.message);
    })()"""
    )
    assert "groups of 1024 items" in said, said


def refused(ingot, work):
    """What is no page, and models that no page has room for."""
    from onnx import TensorProto as T
    from onnx import helper

    digits = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
    train = ["--train", "--loss", "mse:probabilities", "--optimizer", "sgd:rate=0.1"]
    large = work / "large.onnx"
    graph = helper.make_graph(
        [
            helper.make_node("Expand", ["x", "n"], ["a"]),
            helper.make_node("CumSum", ["a", "axis"], ["b"]),
            helper.make_node("ReduceSum", ["b"], ["y"]),
        ],
        "large",
        [helper.make_tensor_value_info("x", T.FLOAT, (1,))],
        [helper.make_tensor_value_info("y", T.FLOAT, (1,))],
        [helper.make_tensor("n", T.INT64, [1], [1 << 30]), helper.make_tensor("axis", T.INT64, [], [0])],
    )  # fmt: skip
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), large
    )
    for model, target, more, status, want in (
        (digits, "opencl", [], 2, "is for --target wgsl, c:wasm32-simd128"),
        (digits, "opencl+c:wasm32", [], 2, "is for --target wgsl, c:wasm32-simd128"),
        (digits, "wgsl+c:native", [], 2, "is for --target wgsl, c:wasm32-simd128"),
        (digits, "c:wasm32-simd128", train, 4, "calls one function, and this model has 2"),
        (large, "c:wasm32", [], 4, "needs 4102 MB, and WebAssembly has 4096"),
    ):
        words = ["--target", target, "--package", "web", "-o", work / "refused", *more]
        said = call(ingot, "compile", model, *words, status=status)
        assert want in said, said
    print("refused: other targets, a training step, 4102 MB")


TOP = """(async () => {
    const {load} = await import('/top/model.mjs'), m = await load(), x = Float32Array.from({length: 50}, (_, i) => i * 7 % 50);
    const why = await load(undefined, {by: 'webgpu'}).catch((e) => e.message), {y} = await m.run({x});
    return [m.by, m.why === why, why, ...y].join();
})()"""


def host_steps(page, ingot, site, work):
    """A model with a step for the host: for WebGPU alone it is refused, in a package for both it runs
    by WebAssembly."""
    from onnx import TensorProto as T
    from onnx import helper

    def value(name, *shape):
        return helper.make_tensor_value_info(name, T.FLOAT, shape)

    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("TopK", ["a", "k"], ["y", ""])]
    k = helper.make_tensor("k", T.INT64, [1], [3])
    graph = helper.make_graph(nodes, "top", [value("x", 50)], [value("y", 3)], [k])
    path, said = work / "top.onnx", "step 1 topk is a library's, which runs on the host"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    words = (ingot, "compile", path, "--package", "web", "-o", site / "top", "--target")
    told = call(*words, "wgsl", status=4)
    assert said in told, told
    told = call(*words, "wgsl+c:wasm32-simd128")
    assert f"{said}: pages run this model by WebAssembly alone" in told, told
    call("make", "-C", site / "top", "web", "CC=clang")
    got = page.value(TOP)
    assert got == f"wasm,true,{said},49,48,47", got
    print("a step for the host: by WebAssembly")


# What a page in TypeScript does with a package; the types of a .mjs are in a .d.mts
TYPED = """import {load, model, arrayOf, type Model, type Inputs, type Outputs} from './model.mjs';
const options = {progress: (p: {of: number}) => console.log(p.of), by: 'webgpu' as const, threads: 2};
const m: Model = await load(new URL('https://a.b/'), options);
const given: Inputs = {x: new Float32Array(189), q: new Uint8ClampedArray(6144)};
const {z, k}: Outputs = await m.run(given);
const sum: number = z[0] + Number(k[0]) + model.inputs[0][2][0] + new (arrayOf('f32'))(3).byteLength;
await m.reset();
m.destroy();
export default sum;
"""


def types(folder):
    found = (folder / "model.d.mts").read_text()
    assert "export * from './model.js';" in found and (folder / "model.d.ts").exists(), found
    if not shutil.which("tsc"):
        return
    (folder / "typed.mts").write_text(TYPED)
    strict = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom"]
    call("tsc", *strict, "--module", "node16", folder / "typed.mts")
    (folder / "typed.mts").unlink()
    print("types: tsc takes them")


def cases(opt, work):
    yield ("own", *own(work / "model"))
    for model, data in zip(opt.more[::2], opt.more[1::2]):
        yield model.parent.name, model, numbered(data, "input"), numbered(data, "output")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--keep", type=pathlib.Path)
    p.add_argument("more", nargs="*", type=pathlib.Path)
    opt = p.parse_args()
    work = opt.keep or pathlib.Path(tempfile.mkdtemp())
    work.mkdir(exist_ok=True)
    has_clang = shutil.which("clang") and pathlib.Path("/usr/include/wasm32-wasi").exists()
    site = work / "site"
    site.mkdir(exist_ok=True)
    refused(opt.ingot, work)
    (site / "index.html").write_text("<title>-</title><link rel=icon href='data:,'>")
    try:
        browser = chromium.Chromium()
    except chromium.Missing as e:
        print(f"skipped: {e}")
        return 77
    with browser, chromium.serve(site, chromium.Isolated) as address:
        page = browser.page(address + "index.html")
        page.wait("document.readyState == 'complete'")
        for name, model, inputs, outputs in cases(opt, work):
            target = "wgsl:dot4+c:wasm32-simd128" if has_clang else "wgsl:dot4"
            call(
                opt.ingot,
                "compile",
                model,
                "-o",
                site / name,
                "--target",
                target,
                "--package",
                "web",
            )
            if has_clang:
                call("make", "-C", site / name, "web", "CC=clang")
            for by in ("webgpu", "wasm") if has_clang else ("webgpu",):
                error, got = in_page(page, name, by, inputs, outputs)
                print(f"{name}: {by}: {error:.1e} of the range, {got['ms']:.1f} ms")
                assert error < 1e-3, error
            if has_clang:
                _, more = in_page(page, name, "wasm", inputs, outputs, threads=3)
                assert (got["threads"], more["threads"]) == (1, 3), (
                    got["threads"],
                    more["threads"],
                )
                assert more["outs"] == got["outs"], "threads give other bytes"
                print(f"{name}: wasm: 3 threads, the same bytes")
        types(site / "own")
        relaxed(page, site)
        few_items(browser, opt, address, site, model)
        if has_clang:
            misuse(page, site)
            host_steps(page, opt.ingot, site, work)
            alone(browser, site, inputs, outputs, name)
        # the page that comes with it
        shown = browser.page(address + "own/index.html")
        shown.wait("document.querySelector('#run')?.disabled === false")
        shown.click("#run")
        shown.wait("document.querySelector('#out').textContent")
        assert "z:" in shown.value("document.querySelector('#out').textContent")
        assert not page.errors and not shown.errors, (page.errors, shown.errors)
    return 0


if __name__ == "__main__":
    sys.exit(main())
