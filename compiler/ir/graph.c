/* graph.c - walking graphs of any depth: an explicit stack, never recursion. */
#include <string.h>

#include "ir.h"

/* A walk over sources: where it is, and what it has passed. */
typedef struct {
    Node *node;
    uint32_t next;
} WalkFrame;

typedef struct {
    WalkFrame *stack;
    uint64_t *seen; /* bits by id */
    Node **order;
    size_t depth, deepest, n, room;
    Arena *scratch; /* NULL: what there is at first has been enough */
} GraphWalk;

static inline Arena *scratch_of(GraphWalk *w)
{
    return w->scratch ? w->scratch : (w->scratch = arena_new());
}

static inline void append(GraphWalk *w, Node *t)
{
    if (w->n == w->room) {
        w->order = vec_grow(scratch_of(w), (void *)w->order, w->room, sizeof *w->order);
        w->room *= 2;
    }
    w->order[w->n++] = t;
}

/* Seen for the first time: a leaf is in order at once, others once their sources are. */
static inline void enter(GraphWalk *w, Node *t)
{
    w->seen[t->id / 64] |= UINT64_C(1) << (t->id % 64);
    if (!t->nsrc) {
        append(w, t);
        return;
    }
    if (w->depth == w->deepest) {
        WalkFrame *grown = NEWN(scratch_of(w), WalkFrame, w->deepest * 2);
        memcpy((void *)grown, (void *)w->stack, w->depth * sizeof *grown);
        w->stack = grown;
        w->deepest *= 2;
    }
    w->stack[w->depth++] = (WalkFrame){t, 0};
}

static inline bool is_seen(const GraphWalk *w, const Node *t)
{
    return w->seen[t->id / 64] >> (t->id % 64) & 1;
}

/* Depth-first post-order over sources.  Ids are dense within a context, so "seen" is a bit array
 * as long as the greatest id of the roots: sources have smaller ids than their users. */
Node **graph_toposort(Arena *a, int nroot, Node *const *roots, int *n)
{
    /* most graphs are a kernel's: a few hundred nodes, walked thousands of times */
    enum { DEPTH = 64, WORDS = 512, NODES = 256 };
    WalkFrame stack[DEPTH];
    uint64_t bits[WORDS];
    Node *order[NODES];
    GraphWalk w = {.stack = stack, .seen = bits, .order = order, .deepest = DEPTH, .room = NODES};
    uint32_t top = 0;
    for (int i = 0; i < nroot; i++)
        if (roots[i]->id >= top)
            top = roots[i]->id + 1;
    const size_t words = (size_t)top / 64 + 1;
    if (words > WORDS)
        w.seen = NEWN(scratch_of(&w), uint64_t, words);
    else
        memset(bits, 0, words * sizeof *bits);
    for (int i = 0; i < nroot; i++) {
        if (!is_seen(&w, roots[i]))
            enter(&w, roots[i]);
        while (w.depth) {
            WalkFrame *f = &w.stack[w.depth - 1];
            Node *t = f->node;
            uint32_t next = f->next;
            while (next < t->nsrc && is_seen(&w, t->src[next]))
                next++;
            if (next == t->nsrc) {
                append(&w, t);
                w.depth--;
                continue;
            }
            f->next = next + 1;
            enter(&w, t->src[next]);
        }
    }
    *n = (int)w.n;
    Node **all = vec_of(a, (void *)w.order, w.n, sizeof *w.order);
    arena_free(w.scratch);
    return all;
}

bool call_decides(const Call *call, const Node *dim)
{
    for (int i = 0; i < call->n_count; i++)
        if (dim == call->counts[i])
            return true;
    for (uint32_t i = 0; i < dim->nsrc; i++)
        if (call_decides(call, dim->src[i]))
            return true;
    return false;
}

int64_t dims_bound(int rank, Node *const *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n = sat_mul(n, dims[i]->hi < 0 ? 0 : dims[i]->hi);
    return n;
}

typedef struct {
    Arena *a;
    bool *seen;
    Node **node;
    int n;
} NodeList;

static void add_below(NodeList *all, int nroot, Node *const *roots)
{
    int n;
    Node **order = graph_toposort(all->a, nroot, roots, &n);
    if (!all->n) {
        all->node = order;
        all->n = n;
    }
    for (int i = 0; i < n; i++)
        if (all->node == order) {
            all->seen[order[i]->id] = true;
        } else if (!all->seen[order[i]->id]) {
            all->seen[order[i]->id] = true;
            vec_push(all->a, all->node, all->n, order[i]);
        }
}

/* The regions of a LOOP (one) or IF (two). */
int node_regions(Node *n, const struct Region **r)
{
    if (n->op == OP_LOOP)
        r[0] = ((const Loop *)n->arg.ptr)->body;
    if (n->op == OP_IF) {
        r[0] = ((const If *)n->arg.ptr)->then_branch;
        r[1] = ((const If *)n->arg.ptr)->else_branch;
    }
    return n->op == OP_LOOP ? 1 : n->op == OP_IF ? 2 : 0;
}

Node **graph_nodes(Arena *a, const Context *c, int *n)
{
    NodeList all = {.a = a, .seen = NEWN(a, bool, c->nnode + 1)};
    int nroot = 0;
    Node **roots = NEWN(a, Node *, c->noutput + c->nstate + c->nvar + 1);
    for (int i = 0; i < c->noutput; i++)
        roots[nroot++] = c->outputs[i].node;
    for (int i = 0; i < c->nstate; i++)
        if (c->states[i].next)
            roots[nroot++] = c->states[i].next;
    for (int i = 0; i < c->nvar; i++)
        if (c->vars[i].setter)
            roots[nroot++] = c->vars[i].setter;
    add_below(&all, nroot, roots);
    for (int i = 0; i < all.n; i++) { /* grows on the way: bodies within bodies */
        const struct Region *r[2];
        int nregion = node_regions(all.node[i], r);
        for (int k = 0; k < nregion; k++)
            add_below(&all, r[k]->nresult, r[k]->result);
    }
    *n = all.n;
    return all.node;
}

size_t elem_bytes(ingot_dtype t)
{
    return t == INGOT_STRING ? sizeof(const char *) : (size_t)dtype_info[t].bytes;
}

bool ingot_static_shape(ingot_tensor *x, int64_t *dims)
{
    for (int i = 0; i < x->rank; i++) {
        if (x->shape[i]->op != OP_CONST)
            return false;
        if (dims)
            dims[i] = x->shape[i]->arg.i;
    }
    return true;
}
