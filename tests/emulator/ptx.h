/* ptx.h - what asm statements do: asm("mma.sync... {%0, ..}" : "+f"(x) : "r"(a)) has become
 * ptx::mma_sync...(" {%0, ..}", x, a).
 *
 * PTX ISA, "Matrix fragments for mma.m16n8k16" and on. What is copied asynchronously is there when
 * it is waited for. */
#ifndef EMULATOR_PTX_H
#define EMULATOR_PTX_H

#include "cuda.h"

namespace gpu
{
enum Terms { OF_F16, OF_BF16, OF_TF32, OF_BYTES, OF_F8 };

/* e4m3 or e5m2, exactly. */
float f8_value(int byte, bool e5m2);
/* c plus products of f8, as the units add them up: each is aligned to the greatest of all, and what
 * is below 2^-13 of that one's power of two is cut off. (What Hopper's units do, by what is known
 * of their results: 13 bits behind the point.) */
float f8_sum(double c, const double *product, int n);
void f8_products(float *c, Slot mine, bool a_e5m2, bool b_e5m2);

void load_blocks(uint32_t *x, int blocks, bool turned, uint32_t address);
void products(float *c, Slot mine, Terms terms);
void byte_products(int32_t *c, Slot mine, bool a_signed, bool b_signed);
void copy(uint32_t to, const void *from, int bytes, int given);
void commit_copies();
void wait_for_copies(int groups);
void arrive_at_cluster();
void wait_for_cluster();
uint32_t cluster_rank();
void reach(uint64_t memory);
} // namespace gpu

namespace ptx
{

#define LDMATRIX_4(name, turned)                                                              \
    static inline void name(const char *, uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d, \
                            uint32_t address)                                                 \
    {                                                                                         \
        uint32_t x[4];                                                                        \
        gpu::load_blocks(x, 4, turned, address);                                              \
        a = x[0], b = x[1], c = x[2], d = x[3];                                               \
    }
#define LDMATRIX_2(name, turned)                                                      \
    static inline void name(const char *, uint32_t &a, uint32_t &b, uint32_t address) \
    {                                                                                 \
        uint32_t x[2];                                                                \
        gpu::load_blocks(x, 2, turned, address);                                      \
        a = x[0], b = x[1];                                                           \
    }
LDMATRIX_4(ldmatrix_sync_aligned_m8n8_x4_shared_b16, false)
LDMATRIX_4(ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16, true)
LDMATRIX_2(ldmatrix_sync_aligned_m8n8_x2_shared_b16, false)
LDMATRIX_2(ldmatrix_sync_aligned_m8n8_x2_trans_shared_b16, true)

#define MMA(name, terms)                                                                           \
    static inline void name(const char *, float &c0, float &c1, float &c2, float &c3, uint32_t a0, \
                            uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)       \
    {                                                                                              \
        float c[4] = {c0, c1, c2, c3};                                                             \
        gpu::products(c, {{a0, a1, a2, a3, b0, b1}}, gpu::terms);                                  \
        c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];                                                \
    }
MMA(mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32, OF_F16)
MMA(mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32, OF_BF16)
MMA(mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32, OF_TF32)

#define MMA_BYTES(name, a_signed, b_signed)                                                   \
    static inline void name(const char *, int32_t &c0, int32_t &c1, int32_t &c2, int32_t &c3, \
                            uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,  \
                            uint32_t b1)                                                      \
    {                                                                                         \
        int32_t c[4] = {c0, c1, c2, c3};                                                      \
        gpu::byte_products(c, {{a0, a1, a2, a3, b0, b1}}, a_signed, b_signed);                \
        c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];                                           \
    }
MMA_BYTES(mma_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32, true, true)
MMA_BYTES(mma_sync_aligned_m16n8k32_row_col_s32_s8_u8_s32, true, false)
MMA_BYTES(mma_sync_aligned_m16n8k32_row_col_s32_u8_s8_s32, false, true)
MMA_BYTES(mma_sync_aligned_m16n8k32_row_col_s32_u8_u8_s32, false, false)

#define MMA_F8(name, a_e5m2, b_e5m2)                                                               \
    static inline void name(const char *, float &c0, float &c1, float &c2, float &c3, uint32_t a0, \
                            uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)       \
    {                                                                                              \
        float c[4] = {c0, c1, c2, c3};                                                             \
        gpu::f8_products(c, {{a0, a1, a2, a3, b0, b1}}, a_e5m2, b_e5m2);                           \
        c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];                                                \
    }
MMA_F8(mma_sync_aligned_m16n8k32_row_col_f32_e4m3_e4m3_f32, false, false)
MMA_F8(mma_sync_aligned_m16n8k32_row_col_f32_e4m3_e5m2_f32, false, true)
MMA_F8(mma_sync_aligned_m16n8k32_row_col_f32_e5m2_e4m3_f32, true, false)
MMA_F8(mma_sync_aligned_m16n8k32_row_col_f32_e5m2_e5m2_f32, true, true)

static inline void cvt_rn_f16x2_f32(const char *, uint32_t &to, float high, float low)
{
    to = igrt_f32_to_f16(low) | (uint32_t)igrt_f32_to_f16(high) << 16;
}
static inline void cvt_rn_bf16x2_f32(const char *, uint32_t &to, float high, float low)
{
    to = igrt_f32_to_bf16(low) | (uint32_t)igrt_f32_to_bf16(high) << 16;
}

/* " [%0], [%1], 16, %2;": so many bytes, of which some are given. */
static inline int size_of_copy(const char *rest)
{
    return atoi(strchr(strchr(rest, ',') + 1, ',') + 1);
}
static inline void cp_async_ca_shared_global(const char *rest, uint32_t to, const void *from,
                                             int given)
{
    gpu::copy(to, from, size_of_copy(rest), given);
}
static inline void cp_async_cg_shared_global(const char *rest, uint32_t to, const void *from,
                                             int given)
{
    gpu::copy(to, from, size_of_copy(rest), given);
}
static inline void prefetch_global_L2(const char *, const void *)
{
}
static inline void cp_async_commit_group(const char *)
{
    gpu::commit_copies();
}
static inline void cp_async_wait_group(const char *rest)
{
    gpu::wait_for_copies(atoi(rest));
}

static inline void barrier_cluster_arrive_relaxed_aligned(const char *)
{
    gpu::arrive_at_cluster();
}
static inline void barrier_cluster_arrive_release_aligned(const char *)
{
    gpu::arrive_at_cluster();
}
static inline void barrier_cluster_wait_aligned(const char *)
{
    gpu::wait_for_cluster();
}
static inline void barrier_cluster_wait_acquire_aligned(const char *)
{
    gpu::wait_for_cluster();
}
/* "%cluster_ctarank" */
static inline void mov_u32(const char *, uint32_t &rank)
{
    rank = gpu::cluster_rank();
}
static inline void mapa_shared__cluster_u32(const char *, uint32_t &to, uint32_t from, int rank)
{
    to = (from & 0xffffff) | (uint32_t)rank << 24;
}
static inline void ld_shared__cluster_f32(const char *, float &x, uint32_t from)
{
    memcpy(&x, gpu::at(from), sizeof x);
}
static inline void st_shared__cluster_v4_f32(const char *, uint32_t to, float x, float y, float z,
                                             float w)
{
    const float v[] = {x, y, z, w};
    memcpy(gpu::at(to), v, sizeof v);
}
static inline void st_shared__cluster_v2_f32(const char *, uint32_t to, float x, float y)
{
    const float v[] = {x, y};
    memcpy(gpu::at(to), v, sizeof v);
}
/* What another device may write: who does not have it lets others go on. */
static inline void ld_relaxed_sys_global_v2_b64(const char *, uint64_t &a, uint64_t &b,
                                                uint64_t from)
{
    memcpy(&a, (const void *)from, sizeof a);
    memcpy(&b, (const void *)(from + sizeof a), sizeof b);
    if (!(a && b))
        gpu::pause();
}
static inline void ld_relaxed_sys_global_b64(const char *, uint64_t &a, uint64_t from)
{
    memcpy(&a, (const void *)from, sizeof a);
    if (!a)
        gpu::pause();
}
static inline void st_relaxed_sys_global_b64(const char *, uint64_t to, uint64_t a)
{
    gpu::reach(to);
    memcpy((void *)to, &a, sizeof a);
}
static inline void st_relaxed_sys_global_v2_b64(const char *, uint64_t to, uint64_t a, uint64_t b)
{
    const uint64_t both[] = {a, b};
    gpu::reach(to);
    memcpy((void *)to, both, sizeof both);
}

/* An empty text. */
template <class... T> static inline void nothing(const char *, T &&...)
{
}

} // namespace ptx

#endif
