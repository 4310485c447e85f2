"""Kernels of CUDA and HIP without a GPU: an emitted .cu or .hip becomes C++, and with the driver's
other calls (cuda_stub.c) the libcuda.so.1 that the bundle finds; of HIP those of hip_stub.c call
the same, by the name of libamdhip64.so.

asm statements are calls of what they do (ptx.h, ptx_wgmma.h), items are fibers (items.h).
"""

import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "onnx"))
import objects  # noqa: E402

SOURCES = sorted(
    [
        *HERE.glob("*.h"),
        *HERE.glob("*.cpp"),
        HERE / "emulate.py",
        HERE.parent / "bundle" / "cuda_stub.c",
        HERE.parent / "bundle" / "hip_stub.c",
    ]
)
CXX = next((cxx for cxx in ("clang++", "g++") if shutil.which(cxx)), None)
# Of kernels: to optimise one takes longer than what it runs for, most of which is below
FLAGS = [
    "-std=c++17",
    "-w",
    "-O0",
    "-ffp-contract=off",
    "-fPIC",
    "-I",
    HERE.parents[1] / "runtime_min",
]
# Of what runs them; fortified, as what some distributions compile is
RUNS = [*FLAGS, "-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]
COMPILED = [
    *HERE.glob("*.cpp"),
    HERE.parent / "bundle" / "cuda_stub.c",
    HERE.parent / "bundle" / "hip_stub.c",
]  # the first that defines a call is it
ORDERS = ("forward", "backward")
KERNEL = re.compile(r'extern "C" __global__ ([^\n]*?)void (\w+)\(([^)]*)\)')
lock = threading.Lock()


class Unbuilt(Exception):
    """The C++ compiler's words."""


def call(*command):
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise Unbuilt(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


# -- what all bundles share ----------------------------------------------------------------------


class Common:
    """What runs kernels, and the driver's calls that do nothing, linked; what kernels include
    (clang reads it precompiled: it takes longer than they do), as words of a command; the words
    that asm may begin with."""

    def __init__(self, folder):
        self.library = folder / "libemulated.so"
        self.included = ["-include", HERE / "ptx_wgmma.h"]
        if CXX == "clang++":
            self.included = ["-include-pch", folder / "ptx_wgmma.pch"]
        text = (folder / "ptx_wgmma.i").read_text()
        self.known = set(re.findall(r"\b(\w+)\(\s*const char \*", text))


def make_common(folder):
    made = [folder / f"{s.stem}.o" for s in COMPILED]
    for source, target in zip(COMPILED, made):
        words = [CXX, *RUNS] if source.suffix == ".cpp" else ["cc", "-fPIC"]
        call(*words, "-c", source, "-o", target)
    call(CXX, "-shared", "-Wl,--allow-multiple-definition", *made, "-o", folder / "libemulated.so")
    header = HERE / "ptx_wgmma.h"
    if CXX == "clang++":
        call(CXX, *FLAGS, "-x", "c++-header", header, "-o", folder / "ptx_wgmma.pch")
    (folder / "ptx_wgmma.i").write_text(call(CXX, *FLAGS, "-E", header))


def kept_common():
    """The folder of what is made of these sources, of this age (clang asks for that): made once,
    and kept with other objects."""
    h = hashlib.blake2b(f"{call(CXX, '--version')}{RUNS}".encode(), digest_size=20)
    for f in (*SOURCES, *sorted((HERE.parents[1] / "runtime_min").glob("*.h"))):
        h.update(f"{f}\0{f.stat().st_mtime_ns}\0".encode() + f.read_bytes())
    kept = objects.folder() / f"emulator-{h.hexdigest()}"
    if not kept.exists():
        part = kept.with_suffix(f".{os.getpid()}")
        part.mkdir()
        make_common(part)
        try:
            part.rename(kept)
        except OSError:  # somebody else was faster
            shutil.rmtree(part)
    return kept


@functools.lru_cache(maxsize=None)
def made_common():
    return Common(kept_common())


def common():
    with lock:
        return made_common()


# -- from CUDA to C++ ----------------------------------------------------------------------------


def memory(text):
    """That of a group is not an item's own."""
    text = re.sub(
        r"__shared__ __align__\(\d+\) ([\w ]+?) (\w+)\[(\d+)\];",
        r"\1 *const \2 = (\1 *)gpu::shared(sizeof(\1) * \3);",
        text,
    )
    return re.sub(
        r"extern __shared__ __align__\(\d+\) unsigned char (\w+)\[\];",
        r"unsigned char *const \1 = gpu::shared(0);",
        text,
    )


def closing(text, at):
    """Behind the parenthesis that closes the one before `at`."""
    depth, quoted = 1, False
    while depth:
        quoted ^= text[at] == '"'
        depth += not quoted and (text[at] == "(") - (text[at] == ")")
        at += 1
    return at


def parts(text, between):
    """Split where no parenthesis or quote is open."""
    out, depth, quoted = [""], 0, False
    for c in text:
        quoted ^= c == '"'
        depth += not quoted and (c == "(") - (c == ")")
        if c == between and not depth and not quoted:
            out.append("")
        else:
            out[-1] += c
    return [p.strip() for p in out]


def operands(section):
    return (
        [re.sub(r'^"[^"]*"\s*', "", p) for p in parts(section, ",") if p] if section.strip() else []
    )


def calls(text, known):
    """asm(text : outputs : inputs : clobbered) is a call of what the first instruction does, or a
    fault."""
    out, end = [], 0
    for m in re.finditer(r"\basm\s*(?:volatile\s*)?\(", text):
        out.append(text[end : m.start()])
        end = closing(text, m.end())
        sections = parts(text[m.end() : end - 1], ":") + ["", ""]
        words = "".join(re.findall(r'"([^"]*)"', sections[0])).strip()
        words = re.sub(r"^\{\s*(\.reg[^;]*;\s*)*(\w+:\s*)?", "", words)
        name, rest = re.match(r"([^\s;]*)(.*)", words, re.S).groups()
        name = re.sub(r"\W", "_", name) or "nothing"
        args = [f'"{rest}"', *operands(sections[1]), *operands(sections[2])]
        out.append(
            f"ptx::{name}({', '.join(args)})"
            if name in known
            else f'gpu::fault("no emulation of {name}")'
        )
    return "".join(out) + text[end:]


def entry(head, name, parameters):
    """Arguments as the driver gets them: an array of pointers to each."""
    types = [
        re.sub(r"\w+$", "", p.replace("__restrict__", "").replace("__grid_constant__", "")).strip()
        for p in parts(parameters, ",")
    ]
    values = ", ".join(f"*({t} *)args[{i}]" for i, t in enumerate(types))
    copies = ", ".join(f"(void *)new {t}(*({t} *)args[{i}])" for i, t in enumerate(types))
    return (
        f"static void run_{name}(void **args)\n{{\n    {name}({values});\n}}\n"
        f"static void **keep_{name}(void **args)\n{{\n    return new void *[{len(types)}]{{{copies}}};\n}}\n"
    )


def row(head, name):
    cluster = re.search(r"__cluster_dims__\((\d+)", head)
    return f'{{"{name}", run_{name}, keep_{name}, {cluster[1] if cluster else 1}}}'


def driver(bundle, folder, change=lambda text: text):
    """A libcuda.so.1 in the folder that has the bundle's kernels; their text, as it is changed."""
    made = common()
    folder.mkdir()
    sources = [f for f in sorted(bundle.glob("*_kernels.*")) if f.suffix in (".cu", ".hip")]
    text = change("\n".join(f.read_text() for f in sources))
    kernels = KERNEL.findall(text)
    rows = ", ".join([row(head, name) for head, name, _ in kernels] + ["{0, 0, 0, 1}"])
    source, kernel_source = folder / "before.cpp", folder / "kernels.cpp"
    source.write_text(
        re.sub(r"^\s*#\s*include\s*<.*", "", memory(text), flags=re.M)
        + "".join(entry(*k) for k in kernels)
        + f"const gpu::Entry gpu::entries[] = {{{rows}}};\n"
    )
    # the host's igrt_num.h is in its place
    words = calls(call(CXX, *FLAGS, "-DIGRT_NUM_H", "-E", "-P", source), made.known)
    kernel_source.write_text(words)
    call(
        CXX,
        *FLAGS,
        *made.included,
        *objects.linker(CXX),
        "-shared",
        kernel_source,
        made.library,
        "-o",
        folder / "libcuda.so.1",
    )
    (folder / "libamdhip64.so").symlink_to("libcuda.so.1")
    return text


def environment(folder, order):
    """With it a bundle's program finds that driver; order: of the items, one of ORDERS."""
    return {"LD_LIBRARY_PATH": str(folder), "EMULATED_ORDER": order, "CUDA_STUB_LOG": os.devnull}


def printed(bundle, source, at, emulated, flags=(), words=()):
    """The numbers that a program of one's own prints, linked with a bundle's library in the folder
    `at`: there its kernels are emulated, or run where the target's are."""
    cc = os.environ.get("CC", "cc")
    call("make", "-s", "-C", bundle, "libmodel.a", f"CC={cc}")
    (at / "main.c").write_text(source)
    files = [at / "main.c", bundle / "libmodel.a", "-lm", "-lpthread", "-ldl"]
    call(*cc.split(), "-O1", *flags, f"-I{bundle}", "-o", bundle / "main", *files)
    env = {}
    if emulated:
        driver(bundle, at / "driver")
        env = environment(at / "driver", ORDERS[0])
    p = subprocess.run(
        [bundle / "main", *words], env={**os.environ, **env}, capture_output=True, text=True
    )
    assert p.returncode == 0, f"{bundle}: status {p.returncode}\n{p.stderr}"
    return [float(v) for v in p.stdout.split()]
