#!/usr/bin/env python3
"""Renews igrt_case.h, simple case mappings of Unicode: igrt_case.py > lib/igrt_case.h"""

import textwrap
import unicodedata


def runs(to):
    """(first, last, step, difference) of characters that map to one other character."""
    pairs = [
        (c, ord(to(chr(c))))
        for c in range(0x110000)
        if not 0xD800 <= c < 0xE000 and len(to(chr(c))) == 1 and to(chr(c)) != chr(c)
    ]
    out, i = [], 0
    while i < len(pairs):
        best, by = i, 1
        for step in (1, 2):
            j = i
            while (
                j + 1 < len(pairs)
                and pairs[j + 1][0] == pairs[j][0] + step
                and pairs[j + 1][1] - pairs[j + 1][0] == pairs[i][1] - pairs[i][0]
            ):
                j += 1
            if j > best:
                best, by = j, step
        out.append((pairs[i][0], pairs[best][0], by, pairs[i][1] - pairs[i][0]))
        i = best + 1
    return out


def main():
    print(
        f"/* igrt_case.h - which characters have another case, Unicode {unicodedata.unidata_version}; renewed by runtime_min/igrt_case.py.\n"
        " *\n"
        " * CASE_RUN(first, last, step, difference): each of first, first + step, .. last becomes itself +\n"
        " * difference. Characters whose other case is several characters (ß, ŉ) stay as they are. */\n"
        "/* clang-format off */"
    )
    for name, to in (("LOWER", str.lower), ("UPPER", str.upper)):
        runs_text = " ".join(f"X({a:#x},{b:#x},{s},{d})" for a, b, s, d in runs(to))
        print(f"#define CASE_{name}(X) \\")
        lines = textwrap.wrap(runs_text, 112, break_long_words=False)
        print(" \\\n".join("    " + line for line in lines))
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
