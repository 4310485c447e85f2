/* cpu_reduce.c - sums over rows that come from memory: rows that are read whole, with sums in a
 * place (PARTIAL) or in registers.
 *
 *     y[i, k] = sum over r of x[i, r, k]
 *
 * With some accumulators in registers x comes in strips, a few lines of each row: memory sees short
 * runs in many pages, and gives half of what it has.  With the sums in a place of L1 rows come
 * whole, and several at a time, so that there is one load and store of a sum for each block of
 * terms (Zen 4, f32 512^3, middle axis: 48 ms in strips of 8 vectors, 26 ms by 8 rows).  Short rows
 * have an accumulator for all of their vectors (256 of f32: 13.2 ms in strips, 7.6 in one, 12.8
 * with a place).  What caches hold comes as fast in strips, unless these are shorter than what the
 * prefetcher sees. */
#include "cpu.h"

enum {
    BLOCK_TERMS = 8,            /* rows that are read at a time */
    FEW_ROWS = 2 * BLOCK_TERMS, /* fewer are read as fast in strips */
    LEAST_TERMS = 4,            /* of a sum that is loaded and stored for it */
    LEAST_PARTS = 8             /* iterations that threads may share */
};

/* The results that one place holds: those of the loops from `first` on, of which the first one is
 * in blocks of so many. */
typedef struct {
    int first;
    int64_t units, block;
    bool alone; /* no loop is outside of them */
} PartialRow;

/* All reduces run over the same ranges, and every loop over results moves with them: nothing is
 * read twice.  States of several values take longer to join than to read. */
static bool one_sweep(const View *v, const LoopPlace *place, int n)
{
    for (int i = 0; i < n; i++)
        if (place[i].level)
            return false;
    for (int i = 0; i < v->nreduce; i++) {
        int own, first;
        Node *const *range = own_ranges(v->reduce[i], &own), *const *of =
                                                                 own_ranges(v->reduce[0], &first);
        if (reduce_size(v->reduce[i]) > 1)
            return false;
        for (int j = 0; j < own; j++)
            if (own != first || range[j] != of[j])
                return false;
    }
    return v->nreduce > 0;
}

/* A function of what does not change from row to row would be computed for each block of rows. */
static bool has_invariant_function(Arena *a, const Node *reduce, Node *rows, Node *last)
{
    int n;
    Node **order = graph_toposort(a, (int)reduce_size(reduce), reduce->src, &n);
    for (int i = 0; i < n; i++)
        if (op_is_alu(order[i]->op) && order[i]->dtype != INGOT_INDEX &&
            op_info[order[i]->op].cost > 4 && depends_on(order[i], last) &&
            !depends_on(order[i], rows))
            return true;
    return false;
}

/* Elements that the load reads, by the loops that it moves with; 0: some of them again (a window
 * that slides). */
static double elements_read(const Kernel *k, Node *load)
{
    const KernelArg *arg = &k->args[load->src[0]->arg.i];
    double n = 1, all = 1;
    for (int i = 0; i < k->naxis; i++)
        n *= depends_on(load, k->axes[i].range) ? (double)(k->axes[i].range->hi + 1) : 1;
    for (int i = 0; i < arg->rank; i++)
        all *= (double)arg->dims[i]->hi;
    return n > all ? 0 : n;
}

/* How many rows at a time: a divisor of their number, or what leaves little over; 0: none. */
static int64_t terms_of(const Node *reduce, int64_t extent)
{
    int own;
    (void)own_ranges(reduce, &own);
    int64_t best = 0;
    for (int64_t n = BLOCK_TERMS; n >= LEAST_TERMS; n--) {
        if (extent % n == 0 || (own == 1 && extent >= BLOCK_TERMS * BLOCK_TERMS))
            return n;
        if (own == 1 && (!best || extent % n < extent % best))
            best = n;
    }
    return best;
}

/* Bytes of sums in a place: half of L1, and what is still a variable of a thread. */
static int64_t place_room(const Machine *m)
{
    return (int64_t)m->near / 2;
}

/* Blocks of a row of so many units: what a place holds, threads have parts of, and pages are read
 * whole for; 0: there is none. */
static int64_t block_of(int64_t units, int64_t unit_bytes, int64_t outer, const Machine *m)
{
    const int64_t room = place_room(m) / unit_bytes, most = room < units ? room : units;
    int64_t best = 0;
    for (int64_t b = most; b > 0 && 2 * b * unit_bytes >= m->page; b--) {
        const int64_t parts = sat_mul(outer, units / b);
        if (units % b)
            continue;
        if (parts >= LEAST_PARTS && b * unit_bytes >= m->page)
            return b;
        best = parts > 1 && (!best || b * unit_bytes >= m->page) ? b : best;
    }
    return best || (outer == 1 && most == units) ? best : most;
}

/* The loops over results outside of the lanes' that continue a row in memory belong to it, as far
 * as the place has room. */
static PartialRow row_of_place(const Nest *nest, Node *load, const LoopPlace *place, int n,
                               int64_t lanes, int64_t bytes)
{
    const Machine *m = &nest->target->machine;
    PartialRow r = {.first = n - 1};
    int64_t run = range_extent(place[n - 1].range), unit = lanes, stride, outer = 1;
    r.units = run / lanes;
    while (r.first > 0 && range_extent(place[r.first - 1].range) > 0 &&
           2 * run * bytes <= place_room(m) &&
           access_stride(nest->k, load, place[r.first - 1].range, &stride) && stride == run) {
        unit = run;
        r.units = range_extent(place[--r.first].range);
        run *= r.units;
    }
    for (int i = 0; i < r.first; i++)
        outer = sat_mul(outer, place[i].range->hi + 1);
    r.alone = outer == 1;
    r.block = block_of(r.units, unit * bytes, outer, m);
    return r;
}

/* SPLIT, ORDER and PARTIAL; false: some of it cannot be done. */
static bool apply_row(Nest *nest, const PartialRow *r, const LoopPlace *place, int n,
                      const Node *reduce, int64_t terms)
{
    const bool cut = r->block < r->units;
    LoopParts parts = {0};
    if (cut && !split_loop(nest, place[r->first].range, r->block, &parts))
        return false;
    const char *names = "";
    int own;
    Node *const *range = own_ranges(reduce, &own);
    for (int i = 0; i <= r->first - !cut; i++)
        names = nest_and_name(nest, names, nest_loop(nest, nest_root(nest, place[i].range)));
    for (int i = 0; i < own; i++)
        names = nest_and_name(nest, names, nest_loop(nest, nest_root(nest, range[i])));
    if (cut)
        names = nest_and_name(nest, names, parts.inner);
    for (int i = r->first + cut; i < n; i++)
        names = nest_and_name(nest, names, nest_loop(nest, nest_root(nest, place[i].range)));
    return nest_opt(nest, OPT_ORDER, names, 0) &&
           nest_opt_range(nest, OPT_PARTIAL, range[own - 1], terms);
}

/* Elements side by side that the row's terms are read from: of what moves with the lanes and from
 * row to row. */
static Node *rows_read(const View *v, Node *rows, Node *last)
{
    for (int i = 0; i < v->nload; i++)
        if (depends_on(v->load[i], rows) && depends_on(v->load[i], last))
            return v->load[i];
    return NULL;
}

/* Does it come from behind so many levels of cache? */
static bool is_behind(const Kernel *k, Node *load, const Target *t, int levels)
{
    const double bytes = elements_read(k, load) * dtype_info[load->dtype].bytes;
    for (int i = 0; i < levels && t->machine.level[i].bytes > 0; i++)
        if (bytes <= t->machine.level[i].bytes)
            return false;
    return true;
}

int64_t vectors_for_parts(const Nest *nest, const View *v, const LoopPlace *place, int n,
                          int64_t lanes, int64_t most)
{
    if (!n || !one_sweep(v, place, n))
        return most;
    int own;
    Node *last = place[n - 1].range, *const *range = own_ranges(v->reduce[0], &own),
         *load = rows_read(v, range[own - 1], last);
    if (!load || is_behind(nest->k, load, nest->target, LEVELS))
        return most;
    const double bytes = elements_read(nest->k, load) * dtype_info[load->dtype].bytes,
                 parts = bytes / (4 * nest->target->machine.near),
                 worth = parts < MAX_THREADS ? parts : MAX_THREADS;
    const int64_t line = nest->target->machine.line /
                         (lanes * dtype_info[load->dtype].bytes); /* parts share none of them */
    int64_t whole = range_extent(last) / lanes, outer = 1, vectors = most, stride;
    const int64_t least =
        access_stride(nest->k, load, last, &stride) && stride == 1 && line > 1 ? line : 1;
    for (int i = 0; i < n - 1; i++)
        outer = sat_mul(outer, place[i].range->hi + 1);
    for (int64_t fewer = most - 1;
         fewer >= least && (double)sat_mul(outer, whole / vectors) < worth; fewer--)
        vectors = whole % fewer ? vectors : fewer;
    return vectors;
}

bool partial_opts(Arena *a, Nest *nest, const View *v, const LoopPlace *place, int n, int64_t lanes,
                  int64_t most, int64_t *at_once)
{
    if (!n || !one_sweep(v, place, n))
        return false;
    int own, bytes = 0;
    const Node *reduce = v->reduce[0];
    Node *last = place[n - 1].range, *const *range = own_ranges(reduce, &own),
         *rows = range[own - 1], *load = rows_read(v, rows, last);
    const int64_t terms = range_extent(rows) > 0 ? terms_of(reduce, range_extent(rows)) : 0;
    int64_t count = 1;
    for (int i = 0; i < own; i++)
        count = sat_mul(count, range[i]->hi + 1);
    for (int i = 0; i < v->nreduce; i++)
        bytes += dtype_info[v->reduce[i]->dtype].bytes;
    if (!load || !terms || count < FEW_ROWS || range_extent(last) < lanes ||
        has_invariant_function(a, reduce, rows, last))
        return false;
    const PartialRow r = row_of_place(nest, load, place, n, lanes, bytes);
    const bool longer = r.first < n - 1;
    if (!r.block || (!longer && r.units <= *at_once) ||
        !is_behind(nest->k, load, nest->target, longer ? 2 : LEVELS))
        return false;
    if (!longer && !r.alone && r.units <= most) {
        *at_once = r.units;
        return false;
    }
    Nest *trial = nest_clone(nest);
    const bool good = apply_row(trial, &r, place, n, reduce, terms);
    nest_free(trial);
    return good && apply_row(nest, &r, place, n, reduce, terms);
}
