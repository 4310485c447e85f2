/* dead_elements.c - what nobody reads is not computed.
 *
 *     shrink(f(x))  ->  f(shrink(x))        where all that reads f(x) reads this part of it
 *
 * A network that classifies reads one row of its last layer; a crop reads the middle of an image.
 * From the results to the inputs, each value is asked for a span along every axis: the least one
 * that has all that its readers ask for.  Then the graph is made again, each value as large as its
 * spans; who reads less of it shrinks it.  Elements are computed as before, only fewer.
 *
 * A span passes wherever an element along an axis needs one element of the source's axis; where it
 * needs all of them, or the amount is known at run time only, the source is asked for as a whole.
 * So is all that the bodies of loops and branches read.
 *
 * The same makes what computes some rows of the results alone (roots_part()), for batches.c. */
#include <string.h>

#include "builder.h"
#include "rewrite.h"

/* lo <= coordinate < hi; of an axis whose size the run knows: hi is MANY where it is asked for as a
 * whole. */
typedef struct {
    int64_t lo, hi;
} CoordSpan;
static const int64_t MANY = INT64_MAX;

typedef struct {
    Arena *a;
    CoordSpan **of; /* by id, a span per axis; NULL: it has not been asked for */
    uint32_t nnode;
    const Node *kept; /* is there as a whole; or NULL */
} Demand;

static CoordSpan whole(const Node *n, int axis)
{
    int64_t size;
    return (CoordSpan){0, idx_value(n->shape[axis], &size) ? size : MANY};
}

static bool is_whole(const Node *n, int axis, CoordSpan s)
{
    return s.lo == 0 && s.hi == whole(n, axis).hi;
}

/* The axis of a RESHAPE's source whose coordinate is this one's; -1: there is none. */
static int same_axis(Node *reshape, int axis)
{
    const int below = axis_below(reshape, axis);
    return below >= 0 && reshape->src[0]->shape[below] == reshape->shape[axis] ? below : -1;
}

/* What a PAD's source is asked for, if s is of its result; false: nothing of it, or where it lies
 * is not known. */
static bool inside_pad(const Node *pad, int axis, CoordSpan s, CoordSpan *inside)
{
    const CoordSpan all = whole(pad->src[0], axis);
    int64_t before;
    if (!idx_value(pad->src[1 + 2 * axis], &before))
        return false;
    if (all.hi == MANY && s.hi != MANY && s.hi - before > pad->src[0]->shape[axis]->lo)
        return false; /* the least source may end inside the span */
    inside->lo = s.lo > before ? s.lo - before : 0;
    inside->hi = s.hi == MANY || s.hi - before > all.hi ? all.hi : s.hi - before;
    return inside->lo < inside->hi;
}

/* Can t be made of a part of its sources along this axis? */
static bool passes(Node *t, int axis, CoordSpan s)
{
    CoordSpan inside;
    switch (t->op) {
    case OP_RESHAPE: return same_axis(t, axis) >= 0;
    case OP_PAD: return inside_pad(t, axis, s, &inside);
    case OP_FLIP: return whole(t, axis).hi != MANY;
    case OP_CONCAT: return axis != (int)t->arg.i;
    case OP_SCAN: return !(reduce_axes(t) >> axis & 1);
    case OP_EXPAND:
    case OP_PERMUTE:
    case OP_SHRINK:
    case OP_GATHER:
    case OP_KEEP:
    case OP_COPY:
    case OP_REDUCE: return true;
    default: return op_is_alu(t->op);
    }
}

/* The axis of a GATHER's result whose coordinate is that of this axis of its source; -1: there is
 * none. */
static int gathered_axis(const Node *t, int axis)
{
    const Node *index = t->src[1 + axis];
    const int k = index->op == OP_IOTA ? (int)index->arg.i : -1;
    return k >= 0 && t->src[0]->shape[axis] == t->shape[k] ? k : -1;
}

/* Bounds of an index tensor, of which `own` is asked for; false: it is more than sums and multiples
 * of coordinates. */
static bool index_span(Node *n, const CoordSpan *own, CoordSpan *s)
{
    CoordSpan x, y;
    n = uniform(n) ? uniform(n) : n;
    switch (n->op) {
    case OP_CONST: *s = (CoordSpan){n->arg.i, n->arg.i + 1}; return true;
    case OP_IOTA: *s = own[n->arg.i]; return s->hi != MANY;
    case OP_ADD:
    case OP_MUL:
        if (!index_span(n->src[0], own, &x) || !index_span(n->src[1], own, &y) || x.lo < 0 ||
            y.lo < 0)
            return false;
        *s = n->op == OP_ADD ? (CoordSpan){x.lo + y.lo, x.hi + y.hi - 1}
                             : (CoordSpan){x.lo * y.lo, (x.hi - 1) * (y.hi - 1) + 1};
        return true;
    default: return false;
    }
}

/* Where the windows of a GATHER lie, of which `own` is asked for. */
static bool window_span(const Node *t, const CoordSpan *own, int axis, CoordSpan *s)
{
    return index_span(t->src[1 + axis], own, s) && s->lo >= 0 && s->hi <= whole(t->src[0], axis).hi;
}

static CoordSpan span_within(const Demand *d, Node *t, const CoordSpan *own, uint32_t source,
                             int axis)
{
    const Node *x = t->src[source];
    const CoordSpan all = whole(x, axis);
    int64_t begin;
    CoordSpan inside;
    switch (t->op) {
    case OP_RESHAPE:
        for (int i = 0; i < t->rank; i++)
            if (same_axis(t, i) == axis)
                return own[i];
        return all;
    case OP_EXPAND: return idx_is(x->shape[axis], 1) ? all : own[axis];
    case OP_PERMUTE:
        for (int i = 0; i < t->rank; i++)
            if (((const Perm *)t->arg.ptr)->axis[i] == axis)
                return own[i];
        return all;
    case OP_PAD: return inside_pad(t, axis, own[axis], &inside) ? inside : all;
    case OP_SHRINK:
        if (!idx_value(t->src[1 + 2 * axis], &begin) || own[axis].hi == MANY)
            return all;
        return (CoordSpan){own[axis].lo + begin, own[axis].hi + begin};
    case OP_FLIP:
        if (!(t->arg.i >> axis & 1) || all.hi == MANY)
            return own[axis];
        return (CoordSpan){all.hi - own[axis].hi, all.hi - own[axis].lo};
    case OP_GATHER:
        if (!source && gathered_axis(t, axis) >= 0)
            return own[gathered_axis(t, axis)];
        return source ? own[axis] : d->kept && window_span(t, own, axis, &inside) ? inside : all;
    case OP_CONCAT: return axis == (int)t->arg.i ? all : own[axis];
    case OP_REDUCE:
    case OP_SCAN: return reduce_axes(t) >> axis & 1 ? all : own[axis];
    case OP_KEEP:
    case OP_COPY: return own[axis];
    default: return op_is_alu(t->op) ? own[axis] : all;
    }
}

/* What t, of which `own` is asked for, asks for of the axis of a source. That may be known to be of
 * 17 where the run counts t's, and checks that these are as many. */
static CoordSpan span_below(const Demand *d, Node *t, const CoordSpan *own, uint32_t source,
                            int axis)
{
    const int64_t all = whole(t->src[source], axis).hi;
    CoordSpan s = span_within(d, t, own, source, axis);
    s.hi = s.hi < all ? s.hi : all;
    return s;
}

/* The least spans that have what was asked for before and s. */
static void ask(Demand *d, const Node *n, const CoordSpan *s)
{
    CoordSpan *own = d->of[n->id];
    if (!own) {
        own = d->of[n->id] = NEWN(d->a, CoordSpan, n->rank + 1);
        memcpy(own, s, (size_t)n->rank * sizeof *s);
        return;
    }
    for (int i = 0; i < n->rank; i++) {
        own[i].lo = s[i].lo < own[i].lo ? s[i].lo : own[i].lo;
        own[i].hi = s[i].hi > own[i].hi ? s[i].hi : own[i].hi;
    }
}

static void ask_for_all(Demand *d, const Node *n)
{
    CoordSpan all[INGOT_MAX_RANK];
    for (int i = 0; i < n->rank; i++)
        all[i] = whole(n, i);
    ask(d, n, all);
}

static void ask_from_bodies(Demand *d, const Node *control);

/* All that a body computes of, outside of it too. */
static void ask_from_body(Demand *d, const struct Region *body)
{
    int n;
    Node **order = graph_toposort(d->a, body->nresult, body->result, &n);
    for (int i = 0; i < n; i++)
        if (!d->of[order[i]->id]) {
            ask_for_all(d, order[i]);
            ask_from_bodies(d, order[i]);
        }
}

static void ask_from_bodies(Demand *d, const Node *control)
{
    const Loop *loop = control->op == OP_LOOP ? control->arg.ptr : NULL;
    const If *branch = control->op == OP_IF ? control->arg.ptr : NULL;
    if (loop)
        ask_from_body(d, loop->body);
    if (branch) {
        ask_from_body(d, branch->then_branch);
        ask_from_body(d, branch->else_branch);
    }
}

/* Whether some value is asked for in part, where this part of all roots is; NULL: all of them. */
static bool find_spans(Demand *d, int nroot, Node *const *roots, const GraphPart *p)
{
    int n;
    bool any = false;
    Node **order = graph_toposort(d->a, nroot, roots, &n);
    for (int i = 0; i < n; i++)
        ask_from_bodies(d, order[i]);
    for (int i = 0; i < nroot; i++) {
        ask_for_all(d, roots[i]);
        for (const GraphPart *q = p; q; q = q->across)
            d->of[roots[i]->id][q->axis] = (CoordSpan){q->lo, q->hi};
    }
    for (int i = n; i-- > 0;) {
        Node *t = order[i];
        CoordSpan *own = d->of[t->id], below[INGOT_MAX_RANK];
        for (int axis = 0; axis < t->rank; axis++) {
            if (t == d->kept || !passes(t, axis, own[axis]))
                own[axis] = whole(t, axis);
            any |= !is_whole(t, axis, own[axis]);
        }
        for (uint32_t j = 0; j < t->nsrc; j++) {
            for (int axis = 0; axis < t->src[j]->rank; axis++)
                below[axis] = span_below(d, t, own, j, axis);
            ask(d, t->src[j], below);
        }
    }
    return any;
}

static bool is_part(const Demand *d, const Node *n)
{
    for (int i = 0; n->id < d->nnode && d->of[n->id] && i < n->rank; i++)
        if (!is_whole(n, i, d->of[n->id][i]))
            return true;
    return false;
}

/* The size that t has from now on. */
static Node *size_of(Rewrite *r, Node *t, int axis)
{
    const Demand *d = r->user;
    const CoordSpan s = d->of[t->id][axis];
    return is_whole(t, axis, s) ? t->shape[axis] : idx(r->c, s.hi - s.lo);
}

/* What t asks for of a source, out of what is there of that. */
static Node *source_part(Rewrite *r, Node *t, uint32_t source)
{
    const Demand *d = r->user;
    Node *x = t->src[source], *now = rewritten(r, x), *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++) {
        const CoordSpan s = span_below(d, t, d->of[t->id], source, axis),
                        there = d->of[x->id][axis];
        const bool all = s.lo == there.lo && s.hi == there.hi;
        begin[axis] = idx(r->c, s.lo - there.lo);
        size[axis] = all ? now->shape[axis] : idx(r->c, s.hi - s.lo);
    }
    return x->rank ? ingot_shrink(r->c, now, begin, size) : now;
}

static Node *part_of_pad(Rewrite *r, Node *t, Node *x)
{
    const Demand *d = r->user;
    Node *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    for (int axis = 0; axis < t->rank; axis++) {
        const CoordSpan s = d->of[t->id][axis];
        CoordSpan inside;
        int64_t before;
        lo[axis] = t->src[1 + 2 * axis];
        hi[axis] = t->src[2 + 2 * axis];
        if (is_whole(t, axis, s) || !inside_pad(t, axis, s, &inside) ||
            !idx_value(lo[axis], &before))
            continue;
        const int64_t first = inside.lo + before - s.lo;
        lo[axis] = idx(r->c, first);
        hi[axis] = idx(r->c, s.hi - s.lo - first - (inside.hi - inside.lo));
    }
    return ingot_pad(r->c, x, lo, hi);
}

/* Behind what begins at a place that the run knows. */
static Node *part_of_shrink(Rewrite *r, Node *t, Node *x)
{
    const Demand *d = r->user;
    Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    for (int axis = 0; axis < t->rank; axis++) {
        const bool known = idx_value(t->src[1 + 2 * axis], NULL) && d->of[t->id][axis].hi != MANY;
        begin[axis] = known ? idx(r->c, 0)
                            : idx_add(r->c, t->src[1 + 2 * axis], idx(r->c, d->of[t->id][axis].lo));
        size[axis] = size_of(r, t, axis);
    }
    return ingot_shrink(r->c, x, begin, size);
}

/* An index of what begins at this coordinate. */
static Node *index_from(Rewrite *r, Node *index, int64_t lo)
{
    Node *begin = lo ? ingot_from_dim(r->c, idx(r->c, lo)) : NULL;
    return lo ? ingot_sub(r->c, index, ingot_cast(r->c, begin, (ingot_dtype)index->dtype)) : index;
}

/* t, as large as it is asked for, of sources that are; NULL: nothing of that concerns it. */
static Node *renew_part(Rewrite *r, Node *t)
{
    const Demand *d = r->user;
    bool concerned = is_part(d, t);
    if (t == d->kept)
        return t;
    for (uint32_t i = 0; i < t->nsrc; i++)
        concerned |= is_part(d, t->src[i]);
    if (!concerned)
        return NULL;
    Node **src = NEWN(r->a, Node *, t->nsrc + 1), *dims[INGOT_MAX_RANK];
    for (uint32_t i = 0; i < t->nsrc; i++)
        src[i] = source_part(r, t, i);
    for (int axis = 0; axis < t->rank; axis++)
        dims[axis] = size_of(r, t, axis);
    switch (t->op) {
    case OP_PAD: return part_of_pad(r, t, src[0]);
    case OP_SHRINK: return part_of_shrink(r, t, src[0]);
    case OP_GATHER:
        for (int axis = 0; axis < t->src[0]->rank; axis++) /* coordinates begin at the part's */
            if (gathered_axis(t, axis) >= 0)
                src[1 + axis] = ingot_iota(r->c, t->rank, dims, gathered_axis(t, axis));
            else
                src[1 + axis] =
                    index_from(r, src[1 + axis], span_below(d, t, d->of[t->id], 0, axis).lo);
        return node_make(r->c, OP_GATHER, (ingot_dtype)t->dtype, t->arg, (int)t->nsrc, src, t->rank,
                         dims);
    case OP_RESHAPE: return ingot_reshape(r->c, src[0], t->rank, dims);
    case OP_EXPAND: return ingot_expand(r->c, src[0], t->rank, dims);
    case OP_PERMUTE:
    case OP_FLIP: return move_again(r->c, t, src[0]);
    default:
        return node_make(r->c, (Op)t->op, (ingot_dtype)t->dtype, t->arg, (int)t->nsrc, src, t->rank,
                         dims);
    }
}

bool demand(Context *c)
{
    Arena *a = arena_new();
    Demand d = {.a = a, .nnode = c->nnode, .of = NEWN(a, CoordSpan *, c->nnode + 1)};
    Rewrite r = {.c = c, .a = a, .renew = renew_part, .user = &d};
    int nroot;
    Node **roots = rewrite_roots(c, a, &nroot);
    const bool any = find_spans(&d, nroot, roots, NULL) && rewrite_pass(&r);
    arena_free(a);
    return any;
}

/* Each sum, and what is not made of elements alone, is of no more than this share, or serves all
 * parts. */
static bool divides(const Demand *d, int nroot, Node *const *roots, const GraphPart *p)
{
    int n;
    Node **order = graph_toposort(d->a, nroot, roots, &n);
    bool *above = NEWN(d->a, bool, d->nnode + 1); /* of what is kept */
    for (const GraphPart *q = p; q; q = q->across)
        for (int i = 0; i < nroot; i++) {
            const CoordSpan own = d->of[roots[i]->id][q->axis];
            if (own.lo != q->lo || own.hi != q->hi)
                return false;
        }
    for (int i = 0; i < n; i++) {
        const Node *t = order[i];
        double share = 1;
        above[t->id] = t == p->kept;
        for (uint32_t k = 0; k < t->nsrc; k++)
            above[t->id] |= above[t->src[k]->id];
        if (t->op == OP_REDUCE && above[t->id] && !is_part(d, t))
            return false;
        if (!is_part(d, t) || op_is_alu(t->op) || op_info[t->op].cls == MOVE ||
            op_info[t->op].cls == LEAF)
            continue;
        for (int axis = 0; axis < t->rank; axis++) {
            const CoordSpan all = whole(t, axis), own = d->of[t->id][axis];
            share *= is_whole(t, axis, own) ? 1 : (double)(own.hi - own.lo) / (double)all.hi;
        }
        if (share > p->share + 1e-9)
            return false;
    }
    return true;
}

bool roots_part(Context *c, Arena *a, int nroot, Node *const *roots, const GraphPart *p,
                Node **part)
{
    Demand d = {
        .a = a, .nnode = c->nnode, .of = NEWN(a, CoordSpan *, c->nnode + 1), .kept = p->kept};
    if (!find_spans(&d, nroot, roots, p) || !divides(&d, nroot, roots, p))
        return false;
    Rewrite r = {.c = c,
                 .a = a,
                 .nnode = c->nnode,
                 .now = NEWN(a, Node *, c->nnode + 1),
                 .renew = renew_part,
                 .user = &d};
    rewrite_below(&r, nroot, roots);
    for (int i = 0; i < nroot; i++)
        part[i] = rewritten(&r, roots[i]);
    map_free(&r.replaced);
    return true;
}

double *part_elements(const Context *c, Arena *a, int nroot, Node *const *roots, const GraphPart *p)
{
    Demand d = {
        .a = a, .nnode = c->nnode, .of = NEWN(a, CoordSpan *, c->nnode + 1), .kept = p->kept};
    if (!find_spans(&d, nroot, roots, p) || !divides(&d, nroot, roots, p))
        return NULL;
    int n;
    Node **order = graph_toposort(a, nroot, roots, &n);
    double *elements = NEWN(a, double, c->nnode + 1);
    for (int i = 0; i < n; i++) {
        const Node *t = order[i];
        elements[t->id] = 1;
        for (int axis = 0; axis < t->rank; axis++) {
            const CoordSpan s = d.of[t->id][axis];
            elements[t->id] *= s.hi == MANY ? (double)t->shape[axis]->hi : (double)(s.hi - s.lo);
        }
    }
    return elements;
}
