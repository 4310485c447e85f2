/* sum_blocks.c - sums of many floats are sums of blocks, in a graph that has derivatives.
 *
 *     sum over r < 768 of x[r] * w[r]
 *         -> sum over r.o < 6 of (sum over r.b < 128 of x[128 r.o + r.b] * w[128 r.o + r.b])
 *
 * Each term that is added to a running sum rounds it: the error grows with the square root of how
 * many there are, or, where terms are alike (a gradient over the rows of a batch), with their
 * number. In blocks it grows with the square root of a block and of their number.  A step that
 * learns has all of these errors in all of its weights, so it pays for one accumulator more of each
 * sum, outside of the innermost loop; inference does not.
 *
 * Products are added by as many as hide what a block costs; other sums are bound by what they
 * read. */
#include "lower.h"

enum { BLOCK_OF_PRODUCTS = 128, BLOCK_OF_TERMS = 32, MOST_RANGES = 40 };

static bool is_product(const Node *n)
{
    return n->op == OP_MUL || (n->op == OP_ADD && (is_product(n->src[0]) || is_product(n->src[1])));
}

static int64_t extent_of(const Node *range)
{
    return range->op == OP_RANGE && range->src[0]->op == OP_CONST ? range->hi + 1 : 0;
}

/* As few blocks as fit, of equal length where that takes no more than twice as many. */
static int64_t block_length(int64_t extent, int64_t most)
{
    for (int64_t n = most; 2 * n >= most; n--)
        if (extent % n == 0)
            return n;
    return most;
}

/* The loops that one becomes, the same for all sums of the loop nest. */
static const struct SumBlocks *blocks_of(Lower *q, Piece *p, Node *range, int64_t most)
{
    Context *c = q->c;
    for (int i = 0; i < p->nblocks; i++)
        if (p->blocks[i].of == range && p->blocks[i].most == most)
            return &p->blocks[i];
    const char *name = "r";
    for (int i = 0; i < p->t.nreduce; i++)
        if (p->t.reduce[i].range == range)
            name = p->t.reduce[i].name;
    const int64_t extent = extent_of(range), n = block_length(extent, most);
    struct SumBlocks b = {.of = range, .most = most};
    b.outer = range_new(c, p->next++, idx(c, (extent + n - 1) / n));
    Node *begin = idx_mul(c, b.outer, idx(c, n)),
         *left = extent % n ? idx_min(c, idx(c, n), idx_sub(c, idx(c, extent), begin)) : idx(c, n);
    b.inner = range_new(c, p->next++, left);
    b.at = idx_add(c, begin, b.inner);
    TileAxis outer = {.name = arena_printf(q->a, "%s.o", name), .range = b.outer},
             inner = {.name = arena_printf(q->a, "%s.b", name), .range = b.inner};
    vec_push(q->a, p->t.reduce, p->t.nreduce, outer);
    vec_push(q->a, p->t.reduce, p->t.nreduce, inner);
    vec_push(q->a, p->blocks, p->nblocks, b);
    return &p->blocks[p->nblocks - 1];
}

static bool is_in_blocks(const Lower *q, const Piece *p, Node *n, const Node *body)
{
    return q->c->sums_in_blocks && n->dtype == INGOT_F32 && reduce_monoid(n) == INGOT_REDUCE_ADD &&
           body->op != OP_REDUCE && !q->nest->items && !p->t.items && !p->t.tc && !p->t.four &&
           p->next + 2 < MOST_RANGES;
}

int lower_in_blocks(Lower *q, Piece *p, Node *n, Node **body, Node **range, int nrange)
{
    if (!nrange || !is_in_blocks(q, p, n, *body))
        return nrange;
    const int64_t most = is_product(*body) ? BLOCK_OF_PRODUCTS : BLOCK_OF_TERMS;
    int64_t inside = 1;
    int around = nrange;
    for (int64_t e = 0; around && (e = extent_of(range[around - 1])) && inside * e <= most;)
        inside *= range[--around]->hi + 1;
    if (!around)
        return nrange;
    Node **inner = NEWN(q->a, Node *, nrange + 1);
    int ninner = 0;
    if (inside * 4 < most && !tile_asks_at(&p->t, range[around - 1]) &&
        extent_of(range[around - 1]) > most / inside) {
        const struct SumBlocks *b = blocks_of(q, p, range[around - 1], most / inside);
        *body = substitute(q->c, *body, 1, &range[around - 1], (Node *const *)&b->at);
        range[around - 1] = b->outer;
        inner[ninner++] = b->inner;
    } else if (inside == 1) {
        return nrange;
    }
    for (int i = around; i < nrange; i++)
        inner[ninner++] = range[i];
    Node **src = NEWN(q->a, Node *, ninner + 1);
    src[0] = *body;
    for (int i = 0; i < ninner; i++)
        src[1 + i] = inner[i];
    *body = node_make(q->c, OP_REDUCE, n->dtype, reduce_arg(reduce_monoid(n), 0, 0), 1 + ninner,
                      src, 0, NULL);
    return around;
}
