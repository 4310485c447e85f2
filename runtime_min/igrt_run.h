/*
 * igrt_run.h - one of the elements that fill 16 bytes.
 *
 * A loop that is unrolled asks for each of them in turn: the loads of all are equal, and become one. Nobody writes there while the kernel
 * runs.
 */
static __device__ __forceinline__ uint16_t igrt_run_u16(const uint16_t *run, int i)
{
    const uint4 v = __ldg((const uint4 *)run);
    const uint32_t two = i < 2 ? v.x : i < 4 ? v.y : i < 6 ? v.z : v.w;
    return (uint16_t)(i & 1 ? two >> 16 : two);
}

static __device__ __forceinline__ float igrt_run_f32(const float *run, int i)
{
    const float4 v = __ldg((const float4 *)run);
    return i < 1 ? v.x : i < 2 ? v.y : i < 3 ? v.z : v.w;
}
