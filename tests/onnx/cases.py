#!/usr/bin/env python3
"""Writes the official ONNX test cases, out of the installed `onnx` package, as folders.

    cases.py OUT_DIR        OUT_DIR/node/NAME/{model.onnx,test_data_set_N/...}

Node cases are computed by the package's own generators; what else it ships as files (light,
simple, pytorch-*) is copied beside them. What cannot be written is named and skipped. A second
call finds the stamp of the same onnx version and returns at once.
"""

import argparse
import pathlib
import shutil
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper


def to_bytes(value, vi):
    kind = vi.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, vi.name).SerializeToString()
    if kind == "optional_type":
        return numpy_helper.from_optional(value, vi.name).SerializeToString()
    if kind != "tensor_type":
        raise ValueError(f"{vi.name} is a {kind}")
    if isinstance(value, onnx.TensorProto):
        return value.SerializeToString()
    return numpy_helper.from_array(value, vi.name).SerializeToString()


def write(case, out):
    folder = out / case.kind / case.name
    files = {"model.onnx": case.model.SerializeToString()}
    for n, (inputs, outputs) in enumerate(case.data_sets):
        for what, values, declared in (
            ("input", inputs, case.model.graph.input),
            ("output", outputs, case.model.graph.output),
        ):
            for i, (value, vi) in enumerate(zip(values, declared)):
                files[f"test_data_set_{n}/{what}_{i}.pb"] = to_bytes(value, vi)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_light(model, folder):
    """The big networks without weights: the package's runner feeds them 0, 1/n, 2/n, ..."""
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    shutil.copy(model, folder / "model.onnx")
    real = model.parent.parent / "real" / folder.name / "data.json"
    if real.exists():
        shutil.copy(real, folder)
    g = onnx.load(model).graph
    weights = {t.name for t in g.initializer}
    for i, vi in enumerate(v for v in g.input if v.name not in weights):
        shape = [d.dim_value or 1 for d in vi.type.tensor_type.shape.dim]
        x = (np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)).astype(np.float32)
        (data / f"input_{i}.pb").write_bytes(
            numpy_helper.from_array(x, vi.name).SerializeToString()
        )
    for i in range(len(g.output)):
        shutil.copy(model.with_name(f"{model.stem}_output_{i}.pb"), data / f"output_{i}.pb")


def generate(out):
    """Fills OUT (once); returns the number of cases in it."""
    out = pathlib.Path(out)
    stamp = out / "stamp"
    want = f"onnx {onnx.__version__} 3"
    if stamp.exists() and stamp.read_text().startswith(want):
        return int(stamp.read_text().rsplit(":", 1)[1])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    warnings.simplefilter("ignore")
    import onnx.backend.test.case.model as models
    import onnx.backend.test.case.node as nodes

    n = 0
    for case in {
        (c.kind, c.name): c for c in models.collect_testcases() + nodes.collect_testcases(None)
    }.values():
        if case.model is None or not case.data_sets:
            continue
        try:
            write(case, out)
            n += 1
        except Exception as e:  # one case the package cannot write is not our failure
            shutil.rmtree(out / case.kind / case.name, ignore_errors=True)
            print(f"skipped {case.kind}/{case.name}: {e}", file=sys.stderr)
    shipped = pathlib.Path(onnx.__path__[0]) / "backend" / "test" / "data"
    for model in sorted(shipped.glob("*/*/model.onnx")):
        folder = out / model.parent.parent.name / model.parent.name
        if not folder.exists() and list(model.parent.glob("test_data_set_*/output_*.pb")):
            shutil.copytree(model.parent, folder)
            n += 1
    for model in sorted((shipped / "light").glob("light_*.onnx")):
        write_light(model, out / "light" / model.stem.replace("light_", "test_"))
        n += 1
    stamp.write_text(f"{want}: {n}\n")
    return n


if __name__ == "__main__":
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("out_dir")
    print(generate(p.parse_args().out_dir), "cases")
