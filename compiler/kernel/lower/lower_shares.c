/* lower_shares.c - sums that the items of a group share (BIND of a reduced axis to lanes, or of a
 * matrix unit's to warps).
 *
 * Every item has the results of its lanes and copies, and of their terms the part that is its own
 * along the reduced axes.  What it has joined goes to a place of the group,
 *
 *     place[part][result] = reduce over the terms of the part
 *
 * all items wait, and whoever reads a result joins its parts, some at a time (a tree) where there
 * are many.  So the results of a group belong to all of its items: they walk over them in the order
 * in which they lie in the buffer, each item storing every n-th.  Axes of results that no such sum
 * depends on (the row that a softmax scales) are walked likewise.  Where a group has several such
 * rows, and the items that share a row's sums go over it in whole turns, they keep to it: what is
 * made of its sums is the same in all turns.
 *
 * The parts of neighbours (BIND warp) become one before that: what they hold is joined by the
 * hardware, as a tree, and the first of them stores it.
 *
 * Groups of a cluster may have parts as well (BIND cluster, of rows in registers).  What a group
 * has joined goes to a place that all of them read, they meet, and each walks over a share of their
 * results.  Sums of e^(x - the greatest x) are joined as the group's own greatest has them, and
 * whoever reads those of several groups scales them: so groups meet once, for the greatest and the
 * sums.
 *
 * The order in which terms are joined is that of the opts. */
#include <string.h>

#include "lower.h"

enum {
    MOST_JOINED = 16, /* parts, by one item */
    APART = 8 /* elements between lines: rows that lanes write together lie in different banks */
};

static Node *both(Lower *q, Node *a, Node *b)
{
    return a && b ? node_alu2(q->c, OP_AND, INGOT_BOOL, a, b) : a ? a : b;
}

/* Have the items of a group a part each, and not the groups of a cluster? */
static bool is_of_items(const NestAxis *x)
{
    return x->bound && x->bound != BOUND_CLUSTER;
}

bool lower_is_shared(const Lower *q, const Node *n)
{
    if (n->op != OP_REDUCE || !q->nest->sharing)
        return false;
    for (int i = 0; i < q->nest->naxis; i++)
        if (q->nest->axis[i].reduced && is_of_items(&q->nest->axis[i]) && lower_is_over(q, n, i))
            return true;
    return false;
}

/* ---- what a group's items walk over ---------------------------------------------------------- */

/* Does a sum that items share depend on a range of results? */
static bool shared_moves_with(Lower *q, Node *range)
{
    int n;
    Node **order = graph_toposort(q->a, 1, (Node *const *)&q->end, &n);
    for (int i = 0; i < n; i++)
        if (lower_is_shared(q, order[i]) && moves_with(q->a, order[i], range))
            return true;
    return false;
}

/* How far apart the results lie that are neighbours along an axis that is left of root. */
static int64_t walk_stride(Lower *q, const Piece *p, int root, int leaf)
{
    int64_t stride;
    if (!access_stride(q->k, q->end->src[0], q->k->axes[root].range, &stride))
        stride = INT64_MAX;
    for (int at = root; at != leaf;) {
        const struct Sum *s = &p->sum[at];
        int *below = NEWN(q->a, int, q->nest->naxis + 1), n = 0;
        bool outer = false;
        lower_leaves(p, s->outer, below, &n);
        for (int i = 0; i < n; i++)
            outer |= below[i] == leaf;
        if (outer)
            stride = sat_mul(stride, s->split->amount);
        at = outer ? s->outer : s->inner;
    }
    return stride < 0 ? -stride : stride;
}

static void add_to_walk(Lower *q, Piece *p, int root, int leaf)
{
    struct Walk w = {leaf, root, walk_stride(q, p, root, leaf), p->at[leaf]};
    const NestAxis *x = &q->nest->axis[leaf];
    if (x->bound != BOUND_LANE && x->bound != BOUND_WARP)
        w.own = NULL;
    vec_push(q->a, p->walk, p->nwalk, w);
    for (int i = p->nwalk - 1; i > 0 && p->walk[i - 1].stride > p->walk[i].stride; i--) {
        struct Walk t = p->walk[i];
        p->walk[i] = p->walk[i - 1];
        p->walk[i - 1] = t;
    }
}

bool lower_is_walked(const Piece *p, int axis)
{
    for (int i = 0; i < p->nwalk; i++)
        if (p->walk[i].axis == axis)
            return true;
    return false;
}

static int64_t walk_size(const Lower *q, const Piece *p, int i)
{
    return q->nest->axis[p->walk[i].axis].extent;
}

/* Of these, how many there are results of: the groups of a cluster share them evenly. */
static int64_t walk_results(const Lower *q, const Piece *p, int i)
{
    const NestAxis *x = &q->nest->axis[p->walk[i].axis];
    const bool few = p->t.ranks && p->walk[i].axis == p->walk[i].root && x->within > 0;
    return few ? x->within : walk_size(q, p, i);
}

/* One that is known at run time only is a row of its own. */
static Node *walk_elements(const Lower *q, const Piece *p)
{
    Node *n = idx(q->c, 1);
    for (int i = 0; i < p->nwalk; i++) {
        const int64_t size = walk_results(q, p, i);
        Node *one = size < 0 ? q->k->axes[p->walk[i].root].range->src[0] : idx(q->c, size);
        n = idx_mul(q->c, n, one);
    }
    return n;
}

/* Of the results that a cluster has together, those that a group of it walks over. */
static Node *own_elements(Lower *q, const Piece *p, Node *elements)
{
    return p->t.ranks ? idx(q->c, ceil_div(elements->hi, p->t.ranks->hi + 1)) : elements;
}

void shares_begin(Lower *q, Piece *p)
{
    const Nest *nest = q->nest;
    int *leaf = NEWN(q->a, int, nest->naxis + 1);
    for (int i = 0; i < q->k->naxis; i++) {
        int n = 0;
        if (nest->axis[i].reduced || !(p->at[i] || p->sum[i].split))
            continue;
        bool moves = shared_moves_with(q, q->k->axes[i].range);
        lower_leaves(p, i, leaf, &n);
        for (int j = 0; j < n; j++) {
            const NestAxis *x = &nest->axis[leaf[j]];
            const bool free = x->form == AXIS_LOOP && !x->bound && !moves, row = leaf[j] == i;
            const bool copies = x->form == AXIS_COPIES && (moves || nest->tc);
            bool item = x->bound == BOUND_LANE || x->bound == BOUND_WARP || x->form == AXIS_UNIT;
            if ((x->extent > 1 && (item || copies || free)) ||
                (x->extent < 0 && free && row && !x->within))
                add_to_walk(q, p, i, leaf[j]);
        }
    }
    const int64_t warp = nest->warp >= 0 ? nest->axis[nest->warp].extent : 1;
    p->part = p->outer = range_new(q->c, p->next++, idx(q->c, nest->sharing / warp));
    if (warp > 1) {
        p->t.across = range_new(q->c, p->next++, idx(q->c, warp));
        p->part = idx_add(q->c, idx_mul(q->c, p->outer, idx(q->c, warp)), p->t.across);
    }
    Node *const items = idx(q->c, nest->items), *elements = own_elements(q, p, walk_elements(q, p));
    if (elements->hi > nest->items)
        p->turn =
            range_new(q->c, p->next++,
                      idx_div(q->c, idx_add(q->c, elements, idx(q->c, nest->items - 1)), items));
}

/* Of what is walked, the innermost first, so many axes are a row whose sums items share, all others
 * their lanes; 0: they do not keep to a row. */
static int axes_of_row(Lower *q, const Piece *p)
{
    const int64_t sharing = q->nest->sharing;
    int64_t row = 1, rows = 1;
    int n = 0;
    for (; n < p->nwalk && !p->walk[n].own; n++) {
        if (walk_size(q, p, n) < 0)
            return 0;
        row = sat_mul(row, walk_size(q, p, n));
    }
    for (int i = n; i < p->nwalk; i++) {
        if (!p->walk[i].own)
            return 0;
        rows = sat_mul(rows, walk_size(q, p, i));
    }
    const bool whole = !p->lane && !p->t.ranks && rows > 1 && rows * sharing == q->nest->items &&
                       row % sharing == 0 &&
                       idx_mod(q->c, lower_item(q, p), idx(q->c, sharing)) == p->part;
    return whole ? n : 0;
}

/* Items keep to their rows. */
static void walk_row(Lower *q, Piece *p, int axes)
{
    Node *rest = p->part;
    if (p->turn)
        rest = idx_add(q->c, idx_mul(q->c, p->turn, idx(q->c, q->nest->sharing)), rest);
    for (int i = 0; i < axes; i++) {
        Node *size = idx(q->c, walk_size(q, p, i));
        p->at[p->walk[i].axis] = i == axes - 1 ? rest : idx_mod(q->c, rest, size);
        rest = idx_div(q->c, rest, size);
    }
    for (int i = axes; i < p->nwalk; i++)
        p->at[p->walk[i].axis] = p->walk[i].own;
}

/* The results of the items: each axis that is walked becomes a digit of the number of the result in
 * its group. */
void shares_walk(Lower *q, Piece *p)
{
    const int64_t items = q->nest->items;
    Node *elements = walk_elements(q, p), *own = own_elements(q, p, elements);
    const int row = axes_of_row(q, p);
    p->walked = NULL;
    if (row) {
        walk_row(q, p, row);
        return;
    }
    Node *rest = lower_item(q, p);
    if (p->turn)
        rest = idx_add(q->c, idx_mul(q->c, p->turn, idx(q->c, items)), rest);
    if (!idx_is(idx_mod(q->c, own, idx(q->c, items)), 0))
        p->walked = node_alu2(q->c, OP_LT, INGOT_BOOL, rest, own);
    if (p->t.ranks) {
        rest = idx_add(q->c, idx_mul(q->c, p->t.ranks, own), rest);
        if (!idx_is(idx_mul(q->c, own, p->t.ranks->src[0]), elements->hi))
            p->walked = both(q, p->walked, node_alu2(q->c, OP_LT, INGOT_BOOL, rest, elements));
    }
    for (int i = 0; i < p->nwalk; i++) {
        const int64_t extent = walk_results(q, p, i);
        Node *size = extent < 0 ? q->k->axes[p->walk[i].root].range->src[0] : idx(q->c, extent);
        bool last = i == p->nwalk - 1 && !p->walked;
        p->at[p->walk[i].axis] = last ? rest : idx_mod(q->c, rest, size);
        rest = idx_div(q->c, rest, size);
    }
    for (int i = 0; i < q->nest->naxis && p->t.quad;
         i++) /* of all axes along a row the same part */
        if (q->nest->axis[i].reduced && is_of_items(&q->nest->axis[i]))
            p->at[i] = p->part;
}

/* ---- the place ------------------------------------------------------------------------------- */

/* A sum in the making. */
typedef struct NewShare {
    Lower *q;
    Piece *p;
    Node *n;
    struct Shared *s;
    int64_t *pitch;   /* by what is walked: in the place; 0: it does not move with it */
    int64_t row;      /* from part to part */
    int64_t parts;    /* that its terms are in */
    int64_t places;   /* with those that have nothing: items join a few of them at a time */
    Node *part;       /* the item's */
    Node *once;       /* of items that would write the same one does; or NULL */
    bool joins;       /* neighbours join what they have */
    bool of_group;    /* what the group itself has is read */
    bool written_out; /* parts are joined without a loop */
    Node **store;
    int nstore;
    /* What a group of a cluster has summed is scaled where others read it: the greatest that its
     * terms have subtracted, and that of all groups; or NULL. */
    const struct NewShare *greatest;
    Node *of_all;
} NewShare;

static Node *below(Lower *q, Node *x, int64_t end)
{
    return node_alu2(q->c, OP_LT, INGOT_BOOL, x, idx(q->c, end));
}

/* Where the result lies that the axes now say. */
static Node *offset(const Lower *q, const Piece *p, const int64_t *pitch)
{
    Node *at = idx(q->c, 0);
    for (int i = 0; i < p->nwalk; i++)
        if (pitch[i])
            at = idx_add(q->c, at, idx_mul(q->c, p->at[p->walk[i].axis], idx(q->c, pitch[i])));
    return at;
}

/* The item's part along each reduced axis that is bound; those of neighbours are one after that. */
static void take_part(NewShare *m)
{
    const Nest *nest = m->q->nest;
    Context *c = m->q->c;
    m->parts = 1;
    for (int i = 0; i < nest->norder; i++) {
        const NestAxis *x = &nest->axis[nest->order[i]];
        if (!x->reduced || !is_of_items(x) || !lower_is_over(m->q, m->n, nest->order[i]))
            continue;
        m->parts *= x->extent;
        m->joins |= m->p->t.across && x->bound == BOUND_WARP;
    }
    bool all = m->parts == nest->sharing;
    m->part = all ? m->p->part : idx_mod(c, m->p->part, idx(c, m->parts));
    if (!all)
        m->once = both(m->q, m->once, below(m->q, m->p->part, m->parts));
    Node *rest = m->part;
    for (int warp = m->joins; warp >= 0; warp--) /* the items of a warp are neighbours */
        for (int i = nest->norder; i-- > 0;) {
            const NestAxis *x = &nest->axis[nest->order[i]];
            if (!x->reduced || !is_of_items(x) || !lower_is_over(m->q, m->n, nest->order[i]) ||
                (m->joins && (x->bound == BOUND_WARP) != warp))
                continue;
            m->p->at[nest->order[i]] = idx_mod(c, rest, idx(c, x->extent));
            rest = idx_div(c, rest, idx(c, x->extent));
        }
    if (!m->joins)
        return;
    const int64_t items = m->p->t.across->hi + 1;
    m->part = idx_div(c, m->part, idx(c, items));
    m->parts /= items;
    m->once = both(m->q, m->once, below(m->q, m->p->t.across, 1));
}

/* What neighbours have together. */
static void join_neighbours(const NewShare *m, Node **state)
{
    Node *src[] = {*state, m->p->t.across};
    *state = node_make(m->q->c, OP_REDUCE, m->n->dtype, reduce_arg(reduce_monoid(m->n), 0, 0), 2,
                       src, 0, NULL);
}

static int place_of(NewShare *m, int level, int value)
{
    struct Shared *s = m->s;
    int at = level * (int)reduce_size(m->n) + value;
    while (s->nplace <= at) {
        Node *sibling = reduce_sibling(m->q->c, m->n, s->nplace % (int)reduce_size(m->n));
        int number = m->q->nstaged;
        struct Staged one = {sibling, 1, 0};
        vec_push(m->q->a, m->q->staged, m->q->nstaged, one);
        vec_push(m->q->a, s->place, s->nplace, number);
    }
    return s->place[at];
}

static Node *load_part(NewShare *m, int level, int value, Node *part, Node *at)
{
    Lower *q = m->q;
    int staged = place_of(m, level, value), dtype = q->staged[staged].value->dtype;
    Arg number = {.i = q->nest->k->narg + q->nest->nstage + staged};
    Node *place = node_make(q->c, OP_BUFFER, dtype, number, 0, NULL, 0, NULL);
    Node *filled = m->of_group ? m->s->group.filled : m->s->filled;
    place = node_make(q->c, OP_AFTER, dtype, number, 2, (Node *[]){place, filled}, 0, NULL);
    const int64_t pitch = q->staged[staged].ranks ? m->s->pitch : m->row;
    at = idx_add(q->c, idx_mul(q->c, part, idx(q->c, pitch)), at);
    return node_make(q->c, OP_LOAD, dtype, (Arg){0}, 3,
                     (Node *[]){place, node_bool(q->c, true), at}, 0, NULL);
}

static void load_state(NewShare *m, int level, Node *part, Node *at, Node **state)
{
    const NewShare *of = m->greatest;
    for (int i = 0; i < (int)reduce_size(m->n); i++)
        state[i] = load_part(m, level, i, part, at);
    if (!of)
        return;
    NewShare greatest = *of;
    Node *own = load_part(&greatest, of->s->level, 0, part, offset(m->q, m->p, of->pitch));
    state[0] = node_alu2(m->q->c, OP_MUL, (ingot_dtype)m->n->dtype, state[0],
                         rows_factor(m->q, of->n, own, m->of_all));
}

/* The state of `count` parts, `first` and every step-th. */
static void join_parts(NewShare *m, int level, Node *first, int64_t step, int64_t count, Node *at,
                       Node **state)
{
    Context *c = m->q->c;
    Node *one[MAX_STATE];
    if (reduce_size(m->n) == 1 && count > 1 && !m->written_out) {
        TileAxis x = {.name = arena_printf(m->q->a, "part%d", m->p->next)};
        x.range = range_new(c, m->p->next++, idx(c, count));
        vec_push(m->q->a, m->p->t.reduce, m->p->t.nreduce, x);
        load_state(m, level, idx_add(c, first, idx_mul(c, x.range, idx(c, step))), at, one);
        monoid_block(c, reduce_monoid(m->n), one, x.range, state);
        return;
    }
    load_state(m, level, first, at, state);
    for (int64_t i = 1; i < count; i++) {
        load_state(m, level, idx_add(c, first, idx(c, i * step)), at, one);
        monoid_join(c, reduce_monoid(m->n), state, one, state);
    }
}

/* The first items write places behind those of all, too. */
static void store_nothing(NewShare *m, int staged, Node *at)
{
    Lower *q = m->q;
    const ingot_dtype d = (ingot_dtype)q->staged[staged].value->dtype;
    Node *none = monoid_identity(q->c, (ingot_reduce_op)reduce_monoid(m->n), d);
    Node *gate = both(q, m->once, below(q, m->part, m->places - m->parts));
    if (q->staged[staged].elements < m->places * m->row)
        q->staged[staged].elements = m->places * m->row;
    vec_push(q->a, m->store, m->nstore,
             place_store(q, q->nest->nstage + staged, gate, none,
                         idx_add(q->c, at, idx(q->c, m->parts * m->row))));
}

/* What an item has of the results that the axes now say: of its own terms, above level 0 of some of
 * the parts. */
static void store_state(NewShare *m, int level, int64_t parts)
{
    Lower *q = m->q;
    Node *state[MAX_STATE],
        *gate = both(q, m->once, parts < m->parts ? below(q, m->part, parts) : NULL);
    Node *at = offset(q, m->p, m->pitch);
    if (level) {
        Node *first = idx_mod(q->c, m->part, idx(q->c, parts));
        join_parts(m, level - 1, first, parts, m->s->parts / parts, at, state);
    } else {
        Env env = env_new(q, NULL);
        for (int i = 0; i < q->k->naxis; i++)
            if (!q->nest->axis[i].reduced && (m->p->at[i] || m->p->sum[i].split))
                env.value[i] = lower_index(q, m->p, i);
        env_ready(q, &env);
        lower_terms(q, m->p, m->n, &env, state);
        if (m->joins)
            join_neighbours(m, state);
    }
    at = idx_add(q->c, idx_mul(q->c, m->part, idx(q->c, m->row)), at);
    for (int i = 0; i < (int)reduce_size(m->n); i++) {
        int staged = place_of(m, level, i);
        int64_t elements = parts * m->row;
        if (q->staged[staged].elements < elements)
            q->staged[staged].elements = elements;
        Node *s = place_store(q, q->nest->nstage + staged, gate ? gate : node_bool(q->c, true),
                              state[i], at);
        vec_push(q->a, m->store, m->nstore, s);
        if (!level && m->places > m->parts)
            store_nothing(m, staged, at);
    }
}

/* Of rows of sums in registers one value for a row: a lane has it for each of its lines, as its
 * three neighbours do. */
static bool is_of_row(const NewShare *m)
{
    const Nest *nest = m->q->nest;
    Node *columns = m->q->k->axes[nest->axis[nest->tc_axis[TC_COLUMNS]].root].range;
    return m->p->t.quad && !moves_with(m->q->a, m->n, columns);
}

/* How many results are joined: of the greatest, which a warp needs for sums of its own, those of
 * all lines of fragments that have rows. */
static int64_t joined_results(const NewShare *m, int i)
{
    enum { LINES = 8 };
    const int64_t results = walk_results(m->q, m->p, i), size = walk_size(m->q, m->p, i);
    if (reduce_monoid(m->n) == INGOT_REDUCE_ADD || results == size)
        return results;
    return size < ceil_div(results, LINES) * LINES ? size : ceil_div(results, LINES) * LINES;
}

/* Is the element that the item has of a unit's sums one that there are results of?  Groups of a
 * cluster join no others. */
static bool has_results(const NewShare *m)
{
    bool has = true;
    for (int i = 0; i < m->p->nwalk && m->p->t.ranks; i++)
        has &= !m->pitch[i] || m->p->at[m->p->walk[i].axis]->lo < joined_results(m, i);
    return has;
}

/* Once for each copy that the item has, of a unit's fragments for each of its elements. */
static void store_copies(NewShare *m, int level, int64_t parts, int from)
{
    for (int i = from; i < m->p->nwalk; i++) {
        const struct Walk *w = &m->p->walk[i];
        if (w->own || !m->pitch[i] || m->q->nest->axis[w->axis].form == AXIS_UNIT)
            continue;
        for (int64_t j = 0; j < walk_size(m->q, m->p, i); j++) {
            m->p->at[w->axis] = idx(m->q->c, j);
            store_copies(m, level, parts, i + 1);
        }
        return;
    }
    for (int i = 0; m->p->lane && tc_element_set(m->q, m->p, i); i++)
        if ((i % 2 == 0 || !is_of_row(m)) && has_results(m))
            store_state(m, level, parts);
    m->p->element = -1;
    if (!m->p->lane)
        store_state(m, level, parts);
}

static void fill(NewShare *m, int level, int64_t parts)
{
    m->store = NULL;
    m->nstore = 0;
    store_copies(m, level, parts, 0);
    m->s->filled = node_make(m->q->c, OP_END, INGOT_BOOL, (Arg){0}, m->nstore, m->store, 0, NULL);
    m->s->parts = parts;
    m->s->level = level;
}

/* Element number e of what the group has joined: where it lies. */
static Node *element_joined(NewShare *m, Node *e, int64_t *elements)
{
    Lower *q = m->q;
    *elements = 1;
    for (int i = 0; i < m->p->nwalk; i++) {
        if (!m->pitch[i])
            continue;
        const int64_t extent = joined_results(m, i);
        Node *size = idx(q->c, extent);
        if (e)
            m->p->at[m->p->walk[i].axis] = idx_mod(q->c, e, size);
        e = e ? idx_div(q->c, e, size) : NULL;
        *elements = sat_mul(*elements, extent);
    }
    return offset(q, m->p, m->pitch);
}

/* What the group has joined, for all groups of its cluster; the distance from one to the next is a
 * power of two: who has an element, and where, are some of its number's bits. */
static void fill_ranks(NewShare *m)
{
    Lower *q = m->q;
    Piece *p = m->p;
    struct Shared *s = m->s;
    const int64_t items = q->nest->items, parts = s->parts;
    int64_t pitch = 1, elements;
    Node *state[MAX_STATE], *e = lower_item(q, p), *src[MAX_STATE + 1];
    int nsrc = 0, level = s->level;
    while (pitch < m->row)
        pitch *= 2;
    (void)element_joined(m, NULL, &elements);
    TileAxis x = {.name = arena_printf(q->a, "join%d", p->next)};
    x.range = elements > items ? range_new(q->c, p->next++, idx(q->c, ceil_div(elements, items)))
                               : idx(q->c, 0);
    if (x.range->op == OP_RANGE)
        vec_push(q->a, p->t.fill, p->t.nfill, x);
    e = idx_add(q->c, idx_mul(q->c, x.range, idx(q->c, items)), e);
    Node *at = element_joined(m, e, &elements),
         *gate = elements % items ? below(q, e, elements) : node_bool(q->c, true);
    m->written_out = true;
    join_parts(m, level, idx(q->c, 0), 1, parts, at, state);
    m->written_out = false;
    for (int i = 0; i < (int)reduce_size(m->n); i++) {
        const int staged = place_of(m, level + 1, i);
        q->staged[staged].elements = pitch;
        q->staged[staged].ranks = (int)p->t.ranks->hi + 1;
        Node *to = idx_add(q->c, idx_mul(q->c, p->t.ranks, idx(q->c, pitch)), at);
        src[nsrc++] = place_store(q, q->nest->nstage + staged, gate, state[i], to);
    }
    if (x.range->op == OP_RANGE)
        src[nsrc++] = x.range;
    s->filled = node_make(q->c, OP_END, INGOT_BOOL, (Arg){0}, nsrc, src, 0, NULL);
    s->pitch = pitch;
    s->parts = p->t.ranks->hi + 1;
    s->level = level + 1;
}

/* Items hold what their lanes and copies say. */
static void as_items(NewShare *m)
{
    for (int i = 0; i < m->p->nwalk; i++) {
        const struct Walk *w = &m->p->walk[i];
        m->p->at[w->axis] = w->own ? w->own : idx(m->q->c, 0);
        if (w->own && !m->pitch[i])
            m->once = both(m->q, m->once, below(m->q, w->own, 1));
    }
    if (is_of_row(m))
        m->once = both(m->q, m->once, below(m->q, m->p->t.quad, 1));
}

static struct Shared *shared_of(Lower *q, Piece *p, Node *n)
{
    uint32_t size = n->nsrc;
    for (int i = 0; i < p->nshared; i++) {
        const Node *o = p->shared[i]->of;
        if (o->nsrc == size && reduce_monoid(o) == reduce_monoid(n) &&
            !memcmp((const void *)o->src, (const void *)n->src, size * sizeof *n->src))
            return p->shared[i];
    }
    struct Shared *s = NEW(q->a, struct Shared);
    s->of = n;
    vec_push(q->a, p->shared, p->nshared, s);
    return s;
}

/* The result that lies where the axes now say: once, whoever reads it. */
static Node *joined_at(NewShare *m, Node *at)
{
    struct Shared *s = m->s;
    const int part = reduce_part(m->n);
    for (int i = 0; i < s->njoined; i++)
        if (s->joined[i].at == at)
            return s->joined[i].state[part];
    struct Joined one = {.at = at};
    join_parts(m, s->level, idx(m->q->c, 0), 1, s->parts, at, one.state);
    vec_push(m->q->a, s->joined, s->njoined, one);
    return one.state[part];
}

/* As many as there are parts, or a few more, so that an item never joins many. */
static int64_t joined_places(const NewShare *m)
{
    int64_t places = m->parts;
    bool few = reduce_size(m->n) != 1 || m->p->t.ranks;
    while (!few) {
        int64_t left = places;
        while (left > MOST_JOINED) {
            int64_t joined = MOST_JOINED;
            while (left % joined)
                joined--;
            if (joined == 1)
                break;
            left /= joined;
        }
        few = left <= MOST_JOINED;
        places += !few;
    }
    return places;
}

/* Where parts lie, and what the group has of them. */
static NewShare share_of(Lower *q, Piece *p, Node *n)
{
    NewShare m = {.q = q, .p = p, .n = n, .s = shared_of(q, p, n)};
    m.pitch = NEWN(q->a, int64_t, p->nwalk + 1);
    m.row = 1;
    for (int i = 0; i < p->nwalk; i++)
        if (moves_with(q->a, n, q->k->axes[p->walk[i].root].range)) {
            m.pitch[i] = m.row;
            m.row = sat_mul(m.row, walk_size(q, p, i));
            bool line = i + 1 < p->nwalk && p->walk[i + 1].root != p->walk[i].root;
            if (p->lane && line && p->walk[i].root == p->walk[0].root)
                m.row += APART;
        }
    if (m.row > 1) /* odd: what items of several parts write lies in different banks */
        m.row |= 1;
    if (m.s->filled)
        return m;
    size_t bytes = (size_t)q->nest->naxis * sizeof *p->at;
    Node **at = NEWN(q->a, Node *, q->nest->naxis + 1);
    const Piece outside = *p;
    memcpy((void *)at, (void *)p->at, bytes);
    p->own = true;
    as_items(&m);
    take_part(&m);
    m.places = joined_places(&m);
    fill(&m, 0, m.parts);
    m.s->parts = m.places;
    for (int level = 1; m.s->parts > MOST_JOINED; level++) {
        int64_t joined = MOST_JOINED;
        while (m.s->parts % joined)
            joined--;
        if (joined == 1)
            break;
        fill(&m, level, m.s->parts / joined);
    }
    m.s->group = (struct Joint){m.s->filled, m.s->level, m.s->parts};
    memcpy((void *)p->at, (void *)at, bytes);
    p->own = outside.own;
    p->element = outside.element;
    p->line = outside.line;
    p->copy = outside.copy;
    p->column = outside.column;
    return m;
}

/* What all groups of the cluster have, if there is one. */
static void share_with_others(NewShare *m)
{
    Piece *p = m->p;
    size_t bytes = (size_t)m->q->nest->naxis * sizeof *p->at;
    Node **at = NEWN(m->q->a, Node *, m->q->nest->naxis + 1);
    if (!p->t.ranks || m->s->pitch)
        return;
    memcpy((void *)at, (void *)p->at, bytes);
    fill_ranks(m);
    memcpy((void *)p->at, (void *)at, bytes);
}

Node *lower_shared_group(Lower *q, Piece *p, Node *n)
{
    Node *state[MAX_STATE];
    if (!p->t.ranks)
        return lower_shared(q, p, n);
    NewShare m = share_of(q, p, n);
    m.of_group = m.written_out = true;
    join_parts(&m, m.s->group.level, idx(q->c, 0), 1, m.s->group.parts, offset(q, p, m.pitch),
               state);
    return state[reduce_part(n)];
}

Node *lower_shared(Lower *q, Piece *p, Node *n)
{
    bool good = true;
    NewShare m = share_of(q, p, n), greatest;
    share_with_others(&m);
    Node *shift = p->t.ranks && p->t.along && reduce_monoid(n) != INGOT_REDUCE_MAX
                      ? row_shift(q->nest, q->k, n->src[0], &good)
                      : NULL;
    if (shift) {
        m.of_all = lower_shared(q, p, shift);
        greatest = share_of(q, p, shift);
        m.greatest = &greatest;
    }
    return joined_at(&m, offset(q, p, m.pitch));
}

/* Of what a store writes, and reads where it writes it (takeover.c), the read; sums are others'
 * too, and stay as they are. */
static Node *read_only(Lower *q, Node *n, const Node *store, Node *only, Map *memo)
{
    Context *c = q->c;
    if (n->op == OP_LOAD && n->src[0] == store->src[0] && n->nsrc + 1 == store->nsrc &&
        !memcmp(n->src + 2, store->src + 3, (store->nsrc - 3) * sizeof *n->src))
        return node_with_source(c, n, 1, node_alu2(c, OP_AND, INGOT_BOOL, only, n->src[1]));
    if (!op_is_alu(n->op) || n->dtype == INGOT_INDEX)
        return n;
    const uint64_t key = (uint64_t)n->id + 1;
    Node *known = map_get(memo, key), *src[MAX_ALU_SRC];
    bool same = true;
    for (uint32_t i = 0; i < n->nsrc && !known; i++) {
        src[i] = read_only(q, n->src[i], store, only, memo);
        same &= src[i] == n->src[i];
    }
    if (!known)
        map_put(memo, key, (void *)(uintptr_t)(known = same ? n : node_with(c, n, src)));
    return known;
}

/* A store that some of the items do. The others do not read there either: that would be a race,
 * though they make no use of it. */
Node *lower_store_only(Lower *q, Node *store, Node *only)
{
    Map memo = {0};
    Node *value = read_only(q, store->src[2], store, only, &memo);
    map_free(&memo);
    store = node_with_source(q->c, store, 2, value);
    return node_with_source(q->c, store, 1,
                            node_alu2(q->c, OP_AND, INGOT_BOOL, only, store->src[1]));
}
