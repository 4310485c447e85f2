/*
 * igrt_run.h - the elements that fill 16 bytes.
 *
 *     igrt_eight_at(from), igrt_eight_of(from, given)   eight of 16 bits; zeros if not given, from
 *                                                       wherever 16 bytes can be read then
 *     igrt_eight_to(to, x0, ..)                         and stored
 *     igrt_four_at, igrt_four_of, igrt_four_to          the same, four of 32 bits
 *     igrt_run_u16(run, i), igrt_run_f32(run, i)        one of those behind `run`
 *
 * A loop that is unrolled asks for each of them in turn: the loads of all are equal, and become
 * one, of 16 bytes since the empty asm wants all of them. It is a plain load: what kernels that are
 * still at work when this one begins write is seen behind the wait for them (griddepcontrol.wait)
 * by such loads, not by those of what no kernel writes (__ldg).
 */
static __device__ __forceinline__ uint16_t igrt_run_u16(const uint16_t *run, int i)
{
    uint4 v = *(const uint4 *)run;
    asm("" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w));
    const uint32_t two = i < 2 ? v.x : i < 4 ? v.y : i < 6 ? v.z : v.w;
    return (uint16_t)(i & 1 ? two >> 16 : two);
}

static __device__ __forceinline__ float igrt_run_f32(const float *run, int i)
{
    float4 v = *(const float4 *)run;
    asm("" : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w));
    return i < 1 ? v.x : i < 2 ? v.y : i < 3 ? v.z : v.w;
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
