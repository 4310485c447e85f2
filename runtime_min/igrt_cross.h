
/* What crosses from one device to another (igrt_gpus.h). Half a word of 8 bytes lies beside a mark,
 * both halves of it in 16 bytes of the other device's memory. Who takes it waits for the marks, and
 * clears them for the next run. An item sends its word of each value before it waits for any. */
struct igrt_cross_value {
    uint64_t to, from;
    uint32_t bytes, takes;
};
struct igrt_cross_values {
    igrt_cross_value x[8];
};

static __device__ __forceinline__ void igrt_cross_mark(uint64_t place, uint64_t a, uint64_t b)
{
    asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(place), "l"(a), "l"(b)
                 : "memory");
}

static __device__ __forceinline__ void igrt_cross_send(const igrt_cross_value &x, uint32_t i)
{
    const uint64_t mark = (uint64_t)1 << 32, from = x.from + 8 * (uint64_t)i;
    const uint32_t left = x.bytes - 8 * i, here = left < 8 ? left : 8;
    uint64_t a = 0, b = 0;
    if (here == 8 && from % 8 == 0) {
        const uint2 both = *(const uint2 *)from;
        a = both.x;
        b = both.y;
    } else {
        for (uint32_t j = 0; j < here; j++)
            *(j < 4 ? &a : &b) |= (uint64_t)((const unsigned char *)from)[j] << 8 * (j & 3);
    }
    igrt_cross_mark(x.to + 16 * (uint64_t)i, a | mark, b | mark);
}

static __device__ __forceinline__ void igrt_cross_take(const igrt_cross_value &x, uint32_t i)
{
    const uint64_t place = x.from + 16 * (uint64_t)i, to = x.to + 8 * (uint64_t)i;
    const uint32_t left = x.bytes - 8 * i, here = left < 8 ? left : 8;
    uint64_t a, b;
    do {
        asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                     : "=l"(a), "=l"(b)
                     : "l"(place)
                     : "memory");
    } while (a >> 32 != 1 || b >> 32 != 1);
    igrt_cross_mark(place, 0, 0);
    if (here == 8 && to % 8 == 0) {
        *(uint2 *)to = make_uint2((uint32_t)a, (uint32_t)b);
    } else {
        for (uint32_t j = 0; j < here; j++)
            ((unsigned char *)to)[j] = (unsigned char)((j < 4 ? a : b) >> 8 * (j & 3));
    }
}

/* Half a word, element i of 4 bytes: it has its own mark. */
static __device__ __forceinline__ void igrt_cross_send_half(const igrt_cross_value &x, uint32_t i)
{
    const uint64_t mark = (uint64_t)1 << 32, value = *(const uint32_t *)(x.from + 4 * (uint64_t)i);
    asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(x.to + 8 * (uint64_t)i),
                 "l"(value | mark)
                 : "memory");
}

static __device__ __forceinline__ void igrt_cross_take_half(const igrt_cross_value &x, uint32_t i)
{
    const uint64_t place = x.from + 8 * (uint64_t)i, none = 0;
    uint64_t value;
    do {
        asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(value) : "l"(place) : "memory");
    } while (value >> 32 != 1);
    *(uint32_t *)(x.to + 4 * (uint64_t)i) = (uint32_t)value;
    asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(place), "l"(none) : "memory");
}

/* The same of a kernel whose items have so many bytes each of every value: a group's own, before
 * its items begin; of 4 bytes an item's own, and no item waits for another. The kernel behind it
 * begins meanwhile, and asks for its weights: by then all groups of this one are at work. */
static __device__ __forceinline__ void igrt_cross_group(const igrt_cross_values &all,
                                                        uint32_t bytes)
{
    const uint32_t words = (bytes * blockDim.x + 7) / 8, from = blockIdx.x * words;
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    int halves = bytes == 4;
    igrt_after_others();
    igrt_before_others();
#pragma unroll
    for (int k = 0; k < 8; k++) /* of a word that ends early both marks are set */
        halves &= all.x[k].bytes % 8 == 0;
    if (halves) {
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (!all.x[k].takes && (uint64_t)item * 4 < all.x[k].bytes)
                igrt_cross_send_half(all.x[k], item);
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (all.x[k].takes && (uint64_t)item * 4 < all.x[k].bytes)
                igrt_cross_take_half(all.x[k], item);
        return;
    }
    for (int k = 0; k < 8; k++)
        for (uint32_t i = from + threadIdx.x; i < from + words; i += blockDim.x)
            if (!all.x[k].takes && (uint64_t)i * 8 < all.x[k].bytes)
                igrt_cross_send(all.x[k], i);
    for (int k = 0; k < 8; k++)
        for (uint32_t i = from + threadIdx.x; i < from + words; i += blockDim.x)
            if (all.x[k].takes && (uint64_t)i * 8 < all.x[k].bytes)
                igrt_cross_take(all.x[k], i);
    __syncthreads();
}

extern "C" __global__ __launch_bounds__(256) void igrt_cross(igrt_cross_values all)
{
    igrt_cross_group(all, 8); /* a word each */
}
