#!/usr/bin/env python3
"""Renews the .def files from operator schemas: those of the onnx package, and ONNX Runtime's own,
of which only what onnx_ops.def names.

    onnx_schemas.py > onnx_schemas.def
    onnx_schemas.py --microsoft > onnx_ms_schemas.def       needs onnxruntime
"""

import collections
import pathlib
import re
import sys
import textwrap

import onnx.defs

NAMES = {
    "float": "f32",
    "double": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "string": "string",
    "bool": "bool",
    "complex64": "c64",
    "complex128": "c128",
    "float8e4m3fn": "f8e4m3fn",
    "float8e4m3fnuz": "f8e4m3fnuz",
    "float8e5m2": "f8e5m2",
    "float8e5m2fnuz": "f8e5m2fnuz",
    "float8e8m0": "f8e8m0",
    "float4e2m1": "f4e2m1",
    "float6e2m3": None,
    "float6e3m2": None,
    **{
        f"{k}{n}": f"{s}{n}"
        for k, s in (("int", "i"), ("uint", "u"))
        for n in (2, 4, 8, 16, 32, 64)
    },
}
CLASSES = {  # from wide to narrow: the first that fits is taken
    "number": "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64",
    "float": "f16 bf16 f32 f64",
    "int": "i8 i16 i32 i64",
    "uint": "u8 u16 u32 u64",
    "float8": "f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz",
    "small": "i4 u4 i2 u2 f4e2m1",
}


def words(types):
    """One input: classes and types joined by '+'; * where it may be something else than a
    tensor."""
    types = {t.removeprefix("tensor(").removesuffix(")") for t in types}
    if any("(" in t for t in types):
        return "*"
    left, out = {NAMES[t] for t in types} - {None}, []
    for name, members in CLASSES.items():
        if set(members.split()) <= left:
            left -= set(members.split())
            out.append(name)
    return "+".join(out + sorted(left))


def quoted(items):
    return "\n".join(
        f'            "{line}"'
        for line in textwrap.wrap(
            " ".join(items), 84, drop_whitespace=False, break_long_words=False
        )
        or [""]
    )


def written(ops):
    for (domain, name), versions in sorted(ops.items()):
        attributes = sorted({a for v in versions for a in v[0]})
        types = []
        for _, inputs in versions:
            for i, x in enumerate(inputs):
                types[i:] = types[i:] or [set()]
                types[i] |= set(x)
        print(
            f'ONNX_SCHEMA("{domain}", "{name}",\n{quoted(attributes)},\n{quoted(words(t) for t in types)})'
        )


def standard():
    ops = collections.defaultdict(list)
    for s in onnx.defs.get_all_schemas_with_history():
        ops[s.domain, s.name].append((s.attributes, [x.types for x in s.inputs]))
    print(
        "/* ONNX_SCHEMA(domain, name, attributes, inputs): what the standard allows, all versions united;\n"
        " * renewed by onnx_schemas.py. inputs: a word for each, the last for those that follow; types\n"
        " * joined by '+'; * is anything. */"
    )
    written(ops)


def microsoft():
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    known = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()}
    rows = re.findall(
        r'^ONNX_OP\("(.*?)", *(\w+)',
        pathlib.Path(__file__).with_name("onnx_ops.def").read_text(),
        re.M,
    )
    ops = collections.defaultdict(list)
    for s in get_all_operator_schema():
        if (s.domain, s.name) in known or (s.domain, s.name) not in rows:
            continue
        types = {t.type_param_str: t.allowed_type_strs for t in s.type_constraints}
        ops[s.domain, s.name].append(
            (s.attributes, [types.get(x.typeStr, [x.typeStr]) for x in s.inputs])
        )
    print(
        "/* ONNX_SCHEMA(domain, name, attributes, inputs), as in onnx_schemas.def: ONNX Runtime's operators; renewed by\n"
        " * onnx_schemas.py --microsoft. */"
    )
    written(ops)


if __name__ == "__main__":
    microsoft() if sys.argv[1:] == ["--microsoft"] else standard()
