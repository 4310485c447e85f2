/* render_overlap.c - attention by warpgroups: what is made of a block's scores comes while the unit
 * multiplies the shares of the block before by its values.
 *
 *     for each block:        scores; shares; results          as statements are lowered
 *
 *     scores 0; shares 0                                      as they are written
 *     for each block n > 0:  scores n; results n - 1; shares n
 *     results of the last one
 *
 *     igrt_mma_a v201;                                what is kept for the next iteration
 *     int v209;
 *     for (int r1_o = 0; r1_o < 1; r1_o++) {
 *         igrt_filled(a7, r1_o, 3);
 *         ...
 *         v201 = v187;
 *         v209 = v36;
 *     }
 *     for (int r1_o = 1; r1_o < v0; r1_o++) {
 *         igrt_filled(a7, r1_o, 3);
 *         igrt_turn_take();                           where there are several warpgroups
 *         ...                                         asks for products: scores
 *         igrt_wgmma_commit();
 *         igrt_wgmma_fence();
 *         igrt_wgmma128_rows_f16<1>(&s34, v201, ...)  and for results, of the block before
 *         igrt_wgmma_commit();
 *         igrt_turn_pass(2);
 *         igrt_wgmma_until<1>(&s38, a7 + 6);          scores are there
 *         ...                                         shares
 *         igrt_wgmma_until<0>(&s34, a7 + 6);
 *         igrt_free(a7, r1_o, 3);
 *         igrt_wgmma_scale(&s34, v147, v185);
 *         v201 = v187;
 *         v209 = v36;
 *     }
 *
 * A third block is on its way meanwhile, so this takes three places (depth 3), which is how the
 * opts ask for it; and a loop that has an iteration in each run.  The statements that the
 * interpreter runs are those that were lowered: each block's results have the same terms in the
 * same order. [Shah et al., "FlashAttention-3", 2024: overlap within a warpgroup.] */
#include <string.h>

#include "kernel.h"
#include "render.h"

enum { MOST_KEPT = 64, DEPTH = 3 };

/* The loop over blocks, by statements. */
typedef struct {
    int loop, filled, scores, scale, results, release, end;
} BlockLoop;

static int find_kind(const Linear *l, int from, int to, StmtKind kind)
{
    while (from < to && l->stmt[from].kind != kind)
        from++;
    return from < to ? from : -1;
}

/* Is it the loop of attention's blocks: scores, what is made of them, results that go on? */
static bool find_loop(const Linear *l, BlockLoop *b)
{
    const Node *along = l->tile->along;
    int open = 0;
    for (b->loop = 0; b->loop < l->n; b->loop++)
        if (l->stmt[b->loop].kind == STMT_LOOP && l->stmt[b->loop].node == along)
            break;
    if (b->loop == l->n || l->stmt[b->loop].from || l->stmt[b->loop].zero)
        return false;
    const Node *blocks = l->stmt[b->loop].upto ? l->stmt[b->loop].upto : along->src[0];
    for (b->end = b->loop; b->end < l->n; b->end++) {
        open += l->stmt[b->end].kind == STMT_LOOP;
        open -= l->stmt[b->end].kind == STMT_END;
        if (!open)
            break;
        if (open > 1)
            return false;
    }
    b->filled = find_kind(l, b->loop, b->end, STMT_FILLED);
    b->scores = find_kind(l, b->loop, b->end, STMT_DONE);
    if (blocks->lo < 1 || b->filled < 0 || b->scores < b->filled)
        return false;
    b->scale = find_kind(l, b->scores + 1, b->end, STMT_SCALE);
    b->results = find_kind(l, b->scores + 1, b->end, STMT_DONE);
    b->release = find_kind(l, b->loop, b->end, STMT_RELEASE);
    return b->scale > 0 && b->results > b->scale && b->release == b->end - 1 &&
           b->release > b->results && find_kind(l, b->results + 1, b->end, STMT_DONE) < 0 &&
           find_kind(l, b->scale + 1, b->end, STMT_SCALE) < 0 &&
           reduce_size(l->stmt[b->scale].node) > 1;
}

/* What products of results read of a block: the shares, which are packed, and values, by places. */
static bool is_values(const Linear *l, const Stmt *s)
{
    return s->kind == STMT_LET && s->node->op == OP_LOAD && l->fragment[s->node->id];
}

static bool is_shares(const Stmt *s)
{
    return s->kind == STMT_LET && s->node->op == OP_PACK;
}

static bool keep(Node **kept, int *n, Node *value)
{
    for (int i = 0; i < *n; i++)
        if (kept[i] == value)
            return true;
    if (*n == MOST_KEPT)
        return false;
    kept[(*n)++] = value;
    return true;
}

/* Numbers with names of which an address of values is made, where they move from block to block;
 * false: it is made of the block's number itself. */
static bool keep_numbers(const Linear *l, Node *n, Node **kept, int *nkept)
{
    Node *along = l->tile->along;
    if (n == along)
        return false;
    if (!depends_on(n, along))
        return true;
    if (n->id < l->nknown && l->named[n->id])
        return keep(kept, nkept, n);
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (!keep_numbers(l, n->src[i], kept, nkept))
            return false;
    return true;
}

static bool keep_address(const Linear *l, const Node *values, Node **kept, int *nkept)
{
    for (uint32_t i = 1; i < values->nsrc; i++)
        if (!keep_numbers(l, values->src[i], kept, nkept))
            return false;
    return true;
}

/* The one sum of products of these statements, or NULL. */
static const Stmt *only_sum(const Linear *l, int from, int to)
{
    const Stmt *sum = NULL;
    for (int i = from; i < to; i++) {
        const Stmt *s = &l->stmt[i];
        if (s->kind != STMT_UPDATE || s->reduce != REDUCE_PRODUCTS)
            continue;
        if (sum && sum->node != s->node)
            return NULL;
        sum = s;
    }
    return sum;
}

static Stmt overlap(const Stmt *like, OverlapPart part)
{
    Stmt s = {.kind = STMT_OVERLAP, .count = (int)part, .depth = like->depth, .node = like->node};
    return s;
}

static int copies(Stmt *out, int n, const Stmt *s, int from, int to)
{
    memcpy(&out[n], &s[from], (size_t)(to - from) * sizeof *out);
    return n + to - from;
}

/* Shares as numbers, and what else a block leaves to the next one. */
static int shares(Stmt *out, int n, const Linear *l, const BlockLoop *b)
{
    for (int i = b->scores + 1; i < b->scale; i++)
        if (!is_values(l, &l->stmt[i]) && !is_shares(&l->stmt[i]))
            out[n++] = l->stmt[i];
    for (int i = b->results + 1; i < b->release; i++)
        out[n++] = l->stmt[i];
    return n;
}

/* They are packed and kept: behind products that read those of the block before, or ptxas lets no
 * products overlap. */
static int packed(Stmt *out, int n, const Linear *l, const BlockLoop *b)
{
    for (int i = b->scores + 1; i < b->scale; i++)
        if (is_shares(&l->stmt[i]))
            out[n++] = l->stmt[i];
    out[n++] = overlap(&l->stmt[b->filled], OVERLAP_KEEP);
    return n;
}

static bool reads(const Node *n, const Node *value)
{
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (n->src[i] == value || (n->src[i]->op == OP_CAST && reads(n->src[i], value)))
            return true;
    return false;
}

/* Results of the block that was kept: addresses of values where they are wanted. */
static int results(Stmt *out, int n, const Linear *l, const BlockLoop *b, int depth)
{
    for (int i = b->scale + 1; i < b->results; i++) {
        for (int j = b->scores + 1; j < b->scale; j++)
            if (is_values(l, &l->stmt[j]) && reads(l->stmt[i].term, l->stmt[j].node)) {
                out[n] = l->stmt[j];
                out[n++].depth = depth;
            }
        out[n] = l->stmt[i];
        out[n++].depth = depth;
    }
    return n;
}

static void overlap_blocks(Render *r)
{
    Linear *l = &r->l;
    BlockLoop b;
    Node *kept[MOST_KEPT];
    int nkept = 0, n;
    if (!tile_rows_in_place(l->tile) || l->tile->depth < DEPTH || !find_loop(l, &b))
        return;
    const Stmt *s = l->stmt, *scores = only_sum(l, b.loop, b.scores),
               *values = only_sum(l, b.scale, b.results);
    const bool stays = l->tile->stay > 0;
    if (!scores || !values)
        return;
    for (int i = b.scores + 1; i < b.results; i++) {
        Node *own = s[i].node;
        if ((is_shares(&s[i]) && !keep(kept, &nkept, own)) ||
            (is_values(l, &s[i]) && !keep_address(l, own, kept, &nkept)) ||
            (i > b.scale && s[i].kind != STMT_UPDATE))
            return;
    }
    r->overlapped = NEWN(r->arena, struct Overlapped, nkept);
    r->noverlapped = nkept;
    r->needs |= NEED_TURNS;
    for (int i = 0; i < nkept; i++)
        r->overlapped[i].value = kept[i];
    Stmt *out = NEWN(r->arena, Stmt, 4 * l->n);
    const int depth = s[b.filled].depth;
    n = copies(out, 0, s, 0, b.loop);
    out[n++] = overlap(&s[b.loop], OVERLAP_HOLD);
    out[n] = s[b.loop];
    out[n].from = idx(r->k->c, 0);
    out[n++].upto = idx(r->k->c, 1);
    n = copies(out, n, s, b.loop + 1, b.scores + 1);
    if (stays)
        out[n++] = overlap(scores, OVERLAP_ASKED);
    n = shares(out, n, l, &b);
    n = packed(out, n, l, &b);
    out[n++] = s[b.end];
    out[n] = s[b.loop];
    out[n++].from = idx(r->k->c, 1);
    n = copies(out, n, s, b.loop + 1, b.filled + 1);
    out[n++] = overlap(&s[b.filled], OVERLAP_TURN);
    n = copies(out, n, s, b.filled + 1, b.scores);
    out[n++] = overlap(&s[b.filled], OVERLAP_NEXT);
    n = results(out, n, l, &b, depth);
    out[n++] = overlap(scores, OVERLAP_SCORES);
    if (stays)
        out[n++] = overlap(scores, OVERLAP_ASKED);
    n = shares(out, n, l, &b);
    out[n++] = overlap(values, OVERLAP_RESULTS);
    out[n++] = s[b.scale];
    n = packed(out, n, l, &b);
    out[n++] = s[b.end];
    out[n++] = overlap(&s[b.loop], OVERLAP_LAST);
    n = results(out, n, l, &b, s[b.loop].depth);
    out[n] = overlap(values, OVERLAP_WHOLE);
    out[n++].depth = s[b.loop].depth;
    n = copies(out, n, s, b.end + 1, l->n);
    l->stmt = out;
    l->n = n;
}

/* Groups that stay ask for the next block's queries where those of this one have been read: behind
 * its loop, if blocks do not overlap. */
void render_overlap(Render *r)
{
    Linear *l = &r->l;
    r->noverlapped = 0;
    overlap_blocks(r);
    if (r->noverlapped || !render_rows_stay(l->tile))
        return;
    int open = 0, loop = 0, end;
    while (l->stmt[loop].kind != STMT_LOOP || l->stmt[loop].node != l->tile->along)
        loop++;
    for (end = loop; end < l->n; end++) {
        open += l->stmt[end].kind == STMT_LOOP;
        open -= l->stmt[end].kind == STMT_END;
        if (!open)
            break;
    }
    Stmt *out = NEWN(r->arena, Stmt, l->n + 1);
    int n = copies(out, 0, l->stmt, 0, end + 1);
    out[n] = overlap(&l->stmt[loop], OVERLAP_READ);
    n = copies(out, n + 1, l->stmt, end + 1, l->n);
    l->stmt = out;
    l->n = n;
}
