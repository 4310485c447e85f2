"""What the checks of emulator.py share: small models, and a bundle in the emulator beside the same
in C."""

import os
import re
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from run import HERE, Wrong, call, compilers, program

sys.path.append(str(HERE.parent / "emulator"))
import emulate  # noqa: E402

H, F, I, U, L = (
    TensorProto.FLOAT16,
    TensorProto.FLOAT,
    TensorProto.INT8,
    TensorProto.UINT8,
    TensorProto.INT32,
)

# Files of targets, by which small products get the kernels of large ones: on a machine of 16
# processors 208 x 128 results have the blocks that 784 x 256 have on one of 108, and where a warp's
# products take long, those of warpgroups are few as well. Two small ones are full of 128 items.
FEW = "processors = 16\nclose = 15\n"
TINY = "target = cuda:sm_80\nprocessors = 2\nclose = 2\ngroup = 64\n"
GROUPS = "warp_products.product = 70000\nwarp_products.product3 = 70000\n"
MACHINES = {
    "tiny": TINY,
    "few": "target = cuda:sm_80\n" + FEW,
    "groups": "target = cuda:sm_90a\n" + GROUPS,
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
    graph = helper.make_graph(
        made,
        "g",
        [declared(*v) for v in inputs],
        [declared(*output)],
        [numpy_helper.from_array(w, name) for name, w in weights],
    )
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
        ).SerializeToString()
    )
    return path


class Pair:
    """The bundle for a target, and what the same model in C gives."""

    def __init__(self, ingot, work, name, target, made, tolerance, options=(), dims=()):
        inputs, nodes, output, weights = made
        self.name, self.tolerance, self.work, self.bundle, self.given = (
            name,
            tolerance,
            work,
            work / f"{name}_gpu",
            work / f"{name}_in",
        )
        path, c, out = (
            model(work / f"{name}.onnx", inputs, nodes, output, weights),
            work / f"{name}_c",
            work / f"{name}_out_c",
        )
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
        for kind, bundle in (("c", c), (target_file(work, target), self.bundle)):
            words = [ingot, "compile", path, "-o", bundle, "--target", kind, "-q"]
            words.append("--no-check")  # its kernels run here, whole
            words += [word for dim in dims for word in ("--dim", dim)]
            words += options if kind != "c" else ()
            call(*words, env={"INGOT_NVRTC": "none"})
            if kind != "c" and calls_more(bundle):
                call(*words, "-o", work / f"{name}_image")
            program(bundle, compilers()[0], "-O0")
        out.mkdir()
        call(c / "model", self.given, out)
        self.expected = np.load(out / "output_0.npy").astype(np.float64)

    def run(self, folder, order):
        """Errors of the range, by the driver of the folder."""
        out = folder / order
        out.mkdir()
        call(self.bundle / "model", self.given, out, env=emulate.environment(folder, order))
        error = (
            abs(np.load(out / "output_0.npy").astype(np.float64) - self.expected).max()
            / abs(self.expected).max()
        )
        if not error <= self.tolerance:
            raise Wrong(
                f"{self.name}, {order}: {error:.1e} of the range from what C computes, more than {self.tolerance}"
            )
        return error


def beside(ingot, work, name, target, made, tolerance, wanted=(), options=(), dims=()):
    """The bundle for the target, emulated: results, relative to the range; wanted: what the text
    has to have."""
    pair, folder = (
        Pair(ingot, work, name, target, made, tolerance, options, dims),
        work / f"{name}_driver",
    )
    text = emulate.driver(pair.bundle, folder)
    for want in wanted:
        if want not in text.split('extern "C"', 1)[1]:
            raise Wrong(f"{name}: no {want} in the kernels")
    return f"{name} {max(pair.run(folder, order) for order in emulate.ORDERS):.0e}"


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


GELU = ["igrt_wgmma192_dot_f16<", "igrt_give_registers<24>", "igrt_erf_and_f32("]
