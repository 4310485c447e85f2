#!/usr/bin/env python3
"""A prompt gives the same bits however it is divided into calls of run().

    chunks.py --ingot build/ingot [--target c --target c:native] [--precision q8 ..]     12 s

A tiny model takes a prompt of 90 tokens one by one, then in chunks of 2, 3, 4, 7, 33 and 90: after each call the
logits are, to the bit, those that the same token had when it came alone. What is added up in an order that depends on
how many tokens a call has would show, and so would one that depends on how many there are in all. Without --target and
--precision: plain C with q16, AVX2 with f32 and caches of f16 and of bytes.
Exit status 77, skipped: there is no numpy.
"""

import argparse
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

try:
    import numpy  # noqa: F401  (decoder.py needs it)
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import decoder

PROMPT, CHUNKS = 90, (2, 3, 4, 7, 33, 90)
DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
static int32_t ids[PROMPT];
static float alone[PROMPT][WORDS], logits[WORDS];
static model_ctx ctx;
static int take(int at, int n, float *to)
{
    const model_inputs in = {.ids = ids + at, .ids_dims = {n}};
    model_outputs out = {.logits = to};
    return model_run(&ctx, &in, &out);
}
static int compare(int chunk)
{
    double most = 0, range = 0;
    int calls = 0, equal = 0;
    model_reset(&ctx);
    for (int at = 0; at < PROMPT; at += chunk, calls++) {
        const int n = at + chunk < PROMPT ? chunk : PROMPT - at;
        const float *want = alone[at + n - 1];
        if (take(at, n, logits))
            exit(2);
        equal += !memcmp(logits, want, sizeof logits);
        for (int i = 0; i < WORDS; i++) {
            const double apart = logits[i] > want[i] ? logits[i] - want[i] : want[i] - logits[i];
            most = apart > most ? apart : most;
            range = want[i] > range ? want[i] : -want[i] > range ? -want[i] : range;
        }
    }
    printf(" %d:", chunk);
    if (equal == calls)
        printf(" same");
    else
        printf(" %d of %d (%.0e)", equal, calls, most / range);
    return equal < calls;
}
int main(int argc, char **argv)
{
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    int failed = 0;
    if (model_init(&ctx, &config))
        return 1;
    for (int i = 0; i < PROMPT; i++)
        ids[i] = (i * 37 + i * i) % WORDS;
    for (int i = 0; i < PROMPT; i++)
        if (take(i, 1, alone[i]))
            return 2;
    for (int i = 1; i < argc; i++)
        failed |= compare(atoi(argv[i]));
    puts("");
    return failed ? 3 : 0;
}
"""


def program(ingot, model, folder, target, precision, kv):
    command = [ingot.resolve(), "compile", model, "-o", folder, "-q", "--weights", "array"]
    command += ["--target", target, "--precision", precision, "--kv", kv]
    command += ["--dim", f"n=1..{PROMPT}", "--dim", f"past=0..{PROMPT}"]
    subprocess.run([str(c) for c in command], check=True, stderr=subprocess.DEVNULL)
    defines = f"#define PROMPT {PROMPT}\n#define WORDS {decoder.WORDS}\n"
    (folder / "try.c").write_text(defines + DRIVER)
    march = {"c": [], "c:native": ["-march=native"]}.get(target, [f"-march={target[2:]}"])
    flags = ["-std=c11", "-O1", "-Wno-psabi", "-ffp-contract=off", *march]
    sources = [str(f) for f in sorted(folder.glob("*.c"))]
    compiler = os.environ.get("CC", "cc").split()
    made = str(folder / "try")
    subprocess.run(
        [*compiler, *flags, f"-I{folder}", *sources, "-lm", "-pthread", "-o", made], check=True
    )
    return made


def cases(targets, precisions):
    if targets or precisions:
        return [(t, p, "f16") for t in targets or ["c"] for p in precisions or ["q8", "q16", "f32"]]
    x86 = platform.machine() == "x86_64" and "avx2" in pathlib.Path("/proc/cpuinfo").read_text()
    return [("c", "q16", "f16"), *[("c:x86-64-v3", "f32", kv) for kv in ("f16", "q8") if x86]]


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--target", action="append")
    p.add_argument("--precision", action="append")
    a = p.parse_args()
    decoder.LAYERS, failed = 2, False
    decoder.COMMON["context_length"] = 2 * PROMPT
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        model = decoder.Model("llama", 5, kinds=("Q8_0", "Q4_K", "Q4_0"))
        path = model.write(scratch / "m.gguf")
        for target, precision, kv in cases(a.target, a.precision):
            folder = scratch / f"{target.replace(':', '_')}_{precision}_{kv}"
            made = program(a.ingot, path, folder, target, precision, kv)
            done = subprocess.run([made, *map(str, CHUNKS)], stdout=subprocess.PIPE, text=True)
            print(f"{target} {precision}, cache of {kv}:{done.stdout.rstrip()}", flush=True)
            failed |= done.returncode != 0
    sys.exit("a prompt has other bits in other chunks" if failed else 0)


if __name__ == "__main__":
    main()
