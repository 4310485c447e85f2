/* mask_bounds.c - loops end where a mask leaves nothing.
 *
 *     s[j] = where(j <= i, x[j], -inf)        a row of scores, in a place; or the lowest float
 *     m    = max over j of s[j]               -inf is its identity; no x[j] is
 *                                             below the lowest float
 *     e[j] = exp(s[j] - m)                    0 beyond i, in a place
 *     y    = sum over j of e[j] v[j]          0 is its identity
 *
 * All loops over j end at i + 1, and at the next whole block of their copies and lanes.  A loop
 * over a reduced range does so where its body, evaluated for all j >= limit, is the identity:
 * comparisons of coordinates are known there, and so is what they decide.  One that fills a place
 * does so if all that read the place do.  The limit may depend on the ranges of results; of the
 * copies and lanes of a loop nest, which share their loops, the greatest counts.
 *
 * What a mask leaves out is taken for finite (docs/numerics.md): 0 times an element that is never
 * read is 0.  So a nest without opts, which others are judged by, has all of its loops. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lower.h"

/* ---- what a value is beyond a limit ---------------------------------------------------------- */

/* A comparison of coordinates as range has it: `beyond` from a limit on. */
static bool threshold(Context *c, Node *compare, Node *range, Node **limit, bool *beyond)
{
    int64_t stride;
    if ((compare->op != OP_LT && compare->op != OP_LE) || compare->src[0]->dtype != INGOT_INDEX)
        return false;
    Node *d = idx_sub(c, compare->src[1], compare->src[0]), *zero = idx(c, 0), *at;
    if (!depends_on(d, range) || !range_stride(c, d, range, &stride) || llabs(stride) != 1)
        return false;
    at = substitute(c, d, 1, &range, &zero);
    *beyond = stride > 0;
    if (stride > 0) /* 0 < at + range: from 1 - at on */
        *limit = idx_sub(c, idx(c, compare->op == OP_LT), at);
    else /* 0 < at - range: up to at - 1 */
        *limit = idx_add(c, at, idx(c, compare->op == OP_LE));
    return !depends_on(*limit, range);
}

static Node *in_place(Node *stage, Node *range)
{
    int own = (int)stage->arg.i;
    for (int i = 0; i < own; i++)
        if (stage->src[1 + own + i] == range)
            return stage->src[1 + i];
    return NULL;
}

enum {
    MOST_NODES = 2000
}; /* looked at below a reduce: what is shared is looked at again for each use */

/* Exporters write the lowest float for minus infinity.  e^(lowest - m) is 0 where m is another
 * number: where something of the row is not masked, which has to be a sum, or made of sums
 * alone. */
static bool is_lowest(const Node *n)
{
    return n && n->op == OP_CONST && n->dtype == INGOT_F32 && node_float(n) == -(double)FLT_MAX;
}

static bool is_made_of_sums(Node *n, int *left)
{
    enum { MUCH = 1 << 20 };
    if (--*left < 0 || (n->op == OP_REDUCE && n->arg.i != INGOT_REDUCE_ADD))
        return false;
    if (n->op == OP_REDUCE)
        return true;
    if (n->op == OP_CONST)
        return fabs(node_float(n)) < MUCH;
    if (n->op == OP_STAGE)
        return is_made_of_sums(n->src[0], left);
    if (n->op != OP_ADD && n->op != OP_SUB && n->op != OP_MUL && n->op != OP_DIV)
        return false;
    return is_made_of_sums(n->src[0], left) && is_made_of_sums(n->src[1], left);
}

/* The greatest of a row, or another number where that is minus infinity. */
static bool is_greatest(const Node *n)
{
    if (n->op == OP_WHERE && n->src[0]->op == OP_EQ && n->src[0]->src[0] == n->src[2] &&
        n->src[1]->op == OP_CONST)
        n = n->src[2];
    return n->op == OP_REDUCE && n->arg.i == INGOT_REDUCE_MAX;
}

static Node *value_beyond(const Kernel *, Node *, Node *range, Node *limit, int *left);

/* Where a buffer has what its writer computed, and not what a mask left there (KernelArg.beyond):
 * of a load a comparison of coordinates, as a mask's. NULL: nothing is known. */
static Node *written_where(const Kernel *k, const Node *load)
{
    if (load->op != OP_LOAD || load->src[0]->op != OP_BUFFER || !node_is_const_i(load->src[1], 1))
        return NULL;
    const Beyond *b = &k->args[load->src[0]->arg.i].beyond;
    Node *const *at = load->src + first_coord(load);
    if (!b->from)
        return NULL;
    Node *end = b->row < 0 ? b->from : idx_add(k->c, at[b->row], b->from);
    return node_alu2(k->c, OP_LT, INGOT_BOOL, at[b->axis], end);
}

/* 1 or 0 where the condition is known for range >= limit, else -1. */
static int condition_beyond(const Kernel *k, Node *n, Node *range, Node *limit, int *left)
{
    Context *c = k->c;
    Node *from;
    bool beyond;
    int64_t above;
    if (--*left < 0)
        return -1;
    if (threshold(c, n, range, &from, &beyond))
        return idx_value(idx_sub(c, limit, from), &above) && above >= 0 ? beyond : -1;
    if (n->op == OP_ISNAN)
        return value_beyond(k, n->src[0], range, limit, left) ? 0 : -1;
    if (n->op != OP_AND && n->op != OP_OR && n->op != OP_NOT)
        return -1;
    int x = condition_beyond(k, n->src[0], range, limit, left);
    if (n->op == OP_NOT)
        return x < 0 ? -1 : !x;
    int y = condition_beyond(k, n->src[1], range, limit, left), decides = n->op == OP_OR;
    return x == decides || y == decides ? decides : x < 0 || y < 0 ? -1 : !decides;
}

/* The constant, no NaN, that a value of floats is for range >= limit, if all that the mask leaves
 * out is finite; NULL: none. */
static Node *value_beyond(const Kernel *k, Node *n, Node *range, Node *limit, int *left)
{
    Context *c = k->c;
    if (--*left < 0 || !dtype_is_float((ingot_dtype)n->dtype) || n->op == OP_REDUCE)
        return NULL;
    if (n->op == OP_CONST)
        return isnan(node_float(n)) ? NULL : n;
    if (n->op == OP_STAGE) {
        Node *own = in_place(n, range);
        return own ? value_beyond(k, n->src[0], own, limit, left) : NULL;
    }
    if (n->op == OP_LOAD) {
        Node *written = written_where(k, n);
        return written && condition_beyond(k, written, range, limit, left) == 0
                   ? node_const_f(c, (ingot_dtype)n->dtype, k->args[n->src[0]->arg.i].beyond.value)
                   : NULL;
    }
    if (n->op == OP_WHERE) {
        int known = condition_beyond(k, n->src[0], range, limit, left);
        Node *a = known ? value_beyond(k, n->src[1], range, limit, left) : NULL;
        Node *b = known == 1 ? a : value_beyond(k, n->src[2], range, limit, left), *from;
        bool beyond, masks = n->src[0]->op == OP_NOT
                                 ? threshold(c, n->src[0]->src[0], range, &from, &beyond)
                                 : threshold(c, n->src[0], range, &from, &beyond);
        if (known >= 0 && is_lowest(known ? a : b))
            return masks && from->lo >= 1 && is_made_of_sums(n->src[known ? 2 : 1], left)
                       ? known ? a : b
                       : NULL;
        return known == 0 || a == b ? b : NULL;
    }
    Node *x = n->nsrc > 0 && n->nsrc <= 2 && op_is_alu(n->op)
                  ? value_beyond(k, n->src[0], range, limit, left)
                  : NULL;
    Node *y =
        n->nsrc == 2 && op_is_alu(n->op) ? value_beyond(k, n->src[1], range, limit, left) : NULL;
    double of_x = x ? node_float(x) : NAN, of_y = y ? node_float(y) : NAN;
    ingot_dtype d = (ingot_dtype)n->dtype;
    switch (n->op) {
    case OP_CAST: return x ? node_const_f(c, d, of_x) : NULL;
    case OP_EXP: return of_x == -INFINITY || is_lowest(x) ? node_const_f(c, d, 0) : NULL;
    case OP_ADD:
        if (is_lowest(x) || is_lowest(y))
            return is_made_of_sums(n->src[is_lowest(x)], left) ? is_lowest(x) ? x : y : NULL;
        return isinf(of_x) && !isinf(of_y) ? x : isinf(of_y) && !isinf(of_x) ? y : NULL;
    case OP_SUB:
        if (is_lowest(x))
            return is_greatest(n->src[1]) ? x : NULL;
        return isinf(of_x) && !isinf(of_y) ? x : NULL;
    case OP_MUL: return of_x == 0 ? x : of_y == 0 ? y : NULL;
    case OP_DIV: return of_x == 0 ? x : NULL;
    default: return NULL;
    }
}

/* Some limit that a comparison below a value gives: it may be that of another mask, which then
 * proves nothing. */
static Node *limit_below(const Kernel *k, Node *n, Node *range, int *left)
{
    Node *limit;
    bool beyond;
    if (--*left < 0 || n->op == OP_REDUCE || n->dtype == INGOT_INDEX)
        return NULL;
    if (threshold(k->c, n, range, &limit, &beyond))
        return limit;
    if (n->op == OP_LOAD) {
        Node *written = written_where(k, n);
        return written && threshold(k->c, written, range, &limit, &beyond) ? limit : NULL;
    }
    if (n->op == OP_STAGE) {
        Node *own = in_place(n, range);
        return own ? limit_below(k, n->src[0], own, left) : NULL;
    }
    for (uint32_t i = 0; i < n->nsrc; i++)
        if ((limit = limit_below(k, n->src[i], range, left)))
            return limit;
    return NULL;
}

static Node *find_limit(const Kernel *k, Node *reduce, Node *range)
{
    int left = MOST_NODES;
    return limit_below(k, reduce->src[0], range, &left);
}

/* Is what a reduce has from the limit on its identity? */
static bool ends_at(const Kernel *k, Node *reduce, Node *range, Node *limit)
{
    int left = MOST_NODES;
    const Node *value =
        reduce_size(reduce) == 1 ? value_beyond(k, reduce->src[0], range, limit, &left) : NULL;
    return value && (value == reduce_identity(k->c, reduce) ||
                     (is_lowest(value) && reduce->arg.i == INGOT_REDUCE_MAX));
}

Node *mask_limit(const Kernel *k, Node *reduce, Node *range)
{
    Node *limit = find_limit(k, reduce, range);
    return limit && ends_at(k, reduce, range, limit) ? limit : NULL;
}

/* The value, with what places have of it in their stead, as the range goes from its end to its
 * beginning. */
static Node *turned(Arena *a, Context *c, Node *value, Node *range, Node *back)
{
    int n;
    Node **order = graph_toposort(a, 1, &value, &n);
    for (int i = n; i-- > 0;) {
        Node *own =
            order[i]->op == OP_STAGE && order[i]->arg.i == 1 ? in_place(order[i], range) : NULL;
        if (!own)
            continue;
        Node *element = substitute(c, order[i]->src[0], 1, &own, &range);
        value = substitute(c, value, 1, &order[i], &element);
        break;
    }
    Node *last = idx_sub(c, range->src[0], idx(c, 1)), *at = idx_sub(c, last, back);
    return substitute(c, value, 1, &range, &at);
}

Node *mask_rest(Arena *a, const Kernel *k, Node *reduce, Node *range)
{
    int left = MOST_NODES;
    Node *back = range_new(k->c, RANGE_ADDED, range->src[0]),
         *value = turned(a, k->c, reduce->src[0], range, back),
         *limit = limit_below(k, value, back, &left);
    left = MOST_NODES;
    Node *rest =
        limit && !depends_on(limit, back) ? value_beyond(k, value, back, limit, &left) : NULL;
    return rest && rest == reduce_identity(k->c, reduce) ? limit : NULL;
}

/* How many elements from the first on a mask leaves nothing of; NULL: none, or nobody knows. */
static Node *mask_begin(Lower *q, Node *reduce, Node *range)
{
    Node *rest = mask_rest(q->a, q->k, reduce, range);
    return rest && lower_known_outside(q, rest) ? idx_sub(q->c, range->src[0], rest) : NULL;
}

Node *mask_value(const Kernel *k, Node *value, Node *range, Node **limit)
{
    int left = MOST_NODES;
    *limit = limit_below(k, value, range, &left);
    left = MOST_NODES;
    Node *v = *limit ? value_beyond(k, value, range, *limit, &left) : NULL;
    return v && !is_lowest(v) ? v : NULL;
}

/* For the last row it is if it is for all rows: a causal mask leaves row i past + i + 1 keys, so
 * row n - 1 all past + n of them.  Rows beyond those are not stored. */
bool mask_is_within(const Kernel *k, Node *value, Node *range, const Node *identity)
{
    int left = MOST_NODES;
    Node *limit = limit_below(k, value, range, &left);
    left = MOST_NODES;
    if (limit && value_beyond(k, value, range, limit, &left) != identity)
        return false;
    for (int i = 0; limit && i < k->naxis; i++) {
        Node *row = k->axes[i].range, *zero = idx(k->c, 0), *last;
        int64_t stride;
        if (!depends_on(limit, row))
            continue;
        last = idx_sub(k->c, row->src[0], idx(k->c, 1));
        limit = range_stride(k->c, limit, row, &stride)
                    ? substitute(k->c, limit, 1, &row, stride > 0 ? &last : &zero)
                    : NULL;
    }
    return limit && idx_sub(k->c, range->src[0], limit)->lo >= 0;
}

Node *mask_constant(const Kernel *k, Node *value, Node *range, Node **limit)
{
    int left = MOST_NODES;
    *limit = value->op == OP_WHERE ? limit_below(k, value->src[0], range, &left) : NULL;
    const int known = *limit ? condition_beyond(k, value->src[0], range, *limit, &left) : -1;
    Node *one = known < 0 ? NULL : value->src[known ? 1 : 2];
    return one && one->op == OP_CONST ? one : NULL;
}

/* ---- which axes have a limit ----------------------------------------------------------------- */

typedef struct {
    Node **limit;     /* by root: elements from it on count for nothing; NULL: none is known */
    int64_t *granule; /* by root: its loops end at a multiple of it */
    Node **order;
    int n;
} Limits;

static int root_of_range(const Lower *q, const Node *range)
{
    for (int i = 0; i < q->k->naxis; i++)
        if (q->k->axes[i].range == range)
            return i;
    return -1;
}

bool lower_known_outside(const Lower *q, const Node *at)
{
    int n;
    Node *root = (Node *)(uintptr_t)at, **order = graph_toposort(q->a, 1, &root, &n);
    for (int i = 0; i < n; i++) /* the data decide where: a load that no loop can end at */
        if (order[i]->op == OP_LOAD || order[i]->op == OP_STAGE || order[i]->op == OP_REDUCE)
            return false;
    for (int i = 0; i < q->k->naxis; i++)
        if (depends_on(at, q->k->axes[i].range) &&
            (q->nest->axis[i].reduced || q->nest->axis[i].staged || i == q->nest->row))
            return false;
    return true;
}

static void limits_of_reduces(Lower *q, Limits *f)
{
    bool *refused = NEWN(q->a, bool, q->k->naxis + 1);
    for (int i = 0; i < f->n; i++) {
        Node *n = f->order[i];
        for (uint32_t j = reduce_ranges(n); n->op == OP_REDUCE && j < n->nsrc; j++) {
            int root = root_of_range(q, n->src[j]);
            if (root < 0 || refused[root])
                continue;
            Node *limit = f->limit[root] ? f->limit[root] : find_limit(q->k, n, n->src[j]);
            const bool good =
                limit && lower_known_outside(q, limit) && ends_at(q->k, n, n->src[j], limit);
            f->limit[root] = good ? limit : NULL;
            refused[root] = !good;
        }
    }
}

/* Does a place have copies behind the loop that fills it?  They run wherever that ends. */
static bool has_copies_behind(const Lower *q, int root)
{
    for (int i = 0; i < q->nest->nsplit; i++) {
        const Split *s = &q->nest->split[i];
        const NestAxis *x = &q->nest->axis[s->axis];
        if (x->root == root && x->staged && s->kind == OPT_UNROLL && s->remaining)
            return true;
    }
    return false;
}

/* A reader that has none takes the limits of its place away again. */
static void places_end_with_readers(Lower *q, Limits *f)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < f->n; i++) {
            Node *n = f->order[i];
            for (int j = 0; n->op == OP_STAGE && j < (int)n->arg.i; j++) {
                int own = root_of_range(q, n->src[1 + j]),
                    reader = root_of_range(q, n->src[1 + n->arg.i + j]);
                bool ends = reader >= 0 && f->limit[reader] == f->limit[own] &&
                            !has_copies_behind(q, reader);
                if (own < 0 || !f->limit[own] || ends)
                    continue;
                f->limit[own] = NULL;
                changed = true;
            }
        }
    }
}

/* Places end where all that read them do. */
static void limits_of_places(Lower *q, Limits *f)
{
    for (int i = f->n; i-- > 0;) { /* readers come last */
        Node *n = f->order[i];
        for (int j = 0; n->op == OP_STAGE && j < (int)n->arg.i; j++) {
            int own = root_of_range(q, n->src[1 + j]),
                reader = root_of_range(q, n->src[1 + n->arg.i + j]);
            if (own >= 0 && reader >= 0 && !f->limit[own])
                f->limit[own] = f->limit[reader];
        }
    }
    places_end_with_readers(q, f);
}

/* How many elements of its root one iteration of an axis stands for: the amounts of the splits that
 * it is the outer part of. */
static int64_t step_of(const Nest *n, int axis)
{
    for (int i = 0; i < n->nsplit; i++) {
        const Split *s = &n->split[i];
        if (s->outer == axis || s->rest == axis)
            return step_of(n, s->axis) * (s->outer == axis ? s->amount : 1);
    }
    return 1;
}

/* A loop inside of a block. */
static bool is_inner(const Nest *n, int axis)
{
    for (int i = 0; i < n->nsplit; i++) {
        const Split *s = &n->split[i];
        if (s->inner == axis)
            return true;
        if (s->outer == axis || s->rest == axis)
            return is_inner(n, s->axis);
    }
    return false;
}

/* A place is filled as far as its readers' blocks go. */
static void find_granules(Lower *q, const Piece *p, Limits *f)
{
    int *leaf = NEWN(q->a, int, q->nest->naxis + 1);
    for (int i = 0; i < q->k->naxis; i++) {
        int n = 0;
        f->granule[i] = 1;
        if (f->limit[i])
            lower_leaves(p, i, leaf, &n);
        for (int j = 0; j < n; j++) {
            int64_t step = step_of(q->nest, leaf[j]);
            f->granule[i] = step > f->granule[i] ? step : f->granule[i];
        }
    }
    for (int i = f->n; i-- > 0;) {
        Node *n = f->order[i];
        for (int j = 0; n->op == OP_STAGE && j < (int)n->arg.i; j++) {
            int own = root_of_range(q, n->src[1 + j]),
                reader = root_of_range(q, n->src[1 + n->arg.i + j]);
            if (own < 0 || !f->limit[own])
                continue;
            int64_t a = f->granule[own], b = f->granule[reader], g = a;
            while (g % b)
                g += a;
            f->granule[own] = g;
        }
    }
}

/* What always ends in its first block would have no loop, by which sums are carried. */
static void keep_loops(Lower *q, Limits *f)
{
    for (int i = 0; i < q->k->naxis; i++)
        if (f->limit[i] && f->limit[i]->hi <= f->granule[i])
            f->limit[i] = NULL;
    places_end_with_readers(q, f);
}

/* ---- loops ----------------------------------------------------------------------------------- */

Node *lower_extreme(Lower *q, Piece *p, Node *at, bool greatest)
{
    Node *from[INGOT_MAX_RANK * 4], *to[INGOT_MAX_RANK * 4];
    int n = 0;
    for (int i = 0; i < q->k->naxis; i++) {
        Node *range = q->k->axes[i].range;
        int64_t stride;
        if (!depends_on(at, range))
            continue;
        if (n == INGOT_MAX_RANK * 4 || !range_stride(q->c, at, range, &stride))
            return NULL;
        const bool last = (stride > 0) == greatest;
        for (int j = 0; j < p->ncopies; j++)
            if (q->nest->axis[p->copies[j].axis].root == i)
                p->at[p->copies[j].axis] = idx(q->c, last ? p->copies[j].n - 1 : 0);
        Node *lane = idx(q->c, last ? p->t.lanes - 1 : 0);
        from[n] = range;
        to[n] = lower_index(q, p, i);
        if (p->t.lane)
            to[n] = substitute(q->c, to[n], 1, &p->t.lane, &lane);
        n++;
    }
    return substitute(q->c, at, n, from, to);
}

/* How many iterations an axis has below a limit that its granule rounds up. */
static Node *iterations(Lower *q, const Limits *f, int root, int axis, Node *limit)
{
    const Nest *n = q->nest;
    Context *c = q->c;
    int64_t step = step_of(n, axis), g = f->granule[root];
    Node *blocks = idx_div(c, idx_add(c, idx_max(c, limit, idx(c, 1)), idx(c, g - 1)), idx(c, g)),
         *count = idx_mul(c, blocks, idx(c, g / step));
    for (int i = 0; i < n->nsplit; i++)
        if (n->split[i].rest == axis && n->split[i].outer != axis)
            count = idx_max(c, idx_sub(c, count, lower_whole(q, &n->split[i])), idx(c, 0));
    return count;
}

/* What becomes of an axis's loop; NULL: it has none, or all of it counts. */
static Node *bounded_loop(Lower *q, const Piece *p, const Limits *f, int root, int axis,
                          Node *limit)
{
    Node *range = p->at[axis];
    if (!range || range->op != OP_RANGE || range == p->t.lane || range == p->t.four ||
        is_inner(q->nest, axis))
        return NULL;
    Node *count = idx_min(q->c, range->src[0], iterations(q, f, root, axis, limit));
    return count == range->src[0] ? NULL : range_new(q->c, (int)range->arg.i, count);
}

/* Is each iteration counted by a loop?  What is no loop any more, as it had one iteration, would
 * run all the same. */
static bool all_loops(const Lower *q, const Piece *p, int root)
{
    for (int i = 0; i < q->nest->nsplit; i++) {
        const Split *s = &q->nest->split[i];
        if (q->nest->axis[s->axis].root == root && p->sum[s->axis].split == s && s->remaining &&
            s->rest >= 0 && p->at[s->rest] && p->at[s->rest]->op != OP_RANGE)
            return false;
    }
    return !p->fresh[root];
}

Node *lower_extreme_of_group(Lower *q, Piece *p, Node *at, bool greatest)
{
    const Nest *n = q->nest;
    Node **kept = NEWN(q->a, Node *, n->naxis + 1);
    memcpy((void *)kept, (void *)p->at, (size_t)n->naxis * sizeof *kept);
    Node *most = NULL;
    for (int last = 0; last < 2; last++) { /* of all first rows, and of all last ones */
        for (int i = 0; i < n->naxis; i++) {
            const NestAxis *x = &n->axis[i];
            if (!x->reduced && (x->form == AXIS_UNIT || x->bound == BOUND_WARP))
                p->at[i] = idx(q->c, last ? x->extent - 1 : 0);
        }
        Node *one = lower_extreme(q, p, at, greatest);
        most = one && most ? (greatest ? idx_max : idx_min)(q->c, most, one) : last ? NULL : one;
    }
    memcpy((void *)p->at, (void *)kept, (size_t)n->naxis * sizeof *kept);
    return most;
}

/* All sums along rows begin where the mask of each of them leaves something: a loop of that many
 * blocks less. */
static void begin_blocks(Lower *q, Piece *p, const Limits *f)
{
    Node *first = NULL, *along = p->t.along;
    int64_t each = 0;
    for (int i = 0; i < q->nest->nsplit; i++) {
        const Split *s = &q->nest->split[i];
        const bool of = q->nest->axis[s->inner].row && p->at[s->outer] == along;
        if (of && each && each != s->amount)
            return;
        each = of ? s->amount : each;
    }
    for (int i = 0; i < f->n; i++) {
        Node *n = f->order[i], *one;
        const int root = n->op == OP_REDUCE && n->nsrc == 2 ? root_of_range(q, n->src[1]) : -1;
        if (root < 0 || !nest_has_row(q->nest, root))
            continue;
        one = reduce_monoid(n) == INGOT_REDUCE_ADD ? mask_begin(q, n, n->src[1]) : NULL;
        if (!one || (first && first != one))
            return;
        first = one;
    }
    first = first ? lower_extreme_of_group(q, p, first, false) : NULL;
    Node *begin = first && each ? idx_div(q->c, first, idx(q->c, each)) : NULL,
         *count = begin ? idx_sub(q->c, along->src[0], begin) : NULL;
    if (!begin || begin->lo < 0 || begin->hi < 1 || count->lo < 1 || !tc_in_place(q->nest->inner))
        return;
    p->t.along = range_new(q->c, (int)along->arg.i, count);
    p->left_out = begin;
    p->block = idx_add(q->c, begin, p->t.along);
    for (int i = 0; i < q->nest->naxis; i++)
        p->at[i] = p->at[i] == along ? p->block : p->at[i];
}

/* Blocks of rows share a loop, which ends where the mask of all that is along them does. */
static void bound_blocks(Lower *q, Piece *p, const Limits *f)
{
    const Nest *n = q->nest;
    Node *along = p->t.along, *count = NULL;
    for (int i = 0; i < n->nsplit; i++) {
        const Split *s = &n->split[i];
        if (!n->axis[s->inner].row || p->at[s->outer] != along)
            continue;
        Node *limit = f->limit[n->axis[s->axis].root];
        limit = limit ? lower_extreme_of_group(q, p, limit, true) : NULL;
        Node *one = limit ? iterations(q, f, n->axis[s->axis].root, s->outer, limit) : NULL;
        if (!one || (count && count != one))
            return;
        count = one;
    }
    count = count ? idx_min(q->c, along->src[0], count) : NULL;
    if (!count || count == along->src[0] || count->lo < 1)
        return;
    Node *now = range_new(q->c, (int)along->arg.i, count);
    for (int i = 0; i < n->naxis; i++)
        p->at[i] = p->at[i] == along ? now : p->at[i];
    p->t.along = now;
}

void bound_masked_loops(Lower *q, Piece *p)
{
    const Nest *n = q->nest;
    if (!n->nopt || ((n->items || n->sharing || n->tc || p->t.tc) && !p->t.along))
        return;
    Limits f = {.limit = NEWN(q->a, Node *, q->k->naxis + 1),
                .granule = NEWN(q->a, int64_t, q->k->naxis + 1)};
    f.order = graph_toposort(q->a, end_stores(q->end), q->end->src, &f.n);
    limits_of_reduces(q, &f);
    for (int i = 0; i < q->k->naxis; i++)
        if (f.limit[i] && !all_loops(q, p, i))
            f.limit[i] = NULL;
    limits_of_places(q, &f);
    find_granules(q, p, &f);
    keep_loops(q, &f);
    if (p->t.along) {
        bound_blocks(q, p, &f);
        begin_blocks(q, p, &f);
        return;
    }
    Node **now = NEWN(q->a, Node *, n->naxis + 1);
    for (int i = 0; i < q->k->naxis; i++) {
        Node *limit = f.limit[i] ? lower_extreme(q, p, f.limit[i], true) : NULL;
        for (int j = 0; j < n->naxis && limit; j++)
            if (n->axis[j].root == i)
                now[j] = bounded_loop(q, p, &f, i, j, limit);
    }
    for (int i = 0; i < n->naxis;
         i++) /* what has one value would be computed before an empty loop */
        if (now[i] && now[i]->op == OP_RANGE && now[i]->src[0]->lo < 1 && now[i]->src[0]->hi < 2)
            return;
    for (int i = 0; i < n->naxis; i++) {
        for (int j = 0; j < p->ntail && now[i]; j++)
            if (p->tail[j].range == p->at[i])
                p->tail[j].range = now[i];
        p->at[i] = now[i] ? now[i] : p->at[i];
    }
}
