#!/usr/bin/env python3
"""Intermediate tensors that are divided among several memories (--memory).

    memory.py --ingot build/ingot

    spread      two and three memories, too small for all: the results are those of one arena, byte
                for byte, in any number of threads; what the tools tell of the memories is right
    decided     the memory of each value is in the .sched file: replayed to the same bytes, changed
                by hand and back, refused
    sanitized   nothing beyond the end of any of them, each a heap block of just its size, is
                touched
    refused     init tells that a memory is missing, too small or misaligned
    limited     what a refusal by --max-ram says is needed does not depend on the limit, and is enough,
                in patches too, whose results are those of the graph;
                a .sched file of such a plan makes it again, without the limit
    preferred   the arena is smaller with --prefer ram than with --prefer time, and the results are
                the same; so they are with --max-ram, and a sum lies on what it is made of

Exit status 77, skipped: there is no Python with onnx.
"""

import json
import re
import subprocess
import sys

try:
    import numpy as np
    import onnx
    import models
    from run import SANITIZE, STRICT, Wrong, call, compilers, fingerprint, main, program, programs
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def dense_block(g):
    """Long lives, and slices of one buffer."""
    h = g.op("Relu", g.input("x", models.F, 1, 6, 13, 11))
    for i in range(4):
        new = g.op(
            "Relu", g.op("Conv", h, g.weight(5, 6 + 5 * i, 3, 3), g.weight(5), pads=[1, 1, 1, 1])
        )
        h = g.op("Concat", h, new, axis=1)
    g.output("y", g.op("Conv", h, g.weight(9, 26, 1, 1)), models.F, 1, 9, 13, 11)


def edges(g):
    """A halo is a fifth of a small image, where the arena is fullest, and spares few checks: a
    window has four elements."""
    h = g.op("Relu", g.input("x", models.F, 1, 32, 12, 12))
    h = g.op("AveragePool", g.op("Exp", h), kernel_shape=[2, 2], pads=[1, 1, 0, 0], strides=[2, 2])
    g.output("y", g.op("Relu", h), models.F, 1, 32, 6, 6)


def residual(g):
    """The sum has another halo than what it is added to; with one for both it lies there."""
    x = g.op(
        "Relu",
        g.op("Conv", g.input("x", models.F, 1, 1, 16, 16), g.weight(8, 1, 3, 3), pads=[1] * 4),
    )
    h = g.op("Relu", g.op("Conv", x, g.weight(8, 8, 3, 3), pads=[1] * 4))
    h = g.op("Relu", g.op("Add", x, g.op("Conv", h, g.weight(8, 8, 3, 3), pads=[1] * 4)))
    y = g.op("Conv", h, g.weight(4, 8, 3, 3), pads=[0, 0, 1, 1], strides=[2, 2])
    g.output("y", y, models.F, 1, 4, 8, 8)


def padded(g):
    """Patches, of which the first one alone begins at the image's edge."""
    h = g.op("Conv", g.input("x", models.F, 1, 32, 28, 32), g.weight(64, 32, 3, 3), pads=[1] * 4)
    h = g.op("Conv", h, g.weight(64, 64, 3, 3), pads=[1] * 4)
    g.output("y", g.op("Sigmoid", h), models.F, 1, 64, 28, 32)


models.MODELS["padded"] = padded
models.MODELS["residual"] = residual
models.MODELS["dense_block"] = dense_block
models.MODELS["edges"] = edges
# That each is compiled without a warning where it is optimised is for strict, of run.py
NOT_OPTIMISED = STRICT.replace("-O1", "-O0")
MODELS = ("cnn", "halos", "attention", "lstm", "index", "dense_block")


def prepare(work, name):
    """The model, and a folder of inputs."""
    model, data = work / f"{name}.onnx", work / f"{name}-in"
    model.write_bytes(models.build(name))
    data.mkdir()
    rng = np.random.default_rng(len(name))
    for i, value in enumerate(onnx.load(model).graph.input):
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        np.save(data / f"input_{i}.npy", (rng.standard_normal(shape) * 3).astype(dtype))
    return model, data


def outputs(model, data, out, *flags):
    call(model, data, out, "--poison", *flags)
    return [f.read_bytes() for f in sorted(out.iterdir())]


def memory_flags(sizes):
    return [w for name, size in sizes for w in ("--memory", f"{name}={size}" if size else name)]


def divisions(ingot, model):
    """Lists of (name, size), none of which holds all: halves, and a quarter and a half beside the
    rest."""
    arena = json.loads(call(ingot, "inspect", model, "--json"))["arena_bytes"]
    if arena >= 256:
        yield (("dtcm", arena // 2), ("sram", 0))
        yield (("Fast", arena // 4), ("sram1", arena // 2), ("x", 0))


def told(ingot, model, sizes):
    """What the tools say of the memories; returns how many of them are used."""
    flags = memory_flags(sizes)
    whole = json.loads(call(ingot, "inspect", model, "--json", *flags))
    memories = whole["memories"]
    if [(m["name"], m["size"]) for m in memories] != [(n, s or None) for n, s in sizes]:
        raise Wrong(f"{model.name}: {memories}")
    if sum(m["bytes"] for m in memories) != whole["arena_bytes"] or any(
        s and m["bytes"] > s for m, (_, s) in zip(memories, sizes)
    ):
        raise Wrong(f"{model.name}: {memories}, all together {whole['arena_bytes']} bytes")
    plan = call(ingot, "inspect", model, "--dump", "plan", *flags)
    for m in memories:
        if f"\nmemory {m['name']} {m['bytes']}\n" not in plan:
            raise Wrong(f"{model.name}: the plan does not tell of {m}")
    places = re.findall(r"^buffer b\d+ arena .* at \d+(?: in (\w+))? layout", plan, re.M)
    if set(places) != {m["name"] for m in memories if m["bytes"]}:
        raise Wrong(f"{model.name}: buffers are in {set(places)}, sizes {memories}")
    return sum(m["bytes"] > 0 for m in memories)


def divided(ingot, work):
    """Every model and division: model, inputs, sizes."""
    for name in MODELS:
        model, data = prepare(work, name)
        for sizes in divisions(ingot, model):
            yield model, data, sizes


def spread(ingot, work):
    used, whole, parts = [], {}, []
    cc = compilers()
    for i, (model, data, sizes) in enumerate(divided(ingot, work)):
        if model not in whole:
            whole[model] = work / f"{model.stem}-whole"
            call(ingot, "compile", model, "-o", whole[model])
        used.append(told(ingot, model, sizes) == len(sizes))
        bundle = work / f"bundle{i}"
        call(ingot, "compile", model, "-o", bundle, *memory_flags(sizes))
        if "ARENA_BYTES" in (bundle / "model.h").read_text():
            raise Wrong(f"{model.name}: there is an arena beside the memories")
        parts.append((model, data, sizes, bundle))
    made = programs([*whole.values()], cc[0], "-O0")
    wanted = {}
    for k, compiler in enumerate(cc):  # in turns
        made |= programs([b for _, _, _, b in parts[k :: len(cc)]], compiler, NOT_OPTIMISED)
    for model, data, sizes, bundle in parts:
        if model not in wanted:
            wanted[model] = outputs(made[whole[model]], data, work / "out")
        for flags in ((), ("-t", "3")):
            if outputs(made[bundle], data, work / "out", *flags) != wanted[model]:
                raise Wrong(f"{model.name}: {sizes}: other results")
        if "selftest: ok" not in call(made[bundle], "--poison", "--selftest"):
            raise Wrong(f"{model.name}: {sizes}: the selftest fails")
    if sum(used) < 9:
        raise Wrong(f"only {sum(used)} times are all memories used")
    print(
        f"{len(wanted)} models, {len(used)} times divided, {sum(used)} of them with tensors in each memory"
    )


def decided(ingot, work):
    file = work / "model.sched"
    model, data = prepare(work, "cnn")
    call(ingot, "compile", model, "-o", work / "one")
    program(work / "one", compilers()[0], "-O0")
    wanted = outputs(work / "one/model", data, work / "out")
    for sizes in divisions(ingot, model):
        flags = memory_flags(sizes)

        def compiled():
            call(ingot, "compile", model, "-o", work / "bundle", *flags, "--sched", file)
            return fingerprint(work / "bundle")

        call(ingot, "compile", model, "-o", work / "bundle", *flags, "--save-sched", file)
        first, saved = fingerprint(work / "bundle"), file.read_text()
        if compiled() != first or f" memory {sizes[0][0]} " not in saved:
            raise Wrong(f"{sizes}: not the same again\n{saved}")
        file.write_text(saved.replace(f" memory {sizes[0][0]} ", f" memory {sizes[-1][0]} ", 1))
        if compiled() == first:
            raise Wrong(f"{sizes}: without effect")
        call(ingot, "compile", model, "-o", work / "made", *flags, "--sched", file)
        program(work / "made", compilers()[0], "-O0")
        if outputs(work / "made/model", data, work / "out") != wanted:
            raise Wrong(f"{sizes}: other results")
        for old, new, words in (
            (sizes[-1][0], sizes[0][0], "has no room"),
            (sizes[0][0], "nowhere", "there is no memory 'nowhere'"),
        ):
            file.write_text(saved.replace(f" memory {old} ", f" memory {new} "))
            done = subprocess.run(
                [ingot, "compile", model, "-o", work / "c", *flags, "--sched", file],
                text=True,
                capture_output=True,
            )
            if done.returncode != 2 or words not in done.stderr:
                raise Wrong(f"{sizes}: status {done.returncode}: {done.stderr}")
        file.write_text(saved)
        if compiled() != first:
            raise Wrong(f"{sizes}: not the same after it is undone")
    print("2 divisions")


def sanitized(ingot, work):
    bundles = {}
    for name in ("halos", "index", "lstm", "dense_block"):
        model, data = prepare(work, name)
        for sizes in divisions(ingot, model):
            bundle = work / f"bundle{len(bundles)}"
            call(ingot, "compile", model, "-o", bundle, *memory_flags(sizes))
            bundles[bundle] = data
    for bundle, made in programs([*bundles], compilers()[-1], SANITIZE).items():
        outputs(made, bundles[bundle], work / "out", "-t", "2")
    print(f"{len(bundles)} bundles")


REFUSED = r"""
#include <stdio.h>

#include "model.h"

static struct {
    unsigned char dtcm[MODEL_MEMORY_DTCM_BYTES + 64], sram[MODEL_MEMORY_SRAM_BYTES + 64];
} room __attribute__((aligned(64)));

static void expect(const char *what, const igrt_memory *memory, int n, model_status wanted)
{
    model_ctx ctx;
    const model_config config = {.struct_size = sizeof config, .memory = memory, .n_memories = n};
    const model_status status = model_init(&ctx, &config);
    if (status != wanted)
        printf("%s: %s\n", what, igrt_status_text(status));
}

int main(void)
{
    const igrt_memory good[MODEL_MEMORIES] = {
        [MODEL_MEMORY_TINY] = {NULL, 0},
        [MODEL_MEMORY_DTCM] = {room.dtcm, MODEL_MEMORY_DTCM_BYTES},
        [MODEL_MEMORY_SRAM] = {(void *)(((size_t)room.sram + 63) / 64 * 64), MODEL_MEMORY_SRAM_BYTES},
    };
    igrt_memory bad[MODEL_MEMORIES];
    expect("good", good, MODEL_MEMORIES, IGRT_OK);
    expect("no list", NULL, MODEL_MEMORIES, IGRT_ERR_ARENA_SIZE);
    expect("a short list", good, MODEL_MEMORIES - 1, IGRT_ERR_ARENA_SIZE);
    for (int i = MODEL_MEMORY_DTCM; i <= MODEL_MEMORY_SRAM; i++) {
        for (int k = 0; k < MODEL_MEMORIES; k++)
            bad[k] = good[k];
        bad[i].bytes--;
        expect("too small", bad, MODEL_MEMORIES, IGRT_ERR_ARENA_SIZE);
        bad[i].bytes++;
        for (int k = 1; k < MODEL_ARENA_ALIGN; k++) {
            bad[i].data = (unsigned char *)good[i].data + k;
            expect("misaligned", bad, MODEL_MEMORIES, IGRT_ERR_ARENA_ALIGN);
        }
        bad[i].data = NULL;
        expect("missing", bad, MODEL_MEMORIES, IGRT_ERR_ARENA_SIZE);
    }
    puts("all");
    return 0;
}
"""


def preferred(ingot, work):
    model, data = prepare(work, "edges")
    arena, y = {}, {}
    for what in ("ram", "time"):
        flags, bundle = ("--target", "c:c99", "--prefer", what), work / f"prefer_{what}"
        arena[what] = json.loads(call(ingot, "inspect", model, "--json", *flags))["arena_bytes"]
        call(ingot, "compile", model, "-o", bundle, *flags)
        program(bundle, compilers()[0], "-O0")
        y[what] = outputs(bundle / "model", data, work / f"out_{what}")
    if not arena["ram"] < arena["time"] or y["ram"] != y["time"]:
        raise Wrong(
            f"arena {arena['ram']} bytes with --prefer ram, {arena['time']} with --prefer time; same results: {y['ram'] == y['time']}"
        )
    flags = ("--target", "c:c99", "--prefer", "time", "--max-ram")
    call(ingot, "compile", model, "-o", bundle, *flags, arena["ram"])
    program(bundle, compilers()[0], "-O0")
    if outputs(bundle / "model", data, work / "out_most") != y["time"]:
        raise Wrong("other results with --max-ram")
    model, _ = prepare(work, "residual")
    call(ingot, "verify", model, "--target", "c:c99", "--interpret", "-q")
    flags = ("--target", "c:cortex-m4", "--json")
    residual = json.loads(call(ingot, "inspect", model, *flags))["arena_bytes"]
    if residual > 2.1 * 4 * 8 * 18 * 18:
        raise Wrong(f"a residual block takes {residual} bytes, more than two images with halos")
    print(f"arena {arena['ram']} bytes, not {arena['time']}; with a sum in place {residual}")


def limited(ingot, work):
    for name in ("cnn", "dense_block"):
        model, _ = prepare(work, name)
        saved, bundle, again = work / "limited.sched", work / "limited", work / "limited_again"
        flags = (ingot, "compile", model, "--target", "c:x86-64-v3", "--save-sched", saved)

        def said(limit):
            command = [*map(str, flags), "-o", str(bundle), "--max-ram", str(limit)]
            return subprocess.run(command, capture_output=True, text=True).stderr

        needs = [int(re.search(r"needs (\d+) bytes of RAM", said(most))[1]) for most in (1, 3000)]
        if needs[0] != needs[1] or f"needs {needs[0]} " not in said(needs[0] - 1):
            raise Wrong(f"{name} needs {needs} bytes, as the limit is")
        call(*flags, "-o", bundle, "--max-ram", needs[0])
        if "\nram byte " not in saved.read_text():
            raise Wrong(f"{name} fits into {needs[0]} bytes by its usual plan")
        call(*flags, "-o", again, "--sched", saved)
        if fingerprint(bundle) != fingerprint(again):
            raise Wrong(f"{name}: the .sched file of a plan for --max-ram makes another one")
        print(f"{name} needs {needs[0]} bytes")
    model, _ = prepare(work, "padded")
    command = [str(w) for w in (ingot, "compile", model, "-o", bundle, "--target", "c:cortex-m7")]
    told = subprocess.run([*command, "--max-ram", "1"], capture_output=True, text=True).stderr
    call(*command, "--max-ram", re.search(r"needs (\d+) bytes of RAM", told)[1])  # and its check


def refused(ingot, work):
    model, _ = prepare(work, "cnn")
    bundle = work / "bundle"
    sizes = (("tiny", 63), ("dtcm", "4k"), ("sram", 0))
    call(ingot, "compile", model, "-o", bundle, *memory_flags(sizes), "--weights", "array")
    (work / "refused.c").write_text(REFUSED)
    sources = [p for p in bundle.glob("*.c") if p.name not in ("main.c", "driver.c", "igrt_pool.c")]
    call(
        compilers()[0],
        *STRICT.split(),
        "-I",
        bundle,
        work / "refused.c",
        *sources,
        "-o",
        work / "refused",
        "-lm",
    )
    said = call(work / "refused")
    if said != "all\n":
        raise Wrong(said)
    print("missing, short, misaligned; an unused one may be absent")


if __name__ == "__main__":
    sys.exit(
        main(
            __doc__,
            {f.__name__: f for f in (spread, decided, sanitized, limited, preferred, refused)},
        )
    )
