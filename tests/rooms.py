#!/usr/bin/env python3
"""Does a library call one that lies above it?

    rooms.py --build build [-v]

The libraries of the tree lie on top of each other; what a library may see is what
target_link_libraries() of the CMake files says, and what that brings. A static library that calls
upwards may link all the same, where something else has brought the object that it wants. So the
names that each library lacks, as nm tells them, are looked for in those that it does not see.
Prints each such name with both objects, and their number: 0 is what is wanted.
"""

import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[1]


def edges():
    """library -> those that it is linked to, by the CMake files."""
    links = collections.defaultdict(set)
    for file in TREE.rglob("CMakeLists.txt"):
        if "build" in file.relative_to(TREE).parts or file.is_relative_to(TREE / "tests"):
            continue
        text = re.sub(r"#.*", "", file.read_text())
        rooms = re.findall(r"\bingot_room\((\w+)\s+([^)]*)\)", text)
        for room, others in rooms:
            links["ingot_" + room] |= {"ingot_" + o for o in others.split()}
        for name, others in re.findall(r"target_link_libraries\((ingot\w*)([^)]*)\)", text):
            links[name] |= set(re.findall(r"\bingot_\w+", others)) - {"ingot_flags"}
            if "${rooms}" in others:
                links[name] |= {"ingot_" + room for room, _ in rooms}
    return links


def seen(links, name):
    found, todo = set(), [name]
    while todo:
        for other in links.get(todo.pop(), ()):
            if other not in found:
                found.add(other)
                todo.append(other)
    return found


def names(library):
    """What it defines and what it lacks, each with an object."""
    text = subprocess.run(
        ["nm", "-A", str(library)], capture_output=True, text=True, check=True
    ).stdout
    has, lacks = {}, {}
    for line in text.splitlines():
        at, *words = line.rsplit(":", 1)[0].split(":")[-1], *line.rsplit(":", 1)[1].split()
        if len(words) == 3 and words[1] in "TDBRVWC":
            has[words[2]] = at
        elif len(words) == 2 and words[0] == "U":
            lacks.setdefault(words[1], at)
    return has, {n: o for n, o in lacks.items() if n not in has}


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--build", type=pathlib.Path, required=True)
    p.add_argument("-v", action="store_true", help="what each library sees")
    opt = p.parse_args()
    libraries = {
        f.name[3:-2]: f
        for f in opt.build.rglob("libingot_*.a")
        if "CMakeFiles" not in f.parts
        and "_deps" not in f.parts
        and not any(d.name in ("sanitized", "install") for d in f.parents)
    }
    links = edges()
    made = " ".join(
        f.read_text() for f in [*TREE.glob("CMakeLists.txt"), *TREE.glob("c*/**/CMakeLists.txt")]
    )
    kept = links.keys() - set(
        re.findall(r"add_library\((\w+) INTERFACE", made)
    )  # others are of an older tree
    libraries = {n: f for n, f in libraries.items() if n in kept}
    if not shutil.which("nm") or not libraries:
        print("skipped: no nm, or no libraries")
        return 77
    table = {name: names(f) for name, f in libraries.items()}
    upward = calls = 0
    for name, (has, lacks) in sorted(table.items()):
        below = seen(links, name)
        if opt.v:
            print(name, "sees", " ".join(sorted(below)))
        if name in below:
            print(f"{name} sees itself, by way of what it is linked to")
            upward += 1
        for other, (there, _) in sorted(table.items()):
            for wanted in sorted(lacks.keys() & there.keys()) if other != name else ():
                calls += 1
                if other not in below:
                    upward += 1
                    print(
                        f"{name} ({lacks[wanted]}) calls {wanted}() of {other} ({there[wanted]}), which it does not see"
                    )
    print(
        f"{len(table)} libraries, {calls} names that cross from one to another, {upward} of them upwards"
    )
    return upward > 0


if __name__ == "__main__":
    sys.exit(main())
