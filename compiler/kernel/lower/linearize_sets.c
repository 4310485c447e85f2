/* linearize_sets.c - where each node of a tile can stand, and which have names.
 *
 * A node's position is the set of ranges that it depends on; a reduce and what fills a place have
 * loops for some of those of their sources. A node used once, at its user's own place, is written
 * inside its user. */
#include "linearize.h"

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

/* What a place begins with (STORE(AFTER(place, END), ...)) stands where the loops that go on with
 * it do, and is done anew each time. */
static void begin_beside(Lin *q, const Node *fill, uint64_t set)
{
    for (int i = 0; i < end_stores(fill); i++) {
        const Node *place = fill->src[i]->src[0];
        for (uint32_t j = 1; place->op == OP_AFTER && j < place->nsrc; j++)
            q->set[lin_position(q, place->src[j])] |= set;
    }
}

/* Iterations that run in order since their stores may collide: what one of them reads there is what
 * those before it have left, in loops too that do not move the place. */
static bool is_left_by_others(const Lin *q, const Node *n)
{
    return q->k->serial && n->op == OP_LOAD && n->src[0]->op == OP_BUFFER &&
           q->k->args[n->src[0]->arg.i].written;
}

void lin_find_sets(Lin *q)
{
    for (int i = 0; i < q->n; i++) {
        Node *t = q->order[i];
        bool is_lane = t == q->l->tile->lane;
        bool four = t == q->l->tile->four;
        uint8_t fragment = 0;
        for (int j = 0; j < TC_AXES && q->l->tile->tc; j++)
            fragment |= (uint8_t)((t == q->l->tile->fragment[j]) << j);
        if (q->l->tile->inner)
            fragment |= (uint8_t)((t == q->l->tile->inner_columns) << TC_COLUMNS);
        uint64_t set = t->op == OP_RANGE && !is_lane && !four && !fragment ? lin_bit(t) : 0;
        bool vector = is_lane;
        q->reads[i] = t->op == OP_LOAD && t->src[0]->op == OP_AFTER;
        for (uint32_t j = 0; j < t->nsrc; j++) {
            int p = lin_position(q, t->src[j]);
            set |= q->set[p];
            vector |= q->vector[p];
            q->reads[i] |= q->reads[p];
            four |= q->four[p];
            fragment |= q->fragment[p];
            q->uses[p] += t->op != OP_PARAM;
        }
        for (int j = 0; t->op == OP_STORE && j < q->nstore; j++)
            if (q->root[j] == t)
                set |= q->l->tile->ntail && j >= q->l->tile->ntail ? q->tail : q->out;
        if (is_left_by_others(q, t))
            set |= q->out;
        q->body[i] = set;
        int nloop;
        Node *const *loop = loops_of(q->l, t, &nloop);
        for (int j = 0; j < nloop && !is_quad(q->l, t); j++) {
            if (loop[j] == q->l->tile->lane)
                vector = false;
            else if (loop[j] != q->l->tile->four)
                set &= ~lin_bit(loop[j]);
        }
        if (is_fill_ahead(q->l, t))
            set &= ~lin_bit(q->l->tile->ahead);
        vector &= !is_fill(t);
        q->set[i] = set;
        q->vector[i] = vector;
        q->four[i] = four && !is_dot(q->l, t);
        if (is_products(q->l, t))
            fragment &= (uint8_t) ~(1 << TC_TERMS);
        q->fragment[i] = is_fill(t) || t->op == OP_PROJ ? 0 : fragment; /* a PROJ is one element */
        if (is_fill(t))
            begin_beside(q, t, set);
    }
}

/* What is made for one result of a matrix unit, of operands that lie as the results do, is made
 * where that is stored: it would take registers while the others are made. */
void lin_find_results(Lin *q)
{
    enum { SEVERAL = -1 };
    Arena *a = arena_new();
    int *result = NEWN(a, int, q->n);
    for (int i = 0; i < q->nstore; i++)
        result[lin_position(q, q->root[i])] = i + 1;
    for (int i = q->n; i-- > 0;) {
        const Node *t = q->order[i];
        q->of_one[i] = result[i] > 0 && dtype_is_float((ingot_dtype)t->dtype);
        for (uint32_t j = 0; j < t->nsrc; j++) {
            int *of = &result[lin_position(q, t->src[j])];
            *of = !*of || *of == result[i] ? result[i] : SEVERAL;
        }
    }
    arena_free(a);
}

/* The fused axes have one loop: their extents are written in what makes a coordinate of each out of
 * its counter, that of the outermost is not. What nothing is written with any more has no name. */
void lin_find_unused(Lin *q)
{
    const Tile *tile = q->l->tile;
    for (int i = q->nstore; i < q->nroot; i++)
        q->uses[lin_position(q, q->root[i])]++;
    Node *outermost = tile->fused > 1 ? tile->axis[tile->uncut].range : NULL;
    if (outermost && lin_position(q, outermost) >= 0)
        q->uses[lin_position(q, outermost->src[0])]--;
    for (int i = q->n; i-- > 0;) {
        Node *t = q->order[i];
        if (q->uses[i] || t->op == OP_STORE)
            continue;
        q->inlined[i] = true;
        for (uint32_t j = 0; j < t->nsrc && t->op != OP_PARAM; j++)
            q->uses[lin_position(q, t->src[j])]--;
    }
}

/* Where a set of ranges is open: inside its innermost reduce, or else at its last output loop. */
static uint64_t place(const Lin *q, uint64_t set)
{
    uint64_t outside = set & ~(q->out | q->tail);
    if (outside)
        return outside;
    if (q->l->tile->tail.range && set & lin_bit(q->l->tile->tail.range))
        return lin_bit(q->l->tile->tail.range);
    uint64_t level = 0;
    const int uncut = q->l->tile->uncut,
              cut = uncut + q->l->tile->fused; /* the axes between them open together */
    const bool bound =
        q->l->tile->box; /* sums fill the registers: what is made of one is written in its store */
    for (int i = 0; i < q->l->tile->naxis; i++)
        if (set & lin_bit(q->l->tile->axis[i].range) && !(bound && q->l->tile->axis[i].bound))
            level = lin_bit(q->l->tile->axis[i >= uncut && i < cut ? cut - 1 : i].range);
    return level;
}

/* A base address that several accesses add their constants to. */
static bool is_shared_base(const Lin *q, Node *n, int p)
{
    return n->op == OP_ADD && n->dtype == INGOT_INDEX && q->uses[p] > 1 && !q->vector[p] &&
           !q->fragment[p];
}

/* Ranges that are loops, and neither groups nor items. */
static uint64_t bits_of_loops(const Tile *tile)
{
    uint64_t bits = 0;
    for (int i = 0; i < tile->nreduce; i++)
        bits |= lin_bit(tile->reduce[i].range);
    for (int i = 0; i < tile->naxis; i++)
        bits |= tile->axis[i].bound ? 0 : lin_bit(tile->axis[i].range);
    return bits;
}

/* Of an argument, for t, which waits for a place that the items of a group fill; of a constant,
 * where neighbours join what they have: else it would be asked for behind their sums. */
static bool is_early(const Lin *q, int t, int load)
{
    const Tile *tile = q->l->tile;
    const Node *n = q->order[load];
    if (tile->across && n->op == OP_LOAD && n->src[0]->op == OP_BUFFER &&
        q->k->args[n->src[0]->arg.i].early && !(q->set[load] & bits_of_loops(tile)))
        return true;
    return tile->items && !tile->tc && q->order[load]->op == OP_LOAD && q->reads[t] &&
           !q->reads[load];
}

/* What a mask leaves of a block is asked where it is no whole one. */
static void inline_mask(Lin *q, const Node *choice)
{
    const Node *whole = tile_whole_block(q->l->tile, choice);
    if (!whole)
        return;
    const Node *rest = choice->src[2];
    q->inlined[lin_position(q, rest)] = true;
    if (rest->src[0] != whole)
        q->inlined[lin_position(q, rest->src[0])] = true;
}

/* Which nodes are written inside their only user? */
void lin_find_inlined(Lin *q)
{
    for (int i = q->nstore; i < q->nroot; i++)
        q->inlined[lin_position(q, q->root[i])] |= is_affine(q->root[i]);
    for (int i = 0; i < q->n; i++) {
        Node *base = copy_base(q->l->tile, q->order[i]);
        if (base && !is_plain(base))
            q->base[lin_position(q, base)] = true;
    }
    for (int i = 0; i < q->n; i++) {
        Node *t = q->order[i];
        inline_mask(q, t);
        for (uint32_t j = 0; j < t->nsrc; j++) {
            int p = lin_position(q, t->src[j]);
            Node *s = t->src[j];
            if (q->base[p])
                continue;
            bool simple = (op_info[s->op].cls != REDUCE && op_info[s->op].cls != MEMORY) ||
                          (s->op == OP_LOAD && !is_rows(s)) || is_dot(q->l, s);
            bool moved = store_chunk(t) > 1 && s->op == OP_LOAD;
            bool product =
                moved || (q->four[p] && s->op == OP_MUL) ||
                (q->fragment[p] && s->op != OP_LOAD && s->op != OP_REDUCE && s->op != OP_PACK);
            const bool zero_point = t->op == OP_QUANTIZE && j == 1;
            if (s->op == OP_PROJ || is_plain(s) || zero_point ||
                (is_affine(s) && !is_shared_base(q, s, p)) ||
                ((q->vector[p] || q->four[p]) && s->dtype == INGOT_INDEX) || product)
                q->inlined[p] = true;
            else if (is_early(q, i, p))
                q->early[p] = true;
            else if (simple && !q->fragment[p] && q->uses[p] == 1 &&
                     !tile_whole_block(q->l->tile, s) &&
                     place(q, q->set[p]) == place(q, q->body[i]))
                q->inlined[p] = true;
        }
    }
}
