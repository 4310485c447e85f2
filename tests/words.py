#!/usr/bin/env python3
"""Does the tree keep its measures? No arguments; one line a figure.

Files have at most 800 lines, functions of C at most 80 (rows of macros are tables, and so are not
counted), of Python at most 120, one line in a hundred of the code may be longer than 100 columns,
and a name is that of one type: who looks for it finds one definition.

A type is defined where its members stand, or a typedef names another type: forward declarations
are none. What one file defines twice are alternatives (#if). C++ has namespaces, and is left out.
"""

import ast
import collections
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[1]
CODE = (".c", ".h", ".def", ".cl", ".cu", ".cpp", ".hpp", ".py", ".js", ".mjs")
LINES, LENGTH, COLUMNS, SHARE = 800, 80, 100, 0.01
PYTHON = 120
# Types of one name that are meant, and why
ALIKE = {
    "Record": "ways_cuda.h or ways_opencl.h: a program has one of them",
    "igrt_gpu": "igrt_gpu_cuda.h, igrt_gpu_hip.h or igrt_gpu_opencl.h: a bundle has one of them",
    "igrt_gpu_record": "igrt_gpu_cuda.h or igrt_gpu_hip.h: a bundle has one of them",
    "igrt_gpu_mem": "as igrt_gpu",
}


def plain(text):
    """Comments, strings and lines of the preprocessor become spaces: what is left stays in
    place."""

    def blank(m):
        return re.sub(r"[^\n]", " ", m[0])

    literal = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    text = re.sub(literal, blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", blank, text, flags=re.M | re.S)


def typedef_name(words):
    """typedef struct x {..} y -> y; typedef int (*f)(void) -> f; typedef int g(int) -> g"""
    flat = re.sub(r"\{.*\}", "{}", words, flags=re.S)
    pointer = re.search(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*(?:\[[^\]]*\])*\)\s*\(", flat)
    if pointer:
        return pointer[1]
    flat = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", flat)
    while re.search(r"\([^()]*\)\s*$", flat):
        flat = re.sub(r"\([^()]*\)\s*$", "", flat)
    names = re.findall(r"\w+", re.sub(r"(\[[^\]]*\]\s*)+$", "", flat))
    return names[-1] if names else None


def types(text):
    """Names of the types that plain text of C defines."""
    found = [m[1] for m in re.finditer(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", text)]
    for m in re.finditer(r"\btypedef\b", text):
        at, deep = m.end(), 0
        while at < len(text) and not (text[at] == ";" and deep == 0):
            deep += (text[at] in "{(") - (text[at] in "})")
            at += 1
        words = text[m.start() : at]
        name = typedef_name(words)
        tag = re.match(r"typedef\s+(?:const\s+)?(?:struct|union|enum)\s+(\w+)", words)
        if name and not (tag and tag[1] == name):  # else it is a forward one, or found by its tag
            found.append(name)
    return found


def functions(text):
    """(name, first line, lines) of the functions whose body begins and ends in column 0."""
    lines, start = text.split("\n"), None
    for i, line in enumerate(lines):
        if line.rstrip() == "{":
            start = i
            while start and lines[start - 1].strip() and lines[start - 1].rstrip()[-1] not in ";}":
                start -= 1
            if re.match(r"(template\b.*)?class\b", " ".join(lines[start:i])):
                start = None  # it has functions, and is none
        elif re.match(
            r"(?!namespace|extern|struct|enum|union|typedef)\w.*\)\s*(const\s*)?\{$", line
        ):
            start = i
        elif line.startswith("}") and start is not None:
            name = re.search(r"(\w+)\s*\(", " ".join(lines[start:i]))
            yield name[1] if name else "?", start + 1, i - start + 1
            start = None


def long_functions(text):
    """(name, first line, lines) of the functions of Python that are longer than PYTHON."""
    for n in ast.walk(ast.parse(text)):
        if isinstance(n, ast.FunctionDef) and n.end_lineno - n.lineno >= PYTHON:
            yield n.name, n.lineno, n.end_lineno - n.lineno + 1


def main():
    try:
        names = subprocess.run(["git", "ls-files"], cwd=TREE, capture_output=True, text=True).stdout
    except FileNotFoundError:
        names = ""
    files = [f for f in names.split() if f.endswith(CODE)]
    if not files:
        print("skipped: no checkout")
        return 77
    wrong, total, wide, longest, most = [], 0, 0, 0, 0
    defined, by_file = collections.defaultdict(set), collections.Counter()
    for f in files:
        text = (TREE / f).read_text()
        lines = text.splitlines()
        total += len(lines)
        by_file[f] = sum(len(line) > COLUMNS for line in lines)
        wide += by_file[f]
        longest = max(longest, len(lines))
        if len(lines) > LINES:
            wrong.append(f"{f}: {len(lines)} lines, more than {LINES}")
        if f.endswith(".py"):
            wrong += [
                f"{f}:{at}: {name}() has {n} lines, more than {PYTHON}"
                for name, at, n in long_functions(text)
            ]
        if not f.endswith((".c", ".h", ".cpp", ".hpp")):
            continue
        code = plain(text)
        for name, at, n in functions(code):
            most = max(most, n)
            if n > LENGTH:
                wrong.append(f"{f}:{at}: {name}() has {n} lines, more than {LENGTH}")
        if f.endswith((".c", ".h")) and not re.search(r"^namespace ", code, re.M):
            for name in types(code):
                defined[name].add(f)
    twice = {name: at for name, at in defined.items() if len(at) > 1}
    for name, at in sorted(twice.items()):
        if name not in ALIKE:
            wrong.append(f"{name} is a type of {', '.join(sorted(at))}: one name is one type")
    wrong += [f"{name} is one type by now: strike it from ALIKE" for name in ALIKE.keys() - twice]
    share = wide / total
    if share > SHARE:
        worst = ", ".join(f"{f} {n}" for f, n in by_file.most_common(10))
        wrong.append(f"{wide} lines are wider than {COLUMNS} columns: {worst}")
    print("\n".join(wrong))
    print(f"{len(files)} files of at most {longest} lines; functions of at most {most} lines")
    print(f"{share:.2%} of {total} lines are wider than {COLUMNS} columns")
    print(f"{len(defined)} types, {len(twice)} names twice, {len(ALIKE)} of them meant")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
