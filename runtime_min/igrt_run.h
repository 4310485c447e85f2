/*
 * igrt_run.h - the elements that fill 16 bytes.
 *
 *     igrt_eight_at(from), igrt_eight_of(from, given)   eight of 16 bits; zeros if not given, from
 *                                                       wherever 16 bytes can be read then
 *     igrt_eight_to(to, x0, ..)                         and stored; igrt_pairs_to(to, x0, ..) four
 *                                                       words
 *     igrt_bytes_to(to, x0, ..)                         eight bytes are stored
 *     igrt_four_at, igrt_four_of, igrt_four_to          the same, four of 32 bits
 *     igrt_run_u16(run, i), _f32, _u8, _i8              one of those behind `run`, or of those
 *                                                       behind them
 *     igrt_half_u16(half, i)                            one of four in 8 bytes
 *     igrt_word_u8(word, i), _i8                        one of four bytes
 *     igrt_f32_of_u8_and(x, more), _i8                  x + more, of a small integer
 *     igrt_hold_16(from), _word, _one                   a run, a word, an element, of what no
 *                                                       kernel writes: loaded before the wait for
 *                                                       other kernels
 *     igrt_held_u16(run, i), _f32, _u8, _i8,            one element of those
 *     igrt_held_word_u8(word, i), _i8
 *     igrt_held_eight(run), igrt_held_run(run)          all eight, or all four f32
 *     igrt_word_at(from)                                four bytes
 *     igrt_digits_add(s, x, word, at, mask)             a sum, and x times the digit that lies from
 *                                                       bit `at` of the word on
 *     igrt_digits_sum(s, more)                          what it is if `more` is added to each digit
 *
 * A loop that is unrolled asks for each of them in turn: the loads of all are equal, and become
 * one, of 16 bytes since the empty asm wants all of them. It is a plain load: what kernels that are
 * still at work when this one begins write is seen behind the wait for them (griddepcontrol.wait)
 * by such loads, not by those of what no kernel writes (__ldg).
 */
#ifdef __HIP__
#define IGRT_IN_REGISTER "+v"
#define IGRT_LONG_IN_REGISTER "+v"
#define IGRT_FLOAT_IN_REGISTER "+v"
#else
#define IGRT_IN_REGISTER "+r"
#define IGRT_LONG_IN_REGISTER "+l"
#define IGRT_FLOAT_IN_REGISTER "+f"
#endif
static __device__ __forceinline__ uint16_t igrt_run_u16(const uint16_t *run, int i)
{
    uint4 v = ((const uint4 *)run)[i / 8];
    asm(""
        : IGRT_IN_REGISTER(v.x), IGRT_IN_REGISTER(v.y), IGRT_IN_REGISTER(v.z),
          IGRT_IN_REGISTER(v.w));
    const int of = i % 8;
    const uint32_t two = of < 2 ? v.x : of < 4 ? v.y : of < 6 ? v.z : v.w;
    return (uint16_t)(of & 1 ? two >> 16 : two);
}

static __device__ __forceinline__ uint16_t igrt_half_u16(const uint16_t *half, int i)
{
    uint64_t v = *(const uint64_t *)half;
    asm("" : IGRT_LONG_IN_REGISTER(v));
    return (uint16_t)(v >> i * 16);
}

static __device__ __forceinline__ float igrt_run_f32(const float *run, int i)
{
    float4 v = ((const float4 *)run)[i / 4];
    asm(""
        : IGRT_FLOAT_IN_REGISTER(v.x), IGRT_FLOAT_IN_REGISTER(v.y), IGRT_FLOAT_IN_REGISTER(v.z),
          IGRT_FLOAT_IN_REGISTER(v.w));
    const int of = i % 4;
    return of < 1 ? v.x : of < 2 ? v.y : of < 3 ? v.z : v.w;
}

static __device__ __forceinline__ uint8_t igrt_run_u8(const uint8_t *run, int i)
{
    uint4 v = ((const uint4 *)run)[i / 16];
    asm(""
        : IGRT_IN_REGISTER(v.x), IGRT_IN_REGISTER(v.y), IGRT_IN_REGISTER(v.z),
          IGRT_IN_REGISTER(v.w));
    const int of = i % 16;
    const uint32_t four = of < 4 ? v.x : of < 8 ? v.y : of < 12 ? v.z : v.w;
    return (uint8_t)(four >> of % 4 * 8);
}

static __device__ __forceinline__ int8_t igrt_run_i8(const int8_t *run, int i)
{
    return (int8_t)igrt_run_u8((const uint8_t *)run, i);
}

static __device__ __forceinline__ uint8_t igrt_word_u8(const uint8_t *word, int i)
{
    uint32_t v = *(const uint32_t *)word;
    asm("" : IGRT_IN_REGISTER(v));
    return (uint8_t)(v >> i * 8);
}

static __device__ __forceinline__ uint32_t igrt_word_at(const uint8_t *word)
{
    uint32_t v = *(const uint32_t *)word;
    asm("" : IGRT_IN_REGISTER(v));
    return v;
}

static __device__ __forceinline__ int8_t igrt_word_i8(const int8_t *word, int i)
{
    return (int8_t)igrt_word_u8((const uint8_t *)word, i);
}

/* The empty asm wants what was loaded, and has its place among others that are volatile. */
static __device__ __forceinline__ uint4 igrt_hold_16(const void *from)
{
    uint4 v = *(const uint4 *)from;
    asm volatile(""
                 : IGRT_IN_REGISTER(v.x), IGRT_IN_REGISTER(v.y), IGRT_IN_REGISTER(v.z),
                   IGRT_IN_REGISTER(v.w));
    return v;
}

static __device__ __forceinline__ uint32_t igrt_hold_word(const void *from)
{
    uint32_t v = *(const uint32_t *)from;
    asm volatile("" : IGRT_IN_REGISTER(v));
    return v;
}

template <class T> static __device__ __forceinline__ T igrt_hold_one(const T *from)
{
    return *from;
}

static __device__ __forceinline__ uint32_t igrt_held_four(const uint4 *run, int i)
{
    const uint4 v = run[i / 4];
    return i % 4 < 1 ? v.x : i % 4 < 2 ? v.y : i % 4 < 3 ? v.z : v.w;
}

static __device__ __forceinline__ uint16_t igrt_held_u16(const uint4 *run, int i)
{
    const uint32_t two = igrt_held_four(run, i / 2);
    return (uint16_t)(i & 1 ? two >> 16 : two);
}

static __device__ __forceinline__ float igrt_held_f32(const uint4 *run, int i)
{
    return __uint_as_float(igrt_held_four(run, i));
}

static __device__ __forceinline__ uint8_t igrt_held_u8(const uint4 *run, int i)
{
    return (uint8_t)(igrt_held_four(run, i / 4) >> i % 4 * 8);
}

static __device__ __forceinline__ int8_t igrt_held_i8(const uint4 *run, int i)
{
    return (int8_t)igrt_held_u8(run, i);
}

static __device__ __forceinline__ uint8_t igrt_held_word_u8(const uint32_t *word, int i)
{
    return (uint8_t)(*word >> i * 8);
}

static __device__ __forceinline__ int8_t igrt_held_word_i8(const uint32_t *word, int i)
{
    return (int8_t)igrt_held_word_u8(word, i);
}

/* 2^23 + x is the integer x behind the exponent of 2^23: no conversion. Sums are exact. */
static __device__ __forceinline__ float igrt_f32_of_u8_and(uint8_t x, float more)
{
#ifdef __CUDA_ARCH__
    return __uint_as_float(0x4b000000u | x) - (8388608.0f - more);
#else
    return (float)x + more;
#endif
}

static __device__ __forceinline__ float igrt_f32_of_i8_and(int8_t x, float more)
{
    return igrt_f32_of_u8_and((uint8_t)(x ^ -128), more - 128.0f);
}

/* A sum of products with digits, 2^-75 times what it is, and the sum of all factors.  The bits of a
 * word up to the 24th are those of a float that is 2^-149 times the integer; a digit further up is
 * brought down.  It is as exact as other sums where factors are between 2^-51 and 2^52.  Kernels
 * take subnormal operands for zeros (--ftz=true), so this multiply-add is an instruction of its
 * own, which does not; elsewhere the integer is converted: the same numbers. */
typedef struct {
    float sum, x;
} igrt_digits;

static __device__ __forceinline__ igrt_digits igrt_digits_add(igrt_digits s, float x, uint32_t word,
                                                              int at, uint32_t mask)
{
#ifdef __CUDA_ARCH__
    const int down = (uint64_t)mask << at >> 24 ? 8 : 0, place = at - down;
    const uint32_t digit = (down ? word >> down : word) & (mask << place);
    const float scaled = x * __uint_as_float((uint32_t)(127 + 74 - place) << 23);
    asm("fma.rn.f32 %0, %1, %2, %0;" : "+f"(s.sum) : "f"(scaled), "f"(__uint_as_float(digit)));
#else
    const float digit = (float)(word >> at & mask);
    s.sum = fmaf(x * __uint_as_float((uint32_t)(127 - 75) << 23), digit, s.sum);
#endif
    s.x = s.x + x;
    return s;
}

static __device__ __forceinline__ float igrt_digits_sum(igrt_digits s, float more)
{
    return fmaf(s.sum, __uint_as_float((uint32_t)(127 + 75) << 23), more * s.x);
}

typedef struct {
    uint32_t v[4];
} igrt_eight;

static __device__ __forceinline__ igrt_eight igrt_eight_at(const uint16_t *from)
{
    const uint4 x = *(const uint4 *)from;
    const igrt_eight r = {{x.x, x.y, x.z, x.w}};
    return r;
}

static __device__ __forceinline__ igrt_eight igrt_eight_of(const uint16_t *from, int given)
{
    const uint4 x = *(const uint4 *)from;
    const igrt_eight r = {{given ? x.x : 0u, given ? x.y : 0u, given ? x.z : 0u, given ? x.w : 0u}};
    return r;
}

static __device__ __forceinline__ void igrt_eight_to(uint16_t *to, uint16_t x0, uint16_t x1,
                                                     uint16_t x2, uint16_t x3, uint16_t x4,
                                                     uint16_t x5, uint16_t x6, uint16_t x7)
{
    *(uint4 *)to = make_uint4(x0 | (uint32_t)x1 << 16, x2 | (uint32_t)x3 << 16,
                              x4 | (uint32_t)x5 << 16, x6 | (uint32_t)x7 << 16);
}

static __device__ __forceinline__ void igrt_bytes_to(uint8_t *to, uint8_t x0, uint8_t x1,
                                                     uint8_t x2, uint8_t x3, uint8_t x4, uint8_t x5,
                                                     uint8_t x6, uint8_t x7)
{
    const uint32_t low = x0 | (uint32_t)x1 << 8 | (uint32_t)x2 << 16 | (uint32_t)x3 << 24,
                   high = x4 | (uint32_t)x5 << 8 | (uint32_t)x6 << 16 | (uint32_t)x7 << 24;
    *(uint64_t *)to = low | (uint64_t)high << 32;
}

static __device__ __forceinline__ void igrt_pairs_to(uint16_t *to, uint32_t x0, uint32_t x1,
                                                     uint32_t x2, uint32_t x3)
{
    *(uint4 *)to = make_uint4(x0, x1, x2, x3);
}

static __device__ __forceinline__ igrt_eight igrt_held_eight(uint4 x)
{
    const igrt_eight r = {{x.x, x.y, x.z, x.w}};
    return r;
}

static __device__ __forceinline__ float4 igrt_held_run(uint4 x)
{
    return make_float4(__uint_as_float(x.x), __uint_as_float(x.y), __uint_as_float(x.z),
                       __uint_as_float(x.w));
}

static __device__ __forceinline__ float4 igrt_four_at(const float *from)
{
    return *(const float4 *)from;
}

static __device__ __forceinline__ float4 igrt_four_of(const float *from, int given)
{
    const float4 x = *(const float4 *)from;
    return make_float4(given ? x.x : 0.0f, given ? x.y : 0.0f, given ? x.z : 0.0f,
                       given ? x.w : 0.0f);
}

static __device__ __forceinline__ void igrt_four_to(float *to, float x0, float x1, float x2,
                                                    float x3)
{
    *(float4 *)to = make_float4(x0, x1, x2, x3);
}
