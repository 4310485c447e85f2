/*
 * igrt_vec_math.h - exp, log, tanh, erf, sin and cos of f32 lanes, and the C library lane by lane.
 */
#ifndef IGRT_VEC_MATH_H
#define IGRT_VEC_MATH_H

#include "igrt_vec_f32.h"

/* The function FORM(N) of each width that a register holds, and of two halves beyond. */
#define IGRT_WIDTHS(FORM, NAME)                   \
    FORM(4)                                       \
    IGRT_FITS_8(FORM(8), IGRT_SPLIT1(8, 4, NAME)) \
    IGRT_FITS_16(FORM(16), IGRT_SPLIT1(16, 8, NAME))

/* ---- exp, log, tanh, erf ------------------------------------------------------------------- */

/*
 * Argument reduction as Cody and Waite have it, polynomials fitted for the least largest relative
 * error with coefficients that are f32, no branches. An integer n is found as the low bits of
 * x + 1.5 * 2^23, which rounds to nearest.
 *
 * e^x = 2^n * e^r, r = x - n * ln 2 (in two parts, the first of 9 bits, so n * part is exact),
 * e^r = 1 + r * (1 + r * P(r)), |r| <= ln 2 / 2. The result is e^r; *n is n in its low bits, above
 * which is rubbish that a shift by 23 removes.
 */
#define IGRT_MAGIC 12582912.0f
#define IGRT_EXP(N)                                                                            \
    IGRT_VEC igrt_f32x##N igrt_exp_reduced_f32x##N(igrt_f32x##N x, igrt_f32x##N *n)            \
    {                                                                                          \
        const igrt_f32x##N magic = igrt_splat_f32x##N(IGRT_MAGIC);                             \
        const igrt_f32x##N t = igrt_muladd_f32x##N(x, igrt_splat_f32x##N(1.44269504f), magic); \
        const igrt_f32x##N k = t - magic;                                                      \
        igrt_f32x##N r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(-0.693359375f), x);         \
        r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(2.12194440e-4f), r);                     \
        igrt_f32x##N p = igrt_splat_f32x##N(1.382261165e-03f);                                 \
        p = igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(8.368839510e-03f));                   \
        p = igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(4.166824743e-02f));                   \
        p = igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(1.666651964e-01f));                   \
        p = igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(4.999999404e-01f));                   \
        p = igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(1.0f));                               \
        *n = t;                                                                                \
        return igrt_muladd_f32x##N(p, r, igrt_splat_f32x##N(1.0f));                            \
    }                                                                                          \
    /* e^x where that is a normal number; anything for a NaN */                                \
    IGRT_VEC igrt_f32x##N igrt_exp_normal_f32x##N(igrt_f32x##N x)                              \
    {                                                                                          \
        igrt_f32x##N n;                                                                        \
        const igrt_f32x##N y = igrt_exp_reduced_f32x##N(x, &n);                                \
        return (igrt_f32x##N)((igrt_u32x##N)y + ((igrt_u32x##N)n << 23));                      \
    }                                                                                          \
    IGRT_VEC igrt_f32x##N igrt_exp_f32x##N(igrt_f32x##N x)                                     \
    {                                                                                          \
        igrt_f32x##N n;                                                                        \
        x = igrt_below_f32x##N(igrt_splat_f32x##N(89.0f), x);                                  \
        x = igrt_above_f32x##N(igrt_splat_f32x##N(-104.0f), x);                                \
        const igrt_f32x##N y = igrt_exp_reduced_f32x##N(x, &n);                                \
        return igrt_scale_f32x##N(y, n);                                                       \
    }

#define IGRT_SCALE(N)                                                                             \
    /* y * 2^n, rounded once; n as igrt_exp_reduced leaves it, |n| < 252 */                       \
    IGRT_VEC igrt_f32x##N igrt_scale_f32x##N(igrt_f32x##N y, igrt_f32x##N n)                      \
    {                                                                                             \
        const igrt_u32x##N magic = (igrt_u32x##N)igrt_splat_f32x##N(IGRT_MAGIC);                  \
        const igrt_u32x##N k = (igrt_u32x##N)n - magic;                                           \
        const igrt_u32x##N half = (igrt_u32x##N)((igrt_i32x##N)k >> 1);                           \
        return y * (igrt_f32x##N)((half + 127u) << 23) * (igrt_f32x##N)((k - half + 127u) << 23); \
    }
IGRT_SCALE(4)
#if IGRT_HAS_8 || IGRT_SVE == 8 || IGRT_RVV
IGRT_SCALE(8)
#endif
#if IGRT_SVE == 16 || IGRT_RVV
IGRT_SCALE(16)
#elif IGRT_HAS_16
IGRT_VEC igrt_f32x16 igrt_scale_f32x16(igrt_f32x16 y, igrt_f32x16 n)
{
    return (igrt_f32x16)_mm512_scalef_ps(y, n - IGRT_MAGIC);
}
#endif
IGRT_WIDTHS(IGRT_EXP, exp)

/*
 * x = 2^e * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), by the bits, subnormal numbers scaled up first;
 * log x = e * ln 2 + f - f^2/2 + f^3 * P(f), smallest terms first.
 */
#define IGRT_LOG(N)                                                                              \
    IGRT_VEC igrt_f32x##N igrt_log_f32x##N(igrt_f32x##N x)                                       \
    {                                                                                            \
        const igrt_f32x##N zero = {0}, least = igrt_splat_f32x##N(1.17549435e-38f);              \
        const igrt_u32x##N u =                                                                   \
            (igrt_u32x##N)igrt_if_lt_f32x##N(x, least, x * 8388608.0f, x) - 0x3f3504f3u;         \
        const igrt_f32x##N f = (igrt_f32x##N)((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;             \
        igrt_f32x##N e = __builtin_convertvector((igrt_i32x##N)u >> 23, igrt_f32x##N);           \
        e = igrt_if_lt_f32x##N(x, least, e - 23.0f, e);                                          \
        igrt_f32x##N p = igrt_splat_f32x##N(-7.635727525e-02f);                                  \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(1.276306361e-01f));                     \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(-1.316024661e-01f));                    \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(1.420145929e-01f));                     \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(-1.662332416e-01f));                    \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(2.000124604e-01f));                     \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(-2.500082254e-01f));                    \
        p = igrt_muladd_f32x##N(p, f, igrt_splat_f32x##N(3.333333135e-01f));                     \
        const igrt_f32x##N z = f * f;                                                            \
        igrt_f32x##N y = igrt_muladd_f32x##N(e, igrt_splat_f32x##N(-2.12194440e-4f), z * f * p); \
        y = igrt_muladd_f32x##N(z, igrt_splat_f32x##N(-0.5f), y) + f;                            \
        y = igrt_muladd_f32x##N(e, igrt_splat_f32x##N(0.693359375f), y);                         \
        y = igrt_if_lt_f32x##N(x, igrt_splat_f32x##N(INFINITY), y, x);                           \
        y = igrt_if_eq_f32x##N(x, zero, igrt_splat_f32x##N(-INFINITY), y);                       \
        return igrt_if_lt_f32x##N(x, zero, igrt_splat_f32x##N(NAN), y);                          \
    }
IGRT_WIDTHS(IGRT_LOG, log)

/*
 * a = |x|: tanh a = a + a^3 * P(a^2) below 0.625, else 1 - 2 / (e^2a + 1); 1 from 9.1 on.
 * A NaN takes the first form.
 */
#define IGRT_TANH(N)                                                                              \
    IGRT_VEC igrt_f32x##N igrt_tanh_f32x##N(igrt_f32x##N x)                                       \
    {                                                                                             \
        const igrt_i32x##N sign = IGRT_BITS(N, x) & INT32_MIN;                                    \
        const igrt_f32x##N a = igrt_below_f32x##N(igrt_splat_f32x##N(9.1f), igrt_abs_f32x##N(x)); \
        const igrt_f32x##N z = a * a;                                                             \
        igrt_f32x##N p = igrt_splat_f32x##N(-5.698029883e-03f);                                   \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(2.063232102e-02f));                      \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(-5.373743549e-02f));                     \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(1.333141178e-01f));                      \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(-3.333328068e-01f));                     \
        p = igrt_muladd_f32x##N(p * z, a, a);                                                     \
        const igrt_f32x##N q = 1.0f - 2.0f / (igrt_exp_normal_f32x##N(a + a) + 1.0f);             \
        const igrt_f32x##N y = igrt_if_le_f32x##N(igrt_splat_f32x##N(0.625f), a, q, p);           \
        return (igrt_f32x##N)(IGRT_BITS(N, y) | sign);                                            \
    }
IGRT_WIDTHS(IGRT_TANH, tanh)

/*
 * a = |x|: erf a = a + a * P(a^2) below 0.875, else 1 - e^Q(a), Q fitted to log erfc; 1 from 4 on.
 * A NaN takes the first form.
 */
#define IGRT_ERF(N)                                                                               \
    IGRT_VEC igrt_f32x##N igrt_erf_f32x##N(igrt_f32x##N x)                                        \
    {                                                                                             \
        const igrt_i32x##N sign = IGRT_BITS(N, x) & INT32_MIN;                                    \
        const igrt_f32x##N a = igrt_below_f32x##N(igrt_splat_f32x##N(4.0f), igrt_abs_f32x##N(x)); \
        const igrt_f32x##N z = a * a;                                                             \
        igrt_f32x##N p = igrt_splat_f32x##N(-6.135461153e-04f);                                   \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(5.018357188e-03f));                      \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(-2.678139694e-02f));                     \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(1.128214672e-01f));                      \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(-3.761251569e-01f));                     \
        p = igrt_muladd_f32x##N(p, z, igrt_splat_f32x##N(1.283791512e-01f));                      \
        p = igrt_muladd_f32x##N(p, a, a);                                                         \
        igrt_f32x##N q = igrt_splat_f32x##N(1.999224332e-04f);                                    \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(-3.082180861e-03f));                     \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(2.238171175e-02f));                      \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(-1.042515412e-01f));                     \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(-6.368191838e-01f));                     \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(-1.127890229e+00f));                     \
        q = igrt_muladd_f32x##N(q, a, igrt_splat_f32x##N(-1.440132910e-04f));                     \
        q = 1.0f - igrt_exp_normal_f32x##N(q);                                                    \
        const igrt_f32x##N y = igrt_if_le_f32x##N(igrt_splat_f32x##N(0.875f), a, q, p);           \
        return (igrt_f32x##N)(IGRT_BITS(N, y) | sign);                                            \
    }
IGRT_WIDTHS(IGRT_ERF, erf)

/* ---- sin, cos ------------------------------------------------------------------------------ */

/*
 * r = |x| - n * pi/2 in parts (f32 parts where multiply-add rounds once, else parts of 11 bits, so
 * that n * part is exact); sin r = r + r^3 * S(r^2), cos r = 1 - r^2/2 + r^4 * C(r^2). Which of the
 * two it is, and the sign, are the last two bits of n. Lanes beyond 10^4 go to the C library.
 */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define IGRT_PIO2_1 1.57079637e+00f
#define IGRT_PIO2_2 -4.37113883e-08f
#define IGRT_PIO2_3 -1.71512489e-15f
#define IGRT_PIO2_4 0.0f
#else
#define IGRT_PIO2_1 1.5703125f
#define IGRT_PIO2_2 4.837512969970703125e-4f
#define IGRT_PIO2_3 7.549533620476723e-08f
#define IGRT_PIO2_4 2.563344152e-12f
#endif
#define IGRT_CIRCLE(N, NAME, QUARTER, ODD, LIBM)                                                \
    IGRT_VEC igrt_f32x##N igrt_##NAME##_f32x##N(igrt_f32x##N x)                                 \
    {                                                                                           \
        const igrt_f32x##N magic = igrt_splat_f32x##N(IGRT_MAGIC), a = igrt_abs_f32x##N(x);     \
        const igrt_f32x##N t = igrt_muladd_f32x##N(a, igrt_splat_f32x##N(0.636619772f), magic); \
        const igrt_u32x##N n = (igrt_u32x##N)t + QUARTER;                                       \
        const igrt_f32x##N k = t - magic;                                                       \
        igrt_f32x##N r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(-(IGRT_PIO2_1)), a);         \
        r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(-(IGRT_PIO2_2)), r);                      \
        r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(-(IGRT_PIO2_3)), r);                      \
        r = igrt_muladd_f32x##N(k, igrt_splat_f32x##N(-(IGRT_PIO2_4)), r);                      \
        const igrt_f32x##N z = r * r;                                                           \
        igrt_f32x##N s = igrt_splat_f32x##N(-1.950993465e-04f);                                 \
        s = igrt_muladd_f32x##N(s, z, igrt_splat_f32x##N(8.332115598e-03f));                    \
        s = igrt_muladd_f32x##N(s, z, igrt_splat_f32x##N(-1.666665375e-01f));                   \
        s = igrt_muladd_f32x##N(s * z, r, r);                                                   \
        igrt_f32x##N c = igrt_splat_f32x##N(2.443210906e-05f);                                  \
        c = igrt_muladd_f32x##N(c, z, igrt_splat_f32x##N(-1.388730831e-03f));                   \
        c = igrt_muladd_f32x##N(c, z, igrt_splat_f32x##N(4.166664556e-02f));                    \
        c = igrt_muladd_f32x##N(z * z, c, 1.0f - 0.5f * z);                                     \
        const igrt_f32x##N m = igrt_where_f32x##N(-(igrt_i32x##N)(n & 1u), c, s);               \
        const igrt_u32x##N flip = (n & 2u) << 30 ^ ((igrt_u32x##N)x & (ODD));                   \
        const igrt_f32x##N y = (igrt_f32x##N)((igrt_u32x##N)m ^ flip);                          \
        if (!igrt_any_f32x##N(igrt_lt_f32x##N(igrt_splat_f32x##N(1e4f), a)))                    \
            return y;                                                                           \
        float u[N], v[N];                                                                       \
        igrt_store_f32x##N(u, x);                                                               \
        igrt_store_f32x##N(v, y);                                                               \
        for (int i = 0; i < N; i++)                                                             \
            v[i] = fabsf(u[i]) > 1e4f ? LIBM(u[i]) : v[i];                                      \
        return igrt_load_f32x##N(v);                                                            \
    }
#define IGRT_SIN(N) IGRT_CIRCLE(N, sin, 0u, 0x80000000u, sinf)
#define IGRT_COS(N) IGRT_CIRCLE(N, cos, 1u, 0u, cosf)
IGRT_WIDTHS(IGRT_SIN, sin)
IGRT_WIDTHS(IGRT_COS, cos)

/* ---- the C library, lane by lane ----------------------------------------------------------- */

#define IGRT_LIBRARY(N)                           \
    IGRT_LANES1(f32, float, N, tan, tanf)         \
    IGRT_LANES1(f32, float, N, asin, asinf)       \
    IGRT_LANES1(f32, float, N, acos, acosf)       \
    IGRT_LANES1(f32, float, N, atan, atanf)       \
    IGRT_LANES1(f32, float, N, sinh, sinhf)       \
    IGRT_LANES1(f32, float, N, cosh, coshf)       \
    IGRT_LANES1(f32, float, N, asinh, asinhf)     \
    IGRT_LANES1(f32, float, N, acosh, acoshf)     \
    IGRT_LANES1(f32, float, N, atanh, atanhf)     \
    IGRT_LANES2(f32, float, N, pow, powf)         \
    IGRT_LANES2(f32, float, N, mod, igrt_mod_f32) \
    IGRT_LANES2(f32, float, N, fmod, igrt_fmod_f32)
IGRT_LIBRARY(4)
IGRT_LIBRARY(8)
IGRT_LIBRARY(16)

#endif
