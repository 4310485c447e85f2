#!/usr/bin/env python3
"""A PoCL that reads less: small_pocl.py FOLDER prints what $OCL_ICD_VENDORS should be, or nothing.

For each program that it has not seen PoCL reads a library of 23,000 functions, which takes 0.9 s of
the 1.3 s that a small program takes. Three of four are of vectors. In FOLDER PoCL lies once more, beside
a library without those of vectors but for 2, 4 and 8 floats; what others call stays, too. A
kernel that calls one that is gone does not build, and says so. Other drivers remain as they are.

Without PoCL, or where it or LLVM is of another form, nothing is printed.
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

VENDORS = pathlib.Path("/etc/OpenCL/vendors")
KEPT = re.compile(rb"Dv[248]_f")


def library(name):
    """The file of a shared library."""
    told = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    stem = re.escape(name.partition(".so")[0]) + r"\.so"
    found = re.search(rf"^\s*{stem}.*=> (\S+)$", told, re.M)
    return pathlib.Path(found[1] if found else name).resolve(strict=True)


def trim(llvm, source, made):
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
        text = name(f, ctypes.byref(length))
        if b"Dv" in text and not KEPT.search(text):
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

    shutil.rmtree(folder, ignore_errors=True)
    for part in ("lib/host", "share/pocl", "vendors"):
        (folder / part).mkdir(parents=True)
    shutil.copy(lib, folder / "lib/host" / lib.name)
    shutil.copytree(lib.parent / "pocl", folder / "lib/host/pocl")
    for file in shared.iterdir():
        made = folder / "share/pocl" / file.name
        if file.suffix == ".bc" and file.stem.split("-")[-1] in wanted:
            trim(llvm, file, made)
        else:
            made.symlink_to(file)
    for driver in drivers:
        own = folder / "lib/host" / lib.name
        text = f"{own}\n" if driver == pocl else driver.read_text()
        (folder / "vendors" / driver.name).write_text(text)


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    try:
        make(folder)
    except (OSError, AttributeError, AssertionError, StopIteration, TypeError) as e:
        print(f"PoCL as it is: {e!r}", file=sys.stderr)
        return
    print(folder / "vendors")


if __name__ == "__main__":
    main()
