/* tc_rows.c - rows of sums that stay in the registers of lanes, with all that is made of a row:
 * attention.
 *
 *     s = sum over k of q[i,k] k[j,k]          the inner product, of a unit whose lanes
 *                                              have the sums
 *     m = max over j of s, e = exp(s - m), l = sum over j of e
 *     y = sum over j of e[j] v[j,d] / l        the outer one, of the same unit
 *
 * What a kernel has in places along a row (STAGE), and what it reduces along one, needs neither
 * place nor loop here: a row is so many fragments of sums, of each of which a lane has two lines
 * and in both two columns (tc_element()),
 *
 *     row = 8 line + lane / 4        j = 8 copy + 2 (lane % 4) + column
 *
 * (of units of 32 bits j = 8 copy + lane % 4 + 4 column: tc_row_step()) and the value at j is an
 * expression of PROJ(the sum of fragment `copy`, 2 line + column): equal ones are one node.  A
 * reduce joins what the lane has, then the four lanes of a line:
 *
 *     REDUCE(values joined, quad)
 *
 * Warps may have a part of each row (BIND of its axes to warps): then what is reduced along it is
 * joined in memory of the group, as any sum that items share (lower_shares.c).
 *
 * Values that the lane has are what it has to have of an operand of the outer product (PACK).
 *
 * A unit that reads operands in places has fragments of more columns, each as so many of eight.
 *
 * Rows that are longer than registers hold are taken by blocks, in a loop (Tile.along) that all of
 * their axes share.  With m the greatest of all blocks so far, m' of those before,
 *
 *     m = max(m', max over the block of s)        e = exp(s - m), of the block
 *     l = exp(m' - m) l + sum of e                y = exp(m' - m) y + e v
 *
 * m' is the state of its reduce (PARAM), l and y are scaled sums (MONOID_SCALED).  So no score is
 * made twice, or stored.  Which rows can be taken so, row_blocks.c says. */
#include <math.h>
#include <string.h>

#include "lower.h"

enum { EIGHT = 8 }; /* columns of which a lane has two, and rows between those that it has */

static const Tc *unit(const Lower *q)
{
    return q->nest->inner;
}

/* Where the lane's column of eight columns is in its row. */
static Node *along_row(Lower *q, Piece *p, int copy, int column)
{
    Node *row, *at;
    tc_sum_element(q->c, unit(q), p->lane, column, &row, &at);
    return idx_add(q->c, idx(q->c, (int64_t)copy * EIGHT), tc_row_column(q->c, unit(q), at));
}

static void set_along(Lower *q, Piece *p, Node *at)
{
    for (int i = 0; i < q->nest->naxis; i++)
        if (q->nest->axis[i].row)
            p->at[i] = at;
}

static void set_element(Lower *q, Piece *p, int line, int copy, int column)
{
    Node *column_of_results;
    p->line = line;
    p->copy = copy;
    p->column = column;
    tc_sum_element(q->c, unit(q), p->lane, 2 * line, &p->at[q->nest->inner_axis[TC_ROWS]],
                   &column_of_results);
    set_along(q, p, along_row(q, p, copy, column));
}

/* How much of a row a warp has, of a block if there are such. */
static int64_t row_extent(const Nest *n, int axis)
{
    return n->axis[nest_innermost(n, axis)].extent;
}

/* Blocks of rows that nothing is bound to: all that lies along them is in one loop. */
static void blocks_begin(Lower *q, Piece *p)
{
    const Nest *n = q->nest;
    for (int i = 0; i < n->nsplit; i++) {
        const int outer = n->split[i].outer;
        if (!nest_has_row(n, n->split[i].inner) || n->axis[outer].bound ||
            n->axis[outer].split >= 0)
            continue;
        p->t.along = p->t.along ? p->t.along : p->at[outer];
        p->at[outer] = p->t.along;
    }
    if (p->t.along && p->t.along->op != OP_RANGE)
        p->t.along = NULL;
}

/* Groups of a cluster have blocks of all axes along a row alike. */
static void ranks_begin(Lower *q, Piece *p)
{
    for (int i = 0; i < q->nest->naxis; i++)
        if (q->nest->axis[i].bound == BOUND_CLUSTER) {
            p->t.ranks = p->t.ranks ? p->t.ranks : p->at[i];
            p->at[i] = p->t.ranks;
        }
}

/* How many sums of products a row is made of. */
static int inner_sums(const Lower *q)
{
    Node *range[TC_AXES], **order;
    int n, sums = 0;
    for (int i = 0; i < TC_AXES; i++)
        range[i] = q->k->axes[q->nest->axis[q->nest->inner_axis[i]].root].range;
    order = graph_toposort(q->a, 1, &q->k->sink, &n);
    for (int i = 0; i < n; i++)
        sums += tc_takes(unit(q), order[i], range);
    return sums;
}

void rows_begin(Lower *q, Piece *p)
{
    blocks_begin(q, p);
    ranks_begin(q, p);
    p->lines = range_new(q->c, p->next++, idx(q->c, unit(q)->lanes / 4));
    p->t.quad = range_new(q->c, p->next++, idx(q->c, 4));
    p->t.row_sums =
        (int)(row_extent(q->nest, q->nest->inner_axis[TC_COLUMNS]) * unit(q)->m / unit(q)->lanes);
    p->t.rows = inner_sums(q);
    p->lane = idx_add(q->c, idx_mul(q->c, p->lines, idx(q->c, 4)), p->t.quad);
    set_element(q, p, 0, 0, 0);
}

/* ---- what was made already, of fragments with line -1 ---------------------------------------- */

static Node *made(const Piece *p, const Node *of, int line, int copy, int column)
{
    for (int i = 0; i < p->nmade; i++) {
        const struct Made *m = &p->made[i];
        if (m->of == of && m->line == line && m->copy == copy && m->column == column)
            return m->value;
    }
    return NULL;
}

static Node *make(Lower *q, Piece *p, const Node *of, int line, int copy, int column, Node *value)
{
    struct Made m = {of, line, copy, column, value};
    vec_push(q->a, p->made, p->nmade, m);
    return value;
}

/* ---- elements of rows ------------------------------------------------------------------------ */

/* What all results know, with the indices that the axes have now. */
static Env results_env(Lower *q, Piece *p)
{
    Env in = env_new(q, NULL);
    for (int i = 0; i < q->k->naxis; i++)
        if (!q->nest->axis[i].reduced && (p->at[i] || p->sum[i].split))
            in.value[i] = lower_index(q, p, i);
    return in;
}

/* The same at one more axis. */
static Env env_at(Lower *q, Piece *p, int root)
{
    Env in = results_env(q, p);
    in.value[root] = lower_index(q, p, root);
    env_ready(q, &in);
    return in;
}

static bool has_factor(const Node *x)
{
    return x->op == OP_MUL && x->src[1]->op == OP_CONST && x->dtype == INGOT_F32 &&
           node_float(x->src[1]) > 0 && !isinf(node_float(x->src[1]));
}

/* x k where a mask leaves it, else minus infinity, as (x, else minus infinity) k, which has the
 * same bits for k > 0: then the mask chooses among sums, and products wait for nothing. */
static Node *factor_last(Context *c, Node *v)
{
    if (v->op != OP_WHERE || v->src[2]->op != OP_CONST || v->dtype != INGOT_F32 ||
        node_float(v->src[2]) != -INFINITY)
        return v;
    Node *x = factor_last(c, v->src[1]);
    return has_factor(x) ? node_alu2(c, OP_MUL, INGOT_F32,
                                     node_where(c, v->src[0], x->src[0], v->src[2]), x->src[1])
                         : v;
}

/* The greatest of x k is k times the greatest x, for k > 0: it leaves the values if all
 * have it. */
static Node *common_factor(Context *c, Node *n, Node **value, int count)
{
    Node *factor = NULL;
    bool all = reduce_monoid(n) == INGOT_REDUCE_MAX;
    for (int i = 0; i < count && all; i++) {
        value[i] = factor_last(c, value[i]);
        all = has_factor(value[i]) && (!factor || factor == value[i]->src[1]);
        factor = all ? value[i]->src[1] : NULL;
    }
    for (int i = 0; i < count && factor; i++)
        value[i] = value[i]->src[0];
    return factor;
}

/* Does a mask of coordinates leave all elements that a warpgroup has of the block?  As soon as it
 * leaves its first row the last of them, or the first of them its last row; NULL: nobody knows. */
static Node *whole_block(Lower *q, Piece *p, Node *stage, Node *mask)
{
    const int rows = q->nest->inner_axis[TC_ROWS], root = nest_root_of(q->k, stage->src[1]);
    Node *range[] = {q->k->axes[root].range, q->k->axes[q->nest->axis[rows].root].range};
    int64_t stride[2];
    const bool negated = mask->op == OP_NOT;
    const Node *less = negated ? mask->src[0] : mask;
    if (!p->t.along || !tc_in_place(unit(q)) || (less->op != OP_LT && less->op != OP_LE) ||
        less->src[0]->dtype != INGOT_INDEX)
        return NULL;
    Node *room = idx_sub(q->c, less->src[!negated], less->src[negated]);
    for (int i = 0; i < 2; i++)
        if (!depends_on(room, range[i]) || !range_stride(q->c, room, range[i], &stride[i]))
            return NULL;
    const bool early = stride[0] <= 0 && stride[1] >= 0; /* the first ones of a row are left */
    if (!early && (stride[0] < 0 || stride[1] > 0))
        return NULL;
    const int line = p->line, copy = p->copy, column = p->column;
    p->at[rows] = idx(q->c, early ? 0 : unit(q)->m - 1);
    set_along(q, p, idx(q->c, early ? row_extent(q->nest, root) - 1 : 0));
    Env in = env_at(q, p, root);
    Node *whole = lower_node(q, p, mask, &in);
    set_element(q, p, line, copy, column);
    return whole;
}

/* The first choice by a mask that an element is made of, element by element. */
static Node *first_choice(Node *v)
{
    Node *found = v->op == OP_WHERE ? v : NULL;
    for (uint32_t i = 0; i < v->nsrc && op_is_alu(v->op) && !found; i++)
        found = v->src[i]->dtype == INGOT_INDEX ? NULL : first_choice(v->src[i]);
    return found;
}

/* The value with other sources, where one of them is another. */
static Node *with_sources(Context *c, Node *v, Node *const *src)
{
    bool same = true;
    for (uint32_t i = 0; i < v->nsrc; i++)
        same &= src[i] == v->src[i];
    return same ? v : node_with(c, v, src);
}

/* What it is where the mask leaves something. */
static Node *where_left(Context *c, Node *v, const Node *mask)
{
    Node *src[MAX_ALU_SRC];
    if (!op_is_alu(v->op) || v->dtype == INGOT_INDEX)
        return v;
    if (v->op == OP_WHERE && v->src[0] == mask)
        return where_left(c, v->src[1], mask);
    for (uint32_t i = 0; i < v->nsrc; i++)
        src[i] = where_left(c, v->src[i], mask);
    return with_sources(c, v, src);
}

/* Where all of a block is left its mask need not be asked (tile_whole_block()), and where it is
 * asked all has been computed before. */
static Node *unless_whole(Context *c, Node *v, Node *whole, const Node *mask)
{
    Node *src[MAX_ALU_SRC];
    if (!op_is_alu(v->op) || v->dtype == INGOT_INDEX)
        return v;
    if (v->op == OP_WHERE && v->src[0] == mask && v->src[2]->op == OP_CONST) {
        Node *x =
            factor_last(c, node_where(c, v->src[0], where_left(c, v->src[1], mask), v->src[2]));
        Node *choice = has_factor(x) ? x->src[0] : x;
        choice = node_where(c, whole, choice->src[1], choice);
        return has_factor(x) ? node_alu2(c, OP_MUL, (ingot_dtype)x->dtype, choice, x->src[1])
                             : choice;
    }
    for (uint32_t i = 0; i < v->nsrc; i++)
        src[i] = unless_whole(c, v->src[i], whole, mask);
    return with_sources(c, v, src);
}

Node *rows_stage(Lower *q, Piece *p, Node *n)
{
    Node *known = made(p, n->src[0], p->line, p->copy, p->column);
    if (known)
        return known;
    Env in = env_at(q, p, nest_root_of(q->k, n->src[1]));
    Node *choice = first_choice(n->src[0]);
    Node *whole = choice ? whole_block(q, p, n, choice->src[0]) : NULL;
    known = lower_node(q, p, n->src[0], &in);
    known = whole ? unless_whole(q->c, known, whole, lower_node(q, p, choice->src[0], &in))
                  : factor_last(q->c, known);
    return make(q, p, n->src[0], p->line, p->copy, p->column, known);
}

/* The value at the element that the axes are at, or what changes nothing beyond the end of the
 * row. */
static Node *element_of(Lower *q, Piece *p, Node *value, Node *range, Node *identity)
{
    const int root = nest_root_of(q->k, range);
    Env in = env_at(q, p, root);
    Node *inside = q->nest->axis[root].within ? lower_inside(q, range, &in) : NULL, *v;
    if (inside && node_is_const_i(inside, 0))
        return identity;
    v = lower_node(q, p, value, &in);
    if (!inside || node_is_const_i(inside, 1) || mask_is_within(q->k, value, range, identity))
        return v;
    return node_make(q->c, OP_WHERE, v->dtype, (Arg){0}, 3, (Node *[]){inside, v, identity}, 0,
                     NULL);
}

/* As a tree: then none waits for all that are before it. */
static Node *join_values(Lower *q, Node *n, Node **value, int count)
{
    if (count == 1)
        return *value;
    Node *x = join_values(q, n, value, (count + 1) / 2), *y, *out;
    y = join_values(q, n, value + (count + 1) / 2, count / 2);
    monoid_join(q->c, reduce_monoid(n), &x, &y, &out);
    return out;
}

/* What the lane has of it. */
static Node *reduce_of_lane(Lower *q, Piece *p, Node *n)
{
    const int line = p->line, copy = p->copy, column = p->column;
    const int eights = (int)(row_extent(q->nest, nest_root_of(q->k, n->src[1])) / EIGHT);
    Node *identity = reduce_identity(q->c, n);
    Node **value = NEWN(q->a, Node *, 2 * eights);
    int count = 0;
    p->inside++;
    for (int i = 0; i < 2 * eights; i++) {
        set_element(q, p, line, i / 2, i % 2);
        Node *v = element_of(q, p, n->src[0], n->src[1], identity);
        if (v != identity)
            value[count++] = v;
    }
    p->inside--;
    set_element(q, p, line, copy, column);
    Node *factor = common_factor(q->c, n, value, count), *joined = join_values(q, n, value, count);
    return factor ? node_alu2(q->c, OP_MUL, INGOT_F32, joined, factor) : joined;
}

static Node *reduce_over(Lower *q, int monoid, int nsrc, Node *const *src)
{
    return node_make(q->c, OP_REDUCE, src[0]->dtype, reduce_arg(monoid, 0, 0), nsrc, src, 0, NULL);
}

enum { FACTOR = -2 }; /* in place of the fragment: what sums so far are multiplied by */

/* Zero where nothing is greater than minus infinity: what is less it is minus infinity still. */
static Node *greatest_or_zero(Lower *q, Node *n, Node *greatest)
{
    Node *none = node_alu2(q->c, OP_EQ, INGOT_BOOL, greatest, reduce_identity(q->c, n));
    return node_where(q->c, none, node_const_zero(q->c, (ingot_dtype)n->dtype), greatest);
}

/* The greatest of a block, of all lanes that have the line. */
static Node *greatest_of_block(Lower *q, Piece *p, Node *n)
{
    Node *own[] = {reduce_of_lane(q, p, n), p->t.quad};
    return reduce_over(q, INGOT_REDUCE_MAX, 2, own);
}

/* The greatest of all blocks so far. */
static Node *greatest_so_far(Lower *q, Piece *p, Node *n)
{
    Context *c = q->c;
    Node *src[] = {greatest_of_block(q, p, n), p->t.along};
    Node *before =
        node_make(c, OP_PARAM, n->dtype, reduce_arg(INGOT_REDUCE_MAX, 0, 0), 2, src, 0, NULL);
    Node *now = node_alu2(c, OP_MAX, (ingot_dtype)n->dtype, before, src[0]);
    now = greatest_or_zero(q, n, now);
    Node *less = node_alu2(c, OP_SUB, (ingot_dtype)n->dtype, before, now);
    make(q, p, n, p->line, FACTOR, 0, node_alu1(c, OP_EXP, (ingot_dtype)n->dtype, less));
    return now;
}

/* A sum of what a block has of it. */
static Node *over_blocks(Lower *q, Piece *p, Node *n, Node *own)
{
    bool good = true;
    Node *shift = p->t.along ? row_shift(q->nest, q->k, n->src[0], &good) : NULL;
    if (!p->t.along)
        return own;
    p->inside++;
    if (!good)
        BUG("rows that cannot be taken by blocks");
    if (shift)
        (void)rows_terms(q, p, shift);
    p->inside--;
    if (!shift) {
        Node *src[] = {own, p->t.along};
        return reduce_over(q, INGOT_REDUCE_ADD, 2, src);
    }
    Node *src[] = {own, made(p, shift, p->line, FACTOR, 0), p->t.along};
    return reduce_over(q, MONOID_SCALED, 3, src);
}

static Node *reduce_along(Lower *q, Piece *p, Node *n)
{
    Node *known = made(p, n, p->line, 0, 0);
    if (p->t.along && reduce_monoid(n) == INGOT_REDUCE_MAX && !p->inside) {
        Node *src[] = {greatest_of_block(q, p, n), p->t.along}; /* known behind all blocks */
        return reduce_over(q, INGOT_REDUCE_MAX, 2, src);
    }
    if (known)
        return known;
    if (p->t.along && reduce_monoid(n) == INGOT_REDUCE_MAX)
        return make(q, p, n, p->line, 0, 0, greatest_so_far(q, p, n));
    Node *own = over_blocks(q, p, n, reduce_of_lane(q, p, n)), *src[] = {own, p->t.quad};
    return make(q, p, n, p->line, 0, 0, reduce_over(q, reduce_monoid(n), 2, src));
}

/* ---- products -------------------------------------------------------------------------------- */

/* The products of all iterations of these loops, one after the other. */
static Node *written_out(Lower *q, Node *one, Node *const *loop, int n)
{
    if (!n)
        return one;
    Node *all = NULL;
    for (int64_t i = 0; i <= loop[0]->hi; i++) {
        Node *at = idx(q->c, i), *now = substitute(q->c, one, 1, &loop[0], &at);
        now = written_out(q, now, loop + 1, n - 1);
        all = all ? node_alu2(q->c, OP_ADD, one->dtype, all, now) : now;
    }
    return all;
}

/* Are there no rows from this line of a fragment on?  Nobody reads what is made of them. */
static bool beyond_rows(const Nest *n, int line)
{
    const NestAxis *x = &n->axis[n->inner_axis[TC_ROWS]];
    return x->root == n->inner_axis[TC_ROWS] && x->within > 0 && x->within <= line;
}

/* Does the operand that moves with rows stay in registers for all blocks of a row?  So it does if
 * these loops over its terms are written out, and it has room beside the sums of a block, the
 * results, and what is added to these.  It is worth that where a warp has few of a block: of more
 * columns than rows most of what is loaded is the other operand, and registers are for more groups
 * (of 64 columns 171 for 150 on an sm_80: two groups for three). */
static bool stays(const Lower *q, const Piece *p, Node *product, Node *const *loop, int n)
{
    enum { WORD = 4 };
    const Tc *u = unit(q);
    const int columns = q->nest->inner_axis[TC_COLUMNS];
    Node *a, *b;
    int64_t terms = 1, extent;
    for (int i = 0; i < n; i++)
        terms = idx_value(loop[i]->src[0], &extent) ? sat_mul(terms, extent) : INT64_MAX;
    if (!p->t.along || row_extent(q->nest, q->nest->axis[columns].root) > u->m ||
        terms > TC_MOST_TERMS || !tc_operands(u, product, p->t.fragment, &a, &b) ||
        depends_on(a, p->t.along))
        return false;
    int64_t sums = p->t.row_sums + 2 * q->nest->copies * tc_per_lane(q->nest->tc, TC_TERMS);
    if (beyond_rows(q->nest, EIGHT))
        sums /= 2;
    return sums + terms * tc_per_lane(u, TC_ROWS) * dtype_info[u->a].bytes / WORD <= TC_MOST_ROW;
}

/* Of the inner product the sum of the element: of the fragment that has it. */
static Node *inner_product(Lower *q, Piece *p, Node *n)
{
    const Nest *nest = q->nest;
    const int *axis = nest->inner_axis, eights = unit(q)->n / EIGHT, number = p->copy / eights;
    Node *sum = made(p, n, -1, number, 0);
    if (!sum) {
        Node *kept[TC_AXES], **src = NEWN(q->a, Node *, (int)n->nsrc + 3 * nest->nsplit + 2);
        int nrange = 0, left = 0;
        for (int i = 0; i < TC_AXES; i++) {
            kept[i] = p->at[axis[i]];
            p->at[axis[i]] = p->t.fragment[i];
        }
        const int row = nest->axis[axis[TC_COLUMNS]].root;
        Node *own = p->t.inner ? p->t.inner_columns : p->t.fragment[TC_COLUMNS];
        p->at[axis[TC_COLUMNS]] = idx_add(q->c, idx(q->c, (int64_t)number * unit(q)->n),
                                          tc_row_column(q->c, unit(q), own));
        Env in = results_env(q, p);
        in.value[row] = lower_index(q, p, row);
        for (uint32_t i = 1; i < n->nsrc; i++) {
            const int root = nest_root_of(q->k, n->src[i]);
            in.value[root] = lower_index(q, p, root);
            lower_loops(q, p, root, src + 1, &nrange);
        }
        for (int i = 0; i < nrange; i++)
            if (src[1 + i] != p->t.fragment[TC_TERMS])
                src[1 + left++] = src[1 + i];
        env_ready(q, &in);
        src[0] = tc_bare(q->c, lower_node(q, p, n->src[0], &in));
        if (tc_in_place(unit(q)) || stays(q, p, src[0], src + 1, left)) {
            src[0] = written_out(q, src[0], src + 1, left);
            left = 0;
        }
        lower_sort_loops(q, p, src + 1, left);
        src[1 + left] = p->t.fragment[TC_TERMS];
        for (int i = 0; i < TC_AXES; i++)
            p->at[axis[i]] = kept[i];
        sum = node_make(q->c, OP_REDUCE, n->dtype, n->arg, 2 + left, src, 0, NULL);
        make(q, p, n, -1, number, 0, sum);
    }
    const int element = 4 * (p->copy % eights) + 2 * p->line + p->column;
    return node_make(q->c, OP_PROJ, n->dtype, (Arg){.i = element}, 1, &sum, 0, NULL);
}

/* What the lane has of the terms from `first` on, as an operand of the outer product. */
static Node *pack(Lower *q, Piece *p, Node *value, Node *range, int block)
{
    const Tc *u = unit(q);
    const int n = tc_per_lane(u, TC_ROWS);
    Node *known = made(p, value, -1, block, 0), *src[16];
    if (known)
        return known;
    for (int i = 0; i < n; i++) { /* as lane 0 has them */
        const TcElement e = tc_element(u, TC_ROWS, 0, i);
        set_element(q, p, e.line / EIGHT, (block * u->k + e.at) / EIGHT,
                    e.at % EIGHT / tc_row_step(u));
        Node *zero = node_const_f(q->c, value->dtype, 0);
        src[i] = beyond_rows(q->nest, e.line) ? zero : element_of(q, p, value, range, zero);
    }
    src[n] = p->t.fragment[TC_ROWS];
    src[n + 1] = p->t.fragment[TC_TERMS];
    Node *x = node_make(q->c, OP_PACK, value->dtype, (Arg){0}, n + 2, src, 0, NULL);
    return make(q, p, value, -1, block, 0, x);
}

/* Of a unit that multiplies what lies in places a fragment goes on for all blocks: its lines are
 * scaled before a block is added. */
static Node *sum_of_blocks(Lower *q, Piece *p, Node *n, Node *body)
{
    enum { LINES = 2 };
    bool good = true;
    Node *shift = row_shift(q->nest, q->k, n->src[0], &good), *src[LINES + 3] = {body};
    int count = 1;
    if (!p->t.along || !good)
        BUG("rows that cannot be taken by blocks");
    for (int i = 0; i < LINES && shift; i++) {
        set_element(q, p, i, 0, 0);
        (void)rows_terms(q, p, shift);
        src[count++] = made(p, shift, i, FACTOR, 0);
    }
    src[count++] = p->t.along;
    src[count++] = p->t.fragment[TC_TERMS];
    return node_make(q->c, OP_REDUCE, n->dtype,
                     reduce_arg(shift ? MONOID_SCALED_LINES : INGOT_REDUCE_ADD, 0, 0), count, src,
                     0, NULL);
}

/* An operand of the outer product: what is in registers, and what is loaded, with their casts. */
static Node *operand(Lower *q, Piece *p, Node *n, Node *range, int block, Env *in)
{
    if (n->op == OP_CAST && n->dtype == unit(q)->a && n->src[0]->op == OP_STAGE)
        return pack(q, p, n, range, block);
    if (n->op == OP_CAST) {
        Node *x = operand(q, p, n->src[0], range, block, in);
        return node_with(q->c, n, &x);
    }
    return n->op == OP_STAGE ? pack(q, p, n, range, block) : lower_node(q, p, n, in);
}

static Node *outer_product(Lower *q, Piece *p, Node *n)
{
    const Nest *nest = q->nest;
    const Tc *u = unit(q);
    const int row = nest->tc_axis[TC_ROWS], column = nest->tc_axis[TC_COLUMNS],
              term = nest->tc_axis[TC_TERMS];
    const int line = p->line, copy = p->copy, at_column = p->column;
    int64_t copies;
    const int number = (int)tc_copy_number(q, p, n, &copies);
    Node *sum = made(p, n, -1, number, 0), *kept[] = {p->at[row], p->at[column]};
    if (sum) {
        sum = node_make(q->c, OP_PROJ, n->dtype, (Arg){.i = p->element}, 1, &sum, 0, NULL);
        return tc_in_place(u) ? sum : over_blocks(q, p, n, sum);
    }
    Node *body = NULL, *own = p->t.fragment[TC_TERMS];
    p->inside++;
    for (int i = 0; i < nest->axis[term].extent / u->k; i++) {
        Node *side[2];
        for (int j = 0; j < 2; j++) {
            p->at[row] = p->t.fragment[TC_ROWS];
            p->at[column] = p->t.fragment[TC_COLUMNS];
            set_along(q, p, idx_add(q->c, idx(q->c, (int64_t)i * u->k), own));
            Env in = env_at(q, p, nest->axis[term].root);
            side[j] = operand(q, p, n->src[0]->src[j], n->src[1], i, &in);
        }
        Node *one = tc_bare(q->c, node_with(q->c, n->src[0], side));
        body = body ? node_alu2(q->c, OP_ADD, n->dtype, body, one) : one;
    }
    Node *src[] = {body, own};
    sum = tc_in_place(u) ? sum_of_blocks(q, p, n, body)
                         : node_make(q->c, OP_REDUCE, n->dtype, n->arg, 2, src, 0, NULL);
    p->inside--;
    make(q, p, n, -1, number, 0, sum);
    set_element(q, p, line, copy, at_column);
    p->at[row] = kept[0];
    p->at[column] = kept[1];
    return outer_product(q, p, n);
}

Node *rows_factor(Lower *q, Node *greatest, Node *own, Node *all)
{
    all = greatest_or_zero(q, greatest, all);
    own = node_alu2(q->c, OP_SUB, (ingot_dtype)own->dtype, own, all);
    return node_alu1(q->c, OP_EXP, (ingot_dtype)own->dtype, own);
}

/* Of blocks of a row a warp has some, and a greatest of its own: what it has summed is multiplied
 * as if it had known that of its group. */
Node *rows_part(Lower *q, Piece *p, Node *n)
{
    bool good = true;
    if (!p->t.along)
        return rows_terms(q, p, n);
    if (reduce_monoid(n) == INGOT_REDUCE_MAX) {
        Node *src[] = {greatest_of_block(q, p, n), p->t.along};
        return reduce_over(q, INGOT_REDUCE_MAX, 2, src);
    }
    Node *sum = rows_terms(q, p, n), *shift = row_shift(q->nest, q->k, n->src[0], &good);
    if (!shift)
        return sum;
    Node *own = rows_part(q, p, shift), *of_group = lower_shared_group(q, p, shift);
    return node_alu2(q->c, OP_MUL, (ingot_dtype)sum->dtype, sum,
                     rows_factor(q, shift, own, of_group));
}

/* What items share is joined from what each has of it: of a line that a lane has once.  In a block
 * of its own a warp knows its own greatest alone. */
Node *rows_reduce(Lower *q, Piece *p, Node *n)
{
    if (!lower_is_shared(q, n) || (p->own && p->t.along))
        return rows_terms(q, p, n);
    Node *known = p->own ? made(p, n, p->line, -1, 0) : NULL;
    if (known)
        return known;
    known = lower_shared(q, p, n);
    return p->own ? make(q, p, n, p->line, -1, 0, known) : known;
}

Node *rows_terms(Lower *q, Piece *p, Node *n)
{
    Node *inner[TC_AXES], *outer[TC_AXES];
    for (int i = 0; i < TC_AXES; i++) {
        inner[i] = q->k->axes[q->nest->axis[q->nest->inner_axis[i]].root].range;
        outer[i] = q->k->axes[q->nest->axis[q->nest->tc_axis[i]].root].range;
    }
    if (tc_takes(unit(q), n, inner))
        return inner_product(q, p, n);
    if (tc_takes(unit(q), n, outer))
        return outer_product(q, p, n);
    return reduce_along(q, p, n);
}
