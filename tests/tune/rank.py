#!/usr/bin/env python3
"""How well the estimate of `ingot tune` ranks what was timed: by kernel and over all.

    rank.py --ingot build/ingot --database tune.db MODEL...

Of each kernel with at least five candidates timed: how many, Spearman's coefficient, how far the best of the first ten by
estimate is behind the fastest, and how far apart equal programs were in its runs (noise). What is closer than the noise says
nothing: a kernel is near when the first ten hold one within 3 % or within the noise. Times come from any search, or from
`ingot tune --prepare DIR` and `--measure DIR`, which time more of a kernel at once.
"""
import argparse
import re
import subprocess
import sys

LINE = re.compile(r"^ +(\d+\.\d+) right +([\d.e+]+) cycles")


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
    """(name, noise, [(estimate, ratio)]) of each kernel."""
    name, noise, rows = None, 0.0, []
    for line in text.splitlines() + ["end"]:
        if line and line[0] != " ":
            if name:
                yield name, noise, rows
            name, noise, rows = line.split()[0], 0.0, []
        elif m := LINE.match(line):
            if float(m[1]) > 0:
                rows.append((float(m[2]), float(m[1])))
        elif m := re.search(r"noise ([\d.]+)", line):
            noise = float(m[1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ingot", required=True)
    p.add_argument("--database", required=True)
    p.add_argument("--target", default="c:native")
    p.add_argument("models", nargs="+", metavar="MODEL")
    o = p.parse_args()
    total = near = timed = 0
    sums = 0.0
    for model in o.models:
        done = subprocess.run([o.ingot, "tune", model, "--explain", "-v", "--budget", "0", "--database", o.database, "--target", o.target],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            sys.exit(f"{model}: status {done.returncode}\n{done.stderr}")
        for name, noise, rows in kernels(done.stdout):
            if len(rows) < 5:
                continue
            rho = spearman([r[0] for r in rows], [r[1] for r in rows])
            behind = min(r[1] for r in sorted(rows)[:10]) / min(r[1] for r in rows) - 1
            good = behind <= max(0.03, noise)
            print(f"{name:40} {len(rows):4} timed  {rho:6.2f}  best of ten {100 * behind:5.1f} % behind{'' if good else '  far'}  noise {100 * noise:.1f} %")
            total, near, timed, sums = total + 1, near + good, timed + len(rows), sums + rho
    if not total:
        sys.exit("no kernel has five candidates timed")
    print(f"{timed} candidates of {total} kernels: coefficient {sums / total:.2f}, {near} near ({100 * near / total:.0f} %)")


if __name__ == "__main__":
    main()
