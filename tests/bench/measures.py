"""What scoreboard.py measures. Each function gives one table, after each row what there is of it:
columns, rows, versions and unit."""

import importlib.util
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]


def call(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        told = (done.stdout + done.stderr)[-2000:]
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{told}")
    return done.stdout


def name_of(path):
    return path.parent.name if path.name == "model.onnx" else path.stem


def package(o):
    """The Python package of this tree, over that compiler."""
    os.environ["INGOT"] = str(o.ingot.resolve())
    sys.path.insert(0, str(TREE / "compiler/tools/python"))
    import ingot

    return ingot


# ---- CPUs, beside ONNX Runtime and OpenVINO ------------------------------------------------------


def feeds_of(session, dims):
    import numpy as np

    types = {"tensor(float)": "f4", "tensor(int64)": "i8", "tensor(int32)": "i4"}
    types.update({"tensor(uint8)": "u1", "tensor(int8)": "i1", "tensor(bool)": "?"})
    draw, feeds = np.random.default_rng(1), {}
    for t in session.get_inputs():
        shape = [d if isinstance(d, int) else dims.get(d, 1) for d in t.shape]
        dtype = np.dtype(types[t.type])
        x = draw.random(shape) if dtype.kind == "f" else draw.integers(0, 2, shape)
        feeds[t.name] = x.astype(dtype)
    return feeds


def openvino_of(path, feeds, o):
    """A function that runs the model by OpenVINO, or None where that does not take the model."""
    import openvino as ov

    core = ov.Core()
    hints = {"INFERENCE_NUM_THREADS": o.threads, "NUM_STREAMS": "1"}
    hints["INFERENCE_PRECISION_HINT"] = o.precision or "f32"
    try:
        network = core.read_model(str(path))
        network.reshape({n: list(x.shape) for n, x in feeds.items()})
        request = core.compile_model(network, "CPU", hints).create_infer_request()
        request.infer(feeds, share_inputs=True)
    except RuntimeError as why:
        told = " ".join(str(why).split())[-300:]
        print(f"{path}: OpenVINO does not take it: {told}", file=sys.stderr)
        return None
    return lambda: list(request.infer(feeds, share_inputs=True).to_dict().values())


def cpu_engines(ingot, path, o, dims):
    """{name: a function that runs the model once, or None}; says where what ingot gives is far off."""
    import numpy as np
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = o.threads, 1
    session = ort.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    feeds = feeds_of(session, dims)
    made = {"ONNX Runtime": lambda: session.run(None, feeds)}
    if importlib.util.find_spec("openvino"):
        made["OpenVINO"] = openvino_of(path, feeds, o)
    narrow = {"precision": o.precision} if o.precision else {}
    model = ingot.load(path, target=o.target, threads=o.threads, dim=dims or None, **narrow)
    made["ingot"] = lambda: model.run(None, feeds)
    wanted, got = made["ONNX Runtime"](), made["ingot"]()
    for w, g in zip(wanted, got):
        reach = float(np.abs(w.astype("f8")).max()) or 1.0
        off = float(np.abs(w.astype("f8") - g.astype("f8")).max()) / reach
        if off > 0.05:
            print(f"{path}: outputs differ by {off:.3f} of the largest value", file=sys.stderr)
    if o.precision:
        del made["ONNX Runtime"]  # which has f32 alone
    return made


def least(made, o):
    """CPU time for one thread; several threads want a quiet machine and wall time."""
    clock = time.process_time if o.threads == 1 else time.perf_counter
    runs = {name: run for name, run in made.items() if run}
    best = {name: math.inf if run else None for name, run in made.items()}
    for run in runs.values():
        run()
    for _ in range(o.rounds):
        for name, run in runs.items():
            end = clock() + o.seconds
            while clock() < end:
                before = clock()
                run()
                best[name] = min(best[name], clock() - before)
    return best


def cpu(o):
    ingot = package(o)
    import onnxruntime

    dims = {k: int(v) for k, v in (d.split("=") for d in o.dim)}
    versions = [] if o.precision else [f"ONNX Runtime {onnxruntime.__version__}"]
    unit = "ms of CPU time, one thread" if o.threads == 1 else f"ms, {o.threads} threads"
    rows = []
    for path in o.models:
        best = least(cpu_engines(ingot, path, o, dims), o)
        if "OpenVINO" in best and not rows:
            import openvino

            versions.append(f"OpenVINO {openvino.__version__.split('-')[0]}")
        threads = f", {o.threads} threads" if o.threads > 1 else ""
        figures = (t and round(1000 * t, 3) for t in best.values())
        rows.append([name_of(path) + threads, *figures])
        yield ["", *best], rows, versions, unit + "; least of all calls, engines in turns"


# ---- a GPU, beside PyTorch -----------------------------------------------------------------------

IMAGES = (
    "resnet18",
    "resnet50",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "efficientnet_b0",
    "densenet121",
    "vit_b_16",
    "unet",
)
TOKENS = {"bert_base": 128, "minilm": 128, "gpt2": 64}
SMALL = {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536}  # minilm


def settled(torch, net, x):
    """Random weights of which outputs neither vanish nor are zero: a head that begins as zeros gets
    others, and normalisations the statistics of one batch."""
    with torch.no_grad():
        for p in net.parameters():
            if p.dim() > 1 and not p.any():
                p.normal_(0, 0.02)
        norms = [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]
        for m in norms:
            m.momentum = 1
        if norms:
            net.train()(x)
    return net.eval()


def unet(torch):
    """Four scales of 32 to 256 channels, two convolutions each, on the way down and up; a class for
    each pixel."""
    nn, widths = torch.nn, (32, 64, 128, 256)

    def pair(of, to):
        def one(n):
            return [nn.Conv2d(n, to, 3, padding=1, bias=False), nn.BatchNorm2d(to), nn.ReLU()]

        return nn.Sequential(*one(of), *one(to))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList(map(pair, (3, *widths), widths))
            self.up = nn.ModuleList(
                nn.ConvTranspose2d(2 * n, n, 2, stride=2) for n in widths[-2::-1]
            )
            self.joined = nn.ModuleList(pair(2 * n, n) for n in widths[-2::-1])
            self.pool, self.last = nn.MaxPool2d(2), nn.Conv2d(widths[0], 2, 1)

        def forward(self, x):
            kept = []
            for block in self.down:
                x = block(self.pool(x) if kept else x)
                kept.append(x)
            for up, block, side in zip(self.up, self.joined, kept[-2::-1]):
                x = block(torch.cat([side, up(x)], 1))
            return self.last(x)

    return UNet()


def torch_network(torch, name, precision, batch):
    """A network with random weights, on the GPU, and its input."""
    kind = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[precision]
    torch.manual_seed(0)
    if name in IMAGES:
        import torchvision

        x = torch.rand(batch, 3, 224, 224).cuda()
        net = unet(torch) if name == "unet" else getattr(torchvision.models, name)()
        net = settled(torch, net.cuda(), x)
        return net.to(kind), x.to(kind)
    import transformers

    if name in ("bert_base", "minilm"):
        config = transformers.BertConfig(**(SMALL if name == "minilm" else {}))
        net = transformers.BertModel(config, add_pooling_layer=False)
        words = net.config.vocab_size
    else:
        net = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
        words = net.config.vocab_size

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, ids):
            return self.net(ids, return_dict=False)[0]

    return First().eval().cuda().to(kind), torch.randint(0, words, (batch, TOKENS[name])).cuda()


def gpu_case(case, ingot, folder):
    """Makes the ONNX file, the bundle and torch.compile's kernels, says so, and waits for its turn on
    the GPU. Then: medians in ms of PyTorch in a CUDA graph and of ingot, in turns, and how far
    the outputs differ."""
    import torch

    said, sys.stdout = sys.stdout, sys.stderr  # what exporters print is none of the caller's
    before = list(sys.path)
    here = ("tests/device", "tests/bundle", "compiler/tools/python/ingot")
    sys.path[:0] = [str(TREE / p) for p in here]
    import turns

    sys.path[:] = before  # ingot's cuda.py would hide NVIDIA's package
    name, precision, batch = case.split(":")
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    net, x = torch_network(torch, name, precision, int(batch))
    folder.mkdir(parents=True)
    file = folder / "model.onnx"
    torch.backends.mha.set_fastpath_enabled(False)  # which has no form in ONNX
    how = {"dynamo": name not in IMAGES, "external_data": True}
    torch.onnx.export(net, (x,), str(file), **how)
    torch.backends.mha.set_fastpath_enabled(True)
    how = ["--target", "cuda:native", "--name", "model", "--weights", "incbin"]
    call(ingot, "compile", file, "-o", folder / "c", *how)
    call("make", "-s", "-C", folder / "c", "libmodel.so")
    given = x.contiguous()
    if x.dim() == 4:
        net, x = (v.to(memory_format=torch.channels_last) for v in (net, x))
    peer = torch.compile(net, options={"triton.cudagraphs": False})
    want = peer(x)
    got = torch.empty_like(want, memory_format=torch.contiguous_format)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    bundle = turns.Bundle(folder / "c/libmodel.so", stream.cuda_stream)
    bundle.bind([given.data_ptr()], [got.data_ptr()])
    bundle.run()
    torch.cuda.synchronize()
    reach = float(want.double().abs().max()) or 1.0
    off = float((got.double() - want.double()).abs().max()) / reach
    print("ready", file=said, flush=True)
    sys.stdin.readline()
    torch.backends.cudnn.benchmark = True  # chooses now, alone on the GPU
    peer(x)
    calls = {"torch": (lambda: peer(x), True), "ingot": (bundle.run, False)}
    ms = turns.turns(torch, calls, stream, rounds=12, warm=3, block_ms=6)
    bundle.close()
    print(json.dumps({"ms": [turns.median(ms[k]) for k in calls], "off": off}), file=said)


def gpu(o):
    """All cases are made at once, then measured one after the other, alone on the GPU."""
    import torch

    driver = call("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split()[0]
    versions = [f"PyTorch {torch.__version__} (torch.compile, in a CUDA graph)", f"driver {driver}"]
    unit = "ms a run, tensors on the GPU; medians of rounds, both in turns; f32 without TF32"
    work, end = pathlib.Path(o.work or tempfile.mkdtemp()), time.time() + o.limit
    me = [sys.executable, str(TREE / "tests/bench/scoreboard.py"), "gpu-case"]
    running, rows = {}, []
    for case in o.models:
        folder = work / case.replace(":", "_")
        command = [*me, case, str(folder), "--ingot", str(o.ingot.resolve())]
        with open(f"{folder}.log", "w") as log:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
            running[case] = subprocess.Popen(command, text=True, **pipes)
    for case, child in list(running.items()):
        if not wait_for("ready", child, end):
            running.pop(case).kill()
            print(f"{case}: not ready; {work}/{case.replace(':', '_')}.log", file=sys.stderr)
    for case, child in running.items():
        said, _ = child.communicate("go\n")
        if child.returncode:
            print(f"{case}: status {child.returncode}", file=sys.stderr)
            continue
        told = json.loads(said.splitlines()[-1])
        name, precision, batch = case.split(":")
        rows.append([f"{name}, {precision}, batch {batch}", *(round(ms, 4) for ms in told["ms"])])
        print(f"{case}: outputs differ by {told['off']:.1e} of the largest", flush=True)
        yield ["", "PyTorch", "ingot"], rows, versions, unit


def wait_for(word, child, end):
    """Whether a child prints that line before its end, and before the time is over."""
    import select

    while select.select([child.stdout], [], [], max(0, end - time.time()))[0]:
        line = child.stdout.readline()
        if line.strip() == word or not line:
            return line.strip() == word
    return False


# ---- microcontrollers, beside onnx2c and emx -----------------------------------------------------


def firmware(o):
    """tests/cortex_m/count.py counts the instructions; ingot comes last, as in the other tables."""
    others = {k: v for k, v in {"onnx2c": o.onnx2c, "emx": o.emx}.items() if v}
    flags = [f for k, v in others.items() for f in (f"--{k}", v)]
    gcc = call("arm-none-eabi-gcc", "-dumpfullversion").strip()
    versions = [f"{k} {v}".strip() for k, v in zip(others, o.version + ["", ""])]
    versions.append(f"arm-none-eabi-gcc {gcc}, -O2")
    rows, counter = [], [sys.executable, TREE / "tests/cortex_m/count.py", "--ingot", o.ingot]
    for path in o.models:
        text = call(*counter, *flags, path)
        counts = [float(n) if n else None for n in re.findall(r": (?:([\d.]+) million|.*)", text)]
        rows.append([name_of(path), *counts[1:], counts[0]])
        yield ["", *others, "ingot"], rows, versions, "millions of instructions a run"


# ---- language models, beside llama.cpp -----------------------------------------------------------


def llm(o):
    sys.path.insert(0, str(TREE / "tests/llm"))
    import llama_cpp

    timer = pathlib.Path(o.llama).resolve()
    if timer.is_dir():
        include, lib = llama_cpp.built(timer)
        timer = llama_cpp.program(include, lib, pathlib.Path(tempfile.mkdtemp()), "llama_time")
    versions = [f"llama.cpp (llama-cpp-python {llama_cpp.VERSION})"]
    unit = f"tokens a second; best of {o.rounds} rounds, in turns"
    how = ["--target", o.target, "--threads", o.threads, "--seconds", o.seconds, "--json", "-q"]
    rows, threads = [], f"{o.threads} thread{'s' if o.threads > 1 else ''}"
    for path in o.models:
        best = {"llama.cpp": (0, 0), "ingot": (0, 0)}
        for _ in range(o.rounds):
            text = call(timer, path, o.threads, o.prompt, o.answer)
            said = json.loads(call(o.ingot, "bench", path, *how).splitlines()[-1])
            ours = (said["prompt_tokens_per_second"], said["answer_tokens_per_second"])
            for engine, now in (("llama.cpp", map(float, text.split())), ("ingot", ours)):
                best[engine] = [max(a, b) for a, b in zip(best[engine], now)]
        for i, what in enumerate((f"prompt of {o.prompt} tokens", "answer")):
            row = f"{name_of(path)}, {what}, {threads}"
            rows.append([row, *(round(b[i], 1) for b in best.values())])
        yield ["", *best], rows, versions, unit


# ---- the official suite --------------------------------------------------------------------------


def suite(o):
    """tests/onnx/run.py over the official cases; or the page that it wrote (--page)."""
    import onnx

    page = o.page
    if not page:
        page = pathlib.Path(tempfile.mkdtemp()) / "onnx.md"
        command = [sys.executable, TREE / "tests/onnx/run.py", "--ingot", o.ingot, "--jobs", o.jobs]
        call(*command, "--optimise", "4", "--out", page, *o.models)
    rows = []
    for line in page.read_text().splitlines()[2:]:
        if not line.startswith("| "):
            break
        name, passed, failed, refused, crash, total = line.strip("| ").split(" | ")[:6]
        rows.append([name, *map(int, (total, passed, refused)), int(failed) + int(crash)])
    columns = ["", "cases", "passed", "refused", "failed"]
    yield columns, rows, [f"onnx {onnx.__version__}"], "cases, each compiled to C, built and run"
