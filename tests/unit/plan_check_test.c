/* plan_check_test.c - steps of a plan beside the graph: sound plans pass, with all of their steps
 * looked at; what was planted into a plan is found, and told as a fault of the compiler. */
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
#include "targets/targets.h"

static ingot_tensor *input(Context *c, const char *name, int rank, const int64_t *size)
{
    ingot_dim *dim[INGOT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dim[i] = ingot_dim_const(c, size[i]);
    return ingot_input(c, name, INGOT_F32, rank, dim);
}

static ingot_tensor *weight(Context *c, int rank, const int64_t *size, float first)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= size[i];
    float *data = NEWN(c->arena, float, n);
    for (int64_t i = 0; i < n; i++)
        data[i] = first + (float)(i * 7 % 13) / 8;
    return ingot_data(c, "w", INGOT_F32, rank, size, data);
}

static Plan *plan_of(Context *c, const char *target, const char *fuse)
{
    const ingot_options o = {.struct_size = sizeof o, .target = target, .fuse = fuse};
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    return p;
}

static void expect_sound(Context *c, const char *target, const char *fuse)
{
    Plan *p = plan_of(c, target, fuse);
    PlanCheck a, b;
    const bool gpu = !strncmp(target, "cuda", 4) || !strncmp(target, "opencl", 6);
    if (!plan_check(p, gpu, &a))
        fail_msg("%s, %s: %s", target, fuse, a.fault);
    if (strcmp(fuse, "all") != 0 &&
        a.nchecked != a.nstep) /* a kernel of everything takes long for one result */
        fail_msg("%s, %s: %d of %d", target, fuse, a.nchecked, a.nstep);
    assert_true(a.nchecked > 0 && a.results >= a.nchecked);
    assert_true(plan_check(p, gpu, &b)); /* the same numbers, however often */
    assert_int_equal(a.results, b.results);
    assert_int_equal(a.operations, b.operations);
    plan_free(p);
}

/* y = relu(conv(x) + b); the mean of each channel; a product with a matrix, and its softmax. */
static Context *network(void)
{
    Context *c = ingot_context_new(NULL, NULL);
    ingot_tensor *x = input(c, "x", 4, (int64_t[]){1, 5, 19, 21});
    const int64_t pads[] = {1, 1};
    ingot_tensor *y = ingot_conv(c, x, weight(c, 4, (int64_t[]){24, 5, 3, 3}, -1),
                                 weight(c, 1, (int64_t[]){24}, 0), NULL, NULL, pads, pads, 1);
    y = ingot_relu(c, y);
    y = ingot_reduce(c, INGOT_REDUCE_ADD, y, 12, false);
    y = ingot_matmul(c, y, weight(c, 2, (int64_t[]){24, 37}, -0.5f));
    ingot_output(c, "y", ingot_softmax(c, y, 1));
    return c;
}

static void test_sound(void **state)
{
    (void)state;
    static const char *const target[] = {"c",           "c:c99",  "c:x86-64-v3",
                                         "c:cortex-m4", "opencl", "cuda:sm_80"};
    static const char *const fuse[] = {"auto", "none", "all"};
    for (size_t t = 0; t < sizeof target / sizeof *target; t++)
        for (int f = 0; f < 3; f++) {
            Context *c = network();
            expect_sound(c, target[t], fuse[f]);
            ingot_context_free(c);
        }
}

/* ---- sizes that the run decides -------------------------------------------------------------- */

static void test_sizes(void **state)
{
    (void)state;
    static const char *const target[] = {"c", "opencl"};
    for (int t = 0; t < 2; t++) {
        Context *c = ingot_context_new(NULL, NULL);
        ingot_dim *n = ingot_dim_var(c, "n", 1, 9), *size[] = {n, ingot_dim_const(c, 12)};
        ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, size);
        ingot_output(c, "s", ingot_reduce(c, INGOT_REDUCE_ADD, x, 1, false));
        ingot_output(c, "p", ingot_softmax(c, x, 0));
        ingot_output(c, "r", ingot_scan(c, INGOT_REDUCE_ADD, x, 0));
        expect_sound(c, target[t], "auto");
        ingot_context_free(c);
    }
}

/* More results, and so work items of a GPU, than an integer of 32 bits counts. */
static void test_many(void **state)
{
    (void)state;
    static const char *const target[] = {"c", "opencl", "cuda:sm_90a"};
    for (int t = 0; t < 3; t++) {
        Context *c = ingot_context_new(NULL, NULL);
        ingot_tensor *x = input(c, "x", 3, (int64_t[]){3, INT64_C(1) << 32, 5});
        ingot_output(c, "y", ingot_relu(c, x));
        expect_sound(c, target[t], "auto");
        ingot_context_free(c);
    }
}

/* Of some choices of sizes nothing is known. */
static void expect_sound_where_known(Context *c)
{
    Plan *p = plan_of(c, "c", "auto");
    PlanCheck check;
    if (!plan_check(p, false, &check))
        fail_msg("%s", check.fault);
    assert_true(check.nchecked > 0);
    plan_free(p);
}

/* Data decide whether a row is one of x, of which there may be none: what it would be then is
 * nobody's claim. */
static void test_none(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_dim *size[] = {ingot_dim_var(c, "n", 0, 9), ingot_dim_const(c, 12)},
              *rows[] = {ingot_dim_const(c, 8), size[1]};
    ingot_tensor *x = ingot_input(c, "x", INGOT_F32, 2, size),
                 *new = ingot_input(c, "new", INGOT_F32, 2, rows),
                 *old = ingot_input(c, "old", INGOT_I64, 0, NULL);
    ingot_tensor *index[] = {ingot_iota(c, 2, rows, 0), ingot_iota(c, 2, rows, 1)};
    ingot_output(c, "y",
                 ingot_where(c, ingot_lt(c, index[0], old), ingot_gather(c, x, index), new));
    expect_sound_where_known(c);
    ingot_context_free(c);
}

/* Of parts whose sizes the data decide no choice is taken in which they are more than the whole. */
static void test_counts(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    ingot_tensor *x = input(c, "x", 2, (int64_t[]){3, 6});
    ingot_dim *zero = ingot_dim_const(c, 0), *six = ingot_dim_const(c, 6),
              *m = ingot_dim_var(c, "m", 0, 3), *n = ingot_dim_var(c, "n", 0, 3);
    ingot_output(c, "a", ingot_input(c, "a", INGOT_F32, 1, &m));
    ingot_output(c, "b", ingot_input(c, "b", INGOT_F32, 1, &n));
    ingot_output(c, "y", ingot_shrink(c, x, (ingot_dim *[]){zero, zero}, (ingot_dim *[]){m, six}));
    ingot_output(c, "z", ingot_shrink(c, x, (ingot_dim *[]){m, zero}, (ingot_dim *[]){n, six}));
    expect_sound_where_known(c);
    ingot_context_free(c);
}

/* Sums that the items of a group share, of more items than results, onto a value that dies there:
 * those that store nothing read nothing of it either. What is read twice is computed before the
 * store's condition. */
static void test_in_place(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    const int64_t x[] = {49, 960}, w[] = {960, 160}, v[] = {160, 160};
    ingot_tensor *y = ingot_matmul(c, input(c, "x", 2, x), weight(c, 2, w, -1));
    for (int i = 0; i < 2; i++) {
        ingot_tensor *s = ingot_matmul(c, input(c, i ? "a" : "b", 2, x), weight(c, 2, w, -0.5f));
        y = ingot_add(c, y, s);
        y = ingot_where(c, ingot_lt(c, y, ingot_scalar_f(c, INGOT_F32, 0)),
                        ingot_mul(c, y, ingot_scalar_f(c, INGOT_F32, 0.25)), y);
    }
    ingot_output(c, "y", ingot_matmul(c, y, weight(c, 2, v, -1)));
    static const char *const target[] = {"cuda:sm_80", "cuda:sm_90a", "opencl:dot8+subgroups32"};
    for (size_t t = 0; t < sizeof target / sizeof *target; t++)
        expect_sound(c, target[t], "auto");
    ingot_context_free(c);
}

/* Of a concat that is written part by part, each the greatest of windows of the one before: what is
 * reduced is read by all items. */
static void test_parts(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    const int64_t size[] = {1, 128, 13, 13}, w[] = {128, 128, 1, 1}, v[] = {64, 384, 1, 1},
                  window[] = {9, 9}, pads[] = {4, 4};
    ingot_tensor *part[3] = {
        ingot_relu(c, ingot_conv(c, input(c, "x", 4, size), weight(c, 4, w, -1), NULL, NULL, NULL,
                                 NULL, NULL, 1))};
    for (int i = 1; i < 3; i++)
        part[i] = ingot_max_pool(c, part[i - 1], window, NULL, NULL, pads, pads);
    ingot_output(c, "y",
                 ingot_conv(c, ingot_concat(c, 3, part, 1), weight(c, 4, v, -0.5f), NULL, NULL,
                            NULL, NULL, NULL, 1));
    expect_sound(c, "cuda:sm_90a", "auto");
    expect_sound(c, "opencl", "auto");
    ingot_context_free(c);
}

/* Updates of one place by all iterations of a loop, which moves it in no other way: each sees what
 * those before it have left. All of them are run, not a sample. */
static void test_collisions(void **state)
{
    (void)state;
    static const char *const target[] = {"c", "c:x86-64-v3", "c:cortex-m4", "opencl", "cuda:sm_80"};
    static const int64_t size[] = {3, 2}, many[] = {3, 4},
                         at[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (int op = INGOT_SET; op <= INGOT_MIN; op++)
        for (size_t t = 0; t < sizeof target / sizeof *target; t++) {
            Context *c = ingot_context_new(NULL, NULL);
            ingot_tensor *index = ingot_data(c, NULL, INGOT_I64, 2, many, at);
            ingot_output(c, "y",
                         ingot_scatter_elements(c, (ingot_update_op)op, input(c, "x", 2, size),
                                                index, input(c, "v", 2, many), 1));
            expect_sound(c, target[t], "auto");
            ingot_context_free(c);
        }
}

/* ---- planted faults -------------------------------------------------------------------------- */

/* Is it found, and is this in what is told? */
static void expect_fault(const Plan *p, const char *told)
{
    PlanCheck check;
    assert_false(plan_check(p, false, &check));
    if (!strstr(check.fault, told))
        fail_msg("'%s' is not in '%s'", told, check.fault);
}

static Step *step_of(const Plan *p, int number)
{
    assert_true(number < p->main.n && p->main.step[number]->kernel);
    return p->main.step[number];
}

static void exchange(Buffer **a, Buffer **b)
{
    Buffer *was = *a;
    *a = *b;
    *b = was;
}

static void test_operands(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    const int64_t size[] = {3, 11};
    ingot_output(c, "y", ingot_sub(c, input(c, "a", 2, size), input(c, "b", 2, size)));
    Plan *p = plan_of(c, "c", "auto");
    Step *s = step_of(p, 0);
    assert_int_equal(s->nbuf, 3);
    exchange(&s->bufs[1], &s->bufs[2]);
    expect_fault(p, "its result [");
    exchange(&s->bufs[1], &s->bufs[2]);
    s->bufs[1] = s->bufs[2];
    expect_fault(p, "and the graph says");
    plan_free(p);
    ingot_context_free(c);
}

/* relu(offset - |2a + b|), or relu(-2a - b) */
static ingot_tensor *mostly_zero(Context *c, const char *a, const char *b, double offset)
{
    const int64_t size[] = {3, 11};
    ingot_tensor *x = ingot_mul(c, input(c, a, 2, size), ingot_scalar_f(c, INGOT_F32, 2));
    x = ingot_add(c, x, input(c, b, 2, size));
    if (offset > 0)
        x = ingot_abs(c, x);
    return ingot_relu(c, ingot_sub(c, ingot_scalar_f(c, INGOT_F32, offset), x));
}

/* Operands that exchange places where most results are 0: of a second step, whose operands are
 * drawn above 0; of one that is not 0 for small operands alone. */
static void test_zeros(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        Context *c = ingot_context_new(NULL, NULL);
        const double offset = small ? 0.02 : 0;
        ingot_output(c, "y", mostly_zero(c, "a", "b", offset));
        if (!small)
            ingot_output(c, "z", mostly_zero(c, "d", "e", offset));
        Plan *p = plan_of(c, "c", "auto");
        assert_int_equal(p->nkernel, 1);
        const int last = p->main.n - 1, operand = step_of(p, last)->nbuf - 2;
        Buffer **of = &step_of(p, last)->bufs[operand];
        PlanCheck check;
        assert_true(plan_check(p, false, &check));
        exchange(&of[0], &of[1]);
        expect_fault(p, small ? "step 0, " : "step 1, ");
        plan_free(p);
        ingot_context_free(c);
    }
}

/* Two steps of one kernel, which differ in numbers. */
static void test_numbers(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    const int64_t size[] = {3, 11};
    for (int i = 0; i < 2; i++) {
        ingot_tensor *x = input(c, i ? "a" : "b", 2, size);
        x = ingot_mul(c, x, ingot_scalar_f(c, INGOT_F32, i ? 1.5 : 3));
        ingot_output(c, i ? "y" : "z", ingot_add(c, x, ingot_scalar_f(c, INGOT_F32, i ? 7 : 5)));
    }
    Plan *p = plan_of(c, "c", "auto");
    assert_int_equal(p->nkernel, 1);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < p->kernels[0]->nscalar; j++) {
            Step *s = step_of(p, i);
            double *number = (double *)(uintptr_t)&s->scalars[j], was = *number;
            *number = was + 0.01;
            expect_fault(p, i ? "step 1, " : "step 0, ");
            *number = was;
        }
    PlanCheck check;
    assert_true(plan_check(p, false, &check));
    plan_free(p);
    ingot_context_free(c);
}

/* The other weights, of the same shape; those that are laid out otherwise. */
static void test_weights(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    const int64_t size[] = {16, 16};
    ingot_tensor *x = input(c, "x", 2, (int64_t[]){3, 16});
    for (int i = 0; i < 2; i++)
        x = ingot_relu(c, ingot_matmul(c, x, weight(c, 2, size, i ? -1 : -0.5f)));
    ingot_output(c, "y", x);
    Plan *p = plan_of(c, "c", "auto");
    Buffer **w[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < step_of(p, i)->nbuf; j++)
            if (step_of(p, i)->bufs[j]->kind == BUF_WEIGHT)
                w[i] = &step_of(p, i)->bufs[j];
    assert_true(w[0] && w[1]);
    exchange(w[0], w[1]);
    expect_fault(p, "step 0, ");
    exchange(w[0], w[1]);
    (*w[1])->layout = (Layout){.n = 1, .op = {{.kind = LAYOUT_PERMUTE, .perm = {2, {1, 0}}}}};
    expect_fault(p, "step 1, ");
    plan_free(p);
    ingot_context_free(c);
}

/* A kernel of the same arguments that computes something else; one that reads behind its buffer. */
static void test_kernels(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    const int64_t size[] = {3, 11};
    ingot_tensor *a = input(c, "a", 2, size), *b = input(c, "b", 2, size);
    ingot_output(c, "y", ingot_mul(c, a, b));
    ingot_output(c, "z", ingot_max(c, a, b));
    Plan *p = plan_of(c, "c", "none");
    Kernel *k[2] = {step_of(p, 0)->kernel, step_of(p, 1)->kernel};
    assert_ptr_not_equal(k[0], k[1]);
    step_of(p, 1)->kernel = k[0];
    expect_fault(p, "step 1, ");
    step_of(p, 1)->kernel = k[1];
    Node *dims[2] = {idx(k[0]->c, 2), idx(k[0]->c, 11)};
    k[0]->args[1].dims = dims;
    kernel_drop_lowered(k[0]);
    expect_fault(p, "outside of the buffer");
    plan_free(p);
    ingot_context_free(c);
}

/* Where in a concat a part begins. */
static void test_places(void **state)
{
    (void)state;
    Context *c = ingot_context_new(NULL, NULL);
    const int64_t size[] = {4, 8};
    ingot_tensor *a = ingot_relu(c, input(c, "a", 2, size)),
                 *b = ingot_neg(c, input(c, "b", 2, size));
    ingot_tensor *both = ingot_concat(c, 2, (ingot_tensor *[]){a, b}, 0);
    ingot_output(c, "y", ingot_matmul(c, both, weight(c, 2, (int64_t[]){8, 20}, -1)));
    Plan *p = plan_of(c, "c", "auto");
    Buffer *part = NULL;
    for (int i = 0; i < p->nbuffer; i++)
        part = p->buffers[i]->base && !idx_is(p->buffers[i]->base_offset, 0) ? p->buffers[i] : part;
    assert_non_null(part);
    part->base_offset = idx(c, 24);
    expect_fault(p, "its result [");
    plan_free(p);
    ingot_context_free(c);
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void keep(void *user, ingot_level level, const char *message)
{
    if (level == INGOT_ERROR)
        snprintf(user, 2000, "%s", message);
}

static void test_status(void **state)
{
    (void)state;
    char told[2000] = "";
    Context *c = ingot_context_new(keep, told);
    const int64_t size[] = {3, 11};
    ingot_output(c, "y", ingot_sub(c, input(c, "a", 2, size), input(c, "b", 2, size)));
    const ingot_options o = {.struct_size = sizeof o};
    Plan *p = plan_of(c, "c", "auto");
    Arena *a = arena_new();
    Target t;
    ingot_status status;
    assert_null(target_make(&t, a, "c", &status));
    Clock k = clock_start(c, &o);
    assert_true(check_plan(p, &t, &o, &k));
    exchange(&step_of(p, 0)->bufs[1], &step_of(p, 0)->bufs[2]);
    assert_false(check_plan(p, &t, &o, &k));
    assert_int_equal(ingot_context_status(c), INGOT_BUG);
    assert_non_null(strstr(told, "a fault of the compiler"));
    assert_non_null(strstr(told, "step 0, k00_sub_3x11: its result ["));
    arena_free(a);
    plan_free(p);
    ingot_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),    cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_many),     cmocka_unit_test(test_none),
        cmocka_unit_test(test_counts),   cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_parts),    cmocka_unit_test(test_collisions),
        cmocka_unit_test(test_operands), cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_numbers),  cmocka_unit_test(test_weights),
        cmocka_unit_test(test_kernels),  cmocka_unit_test(test_places),
        cmocka_unit_test(test_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
