#!/usr/bin/env python3
"""Does a compiler of WGSL take the kernels that tests/wgsl/wgsl.c spells, and do they compute what
numpy does?

    wgsl.py --kernels build/tests/wgsl_kernels [--keep DIR]

naga comes with wgpu (PyPI: wgpu); a module is made, which it checks, on whatever adapter there is:
Mesa's llvmpipe will do. Where wgpu or an adapter is missing the test is skipped.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import wgpu
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# Operands of a tile lie in memory that the group shares, partial results of a row too.
SHARED = {"product": 2, "rows": 1}
# name: the inputs, and what comes of them
CASES = {
    "elements": (
        [("f4", (33, 65)), ("f4", (1, 65))],
        lambda x, w: np.where(x > 0, np.tanh(x) * w, x),
    ),
    "bytes": (
        [("f4", (10, 30)), ("i1", (13, 31)), ("?", (13, 31))],
        lambda x, m, b: np.where(b, np.pad(x, ((1, 2), (0, 1))) * m, -1),
    ),
    "product": (
        [("f4", (2048, 48)), ("f4", (48, 1536))],
        lambda x, w: np.maximum(x.astype("f8") @ w.astype("f8"), 0),
    ),
    "rows": ([("f4", (20, 300))], softmax),
}


def given(kind, shape, random):
    if kind == "f4":
        return random.standard_normal(shape, dtype="f4")
    return (
        random.integers(-100, 100, shape).astype(kind)
        if kind != "?"
        else random.random(shape) < 0.5
    )


def buffer(device, data):
    """Of whole words."""
    raw = data.tobytes()
    return device.create_buffer_with_data(
        data=raw + bytes(-len(raw) % 4), usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    )


def run(device, text, kernel, groups, bindings, inputs, output):
    module = device.create_shader_module(code=text)
    pipeline = device.create_compute_pipeline(
        layout="auto", compute={"module": module, "entry_point": kernel}
    )
    there = {"input": [buffer(device, x) for x in inputs], "output": [buffer(device, output)]}
    entries = [
        {"binding": i, "resource": {"buffer": there[kind][number]}}
        for i, (kind, number) in enumerate(bindings)
    ]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    encoder = device.create_command_encoder()
    work = encoder.begin_compute_pass()
    work.set_pipeline(pipeline)
    work.set_bind_group(0, group)
    work.dispatch_workgroups(groups)
    work.end()
    device.queue.submit([encoder.finish()])
    return np.frombuffer(device.queue.read_buffer(there["output"][0]), "f4")[: output.size].reshape(
        output.shape
    )


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--kernels", required=True)
    p.add_argument("--keep", type=pathlib.Path, help="write the texts here")
    opt = p.parse_args()
    try:
        device = wgpu.gpu.request_adapter_sync().request_device_sync()
    except Exception as e:  # whatever a driver says
        print(f"skipped: no adapter for wgpu: {e}")
        return 77
    folder = opt.keep or pathlib.Path(tempfile.mkdtemp())
    lines = subprocess.run(
        [opt.kernels, str(folder)], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
    random, bad = np.random.default_rng(1), len(lines) != len(CASES)
    for line in lines:
        name, kernel, groups, rest = line.split(" ", 3)
        bindings = [(b.split()[0], int(b.split()[1])) for b in rest.split(", ")]
        kinds, function = CASES[name]
        inputs = [given(kind, shape, random) for kind, shape in kinds]
        wanted = function(*inputs)
        text = (folder / f"{name}.wgsl").read_text()
        if text.count("var<workgroup>") < SHARED.get(name, 0) or ("workgroupBarrier" in text) != (
            name in SHARED
        ):
            print(f"{name}: memory that a group shares is not used as it was")
            bad = True
        try:
            got = run(
                device,
                text,
                kernel,
                int(groups),
                bindings,
                inputs,
                np.full(wanted.shape, np.nan, "f4"),
            )
            error = np.abs(got - wanted).max() / np.abs(wanted).max()
        except wgpu.GPUError as e:
            print(e)
            error = np.inf
        print(f"{name}: {kernel}, {groups} groups: error {error:.1e}")
        bad |= not error < 1e-5
    print("a kernel is refused, or wrong" if bad else f"{len(lines)} kernels are right")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
