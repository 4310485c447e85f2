/* one_shift_test.c - bytes by one multiplication and one shift are those of the roundings whose
 * place these take: of every sum where they step, beside arithmetic of 64 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/compiler.h"
#include "compiler/ingot_ops.h"
#include "compiler/kernel/target.h"

enum { CHANNELS = 3, NEAR = 4, STEPS = 256, COUNT = STEPS * NEAR + 32, GRAPHS = 240 };

/* Bytes of a sum of high * scale + low: a bias, a multiplier and a shift by channel, a zero; or its
 * mean of so many. */
typedef struct {
    int32_t bias[CHANNELS], m[CHANNELS], shift[CHANNELS], zero, lo, hi, scale, count;
    bool wide, sign; /* rounded once, in 64 bits; bytes have a sign */
} Bytes;

static uint64_t drawn_bits;

static int64_t drawn(int64_t lo, int64_t hi)
{
    drawn_bits = drawn_bits * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((drawn_bits >> 33) % (uint64_t)(hi - lo + 1));
}

static int64_t largest_sum(const Bytes *b)
{
    return (int64_t)b->scale * -INT16_MIN - INT16_MIN;
}

static int64_t byte_of(const Bytes *b, int channel, int64_t x)
{
    const int shift = b->shift[channel];
    x += b->count ? 0 : b->bias[channel];
    if (b->count) {
        x = (x > 0 ? x + b->count / 2 : x - b->count / 2) / b->count;
    } else if (b->wide) {
        const int64_t y = x * b->m[channel];
        x = (y - (y < 0) + ((int64_t)1 << (30 + shift))) >> (31 + shift);
    } else {
        x = (x * b->m[channel] + ((int64_t)1 << 30)) >> 31;
        const int64_t half = shift ? (int64_t)1 << (shift - 1) : 0;
        x = x < 0 ? -((-x + half) >> shift) : (x + half) >> shift;
    }
    x += b->zero;
    return x < b->lo ? b->lo : x > b->hi ? b->hi : x;
}

static Node *by_channel(Context *c, const int32_t *v)
{
    return ingot_data(c, NULL, INGOT_I32, 2, (int64_t[]){1, CHANNELS}, v);
}

static Node *rounded_wide(Context *c, const Bytes *b, Node *x)
{
    int64_t *half = ingot_alloc(c, CHANNELS * sizeof *half);
    int64_t *by = ingot_alloc(c, CHANNELS * sizeof *by);
    for (int i = 0; i < CHANNELS; i++) {
        by[i] = 31 + b->shift[i];
        half[i] = (int64_t)1 << (by[i] - 1);
    }
    x = ingot_mul(c, ingot_cast(c, x, INGOT_I64), ingot_cast(c, by_channel(c, b->m), INGOT_I64));
    x = ingot_add(c, x, ingot_shr(c, x, ingot_scalar_i(c, INGOT_I64, 63)));
    x = ingot_add(c, x, ingot_data(c, NULL, INGOT_I64, 2, (int64_t[]){1, CHANNELS}, half));
    x = ingot_shr(c, x, ingot_data(c, NULL, INGOT_I64, 2, (int64_t[]){1, CHANNELS}, by));
    return ingot_cast(c, x, INGOT_I32);
}

/* Halves go away from zero. */
static Node *mean(Context *c, const Bytes *b, Node *x)
{
    Node *half = ingot_scalar_i(c, INGOT_I32, b->count / 2),
         *above = ingot_lt(c, ingot_scalar_i(c, INGOT_I32, 0), x);
    x = ingot_where(c, above, ingot_add(c, x, half), ingot_sub(c, x, half));
    return ingot_div(c, x, ingot_scalar_i(c, INGOT_I32, b->count));
}

static void build(Context *c, const Bytes *b)
{
    ingot_dim *dims[] = {ingot_dim_const(c, COUNT), ingot_dim_const(c, CHANNELS)};
    Node *high = ingot_cast(c, ingot_input(c, "high", INGOT_I16, 2, dims), INGOT_I32);
    Node *x = ingot_cast(c, ingot_input(c, "low", INGOT_I16, 2, dims), INGOT_I32);
    if (b->scale)
        x = ingot_add(c, ingot_mul(c, high, ingot_scalar_i(c, INGOT_I32, b->scale)), x);
    x = b->count ? mean(c, b, x) : ingot_add(c, x, by_channel(c, b->bias));
    if (b->wide && !b->count)
        x = rounded_wide(c, b, x);
    else if (!b->count)
        x = ingot_shrr(c, ingot_mulhi(c, x, by_channel(c, b->m)), by_channel(c, b->shift));
    x = ingot_add(c, x, ingot_scalar_i(c, INGOT_I32, b->zero));
    x = ingot_max(c, x, ingot_scalar_i(c, INGOT_I32, b->lo));
    x = ingot_min(c, x, ingot_scalar_i(c, INGOT_I32, b->hi));
    ingot_output(c, "y", ingot_cast(c, x, b->sign ? INGOT_I8 : INGOT_U8));
}

/* Sums around each step, at the ends, and drawn ones. */
static int sums_of(const Bytes *b, int channel, int64_t *sum)
{
    const int64_t most = largest_sum(b);
    int n = 0;
    for (int64_t y = b->lo + 1; y <= b->hi; y++) {
        int64_t lo = -most - 1, hi = most + 1; /* below y at lo; not at hi */
        while (hi - lo > 1) {
            const int64_t middle = lo + (hi - lo) / 2;
            *(byte_of(b, channel, middle) < y ? &lo : &hi) = middle;
        }
        for (int64_t i = 0; i < NEAR; i++)
            sum[n++] = hi + i - NEAR / 2;
    }
    for (; n < COUNT; n++)
        sum[n] = n % 4 ? drawn(-most, most) : n % 8 ? most : -most;
    return n;
}

static Bytes drawn_bytes(void)
{
    static const int32_t scales[] = {0, 200, 4096, 15000};
    Bytes b = {.scale = scales[drawn(0, 3)], .wide = drawn(0, 2) == 0, .sign = drawn(0, 2) > 0};
    const int64_t least = b.sign ? INT8_MIN : 0, most = b.sign ? INT8_MAX : UINT8_MAX;
    b.zero = (int32_t)drawn(least, most);
    b.lo = (int32_t)(drawn(0, 3) ? b.zero : least); /* a ReLU, or none */
    b.hi = (int32_t)(drawn(0, 3) ? most : drawn(b.lo, most));
    for (int i = 0; i < CHANNELS; i++) {
        int wide = 0;
        for (int64_t reach = largest_sum(&b); reach; reach /= 2)
            wide++;
        b.m[i] = (int32_t)drawn(1 << 30, INT32_MAX);
        b.shift[i] = (int32_t)drawn(wide > 12 ? wide - 12 : 0, wide - 6);
        b.bias[i] = (int32_t)drawn(-largest_sum(&b) / 4, largest_sum(&b) / 4);
    }
    if (drawn(0, 3) == 0)
        b.count = (int32_t)drawn(largest_sum(&b) / 200, largest_sum(&b) / 100);
    return b;
}

/* Are the bytes of one shift now? */
static bool is_one_shift(const Node *n)
{
    while (n->nsrc && n->op != OP_SHR)
        n = n->src[0];
    return n->op == OP_SHR && n->dtype == INGOT_I32 && n->src[0]->op == OP_MULHI;
}

static void test_bytes(void **state)
{
    (void)state;
    static int64_t sum[CHANNELS][COUNT];
    static int16_t high[COUNT * CHANNELS], low[COUNT * CHANNELS];
    const Target t = {.machine.registers = 9};
    int changed = 0, means = 0;
    for (int graph = 0; graph < GRAPHS; graph++) {
        drawn_bits = (uint64_t)graph * 0x9e3779b97f4a7c15u;
        const Bytes b = drawn_bytes();
        for (int i = 0; i < CHANNELS; i++) {
            (void)sums_of(&b, i, sum[i]);
            for (int j = 0; j < COUNT; j++) {
                int64_t s = sum[i][j], most = largest_sum(&b);
                s = s > most - 1 ? most - 1 : s < -most ? -most : s;
                int64_t h = b.scale ? s / b.scale : 0;
                h = h > INT16_MAX ? INT16_MAX : h < INT16_MIN ? INT16_MIN : h;
                s = s - h * b.scale > INT16_MAX ? h * b.scale + INT16_MAX : s;
                high[j * CHANNELS + i] = (int16_t)h;
                low[j * CHANNELS + i] = (int16_t)(s - h * b.scale);
                sum[i][j] = s;
            }
        }
        Context *c = ingot_context_new(NULL, NULL);
        build(c, &b);
        (void)graph_rewrite(c, &t, NULL);
        const bool one = is_one_shift(c->outputs[0].node);
        changed += one && !b.count;
        means += one && b.count;
        const ingot_value in[] = {
            {.dtype = INGOT_I16, .rank = 2, .dims = {COUNT, CHANNELS}, .data = high},
            {.dtype = INGOT_I16, .rank = 2, .dims = {COUNT, CHANNELS}, .data = low}};
        ingot_value out;
        assert_int_equal(ingot_interpret(c, 2, in, 1, &out), INGOT_OK);
        for (int i = 0; i < COUNT * CHANNELS; i++) {
            const int64_t got =
                b.sign ? ((const int8_t *)out.data)[i] : ((const uint8_t *)out.data)[i];
            const int64_t want = byte_of(&b, i % CHANNELS, sum[i % CHANNELS][i / CHANNELS]);
            if (got != want)
                fail_msg("graph %d, sum %lld: %lld is %lld", graph,
                         (long long)sum[i % CHANNELS][i / CHANNELS], (long long)want,
                         (long long)got);
        }
        ingot_context_free(c);
    }
    assert_true(changed > GRAPHS / 5); /* those with a ReLU */
    assert_true(means > GRAPHS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
