/* kernel.c - the nodes of a kernel, its copies, what it accesses. */
#include "kernel.h"
#include <string.h>

Node *const *kernel_nodes(const Kernel *k, int *n)
{
    Context *c = k->c;
    if (c->walked != k->sink) {
        c->walked = k->sink;
        c->walk = graph_toposort(c->arena, 1, &k->sink, &c->nwalk);
    }
    *n = c->nwalk;
    return c->walk;
}

Node *const *kernel_end_nodes(const Kernel *k, int *n)
{
    Node *const *order = kernel_nodes(k, n);
    while (order[*n - 1] != k->sink->src[0])
        --*n;
    return order;
}

Kernel *kernel_copy(const Kernel *old)
{
    Arena *a = arena_new();
    Context *c = context_child(old->c);
    Kernel *k = NEW(c->arena, Kernel);
    int nroot = 0, n;
    Node **roots = NULL;
    vec_push(a, roots, nroot, old->sink);
    for (int i = 0; i < old->naxis; i++)
        vec_push(a, roots, nroot, old->axes[i].range);
    for (int i = 0; i < old->narg; i++)
        for (int j = 0; j < old->args[i].rank; j++)
            vec_push(a, roots, nroot, old->args[i].dims[j]);
    for (int i = 0; i < old->narg; i++)
        if (old->args[i].beyond.from)
            vec_push(a, roots, nroot, old->args[i].beyond.from);
    Node **order = graph_toposort(a, nroot, roots, &n), **copy = NEWN(a, Node *, old->c->nnode);
    for (int i = 0; i < n; i++) {
        enum { FEW = 16 };
        Node *t = order[i], *few[FEW], **src = t->nsrc > FEW ? NEWN(a, Node *, t->nsrc) : few;
        for (uint32_t j = 0; j < t->nsrc; j++)
            src[j] = copy[t->src[j]->id];
        copy[t->id] =
            node_make(c, (Op)t->op, (ingot_dtype)t->dtype, t->arg, (int)t->nsrc, src, 0, NULL);
    }
    *k = *old;
    k->c = c;
    k->sink = copy[old->sink->id];
    k->axes = NEWN(c->arena, Axis, k->naxis);
    for (int i = 0; i < k->naxis; i++) {
        k->axes[i] = old->axes[i];
        k->axes[i].range = copy[old->axes[i].range->id];
    }
    k->args = NEWN(c->arena, KernelArg, k->narg);
    for (int i = 0; i < k->narg; i++) {
        Node **dims = NEWN(c->arena, Node *, old->args[i].rank);
        for (int j = 0; j < old->args[i].rank; j++)
            dims[j] = copy[old->args[i].dims[j]->id];
        k->args[i] = old->args[i];
        k->args[i].dims = dims;
        if (old->args[i].beyond.from)
            k->args[i].beyond.from = copy[old->args[i].beyond.from->id];
    }
    k->scalars = NEWN(c->arena, Scalar, k->nscalar + 1);
    for (int i = 0; i < k->nscalar; i++)
        k->scalars[i] = old->scalars[i];
    k->lowered = NULL;
    k->opts = NULL;
    k->vars = NULL;
    k->nopt = k->nvar = 0;
    for (int i = 0; i < old->nopt; i++)
        vec_push(c->arena, k->opts, k->nopt, opt_copy(c->arena, &old->opts[i]));
    for (int i = 0; i < old->nvar; i++)
        vec_push(c->arena, k->vars, k->nvar, old->vars[i]);
    arena_free(a);
    return k;
}

Kernel *kernel_renew(Kernel *old)
{
    Kernel *k = kernel_copy(old);
    ingot_context_free(old->c);
    kernel_find_vars(k);
    return k;
}

/* The run-time integers that its addresses, extents and values need: the kernel's parameters. */
void kernel_find_vars(Kernel *k)
{
    k->nvar = 0;
    bool some = false;
    for (uint32_t i = 0; i < k->c->nnode && !some; i++)
        some = k->c->nodes[i]->op == OP_VAR;
    if (!some)
        return;
    Arena *a = arena_new();
    int n;
    Node *sink;
    flatten_addresses(a, k, 1, &k->sink, &sink);
    Node **order = graph_toposort(a, 1, &sink, &n);
    for (int i = 0; i < n; i++)
        if (order[i]->op == OP_VAR)
            vec_push(k->c->arena, k->vars, k->nvar, (int)order[i]->arg.i);
    arena_free(a);
}

bool kernel_has_sizes(const Kernel *k, Node *e)
{
    int n;
    bool good = true;
    Arena *a = arena_new();
    Node **order = graph_toposort(a, 1, &e, &n);
    for (int i = 0; i < n && good; i++) {
        bool found = order[i]->op != OP_VAR;
        for (int j = 0; j < k->nvar && !found; j++)
            found = k->vars[j] == (int)order[i]->arg.i;
        good = found;
    }
    arena_free(a);
    return good;
}

/* Of each argument the box that all accesses to it lie in. */
int64_t kernel_bytes(const Kernel *k)
{
    typedef struct {
        int64_t lo[INGOT_MAX_RANK], hi[INGOT_MAX_RANK];
        bool touched;
    } Touched;
    Arena *a = arena_new();
    Touched *box = NEWN(a, Touched, k->narg);
    int n;
    Node *const *order = kernel_nodes(k, &n);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        if (t->op != OP_LOAD && t->op != OP_STORE)
            continue;
        Touched *b = &box[t->src[0]->arg.i];
        for (int d = 0; d < k->args[t->src[0]->arg.i].rank; d++) {
            Node *e = t->src[first_coord(t) + d];
            b->lo[d] = !b->touched || e->lo < b->lo[d] ? e->lo : b->lo[d];
            b->hi[d] = !b->touched || e->hi > b->hi[d] ? e->hi : b->hi[d];
        }
        b->touched = true;
    }
    int64_t bytes = 0, *count = NEWN(a, int64_t, k->narg + 1);
    kernel_accesses(k, a, count); /* of a table that is looked into, a few rows */
    for (int i = 0; i < k->narg; i++) {
        const KernelArg *arg = &k->args[i];
        int64_t each = dtype_info[arg->dtype].bytes, size = each;
        for (int d = 0; d < arg->rank; d++) {
            int64_t last = arg->dims[d]->hi - 1, lo = box[i].lo[d] > 0 ? box[i].lo[d] : 0;
            int64_t hi = box[i].hi[d] < last ? box[i].hi[d] : last;
            size = sat_mul(size, hi < lo ? 0 : hi - lo + 1);
        }
        int64_t accessed = sat_mul(each, count[i]);
        bytes = sat_add(bytes, !box[i].touched ? 0 : size < accessed ? size : accessed);
    }
    arena_free(a);
    return bytes;
}

/* How often each of the n nodes is computed, at the upper bounds of run-time dims: the product of
 * the extents of the ranges that it depends on (as bit sets), for a REDUCE with those that it
 * reduces. */
int64_t *kernel_iterations(const Kernel *k, Arena *a, int n, Node *const *order)
{
    int64_t *times = NEWN(a, int64_t, n);
    uint64_t *on = NEWN(a, uint64_t, k->c->nnode), last = 0; /* by id */
    int64_t of_last = 1;
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        uint64_t set = t->op == OP_RANGE ? UINT64_C(1) << (t->arg.i & 63) : 0;
        for (uint32_t j = 0; j < t->nsrc; j++)
            set |= on[t->src[j]->id];
        if (set != last)
            of_last = 1;
        for (int r = 0; r < k->naxis && set != last; r++)
            if (set >> (k->axes[r].range->arg.i & 63) & 1)
                of_last = sat_mul(of_last, k->axes[r].range->hi + 1);
        times[i] = of_last;
        last = set;
        int nown;
        Node *const *own = own_ranges(t, &nown);
        for (int j = 0; j < nown; j++)
            if (own[j]->op == OP_RANGE)
                set &= ~(UINT64_C(1) << (own[j]->arg.i & 63));
        on[t->id] = set;
    }
    return times;
}

void kernel_accesses(const Kernel *k, Arena *a, int64_t *count)
{
    int n;
    Node *const *order = kernel_nodes(k, &n);
    const int64_t *times = kernel_iterations(k, a, n, order);
    memset(count, 0, (size_t)k->narg * sizeof *count);
    for (int i = 0; i < n; i++)
        if (order[i]->op == OP_LOAD || order[i]->op == OP_STORE) {
            int64_t *c = &count[order[i]->src[0]->arg.i];
            *c = sat_add(*c, times[i]);
        }
}
