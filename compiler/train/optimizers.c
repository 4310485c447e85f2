/* optimizers.c - rules by which weights follow their gradients; formulas in ingot_train.h.
 *
 * A weight is a state, and what a rule keeps of it are further states of its name:
 *
 *     fc.weight  fc.weight.m  fc.weight.v   train.step     Adam
 *     fc.weight  fc.weight.g  train.run                    gradients that are gathered over runs
 *     train.scale  train.finite                            what the loss is multiplied by; for how
 *                                                          many steps without an infinity */
#include <math.h>
#include <string.h>

#include "ir.h"
#include "train.h"

/* A step under way: what is the same for all weights. */
typedef struct {
    ingot_context *c;
    const ingot_optimizer *o;
    ingot_tensor *rate;          /* f32 or f64 */
    ingot_tensor *fix_m, *fix_v; /* ADAM: 1 - beta^t, f64 */
    ingot_tensor *first, *last;  /* bool: of the runs that are gathered; NULL: each is both */
    ingot_tensor *finite;        /* bool: all gradients are; NULL: nobody asks */
    ingot_tensor *changes;       /* bool: this run changes the weights; NULL: each does */
    ingot_tensor *scale;         /* of gradients, by clip; NULL: 1 */
} OptimizerRun;

ingot_optimizer ingot_optimizer_new(ingot_optimizer_kind kind)
{
    return (ingot_optimizer){.struct_size = sizeof(ingot_optimizer),
                             .kind = kind,
                             .beta1 = 0.9,
                             .beta2 = 0.999,
                             .epsilon = 1e-8,
                             .decay = kind == INGOT_ADAMW ? 0.01 : 0};
}

/* A state that begins as what is given for it, or as zeros. */
static ingot_tensor *begun(OptimizerRun *s, const char *name, ingot_dtype d, int rank,
                           const int64_t *dims)
{
    ingot_tensor *first = s->o->begins ? s->o->begins(s->o->user, name) : NULL;
    int64_t has[INGOT_MAX_RANK];
    if (!first)
        return ingot_state(s->c, name, d, rank, dims);
    if (ingot_is_poison(first))
        return first;
    ingot_static_shape(first, has);
    if (ingot_dtype_of(first) != d || ingot_rank(first) != rank ||
        (rank && memcmp(has, dims, (size_t)rank * sizeof *has) != 0))
        return ingot_error(s->c, INGOT_INVALID,
                           "optimizer: what '%s' is to begin as has another type or shape", name);
    return ingot_state_from(s->c, name, first);
}

/* A state NAME.suffix, of w's shape. */
static ingot_tensor *beside(OptimizerRun *s, ingot_tensor *w, const char *suffix)
{
    int64_t dims[INGOT_MAX_RANK];
    const char *name = s->c->states[w->arg.i].name;
    ingot_static_shape(w, dims);
    return begun(s, arena_printf(s->c->arena, "%s.%s", name, suffix),
                 ingot_dtype_of(train_wide(s->c, w)), ingot_rank(w), dims);
}

/* A number of the type of x. */
static ingot_tensor *as_type_of(OptimizerRun *s, ingot_tensor *number, ingot_tensor *x)
{
    return ingot_cast(s->c, number, ingot_dtype_of(x));
}

/* next is what the state becomes in runs that change weights. */
static void becomes(OptimizerRun *s, ingot_tensor *state, ingot_tensor *next)
{
    if (s->changes)
        next = ingot_where(s->c, s->changes, next, state);
    ingot_state_next(s->c, state, next);
}

/* a x + b y */
static ingot_tensor *blend(ingot_context *c, double a, ingot_tensor *x, double b, ingot_tensor *y)
{
    return ingot_add(c, ingot_mul_c(c, x, a), ingot_mul_c(c, y, b));
}

/* ---- rules: what is subtracted of a weight, before it is multiplied by the rate ----------------
 */

static ingot_tensor *momentum(OptimizerRun *s, ingot_tensor *w, ingot_tensor *g)
{
    ingot_context *c = s->c;
    ingot_tensor *m = beside(s, w, "m");
    ingot_tensor *next = ingot_add(c, ingot_mul_c(c, m, s->o->beta1), g);
    becomes(s, m, next);
    return s->o->nesterov ? ingot_add(c, g, ingot_mul_c(c, next, s->o->beta1)) : next;
}

static ingot_tensor *adam(OptimizerRun *s, ingot_tensor *w, ingot_tensor *g)
{
    ingot_context *c = s->c;
    const double b1 = s->o->beta1, b2 = s->o->beta2;
    ingot_tensor *m = beside(s, w, "m"), *v = beside(s, w, "v");
    ingot_tensor *next_m = blend(c, b1, m, 1 - b1, g);
    ingot_tensor *next_v = blend(c, b2, v, 1 - b2, ingot_mul(c, g, g));
    becomes(s, m, next_m);
    becomes(s, v, next_v);
    /* one number a step each, so that an element costs a root and a division */
    ingot_tensor *by_m = as_type_of(s, ingot_reciprocal(c, s->fix_m), g);
    ingot_tensor *by_v = as_type_of(s, ingot_reciprocal(c, ingot_sqrt(c, s->fix_v)), g);
    ingot_tensor *root = ingot_sqrt(c, next_v);
    if (s->o->early)
        by_m = ingot_div(c, by_m, by_v);
    else
        root = ingot_mul(c, root, by_v);
    return ingot_div(c, ingot_mul(c, next_m, by_m), ingot_add_c(c, root, s->o->epsilon));
}

/* w (1 - r d) in place of w. */
static ingot_tensor *decayed(OptimizerRun *s, ingot_tensor *w, ingot_tensor *rate)
{
    return ingot_sub(s->c, w, ingot_mul(s->c, rate, ingot_mul_c(s->c, w, s->o->decay)));
}

static void step_weight(OptimizerRun *s, ingot_tensor *w, ingot_tensor *g)
{
    ingot_context *c = s->c;
    ingot_tensor *wide = train_wide(c, w), *rate = as_type_of(s, s->rate, wide);
    if (s->scale)
        g = ingot_mul(c, g, as_type_of(s, s->scale, g));
    if (s->o->decay != 0 && s->o->kind != INGOT_ADAMW)
        g = ingot_add(c, g, ingot_mul_c(c, wide, s->o->decay));
    ingot_tensor *way = s->o->kind == INGOT_SGD        ? g
                        : s->o->kind == INGOT_MOMENTUM ? momentum(s, w, g)
                                                       : adam(s, w, g);
    const bool decays = s->o->decay != 0 && s->o->kind == INGOT_ADAMW;
    if (decays && !s->o->early)
        way = ingot_add(c, way, ingot_mul_c(c, wide, s->o->decay));
    ingot_tensor *next = ingot_sub(c, wide, ingot_mul(c, rate, way));
    if (decays && s->o->early)
        next = decayed(s, next, rate);
    becomes(s, w, ingot_cast(c, next, ingot_dtype_of(w)));
}

/* ---- what is common to all weights ------------------------------------------------------------
 */

/* The square root of the sum of all squares is `norm`; torch's clip_grad_norm_:
 * min(1, clip / (norm + 1e-6)). */
static ingot_tensor *clip_scale(OptimizerRun *s, int n, ingot_tensor *const *g)
{
    ingot_context *c = s->c;
    ingot_tensor *sum = NULL;
    for (int i = 0; i < n; i++)
        if (g[i]) {
            ingot_tensor *square = ingot_sum(c, ingot_mul(c, g[i], g[i]), train_axes(g[i]), false);
            square = ingot_cast(c, square, sum ? ingot_dtype_of(sum) : ingot_dtype_of(square));
            sum = sum ? ingot_add(c, sum, square) : square;
        }
    if (!sum)
        return NULL;
    ingot_tensor *norm = ingot_add_c(c, ingot_sqrt(c, sum), 1e-6);
    return ingot_min_c(c, ingot_div(c, ingot_like(c, norm, s->o->clip), norm), 1);
}

/* The mean of the gradients of the last runs.  The sum begins again in the run behind the one that
 * changes weights: so what that one reads is the state's next value, on the state's own bytes. */
static ingot_tensor *gathered(OptimizerRun *s, ingot_tensor *w, ingot_tensor *g)
{
    ingot_context *c = s->c;
    ingot_tensor *sum = beside(s, w, "g");
    ingot_tensor *before = ingot_where(c, s->first, ingot_like(c, sum, 0), sum);
    ingot_tensor *next = ingot_add(c, before, ingot_mul_c(c, g, 1.0 / s->o->accumulate));
    ingot_state_next(c, sum, next);
    return next;
}

static void count_run(OptimizerRun *s)
{
    ingot_context *c = s->c;
    ingot_tensor *run = ingot_state(c, "train.run", INGOT_I64, 0, NULL);
    ingot_tensor *every = ingot_scalar_i(c, INGOT_I64, s->o->accumulate);
    ingot_tensor *next = ingot_mod(c, ingot_add_c(c, run, 1), every);
    ingot_state_next(c, run, next);
    s->first = ingot_eq(c, run, ingot_like(c, run, 0));
    s->last = s->changes = ingot_eq(c, next, ingot_like(c, next, 0));
}

/* Whether all elements of all gradients are finite, as one bool. */
static ingot_tensor *all_finite(ingot_context *c, int n, ingot_tensor *const *g)
{
    ingot_tensor *all = NULL;
    for (int i = 0; i < n; i++)
        if (g[i]) {
            ingot_tensor *size = ingot_abs(c, g[i]);
            ingot_tensor *good = ingot_lt(c, size, ingot_like(c, size, INFINITY));
            good = ingot_reduce(c, INGOT_REDUCE_AND, good, train_axes(good), false);
            all = all ? ingot_and(c, all, good) : good;
        }
    return all;
}

ingot_tensor *ingot_loss_scale(ingot_context *c, double first)
{
    return ingot_state_from(c, "train.scale", ingot_scalar_f(c, INGOT_F32, first));
}

/* Halved where a gradient is not finite, doubled after so many steps where all are; at most
 * 2^127 / 2^7, so that it stays finite. */
static void adapt_scale(OptimizerRun *s)
{
    enum { STEPS = 2000 };
    static const double most = 0x1p120;
    ingot_context *c = s->c;
    ingot_tensor *scale = s->o->loss_scale,
                 *count = ingot_state(c, "train.finite", INGOT_I64, 0, NULL),
                 *now = ingot_add_c(c, count, 1);
    ingot_tensor *grows = ingot_ge(c, now, ingot_like(c, now, STEPS)),
                 *zero = ingot_like(c, now, 0);
    ingot_tensor *more = ingot_min_c(c, ingot_mul_c(c, scale, 2), most);
    ingot_tensor *next = ingot_where(c, s->finite, ingot_where(c, grows, more, scale),
                                     ingot_mul_c(c, scale, 1.0 / 2));
    now = ingot_where(c, s->finite, ingot_where(c, grows, zero, now), zero);
    if (s->last) {
        next = ingot_where(c, s->last, next, scale);
        now = ingot_where(c, s->last, now, count);
    }
    ingot_state_next(c, scale, next);
    ingot_state_next(c, count, now);
}

/* The number of this step, from 1, where one is counted. */
static ingot_tensor *count_step(OptimizerRun *s)
{
    ingot_context *c = s->c;
    ingot_tensor *step = begun(s, "train.step", INGOT_I64, 0, NULL);
    ingot_tensor *now = ingot_add_c(c, step, 1);
    becomes(s, step, now);
    return now;
}

/* 1 - beta^t, or 1, in f64: in f32 that of 0.999 and a small t has four digits. */
static ingot_tensor *moment_fix(OptimizerRun *s, double beta, ingot_tensor *t)
{
    ingot_context *c = s->c;
    ingot_tensor *one = ingot_like(c, t, 1);
    return s->o->uncorrected ? one : ingot_sub(c, one, ingot_pow(c, ingot_like(c, t, beta), t));
}

static bool optimizer_check(ingot_context *c, int n, ingot_tensor *const *w, ingot_tensor *const *g,
                            ingot_tensor *rate)
{
    bool good = !ingot_is_poison(rate);
    for (int i = 0; i < n; i++) {
        if (ingot_is_poison(w[i]) || (g[i] && ingot_is_poison(g[i]))) {
            good = false;
        } else if (w[i]->op != OP_STATE) {
            ingot_error(c, INGOT_INVALID, "optimizer: weight %d is no state", i);
            good = false;
        }
    }
    int64_t one;
    if (good && (!ingot_dim_is_const(ingot_numel(c, rate), &one) || one != 1)) {
        ingot_error(c, INGOT_INVALID, "optimizer: the rate has to be one number");
        good = false;
    }
    return good;
}

void ingot_optimize(ingot_context *c, const ingot_optimizer *o, int n, ingot_tensor *const *weights,
                    ingot_tensor *const *gradients, ingot_tensor *rate)
{
    if (!optimizer_check(c, n, weights, gradients, rate))
        return;
    OptimizerRun s = {.c = c, .o = o};
    s.rate = train_wide(c, ingot_reshape_c(c, rate, 0, NULL));
    if (o->accumulate > 1)
        count_run(&s);
    ingot_tensor **g = ingot_alloc(c, ((size_t)n + 1) * sizeof *g);
    for (int i = 0; i < n; i++) {
        g[i] = gradients[i] ? train_wide(c, gradients[i]) : NULL;
        if (g[i] && o->loss_scale)
            g[i] = ingot_mul(c, g[i], as_type_of(&s, ingot_reciprocal(c, o->loss_scale), g[i]));
        if (g[i] && o->processes)
            g[i] = ingot_process_mean(c, g[i]);
        if (g[i] && o->accumulate > 1)
            g[i] = gathered(&s, weights[i], g[i]);
    }
    s.finite = o->loss_scale ? all_finite(c, n, g) : NULL;
    if (s.finite) {
        adapt_scale(&s);
        s.changes = s.last ? ingot_and(c, s.last, s.finite) : s.finite;
    }
    ingot_tensor *t = ingot_cast(c, count_step(&s), INGOT_F64);
    if (o->kind == INGOT_ADAM || o->kind == INGOT_ADAMW) {
        s.fix_m = moment_fix(&s, o->beta1, t);
        s.fix_v = moment_fix(&s, o->beta2, t);
    }
    s.scale = o->clip > 0 ? clip_scale(&s, n, g) : NULL;
    for (int i = 0; i < n; i++)
        if (g[i])
            step_weight(&s, weights[i], g[i]);
}
