/*
 * igrt_across.h - what neighbours among the items of a group have together, without memory: all of
 * them get the sum, the largest or the least.
 *
 * A power of two of them, in one sub-group (OpenCL's cl_khr_subgroup_shuffle), warp (CUDA) or wave
 * (HIP); joined as a tree, neighbours first. igrt_num.h comes before.
 *
 *     igrt_across_add_f32(x, items)              of all that are `items` neighbours
 *     igrt_across_beyond_add_f32(x, from, items) of every from-th of them
 *     igrt_halves_add_f32(x, y, item, apart)     of two that are so far apart: x if the item's
 * number is the lesser one's, or y
 */
#ifndef IGRT_ACROSS_H
#define IGRT_ACROSS_H

#if defined(__CUDACC__)
#define igrt_shuffle(x, apart) __shfl_xor_sync(0xffffffffu, x, apart)
#elif !defined(__HIP__) /* of a wave: igrt_amd.h */
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#define igrt_shuffle(x, apart) sub_group_shuffle_xor(x, (uint)(apart))
#endif

#define IGRT_ACROSS(name, type, join)                                                 \
    IGRT_INLINE type igrt_across_beyond_##name(type x, int from, int items)           \
    {                                                                                 \
        for (int apart = from; apart < items; apart *= 2) {                           \
            const type y = igrt_shuffle(x, apart);                                    \
            x = join;                                                                 \
        }                                                                             \
        return x;                                                                     \
    }                                                                                 \
    IGRT_INLINE type igrt_across_##name(type x, int items)                            \
    {                                                                                 \
        return igrt_across_beyond_##name(x, 1, items);                                \
    }                                                                                 \
    IGRT_INLINE type igrt_halves_##name(type first, type second, int item, int apart) \
    {                                                                                 \
        const type x = item & apart ? second : first;                                 \
        const type y = igrt_shuffle(item & apart ? first : second, apart);            \
        return join;                                                                  \
    }
IGRT_ACROSS(add_f32, float, x + y)
IGRT_ACROSS(max_f32, float, igrt_max_f32(x, y))
IGRT_ACROSS(min_f32, float, igrt_min_f32(x, y))
IGRT_ACROSS(add_i32, int32_t, igrt_add_i32(x, y))
IGRT_ACROSS(max_i32, int32_t, igrt_max_i32(x, y))
IGRT_ACROSS(min_i32, int32_t, igrt_min_i32(x, y))

#endif
