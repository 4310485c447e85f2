"""zig of PyPI's package ziglang as a C compiler: python -m ingot.zig -O2 -c x.c

zig cc is clang, but for the names of processors (x86_64_v3, not x86-64-v3) and checks that it adds
to every build. CC="python3 -m ingot.zig" makes ingot and the Makefiles of bundles use it."""

import os
import re
import sys


def words(arguments):
    named = re.compile(r"(-march|-mcpu|-mtune)=(.*)")
    found = []
    for word in arguments:
        m = named.fullmatch(word)
        if m and m[1] == "-mtune":
            continue  # zig has one name for both
        found.append(f"{m[1]}={m[2].replace('-', '_')}" if m else word)
    return [*found, "-fno-sanitize=undefined"]


def main():
    try:
        import ziglang
    except ImportError:
        sys.exit("ingot.zig: there is no zig; `pip install ziglang` brings it")
    zig = os.path.join(os.path.dirname(ziglang.__file__), "zig")
    os.execv(zig, [zig, "cc", *words(sys.argv[1:])])


if __name__ == "__main__":
    main()
