/* winograd_time.c - how long a convolution in fewer products takes, by the time of the direct one, and what memory it may take.
 *
 * The time is that of the products, with weights that come from memory, and of the bytes that lie between the three kernels. */
#include <math.h>

#include "tc.h"
#include "winograd.h"

/* ---- strips ------------------------------------------------------------------------------------- */

static double extent(const Axes *s, Node *x, AxisGroup group)
{
    double size = 1;
    for (int i = 0; i < s->n[group]; i++)
        size *= (double)x->shape[s->axis[group][i]]->hi;
    return size;
}

/* What lies in memory between the three kernels, of one row of tiles; of all of them. */
static double bytes_between(const Axes *s, const Form *f, double *all)
{
    double row = sizeof(float) * extent(s, s->x, BATCH) * extent(s, s->x, ROW) *
                 (extent(s, s->x, SUM) + extent(s, s->w, MAP));
    for (int i = 0; i < s->n[OUT]; i++) {
        row *= i < f->windows ? f->points : 1;
        if (i)
            row *= (double)rows_of_tiles(s, f, i);
    }
    *all = row * (double)rows_of_tiles(s, f, 0);
    return row;
}

enum { NEAR = 1 << 20, FAR = 4 };

/* Rows of tiles of a strip: what is near stays in L2; what would not be far from it stays whole, if there is room for it. */
static int64_t rows_within(const Axes *s, const Form *f, double room)
{
    double all, row = bytes_between(s, f, &all);
    int64_t rows = rows_of_tiles(s, f, 0);
    double most = room < NEAR ? room : NEAR;
    if (all <= (double)FAR * NEAR && all <= room)
        return rows;
    int64_t each = row > most ? 1 : (int64_t)(most / row), least = ceil_div(rows, MOST_STRIPS),
            strips;
    each = each < least ? least : each;
    strips = ceil_div(rows, each);
    return ceil_div(rows, strips); /* of one size, but for the last */
}

/* ---- how long it takes --------------------------------------------------------------------------- */

static double bytes_of(const Node *n)
{
    double bytes = dtype_info[n->dtype].bytes;
    for (int i = 0; i < n->rank; i++)
        bytes *= (double)n->shape[i]->hi;
    return bytes;
}

double product_ram(Node *n)
{
    if (!is_sum_of_products(n))
        return 0;
    Node *product = n->src[0];
    double bytes = bytes_of(n);
    for (int side = 0; side < 2; side++) {
        Node *x = product->src[side];
        while (is_move(x))
            x = x->src[0];
        bytes += is_constant(x, 0) ? 0 : bytes_of(x);
    }
    return bytes;
}

/* What may lie between the kernels: with it the largest product of the model takes a quarter more. */
static double room_for(const Rewrite *r, Node *n)
{
    const double MORE = 1.25;
    return MORE * r->ram - product_ram(n);
}

int64_t rows_of_strip(const Rewrite *r, Node *n, const Axes *s, const Form *f)
{
    return rows_within(s, f, room_for(r, n));
}

/* Cycles of products, two operations a term, and of their weights, which come from memory meanwhile.  A panel of them, for the lanes
 * of a vector or two, serves all rows of results; if L2 does not hold it beside the next one, it comes again for each tile of rows. */
static double products(const Target *t, double terms, double weights, double summed, double rows)
{
    enum { VECTORS = 2, TILE_ROWS = 8 };
    const double APART = 0.25; /* so much of the one does not run beside the other */
    double time = 2 * terms / t->rate[UNIT_TILE], bytes = weights * sizeof(float),
           panel = summed * VECTORS * t->lanes * sizeof(float),
           memory = cost_bytes(bytes, INFINITY, t);
    if (2 * panel > t->level[1].bytes)
        memory += cost_bytes(bytes * (ceil(rows / TILE_ROWS) - 1), 2 * panel, t);
    return fmax(time, memory) + fmin(time, memory) * APART;
}

/* As a part of the largest product's memory: how much more it takes than that if so many bytes lie between the kernels. */
static double growth_of(const Rewrite *r, Node *n, double live)
{
    double more = product_ram(n) + live - r->ram;
    return more > 0 ? more / r->ram : 0;
}

/* Does a matrix unit multiply these operands as they are?  It is many times as fast as what would multiply their transforms. */
static bool unit_takes(const Target *t, const Axes *s)
{
    const Node *x = s->x, *w = s->w;
    while (is_move(x))
        x = x->src[0];
    while (is_move(w))
        w = w->src[0];
    return tc_widens(t->units, x) && tc_widens(t->units, w);
}

/* As a part of what the direct form takes; a per cent more of memory has to save a per cent of time beside. */
static double winograd_time(Rewrite *r, Node *n, const Form *f)
{
    const Target *t = r->target;
    const Axes *s = t->gpu || !t->lanes || t->byte > 0 ? NULL : winograd_axes(r, n);
    if (!s || (f->windows == 1 && s->n[OUT] == 1) || unit_takes(t, s))
        return INFINITY;
    double all, row = bytes_between(s, f, &all), batch = extent(s, s->x, BATCH),
                sum = extent(s, s->x, SUM), maps = extent(s, s->w, MAP),
                rows = extent(s, s->x, ROW), out = 1, tiles = 1, taps = 1, points = 1, slid = 1,
                room = room_for(r, n);
    for (int i = 0; i < s->n[OUT]; i++) {
        out *= (double)results_of(s, i);
        tiles *= (double)rows_of_tiles(s, f, i);
        taps *= TAPS;
        points *= i < f->windows ? f->points : 1;
        slid *= i < f->windows ? 1 : TAPS;
    }
    double live = row * (double)rows_within(s, f, room), steps = 3 * ceil(all / live);
    if (sum < t->lanes || maps < t->lanes || live > room) /* no lanes for the transforms */
        return INFINITY;
    double pixels = batch * rows, weights = batch * sum * maps,
           direct = products(t, pixels * out * sum * maps * taps, weights * taps, sum * taps,
                             rows * out),
           fewer = products(t, pixels * tiles * sum * maps * points * slid, weights * points * slid,
                            sum * slid, rows * tiles);
    /* what lies between them takes as long as the transforms read it or write it; lines that are written are fetched before */
    double time = fewer + cost_bytes(1.5 * all, live, t) + steps * t->launch;
    return time / direct / (1 - growth_of(r, n, live));
}

double winograd2_time(Rewrite *r, Node *n)
{
    return winograd_time(r, n, &form2);
}

double winograd4_time(Rewrite *r, Node *n)
{
    return r->c->precision == INGOT_PRECISION_1E5 ? winograd_time(r, n, &form4) : INFINITY;
}

double winograd2x1_time(Rewrite *r, Node *n)
{
    return winograd_time(r, n, &form2x1);
}
