#!/usr/bin/env python3
"""Times of a model by WebAssembly in a page of a headless Chromium, on one thread and on two, and of
a native program with vectors of the same size. Prints numbers, and judges nothing.

    page_threads.py --ingot build/ingot MODEL.onnx [--starts 6] [--turns 8] [--runs 10] [--keep DIR]
    page_threads.py --kept DIR                        # what --keep has made: nothing is compiled

A start is a browser of its own. In each, one and two threads are timed in turns. A line has the least
median of a turn in ms, the ratio of the two, and how long a line of the cache takes between the two
processors (near.c), before the start and after it. In a virtual machine that depends on the host,
which is given the chance to place them near each other before each start. Far apart (more than --near
at the end of the line), a second thread gains less, natively too. Other programs that use a core make
the ratio meaningless.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "browser"))
import chromium  # noqa: E402

THREADS = (1, 2)
LOAD = """(async () => {
    const {load, model, arrayOf} = await import('/page/model.mjs');
    const inputs = Object.fromEntries(model.inputs.map(([name, type, shape]) => {
        const x = new (arrayOf(type))(shape.reduce((a, b) => a * b, 1));
        return [name, x.fill(typeof x[0] === 'bigint' ? 1n : 1)];
    }));
    globalThis.timed = {};
    for (const threads of [1, 2]) {
        const m = await load(undefined, {by: 'wasm', threads});
        if (m.threads !== threads)
            throw new Error(`${m.threads} threads, not ${threads}`);
        timed[threads] = async (runs) => {
            const times = [];
            for (let i = 0; i < runs; i++) {
                const since = performance.now();
                await m.run(inputs);
                times.push(performance.now() - since);
            }
            return times.sort((a, b) => a - b)[runs >> 1];
        };
    }
    return JSON.stringify(model.inputs);
})()"""


class Near:
    """near.c; `ns()` is what it measures."""

    TRIES = 20

    def __init__(self, folder):
        self.program = folder / "near"
        source = pathlib.Path(__file__).with_name("near.c")
        subprocess.run(["cc", "-O2", "-pthread", "-o", self.program, source], check=True)
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.program], stdin=-1, stdout=-1, text=True)

    def stop(self):
        self.process.stdin.close()
        self.process.wait()

    def ns(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def come(self, most):
        """Lets the processors be idle until the host has placed them near each other, and tells how
        near."""
        for _ in range(self.TRIES):
            if self.ns() <= most:
                break
            self.stop()
            time.sleep(0.2)
            self.start()
        return self.ns()


def compiled(opt, folder):
    """The page, and a native program."""
    folder.mkdir(exist_ok=True)
    wasm = ["--target", "c:wasm32-simd128", "--package", "web"]
    for name, words in (("page", wasm), ("native", ["--target", opt.native])):
        command = [opt.ingot, "compile", opt.model, "-q", "-o", folder / name, *words]
        subprocess.run([*command, *opt.compile], check=True)
    subprocess.run(["make", "-s", "-C", folder / "page", "web", "CC=clang"], check=True)
    subprocess.run(["make", "-s", "-C", folder / "native"], check=True)
    (folder / "index.html").write_text("<title>-</title><link rel=icon href='data:,'>")


def ones(folder, inputs):
    """The page's inputs as files."""
    folder.mkdir(exist_ok=True)
    for i, (_, kind, shape) in enumerate(inputs):
        dtype = f"{kind[0]}{int(kind[1:]) // 8}" if kind[1:].isdigit() else "u1"
        np.save(folder / f"input_{i}.npy", np.ones(shape, dtype))


def native(opt, folder, threads):
    """Median in ms."""
    words = ["--bench", str(opt.runs / 25), "-t", str(threads), folder / "data"]
    return json.loads(subprocess.check_output([folder / "native/model", *words]))["median_ms"]


def start(opt, folder, near):
    least = {way: {n: float("inf") for n in THREADS} for way in ("page", "native")}
    before = near.come(opt.near)
    with chromium.Chromium() as browser, chromium.serve(folder, chromium.Isolated) as address:
        page = browser.page(address + "index.html")
        page.wait("document.readyState == 'complete'")
        ones(folder / "data", json.loads(page.value(LOAD)))
        for turn in range(1 + opt.turns):
            for n in THREADS:
                took = float(page.value(f"timed[{n}]({opt.runs})"))
                if turn:  # before, it was being compiled
                    least["page"][n] = min(least["page"][n], took)
    for n in THREADS:
        least["native"][n] = min(native(opt, folder, n) for _ in range(2))
    told = [f"{way} {t[1]:.2f} and {t[2]:.2f} ms = {t[1] / t[2]:.2f}" for way, t in least.items()]
    print("; ".join(told), f"; {before} and {near.ns()} ns", flush=True)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, default="build/ingot")
    p.add_argument("--native", default="c:x86-64", help="the native program's target")
    p.add_argument("--near", type=int, default=200, help="ns: two processors that share a cache")
    p.add_argument("--starts", type=int, default=6)
    p.add_argument("--turns", type=int, default=8)
    p.add_argument("--runs", type=int, default=10)
    p.add_argument("--keep", type=pathlib.Path)
    p.add_argument("--kept", type=pathlib.Path)
    p.add_argument("model", nargs="?", type=pathlib.Path)
    opt, opt.compile = p.parse_known_args()
    with tempfile.TemporaryDirectory() as work:
        folder = opt.kept or opt.keep or pathlib.Path(work)
        if not opt.kept:
            compiled(opt, folder)
        near = Near(folder)
        try:
            for _ in range(opt.starts):
                start(opt, folder, near)
        except chromium.Missing as e:
            print(f"skipped: {e}")
            return 77
        finally:
            near.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
