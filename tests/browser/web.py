#!/usr/bin/env python3
"""examples/web: a digit drawn with the mouse, or a finger, is read in the page.

    web.py --ingot build/ingot

A headless Chromium gets real input events: the ten digits are drawn by the mouse, a large 3 and a
small one in a corner, a 3 by a finger; each has to be read by WebAssembly, three of them by WebGPU
(SwiftShader) too, which the page's switch chooses. Clear, Escape, a tap, and drawing on after
leaving the paper work; a missing module is told of.

Exit status 77, skipped: there is no Chromium, or no clang for wasm.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import chromium
from chromium import Chromium, Failed, Missing, serve

chromium.FLAGS = chromium.WEBGPU
HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "examples/web/build.sh"

# each stroke is a list of corners in percent of the box; the mouse goes from one to the next in
# small steps
DIGITS = {
    0: [
        [
            (50, 5),
            (30, 10),
            (18, 30),
            (15, 50),
            (18, 72),
            (30, 90),
            (50, 95),
            (70, 90),
            (82, 72),
            (85, 50),
            (82, 30),
            (70, 10),
            (50, 5),
        ]
    ],
    1: [[(30, 25), (52, 5), (52, 95)]],
    2: [[(20, 25), (30, 10), (50, 5), (70, 12), (78, 28), (70, 48), (45, 72), (18, 95), (82, 95)]],
    3: [
        [
            (20, 15),
            (40, 5),
            (65, 8),
            (75, 22),
            (70, 38),
            (45, 47),
            (70, 53),
            (80, 70),
            (70, 88),
            (45, 96),
            (20, 88),
        ]
    ],
    4: [[(60, 5), (15, 65), (85, 65)], [(62, 40), (62, 95)]],
    5: [[(78, 6), (28, 6), (24, 45), (50, 38), (74, 48), (80, 68), (68, 88), (45, 95), (20, 88)]],
    6: [
        [
            (65, 5),
            (40, 25),
            (25, 50),
            (22, 72),
            (32, 90),
            (52, 95),
            (72, 88),
            (78, 72),
            (70, 56),
            (50, 50),
            (32, 56),
            (24, 70),
        ]
    ],
    7: [[(18, 6), (82, 6), (60, 45), (45, 95)]],
    8: [
        [
            (70, 15),
            (50, 5),
            (30, 12),
            (27, 28),
            (45, 44),
            (70, 60),
            (78, 78),
            (65, 93),
            (45, 95),
            (25, 86),
            (23, 70),
            (40, 53),
            (66, 35),
            (72, 22),
            (70, 15),
        ]
    ],
    9: [
        [
            (75, 28),
            (62, 10),
            (42, 6),
            (25, 18),
            (23, 35),
            (35, 50),
            (55, 50),
            (72, 38),
            (76, 22),
            (74, 50),
            (70, 95),
        ]
    ],
}
STEPS = 3  # moves from one corner to the next


def path(corners, left, top, width, height):
    place = [(left + x * width / 100, top + y * height / 100) for x, y in corners]
    points = place[:1]
    for (ax, ay), (bx, by) in zip(place, place[1:]):
        points += [
            (ax + (bx - ax) * k / STEPS, ay + (by - ay) * k / STEPS) for k in range(1, STEPS + 1)
        ]
    return points


def write(page, digit, share=(0.15, 0.1, 0.7, 0.8), touch=False):
    """Draws it into a part of the paper; what the page says then."""
    left, top, width, height = page.box("#paper")
    x, y, w, h = share
    for stroke in DIGITS[digit]:
        page.drag(
            path(stroke, left + x * width, top + y * height, w * width, h * height), touch=touch
        )
    return said(page)


def said(page):
    """Once what was drawn last is shown: two frames later its run is under way, or done."""
    return page.value(
        "(async () => { const frame = () => new Promise(requestAnimationFrame); await frame(); await frame();"
        "while ('busy' in document.body.dataset) await frame();"
        "return document.querySelector('#digit').value; })()"
    )


def wrong(what, page):
    page.screenshot("web-failed.png")
    sys.exit(f"{what}; the page is in web-failed.png; errors: {page.errors}")


def ready(browser, address, **more):
    page = browser.page(address + "index.html", width=900, height=700, **more)
    page.wait("'ready' in (document.body?.dataset ?? {})")
    return page


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ingot", default="build/ingot", type=pathlib.Path)
    o = parser.parse_args()
    for tool in ("clang", "wasm-ld", "llvm-ar"):
        if not shutil.which(tool):
            print(f"skipped: there is no {tool}")
            return 77
    if not pathlib.Path("/usr/include/wasm32-wasi").exists():
        print("skipped: there is no wasi-libc")
        return 77
    with tempfile.TemporaryDirectory() as work:
        env = {k: v for k, v in os.environ.items() if k != "CC"}
        done = subprocess.run(
            ["sh", BUILD, work],
            env=dict(env, INGOT=str(o.ingot.resolve())),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"build.sh: {done.stderr}")
        os.utime(
            pathlib.Path(work) / "digits/digits_page.wasm", (0, 0)
        )  # so old that a browser may keep it, unless the server says otherwise
        try:
            with Chromium() as browser, serve(work) as address:
                page = ready(browser, address)
                for digit in (3, 7, 0):
                    if write(page, digit) != str(digit):
                        wrong(f"by WebGPU a {digit} is read as {said(page)!r}", page)
                    page.click("#clear")
                page.click("[value=wasm]")
                page.wait("document.body.dataset.ready === 'wasm'")
                for digit in [3, *DIGITS]:
                    got = write(page, digit)
                    if got != str(digit):
                        wrong(f"a {digit} is read as {got!r}", page)
                    page.click("#clear")
                    if (
                        said(page) != ""
                        or page.value("document.querySelector('#clear').disabled") is not True
                    ):
                        wrong("Clear does not clear", page)
                for share in ((0.02, 0.02, 0.25, 0.3), (0.6, 0.5, 0.3, 0.45)):
                    if write(page, 3, share) != "3":
                        wrong(f"a 3 at {share} is read as {said(page)!r}", page)
                    page.key("Escape")
                left, top, width, height = page.box("#paper")
                page.drag([(left + width / 2, top + height / 2)])  # a dot is something too
                if not said(page):
                    wrong("a dot is not read", page)
                page.key("Escape")
                page.drag(
                    [
                        (left + width / 2, top + 20),
                        (left + width / 2, top + height + 80),
                        (left + width / 2, top + height - 20),
                    ]
                )
                page.move(left + 20, top + 20)  # not pressed: draws nothing
                if said(page) != "1":
                    wrong(f"a line that leaves the paper is read as {said(page)!r}", page)
                if page.errors:
                    wrong("the page has errors", page)
                page = ready(browser, address, touch=True)
                if write(page, 3, touch=True) != "3":
                    wrong(f"a finger's 3 is read as {said(page)!r}", page)
                (pathlib.Path(work) / "digits/digits_page.wasm").unlink()
                page = ready(browser, address)
                page.click("[value=wasm]")
                page.wait(
                    "document.querySelector('#problem')?.textContent.includes('build.sh makes')"
                )
        except Missing as e:
            print(f"skipped: {e}")
            return 77
        except Failed as e:
            sys.exit(str(e))
    print("ten digits by the mouse, three by WebGPU, three sizes and places, one by a finger")
    return 0


sys.exit(main())
