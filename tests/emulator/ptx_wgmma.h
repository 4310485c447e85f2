/* ptx_wgmma.h - sm_90a: asm of tokens (mbarrier), boxes (cp.async.bulk.tensor) and products of a
 * warpgroup (wgmma). */
#ifndef EMULATOR_PTX_WGMMA_H
#define EMULATOR_PTX_WGMMA_H

#include "ptx.h"

namespace gpu
{
/* c, of columns / 2 sums an item, += or = a b, of 64 rows; a lies in memory, or (of_rows) has 4
 * words in each item; of bytes, which have a sign or none, sums are integers; of f8 (a_signed,
 * b_signed: e5m2), they are those of f8_sum(). */
struct Product {
    int columns;
    Terms terms;
    bool of_rows, a_turned, b_turned, adds;
    uint64_t a, b; /* descriptors */
    uint32_t rows[4];
    bool a_signed, b_signed;
};
void multiply(const Product &p, void *sums);
void fence_products();
void commit_products();
void wait_for_products(int left);

void begin_token(uint32_t token, int arrivals);
void fence_tokens();
void arrive_at(uint32_t token, int bytes);
void wait_for_token(uint32_t token, int parity);
void piece(uint32_t to, const void *from, int bytes, uint32_t token);
void box(uint32_t to, const void *map, uint32_t token, const int *place, int rank,
         const int *tap = nullptr);

void fence_memory();
void meet_at(int barrier, int items);
void arrive_for(int barrier, int items); /* and goes on */
} // namespace gpu

namespace ptx
{

static inline void mbarrier_init_shared__cta_b64(const char *, uint32_t token, int arrivals)
{
    gpu::begin_token(token, arrivals);
}
static inline void fence_mbarrier_init_release_cluster(const char *)
{
    gpu::fence_tokens();
}
/* A loop around it. */
static inline void mbarrier_try_wait_parity_shared__cta_b64(const char *, uint32_t token,
                                                            int parity)
{
    gpu::wait_for_token(token, parity);
}
static inline void mbarrier_try_wait_parity_shared__cta_b64(const char *, int &there,
                                                            uint32_t token, int parity, int = 0)
{
    gpu::wait_for_token(token, parity);
    there = 0;
}
static inline void mbarrier_arrive_expect_tx_shared__cta_b64(const char *, uint32_t token,
                                                             int bytes)
{
    gpu::arrive_at(token, bytes);
}
static inline void mbarrier_arrive_shared__cta_b64(const char *, uint32_t token)
{
    gpu::arrive_at(token, 0);
}
static inline void fence_proxy_async_shared__cta(const char *)
{
    gpu::fence_memory();
}
/* " %0, 128;" */
static inline void bar_sync(const char *rest, int barrier)
{
    gpu::meet_at(barrier, atoi(strchr(rest, ',') + 1));
}
static inline void bar_sync(const char *, int barrier, int of)
{
    gpu::meet_at(barrier, of);
}
static inline void bar_arrive(const char *rest, int barrier)
{
    gpu::arrive_for(barrier, atoi(strchr(rest, ',') + 1));
}
static inline void bar_arrive(const char *, int barrier, int of)
{
    gpu::arrive_for(barrier, of);
}
static inline void setmaxnreg_dec_sync_aligned_u32(const char *, int)
{
}
static inline void setmaxnreg_inc_sync_aligned_u32(const char *, int)
{
}

static inline void cp_async_bulk_shared__cluster_global_mbarrier__complete_tx__bytes(
    const char *, uint32_t to, const void *from, int bytes, uint32_t token)
{
    gpu::piece(to, from, bytes, token);
}

#define BOX(n)                                                                           \
    template <class Map, class... Place>                                                 \
    static inline void                                                                   \
        cp_async_bulk_tensor_##n##d_shared__cluster_global_mbarrier__complete_tx__bytes( \
            const char *, uint32_t to, const Map *map, uint32_t token, Place... place)   \
    {                                                                                    \
        const int at[] = {place...};                                                     \
        static_assert(sizeof at / sizeof *at == n, "a coordinate an axis");              \
        gpu::box(to, map, token, at, n);                                                 \
    }
BOX(2)
BOX(3)
BOX(4)
BOX(5)

#define ASK_FOR_BOX(n)                                                                           \
    template <class Map, class... Place>                                                         \
    static inline void cp_async_bulk_prefetch_tensor_##n##d_L2_global(const char *, const Map *, \
                                                                      Place... place)            \
    {                                                                                            \
        static_assert(sizeof...(place) == n, "a coordinate an axis");                            \
    }
ASK_FOR_BOX(2)
ASK_FOR_BOX(3)
ASK_FOR_BOX(4)
ASK_FOR_BOX(5)

/* Behind the coordinates, the taps. */
#define WINDOW(n)                                                                               \
    template <class Map, class... Place>                                                        \
    static inline void                                                                          \
        cp_async_bulk_tensor_##n##d_shared__cluster_global_im2col_mbarrier__complete_tx__bytes( \
            const char *, uint32_t to, const Map *map, uint32_t token, Place... place)          \
    {                                                                                           \
        const int at[] = {place...};                                                            \
        static_assert(sizeof at / sizeof *at == 2 * n - 2, "a coordinate an axis, and taps");   \
        gpu::box(to, map, token, at, n, at + n);                                                \
    }
WINDOW(3)
WINDOW(4)
WINDOW(5)

static inline void wgmma_fence_sync_aligned(const char *)
{
    gpu::fence_products();
}
static inline void wgmma_commit_group_sync_aligned(const char *)
{
    gpu::commit_products();
}
static inline void wgmma_wait_group_sync_aligned(const char *rest)
{
    gpu::wait_for_products(atoi(rest));
}

static inline void wgmma_wait_group_sync_aligned(const char *, int groups)
{
    gpu::wait_for_products(groups);
}

static inline uint64_t word_of(float)
{
    return 0; /* a sum, whose place is asked for */
}
template <class T> static inline uint64_t word_of(T x)
{
    return (uint64_t)x;
}

/* Operands are sums, which lie side by side, and `last` more; the text ends so, %d being the number
 * of the first of these. */
template <int SUMS, int LAST, class Sum, class... T>
static inline void operands(const char *rest, const char *ends, uint64_t *last, Sum &first,
                            T &&...more)
{
    const void *const place[] = {&more...};
    const uint64_t value[] = {word_of(more)...};
    static const char *good, *good_ends; /* the same literals again: that text has been looked at */
    char text[64];
    static_assert(sizeof...(more) == SUMS - 1 + LAST, "sums, and others");
    for (int i = 0; i + 1 < SUMS; i++)
        if (place[i] != &first + i + 1)
            gpu::fault("sums that do not lie side by side");
    for (int i = 0; i < LAST; i++)
        last[i] = value[SUMS - 1 + i];
    if (rest == good && ends == good_ends)
        return;
    snprintf(text, sizeof text, ends, SUMS, SUMS + 1, SUMS + 2, SUMS + 3, SUMS + 4, SUMS + 5);
    if (strlen(rest) < strlen(text) || strcmp(rest + strlen(rest) - strlen(text), text))
        gpu::fault("wgmma: operands in another order");
    good = rest;
    good_ends = ends;
}

#define WGMMA(n, type, terms)                                                                   \
    template <class... T>                                                                       \
    static inline void wgmma_mma_async_sync_aligned_m64n##n##k16_f32_##type##_##type(           \
        const char *rest, float &c, T &&...more)                                                \
    {                                                                                           \
        uint64_t x[6];                                                                          \
        if constexpr (sizeof...(more) == n / 2 + 5) {                                           \
            operands<n / 2, 6>(rest, "}, {%%%d, %%%d, %%%d, %%%d}, %%%d, 1, 1, 1, %%%d;", x, c, \
                               more...);                                                        \
            gpu::Product p = {n, gpu::terms, true, false, x[5] != 0, true,                      \
                              0, x[4],       {},   false, false};                               \
            for (int i = 0; i < 4; i++)                                                         \
                p.rows[i] = (uint32_t)x[i];                                                     \
            gpu::multiply(p, &c);                                                               \
        } else {                                                                                \
            operands<n / 2, 5>(rest, "}, %%%d, %%%d, %%%d, 1, 1, %%%d, %%%d;", x, c, more...);  \
            gpu::multiply({n,                                                                   \
                           gpu::terms,                                                          \
                           false,                                                               \
                           x[3] != 0,                                                           \
                           x[4] != 0,                                                           \
                           x[2] != 0,                                                           \
                           x[0],                                                                \
                           x[1],                                                                \
                           {},                                                                  \
                           false,                                                               \
                           false},                                                              \
                          &c);                                                                  \
        }                                                                                       \
    }
WGMMA(8, f16, OF_F16)
WGMMA(8, bf16, OF_BF16)
WGMMA(32, f16, OF_F16)
WGMMA(64, f16, OF_F16)
WGMMA(128, f16, OF_F16)
WGMMA(192, f16, OF_F16)
WGMMA(256, f16, OF_F16)
WGMMA(32, bf16, OF_BF16)
WGMMA(64, bf16, OF_BF16)
WGMMA(128, bf16, OF_BF16)
WGMMA(192, bf16, OF_BF16)
WGMMA(256, bf16, OF_BF16)

#define WGMMA_BYTES(n, a, b)                                                    \
    template <class... T>                                                       \
    static inline void wgmma_mma_async_sync_aligned_m64n##n##k32_s32_##a##_##b( \
        const char *rest, int32_t &c, T &&...more)                              \
    {                                                                           \
        uint64_t x[2];                                                          \
        operands<n / 2, 2>(rest, "}, %%%d, %%%d, 1;", x, c, more...);           \
        gpu::multiply({n,                                                       \
                       gpu::OF_BYTES,                                           \
                       false,                                                   \
                       false,                                                   \
                       false,                                                   \
                       true,                                                    \
                       x[0],                                                    \
                       x[1],                                                    \
                       {},                                                      \
                       #a[0] == 's',                                            \
                       #b[0] == 's'},                                           \
                      &c);                                                      \
    }
#define WGMMA_SIGNS(n)     \
    WGMMA_BYTES(n, s8, s8) \
    WGMMA_BYTES(n, s8, u8) \
    WGMMA_BYTES(n, u8, s8) \
    WGMMA_BYTES(n, u8, u8)
WGMMA_SIGNS(64)
WGMMA_SIGNS(128)
WGMMA_SIGNS(256)

/* Sums of products of f8: one operand more says whether they are added to what is there, or the
 * text does. */
#define WGMMA_F8(n, a, b)                                                          \
    template <class... T>                                                          \
    static inline void wgmma_mma_async_sync_aligned_m64n##n##k32_f32_##a##_##b(    \
        const char *rest, float &c, T &&...more)                                   \
    {                                                                              \
        uint64_t x[3] = {0, 0, 1};                                                 \
        if constexpr (sizeof...(more) == n / 2 + 1)                                \
            operands<n / 2, 2>(rest, "}, %%%d, %%%d, 1, 1, 1;", x, c, more...);    \
        else                                                                       \
            operands<n / 2, 3>(rest, "}, %%%d, %%%d, %%%d, 1, 1;", x, c, more...); \
        gpu::multiply({n,                                                          \
                       gpu::OF_F8,                                                 \
                       false,                                                      \
                       false,                                                      \
                       false,                                                      \
                       x[2] != 0,                                                  \
                       x[0],                                                       \
                       x[1],                                                       \
                       {},                                                         \
                       #a[1] == '5',                                               \
                       #b[1] == '5'},                                              \
                      &c);                                                         \
    }
#define WGMMA_FORMS(n)      \
    WGMMA_F8(n, e4m3, e4m3) \
    WGMMA_F8(n, e4m3, e5m2) \
    WGMMA_F8(n, e5m2, e4m3) \
    WGMMA_F8(n, e5m2, e5m2)
WGMMA_FORMS(8)
WGMMA_FORMS(64)
WGMMA_FORMS(96)
WGMMA_FORMS(128)
WGMMA_FORMS(192)
WGMMA_FORMS(256)

#define WGMMA_ROWS(n)                                                                              \
    template <class... T>                                                                          \
    static inline void wgmma_mma_async_sync_aligned_m64n##n##k8_f32_tf32_tf32(                     \
        const char *rest, float &c, T &&...more)                                                   \
    {                                                                                              \
        uint64_t x[6];                                                                             \
        operands<n / 2, 6>(rest, "}, {%%%d, %%%d, %%%d, %%%d}, %%%d, %%%d, 1, 1;", x, c, more...); \
        const bool adds = x[5] != 0;                                                               \
        gpu::Product p = {n, gpu::OF_TF32, true, false, false, adds, 0, x[4], {}, false, false};   \
        for (int i = 0; i < 4; i++)                                                                \
            p.rows[i] = (uint32_t)x[i];                                                            \
        gpu::multiply(p, &c);                                                                      \
    }
WGMMA_ROWS(48)
WGMMA_ROWS(64)
WGMMA_ROWS(96)
WGMMA_ROWS(128)

} // namespace ptx

#endif
