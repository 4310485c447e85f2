#!/usr/bin/env python3
"""What the cache of `ingot run` knows programs by: whatever makes another program makes another
key, and nothing else does.

    keys.py --ingot build/ingot [CHECK...]      all checks unless some are named

    options   every option of run, verify and bench either counts, and then each value of it has a
              key of its own, or is known not to
    files     a changed byte of the model, of what lies beside it or in a folder, of a .sched file,
              a target file, a function's source; a C compiler behind another program
    data      sizes that free dims take from the data

The keys are told by -v; nothing is compiled, for the cache cannot be written.  Of what the compiler
itself knows kernels and values by: tests/unit/kernel_keys_test.c, keys_test.c; of what the tuner does:
tune_keys_test.c.  Exit status 77,
skipped: there is no Python with onnx.
"""

import os
import re
import subprocess
import sys

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from run import Wrong, call, main
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

# Options by which the program is another one, with values that are all different; {}: the folder of
# the test.
COUNTS = {
    "--target": ["c", "c:c99", "c:x86-64-v3", "{}/a.target", "{}/b.target"],
    "--dim": ["n=3", "n=1..3", "n=1..8", "n=m", "n=k", "m=3", "m=n", "m=1..3"],
    "--state": ["s=t", "s=u"],
    "--bind": ["s=t", "s=u", "s=1,2", "s=1,3", "s=1,2,", "r=1,2"],
    "--op": ["a:F={}/f.c", "a:G={}/f.c", "a:F={}/g.c", "a:F={}/f.c:f", "a:F={}/f.c:g", "s=t"],
    "--string-bytes": ["64", "128"],
    "--subnormals": ["keep"],
    "--rounding": ["xnnpack"],
    "--precision": ["1e-5", "bf16", "bf16x3", "f16", "q8", "q16", "narrow"],
    "--kv": ["f32", "q8"],
    "--slots": ["2", "3"],
    "--max-ram": ["64k", "1M"],
    "--weights-type": ["q8_0", "q4_0"],
    "-O0": [None],
    "--no-rewrite": ["winograd", "strips", "winograd,strips"],
    "--fuse": ["none", "all", "auto"],
    "--prefer": ["ram", "time"],
    "--devices": ["2", "3"],
    "--parallel": ["batch", "layers"],
    "--sched": ["{}/a.sched", "{}/b.sched"],
}
# Several at once: lists have an end.
TOGETHER = [
    ("--dim", "n=3", "--dim", "m=3"),
    ("--dim", "n=3", "--bind", "s=1,2"),
    ("--dim", "n=3", "--state", "s=t"),
    ("--state", "s=t", "--bind", "s=u"),
    ("--state", "s=u", "--bind", "s=t"),
    ("--sched", "{}/a.sched", "--threads", "2"),
    ("--sched", "{}/a.sched", "--threads", "3"),
    ("--fuse", "none", "--prefer", "ram"),
    ("--dim", "n=3", "--dim", "n=1..8"),
    ("--dim", "n=1..8", "--dim", "n=3"),
]
# What the program is told when it runs, what is told of it, and how it comes into the cache.
DOES_NOT = {
    "--data",
    "--input",
    "--output-dir",
    "--tolerance",
    "--interpret",
    "--threads",
    "--seconds",
    "--per-kernel",
    "--on-device",
    "--trace",
    "--json",
    "--no-bind",
    "--no-cache",
    "--no-check",
    "-O2",
    "-q",
    "-v",
}
# It counts, and no format in the tree has several networks: tests/recipes/importer.py tries it.
ELSEWHERE = {"--entry"}
# They go with --train, which wants a loss and an optimizer; all rows differ.
TRAINED = ("--train", "--loss", "mse:z", "--optimizer", "sgd")
TRAINING = [
    (),
    ("--loss", "cross_entropy:z"),
    *(
        ("--optimizer", o)
        for o in ("momentum", "adam", "adamw", "sgd:rate=0.1", "momentum:nesterov")
    ),
    *(("--optimizer", f"adam:{o}") for o in ("beta1=0.5", "beta2=0.5", "epsilon=0.1", "decay=0.1")),
    *((o, g) for o in ("--trainable", "--frozen") for g in ("a", "b")),
    ("--trainable", "a", "--frozen", "b"),
    ("--trainable", "a", "--trainable", "b"),
    *(("--accumulate", n) for n in "23"),
    *(("--clip", n) for n in "23"),
    *(("--lora", n) for n in ("r=2:*", "r=3:*", "r=2:w*", "r=2:alpha=4:*")),
    *(("--precision", "f16", "--loss-scale", n) for n in ("8", "16")),
    ("--processes",),
    ("--quantised",),
    *(("--lora", r) for r in ("r=2:a", "r=3:a", "r=2:alpha=3:a", "r=2:b")),
    *(("--loss-scale", n) for n in "23"),
    *(("--loss", "cross_entropy:z", "--class-axis", n) for n in ("-1", "2")),
    *(("--loss", "cross_entropy:z", "--label-smoothing", n) for n in ("0.1", "0.2")),
    *(("--loss", "cross_entropy:z", "--ignore-index", n) for n in ("-100", "0")),
]
FREE = [
    ("--threads", "2"),
    ("--no-bind",),
    ("--no-cache",),
    ("--no-check",),
    ("-O2",),
    ("--tolerance", "0.5"),
]


def model(work, name="m", dims=("n", "m"), scale=2.0, external=None):
    """z = x * scale + sum(y); t = u = 3 s."""
    F = TensorProto.FLOAT
    weights = [
        numpy_helper.from_array(np.full((4,), scale, np.float32), "scale"),
        numpy_helper.from_array(np.float32(3), "three"),
    ]
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["p"]),
        helper.make_node("ReduceSum", ["y"], ["q"], keepdims=0),
        helper.make_node("Add", ["p", "q"], ["z"]),
        helper.make_node("Mul", ["s", "three"], ["t"]),
        helper.make_node("Neg", ["t"], ["u"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "keys",
        [info("x", F, [dims[0], 4]), info("y", F, [dims[1], 4]), info("s", F, [1, 2])],
        [info("z", F, None), info("t", F, [1, 2]), info("u", F, [1, 2])],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if external:
        onnx.external_data_helper.set_external_data(made.graph.initializer[0], external)
        (work / external).parent.mkdir(exist_ok=True)
        (work / external).write_bytes(made.graph.initializer[0].raw_data)
        made.graph.initializer[0].ClearField("raw_data")
    (work / f"{name}.onnx").write_bytes(made.SerializeToString())
    return work / f"{name}.onnx"


def prepare(work):
    for name in ("f.c", "g.c"):
        (work / name).write_text(f"float {name[0]}(float x) {{ return x; }}\n")
    for name, rows in (("x", 3), ("y", 3), ("y5", 5)):
        np.save(work / f"{name}.npy", np.ones((rows, 4), np.float32))
    np.save(work / "s.npy", np.ones((1, 2), np.float32))
    for name, lanes in (("a", 4), ("b", 8)):
        (work / f"{name}.target").write_text(
            f"cc = cc\nmachine = x86_64-linux-gnu\nlanes = {lanes}\n"
        )
        (work / f"{name}.sched").write_text(f"sched 2\ntarget c\n# {name}\n")


def key(ingot, work, *flags, file=None, command="run", y="y", cc="cc"):
    """The name of the folder of the cache."""
    flags = [f.replace("{}", str(work)) for f in flags if f]
    inputs = [work / "x.npy", work / f"{y}.npy", *([] if "--state" in flags else [work / "s.npy"])]
    words = [
        ingot,
        command,
        file or work / "m.onnx",
        "-v",
        *flags,
        *(w for i in inputs for w in ("--input", i)),
    ]
    done = subprocess.run(
        [str(w) for w in words],
        capture_output=True,
        text=True,
        env=dict(os.environ, INGOT_CACHE="/dev/null/cache", CC=cc),
    )
    found = re.search(r"cache: /dev/null/cache/([0-9a-f]{32})$", done.stderr, re.M)
    if not found:
        raise Wrong(f"{' '.join(map(str, words))}: no key\n{done.stdout}{done.stderr}")
    return found[1]


def all_differ(keys):
    seen = {}
    for what, k in keys.items():
        if k in seen:
            raise Wrong(f"'{what}' and '{seen[k]}' have one key")
        seen[k] = what


def options(ingot, work):
    prepare(work)
    model(work)
    told = set()
    for command in ("run", "verify", "bench"):
        told |= set(re.findall(r"^  (-[-\w]+)", call(ingot, command, "--help"), re.M))
    training = {w for row in [TRAINED, *TRAINING] for w in row if w.startswith("--")}
    known = {"--help", "-h"} | set(COUNTS) | DOES_NOT | ELSEWHERE | training
    if told | {"--help", "-h"} != known:
        raise Wrong(f"not in the table, or no more there: {(told | {'--help', '-h'}) ^ known}")
    rows = [(), *((o, v) if v else (o,) for o, values in COUNTS.items() for v in values), *TOGETHER]
    keys = {" ".join(r): key(ingot, work, *r) for r in rows}
    all_differ(keys)
    for row in FREE:
        if key(ingot, work, *row) != keys[""]:
            raise Wrong(f"{row} has another key")
    keys["bench"] = key(ingot, work, command="bench")  # its program does not check indices
    for row in TRAINING:
        row = (*TRAINED, *row)
        keys[" ".join(row)] = key(ingot, work, *row, command="bench")
    for cc in ("cc -m32", "cc -Dnative", "/usr/bin/env cc"):
        keys[cc] = key(ingot, work, cc=cc)
    all_differ(keys)
    print(f"{len(keys)} keys")


def files(ingot, work):
    prepare(work)
    rows = {
        "model": ((), "m"),
        "beside": ((), "e"),
        "folder": ((), "d"),
        "sched": (("--sched", "{}/a.sched"), "m"),
        "target": (("--target", "{}/a.target"), "m"),
        "function": (("--op", "a:F={}/f.c"), "m"),
    }
    model(work)
    model(work, "e", external="e.bin")
    model(work, "d", external="folder/d.bin")
    changes = {
        "model": lambda: model(work, scale=2.5),
        "beside": lambda: (work / "e.bin").write_bytes(b"12345678" * 3),
        "folder": lambda: (work / "folder" / "d.bin").write_bytes(b"12345678" * 3),
        "sched": lambda: (work / "a.sched").write_text("sched 2\ntarget c\n# c\n"),
        "target": lambda: (work / "a.target").write_text((work / "b.target").read_text()),
        "function": lambda: (work / "f.c").write_text("float f(float x) { return -x; }\n"),
    }
    for what, (flags, name) in rows.items():
        was = [key(ingot, work, *flags, file=work / f"{name}.onnx") for _ in range(2)]
        changes[what]()
        if was[0] != was[1] or key(ingot, work, *flags, file=work / f"{name}.onnx") == was[0]:
            raise Wrong(
                f"{what}: the key is {'the same' if was[0] == was[1] else 'another one each time'}"
            )
    compiler = work / "compiler"
    compiler.write_text("#!/bin/sh\nexec cc \"$@\"\n")
    compiler.chmod(0o755)
    was = key(ingot, work, cc=f"/usr/bin/env {compiler}")
    compiler.write_text("#!/bin/sh\nexec cc -O1 \"$@\"\n")
    if key(ingot, work, cc=f"/usr/bin/env {compiler}") == was:
        raise Wrong("another compiler behind env: the key is the same")
    print(f"{len(rows) + 1} kinds of files")


def data(ingot, work):
    prepare(work)
    model(work)
    fixed, both = (
        model(work, "fixed", (3, 3)),
        {"3": key(ingot, work), "5": key(ingot, work, y="y5")},
    )
    all_differ({**both, "fixed": key(ingot, work, file=fixed)})
    print("sizes count")


if __name__ == "__main__":
    sys.exit(main(__doc__, {"options": options, "files": files, "data": data}))
