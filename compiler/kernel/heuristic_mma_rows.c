/* heuristic_mma_rows.c - opts of a kernel whose sums read rows of other sums, on a GPU whose lanes multiply fragments together: attention.
 *
 * A group has some blocks of rows, a warp each, and all that they share (keys, values) in places; rows stay in the registers of lanes
 * (tc_rows.c).  Values are not divided: the more groups, the more often what all rows share is copied. */
#include <string.h>

#include "heuristic_mma.h"

/* Two sums of products, the operand of the outer one that is read, and the ranges that they move with. */
typedef struct {
    Node *inner, *outer, *stage, *value;
    Node *rows, *columns, *row, *along;
} Attention;

static bool find_sums(const View *v, Attention *at)
{
    for (int i = 0; i < v->nreduce; i++) {
        Node *r = v->reduce[i], *product = r->src[0];
        if (!is_sum_of_products(r) || r->nsrc != 2)
            continue;
        Node *x = below_casts(product->src[0]), *y = below_casts(product->src[1]);
        if (x->op == OP_LOAD && y->op == OP_LOAD && !at->inner) {
            at->inner = r;
        } else if ((x->op == OP_STAGE) != (y->op == OP_STAGE) &&
                   (x->op == OP_LOAD || y->op == OP_LOAD) && !at->outer) {
            at->outer = r;
            at->stage = x->op == OP_STAGE ? x : y;
            at->value = x->op == OP_STAGE ? y : x;
            at->along = r->src[1];
        }
    }
    return at->inner && at->outer;
}

/* Of the results the one range that rows move with and what they share does not, and that of the columns. */
static bool find_ranges(const Nest *n, const View *v, Attention *at)
{
    Node *x = below_casts(at->inner->src[0]->src[0]), *y = below_casts(at->inner->src[0]->src[1]);
    for (int i = 0; i < v->nrange; i++) {
        Node *r = v->range[i];
        const bool moves = depends_on(at->stage, r);
        if (range_extent(r) < 2)
            continue;
        if (moves && !depends_on(at->value, r) && depends_on(x, r) != depends_on(y, r)) {
            if (at->rows)
                return false;
            at->rows = r;
        } else if (!moves && depends_on(at->value, r)) {
            if (at->columns)
                return false;
            at->columns = r;
        }
    }
    for (int i = 0; i < n->k->naxis && at->rows; i++) {
        Node *r = n->k->axes[i].range;
        if (n->k->axes[i].staged && (depends_on(x, r) || depends_on(y, r)))
            at->row = r;
    }
    return at->rows && at->columns && at->row;
}

static const char *name_of(const Nest *n, Node *range)
{
    return n->k->axes[nest_root(n, range)].name;
}

static bool rows_opts(Nest *n, const View *v, const Attention *at, const Tc *u, int64_t warps)
{
    const char *rows = name_of(n, at->rows), *columns = name_of(n, at->columns),
               *terms = name_of(n, at->inner->src[1]), *blocks, *warp, *copies, *steps;
    const int64_t block = u->m * warps, row = u->k > u->n ? u->k : u->n,
                  ncolumn = mma_extent(n, columns);
    bool good = mma_mask(n, rows, block) && mma_mask(n, terms, u->k);
    for (int i = 0; i < n->k->naxis; i++)
        if (n->k->axes[i].reduced && n->k->axes[i].range != at->inner->src[1])
            good = good && mma_mask(n, n->k->axes[i].name, row);
    const char *unit_rows, *unit_columns;
    if (!good || ncolumn % u->n || !mma_divide(n, rows, block, &blocks, &unit_rows) ||
        !mma_divide(n, unit_rows, u->m, &warp, &unit_rows) ||
        !mma_divide(n, columns, u->n, &copies, &unit_columns) ||
        (copies && !nest_opt(n, OPT_UPCAST, copies, ncolumn / u->n)) ||
        !mma_divide(n, terms, u->k, &steps, &terms))
        return false;
    const char *grid = blocks;
    const char *inner =
        arena_printf(n->arena, "%s (%s; %s; %s)", u->name, unit_rows, name_of(n, at->row), terms);
    const char *outer = arena_printf(n->arena, "%s (%s; %s; %s)", u->name, unit_rows, unit_columns,
                                     name_of(n, at->along));
    good = good && nest_opt(n, OPT_TC, inner, 0) && nest_opt(n, OPT_TC, outer, 0);
    for (int i = 0; i < v->nrange && good; i++) {
        if (v->range[i] == at->rows || v->range[i] == at->columns || range_extent(v->range[i]) < 2)
            continue;
        const char *other = name_of(n, v->range[i]);
        good = nest_opt(n, OPT_BIND, other, BOUND_GRID);
        grid = grid ? grid : other;
    }
    good = good && mma_bind(n, 1, &blocks, BOUND_GRID) && mma_bind(n, 1, &warp, BOUND_WARP);
    const Node *read[] = {below_casts(at->inner->src[0]->src[0]),
                          below_casts(at->inner->src[0]->src[1]), at->value};
    for (int i = 0; i < 3 && good; i++)
        good = grid && nest_opt(n, OPT_STAGE, grid, read[i]->src[0]->arg.i);
    return good && !nest_check(n);
}

bool choose_rows_opts(Nest **nest)
{
    enum { WARPS = 4, LEAST_WARPS = 2 };
    const View v = kernel_view((*nest)->k);
    Attention at = {.rows = NULL};
    if (v.nstore != 1 || !find_sums(&v, &at) || !find_ranges(*nest, &v, &at))
        return false;
    int64_t groups = 1;
    for (int i = 0; i < v.nrange; i++)
        if (v.range[i] != at.columns && v.range[i] != at.rows)
            groups = sat_mul(groups, range_extent(v.range[i]));
    for (int i = 0; i < TC_COUNT; i++) {
        const Tc *u = &tc_units[i];
        Node *range[] = {at.rows, at.columns, at.along};
        if (!((*nest)->target->units >> i & 1) || u->lanes != 32 || !tc_takes(u, at.outer, range))
            continue;
        int64_t warps = WARPS, rows = range_extent(at.rows);
        while (warps > LEAST_WARPS && groups * ceil_div(rows, warps * u->m) < PROCESSORS)
            warps /= 2;
        Nest *tried = nest_clone(*nest);
        const bool good = rows_opts(tried, &v, &at, u, warps);
        nest_free(good ? *nest : tried);
        if (good)
            *nest = tried;
        if (good)
            return true;
    }
    return false;
}
