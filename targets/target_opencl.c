/* target_opencl.c - OpenCL C 1.2.  A work item computes an element, or a tile of them (BIND). */
#include "targets.h"

extern const Target target_opencl;
const Target target_opencl = {
    .name = "opencl",
    .suffix = ".cl",
    GPU_FIGURES,
    .kernel_word = "__kernel ",
    .global_word = "__global ",
    .restrict_word = "restrict",
    .group = "get_group_id(0)",
    .item = "get_local_id(0)",
    .local_word = "__local __attribute__((aligned(16))) ",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE);",
    .items = 256,
    .shared = 32 << 10,
    .shared_static = 32 << 10,
    .group_word = "__attribute__((reqd_work_group_size(%d, 1, 1))) ",
    .work_item = "get_global_id(0)",
    .float_suffix = "", /* functions are overloaded */
    .spelling = c_spelling,
    .runtime = "igrt_cl",
    .pragma = "#pragma OPENCL FP_CONTRACT OFF\n",
    .prologue = "typedef char int8_t;\ntypedef uchar uint8_t;\ntypedef short int16_t;\n"
                "typedef ushort uint16_t;\ntypedef int int32_t;\ntypedef uint uint32_t;\n"
                "typedef long int64_t;\ntypedef ulong uint64_t;\n"
                "#define INT64_C(x) x##L\n#define UINT64_C(x) x##UL\n",
};
