/* render_across.c - what neighbours have of several sums, which one of them stores, is joined
 * together.
 *
 *     v1 = igrt_across_add_f32(s1, 32);        if (item < 1) a4[at] = v1;
 *     v2 = igrt_across_add_f32(s2, 32);        if (item < 1) a4[at + 1] = v2;
 *     v3 = ..
 *         ->
 *     v1 = igrt_across_beyond_add_f32(igrt_halves_add_f32(igrt_halves_add_f32(s1, s2, item, 1),
 *                                     igrt_halves_add_f32(s3, s4, item, 1), item, 2), 4, 32);
 *     if (item < 4) a4[at + item] = v1;
 *
 * Each exchange leaves an item half of its sums, of as many items more.  Each sum is the same, to
 * the bit: the same tree.  Of 8 sums of 32 items that is 9 exchanges instead of 40, of 32 sums 31
 * instead of 160. */
#include <stdlib.h>

#include "render.h"

enum { MOST = 32 };

/* The sum that a statement names, and where its store puts it. */
typedef struct {
    Node *sum, *store;
    int64_t way; /* from where the first one lies */
} AcrossSum;

static bool is_across(const Render *r, const Stmt *s)
{
    return s->kind == STMT_LET && s->node->op == OP_REDUCE && s->node->nsrc == 2 &&
           s->node->src[1] == r->l.tile->across && reduce_form(&r->l, s->node) == REDUCE_ACROSS;
}

/* So many statements name such sums, and as many behind them store these, and no others, in the
 * order of places that follow each other; 0: they do not. */
static int sums_of(Render *r, const Stmt *s, int left, AcrossSum *sum)
{
    int n = 0;
    while (n < left && n < MOST && is_across(r, s + n) && s[n].depth == s->depth &&
           s[n].node->arg.bits == s->node->arg.bits && s[n].node->dtype == s->node->dtype &&
           !is_named(r, s[n].node)) {
        sum[n].sum = s[n].node;
        n++;
    }
    if (n < 2 || 2 * n > left || (n & (n - 1)) || n > s->node->src[1]->hi + 1)
        return 0;
    const Node *first = s[n].node;
    for (int i = 0; i < n; i++) {
        const Stmt *to = s + n + i;
        Node *x = to->node;
        if (to->kind != STMT_STORE || to->store != STORE_ONE || to->depth != s->depth ||
            x->nsrc != 4 || x->src[0] != first->src[0] || x->src[1] != first->src[1] ||
            x->src[2] != sum[i].sum || x->dtype != x->src[2]->dtype ||
            !idx_value(idx_sub(r->k->c, x->src[3], first->src[3]), &sum[i].way))
            return 0;
        sum[i].store = x;
    }
    return n;
}

static int by_way(const void *a, const void *b)
{
    const AcrossSum *x = a, *y = b;
    return x->way < y->way ? -1 : x->way > y->way;
}

/* The only one that reads each of them is its store. */
static bool only_stored(const Render *r, const AcrossSum *sum, int n)
{
    Arena *a = arena_new();
    Node **all = NEWN(a, Node *, r->l.n + 1);
    int count = 0, number, uses = 0;
    for (int i = 0; i < r->l.n; i++)
        if (r->l.stmt[i].node)
            all[count++] = r->l.stmt[i].node;
    Node **order = graph_toposort(a, count, all, &number);
    for (int i = 0; i < number; i++)
        for (uint32_t j = 0; j < order[i]->nsrc; j++)
            for (int k = 0; k < n; k++)
                uses += order[i]->src[j] == sum[k].sum;
    arena_free(a);
    return uses == n;
}

/* The n-th part of what neighbours have of n sums: of the one that the item's number says. */
static void halves(Render *r, const AcrossSum *sum, int n, int depth)
{
    const Node *x = sum->sum;
    if (n == 1) {
        render_bare(r, x->src[0]);
        return;
    }
    sb_printf(r->sb, "igrt_halves_%s_%s(",
              op_info[monoid_op((ingot_reduce_op)reduce_monoid(x))].text,
              dtype_info[x->dtype].name);
    halves(r, sum, n / 2, depth);
    put(r, n > 2 ? ",\n" : ", "); /* a line for two of them */
    if (n > 2)
        render_indent(r, depth + 1);
    halves(r, sum + n / 2, n / 2, depth);
    put(r, ", ");
    render_bare(r, x->src[1]);
    sb_printf(r->sb, ", %d)", n / 2);
}

static bool needs(const Node *gate, const Node *condition)
{
    return gate == condition || (gate->op == OP_AND && (needs(gate->src[0], condition) ||
                                                        needs(gate->src[1], condition)));
}

int render_sums_across(Render *r, const Stmt *s, int left)
{
    AcrossSum sum[MOST];
    Context *c = r->k->c;
    Node *item = r->l.tile->across, *zero = idx(c, 0);
    const int n = item && r->lang->c && is_across(r, s) ? sums_of(r, s, left, sum) : 0;
    if (!n)
        return 0;
    qsort(sum, (size_t)n, sizeof *sum, by_way);
    const int64_t step = sum[1].way - sum[0].way;
    for (int i = 0; i < n; i++)
        if (sum[i].way != sum[0].way + i * step)
            return 0;
    Node *store = sum[0].store, *gate = store->src[1];
    if (step < 1 || !needs(gate, idx_lt(c, item, idx(c, 1))) || !only_stored(r, sum, n))
        return 0;
    Node *one = substitute(c, gate, 1, &item, &zero);
    const bool rest = n <= item->hi;
    const char *monoid = op_info[monoid_op((ingot_reduce_op)reduce_monoid(s->node))].text;
    r->needs |= NEED_ACROSS;
    render_indent(r, s->depth);
    r->number[sum->sum->id] = r->nvalue++;
    sb_printf(r->sb, "const %s v%d = ", r->lang->type(sum->sum->dtype, false),
              r->number[sum->sum->id]);
    if (rest)
        sb_printf(r->sb, "igrt_across_beyond_%s_%s(", monoid, dtype_info[s->node->dtype].name);
    halves(r, sum, n, s->depth);
    if (rest)
        sb_printf(r->sb, ", %d, %lld)", n, (long long)item->hi + 1);
    put(r, ";\n");
    Node *inside = rest ? idx_lt(c, item, idx(c, n)) : node_bool(c, true);
    Node *at = substitute(c, store->src[3], 1, &item, &zero);
    Stmt joint = s[n];
    joint.node = node_with_source(c, store, 1, node_alu2(c, OP_AND, INGOT_BOOL, inside, one));
    joint.node = node_with_source(c, joint.node, 3, idx_add(c, at, idx_mul(c, item, idx(c, step))));
    render_indent(r, s->depth);
    render_store(r, &joint);
    return 2 * n;
}
