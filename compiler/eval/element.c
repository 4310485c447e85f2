/* element.c - elements of values of the graph, on demand: in lanes, by recursion over what they are
 * made of.
 *
 * A batch is a list of coordinates; a movement makes another one of it, and a reduction one that
 * has its terms too.  A value is computed once for a batch, and a reduction once for its
 * coordinates, whoever asks. */
#include "element.h"

#include <math.h>
#include <string.h>

enum { MOST_DEPTH = 2000 };

struct ElementFrame {
    Arena *a;
    Map values, moved; /* node and batch -> Lanes, Batch */
    struct ElementFrame *outer;
};

struct ElementState {
    Arena *a;
    Map dims, known; /* known: what reductions are, of this call */
    Arena *call;
    uint32_t nbatch;
    int depth;
    Node *root; /* is computed, wherever it lies */
};

Elements *elements_new(Arena *a, Context *c, Interp *ip)
{
    Elements *x = NEW(a, Elements);
    *x = (Elements){.c = c, .ip = ip};
    x->state = NEW(a, struct ElementState);
    x->state->a = a;
    return x;
}

struct ElementFrame *element_begin(Elements *x)
{
    Arena *a = arena_new();
    struct ElementFrame *f = NEW(a, struct ElementFrame);
    *f = (struct ElementFrame){.a = a, .outer = x->frame};
    return x->frame = f;
}

void element_end(Elements *x, struct ElementFrame *f)
{
    x->frame = f->outer;
    map_free(&f->values);
    map_free(&f->moved);
    arena_free(f->a);
}

void elements_free(Elements *x)
{
    while (x->frame)
        element_end(x, x->frame);
    map_free(&x->state->dims);
    map_free(&x->state->known);
    arena_free(x->state->call);
}

void *element_keep(Elements *x, size_t bytes)
{
    return arena_alloc(x->state->call, bytes);
}

Map *element_known(Elements *x)
{
    return &x->state->known;
}

Arena *element_arena(Elements *x)
{
    return x->frame->a;
}

bool element_work(Elements *x, int64_t operations)
{
    x->left -= operations;
    x->unknown |= x->left < 0;
    return !x->unknown;
}

const int64_t *element_dims(Elements *x, Node *n)
{
    int64_t *d = map_get(&x->state->dims, (uint64_t)n->id + 1);
    if (d)
        return d;
    d = NEWN(x->state->a, int64_t, n->rank + 1);
    for (int i = 0; i < n->rank; i++)
        d[i] = dim_value(x->ip, n->shape[i]);
    map_put(&x->state->dims, (uint64_t)n->id + 1, d);
    return d;
}

Batch *element_batch(Elements *x, int n, int rank)
{
    Batch *b = NEW(x->frame->a, Batch);
    *b = (Batch){.number = ++x->state->nbatch, .n = n};
    for (int i = 0; i < rank; i++)
        b->x[i] = NEWN(x->frame->a, int64_t, n + 1);
    return b;
}

static Lanes *lanes_new(Elements *x, const Node *n, int count)
{
    Lanes *l = NEW(x->frame->a, Lanes);
    l->v = arena_alloc(x->frame->a, (size_t)(count + 1) * element_bytes_of(n));
    return l;
}

/* ---- movement -------------------------------------------------------------------------------- */

/* Which axis of the result, of sizes d, each of the source is, of sizes s: those of size 1 apart
 * (-1) they are the same ones in the same order. */
static bool same_axes(int rank, const int64_t *d, int source_rank, const int64_t *s, int *axis)
{
    int j = 0;
    for (int i = 0; i < source_rank; i++) {
        axis[i] = -1;
        if (s[i] == 1)
            continue;
        while (j < rank && d[j] == 1)
            j++;
        if (j == rank || d[j] != s[i])
            return false;
        axis[i] = j++;
    }
    while (j < rank && d[j] == 1)
        j++;
    return j == rank;
}

static void reshape(Elements *q, const Node *n, const int64_t *d, const int64_t *s, const Batch *at,
                    Batch *to)
{
    const Node *x = n->src[0];
    int axis[INGOT_MAX_RANK];
    const bool same = same_axes(n->rank, d, x->rank, s, axis);
    for (int i = 0; i < x->rank; i++)
        to->x[i] = same && axis[i] >= 0 ? at->x[axis[i]] : NEWN(q->frame->a, int64_t, at->n + 1);
    for (int k = 0; k < at->n && !same; k++) {
        int64_t flat = 0;
        for (int i = 0; i < n->rank; i++)
            flat = flat * d[i] + at->x[i][k];
        for (int i = x->rank; i-- > 0;) {
            to->x[i][k] = s[i] ? flat % s[i] : 0;
            flat = s[i] ? flat / s[i] : 0;
        }
    }
}

/* Coordinates along one axis of the source: those of the result, if they are the same. */
static int64_t *move_axis(Elements *q, const Node *n, int axis, int64_t d, int64_t s,
                          const Batch *at)
{
    const bool begins = n->op == OP_SHRINK || n->op == OP_PAD;
    const int64_t first = begins ? dim_value(q->ip, n->src[1 + 2 * axis]) : 0;
    int64_t *from = at->x[axis], *y;
    if (n->op == OP_EXPAND ? s != 1 : n->op == OP_FLIP ? !(n->arg.i >> axis & 1) : !first && s == d)
        return from;
    y = NEWN(q->frame->a, int64_t, at->n + 1);
    for (int k = 0; k < at->n && n->op == OP_FLIP; k++)
        y[k] = d - 1 - from[k];
    for (int k = 0; k < at->n && n->op == OP_SHRINK; k++)
        y[k] = from[k] + first;
    for (int k = 0; k < at->n && n->op == OP_PAD; k++) {
        y[k] = from[k] - first < s ? from[k] - first : s - 1;
        y[k] = y[k] < 0 ? 0 : y[k];
    }
    return y;
}

/* Coordinates of the source; what a PAD adds is held within it. */
static Batch *move_batch(Elements *q, Node *n, const Batch *at)
{
    Node *x = n->src[0];
    const int64_t *d = element_dims(q, n), *s = element_dims(q, x);
    if (n->op == OP_RESHAPE) {
        Batch *flat = element_batch(q, at->n, 0);
        reshape(q, n, d, s, at, flat);
        return flat;
    }
    Batch *to = element_batch(q, at->n, 0);
    for (int i = 0; i < n->rank; i++) {
        if (n->op == OP_PERMUTE)
            to->x[((const Perm *)n->arg.ptr)->axis[i]] = at->x[i];
        else
            to->x[i] = move_axis(q, n, i, d[i], s[i], at);
    }
    return to;
}

static const Batch *moved(Elements *q, Node *n, const Batch *at)
{
    if (n->op == OP_KEEP || n->op == OP_COPY)
        return at;
    const uint64_t key = (uint64_t)n->id << 32 | at->number;
    Batch *to = map_get(&q->frame->moved, key);
    if (!to)
        map_put(&q->frame->moved, key, to = move_batch(q, n, at));
    return to;
}

/* Zero where some coordinate is none of the source. */
static const Lanes *pad(Elements *q, Node *n, const Batch *at)
{
    Node *x = n->src[0];
    const int64_t *s = element_dims(q, x);
    const Lanes *in = element_value(q, x, moved(q, n, at));
    if (!in)
        return NULL;
    Lanes *out = lanes_new(q, n, at->n);
    const size_t size = element_bytes_of(n);
    out->error = in->error ? NEWN(q->frame->a, double, at->n + 1) : NULL;
    for (int k = 0; k < at->n; k++) {
        bool inside = true;
        for (int i = 0; i < n->rank && inside; i++) {
            const int64_t c = at->x[i][k] - dim_value(q->ip, n->src[1 + 2 * i]);
            inside = c >= 0 && c < s[i];
        }
        if (!inside)
            continue;
        memcpy((char *)out->v + (size_t)k * size, (char *)in->v + (size_t)k * size, size);
        if (in->error)
            out->error[k] = in->error[k];
    }
    return out;
}

static const Lanes *gather(Elements *q, Node *n, const Batch *at)
{
    Node *x = n->src[0];
    const int64_t *s = element_dims(q, x);
    Batch *to = element_batch(q, at->n, x->rank);
    double *error = NULL;
    for (int i = 0; i < x->rank; i++) {
        const Lanes *index = element_value(q, n->src[1 + i], at);
        if (!index)
            return NULL;
        alu_cast(INGOT_I64, (ingot_dtype)n->src[1 + i]->dtype, 0, (size_t)at->n, to->x[i],
                 index->v);
        for (int k = 0; k < at->n; k++) {
            int64_t *c = &to->x[i][k];
            *c = *c >= s[i] ? s[i] - 1 : *c;
            *c = *c < 0 ? 0 : *c;
            /* it may be another element, or there is none */
            if ((index->error && index->error[k] > 0) || s[i] == 0) {
                error = error ? error : NEWN(q->frame->a, double, at->n + 1);
                error[k] = INFINITY;
            }
        }
    }
    const Lanes *in = element_value(q, x, to);
    if (!in || !error)
        return in;
    Lanes *out = NEW(q->frame->a, Lanes);
    *out = (Lanes){in->v, error};
    for (int k = 0; k < at->n && in->error; k++)
        error[k] += in->error[k];
    return out;
}

static const Lanes *concat(Elements *q, Node *n, const Batch *at)
{
    const int axis = (int)n->arg.i;
    const size_t size = element_bytes_of(n);
    Lanes *out = lanes_new(q, n, at->n);
    int64_t begin = 0;
    for (uint32_t p = 0; p < n->nsrc; p++) {
        Node *x = n->src[p];
        const int64_t extent = element_dims(q, x)[axis];
        int *lane = NEWN(q->frame->a, int, at->n + 1), count = 0;
        for (int k = 0; k < at->n; k++)
            if (at->x[axis][k] >= begin && at->x[axis][k] < begin + extent)
                lane[count++] = k;
        Batch *to = count ? element_batch(q, count, n->rank) : NULL;
        for (int i = 0; i < n->rank && count; i++)
            for (int k = 0; k < count; k++)
                to->x[i][k] = at->x[i][lane[k]] - (i == axis ? begin : 0);
        const Lanes *in = count ? element_value(q, x, to) : NULL;
        if (count && !in)
            return NULL;
        for (int k = 0; k < count; k++) {
            memcpy((char *)out->v + (size_t)lane[k] * size, (char *)in->v + (size_t)k * size, size);
            if (in->error && !out->error)
                out->error = NEWN(q->frame->a, double, at->n + 1);
            if (in->error)
                out->error[lane[k]] = in->error[k];
        }
        begin += extent;
    }
    return out;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* What is in storage form, as it is held here. */
static Lanes *held(Elements *q, const Node *n, int count, const void *stored)
{
    Lanes *l = lanes_new(q, n, count);
    if (dtype_is_float(n->dtype))
        alu_cast(INGOT_F64, (ingot_dtype)n->dtype, 0, (size_t)count, l->v, stored);
    else
        memcpy(l->v, stored, (size_t)count * elem_bytes((ingot_dtype)n->dtype));
    return l;
}

/* The same number in every lane. */
static Lanes *filled(Elements *q, const Node *n, int count, const void *stored)
{
    Lanes *one = held(q, n, 1, stored), *l = lanes_new(q, n, count);
    const size_t size = element_bytes_of(n);
    double *number = l->v;
    for (int k = 0; k < count && size == sizeof *number; k++)
        number[k] = *(const double *)one->v;
    for (int k = 0; k < count && size != sizeof *number; k++)
        memcpy((char *)l->v + (size_t)k * size, one->v, size);
    return l;
}

static Lanes *number(Elements *q, const Node *n, int count, int64_t v)
{
    _Alignas(16) char stored[16];
    store_int((ingot_dtype)n->dtype, v, stored);
    return filled(q, n, count, stored);
}

static Lanes *data(Elements *q, Node *n, const Batch *at)
{
    const Data *d = n->arg.ptr;
    const int64_t *s = element_dims(q, n);
    const size_t size = elem_bytes((ingot_dtype)n->dtype);
    char *stored = arena_alloc(q->frame->a, (size_t)(at->n + 1) * size);
    for (int k = 0; k < at->n; k++) {
        size_t flat = 0;
        for (int i = 0; i < n->rank; i++)
            flat = flat * (size_t)s[i] + (size_t)at->x[i][k];
        if ((flat + 1) * size <= d->nbytes)
            memcpy(stored + (size_t)k * size, d->bytes + flat * size, size);
    }
    return held(q, n, at->n, stored);
}

static const Lanes *leaf(Elements *q, Node *n, int part, const Batch *at, const Node *as)
{
    char *stored =
        arena_alloc(q->frame->a, (size_t)(at->n + 1) * elem_bytes((ingot_dtype)as->dtype));
    return q->leaf(q->user, n, part, at->n, at->x, stored) ? held(q, as, at->n, stored) : NULL;
}

static const Lanes *unknown(Elements *q)
{
    q->unknown = true;
    return NULL;
}

static const Lanes *computed(Elements *q, Node *n, const Batch *at)
{
    if (op_is_alu(n->op)) {
        const Lanes *src[MAX_ALU_SRC];
        for (uint32_t i = 0; i < n->nsrc; i++)
            if (!(src[i] = element_value(q, n->src[i], at)))
                return NULL;
        return element_alu(q, n, at->n, src);
    }
    const Lanes *l = NULL;
    switch (n->op) {
    case OP_DATA: return data(q, n, at);
    case OP_IOTA: {
        Lanes *i = lanes_new(q, n, at->n);
        memcpy(i->v, at->x[n->arg.i], (size_t)at->n * sizeof(int64_t));
        return i;
    }
    case OP_PAD: return pad(q, n, at);
    case OP_GATHER: return gather(q, n, at);
    case OP_CONCAT: return concat(q, n, at);
    case OP_RESHAPE:
    case OP_PERMUTE:
    case OP_EXPAND:
    case OP_SHRINK:
    case OP_FLIP:
    case OP_KEEP:
    case OP_COPY: return element_value(q, n->src[0], moved(q, n, at));
    case OP_COLLECTIVE:
        return collective_of(n).processes ? element_value(q, n->src[0], at) : unknown(q);
    case OP_REDUCE:
    case OP_SCAN: return element_reduce(q, n, at);
    case OP_UPDATE: return element_update(q, n, at);
    case OP_PROJ: l = leaf(q, n->src[0], (int)n->arg.i, at, n); return l ? l : unknown(q);
    default: return unknown(q);
    }
}

static const Lanes *fresh(Elements *q, Node *n, const Batch *at)
{
    if (dtype_info[n->dtype].kind == 'c' || n->dtype == INGOT_STRING)
        return unknown(q);
    if (n->op == OP_CONST) {
        _Alignas(16) char stored[16];
        store_const(n, stored);
        return filled(q, n, at->n, stored);
    }
    if (n->dtype == INGOT_INDEX && n->rank == 0)
        return number(q, n, at->n, dim_value(q->ip, n));
    Node *integer = q->integer(q->user, n);
    if (integer)
        return number(q, n, at->n, dim_value(q->ip, integer));
    const Lanes *l = n == q->state->root ? NULL : leaf(q, n, 0, at, n);
    q->state->root = n == q->state->root ? NULL : q->state->root;
    return l ? l : computed(q, n, at);
}

const Lanes *element_value(Elements *q, Node *n, const Batch *at)
{
    const uint64_t key = (uint64_t)n->id << 32 | at->number;
    const Lanes *l = map_get(&q->frame->values, key);
    if (l || !element_work(q, at->n + 4))
        return l;
    if (++q->state->depth > MOST_DEPTH)
        return unknown(q);
    l = fresh(q, n, at);
    q->state->depth--;
    if (l)
        map_put(&q->frame->values, key, (void *)(uintptr_t)l);
    return q->unknown ? NULL : l;
}

bool elements_of(Elements *x, Node *n, bool root, int lanes, int64_t *const *at, Lanes *out)
{
    while (x->frame)
        element_end(x, x->frame);
    (void)element_begin(x);
    map_free(&x->state->known);
    arena_free(x->state->call);
    x->state->call = arena_new();
    x->unknown = false;
    x->state->depth = 0;
    x->state->root = root ? n : NULL;
    Batch *b = element_batch(x, lanes, n->rank);
    for (int i = 0; i < n->rank; i++)
        memcpy(b->x[i], at[i], (size_t)lanes * sizeof **at);
    const Lanes *l = element_value(x, n, b);
    if (l)
        *out = *l;
    return l != NULL;
}
