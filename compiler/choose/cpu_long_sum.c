/* cpu_long_sum.c - products whose terms are so many that not even a panel of one vector is in L2:
 * the gradient of what a vocabulary is predicted from, a sum over 50,257 words.
 *
 *     for columns, block by block:
 *         for terms, block by block:          the panels of both blocks are in L2,
 *             for rows, columns of the block:
 *                 p[row, column] += a few hundred terms, in registers
 *
 * With all terms in one loop each tile reads its rows and its columns from memory. Here a block of
 * columns reads the rows once, and each column is read once, in panels that a copy ahead makes:
 * where columns lie pages apart, what the panels of a block have in common are few sets of L2. */
#include "cpu.h"

static const double PLACES_AND_PANELS = 0.75; /* of L2 */

/* y[rows.., columns] = sum over terms of a[rows.., term] * b[term, column] */
typedef struct {
    Node *columns, *row, *term; /* row: that tiles take some of */
    int64_t width, vectors, nrows;
    int64_t block, terms; /* columns and terms of a block */
} LongSum;

/* The load that moves with the columns, and moves with no row; NULL: both factors move with the
 * same range, or it may be laid out as a kernel wants it. */
static const Node *columns_load(const View *v, const bool *free, Node *columns)
{
    const Node *load = NULL;
    for (int j = 0; j < v->nfactor; j++) {
        const bool moves = depends_on(v->factor[j], columns);
        for (int i = 0; i < v->nrange && moves; i++)
            if (v->range[i] != columns && depends_on(v->factor[j], v->range[i]))
                return NULL;
        if (moves && (load || free[v->factor[j]->src[0]->arg.i]))
            return NULL;
        load = moves ? v->factor[j] : load;
    }
    return load;
}

static int64_t rows_in_all(const View *v, const Node *columns)
{
    int64_t rows = 1;
    for (int i = 0; i < v->nrange; i++)
        rows = v->range[i] == columns ? rows : sat_mul(rows, range_extent(v->range[i]));
    return rows;
}

/* Whole vectors and rows of a tile, as many products for each load as registers let them be. */
static bool pick_registers(LongSum *s, const Machine *m)
{
    double best = 0;
    for (int64_t v = 1; v <= 4; v++)
        for (int64_t rows = 2; rows <= MAX_ROWS; rows++) {
            const double score = flow_of((double)(v * rows) / (double)(v + rows), true);
            if (range_extent(s->columns) % (v * s->width) || range_extent(s->row) % rows ||
                v * rows + v + 1 > m->registers || v * rows < m->chains / 2 || score <= best)
                continue;
            best = score;
            s->vectors = v;
            s->nrows = rows;
        }
    return best > 0;
}

/* The blocks: wide ones, which read the rows seldom, as long as there are some for threads. */
static bool pick_blocks(LongSum *s, int64_t rows, int64_t bytes, const Machine *m)
{
    enum { PARTS = 8 };
    const int64_t terms = range_extent(s->term), all = range_extent(s->columns),
                  step = s->width * s->vectors;
    /* a sum is loaded and stored for each block */
    const int64_t least = 2 * s->vectors * s->nrows;
    const double room = (double)m->far * PLACES_AND_PANELS;
    for (int64_t c = all / step / PARTS; c > 0; c--)
        for (int64_t n = terms / 2; n >= least && (all / step) % c == 0; n--)
            if (terms % n == 0 && (double)(c * step * bytes) * (double)(rows + n) <= room) {
                s->block = c * step;
                s->terms = n;
                return true;
            }
    return false;
}

/* Is the kernel such a sum with lanes along these columns? */
static bool is_long_sum(Arena *a, const Nest *nest, const View *v, const bool *free, LongSum *s)
{
    const Kernel *k = nest->k;
    const Machine *m = &nest->target->machine;
    const double bytes = dtype_info[v->dot->dtype].bytes;
    const Node *load = columns_load(v, free, s->columns);
    const int64_t terms = range_extent(s->term), rows = rows_in_all(v, s->columns);
    int64_t stride;
    int moves = 0;
    s->width = lanes_along(k, nest->target, s->columns);
    if (!load || terms < 0 || rows < 2 * MAX_ROWS || !s->width ||
        (double)(terms * s->width) * bytes <= m->far ||
        (double)terms * (double)rows * bytes <= m->far ||
        !access_stride(k, load, s->columns, &stride) || stride != 1 ||
        !access_stride(k, v->store[0], s->columns, &stride) || stride != 1 ||
        !fits_lanes(a, k, s->columns, s->width, free, &moves, NULL) || moves)
        return false;
    for (int i = 0; i < v->nrange; i++)
        if (v->range[i] != s->columns && view_reuses(v, s->columns, v->range[i]) &&
            (!s->row || range_extent(v->range[i]) >= range_extent(s->row)))
            s->row = v->range[i];
    return s->row && pick_registers(s, m) && pick_blocks(s, rows, (int64_t)bytes, m);
}

static bool apply(Nest *nest, const View *v, const LongSum *s)
{
    LoopParts columns, terms;
    if (!nest_opt_range(nest, OPT_VECTOR, s->columns, s->width) ||
        !nest_opt_range(nest, OPT_UPCAST, s->row, s->nrows) ||
        (s->vectors > 1 && !nest_opt_range(nest, OPT_UPCAST, s->columns, s->vectors)) ||
        !split_loop(nest, s->columns, s->block / (s->width * s->vectors), &columns) ||
        !split_loop(nest, s->term, s->terms, &terms))
        return false;
    const char *names = nest_and_name(nest, "", columns.outer);
    names = nest_and_name(nest, names, terms.outer);
    for (int i = 0; i < v->nrange; i++)
        if (v->range[i] != s->columns)
            names = nest_and_name(nest, names, nest_loop(nest, nest_root(nest, v->range[i])));
    if (columns.inner >= 0)
        names = nest_and_name(nest, names, columns.inner);
    names = nest_and_name(nest, names, terms.inner);
    return nest_opt(nest, OPT_ORDER, names, 0) &&
           nest_opt(nest, OPT_PARTIAL, nest->axis[terms.outer].name, 1);
}

Node *long_sum_opts(Arena *a, Nest **nest, const View *v, const bool *free)
{
    const Target *t = (*nest)->target;
    if (!t->machine.lanes || t->gpu || !v->dot || v->dot->nsrc != 2 || v->nreduce != 1 ||
        v->nstore != 1 || v->outer || !dtype_is_float(v->dot->dtype) || v->nfactor != 2)
        return NULL;
    for (int i = 0; i < v->nrange; i++) {
        LongSum s = {.columns = v->range[i], .term = v->dot->src[1]};
        if (range_extent(v->range[i]) < 0)
            return NULL;
        if (!is_long_sum(a, *nest, v, free, &s))
            continue;
        Nest *trial = nest_clone(*nest);
        if (apply(trial, v, &s)) {
            nest_free(*nest);
            *nest = trial;
            return s.columns;
        }
        nest_free(trial);
    }
    return NULL;
}
