/* lower_partial.c - sums that lie in a place, where loops over results run inside of the loop over
 * terms (PARTIAL).
 *
 * With `ORDER i0 r0 i1`, `PARTIAL r0 4` the sums of a row are begun, added to by four terms at a
 * time, and read:
 *
 *     for i0:  for i1: p[i1] = 0
 *              for r0.o: for i1: p[i1] = p[i1] + (x[i0, 4 r0.o, i1] + ... + x[i0, 4 r0.o + 3, i1])
 *              for i1: y[i0, i1] = p[i1] + what fills no block of four
 *
 * What begins and what adds are loops that fill a place as any others do, over ranges of their own:
 * copies (UPCAST) are loops there, and lanes stay lanes.  Blocks that have a loop of their own
 * (SPLIT, `PARTIAL r0.o 1`) are added to as many sums at a time as there are copies.  The second
 * store comes after the first loops, `STORE(AFTER(p, END), ...)`, and reads what they, or an
 * iteration before, have stored. */
#include <string.h>

#include "lower.h"

/* The axes along which the sums of a place lie, and where a result is along them. */
typedef struct {
    int *axis, n;
    bool loop; /* one of them has a loop here */
    Node **at; /* of those that run elsewhere now */
} SumAxes;

static const Split *partial_of(const Lower *q, const Node *n)
{
    for (int i = 0; i < q->nest->nsplit; i++)
        if (q->nest->split[i].kind == OPT_PARTIAL && lower_is_over(q, n, q->nest->split[i].axis))
            return &q->nest->split[i];
    return NULL;
}

bool lower_is_partial(const Lower *q, const Node *n)
{
    return partial_of(q, n) != NULL;
}

int lower_inner_loops(const Lower *q, const Piece *p, const Node *n, Node **range, int nrange)
{
    const Split *s = partial_of(q, n);
    int inside = 0;
    for (int i = 0; i < nrange; i++) {
        bool outside = false;
        for (int j = 0; s && j <= nest_position(q->nest, s->outer); j++)
            outside |= p->at[q->nest->order[j]] == range[i];
        if (!outside)
            range[inside++] = range[i];
    }
    return inside;
}

/* Loops over terms, outermost first. */
static int outer_loops(Lower *q, const Piece *p, const Node *n, const Split *s, Node **range)
{
    int count = 0;
    for (int i = 0; i <= nest_position(q->nest, s->outer); i++) {
        int axis = q->nest->order[i];
        if (lower_is_over(q, n, axis) && p->at[axis] && p->at[axis]->op == OP_RANGE)
            range[count++] = p->at[axis];
    }
    return count;
}

/* Loops over results in their order, copies, lanes. */
static SumAxes row_of(Lower *q, const Piece *p, Node *n, const Split *s)
{
    const Nest *nest = q->nest;
    SumAxes r = {.axis = NEWN(q->a, int, 2 * nest->naxis + 1),
                 .at = NEWN(q->a, Node *, 2 * nest->naxis + 1)};
    for (int i = nest_position(nest, s->outer) + 1; i < nest->norder; i++)
        if (p->at[nest->order[i]] && p->at[nest->order[i]]->op == OP_RANGE &&
            p->at[nest->order[i]] != p->t.lane)
            r.axis[r.n++] = nest->order[i];
    for (int i = 0; i < p->ncopies; i++)
        r.axis[r.n++] = p->copies[i].axis;
    for (int i = 0; i < nest->naxis; i++)
        if (p->t.lane && p->at[i] == p->t.lane)
            r.axis[r.n++] = i;
    int count = 0;
    for (int i = 0; i < r.n; i++) {
        const NestAxis *x = &nest->axis[r.axis[i]];
        if (x->reduced || place_extent(q, p, r.axis[i]) == 1 ||
            !depends_on(n, q->k->axes[x->root].range))
            continue;
        r.loop |= x->form == AXIS_LOOP;
        r.axis[count++] = r.axis[i];
    }
    r.n = count;
    return r;
}

/* Where a sum lies in its place, and how many there are. */
static Node *offset_in_row(Lower *q, const Piece *p, const SumAxes *r, int64_t *elements)
{
    Node *offset = idx(q->c, 0);
    *elements = 1;
    for (int i = 0; i < r->n; i++) {
        int64_t size = place_extent(q, p, r->axis[i]);
        offset = idx_add(q->c, idx_mul(q->c, offset, idx(q->c, size)), p->at[r->axis[i]]);
        *elements = sat_mul(*elements, size);
    }
    return offset;
}

/* How many there are along an axis; of a rest it may be the run that knows. */
static Node *extent_now(Lower *q, const Piece *p, int axis)
{
    Node *at = p->at[axis];
    return at->op == OP_RANGE ? at->src[0] : idx(q->c, place_extent(q, p, axis));
}

static bool is_copy(const Lower *q, const Piece *p, int axis)
{
    return q->nest->axis[axis].form != AXIS_LOOP && p->at[axis] != p->t.lane;
}

/* Loops over the row, by axis of the nest in `fresh`, added to loop. copies: these stay copies. */
static void enter_row(Lower *q, Piece *p, const SumAxes *r, Node **fresh, const char *suffix,
                      bool copies, Node **loop, int *nloop)
{
    for (int i = 0; i < r->n; i++) {
        int axis = r->axis[i];
        r->at[i] = p->at[axis];
        if (p->at[axis] == p->t.lane || (copies && is_copy(q, p, axis)))
            continue;
        if (!fresh[axis]) {
            TileAxis x = {.name = arena_printf(q->a, "%s.%s", q->nest->axis[axis].name, suffix)};
            x.range = fresh[axis] = range_new(q->c, p->next++, extent_now(q, p, axis));
            vec_push(q->a, p->t.fill, p->t.nfill, x);
        }
        loop[(*nloop)++] = p->at[axis] = fresh[axis];
    }
}

static void leave_row(Piece *p, const SumAxes *r)
{
    for (int i = 0; i < r->n; i++)
        p->at[r->axis[i]] = r->at[i];
}

/* The terms of a block, joined. */
static void terms_of_row(Lower *q, Piece *p, Node *n, const Env *e, const Split *s, Node **state)
{
    Env in = env_new(q, e);
    Node *part[MAX_STATE];
    for (int i = 0; i < q->k->naxis; i++)
        if (!q->nest->axis[i].reduced && (p->at[i] || p->sum[i].split))
            in.value[i] = lower_index(q, p, i);
    env_ready(q, &in);
    for (int64_t i = 0; i < s->amount; i++) {
        p->at[s->inner] = idx(q->c, i);
        lower_blocks(q, p, n, &in, i ? part : state);
        if (i)
            monoid_join(q->c, reduce_monoid(n), state, part, state);
    }
}

/* The places' sums as they are begun: the loops that do it. */
static Node *begin_row(Lower *q, Piece *p, Node *n, const SumAxes *r, const int *place)
{
    const int size = (int)reduce_size(n);
    Node **end = NEWN(q->a, Node *, size + r->n);
    int nend = size;
    int64_t elements;
    enter_row(q, p, r, p->begun, "z", false, end, &nend);
    for (int i = 0; i < size; i++)
        end[i] = place_store(q, place[i], node_bool(q->c, true),
                             reduce_identity(q->c, reduce_sibling(q->c, n, i)),
                             offset_in_row(q, p, r, &elements));
    leave_row(p, r);
    return place_fill(q, end, nend);
}

/* Copies of the row that are added to at a time; and the nth of them. */
static int64_t copies_of_row(const Lower *q, const Piece *p, const SumAxes *r)
{
    int64_t n = 1;
    for (int i = 0; i < r->n; i++)
        n *= is_copy(q, p, r->axis[i]) ? place_extent(q, p, r->axis[i]) : 1;
    return n;
}

static void enter_copy(Lower *q, Piece *p, const SumAxes *r, int64_t n)
{
    for (int i = r->n; i-- > 0;)
        if (is_copy(q, p, r->axis[i])) {
            const int64_t size = place_extent(q, p, r->axis[i]);
            p->at[r->axis[i]] = idx(q->c, n % size);
            n /= size;
        }
}

/* The loops that add all whole blocks. */
static Node *add_to_row(Lower *q, Piece *p, Node *n, const Env *e, const SumAxes *r,
                        const int *place, Node *begun)
{
    const int size = (int)reduce_size(n);
    const Split *s = partial_of(q, n);
    const bool loops = s->amount == 1; /* in a block */
    const int copies = loops ? (int)copies_of_row(q, p, r) : 1;
    Node **end = NEWN(q->a, Node *, size * copies + r->n + q->nest->norder), *sum[MAX_STATE],
         *state[MAX_STATE];
    int nend = size * copies;
    int64_t elements;
    nend += outer_loops(q, p, n, s, end + nend);
    Node ***fresh = &p->added[s - q->nest->split];
    if (!*fresh) /* not those of other sums, which these may be made of */
        *fresh = NEWN(q->a, Node *, q->nest->naxis + 1);
    enter_row(q, p, r, *fresh, q->nest->axis[q->nest->axis[s->axis].root].name, loops, end, &nend);
    for (int c = 0; c < copies; c++) {
        if (loops)
            enter_copy(q, p, r, c);
        Node *at = offset_in_row(q, p, r, &elements);
        terms_of_row(q, p, n, e, s, state);
        for (int i = 0; i < size; i++)
            sum[i] = place_load(q, place[i], &begun, 1, at);
        monoid_join(q->c, reduce_monoid(n), sum, state, sum);
        for (int i = 0; i < size; i++)
            end[c * size + i] = place_store_after(q, place[i], begun, sum[i], at);
    }
    leave_row(p, r);
    return place_fill(q, end, nend);
}

/* The sums of a row, of which a loop nest of a rest may have so few that they need no loop: then
 * they are registers' as any others. */
static void sums_of_row(Lower *q, Piece *p, Node *n, const Env *e, Node **state)
{
    const Split *s = partial_of(q, n);
    const int size = (int)reduce_size(n);
    const SumAxes r = row_of(q, p, n, s);
    if (!r.loop) {
        Node **range = NEWN(q->a, Node *, q->nest->norder + 1);
        terms_of_row(q, p, n, e, s, state);
        lower_reduce_over(q, p, n, state, range, outer_loops(q, p, n, s, range), state);
        return;
    }
    int place[MAX_STATE];
    int64_t elements;
    Node *at = offset_in_row(q, p, &r, &elements);
    for (int i = 0; i < size; i++) {
        int number = staged_number(q, reduce_sibling(q->c, n, i));
        place[i] = q->nest->nstage + number;
        if (elements > q->staged[number].elements)
            q->staged[number].elements = elements;
    }
    Node *filled = add_to_row(q, p, n, e, &r, place, begin_row(q, p, n, &r, place));
    for (int i = 0; i < size; i++)
        state[i] = place_load(q, place[i], &filled, 1, at);
}

Node *lower_partial(Lower *q, Piece *p, Node *n, const Env *e)
{
    const Split *s = partial_of(q, n);
    Node *state[MAX_STATE];
    sums_of_row(q, p, n, e, state);
    if (lower_has_rest(q, s)) {
        struct Sum blocks = p->sum[s->axis];
        Node *part[MAX_STATE];
        p->sum[s->axis] = (struct Sum){s, lower_whole(q, s), -1, s->rest};
        lower_blocks(q, p, n, e, part);
        p->sum[s->axis] = blocks;
        monoid_join(q->c, reduce_monoid(n), state, part, state);
    }
    return state[reduce_part(n)];
}
