/* linearize.c - a tile's expressions become a list of statements.
 *
 * Each node is placed in the outermost loop nest where everything it depends on is known: its
 * position is the set of ranges it depends on.  So loop invariants leave their loops by
 * construction, and a reduce stands where its outer ranges are open, before the loops that do not
 * matter to it; likewise the loops that fill a place.  Reduces over the same ranges share their loops: the copies that UPCAST made.  A
 * node used once, at its user's own place, is written inside its user. */
#include <string.h>

#include "kernel.h"
#include "linear.h"

enum { MAX_TILES = 32, MAX_DOTS = 64 /* that UNROLL makes */ };
typedef struct {
    Context *c;
    Linear *l;
    Node **root; /* stores, then the extents that the fused loop is written with */
    int nroot;
    Node **order;
    int n;
    uint64_t *set;  /* by position: ranges the node depends on, lanes apart */
    uint64_t *body; /* what its sources depend on: more than set for a reduce */
    int *uses;
    bool *done, *inlined, *vector, *four;
    bool *reads; /* something out of a place */
    uint8_t *fragment;
    Map at;        /* node id -> position + 1 */
    uint64_t out;  /* all output ranges */
    uint64_t tail; /* those of the rest of a row */
    Node **stores;
    int nstore;
    Node *ahead[MAX_PREFETCH], *ahead_in; /* PREFETCH: loads, and the loop that they stand in */
    int nahead;
    uint64_t lane;
    /* of a matrix unit: sums that are not stored yet, of which `stored` are; operands by tile, and when they were used */
    Node *sum[MAX_TILES], *held[MAX_TILES];
    int nsum, stored, used[MAX_TILES], turn;
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
    Stmt s = {.kind = kind, .node = n, .depth = depth};
    vec_push(q->l->arena, q->l->stmt, q->l->n, s);
}

static bool is_plain(Node *n)
{
    return n->op == OP_CONST || n->op == OP_VAR || n->op == OP_RANGE || n->op == OP_BUFFER ||
           n->op == OP_PARAM || n->op == OP_AFTER;
}

/* Sums and multiples of counters cost nothing: addressing modes and the C compiler see to them. */
static bool is_affine(Node *n)
{
    if (n->dtype != INGOT_INDEX)
        return false;
    switch (n->op) {
    case OP_CONST:
    case OP_VAR:
    case OP_RANGE: return true;
    case OP_ADD:
    case OP_SUB: return is_affine(n->src[0]) && is_affine(n->src[1]);
    case OP_MUL: return n->src[1]->op == OP_CONST && is_affine(n->src[0]);
    default: return false;
    }
}

static void find_sets(Lin *q)
{
    for (int i = 0; i < q->n; i++) {
        Node *t = q->order[i];
        bool is_lane = t == q->l->tile->lane;
        bool four = t == q->l->tile->four;
        uint8_t fragment = 0;
        for (int j = 0; j < TC_AXES && q->l->tile->tc; j++)
            fragment |= (uint8_t)((t == q->l->tile->fragment[j]) << j);
        uint64_t set = t->op == OP_RANGE && !is_lane && !four && !fragment ? bit(t) : 0;
        bool vector = is_lane;
        q->reads[i] = t->op == OP_LOAD && t->src[0]->op == OP_AFTER;
        for (uint32_t j = 0; j < t->nsrc; j++) {
            int p = position(q, t->src[j]);
            set |= q->set[p];
            vector |= q->vector[p];
            q->reads[i] |= q->reads[p];
            four |= q->four[p];
            fragment |= q->fragment[p];
            q->uses[p] += t->op != OP_PARAM;
        }
        for (int j = 0; t->op == OP_STORE && j < q->nstore; j++)
            if (q->stores[j] == t)
                set |= q->l->tile->ntail && j >= q->l->tile->ntail ? q->tail : q->out;
        q->body[i] = set;
        int nloop;
        Node *const *loop = loops_of(q->l, t, &nloop);
        for (int j = 0; j < nloop; j++) {
            if (loop[j] == q->l->tile->lane)
                vector = false;
            else if (loop[j] != q->l->tile->four)
                set &= ~bit(loop[j]);
        }
        if (is_fill_ahead(q->l, t))
            set &= ~bit(q->l->tile->ahead);
        vector &= !is_fill(t);
        q->set[i] = set;
        q->vector[i] = vector;
        q->four[i] = four && !is_dot(q->l, t);
        if (is_products(q->l, t))
            fragment &= (uint8_t) ~(1 << TC_TERMS);
        q->fragment[i] = is_fill(t) || t->op == OP_PROJ ? 0 : fragment; /* a PROJ is one element */
    }
}

/* The fused axes have one loop: their extents are written in what makes a coordinate of each out of its counter, that of
 * the outermost is not. What nothing is written with any more has no name. */
static void find_unused(Lin *q)
{
    const Tile *tile = q->l->tile;
    for (int i = q->nstore; i < q->nroot; i++)
        q->uses[position(q, q->root[i])]++;
    if (tile->fused > 1 && position(q, tile->axis[0].range) >= 0)
        q->uses[position(q, tile->axis[0].range->src[0])]--;
    for (int i = q->n; i-- > 0;) {
        Node *t = q->order[i];
        if (q->uses[i] || t->op == OP_STORE)
            continue;
        q->inlined[i] = true;
        for (uint32_t j = 0; j < t->nsrc && t->op != OP_PARAM; j++)
            q->uses[position(q, t->src[j])]--;
    }
}

/* Where a set of ranges is open: inside its innermost reduce, or else at its last output loop. */
static uint64_t place(const Lin *q, uint64_t set)
{
    uint64_t outside = set & ~(q->out | q->tail);
    if (outside)
        return outside;
    if (q->l->tile->tail.range && set & bit(q->l->tile->tail.range))
        return bit(q->l->tile->tail.range);
    uint64_t level = 0;
    int fused = q->l->tile->fused; /* these open together */
    const bool bound =
        q->l->tile->box; /* sums fill the registers: what is made of one is written in its store */
    for (int i = 0; i < q->l->tile->naxis; i++)
        if (set & bit(q->l->tile->axis[i].range) && !(bound && q->l->tile->axis[i].bound))
            level = bit(q->l->tile->axis[i < fused ? fused - 1 : i].range);
    return level;
}

/* A base address that several accesses add their constants to. */
static bool is_shared_base(const Lin *q, Node *n, int p)
{
    return n->op == OP_ADD && n->dtype == INGOT_INDEX && q->uses[p] > 1 && !q->vector[p] &&
           !q->fragment[p];
}

/* Which nodes are written inside their only user? */
static void find_inlined(Lin *q)
{
    for (int i = q->nstore; i < q->nroot; i++)
        q->inlined[position(q, q->root[i])] |= is_affine(q->root[i]);
    for (int i = 0; i < q->n; i++) {
        Node *t = q->order[i];
        for (uint32_t j = 0; j < t->nsrc; j++) {
            int p = position(q, t->src[j]);
            Node *s = t->src[j];
            bool simple = (op_info[s->op].cls != REDUCE && op_info[s->op].cls != MEMORY) ||
                          (s->op == OP_LOAD && !is_rows(s)) || is_dot(q->l, s);
            bool moved = store_chunk(t) > 1 && s->op == OP_LOAD;
            bool product = moved || (q->four[p] && s->op == OP_MUL) ||
                           (q->fragment[p] && s->op != OP_LOAD && s->op != OP_REDUCE);
            if (s->op == OP_PROJ || is_plain(s) || (is_affine(s) && !is_shared_base(q, s, p)) ||
                ((q->vector[p] || q->four[p]) && s->dtype == INGOT_INDEX) || product)
                q->inlined[p] = true;
            else if (simple && !q->fragment[p] && q->uses[p] == 1 &&
                     place(q, q->set[p]) == place(q, q->body[i]))
                q->inlined[p] = true;
        }
    }
}

static bool same_loops(const Lin *q, Node *a, Node *b)
{
    if (a->op != b->op)
        return false;
    int na, nb;
    Node *const *of_a = loops_of(q->l, a, &na), *const *of_b = loops_of(q->l, b, &nb);
    if (!na) /* a row of one vector: what fills one place may read another */
        return a == b;
    return na == nb && is_products(q->l, a) == is_products(q->l, b) &&
           !memcmp(of_a, of_b, (size_t)na * sizeof *of_a);
}

/* needed: by position, or NULL for all. */
static void emit_nodes(Lin *q, uint64_t open, uint64_t must, const bool *needed, int depth);

static void emit_reduce(Lin *q, int first, uint64_t open, uint64_t must, const bool *needed,
                        int depth);

static bool has_siblings(const Node *t)
{
    return t->op == OP_REDUCE && reduce_size(t) > 1;
}

/* A state's values are computed together, each from what all were before: both stand before any of them in the order. */
static void need_siblings(const Lin *q, Node *t, bool *needed)
{
    Node *next[MAX_STATE];
    reduce_step(q->c, t, next);
    for (int i = 0; i < (int)reduce_size(t); i++) {
        needed[position(q, next[i])] = true;
        needed[position(q, reduce_sibling(q->c, t, i))] = true;
    }
}

/* What the nodes of a group, of which the last stands at `last`, are made of. */
static bool *needed_by(const Lin *q, Arena *a, const int *group, int n, int last)
{
    bool *needed = NEWN(a, bool, q->n);
    for (int i = 0; i < n; i++)
        needed[group[i]] = true;
    for (int i = last + 1; i-- > 0;) {
        Node *t = q->order[i];
        for (uint32_t j = 0; needed[i] && j < t->nsrc; j++)
            needed[position(q, t->src[j])] = true;
        if (needed[i] && has_siblings(t))
            need_siblings(q, t, needed);
    }
    return needed;
}

/* A fragment that is loaded where the products want it. */
static bool is_operand(const Lin *q, int p)
{
    return q->fragment[p] && q->order[p]->op == OP_LOAD && !q->l->tile->tc->lanes;
}

/* What the reduces of a group read that does not change in their loops: that of the first is there
 * already, that of the others may come later in the order. */
static void emit_invariants(Lin *q, const int *group, int n, uint64_t open, uint64_t must,
                            const bool *needed, int depth)
{
    for (int i = group[0] + 1; i < group[n - 1]; i++) {
        Node *t = q->order[i];
        if (!needed[i] || q->done[i] || is_plain(t) || (q->set[i] & ~open) || is_operand(q, i))
            continue;
        if (is_fill_ahead(q->l, t))
            continue;
        if (is_loop(q->l, t) || is_fill(t)) {
            emit_reduce(q, i, open, must, needed, depth);
            continue;
        }
        q->done[i] = true;
        if (!q->inlined[i] && t->op != OP_STORE)
            add(q, STMT_LET, t, depth);
    }
}

/* Does it read a place where it is written? */
static bool reads_place(const Lin *q, Node *n)
{
    if (n->op == OP_LOAD && n->src[0]->op == OP_AFTER)
        return true;
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (n->dtype != INGOT_INDEX && reads_place(q, n->src[i]))
            return true;
    return false;
}

/* The items of a group wait for each other before a place is filled, which they may still read, and after: places that are
 * filled one after the other have that in common. */
static void barrier(Lin *q, bool before, int depth)
{
    Linear *l = q->l;
    int last = l->n;
    while (before && last > 0 &&
           (l->stmt[last - 1].kind == STMT_ACC ||
            (l->stmt[last - 1].kind == STMT_LET && !reads_place(q, l->stmt[last - 1].node))))
        last--;
    if (before && last > 0 && l->stmt[last - 1].kind == STMT_BARRIER) {
        memmove(&l->stmt[last - 1], &l->stmt[last], (size_t)(l->n - last) * sizeof *l->stmt);
        l->n--;
        return;
    }
    add(q, STMT_BARRIER, NULL, depth);
}

static bool is_result(const Lin *q, const Node *store)
{
    for (int i = 0; i < q->nstore; i++)
        if (q->stores[i] == store)
            return true;
    return false;
}

/* ---- fragments ------------------------------------------------------------------------------------ */

/* An accumulator; a fragment has a tile until it is stored. */
static void add_sum(Lin *q, Node *sum, int depth)
{
    add(q, STMT_ACC, sum, depth);
    if (!is_products(q->l, sum) || q->l->tile->tc->lanes)
        return;
    q->l->stmt[q->l->n - 1].tile[0] = (int8_t)q->nsum;
    q->sum[q->nsum++] = sum;
}

static int tile_of(const Lin *q, const Node *fragment)
{
    for (int i = 0; i < q->nsum; i++)
        if (q->sum[i] == fragment)
            return i;
    for (int i = 0; i < q->l->tile->tc->tiles; i++)
        if (q->held[i] == fragment)
            return i;
    return -1;
}

static void add_fill(Lin *q, Node *store, int depth)
{
    add(q, STMT_STORE, store, depth);
    q->l->stmt[q->l->n - 1].async = store_chunk(store) > 1 && q->l->tile->depth;
    if (!is_products(q->l, store->src[2]))
        return;
    q->l->stmt[q->l->n - 1].tile[0] = (int8_t)tile_of(q, store->src[2]);
    q->stored++;
    if (q->stored == q->nsum) /* their tiles are free again */
        q->stored = q->nsum = 0;
}

/* Operands have tiles behind the sums': some for those that move with rows, some for the others, for a tile's shape stays. */
typedef struct {
    int first, n;
} Pool;

/* Loads a fragment unless some tile has it still; the one that has not been used for the longest time gives its tile. */
static int operand_tile(Lin *q, const Pool *pool, Node *load, int depth)
{
    int at = pool->first;
    for (int i = pool->first; i < pool->first + pool->n; i++) {
        if (q->held[i] == load) {
            q->used[i] = ++q->turn;
            return i;
        }
        at = q->used[i] < q->used[at] ? i : at;
    }
    add(q, STMT_LET, load, depth);
    q->l->stmt[q->l->n - 1].tile[0] = (int8_t)at;
    q->held[at] = load;
    q->used[at] = ++q->turn;
    return at;
}

/* How many fragments of a kind the products of one term of all sums have. */
static int distinct(Node *const *fragment, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        bool known = false;
        for (int j = 0; j < i; j++)
            known |= fragment[j] == fragment[i];
        count += !known;
    }
    return count;
}

/* Of fragments that have names. */
static void add_lane_products(Lin *q, const int *group, int n, int depth)
{
    for (int i = 0; i < n; i++) {
        Node *sum = q->order[group[i]], *term[TC_MOST_TERMS];
        int nterm = tc_terms(sum->src[0], term, TC_MOST_TERMS);
        for (int j = 0; j < nterm; j++) {
            add(q, STMT_UPDATE, sum, depth);
            q->l->stmt[q->l->n - 1].term = term[j];
            q->l->stmt[q->l->n - 1].last = j == nterm - 1;
        }
    }
}

/* The sums' products, term after term; fragments are loaded where they are wanted. */
static void add_products(Lin *q, const int *group, int n, int depth)
{
    const Tile *t = q->l->tile;
    int most = 0, nterm[MAX_TILES], room = t->tc->tiles - q->nsum;
    Node *term[MAX_TILES][TC_MOST_TERMS], *a[MAX_TILES], *b[MAX_TILES];
    Pool rows = {.first = q->nsum}, columns = {0};
    for (int i = 0; i < n; i++) {
        nterm[i] = tc_terms(q->order[group[i]]->src[0], term[i], TC_MOST_TERMS);
        most = nterm[i] > most ? nterm[i] : most;
        (void)tc_operands(t->tc, term[i][0], t->fragment, &a[i], &b[i]);
    }
    /* what the outer copies move with comes one after the other, the rest is used again */
    int na = distinct(a, n), nb = distinct(b, n);
    bool rows_outer = n > 1 && a[0] == a[1];
    while (na + nb > room) {
        int *fewer = rows_outer ? (na > 1 ? &na : &nb) : (nb > 1 ? &nb : &na);
        if (--*fewer < 1)
            BUG("%d fragments of sums leave no room for operands", q->nsum);
    }
    rows.n = na;
    q->l->nsum = q->nsum;
    q->l->nrows = na;
    columns = (Pool){rows.first + na, nb};
    memset((void *)q->held, 0, sizeof q->held);
    for (int j = 0; j < most; j++)
        for (int i = 0; i < n; i++) {
            if (j >= nterm[i])
                continue;
            Node *sum = q->order[group[i]];
            (void)tc_operands(t->tc, term[i][j], t->fragment, &a[i], &b[i]);
            int x = operand_tile(q, &rows, a[i], depth), y = operand_tile(q, &columns, b[i], depth);
            add(q, STMT_UPDATE, sum, depth);
            Stmt *s = &q->l->stmt[q->l->n - 1];
            s->tile[0] = (int8_t)tile_of(q, sum);
            s->tile[1] = (int8_t)x;
            s->tile[2] = (int8_t)y;
            s->term = term[i][j];
            s->last = j == nterm[i] - 1;
        }
}

static void emit_some(Lin *q, uint64_t open, uint64_t must, const bool *needed, bool before,
                      int depth);

/* What is copied for the iteration `ahead`. */
static void emit_ahead(Lin *q, uint64_t open, int depth)
{
    uint64_t own = bit(q->l->tile->ahead);
    emit_some(q, open | own, own, NULL, false, depth);
    for (int i = 0; i < q->n; i++)
        if (is_fill_ahead(q->l, q->order[i]) && !q->done[i])
            emit_reduce(q, i, open | own, 0, NULL, depth);
    for (int i = 0; i < q->n; i++)
        if (q->set[i] & own || is_fill_ahead(q->l, q->order[i]))
            q->done[i] = false;
}

static Stmt *loop_ahead(Lin *q, int depth)
{
    add(q, STMT_LOOP, q->l->tile->ahead, depth);
    return &q->l->stmt[q->l->n - 1];
}

/* Before a loop the copies of its first iterations begin, a group each; the places may still be read. */
static void emit_before_loop(Lin *q, uint64_t open, int depth)
{
    Node *f = q->l->tile->ahead, *most = idx(q->c, q->l->tile->depth - 1);
    add(q, STMT_BARRIER, NULL, depth);
    loop_ahead(q, depth)->upto = idx_min(q->c, most, f->src[0]);
    emit_ahead(q, open, depth + 1);
    add(q, STMT_COMMIT, NULL, depth + 1);
    add(q, STMT_END, f, depth);
}

/* In each iteration its own copies are waited for, by all items, and those of a later one begin: into the place that all have read in
 * the iteration before. */
static void emit_in_loop(Lin *q, uint64_t open, int depth)
{
    const Tile *t = q->l->tile;
    Node *later = idx_add(q->c, t->ahead_of, idx(q->c, t->depth - 1));
    add(q, STMT_WAIT, NULL, depth);
    q->l->stmt[q->l->n - 1].count = t->depth - 2;
    add(q, STMT_BARRIER, NULL, depth);
    Stmt *s = loop_ahead(q, depth);
    s->from = later;
    s->upto = idx_min(q->c, idx_add(q->c, later, idx(q->c, 1)), t->ahead->src[0]);
    emit_ahead(q, open, depth + 1);
    add(q, STMT_END, t->ahead, depth);
    add(q, STMT_COMMIT, NULL, depth);
}

/* The item that has boxes copied goes through all iterations by itself, as far as places are free. */
static void emit_loader(Lin *q, uint64_t open, int depth)
{
    Node *f = q->l->tile->ahead;
    add(q, STMT_LOADER, NULL, depth);
    loop_ahead(q, depth + 1);
    add(q, STMT_CLAIM, f, depth + 2);
    emit_ahead(q, open, depth + 2);
    add(q, STMT_END, f, depth + 1);
    add(q, STMT_END, NULL, depth);
}

/* How many dots each of a group's sums adds in an iteration; 1: all at once, or one. */
static int dots_each(const Lin *q, const int *group, int n)
{
    Node *dot[MAX_DOTS];
    int each = 0;
    for (int i = 0; i < n; i++) {
        Node *sum = q->order[group[i]];
        int count = is_loop(q->l, sum) ? dots_of(q->l, sum->src[0], dot) : 0;
        if (count < 2 || (i && count != each))
            return 1;
        each = count;
    }
    return each;
}

/* The sums' dots, one of each after the other: what is loaded for them stands before them, for there are few registers. */
static void emit_dots(Lin *q, const int *group, int n, int each, uint64_t open, uint64_t must,
                      int depth)
{
    for (int j = 0; j < each; j++) {
        Arena *a = arena_new();
        Node *dot[MAX_DOTS];
        int *term = NEWN(a, int, n);
        for (int i = 0; i < n; i++) {
            dots_of(q->l, q->order[group[i]]->src[0], dot);
            term[i] = position(q, dot[j]);
        }
        int last = 0;
        for (int i = 0; i < n; i++)
            last = term[i] > last ? term[i] : last;
        bool *needed = needed_by(q, a, term, n, last);
        emit_nodes(q, open, must, needed, depth);
        arena_free(a);
        for (int i = 0; i < n; i++) {
            dots_of(q->l, q->order[group[i]]->src[0], dot);
            add(q, STMT_UPDATE, q->order[group[i]], depth);
            q->l->stmt[q->l->n - 1].term = dot[j];
            q->l->stmt[q->l->n - 1].last = j == each - 1;
        }
    }
}

/* All reduces over the same loops that can run now. */
static void emit_reduce(Lin *q, int first, uint64_t open, uint64_t must, const bool *needed,
                        int depth)
{
    Node *t = q->order[first];
    int group[256], n = 0;
    int nloop;
    Node *const *loop = loops_of(q->l, t, &nloop);
    for (int i = first; i < q->n && n < (nloop ? 256 : 1); i++) {
        Node *r = q->order[i];
        if (!q->done[i] && same_loops(q, t, r) && !(q->set[i] & ~open) &&
            (!must || (q->set[i] & must)) && (!needed || needed[i]))
            group[n++] = i;
    }
    for (int i = 0; i < n; i++)
        q->done[group[i]] = true;
    const bool boxes = q->l->tile->box && is_products(q->l, t);
    if (boxes)
        emit_loader(q, open, depth);
    Arena *a = arena_new();
    const bool *inside = needed_by(q, a, group, n, group[n - 1]);
    const int each = dots_each(q, group, n);
    if (n > 1)
        emit_invariants(q, group, n, open, must, inside, depth);
    bool sum = is_loop(q->l, t);
    for (int i = 0; i < n && sum; i++)
        add_sum(q, q->order[group[i]], depth);
    uint64_t inner = open, own = 0;
    bool together = is_fill(t) && q->l->tile->items && !is_fill_ahead(q->l, t);
    if (together)
        barrier(q, true, depth);
    for (int j = 0; j < nloop; j++) {
        bool ahead = is_products(q->l, t) && loop[j] == q->l->tile->ahead_of;
        if (ahead && !boxes)
            emit_before_loop(q, inner, depth + j);
        add(q, STMT_LOOP, loop[j], depth + j);
        own |= bit(loop[j]);
        inner |= bit(loop[j]);
        if (ahead && boxes)
            add(q, STMT_FILLED, loop[j], depth + j + 1);
        else if (ahead)
            emit_in_loop(q, inner, depth + j + 1);
        if (each > 1 && j == nloop - 1)
            emit_dots(q, group, n, each, inner, own, depth + nloop);
        else
            emit_nodes(q, inner, own, inside, depth + j + 1);
    }
    for (int i = 0; i < q->nahead && sum && nloop && loop[nloop - 1] == q->ahead_in; i++)
        add(q, STMT_PREFETCH, q->ahead[i], depth + nloop);
    if (is_products(q->l, t))
        (q->l->tile->tc->lanes ? add_lane_products : add_products)(q, group, n, depth + nloop);
    for (int i = 0; i < n; i++) {
        Node *g = q->order[group[i]];
        if (sum && each == 1 && !is_products(q->l, g))
            add(q, STMT_UPDATE, g, depth + nloop);
        for (int j = 0; !sum && j < end_stores(g); j++)
            add_fill(q, g->src[j], depth + nloop);
    }
    for (int j = nloop; j-- > 0;) {
        if (boxes && loop[j] == q->l->tile->ahead_of)
            add(q, STMT_RELEASE, loop[j], depth + j + 1);
        add(q, STMT_END, loop[j], depth + j);
    }
    if (boxes)
        add(q, STMT_RELEASE, NULL, depth);
    for (int i = 0; i < n && q->l->tile->cluster && is_products(q->l, t); i++)
        add(q, STMT_JOIN, q->order[group[i]], depth);
    if (together)
        barrier(q, false, depth);
    /* what stood in these loops ended with them: others over the same ranges have their own */
    for (int i = 0; i < q->n; i++)
        if (q->set[i] & own)
            q->done[i] = false;
    arena_free(a);
}

static bool is_ahead(const Lin *q, const Node *n)
{
    for (int i = 0; i < q->nahead; i++)
        if (q->ahead[i] == n)
            return true;
    return false;
}

/* before: only what reads no place. */
static void emit_some(Lin *q, uint64_t open, uint64_t must, const bool *needed, bool before,
                      int depth)
{
    for (int i = 0; i < q->n; i++) {
        Node *t = q->order[i];
        if ((before && (q->reads[i] || t->op == OP_STORE)) || q->done[i] || is_plain(t) ||
            (q->set[i] & ~open) || (must && !(q->set[i] & must)) || (needed && !needed[i]) ||
            is_operand(q, i) || is_ahead(q, t) || is_fill_ahead(q->l, t))
            continue;
        if (t->op == OP_STORE) {
            q->done[i] = true;
            if (is_result(q, t)) /* those of a place come with its loops */
                add(q, STMT_STORE, t, depth);
        } else if (is_loop(q->l, t) || is_fill(t)) {
            emit_reduce(q, i, open, must, needed, depth);
        } else if (t->op == OP_SCAN) {
            q->done[i] = true;
            add(q, STMT_UPDATE, t, depth);
        } else {
            q->done[i] = true;
            if (!q->inlined[i])
                add(q, STMT_LET, t, depth);
        }
    }
}

/* Places that fragments are loaded from are filled together, before any of it is. */
static void emit_nodes(Lin *q, uint64_t open, uint64_t must, const bool *needed, int depth)
{
    if (q->l->tile->tc && q->l->tile->tc->lanes)
        emit_some(q, open, must, needed, true, depth);
    emit_some(q, open, must, needed, false, depth);
}

/* The rest of a row, beside its vectors. */
static void emit_tail(Lin *q, uint64_t open, int depth)
{
    Node *range = q->l->tile->tail.range;
    if (range)
        add(q, STMT_LOOP, range, depth);
    emit_nodes(q, range ? open | bit(range) : open, 0, NULL, depth + (range != NULL));
    if (range)
        add(q, STMT_END, range, depth);
}

/* The extents that the loop over fused axes is written with. */
static void fuse_extents(Linear *l, Context *c)
{
    const Tile *tile = l->tile;
    l->fused = tile->fused ? idx(c, 1) : NULL;
    l->inner = NEWN(l->arena, Node *, tile->fused + 1);
    for (int i = tile->fused; i-- > 0;) {
        l->inner[i] = l->fused;
        l->fused = idx_mul(c, tile->axis[i].range->src[0], l->fused);
    }
}

/* The states of reduces, in the order of the graph: what follows on each value, and all of the values. */
static int find_states(Lin *q, Node **out, int max)
{
    int n, count = 0;
    Node **order = graph_toposort(q->l->arena, q->nroot, q->root, &n);
    for (int i = 0; i < n; i++) {
        Node *t = order[i], *next[MAX_STATE];
        bool known = !has_siblings(t);
        for (int j = 0; j < count && !known; j++)
            known = out[j] == t;
        if (known)
            continue;
        int size = (int)reduce_size(t);
        if (count + 2 * size > max)
            BUG("a kernel with more than %d values of states", max / 2);
        reduce_step(q->c, t, next);
        for (int j = 0; j < size; j++) {
            out[count + j] = next[j];
            out[count + size + j] = reduce_sibling(q->c, t, j);
        }
        count += 2 * size;
    }
    return count;
}

/* Of work items: by BIND, or else each has an element of its own, and the loop of a scan. */
static bool is_item(const Linear *l, const TileAxis *axis)
{
    return l->items && (l->tile->items ? axis->bound != BOUND_NOT : !axis->scanned);
}

void linearize(Linear *l, const Kernel *k, const Tile *tile)
{
    enum { MAX_STATES = 512 };
    Lin q = {.c = k->c, .l = l};
    l->tile = tile;
    fuse_extents(l, k->c);
    Node **stores = NEWN(l->arena, Node *, tile->nstore + tile->fused + 1 + MAX_PREFETCH);
    flatten_addresses(l->arena, k, tile->nstore, tile->store, stores);
    q.root = stores;
    q.nroot = q.nstore = join_stores(k->c, tile, stores);
    join_loads(k->c, tile, q.nstore, stores);
    if (tile->lane && !tile->four && !tile->tc)
        split_lanes(l->arena, k, tile->lane, q.nstore, stores);
    if (l->fused)
        stores[q.nroot++] = l->fused;
    for (int i = 0; i < tile->fused; i++)
        stores[q.nroot++] = l->inner[i];
    q.nahead = prefetch_loads(l->arena, k, tile, q.nstore, stores, q.ahead, &q.ahead_in);
    for (int i = 0; i < q.nahead; i++)
        stores[q.nroot++] = q.ahead[i];
    Node **first = NEWN(l->arena, Node *, MAX_STATES + q.nroot + q.nahead);
    int nstate = find_states(&q, first, MAX_STATES), nfirst = nstate;
    for (int i = 0; i < q.nahead; i++) /* what stands in a sum's loop is known before the sum */
        first[nfirst++] = q.ahead[i];
    memcpy((void *)(first + nfirst), (void *)stores, (size_t)q.nroot * sizeof *stores);
    q.order = graph_toposort(l->arena, nfirst + q.nroot, first, &q.n);
    q.set = NEWN(l->arena, uint64_t, q.n);
    q.body = NEWN(l->arena, uint64_t, q.n);
    q.uses = NEWN(l->arena, int, q.n);
    q.done = NEWN(l->arena, bool, q.n);
    q.inlined = NEWN(l->arena, bool, q.n);
    q.vector = NEWN(l->arena, bool, q.n);
    q.reads = NEWN(l->arena, bool, q.n);
    q.four = NEWN(l->arena, bool, q.n);
    q.fragment = NEWN(l->arena, uint8_t, q.n);
    for (int i = 0; i < q.n; i++)
        map_put(&q.at, (uint64_t)q.order[i]->id + 1, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < tile->naxis; i++) {
        q.out |= bit(tile->axis[i].range);
        if (i < tile->naxis - tile->tail_beside)
            q.tail |= bit(tile->axis[i].range);
    }
    if (tile->tail.range)
        q.tail |= bit(tile->tail.range);
    q.stores = stores;
    find_sets(&q);
    for (int i = 0; i < nstate; i++)
        q.uses[position(&q, first[i])]++;
    find_unused(&q);
    find_inlined(&q);
    uint64_t open = 0;
    int depth = 0;
    for (int i = tile->naxis; i-- > 0;)
        if (is_item(l, &tile->axis[i]))
            add(&q, STMT_ITEM, tile->axis[i].range, 0);
    if (tile->parts && !tile->fused)
        add(&q, STMT_PARTS, NULL, depth++);
    emit_nodes(&q, open, 0, NULL, depth);
    if (tile->fused)
        add(&q, STMT_PARTS, NULL, depth++);
    for (int i = 0; i < tile->naxis; i++) {
        open |= bit(tile->axis[i].range);
        for (int j = 0; j < q.n && tile->axis[i].scanned; j++)
            if (q.order[j]->op == OP_SCAN)
                add(&q, STMT_ACC, q.order[j], depth);
        if (i >= tile->fused && !is_item(l, &tile->axis[i]))
            add(&q, STMT_LOOP, tile->axis[i].range, depth++);
        if (i >= tile->fused - 1)
            emit_nodes(&q, open, 0, NULL, depth);
    }
    if (tile->ntail && !tile->tail_beside)
        emit_tail(&q, open, depth);
    for (int i = tile->naxis; i-- > tile->fused;) {
        if (!is_item(l, &tile->axis[i]))
            add(&q, STMT_END, tile->axis[i].range, --depth);
        open &= ~bit(tile->axis[i].range);
        if (tile->ntail && tile->tail_beside && i == tile->naxis - 1)
            emit_tail(&q, open, depth);
    }
    if (tile->parts)
        add(&q, STMT_END, NULL, --depth);
    l->counted = NEWN(l->arena, bool, tile->fused + 1);
    for (int i = 0; i < tile->fused; i++) {
        int p = position(&q, tile->axis[i].range);
        l->counted[i] = p >= 0 && q.uses[p] > 0;
    }
    l->nknown = k->c->nnode;
    l->named = NEWN(l->arena, bool, l->nknown);
    l->vector = NEWN(l->arena, bool, l->nknown);
    l->four = NEWN(l->arena, bool, l->nknown);
    l->fragment = NEWN(l->arena, uint8_t, l->nknown);
    for (int i = 0; i < q.n; i++) {
        Node *t = q.order[i];
        l->named[t->id] = !q.inlined[i] && !is_plain(t) && t->op != OP_STORE && !is_fill(t);
        l->vector[t->id] = q.vector[i];
        l->four[t->id] = q.four[i];
        l->fragment[t->id] = q.fragment[i];
        if (t->dtype == INGOT_INDEX && (t->lo < INT32_MIN || t->hi > INT32_MAX))
            l->wide = true;
    }
    map_free(&q.at);
    if (tile->tc && tile->tc->lanes)
        pair_stores(l, k);
}
