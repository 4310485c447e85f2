#!/usr/bin/env python3
"""Is what a language spells in its record alone?

The renderer is one for all languages (codegen/render/language.h): its files have no word of CUDA's
or OpenCL's in what they write, and those that every language goes through none of C's either, whose
declarations, casts, choices and literals are in language_c.c.
"""

import pathlib
import re
import sys

RENDER = pathlib.Path(__file__).resolve().parents[1] / "codegen/render"
GPU = r"__shared__|__local|__global|__kernel|__cluster|__grid|__launch|__align|threadIdx|blockIdx|get_\w+_id|float2|CLK_|restrict"
C = r"\(int\)|\(float\)|\bu?int\d+_t|\bunsigned\b|\bconst |\bfloat |\bdouble |\bint | \? |INFINITY|\bNAN\b|&[a-z]|\*\)"
EVERY = ("render.c", "render_expr.c", "render_memory.c", "language.c")


def literals(text):
    """Strings outside of comments, with their lines."""
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)
    for i, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("#"):
            for string in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
                yield i, string


def main():
    bad = 0
    for file in sorted([*RENDER.glob("render*.c"), RENDER / "language.c"]):
        words = f"{GPU}|{C}" if file.name in EVERY else GPU
        for line, string in literals(file.read_text()):
            if found := re.search(words, string):
                print(f'{file.name}:{line}: "{string}": {found[0]!r} is the word of a language')
                bad += 1
    print(f"{bad} words of a language in what is written for all")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
