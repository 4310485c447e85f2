#!/usr/bin/env python3
"""What `ingot audit` finds, and that it finds nothing in what ingot emits.

audit.py --ingot build/ingot [CHECK...]

planted     faults planted in a bundle: each is found, by its rule, with file and line
folder      loops that are bounded and loops that are not, in a folder that is no bundle
sizes       each comparison of a run-time size with its bounds, taken away
bundles     eight bundles, one with library kernels and sizes that the run decides, two of networks
            written in C, for this machine and, where their headers are installed, three others
refused     no folder, no C in it, a machine without headers, no libclang: which nothing else needs
"""

import json
import os
import pathlib
import platform
import re
import subprocess
import sys

from run import Wrong, call, compile_model, main
import models

OK, USAGE, UNSUPPORTED, IO, FINDINGS = 0, 2, 4, 6, 7
TRIPLES = ("aarch64-linux-gnu", "thumbv7em-none-eabi", "riscv32")


def audit(ingot, folder, *flags):
    """(exit status, standard output, standard error)"""
    done = subprocess.run(
        [str(ingot), "audit", str(folder), *flags], text=True, capture_output=True
    )
    return done.returncode, done.stdout, done.stderr


def findings(ingot, folder, *flags):
    status, out, err = audit(ingot, folder, "--json", *flags)
    if status not in (OK, FINDINGS):
        raise Wrong(f"status {status}: {err}")
    found = json.loads(out)["findings"]
    if (status == FINDINGS) != bool(found):
        raise Wrong(f"status {status} with {len(found)} findings")
    return found


# Rule, text; @ is the line of the finding. All are put behind a kernel's file, each with names of
# its own.
PLANTED = [
    ("heap", "#include <stdlib.h>\nvoid *planted(void)\n{\n    return malloc(8); @\n}"),
    ("call", "#include <stdio.h>\nvoid planted(void)\n{\n    puts(\"x\"); @\n}"),
    ("recursion", "int planted(int n)\n{\n    return n ? planted(n - 1) : 0; @\n}"),
    (
        "recursion",
        "int other(int n);\nint planted(int n)\n{\n    return n ? other(n - 1) : 0;\n}\nint other(int n)\n{\n    return planted(n); @\n}",
    ),
    (
        "stack",
        "int planted(int n)\n{\n    char room[n]; @\n    room[n - 1] = 1;\n    return room[n - 1];\n}",
    ),
    (
        "stack",
        "int planted(int n)\n{\n    char *room = __builtin_alloca((unsigned)n); @\n    room[0] = 1;\n    return room[0];\n}",
    ),
    ("pointer", "int planted(int (*f)(int))\n{\n    return f(1); @\n}"),
    ("global", "int planted; @"),
    ("global", "int planted(void)\n{\n    static int calls; @\n    return ++calls;\n}"),
    ("loop", "void planted(volatile int *p)\n{\n    while (*p) @\n        ;\n}"),
    (
        "loop",
        "int planted(int n)\n{\n    int s = 0;\n    for (int i = 0; i < n; i++) { @\n        s += i;\n        if (s & 1)\n            i--;\n    }\n    return s;\n}",
    ),
    ("narrowing", "int planted(int64_t n)\n{\n    return n; @\n}"),
    ("diagnostic", "int planted(void)\n{\n    int nothing; @\n    return 0;\n}"),
    (
        "jump",
        "int planted(int n)\n{\nagain:\n    if (n-- > 0)\n        goto again; @\n    return n;\n}",
    ),
    ("assembly", "void planted(void)\n{\n    __asm__ volatile(\"\"); @\n}"),
    ("variadic", "int planted(int n, ...) @\n{\n    return n;\n}"),
]


def planted(ingot, work):
    out = compile_model(ingot, work, "mlp")
    file = out / "mlp_kernels_0.c"
    text = file.read_text()
    faults = [
        re.sub(r"\b(planted|other)\b", rf"\1_{i}", fault) for i, (_, fault) in enumerate(PLANTED)
    ]
    lines = (text + "\n".join(faults)).split("\n")
    places = [i + 1 for i, line in enumerate(lines) if line.endswith("@")]
    file.write_text("\n".join(line.removesuffix("@").rstrip() for line in lines) + "\n")
    found = {(f["rule"], f["file"], f["line"]) for f in findings(ingot, out)}
    for (rule, _), fault, at in zip(PLANTED, faults, places, strict=True):
        if (rule, file.name, at) not in found:
            raise Wrong(f"{rule} at {file.name}:{at} is not found, but {found}:\n{fault}")
    # in a kernel: with its node
    file.write_text(
        re.sub(
            r"\n{\n",
            "\n{\n    int64_t wide = (int64_t)(intptr_t)a0; int narrow = wide; (void)narrow;\n",
            text,
            count=1,
        )
    )
    found = findings(ingot, out)
    if (
        len(found) != 1
        or found[0]["rule"] != "narrowing"
        or "gemm" not in str(found[0]["node"])
        or "k00" not in found[0]["function"]
    ):
        raise Wrong(f"the node is not told: {found}")


GOOD = [
    "for (int i = 0; i < n; i++) s += i;",
    "for (int i = n; i > 0; i -= 2) s += i;",
    "for (int i = n; i-- > 0;) s += i;",
    "for (unsigned u = (unsigned)n; u; u >>= 1) s++;",
    "for (int i = 0; i * 4 + 3 < n && s < 9; i++) s += i;",
    "int i; for (i = 0; n > i; ++i) s += i;",
    "do { s++; } while (0);",
    "for (int i = 0; i < p->n; i++) s += i;",
    "int i = n; while (i-- > 0) s++;",
]
BAD = [
    "for (int i = 0; i < n; i++) n += s;",
    "for (int i = 0; i < n;) s += i;",
    "for (int i = 0; i < n; i--) s += i;",
    "for (int i = 0; i < n || s; i++) s += i;",
    "for (int i = 0; i < n; i++) change(&n);",
    "for (int i = 0; i < n; i++) change(&i);",
    "for (unsigned u = 0; u <= (unsigned)n; u++) s++;",
    "for (int i = 0; i != n; i += 2) s++;",
    "for (;;) if (s++) break;",
    "do { s++; } while (s < n);",
    "int i = n; while (i--) s++;",
    "for (int i = 0; i < q->n; i++) q->n = s;",
    "for (int i = 0; i < bound(s); i++) s++;",
]


def folder(ingot, work):
    head = [
        "struct size { int n; };",
        "void change(int *);",
        "int bound(int);",
        "void change(int *x) { *x = 0; }",
        "int bound(int x) { return x; }",
    ]
    for name, bodies in (("good", GOOD), ("bad", BAD)):
        place = work / name
        place.mkdir()
        lines = head[:]
        for k, body in enumerate(bodies):
            lines += [
                f"int f{k}(int n, const struct size *p, struct size *q);",
                f"int f{k}(int n, const struct size *p, struct size *q) {{ int s = 0; (void)p, (void)q; {body} return s; }}",
            ]
        (place / "loops.c").write_text("\n".join(lines) + "\n")
        found = [f for f in findings(ingot, place) if f["rule"] == "loop"]
        want = [len(head) + 2 * k + 2 for k in range(len(bodies))] if name == "bad" else []
        if [f["line"] for f in found] != want:
            raise Wrong(
                f"{name}: findings in lines {[f['line'] for f in found]}, wanted {want}: {found}"
            )


def run_time(work):
    """Sizes of the inputs and of the data, library kernels, indices from data."""
    g = models.Graph(3)
    x, k = g.input("x", models.F, "n", 6), g.input("k", models.I, 1)
    top, _ = g.op("TopK", g.op("MatMul", x, g.weight(6, 8)), k, n=2, axis=1)
    g.output("top", top, models.F, "n", "k")
    g.output("where", g.op("NonZero", x), models.I, 2, "count")
    g.output("others", g.op("NonZero", top), models.I, 2, "more")
    g.output("rows", g.op("Gather", x, g.op("Squeeze", g.op("ArgMax", x, axis=0))), models.F, 6, 6)
    g.output("both", g.op("MatMul", x, g.op("Transpose", x)), models.F, "n", "n")
    (work / "run_time.onnx").write_bytes(g.bytes())
    return ["--dim", "n=1..8", "--dim", "k=0..8"]


def from_c(ingot, work, name):
    """The bundle of a network written in C, one with weights from safetensors: the programs of
    examples/, beside ingot."""
    out, built = work / name.replace(".", "_"), pathlib.Path(ingot).resolve().parent / "examples"
    if name == "mlp.c":
        call(built / "example_mlp", out)
    else:
        weights = work / "weights.safetensors"
        call(
            sys.executable,
            pathlib.Path(__file__).resolve().parents[2]
            / "examples"
            / "safetensors"
            / "make_weights.py",
            weights,
        )
        call(built / "example_cnn", weights, out)
    return out


def bundles(ingot, work):
    skipped = set()
    for name in (
        "cnn",
        "quantized",
        "lstm",
        "attention",
        "index",
        "run_time",
        "mlp.c",
        "safetensors",
    ):
        if name in ("mlp.c", "safetensors"):
            out = from_c(ingot, work, name)
        else:
            out = compile_model(ingot, work, name, *(run_time(work) if name == "run_time" else []))
        for triple in (f"{platform.machine()}-linux-gnu", *TRIPLES):
            status, text, err = audit(ingot, out, "--triple", triple)
            if status == USAGE and "not installed" in err:
                skipped.add(triple)
            elif status != OK or "0 findings" not in text:
                raise Wrong(f"{name} for {triple}: status {status}\n{text[:3000]}{err}")
    if skipped:
        print(f"(no headers for {', '.join(sorted(skipped))}) ", end="")


def sizes(ingot, work):
    """A size that is not compared with its bounds before it is used."""
    out = compile_model(ingot, work, "run_time", *run_time(work))
    text = (out / "run_time.c").read_text()
    lines = text.split("\n")
    at = [i for i, line in enumerate(lines) if re.match(r" *sym\[\w+\] = ", line)]
    if len(at) < 4:
        raise Wrong(f"{len(at)} sizes are set")
    for some in (at[::2], at[1::2]):  # and none of the others is told
        left = [line for i, line in enumerate(lines) if i - 1 not in some and i - 2 not in some]
        want = [
            ("size", i + 1 - 2 * k) for k, i in enumerate(some)
        ]  # without comparison and return
        (out / "run_time.c").write_text("\n".join(left))
        found = findings(ingot, out)
        if sorted((f["rule"], f["line"]) for f in found) != want:
            raise Wrong(f"lines {want}: {found}")


def refused(ingot, work):
    (work / "empty").mkdir()
    for path, flags, want, says in (
        (work / "nothing", (), IO, "no such folder"),
        (work / "empty", (), IO, "no .c file"),
        (compile_model(ingot, work, "mlp"), ("--triple", "sparc-none"), USAGE, "--headers DIR"),
    ):
        status, out, err = audit(ingot, path, *flags)
        if status != want or says not in err or out or len(err.splitlines()) != 1:
            raise Wrong(f"status {status}: {out}{err}")
    missing = {**os.environ, "INGOT_LIBCLANG": str(work / "libclang.so")}
    done = subprocess.run(
        [str(ingot), "audit", str(work / "mlp")], text=True, capture_output=True, env=missing
    )
    if (
        done.returncode != UNSUPPORTED
        or "libclang cannot be loaded" not in done.stderr
        or len(done.stderr.splitlines()) != 1
    ):
        raise Wrong(f"without libclang: status {done.returncode}: {done.stderr}")
    linked = subprocess.run(["ldd", str(ingot)], text=True, capture_output=True)
    if "libclang" in linked.stdout:
        raise Wrong("libclang is loaded at every start")
    if "SHA-256" not in audit(ingot, work / "mlp")[1]:
        raise Wrong("no hashes")


CHECKS = {f.__name__: f for f in (planted, folder, sizes, bundles, refused)}

if __name__ == "__main__":
    ingot = next((b for a, b in zip(sys.argv, sys.argv[1:]) if a == "--ingot"), "build/ingot")
    if audit(ingot, "/")[0] == UNSUPPORTED:
        print("skipped: this ingot was built without libclang")
        sys.exit(77)
    sys.exit(main(__doc__, CHECKS))
