/* heuristic.c - opts without search.
 *
 * A contraction gets a register tile: `vectors` vectors of outputs along one axis (the lanes, over
 * which the constant operand is stored contiguously) times `rows` outputs along another, over
 * which that operand is reused.  Per step of the reduced axes it loads vectors + rows values and
 * does vectors * rows multiply-adds.  The constant operand is stored in the order in which the
 * loops read it.  Everything else runs its loops in the order of storage, innermost in lanes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* Done to the loop that is left of a range; where the nest refuses, it is left as it is. */
/* ---- what can be done in lanes ------------------------------------------------------------------ */

/* A function of coordinates: these may be what is compared, or become numbers, if they advance evenly along the lanes. */
static bool takes_ramps(const Kernel *k, Node *t, Node *range)
{
    bool ramps = t->op == OP_CAST || (t->op >= OP_EQ && t->op <= OP_LE);
    int64_t step;
    for (uint32_t j = 0; j < t->nsrc; j++)
        if (t->src[j]->dtype == INGOT_INDEX && t->op != OP_REDUCE && t->op != OP_SCAN &&
            depends_on(t->src[j], range) && !(ramps && lane_ramp(k->c, t->src[j], range, &step)))
            return false;
    return true;
}

/* Whether all that depends on range can be computed in its lanes.  Buffers in `free` (by argument) may be laid out as
 * this needs, and `moves` counts other accesses whose stride is not 1: can_lay_out() knows whether they can be copied.
 * lanes: how many, 0: not known.  apart: NULL, or what is loaded may lie apart; becomes the greatest such stride.  In a contraction, whose loads are to be
 * vectors, it may not, nor may a gate differ from lane to lane. */
bool fits_lanes(Arena *a, const Kernel *k, Node *range, int64_t lanes, const bool *free, int *moves,
                int64_t *apart)
{
    int n;
    Node **order = graph_toposort(a, 1, &k->sink->src[0], &n);
    *moves = 0;
    const bool *on = moving(a, order, n, range);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        bool own = false;
        int nown;
        Node *const *hidden = own_ranges(t, &nown);
        for (int j = 0; j < nown; j++)
            own |= hidden[j] == range;
        if (own && !lane_op(t))
            return false;
        if (t == range || t->dtype == INGOT_INDEX || t->op == OP_BUFFER || t->op == OP_END ||
            !on[t->id])
            continue;
        if (t->op == OP_STAGE) { /* lies side by side along its last range */
            Node *last = t->src[t->nsrc - 1];
            int64_t step;
            for (uint32_t j = 1 + (uint32_t)nown; j + 1 < t->nsrc; j++)
                if (depends_on(t->src[j], range))
                    return false;
            if (!lane_op(t) ||
                (depends_on(last, range) && !(lane_ramp(k->c, last, range, &step) && step == 1)))
                return false;
            continue;
        }
        if (t->op != OP_LOAD && t->op != OP_STORE) {
            if (!takes_ramps(k, t, range) || !lane_op(t))
                return false;
            continue;
        }
        if (!lane_type(t->dtype) || (t->op == OP_STORE && !node_is_const_i(t->src[1], 1)) ||
            (depends_on(t->src[1], range) && free && !apart))
            return false;
        Move m = access_move(k->c, t, range);
        if (m.kind == MOVE_MIXED)
            return false;
        if (m.kind == MOVE_NONE)
            continue;
        if (free && free[t->src[0]->arg.i] && !(apart && t->op == OP_LOAD)) {
            if (m.stride != 1 && !interleaved(k, t, range))
                return false;
            continue;
        }
        int64_t stride;
        bool known = vector_stride(k, t, range, lanes, &stride);
        if (apart && t->op == OP_LOAD && (free && free[t->src[0]->arg.i] ? m.stride : known)) {
            *apart = known && llabs(stride) > *apart ? llabs(stride) : *apart;
            continue;
        }
        if ((known && stride == 1) || (free && interleaved(k, t, range)))
            continue;
        if (m.stride != 1 || !free)
            return false;
        ++*moves;
    }
    return true;
}

static int64_t lanes_for(const Kernel *k, const Target *t, Node *range, int64_t extent)
{
    int64_t n = lanes_most(k, range, t);
    while (n > extent)
        n /= 2;
    return n >= 4 ? n : 0;
}

enum { FEW = 4 };

/* The lanes of a vector along an axis; of a size of run time, which may be far below its bound, at most a quarter of that. */
int64_t lanes_along(const Kernel *k, const Target *t, Node *range)
{
    int64_t extent = range_extent(range);
    return lanes_for(k, t, range, extent < 0 ? (range->hi + 1) / FEW : extent);
}

/* How many rows of a tile may be taken; of a size of run time a few, for what fills no tile is computed row by row. */
static int64_t rows_of(Node *range)
{
    int64_t extent = range_extent(range);
    return extent < 0 ? (range->hi < FEW ? range->hi + 1 : FEW) : extent;
}

/* ---- loops in the order of storage ----------------------------------------------------------------- */

typedef struct {
    Node *range;
    int level;  /* how many reduces it lies inside of */
    bool inner; /* the inner part of a block */
    double key;
} Place;

static void sort_places(Place *p, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0; j--) {
            bool outer = p[j].level != p[j - 1].level ? p[j].level < p[j - 1].level
                                                      : p[j].key > p[j - 1].key;
            if (!outer)
                break;
            Place t = p[j];
            p[j] = p[j - 1];
            p[j - 1] = t;
        }
}

static double storage_stride(const Kernel *k, Node *access, Node *range)
{
    int64_t s;
    if (!access || !access_stride(k, access, range, &s))
        return 1e18;
    return (double)(s < 0 ? -s : s);
}

/* The loops that are left, in this order. */
static void order_opt(Nest *nest, const Place *p, int n)
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

/* What is written along one axis and read along another moves in blocks, so that every line of cache is used while it is
 * there.  The last axes are those of the writes, of which short ones (the phases of a stride) stay whole inside of a block;
 * gives the number of places. */
static int block_opts(Nest *nest, const View *v, Place *place, int n)
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
    Place read = place[other], write = place[cut], tail[INGOT_MAX_RANK * 2];
    int ntail = n - 1 - cut;
    memcpy(tail, place + cut + 1, (size_t)ntail * sizeof *place);
    nest_opt_range(nest, OPT_SPLIT, read.range, BLOCK);
    nest_opt_range(nest, OPT_SPLIT, write.range, BLOCK);
    memmove(place + other, place + other + 1, (size_t)(cut - other - 1) * sizeof *place);
    n = cut - 1;
    const Place *const from[] = {&read, &write, &write, &read};
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

enum { SHORT_OPS = 16 };

/* So little is computed along the range, coordinates too, that it may be copied. */
static bool is_short(Arena *a, const Kernel *k, Node *range)
{
    int n, ops = 0;
    Node **order = graph_toposort(a, 1, &k->sink->src[0], &n);
    for (int i = 0; i < n; i++)
        if (op_is_alu(order[i]->op) && depends_on(order[i], range))
            ops += op_info[order[i]->op].cost;
    return ops <= SHORT_OPS;
}

/* The result lies in panels, blocks of the range in each of which other axes come first: elements of a block, or 0. */
static int64_t panel_of(const Kernel *k, const View *v, Node *range)
{
    int64_t stride, block = 16;
    if (access_stride(k, v->store[0], range, &stride))
        return 0;
    while (block > 2 && !(vector_stride(k, v->store[0], range, block, &stride) && stride == 1))
        block /= 2;
    return block > 2 ? block : 0;
}

/* What is written along one axis and read along another: vectors of the former and as many copies along the latter are a
 * square whose rows are loaded and transposed in registers (rows.c).  Gives the number of places, 0: it is not so. */
static int rows_opts(Arena *a, Nest *nest, const View *v, Place *place, int n)
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
    Place p = place[at];
    memmove(place + at, place + at + 1, (size_t)(n - 2 - at) * sizeof *place);
    place[n - 2] = p;
    return n;
}

enum { CHEAP_OPS = 2, ACCUMULATORS = 4 };

/* A reduce of next to nothing waits for its accumulator: it gets several.  count: of what is left of the axis; 0 if that is known at
 * run time only. */
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

/* What is scanned without lanes waits for the element before: several rows at once do not. */
static void chains_opt(Nest *nest, Node *rows)
{
    int64_t extent = range_extent(rows), chains = extent < CHAINS ? extent : CHAINS;
    while (chains > CHAINS / 2 && extent % chains)
        chains--;
    if (chains > 1)
        nest_opt_range(nest, OPT_UPCAST, rows, chains);
}

enum { FAR_VECTORS = 16, NEAR_VECTORS = 8, PAGE = 4096, TILE_OPS = 64 };

/* What is reduced or scanned over an axis that lies further apart than the lanes: several vectors side by side, so that every
 * visit of a row reads whole lines of a page that the prefetcher sees, and no sum waits for itself. */
static void side_by_side_opt(Arena *a, Nest *nest, const View *v, Node *last, int64_t lanes)
{
    int64_t extent = range_extent(last), whole = extent / lanes, most = NEAR_VECTORS, stride;
    int n, accumulators = 0, ops = 0;
    bool far = false;
    Node **order = graph_toposort(a, 1, &nest->k->sink->src[0], &n);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        bool loops = t->op == OP_REDUCE || t->op == OP_SCAN;
        if (!depends_on(t, last) || t->dtype == INGOT_INDEX)
            continue;
        accumulators += loops;
        ops += op_is_alu(t->op) || loops ? (op_info[t->op].cost > 4 ? 16 : 1) : 0;
        for (uint32_t j = 1; loops && j < t->nsrc; j++)
            for (int l = 0; l < v->nload; l++)
                far |= access_stride(nest->k, v->load[l], t->src[j], &stride) &&
                       stride * dtype_info[v->load[l]->dtype].bytes >= PAGE;
    }
    if (!accumulators || extent < 0 || whole < 2)
        return;
    most = far ? FAR_VECTORS : NEAR_VECTORS;
    while (most > 1 && (most * ops > TILE_OPS || most * accumulators > nest->target->registers / 2))
        most /= 2;
    int64_t count = whole < most ? whole : most;
    while (count > 1 && whole % count)
        count--;
    if (count > 1)
        nest_opt_range(nest, OPT_UPCAST, last, count);
}

/* Is there a function, of which a vector takes a fraction of the time? */
static bool has_function(Arena *a, const Kernel *k, Node *range)
{
    int n;
    Node **order = graph_toposort(a, 1, &k->sink->src[0], &n);
    for (int i = 0; i < n; i++)
        if (op_is_alu(order[i]->op) && op_info[order[i]->op].cost >= 16 &&
            depends_on(order[i], range))
            return true;
    return false;
}

/* Neither what is stored nor what is reduced lies in vectors: lanes of results whose operands lie two apart (a stride) are
 * two loads; others are loaded one by one, which only much arithmetic is worth.  Else several sums at once, of which none waits
 * for itself. */
static void apart_opts(Arena *a, Nest *nest, const View *v, Node *last, bool scan)
{
    const Kernel *k = nest->k;
    int64_t lanes = lanes_along(k, nest->target, last), apart = 0, stride;
    int moves;
    bool stored = nest->target->lanes && lanes && !scan;
    for (int i = 0; i < v->nstore; i++)
        stored &= access_stride(k, v->store[i], last, &stride) && stride == 1;
    if (stored && fits_lanes(a, k, last, lanes, NULL, &moves, &apart) &&
        (apart <= 2 || has_function(a, k, last)) && nest_opt_range(nest, OPT_VECTOR, last, lanes))
        side_by_side_opt(a, nest, v, last, lanes);
    else if (scan || (nest->target->lanes && v->nreduce && is_short(a, k, last)))
        chains_opt(nest, last);
}

enum { MAX_CASES = 8 };

/* By how much to copy a range whose coordinate, or its remainder, says which one of several values it is: each copy is that
 * one alone, and what they are made of is computed once; else 0. */
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
        at = at->src[0];
        while (at->op == OP_CAST)
            at = at->src[0];
        if (at == range)
            by = extent;
        else if (at->op == OP_MOD && at->src[0] == range && idx_value(at->src[1], &d))
            by = d;
    }
    return by > MAX_CASES ? 0 : by;
}

static void case_opts(Arena *a, Nest *nest, const View *v)
{
    int n;
    Node **order = graph_toposort(a, 1, &nest->k->sink->src[0], &n);
    for (int i = 0; i < v->nrange; i++) {
        int64_t by = cases_along((const Node *const *)order, n, v->range[i]);
        if (by > 1)
            nest_opt_range(nest, OPT_UPCAST, v->range[i], by);
    }
}

/* Panels one after the other, a few at a time if rows are read along them. */
static void panels_opts(Nest *nest, Place *place, int n, int64_t lanes)
{
    enum { SIDE_BY_SIDE = 64 };
    Place last = place[n - 1];
    if (lanes && range_extent(last.range) >= SIDE_BY_SIDE)
        nest_opt_range(nest, OPT_UPCAST, last.range, SIDE_BY_SIDE / lanes);
    int at = lanes ? 0 : n - 2; /* before the rows that are transposed */
    memmove(place + at + 1, place + at, (size_t)(n - 1 - at) * sizeof *place);
    place[at] = last;
}

static void plain_opts(Arena *a, Nest *nest, const View *v)
{
    const Kernel *k = nest->k;
    const Target *t = nest->target;
    Place place[INGOT_MAX_RANK * 2];
    int n = 0;
    bool scan = false;
    for (int i = 0; i < v->nrange; i++) {
        if (nest->axis[nest_root(nest, v->range[i])].scanned) { /* innermost, and nothing else */
            scan = true;
            continue;
        }
        place[n] =
            (Place){.range = v->range[i], .key = storage_stride(k, v->store[0], v->range[i])};
        if (panel_of(k, v, v->range[i]))
            place[n].key = 1;
        /* what some reduce does not depend on goes inside of it, or it would run again and again */
        for (int j = 0; j < v->nreduce; j++)
            if (!depends_on(v->reduce[j], v->range[i]))
                place[n].level++;
        n++;
    }
    sort_places(place, n);
    case_opts(a, nest, v);
    Node *last = n ? place[n - 1].range : NULL;
    int64_t lanes = last ? lanes_along(k, t, last) : 0, panel = n > 1 ? panel_of(k, v, last) : 0;
    int moves;
    lanes = panel && panel < lanes ? panel : lanes;
    if (t->lanes && lanes && fits_lanes(a, k, last, lanes, NULL, &moves, NULL) &&
        nest_opt_range(nest, OPT_VECTOR, last, lanes)) {
        side_by_side_opt(a, nest, v, last, lanes);
    } else {
        lanes = 0;
        int rows = last && !v->nreduce && !scan ? rows_opts(a, nest, v, place, n) : 0;
        if (rows)
            n = rows;
        else if (last && !v->nreduce && !scan)
            n = block_opts(nest, v, place, n);
    }
    if (panel && nest->nsplit && !v->nreduce && !scan)
        panels_opts(nest, place, n, lanes);
    /* rows that are reduced: their innermost axis in lanes */
    bool rows = false;
    for (int i = 0; i < v->nreduce && t->lanes; i++) {
        Node *r = v->reduce[i], *inner = r->src[r->nsrc - 1];
        int64_t want = lanes_along(k, t, inner);
        if (!want || (lanes && want != lanes) || inner->hi + 1 < 2 * want ||
            !fits_lanes(a, k, inner, want, NULL, &moves, NULL))
            continue;
        bool nested = false; /* below another vectorised axis it would be two-dimensional */
        nested |= last && depends_on(r, last) && lanes;
        if (nested)
            continue;
        if (nest_opt_range(nest, OPT_VECTOR, inner, want)) {
            rows = true;
            unroll_opt(a, nest, r, inner, range_extent(inner) / want); /* of run time: 0 */
        }
    }
    if (last && !lanes && !rows && !nest->nsplit)
        apart_opts(a, nest, v, last, scan);
    for (int i = 0; i < k->naxis; i++) { /* what is staged */
        Node *range = k->axes[i].range;
        int64_t want = k->axes[i].staged ? lanes_along(k, t, range) : 0;
        if (want && (!lanes || want == lanes) && range_extent(range) >= want &&
            fits_lanes(a, k, range, want, NULL, &moves, NULL))
            nest_opt_range(nest, OPT_VECTOR, range, want);
    }
    order_opt(nest, place, n);
}

/* ---- contractions ------------------------------------------------------------------------------------- */

enum { MAX_FOUR = 4 };
typedef struct {
    Node *lanes, *rows; /* rows: NULL if no axis reuses the lanes' operand */
    /* or NULL; where the lanes are a reduced axis, outputs over which the rows' operand is reused; where they are
     * stored two apart, what lies between */
    Node *columns;
    int64_t width, vectors, nrows, ncolumns;
    int moves;            /* operands that have to be copied first */
    Node *four[MAX_FOUR]; /* DOT: the reduced axes that are taken by fours */
    int nfour;
    bool apart; /* the lanes are stored two apart */
    bool reuse; /* some operand does not move with the lanes */
    double score;
} RegisterTile;

static double used(int64_t extent, int64_t step)
{
    int64_t whole = (extent + step - 1) / step * step;
    return (double)extent / (double)whole;
}

/* Bytes of a block that stay in L1 beside the other operand, and over how many rows a vector from L2 has to be used. */
enum { MAX_VECTORS = 4, L1_BLOCK = 16 << 10, L2_ROWS = 8 };

/* What so many multiply-adds for every load are worth: below ENOUGH the loads are what takes time; beyond, up to PLENTY, some of
 * them wait for a cache, and the fewer there are the less. */
static double flow_of(double each, bool lanes)
{
    const double ENOUGH = 1.6, PLENTY = 2.2, WAIT = 0.3;
    double more = (each < PLENTY ? each : PLENTY) - ENOUGH;
    return more <= 0 ? each : ENOUGH + (lanes ? WAIT * more : 0);
}

/* One in so many sums may have to leave its register: of a window that slides; of a tile in which each has so many others to wait for
 * that its way to L1 and back takes next to no time. That way begins anew in each tile: it pays for sums of many terms. */
enum { SPILL = 4, SPILT = 24, MANY_TERMS = 128 };

/* Are neighbours along `rows` of the innermost reduced loop's next iterations (a window that slides)?  Then C compilers keep
 * what they have loaded of each, in a register. */
static bool slides(const Kernel *k, const View *v, Node *rows)
{
    for (int j = 0; j < v->nfactor; j++) {
        int64_t step, inner = 0, extent = 0, stride;
        if (!access_stride(k, v->factor[j], rows, &step) || !step)
            continue;
        for (uint32_t i = 1; i < v->dot->nsrc; i++)
            if (access_stride(k, v->factor[j], v->dot->src[i], &stride) && stride &&
                (!inner || llabs(stride) < inner)) {
                inner = llabs(stride);
                extent = v->dot->src[i]->hi + 1;
            }
        if (inner && step % inner == 0 && llabs(step) / inner < extent)
            return true;
    }
    return false;
}

/* What it takes to read the operands that the lanes move, if L2 does not hold them, by the time of all products. */
static double read_again(const Kernel *k, const View *v, Node *lanes, const Target *t)
{
    double bytes = 0, products = 1;
    for (int i = 0; i < k->naxis; i++)
        products *= (double)k->axes[i].range->hi + 1;
    for (int j = 0; j < v->nfactor && t->lanes; j++) {
        const KernelArg *arg = &k->args[v->factor[j]->src[0]->arg.i];
        double size = dtype_info[v->factor[j]->dtype].bytes;
        for (int d = 0; d < arg->rank; d++)
            size *= (double)arg->dims[d]->hi;
        bytes += depends_on(v->factor[j], lanes) ? size : 0;
    }
    return bytes <= t->level[1].bytes
               ? 0
               : cost_bytes(bytes, INFINITY, t) / (2 * products / t->rate[UNIT_TILE]);
}

/* Does the other operand lie side by side along the rows, its terms pages apart? Then it is copied into panels of them. */
static bool in_row_panels(const Kernel *k, const View *v, const Buffer *const *bufs, Node *lanes,
                          Node *rows)
{
    int64_t stride;
    for (int j = 0; j < v->nfactor; j++)
        if (!depends_on(v->factor[j], lanes) && depends_on(v->factor[j], rows))
            return bufs[v->factor[j]->src[0]->arg.i]->kind != BUF_WEIGHT &&
                   access_stride(k, v->factor[j], rows, &stride) && stride == 1 &&
                   walks_pages(k, v, v->factor[j]);
    return false;
}

/* pair: what is interleaved with the lanes, or NULL. */
static RegisterTile pick_tile(const Kernel *k, const View *v, const Buffer *const *bufs,
                              Node *lanes, Node *pair, bool four, int moves, const Target *t)
{
    int64_t extent = range_extent(lanes), width = t->lanes ? lanes_for(k, t, lanes, extent) : 1;
    RegisterTile best = {.lanes = lanes,
                         .columns = pair,
                         .width = width,
                         .vectors = 1,
                         .nrows = 1,
                         .ncolumns = pair ? 2 : 1,
                         .apart = pair != NULL,
                         .moves = moves};
    for (int j = 0; j < v->nfactor; j++)
        best.reuse |= !depends_on(v->factor[j], lanes);
    bool small = !t->lanes && t->registers && !dtype_is_float(v->dot->dtype);
    int64_t registers = t->lanes || small ? t->registers : 24, sums = v->ndot;
    if (t->lanes && width * lane_bytes(k, lanes) > 4 * t->lanes) /* a vector takes two */
        registers /= 2;
    double block = (double)(width * dtype_info[v->dot->dtype].bytes);
    bool signs = four && t->lanes && !t->any_sign, pairs = four && t->pairs;
    for (int j = 0; j < v->nfactor && four; j++) {
        signs &= v->factor[j]->dtype == INGOT_I8;
        if (depends_on(v->factor[j], lanes))
            block = (double)(width * dtype_info[v->factor[j]->dtype].bytes);
    }
    for (uint32_t j = 1; j < v->dot->nsrc; j++)
        block *= (double)v->dot->src[j]->hi + 1;
    const double again = read_again(k, v, lanes, t);
    /* a block that all rows read is in L2 beside the next one, and what is left of it is theirs; else it comes from further away for
     * each tile */
    double near = t->lanes ? t->level[1].bytes * 7 / 16 : INFINITY, uses = 1, terms = 1;
    for (uint32_t j = 1; j < v->dot->nsrc; j++)
        terms *= (double)v->dot->src[j]->hi + 1;
    for (int i = 0; i < v->nrange; i++)
        uses *= view_reuses(v, lanes, v->range[i]) ? (double)v->range[i]->hi + 1 : 1;
    for (int64_t vectors = 1; vectors <= MAX_VECTORS && vectors * width <= extent; vectors++)
        for (int i = v->nrange;
             i-- > -1;) { /* -1 stands for no rows; of equals the last axis: its rows lie close */
            Node *rows = i >= 0 ? v->range[i] : NULL;
            int64_t nr = rows ? rows_of(rows) : 1;
            bool kept = rows && t->lanes && slides(k, v, rows),
                 panels = rows && t->lanes && in_row_panels(k, v, bufs, lanes, rows);
            if (rows == lanes || (pair && rows == pair) ||
                (rows && (!view_reuses(v, lanes, rows) || !view_reuses(v, rows, NULL))))
                continue;
            for (int64_t m = 1; m <= nr && m <= 16; m++) {
                int64_t each = m * best.ncolumns; /* of a vector */
                int64_t operands = sums * vectors + 1;
                if (four &&
                    small) /* two registers each, of which those of one side come one by one */
                    operands = 2 * ((vectors < each ? vectors : each) + 1);
                if (signs) /* a sum beside each vector, and what flips a sign */
                    operands = 2 * sums * vectors + 3;
                if (pairs) /* two each, bytes 0 and 2 and bytes 1 and 3; those of rows come one by one */
                    operands = 2 * (sums * vectors + 1);
                int64_t spilt =
                    t->lanes && !four && terms >= MANY_TERMS ? sums * vectors * each / SPILT : 0;
                if (sums * vectors * each + operands > registers + (four && small) + spilt ||
                    (!t->lanes && m > 4))
                    break;
                double acc = (double)(sums * vectors * each), wide = (double)(sums * vectors);
                double loads = best.reuse ? wide + (double)each : acc + wide;
                double flow = flow_of(acc / loads, t->lanes > 0);
                if (kept && acc + operands + (double)m - (double)registers > acc / SPILL)
                    continue;
                double latency = acc > 10 ? 10 : acc;
                double score = used(extent, vectors * width) * used(nr, m) * flow * latency *
                               (double)(width > 0 ? width : 1);
                if (signs) /* four terms at once, beside what the signs take */
                    score *= 4 * acc / (acc + wide + (double)each);
                if (pairs) /* beside what makes pairs of them */
                    score *= 2 * acc / (acc + wide + (double)each);
                /* a block of the lanes' operand that L1 does not hold comes from L2 again for every m rows; bytes fast enough */
                if (!signs && !pairs && block * wide > L1_BLOCK && m < L2_ROWS)
                    score *= (double)(L2_ROWS + m) / (2.0 * L2_ROWS);
                if (uses > m && block * wide > near)
                    score *= near / (block * wide);
                /* whole rows leave no tile behind, which reads all of the lanes' operand again */
                if (nr % m)
                    score *= 0.93 / (1 + again);
                if (extent % (vectors * width))
                    score *= 0.95;
                if (panels && m % PANEL)
                    score *= 0.9;
                if (score > best.score * 1.001) {
                    RegisterTile b = best;
                    b.rows = m > 1 ? rows : NULL;
                    b.vectors = vectors;
                    b.nrows = m;
                    b.score = score;
                    best = b;
                }
            }
        }
    return best;
}

/* Lanes along a reduced axis, whose sums are joined at the end: where the results do not lie side by side, or are few, but
 * both operands do.  rows * columns results share their loads. */
static RegisterTile pick_dot_tile(Arena *a, const View *v, const Kernel *k, const bool *free,
                                  const Target *t)
{
    RegisterTile best = {.vectors = 1, .nrows = 1, .ncolumns = 1};
    for (uint32_t i = 1; i < v->dot->nsrc && t->lanes; i++) {
        int64_t extent = v->dot->src[i]->hi + 1, width = lanes_along(k, t, v->dot->src[i]);
        int moves;
        if (width && used(extent, width) * (double)width > best.score &&
            fits_lanes(a, k, v->dot->src[i], width, free, &moves, NULL) && !moves) {
            best.lanes = v->dot->src[i];
            best.width = width;
            best.score = used(extent, width) * (double)width;
        }
    }
    double most = 1;
    for (int i = 0; i < v->nrange && best.lanes; i++)
        for (int j = -1; j < v->nrange; j++) {
            Node *rows = v->range[i], *columns = j < 0 ? NULL : v->range[j];
            int64_t nr = rows_of(rows), nc = columns ? rows_of(columns) : 1;
            if (rows == columns || !view_reuses(v, rows, columns) ||
                (columns && !view_reuses(v, columns, rows)))
                continue;
            for (int64_t m = 1; m <= nr && m <= 8; m++)
                for (int64_t c = 1; c <= nc && c <= 4; c++) {
                    double acc = (double)(m * c * v->ndot), loads = (double)(m + c * v->ndot);
                    double score =
                        used(nr, m) * used(nc, c) * (acc / loads) * (acc > 10 ? 10 : acc);
                    if (acc + (double)m + 1 > t->registers || score <= most)
                        continue;
                    most = score;
                    best.rows = m > 1 ? rows : NULL;
                    best.columns = c > 1 ? columns : NULL;
                    best.nrows = m;
                    best.ncolumns = c;
                }
        }
    return best;
}

/* Beyond any stride, and small enough to keep their order. */
static const double LANES_FIRST = 1e12;

enum {
    PAGES = 48,    /* that a core finds without looking far */
    STAGE_USES = 4 /* loops over rows that have to read a panel again to pay for it */
};

bool walks_pages(const Kernel *k, const View *v, Node *load)
{
    double step = dtype_info[load->dtype].bytes, pages = 1;
    for (uint32_t i = 1; i < v->dot->nsrc; i++) {
        double bytes = step * storage_stride(k, load, v->dot->src[i]);
        if (bytes > 0)
            pages *= 1 + (double)v->dot->src[i]->hi * (bytes < PAGE ? bytes / PAGE : 1);
    }
    return pages > PAGES;
}

/* Operands that are computed when the model runs lie as they were written: the panel that a tile's rows read again and again is
 * copied to a place of its own where it lies badly. */
static bool wants_place(const Kernel *k, const View *v, const Buffer *const *bufs,
                        const RegisterTile *tile, Node *load, const Target *t)
{
    int64_t stride;
    if (bufs[load->src[0]->arg.i]->kind == BUF_WEIGHT || !depends_on(load, tile->lanes) ||
        !tile->rows || tile->nfour || depends_on(load, tile->rows) ||
        rows_of(tile->rows) < STAGE_USES * tile->nrows)
        return false;
    bool apart = !access_stride(k, load, tile->lanes, &stride) || stride != 1;
    double panel = (double)(tile->vectors * tile->width * dtype_info[load->dtype].bytes);
    for (uint32_t i = 1; i < v->dot->nsrc; i++)
        panel *= (double)v->dot->src[i]->hi + 1;
    return panel <= t->level[1].bytes / 2 && (apart || walks_pages(k, v, load));
}

/* How many copies the lanes take: what lies apart along them, but not what comes out of a place that rows are transposed into. */
static int copies_of(const Kernel *k, const View *v, const Buffer *const *bufs,
                     const RegisterTile *tile, const Target *t)
{
    int copies = tile->moves;
    int64_t stride;
    for (int j = 0; j < v->nfactor && copies; j++)
        copies -= access_move(k->c, v->factor[j], tile->lanes).kind == MOVE_AXIS &&
                  access_stride(k, v->factor[j], tile->lanes, &stride) && llabs(stride) > 1 &&
                  wants_place(k, v, bufs, tile, v->factor[j], t);
    return copies;
}

static void stage_opts(Nest *nest, const View *v, const Buffer *const *bufs,
                       const RegisterTile *tile)
{
    const Kernel *k = nest->k;
    for (int j = 0; j < v->nfactor; j++) {
        Node *load = v->factor[j];
        int arg = (int)load->src[0]->arg.i, at = -1;
        if (!wants_place(k, v, bufs, tile, load, nest->target))
            continue;
        for (int i = 0; i < nest->norder; i++) {
            const NestAxis *x = &nest->axis[nest->order[i]];
            if (!x->reduced && !x->remainder && x->extent != 1 &&
                depends_on(load, k->axes[x->root].range))
                at = nest->order[i];
        }
        if (at >= 0) {
            nest_opt(nest, OPT_STAGE, nest->axis[at].name, arg);
        }
    }
}

/* Weights that L2 does not hold come from further away, panel after panel: the next one is asked for while the rows of results use
 * this one, where it has lines enough for their loops. */
static void prefetch_opts(Nest *nest, const View *v, const Buffer *const *bufs,
                          const RegisterTile *tile)
{
    const Kernel *k = nest->k;
    int first = 0; /* outside of it are contractions side by side, each with weights of its own */
    while (first + 1 < nest->norder &&
           k->axes[nest->axis[nest->order[first]].root].range != tile->lanes)
        first++;
    const NestAxis *outer = &nest->axis[nest->order[first]];
    int64_t times = 1, size;
    if (!tile->rows || tile->nfour || k->axes[outer->root].range != tile->lanes)
        return;
    for (int i = 0; i < first; i++)
        for (int j = 0; j < v->nfactor; j++)
            if (!depends_on(v->factor[j], k->axes[nest->axis[nest->order[i]].root].range))
                return;
    for (int i = first + 1; i < nest->norder; i++) {
        const NestAxis *x = &nest->axis[nest->order[i]];
        times = x->reduced || x->remainder ? times : sat_mul(times, x->extent);
    }
    for (int j = 0; j < v->nfactor; j++) {
        int arg = (int)v->factor[j]->src[0]->arg.i;
        double bytes = (double)dtype_info[v->factor[j]->dtype].bytes;
        for (int d = 0; d < k->args[arg].rank; d++)
            bytes *= idx_value(k->args[arg].dims[d], &size) ? (double)size : 0;
        if (bufs[arg]->kind != BUF_WEIGHT || !depends_on(v->factor[j], tile->lanes) || times < 2 ||
            times > tile->vectors * tile->width || bytes <= nest->target->level[1].bytes)
            continue;
        nest_opt(nest, OPT_PREFETCH, outer->name, arg);
        return;
    }
}

/* Is it read for each term, by whichever of the sums that share their loops? */
static bool is_summed(const View *v, Node *load)
{
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        if (depends_on(load, v->dot->src[i]))
            return true;
    return false;
}

/* Dots of scalars are so short that a loop's own instructions count: some iterations of the innermost one are written out. */
static void unroll_dots(Nest *nest, const Place *place, int nout, int n)
{
    enum { MOST = 4 };
    int at = -1, loops = 0;
    for (int i = nout; i < n; i++) {
        const NestAxis *x = &nest->axis[nest_loop(nest, nest_root(nest, place[i].range))];
        if (x->extent > 1) {
            loops++;
            at = i;
        }
    }
    if (at < 0)
        return;
    int64_t extent = nest->axis[nest_loop(nest, nest_root(nest, place[at].range))].extent;
    for (int64_t parts = MOST; parts > 1; parts--)
        if (extent % parts == 0 && (loops > 1 || extent > parts)) {
            nest_opt_range(nest, OPT_UNROLL, place[at].range, parts);
            return;
        }
}

/* False if a constant then lies badly for the lanes. What is only added (a bias, rows that are looked up) is laid out if it
 * does not lie along them: its order gains nothing else, and others may read it as it is. */
static bool contraction_opts(Nest *nest, const View *v, const Buffer *const *bufs,
                             const RegisterTile *tile, const bool *free, Layout *want)
{
    const Kernel *k = nest->k;
    Place place[INGOT_MAX_RANK * 4];
    int n = 0, nout;
    for (int i = 0; i < v->nrange; i++) {
        Node *r = v->range[i];
        Place p = {.range = r, .key = storage_stride(k, v->store[0], r)};
        if (r ==
            tile->lanes) /* blocks of weights stay in cache while all rows go by; without reuse, as stored */
            p.key = tile->reuse ? 1e19 : 0;
        if (tile->apart) { /* what the lanes load stays in cache while all that is made of it is written */
            p.key = storage_stride(k, v->store[0], r);
            for (int j = 0; j < v->nfactor; j++)
                if (depends_on(v->factor[j], tile->lanes) && depends_on(v->factor[j], r))
                    p.key += LANES_FIRST;
        }
        /* what every operand moves with: one contraction after the other, each on data of its own */
        bool batch = r != tile->lanes && r != tile->rows;
        for (int j = 0; j < v->nfactor; j++)
            batch &= depends_on(v->factor[j], r);
        if (batch)
            p.key = 1e20 * (1 + p.key);
        place[n++] = p;
    }
    sort_places(place, n);
    nout = n;
    Node *walked = NULL; /* the operand that is not constant */
    for (int j = 0; j < v->nfactor; j++)
        if (bufs[v->factor[j]->src[0]->arg.i]->kind != BUF_WEIGHT &&
            (!walked || !depends_on(v->factor[j], tile->lanes)))
            walked = v->factor[j];
    for (uint32_t i = 1; i < v->dot->nsrc; i++) {
        Node *r = v->dot->src[i];
        place[n++] = (Place){.range = r, .key = storage_stride(k, walked, r)};
    }
    sort_places(place + nout, n - nout);
    bool fits = true;
    for (int i = 0; i < tile->nfour; i++)
        fits &= nest_opt_range(nest, OPT_DOT, tile->four[i], 4);
    fits &= tile->width <= 1 || nest_opt_range(nest, OPT_VECTOR, tile->lanes, tile->width);
    if (tile->rows)
        nest_opt_range(nest, OPT_UPCAST, tile->rows, tile->nrows);
    if (tile->columns)
        nest_opt_range(nest, OPT_UPCAST, tile->columns, tile->ncolumns);
    if (tile->vectors > 1)
        nest_opt_range(nest, OPT_UPCAST, tile->lanes, tile->vectors);
    if (tile->nfour && tile->width <= 1)
        unroll_dots(nest, place, nout, n);
    order_opt(nest, place, n);
    Node *loop[INGOT_MAX_RANK * 4];
    for (int i = 0; i < n; i++)
        loop[i] = place[i].range;
    const Packing packing = {.lanes = tile->lanes,
                             .block = tile->vectors * tile->width,
                             .reuse = tile->reuse,
                             .loop = loop,
                             .nloop = n,
                             .four = tile->four,
                             .nfour = tile->nfour};
    for (int j = 0; j < v->nload; j++) {
        int arg = (int)v->load[j]->src[0]->arg.i;
        int64_t stride;
        bool apart = !access_stride(k, v->load[j], tile->lanes, &stride) || stride != 1;
        if (!free[arg] || !depends_on(v->load[j], tile->lanes) ||
            (!apart && !is_summed(v, v->load[j])))
            continue;
        if (!packing_layout(k, v->load[j], &packing, &want[arg]))
            fits &= access_stride(k, v->load[j], tile->lanes, &stride) && stride == 1;
    }
    return fits;
}

/* An argument whose layout this kernel alone may choose: a weight that it loads in one place. */
static void find_free(const Kernel *k, const View *v, const Buffer *const *bufs, bool *free)
{
    for (int i = 0; i < k->narg; i++) {
        int uses = 0;
        for (int j = 0; j < v->nload; j++)
            uses += v->load[j]->src[0]->arg.i == i;
        free[i] = bufs[i]->kind == BUF_WEIGHT && uses == 1;
        for (int d = 0; d < k->args[i].rank; d++)
            free[i] &= idx_value(k->args[i].dims[d], NULL);
    }
}

/* What is interleaved with these lanes, or NULL; false if that cannot be done. Both share the operand that is in lanes,
 * and there are whole vectors only. */
static bool pair_of(const View *v, const Kernel *k, Node *lanes, const Target *t, Node **pair)
{
    *pair = interleaved(k, v->store[0], lanes);
    for (int j = 1; j < v->nstore; j++)
        if (interleaved(k, v->store[j], lanes) != *pair)
            return false;
    return !*pair ||
           (t->lanes && range_extent(lanes) % lanes_for(k, t, lanes, range_extent(lanes)) == 0 &&
            view_reuses(v, lanes, *pair));
}

static const char *axis_name(const Kernel *k, Node *range)
{
    for (int i = 0; i < k->naxis; i++)
        if (k->axes[i].range == range)
            return k->axes[i].name;
    return "?";
}

/* For people: "lanes along i0: 2 vectors of 16, 8 of i2: 12.3". */
static void tell_tile(StrBuf *sb, const Kernel *k, const RegisterTile *tile)
{
    if (!tile->lanes || !sb)
        return;
    sb_printf(sb, "lanes along %s: ", axis_name(k, tile->lanes));
    sb_printf(sb, "%lld x %lld", (long long)tile->vectors, (long long)tile->width);
    if (tile->rows)
        sb_printf(sb, ", %lld of %s", (long long)tile->nrows, axis_name(k, tile->rows));
    if (tile->columns)
        sb_printf(sb, ", %lld of %s", (long long)tile->ncolumns, axis_name(k, tile->columns));
    sb_printf(sb, " in registers%s: %.4g\n", tile->moves ? ", after a copy" : "", tile->score);
}

static bool no_lanes(StrBuf *sb, const Kernel *k, Node *range, const char *why)
{
    if (sb)
        sb_printf(sb, "no lanes along %s: %s\n", axis_name(k, range), why);
    return true;
}

void choose_opts(Arena *a, Nest **nest, const Buffer *const *bufs, bool may_copy, StrBuf *tried,
                 Layout *want, Node **lanes, int *nlanes)
{
    const Kernel *k = (*nest)->k;
    const Target *t = (*nest)->target;
    View v = kernel_view(a, k);
    *nlanes = 0;
    Nest *rows = nest_clone(*nest);
    if (staged_rows_opts(a, rows, bufs, may_copy, lanes, nlanes)) {
        nest_free(*nest);
        *nest = rows;
        return;
    }
    nest_free(rows);
    if (!v.dot) {
        plain_opts(a, *nest, &v);
        return;
    }
    if (t->units && choose_tc_opts(a, nest, &v, bufs, may_copy, want, lanes))
        return;
    bool *free = NEWN(a, bool, k->narg);
    find_free(k, &v, bufs, free);
    RegisterTile best = {0};
    Node *four[MAX_FOUR];
    int nfour = t->dot ? dot_axes(k, &v, free, four, MAX_FOUR) : 0;
    for (int i = 0; i < v.nrange; i++) {
        Node *r = v.range[i];
        int moves;
        int64_t extent = range_extent(r);
        if (extent < 4 && no_lanes(tried, k, r, "it is too short"))
            continue;
        if (!fits_lanes(a, k, r, lanes_along(k, t, r), free, &moves, NULL) &&
            no_lanes(tried, k, r, "what depends on it does not lie side by side, or has no lanes"))
            continue;
        bool factor = false, stored = true;
        for (int j = 0; j < v.nstore; j++)
            stored &= access_move(k->c, v.store[j], r).kind == MOVE_AXIS;
        for (int j = 0; j < v.nfactor; j++)
            factor |= depends_on(v.factor[j], r);
        if ((!factor || !stored) &&
            no_lanes(tried, k, r, "no operand, or not the result, moves with it"))
            continue;
        if (moves && (!may_copy || !can_lay_out(k, &v, bufs, free, r)) &&
            no_lanes(tried, k, r, "a copy of an operand would be needed, and cannot be made"))
            continue;
        Node *pair;
        if (!pair_of(&v, k, r, t, &pair) || (pair && moves)) /* it saves a copy: not for another */
            continue;
        RegisterTile tile = pick_tile(k, &v, bufs, r, pair, nfour && !moves, moves, t);
        tile.nfour = moves ? 0 : nfour;
        memcpy((void *)tile.four, four, (size_t)tile.nfour * sizeof *four);
        if (moves)
            tile.score *= !copies_of(k, &v, bufs, &tile, t) ? 0.97 : moves == 1 ? 0.7 : 0.4;
        tell_tile(tried, k, &tile);
        if (tile.score > best.score)
            best = tile;
    }
    bool outputs = best.lanes != NULL;
    if (!outputs || (best.moves && !best.rows)) { /* what is used once is not worth a copy */
        RegisterTile dot = pick_dot_tile(a, &v, k, free, t);
        tell_tile(tried, k, &dot);
        if (dot.lanes) {
            best = dot;
            outputs = false;
        }
    }
    if (!best.lanes) {
        plain_opts(a, *nest, &v);
        return;
    }
    Nest *tiled = nest_clone(*nest);
    bool fits = contraction_opts(tiled, &v, bufs, &best, free, want);
    if (best.nfour && !fits) {
        nest_free(tiled);
        tiled = nest_clone(*nest);
        memset(want, 0, (size_t)k->narg * sizeof *want);
        best.nfour = 0;
        fits = contraction_opts(tiled, &v, bufs, &best, free, want);
    }
    if (best.width > 1 && !fits) {
        nest_free(tiled);
        memset(want, 0, (size_t)k->narg * sizeof *want);
        plain_opts(a, *nest, &v);
        return;
    }
    if (outputs && best.width > 1)
        prefetch_opts(tiled, &v, bufs, &best);
    if (outputs && best.width > 1)
        stage_opts(tiled, &v, bufs, &best);
    nest_free(*nest);
    *nest = tiled;
    if (outputs)
        lanes[(*nlanes)++] = best.lanes;
}

bool lanes_possible(Arena *a, const Kernel *k, Node *range)
{
    bool *free = NEWN(a, bool, k->narg);
    int moves;
    memset(free, true, (size_t)k->narg * sizeof *free);
    int64_t apart = 0;
    return fits_lanes(a, k, range, 0, free, &moves, &apart);
}
