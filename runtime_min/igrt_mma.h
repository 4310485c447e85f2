/*
 * igrt_mma.h - CUDA: products of fragments that the 32 items of a warp have together (mma.sync,
 * sm_80 and later).
 *
 *     igrt_mma_a_lines_16(p, pitch)     a [16 rows][terms] of 16 bits, the terms of a row side by
 *                                       side
 *     igrt_mma_a_terms_16(p, pitch)     the same from [terms][16 rows]
 *     igrt_mma_b_lines_16(p, pitch)     b [terms][8 columns] from [8 columns][terms]
 *     igrt_mma_b_terms_16(p, pitch)     the same from [terms][8 columns]
 *     igrt_mma_a_lines_32 ...            the same of 32 bits, 8 terms; _lines_8 of bytes, 32 terms
 *     igrt_mma_b_two_lines_16(&x, &y, p, pitch)    b of eight columns, and of the eight that
 *                                                  follow; _terms_16, _lines_32
 *     igrt_mma_b_halves_32(p, pitch)    b whose columns 0, 1, 2 .. are lines 0, 4, 1, 5 .. of [8
 *                                       columns][terms]
 *     igrt_mma_dot_f16(&c, a, b)        c += a b; _bf16; _tf32, which does not read the last 13
 *                                       bits of f32; _tf32x3, which does
 *
 *     igrt_mma_dot_i8_u8(&c, a, b)      of bytes, each operand with a sign or without, to sums of
 *                                       i32 modulo 2^32
 *
 *     igrt_mma_dot_f8e4m3fn_f8e5m2(&c, a, b)   of f8, each operand in either form (sm_89 and
 *                                       later)
 *
 *     igrt_mma_a_of_f16(x, ...)         a of the elements that the item has of it, as they are
 *                                       numbered there; _bf16, _f32
 *     igrt_mma_quad_max(x), _add(x)     of the four items that have the same rows
 *
 *     igrt_two_16(to, x, y)             two neighbouring elements; _8; _32 of f32, _i32
 *     igrt_row_16(to, given, ...)         four pairs of a row of sums, eight columns apart, from
 *                                         each of the four items that share it; not if !given
 *     igrt_pair_of_16(from, given)      the way back: two neighbours, _32 of f32;
 *                                       igrt_row_of_16(from, given) eight of one block for each of
 *                                       the four items, which igrt_row_turned() makes those of its
 *                                       columns; zeros if they are not given
 *     igrt_copy_16(to, from, given)     16 neighbouring bytes, zeros if they are not given; _8, _4
 *     igrt_copy_async_16(...)           the same, under way until it is waited for
 *     igrt_copy_part_16(to, from, n), igrt_copy_part_async_16(...)   only n of the 16 bytes are
 *         given, an even number
 *     igrt_copy_or_16(to, from, given, four), igrt_copy_or_async_16(...)   bytes, those of `four`
 *         again and again if they are not given
 *     igrt_prefetch(from)               brings its line nearer, and reads nothing
 *     igrt_copy_commit()                the item's copies since the last one are a group
 *     igrt_copy_wait(n)                 until all but its last n groups are done
 *
 * Lines lie in memory of the group, pitch elements apart, each beginning at a multiple of 16 bytes.
 * If 16 times an odd number of bytes lie between lines, eight of them are in banks of their own.
 * All items of a warp call a function together. Which elements an item has of a fragment: PTX ISA,
 * "Matrix fragments for mma.m16n8k16", "m16n8k32".
 */
typedef struct {
    uint32_t v[4];
} igrt_mma_a;
typedef struct {
    uint32_t v[2];
} igrt_mma_b;
typedef struct {
    float v[4];
} igrt_mma_c;
typedef struct {
    int32_t v[4];
} igrt_mma_c_i32;

/* Blocks of eight lines of 16 bytes each: item 8 i + j of a warp gives where line j of block i
 * lies. */
#define IGRT_LDMATRIX(name, type, shape, list, ...)                              \
    static __device__ __forceinline__ type name(const void *p)                   \
    {                                                                            \
        type x;                                                                  \
        asm volatile("ldmatrix.sync.aligned.m8n8." shape ".shared.b16 " list ";" \
                     : __VA_ARGS__                                               \
                     : "r"((uint32_t)__cvta_generic_to_shared(p))                \
                     : "memory");                                                \
        return x;                                                                \
    }
#define IGRT_FOUR "=r"(x.v[0]), "=r"(x.v[1]), "=r"(x.v[2]), "=r"(x.v[3])
#define IGRT_TWO "=r"(x.v[0]), "=r"(x.v[1])
IGRT_LDMATRIX(igrt_mma_four, igrt_mma_a, "x4", "{%0, %1, %2, %3}, [%4]", IGRT_FOUR)
IGRT_LDMATRIX(igrt_mma_four_turned, igrt_mma_a, "x4.trans", "{%0, %1, %2, %3}, [%4]", IGRT_FOUR)
IGRT_LDMATRIX(igrt_mma_two, igrt_mma_b, "x2", "{%0, %1}, [%2]", IGRT_TWO)
IGRT_LDMATRIX(igrt_mma_two_turned, igrt_mma_b, "x2.trans", "{%0, %1}, [%2]", IGRT_TWO)
#undef IGRT_LDMATRIX
#undef IGRT_FOUR
#undef IGRT_TWO

static __device__ __forceinline__ igrt_mma_a igrt_mma_a_lines_16(const uint16_t *p, int pitch)
{
    const int lane = (int)threadIdx.x % 32;
    return igrt_mma_four(p + lane % 16 * pitch + lane / 16 * 8);
}

static __device__ __forceinline__ igrt_mma_a igrt_mma_a_terms_16(const uint16_t *p, int pitch)
{
    const int lane = (int)threadIdx.x % 32;
    return igrt_mma_four_turned(p + (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8);
}

static __device__ __forceinline__ igrt_mma_b igrt_mma_b_lines_16(const uint16_t *p, int pitch)
{
    const int lane = (int)threadIdx.x % 32;
    return igrt_mma_two(p + lane % 8 * pitch + lane / 8 % 2 * 8);
}

static __device__ __forceinline__ igrt_mma_b igrt_mma_b_terms_16(const uint16_t *p, int pitch)
{
    const int lane = (int)threadIdx.x % 32;
    return igrt_mma_two_turned(p + lane % 16 * pitch);
}

static __device__ __forceinline__ igrt_mma_a igrt_mma_a_lines_8(const void *p, int pitch)
{
    const int lane = (int)threadIdx.x % 32;
    return igrt_mma_four((const char *)p + lane % 16 * pitch + lane / 16 * 16);
}

static __device__ __forceinline__ igrt_mma_b igrt_mma_b_lines_8(const void *p, int pitch)
{
    const int lane = (int)threadIdx.x % 32;
    return igrt_mma_two((const char *)p + lane % 8 * pitch + lane / 8 % 2 * 16);
}

/* Of two neighbouring blocks of columns: the lanes of the second half say where the second one
 * lies. */
#define IGRT_MMA_B_TWO(name, type, load, offset)                                               \
    static __device__ __forceinline__ void igrt_mma_b_two_##name(igrt_mma_b *x, igrt_mma_b *y, \
                                                                 const type *p, int pitch)     \
    {                                                                                          \
        const int lane = (int)threadIdx.x % 32;                                                \
        const igrt_mma_a both = load(p + (offset));                                            \
        *x = igrt_mma_b{{both.v[0], both.v[1]}};                                               \
        *y = igrt_mma_b{{both.v[2], both.v[3]}};                                               \
    }
IGRT_MMA_B_TWO(lines_16, uint16_t, igrt_mma_four,
               (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8)
IGRT_MMA_B_TWO(terms_16, uint16_t, igrt_mma_four_turned, lane % 16 * pitch + lane / 16 * 8)
IGRT_MMA_B_TWO(lines_32, float, igrt_mma_four,
               (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 4)
IGRT_MMA_B_TWO(lines_8, int8_t, igrt_mma_four,
               (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 16)
IGRT_MMA_B_TWO(lines_8, uint8_t, igrt_mma_four,
               (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 16)
#undef IGRT_MMA_B_TWO

static __device__ __forceinline__ igrt_mma_a igrt_mma_a_lines_32(const float *p, int pitch)
{
    const int lane = (int)threadIdx.x % 32;
    return igrt_mma_four(p + lane % 16 * pitch + lane / 16 * 4);
}

static __device__ __forceinline__ igrt_mma_a igrt_mma_a_terms_32(const float *p, int pitch)
{
    const int lane = (int)threadIdx.x % 32;
    const float *q = p + lane % 4 * pitch + lane / 4;
    igrt_mma_a x = {{__float_as_uint(q[0]), __float_as_uint(q[8]), __float_as_uint(q[4 * pitch]),
                     __float_as_uint(q[4 * pitch + 8])}};
    return x;
}

static __device__ __forceinline__ igrt_mma_b igrt_mma_b_lines_32(const float *p, int pitch)
{
    const int lane = (int)threadIdx.x % 32;
    return igrt_mma_two(p + lane % 8 * pitch + lane / 8 % 2 * 4);
}

static __device__ __forceinline__ igrt_mma_b igrt_mma_b_halves_32(const float *p, int pitch)
{
    const int lane = (int)threadIdx.x % 32;
    return igrt_mma_two(p + (lane % 8 / 2 + lane % 2 * 4) * pitch + lane / 8 % 2 * 4);
}

static __device__ __forceinline__ igrt_mma_b igrt_mma_b_terms_32(const float *p, int pitch)
{
    const int lane = (int)threadIdx.x % 32;
    const float *q = p + lane % 4 * pitch + lane / 4;
    igrt_mma_b x = {{__float_as_uint(q[0]), __float_as_uint(q[4 * pitch])}};
    return x;
}

#define IGRT_MMA_OF(name, from)                                                         \
    static __device__ __forceinline__ igrt_mma_a igrt_mma_a_of_##name(                  \
        float x0, float x1, float x2, float x3, float x4, float x5, float x6, float x7) \
    {                                                                                   \
        igrt_mma_a a;                                                                   \
        asm("cvt.rn." from ".f32 %0, %1, %2;" : "=r"(a.v[0]) : "f"(x1), "f"(x0));       \
        asm("cvt.rn." from ".f32 %0, %1, %2;" : "=r"(a.v[1]) : "f"(x3), "f"(x2));       \
        asm("cvt.rn." from ".f32 %0, %1, %2;" : "=r"(a.v[2]) : "f"(x5), "f"(x4));       \
        asm("cvt.rn." from ".f32 %0, %1, %2;" : "=r"(a.v[3]) : "f"(x7), "f"(x6));       \
        return a;                                                                       \
    }
IGRT_MMA_OF(f16, "f16x2")
IGRT_MMA_OF(bf16, "bf16x2")
#undef IGRT_MMA_OF

static __device__ __forceinline__ igrt_mma_a igrt_mma_a_of_f32(float x0, float x1, float x2,
                                                               float x3)
{
    igrt_mma_a a = {
        {__float_as_uint(x0), __float_as_uint(x1), __float_as_uint(x2), __float_as_uint(x3)}};
    return a;
}

/* NaN if one of them is. */
static __device__ __forceinline__ float igrt_mma_quad_max(float x)
{
#pragma unroll
    for (int apart = 1; apart < 4; apart *= 2) {
        const float y = __shfl_xor_sync(0xffffffffu, x, apart);
        x = x != x || x > y ? x : y;
    }
    return x;
}

static __device__ __forceinline__ float igrt_mma_quad_add(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

#define IGRT_MMA_DOT(name, shape, types)                                                       \
    static __device__ __forceinline__ void igrt_mma_dot_##name(igrt_mma_c *c, igrt_mma_a a,    \
                                                               igrt_mma_b b)                   \
    {                                                                                          \
        asm volatile("mma.sync.aligned." shape ".row.col.f32." types ".f32 {%0, %1, %2, %3}, " \
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                           \
                     : "+f"(c->v[0]), "+f"(c->v[1]), "+f"(c->v[2]), "+f"(c->v[3])              \
                     : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b.v[0]),        \
                       "r"(b.v[1]));                                                           \
    }
IGRT_MMA_DOT(f16, "m16n8k16", "f16.f16")
IGRT_MMA_DOT(bf16, "m16n8k16", "bf16.bf16")
IGRT_MMA_DOT(tf32, "m16n8k8", "tf32.tf32")
#undef IGRT_MMA_DOT

#define IGRT_MMA_DOT(name, types)                                                               \
    static __device__ __forceinline__ void igrt_mma_dot_##name(igrt_mma_c_i32 *c, igrt_mma_a a, \
                                                               igrt_mma_b b)                    \
    {                                                                                           \
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." types ".s32 {%0, %1, %2, "        \
                     "%3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                       \
                     : "+r"(c->v[0]), "+r"(c->v[1]), "+r"(c->v[2]), "+r"(c->v[3])               \
                     : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b.v[0]),         \
                       "r"(b.v[1]));                                                            \
    }
IGRT_MMA_DOT(i8_i8, "s8.s8")
IGRT_MMA_DOT(i8_u8, "s8.u8")
IGRT_MMA_DOT(u8_i8, "u8.s8")
IGRT_MMA_DOT(u8_u8, "u8.u8")
#undef IGRT_MMA_DOT

/* What the unit adds up has few bits: so sums are of 32 terms, and are added in f32. */
#define IGRT_MMA_DOT(name, types)                                                             \
    static __device__ __forceinline__ void igrt_mma_dot_##name(igrt_mma_c *c, igrt_mma_a a,   \
                                                               igrt_mma_b b)                  \
    {                                                                                         \
        igrt_mma_c part = {{0}};                                                              \
        asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." types ".f32 {%0, %1, %2, %3}, " \
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
                     : "+f"(part.v[0]), "+f"(part.v[1]), "+f"(part.v[2]), "+f"(part.v[3])     \
                     : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b.v[0]),       \
                       "r"(b.v[1]));                                                          \
        for (int i = 0; i < 4; i++)                                                           \
            c->v[i] += part.v[i];                                                             \
    }
IGRT_MMA_DOT(f8e4m3fn_f8e4m3fn, "e4m3.e4m3")
IGRT_MMA_DOT(f8e4m3fn_f8e5m2, "e4m3.e5m2")
IGRT_MMA_DOT(f8e5m2_f8e4m3fn, "e5m2.e4m3")
IGRT_MMA_DOT(f8e5m2_f8e5m2, "e5m2.e5m2")
#undef IGRT_MMA_DOT

/* No farther from zero than the largest number that tf32 reads whole, so that infinity less this is
 * infinity, and NaN stays it. */
static __device__ __forceinline__ float igrt_mma_bounded(float x)
{
    const float most = __uint_as_float(0x7f7fe000u);
#if __CUDA_ARCH__ >= 860
    float y;
    asm("min.xorsign.abs.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(most));
    return y;
#else
    return fminf(fmaxf(x, -most), most);
#endif
}

/* What is left of x behind the bits that tf32 reads, of the same sign; of what tf32 reads of that
 * the nearest, or sums become less. */
static __device__ __forceinline__ float igrt_mma_rest(float x)
{
    const float rest = x - igrt_mma_bounded(__uint_as_float(__float_as_uint(x) & 0xffffe000u));
    return __uint_as_float(__float_as_uint(rest) + 0x1000u);
}

/* x becomes the nearest number that tf32 reads whole; what was left of it, of either sign. */
static __device__ __forceinline__ uint32_t igrt_mma_split(uint32_t *x)
{
    const float whole = __uint_as_float(*x);
    const float near = igrt_mma_bounded(__uint_as_float((*x + 0x1000u) & 0xffffe000u));
    *x = __float_as_uint(near);
    return __float_as_uint(whole - near);
}

/* f32 by three products, the small ones first, to a sum of their own: the unit rounds toward zero
 * what it adds to. The rests of one operand have either sign: so no product is left out that has
 * one sign in all terms. */
static __device__ __forceinline__ void igrt_mma_dot_tf32x3(igrt_mma_c *c, igrt_mma_a a,
                                                           igrt_mma_b b)
{
    igrt_mma_a low;
    igrt_mma_b rest;
    igrt_mma_c part = {{0}};
#pragma unroll
    for (int i = 0; i < 4; i++)
        low.v[i] = __float_as_uint(igrt_mma_rest(__uint_as_float(a.v[i])));
#pragma unroll
    for (int i = 0; i < 2; i++)
        rest.v[i] = igrt_mma_split(&b.v[i]);
    igrt_mma_dot_tf32(&part, low, b);
    igrt_mma_dot_tf32(&part, a, rest);
    igrt_mma_dot_tf32(&part, a, b);
#pragma unroll
    for (int i = 0; i < 4; i++)
        c->v[i] += part.v[i];
}

#define IGRT_COPY(bytes, type, zero)                                                     \
    static __device__ __forceinline__ void igrt_copy_##bytes(void *to, const void *from, \
                                                             int given)                  \
    {                                                                                    \
        *(type *)to = given ? *(const type *)from : zero;                                \
    }
IGRT_COPY(4, uint32_t, 0u)
IGRT_COPY(8, uint2, make_uint2(0u, 0u))
IGRT_COPY(16, uint4, make_uint4(0u, 0u, 0u, 0u))
#undef IGRT_COPY

/* Two neighbours, the first at a multiple of two. */
static __device__ __forceinline__ void igrt_two_8(void *to, int x, int y)
{
    *(uint16_t *)to = (uint16_t)((x & 255) | (y & 255) << 8);
}

static __device__ __forceinline__ void igrt_two_i32(void *to, int32_t x, int32_t y)
{
    *(uint2 *)to = make_uint2((uint32_t)x, (uint32_t)y);
}

static __device__ __forceinline__ void igrt_two_16(void *to, uint16_t x, uint16_t y)
{
    *(uint32_t *)to = x | (uint32_t)y << 16;
}

static __device__ __forceinline__ void igrt_two_32(void *to, float x, float y)
{
    *(float2 *)to = make_float2(x, y);
}

static __device__ __forceinline__ uint32_t igrt_pair_16(uint16_t x, uint16_t y)
{
    return x | (uint32_t)y << 16;
}

/* Items 4 i + q of a warp have columns 2 q and 2 q + 1 of four blocks of eight, or all of block
 * q. */
typedef struct {
    uint32_t v[4];
} igrt_row;

/* One of both becomes the other, as 4 x 4 are transposed: what item q has as p comes to item p as
 * q. */
static __device__ __forceinline__ igrt_row igrt_row_turned(igrt_row r)
{
    const int q = (int)threadIdx.x % 4;
    uint32_t x = q & 1 ? r.v[0] : r.v[1], y = q & 1 ? r.v[2] : r.v[3];
    x = __shfl_xor_sync(0xffffffffu, x, 1);
    y = __shfl_xor_sync(0xffffffffu, y, 1);
    const uint32_t w0 = q & 1 ? x : r.v[0], w1 = q & 1 ? r.v[1] : x, w2 = q & 1 ? y : r.v[2],
                   w3 = q & 1 ? r.v[3] : y;
    x = q & 2 ? w0 : w2;
    y = q & 2 ? w1 : w3;
    x = __shfl_xor_sync(0xffffffffu, x, 2);
    y = __shfl_xor_sync(0xffffffffu, y, 2);
    const igrt_row low = {{w0, w1, x, y}}, high = {{x, y, w2, w3}};
    return q & 2 ? high : low;
}

static __device__ __forceinline__ void igrt_row_16(uint16_t *to, int given, uint32_t v0,
                                                   uint32_t v1, uint32_t v2, uint32_t v3)
{
    const igrt_row mine = {{v0, v1, v2, v3}}, r = igrt_row_turned(mine);
    const int q = (int)threadIdx.x % 4;
    if (given)
        *(uint4 *)(to + 6 * q) = make_uint4(r.v[0], r.v[1], r.v[2], r.v[3]);
}

static __device__ __forceinline__ igrt_row igrt_row_of_16(const uint16_t *from, int given)
{
    const int q = (int)threadIdx.x % 4;
    const uint4 x = given ? *(const uint4 *)(from + 6 * q) : make_uint4(0u, 0u, 0u, 0u);
    const igrt_row r = {{x.x, x.y, x.z, x.w}};
    return r;
}

typedef struct {
    uint32_t v[1];
} igrt_pair;

static __device__ __forceinline__ igrt_pair igrt_pair_of_16(const uint16_t *from, int given)
{
    const igrt_pair r = {{given ? *(const uint32_t *)from : 0u}};
    return r;
}

static __device__ __forceinline__ float2 igrt_pair_of_32(const float *from, int given)
{
    return given ? *(const float2 *)from : make_float2(0.0f, 0.0f);
}

/* Into memory of the group; 16 bytes go past the first level of cache, which takes no others so. */
#define IGRT_COPY_ASYNC(bytes, level)                                                          \
    static __device__ __forceinline__ void igrt_copy_async_##bytes(void *to, const void *from, \
                                                                   int given)                  \
    {                                                                                          \
        asm volatile("cp.async." level ".shared.global [%0], [%1], " #bytes ", %2;"            \
                     :                                                                         \
                     : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from),                 \
                       "r"(given ? bytes : 0)                                                  \
                     : "memory");                                                              \
    }
IGRT_COPY_ASYNC(4, "ca")
IGRT_COPY_ASYNC(8, "ca")
IGRT_COPY_ASYNC(16, "cg")
#undef IGRT_COPY_ASYNC

/* Its line comes to the second level of cache; nothing is read. */
static __device__ __forceinline__ void igrt_prefetch(const void *from)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

/* The same of so many bytes as there are, the others are zeros. */
#define IGRT_COPY_PART(bytes, word, level)                                                       \
    static __device__ __forceinline__ void igrt_copy_part_##bytes(void *to, const void *from,    \
                                                                  int given)                     \
    {                                                                                            \
        for (int i = 0; i < bytes / (int)sizeof(word); i++)                                      \
            ((word *)to)[i] = i * (int)sizeof(word) < given ? ((const word *)from)[i] : (word)0; \
    }                                                                                            \
    static __device__ __forceinline__ void igrt_copy_part_async_##bytes(                         \
        void *to, const void *from, int given)                                                   \
    {                                                                                            \
        asm volatile("cp.async." level ".shared.global [%0], [%1], " #bytes ", %2;"              \
                     :                                                                           \
                     : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "r"(given)        \
                     : "memory");                                                                \
    }
IGRT_COPY_PART(4, uint16_t, "ca")
IGRT_COPY_PART(8, uint16_t, "ca")
IGRT_COPY_PART(16, uint16_t, "cg")
#undef IGRT_COPY_PART

/* The same, and bytes that are none of what is copied where nothing is given: those the item stores
 * itself. */
#define IGRT_COPY_OR(bytes, type, ...)                                                            \
    static __device__ __forceinline__ void igrt_copy_or_##bytes(void *to, const void *from,       \
                                                                int given, uint32_t four)         \
    {                                                                                             \
        *(type *)to = given ? *(const type *)from : __VA_ARGS__;                                  \
    }                                                                                             \
    static __device__ __forceinline__ void igrt_copy_or_async_##bytes(void *to, const void *from, \
                                                                      int given, uint32_t four)   \
    {                                                                                             \
        if (given)                                                                                \
            igrt_copy_async_##bytes(to, from, 1);                                                 \
        else                                                                                      \
            *(type *)to = __VA_ARGS__;                                                            \
    }
IGRT_COPY_OR(4, uint32_t, four)
IGRT_COPY_OR(8, uint2, make_uint2(four, four))
IGRT_COPY_OR(16, uint4, make_uint4(four, four, four, four))
#undef IGRT_COPY_OR
#define igrt_copy_commit() asm volatile("cp.async.commit_group;" ::: "memory")
#define igrt_copy_wait(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
