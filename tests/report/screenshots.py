#!/usr/bin/env python3
"""Pictures of reports, to be looked at: every view at 1280x800 and 390x844, light and dark; and
whether anything is wider than the window or overlaps.

    screenshots.py --ingot build/ingot --out DIR [--views graph,kernels] [--flags "--target
        c:native"] MODEL...

MODEL is a file, or a folder that holds model.onnx. Exit status 77, skipped: there is no Chromium.
"""

import argparse
import pathlib
import subprocess
import sys

import browser

VIEWS = ("overview", "graph", "timeline", "memory", "kernels", "passes", "compare")
SIZES = ((1280, 800), (390, 844))

# What is cut off without a way to scroll to it, text over text in the frame, text too small to
# read.
FAULTS = """(() => {
  const out = [];
  if (document.documentElement.scrollWidth > innerWidth + 1) out.push('the page is ' + document.documentElement.scrollWidth + ' wide in a window of ' + innerWidth);
  const scrolls = e => { for (; e && e !== document.body; e = e.parentElement) { const o = getComputedStyle(e); if (/auto|scroll|hidden/.test(o.overflowX)) return true; } return false; };
  const leaves = [...document.querySelectorAll('h1,h2,h3,p,td,th,dt,dd,button,li,label,figcaption')].filter(e => e.offsetParent && e.textContent.trim());
  for (const e of leaves) {
    const r = e.getBoundingClientRect();
    if (r.width && r.right > innerWidth + 1 && !scrolls(e.parentElement)) out.push('beyond the edge: ' + e.tagName + ' ' + e.textContent.slice(0, 40));
    if (parseFloat(getComputedStyle(e).fontSize) < 11) out.push('small text: ' + e.textContent.slice(0, 40));
  }
  const boxes = [...document.querySelectorAll('#top > *, #views > button, .tools > *:not(.hidden):not(:empty), .figures > div, .columns > *, .two > *')].filter(e => e.offsetParent);
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => {
    if (a.contains(b) || b.contains(a) || a.parentElement !== b.parentElement) return;
    const r = a.getBoundingClientRect(), s = b.getBoundingClientRect();
    if (Math.min(r.right, s.right) - Math.max(r.left, s.left) > 1 && Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top) > 1) out.push('overlap: ' + a.textContent.slice(0, 30) + ' | ' + b.textContent.slice(0, 30));
  }));
  return [...new Set(out)];
})()"""


def faults(page):
    return page.eval(FAULTS) + page.errors


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    p.add_argument("--out", required=True, type=pathlib.Path)
    p.add_argument("--views", default=",".join(VIEWS))
    p.add_argument("--flags", default="--target c:native")
    p.add_argument("--dark", action="store_true")
    p.add_argument("models", nargs="+", type=pathlib.Path)
    a = p.parse_args()
    if not browser.find():
        print("skipped: there is no Chromium")
        return 77
    a.out.mkdir(parents=True, exist_ok=True)
    bad = 0
    with browser.Browser() as b:
        for model in a.models:
            file = model / "model.onnx" if model.is_dir() else model
            name = model.name if model.is_dir() else model.stem
            html = a.out / f"{name}.html"
            subprocess.run([a.ingot, "inspect", file, "-o", html, *a.flags.split()], check=True)
            for width, height in SIZES:
                page = b.open(html, width, height, dark=a.dark)
                for view in a.views.split(","):
                    page.eval(f"State.go({{view: '{view}', kind: null}})")
                    page.settle()
                    page.screenshot(a.out / f"{name}-{view}-{width}{'-dark' if a.dark else ''}.png")
                    for f in faults(page):
                        print(f"{name} {view} {width}: {f}")
                        bad += 1
            print(f"{name}: {html.stat().st_size} bytes", flush=True)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
