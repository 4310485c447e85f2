#!/usr/bin/env python3
"""Networks of the zoo as their exporters wrote them, without weights:
tests/replay/graphs/NAME.onnx.xz.

    graphs.py MODEL.onnx NAME [OPTION...]    writes that of a model; the options of ingot that it
                                             needs (--dim batch=1) go to options.txt
    build(NAME, FOLDER)                      FOLDER/NAME.onnx, with numbers in place of the weights;
                                             the same on every machine

What a plan says of weights are types and shapes, which of them are equal, and what is in them where
that is simple (what is 0 or 1 throughout is not stored, what masks a triangle is not read); so
tuned files of the model are those of the graph.  Integers are kept, and weights with no more than
64 different numbers.  Of the others one file is the external data: each begins a number later in
it, and equal ones at the same number.
"""

import lzma
import math
import pathlib
import shlex
import sys

import numpy as np
import onnx
from onnx import numpy_helper

FOLDER = pathlib.Path(__file__).resolve().parent / "graphs"
OPTIONS = FOLDER / "options.txt"
NAMES = sorted(p.name[: -len(".onnx.xz")] for p in FOLDER.glob("*.onnx.xz"))
KEPT, DATA, PERIOD = 64, "weights", 65521  # so that no two begin alike
SIZE = {onnx.TensorProto.FLOAT: 4, onnx.TensorProto.FLOAT16: 2}


def tensors(graph):
    """Of the graph and of those within it, the weights."""
    yield from graph.initializer
    for node in graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.TENSOR:
                yield a.t
            if a.type == onnx.AttributeProto.GRAPH:
                yield from tensors(a.g)


def strip(model):
    """The model without the data of its weights: in their place is where they begin in the file of
    data."""
    place = {}
    for t in tensors(model.graph):
        if t.data_type not in SIZE or math.prod(t.dims) <= KEPT:
            continue
        value = numpy_helper.to_array(t)
        if np.unique(value).size <= KEPT:
            continue
        key = t.data_type, value.tobytes()
        for field in (
            "raw_data",
            "float_data",
            "int32_data",
            "external_data",
            "data_location",
            "doc_string",
        ):
            t.ClearField(field)
        t.external_data.add(
            key="offset", value=str(SIZE[t.data_type] * place.setdefault(key, len(place)))
        )
    for message in (model, model.graph, *model.graph.node):
        message.ClearField("metadata_props")
        message.ClearField("doc_string")
    del model.graph.value_info[:]
    return model


def options(name):
    """Of ingot, for this network."""
    for line in OPTIONS.read_text().splitlines():
        if line.split(" ", 1)[0] == name:
            return shlex.split(line)[1:]
    return []


def build(name, folder):
    model = onnx.load_from_string(lzma.decompress((FOLDER / f"{name}.onnx.xz").read_bytes()))
    data = pathlib.Path(folder, DATA)
    most = 0
    for t in (t for t in tensors(model.graph) if t.external_data):
        length = SIZE[t.data_type] * math.prod(t.dims)
        t.data_location = onnx.TensorProto.EXTERNAL
        for key, value in ("location", DATA), ("length", str(length)):
            t.external_data.add(key=key, value=value)
        most = max(most, length + int(t.external_data[0].value))
    if not data.exists() or data.stat().st_size < most:
        block = np.random.default_rng(1).uniform(0.01, 1, PERIOD).astype(np.float32).tobytes()
        data.write_bytes(block * (most // len(block) + 1))
    file = pathlib.Path(folder, f"{name}.onnx")
    file.write_bytes(model.SerializeToString())
    return file


def main(source, name, *of_ingot):
    FOLDER.mkdir(exist_ok=True)
    model = strip(onnx.load(source))
    (FOLDER / f"{name}.onnx.xz").write_bytes(
        lzma.compress(model.SerializeToString(deterministic=True), preset=9)
    )
    lines = OPTIONS.read_text().splitlines() if OPTIONS.exists() else []
    lines = [x for x in lines if x.split(" ", 1)[0] != name] + (
        [shlex.join([name, *of_ingot])] if of_ingot else []
    )
    OPTIONS.write_text("".join(x + "\n" for x in sorted(lines)))


if __name__ == "__main__":
    main(*sys.argv[1:])
