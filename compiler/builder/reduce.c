/* reduce.c - reductions: monoids over a set of axes, running ones along an axis, means, arg max and
 * min.
 *
 * A REDUCE node keeps its reduced axes as size 1; the public functions reshape them away.  Axes
 * of size 1 are not reduced (one element is its own sum), axes of size 0 give the identity. */
#include <math.h>
#include <string.h>

#include "builder.h"
#include "gradient.h"
#include "ops.h"

static bool monoid_accepts(Context *c, ingot_reduce_op m, Node *x)
{
    char kind = dtype_info[x->dtype].kind;
    bool bits = m == INGOT_REDUCE_AND || m == INGOT_REDUCE_OR || m == INGOT_REDUCE_XOR;
    bool ok = kind == 'i' || kind == 'u' || (kind == 'f' && !bits) || (kind == 'b' && bits);
    if (!ok)
        ingot_error(c, kind == 'c' || kind == 's' ? INGOT_UNSUPPORTED : INGOT_INVALID,
                    "reduction over %s: cast it first", dtype_info[x->dtype].name);
    return ok;
}

/* The reduction of `count` copies of k, where that is exact; else NULL. */
static Node *reduce_uniform(Context *c, ingot_reduce_op m, Node *k, Node *count)
{
    ingot_dtype d = (ingot_dtype)k->dtype;
    if (m == INGOT_REDUCE_MAX || m == INGOT_REDUCE_MIN || m == INGOT_REDUCE_AND ||
        m == INGOT_REDUCE_OR)
        return count->lo > 0 ? k : NULL;
    if (count->op != OP_CONST || m != INGOT_REDUCE_ADD)
        return NULL;
    if (!dtype_is_float(d))
        return node_const_i(c, d, (int64_t)((uint64_t)k->arg.i * (uint64_t)count->arg.i));
    double v = node_float(k), sum = v * (double)count->arg.i;
    bool exact = v == floor(v) && fabs(sum) <= 16777216.0; /* integers within 24 bits */
    return exact ? node_const_f(c, d, sum) : NULL;
}

static Node *reduce_keep(Context *c, ingot_reduce_op m, Node *x, unsigned axes)
{
    Node *dims[INGOT_MAX_RANK], *count = idx(c, 1), *one = idx(c, 1);
    unsigned left = 0;
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->shape[i];
        if (!(axes & (1u << i)) || dims[i] == one)
            continue;
        left |= 1u << i;
        count = idx_mul(c, count, dims[i]);
        dims[i] = one;
    }
    if (left == 0)
        return x;
    ingot_dtype d = (ingot_dtype)x->dtype;
    if (shape_is_empty(x->rank, dims))
        return uniform_make(c, node_const_zero(c, d), x->rank, dims);
    if (idx_is(count, 0))
        return uniform_make(c, monoid_identity(c, m, d), x->rank, dims);
    Node *k = uniform(x);
    if (k && (k = reduce_uniform(c, m, k, count)) != NULL)
        return uniform_make(c, k, x->rank, dims);
    Arg arg = {.i = (int64_t)m | (int64_t)left << 8};
    return node_make(c, OP_REDUCE, d, arg, 1, &x, x->rank, dims);
}

/* The monoid and the tensor fit each other; maxima and minima of bools are OR and AND. */
static bool monoid_check(Context *c, const char *what, ingot_reduce_op *m, Node *x)
{
    if ((int)*m < 0 || *m >= INGOT_REDUCE_COUNT) {
        ingot_error(c, INGOT_INVALID, "%s %d does not exist", what, (int)*m);
        return false;
    }
    if (x->dtype == INGOT_BOOL && *m == INGOT_REDUCE_MAX)
        *m = INGOT_REDUCE_OR;
    if (x->dtype == INGOT_BOOL && *m == INGOT_REDUCE_MIN)
        *m = INGOT_REDUCE_AND;
    return monoid_accepts(c, *m, x);
}

ingot_tensor *ingot_reduce(ingot_context *c, ingot_reduce_op m, ingot_tensor *x, unsigned axes,
                           bool keepdims)
{
    if (poisoned(x))
        return x;
    if (axes >> x->rank)
        return ingot_error(c, INGOT_INVALID, "reduction over axes 0x%x of a tensor of rank %d",
                           axes, x->rank);
    if (!monoid_check(c, "reduction", &m, x))
        return c->poison;
    Node *r = reduce_keep(c, m, x, axes), *dims[INGOT_MAX_RANK];
    if (keepdims)
        return r;
    int rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (!(axes & (1u << i)))
            dims[rank++] = x->shape[i];
    return ingot_reshape(c, r, rank, dims);
}

static uint64_t max_first_key(const Node *n)
{
    return context_key(MEMO_MAX_FIRST, n->id);
}

ingot_tensor *ingot_max_first(ingot_context *c, ingot_tensor *x, unsigned axes, bool keepdims)
{
    Node *y = ingot_reduce(c, INGOT_REDUCE_MAX, x, axes, keepdims), *r = y;
    while (r->op == OP_RESHAPE && r != x)
        r = r->src[0];
    if (!poisoned(y) && r->op == OP_REDUCE && r != x && r->src[0] == x)
        map_put(&c->memo, max_first_key(r), c);
    return y;
}

bool is_max_first(Context *c, const Node *n)
{
    return map_get(&c->memo, max_first_key(n)) != NULL;
}

ingot_tensor *ingot_scan(ingot_context *c, ingot_reduce_op m, ingot_tensor *x, int axis)
{
    if (poisoned(x))
        return x;
    if (axis < 0 || axis >= x->rank)
        return ingot_error(c, INGOT_INVALID, "scan: axis %d of a tensor of rank %d", axis, x->rank);
    if (!monoid_check(c, "scan", &m, x))
        return c->poison;
    Node *k = uniform(x);
    bool same = k && m != INGOT_REDUCE_ADD && m != INGOT_REDUCE_MUL && m != INGOT_REDUCE_XOR;
    if (same || idx_is(x->shape[axis], 1) || shape_is_empty(x->rank, x->shape))
        return x;
    Arg arg = {.i = (int64_t)m | INT64_C(1) << (8 + axis)};
    return node_make(c, OP_SCAN, x->dtype, arg, 1, &x, x->rank, x->shape);
}

ingot_tensor *ingot_sum(ingot_context *c, ingot_tensor *x, unsigned axes, bool keepdims)
{
    return ingot_reduce(c, INGOT_REDUCE_ADD, x, axes, keepdims);
}

static Node *count_along(Context *c, const Node *x, unsigned axes)
{
    Node *count = idx(c, 1);
    for (int i = 0; i < x->rank; i++)
        if (axes & (1u << i))
            count = idx_mul(c, count, x->shape[i]);
    return count;
}

Node *sum_rows(Context *c, Node *x, unsigned axes, bool keepdims)
{
    enum { LONG = 4096 };
    int last = x->rank - 1;
    while (last > 0 && !(axes >> last & 1))
        last--;
    if (count_along(c, x, axes)->hi < LONG || axes == 1u << last)
        return ingot_sum(c, x, axes, keepdims);
    x = ingot_sum(c, x, 1u << last, true);
    return ingot_sum(c, x, axes, keepdims);
}

/* Sum / count, in f32 for the narrow floats: their sum may be out of range where the mean is
 * not. */
ingot_tensor *ingot_mean(ingot_context *c, ingot_tensor *x, unsigned axes, bool keepdims)
{
    if (poisoned(x))
        return x;
    Node *count = count_along(c, x, axes);
    ingot_dtype d = (ingot_dtype)x->dtype, wide = dtype_info[d].compute;
    Node *sum = sum_rows(c, ingot_cast(c, x, wide), axes, keepdims);
    Node *n = ingot_cast(c, ingot_from_dim(c, count), wide);
    return ingot_cast(c, ingot_div(c, sum, n), d);
}

/* A reduction of (value, index) along an axis. A NaN is the extreme, as in numpy. */
static Node *arg_extreme(Context *c, bool greatest, Node *x, int axis, bool keepdims, bool last)
{
    if (poisoned(x))
        return x;
    if (axis < 0 || axis >= x->rank)
        return ingot_error(c, INGOT_INVALID, "arg%s: axis %d of a tensor of rank %d",
                           greatest ? "max" : "min", axis, x->rank);
    Node *size = x->shape[axis], *dims[INGOT_MAX_RANK];
    memcpy((void *)dims, (void *)(uintptr_t)x->shape, (size_t)x->rank * sizeof *dims);
    dims[axis] = idx(c, 1);
    if (idx_is(size, 0) && !c->region && !shape_is_empty(x->rank, dims))
        return ingot_error(c, INGOT_INVALID, "arg%s over axis %d of size 0",
                           greatest ? "max" : "min", axis);
    if (x->dtype == INGOT_BOOL)
        x = ingot_cast(c, x, INGOT_U8);
    if (!monoid_accepts(c, INGOT_REDUCE_MAX, x))
        return c->poison;
    const char *what =
        arena_printf(c->arena, "the size of axis %d, of which it gives a place,", axis);
    if (idx_is(size, 0) && !shape_is_empty(x->rank, dims))
        require_or_skip(c, size, dims[axis], dims[axis], what);
    else if (!require_place(c, size, x->rank, dims, what))
        return c->poison;
    Node *index = node_const_i(c, INGOT_I64, 0);
    if (size->hi <= 1 || shape_is_empty(x->rank, dims)) {
        index = uniform_make(c, index, x->rank, dims);
    } else {
        int monoid = greatest ? (last ? MONOID_ARGMAX_LAST : MONOID_ARGMAX)
                              : (last ? MONOID_ARGMIN_LAST : MONOID_ARGMIN);
        Node *state[2] = {x, ingot_iota(c, x->rank, x->shape, axis)};
        if (size->hi <= INT32_MAX)
            state[1] = ingot_cast(c, state[1], INGOT_I32);
        index = node_make(c, OP_REDUCE, state[1]->dtype, reduce_arg(monoid, 1u << axis, 1), 2,
                          state, x->rank, dims);
        index = ingot_cast(c, index, INGOT_I64);
    }
    if (keepdims)
        return index;
    for (int i = axis; i + 1 < x->rank; i++)
        dims[i] = x->shape[i + 1];
    return ingot_reshape(c, index, x->rank - 1, dims);
}

ingot_tensor *ingot_argmax(ingot_context *c, ingot_tensor *x, int axis, bool keepdims, bool last)
{
    return arg_extreme(c, true, x, axis, keepdims, last);
}

ingot_tensor *ingot_argmin(ingot_context *c, ingot_tensor *x, int axis, bool keepdims, bool last)
{
    return arg_extreme(c, false, x, axis, keepdims, last);
}
