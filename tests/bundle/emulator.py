#!/usr/bin/env python3
"""The text of CUDA kernels, run without a GPU: what a whole bundle computes beside the same model in C.

    emulator.py --ingot build/ingot [CHECK...]

An emitted .cu becomes C++ (emulator.h): asm statements are calls of what they do, items are fibers. With the driver's other calls (cuda_stub.c) that is
the libcuda.so.1 which the bundle finds. The interpreter of statements knows what the statements mean; this finds what the text and the headers
that it calls (igrt_mma.h, igrt_wgmma.h, igrt_run.h) make of them: which item has which element of a fragment, what items swap, where a cluster's
groups put what they give.

    products   of f16, bf16 and f32 by mma.sync, with operands by rows and by columns, and lines that are no multiple of 16 bytes
    bytes      products and convolutions of i8 and u8 by mma.sync, whose results are those of C to the bit: with signs and without, zero points that
               windows are padded with, operands by rows and by columns
    windows    convolutions, by groups of a cluster that share the terms, too
    attention  rows of scores in registers, of f16 and f32
    vectors    a matrix times a vector, by 16 bytes
    items      norms, softmax, pools, depthwise windows, a small sum that results share

Exit status 77, skipped: there is no Python with onnx, or no C++ compiler.
"""
import pathlib
import re
import shutil
import subprocess
import sys

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
    from run import HERE, Wrong, call, compilers, main, make
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

H, F, I, U, L = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32
CXX = next((cxx for cxx in ("clang++", "g++") if shutil.which(cxx)), None)
KERNEL = re.compile(r'extern "C" __global__ ([^\n]*?)void (\w+)\(([^)]*)\)')


# -- from CUDA to C++ ----------------------------------------------------------------------------

def memory(text):
    """Of a group: not an item's own."""
    text = re.sub(r"__shared__ __align__\(\d+\) ([\w ]+?) (\w+)\[(\d+)\];", r"\1 *const \2 = (\1 *)gpu::shared(sizeof(\1) * \3);", text)
    return re.sub(r"extern __shared__ __align__\(\d+\) unsigned char (\w+)\[\];", r"unsigned char *const \1 = gpu::shared(0);", text)


def closing(text, at):
    """Behind the parenthesis that closes the one before `at`."""
    depth, quoted = 1, False
    while depth:
        quoted ^= text[at] == '"'
        depth += not quoted and (text[at] == "(") - (text[at] == ")")
        at += 1
    return at


def parts(text, between):
    """Split where no parenthesis or quote is open."""
    out, depth, quoted = [""], 0, False
    for c in text:
        quoted ^= c == '"'
        depth += not quoted and (c == "(") - (c == ")")
        if c == between and not depth and not quoted:
            out.append("")
        else:
            out[-1] += c
    return [p.strip() for p in out]


def operands(section):
    return [re.sub(r'^"[^"]*"\s*', "", p) for p in parts(section, ",") if p] if section.strip() else []


def calls(text, known):
    """asm(text : outputs : inputs : clobbered) is a call of what the text's first word says, or of abort()."""
    out, end = [], 0
    for m in re.finditer(r"\basm\s*(?:volatile\s*)?\(", text):
        out.append(text[end:m.start()])
        end = closing(text, m.end())
        sections = parts(text[m.end():end - 1], ":") + ["", ""]
        words = "".join(re.findall(r'"([^"]*)"', sections[0])).strip()
        name, rest = re.match(r"([^\s;]*)(.*)", words, re.S).groups()
        name = re.sub(r"\W", "_", name) or "nothing"
        args = [f'"{rest}"', *operands(sections[1]), *operands(sections[2])]
        out.append(f"ptx::{name}({', '.join(args)})" if name in known else "abort()")
    return "".join(out) + text[end:]


def entry(head, name, parameters):
    """Arguments as the driver gets them: an array of pointers to each."""
    cluster = re.search(r"__cluster_dims__\((\d+)", head)
    types = [re.sub(r"\w+$", "", p.replace("__restrict__", "").replace("__grid_constant__", "")).strip() for p in parts(parameters, ",")]
    values = ", ".join(f"*({t} *)args[{i}]" for i, t in enumerate(types))
    return f"static void run_{name}(void **args, unsigned grid, unsigned items)\n{{\n    gpu::run([&] {{ {name}({values}); }}, grid, items, {cluster[1] if cluster else 1});\n}}\n"


def driver(bundle, folder):
    """A libcuda.so.1 that has the bundle's kernels."""
    folder.mkdir()
    text = (bundle / "model_kernels.cu").read_text()
    kernels = KERNEL.findall(text)
    source = folder / "before.cpp"
    source.write_text(f'#include "igrt_num.h"\n#include "{HERE / "emulator.h"}"\n{memory(text)}'
                      + "".join(entry(*k) for k in kernels)
                      + "const gpu::Entry gpu::entries[] = {" + "".join(f'{{"{name}", run_{name}}}, ' for _, name, _ in kernels) + "{0, 0}};\n")
    whole = call(CXX, "-std=c++17", "-E", "-I", bundle, source)
    known = set(re.findall(r"\b(\w+)\(const char \*", whole))
    (folder / "kernels.cpp").write_text(calls(whole, known))
    call("cc", "-c", "-fPIC", HERE / "cuda_stub.c", "-o", folder / "stub.o")
    call(CXX, "-std=c++17", "-w", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-Wl,--allow-multiple-definition", folder / "kernels.cpp", folder / "stub.o", "-o", folder / "libcuda.so.1")
    return text


# -- models --------------------------------------------------------------------------------------

def model(path, inputs, nodes, output, weights=()):
    """nodes: (op, sources, result, attributes); inputs and output: (name, type, shape)."""
    made = [helper.make_node(op, sources, [result], **(more[0] if more else {})) for op, sources, result, *more in nodes]
    graph = helper.make_graph(made, "g", [helper.make_tensor_value_info(*v) for v in inputs], [helper.make_tensor_value_info(*output)],
                              [numpy_helper.from_array(w, name) for name, w in weights])
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString())
    return path


def beside(ingot, work, name, target, made, tolerance, wanted=(), options=()):
    """The bundle for the target, emulated, and the one in C: results, relative to the range; wanted: what the text has to have."""
    inputs, nodes, output, weights = made
    path = model(work / f"{name}.onnx", inputs, nodes, output, weights)
    rng = np.random.default_rng(7)
    given = work / f"{name}_in"
    given.mkdir()
    for i, (_, dtype, shape) in enumerate(inputs):
        low = {I: -128, U: 0}.get(dtype)
        x = rng.standard_normal(shape) if dtype == F else rng.integers(-8, 9, shape) / 8 if low is None else rng.integers(low, low + 256, shape)
        np.save(given / f"input_{i}.npy", x.astype(helper.tensor_dtype_to_np_dtype(dtype)))
    results = []
    for kind in (target, "c"):
        bundle, out, folder = work / f"{name}_{kind[0:2]}", work / f"{name}_out_{kind[0:2]}", work / f"{name}_driver"
        out.mkdir()
        call(ingot, "compile", path, "-o", bundle, "--target", kind, "-q", *(options if kind == target else ()))
        text = driver(bundle, folder) if kind == target else None
        for want in wanted if text else ():
            if want not in text.split('extern "C"', 1)[1]:
                raise Wrong(f"{name}: no {want} in the kernels")
        make(bundle, compilers()[0], "-O1")
        call(bundle / "model", given, out, env={"LD_LIBRARY_PATH": str(folder)})
        results.append(np.load(out / "output_0.npy").astype(np.float64))
    error = abs(results[0] - results[1]).max() / abs(results[1]).max()
    if not error <= tolerance:
        raise Wrong(f"{name}: {error:.1e} of the range from what C computes, more than {tolerance}")
    return f"{name} {error:.0e}"


def some(*shape, dtype=np.float16):
    rng = np.random.default_rng(1)
    return (rng.standard_normal(shape) if dtype == np.float32 else rng.integers(-4, 5, shape) / 4).astype(dtype)


def products(ingot, work):
    one = [("MatMul", ["x", "w"], "p"), ("Relu", ["p"], "y")]
    two = [("MatMul", ["x", "w"], "p"), ("Relu", ["p"], "q"), ("MatMul", ["q", "v"], "y")]
    told = [beside(ingot, work, "halves", "cuda:sm_80", ([("x", H, [72, 64])], one, ("y", H, [72, 40]), [("w", some(64, 40))]), 2e-3, ["igrt_mma_dot_f16("]),
            beside(ingot, work, "given", "cuda:sm_80", ([("x", H, [72, 64]), ("w", H, [64, 40])], one, ("y", H, [72, 40]), []), 2e-3, ["igrt_mma_dot_f16("]),
            beside(ingot, work, "single", "cuda:sm_80", ([("x", F, [70, 72])], one, ("y", F, [70, 40]), [("w", some(72, 40, dtype=np.float32))]), 1e-6, ["igrt_mma_dot_tf32x3("]),
            beside(ingot, work, "rows", "cuda:sm_80", ([("x", H, [72, 64])], two, ("y", H, [72, 40]), [("w", some(64, 53)), ("v", some(53, 40))]), 2e-3,
                   ["igrt_copy_part_async_16("]),
            beside(ingot, work, "wide", "cuda:sm_80", ([("x", H, [784, 64])], one, ("y", H, [784, 256]), [("w", some(64, 256))]), 2e-3, ["igrt_row_16(", "igrt_mma_b_two_"])]
    print(", ".join(told))


def quantized(op, x, y, shape, dtypes, zeros, bias=(), **attributes):
    """A QLinearConv or QLinearMatMul from x to y, and its constants: types and zero points are of x, of the weights and of y."""
    rng, name = np.random.default_rng(2), {I: np.int8, U: np.uint8}
    low = {I: -128, U: 0}[dtypes[1]]
    values = {"xs": np.float32(0.02), "w": rng.integers(low, low + 256, shape).astype(name[dtypes[1]]), "ws": np.float32(0.01), "ys": np.float32(0.7)}
    values |= {key: name[dtype](zero) for key, dtype, zero in zip(("xz", "wz", "yz"), dtypes, zeros)}
    given = [f"{y}_{k}" for k in ("xs", "xz", "w", "ws", "wz", "ys", "yz")]
    return (op, [x, *given, *(k for k, _ in bias)], y, attributes), [*((f"{y}_{k}", np.asarray(v)) for k, v in values.items()), *bias]


def byte_products(ingot, work):
    unit, told = "igrt_mma_dot_", []
    for name, dtypes, zero, (m, k, n), target in (("bytes", (U, I, U), 7, (72, 64, 40), "cuda:sm_80"), ("signs", (I, I, I), -3, (70, 104, 40), "cuda:sm_90a")):
        node, weights = quantized("QLinearMatMul", "x", "y", (k, n), dtypes, (zero, 0, 5))
        told.append(beside(ingot, work, name, target, ([("x", dtypes[0], [m, k])], [node], ("y", dtypes[2], [m, n]), weights), 0, [unit]))
    for name, dtypes in (("given", (I, U)), ("unsigned", (U, U))):
        node = ("MatMulInteger", ["x", "w"], "y")
        told.append(beside(ingot, work, name, "cuda:sm_80", ([("x", dtypes[0], [72, 70]), ("w", dtypes[1], [70, 40])], [node], ("y", L, [72, 40]), []), 0, [unit]))
    bias, edge = [("b", np.random.default_rng(3).integers(-999, 999, 32).astype(np.int32))], {"pads": [1, 1, 1, 1]}
    node, weights = quantized("QLinearConv", "x", "y", (32, 3, 7, 7), (U, I, U), (0, 0, 5), bias, pads=[3, 3, 3, 3], strides=[2, 2])
    told.append(beside(ingot, work, "image", "cuda:sm_80", ([("x", U, [1, 3, 11, 11])], [node], ("y", U, [1, 32, 6, 6]), weights), 0, [unit]))
    for name, dtype, zero, channels, more, copy in (("window", I, 3, 32, edge, "igrt_copy_or_async_16("), ("narrow", U, 9, 24, edge | {"strides": [2, 2]}, "igrt_copy_or_async_8("),
                                                    ("whole", U, 0, 32, edge, "igrt_copy_async_16(")):
        first, of_first = quantized("QLinearConv", "x", "p", (channels, 16, 1, 1), (dtype, I, dtype), (1, 0, zero))
        node, weights = quantized("QLinearConv", "p", "y", (32, channels, 3, 3), (dtype, I, dtype), (zero, 0, 5), bias, **more)
        size = 8 // more.get("strides", [1])[0] + 1
        told.append(beside(ingot, work, name, "cuda:sm_80", ([("x", dtype, [1, 16, 9, 9])], [first, node], ("y", dtype, [1, 32, size, size]), [*of_first, *weights]), 0, [unit, copy]))
    print(", ".join(told))


def windows(ingot, work):
    pads = {"pads": [1, 1, 1, 1]}
    one = [("Conv", ["x", "w"], "p", pads), ("Relu", ["p"], "q"), ("Conv", ["q", "w"], "r", pads | {"strides": [2, 2]}), ("Add", ["r", "z"], "y")]
    more = [("Conv", ["x", "w"], "p", pads), ("Relu", ["p"], "q"), ("Conv", ["q", "v"], "r", pads), ("Relu", ["r"], "y")]
    told = [beside(ingot, work, "window", "cuda:sm_80", ([("x", H, [1, 32, 9, 9]), ("z", H, [1, 32, 5, 5])], one, ("y", H, [1, 32, 5, 5]), [("w", some(32, 32, 3, 3))]), 2e-3,
                   ["igrt_mma_dot_f16("]),
            beside(ingot, work, "cluster", "cuda:sm_90a", ([("x", H, [1, 256, 7, 7])], more, ("y", H, [1, 256, 7, 7]), [("w", some(256, 256, 3, 3)), ("v", some(256, 256, 3, 3) / 16)]), 3e-3,
                   ["igrt_cluster_give<", "igrt_mma_b_two_"]),
            beside(ingot, work, "single", "cuda:sm_80", ([("x", F, [1, 32, 9, 9]), ("z", F, [1, 32, 5, 5])], one, ("y", F, [1, 32, 5, 5]), [("w", some(32, 32, 3, 3, dtype=np.float32))]), 2e-6,
                   ["igrt_mma_dot_tf32x3("])]
    print(", ".join(told))


def attention(ingot, work):
    turn = [("Transpose", ["k"], "t", {"perm": [0, 2, 1]})]
    rows = turn + [("MatMul", ["x", "t"], "s"), ("Add", ["s", "z"], "a"), ("Softmax", ["a"], "p"), ("MatMul", ["p", "v"], "y")]
    told = []
    for name, dtype, tolerance, heads, queries, keys in (("halves", H, 3e-3, 2, 37, 37), ("single", F, 1e-5, 2, 64, 128)):
        inputs = [("x", dtype, [heads, queries, 64]), ("k", dtype, [heads, keys, 64]), ("v", dtype, [heads, keys, 64]), ("z", dtype, [queries, keys])]
        told.append(beside(ingot, work, name, "cuda:sm_80", (inputs, rows, ("y", dtype, [heads, queries, 64]), []), tolerance, ["igrt_mma_quad_max("]))
    print(", ".join(told))


def vectors(ingot, work):
    product = [("MatMul", ["w", "x"], "y")]
    told = [beside(ingot, work, "halves", "cuda:sm_80", ([("x", H, [1024]), ("w", H, [100, 1024])], product, ("y", H, [100]), []), 2e-3, ["igrt_run_u16("]),
            beside(ingot, work, "single", "cuda:sm_80", ([("x", F, [1024]), ("w", F, [100, 1024])], product, ("y", F, [100]), []), 1e-6, ["igrt_run_f32("])]
    print(", ".join(told))


def items(ingot, work):
    """A block of a network with depthwise windows and a scale of channels, and of one with norms."""
    pads = {"pads": [1, 1, 1, 1], "group": 48}
    scale = [("GlobalAveragePool", ["d"], "m"), ("Conv", ["m", "u"], "h"), ("Relu", ["h"], "i"), ("Conv", ["i", "e"], "j"), ("Sigmoid", ["j"], "k"), ("Mul", ["d", "k"], "y")]
    block = [("Conv", ["x", "w"], "c", pads), ("Relu", ["c"], "d"), *scale]
    weights = [("w", some(48, 1, 3, 3, dtype=np.float32)), ("u", some(8, 48, 1, 1, dtype=np.float32)), ("e", some(48, 8, 1, 1, dtype=np.float32))]
    norms = [("LayerNormalization", ["x", "g", "b"], "n"), ("Softmax", ["n"], "y")]
    told = [beside(ingot, work, "block", "cuda:sm_90a", ([("x", F, [1, 48, 14, 14])], block, ("y", F, [1, 48, 14, 14]), weights), 1e-5),
            beside(ingot, work, "norms", "cuda:sm_90a", ([("x", F, [5, 200])], norms, ("y", F, [5, 200]), [("g", some(200, dtype=np.float32)), ("b", some(200, dtype=np.float32))]), 1e-5,
                   ["__syncthreads();"])]
    print(", ".join(told))


if __name__ == "__main__":
    if not CXX:
        print("skipped: no C++ compiler")
        sys.exit(77)
    sys.exit(main(__doc__, {"products": products, "bytes": byte_products, "windows": windows, "attention": attention, "vectors": vectors, "items": items}))
