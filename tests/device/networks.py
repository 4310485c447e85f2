#!/usr/bin/env python3
"""Whole networks on a device: what they give beside ONNX Runtime there, and what they take.

    networks.py pack DIR --ingot build/ingot MODEL...        here: DIR is all that has to travel;
                                                             MODEL is a file, or a folder of one and
                                                             test_data_set_0
    DIR/networks.py run --out networks.json                  there: needs Python with numpy, onnx
                                                             and onnxruntime, a C compiler, the
                                                             device's driver

`pack` leaves out large weights and inputs, as device.py does: of those stay what fills them again;
--whole NAME,NAME takes models with all that is in them. `run` compiles all networks at once, one a
core, in the order of `pack`: each gets its weights, is computed by ONNX Runtime on the CPU (where
that does not take it, by ingot's C), then by `ingot run` on the device. Then, alone on the device,
it is timed with all its kernels. With several --target, each network is computed and timed for all
of them, --rounds times in turns, of which the least counts: how languages compare on one card.
wgsl needs a library of WebGPU, in IGRT_WEBGPU.

A line each, and all of it in the JSON: the largest error as a share of the largest value of an
output (of integers: the share of those that differ), ms, kernels by what they take. `wrong` is what
is further off than the narrowest type in the network explains. The file is whole after every
network.

Exit status: 0, 1 if a network is wrong or fails, 77 (skipped) where `pack` has no onnx.
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
import device  # noqa: E402

FEW = 512  # bytes of a weight that stays
# The largest error that is none, as a share of the range, by what the network has: sums of f32 in
# another order; roundings to 11, 8 bits, and to a quantum.
LIMITS = {"f32": 1e-3, "f16": 3e-2, "bf16": 1e-1, "int8": 1e-1}


# ---- here ----------------------------------------------------------------------------------------


def narrowest(model):
    from onnx import TensorProto as T

    ops = {node.op_type for node in model.graph.node}
    types = {t.data_type for t in device.tensors(model.graph)} | {
        v.type.tensor_type.elem_type for v in model.graph.input
    }
    if any("Linear" in op or "Integer" in op for op in ops):
        return "int8"
    return "bf16" if T.BFLOAT16 in types else "f16" if T.FLOAT16 in types else "f32"


def sizes(value):
    return [d.dim_value if d.HasField("dim_value") else 1 for d in value.type.tensor_type.shape.dim]


def inputs_of(model, folder):
    """Those that lie beside it, or ones of its shapes, as tensors with names."""
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    weights = {t.name for t in model.graph.initializer}
    rng = np.random.default_rng(1)
    for i, value in enumerate(v for v in model.graph.input if v.name not in weights):
        file = folder / f"input_{i}.pb"
        if file.exists():
            tensor = onnx.TensorProto.FromString(file.read_bytes())
        else:
            dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            tensor = numpy_helper.from_array(
                (rng.standard_normal if dtype.kind == "f" else lambda s: rng.integers(0, 2, s))(
                    sizes(value)
                ).astype(dtype)
            )
        tensor.name = value.name
        yield tensor


def as_model(tensors):
    """Tensors as weights of a model without nodes: what strips and fills weights does so with
    inputs."""
    from onnx import helper

    return helper.make_model(helper.make_graph([], "inputs", [], [], list(tensors)))


def put(folder, model, whole):
    folder.mkdir(parents=True)
    (folder / "fill.json").write_text(json.dumps([] if whole else device.strip(model, FEW)))
    (folder / "model.onnx").write_bytes(model.SerializeToString())


def pack(args):
    try:
        import onnx
    except ImportError as e:
        print(f"skipped: {e}")
        return 77
    to, whole, order = pathlib.Path(args.dir), args.whole.split(","), []
    shutil.rmtree(to, ignore_errors=True)
    (to / "bin").mkdir(parents=True)
    shutil.copy(args.ingot, to / "bin" / "ingot")
    for file in device.libraries(args.ingot):
        shutil.copy(file, to / "bin")
    for file in (__file__, device.__file__):
        shutil.copy(file, to)
    for path in map(pathlib.Path, args.models):
        path = path / "model.onnx" if path.is_dir() else path
        name = path.parent.name if path.stem == "model" else path.stem
        name = f"{path.parent.parent.name}_{name}" if name in order else name
        model = onnx.load(path)
        order.append(name)
        put(
            to / "models" / name / "inputs",
            as_model(inputs_of(model, path.parent / "test_data_set_0")),
            name in whole,
        )
        (to / "models" / name / "kind.json").write_text(json.dumps(narrowest(model)))
        put(to / "models" / name / "model", model, name in whole)
    (to / "order.json").write_text(json.dumps(order))
    with tarfile.open(to / "models.tar.xz", "w:xz") as file:  # graphs are long, and much alike
        file.add(to / "models", "models")
    shutil.rmtree(to / "models")
    size = sum(p.stat().st_size for p in to.rglob("*") if p.is_file())
    print(f"{to}: {len(order)} networks, {size / 2**20:.1f} MiB")
    return 0


# ---- there ---------------------------------------------------------------------------------------


class Job:
    """A network on its way: its folder, the time it has, and what is told of it."""

    def __init__(self, name, target, args, end):
        self.name, self.target, self.args, self.end = name, target, args, end
        self.folder = pathlib.Path(args.work) / "models" / name
        self.model, self.data = self.folder / "model" / "model.onnx", self.folder / "data"
        self.env = os.environ | {
            "LD_LIBRARY_PATH": f"{HERE / 'bin'}:{os.environ.get('LD_LIBRARY_PATH', '')}",
            "INGOT_CACHE": str(pathlib.Path(args.work) / "cache"),
        }
        kind = json.loads((self.folder / "kind.json").read_text())
        self.row = {"kind": kind}

    def ingot(self, verb, *command):
        """What came of it, or None; a sentence why goes into the row."""
        try:
            done = subprocess.run(
                [
                    str(c)
                    for c in (
                        HERE / "bin" / "ingot",
                        verb,
                        self.model,
                        "--data",
                        self.data,
                        *command,
                    )
                ],
                capture_output=True,
                text=True,
                env=self.env,
                timeout=max(0.01, self.end - time.time()),
            )
        except subprocess.TimeoutExpired:
            self.row.setdefault("skipped", f"{verb}: no time left")
            return None
        if done.returncode not in (
            0,
            7,
        ):  # 7: results are others than wanted; how far off they are is looked at here
            self.row.setdefault(
                "failed", f"{verb}: status {done.returncode}: {done.stderr.strip()[-300:]}"
            )
            return None
        return done

    def tried(self, verb, *command):
        """Whether it can be done; nothing is told of it."""
        before = dict(self.row)
        done = self.ingot(verb, *command)
        self.row = before
        return done is not None

    def tell(self, step, *args):
        """What a step gives; a fault of it goes into the row."""
        try:
            return step(*args)
        except Exception as e:
            self.row.setdefault("failed", f"{type(e).__name__}: {e}"[-300:])

    def fill(self):
        """Weights and inputs; gives the inputs by their names."""
        import onnx
        from onnx import numpy_helper

        for part in ("model", "inputs"):
            if (self.folder / part / "fill.json").stat().st_size > 2:
                device.fill(self.folder / part)
        self.data.mkdir(exist_ok=True)
        tensors = onnx.load(self.folder / "inputs" / "model.onnx").graph.initializer
        for i, tensor in enumerate(tensors):
            (self.data / f"input_{i}.pb").write_bytes(tensor.SerializeToString())
        return {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}

    def wanted(self, feeds):
        """Outputs by ONNX Runtime, or by ingot's C."""
        try:
            import onnxruntime as ort

            options = ort.SessionOptions()
            options.intra_op_num_threads, options.log_severity_level = 1, 4
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
            return ort.InferenceSession(
                str(self.model), options, providers=["CPUExecutionProvider"]
            ).run(None, feeds)
        except Exception as e:
            self.row["beside"] = f"c:native: {str(e)[:120]}"
        out = self.folder / "c"
        return (
            self.outputs(out)
            if self.ingot("run", "--output-dir", out, "--target", "c:native", "-q")
            else None
        )

    def outputs(self, folder):
        import onnx
        from onnx import numpy_helper

        files = sorted(folder.glob("output_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
        return [numpy_helper.to_array(onnx.TensorProto.FromString(p.read_bytes())) for p in files]

    def compare(self, want):
        began, out = time.time(), self.folder / f"out_{self.target.replace(':', '_')}"
        if (
            self.ingot("run", "--output-dir", out, "--target", self.target, "-q")
            and want is not None
        ):
            got = self.outputs(out)
            self.row["errors"] = (
                [error_of(g, w) for g, w in zip(got, want)]
                if len(got) == len(want)
                else [f"{len(got)} outputs for {len(want)}"]
            )
        self.row["run_s"] = round(time.time() - began, 2)

    def build(self):
        """Beside others. Whether it can be timed."""
        what = ["bench", "--seconds", "0.001", "--target", self.target, "--json", "-q"]
        # else steps of the host need inputs, or it is a CPU
        self.row["on_device"] = self.tried(*what, "--on-device")
        return self.row["on_device"] or self.ingot(*what)

    def bench(self):
        """Alone on the device. Of several times the least counts, of a run and of its kernels."""
        what = ["--target", self.target, "--json", "-q", "--seconds", self.args.seconds]
        done = self.ingot(
            "bench", "--per-kernel", *what, *(["--on-device"] if self.row["on_device"] else [])
        )
        if done:
            told = json.loads(done.stdout.splitlines()[-1])
            kernels = sorted(([k["ms"], k["name"]] for k in told.get("kernels", [])), reverse=True)
            total = sum(ms for ms, _ in kernels)
            self.row["ms"] = min(told["median_ms"], self.row.get("ms", told["median_ms"]))
            if total <= self.row.get("kernels_ms", total):
                self.row |= {"kernels_ms": round(total, 5), "kernels": kernels}

    def wrong(self):
        limit = LIMITS[self.row["kind"]]
        return "failed" in self.row or any(
            isinstance(e, str) or not e <= limit for e in self.row.get("errors", [])
        )


@contextlib.contextmanager
def alone(work):
    with open(pathlib.Path(work) / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def error_of(got, want):
    import numpy as np

    want = np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape} for {want.shape}"
    if not want.size:
        return 0.0
    if want.dtype.kind in "biuSUO":
        return float((got != want).mean())
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if same.all():
        return 0.0
    if not (np.isfinite(got[~same]) & np.isfinite(want[~same])).all():
        return f"{int((np.isfinite(got) != np.isfinite(want)).sum())} of {want.size} not finite on one side alone"
    return float(
        np.abs(got - want)[~same].max() / max(np.abs(want[np.isfinite(want)]).max(), 1e-30)
    )


def network(name, args, end):
    """Rows by name: with several targets the name has that, too."""
    jobs = [Job(name, target, args, end) for target in args.target]
    want = jobs[0].tell(lambda: jobs[0].wanted(jobs[0].fill()))
    for job in jobs:
        job.tell(job.compare, want)
    timed = [] if args.no_bench else [job for job in jobs if job.tell(job.build)]
    with alone(args.work):
        for job in timed * args.rounds:
            job.tell(job.bench)
    for job in jobs:
        job.row["wrong"] = job.wrong()
    shutil.rmtree(jobs[0].folder, ignore_errors=True)
    return {f"{name} {job.target}" if len(jobs) > 1 else name: job.row for job in jobs}


def line(name, row):
    errors = (
        [e for e in row.get("errors", []) if isinstance(e, str)] or [f"{max(row['errors']):.2e}"]
        if row.get("errors")
        else []
    )
    return (
        f"{name:44s} {'WRONG ' if row['wrong'] else ''}{row['kind']:4s} error {errors[0] if errors else '-':9s} {row.get('ms', 0):9.4f} ms {'' if row.get('on_device', True) else 'with transfers'} {len(row.get('kernels', [])):4d} steps of {row.get('kernels_ms', 0):9.4f} ms"
        f"  {row.get('run_s', 0):5.1f} s  {row.get('failed', '')}{row.get('skipped', '')} {row.get('beside', '')}"
    )


def run(args):
    began, out = time.time(), pathlib.Path(args.out)
    result = {"machine": device.machine(), "targets": args.target, "networks": {}}
    pathlib.Path(args.work).mkdir(parents=True, exist_ok=True)
    with tarfile.open(HERE / "models.tar.xz") as file:
        file.extractall(args.work)
    names = [
        n
        for n in json.loads((HERE / "order.json").read_text())
        if not args.filter or args.filter in n
    ]
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for job in concurrent.futures.as_completed(
            [pool.submit(network, n, args, began + args.limit) for n in names]
        ):
            rows = job.result()
            result["networks"] |= rows
            for name, row in rows.items():
                print(f"{time.time() - began:6.1f} {line(name, row)}", flush=True)
            part = out.with_suffix(".part")
            part.write_text(json.dumps(result, indent=1) + "\n")
            part.replace(out)
    wrong = [n for n, row in result["networks"].items() if row["wrong"]]
    print(
        f"{out}: {len(names)} networks, {len(wrong)} wrong {' '.join(wrong)}, {time.time() - began:.0f} s"
    )
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("pack")
    p.add_argument("dir")
    p.add_argument("models", nargs="+", metavar="MODEL")
    p.add_argument("--ingot", default="build/ingot")
    p.add_argument(
        "--whole", default="", metavar="NAME,NAME", help="models that keep their weights and inputs"
    )
    p = verbs.add_parser("run")
    p.add_argument("--out", default="networks.json")
    p.add_argument("--work", default="/tmp/networks")
    p.add_argument("--target", action="append", help="default: cuda:sm_90a; may be repeated")
    p.add_argument("--rounds", type=int, default=1, help="of timing all targets of a network")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="networks at a time")
    p.add_argument("--seconds", type=float, default=0.05, help="of measuring, a network")
    p.add_argument("--no-bench", action="store_true")
    p.add_argument("--limit", type=float, default=1e6, help="seconds in all")
    p.add_argument("--filter", help="networks whose name has this")
    args = parser.parse_args()
    if args.verb == "run":
        args.target = args.target or ["cuda:sm_90a"]
    return {"pack": pack, "run": run}[args.verb](args)


if __name__ == "__main__":
    sys.exit(main())
