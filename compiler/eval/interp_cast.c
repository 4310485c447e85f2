/* interp_cast.c - conversions between element types on arrays in storage form.
 *
 * Every value passes through one of four carriers that hold it exactly: f32 (f32 and all smaller
 * floats), f64, i64 (bool and all integers but u64) and u64.  The second half rounds once, by the
 * functions of igrt_num.h, which emitted kernels call as well. */
#include "interp.h"

#include <string.h>

#include "igrt_num.h"

enum { BLOCK = 256 };

typedef enum { CARRY_I64, CARRY_U64, CARRY_F32, CARRY_F64 } CastCarrier;
typedef union {
    int64_t i[BLOCK];
    uint64_t u[BLOCK];
    float f[BLOCK];
    double d[BLOCK];
} Block256;

static CastCarrier carrier_of(ingot_dtype t)
{
    if (t == INGOT_U64)
        return CARRY_U64;
    if (t == INGOT_F64 || t == INGOT_C128)
        return CARRY_F64;
    if (dtype_is_float(t) || t == INGOT_C64)
        return CARRY_F32;
    return CARRY_I64;
}

#define WIDEN(ID, C, FIELD, EXPR)        \
    case INGOT_##ID: {                   \
        const C *p = in;                 \
        for (size_t i = 0; i < n; i++) { \
            const C x = p[i];            \
            b->FIELD[i] = (EXPR);        \
        }                                \
        break;                           \
    }

static void widen(ingot_dtype t, size_t n, const void *in, Block256 *b)
{
    switch (t) {
        WIDEN(BOOL, uint8_t, i, x != 0)
        WIDEN(I8, int8_t, i, x)
        WIDEN(U8, uint8_t, i, x)
        WIDEN(I16, int16_t, i, x)
        WIDEN(U16, uint16_t, i, x)
        WIDEN(I32, int32_t, i, x)
        WIDEN(U32, uint32_t, i, x)
        WIDEN(I64, int64_t, i, x)
        WIDEN(INDEX, int64_t, i, x)
        WIDEN(U64, uint64_t, u, x)
        WIDEN(I4, int8_t, i, igrt_wrap_i4(x))
        WIDEN(U4, uint8_t, i, igrt_wrap_u4(x))
        WIDEN(I2, int8_t, i, igrt_wrap_i2(x))
        WIDEN(U2, uint8_t, i, igrt_wrap_u2(x))
        WIDEN(F16, uint16_t, f, igrt_f16_to_f32(x))
        WIDEN(BF16, uint16_t, f, igrt_bf16_to_f32(x))
        WIDEN(F32, float, f, x)
        WIDEN(F64, double, d, x)
        WIDEN(F8E4M3FN, uint8_t, f, igrt_f8e4m3fn_to_f32(x))
        WIDEN(F8E4M3FNUZ, uint8_t, f, igrt_f8e4m3fnuz_to_f32(x))
        WIDEN(F8E5M2, uint8_t, f, igrt_f8e5m2_to_f32(x))
        WIDEN(F8E5M2FNUZ, uint8_t, f, igrt_f8e5m2fnuz_to_f32(x))
        WIDEN(F8E8M0, uint8_t, f, igrt_f8e8m0_to_f32(x))
        WIDEN(F4E2M1, uint8_t, f, igrt_f4e2m1_to_f32(x))
    case INGOT_C64:
        for (size_t i = 0; i < n; i++)
            b->f[i] = ((const float *)in)[2 * i];
        break;
    case INGOT_C128:
        for (size_t i = 0; i < n; i++)
            b->d[i] = ((const double *)in)[2 * i];
        break;
    default: BUG("no conversion from %s", dtype_info[t].name);
    }
}

/* One destination, four sources.  FI, FU, FF, FD convert an int64_t x, uint64_t x, float x, double
 * x. */
#define NARROW(ID, C, FI, FU, FF, FD)        \
    case INGOT_##ID: {                       \
        C *p = out;                          \
        if (k == CARRY_I64)                  \
            for (size_t i = 0; i < n; i++) { \
                const int64_t x = b->i[i];   \
                p[i] = (FI);                 \
            }                                \
        else if (k == CARRY_U64)             \
            for (size_t i = 0; i < n; i++) { \
                const uint64_t x = b->u[i];  \
                p[i] = (FU);                 \
            }                                \
        else if (k == CARRY_F32)             \
            for (size_t i = 0; i < n; i++) { \
                const float x = b->f[i];     \
                p[i] = (FF);                 \
            }                                \
        else                                 \
            for (size_t i = 0; i < n; i++) { \
                const double x = b->d[i];    \
                p[i] = (FD);                 \
            }                                \
        break;                               \
    }
#define NARROW_INT(ID, C, T) NARROW(ID, C, (C)x, (C)x, igrt_f32_to_##T(x), igrt_f64_to_##T(x))
#define NARROW_SUB(ID, C, T)                                                       \
    NARROW(ID, C, igrt_wrap_##T(x), igrt_wrap_##T((int64_t)x), igrt_f32_to_##T(x), \
           igrt_f64_to_##T(x))
#define NARROW_F16(ID, T)                                         \
    NARROW(ID, uint16_t, igrt_f32_to_##T(igrt_i64_to_f32_odd(x)), \
           igrt_f32_to_##T(igrt_u64_to_f32_odd(x)), igrt_f32_to_##T(x), igrt_f64_to_##T(x))
#define NARROW_F8(ID, T)                                                          \
    NARROW(ID, uint8_t, igrt_f32_to_##T(igrt_i64_to_f32_odd(x), sat),             \
           igrt_f32_to_##T(igrt_u64_to_f32_odd(x), sat), igrt_f32_to_##T(x, sat), \
           igrt_f64_to_##T(x, sat))

static void narrow(ingot_dtype t, int64_t flags, CastCarrier k, size_t n, const Block256 *b,
                   void *out)
{
    const int sat = !(flags & 1), mode = (int)(flags >> 1 & 3);
    switch (t) {
        NARROW(BOOL, uint8_t, x != 0, x != 0, igrt_f32_to_bool(x), igrt_f64_to_bool(x))
        NARROW_INT(I8, int8_t, i8)
        NARROW_INT(U8, uint8_t, u8)
        NARROW_INT(I16, int16_t, i16)
        NARROW_INT(U16, uint16_t, u16)
        NARROW_INT(I32, int32_t, i32)
        NARROW_INT(U32, uint32_t, u32)
        NARROW_INT(I64, int64_t, i64)
        NARROW_INT(INDEX, int64_t, i64)
        NARROW_INT(U64, uint64_t, u64)
        NARROW_SUB(I4, int8_t, i4)
        NARROW_SUB(U4, uint8_t, u4)
        NARROW_SUB(I2, int8_t, i2)
        NARROW_SUB(U2, uint8_t, u2)
        NARROW_F16(F16, f16)
        NARROW_F16(BF16, bf16)
        NARROW(F32, float, (float)x, (float)x, x, (float)x)
        NARROW(F64, double, (double)x, (double)x, (double)x, x)
        NARROW_F8(F8E4M3FN, f8e4m3fn)
        NARROW_F8(F8E4M3FNUZ, f8e4m3fnuz)
        NARROW_F8(F8E5M2, f8e5m2)
        NARROW_F8(F8E5M2FNUZ, f8e5m2fnuz)
        NARROW(F8E8M0, uint8_t, igrt_f32_to_f8e8m0(igrt_i64_to_f32_odd(x), sat, mode),
               igrt_f32_to_f8e8m0(igrt_u64_to_f32_odd(x), sat, mode),
               igrt_f32_to_f8e8m0(x, sat, mode), igrt_f64_to_f8e8m0(x, sat, mode))
        NARROW(F4E2M1, uint8_t, igrt_f32_to_f4e2m1(igrt_i64_to_f32_odd(x)),
               igrt_f32_to_f4e2m1(igrt_u64_to_f32_odd(x)), igrt_f32_to_f4e2m1(x),
               igrt_f64_to_f4e2m1(x))
    case INGOT_C64:
        for (size_t i = 0; i < n; i++) {
            float *p = (float *)out + 2 * i;
            p[0] = k == CARRY_I64   ? (float)b->i[i]
                   : k == CARRY_U64 ? (float)b->u[i]
                   : k == CARRY_F32 ? b->f[i]
                                    : (float)b->d[i];
            p[1] = 0.0f;
        }
        break;
    case INGOT_C128:
        for (size_t i = 0; i < n; i++) {
            double *p = (double *)out + 2 * i;
            p[0] = k == CARRY_I64   ? (double)b->i[i]
                   : k == CARRY_U64 ? (double)b->u[i]
                   : k == CARRY_F32 ? (double)b->f[i]
                                    : b->d[i];
            p[1] = 0.0;
        }
        break;
    default: BUG("no conversion to %s", dtype_info[t].name);
    }
}

/* Where the source is NaN. */
static void put_least(ingot_dtype t, CastCarrier k, size_t n, const Block256 *b, char *out)
{
    for (size_t i = 0; i < n; i++)
        if (k == CARRY_F32 ? b->f[i] != b->f[i] : k == CARRY_F64 && b->d[i] != b->d[i])
            store_int(t, dtype_least(t), out + i * elem_bytes(t));
}

/* One element of the pairs that kernels of bytes and halves are full of. */
static bool cast_one(ingot_dtype to, ingot_dtype from, void *out, const void *in)
{
    int32_t *const whole = out;
    float *const single = out;
    switch (from) {
    case INGOT_I8:
        if (to == INGOT_I32)
            *whole = *(const int8_t *)in;
        return to == INGOT_I32;
    case INGOT_U8:
        if (to == INGOT_I32)
            *whole = *(const uint8_t *)in;
        return to == INGOT_I32;
    case INGOT_F16:
        if (to == INGOT_F32)
            *single = igrt_f16_to_f32(*(const uint16_t *)in);
        return to == INGOT_F32;
    case INGOT_BF16:
        if (to == INGOT_F32)
            *single = igrt_bf16_to_f32(*(const uint16_t *)in);
        return to == INGOT_F32;
    default: return false;
    }
}

void alu_cast(ingot_dtype to, ingot_dtype from, int64_t flags, size_t n, void *out, const void *in)
{
    if (n == 1 && !(flags & CAST_LEAST) && cast_one(to, from, out, in))
        return;
    if (to == from && dtype_info[to].bytes != 1) {
        memmove(out, in, n * elem_bytes(to));
        return;
    }
    if (from == INGOT_C64 && to == INGOT_C128) { /* the imaginary part too */
        alu_cast(INGOT_F64, INGOT_F32, 0, 2 * n, out, in);
        return;
    }
    if (from == INGOT_C128 && to == INGOT_C64) {
        alu_cast(INGOT_F32, INGOT_F64, 0, 2 * n, out, in);
        return;
    }
    Block256 b;
    const CastCarrier k = carrier_of(from);
    for (size_t done = 0; done < n; done += BLOCK) {
        const size_t m = n - done < BLOCK ? n - done : BLOCK;
        widen(from, m, (const char *)in + done * elem_bytes(from), &b);
        narrow(to, flags, k, m, &b, (char *)out + done * elem_bytes(to));
        if (flags & CAST_LEAST)
            put_least(to, k, m, &b, (char *)out + done * elem_bytes(to));
    }
}

void store_int(ingot_dtype t, int64_t x, void *out)
{
    alu_cast(t, INGOT_I64, 0, 1, out, &x);
}

int64_t load_int(ingot_dtype t, const void *in)
{
    int64_t x;
    alu_cast(INGOT_I64, t, 0, 1, &x, in);
    return x;
}

void store_const(Node *n, void *out)
{
    if (dtype_is_float(n->dtype) || dtype_info[n->dtype].kind == 'c') {
        const double d = igrt_bits_f64(n->arg.bits);
        alu_cast((ingot_dtype)n->dtype, INGOT_F64, 1, 1, out, &d);
        return;
    }
    const int64_t x = (int64_t)n->arg.bits;
    alu_cast((ingot_dtype)n->dtype, INGOT_I64, 0, 1, out, &x);
}
