#!/usr/bin/env python3
"""Several sequences in one run: each slot goes on where it is, whatever the others do.

    slots.py --ingot build/ingot      5 s

A tiny model with two slots beside numpy: prompts of several lengths come together and alone, in chunks, some slots
have none; sequences end, are cut and begin anew while others go on; a slot that is full makes the run
end with a status, after which the others go on. And beside itself: what run() gives for a sequence are the same bits
in any chunks, in any slot, whatever the others do.
Exit status 77, skipped: there is no numpy.
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import decoder

SLOTS, CHUNK, PAST = 2, 6, 24
# of the range of the logits, with activations of 8 bits: at half of the positions, and at any, where
# a key's large score may change sides. Another sequence's logits are off by 0.5.
NEAR, FAR = 1e-2, 0.1
DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
static float logits[2][WORDS];
/* an idle slot is left out */
#define SLOT(i) .ids_##i = n[i] ? ids[i] : NULL, .ids_##i##_dims = {n[i]}
static int keep(model_ctx *ctx, int slot, int64_t n)
{
    return slot ? model_keep_past_1(ctx, n) : model_keep_past_0(ctx, n);
}
/* "r 2 ID ID 1 ID": a run with tokens of each slot; "d ..": the same by decode(); "k SLOT N": keep */
int main(void)
{
    static int32_t ids[2][64];
    int64_t n[2];
    char what;
    model_ctx ctx;
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    if (model_init(&ctx, &config))
        return 1;
    while (scanf(" %c", &what) == 1) {
        int slot, count, status;
        if (what == 'k') {
            if (scanf("%d %d", &slot, &count) != 2 || keep(&ctx, slot, count))
                return 2;
            continue;
        }
        for (int i = 0; i < 2; i++) {
            if (scanf("%d", &count) != 1)
                return 3;
            n[i] = count;
            for (int k = 0; k < count; k++)
                if (scanf("%d", &ids[i][k]) != 1)
                    return 3;
        }
        if (what == 'r') {
            const model_inputs in = {SLOT(0), SLOT(1)};
            model_outputs out = {.logits = &logits[0][0]};
            status = model_run(&ctx, &in, &out);
        } else {
            const model_decode_inputs in = {SLOT(0), SLOT(1)};
            model_decode_outputs out = {.logits = &logits[0][0]};
            status = model_decode(&ctx, &in, &out);
        }
        printf("%d %lld %lld\n", status, (long long)model_length_past_0(&ctx),
               (long long)model_length_past_1(&ctx));
        for (int i = 0; i < 2 * WORDS && !status; i++)
            printf("%.9g ", logits[i / WORDS][i % WORDS]);
        printf("\n");
    }
    return 0;
}
"""


class Model(decoder.Model):
    """Whose layers do not amplify what rounding does."""

    def matrix(self, name, rows, columns, size=0.12):
        super().matrix(name, rows, columns, size if size > 0.12 else size / 2)


def schedule(rng, decode):
    """Commands, and of each run: whether it has room, the sequences after it, which slots came."""
    commands, runs, has = [], [], [[] for _ in range(SLOTS)]
    for _ in range(40):
        for i in range(SLOTS):
            if has[i] and rng.random() < 0.15:
                keep = rng.choice((0, len(has[i]) // 2))
                has[i] = has[i][:keep]
                commands.append(f"k {i} {keep}")
        most = rng.choice((1, CHUNK))
        new = [[] if rng.random() < 0.3 else [rng.randrange(decoder.WORDS)] for _ in has]
        for ids in new:
            while ids and len(ids) < most and rng.random() < 0.7:
                ids.append(rng.randrange(decoder.WORDS))
        if not any(new):
            continue
        room = all(len(h) <= PAST for h in has)
        words = " ".join(f"{len(ids)} {' '.join(map(str, ids))}" for ids in new)
        commands.append(("d " if most == 1 and decode else "r ") + words)
        if room:
            has = [h + ids for h, ids in zip(has, new)]
        runs.append((room, [list(h) for h in has], [bool(ids) for ids in new]))
        if not room:
            full = max(range(SLOTS), key=lambda i: len(has[i]))
            commands.append(f"k {full} 0")
            has[full] = []
    return commands, runs


def alone(commands, runs, rng):
    """The same sequences, some of them, each in one slot and in other chunks: (slot, run) of each."""
    same = []
    for i in range(0, len(runs), 3):
        room, has, came = runs[i]
        for slot in range(SLOTS):
            if not (room and came[slot]) or len(has[slot]) > PAST + 1:
                continue
            at, ids, other = 0, has[slot], rng.randrange(SLOTS)
            commands += [f"k {k} 0" for k in range(SLOTS)]
            while at < len(ids):
                part = ids[at : at + rng.randint(1, CHUNK)]
                at += len(part)
                words = ["0"] * SLOTS
                words[other] = f"{len(part)} {' '.join(map(str, part))}"
                commands.append("r " + " ".join(words))
                same.append((slot, i, other) if at == len(ids) else None)
    return same


def results(program, commands):
    """Of each run: status and lengths, logits [slots, words] or None."""
    done = subprocess.run([program], input="\n".join(commands), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"status {done.returncode} of the driver")
    lines = done.stdout.split("\n")
    return [
        (list(map(int, a.split())), np.array(b.split(), float).reshape(-1, decoder.WORDS))
        for a, b in zip(lines[::2], lines[1::2])
    ]


def beside_numpy(m, got, runs):
    errors = []
    for i, (((status, *lengths), logits), (room, has, came)) in enumerate(zip(got, runs)):
        if (status == 0) != room or lengths != [len(h) for h in has]:
            sys.exit(f"run {i}: status {status}, lengths {lengths}, of {[len(h) for h in has]}")
        for slot in range(SLOTS):
            if room and came[slot]:
                want = m.logits(has[slot])[-1]
                errors.append(abs(logits[slot] - want).max() / np.ptp(want))
    full = sum(not room for room, _, _ in runs)
    middle, worst = np.median(errors), max(errors)
    print(f"{len(runs)} runs, {full} of them full: errors {middle:.1e}, at most {worst:.1e}")
    if not (middle < NEAR and worst < FAR and full):
        sys.exit("the slots are not what their sequences are alone")


def bundle(m, ingot, folder, precision, target):
    out = folder / "out"
    command = [ingot.resolve(), "compile", m.write(folder / "m.gguf"), "-o", out, "-q"]
    command += ["--slots", SLOTS, "--dim", f"n=1..{CHUNK}", "--dim", f"past=0..{PAST}"]
    command += ["--weights", "array", "--precision", precision, "--target", target]
    subprocess.run([str(c) for c in command], check=True, stderr=subprocess.DEVNULL)
    (out / "try.c").write_text(DRIVER.replace("WORDS", str(decoder.WORDS)))
    flags = ["-std=c11", "-O0", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
    flags += ["-march=native", "-Wno-psabi"] if target == "c:native" else []
    compiler = os.environ.get("CC", "cc").split()
    sources = [str(f) for f in sorted(out.glob("*.c"))]
    subprocess.run(
        [*compiler, *flags, f"-I{out}", *sources, "-lm", "-o", str(out / "try")], check=True
    )
    return out / "try"


def verify(ingot, model):
    """Every slot is an input of its own for commands that draw inputs, too; a warning comes once."""
    command = [ingot.resolve(), "verify", model, "--interpret", "--slots", SLOTS, "--dim", "n=2"]
    done = subprocess.run(
        [str(c) for c in (*command, "--dim", "past=0..8", "--target", "c")],
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode or done.stdout.count("it has no list of tokens") != 1:
        sys.exit(f"verify: status {done.returncode}: {done.stdout}")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--target", default="c")
    p.add_argument("--precision", default="q8")
    a = p.parse_args()
    decoder.LAYERS = 2
    with tempfile.TemporaryDirectory() as folder:
        m = Model("qwen3", 5, kinds=("Q8_0", "Q4_K"))
        program = bundle(m, a.ingot, pathlib.Path(folder), a.precision, a.target)
        verify(a.ingot, pathlib.Path(folder) / "m.gguf")
        commands, runs = schedule(random.Random(3), True)
        beside_numpy(m, results(program, commands), runs)
        commands, runs = schedule(random.Random(4), False)
        same = alone(commands, runs, random.Random(5))
        got = results(program, commands)
        beside_numpy(m, got[: len(runs)], runs)
        pairs = [
            (got[i][1][slot], got[len(runs) + k][1][other])
            for k, (slot, i, other) in enumerate(x or (0, 0, 0) for x in same)
            if same[k]
        ]
        equal = sum((x == y).all() for x, y in pairs)
        apart = max(abs(x - y).max() / np.ptp(x) for x, y in pairs)
        print(f"alone: {equal} of {len(pairs)} have the same bits (others: {apart:.1e})")
        if len(pairs) < 10 or equal < len(pairs):
            sys.exit("a sequence has other bits in other chunks, or beside others")


if __name__ == "__main__":
    main()
