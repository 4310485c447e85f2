/* access.c - how a kernel's loads and stores move with its ranges. */
#include <string.h>

#include "kernel.h"
#include "tc.h"

int64_t range_extent(const Node *range)
{
    int64_t n;
    return idx_value(range->src[0], &n) ? n : -1;
}

/* seen: by id from the range's on, of nodes below which it is not; NULL: few nodes are looked at,
 * at most *left. */
static bool finds(Node *e, Node *range, bool *seen, int *left)
{
    if (e == range)
        return true;
    if (seen && seen[e->id - range->id])
        return false;
    if (seen)
        seen[e->id - range->id] = true;
    for (uint32_t i = 0; i < e->nsrc && (seen || --*left >= 0); i++)
        if (e->src[i]->id >= range->id && finds(e->src[i], range, seen, left))
            return true;
    return false;
}

bool depends_on(Node *e, Node *range)
{
    int left = 200; /* what is shared below counts for each use: nearly always this is enough */
    if (e->id < range->id)
        return false;
    if (finds(e, range, NULL, &left))
        return true;
    if (left >= 0)
        return false;
    Arena *a = arena_new();
    bool found = finds(e, range, NEWN(a, bool, e->id - range->id + 1), NULL);
    arena_free(a);
    return found;
}

bool *moving(Arena *a, Node *const *order, int n, Node *range)
{
    uint32_t most = 0;
    for (int i = 0; i < n; i++)
        most = order[i]->id > most ? order[i]->id : most;
    bool *on = NEWN(a, bool, most + 1);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        const bool hidden = owns_range(t, range);
        on[t->id] = t == range;
        for (uint32_t j = 0; j < t->nsrc && !hidden; j++)
            on[t->id] |= on[t->src[j]->id];
    }
    return on;
}

bool moves_with(Arena *a, Node *value, Node *range)
{
    int n;
    Node **order = graph_toposort(a, 1, &value, &n);
    return moving(a, order, n, range)[value->id];
}

/* The number that e's terms with range are multiplied by, read off its sums and products. */
static bool coefficient(Node *e, Node *range, int64_t *k)
{
    int64_t a, b;
    if (e == range || e->id < range->id || !e->nsrc || e->op == OP_RANGE) {
        *k = e == range;
        return true;
    }
    switch (e->op) {
    case OP_ADD:
        if (!coefficient(e->src[0], range, &a) || !coefficient(e->src[1], range, &b))
            return false;
        *k = sat_add(a, b);
        return true;
    case OP_MUL:
        if (!idx_value(e->src[1], &b) || !coefficient(e->src[0], range, &a))
            break;
        *k = sat_mul(a, b);
        return true;
    default: break;
    }
    *k = 0;
    return !depends_on(e, range);
}

bool range_stride(Context *c, Node *e, Node *range, int64_t *stride)
{
    if (coefficient(e, range, stride))
        return true;
    Node *next = idx_add(c, range, idx(c, 1));
    return idx_value(idx_sub(c, substitute(c, e, 1, &range, &next), e), stride);
}

Move access_move(Context *c, Node *access, Node *range)
{
    Move m = {.axis = -1};
    int first = first_coord(access);
    for (uint32_t i = (uint32_t)first; i < access->nsrc; i++) {
        Node *e = access->src[i];
        if (!depends_on(e, range))
            continue;
        int64_t stride;
        if (m.axis >= 0 || !range_stride(c, e, range, &stride)) {
            m.kind = MOVE_MIXED;
            return m;
        }
        m.axis = (int)i - first;
        m.stride = stride;
        m.kind = stride ? MOVE_AXIS : MOVE_NONE;
    }
    return m;
}

/* The same from the coordinates, one after the other: nothing is built. False where that is not
 * plain to see: sizes known at run time only, a quotient that moves. lanes: or 0; within blocks
 * that the layout cuts the range into, if they are whole vectors of these. */
static bool plain_stride(const KernelArg *a, Node *const *coords, Node *range, int64_t lanes,
                         int64_t *stride)
{
    const Layout *l = &a->layout;
    int64_t dim[2 * INGOT_MAX_RANK], by[2 * INGOT_MAX_RANK];
    int rank = a->rank;
    for (int i = 0; i < rank; i++)
        if (!idx_value(a->dims[i], &dim[i]) || !coefficient(coords[i], range, &by[i]))
            return false;
    for (int i = 0; i < l->n; i++) {
        const LayoutOp *op = &l->op[i];
        int64_t to[2 * INGOT_MAX_RANK], moves[2 * INGOT_MAX_RANK];
        bool apart = (op->kind == LAYOUT_CUT || op->kind == LAYOUT_SPLIT) && by[op->axis],
             block = lanes && op->kind == LAYOUT_SPLIT && op->a % lanes == 0 && i == 0;
        if (op->kind == LAYOUT_CUT || (apart && !(block && coords[op->axis] == range)))
            return false;
        if (op->kind == LAYOUT_PAD)
            dim[op->axis] += op->a + op->b;
        if (op->kind == LAYOUT_PITCH)
            dim[op->axis] = op->a;
        for (int j = 0; j < rank && op->kind == LAYOUT_PERMUTE; j++) {
            to[j] = dim[op->perm.axis[j]];
            moves[j] = by[op->perm.axis[j]];
        }
        if (op->kind == LAYOUT_PERMUTE) {
            memcpy(dim, to, (size_t)rank * sizeof *dim);
            memcpy(by, moves, (size_t)rank * sizeof *by);
        }
        if (op->kind == LAYOUT_SPLIT) {
            memmove(dim + op->axis + 1, dim + op->axis, (size_t)(rank - op->axis) * sizeof *dim);
            memmove(by + op->axis + 1, by + op->axis, (size_t)(rank - op->axis) * sizeof *by);
            dim[op->axis] = ceil_div(dim[op->axis], op->a);
            dim[op->axis + 1] = op->a;
            if (apart) {
                by[op->axis + 1] = by[op->axis];
                by[op->axis] = 0;
            }
            rank++;
        }
    }
    int64_t inside = 1;
    *stride = 0;
    for (int i = rank; i-- > 0;) {
        *stride = sat_add(*stride, sat_mul(by[i], inside));
        inside = sat_mul(inside, dim[i]);
    }
    return true;
}

/* Distance in elements of storage when range advances by one; false if it is no constant. */
bool access_stride(const Kernel *k, Node *access, Node *range, int64_t *stride)
{
    Context *c = k->c;
    const KernelArg *a = &k->args[access->src[0]->arg.i];
    if (plain_stride(a, access->src + first_coord(access), range, 0, stride))
        return true;
    Node *at = layout_offset(c, &a->layout, a->rank, a->dims, access->src + first_coord(access));
    return range_stride(c, at, range, stride);
}

bool vector_stride(const Kernel *k, Node *access, Node *range, int64_t lanes, int64_t *stride)
{
    const KernelArg *a = &k->args[access->src[0]->arg.i];
    return access_stride(k, access, range, stride) ||
           plain_stride(a, access->src + first_coord(access), range, lanes, stride);
}

/* The axis that a coordinate moves with and no coordinate of another load; NULL: there is not just
 * one. */
static Node *own_axis(const Kernel *k, Node *x, Node *other)
{
    Node *own = NULL;
    int n = 0;
    for (int i = 0; i < k->naxis; i++) {
        Node *r = k->axes[i].range;
        if (depends_on(x, r) && !depends_on(other, r)) {
            own = r;
            n++;
        }
    }
    return n == 1 ? own : NULL;
}

static int first_of_buffer(const Kernel *k, const Node *load)
{
    const int arg = (int)load->src[0]->arg.i;
    return k->args[arg].same ? k->args[arg].same - 1 : arg;
}

bool reads_same_box(const Kernel *k, Node *x, Node *y)
{
    if (first_of_buffer(k, x) != first_of_buffer(k, y) || x->nsrc != y->nsrc ||
        !node_is_const_i(x->src[1], 1) || !node_is_const_i(y->src[1], 1))
        return false;
    for (uint32_t i = (uint32_t)first_coord(x); i < x->nsrc; i++) {
        Node *from = own_axis(k, x->src[i], y), *to = own_axis(k, y->src[i], x);
        if (x->src[i] == y->src[i])
            continue;
        if (!from || !to || from->src[0] != to->src[0] ||
            substitute(k->c, x->src[i], 1, &from, &to) != y->src[i])
            return false;
    }
    return true;
}

Node *only_load(Arena *a, const Node *below, int64_t arg)
{
    int n;
    Node **order = graph_toposort(a, 1, (Node *const *)&below, &n), *load = NULL;
    for (int i = 0; i < n; i++)
        if (order[i]->op == OP_LOAD && order[i]->src[0]->arg.i == arg) {
            if (load)
                return NULL;
            load = order[i];
        }
    return load;
}

/* Those of an op in an order; the first ones. */
static int those_of(int n, Node *const *order, int op, Node **out, int max)
{
    int count = 0;
    for (int i = 0; i < n && count < max; i++)
        if (order[i]->op == op)
            out[count++] = order[i];
    return count;
}

static int collect(Arena *a, Node *root, int op, Node **out, int max)
{
    int n;
    Node **order = graph_toposort(a, 1, &root, &n);
    return those_of(n, order, op, out, max);
}

static double iterations(Node *reduce)
{
    double n = 1;
    for (uint32_t i = reduce_ranges(reduce); i < reduce->nsrc; i++)
        n *= (double)reduce->src[i]->hi + 1;
    return n;
}

/* A product, or a sum of products; squares are no contraction. */
static bool is_products_sum(Node *body)
{
    Node *term[TC_MOST_TERMS];
    int n = tc_terms(body, term, TC_MOST_TERMS);
    for (int i = 0; i < n; i++)
        if (term[i]->src[0] == term[i]->src[1])
            return false;
    return n > 0;
}

/* Does it add up what is made of sums of products of bytes, block by block: do both factors of
 * these move with its ranges? */
static bool is_sum_of_blocks(Arena *a, const View *v, Node *sum)
{
    Node *below[MAX_ACCESS];
    if (sum == v->dot || sum->arg.i != INGOT_REDUCE_ADD || sum->dtype != INGOT_F32 ||
        v->dot->dtype != INGOT_I32 || !dot_terms(v->dot))
        return false;
    for (uint32_t i = reduce_ranges(sum); i < sum->nsrc; i++)
        for (int j = 0; j < 2; j++) /* or which digit of it is taken */
            if (!depends_on(v->dot->src[0]->src[j], sum->src[i]))
                return false;
    int n = collect(a, sum->src[0], OP_REDUCE, below, MAX_ACCESS);
    while (n && below[n - 1] != v->dot)
        n--;
    return n > 0;
}

static View view_of(Arena *a, const Kernel *k)
{
    View v = {0};
    Node *end = k->sink->src[0];
    v.nstore = end_stores(end);
    v.store = end->src;
    v.nrange = (int)end->nsrc - v.nstore;
    v.range = end->src + v.nstore;
    int n;
    Node *const *order = kernel_end_nodes(k, &n);
    v.nload = those_of(n, order, OP_LOAD, v.load, MAX_ACCESS);
    v.nreduce = those_of(n, order, OP_REDUCE, v.reduce, MAX_ACCESS);
    for (int i = 0; i < v.nreduce; i++) {
        Node *r = v.reduce[i];
        bool product = r->arg.i == INGOT_REDUCE_ADD && lane_op(r) && is_products_sum(r->src[0]);
        Node *below;
        product = product && !collect(a, r->src[0], OP_REDUCE, &below, 1);
        if (product && (!v.dot || iterations(r) > iterations(v.dot)))
            v.dot = r;
    }
    if (v.dot) {
        v.nfactor = collect(a, v.dot->src[0], OP_LOAD, v.factor, MAX_ACCESS);
        if (v.nfactor < 2)
            v.dot = NULL;
    }
    for (int i = 0; v.dot && i < v.nreduce; i++)
        if (is_sum_of_blocks(a, &v, v.reduce[i]))
            v.outer = v.reduce[i];
    for (int i = 0; v.dot && i < v.nreduce; i++)
        v.ndot +=
            v.reduce[i]->nsrc == v.dot->nsrc &&
            !memcmp(v.reduce[i]->src + 1, v.dot->src + 1, (v.dot->nsrc - 1) * sizeof *v.dot->src);
    return v;
}

View kernel_view(const Kernel *k)
{
    Context *c = k->c;
    if (c->viewed != k->sink) {
        Arena *a = arena_new();
        View *v = NEW(c->arena, View);
        *v = view_of(a, k);
        c->view = v;
        c->viewed = k->sink;
        arena_free(a);
    }
    return *(const View *)c->view;
}

View view_of_sum(const Kernel *k, Node *sum)
{
    View v = kernel_view(k);
    Arena *a = arena_new();
    v.dot = sum;
    v.nfactor = collect(a, sum->src[0], OP_LOAD, v.factor, MAX_ACCESS);
    arena_free(a);
    return v;
}

bool view_reuses(const View *v, Node *moves, Node *stays)
{
    for (int i = 0; i < v->nfactor; i++)
        if (depends_on(v->factor[i], moves) && (!stays || !depends_on(v->factor[i], stays)))
            return true;
    return false;
}

bool load_slides(const View *v, const Node *load, Node *range)
{
    for (uint32_t j = (uint32_t)first_coord(load); j < load->nsrc; j++)
        for (int k = 0; k < v->nrange && depends_on(load->src[j], range); k++)
            if (depends_on(load->src[j], v->range[k]))
                return true;
    return false;
}

bool view_slides(const View *v, Node *range)
{
    for (int i = 0; i < v->nfactor; i++)
        if (load_slides(v, v->factor[i], range))
            return true;
    return false;
}

/* Is there an axis along which nothing is read where something is written? So it is of slices of
 * one concat. */
static bool reads_beside(const Kernel *k, int arg)
{
    int n;
    Node *const *order = kernel_nodes(k, &n);
    for (int d = 0; d < k->args[arg].rank; d++) {
        int64_t low[2] = {INT64_MAX, INT64_MAX}, high[2] = {INT64_MIN, INT64_MIN}; /* load, store */
        for (int i = 0; i < n; i++) {
            const Node *t = order[i];
            if ((t->op != OP_LOAD && t->op != OP_STORE) || t->src[0]->arg.i != arg)
                continue;
            const Node *at = t->src[first_coord(t) + d];
            const bool store = t->op == OP_STORE;
            low[store] = at->lo < low[store] ? at->lo : low[store];
            high[store] = at->hi > high[store] ? at->hi : high[store];
        }
        if (high[0] < low[1] || high[1] < low[0])
            return true;
    }
    return false;
}

/* Is a coordinate the range and a number, or a multiple of its extent and the range? */
static bool is_own_place(Context *c, Node *at, Node *range)
{
    int64_t stride, number;
    if (!range_stride(c, at, range, &stride) || !stride)
        return false;
    Node *rest = idx_sub(c, at, idx_mul(c, range, idx(c, stride)));
    return idx_value(rest, NULL) ||
           (stride == 1 && idx_value(range->src[0], NULL) &&
            idx_value(idx_mod(c, rest, range->src[0]), &number) && number == 0);
}

/* Is a range at one place of its own where this is true? */
bool is_of_one(const Node *gate, const Node *range)
{
    if (gate->op == OP_AND)
        return is_of_one(gate->src[0], range) || is_of_one(gate->src[1], range);
    return gate->op == OP_EQ && (gate->src[0] == range || gate->src[1] == range) &&
           idx_value(gate->src[gate->src[0] == range], NULL);
}

/* Does each iteration of the range have places of its own in what a kernel stores, whatever the
 * others are?  One coordinate is the range, and all others are the same for it; or one iteration
 * stores. */
bool stores_apart(const Kernel *k, Node *range)
{
    const Node *store = k->sink->nsrc == 1 ? k->sink->src[0]->src[0] : NULL;
    int own = 0;
    if (!store || store->op != OP_STORE)
        return false;
    for (uint32_t i = 3; i < store->nsrc; i++) {
        Node *at = store->src[i];
        if (!depends_on(at, range))
            continue;
        if (!is_own_place(k->c, at, range))
            return false;
        own++;
    }
    return own == 1 || (!own && is_of_one(store->src[1], range));
}

/* What one part writes, no other may read: then only views of other elements share memory with
 * it. */
bool can_be_cut(const Kernel *k)
{
    for (int i = 0; i < k->narg; i++)
        if (k->args[i].read && k->args[i].written && !reads_beside(k, i))
            return false;
    return !k->serial;
}

/* Sums of as many terms as a warp has items, of which the row is known, and results along it: each
 * item has all that is made of an element in its registers. */
bool goes_along_rows(const Kernel *k, const Machine *m)
{
    const View v = kernel_view(k);
    bool along = false, rows = v.nreduce > 0 && m->units;
    for (int i = 0; i < v.nreduce && rows; i++) {
        int64_t terms = 1;
        for (uint32_t j = reduce_ranges(v.reduce[i]); j < v.reduce[i]->nsrc; j++) {
            const int64_t extent = range_extent(v.reduce[i]->src[j]);
            terms = extent > 0 ? sat_mul(terms, extent) : 0;
        }
        rows = terms >= m->warp && v.reduce[i]->nsrc == v.reduce[0]->nsrc;
    }
    for (int i = 0; i < v.nrange && rows; i++) {
        bool moves = range_extent(v.range[i]) < m->warp;
        for (int j = 0; j < v.nreduce && !moves; j++)
            moves = depends_on(v.reduce[j], v.range[i]);
        along |= !moves;
    }
    for (int i = 0; i < k->naxis; i++)
        rows &= !k->axes[i].staged;
    return along && rows;
}
