#!/usr/bin/env python3
"""What kernels, launches and contexts of a CUDA bundle are worth beside torch and the memory, in
one run on a machine with a GPU.

    bars.py pack DIR --ingot build/ingot [--cases ONNX-CASES] [--small] [RESNET.onnx...]     here:
        DIR is all that has to travel
    DIR/bars.py run --out bars.json          there: needs numpy, a C compiler, CUDA's driver and
                                             NVRTC; torch to compare with

One line of a table each, and all of it in the JSON:

    product         of matrices, f16 and f32, beside torch (TF32 off), in turns (turns.py): torch's
                    time by ours
    causal          attention of long rows behind a causal mask (causal.py): torch's time by ours
    attention       a head's chain in one graph, beside torch's scaled_dot_product_attention, in
                    turns: ours by torch's
    vector          a matrix of f16 times a vector, several matrices in turn, beside torch's: bytes
                    a second, as a share of what a plain kernel reads in this run
    launch          what a kernel takes of a chain in which each reads the one element that the last
                    has written
    bounded         every RESNET with a batch of 1 to 8 that the run knows: batch 1 by that of a
                    bundle for one image, results of 1, 3 and 8 compared
    contexts        four, on streams of their own, in four threads: each run's result is that of one
                    alone
    branches        an If, a Loop that ends by a condition, both: recorded with the rest, where the
                    driver can; results of ONNX's reference
    devices         a GPU by its number and by its UUID; none, one too many, and one whose memory is
                    taken: what a bundle says of it
    cases           official ONNX cases, by tests/onnx/run.py
    sanitizer       compute-sanitizer's memcheck and racecheck of bundles of all kinds

With --ready the programs of launch, cases and sanitizer are built where they are packed: there they
run at once. --target c:native does what can be done without a GPU; with --small in seconds. Exit
status: 0, or 1 if a result is wrong.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bundle")]
import causal  # noqa: E402
import device  # noqa: E402

CONTEXTS = """
#include "model.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { CONTEXTS = 4, RUNS = 50 };
static char in[CONTEXTS][IN_BYTES], wanted[CONTEXTS][OUT_BYTES];
static void *weights;
static size_t weights_bytes;
static int wrong;
static int infer(model_ctx *ctx, const void *x, void *y)
{
    model_inputs inputs = {.IN_NAME = x};
    model_outputs outputs = {.OUT_NAME = y};
    return model_run(ctx, &inputs, &outputs);
}
static int begin(model_ctx *ctx)
{
    model_config config = {.struct_size = sizeof config, .weights = weights, .weights_bytes = weights_bytes};
    config.arena_bytes = MODEL_ARENA_BYTES(1) + 1;
    config.arena = aligned_alloc(512, (config.arena_bytes + 511) / 512 * 512);
    return model_init(ctx, &config);
}
static void *thread(void *number)
{
    const int k = *(int *)number;
    model_ctx *ctx = malloc(sizeof *ctx);
    char *y = malloc(OUT_BYTES);
    if (begin(ctx)) wrong++;
    for (int i = 0; i < RUNS; i++) {
        const int which = (k + i) % CONTEXTS;
        memset(y, 0xff, OUT_BYTES);
        if (infer(ctx, in[which], y) || memcmp(y, wanted[which], OUT_BYTES)) wrong++;
    }
    model_deinit(ctx);
    return NULL;
}
int main(int argc, char **argv)
{
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (f) {
        fseek(f, 0, SEEK_END);
        weights_bytes = (size_t)ftell(f);
        rewind(f);
        weights = aligned_alloc(4096, (weights_bytes + 4095) / 4096 * 4096);
        if (fread(weights, 1, weights_bytes, f) != weights_bytes) return 2;
    }
    for (int k = 0; k < CONTEXTS; k++)
        for (size_t i = 0; i < IN_BYTES / sizeof(unsigned short); i++) ((unsigned short *)in[k])[i] = (unsigned short)(0x3800 + (i * 7 + (size_t)k * 1311) % 512);
    static model_ctx ctx;
    if (begin(&ctx)) return 3;
    for (int k = 0; k < CONTEXTS; k++)
        if (infer(&ctx, in[k], wanted[k])) return 4;
    pthread_t t[CONTEXTS];
    int number[CONTEXTS];
    for (int k = 0; k < CONTEXTS; k++) number[k] = k, pthread_create(&t[k], NULL, thread, &number[k]);
    for (int k = 0; k < CONTEXTS; k++) pthread_join(t[k], NULL);
    model_deinit(&ctx);
    printf("%d of %d wrong\\n", wrong, CONTEXTS * RUNS);
    return wrong != 0;
}
"""


RECORDED = """
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    static model_ctx ctx;
    model_config config = {.struct_size = sizeof config};
    config.arena_bytes = MODEL_ARENA_BYTES(1) + 1;
    config.arena = aligned_alloc(512, (config.arena_bytes + 511) / 512 * 512);
    const int status = (int)model_init(&ctx, &config);
    printf("status %d, %s, error %d\\n", status, ctx.record.ready ? "recorded" : "step by step", status ? (int)ctx.fault.value : ctx.gpu.error);
    return status;
}
"""


TYPES = {
    "f16": "float16",
    "f32": "float32",
    "i64": "int64",
    "i32": "int32",
    "u8": "uint8",
    "i8": "int8",
    "bool": "bool",
}


def described(model, what, batch=1):
    """What a bundle says of itself: lines "input  0: x f16[<=8,64]", as number, name, type and
    shape."""
    told = subprocess.run([model, "--help"], capture_output=True, text=True).stdout
    for number, name, dtype, dims in re.findall(
        rf"^{what} +(\d+): (\S+) (\w+)\[(.*?)\]", told, re.M
    ):
        yield (
            int(number),
            name,
            TYPES[dtype],
            [int(d) if d.isdigit() else batch for d in dims.split(",") if d],
        )


def inputs_of(folder, model, rng, batch=1):
    """Random ones, of a shape with this batch."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number, _, dtype, shape in described(model, "input", batch):
        count, few = int(np.prod(shape)), min(int(np.prod(shape)), 1 << 20)
        block = rng.standard_normal(few) if dtype.startswith("f") else rng.integers(0, 2, few)
        value = np.resize(block.astype(dtype), count).reshape(shape)
        np.save(folder / f"input_{number}.npy", value)
        made.append(value)
    return made


class Machine:
    def __init__(self, args):
        self.args, self.began = args, time.time()
        self.work = pathlib.Path(args.work)
        self.env = os.environ | {
            "LD_LIBRARY_PATH": f"{HERE / 'bin'}:{os.environ.get('LD_LIBRARY_PATH', '')}",
            "INGOT_CACHE": str(self.work / "cache"),
        }
        self.result, self.wrong = {"machine": device.machine()}, 0

    def call(self, *command, **how):
        return subprocess.run(
            [str(c) for c in command], capture_output=True, text=True, env=self.env, **how
        )

    def tell(self, name, good=True, **figures):
        """A line of the table, and of the JSON."""
        self.result[name] = figures
        self.wrong += not good
        print(
            f"{time.time() - self.began:6.1f} s  {name:24s} {'' if good else 'WRONG '}"
            + "  ".join(
                f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures.items()
            ),
            flush=True,
        )
        pathlib.Path(self.args.out).write_text(json.dumps(self.result, indent=1) + "\n")

    def build(self, folder, name, *more):
        out = self.work / (folder.parent.name + "_" + name)
        if (folder / "model").exists():
            shutil.copytree(folder, out, dirs_exist_ok=True)
            return name, True, ""
        if (folder / "fill.json").exists():
            device.fill(folder)
        options = json.loads((folder / "options.json").read_text())
        if self.args.no_build:
            return name, (out / "model").exists(), "not built"
        done = self.call(
            HERE / "bin" / "ingot",
            "compile",
            folder / "model.onnx",
            "-o",
            out,
            "--target",
            self.args.target,
            "-q",
            *options,
            *more,
        )
        if not done.returncode:
            done = self.call("make", "-s", "-C", out)
        return name, done.returncode == 0, done.stderr.strip()[-300:]

    def program(self, name, of="models"):
        return self.work / f"{of}_{name}" / "model"

    def library(self, name):
        out = self.work / f"models_{name}"
        done = self.call("make", "-s", "-C", out, "libmodel.so")
        if done.returncode:
            raise RuntimeError(done.stderr[-300:])
        return out / "libmodel.so"

    def bench(self, name, data, seconds=0.2):
        """ms of the GPU's work alone."""
        where = [] if self.args.target.startswith("c:") else ["--on-device"]
        done = self.call(self.program(name), "--bench", seconds, data, *where)
        return (
            json.loads(done.stdout.splitlines()[-1])["median_ms"]
            if done.returncode == 0
            else float("nan")
        )

    def outputs(self, name, data, of="models"):
        import numpy as np

        out = self.work / f"out_{name}"
        done = self.call(self.program(name, of), data, out)
        return (
            [np.load(p) for p in sorted(out.glob("*.npy"))] if done.returncode == 0 else done.stderr
        )


def of_range(got, want):
    import numpy as np

    want, got = (np.asarray(a, np.float64) for a in (want, got))
    return (
        float(np.abs(got - want).max() / np.abs(want).max())
        if got.shape == want.shape
        else float("inf")
    )


def median(x):
    return sorted(x)[len(x) // 2]


def torch_ms(torch, f, repeat):
    """A graph of it on a stream, ms a call."""
    import turns

    replay = turns.graph_of(torch, f, repeat)
    times = []
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / repeat)
    return median(times[2:])


def beside_torch(m, torch, name, data, given, peer):
    """What a bundle computes of arrays, and ms of a run, of torch's peer of the same arrays, both
    in turns; without torch ours alone, of a process of its own."""
    if not torch or not m.args.target.startswith("cuda"):
        ms = [m.bench(name, data) for _ in range(3)]
        return m.outputs(name, data), {"ours_ms": median(ms), "ours_least_ms": min(ms)}
    import turns
    import numpy as np

    stream = torch.cuda.Stream()
    inputs = [torch.from_numpy(v).cuda() for v in given]
    made = [
        torch.from_numpy(np.zeros(shape, dtype)).cuda()
        for _, _, dtype, shape in described(m.program(name), "output")
    ]
    torch.cuda.synchronize()
    bundle = turns.Bundle(m.library(name), stream.cuda_stream).bind(
        *([t.data_ptr() for t in of] for of in (inputs, made))
    )
    try:
        told = turns.beside(torch, bundle.run, lambda: peer(*inputs), stream)
    finally:
        bundle.close()
    return [t.cpu().numpy() for t in made], told


def products(m, torch, rng):
    for folder in sorted((HERE / "models").glob("product_*")):
        name, data, error = folder.name, m.work / f"in_{folder.name}", None
        x, w = inputs_of(data, m.program(name), rng)
        outputs, figures = beside_torch(
            m, torch, name, data, (x, w), lambda a, b: torch.matmul(a, b)
        )
        if torch:
            a, b = (torch.from_numpy(v).cuda() for v in (x, w))
            want = (
                (a.double() @ b.double() if len(w) <= 4096 else a.float() @ b.float()).cpu().numpy()
            )
            error = of_range(outputs[0], want)
        m.tell(
            name,
            good=error is None or error < 1e-2,
            **figures,
            flops=2 * x.size * w.shape[1] / figures["ours_ms"] * 1e3,
            error=error,
        )
        shutil.rmtree(data)


def heads(m, torch, rng):
    data, error = m.work / "in_attention", None
    q, k, v = inputs_of(data, m.program("attention"), rng)
    n = json.loads((HERE / "sizes.json").read_text())["attention"]

    def chained(h, b, c):
        for _ in range(n):
            h = torch.nn.functional.scaled_dot_product_attention(h, b, c)
        return h

    outputs, ms = beside_torch(m, torch, "attention", data, (q, k, v), chained)
    figures = {
        name.replace("_ms", "_us"): v / n * 1e3 for name, v in ms.items() if name.endswith("_ms")
    }
    if torch:
        error = of_range(
            outputs[0],
            chained(*(torch.from_numpy(t).cuda() for t in (q, k, v))).float().cpu().numpy(),
        )
        figures |= {
            name.replace("torch_by_ours", "ours_by_torch"): 1 / v
            for name, v in ms.items()
            if name.endswith("torch_by_ours")
        }
    m.tell("attention", good=error is None or error < 2e-2, **figures, error=error)


def read_rate(torch):
    """Bytes a second that a kernel reads which does nothing else: Triton's, and torch's sum; the
    best."""
    x = torch.ones(1 << 30, device="cuda", dtype=torch.float32)
    times = [torch_ms(torch, lambda: x.sum(), 4)]
    try:
        import triton
        import triton.language as tl

        globals()["tl"] = tl

        @triton.jit
        def read(x, y, n: tl.constexpr, turns: tl.constexpr):
            at = tl.program_id(0) * n * turns + tl.arange(0, n)
            s = tl.zeros([n], tl.float32)
            for i in range(turns):
                s += tl.load(x + at + i * n)
            tl.store(y + tl.program_id(0), tl.sum(s))

        y = torch.empty(1 << 20, device="cuda")
        for n, turns in ((4096, 8), (8192, 4), (4096, 32)):
            times.append(
                torch_ms(
                    torch, lambda: read[(x.numel() // (n * turns),)](x, y, n, turns, num_warps=8), 4
                )
            )
    except Exception as e:  # no Triton: torch's alone
        print(f"triton: {e}")
    return x.numel() * 4 / min(times) * 1e3


def vector(m, torch, rng):
    import numpy as np

    data = m.work / "in_vector"
    x, *w = inputs_of(data, m.program("vector"), rng)
    outputs, figures = beside_torch(
        m, torch, "vector", data, (x, *w), lambda x, *w: [torch.mv(a, x) for a in w]
    )
    error = of_range(outputs[0][:64], w[0][:64].astype(np.float64) @ x.astype(np.float64))
    rate = sum(v.nbytes for v in w) / figures["ours_ms"] * 1e3
    figures = {name: v / len(w) if name.endswith("_ms") else v for name, v in figures.items()} | {
        "bytes_a_second": rate,
        "error": error,
    }
    if torch:
        figures["of_read_rate"] = rate / read_rate(torch)
    m.tell("vector", good=error < 1e-2, **figures)
    shutil.rmtree(data)


def launches(m, rng):
    n, data = json.loads((HERE / "sizes.json").read_text())["launch"], m.work / "in_launch"
    (x,) = inputs_of(data, m.program("launch"), rng)
    right = bool((m.outputs("launch", data)[0] == x + n).all())
    m.tell(
        "launch",
        good=right,
        kernels=n,
        us_a_kernel=min(m.bench("launch", data) for _ in range(3)) / n * 1e3,
    )


def bounded(m, rng):

    for folder in sorted((HERE / "models").glob("bounded_*")):
        name = folder.name.split("_", 1)[1]
        data = {n: m.work / f"in_{name}_{n}" for n in (1, 3, 8)}
        errors = []
        for n in data:
            inputs_of(data[n], m.program(f"fixed{n}_{name}"), rng, n)
            want, got = m.outputs(f"fixed{n}_{name}", data[n]), m.outputs(folder.name, data[n])
            errors.append(
                of_range(got[0], want[0])
                if isinstance(got, list) and isinstance(want, list)
                else float("inf")
            )
        ours = {k: [] for k in ("fixed", "bounded", "fixed8", "bounded8")}
        for _ in range(3):
            ours["fixed"].append(m.bench(f"fixed1_{name}", data[1]))
            ours["bounded"].append(m.bench(folder.name, data[1]))
            ours["fixed8"].append(m.bench(f"fixed8_{name}", data[8]))
            ours["bounded8"].append(m.bench(folder.name, data[8]))
        ms = {k: min(v) for k, v in ours.items()}
        m.tell(
            folder.name,
            good=max(errors) < 1e-2,
            fixed_ms=ms["fixed"],
            bounded_ms=ms["bounded"],
            ratio=ms["bounded"] / ms["fixed"],
            fixed8_ms=ms["fixed8"],
            bounded8_ms=ms["bounded8"],
            ratio8=ms["bounded8"] / ms["fixed8"],
            error=max(errors),
        )


def built_beside(m, bundle, name, text, *args):
    """A program of the bundle's sources and this text: what became of it."""
    folder = bundle / "beside"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.c").write_text(text)
    done = m.call(
        "cc",
        "-O1",
        "-I",
        bundle,
        folder / f"{name}.c",
        *bundle.glob("*.c"),
        "-o",
        folder / name,
        "-lm",
        "-ldl",
        "-lpthread",
    )
    return done if done.returncode else m.call(folder / name, *args)


def branches(m):
    import numpy as np

    for folder in sorted((HERE / "models").glob("branches_*")):
        errors = []
        for data in sorted(folder.glob("data_*")):
            got = m.outputs(folder.name, data)
            errors.append(
                of_range(got[0], np.load(data / "want.npy"))
                if isinstance(got, list)
                else float("inf")
            )
            told = got if not isinstance(got, list) else ""
        if m.args.target.startswith("cuda"):
            done = built_beside(m, m.work / f"models_{folder.name}", "recorded", RECORDED)
            told += done.stdout + done.stderr
        m.tell(
            folder.name,
            good=max(errors) < 1e-4,
            ms=m.bench(folder.name, folder / "data_0"),
            error=max(errors),
            told=told.strip()[-200:],
        )


def contexts(m):
    import numpy as np

    for folder in sorted((HERE / "models").glob("fixed1_*")):
        bundle = m.work / f"models_{folder.name}"
        program = CONTEXTS
        for what, word in (("input", "IN"), ("output", "OUT")):
            _, name, dtype, shape = next(described(bundle / "model", what))
            program = program.replace(
                f"{word}_BYTES", str(np.prod(shape) * np.dtype(dtype).itemsize)
            ).replace(f"{word}_NAME", name)
        done = built_beside(m, bundle, "contexts", program, *sorted(bundle.glob("*.weights")))
        m.tell(
            f"contexts_{folder.name[7:]}",
            good=done.returncode == 0,
            told=(done.stdout + done.stderr).strip()[-200:],
        )


def devices(m, rng):
    """Statuses of init: 0, or 16 with words."""
    data = m.work / "in_launch"
    (x,) = inputs_of(data, m.program("launch"), rng)
    uuids = re.findall(r"UUID: (GPU-[0-9a-f-]+)", device.words("nvidia-smi", "-L"))

    def told(words=(), **env):
        done = subprocess.run(
            [str(w) for w in (m.program("launch"), *words, data, m.work / "out_devices")],
            capture_output=True,
            text=True,
            env=m.env | env,
        )
        return done.returncode, done.stderr.strip()[-160:]

    tries = {
        "0": (["--gpu", "0"], {}),
        **{u: (["--gpu", u], {}) for u in uuids},
        **{u[:12]: (["--gpu", u[:12]], {}) for u in uuids},
    }
    found = {name: told(words, **env) for name, (words, env) in tries.items()}
    none = {
        "one too many": told(["--gpu", str(max(1, len(uuids)))]),
        "no such UUID": told(["--gpu", "GPU-00000000"]),
        "none": told(CUDA_VISIBLE_DEVICES=""),
    }
    good = all(code == 0 for code, _ in found.values()) and all(
        code and "status 16" in words for code, words in none.values()
    )
    try:
        import torch

        free, _ = torch.cuda.mem_get_info()
        taken = [torch.empty(free - (64 << 20), dtype=torch.uint8, device="cuda")]
        none["its memory taken"] = told()
        good &= none["its memory taken"][0] != 0
        del taken
        torch.cuda.empty_cache()
    except Exception as e:  # nobody to take it
        none["its memory taken"] = f"not tried: {type(e).__name__}"
    m.tell("devices", good=good, found={k: code for k, (code, _) in found.items()}, none=none)


def cases(m):
    for file in HERE.glob("*.tar.xz"):
        with tarfile.open(file) as packed:
            packed.extractall(m.work)
    if not (m.work / "cases").is_dir():
        return
    out, programs = m.work / "cases.json", m.work / "programs"
    how = (
        ["--programs", programs]
        if programs.is_dir()
        else ["--ingot", HERE / "bin" / "ingot", "--cflags", "-O1 -std=c99"]
    )
    done = m.call(
        sys.executable,
        HERE / "onnx" / "run.py",
        *how,
        "--target",
        m.args.target,
        "--jobs",
        min(12, os.cpu_count()),
        "--json",
        out,
        m.work / "cases",
    )
    rows = json.loads(out.read_text()) if out.exists() else []
    bad = [
        f"{r['name']}: {r['status']} {r['reason']}"[:160]
        for r in rows
        if r["status"] not in ("passed", "refused")
    ]
    m.tell(
        "cases",
        good=bool(rows) and not bad,
        cases=len(rows),
        passed=sum(r["status"] == "passed" for r in rows),
        refused=sum(r["status"] == "refused" for r in rows),
        bad=bad or done.stderr[-200:],
    )


def sanitizer(m, rng, names):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not pathlib.Path(tool).exists():
        m.tell("sanitizer", told="there is none")
        return
    found, clean = {}, 0

    def look(job):
        name, what = job
        data = m.work / f"in_kind_{name}"
        left = min(m.args.sanitize_seconds, m.args.limit - (time.time() - m.began))
        if left < 1:
            return name, what, -1, "no time left"
        done = m.call(
            tool,
            "--tool",
            what,
            "--error-exitcode",
            9,
            m.program(name, "kinds"),
            data,
            m.work / f"out_{name}_{what}",
            timeout=left,
        )
        last = [
            line for line in done.stdout.splitlines() if "SUMMARY" in line
        ] or done.stdout.splitlines()[-1:]
        return name, what, done.returncode, " ".join(last + done.stderr.splitlines()[-1:])[-160:]

    jobs = []
    for name in names:
        inputs_of(m.work / f"in_kind_{name}", m.program(name, "kinds"), rng)
        jobs += [(name, "memcheck"), (name, "racecheck")]
    with concurrent.futures.ThreadPoolExecutor(m.args.sanitize_jobs) as pool:
        for job in [pool.submit(look, j) for j in jobs]:
            try:
                name, what, code, last = job.result()
            except subprocess.TimeoutExpired as e:
                name, what, code, last = (
                    pathlib.Path(e.cmd[5]).parent.name,
                    e.cmd[2],
                    -1,
                    "no time left",
                )
            clean += code == 0
            if code:
                found[f"{name} {what}"] = last
    m.tell(
        "sanitizer",
        good=not [f for f in found.values() if "no time" not in f],
        bundles=len(names),
        clean=clean,
        of=len(jobs),
        found=found,
    )


# The bundles of a step, if not that of its name.
NEEDS = {
    "products": "models/product_*",
    "causal": "models/causal_*",
    "bounded": "models/[bf]*_*",
    "contexts": "models/fixed1_*",
    "sanitizer": "kinds/*",
    "cases": "none",
    "devices": "models/launch",
    "branches": "models/branches_*",
}


def run(args):
    import numpy as np

    m, rng = Machine(args), np.random.default_rng(1)
    try:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        torch = torch if torch.cuda.is_available() else None
    except ImportError:
        torch = None
    m.work.mkdir(parents=True, exist_ok=True)
    steps = {
        "products": lambda: products(m, torch, rng),
        "causal": lambda: causal.causal(m, torch, rng, sys.modules[__name__]),
        "attention": lambda: heads(m, torch, rng),
        "launch": lambda: launches(m, rng),
        "vector": lambda: vector(m, torch, rng),
        "bounded": lambda: bounded(m, rng),
        "contexts": lambda: contexts(m),
        "branches": lambda: branches(m),
        "devices": lambda: devices(m, rng),
        "cases": lambda: cases(m),
        "sanitizer": lambda: sanitizer(m, rng, built),
    }
    wanted = args.steps.split(",") if args.steps else list(steps)
    folders = sorted({f for step in wanted for f in HERE.glob(NEEDS.get(step, f"models/{step}"))})
    built = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for folder, job in [(f, pool.submit(m.build, f, f.name)) for f in folders]:
            name, good, why = job.result()
            if folder.parent.name == "kinds" and good:
                built.append(name)
            if not good:
                m.tell(f"build {name}", good=False, why=why)
    m.tell("built", bundles=len(folders))
    for name in wanted:
        try:
            steps[name]()
        except Exception as e:  # the next step has figures of its own
            m.tell(name, good=False, why=f"{type(e).__name__}: {e}"[-300:])
    m.tell("all", seconds=time.time() - m.began, wrong=m.wrong)
    return m.wrong != 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("pack")
    p.add_argument("dir")
    p.add_argument("models", nargs="*", metavar="RESNET.onnx")
    p.add_argument("--ingot", default="build/ingot")
    p.add_argument("--cases", metavar="DIR", help="of tests/onnx/cases.py")
    p.add_argument("--count", type=int, default=200, help="how many of them")
    p.add_argument("--seed", type=int, default=1, help="by which these are drawn")
    p.add_argument(
        "--list", default=HERE.parent / "onnx" / "expected.txt", metavar="FILE", help="of which"
    )
    p.add_argument("--ready", action="store_true", help="build here what is small")
    p.add_argument("--target", default="cuda:sm_90a", help="for which")
    p.add_argument("--small", action="store_true", help="sizes for a look at the script itself")
    p = verbs.add_parser("run")
    p.add_argument("--out", default="bars.json")
    p.add_argument("--work", default="/tmp/bars")
    p.add_argument("--target", default="cuda:sm_90a")
    p.add_argument(
        "--no-build", action="store_true", help="what lies in --work is that of an earlier run"
    )
    p.add_argument(
        "--steps",
        help="only these: products,causal,attention,launch,vector,bounded,contexts,branches,devices,cases,sanitizer",
    )
    p.add_argument("--sanitize-seconds", type=float, default=60, help="that one look may take")
    p.add_argument("--sanitize-jobs", type=int, default=4, help="looks at a time")
    p.add_argument(
        "--limit",
        type=float,
        default=1e9,
        help="seconds in all, behind which the sanitizer looks at nothing more",
    )
    args = parser.parse_args()
    if args.verb == "pack":  # there it is not needed, and not there
        import bars_pack

        return bars_pack.pack(args)
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
