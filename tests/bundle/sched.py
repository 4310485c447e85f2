#!/usr/bin/env python3
"""Plans that are written, edited by hand and replayed.

    sched.py --ingot build/ingot

    same      an unedited file gives the same bytes, and is written again the same; a section for
              each target
    edited    other tiles, orders and layouts take effect and give the interpreter's results
    values    what is stored, merged, in a concat, computed in another way: changed by hand and
              back; a line less
    changed   a file goes on to apply when operators are added, names, order and weights change
    refused   what cannot be done ends in one line with file and line number, status 2

Exit status 77, skipped: there is no Python with onnx.
"""

import json
import re
import subprocess
import sys

try:
    import models
    from run import HERE, Wrong, call, fingerprint, main
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

TARGET = ("--target", "c:x86-64-v3")  # 8 lanes; any compiler builds them as vectors or as pairs


def compile_model(ingot, work, name, out, *flags):
    model = work / f"{name}.onnx"
    model.write_bytes(models.build(name))
    call(ingot, "compile", model, "-o", work / out, *TARGET, *flags)
    return fingerprint(work / out)


SAVED = ("cnn", "attention", "lstm")


def same_again(ingot, work, model, *flags):
    """One that is not among the models: the same bundle, and the same file."""
    saved, again = work / "saved.sched", work / "again.sched"
    call(ingot, "compile", model, "-o", work / "a", *flags, "--save-sched", saved)
    call(ingot, "compile", model, "-o", work / "b", *flags, "--sched", saved, "--save-sched", again)
    if (
        fingerprint(work / "a") != fingerprint(work / "b")
        or saved.read_bytes() != again.read_bytes()
    ):
        raise Wrong(f"{model.name} {flags}: another bundle, or another file")


def same_chain(ingot, work):
    """Values whose neighbourhoods are equal, of which a few are stored: kernels have a limit."""
    from onnx import TensorProto, helper

    model, n = work / "chain.onnx", 300
    nodes = [
        helper.make_node("Relu" if i % 2 else "Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)
    ]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 64]) for name in ("v0", f"v{n}")
    )
    model.write_bytes(
        helper.make_model(
            helper.make_graph(nodes, "g", [x], [y]),
            opset_imports=[helper.make_opsetid("", 17)],
            ir_version=8,
        ).SerializeToString()
    )
    same_again(ingot, work, model, *TARGET)
    if (work / "saved.sched").read_text().count(" stored ") < 3:
        raise Wrong("the chain is one kernel: nothing is seen of what it is for")


def same_target_files(ingot, work):
    """Target files whose paths are no words, or long ones."""
    folder = work / ("a folder # with a name of more than " + "sixty " * 3 + "letters")
    folder.mkdir()
    probed = subprocess.run(
        [ingot, "targets", "--probe", "cc"], capture_output=True, text=True, check=True
    ).stdout
    for name in ("a.target", "o ne.target", "l" * 100 + ".target"):
        (folder / name).write_text(probed)
        same_again(ingot, work, work / "cnn.onnx", "--target", folder / name)


def same(ingot, work):
    for name in models.MODELS:
        saved, again = work / f"{name}.sched", work / f"{name}.again"
        first = compile_model(ingot, work, name, "a", "--save-sched", saved)
        if compile_model(ingot, work, name, "b", "--sched", saved, "--save-sched", again) != first:
            raise Wrong(f"{name}: another bundle")
        if saved.read_bytes() != again.read_bytes():
            raise Wrong(f"{name}: another file")
        if name in SAVED and compile_model(ingot, work, name, "c") != first:
            raise Wrong(f"{name}: saving changes the bundle")
    both = work / "both.sched"
    for name in ("attention", "quantized", "lstm"):
        for target in ("opencl", "cuda:sm_90"):
            gpu = ("--target", target)
            first = compile_model(ingot, work, name, "a", *gpu, "--save-sched", work / "gpu.sched")
            both.write_bytes(saved_of(work, name).read_bytes() + (work / "gpu.sched").read_bytes())
            if (
                compile_model(
                    ingot, work, name, "b", *gpu, "--sched", both, "--save-sched", work / "again"
                )
                != first
            ):
                raise Wrong(f"{name}: another bundle for {target}")
            if (work / "again").read_bytes() != (work / "gpu.sched").read_bytes():
                raise Wrong(f"{name}: another file for {target}")
        call(
            ingot,
            "compile",
            work / f"{name}.onnx",
            "-o",
            work / "c",
            "--target",
            "opencl",
            "--sched",
            saved_of(work, name),
            good=(2,),
        )
    same_chain(ingot, work)
    same_target_files(ingot, work)
    print(f"{len(models.MODELS)} models")


def saved_of(work, name):
    return work / f"{name}.sched"


def network(changes=()):
    """Three blocks of convolutions of 1x1 and 3x3 in concats, three products of one operand, a few
    ways to change it."""
    g = models.Graph(5)
    if "weights" in changes:
        g.rng = models.np.random.default_rng(6)
    conv = lambda x, out, inner, size: g.op(
        "Relu",
        g.op("Conv", x, g.weight(out, inner, size, size), g.weight(out), pads=[size // 2] * 4),
    )
    h = conv(g.input("image", models.F, 1, 3, 8, 8), 8, 3, 3)
    for i in range(3):
        inner = conv(h, 16, 8 + 4 * i, 1)
        if "middle" in changes and i == 1:
            inner = g.op("Tanh", inner)
        h = g.op("Concat", h, conv(inner, 4, 16, 3), axis=1)
    h = g.op("Reshape", conv(conv(h, 20, 20, 1), 20, 20, 1), g.const([20, 64], models.np.int64))
    q, k, v = (g.op("MatMul", h, g.weight(64, 12)) for _ in range(3))
    h = g.op("MatMul", g.op("Softmax", g.op("MatMul", q, g.op("Transpose", k)), axis=-1), v)
    if "end" in changes:
        h = g.op("Sigmoid", g.op("ReduceSum", h, g.const([1], models.np.int64)))
    g.output("y", h, models.F, 20, 1 if "end" in changes else 12)
    if "order" in changes:  # any order in which sources come first
        nodes, known, order = list(reversed(g.nodes)), {"image"} | {w.name for w in g.weights}, []
        while nodes:
            n = next(n for n in nodes if all(i in known for i in n.input))
            nodes.remove(n)
            order.append(n)
            known |= set(n.output)
        g.nodes = order
    if "names" in changes:
        rename = lambda names: [n if n in ("image", "y") else "v_" + n[::-1] for n in names]
        for i, n in enumerate(g.nodes):
            n.name, ins, outs = f"other{i}", rename(n.input), rename(n.output)
            del n.input[:], n.output[:]
            n.input.extend(ins)
            n.output.extend(outs)
        for w in g.weights:
            w.name = rename([w.name])[0]
    return g.bytes()


def chain(layers, means):
    """Convolutions whose operands nobody else reads; of each second one the mean is taken away."""
    g = models.Graph(6)
    h = g.input("image", models.F, 1, 4, 8, 8)
    for i in range(layers):
        h = g.op("Relu", g.op("Conv", h, g.weight(4, 4, 3, 3), g.weight(4), pads=[1] * 4))
        h = g.op("Sub", h, g.op("GlobalAveragePool", h)) if means and i % 2 else h
    g.output("y", h, models.F, 1, 4, 8, 8)
    return g.bytes()


# What, the change, and its effect on the number of kernels.
VALUES = {
    "a stored value is recomputed": (r" stored(  # max \S+ Relu relu_3,.*\n)", r" recomputed\1", 0),
    "a recomputed one is stored": (
        r" recomputed( as \w+)?(  # reduce .*conv_4,.*\n)",
        r" stored\1\2",
        1,
    ),
    "not merged": (r" with \w+", " apart", 1),
    "not in the concat": (r" in \w+(  # max .*relu_1,.*\n)", r" alone\1", 1),
    "another variant": (r" as direct(  # reduce .*conv_19,.*\n)", r" as matmul\1", 0),
    "a line less": (r"value .*relu_3,.*\n", "", 0),
}
# For GPUs nothing is merged, and the last part of each concat is computed where it is read.
GPU_VALUES = {k: v for k, v in VALUES.items() if k != "not merged"} | {
    "not in the concat": (r" in \w+(  # concat .*concat_6,.*\n)", r" alone\1", None)
}


def values(ingot, work):
    told = [edited_values(ingot, work, target) for target in (TARGET[1], "opencl", "cuda:sm_90")]
    print("; ".join(told))


def edited_values(ingot, work, target):
    """What is verified is what a machine without a GPU can run; for the others the text is
    compared."""
    model, file, cache = work / "net.onnx", work / "net.sched", {"INGOT_CACHE": str(work / "cache")}
    model.write_bytes(network())
    runs, edits = target == TARGET[1], 0

    def compiled(*flags):
        call(ingot, "compile", model, "-o", work / "n", "--target", target, *flags)
        return fingerprint(work / "n")

    def plan(*flags):
        """Steps that run a kernel, and bytes of the arena."""
        text = call(ingot, "inspect", model, "--dump", "plan", "--target", target, *flags)
        return len(re.findall(r"^ +run ", text, flags=re.M)), int(
            re.search(r"^arena (\d+)", text, flags=re.M)[1]
        )

    first, (count, arena) = compiled("--save-sched", file), plan()
    saved = together = file.read_text()
    (work / "first.sched").write_text(saved)
    if not call(ingot, "plan", "diff", file, file).startswith("0 values and 0 kernels differ"):
        raise Wrong("plan diff of a file with itself")
    for what, (old, new, more) in (VALUES if runs else GPU_VALUES).items():
        text, n = re.subn(old, new, saved, count=1)
        together = re.sub(old, new, together, count=1) if new else together
        edits += 1
        file.write_text(text)
        if n != 1:
            raise Wrong(f"{what}: nothing to edit in\n{saved}")
        if new and compiled("--sched", file) == first:
            raise Wrong(f"{what}: without effect")
        again = file.with_suffix(".again")
        if compiled("--sched", file, "--save-sched", again) != compiled("--sched", again):
            raise Wrong(f"{what}: lost when it is written again")
        if not new and compiled("--sched", file) != first:
            raise Wrong(f"{what}: another bundle")
        made = plan("--sched", file)[0] if more is not None else None
        if more is not None and made != count + more:
            raise Wrong(f"{what}: {made} kernels, {count} before")
        told = call(ingot, "plan", "diff", work / "first.sched", file)
        if new and (" -> " not in told or " bytes" not in told):
            raise Wrong(f"{what}: plan diff tells\n{told}")
    file.write_text(saved)  # and back
    if compiled("--sched", file) != first:
        raise Wrong("not the same after all is undone")
    if runs:  # all edits at once
        file.write_text(together)
        call(ingot, "verify", model, *TARGET, "--sched", file, env=cache)
    (none, room), (few, _) = plan("--fuse", "none"), plan("--fuse", "all")
    if not none > count or few > 0.8 * count:
        raise Wrong(f"--fuse none: {none} kernels, all: {few}, auto: {count}")
    if room > 6 * arena:  # the terms of a sum of products are 9 and more for each of its results
        raise Wrong(f"--fuse none: an arena of {room} bytes, {arena} otherwise")

    def work_of(how):
        told = json.loads(
            call(ingot, "inspect", model, "--json", "--target", target, "--fuse", how)
        )
        return sum(s.get("flops", 0) for s in told["steps"]), told["arena_bytes"]

    for layers, means in (
        (24, False),
        (8, True),
    ):  # each layer has nine terms for each element of the one before
        model.write_bytes(chain(layers, means))
        (once, room), (again, more) = work_of("auto"), work_of("all")
        if again > 9 * once:  # eight times more, schedule/repeat.c
            raise Wrong(
                f"--fuse all: {again} operations of a chain{' with means' if means else ''}, {once} otherwise"
            )
        if more > 2 * room:  # no terms, and no windows
            raise Wrong(f"--fuse all: an arena of {more} bytes of a chain, {room} otherwise")
    model.write_bytes(network())
    for how in ("none", "all") if runs else ():
        call(ingot, "verify", model, *TARGET, "--fuse", how, env=cache)
    return f"{target}: {edits} edits; {none} kernels, {count}, {few}"


CHANGES = {"end": 100, "middle": 95, "names": 100, "order": 100, "weights": 100}


def changed(ingot, work):
    model, file = work / "net.onnx", work / "net.sched"
    model.write_bytes(network())
    call(ingot, "compile", model, "-o", work / "n", *TARGET, "--save-sched", file)
    told = []
    for what, least in CHANGES.items():
        model.write_bytes(network({what}))
        done = subprocess.run(
            [ingot, "compile", model, "-o", work / "n", *TARGET, "--sched", file, "-v"],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if done.returncode:
            raise Wrong(f"{what}: {done.stderr}")
        applied, lines = map(int, re.search(r"(\d+) of (\d+) entries apply", done.stderr).groups())
        told.append(f"{what} {100 * applied / lines:.0f} %")
        if 100 * applied < least * lines:
            raise Wrong(
                f"{what}: {applied} of {lines} lines apply, {least} % are wanted\n{done.stderr}"
            )
        if what in ("end", "middle"):
            call(
                ingot,
                "verify",
                model,
                *TARGET,
                "--sched",
                file,
                env={"INGOT_CACHE": str(work / "cache")},
            )
    print(", ".join(told))


def edit(text, *changes):
    """Each change is (old, new) at its first place, or (old, new, n) at its n-th from 0."""
    for old, new, *n in changes:
        parts = text.split(old)
        at = n[0] + 1 if n else 1
        if len(parts) <= at:
            raise Wrong(f"no '{old}' to edit in\n{text}")
        text = old.join(parts[:at]) + new + old.join(parts[at:])
    return text


# The kernels of cnn: a convolution, its pooling, a depthwise convolution, means, and the last
# product. Edits start from these decisions, whatever the compiler's own are today.
BASE = [
    """  ORDER i0 i1
""",
    """  arg 0 layout permute(0,2,3,1)
  arg 2 layout permute(1,2,3,0)
  VECTOR i0 8
  UPCAST i2 8
  ORDER i0.o i1 i2.o r0 r1 r2
""",
    """  arg 0 layout pad(2,1,0) pad(3,1,0) permute(0,2,3,1)
  VECTOR i0 8
  ORDER i1 i2 i0.o
""",
    """  arg 0 layout permute(0,2,3,1)
  arg 2 layout permute(1,2,3,0)
  VECTOR i0 8
  UPCAST i2 4
  ORDER i1 i2.o i0.o r0 r1
""",
    """  VECTOR i0 8
""",
    """  arg 2 layout split(0,4) permute(0,2,1)
  arg 3 layout split(1,4) permute(1,0,2)
  VECTOR i0 4
  ORDER i0.o r0
""",
]


def base(ingot, work):
    """A file with these decisions, and the bundle that they give."""
    file = work / "cnn.sched"
    compile_model(ingot, work, "cnn", "a", "--save-sched", file)
    kernels = [
        l
        for l in file.read_text().splitlines()
        if l.startswith("kernel ") and " clear " not in l and " copy " not in l
    ]
    if len(kernels) != len(BASE):
        raise Wrong(f"cnn has other kernels: {kernels}")
    file.write_text("sched 2\n" + "".join(f"{k}\n{b}" for k, b in zip(kernels, BASE)))
    return file.read_text(), compile_model(ingot, work, "cnn", "a", "--sched", file)


EDITS = {
    "tile that leaves a rest": [("UPCAST i2 8\n", "UPCAST i2 3\n")],
    "no tile": [("  UPCAST i2 8\n", ""), ("i0.o i1 i2.o", "i0.o i1 i2")],
    "tile of two axes": [
        ("UPCAST i2 8\n", "UPCAST i2 4\n  UPCAST i1 3\n"),
        ("ORDER i0.o i1 i2.o", "ORDER i1.o i2.o"),
    ],
    "vectors of 4": [("VECTOR i0 8\n", "VECTOR i0 4\n"), ("VECTOR i0 8\n", "VECTOR i0 4\n")],
    "order": [("ORDER i0.o i1 i2.o r0 r1 r2", "ORDER i2.o i1 r2 r0 r1")],
    "layout of a result": [("permute(0,2,3,1)", "permute(3,0,2,1)")],
    "layout with a wider border": [("pad(2,1,0) pad(3,1,0)", "pad(2,2,1) pad(3,1,3)")],
    "rows farther apart": [
        ("arg 0 layout permute(0,2,3,1)", "arg 0 layout permute(0,2,3,1) pitch(3,24) pitch(2,35)")
    ],
    "rows farther apart, with a border": [
        (
            "pad(2,1,0) pad(3,1,0) permute(0,2,3,1)",
            "pad(2,1,0) pad(3,1,0) permute(0,2,3,1) pitch(3,24)",
        ),
        ("arg 2 layout permute(1,2,3,0)", "arg 2 layout permute(1,2,3,0) pitch(3,40)"),
    ],
    "layout without a border": [("pad(2,1,0) pad(3,1,0) ", "")],
    "blocked layouts": [
        ("arg 0 layout permute(0,2,3,1)", "arg 0 layout split(1,4) permute(0,1,3,4,2)"),
        ("VECTOR i0 8\n", "VECTOR i0 4\n"),
        ("VECTOR i0 8\n", "VECTOR i0 4\n"),
    ],
    "weight across its rows": [("arg 2 layout permute(1,2,3,0)", "arg 2 layout dense")],
    "layout of a weight": [("permute(1,2,3,0)", "permute(3,1,2,0)")],
    "blocked weight": [
        ("permute(1,2,3,0)", "split(0,4) permute(0,3,2,4,1)"),
        ("VECTOR i0 8\n", "VECTOR i0 4\n"),
    ],
    "border of an input": [
        ("  ORDER i0 i1\n", "  arg 0 layout pad(2,1,1) pad(3,1,1)\n  ORDER i0 i1\n")
    ],
    "several sums": [("ORDER i0.o i1 i2.o r0 r1 r2", "UNROLL r2 3\n  ORDER i0.o i1 i2.o r0 r1")],
    "blocks": [("  ORDER i0 i1\n", "  SPLIT i1 4\n  SPLIT i2 8\n  ORDER i1.o i2.o i2.i i1.i\n")],
    "blocks that leave a rest": [
        ("  ORDER i0 i1\n", "  SPLIT i1 5\n  UPCAST i1.i 2\n  ORDER i2 i1.o i1.i.o\n")
    ],
    "copied operand": [("  VECTOR i0 8\n", "  arg 1 copy permute(2,0,3,1)\n  VECTOR i0 8\n", 1)],
    "copied result": [("  VECTOR i0 8\n", "  arg 0 copy permute(0,3,2,1)\n  VECTOR i0 8\n")],
    "copied with rows farther apart": [
        ("  VECTOR i0 8\n", "  arg 1 copy permute(2,0,3,1) pitch(3,24)\n  VECTOR i0 8\n", 1)
    ],
    "parts": [("r0 r1 r2\n", "r0 r1 r2\n  THREAD i1 5\n")],
    "parts inside of a loop": [("r0 r1 r2\n", "r0 r1 r2\n  THREAD i1..i1 5\n")],
    "parts of a tile of two axes, and of its rests": [
        ("UPCAST i2 8\n", "UPCAST i2 5\n  UPCAST i1 3\n"),
        ("ORDER i0.o i1 i2.o r0 r1 r2", "ORDER i1.o i2.o\n  THREAD i2.o 7"),
    ],
    "opts by the compiler": [
        (
            "  arg 2 layout permute(1,2,3,0)\n  VECTOR i0 8\n  UPCAST i2 8\n  ORDER i0.o i1 i2.o r0 r1 r2\n",
            "  auto\n",
        )
    ],
    "nothing": None,
}


def edited(ingot, work):
    start, first = base(ingot, work)
    for what, changes in EDITS.items():
        file = work / "edited.sched"
        if changes is None:  # the kernels' lines alone: all dense, no opts
            text = "".join(l + "\n" for l in start.splitlines() if l[:3] in ("sch", "ker"))
        else:
            text = edit(start, *changes)
        file.write_text(text)
        try:
            if compile_model(ingot, work, "cnn", "b", "--sched", file) == first:
                raise Wrong("without effect")
            call(
                ingot,
                "verify",
                work / "cnn.onnx",
                *TARGET,
                "--sched",
                file,
                env={"INGOT_CACHE": str(work / "cache")},
            )
        except Wrong as e:
            raise Wrong(f"{what}: {e}\n{text}")
    copied_on_gpu(ingot, work)
    print(f"{len(EDITS)} edits of cnn, one of a product")


TURNED = """  arg 2 copy permute(1,0)
  SPLIT i0 64
  SPLIT i1 64
  SPLIT r0 32
  TC wgmma64.tf32x3 (i0.i; i1.i; r0.i)
  ORDER i0.o i1.o r0.o
  BIND i0.o grid
  BIND i1.o grid
  STAGE r0.o 1 depth 3 move tma
  STAGE r0.o 2 depth 3 move tma
"""


def copied_on_gpu(ingot, work):
    """An operand whose terms do not lie side by side is copied so, for a unit that takes it no
    other way."""
    from onnx import TensorProto, helper

    target, model, file = ("--target", "cuda:sm_90a"), work / "product.onnx", work / "product.sched"
    x, w, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [128, 128]) for name in "xwy")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x, w], [y])
    model.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
    call(ingot, "compile", model, "-o", work / "p", *target, "--save-sched", file)
    head = file.read_text().split("  # axes")[0]
    file.write_text(head + "  # axes\n" + TURNED)
    call(ingot, "compile", model, "-o", work / "p", *target, "--sched", file)
    if (work / "p" / "model_kernels.cu").read_text().count(
        "__global__ void"
    ) != 1 or "igrt_wgmma_dot_tf32x3(&" not in (work / "p" / "model_kernels.cu").read_text():
        raise Wrong("no copy, or no product of what it writes")
    call(ingot, "verify", model, *target, "--sched", file, env={"INGOT_CACHE": str(work / "cache")})


OPTS = ", ".join(
    re.findall(
        r'^OPT\(\w+, "(\w+)"', (HERE.parents[1] / "compiler/kernel/opts.def").read_text(), re.M
    )
)
FAULTS = {
    "a price that is none": (
        [("kernel ", "ram byte dear hold 1\nkernel ")],
        "ram byte CYCLES hold",
    ),
    "unknown axis": ([("UPCAST i2 8", "UPCAST i7 8")], "no axis 'i7'"),
    "axis of an order": ([("ORDER i0.o i1", "ORDER i0 i1")], "no axis 'i0'"),
    "axis without a loop": ([("UPCAST i2 8", "UPCAST i0.o 2")], "no loop"),
    "lanes that do not lie together": (
        [
            ("VECTOR i0 8", "VECTOR i2 8"),
            ("UPCAST i2", "UPCAST i1"),
            ("ORDER i0.o i1 i2.o", "ORDER i1.o i2.o"),
        ],
        "does not lie contiguously",
    ),
    "layout that readers cannot use": ([("permute(0,2,3,1)", "dense")], "not lie contiguously"),
    "wide vectors": ([("VECTOR i0 8", "VECTOR i0 16")], "at most 8"),
    "vectors of 5": ([("VECTOR i0 8", "VECTOR i0 5")], "4, 8 or 16"),
    "long tile": ([("UPCAST i2 8", "UPCAST i2 17")], "16 elements"),
    "tile of nothing": (
        [("UPCAST i2 8", "UPCAST i2 0")],
        "UPCAST AXIS NUMBER is wanted, a number above 0",
    ),
    "parts of a reduced axis": ([("r0 r1 r2\n", "r0 r1 r2\n  THREAD r0 3\n")], "is reduced"),
    "parts of lanes": ([("r0 r1 r2\n", "r0 r1 r2\n  THREAD i0.o 3\n")], "no loop"),
    "rows that overlap": (
        [("arg 0 layout permute(0,2,3,1)", "arg 0 layout permute(0,2,3,1) pitch(3,2)")],
        "where there are",
    ),
    "a pitch that is not last": (
        [("arg 0 layout permute(0,2,3,1)", "arg 0 layout pitch(3,40) permute(0,2,3,1)")],
        "pitches come last",
    ),
    "one part": ([("r0 r1 r2\n", "r0 r1 r2\n  THREAD i1 1\n")], "2 to "),
    "order of parts": (
        [("  ORDER i0.o i1 i2.o", "  THREAD i1 5\n  ORDER i0.o i1 i2.o")],
        "comes last",
    ),
    "terms of a step": ([("UPCAST i2 8", "UNROLL r1 2")], "3 elements"),
    "one block": ([("  ORDER i0 i1\n", "  SPLIT i1 16\n")], "16 elements"),
    "blocks of a sum": ([("UPCAST i2 8", "SPLIT r0 2")], "is reduced"),
    "no permutation": ([("permute(0,2,3,1)", "permute(0,2,2,1)")], "is wanted"),
    "permutation of other axes": ([("permute(0,2,3,1)", "permute(0,2,1)")], "names 3 axes"),
    "layout of a result of the model": (
        [("  arg 2 layout split", "  arg 0 layout permute(1,0)\n  arg 2 layout split")],
        "not chosen here",
    ),
    "argument": ([("arg 2 layout", "arg 9 layout")], "argument 9"),
    "opts beside auto": ([("VECTOR i0 8", "auto\n  VECTOR i0 8")], "not both"),
    "auto beside opts": ([("r0 r1 r2\n", "r0 r1 r2\n  auto\n")], "not both"),
    "weight of auto": (
        [("  VECTOR i0 8\n  UPCAST i2 8\n  ORDER i0.o i1 i2.o r0 r1 r2\n", "  auto\n")],
        "as the loops read it",
    ),
    "kernel without a hash": ([("kernel ", "kernel 0123456789abcdef 0\nkernel ", 2)], "is wanted"),
    "value that is neither": ([("kernel ", "value 0123456789abcdef lost\nkernel ")], "recomputed"),
    "value without a key": ([("kernel ", "value 0123 stored\nkernel ")], "value KEY"),
    "device of nothing": (
        [("kernel ", "value 0123456789abcdef device 1\nkernel ")],
        "there is no device 1: the target has device 0 alone",
    ),
    "device that is no number": (
        [("kernel ", "value 0123456789abcdef device first\nkernel ")],
        "device N",
    ),
    "kernel twice": (None, "already"),
    "word": ([("UPCAST i2 8", "UPCASTS i2 8")], "UPCASTS"),
    "unknown word": ([("UPCAST i2 8", "UPCASTS i2 8")], f"an opt ({OPTS}) is wanted"),
    "trigger of nothing": ([("UPCAST i2 8", "TRIGGER")], "TRIGGER waited|summed is wanted"),
    "depth of nothing": (
        [("UPCAST i2 8", "STAGE i2 1 depth")],
        "STAGE AXIS ARGUMENT [depth NUMBER] [move tma] is wanted",
    ),
    "level of nothing": (
        [("UPCAST i2 8", "BIND i2")],
        "BIND AXIS grid|lane|warp|cluster is wanted",
    ),
    "version": ([("sched 2", "sched 3")], "sched 2"),
    "old version": ([("sched 2", "sched 1")], "version 1"),
}


def full(ingot, work):
    """Opts that leave no room for the loops that clear the halo of what a kernel stores: their line
    is told."""
    model, file = work / "windows.onnx", work / "windows.sched"
    g = models.Graph(3)
    h = g.input("x", models.F, 1, 16, 16, 16, 16)
    for _ in range(2):
        h = g.op("Conv", h, g.weight(16, 16, 3, 3, 3), pads=[1] * 6)
    g.output("y", h, models.F, 1, 16, 16, 16, 16)
    model.write_bytes(g.bytes())
    call(ingot, "compile", model, "-o", work / "w", *TARGET, "--save-sched", file)
    head, *entries = file.read_text().split("\nkernel ")
    at = next(i for i, e in enumerate(entries) if re.search(r"# axes .* \+r0:.* h0:", e))
    axes = [
        f"{axis}{'.o' * n}"
        for axis, size in re.findall(r" \+?([ir]\d):(\d+)", entries[at].splitlines()[1])
        for n in range(3)
        if int(size) == 16
    ]
    kept = [line for line in entries[at].splitlines() if not re.match(r"  [A-Z]", line)]
    for cuts, status in (8, 0), (len(axes), 2):
        entries[at] = "\n".join(kept + [f"  SPLIT {axis} 2" for axis in axes[:cuts]])
        text = "\nkernel ".join([head, *entries])
        file.write_text(text if text.endswith("\n") else text + "\n")
        done = subprocess.run(
            [ingot, "compile", model, "-o", work / "w", *TARGET, "--sched", file, "-q"],
            text=True,
            capture_output=True,
        )
        line = text[: text.index(f"SPLIT {axes[cuts - 1]} 2")].count("\n") + 1
        if done.returncode != status or done.stderr != (
            f"{file}:{line}: with the loops that clear the halo of what it stores, the kernel would have more loops than are allowed, or joined axes among them\n"
            if status
            else ""
        ):
            raise Wrong(f"{cuts} cuts: status {done.returncode}\n{done.stderr}{text}")


def another(ingot, work, good):
    """A file of which nearly nothing speaks of the model is refused in a line; of one that speaks
    of most of it a line tells how much does not, and -v what."""
    file, entries = work / "another.sched", good.count("\nkernel ") + good.count("\nvalue ")
    stray = lambda n: "".join(f"kernel {i:016x}\n  ORDER i0 i1\n" for i in range(1, n + 1))
    least = 7 * entries
    for more, status, lines, says in (
        (least, 0, 1, f"{least} of its {least + entries} entries are for nothing in this model"),
        (
            least + 1,
            2,
            1,
            f"only {entries} of its {least + 1 + entries} entries are for this model",
        ),
        (3, 0, 1, f"3 of its {3 + entries} entries"),
    ):
        file.write_text(good + stray(more))
        done = subprocess.run(
            [ingot, "compile", work / "cnn.onnx", "-o", work / "c", *TARGET, "--sched", file],
            text=True,
            capture_output=True,
        )
        told = [line for line in done.stderr.splitlines() if file.name in line]
        if done.returncode != status or len(told) != lines or says not in told[0]:
            raise Wrong(f"{more} lines of another model: status {done.returncode}\n{done.stderr}")
    done = subprocess.run(
        [ingot, "compile", work / "cnn.onnx", "-o", work / "c", *TARGET, "--sched", file, "-v"],
        text=True,
        capture_output=True,
    )
    if (
        done.stderr.count("no such kernel") != 3
        or f"{entries} of {3 + entries} entries apply" not in done.stderr
    ):
        raise Wrong(f"-v: {done.stderr}")


def refused(ingot, work):
    full(ingot, work)
    file = work / "broken.sched"
    good, _ = base(ingot, work)
    for what, (changes, wanted) in FAULTS.items():
        text = good + good[good.index("kernel ") :] if changes is None else edit(good, *changes)
        file.write_text(text)
        done = subprocess.run(
            [ingot, "compile", work / "cnn.onnx", "-o", work / "c", *TARGET, "--sched", file],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        lines = done.stderr.splitlines()
        if (
            done.returncode != 2
            or len(lines) != 1
            or f"{file}:" not in lines[0]
            or wanted not in lines[0]
        ):
            raise Wrong(f"{what}: status {done.returncode}\n{done.stderr}{text}")
        line = lines[0].split(":")[1]
        if not line.isdigit() or not 1 <= int(line) <= text.count("\n") + 1:
            raise Wrong(f"{what}: {lines[0]}")
    another(ingot, work, good)
    compile_model(ingot, work, "mlp", "m", "--save-sched", file)
    call(ingot, "compile", work / "cnn.onnx", "-o", work / "c", *TARGET, "--sched", file, good=(2,))
    call(
        ingot,
        "compile",
        work / "cnn.onnx",
        "-o",
        work / "c",
        *TARGET,
        "--sched",
        work / "none.sched",
        good=(6,),
    )
    call(ingot, "compile", work / "cnn.onnx", "-o", work / "c", *TARGET, "--sched", work, good=(6,))
    call(
        ingot,
        "compile",
        work / "cnn.onnx",
        "-o",
        work / "c",
        "-O0",
        "--sched",
        work / "cnn.sched",
        good=(2,),
    )
    print(f"{len(FAULTS) + 4} faults")


if __name__ == "__main__":
    sys.exit(main(__doc__, {f.__name__: f for f in (same, edited, values, changed, refused)}))
