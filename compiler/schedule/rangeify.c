/* rangeify.c - movement is arithmetic on coordinates.  Starting from the coordinates of the
 * value a kernel stores, walk the fused tensor expression down to its buffers, rewriting the
 * coordinates at every movement op; what remains is a scalar expression over ranges.
 *
 * A pad adds a condition to the gate of everything below it: loads read only where their gate
 * holds, so no out-of-bounds address is ever formed.  Below an expand those conditions stay that
 * still speak of its source's coordinates. */
#include <stdlib.h>
#include <string.h>

#include "fusion.h"

Buffer *buffer_new(Sched *s, BufferKind kind, ingot_dtype dtype, int rank, Node *const *dims,
                   Node *node)
{
    Buffer *b = NEW(s->arena, Buffer);
    b->kind = kind;
    b->dtype = dtype;
    b->rank = rank;
    b->dims = dims;
    b->bytes = sat_mul(dims_bound(rank, dims), (int64_t)elem_bytes(dtype));
    b->node = node;
    b->device = node && kind != BUF_WEIGHT ? info_of(s, node)->device : 0;
    b->slot = -1;
    b->id = s->plan->nbuffer;
    vec_push(s->arena, s->plan->buffers, s->plan->nbuffer, b);
    return b;
}

Buffer *weight_buffer(Sched *s, Node *n)
{
    Info *i = info_of(s, n);
    if (!i->buffer) {
        i->buffer = buffer_new(s, BUF_WEIGHT, n->dtype, n->rank, n->shape, n);
        if (n->op == OP_DATA)
            i->buffer->name = ((const Data *)n->arg.ptr)->name;
    }
    return info_of(s, n)->buffer;
}

/* Weights are data of every device that reads them: no step copies them. */
static Buffer *weight_on(Sched *s, Buffer *b, int device)
{
    for (int i = 0; i < s->plan->nbuffer; i++) {
        Buffer *o = s->plan->buffers[i];
        if (o->kind == BUF_WEIGHT && o->node == b->node && o->device == device)
            return o;
    }
    Buffer *own = buffer_new(s, BUF_WEIGHT, b->dtype, b->rank, b->dims, b->node);
    own->name = b->name;
    own->device = device;
    return own;
}

Node *nest_buffer(StoreNest *k, Buffer *b)
{
    int i = 0;
    if (b->kind == BUF_WEIGHT && b->device != k->device)
        b = weight_on(k->s, b, k->device);
    while (i < k->nbuf && k->bufs[i] != b)
        i++;
    if (i == k->nbuf) {
        if (k->nbuf == (int)(sizeof k->bufs / sizeof *k->bufs))
            BUG("a kernel reads more than %d buffers", k->nbuf);
        k->bufs[k->nbuf++] = b;
    }
    return node_make(k->s->c, OP_BUFFER, b->dtype, (Arg){.i = i}, 0, NULL, 0, NULL);
}

Node *load_value(StoreNest *k, Buffer *b, Node *const *at, Node *const *coords, Node *gate)
{
    Node *src[INGOT_MAX_RANK + 2] = {nest_buffer(k, b), gate};
    for (int i = 0; i < b->rank; i++)
        src[2 + i] = at ? idx_add(k->s->c, coords[i], at[i]) : coords[i];
    return node_make(k->s->c, OP_LOAD, b->dtype, (Arg){0}, 2 + b->rank, src, 0, NULL);
}

static Node *zero(Context *c, ingot_dtype d)
{
    return node_const_zero(c, d);
}

/* A constant scalar tensor is spelled, not loaded. */
static Node *inline_constant(Context *c, Node *t)
{
    if (t->op != OP_DATA || dims_bound(t->rank, t->shape) != 1)
        return NULL;
    const uint8_t *p = ((const Data *)t->arg.ptr)->bytes;
    switch (t->dtype) {
    case INGOT_F32: {
        float v;
        memcpy(&v, p, 4);
        return node_const_f(c, t->dtype, (double)v);
    }
    case INGOT_F64: {
        double v;
        memcpy(&v, p, 8);
        return node_const_f(c, t->dtype, v);
    }
    case INGOT_BOOL:
    case INGOT_U8: return node_const_i(c, t->dtype, *p);
    case INGOT_I8: return node_const_i(c, t->dtype, (int8_t)*p);
    case INGOT_I32: {
        int32_t v;
        memcpy(&v, p, 4);
        return node_const_i(c, t->dtype, v);
    }
    case INGOT_I64: {
        int64_t v;
        memcpy(&v, p, 8);
        return node_const_i(c, t->dtype, v);
    }
    default: return NULL;
    }
}

static bool varies(const Node *n, int nrange, Node *const *range)
{
    for (int i = 0; i < nrange; i++)
        if (n == range[i])
            return true;
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (varies(n->src[i], nrange, range))
            return true;
    return false;
}

/* Factors of a sum's terms that are the same for all of them: e c v and (e / c) v become e v, and
 * *outside what the sum is multiplied by, c or 1 / c; NULL: there are none. rounded: those of what
 * is rounded, too, which is rounded without them then. */
static Node *take_factors(Context *c, Node *term, int nrange, Node *const *range, bool rounded,
                          Node **outside)
{
    if (rounded && term->op == OP_CAST && dtype_is_float((ingot_dtype)term->src[0]->dtype)) {
        Node *of = take_factors(c, term->src[0], nrange, range, true, outside);
        return node_with(c, term, &of);
    }
    if (term->op != OP_MUL && term->op != OP_DIV)
        return term;
    for (int i = 0; i < 2; i++) {
        Node *one = term->src[i];
        if (varies(one, nrange, range) || (term->op == OP_DIV && i == 0))
            continue;
        if (term->op == OP_DIV)
            one = node_alu2(c, OP_DIV, one->dtype, node_const_f(c, one->dtype, 1), one);
        *outside = *outside ? node_alu2(c, OP_MUL, one->dtype, *outside, one) : one;
        return take_factors(c, term->src[1 - i], nrange, range, rounded, outside);
    }
    if (term->op == OP_DIV)
        return term;
    Node *src[2];
    for (int i = 0; i < 2; i++)
        src[i] = take_factors(c, term->src[i], nrange, range, rounded, outside);
    return node_alu2(c, OP_MUL, term->dtype, src[0], src[1]);
}

/* The coordinates of an earlier sum's terms where this one runs along the same elements; NULL:
 * there is none, or this is no sum of a vector and digits. */
static Node *const *walk_of(StoreNest *k, Node *t)
{
    for (const SumWalk *w = k->walk; w; w = w->next)
        if (walk_alike(k->s, t, w->sum))
            return w->at;
    return NULL;
}

static void keep_walk(StoreNest *k, Node *t, Node *const *at)
{
    if (!walk_alike(k->s, t, t))
        return;
    SumWalk *w = NEW(k->s->arena, SumWalk);
    *w = (SumWalk){.next = k->walk, .sum = t};
    memcpy((void *)w->at, (void *)at, sizeof w->at);
    k->walk = w;
}

/* Of rows that are made again all sums of products have one range: a unit takes them alike. */
static Node *reduce_range(StoreNest *k, const Node *t, Node *size)
{
    if (k->along && k->terms && k->terms->src[0] == size)
        return k->terms;
    Node *range = range_new(k->s->c, k->s->naxis++, size);
    if (k->along && !info_of(k->s, t)->sums_again)
        k->terms = range;
    return range;
}

static Node *lower_reduce(StoreNest *k, Node *t, Node *const *coords, Node *gate)
{
    Context *c = k->s->c;
    Node *x = t->src[0], *inner[INGOT_MAX_RANK] = {NULL}, *src[INGOT_MAX_RANK + MAX_STATE];
    Node *const *walk = walk_of(k, t);
    unsigned axes = reduce_axes(t);
    Node *const along = k->along;
    int size = (int)t->nsrc, n = size, part = reduce_part(t);
    if (part) { /* the ranges of a state are those of its first value */
        Node *first = lower_value(k, reduce_sibling(c, t, 0), coords, gate);
        return first->op == OP_REDUCE && reduce_monoid(first) == reduce_monoid(t)
                   ? reduce_sibling(c, first, part)
                   : lower_value(k, t->src[part], coords, gate);
    }
    for (int i = 0; i < x->rank; i++) {
        inner[i] = coords[i];
        if (axes >> i & 1) {
            inner[i] = walk                     ? walk[i]
                       : idx_is(x->shape[i], 1) ? idx(c, 0)
                                                : reduce_range(k, t, x->shape[i]);
            if (inner[i]->op == OP_RANGE)
                src[n++] = inner[i];
        }
    }
    if (!walk)
        keep_walk(k, t, inner);
    if (info_of(k->s, t)->sums_again && n == size + 1)
        k->along = src[size];
    for (int i = 0; i < size; i++)
        src[i] = lower_value(k, t->src[i], inner, gate);
    k->along = along;
    if (n == size)
        return src[0];
    Node *outside = NULL, *some = node_bool(c, true);
    if (info_of(k->s, t)->sums_rows)
        src[0] =
            take_factors(c, src[0], n - size, src + size, info_of(k->s, t)->by_blocks, &outside);
    for (int i = 0; i < x->rank && outside; i++)
        if (axes >> i & 1 && x->shape[i]->lo < 1) /* nothing times 1 / 0 is nothing */
            some = bool_and(c, some, idx_lt(c, idx(c, 0), x->shape[i]));
    if (outside && !node_is_const_i(some, 1))
        outside = node_where(c, some, outside, node_const_f(c, outside->dtype, 0));
    Node *sum =
        node_make(c, OP_REDUCE, t->dtype, reduce_arg(reduce_monoid(t), 0, 0), n, src, 0, NULL);
    return outside ? node_alu2(c, OP_MUL, t->dtype, sum, outside) : sum;
}

/* The value that a kernel stores; the loop over the axis is one of those over outputs. */
static Node *lower_scan(StoreNest *k, Node *t, Node *const *coords, Node *gate)
{
    int axis = 0;
    while (!((uint64_t)t->arg.i >> (8 + axis) & 1))
        axis++;
    Node *src[2] = {lower_value(k, t->src[0], coords, gate), coords[axis]};
    if (coords[axis]->op != OP_RANGE) /* of one element */
        return src[0];
    return node_make(k->s->c, OP_SCAN, t->dtype, (Arg){.i = reduce_monoid(t)}, 2, src, 0, NULL);
}

/* Constants are no data: what the file holds was checked by the builder. */
static bool reads_data(const StoreNest *k, Node *e)
{
    int n;
    Node **order = graph_toposort(k->s->arena, 1, &e, &n);
    for (int i = 0; i < n; i++)
        if (order[i]->op == OP_LOAD && k->bufs[order[i]->src[0]->arg.i]->kind != BUF_WEIGHT)
            return true;
    return false;
}

void note_index(StoreNest *k, Node *t, int axis, Node *index, Node *gate)
{
    Context *c = k->s->c;
    Node *size = t->src[0]->shape[axis];
    if (!k->s->check || index_check_of(c, t) == INDEX_TRUSTED || !reads_data(k, index) ||
        (index->lo >= 0 && node_is_const_i(idx_lt(c, index, size), 1)))
        return;
    IndexUse u = {.index = index, .size = size, .gate = gate, .t = t, .axis = axis};
    vec_push(k->s->arena, k->use, k->nuse, u);
}

typedef struct {
    Node *part;
    Node **range;
    int nrange;
    bool other, kept; /* it depends on more than loops and numbers; it is needed */
} Condition;

static int conditions_of(Arena *a, Node *gate, Condition **out, int n)
{
    if (gate->op == OP_AND)
        return conditions_of(a, gate->src[1], out, conditions_of(a, gate->src[0], out, n));
    Condition x = {.part = gate};
    int count;
    Node **order = graph_toposort(a, 1, &gate, &count);
    for (int i = 0; i < count; i++) {
        x.other |= order[i]->op == OP_VAR || order[i]->op == OP_LOAD;
        if (order[i]->op == OP_RANGE)
            vec_push(a, x.range, x.nrange, order[i]);
    }
    x.kept = x.other || !x.nrange;
    vec_push(a, *out, n, x);
    return n;
}

/* What of the gate can keep something at these coordinates inside of its edges: a value that is the
 * same for a whole row is not computed for each element of the row, because some lie outside. */
static Node *gate_at(Context *c, Node *gate, int rank, Node *const *at)
{
    if (gate->op == OP_CONST)
        return gate;
    Arena *a = arena_new();
    Condition *x = NULL;
    int n = conditions_of(a, gate, &x, 0), nrange = 0, count;
    Node **order = graph_toposort(a, rank, at, &count), **range = NULL;
    for (int i = 0; i < count; i++)
        if (order[i]->op == OP_RANGE)
            vec_push(a, range, nrange, order[i]);
    for (bool more = true; more;) { /* with what bounds the loops that it speaks of */
        more = false;
        for (int i = 0; i < n; i++) {
            bool joins = false;
            for (int j = 0; j < x[i].nrange * nrange && !joins && !x[i].kept; j++)
                joins = x[i].range[j / nrange] == range[j % nrange];
            for (int j = 0; j < x[i].nrange && joins; j++)
                vec_push(a, range, nrange, x[i].range[j]);
            x[i].kept |= joins;
            more |= joins;
        }
    }
    Node *needed = node_bool(c, true);
    bool all = true;
    for (int i = 0; i < n; i++)
        all &= x[i].kept;
    for (int i = 0; i < n && !all; i++)
        if (x[i].kept)
            needed = bool_and(c, needed, x[i].part);
    arena_free(a);
    return all ? gate : needed;
}

static Node *lower_gather(StoreNest *k, Node *t, Node *const *coords, Node *gate)
{
    Context *c = k->s->c;
    Node *x = t->src[0], *at[INGOT_MAX_RANK], *some = gate;
    for (int i = 0; i < x->rank; i++) {
        Node *v = node_cast(c, lower_value(k, t->src[1 + i], coords, gate), INGOT_INDEX);
        Node *size = x->shape[i], *last = idx_sub(c, size, idx(c, 1));
        note_index(k, t, i, v, gate);
        at[i] = idx_min(c, idx_max(c, v, idx(c, 0)), last);
        if (at[i] != v && last->lo < 0 && index_check_of(c, t) == INDEX_TRUSTED)
            some = bool_and(c, some, idx_lt(c, idx(c, 0), size)); /* places.c sees to the others */
    }
    return lower_value(k, x, at, some);
}

static Node *lower_move(StoreNest *k, Node *t, Node *const *coords, Node *gate)
{
    Context *c = k->s->c;
    Node *at[INGOT_MAX_RANK], *valid = node_bool(c, true);
    movement_coords(c, t, coords, at, &valid);
    if (node_is_const_i(valid, 1))
        return lower_value(k, t->src[0], at,
                           t->op == OP_EXPAND ? gate_at(c, gate, t->src[0]->rank, at) : gate);
    Node *both = bool_and(c, gate, valid);
    if (node_is_const_i(both, 0))
        return zero(c, t->dtype);
    Node *v = lower_value(k, t->src[0], at, both);
    if (v->op == OP_LOAD && v->src[1] == both)
        return v; /* a gated load is zero already */
    return node_where(c, valid, v, zero(c, t->dtype));
}

static Node *lower_computed(StoreNest *k, Node *t, Node *const *coords, Node *gate);

/* Of the axes that it is staged along it has ranges of its own, whoever reads it. */
static Node *lower_staged(StoreNest *k, Node *t, Node *const *coords, Node *gate)
{
    Context *c = k->s->c;
    unsigned axes = k->along ? 0 : info_of(k->s, t)->staged;
    for (int i = 0; i < t->rank && k->along; i++)
        axes |= coords[i] == k->along ? 1u << i : 0;
    Node *inner[INGOT_MAX_RANK] = {NULL}, *src[1 + 2 * INGOT_MAX_RANK];
    StagedValue *s = k->staged;
    for (; s; s = s->next) {
        bool same = s->t == t;
        for (int i = 0; i < t->rank && same; i++)
            same = axes >> i & 1 || s->at[i] == coords[i];
        if (same)
            break;
    }
    if (!s) {
        s = NEW(k->s->arena, StagedValue);
        *s = (StagedValue){.t = t};
        for (int i = 0; i < t->rank; i++) {
            s->at[i] = inner[i] = coords[i];
            if (!(axes >> i & 1))
                continue;
            inner[i] =
                idx_is(t->shape[i], 1) ? idx(c, 0) : range_new(c, k->s->naxis++, t->shape[i]);
            if (inner[i]->op == OP_RANGE)
                s->stage[++s->n] = inner[i];
        }
        s->stage[0] = lower_computed(k, t, inner, gate);
        s->next = k->staged;
        k->staged = s;
    }
    int n = 1 + s->n;
    memcpy((void *)src, (void *)s->stage, (size_t)n * sizeof *src);
    for (int i = 0; i < t->rank; i++)
        if (axes >> i & 1 && !idx_is(t->shape[i], 1))
            src[n++] = coords[i];
    return n == 1 ? src[0] : node_make(c, OP_STAGE, t->dtype, (Arg){.i = s->n}, n, src, 0, NULL);
}

/* What rows have one of is stored by the kernel that makes them. */
static void note_beside(StoreNest *k, Node *t, Node *const *coords)
{
    enum { ROOM = sizeof k->beside / sizeof *k->beside };
    for (int i = 0; i < k->nbeside; i++)
        if (k->beside[i] == t)
            return;
    if (k->nbeside == ROOM)
        BUG("a row has more than %d values that its kernel stores", ROOM);
    memcpy((void *)k->beside_at[k->nbeside], (void *)coords, (size_t)t->rank * sizeof *coords);
    k->beside[k->nbeside++] = t;
}

static Node *lower_fresh(StoreNest *k, Node *t, Node *const *coords, Node *gate)
{
    Context *c = k->s->c;
    Info *i = info_of(k->s, t);
    if (i->scalar)
        return node_cast(c, i->scalar, t->dtype);
    const bool reached = i->buffer && (i->buffer->kind == BUF_WEIGHT ||
                                       i->buffer->device == k->device || !i->placeless);
    if (reached && t != k->root) /* else each device computes it of numbers, weights, sizes */
        return load_value(k, i->buffer, i->at, coords, gate);
    if ((k->along ? i->again : i->staged != 0) && t != k->root && node_is_const_i(gate, 1))
        return lower_staged(k, t, coords, gate);
    if (i->beside && !k->along)
        note_beside(k, t, coords);
    return lower_computed(k, t, coords, gate);
}

/* An integer that is made of coordinates, as one: NULL if it is not, or might wrap. */
static Node *as_index(Context *c, Node *n)
{
    const int bits = 8 * (int)dtype_info[n->dtype].bytes - 2;
    Node *v = NULL;
    if (n->dtype != INGOT_I64 && n->dtype != INGOT_I32)
        return NULL;
    if (n->op == OP_CAST && n->src[0]->dtype == INGOT_INDEX) {
        v = n->src[0];
    } else if (n->op == OP_CONST) {
        v = idx(c, n->arg.i);
    } else if (n->op == OP_ADD || n->op == OP_SUB) {
        Node *x = as_index(c, n->src[0]), *y = as_index(c, n->src[1]);
        v = !x || !y ? NULL : n->op == OP_ADD ? idx_add(c, x, y) : idx_sub(c, x, y);
    }
    return v && v->lo > -(INT64_C(1) << bits) && v->hi < INT64_C(1) << bits ? v : NULL;
}

/* Of a concat that lies on another device, and is made of numbers, weights, sizes: the part that
 * has the coordinate. */
static Node *lower_concat(StoreNest *k, Node *t, Node *const *coords, Node *gate)
{
    Context *c = k->s->c;
    Node *at[INGOT_MAX_RANK], *v = zero(c, t->dtype), *end = idx(c, 0);
    const int axis = (int)t->arg.i;
    memcpy((void *)at, (void *)coords, (size_t)t->rank * sizeof *at);
    for (uint32_t j = 0; j < t->nsrc; j++) {
        Node *begin = end;
        end = idx_add(c, begin, t->src[j]->shape[axis]);
        Node *last = idx_sub(c, end, idx(c, 1));
        Node *inside = bool_and(c, idx_le(c, begin, coords[axis]), idx_le(c, coords[axis], last));
        Node *both = bool_and(c, gate, inside);
        at[axis] = idx_sub(c, coords[axis], begin);
        if (!node_is_const_i(both, 0))
            v = node_where(c, inside, lower_value(k, t->src[j], at, both), v);
    }
    return v;
}

static Node *lower_computed(StoreNest *k, Node *t, Node *const *coords, Node *gate)
{
    Context *c = k->s->c;
    Info *i = info_of(k->s, t);
    Node *spelled = inline_constant(c, t);
    if (spelled)
        return spelled;
    if (t->op == OP_DATA || i->foldable) {
        const bool first = !i->buffer;
        Buffer *b = weight_buffer(k->s, t);
        b->device = first ? k->device : b->device;
        return load_value(k, b, NULL, coords, gate);
    }
    if (op_is_alu(t->op)) {
        Node *src[MAX_ALU_SRC];
        for (uint32_t j = 0; j < t->nsrc; j++)
            src[j] = lower_value(k, t->src[j], coords, gate);
        if (t->op == OP_CAST && t->arg.i == 0)
            return node_cast(c, src[0], t->dtype);
        if (t->op >= OP_EQ && t->op <= OP_LE) { /* in lanes coordinates take 32 bits */
            Node *x = as_index(c, src[0]), *y = as_index(c, src[1]);
            if (x && y)
                return node_alu2(c, t->op, INGOT_BOOL, x, y);
        }
        if (t->op == OP_CUSTOM || t->op == OP_MULHI || t->op == OP_SHRR)
            return node_with(c, t, src);
        if (t->op == OP_CAST || t->op == OP_BITCAST)
            return node_make(c, t->op, t->dtype, t->arg, 1, src, 0, NULL);
        return node_alu(c, t->op, t->dtype, (int)t->nsrc, src);
    }
    switch (t->op) {
    case OP_CONST: return t;
    case OP_IOTA: return node_cast(c, coords[t->arg.i], t->dtype);
    case OP_GATHER: return lower_gather(k, t, coords, gate);
    case OP_REDUCE: return lower_reduce(k, t, coords, gate);
    case OP_SCAN: return lower_scan(k, t, coords, gate);
    case OP_CONCAT: return lower_concat(k, t, coords, gate);
    case OP_PROJ: {
        Info *tuple = info_of(k->s, t->src[0]);
        if (!tuple->tuple)
            BUG("%s read before its step", op_info[t->src[0]->op].text);
        const StoredPlace *place = &tuple->tuple[t->arg.i];
        return load_value(k, place->buffer, place->at, coords, gate);
    }
    case OP_RESHAPE:
    case OP_PERMUTE:
    case OP_EXPAND:
    case OP_PAD:
    case OP_SHRINK:
    case OP_FLIP:
    case OP_COPY:
    case OP_KEEP: return lower_move(k, t, coords, gate);
    default: BUG("cannot lower %s", op_info[t->op].text);
    }
}

typedef struct LoweredValue {
    struct LoweredValue *next;
    Node *t, *gate, *value;
    Node *coords[];
} LoweredValue;

/* Fused regions are at most DEPTH_ANY deep (fuse.c), so recursion is bounded. */
Node *lower_value(StoreNest *k, Node *t, Node *const *coords, Node *gate)
{
    if (t->dtype == INGOT_INDEX && t->rank == 0)
        return t; /* dims */
    uint64_t h = hash_join(t->id, gate->id);
    for (int i = 0; i < t->rank; i++)
        h = hash_join(h, coords[i]->id);
    h |= 1;
    LoweredValue *head = map_get(&k->memo, h);
    for (LoweredValue *e = head; e; e = e->next)
        if (e->t == t && e->gate == gate &&
            !memcmp(e->coords, coords, (size_t)t->rank * sizeof *coords))
            return e->value;
    Node *v = lower_fresh(k, t, coords, gate);
    LoweredValue *e = arena_alloc(k->s->arena, sizeof *e + (size_t)t->rank * sizeof *coords);
    *e = (LoweredValue){.next = head, .t = t, .gate = gate, .value = v};
    memcpy((void *)e->coords, coords, (size_t)t->rank * sizeof *coords);
    map_put(&k->memo, h, e);
    return v;
}
