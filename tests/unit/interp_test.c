/* interp_test.c - the reference interpreter against formulas written out here: each class of op,
 * each dtype. */
#include "interp_test.h"

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
        int8_t i8[N], least[N];
        int32_t i32[N];
        int64_t i64[N];
        uint64_t u64[N];
        uint8_t b[N], e4[N], e5[N], f4[N];
        uint16_t h[N], bf[N];
        eval(c, ingot_cast_least(c, src[s], INGOT_I8), least, sizeof least);
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
            assert_int_equal(least[i], x[i] == x[i] ? i8[i] : INT8_MIN);
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

/* ---- reduce, update, composition ------------------------------------------------------------- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unary_f32),   TEST(binary_floats),    TEST(integers),
        TEST(casts),       TEST(reduces),          TEST(updates),
        TEST(matmul_conv), TEST(softmax_is_right), TEST(deep_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
