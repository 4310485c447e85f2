#!/usr/bin/env python3
"""A decoder for CUDA, whose run() and decode() share weights and caches, computes what numpy computes.

    cuda.py --ingot build/ingot             kernels as C++ beside a stub of the driver (tests/emulator), 12 s
    cuda.py --ingot build/ingot --device    on the GPU of this machine

A tiny file of types that have kernels of their own for one token: prompts by run(), tokens by decode(), the logits after each; then a
context that has forgotten some; the graph of a step is updated and not recorded again. The emulator has a GPU of few processors besides,
which the tiny file fills: norms are in the kernels of the products, a gate's and what it opens are one; two devices, which have
the caches by heads; and rows of digits that are too short for a warp.

Exit status 77, skipped: there is no Python with numpy, or nothing that compiles C++.
"""

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
from decoder import WIDTH

WORDS, PAST, NEAR = 2304, 1100, 2e-3
PROMPT = [3, 17, 90, 4, 4, 55, 21, 8, 70, 33, 12, 61, 1500, 7]
FEW = 6  # of them come by run()
FEW_WORDS = 256
LONG = [(i * 37 + 11) % FEW_WORDS for i in range(142)]  # in blocks of keys, by boxes
FEW_PROCESSORS = "target = cuda:sm_90a\nprocessors = 2\nclose = 2\ngroup = 64\n"
# by which products as small as these are worth an exchange: caches lie on two devices, by heads
SLOW = FEW_PROCESSORS + "launch = 1\nrate.tile = 0.01\n"
KEPT, WIDE = "keys and values in bytes", "keys and values in bytes, f32"
SHORT, SHORT_WIDTH = "rows of 18 blocks", 576
HOW = {
    "few processors": FEW_PROCESSORS,
    "two devices": SLOW,
    "long prompts": "",
    KEPT: "",
    WIDE: "",
    SHORT: "",
}
# a loop over blocks of keys, of which boxes bring as many as a run has; two sums of one kernel
KEYS = re.compile(
    r"make_map\(gpu, &m2, mem\[\w+\], 0, 2, 3, \(const uint64_t\[\]\)\{\d+, \(uint64_t\)"
)
TWO_SUMS = re.compile(r"igrt_wgmma\w+ s0 = .*\n *igrt_wgmma\w+ s1 = ")
GATED = re.compile(r"/\* \d+: .*ffn_up.*ffn_gate")  # one step has both
KINDS = ("F16", "Q4_0", "Q8_0")
# how kernels of one token read weights where a processor has few items: before they wait for others
HELD = "igrt_held_u16(h"
# queries and keys of a layer, turned by rope: one launch
TOGETHER = re.compile(r"launch\(gpu, ctx->kernel\[K\d\d_\w+_WITH_K\d\d")
# how a warp's items join what they have of several rows
FEW_ITEMS = re.compile(r"igrt_across_add_f32\(\w+, (8|16)\)")
# how groups of a cluster join what each has of a token's attention
SHARED = "igrt_cluster_at(a"
# bytes of a cache and their scales become f16, eight for each item
EIGHT = re.compile(r" a0 out f16.*\n.* a1 in i8.*\n.* a2 in f16.*\n \* UPCAST i3 8\n")

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
static float logits[WORDS];
static void show(void)
{
    for (int i = 0; i < WORDS; i++)
        printf("%.9g\n", logits[i]);
}
/* FEW, then ids */
int main(int argc, char **argv)
{
    static model_ctx ctx;
    static int32_t ids[256];
    const int few = atoi(argv[1]), n = argc - 2;
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    for (int i = 0; i < n; i++)
        ids[i] = atoi(argv[i + 2]);
    if (model_init(&ctx, &config))
        return 1;
    model_inputs in = {.ids = ids, .ids_dims = {few}};
    model_outputs out = {.logits = logits};
    if (model_run(&ctx, &in, &out))
        return 2;
    show();
    for (int turn = 0; turn < 2; turn++) {
        for (int i = turn ? n - 2 : few; i < n; i++) {
            const model_decode_inputs one = {.ids = ids + i};
            model_decode_outputs got = {.logits = logits};
            if (model_decode(&ctx, &one, &got) || model_length_past(&ctx) != i + 1)
                return 3;
            show();
        }
        if (model_keep_past(&ctx, n - 2))
            return 4;
    }
    model_deinit(&ctx);
    return 0;
}
"""


def logits(a, m, at, how):
    """What the program prints: [tokens, WORDS]"""
    bundle, target, path = at / "cuda", a.target, m.write(at / "model.gguf")
    if HOW.get(how):
        target = at / "own.target"
        target.write_text(HOW[how])
    what = [a.ingot, "compile", path, "-o", bundle, "--target", target, "-q", "--no-check"]
    two = how == "two devices"
    what += ["--devices", "2", "--parallel", "tensor"] if two else []
    what += ["--kv", "q8"] if how in (KEPT, WIDE) else []
    what += ["--precision", "f32"] if how == WIDE else []
    prompts = how == "long prompts"
    dims = [
        "--dim",
        f"n=1..{512 if prompts else 16}",
        "--dim",
        f"past=0..{PAST}",
        "--weights",
        "array",
    ]
    subprocess.run([*what, *dims], check=True)
    kernels = (bundle / "model_kernels.cu").read_text()
    assert how != "few processors" or HELD in kernels, "weights come behind the wait"
    shared = how in ("", KEPT) and "sm_90" in target
    assert not shared or SHARED in kernels, "one group has all keys of a head"
    assert how != KEPT or len(EIGHT.findall(kernels)) > 1, "an item for each byte"
    steps = (bundle / "model_decode.c").read_text()
    assert "igrt_gpu_keeps(gpu)" in steps
    assert not two or "igrt_gpus_cross(" in steps, "nothing crosses"
    assert not two or "igrt_gpu_copy(" not in steps, "caches cross"
    assert not two or "_WITH_K" in steps, "each kernel of a device is a launch of its own"
    assert how != "few processors" or len(TOGETHER.findall(steps)) == m.layers, (
        "queries and keys are launches of their own"
    )
    assert how != "few processors" or len(GATED.findall(steps)) == m.layers, (
        "gates have kernels of their own"
    )
    assert how != SHORT or FEW_ITEMS.search(kernels), "a warp has one row"
    assert not prompts or "int64_t end_0 = " in (bundle / "model.c").read_text(), "q, k, v apart"
    assert not prompts or KEYS.search((bundle / "model.c").read_text()), "keys come by no boxes"
    assert not prompts or len(TWO_SUMS.findall(kernels)) == 3, "queries, keys, gates: one sum each"
    ids = [str(i) for i in (LONG if prompts else PROMPT)]
    few, words = (len(ids) - 2, FEW_WORDS) if prompts else (FEW, WORDS)
    got = emulate.printed(bundle, DRIVER, at, not a.device, [f"-DWORDS={words}"], [str(few), *ids])
    return np.array(got).reshape(-1, words)


def main():
    a = emulate.arguments("cuda:sm_90a")
    # where activations are rounded otherwise than numpy does, some bytes of the cache are others
    cases = [(kind, "") for kind in KINDS] + [("Q4_0", KEPT)]
    cases += [("F16", how) for how in HOW if not a.device and how not in (KEPT, SHORT)]
    cases += [(kind, SHORT) for kind in ("Q4_1", "Q8_0")]
    for kind, how in cases:
        with tempfile.TemporaryDirectory(prefix="ingot_llm_cuda_") as at:
            at = pathlib.Path(at)
            # whose heads turn whole; a cache of bytes has elements of a head in blocks as they lie
            long, bytes_kept = how == "long prompts", how in (KEPT, WIDE)
            family = "granite" if long else "qwen3" if bytes_kept else "smollm3" if how else "llama"
            words, layers = (FEW_WORDS, 1) if long else (WORDS, decoder.LAYERS)
            decoder.CACHE = "q8" if bytes_kept else np.float16
            width = SHORT_WIDTH if how == SHORT else WIDTH
            m = decoder.Model(family, 3, words, (kind,), layers, width)
            got = logits(a, m, at, how)
            want = m.logits(LONG)[len(LONG) - 3 :] if long else m.logits(PROMPT)[FEW - 1 :]
            want = np.concatenate([want, want[-2:]])
            worst = abs(got - want).max() / (want.max() - want.min())
            assert worst < NEAR, f"{kind}: {worst:.1e} of the range"
            print(
                f"{kind}{', ' * bool(how)}{how}: {len(want)} tokens, at most {worst:.1e} of the range"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
