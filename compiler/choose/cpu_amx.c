/* cpu_amx.c - opts without search, for contractions that a matrix unit takes.
 *
 * Two by two fragments of sums share their operands, where there are so many: each step loads four
 * and multiplies four times. Blocks of columns are the outer loop, so that a panel of b stays near
 * while all rows go by, unless all of b does; rows are blocked for the second level of cache.  b is
 * stored as the loops read it.
 *
 * A kernel may have several sums, each over terms of its own: of a block of a network that adds two
 * convolutions, say. The unit takes all that have the rows and columns of the largest one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"

/* Of a byte that is copied to where the unit reads it: fours of elements that lie apart; of one of
 * a result of 32 bits, which lanes turn. */
static const double COPY_CYCLES = 1, TURN_CYCLES = 0.125;
/* In the time of so many products one is added to its sum, which can take the next one then. */
static const double CHAIN = 3;
/* Loads run beside products: of the lesser of both so much more time is seen. A tile's lines are
 * asked for at once, and come so many times as fast as those of other loops. */
static const double BESIDE = 4, AT_ONCE = 2;

/* Cycles of a product by its rows. */
static double product_cycles(int64_t rows)
{
    return rows > 6 ? 6.4 + 0.6 * (double)rows : 9.2;
}

/* How many rows at once take the least time, and how much: where they do not divide all rows, the
 * last block begins earlier (OVERLAP). */
static int64_t best_rows(int64_t extent, int64_t most, double *cycles)
{
    int64_t best = 0;
    for (int64_t rows = most < extent ? most : extent; rows > 1; rows--) {
        double c = (double)ceil_div(extent, rows) * product_cycles(rows);
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
    Node *sum[TC_MOST_REDUCED]; /* that the unit takes: the largest first, */
    Node *own[TC_MOST_REDUCED]; /* and the axis of its terms */
    int nsum, alike;            /* and how many of them are over the same terms */
    int64_t nrows, nterms;
    double cycles; /* of a product's share in one term of one element */
    int64_t apart; /* elements from a row to the next one, in the operand that has rows */
    /* of one element of the batch: blocks of rows; bytes that are read, by operand */
    double blocks, bytes[2];
    double steps;                      /* of the largest sum */
    int64_t row_copies, column_copies; /* blocks at once */
    bool columns_last;                 /* rows are the outer loop */
} TileBlock;

/* All products of a sum move alike: what is asked of one holds for the others. */
static Node *first_of(const Node *sum)
{
    Node *term[TC_MOST_TERMS];
    return tc_terms(sum->src[0], term, TC_MOST_TERMS) ? *term : sum->src[0];
}

static Node *first_product(const View *v)
{
    return first_of(v->dot);
}

/* Is it a sum of products for each row and column, which without the unit would be made element
 * after element? */
static bool fills_block(Node *reduce, const TileBlock *b)
{
    Node *term[TC_MOST_TERMS];
    return reduce_size(reduce) == 1 && reduce_monoid(reduce) == INGOT_REDUCE_ADD &&
           tc_terms(reduce->src[0], term, TC_MOST_TERMS) > 0 && depends_on(reduce, b->rows) &&
           depends_on(reduce, b->columns);
}

/* The other sums of products: all of them the unit has to take, over terms of their own, so many at
 * once. false: it does not. */
static bool take_others(const View *v, TileBlock *b)
{
    b->sum[0] = v->dot;
    b->own[0] = b->terms;
    b->nsum = 1;
    b->alike = 0;
    for (int i = 0; i < v->nreduce; i++) {
        Node *r = v->reduce[i], *range[] = {b->rows, b->columns, b->terms};
        b->alike += tc_takes(b->unit, r, range);
        if (r == v->dot || !fills_block(r, b) || tc_takes(b->unit, r, range))
            continue;
        Node *own = NULL;
        for (uint32_t t = reduce_ranges(r); t < r->nsrc && !own; t++) {
            range[TC_TERMS] = r->src[t];
            bool good = tc_takes(b->unit, r, range) && range_extent(r->src[t]) % b->nterms == 0;
            for (int j = 0; j < b->nsum; j++)
                good &= b->own[j] != r->src[t];
            own = good ? r->src[t] : NULL;
        }
        if (!own || b->nsum == TC_MOST_REDUCED)
            return false;
        b->sum[b->nsum] = r;
        b->own[b->nsum++] = own;
    }
    return true;
}

/* All that is read: of a buffer, of which it may be a part (of the terms: sum_parts.c). */
static double bytes_of(const Kernel *k, const Node *load)
{
    const KernelArg *a = &k->args[load->src[0]->arg.i];
    double all = (double)layout_elements(&(Layout){0}, a->rank, a->dims), read = 1;
    for (int i = 0; i < k->naxis; i++)
        read *= depends_on(load, k->axes[i].range) ? (double)k->axes[i].range->hi + 1 : 1;
    return fmin(all, read) * dtype_info[a->dtype].bytes;
}

/* Cycles of copies, for what the model computes and lies otherwise than the block reads or writes
 * it. */
static double copy_cycles(const Kernel *k, const View *v, const Buffer *const *bufs,
                          const TileBlock *b)
{
    Node *x, *y, *range[] = {b->rows, b->columns, b->terms};
    int64_t stride;
    double cycles = 0;
    if (!tc_operands(b->unit, first_product(v), range, &x, &y))
        return 0;
    if (bufs[y->src[0]->arg.i]->kind != BUF_WEIGHT)
        cycles += bytes_of(k, y) * COPY_CYCLES;
    if (!access_stride(k, x, b->terms, &stride) || stride != 1)
        cycles += bytes_of(k, x) * COPY_CYCLES;
    for (int i = 0; i < v->nstore; i++)
        if (!access_stride(k, v->store[i], b->columns, &stride) || stride != 1)
            cycles +=
                bytes_of(k, v->store[i]) *
                (dtype_info[k->args[v->store[i]->src[0]->arg.i].dtype].bytes == 4 ? TURN_CYCLES
                                                                                  : COPY_CYCLES);
    return cycles;
}

static double all_products(const View *v)
{
    double n = 1;
    for (int i = 0; i < v->nrange; i++)
        n *= (double)range_extent(v->range[i]);
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        n *= (double)range_extent(v->dot->src[i]);
    return n;
}

/* How far apart rows are in memory. */
static int64_t rows_apart(const Kernel *k, const View *v, const TileBlock *b)
{
    Node *x, *y, *range[] = {b->rows, b->columns, b->terms};
    int64_t stride;
    return tc_operands(b->unit, first_product(v), range, &x, &y) &&
                   access_stride(k, x, b->rows, &stride)
               ? llabs(stride)
               : INT64_MAX;
}

/* Less time, or as much and rows that lie closer together. */
static bool is_better(const TileBlock *b, const TileBlock *than)
{
    return !than->rows || b->cycles < than->cycles * 0.999 ||
           (b->cycles < than->cycles * 1.001 && b->apart < than->apart);
}

static bool is_refused(const TileBlock *b, const TileBlock *refused, int n)
{
    for (int i = 0; i < n; i++)
        if (b->unit == refused[i].unit && b->rows == refused[i].rows &&
            b->columns == refused[i].columns && b->terms == refused[i].terms)
            return true;
    return false;
}

/* The block of the unit that takes the least time, of those that are not refused. */
static TileBlock pick_block(const Kernel *k, const View *v, const Buffer *const *bufs, const Tc *u,
                            const TileBlock *refused, int n)
{
    TileBlock best = {.unit = u};
    for (int i = 0; i < v->nrange; i++)
        for (int j = 0; j < v->nrange; j++)
            for (uint32_t t = reduce_ranges(v->dot); t < v->dot->nsrc; t++) {
                Node *range[] = {v->range[i], v->range[j], v->dot->src[t]};
                int64_t extent[] = {range_extent(range[0]), range_extent(range[1]),
                                    range_extent(range[2])};
                double cycles = 0;
                if (i == j || extent[0] < 2 || extent[1] < u->n || extent[2] < 1 ||
                    !tc_takes(u, v->dot, range))
                    continue;
                int64_t terms = best_terms(u, extent[2]),
                        rows = best_rows(extent[0], u->m, &cycles);
                if (!terms || !rows)
                    continue;
                const double blocks = ceil((double)extent[1] / u->n);
                cycles *= blocks * u->n / (double)extent[1];
                cycles /= (double)(extent[0] * terms);
                TileBlock b = {.unit = u,
                               .rows = range[0],
                               .columns = range[1],
                               .terms = range[2],
                               .nrows = rows,
                               .nterms = terms,
                               .cycles = cycles};
                b.cycles += copy_cycles(k, v, bufs, &b) / all_products(v);
                b.apart = rows_apart(k, v, &b);
                if (is_better(&b, &best) && !is_refused(&b, refused, n) && take_others(v, &b))
                    best = b;
            }
    return best;
}

/* An axis of other rows, of which some are computed at once, where those of the block are one
 * fragment. */
static Node *other_rows(const View *v, const TileBlock *b)
{
    Node *best = NULL, *x, *y;
    for (int i = 0; i < v->nrange; i++) {
        Node *r = v->range[i];
        bool good = r != b->rows && r != b->columns && range_extent(r) > 1;
        for (int j = 0; j < b->nsum && good; j++)
            good = tc_operands(b->unit, first_of(b->sum[j]), (Node *[]){r, b->columns, b->own[j]},
                               &x, &y);
        if (good && (!best || range_extent(r) > range_extent(best)))
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

/* All loops that are left: batches, blocks of rows, columns, rows; the terms inside of what else is
 * summed. */
static void order_loops(Nest *n, const View *v, const TileBlock *b, const Node *blocked,
                        const char *far)
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
            if (far && r == blocked) {
                batch = arena_printf(n->arena, "%s%s ", batch, far);
                name = arena_printf(n->arena, "%.*s.i", (int)strlen(far) - 2, far);
            }
            rows = arena_printf(n->arena, "%s%s ", rows, name);
        } else {
            batch = arena_printf(n->arena, "%s%s ", batch, name);
        }
    }
    for (int j = 0; j < b->nsum; j++) {
        for (uint32_t i = reduce_ranges(b->sum[j]); i < b->sum[j]->nsrc; i++) {
            Node *r = b->sum[j]->src[i];
            if (r != b->own[j] && range_extent(r) != 1)
                sums = arena_printf(n->arena, "%s%s ", sums, nest_loop_name(n, r));
        }
        if (n->axis[nest_loop(n, nest_root(n, b->own[j]))].form == AXIS_LOOP)
            sums = arena_printf(n->arena, "%s%s ", sums, nest_loop_name(n, b->own[j]));
    }
    bool loop = n->axis[nest_loop(n, nest_root(n, b->columns))].form == AXIS_LOOP;
    column = loop ? arena_printf(n->arena, "%s ", column) : "";
    all = arena_printf(n->arena, "%s%s%s%s", batch, b->columns_last ? rows : column,
                       b->columns_last ? column : rows, sums);
    size_t length = strlen(all);
    if (length)
        nest_opt(n, OPT_ORDER, arena_printf(n->arena, "%.*s", (int)length - 1, all), 0);
}

/* All that is read of an operand. */
static double block_operand_bytes(const Kernel *k, const TileBlock *b, int operand)
{
    Node *term[TC_MOST_TERMS], *x[2], *seen[TC_MOST_REDUCED * TC_MOST_TERMS];
    int n = 0;
    double bytes = 0;
    for (int s = 0; s < b->nsum; s++) {
        const int count = tc_terms(b->sum[s]->src[0], term, TC_MOST_TERMS);
        for (int i = 0; i < count; i++) {
            bool known = !tc_operands(b->unit, term[i], (Node *[]){b->rows, b->columns, b->own[s]},
                                      &x[TC_ROWS], &x[TC_COLUMNS]);
            for (int j = 0; j < n && !known; j++)
                known = seen[j] == x[operand];
            if (known)
                continue;
            seen[n++] = x[operand];
            bytes += bytes_of(k, x[operand]);
        }
    }
    return bytes;
}

/* What the products of so many blocks at once read in a step; rows are the outer copies. false: of
 * tiles there are too few, as TC counts them: one for the rows, and for all columns that these use
 * again. */
static bool step_of(const TileBlock *b, int rows, int columns, TcStep *s)
{
    Node *term[TC_MOST_TERMS], *x, *y, *range[] = {b->rows, b->columns, b->terms};
    const int n = tc_terms(b->sum[0]->src[0], term, TC_MOST_TERMS), nsum = rows * columns,
              room = b->unit->tiles - b->alike * nsum,
              again = rows > 1 && b->more == b->rows ? columns : 1;
    if (room < 1 + again)
        return false;
    TcPair pair[TC_MOST_TERMS * TC_MOST_TILES];
    for (int i = 0; i < nsum; i++)
        for (int t = 0; t < n; t++) {
            (void)tc_operands(b->unit, term[t], range, &x, &y);
            /* an address within the node stands for each block of what it loads */
            pair[i * n + t] =
                (TcPair){(const char *)x + i / columns, (const char *)y + i % columns};
        }
    return tc_step(pair, nsum, n, room, s);
}

/* What one element of the batch reads, and how many blocks its rows are. */
static void measure_batch(const Kernel *k, const View *v, TileBlock *b)
{
    Node *x, *y, *range[] = {b->rows, b->columns, b->terms};
    (void)tc_operands(b->unit, first_product(v), range, &x, &y);
    double batch = 1;
    b->blocks = (double)ceil_div(range_extent(b->rows), b->nrows);
    for (int i = 0; i < v->nrange; i++) {
        Node *r = v->range[i];
        const double extent = (double)range_extent(r);
        if (depends_on(x, r) && depends_on(y, r))
            batch *= extent;
        else if (depends_on(x, r) && r != b->rows)
            b->blocks *= extent;
    }
    b->steps = 1;
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        b->steps *= (double)range_extent(v->dot->src[i]);
    b->steps /= (double)b->nterms;
    b->bytes[TC_ROWS] = block_operand_bytes(k, b, TC_ROWS) / batch;
    b->bytes[TC_COLUMNS] = block_operand_bytes(k, b, TC_COLUMNS) / batch;
}

/* Cycles of all that the results of so many blocks at once read and write: whole lines, also of a
 * few columns. */
static double result_cycles(const Nest *n, const View *v, const TileBlock *b, int64_t rows,
                            int64_t columns)
{
    const Machine *m = &n->target->machine;
    double bytes = 0;
    for (int i = 0; i < v->nstore; i++)
        bytes += fmax((double)(columns * b->unit->n) *
                          dtype_info[n->k->args[v->store[i]->src[0]->arg.i].dtype].bytes,
                      (double)m->line);
    return cost_bytes(2 * bytes * (double)(rows * b->nrows), m->far, n->target);
}

/* Cycles of a step of all blocks. What is loaded comes from the level of memory that holds what is
 * read until it is loaded again: of the inner loop one turn, of the outer loop all. The first time
 * b comes from where it is, whatever the blocks. */
static double step_cycles(const Nest *n, const View *v, const TileBlock *b, int64_t blocks,
                          int64_t rows, int64_t columns, const TcStep *s)
{
    const Target *t = n->target;
    Node *term[TC_MOST_TERMS];
    const double all = ceil((double)range_extent(b->columns) / b->unit->n),
                 line = (double)b->nterms * dtype_info[b->unit->a].bytes,
                 passes = (double)ceil_div(blocks, rows) * b->blocks / (double)blocks,
                 turns = ceil(all / (double)columns), far = fmin(b->bytes[TC_ROWS], t->machine.far),
                 row = b->bytes[TC_ROWS] * (double)rows / b->blocks,
                 panel = b->bytes[TC_COLUMNS] * (double)columns / all,
                 a = s->loads[TC_ROWS] * (double)b->nrows * line,
                 of_b = s->loads[TC_COLUMNS] * b->unit->n * line,
                 loads = b->columns_last
                             ? passes * turns * cost_bytes(a, row + panel, t) +
                                   (passes - 1) * turns *
                                       cost_bytes(of_b, b->bytes[TC_COLUMNS] + row, t)
                             : passes * turns * cost_bytes(a, far + panel, t) +
                                   (passes - 1) * turns * cost_bytes(of_b, row + panel, t),
                 products = passes * turns * tc_terms(b->sum[0]->src[0], term, TC_MOST_TERMS) *
                            fmax((double)(rows * columns) * product_cycles(b->nrows),
                                 CHAIN * product_cycles(b->unit->m));
    return fmax(loads / AT_ONCE, products) + fmin(loads / AT_ONCE, products) / BESIDE +
           passes * turns * result_cycles(n, v, b, rows, columns) / b->steps;
}

/* Rows of a block where so many blocks at once do not divide all: 197 rows are 14 blocks of 15, in
 * place of 13 of 16 of which one is computed twice. */
static int64_t even_rows(int64_t rows, int64_t blocks, int64_t copies)
{
    return ceil_div(rows, ceil_div(blocks, copies) * copies);
}

/* How many blocks are computed at once, and which are the inner loop: rows share what is loaded of
 * b, columns what is loaded of a.  Of 7 x 7 pixels (blocks of 7 rows, 7 other rows) times 512
 * columns:
 *
 *     1 x 2    b is loaded 7 times, a once for two columns
 *     4 x 1    b twice (the second four begin one earlier), a for each column */
static void pick_copies(const Nest *n, const View *v, TileBlock *b)
{
    const int64_t nrows = b->nrows, rows = range_extent(b->rows),
                  blocks = !b->more             ? 1
                           : b->more == b->rows ? ceil_div(rows, nrows)
                                                : range_extent(b->more);
    b->row_copies = b->column_copies = 1;
    b->columns_last = false;
    TileBlock tried = *b;
    double best = INFINITY;
    TcStep s;
    for (int64_t i = 1; i <= b->unit->tiles && i <= blocks; i++)
        for (int64_t j = 1; j <= b->unit->tiles; j++)
            for (int last = 0; last < 2; last++) {
                tried.columns_last = last;
                tried.nrows = b->more == b->rows ? even_rows(rows, blocks, i) : nrows;
                if ((j - 1) * b->unit->n >= range_extent(b->columns) ||
                    !step_of(b, (int)i, (int)j, &s))
                    continue;
                const double cycles = step_cycles(n, v, &tried, blocks, i, j, &s);
                if (cycles >= best * 0.999)
                    continue;
                best = cycles;
                b->row_copies = i;
                b->column_copies = j;
                b->columns_last = last;
                b->nrows = tried.nrows;
            }
}

/* So many of an extent, or fewer, that divide it. Where these are few and no cache but the last one
 * holds all, blocks as even as they get and a rest: 7 are 3, 3 and 1. */
static int64_t even_part(int64_t extent, int64_t most, bool rest)
{
    int64_t part = most;
    while (extent % part)
        part--;
    return part > most / 2 || !rest ? part : ceil_div(extent, ceil_div(extent, most));
}

/* Blocks of an axis of rows, the last of which is whole too. */
static bool take_blocks(Nest *n, const char *axis, int64_t extent, int64_t amount)
{
    return nest_opt(n, extent % amount ? OPT_OVERLAP : OPT_SPLIT, axis, amount);
}

/* Copies of the blocks along an axis of rows. */
static void copy_rows(Nest *n, const TileBlock *b)
{
    const char *name = nest_loop_name(n, b->more);
    const int64_t extent = n->axis[nest_loop(n, nest_root(n, b->more))].extent;
    if (extent % b->row_copies && nest_opt(n, OPT_OVERLAP, name, b->row_copies))
        name = n->axis[nest_last_split(n)->inner].name;
    nest_opt(n, OPT_UPCAST, name, b->row_copies);
}

static bool block_opts(Nest *n, const View *v, TileBlock *b)
{
    const double room = n->target->machine.far;
    const int64_t rows = range_extent(b->rows);
    b->more = rows > b->nrows ? b->rows : other_rows(v, b);
    measure_batch(n->k, v, b);
    pick_copies(n, v, b);
    const char *row = nest_loop_name(n, b->rows), *column = nest_loop_name(n, b->columns),
               *term = "";
    if (rows > b->nrows) {
        if (!take_blocks(n, row, rows, b->nrows))
            return false;
        row = inner_name(n, b->rows);
    }
    if (range_extent(b->columns) > b->unit->n) {
        if (!nest_opt(n, OPT_SPLIT, column, b->unit->n))
            return false;
        column = inner_name(n, b->columns);
    }
    for (int i = 0; i < b->nsum; i++) {
        const char *own = nest_loop_name(n, b->own[i]);
        if (range_extent(b->own[i]) > b->nterms) {
            if (!nest_opt(n, OPT_SPLIT, own, b->nterms))
                return false;
            own = inner_name(n, b->own[i]);
        }
        term = arena_printf(n->arena, "%s%s%s", term, i ? " " : "", own);
    }
    if (b->row_copies > 1)
        copy_rows(n, b);
    if (b->column_copies > 1)
        nest_opt(n, OPT_UPCAST, nest_loop_name(n, b->columns), b->column_copies);
    /* blocks of rows, with all that is read of a, stay in the second level while all columns go
     * by */
    const double bytes = block_operand_bytes(n->k, b, TC_ROWS);
    Node *blocked = rows > b->nrows || !b->more ? b->rows : b->more;
    const NestAxis *loop = &n->axis[nest_loop(n, nest_root(n, blocked))];
    const char *far = NULL;
    if (bytes > room && !b->columns_last && (rows > b->nrows || b->more) &&
        loop->form == AXIS_LOOP && loop->extent > 3) {
        int64_t part = (int64_t)((double)loop->extent * room / bytes);
        if (part > 1 && part < loop->extent) {
            const char *name = loop->name;
            part = even_part(loop->extent, part, bytes > n->target->machine.level[1].bytes);
            if (part > 1 && nest_opt(n, OPT_SPLIT, name, part))
                far = arena_printf(n->arena, "%s.o", name);
        }
    }
    if (!nest_opt(n, OPT_TC,
                  arena_printf(n->arena, "%s (%s; %s; %s)", b->unit->name, row, column, term), 0))
        return false;
    order_loops(n, v, b, blocked, far);
    return true;
}

/* Layouts of a product's operands, for the weights in want[], of copies in copy[]: false if one
 * lies badly and cannot be changed. */
static bool lay_out_term(const Nest *n, Node *term, Node *own, const Buffer *const *bufs,
                         const TileBlock *b, bool may_copy, Layout *want, Layout *copy)
{
    const Kernel *k = n->k;
    Node *x, *y, *range[] = {b->rows, b->columns, own};
    (void)tc_operands(b->unit, term, range, &x, &y);
    int64_t arg = y->src[0]->arg.i, stride;
    Layout l;
    if (only_load(n->arena, k->sink, arg) != y || k->args[arg].written || !tc_layout(n, y, &l))
        return false;
    if (bufs[arg]->kind != BUF_WEIGHT && !may_copy)
        return false;
    *(bufs[arg]->kind == BUF_WEIGHT ? &want[arg] : &copy[arg]) = l;
    arg = x->src[0]->arg.i;
    if (access_stride(k, x, own, &stride) && stride == 1)
        return true;
    Move m = access_move(k->c, x, own);
    const bool weight = bufs[arg]->kind == BUF_WEIGHT;
    const bool parts = !weight && moves_by_parts(k, x, m); /* channels and pixels are one axis */
    if (m.kind != MOVE_AXIS || (m.stride != 1 && !parts) || (!weight && !may_copy) ||
        only_load(n->arena, k->sink, arg) != x || k->args[arg].written)
        return false;
    layout_put_last_by(weight ? &want[arg] : &copy[arg], k->args[arg].rank, m.axis, m.stride);
    return true;
}

static bool lay_out(const Nest *n, const Buffer *const *bufs, const TileBlock *b, bool may_copy,
                    Layout *want, Layout *copy)
{
    Node *term[TC_MOST_TERMS];
    for (int s = 0; s < b->nsum; s++) {
        const int count = tc_terms(b->sum[s]->src[0], term, TC_MOST_TERMS);
        for (int i = 0; i < count; i++)
            if (!lay_out_term(n, term[i], b->own[s], bufs, b, may_copy, want, copy))
                return false;
    }
    return true;
}

static void put_results_last(Kernel *k, Node *store, Node *lanes)
{
    KernelArg *a = &k->args[store->src[0]->arg.i];
    const Move m = access_move(k->c, store, lanes);
    layout_put_last_by(&a->layout, a->rank, m.axis, moves_by_parts(k, store, m) ? m.stride : 1);
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
            put_results_last(k, v.store[j], lanes);
    bool good = !nest_check(n);
    for (int i = 0; i < k->narg; i++)
        k->args[i].layout = was[i];
    return good;
}

/* A panel of weights serves all blocks of rows; the next one comes from memory meanwhile, unless
 * all of them stay near: of each operand that moves with columns. */
static void prefetch_panels(Nest *n, const Buffer *const *bufs, const TileBlock *b)
{
    const NestAxis *columns = &n->axis[nest_loop(n, nest_root(n, b->columns))];
    Node *term[TC_MOST_TERMS], *x, *y;
    int64_t blocks = 1;
    bool inside = false;
    for (int i = 0; i < n->norder; i++) {
        const NestAxis *at = &n->axis[n->order[i]];
        blocks = inside && !at->reduced ? sat_mul(blocks, at->extent) : blocks;
        inside |= at == columns;
    }
    if (columns->form != AXIS_LOOP || columns->extent < 2 || blocks < 2)
        return;
    for (int s = 0; s < b->nsum; s++) {
        const int count = tc_terms(b->sum[s]->src[0], term, TC_MOST_TERMS);
        for (int i = 0; i < count; i++) {
            (void)tc_operands(b->unit, term[i], (Node *[]){b->rows, b->columns, b->own[s]}, &x, &y);
            const int64_t arg = y->src[0]->arg.i;
            if (bufs[arg]->kind == BUF_WEIGHT &&
                b->bytes[TC_COLUMNS] > n->target->machine.level[0].bytes)
                nest_opt(n, OPT_PREFETCH, columns->name, arg); /* refused: it is asked for */
        }
    }
}

/* The opts of a block, and the layouts that it wants; false: something lies otherwise than it reads
 * or writes, and cannot be changed. */
static bool take_block(Arena *a, Nest **nest, const View *v, const Buffer *const *bufs,
                       bool may_copy, TileBlock *b, Layout *want)
{
    Nest *tiled = nest_clone(*nest);
    Layout *copy = NEWN(a, Layout, tiled->k->narg), *weights = NEWN(a, Layout, tiled->k->narg);
    bool good = block_opts(tiled, v, b) && lay_out(tiled, bufs, b, may_copy, weights, copy);
    int64_t stride;
    for (int j = 0; j < v->nstore && good; j++)
        good = (access_stride(tiled->k, v->store[j], b->columns, &stride) && stride == 1) ||
               (may_copy && covers(tiled->k, v->store[j]));
    if (!good || !fits(a, tiled, weights, copy)) {
        nest_free(tiled);
        return false;
    }
    memcpy(want, weights, (size_t)tiled->k->narg * sizeof *want);
    for (int i = 0; i < tiled->k->narg; i++)
        if (copy[i].n) {
            tiled->k->choice->arg[i].copied = true;
            tiled->k->choice->arg[i].copy = copy[i];
        }
    prefetch_panels(tiled, bufs, b);
    nest_free(*nest);
    *nest = tiled;
    return true;
}

/* Of the block that takes the least time. If it does not fit (its columns are pixels, say, because
 * the caller reads them side by side, but windows cannot be copied as it reads columns), of the
 * next one. */
bool choose_tc_opts(Arena *a, Nest **nest, const View *v, const Buffer *const *bufs, bool may_copy,
                    Layout *want, Node **lanes)
{
    enum { SHARE = 4, TRIES = 4 }; /* of the unit's speed, still more than what vectors have */
    const Target *t = (*nest)->target;
    TileBlock refused[TRIES];
    for (int n = 0; n < TRIES; n++) {
        TileBlock best = {0};
        for (const Tc *u = NULL; (u = tc_next(&t->machine, u));) {
            TileBlock b = pick_block((*nest)->k, v, bufs, u, refused, n);
            if (b.rows && b.cycles * u->k <= SHARE && (!best.rows || b.cycles < best.cycles))
                best = b;
        }
        if (!best.rows)
            return false;
        refused[n] = best;
        if (take_block(a, nest, v, bufs, may_copy, &best, want)) {
            *lanes = best.columns;
            return true;
        }
    }
    return false;
}
