#!/usr/bin/env python3
"""Products of f8 on the GPU of this machine, in turns with PyTorch's (cuBLASLt), and what
--precision fp8 gains and costs.

    f8.py --ingot build/ingot [--sizes 4096x4096x4096,512x4096x4096] [--blocks 4096,128,1] [--work DIR]

products   f8e4m3fn by f8e4m3fn to f16, rows x columns x terms: with sums of 128 terms in f32, and with
           the unit's own (--precision fp8-fast), beside torch._scaled_mm with its fast accumulation;
           errors relative to the same product in f32
blocks     a norm, a product, a GELU, a product and a residual, of 1,024 and 4,096 channels and so
           many rows: ms with --precision f16 and fp8, and how far both are from f32

Judges nothing. Needs PyTorch with CUDA, onnx, ml_dtypes and a C compiler. Exit status 77, skipped: they
are not here.
"""

import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

try:
    import numpy as np
    import torch
    from onnx import TensorProto, helper, numpy_helper, save
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

SCALE, CHANNELS, HIDDEN = 0.25, 1024, 4096


def write(path, nodes, x, y, weights):
    graph = helper.make_graph(
        [helper.make_node(op, given, [out], **more) for op, given, out, more in nodes],
        "g",
        [helper.make_tensor_value_info("x", *x)],
        [helper.make_tensor_value_info("y", *y)],
        weights,
    )
    opsets = [helper.make_opsetid("", 20)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


def product(path, sizes, w):
    rows, columns, terms = sizes
    f8 = TensorProto.FLOAT8E4M3FN
    bits = w.view(torch.uint8).cpu().numpy().tobytes()
    weights = [
        helper.make_tensor("w", f8, [terms, columns], bits, raw=True),
        numpy_helper.from_array(np.float32(1), "sx"),
        numpy_helper.from_array(np.float32(SCALE), "sw"),
    ]
    nodes = [
        ("DequantizeLinear", ["x", "sx"], "d", {}),
        ("DequantizeLinear", ["w", "sw"], "v", {}),
        ("MatMul", ["d", "v"], "p", {}),
        ("Cast", ["p"], "y", {"to": TensorProto.FLOAT16}),
    ]
    write(path, nodes, (f8, [rows, terms]), (TensorProto.FLOAT16, [rows, columns]), weights)


def block(path, rows):
    rng = np.random.default_rng(1)

    def drawn(name, *shape):
        x = rng.standard_normal(shape) / np.sqrt(shape[0])
        return numpy_helper.from_array(x.astype(np.float32), name)

    weights = [drawn("w", CHANNELS, HIDDEN), drawn("v", HIDDEN, CHANNELS), drawn("b", HIDDEN)]
    weights += [drawn("c", CHANNELS), numpy_helper.from_array(np.ones(CHANNELS, np.float32), "g")]
    nodes = [
        ("LayerNormalization", ["x", "g", "c"], "n", {}),
        ("MatMul", ["n", "w"], "h", {}),
        ("Add", ["h", "b"], "i", {}),
        ("Gelu", ["i"], "j", {}),
        ("MatMul", ["j", "v"], "o", {}),
        ("Add", ["o", "x"], "y", {}),
    ]
    of = (TensorProto.FLOAT, [rows, CHANNELS])
    write(path, nodes, of, of, weights)


def library(ingot, path, words):
    out = path.with_name(f"{path.stem}{''.join(words)}")
    # weights are part of the library, which is loaded without files
    call = [ingot, "compile", path, "-o", out, "--target", "cuda:native", "--weights", "incbin"]
    for command in ([*call, "--no-check", *words], ["make", "-s", "-C", out, "libmodel.so"]):
        done = subprocess.run(
            [str(w) for w in command], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{command[:2]}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return out / "libmodel.so"


def error(y, want):
    return ((y.float() - want).norm() / want.norm()).item()


def compare(turns, name, libraries, x, y, want, peer=None):
    """One line for each library: its error, its time, and torch's in the same turns."""
    stream = torch.cuda.Stream()
    for how, made in libraries.items():
        bundle = turns.Bundle(made, stream.cuda_stream).bind([x.data_ptr()], [y.data_ptr()])
        y.zero_()
        torch.cuda.synchronize()
        bundle.run()
        torch.cuda.synchronize()
        told = f"{name:>16} {how or 'as it is':9} error {error(y, want):.1e}"
        if peer:
            t = turns.beside(torch, bundle.run, peer, stream)
            told += f" {t['ours_ms']:.4f} ms, torch {t['torch_ms']:.4f}"
            told += (
                f", torch / ours {t['torch_by_ours']:.3f}, in bursts {t['cool_torch_by_ours']:.3f}"
            )
        else:
            ms = turns.turns(torch, {"ours": (bundle.run, False)}, stream)
            told += f" {turns.median(ms['ours']):.4f} ms"
        print(told, flush=True)
        bundle.close()


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True, type=pathlib.Path)
    p.add_argument("--sizes", default="4096x4096x4096,512x4096x4096")
    p.add_argument("--blocks", default="4096,128,1")
    p.add_argument("--work", type=pathlib.Path)
    o = p.parse_args()
    ingot = o.ingot.resolve()
    sys.path[:0] = [str(HERE), str(HERE.parents[1] / "compiler/tools/python/ingot")]
    import turns

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    work = o.work or pathlib.Path(tempfile.mkdtemp(prefix="ingot-f8-"))
    products, asked = {}, []
    for text in filter(None, o.sizes.split(",")):
        sizes = rows, columns, terms = [int(n) for n in text.split("x")]
        x, w = (
            (torch.randn(shape, device="cuda") * 16).to(torch.float8_e4m3fn)
            for shape in ((rows, terms), (terms, columns))
        )
        product(work / f"{text}.onnx", sizes, w)
        products[text] = x, w
        asked += [(text, ()), (text, ("--precision", "fp8-fast"))]
    blocks = list(filter(None, o.blocks.split(",")))
    for rows in blocks:
        block(work / f"{rows}.onnx", int(rows))
        asked += [(rows, w) for w in ((), ("--precision", "f16"), ("--precision", "fp8"))]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = dict(
            zip(asked, pool.map(lambda a: library(ingot, work / f"{a[0]}.onnx", a[1]), asked))
        )

    def of(name):
        return {how[-1] if how else "": path for (n, how), path in made.items() if n == name}

    one, scale = (torch.tensor(s, device="cuda") for s in (1.0, SCALE))
    for text, (x, w) in products.items():
        t = w.t().contiguous().t()
        want = x.float() @ w.float() * SCALE
        out = torch.empty_like(want, dtype=torch.bfloat16)

        def peer(x=x, t=t, out=out):
            torch._scaled_mm(
                x, t, one, scale, out_dtype=torch.bfloat16, use_fast_accum=True, out=out
            )

        peer()
        print(f"{text:>16} torch     error {error(out, want):.1e}, its sums and bf16")
        compare(turns, text, of(text), x, torch.empty_like(want, dtype=torch.float16), want, peer)
    for rows in blocks:
        x = torch.randn(int(rows), CHANNELS, device="cuda")
        y, want = torch.empty_like(x), None
        libraries = of(rows)
        stream = torch.cuda.Stream()
        exact = turns.Bundle(libraries[""], stream.cuda_stream).bind([x.data_ptr()], [y.data_ptr()])
        torch.cuda.synchronize()
        exact.run()
        torch.cuda.synchronize()
        want = y.clone()
        compare(turns, f"{rows} rows", libraries, x, y, want)
        exact.close()


if __name__ == "__main__":
    main()
