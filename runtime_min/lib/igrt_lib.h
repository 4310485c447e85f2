/*
 * igrt_lib.h - prototypes of the library kernels and the few things they share.
 *
 * Each kernel lives in lib/<name>.c, whose head comment gives its inputs, outputs, attributes,
 * scratch and counts. A bundle contains only the files it references. All tensors are dense in
 * their true dims, outputs too; the dims of an output hold its bound on entry and its true size on
 * return.
 */
#ifndef IGRT_LIB_H
#define IGRT_LIB_H

#include "igrt.h"
#include "igrt_num.h"

IGRT_LIB(compress);
IGRT_LIB(det);
IGRT_LIB(lookup);
IGRT_LIB(lsh_projection);
IGRT_LIB(nms);
IGRT_LIB(nonzero);
IGRT_LIB(readint);
IGRT_LIB(regex_match);
IGRT_LIB(skip_gram);
IGRT_LIB(string_concat);
IGRT_LIB(string_equal);
IGRT_LIB(string_normalize);
IGRT_LIB(string_split);
IGRT_LIB(text);
IGRT_LIB(topk);
IGRT_LIB(unique);

/* Scratch bytes, from bounds: n items along the axis (nms: boxes; det: rows). */
#define IGRT_TOPK_SCRATCH(k) ((size_t)(k)*16)
#define IGRT_UNIQUE_SCRATCH(n) ((size_t)(n)*24)
#define IGRT_NMS_SCRATCH(n) ((size_t)(n)*16)
#define IGRT_REGEX_MATCH_SCRATCH(n) ((size_t)(n)*16) /* n: instructions */
#define IGRT_SKIP_GRAM_SCRATCH(n) ((size_t)(n)*24)   /* n: words of a run */
#define IGRT_DET_SCRATCH(n) ((size_t)(n) * (size_t)(n)*8)

/* Product of dims[from..to). */
IGRT_INLINE int64_t igrt_lib_numel(const igrt_tensor *t, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++)
        n *= t->dims[d];
    return n;
}

/*
 * A number for element i such that a < b gives key(a) < key(b): integers and bools in their order,
 * -0 equal to 0, every NaN equal and above infinity. Not for complex numbers and strings.
 */
IGRT_INLINE uint64_t igrt_lib_float_key(double x)
{
    const uint64_t sign = UINT64_C(1) << 63;
    if (x != x)
        return UINT64_MAX;
    const uint64_t u = igrt_f64_bits(x + 0.0); /* -0 + 0 is 0 */
    return u & sign ? ~u : u | sign;
}

IGRT_INLINE uint64_t igrt_lib_key(const igrt_tensor *t, int64_t i)
{
    const uint64_t flip = UINT64_C(1) << 63;
    const void *p = t->data;
    switch (t->dtype) {
    case IGRT_BOOL:
    case IGRT_U8:
    case IGRT_U4:
    case IGRT_U2: return ((const uint8_t *)p)[i];
    case IGRT_U16: return ((const uint16_t *)p)[i];
    case IGRT_U32: return ((const uint32_t *)p)[i];
    case IGRT_U64: return ((const uint64_t *)p)[i];
    case IGRT_I8:
    case IGRT_I4:
    case IGRT_I2: return (uint64_t)(int64_t)((const int8_t *)p)[i] ^ flip;
    case IGRT_I16: return (uint64_t)(int64_t)((const int16_t *)p)[i] ^ flip;
    case IGRT_I32: return (uint64_t)(int64_t)((const int32_t *)p)[i] ^ flip;
    case IGRT_I64: return (uint64_t)((const int64_t *)p)[i] ^ flip;
    case IGRT_F16: return igrt_lib_float_key((double)igrt_f16_to_f32(((const uint16_t *)p)[i]));
    case IGRT_BF16: return igrt_lib_float_key((double)igrt_bf16_to_f32(((const uint16_t *)p)[i]));
    case IGRT_F32: return igrt_lib_float_key((double)((const float *)p)[i]);
    case IGRT_F64: return igrt_lib_float_key(((const double *)p)[i]);
    case IGRT_F8E4M3FN:
        return igrt_lib_float_key((double)igrt_f8e4m3fn_to_f32(((const uint8_t *)p)[i]));
    case IGRT_F8E4M3FNUZ:
        return igrt_lib_float_key((double)igrt_f8e4m3fnuz_to_f32(((const uint8_t *)p)[i]));
    case IGRT_F8E5M2:
        return igrt_lib_float_key((double)igrt_f8e5m2_to_f32(((const uint8_t *)p)[i]));
    case IGRT_F8E5M2FNUZ:
        return igrt_lib_float_key((double)igrt_f8e5m2fnuz_to_f32(((const uint8_t *)p)[i]));
    case IGRT_F8E8M0:
        return igrt_lib_float_key((double)igrt_f8e8m0_to_f32(((const uint8_t *)p)[i]));
    case IGRT_F4E2M1:
        return igrt_lib_float_key((double)igrt_f4e2m1_to_f32(((const uint8_t *)p)[i]));
    default: return 0;
    }
}

/* Whether igrt_lib_key takes the type. */
IGRT_INLINE int igrt_lib_has_key(igrt_dtype dtype)
{
    return dtype >= IGRT_BOOL && dtype <= IGRT_U2;
}

#endif
