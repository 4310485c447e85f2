"""What the checks of emulator.py share: small models, and a bundle in the emulator beside the same
in C."""

import os
import re
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from run import HERE, Wrong, attempt, call, compilers, program

sys.path.append(str(HERE.parent / "emulator"))
import emulate  # noqa: E402
import joined  # noqa: E402

H, F, I, U, L = (
    TensorProto.FLOAT16,
    TensorProto.FLOAT,
    TensorProto.INT8,
    TensorProto.UINT8,
    TensorProto.INT32,
)

# Files of targets, by which small products get the kernels of large ones: on a machine of 16
# processors 208 x 128 results have the blocks that 784 x 256 have on one of 108, and where a warp's
# products take long, those of warpgroups are few as well. Two small ones are full of 128 items, and
# what a cache of 512 bytes still has is read from its end on.
FEW = "processors = 16\nclose = 15\n"
TINY = "target = cuda:sm_80\nprocessors = 2\nclose = 2\ngroup = 64\n"
GROUPS = "warp_products.product = 70000\nwarp_products.product3 = 70000\n"
MACHINES = {
    "tiny": TINY,
    "few": "target = cuda:sm_80\n" + FEW,
    "groups": "target = cuda:sm_90a\n" + GROUPS,
    "two": "target = cuda:sm_90a\nprocessors = 2\nclose = 2\n" + GROUPS,
    "small_cache": "target = cuda:sm_90a\nlevel1.bytes = 512\n",
    "few_groups": "target = cuda:sm_90a\nprocessors = 4\nclose = 4\n" + GROUPS,
}


def target_file(work, target):
    if target not in MACHINES:
        return target
    file = work / f"{target}.target"
    file.write_text(MACHINES[target])
    return file


# What kernels call that NVRTC has compiled: of what is like others in that, the text is enough here
# (their text runs in the emulator), and compiling it takes longer than all else. INGOT_ALL: each.
called = set()


def calls_more(bundle):
    """Whether the bundle's kernels call a function of the headers that none before called."""
    text = "".join(f.read_text() for f in sorted(bundle.glob("*_kernels.cu")))
    names = set(re.findall(r"\bigrt_\w+", text.partition('extern "C"')[2]))
    more = bool(names - called)
    called.update(names)
    return more or bool(text and os.environ.get("INGOT_ALL"))


# -- models --------------------------------------------------------------------------------------


def declared(name, dtype, shape):
    """Of an axis that only a run knows the size of, (name, size), the name."""
    axes = [n[0] if isinstance(n, tuple) else n for n in shape]
    return helper.make_tensor_value_info(name, dtype, axes)


def model(path, inputs, nodes, output, weights=()):
    """nodes: (op, sources, result, attributes); inputs and output: (name, type, shape)."""
    made = [
        helper.make_node(op, sources, [result], **(more[0] if more else {}))
        for op, sources, result, *more in nodes
    ]
    opset = 23 if any(op == "Attention" for op, *_ in nodes) else 21
    graph = helper.make_graph(
        made,
        "g",
        [declared(*v) for v in inputs],
        [declared(*output)],
        [numpy_helper.from_array(w, name) for name, w in weights],
    )
    path.write_bytes(
        helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid("", opset),
                *(helper.make_opsetid(name, 1) for name in {n.domain for n in made} - {""}),
            ],
            ir_version=10,
        ).SerializeToString()
    )
    return path


class Pair:
    """The bundle for a target, and the same model in C, whose results are those expected; programs()
    builds both."""

    def __init__(self, ingot, work, name, target, made, tolerance, options=(), dims=()):
        inputs, nodes, output, weights = made
        self.name, self.tolerance, self.work = name, tolerance, work
        self.bundle, self.c, self.given = (work / f"{name}_{what}" for what in ("gpu", "c", "in"))
        path = model(work / f"{name}.onnx", inputs, nodes, output, weights)
        rng = np.random.default_rng(7)
        self.given.mkdir()
        for i, (_, dtype, shape) in enumerate(inputs):
            low = {I: -128, U: 0}.get(dtype)
            shape = [n[1] if isinstance(n, tuple) else n for n in shape]
            x = (
                rng.standard_normal(shape)
                if dtype == F
                else rng.integers(-8, 9, shape) / 8
                if low is None
                else rng.integers(low, low + 256, shape)
            )
            np.save(self.given / f"input_{i}.npy", x.astype(helper.tensor_dtype_to_np_dtype(dtype)))
        for kind, bundle in (("c", self.c), (target_file(work, target), self.bundle)):
            words = [ingot, "compile", path, "-o", bundle, "--target", kind, "-q"]
            words.append("--no-check")  # its kernels run here, whole
            words += [word for dim in dims for word in ("--dim", dim)]
            words += options if kind != "c" else ()
            call(*words, env={"INGOT_NVRTC": "none"})
            if kind != "c" and calls_more(bundle):
                call(*words, "-o", work / f"{name}_image")

    def programs(self, joint):
        self.program = joint.get(self.bundle) or self.bundle / "model"
        out = self.work / f"{self.name}_out_c"
        out.mkdir()
        call(joint.get(self.c) or self.c / "model", self.given, out)
        self.expected = np.load(out / "output_0.npy").astype(np.float64)

    def run(self, folder, order):
        """Errors of the range, by the driver of the folder."""
        out = folder / order
        out.mkdir()
        call(self.program, self.given, out, env=emulate.environment(folder, order))
        error = (
            abs(np.load(out / "output_0.npy").astype(np.float64) - self.expected).max()
            / abs(self.expected).max()
        )
        if not error <= self.tolerance:
            raise Wrong(
                f"{self.name}, {order}: {error:.1e} of the range from what C computes, more than {self.tolerance}"
            )
        return error


def programs(pairs):
    """Those of several pairs, in one compilation where they can be joined: a compiler's start and
    the headers take longer than such models. And what C computes."""
    bundles, cc = [b for pair in pairs for b in (pair.c, pair.bundle)], compilers()[0]
    joint = joined.programs(bundles, cc, "-O0", attempt)
    for bundle in bundles:
        if bundle not in joint:
            program(bundle, cc, "-O0")
    for pair in pairs:
        pair.programs(joint)
    return pairs


def beside(ingot, work, name, target, made, tolerance, wanted=(), options=(), dims=()):
    """A bundle for the target, of which errors() tells what it computes in the emulator; wanted:
    what the text has to have."""
    return Pair(ingot, work, name, target, made, tolerance, options, dims), wanted


def errors(cases):
    """What beside() made, emulated: results, relative to the range."""
    pairs = programs([pair for pair, _ in cases])
    folders = [pair.work / f"{pair.name}_driver" for pair in pairs]
    texts = emulate.drivers(
        [(pair.bundle, folder, emulate.same) for pair, folder in zip(pairs, folders)]
    )
    told = []
    for (pair, wanted), folder, text in zip(cases, folders, texts):
        for want in wanted:
            if want not in text.split('extern "C"', 1)[1]:
                raise Wrong(f"{pair.name}: no {want} in the kernels")
        told.append(f"{pair.name} {max(pair.run(folder, order) for order in emulate.ORDERS):.0e}")
    return told


def some(*shape, dtype=np.float16):
    rng = np.random.default_rng(1)
    return (
        rng.standard_normal(shape) if dtype == np.float32 else rng.integers(-4, 5, shape) / 4
    ).astype(dtype)


def sized(ingot, work, name, target, sizes, most, wanted):
    """A product whose rows only the run counts."""
    rows, terms, columns = sizes
    nodes = [("MatMul", ["x", "w"], "p"), ("Relu", ["p"], "y")]
    x, y = [("n", rows), terms], [("n", rows), columns]
    made = [("x", H, x)], nodes, ("y", H, y), [("w", some(terms, columns))]
    dims = [f"n=1..{most}"]
    return beside(ingot, work, name, target, made, 2e-3, ["n_n", *wanted], dims=dims)


def half_lines(ingot, work):
    """Windows of 32 channels, which lines of 64 bytes have all of."""
    pads, steps = {"pads": [1, 1, 1, 1]}, {"strides": [2, 2], "dilations": [2, 1]}
    nodes = [
        ("Conv", ["x", "v"], "p"),
        ("Relu", ["p"], "q"),
        ("Conv", ["q", "w"], "r", pads),
        ("Relu", ["r"], "s"),
        ("Conv", ["s", "w"], "y", {"pads": [2, 1, 2, 1], **steps}),
    ]
    weights = [("v", some(32, 32, 1, 1)), ("w", some(32, 32, 3, 3))]
    made = [("x", H, [2, 32, 9, 9])], nodes, ("y", H, [2, 32, 5, 5]), weights
    wanted = ["igrt_window_4(", "igrt_wgmma32_dot_f16<", "igrt_wgmma_half_lines("]
    return beside(ingot, work, "half_lines", "few_groups", made, 2e-3, wanted)


def larger(ingot, work):
    """Windows beside each other of fewer pixels, and two classes of each pixel: few channels of
    many places, the results' last axis."""
    nodes = [
        ("Conv", ["x", "v"], "p"),
        ("Relu", ["p"], "q"),
        ("ConvTranspose", ["q", "w"], "r", {"strides": [2, 2]}),
        ("Conv", ["r", "u"], "y"),
    ]
    shapes = ("v", (64, 64, 1, 1)), ("w", (64, 32, 2, 2)), ("u", (2, 32, 1, 1))
    weights = [(name, some(*shape) / 8) for name, shape in shapes]
    made = [("x", H, [2, 64, 18, 16])], nodes, ("y", H, [2, 2, 36, 32]), weights
    wanted = ["igrt_wgmma64_dot_f16<0, 1>", "MASK i1 16"]
    return beside(ingot, work, "larger", "two", made, 2e-3, wanted)


def short_stay(ingot, work, terms, columns, wanted):
    """Of so few terms that the places are those of several blocks."""
    nodes = [("MatMul", ["x", "w"], "p"), ("Add", ["p", "z"], "q"), ("Relu", ["q"], "y")]
    weights = [("w", some(terms, columns) / 8)]
    made = [("x", H, [900, terms]), ("z", H, [900, columns])], nodes, ("y", H, [900, columns])
    name = f"stay_{terms}_{columns}"
    return beside(ingot, work, name, "two", (*made, weights), 2e-3, wanted)


def stays(ingot, work):
    """More blocks than groups, which take them one after the other; and as many as a run has."""
    nodes = [
        ("MatMul", ["x", "w"], "p"),
        ("Tanh", ["p"], "t"),
        ("Add", ["t", "one"], "u"),
        ("Mul", ["u", "z"], "y"),
    ]
    weights = [("w", some(512, 256) / 8), ("one", np.ones(1, np.float16))]
    made = [("x", H, [900, 512]), ("z", H, [900, 256])], nodes, ("y", H, [900, 256]), weights
    loop = "block += 2, turn += 8)"
    wanted = [loop, "igrt_free(", "igrt_tanh_near_f32("]
    # log(1 - tanh(x)^2): how little the difference is counts
    squashed = [
        ("Mul", ["x", "eight"], "s"),
        ("Tanh", ["s"], "t"),
        ("Mul", ["t", "t"], "u"),
        ("Sub", ["one", "u"], "d"),
        ("Add", ["d", "little"], "e"),
        ("Log", ["e"], "l"),
        ("Cast", ["l"], "y", {"to": H}),
    ]
    numbers = [("eight", [8]), ("one", [1]), ("little", [1e-6])]
    logs = [(name, np.float32(x)) for name, x in numbers]
    density = [("x", F, [33, 20])], squashed, ("y", H, [33, 20]), logs
    return [
        beside(ingot, work, "squashed", "two", density, 5e-3),
        short_stay(ingot, work, 64, 384, ["block += 2, turn += 2)", "turn % 4*", ", turn);"]),
        short_stay(ingot, work, 320, 128, ["block += 2, turn += 5)"]),
        short_stay(
            ingot, work, 64, 200, []
        ),  # the last columns end amid operands that come together
        beside(ingot, work, "stay", "two", made, 2e-3, wanted),
        sized(ingot, work, "sized_stay", "two", (300, 512, 512), 700, [loop]),
    ]


NARROW = ["--precision", "narrow"]


def made_of_digits(rows, terms):
    """Matrices of 4-bit digits in blocks, with a scale each, times a vector: one, and two."""
    block = 32
    shape = {"K": terms, "N": rows, "bits": 4, "block_size": block, "domain": "com.microsoft"}
    packed = np.random.default_rng(2).integers(0, 256, (2, rows, terms // block, block // 2))
    scales = [some(rows * terms // block, dtype=np.float32) / 100 * k for k in (1, -1)]
    weights = [("q", packed[0].astype(np.uint8)), ("s", scales[0])]
    more = [("p", packed[1].astype(np.uint8)), ("r", scales[1])]
    one = ("MatMulNBits", ["x", "q", "s"], "u", shape)
    gate = [
        one,
        ("MatMulNBits", ["x", "p", "r"], "g", shape),
        ("Sigmoid", ["g"], "v"),
        ("Mul", ["u", "v"], "y"),
    ]
    x, y = [("x", F, [1, terms])], ("y", F, [1, rows])
    return (x, [one, ("Neg", ["u"], "y")], y, weights), (x, gate, y, [*weights, *more])


# Weights that come as pieces, and faults of their text.
PIECES = (
    made_of_digits(768, 1024)[0],
    2e-4,
    {
        "no wait for pieces": ("igrt_bulk_wait_behind(bulk_token, ", "(0 * "),
        "no barrier behind their token": ("__syncthreads();\n    int there", "int there"),
    },
)


def digits(ingot, work, name, target, sizes):
    """One matrix, and two, which one loop has; then by factors of 15 bits, and weights that come as
    pieces."""
    of_one, of_two = made_of_digits(*sizes)
    text = "igrt_digits_add("
    two = beside(ingot, work, f"{name}_gate", target, of_two, 1e-6, [text])
    (kernels,) = two[0].bundle.glob("*_kernels.cu")
    if kernels.read_text().count("JOIN ") != 1:
        raise Wrong("digits_gate: each sum has a loop of its own")
    texts = ["igrt_packed_sum(", "igrt_bulk(", "igrt_bulk_wait_behind("]
    return (
        beside(ingot, work, name, target, of_one, 1e-6, [text]),
        two,
        beside(ingot, work, f"{name}_packed", target, of_one, 2e-4, texts, NARROW),
        beside(ingot, work, f"{name}_gate_packed", target, of_two, 2e-4, texts, NARROW),
    )


def gelu(rows, columns):
    """A block of rows that takes three warpgroups, whose loader leaves them its registers."""
    nodes = [
        ("MatMul", ["x", "w"], "a"),
        ("Div", ["a", "r"], "d"),
        ("Erf", ["d"], "e"),
        ("Add", ["e", "one"], "f"),
        ("Mul", ["a", "f"], "y"),
    ]
    weights = [("w", some(192, columns)), ("r", np.float16([1.4142])), ("one", np.float16([1]))]
    return [("x", H, [rows, 192])], nodes, ("y", H, [rows, columns]), weights


def places(how):
    """Numbers that are stored at places of data, of which many are the same."""
    nodes = [
        ("Cast", ["i"], "at", {"to": TensorProto.INT64}),
        ("ScatterND", ["x", "at", "v"], "y", {"reduction": how}),
    ]
    return [("x", F, [256]), ("i", U, [6, 64, 1]), ("v", F, [6, 64])], nodes, ("y", F, [256]), []


def no_keys():
    """Attention of a run without keys: boxes of nothing."""
    shape, none = [1, 70, 64], [1, ("t", 0), 64]
    nodes = [
        ("Transpose", ["k"], "t", {"perm": [0, 2, 1]}),
        ("MatMul", ["x", "t"], "s"),
        ("Softmax", ["s"], "p"),
        ("MatMul", ["p", "v"], "o"),
        ("Add", ["o", "z"], "y"),
    ]
    inputs = [("x", H, shape), ("k", H, none), ("v", H, none), ("z", H, shape)]
    return inputs, nodes, ("y", H, shape), []


def more_rows(ingot, work, target):
    """Attention of a run without keys; and by groups that stay, each of which has several blocks of
    rows: of different lengths, behind a mask of numbers or one that leaves out beginnings too, with
    ends that fill no block, scores within bounds."""
    told = [beside(ingot, work, "none", target, no_keys(), 0, dims=["t=0..700"])]
    turn = [("Transpose", ["k"], "t", {"perm": [0, 2, 1]})]
    masked = turn + [
        ("MatMul", ["x", "t"], "s"),
        ("Add", ["s", "z"], "a"),
        ("Softmax", ["a"], "p"),
        ("MatMul", ["p", "v"], "y"),
    ]
    band = np.where(np.tri(640) - np.tri(640, k=-150), 0, -np.inf).astype(np.float16)
    for name, x, k, more in (
        ("causal", [1, 2, 704, 64], [1, 1, 704, 64], {"is_causal": 1}),
        ("capped", [1, 2, 640, 128], [1, 1, 640, 128], {"is_causal": 1, "softcap": 2.0}),
        ("ends", [4, 300, 64], [4, 650, 64], None),
        ("band", [2, 640, 64], [2, 640, 64], band),
    ):
        inputs = [("x", H, x), ("k", H, k), ("v", H, k)]
        nodes, weights = masked, []
        if isinstance(more, dict):
            nodes = [("Attention", ["x", "k", "v"], "y", more)]
        elif more is None:
            inputs.append(("z", H, [x[-2], k[-2]]))
        else:
            weights = [("z", more)]
        made = inputs, nodes, ("y", H, x), weights
        text = ["igrt_turns_end(", "igrt_turn_take(", ", nth, 1"]
        told.append(beside(ingot, work, f"stay_{name}", "few_groups", made, 3e-3, text))
    return told


def residuals(dtype, rows, columns, terms=64, more=(), apart=False):
    """A product that a second one is added to, in its memory, whose sum a third one takes and adds
    an operand to; with biases, and a value that is used twice. apart: the first two have no operand
    in common, for which one kernel would have both."""
    number = np.float16 if dtype == H else np.float32
    nodes = [("Relu", ["x"], "c")] if apart else []
    nodes += [
        ("MatMul", ["c" if apart else "x", "w"], "p"),
        ("MatMul", ["x", "v"], "q"),
        ("Add", ["q", "b"], "qb"),
        ("Add", ["qb", "p"], "r"),
        ("Relu", ["r"], "s"),
        ("MatMul", ["s", "u"], "t"),
        ("Add", ["t", "z"], "a"),
        ("Sigmoid", ["a"], "g"),
        ("Mul", ["a", "g"], "y"),
    ]
    weights = [
        ("w", some(terms, columns, dtype=number)),
        ("v", some(terms, columns, dtype=number)[:, ::-1].copy()),
        ("u", some(columns, columns, dtype=number) / 8),
        ("b", some(columns, dtype=number)),
    ]
    return (
        [("x", dtype, [rows, terms]), ("z", dtype, [rows, columns])],
        nodes,
        ("y", dtype, [rows, columns]),
        weights,
    )


GELU = ["igrt_wgmma192_dot_f16<", "igrt_give_registers<24>", "igrt_erf_and_f32("]
