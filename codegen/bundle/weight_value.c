/* weight_value.c - the bytes of a constant, in its buffer's layout.
 *
 * A constant is a span of the mapped model file, or a recipe: an expression that the interpreter
 * evaluates here. What has a layout is packed, piece by piece of its rows: neither the file's bytes
 * nor what is made of them are in memory as a whole.
 *
 *     rows 0 .. 511 of the digits -> their places     what the file has for them is forgotten
 *     rows 512 .. 1023            -> */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bundle.h"
#include "weight_value.h"

enum {
    PIECE = 1 << 20,
    SMALL_SPAN = 1 << 14,
    LARGE_SPAN = 1 << 20,
    LARGE_MODEL = 1 << 25,
    HUGE_PAGE = 1 << 21
};

static int64_t dense_dims(const Buffer *w, int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < w->rank; i++)
        n *= dims[i] = w->dims[i]->hi;
    return n;
}

/* ---- what the file has ------------------------------------------------------------------------
 */

/* Pages of the model file that are not needed again; a hint that never changes contents. */
static void forget(const uint8_t *from, const uint8_t *to)
{
#if defined(MADV_PAGEOUT)
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)from + page - 1) / page * page,
              last = (uintptr_t)to / page * page;
    if (last > first)
        madvise((void *)first, last - first, MADV_PAGEOUT);
#else
    (void)from, (void)to;
#endif
}

/* A page may be a huge one, which goes as a whole or not at all: so *from stays at the start of
 * one. */
static void forget_up_to(const uint8_t **from, const uint8_t *up_to)
{
    const uint8_t *to = up_to - (uintptr_t)up_to % HUGE_PAGE;
    if (to <= *from)
        return;
    forget(*from, to);
    *from = to;
}

static Node **sources(Arena *a, const Buffer *w, int *n)
{
    int all;
    Node **order = graph_toposort(a, 1, &w->node, &all);
    *n = 0;
    for (int i = 0; i < all; i++)
        if (order[i]->op == OP_DATA)
            order[(*n)++] = order[i];
    return order;
}

static uint64_t data_key(const Node *data)
{
    return (uintptr_t)((const Data *)data->arg.ptr)->bytes + 1;
}

Map weight_last_readers(const Bundle *b)
{
    Map last = {0};
    for (int i = 0; i < b->nweight; i++) {
        int n;
        Arena *a = arena_new();
        Node **of = sources(a, b->weight[i], &n);
        for (int k = 0; k < n; k++)
            map_put(&last, data_key(of[k]), (void *)(intptr_t)(i + 1));
        arena_free(a);
    }
    return last;
}

/* Of a small model the file stays in memory, for the next run. */
void weight_forget_sources(const Bundle *b, int i, const Map *last)
{
    int n;
    Arena *a = arena_new();
    Node **of = sources(a, b->weight[i], &n);
    const size_t least = b->p->weights_bytes < LARGE_MODEL ? LARGE_SPAN : SMALL_SPAN;
    for (int k = 0; k < n; k++) {
        const Data *d = of[k]->arg.ptr;
        if (d->nbytes >= least && (intptr_t)map_get(last, data_key(of[k])) == i + 1)
            forget(d->bytes, d->bytes + d->nbytes);
    }
    arena_free(a);
}

/* ---- rows that are packed ---------------------------------------------------------------------
 */

typedef struct {
    Context *c;
    const Buffer *w;
    int64_t dims[INGOT_MAX_RANK], row; /* bytes of a row */
    int64_t first, count;              /* rows that are there */
    const uint8_t *bytes;              /* of row `first` */
    const uint8_t *unread;             /* of the file: where what is in memory begins */
    Interp *interp;                    /* owner of the bytes of a recipe */
} PackedRows;

/* Whether each row of a recipe is made of its own rows alone, so that pieces take no longer. */
static bool by_rows(Node *root)
{
    int n;
    Arena *a = arena_new();
    Node **order = graph_toposort(a, 1, &root, &n);
    bool yes = true;
    for (int i = 0; i < n && yes; i++)
        yes = op_is_alu(order[i]->op) || order[i]->op == OP_DATA || order[i]->op == OP_CONST ||
              (op_info[order[i]->op].cls == MOVE && order[i]->op != OP_CONCAT);
    arena_free(a);
    return yes;
}

static bool evaluate_rows(PackedRows *p, int64_t first)
{
    Node *n = p->w->node;
    const int64_t left = p->dims[0] - first, count = p->count < left ? p->count : left;
    if (p->w->rank && count < p->dims[0])
        n = ingot_slice(p->c, n, 0, ingot_dim_const(p->c, first), ingot_dim_const(p->c, count), 1);
    if (p->interp)
        interp_free(p->interp);
    p->interp = interp_new(p->c);
    p->bytes = interp_eval(p->interp, n, NULL);
    p->first = first;
    p->count = count;
    return p->bytes != NULL;
}

/* The rows of the data that these rows were made of, where it has as many as the weight. */
static void forget_rows(const PackedRows *p, int64_t first, int64_t count)
{
    int n;
    Arena *a = arena_new();
    Node **of = sources(a, p->w, &n);
    for (int i = 0; i < n; i++) {
        const Data *d = of[i]->arg.ptr;
        const size_t row = d->nbytes / (size_t)p->dims[0];
        if (of[i]->rank && idx_is(of[i]->shape[0], p->dims[0]))
            forget(d->bytes + (size_t)first * row, d->bytes + (size_t)(first + count) * row);
    }
    arena_free(a);
}

static const void *next_row(int64_t row, void *user)
{
    PackedRows *p = user;
    const uint8_t *at = p->bytes + (row - p->first) * p->row;
    if (!p->interp) {
        if (at - p->unread >= PIECE)
            forget_up_to(&p->unread, at);
        return at;
    }
    if (row < p->first + p->count)
        return at;
    forget_rows(p, p->first, p->count);
    if (!evaluate_rows(p, row))
        BUG("rows of a weight from %lld on have no value", (long long)row);
    return p->bytes;
}

/* The bytes in the buffer's layout; NULL: they cannot be computed, as was told. */
static void *packed(Bundle *b, const Buffer *w, int64_t elements)
{
    PackedRows p = {.c = b->c, .w = w};
    dense_dims(w, p.dims);
    const int64_t bytes = elements * element_bytes(w->dtype);
    p.row = w->rank && p.dims[0] ? bytes / p.dims[0] : bytes;
    p.count = w->rank ? p.dims[0] : 1;
    if (w->node->op == OP_DATA) {
        p.bytes = p.unread = ((const Data *)w->node->arg.ptr)->bytes;
    } else {
        if (bytes > 2 * PIECE && w->rank > 1 && elements > p.dims[0] && by_rows(w->node))
            p.count = p.row < PIECE ? PIECE / p.row : 1;
        if (!evaluate_rows(&p, 0))
            return NULL;
    }
    void *to = malloc((size_t)w->bytes + 1);
    if (!to)
        BUG("out of memory");
    layout_pack(&w->layout, w->rank, p.dims, (size_t)element_bytes(w->dtype), NULL, to, next_row,
                &p);
    if (p.interp)
        interp_free(p.interp);
    return to;
}

/* ---- one tensor's bytes -----------------------------------------------------------------------
 */

WeightValue weight_value(Bundle *b, const Buffer *w)
{
    WeightValue v = {0};
    int64_t dims[INGOT_MAX_RANK];
    const int64_t n = dense_dims(w, dims);
    const Data *d = w->node->op == OP_DATA ? w->node->arg.ptr : NULL;
    if (d && (int64_t)d->nbytes != n * element_bytes(w->dtype))
        BUG("weight '%s' has %zu bytes, its buffer %lld", d->name ? d->name : "", d->nbytes,
            (long long)w->bytes);
    if (w->layout.n) {
        v.bytes = v.packed = packed(b, w, n);
    } else if (d) {
        v.bytes = d->bytes;
    } else {
        v.interp = interp_new(b->c);
        v.bytes = interp_eval(v.interp, w->node, dims);
    }
    if (!v.bytes)
        b->failed = true; /* told by the interpreter */
    return v;
}

void weight_value_close(WeightValue *v)
{
    free(v->packed);
    if (v->interp)
        interp_free(v->interp);
    *v = (WeightValue){0};
}
