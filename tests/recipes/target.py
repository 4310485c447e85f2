"""Add a target, add a language: a device that speaks OpenCL C, under names of its own; its driver is the OpenCL one by another name."""

import numpy as np
from checks import call

HEADINGS = ("Add a target", "Add a language")
PROGRAMS = ("ingot",)

TARGET = r"""/* target_spare.c - OpenCL C for a device with groups of 64 items. */
#include "language_c.h"
#include "targets.h"

static const CWords words = {
    .kernel_word = "__kernel ",
    .global_word = "__global ",
    .restrict_word = "restrict",
    .local_word = "__local __attribute__((aligned(16))) ",
    .group_word = "__attribute__((reqd_work_group_size(%d, 1, 1))) ",
    .pragma = "#pragma OPENCL FP_CONTRACT OFF\n",
    .prologue = "typedef char int8_t;\ntypedef uchar uint8_t;\ntypedef short int16_t;\n"
                "typedef ushort uint16_t;\ntypedef int int32_t;\ntypedef uint uint32_t;\n"
                "typedef long int64_t;\ntypedef ulong uint64_t;\n"
                "#define INT64_C(x) x##L\n#define UINT64_C(x) x##UL\n",
};

static const Language spare_language = {
    C_FAMILY,
    .type = c_device_type,
    .file = c_file,
    .suffix = ".cl",
    .group = "(int)get_group_id(0)",
    .item = "(int)get_local_id(0)",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    .work_item = {"(int)get_global_id(0)", "get_global_id(0)"},
    .float_suffix = "",
    .c = &words,
};

extern const Target target_spare;
const Target target_spare = {
    .name = "spare",
    .language = &spare_language,
    .gpu = true,
    .machine = {GPU_FIGURES, .items = 64, .shared = 32 << 10, .shared_static = 32 << 10},
    .runtime = "igrt_spare",
    .branches = 8,
};
"""


def write(tree):
    tree.new("targets/target_spare.c", TARGET)
    tree.insert("targets/targets.def", "TARGET(opencl)", "TARGET(spare)")
    for name in ("igrt_gpu_opencl.h", "igrt_opencl.h", "igrt_opencl.c"):
        text = tree.text(f"runtime_min/{name}")
        text = (
            text.replace("igrt_cl", "igrt_spare")
            .replace("igrt_opencl", "igrt_spare")
            .replace("gpu_opencl", "gpu_spare")
        )
        tree.new(
            f"runtime_min/{name.replace('opencl', 'spare')}",
            text.replace("IGRT_OPENCL_H", "IGRT_SPARE_H"),
        )
    tree.insert("runtime_min/CMakeLists.txt", "    igrt_opencl.c", "    igrt_spare.c")


def check(tried):
    random = np.random.default_rng(3)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((20, 70), (70, 33)))
    nodes = [("MatMul", ["x", "w"], ["a"]), ("Relu", ["a"], ["b"]), ("Tanh", ["b"], ["y"])]
    model, data = tried.model(
        "target", nodes, {"x": x}, {"y": np.tanh(np.maximum(x @ w, 0))}, [("w", w)]
    )
    assert "spare" in call(tried.ingot, "targets").split()
    tried.verify(model, "--target", "spare", "--interpret")
    ran = tried.run(model, data, "spare", "gcc", 1e-5)
    audited = tried.audited(tried.compile(model, "spare"))
    tried.compile(model, "spare+c")
    saved = tried.work / "target.sched"
    tried.compile(model, "spare", "--save-sched", saved)
    tried.compile(model, "spare", "--sched", saved)
    return (
        f"its kernels {'ran' if ran else 'were compiled'}, audit {'done' if audited else 'skipped'}"
    )
