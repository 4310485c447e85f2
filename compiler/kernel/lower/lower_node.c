/* lower_node.c - a kernel's expression in a loop nest.
 *
 * Every range of the kernel stands for an expression of the axes that are left of it.  A reduce
 * whose axes were split is rebuilt from the inside out:
 *
 *     UNROLL   a reduce for each copy, joined by the monoid; of dots of bytes one, of the sum of
 *              the copies
 *     DOT      a reduce over four terms, inside of the others
 *     VECTOR   a reduce for each lane, joined over the lanes, then the terms that fill no vector
 *
 * Beyond the end of an axis that MASK rounded up nothing is loaded or stored, and a reduce has its
 * identity. */
#include <string.h>

#include "lower.h"

Node *lower_index(Lower *q, const Piece *p, int axis)
{
    const struct Sum *s = &p->sum[axis];
    if (!s->split)
        return p->first[axis] ? idx_add(q->c, p->first[axis], p->at[axis]) : p->at[axis];
    Node *v = s->base;
    if (s->split->form == REST_OVERLAP)
        return idx_add(
            q->c,
            idx_min(q->c, idx_mul(q->c, lower_index(q, p, s->outer), idx(q->c, s->split->amount)),
                    idx(q->c, q->nest->axis[axis].extent - s->split->amount)),
            lower_index(q, p, s->inner));
    if (s->outer >= 0)
        v = idx_add(q->c, v,
                    idx_mul(q->c, lower_index(q, p, s->outer), idx(q->c, s->split->amount)));
    return s->inner >= 0 ? idx_add(q->c, v, lower_index(q, p, s->inner)) : v;
}

Env env_new(Lower *q, const Env *outside)
{
    Env e = {.map = NEWN(q->a, Node *, q->known)};
    e.value = NEWN(q->a, Node *, q->k->naxis + 1);
    if (outside)
        memcpy((void *)e.value, (void *)outside->value, (size_t)q->k->naxis * sizeof *e.value);
    return e;
}

/* After the values of an environment are set. */
void env_ready(Lower *q, Env *e)
{
    for (int i = 0; i < q->k->naxis; i++)
        e->map[q->k->axes[i].range->id] = e->value[i];
}

static Node *lower_reduce(Lower *q, Piece *p, Node *n, const Env *e);

Node *lower_inside(Lower *q, Node *n, const Env *e)
{
    Node *inside = NULL;
    for (int i = 0; i < q->k->naxis; i++) {
        int64_t within = q->nest->axis[i].within;
        if (!within || !e->value[i] || !depends_on(n, q->k->axes[i].range))
            continue;
        Node *end = within < 0 ? q->k->axes[i].range->src[0] : idx(q->c, within);
        Node *one = node_alu2(q->c, OP_LT, INGOT_BOOL, e->value[i], end);
        inside = inside ? node_alu2(q->c, OP_AND, INGOT_BOOL, inside, one) : one;
    }
    return inside;
}

/* What blocks of OVERLAP have twice is stored by the first of them: of 7 rows, in blocks of 4,
 *
 *     row = min(4 block, 3) + i       stored if row >= 4 block
 *
 * What is stored is read in place by that one alone, too.  NULL: the access moves with no such
 * axis. */
static Node *first_of_blocks(Lower *q, const Piece *p, Node *n)
{
    Node *first = NULL;
    for (int i = 0; i < q->nest->nsplit; i++) {
        const Split *s = &q->nest->split[i];
        const NestAxis *x = &q->nest->axis[s->axis];
        if (s->form != REST_OVERLAP || x->staged || p->sum[s->axis].split != s ||
            !depends_on(n, q->k->axes[x->root].range) ||
            (n->op == OP_LOAD && !q->k->args[n->src[0]->arg.i].written))
            continue;
        Node *begin = idx_mul(q->c, lower_index(q, p, s->outer), idx(q->c, s->amount)),
             *one = node_alu2(q->c, OP_LE, INGOT_BOOL, begin, lower_index(q, p, s->axis));
        first = first ? node_alu2(q->c, OP_AND, INGOT_BOOL, first, one) : one;
    }
    return first;
}

/* A load or store that keeps within its masks. */
static Node *masked(Lower *q, const Piece *p, Node *n, Node *access, const Env *e)
{
    Node *inside = lower_inside(q, n, e), *first = first_of_blocks(q, p, n);
    inside = inside && first ? node_alu2(q->c, OP_AND, INGOT_BOOL, inside, first)
             : first         ? first
                             : inside;
    if (!inside)
        return access;
    return node_with_source(q->c, access, 1,
                            node_alu2(q->c, OP_AND, INGOT_BOOL, access->src[1], inside));
}

/* Zero beyond the end of each of its ranges, since all of its factors are loads that move with
 * it. */
static bool vanishes(const Lower *q, Node *term, Node *range)
{
    if (term->op == OP_CAST)
        return vanishes(q, term->src[0], range);
    if (term->op == OP_MUL)
        return vanishes(q, term->src[0], range) && vanishes(q, term->src[1], range);
    return term->op == OP_LOAD && depends_on(term, range);
}

/* Of a sum of products of which one factor is zero beyond the ends of masked axes the other one,
 * zero there as well: it may be no number.  NULL: there is none. */
static Node *masked_factor(Lower *q, const Node *n, Node *body, Node *inside)
{
    const Node *term = n->src[0];
    bool zero = false;
    for (int k = 0; k < 2 && term->op == OP_MUL && body->op == OP_MUL && !zero; k++) {
        zero = true;
        for (uint32_t i = reduce_size(n); i < n->nsrc; i++)
            zero &= !q->nest->axis[nest_root_of(q->k, n->src[i])].within ||
                    vanishes(q, term->src[k], n->src[i]);
    }
    for (int k = 0; k < 2 && zero; k++) {
        Node *other = body->src[1 - k];
        if (below_casts(body->src[k])->op != OP_LOAD || below_casts(other)->op == OP_LOAD)
            continue;
        Node *src[] = {inside, other, node_const_zero(q->c, (ingot_dtype)other->dtype)};
        other = node_make(q->c, OP_WHERE, other->dtype, (Arg){0}, 3, src, 0, NULL);
        return node_alu2(q->c, OP_MUL, (ingot_dtype)body->dtype, other, body->src[k]);
    }
    return NULL;
}

/* The value of a reduce's terms, its identity beyond the ends of masked axes. */
static Node *masked_term(Lower *q, Node *n, Node *body, const Env *e)
{
    Node *inside = NULL;
    for (uint32_t i = reduce_size(n); i < n->nsrc; i++) {
        int root = nest_root_of(q->k, n->src[i]);
        bool zero = n->arg.i == INGOT_REDUCE_ADD && vanishes(q, n->src[0], n->src[i]);
        Node *one = zero ? NULL : lower_inside(q, n->src[i], e);
        if (!q->nest->axis[root].within || !one)
            continue;
        inside = inside ? node_alu2(q->c, OP_AND, INGOT_BOOL, inside, one) : one;
    }
    if (!inside)
        return body;
    Node *factor = n->arg.i == INGOT_REDUCE_ADD ? masked_factor(q, n, body, inside) : NULL;
    if (factor)
        return factor;
    Node *src[] = {inside, body, reduce_identity(q->c, n)};
    return node_make(q->c, OP_WHERE, body->dtype, (Arg){0}, 3, src, 0, NULL);
}

/* Fused regions are of bounded depth (fuse.c), so recursion is bounded. */
Node *lower_node(Lower *q, Piece *p, Node *n, Env *e)
{
    if (e->map[n->id])
        return e->map[n->id];
    Node *v = n;
    if (n->op == OP_REDUCE) {
        v = lower_reduce(q, p, n, e);
    } else if (n->op == OP_STAGE) {
        v = lower_stage(q, p, n, e);
    } else if (n->op != OP_RANGE) {
        enum { FEW = 4 }; /* as most have */
        Node *few[FEW], **src = n->nsrc > FEW ? NEWN(q->a, Node *, n->nsrc) : few;
        bool changed = false;
        for (uint32_t i = 0; i < n->nsrc; i++) {
            src[i] = lower_node(q, p, n->src[i], e);
            changed |= src[i] != n->src[i];
        }
        v = changed ? node_with(q->c, n, src) : n;
        if (n->op == OP_LOAD || n->op == OP_STORE)
            v = masked(q, p, n, v, e);
        if (n->op == OP_LOAD && q->nest->nstage && !q->filling)
            v = p->t.box         ? load_through_box(q, p, n, v)
                : q->nest->items ? load_through_shared(q, p, n, v)
                                 : load_through_place(q, p, n, v);
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

void lower_sort_loops(Lower *q, const Piece *p, Node **range, int n)
{
    for (int i = 1; i < n && q->nest->ordered; i++)
        for (int j = i; j > 0 && loop_number(p, range[j]) < loop_number(p, range[j - 1]); j--) {
            Node *t = range[j];
            range[j] = range[j - 1];
            range[j - 1] = t;
        }
}

void lower_reduce_over(Lower *q, Piece *p, Node *n, Node **body, Node **range, int nrange,
                       Node **out)
{
    int size = (int)reduce_size(n);
    if (size == 1) {
        lower_sum_over(q, p, n, body, 1, range, nrange, out);
        return;
    }
    lower_sort_loops(q, p, range, nrange);
    Node **src = NEWN(q->a, Node *, nrange + size);
    memcpy((void *)src, (void *)body, (size_t)size * sizeof *src);
    for (int i = 0; i < nrange; i++)
        src[size + i] = range[i];
    for (int i = 0; i < size; i++)
        out[i] = nrange ? node_make(q->c, OP_REDUCE, body[i]->dtype,
                                    reduce_arg(reduce_monoid(n), 0, i), size + nrange, src, 0, NULL)
                        : body[i];
}

void lower_sum_over(Lower *q, Piece *p, Node *n, Node *const *copy, int copies, Node **range,
                    int nrange, Node **out)
{
    lower_sort_loops(q, p, range, nrange);
    Node **src = NEWN(q->a, Node *, nrange + 1);
    nrange = lower_factored(q, p, n, copy, copies, range, nrange, src);
    nrange = lower_in_blocks(q, p, n, src, range, nrange);
    for (int i = 0; i < nrange; i++)
        src[1 + i] = range[i];
    *out = nrange ? node_make(q->c, OP_REDUCE, src[0]->dtype, reduce_arg(reduce_monoid(n), 0, 0),
                              nrange + 1, src, 0, NULL)
                  : src[0];
}

bool lower_is_over(const Lower *q, const Node *n, int axis)
{
    int nown;
    Node *const *own = own_ranges(n, &nown);
    for (int i = 0; i < nown; i++)
        if (nest_root_of(q->k, own[i]) == q->nest->axis[axis].root)
            return true;
    return false;
}

void lower_leaves(const Piece *p, int axis, int *leaf, int *n)
{
    const struct Sum *s = &p->sum[axis];
    if (!s->split) {
        leaf[(*n)++] = axis;
        return;
    }
    if (s->outer >= 0)
        lower_leaves(p, s->outer, leaf, n);
    if (s->inner >= 0)
        lower_leaves(p, s->inner, leaf, n);
}

void lower_loops(Lower *q, const Piece *p, int axis, Node **range, int *n)
{
    int *leaf = NEWN(q->a, int, q->nest->naxis + 1), nleaf = 0;
    lower_leaves(p, axis, leaf, &nleaf);
    for (int i = 0; i < nleaf; i++) {
        Node *at = p->at[leaf[i]];
        bool loop = at && at->op == OP_RANGE && !q->nest->axis[leaf[i]].bound;
        if (loop && at != p->t.lane && at != p->t.four)
            range[(*n)++] = at;
    }
}

static Node *four_terms(Lower *q, const Piece *p, Node *n, Node *product)
{
    return node_make(q->c, OP_REDUCE, n->dtype, n->arg, 2, (Node *[]){product, p->t.four}, 0, NULL);
}

static bool is_signed_byte(const Node *n)
{
    return n->op == OP_CAST && n->src[0]->op == OP_LOAD && n->src[0]->dtype == INGOT_I8;
}

/* Where lanes do not multiply pairs of any sign, bytes without a sign are multiplied with those
 * that have one: x w = (x + 128) w - 128 w, modulo 2^32.  The sum of the latter is the same for all
 * rows that w is used for.  False: the product is not of two i8, or not of one row and a vector. */
static bool without_sign(Lower *q, Piece *p, Node *n, Node *product, Node **range, int nrange,
                         Node **out)
{
    Context *c = q->c;
    bool bytes = !q->k->any_sign && p->t.lane && product->op == OP_MUL &&
                 is_signed_byte(product->src[0]) && is_signed_byte(product->src[1]);
    if (!bytes || depends_on(product->src[0], p->t.lane) == depends_on(product->src[1], p->t.lane))
        return false;
    int row = depends_on(product->src[0], p->t.lane);
    Node *half = node_const_i(c, INGOT_I32, 128), *w = product->src[1 - row], *x, *less;
    x = node_alu1(c, OP_BITCAST, INGOT_U8, product->src[row]->src[0]);
    x = node_alu2(c, OP_XOR, INGOT_U8, x, node_const_i(c, INGOT_U8, 128));
    x = four_terms(q, p, n, node_alu2(c, OP_MUL, INGOT_I32, node_cast(c, x, INGOT_I32), w));
    less = four_terms(q, p, n, node_alu2(c, OP_MUL, INGOT_I32, half, w));
    lower_reduce_over(q, p, n, &x, range, nrange, &x);
    lower_reduce_over(q, p, n, &less, range, nrange, &less);
    *out = node_alu2(c, OP_SUB, INGOT_I32, x, less);
    return true;
}

const Split *lower_next_unroll(const Lower *q, const Piece *p, const Node *n, int *s)
{
    for (; *s < q->nest->nsplit; ++*s) {
        const Split *u = &q->nest->split[*s];
        if (u->kind == OPT_UNROLL && p->sum[u->axis].split == u && lower_is_over(q, n, u->axis))
            return u;
    }
    return NULL;
}

/* The terms of an iteration, and its loops.  True: they are taken by fours. */
static bool terms_of_block(Lower *q, Piece *p, Node *n, const Env *e, Node **body, Node **range,
                           int *nrange)
{
    Env in = env_new(q, e);
    bool dot = false;
    *nrange = 0;
    for (uint32_t i = reduce_size(n); i < n->nsrc; i++) {
        int root = nest_root_of(q->k, n->src[i]), axis = root;
        in.value[root] = lower_index(q, p, root);
        for (; axis >= 0 && p->sum[axis].split; axis = p->sum[axis].outer)
            dot |= p->sum[axis].split->kind == OPT_DOT;
        lower_loops(q, p, root, range, nrange);
    }
    *nrange = lower_inner_loops(q, p, n, range, *nrange);
    env_ready(q, &in);
    for (uint32_t i = 0; i < reduce_size(n); i++)
        body[i] = lower_node(q, p, n->src[i], &in);
    if (reduce_size(n) == 1)
        body[0] = masked_term(q, n, body[0], &in);
    return dot;
}

/* Is a sum of integers among what it is made of? */
static bool has_integer_sum(const Node *n)
{
    if (n->op == OP_REDUCE)
        return n->dtype == INGOT_I32;
    for (uint32_t i = 0; i < n->nsrc && op_is_alu(n->op); i++)
        if (has_integer_sum(n->src[i]))
            return true;
    return false;
}

/* Does it add a block's sum of dots, times the block's scale, in each term? */
static bool sums_blocks(const Node *n)
{
    return n->dtype == INGOT_F32 && reduce_size(n) == 1 && reduce_monoid(n) == INGOT_REDUCE_ADD &&
           has_integer_sum(n->src[0]);
}

/* The copies that UNROLL makes, by split s and those after it, of what is added to one accumulator
 * in turn.  Sums have the accumulators that UPCAST makes, in registers of which there are few: dots
 * of bytes, whose sum is exact in any order; and blocks of them, which are added in the order that
 * loops would have.  False: it is neither, or has a rest. */
static bool unrolled_terms(Lower *q, Piece *p, Node *n, const Env *e, int s, Node ***copy,
                           int *copies, Node **range, int *nrange)
{
    const Split *u = lower_next_unroll(q, p, n, &s);
    Node *body[MAX_STATE];
    const bool blocks = p->t.lane && sums_blocks(n);
    if ((p->t.lane && n->dtype != INGOT_I32 && !blocks) || (u && lower_has_rest(q, u)))
        return false;
    if (!u) {
        const bool dot = terms_of_block(q, p, n, e, body, range, nrange);
        if (!dot && !blocks)
            return false;
        vec_push(q->a, *copy, *copies, dot ? four_terms(q, p, n, body[0]) : body[0]);
        return true;
    }
    for (int64_t i = 0; i < u->amount; i++) {
        p->at[u->inner] = idx(q->c, i);
        if (!unrolled_terms(q, p, n, e, s + 1, copy, copies, range, nrange))
            return false;
    }
    return true;
}

/* The whole blocks of a reduce: of what split s and those after it unroll, a reduce for each copy,
 * and one for what is left. */
static void whole_blocks(Lower *q, Piece *p, Node *n, const Env *e, int s, Node **out)
{
    Node **range = NEWN(q->a, Node *, (int)n->nsrc + q->nest->nsplit), *body[MAX_STATE];
    Node **copy = NULL;
    int nrange = 0, copies = 0;
    const Split *u = lower_next_unroll(q, p, n, &s);
    if (u && unrolled_terms(q, p, n, e, s, &copy, &copies, range, &nrange)) {
        lower_sum_over(q, p, n, copy, copies, range, nrange, out);
        return;
    }
    if (u) {
        for (int64_t i = 0; i < u->amount; i++) {
            Node *part[MAX_STATE];
            p->at[u->inner] = idx(q->c, i);
            whole_blocks(q, p, n, e, s + 1, i ? part : out);
            if (i)
                monoid_join(q->c, reduce_monoid(n), out, part, out);
        }
        if (lower_has_rest(q, u)) {
            struct Sum blocks = p->sum[u->axis];
            Node *part[MAX_STATE];
            p->sum[u->axis] = (struct Sum){u, lower_whole(q, u), -1, u->rest};
            whole_blocks(q, p, n, e, s + 1, part);
            p->sum[u->axis] = blocks;
            monoid_join(q->c, reduce_monoid(n), out, part, out);
        }
        return;
    }
    bool dot = terms_of_block(q, p, n, e, body, range, &nrange);
    if (dot && without_sign(q, p, n, body[0], range, nrange, out))
        return;
    if (dot)
        body[0] = four_terms(q, p, n, body[0]);
    lower_reduce_over(q, p, n, body, range, nrange, out);
}

void lower_blocks(Lower *q, Piece *p, Node *n, const Env *e, Node **state)
{
    whole_blocks(q, p, n, e, 0, state);
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
        in.value[root] = root == vector ? idx_add(q->c, lower_whole(q, s), r) : r;
        if (r->op == OP_RANGE)
            range[nrange++] = r;
    }
    env_ready(q, &in);
    for (uint32_t i = 0; i < reduce_size(n); i++)
        body[i] = lower_node(q, p, n->src[i], &in);
    lower_reduce_over(q, p, n, body, range, nrange, out);
}

/* Is it a sum that the matrix unit of this loop nest takes? */
static bool for_unit(const Lower *q, const Piece *p, Node *n)
{
    return p->t.tc && nest_tc_terms(q->nest, q->k, n) >= 0;
}

void lower_terms(Lower *q, Piece *p, Node *n, const Env *e, Node **state)
{
    Node *more[MAX_STATE];
    if (p->t.quad) {
        state[0] = rows_part(q, p, n);
        return;
    }
    if (for_unit(q, p, n)) {
        state[0] = lower_fragments(q, p, n);
        return;
    }
    whole_blocks(q, p, n, e, 0, state);
    for (int i = 0; i < q->nest->nsplit; i++) {
        const Split *s = &q->nest->split[i];
        if (s->kind != OPT_VECTOR || p->sum[s->axis].split != s || !lower_is_over(q, n, s->axis))
            continue;
        memcpy((void *)more, (void *)state, sizeof more);
        monoid_block(q->c, reduce_monoid(n), more, p->t.lane, state);
        if (!lower_has_rest(q, s))
            continue;
        remaining_terms(q, p, n, e, s, more);
        monoid_join(q->c, reduce_monoid(n), state, more, state);
    }
}

static Node *lower_reduce(Lower *q, Piece *p, Node *n, const Env *e)
{
    Node *state[MAX_STATE];
    if (p->t.quad)
        return rows_reduce(q, p, n);
    if (lower_is_shared(q, n))
        return lower_shared(q, p, n);
    if (lower_is_partial(q, n))
        return lower_partial(q, p, n, e);
    lower_terms(q, p, n, e, state);
    return state[reduce_part(n)];
}
