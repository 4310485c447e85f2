/* linearize_empty.c - what may leave a loop that may have no iteration.
 *
 *     for (r = 0; r < N % 8; r++)
 *         y[N/8*8 + r] *= s[(N/8*8 + r) / 16];
 *
 * (r < 8, so this is s[N/16], which moves with no loop.)
 *
 * A value stands outside of the loops that it does not move with.  That is good for what can be
 * computed for nothing, and for a load of what is there in any case; but s[N/16] is there only if
 * the loop has an iteration, and behind the end of s if N is 32. What a loop shows, its coordinates
 * need not show any more.
 *
 * So there is one rule: where a load stands, some statement that wants its value stands too, or is
 * behind no more loops than such as have an iteration; unless its address is proved to lie in the
 * buffer wherever the counters that it moves with have values.  (Not of a buffer that the kernel
 * writes too: of a concat, a part that is empty may lie where nobody has written yet.)  Readers in
 * several loops, each of which may be empty, load for themselves.
 *
 * A sum leaves loops that it does not move with as a whole, and so does what fills a place.  A sum
 * wants its terms where it adds them, and where somebody wants the sum:
 *
 *     for (i = 0; i < 3 * N; i++)    s = the sum of x[r, i % N], where N is 0 or 1: of x[r, 0],
 *         y[i] = s                   which is not there if N is 0, however many r there are
 *
 * Divisions by 0 give 0 (docs/numerics.md), and checks are steps of the plan: nothing else of a
 * loop nest can fail.  linear_verify() proves the rule for statements, whoever has made them. */
#include <string.h>

#include "linearize.h"

bool linear_may_be_empty(const Node *range)
{
    return range->op == OP_RANGE && range->src[0]->lo < 1;
}

/* The address of the last element, or one before it; NULL: the layout does not tell it. */
static Node *last_element(Context *c, const KernelArg *arg)
{
    Node *last[INGOT_MAX_RANK];
    bool fixed = true;
    for (int i = 0; i < arg->rank; i++) {
        last[i] = idx_sub(c, arg->dims[i], idx(c, 1));
        fixed &= idx_value(arg->dims[i], NULL);
    }
    if (fixed)
        return idx(c, layout_elements(&arg->layout, arg->rank, arg->dims) - 1);
    for (int i = 0; i < arg->layout.n; i++) /* of blocks the last one may be short */
        if (arg->layout.op[i].kind == LAYOUT_SPLIT || arg->layout.op[i].kind == LAYOUT_CUT)
            return NULL;
    return layout_offset(c, &arg->layout, arg->rank, arg->dims, last);
}

/* Lanes lie in a row, or apart by a step: with the first and the last one all are there. */
static bool lies_within(Context *c, const Tile *t, Node *at, int64_t count, Node *last)
{
    Node *lane = t->lane, *end = at;
    int64_t step;
    if (t->part && depends_on(at, lane)) {
        Node *first = idx(c, 0), *part = idx(c, t->part - 1);
        if (!range_stride(c, at, lane, &step))
            return false;
        end = substitute(c, at, 1, &lane, step > 0 ? &part : &first);
        at = substitute(c, at, 1, &lane, step > 0 ? &first : &part);
    }
    return node_is_const_i(idx_le(c, idx(c, 0), at), 1) &&
           node_is_const_i(idx_le(c, idx_add(c, end, idx(c, count - 1)), last), 1);
}

/* Is an element that the gate lets through in the buffer? */
static bool gate_keeps_within(Context *c, Node *gate, Node *at, Node *last)
{
    if (gate->op == OP_CONST)
        return false;
    return node_is_const_i(simplify_given(c, idx_le(c, idx(c, 0), at), gate), 1) &&
           node_is_const_i(simplify_given(c, idx_le(c, at, last), gate), 1);
}

bool linear_is_within(const Kernel *k, const Tile *t, const Node *load, int64_t count)
{
    const KernelArg *arg = &k->args[linear_buffer(load)->arg.i];
    Node *last = arg->written ? NULL : last_element(k->c, arg);
    if (is_rows(load))
        count += load->src[3]->hi - 1;
    if (!last)
        return false;
    Node *at = load->src[first_coord(load)];
    return lies_within(k->c, t, at, count, last) ||
           (load->op == OP_LOAD && count == 1 && gate_keeps_within(k->c, load->src[1], at, last));
}

/* A size that nothing else can be shown by is never shown. */
static uint64_t size_bit(Sizes *s, Node *size)
{
    int i = 0;
    while (i < s->n && s->size[i] != size)
        i++;
    if (i == s->n && i < MOST_SIZES - 1)
        s->size[s->n++] = size;
    return UINT64_C(1) << i;
}

static uint64_t sizes_needed(Sizes *s, Node *extent)
{
    if (extent->lo >= 1)
        return 0;
    if (extent->op == OP_MUL)
        return sizes_needed(s, extent->src[0]) | sizes_needed(s, extent->src[1]);
    return size_bit(s, extent);
}

/* If that is above 0, so are other sizes: those that it is a share, or the rest, of. */
static uint64_t sizes_shown_by(Sizes *s, Node *extent)
{
    Node *of = extent->nsrc ? extent->src[0] : NULL;
    uint64_t shown = sizes_needed(s, extent);
    if (extent->op == OP_MUL || extent->op == OP_MIN)
        shown |= sizes_shown_by(s, of) | sizes_shown_by(s, extent->src[1]);
    else if ((extent->op == OP_FLOORDIV || extent->op == OP_MOD) && of->lo >= 0 &&
             extent->src[1]->lo >= 1)
        shown |= sizes_shown_by(s, of);
    return shown;
}

static void find_row(const Tile *t, Sizes *s)
{
    Node *end = t->tail.range, *vectors = t->tail_beside ? t->axis[t->naxis - 1].range : NULL;
    if (!end || !vectors || !linear_may_be_empty(end) || !linear_may_be_empty(vectors))
        return;
    Node *share = vectors->src[0], *rest = end->src[0];
    if (share->op != OP_FLOORDIV || rest->op != OP_MOD || share->src[0] != rest->src[0] ||
        share->src[1] != rest->src[1])
        return;
    s->vectors = sizes_needed(s, share);
    s->end = sizes_needed(s, rest);
    s->row = sizes_needed(s, share->src[0]);
}

void linear_find_sizes(const Tile *t, Sizes *s)
{
    const TileAxis *const all[] = {t->axis, t->reduce, t->fill, &t->tail};
    const int count[] = {t->naxis, t->nreduce, t->nfill, t->tail.range != NULL};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < count[i]; j++) {
            Node *r = all[i][j].range;
            if (!linear_may_be_empty(r))
                continue;
            s->needs[r->arg.i] = sizes_needed(s, r->src[0]);
            s->shows[r->arg.i] = sizes_shown_by(s, r->src[0]) & ~(UINT64_C(1) << (MOST_SIZES - 1));
        }
    find_row(t, s);
}

/* What these loops need. */
static uint64_t needs(const Sizes *s, uint64_t loops)
{
    uint64_t all = 0;
    for (int i = 0; loops; loops >>= 1, i++)
        all |= loops & 1 ? s->needs[i] : 0;
    return all;
}

/* Of a row both loops want it: then one of them has an iteration if the row has an element. */
static bool both_want(const Sizes *s, const LoopSets *sum, uint64_t set)
{
    return s->row && (set & s->vectors) == s->vectors &&
           is_wanted_in(sum, (set & ~s->vectors) | s->end);
}

LoopSets linear_want_terms(Arena *a, const Sizes *s, const LoopSets *sum, uint64_t around)
{
    LoopSets terms = {0};
    for (int i = 0; i < sum->n; i++) {
        want_in(a, &terms, sum->set[i] | around);
        if (both_want(s, sum, sum->set[i]))
            want_in(a, &terms, (sum->set[i] & ~s->vectors) | s->row | around);
    }
    return terms;
}

/* All loops that may have no iteration; work items are none: which there is none of does
 * nothing. */
static uint64_t find_empty(const Lin *q)
{
    const Tile *t = q->l->tile;
    const TileAxis *const all[] = {t->axis, t->reduce, t->fill, &t->tail};
    const int count[] = {t->naxis, t->nreduce, t->nfill, t->tail.range != NULL};
    uint64_t some = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < count[i]; j++)
            if (linear_may_be_empty(all[i][j].range) && (i || !lin_is_item(q->l, &all[i][j])))
                some |= lin_bit(all[i][j].range);
    return some;
}

/* The loops that what a node is made of stands in: a sum, or what fills a place, has its own
 * ones. */
static uint64_t loops_around(const Lin *q, int i)
{
    int nloop;
    Node *t = q->order[i], *const *loop = loops_of(q->l, t, &nloop);
    uint64_t set = q->set[i];
    for (int j = 0; j < nloop; j++)
        set |= loop[j]->op == OP_RANGE ? lin_bit(loop[j]) : 0;
    return set;
}

/* What wants a node wants what it is made of. False: that was known. */
static bool want_sources(Lin *q, int i, uint64_t empty, LoopSets *wanted)
{
    Arena *a = q->l->arena;
    Node *t = q->order[i], *next[MAX_STATE];
    const int size = t->op == OP_REDUCE ? (int)reduce_size(t) : 1;
    LoopSets by = wanted[i];
    bool more = false;
    if (size > 1)
        reduce_step(q->c, t, next);
    if (is_loop(q->l, t) || is_fill(t))
        by = linear_want_terms(a, &q->sizes, &wanted[i],
                               needs(&q->sizes, loops_around(q, i) & empty));
    for (int w = 0; w < by.n; w++) {
        for (uint32_t j = 0; j < t->nsrc; j++)
            more |= want_in(a, &wanted[lin_position(q, t->src[j])], by.set[w]);
        for (int j = 0; size > 1 && j < reduce_values(t); j++)
            more |= want_in(a, &wanted[lin_position(q, next[j])], by.set[w]);
    }
    for (int w = 0; size > 1 && w < wanted[i].n; w++)
        for (int j = 0; j < reduce_values(t); j++)
            more |=
                want_in(a, &wanted[lin_position(q, reduce_sibling(q->c, t, j))], wanted[i].set[w]);
    return more;
}

/* For each node, by position: in which loops that may have no iteration its value is wanted, by one
 * or another of its readers.  Of a state's values each may read the others: what wants one wants
 * all. */
static LoopSets *find_wanted(Lin *q, uint64_t empty)
{
    Arena *a = q->l->arena;
    LoopSets *wanted = NEWN(a, LoopSets, q->n);
    for (int i = 0; i < q->nroot; i++) {
        const bool rest = q->l->tile->ntail && i >= q->l->tile->ntail;
        const uint64_t set = i >= q->nstore ? 0 : rest ? q->tail : q->out;
        want_in(a, &wanted[lin_position(q, q->root[i])], needs(&q->sizes, set & empty));
    }
    for (bool more = true; more;) {
        more = false;
        for (int i = q->n; i-- > 0;)
            more |= q->order[i]->op != OP_PARAM && want_sources(q, i, empty, wanted);
    }
    return wanted;
}

/* How many elements a load brings from there on. */
static int64_t loaded_by(const Lin *q, const Node *load)
{
    int64_t most = 1;
    for (int i = 0; i < q->n; i++)
        if (q->order[i]->op == OP_STORE && q->order[i]->src[2] == load &&
            store_chunk(q->order[i]) > most)
            most = store_chunk(q->order[i]);
    return most;
}

/* What is made of a value that has to stay stays too, but a sum that has it in its own loops. */
static bool keeps(const Lin *q, const Node *t, int source)
{
    if (!q->kept[source] || !(is_loop(q->l, t) || is_fill(t)))
        return q->kept[source];
    const uint64_t around = loops_around(q, lin_position(q, t));
    return !is_wanted_in(&q->wanted[source], sizes_shown(&q->sizes, around));
}

void lin_find_kept(Lin *q)
{
    const uint64_t empty = find_empty(q);
    q->kept = NEWN(q->l->arena, bool, q->n);
    q->within = NEWN(q->l->arena, uint64_t, q->n);
    if (!empty)
        return;
    linear_find_sizes(q->l->tile, &q->sizes);
    q->wanted = find_wanted(q, empty);
    for (int i = 0; i < q->n; i++) {
        Node *t = q->order[i];
        if (!q->wanted[i].n || is_wanted_in(&q->wanted[i], 0))
            continue;
        for (uint32_t j = 0; j < t->nsrc && t->op != OP_PARAM; j++)
            q->kept[i] |= keeps(q, t, lin_position(q, t->src[j]));
        if (t->op == OP_LOAD && !q->kept[i])
            q->kept[i] = !linear_is_within(q->k, q->l->tile, t, loaded_by(q, t));
    }
}
