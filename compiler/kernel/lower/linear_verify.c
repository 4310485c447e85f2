/* linear_verify.c - proves of statements that no load is executed but where its value is wanted, or
 * its address is known to be good.
 *
 * Forwards: which loops that may have no iteration each statement stands in, so which sizes are
 * above 0 there, and which names it reads.  Backwards: which sizes are where a name is wanted, by
 * one or another of its readers; what is added to a sum, or stored in a place, is wanted where that
 * is done and the sum, or the place, is read; what else is stored where that is done.  If a name
 * stands where more runs come than those in which one of its readers has these sizes, it is
 * computed for nobody in some run: then what it loads has to lie in the buffer all the same, by
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
    Sizes sizes;
    uint64_t *open; /* by statement: sizes that the loops around it show */
    int *visible,
        *seen; /* by node id: the statement that names it, and the last one that has read it */
    int nnode;
    Use *use;
    int nuse;
    Loads *load;
    int nload;
    LoopSets *wanted;   /* by statement: where what wants its value stands */
    LoopSets *computed; /* the same, itself included */
    /* by statement: the one by whose readers it is wanted: of an UPDATE of a sum its ACC, of a
     * STORE itself; else -1 */
    int *sum;
    bool *read; /* by statement */
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

/* A place is read: what fills it. */
static void walk_place(Verify *q, int stmt, const Node *after)
{
    for (uint32_t i = 1; i < after->nsrc; i++)
        for (int j = 0; is_fill(after->src[i]) && j < end_stores(after->src[i]); j++) {
            const int store = q->visible[after->src[i]->src[j]->id];
            if (store >= 0 && store < stmt)
                add_use(q, stmt, store);
        }
}

/* What a statement evaluates, down to what has a name. */
static void walk(Verify *q, int stmt, Node *n, int64_t count)
{
    if (n->op == OP_RANGE || n->op == OP_PARAM || n->op == OP_BUFFER)
        return;
    if (n->op == OP_AFTER) {
        walk_place(q, stmt, n);
        return;
    }
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
    if (s->node->op == OP_SCAN || reduce_size(s->node) == 1 || s->reduce == REDUCE_PRODUCTS) {
        walk(q, i, update_value(s), 1);
        return;
    }
    reduce_step(q->k->c, s->node, next);
    for (int j = 0; j < reduce_values(s->node); j++) { /* each may read what the others were */
        const Node *of = reduce_sibling(q->k->c, s->node, j);
        if ((int)of->id < q->nnode && q->visible[of->id] >= 0)
            add_use(q, i, q->visible[of->id]);
    }
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
        for (int j = 0; box && j < box->rank; j++) {
            walk(q, i, box->at[j], 1);
            if (box->window || box->end[j])
                walk(q, i, box->window ? box->tap[j] : box->end[j], 1);
        }
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
        q->sum[i] = s->kind == STMT_STORE ? i : -1;
        if (s->kind == STMT_UPDATE && s->node->op == OP_REDUCE)
            q->sum[i] = q->visible[s->node->id];
        walk_statement(q, i);
        if (stmt_opens(s))
            block[nblock++] = (struct OpenBlocks){open, nnamed};
        if (s->kind == STMT_LOOP || s->kind == STMT_FILL || s->kind == STMT_ITEM)
            open |= q->sizes.shows[s->node->arg.i];
        for (int j = t->uncut; s->kind == STMT_PARTS && j < t->uncut + t->fused; j++)
            open |= q->sizes.shows[t->axis[j].range->arg.i];
        if (s->kind == STMT_STORE)
            q->visible[s->node->id] = i;
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

/* Backwards, for readers come behind what they read, but values of a state.  What nobody reads is
 * wanted where it is.  False: nothing that was not known. */
static bool want(Verify *q)
{
    int at = q->nuse;
    bool more = false;
    for (int i = q->l->n; i-- > 0;) {
        const LoopSets *by = &q->wanted[q->sum[i] >= 0 ? q->sum[i] : i];
        LoopSets all = {0};
        if (!q->read[q->sum[i] >= 0 ? q->sum[i] : i])
            want_in(q->a, &all, q->open[i]);
        else if (q->sum[i] >= 0)
            all = linear_want_terms(q->a, &q->sizes, by, q->open[i]);
        else
            for (int j = 0; j < by->n; j++)
                want_in(q->a, &all, q->open[i] | by->set[j]);
        q->computed[i] = all;
        for (; at > 0 && q->use[at - 1].stmt == i; at--)
            for (int j = 0; j < all.n; j++)
                more |= want_in(q->a, &q->wanted[q->use[at - 1].of], all.set[j]);
    }
    return more;
}

static const char *name_of(const Verify *q, uint64_t missing)
{
    const Tile *t = q->l->tile;
    const TileAxis *const all[] = {t->axis, t->reduce, t->fill, &t->tail};
    const int count[] = {t->naxis, t->nreduce, t->nfill, t->tail.range != NULL};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < count[i]; j++)
            if (all[i][j].range->op == OP_RANGE && missing & q->sizes.needs[all[i][j].range->arg.i])
                return all[i][j].name;
    return "a range";
}

/* Of a unit without lanes: the first statement whose tiles are no sum's, rows' and columns' by the
 * shapes that the whole kernel has; -1: there is none. */
static int other_shape(const Linear *l)
{
    const Tc *tc = l->tile->tc;
    for (int i = 0; tc && !tc->lanes && i < l->n; i++) {
        const Stmt *s = &l->stmt[i];
        const int rows = l->nsum + l->nrows;
        if (s->kind == STMT_UPDATE && s->term && is_products(l, s->node) &&
            (s->tile[0] >= l->nsum || s->tile[1] < l->nsum || s->tile[1] >= rows ||
             s->tile[2] < rows || s->tile[2] >= tc->tiles))
            return i;
    }
    return -1;
}

const char *linear_verify(Arena *a, const Linear *l, const Kernel *k, int *at)
{
    const size_t nnode = (size_t)k->c->nnode;
    Verify q = {.a = a, .l = l, .k = k, .nnode = (int)nnode};
    *at = other_shape(l);
    if (*at >= 0)
        return "multiplies tiles of another shape than the kernel has at these numbers";
    q.open = NEWN(a, uint64_t, l->n + 1);
    q.wanted = NEWN(a, LoopSets, l->n + 1);
    q.computed = NEWN(a, LoopSets, l->n + 1);
    q.sum = NEWN(a, int, l->n + 1);
    q.read = NEWN(a, bool, l->n + 1);
    q.visible = NEWN(a, int, nnode + 1);
    q.seen = NEWN(a, int, nnode + 1);
    memset(q.visible, -1, nnode * sizeof *q.visible);
    linear_find_sizes(l->tile, &q.sizes);
    read_statements(&q);
    for (int i = 0; i < q.nuse; i++)
        q.read[q.use[i].of] = true;
    while (want(&q))
        ;
    for (int i = 0; i < q.nload; i++) {
        const Loads *load = &q.load[i];
        const uint64_t open = q.open[load->stmt];
        const LoopSets *by = &q.computed[load->stmt];
        if (is_wanted_in(by, open) || linear_is_within(k, l->tile, load->load, load->count))
            continue;
        *at = load->stmt;
        return arena_printf(
            a,
            "loads from a%lld outside of the loop over %s, which may have no iteration, "
            "and whether the element is there is not proved",
            (long long)linear_buffer(load->load)->arg.i, name_of(&q, by->set[0] & ~open));
    }
    return NULL;
}
