#!/usr/bin/env python3
"""What `ingot inspect --json` prints is what docs/report.md says, and agrees with itself and with
the emitted bundle.

    schema.py --ingot build/ingot [MODEL...]

Without models: examples/digits and models of tests/bundle. Exit status 77, skipped: there is no
Python with onnx.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
NAMES = {
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "dim": lambda v: isinstance(v, (int, str)) and not isinstance(v, bool),
}


class Wrong(Exception):
    pass


def call(*command, good=(0,)):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode not in good:
        raise Wrong(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def read_schema():
    """{object: {member: (type, optional)}} of the tables in docs/report.md."""
    schema, at = {}, None
    for line in (TREE / "docs" / "report.md").read_text().splitlines():
        head = re.match(r"### `(\w+)`$", line)
        row = re.match(r"\| `(\w+)(\??)` \| ([^|]+?) \|", line)
        if head:
            at = schema[head[1]] = {}
        elif line.startswith("## "):
            at = None
        elif row and at is not None:
            at[row[1]] = (row[3], row[2] == "?")
    return schema


def check_type(schema, value, kind, where):
    kind, _, alternative = kind.partition(" or ")
    if alternative == "null" and value is None:
        return
    if kind.startswith("list of "):
        if not isinstance(value, list):
            raise Wrong(f"{where}: no list")
        for i, item in enumerate(value):
            check_type(schema, item, kind[8:], f"{where}[{i}]")
    elif kind.startswith("map of "):
        for name, item in value.items():
            check_type(schema, item, kind[7:], f"{where}.{name}")
    elif kind.startswith("`"):
        check_object(schema, value, kind.strip("`"), where)
    elif not NAMES[kind](value):
        raise Wrong(f"{where}: {value!r:.80} is no {kind}")


def check_object(schema, value, name, where):
    members = schema[name]
    for member, (kind, optional) in members.items():
        if member in value:
            check_type(schema, value[member], kind, f"{where}.{member}")
        elif not optional:
            raise Wrong(f"{where}: {member} is missing")
    extra = set(value) - set(members)
    if extra:
        raise Wrong(f"{where}: docs/report.md does not have {sorted(extra)}")


def overlap(a, b):
    return (
        a["first"] <= b["last"]
        and b["first"] <= a["last"]
        and a["offset"] < b["offset"] + b["bytes"]
        and b["offset"] < a["offset"] + a["bytes"]
    )


def check_facts(told):
    """What the JSON says in two places is the same, and no two tensors share bytes at the same time
    without a reason."""
    tensors = {t["id"]: t for t in told["tensors"]}
    steps = {s["step"]: s for s in told["steps"]}
    nodes = {n["id"]: n for n in told["nodes"]}
    kernels = {k["name"]: k for k in told["kernel_list"]}
    if (
        told["kernels"] != len(kernels)
        or len(tensors) != len(told["tensors"])
        or len(steps) != len(told["steps"])
    ):
        raise Wrong("counts")
    for s in steps.values():
        missing = [t for t in s["tensors"] + s["reads"] + s["writes"] if t not in tensors]
        if missing or not {*s["reads"], *s["writes"]} <= {*s["tensors"]}:
            raise Wrong(f"step {s['step']}: tensors {missing}")
        if any(n not in nodes for n in s["nodes"]):
            raise Wrong(f"step {s['step']}: nodes that are in no graph")
        for t in s["reads"] + s["writes"]:
            if not tensors[t]["first"] <= s["step"] <= tensors[t]["last"] and tensors[t][
                "kind"
            ] in ("arena", "weight"):
                raise Wrong(f"step {s['step']}: tensor {t} does not live there")
        if s["kind"] == "generated":
            k = kernels.get(s["name"])
            if (
                not k
                or s["step"] not in k["steps"]
                or k["opts"] != s["opts"]
                or len(k["args"]) != len(s["tensors"])
            ):
                raise Wrong(f"step {s['step']}: kernel {s['name']}")
            # a node that a kernel computes has its origin among the kernel's, unless it is made of
            # numbers alone
            names = {(o["node"], o["op"]) for o in s["source"]}
            known = [
                told["origins"][o]
                for n in s["nodes"]
                if "origin" in nodes[n]
                for o in [nodes[n]["origin"], *nodes[n].get("also", [])]
            ]
            if names - {(o["node"], o["op"]) for o in known} and s["nodes"]:
                raise Wrong(f"step {s['step']}: its nodes are not those of {sorted(names)}")
    for k in kernels.values():
        if k["steps"] != [
            s["step"] for s in told["steps"] if s["kind"] == "generated" and s["name"] == k["name"]
        ]:
            raise Wrong(f"{k['name']}: steps {k['steps']}")
        for i, arg in enumerate(k["args"]):
            if (arg["read"] or arg["written"]) and not re.search(rf"\ba{i}\b", k["code"]):
                raise Wrong(f"{k['name']}: its text has no a{i}")
    chains = {}  # tensors that follow one another in place

    def leader(t):
        while t in chains:
            t = chains[t]
        return t

    for n in told["notes"]:
        if n["pass"] == "memplan" and n["what"] == "in place":
            chains[n["tensor"]] = n["of"]
    placed = [t for t in told["tensors"] if t["kind"] == "arena" and "base" not in t and t["bytes"]]
    for i, a in enumerate(placed):
        limit = (
            told["memories"][a["memory"]]["bytes"] if "memories" in told else told["arena_bytes"]
        )
        if a["offset"] + a["bytes"] > limit:
            raise Wrong(f"tensor {a['id']} ends outside of its memory")
        for b in placed[:i]:
            if a["memory"] == b["memory"] and overlap(a, b) and leader(a["id"]) != leader(b["id"]):
                raise Wrong(f"tensors {a['id']} and {b['id']} share bytes at the same time")
    for g in told["graphs"]:
        if not {*g["results"], *g["nodes"]} <= set(nodes):
            raise Wrong(f"graph {g['pass']}: nodes that are not there")
    alive = [alive_at(placed, s) for s in steps]
    if alive and (
        told["peak"]["bytes"] != max(alive) or told["peak"]["bytes"] > told["arena_bytes"]
    ):
        raise Wrong(f"peak {told['peak']}, {max(alive)} bytes are alive")


def alive_at(tensors, step):
    """Bytes; those of a tensor in place of another count once."""
    total = 0
    for memory in {t["memory"] for t in tensors}:
        top = 0
        for t in sorted(tensors, key=lambda t: t["offset"]):
            if t["memory"] == memory and t["first"] <= step <= t["last"]:
                end = t["offset"] + t["bytes"]
                total += max(0, end - max(top, t["offset"]))
                top = max(top, end)
    return total


def check_bundle(ingot, model, told, work):
    """Names and arguments of the emitted kernels, and offsets in the arena, are those that were
    told."""
    call(ingot, "compile", model, "-o", work / "bundle")
    text = "".join(f.read_text() for f in sorted((work / "bundle").glob("model*.c")))
    for k in told["kernel_list"]:
        body = k["code"].replace(f"void {k['name']}(", f"void model_{k['name']}(").strip()
        if body not in text:
            raise Wrong(f"{model}: {k['name']} is not in the bundle as it was told")
    header = (work / "bundle" / "model.h").read_text()
    if (
        "memories" not in told
        and not re.search(rf"#define MODEL_ARENA_BYTES.*\b{told['arena_bytes']}\b", header)
        and told["arena_bytes"]
    ):
        raise Wrong(f"{model}: MODEL_ARENA_BYTES is not {told['arena_bytes']}")
    run = work / "bundle" / "model_run.c"
    if run.exists():
        text = run.read_text()
    calls = re.findall(r"model_(k\d+\w*)\(", text)
    if not {k["name"] for k in told["kernel_list"]} <= set(calls):
        raise Wrong(f"{model}: kernels that no step calls")


def planted(told):
    """Wrong facts that have to be found."""

    def offset(t):
        a, b = next(
            (x, y)
            for x in t["tensors"]
            for y in t["tensors"]
            if x["id"] < y["id"]
            and x["kind"] == y["kind"] == "arena"
            and x["first"] <= y["last"]
            and y["first"] <= x["last"]
            and x["offset"] != y["offset"]
        )
        b["offset"] = a["offset"]

    def nodes(t):
        t["steps"][1]["nodes"] = t["steps"][-1]["nodes"]

    def steps(t):
        t["kernel_list"][0]["steps"] = [1]

    def opts(t):
        t["kernel_list"][1]["opts"].append("VECTOR i0 64")

    def peak(t):
        t["peak"]["bytes"] += 64

    for plant in (offset, nodes, steps, opts, peak):
        lie = json.loads(json.dumps(told))
        plant(lie)
        try:
            check_facts(lie)
        except Wrong:
            continue
        raise Wrong(f"a planted wrong fact is not found: {plant.__name__}")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    p.add_argument("models", nargs="*")
    a = p.parse_args()
    schema = read_schema()
    with tempfile.TemporaryDirectory() as work:
        work, found = (
            pathlib.Path(work),
            [TREE / "examples" / "digits" / "digits.onnx", *map(pathlib.Path, a.models)],
        )
        if not a.models:
            sys.path.insert(0, str(HERE.parent / "bundle"))
            try:
                import models
            except ImportError as e:
                print(f"skipped: {e}")
                return 77
            for name in sorted(models.MODELS):
                (work / f"{name}.onnx").write_bytes(models.build(name))
                found.append(work / f"{name}.onnx")
        for model in found:
            for flags in (
                (),
                ("--target", "c:native"),
                ("-O0",),
                ("--target", "opencl"),
                ("--memory", "dtcm=8k", "--memory", "sram"),
            ):
                told = json.loads(call(a.ingot, "inspect", model, "--json", *flags))
                try:
                    check_object(schema, told, "report", "report")
                    check_facts(told)
                except Wrong as e:
                    raise Wrong(f"{model.name} {' '.join(flags)}: {e}") from None
                if not flags:
                    check_bundle(a.ingot, model, told, work)
            dot = call(a.ingot, "inspect", model, "--dot")
            if not dot.startswith("digraph plan {") or not dot.endswith("}\n"):
                raise Wrong(f"{model.name}: --dot")
        told = json.loads(call(a.ingot, "inspect", found[0], "--json", "--assembly"))
        planted(told)
        check_object(schema, told, "report", "report")
        print(
            f"{len(found)} models are as docs/report.md says, and agree with themselves and their bundles"
        )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as e:
        print(f"failed: {e}")
        sys.exit(1)
