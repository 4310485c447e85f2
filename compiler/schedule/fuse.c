/* fuse.c - decide what is stored.  Everything not stored is recomputed inside each kernel that
 * reads it; so a value is stored when recomputing it costs more than a write and a read:
 *
 *   - a reduce that is read through an expansion, by another reduce, or by several kernels;
 *   - an elementwise value that is expensive and read more than once;
 *   - chains so long that one kernel would become huge;
 *   - what a control step, a library kernel or the caller reads.
 *
 * One forward walk: when a node is visited, its sources are decided and its consumers known. */
#include "schedule.h"

enum {
    MAX_ROW_COST = 120,
    MAX_DEPTH = 64,
    MAX_LOADS = 24,
    MAX_COST = 400,
    CHEAP = 3,
    NARROW_COST = 4,
    FOLD_BYTES = 16384,
    FOLD_COST = 8,
    ONE_LINE = 64
};

/* Chunks, so that pointers stay valid while the graph grows. */
Info *info_of(Sched *s, Node *n)
{
    uint32_t i = n->id / INFO_CHUNK;
    if (i >= INFO_CHUNKS)
        BUG("more than %d nodes", INFO_CHUNK * INFO_CHUNKS);
    if (!s->info[i])
        s->info[i] = NEWN(s->arena, Info, INFO_CHUNK);
    return &s->info[i][n->id % INFO_CHUNK];
}

static int op_cost(Node *n)
{
    switch (n->op) {
    case OP_CAST:
    case OP_BITCAST:
    case OP_NEG:
    case OP_NOT: return 1;
    case OP_EXP:
    case OP_LOG:
    case OP_SIN:
    case OP_COS:
    case OP_TAN:
    case OP_ASIN:
    case OP_ACOS:
    case OP_ATAN:
    case OP_SINH:
    case OP_COSH:
    case OP_TANH:
    case OP_ASINH:
    case OP_ACOSH:
    case OP_ATANH:
    case OP_ERF:
    case OP_POW: return 16;
    case OP_DIV:
    case OP_SQRT:
    case OP_MOD:
    case OP_FMOD:
    case OP_FLOORDIV: return 4;
    default: return op_is_alu(n->op) ? 1 : 0;
    }
}

/* Does reading n read the same element of src several times? */
static bool replicates(Node *n)
{
    if (n->op == OP_EXPAND)
        return dims_bound(n->rank, n->shape) > dims_bound(n->src[0]->rank, n->src[0]->shape);
    return n->op == OP_GATHER;
}

static bool is_leaf(Sched *s, Node *n)
{
    Info *i = info_of(s, n);
    return i->buffer || op_info[n->op].cls == LEAF || n->op == OP_PROJ || i->foldable;
}

static unsigned reduced_axes(Node *n)
{
    return (unsigned)((uint64_t)n->arg.i >> 8);
}

/* Axes that an EXPAND repeats. */
static unsigned expanded_axes(Node *n)
{
    unsigned axes = 0;
    for (int i = 0; i < n->rank; i++)
        if (idx_is(n->src[0]->shape[i], 1) && !idx_is(n->shape[i], 1))
            axes |= 1u << i;
    return axes;
}

/* The last axes, whose loops are innermost in any order of storage that keeps rows together. */
static bool is_trailing(Node *n, unsigned axes)
{
    bool inside = true;
    for (int i = n->rank; i-- > 0;) {
        if (idx_is(n->shape[i], 1))
            continue;
        bool in = axes >> i & 1;
        if (in && !inside)
            return false;
        inside = in;
    }
    return axes != 0;
}

/* A reduce over rows, expanded over the same rows, costs one more loop over each row and no memory: softmax and the
 * norms are one kernel.  Is this reader of n such an expansion, or a step on the way to one? */
static bool row_reader(const Sched *s, const Info *i, Node *n, Node *t)
{
    if (!s->fuse_rows || i->rows == ~0u)
        return false;
    if (op_is_alu(t->op))
        return true;
    if (t->op == OP_EXPAND)
        return i->pending && !i->rows && expanded_axes(t) == i->pending &&
               is_trailing(t, i->pending);
    if (t->op == OP_REDUCE)
        return i->rows && !i->pending && reduced_axes(t) == i->rows && t->src[0] == n;
    return false;
}

/* Do all readers of n belong to one elementwise region of n's shape that ends in a single node? Then n is
 * computed once by that node's kernel, whatever the number of readers.  (x * sigmoid(x), residual sums.) */
static bool diamond(Sched *s, Node *const *order, int norder, Node *n, Node *const *uses)
{
    Node *region[32];
    int nregion = 0, start = info_of(s, n)->order;
    region[nregion++] = n;
    for (int i = start + 1; i < norder && i < start + 256 && nregion < 32; i++) {
        Node *t = order[i];
        bool reads = false;
        for (uint32_t j = 0; j < t->nsrc && !reads; j++)
            for (int k = 0; k < nregion && !reads; k++)
                reads = t->src[j] == region[k];
        if (!reads)
            continue;
        if (!op_is_alu(t->op) || t->rank != n->rank)
            return false;
        region[nregion++] = t;
        /* closed when every reader of all but t lies inside */
        bool closed = true;
        for (int k = 0; k + 1 < nregion && closed; k++) {
            Info *r = info_of(s, region[k]);
            if (r->root)
                return false;
            for (int u = 0; u < r->nuse && closed; u++) {
                bool inside = false;
                for (int m = 0; m < nregion && !inside; m++)
                    inside = uses[r->iuse + u] == region[m];
                closed = inside;
            }
        }
        if (closed)
            return true;
    }
    return false;
}

static bool is_move(Node *n)
{
    return op_info[n->op].cls == MOVE && n->op != OP_CONCAT && n->op != OP_KEEP;
}

/* A number in every element? */
static bool is_uniform(Node *n)
{
    while (n->op == OP_EXPAND || n->op == OP_RESHAPE)
        n = n->src[0];
    return n->op == OP_CONST;
}

static double tensor_bytes(Node *n)
{
    return (double)dims_bound(n->rank, n->shape) * dtype_info[n->dtype].bytes;
}

/* What n is made of by casts and little arithmetic with numbers, where that has fewer bytes: the narrow side. */
static Node *narrow_side(Sched *s, Node *n)
{
    Node *best = n;
    for (int cost = 0; cost <= NARROW_COST; cost++) {
        if (tensor_bytes(n) < tensor_bytes(best))
            best = n;
        Info *i = info_of(s, n);
        bool number =
            (n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL) && is_uniform(n->src[1]);
        bool same = n->op == OP_RESHAPE || n->op == OP_PERMUTE || n->op == OP_FLIP;
        if (i->stored || is_leaf(s, n) || (n->op != OP_CAST && !number && !same) || i->root)
            break;
        cost -= same;
        n = n->src[0];
    }
    return best;
}

/* Why n is stored; NULL: its readers compute it. */
static const char *should_store(Sched *s, Node *const *order, int norder, Node *n,
                                Node *const *uses)
{
    Info *i = info_of(s, n);
    if (is_leaf(s, n) || n->dtype == INGOT_INDEX)
        return NULL;
    if (i->root)
        return "the caller or a step that is no kernel reads it";
    switch (n->op) {
    case OP_CONCAT: return "its parts are written into it";
    case OP_UPDATE: return "it is written in place";
    case OP_KEEP: return "it is to be kept apart";
    case OP_CALL:
    case OP_LOOP:
    case OP_IF: return "it is a step of its own";
    default: break;
    }
    if (i->widened)
        return NULL;
    if (i->depth > MAX_DEPTH || i->loads > MAX_LOADS || i->cost > MAX_COST)
        return "one kernel would become huge";
    bool reduced = false, replicated = false;
    for (int u = 0; u < i->nuse; u++) {
        Node *t = uses[i->iuse + u];
        /* what is padded is stored without its padding: readers get a halo (layouts.c) */
        if (t->op == OP_PAD && (i->has_reduce || i->cost > 0) && i->loads)
            return "it is read beyond its edges: its buffer gets a halo";
        reduced |= t->op == OP_REDUCE;
        replicated |= replicates(t) && t->src[0] == n;
    }
    if (i->has_reduce && (i->rows || i->pending)) {
        bool rows = true, steps = true;
        for (int u = 0; u < i->nuse; u++) {
            rows &= row_reader(s, i, n, uses[i->iuse + u]);
            steps &= op_is_alu(uses[i->iuse + u]->op);
        }
        if (rows && (i->rows || !steps || i->nuse == 1) && i->cost < MAX_ROW_COST)
            return NULL;
        if (i->rows)
            return "a reduce over rows, with readers that do not go along the rows";
    }
    if (i->has_reduce) {
        if (reduced)
            return "a reduce that another reduce reads";
        if (replicated)
            return "a reduce whose elements are read several times each";
        return i->nuse > 1 && !diamond(s, order, norder, n, uses)
                   ? "a reduce that several kernels read"
                   : NULL;
    }
    if (i->loads == 0 && i->cost < 32)
        return NULL; /* made of coordinates: cheaper than memory */
    if (replicated)
        return i->cost > 0 ? "its elements are read several times each" : NULL;
    return i->nuse > 1 && i->cost > CHEAP && !diamond(s, order, norder, n, uses)
               ? "several kernels read it, and computing it again costs more than memory"
               : NULL;
}

/* Nothing but a stored value of fewer bytes, widened where it is read. */
static bool is_widened(Sched *s, Node *n, int cost)
{
    if (!n->nsrc || cost > NARROW_COST)
        return false;
    Info *below = info_of(s, n->src[0]);
    bool number = (n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL) && is_uniform(n->src[1]);
    if (n->op == OP_CAST && dtype_info[n->dtype].bytes > dtype_info[n->src[0]->dtype].bytes)
        return below->widened || (below->stored && !s->wide) || is_leaf(s, n->src[0]) ||
               (is_move(n->src[0]) && !below->cost && below->loads == 1);
    return (is_move(n) || number || n->op == OP_CAST) && below->widened;
}

/* What n's fused expression costs, given that its sources are decided. */
static void analyse(Sched *s, Node *n)
{
    Info *i = info_of(s, n);
    int cost = op_cost(n), loads = 0, depth = 0;
    unsigned pending = 0, rows = 0;
    if (n->op == OP_WHERE && info_of(s, n->src[0])->constant && !info_of(s, n->src[0])->leaves)
        cost = 0; /* inside or outside of a padded tensor: a question of coordinates */
    bool constant = n->op != OP_INPUT && n->op != OP_STATE && n->op != OP_PARAM &&
                    n->op != OP_VAR && op_info[n->op].cls != CONTROL && n->op != OP_RANGE;
    bool reduce = n->op == OP_REDUCE;
    double leaves = n->op == OP_DATA ? tensor_bytes(n) : 0;
    bool compute =
        cost > 0 || reduce || n->op == OP_GATHER || n->op == OP_UPDATE || n->op == OP_CONCAT;
    for (uint32_t j = 0; j < n->nsrc; j++) {
        Info *f = info_of(s, n->src[j]);
        constant &= f->constant;
        leaves += f->leaves;
        if (n->src[j]->dtype == INGOT_INDEX)
            continue;
        if (f->stored || is_leaf(s, n->src[j])) {
            loads += n->src[j]->op != OP_CONST && n->src[j]->op != OP_IOTA;
            continue;
        }
        /* computed coordinates are not the value that a reader of a gather would recompute */
        bool coordinates = n->op == OP_GATHER && j > 0 && !f->loads;
        cost += coordinates ? 0 : f->cost;
        pending |= f->pending;
        if (f->rows)
            rows = !rows || rows == f->rows ? f->rows : ~0u;
        loads += f->loads;
        depth = f->depth > depth ? f->depth : depth;
        reduce |= f->has_reduce;
        compute |= f->constant && f->cost > 0;
    }
    if (n->op == OP_EXPAND && pending && expanded_axes(n) == pending) {
        rows = pending;
        pending = 0;
    } else if (n->op == OP_REDUCE) {
        pending |= reduced_axes(n);
        rows = 0;
    } else if (!op_is_alu(n->op)) { /* other coordinates: rows are rows no more */
        rows = rows ? ~0u : 0;
        pending = 0;
    }
    i->pending = pending;
    i->rows = rows;
    i->constant = constant;
    i->leaves = leaves;
    i->cost = cost > 1 << 20 ? 1 << 20 : cost;
    i->loads = loads;
    i->depth = depth + 1;
    i->widened = !reduce && is_widened(s, n, i->cost);
    i->has_reduce = reduce;
    double bytes = tensor_bytes(n);
    /* Where bytes shrink; else what takes longer to compute than to read, and is small.  Readers see through movement;
     * steps that read memory do not. */
    i->foldable = constant && (compute || i->root) && leaves > 0 && n->op != OP_CONST &&
                  n->dtype != INGOT_INDEX && bytes > 0 &&
                  (bytes <= leaves || bytes <= ONE_LINE ||
                   (bytes <= FOLD_BYTES && (s->wide || i->cost >= FOLD_COST || reduce)));
    if (i->foldable)
        i->why = bytes <= leaves     ? "a constant, and no larger than what it is made of"
                 : bytes <= ONE_LINE ? "a constant of one cache line"
                                     : "a small constant that takes longer to compute than to read";
    if (i->foldable && bytes < leaves)
        i->leaves = bytes; /* what is made of it is compared with it */
}

void fuse(Sched *s, int n, Node **order)
{
    /* consumers, each named once */
    int total = 0;
    for (int i = 0; i < n; i++) {
        info_of(s, order[i])->nuse = 0;
        info_of(s, order[i])->needed = false;
        info_of(s, order[i])->order = i;
    }
    for (int pass = 0; pass < 2; pass++) {
        static Node *none[1];
        Node **uses = pass ? NEWN(s->arena, Node *, total + 1) : none;
        if (pass) {
            int at = 0;
            for (int i = 0; i < n; i++) {
                Info *f = info_of(s, order[i]);
                f->iuse = at;
                at += f->nuse;
                f->nuse = 0;
            }
        }
        for (int i = 0; i < n; i++) {
            Node *t = order[i];
            for (uint32_t j = 0; j < t->nsrc; j++) {
                bool twice = false;
                for (uint32_t k = 0; k < j && !twice && j < 64; k++)
                    twice = t->src[k] == t->src[j];
                Info *f = info_of(s, t->src[j]);
                bool inside = f->order < n && order[f->order] == t->src[j];
                if (twice || !inside)
                    continue;
                if (pass)
                    uses[f->iuse + f->nuse] = t;
                f->nuse++;
                total += !pass;
            }
        }
        if (!pass)
            continue;
        for (int i = 0; i < n; i++) {
            Node *t = order[i];
            analyse(s, t);
            const char *why = should_store(s, order, n, t, uses);
            bool stored = why;
            Node *narrow = stored && !s->wide && !info_of(s, t)->root ? narrow_side(s, t) : t;
            info_of(s, narrow)->stored = stored && !is_leaf(s, narrow);
            if (stored)
                info_of(s, narrow)->why = why;
            for (int j = info_of(s, narrow)->order + 1; narrow != t && j <= i; j++)
                analyse(s, order[j]); /* what is stored now costs its readers nothing */
        }
    }
    /* what only foldable constants read is evaluated with them, at compile time */
    for (int i = n; i-- > 0;) {
        Info *f = info_of(s, order[i]);
        f->needed |= f->root;
        for (uint32_t j = 0; j < order[i]->nsrc && f->needed && !f->foldable; j++)
            info_of(s, order[i]->src[j])->needed = true;
        f->stored &= f->needed;
    }
    for (int i = 0; i < n; i++) {
        Info *f = info_of(s, order[i]);
        bool folded = f->foldable && f->needed;
        if (!folded && !f->stored)
            continue;
        plan_note(s->plan, (Note){.pass = "fuse",
                                  .what = folded ? "folded" : "stored",
                                  .why = f->why,
                                  .node = order[i],
                                  .operations = f->cost,
                                  .bytes = (int64_t)tensor_bytes(order[i])});
    }
}
