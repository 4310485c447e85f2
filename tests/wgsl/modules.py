#!/usr/bin/env python3
"""Modules of WGSL that are written for many models, and what compilers of that language say of
them: naga (wgpu, of PyPI) and Tint (a headless Chromium).

    modules.py --ingot build/ingot [--target wgsl:dot4] [--sample N] CASES...

CASES are folders of cases (model.onnx below).  A model that ingot refuses has no module.  Prints how
many modules there are and which of them somebody does not take; status 1 if there are such.

Exit status 77, skipped: neither of the two is here.
"""

import argparse
import contextlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "browser"))
import chromium  # noqa: E402

chromium.FLAGS = chromium.WEBGPU
DEVICE = """(async () => {
    const adapter = await navigator.gpu?.requestAdapter();
    const features = [...adapter?.features ?? []].filter((f) => ['shader-f16', 'subgroups'].includes(f));
    globalThis.device = await adapter?.requestDevice({requiredFeatures: features});
    return device !== undefined;
})()"""
ASK = """(async () => {
    device.pushErrorScope('validation');
    const module = device.createShaderModule({code: %s});
    const said = (await module.getCompilationInfo()).messages.filter((m) => m.type === 'error');
    await device.popErrorScope();
    return said.map((m) => `${m.lineNum}: ${m.message}`).join('; ');
})()"""


class Naga:
    def __init__(self):
        import wgpu

        adapter = wgpu.gpu.request_adapter_sync()
        has = [f for f in ("shader-f16", "subgroup") if f in adapter.features]
        self.device = adapter.request_device_sync(required_features=has)

    def says(self, text):
        lines = text.split("\n")  # the line for Tint, which hosts take away
        text = "\n".join(
            "" if x.startswith(("enable subgroups", "diagnostic(")) else x for x in lines
        )
        try:
            self.device.create_shader_module(code=text)
        except Exception as e:  # of wgpu's own types
            return str(e)
        return ""


class Tint:
    def __init__(self, page):
        self.page = page
        if not page.value(DEVICE):
            raise chromium.Missing("no WebGPU in Chromium")

    def says(self, text):
        return self.page.value(ASK % json.dumps(text))


@contextlib.contextmanager
def judges(folder):
    """By name, whoever is here."""
    found = {}
    try:
        found["naga"] = Naga()
    except Exception as e:  # no wheel, no driver
        print(f"without naga: {e}")
    (folder / "index.html").write_text("<title>-</title><link rel=icon href='data:,'>")
    with contextlib.ExitStack() as stack:
        try:
            browser = stack.enter_context(chromium.Chromium())
            page = browser.page(stack.enter_context(chromium.serve(folder)) + "index.html")
            page.wait("document.readyState == 'complete'")
            found["Tint"] = Tint(page)
        except (chromium.Missing, chromium.Failed) as e:
            print(f"without Tint: {e}")
        yield found


def module(ingot, target, model, out):
    """Its text; None: refused, or it has no kernels."""
    words = [ingot, "compile", model, "-q", "--no-check", "--target", target, "-o", out]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode in (0, 4), f"{model}: status {done.returncode}: {done.stderr}"
    path = out / "model_kernels.wgsl"
    return path.read_text() if not done.returncode and path.exists() else None


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--target", default="wgsl")
    p.add_argument("--sample", type=int, default=0)
    p.add_argument("cases", nargs="+", type=pathlib.Path)
    opt = p.parse_args()
    models = sorted(m for folder in opt.cases for m in folder.rglob("model.onnx"))
    if opt.sample:
        models = random.Random(1).sample(models, min(opt.sample, len(models)))
    seen, wrong, refused = set(), 0, 0
    with tempfile.TemporaryDirectory() as work, judges(pathlib.Path(work)) as found:
        if not found:
            return 77
        for m in models:
            text = module(opt.ingot, opt.target, m, pathlib.Path(work) / "out")
            refused += text is None
            if text is None or text in seen:
                continue
            seen.add(text)
            for name, judge in found.items():
                said = judge.says(text)
                wrong += bool(said)
                if said:
                    print(f"{m.parent.name}: {name}: {said[:400]}", flush=True)
            if len(seen) % 100 == 0:
                print(f"  {len(seen)} modules", file=sys.stderr, flush=True)
        print(
            f"{len(models)} models, {len(models) - refused} modules, {len(seen)} different ones, "
            f"by {' and '.join(found)}: {wrong} refused"
        )
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
