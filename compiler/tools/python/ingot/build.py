"""The shared library of a bundle: make builds it, or this file where there is no make.

The C compiler is $CC, else cc; else the zig of PyPI's package ziglang, which brings a whole C
toolchain: `pip install ziglang` is all that a machine without a compiler needs."""

import concurrent.futures
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import sys

from .command import FileError, ToolError, call


def manifest(folder):
    try:
        lines = (folder / "ingot.manifest").read_text().splitlines()
    except OSError:
        raise FileError(
            f"{folder}: not a bundle: it has no ingot.manifest; ingot.compile() writes one"
        ) from None
    return [name for name in lines[1:] if name]


def c_compiler():
    """The words of the C compiler that is there."""
    given = os.environ.get("CC", "").strip()
    if given:
        return given
    if shutil.which("cc"):
        return "cc"
    if importlib.util.find_spec("ziglang"):
        # by its path: a module that the package imports itself is not run by -m without a warning
        return shlex.join([sys.executable, str(pathlib.Path(__file__).with_name("zig.py"))])
    raise ToolError(
        "no C compiler: cc is not on the PATH; install gcc or clang, or `pip install ziglang`, "
        "or name one in $CC"
    )


class Rules:
    """What a bundle's Makefile says, as far as bundles have it: variables, and variables that
    differ for some objects (`$(FOR_V3): MACHINE = -mavx2`)."""

    def __init__(self, text):
        self.values, self.apart = {}, []
        for line in re.sub(r"\\\n", " ", text).splitlines():
            found = re.match(r"(\w+) (\??)= ?(.*)", line)
            special = re.match(r"([^#\t].*): (\w+) = ?(.*)", line)
            if found:
                if not found[2] or not self.values.get(found[1]):
                    self.values[found[1]] = found[3]
            elif special:
                self.apart.append((special[1], special[2], special[3]))

    def text(self, name, target=None):
        value = self.values.get(name, "")
        for objects, variable, its in self.apart:
            if variable == name and target in self.expand(objects).split():
                value = its
        return self.expand(value, target)

    def expand(self, text, target=None):
        def one(m):
            if not m[2]:
                return self.text(m[1], target)
            words = self.text(m[1], target).split()
            return " ".join(w[: -len(m[2])] + m[3] if w.endswith(m[2]) else w for w in words)

        return re.sub(r"\$\((\w+)(?::([\w.]+)=([\w.]+))?\)", one, text)


def without_make(folder, library, text, cc, cflags):
    """What `make lib<name>.so` does."""
    rules = Rules(text)
    flags = shlex.split(f"{rules.text('FLAGS')} {cflags}")
    objects = rules.text("SHARED").split()

    def compile_one(name):
        source = name[: -len(".pic.o")] + ".c"
        assembled = not (folder / source).exists()
        if assembled:  # weights by .incbin
            source = source[:-2] + ".S"
        machine = shlex.split(rules.text("MACHINE", name))
        command = [*cc, *flags, *machine, "-fPIC", f"-I{folder}", "-c"]
        call([*command, "-o", str(folder / name), str(folder / source)])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(compile_one, objects))
    paths = [str(folder / name) for name in objects]
    libs = shlex.split(rules.text("LDLIBS"))
    call([*cc, *flags, "-shared", "-o", str(library), *paths, *libs])


def build(folder, cflags, tell=None):
    """Builds lib<name>.so, unless it is newer than the bundle's sources; returns its path."""
    names = manifest(folder)
    try:
        text = (folder / "Makefile").read_text()
        goal = re.search(r"^(lib\S+\.so):", text, re.M)
    except OSError:
        goal = None
    if not goal:
        raise ToolError(
            f"{folder}: this bundle is for another machine: its Makefile has no shared library"
        )
    library = folder / goal[1]
    newest = max((folder / name).stat().st_mtime_ns for name in names if (folder / name).exists())
    if library.exists() and library.stat().st_mtime_ns >= newest:
        return library
    cc = c_compiler()
    if tell:
        tell(f"{cc} builds {library.name}")
    if not shutil.which("make"):
        without_make(folder, library, text, shlex.split(cc), cflags)
        return library
    own = [f"CC={cc}"] if cc != os.environ.get("CC", "cc") else []
    jobs = f"-j{os.cpu_count() or 1}"
    call(["make", "-s", "-C", str(folder), jobs, f"CFLAGS={cflags}", *own, library.name])
    return library
