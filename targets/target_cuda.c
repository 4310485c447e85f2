/* target_cuda.c - CUDA C++, as NVRTC compiles it. */
#include "targets.h"

extern const Target target_cuda;
const Target target_cuda = {
    .name = "cuda",
    .suffix = ".cu",
    .gpu = true,
    .kernel_word = "extern \"C\" __global__ ",
    .global_word = "",
    .restrict_word = "__restrict__",
    .work_item = "(int64_t)blockIdx.x * blockDim.x + threadIdx.x",
    .float_suffix = "f",
    .spelling = c_spelling,
};
