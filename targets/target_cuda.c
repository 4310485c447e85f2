/* target_cuda.c - CUDA C++, as NVRTC compiles it. */
#include <string.h>

#include "igrt_cuda.h"
#include "language_c.h"
#include "targets.h"

const char *cuda_tune(Target *t, Arena *a, const char *machine, ingot_status *status)
{
    CudaDevice d;
    t->archs = machine;
    if (strcmp(machine, "native") != 0) {
        gpu_tune(&t->machine, a, machine);
        return NULL;
    }
    if (!cuda_device(&d)) {
        *status = INGOT_UNSUPPORTED;
        return "there is no CUDA device here (libcuda.so.1 and a GPU)";
    }
    const char *known = gpu_device_name(a, &d);
    t->archs = gpu_device_tune(&t->machine, a, &d);
    t->base = arena_printf(a, "%s:%s", t->name, known ? known : t->archs);
    return NULL;
}

#define WORK_ITEM "((int64_t)blockIdx.x * blockDim.x + threadIdx.x)"

static const CWords words = {
    .kernel_word = "extern \"C\" __global__ ",
    .global_word = "",
    .restrict_word = "__restrict__",
    .local_word = "__shared__ __align__(16) ",
    .group_word = "__launch_bounds__(%d) ",
    .group_word_alone = "__launch_bounds__(%d, %d) ",
    .aligned = "__builtin_assume_aligned",
    .pragma = "/* Kernels before this one are done, and what they have written is there: a launch "
              "may begin earlier (igrt_cu_launch). */\n"
              "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n"
              "#define igrt_after_others() asm volatile(\"griddepcontrol.wait;\" ::: \"memory\")\n"
              "#define igrt_before_others() asm volatile(\"griddepcontrol.launch_dependents;\" ::: "
              "\"memory\")\n"
              "#else\n#define igrt_after_others() ((void)0)\n#define igrt_before_others() "
              "((void)0)\n#endif\n\n",
    .prologue =
        "#ifdef __CUDACC_RTC__\n"
        "typedef signed char int8_t;\ntypedef unsigned char uint8_t;\ntypedef short int16_t;\n"
        "typedef unsigned short uint16_t;\ntypedef int int32_t;\ntypedef unsigned int uint32_t;\n"
        "typedef long long int64_t;\ntypedef unsigned long long uint64_t;\n"
        "#define INT64_C(x) x##LL\n#define UINT64_C(x) x##ULL\n"
        "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n"
        "#else\n#include <math.h>\n#include <stdint.h>\n#endif\n",
    .lines_word = "__shared__ __align__(1024) ",
    .cluster_word = "__cluster_dims__(%d, 1, 1) ",
    .map_word = "const __grid_constant__ igrt_map",
    .fixed = "<$0>",
    .pair = "float2",
};

static const Language cuda_language = {
    C_FAMILY,
    .type = c_device_type,
    .file = c_file,
    .suffix = ".cu",
    .group = "(int)blockIdx.x",
    .item = "(int)threadIdx.x",
    .barrier = "__syncthreads();",
    .begin = "igrt_after_others();",
    .next = "igrt_before_others();",
    .quotient = true,
    .unroll = "#pragma unroll",
    .work_item = {"(int)" WORK_ITEM, WORK_ITEM},
    .float_suffix = "f",
    .runs = true,
    .c = &words,
};

extern const Target target_cuda;
const Target target_cuda = {
    .name = "cuda",
    .language = &cuda_language,
    .gpu = true,
    .machine = {GPU_FIGURES, .items = 1024, .shared = 48 << 10, .shared_static = 48 << 10,
                .subgroup = 32},
    .runtime = "igrt_cu",
    .triggers = true,
    .unrolls = true,
    .records = true,
    .joins = true,
    .branches = IGRT_CU_BRANCHES,
    .compile = nvrtc_compile,
    .tune = cuda_tune,
    .machine_name = gpu_name,
};
