#!/usr/bin/env python3
"""How fast compiled models are, beside other engines: docs/performance.md and the table in README.md.

    scoreboard.py measure OUT.json --ingot build/ingot [--title T] [--dim NAME=N]
        [--precision bf16] [--threads N] MODEL.onnx...
    scoreboard.py page [--check]        writes both pages from tests/bench/scores/*.json

`measure` runs on the machine at hand, every engine in this one process and in turns: so all meet the
same load. A figure is the least CPU time of a call, in ms; the least time with several threads. It needs onnxruntime;
openvino is timed too if it is installed. Each file of scores is one table of the page: title,
machine, date, versions, command, columns, rows. The last column is ingot's; `base` is the one
that README.md compares it with.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import sys
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
SCORES = TREE / "tests/bench/scores"
BEGIN, END = "<!-- scoreboard.py -->\n", "<!-- end -->\n"


# ---- measure -----------------------------------------------------------------------------------


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*: (.*)", text)
    family = re.search(r"cpu family\s*: (\d+)\n\s*model\s*: (\d+)", text.replace("\t", ""))
    more = f", family {family[1]} model {family[2]}" if family else ""
    return (name[1] if name else platform.machine()) + more


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


def engines(path, o, dims):
    """{name: a function that runs the model once}, and the values that each gives."""
    import numpy as np
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = o.threads, 1
    session = ort.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    feeds = feeds_of(session, dims)
    made = {"ONNX Runtime": lambda: session.run(None, feeds)}
    try:
        import openvino as ov

        core = ov.Core()
        hints = {"INFERENCE_NUM_THREADS": o.threads, "NUM_STREAMS": "1"}
        hints["INFERENCE_PRECISION_HINT"] = o.precision or "f32"
        network = core.read_model(str(path))
        network.reshape({n: list(x.shape) for n, x in feeds.items()})
        request = core.compile_model(network, "CPU", hints).create_infer_request()
        made["OpenVINO"] = lambda: list(request.infer(feeds, share_inputs=True).to_dict().values())
    except ImportError:
        pass
    import ingot

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
    best = dict.fromkeys(made, math.inf)
    for run in made.values():
        run()
    for _ in range(o.rounds):
        for name, run in made.items():
            end = clock() + o.seconds
            while clock() < end:
                before = clock()
                run()
                best[name] = min(best[name], clock() - before)
    return best


UNITS = (
    "ms, {} threads; least of all calls, engines in turns",
    "ms of CPU time, one thread; least of all calls, engines in turns",
)


def said_options(o):
    text = f" --target {o.target}"
    text += f" --precision {o.precision}" if o.precision else ""
    return text + (f" --threads {o.threads}" if o.threads > 1 else "")


def measure(o):
    os.environ["INGOT"] = str(o.ingot.resolve())
    sys.path.insert(0, str(TREE / "compiler/tools/python"))
    import ingot
    import onnxruntime

    dims = {k: int(v) for k, v in (d.split("=") for d in o.dim)}
    rows, columns = [], None
    for path in o.models:
        best = least(engines(path, o, dims), o)
        columns = ["", *best]
        name = path.parent.name if path.name == "model.onnx" else path.stem
        rows.append([name, *(round(1000 * t, 2) for t in best.values())])
        print(rows[-1], flush=True)
    versions = [f"ONNX Runtime {onnxruntime.__version__}"]
    if "OpenVINO" in columns:
        import openvino

        versions.append(f"OpenVINO {openvino.__version__.split('-')[0]}")
    said = {
        "title": o.title,
        "machine": o.machine or processor(),
        "date": datetime.date.today().isoformat(),
        "versions": [*versions, f"ingot {ingot.__version__}", platform.platform()],
        "command": f"tests/bench/scoreboard.py measure OUT.json --ingot build/ingot{said_options(o)} MODEL...",
        "unit": UNITS[o.threads == 1].format(o.threads),
        "base": o.base,
        "columns": columns,
        "rows": rows,
    }
    o.out.write_text(json.dumps(said, indent=1) + "\n")


# ---- the pages ---------------------------------------------------------------------------------


def mean_ratio(table):
    """ingot's figure by the base's, the geometric mean over the rows that have both."""
    at = table["columns"].index(table["base"])
    pairs = [(r[-1], r[at]) for r in table["rows"] if r[at] and r[-1]]
    if table.get("more_is_better"):
        pairs = [(b, a) for a, b in pairs]
    return math.exp(sum(math.log(a / b) for a, b in pairs) / len(pairs)), len(pairs)


def figure(x):
    if x is None:
        return ""
    return x if isinstance(x, str) else f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def performance(tables):
    text = """# Performance

How long compiled models take, compared with other engines. The page and the table in the [README](../README.md) are made by `tests/bench/scoreboard.py page` from the files in
`tests/bench/scores/`; do not edit them. Each table names the machine, the versions, the day and the command. Compare figures within a table, not between tables: machines differ, and shared ones
vary from hour to hour. [measurements.md](measurements.md) tells what single decisions of the compiler are worth.

"""
    for t in tables:
        ratio, n = mean_ratio(t)
        text += f"## {t['title']}\n\n"
        text += f"{t['machine']}. {t['date']}. {', '.join(t['versions'])}. Unit: {t['unit']}.\n\n"
        text += f"<!-- not run: measures -->\n```sh\n{t['command']}\n```\n\n"
        text += f"| {' | '.join(t['columns'])} | ingot / {t['base']} |\n|{'---|' * (len(t['columns']) + 1)}\n"
        at = t["columns"].index(t["base"])
        for row in t["rows"]:
            share = f"{row[-1] / row[at]:.2f}" if row[at] and row[-1] else ""
            text += f"| {' | '.join(figure(x) for x in row)} | {share} |\n"
        what = "Speed" if t.get("more_is_better") else "Time"
        mean = 1 / ratio if t.get("more_is_better") else ratio
        text += f"\n{what} of ingot by {t['base']}'s, geometric mean of {n}: **{mean:.2f}**.\n\n"
    return text.rstrip("\n") + "\n"


def summary(tables):
    text = "| what | machine | compared with | speedup (networks, mean) |\n|---|---|---|---|\n"
    for t in tables:
        ratio, n = mean_ratio(t)
        version = next((v for v in t["versions"] if v.startswith(t["base"])), t["base"])
        text += f"| {t['title']} | {t['machine']} | {version} | {1 / ratio:.2f} ({n}) |\n"
    return text


def pages(check):
    tables = [json.loads(f.read_text()) for f in sorted(SCORES.glob("*.json"))]
    readme = TREE / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    wanted = {
        TREE / "docs/performance.md": performance(tables),
        readme: before + BEGIN + summary(tables) + END + rest.partition(END)[2],
    }
    stale = [p for p, text in wanted.items() if not p.exists() or p.read_text() != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(TREE)}: tests/bench/scoreboard.py page writes it anew")
        else:
            path.write_text(wanted[path])
    return int(check and bool(stale))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    page = commands.add_parser("page")
    page.add_argument("--check", action="store_true")
    m = commands.add_parser("measure")
    m.add_argument("out", type=pathlib.Path)
    m.add_argument("models", type=pathlib.Path, nargs="+")
    m.add_argument("--ingot", type=pathlib.Path, required=True)
    m.add_argument("--target", default="native")
    m.add_argument("--precision", choices=("bf16", "f16"))
    m.add_argument("--threads", type=int, default=1)
    m.add_argument("--title", default="Networks")
    m.add_argument("--machine")
    m.add_argument("--base", default="ONNX Runtime")
    m.add_argument("--dim", action="append", default=[])
    m.add_argument("--rounds", type=int, default=4)
    m.add_argument("--seconds", type=float, default=0.4)
    o = parser.parse_args()
    return pages(o.check) if o.command == "page" else measure(o)


if __name__ == "__main__":
    sys.exit(main())
