#!/usr/bin/env python3
"""An installed ingot in a project of somebody else's (examples/project), by find_package, by
pkg-config and, with --all, by add_subdirectory; what is installed; what the libraries show.

    project.py --build build [--all]      build: where ingot is built

The project is copied out of the tree first. A model that changes, in its own file or in that of its
weights, is compiled again; one that does not is not. With arm-none-eabi-gcc the model is built for
a Cortex-M4 by a toolchain file.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
HEADERS = {
    "dtypes.def",
    "ingot.h",
    "gguf.h",
    "ingot_model.h",
    "ingot_onnx.h",
    "ingot_ops.h",
    "ingot_train.h",
    "monoids.def",
    "safetensors.h",
    "tflite.h",
}


def call(*command, env=None, cwd=None, status=0):
    done = subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **(env or {})},
    )
    if done.returncode != status:
        sys.exit(
            f"{' '.join(map(str, command))}: status {done.returncode}, not {status}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done.stdout + done.stderr


def want(good, what):
    if not good:
        sys.exit(f"failed: {what}")


def look_at(prefix):
    """Public headers and names, and nothing else."""
    found = {
        str(p.relative_to(prefix / "include/ingot"))
        for p in (prefix / "include").rglob("*")
        if p.is_file()
    }
    want(found == HEADERS, f"headers: {sorted(found)}")
    names = re.findall(
        r"^\S+ [A-Z] (\S+)", call("nm", "-D", "--defined-only", prefix / "lib/libingot.so"), re.M
    )
    strange = [n for n in names if not re.fullmatch(r"ingot_\w+@@INGOT_0\.1|INGOT_0\.1", n)]
    want(len(names) > 100 and not strange, f"names in libingot.so: {strange or names}")
    lines = re.findall(r"^\w+ [TDBRVWC] (\S+)", call("nm", prefix / "lib/libingot.a"), re.M)
    strange = [n for n in lines if not n.startswith("ingot_")]
    want(len(lines) > 100 and not strange, f"names in libingot.a: {strange}")
    declared = set(
        re.findall(
            r"\b(ingot_\w+)\(", "".join((prefix / "include/ingot" / h).read_text() for h in HEADERS)
        )
    )
    private = (
        set(lines)
        - declared
        - {
            "ingot_" + n
            for n in re.findall(r"\bV\((\w+)\)", (prefix / "include/ingot/ingot.h").read_text())
        }
    )
    want(not private, f"names that no header declares: {private}")
    for page in ("ingot", "ingot-compile", "ingot-bench"):
        want(
            (prefix / f"share/man/man1/{page}.1").read_text().startswith(".TH INGOT"),
            f"manual {page}",
        )


def headers_are_clean(prefix, work):
    """Each header alone, as C and as every C++."""
    for header in sorted(h for h in HEADERS if h.endswith(".h")):
        source = work / "one.c"
        source.write_text(f'#include "{header}"\nint main(void) {{ return 0; }}\n')
        first = '#include "ingot.h"\n' if header == "ingot_ops.h" else ""
        source.write_text(first + source.read_text())
        for standard in ("c99", "c11"):
            call(
                "cc",
                f"-std={standard}",
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
                "-fsyntax-only",
                f"-I{prefix}/include/ingot",
                source,
            )
        for standard in (
            ("c++98", "c++11", "c++14", "c++17", "c++20") if shutil.which("c++") else ()
        ):
            call(
                "c++",
                "-x",
                "c++",
                f"-std={standard}",
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Wno-long-long",
                "-Werror",
                "-fsyntax-only",
                f"-I{prefix}/include/ingot",
                source,
            )


def digits_are_read(program):
    text = call(program, TREE / "examples/digits/samples.txt")
    want(re.search(r"^(\d+) of \d+ right", text, re.M), text)
    return text


def use_cmake(out, ways, work, generator):
    build = work / ("build-" + re.sub(r"\W", "", generator))
    call("cmake", "-S", out / "project", "-B", build, "-G", generator, *ways)
    call("cmake", "--build", build, "-j2")
    text = digits_are_read(build / "show")
    call(build / "mlp", build / "net")
    call(build / "mlp_static", build / "net2")
    for name in ("mlp.h", "mlp.c"):
        want(
            (build / "net" / name).read_bytes() == (build / "net2" / name).read_bytes(),
            "shared and static give the same",
        )
    said = call("cmake", "--build", build)
    want("ingot compile" not in said, f"compiled again although nothing changed: {said}")
    os.utime(out / "digits/digits.onnx")
    said = call("cmake", "--build", build)
    want("ingot compile" in said, f"not compiled again: {said}")
    return text


def external(python, work, ways):
    """Data beside the model, which only ingot knows of."""
    folder = work / "external"
    folder.mkdir()
    script = """
import onnx, numpy as np, sys
from onnx import helper, numpy_helper, TensorProto as T
w = numpy_helper.from_array(np.arange(4096, dtype=np.float32).reshape(64, 64), "w")
g = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", T.FLOAT, [1, 64])],
                      [helper.make_tensor_value_info("y", T.FLOAT, [1, 64])], [w])
m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(m, sys.argv[1], save_as_external_data=True, location="weights of it.bin", size_threshold=0)
"""
    done = subprocess.run(
        [python, "-c", script, str(folder / "m.onnx")], capture_output=True, text=True
    )
    if done.returncode:
        print("external data: skipped, there is no onnx")
        return
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(x LANGUAGES C)\nfind_package(ingot REQUIRED)\n"
        "ingot_add_model(m m.onnx NAME net FLAGS --target c:c99)\nadd_library(l SHARED l.c)\n"
        "target_link_libraries(l PRIVATE m)\n"
    )
    (folder / "l.c").write_text(
        '#include "net.h"\nint f(void);\nint f(void) { return (int)sizeof(net_ctx); }\n'
    )
    call(
        "cmake",
        "-S",
        folder,
        "-B",
        folder / "b",
        "-G",
        "Ninja" if shutil.which("ninja") else "Unix Makefiles",
        *ways,
    )
    call("cmake", "--build", folder / "b")
    os.utime(folder / "weights of it.bin")
    want(
        "ingot compile" in call("cmake", "--build", folder / "b"),
        "the weights' file is not looked at",
    )
    want("ingot compile" not in call("cmake", "--build", folder / "b"), "compiled without need")


def cross(out, ways, work):
    if not shutil.which("arm-none-eabi-gcc"):
        print("cross: skipped, there is no arm-none-eabi-gcc")
        return
    (work / "arm.cmake").write_text(
        "set(CMAKE_SYSTEM_NAME Generic)\nset(CMAKE_SYSTEM_PROCESSOR arm)\nset(CMAKE_C_COMPILER arm-none-eabi-gcc)\n"
        "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\nset(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)\n"
        'set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-m4 -mthumb")\n'
    )
    (out / "project/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(x LANGUAGES C)\nfind_package(ingot REQUIRED)\n"
        "ingot_add_model(digits ../digits/digits.onnx FLAGS --target c:cortex-m4)\nadd_library(l l.c)\ntarget_link_libraries(l PRIVATE digits)\n"
    )
    (out / "project/l.c").write_text(
        '#include "digits.h"\nint f(void);\nint f(void) { return (int)sizeof(digits_ctx); }\n'
    )
    build = work / "build-arm"
    call(
        "cmake",
        "-S",
        out / "project",
        "-B",
        build,
        f"-DCMAKE_TOOLCHAIN_FILE={work}/arm.cmake",
        f"-Dingot_DIR={ways[0].split('=')[1]}/lib/cmake/ingot",
    )
    call("cmake", "--build", build)
    said = call("arm-none-eabi-readelf", "-A", *build.rglob("libdigits.a"))
    want("Tag_CPU_arch: v7E-M" in said, said)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--build", required=True, type=pathlib.Path)
    p.add_argument("--all", action="store_true", default=bool(os.environ.get("INGOT_ALL")))
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        prefix = work / "usr"
        call("cmake", "--install", o.build, "--prefix", prefix)
        look_at(prefix)
        headers_are_clean(prefix, work)
        out = work / "outside"
        for name in ("project", "digits", "mlp"):
            shutil.copytree(TREE / "examples" / name, out / name)
        ways = [f"-DCMAKE_PREFIX_PATH={prefix}"]
        texts = {use_cmake(out, ways, work, "Unix Makefiles")}
        if shutil.which("pkg-config"):
            env = {"PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig", "LD_LIBRARY_PATH": f"{prefix}/lib"}
            call("make", "-C", out / "project", env=env)
            texts.add(digits_are_read(out / "project/show"))
            call(out / "project/mlp", work / "net3", env=env)
        if o.all and shutil.which("ninja"):
            texts.add(use_cmake(out, ways, work, "Ninja"))
        if o.all:
            texts.add(
                use_cmake(
                    out,
                    [
                        f"-DINGOT_SOURCE={TREE}",
                        "-DCMAKE_C_COMPILER_LAUNCHER=ccache" if shutil.which("ccache") else "-DX=",
                    ],
                    work / "sub",
                    "Unix Makefiles",
                )
            )
        want(len(texts) == 1, "each way reads the same")
        external(sys.executable, work, ways)
        cross(out, ways, work)
    return 0


sys.exit(main())
