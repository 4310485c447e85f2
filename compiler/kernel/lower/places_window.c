/* places_window.c - boxes of what windows read (STAGE .. move tma): one tap of many positions.
 *
 *     y[n][h][w][o] = sum over r, s, c of x[n][2 h + r - 1][2 w + s - 1][c] w[o][r][s][c]
 *
 * With rows n, h, w joined and terms r, s, c joined neither moves along x by one distance.  But a
 * row's index along each axis of x is a digit of its number, and so is a term's.  That is what a
 * copy of windows takes: from position (n, h, w) on, which may lie beside the image, so many
 * positions run on along rows and from image to image, and of each the same tap is taken, 128 bytes
 * of its channels, or 64.  What lies beside the image is zero, as the load's gate has it.
 *
 *     at = {c, 2 w - 1, 2 h - 1, n}   tap = {0, s, r, 0}   low = {0, -1, -1, 0}   step = {1, 2, 2,
 * 1} many = {64, W', H', N}          size = {64, 128, 1, 1}   for 128 rows */
#include "lower.h"

/* factor * (range / by % size); factor 0: it does not move with the range. whole: there is no
 * %, size is as far as the range goes. */
typedef struct {
    int64_t factor, by, size;
    bool whole;
} WindowDigit;

static bool pure_digit(Node *e, Node *range, WindowDigit *d)
{
    int64_t n;
    if (e == range) {
        *d = (WindowDigit){1, 1, range_extent(range), true};
        return d->size > 0;
    }
    if ((e->op != OP_FLOORDIV && e->op != OP_MOD) || !idx_value(e->src[1], &n) || n < 1 ||
        !pure_digit(e->src[0], range, d) || (!d->whole && d->size % n))
        return false;
    if (e->op == OP_FLOORDIV) {
        d->by *= n;
        d->size = ceil_div(d->size, n);
    } else {
        d->whole &= n >= d->size;
        d->size = n < d->size ? n : d->size;
    }
    return true;
}

/* How an index moves with the range. */
static bool find_digit(Node *e, Node *range, WindowDigit *d)
{
    int64_t n;
    *d = (WindowDigit){0, 1, 1, true};
    if (!depends_on(e, range))
        return true;
    if (e->op == OP_ADD) {
        const bool second = depends_on(e->src[1], range);
        return !(second && depends_on(e->src[0], range)) && find_digit(e->src[second], range, d);
    }
    if (e->op != OP_MUL || !idx_value(e->src[1], &n))
        return pure_digit(e, range, d);
    if (!find_digit(e->src[0], range, d))
        return false;
    d->factor = sat_mul(d->factor, n);
    return true;
}

/* The axes of the buffer, that which lies side by side first, without those of one element that
 * the load has none but this of. */
static bool window_axes(Lower *q, const KernelArg *a, Node *const *index, Box *b, int *axis)
{
    Node *x[INGOT_MAX_RANK], *zero = idx(q->c, 0);
    for (int i = 0; i < a->rank; i++)
        x[i] = range_new(q->c, RANGE_ADDED + i, a->dims[i]);
    Node *at = layout_offset(q->c, &a->layout, a->rank, a->dims, x), *first = at;
    b->rank = 0;
    for (int i = 0; i < a->rank; i++) {
        int64_t stride;
        if (idx_is(a->dims[i], 1) && idx_is(index[i], 0)) {
            first = substitute(q->c, first, 1, &x[i], &zero);
            continue;
        }
        if (b->rank == MAX_BOX || !range_stride(q->c, at, x[i], &stride) || stride < 1)
            return false;
        first = substitute(q->c, first, 1, &x[i], &zero);
        int to = b->rank++;
        for (; to > 0 && b->stride[to - 1] > stride; to--) {
            b->stride[to] = b->stride[to - 1];
            b->extent[to] = b->extent[to - 1];
            axis[to] = axis[to - 1];
        }
        b->stride[to] = stride;
        b->extent[to] = a->dims[i]->hi;
        axis[to] = i;
    }
    return b->rank >= 3 && idx_value(first, &b->offset) && !layout_fill(&a->layout);
}

/* Does a comparison say no more than that an index is one of the buffer's? */
static bool is_edge(Lower *q, Node *gate, const KernelArg *a, Node *const *x)
{
    if (gate->op == OP_AND)
        return is_edge(q, gate->src[0], a, x) && is_edge(q, gate->src[1], a, x);
    if (node_is_const_i(gate, 1))
        return true;
    const Node *lt = gate->op == OP_NOT ? gate->src[0] : gate;
    if (lt->op != OP_LT)
        return false;
    Node *less = idx_sub(q->c, lt->src[0], lt->src[1]); /* the gate is: less < 0 */
    if (gate->op == OP_NOT)
        less = idx_sub(q->c, idx(q->c, -1), less);
    for (int i = 0; i < a->rank; i++) {
        Node *below = idx_sub(q->c, idx(q->c, -1), x[i]), *above = idx_sub(q->c, x[i], a->dims[i]);
        if (idx_is(idx_sub(q->c, less, below), 0) || idx_is(idx_sub(q->c, less, above), 0))
            return true;
    }
    return false;
}

/* The two axes of the kernel along which the place goes: that of results first. */
static bool block_axes(const Lower *q, const Piece *p, const Stage *s, Node *n, int axis[2])
{
    axis[0] = axis[1] = -1;
    for (int i = 0; i < q->k->naxis; i++) {
        if ((!p->at[i] && !p->sum[i].split) || !depends_on(n, q->k->axes[i].range) ||
            place_size(q, p, s, i) == 1)
            continue;
        int *to = &axis[q->nest->axis[i].reduced];
        if (*to >= 0)
            return false;
        *to = i;
    }
    return axis[0] >= 0 && axis[1] >= 0;
}

/* Are the index's digits along an axis of the image those of positions that follow each other, and
 * of taps? `before`: positions of the axes inside of it. */
static bool is_slid(Box *b, int i, const WindowDigit *row, const WindowDigit *term, int64_t before)
{
    const bool images = i == b->rank - 1;
    const int64_t many = row->factor ? row->size : 1, step = row->factor ? row->factor : 1;
    b->many[i] = many;
    b->step[i] = step;
    if (row->factor < 0 || (row->factor && row->by != before) || term->factor < 0)
        return false;
    return images ? step == 1 && !term->factor : step <= BOX_MOST_STEP;
}

/* Do corners and taps have the numbers that a map and a copy have room for? */
static bool fits(const Box *b, int i, const WindowDigit *term)
{
    static const int64_t corner[] = {[3] = 1 << 15, [4] = 1 << 7, [5] = 1 << 4},
                         most_tap[] = {[3] = (1 << 16) - 1, [4] = (1 << 8) - 1, [5] = (1 << 5) - 1};
    const int64_t high = box_high(b, i), tap = term->factor * (term->size - 1);
    return b->low[i] >= -corner[b->rank] && b->low[i] < corner[b->rank] &&
           high >= -corner[b->rank] && high < corner[b->rank] && tap <= most_tap[b->rank];
}

/* Channels: a digit of the terms alone, of whole blocks of them, or the only one. */
static bool are_channels(const WindowDigit *row, const WindowDigit *term, int64_t block,
                         int64_t run)
{
    return !row->factor && term->factor == 1 && term->by == 1 &&
           (term->size % block == 0 || (term->whole && block == run));
}

/* The box whose positions move with the axis `rows`, its taps and channels with `terms`. */
static bool box_along(Lower *q, const Piece *p, const Stage *s, Node *n, Box *b, int rows,
                      int terms)
{
    const KernelArg *a = &q->k->args[b->arg];
    Node *const *x = n->src + first_coord(n), *zero = idx(q->c, 0);
    int axis[INGOT_MAX_RANK];
    const int64_t run = tc_run(q->nest->tc), line = dtype_info[n->dtype].bytes,
                  block = place_size(q, p, s, terms);
    if (!window_axes(q, a, x, b, axis) || block % run || place_size(q, p, s, rows) > BOX_MOST ||
        !is_edge(q, n->src[1], a, x))
        return false;
    Node *row = q->k->axes[rows].range, *term = q->k->axes[terms].range,
         **from = NEWN(q->a, Node *, q->k->naxis), **to = NEWN(q->a, Node *, q->k->naxis);
    int count = 0, own = 0;
    for (int i = 0; i < q->k->naxis; i++) {
        if ((!p->at[i] && !p->sum[i].split) || !depends_on(n, q->k->axes[i].range))
            continue;
        own = i == terms ? count : own;
        from[count] = q->k->axes[i].range;
        to[count++] = place_part(q, p, s, i, false);
    }
    int64_t before = 1;
    for (int i = 0; i < b->rank; i++) {
        WindowDigit r, t;
        Node *index = x[axis[i]];
        if (!find_digit(index, row, &r) || !find_digit(index, term, &t) ||
            (i && b->stride[i] * line % BOX_LINE))
            return false;
        Node *first[] = {zero, zero}, *moving[] = {row, term};
        Node *begin = substitute(q->c, index, 2, moving, first);
        b->size[i] = i == 1 ? place_size(q, p, s, rows) : 1;
        if (!i) {
            b->size[0] = block;
            b->many[0] = run;
            b->step[0] = 1;
            b->low[0] = 0;
            b->tap[0] = zero;
            b->at[0] = substitute(q->c, index, count, from, to);
            if (!are_channels(&r, &t, block, run))
                return false;
            continue;
        }
        const bool images = i == b->rank - 1;
        if (!is_slid(b, i, &r, &t, before) || (!images && !idx_value(begin, &b->low[i])) ||
            (!images && !fits(b, i, &t)))
            return false;
        before = sat_mul(before, b->many[i]);
        Node *whole = to[own];
        to[own] = zero;
        b->at[i] = substitute(q->c, index, count, from, to);
        to[own] = whole;
        Node *tap = substitute(q->c, index, 1, &row, &zero);
        b->tap[i] = idx_sub(q->c, substitute(q->c, tap, 1, &term, &whole), begin);
    }
    b->window = true;
    return b->offset * line % BOX_LINE == 0;
}

/* Of a convolution positions are results, and a block of terms is one tap's channels. Of its
 * gradient by the weights positions are terms, and results are taps and channels. */
bool window_box(Lower *q, const Piece *p, const Stage *s, Node *n, Box *b, int *rows, int *terms)
{
    int axis[2];
    if (!block_axes(q, p, s, n, axis))
        return false;
    for (int turned = 0; turned < 2; turned++) {
        *rows = axis[turned];
        *terms = axis[!turned];
        if (box_along(q, p, s, n, b, *rows, *terms))
            return true;
    }
    return false;
}
