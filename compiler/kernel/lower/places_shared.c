/* places_shared.c - places that the items of a group share.
 *
 * The items fill such a place together, in rounds of one element for each, and wait for each other
 * before and after. */
#include "lower.h"

/* Is an axis that is left inside of the one that a place is staged at, or do the items of a group
 * share it? */
static bool inside_stage(const Lower *q, const Stage *s, int leaf)
{
    const NestAxis *x = &q->nest->axis[leaf];
    if (x->bound)
        return x->bound == BOUND_LANE || x->bound == BOUND_WARP;
    if (q->nest->inner && x->root == q->nest->axis[q->nest->inner_axis[TC_TERMS]].root)
        return true; /* terms of a block of a row */
    return x->form != AXIS_LOOP || q->nest->axis[s->axis].bound ||
           nest_position(q->nest, leaf) > nest_position(q->nest, s->axis);
}

/* The part of an axis' value that is inside of a place, or outside, and how far the former goes. */
Node *place_part(Lower *q, const Piece *p, const Stage *s, int axis, bool inside)
{
    const struct Sum *sum = &p->sum[axis];
    if (!sum->split)
        return inside_stage(q, s, axis) == inside ? p->at[axis] : idx(q->c, 0);
    Node *outer =
        idx_mul(q->c, place_part(q, p, s, sum->outer, inside), idx(q->c, sum->split->amount));
    return idx_add(q->c, outer, place_part(q, p, s, sum->inner, inside));
}

int64_t place_size(const Lower *q, const Piece *p, const Stage *s, int axis)
{
    const struct Sum *sum = &p->sum[axis];
    const NestAxis *x = &q->nest->axis[axis];
    if (!sum->split && inside_stage(q, s, axis))
        return x->bound ? x->extent : place_extent(q, p, axis);
    if (!sum->split)
        return 1;
    return (place_size(q, p, s, sum->outer) - 1) * sum->split->amount +
           place_size(q, p, s, sum->inner);
}

Node *lower_item(Lower *q, const Piece *p)
{
    Node *item = idx(q->c, 0);
    for (int i = 0; i < p->t.naxis; i++)
        if (p->t.axis[i].bound == BOUND_LANE)
            item =
                idx_add(q->c, idx_mul(q->c, item, p->t.axis[i].range->src[0]), p->t.axis[i].range);
    return item;
}

/* How far the second element along a range lies from the first. */
static int64_t first_stride(Lower *q, Node *access, Node *range)
{
    const KernelArg *a = &q->k->args[access->src[0]->arg.i];
    Node *at = layout_offset(q->c, &a->layout, a->rank, a->dims, access->src + first_coord(access));
    Node *zero = idx(q->c, 0), *one = idx(q->c, 1);
    int64_t stride;
    if (!idx_value(idx_sub(q->c, substitute(q->c, at, 1, &range, &one),
                           substitute(q->c, at, 1, &range, &zero)),
                   &stride))
        return INT64_MAX;
    return stride < 0 ? -stride : stride;
}

/* What items bring to a place in a round: neighbours, as many as one instruction takes. */
typedef struct {
    int64_t n;
    Node *value, *gate, *to;
    Node *whole; /* how many of them there are, where the first one is; NULL: all */
} Chunk;

/* Is a gate the same for all of a chunk, or for all but its last ones? So it is where what moves
 * with them is compared with a number that is the same for all: of a multiple of theirs whole
 * chunks are less. */
static bool gates_all(Lower *q, Node *gate, Node *inner, Chunk *x)
{
    Node *zero = idx(q->c, 0), *size = idx(q->c, x->n);
    int64_t step;
    if (!depends_on(gate, inner))
        return true;
    if (gate->op == OP_AND)
        return gates_all(q, gate->src[0], inner, x) && gates_all(q, gate->src[1], inner, x);
    if (gate->op != OP_LT || depends_on(gate->src[1], inner))
        return false;
    Node *first = substitute(q->c, gate->src[0], 1, &inner, &zero);
    if (!range_stride(q->c, gate->src[0], inner, &step) || step != 1 ||
        !idx_is(idx_mod(q->c, first, size), 0))
        return false;
    if (!idx_is(idx_mod(q->c, gate->src[1], size), 0)) {
        if (dtype_info[x->value->dtype].bytes < 2)
            return false;
        x->whole = idx_min(q->c, x->whole ? x->whole : size, idx_sub(q->c, gate->src[1], first));
    }
    return true;
}

/* Are all elements of a chunk neighbours, where they come from and where they go to, from a
 * multiple of its size on, and behind one gate? inner: counts through them. */
static bool is_chunk(Lower *q, Chunk *x, Node *inner)
{
    if (x->value->op != OP_LOAD)
        return false;
    const KernelArg *a = &q->k->args[x->value->src[0]->arg.i];
    Node *from =
        layout_offset(q->c, &a->layout, a->rank, a->dims, x->value->src + first_coord(x->value));
    Node *zero = idx(q->c, 0), *n = idx(q->c, x->n), *at[] = {from, x->to};
    for (int i = 0; i < 2; i++) {
        int64_t step;
        Node *first = substitute(q->c, at[i], 1, &inner, &zero);
        if (!range_stride(q->c, at[i], inner, &step) || step != 1 ||
            !idx_is(idx_mod(q->c, first, n), 0))
            return false;
    }
    return gates_all(q, x->value->src[1], inner, x) && !depends_on(x->gate, inner);
}

/* A place in the making. */
typedef struct {
    int stage, n, walk[INGOT_MAX_RANK * 4], root[INGOT_MAX_RANK * 4];
    int64_t size[INGOT_MAX_RANK * 4], pitch[INGOT_MAX_RANK * 4];
    int64_t slot; /* elements of one of several places, or 0 */
    int64_t fill; /* what is beyond the edges of the buffer */
} SharedPlace;

/* The same load, which is x where its gate is false. */
static Node *load_or(Context *c, Node *load, int64_t x)
{
    if (node_is_const_i(load->src[1], 1))
        return load;
    return node_make(c, OP_LOAD, load->dtype, (Arg){.i = x}, (int)load->nsrc, load->src, 0, NULL);
}

/* Which elements of the load an item brings: in the order in which they lie in the buffer, `chunk`
 * of them at once. */
static Chunk walk_place(Lower *q, Piece *p, const SharedPlace *s, Node *n, int64_t chunk,
                        Node *inner, Node *e)
{
    Chunk x = {.n = chunk, .gate = node_bool(q->c, true), .to = idx(q->c, 0)};
    if (s->slot)
        x.to = idx_mul(q->c, idx_mod(q->c, p->t.ahead, idx(q->c, p->t.depth)), idx(q->c, s->slot));
    Env env = env_new(q, NULL);
    Node *rest = e;
    int64_t elements = 1, each = q->nest->items;
    for (int i = 0; i < s->n; i++) {
        int r = s->walk[i];
        int64_t size = s->size[r] / (i ? 1 : chunk);
        Node *own = i == s->n - 1 ? rest : idx_mod(q->c, rest, idx(q->c, size));
        rest = idx_div(q->c, rest, idx(q->c, size));
        elements = sat_mul(elements, size);
        if (!i && chunk > 1)
            own = idx_add(q->c, idx_mul(q->c, own, idx(q->c, chunk)), inner);
        env.value[s->root[r]] =
            idx_add(q->c, place_part(q, p, &q->nest->stage[s->stage], s->root[r], false), own);
        x.to = idx_add(q->c, x.to, idx_mul(q->c, own, idx(q->c, s->pitch[r])));
    }
    if (elements % each)
        x.gate = node_alu2(q->c, OP_LT, INGOT_BOOL, e, idx(q->c, elements));
    env_ready(q, &env);
    q->filling = true;
    x.value = lower_node(q, p, n, &env);
    q->filling = false;
    if (s->fill)
        x.value = load_or(q->c, x.value, s->fill);
    return x;
}

static int64_t rounds_of(const Lower *q, const SharedPlace *s, int64_t chunk)
{
    int64_t elements = 1, each = q->nest->items * chunk;
    for (int i = 0; i < s->n; i++)
        elements = sat_mul(elements, s->size[i]);
    return ceil_div(elements, each);
}

/* So many rounds of copies for later iterations are no loop: what is known before the loop over
 * those differs from round to round. */
enum { STRAIGHT = 8 };

/* Warps that have a part each of what lies along a row, as it lies in the place: each brings its
 * own, so that nobody else reads what it has brought. 1: they share what is there. */
static int64_t warps_of_parts(const Lower *q, const Piece *p, const SharedPlace *s, int64_t chunk)
{
    const Nest *n = q->nest;
    int64_t warps = 1, elements = 1;
    int last = s->n - 1;
    for (int i = 0; i < s->n; i++)
        elements = sat_mul(elements, s->size[i]);
    while (last > 0 && s->size[s->walk[last]] == 1)
        last--;
    const int root = s->root[s->walk[last]];
    for (int i = 0; i < n->naxis; i++)
        if (n->axis[i].root == root && n->axis[i].bound == BOUND_WARP)
            warps *= n->axis[i].extent;
    const bool apart = p->t.along && p->t.ranks && s->slot && n->items == warps * n->tc->lanes &&
                       elements % (n->items * chunk) == 0 &&
                       s->size[s->walk[last]] == warps * n->axis[nest_innermost(n, root)].extent;
    return apart ? warps : 1;
}

/* The number of what an item brings, in this round. */
static Node *number_of(Lower *q, Piece *p, const SharedPlace *s, int64_t chunk, Node **turn)
{
    int64_t rounds = rounds_of(q, s, chunk);
    const int64_t warps = warps_of_parts(q, p, s, chunk);
    Node *e = lower_item(q, p);
    if (s->slot && warps == 1)
        p->t.together = true;
    if (rounds == 1)
        return e;
    if (p->t.ahead && copies_apart(q->nest->tc) && chunk > 1 && rounds <= STRAIGHT) {
        *turn = range_new(q->c, RANGE_TURN, idx(q->c, rounds));
    } else if (!*turn) {
        TileAxis x = {.name = arena_printf(q->a, "fill%d", s->stage)};
        x.range = *turn = range_new(q->c, p->next++, idx(q->c, rounds));
        vec_push(q->a, p->t.fill, p->t.nfill, x);
    }
    if (warps > 1) {
        Node *items = idx(q->c, q->nest->items / warps), *warp = idx_div(q->c, e, items);
        e = idx_add(
            q->c,
            idx_mul(q->c, idx_add(q->c, idx_mul(q->c, warp, idx(q->c, rounds)), *turn), items),
            idx_mod(q->c, e, items));
        return e;
    }
    return idx_add(q->c, idx_mul(q->c, *turn, idx(q->c, q->nest->items)), e);
}

/* Of a matrix unit's operands as many neighbours at once as are 16 bytes, if they may be. */
static Chunk chunk_of(Lower *q, Piece *p, const SharedPlace *s, Node *n)
{
    enum { BYTES = 16, LEAST = 4 };
    Node **turn = &p->filled[s->stage][0], *zero = idx(q->c, 0);
    int64_t bytes = dtype_info[n->dtype].bytes;
    for (int64_t chunk = BYTES / bytes; q->nest->tc && chunk * bytes >= LEAST; chunk /= 2) {
        if (chunk < 2 || s->size[s->walk[0]] % chunk)
            continue;
        Node *inner = range_new(q->c, RANGE_ADDED, idx(q->c, chunk)), *e = lower_item(q, p), *any;
        any = range_new(q->c, RANGE_ADDED + 1, idx(q->c, rounds_of(q, s, chunk) + 1));
        e = idx_add(q->c, idx_mul(q->c, any, idx(q->c, q->nest->items)), e);
        Chunk x = walk_place(q, p, s, n, chunk, inner, e);
        if (!is_chunk(q, &x, inner))
            continue;
        Node *number = number_of(q, p, s, chunk, turn);
        Chunk own = walk_place(q, p, s, n, chunk, zero, number);
        if (x.whole) { /* with the number of this item's */
            Chunk each = walk_place(q, p, s, n, chunk, inner, number);
            if (!is_chunk(q, &each, inner))
                continue;
            own.whole = each.whole;
        }
        return own;
    }
    return walk_place(q, p, s, n, 1, NULL, number_of(q, p, s, 1, turn));
}

/* How far apart lines of a matrix unit's operand begin: an odd number of 16 bytes, so that eight of
 * them lie in banks of their own; of words that are read one by one, four lines of eight: an odd
 * number of 32 bytes. */
static int64_t line_pitch(int64_t size, int64_t bytes, bool words)
{
    int64_t unit = words ? 32 : 16, chunks = ceil_div(size * bytes, unit);
    return (chunks | 1) * unit / bytes;
}

static bool by_fours(const Piece *p, int root)
{
    return p->sum[root].split && p->sum[root].split->kind == OPT_DOT;
}

/* Which of its axes a place has side by side: of a matrix unit's operands that along which they lie
 * so in the buffer, or the terms of a unit that takes lines alone; of bytes that are multiplied by
 * fours (DOT) the terms. */
static int innermost(const Nest *nest, const Piece *p, const SharedPlace *s)
{
    for (int i = s->n; i-- > 0;)
        if (by_fours(p, s->root[i]))
            return i;
    if (!nest->tc)
        return s->n - 1;
    const int terms = nest->axis[nest->tc_axis[TC_TERMS]].root;
    for (int i = 0; i < s->n && tc_by_line(nest->tc); i++)
        if (s->root[i] == terms)
            return i;
    return s->walk[0];
}

/* Sizes and pitches of a place: [reduced axes][axes of results], the last one longer by some
 * elements where the items that fill it walk along another (innermost()), and by four where it is
 * read by fours. Its elements. */
static int64_t lay_out(Lower *q, const Piece *p, Node *n, SharedPlace *s)
{
    enum { APART = 4 };
    const Nest *nest = q->nest;
    int64_t stride[INGOT_MAX_RANK * 4], room = 1;
    for (int i = 0; i < s->n; i++) {
        s->size[i] = place_size(q, p, &nest->stage[s->stage], s->root[i]);
        stride[i] = first_stride(q, n, q->k->axes[s->root[i]].range);
        int at = i;
        for (; at > 0 && stride[s->walk[at - 1]] > stride[i]; at--)
            s->walk[at] = s->walk[at - 1];
        s->walk[at] = i;
    }
    int order[INGOT_MAX_RANK * 4], norder = 0, last = innermost(nest, p, s);
    order[norder++] = last; /* innermost first */
    for (int i = s->n; i-- > 0;)
        if (i != last)
            order[norder++] = i;
    for (int i = 0; i < s->n; i++) {
        int64_t size = s->size[order[i]];
        if (!i && nest->tc)
            size =
                line_pitch(size, dtype_info[n->dtype].bytes,
                           dtype_info[n->dtype].bytes == 4 && !nest->axis[s->root[last]].reduced);
        else if (!i && (s->walk[0] != last || by_fours(p, s->root[last])))
            size += APART;
        s->pitch[order[i]] = room;
        room = sat_mul(room, size);
    }
    return room;
}

/* Memory that a group shares: items fill it, and a load reads it in place of the buffer. */
Node *load_through_shared(Lower *q, Piece *p, Node *n, Node *load)
{
    const Nest *nest = q->nest;
    SharedPlace s = {.stage = nest_stage(nest, n->src[0]->arg.i)};
    if (s.stage < 0)
        return load;
    if (nest->tc)
        (void)tc_fill(q->k, n, &s.fill);
    for (int reduced = 1; reduced >= 0; reduced--)
        for (int i = 0; i < q->k->naxis; i++)
            if (nest->axis[i].reduced == reduced && (p->at[i] || p->sum[i].split) &&
                depends_on(n, q->k->axes[i].range))
                s.root[s.n++] = i;
    if (!s.n)
        return load;
    int64_t room = lay_out(q, p, n, &s);
    Node *at = idx(q->c, 0), *end[STRAIGHT + 2], *store;
    int nend = 0;
    const int axis = nest->stage[s.stage].axis;
    Node *reads = p->at[axis];
    const int depth = reads == p->t.ahead_of ? p->t.depth : 0;
    if (depth) { /* chunks begin at multiples of their size in all of the places */
        enum { WHOLE = 16 };
        room = ceil_div(room, WHOLE) * WHOLE;
        s.slot = room;
        room *= depth <= reads->hi ? depth : reads->hi + 1;
    }
    q->place[s.stage] = room > q->place[s.stage] ? room : q->place[s.stage];
    for (int i = 0; i < s.n; i++)
        at = idx_add(q->c, at,
                     idx_mul(q->c, place_part(q, p, &nest->stage[s.stage], s.root[i], true),
                             idx(q->c, s.pitch[i])));
    if (depth) {
        Node *slot = idx_mod(q->c, reads, idx(q->c, depth));
        at = idx_add(q->c, at, idx_mul(q->c, slot, idx(q->c, s.slot)));
        p->at[axis] = p->t.ahead;
    }
    Chunk x = chunk_of(q, p, &s, n);
    p->at[axis] = reads;
    store = place_store(q, s.stage, x.gate, x.value, x.to);
    if (x.n > 1) {
        Node *src[] = {store->src[0], store->src[1], store->src[2], store->src[3], x.whole};
        store =
            node_make(q->c, OP_STORE, store->dtype, (Arg){.i = x.n}, x.whole ? 5 : 4, src, 0, NULL);
    }
    Node *turn = p->filled[s.stage][0];
    const bool straight = turn && turn->arg.i == RANGE_TURN;
    for (int64_t i = 0; straight && i <= turn->hi; i++) {
        Node *round = idx(q->c, i);
        end[nend++] = substitute(q->c, store, 1, &turn, &round);
    }
    if (!straight)
        end[nend++] = store;
    if (turn && !straight)
        end[nend++] = turn;
    if (depth)
        end[nend++] = p->t.ahead;
    Node *filled = place_fill(q, end, nend);
    return place_load(q, s.stage, &filled, 1, at);
}
