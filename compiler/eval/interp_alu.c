/* interp_alu.c - elementwise operations on arrays of lanes, in the dtypes' storage form.
 *
 * Operands are brought to their compute type (dtypes.def), the operation is done by a function of
 * igrt_num.h or by the C operator where that is defined for every input, and the result is rounded
 * to storage: one rounding after every operation.  This is the oracle of docs/numerics.md. */
#include "interp.h"

#include <string.h>

#include "igrt_num.h"

enum { BLOCK = 256 };

#define EACH(OP, R, EXPR)                \
    case OP_##OP: {                      \
        R *r = out;                      \
        for (size_t i = 0; i < n; i++) { \
            r[i] = (R)(EXPR);            \
        }                                \
        return true;                     \
    }
/* a, b, c: operands. */
#define OPERANDS(C)                                                                 \
    const C *a = in[0], *b = nin > 1 ? in[1] : in[0], *c = nin > 2 ? in[2] : in[0]; \
    (void)a, (void)b, (void)c;
#define COMPARISONS                 \
    EACH(EQ, uint8_t, a[i] == b[i]) \
    EACH(NE, uint8_t, a[i] != b[i]) \
    EACH(LT, uint8_t, a[i] < b[i])  \
    EACH(LE, uint8_t, a[i] <= b[i])

/* M(f) is the C library's function f for the type. */
#define FLOAT_ALU(T, C, M)                                                          \
    static bool alu_##T(Op op, size_t n, void *out, int nin, const void *const *in) \
    {                                                                               \
        OPERANDS(C)                                                                 \
        switch (op) {                                                               \
            EACH(NEG, C, -a[i])                                                     \
            EACH(ABS, C, M(fabs)(a[i]))                                             \
            EACH(SIGN, C, igrt_sign_##T(a[i]))                                      \
            EACH(EXP, C, M(exp)(a[i]))                                              \
            EACH(LOG, C, igrt_log_##T(a[i]))                                        \
            EACH(SIN, C, M(sin)(a[i]))                                              \
            EACH(COS, C, M(cos)(a[i]))                                              \
            EACH(TAN, C, M(tan)(a[i]))                                              \
            EACH(ASIN, C, M(asin)(a[i]))                                            \
            EACH(ACOS, C, M(acos)(a[i]))                                            \
            EACH(ATAN, C, M(atan)(a[i]))                                            \
            EACH(SINH, C, M(sinh)(a[i]))                                            \
            EACH(COSH, C, M(cosh)(a[i]))                                            \
            EACH(TANH, C, M(tanh)(a[i]))                                            \
            EACH(ASINH, C, M(asinh)(a[i]))                                          \
            EACH(ACOSH, C, M(acosh)(a[i]))                                          \
            EACH(ATANH, C, M(atanh)(a[i]))                                          \
            EACH(ERF, C, igrt_erf_##T(a[i]))                                        \
            EACH(SQRT, C, M(sqrt)(a[i]))                                            \
            EACH(FLOOR, C, M(floor)(a[i]))                                          \
            EACH(CEIL, C, M(ceil)(a[i]))                                            \
            EACH(TRUNC, C, M(trunc)(a[i]))                                          \
            EACH(ROUND, C, igrt_round_##T(a[i]))                                    \
            EACH(ISNAN, uint8_t, a[i] != a[i])                                      \
            EACH(NOT, uint8_t, a[i] == 0)                                           \
            EACH(ADD, C, a[i] + b[i])                                               \
            EACH(SUB, C, a[i] - b[i])                                               \
            EACH(MUL, C, a[i] * b[i])                                               \
            EACH(DIV, C, a[i] / b[i])                                               \
            EACH(FLOORDIV, C, M(floor)(a[i] / b[i]))                                \
            EACH(MOD, C, igrt_mod_##T(a[i], b[i]))                                  \
            EACH(FMOD, C, igrt_fmod_##T(a[i], b[i]))                                \
            EACH(POW, C, igrt_pow_##T(a[i], b[i]))                                  \
            EACH(MAX, C, igrt_max_##T(a[i], b[i]))                                  \
            EACH(MIN, C, igrt_min_##T(a[i], b[i]))                                  \
            EACH(MULACC, C, a[i] * b[i] + c[i])                                     \
            COMPARISONS                                                             \
        default: return false;                                                      \
        }                                                                           \
    }                                                                               \
    static bool fold_##T(Op op, size_t n, C *acc, const C *v)                       \
    {                                                                               \
        C s = *acc;                                                                 \
        for (size_t i = 0; i < n; i++)                                              \
            s = op == OP_ADD   ? s + v[i]                                           \
                : op == OP_MUL ? s * v[i]                                           \
                : op == OP_MAX ? igrt_max_##T(s, v[i])                              \
                               : igrt_min_##T(s, v[i]);                             \
        *acc = s;                                                                   \
        return true;                                                                \
    }

/* All by one count is what digits of bytes are: a count that does not change leaves the loop. */
#define SHIFT(OP, C, F)                                       \
    case OP_##OP: {                                           \
        C *r = out;                                           \
        const C by = n ? b[0] : 0;                            \
        if (n > 1 && memcmp(b, b + 1, (n - 1) * sizeof *b)) { \
            for (size_t i = 0; i < n; i++)                    \
                r[i] = F(a[i], b[i]);                         \
            return true;                                      \
        }                                                     \
        for (size_t i = 0; i < n; i++)                        \
            r[i] = F(a[i], by);                               \
        return true;                                          \
    }

#define INT_ALU(T, C, U)                                                            \
    static bool alu_##T(Op op, size_t n, void *out, int nin, const void *const *in) \
    {                                                                               \
        OPERANDS(C)                                                                 \
        switch (op) {                                                               \
            EACH(NEG, C, igrt_neg_##T(a[i]))                                        \
            EACH(ABS, C, igrt_abs_##T(a[i]))                                        \
            EACH(SIGN, C, igrt_sign_##T(a[i]))                                      \
            EACH(FLOOR, C, a[i])                                                    \
            EACH(CEIL, C, a[i])                                                     \
            EACH(TRUNC, C, a[i])                                                    \
            EACH(ROUND, C, a[i])                                                    \
            EACH(ISNAN, uint8_t, 0)                                                 \
            EACH(NOT, C, (U) ~(U)a[i])                                              \
            EACH(ADD, C, igrt_add_##T(a[i], b[i]))                                  \
            EACH(SUB, C, igrt_sub_##T(a[i], b[i]))                                  \
            EACH(MUL, C, igrt_mul_##T(a[i], b[i]))                                  \
            EACH(DIV, C, igrt_div_##T(a[i], b[i]))                                  \
            EACH(FLOORDIV, C, igrt_floordiv_##T(a[i], b[i]))                        \
            EACH(MOD, C, igrt_mod_##T(a[i], b[i]))                                  \
            EACH(FMOD, C, igrt_fmod_##T(a[i], b[i]))                                \
            EACH(POW, C, igrt_pow_##T(a[i], b[i]))                                  \
            EACH(MAX, C, igrt_max_##T(a[i], b[i]))                                  \
            EACH(MIN, C, igrt_min_##T(a[i], b[i]))                                  \
            EACH(AND, C, (U)((U)a[i] & (U)b[i]))                                    \
            EACH(OR, C, (U)((U)a[i] | (U)b[i]))                                     \
            EACH(XOR, C, (U)((U)a[i] ^ (U)b[i]))                                    \
            SHIFT(SHL, C, igrt_shl_##T)                                             \
            SHIFT(SHR, C, igrt_shr_##T)                                             \
            EACH(MULACC, C, igrt_add_##T(igrt_mul_##T(a[i], b[i]), c[i]))           \
            COMPARISONS                                                             \
        default: return false;                                                      \
        }                                                                           \
    }

#define LIBM_F32(name) name##f
#define LIBM_F64(name) name
/* clang-format off */
FLOAT_ALU(f32, float, LIBM_F32)
FLOAT_ALU(f64, double, LIBM_F64)
INT_ALU(i8, int8_t, uint8_t)
INT_ALU(u8, uint8_t, uint8_t)
INT_ALU(i16, int16_t, uint16_t)
INT_ALU(u16, uint16_t, uint16_t)
INT_ALU(i32, int32_t, uint32_t)
INT_ALU(u32, uint32_t, uint32_t)
INT_ALU(i64, int64_t, uint64_t)
INT_ALU(u64, uint64_t, uint64_t)
/* clang-format on */

/* Bool is 0 or 1; + and max are or, * and min are and. */
static bool alu_bool(Op op, size_t n, void *out, int nin, const void *const *in)
{
    OPERANDS(uint8_t)
    switch (op) {
        EACH(NOT, uint8_t, !a[i])
        EACH(ABS, uint8_t, a[i] != 0)
        EACH(SIGN, uint8_t, a[i] != 0)
        EACH(ISNAN, uint8_t, 0)
        EACH(ADD, uint8_t, a[i] || b[i])
        EACH(MUL, uint8_t, a[i] && b[i])
        EACH(MAX, uint8_t, a[i] || b[i])
        EACH(MIN, uint8_t, a[i] && b[i])
        EACH(AND, uint8_t, a[i] && b[i])
        EACH(OR, uint8_t, a[i] || b[i])
        EACH(XOR, uint8_t, !a[i] != !b[i])
        EACH(SUB, uint8_t, !a[i] != !b[i])
        EACH(EQ, uint8_t, !a[i] == !b[i])
        EACH(NE, uint8_t, !a[i] != !b[i])
        EACH(LT, uint8_t, !a[i] > !b[i])
        EACH(LE, uint8_t, !a[i] >= !b[i])
    default: return false;
    }
}

/* Real part, then imaginary part.  The quotient is the schoolbook one. */
#define COMPLEX_ALU(T, C)                                                           \
    static bool alu_##T(Op op, size_t n, void *out, const void *const *in, int nin) \
    {                                                                               \
        const C *a = in[0], *b = nin > 1 ? in[1] : in[0];                           \
        for (size_t i = 0; i < n; i++) {                                            \
            const C x = a[2 * i], y = a[2 * i + 1], u = b[2 * i], v = b[2 * i + 1]; \
            C re, im;                                                               \
            if (op == OP_EQ || op == OP_NE) {                                       \
                ((uint8_t *)out)[i] = (x == u && y == v) == (op == OP_EQ);          \
                continue;                                                           \
            }                                                                       \
            if (op == OP_NEG) {                                                     \
                re = -x, im = -y;                                                   \
            } else if (op == OP_ADD) {                                              \
                re = x + u, im = y + v;                                             \
            } else if (op == OP_SUB) {                                              \
                re = x - u, im = y - v;                                             \
            } else if (op == OP_MUL) {                                              \
                re = x * u - y * v, im = x * v + y * u;                             \
            } else if (op == OP_DIV) {                                              \
                const C d = u * u + v * v;                                          \
                re = (x * u + y * v) / d, im = (y * u - x * v) / d;                 \
            } else {                                                                \
                return false;                                                       \
            }                                                                       \
            ((C *)out)[2 * i] = re;                                                 \
            ((C *)out)[2 * i + 1] = im;                                             \
        }                                                                           \
        return true;                                                                \
    }
COMPLEX_ALU(c64, float)
COMPLEX_ALU(c128, double)

/* Integers of less than a byte: in the byte type, then wrapped; only a shift right sees the
 * width. */
static bool alu_sub_byte(ingot_dtype t, Op op, size_t n, void *out, int nin, const void *const *in)
{
    const bool is_signed = t == INGOT_I4 || t == INGOT_I2;
    const unsigned width = t == INGOT_I4 || t == INGOT_U4 ? 4 : 2;
    if (!(is_signed ? alu_i8 : alu_u8)(op, n, out, nin, in))
        return false;
    if (op >= OP_EQ && op <= OP_LE)
        return true;
    uint8_t *r = out;
    for (size_t i = 0; i < n; i++) {
        if (op == OP_SHR && ((const uint8_t *)in[1])[i] >= width)
            r[i] = 0;
        r[i] = t == INGOT_I4   ? (uint8_t)igrt_wrap_i4(r[i])
               : t == INGOT_U4 ? igrt_wrap_u4(r[i])
               : t == INGOT_I2 ? (uint8_t)igrt_wrap_i2(r[i])
                               : igrt_wrap_u2(r[i]);
    }
    return true;
}

static bool alu_compute(ingot_dtype t, Op op, size_t n, void *out, int nin, const void *const *in)
{
    switch (t) {
    case INGOT_BOOL: return alu_bool(op, n, out, nin, in);
    case INGOT_I8: return alu_i8(op, n, out, nin, in);
    case INGOT_U8: return alu_u8(op, n, out, nin, in);
    case INGOT_I16: return alu_i16(op, n, out, nin, in);
    case INGOT_U16: return alu_u16(op, n, out, nin, in);
    case INGOT_I32: return alu_i32(op, n, out, nin, in);
    case INGOT_U32: return alu_u32(op, n, out, nin, in);
    case INGOT_I64:
    case INGOT_INDEX: return alu_i64(op, n, out, nin, in);
    case INGOT_U64: return alu_u64(op, n, out, nin, in);
    case INGOT_F32: return alu_f32(op, n, out, nin, in);
    case INGOT_F64: return alu_f64(op, n, out, nin, in);
    case INGOT_C64: return alu_c64(op, n, out, in, nin);
    case INGOT_C128: return alu_c128(op, n, out, in, nin);
    case INGOT_I4:
    case INGOT_U4:
    case INGOT_I2:
    case INGOT_U2: return alu_sub_byte(t, op, n, out, nin, in);
    default: return false;
    }
}

#define SELECT(SIZE, C)                   \
    case SIZE: {                          \
        const C *a = x, *b = y;           \
        C *r = out;                       \
        for (size_t i = 0; i < n; i++)    \
            r[i] = cond[i] ? a[i] : b[i]; \
        return;                           \
    }

static void select_lanes(size_t size, size_t n, void *out, const uint8_t *cond, const void *x,
                         const void *y)
{
    switch (size) {
        SELECT(1, uint8_t)
        SELECT(2, uint16_t)
        SELECT(4, uint32_t)
        SELECT(8, uint64_t)
    default:
        for (size_t i = 0; i < n; i++)
            memcpy((char *)out + i * size, (const char *)(cond[i] ? x : y) + i * size, size);
    }
}

static void quantize_lanes(int64_t arg, ingot_dtype to, size_t n, char *out, const void *const *in)
{
    const float *x = in[0], *zero = in[1];
    const int lo = quantize_least(arg), hi = quantize_most(arg);
    for (size_t i = 0; i < n; i++)
        if (to == INGOT_F32)
            ((float *)(void *)out)[i] = igrt_quantized_f32(x[i], (int32_t)zero[i], lo, hi);
        else
            store_int(to, igrt_quantize_f32(x[i], (int32_t)zero[i], lo, hi),
                      out + i * elem_bytes(to));
}

static uint32_t unsigned_at(ingot_dtype d, const void *x, size_t i)
{
    switch (elem_bytes(d)) {
    case 1: return ((const uint8_t *)x)[i];
    case 2: return ((const uint16_t *)x)[i];
    default: return ((const uint32_t *)x)[i];
    }
}

static void digit_lanes(int64_t arg, ingot_dtype d, size_t n, float *out, const void *const *in)
{
    for (size_t i = 0; i < n; i++)
        out[i] = igrt_digit_f32(unsigned_at(d, in[0], i), (int)unsigned_at(d, in[1], i),
                                digit_mask(arg), digit_less(arg));
}

static void top_byte_lanes(size_t n, float *out, const int32_t *word, const int32_t *shift)
{
    for (size_t i = 0; i < n; i++)
        out[i] = igrt_top_byte_f32(word[i], shift[i]);
}

static void fraction_lanes(Op op, size_t n, int32_t *out, const int32_t *x, const int32_t *y)
{
    for (size_t i = 0; i < n; i++)
        out[i] = op == OP_MULHI ? igrt_mulhi_i32(x[i], y[i]) : igrt_shrr_i32(x[i], y[i]);
}

void alu_lanes(Op op, int64_t arg, ingot_dtype out_t, const uint8_t *in_t, size_t n, void *out,
               const void *const *in)
{
    if (in_t[0] == INGOT_F32 && alu_f32(op, n, out, op_info[op].nsrc, in)) /* most are */
        return;
    if (op == OP_CAST) {
        alu_cast(out_t, (ingot_dtype)in_t[0], arg, n, out, in[0]);
        return;
    }
    if (op == OP_BITCAST) {
        memmove(out, in[0], n * elem_bytes(out_t));
        return;
    }
    if (op == OP_WHERE) {
        select_lanes(elem_bytes(out_t), n, out, in[0], in[1], in[2]);
        return;
    }
    if (op == OP_MULHI || op == OP_SHRR) {
        fraction_lanes(op, n, out, in[0], in[1]);
        return;
    }
    if (op == OP_QUANTIZE) {
        quantize_lanes(arg, out_t, n, out, in);
        return;
    }
    if (op == OP_DIGIT) {
        digit_lanes(arg, (ingot_dtype)in_t[0], n, out, in);
        return;
    }
    if (op == OP_TOP_BYTE) {
        top_byte_lanes(n, out, in[0], in[1]);
        return;
    }
    const ingot_dtype t = (ingot_dtype)in_t[0], compute = dtype_info[t].compute;
    const int nin = op_info[op].nsrc;
    if (t == compute || t == INGOT_INDEX) {
        if (!alu_compute(t, op, n, out, nin, in))
            BUG("%s of %s", op_info[op].text, dtype_info[t].name);
        return;
    }
    float x[3][BLOCK], r[BLOCK]; /* the only compute type that is not a storage type's own is f32 */
    for (size_t done = 0; done < n; done += BLOCK) {
        const size_t m = n - done < BLOCK ? n - done : BLOCK;
        const void *p[3] = {x[0], x[1], x[2]};
        for (int k = 0; k < nin; k++)
            alu_cast(compute, t, 0, m, x[k], (const char *)in[k] + done * elem_bytes(t));
        if (!alu_compute(compute, op, m, r, nin, p))
            BUG("%s of %s", op_info[op].text, dtype_info[t].name);
        if (out_t == INGOT_BOOL)
            memcpy((char *)out + done, r, m);
        else /* arithmetic overflows to infinity or NaN; only casts saturate */
            alu_cast(out_t, compute, 1, m, (char *)out + done * elem_bytes(out_t), r);
    }
}

void interp_alu(Node *n, size_t lanes, void *out, const void *const *in)
{
    uint8_t t[3] = {0};
    for (uint32_t i = 0; i < n->nsrc && i < 3; i++)
        t[i] = n->src[i]->dtype;
    alu_lanes((Op)n->op, n->arg.i, (ingot_dtype)n->dtype, t, lanes, out, in);
}

void interp_to_f64(ingot_dtype from, size_t n, double *out, const void *in)
{
    alu_cast(INGOT_F64, from, 0, n, out, in);
}

void alu_fold(Op op, ingot_dtype t, size_t n, void *acc, const void *v)
{
    if (t == INGOT_F32) {
        fold_f32(op, n, acc, v);
        return;
    }
    if (t == INGOT_F64) {
        fold_f64(op, n, acc, v);
        return;
    }
    const uint8_t types[3] = {(uint8_t)t, (uint8_t)t, (uint8_t)t};
    const size_t size = elem_bytes(t);
    for (size_t i = 0; i < n; i++) {
        const void *in[3] = {acc, (const char *)v + i * size, acc};
        alu_lanes(op, 0, t, types, 1, acc, in);
    }
}

void alu_identity(ingot_reduce_op op, ingot_dtype t, void *out)
{
    const char kind = dtype_info[t].kind;
    if (kind == 'f' || kind == 'c') {
        const double d = op == INGOT_REDUCE_MUL   ? 1.0
                         : op == INGOT_REDUCE_MAX ? -HUGE_VAL
                         : op == INGOT_REDUCE_MIN ? HUGE_VAL
                                                  : 0.0;
        alu_cast(t, INGOT_F64, 1, 1, out, &d);
        return;
    }
    int64_t x = op == INGOT_REDUCE_MUL ? 1 : op == INGOT_REDUCE_AND ? -1 : 0;
    const size_t bits = t == INGOT_I4 || t == INGOT_U4   ? 4
                        : t == INGOT_I2 || t == INGOT_U2 ? 2
                        : t == INGOT_BOOL                ? 1
                                                         : elem_bytes(t) * 8;
    const bool is_signed = kind == 'i' || kind == 'x';
    const int64_t most = (int64_t)(UINT64_MAX >> (64 - bits + is_signed)); /* u64's wraps to -1 */
    if (op == INGOT_REDUCE_MAX)
        x = is_signed ? -most - 1 : 0;
    if (op == INGOT_REDUCE_MIN || (op == INGOT_REDUCE_AND && t == INGOT_BOOL))
        x = most;
    store_int(t, x, out);
}
