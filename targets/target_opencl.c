/* target_opencl.c - OpenCL C 1.2.  One work item computes one element of a kernel's output. */
#include "targets.h"

extern const Target target_opencl;
const Target target_opencl = {
    .name = "opencl",
    .suffix = ".cl",
    .gpu = true,
    .kernel_word = "__kernel ",
    .global_word = "__global ",
    .restrict_word = "restrict",
    .work_item = "(int64_t)get_global_id(0)",
    .float_suffix = "", /* functions are overloaded */
    .spelling = c_spelling,
};
