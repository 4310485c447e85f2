/* cuda.h - what CUDA kernels are written in, for the host: what emulate.py makes of an emitted .cu
 * includes it. */
#ifndef EMULATOR_CUDA_H
#define EMULATOR_CUDA_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "igrt_num.h"

#define __device__
#define __global__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_assume(holds) \
    do {                        \
        if (!(holds))           \
            __builtin_trap();   \
    } while (0)

struct uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
static inline uint2 make_uint2(uint32_t x, uint32_t y)
{
    return {x, y};
}
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return {x, y, z, w};
}
static inline float2 make_float2(float x, float y)
{
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

template <class To, class From> static inline To bits_as(From x)
{
    To y;
    static_assert(sizeof x == sizeof y, "");
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline uint32_t __float_as_uint(float x)
{
    return bits_as<uint32_t>(x);
}
static inline float __uint_as_float(uint32_t x)
{
    return bits_as<float>(x);
}

namespace gpu
{
struct Index {
    unsigned x, y, z;
};
/* Where the item is that runs. */
struct Here {
    Index item, group, items;
};
extern Here here;

struct Slot {
    uint32_t word[10];
};
/* What all lanes of the warp give, or what the work that they do together makes of it; it stays
 * until the item asks for something else. */
const Slot *together(const Slot &mine, void (*work)(Slot *lanes) = nullptr);
void meet();                          /* all items of the group */
void pause();                         /* others go on */
unsigned char *shared(size_t bytes);  /* the group's, aligned to 128 */
uint32_t address(const void *shared); /* of a cluster's memory: which group's, and where in it */
unsigned char *at(uint32_t address);
[[noreturn]] void fault(const char *why);

/* A kernel, called with pointers to its arguments; pointers to copies of these; groups of a
 * cluster. */
struct Entry {
    const char *name;
    void (*run)(void **args);
    void **(*keep)(void **args);
    int cluster;
};
extern const Entry *const tables[]; /* of bundles, by $EMULATED_TABLE */
} // namespace gpu

#define threadIdx (gpu::here.item)
#define blockIdx (gpu::here.group)
#define blockDim (gpu::here.items)

static inline void __syncthreads()
{
    gpu::meet();
}

static inline void __syncwarp()
{
    (void)gpu::together({{0}});
}

static inline uint32_t __cvta_generic_to_shared(const void *p)
{
    return gpu::address(p);
}

static inline void *__cvta_shared_to_generic(uint32_t address)
{
    return gpu::at(address);
}

template <class T> static inline T __shfl_xor_sync(uint32_t, T x, int apart)
{
    const int from = (int)threadIdx.x % 32 ^ apart;
    return bits_as<T>(gpu::together({{bits_as<uint32_t>(x)}})[from].word[0]);
}

static inline uint32_t __ballot_sync(uint32_t, bool mine)
{
    const auto all = gpu::together({{mine}});
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++)
        bits |= (uint32_t)(all[i].word[0] != 0) << i;
    return bits;
}

static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

/* Not nvcc: igrt_across.h says it in the words of OpenCL. */
#define sub_group_shuffle_xor(x, apart) __shfl_xor_sync(0xffffffffu, x, (int)(apart))

#endif
