#!/usr/bin/env python3
"""Modules of PyTorch, as its two exporters write them: what a user brings.

    torch_cases.py OUT_DIR [--filter REGEX] [--ways dynamo,script] [--only-free]

Each module of torch_layers.py is written by torch.onnx.export() in two ways (dynamo: the graph that
torch.export finds; script: the one that a run leaves), once with its sizes and once with the first
axis of the first input free, and those that are as long: OUT_DIR/NAME_WAY and OUT_DIR/NAME_WAY_free, in the layout that run.py
reads. The results are those of the module itself, run by PyTorch. A module that an exporter cannot
write is told and is no case. Exit status 77, skipped: there is no PyTorch.
"""

import argparse
import concurrent.futures
import contextlib
import io
import multiprocessing
import os
import pathlib
import re
import shutil
import sys
import warnings

try:
    import onnx
    import onnxscript  # noqa: F401, which the exporter wants
    import torch
    from onnx import numpy_helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import torch_layers  # noqa: E402


def export(module, inputs, path, way, free):
    """Writes the model; names of inputs are x0, x1, .."""
    names = [f"x{i}" for i in range(len(inputs))]
    more = {"dynamo": way == "dynamo", "input_names": names}
    like = [x.dim() > 0 and x.shape[0] == inputs[0].shape[0] for x in inputs]
    if free and way == "dynamo":
        shapes = tuple({0: torch.export.Dim.AUTO} if one else None for one in like)
        listed = isinstance(module, (torch_layers.Function, torch_layers.First))
        more["dynamic_shapes"] = (shapes,) if listed else shapes
    elif free:
        more["dynamic_axes"] = {k: {0: "n"} for k, one in zip(names, like) if one}
    if way == "dynamo":
        more["external_data"] = more["verbose"] = False
    torch.onnx.export(module, inputs, str(path), **more)


def flat(results):
    if isinstance(results, torch.Tensor):
        return [results]
    return [t for r in results for t in flat(r)]


def write_data(folder, model, inputs, results):
    data = folder / "test_data_set_0"
    data.mkdir()
    given = dict(zip((f"x{i}" for i in range(len(inputs))), inputs))
    kept = [i.name for i in model.graph.input]  # an exporter leaves out what nothing reads
    for kind, values in (("input", [given[k] for k in kept]), ("output", results)):
        for i, v in enumerate(values):
            tensor = numpy_helper.from_array(v.detach().numpy())
            (data / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())


def write(name, way, free, out):
    """A line about it; None where it is there."""
    folder = out / f"{name}_{way}{'_free' if free else ''}"
    module, inputs = torch_layers.make(name)
    if free and inputs[0].dim() == 0:
        return None
    folder.mkdir(parents=True)
    try:
        with torch.no_grad():
            results = flat(module(*inputs))
        with contextlib.redirect_stdout(io.StringIO()):
            export(module, inputs, folder / "model.onnx", way, free)
        write_data(folder, onnx.load(folder / "model.onnx"), inputs, results)
    except Exception as e:  # of the exporter
        shutil.rmtree(folder)
        first = (str(e).strip().splitlines() or [""])[0][:120]
        return f"{folder.name}: no case: {type(e).__name__}: {first}"
    return None


def quiet():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    sys.stderr = open(os.devnull, "w")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    a = p.add_argument
    a("out", type=pathlib.Path, metavar="OUT_DIR")
    a("--filter", metavar="REGEX", default="")
    a("--ways", type=lambda s: s.split(","), default=["dynamo", "script"])
    a("--only-free", action="store_true", help="none with its sizes")
    a("--jobs", type=int, default=os.cpu_count() or 2)
    opt = p.parse_args()
    shutil.rmtree(opt.out, ignore_errors=True)
    opt.out.mkdir(parents=True)
    names = [n for n in torch_layers.names() if re.search(opt.filter, n)]
    free = [True] if opt.only_free else [False, True]
    work = [(n, way, f, opt.out) for n in names for way in opt.ways for f in free]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(opt.jobs, context, quiet) as pool:
        told = [line for line in pool.map(write, *zip(*work)) if line]
    print(*told, sep="\n")
    print(f"{len(work) - len(told)} cases of {len(names)} modules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
