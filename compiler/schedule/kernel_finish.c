/* kernel_finish.c - a finished loop nest becomes a Kernel: it is copied into a context of its own
 * with buffers and ranges renumbered by first use.  Equal kernels then have equal text, whatever
 * tensors they came from, and are emitted once (share.c). */
#include <string.h>

#include "kernel.h"
#include "schedule.h"

typedef struct {
    Kernel *k;
    StoreNest *nest;
    Node **copy;  /* by position in the walk */
    Map position; /* node id -> position + 1 */
    int *number;  /* BUFFER number of the nest -> of the kernel, or -1 */
    Buffer **bufs;
    int nrange;
} NestCopy;

static Node *copied(NestCopy *q, Node *n)
{
    void *at = map_get(&q->position, (uint64_t)n->id + 1);
    return at ? q->copy[(uintptr_t)at - 1] : NULL;
}

/* Does x move with a range that e moves with? */
static bool shares_range(Node *x, Node *e)
{
    Arena *a = arena_new();
    int n;
    Node **order = graph_toposort(a, 1, &e, &n);
    bool shares = false;
    for (int i = 0; i < n && !shares; i++)
        shares = order[i]->op == OP_RANGE && depends_on(x, order[i]);
    arena_free(a);
    return shares;
}

/* i64(e) == x, of a coordinate e and a number x that is one for all of them, a label: lanes of 32
 * bits are twice as many, and x, once what is outside of e's bounds is just outside of them, is
 * such a number too. NULL: it is none. */
static Node *narrow_equal(Context *c, Node *const *src)
{
    for (int i = 0; i < 2; i++) {
        Node *e = src[i]->op == OP_CAST ? src[i]->src[0] : src[i], *x = src[!i];
        if (src[i]->dtype != INGOT_I64 || e->dtype != INGOT_INDEX || x->op == OP_CONST ||
            e->lo <= INT32_MIN || e->hi >= INT32_MAX || e->lo == e->hi || shares_range(x, e))
            continue;
        x = node_alu2(c, OP_MAX, INGOT_I64, x, node_const_i(c, INGOT_I64, e->lo - 1));
        x = node_alu2(c, OP_MIN, INGOT_I64, x, node_const_i(c, INGOT_I64, e->hi + 1));
        return node_alu2(c, OP_EQ, INGOT_BOOL, node_cast(c, e, INGOT_I32),
                         node_cast(c, x, INGOT_I32));
    }
    return NULL;
}

static Node *copy_node(NestCopy *q, Node *n)
{
    Context *c = q->k->c;
    Node *src[INGOT_MAX_RANK * 4];
    if (n->nsrc > sizeof src / sizeof *src)
        BUG("a loop node with %u sources", n->nsrc);
    for (uint32_t i = 0; i < n->nsrc; i++)
        src[i] = copied(q, n->src[i]);
    switch (n->op) {
    case OP_BUFFER: {
        int from = (int)n->arg.i;
        if (q->number[from] < 0) {
            q->number[from] = q->k->narg;
            q->bufs[q->k->narg++] = q->nest->bufs[from];
        }
        return node_make(c, OP_BUFFER, n->dtype, (Arg){.i = q->number[from]}, 0, NULL, 0, NULL);
    }
    case OP_RANGE: {
        Node *r = range_new(c, q->nrange, src[0]);
        q->nrange += r->op == OP_RANGE;
        if (q->nrange > MAX_LOOPS)
            BUG("a kernel of more than %d loops", MAX_LOOPS);
        return r;
    }
    case OP_EQ: {
        Node *narrow = narrow_equal(c, src);
        if (narrow)
            return narrow;
        break;
    }
    default: break;
    }
    if (op_is_alu(n->op) && (n->op != OP_CAST || (!n->arg.i && src[0]->op == OP_CAST)))
        return node_with(c, n, src);
    return node_make(c, n->op, n->dtype, n->arg, (int)n->nsrc, src, 0, NULL);
}

/* Operations and bytes, at the upper bounds of run-time dims. */
static void estimate(Kernel *k, Arena *a)
{
    int n;
    Node *const *order = kernel_nodes(k, &n);
    const int64_t *times = kernel_iterations(k, a, n, order);
    for (int i = 0; i < n; i++) {
        const Node *t = order[i];
        if ((op_is_alu(t->op) && t->op != OP_CAST && t->op != OP_BITCAST && t->op != OP_WHERE &&
             t->dtype != INGOT_INDEX && t->dtype != INGOT_BOOL) ||
            op_info[t->op].cls == REDUCE)
            k->flops = sat_add(k->flops, times[i]);
    }
    k->bytes = kernel_bytes(k);
}

/* Output axes i0, i1, ... outermost first; reduced ones r0, r1, ... as their reduces nest them; p0,
 * p1, ... of staged values. */
static void name_axes(NestCopy *q, Node *const *out, int nout)
{
    Kernel *k = q->k;
    k->axes = NEWN(k->c->arena, Axis, q->nrange);
    enum { MOST = 4 * INGOT_MAX_RANK };
    Node *inner[2][MOST];
    int ninner[2] = {0, 0};
    for (uint32_t i = 0; i < k->c->nnode; i++) {
        int n, staged = k->c->nodes[i]->op == OP_STAGE;
        Node *const *own = own_ranges(k->c->nodes[i], &n);
        bool is = staged || k->c->nodes[i]->op == OP_REDUCE;
        for (int j = 0; j < n && is; j++) {
            bool again = false;
            for (int x = 0; x < ninner[staged] && !again; x++)
                again = inner[staged][x] == own[j];
            if (!again && ninner[staged] < MOST)
                inner[staged][ninner[staged]++] = own[j];
        }
    }
    for (int pass = 0, before = 0; pass < 3; pass++, before = k->naxis)
        for (int i = 0; i < (pass ? ninner[pass - 1] : nout); i++) {
            Node *r = pass ? inner[pass - 1][i] : out[i];
            bool known = false;
            for (int j = 0; j < k->naxis && !known; j++)
                known = k->axes[j].range == r;
            if (known)
                continue;
            Axis *x = &k->axes[k->naxis++];
            x->range = r;
            x->reduced = pass > 0;
            x->staged = pass == 2;
            for (uint32_t j = 0; j < k->c->nnode && !x->reduced; j++)
                x->scanned |= k->c->nodes[j]->op == OP_SCAN && k->c->nodes[j]->src[1] == r;
            const int number = pass ? k->naxis - 1 - before : i; /* of two digits at most */
            (void)snprintf(x->name, sizeof x->name, "%c%d", "irp"[pass], number);
        }
}

static void take_target(Kernel *k, const Target *t)
{
    k->any_sign = t->machine.any_sign;
    k->units = t->machine.own_units;
    k->items = t->gpu;
}

Kernel *kernel_finish(StoreNest *nest, Buffer ***bufs, int *nbuf)
{
    Sched *s = nest->s;
    /* the ranges are sources of the end, so that an iteration nothing depends on still counts */
    Node *parts[1 + 3 * INGOT_MAX_RANK] = {nest->store};
    int nstore = 1;
    if (nest->store->op == OP_END) { /* several of them, in the same loops */
        nstore = (int)nest->store->nsrc;
        memcpy((void *)parts, (void *)nest->store->src, (size_t)nstore * sizeof *parts);
    }
    memcpy((void *)(parts + nstore), nest->ranges, (size_t)nest->nrange * sizeof *parts);
    Node *end =
        node_make(s->c, OP_END, INGOT_BOOL, (Arg){0}, nstore + nest->nrange, parts, 0, NULL);
    Node *sink = node_make(s->c, OP_SINK, INGOT_BOOL, (Arg){0}, 1, &end, 0, NULL);
    Context *c = context_child(s->c);
    Kernel *k = NEW(c->arena, Kernel);
    k->c = c;
    k->serial = nest->serial;
    if (s->target)
        take_target(k, target_device(s->target, nest->device));
    k->device = kernel_device(s->plan, nest->device);
    NestCopy q = {.k = k, .nest = nest};
    Arena *scratch = arena_new();
    q.number = NEWN(scratch, int, nest->nbuf);
    q.bufs = NEWN(scratch, Buffer *, nest->nbuf);
    for (int i = 0; i < nest->nbuf; i++)
        q.number[i] = -1;
    int n, nout = 0;
    Node **order = graph_toposort(scratch, 1, &sink, &n), *out[INGOT_MAX_RANK * 2];
    q.copy = NEWN(scratch, Node *, n);
    for (int i = 0; i < n; i++) {
        q.copy[i] = copy_node(&q, order[i]);
        map_put(&q.position, (uint64_t)order[i]->id + 1, (void *)(uintptr_t)(i + 1));
    }
    k->sink = q.copy[n - 1];
    for (int i = 0; i < nest->nrange;
         i++) { /* output ranges, outermost first; unused ones vanish */
        Node *r = copied(&q, nest->ranges[i]);
        if (r && r->op == OP_RANGE)
            out[nout++] = r;
    }
    name_axes(&q, out, nout);
    k->args = NEWN(c->arena, KernelArg, k->narg);
    for (int i = 0; i < k->narg; i++) {
        Buffer *b = q.bufs[i];
        Node **dims = NEWN(c->arena, Node *, b->rank);
        for (int j = 0; j < b->rank; j++)
            dims[j] = import_index(c, scratch, b->dims[j]);
        k->args[i] =
            (KernelArg){.dtype = b->dtype, .rank = b->rank, .dims = dims, .layout = b->layout};
        for (int j = 0; j < i && !k->args[i].same; j++)
            k->args[i].same = q.bufs[j] == b ? j + 1 : 0;
    }
    for (uint32_t i = 0; i < c->nnode; i++) {
        Node *t = c->nodes[i];
        if (t->op == OP_LOAD)
            k->args[t->src[0]->arg.i].read = true;
        if (t->op == OP_STORE)
            k->args[t->src[0]->arg.i].written = true;
    }
    kernel_find_vars(k);
    *nbuf = k->narg;
    *bufs = NEWN(s->arena, Buffer *, k->narg);
    memcpy(*bufs, q.bufs, (size_t)k->narg * sizeof **bufs);
    map_free(&q.position);

    estimate(k, scratch);
    arena_free(scratch);
    return k;
}
