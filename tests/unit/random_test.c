/* random_test.c - random numbers: the builder's Threefry against a plain one, which is held to the
 * vectors of its authors, and the interpreter's numbers of the first run. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/compiler.h"

typedef struct {
    uint32_t w[2];
} Words;

static Words threefry(Words key, Words x)
{
    static const int by[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    const uint32_t k[3] = {key.w[0], key.w[1], key.w[0] ^ key.w[1] ^ 0x1bd11bda};
    for (int i = 0; i < 2; i++)
        x.w[i] += k[i];
    for (int r = 0; r < 20; r++) {
        x.w[0] += x.w[1];
        x.w[1] = (x.w[1] << by[r % 8] | x.w[1] >> (32 - by[r % 8])) ^ x.w[0];
        if (r % 4 == 3) {
            const uint32_t s = (uint32_t)r / 4 + 1;
            x.w[0] += k[s % 3];
            x.w[1] += k[(s + 1) % 3] + s;
        }
    }
    return x;
}

/* Random123's kat_vectors, "threefry2x32 20" */
static void known_answers(void **state)
{
    (void)state;
    static const uint32_t v[][6] = {
        {0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xc4923a9c, 0x483df7a0},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        const Words y = threefry((Words){{v[i][2], v[i][3]}}, (Words){{v[i][0], v[i][1]}});
        assert_int_equal(y.w[0], v[i][4]);
        assert_int_equal(y.w[1], v[i][5]);
    }
}

enum { N = 20000 };

/* Evaluates x of N elements, in the first run. */
static void eval(ingot_context *c, ingot_tensor *x, void *out, size_t bytes)
{
    int64_t dims[INGOT_MAX_RANK];
    Interp *ip = interp_new(c);
    const void *p = interp_eval(ip, x, dims);
    assert_non_null(p);
    assert_true(dims[0] * dims[1] == N);
    memcpy(out, p, bytes);
    interp_free(ip);
}

static Words bits(uint64_t seed, uint32_t operator, uint32_t i)
{
    const Words key = threefry((Words){{(uint32_t)seed, (uint32_t)(seed >> 32)}}, (Words){{0, operator}});
    return threefry(key, (Words){{i, 0}});
}

static void uniform_numbers(void **state)
{
    (void)state;
    ingot_context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dims[2] = {ingot_dim_const(c, 200), ingot_dim_const(c, N / 200)};
    static float f[3][N];
    static double d[N];
    const uint64_t seed = UINT64_C(0x123456789abcdef0);
    eval(c, ingot_random_uniform(c, INGOT_F32, 2, dims, &seed), f[0], sizeof f[0]);
    eval(c, ingot_random_uniform(c, INGOT_F32, 2, dims, NULL), f[1], sizeof f[1]);
    eval(c, ingot_random_uniform(c, INGOT_F32, 2, dims, NULL), f[2], sizeof f[2]);
    eval(c, ingot_random_uniform(c, INGOT_F64, 2, dims, &seed), d, sizeof d);
    for (uint32_t i = 0; i < N; i++) {
        const Words b = bits(seed, 0, i);
        assert_true(f[0][i] == (float)(b.w[0] >> 8) / 16777216.0f);
        assert_true(d[i] ==
                    (double)b.w[0] / 4294967296.0 + (double)(b.w[1] >> 11) / 9007199254740992.0);
        for (uint32_t k = 1; k < 3; k++)
            assert_true(f[k][i] == (float)(bits(0, k, i).w[0] >> 8) / 16777216.0f);
    }
    ingot_context_free(c);
}

static void normal_numbers(void **state)
{
    (void)state;
    ingot_context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dims[2] = {ingot_dim_const(c, 200), ingot_dim_const(c, N / 200)};
    static float z[N];
    double moment[5] = {0};
    const uint64_t seed = 7;
    eval(c, ingot_random_normal(c, INGOT_F32, 2, dims, &seed), z, sizeof z);
    for (int i = 0; i < N; i++)
        for (int k = 1; k < 5; k++)
            moment[k] += pow((double)z[i], k) / N;
    assert_true(fabs(moment[1]) < 0.03 && fabs(moment[2] - 1) < 0.04);
    assert_true(fabs(moment[3]) < 0.08 && fabs(moment[4] - 3) < 0.2);
    ingot_context_free(c);
}

/* Each iteration of a loop draws others. */
static void in_a_loop(void **state)
{
    (void)state;
    ingot_context *c = ingot_context_new(NULL, NULL);
    ingot_dim *many = ingot_dim_const(c, N / 200), *trip = ingot_dim_const(c, 200);
    ingot_region *r = ingot_region_begin(c);
    ingot_region_param(c, r, INGOT_I64, 0, NULL);
    ingot_tensor *cond = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *results[2] = {cond, ingot_random_uniform(c, INGOT_F32, 1, &many, NULL)}, *out;
    ingot_region_end(c, r, 2, results);
    ingot_loop(c, trip, NULL, 0, NULL, r, 1, &out);
    static float f[N];
    eval(c, out, f, sizeof f);
    for (uint32_t i = 0; i < 200; i++) {
        const Words key = threefry(threefry((Words){{0, 0}}, (Words){{0, 1}}), (Words){{i, 0}});
        for (uint32_t k = 0; k < N / 200; k++)
            assert_true(f[i * (N / 200) + k] ==
                        (float)(threefry(key, (Words){{k, 0}}).w[0] >> 8) / 16777216.0f);
    }
    ingot_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers), cmocka_unit_test(uniform_numbers),
        cmocka_unit_test(normal_numbers), cmocka_unit_test(in_a_loop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
