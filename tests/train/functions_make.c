/* functions_make.c - writes bundles of several functions over the same states, for functions.py.
 *
 *     functions_make learner|decoder|states|refused DIR [TARGET [--save FILE | --sched FILE]]
 *
 * learner: run, and a step of gradient descent with momentum; weights are states that begin as
 * data. decoder: a step and a prefill over one cache that grows. states: one step of states that
 * may be updated in place, and of some that may not. refused: a function that reads an
 * input of another one; what is told goes to stderr. */
#include <stdio.h>
#include <string.h>

#include "compiler/ingot.h"

enum { BATCH = 8, IN = 6, HIDDEN = 5, OUT = 3, WIDTH = 4 };

static void tell(void *user, ingot_level level, const char *text)
{
    (void)user;
    if (level == INGOT_ERROR)
        fprintf(stderr, "%s\n", text);
}

/* Numbers that functions.py makes too. */
static ingot_tensor *data(ingot_context *c, const char *name, int64_t rows, int64_t columns)
{
    float *v = ingot_alloc(c, (size_t)(rows * columns) * sizeof *v);
    const int64_t dims[2] = {rows, columns};
    for (int64_t k = 0; k < rows * columns; k++)
        v[k] = (float)((uint32_t)(k * 2654435761u) >> 8 & 0xffff) / 65536.0f - 0.5f;
    return ingot_data(c, name, INGOT_F32, 2, dims, v);
}

static ingot_tensor *input(ingot_context *c, const char *name, int64_t rows, int64_t columns)
{
    ingot_dim *dims[2] = {ingot_dim_const(c, rows), ingot_dim_const(c, columns)};
    return ingot_input(c, name, INGOT_F32, 2, dims);
}

static ingot_tensor *product(ingot_context *c, ingot_tensor *x, ingot_tensor *y)
{
    return ingot_matmul(c, x, y);
}

/* What momentum leaves of the way, and the weight after it. */
static void descend(ingot_context *c, ingot_tensor *w, ingot_tensor *g, ingot_tensor *rate,
                    const char *name)
{
    int64_t dims[2];
    ingot_static_shape(w, dims);
    ingot_tensor *speed = ingot_state(c, name, INGOT_F32, 2, dims);
    ingot_tensor *next = ingot_add(c, ingot_mul_c(c, speed, 0.5), g);
    ingot_state_next(c, speed, next);
    ingot_state_next(c, w, ingot_sub(c, w, ingot_mul(c, rate, next)));
}

static void learner(ingot_context *c)
{
    ingot_tensor *w[2] = {ingot_state_from(c, "w1", data(c, "w1", IN, HIDDEN)),
                          ingot_state_from(c, "w2", data(c, "w2", HIDDEN, OUT))},
                 *g[2];
    for (int train = 0; train < 2; train++) {
        if (train)
            ingot_function(c, "train_step");
        ingot_tensor *x = input(c, "x", BATCH, IN);
        ingot_tensor *y = product(c, ingot_tanh(c, product(c, x, w[0])), w[1]);
        if (!train) {
            ingot_output(c, "y", y);
            continue;
        }
        ingot_tensor *d = ingot_sub(c, y, input(c, "target", BATCH, OUT));
        ingot_tensor *loss = ingot_mean(c, ingot_mul(c, d, d), 3, false);
        ingot_tensor *rate = ingot_input(c, "rate", INGOT_F32, 0, NULL);
        ingot_gradient(c, loss, 2, w, g);
        descend(c, w[0], g[0], rate, "w1.speed");
        descend(c, w[1], g[1], rate, "w2.speed");
        ingot_tensor *steps = ingot_state(c, "steps", INGOT_I64, 0, NULL);
        ingot_state_next(c, steps, ingot_add_c(c, steps, 1));
        ingot_output(c, "loss", loss);
    }
}

/* All rows that the cache has by then attend to each other. */
static void attend(ingot_context *c, ingot_tensor *cache, ingot_tensor *x)
{
    ingot_tensor *rows[2] = {cache, product(c, x, data(c, "wk", WIDTH, WIDTH))};
    ingot_tensor *all = ingot_concat(c, 2, rows, 0);
    ingot_tensor *score = ingot_softmax(c, product(c, x, ingot_transpose(c, all, 0, 1)), 1);
    ingot_output(c, "y", product(c, score, all));
    ingot_state_next(c, cache, all);
}

static void decoder(ingot_context *c)
{
    ingot_dim *dims[2] = {ingot_dim_var(c, "past", 0, 15), ingot_dim_const(c, WIDTH)};
    ingot_tensor *cache = ingot_growing_state(c, "cache", INGOT_F32, 2, dims);
    attend(c, cache, input(c, "x", 1, WIDTH));
    ingot_function(c, "prefill");
    dims[0] = ingot_dim_var(c, "rows", 1, 8);
    attend(c, cache, ingot_input(c, "x", INGOT_F32, 2, dims));
}

static ingot_tensor *begun(ingot_context *c, const char *name)
{
    return ingot_state_from(c, name, data(c, name, BATCH, WIDTH));
}

/* Each next value and its state, and who else reads that. */
static void states(ingot_context *c)
{
    ingot_tensor *x = input(c, "x", BATCH, WIDTH);
    ingot_tensor *plain = begun(c, "plain"), *late = begun(c, "late");
    ingot_tensor *left = begun(c, "left"), *right;
    right = ingot_state_from(c, "right", ingot_mul_c(c, data(c, NULL, BATCH, WIDTH), 2));
    ingot_tensor *turned = begun(c, "turned"), *old = begun(c, "old"), *rows = begun(c, "rows");
    ingot_state_next(c, plain, ingot_sub(c, plain, x));
    /* an output reads it, and comes first or last */
    ingot_state_next(c, late, ingot_add(c, ingot_mul_c(c, late, 0.5), x));
    ingot_output(c, "y", product(c, x, ingot_transpose(c, late, 0, 1)));
    ingot_state_next(c, left, right); /* one of both */
    ingot_state_next(c, right, left);
    ingot_state_next(c, turned, ingot_add(c, ingot_flip(c, turned, 1), x)); /* reads elsewhere */
    ingot_tensor *next = ingot_add(c, ingot_tanh(c, old), x); /* read behind the update */
    ingot_tensor *mean = ingot_contiguous(c, ingot_mean(c, next, 3, true));
    ingot_state_next(c, old, ingot_contiguous(c, next));
    ingot_output(c, "z", product(c, x, ingot_transpose(c, ingot_mul(c, old, mean), 0, 1)));
    const int64_t four = 4, at[4] = {3, 1, 3, 0};
    ingot_tensor *ids = ingot_data(c, NULL, INGOT_I64, 1, &four, at);
    ingot_dim *dims[2] = {ingot_dim_const(c, four), ingot_dim_const(c, WIDTH)};
    ingot_tensor *index[2] = {ingot_expand(c, ingot_unsqueeze(c, ids, 1), 2, dims),
                              ingot_iota(c, 2, dims, 1)};
    ingot_tensor *seen = ingot_contiguous(c, ingot_mul_c(c, ingot_take(c, rows, ids, 0), -0.25));
    ingot_state_next(c, rows, ingot_update(c, INGOT_ADD, rows, seen, index));
}

static void refused(ingot_context *c)
{
    ingot_tensor *x = input(c, "x", 1, WIDTH);
    ingot_output(c, "y", ingot_exp(c, x));
    ingot_function(c, "other");
    ingot_output(c, "z", ingot_tanh(c, x));
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    ingot_context *c = ingot_context_new(tell, NULL);
    ingot_options o = {.struct_size = sizeof o, .target = argc > 3 ? argv[3] : NULL};
    if (argc > 5 && !strcmp(argv[4], "--save"))
        o.save_sched = argv[5];
    if (argc > 5 && !strcmp(argv[4], "--sched"))
        o.sched = argv[5];
    if (!strcmp(argv[1], "learner"))
        learner(c);
    else if (!strcmp(argv[1], "decoder"))
        decoder(c);
    else if (!strcmp(argv[1], "states"))
        states(c);
    else
        refused(c);
    const ingot_status status = ingot_compile(c, &o, argv[2]);
    ingot_context_free(c);
    return (int)status;
}
