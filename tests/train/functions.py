#!/usr/bin/env python3
"""Bundles of several functions over the same states give what numpy gives.

    functions.py --make build/tests/functions_make      3 s

    learner   a training step beside inference: twenty steps, the losses, then the results of run(); states by
              name; reset begins again; the same under sanitizers, and in C99 without vectors
    decoder   prefill and step over one cache
    machines  the same in a bundle for several machines, by each of them
    sched     a section a function; read back, it gives the same bytes
    states    next values on the bytes of their states, where nobody is to read these afterwards
    refused   an input of another function

Exit status 77, skipped: there is no numpy.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

SANITIZED = ["-O0", "-g1", "-fsanitize=address,undefined"]
HEAD = """
#ifndef TARGET
#define TARGET NULL /* the fastest that runs here */
#endif
"""

LEARN = (
    HEAD
    + r"""
#include <stdio.h>
#include <string.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
static float x[8*6], target[8*3], y[8*3], rate = 0.25f, loss;
static void states(const model_ctx *ctx)
{
    igrt_state s;
    for (int i = 0; i < MODEL_STATES; i++)
        if (model_state(ctx, i, &s) == IGRT_OK)
            printf("state %s %d %d %g\n", s.name, s.rank, (int)s.bytes,
                   s.dtype == IGRT_F32 ? *(float *)s.data : (double)*(int64_t *)s.data);
}
int main(void)
{
    model_ctx ctx;
    model_config config = {
        .struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena, .target = TARGET};
    for (int i = 0; i < 8*6; i++)
        x[i] = (float)(i * 37 % 48) / 48;
    for (int i = 0; i < 8*3; i++)
        target[i] = (float)(i * 7 % 24) / 24;
    if (model_init(&ctx, &config))
        return 1;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 20; i++) {
            model_train_step_inputs in = {.x = x, .target = target, .rate = &rate};
            model_train_step_outputs out = {.loss = &loss};
            if (model_train_step(&ctx, &in, &out))
                return 2;
            printf("%.9g\n", loss);
        }
        model_inputs in = {.x = x};
        model_outputs out = {.y = y};
        if (model_run(&ctx, &in, &out))
            return 3;
        for (int i = 0; i < 8*3; i++)
            printf("%.9g\n", y[i]);
        states(&ctx);
        if (model_reset(&ctx))
            return 4;
    }
    return 0;
}
"""
)

DECODE = (
    HEAD
    + r"""
#include <stdio.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
static float x[9*4], y[8*4];
int main(void)
{
    model_ctx ctx;
    model_config config = {
        .struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena, .target = TARGET};
    for (int i = 0; i < 9*4; i++)
        x[i] = (float)(i * 5 % 36) / 36;
    if (model_init(&ctx, &config))
        return 1;
    model_prefill_inputs first = {.x = x, .x_dims = {5, 4}};
    model_prefill_outputs rows = {.y = y};
    if (model_prefill(&ctx, &first, &rows) || model_length_past(&ctx) != 5)
        return 2;
    for (int i = 0; i < 5*4; i++)
        printf("%.9g\n", y[i]);
    for (int k = 5; k < 9; k++) {
        model_inputs in = {.x = x + 4*k};
        model_outputs out = {.y = y};
        if (model_run(&ctx, &in, &out) || model_length_past(&ctx) != k + 1)
            return 3;
        for (int i = 0; i < 4; i++)
            printf("%.9g\n", y[i]);
    }
    first.x_dims[0] = 9;
    return model_prefill(&ctx, &first, &rows) != IGRT_ERR_DIM;
}
"""
)


STATES = (
    HEAD
    + r"""
#include <stdio.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
static float x[8*4], y[8*8], z[8*8];
int main(void)
{
    model_ctx ctx;
    model_config config = {
        .struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena, .target = TARGET};
    for (int i = 0; i < 8*4; i++)
        x[i] = (float)(i * 5 % 32) / 32;
    if (model_init(&ctx, &config))
        return 1;
    for (int n = 0; n < 3; n++) {
        model_inputs in = {.x = x};
        model_outputs out = {.y = y, .z = z};
        if (model_run(&ctx, &in, &out))
            return 2;
        for (int i = 0; i < 8*8; i++)
            printf("%.9g\n%.9g\n", y[i], z[i]);
    }
    for (int i = 0; i < MODEL_STATES; i++) {
        igrt_state s;
        if (model_state(&ctx, i, &s))
            return 3;
        for (int k = 0; k < 8*4; k++)
            printf("%.9g\n", ((float *)s.data)[k]);
    }
    return 0;
}
"""
)


def data(rows, columns):
    k = np.arange(rows * columns, dtype=np.uint64) * 2654435761 % 2**32
    return ((k >> 8 & 0xFFFF) / 65536 - 0.5).reshape(rows, columns)


def learned():
    """Losses of twenty steps, then the outputs; w1[0,0] after them."""
    x = (np.arange(48) * 37 % 48 / 48).reshape(8, 6)
    t = (np.arange(24) * 7 % 24 / 24).reshape(8, 3)
    w, speed, out = [data(6, 5), data(5, 3)], [0, 0], []
    for _ in range(20):
        h = np.tanh(x @ w[0])
        d = h @ w[1] - t
        out.append((d * d).mean())
        g = 2 * d / d.size
        grads = [x.T @ ((g @ w[1].T) * (1 - h * h)), h.T @ g]
        for i in range(2):
            speed[i] = 0.5 * speed[i] + grads[i]
            w[i] = w[i] - 0.25 * speed[i]
    assert out[-1] < 0.7 * out[0], "the reference does not learn"
    return out + list((np.tanh(x @ w[0]) @ w[1]).ravel()), w, speed


def decoded():
    x = (np.arange(36) * 5 % 36 / 36).reshape(9, 4)
    wk, out = data(4, 4), []
    for begin, end in [(0, 5), (5, 6), (6, 7), (7, 8), (8, 9)]:
        cache = x[:end] @ wk
        score = np.exp(x[begin:end] @ cache.T)
        out += list((score / score.sum(1, keepdims=True) @ cache).ravel())
    return out


def stated():
    """Outputs of three runs, then the states, and how many of these are copied in each run."""
    x, out = (np.arange(32) * 5 % 32 / 32).reshape(8, 4), []
    plain, late, left, right, turned, old, rows = (data(8, 4) for _ in range(7))
    right = left * 2
    for _ in range(3):
        after = np.tanh(old) + x
        out += list(np.stack([x @ late.T, x @ (old * after.mean()).T], -1).ravel())
        plain, late, left, right = plain - x, late * 0.5 + x, right, left
        turned, old, was = turned[::-1] + x, after, rows.copy()
        for i in [3, 1, 3, 0]:
            rows[i] -= 0.25 * was[i]
    return out + [v for s in (plain, late, left, right, turned, old, rows) for v in s.ravel()], 2


def program(folder, text, *flags):
    """What a program says that is linked with a bundle."""
    (folder / "try.c").write_text(text)
    sources = [str(f) for f in sorted(folder.glob("*.c"))]
    subprocess.run(
        [
            os.environ.get("CC", "cc"),
            "-std=c11",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fno-strict-aliasing",
            *flags,
            "-o",
            str(folder / "try"),
            *sources,
            "-lm",
        ],
        check=True,
    )
    p = subprocess.run([str(folder / "try")], capture_output=True, text=True)
    assert p.returncode == 0, f"status {p.returncode}: {p.stderr[-500:]}"
    return p.stdout.split("\n")[:-1]


def near(lines, wanted, what):
    got = np.array([float(line) for line in lines])
    assert got.shape == (len(wanted),), f"{what}: {len(got)} numbers, {len(wanted)} wanted"
    error = np.abs(got - np.array(wanted)).max()
    assert error < 2e-6, f"{what}: {error} off"


def make(tool, what, folder, *more):
    p = subprocess.run([tool, what, str(folder), *more], capture_output=True, text=True)
    return p.returncode, p.stderr


def check_learner(tool, at):
    wanted, w, speed = learned()
    said = None
    for target, flags in [("c", SANITIZED), ("c:c99", [])]:
        folder = at / f"learner_{len(target)}"
        assert make(tool, "learner", folder, target) == (0, "")
        lines = program(folder, LEARN, *flags)
        half = len(lines) // 2
        assert lines[:half] == lines[half:], "not the same after reset"
        near(lines[:44], wanted, target)
        states = [line.split() for line in lines[44:half]]
        assert [s[1:4] for s in states] == [
            ["w1", "2", "120"],
            ["w2", "2", "60"],
            ["w1.speed", "2", "120"],
            ["w2.speed", "2", "60"],
            ["steps", "0", "8"],
        ], states
        near(
            [s[4] for s in states],
            [w[0][0, 0], w[1][0, 0], speed[0][0, 0], speed[1][0, 0], 20],
            "states",
        )
        said = said or lines
    kernels = (folder / "model_kernels.h").read_text()
    names = [
        line.split("(")[0].split()[-1] for line in kernels.split("\n") if line.startswith("void")
    ]
    assert len(names) == len(set(names)), "two kernels of one name"


def check_decoder(tool, at):
    assert make(tool, "decoder", at / "decoder") == (0, "")
    near(program(at / "decoder", DECODE, *SANITIZED), decoded(), "decoder")


def check_states(tool, at):
    wanted, copies = stated()
    for target in ["c", "c:c99"]:
        folder = at / f"states_{len(target)}"
        assert make(tool, "states", folder, target) == (0, "")
        near(program(folder, STATES, *SANITIZED), wanted, target)
        n = (folder / "model.c").read_text().count(', "copy")')
        assert n == copies, f"{n} states are copied"


def check_machines(tool, at):
    """A bundle for several machines: each of them, by name, and the one that init takes."""
    if os.uname().machine != "x86_64":
        return
    machines = ["x86-64-v2"]
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    machines += ["x86-64-v3"] if " avx2 " in flags and " fma " in flags else []
    shown = [f'-DTARGET="{name}"' for name in machines]
    for what, text, wanted in (
        ("learner", LEARN, None),
        ("decoder", DECODE, decoded()),
        ("states", STATES, stated()[0]),
    ):
        folder = at / what
        assert make(tool, what, folder, "c:x86-64-v2,x86-64-v3") == (0, "")
        (folder / "try.c").write_text(text)
        run = ["make", "-s", "-C", str(folder), "libmodel.a", "CFLAGS=-O1 -Wall -Wextra -Werror"]
        subprocess.run(run, check=True)
        for target in shown if what == "learner" else ["-O1"]:
            cc = [os.environ.get("CC", "cc"), "-std=c11", "-O1", "-fno-strict-aliasing", target]
            cc += [*SANITIZED, "-o", "try", "try.c", "libmodel.a", "-lm"]
            subprocess.run(cc, check=True, cwd=folder)
            p = subprocess.run([str(folder / "try")], capture_output=True, text=True)
            assert p.returncode == 0, f"{what} {target}: status {p.returncode}: {p.stderr[-500:]}"
            lines = p.stdout.split("\n")[:-1]
            near(lines[:44] if what == "learner" else lines, wanted or learned()[0], what)
            if what == "learner":
                assert lines[: len(lines) // 2] == lines[len(lines) // 2 :], "not after reset"
                assert [s.split()[1] for s in lines[44 : len(lines) // 2]][:2] == ["w1", "w2"]


def check_sched(tool, at):
    files = [at / "one.sched", at / "two.sched"]
    assert make(tool, "learner", at / "a", "c", "--save", str(files[0])) == (0, "")
    text = files[0].read_text()
    assert "\ntarget c function train_step\n" in text and "target c\n" in text, (
        "no section a function"
    )
    assert make(tool, "learner", at / "b", "c", "--sched", str(files[0])) == (0, "")
    for f in (at / "a").rglob("*"):
        if f.is_file():
            assert f.read_bytes() == (at / "b" / f.relative_to(at / "a")).read_bytes(), (
                f"{f.name} differs"
            )


def check_refused(tool, at):
    status, told = make(tool, "refused", at / "refused")
    assert status == 3 and told == "function 'other' reads input 'x' of function 'run'\n", (
        status,
        told,
    )
    assert not (at / "refused").exists()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--make", required=True)
    tool, wrong = parser.parse_args().make, 0
    checks = [
        check_learner,
        check_decoder,
        check_states,
        check_machines,
        check_sched,
        check_refused,
    ]
    for check in checks:
        with tempfile.TemporaryDirectory() as at:
            try:
                check(tool, pathlib.Path(at))
            except (AssertionError, subprocess.CalledProcessError) as e:
                print(f"{check.__name__}: {e}")
                wrong += 1
    print(f"functions: {wrong} of {len(checks)} checks are wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
