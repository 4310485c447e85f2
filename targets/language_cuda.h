/* language_cuda.h - what CUDA C++ and HIP C++ share as languages of kernels. */
#ifndef LANGUAGE_CUDA_H
#define LANGUAGE_CUDA_H

#include "language_c.h"

/* Fixed-width types where the compiler brings no headers: NVRTC defines __CUDACC_RTC__, hipcc with
 * igrt_amd.h __HIP__. */
#define CUDA_TYPES(without_headers)                                                            \
    "#ifdef " without_headers "\n"                                                             \
    "typedef signed char int8_t;\ntypedef unsigned char uint8_t;\ntypedef short int16_t;\n"    \
    "typedef unsigned short uint16_t;\ntypedef int int32_t;\ntypedef unsigned int uint32_t;\n" \
    "typedef long long int64_t;\ntypedef unsigned long long uint64_t;\n"                       \
    "#define INT64_C(x) x##LL\n#define UINT64_C(x) x##ULL\n"                                   \
    "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n"    \
    "#else\n#include <math.h>\n#include <stdint.h>\n#endif\n"

/* Fields of CWords. */
#define CUDA_WORDS(without_headers)                                                                \
    .kernel_word = "extern \"C\" __global__ ", .part_word = "static __device__ __forceinline__ ",  \
    .global_word = "", .restrict_word = "__restrict__", .local_word = "__shared__ __align__(16) ", \
    .group_word = "__launch_bounds__(%d) ", .aligned = "__builtin_assume_aligned",                 \
    .prologue = CUDA_TYPES(without_headers), .pair = "float2"

#define CUDA_WORK_ITEM "((int64_t)blockIdx.x * blockDim.x + threadIdx.x)"
#define CUDA_PART_ITEM "((int64_t)($0) * blockDim.x + threadIdx.x)"

/* Fields of Language. */
#define CUDA_FAMILY                                                                                \
    C_FAMILY, .type = c_device_type, .group = "(int)blockIdx.x", .item = "(int)threadIdx.x",       \
              .barrier = "__syncthreads();", .quotient = true, .unroll = "#pragma unroll",         \
              .assume = "__builtin_assume", .work_item = {"(int)" CUDA_WORK_ITEM, CUDA_WORK_ITEM}, \
              .part_item = {"(int)" CUDA_PART_ITEM, CUDA_PART_ITEM}, .float_suffix = "f",          \
              .together = c_together, .runs = true

#endif
