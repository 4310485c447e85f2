#!/usr/bin/env python3
"""Several sequences of a decoder for CUDA compute what numpy computes for each alone.

    cuda_slots.py --ingot build/ingot             kernels as C++ beside a stub of the driver (tests/emulator), 60 s
    cuda_slots.py --ingot build/ingot --device    on the GPU of this machine

A tiny file with three slots: prompts of several lengths come together and alone, tokens by decode() while some slots are idle, or have
nothing yet; one sequence is cut, and one begins anew, while others go on. Weights are f16 and packed, keys and values f16 and bytes, the
GPU large and of few processors. A step of decode() has one row of each slot: its products are those of units whose columns are slots,
attention of all slots is one launch.

Exit status 77, skipped: there is no Python with numpy, or nothing that compiles C++.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "emulator"))
try:
    import emulate
    import numpy as np
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)
import decoder

SLOTS, WORDS, PAST, NEAR, KEPT = 3, 256, 1100, 2e-3, 1e-2
FEW_PROCESSORS = "target = cuda:sm_90a\nprocessors = 2\nclose = 2\ngroup = 64\n"
# family, type of weights, of keys and values, target file
CASES = (
    ("llama", "F16", "f16", ""),
    ("llama", "Q4_0", "q8", ""),
    ("smollm3", "F16", "f16", FEW_PROCESSORS),
)
# columns of these units are slots; eight attentions are one launch
UNIT = "igrt_wgmma8_dot_f16<"
ATTENTION = re.compile(r"__cluster_dims__\(\d, 1, 1\) void model_k\w+_with_k\w+")

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
static float logits[SLOTS * WORDS];
static int32_t ids[SLOTS][64];
#define SLOT(i) .ids_##i = ids[i], .ids_##i##_dims = {n[i]}
/* "r 2 ID ID 0 1 ID": a run with tokens of each slot; "d ..": the same by decode(); "k SLOT N": keep */
int main(int argc, char **argv)
{
    static model_ctx ctx;
    static model_status (*const keep[])(model_ctx *, int64_t) = {model_keep_past_0, model_keep_past_1, model_keep_past_2};
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    if (model_init(&ctx, &config))
        return 1;
    for (int a = 1; a < argc;) {
        const char what = *argv[a++];
        int64_t n[SLOTS];
        int status;
        if (what == 'k') {
            if (keep[atoi(argv[a])](&ctx, atoi(argv[a + 1])))
                return 2;
            a += 2;
            continue;
        }
        for (int s = 0; s < SLOTS; s++) {
            n[s] = atoi(argv[a++]);
            for (int i = 0; i < n[s]; i++)
                ids[s][i] = atoi(argv[a++]);
        }
        if (what == 'r') {
            const model_inputs in = {SLOT(0), SLOT(1), SLOT(2)};
            model_outputs out = {.logits = logits};
            status = model_run(&ctx, &in, &out);
        } else {
            const model_decode_inputs in = {SLOT(0), SLOT(1), SLOT(2)};
            model_decode_outputs out = {.logits = logits};
            status = model_decode(&ctx, &in, &out);
        }
        if (status)
            return 3;
        for (int s = 0; s < SLOTS; s++)
            for (int i = 0; i < WORDS && n[s]; i++)
                printf("%.9g\n", logits[s * WORDS + i]);
    }
    model_deinit(&ctx);
    return 0;
}
"""


def tokens(seed, n):
    return [(i * 37 + 11 * seed + 5) % WORDS for i in range(n)]


def script():
    """Words of the program, and the sequence whose last logits each row that it prints is"""
    now, words, rows = [[] for _ in range(SLOTS)], [], []

    def step(what, *new):
        words.append(what)
        for s, ids in enumerate(new):
            words.extend(str(x) for x in [len(ids), *ids])
            now[s] += ids
            if ids:
                rows.append(list(now[s]))

    def keep(slot, n):
        words.extend(["k", str(slot), str(n)])
        del now[slot][n:]

    step("d", [7], [], [9])  # the second has nothing yet
    step("r", tokens(0, 11), [], tokens(2, 27))
    step("d", [30], [], [31])
    step("d", [], [32], [])
    step("d", [33], [34], [35])
    keep(0, 5)
    step("d", [36], [37], [])
    keep(2, 0)
    step("r", [], tokens(4, 3), tokens(5, 19))
    step("d", [38], [39], [40])
    return words, rows


def build(a, case, at):
    family, kind, kept, how = case
    model = decoder.Model(family, 3, WORDS, (kind,), 2)
    target = "cuda:native" if a.device else "cuda:sm_90a"
    if how:
        target = at / "own.target"
        target.write_text(how)
    what = [
        a.ingot,
        "compile",
        model.write(at / "model.gguf"),
        "-o",
        at / "cuda",
        "-q",
        "--no-check",
    ]
    what += ["--target", target, "--slots", SLOTS, "--dim", "n=1..32", "--dim", f"past=0..{PAST}"]
    what += ["--weights", "array", "--kv", kept]
    subprocess.run([str(w) for w in what], check=True)
    return model, at / "cuda"


def check_text(bundle, case):
    text = (bundle / "model_kernels.cu").read_text()
    assert case[1:] != ("F16", "f16", "") or UNIT in text, (
        f"{case}: no product has slots as columns"
    )
    if case[2] == "f16" and not case[3]:
        assert ATTENTION.search(text), f"{case}: attention of the slots is several launches"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ingot", required=True)
    p.add_argument("--device", action="store_true")
    a = p.parse_args()
    words, rows = script()
    for case in CASES:
        if a.device and case[3]:
            continue
        with tempfile.TemporaryDirectory(prefix="cuda_slots_") as at:
            at = pathlib.Path(at)
            model, bundle = build(a, case, at)
            if not a.device:
                check_text(bundle, case)
            flags = [f"-DWORDS={WORDS}", f"-DSLOTS={SLOTS}"]
            got = emulate.printed(bundle, DRIVER, at, not a.device, flags, words)
        got = np.array(got).reshape(len(rows), WORDS)
        want = np.stack([model.logits(ids)[-1] for ids in rows])
        apart = abs(got - want).max(1) / np.ptp(want, 1)
        most = KEPT if case[2] == "q8" else NEAR
        print(*case[:3], "few processors" if case[3] else "", f"{apart.max():.1e}", flush=True)
        assert apart.max() < most, f"{case}: {apart} of the range"


if __name__ == "__main__":
    main()
