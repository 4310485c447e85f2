#!/usr/bin/env python3
"""Tests and timings on a machine that has a device, but nothing to build with: no network, no room
for a checkout.

    device.py pack DIR --ingot build/ingot [MODEL.onnx...]     here: DIR is all that has to travel
    device.py pack DIR --products 1024,2048,4096 M/model.onnx  with products of matrices, of f16 and
    f32, too
    DIR/device.py run --out result.json                        there: needs Python with numpy, a C
                                                               compiler, the device's driver

`pack` takes ingot with the libraries that it is linked to, and models without their large weights:
of those stay mean and deviation, by which `run` fills them again, the same on every machine.
Without MODEL it takes three of tests/replay's zoo. DIR has at most `--most` MiB.

A target may have a precision, `cuda:sm_90+tf32`: what its products of f32 multiply. Products of
matrices are timed beside those of torch, where it has a GPU, in turns; above 1024 they are not
verified, since the interpreter would take minutes.

`run` verifies every model for every target (kernel by kernel, and beside the interpreter), times it
with all its kernels, beside ONNX Runtime where that is installed, and writes one JSON: the machine,
and by model and target status, median_ms and kernels. What there is no device for is told as
skipped. The file is whole after every step, so a run that is cut off loses only the rest.

Exit status: 0, 1 if anything failed, 77 (skipped) where `pack` has no onnx.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
SMALL = 16384  # bytes: a weight that stays in the file
LIMIT = 64  # MiB


# ---- here ----------------------------------------------------------------------------------------


def libraries(program):
    """What a bare machine may lack: all but libc's own."""
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow and not name.startswith(
            ("libc.", "libm.", "libpthread.", "libdl.", "librt.", "ld-", "libgcc_s.")
        ):
            yield rest.split(" (")[0]


def tensors(graph):
    import onnx

    yield from graph.initializer
    for node in graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.TENSOR:
                yield a.t
            elif a.type == onnx.AttributeProto.GRAPH:
                yield from tensors(a.g)


def strip(model, small=SMALL):
    """Takes large weights out of a model (floats of more bytes than small): they become spans of a
    file that is not there yet. Gives what fills it."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    fills, offset = [], 0
    for t in tensors(model.graph):
        value = numpy_helper.to_array(t)
        if (
            value.nbytes <= (small if value.dtype.kind == "f" else SMALL)
            or value.dtype.kind not in "fiu"
        ):
            continue
        fill = {
            "seed": zlib.crc32(t.name.encode()),
            "dtype": value.dtype.name,
            "shape": list(value.shape),
            "offset": offset,
        }
        if value.dtype.kind == "f":
            wide = value.astype(np.float64)
            fill |= {
                "mean": float(wide.mean()),
                "std": float(wide.std()),
                "positive": bool(value.min() >= 0),
            }
        else:
            fill |= {"low": int(value.min()), "high": int(value.max())}
        for field in (
            "raw_data",
            "float_data",
            "int32_data",
            "int64_data",
            "double_data",
            "uint64_data",
        ):
            t.ClearField(field)
        t.data_location = onnx.TensorProto.EXTERNAL
        del t.external_data[:]
        for key, word in (
            ("location", "weights.bin"),
            ("offset", offset),
            ("length", value.nbytes),
        ):
            t.external_data.add(key=key, value=str(word))
        fills.append(fill)
        offset += (value.nbytes + 63) // 64 * 64
    return fills


def zoo():
    sys.path[:0] = [str(HERE.parent / "replay"), str(HERE.parent / "bundle")]
    import zoo as models

    return {name: models.build(name) for name in ("resnet", "transformer", "qdq")}


def product(n, kind, rows=None):
    """y = x w, of n by n, or of so many rows by n."""
    from onnx import TensorProto, helper

    x, w, y = (
        helper.make_tensor_value_info(
            name,
            {"f16": TensorProto.FLOAT16, "f32": TensorProto.FLOAT}[kind],
            [n if name == "w" else rows or n, n],
        )
        for name in "xwy"
    )
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "product", [x, w], [y]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def pack(args):
    try:
        import onnx
    except ImportError as e:
        print(f"skipped: {e}")
        return 77
    to = pathlib.Path(args.dir)
    shutil.rmtree(to, ignore_errors=True)
    (to / "bin").mkdir(parents=True)
    for file in (args.ingot, *libraries(args.ingot)):
        shutil.copy(file, to / "bin")
    shutil.copy(__file__, to / "device.py")
    models = {
        p.parent.name if p.stem == "model" else p.stem: onnx.load(p)
        for p in map(pathlib.Path, args.models)
    }
    models = models or {name: onnx.load_from_string(text) for name, text in zoo().items()}
    for n in filter(None, args.products.split(",")):
        models |= {f"product_{int(n)}_{kind}": product(int(n), kind) for kind in ("f16", "f32")}
    for name, model in models.items():
        folder = to / "models" / name
        folder.mkdir(parents=True)
        fills = strip(model)
        (folder / "fill.json").write_text(json.dumps(fills))
        (folder / "model.onnx").write_bytes(model.SerializeToString())
    size = sum(p.stat().st_size for p in to.rglob("*") if p.is_file())
    print(f"{to}: {len(models)} models, {size / 2**20:.1f} MiB")
    if size > args.most * 2**20:
        print(f"device.py: that is more than {args.most} MiB; pack fewer models", file=sys.stderr)
        return 1
    return 0


# ---- there ---------------------------------------------------------------------------------------


def fill(folder):
    """Writes the weights that pack() left out."""
    import numpy as np

    fills = json.loads((folder / "fill.json").read_text())
    with open(folder / "weights.bin", "wb") as f:
        for w in fills:
            rng = np.random.Generator(np.random.PCG64(w["seed"]))
            if "mean" in w:
                x = rng.standard_normal(w["shape"]) * w["std"] + w["mean"]
                x = np.abs(x) if w["positive"] else x
            else:
                x = rng.integers(w["low"], w["high"], w["shape"], endpoint=True)
            f.seek(w["offset"])
            f.write(np.ascontiguousarray(x.astype(w["dtype"])).tobytes())


def words(*command):
    """What a command prints, or nothing where it is not there or does not succeed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def machine():
    cpu = dict(line.split(":", 1) for line in words("lscpu").splitlines() if ":" in line)
    flags = cpu.get("Flags", "").split()
    return {
        "system": platform.platform(),
        "cpu": cpu.get("Model name", platform.processor()).strip(),
        "cores": os.cpu_count(),
        "units": sorted(f for f in flags if f.startswith(("amx", "avx512", "avx2", "avx_vnni"))),
        "gpus": words(
            "nvidia-smi",
            "--query-gpu=name,driver_version,memory.total,clocks.max.sm",
            "--format=csv,noheader",
        ).splitlines(),
        "opencl": sorted(p.stem for p in pathlib.Path("/etc/OpenCL/vendors").glob("*.icd")),
        "cc": words("cc", "--version").split("\n")[0],
    }


def lacks(target, found):
    """Why a target cannot be run here, or None."""
    if target.startswith("cuda") and not found["gpus"]:
        return "no NVIDIA GPU"
    if target.startswith("opencl") and not found["opencl"]:
        return "no OpenCL driver in /etc/OpenCL/vendors"
    return None


def beside(path, threads, seconds):
    """ONNX Runtime's time on the CPU in ms, or None."""
    try:
        import numpy as np
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        rng = np.random.default_rng(0)
        types = {
            "tensor(float)": np.float32,
            "tensor(float16)": np.float16,
            "tensor(int64)": np.int64,
            "tensor(int32)": np.int32,
        }
        data = {
            i.name: rng.random([n if isinstance(n, int) else 1 for n in i.shape]).astype(
                types[i.type]
            )
            for i in session.get_inputs()
        }
        times, end = [], time.perf_counter() + seconds
        while len(times) < 3 or time.perf_counter() < end:
            begin = time.perf_counter()
            session.run(None, data)
            times.append(time.perf_counter() - begin)
        return round(sorted(times)[len(times) // 2] * 1e3, 4)
    except (
        Exception
    ):  # it is not installed, or does not take the model: then there is nothing beside ours
        return None


def torch_product(n, kind, tf32):
    """What torch takes for a product on its GPU, in ms, the median of some, or None."""
    try:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = tf32
        x, w = (
            torch.randn(
                n, n, device="cuda", dtype={"f16": torch.float16, "f32": torch.float32}[kind]
            )
            for _ in range(2)
        )
        times = []
        for _ in range(30):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(10):
                torch.matmul(x, w)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 10)
        return round(sorted(times)[len(times) // 2], 5)
    except Exception:  # no torch, or no GPU that it knows: then there is nothing beside ours
        return None


def run(args):
    libs = f"{HERE / 'bin'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    env = os.environ | {"LD_LIBRARY_PATH": libs, "INGOT_CACHE": str(HERE / "cache")}
    ingot, began, out = HERE / "bin" / "ingot", time.time(), pathlib.Path(args.out)
    result = {"machine": machine(), "models": {}}
    failed = 0

    def call(*command):
        left = args.limit - (time.time() - began)
        if left <= 0:
            return None, "skipped: out of time"
        try:
            done = subprocess.run(
                [str(c) for c in command], capture_output=True, text=True, env=env, timeout=left
            )
        except subprocess.TimeoutExpired:
            return None, "skipped: out of time"
        return (
            done,
            "ok"
            if done.returncode == 0
            else f"status {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}",
        )

    def keep():
        part = out.with_suffix(".part")
        part.write_text(json.dumps(result, indent=1) + "\n")
        part.replace(out)

    for folder in sorted((HERE / "models").iterdir()):
        if args.filter and args.filter not in folder.name:
            continue
        fill(folder)
        model = folder / "model.onnx"
        row = result["models"][folder.name] = {}
        made = folder.name.split("_") if folder.name.startswith("product_") else None
        if ms := None if made else beside(model, args.threads, args.seconds):
            row["onnxruntime"] = {"threads": args.threads, "median_ms": ms}
        for target in args.targets.split(","):
            why = lacks(target, result["machine"])
            told = row[target] = {"verify": f"skipped: {why}"} if why else {}
            if not why:
                name, _, how = target.partition("+")
                what = ["--target", name, *(["--precision", how] if how else [])]
                large = made and int(made[1]) > 1024
                told["verify"] = (
                    "skipped: large" if large else call(ingot, "verify", model, *what)[1]
                )
                where = [] if target.startswith("c:") or target == "c" else ["--on-device"]
                if made and where and (ms := torch_product(int(made[1]), made[2], how == "tf32")):
                    told["torch_ms"] = ms
                done, told["bench"] = call(
                    ingot,
                    "bench",
                    model,
                    *what,
                    "--threads",
                    args.threads,
                    "--seconds",
                    args.seconds,
                    "--per-kernel",
                    "--json",
                    *where,
                )
                if told["bench"] == "ok":
                    told |= json.loads(done.stdout.splitlines()[-1])
                failed += any(told[k].startswith("status") for k in ("verify", "bench"))
            print(
                f"{folder.name:24s} {target:16s} {told['verify'][:60]:60s} {told.get('median_ms', '')}",
                flush=True,
            )
            keep()
        (folder / "weights.bin").unlink()
    keep()
    print(f"{out}: {len(result['models'])} models, {failed} failed, {time.time() - began:.0f} s")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("pack")
    p.add_argument("dir")
    p.add_argument("models", nargs="*", metavar="MODEL.onnx")
    p.add_argument("--ingot", default="build/ingot")
    p.add_argument(
        "--products",
        default="",
        metavar="N,N..",
        help="products of matrices of these sizes, of f16 and f32, too",
    )
    p.add_argument("--most", type=int, default=LIMIT, metavar="MIB")
    p = verbs.add_parser("run")
    p.add_argument("--out", default="result.json")
    p.add_argument("--targets", default="c:native,cuda,opencl")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=0.5, help="of measuring, a model and target")
    p.add_argument("--limit", type=float, default=540, help="seconds in all")
    p.add_argument("--filter", help="models whose name has this")
    args = parser.parse_args()
    return {"pack": pack, "run": run}[args.verb](args)


if __name__ == "__main__":
    sys.exit(main())
