/* gradient_random_test.c - gradients of random graphs beside central differences, and for some once
 * more differentiated.  Seeds are fixed; of a fault the seed is told. */
#include "gradient_cases.h"

enum { GRAPHS = 300, STEPS = 8, POOL = 3 + STEPS, MOST_SIZE = 150 };

static uint32_t graph_seed, draw_state;

static int draw(int n)
{
    draw_state = draw_state * 1664525u + 1013904223u;
    return (int)((uint64_t)draw_state * (uint64_t)n >> 32);
}

static ingot_dim *k(ingot_context *c, int64_t v)
{
    return ingot_dim_const(c, v);
}

static int64_t size_of(ingot_tensor *x, int axis)
{
    return ingot_dim_lo(ingot_shape(x, axis));
}

static int64_t numel(ingot_tensor *x)
{
    int64_t dims[INGOT_MAX_RANK];
    ingot_static_shape(x, dims);
    return elements(ingot_rank(x), dims);
}

/* ---- one step of each kind: NULL: it does not fit x ------------------------------------------ */

typedef ingot_tensor *StepOf(ingot_context *, ingot_tensor *x, ingot_tensor *y);

static ingot_tensor *unary_step(ingot_context *c, ingot_tensor *x, ingot_tensor *y)
{
    (void)y;
    switch (draw(7)) {
    case 0: return ingot_sin(c, x);
    case 1: return ingot_exp(c, x);
    case 2: return ingot_sigmoid(c, x);
    case 3: return ingot_atan(c, x);
    case 4: return ingot_erf(c, x);
    case 5: return ingot_mul(c, x, x);
    default: return ingot_sqrt(c, ingot_add_c(c, ingot_mul(c, x, x), 1));
    }
}

static ingot_tensor *binary_step(ingot_context *c, ingot_tensor *x, ingot_tensor *y)
{
    for (int a = 1; a <= ingot_rank(x) && a <= ingot_rank(y); a++) {
        int64_t i = size_of(x, ingot_rank(x) - a), j = size_of(y, ingot_rank(y) - a);
        if (i != j && i != 1 && j != 1)
            return NULL;
    }
    switch (draw(6)) {
    case 0: return ingot_add(c, x, y);
    case 1: return ingot_sub(c, x, y);
    case 2: return ingot_mul(c, x, y);
    case 3: return ingot_div(c, x, ingot_add_c(c, ingot_mul(c, y, y), 1));
    case 4: return ingot_max(c, x, ingot_sin(c, y));
    default: return ingot_where(c, ingot_lt(c, x, y), ingot_mul(c, x, y), ingot_sin(c, y));
    }
}

static ingot_tensor *reduce_step(ingot_context *c, ingot_tensor *x, ingot_tensor *y)
{
    static const ingot_reduce_op op[] = {INGOT_REDUCE_ADD, INGOT_REDUCE_MAX, INGOT_REDUCE_MIN,
                                         INGOT_REDUCE_MUL};
    (void)y;
    if (!ingot_rank(x))
        return NULL;
    return ingot_reduce(c, op[draw(4)], x, 1u << draw(ingot_rank(x)), draw(2));
}

static ingot_tensor *scan_step(ingot_context *c, ingot_tensor *x, ingot_tensor *y)
{
    (void)y;
    if (!ingot_rank(x))
        return NULL;
    int axis = draw(ingot_rank(x));
    switch (draw(4)) {
    case 0: return ingot_softmax(c, x, axis);
    case 1: return ingot_cumulate(c, INGOT_REDUCE_MUL, x, axis, draw(2), draw(2));
    case 2: return ingot_cumulate(c, INGOT_REDUCE_MAX, x, axis, false, draw(2));
    default: return ingot_cumsum(c, x, axis, draw(2), draw(2));
    }
}

static ingot_tensor *move_step(ingot_context *c, ingot_tensor *x, ingot_tensor *y)
{
    int rank = ingot_rank(x), axis = rank ? draw(rank) : 0;
    int64_t n = rank ? size_of(x, axis) : 0, lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    (void)y;
    if (!rank)
        return ingot_unsqueeze(c, x, 0);
    switch (draw(8)) {
    case 0: return ingot_transpose(c, x, axis, draw(rank));
    case 1: return ingot_flip(c, x, 1u << axis);
    case 2:
        lo[axis] = draw(3) - (n > 1);
        hi[axis] = draw(3);
        return ingot_pad_c(c, x, lo, hi, draw(2));
    case 3: return ingot_flatten(c, x, 0, axis + 1);
    case 4: return ingot_unsqueeze(c, x, axis);
    case 5: return ingot_concat(c, 2, (ingot_tensor *[]){x, ingot_sin(c, x)}, axis);
    case 6: return n < 3 ? NULL : ingot_slice(c, x, axis, k(c, n - 1), k(c, (n + 1) / 2), -2);
    default: return n < 3 ? NULL : ingot_slice(c, x, axis, k(c, 0), k(c, (n + 1) / 2), 2);
    }
}

static ingot_tensor *window_step(ingot_context *c, ingot_tensor *x, ingot_tensor *y)
{
    (void)y;
    if (!ingot_rank(x) || ingot_rank(x) > 4)
        return NULL;
    int axis = draw(ingot_rank(x)), taps = 1 + draw(3), apart = 1 + draw(2);
    if (size_of(x, axis) < apart * (taps - 1) + 1)
        return NULL;
    x = ingot_window(c, x, axis, taps, 1 + draw(3), apart);
    return draw(2) ? x
                   : ingot_reduce(c, draw(2) ? INGOT_REDUCE_MAX : INGOT_REDUCE_ADD, x,
                                  1u << (ingot_rank(x) - 1), false);
}

static ingot_tensor *places(ingot_context *c, int n, int64_t size)
{
    int64_t *v = ingot_alloc(c, (size_t)n * sizeof *v), dims = n;
    for (int i = 0; i < n; i++)
        v[i] = draw((int)size);
    return ingot_data(c, NULL, INGOT_I64, 1, &dims, v);
}

static ingot_tensor *place_step(ingot_context *c, ingot_tensor *x, ingot_tensor *y)
{
    static const ingot_update_op op[] = {INGOT_SET, INGOT_ADD, INGOT_MUL, INGOT_MAX, INGOT_MIN};
    (void)y;
    if (!ingot_rank(x))
        return NULL;
    int axis = draw(ingot_rank(x)), n = 1 + draw(4);
    ingot_tensor *at = places(c, n, size_of(x, axis));
    ingot_tensor *rows = ingot_sin(c, ingot_take(c, x, at, axis));
    if (draw(2))
        return rows;
    ingot_tensor *index[INGOT_MAX_RANK];
    ingot_dim *dims[INGOT_MAX_RANK];
    for (int a = 0; a < ingot_rank(rows); a++)
        dims[a] = ingot_shape(rows, a);
    for (int a = 0; a < ingot_rank(rows); a++)
        index[a] = ingot_iota(c, ingot_rank(rows), dims, a);
    index[axis] = ingot_take(c, places(c, n, size_of(x, axis)), index[axis], 0);
    return ingot_update(c, op[draw(5)], x, rows, index);
}

static ingot_tensor *product_step(ingot_context *c, ingot_tensor *x, ingot_tensor *y)
{
    (void)y;
    if (ingot_rank(x) < 2)
        return NULL;
    ingot_tensor *t = ingot_transpose(c, x, ingot_rank(x) - 2, ingot_rank(x) - 1);
    return ingot_matmul(c, x, ingot_sin(c, t));
}

/* s = tanh(s y + t x), 3 times; or a branch by the sum of x */
static ingot_tensor *control_step(ingot_context *c, ingot_tensor *x, ingot_tensor *y)
{
    ingot_tensor *out;
    ingot_tensor *scale = ingot_sum(c, y, (1u << ingot_rank(y)) - 1, false);
    scale = ingot_tanh(c, scale);
    ingot_region *body = ingot_region_begin(c);
    if (draw(3) == 0) {
        ingot_tensor *yes = ingot_mul(c, x, scale), *no = ingot_sin(c, x);
        ingot_region_end(c, body, 1, &yes);
        ingot_region *other = ingot_region_begin(c);
        ingot_region_end(c, other, 1, &no);
        ingot_if(c, ingot_gt(c, scale, ingot_like(c, scale, 0)), body, other, 1, &out);
        return out;
    }
    ingot_tensor *t = ingot_region_param(c, body, INGOT_I64, 0, NULL);
    ingot_tensor *go = ingot_region_param(c, body, INGOT_BOOL, 0, NULL);
    ingot_tensor *s = ingot_region_param_like(c, body, x);
    ingot_tensor *more = ingot_mul(c, ingot_cast(c, t, INGOT_F64), x);
    s = ingot_tanh(c, ingot_add(c, ingot_mul(c, s, scale), more));
    ingot_region_end(c, body, 2, (ingot_tensor *[]){go, s});
    ingot_loop(c, k(c, 3), NULL, 1, &x, body, 0, &out);
    return out;
}

/* ---- graphs -------------------------------------------------------------------------------- */

static ingot_tensor *f_random(ingot_context *c, ingot_tensor *const *x)
{
    static StepOf *const step[] = {unary_step,  binary_step,  reduce_step, scan_step,
                                   move_step,   move_step,    window_step, place_step,
                                   binary_step, product_step, control_step};
    ingot_tensor *pool[POOL] = {x[0], x[1], x[2]}, *sum = NULL;
    int n = 3;
    draw_state = graph_seed;
    for (int i = 0; i < 4; i++)
        draw(2);
    for (int i = 0; n < POOL && i < 10 * STEPS; i++) {
        ingot_tensor *a = pool[draw(4) ? n - 1 - draw(3) : draw(n)], *b = pool[draw(n)];
        ingot_tensor *y = step[draw((int)(sizeof step / sizeof *step))](c, a, b);
        if (!y || ingot_rank(y) > 5)
            continue;
        if (ingot_is_poison(y))
            fail_msg("seed %u: %s", graph_seed, last_error);
        while (numel(y) > MOST_SIZE)
            y = ingot_mean(c, y, 1u << draw(ingot_rank(y)), false);
        pool[n++] = ingot_tanh(c, y); /* in bounds, however long it gets */
    }
    for (int i = 3; i < n; i++) { /* all have a part in the result */
        ingot_tensor *all = ingot_mean(c, pool[i], (1u << ingot_rank(pool[i])) - 1, false);
        sum = sum ? ingot_add(c, sum, all) : all;
    }
    return ingot_add(c, sum, pool[n - 1]);
}

static void random_graphs(void **state)
{
    (void)state;
    char name[32];
    for (int i = 0; i < GRAPHS; i++) {
        GradientCase q = {name, f_random, -1.5, 1.5, 0, 3, {3, 2, 1}, {{2, 3, 4}, {3, 1}, {4}}};
        graph_seed = 1000 + (uint32_t)i;
        snprintf(name, sizeof name, "seed %u", graph_seed);
        if (i % 4)
            q.flags |= ONCE;
        check_case(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
