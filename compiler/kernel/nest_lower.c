/* nest_lower.c - loop nests of what a nest says.
 *
 * The kernel is copied into a context of its own.  Every split is done in every loop nest that has
 * its axis: the whole blocks stay there, a remainder becomes a loop nest of its own behind the
 * others (or stays beside, see RestForm).  Then each range of the kernel is known as an expression
 * of the nest's axes, and the stores are rebuilt with them, once for each copy that UPCAST makes:
 * copies share whatever they have in common because nodes are interned, and all their reduces run
 * in one loop.
 *
 * A reduce whose axes were split is rebuilt from the inside out:
 *
 *     UNROLL   a reduce for each copy, joined by the monoid
 *     DOT      a reduce over four terms, inside of the others
 *     VECTOR   a reduce for each lane, joined over the lanes, then the terms that fill no vector
 *
 * STAGE puts a place between a load and its buffer: loops over what the axes inside of it cover fill the place, in the order in
 * which the loops read it.  linearize() sees that they run where all that their addresses depend on is known. */
#include <string.h>

#include "kernel.h"

/* A loop nest in the making; tables are by axis of the nest. */
typedef struct {
    Tile t;
    Node **at; /* a range or a constant; NULL: the axis is not here, or taken apart */
    struct Sum {
        const Split *split; /* NULL: not taken apart here */
        Node *base;         /* base + outer * amount + inner; outer or inner -1: none */
        int outer, inner;
    } * sum;
    struct Copies {
        int axis;
        int64_t n;
    } * copies; /* of stores */
    int ncopies;
    Node **
        fresh; /* by root: its range in the remainder of a reduce (tails of one loop nest share them) */
    TileAxis *tail; /* loops of the remainders of reduces */
    int ntail;
    Node ***
        filled; /* by stage: the ranges of the loops that fill the place, by axis; NULL: nothing is staged here */
    int next; /* number of a new range */
} Piece;

typedef struct {
    Arena *a;
    const Nest *nest;
    const Kernel *k;
    Context *c;
    const Node *end;
    uint32_t known; /* ids below it are the kernel's */
    Piece *piece;
    int n;
    int64_t *place; /* by stage: its elements */
    bool filling;   /* what a place is filled with is lowered */

    struct Staged {
        Node *value; /* and ranges: of a STAGE of the kernel */
        int64_t elements;
    } * staged;
    int nstaged;
} Lower;

/* What every range stands for, and what was made of nodes so far. */
typedef struct {
    Node **value; /* by root */
    Node **map;   /* by id */
} Env;

/* An expression where it is known at run time only. */
static Node *extent_of(Lower *q, int axis)
{
    if (axis < q->k->naxis && !q->nest->axis[axis].within)
        return q->k->axes[axis].range->src[0];
    if (q->nest->axis[axis].extent >= 0)
        return idx(q->c, q->nest->axis[axis].extent);
    const Split *s = q->nest->split;
    while (s->outer != axis && s->rest != axis)
        s++;
    Node *whole = extent_of(q, s->axis), *amount = idx(q->c, s->amount);
    return s->outer == axis ? idx_div(q->c, whole, amount) : idx_mod(q->c, whole, amount);
}

/* The elements of whole blocks. */
static Node *whole_of(Lower *q, const Split *s)
{
    return idx_mul(q->c, extent_of(q, s->outer), idx(q->c, s->amount));
}

static Node *new_range(Lower *q, Piece *p, int axis)
{
    Node *extent = extent_of(q, axis);
    return idx_is(extent, 1) ? idx(q->c, 0) : range_new(q->c, p->next++, extent);
}

static void *copied(Lower *q, const void *from, int n, size_t size)
{
    void *to = arena_array(q->a, (size_t)n + 1, size);
    return n ? memcpy(to, from, (size_t)n * size) : to;
}

static Piece copy_of(Lower *q, const Piece *like)
{
    Piece p = *like;
    int n = q->nest->naxis;
    p.at = copied(q, (void *)like->at, n, sizeof *p.at);
    p.sum = copied(q, like->sum, n, sizeof *p.sum);
    p.fresh = copied(q, (void *)like->fresh, q->k->naxis, sizeof *p.fresh);
    p.copies = NULL;
    p.tail = NULL;
    p.ncopies = p.ntail = 0;
    for (int i = 0; i < like->ncopies; i++)
        vec_push(q->a, p.copies, p.ncopies, like->copies[i]);
    for (int i = 0; i < like->ntail; i++)
        vec_push(q->a, p.tail, p.ntail, like->tail[i]);
    return p;
}

/* ---- splits ---------------------------------------------------------------------------------------- */

static void take_apart(Piece *p, const Split *s, Node *base, int outer, int inner)
{
    p->at[s->axis] = NULL;
    p->sum[s->axis] = (struct Sum){s, base, outer, inner};
}

static void add_copies(Lower *q, Piece *p, int axis, int64_t n)
{
    struct Copies c = {axis, n};
    vec_push(q->a, p->copies, p->ncopies, c);
}

static void add_lane(Lower *q, Piece *p, int lanes)
{
    p->t.lanes = lanes;
    p->t.lane = range_new(q->c, p->next++, idx(q->c, lanes));
}

/* The remainder, which counts from the end of the whole blocks. */
static void rest_of(Lower *q, Piece *p, const Split *s)
{
    Node *whole = whole_of(q, s);
    switch (s->form) {
    case REST_COPIES:
        take_apart(p, s, whole, -1, s->inner);
        add_copies(q, p, s->inner, s->remaining);
        break;
    case REST_LANES:
        take_apart(p, s, whole, -1, s->inner);
        add_lane(q, p, s->lanes);
        p->t.part = s->lanes > s->remaining ? (int)s->remaining : 0;
        p->at[s->inner] = p->t.lane;
        break;
    default:
        take_apart(p, s, whole, -1, s->rest);
        p->at[s->rest] = new_range(q, p, s->rest);
        break;
    }
}

static void split_output(Lower *q, int piece, const Split *s)
{
    Piece *p = &q->piece[piece], rest;
    bool alone = s->form == REST_LOOP || s->form == REST_COPIES || s->form == REST_LANES;
    if (alone) {
        rest = copy_of(q, p);
        rest_of(q, &rest, s);
    }
    take_apart(p, s, idx(q->c, 0), s->outer, s->inner);
    if (s->kind == OPT_SPLIT)
        p->at[s->inner] = new_range(q, p, s->inner);
    if (s->form == REST_BESIDE) {
        p->t.tail.name = arena_strdup(q->a, q->nest->axis[s->rest].name);
        p->t.tail.range = s->remaining != 1 ? new_range(q, p, s->rest) : NULL;
        p->t.tail_beside = s->count != 1;
        p->t.ntail = 1;
    }
    p->at[s->outer] = new_range(q, p, s->outer);
    if (s->kind == OPT_UPCAST)
        add_copies(q, p, s->inner, s->amount);
    if (s->kind == OPT_VECTOR) {
        add_lane(q, p, (int)s->amount);
        p->at[s->inner] = p->t.lane;
    }
    if (alone)
        vec_push(q->a, q->piece, q->n, rest);
}

static void tail_loop(Lower *q, Piece *p, const char *name, Node *range)
{
    TileAxis x = {.name = arena_strdup(q->a, name), .range = range};
    if (range->op == OP_RANGE)
        vec_push(q->a, p->tail, p->ntail, x);
}

/* The terms that fill no vector have loops of their own over the other axes of their reduces: what is known inside the first
 * ones ends with them. */
static void tail_of_reduce(Lower *q, Piece *p, const Split *s)
{
    int n, root = q->nest->axis[s->axis].root;
    Node *range = q->k->axes[root].range;
    Node **order = graph_toposort(q->a, end_stores(q->end), q->end->src, &n);
    for (int i = 0; i < n; i++) {
        const Node *r = order[i];
        bool over = false;
        for (uint32_t j = reduce_ranges(r); j < r->nsrc; j++)
            over |= r->src[j] == range;
        for (uint32_t j = reduce_ranges(r); over && j < r->nsrc; j++) {
            int other = nest_root_of(q->k, r->src[j]);
            if (other == root || p->fresh[other])
                continue;
            Node *fresh = p->fresh[other] = range_new(q->c, p->next++, r->src[j]->src[0]);
            tail_loop(q, p, arena_printf(q->a, "r%d", (int)fresh->arg.i), fresh);
        }
    }
    tail_loop(q, p, q->nest->axis[s->rest].name, p->at[s->rest]);
}

/* Partial results in the lanes; where the loop nest has narrower ones, the axis stays a loop. */
static void split_reduced(Lower *q, Piece *p, const Split *s)
{
    if (s->kind == OPT_VECTOR) {
        if (p->t.lane && (p->t.lanes != (int)s->amount || p->t.part))
            return;
        if (!p->t.lane)
            add_lane(q, p, (int)s->amount);
        p->at[s->inner] = p->t.lane;
    }
    if (s->kind == OPT_DOT) {
        if (!p->t.four)
            p->t.four = range_new(q->c, p->next++, idx(q->c, 4));
        p->at[s->inner] = p->t.four;
    }
    if (s->kind == OPT_SPLIT)
        p->at[s->inner] = new_range(q, p, s->inner);
    take_apart(p, s, idx(q->c, 0), s->outer, s->inner);
    p->at[s->outer] = new_range(q, p, s->outer);
    if (s->remaining) {
        p->at[s->rest] = new_range(q, p, s->rest);
        tail_of_reduce(q, p, s);
    }
}

static void do_splits(Lower *q)
{
    for (int i = 0; i < q->nest->nsplit; i++) {
        const Split *s = &q->nest->split[i];
        for (int j = 0, n = q->n; j < n; j++) {
            if (!q->piece[j].at[s->axis])
                continue;
            if (q->nest->axis[s->axis].reduced)
                split_reduced(q, &q->piece[j], s);
            else
                split_output(q, j, s);
        }
    }
}

/* ---- expressions ------------------------------------------------------------------------------------- */

static Node *value(Lower *q, const Piece *p, int axis)
{
    const struct Sum *s = &p->sum[axis];
    if (!s->split)
        return p->at[axis];
    Node *v = s->base;
    if (s->split->form == REST_OVERLAP)
        return idx_add(q->c,
                       idx_min(q->c,
                               idx_mul(q->c, value(q, p, s->outer), idx(q->c, s->split->amount)),
                               idx(q->c, q->nest->axis[axis].extent - s->split->amount)),
                       value(q, p, s->inner));
    if (s->outer >= 0)
        v = idx_add(q->c, v, idx_mul(q->c, value(q, p, s->outer), idx(q->c, s->split->amount)));
    return s->inner >= 0 ? idx_add(q->c, v, value(q, p, s->inner)) : v;
}

static Env env_new(Lower *q, const Env *outside)
{
    Env e = {.map = NEWN(q->a, Node *, q->known)};
    e.value = NEWN(q->a, Node *, q->k->naxis + 1);
    if (outside)
        memcpy((void *)e.value, (void *)outside->value, (size_t)q->k->naxis * sizeof *e.value);
    return e;
}

/* After the values of an environment are set. */
static void env_ready(Lower *q, Env *e)
{
    for (int i = 0; i < q->k->naxis; i++)
        e->map[q->k->axes[i].range->id] = e->value[i];
}

static Node *lower_reduce(Lower *q, Piece *p, Node *n, const Env *e);
static Node *through_place(Lower *q, Piece *p, Node *n, Node *load);
static Node *through_shared(Lower *q, Piece *p, Node *n, Node *load);

/* Whether all axes of a node that MASK rounded up are where the kernel has elements; NULL if none is. */
static Node *inside_masks(Lower *q, Node *n, const Env *e)
{
    Node *inside = NULL;
    for (int i = 0; i < q->k->naxis; i++) {
        int64_t within = q->nest->axis[i].within;
        if (!within || !e->value[i] || !depends_on(n, q->k->axes[i].range))
            continue;
        Node *one = node_alu2(q->c, OP_LT, INGOT_BOOL, e->value[i], idx(q->c, within));
        inside = inside ? node_alu2(q->c, OP_AND, INGOT_BOOL, inside, one) : one;
    }
    return inside;
}

/* A load or store that keeps within its masks. */
static Node *masked(Lower *q, Node *n, Node *access, const Env *e)
{
    Node *inside = inside_masks(q, n, e), *src[INGOT_MAX_RANK * 4];
    if (!inside)
        return access;
    memcpy((void *)src, (void *)access->src, (size_t)access->nsrc * sizeof *src);
    src[1] = node_alu2(q->c, OP_AND, INGOT_BOOL, access->src[1], inside);
    return node_with(q->c, access, src);
}

/* Zero beyond the end of each of its ranges, since all of its factors are loads that move with it. */
static bool vanishes(const Lower *q, Node *term, Node *range)
{
    if (term->op == OP_CAST)
        return vanishes(q, term->src[0], range);
    if (term->op == OP_MUL)
        return vanishes(q, term->src[0], range) && vanishes(q, term->src[1], range);
    return term->op == OP_LOAD && depends_on(term, range);
}

/* The value of a reduce's terms, its identity beyond the ends of masked axes. */
static Node *masked_term(Lower *q, Node *n, Node *body, const Env *e)
{
    Node *inside = NULL;
    for (uint32_t i = reduce_size(n); i < n->nsrc; i++) {
        int root = nest_root_of(q->k, n->src[i]);
        bool zero = n->arg.i == INGOT_REDUCE_ADD && vanishes(q, n->src[0], n->src[i]);
        Node *one = zero ? NULL : inside_masks(q, n->src[i], e);
        if (!q->nest->axis[root].within || !one)
            continue;
        inside = inside ? node_alu2(q->c, OP_AND, INGOT_BOOL, inside, one) : one;
    }
    if (!inside)
        return body;
    Node *src[] = {inside, body, reduce_identity(q->c, n)};
    return node_make(q->c, OP_WHERE, body->dtype, (Arg){0}, 3, src, 0, NULL);
}

static Node *lower_stage(Lower *q, Piece *p, Node *n, Env *e);

/* Fused regions are of bounded depth (fuse.c), so recursion is bounded. */
static Node *lower_node(Lower *q, Piece *p, Node *n, Env *e)
{
    if (e->map[n->id])
        return e->map[n->id];
    Node *v = n;
    if (n->op == OP_REDUCE) {
        v = lower_reduce(q, p, n, e);
    } else if (n->op == OP_STAGE) {
        v = lower_stage(q, p, n, e);
    } else if (n->op != OP_RANGE) {
        Node **src = NEWN(q->a, Node *, n->nsrc + 1);
        bool changed = false;
        for (uint32_t i = 0; i < n->nsrc; i++) {
            src[i] = lower_node(q, p, n->src[i], e);
            changed |= src[i] != n->src[i];
        }
        v = changed ? node_with(q->c, n, src) : n;
        if (n->op == OP_LOAD || n->op == OP_STORE)
            v = masked(q, n, v, e);
        if (n->op == OP_LOAD && q->nest->nstage && !q->filling)
            v = q->nest->items ? through_shared(q, p, n, v) : through_place(q, p, n, v);
    }
    return e->map[n->id] = v;
}

static int loop_number(const Piece *p, const Node *range)
{
    for (int i = 0; i < p->t.nreduce; i++)
        if (p->t.reduce[i].range == range)
            return i;
    BUG("a reduce over a range without an axis");
}

/* A reduce over these ranges, in the order of the nest's loops: all values of its state. */
static void reduce_over(Lower *q, const Piece *p, Node *n, Node **body, Node **range, int nrange,
                        Node **out)
{
    int size = (int)reduce_size(n);
    for (int i = 1; i < nrange && q->nest->ordered; i++)
        for (int j = i; j > 0 && loop_number(p, range[j]) < loop_number(p, range[j - 1]); j--) {
            Node *t = range[j];
            range[j] = range[j - 1];
            range[j - 1] = t;
        }
    Node **src = NEWN(q->a, Node *, nrange + size);
    memcpy((void *)src, (void *)body, (size_t)size * sizeof *src);
    for (int i = 0; i < nrange; i++)
        src[size + i] = range[i];
    for (int i = 0; i < size; i++)
        out[i] = nrange ? node_make(q->c, OP_REDUCE, body[i]->dtype,
                                    reduce_arg(reduce_monoid(n), 0, i), size + nrange, src, 0, NULL)
                        : body[i];
}

static bool is_over(const Lower *q, const Node *reduce, int axis)
{
    int n;
    Node *const *own = own_ranges(reduce, &n);
    for (int i = 0; i < n; i++)
        if (nest_root_of(q->k, own[i]) == q->nest->axis[axis].root)
            return true;
    return false;
}

/* The axes that are left of an axis in this loop nest. */
static void leaves(const Piece *p, int axis, int *leaf, int *n)
{
    const struct Sum *s = &p->sum[axis];
    if (!s->split) {
        leaf[(*n)++] = axis;
        return;
    }
    if (s->outer >= 0)
        leaves(p, s->outer, leaf, n);
    if (s->inner >= 0)
        leaves(p, s->inner, leaf, n);
}

static Node *four_terms(Lower *q, const Piece *p, Node *n, Node *product)
{
    return node_make(q->c, OP_REDUCE, n->dtype, n->arg, 2, (Node *[]){product, p->t.four}, 0, NULL);
}

static bool is_signed_byte(const Node *n)
{
    return n->op == OP_CAST && n->src[0]->op == OP_LOAD && n->src[0]->dtype == INGOT_I8;
}

/* In lanes bytes without a sign are multiplied with those that have one: x w = (x + 128) w - 128 w, modulo 2^32.  The sum of the
 * latter is the same for all rows that w is used for.  False: the product is not of two i8, or not of one row and a vector. */
static bool without_sign(Lower *q, const Piece *p, Node *n, Node *product, Node **range, int nrange,
                         Node **out)
{
    Context *c = q->c;
    bool bytes = p->t.lane && product->op == OP_MUL && is_signed_byte(product->src[0]) &&
                 is_signed_byte(product->src[1]);
    if (!bytes || depends_on(product->src[0], p->t.lane) == depends_on(product->src[1], p->t.lane))
        return false;
    int row = depends_on(product->src[0], p->t.lane);
    Node *half = node_const_i(c, INGOT_I32, 128), *w = product->src[1 - row], *x, *less;
    x = node_alu1(c, OP_BITCAST, INGOT_U8, product->src[row]->src[0]);
    x = node_alu2(c, OP_XOR, INGOT_U8, x, node_const_i(c, INGOT_U8, 128));
    x = four_terms(q, p, n, node_alu2(c, OP_MUL, INGOT_I32, node_cast(c, x, INGOT_I32), w));
    less = four_terms(q, p, n, node_alu2(c, OP_MUL, INGOT_I32, half, w));
    reduce_over(q, p, n, &x, range, nrange, &x);
    reduce_over(q, p, n, &less, range, nrange, &less);
    *out = node_alu2(c, OP_SUB, INGOT_I32, x, less);
    return true;
}

/* The whole blocks of a reduce: of what split s and those after it unroll, a reduce for each copy. */
static void whole_blocks(Lower *q, Piece *p, Node *n, const Env *e, int s, Node **out)
{
    for (; s < q->nest->nsplit; s++) {
        const Split *u = &q->nest->split[s];
        if (u->kind != OPT_UNROLL || p->sum[u->axis].split != u || !is_over(q, n, u->axis))
            continue;
        for (int64_t i = 0; i < u->amount; i++) {
            Node *part[MAX_STATE];
            p->at[u->inner] = idx(q->c, i);
            whole_blocks(q, p, n, e, s + 1, i ? part : out);
            if (i)
                monoid_join(q->c, reduce_monoid(n), out, part, out);
        }
        return;
    }
    Env in = env_new(q, e);
    Node **range = NEWN(q->a, Node *, (int)n->nsrc + q->nest->nsplit), *body[MAX_STATE];
    int nrange = 0, *leaf = NEWN(q->a, int, q->nest->naxis + 1), nleaf;
    bool dot = false;
    for (uint32_t i = reduce_size(n); i < n->nsrc; i++) {
        int root = nest_root_of(q->k, n->src[i]), axis = root;
        in.value[root] = value(q, p, root);
        for (; p->sum[axis].split; axis = p->sum[axis].outer)
            dot |= p->sum[axis].split->kind == OPT_DOT;
        nleaf = 0;
        leaves(p, root, leaf, &nleaf);
        for (int j = 0; j < nleaf; j++) {
            Node *at = p->at[leaf[j]];
            if (at->op == OP_RANGE && at != p->t.lane && at != p->t.four)
                range[nrange++] = at;
        }
    }
    env_ready(q, &in);
    for (uint32_t i = 0; i < reduce_size(n); i++)
        body[i] = lower_node(q, p, n->src[i], &in);
    if (reduce_size(n) == 1)
        body[0] = masked_term(q, n, body[0], &in);
    if (dot && without_sign(q, p, n, body[0], range, nrange, out))
        return;
    if (dot)
        body[0] = four_terms(q, p, n, body[0]);
    reduce_over(q, p, n, body, range, nrange, out);
}

/* The terms that fill no vector. */
static void remaining_terms(Lower *q, Piece *p, Node *n, const Env *e, const Split *s, Node **out)
{
    Env in = env_new(q, e);
    Node **range = NEWN(q->a, Node *, n->nsrc), *body[MAX_STATE];
    int nrange = 0, vector = q->nest->axis[s->axis].root;
    for (uint32_t i = reduce_size(n); i < n->nsrc; i++) {
        int root = nest_root_of(q->k, n->src[i]);
        Node *r = root == vector ? p->at[s->rest] : p->fresh[root];
        in.value[root] = root == vector ? idx_add(q->c, whole_of(q, s), r) : r;
        if (r->op == OP_RANGE)
            range[nrange++] = r;
    }
    env_ready(q, &in);
    for (uint32_t i = 0; i < reduce_size(n); i++)
        body[i] = lower_node(q, p, n->src[i], &in);
    reduce_over(q, p, n, body, range, nrange, out);
}

static Node *lower_reduce(Lower *q, Piece *p, Node *n, const Env *e)
{
    Node *state[MAX_STATE], *more[MAX_STATE];
    whole_blocks(q, p, n, e, 0, state);
    for (int i = 0; i < q->nest->nsplit; i++) {
        const Split *s = &q->nest->split[i];
        if (s->kind != OPT_VECTOR || p->sum[s->axis].split != s || !is_over(q, n, s->axis))
            continue;
        memcpy((void *)more, (void *)state, sizeof more);
        monoid_block(q->c, reduce_monoid(n), more, p->t.lane, state);
        if (!s->remaining)
            continue;
        remaining_terms(q, p, n, e, s, more);
        monoid_join(q->c, reduce_monoid(n), state, more, state);
    }
    return state[reduce_part(n)];
}

/* ---- places ----------------------------------------------------------------------------------------------- */

static int position(const Nest *n, int axis)
{
    for (int i = 0; i < n->norder; i++)
        if (n->order[i] == axis)
            return i;
    return n->norder;
}

/* Do the lanes of this loop nest read neighbours? */
static bool in_neighbours(const Lower *q, const Piece *p, Node *load)
{
    int64_t stride;
    for (int i = 0; i < q->nest->naxis && p->t.lane; i++) {
        Node *range = q->k->axes[q->nest->axis[i].root].range;
        if (p->at[i] == p->t.lane && depends_on(load, range))
            return access_stride(q->k, load, range, &stride) && stride == 1;
    }
    return true;
}

/* Is the argument worth a place in this loop nest? Not where no loop reads the same again, as in those of a few rows, unless
 * only a place has it in lanes. */
static bool staged_here(const Lower *q, const Piece *p, const Stage *s)
{
    const Nest *n = q->nest;
    Node *load = NULL;
    int count;
    Node **order = graph_toposort(q->a, 1, (Node *const *)&q->end, &count);
    for (int i = 0; i < count; i++)
        if (order[i]->op == OP_LOAD && order[i]->src[0]->arg.i == s->arg)
            load = order[i];
    if (load && !in_neighbours(q, p, load))
        return true;
    for (int i = position(n, s->axis) + 1; load && i < n->norder; i++) {
        const NestAxis *x = &n->axis[n->order[i]];
        Node *at = p->at[n->order[i]];
        if (!x->reduced && at && at->op == OP_RANGE && !depends_on(load, q->k->axes[x->root].range))
            return true;
    }
    return false;
}

/* How the axes of a place follow each other: loops in their order, then copies, then lanes. */
static int rank_in_place(const Lower *q, const Piece *p, int axis)
{
    int at = position(q->nest, axis);
    return p->at[axis] == p->t.lane ? 2 * q->nest->naxis
           : at < q->nest->norder   ? at
                                    : q->nest->naxis;
}

static int64_t size_in_place(const Lower *q, const Piece *p, int axis)
{
    if (p->at[axis] == p->t.lane)
        return p->t.lanes;
    if (p->at[axis]->op == OP_RANGE)
        return p->at[axis]->hi + 1;
    for (int i = 0; i < p->ncopies; i++)
        if (p->copies[i].axis == axis)
            return p->copies[i].n;
    for (int i = 0; i < q->nest->nsplit; i++)
        if (q->nest->split[i].inner == axis && q->nest->split[i].kind == OPT_UNROLL)
            return q->nest->split[i].amount;
    return 1;
}

/* A range of the loops that fill a place, in place of one of the nest's. */
static Node *fill_range(Lower *q, Piece *p, int stage, int axis, int64_t size)
{
    Node **fresh = &p->filled[stage][axis];
    if (!*fresh) {
        TileAxis x = {.name = arena_printf(q->a, "%s.s%d", q->nest->axis[axis].name, stage)};
        x.range = *fresh = range_new(q->c, p->next++, idx(q->c, size));
        vec_push(q->a, p->t.fill, p->t.nfill, x);
    }
    return *fresh;
}

/* n: the load as the kernel has it, load: as it is in this loop nest. */
static Node *through_place(Lower *q, Piece *p, Node *n, Node *load)
{
    int stage = 0, *leaf = NEWN(q->a, int, q->nest->naxis + 1), nleaf = 0, nrange = 0;
    while (stage < q->nest->nstage && q->nest->stage[stage].arg != n->src[0]->arg.i)
        stage++;
    if (stage == q->nest->nstage || !p->filled[stage])
        return load;
    for (int i = 0; i < q->k->naxis; i++)
        if ((p->at[i] || p->sum[i].split) && depends_on(n, q->k->axes[i].range))
            leaves(p, i, leaf, &nleaf);
    Node *from[64], *to[64], *at = idx(q->c, 0), *fill = at, *range[64];
    int outside = position(q->nest, q->nest->stage[stage].axis), kept = 0;
    for (int i = 0; i < nleaf;
         i++) /* output loops outside of the axis, and the axis itself, stay */
        if (q->nest->axis[leaf[i]].reduced || p->at[leaf[i]] == p->t.lane ||
            rank_in_place(q, p, leaf[i]) > outside)
            leaf[kept++] = leaf[i];
    for (int i = 1; i < kept; i++)
        for (int j = i; j > 0 && rank_in_place(q, p, leaf[j]) < rank_in_place(q, p, leaf[j - 1]);
             j--) {
            int t = leaf[j];
            leaf[j] = leaf[j - 1];
            leaf[j - 1] = t;
        }
    int64_t elements = 1;
    for (int i = kept; i-- > 0;) {
        Node *x = p->at[leaf[i]], *as = x;
        int64_t size = size_in_place(q, p, leaf[i]);
        bool lanes = x == p->t.lane && in_neighbours(q, p, n);
        if (x->op == OP_RANGE && !lanes) {
            from[nrange] = x;
            const bool part = x == p->t.lane && p->t.part; /* there is nothing behind it */
            to[nrange] = range[nrange] = as =
                fill_range(q, p, stage, leaf[i], part ? p->t.part : size);
            nrange++;
        }
        at = idx_add(q->c, idx_mul(q->c, x, idx(q->c, elements)), at);
        fill = idx_add(q->c, idx_mul(q->c, as, idx(q->c, elements)), fill);
        elements = sat_mul(elements, size);
    }
    q->place[stage] = elements > q->place[stage] ? elements : q->place[stage];
    Node *yes = node_bool(q->c, true), *end[65];
    Arg number = {.i = q->nest->k->narg + stage};
    Node *place = node_make(q->c, OP_BUFFER, n->dtype, number, 0, NULL, 0, NULL);
    end[0] =
        node_make(q->c, OP_STORE, n->dtype, (Arg){0}, 4,
                  (Node *[]){place, yes, substitute(q->c, load, nrange, from, to), fill}, 0, NULL);
    for (int i = 0; i < nrange; i++)
        end[1 + i] = range[nrange - 1 - i];
    end[0] = node_make(q->c, OP_END, INGOT_BOOL, (Arg){0}, 1 + nrange, end, 0, NULL);
    place = node_make(q->c, OP_AFTER, n->dtype, number, 2, (Node *[]){place, end[0]}, 0, NULL);
    return node_make(q->c, OP_LOAD, n->dtype, (Arg){0}, 3, (Node *[]){place, yes, at}, 0, NULL);
}

/* Is an axis that is left inside of the one that a place is staged at, or do the items of a group share it? */
static bool inside_stage(const Lower *q, const Piece *p, const Stage *s, int leaf)
{
    const NestAxis *x = &q->nest->axis[leaf];
    if (x->bound)
        return x->bound == BOUND_LANE;
    (void)p;
    return x->form != AXIS_LOOP || q->nest->axis[s->axis].bound ||
           position(q->nest, leaf) > position(q->nest, s->axis);
}

/* The part of an axis' value that is inside of a place, or outside, and how far the former goes. */
static Node *part_of(Lower *q, const Piece *p, const Stage *s, int axis, bool inside)
{
    const struct Sum *sum = &p->sum[axis];
    if (!sum->split)
        return inside_stage(q, p, s, axis) == inside ? p->at[axis] : idx(q->c, 0);
    Node *outer =
        idx_mul(q->c, part_of(q, p, s, sum->outer, inside), idx(q->c, sum->split->amount));
    return idx_add(q->c, outer, part_of(q, p, s, sum->inner, inside));
}

static int64_t size_inside(const Lower *q, const Piece *p, const Stage *s, int axis)
{
    const struct Sum *sum = &p->sum[axis];
    if (!sum->split)
        return inside_stage(q, p, s, axis) ? size_in_place(q, p, axis) : 1;
    return (size_inside(q, p, s, sum->outer) - 1) * sum->split->amount +
           size_inside(q, p, s, sum->inner);
}

/* The number of an item in its group. */
static Node *item_of(Lower *q, const Piece *p)
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

/* Memory that a group shares: [reduced axes][axes of results], the last one longer by some elements where the items that fill
 * it walk along another. Item after item copies elements in the order in which they lie in the buffer. */
static Node *through_shared(Lower *q, Piece *p, Node *n, Node *load)
{
    enum { APART = 4 };
    const Nest *nest = q->nest;
    int stage = 0, root[INGOT_MAX_RANK * 4], nroot = 0, walk[INGOT_MAX_RANK * 4];
    int64_t size[INGOT_MAX_RANK * 4], pitch[INGOT_MAX_RANK * 4], stride[INGOT_MAX_RANK * 4];
    while (stage < nest->nstage && nest->stage[stage].arg != n->src[0]->arg.i)
        stage++;
    const Stage *s = &nest->stage[stage];
    for (int reduced = 1; reduced >= 0 && stage < nest->nstage; reduced--)
        for (int i = 0; i < q->k->naxis; i++)
            if (nest->axis[i].reduced == reduced && (p->at[i] || p->sum[i].split) &&
                depends_on(n, q->k->axes[i].range))
                root[nroot++] = i;
    if (stage == nest->nstage || !nroot)
        return load;
    int64_t elements = 1, room = 1;
    for (int i = 0; i < nroot; i++) {
        size[i] = size_inside(q, p, s, root[i]);
        stride[i] = first_stride(q, n, q->k->axes[root[i]].range);
        elements = sat_mul(elements, size[i]);
        int at = i;
        for (; at > 0 && stride[walk[at - 1]] > stride[i]; at--)
            walk[at] = walk[at - 1];
        walk[at] = i;
    }
    for (int i = nroot; i-- > 0;) {
        pitch[i] = room;
        room = sat_mul(room, size[i] + (i == nroot - 1 && walk[0] != i ? APART : 0));
    }
    q->place[stage] = room > q->place[stage] ? room : q->place[stage];
    int64_t each = nest->items, rounds = (elements + each - 1) / each;
    Node **turn = &p->filled[stage][0], *e = item_of(q, p), *at = idx(q->c, 0), *fill = at;
    if (!*turn && rounds > 1) {
        TileAxis x = {.name = arena_printf(q->a, "fill%d", stage)};
        x.range = *turn = range_new(q->c, p->next++, idx(q->c, rounds));
        vec_push(q->a, p->t.fill, p->t.nfill, x);
    }
    if (rounds > 1)
        e = idx_add(q->c, idx_mul(q->c, *turn, idx(q->c, each)), e);
    Node *yes = node_bool(q->c, true), *gate = yes, *rest = e;
    if (elements % each)
        gate = node_alu2(q->c, OP_LT, INGOT_BOOL, e, idx(q->c, elements));
    Env env = env_new(q, NULL);
    for (int i = 0; i < nroot; i++) {
        int r = walk[i];
        Node *own = i == nroot - 1 ? rest : idx_mod(q->c, rest, idx(q->c, size[r]));
        rest = idx_div(q->c, rest, idx(q->c, size[r]));
        env.value[root[r]] = idx_add(q->c, part_of(q, p, s, root[r], false), own);
        fill = idx_add(q->c, fill, idx_mul(q->c, own, idx(q->c, pitch[r])));
        at = idx_add(q->c, at, idx_mul(q->c, part_of(q, p, s, root[r], true), idx(q->c, pitch[r])));
    }
    env_ready(q, &env);
    q->filling = true;
    Node *value = lower_node(q, p, n, &env), *end[2];
    q->filling = false;
    Arg number = {.i = nest->k->narg + stage};
    Node *place = node_make(q->c, OP_BUFFER, n->dtype, number, 0, NULL, 0, NULL);
    end[0] = node_make(q->c, OP_STORE, n->dtype, (Arg){0}, 4, (Node *[]){place, gate, value, fill},
                       0, NULL);
    end[1] = *turn;
    end[0] = node_make(q->c, OP_END, INGOT_BOOL, (Arg){0}, 1 + (rounds > 1), end, 0, NULL);
    place = node_make(q->c, OP_AFTER, n->dtype, number, 2, (Node *[]){place, end[0]}, 0, NULL);
    return node_make(q->c, OP_LOAD, n->dtype, (Arg){0}, 3, (Node *[]){place, yes, at}, 0, NULL);
}

/* Does the value move with a range that is none of its own, or of what is below it? */
static bool moves_with(Lower *q, Node *value, Node *range)
{
    int n, nown;
    Node **order = graph_toposort(q->a, 1, &value, &n);
    bool *on = NEWN(q->a, bool, value->id + 1);
    for (int i = 0; i < n; i++) {
        Node *t = order[i], *const *own = own_ranges(t, &nown);
        bool hidden = false;
        for (int j = 0; j < nown; j++)
            hidden |= own[j] == range;
        on[t->id] = t == range;
        for (uint32_t j = 0; j < t->nsrc && !hidden; j++)
            on[t->id] |= on[t->src[j]->id];
    }
    return on[value->id];
}

static int staged_number(Lower *q, Node *value)
{
    int i = 0;
    while (i < q->nstaged && q->staged[i].value != value)
        i++;
    struct Staged s = {value, 1};
    if (i == q->nstaged)
        vec_push(q->a, q->staged, q->nstaged, s);
    return i;
}

/* Where an element lies in its place: copies of stores, then its own ranges, then the lanes of another axis. */
static Node *offset_in_place(Lower *q, Piece *p, Node *n, Node *const *at, int64_t *elements)
{
    Node *offset = idx(q->c, 0);
    *elements = 1;
    for (int i = 0; i < p->ncopies; i++) {
        int axis = p->copies[i].axis;
        if (!moves_with(q, n->src[0], q->k->axes[q->nest->axis[axis].root].range))
            continue;
        offset = idx_add(q->c, idx_mul(q->c, offset, idx(q->c, p->copies[i].n)), p->at[axis]);
        *elements = sat_mul(*elements, p->copies[i].n);
    }
    for (int i = 0; i < (int)n->arg.i; i++) {
        Node *size = n->src[1 + i]->src[0];
        offset = idx_add(q->c, idx_mul(q->c, offset, size), at[i]);
        *elements = sat_mul(*elements, size->hi);
    }
    for (int i = 0; i < q->nest->naxis && p->t.lane; i++)
        if (p->at[i] == p->t.lane && !q->nest->axis[i].reduced &&
            moves_with(q, n->src[0], q->k->axes[q->nest->axis[i].root].range)) {
            offset = idx_add(q->c, idx_mul(q->c, offset, idx(q->c, p->t.lanes)), p->t.lane);
            *elements = sat_mul(*elements, p->t.lanes);
            break;
        }
    return offset;
}

/* What fills the place: a store for each copy that UNROLL makes along its ranges. */
static void fill_stores(Lower *q, Piece *p, Node *n, const Env *e, int s, Node *place, Node **store,
                        int *nstore)
{
    for (; s < q->nest->nsplit; s++) {
        const Split *u = &q->nest->split[s];
        if (u->kind != OPT_UNROLL || p->sum[u->axis].split != u || !is_over(q, n, u->axis))
            continue;
        for (int64_t i = 0; i < u->amount; i++) {
            p->at[u->inner] = idx(q->c, i);
            fill_stores(q, p, n, e, s + 1, place, store, nstore);
        }
        return;
    }
    Env in = env_new(q, e);
    Node *at[INGOT_MAX_RANK];
    int64_t elements;
    for (int i = 0; i < (int)n->arg.i; i++) {
        int root = nest_root_of(q->k, n->src[1 + i]);
        at[i] = in.value[root] = value(q, p, root);
    }
    env_ready(q, &in);
    Node *body = lower_node(q, p, n->src[0], &in);
    Node *src[] = {place, node_bool(q->c, true), body, offset_in_place(q, p, n, at, &elements)};
    store[(*nstore)++] = node_make(q->c, OP_STORE, n->dtype, (Arg){0}, 4, src, 0, NULL);
}

/* The loops that are left of an axis. */
static void loops_left(const Piece *p, int axis, Node **range, int *n)
{
    const struct Sum *s = &p->sum[axis];
    if (!s->split) {
        if (p->at[axis] && p->at[axis]->op == OP_RANGE && p->at[axis] != p->t.lane)
            range[(*n)++] = p->at[axis];
        return;
    }
    if (s->outer >= 0)
        loops_left(p, s->outer, range, n);
    if (s->inner >= 0)
        loops_left(p, s->inner, range, n);
}

/* A value that several read: loops fill its place, wherever all that it depends on is known. */
static Node *lower_stage(Lower *q, Piece *p, Node *n, Env *e)
{
    enum { MOST = 64 };
    int number = staged_number(q, n->src[0]), nend = 0, own = (int)n->arg.i;
    Arg arg = {.i = q->nest->k->narg + q->nest->nstage + number};
    Node *place = node_make(q->c, OP_BUFFER, n->dtype, arg, 0, NULL, 0, NULL);
    Node *end[MOST + 4 * INGOT_MAX_RANK], *at[INGOT_MAX_RANK];
    fill_stores(q, p, n, e, 0, place, end, &nend);
    for (int i = 0; i < own; i++)
        loops_left(p, nest_root_of(q->k, n->src[1 + i]), end, &nend);
    Node *fill = node_make(q->c, OP_END, INGOT_BOOL, (Arg){0}, nend, end, 0, NULL);
    for (int i = 0; i < own; i++)
        at[i] = lower_node(q, p, n->src[1 + own + i], e);
    int64_t elements;
    Node *offset = offset_in_place(q, p, n, at, &elements);
    if (elements > q->staged[number].elements)
        q->staged[number].elements = elements;
    place = node_make(q->c, OP_AFTER, n->dtype, arg, 2, (Node *[]){place, fill}, 0, NULL);
    return node_make(q->c, OP_LOAD, n->dtype, (Arg){0}, 3,
                     (Node *[]){place, node_bool(q->c, true), offset}, 0, NULL);
}

/* The places become arguments of the kernel that is lowered, behind its own. */
static void add_places(Lower *q, Kernel *k)
{
    int n = k->narg;
    int nplace = q->nest->nstage + q->nstaged;
    KernelArg *args = NEWN(q->a, KernelArg, n + nplace);
    memcpy(args, k->args, (size_t)n * sizeof *args);
    k->args = args;
    for (int i = 0; i < nplace; i++) {
        Node **dim = NEWN(q->a, Node *, 1);
        const struct Staged *s = i < q->nest->nstage ? NULL : &q->staged[i - q->nest->nstage];
        *dim = idx(q->c, s ? s->elements : q->place[i]);
        k->args[n + i] = (KernelArg){.dtype = s ? (ingot_dtype)s->value->dtype
                                                : k->args[q->nest->stage[i].arg].dtype,
                                     .rank = 1,
                                     .dims = dim,
                                     .read = true,
                                     .written = true};
    }
    k->narg += nplace;
}

/* ---- loop nests ---------------------------------------------------------------------------------------- */

static void name_loops(Lower *q, Piece *p)
{
    for (int i = 0; i < 3 * q->nest->norder; i++) { /* the grid, the items of a group, loops */
        int axis = q->nest->order[i % q->nest->norder];
        const NestAxis *x = &q->nest->axis[axis];
        TileAxis loop = {arena_strdup(q->a, x->name), p->at[axis], x->bound, x->scanned};
        static const Bound turn[] = {BOUND_GRID, BOUND_LANE, BOUND_NOT};
        if (!loop.range || loop.range->op != OP_RANGE || x->bound != turn[i / q->nest->norder])
            continue;
        if (x->reduced)
            vec_push(q->a, p->t.reduce, p->t.nreduce, loop);
        else
            vec_push(q->a, p->t.axis, p->t.naxis, loop);
    }
    for (int i = 0; i < q->nest->naxis; i++) { /* what is in lanes elsewhere, and whole here */
        const NestAxis *x = &q->nest->axis[i];
        TileAxis loop = {.name = arena_strdup(q->a, x->name), .range = p->at[i]};
        if (x->reduced && x->split >= 0 && !p->sum[i].split && p->at[i] && p->at[i]->op == OP_RANGE)
            vec_push(q->a, p->t.reduce, p->t.nreduce, loop);
    }
    for (int i = 0; i < p->ntail; i++)
        vec_push(q->a, p->t.reduce, p->t.nreduce, p->tail[i]);
}

/* Every copy of one store: those of the first UPCAST are furthest apart. */
static void copy_store(Lower *q, Piece *p, Node *store, int copy, bool beside)
{
    if (copy < p->ncopies) {
        for (int64_t i = 0; i < p->copies[copy].n; i++) {
            p->at[p->copies[copy].axis] = idx(q->c, i);
            copy_store(q, p, store, copy + 1, beside);
        }
        return;
    }
    Env e = env_new(q, NULL);
    for (int i = 0; i < q->k->naxis; i++)
        if (!q->nest->axis[i].reduced && (p->at[i] || p->sum[i].split))
            e.value[i] = value(q, p, i);
    if (beside) {
        const Split *s = p->sum[q->nest->row].split;
        e.value[q->nest->row] =
            idx_add(q->c, whole_of(q, s), p->t.tail.range ? p->t.tail.range : idx(q->c, 0));
    }
    env_ready(q, &e);
    Node *v = lower_node(q, p, store, &e);
    vec_push(q->a, p->t.store, p->t.nstore, v);
}

static void build_stores(Lower *q, Piece *p)
{
    bool beside = p->t.ntail > 0;
    for (int pass = 0; pass < 1 + beside; pass++) {
        p->t.ntail = pass ? p->t.nstore : 0;
        for (int i = 0; i < end_stores(q->end); i++)
            copy_store(q, p, q->end->src[i], 0, pass == 1);
    }
}

/* Loops over the same axis; the inner part of a block is another loop than that over blocks. */
static bool same_loop(const Nest *n, int a, int b)
{
    bool inner[2] = {strstr(n->axis[a].name, ".i") != NULL, strstr(n->axis[b].name, ".i") != NULL};
    return n->axis[a].root == n->axis[b].root && inner[0] == inner[1];
}

static int axis_of_loop(const Lower *q, const Piece *p, int loop)
{
    for (int i = 0; i < q->nest->norder; i++)
        if (p->at[q->nest->order[i]] == p->t.axis[loop].range)
            return q->nest->order[i];
    BUG("a loop without an axis");
}

/* The loops of the first loop nest down to the one that is named are cut; in those of remainders, those of them that are left.
 * What clears a halo has no such loop: it is cut in its outermost one. */
static void share_among_threads(Lower *q)
{
    const Piece *first = &q->piece[0];
    int n = 0;
    for (int i = 0; i < first->t.naxis && !n; i++)
        n = axis_of_loop(q, first, i) == q->nest->thread ? i + 1 : 0;
    n += n == 0 && first->t.naxis > 0;
    for (int i = 0; i < q->n; i++) {
        Piece *p = &q->piece[i];
        bool among = true;
        p->t.parts = q->nest->parts;
        while (among && p->t.fused < p->t.naxis - p->t.tail_beside) {
            among = false;
            for (int j = 0; j < n; j++)
                among |=
                    same_loop(q->nest, axis_of_loop(q, first, j), axis_of_loop(q, p, p->t.fused));
            p->t.fused += among;
        }
    }
}

static void lower_end(Lower *q, Tiles *out)
{
    const Nest *n = q->nest;
    Piece p = {.next = q->k->naxis};
    p.at = NEWN(q->a, Node *, n->naxis + 1);
    p.sum = NEWN(q->a, struct Sum, n->naxis + 1);
    p.fresh = NEWN(q->a, Node *, q->k->naxis + 1);
    for (int i = 0; i < q->k->naxis; i++) {
        bool here = n->axis[i].reduced;
        for (uint32_t s = 1; s < q->end->nsrc && !here; s++)
            here = q->end->src[s] == q->k->axes[i].range;
        p.at[i] = here ? q->k->axes[i].range : NULL;
        if (here && n->axis[i].within)
            p.at[i] = new_range(q, &p, i);
    }
    p.t.items = n->items;
    q->piece = NULL;
    q->n = 0;
    vec_push(q->a, q->piece, q->n, p);
    do_splits(q);
    for (int i = 0; i < q->n; i++) {
        Piece *at = &q->piece[i];
        name_loops(q, at);
        at->filled = NEWN(q->a, Node **, n->nstage + 1);
        for (int j = 0; j < n->nstage; j++)
            if (n->items || staged_here(q, at, &n->stage[j]))
                at->filled[j] = NEWN(q->a, Node *, n->naxis + 1);
    }
    for (int i = 0; i < q->n; i++)
        build_stores(q, &q->piece[i]);
    if (n->parts)
        share_among_threads(q);
    for (int i = 0; i < q->n; i++)
        vec_push(out->k->c->arena, out->tile, out->n, q->piece[i].t);
}

Tiles nest_lower(const Nest *n)
{
    Tiles out = {.k = kernel_copy(n->k)};
    Lower q = {.a = out.k->c->arena, .nest = n, .k = out.k, .c = out.k->c};
    q.known = q.c->nnode;
    q.place = NEWN(q.a, int64_t, n->nstage + 1);
    for (uint32_t i = 0; i < q.k->sink->nsrc; i++) {
        q.end = q.k->sink->src[i];
        lower_end(&q, &out);
    }
    if (n->nstage || q.nstaged)
        add_places(&q, out.k);
    return out;
}

int64_t place_offset(const Kernel *k, int narg, int arg)
{
    enum { LINE = 64 };
    int64_t at = 0;
    for (int i = narg; i < arg; i++)
        at = sat_add(
            at, (sat_mul(k->args[i].dims[0]->hi, dtype_info[k->args[i].dtype].bytes) + LINE - 1) /
                    LINE * LINE);
    return at;
}

int64_t kernel_scratch(const Kernel *k)
{
    bool staged = false;
    for (int i = 0; i < k->nopt; i++)
        staged |= k->opts[i].kind == OPT_STAGE;
    for (int i = 0; i < k->naxis; i++)
        staged |= k->axes[i].staged;
    if (!staged)
        return 0;
    Tiles t = kernel_lower(k);
    int64_t bytes = place_offset(t.k, k->narg, t.k->narg);
    tiles_free(&t);
    return bytes;
}

void tiles_free(Tiles *t)
{
    ingot_context_free(t->k->c);
    *t = (Tiles){0};
}
