/* gradient_plan_test.c - graphs of a loss and its gradients compile: their plans are sound, and
 * what they compute, by the interpreter of statements, is what the graph does. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/render/codegen.h"
#include "compiler/ingot_ops.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/simulate/plan_check.h"
#include "compiler/simulate/plan_interp.h"

enum { MOST_VALUES = 16 };

/* A network while it is built: its inputs are the batch, then what is trained. */
typedef struct {
    Context *c;
    ingot_tensor *in[MOST_VALUES], *g[MOST_VALUES];
    int n, nstate;   /* behind the inputs: states, which are trained too */
    bool free_batch; /* its size is the run's */
} Net;

static char told[1200];

static void keep_told(void *user, ingot_level level, const char *text)
{
    (void)user;
    if (level == INGOT_ERROR)
        snprintf(told, sizeof told, "%s", text);
}

static ingot_tensor *input(Net *q, int rank, const int64_t *size)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    char name[16];
    for (int i = 0; i < rank; i++)
        dims[i] = ingot_dim_const(q->c, size[i]);
    if (q->n == 0 && q->free_batch)
        dims[0] = ingot_dim_var(q->c, "batch", 1, 16);
    snprintf(name, sizeof name, "x%d", q->n);
    return q->in[q->n++] = ingot_input(q->c, name, INGOT_F32, rank, dims);
}
#define INPUT(...) \
    input(q, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* The mean over rows of -log softmax(y)[row % classes]. */
static ingot_tensor *cross_entropy(Context *c, ingot_tensor *y)
{
    ingot_dim *dims[2] = {ingot_shape(y, 0), ingot_shape(y, 1)};
    ingot_tensor *row = ingot_iota(c, 2, dims, 0), *class = ingot_iota(c, 2, dims, 1);
    ingot_tensor *hit = ingot_eq(c, ingot_mod(c, row, ingot_from_dim(c, dims[1])), class);
    ingot_tensor *y_log = ingot_log_softmax(c, y, 1);
    ingot_tensor *sum = ingot_sum(c, ingot_where(c, hit, y_log, ingot_like(c, y, 0)), 3, false);
    ingot_tensor *rows = ingot_cast(c, ingot_from_dim(c, dims[0]), INGOT_F32);
    return ingot_neg(c, ingot_div(c, sum, rows));
}

static ingot_tensor *mlp(Net *q)
{
    Context *c = q->c;
    ingot_tensor *x = INPUT(8, 12), *w0 = INPUT(16, 12), *b0 = INPUT(16);
    ingot_tensor *w1 = INPUT(5, 16), *b1 = INPUT(5);
    x = ingot_gelu(c, ingot_linear(c, x, w0, b0), false);
    return cross_entropy(c, ingot_linear(c, x, w1, b1));
}

static ingot_tensor *cnn(Net *q)
{
    static const int64_t one[2] = {1, 1}, two[2] = {2, 2}, three[2] = {3, 3};
    Context *c = q->c;
    ingot_tensor *x = INPUT(2, 3, 13, 13), *w0 = INPUT(8, 3, 3, 3), *b0 = INPUT(8);
    ingot_tensor *w1 = INPUT(8, 1, 3, 3), *w2 = INPUT(6, 8, 3, 3), *w3 = INPUT(5, 24);
    x = ingot_relu(c, ingot_conv(c, x, w0, b0, NULL, NULL, one, one, 1));
    x = ingot_max_pool(c, x, three, two, NULL, one, one);
    x = ingot_conv(c, x, w1, NULL, NULL, NULL, one, one, 8);
    x = ingot_relu(c, ingot_conv(c, x, w2, NULL, two, NULL, one, one, 1));
    x = ingot_avg_pool(c, x, two, two, NULL, NULL, NULL, true);
    return cross_entropy(c, ingot_linear(c, ingot_flatten(c, x, 1, 4), w3, NULL));
}

static ingot_tensor *transformer(Net *q)
{
    Context *c = q->c;
    ingot_tensor *x = INPUT(1, 6, 8), *wq = INPUT(8, 8), *wk = INPUT(8, 8), *wv = INPUT(8, 8);
    ingot_tensor *scale = INPUT(8), *y[3], *w[3] = {wq, wk, wv};
    for (int i = 0; i < 3; i++) {
        y[i] = ingot_reshape_c(c, ingot_linear(c, x, w[i], NULL), 4, (int64_t[]){1, 6, 2, 4});
        y[i] = ingot_transpose(c, y[i], 1, 2);
    }
    x = ingot_transpose(c, ingot_attention(c, y[0], y[1], y[2], NULL, 0, true), 1, 2);
    x = ingot_layer_norm(c, ingot_reshape_c(c, x, 2, (int64_t[]){6, 8}), -1, scale, NULL, 1e-5);
    return cross_entropy(c, x);
}

static ingot_tensor *lstm(Net *q)
{
    Context *c = q->c;
    ingot_tensor *x = INPUT(4, 2, 3), *out[3];
    ingot_recurrence r = {.w = INPUT(16, 3), .r = INPUT(16, 4), .b = INPUT(16)};
    ingot_lstm(c, x, &r, out);
    x = ingot_add(c, ingot_sum(c, out[0], 1, false), out[2]);
    return cross_entropy(c, x);
}

/* Images of three channels, normalised one by one. */
static ingot_tensor *normalised(Net *q)
{
    Context *c = q->c;
    ingot_tensor *x = INPUT(2, 3, 4, 5), *scale = INPUT(3), *bias = INPUT(3);
    x = ingot_instance_norm(c, x, scale, bias, 1e-3);
    return cross_entropy(c, ingot_flatten(c, ingot_tanh(c, x), 1, 4));
}

/* Rows of a table, summed: its gradient is added to zeros at the rows' places. */
static ingot_tensor *embedding(Net *q)
{
    static const int64_t at[6] = {3, 1, 3, 0, 1, 3}, six = 6;
    Context *c = q->c;
    ingot_tensor *table = INPUT(5, 8), *w = INPUT(7, 8);
    ingot_tensor *x = ingot_take(c, table, ingot_data(c, NULL, INGOT_I64, 1, &six, at), 0);
    return cross_entropy(c, ingot_linear(c, ingot_tanh(c, x), w, NULL));
}

/* One column, several times: what comes back to it is added up in one place. */
static ingot_tensor *one_column(Net *q)
{
    static const int64_t at[6] = {0}, six = 6;
    Context *c = q->c;
    ingot_tensor *column = INPUT(5, 1), *w = INPUT(7, 6);
    ingot_tensor *x = ingot_take(c, column, ingot_data(c, NULL, INGOT_I64, 1, &six, at), 1);
    return cross_entropy(c, ingot_tanh(c, ingot_linear(c, x, w, NULL)));
}

/* A weight that is trained: a state that begins with numbers. */
static ingot_tensor *learned(Context *c, const char *name, int rank, const int64_t *size)
{
    int64_t n = 1;
    for (int a = 0; a < rank; a++)
        n *= size[a];
    float *v = NEWN(c->arena, float, n);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)((i * 37 + 11) % 101 - 50) / 400.0f;
    return ingot_state_from(c, name, ingot_data(c, NULL, INGOT_F32, rank, size, v));
}

/* Convolutions of so many channels that fewer products pay, forward and in both gradients: weights
 * are transformed in each run. */
static ingot_tensor *wide_cnn(Net *q)
{
    static const int64_t one[2] = {1, 1}, wide[4] = {32, 32, 3, 3}, rows[2] = {5, 32};
    Context *c = q->c;
    ingot_tensor *x = INPUT(1, 32, 32, 32);
    for (int i = 0; i < 2; i++) {
        ingot_tensor *w = learned(c, i ? "w1" : "w0", 4, wide);
        x = ingot_relu(c, ingot_conv(c, x, w, NULL, NULL, NULL, one, one, 1));
        ingot_state_next(c, w, ingot_mul_c(c, w, 0.5));
        q->in[1 + q->nstate++] = w;
    }
    return cross_entropy(
        c, ingot_linear(c, ingot_mean(c, x, 3u << 2, false), learned(c, "w2", 2, rows), NULL));
}

/* What a product in fewer multiplications reads is made of what a sum reads, too. */
static ingot_tensor *normed_cnn(Net *q)
{
    static const int64_t one[2] = {1, 1}, wide[4] = {64, 64, 3, 3};
    Context *c = q->c;
    ingot_tensor *x = INPUT(2, 64, 56, 56), *scale = INPUT(64), *bias = INPUT(64);
    for (int i = 0; i < 2; i++) {
        ingot_tensor *w = learned(c, i ? "w1" : "w0", 4, wide);
        x = ingot_conv(c, x, w, NULL, NULL, NULL, one, one, 1);
        x = ingot_relu(c, ingot_instance_norm(c, x, scale, bias, 1e-3));
        ingot_state_next(c, w, ingot_mul_c(c, w, 0.5));
        q->in[q->n + q->nstate++] = w;
    }
    return ingot_mean(c, ingot_mul(c, x, x), 15, false);
}

static void build(Net *q, ingot_tensor *(*network)(Net *))
{
    char name[16];
    q->c = ingot_context_new(keep_told, NULL);
    ingot_tensor *loss = network(q);
    ingot_output(q->c, "loss", loss);
    ingot_gradient(q->c, loss, q->n + q->nstate, q->in, q->g);
    for (int i = 0; i < q->n + q->nstate; i++) {
        assert_non_null(q->g[i]);
        if (ingot_is_poison(q->g[i]))
            fail_msg("%s", told);
        snprintf(name, sizeof name, "g%d", i);
        ingot_output(q->c, name, q->g[i]);
    }
}

static int64_t count_of(const ingot_value *v)
{
    int64_t n = 1;
    for (int a = 0; a < v->rank; a++)
        n *= v->dims[a];
    return n;
}

static void fill(Net *q, ingot_value *in)
{
    uint32_t seed = 7;
    for (int i = 0; i < q->n; i++) {
        in[i] = (ingot_value){.rank = ingot_rank(q->in[i]), .dtype = INGOT_F32};
        for (int a = 0; a < in[i].rank; a++)
            if (!ingot_dim_is_const(ingot_shape(q->in[i], a), &in[i].dims[a]))
                in[i].dims[a] = 3;
        float *v = NEWN(q->c->arena, float, count_of(&in[i]));
        for (int64_t k = 0; k < count_of(&in[i]); k++) {
            seed = seed * 1664525u + 1013904223u;
            v[k] = (float)(int32_t)seed / 2147483648.0f;
        }
        in[i].data = v;
    }
}

static void expect_near(const char *target, int i, const ingot_value *got, const ingot_value *want)
{
    const float *a = got->data, *b = want->data;
    float most = 1e-3f;
    for (int64_t k = 0; k < count_of(want); k++)
        most = fmaxf(most, fabsf(b[k]));
    for (int64_t k = 0; k < count_of(want); k++)
        if (!(fabsf(a[k] - b[k]) <= 2e-5f * most))
            fail_msg("%s: output %d, element %lld is %.9g, not %.9g", target, i, (long long)k,
                     (double)a[k], (double)b[k]);
}

static void check_target(Net *q, const char *target, const ingot_value *in, const ingot_value *want)
{
    const bool gpu = !strncmp(target, "cuda", 4);
    const ingot_options o = {.struct_size = sizeof o, .target = target};
    ingot_value out[1 + MOST_VALUES];
    Plan *p = plan_make(q->c, &o);
    PlanCheck check;
    if (!p)
        fail_msg("%s: %s", target, told);
    if (!plan_check(p, gpu, &check))
        fail_msg("%s: %s", target, check.fault);
    PlanInterp x = {.p = p, .gpu = gpu};
    Arena *a = arena_new();
    if (!plan_interpret(&x, a, in, out))
        fail_msg("%s: %s", target, x.fault);
    for (int i = 0; i <= q->n + q->nstate; i++)
        expect_near(target, i, &out[i], &want[i]);
    arena_free(a);
    plan_free(p);
}

static void check_on(const char *target, ingot_tensor *(*network)(Net *), bool free_batch)
{
    ingot_value in[MOST_VALUES], want[1 + MOST_VALUES];
    Net q = {.free_batch = free_batch};
    build(&q, network);
    fill(&q, in);
    assert_int_equal(ingot_interpret(q.c, q.n, in, 1 + q.n + q.nstate, want), INGOT_OK);
    check_target(&q, target, in, want);
    ingot_context_free(q.c);
}

static void check_network(ingot_tensor *(*network)(Net *), bool free_batch)
{
    static const char *const target[] = {"c", "c:x86-64-v3", "cuda:sm_80"};
    for (size_t t = 0; t < sizeof target / sizeof *target; t++)
        check_on(target[t], network, free_batch);
}

static void test_mlp(void **state)
{
    (void)state;
    check_network(mlp, false);
    check_network(mlp, true);
}

static void test_cnn(void **state)
{
    (void)state;
    check_network(cnn, false);
    check_network(cnn, true);
}

static void test_transformer(void **state)
{
    (void)state;
    check_network(transformer, false);
}

static void test_lstm(void **state)
{
    (void)state;
    check_network(lstm, false);
}

/* Of a loss and of all gradients: the sums over the pixels of x are those of its mean and variance,
 * and the two that its gradient has, of which those of scale and bias are made. */
static void test_normalised(void **state)
{
    Net q = {.n = 0};
    Arena *a = arena_new();
    int count, sums = 0;
    (void)state;
    build(&q, normalised);
    Node **order = graph_toposort(a, q.n, q.g, &count);
    for (int i = 0; i < count; i++) {
        const Node *x = order[i]->op == OP_REDUCE ? order[i]->src[0] : NULL;
        sums += x && x->rank == 4 && idx_is(x->shape[2], 4) && idx_is(x->shape[3], 5);
    }
    assert_int_equal(sums, 4 + 2); /* scale's and bias' are over the images, too */
    arena_free(a);
    ingot_context_free(q.c);
    check_network(normalised, false);
}

static void test_embedding(void **state)
{
    (void)state;
    check_network(embedding, false);
}

static void test_one_column(void **state)
{
    (void)state;
    check_network(one_column, false);
}

static int in_fewer_products(const Plan *p, const char *variant)
{
    Arena *a = arena_new();
    VariantOf *of;
    int n = plan_variants(a, p, &of), count = 0;
    for (int i = 0; i < n; i++)
        count += !strcmp(of[i].now, variant);
    arena_free(a);
    return count;
}

static void test_planned_again(void **state)
{
    (void)state;
    const ingot_options o = {.struct_size = sizeof o, .target = "c:x86-64-v4"};
    Net q = {0};
    StrBuf text[3] = {{0}};
    build(&q, normed_cnn);
    for (int i = 0; i < 3; i++) {
        Plan *p = plan_make(q.c, &o);
        assert_non_null(p);
        plan_print(&text[i], p);
        plan_free(p);
        assert_string_equal(text[i].data, text[0].data);
    }
    for (int i = 0; i < 3; i++)
        sb_free(&text[i]);
    ingot_context_free(q.c);
}

static void test_states(void **state)
{
    (void)state;
    const ingot_options o = {.struct_size = sizeof o, .target = "c:x86-64-v3"};
    Net q = {0};
    check_on("c:x86-64-v3", wide_cnn, false);
    build(&q, wide_cnn);
    Plan *p = plan_make(q.c, &o);
    assert_non_null(p);
    assert_int_equal(in_fewer_products(p, "winograd2"), 4);
    assert_int_equal(in_fewer_products(p, "winograd_taps"), 2);
    plan_free(p);
    ingot_context_free(q.c);
}

/* A step of an embedding touches the rows of its words alone: nothing in the plan is as large as
 * the table but the table. */
static void test_rows_of_a_state(void **state)
{
    static const int64_t dims[2] = {2000, 8}, at[5] = {3, 1999, 3, 0, 3}, five = 5;
    const ingot_options o = {.struct_size = sizeof o, .target = "c:x86-64-v3"};
    (void)state;
    Net q = {.c = ingot_context_new(keep_told, NULL)};
    Context *c = q.c;
    ingot_tensor *table = learned(c, "table", 2, dims), *g;
    ingot_tensor *ids = ingot_data(c, NULL, INGOT_I64, 1, &five, at);
    ingot_tensor *x = ingot_take(c, table, ids, 0), *rate = input(&q, 1, (int64_t[]){1});
    ingot_tensor *w = input(&q, 2, (int64_t[]){7, 8});
    ingot_tensor *loss = cross_entropy(c, ingot_linear(c, x, w, NULL));
    ingot_gradient(c, loss, 1, &table, &g);
    g = ingot_mul(c, ingot_reshape_c(c, rate, 0, NULL), g);
    ingot_state_next(c, table, ingot_sub(c, table, g));
    ingot_output(c, "loss", loss);
    ingot_value in[2], want[1], out[1];
    fill(&q, in);
    assert_int_equal(ingot_interpret(c, 2, in, 1, want), INGOT_OK);
    Plan *p = plan_make(c, &o);
    assert_non_null(p);
    assert_true(p->arena_bytes < (dims[0] * dims[1] + 1000) * (int64_t)sizeof(float));
    PlanInterp run = {.p = p};
    Arena *a = arena_new();
    assert_true(plan_interpret(&run, a, in, out));
    expect_near("rows of a state", 0, &out[0], &want[0]);
    arena_free(a);
    plan_free(p);
    ingot_context_free(c);
}

/* Layers of a product, a norm over the batch and a relu: of each its gradient reads the product,
 * and its weight's what becomes of it. */
static void learn_by_layers(Net *q)
{
    static const int64_t wide[2] = {64, 64};
    static const char *const name[] = {"w0", "w1", "w2", "w3"};
    enum { LAYERS = sizeof name / sizeof *name };
    Context *c = q->c = ingot_context_new(keep_told, NULL);
    ingot_tensor *x = INPUT(256, 64), *w[LAYERS], *g[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        w[i] = learned(c, name[i], 2, wide);
        x = ingot_linear(c, x, w[i], NULL);
        x = ingot_sub(c, x, ingot_mean(c, x, 1, true));
        ingot_tensor *var = ingot_mean(c, ingot_mul(c, x, x), 1, true);
        x = ingot_relu(c, ingot_div(c, x, ingot_sqrt(c, ingot_add_c(c, var, 1e-3))));
    }
    ingot_tensor *loss = cross_entropy(c, x);
    ingot_output(c, "loss", loss);
    ingot_gradient(c, loss, LAYERS, w, g);
    for (int i = 0; i < LAYERS; i++) {
        ingot_tensor *next = ingot_sub(c, w[i], ingot_mul_c(c, g[i], 0.1));
        ingot_state_next(c, w[i], next);
        ingot_output(c, name[i], ingot_sum(c, next, 1, false));
    }
    q->nstate = LAYERS;
}

static int64_t arena_of_layers(const char *prefer, int *again)
{
    const ingot_options o = {.struct_size = sizeof o, .target = "c:x86-64-v3", .prefer = prefer};
    ingot_value in[1], want[1 + MOST_VALUES], out[1 + MOST_VALUES];
    Net q = {0};
    learn_by_layers(&q);
    fill(&q, in);
    assert_int_equal(ingot_interpret(q.c, 1, in, 1 + q.nstate, want), INGOT_OK);
    Plan *p = plan_make(q.c, &o);
    assert_non_null(p);
    *again = 0;
    for (int i = 0; i < p->nnote; i++)
        *again += !strcmp(p->notes[i].pass, "recompute");
    PlanCheck check;
    assert_true(plan_check(p, false, &check));
    PlanInterp run = {.p = p};
    Arena *a = arena_new();
    assert_true(plan_interpret(&run, a, in, out));
    for (int i = 0; i <= q.nstate; i++)
        expect_near(prefer ? prefer : "layers", i, &out[i], &want[i]);
    const int64_t bytes = p->arena_bytes - p->state_bytes;
    arena_free(a);
    plan_free(p);
    ingot_context_free(q.c);
    return bytes;
}

static void test_computed_twice(void **state)
{
    int again, never;
    (void)state;
    const int64_t most = arena_of_layers("time", &never), least = arena_of_layers(NULL, &again);
    assert_int_equal(never, 0);
    assert_in_range(again, 2, 4);
    assert_in_range(least, most / 2, most * 5 / 6);
}

enum { SUM_ROWS = 8, SUM_TERMS = 9000, SUM_COLUMNS = 16 };

/* How far results of sums of many terms of one sign are from those in f64, as a share of them. */
static double error_of_sums(const char *target, bool learns)
{
    ingot_value in[2], out[2];
    Net net = {.c = ingot_context_new(keep_told, NULL)}, *q = &net;
    ingot_tensor *x = INPUT(SUM_ROWS, SUM_TERMS), *w = INPUT(SUM_TERMS, SUM_COLUMNS), *g;
    ingot_tensor *y = ingot_matmul(q->c, ingot_abs(q->c, x), ingot_abs(q->c, w));
    ingot_output(q->c, "y", y);
    ingot_output(q->c, "loss", ingot_mean(q->c, y, 3, false));
    if (learns)
        ingot_gradient(q->c, ingot_mean(q->c, y, 3, false), 1, &w, &g);
    fill(q, in);
    const ingot_options o = {.struct_size = sizeof o, .target = target};
    Plan *p = plan_make(q->c, &o);
    assert_non_null(p);
    PlanInterp run = {.p = p};
    Arena *a = arena_new();
    assert_true(plan_interpret(&run, a, in, out));
    const float *at = in[0].data, *bt = in[1].data, *got = out[0].data;
    double worst = 0, mean = 0;
    for (int i = 0; i < SUM_ROWS * SUM_COLUMNS; i++) {
        double sum = 0;
        for (int k = 0; k < SUM_TERMS; k++)
            sum += fabs((double)at[i / SUM_COLUMNS * SUM_TERMS + k]) *
                   fabs((double)bt[k * SUM_COLUMNS + i % SUM_COLUMNS]);
        worst = fmax(worst, fabs((double)got[i] - sum) / sum);
        mean += sum / (SUM_ROWS * SUM_COLUMNS);
    }
    worst = fmax(worst, fabs((double)*(const float *)out[1].data - mean) / mean);
    arena_free(a);
    plan_free(p);
    ingot_context_free(q->c);
    return worst;
}

/* 9,000 terms are 70 blocks of 125 to 128: sqrt(70 + 128) roundings instead of sqrt(9000). */
static void test_sums_in_blocks(void **state)
{
    static const char *const target[] = {"c", "c:x86-64-v3", "c:x86-64-v4"};
    (void)state;
    for (size_t t = 0; t < sizeof target / sizeof *target; t++) {
        const double blocks = error_of_sums(target[t], true);
        const double running = error_of_sums(target[t], false);
        if (!(blocks < 4e-7 && 3 * blocks < running))
            fail_msg("%s: in blocks %.3g off, in one sum %.3g", target[t], blocks, running);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mlp),
                                       cmocka_unit_test(test_cnn),
                                       cmocka_unit_test(test_transformer),
                                       cmocka_unit_test(test_lstm),
                                       cmocka_unit_test(test_normalised),
                                       cmocka_unit_test(test_embedding),
                                       cmocka_unit_test(test_one_column),
                                       cmocka_unit_test(test_states),
                                       cmocka_unit_test(test_planned_again),
                                       cmocka_unit_test(test_computed_twice),
                                       cmocka_unit_test(test_sums_in_blocks),
                                       cmocka_unit_test(test_rows_of_a_state)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
