"""What bars.py packs: models, and the folder that travels."""

import json
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bundle")]
import causal  # noqa: E402
import device  # noqa: E402


def graph(nodes, inputs, outputs, weights=()):
    from onnx import helper

    values = [[helper.make_tensor_value_info(*v) for v in vs] for vs in (inputs, outputs)]
    return helper.make_model(
        helper.make_graph(nodes, "g", *values, list(weights)),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )


def attention(n, heads, rows, width):
    """n of them, each with the last one's results as queries."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    H, shape = TensorProto.FLOAT16, [1, heads, rows, width]
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2])]
    for i in range(n):
        q, y = "q" if not i else f"y{i - 1}", "y" if i == n - 1 else f"y{i}"
        nodes += [
            helper.make_node("MatMul", [q, "kt"], [f"s{i}"]),
            helper.make_node("Mul", [f"s{i}", "scale"], [f"t{i}"]),
            helper.make_node("Softmax", [f"t{i}"], [f"p{i}"], axis=-1),
            helper.make_node("MatMul", [f"p{i}", "v"], [y]),
        ]
    scale = numpy_helper.from_array(np.float16(width**-0.5), "scale")
    return graph(nodes, [(t, H, shape) for t in "qkv"], [("y", H, shape)], [scale])


def vectors(n, rows, terms):
    from onnx import TensorProto, helper

    H = TensorProto.FLOAT16
    nodes = [helper.make_node("MatMul", [f"w{i}", "x"], [f"y{i}"]) for i in range(n)]
    return graph(
        nodes,
        [("x", H, [terms]), *((f"w{i}", H, [rows, terms]) for i in range(n))],
        [(f"y{i}", H, [rows]) for i in range(n)],
    )


def chain(n):
    """Kernels of one element, that the last one has written."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    names = ["x", *(f"h{i}" for i in range(n - 1)), "y"]
    nodes = [helper.make_node("Add", [x, "one"], [y]) for x, y in zip(names, names[1:])]
    return graph(
        nodes,
        [("x", TensorProto.INT64, [1])],
        [("y", TensorProto.INT64, [1])],
        [numpy_helper.from_array(np.array([1]), "one")],
    )


def with_batch(model):
    """Of one image: as many as its input says."""
    for v in [*model.graph.input, *model.graph.output]:
        v.type.tensor_type.shape.dim[0].dim_param = "batch"
    del model.graph.value_info[:]
    return model


def kinds():
    """Small bundles of all kinds, for the sanitizer, and options that they are compiled with."""
    import models

    for name in models.MODELS:
        yield name, models.build(name), []
    for n, kind in ((256, "f16"), (512, "f16"), (200, "f32"), (512, "f32")):
        yield f"product_{n}_{kind}", device.product(n, kind).SerializeToString(), []
    yield "heads", attention(2, 4, 69, 64).SerializeToString(), []
    yield "vector", vectors(1, 512, 2048).SerializeToString(), []
    yield "chain", chain(4).SerializeToString(), ["--fuse", "none"]
    sys.path[:0] = [str(HERE.parent / "replay")]
    import zoo

    for name in ("resnet", "transformer", "qdq"):
        yield name, zoo.build(name), []


def save(folder, name, model, options=(), compiler=None):
    """A model, or with a compiler (ingot, target) its program."""
    to = folder / name
    to.mkdir(parents=True)
    if compiler:
        with tempfile.TemporaryDirectory() as work:
            at = pathlib.Path(work)
            (at / "model.onnx").write_bytes(
                model if isinstance(model, bytes) else model.SerializeToString()
            )
            subprocess.run(
                [
                    compiler[0],
                    "compile",
                    at / "model.onnx",
                    "-o",
                    at / "out",
                    "--target",
                    compiler[1],
                    "-q",
                    *options,
                ],
                check=True,
            )
            subprocess.run(["make", "-s", "-C", at / "out"], check=True)
            for file in (at / "out" / "model", *(at / "out").glob("*.weights")):
                shutil.copy(file, to)
        return
    if not isinstance(model, bytes):
        (to / "fill.json").write_text(json.dumps(device.strip(model)))
        model = model.SerializeToString()
    (to / "model.onnx").write_bytes(model)
    (to / "options.json").write_text(json.dumps(list(options)))


def pack_branches(to):
    """With inputs by which branches are taken or not, loops run never or often, and what comes of
    them."""
    import numpy as np
    import onnx
    from onnx.reference import ReferenceEvaluator
    from on_device import decides

    for kind in ("if", "loop", "nested"):
        with tempfile.TemporaryDirectory() as work:
            model = decides(kind, pathlib.Path(work)).read_bytes()
        save(to / "models", f"branches_{kind}", model, ["--weights", "array"])
        rng = np.random.default_rng(3)
        for i, shift in enumerate((-1, 0, 1, -0.3)):
            data = to / "models" / f"branches_{kind}" / f"data_{i}"
            data.mkdir()
            x = (rng.standard_normal((4, 16)) + shift).astype(np.float32)
            np.save(data / "input_0.npy", x)
            np.save(
                data / "want.npy",
                ReferenceEvaluator(onnx.load_from_string(model)).run(None, {"x": x})[0],
            )


def pack_cases(to, args, compiler):
    """Some of the cases, drawn by a seed, and what runs them; with a compiler their programs, in
    one file: they have most bytes in common."""
    (to / "onnx").mkdir()
    for file in ("objects", "values", "drawn", "process", "joined", "results", "run"):
        shutil.copy(HERE.parent / "onnx" / f"{file}.py", to / "onnx")
    shutil.copy(HERE.parent / "emulator" / "emulate.py", to / "onnx")
    names = [
        name
        for name in pathlib.Path(args.list).read_text().split()
        if (pathlib.Path(args.cases) / name).is_dir()
    ]
    for name in random.Random(args.seed).sample(names, min(args.count, len(names))):
        shutil.copytree(pathlib.Path(args.cases) / name, to / "cases" / name)
    if compiler:
        subprocess.run(
            [
                sys.executable,
                to / "onnx" / "run.py",
                "--ingot",
                compiler[0],
                "--target",
                compiler[1],
                "--cflags",
                "-O1 -std=c99 -s",
                "--build-only",
                to / "programs",
                to / "cases",
            ],
            check=True,
        )
    for folder in ("cases", "programs"):
        if (to / folder).exists():
            with tarfile.open(to / f"{folder}.tar.xz", "w:xz") as file:
                file.add(to / folder, folder)
            shutil.rmtree(to / folder)


def pack(args):
    import onnx

    to = pathlib.Path(args.dir)
    shutil.rmtree(to, ignore_errors=True)
    (to / "bin").mkdir(parents=True)
    for file in (args.ingot, *device.libraries(args.ingot)):
        shutil.copy(file, to / "bin")
    for file in (
        HERE / "bars.py",
        device.__file__,
        HERE / "turns.py",
        HERE / "causal.py",
        HERE.parents[1] / "compiler/tools/python/ingot/abi.py",
    ):
        shutil.copy(file, to)
    for n, kind in (
        ((64, "f16"), (64, "f32")) if args.small else ((4096, "f16"), (8192, "f16"), (4096, "f32"))
    ):
        save(to / "models", f"product_{n}_{kind}", device.product(n, kind))
    rows, n = (32, 64) if args.small else (512, 4096)
    save(to / "models", f"product_{rows}x{n}_f16", device.product(n, "f16", rows))
    for name, model in causal.models(args.small):
        save(to / "models", name, model)
    sizes = {"attention": 2 if args.small else 20, "launch": 8 if args.small else 200}
    (to / "sizes.json").write_text(json.dumps(sizes))
    save(
        to / "models",
        "attention",
        attention(sizes["attention"], *((2, 37, 32) if args.small else (12, 197, 64))),
    )
    save(to / "models", "vector", vectors(*((2, 64, 512) if args.small else (3, 4096, 32768))))
    ready = (pathlib.Path(args.ingot).resolve(), args.target) if args.ready else None
    save(to / "models", "launch", chain(sizes["launch"]), ["--fuse", "none"], ready)
    for path in map(pathlib.Path, args.models):
        name = path.parent.name if path.stem == "model" else path.stem
        model = with_batch(onnx.load(path))
        save(to / "models", f"bounded_{name}", model, ["--dim", "batch=1..8"])
        for n in (1, 3, 8):
            shutil.copytree(to / "models" / f"bounded_{name}", to / "models" / f"fixed{n}_{name}")
            (to / "models" / f"fixed{n}_{name}" / "options.json").write_text(
                json.dumps(["--dim", f"batch={n}"])
            )
    for name, model, options in list(kinds())[: 2 if args.small else None]:
        save(to / "kinds", name, model, options, ready)
    pack_branches(to)
    if args.cases:
        pack_cases(to, args, ready)
    size = sum(p.stat().st_size for p in to.rglob("*") if p.is_file())
    print(f"{to}: {size / 2**20:.1f} MiB")
    return 0
