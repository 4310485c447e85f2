#!/usr/bin/env python3
"""Cases of the ONNX suite and small networks in one page of a headless Chromium, by WebGPU
(SwiftShader), each as `--package web` writes it.

    cases.py --ingot build/ingot [--sample 60] [--models DIR] FOLDER..

FOLDER: cases as tests/onnx/cases.py writes them. Cases are drawn until so many ran that the target
takes; what it refuses does not count. Of the networks those run that are there: digits of the tree,
the suite's squeezenet with drawn weights, and some of MODELS. Values are judged as tests/onnx/run.py
judges them, networks by 1e-3 of the range of an output. Exit status 77, skipped: there is no
Chromium.
"""

import argparse
import base64
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import chromium

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "onnx"))
try:
    import numpy as np
    import onnx
    import values
    from run import Case, Stop, compared
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

chromium.FLAGS = chromium.WEBGPU
NETWORKS = ("tiny_ic_fp32", "tiny_kws_int8", "dtln_1")  # of --models
# One at a time: what a page holds of a model goes with it
RUN = """(async () => {
    const {load, model, arrayOf} = await import('%s');
    const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt()).buffer;
    const text = (x) => {
        const all = new Uint8Array(x.buffer, x.byteOffset, x.byteLength), parts = [];
        for (let i = 0; i < all.length; i += 1 << 15)
            parts.push(String.fromCharCode(...all.subarray(i, i + (1 << 15))));
        return btoa(parts.join(''));
    };
    const m = await load(), outs = [];
    for (const set of %s) {
        await m.reset();
        const inputs = Object.fromEntries(model.inputs.map(([name, type], i) => [name, new (arrayOf(type))(bytes(set[i]))]));
        outs.push(Object.values(await m.run(inputs)).map(text));
    }
    m.destroy();
    return JSON.stringify(outs);
})()"""


def with_weights(model):
    """A network of the suite's light/, whose weights are constants of a shape: drawn ones."""
    from onnx import numpy_helper

    drawn, g, made = np.random.default_rng(1), model.graph, []
    shapes = {t.name: numpy_helper.to_array(t) for t in g.initializer}
    for node in [n for n in g.node if n.op_type == "ConstantOfShape"]:
        shape = [int(n) for n in shapes[node.input[0]]]
        scale = np.sqrt(2 / max(1, np.prod(shape[1:]))) if len(shape) > 1 else 0.1
        values_of = (drawn.standard_normal(shape) * scale).astype("f4")
        made.append(numpy_helper.from_array(values_of, node.output[0]))
        g.node.remove(node)
    used = {name for node in g.node for name in node.input}
    for listed in (g.initializer, g.input):
        kept = [x for x in listed if x.name in used]
        del listed[:]
        listed.extend(kept)
    g.initializer.extend(made)
    return model


def own(name, model, folder):
    """A network as a case: inputs are drawn, ONNX Runtime answers, or the reference."""
    from onnx import numpy_helper

    weights = {t.name for t in model.graph.initializer}
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, data.parent / "model.onnx")
    drawn = np.random.default_rng(1)
    feeds = {
        i.name: drawn.random([d.dim_value for d in i.type.tensor_type.shape.dim], "f4")
        for i in model.graph.input
        if i.name not in weights
    }
    try:
        import onnxruntime

        answers = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        ).run(None, feeds)
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        answers = ReferenceEvaluator(model).run(None, feeds)
    for what, arrays in (("input", feeds.values()), ("output", answers)):
        for i, x in enumerate(arrays):
            (data / f"{what}_{i}.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
    return Case(data.parent)


def networks(opt, work):
    """Those that are here."""
    digits = TESTS.parent / "examples/digits/digits.onnx"
    found = [own("digits", onnx.load(digits), work)]
    for f in opt.folders:
        light = f / "light/test_squeezenet/model.onnx"
        if light.exists():
            found.append(own("squeezenet", with_weights(onnx.load(light)), work))
    folders = [opt.models / name for name in NETWORKS] if opt.models else []
    found += [Case(f) for f in folders if (f / "model.onnx").exists()]
    missing = set(NETWORKS) - {c.folder.name for c in found}
    if missing:
        print(f"not here: {', '.join(sorted(missing))}")
    return found


def package(opt, case, out):
    """Whether there is one: the target may refuse the model, or a page its inputs."""
    words = [opt.ingot, "compile", case.model, "-q", "--no-check", "--target", "wgsl"]
    done = subprocess.run(
        [*words, "--package", "web", "-o", out], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 4), f"{case.name}: {done.returncode}: {done.stderr}"
    return done.returncode == 0


def data_of(x):
    """The bytes of an array as a page has them: i2 and i4 are a byte each, with their sign."""
    return (x.astype("i1") if x.dtype.name in ("int2", "int4") else x).tobytes()


def in_page(page, case, opt):
    """The largest error of all data sets."""
    sets, given = case.sets(), []
    for data in sets:
        loaded = [(n, values.load_pb(f, kind)) for n, f, kind in sorted(case.inputs(data))]
        given.append([base64.b64encode(data_of(x)).decode() for _, x in loaded])
    where = f"/{case.folder.name}/model.mjs"
    got = json.loads(page.value(RUN % (where, json.dumps(given))))
    worst = 0.0
    for data, outs in zip(sets, got):

        def get(n, want, outs=outs):
            return np.frombuffer(base64.b64decode(outs[n]), want.dtype).reshape(want.shape)

        worst = max(worst, compared(case, data, opt, get))
    return worst


def drawn(opt):
    """All small cases, in an order that is the same each time; those that draw numbers apart."""
    folders = [f for f in opt.folders for f in sorted(f.glob("*/*/model.onnx"))]
    cases = [Case(f.parent) for f in folders if f.parent.parent.name != "light"]
    random.Random(1).shuffle(cases)
    return (c for c in cases if c.tensors() and not c.by_statistics())


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--sample", type=int, default=60)
    p.add_argument("--models", type=pathlib.Path)
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("folders", nargs="+", type=pathlib.Path)
    opt = p.parse_args()
    opt.rtol, opt.atol, opt.tolerance_range = 1e-3, 1e-7, None
    ran, wrong, began = 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        site = pathlib.Path(name) / "site"
        site.mkdir()
        (site / "index.html").write_text("<title>-</title><link rel=icon href='data:,'>")
        try:
            browser = chromium.Chromium()
        except chromium.Missing as e:
            print(f"skipped: {e}")
            return 77
        with browser, chromium.serve(site) as address:
            page = browser.page(address + "index.html")
            page.wait("document.readyState == 'complete'")

            def judge(case):
                since = time.monotonic()
                try:
                    said = f"{in_page(page, case, opt):.1e}"
                except (Stop, chromium.Failed) as e:
                    said = re.sub(r"\s+", " ", str(e))[:400]
                    print(f"{case.name}: {said}")
                    return 1
                if opt.verbose:
                    print(f"{case.name}: {said}, {time.monotonic() - since:.2f} s")
                return 0

            for case in drawn(opt):
                if ran == opt.sample:
                    break
                if package(opt, case, site / case.folder.name):
                    ran += 1
                    wrong += judge(case)
            print(f"{ran} cases, {time.monotonic() - began:.0f} s", flush=True)
            opt.tolerance_range = 1e-3
            for case in networks(opt, pathlib.Path(name)):
                assert package(opt, case, site / case.folder.name), f"{case.name}: refused"
                wrong += judge(case)
                print(f"{case.folder.name}, {time.monotonic() - began:.0f} s", flush=True)
            if opt.verbose:
                for x in browser.call("SystemInfo.getProcessInfo")["processInfo"]:
                    print(f"{x['type']}: {x['cpuTime']:.1f} s of CPU")
            assert not page.errors, page.errors
    print(f"{wrong} wrong")
    return wrong != 0 or ran < opt.sample


if __name__ == "__main__":
    sys.exit(main())
