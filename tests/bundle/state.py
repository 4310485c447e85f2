#!/usr/bin/env python3
"""Tensors that live in the context from run to run, and arrays that loops carry: only what changes
is written.

    state.py --ingot build/ingot [CHECK...]     all checks unless some are named

    row       --state in=out: a step writes one row of its cache; five steps give what numpy gives,
              under sanitizers
    readers   who reads the old value as well, or what lies between two updates, gets it
    grows     a cache with a row more after each run: only that row is written; against ONNX
              Runtime, or onnx's evaluator
    loop      an array that a loop carries, of which an iteration changes a row
    refused   names and shapes that do not fit

Exit status 77, skipped: there is no Python with onnx.
"""

import re
import subprocess
import sys

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from run import SANITIZE, Wrong, call, main
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

NODE, VALUE = helper.make_node, helper.make_tensor_value_info
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ROWS, WIDTH, STEPS = 64, 8, 5

PROGRAM = """#include <stdio.h>
#include "model.h"
static _Alignas(MODEL_ARENA_ALIGN) unsigned char arena[MODEL_ARENA_BYTES(1) + 1];
static float row[%(width)d], y[%(rows)d];
int main(void)
{
    model_ctx ctx;
    int64_t pos;
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    model_inputs in = {.row = row, .pos = &pos};
    model_outputs out = {.y = y};
    if (model_init(&ctx, &config))
        return 1;
    for (int i = 0; i < %(steps)d; i++) {
        pos = i * 7 %% %(rows)d;
        for (int k = 0; k < %(width)d; k++)
            row[k] = (float)(i + 1) * (float)(k - 3);
        if (model_run(&ctx, &in, &out))
            return 2;
        for (int k = 0; k < %(rows)d; k++)
            printf("%%.9g\\n", y[k]);
    }
    return 0;
}
""" % {"rows": ROWS, "width": WIDTH, "steps": STEPS}

# The cache after and before: what y is made of.
KINDS = {
    "one": (
        [
            NODE("ScatterND", ["past", "at", "row"], ["present"]),
            NODE("ReduceSum", ["present", "last"], ["y"], keepdims=0),
        ],
        lambda past, present: present.sum(1),
    ),
    "old": (
        [
            NODE("ScatterND", ["past", "at", "row"], ["present"]),
            NODE("Mul", ["past", "two"], ["twice"]),
            NODE("Add", ["twice", "present"], ["both"]),
            NODE("ReduceSum", ["both", "last"], ["y"], keepdims=0),
        ],
        lambda past, present: (2 * past + present).sum(1),
    ),
    "between": (
        [
            NODE("ScatterND", ["past", "at", "row"], ["middle"]),
            NODE("ScatterND", ["middle", "zero_at", "row"], ["present"]),
            NODE("Sub", ["present", "middle"], ["d"]),
            NODE("ReduceSum", ["d", "last"], ["y"], keepdims=0),
        ],
        None,
    ),
    "chain": (
        [
            NODE("ScatterND", ["past", "at", "row"], ["middle"]),
            NODE("ScatterND", ["middle", "zero_at", "row"], ["present"]),
            NODE("ReduceSum", ["present", "last"], ["y"], keepdims=0),
        ],
        None,
    ),
}


def model(kind):
    nodes = [NODE("Reshape", ["pos", "one_one"], ["at"])] + KINDS[kind][0]
    weights = {
        "one_one": np.int64([1, 1]),
        "last": np.int64([1]),
        "two": np.float32(2),
        "zero_at": np.int64([[0]]),
    }
    graph = helper.make_graph(
        nodes,
        "g",
        [VALUE("row", F, [1, WIDTH]), VALUE("pos", I, [1]), VALUE("past", F, [ROWS, WIDTH])],
        [VALUE("y", F, [ROWS]), VALUE("present", F, [ROWS, WIDTH])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()


def wanted(kind):
    past, out = np.zeros((ROWS, WIDTH)), []
    for i in range(STEPS):
        row = (i + 1) * (np.arange(WIDTH) - 3)
        middle = past.copy()
        middle[i * 7 % ROWS] = row
        present = middle.copy()
        if kind in ("between", "chain"):
            present[0] = row
        out.append(
            (present - middle).sum(1)
            if kind == "between"
            else present.sum(1)
            if kind == "chain"
            else KINDS[kind][1](past, present)
        )
        past = present
    return np.concatenate(out)


def run_steps(ingot, work, kind):
    """The plan's steps that write the state's buffer or copy, after the results have been
    compared."""
    file, bundle = work / "model.onnx", work / kind
    file.write_bytes(model(kind))
    call(ingot, "compile", file, "-o", bundle, "--state", "past=present")
    (work / "steps.c").write_text(PROGRAM)
    call(
        "cc",
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-psabi",
        *SANITIZE.split(),
        "-I",
        bundle,
        work / "steps.c",
        *sorted(bundle.glob("*.c")),
        "-lm",
        "-o",
        work / "steps",
    )
    got = np.array(call(work / "steps").split(), np.float64)
    if got.shape != wanted(kind).shape or np.abs(got - wanted(kind)).max() > 1e-4:
        raise Wrong(f"{kind}: {got}, not {wanted(kind)}")
    call(ingot, "verify", file, "--state", "past=present", env={"INGOT_CACHE": str(work / "cache")})
    plan = call(ingot, "inspect", file, "--state", "past=present", "--dump", "plan")
    state = re.search(r"^buffer (b\d+) state", plan, flags=re.M)[1]
    arena = sum(
        ROWS * WIDTH
        for line in re.findall(r"^buffer b\d+ arena f32.*", plan, flags=re.M)
        if f"[{ROWS},{WIDTH}]" in line
    )
    return (
        len(re.findall(rf"^  copy {state} ", plan, flags=re.M)),
        len(re.findall(rf"^  run \w+ {state} ", plan, flags=re.M)),
        arena,
    )


def row(ingot, work):
    for kind, writers in (("one", 1), ("chain", 2)):
        found = run_steps(ingot, work, kind)
        if found != (0, writers, 0):
            raise Wrong(
                f"{kind}: copies, kernels that write the state, other elements of its size: {found}"
            )
    print("1 and 2 rows a step")


def readers(ingot, work):
    told = [run_steps(ingot, work, kind)[0] for kind in ("old", "between")]
    # What lies between is in the arena, and the next state is written where the old one was.
    if told != [1, 0]:
        raise Wrong(f"copies: {told}")
    print("2 models")


HEADS, ROOM = 2, 6

GROWING = """#include <stdio.h>
#include "model.h"
static _Alignas(MODEL_ARENA_ALIGN) unsigned char arena[MODEL_ARENA_BYTES(1) + 1];
static float x[%(size)d], y[%(size)d];
int main(void)
{
    model_ctx ctx;
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    model_inputs in = {.x = x};
    model_outputs out = {.y = y};
    if (model_init(&ctx, &config))
        return 1;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < %(room)d; i++) {
            for (int k = 0; k < %(size)d; k++)
                x[k] = (float)((i * 5 + k * 3) %% 7 - 3) / 4;
            if (model_length_past(&ctx) != i || model_run(&ctx, &in, &out))
                return 2;
            for (int k = 0; k < %(size)d; k++)
                printf("%%.9g\\n", y[k]);
        }
        if (model_run(&ctx, &in, &out) != IGRT_ERR_DIM || model_length_past(&ctx) != %(room)d) /* full */
            return 3;
        if (model_reset(&ctx))
            return 4;
    }
    return 0;
}
""" % {"size": HEADS * WIDTH, "room": ROOM}

# How the rows come into the cache, and how many steps write all of it.
APPENDS = {
    "appended": (
        [
            NODE("Concat", ["past_k", "k"], ["present_k"], axis=1),
            NODE("Concat", ["past_v", "v"], ["present_v"], axis=1),
        ],
        0,
    ),
    "read before": (
        [
            NODE("Concat", ["past_k", "k"], ["present_k"], axis=1),
            NODE("ReduceSum", ["past_v", "axis"], ["old"], keepdims=1),
            NODE("Add", ["v", "old"], ["new"]),
            NODE("Concat", ["past_v", "new"], ["present_v"], axis=1),
        ],
        0,
    ),
    "in front": (
        [
            NODE("Concat", ["k", "past_k"], ["present_k"], axis=1),
            NODE("Concat", ["v", "past_v"], ["present_v"], axis=1),
        ],
        2,
    ),
}


def growing_model(kind):
    """Attention of one token over a cache of its own: [heads, past, width]."""
    nodes = (
        [NODE("Mul", ["x", "scale"], ["k"]), NODE("Tanh", ["x"], ["v"])]
        + APPENDS[kind][0]
        + [
            NODE("Transpose", ["present_k"], ["t"], perm=[0, 2, 1]),
            NODE("MatMul", ["x", "t"], ["s"]),
            NODE("Softmax", ["s"], ["p"], axis=-1),
            NODE("MatMul", ["p", "present_v"], ["y"]),
        ]
    )
    weights = {"scale": np.linspace(0.5, 2, WIDTH, dtype=np.float32), "axis": np.int64([1])}
    cache = lambda name, dim: VALUE(name, F, [HEADS, dim, WIDTH])
    graph = helper.make_graph(
        nodes,
        "g",
        [VALUE("x", F, [HEADS, 1, WIDTH]), cache("past_k", "past"), cache("past_v", "past")],
        [
            VALUE("y", F, [HEADS, 1, WIDTH]),
            cache("present_k", "total"),
            cache("present_v", "total"),
        ],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def growing_wanted(model):
    try:
        import onnxruntime

        onnxruntime.set_default_logger_severity(3)
        run = onnxruntime.InferenceSession(model.SerializeToString()).run
    except ModuleNotFoundError:
        from onnx.reference import ReferenceEvaluator

        run = ReferenceEvaluator(model).run
    k = v = np.zeros((HEADS, 0, WIDTH), np.float32)
    out = []
    for i in range(ROOM):
        x = ((i * 5 + np.arange(HEADS * WIDTH) * 3) % 7 - 3).astype(np.float32).reshape(
            HEADS, 1, WIDTH
        ) / 4
        y, k, v = run(None, {"x": x, "past_k": k, "past_v": v})
        out.append(y.ravel())
    return np.concatenate(out + out)


def grows(ingot, work):
    flags = (
        "--dim",
        f"past=0..{ROOM - 1}",
        "--state",
        "past_k=present_k",
        "--state",
        "past_v=present_v",
    )
    file = work / "model.onnx"
    for kind, (_, copies) in APPENDS.items():
        file.write_bytes(growing_model(kind).SerializeToString())
        call(ingot, "compile", file, "-o", work / kind, *flags)
        pattern = "past_*=present_*"
        call(ingot, "compile", file, "-o", work / "pattern", *flags[:2], "--state", pattern)
        for one in sorted((work / kind).glob("model*.[ch]")):
            if one.read_bytes() != (work / "pattern" / one.name).read_bytes():
                raise Wrong(f"{kind}: --state {pattern}: another {one.name}")
        (work / "steps.c").write_text(GROWING)
        call(
            "cc",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-psabi",
            *SANITIZE.split(),
            "-I",
            work / kind,
            work / "steps.c",
            *sorted((work / kind).glob("*.c")),
            "-lm",
            "-o",
            work / "steps",
        )
        got, want = (
            np.array(call(work / "steps").split(), np.float64),
            growing_wanted(growing_model(kind)),
        )
        if got.shape != want.shape or np.abs(got - want).max() > 1e-5:
            raise Wrong(f"{kind}: {got}, not {want}")
        call(ingot, "verify", file, *flags, env={"INGOT_CACHE": str(work / "cache")})
        plan = call(ingot, "inspect", file, *flags, "--dump", "plan")
        states = re.findall(
            rf"^buffer (b\d+) state f32\[{HEADS},{ROOM},{WIDTH}\]", plan, flags=re.M
        )
        long = re.findall(
            r"^kernel (\w+) .*\n  axes[^+\n]*past", plan, flags=re.M
        )  # loops over all rows of their results
        whole = [
            k
            for k, b in re.findall(r"^  run (\w+) (b\d+)", plan, flags=re.M)
            if b in states and k in long
        ]
        if len(states) != 2 or len(whole) != copies:
            raise Wrong(f"{kind}: {states}, written whole by {whole} in\n{plan}")
    print(", ".join(APPENDS))


def loop(ingot, work):
    body = helper.make_graph(
        [
            NODE("Identity", ["keep"], ["go"]),
            NODE("Reshape", ["i", "one_one"], ["at"]),
            NODE("Cast", ["i"], ["f"], to=F),
            NODE("Add", ["x", "f"], ["v"]),
            NODE("ScatterND", ["rows", "at", "v"], ["next"]),
        ],
        "body",
        [VALUE("i", I, []), VALUE("keep", B, []), VALUE("rows", F, [ROWS, WIDTH])],
        [VALUE("go", B, []), VALUE("next", F, [ROWS, WIDTH])],
    )
    graph = helper.make_graph(
        [NODE("Loop", ["trip", "", "start"], ["y"], body=body)],
        "g",
        [VALUE("x", F, [1, WIDTH]), VALUE("start", F, [ROWS, WIDTH])],
        [VALUE("y", F, [ROWS, WIDTH])],
        [
            numpy_helper.from_array(np.int64(9), "trip"),
            numpy_helper.from_array(np.int64([1, 1]), "one_one"),
        ],
    )
    file = work / "model.onnx"
    file.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
    x, start = np.arange(WIDTH, dtype=np.float32)[None], -np.ones((ROWS, WIDTH), np.float32)
    np.save(work / "x.npy", x)
    np.save(work / "start.npy", start)
    call(
        ingot,
        "run",
        file,
        "--input",
        work / "x.npy",
        "--input",
        work / "start.npy",
        "--output-dir",
        work,
        env={"INGOT_CACHE": str(work / "cache")},
    )
    start[:9] = x + np.arange(9, dtype=np.float32)[:, None]
    if (np.load(work / "output_0.npy") != start).any():
        raise Wrong("other results")
    plan = call(ingot, "inspect", file, "--dump", "plan")
    inside = plan[plan.index("  loop") :]
    if len(re.findall(r"^    (run|copy) ", inside, flags=re.M)) != 1:
        raise Wrong(f"an iteration does more than write a row:\n{inside}")
    print("one kernel an iteration")


def refused(ingot, work):
    file = work / "model.onnx"
    file.write_bytes(model("one"))
    grown = growing_model("appended")
    for dim, change, words in (
        ("past=1..4", lambda m: m, "begin at 0"),
        ("past=4", lambda m: m, "keeps its size"),
    ):
        file.write_bytes(grown.SerializeToString())
        done = subprocess.run(
            [ingot, "compile", file, "-o", work / "o", "--dim", dim, "--state", "past_k=present_k"],
            text=True,
            capture_output=True,
        )
        if done.returncode not in (2, 4) or words not in done.stderr:
            raise Wrong(f"--dim {dim}: status {done.returncode}: {done.stderr}")
    file.write_bytes(model("one"))
    for flag, status, words in (
        ("past=y", 4, "keeps its size"),
        ("pass=present", 2, "no input"),
        ("past=nothing", 2, "no output"),
        ("past", 2, "INPUT=OUTPUT"),
        ("pass*=present*", 2, "no input 'pass*'"),
        ("p*t=p*s", 2, "no output 'pass'"),
    ):
        done = subprocess.run(
            [ingot, "compile", file, "-o", work / "o", "--state", flag],
            text=True,
            capture_output=True,
        )
        if done.returncode != status or words not in done.stderr:
            raise Wrong(f"--state {flag}: status {done.returncode}: {done.stderr}")
    print("8 faults")


if __name__ == "__main__":
    sys.exit(main(__doc__, {f.__name__: f for f in (row, readers, grows, loop, refused)}))
