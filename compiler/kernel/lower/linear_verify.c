/* linear_verify.c - proves of statements that no load is executed but where its value is wanted, or
 * its address is known to be good.
 *
 * Forwards: which loops that may have no iteration each statement stands in, and which names it
 * reads.  Backwards: in which of these loops a name is wanted, by one or another of its readers;
 * what is added to a sum, and what is stored, is wanted where that is done.  If none of a name's
 * readers stands in the loops that it stands in itself, or in some more that have an iteration, it
 * is computed for nobody in some run: then what it loads has to lie in the buffer all the same, by
 * what the simplifier proves (linear_is_within()).
 *
 * Nothing of what linearize() knows is asked for, but which nodes have names. */
#include <string.h>

#include "linearize.h"
#include "passes.h"

/* What a statement reads of another one. */
typedef struct {
    int stmt, of;
} Use;
typedef struct {
    int stmt;
    Node *load;
    int64_t count;
} Loads;

typedef struct {
    Arena *a;
    const Linear *l;
    const Kernel *k;
    uint64_t *open; /* by statement */
    int *visible,
        *seen; /* by node id: the statement that names it, and the last one that has read it */
    int nnode;
    Use *use;
    int nuse;
    Loads *load;
    int nload;
    LoopSets *wanted; /* by statement: where what wants its value stands, itself included */
} Verify;

static void walk(Verify *q, int stmt, Node *n, int64_t count);

static void walk_sources(Verify *q, int stmt, Node *n)
{
    const bool chunk = store_chunk(n) > 1;
    const uint32_t first = n->op == OP_END ? (uint32_t)end_stores(n) : reduce_ranges(n);
    for (uint32_t i = 0; i < n->nsrc && i < first; i++)
        walk(q, stmt, n->src[i], chunk && i == 2 ? store_chunk(n) : 1);
}

static void add_use(Verify *q, int stmt, int of)
{
    Use u = {stmt, of};
    vec_push(q->a, q->use, q->nuse, u);
}

/* What a statement evaluates, down to what has a name. */
static void walk(Verify *q, int stmt, Node *n, int64_t count)
{
    if (n->op == OP_RANGE || n->op == OP_PARAM || n->op == OP_BUFFER || n->op == OP_AFTER)
        return;
    if ((int)n->id < q->nnode) {
        if (q->seen[n->id] == stmt + 1)
            return;
        q->seen[n->id] = stmt + 1;
        if (q->visible[n->id] >= 0 && q->visible[n->id] != stmt) {
            add_use(q, stmt, q->visible[n->id]);
            return;
        }
    }
    if (n->op == OP_LOAD) {
        Loads l = {stmt, n, count};
        vec_push(q->a, q->load, q->nload, l);
    }
    walk_sources(q, stmt, n);
}

static void walk_update(Verify *q, int i)
{
    const Stmt *s = &q->l->stmt[i];
    Node *next[MAX_STATE];
    if (s->kept)
        return;
    if (s->node->op == OP_SCAN || reduce_size(s->node) == 1) {
        walk(q, i, update_value(s), 1);
        return;
    }
    reduce_step(q->k->c, s->node, next);
    walk(q, i, next[reduce_part(s->node)], 1);
}

static void walk_statement(Verify *q, int i)
{
    const Stmt *s = &q->l->stmt[i];
    const Box *box;
    if (!s->node)
        return;
    switch (s->kind) {
    case STMT_LET: walk_sources(q, i, s->node); break;
    case STMT_UPDATE: walk_update(q, i); return;
    case STMT_KEEP: walk(q, i, s->term, 1); return;
    case STMT_ITEM: walk(q, i, s->node->src[0], 1); return;
    case STMT_LOOP:
        walk(q, i, s->upto ? s->upto : s->node->src[0], 1);
        for (int j = 0; j < 2; j++)
            if (j ? s->zero : s->from)
                walk(q, i, j ? s->zero : s->from, 1);
        return;
    case STMT_STORE:
        box = s->store == STORE_BOX ? box_of(q->l, s->node) : NULL;
        for (int j = 0; box && j < box->rank; j++)
            walk(q, i, box->at[j], 1);
        walk_sources(q, i, s->node);
        return;
    default: return;
    }
    if (s->node->op == OP_LOAD) {
        Loads l = {i, s->node, 1};
        vec_push(q->a, q->load, q->nload, l);
    }
}

/* Names end with the loop that they stand in. */
static void read_statements(Verify *q)
{
    const Linear *l = q->l;
    const Tile *t = l->tile;
    struct OpenBlocks {
        uint64_t open;
        int nnamed;
    } *block = NEWN(q->a, struct OpenBlocks, l->n + 1);
    int *was = NEWN(q->a, int, l->n + 1), nnamed = 0, nblock = 0;
    Node **named = NEWN(q->a, Node *, l->n + 1);
    uint64_t open = 0;
    for (int i = 0; i < l->n; i++) {
        const Stmt *s = &l->stmt[i];
        q->open[i] = open;
        walk_statement(q, i);
        if (stmt_opens(s))
            block[nblock++] = (struct OpenBlocks){open, nnamed};
        if ((s->kind == STMT_LOOP || s->kind == STMT_FILL) && linear_may_be_empty(s->node))
            open |= lin_bit(s->node);
        for (int j = t->uncut; s->kind == STMT_PARTS && j < t->uncut + t->fused; j++)
            open |= linear_may_be_empty(t->axis[j].range) ? lin_bit(t->axis[j].range) : 0;
        if (s->node && (s->kind == STMT_LET || s->kind == STMT_ACC)) {
            named[nnamed] = s->node;
            was[nnamed++] = q->visible[s->node->id];
            q->visible[s->node->id] = i;
        }
        if (s->kind != STMT_END || !nblock)
            continue;
        open = block[--nblock].open;
        for (; nnamed > block[nblock].nnamed; nnamed--)
            q->visible[named[nnamed - 1]->id] = was[nnamed - 1];
    }
}

/* Backwards, for readers come behind what they read.  What nobody reads is wanted where it is. */
static void want(Verify *q)
{
    int at = q->nuse;
    for (int i = q->l->n; i-- > 0;) {
        LoopSets *by = &q->wanted[i], all = {0};
        if (q->l->stmt[i].kind != STMT_LET || !by->n)
            want_in(q->a, &all, q->open[i]);
        for (int j = 0; q->l->stmt[i].kind == STMT_LET && j < by->n; j++)
            want_in(q->a, &all, q->open[i] | by->set[j]);
        *by = all;
        for (; at > 0 && q->use[at - 1].stmt == i; at--)
            for (int j = 0; j < all.n; j++)
                want_in(q->a, &q->wanted[q->use[at - 1].of], all.set[j]);
    }
}

static const char *name_of(const Tile *t, uint64_t loops)
{
    const TileAxis *const all[] = {t->axis, t->reduce, t->fill, &t->tail};
    const int count[] = {t->naxis, t->nreduce, t->nfill, t->tail.range != NULL};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < count[i]; j++)
            if (all[i][j].range->op == OP_RANGE && loops & lin_bit(all[i][j].range))
                return all[i][j].name;
    return "a range";
}

const char *linear_verify(Arena *a, const Linear *l, const Kernel *k, int *at)
{
    const size_t nnode = (size_t)k->c->nnode;
    Verify q = {.a = a, .l = l, .k = k, .nnode = (int)nnode};
    q.open = NEWN(a, uint64_t, l->n + 1);
    q.wanted = NEWN(a, LoopSets, l->n + 1);
    q.visible = NEWN(a, int, nnode + 1);
    q.seen = NEWN(a, int, nnode + 1);
    memset(q.visible, -1, nnode * sizeof *q.visible);
    read_statements(&q);
    want(&q);
    for (int i = 0; i < q.nload; i++) {
        const Loads *load = &q.load[i];
        const uint64_t open = q.open[load->stmt];
        const LoopSets *by = &q.wanted[load->stmt];
        if (is_wanted_in(by, open) || linear_is_within(k, l->tile, load->load, load->count))
            continue;
        *at = load->stmt;
        return arena_printf(
            a,
            "loads from a%lld outside of the loop over %s, which may have no iteration, "
            "and whether the element is there is not proved",
            (long long)linear_buffer(load->load)->arg.i, name_of(l->tile, by->set[0] & ~open));
    }
    return NULL;
}
