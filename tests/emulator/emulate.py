"""Kernels of CUDA and HIP without a GPU: an emitted .cu or .hip becomes C++, and with the driver's
other calls (cuda_stub.c) the libcuda.so.1 that the bundle finds; of HIP those of hip_stub.c call
the same, by the name of libamdhip64.so.

asm statements are calls of what they do (ptx.h, ptx_wgmma.h), items are fibers (items.h).
"""

import argparse
import fcntl
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
# By the C compiler, which does so in a third of clang's time
PREPROCESS = [
    "cc",
    "-E",
    "-P",
    "-x",
    "c++",
    "-std=c++17",
    "-w",
    "-I",
    HERE.parents[1] / "runtime_min",
]
# Of what runs them; fortified, as what some distributions compile is
RUNS = [*FLAGS, "-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]
APART = [HERE / "items.cpp"]  # its longjmp() is not fortified
TOGETHER = [f for f in sorted(HERE.glob("*.cpp")) if f not in APART]  # their headers once
# The first that defines a call is it
STUBS = [HERE.parent / "bundle" / "cuda_stub.c", HERE.parent / "bundle" / "hip_stub.c"]
ORDERS = ("forward", "backward")
PARENTHESIS = re.compile(r'"[^"]*"|[()]')
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
    whole = folder / "together.cpp"
    whole.write_text("".join(f'#include "{f}"\n' for f in TOGETHER))
    sources = [whole, *APART, *STUBS]
    made = [folder / f"{s.stem}.o" for s in sources]
    for source, target in zip(sources, made):
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
    with kept.with_suffix(".lock").open("w") as waits:  # for somebody else who makes it
        fcntl.flock(waits, fcntl.LOCK_EX)
        if not kept.exists():
            part = kept.with_suffix(f".{os.getpid()}")
            part.mkdir()
            make_common(part)
            part.rename(kept)
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
    depth = 1
    for found in PARENTHESIS.finditer(text, at):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    raise Unbuilt("a parenthesis that is not closed")


def parts(text, between):
    """Split where no parenthesis or quote is open."""
    out, depth, start = [], 0, 0
    for found in re.finditer(rf'"[^"]*"|[(){between}]', text):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if found[0] == between and not depth:
            out.append(text[start : found.start()])
            start = found.end()
    return [p.strip() for p in (*out, text[start:])]


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
        name, args = asm_call(text[m.end() : end - 1])
        known_one = f"ptx::{name}({args})"
        out.append(known_one if name in known else f'gpu::fault("no emulation of {name}")')
    return "".join(out) + text[end:]


@functools.lru_cache(maxsize=None)
def asm_call(inside):
    """The first instruction of what is between the parentheses, and what it is called with."""
    sections = parts(inside, ":") + ["", ""]
    words = "".join(re.findall(r'"([^"]*)"', sections[0])).strip()
    words = re.sub(r"^\{\s*(\.reg[^;]*;\s*)*(\w+:\s*)?", "", words)
    name, rest = re.match(r"([^\s;]*)(.*)", words, re.S).groups()
    args = [f'"{rest}"', *operands(sections[1]), *operands(sections[2])]
    return re.sub(r"\W", "_", name) or "nothing", ", ".join(args)


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


def same(text):
    return text


def driver(bundle, folder, change=same):
    """A libcuda.so.1 in the folder that has the bundle's kernels; their text, as it is changed."""
    return drivers([(bundle, folder, change)])[0]


def drivers(asked):
    """As driver(), of several bundles in one compilation, most of which is what they share: each
    folder has the library, and the number of its kernels there."""
    texts, spaces = [], []
    for i, (bundle, folder, change) in enumerate(asked):
        folder.mkdir()
        sources = [f for f in sorted(bundle.glob("*_kernels.*")) if f.suffix in (".cu", ".hip")]
        texts.append(change("\n".join(f.read_text() for f in sources)))
        spaces.append(f"namespace kernels{i}\n{{\n{host_text(texts[-1], folder)}}}\n")
    tables = ", ".join(f"kernels{i}::entries" for i in range(len(asked)))
    first = asked[0][1]
    source, made, library = first / "kernels.cpp", first / "kernels.o", first / "libcuda.so.1"
    ending = f"const gpu::Entry *const gpu::tables[] = {{{tables}}};\n"
    source.write_text("".join([*spaces, ending]))
    call(CXX, *FLAGS, *common().included, "-c", source, "-o", made)
    call("ld", "-shared", made, common().library, "-o", library)
    for i, (_, folder, _) in enumerate(asked):
        if i:
            os.link(library, folder / library.name)
        (folder / "libamdhip64.so").symlink_to(library.name)
        (folder / "table").write_text(str(i))
    return texts


def host_text(text, folder):
    """Kernels as C++, and the table of them."""
    kernels = KERNEL.findall(text)
    rows = ", ".join([row(head, name) for head, name, _ in kernels] + ["{0, 0, 0, 1}"])
    text = re.sub(r"^\s*#\s*include\s*<.*", "", memory(text), flags=re.M)
    source = folder / "before.cpp"
    source.write_text(
        text.replace('extern "C" __global__', "__global__")
        + "".join(entry(*k) for k in kernels)
        + f"static const gpu::Entry entries[] = {{{rows}}};\n"
    )
    # the host's igrt_num.h is in its place
    return calls(call(*PREPROCESS, "-DIGRT_NUM_H", source), common().known)


def environment(folder, order):
    """With it a bundle's program finds that driver; order: of the items, one of ORDERS."""
    return {
        "LD_LIBRARY_PATH": str(folder),
        "EMULATED_ORDER": order,
        "EMULATED_TABLE": (folder / "table").read_text(),
        "CUDA_STUB_LOG": os.devnull,
    }


def arguments(target=None, more=()):
    """The words of a test of bundles, which it skips where nothing compiles their kernels."""
    p = argparse.ArgumentParser()
    p.add_argument("--ingot", required=True)
    p.add_argument("--device", action="store_true", help="a GPU is here")
    if target:
        p.add_argument("--target", default=target)
    for name, how in more:
        p.add_argument(name, **how)
    a = p.parse_args()
    if not a.device and not CXX:
        print("skipped: there is no C++ compiler")
        sys.exit(77)
    return a


def printed(bundle, source, at, emulated, flags=(), words=(), orders=ORDERS[:1]):
    """The numbers that a program of one's own prints, linked with a bundle's library in the folder
    `at`: there its kernels are emulated, in these orders, which agree, or run where the target's are."""
    cc = os.environ.get("CC", "cc")
    call("make", "-s", "-C", bundle, "libmodel.a", f"CC={cc}")
    (at / "main.c").write_text(source)
    files = [at / "main.c", bundle / "libmodel.a", "-lm", "-lpthread", "-ldl"]
    call(*cc.split(), "-O1", *flags, f"-I{bundle}", "-o", bundle / "main", *files)
    if emulated:
        driver(bundle, at / "driver")
    texts = set()
    for order in orders:
        env = environment(at / "driver", order) if emulated else {}
        p = subprocess.run(
            [bundle / "main", *words], env={**os.environ, **env}, capture_output=True, text=True
        )
        assert p.returncode == 0, f"{bundle}: status {p.returncode}\n{p.stderr}"
        texts.add(p.stdout)
    assert len(texts) == 1, f"{bundle}: the order decides: {texts}"
    return [float(v) for v in texts.pop().split()]
