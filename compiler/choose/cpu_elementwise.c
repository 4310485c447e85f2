/* cpu_elementwise.c - kernels that are no contraction: loops in the order of storage, the innermost
 * in lanes; squares of what is written along one axis and read along another; blocks, rows that are
 * reduced, scans. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

void sort_places(LoopPlace *p, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0; j--) {
            bool outer = p[j].level != p[j - 1].level ? p[j].level < p[j - 1].level
                                                      : p[j].key > p[j - 1].key;
            if (!outer)
                break;
            LoopPlace t = p[j];
            p[j] = p[j - 1];
            p[j - 1] = t;
        }
}

double storage_stride(const Kernel *k, Node *access, Node *range)
{
    int64_t s;
    if (!access || !access_stride(k, access, range, &s))
        return 1e18;
    return (double)(s < 0 ? -s : s);
}

/* How far apart the first element along the range and the last one lie, a step: of what lies in
 * blocks there is no stride, but a mean one. */
static double mean_stride(const Kernel *k, Node *access, Node *range)
{
    const KernelArg *a = &k->args[access->src[0]->arg.i];
    Node *at = layout_offset(k->c, &a->layout, a->rank, a->dims, access->src + first_coord(access));
    Node *last = idx(k->c, range->hi), *first = idx(k->c, 0);
    Node *way = idx_sub(k->c, substitute(k->c, at, 1, &range, &last),
                        substitute(k->c, at, 1, &range, &first));
    double far = fabs((double)way->hi) > fabs((double)way->lo) ? fabs((double)way->hi)
                                                               : fabs((double)way->lo);
    return range->hi > 0 && far > 0 ? far / (double)range->hi : 1e18;
}

bool split_loop(Nest *nest, Node *range, int64_t amount, LoopParts *parts)
{
    const int loop = nest_loop(nest, nest_root(nest, range));
    *parts = (LoopParts){loop, -1};
    if (amount == 1)
        return true;
    if (!nest_opt(nest, OPT_SPLIT, nest->axis[loop].name, amount))
        return false;
    const Split *s = nest_last_split(nest);
    *parts = (LoopParts){s->outer, s->inner};
    return true;
}

/* The loops that are left, in this order. */
void order_opt(Nest *nest, const LoopPlace *p, int n)
{
    const char *names = "";
    for (int i = 0; i < n; i++) {
        int root = nest_root(nest, p[i].range);
        int axis = p[i].inner ? nest->split[nest->axis[root].split].inner : nest_loop(nest, root);
        names = nest_and_name(nest, names, axis);
    }
    if (n > 1)
        nest_opt(nest, OPT_ORDER, names, 0);
}

enum { BLOCK = 8 }; /* lines of a block in flight: not more than a set of the cache has ways */

/* What is written along one axis and read along another moves in blocks, so that every line of
 * cache is used while it is there.  The last axes are those of the writes, of which short ones (the
 * phases of a stride) stay whole inside of a block; gives the number of places. */
static int block_opts(Nest *nest, const View *v, LoopPlace *place, int n)
{
    const Kernel *k = nest->k;
    int other = -1, cut = n - 1;
    int64_t stride;
    while (cut > 0 && range_extent(place[cut].range) < 2 * BLOCK && place[cut - 1].key <= BLOCK)
        cut--;
    for (int j = 0; j < v->nload && other < 0; j++) {
        if (access_stride(k, v->load[j], place[n - 1].range, &stride) &&
            (stride == 0 || stride == 1))
            continue;
        for (int i = 0; i < cut; i++)
            if (access_stride(k, v->load[j], place[i].range, &stride) && stride == 1 &&
                range_extent(place[i].range) >= 2 * BLOCK)
                other = i;
    }
    if (other < 0 || range_extent(place[cut].range) < 2 * BLOCK)
        return n;
    /* [read] .. [write] [tail] -> .. [read.o] [write.o] [write.i] [tail] [read.i] */
    LoopPlace read = place[other], write = place[cut], tail[INGOT_MAX_RANK * 2];
    int ntail = n - 1 - cut;
    memcpy(tail, place + cut + 1, (size_t)ntail * sizeof *place);
    nest_opt_range(nest, OPT_SPLIT, read.range, BLOCK);
    nest_opt_range(nest, OPT_SPLIT, write.range, BLOCK);
    memmove(place + other, place + other + 1, (size_t)(cut - other - 1) * sizeof *place);
    n = cut - 1;
    const LoopPlace *const from[] = {&read, &write, &write, &read};
    for (int i = 0; i < 4; i++) {
        if (i == 3) {
            memcpy(place + n, tail, (size_t)ntail * sizeof *place);
            n += ntail;
        }
        place[n] = *from[i];
        place[n++].inner = i >= 2;
    }
    return n;
}

/* The result lies in panels, blocks of the range in each of which other axes come first: elements
 * of a block, or 0. */
static int64_t panel_of(const Kernel *k, const View *v, Node *range)
{
    int64_t stride, block = WIDEST;
    if (access_stride(k, v->store[0], range, &stride))
        return 0;
    while (block > 2 && !(vector_stride(k, v->store[0], range, block, &stride) && stride == 1))
        block /= 2;
    return block > 2 ? block : 0;
}

/* What is written along one axis and read along another: vectors of the former and as many copies
 * along the latter are a square whose rows are loaded and transposed in registers (join_loads.c).
 * Gives the number of places, 0: it is not so. */
static int rows_opts(Arena *a, Nest *nest, const View *v, LoopPlace *place, int n)
{
    const Kernel *k = nest->k;
    Node *last = place[n - 1].range, *read = NULL;
    int64_t lanes = lanes_along(k, nest->target, last), panel = panel_of(k, v, last), apart = 0,
            stride;
    lanes = panel && panel < lanes ? panel : lanes;
    int moves, at = -1;
    if (!lanes || !is_short(a, k, last) || !fits_lanes(a, k, last, lanes, NULL, &moves, &apart))
        return 0;
    for (int i = 0; i < n - 1; i++) {
        bool rows = range_extent(place[i].range) > 1;
        for (int j = 0; j < v->nload && rows; j++)
            rows = !access_stride(k, v->load[j], last, &stride) || llabs(stride) <= 1 ||
                   (access_stride(k, v->load[j], place[i].range, &stride) && stride == 1);
        if (rows)
            read = place[at = i].range;
    }
    if (!read)
        return 0;
    int64_t extent = range_extent(read), columns = extent < lanes ? extent : lanes;
    if (!nest_opt_range(nest, OPT_VECTOR, last, lanes) ||
        !nest_opt_range(nest, OPT_UPCAST, read, columns))
        return 0;
    LoopPlace p = place[at];
    memmove(place + at, place + at + 1, (size_t)(n - 2 - at) * sizeof *place);
    place[n - 2] = p;
    return n;
}

/* What is written two or four apart along an axis that is read along, the channels of an image's
 * pixels: vectors of that, and a copy for each of what lies between, which are interleaved
 * (join_stores.c). */
static bool turns_opts(Arena *a, Nest *nest, const View *v, const LoopPlace *place, int n)
{
    const Kernel *k = nest->k;
    Node *last = n > 1 ? place[n - 1].range : NULL;
    int64_t stride;
    for (int i = 0; i < n - 1; i++) {
        Node *r = place[i].range;
        const int64_t lanes = lanes_along(k, nest->target, r);
        bool good = lanes > 0 && range_extent(r) >= lanes;
        for (int j = 0; j < v->nstore && good; j++)
            good = interleaved(k, v->store[j], r) == last;
        for (int j = 0; j < v->nload && good; j++)
            good = access_stride(k, v->load[j], r, &stride) && (stride == 0 || stride == 1);
        if (good && lanes_possible(a, k, r) && nest_opt_range(nest, OPT_VECTOR, r, lanes))
            return nest_opt_range(nest, OPT_UPCAST, last, range_extent(last));
    }
    return false;
}

enum { CHEAP_OPS = 2, ACCUMULATORS = 4 };

/* A reduce of next to nothing waits for its accumulator: it gets several.  count: of what is left
 * of the axis; 0 if that is known at run time only. */
static void unroll_opt(Arena *a, Nest *nest, Node *reduce, Node *inner, int64_t count)
{
    int n, ops = 0;
    Node **order = graph_toposort(a, (int)reduce_size(reduce), reduce->src, &n);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        bool one = t->op == OP_ADD || t->op == OP_SUB || t->op == OP_MUL || t->op == OP_MAX ||
                   t->op == OP_MIN;
        if (op_is_alu(t->op) && t->dtype != INGOT_INDEX && depends_on(t, inner))
            ops += one ? 1 : CHEAP_OPS + 1; /* a function is many */
    }
    int64_t parts = ACCUMULATORS;
    while (count > 0 && parts > 1 && count % parts)
        parts--;
    if (ops <= CHEAP_OPS && parts > 1)
        nest_opt_range(nest, OPT_UNROLL, inner, parts);
}

enum { CHAINS = 8 };

/* How many of the accesses walk rows that lie whole pages apart: their lines meet in one set of a
 * cache, of which L1 has 8 to 12 ways. */
static int pages_apart(const Nest *nest, Node *const *access, int n, Node *rows)
{
    int count = 0;
    int64_t stride;
    for (int i = 0; i < n; i++)
        count +=
            access_stride(nest->k, access[i], rows, &stride) && stride &&
            stride * dtype_info[access[i]->src[0]->dtype].bytes % nest->target->machine.page == 0;
    return count;
}

/* What is scanned without lanes waits for the element before: several rows at once do not. */
static void chains_opt(Nest *nest, const View *v, Node *rows)
{
    const int lines =
        pages_apart(nest, v->load, v->nload, rows) + pages_apart(nest, v->store, v->nstore, rows);
    const int64_t extent = range_extent(rows),
                  most = lines > 1 ? nest->target->machine.ways / lines : CHAINS;
    int64_t chains = extent < most ? extent : most;
    while (chains > most / 2 && extent % chains)
        chains--;
    if (chains > 1)
        nest_opt_range(nest, OPT_UPCAST, rows, chains);
}

enum { NEAR_VECTORS = 8, FAR_VECTORS = 2 * NEAR_VECTORS, SPARE = 4 /* registers */ };

/* What is reduced or scanned over an axis that lies further apart than the lanes: several vectors
 * side by side, so that every visit of a row reads whole lines of a page that the prefetcher sees,
 * and no sum waits for itself. */
typedef struct {
    int64_t count, most; /* how many are good, and how many there may be */
} SideBySide;

static SideBySide side_by_side(Arena *a, const Nest *nest, const View *v, Node *last, int64_t lanes)
{
    int64_t extent = range_extent(last), whole = extent / lanes, most, stride;
    int n, accumulators = 0, ops = 0;
    bool far = false;
    Node **order = graph_toposort(a, 1, &nest->k->sink->src[0], &n);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        bool loops = t->op == OP_REDUCE || t->op == OP_SCAN;
        if (!depends_on(t, last) || t->dtype == INGOT_INDEX)
            continue;
        accumulators += loops;
        ops += op_is_alu(t->op) || loops ? (op_info[t->op].cost > 4 ? COST_FUNCTION : 1) : 0;
        for (uint32_t j = 1; loops && j < t->nsrc; j++)
            for (int l = 0; l < v->nload; l++)
                far |= access_stride(nest->k, v->load[l], t->src[j], &stride) &&
                       stride * dtype_info[v->load[l]->dtype].bytes >= nest->target->machine.page;
    }
    if (!accumulators || extent < 0 || whole < 2)
        return (SideBySide){1, 1};
    SideBySide s = {.most = (nest->target->machine.registers - SPARE) / accumulators};
    s.most = s.most * ops > WRITTEN_OUT ? WRITTEN_OUT / ops : s.most;
    most = far ? FAR_VECTORS : NEAR_VECTORS;
    while (most > 1 &&
           (most * ops > WRITTEN_OUT || most * accumulators > nest->target->machine.registers / 2))
        most /= 2;
    s.count = whole < most ? whole : most;
    while (s.count > 1 && whole % s.count)
        s.count--;
    return s;
}

static void side_by_side_opt(Nest *nest, Node *last, int64_t count)
{
    if (count > 1)
        nest_opt_range(nest, OPT_UPCAST, last, count);
}

/* What lies apart along the lanes lies side by side along another axis: its loop goes inside, and
 * all of a line is used while it is there. */
static void read_lines(const Nest *nest, const View *v, LoopPlace *place, int n)
{
    int64_t stride;
    for (int i = n - 2; i >= 0; i--) {
        bool inside = !v->nreduce && range_extent(place[i].range) > 1;
        for (int j = 0; j < v->nload && inside; j++)
            inside = !access_stride(nest->k, v->load[j], place[n - 1].range, &stride) ||
                     llabs(stride) <= 1 ||
                     (access_stride(nest->k, v->load[j], place[i].range, &stride) && stride == 1);
        if (!inside)
            continue;
        const LoopPlace p = place[i];
        memmove(place + i, place + i + 1, (size_t)(n - 1 - i) * sizeof *place);
        place[n - 1] = p;
        return;
    }
}

/* A row of one vector, which others follow (the channels of a group, and those of the next one):
 * some of these are read at a time, or each would read its part of every line. */
static void groups_opt(Nest *nest, const View *v, const LoopPlace *place, int n, Node *last,
                       int64_t lanes)
{
    enum { LINES = 4 };
    const Kernel *k = nest->k;
    const int64_t line = nest->target->machine.line;
    int64_t stride;
    for (int i = 0; i < n && v->nreduce && range_extent(last) == lanes; i++) {
        Node *r = place[i].range;
        bool next = r != last && !place[i].level && range_extent(r) > 1;
        int64_t bytes = line;
        for (int j = 0; j < v->nload && next; j++) {
            if (!depends_on(v->load[j], last))
                continue;
            next = access_stride(k, v->load[j], r, &stride) && stride == lanes;
            bytes = lanes * dtype_info[v->load[j]->dtype].bytes;
        }
        int64_t most = LINES * line / bytes, registers = nest->target->machine.registers / 2;
        most = most * v->nreduce > registers ? registers / v->nreduce : most;
        most = most < range_extent(r) ? most : range_extent(r);
        while (most > 1 && range_extent(r) % most)
            most--;
        if (next && most > 1 && nest_opt_range(nest, OPT_UPCAST, r, most))
            return;
    }
}

/* How far access b is from a, if that is the same everywhere. */
static bool distance_of(const Kernel *k, Node *a, Node *b, int64_t *distance)
{
    if (a->src[0] != b->src[0])
        return false;
    const KernelArg *arg = &k->args[a->src[0]->arg.i];
    Node *at[2];
    for (int i = 0; i < 2; i++) {
        Node *x = i ? b : a;
        at[i] = layout_offset(k->c, &arg->layout, arg->rank, arg->dims, x->src + first_coord(x));
    }
    return idx_value(idx_sub(k->c, at[1], at[0]), distance);
}

/* What lies apart along the lanes, does it lie side by side with what else is loaded (the nine taps
 * of a weight)?  Then each lane has a row of its own, which join_loads.c reads as a whole. */
static bool loads_are_rows(const Kernel *k, const View *v, Node *lanes)
{
    enum { SHORTEST = 4 };
    int64_t stride, distance;
    for (int j = 0; j < v->nload; j++) {
        int row = 0;
        if (!access_stride(k, v->load[j], lanes, &stride) || llabs(stride) <= 1)
            continue;
        for (int i = 0; i < v->nload; i++)
            row += distance_of(k, v->load[j], v->load[i], &distance) &&
                   llabs(distance) < v->nload && llabs(distance) < llabs(stride);
        if (row < SHORTEST)
            return false;
    }
    return true;
}

/* Is something chosen by what is loaded (the first maximum of a window)?  Scalars branch there, as
 * nobody can foresee. */
static bool chosen_by_data(Arena *a, const Kernel *k, const Node *range)
{
    int n, nsrc;
    Node **order = graph_toposort(a, 1, &k->sink->src[0], &n);
    for (int i = 0; i < n; i++) {
        if (order[i]->op != OP_WHERE || !depends_on(order[i], range))
            continue;
        Node **of = graph_toposort(a, 1, &order[i]->src[0], &nsrc);
        for (int j = 0; j < nsrc; j++)
            if (of[j]->op == OP_LOAD && depends_on(of[j], range))
                return true;
    }
    return false;
}

/* Neither what is stored nor what is reduced lies in vectors: lanes of results whose operands lie
 * two apart (a stride) are two loads; others are loaded one by one, which only much arithmetic or
 * branches are worth, if they are no rows.  Else several sums at once, of which none waits for
 * itself. */
static void apart_opts(Arena *a, Nest *nest, const View *v, LoopPlace *place, int n, bool scan)
{
    const Kernel *k = nest->k;
    Node *last = place[n - 1].range;
    int64_t lanes = lanes_along(k, nest->target, last), apart = 0, stride;
    int moves;
    bool stored = nest->target->machine.lanes && lanes && !scan;
    for (int i = 0; i < v->nstore; i++)
        stored &= access_stride(k, v->store[i], last, &stride) && stride == 1;
    if (stored && fits_lanes(a, k, last, lanes, NULL, &moves, &apart) &&
        (apart <= 2 || has_function(a, k, last) || loads_are_rows(k, v, last) ||
         chosen_by_data(a, k, last)) &&
        nest_opt_range(nest, OPT_VECTOR, last, lanes)) {
        side_by_side_opt(nest, last, side_by_side(a, nest, v, last, lanes).count);
        if (apart > 2)
            read_lines(nest, v, place, n);
    } else if (scan || (nest->target->machine.lanes && v->nreduce && is_short(a, k, last))) {
        chains_opt(nest, v, last);
    }
}

enum { MAX_CASES = 8 };

/* By how much to copy a range whose coordinate, or its remainder, says which one of several values
 * it is: each copy is that one alone, and what they are made of is computed once; else 0. */
static int64_t cases_along(const Node *const *order, int n, const Node *range)
{
    int64_t extent, by = 0, d;
    if (!idx_value(range->src[0], &extent))
        return 0;
    for (int i = 0; i < n; i++) {
        const Node *t = order[i], *at = t->op == OP_WHERE ? t->src[0] : NULL;
        if (!at || at->op != OP_EQ || t->src[1]->op == OP_CONST || t->src[2]->op == OP_CONST ||
            at->src[1]->op != OP_CONST)
            continue;
        at = below_casts(at->src[0]);
        if (at == range)
            by = extent;
        else if (at->op == OP_MOD && at->src[0] == range && idx_value(at->src[1], &d))
            by = d;
    }
    return by > MAX_CASES ? 0 : by;
}

static int64_t case_opts(Arena *a, Nest *nest, const View *v)
{
    int n;
    int64_t copies = 1;
    Node **order = graph_toposort(a, 1, &nest->k->sink->src[0], &n);
    for (int i = 0; i < v->nrange; i++) {
        int64_t by = cases_along((const Node *const *)order, n, v->range[i]);
        if (by > 1 && nest_opt_range(nest, OPT_UPCAST, v->range[i], by))
            copies *= by;
    }
    return copies;
}

/* Panels one after the other, a few at a time if rows are read along them. */
static void panels_opts(Nest *nest, LoopPlace *place, int n, int64_t lanes)
{
    enum { SIDE_BY_SIDE = 4 * WIDEST };
    LoopPlace last = place[n - 1];
    if (lanes && range_extent(last.range) >= SIDE_BY_SIDE)
        nest_opt_range(nest, OPT_UPCAST, last.range, SIDE_BY_SIDE / lanes);
    int at = lanes ? 0 : n - 2; /* before the rows that are transposed */
    memmove(place + at + 1, place + at, (size_t)(n - 1 - at) * sizeof *place);
    place[at] = last;
}

/* Loops over results, outermost first; *scan: one of them is scanned, which is innermost and stays
 * out. */
static int places_of(const Nest *nest, const View *v, LoopPlace *place, bool *scan)
{
    const Kernel *k = nest->k;
    int n = 0;
    *scan = false;
    for (int i = 0; i < v->nrange; i++) {
        if (nest->axis[nest_root(nest, v->range[i])].scanned) {
            *scan = true;
            continue;
        }
        int64_t stride;
        double key = storage_stride(k, v->store[0], v->range[i]);
        if (!v->nreduce && !access_stride(k, v->store[0], v->range[i], &stride))
            key = mean_stride(k, v->store[0], v->range[i]);
        place[n] = (LoopPlace){.range = v->range[i], .key = key};
        if (panel_of(k, v, v->range[i]))
            place[n].key = 1;
        /* what some reduce does not depend on goes inside of it, or it would run again and again */
        for (int j = 0; j < v->nreduce; j++)
            if (!depends_on(v->reduce[j], v->range[i]))
                place[n].level++;
        n++;
    }
    sort_places(place, n);
    return n;
}

/* What is reduced over several axes is read as it lies: their loops, the innermost one last, as
 * places behind those of results. */
static int reduced_places(const Nest *nest, const View *v, LoopPlace *place, int n)
{
    for (int i = 0; i < v->nreduce; i++) {
        int own, first = n;
        Node *const *range = own_ranges(v->reduce[i], &own), *load = NULL;
        bool known = own < 2;
        for (int j = 0; j < v->nload && !load; j++) {
            bool all = true;
            for (int l = 0; l < own; l++)
                all &= depends_on(v->load[j], range[l]);
            load = all ? v->load[j] : NULL;
        }
        for (int j = 0; j < n; j++)
            for (int l = 0; l < own; l++)
                known |= place[j].range == range[l];
        if (known || !load || n + own > INGOT_MAX_RANK * 4)
            continue;
        for (int j = 0; j < own; j++)
            place[n++] =
                (LoopPlace){.range = range[j], .key = storage_stride(nest->k, load, range[j])};
        sort_places(place + first, own);
        bool as_it_was = true;
        for (int j = 0; j < own; j++)
            as_it_was &= place[first + j].range == range[j];
        n = as_it_was ? first : n;
    }
    return n;
}

/* The axis of a reduce whose loop is the innermost one. */
static Node *innermost_of(const Node *reduce, const LoopPlace *place, int n)
{
    int own;
    Node *const *range = own_ranges(reduce, &own), *inner = range[own - 1];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < own; j++)
            inner = place[i].range == range[j] ? range[j] : inner;
    return inner;
}

/* Sums in so few vectors that they would wait for themselves. */
static void chained_opts(Arena *a, Nest *nest, const View *v, const LoopPlace *place, int n,
                         int64_t vectors)
{
    for (int i = 0; i < v->nreduce && vectors < ACCUMULATORS; i++) {
        Node *inner = innermost_of(v->reduce[i], place, n);
        unroll_opt(a, nest, v->reduce[i], inner, range_extent(inner));
    }
}

/* A sum over a row whose length a run says has its last lanes masked: each term is added to the
 * same lane of the same vector however long the row is, and those that a mask makes zero change no
 * bit. Of functions one vector is added at a time, for those behind the end are computed, too; else
 * some are, that do not wait for each other. *vectors: how many; false: it is none, or cannot be.
 */
static bool masks_rest(Arena *a, Nest *nest, const Node *reduce, Node *inner, int64_t lanes,
                       int64_t *vectors)
{
    enum { SUMS = 4 };
    *vectors = has_function(a, nest->k, inner) || inner->hi + 1 < 2 * SUMS * lanes ? 1 : SUMS;
    return reduce_monoid(reduce) == INGOT_REDUCE_ADD && dtype_is_float(reduce->dtype) &&
           range_extent(inner) < 0 && nest_opt_range(nest, OPT_MASK, inner, *vectors * lanes);
}

/* Rows that are reduced: their innermost axis in lanes; `last` has so many lanes already. */
static bool reduced_opts(Arena *a, Nest *nest, const View *v, const LoopPlace *place, int n,
                         Node *last, int64_t lanes)
{
    const Kernel *k = nest->k;
    const Target *t = nest->target;
    bool done = false;
    int moves;
    for (int i = 0; i < v->nreduce && t->machine.lanes; i++) {
        Node *r = v->reduce[i], *inner = innermost_of(r, place, n);
        int64_t want = lanes_along(k, t, inner);
        if (lanes && want > lanes) /* what is stored has wider elements beside it */
            want = lanes;
        if (!want || (lanes && want != lanes) || inner->hi + 1 < 2 * want ||
            !fits_lanes(a, k, inner, want, NULL, &moves, NULL))
            continue;
        if (last && lanes && depends_on(r, last)) /* it would be two-dimensional */
            continue;
        int64_t vectors;
        const bool masked = masks_rest(a, nest, r, inner, want, &vectors);
        if (nest_opt_range(nest, OPT_VECTOR, inner, want)) {
            done = true;
            if (masked && vectors > 1)
                nest_opt_range(nest, OPT_UNROLL, inner, vectors);
            else if (!masked)
                unroll_opt(a, nest, r, inner, range_extent(inner) / want); /* of run time: 0 */
        }
    }
    return done;
}

static void staged_opts(Arena *a, Nest *nest, int64_t lanes)
{
    const Kernel *k = nest->k;
    int moves;
    for (int i = 0; i < k->naxis; i++) {
        Node *range = k->axes[i].range;
        int64_t want = k->axes[i].staged ? lanes_along(k, nest->target, range) : 0;
        if (want && (!lanes || want == lanes) && range_extent(range) >= want &&
            fits_lanes(a, k, range, want, NULL, &moves, NULL))
            nest_opt_range(nest, OPT_VECTOR, range, want);
    }
}

bool whole_rows_opts(Arena *a, Nest *nest, const View *v)
{
    LoopPlace place[INGOT_MAX_RANK * 2];
    bool scan;
    int n = places_of(nest, v, place, &scan), moves;
    Node *last = n ? place[n - 1].range : NULL;
    int64_t lanes = last ? lanes_along(nest->k, nest->target, last) : 0;
    if (scan || !lanes || !nest->target->machine.lanes ||
        !fits_lanes(a, nest->k, last, lanes, NULL, &moves, NULL) ||
        !nest_opt_range(nest, OPT_VECTOR, last, lanes))
        return false;
    SideBySide s = side_by_side(a, nest, v, last, lanes);
    return partial_opts(a, nest, v, place, n, lanes, s.most, &s.count);
}

/* Each copy writes a row of its own. Of more rows than a set of the first cache has ways, lines are
 * gone before the next vector of a row: some vectors, neighbouring lines, are written at a time. */
static int64_t vectors_of_copies(const Nest *nest, Node *last, int64_t lanes, int64_t copies)
{
    enum { VECTORS = 4 };
    const bool whole = range_extent(last) > 0 && range_extent(last) % (VECTORS * lanes) == 0;
    return whole && copies > nest->target->machine.ways ? VECTORS : 1;
}

/* The loop that lanes run along: the innermost one, or, where all that it is in is reduced for each
 * of them, another one that lies side by side: the channels of pixels that are normalised one by
 * one.  *lanes: how many; 0: along no loop, and this is the innermost one. */
static Node *lanes_place(Arena *a, const Nest *nest, const View *v, const LoopPlace *place, int n,
                         int64_t *lanes)
{
    int moves;
    for (int i = n - 1; i >= 0 && nest->target->machine.lanes; i--) {
        Node *r = place[i].range;
        if (i < n - 1 && (!v->nreduce || place[i].level))
            continue;
        const int64_t most = lanes_along(nest->k, nest->target, r),
                      panel = n > 1 ? panel_of(nest->k, v, r) : 0;
        *lanes = panel && panel < most ? panel : most;
        if (*lanes && fits_lanes(a, nest->k, r, *lanes, NULL, &moves, NULL))
            return r;
    }
    *lanes = 0;
    return n ? place[n - 1].range : NULL;
}

void plain_opts(Arena *a, Nest *nest, const View *v)
{
    LoopPlace place[INGOT_MAX_RANK * 4];
    bool scan;
    int n = places_of(nest, v, place, &scan);
    const int64_t copies = case_opts(a, nest, v);
    const int reduced = reduced_places(nest, v, place, n) - n;
    const int cut = nest->nsplit;
    int64_t lanes;
    Node *last = lanes_place(a, nest, v, place, n, &lanes);
    const int64_t panel = n > 1 ? panel_of(nest->k, v, last) : 0;
    if (lanes && nest_opt_range(nest, OPT_VECTOR, last, lanes)) {
        SideBySide s = side_by_side(a, nest, v, last, lanes);
        if (!scan && last == place[n - 1].range &&
            partial_opts(a, nest, v, place, n, lanes, s.most, &s.count))
            return;
        const int64_t vectors = scan ? s.count
                                : copies > 1 && !v->nreduce
                                    ? vectors_of_copies(nest, last, lanes, copies)
                                    : vectors_for_parts(nest, v, place, n, lanes, s.count);
        side_by_side_opt(nest, last, vectors);
        groups_opt(nest, v, place, n, last, lanes);
        if (vectors < s.count)
            chained_opts(a, nest, v, place, n + reduced, vectors);
    } else {
        lanes = 0;
        const bool moves = last && !v->nreduce && !scan,
                   turns = moves && turns_opts(a, nest, v, place, n);
        int rows = moves && !turns ? rows_opts(a, nest, v, place, n) : 0;
        if (rows)
            n = rows;
        else if (!turns && last && !v->nreduce && !scan)
            n = block_opts(nest, v, place, n);
    }
    if (panel && nest->nsplit && !v->nreduce && !scan)
        panels_opts(nest, place, n, lanes);
    const int all = n + reduced; /* what is reduced is in no blocks: n is as it was */
    const bool rows = reduced_opts(a, nest, v, place, all, last, lanes);
    if (last && !lanes && !rows && nest->nsplit == cut)
        apart_opts(a, nest, v, place, n, scan);
    staged_opts(a, nest, lanes);
    order_opt(nest, place, all);
}
