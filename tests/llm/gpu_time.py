#!/usr/bin/env python3
"""How long a language model's token and its prompts take on this machine's GPU.

    gpu_time.py --ingot build/ingot 1b:F16 1b:Q4_0 8b:F16 [--past 2048,8192] [--prompts 128,512,2048] [--devices 1,2] [--sequences 8] [--json FILE]

A file of random weights in the shape of Llama 3.2 1B, Llama 3 8B, SmolLM2 135M (135m) or Qwen2 0.5B (0.5b) is made in --folder (as
large as such a file is), compiled and linked. Told are, in milliseconds, medians of several:

    token     the graph of one token alone, with so many tokens in the cache; its share is the time in which a kernel that only
              streams bytes into shared memory would read the weights and the cache
    call      model_decode() with its logits on the host
    prompt    model_run() of so many tokens, from an empty cache

With --devices 1,2 the same of two GPUs (--parallel tensor), how far their logits are from one's, in parts of the range of these,
and whether they are the same bits in each of the calls.

With --sequences 8 also tokens of so many sequences at once (--slots), each with so many tokens in its cache: how often the time of
one's they take ("of_one"), and how far the logits of any are from what the same tokens have alone.

No measurement is a test: nothing is compared.  Needs numpy, a C compiler, CUDA's driver and nvcc (for the stream alone).
"""

import argparse
import concurrent.futures
import json
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
try:
    import numpy as np
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)
import gguf_file as gguf

SHAPES = {
    "1b": dict(width=2048, layers=16, heads=32, kv=8, head=64, ffn=8192, words=128256, tied=True),
    "8b": dict(width=4096, layers=32, heads=32, kv=8, head=128, ffn=14336, words=128256),
    "135m": dict(width=576, layers=30, heads=9, kv=3, head=64, ffn=1536, words=49152, tied=True),
    "0.5b": dict(width=896, layers=24, heads=14, kv=2, head=64, ffn=4864, words=151936, tied=True),
    "tiny": dict(width=512, layers=2, heads=8, kv=2, head=64, ffn=1024, words=2048, tied=True),
}
BLOCK = 4 << 20  # bytes of random weights, which files repeat
STEP = 2048  # tokens of a prompt at once

DRIVER = r"""
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "model_igrt.h"
#include "model.h"
static float logits[SLOTS * WORDS], before[SLOTS * WORDS];
static int32_t ids[STEP];
static unsigned char arena[MODEL_ARENA_BYTES(1) + 64];
static model_ctx ctx;
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
static void check(int status, const char *what)
{
    if (status) {
        fprintf(stderr, "%s: status %d\n", what, status);
        exit(1);
    }
}
static model_status (*const keep[])(model_ctx *, int64_t) = {KEEPS};
static int64_t (*const length[])(const model_ctx *) = {LENGTHS};
static void keep_all(int64_t n)
{
    for (int i = 0; i < SLOTS; i++)
        check(keep[i](&ctx, n), "keep_past");
}
/* of one slot; the others have none */
static void prompt_of(int slot, int64_t n)
{
    const model_inputs in = {PROMPT_INPUTS};
    (void)slot;
    model_outputs out = {.logits = logits};
    check(model_run(&ctx, &in, &out), "run");
}
static void prompt(int64_t n)
{
    for (int i = 0; i < SLOTS; i++)
        prompt_of(i, n);
}
static void token(int first)
{
    const model_decode_inputs in = {TOKEN_INPUTS};
    model_decode_outputs out = {.logits = logits};
    check(model_decode(&ctx, &in, &out), "decode");
}
/* For each line of stdin, how long the graph of a prompt of n took each of 12 times
 * (prompt_turns.py). */
static void serve(int n)
{
    char line[16];
    for (int i = 0; i < 3; i++) {
        keep_all(0);
        prompt(n);
    }
    for (puts("ready"); !fflush(stdout) && fgets(line, sizeof line, stdin); puts(""))
        for (int k = 0; k < 12; k++) {
            check(igrt_cu_finish(&ctx.gpu), "finish");
            const double begin = now();
            check(igrt_cu_replay(&ctx.gpu, &ctx.record), "replay");
            check(igrt_cu_finish(&ctx.gpu), "finish");
            printf("%.6f ", now() - begin);
        }
}
/* weights, a file for logits, then numbers: of tokens in the cache, or -n for a prompt of n; or
 * "serve" and n */
int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    FILE *f = fopen(argv[1], "rb"), *results = fopen(argv[2], "wb");
    unsigned char *w = aligned_alloc(4096, (MODEL_WEIGHTS_BYTES + 4095) / 4096 * 4096);
    if (!f || !results || !w || fread(w, 1, MODEL_WEIGHTS_BYTES, f) != MODEL_WEIGHTS_BYTES)
        return 2;
    unsigned char *at = arena + (64 - (uintptr_t)arena % 64) % 64;
    model_config config = {.struct_size = sizeof config, .arena = at, .arena_bytes = MODEL_ARENA_BYTES(1),
                           .weights = w, .weights_bytes = MODEL_WEIGHTS_BYTES};
    check(model_init(&ctx, &config), "init");
    for (int i = 0; i < STEP; i++)
        ids[i] = (i * 7919 + 13) % WORDS;
    if (argc == 5 && !strcmp(argv[3], "serve")) {
        serve(atoi(argv[4]));
        argc = 0;
    }
    for (int i = 3; i < argc; i++) {
        const int n = atoi(argv[i]);
        keep_all(0);
        if (n < 0) {
            for (int k = 0; k < 7; k++) {
                keep_all(0);
                const double begin = now();
                prompt(-n);
                printf("prompt %d %.6f\n", -n, now() - begin);
            }
            continue;
        }
        while (length[0](&ctx) < n)
            prompt(n - length[0](&ctx) < STEP ? n - length[0](&ctx) : STEP);
        for (int k = ROWS; k-- > 1 && SLOTS == 1;) { /* what others have beside this one */
            keep_all(n - 1);
            token(k);
            fwrite(logits, 1, sizeof logits, results);
        }
        for (int k = 0; k < 20; k++) {
            keep_all(n - 1);
            const double begin = now();
            token(0);
            printf("call %d %.6f\n", n, now() - begin);
            if (k && memcmp(logits, before, sizeof logits))
                printf("other bits\n");
            memcpy(before, logits, sizeof logits);
        }
        for (int s = SLOTS; s-- > 0;)
            fwrite(logits + s * WORDS, WORDS, sizeof *logits, results);
        for (int k = 0; k < 9; k++) {
            enum { TURNS = 8 };
            check(igrt_cu_finish(&ctx.gpu), "finish");
            const double begin = now();
            for (int j = 0; j < TURNS; j++)
                check(igrt_cu_replay(&ctx.gpu, &ctx.record_decode), "replay");
            check(igrt_cu_finish(&ctx.gpu), "finish");
            printf("token %d %.6f\n", n, (now() - begin) / TURNS);
        }
    }
    double sum = 0;
    for (int i = 0; i < WORDS; i++)
        sum += logits[i];
    printf("sum %g\n", sum);
    model_deinit(&ctx);
    return fclose(results) != 0;
}
"""

# Bytes to shared memory and no further: blocks of 16 KB, four of them on their way to each processor.
STREAM = r"""
#include <cstdio>
#include <cstdint>
#include <algorithm>
#include <vector>
static const int BYTES = 16384, PLACES = 4;
__device__ uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__global__ void stream(const char *from, long long blocks)
{
    extern __shared__ __align__(128) char place[];
    __shared__ __align__(8) uint64_t filled[PLACES];
    if (threadIdx.x)
        return;
    for (int i = 0; i < PLACES; i++)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&filled[i])));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    long long asked = 0, n = (blocks - blockIdx.x + gridDim.x - 1) / gridDim.x;
    for (long long i = 0; i < n; i++) {
        for (; asked < n && asked < i + PLACES; asked++) {
            const uint32_t token = at(&filled[asked % PLACES]);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(token), "r"(BYTES) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                             at(place + asked % PLACES * BYTES)),
                         "l"(from + (blockIdx.x + asked * gridDim.x) * BYTES), "r"(BYTES), "r"(token)
                         : "memory");
        }
        asm volatile("{ .reg .pred p; A: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra B; bra A; B: }" ::"r"(
                         at(&filled[i % PLACES])),
                     "r"((uint32_t)(i / PLACES & 1))
                     : "memory");
    }
}
int main()
{
    const long long bytes = 4LL << 30;
    char *p;
    cudaMalloc(&p, bytes);
    cudaMemset(p, 1, bytes);
    cudaFuncSetAttribute(stream, cudaFuncAttributeMaxDynamicSharedMemorySize, PLACES * BYTES);
    cudaEvent_t a, b;
    cudaEventCreate(&a);
    cudaEventCreate(&b);
    int processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    std::vector<float> t;
    for (int i = 0; i < 9; i++) {
        float ms;
        cudaEventRecord(a);
        stream<<<processors, 32, PLACES * BYTES>>>(p, bytes / BYTES);
        cudaEventRecord(b);
        cudaEventSynchronize(b);
        cudaEventElapsedTime(&ms, a, b);
        t.push_back(ms);
    }
    std::sort(t.begin(), t.end());
    printf("%f\n", cudaGetLastError() ? 0.0 : bytes / t[4] * 1e-6);
}
"""


def tensors_of(s, kind):
    """name, type, shape"""
    width, q, kv = s["width"], s["heads"] * s["head"], s["kv"] * s["head"]
    yield "token_embd.weight", kind, (s["words"], width)
    yield "output_norm.weight", "F32", (width,)
    if not s.get("tied"):
        yield "output.weight", kind, (s["words"], width)
    for i in range(s["layers"]):
        for name, shape in (
            ("attn_norm", (width,)),
            ("attn_q", (q, width)),
            ("attn_k", (kv, width)),
            ("attn_v", (kv, width)),
            ("attn_output", (width, q)),
            ("ffn_norm", (width,)),
            ("ffn_gate", (s["ffn"], width)),
            ("ffn_up", (s["ffn"], width)),
            ("ffn_down", (width, s["ffn"])),
        ):
            yield f"blk.{i}.{name}.weight", "F32" if len(shape) == 1 else kind, shape


def write(path, s, kind):
    keys = {
        "general.architecture": "llama",
        "llama.block_count": s["layers"],
        "llama.context_length": 16384,
        "llama.embedding_length": s["width"],
        "llama.feed_forward_length": s["ffn"],
        "llama.attention.head_count": s["heads"],
        "llama.attention.head_count_kv": s["kv"],
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 500000.0,
        "llama.rope.dimension_count": s["head"],
    }
    rng = np.random.default_rng(0)
    tensors = list(tensors_of(s, kind))
    _, elements, size = gguf.TYPES[kind]
    rows = BLOCK // size
    block = gguf.random_weights(rng, kind, rows, elements, 0.02)
    data, at, places = b"", 0, []
    for name, of, shape in tensors:
        at += -at % 32
        _, per, bytes_ = gguf.TYPES[of]
        data += gguf.text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        data += struct.pack("<IQ", gguf.TYPES[of][0], at)
        places.append((at, int(np.prod(shape)) // per * bytes_))
        at += places[-1][1]
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys))
    for k, v in keys.items():
        of, body = gguf.value(v)
        head += gguf.text(k) + struct.pack("<I", of) + body
    head += data
    head += bytes(-len(head) % 32)
    with open(path, "wb") as f:
        f.write(head)
        for i, ((name, of, shape), (at, n)) in enumerate(zip(tensors, places)):
            f.seek(len(head) + at)
            if of == "F32":
                f.write((1 + 0.1 * rng.standard_normal(shape)).astype(np.float32).tobytes())
                continue
            skip = 1 + i * 97 % (rows // 2)  # no two tensors are equal
            while n:
                part = memoryview(block)[skip * size : skip * size + n]
                f.write(part)
                n -= len(part)
                skip = skip * 5 % (rows // 2)
    return head, sum(n for _, n in places)


def stream_rate(folder):
    """GB/s, or None"""
    if not shutil.which("nvcc"):
        return None
    (folder / "stream.cu").write_text(STREAM)
    what = ["nvcc", "-O2", "-arch=native", folder / "stream.cu", "-o", folder / "stream"]
    done = subprocess.run(what, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return None
    return float(
        subprocess.run([folder / "stream"], check=True, capture_output=True, text=True).stdout
    )


def driver(a, shape, slots):
    """The program of a bundle of so many slots"""
    last = [f"_{i}" for i in range(slots)] if slots > 1 else [""]
    tokens = [f".ids{s} = ids + first + {i}" for i, s in enumerate(last)]
    if slots > 1:
        prompts = [
            f".ids{s} = ids, .ids{s}_dims = {{slot == {i} ? n : 0}}" for i, s in enumerate(last)
        ]
        tokens = [f"{t}, .ids{s}_dims = {{1}}" for t, s in zip(tokens, last)]
    else:
        prompts = [".ids = ids, .ids_dims = {n}"]
    words = {
        "PROMPT_INPUTS": ", ".join(prompts),
        "TOKEN_INPUTS": ", ".join(tokens),
        "KEEPS": ", ".join(f"model_keep_past{s}" for s in last),
        "LENGTHS": ", ".join(f"model_length_past{s}" for s in last),
        "SLOTS": slots,
        "ROWS": max(1, a.sequences),
        "WORDS": shape["words"],
        "STEP": STEP,
    }
    text = DRIVER
    for word, is_ in words.items():
        text = text.replace(word, str(is_))
    return text


def build(a, path, bundle, shape, devices, slots):
    most = max([*a.past, *a.prompts, STEP])
    what = [a.ingot, "compile", path, "-o", bundle, "--target", a.target, "-q", "--no-check"]
    what += ["--dim", f"n=1..{STEP}", "--dim", f"past=0..{most}", "--weights", "blob", *a.option]
    if devices > 1:
        what += ["--devices", devices, "--parallel", "tensor"]
    if slots > 1:
        what += ["--slots", slots]
    subprocess.run([str(w) for w in what], check=True)
    (bundle / "time.c").write_text(driver(a, shape, slots))
    sources = sorted(bundle.glob("*.c"))
    what = ["cc", "-O1", "-std=c11", "-I", bundle, *sources, "-lm", "-ldl", "-o", bundle / "time"]
    subprocess.run([str(w) for w in what], check=True)
    return bundle


def ways(a):
    """Devices and sequences of each bundle; others are compared with the first one"""
    return [(n, 1) for n in a.devices] + [(a.devices[0], a.sequences)] * (a.sequences > 1)


def built(a, name, shape, kind):
    """Bundles as ways() has them, and how many bytes of weights a token reads"""
    path = a.folder / f"{name}.gguf"
    _, weights = write(path, shape, kind)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        bundles = [
            pool.submit(build, a, path, a.folder / f"bundle_{name}_{n}_{slots}", shape, n, slots)
            for n, slots in ways(a)
        ]
        bundles = [b.result() for b in bundles]
    path.unlink()
    # of an embedding that is no head one row is read
    head = next(iter(tensors_of(shape, kind)))[2]
    _, per, bytes_ = gguf.TYPES[kind]
    return bundles, weights - (0 if shape.get("tied") else head[0] * head[1] // per * bytes_)


def timed(a, bundle, slots):
    """Medians by (word, number), and the logits of each number of tokens and row"""
    asked = [*a.past, *(-n for n in a.prompts if slots == 1)]
    what = [bundle / "time", bundle / "model.weights", bundle / "logits", *asked]
    said = subprocess.run([str(w) for w in what], check=True, capture_output=True, text=True)
    times = {}
    for line in said.stdout.splitlines():
        word, *rest = line.split()
        if len(rest) == 2:
            times.setdefault((word, int(rest[0])), []).append(float(rest[1]))
    if "other bits" in said.stdout:
        print("logits of a call differ from those of the one before it", flush=True)
    logits = np.fromfile(bundle / "logits", np.float32)
    logits = logits.reshape(len(a.past), max(1, a.sequences), -1) if len(logits) else logits
    if not a.keep:
        shutil.rmtree(bundle)
    return {k: statistics.median(ms) for k, ms in times.items()}, logits


def measure(a, name, rate):
    size, kind = name.split(":")
    shape = SHAPES[size]
    bundles, read = built(a, name.replace(":", "_"), shape, kind)
    rows, first = [], None
    for (devices, slots), bundle in zip(ways(a), bundles):
        times, logits = timed(a, bundle, slots)
        first = first or (times, logits)
        for (what, n), ms in times.items():
            row = {"model": name, "devices": devices, "what": what, "n": n, "ms": round(ms, 4)}
            if slots > 1:
                row["sequences"] = slots
            if what == "token" and rate:
                cache = 2 * 2 * shape["layers"] * shape["kv"] * shape["head"] * n * slots
                row["share"] = round((read + cache) / rate * 1e-6 / ms / devices, 3)
            if slots > 1:
                row["of_one"] = round(ms / first[0][what, n], 3)
            elif times is not first[0]:
                row["gain"] = round(first[0][what, n] / ms, 3)
            if times is not first[0] and what == "call":
                one, other = (x[a.past.index(n)] for x in (first[1], logits))
                row["apart"] = float(f"{abs(one - other).max() / np.ptp(one):.2e}")
            rows.append(row)
            print(" ".join(f"{k} {v}" for k, v in row.items()), flush=True)
    return rows


def numbers(text):
    return [int(n) for n in text.split(",") if n]


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    p.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/tmp/llm_gpu_time"))
    p.add_argument("--target", default="cuda:native")
    p.add_argument("--option", action="append", default=[], help="one more of `ingot compile`")
    p.add_argument("--past", type=numbers, default=[2048, 8192])
    p.add_argument("--prompts", type=numbers, default=[128, 512, 2048])
    p.add_argument(
        "--devices",
        type=numbers,
        default=[1],
        help="GPUs; the first is what others are compared with",
    )
    p.add_argument("--sequences", type=int, default=0, help="so many at once, too")
    p.add_argument("--no-stream", action="store_true", help="no shares")
    p.add_argument("--keep", action="store_true", help="leave the bundles")
    p.add_argument("--json", type=pathlib.Path)
    p.add_argument("models", nargs="+")
    a = p.parse_args()
    a.folder.mkdir(parents=True, exist_ok=True)
    rate = None if a.no_stream else stream_rate(a.folder)
    print(f"stream {rate} GB/s" if rate else "no stream: no nvcc", flush=True)
    rows = [row for name in a.models for row in measure(a, name, rate)]
    if a.json:
        a.json.write_text(json.dumps({"stream": rate, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
