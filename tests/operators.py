#!/usr/bin/env python3
"""docs/operators.md is what `ingot operators` says, with what the importers refuse.

    operators.py --ingot build/ingot            compares
    operators.py --ingot build/ingot --renew    writes

A limit is a message of the importer, as the sources have it: unsupported() in the function of the
operator, or in a function of the same file that it calls. Numbers and names that the message fills
in are told as "..".
"""

import argparse
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[1]
PAGE = TREE / "docs/operators.md"
LINE = re.compile(r"(.+?) {2,}(\S+) +version (\d+) +(.+?) +inputs *(.*)")
HEADS = {
    "ai.onnx": ("ONNX", "since opset"),
    "ai.onnx.ml": ("ONNX, classical machine learning (`ai.onnx.ml`)", "since version"),
    "ai.onnx.preview": ("ONNX, preview (`ai.onnx.preview`)", "since version"),
    "ai.onnx.preview.training": ("ONNX, training (`ai.onnx.preview.training`)", "since version"),
    "com.microsoft": ("ONNX Runtime (`com.microsoft`)", "since version"),
    "TensorFlow Lite": ("TensorFlow Lite", "up to version"),
}
OPENING = """# Operators

This page lists the operators that a model may contain. `ingot operators` prints the same list. `ingot check model.onnx` lists all operators of a model that are not supported. `tests/operators.py --renew`
writes this page; do not edit it.

These limits hold everywhere: tensors have up to 8 dims; complex numbers are refused, except inside the Fourier transforms; a size that depends on the data needs bounds
([`--dim`](command_line.md#shapes-and-inputs)). You can supply a missing operator as [a C function](custom_ops.md).

Types: `number` is `float`, `int` and `uint`; `float` is f16, bf16, f32 and f64; `int` is i8 to i64, `uint` u8 to u64; `float8` is the four types of f8; `small` is the types of 2 and 4 bits; `*` is any type, and
sequences if the operator accepts them. The types of several inputs are separated by commas; the last one holds for all further inputs.

"""


def functions(text):
    """Of one source: name of each function, and its body."""
    form = re.compile(r"^(?:static )?[\w *]+?\*?(\w+)\([^;{]*\)\n\{\n(.*?)^\}\n", re.M | re.S)
    return {m[1]: m[2] for m in form.finditer(text)}


def refusals(call, folder, prefix):
    """What functions of the importer refuse, by name without the prefix."""
    found = {}
    said = re.compile(rf"\b{call}\(\s*n,\s*((?:\"[^\"]*\"\s*(?:PRI\w+\s*)?)+)")
    for file in sorted((TREE / folder).glob("*.c")):
        bodies = functions(file.read_text())
        for name in bodies:
            if not name.startswith(prefix):
                continue
            seen, todo, told = set(), [name], []
            while todo:
                f = todo.pop()
                if f in seen:
                    continue
                seen.add(f)
                for m in said.finditer(bodies[f]):
                    text = "".join(re.findall(r'"([^"]*)"', m[1]))
                    text = re.sub(r"%[-.\d]*(?:l?l|z)?[a-z]", "..", text)
                    if text not in told:
                        told.append(text)
                calls = re.findall(r"\b(\w+)\(", bodies[f])
                todo += [c for c in calls if c in bodies and not c.startswith(prefix)]
            found[name[len(prefix) :]] = told
    return found


def lowered(path, name_at, row):
    """{operator: function} of a table."""
    text = re.sub(r"/\*.*?\*/", "", (TREE / path).read_text(), flags=re.S)
    rows = (re.split(r",\s*", r) for r in re.findall(rf"{row}\((.*)\)", text))
    return {(r[0].strip('"'), r[name_at]): r[-1] for r in rows}


def page(ingot):
    lines = subprocess.run([ingot, "operators"], capture_output=True, text=True, check=True).stdout
    limits = refusals("unsupported", "importers/onnx", "onnx_")
    limits_lite = refusals("tfl_unsupported", "importers/tflite", "tflite_")
    table = lowered("importers/onnx/onnx_ops.def", 1, "ONNX_OP")
    lite = {
        r: f for (_, r), f in lowered("importers/tflite/tflite_ops.def", 0, "TFLITE_OP").items()
    }
    sections = {}
    for line in lines.splitlines():
        form, name, since, count, types = LINE.fullmatch(line.rstrip()).groups()
        domain, _, short = name.rpartition(".")
        told = limits_lite.get(lite.get(short, ""), [])
        if form == "ONNX":
            told = limits.get(table["" if domain == "ai.onnx" else domain, short], [])
        real = re.sub(r"\+?\bc(64|128)\b", "", types).strip(
            "+"
        )  # an operator of complex numbers alone: c64
        types = (real or types).split() or ["*"]
        while len(types) > 1 and types[-1] == types[-2]:
            types.pop()
        typed = ", ".join(t.replace("+", " ") for t in types)
        row = f"| {short} | {since} | {count} | {typed} | {'; '.join(told)} |"
        sections.setdefault(domain if form == "ONNX" else form, []).append((short, row))
    text = OPENING
    for key in sorted(sections, key=[*HEADS].index):
        title, since = HEADS[key]
        text += f"## {title}\n\n{len(sections[key])} operators.\n\n"
        text += (
            f"| operator | {since} | inputs | their types | refused if |\n|---|---|---|---|---|\n"
        )
        text += "".join(row + "\n" for _, row in sorted(sections[key])) + "\n"
    known = {(d, n) for d, n in table}
    schemas = (TREE / "importers/onnx/onnx_schemas.def").read_text()
    standard = set(re.findall(r'ONNX_SCHEMA\("([^"]*)", "(\w+)"', schemas))
    missing = sorted(n if not d else f"{d}.{n}" for d, n in standard - known)
    text += f"## Not supported\n\nOf the ONNX standard: {', '.join(missing)}.\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ingot", type=pathlib.Path, required=True)
    parser.add_argument("--renew", action="store_true")
    o = parser.parse_args()
    text = page(o.ingot.resolve())
    if o.renew:
        PAGE.write_text(text)
    if PAGE.read_text() != text:
        print("docs/operators.md: tests/operators.py --ingot build/ingot --renew writes it anew")
        return 1
    print(f"{text.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
