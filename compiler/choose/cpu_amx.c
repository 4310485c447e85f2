/* cpu_amx.c - opts without search, for contractions that a matrix unit takes.
 *
 * Two by two fragments of sums share their operands, where there are so many: each step loads four
 * and multiplies four times. Blocks of columns are the outer loop, so that a panel of b stays near
 * while all rows go by, unless all of b does; rows are blocked for the second level of cache.  b is
 * stored as the loops read it. */
#include <string.h>

#include "choose.h"

/* Cycles of a product by its rows. */
static double product_cycles(int64_t rows)
{
    return rows > 6 ? 6.4 + 0.6 * (double)rows : 9.2;
}

/* How many rows at once take the least time, and how much. */
static int64_t best_rows(int64_t extent, int64_t most, double *cycles)
{
    int64_t best = 0;
    for (int64_t rows = most < extent ? most : extent; rows > 1; rows--) {
        int64_t rest = extent % rows;
        double c = (double)(extent / rows) * product_cycles(rows);
        if (rest == 1)
            continue;
        c += rest ? 1.05 * product_cycles(rest) : 0; /* loops of their own */
        if (!best || c < *cycles * 0.999) {
            *cycles = c;
            best = rows;
        }
    }
    return best;
}

/* As many terms at once as divide the axis. */
static int64_t best_terms(const Tc *u, int64_t extent)
{
    int64_t terms = u->k;
    while (terms >= u->group && extent % terms)
        terms -= u->group;
    return terms >= u->group ? terms : 0;
}

typedef struct {
    const Tc *unit;
    Node *rows, *columns, *terms;
    Node *more; /* rows of another axis that are copies, or NULL: those of the same */
    int64_t nrows, nterms;
    double cycles; /* of a product's share in one term of one element */
} TileBlock;

/* The block of the unit that takes the least time. */
static TileBlock pick_block(const View *v, const Tc *u)
{
    TileBlock best = {.unit = u};
    for (int i = 0; i < v->nrange; i++)
        for (int j = 0; j < v->nrange; j++)
            for (uint32_t t = reduce_ranges(v->dot); t < v->dot->nsrc; t++) {
                Node *range[] = {v->range[i], v->range[j], v->dot->src[t]};
                int64_t extent[] = {range_extent(range[0]), range_extent(range[1]),
                                    range_extent(range[2])};
                double cycles = 0;
                if (i == j || extent[0] < 2 || extent[1] < u->n || extent[1] % u->n ||
                    extent[2] < 1 || !tc_takes(u, v->dot, range))
                    continue;
                int64_t terms = best_terms(u, extent[2]),
                        rows = best_rows(extent[0], u->m, &cycles);
                if (!terms || !rows)
                    continue;
                cycles /= (double)(extent[0] * terms);
                if (best.rows && cycles >= best.cycles * 0.999)
                    continue;
                best = (TileBlock){u, range[0], range[1], range[2], NULL, rows, terms, cycles};
            }
    return best;
}

/* All products of a sum move alike: what is asked of one holds for the others. */
static Node *first_product(const View *v)
{
    Node *term[TC_MOST_TERMS];
    return tc_terms(v->dot->src[0], term, TC_MOST_TERMS) ? *term : v->dot->src[0];
}

/* An axis of other rows, of which two are computed at once, where those of the block are one
 * fragment. */
static Node *other_rows(const View *v, const TileBlock *b)
{
    Node *best = NULL, *x, *y;
    for (int i = 0; i < v->nrange; i++) {
        Node *r = v->range[i], *range[] = {r, b->columns, b->terms};
        if (r != b->rows && r != b->columns && range_extent(r) > 1 && range_extent(r) % 2 == 0 &&
            tc_operands(b->unit, first_product(v), range, &x, &y) &&
            (!best || range_extent(r) > range_extent(best)))
            best = r;
    }
    return best;
}

static const char *inner_name(const Nest *n, Node *range)
{
    int root = nest_root(n, range);
    return n->axis[root].split < 0 ? n->axis[root].name
                                   : n->axis[n->split[n->axis[root].split].inner].name;
}

static double bytes_of(const Kernel *k, const Node *load)
{
    const KernelArg *a = &k->args[load->src[0]->arg.i];
    return (double)layout_elements(&(Layout){0}, a->rank, a->dims) * dtype_info[a->dtype].bytes;
}

/* All loops that are left: batches, blocks of rows, columns, rows; the terms inside of what else is
 * summed. */
static void order_loops(Nest *n, const View *v, const TileBlock *b, const char *far)
{
    Node *x, *y, *range[] = {b->rows, b->columns, b->terms};
    (void)tc_operands(b->unit, first_product(v), range, &x, &y);
    const char *column = nest_loop_name(n, b->columns), *rows = "", *batch = "", *all, *sums = "";
    for (int i = 0; i < v->nrange; i++) {
        Node *r = v->range[i];
        const char *name = nest_loop_name(n, r);
        if (r == b->columns || n->axis[nest_loop(n, nest_root(n, r))].form != AXIS_LOOP)
            continue;
        if (depends_on(x, r) && !depends_on(y, r)) {
            if (far && r == b->rows) {
                batch = arena_printf(n->arena, "%s%s ", batch, far);
                name = arena_printf(n->arena, "%.*s.i", (int)strlen(far) - 2, far);
            }
            rows = arena_printf(n->arena, "%s%s ", rows, name);
        } else {
            batch = arena_printf(n->arena, "%s%s ", batch, name);
        }
    }
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++) {
        Node *r = v->dot->src[i];
        if (r != b->terms && range_extent(r) != 1)
            sums = arena_printf(n->arena, "%s%s ", sums, nest_loop_name(n, r));
    }
    if (n->axis[nest_loop(n, nest_root(n, b->terms))].form == AXIS_LOOP)
        sums = arena_printf(n->arena, "%s%s ", sums, nest_loop_name(n, b->terms));
    bool columns_last = bytes_of(n->k, y) <= n->target->machine.near;
    bool loop = n->axis[nest_loop(n, nest_root(n, b->columns))].form == AXIS_LOOP;
    column = loop ? arena_printf(n->arena, "%s ", column) : "";
    all = arena_printf(n->arena, "%s%s%s%s", batch, columns_last ? rows : column,
                       columns_last ? column : rows, sums);
    size_t length = strlen(all);
    if (length)
        nest_opt(n, OPT_ORDER, arena_printf(n->arena, "%.*s", (int)length - 1, all), 0);
}

/* All that is read of a. */
static double rows_bytes(const Kernel *k, const View *v, const TileBlock *b)
{
    Node *term[TC_MOST_TERMS], *x, *y, *seen[TC_MOST_TERMS],
        *range[] = {b->rows, b->columns, b->terms};
    int count = tc_terms(v->dot->src[0], term, TC_MOST_TERMS), n = 0;
    double bytes = 0;
    for (int i = 0; i < count; i++) {
        bool known = !tc_operands(b->unit, term[i], range, &x, &y);
        for (int j = 0; j < n && !known; j++)
            known = seen[j] == x;
        if (known)
            continue;
        seen[n++] = x;
        bytes += bytes_of(k, x);
    }
    return bytes;
}

static bool block_opts(Nest *n, const View *v, TileBlock *b)
{
    const double room = n->target->machine.far;
    int64_t rows = range_extent(b->rows), blocks = rows / b->nrows;
    int64_t columns = range_extent(b->columns) / b->unit->n;
    const char *row = nest_loop_name(n, b->rows), *column = nest_loop_name(n, b->columns),
               *term = nest_loop_name(n, b->terms);
    if (rows > b->nrows) {
        if (!nest_opt(n, OPT_SPLIT, row, b->nrows))
            return false;
        row = inner_name(n, b->rows);
    }
    if (columns > 1) {
        if (!nest_opt(n, OPT_SPLIT, column, b->unit->n))
            return false;
        column = inner_name(n, b->columns);
    }
    if (range_extent(b->terms) > b->nterms) {
        if (!nest_opt(n, OPT_SPLIT, term, b->nterms))
            return false;
        term = inner_name(n, b->terms);
    }
    b->more = blocks > 1 ? b->rows : other_rows(v, b);
    if (b->more)
        nest_opt(n, OPT_UPCAST, nest_loop_name(n, b->more), 2);
    if (columns > 1)
        nest_opt(n, OPT_UPCAST, nest_loop_name(n, b->columns), 2);
    /* blocks of rows, with all that is read of a, stay in the second level while all columns go
     * by */
    Node *x, *y, *range[] = {b->rows, b->columns, b->terms};
    (void)tc_operands(b->unit, first_product(v), range, &x, &y);
    double bytes = rows_bytes(n->k, v, b);
    const NestAxis *loop = &n->axis[nest_loop(n, nest_root(n, b->rows))];
    const char *far = NULL;
    if (bytes > room && loop->form == AXIS_LOOP && loop->extent > 3) {
        int64_t part = (int64_t)((double)loop->extent * room / bytes);
        if (part > 1 && part < loop->extent) {
            const char *name = loop->name;
            while (loop->extent % part)
                part--;
            if (part > 1 && nest_opt(n, OPT_SPLIT, name, part))
                far = arena_printf(n->arena, "%s.o", name);
        }
    }
    if (!nest_opt(n, OPT_TC,
                  arena_printf(n->arena, "%s (%s; %s; %s)", b->unit->name, row, column, term), 0))
        return false;
    order_loops(n, v, b, far);
    return true;
}

/* Layouts of a product's operands, for the weights in want[], of copies in copy[]: false if one
 * lies badly and cannot be changed. */
static bool lay_out_term(const Nest *n, Node *term, const Buffer *const *bufs, const TileBlock *b,
                         bool may_copy, Layout *want, Layout *copy)
{
    const Kernel *k = n->k;
    Node *x, *y, *range[] = {b->rows, b->columns, b->terms};
    (void)tc_operands(b->unit, term, range, &x, &y);
    int64_t arg = y->src[0]->arg.i, stride;
    Layout l;
    if (only_load(n->arena, k->sink, arg) != y || k->args[arg].written || !tc_layout(n, y, &l))
        return false;
    if (bufs[arg]->kind != BUF_WEIGHT && !may_copy)
        return false;
    *(bufs[arg]->kind == BUF_WEIGHT ? &want[arg] : &copy[arg]) = l;
    arg = x->src[0]->arg.i;
    if (access_stride(k, x, b->terms, &stride) && stride == 1)
        return true;
    Move m = access_move(k->c, x, b->terms);
    if (m.kind != MOVE_AXIS || m.stride != 1 || bufs[arg]->kind == BUF_WEIGHT || !may_copy ||
        only_load(n->arena, k->sink, arg) != x || k->args[arg].written)
        return false;
    layout_put_last(&copy[arg], k->args[arg].rank, m.axis);
    return true;
}

static bool lay_out(const Nest *n, const View *v, const Buffer *const *bufs, const TileBlock *b,
                    bool may_copy, Layout *want, Layout *copy)
{
    Node *term[TC_MOST_TERMS];
    int count = tc_terms(v->dot->src[0], term, TC_MOST_TERMS);
    for (int i = 0; i < count; i++)
        if (!lay_out_term(n, term[i], bufs, b, may_copy, want, copy))
            return false;
    return true;
}

/* Does all lie well then? */
static bool fits(Arena *a, const Nest *n, const Layout *want, const Layout *copy)
{
    Kernel *k = n->k;
    Layout *was = NEWN(a, Layout, k->narg);
    for (int i = 0; i < k->narg; i++) {
        was[i] = k->args[i].layout;
        if (want[i].n || copy[i].n)
            k->args[i].layout = want[i].n ? want[i] : copy[i];
    }
    View v = kernel_view(k);
    Node *lanes = k->axes[n->axis[n->tc_axis[TC_COLUMNS]].root].range;
    int64_t stride;
    for (int j = 0; j < v.nstore; j++) /* it is copied if it does not lie so */
        if (!access_stride(k, v.store[j], lanes, &stride) || stride != 1)
            layout_put_last(&k->args[v.store[j]->src[0]->arg.i].layout,
                            k->args[v.store[j]->src[0]->arg.i].rank,
                            access_move(k->c, v.store[j], lanes).axis);
    bool good = !nest_check(n);
    for (int i = 0; i < k->narg; i++)
        k->args[i].layout = was[i];
    return good;
}

/* A panel of weights serves all blocks of rows; the next one comes from memory meanwhile, unless
 * all of them stay near. */
static void prefetch_panel(Nest *n, const View *v, const Buffer *const *bufs, const TileBlock *b)
{
    const NestAxis *columns = &n->axis[nest_loop(n, nest_root(n, b->columns))];
    Node *x, *y, *range[] = {b->rows, b->columns, b->terms};
    (void)tc_operands(b->unit, first_product(v), range, &x, &y);
    int64_t arg = y->src[0]->arg.i, blocks = 1;
    bool inside = false;
    for (int i = 0; i < n->norder; i++) {
        const NestAxis *at = &n->axis[n->order[i]];
        blocks = inside && !at->reduced ? sat_mul(blocks, at->extent) : blocks;
        inside |= at == columns;
    }
    if (columns->form == AXIS_LOOP && columns->extent > 1 && blocks > 1 &&
        bufs[arg]->kind == BUF_WEIGHT && bytes_of(n->k, y) > n->target->machine.level[0].bytes)
        nest_opt(n, OPT_PREFETCH, columns->name, arg);
}

bool choose_tc_opts(Arena *a, Nest **nest, const View *v, const Buffer *const *bufs, bool may_copy,
                    Layout *want, Node **lanes)
{
    enum { SHARE = 4 }; /* of the unit's speed that is still more than what vectors have */
    const Target *t = (*nest)->target;
    TileBlock best = {0};
    for (const Tc *u = NULL; (u = tc_next(&t->machine, u));) {
        TileBlock b = pick_block(v, u);
        if (b.rows && b.cycles * u->k <= SHARE && (!best.rows || b.cycles < best.cycles))
            best = b;
    }
    if (!best.rows)
        return false;
    Nest *tiled = nest_clone(*nest);
    Layout *copy = NEWN(a, Layout, tiled->k->narg), *weights = NEWN(a, Layout, tiled->k->narg);
    bool good =
        block_opts(tiled, v, &best) && lay_out(tiled, v, bufs, &best, may_copy, weights, copy);
    int64_t stride;
    for (int j = 0; j < v->nstore && good; j++)
        good = (access_stride(tiled->k, v->store[j], best.columns, &stride) && stride == 1) ||
               (may_copy && covers(tiled->k, v->store[j]));
    good = good && fits(a, tiled, weights, copy);
    if (!good) {
        nest_free(tiled);
        return false;
    }
    memcpy(want, weights, (size_t)tiled->k->narg * sizeof *want);
    for (int i = 0; i < tiled->k->narg; i++)
        if (copy[i].n) {
            tiled->k->choice->arg[i].copied = true;
            tiled->k->choice->arg[i].copy = copy[i];
        }
    prefetch_panel(tiled, v, bufs, &best);
    nest_free(*nest);
    *nest = tiled;
    *lanes = best.columns;
    return true;
}
