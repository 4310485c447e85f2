#!/usr/bin/env python3
"""Random kernels with random opts, each beside its kernel without opts.

    random_opts.py --ingot build/ingot --n 2000 --seed 7

Convolutions of all kinds, products, softmax, norms, attention, pooling, copies, gathers, scatters,
narrow types and sizes of run time, with layouts as the compiler chooses them or as declared. Opts
go through the compiler's opt_apply(): what it refuses is counted, what it does is run by the
interpreter of linear IR on small integers, where every order of a sum gives the same bits
(functions that round: within a tolerance), and of ten one is compiled and run too. Prints what is
wrong, and last: applied A, refused R, wrong W. Exit status 1 if W is not 0.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build_and_run(work, file, cc, flags, level="-O1"):
    """Its output and exit status; SystemExit if it does not compile."""
    program = file.with_suffix("")
    command = [
        *cc.split(),
        "-std=c99",
        level,
        "-w",
        *flags,
        "-I",
        ROOT / "runtime_min",
        "-I",
        ROOT / "tests" / "fuzz",
        file,
        ROOT / "runtime_min" / "igrt_cpu.c",
        "-o",
        program,
        "-lm",
    ]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{file}: the compiler's text does not compile\n{done.stderr[:4000]}")
    done = subprocess.run([str(program)], capture_output=True, text=True)
    return done.stdout, done.returncode


# Faults that the comparison has to find: what is changed in the text of a candidate, and by what.
PLANTS = {
    "a remainder dropped": lambda f: (
        re.sub(r"(?<=\n)    for [^\n]*\{\n(?:     [^\n]*\n)*    \}\n\}\n$", "}\n", f)
        if f.count("\n    for ") > 1
        else f
    ),
    "an index that is off by one": lambda f: re.sub(r"(a0 \+ \(|a0\[)", r"\g<1>1 + ", f, count=1),
    "a sum that does not start from nothing": lambda f: re.sub(
        r"( s\d+ = )(igrt_splat_f32x\d+\(0\.0f\)|0\.0f);", r"\g<1>1.0f + \g<2>;", f, count=1
    ),
    "a stride that is another's": lambda f: re.sub(
        r"(a1(?:\[| \+ \()[^;\n]*?\b[ir][a-z0-9_]*\*)(\d{2,})\b",
        lambda m: m[1] + str(int(m[2]) - 1),
        f,
        count=1,
    ),
    "the last part left out": lambda f: f,
}


def plant(folder, files, cc, flags):
    """How many of the faults are found; each is planted into one candidate of every program."""
    found = 0
    for what, change in PLANTS.items():
        planted = seen = 0
        for i in range(files):
            text = (folder / f"opts_{i}.c").read_text()
            if what == "the last part left out":
                wrong = re.sub(r"(int at = \d+);", r"\1 - 1;", text, count=1)
            else:
                wrong = text
                for m in re.finditer(r"^static void k\d+_\d+\(.*?^\}\n", text, re.M | re.S):
                    if change(m[0]) != m[0]:
                        wrong = text[: m.start()] + change(m[0]) + text[m.end() :]
                        break
            if wrong == text:
                continue
            planted += 1
            file = folder / f"plant_{i}.c"
            file.write_text(wrong)
            # whether a fault is found does not depend on how the text is optimised
            out, status = build_and_run(folder, file, cc, flags, "-O0")
            seen += status != 0
        print(f"{what}: {seen} of {planted} found")
        found += planted > 0 and seen == planted
    return found


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True, help="tests/random_opts is built beside it")
    p.add_argument("--n", type=int, default=200, help="candidates")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument(
        "--every",
        type=int,
        default=10,
        help="one of so many candidates is compiled and run as well",
    )
    p.add_argument("--machine", default="native", help="as in --target c:MACHINE")
    p.add_argument(
        "--units", action="store_true", help="kernels of what units multiply alone, bytes and bf16"
    )
    p.add_argument(
        "--plain",
        action="store_true",
        help="without that machine's flags: kernels for another machine than this one",
    )
    p.add_argument("--cc", default="cc")
    p.add_argument(
        "--flags", default="", help="more flags, for example -fsanitize=address,undefined"
    )
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument(
        "--plant",
        action="store_true",
        help="plant faults into the candidates, which all have to be found",
    )
    p.add_argument("--keep", metavar="FOLDER", help="leave the programs there")
    o = p.parse_args()
    tool = pathlib.Path(o.ingot).resolve().parent / "tests" / "random_opts"
    wrong, crashed = 0, 0
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(o.keep or work)
        folder.mkdir(parents=True, exist_ok=True)
        every = 1 if o.plant else o.every
        files = max(2, o.n // 100 // every)
        told = subprocess.run(
            [
                tool,
                "--n",
                str(o.n),
                "--seed",
                str(o.seed),
                "--every",
                str(every),
                "--files",
                str(files),
                "--machine",
                o.machine,
                *(["--units"] if o.units else []),
                folder,
            ],
            capture_output=True,
            text=True,
        )
        if told.returncode:
            raise SystemExit(f"{tool}: status {told.returncode}\n{told.stderr}")
        *faults, counts, flags = told.stdout.splitlines()
        print("".join(f"{line}\n" for line in faults), end="")
        wrong += len(faults)
        flags = ([] if o.plain else flags.split()[1:]) + o.flags.split()
        if o.plant:
            found = plant(folder, files, o.cc, flags)
            print(f"{found} of {len(PLANTS)} planted faults found")
            return 0 if found == len(PLANTS) else 1
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            runs = pool.map(
                lambda i: build_and_run(folder, folder / f"opts_{i}.c", o.cc, flags), range(files)
            )
            for i, (out, status) in enumerate(runs):
                print(out, end="")
                wrong += out.count("wrong:")
                if status not in (0, 1):
                    print(f"opts_{i}.c: status {status}")
                    crashed += 1
    print(f"{counts}, wrong {wrong + crashed}")
    return 1 if wrong + crashed else 0


sys.exit(main())
