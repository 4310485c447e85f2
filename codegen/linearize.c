/* linearize.c - a kernel's expression becomes a list of statements.
 *
 * Each node is placed in the outermost loop nest where everything it depends on is known: its
 * position is the set of ranges it depends on.  So loop invariants leave their loops by
 * construction, and a reduce stands where its outer ranges are open, before the loops that do not
 * matter to it.  A node used once, at its user's own place, is written inside its user. */
#include "linear.h"

typedef struct {
    Linear *l;
    Node **order;
    int n;
    uint64_t *set;   /* by position: ranges the node depends on */
    uint64_t *body;  /* REDUCE: ranges its value depends on */
    int *uses;
    bool *done, *inlined;
    Map at;          /* node id -> position + 1 */
    uint64_t out;    /* all output ranges */
} Lin;

static int position(const Lin *q, Node *n)
{
    return (int)(uintptr_t)map_get(&q->at, (uint64_t)n->id + 1) - 1;
}

static uint64_t bit(Node *range)
{
    if (range->arg.i >= 64)
        BUG("a kernel with more than 64 ranges");
    return UINT64_C(1) << range->arg.i;
}

static void add(Lin *q, StmtKind kind, Node *n, int depth)
{
    Stmt s = {kind, n, depth};
    vec_push(q->l->arena, q->l->stmt, q->l->n, s);
}

static bool is_plain(Node *n)
{
    return n->op == OP_CONST || n->op == OP_VAR || n->op == OP_RANGE || n->op == OP_BUFFER || n->op == OP_SINK;
}

/* Sums and multiples of counters cost nothing: addressing modes and the C compiler see to them. */
static bool is_affine(Node *n)
{
    if (n->dtype != INGOT_INDEX)
        return false;
    switch (n->op) {
    case OP_CONST: case OP_VAR: case OP_RANGE: return true;
    case OP_ADD: case OP_SUB: return is_affine(n->src[0]) && is_affine(n->src[1]);
    case OP_MUL: return n->src[1]->op == OP_CONST && is_affine(n->src[0]);
    default: return false;
    }
}

static void find_sets(Lin *q)
{
    for (int i = 0; i < q->n; i++) {
        Node *t = q->order[i];
        uint64_t set = t->op == OP_RANGE ? bit(t) : 0;
        for (uint32_t j = 0; j < t->nsrc; j++) {
            int p = position(q, t->src[j]);
            set |= q->set[p];
            q->uses[p]++;
        }
        if (t->op == OP_STORE)
            set |= q->out;
        q->body[i] = set;
        for (uint32_t j = 1; t->op == OP_REDUCE && j < t->nsrc; j++)
            set &= ~bit(t->src[j]);
        q->set[i] = set;
    }
}

/* Where a set of ranges is open: inside its innermost reduce, or else at its last output loop. */
static uint64_t place(const Lin *q, uint64_t set)
{
    if (set & ~q->out)
        return set & ~q->out;
    uint64_t level = 0;
    for (int i = 0; i < q->l->nout; i++)
        if (set & bit(q->l->out[i]))
            level = bit(q->l->out[i]);
    return level;
}

/* Which nodes are written inside their only user? */
static void find_inlined(Lin *q)
{
    for (int i = 0; i < q->n; i++) {
        Node *t = q->order[i];
        for (uint32_t j = 0; j < t->nsrc; j++) {
            int p = position(q, t->src[j]);
            Node *s = t->src[j];
            uint64_t here = q->body[i];
            bool simple = s->op != OP_REDUCE && s->op != OP_STORE;
            if (is_plain(s) || is_affine(s))
                q->inlined[p] = true;
            else if (simple && q->uses[p] == 1 && place(q, q->set[p]) == place(q, here))
                q->inlined[p] = true;
        }
    }
}

static void emit_nodes(Lin *q, uint64_t open, uint64_t must, int depth)
{
    for (int i = 0; i < q->n; i++) {
        Node *t = q->order[i];
        if (q->done[i] || is_plain(t) || (q->set[i] & ~open) || (must && !(q->set[i] & must)))
            continue;
        q->done[i] = true;
        if (t->op == OP_STORE) {
            add(q, STMT_STORE, t, depth);
        } else if (t->op == OP_REDUCE) {
            add(q, STMT_ACC, t, depth);
            uint64_t inner = open, own = 0;
            for (uint32_t j = 1; j < t->nsrc; j++) {
                add(q, STMT_LOOP, t->src[j], depth + (int)j - 1);
                own |= bit(t->src[j]);
                inner |= bit(t->src[j]);
                emit_nodes(q, inner, own, depth + (int)j);
            }
            add(q, STMT_UPDATE, t, depth + (int)t->nsrc - 1);
            for (uint32_t j = t->nsrc; j-- > 1;)
                add(q, STMT_END, t->src[j], depth + (int)j - 1);
        } else if (!q->inlined[i]) {
            add(q, STMT_LET, t, depth);
        }
    }
}

void linearize(Linear *l, const Kernel *k)
{
    Lin q = {.l = l};
    Node *sink = flatten_addresses(l->arena, k);
    q.order = graph_toposort(l->arena, 1, &sink, &q.n);
    q.set = NEWN(l->arena, uint64_t, q.n);
    q.body = NEWN(l->arena, uint64_t, q.n);
    q.uses = NEWN(l->arena, int, q.n);
    q.done = NEWN(l->arena, bool, q.n);
    q.inlined = NEWN(l->arena, bool, q.n);
    for (int i = 0; i < q.n; i++)
        map_put(&q.at, (uint64_t)q.order[i]->id + 1, (void *)(uintptr_t)(i + 1));
    int nout = 0;
    for (int i = 0; i < k->naxis; i++)
        if (k->axes[i].kind == AXIS_LOOP) {
            q.out |= bit(k->axes[i].range);
            l->out[nout++] = k->axes[i].range;
        }
    l->nout = nout;
    find_sets(&q);
    find_inlined(&q);
    uint64_t open = 0;
    emit_nodes(&q, open, 0, 0);
    for (int i = 0; i < nout; i++) {
        add(&q, STMT_LOOP, l->out[i], i);
        open |= bit(l->out[i]);
        emit_nodes(&q, open, 0, i + 1);
    }
    for (int i = nout; i-- > 0;)
        add(&q, STMT_END, l->out[i], i);
    l->inlined = NEWN(l->arena, bool, k->c->nnode);
    for (int i = 0; i < q.n; i++) {
        Node *t = q.order[i];
        l->inlined[t->id] = q.inlined[i] || is_plain(t);
        if (t->dtype == INGOT_INDEX && (t->lo < INT32_MIN || t->hi > INT32_MAX))
            l->wide = true;
    }
    map_free(&q.at);
}
