/* prefetch.c - what the next iteration of a loop reads is asked for while this one runs.
 *
 * A panel of weights that comes from memory is read by the first rows of results, and then again by
 * all the others: memory is idle meanwhile.  A matrix unit reads panels alike.  PREFETCH spreads
 * the lines of the next panel over all iterations of the loops inside.  The panel has to lie in one
 * piece, from one iteration of the loop to the next, or of those around it, and its lines have to
 * suffice for the iterations, or there is nothing worth asking for; then the list is empty.
 *
 * What is staged is filled with other lines in the next iteration: these are spread over the blocks
 * of terms that read the place (places_next.c).
 *
 * What each run reads once, weights of a vector's products or a cache of keys, comes as fast as
 * memory is asked for it, and a core that computes with what it has looks a few lines ahead: of a
 * loop over terms, or of run-time size over panels of a few lines, PREFETCH asks for the lines that
 * it reads some kilobytes later. Where a size is known at run time only, what is asked for ends
 * where the buffer does. */
#include "kernel.h"

/* Bytes: twice what memory brings while a line of it is under way, and little of L1. */
enum { AHEAD = 8192 };

static Node *load_of(Arena *a, int nroot, Node *const *root, int arg)
{
    int n;
    Node **order = graph_toposort(a, nroot, root, &n);
    for (int i = 0; i < n; i++)
        if (order[i]->op == OP_LOAD && order[i]->nsrc == 3 && order[i]->src[0]->arg.i == arg &&
            node_is_const_i(order[i]->src[1], 1))
            return order[i];
    return NULL;
}

static Node *buffer_of(Arena *a, int nroot, Node *const *root, int arg)
{
    int n;
    Node **order = graph_toposort(a, nroot, root, &n);
    for (int i = 0; i < n; i++)
        if (order[i]->op == OP_BUFFER && order[i]->arg.i == arg)
            return order[i];
    return NULL;
}

static bool has_var(const Node *n)
{
    bool var = n->op == OP_VAR;
    for (uint32_t i = 0; i < n->nsrc && !var; i++)
        var = has_var(n->src[i]);
    return var;
}

/* Iterations of a loop; of a window that ends at the image's border (pad_bounds.c) those inside: at
 * the border a few lines are not asked for.  False: it is known at run time only. */
static bool iterations_of(const Node *range, int64_t *n)
{
    *n = range->hi + 1;
    return *n >= 1 && !has_var(range->src[0]);
}

/* One more loop inside: counter, and how often all of them run. */
static bool count_loop(Context *c, Node *range, Node **counter, int64_t *times)
{
    int64_t extent;
    if (!iterations_of(range, &extent))
        return false;
    *counter = idx_add(c, idx_mul(c, *counter, idx(c, extent)), range);
    *times *= extent;
    return true;
}

/* Adds to an address that starts at 0, and to that of the last iteration, what the range
 * contributes. */
static bool add_range(Context *c, Node *load, Node *range, Node **at, int64_t *last)
{
    int64_t stride;
    if (!depends_on(load, range))
        return true;
    if (!range_stride(c, load->src[2], range, &stride))
        return false;
    *at = idx_add(c, *at, idx_mul(c, range, idx(c, stride)));
    *last += range->hi * stride;
    return true;
}

/* The loads of lines that start `at`, as many as `step` elements have. */
static int line_loads(Context *c, Node *load, Node *at, int64_t step, Node **out)
{
    int64_t line = LOWERED_LINE / (int64_t)elem_bytes((ingot_dtype)load->dtype), n = 0;
    for (; n * line < step; n++) {
        Node *src[] = {load->src[0], load->src[1], idx_add(c, at, idx(c, n * line))};
        out[n] = node_make(c, OP_LOAD, load->dtype, load->arg, 3, src, 0, NULL);
    }
    return (int)n;
}

/* Of a loop over terms: what it reads later, in this panel or, at its end, in the next one. */
static int stream_loads(const Kernel *k, const Tile *t, int naxis, Node *range, Node *load,
                        Node **out)
{
    Context *c = k->c;
    const int64_t bytes = (int64_t)dtype_info[load->dtype].bytes;
    Node *at = idx(c, 0);
    int64_t stride, last = 0;
    bool known = range_stride(c, load->src[2], range, &stride) && stride > 0 &&
                 stride * bytes <= MAX_PREFETCH * LOWERED_LINE;
    for (int i = 0; i < naxis && known; i++)
        known = add_range(c, load, t->axis[i].range, &at, &last);
    for (int i = 0; i < t->nreduce && known; i++)
        known = add_range(c, load, t->reduce[i].range, &at, &last);
    if (!known || at->lo < 0)
        return 0;
    at = idx_min(c, idx_add(c, at, idx(c, AHEAD / bytes)), idx(c, last));
    return line_loads(c, load, at, stride, out);
}

static bool is_term(const Tile *t, const Node *range)
{
    for (int i = 0; i < t->nreduce; i++)
        if (t->reduce[i].range == range)
            return true;
    return false;
}

Node *tile_prefetch(const Tile *t, int arg)
{
    for (int i = 0; i < t->nprefetched; i++)
        if (t->prefetched[i].arg == arg)
            return t->prefetched[i].range;
    return NULL;
}

bool tile_asks_at(const Tile *t, const Node *range)
{
    for (int i = 0; i < t->nprefetched; i++)
        if (t->prefetched[i].range == range)
            return true;
    return false;
}

bool tile_streams(const Tile *t, int arg)
{
    const Node *range = tile_prefetch(t, arg);
    return range && is_term(t, range);
}

/* Does a loop of run-time size read what is a stream, panel after panel of a few lines, each once?
 * Then the next panel is as good as here. */
static bool streams(const Tile *t, int naxis, const Node *range, Node *load, int64_t panel)
{
    int64_t extent;
    for (int i = 0; i < naxis; i++)
        if (t->axis[i].range->hi > 0 && !depends_on(load, t->axis[i].range))
            return false;
    return !idx_value(range->src[0], &extent) &&
           panel * (int64_t)dtype_info[load->dtype].bytes <= MAX_PREFETCH * LOWERED_LINE;
}

/* Panels lie one behind the other, stride apart; where a panel is read by parts of its columns, one
 * iteration each (a layout that several machines share has blocks of so many lanes as the widest
 * of them wants), *parts of them are one panel. */
static bool panel_of(Context *c, Node *load, Node *range, int64_t *parts, int64_t *stride)
{
    enum { MOST_PARTS = 8 };
    Node *e = load->src[2];
    *parts = 1;
    if (range_stride(c, e, range, stride))
        return true;
    while ((*parts *= 2) <= MOST_PARTS) {
        Node *next = idx_add(c, range, idx(c, *parts));
        if (idx_value(idx_sub(c, substitute(c, e, 1, &range, &next), e), stride))
            return true;
    }
    return false;
}

/* What of one argument's load is asked for, in the loop *innermost. */
static int argument_loads(const Kernel *k, const Tile *t, Node *range, Node *load, Node **out,
                          Node **innermost)
{
    Context *c = k->c;
    const int naxis =
        t->naxis - (t->tc != NULL); /* the rows of a fragment are a loop of its sums */
    const int64_t bytes = (int64_t)dtype_info[load->dtype].bytes, line = LOWERED_LINE / bytes;
    int64_t panel, times;
    if (is_term(t, range)) {
        *innermost = range;
        return stream_loads(k, t, naxis, range, load, out);
    }
    if (!panel_of(c, load, range, &times, &panel) || range->hi < 2 * times - 1)
        return 0;
    Node *counter = idx_mod(c, range, idx(c, times)),
         *at = idx_mul(c, idx_div(c, range, idx(c, times)), idx(c, panel));
    /* the last whole panel; the next one of the last is its own */
    int64_t last = ((range->hi + 1) / times - 1) * panel;
    bool inside = false;
    for (int i = naxis; i-- > 0;) {
        Node *r = t->axis[i].range;
        inside |= r == range;
        if (inside && r != range && !add_range(c, load, r, &at, &last))
            return 0;
    }
    const int64_t ahead =
        times == 1 && streams(t, naxis, range, load, panel) ? AHEAD / bytes : panel;
    at = idx_min(c, idx_add(c, at, idx(c, ahead)), idx(c, last));
    inside = false;
    for (int i = 0; i < naxis; i++) {
        Node *r = t->axis[i].range;
        if (inside && !count_loop(c, r, &counter, &times))
            return 0;
        inside |= r == range;
    }
    *innermost = NULL;
    for (int i = 0; i < t->nreduce && inside; i++)
        if (depends_on(load, t->reduce[i].range)) {
            *innermost = t->reduce[i].range;
            if (!count_loop(c, *innermost, &counter, &times))
                return 0;
        }
    const int64_t step = panel / times;
    if (!*innermost || step < 1 || step > MAX_PREFETCH * line || at->lo < 0)
        return 0;
    at = idx_add(c, at, idx_mul(c, counter, idx(c, step)));
    return line_loads(c, load, at, step, out);
}

/* The loops over terms outside of the innermost one, or of those over a block: of the sum that
 * stands around the others. Gives how many, up to the last one that asks. */
static int terms_around(Arena *a, int nroot, Node *const *root, Node *const **loop)
{
    int n, nloop = 0;
    Node **order = graph_toposort(a, nroot, root, &n);
    for (int i = 0; i < n; i++) {
        if (order[i]->op != OP_REDUCE)
            continue;
        const int first = (int)reduce_ranges(order[i]), all = (int)order[i]->nsrc - first;
        const int outer = order[i]->src[0]->op == OP_REDUCE ? all : all - 1;
        if (outer > 0) {
            *loop = order[i]->src + first;
            nloop = outer;
        }
    }
    return nloop;
}

/* What a place is filled with in the next iteration, spread over all that reads it in this one. */
static int panel_loads(Arena *a, Context *c, const Tile *t, const Node *range, const Panel *p,
                       int nroot, Node *const *root, Node **out, Node **around)
{
    Node *buffer = buffer_of(a, nroot, root, p->arg), *const *loop = NULL, *counter = idx(c, 0);
    const int nloop = terms_around(a, nroot, root, &loop);
    int64_t times = 1;
    bool inside = false;
    if (!buffer || !p->at || !nloop)
        return 0;
    for (int i = 0; i < t->naxis; i++) {
        if (inside && !count_loop(c, t->axis[i].range, &counter, &times))
            return 0;
        inside |= t->axis[i].range == range;
    }
    for (int i = 0; i < nloop && inside; i++)
        if (!count_loop(c, loop[i], &counter, &times))
            return 0;
    int64_t each = ceil_div(p->lines, times);
    if (!inside)
        return 0;
    each = each < MAX_PREFETCH ? each : MAX_PREFETCH; /* the rest when the place is filled */
    *around = loop[nloop - 1];
    for (int64_t i = 0; i < each; i++) {
        Node *line = idx_add(c, idx_mul(c, counter, idx(c, each)), idx(c, i));
        line = idx_min(c, line, idx(c, p->lines - 1));
        Node *at = substitute(c, p->at, 1, (Node *const *)&p->line, &line);
        out[i] = node_make(c, OP_LOAD, buffer->dtype, (Arg){0}, 3,
                           (Node *[]){buffer, node_bool(c, true), at}, 0, NULL);
    }
    return (int)each;
}

static const Panel *panel_for(const Tile *t, int arg)
{
    for (int i = 0; i < t->npanel; i++)
        if (t->panel[i].arg == arg)
            return &t->panel[i];
    return NULL;
}

int prefetch_loads(Arena *a, const Kernel *k, const Tile *t, int nroot, Node *const *root,
                   Node **out, Node **loop)
{
    int n = 0;
    if (t->tc && t->tc->lanes)
        return 0;
    for (int i = 0; i < t->nprefetched; i++) {
        const Prefetch *p = &t->prefetched[i];
        const Panel *panel = panel_for(t, p->arg);
        Node *load = panel ? NULL : load_of(a, nroot, root, p->arg), *innermost;
        if (!p->range)
            continue;
        const int more =
            panel  ? panel_loads(a, k->c, t, p->range, panel, nroot, root, out + n, &innermost)
            : load ? argument_loads(k, t, p->range, load, out + n, &innermost)
                   : 0;
        for (int j = 0; j < more; j++)
            loop[n++] = innermost;
    }
    return n;
}
