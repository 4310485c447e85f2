/*
 * igrt_run.h - one of the elements that fill 16 bytes.
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
