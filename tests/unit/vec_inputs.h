/* vec_inputs.h - what tests of lanes are given, and when two floats are the same. Included by
 * vec_test.c. */
#ifndef VEC_INPUTS_H
#define VEC_INPUTS_H

static const float special[] = {
    0.0f,        -0.0f,      1.0f,         -1.0f,          0.5f,          -0.5f,
    1.5f,        -1.5f,      2.5f,         -2.5f,          INFINITY,      -INFINITY,
    NAN,         -NAN,       1e-45f,       -1e-45f,        1e-39f,        8388607.5f,
    8388609.f,   -4194305.f, 2147483520.f, 2147483648.f,   -2147483648.f, -3e9f,
    1e30f,       3.4e38f,    65519.99f,    65520.f,        88.7228394f,   -103.97f,
    0.99999994f, 1e4f,       10001.0f,     1.17549435e-38f};
enum { SPECIAL = sizeof special / sizeof *special };

static uint32_t seed = 1;

static uint32_t next(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed ^ seed >> 15;
}

/* Special values, any bits, and numbers of ordinary size, in turn. */
static float any(void)
{
    const uint32_t r = next();
    if (r % 3 == 0)
        return special[next() % SPECIAL];
    return r % 3 == 1 ? igrt_bits_f32(next()) : (float)(int32_t)next() * 0x1p-28f;
}

/* The same bits, or both NaN: payloads are not specified. */
static void same(const char *what, float got, float want, float x, float y)
{
    if (igrt_f32_bits(got) != igrt_f32_bits(want) && !(got != got && want != want))
        fail_msg("%s(%.9g, %.9g) is %.9g, want %.9g", what, (double)x, (double)y, (double)got,
                 (double)want);
}

#endif
