#!/usr/bin/env python3
"""A model of 100 MB and more: what compiling it costs, and that it is reproducible.

    large.py --ingot build/ingot

A residual network with random weights is written, compiled twice from different working directories
and once more with its weights packed for x86-64-v3, where kernels ask for them ahead, and built
with cc. Prints the figures; exit status 1 if compile and cc together take more than 20 s of a
processor, if the compiler's peak memory is above 1.5 times the file, or if the folders differ; 77,
skipped, without onnx.
"""

import argparse
import filecmp
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from onnx import helper, TensorProto
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

SECONDS, FACTOR = 20, 1.5


def write_model(path):
    """Stages of two residual blocks; the last ones are wide, as those of a ResNet are."""
    rng = np.random.default_rng(0)
    nodes, weights = [], []

    def weight(name, *shape):
        data = rng.standard_normal(shape, np.float32) * np.float32(0.05)
        weights.append(helper.make_tensor(name, TensorProto.FLOAT, shape, data.tobytes(), raw=True))
        return name

    def conv(x, cin, cout, k, stride=1):
        name = f"conv{len(nodes)}"
        sources = [x, weight(f"{name}.w", cout, cin, k, k), weight(f"{name}.b", cout)]
        nodes.append(
            helper.make_node("Conv", sources, [name], name, pads=[k // 2] * 4, strides=[stride] * 2)
        )
        return name

    def op(kind, *sources):
        name = f"{kind.lower()}{len(nodes)}"
        nodes.append(helper.make_node(kind, sources, [name], name))
        return name

    x, cin = op("Relu", conv("image", 3, 64, 7, 4)), 64
    for cout in (64, 256, 512, 1024):
        for stride in (2, 1):
            short = x if stride == 1 else conv(x, cin, cout, 1, stride)
            y = op("Relu", conv(x, cin, cout, 3, stride))
            x, cin = op("Relu", op("Add", conv(y, cout, cout, 3), short)), cout
    x = op("Flatten", op("GlobalAveragePool", x))
    nodes.append(
        helper.make_node(
            "Gemm", [x, weight("fc.w", 1000, cin), weight("fc.b", 1000)], ["scores"], "fc", transB=1
        )
    )
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 1000])],
        weights,
    )
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )


def measured(*command, cwd):
    """Seconds of processors and the peak memory in bytes of one child, whose status must be 0."""
    pid = os.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvp(command[0], [str(c) for c in command])
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{command}: status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ingot", default="build/ingot", type=pathlib.Path)
    options = parser.parse_args()
    ingot = str(options.ingot.resolve())
    with tempfile.TemporaryDirectory(prefix="ingot-large-") as work:
        work = pathlib.Path(work)
        model = work / "large.onnx"
        # in a child: a fork has the memory of its parent, which would count
        subprocess.run(
            [
                sys.executable,
                "-c",
                f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r}); "
                f"import large, pathlib; large.write_model(pathlib.Path({str(model)!r}))",
            ],
            check=True,
        )
        size = model.stat().st_size
        for where in ("a", "b"):
            (work / where).mkdir()
        compiled, peak = measured(ingot, "compile", model, "-o", "out", cwd=work / "a")
        measured(ingot, "compile", "../large.onnx", "-o", "out", cwd=work / "b")
        _, packed = measured(
            ingot,
            "compile",
            model,
            "-o",
            work / "packed",
            "--target",
            "c:x86-64-v3",
            "--weights",
            "blob",
            cwd=work,
        )
        a, b = work / "a" / "out", work / "b" / "out"
        names = sorted(str(p.relative_to(a)) for p in a.rglob("*") if p.is_file())
        _, differ, odd = filecmp.cmpfiles(a, b, names, shallow=False)
        same = (
            names == sorted(str(p.relative_to(b)) for p in b.rglob("*") if p.is_file())
            and not differ
            and not odd
        )
        asked = any(
            "igrt_prefetch(" in p.read_text() for p in (work / "packed").glob("*_kernels*.c")
        )
        if not asked:
            print("no kernel asks for weights before it reads them, though they fit no cache")
        built, _ = measured("make", "-s", "-C", a, cwd=work)
        print(
            f"{size / 1e6:.0f} MB: compile {compiled:.1f} s, cc {built:.1f} s, peak memory {peak / size:.2f} of the file, "
            f"{packed / size:.2f} with packed weights, "
            f"folders {'identical' if same else 'DIFFER: ' + str(differ)}"
        )
        return (
            0
            if same
            and asked
            and size > 1e8
            and compiled + built <= SECONDS
            and max(peak, packed) <= FACTOR * size
            else 1
        )


if __name__ == "__main__":
    sys.exit(main())
