"""ROCm's compiler for tests: clang with ROCm's device libraries, as Debian has them, or hipcc as it
is found."""

import pathlib
import re
import shutil
import subprocess

LIBRARIES = "/usr/lib/*/amdgcn/bitcode"
# What the libraries say of an architecture, of one that they do not know yet.
ISA = """extern const __constant unsigned __oclc_ISA_version;
const __constant unsigned __oclc_ISA_version = {};
"""
NEWER = {"1100": 11000}


def clang():
    """The version that knows the libraries' bits: the one that is packaged with them."""
    return next((c for c in ("clang-15", "clang-16", "clang-19") if shutil.which(c)), None)


def libraries(cc, work):
    """A folder of them, with what they lack."""
    found = next(iter(sorted(pathlib.Path("/usr/lib").glob("*/amdgcn/bitcode/ocml.bc"))), None)
    if not found:
        return None
    folder = work / "bitcode"
    folder.mkdir(parents=True, exist_ok=True)
    for library in found.parent.glob("*.bc"):
        if not (folder / library.name).exists():
            (folder / library.name).symlink_to(library)
    for arch, number in NEWER.items():
        library = folder / f"oclc_isa_version_{arch}.bc"
        if library.exists():
            continue
        (work / "isa.cl").write_text(ISA.format(number))
        words = ["-x", "cl", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-emit-llvm"]
        subprocess.run([cc, *words, "-c", work / "isa.cl", "-o", library], check=True)
    return folder


def compiler(work):
    """The path of a program that takes hipcc's arguments; None: there is none."""
    cc = clang()
    folder = cc and libraries(cc, work)
    if not folder:
        return shutil.which("hipcc")
    script = work / "hipcc"
    script.write_text(
        f"#!/bin/sh\nshift\nexec {cc} --cuda-device-only --hip-device-lib-path={folder}"
        ' -Rpass-analysis=kernel-resource-usage -x hip "$@"\n'
    )
    script.chmod(0o755)
    return script


def images(bundle):
    """How many compiled programs a bundle has."""
    text = (bundle / "model_kernels.c").read_text()
    return len(re.findall(r"^static const unsigned char image\d+\[\]", text, re.M))
