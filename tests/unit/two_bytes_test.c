/* two_bytes_test.c - bytes by one sum of products and one shift are those of the roundings whose
 * place these take: of every pair of bytes, beside arithmetic of 64 bits. */
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

enum { VALUES = 256, GRAPHS = 60, LEFT = 20 };

/* A byte: its zero point, its multiplier and right shift. */
typedef struct {
    int32_t zero, m, shift;
} Scale;

/* x + y or x - y of bytes with scales of their own, or a change of scale of x. */
typedef struct {
    Scale x, y, sum;
    int32_t lo, hi;
    bool sign, minus, alone;
} Added;

static uint64_t drawn_bits;

static int32_t drawn(int64_t lo, int64_t hi)
{
    drawn_bits = drawn_bits * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)(lo + (int64_t)((drawn_bits >> 33) % (uint64_t)(hi - lo + 1)));
}

static int64_t scaled(int64_t x, const Scale *s)
{
    x = (x * s->m + ((int64_t)1 << 30)) >> 31;
    const int64_t half = s->shift ? (int64_t)1 << (s->shift - 1) : 0;
    return x < 0 ? -((-x + half) >> s->shift) : (x + half) >> s->shift;
}

static int64_t byte_of(const Added *a, int64_t x, int64_t y)
{
    x = scaled((x - a->x.zero) * (1 << LEFT), &a->x);
    y = scaled((y - a->y.zero) * (1 << LEFT), &a->y);
    const int64_t r = scaled(a->alone ? x : a->minus ? x - y : x + y, &a->sum) + a->sum.zero;
    return r < a->lo ? a->lo : r > a->hi ? a->hi : r;
}

static Node *number(Context *c, int64_t k)
{
    return ingot_scalar_i(c, INGOT_I32, k);
}

static Node *scaled_node(Context *c, Node *x, const Scale *s)
{
    x = ingot_mulhi(c, x, number(c, s->m));
    return s->shift ? ingot_shrr(c, x, number(c, s->shift)) : x;
}

static Node *operand(Context *c, const char *name, const Added *a, const Scale *s)
{
    ingot_dim *dims[] = {ingot_dim_const(c, VALUES * VALUES)};
    Node *x = ingot_input(c, name, a->sign ? INGOT_I8 : INGOT_U8, 1, dims);
    x = ingot_add(c, ingot_cast(c, x, INGOT_I32), number(c, -s->zero));
    return scaled_node(c, ingot_shl(c, x, number(c, LEFT)), s);
}

static void build(Context *c, const Added *a)
{
    Node *x = operand(c, "x", a, &a->x), *y = operand(c, "y", a, &a->y);
    x = a->alone ? x : a->minus ? ingot_sub(c, x, y) : ingot_add(c, x, y);
    x = ingot_add(c, scaled_node(c, x, &a->sum), number(c, a->sum.zero));
    x = ingot_min(c, ingot_max(c, x, number(c, a->lo)), number(c, a->hi));
    ingot_output(c, "r", ingot_cast(c, x, a->sign ? INGOT_I8 : INGOT_U8));
}

static Added drawn_sum(int graph)
{
    Added a = {.sign = drawn(0, 2) > 0, .minus = drawn(0, 3) == 0, .alone = drawn(0, 4) == 0};
    const int32_t least = a.sign ? INT8_MIN : 0, most = a.sign ? INT8_MAX : UINT8_MAX;
    Scale *all[] = {&a.x, &a.y, &a.sum};
    for (int i = 0; i < 3; i++) {
        /* every eighth has scales that make halves */
        all[i]->zero = drawn(least, most);
        all[i]->m = graph % 8 ? drawn(1 << 30, INT32_MAX) : 1 << 30;
        all[i]->shift = drawn(0, 3);
    }
    a.sum.shift = LEFT - 4 + drawn(0, 3);
    a.lo = drawn(0, 3) ? least : a.sum.zero;
    a.hi = drawn(0, 3) ? most : drawn(a.lo, most);
    return a;
}

/* Is something left that rounds? */
static bool rounds(const Node *n)
{
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (rounds(n->src[i]))
            return true;
    return n->op == OP_MULHI || n->op == OP_SHRR;
}

static void test_bytes(void **state)
{
    (void)state;
    static uint8_t x[VALUES * VALUES], y[VALUES * VALUES];
    const Target t = {.machine.registers = 9};
    int changed = 0;
    for (int i = 0; i < VALUES * VALUES; i++) {
        x[i] = (uint8_t)(i / VALUES);
        y[i] = (uint8_t)(i % VALUES);
    }
    for (int graph = 0; graph < GRAPHS; graph++) {
        drawn_bits = (uint64_t)graph * 0x9e3779b97f4a7c15u;
        const Added a = drawn_sum(graph);
        Context *c = ingot_context_new(NULL, NULL);
        build(c, &a);
        (void)graph_rewrite(c, &t, NULL);
        changed += !rounds(c->outputs[0].node);
        const ingot_dtype d = a.sign ? INGOT_I8 : INGOT_U8;
        const ingot_value in[] = {{.dtype = d, .rank = 1, .dims = {VALUES * VALUES}, .data = x},
                                  {.dtype = d, .rank = 1, .dims = {VALUES * VALUES}, .data = y}};
        ingot_value out;
        assert_int_equal(ingot_interpret(c, 2, in, 1, &out), INGOT_OK);
        for (int i = 0; i < VALUES * VALUES; i++) {
            const int64_t got =
                a.sign ? ((const int8_t *)out.data)[i] : ((const uint8_t *)out.data)[i];
            const int64_t want =
                a.sign ? byte_of(&a, (int8_t)x[i], (int8_t)y[i]) : byte_of(&a, x[i], y[i]);
            if (got != want)
                fail_msg("graph %d, bytes %d and %d: %lld is %lld", graph, x[i], y[i],
                         (long long)want, (long long)got);
        }
        ingot_context_free(c);
    }
    assert_true(changed > GRAPHS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
