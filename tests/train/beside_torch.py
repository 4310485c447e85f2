#!/usr/bin/env python3
"""Gradients and training steps beside PyTorch.

    beside_torch.py --build build [--graphs N] [--seed S] [--steps N] [operators|graphs|options|NETWORK...]

    operators   gradients of operators, in f64, beside torch autograd and differences
    graphs      the same of N random graphs (torch_graphs.py)
    options     ignored labels, smoothing, clipping, accumulation, adapters of --train (ingot.train())
    mlp32, cnn32, resnet64, encoder, tiny; resnet18, bert4, gpt2 where they are named
                N steps of a network (networks.c): losses are no further from PyTorch's in f64 than
                twice those of PyTorch in f32

Without names all but the three large ones: minutes of a core. Exit status 77, skipped: there is no
PyTorch.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import torch
    import torch.nn.functional as F
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import check_gradients
import networks
import torch_graphs
import torch_steps
import training

HERE = pathlib.Path(__file__).resolve().parent


def same_pads(a):
    """ONNX's begins and ends as PyTorch's, the last axis first."""
    n = len(a) // 2
    return [p for i in reversed(range(n)) for p in (a[i], a[n + i])]


def conv_of(x, w, b=None, strides=None, pads=None, dilations=None, group=1):
    n = x.dim() - 2
    x = F.pad(x, same_pads(pads or [0] * 2 * n))
    f = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    return f(x, w, b, strides or 1, 0, dilations or 1, group)


def conv_transpose_of(x, w, strides, pads=(0, 0, 0, 0), group=1):
    y = F.conv_transpose2d(x, w, None, strides, 0, 0, group)
    return y[:, :, pads[0] : y.shape[2] - pads[2], pads[1] : y.shape[3] - pads[3]]


def batch_norm_of(x, s, b, m, v, training_mode=0):
    """In training: what the running mean and variance become, too."""
    row = (-1, 1, 1)
    if not training_mode:
        return (x - m.reshape(row)) * (s / (v + 1e-5).sqrt()).reshape(row) + b.reshape(row)
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
    y = F.batch_norm(x, None, None, s, b, True, 0.1, 1e-5)
    return y, 0.9 * m + 0.1 * mean, 0.9 * v + 0.1 * var


# What is computed of an operator's inputs, by its name or the case's; by attributes where it has some.
OPERATORS = {
    **torch_graphs.UNARY,
    **torch_graphs.BINARY,
    "Exp": torch.exp,
    "Tan": torch.tan,
    "Sinh": torch.sinh,
    "Cosh": torch.cosh,
    "Celu": F.celu,
    "HardSigmoid": lambda x: (x * 0.2 + 0.5).clamp(0, 1),
    "Log": torch.log,
    "Sqrt": torch.sqrt,
    "Reciprocal": torch.reciprocal,
    "Asin": torch.asin,
    "Acos": torch.acos,
    "Atanh": torch.atanh,
    "Acosh": torch.acosh,
    "Swish": F.silu,
    "PRelu": lambda x, s: torch.where(x < 0, s * x, x),
    "Sum": lambda *x: sum(x),
    "Mean": lambda *x: sum(x) / len(x),
    "Div": torch.div,
    "Pow": torch.pow,
    "Mod": lambda a, b, fmod: torch.fmod(a, b),
    "Where": torch.where,
    "Clip": torch.clamp,
    "MatMul": torch.matmul,
    "Gemm": lambda a, b, c, transA, transB, alpha, beta: alpha * (a.T @ b.T) + beta * c,
    "Einsum": lambda *x, equation: torch.einsum(equation, *x),
    "Conv": conv_of,
    "ConvTranspose": conv_transpose_of,
    "AveragePool": lambda x, kernel_shape, strides, pads: F.avg_pool2d(
        x, kernel_shape, strides, pads[:2], count_include_pad=False
    ),
    "Split": lambda x, n, axis: x.split(tuple(n), axis),
    "Slice": lambda x, *places: x[[8, 5, 2]][:, 1:4:2],
    "DepthToSpace": lambda x, blocksize: (
        x.reshape(1, 2, 2, 2, 2, 3).permute(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6)
    ),
    "MaxPool": lambda x, kernel_shape, strides, pads=None, dilations=(1, 1): F.max_pool2d(
        F.pad(x, same_pads(pads or [0] * 4), value=-np.inf), kernel_shape, strides, 0, dilations
    ),
    "LpPool": lambda x, kernel_shape, strides: F.lp_pool2d(x, 2.0, kernel_shape, strides),
    "GlobalMaxPool": lambda x: x.amax((2, 3), True),
    "GlobalAveragePool": lambda x: x.mean((2, 3), True),
    "LayerNormalization": lambda x, s, b: F.layer_norm(x, x.shape[-1:], s, b),
    "InstanceNormalization": lambda x, s, b: F.instance_norm(x, weight=s, bias=b),
    "GroupNormalization": lambda x, s, b, num_groups: F.group_norm(x, num_groups, s, b),
    "RMSNormalization": lambda x, s: F.rms_norm(x, x.shape[-1:], s, 1e-5),
    "LpNormalization": lambda x: F.normalize(x, dim=-1),
    "LRN": lambda x, size: F.local_response_norm(x, size),
    "BatchNormalization": batch_norm_of,
    "Softmax": lambda x: torch.softmax(x, -1),
    "LogSoftmax": lambda x: torch.log_softmax(x, -1),
    "ReduceSum": lambda x, a, keepdims: x.sum(tuple(a)),
    "ReduceMean": lambda x, a, keepdims: x.mean(tuple(a)),
    "ReduceMax": lambda x, a, keepdims: x.amax(tuple(a)),
    "ReduceMin": lambda x, a, keepdims: x.amin(tuple(a)),
    "ReduceProd": lambda x, a, keepdims: x.prod(2).prod(0),
    "ReduceL1": lambda x, a, keepdims: x.abs().sum(tuple(a)),
    "ReduceL2": lambda x, a, keepdims: (x * x).sum(tuple(a)).sqrt(),
    "ReduceSumSquare": lambda x, a, keepdims: (x * x).sum(tuple(a)),
    "ReduceLogSum": lambda x, a, keepdims: x.sum(tuple(a)).log(),
    "ReduceLogSumExp": lambda x, a, keepdims: x.logsumexp(tuple(a)),
    "Transpose": lambda x, perm: x.permute(perm),
    "Reshape": lambda x, s: x.reshape(tuple(s)),
    "Concat": lambda *x, axis: torch.cat(x, axis),
    "Tile": lambda x, n: x.repeat(tuple(n)),
    "Expand": lambda x, s: x.expand(tuple(s)),
    "Trilu": torch.triu,
    "Flatten": lambda x: x.flatten(1),
    "Squeeze": lambda x, a: x.squeeze(1),
    "SpaceToDepth": lambda x, blocksize: (
        x.reshape(1, 2, 2, 2, 3, 2).permute(0, 3, 5, 1, 2, 4).reshape(1, 8, 2, 3)
    ),
    "Gather": lambda x, i: x[i],
    "GatherElements": lambda x, i: torch.gather(x, 0, i),
    "GatherND": lambda x, i: x[i[:, 0], i[:, 1]],
    "ScatterElements_none": lambda x, i, u, reduction: x.scatter(0, i, u),
    "ScatterElements_add": lambda x, i, u, reduction: x.scatter_add(0, i, u),
    "ScatterND_none": lambda x, i, u, reduction: x.index_copy(0, i[:, 0], u),
    "ScatterND_add": lambda x, i, u, reduction: x.index_add(0, i[:, 0], u),
    "Attention": F.scaled_dot_product_attention,
    "CumSum": lambda x, a, reverse, exclusive: x.flip(1).cumsum(1).flip(1) - x,
    "Pad_constant": lambda x, p, mode: F.pad(x, same_pads(list(p))),
    "Pad_reflect": lambda x, p, mode: F.pad(x[None], same_pads(list(p)), mode)[0],
    "Pad_edge": lambda x, p, mode: F.pad(x[None], same_pads(list(p)), "replicate")[0],
    "Pad_wrap": lambda x, p, mode: F.pad(x[None], same_pads(list(p)), "circular")[0],
    "TopK": lambda x, k: (x.topk(2)[0],),
}


def weighted(y):
    """The sum that gradient_check makes of an output."""
    place = torch.arange(y.numel(), dtype=torch.float64)
    return (y.reshape(-1) * (torch.sin(place * 1.7 + 0.4) * 0.5 + 1.5)).sum()


def write_case(work, name, model, values):
    (work / f"{name}.onnx").write_bytes(model)
    (work / f"{name}.in").write_bytes(b"".join(np.ascontiguousarray(v).tobytes() for v in values))


def compare(a, work, cases):
    """cases: name -> (loss, leaves) of PyTorch. How many differ."""
    check = (a.build / "tests/gradient_check").resolve()
    run = subprocess.run([check, "--write", *cases], cwd=work, capture_output=True, text=True)
    said = dict(line.split(": ", 1) for line in run.stdout.splitlines())
    faults = 0
    for name, (loss, leaves) in cases.items():
        got, fault = said.get(name, f"status {run.returncode}"), None
        if got != "right":
            fault = got
        else:
            wanted = torch.autograd.grad(loss, leaves, allow_unused=True)
            out = np.fromfile(work / f"{name}.out")[1:]
            for v, g in zip(leaves, wanted):
                g = np.zeros(v.numel()) if g is None else g.numpy().reshape(-1)
                error = np.abs(out[: g.size] - g).max() / max(np.abs(g).max(), 1e-3)
                out = out[g.size :]
                if not error < 1e-7:
                    fault = f"a gradient is {error:.2g} off"
        if fault:
            print(f"{name}: {fault}")
            faults += 1
    return faults


def operators(a, work):
    cases, alone = {}, []
    for name, spec in (c for g in check_gradients.GROUPS for c in g()):
        op, inputs, _, _, _, attributes = spec
        known = OPERATORS.get(name) or OPERATORS.get(op)
        model, values = check_gradients.model_of(name, spec)
        leaves = {id(x): torch.from_numpy(np.array(x)) for x in inputs if isinstance(x, np.ndarray)}
        of = [x.requires_grad_(True) for x in leaves.values() if x.dtype == torch.float64]
        given = [
            torch.from_numpy(np.array(x.value)) if isinstance(x, check_gradients.Const) else
            leaves.get(id(x)) for x in inputs
        ]  # fmt: skip
        try:
            y = known(*given, **attributes) if known else None
        except (TypeError, RuntimeError, KeyError):
            y = None
        if y is None:
            alone.append(name)
            continue
        y = y if isinstance(y, tuple) else (y,)
        write_case(work, name, model.SerializeToString(), [v for _, v in values])
        cases[name] = sum(weighted(v) for v in y), of
    faults = compare(a, work, cases)
    print(f"operators: {len(cases)} beside PyTorch, {faults} faults; by differences alone: {len(alone)}"
          f" ({' '.join(alone)})")  # fmt: skip
    return faults


def graphs(a, work):
    cases = {}
    for i in range(a.graphs):
        g = torch_graphs.Graph(a.seed * 100000 + i)
        if not g.outputs or len(g.inputs) > 15 or len(g.outputs) > 15:
            continue
        write_case(work, f"graph{i}", g.model(), [v for _, v, _ in g.inputs])
        loss = sum(weighted(v) for _, v in g.outputs)
        cases[f"graph{i}"] = loss, [v for _, _, v in g.inputs]
    faults = compare(a, work, cases)
    print(f"graphs: {len(cases)} beside PyTorch, {faults} faults")
    return faults


# Steps of a small network by --train, beside PyTorch's losses and optimizers in f64.
OPTIONS = {
    "ignored": ({"ignore_index": -1}, "sgd", {}),
    "smoothed": ({"label_smoothing": 0.1}, "momentum:beta1=0.9,nesterov,decay=1e-3",
                 {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}),
    "both": ({"ignore_index": 3, "label_smoothing": 0.2}, "adam:decay=0.02",
             {"weight_decay": 0.02}),
    "clipped": ({"clip": 0.3}, "adamw:decay=0.05", {"weight_decay": 0.05}),
    "accumulated": ({"accumulate": 3, "clip": 0.5}, "adamw", {"weight_decay": 0.01}),
    "adapted": ({"lora": ["r=2:alpha=3:fc*.weight"]}, "adamw", {"weight_decay": 0.01}),
}  # fmt: skip


def adapted(w, parts, scale=3 / 2):
    """Weights with what adapters of rank 2, alpha 3 add to them."""
    return {n: a + scale * parts[f"{n}.lora_B"] @ parts[f"{n}.lora_A"] if f"{n}.lora_A" in parts else a
            for n, a in w.items()}  # fmt: skip


def options_case(work, name, count):
    """The largest error of a loss, and of a weight after the last step."""
    options, optimizer, theirs = OPTIONS[name]
    net, _, draw = training.mlp(work / f"{name}.onnx")
    m = training.ingot.train(work / f"{name}.onnx", loss="cross_entropy:y", optimizer=optimizer,
                             cflags="-O1", **options)  # fmt: skip
    of_file = {n: torch.tensor(a, dtype=torch.float64) for n, a in net.weights.items()}
    parts = {n: torch.tensor(np.array(a), dtype=torch.float64)
             for n, a in m.states.items() if n.endswith((".lora_A", ".lora_B"))}  # fmt: skip
    trained = {n: a.requires_grad_(True) for n, a in (parts or of_file).items()}
    kind = {"sgd": torch.optim.SGD, "momentum": torch.optim.SGD, "adam": torch.optim.Adam,
            "adamw": torch.optim.AdamW}[optimizer.partition(":")[0]]  # fmt: skip
    rate, every, random, worst = 0.02, options.get("accumulate", 1), np.random.default_rng(4), 0
    by = kind(trained.values(), lr=rate, **theirs)
    of_loss = {k: v for k, v in options.items() if k in ("ignore_index", "label_smoothing")}
    for i in range(count):
        x, t = draw(random), random.integers(0, 5, 8)
        t[random.random(8) < 0.3] = options.get("ignore_index", 0)
        w = adapted(of_file, parts)
        h = torch.relu(torch.tensor(x, dtype=torch.float64) @ w["fc1.weight"].T + w["fc1.bias"])
        loss = F.cross_entropy(h @ w["fc2.weight"].T + w["fc2.bias"], torch.tensor(t), **of_loss)
        (loss / every).backward()
        if (i + 1) % every == 0:
            if "clip" in options:
                torch.nn.utils.clip_grad_norm_(trained.values(), options["clip"])
            by.step()
            by.zero_grad()
        got = float(m.step(x, t, rate))
        worst = max(worst, abs(got - loss.item()) / abs(loss.item()))
    off = max(np.abs(m.states[n] - a.detach().numpy()).max() / np.abs(a.detach().numpy()).max()
              for n, a in trained.items())  # fmt: skip
    return worst, off


def options(a, work):
    faults = 0
    for name in OPTIONS:
        loss, weight = options_case(work, name, 30)
        bad = not (loss < 1e-5 and weight < 1e-4)
        print(
            f"{name}: losses {loss:.2g}, weights {weight:.2g} from f64{': too far' if bad else ''}"
        )
        faults += bad
    return faults


PARTS = {"operators": operators, "graphs": graphs, "options": options}
USUAL = "operators graphs options mlp32 cnn32 resnet64 encoder tiny"


def steps(a, work, name, count):
    """Losses of some steps, and PyTorch's in f64 and f32, from the same weights."""
    rate = 1e-3
    a.make, a.target, a.cc = str(a.build / "tests/networks"), "c:native", "cc"
    a.precision, a.max_ram = None, 0
    program, _, _ = networks.build(a, name, "sgd", work / "bundle")
    (work / "states").mkdir()
    said = subprocess.run(
        [str(program), "0", "--losses", str(count), str(work / "states")],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    got = np.array([float(x) for x in said[:count]])
    wide, narrow = (
        torch_steps.losses(name, work / "states", count, rate, t)
        for t in (torch.float64, torch.float32)
    )
    ours, theirs = (np.abs(x - wide) / np.abs(wide) for x in (got, narrow))
    bad = not ours.max() <= 2 * theirs.max()
    print(f"{name}: {count} steps, loss {wide[0]:.6g} to {wide[-1]:.6g}: {ours.max():.2g} from f64, "
          f"PyTorch in f32 {theirs.max():.2g}{': too far' if bad else ''}")  # fmt: skip
    return bad


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", type=pathlib.Path, required=True)
    p.add_argument("--graphs", type=int, default=300)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("names", nargs="*", default=USUAL.split())
    a = p.parse_args()
    os.environ["INGOT"] = str(a.build / "ingot")
    torch.set_num_threads(1)
    faults = 0
    for name in a.names:
        with tempfile.TemporaryDirectory(prefix="ingot_torch_") as work:
            work = pathlib.Path(work)
            if name in PARTS:
                faults += PARTS[name](a, work)
            else:
                faults += steps(a, work, name, a.steps)
        sys.stdout.flush()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
