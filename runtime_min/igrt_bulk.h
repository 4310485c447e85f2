/*
 * igrt_bulk.h - pieces of weights that come at once, and vectors of 16 bits (sm_90 and later).
 *
 *     igrt_bulk_asks()                           is this the item that does what follows?
 *     igrt_bulk_begin(&token, bytes)             so many bytes are to come
 *     igrt_bulk(to, from, bytes, &token)         some of them: both at multiples of 16, as many
 *     igrt_bulk_wait(&token), _behind(.., value) all are there: 0, which is added to where they
 * lie; behind what the value is made of igrt_pack(eight, more)                     the factors of
 * the eight digits of a word igrt_packed_sum(factors, word)             their products with these
 * digits, each of which is `more` more than it says
 *
 * Factors are integers of 15 bits, of a unit that is a power of two: at most 2^-14 of the greatest
 * of the eight from what they were.  A word's digits are two words of four bytes, by which four
 * operations multiply two factors each.  Sums are exact; they begin with the bits of the float
 * 3 2^22, from which an integer that is added to them is taken back by the multiply-add with the
 * unit.
 */
static __device__ __forceinline__ uint32_t igrt_bulk_at(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* One item of the group asks. */
static __device__ __forceinline__ int igrt_bulk_asks(void)
{
    return threadIdx.x == 0;
}

static __device__ __forceinline__ void igrt_bulk_begin(uint64_t *token, int bytes)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :
                 : "r"(igrt_bulk_at(token)), "r"(1)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(igrt_bulk_at(token)), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void igrt_bulk(void *to, const void *from, int bytes,
                                                 uint64_t *token)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];"
                 :
                 : "r"(igrt_bulk_at(to)), "l"(from), "r"(bytes), "r"(igrt_bulk_at(token))
                 : "memory");
}

/* Only addresses of what has come are made of the result. */
static __device__ __forceinline__ int igrt_bulk_wait(uint64_t *token)
{
    int there;
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
                 "@p bra DONE; bra WAIT; DONE: mov.b32 %0, 0; }"
                 : "=r"(there)
                 : "r"(igrt_bulk_at(token)), "r"(0)
                 : "memory");
    return there;
}

/* What lies in other memory may be loaded on either side, and is loaded once; so this is behind the
 * wait for other kernels if the value is made of what is loaded there. */
static __device__ __forceinline__ int igrt_bulk_wait_behind(uint64_t *token, int value)
{
    int there;
    asm("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "@p bra DONE; bra WAIT; DONE: mov.b32 %0, 0; }"
        : "=r"(there)
        : "r"(igrt_bulk_at(token)), "r"(0), "r"(value));
    return there;
}

typedef struct {
    float x[8];
} igrt_few;

typedef struct {
    uint32_t two[4];
    int begin;
    float unit;
} igrt_packed;

static __device__ __forceinline__ int igrt_dot_low(uint32_t two, uint32_t bytes, int sum)
{
#ifdef __CUDA_ARCH__
    asm("dp2a.lo.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(two), "r"(bytes));
    return sum;
#else
    const int low = (int16_t)two, high = (int16_t)(two >> 16);
    return sum + low * (int)(bytes & 255u) + high * (int)(bytes >> 8 & 255u);
#endif
}

static __device__ __forceinline__ int igrt_dot_high(uint32_t two, uint32_t bytes, int sum)
{
#ifdef __CUDA_ARCH__
    asm("dp2a.hi.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(two), "r"(bytes));
    return sum;
#else
    return igrt_dot_low(two, bytes >> 16, sum);
#endif
}

/* The greater one, or what is no number. */
static __device__ __forceinline__ float igrt_greater(float a, float b)
{
#ifdef __CUDA_ARCH__
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
#else
    return a >= b ? a : b == b ? (a == a ? b : a) : b;
#endif
}

static __device__ __forceinline__ igrt_packed igrt_pack(igrt_few few, int more)
{
    igrt_packed p;
    const float zero = 12582912.0f; /* 3 2^22 */
    float most = fabsf(few.x[0]);
#pragma unroll
    for (int i = 1; i < 8; i++)
        most = igrt_greater(most, fabsf(few.x[i]));
    /* 2^13 units are the power of two below the greatest one */
    const int power = (int)(__float_as_uint(most) >> 23), at = power < 20 ? 20 : power;
    const float scale = __uint_as_float((uint32_t)(127 + 127 + 13 - at) << 23);
    p.unit = __uint_as_float(power == 255 ? 0x7fffffffu : (uint32_t)(at - 13) << 23);
    int sum = 0;
    /* low and high digits of two bytes after each other */
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int first = i % 2 * 4 + i / 2;
        const uint32_t x = __float_as_uint(fmaf(few.x[first], scale, zero)),
                       y = __float_as_uint(fmaf(few.x[first + 2], scale, zero));
        p.two[i] = (x & 0xffffu) | y << 16;
        sum = igrt_dot_low(p.two[i], 0x0101u, sum);
    }
    p.begin = (int)__float_as_uint(zero) + more * sum;
    return p;
}

static __device__ __forceinline__ float igrt_packed_sum(igrt_packed p, uint32_t word)
{
    const uint32_t low = word & 0x0f0f0f0fu, high = word >> 4 & 0x0f0f0f0fu;
    int sum = igrt_dot_low(p.two[0], low, p.begin);
    sum = igrt_dot_high(p.two[1], low, sum);
    sum = igrt_dot_low(p.two[2], high, sum);
    sum = igrt_dot_high(p.two[3], high, sum);
    return fmaf(__uint_as_float((uint32_t)sum), p.unit, -12582912.0f * p.unit);
}
