/*
 * igrt_amd.h - the words that kernels for AMD's GPUs are written in, for clang as it is: no header
 * of HIP's is needed.
 *
 * They are those of CUDA, as HIP has them too. Functions of floats are those of ROCm's device
 * libraries (ocml), which the compiler finds by itself.
 */
#ifdef __HIP__
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __restrict__ __restrict
#define __align__(bytes) __attribute__((aligned(bytes)))

typedef __SIZE_TYPE__ size_t;

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
static __device__ __forceinline__ uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
static __device__ __forceinline__ float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

/* Groups and items are counted along one axis. */
struct igrt_number {
    unsigned x;
};
#define threadIdx (igrt_number{__builtin_amdgcn_workitem_id_x()})
#define blockIdx (igrt_number{__builtin_amdgcn_workgroup_id_x()})
#define blockDim (igrt_number{__builtin_amdgcn_workgroup_size_x()})

static __device__ __forceinline__ void __syncthreads(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

static __device__ __forceinline__ unsigned __float_as_uint(float x)
{
    return __builtin_bit_cast(unsigned, x);
}
static __device__ __forceinline__ float __uint_as_float(unsigned x)
{
    return __builtin_bit_cast(float, x);
}
static __device__ __forceinline__ float __int_as_float(int x)
{
    return __builtin_bit_cast(float, x);
}
static __device__ __forceinline__ long long __double_as_longlong(double x)
{
    return __builtin_bit_cast(long long, x);
}
static __device__ __forceinline__ double __longlong_as_double(long long x)
{
    return __builtin_bit_cast(double, x);
}

/* What the item has whose number in the wave differs in these bits. */
static __device__ __forceinline__ unsigned igrt_lane(void)
{
    return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}
static __device__ __forceinline__ int igrt_shuffle(int x, int apart)
{
    return __builtin_amdgcn_ds_bpermute((int)(igrt_lane() ^ (unsigned)apart) << 2, x);
}
static __device__ __forceinline__ float igrt_shuffle(float x, int apart)
{
    return __builtin_bit_cast(float, igrt_shuffle(__builtin_bit_cast(int, x), apart));
}

#define IGRT_OCML(name, parameters, arguments, T, suffix, own)   \
    extern "C" __device__ T __ocml_##name##_##suffix parameters; \
    static __device__ __forceinline__ T own parameters           \
    {                                                            \
        return __ocml_##name##_##suffix arguments;               \
    }
#define IGRT_OCML1(name)                                 \
    IGRT_OCML(name, (float x), (x), float, f32, name##f) \
    IGRT_OCML(name, (double x), (x), double, f64, name)
#define IGRT_OCML2(name)                                             \
    IGRT_OCML(name, (float x, float y), (x, y), float, f32, name##f) \
    IGRT_OCML(name, (double x, double y), (x, y), double, f64, name)
IGRT_OCML1(acos)
IGRT_OCML1(acosh)
IGRT_OCML1(asin)
IGRT_OCML1(asinh)
IGRT_OCML1(atan)
IGRT_OCML1(atanh)
IGRT_OCML1(cbrt)
IGRT_OCML1(ceil)
IGRT_OCML1(cos)
IGRT_OCML1(cosh)
IGRT_OCML1(erf)
IGRT_OCML1(erfc)
IGRT_OCML1(exp)
IGRT_OCML1(exp2)
IGRT_OCML1(expm1)
IGRT_OCML1(fabs)
IGRT_OCML1(floor)
IGRT_OCML1(lgamma)
IGRT_OCML1(log)
IGRT_OCML1(log10)
IGRT_OCML1(log1p)
IGRT_OCML1(log2)
IGRT_OCML1(rint)
IGRT_OCML1(round)
IGRT_OCML1(sin)
IGRT_OCML1(sinh)
IGRT_OCML1(sqrt)
IGRT_OCML1(tan)
IGRT_OCML1(tanh)
IGRT_OCML1(tgamma)
IGRT_OCML1(trunc)
IGRT_OCML2(atan2)
IGRT_OCML2(copysign)
IGRT_OCML2(fmax)
IGRT_OCML2(fmin)
IGRT_OCML2(fmod)
IGRT_OCML2(hypot)
IGRT_OCML2(nextafter)
IGRT_OCML2(pow)
IGRT_OCML2(remainder)
static __device__ __forceinline__ float fmaf(float x, float y, float z)
{
    return __builtin_fmaf(x, y, z);
}
static __device__ __forceinline__ double fma(double x, double y, double z)
{
    return __builtin_fma(x, y, z);
}
#endif
