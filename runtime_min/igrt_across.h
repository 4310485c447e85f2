/*
 * igrt_across.h - what neighbours among the items of a group have together, without memory: all of
 * them get the sum, the largest or the least.
 *
 * A power of two of them, in one sub-group (OpenCL's cl_khr_subgroup_shuffle), warp (CUDA) or wave
 * (HIP); joined as a tree, neighbours first. igrt_num.h comes before.
 */
#ifndef IGRT_ACROSS_H
#define IGRT_ACROSS_H

#if defined(__CUDACC__)
#define igrt_shuffle(x, apart) __shfl_xor_sync(0xffffffffu, x, apart)
#elif !defined(__HIP__) /* of a wave: igrt_amd.h */
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#define igrt_shuffle(x, apart) sub_group_shuffle_xor(x, (uint)(apart))
#endif

#define IGRT_ACROSS(name, type, join)                      \
    IGRT_INLINE type igrt_across_##name(type x, int items) \
    {                                                      \
        for (int apart = 1; apart < items; apart *= 2) {   \
            const type y = igrt_shuffle(x, apart);         \
            x = join;                                      \
        }                                                  \
        return x;                                          \
    }
IGRT_ACROSS(add_f32, float, x + y)
IGRT_ACROSS(max_f32, float, igrt_max_f32(x, y))
IGRT_ACROSS(min_f32, float, igrt_min_f32(x, y))
IGRT_ACROSS(add_i32, int32_t, igrt_add_i32(x, y))
IGRT_ACROSS(max_i32, int32_t, igrt_max_i32(x, y))
IGRT_ACROSS(min_i32, int32_t, igrt_min_i32(x, y))

#endif
