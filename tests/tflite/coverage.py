#!/usr/bin/env python3
"""Which operators and types LiteRT runs, which of them ingot takes, and which have a case in cases.py.

    coverage.py --values build/tests/tflite_values [--filter OPERATOR] [--all]

LiteRT is asked: of each operator of the schema, the greatest version that is registered; then each case of cases.py that has the
operator is written with other types (tensors of one type become those of another one), and LiteRT runs it or refuses. What it runs,
ingot has to give as well, by the rule of cases.py. A line an operator: version, and the types of the inputs that

    =  give the same, and have a case        +  give the same without a case
    -  are refused by ingot                  !  differ
    .  differ, or are refused, for the reason that UNCHECKED gives

--all: those that LiteRT refuses and ingot takes are listed too (~). Exit status 1: there is a +, - or !, or a reason that nothing
needs; 77, skipped: there is no ai-edge-litert or numpy.
"""

import argparse
import collections
import copy
import multiprocessing
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    from cases import TABLES, compare, judged
    from type_cases import BASE, NUMPY, SHORT, Written, read, retyped
    from writer import Model
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)

DEF = pathlib.Path(__file__).parents[2] / "importers/tflite/tflite_ops.def"
KIN = ({"i8", "u8"}, {"i32", "i64"}, {"f32", "f16", "i8", "u8", "i16", "i32"})
BY_OUTPUT = ("CAST", "DEQUANTIZE", "QUANTIZE", "SOFTMAX", "BITCAST")
# Operator and types (a pattern) that LiteRT does not check: what its kernel makes of them is no result of the operator.
UNCHECKED = {
    ("CONV_2D", "f32,(f16|i16)"): "weights are read as FLOAT32",
    ("CONV_2D", "i16,i64"): "weights of INT16 are read as INT8",
    ("FULLY_CONNECTED", "(i16|i8|u8),i64"): "a bias of INT64 is read as INT32",
    ("FULLY_CONNECTED", "u8,i8,.*"): "weights of INT8 are read as UINT8",
    ("PRELU", "f32,i8"): "slopes are read as FLOAT32",
    ("PRELU", "i16(,f16|,f32|,i32)?"): "slopes are read as INT8",
    ("RESHAPE", "f32(,f16)?"): "a shape without elements is not read",
    ("SOFTMAX", "(f16|f32)>i16"): "the result is stored as floats",
    ("SVDF", "f32,i16,i32"): "the state is read as FLOAT32",
    ("SVDF", "i8(,u8)?(,i32)?"): "weights of time and the state are read as INT16",
    ("SVDF", "i8,i16,?(f16|f32|i64|u8)?"): "the bias is read as INT32",
    (
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "i8,i32(,f16|,f32|,u8)?",
    ): "the state of the cell is read as INT16",
    ("TRANSPOSE", "f32,i64"): "the order of the axes is read as INT32",
    ("MATRIX_DIAG", "bool|f16|u16"): "nothing is stored",
    ("MATRIX_SET_DIAG", "bool|f16|u16"): "nothing is stored",
    ("FAKE_QUANT", "f16|i32|i64|u32"): "all types are read as FLOAT32",
    ("BITCAST", "f32>bool"): "bytes of any value become BOOL",
}
TYPE_NAME = {v: k for k, v in vars(schema.TensorType).items() if isinstance(v, int)}
OPERATOR = {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}


def short(t):
    return SHORT.get(t.type, TYPE_NAME[t.type].lower().replace("int", "i"))


def types_of(m):
    """Those of the first operator's inputs, and of its results what the inputs have not."""
    g = m.subgraphs[0]
    ins = dict.fromkeys(short(g.tensors[i]) for i in g.operators[0].inputs if i >= 0)
    outs = dict.fromkeys(short(g.tensors[i]) for i in g.operators[0].outputs if i >= 0)
    rest = [k for k in outs if k not in ins]
    return ",".join(ins) + (">" + ",".join(rest) if rest else "")


def newest(m):
    """A copy whose operators have the greatest version: newer types need it, and reference kernels have fewer."""
    m = copy.deepcopy(m)
    for c in m.operatorCodes:
        c.version = VERSIONS.get(c.builtinCode, c.version)
    return m


def sensible(m, a, b):
    """Types of weights and indices stay among their kin; what an option decides of a result is no type to be changed."""
    g = m.subgraphs[0]
    op = g.operators[0]
    ins = [short(g.tensors[i]) for i in op.inputs if i >= 0]
    if a not in ins:
        return (
            len(set(ins)) == 1
            and OPERATOR[m.operatorCodes[op.opcodeIndex].builtinCode] in BY_OUTPUT
        )
    if a == ins[0] or len(set(ins)) == 1:
        return True
    return any(a in kin and b in kin for kin in KIN)


def asked(job):
    data, how, seed = job
    try:
        return judged(data, how, seed)
    except (RuntimeError, ValueError) as e:
        return str(e)


def batch(jobs, path):
    with open(path, "wb") as f:
        for job in jobs:
            pickle.dump(asked(job), f)
            f.flush()


def ask_all(jobs):
    """What LiteRT gives of each, or a text; it may crash: then it is asked again without that one."""
    found = []
    with tempfile.TemporaryDirectory(prefix="ingot-coverage-") as scratch:
        path = pathlib.Path(scratch) / "answers"
        while len(found) < len(jobs):
            p = multiprocessing.get_context("fork").Process(
                target=batch, args=(jobs[len(found) : len(found) + 200], path)
            )
            p.start()
            p.join(120)
            p.kill()
            p.join()
            with open(path, "rb") as f:
                while True:
                    try:
                        found.append(pickle.load(f))
                    except (EOFError, pickle.UnpicklingError):
                        break
            if p.exitcode:
                found.append("it crashed")
    return found


def registered(number):
    """The greatest version of an operator that LiteRT has, 0: none."""
    best = 0
    for version in range(1, 24):
        m = Model()
        x = m.input("x", (1,))
        m.op("ABS", [x], [m.tensor((1,))], version)
        m.output(x)
        m.m.operatorCodes[0].builtinCode = number
        m.m.operatorCodes[0].deprecatedBuiltinCode = min(number, 127)
        try:
            Interpreter(
                model_content=m.bytes(),
                experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            )
            best = version
        except (RuntimeError, ValueError) as e:
            if "Didn't find op" not in str(e):
                best = version
    return best


def ours():
    row = re.compile(r"TFLITE_OP\((\w+),\s*(\d+),[^,]*,[^,]*,\s*(\d+),")
    return {int(n): int(v) for _, n, v in row.findall(DEF.read_text())}


def wanted(pattern):
    """(operator, types) -> models to be asked; and those that have a case."""
    jobs, cased = {}, set()
    for table in TABLES:
        for make in table.CASES.values():
            m, how = read(make)
            if len(m.subgraphs[0].operators) == 0:
                continue
            number = m.operatorCodes[m.subgraphs[0].operators[0].opcodeIndex].builtinCode
            name = OPERATOR[number]
            for op in m.subgraphs[0].operators:
                one = copy.copy(m.subgraphs[0])
                one.operators = [op]
                code = m.operatorCodes[op.opcodeIndex].builtinCode
                whole = copy.copy(m)
                whole.subgraphs = [one]
                cased.add((OPERATOR[code], types_of(whole)))
            if (
                pattern not in name
                or table not in BASE
                or len(m.subgraphs[0].operators) > 1
                or len(m.subgraphs) > 1
            ):
                continue
            have = {short(t) for t in m.subgraphs[0].tensors}
            changes = [(None, None)] + [(a, b) for a in have if a in NUMPY for b in NUMPY if b != a]
            for a, b in changes:
                if a and not sensible(m, a, b):
                    continue
                other = m if a is None else retyped(m, a, b)
                of = jobs.setdefault((name, types_of(other)), [])
                both = [(Written(v).bytes(), how) for v in (other, newest(other))]
                of[:] = of + both if a else both + of
    return jobs, cased


def judge(values, answers):
    """What ingot makes of those that LiteRT ran: key -> '' (the same), 'refused' or what differs."""
    said = {}
    with tempfile.TemporaryDirectory(prefix="ingot-coverage-") as scratch:
        folders = {}
        for i, (key, (data, (ins, _), _)) in enumerate(answers.items()):
            folder = folders[key] = pathlib.Path(scratch) / str(i)
            folder.mkdir()
            (folder / "model.tflite").write_bytes(data)
            for k, v in enumerate(ins):
                v.tofile(folder / f"in_{k}")
        left = list(folders.values())
        lines = {}
        while left:
            done = subprocess.run([values, *left], capture_output=True, text=True)
            got = {s.split()[0]: s.split()[1:] for s in done.stdout.splitlines()}
            lines |= got
            left = [f for f in left if str(f) not in got][1:]
        for key, folder in folders.items():
            line = lines.get(str(folder))
            if line is None:
                said[key] = "it crashed"
            elif line[0] == "4":
                said[key] = "refused"
            else:
                said[key] = compare(folder, line, answers[key][1][1])
        for key, why in said.items():
            data, (_, _), how = answers[key]
            other = (
                asked((data, how | dict(optimized=True), 1)) if why not in ("", "refused") else ""
            )
            if not isinstance(other, str) and not compare(
                folders[key], lines[str(folders[key])], other[1]
            ):
                said[key] = ""
    return said


def unchecked(name, types):
    """The key of the reason why LiteRT's result is none."""
    for key in UNCHECKED:
        if key[0] == name and re.fullmatch(key[1], types):
            return key
    return None


def table(opt):
    jobs, cased = wanted(opt.filter)
    order = [(key, job) for key, of in jobs.items() for job in of[:8]]
    results = ask_all([(data, how, 1) for _, (data, how) in order])
    answers, refused = {}, {}
    for (key, (data, how)), result in zip(order, results):
        if isinstance(result, str):
            refused.setdefault(key, (data, result))
        elif key not in answers and all(v.dtype != object for v in (*result[0], *result[1])):
            answers[key] = (data, result, how)
    return answers, {k: v for k, v in refused.items() if k not in answers}, cased


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--values", type=pathlib.Path, required=True)
    p.add_argument("--filter", default="")
    p.add_argument("--all", action="store_true")
    opt = p.parse_args()
    for number in sorted(OPERATOR):
        if opt.filter in OPERATOR[number]:
            VERSIONS[number] = registered(number)
    answers, refused, cased = table(opt)
    said = judge(opt.values, answers)
    have, count, used = ours(), collections.Counter(), set()
    for number, version in VERSIONS.items():
        name, marks = OPERATOR[number], []
        for key in sorted(k for k in said if k[0] == name):
            why = said[key]
            mark = "-" if why == "refused" else "!" if why else "=" if key in cased else "+"
            reason = unchecked(*key) if mark in "-!" else None
            if reason:
                used.add(reason)
                mark, why = ".", UNCHECKED[reason]
            count[mark] += 1
            marks.append(mark + key[1] + (f" ({why})" if mark in "!." else ""))
        if opt.all:
            marks += ["~" + k[1] + f" ({refused[k][1][:80]})" for k in refused if k[0] == name]
        if not version and number not in have:
            continue
        versions = (
            f"{have.get(number, 0)} of {version}" if have.get(number, 0) < version else version
        )
        print(f"{name:32} {versions!s:9} {'  '.join(marks)}")
    print(", ".join(f"{n} {mark}" for mark, n in sorted(count.items())))
    idle = [k for k in UNCHECKED if k not in used and opt.filter in k[0]]
    for name, types in idle:
        print(f"UNCHECKED[{name}, {types}]: no result differs")
    return 1 if idle or count["+"] + count["-"] + count["!"] else 0


VERSIONS = {}
if __name__ == "__main__":
    sys.exit(main())
