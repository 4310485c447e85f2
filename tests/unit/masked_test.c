/* masked_test.c - what a mask of coordinates leaves in stored values: kernels that read them know
 * it, no sums are computed there, and each step gives what the graph says, whatever the sizes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/ingot_ops.h"
#include "compiler/kernel/kernel.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/simulate/plan_check.h"

enum { DEPTH = 32 };

static ingot_tensor *rows_of(Context *c, const char *name, ingot_dim *n)
{
    ingot_dim *dims[] = {n, ingot_dim_const(c, DEPTH)};
    return ingot_input(c, name, INGOT_F32, 2, dims);
}

/* Attention of the last n tokens to all: to those up to its own (causal), or to none of these. */
static Plan *attention(const char *target, bool causal)
{
    const ingot_options o = {.struct_size = sizeof o, .target = target};
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *n = ingot_dim_var(c, "n", 1, 128), *keys = ingot_dim_var(c, "keys", 128, 1000);
    ingot_tensor *q = rows_of(c, "q", n), *k = rows_of(c, "k", keys), *v = rows_of(c, "v", keys);
    ingot_tensor *s = ingot_matmul(c, q, ingot_permute(c, k, (int[]){1, 0}));
    ingot_dim *size[] = {n, keys};
    ingot_tensor *row = ingot_iota(c, 2, size, 0), *column = ingot_iota(c, 2, size, 1),
                 *last =
                     ingot_add(c, row, ingot_sub(c, ingot_from_dim(c, keys), ingot_from_dim(c, n))),
                 *mask = ingot_le(c, column, last), *none = ingot_scalar_f(c, INGOT_F32, -INFINITY);
    s = causal ? ingot_where(c, mask, s, none) : ingot_where(c, mask, none, s);
    ingot_output(c, "y", ingot_matmul(c, ingot_softmax(c, s, 1), v));
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    PlanCheck check;
    if (!plan_check(p, false, &check))
        fail_msg("%s: %s", target, check.fault);
    return p;
}

/* How many arguments of kernels are known to be this number behind their rows. */
static int known(const Plan *p, double value)
{
    int n = 0;
    for (int i = 0; i < p->nkernel; i++)
        for (int j = 0; j < p->kernels[i]->narg; j++) {
            const Beyond *b = &p->kernels[i]->args[j].beyond;
            n += b->from && b->value == value && b->axis == 1 && b->row == 0;
        }
    return n;
}

/* Loop nests that store minus infinity and compute nothing. */
static int constant_nests(Plan *p)
{
    int n = 0;
    for (int i = 0; i < p->nkernel; i++) {
        const Tiles t = kernel_lower(p->kernels[i]);
        for (int j = 0; j < t.n; j++) {
            bool all = true;
            for (int s = 0; s < t.tile[j].nstore; s++) {
                const Node *v = t.tile[j].store[s]->src[2];
                all &= v->op == OP_CONST && isinf(node_float(v));
            }
            n += all;
        }
        ingot_context_free(t.k->c);
    }
    return n;
}

static void done(Plan *p)
{
    Context *c = p->c;
    plan_free(p);
    ingot_context_free(c);
}

static void readers_know(void **state)
{
    (void)state;
    static const char *const target[] = {"c", "c:x86-64-v3", "c:x86-64-v4"};
    for (int i = 0; i < 3; i++) {
        Plan *p = attention(target[i], true);
        if (!known(p, -INFINITY) || !known(p, 0))
            fail_msg("%s: nobody knows where scores end", target[i]);
        done(p);
        p = attention(target[i], false); /* a mask of the other side */
        if (known(p, -INFINITY) || known(p, 0))
            fail_msg("%s: scores do not end there", target[i]);
        done(p);
    }
}

static void no_sums(void **state)
{
    (void)state;
    Plan *p = attention("c:x86-64-v4", true);
    assert_true(constant_nests(p) > 0);
    done(p);
    p = attention("c:x86-64-v4", false);
    assert_int_equal(constant_nests(p), 0);
    done(p);
}

/* The last two of four rows are read: they are numbered from there on, but end where they did. */
static void rows_from_another_on(void **state)
{
    (void)state;
    const ingot_options o = {.struct_size = sizeof o, .target = "c"};
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *rows = ingot_dim_const(c, 4), *keys = ingot_dim_var(c, "keys", 1, 7),
              *two = ingot_dim_const(c, 2), *size[] = {rows, keys};
    ingot_tensor *q = rows_of(c, "q", rows), *k = rows_of(c, "k", keys), *v = rows_of(c, "v", keys);
    ingot_tensor *s = ingot_matmul(c, q, ingot_permute(c, k, (int[]){1, 0}));
    s = ingot_where(c, ingot_le(c, ingot_iota(c, 2, size, 1), ingot_iota(c, 2, size, 0)), s,
                    ingot_scalar_f(c, INGOT_F32, -INFINITY));
    ingot_tensor *y = ingot_matmul(c, ingot_softmax(c, s, 1), v);
    ingot_output(c, "y", ingot_slice(c, y, 0, two, two, 1));
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    PlanCheck check;
    if (!plan_check(p, false, &check))
        fail_msg("%s", check.fault);
    int from_two = 0;
    for (int i = 0; i < p->nkernel; i++)
        for (int j = 0; j < p->kernels[i]->narg; j++) {
            const Beyond *b = &p->kernels[i]->args[j].beyond;
            from_two += b->from && b->row == 0 && idx_is(b->from, 3);
        }
    assert_int_equal(from_two, 1);
    done(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_know),
        cmocka_unit_test(no_sums),
        cmocka_unit_test(rows_from_another_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
