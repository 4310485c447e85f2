/*
 * igrt_wgmma.h - CUDA, sm_90a: products that the 128 items of a warpgroup have together (wgmma), of
 * operands that lie in memory of the group, and the copies that bring boxes of a buffer there.
 *
 *     igrt_wgmma_lines(p)            an operand at p: lines of terms, 128 bytes from one to the
 *                                    next
 *     igrt_wgmma_half_lines(p)       the same of 64 bytes
 *     igrt_wgmma_terms(p, apart)     terms of lines: 64 lines of a term side by side, the next 64
 *                                    lines `apart` elements behind
 *     igrt_wgmma256_dot_f16<ta, tb>(&c, a, b)    c += a b, 64 rows by 256 columns by 16 terms; ta,
 *                                                tb: a, b are terms of lines; _bf16; 192, 128,
 *                                                64, 32; <ta, tb, 0>: c = a b
 *     igrt_wgmma128_rows_f16<tb>(&c, a, b)       the same of rows that items have (igrt_mma_a);
 *                                                _bf16; 64
 *     igrt_wgmma256_dot_i8_u8(&c, a, b)          the same of bytes with a sign and without, in any
 *                                                combination: 32 terms, lines of terms
 *     igrt_wgmma256_dot_f8e4m3fn_f8e5m2(&c, a, b)    the same of f8 in both forms, to sums of f32
 *                                    that have few bits: about 14 behind the greatest term's
 *     igrt_wgmma128x2_dot_f8e4m3fn_f8e5m2(&c, a, b, tokens, iteration, depth)    128 terms; sums of
 *                                    these alone have few bits, and are added in f32
 *     igrt_wgmma_dot_tf32x3(&c, a, b, rests, tokens, iteration, depth)    the same of f32, 64 rows
 *                                    by the columns of c by 32 terms, lines of terms, 32 elements
 *                                    from one to the next; rests: two blocks like b, the
 *                                    warpgroup's own
 *
 *     igrt_is_loader(items)          the one item beyond the group's, which has the copies made;
 *                                    0: the group's first, where each iteration has its own place
 *     igrt_warp_meets()              behind what it alone has done
 *     igrt_is_beside_loader(items)   its warpgroup, if there is a whole one
 *     igrt_item_again()              the item's number, which compilers cannot know to be that of
 *                                    the block before
 *     igrt_give_registers<n>()       by all items of a warpgroup, which has n registers each from
 *                                    now on;
 *     igrt_take_registers<n>()       the same, of another that waits until so many have been given
 *     igrt_box_2(to, &map, token, x, y)    a box of the map at x, y; bytes that arrive are counted
 *                                          by the token; _3, _4, _5
 *     igrt_ask_for_box_2(&map, x, y)       it comes to the second level of cache; nothing is read
 *     igrt_window_4(to, &map, token, x, y, z, u, i, j)    one tap (i, j) of a window's positions,
 *                                          from that at y, z, u on, channels from x on; _3, _5
 *
 * Places are filled for later iterations. For each there are two tokens, which the sides wait for
 * in turn:
 *
 *     igrt_tokens_begin(tokens, depth, warpgroups)   by all items, before anything else
 *     igrt_claim(tokens, iteration, depth, bytes)    the loader: until the place of this iteration
 *                                                    is free; so many bytes will fill it
 *     igrt_filled(tokens, iteration, depth)          the others: until it is filled
 *     igrt_release(tokens, iteration, depth)         their products of the iteration before are
 *                                                    done, and its place is free
 *     igrt_free(tokens, iteration, depth)            the same where these products have been waited
 *                                                    for already, by _dot_tf32x3 or _done
 *     igrt_wgmma_done(&c, tokens, iteration, depth)  all of their products are done, the last of
 *         them of this iteration; the sums c may be read
 *
 * What is copied before all iterations has one token more (igrt_tokens_begin(.., 1)):
 * igrt_claim_once, _filled_once, _filled_token_once. Rows of attention:
 *
 *     igrt_wgmma_commit()            products so far are a group, which _done waits for
 *     igrt_wgmma_scale(&c, x, y)     the two lines that an item has of each eight columns; what is
 *                                    in registers is seen by products that follow; _fence() alone
 *
 * Groups of a cluster that have parts of the same sums:
 *
 *     igrt_cluster_begin()           by all items, before anything else: the group's memory is
 *                                    there
 *     igrt_cluster_at(place, size, at)  element at % size of group at / size
 *     igrt_cluster_there()           until that of all groups is, but of those that have ended
 *     igrt_cluster_meet()            all items of all groups come here, and see what they have
 *                                    written
 *     igrt_cluster_give<n, share, items, groups>(sums, place, first)    n of an item's sums, from
 *                                    number `first` on: the first `share` of them go to the first
 *                                    group's place, and so on, those of this one excepted
 *     igrt_cluster_take<...>(...)    to the group's own share what the others have given is added
 *
 * Lines of 128 bytes, and of 64, are swizzled by copies and products alike. Which elements an item
 * has of the sums: PTX ISA, "wgmma.m64nNk16".
 */
typedef uint64_t igrt_wgmma_operand;
typedef struct {
    float v[128];
} igrt_wgmma256_c;
typedef struct {
    float v[96];
} igrt_wgmma192_c;
typedef struct {
    float v[64];
} igrt_wgmma128_c;
/* Sums, and those that products under way add to. */
template <int N> struct igrt_wgmma_two {
    float v[N / 2], part[N / 2];
};
typedef igrt_wgmma_two<48> igrt_wgmma48x3_c;
typedef igrt_wgmma_two<64> igrt_wgmma64x3_c;
typedef igrt_wgmma_two<96> igrt_wgmma96x3_c;
typedef igrt_wgmma_two<128> igrt_wgmma128x3_c;
typedef igrt_wgmma_two<8> igrt_wgmma8x2_c;
typedef igrt_wgmma_two<64> igrt_wgmma64x2_c;
typedef igrt_wgmma_two<96> igrt_wgmma96x2_c;
typedef igrt_wgmma_two<128> igrt_wgmma128x2_c;
typedef igrt_wgmma_two<192> igrt_wgmma192x2_c;
typedef struct {
    float v[32];
} igrt_wgmma64_c;
typedef struct {
    float v[16];
} igrt_wgmma32_c;
typedef struct {
    float v[4];
} igrt_wgmma8_c;
typedef struct {
    int32_t v[128];
} igrt_wgmma256_c_i32;
typedef struct {
    int32_t v[64];
} igrt_wgmma128_c_i32;
typedef struct {
    int32_t v[32];
} igrt_wgmma64_c_i32;
typedef struct __align__(64)
{
    uint64_t word[16];
}
igrt_map;

/* Where it lies, in units of 16 bytes; from 64 lines to the next, and from eight lines to the next;
 * swizzle of 128 bytes, or of 64. */
static __device__ __forceinline__ igrt_wgmma_operand igrt_wgmma_at(const void *p, int apart)
{
    return (uint64_t)(((uint32_t)__cvta_generic_to_shared(p) & 0x3ffffu) >> 4) |
           (uint64_t)(apart >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

static __device__ __forceinline__ igrt_wgmma_operand igrt_wgmma_half_lines(const void *p)
{
    return (uint64_t)(((uint32_t)__cvta_generic_to_shared(p) & 0x3ffffu) >> 4) |
           (uint64_t)(16 >> 4) << 16 | (uint64_t)(512 >> 4) << 32 | (uint64_t)2 << 62;
}

static __device__ __forceinline__ igrt_wgmma_operand igrt_wgmma_lines(const void *p)
{
    return igrt_wgmma_at(p, 16);
}

static __device__ __forceinline__ igrt_wgmma_operand igrt_wgmma_terms(const uint16_t *p, int apart)
{
    return igrt_wgmma_at(p, 2 * apart);
}

#define IGRT_0_23                                                            \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23"
#define IGRT_0_15 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define IGRT_0_31 IGRT_0_23 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define IGRT_32_47 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define IGRT_32_63 \
    IGRT_32_47 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define IGRT_64_95                                                                     \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define IGRT_64_127                                                                             \
    IGRT_64_95 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, "   \
               "%109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, " \
               "%122, %123, %124, %125, %126, %127"
#define IGRT_SUMS_8(w, i)                                                                       \
    w(c->v[i]), w(c->v[i + 1]), w(c->v[i + 2]), w(c->v[i + 3]), w(c->v[i + 4]), w(c->v[i + 5]), \
        w(c->v[i + 6]), w(c->v[i + 7])
#define IGRT_SUMS_32(w, i) \
    IGRT_SUMS_8(w, i), IGRT_SUMS_8(w, i + 8), IGRT_SUMS_8(w, i + 16), IGRT_SUMS_8(w, i + 24)
#define IGRT_PART_8(i)                                                                  \
    "+f"(c->part[i]), "+f"(c->part[i + 1]), "+f"(c->part[i + 2]), "+f"(c->part[i + 3]), \
        "+f"(c->part[i + 4]), "+f"(c->part[i + 5]), "+f"(c->part[i + 6]), "+f"(c->part[i + 7])
#define IGRT_PART_32(i) IGRT_PART_8(i), IGRT_PART_8(i + 8), IGRT_PART_8(i + 16), IGRT_PART_8(i + 24)
#define IGRT_WGMMA_DOT(n, type, sums, a, b, add, ta, tb, ...)                                    \
    template <int TA, int TB, int ADD = 1>                                                       \
    static __device__ __forceinline__ void igrt_wgmma##n##_dot_##type(                           \
        igrt_wgmma##n##_c *c, igrt_wgmma_operand x, igrt_wgmma_operand y)                        \
    {                                                                                            \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." #type "." #type " {" sums \
                     "}, " a ", " b ", " add ", 1, 1, " ta ", " tb ";"                           \
                     : __VA_ARGS__                                                               \
                     : "l"(x), "l"(y), "n"(ADD), "n"(TA), "n"(TB));                              \
    }
#define IGRT_WGMMA_DOTS(type)                                                                     \
    IGRT_WGMMA_DOT(8, type, "%0, %1, %2, %3", "%4", "%5", "%6", "%7", "%8", "+f"(c->v[0]),        \
                   "+f"(c->v[1]), "+f"(c->v[2]), "+f"(c->v[3]))                                   \
    IGRT_WGMMA_DOT(32, type, IGRT_0_15, "%16", "%17", "%18", "%19", "%20", IGRT_SUMS_8("+f", 0),  \
                   IGRT_SUMS_8("+f", 8))                                                          \
    IGRT_WGMMA_DOT(64, type, IGRT_0_31, "%32", "%33", "%34", "%35", "%36", IGRT_SUMS_32("+f", 0)) \
    IGRT_WGMMA_DOT(128, type, IGRT_0_31 ", " IGRT_32_63, "%64", "%65", "%66", "%67", "%68",       \
                   IGRT_SUMS_32("+f", 0), IGRT_SUMS_32("+f", 32))                                 \
    IGRT_WGMMA_DOT(192, type, IGRT_0_31 ", " IGRT_32_63 ", " IGRT_64_95, "%96", "%97", "%98",     \
                   "%99", "%100", IGRT_SUMS_32("+f", 0), IGRT_SUMS_32("+f", 32),                  \
                   IGRT_SUMS_32("+f", 64))                                                        \
    IGRT_WGMMA_DOT(256, type, IGRT_0_31 ", " IGRT_32_63 ", " IGRT_64_127, "%128", "%129", "%130", \
                   "%131", "%132", IGRT_SUMS_32("+f", 0), IGRT_SUMS_32("+f", 32),                 \
                   IGRT_SUMS_32("+f", 64), IGRT_SUMS_32("+f", 96))
IGRT_WGMMA_DOTS(f16)
IGRT_WGMMA_DOTS(bf16)
#undef IGRT_WGMMA_DOTS
#undef IGRT_WGMMA_DOT

/* Operand a is in the registers of the items. */
#define IGRT_WGMMA_ROWS(n, type, sums, a0, a1, a2, a3, b, tb, ...)                               \
    template <int TB>                                                                            \
    static __device__ __forceinline__ void igrt_wgmma##n##_rows_##type(                          \
        igrt_wgmma##n##_c *c, igrt_mma_a x, igrt_wgmma_operand y)                                \
    {                                                                                            \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." #type "." #type " {" sums \
                     "}, {" a0 ", " a1 ", " a2 ", " a3 "}, " b ", 1, 1, 1, " tb ";"              \
                     : __VA_ARGS__                                                               \
                     : "r"(x.v[0]), "r"(x.v[1]), "r"(x.v[2]), "r"(x.v[3]), "l"(y), "n"(TB));     \
    }
#define IGRT_WGMMA_ROWS_OF(type)                                                             \
    IGRT_WGMMA_ROWS(64, type, IGRT_0_31, "%32", "%33", "%34", "%35", "%36", "%37",           \
                    IGRT_SUMS_32("+f", 0))                                                   \
    IGRT_WGMMA_ROWS(128, type, IGRT_0_31 ", " IGRT_32_63, "%64", "%65", "%66", "%67", "%68", \
                    "%69", IGRT_SUMS_32("+f", 0), IGRT_SUMS_32("+f", 32))
IGRT_WGMMA_ROWS_OF(f16)
IGRT_WGMMA_ROWS_OF(bf16)
#undef IGRT_WGMMA_ROWS_OF
#undef IGRT_WGMMA_ROWS

/* Of bytes 32 terms, with a sign (s8) or without (u8). */
#define IGRT_WGMMA_BYTES(n, x, y, s8_x, s8_y, sums, a, b, ...)                                 \
    static __device__ __forceinline__ void igrt_wgmma##n##_dot_##x##_##y(                      \
        igrt_wgmma##n##_c_i32 *c, igrt_wgmma_operand p, igrt_wgmma_operand q)                  \
    {                                                                                          \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k32.s32." s8_x "." s8_y " {" sums \
                     "}, " a ", " b ", 1;"                                                     \
                     : __VA_ARGS__                                                             \
                     : "l"(p), "l"(q));                                                        \
    }
#define IGRT_WGMMA_DOTS(x, y, s8_x, s8_y)                                                       \
    IGRT_WGMMA_BYTES(64, x, y, s8_x, s8_y, IGRT_0_31, "%32", "%33", IGRT_SUMS_32("+r", 0))      \
    IGRT_WGMMA_BYTES(128, x, y, s8_x, s8_y, IGRT_0_31 ", " IGRT_32_63, "%64", "%65",            \
                     IGRT_SUMS_32("+r", 0), IGRT_SUMS_32("+r", 32))                             \
    IGRT_WGMMA_BYTES(256, x, y, s8_x, s8_y, IGRT_0_31 ", " IGRT_32_63 ", " IGRT_64_127, "%128", \
                     "%129", IGRT_SUMS_32("+r", 0), IGRT_SUMS_32("+r", 32),                     \
                     IGRT_SUMS_32("+r", 64), IGRT_SUMS_32("+r", 96))
IGRT_WGMMA_DOTS(i8, i8, "s8", "s8")
IGRT_WGMMA_DOTS(i8, u8, "s8", "u8")
IGRT_WGMMA_DOTS(u8, i8, "u8", "s8")
IGRT_WGMMA_DOTS(u8, u8, "u8", "u8")
#undef IGRT_WGMMA_DOTS
#undef IGRT_WGMMA_BYTES

/* Of f8 32 terms, to sums of few bits: to those of the product, or to parts of 128 terms (ADD: to
 * what is there, or else in its place). */
#define IGRT_WGMMA_SHORT(n, x, y, type_x, type_y, sums, a, b, ...)                                 \
    static __device__ __forceinline__ void igrt_wgmma##n##_dot_##x##_##y(                          \
        igrt_wgmma##n##_c *c, igrt_wgmma_operand p, igrt_wgmma_operand q)                          \
    {                                                                                              \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k32.f32." type_x "." type_y " {" sums \
                     "}, " a ", " b ", 1, 1, 1;"                                                   \
                     : __VA_ARGS__                                                                 \
                     : "l"(p), "l"(q));                                                            \
    }
#define IGRT_WGMMA_PART(n, x, y, type_x, type_y, sums, a, b, add, ...)                             \
    template <int ADD>                                                                             \
    static __device__ __forceinline__ void igrt_wgmma_part_##x##_##y(                              \
        igrt_wgmma_two<n> *c, igrt_wgmma_operand p, igrt_wgmma_operand q)                          \
    {                                                                                              \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k32.f32." type_x "." type_y " {" sums \
                     "}, " a ", " b ", " add ", 1, 1;"                                             \
                     : __VA_ARGS__                                                                 \
                     : "l"(p), "l"(q), "n"(ADD));                                                  \
    }
#define IGRT_WGMMA_DOTS(x, y, type_x, type_y)                                                      \
    IGRT_WGMMA_SHORT(64, x, y, type_x, type_y, IGRT_0_31, "%32", "%33", IGRT_SUMS_32("+f", 0))     \
    IGRT_WGMMA_SHORT(128, x, y, type_x, type_y, IGRT_0_31 ", " IGRT_32_63, "%64", "%65",           \
                     IGRT_SUMS_32("+f", 0), IGRT_SUMS_32("+f", 32))                                \
    IGRT_WGMMA_SHORT(192, x, y, type_x, type_y, IGRT_0_31 ", " IGRT_32_63 ", " IGRT_64_95, "%96",  \
                     "%97", IGRT_SUMS_32("+f", 0), IGRT_SUMS_32("+f", 32), IGRT_SUMS_32("+f", 64)) \
    IGRT_WGMMA_SHORT(256, x, y, type_x, type_y, IGRT_0_31 ", " IGRT_32_63 ", " IGRT_64_127,        \
                     "%128", "%129", IGRT_SUMS_32("+f", 0), IGRT_SUMS_32("+f", 32),                \
                     IGRT_SUMS_32("+f", 64), IGRT_SUMS_32("+f", 96))                               \
    IGRT_WGMMA_PART(8, x, y, type_x, type_y, "%0, %1, %2, %3", "%4", "%5", "%6", "+f"(c->part[0]), \
                    "+f"(c->part[1]), "+f"(c->part[2]), "+f"(c->part[3]))                          \
    IGRT_WGMMA_PART(64, x, y, type_x, type_y, IGRT_0_31, "%32", "%33", "%34", IGRT_PART_32(0))     \
    IGRT_WGMMA_PART(96, x, y, type_x, type_y, IGRT_0_31 ", " IGRT_32_47, "%48", "%49", "%50",      \
                    IGRT_PART_32(0), IGRT_PART_8(32), IGRT_PART_8(40))                             \
    IGRT_WGMMA_PART(128, x, y, type_x, type_y, IGRT_0_31 ", " IGRT_32_63, "%64", "%65", "%66",     \
                    IGRT_PART_32(0), IGRT_PART_32(32))                                             \
    IGRT_WGMMA_PART(192, x, y, type_x, type_y, IGRT_0_31 ", " IGRT_32_63 ", " IGRT_64_95, "%96",   \
                    "%97", "%98", IGRT_PART_32(0), IGRT_PART_32(32), IGRT_PART_32(64))
IGRT_WGMMA_DOTS(f8e4m3fn, f8e4m3fn, "e4m3", "e4m3")
IGRT_WGMMA_DOTS(f8e4m3fn, f8e5m2, "e4m3", "e5m2")
IGRT_WGMMA_DOTS(f8e5m2, f8e4m3fn, "e5m2", "e4m3")
IGRT_WGMMA_DOTS(f8e5m2, f8e5m2, "e5m2", "e5m2")
#undef IGRT_WGMMA_DOTS
#undef IGRT_WGMMA_PART
#undef IGRT_WGMMA_SHORT

/* ---- f32 by three products of what tf32 reads ------------------------------------------------ */

static __device__ __forceinline__ uint32_t igrt_token(uint64_t *tokens, int i);
static __device__ __forceinline__ void igrt_token_wait(uint32_t token, int phase);

/* All items of the warpgroup. */
static __device__ __forceinline__ void igrt_warpgroup_meet(void)
{
    asm volatile("bar.sync %0, 128;" : : "r"(1 + (int)threadIdx.x / 128) : "memory");
}

/* Of an operand, in memory of the same group as `own`: an operand does not say of which group of a
 * cluster it is. */
static __device__ __forceinline__ void *igrt_wgmma_memory(igrt_wgmma_operand x, const void *own)
{
    const uint32_t group = (uint32_t)__cvta_generic_to_shared(own) & ~0x3ffffu;
    return __cvta_shared_to_generic(group | (uint32_t)(x & 0x3fffu) << 4);
}

/* Terms 8 i to 8 i + 7 of the warp's 16 rows. */
static __device__ __forceinline__ igrt_mma_a igrt_wgmma_rows(const void *a, int i)
{
    const int row = (int)threadIdx.x / 32 % 4 * 16 + (int)threadIdx.x % 16;
    const int chunk = (2 * i + (int)threadIdx.x % 32 / 16) ^ (row % 8);
    return igrt_mma_four((const unsigned char *)a + (row * 128 + chunk * 16));
}

/* What is left of N lines, as they lie. */
template <int N>
static __device__ __forceinline__ void igrt_wgmma_rests(float4 *rests, const float4 *b)
{
    const int at = (int)threadIdx.x % 128;
    float4 x[N / 16];
#pragma unroll
    for (int i = 0; i < N / 16; i++)
        x[i] = b[i * 128 + at];
#pragma unroll
    for (int i = 0; i < N / 16; i++)
        rests[i * 128 + at] = make_float4(igrt_mma_rest(x[i].x), igrt_mma_rest(x[i].y),
                                          igrt_mma_rest(x[i].z), igrt_mma_rest(x[i].w));
}

/* Of eight terms; ADD: to what is there, or else in its place. */
#define IGRT_WGMMA_TF32(n, sums, a0, a1, a2, a3, y, add, ...)                                      \
    template <int ADD>                                                                             \
    static __device__ __forceinline__ void igrt_wgmma_dot_tf32(igrt_wgmma_two<n> *c, igrt_mma_a a, \
                                                               uint64_t b)                         \
    {                                                                                              \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" sums "}, {" a0    \
                     ", " a1 ", " a2 ", " a3 "}, " y ", " add ", 1, 1;"                            \
                     : __VA_ARGS__                                                                 \
                     : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "l"(b), "n"(ADD));      \
    }
IGRT_WGMMA_TF32(48, IGRT_0_23, "%24", "%25", "%26", "%27", "%28", "%29", IGRT_PART_8(0),
                IGRT_PART_8(8), IGRT_PART_8(16))
IGRT_WGMMA_TF32(64, IGRT_0_31, "%32", "%33", "%34", "%35", "%36", "%37", IGRT_PART_32(0))
IGRT_WGMMA_TF32(96, IGRT_0_31 ", " IGRT_32_47, "%48", "%49", "%50", "%51", "%52", "%53",
                IGRT_PART_32(0), IGRT_PART_8(32), IGRT_PART_8(40))
IGRT_WGMMA_TF32(128, IGRT_0_31 ", " IGRT_32_63, "%64", "%65", "%66", "%67", "%68", "%69",
                IGRT_PART_32(0), IGRT_PART_32(32))
#undef IGRT_WGMMA_TF32

/* The products before, for which the warpgroup has waited; behind a loop, as below in
 * igrt_wgmma_done(). */
template <int N>
static __device__ __forceinline__ void igrt_wgmma_add(igrt_wgmma_two<N> *c, uint64_t *tokens,
                                                      int iteration, int depth)
{
    igrt_token_wait(igrt_token(tokens, iteration % depth), iteration / depth & 1);
#pragma unroll
    for (int i = 0; i < N / 2; i++) {
        asm volatile("" : "+f"(c->part[i]));
        c->v[i] += c->part[i];
    }
}

/* A line of 128 terms of f8, once that of the iteration before is done and has been added. */
#define IGRT_WGMMA_LINE(n, x, y)                                                            \
    static __device__ __forceinline__ void igrt_wgmma##n##x2_dot_##x##_##y(                 \
        igrt_wgmma_two<n> *c, igrt_wgmma_operand a, igrt_wgmma_operand b, uint64_t *tokens, \
        int iteration, int depth)                                                           \
    {                                                                                       \
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                      \
        igrt_wgmma_add(c, tokens, iteration, depth);                                        \
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                             \
        igrt_wgmma_part_##x##_##y<0>(c, a, b);                                              \
        _Pragma("unroll") for (int i = 1; i < 4; i++)                                       \
            igrt_wgmma_part_##x##_##y<1>(c, a + 2 * i, b + 2 * i);                          \
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                      \
    }
#define IGRT_WGMMA_LINES(x, y) \
    IGRT_WGMMA_LINE(8, x, y)   \
    IGRT_WGMMA_LINE(64, x, y)  \
    IGRT_WGMMA_LINE(96, x, y)  \
    IGRT_WGMMA_LINE(128, x, y) \
    IGRT_WGMMA_LINE(192, x, y)
IGRT_WGMMA_LINES(f8e4m3fn, f8e4m3fn)
IGRT_WGMMA_LINES(f8e4m3fn, f8e5m2)
IGRT_WGMMA_LINES(f8e5m2, f8e4m3fn)
IGRT_WGMMA_LINES(f8e5m2, f8e5m2)
#undef IGRT_WGMMA_LINES
#undef IGRT_WGMMA_LINE

/* Small products first, to sums of their own: the unit rounds toward zero what it adds to. While
 * operands are taken apart the products of the iteration before are under way, which read the rests
 * of another block. */
template <int N>
static __device__ __forceinline__ void
igrt_wgmma_dot_tf32x3(igrt_wgmma_two<N> *c, igrt_wgmma_operand a, igrt_wgmma_operand b,
                      float *rests, uint64_t *tokens, int iteration, int depth)
{
    igrt_mma_a high[4], low[4];
    const void *const rows = igrt_wgmma_memory(a, rests);
    rests += iteration % 2 * (32 * N);
#pragma unroll
    for (int i = 0; i < 4; i++)
        high[i] = igrt_wgmma_rows(rows, i);
    igrt_wgmma_rests<N>((float4 *)rests, (const float4 *)igrt_wgmma_memory(b, rests));
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            low[i].v[j] = igrt_mma_split(&high[i].v[j]);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    igrt_warpgroup_meet();
    igrt_wgmma_add(c, tokens, iteration, depth);
    const igrt_wgmma_operand rest = igrt_wgmma_lines(rests);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    igrt_wgmma_dot_tf32<0>(c, low[0], b);
#pragma unroll
    for (int i = 1; i < 4; i++)
        igrt_wgmma_dot_tf32<1>(c, low[i], b + 2 * i);
#pragma unroll
    for (int i = 0; i < 4; i++)
        igrt_wgmma_dot_tf32<1>(c, high[i], rest + 2 * i);
#pragma unroll
    for (int i = 0; i < 4; i++)
        igrt_wgmma_dot_tf32<1>(c, high[i], b + 2 * i);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
#undef IGRT_PART_32
#undef IGRT_PART_8
#undef IGRT_SUMS_32
#undef IGRT_SUMS_8
#undef IGRT_0_23
#undef IGRT_0_31
#undef IGRT_0_15
#undef IGRT_32_47
#undef IGRT_32_63
#undef IGRT_64_127
#undef IGRT_64_95

/* ---- tokens ---------------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t igrt_token(uint64_t *tokens, int i)
{
    return (uint32_t)__cvta_generic_to_shared(tokens + i);
}

static __device__ __forceinline__ uint32_t igrt_filled_token(uint64_t *tokens, int iteration,
                                                             int depth)
{
    return igrt_token(tokens, iteration % depth);
}

static __device__ __forceinline__ void igrt_token_wait(uint32_t token, int phase)
{
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; "
                 "@p bra DONE; bra WAIT; DONE: }"
                 :
                 : "r"(token), "r"(phase)
                 : "memory");
}

static __device__ __forceinline__ void igrt_tokens_begin(uint64_t *tokens, int depth,
                                                         int warpgroups, int once = 0)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * depth + once; i++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                         :
                         : "r"(igrt_token(tokens, i)),
                           "r"(i < depth || i == 2 * depth ? 1 : warpgroups)
                         : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
}

static __device__ __forceinline__ int igrt_is_loader(int items)
{
    return (int)threadIdx.x == items;
}

static __device__ __forceinline__ void igrt_warp_meets(void)
{
    __syncwarp();
}

static __device__ __forceinline__ int igrt_is_beside_loader(int items)
{
    return (int)threadIdx.x >= items;
}

template <int REGISTERS> static __device__ __forceinline__ void igrt_give_registers(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(REGISTERS));
}

template <int REGISTERS> static __device__ __forceinline__ void igrt_take_registers(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(REGISTERS));
}

static __device__ __forceinline__ void igrt_claim(uint64_t *tokens, int iteration, int depth,
                                                  int bytes)
{
    igrt_token_wait(igrt_token(tokens, depth + iteration % depth), (iteration / depth & 1) ^ 1);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(igrt_token(tokens, iteration % depth)), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void igrt_filled(uint64_t *tokens, int iteration, int depth)
{
    igrt_token_wait(igrt_token(tokens, iteration % depth), iteration / depth & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ uint32_t igrt_filled_token_once(uint64_t *tokens, int depth)
{
    return igrt_token(tokens, 2 * depth);
}

static __device__ __forceinline__ void igrt_claim_once(uint64_t *tokens, int depth, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(igrt_token(tokens, 2 * depth)), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void igrt_filled_once(uint64_t *tokens, int depth)
{
    igrt_token_wait(igrt_token(tokens, 2 * depth), 0);
}

static __device__ __forceinline__ void igrt_free(uint64_t *tokens, int iteration, int depth,
                                                 int turn = 0)
{
    if (iteration && threadIdx.x % 128 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                     :
                     : "r"(igrt_token(tokens, depth + (iteration - 1 + turn) % depth))
                     : "memory");
}

static __device__ __forceinline__ void igrt_release(uint64_t *tokens, int iteration, int depth,
                                                    int turn = 0)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    igrt_free(tokens, iteration, depth, turn);
}

static __device__ __forceinline__ void igrt_changed(float *x)
{
    asm volatile("" : "+f"(*x));
}

static __device__ __forceinline__ void igrt_changed(int32_t *x)
{
    asm volatile("" : "+r"(*x));
}

static __device__ __forceinline__ int igrt_item_again(void)
{
    int32_t item = (int32_t)threadIdx.x;
    igrt_changed(&item);
    return item;
}

/* Products change the sums behind the compilers' backs until the wait ends, and reads that are no
 * memory's go before it: the sums are said to be changed here, which the compiler of C heeds; and
 * the token, which has come, is waited for again, since ptxas moves arithmetic before a wait for
 * products, but not out of what follows a loop. */
template <typename Sums>
static __device__ __forceinline__ void igrt_wgmma_done(Sums *c, uint64_t *tokens, int iteration,
                                                       int depth)
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    igrt_token_wait(igrt_token(tokens, iteration % depth), iteration / depth & 1);
#pragma unroll
    for (int i = 0; i < (int)(sizeof c->v / sizeof c->v[0]); i++)
        igrt_changed(&c->v[i]);
}

template <int N>
static __device__ __forceinline__ void igrt_wgmma_done(igrt_wgmma_two<N> *c, uint64_t *tokens,
                                                       int iteration, int depth)
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    igrt_wgmma_add(c, tokens, iteration, depth);
}

/* ---- attention ------------------------------------------------------------------------------- */

static __device__ __forceinline__ void igrt_wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void igrt_wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Of the two lines that an item has of each eight columns. */
template <typename Sums>
static __device__ __forceinline__ void igrt_wgmma_scale(Sums *c, float first, float second)
{
#pragma unroll
    for (int i = 0; i < (int)(sizeof c->v / sizeof c->v[0]); i++)
        c->v[i] *= i & 2 ? second : first;
    igrt_wgmma_fence();
}

/* ---- clusters -------------------------------------------------------------------------------- */

static __device__ __forceinline__ void igrt_cluster_begin(void)
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

static __device__ __forceinline__ void igrt_cluster_there(void)
{
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

static __device__ __forceinline__ void igrt_cluster_meet(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

static __device__ __forceinline__ uint32_t igrt_cluster_rank(void)
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Element `at` of places that the groups of a cluster have of `size` elements each, a power of
 * two: one after the other. */
static __device__ __forceinline__ float igrt_cluster_at(const float *place, int size, int at)
{
    uint32_t from;
    float x;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(from)
        : "r"((uint32_t)__cvta_generic_to_shared(place + (at & (size - 1)))),
          "r"((uint32_t)at / (uint32_t)size));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
    return x;
}

/* Neighbours that are given at once, and where item 0 has them of the group of this rank, whose
 * share begins at 0 (of the one it is given to). */
template <int SHARE, int ITEMS> struct igrt_cluster_part {
    enum { WIDTH = SHARE % 4 ? 2 : 4 };
    static __device__ __forceinline__ float *at(float *place, int rank, int number)
    {
        const int owner = number / SHARE;
        return place + ((rank - (rank > owner)) * SHARE + number % SHARE) * ITEMS +
               WIDTH * (int)threadIdx.x;
    }
};

template <int N, int SHARE, int ITEMS, int GROUPS>
static __device__ __forceinline__ void igrt_cluster_give(const float *sums, float *place, int first)
{
    typedef igrt_cluster_part<SHARE, ITEMS> part;
    const int rank = (int)igrt_cluster_rank();
#pragma unroll
    for (int i = 0; i < N; i += part::WIDTH) {
        const int owner = (first + i) / SHARE;
        uint32_t to;
        if (rank == owner)
            continue;
        asm("mapa.shared::cluster.u32 %0, %1, %2;"
            : "=r"(to)
            : "r"((uint32_t)__cvta_generic_to_shared(part::at(place, rank, first + i))),
              "r"(owner));
        if (part::WIDTH == 4)
            asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};"
                         :
                         : "r"(to), "f"(sums[i]), "f"(sums[i + 1]), "f"(sums[i + part::WIDTH - 2]),
                           "f"(sums[i + part::WIDTH - 1])
                         : "memory");
        else
            asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};"
                         :
                         : "r"(to), "f"(sums[i]), "f"(sums[i + 1])
                         : "memory");
    }
}

template <int N, int SHARE, int ITEMS, int GROUPS>
static __device__ __forceinline__ void igrt_cluster_take(float *sums, float *place, int first)
{
    typedef igrt_cluster_part<SHARE, ITEMS> part;
    const int rank = (int)igrt_cluster_rank();
#pragma unroll
    for (int i = 0; i < N; i += part::WIDTH) {
        const int owner = (first + i) / SHARE;
        if (rank != owner)
            continue;
#pragma unroll
        for (int other = 0; other < GROUPS; other++) {
            if (other == owner)
                continue;
            const float *from = part::at(place, other, first + i);
            if (part::WIDTH == 4) {
                const float4 x = *(const float4 *)from;
                sums[i] += x.x;
                sums[i + 1] += x.y;
                sums[i + part::WIDTH - 2] += x.z;
                sums[i + part::WIDTH - 1] += x.w;
            } else {
                const float2 x = *(const float2 *)from;
                sums[i] += x.x;
                sums[i + 1] += x.y;
            }
        }
    }
}

/* ---- boxes ----------------------------------------------------------------------------------- */

#define IGRT_BOX(n, at, parameters, ...)                                                         \
    static __device__ __forceinline__ void igrt_box_##n(void *to, const igrt_map *map,           \
                                                        uint32_t token, parameters)              \
    {                                                                                            \
        asm volatile("cp.async.bulk.tensor." #n "d.shared::cluster.global.mbarrier::complete_tx" \
                     "::bytes [%0], [%1, {" at "}], [%2];"                                       \
                     :                                                                           \
                     : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(map), "r"(token),        \
                       __VA_ARGS__                                                               \
                     : "memory");                                                                \
    }
#define IGRT_ASK_FOR_BOX(n, at, parameters, ...)                                                 \
    static __device__ __forceinline__ void igrt_ask_for_box_##n(const igrt_map *map, parameters) \
    {                                                                                            \
        asm volatile("cp.async.bulk.prefetch.tensor." #n "d.L2.global [%0, {" at "}];"           \
                     :                                                                           \
                     : "l"(map), __VA_ARGS__                                                     \
                     : "memory");                                                                \
    }
#define IGRT_2 int x, int y
#define IGRT_3 int x, int y, int z
#define IGRT_4 int x, int y, int z, int u
#define IGRT_5 int x, int y, int z, int u, int v
IGRT_BOX(2, "%3, %4", IGRT_2, "r"(x), "r"(y))
IGRT_BOX(3, "%3, %4, %5", IGRT_3, "r"(x), "r"(y), "r"(z))
IGRT_BOX(4, "%3, %4, %5, %6", IGRT_4, "r"(x), "r"(y), "r"(z), "r"(u))
IGRT_BOX(5, "%3, %4, %5, %6, %7", IGRT_5, "r"(x), "r"(y), "r"(z), "r"(u), "r"(v))
#undef IGRT_BOX
IGRT_ASK_FOR_BOX(2, "%1, %2", IGRT_2, "r"(x), "r"(y))
IGRT_ASK_FOR_BOX(3, "%1, %2, %3", IGRT_3, "r"(x), "r"(y), "r"(z))
IGRT_ASK_FOR_BOX(4, "%1, %2, %3, %4", IGRT_4, "r"(x), "r"(y), "r"(z), "r"(u))
IGRT_ASK_FOR_BOX(5, "%1, %2, %3, %4, %5", IGRT_5, "r"(x), "r"(y), "r"(z), "r"(u), "r"(v))
#undef IGRT_ASK_FOR_BOX
#define IGRT_WINDOW(n, at, tap, parameters, taps, ...)                                       \
    static __device__ __forceinline__ void igrt_window_##n(void *to, const igrt_map *map,    \
                                                           uint32_t token, parameters, taps) \
    {                                                                                        \
        asm volatile("cp.async.bulk.tensor." #n "d.shared::cluster.global.im2col.mbarrier"   \
                     "::complete_tx::bytes [%0], [%1, {" at "}], [%2], {" tap "};"           \
                     :                                                                       \
                     : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(map), "r"(token),    \
                       __VA_ARGS__                                                           \
                     : "memory");                                                            \
    }
#define IGRT_TAPS_1 int i
#define IGRT_TAPS_2 int i, int j
#define IGRT_TAPS_3 int i, int j, int k
IGRT_WINDOW(3, "%3, %4, %5", "%6", IGRT_3, IGRT_TAPS_1, "r"(x), "r"(y), "r"(z), "h"((short)i))
IGRT_WINDOW(4, "%3, %4, %5, %6", "%7, %8", IGRT_4, IGRT_TAPS_2, "r"(x), "r"(y), "r"(z), "r"(u),
            "h"((short)i), "h"((short)j))
IGRT_WINDOW(5, "%3, %4, %5, %6, %7", "%8, %9, %10", IGRT_5, IGRT_TAPS_3, "r"(x), "r"(y), "r"(z),
            "r"(u), "r"(v), "h"((short)i), "h"((short)j), "h"((short)k))
#undef IGRT_WINDOW
#undef IGRT_TAPS_1
#undef IGRT_TAPS_2
#undef IGRT_TAPS_3
#undef IGRT_2
#undef IGRT_3
#undef IGRT_4
#undef IGRT_5
