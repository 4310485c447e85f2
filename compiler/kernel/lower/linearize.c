/* linearize.c - stores become statements with loops around them, and values with names.
 *
 * Each node is placed in the outermost loop nest where everything it depends on is known: its
 * position is the set of ranges it depends on.  So loop invariants leave their loops by
 * construction, and a reduce stands where its outer ranges are open, before the loops that do not
 * matter to it; likewise the loops that fill a place.  Reduces over the same ranges share their
 * loops: the copies that UPCAST made.  A node used once, at its user's own place, is written inside
 * its user. */
#include <string.h>

#include "linearize.h"
#include "passes.h"

enum { SUMS_IN_TURN = 8 };

/* Products of what lanes have in registers already, which come behind those that it is made of. */
static bool is_packed(const Lin *q, Node *n)
{
    Node *term[TC_MOST_TERMS], *a, *b;
    return tc_terms(n->src[0], term, TC_MOST_TERMS) &&
           tc_operands(q->l->tile->tc, term[0], q->l->tile->fragment, &a, &b) && a->op == OP_PACK;
}

static bool same_loops(const Lin *q, Node *a, Node *b)
{
    if (a->op != b->op)
        return false;
    int na, nb;
    Node *const *of_a = loops_of(q->l, a, &na), *const *of_b = loops_of(q->l, b, &nb);
    if (!na) /* a row of one vector: what fills one place may read another */
        return a == b || (q->l->tile->quad && is_products(q->l, a) && is_products(q->l, b) &&
                          is_packed(q, a) == is_packed(q, b));
    return na == nb &&
           (is_products(q->l, a) == is_products(q->l, b) || of_a[0] == q->l->tile->along) &&
           !memcmp(of_a, of_b, (size_t)na * sizeof *of_a);
}

static void emit_reduce(Lin *q, int first, uint64_t open, uint64_t must, const bool *needed,
                        int depth);

static bool has_siblings(const Lin *q, const Node *t)
{
    return t->op == OP_REDUCE && reduce_size(t) > 1 && !is_products(q->l, t);
}

/* Of the state of a reduce before an element, which another one in the same loops may read, the
 * reduce; NULL: it is anything else. */
static Node *state_of(const Lin *q, Node *t)
{
    return t->op == OP_PARAM && t->nsrc ? reduce_sibling(q->c, t, reduce_part(t)) : NULL;
}

/* A state's values are computed together, each from what all were before: both stand before any of
 * them in the order. */
static void need_siblings(const Lin *q, Node *t, bool *needed)
{
    Node *next[MAX_STATE];
    reduce_step(q->c, t, next);
    for (int i = 0; i < reduce_values(t); i++) {
        needed[lin_position(q, next[i])] = true;
        needed[lin_position(q, reduce_sibling(q->c, t, i))] = true;
    }
}

/* What the nodes of a group, of which the last stands at `last`, are made of. */
bool *lin_needed_by(const Lin *q, Arena *a, const int *group, int n, int last)
{
    bool *needed = NEWN(a, bool, q->n);
    for (int i = 0; i < n; i++)
        needed[group[i]] = true;
    for (int i = last + 1; i-- > 0;) {
        Node *t = q->order[i];
        for (uint32_t j = 0; needed[i] && j < t->nsrc; j++)
            needed[lin_position(q, t->src[j])] = true;
        if (needed[i] && has_siblings(q, t))
            need_siblings(q, t, needed);
        if (needed[i] && state_of(q, t))
            needed[lin_position(q, state_of(q, t))] = true;
    }
    return needed;
}

/* A value with a name. A fragment that stays for all blocks of a row is loaded once its place is
 * filled. */
static void emit_let(Lin *q, int i, int depth)
{
    if (q->inlined[i])
        return;
    if (q->l->tile->along && q->fragment[i] && q->order[i]->op == OP_LOAD) {
        Arena *a = arena_new();
        lin_wait_for_copies(q, lin_needed_by(q, a, &i, 1, i), depth);
        arena_free(a);
    }
    lin_add(q, STMT_LET, q->order[i], depth);
}

/* What the reduces of a group read that does not change in their loops: that of the first is there
 * already, that of the others may come later in the order. */
static void emit_invariants(Lin *q, const int *group, int n, uint64_t open, uint64_t must,
                            const bool *needed, int depth)
{
    for (int i = group[0] + 1; i < group[n - 1]; i++) {
        Node *t = q->order[i];
        if (!needed[i] || q->done[i] || is_plain(t) || !lin_fits(q, i, open, 0) ||
            is_operand(q, i) || is_late(q, i))
            continue;
        if (is_fill_ahead(q->l, t))
            continue;
        if (is_loop(q->l, t) || is_fill(t)) {
            emit_reduce(q, i, open, must, needed, depth);
            continue;
        }
        lin_done(q, i, open);
        if (t->op != OP_STORE)
            emit_let(q, i, depth);
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

/* No item reads a place that is filled once, before that. */
static bool is_first_fill(const Lin *q, const Node *fill, int depth)
{
    bool first = depth == 0;
    for (int i = 0; i < q->l->n && first; i++)
        for (int j = 0; j < end_stores(fill) && q->l->stmt[i].kind == STMT_STORE; j++)
            first = first && q->l->stmt[i].node->src[0]->arg.i != fill->src[j]->src[0]->arg.i;
    return first;
}

/* Is it filled with what places have? */
static bool fills_from_place(const Lin *q, const Node *fill)
{
    for (int i = 0; i < end_stores(fill); i++)
        if (reads_place(q, fill->src[i]->src[2]))
            return true;
    return false;
}

/* The items of a group wait for each other before a place is filled, which they may still read, and
 * after (fill NULL): places that are filled one after the other have that in common. */
static void barrier(Lin *q, const Node *fill, int depth)
{
    Linear *l = q->l;
    const bool before = fill != NULL;
    int last = l->n;
    while (before && last > 0 &&
           (l->stmt[last - 1].kind == STMT_ACC ||
            (l->stmt[last - 1].kind == STMT_LET && !reads_place(q, l->stmt[last - 1].node))))
        last--;
    if (before && last > 0 && l->stmt[last - 1].kind == STMT_BARRIER) {
        if (fills_from_place(q, fill)) /* they have waited for that */
            return;
        memmove(&l->stmt[last - 1], &l->stmt[last], (size_t)(l->n - last) * sizeof *l->stmt);
        l->n--;
        return;
    }
    if (!before || !is_first_fill(q, fill, depth))
        lin_add(q, STMT_BARRIER, NULL, depth);
}

static bool is_result(const Lin *q, const Node *store)
{
    for (int i = 0; i < q->nstore; i++)
        if (q->root[i] == store)
            return true;
    return false;
}

static void emit_some(Lin *q, uint64_t open, uint64_t must, const bool *needed, bool before,
                      int depth);

/* What fills places for the iteration that begins; pipeline_copies() or producer() sees to it that
 * this is done ahead. */
static void emit_fill(Lin *q, uint64_t open, int depth)
{
    const Tile *t = q->l->tile;
    const uint64_t own = lin_bit(t->ahead);
    lin_add(q, STMT_FILL, t->ahead, depth)->from = t->ahead_of;
    emit_some(q, open | own, own, NULL, false, depth + 1);
    for (int i = 0; i < q->n; i++)
        if (is_fill_ahead(q->l, q->order[i]) && !q->done[i])
            emit_reduce(q, i, open | own, 0, NULL, depth + 1);
    lin_forget(q, own);
    for (int i = 0; i < q->n; i++)
        if (is_fill_ahead(q->l, q->order[i]))
            q->done[i] = false;
    lin_add(q, STMT_END, t->ahead, depth);
}

/* Is a sum with a loop of its own still to come among what the group's sums add? So it is of blocks
 * of weights; those of all copies share their loops, term after term would part them. */
static bool adds_sums(const Lin *q, const int *group, int n)
{
    Arena *a = arena_new();
    const bool *needed = lin_needed_by(q, a, group, n, group[n - 1]);
    bool sums = false;
    for (int i = 0; i < group[n - 1] && !sums; i++) {
        bool own = false;
        for (int j = 0; j < n; j++)
            own |= group[j] == i;
        sums = needed[i] && !own && !q->done[i] && is_loop(q->l, q->order[i]);
    }
    arena_free(a);
    return sums;
}

/* How many terms each of a group's sums adds in an iteration, one after the other; 1: all at once,
 * or one. Products are so, without being rounded, if there are sums enough for none to wait for
 * itself. */
static int terms_each(const Lin *q, const int *group, int n, bool dots)
{
    enum { SUMS = 8 };
    Node *term[MAX_TERMS];
    int each = 0;
    for (int i = 0; i < n; i++) {
        Node *sum = q->order[group[i]];
        int count = is_loop(q->l, sum) && !is_products(q->l, sum) && reduce_size(sum) == 1 &&
                            reduce_monoid(sum) == INGOT_REDUCE_ADD
                        ? terms_of(q->l, sum->src[0], dots, term, 0)
                        : 0;
        if (count < 2 || (i && count != each))
            return 1;
        each = count;
    }
    return dots || (n >= SUMS && !adds_sums(q, group, n)) ? each : 1;
}

/* The sums' terms, one of each after the other: what is loaded for one stands before it, for there
 * are few registers.  So of a tile of rows and columns what is loaded of a row is in registers
 * while its terms are added, and no longer. */
static void emit_terms(Lin *q, const int *group, int n, bool dots, uint64_t open, uint64_t must,
                       int depth)
{
    for (int j = 0, each = 1; j < each; j++) {
        for (int i = 0; i < n; i++) {
            Arena *a = arena_new();
            Node *term[MAX_TERMS];
            each = terms_of(q->l, q->order[group[i]]->src[0], dots, term, 0);
            const int at = lin_position(q, term[j]);
            lin_emit(q, open, must, lin_needed_by(q, a, &at, 1, at), depth);
            arena_free(a);
            Stmt *s = lin_add(q, STMT_UPDATE, q->order[group[i]], depth);
            s->term = term[j];
            s->last = j == each - 1;
        }
    }
}

/* A sum with loops of its own, or dots that have been written out. */
static bool has_own_sum(const Lin *q, Node *n)
{
    if (n->op == OP_REDUCE)
        return is_loop(q->l, n) || is_dot(q->l, n);
    for (uint32_t i = 0; i < n->nsrc && op_is_alu(n->op); i++)
        if (has_own_sum(q, n->src[i]))
            return true;
    return false;
}

/* The terms of a sum that have sums of their own each: those of blocks of weights, of which UNROLL
 * has written several out. */
static int blocks_of(const Lin *q, Node *body, Node **term, int n)
{
    if (body->op == OP_ADD && body->dtype == INGOT_F32 && has_own_sum(q, body->src[0]) &&
        has_own_sum(q, body->src[1]))
        return blocks_of(q, body->src[1], term, blocks_of(q, body->src[0], term, n));
    if (n < MAX_TERMS)
        term[n] = body;
    return n + 1;
}

/* How many such terms each of a group's sums adds in an iteration; 1: one, or they differ. */
static int blocks_each(const Lin *q, const int *group, int n)
{
    Node *term[MAX_TERMS];
    int each = 1;
    for (int i = 0; i < n; i++) {
        Node *sum = q->order[group[i]];
        if (!q->l->tile->lane || !is_loop(q->l, sum) || is_products(q->l, sum) ||
            sum->dtype != INGOT_F32 || reduce_size(sum) > 1 ||
            reduce_monoid(sum) != INGOT_REDUCE_ADD)
            return 1;
        const int count = blocks_of(q, sum->src[0], term, 0);
        if (count < 2 || count > MAX_TERMS || (i && count != each))
            return 1;
        each = count;
    }
    return each;
}

/* The first block of all sums, then the next: the loops of a block's own sums are done before the
 * next one's begin, and so are the registers of their accumulators. */
static void emit_blocks(Lin *q, const int *group, int n, int blocks, uint64_t open, uint64_t must,
                        int depth)
{
    for (int j = 0; j < blocks; j++) {
        Arena *a = arena_new();
        Node *term[MAX_TERMS], **now = NEWN(a, Node *, n);
        int *at = NEWN(a, int, n), end = 0;
        for (int i = 0; i < n; i++) {
            (void)blocks_of(q, q->order[group[i]]->src[0], term, 0);
            now[i] = term[j];
            at[i] = lin_position(q, now[i]);
            end = at[i] > end ? at[i] : end;
        }
        lin_emit(q, open, must, lin_needed_by(q, a, at, n, end), depth);
        for (int i = 0; i < n; i++) {
            Stmt *s = lin_add(q, STMT_UPDATE, q->order[group[i]], depth);
            s->term = now[i];
            s->last = j == blocks - 1;
        }
        arena_free(a);
    }
}

/* Sums leave their tiles as soon as they are there, for the next ones. */
static void emit_fragments(Lin *q, const int *group, int n, uint64_t open, uint64_t must,
                           const bool *needed, int depth)
{
    for (int i = 0; i < n; i++)
        for (int j = group[i] + 1; j < q->n; j++) {
            Node *fill = q->order[j];
            if (is_fill(fill) && fill->src[0]->src[2] == q->order[group[i]] && !q->done[j] &&
                lin_fits(q, j, open, must) && (!needed || needed[j]))
                emit_reduce(q, j, open, must, needed, depth);
        }
}

/* Sums of dots in lanes that are more than registers hold: some come after the others, and results
 * of the first are made amid the terms of the next (spread_stores.c). */
static bool in_turn(const Lin *q, Node *t)
{
    enum { MANY_SUMS = 4 * SUMS_IN_TURN };
    const Tile *tile = q->l->tile;
    int n = 0;
    if (!tile->lane || !tile->four || tile->tc || q->l->items || !is_loop(q->l, t))
        return false;
    for (int i = 0; i < q->n; i++)
        n += q->vector[i] && q->order[i]->op == OP_REDUCE && is_dot(q->l, q->order[i]->src[0]) &&
             same_loops(q, t, q->order[i]);
    q->l->in_turn |= n >= MANY_SUMS;
    return n >= MANY_SUMS;
}

/* What an iteration does at its end: a sum is added to, unless products are; places are filled. */
static void emit_end(Lin *q, Node *t, bool begun, int depth)
{
    const bool async = begun || (q->l->tile->depth && !is_fill_ahead(q->l, t));
    if (is_loop(q->l, t) && !is_products(q->l, t))
        lin_add(q, STMT_UPDATE, t, depth);
    for (int j = 0; !is_loop(q->l, t) && j < end_stores(t); j++)
        lin_add_fill(q, t->src[j], async, depth);
}

/* The number that a sum multiplies its vectors by, in all lanes; NULL: none. */
static const Node *factor_in_lanes(const Lin *q, const Node *sum)
{
    const Node *x = sum->src[0];
    for (uint32_t i = 0; x->op == OP_MUL && i < x->nsrc; i++)
        if (x->src[i]->op == OP_LOAD && !q->vector[lin_position(q, x->src[i])])
            return x->src[i];
    return NULL;
}

/* Several sums of products in lanes add their terms: those that multiply by the same number follow
 * each other, for it takes a register from the first to the last of them (6 numbers, 2 vectors and
 * 12 sums are more than 16).
 *
 *     s0 += v0 x0, s1 += v0 x1, s2 += v1 x0, s3 += v1 x1
 *         ->  s0 += v0 x0, s2 += v1 x0, s1 += v0 x1, s3 += v1 x1 */
static void by_factor(const Lin *q, int *group, int n)
{
    for (int i = 0; i < n && q->l->tile->lane && !q->l->items;) {
        const Node *factor = factor_in_lanes(q, q->order[group[i++]]);
        for (int j = i; factor && j < n; j++) {
            const int sum = group[j];
            if (factor_in_lanes(q, q->order[sum]) != factor)
                continue;
            memmove(&group[i + 1], &group[i], (size_t)(j - i) * sizeof *group);
            group[i++] = sum;
        }
    }
}

static void emit_ends(Lin *q, int *group, int n, bool begun, int depth)
{
    const Node *first = q->order[group[0]];
    if (is_loop(q->l, first) && !is_products(q->l, first))
        by_factor(q, group, n);
    for (int i = 0; i < n; i++)
        emit_end(q, q->order[group[i]], begun, depth);
}

/* All reduces over the same loops that can run now. */
static void emit_reduce(Lin *q, int first, uint64_t open, uint64_t must, const bool *needed,
                        int depth)
{
    Node *t = q->order[first];
    int group[256], n = 0;
    int nloop;
    Node *const *loop = loops_of(q->l, t, &nloop);
    const bool alone = !nloop && !(q->l->tile->quad && is_products(q->l, t));
    const int most = alone ? 1 : in_turn(q, t) ? SUMS_IN_TURN : 256;
    for (int i = first; i < q->n && n < most; i++) {
        Node *r = q->order[i];
        if (!q->done[i] && same_loops(q, t, r) && lin_fits(q, i, open, must) &&
            (!needed || needed[i]))
            group[n++] = i;
    }
    for (int i = 0; i < n; i++)
        lin_done(q, group[i], open);
    Arena *a = arena_new();
    const bool *inside = lin_needed_by(q, a, group, n, group[n - 1]);
    const bool dots = terms_each(q, group, n, true) > 1;
    const int each = terms_each(q, group, n, dots),
              blocks = each > 1 ? 1 : blocks_each(q, group, n);
    if (n > 1)
        emit_invariants(q, group, n, open, must, inside, depth);
    bool sum = is_loop(q->l, t);
    if (sum && nloop && loop[0] == q->l->tile->ahead_of)
        q->nwaited = q->nunder_way; /* the loop waits for its copies, and so for all before them */
    lin_wait_for_copies(q, inside, depth);
    for (int i = 0; i < n && sum; i++)
        lin_add_sum(q, q->order[group[i]], depth);
    uint64_t inner = open, own = 0;
    const bool boxes = is_fill(t) && store_form(q->l, t->src[0], false) == STORE_BOX;
    const bool begun = is_fill(t) && !is_fill_ahead(q->l, t) && !boxes && lin_is_under_way(q, t);
    const bool together = is_fill(t) && q->l->tile->items && !is_fill_ahead(q->l, t) && !boxes;
    const bool rows =
        sum && nloop && tile_rows_in_place(q->l->tile) && loop[0] == q->l->tile->along;
    if (together)
        barrier(q, t, depth);
    for (int j = 0; j < nloop; j++) {
        lin_add(q, STMT_LOOP, loop[j], depth + j);
        own |= lin_bit(loop[j]);
        inner |= lin_bit(loop[j]);
        if (sum && loop[j] == q->l->tile->ahead_of)
            emit_fill(q, inner, depth + j + 1);
        if (each > 1 && j == nloop - 1)
            emit_terms(q, group, n, dots, inner, own, depth + nloop);
        else if (blocks > 1 && j == nloop - 1)
            emit_blocks(q, group, n, blocks, inner, own, depth + nloop);
        else
            lin_emit(q, inner, own, inside, depth + j + 1);
        /* not in a sum that stands before the loop asked for */
        for (int i = 0; i < q->nahead && sum; i++)
            if (loop[j] == q->ahead_in[i] && !(q->set[lin_position(q, q->ahead[i])] & ~inner))
                lin_add(q, STMT_PREFETCH, q->ahead[i], depth + j + 1);
    }
    if (rows)
        lin_add_block_of_rows(q, group, n, inner, own, depth + nloop);
    else if (is_products(q->l, t) && !nloop && !alone)
        lin_add_products_of_rows(q, group, n, open, must, depth);
    else if (is_products(q->l, t))
        lin_add_products(q, group, n, depth + nloop);
    if (!sum || (each == 1 && blocks == 1))
        emit_ends(q, group, n, begun, depth + nloop);
    for (int j = nloop; j-- > 0;)
        lin_add(q, STMT_END, loop[j], depth + j);
    if (is_products(q->l, t) && !rows)
        lin_products_done(q, depth);
    if (is_products(q->l, t) && !q->l->tile->tc->lanes)
        emit_fragments(q, group, n, open, must, needed, depth);
    if (begun)
        lin_begin_copies(q, t, depth);
    else if (together && !q->one_wait) {
        barrier(q, NULL, depth);
        q->l->stmt[q->l->n - 1].meets = lin_is_for_ranks(q, t);
    }
    /* what stood in these loops ended with them: others over the same ranges have their own */
    lin_forget(q, own);
    arena_free(a);
}

static bool is_ahead(const Lin *q, const Node *n)
{
    for (int i = 0; i < q->nahead; i++)
        if (q->ahead[i] == n)
            return true;
    return false;
}

/* Places that are filled together with this one; false: there are no others. */
static bool emit_ready_fills(Lin *q, int first, uint64_t open, const bool *needed, int depth)
{
    Arena *a = arena_new();
    int *fill = NEWN(a, int, q->n);
    const int n = q->one_wait ? 0 : lin_ready_fills(q, first, open, needed, fill);
    if (n > 1) {
        q->one_wait = true;
        emit_some(q, open, 0, lin_needed_by(q, a, fill, n, fill[n - 1]), false, depth);
        q->one_wait = false;
        barrier(q, NULL, depth);
        q->l->stmt[q->l->n - 1].meets = lin_is_for_ranks(q, q->order[first]);
    }
    arena_free(a);
    return n > 1;
}

/* before: only what reads no place. */
static void emit_some(Lin *q, uint64_t open, uint64_t must, const bool *needed, bool before,
                      int depth)
{
    for (int i = 0; i < q->n; i++) {
        Node *t = q->order[i];
        if ((before && (q->reads[i] || q->of_one[i] || t->op == OP_STORE)) || q->done[i] ||
            is_plain(t) || !lin_fits(q, i, open, must) || (needed && !needed[i]) ||
            is_operand(q, i) || is_late(q, i) || is_ahead(q, t) || is_fill_ahead(q->l, t))
            continue;
        if (t->op == OP_STORE) {
            lin_done(q, i, open);
            if (is_result(q, t)) /* those of a place come with its loops */
                lin_add(q, STMT_STORE, t, depth);
        } else if (is_loop(q->l, t) ||
                   (is_fill(t) && !emit_ready_fills(q, i, open, needed, depth))) {
            emit_reduce(q, i, open, must, needed, depth);
        } else if (t->op == OP_SCAN) {
            lin_done(q, i, open);
            lin_add(q, STMT_UPDATE, t, depth);
        } else if (!is_fill(t)) {
            lin_done(q, i, open);
            emit_let(q, i, depth);
        }
    }
}

/* What is loaded for results stands before the items of a group first wait for each other. */
static void emit_early(Lin *q, uint64_t open, int depth)
{
    Arena *a = arena_new();
    int *load = NEWN(a, int, q->n), n = 0;
    for (int i = 0; i < q->n; i++)
        if (q->early[i] && !q->inlined[i] && !q->done[i] && lin_fits(q, i, open, 0))
            load[n++] = i;
    if (n)
        emit_some(q, open, 0, lin_needed_by(q, a, load, n, load[n - 1]), true, depth);
    arena_free(a);
}

/* Of sums that items share, whose terms are none of them: how many are to be stored yet. */
static int fills_left(const Lin *q)
{
    int n = 0;
    for (int i = 0; i < q->n && q->l->tile->across; i++)
        n += is_fill(q->order[i]) && !q->done[i] && !q->reads[i];
    return n;
}

/* Where there are several, the items wait for each other once, and what they add up is under way
 * together. */
static void emit_fills(Lin *q, uint64_t open, uint64_t must, const bool *needed, int depth)
{
    const int n = fills_left(q);
    if (n < 2)
        return;
    q->one_wait = true;
    emit_some(q, open, must, needed, true, depth);
    q->one_wait = false;
    if (fills_left(q) < n)
        barrier(q, NULL, depth);
}

/* Places that fragments are loaded from are filled together, before any of it is. */
void lin_emit(Lin *q, uint64_t open, uint64_t must, const bool *needed, int depth)
{
    if (q->l->tile->tc && q->l->tile->tc->lanes)
        emit_some(q, open, must, needed, true, depth);
    else if (!depth) {
        emit_early(q, open, depth);
        emit_fills(q, open, must, needed, depth);
    }
    emit_some(q, open, must, needed, false, depth);
}

/* The rest of a row, beside its vectors. */
static void emit_tail(Lin *q, uint64_t open, int depth)
{
    Node *range = q->l->tile->tail.range;
    if (range)
        lin_add(q, STMT_LOOP, range, depth);
    lin_emit(q, range ? open | lin_bit(range) : open, 0, NULL, depth + (range != NULL));
    if (range)
        lin_add(q, STMT_END, range, depth);
}

/* The extents that the loop over fused axes is written with. */
static void fuse_extents(Linear *l, Context *c)
{
    const Tile *tile = l->tile;
    l->fused = tile->fused ? idx(c, 1) : NULL;
    l->inner = NEWN(l->arena, Node *, tile->fused + 1);
    for (int i = tile->fused; i-- > 0;) {
        l->inner[i] = l->fused;
        l->fused = idx_mul(c, tile->axis[tile->uncut + i].range->src[0], l->fused);
    }
}

/* The states of reduces, in the order of the graph: what follows on each value, and all of the
 * values. */
static int find_states(Lin *q, Node **out, int max)
{
    int n, count = 0;
    Node **order = graph_toposort(q->l->arena, q->nroot, q->root, &n);
    for (int i = 0; i < n; i++) {
        Node *t = state_of(q, order[i]) ? state_of(q, order[i]) : order[i], *next[MAX_STATE];
        const bool plain = !has_siblings(q, t);
        bool known = plain && t == order[i];
        for (int j = 0; j < count && !known; j++)
            known = out[j] == t;
        if (known)
            continue;
        int size = plain ? 1 : reduce_values(t);
        if (count + 2 * size > max)
            BUG("a kernel with more than %d values of states", max / 2);
        if (plain) {
            out[count++] = t;
            continue;
        }
        reduce_step(q->c, t, next);
        for (int j = 0; j < size; j++) {
            out[count + j] = next[j];
            out[count + size + j] = reduce_sibling(q->c, t, j);
        }
        count += 2 * size;
    }
    return count;
}

/* The roots, and their nodes in order: what stands in a sum's loop is known before the sum, states'
 * values before both. Gives the number of the latter, which are first in *known. */
static int find_order(Lin *q, const Kernel *k, Node ***known)
{
    enum { MAX_STATES = 512 };
    Linear *l = q->l;
    const Tile *tile = l->tile;
    Node **stores = NEWN(l->arena, Node *, l->n + tile->fused + 1 + MOST_PREFETCHED * MAX_PREFETCH);
    for (int i = 0; i < l->n; i++)
        stores[i] = l->stmt[i].node;
    q->root = stores;
    q->nroot = q->nstore = l->n;
    l->n = 0;
    if (l->fused)
        stores[q->nroot++] = l->fused;
    for (int i = 0; i < tile->fused; i++)
        stores[q->nroot++] = l->inner[i];
    q->nahead = prefetch_loads(l->arena, k, tile, q->nstore, stores, q->ahead, q->ahead_in);
    for (int i = 0; i < q->nahead; i++)
        stores[q->nroot++] = q->ahead[i];
    Node **first = NEWN(l->arena, Node *, MAX_STATES + q->nroot + q->nahead);
    int nstate = find_states(q, first, MAX_STATES), nfirst = nstate;
    for (int i = 0; i < q->nahead; i++)
        first[nfirst++] = q->ahead[i];
    memcpy((void *)(first + nfirst), (void *)stores, (size_t)q->nroot * sizeof *stores);
    q->order = graph_toposort(l->arena, nfirst + q->nroot, first, &q->n);
    for (int i = 0; i < q->n; i++)
        map_put(&q->at, (uint64_t)q->order[i]->id + 1, (void *)(uintptr_t)(i + 1));
    *known = first;
    return nstate;
}

/* What is known of the nodes: what they depend on, how often they are read, and where they are
 * written. */
static void find_tables(Lin *q, int nstate, Node *const *state)
{
    Arena *a = q->l->arena;
    const Tile *tile = q->l->tile;
    q->set = NEWN(a, uint64_t, q->n);
    q->body = NEWN(a, uint64_t, q->n);
    q->uses = NEWN(a, int, q->n);
    q->done = NEWN(a, bool, q->n);
    q->inlined = NEWN(a, bool, q->n);
    q->vector = NEWN(a, bool, q->n);
    q->reads = NEWN(a, bool, q->n);
    q->early = NEWN(a, bool, q->n);
    q->of_one = NEWN(a, bool, q->n);
    q->base = NEWN(a, bool, q->n);
    q->four = NEWN(a, bool, q->n);
    q->fragment = NEWN(a, uint8_t, q->n);
    for (int i = 0; i < tile->naxis; i++) {
        q->out |= lin_bit(tile->axis[i].range);
        if (i < tile->naxis - tile->tail_beside)
            q->tail |= lin_bit(tile->axis[i].range);
    }
    if (tile->tail.range)
        q->tail |= lin_bit(tile->tail.range);
    lin_find_sets(q);
    if (tile->tc && tile->tc->lanes && !tile->along)
        lin_find_results(q);
    lin_find_kept(q);
    for (int i = 0; i < nstate; i++)
        q->uses[lin_position(q, state[i])]++;
    lin_find_unused(q);
    lin_find_inlined(q);
}

/* The loops over outputs, and in each what is known there and not before. */
static void emit_tile(Lin *q)
{
    const Tile *tile = q->l->tile;
    const int last = tile->uncut + tile->fused - 1; /* of the axes that have one loop */
    uint64_t open = 0;
    int depth = 0;
    for (int i = tile->naxis; i-- > 0;)
        if (lin_is_item(q->l, &tile->axis[i]))
            lin_add(q, STMT_ITEM, tile->axis[i].range, 0);
    if (tile->parts && !tile->fused)
        lin_add(q, STMT_PARTS, NULL, depth++);
    lin_emit(q, open, 0, NULL, depth);
    for (int i = 0; i < tile->naxis; i++) {
        const bool fused = i >= tile->uncut && i <= last;
        if (fused && i == tile->uncut)
            lin_add(q, STMT_PARTS, NULL, depth++);
        open |= lin_bit(tile->axis[i].range);
        for (int j = 0; j < q->n && tile->axis[i].scanned; j++)
            if (q->order[j]->op == OP_SCAN)
                lin_add(q, STMT_ACC, q->order[j], depth);
        if (!fused && !lin_is_item(q->l, &tile->axis[i]))
            lin_add(q, STMT_LOOP, tile->axis[i].range, depth++);
        if (!fused || i == last)
            lin_emit(q, open, 0, NULL, depth);
    }
    if (tile->ntail && !tile->tail_beside)
        emit_tail(q, open, depth);
    for (int i = tile->naxis; i-- > 0;) {
        const bool fused = i >= tile->uncut && i <= last;
        if (fused ? i == tile->uncut : !lin_is_item(q->l, &tile->axis[i]))
            lin_add(q, STMT_END, fused ? NULL : tile->axis[i].range, --depth);
        open &= ~lin_bit(tile->axis[i].range);
        for (int j = 0; j < q->n; j++)
            if (q->kept[j] && q->within[j] & ~open)
                q->done[j] = false;
        if (tile->ntail && tile->tail_beside && i == tile->naxis - 1)
            emit_tail(q, open, depth);
    }
    if (tile->parts && !tile->fused)
        lin_add(q, STMT_END, NULL, --depth);
}

/* What renderers and the interpreter ask of a node, by its id. */
static void tell_nodes(const Lin *q)
{
    Linear *l = q->l;
    const Tile *tile = l->tile;
    l->counted = NEWN(l->arena, bool, tile->fused + 1);
    for (int i = 0; i < tile->fused; i++) {
        int p = lin_position(q, tile->axis[tile->uncut + i].range);
        l->counted[i] = p >= 0 && q->uses[p] > 0;
    }
    l->nknown = q->c->nnode;
    l->named = NEWN(l->arena, bool, l->nknown);
    l->vector = NEWN(l->arena, bool, l->nknown);
    l->four = NEWN(l->arena, bool, l->nknown);
    l->fragment = NEWN(l->arena, uint8_t, l->nknown);
    for (int i = 0; i < q->n; i++) {
        Node *t = q->order[i];
        l->named[t->id] = !q->inlined[i] && !is_plain(t) && t->op != OP_STORE && !is_fill(t);
        l->vector[t->id] = q->vector[i];
        l->four[t->id] = q->four[i];
        l->fragment[t->id] = q->fragment[i];
        if (t->dtype == INGOT_INDEX && (t->lo < INT32_MIN || t->hi > INT32_MAX))
            l->wide = true;
    }
}

static void emit_statements(Linear *l, const Kernel *k)
{
    Lin q = {.c = k->c, .k = k, .l = l};
    Node **known;
    const int nstate = find_order(&q, k, &known);
    find_tables(&q, nstate, known);
    emit_tile(&q);
    tell_nodes(&q);
    map_free(&q.at);
}

bool linearize(Linear *l, const Kernel *k)
{
    int nstore;
    Node **store = stores_of(l, l->arena, &nstore);
    fuse_extents(l, k->c);
    emit_statements(l, k);
    if (l->splits_differ) {
        l->one_split = true;
        set_stores(l, nstore, store);
        emit_statements(l, k);
    }
    return true;
}
