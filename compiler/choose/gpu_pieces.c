/* gpu_pieces.c - rows and columns of sums that a GPU reads 16 bytes at a time.
 *
 * If enough rows fill a GPU, and all that is read and written of them lies side by side, memory
 * decides: an item takes eight elements of 2 bytes at once, or four of 4. */
#include "gpu_pieces.h"

/* The range of results that the reduces do not move with, if there is one. */
Node *walked_range(const View *v)
{
    Node *along = NULL;
    int n = 0;
    for (int i = 0; i < v->nrange; i++)
        if (range_extent(v->range[i]) != 1 && !is_of_reduces(v, v->range[i])) {
            along = v->range[i];
            n++;
        }
    return n == 1 ? along : NULL;
}

/* Does all that is read along the range lie side by side, in whole pieces? *bytes: of the narrowest
 * element. */
static bool lies_in_pieces(const Nest *n, const View *v, Node *range, int64_t run, int *bytes)
{
    bool good = range_extent(range) > 0 && range_extent(range) % run == 0, lay_out;
    for (int i = 0; i < v->nload && good; i++)
        if (depends_on(v->load[i], range)) {
            const int size = dtype_info[v->load[i]->dtype].bytes;
            *bytes = size < *bytes ? size : *bytes;
            good = goes_along(n, v->load[i], range, run, &lay_out) && !lay_out;
        }
    return good;
}

static bool is_f8(const Node *n)
{
    return n->dtype == INGOT_F8E4M3FN || n->dtype == INGOT_F8E5M2;
}

/* And all that is written, but for what a row has one of? */
static bool stored_in_pieces(const Nest *n, const View *v, Node *range, int *bytes)
{
    bool good = true;
    for (int i = 0; i < v->nstore && good; i++) {
        int64_t stride;
        const int size = dtype_info[v->store[i]->src[2]->dtype].bytes;
        if (access_move(n->k->c, v->store[i], range).kind == MOVE_NONE)
            continue;
        /* of f8 as many elements as of what has 2 bytes (render_runs.c) */
        const int whole = is_f8(v->store[i]->src[2]) ? 2 : size;
        *bytes = whole < *bytes ? whole : *bytes;
        good = access_stride(n->k, v->store[i], range, &stride) && stride == 1;
    }
    return good;
}

/* Rows of one result that fill a GPU, or so few that each has a group and nothing but latency
 * counts (a token of each slot), of which all that is read and written lies side by side: an item
 * takes 16 bytes at a time, of elements of 2 bytes eight.  So many; 1: it cannot. *lanes: items of
 * a row. */
int64_t pieces_of_rows(const Nest *n, const View *v, const ReducedRows *s, int64_t *lanes)
{
    enum { MOST_RUN = 8 };
    const Machine *m = &n->target->machine;
    Node *along = walked_range(v);
    int bytes = 4;
    const bool few = tc_few_rows(s->rows);
    if (!m->units || m->access != 2 * MOST_RUN || !along ||
        (s->rows < TOGETHER * m->processors && !few))
        return 1;
    bool good =
        stored_in_pieces(n, v, along, &bytes) && lies_in_pieces(n, v, along, MOST_RUN, &bytes);
    const int64_t extent = range_extent(along);
    for (int i = 0; i < v->nreduce && good; i++) {
        const Node *r = v->reduce[i];
        Node *terms = r->src[reduce_ranges(r)];
        good = r->nsrc == reduce_ranges(r) + 1 && range_extent(terms) == extent &&
               lies_in_pieces(n, v, terms, MOST_RUN, &bytes);
    }
    if (!good || (bytes != 2 && bytes != 4))
        return 1;
    const int64_t run = m->access / bytes;
    int64_t items = *lanes;
    while (items > m->warp && extent % (items * run))
        items -= m->warp;
    if (extent % (items * run)) /* most of them, the last warp in part */
        for (items = *lanes; 2 * items > *lanes && extent % (items * run);)
            items--;
    if (items < m->warp || extent % (items * run))
        return 1;
    *lanes = items;
    return run;
}

/* The same of rows without results along them. */
int64_t pieces_of_terms(const Nest *n, const View *v, const ReducedRows *s, int64_t *lanes)
{
    const Machine *m = &n->target->machine;
    int bytes = 4;
    bool good = m->units && !s->walked && s->rows >= TOGETHER * m->processors;
    int64_t extent = 0;
    for (int i = 0; i < v->nreduce && good; i++) {
        const Node *r = v->reduce[i];
        Node *terms = r->src[reduce_ranges(r)];
        extent = extent ? extent : range_extent(terms);
        good = r->nsrc == reduce_ranges(r) + 1 && range_extent(terms) == extent &&
               lies_in_pieces(n, v, terms, m->access / 2, &bytes);
    }
    if (!good || (bytes != 2 && bytes != 4))
        return 1;
    const int64_t run = m->access / bytes;
    int64_t items = extent / run < m->warp ? extent / run : m->warp;
    while (extent % (items * run))
        items--;
    if (items < BESIDE)
        return 1;
    *lanes = items;
    return run;
}

/* Items take turns along the terms, of a piece each. */
bool bind_pieces(Nest *n, const Node *r, int64_t lanes, int64_t run, int64_t warp)
{
    int at = nest_root(n, r->src[reduce_ranges(r)]);
    if (n->axis[at].split >= 0) /* what a reduce before has as well */
        return true;
    if (n->axis[at].extent > lanes * run) {
        if (!nest_opt(n, OPT_SPLIT, n->axis[at].name, lanes * run))
            return false;
        at = nest_last_split(n)->inner;
    }
    return nest_opt(n, OPT_SPLIT, n->axis[at].name, run) &&
           bind_lanes(n, nest_last_split(n)->outer, warp);
}

/* Columns of sums that fill a GPU, of which all that is read lies side by side: an item takes 16
 * bytes of a line, elements of so many columns; 1: it cannot. *each: columns' lanes of a group. */
int64_t pieces_of_columns(const Nest *n, const View *v, const ReducedRows *s, int axis,
                          int64_t *each)
{
    enum { MOST_LANES = 8 };
    const Machine *m = &n->target->machine;
    Node *range = axis < 0 ? NULL : n->k->axes[axis].range;
    int bytes = 4;
    if (!m->units || !range || s->walked || s->rows < TOGETHER * m->processors ||
        !lies_in_pieces(n, v, range, m->access / 2, &bytes) || (bytes != 2 && bytes != 4))
        return 1;
    const int64_t run = m->access / bytes;
    int64_t lanes = MOST_LANES;
    while (lanes > BESIDE && s->rows / (lanes * run) < 2 * m->processors)
        lanes /= 2;
    if (range_extent(range) % (lanes * run))
        return 1;
    *each = lanes;
    return run;
}
