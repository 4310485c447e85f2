#!/usr/bin/env python3
"""Renews igrt_letters.h, which characters are letters and digits: igrt_letters.py > igrt_letters.h"""

import textwrap
import unicodedata


def runs(kind):
    """(first, last) of characters of a general category."""
    out = []
    for c in range(0x110000):
        if unicodedata.category(chr(c))[0] != kind:
            continue
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def main():
    print(
        f"/* igrt_letters.h - letters and digits of Unicode {unicodedata.unidata_version}, ascending;\n"
        " * renewed by runtime_min/igrt_letters.py.\n"
        " *\n"
        " * X(first, last): all of them are of general category L (LETTERS) or N (DIGITS). */\n"
        "/* clang-format off */"
    )
    for name, kind in (("LETTERS", "L"), ("DIGITS", "N")):
        text = " ".join(f"X({a:#x},{b:#x})" for a, b in runs(kind))
        print(f"#define IGRT_{name}(X) \\")
        lines = textwrap.wrap(text, 92, break_long_words=False)
        print(" \\\n".join("    " + line for line in lines))
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
