/* pad_dot.c - a sum of products of bytes becomes one that is taken by fours.
 *
 *     sum over k < 7 of x[2 i + k] * w[k]
 *         -> sum over k < 8 of x[2 i + k] * w'[k]       w' = w, and then 0
 *
 * A unit for bytes adds four products at once (igrt_dot.h), of neighbours: where no axis of the sum
 * is a multiple of four (three channels, windows of 3 or 7) its terms would be multiplied one by
 * one, as floats.  One axis is rounded up.  What is read of x beyond it are its neighbours, or the
 * border of its buffer (layouts.c), and is multiplied by zero.  More than half of what the unit
 * computes is wanted then: it is as many times faster as four times that. */
#include <string.h>

#include "eval.h"
#include "rewrite.h"

enum { FEWEST = 3, MANY_USES = 8 };

/* What lies behind a tensor along an axis where no movement puts anything there; NULL: it cannot be
 * made longer. */
typedef Node *Behind(Rewrite *, Node *, int axis, int64_t more);

static Node *padded_behind(Rewrite *r, Node *n, int axis, int64_t more)
{
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    hi[axis] = more;
    return ingot_pad_c(r->c, n, lo, hi, 0);
}

/* Bytes that are computed, and so stored, in an order that their readers choose, where there is
 * room for a border, which they may have already?  Without lanes inputs are copied for that
 * (pad_inputs.c). */
static bool stored_bytes(const Rewrite *r, Node *x)
{
    while ((x->dtype == INGOT_I32 && op_is_alu(x->op)) || x->op == OP_PERMUTE || x->op == OP_PAD)
        x = x->src[0];
    return op_is_alu(x->op) || (r->scalar && (x->op == OP_INPUT || x->op == OP_KEEP));
}

/* An input, moved: a copy of it pays where elements are used often. */
static bool is_moved_input(Node *x)
{
    while (is_move(x) || (x->dtype == INGOT_I32 && op_is_alu(x->op)))
        x = x->src[0];
    return x->op == OP_INPUT;
}

static Node *border_behind(Rewrite *r, Node *n, int axis, int64_t more)
{
    return stored_bytes(r, n->op == OP_PAD ? n->src[0] : n) ? padded_behind(r, n, axis, more)
                                                            : NULL;
}

/* Of (i32)w: bytes of the file with zeros behind them. */
static Node *zeros_behind(Rewrite *r, Node *n, int axis, int64_t more)
{
    if (n->op != OP_CAST)
        return NULL;
    int64_t dims[INGOT_MAX_RANK], bytes = 1;
    Node *w = padded_behind(r, n->src[0], axis, more);
    Interp *ip = interp_new(r->c);
    const void *from = interp_eval(ip, w, dims);
    for (int i = 0; i < w->rank; i++)
        bytes *= dims[i];
    uint8_t *to = from ? NEWN(r->c->arena, uint8_t, bytes) : NULL;
    if (from)
        memcpy(to, from, (size_t)bytes);
    interp_free(ip);
    const char *name = n->src[0]->op == OP_DATA ? ((const Data *)n->src[0]->arg.ptr)->name : NULL;
    w = from ? ingot_data(r->c, name, (ingot_dtype)w->dtype, w->rank, dims, to) : NULL;
    return w ? ingot_cast(r->c, w, INGOT_I32) : NULL;
}

/* ---- tensors that are longer along an axis --------------------------------------------------- */

/* An index tensor with these dims: arithmetic on coordinates goes on as it began. */
static Node *indices(Context *c, Node *t, int rank, Node *const *dims)
{
    Node *src[4];
    if (t->op == OP_IOTA)
        return ingot_cast(c, ingot_iota(c, rank, dims, (int)t->arg.i), (ingot_dtype)t->dtype);
    if (one_number(t))
        return ingot_expand(c, ingot_reshape(c, one_number(t), 0, NULL), rank, dims);
    if (!op_is_alu(t->op) || t->op == OP_CUSTOM || t->nsrc > 4)
        return NULL;
    for (uint32_t i = 0; i < t->nsrc; i++)
        if (!(src[i] = indices(c, t->src[i], rank, dims)))
            return NULL;
    return node_make(c, t->op, (ingot_dtype)t->dtype, t->arg, (int)t->nsrc, src, rank, dims);
}

static Node *longer(Rewrite *, Node *, int axis, int64_t more, Behind *);

/* A gather with these dims; what it reads is made as long as that takes. */
static Node *longer_gather(Rewrite *r, Node *n, Node *const *dims, Behind *behind)
{
    Context *c = r->c;
    Node *src[1 + INGOT_MAX_RANK] = {n->src[0]}, *at[INGOT_MAX_RANK];
    for (int i = 0; i < n->rank; i++)
        at[i] = range_new(c, RANGE_ASKED + i, dims[i]);
    for (int i = 0; i < n->src[0]->rank && src[0]; i++) {
        Node *last = src[1 + i] = indices(c, n->src[1 + i], n->rank, dims);
        last = last ? index_at(c, last, at, 0) : NULL;
        if (!last)
            return NULL;
        int64_t size = n->src[0]->shape[i]->hi,
                more = node_cast(c, last, INGOT_INDEX)->hi + 1 - size;
        if (more > 0 && !idx_value(n->src[0]->shape[i], &size))
            return NULL;
        if (more > 0)
            src[0] = longer(r, src[0], i, more, behind);
    }
    return src[0] ? ingot_gather(c, src[0], src + 1) : NULL;
}

/* Bytes that are padded as bytes, and then widened: their border becomes larger. */
static bool widens_padded(const Node *n)
{
    return n->op == OP_CAST && n->dtype == INGOT_I32 && n->src[0]->op == OP_PAD;
}

/* n, and more behind it along the axis: its neighbours there, where n is a part of something. NULL:
 * it cannot be. */
static Node *longer(Rewrite *r, Node *n, int axis, int64_t more, Behind *behind)
{
    Context *c = r->c;
    Node *dims[INGOT_MAX_RANK], *x = NULL;
    memcpy((void *)dims, (void *)(uintptr_t)n->shape, (size_t)n->rank * sizeof *dims);
    dims[axis] = idx_add(c, dims[axis], idx(c, more));
    switch (n->op) {
    case OP_EXPAND:
        x = n->src[0];
        if (x->shape[axis] == n->shape[axis])
            x = longer(r, x, axis, more, behind);
        return x ? ingot_expand(c, x, n->rank, dims) : NULL;
    case OP_RESHAPE: {
        const int below = axis_below(n, axis);
        if (below < 0 || n->src[0]->shape[below] != n->shape[axis]) /* it is a part of one */
            return NULL;
        x = longer(r, n->src[0], below, more, behind);
        return x ? ingot_reshape(c, x, n->rank, dims) : NULL;
    }
    case OP_PERMUTE: {
        int perm[INGOT_MAX_RANK];
        for (int i = 0; i < n->rank; i++)
            perm[i] = ((const Perm *)n->arg.ptr)->axis[i];
        x = longer(r, n->src[0], perm[axis], more, behind);
        return x ? ingot_permute(c, x, perm) : NULL;
    }
    case OP_GATHER: return longer_gather(r, n, dims, behind);
    case OP_CAST:
        if (!widens_padded(n))
            return behind(r, n, axis, more);
        x = longer(r, n->src[0], axis, more, behind);
        return x ? ingot_cast(c, x, INGOT_I32) : NULL;
    default: return behind(r, n, axis, more);
    }
}

/* ---- the rule -------------------------------------------------------------------------------- */

static int64_t rounded_up(int64_t extent)
{
    return (extent + 3) / 4 * 4;
}

/* Are neighbours along the axis neighbours of what is stored?  window: others along the same axis
 * of that are for other results. */
static bool walks(Rewrite *r, Node *x, int axis, bool *window)
{
    Context *c = r->c;
    Node *coords[INGOT_MAX_RANK], *at[2][INGOT_MAX_RANK], *inside;
    int64_t extent, step;
    int moves = 0;
    if (!idx_value(x->shape[axis], &extent))
        return false;
    for (int i = 0; i < x->rank; i++)
        coords[i] = range_new(c, RANGE_ASKED + i, i == axis ? idx(c, extent - 1) : x->shape[i]);
    Node *k = coords[axis], *from = source_of(c, x, coords, at[0], &inside);
    coords[axis] = idx_add(c, k, idx(c, 1));
    if (source_of(c, x, coords, at[1], &inside) != from || !stored_bytes(r, from))
        return false;
    *window = false;
    for (int i = 0; i < from->rank; i++) {
        if (!idx_value(idx_sub(c, at[1][i], at[0][i]), &step) || step < 0 || step > 1)
            return false;
        moves += (int)step;
        *window |= step && !idx_value(idx_sub(c, at[0][i], k), &step);
    }
    return moves == 1;
}

/* The axis of the sum along which to take fours, or -1: one that is no window, for then what is
 * stored lies as its writer has it too; of several that of which the least is added, the last of
 * equals. */
static int axis_of_fours(Rewrite *r, Node *n, Node *x, Node *w)
{
    Node *compact = compact_form(r, w);
    int best = -1;
    double most = 0;
    for (int d = 0; compact && d < compact->rank; d++) {
        int64_t extent;
        bool window;
        if (!(reduce_axes(n) >> d & 1) || !idx_value(compact->shape[d], &extent) ||
            extent < FEWEST || !walks(r, x, d, &window))
            continue;
        double wanted = (double)extent / (double)rounded_up(extent) + (!window && extent > 4);
        best = wanted >= most ? d : best;
        most = wanted >= most ? wanted : most;
    }
    return best;
}

Node *fours(Rewrite *r, Node *n)
{
    Context *c = r->c;
    Node *product = n->src[0];
    if (!r->fours || !sums_integers(n) || takes_dot(r, product, reduce_axes(n)))
        return NULL;
    for (int i = 0; i < 2; i++) {
        Node *x = product->src[1 - i], *w = product->src[i];
        if (!is_weight(w) || !is_byte(w, false) || is_weight(x) || !is_byte(x, true) ||
            ((!r->scalar || is_moved_input(x)) && uses_of(n, x) < MANY_USES))
            continue;
        int64_t extent;
        int axis = axis_of_fours(r, n, x, w);
        if (axis < 0 || !idx_value(product->shape[axis], &extent))
            continue;
        x = longer(r, x, axis, rounded_up(extent) - extent, border_behind);
        w = x ? longer(r, w, axis, rounded_up(extent) - extent, zeros_behind) : NULL;
        if (w && takes_dot(r, ingot_mul(c, x, w), reduce_axes(n)))
            return ingot_reduce(c, INGOT_REDUCE_ADD, ingot_mul(c, x, w), reduce_axes(n), true);
    }
    return NULL;
}
