/* join_sums.c - two sums over the same elements are one, of two results.
 *
 *     sum(u), sum(u v)      ->  s = sum over all of {u, u v},  s[0], s[1]
 *
 * Such are the gradients of a norm over all images and pixels of a channel, each of which read all
 * of them. Its statistics are such sums, too, if the second one does not wait for the mean: with a
 * number k near the channel's numbers, one of themselves,
 *
 *     sum(x), sum((x - mean)^2)   ->   s = sum of {x - k, (x - k)^2}
 *                                      sum(x) = s[0] + n k,  s[1] - s[0]^2 / n
 *
 * Done where a training step's bytes decide (ingot_set_rounded_results()); sums along the rows of a
 * tensor have these at hand anyway. */
#include "keys.h"
#include "rewrite.h"

/* A sum, perhaps of sums along one axis; `of` is what is summed. */
typedef struct {
    Node *sum, *of;
    unsigned axes, first;
} ChannelSum;

typedef struct {
    const ChannelSum *plain, *product;
    Node *other;    /* what the elements of the plain sum are multiplied by; NULL: by themselves */
    Node *both;     /* what became of them; NULL: not yet */
    Node *k, *fold; /* of a variance: the number near its own; n */
    bool square;    /* a variance's */
    bool left;      /* as they are */
} SumPair;

typedef struct {
    Context *c;
    Arena *a;
    ChannelSum *sum;
    int nsum;
    SumPair *pair;
    int npair;
    Map of;   /* id + 1 of a sum -> place in pair, + 1 */
    Map kept; /* id + 1 of what is made of them by channel, and read by all elements */
} JoinSums;

static bool is_sum(const Node *n)
{
    return n->op == OP_REDUCE && n->nsrc == 1 && n->dtype == INGOT_F32 &&
           reduce_monoid(n) == INGOT_REDUCE_ADD;
}

/* Over the first axis and others, with results behind it. */
static bool is_of_channels(const Node *of, unsigned axes)
{
    int64_t results = 1, size;
    for (int i = 0; i < of->rank; i++) {
        if (!idx_value(of->shape[i], &size))
            return false;
        results = sat_mul(results, axes >> i & 1 ? 1 : size);
    }
    return (axes & 1) && results > 1 && of->rank < INGOT_MAX_RANK;
}

static void find_channel_sums(JoinSums *q, int n, Node *const *nodes)
{
    bool *inner = NEWN(q->a, bool, q->c->nnode + 1);
    for (int i = n - 1; i >= 0; i--) {
        Node *t = nodes[i];
        if (!is_sum(t) || inner[t->id])
            continue;
        ChannelSum s = {.sum = t, .of = t->src[0], .axes = reduce_axes(t)};
        if (is_sum(s.of)) {
            inner[s.of->id] = true;
            s.first = reduce_axes(s.of);
            s.axes |= s.first;
            s.of = s.of->src[0];
        }
        if (is_of_channels(s.of, s.axes))
            vec_push(q->a, q->sum, q->nsum, s);
    }
}

/* The plain sum of these elements, over the same axes. */
static const ChannelSum *sum_of(const JoinSums *q, const Node *of, const ChannelSum *like)
{
    for (int i = 0; i < q->nsum; i++) {
        const ChannelSum *s = &q->sum[i];
        if (s->of == of && s->axes == like->axes && s->first == like->first)
            return s;
    }
    return NULL;
}

static bool needs(JoinSums *q, Node *t, const Node *other)
{
    int n;
    Node **order = graph_toposort(q->a, 1, &t, &n);
    for (int i = 0; i < n; i++)
        if (order[i] == other)
            return true;
    return false;
}

/* Of d = x - mean(x): the sum that the mean is made of. */
static const ChannelSum *sum_of_mean(const JoinSums *q, const Node *d, const ChannelSum *like,
                                     Node **found)
{
    if (d->op != OP_SUB)
        return NULL;
    const ChannelSum *s = sum_of(q, d->src[0], like);
    Node *mean = d->src[1];
    while (mean->op == OP_EXPAND || mean->op == OP_RESHAPE)
        mean = mean->src[0];
    if (!s || mean->op != OP_DIV || !uniform(mean->src[1]))
        return NULL;
    *found = mean;
    for (mean = mean->src[0]; mean->op == OP_RESHAPE;)
        mean = mean->src[0];
    return mean == s->sum ? s : NULL;
}

static void add_pair(JoinSums *q, SumPair p)
{
    const Node *end[2] = {p.plain->sum, p.product->sum};
    for (int i = 0; i < 2; i++)
        if (map_get(&q->of, (uint64_t)end[i]->id + 1))
            return;
    vec_push(q->a, q->pair, q->npair, p);
    for (int i = 0; i < 2; i++)
        map_put(&q->of, (uint64_t)end[i]->id + 1, (void *)(uintptr_t)q->npair);
}

static void find_sum_pairs(JoinSums *q)
{
    for (int i = 0; i < q->nsum; i++) {
        const ChannelSum *s = &q->sum[i], *plain;
        Node *product = s->of, *mean;
        if (product->op != OP_MUL)
            continue;
        if (product->src[0] == product->src[1] &&
            (plain = sum_of_mean(q, product->src[0], s, &mean))) {
            add_pair(q, (SumPair){.plain = plain, .product = s, .square = true});
            map_put(&q->kept, (uint64_t)mean->id + 1, q);
            continue;
        }
        for (int j = 0; j < 2; j++) {
            plain = sum_of(q, product->src[j], s);
            if (plain && !needs(q, product, plain->sum)) {
                add_pair(q, (SumPair){.plain = plain, .product = s, .other = product->src[1 - j]});
                break;
            }
        }
    }
}

/* The root of a variance, by which all elements are divided. */
static void find_roots(JoinSums *q, int n, Node *const *nodes)
{
    for (int i = 0; i < n; i++) {
        const Node *t = nodes[i]->op == OP_DIV ? nodes[i]->src[1] : nodes[i];
        if (t->op != OP_SQRT || (t != nodes[i] && !uniform(nodes[i]->src[0])))
            continue;
        t = t->src[0]->op == OP_ADD ? t->src[0]->src[0] : t->src[0];
        for (t = t->op == OP_DIV ? t->src[0] : t; t->op == OP_RESHAPE;)
            t = t->src[0];
        const int at = (int)(uintptr_t)map_get(&q->of, (uint64_t)t->id + 1);
        if (at && q->pair[at - 1].square && q->pair[at - 1].product->sum == t)
            map_put(&q->kept, (uint64_t)nodes[i]->id + 1, q);
    }
}

/* ---- what becomes of them -------------------------------------------------------------------- */

static Node *slice_at(Context *c, Node *x, int axis, int64_t at)
{
    return ingot_slice(c, x, axis, idx(c, at), idx(c, 1), 1);
}

/* The first element of each of the results. */
static Node *first_elements(Context *c, Node *x, unsigned axes)
{
    for (int i = 0; i < x->rank; i++)
        if (axes >> i & 1)
            x = slice_at(c, x, i, 0);
    return x;
}

/* With an axis of so many in front. */
static Node *in_front(Context *c, Node *x, int64_t n)
{
    Node *dims[INGOT_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i + 1] = x->shape[i];
    dims[0] = idx(c, 1);
    x = ingot_reshape(c, x, x->rank + 1, dims);
    dims[0] = idx(c, n);
    return ingot_expand(c, x, x->rank, dims);
}

static Node *both_sums(Context *c, const ChannelSum *s, Node *u, Node *uv)
{
    Node *first = in_front(c, u, 2), *second = in_front(c, uv, 2);
    Node *which = ingot_iota(c, first->rank, first->shape, 0);
    which = ingot_eq(c, which, ingot_like(c, which, 0));
    Node *all = ingot_where(c, which, first, second);
    if (s->first)
        all = ingot_reduce(c, INGOT_REDUCE_ADD, all, s->first << 1, true);
    return ingot_reduce(c, INGOT_REDUCE_ADD, all, (s->axes & ~s->first) << 1, true);
}

static Node *one_sum(Context *c, const SumPair *p, int64_t which)
{
    const Node *like = p->plain->sum;
    return ingot_reshape(c, slice_at(c, p->both, 0, which), like->rank, like->shape);
}

static void make_pair(Rewrite *r, SumPair *p)
{
    Context *c = r->c;
    Node *u = rewritten(r, p->plain->of), *v = p->other ? rewritten(r, p->other) : NULL;
    if (p->square) {
        int64_t n = 1, size;
        for (int i = 0; i < u->rank; i++)
            if (p->plain->axes >> i & 1 && idx_value(u->shape[i], &size))
                n = sat_mul(n, size);
        p->k = first_elements(c, u, p->plain->axes);
        u = ingot_sub(c, u, ingot_expand(c, p->k, u->rank, u->shape));
        v = u;
        p->fold = ingot_like(c, p->k, (double)n);
    }
    p->both = both_sums(c, p->plain, u, ingot_mul(c, u, v));
}

static Node *joined_sum(Rewrite *r, Node *n)
{
    JoinSums *q = r->user;
    Context *c = q->c;
    const int at = (int)(uintptr_t)map_get(&q->of, (uint64_t)r->visiting->id + 1);
    SumPair *p = at ? &q->pair[at - 1] : NULL;
    if (map_get(&q->kept, (uint64_t)r->visiting->id + 1))
        return ingot_contiguous(c, n);
    if (!p || p->left)
        return n;
    if (!p->both && p->other && !r->now[p->other->id]) {
        p->left = true; /* it comes later */
        return n;
    }
    if (!p->both)
        make_pair(r, p);
    const bool plain = r->visiting == p->plain->sum;
    Node *sum = one_sum(c, p, !plain);
    if (p->square && plain)
        return ingot_add(c, sum, ingot_mul(c, p->k, p->fold));
    if (!p->square)
        return sum;
    Node *first = one_sum(c, p, 0);
    sum = ingot_sub(c, sum, ingot_div(c, ingot_mul(c, first, first), p->fold));
    return ingot_max(c, sum, ingot_like(c, sum, 0));
}

bool join_sums(Context *c)
{
    if (!ingot_rounded_results(c))
        return false;
    JoinSums q = {.c = c, .a = arena_new()};
    int n;
    Node **nodes = graph_nodes(q.a, c, &n);
    find_channel_sums(&q, n, nodes);
    find_sum_pairs(&q);
    find_roots(&q, n, nodes);
    Rewrite r = {.c = c, .a = q.a, .apply = joined_sum, .user = &q};
    const bool any = q.npair && rewrite_pass(&r);
    map_free(&q.of);
    map_free(&q.kept);
    arena_free(q.a);
    return any;
}
