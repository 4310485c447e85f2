#!/usr/bin/env python3
"""No sum of products of known networks goes element by element: every one has lanes, dots or a
matrix unit, in f32, by --precision and of bytes, on machines that have these, and in steps of
training too. A kernel may hold several sums, and each counts.

    lanes.py --ingot build/ingot [NAME...]     some of the networks whose graphs are in the tree

Exit status 77, skipped: there is no Python with onnx.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import graphs
    import numpy as np
    import onnx
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

NETWORKS = (
    "resnet18",
    "resnet50",
    "mobilenet_v2",
    "efficientnet_b0",
    "densenet121",
    "vit_b_16",
    "bert_base",
    "gpt2_s64_dynamo",
    "minilm_l6_dyn",
)
MACHINES = (
    ("c:sapphirerapids", "bf16"),
    ("c:sapphirerapids", "bf16x3"),
    ("c:x86-64-v4+vnni+bf16", "bf16"),
    ("c:x86-64-v4+vnni", "f32"),
)
OF_BYTES = ("c:sapphirerapids", "c:x86-64-v4+vnni", "c:x86-64-v4+vnni+bf16")
BYTES = ("mobilenet_v2", "resnet18")
TRAINED = {
    "tiny_ic_fp32": "--loss cross_entropy:Identity",
    "bert_base": "--loss mse:y",
    "gpt2_s64_dynamo": "--loss cross_entropy:logits --class-axis -1",
}


def of_bytes(file):
    """The network with convolutions of bytes: u8 by i8 with a scale a channel."""
    model = onnx.load(file, load_external_data=False)
    g, made, nodes = model.graph, {}, []
    known = {t.name: t for t in g.initializer}
    rng = np.random.default_rng(1)

    def constant(name, value):
        g.initializer.append(onnx.numpy_helper.from_array(value, name))
        return name

    constant("scale", np.float32(0.05))
    constant("zero", np.uint8(100))

    def bytes_of(x):
        if x not in made:
            made[x] = f"{x}_bytes"
            word = [f"{x}_q", "scale", "zero"]
            nodes.append(onnx.helper.make_node("QuantizeLinear", [x, *word[1:]], word[:1]))
            nodes.append(onnx.helper.make_node("DequantizeLinear", word, [made[x]]))
        return made[x]

    def bytes_of_weight(w):
        if w not in made:
            shape = tuple(known[w].dims)
            value = rng.integers(-127, 128, shape).astype(np.int8)
            scale = rng.uniform(0.001, 0.01, shape[:1]).astype(np.float32)
            word = [constant(f"{w}_q", value), constant(f"{w}_scale", scale)]
            made[w] = f"{w}_bytes"
            nodes.append(onnx.helper.make_node("DequantizeLinear", word, [made[w]], axis=0))
        return made[w]

    for n in g.node:
        if n.op_type == "Conv" and n.input[1] in known:
            n.input[0], n.input[1] = bytes_of(n.input[0]), bytes_of_weight(n.input[1])
        nodes.append(n)
    del g.node[:]
    g.node.extend(nodes)
    used = {x for n in nodes for x in n.input}
    kept = [t for t in g.initializer if t.name in used]
    del g.initializer[:]
    g.initializer.extend(kept)
    out = file.with_name(f"{file.stem}_int8.onnx")
    out.write_bytes(model.SerializeToString())
    return out


def by_element(ingot, model, options, target, how):
    """Kernels with a sum of products that goes element by element, and how many have any."""
    words = ["--target", target, "--precision", how, "--json"]
    told = subprocess.run(
        [ingot, "inspect", model, *options, *words], capture_output=True, text=True, check=True
    )
    kinds = ("conv", "gemm", "matmul")
    kernels = json.loads(told.stdout)["kernel_list"]
    if not any(kind in k["name"] for k in kernels for kind in kinds):
        sys.exit(f"{model.stem}: no products at all")
    return [k["name"] for k in kernels if k["by_element"]]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--ingot", required=True, type=pathlib.Path)
    p.add_argument("network", nargs="*", default=NETWORKS)
    a = p.parse_args()
    wrong, tried = [], 0
    with tempfile.TemporaryDirectory() as work:
        for name in a.network:
            model = graphs.build(name, pathlib.Path(work))
            cases = [(model, target, how) for target, how in MACHINES]
            if name in BYTES:
                cases += [(of_bytes(model), target, "f32") for target in OF_BYTES]
            for file, target, how in cases:
                for kernel in by_element(a.ingot, file, graphs.options(name), target, how):
                    wrong.append(f"{file.stem}, {target}, {how}: {kernel} goes element by element")
                tried += 1
        for name, loss in TRAINED.items():
            model = graphs.build(name, pathlib.Path(work))
            options = ["--train", *loss.split(), "--optimizer", "adamw", "--function", "train_step"]
            for target, how in MACHINES:
                for kernel in by_element(a.ingot, model, options, target, how):
                    wrong.append(
                        f"step of {name}, {target}, {how}: {kernel} goes element by element"
                    )
                tried += 1
    print("\n".join(wrong) or f"{len(a.network) + len(TRAINED)} networks, {tried} plans")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
