/* settled_test.c - what kernels of a GPU read while those before them still run: nobody writes it
 * then.
 *
 * A launch is followed here as the statements have it: the next kernel begins where this one lets
 * it (STMT_NEXT), and what is done then is what this one has waited for (STMT_DEPEND), if it has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/render/codegen.h"
#include "compiler/ingot_ops.h"
#include "compiler/kernel/lowered.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/simulate/plan_check.h"

enum { TERMS = 2048 };

static ingot_tensor *weight(Context *c, int64_t columns, int first)
{
    float *data = NEWN(c->arena, float, TERMS *columns);
    for (int64_t i = 0; i < TERMS * columns; i++)
        data[i] = (float)((first + i * 7) % 13) / 8 - 0.5f;
    return ingot_data(c, "w", INGOT_F32, 2, (int64_t[]){TERMS, columns}, data);
}

/* Three products of one vector; more: and what is made of two of them by itself. */
static Context *products(bool more)
{
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dims[] = {ingot_dim_const(c, 1), ingot_dim_const(c, TERMS)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, dims);
    ingot_tensor *h = ingot_matmul(c, x, weight(c, TERMS, 0)), *part[3];
    static const int64_t columns[] = {2048, 1024, 512};
    for (int i = 0; i < 3; i++)
        part[i] = ingot_matmul(c, h, weight(c, columns[i], i + 1));
    ingot_output(c, "q", more ? ingot_softmax(c, part[0], 1) : part[0]);
    ingot_output(c, "k", more ? ingot_softmax(c, part[1], 1) : part[1]);
    ingot_output(c, "v", part[2]);
    return c;
}

static Plan *plan_of(Context *c)
{
    const ingot_options o = {.struct_size = sizeof o, .target = "cuda:sm_90a"};
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    return p;
}

/* The same, of which each kernel is a launch of its own. */
static Plan *plan_apart(Context *c)
{
    Plan *p = plan_of(c);
    for (int i = 0; i < p->main.n; i++) {
        p->main.step[i]->ntogether = 1;
        p->main.step[i]->follows = false;
        kernel_drop_lowered(p->main.step[i]->kernel);
    }
    find_settled(p);
    return p;
}

static int first_of(const Step *s, StmtKind kind)
{
    const Linear *l = &kernel_lowered(s->kernel, true)->linear[0];
    for (int i = 0; i < l->n; i++)
        if (l->stmt[i].kind == kind)
            return i;
    return l->n;
}

static bool overlap(const Buffer *x, const Buffer *y)
{
    x = buffer_root(x);
    y = buffer_root(y);
    return x == y || (x->kind == BUF_ARENA && y->kind == BUF_ARENA &&
                      x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes);
}

static bool writes(const Step *s, const Buffer *b)
{
    for (int i = 0; i < s->nbuf; i++)
        if (s->kernel->args[i].written && overlap(s->bufs[i], b))
            return true;
    return false;
}

/* How many operands are read ahead that a step before has made; -1: too early. */
static int count_ahead(const Plan *p)
{
    int n = 0, done = 0; /* all steps before this one are, when a step begins */
    for (int i = 0; i < p->main.n; i++) {
        const Step *s = p->main.step[i];
        assert_int_equal(s->kind, STEP_KERNEL);
        for (int j = 0; j < s->nbuf; j++) {
            if (!s->kernel->args[j].settled)
                continue;
            for (int w = done; w < i; w++)
                if (writes(p->main.step[w], s->bufs[j]))
                    return -1;
            for (int w = 0; w < done; w++)
                n += writes(p->main.step[w], s->bufs[j]);
        }
        const int waits = first_of(s, STMT_DEPEND);
        assert_true(waits < first_of(s, STMT_NEXT) || i > 0);
        if (first_of(s, STMT_NEXT) > waits)
            done = i;
    }
    return n;
}

/* An argument that is read ahead, as the statements have it. */
static KernelArg *ahead_of(const Plan *p)
{
    for (int i = 1; i < p->main.n; i++)
        for (int j = 0; j < p->main.step[i]->nbuf; j++)
            if (p->main.step[i]->kernel->args[j].settled)
                return &kernel_lowered(p->main.step[i]->kernel, true)->tiles.k->args[j];
    return NULL;
}

static void reads_ahead(void **state)
{
    (void)state;
    Context *c = products(true);
    Plan *p = plan_apart(c);
    PlanCheck check;
    assert_true(count_ahead(p) >= 2); /* the second and the third product */
    if (!plan_check(p, true, &check))
        fail_msg("%s", check.fault);
    plan_free(p);
    ingot_context_free(c);
}

/* What is read before the wait and not settled, the interpreter finds; what is said to be settled
 * and is written by the kernel before, the launches above. */
static void finds_planted(void **state)
{
    (void)state;
    Context *c = products(true);
    Plan *p = plan_apart(c);
    PlanCheck check;
    KernelArg *arg = ahead_of(p);
    assert_non_null(arg);
    arg->settled = false;
    assert_false(plan_check(p, true, &check));
    assert_non_null(strstr(check.fault, "before what was enqueued earlier is done"));
    arg->settled = true;
    assert_true(count_ahead(p) >= 2);
    for (int i = 1; i < p->main.n; i++)
        for (int j = 0; j < p->main.step[i]->nbuf; j++)
            p->main.step[i]->kernel->args[j].settled |=
                writes(p->main.step[i - 1], p->main.step[i]->bufs[j]);
    assert_int_equal(count_ahead(p), -1);
    plan_free(p);
    ingot_context_free(c);
}

/* The three products are one launch, of which none reads ahead of the kernel before; and not where
 * one writes what another one reads. */
static void launches_together(void **state)
{
    (void)state;
    Context *c = products(false);
    Plan *p = plan_of(c);
    PlanCheck check;
    int first = 0;
    while (first < p->main.n && p->main.step[first]->ntogether < 2)
        first++;
    assert_true(first > 0 && first < p->main.n);
    Step *const s = p->main.step[first];
    assert_int_equal(s->ntogether, 3);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(s->together[i], p->main.step[first + i]);
        assert_int_equal(s->together[i]->follows, i > 0);
        for (int j = 0; j < s->together[i]->nbuf; j++)
            assert_false(s->together[i]->kernel->args[j].settled);
    }
    if (!plan_check(p, true, &check))
        fail_msg("%s", check.fault);
    for (int j = 0; j < s->nbuf; j++) /* the second one writes what the first one reads */
        if (!s->kernel->args[j].written && s->bufs[j]->kind == BUF_ARENA)
            for (int k = 0; k < s->together[1]->nbuf; k++)
                if (s->together[1]->kernel->args[k].written)
                    s->together[1]->bufs[k] = s->bufs[j];
    find_together(p, target_find("cuda:sm_90a"));
    assert_int_equal(s->ntogether, 1);
    plan_free(p);
    ingot_context_free(c);
}

/* Two products, one after the other, of so many rows: does a kernel go through them backward? */
static int first_backward(int64_t rows)
{
    enum { COLUMNS = 256 };
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *dims[] = {ingot_dim_const(c, rows), ingot_dim_const(c, COLUMNS)};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F16, 2, dims);
    for (int i = 0; i < 2; i++) {
        const int64_t size[] = {COLUMNS, COLUMNS >> i};
        uint16_t *data = NEWN(c->arena, uint16_t, COLUMNS * COLUMNS);
        for (int j = 0; j < COLUMNS * COLUMNS; j++)
            data[j] = (uint16_t)(0x3000 + j % 7);
        x = ingot_relu(c, ingot_matmul(c, x, ingot_data(c, "w", INGOT_F16, 2, size, data)));
    }
    ingot_output(c, "y", x);
    Plan *p = plan_of(c);
    int at = 0;
    while (at < p->main.n && !p->main.step[at]->kernel->backward)
        at++;
    at = at < p->main.n ? at : -1;
    plan_free(p);
    ingot_context_free(c);
    return at;
}

/* What is more than half of L2 is read from its end on. */
static void goes_backward(void **state)
{
    (void)state;
    assert_int_equal(first_backward(100000), 1);
    assert_int_equal(first_backward(10000), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_ahead), cmocka_unit_test(launches_together),
        cmocka_unit_test(finds_planted), cmocka_unit_test(goes_backward)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
