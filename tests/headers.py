#!/usr/bin/env python3
"""Are the headers that OpenCL kernels begin with OpenCL C, and do those that GPU kernels may have
without igrt_num.h (codegen/render, c_file()) do without it?

No C compiler that builds ingot asks that, and an OpenCL device is not everywhere: clang compiles them, without and with the device's f16.
Its functions are overloaded and have no f behind their names, so igrt_bits.h has `#define cbrtf cbrt` for each: of all functions of math.h that
OpenCL C has, whether some header calls them today or not. What these are clang is asked; codegen/audit has the list of math.h's.

Exit status 77, skipped: there is no clang.
"""

import pathlib
import re
import shutil
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[1]
CLANG = [
    "clang",
    "-x",
    "cl",
    "-cl-std=CL1.2",
    "--target=spir64",
    "-Xclang",
    "-finclude-default-header",
    "-fsyntax-only",
    "-ferror-limit=0",
    "-w",
    "-I",
    "runtime_min",
    "-",
]
HEADERS = ("igrt_dot.h", "igrt_across.h")  # the first one includes igrt_num.h
SHUFFLE = "".join(
    f"{t} __attribute__((overloadable)) sub_group_shuffle_xor({t}, uint);\n"
    for t in ("int", "float")
)  # newer than some clangs
ALONE = ("igrt_run.h", "igrt_bulk.h", "igrt_image.h", "igrt_mma.h", "igrt_wgmma.h", "igrt_turns.h")
COMMON = ("igrt_bits.h", "igrt_num.h", "igrt_small.h")
OTHER = {"nan"}  # takes an integer in OpenCL C


def compiled(text):
    return subprocess.run(CLANG, cwd=TREE, input=text, capture_output=True, text=True).stderr


def header(name):
    """Without comments."""
    return re.sub(r"/\*.*?\*/|//.*", "", (TREE / "runtime_min" / name).read_text(), flags=re.S)


def borrowed():
    """Functions of the headers in common that others call."""
    common = "".join(header(h) for h in COMMON)
    known = set(re.findall(r"^(?:IGRT_INLINE .*?|#define )(igrt_\w+)\(", common, re.M))
    for h in ALONE:
        for name in sorted(known & set(re.findall(r"\b(igrt_\w+)\(", header(h)))):
            yield f"runtime_min/{h}: {name}() is of a header that a kernel may be without"


def main():
    if not shutil.which("clang"):
        print("skipped: there is no clang")
        return 77
    wrong = list(borrowed())
    for features in ("", "#define IGRT_HALF\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"):
        told = compiled(features + SHUFFLE + "".join(f'#include "{h}"\n' for h in HEADERS))
        wrong += [told] if told else []
    rules = (TREE / "codegen/audit/audit_rules.c").read_text()
    libm = re.findall(r'^    "(\w+)",', re.search(r"/\* libm:.*?/\*", rules, re.S)[0], re.M)
    told = compiled("".join(f"void f_{name}(void) {{ {name}; }}\n" for name in libm))
    have = set(libm) - set(re.findall(r"undeclared identifier '(\w+)'", told)) - OTHER
    lines = set(
        re.findall(r"^#define (\w+)f \1$", (TREE / "runtime_min/igrt_bits.h").read_text(), re.M)
    )
    wrong += [
        f"runtime_min/igrt_bits.h: #define {name}f {name} is missing"
        for name in sorted(have - lines)
    ]
    wrong += [
        f"runtime_min/igrt_bits.h: OpenCL C or codegen/audit/audit_rules.c has no {name}()"
        for name in sorted(lines - have)
    ]
    print("\n".join(wrong) or f"{len(HEADERS) + 2} headers, {len(lines)} functions of math.h")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
