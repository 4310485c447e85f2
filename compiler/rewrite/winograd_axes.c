/* winograd_axes.c - windows of three taps in a sum of products, and what its axes are.
 *
 * A window is known by its coordinates: what is read at (o + 1, k) is what is read at (o, k +
 * 1). */
#include <string.h>

#include "winograd.h"

/* ---- windows --------------------------------------------------------------------------------- */

Node *index_at(Context *c, Node *t, Node *const *at, int depth)
{
    Node *src[4], *below[INGOT_MAX_RANK], *valid = node_bool(c, true);
    if (t->op == OP_CONST || (t->dtype == INGOT_INDEX && !t->rank))
        return t;
    if (t->op == OP_IOTA)
        return node_cast(c, at[t->arg.i], t->dtype);
    if (depth > DEPTH_ANY || dtype_is_float(t->dtype))
        return NULL;
    if (is_move(t) && t->op != OP_GATHER) {
        movement_coords(c, t, at, below, &valid);
        return node_is_const_i(valid, 1) ? index_at(c, t->src[0], below, depth + 1) : NULL;
    }
    if (!op_is_alu(t->op) || t->op == OP_CUSTOM || t->nsrc > 4)
        return NULL;
    for (uint32_t i = 0; i < t->nsrc; i++)
        if (!(src[i] = index_at(c, t->src[i], at, depth + 1)))
            return NULL;
    return t->op == OP_CAST ? node_cast(c, src[0], t->dtype)
                            : node_alu(c, t->op, t->dtype, (int)t->nsrc, src);
}

Node *source_of(Context *c, Node *x, Node *const *coords, Node **at, Node **inside)
{
    Node *below[INGOT_MAX_RANK];
    memcpy((void *)at, (void *)(uintptr_t)coords, (size_t)x->rank * sizeof *at);
    *inside = node_bool(c, true);
    while (is_move(x)) {
        Node *from = x->src[0];
        if (x->op == OP_GATHER) {
            for (int i = 0; i < from->rank; i++) {
                Node *v = index_at(c, x->src[1 + i], at, 0);
                if (!v)
                    return x;
                v = idx_max(c, node_cast(c, v, INGOT_INDEX), idx(c, 0));
                below[i] = idx_min(c, v, idx_sub(c, from->shape[i], idx(c, 1)));
            }
        } else {
            Node *valid = node_bool(c, true);
            movement_coords(c, x, at, below, &valid);
            *inside = bool_and(c, *inside, valid);
        }
        memcpy((void *)at, (void *)below, (size_t)from->rank * sizeof *at);
        x = from;
    }
    return x;
}

/* Is x at (o + 1, k) what it is at (o, k + 1)? */
static bool is_window(Context *c, Node *x, int out, int tap)
{
    int64_t size, taps;
    if (!idx_value(x->shape[out], &size) || !idx_value(x->shape[tap], &taps) || size < 2)
        return false;
    for (int64_t k = 0; k + 1 < taps; k++) {
        Node *at[2][INGOT_MAX_RANK], *coords[INGOT_MAX_RANK], *inside[2], *leaf[2];
        Node *o = range_new(c, RANGE_ASKED + out, idx(c, size - 1));
        for (int i = 0; i < x->rank; i++)
            coords[i] =
                idx_is(x->shape[i], 1) ? idx(c, 0) : range_new(c, RANGE_ASKED + i, x->shape[i]);
        for (int side = 0; side < 2; side++) {
            coords[out] = side ? o : idx_add(c, o, idx(c, 1));
            coords[tap] = idx(c, k + side);
            leaf[side] = source_of(c, x, coords, at[side], &inside[side]);
        }
        if (leaf[0] != leaf[1] || inside[0] != inside[1] || is_move(leaf[0]))
            return false;
        for (int i = 0; i < leaf[0]->rank; i++)
            if (at[0][i] != at[1][i])
                return false;
    }
    return true;
}

/* ---- the product ----------------------------------------------------------------------------- */

static bool moves_with(Node *f, int axis)
{
    return !idx_is(f->shape[axis], 1);
}

static void put_axis(ProductAxes *s, AxisGroup group, int axis)
{
    s->axis[group][s->n[group]++] = axis;
}

static void drop_axis(ProductAxes *s, AxisGroup group, int i)
{
    int *axis = s->axis[group];
    s->n[group]--;
    memmove(axis + i, axis + i + 1, (size_t)(s->n[group] - i) * sizeof *axis);
}

/* The row that makes a window with what is summed; -1: none. */
static int window_of(Context *c, const ProductAxes *s, int tap)
{
    for (int o = 0; o < s->n[ROW]; o++)
        if (is_window(c, s->x, s->axis[ROW][o], tap))
            return o;
    return -1;
}

/* Of what is along the taps' side, windows of three; each axis is in one. */
static bool put_windows(Context *c, const Node *product, ProductAxes *s)
{
    for (int k = 0; k < s->n[SUM]; k++) {
        const int tap = s->axis[SUM][k],
                  o = idx_is(product->shape[tap], TAPS) ? window_of(c, s, tap) : -1;
        if (o < 0)
            continue;
        if (s->n[OUT] == MAX_WINDOWS)
            return false;
        put_axis(s, OUT, s->axis[ROW][o]);
        put_axis(s, TAP, tap);
        drop_axis(s, ROW, o);
        drop_axis(s, SUM, k--);
    }
    return s->n[OUT] > 0 && s->n[SUM] > 0 && s->n[MAP] > 0;
}

static bool sort_axes(Context *c, Node *n, ProductAxes *s)
{
    Node *product = n->src[0];
    unsigned reduced = reduce_axes(n);
    int64_t size;
    for (int i = 0; i < product->rank; i++) {
        bool x = moves_with(s->x, i), w = moves_with(s->w, i), sum = reduced >> i & 1;
        if (sum && x != w)
            return false;
        if ((w || sum) && !idx_value(product->shape[i], &size))
            return false;
        put_axis(s, !x && !w ? ONE : sum ? SUM : x && w ? BATCH : x ? ROW : MAP, i);
    }
    for (int k = 0; k < s->n[SUM]; k++) {
        const int tap = s->axis[SUM][k];
        if (window_of(c, s, tap) >= 0 && !idx_is(product->shape[tap], TAPS))
            return false;
    }
    return put_windows(c, product, s);
}

/* Of the gradient of a weight: sums over batch and pixels, of x in windows whose taps are results.
 */
static bool sort_taps(Context *c, Node *n, ProductAxes *s)
{
    Node *product = n->src[0];
    const unsigned reduced = reduce_axes(n);
    int64_t size;
    for (int i = 0; i < product->rank; i++) {
        const bool x = moves_with(s->x, i), w = moves_with(s->w, i), sum = reduced >> i & 1;
        if ((sum && x != w) || !idx_value(product->shape[i], &size))
            return false;
        put_axis(s, !x && !w ? ONE : sum ? ROW : x && w ? BATCH : x ? SUM : MAP, i);
    }
    return put_windows(c, product, s);
}

/* Both operands are computed: what one of them has, taps of results, the other has not. */
static bool sort_gradient(Context *c, Node *n, ProductAxes *s)
{
    if (!is_sum_of_products(n) || n->dtype != INGOT_F32)
        return false;
    for (int side = 0; side < 2; side++) {
        ProductAxes one = {.x = compact_of(n->src[0]->src[side]),
                           .w = compact_of(n->src[0]->src[1 - side])};
        bool taps = false;
        for (int i = 0; i < n->src[0]->rank; i++)
            taps |= idx_is(n->src[0]->shape[i], TAPS) && !(reduce_axes(n) >> i & 1) &&
                    moves_with(one.x, i) && !moves_with(one.w, i);
        if (!taps || is_constant(one.w, 0) || is_constant(one.x, 0) || !sort_taps(c, n, &one))
            continue;
        *s = one;
        return true;
    }
    return false;
}

/* Without such an axis there is no window to look for. */
static bool has_taps(Node *n)
{
    bool some = false;
    for (int i = 0; i < n->src[0]->rank; i++)
        some |= (reduce_axes(n) >> i & 1) && idx_is(n->src[0]->shape[i], TAPS);
    return some;
}

/* A constant, or a state: one that is trained. */
static bool is_weight_of_run(Node *w)
{
    const Node *from = w;
    while (is_move(from))
        from = from->src[0];
    return from->op == OP_STATE || is_constant(w, 0);
}

/* Elements that are moved and then added to a number (zero_point.c): the number before. What is
 * padded is zero until then. */
static Node *moved_last(Context *c, Node *f)
{
    Node *x = f->src[0], *z = f->op == OP_ADD || f->op == OP_SUB ? uniform(f->src[1]) : NULL;
    if (!z || !is_move(x) || x->op == OP_PAD)
        return f;
    z = ingot_like(c, x->src[0], (double)z->arg.i);
    return moved(
        c, x,
        moved_last(c, f->op == OP_ADD ? ingot_add(c, x->src[0], z) : ingot_sub(c, x->src[0], z)));
}

static bool sort_product(Context *c, Node *n, ProductAxes *s)
{
    Node *product = n->src[0];
    *s = (ProductAxes){0};
    const bool exact = sums_integers(n);
    if (!is_sum_of_products(n) || (n->dtype != INGOT_F32 && !exact) || !has_taps(n))
        return false;
    for (int side = 0; side < 2; side++) {
        Node *x = exact ? moved_last(c, product->src[side]) : product->src[side];
        ProductAxes one = {.x = compact_of(x), .w = compact_of(product->src[1 - side])};
        if (!is_weight_of_run(one.w) || is_constant(one.x, 0) || !sort_axes(c, n, &one))
            continue;
        if (exact && !is_constant(one.w, 0))
            continue;
        one.largest = NEW(c->arena, double);
        *one.largest = -1;
        *s = one;
        return true;
    }
    return false;
}

static const ProductAxes none;

/* taps: are the taps results? */
static uint64_t key_of(const Node *n, bool taps)
{
    return context_key(MEMO_NO_WINDOW, 2 * (uint64_t)n->id + taps);
}

void no_window(Rewrite *r, Node *n)
{
    for (int taps = 0; taps < 2; taps++)
        map_put(&r->c->memo, key_of(n, taps), (void *)(uintptr_t)&none);
}

/* Several variants look at it, in every plan. */
static const ProductAxes *sorted_once(Rewrite *r, Node *n, bool taps)
{
    const uint64_t key = key_of(n, taps);
    const ProductAxes *known = map_get(&r->c->memo, key);
    if (!known) {
        ProductAxes *s = NEW(r->c->arena, ProductAxes);
        known = (taps ? sort_gradient : sort_product)(r->c, n, s) ? s : &none;
        map_put(&r->c->memo, key, (void *)(uintptr_t)known);
    }
    return known == &none ? NULL : known;
}

const ProductAxes *winograd_axes(Rewrite *r, Node *n)
{
    return sorted_once(r, n, false);
}

const ProductAxes *winograd_taps_axes(Rewrite *r, Node *n)
{
    return sorted_once(r, n, true);
}

int64_t results_of(const ProductAxes *s, int window)
{
    int64_t size = 0;
    (void)idx_value(s->x->shape[s->axis[OUT][window]], &size);
    return size;
}

int64_t rows_of_tiles(const ProductAxes *s, const WinogradForm *f, int window)
{
    int tile = tile_along(f, window);
    return ceil_div(results_of(s, window), tile);
}

int transformed_windows(const ProductAxes *s, const WinogradForm *f)
{
    return s->n[OUT] < f->windows ? s->n[OUT] : f->windows;
}

int tile_along(const WinogradForm *f, int window)
{
    return window < f->windows ? f->tile : 1;
}
