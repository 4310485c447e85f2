/*
 * onnx_train.c - ONNX training operators: Gradient, and one step of Adagrad, Adam and Momentum.
 *
 * Inputs of a step: the rate R, the number of steps done T, then all tensors, all gradients, and
 * all states of the tensors (one list a state). Outputs: new tensors, then new states.
 */
#include <string.h>

#include "onnx.h"

typedef struct {
    ingot_tensor *rate, *t;         /* t: as a float, of the rate's type */
    ingot_tensor *x, *g, *state[2]; /* g with the gradient of the norm */
} OptimizerStep;

/* Reads step i of `count`; x, g and the states are lists of `count` tensors. */
static OptimizerStep step_in(Lowering *n, int i, int count, int n_state)
{
    OptimizerStep s = {.rate = reshape_scalar(n, n->in[0]), .x = n->in[2 + i]};
    s.t = as(n, reshape_scalar(n, n->in[1]), ingot_dtype_of(s.rate));
    ingot_tensor *decay = ingot_mul_c(n->c, s.x, attr_float(n, "norm_coefficient", 0));
    s.g = ingot_add(n->c, decay, n->in[2 + count + i]);
    for (int k = 0; k < n_state; k++)
        s.state[k] = n->in[2 + (2 + k) * count + i];
    return s;
}

/* x - y in x's type */
static ingot_tensor *less(Lowering *n, ingot_tensor *x, ingot_tensor *y)
{
    return ingot_sub(n->c, x, as(n, y, ingot_dtype_of(x)));
}

typedef ingot_tensor *OptimizerFn(Lowering *, const OptimizerStep *, ingot_tensor **state);

static ingot_tensor *each(Lowering *n, int n_state, OptimizerFn *fn)
{
    int lists = 2 + n_state, count = (n->n_in - 2) / lists;
    if (n->n_in < 2 + lists || (n->n_in - 2) % lists || n->n_out > count * (1 + n_state))
        return fault(n, "it has %d inputs and %d outputs, which does not fit", n->n_in, n->n_out);
    for (int i = 0; i < n->n_in; i++)
        if (!n->in[i])
            return fault(n, "input %d is missing", i);
    for (int i = 0; i < count; i++) {
        ingot_tensor *state[2];
        OptimizerStep s = step_in(n, i, count, n_state);
        ingot_tensor *x = fn(n, &s, state);
        if (i < n->n_out)
            n->out[i] = x;
        for (int k = 0; k < n_state; k++)
            if ((1 + k) * count + i < n->n_out)
                n->out[(1 + k) * count + i] = state[k];
    }
    return n->n_out ? n->out[0] : ingot_poison(n->c);
}

/* h' = h + g^2, x' = x - r / (1 + t decay) g / (sqrt(h') + epsilon) */
static ingot_tensor *adagrad(Lowering *n, const OptimizerStep *s, ingot_tensor **state)
{
    ingot_tensor *slow =
        ingot_add_c(n->c, ingot_mul_c(n->c, s->t, attr_float(n, "decay_factor", 0)), 1);
    ingot_tensor *rate = ingot_div(n->c, s->rate, slow);
    state[0] = ingot_add(n->c, s->state[0], ingot_mul(n->c, s->g, s->g));
    ingot_tensor *root =
        ingot_add_c(n->c, ingot_sqrt(n->c, state[0]), attr_float(n, "epsilon", 1e-6));
    ingot_tensor *move = ingot_mul(n->c, as(n, rate, ingot_dtype_of(s->g)), s->g);
    return less(n, s->x, ingot_div(n->c, move, root));
}

ingot_tensor *onnx_adagrad(Lowering *n)
{
    return each(n, 1, adagrad);
}

/* 1 - base^t */
static ingot_tensor *bias(Lowering *n, double base, ingot_tensor *t)
{
    return ingot_sub(n->c, like(n, t, 1), ingot_pow(n->c, like(n, t, base), t));
}

/* v' = a v + (1 - a) g, h' = b h + (1 - b) g^2,
 * x' = x - r sqrt(1 - b^t) / (1 - a^t) v' / (sqrt(h') + epsilon) */
static ingot_tensor *adam(Lowering *n, const OptimizerStep *s, ingot_tensor **state)
{
    double a = attr_float(n, "alpha", 0.9), b = attr_float(n, "beta", 0.999);
    ingot_tensor *square = ingot_mul(n->c, s->g, s->g);
    state[0] = ingot_add(n->c, ingot_mul_c(n->c, s->state[0], a), ingot_mul_c(n->c, s->g, 1 - a));
    state[1] = ingot_add(n->c, ingot_mul_c(n->c, s->state[1], b), ingot_mul_c(n->c, square, 1 - b));
    ingot_tensor *root =
        ingot_add_c(n->c, ingot_sqrt(n->c, state[1]), attr_float(n, "epsilon", 1e-6));
    ingot_tensor *rate = ingot_mul(n->c, s->rate, ingot_sqrt(n->c, bias(n, b, s->t)));
    rate = ingot_div(n->c, rate, bias(n, a, s->t));
    rate = ingot_where(n->c, ingot_gt(n->c, s->t, like(n, s->t, 0)), rate, s->rate);
    ingot_tensor *move =
        ingot_mul(n->c, as(n, rate, ingot_dtype_of(s->x)), ingot_div(n->c, state[0], root));
    ingot_tensor *x = less(n, s->x, move);
    return ingot_mul_c(n->c, x, 1 - attr_float(n, "norm_coefficient_post", 0));
}

ingot_tensor *onnx_adam(Lowering *n)
{
    return each(n, 2, adam);
}

/* v' = a v + (t > 0 ? b : 1) g, x' = x - r v', Nesterov's: x - r (g + a v') */
static ingot_tensor *momentum(Lowering *n, const OptimizerStep *s, ingot_tensor **state)
{
    double a = attr_float(n, "alpha", 0);
    ingot_tensor *later = ingot_gt(n->c, s->t, like(n, s->t, 0));
    ingot_tensor *b =
        ingot_where(n->c, later, like(n, s->g, attr_float(n, "beta", 0)), like(n, s->g, 1));
    state[0] = ingot_add(n->c, ingot_mul_c(n->c, s->state[0], a), ingot_mul(n->c, b, s->g));
    ingot_tensor *move = state[0];
    if (attr_is(n, "mode", "standard", "nesterov"))
        move = ingot_add(n->c, s->g, ingot_mul_c(n->c, move, a));
    return less(n, s->x, ingot_mul(n->c, as(n, s->rate, ingot_dtype_of(move)), move));
}

ingot_tensor *onnx_momentum(Lowering *n)
{
    return each(n, 1, momentum);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The tensor that a list names, which has to be that input: at other values than those of the
 * graph its gradient is not known. NULL after an error. */
static ingot_tensor *named_input(Lowering *n, const char *name, int input)
{
    Value *v = scope_find(n->model, n->scope, name);
    if (!v || v->kind != VALUE_TENSOR)
        fault(n, "there is no tensor '%s'", name);
    else if (v->tensor != n->in[input])
        unsupported(n, "input %d is not '%s' itself, but another tensor in its place", input, name);
    else
        return v->tensor;
    return NULL;
}

/* dy/dx for each x of xs, of all elements of y together. */
ingot_tensor *onnx_gradient(Lowering *n)
{
    const char *const *xs, *const *zs, *name = attr_string(n, "y", NULL);
    int nx = attr_strings(n, "xs", &xs), nz = attr_strings(n, "zs", &zs);
    nz = nz < 0 ? 0 : nz;
    if (nx < 1 || !name || n->n_in != nx + nz || n->n_out > nx)
        return fault(
            n,
            "it has %d inputs and %d outputs; with %d tensors in 'xs' and %d in 'zs' there "
            "must be %d, and at most %d",
            n->n_in, n->n_out, nx, nz, nx + nz, nx);
    ingot_tensor **x = ingot_alloc(n->c, (size_t)nx * sizeof *x),
                 **g = ingot_alloc(n->c, (size_t)nx * sizeof *g);
    for (int i = 0; i < nx + nz; i++) {
        ingot_tensor *t = named_input(n, i < nx ? xs[i] : zs[i - nx], i);
        if (!t)
            return ingot_poison(n->c);
        if (i < nx)
            x[i] = t;
    }
    Value *y = scope_find(n->model, n->scope, name);
    if (!y || y->kind != VALUE_TENSOR)
        return fault(n, "there is no tensor '%s'", name);
    ingot_gradient_of(n->c, NULL, 1, &y->tensor, NULL, nx, x, g);
    for (int i = 0; i < nx; i++) {
        g[i] = g[i] ? g[i] : ingot_mul_c(n->c, x[i], 0);
        if (i < n->n_out)
            n->out[i] = g[i];
    }
    return g[0];
}
