/* interp_test.c - the reference interpreter against formulas written out here: each class of op,
 * each dtype, control flow, run-time dims, contents of shape tensors, and random graphs against a
 * plain recursive "value at these coordinates". */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/compiler.h"
#include "runtime_min/igrt_num.h"

static char last_message[512];

static void keep(void *user, ingot_level level, const char *message)
{
    (void)user, (void)level;
    snprintf(last_message, sizeof last_message, "%s", message);
}

static int setup(void **state)
{
    last_message[0] = 0;
    *state = ingot_context_new(keep, NULL);
    return 0;
}

static int teardown(void **state)
{
    ingot_context_free(*state);
    return 0;
}

/* Constant data that the builder cannot fold away. */
static ingot_tensor *data(ingot_context *c, ingot_dtype t, int rank, const int64_t *dims,
                          const void *bytes)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    void *copy = ingot_alloc(c, (size_t)n * ingot_dtype_bytes(t) + 1);
    memcpy(copy, bytes, (size_t)n * ingot_dtype_bytes(t));
    return ingot_data(c, NULL, t, rank, dims, copy);
}

static ingot_tensor *vec(ingot_context *c, ingot_dtype t, int64_t n, const void *bytes)
{
    return data(c, t, 1, &n, bytes);
}

static void eval(ingot_context *c, ingot_tensor *x, void *out, size_t bytes)
{
    Interp *ip = interp_new(c);
    int64_t dims[INGOT_MAX_RANK], n = 1;
    const void *p = interp_eval(ip, x, dims);
    assert_non_null(p);
    for (int i = 0; i < ingot_rank(x); i++)
        n *= dims[i];
    assert_int_equal((size_t)n * ingot_dtype_bytes(ingot_dtype_of(x)), bytes);
    memcpy(out, p, bytes);
    interp_free(ip);
}
#define COUNT(a) (int64_t)(sizeof(a) / sizeof *(a))

/* ---- elementwise ----------------------------------------------------------------------------- */

static const float floats[] = {0.0f,  -0.0f,   1.0f,     -1.0f,     0.5f,  -0.5f, 1.5f,
                               2.5f,  -2.5f,   3.25f,    7.75f,     -7.1f, 1e-3f, 100.0f,
                               -3e4f, 6.0e-8f, INFINITY, -INFINITY, NAN};

static bool same_f32(float a, float b)
{
    return (isnan(a) && isnan(b)) || igrt_f32_bits(a) == igrt_f32_bits(b);
}

static void unary_f32(void **state)
{
    ingot_context *c = *state;
    ingot_tensor *x = vec(c, INGOT_F32, COUNT(floats), floats);
    float r[COUNT(floats)];
#define CHECK(name, EXPR)                                                                 \
    eval(c, ingot_##name(c, x), r, sizeof r);                                             \
    for (int i = 0; i < (int)COUNT(floats); i++) {                                        \
        const float v = floats[i];                                                        \
        if (!same_f32(r[i], (EXPR)))                                                      \
            fail_msg(#name "(%g) = %g, not %g", (double)v, (double)r[i], (double)(EXPR)); \
    }
    CHECK(neg, -v)
    CHECK(abs, fabsf(v))
    CHECK(sign, v > 0 ? 1.0f : v < 0 ? -1.0f : v)
    CHECK(exp, expf(v))
    CHECK(log, logf(v))
    CHECK(sin, sinf(v))
    CHECK(cos, cosf(v))
    CHECK(tan, tanf(v))
    CHECK(asin, asinf(v))
    CHECK(acos, acosf(v))
    CHECK(atan, atanf(v))
    CHECK(sinh, sinhf(v))
    CHECK(cosh, coshf(v))
    CHECK(tanh, tanhf(v))
    CHECK(asinh, asinhf(v))
    CHECK(acosh, acoshf(v))
    CHECK(atanh, atanhf(v))
    CHECK(erf, erff(v))
    CHECK(sqrt, sqrtf(v))
    CHECK(reciprocal, 1.0f / v)
    CHECK(floor, floorf(v))
    CHECK(ceil, ceilf(v))
    CHECK(trunc, truncf(v))
    CHECK(round, rintf(v))
#undef CHECK
    uint8_t b[COUNT(floats)];
    eval(c, ingot_isnan(c, x), b, sizeof b);
    for (int i = 0; i < (int)COUNT(floats); i++)
        assert_int_equal(b[i], isnan(floats[i]) != 0);
}

static float py_mod(float a, float b)
{
    const float r = fmodf(a, b);
    if (r == 0)
        return copysignf(0.0f, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static void binary_floats(void **state)
{
    ingot_context *c = *state;
    enum { N = COUNT(floats) * COUNT(floats) };
    static float a[N], b[N], r[N];
    static uint16_t ha[N], hb[N], hr[N];
    static uint8_t p[N];
    for (int i = 0; i < N; i++) {
        a[i] = floats[i / COUNT(floats)];
        b[i] = floats[i % COUNT(floats)];
        ha[i] = igrt_f32_to_f16(a[i]);
        hb[i] = igrt_f32_to_f16(b[i]);
    }
    ingot_tensor *x = vec(c, INGOT_F32, N, a), *y = vec(c, INGOT_F32, N, b);
    ingot_tensor *hx = vec(c, INGOT_F16, N, ha), *hy = vec(c, INGOT_F16, N, hb);
#define CHECK(name, EXPR)                                                                   \
    eval(c, ingot_##name(c, x, y), r, sizeof r);                                            \
    for (int i = 0; i < N; i++) {                                                           \
        const float u = a[i], v = b[i];                                                     \
        if (!same_f32(r[i], (EXPR)))                                                        \
            fail_msg(#name "(%g, %g) = %g, not %g", (double)u, (double)v, (double)r[i],     \
                     (double)(EXPR));                                                       \
    }                                                                                       \
    eval(c, ingot_##name(c, hx, hy), hr, sizeof hr);                                        \
    for (int i = 0; i < N; i++) {                                                           \
        const float u = igrt_f16_to_f32(ha[i]), v = igrt_f16_to_f32(hb[i]);                 \
        const float e = igrt_f16_to_f32(igrt_f32_to_f16(EXPR)), g = igrt_f16_to_f32(hr[i]); \
        if (!same_f32(g, e))                                                                \
            fail_msg("f16 " #name "(%g, %g) = %g, not %g", (double)u, (double)v, (double)g, \
                     (double)e);                                                            \
    }
    CHECK(add, u + v)
    CHECK(sub, u - v)
    CHECK(mul, u * v)
    CHECK(div, u / v)
    CHECK(fmod, fmodf(u, v))
    CHECK(mod, py_mod(u, v))
    CHECK(pow, powf(u, v))
    CHECK(max, isnan(u) || isnan(v) ? NAN : u > v ? u : v)
    CHECK(min, isnan(u) || isnan(v) ? NAN : u < v ? u : v)
#undef CHECK
#define CHECK(name, EXPR)                        \
    eval(c, ingot_##name(c, x, y), p, sizeof p); \
    for (int i = 0; i < N; i++) {                \
        const float u = a[i], v = b[i];          \
        assert_int_equal(p[i], (EXPR));          \
    }
    CHECK(eq, u == v)
    CHECK(ne, u != v)
    CHECK(lt, u < v)
    CHECK(le, u <= v)
    CHECK(gt, u > v)
    CHECK(ge, u >= v)
#undef CHECK
}

/* Integers of every width, in 128 bits: exact, then wrapped. */
__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

static i128 wrap(i128 x, int bits, bool is_signed)
{
    u128 m = (u128)x & (((u128)1 << bits) - 1);
    if (is_signed && m >> (bits - 1))
        return (i128)m - ((i128)1 << bits);
    return (i128)m;
}

static i128 int_op(int op, i128 a, i128 b, int bits, bool is_signed)
{
    i128 q, r;
    switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return (i128)((u128)a * (u128)b);
    case OP_DIV: return b == 0 ? 0 : a / b;
    case OP_FMOD: return b == 0 ? 0 : a % b;
    case OP_MOD:
        if (b == 0)
            return 0;
        r = a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    case OP_MAX: return a > b ? a : b;
    case OP_MIN: return a < b ? a : b;
    case OP_AND: return a & b;
    case OP_OR: return a | b;
    case OP_XOR: return a ^ b;
    case OP_SHL: return b < 0 || b >= bits ? 0 : (i128)((u128)a << (int)b);
    case OP_SHR: return b < 0 || b >= bits ? 0 : a >> (int)b;
    case OP_POW:
        if (b < 0)
            return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
        q = 1;
        for (r = a; b; b >>= 1) {
            q = b & 1 ? wrap((i128)((u128)q * (u128)r), bits, is_signed) : q;
            r = wrap((i128)((u128)r * (u128)r), bits, is_signed);
        }
        return q;
    default: fail(); return 0;
    }
}

static void integers(void **state)
{
    ingot_context *c = *state;
    static const struct {
        ingot_dtype t;
        int bits;
        bool is_signed;
    } types[] = {{INGOT_I8, 8, true},    {INGOT_U8, 8, false},   {INGOT_I16, 16, true},
                 {INGOT_U16, 16, false}, {INGOT_I32, 32, true},  {INGOT_U32, 32, false},
                 {INGOT_I64, 64, true},  {INGOT_U64, 64, false}, {INGOT_I4, 4, true},
                 {INGOT_U4, 4, false},   {INGOT_I2, 2, true},    {INGOT_U2, 2, false}};
    static const struct {
        int op;
        ingot_tensor *(*make)(ingot_context *, ingot_tensor *, ingot_tensor *);
    } ops[] = {{OP_ADD, ingot_add}, {OP_SUB, ingot_sub},   {OP_MUL, ingot_mul}, {OP_DIV, ingot_div},
               {OP_MOD, ingot_mod}, {OP_FMOD, ingot_fmod}, {OP_MAX, ingot_max}, {OP_MIN, ingot_min},
               {OP_AND, ingot_and}, {OP_OR, ingot_or},     {OP_XOR, ingot_xor}, {OP_SHL, ingot_shl},
               {OP_SHR, ingot_shr}, {OP_POW, ingot_pow}};
    enum { K = 14, N = K * K };
    for (int t = 0; t < (int)COUNT(types); t++) {
        const int bits = types[t].bits, bytes = bits < 8 ? 1 : bits / 8;
        const i128 top = (i128)1 << (bits - types[t].is_signed);
        const i128 lo = types[t].is_signed ? -top : 0, hi = top - 1;
        const i128 pick[K] = {lo, lo + 1, hi, hi - 1, 0, 1, 2, 3, -1, -2, 7, bits, bits - 1, 100};
        i128 a[N], b[N];
        uint8_t pa[N * 8], pb[N * 8], pr[N * 8];
        for (int i = 0; i < N; i++) {
            a[i] = wrap(pick[i / K], bits, types[t].is_signed);
            b[i] = wrap(pick[i % K], bits, types[t].is_signed);
            const int64_t u = (int64_t)a[i], v = (int64_t)b[i];
            memcpy(pa + i * bytes, &u, (size_t)bytes);
            memcpy(pb + i * bytes, &v, (size_t)bytes);
        }
        ingot_tensor *x = vec(c, types[t].t, N, pa), *y = vec(c, types[t].t, N, pb);
        for (int k = 0; k < (int)COUNT(ops); k++) {
            eval(c, ops[k].make(c, x, y), pr, (size_t)(N * bytes));
            for (int i = 0; i < N; i++) {
                const int64_t e =
                    (int64_t)wrap(int_op(ops[k].op, a[i], b[i], bits, types[t].is_signed), bits,
                                  types[t].is_signed);
                if (memcmp(pr + i * bytes, &e, (size_t)bytes) != 0)
                    fail_msg("%s %s(%lld, %lld): expected %lld, first byte %d",
                             dtype_info[types[t].t].name, op_info[ops[k].op].text, (long long)a[i],
                             (long long)b[i], (long long)e, pr[i * bytes]);
            }
        }
    }
}

static void casts(void **state)
{
    ingot_context *c = *state;
    const float x[] = {0.0f,  1.9f, -1.9f,    300.0f, -300.0f, 3e9f,   -3e9f,
                       1e20f, NAN,  INFINITY, 0.3f,   448.0f,  500.0f, 6e4f};
    enum { N = COUNT(x) };
    ingot_tensor *f = vec(c, INGOT_F32, N, x), *d = ingot_cast(c, f, INGOT_F64);
    ingot_tensor *src[2] = {f, d};
    for (int s = 0; s < 2; s++) {
        int8_t i8[N];
        int32_t i32[N];
        int64_t i64[N];
        uint64_t u64[N];
        uint8_t b[N], e4[N], e5[N], f4[N];
        uint16_t h[N], bf[N];
        eval(c, ingot_cast(c, src[s], INGOT_I8), i8, sizeof i8);
        eval(c, ingot_cast(c, src[s], INGOT_I32), i32, sizeof i32);
        eval(c, ingot_cast(c, src[s], INGOT_I64), i64, sizeof i64);
        eval(c, ingot_cast(c, src[s], INGOT_U64), u64, sizeof u64);
        eval(c, ingot_cast(c, src[s], INGOT_BOOL), b, sizeof b);
        eval(c, ingot_cast(c, src[s], INGOT_F16), h, sizeof h);
        eval(c, ingot_cast(c, src[s], INGOT_BF16), bf, sizeof bf);
        eval(c, ingot_cast(c, src[s], INGOT_F8E4M3FN), e4, sizeof e4);
        eval(c, ingot_cast_wrap(c, src[s], INGOT_F8E5M2), e5, sizeof e5);
        eval(c, ingot_cast(c, src[s], INGOT_F4E2M1), f4, sizeof f4);
        for (int i = 0; i < N; i++) {
            assert_int_equal(i8[i], igrt_f32_to_i8(x[i]));
            assert_int_equal(i32[i], igrt_f32_to_i32(x[i]));
            assert_true(i64[i] == igrt_f32_to_i64(x[i]));
            assert_true(u64[i] == igrt_f32_to_u64(x[i]));
            assert_int_equal(b[i], x[i] != 0);
            assert_int_equal(h[i], igrt_f32_to_f16(x[i]));
            assert_int_equal(bf[i], igrt_f32_to_bf16(x[i]));
            assert_int_equal(e4[i], igrt_f32_to_f8e4m3fn(x[i], 1));
            assert_int_equal(e5[i], igrt_f32_to_f8e5m2(x[i], 0));
            assert_int_equal(f4[i], igrt_f32_to_f4e2m1(x[i]));
        }
    }
    /* every small float there and back */
    static const ingot_dtype small[] = {INGOT_F8E4M3FN, INGOT_F8E4M3FNUZ, INGOT_F8E5M2,
                                        INGOT_F8E5M2FNUZ, INGOT_F8E8M0};
    uint8_t all[256], back[256];
    float wide[256];
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    for (int k = 0; k < (int)COUNT(small); k++) {
        ingot_tensor *w = ingot_cast(c, vec(c, small[k], 256, all), INGOT_F32);
        eval(c, w, wide, sizeof wide);
        eval(c, ingot_cast_wrap(c, w, small[k]), back, sizeof back);
        for (int i = 0; i < 256; i++)
            assert_true(isnan(wide[i]) || back[i] == all[i]);
    }
    const int64_t big[] = {INT64_MAX, INT64_MIN, 16777217, -16777219, 255, 65519, 65520};
    float bigf[COUNT(big)];
    uint16_t bigh[COUNT(big)];
    ingot_tensor *bi = vec(c, INGOT_I64, COUNT(big), big);
    eval(c, ingot_cast(c, bi, INGOT_F32), bigf, sizeof bigf);
    eval(c, ingot_cast(c, bi, INGOT_F16), bigh, sizeof bigh);
    for (int i = 0; i < (int)COUNT(big); i++) {
        assert_true(bigf[i] == (float)big[i]);
        assert_int_equal(bigh[i], igrt_f64_to_f16((double)big[i]));
    }
}

/* ---- random graphs against value-at-coordinates ------------------------------------------------ */

static uint64_t seed;

static int rnd(int n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int)((seed >> 33) % (uint64_t)n);
}

static int64_t dim(Node *n, int i)
{
    int64_t v = 0;
    assert_true(ingot_dim_is_const(n->shape[i], &v));
    return v;
}

static int64_t arg_dim(Node *n, int i)
{
    int64_t v = 0;
    assert_true(ingot_dim_is_const(n->src[i], &v));
    return v;
}

/* All test values are i64. */
static int64_t at(Node *n, const int64_t *x)
{
    int64_t y[INGOT_MAX_RANK] = {0}, flat = 0;
    Node *s = n->nsrc ? n->src[0] : NULL;
    switch (n->op) {
    case OP_CONST: return n->arg.i;
    case OP_DATA: {
        for (int i = 0; i < n->rank; i++)
            flat = flat * dim(n, i) + x[i];
        int64_t v;
        memcpy(&v, ((const Data *)n->arg.ptr)->bytes + flat * 8, sizeof v);
        return v;
    }
    case OP_IOTA: return x[n->arg.i];
    case OP_CAST: return s->dtype == INGOT_INDEX ? arg_dim(n, 0) : at(s, x);
    case OP_NEG: return -at(s, x);
    case OP_ADD: return at(s, x) + at(n->src[1], x);
    case OP_SUB: return at(s, x) - at(n->src[1], x);
    case OP_MUL: return at(s, x) * at(n->src[1], x);
    case OP_MAX: return at(s, x) > at(n->src[1], x) ? at(s, x) : at(n->src[1], x);
    case OP_LT: return at(s, x) < at(n->src[1], x);
    case OP_WHERE: return at(s, x) ? at(n->src[1], x) : at(n->src[2], x);
    case OP_RESHAPE:
        for (int i = 0; i < n->rank; i++)
            flat = flat * dim(n, i) + x[i];
        for (int i = s->rank - 1; i >= 0; i--) {
            y[i] = flat % dim(s, i);
            flat /= dim(s, i);
        }
        return at(s, y);
    case OP_PERMUTE:
        for (int i = 0; i < n->rank; i++)
            y[((const Perm *)n->arg.ptr)->axis[i]] = x[i];
        return at(s, y);
    case OP_EXPAND:
        for (int i = 0; i < n->rank; i++)
            y[i] = dim(s, i) == 1 ? 0 : x[i];
        return at(s, y);
    case OP_SHRINK:
        for (int i = 0; i < n->rank; i++)
            y[i] = x[i] + arg_dim(n, 1 + 2 * i);
        return at(s, y);
    case OP_FLIP:
        for (int i = 0; i < n->rank; i++)
            y[i] = n->arg.i >> i & 1 ? dim(n, i) - 1 - x[i] : x[i];
        return at(s, y);
    case OP_KEEP: return at(s, x);
    case OP_PAD:
        for (int i = 0; i < n->rank; i++) {
            y[i] = x[i] - arg_dim(n, 1 + 2 * i);
            if (y[i] < 0 || y[i] >= dim(s, i))
                return 0;
        }
        return at(s, y);
    case OP_GATHER:
        for (int i = 0; i < s->rank; i++) {
            y[i] = at(n->src[1 + i], x);
            y[i] = y[i] < 0 ? 0 : y[i] >= dim(s, i) ? dim(s, i) - 1 : y[i];
        }
        return at(s, y);
    case OP_CONCAT:
        memcpy(y, x, sizeof(int64_t) * n->rank);
        for (uint32_t k = 0; k < n->nsrc; k++) {
            if (y[n->arg.i] < dim(n->src[k], (int)n->arg.i))
                return at(n->src[k], y);
            y[n->arg.i] -= dim(n->src[k], (int)n->arg.i);
        }
        break;
    case OP_REDUCE: {
        int64_t acc = 0, count = 1;
        const int64_t axes = n->arg.i >> 8;
        for (int i = 0; i < s->rank; i++)
            count *= axes >> i & 1 ? dim(s, i) : 1;
        for (int64_t k = 0; k < count; k++) {
            int64_t rest = k;
            for (int i = s->rank - 1; i >= 0; i--) {
                y[i] = x[i];
                if (axes >> i & 1) {
                    y[i] = rest % dim(s, i);
                    rest /= dim(s, i);
                }
            }
            const int64_t v = at(s, y);
            acc = (n->arg.i & 0xff) == INGOT_REDUCE_ADD ? acc + v : k == 0 || v > acc ? v : acc;
        }
        return acc;
    }
    default: break;
    }
    fail_msg("op %s in a random graph", op_info[n->op].text);
    return 0;
}

static void random_dims(int rank, int64_t *d)
{
    for (int i = 0; i < rank; i++)
        d[i] = 1 + rnd(4);
}

static ingot_tensor *random_data(ingot_context *c, int rank, const int64_t *d)
{
    int64_t n = 1, *v;
    for (int i = 0; i < rank; i++)
        n *= d[i];
    v = ingot_alloc(c, (size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = rnd(19) - 9;
    return ingot_data(c, NULL, INGOT_I64, rank, d, v);
}

/* x with its elements in another shape: split or merge at random. */
static ingot_tensor *random_reshape(ingot_context *c, ingot_tensor *x)
{
    int64_t d[INGOT_MAX_RANK], n = 1, out[INGOT_MAX_RANK];
    int rank = 0;
    ingot_static_shape(x, d);
    for (int i = 0; i < ingot_rank(x); i++)
        n *= d[i];
    while (rank < 4 && n > 1) {
        int64_t f = 1 + rnd(6);
        while (n % f)
            f--;
        out[rank++] = f;
        n /= f;
    }
    if (n > 1 || rank == 0)
        out[rank++] = n;
    return ingot_reshape_c(c, x, rank, out);
}

static ingot_tensor *random_step(ingot_context *c, ingot_tensor *x)
{
    int64_t d[INGOT_MAX_RANK], numel = 1;
    ingot_dim *p[INGOT_MAX_RANK], *q[INGOT_MAX_RANK];
    ingot_tensor *idx_t[INGOT_MAX_RANK];
    const int rank = ingot_rank(x);
    assert_true(ingot_static_shape(x, d));
    for (int i = 0; i < rank; i++)
        numel *= d[i];
    int perm[INGOT_MAX_RANK];
    switch (rnd(14)) {
    case 0:
    case 1: return random_reshape(c, x);
    case 2:
        for (int i = 0; i < rank; i++)
            perm[i] = i;
        for (int i = rank - 1; i > 0; i--) {
            const int j = rnd(i + 1), t = perm[i];
            perm[i] = perm[j];
            perm[j] = t;
        }
        return ingot_permute(c, x, perm);
    case 3:
        for (int i = 0; i < rank; i++)
            p[i] = ingot_dim_const(c, d[i] == 1 && numel < 200 ? 1 + rnd(3) : d[i]);
        return ingot_expand(c, x, rank, p);
    case 4:
        for (int i = 0; i < rank; i++) {
            p[i] = ingot_dim_const(c, numel < 300 ? rnd(3) : 0);
            q[i] = ingot_dim_const(c, numel < 300 ? rnd(2) : 0);
        }
        return ingot_pad(c, x, p, q);
    case 5:
        for (int i = 0; i < rank; i++) {
            const int b = rnd((int)d[i]);
            p[i] = ingot_dim_const(c, b);
            q[i] = ingot_dim_const(c, 1 + rnd((int)d[i] - b));
        }
        return ingot_shrink(c, x, p, q);
    case 6: return ingot_flip(c, x, (unsigned)rnd(1 << rank));
    case 7:
        return rank ? ingot_reduce(c, rnd(2) ? INGOT_REDUCE_ADD : INGOT_REDUCE_MAX, x,
                                   (unsigned)rnd(1 << rank), rnd(2))
                    : x;
    case 8: { /* gather with data-dependent and linear indices mixed */
        int64_t g[2] = {1 + rnd(4), 1 + rnd(4)};
        ingot_dim *gd[2] = {ingot_dim_const(c, g[0]), ingot_dim_const(c, g[1])};
        for (int i = 0; i < rank; i++)
            idx_t[i] = rnd(2) ? random_data(c, 2, g)
                              : ingot_add_c(c, ingot_mul_c(c, ingot_iota(c, 2, gd, rnd(2)), rnd(3)),
                                            rnd(3) - 1);
        return rank ? ingot_gather(c, x, idx_t) : x;
    }
    case 9:
        if (rank && numel < 300) {
            ingot_tensor *parts[3] = {x, ingot_flip(c, x, 1), ingot_neg(c, x)};
            return ingot_concat(c, 3, parts, rnd(rank));
        }
        return x;
    case 10:
        for (int i = 0; i < rank; i++)
            if (d[i] >= 3 && numel < 300)
                return ingot_window(c, x, i, 2, 1 + rnd(2), 1);
        return x;
    case 11: return ingot_where(c, ingot_lt(c, x, ingot_like(c, x, 1)), ingot_mul_c(c, x, 3), x);
    case 12: return ingot_add(c, x, random_data(c, rank, d));
    default: return ingot_max(c, ingot_neg(c, x), x);
    }
}

static void random_graphs(void **state)
{
    for (int round = 0; round < 600; round++) {
        ingot_context *c = ingot_context_new(keep, NULL);
        seed = (uint64_t)round * 77 + 5;
        int64_t d[INGOT_MAX_RANK];
        const int rank = 1 + rnd(3);
        random_dims(rank, d);
        ingot_tensor *x = random_data(c, rank, d);
        for (int k = 0, steps = 2 + rnd(9); k < steps && ingot_rank(x) < 7; k++)
            x = random_step(c, x);
        if (ingot_is_poison(x))
            fail_msg("round %d: %s", round, last_message);
        Interp *ip = interp_new(c);
        int64_t dims[INGOT_MAX_RANK], n = 1;
        const int64_t *r = interp_eval(ip, x, dims);
        assert_non_null(r);
        for (int i = 0; i < ingot_rank(x); i++) {
            assert_int_equal(dims[i], dim(x, i));
            n *= dims[i];
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t y[INGOT_MAX_RANK], rest = i;
            for (int k = ingot_rank(x) - 1; k >= 0; k--) {
                y[k] = rest % dims[k];
                rest /= dims[k];
            }
            const int64_t e = at(x, y);
            if (r[i] != e)
                fail_msg("round %d, element %lld: %lld, not %lld", round, (long long)i,
                         (long long)r[i], (long long)e);
        }
        /* the same, element by element, by contents() */
        if (n <= 64) {
            int64_t v[64];
            int count = 0;
            assert_true(ingot_const_ints(c, x, v, 64, &count));
            assert_int_equal(count, n);
            assert_memory_equal(v, r, (size_t)n * 8);
        }
        interp_free(ip);
        ingot_context_free(c);
    }
    (void)state;
}

/* ---- reduce, update, composition ------------------------------------------------------------------ */

static void reduces(void **state)
{
    ingot_context *c = *state;
    enum { N = 3000 };
    static float f[N];
    static uint16_t h[N];
    static int8_t b[N];
    float sum = 0, hsum = 0, most = -INFINITY;
    double dsum = 0;
    int8_t bsum = 0, bmul = 1;
    for (int i = 0; i < N; i++) {
        f[i] = sinf((float)i) * 3;
        h[i] = igrt_f32_to_f16(f[i]);
        b[i] = (int8_t)(i * 37 % 251);
        sum += f[i];
        hsum += igrt_f16_to_f32(h[i]);
        dsum += (double)f[i];
        most = f[i] > most ? f[i] : most;
        bsum = igrt_add_i8(bsum, b[i]);
        bmul = igrt_mul_i8(bmul, (int8_t)(b[i] | 1));
    }
    ingot_tensor *x = vec(c, INGOT_F32, N, f);
    float r;
    double d;
    uint16_t hr;
    int8_t i8;
    eval(c, ingot_sum(c, x, 1, false), &r, sizeof r);
    assert_true(r == sum);
    eval(c, ingot_reduce(c, INGOT_REDUCE_MAX, x, 1, false), &r, sizeof r);
    assert_true(r == most);
    eval(c, ingot_sum(c, ingot_cast(c, x, INGOT_F64), 1, false), &d, sizeof d);
    assert_true(d == dsum);
    eval(c, ingot_reduce(c, INGOT_REDUCE_ADD, vec(c, INGOT_F16, N, h), 1, false), &hr, sizeof hr);
    assert_int_equal(hr, igrt_f32_to_f16(hsum)); /* accumulated in f32 */
    ingot_tensor *y = vec(c, INGOT_I8, N, b);
    eval(c, ingot_reduce(c, INGOT_REDUCE_ADD, y, 1, false), &i8, sizeof i8);
    assert_int_equal(i8, bsum);
    eval(
        c,
        ingot_reduce(c, INGOT_REDUCE_MUL, ingot_or(c, y, ingot_scalar_i(c, INGOT_I8, 1)), 1, false),
        &i8, sizeof i8);
    assert_int_equal(i8, bmul);

    /* an empty reduction is the identity */
    const int64_t empty[2] = {2, 0};
    ingot_tensor *e = data(c, INGOT_F32, 2, empty, "");
    ingot_tensor *ei = data(c, INGOT_I8, 2, empty, "");
    float two[2];
    int8_t two_i[2];
    eval(c, ingot_reduce(c, INGOT_REDUCE_MUL, e, 2, false), two, sizeof two);
    assert_true(two[0] == 1.0f && two[1] == 1.0f);
    eval(c, ingot_reduce(c, INGOT_REDUCE_MAX, e, 2, false), two, sizeof two);
    assert_true(two[0] == -INFINITY);
    eval(c, ingot_reduce(c, INGOT_REDUCE_MIN, ei, 2, false), two_i, sizeof two_i);
    assert_int_equal(two_i[1], 127);
    eval(c, ingot_reduce(c, INGOT_REDUCE_AND, ei, 2, false), two_i, sizeof two_i);
    assert_int_equal(two_i[1], -1);

    /* NaN wins */
    const float nan[3] = {1, NAN, 2};
    eval(c, ingot_reduce(c, INGOT_REDUCE_MAX, vec(c, INGOT_F32, 3, nan), 1, false), &r, sizeof r);
    assert_true(isnan(r));
    const uint8_t t[4] = {0, 1, 0, 0};
    uint8_t any;
    eval(c, ingot_reduce(c, INGOT_REDUCE_OR, vec(c, INGOT_BOOL, 4, t), 1, false), &any, sizeof any);
    assert_int_equal(any, 1);
    eval(c, ingot_reduce(c, INGOT_REDUCE_AND, vec(c, INGOT_BOOL, 4, t), 1, false), &any,
         sizeof any);
    assert_int_equal(any, 0);
}

static void updates(void **state)
{
    ingot_context *c = *state;
    const float x[6] = {0, 1, 2, 3, 4, 5}, v[5] = {10, 20, 30, 40, 50};
    const int64_t d[2] = {2, 3}, i0[5] = {0, 1, 0, 2, -1}, i1[5] = {1, 2, 1, 0, 0};
    ingot_tensor *t = data(c, INGOT_F32, 2, d, x);
    ingot_tensor *index[2] = {vec(c, INGOT_I64, 5, i0), vec(c, INGOT_I64, 5, i1)};
    float r[6];
    eval(c, ingot_update(c, INGOT_SET, t, vec(c, INGOT_F32, 5, v), index), r, sizeof r);
    const float set[6] = {0, 30, 2, 3, 4, 20}; /* the later one wins, those outside are dropped */
    assert_memory_equal(r, set, sizeof r);
    eval(c, ingot_update(c, INGOT_ADD, t, vec(c, INGOT_F32, 5, v), index), r, sizeof r);
    const float add[6] = {0, 41, 2, 3, 4, 25};
    assert_memory_equal(r, add, sizeof r);
    eval(c, ingot_update(c, INGOT_MIN, t, vec(c, INGOT_F32, 5, v), index), r, sizeof r);
    assert_memory_equal(r, x, sizeof r);
}

static void matmul_conv(void **state)
{
    ingot_context *c = *state;
    enum { M = 37, K = 65, N = 41 };
    static float a[M * K], b[K * N], r[M * N];
    for (int i = 0; i < M * K; i++)
        a[i] = sinf((float)i);
    for (int i = 0; i < K * N; i++)
        b[i] = cosf((float)i);
    eval(c,
         ingot_matmul(c, data(c, INGOT_F32, 2, (int64_t[]){M, K}, a),
                      data(c, INGOT_F32, 2, (int64_t[]){K, N}, b)),
         r, sizeof r);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float s = 0;
            for (int k = 0; k < K; k++) {
                const float p = a[i * K + k] * b[k * N + j];
                s += p;
            }
            assert_true(s == r[i * N + j]);
        }

    /* grouped, strided, dilated convolution, unevenly padded */
    enum { B = 2, C = 6, H = 11, W = 13, G = 2, O = 4, KH = 3, KW = 2, OH = 6, OW = 11 };
    static float x[B * C * H * W], w[O * (C / G) * KH * KW], y[B * O * OH * OW];
    for (int i = 0; i < (int)COUNT(x); i++)
        x[i] = sinf((float)i * 0.7f);
    for (int i = 0; i < (int)COUNT(w); i++)
        w[i] = cosf((float)i * 1.3f);
    const int64_t stride[2] = {2, 1}, dilation[2] = {1, 3}, lo[2] = {1, 0}, hi[2] = {2, 1};
    eval(c,
         ingot_conv(c, data(c, INGOT_F32, 4, (int64_t[]){B, C, H, W}, x),
                    data(c, INGOT_F32, 4, (int64_t[]){O, C / G, KH, KW}, w), NULL, stride, dilation,
                    lo, hi, G),
         y, sizeof y);
    for (int n = 0; n < B; n++)
        for (int o = 0; o < O; o++)
            for (int i = 0; i < OH; i++)
                for (int j = 0; j < OW; j++) {
                    float s = 0;
                    for (int k = 0; k < C / G; k++)
                        for (int u = 0; u < KH; u++)
                            for (int v = 0; v < KW; v++) {
                                const int ch = o / (O / G) * (C / G) + k, p = i * 2 + u - 1,
                                          q = j + v * 3;
                                const bool in = p >= 0 && p < H && q < W;
                                s += (in ? x[((n * C + ch) * H + p) * W + q] : 0) *
                                     w[((o * (C / G) + k) * KH + u) * KW + v];
                            }
                    const float got = y[((n * O + o) * OH + i) * OW + j];
                    if (fabsf(s - got) > 1e-5f)
                        fail_msg("conv [%d %d %d %d] = %g, not %g", n, o, i, j, (double)got,
                                 (double)s);
                }
}

static void softmax_is_right(void **state)
{
    ingot_context *c = *state;
    const float x[6] = {1, 2, 3, -1, 0, 1000};
    float r[6];
    eval(c, ingot_softmax(c, data(c, INGOT_F32, 2, (int64_t[]){2, 3}, x), -1), r, sizeof r);
    for (int i = 0; i < 2; i++) {
        double sum = 0, most = fmax(fmax(x[3 * i], x[3 * i + 1]), x[3 * i + 2]);
        for (int j = 0; j < 3; j++)
            sum += exp((double)x[3 * i + j] - most);
        for (int j = 0; j < 3; j++)
            assert_true(fabs(r[3 * i + j] - exp((double)x[3 * i + j] - most) / sum) < 1e-6);
    }
}

static void deep_chain(void **state)
{
    ingot_context *c = *state;
    const int64_t one[2] = {1, 2};
    ingot_tensor *x = vec(c, INGOT_I64, 2, one), *y = x;
    for (int i = 0; i < 50000; i++)
        y = ingot_add(c, ingot_flip(c, y, 1), x);
    int64_t r[2], v[2];
    eval(c, y, r, sizeof r);
    assert_int_equal(r[0], 1 + 25000 * 3);
    assert_int_equal(r[1], 2 + 25000 * 3);
    int n;
    assert_true(ingot_const_ints(c, y, v, 2, &n));
    assert_memory_equal(v, r, sizeof r);
}

/* ---- control flow and run-time dims ----------------------------------------------------------------- */

static ingot_value value(ingot_dtype t, const void *p, int rank, int64_t d0, int64_t d1)
{
    return (ingot_value){.data = p, .dtype = t, .rank = rank, .dims = {d0, d1}};
}

static void run_time_dims(void **state)
{
    ingot_context *c = *state;
    ingot_dim *n = ingot_dim_var(c, "n", 1, 100);
    ingot_dim *d[2] = {n, ingot_dim_const(c, 2)},
              *e[1] = {ingot_dim_mul(c, n, ingot_dim_const(c, 2))};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, d),
                 *y = ingot_input(c, "y", INGOT_F32, 1, e);
    ingot_output(c, "sum", ingot_add(c, ingot_reshape(c, x, 1, e), y));
    ingot_output(c, "rows", ingot_from_dim(c, n));
    const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {10, 20, 30, 40, 50, 60};
    ingot_value in[2] = {value(INGOT_F32, a, 2, 3, 2), value(INGOT_F32, b, 1, 6, 0)}, out[2];
    assert_int_equal(ingot_interpret(c, 2, in, 2, out), INGOT_OK);
    assert_int_equal(out[0].rank, 1);
    assert_int_equal(out[0].dims[0], 6);
    for (int i = 0; i < 6; i++)
        assert_true(((const float *)out[0].data)[i] == a[i] + b[i]);
    assert_int_equal(*(const int64_t *)out[1].data, 3);
    in[1].dims[0] = 5;
    assert_int_equal(ingot_interpret(c, 2, in, 2, out), INGOT_USAGE);
    assert_string_equal(last_message, "input 'y': dim 0 is 5; it must be 6");
}

/* (a, b) = (b, a + b), stacking a; the condition may end it early. */
static void loop(ingot_context *c, ingot_dim *trip, int64_t limit, ingot_tensor *out[3])
{
    ingot_tensor *start[2] = {ingot_scalar_i(c, INGOT_I64, 0), ingot_scalar_i(c, INGOT_I64, 1)};
    ingot_region *r = ingot_region_begin(c);
    ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *cond = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *a = ingot_region_param_like(c, r, start[0]),
                 *b = ingot_region_param_like(c, r, start[1]);
    ingot_tensor *next = ingot_add(c, a, b);
    if (limit)
        cond = ingot_lt(c, next, ingot_scalar_i(c, INGOT_I64, limit));
    ingot_tensor *results[4] = {cond, b, next, a};
    ingot_region_end(c, r, 4, results);
    ingot_loop(c, trip, NULL, 2, start, r, 1, out);
}

static void loops(void **state)
{
    ingot_context *c = *state;
    ingot_tensor *out[3];
    int64_t v, stack[10];
    loop(c, ingot_dim_const(c, 10), 0, out);
    eval(c, out[0], &v, sizeof v);
    assert_int_equal(v, 55);
    eval(c, out[2], stack, sizeof stack);
    const int64_t fib[10] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34};
    assert_memory_equal(stack, fib, sizeof fib);

    /* ends early: the number of iterations is a run-time integer */
    loop(c, ingot_dim_const(c, 10), 10, out);
    eval(c, ingot_sum(c, out[2], 1, false), &v, sizeof v);
    assert_int_equal(v, 0 + 1 + 1 + 2 + 3 + 5);
    eval(c, ingot_from_dim(c, ingot_shape(out[2], 0)), &v, sizeof v);
    assert_int_equal(v, 6);

    /* none at all */
    ingot_dim *n = ingot_dim_var(c, "trips", 0, 5);
    loop(c, n, 0, out);
    Interp *ip = interp_new(c);
    interp_set_var(ip, (int)n->arg.i, 0);
    int64_t dims[INGOT_MAX_RANK];
    assert_non_null(interp_eval(ip, out[2], dims));
    assert_int_equal(dims[0], 0);
    assert_int_equal(*(const int64_t *)interp_eval(ip, out[1], NULL), 1);
    interp_free(ip);
}

/* sum over i < 3, j < 4 of (w . w) * (10 i + j): a nest, an invariant, a captured value */
static void nested_loops(void **state)
{
    ingot_context *c = *state;
    static float big[5000];
    double ww = 0;
    for (int i = 0; i < 5000; i++) {
        big[i] = (float)(i % 7);
        ww += (double)big[i] * (double)big[i];
    }
    ingot_tensor *w = vec(c, INGOT_F32, 5000, big), *zero = ingot_scalar_f(c, INGOT_F32, 0),
                 *out[1], *inner[1];
    ingot_region *r = ingot_region_begin(c);
    ingot_tensor *i = ingot_region_param(c, r, INGOT_I64, 0, NULL),
                 *ci = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *s = ingot_region_param_like(c, r, zero);
    ingot_region *q = ingot_region_begin(c);
    ingot_tensor *j = ingot_region_param(c, q, INGOT_I64, 0, NULL),
                 *cj = ingot_region_param(c, q, INGOT_BOOL, 0, NULL);
    ingot_tensor *t = ingot_region_param_like(c, q, zero);
    ingot_tensor *norm = ingot_sum(c, ingot_mul(c, w, w), 1, false);
    ingot_tensor *k = ingot_cast(c, ingot_add(c, ingot_mul_c(c, i, 10), j), INGOT_F32);
    ingot_tensor *rq[2] = {cj, ingot_add(c, t, ingot_mul(c, norm, k))};
    ingot_region_end(c, q, 2, rq);
    ingot_loop(c, ingot_dim_const(c, 4), NULL, 1, &s, q, 0, inner);
    ingot_tensor *rr[2] = {ci, inner[0]};
    ingot_region_end(c, r, 2, rr);
    ingot_loop(c, ingot_dim_const(c, 3), NULL, 1, &zero, r, 0, out);
    float v;
    eval(c, out[0], &v, sizeof v);
    assert_true(v == (float)(ww * (10 * (0 + 1 + 2) * 4 + (0 + 1 + 2 + 3) * 3)));
}

static void branches(void **state)
{
    ingot_context *c = *state;
    ingot_dim *d[1] = {ingot_dim_const(c, 2)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 1, d), *y, *res;
    ingot_tensor *cond = ingot_lt(c, ingot_sum(c, x, 1, false), ingot_scalar_f(c, INGOT_F32, 0));
    ingot_region *a = ingot_region_begin(c);
    res = ingot_neg(c, x);
    ingot_region_end(c, a, 1, &res);
    ingot_region *b = ingot_region_begin(c);
    res = ingot_mul_c(c, x, 2);
    ingot_region_end(c, b, 1, &res);
    ingot_if(c, cond, a, b, 1, &y);
    ingot_output(c, "y", ingot_add(c, y, x));
    const float in[2][2] = {{1, 2}, {-1, -2}}, want[2][2] = {{3, 6}, {0, 0}};
    for (int k = 0; k < 2; k++) {
        ingot_value iv = value(INGOT_F32, in[k], 1, 2, 0), ov;
        assert_int_equal(ingot_interpret(c, 1, &iv, 1, &ov), INGOT_OK);
        assert_memory_equal(ov.data, want[k], sizeof want[k]);
    }
}

/* A shape that a library kernel decides; a value of that shape which does not depend on the
 * kernel's outputs; the count inside a loop. */
static void counts(void **state)
{
    ingot_context *c = *state;
    ingot_dim *d[1] = {ingot_dim_const(c, 6)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 1, d);
    ingot_tensor *at_x = ingot_nonzero(c, x); /* [1, n] */
    ingot_dim *n = ingot_shape(at_x, 1);
    ingot_output(c, "count", ingot_sum(c, ingot_add_c(c, ingot_iota(c, 1, &n, 0), 1), 1, false));
    ingot_output(c, "where", ingot_mul_c(c, at_x, 10));
    const float in[6] = {0, 1, 0, 5, -2, 0};
    ingot_value iv = value(INGOT_F32, in, 1, 6, 0), ov[2];
    assert_int_equal(ingot_interpret(c, 1, &iv, 2, ov), INGOT_OK);
    assert_int_equal(*(const int64_t *)ov[0].data, 1 + 2 + 3);
    assert_int_equal(ov[1].dims[1], 3);
    const int64_t want[3] = {10, 30, 40};
    assert_memory_equal(ov[1].data, want, sizeof want);

    ingot_tensor *zero = ingot_scalar_i(c, INGOT_I64, 0), *out;
    ingot_region *r = ingot_region_begin(c);
    ingot_tensor *i = ingot_region_param(c, r, INGOT_I64, 0, NULL),
                 *cond = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *s = ingot_region_param_like(c, r, zero);
    ingot_tensor *some = ingot_lt(c, ingot_iota(c, 1, d, 0), i); /* i of them are true */
    ingot_tensor *found = ingot_nonzero(c, some);
    ingot_tensor *res[2] = {cond, ingot_add(c, s, ingot_from_dim(c, ingot_shape(found, 1)))};
    ingot_region_end(c, r, 2, res);
    ingot_loop(c, ingot_dim_const(c, 5), NULL, 1, &zero, r, 0, &out);
    int64_t v;
    eval(c, out, &v, sizeof v);
    assert_int_equal(v, 0 + 1 + 2 + 3 + 4);
}

/* ---- contents ---------------------------------------------------------------------------------------- */

static void contents(void **state)
{
    ingot_context *c = *state;
    ingot_dim *n = ingot_dim_var(c, "batch", 1, 64);
    ingot_dim *d[3] = {n, ingot_dim_const(c, 12), ingot_dim_const(c, 5)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 3, d);
    ingot_tensor *shape = ingot_from_dims(c, 3, d);
    ingot_dim *out[8];

    assert_int_equal(ingot_contents(c, shape, out, 8), 3);
    assert_true(out[0] == n && ingot_dim_is_const(out[1], NULL));
    /* concat(shape[0] * 4, -1, shape[1] / 4) through take, stack and casts */
    const int64_t zero = 0, minus = -1;
    ingot_tensor *first = ingot_take(c, shape, vec(c, INGOT_I64, 1, &zero), 0);
    ingot_tensor *last = ingot_take(c, shape, vec(c, INGOT_I64, 1, &minus), 0);
    ingot_tensor *parts[3] = {
        ingot_mul_c(c, ingot_cast(c, first, INGOT_I32), 4), vec(c, INGOT_I32, 1, (int32_t[]){-1}),
        ingot_div(c, ingot_cast(c, last, INGOT_I32), ingot_scalar_i(c, INGOT_I32, 2))};
    ingot_tensor *cat = ingot_cast(c, ingot_concat(c, 3, parts, 0), INGOT_I64);
    assert_int_equal(ingot_contents(c, cat, out, 8), 3);
    assert_true(ingot_dim_equal(out[0], ingot_dim_mul(c, n, ingot_dim_const(c, 4))));
    int64_t v = 0;
    assert_true(ingot_dim_is_const(out[1], &v) && v == -1);
    assert_true(ingot_dim_is_const(out[2], &v) && v == 2);
    assert_int_equal(ingot_contents(c, cat, out, 2), -1);
    /* product of all, comparison as 0 or 1 */
    assert_int_equal(ingot_contents(c, ingot_reduce(c, INGOT_REDUCE_MUL, shape, 1, false), out, 1),
                     1);
    assert_true(ingot_dim_equal(out[0], ingot_numel(c, x)));
    ingot_tensor *less = ingot_lt(c, shape, ingot_scalar_i(c, INGOT_I64, 100));
    assert_int_equal(ingot_contents(c, less, out, 8), 3);
    assert_true(ingot_dim_is_const(out[0], &v) && v == 1);
    ingot_tensor *where = ingot_where(c, ingot_eq(c, shape, ingot_scalar_i(c, INGOT_I64, 12)),
                                      ingot_neg(c, shape), shape);
    assert_int_equal(ingot_contents(c, where, out, 8), 3);
    assert_true(ingot_dim_is_const(out[1], &v) && v == -12);
    /* what Resize is given: floor(float(shape) * scale), where the dims are constant */
    const float scale[2] = {2.5f, 0.4f};
    ingot_tensor *hw = ingot_from_dims(c, 2, d + 1);
    ingot_tensor *size = ingot_cast(
        c, ingot_floor(c, ingot_mul(c, ingot_cast(c, hw, INGOT_F32), vec(c, INGOT_F32, 2, scale))),
        INGOT_I64);
    int64_t ints[4];
    int count;
    assert_true(ingot_const_ints(c, size, ints, 4, &count));
    assert_true(count == 2 && ints[0] == 30 && ints[1] == 2);
    double f;
    assert_true(ingot_const_float(c, ingot_exp(c, ingot_scalar_f(c, INGOT_F32, 1)), &f));
    assert_true(f == (double)expf(1));
    /* scatter into a shape */
    ingot_tensor *at0[1] = {vec(c, INGOT_I64, 1, &zero)};
    ingot_tensor *scattered = ingot_update(c, INGOT_SET, shape, last, at0);
    assert_int_equal(ingot_contents(c, scattered, out, 8), 3);
    assert_true(ingot_dim_is_const(out[0], &v) && v == 5);
    /* data */
    assert_int_equal(ingot_contents(c, ingot_cast(c, ingot_sum(c, x, 7, false), INGOT_I64), out, 8),
                     -1);
    assert_false(ingot_const_ints(c, shape, ints, 4, &count));
    assert_false(ingot_is_const(shape));
    assert_true(ingot_is_const(size));
    float data_out[2];
    assert_true(ingot_const_data(c, ingot_mul_c(c, vec(c, INGOT_F32, 2, scale), 2), data_out,
                                 sizeof data_out));
    assert_true(data_out[0] == 5.0f && data_out[1] == 0.8f);
}

static void unbound(void **state)
{
    ingot_context *c = *state;
    ingot_dim *d[1] = {ingot_dim_const(c, 2)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 1, d);
    Interp *ip = interp_new(c);
    assert_null(interp_eval(ip, ingot_neg(c, x), NULL));
    assert_string_equal(last_message, "interpreter: input x has no value");
    const float v[2] = {1, 2};
    interp_bind(ip, x, v);
    const float *r = interp_eval(ip, ingot_neg(c, x), NULL);
    assert_true(r && r[1] == -2);
    interp_free(ip);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(unary_f32),        TEST(binary_floats), TEST(integers),      TEST(casts),
        TEST(random_graphs),    TEST(reduces),       TEST(updates),       TEST(matmul_conv),
        TEST(softmax_is_right), TEST(deep_chain),    TEST(run_time_dims), TEST(loops),
        TEST(nested_loops),     TEST(branches),      TEST(counts),        TEST(contents),
        TEST(unbound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
