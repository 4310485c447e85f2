/* winograd_time.c - how long a convolution in fewer products takes, by the time of the direct one,
 * and what memory it may take.
 *
 * The time is that of the products, with weights that come from memory, and of the bytes that lie
 * between the three kernels. */
#include <math.h>

#include "tc.h"
#include "winograd.h"

/* ---- memory ---------------------------------------------------------------------------------- */

static double extent(const ProductAxes *s, Node *x, AxisGroup group)
{
    double size = 1;
    for (int i = 0; i < s->n[group]; i++)
        size *= (double)x->shape[s->axis[group][i]]->hi;
    return size;
}

/* Of an operand of the products, transformed or, if f is the direct form, as it is. */
static double operand_size(const WinogradForm *f, bool exact)
{
    return !exact ? sizeof(float) : f->scale ? sizeof(int16_t) : sizeof(int8_t);
}

/* What lies in memory between the three kernels, of one row of tiles: elements of an operand that
 * take so much each, and results that do. */
static double between(const ProductAxes *s, const WinogradForm *f, double operand, double result)
{
    double row = extent(s, s->x, BATCH) * extent(s, s->x, ROW) *
                 (operand * extent(s, s->x, SUM) + result * extent(s, s->w, MAP));
    for (int i = 0; i < s->n[OUT]; i++) {
        row *= i < f->windows ? f->points : 1;
        if (i)
            row *= (double)rows_of_tiles(s, f, i);
    }
    return row;
}

static double bytes_between(const ProductAxes *s, const WinogradForm *f)
{
    return between(s, f, operand_size(f, f->scale), sizeof(float));
}

static double bytes_of(const Node *n)
{
    double bytes = dtype_info[n->dtype].bytes;
    for (int i = 0; i < n->rank; i++)
        bytes *= (double)n->shape[i]->hi;
    return bytes;
}

/* Floats of the file, put together: a copy of them lies in memory. */
static bool joins_floats(const Node *n)
{
    if (n->op != OP_CONCAT || !dtype_is_float(n->dtype))
        return false;
    n = n->src[0];
    while (is_move(n))
        n = n->src[0];
    return n->op == OP_DATA;
}

/* Nothing but constants that are unpacked where they are read: that arithmetic is deep, and reads
 * them again and again.  Each node is looked at once. */
static bool of_constants(Rewrite *r, Node *n, int depth)
{
    enum { NO = 1, YES };
    if (depth > DEPTH_ANY || n->dtype == INGOT_INDEX)
        return n->dtype == INGOT_INDEX;
    const uintptr_t seen = (uintptr_t)map_get(&r->constants, (uint64_t)n->id + 1);
    if (seen)
        return seen == YES;
    bool known =
        op_is_alu(n->op) || n->op == OP_REDUCE || (op_info[n->op].cls == MOVE && !joins_floats(n));
    for (uint32_t i = 0; i < n->nsrc && known; i++)
        known = of_constants(r, n->src[i], depth + 1);
    known |= n->op == OP_CONST || n->op == OP_DATA || n->op == OP_IOTA;
    map_put(&r->constants, (uint64_t)n->id + 1, (void *)(uintptr_t)(known ? YES : NO));
    return known;
}

double product_ram(Rewrite *r, Node *n)
{
    if (!is_sum_of_products(n))
        return 0;
    Node *product = n->src[0];
    double bytes = bytes_of(n);
    for (int side = 0; side < 2; side++) {
        Node *x = product->src[side];
        while (is_move(x))
            x = x->src[0];
        bytes += of_constants(r, x, 0) ? 0 : bytes_of(x);
    }
    return bytes;
}

/* What may lie between the kernels: with it the largest product of the model takes a quarter
 * more. */
static double room_for(Rewrite *r, Node *n)
{
    const double MORE = 1.25;
    return MORE * r->ram - product_ram(r, n);
}

/* As a part of the largest product's memory: how much more it takes than that if so many bytes lie
 * between the kernels. */
static double growth_of(Rewrite *r, Node *n, double live)
{
    double more = product_ram(r, n) + live - r->ram;
    return more > 0 ? more / r->ram : 0;
}

/* Does a matrix unit multiply these operands as they are?  It is many times as fast as what would
 * multiply their transforms. */
static bool unit_takes(const Target *t, const ProductAxes *s)
{
    const Node *x = s->x, *w = s->w;
    while (is_move(x))
        x = x->src[0];
    while (is_move(w))
        w = w->src[0];
    return tc_widens(&t->machine, x) && tc_widens(&t->machine, w);
}

/* ---- how long it takes ----------------------------------------------------------------------- */

/* Products: how many terms and weights there are; of one result, how many terms; how many results
 * share weights. */
typedef struct {
    double terms, weights, summed, rows;
    double bytes; /* of a weight */
    double rate;  /* of products, by those of f32 */
} Work;

/* Products of integers in the time of one of f32: the direct form multiplies bytes where the
 * machine does. */
static double rate_of_integers(const Machine *m, const WinogradForm *f)
{
    const double FOURS = 4;
    return f->scale || m->pairs ? m->dot_i16 : FOURS;
}

/* The direct form transforms nothing. */
static const WinogradForm direct = {.tile = 1};

static Work work_of(const Target *t, const ProductAxes *s, const WinogradForm *f)
{
    const bool exact = s->x->dtype == INGOT_I32;
    Work w = {.weights = extent(s, s->x, BATCH) * extent(s, s->w, MAP),
              .summed = extent(s, s->x, SUM),
              .rows = extent(s, s->x, ROW),
              .bytes = operand_size(f, exact),
              .rate = exact ? rate_of_integers(&t->machine, f) : 1};
    for (int i = 0; i < s->n[OUT]; i++) {
        w.weights *= i < f->windows ? f->points : 1;
        w.summed *= i < f->windows ? 1 : TAPS;
        w.rows *= (double)rows_of_tiles(s, f, i);
    }
    w.weights *= w.summed;
    w.terms = w.weights * w.rows;
    return w;
}

/* Cycles of products, two operations a term, and of their weights, which come from memory
 * meanwhile.  A panel of them, for the lanes of a vector or two, serves all rows of results; if L2
 * does not hold it beside the next one, it comes again for each tile of rows. All weights come
 * again for each further strip, from memory if no cache holds them beside its `live` bytes; from a
 * cache they come in time, or take longer than the products. */
static double products(const Target *t, const Work *w, double strips, double live)
{
    enum { VECTORS = 2, TILE_ROWS = 8 };
    const double APART = 0.25; /* so much of the one does not run beside the other */
    double time = 2 * w->terms / (t->machine.rate[UNIT_TILE] * w->rate),
           bytes = w->weights * w->bytes, panel = w->summed * VECTORS * t->machine.lanes * w->bytes,
           once = cost_bytes(bytes, INFINITY, t), again = cost_bytes(bytes, bytes + live, t),
           memory = again < once ? once : once * strips, cached = again * strips,
           tiles = strips * ceil(w->rows / strips / TILE_ROWS);
    if (2 * panel > t->machine.far)
        memory += cost_bytes(bytes * (tiles - strips), 2 * panel, t);
    return fmax(time, fmax(memory, cached)) + fmin(time, memory) * APART;
}

/* Cycles of the transforms of a row of tiles. Those of floats are done beside what is read and
 * written; integers are multiplied by shifts and sums, widened and narrowed, which takes longer if
 * that is near. For tiles of 4 by 4 an operand's and a result's take 190 to 270 cycles each on a
 * Zen 4, eight lanes or sixteen. */
static double transforms(const Target *t, const ProductAxes *s, const WinogradForm *f)
{
    enum { OPERATIONS = 8 };
    return f->scale ? between(s, f, 2 * OPERATIONS, 2 * OPERATIONS) / t->machine.rate[UNIT_VECTOR]
                    : 0;
}

/* In strips of so many rows of tiles: where they do not divide all rows, the last one computes some
 * of those before it again.  What lies between the kernels takes as long as the transforms read it
 * or write it; lines that are written are fetched before. */
static double fewer_time(const Target *t, const ProductAxes *s, const WinogradForm *f, int64_t rows)
{
    const int64_t tiles = rows_of_tiles(s, f, 0), strips = ceil_div(tiles, rows);
    const double row = bytes_between(s, f), live = row * (double)rows,
                 again = (double)(strips * rows) / (double)tiles;
    Work w = work_of(t, s, f);
    w.terms *= again;
    w.rows *= again;
    return products(t, &w, (double)strips, live) +
           fmax(cost_bytes(1.5 * live * (double)strips, live, t),
                transforms(t, s, f) * (double)(strips * rows)) +
           3 * (double)strips * t->machine.launch;
}

enum { FAR = 4 }; /* times what L2 holds */

/* Rows of strips between whose kernels lie no more bytes than that: few strips, or up to twice as
 * many if these compute fewer rows again and take less time.  28 rows in strips of 3 are 30, of 2
 * they are 28. */
static int64_t rows_within(const Target *t, const ProductAxes *s, const WinogradForm *f,
                           double most)
{
    const double row = bytes_between(s, f);
    const int64_t tiles = rows_of_tiles(s, f, 0), least = ceil_div(tiles, MOST_PIECES);
    int64_t rows = most >= row * (double)tiles ? tiles : most < row ? 1 : (int64_t)(most / row);
    rows = ceil_div(tiles, ceil_div(tiles, rows < least ? least : rows));
    int64_t best = rows;
    for (int64_t fewer = rows - 1; fewer >= least && 2 * fewer >= rows; fewer--)
        if (ceil_div(tiles, fewer) * fewer < ceil_div(tiles, best) * best &&
            fewer_time(t, s, f, fewer) < fewer_time(t, s, f, best))
            best = fewer;
    return best;
}

/* What is near stays in L2; what would not be far from it stays whole, if there is room for it, and
 * strips are as large as there is room for if reading weights again for smaller ones takes longer
 * than what comes from further away. */
int64_t rows_of_strip(Rewrite *r, Node *n, const ProductAxes *s, const WinogradForm *f)
{
    const Target *t = r->target;
    const int64_t tiles = rows_of_tiles(s, f, 0);
    const double room = room_for(r, n);
    if (bytes_between(s, f) * (double)tiles <= fmin(room, FAR * t->machine.far))
        return tiles;
    const int64_t near = rows_within(t, s, f, fmin(room, t->machine.far)),
                  far = rows_within(t, s, f, room);
    return fewer_time(t, s, f, far) < fewer_time(t, s, f, near) ? far : near;
}

/* A weight that is a state is transformed in every run: the bytes of what that makes. */
static double transformed(const Target *t, const ProductAxes *s, const WinogradForm *f)
{
    return is_constant(s->w, 0) ? 0 : work_of(t, s, f).weights * sizeof(float);
}

/* It is read, and written at all points. */
static double transform_time(const Target *t, const ProductAxes *s, const WinogradForm *f)
{
    const double made = transformed(t, s, f), bytes = made > 0 ? made + bytes_of(s->w) : 0;
    return bytes > 0 ? cost_bytes(bytes, bytes, t) : 0;
}

/* As a part of what the direct form takes; a per cent more of memory has to save a per cent of time
 * beside, and where bytes have a price, all that lie beside the operands cost it. */
static double time_of(Rewrite *r, Node *n, const ProductAxes *s, const WinogradForm *wanted)
{
    const Target *t = r->target;
    const WinogradForm *f = winograd_form(r, n, s, wanted);
    if (!f || unit_takes(t, s))
        return INFINITY;
    const int64_t rows = rows_of_strip(r, n, s, f);
    const double live = bytes_between(s, f) * (double)rows;
    if (extent(s, s->x, SUM) < t->machine.lanes || extent(s, s->w, MAP) < t->machine.lanes ||
        live > room_for(r, n)) /* no lanes for the transforms */
        return INFINITY;
    const Work whole = work_of(t, s, &direct);
    const double price = t->machine.byte * (live + transformed(t, s, f));
    return (fewer_time(t, s, f, rows) + transform_time(t, s, f) + price) /
           products(t, &whole, 1, 0) / (1 - growth_of(r, n, live));
}

/* Where there are vectors, and memory is far from dear: what runs on any machine keeps its weights
 * as small as they are. */
static bool may_transform(const Target *t)
{
    return !t->gpu && t->machine.lanes && 2 * t->machine.byte < DEAR;
}

static double winograd_time(Rewrite *r, Node *n, const WinogradForm *f)
{
    return may_transform(r->target) ? time_of(r, n, winograd_axes(r, n), f) : INFINITY;
}

/* What is transformed back are the results of all strips, which are read and written again for each
 * of them as weights are read; no weight is transformed. */
double winograd_taps_time(Rewrite *r, Node *n)
{
    return may_transform(r->target) ? time_of(r, n, winograd_taps_axes(r, n), &form_taps)
                                    : INFINITY;
}

double winograd2_time(Rewrite *r, Node *n)
{
    return winograd_time(r, n, &form2);
}

double winograd4_time(Rewrite *r, Node *n)
{
    return r->c->precision == INGOT_PRECISION_1E5 || n->dtype == INGOT_I32
               ? winograd_time(r, n, &form4)
               : INFINITY;
}

double winograd2x1_time(Rewrite *r, Node *n)
{
    return winograd_time(r, n, &form2x1);
}
