#!/usr/bin/env python3
"""A PoCL that reads less: small_pocl.py FOLDER prints what $OCL_ICD_VENDORS should be.

For each program that it has not seen PoCL reads a header of 18,000 declarations and a library of
23,000 functions, which take 0.9 s of the 1.1 s that a small program takes. In FOLDER PoCL lies once
more, beside those of them alone that the tree's texts name, and of vectors those of 2, 4 and 8
floats; what others call stays, too. A kernel that calls one that is gone does not build, and says
so. Other drivers remain as they are.

Without PoCL, or where it or LLVM is of another form, FOLDER names the drivers that there are.
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

VENDORS = pathlib.Path("/etc/OpenCL/vendors")
TREE = pathlib.Path(__file__).resolve().parents[2]
SOURCES = (
    "runtime_min",
    "targets",
    "codegen",
    "tests/bundle",
    "tests/recipes",
)  # what names functions
MANGLED = re.compile(rb"_Z(\d+)(?:_cl_)?(\w+)")
VECTORS = re.compile(rb"Dv(?![248]_[fi])")  # that are none of floats and ints
DECLARED = re.compile(r"^\w[\w *]*__ovld.*?(\w+)\(.*\);$")
OF_VECTORS = re.compile(r"\b((double|half|uint|u?(char|short|long))\d|(float|int)(3|16))")


def library(name):
    """The file of a shared library."""
    told = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    stem = re.escape(name.partition(".so")[0]) + r"\.so"
    found = re.search(rf"^\s*{stem}.*=> (\S+)$", told, re.M)
    return pathlib.Path(found[1] if found else name).resolve(strict=True)


def words_of(folders):
    """All words of the tree's sources there."""
    files = [f for d in folders for f in (TREE / d).rglob("*") if f.suffix in (".c", ".h", ".py")]
    return {w for f in files for w in re.findall(rb"\w+", f.read_bytes())}


def is_named(function, words):
    """By its name in the library; those that no text could name are what others are made of."""
    found = MANGLED.match(function)
    if not found:
        return True
    start = found.start(2)
    end = found.end(1) + int(found[1])
    return function[start:end] in words and not VECTORS.search(function[end:])


def trim_header(source, made, words):
    """Declarations of one line each; a line that is none stays."""
    kept = []
    for line in source.read_text().splitlines(keepends=True):
        found = DECLARED.match(line)
        if not found or (found[1].encode() in words and not OF_VECTORS.search(line)):
            kept.append(line)
    made.write_text("".join(kept))


def trim(llvm, source, made, words):
    pointer = ctypes.c_void_p

    def call(name, result, *words):
        f = getattr(llvm, name)
        f.restype, f.argtypes = result, [type(w) for w in words]
        return f(*words)

    def at(name, *words):
        return pointer(call(name, pointer, *words))

    def each(first, following, of):
        item = at(first, of)
        while item.value:
            yield item
            item = at(following, item)

    buffer, module, message = pointer(), pointer(), ctypes.c_char_p()
    path, length = str(source).encode(), ctypes.c_size_t()
    read = llvm.LLVMCreateMemoryBufferWithContentsOfFile
    assert not read(path, ctypes.byref(buffer), ctypes.byref(message))
    context, parse = at("LLVMGetGlobalContext"), llvm.LLVMParseBitcodeInContext2
    assert not parse(context, buffer, ctypes.byref(module))
    call("LLVMStripModuleDebugInfo", ctypes.c_int, module)

    name = llvm.LLVMGetValueName2
    name.restype = ctypes.c_char_p
    gone = {}
    for f in each("LLVMGetFirstFunction", "LLVMGetNextFunction", module):
        if not is_named(name(f, ctypes.byref(length)), words):
            gone[f.value] = f

    def is_called(f):
        """By a function that stays."""
        for use in each("LLVMGetFirstUse", "LLVMGetNextUse", f):
            user = at("LLVMIsAInstruction", at("LLVMGetUser", use))
            if not user.value:
                return True
            caller = at("LLVMGetBasicBlockParent", at("LLVMGetInstructionParent", user))
            if caller.value not in gone:
                return True
        return False

    called = [True]
    while called:
        called = [f for f in gone.values() if is_called(f)]
        for f in called:
            del gone[f.value]
    for f in gone.values():
        nothing = at("LLVMGetUndef", at("LLVMTypeOf", f))
        call("LLVMReplaceAllUsesWith", None, f, nothing)
    for f in gone.values():
        call("LLVMDeleteFunction", None, f)
    part = made.with_suffix(f".{os.getpid()}")
    assert not llvm.LLVMWriteBitcodeToFile(module, str(part).encode())
    part.replace(made)


def make(folder):
    drivers = sorted(VENDORS.glob("*.icd"))
    pocl = next(f for f in drivers if "pocl" in f.name)
    lib = library(pocl.read_text().strip())
    linked = subprocess.run(["ldd", lib], capture_output=True, text=True).stdout
    llvm = ctypes.CDLL(re.search(r"libLLVM\S* => (\S+)", linked)[1])
    shared = lib.parents[2] / "share/pocl"  # PoCL finds it from where its library lies
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    wanted = [w for w in ("avx2", "avx512") if w in flags or f"{w}f" in flags]
    words = words_of(SOURCES)

    for part in ("lib/host", "share/pocl/include", "vendors"):
        (folder / part).mkdir(parents=True)
    shutil.copy(lib, folder / "lib/host" / lib.name)
    shutil.copytree(lib.parent / "pocl", folder / "lib/host/pocl")
    for file in [*shared.glob("*.*"), *shared.glob("include/*")]:
        made = folder / "share/pocl" / file.relative_to(shared)
        if file.suffix == ".bc" and file.stem.split("-")[-1] in wanted:
            trim(llvm, file, made, words)
        elif file.name == "opencl-c.h":
            trim_header(file, made, words)
        else:
            made.symlink_to(file)
    (folder / "vendors" / pocl.name).write_text(f"{folder / 'lib/host' / lib.name}\n")
    return pocl


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    pocl = None
    try:
        pocl = make(folder)
    except (OSError, AttributeError, AssertionError, StopIteration, TypeError) as e:
        print(f"PoCL as it is: {e!r}", file=sys.stderr)
    (folder / "vendors").mkdir(parents=True, exist_ok=True)
    for driver in VENDORS.glob("*.icd"):
        if driver != pocl:
            shutil.copy(driver, folder / "vendors")
    print(folder / "vendors")


if __name__ == "__main__":
    main()
