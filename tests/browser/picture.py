#!/usr/bin/env python3
"""examples/web/picture.html: a picture file, and a camera, through a network in a page.

    picture.py --ingot build/ingot [--model MODEL.onnx [--white 255] [--dim N=D]...]

A headless Chromium with real input events gets a file of two colours; the network is one that tells
red from blue, so of the left half the picture has to be left, of the right half the background. By
WebGPU (SwiftShader) and, after a click, by WebAssembly; then a network that gives a picture, and
Chromium's own moving picture in a camera's place. What is no picture is told of. --model: another
network instead, whose time a frame is printed.

Exit status 77, skipped: there is no Chromium, no clang for wasm, or no Python with onnx.
"""

import argparse
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import chromium

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

# --disable-gpu takes WebGPU away
chromium.FLAGS = (
    *(f for f in chromium.FLAGS if f != "--disable-gpu"),
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
)
BUILD = pathlib.Path(__file__).resolve().parents[2] / "examples/web/build.sh"
RED, BLUE, GREEN = (230, 20, 20), (20, 20, 230), (0, 160, 90)


def png(path, width, height, left, right):
    """A picture of two colours."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data) & 0xFFFFFFFF)
        )

    row = b"\0" + bytes(left) * (width // 2) + bytes(right) * (width - width // 2)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(row * height))
        + chunk(b"IEND", b"")
    )


def network(path, mask):
    """Of pixels side by side a mask, 1 where they are red; of planes a picture, whose colours are
    turned about."""
    if mask:
        shape, made = [1, 32, 48, 3], [1, 32, 48, 1]
        w = np.float32([[40], [0], [-40]])
        nodes = [("MatMul", ["x", "w"], ["a"]), ("Sigmoid", ["a"], ["y"])]
    else:
        shape, made = [1, 3, 32, 48], [1, 3, 32, 48]
        w = np.zeros((3, 3, 1, 1), np.float32)
        for to, of in enumerate((2, 0, 1)):
            w[to, of] = 1
        nodes = [("Conv", ["x", "w"], ["y"])]
    graph = helper.make_graph(
        [helper.make_node(*n) for n in nodes],
        "picture",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, made)],
        [numpy_helper.from_array(w, "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def build(opt, out, model, *options):
    env = {k: v for k, v in os.environ.items() if k != "CC"} | {"INGOT": str(opt.ingot.resolve())}
    words = ["sh", BUILD, out, model, *options]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"build.sh: {done.stderr}")


def choose(page, path):
    """As the dialog of the browser's does."""
    at = page.call("Runtime.evaluate", expression="document.querySelector('#file')")
    page.call("DOM.setFileInputFiles", files=[str(path)], objectId=at["result"]["objectId"])


def frames(page):
    return int(page.value("document.body.dataset.frames ?? '0'"))


def colour(page, x, y):
    """Of what the network has made, at a part of its width and height."""
    return page.value(
        f"(() => {{ const c = document.querySelector('#made'), p = c.getContext('2d');"
        f"return [...p.getImageData(c.width * {x}, c.height * {y}, 1, 1).data].slice(0, 3); }})()"
    )


def want(page, what, x, expected):
    got = colour(page, x, 0.5)
    if max(abs(a - b) for a, b in zip(got, expected)) > 3:
        page.screenshot("picture-failed.png")
        sys.exit(f"{what}: {got}, not {expected}; the page is in picture-failed.png; {page.errors}")


def opened(browser, address):
    page = browser.page(address + "picture.html", width=900, height=700)
    page.wait("'ready' in (document.body?.dataset ?? {})")
    return page


def another(page, what):
    """Does it, and waits for one more frame."""
    before = frames(page)
    what()
    page.wait(f"(document.body.dataset.frames ?? 0) > {before}")


def by_mask(page, file, work):
    for by in ("webgpu", "wasm"):
        if by == "wasm":
            another(page, lambda: page.click("[value=wasm]"))
            page.wait("document.body.dataset.ready === 'wasm'")
        else:
            another(page, lambda: choose(page, file))
        want(page, f"red, by {by}", 0.25, RED)
        want(page, f"blue, by {by}", 0.75, GREEN)
    assert "ms a frame" in page.value("document.querySelector('#took').value")
    (work / "none.png").write_text("no picture")
    choose(page, work / "none.png")
    page.wait("document.querySelector('#problem').textContent.includes('no picture')")


def by_picture(page, file):
    another(page, lambda: choose(page, file))
    want(page, "colours turned about", 0.25, (RED[2], RED[0], RED[1]))
    another(page, lambda: page.click("#camera"))
    another(page, lambda: None)
    another(page, lambda: page.click("[value=wasm]"))
    another(page, lambda: None)
    page.click("#camera")
    page.wait("document.querySelector('#camera').textContent === 'Camera'")


AGAIN = "document.querySelector('#white').dispatchEvent(new Event('change'))"


def timed(page, file, white):
    page.value(f"document.querySelector('#white').value = '{white}'")
    for by in ("webgpu", "wasm"):
        another(page, lambda: page.click(f"[value={by}]") if by == "wasm" else choose(page, file))
        for _ in range(3):  # the same file again is no change
            another(page, lambda: page.value(AGAIN))
        print(f"{by}: {page.value('document.querySelector(`#took`).value')}")
    page.screenshot("picture.png")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ingot", default="build/ingot", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--white", type=int, default=1)
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--picture", type=pathlib.Path)
    opt = parser.parse_args()
    has_clang = all(map(shutil.which, ("clang", "wasm-ld", "llvm-ar")))
    if not has_clang or not pathlib.Path("/usr/include/wasm32-wasi").exists():
        print("skipped: there is no clang for wasm, or no wasi-libc")
        return 77
    with tempfile.TemporaryDirectory() as at:
        work = pathlib.Path(at)
        file = opt.picture or work / "two.png"
        if not opt.picture:
            png(file, 96, 64, RED, BLUE)
        try:
            with chromium.Chromium() as browser, chromium.serve(work) as address:
                if opt.model:
                    build(opt, work / "told", opt.model, *(f"--dim={d}" for d in opt.dim))
                    timed(opened(browser, address + "told/"), file, opt.white)
                    return 0
                for name in ("mask", "picture"):
                    model = network(work / f"{name}.onnx", name == "mask")
                    build(opt, work / name, model)
                    page = opened(browser, f"{address}{name}/")
                    by_mask(page, file, work) if name == "mask" else by_picture(page, file)
                    if page.errors:
                        sys.exit(f"{name}: the page has errors: {page.errors}")
        except chromium.Missing as e:
            print(f"skipped: {e}")
            return 77
        except chromium.Failed as e:
            sys.exit(str(e))
    print("a file by WebGPU and by WebAssembly, a mask and a picture, a camera")
    return 0


if __name__ == "__main__":
    sys.exit(main())
