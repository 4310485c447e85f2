/* target_cuda.c - CUDA C++, as NVRTC compiles it. */
#include <string.h>

#include "igrt_cuda.h"
#include "language_cuda.h"
#include "targets.h"

const char *cuda_tune(Target *t, Arena *a, const char *machine, ingot_status *status)
{
    CudaDevice d;
    t->archs = machine;
    if (strcmp(machine, "native") != 0) {
        const char *fault = gpu_fault(a, machine);
        *status = INGOT_USAGE;
        if (!fault)
            gpu_tune(&t->machine, a, machine);
        return fault;
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

static const CWords words = {
    CUDA_WORDS("__CUDACC_RTC__"),
    .group_word_alone = "__launch_bounds__(%d, %d) ",
    .pragma = "/* Kernels before this one are done, and what they have written is there: a launch "
              "may begin earlier (igrt_cu_launch). */\n"
              "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n"
              "#define igrt_after_others() asm volatile(\"griddepcontrol.wait;\" ::: \"memory\")\n"
              "#define igrt_before_others() asm volatile(\"griddepcontrol.launch_dependents;\" ::: "
              "\"memory\")\n"
              "#else\n#define igrt_after_others() ((void)0)\n#define igrt_before_others() "
              "((void)0)\n#endif\n\n",
    .lines_word = "__shared__ __align__(1024) ",
    .cluster_word = "__cluster_dims__(%d, 1, 1) ",
    .map_word = "const __grid_constant__ igrt_map ",
    .part_map_word = "const igrt_map & ",
    .fixed = "<$0>",
};

static const Language cuda_language = {
    CUDA_FAMILY,
    .file = c_file,
    .suffix = ".cu",
    .begin = "igrt_after_others();",
    .next = "igrt_before_others();",
    .ballot = "__ballot_sync(0xffffffffu, ",
    .item_of_warp = "(int)threadIdx.x % 32",
    .lowest_left = "__ffs((int)left) - 1",
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
    .votes = true,
    .joins = true,
    .branches = IGRT_CU_BRANCHES,
    .compile = nvrtc_compile,
    .tune = cuda_tune,
    .machine_name = gpu_name,
};
