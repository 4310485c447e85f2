#!/usr/bin/env python3
"""How well the estimate of `ingot tune` ranks what was timed: by kernel and over all.

    rank.py --ingot build/ingot --database tune.db MODEL...
    rank.py --ingot build/ingot --database tune.db --folder DIR [--lot 16] [--seconds 60] MODEL...

Times come from any search. That one times what its estimate thinks well of, which says little of
the rest: with --folder, candidates of each model are built there (--prepare) with so many more by
lot, timed (--measure) for so many seconds a model, and the network is not run. What is there is not
built again; several folders, say of two estimates, may go into one database.

Of each kernel: how many were timed, Spearman's coefficient, how far the best of ten is behind the
fastest, and how far apart equal programs were in its runs (noise). It is near when that is within 3
% or within the noise. The ten are those that a search of ten would time: the compiler's choice, and
the best by estimate of which no more than two have the same innermost code (search.c). How many are
near by the first ten of the bare estimate is told too. Of candidates whose estimates are equal the
slower is counted first. A kernel of which no more than ten were timed says nothing, and a kernel
that another model has too is counted once. --half picks every other kernel, by its figures: what is
fitted to one half is judged by the other one.
"""

import argparse
import re
import subprocess
import sys
import zlib
from pathlib import Path

TEN, ALIKE = 10, 2
LINE = re.compile(r"^ +(\d+\.\d+) right +([\d.e+]+) cycles.* bytes\)  (.*)$")
AROUND = ("SPLIT", "ORDER", "THREAD", "PREFETCH")
NAME = re.compile(r"^[a-z]\w*$")


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    out, i = [0.0] * len(values), 0
    while i < len(order):
        j = i
        while j + 1 < len(order) and values[order[j + 1]] == values[order[i]]:
            j += 1
        for k in range(i, j + 1):
            out[order[k]] = (i + j) / 2
        i = j + 1
    return out


def spearman(x, y):
    a, b = ranks(x), ranks(y)
    ma, mb = sum(a) / len(a), sum(b) / len(b)
    va, vb = sum((i - ma) ** 2 for i in a), sum((i - mb) ** 2 for i in b)
    return sum((i - ma) * (j - mb) for i, j in zip(a, b)) / (va * vb) ** 0.5 if va and vb else 0.0


def kernels(text):
    """(name, figures, noise, [(estimate, ratio, opts)]) of each kernel; figures: its operations and
    bytes, and what was timed."""
    name, figures, noise, rows = None, "", 0.0, []
    for line in text.splitlines() + ["end"]:
        if line and line[0] != " ":
            if name:
                yield name, figures, noise, rows
            word = line.split()[0]
            name, figures, noise, rows = word if NAME.match(word) else None, "", 0.0, []
        elif m := LINE.match(line):
            if float(m[1]) > 0:
                rows.append((float(m[2]), float(m[1]), m[3]))
        elif m := re.search(r"noise ([\d.]+)", line):
            noise = float(m[1])
        elif m := re.match(r"  (\d+ operations, \d+ bytes)", line):
            figures = m[1]


def innermost(opts):
    return "; ".join(sorted(o for o in opts.split("; ") if not o.startswith(AROUND)))


def searched(rows):
    """Of rows in order: the compiler's choice, which the others' times are told by, and what else a
    search would time."""
    first = [r for r in rows if r[1] == 1.0][:1]
    alike = {}
    for r in rows:
        key = innermost(r[2])
        if r in first or alike.get(key, 0) >= ALIKE:
            continue
        alike[key] = alike.get(key, 0) + 1
        first.append(r)
    return first


def behind(rows, pick=searched):
    """The best of the first ten behind the best of all."""
    order = sorted(rows, key=lambda r: (r[0], -r[1]))
    return min(r[1] for r in pick(order)[:TEN]) / min(r[1] for r in rows) - 1


def call(*command):
    done = subprocess.run(
        [str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def explain(o, model):
    tune = [o.ingot, "tune", model, "--database", o.database, "--target", o.target, *o.flags]
    if not o.folder:
        return call(*tune, "--explain", "-v", "--budget", "0")
    folder = Path(o.folder) / (
        Path(model).parent.name if Path(model).stem == "model" else Path(model).stem
    )
    if not (folder / "candidates.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        call(*tune, "--prepare", folder, "--lot", o.lot)
    return call(*tune, "--measure", folder, "--explain", "-v", "--budget", f"{o.seconds}s")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    p.add_argument("--database", required=True)
    p.add_argument("--target", default="c:native")
    p.add_argument("--folder", help="of programs of candidates, one a model")
    p.add_argument(
        "--lot", type=int, default=16, help="with --folder: so many more of each kernel, by lot"
    )
    p.add_argument(
        "--seconds", type=int, default=60, help="with --folder: to time those of a model"
    )
    p.add_argument("--half", type=int, choices=(0, 1), help="of the kernels")
    p.add_argument(
        "--flags",
        type=str.split,
        default=[],
        help="more for ingot tune: '--dim batch=1 --threads 1'",
    )
    p.add_argument("models", nargs="+", metavar="MODEL")
    o = p.parse_args()
    near = plain = timed = few = 0
    known, each, cycles, times = set(), [], [], []
    for model in o.models:
        for name, figures, noise, rows in kernels(explain(o, model)):
            key = (figures, tuple(sorted(r[1] for r in rows)))
            if (
                key in known
                or not rows
                or (o.half is not None and zlib.crc32(figures.encode()) % 2 != o.half)
            ):
                continue
            known.add(key)
            if len(rows) <= TEN:
                few += 1
                continue
            rho = spearman([r[0] for r in rows], [r[1] for r in rows])
            off = behind(rows)
            good = off <= max(0.03, noise)
            print(
                f"{name:40} {len(rows):4} timed  {rho:6.2f}  best of ten {100 * off:5.1f} % behind{'' if good else '  far'}  noise {100 * noise:.1f} %"
            )
            near, timed = near + good, timed + len(rows)
            plain += behind(rows, list) <= max(0.03, noise)
            each.append(rho)
            least, fastest = min(r[0] for r in rows), min(r[1] for r in rows)
            cycles += [r[0] / least for r in rows]
            times += [r[1] / fastest for r in rows]
    if not each:
        sys.exit("no kernel has more than ten candidates timed")
    each.sort()
    quarter = [each[len(each) * i // 4] for i in (1, 2, 3)]
    print(
        f"{timed} candidates of {len(each)} kernels: {near} near ({100 * near / len(each):.1f} %; {plain} by the bare estimate); coefficient {sum(each) / len(each):.2f} on average, "
        f"quartiles {quarter[0]:.2f} {quarter[1]:.2f} {quarter[2]:.2f}, all together {spearman(cycles, times):.2f}; {few} kernels with ten or fewer left out"
    )


if __name__ == "__main__":
    main()
