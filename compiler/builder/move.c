/* move.c - the six movement operations: reshape, permute, expand, pad, shrink, flip.
 *
 * They only change coordinates.  Two of a kind in a row become one, those that change nothing
 * vanish, and a uniform tensor stays uniform, so chains that importers build (squeeze, unsqueeze,
 * reshape) cost nothing. */
#include <string.h>

#include "builder.h"

/* op x with one dim per axis behind it: RESHAPE and EXPAND. */
static Node *with_dims(Context *c, Op op, Node *x, int rank, Node *const *dims)
{
    Node *src[1 + INGOT_MAX_RANK] = {x};
    for (int i = 0; i < rank; i++)
        src[1 + i] = dims[i];
    return node_make(c, op, (ingot_dtype)x->dtype, (Arg){0}, 1 + rank, src, rank, dims);
}

/* op x with two dims per axis behind it: PAD and SHRINK. */
static Node *with_pairs(Context *c, Op op, Node *x, Node *const *a, Node *const *b,
                        Node *const *dims)
{
    Node *src[1 + 2 * INGOT_MAX_RANK] = {x};
    for (int i = 0; i < x->rank; i++) {
        src[1 + 2 * i] = a[i];
        src[2 + 2 * i] = b[i];
    }
    return node_make(c, op, (ingot_dtype)x->dtype, (Arg){0}, 1 + 2 * x->rank, src, x->rank, dims);
}

static bool identical(int rank, Node *const *a, Node *const *b)
{
    return rank == 0 || !memcmp(a, b, (size_t)rank * sizeof *a);
}

static Node *zeros(Context *c, Node *x, int rank, Node *const *dims)
{
    return uniform_make(c, node_const_zero(c, (ingot_dtype)x->dtype), rank, dims);
}

/* ---- reshape, expand ------------------------------------------------------------------------- */

static Node *reshape_checked(Context *c, Node *x, int rank, Node *const *dims)
{
    Node *k = uniform(x);
    if (k)
        return uniform_make(c, k, rank, dims);
    while (x->op == OP_RESHAPE) /* reshape (reshape x) -> reshape x */
        x = x->src[0];
    if (x->rank == rank && identical(rank, x->shape, dims))
        return x;
    return with_dims(c, OP_RESHAPE, x, rank, dims);
}

ingot_tensor *ingot_reshape(ingot_context *c, ingot_tensor *x, int rank, ingot_dim *const *dims)
{
    if (poisoned(x) || !shape_check(c, "reshape", rank, dims))
        return c->poison;
    Node *from = shape_numel(c, x->rank, x->shape), *to = shape_numel(c, rank, dims);
    bool empty = shape_is_empty(x->rank, x->shape);
    if (from->op == OP_CONST && (from->lo < to->lo || from->lo > to->hi))
        return ingot_error(c, INGOT_INVALID,
                           "reshape of %s to %s: has %s elements but the new shape has %s",
                           shape_text(c, x->rank, x->shape), shape_text(c, rank, dims),
                           dim_text(c, from), dim_text(c, to));
    if (!ingot_require(c, to, from, from, "the number of elements of its new shape"))
        return c->poison;
    if (empty)
        return zeros(c, x, rank, dims);
    return reshape_checked(c, x, rank, dims);
}

ingot_tensor *ingot_reshape_c(ingot_context *c, ingot_tensor *x, int rank, const int64_t *dims)
{
    Node *nodes[INGOT_MAX_RANK];
    if (poisoned(x))
        return x;
    if (rank < 0 || rank > INGOT_MAX_RANK)
        return ingot_error(c, INGOT_INVALID, "reshape to rank %d; ranks go from 0 to %d", rank,
                           INGOT_MAX_RANK);
    for (int i = 0; i < rank; i++)
        nodes[i] = idx(c, dims[i]);
    return ingot_reshape(c, x, rank, nodes);
}

/* x's dims are known to be 1 or equal to the last ones of dims. */
Node *broadcast_to(Context *c, Node *x, int rank, Node *const *dims)
{
    Node *aligned[INGOT_MAX_RANK], *one = idx(c, 1), *k = uniform(x);
    if (k)
        return uniform_make(c, k, rank, dims);
    int missing = rank - x->rank;
    bool same = true;
    for (int i = 0; i < rank; i++) {
        aligned[i] = i < missing ? one : x->shape[i - missing];
        same &= aligned[i] == dims[i] || aligned[i] != one; /* provably equal is equal enough */
    }
    if (missing)
        x = reshape_checked(c, x, rank, aligned);
    if (same)
        return x;
    if (x->op == OP_EXPAND && x->src[0]->rank == rank) /* expand (expand x) -> expand x */
        x = x->src[0];
    return with_dims(c, OP_EXPAND, x, rank, dims);
}

ingot_tensor *ingot_expand(ingot_context *c, ingot_tensor *x, int rank, ingot_dim *const *dims)
{
    if (poisoned(x) || !shape_check(c, "expand", rank, dims))
        return c->poison;
    int missing = rank - x->rank;
    bool ok = missing >= 0, known = true;
    for (int i = 0; ok && i < x->rank; i++) {
        Node *d = x->shape[i], *to = dims[missing + i];
        known = d->lo > 1 || d->hi < 1 || d->op == OP_CONST; /* it is not 1, whatever it is */
        ok = idx_is(d, 1) || d == to || idx_provably_equal(c, d, to);
        if (!ok && d->lo > 1 &&
            (d->op != OP_CONST || to->op != OP_CONST)) { /* no other size can be meant */
            const char *what = arena_printf(c->arena, "the size to which axis %d is expanded", i);
            if (!ingot_require(c, to, d, d, what))
                return c->poison;
            ok = true;
        }
    }
    if (!ok)
        return ingot_error(c, known ? INGOT_INVALID : INGOT_UNSUPPORTED,
                           "expand of %s to %s: only dims of size 1 can be stretched%s",
                           shape_text(c, x->rank, x->shape), shape_text(c, rank, dims),
                           known ? "" : ", and whether it is 1 is not known when compiling");
    if (shape_is_empty(rank, dims))
        return zeros(c, x, rank, dims);
    return broadcast_to(c, x, rank, dims);
}

/* ---- permute --------------------------------------------------------------------------------- */

/* Permutations are interned, since nodes compare their arg by address.  The memo's key packs 16
 * axes of 4 bits; the rank tells (0) from (0, 1). */
static const Perm *perm_intern(Context *c, int n, const int *axes)
{
    struct {
        char tag[8];
        int8_t n, axis[INGOT_MAX_RANK];
    } key = {.tag = "permute", .n = (int8_t)n};
    for (int i = 0; i < n; i++)
        key.axis[i] = (int8_t)axes[i];
    uint64_t h = hash_bytes(0, &key, sizeof key);
    Perm *p;
    while ((p = map_get(&c->memo, h)) &&
           (p->n != n || memcmp(p->axis, key.axis, sizeof p->axis) != 0))
        h = hash_bytes(h, &key, sizeof key);
    if (!p) {
        p = NEW(c->arena, Perm);
        p->n = n;
        memcpy(p->axis, key.axis, sizeof p->axis);
        map_put(&c->memo, h, p);
    }
    return p;
}

ingot_tensor *ingot_permute(ingot_context *c, ingot_tensor *x, const int *perm)
{
    if (poisoned(x))
        return x;
    unsigned seen = 0;
    for (int i = 0; i < x->rank; i++) {
        if (perm[i] < 0 || perm[i] >= x->rank || (seen & (1u << perm[i])))
            return ingot_error(c, INGOT_INVALID,
                               "permute of rank %d: entry %d is %d; each axis 0..%d must come once",
                               x->rank, i, perm[i], x->rank - 1);
        seen |= 1u << perm[i];
    }
    int axes[INGOT_MAX_RANK];
    Node *base = x, *dims[INGOT_MAX_RANK];
    bool is_identity = true;
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->shape[perm[i]];
    if (uniform(x))
        return uniform_make(c, uniform(x), x->rank, dims);
    if (x->op == OP_PERMUTE) /* permute (permute x) -> permute x */
        base = x->src[0];
    for (int i = 0; i < x->rank; i++) {
        axes[i] = base == x ? perm[i] : ((const Perm *)x->arg.ptr)->axis[perm[i]];
        is_identity &= axes[i] == i;
    }
    if (is_identity)
        return base;
    Arg arg = {.ptr = perm_intern(c, x->rank, axes)};
    return node_make(c, OP_PERMUTE, (ingot_dtype)x->dtype, arg, 1, &base, x->rank, dims);
}

/* ---- pad, shrink, flip ----------------------------------------------------------------------- */

static bool amounts_check(Context *c, const char *what, Node *x, Node *const *a, Node *const *b)
{
    for (int i = 0; i < x->rank; i++) {
        if (poisoned(a[i]) || poisoned(b[i]))
            return false;
        if (a[i]->dtype != INGOT_INDEX || b[i]->dtype != INGOT_INDEX) {
            ingot_error(c, INGOT_INVALID,
                        "%s: an amount of axis %d is a tensor; ingot_read_dim turns it into a dim",
                        what, i);
            return false;
        }
    }
    return true;
}

Node *with_shape(Context *c, Node *x, Node *const *dims)
{
    Node *zero[INGOT_MAX_RANK];
    if (identical(x->rank, x->shape, dims))
        return x;
    if (uniform(x))
        return uniform_make(c, uniform(x), x->rank, dims);
    for (int i = 0; i < x->rank; i++)
        zero[i] = idx(c, 0);
    return with_pairs(c, OP_SHRINK, x, zero, dims, dims);
}

ingot_tensor *ingot_shrink(ingot_context *c, ingot_tensor *x, ingot_dim *const *begin,
                           ingot_dim *const *size)
{
    if (poisoned(x) || !amounts_check(c, "shrink", x, begin, size) ||
        !shape_check(c, "shrink", x->rank, size))
        return c->poison;
    bool all = true;
    for (int i = 0; i < x->rank; i++) {
        if (idx_is(begin[i], 0) && size[i] == x->shape[i])
            continue;
        Node *room = idx_sub(c, x->shape[i], idx_add(c, begin[i], size[i]));
        if (begin[i]->hi < 0 || room->hi < 0)
            return ingot_error(
                c, INGOT_INVALID, "shrink of %s: axis %d from %s, %s elements, is not inside it",
                shape_text(c, x->rank, x->shape), i, dim_text(c, begin[i]), dim_text(c, size[i]));
        all &= idx_is(begin[i], 0) && (size[i] == x->shape[i] || idx_is(room, 0));
    }
    if (all)
        return x;
    if (shape_is_empty(x->rank, size))
        return zeros(c, x, x->rank, size);
    if (uniform(x))
        return uniform_make(c, uniform(x), x->rank, size);
    if (x->op == OP_SHRINK) { /* shrink (shrink x) -> shrink x */
        Node *from[INGOT_MAX_RANK];
        for (int i = 0; i < x->rank; i++)
            from[i] = idx_add(c, begin[i], x->src[1 + 2 * i]);
        return with_pairs(c, OP_SHRINK, x->src[0], from, size, size);
    }
    return with_pairs(c, OP_SHRINK, x, begin, size, size);
}

/* PAD proper: no amount is negative. */
static Node *pad_positive(Context *c, Node *x, Node *const *lo, Node *const *hi)
{
    Node *dims[INGOT_MAX_RANK], *l[INGOT_MAX_RANK], *h[INGOT_MAX_RANK];
    bool nothing = true;
    for (int i = 0; i < x->rank; i++) {
        dims[i] = idx_add(c, idx_add(c, x->shape[i], lo[i]), hi[i]);
        nothing &= idx_is(lo[i], 0) && idx_is(hi[i], 0);
        l[i] = lo[i];
        h[i] = hi[i];
    }
    if (nothing)
        return x;
    if (!shape_check(c, "pad", x->rank, dims))
        return c->poison;
    Node *k = uniform(x);
    if (shape_is_empty(x->rank, x->shape) || shape_is_empty(x->rank, dims) || const_is(k, 0))
        return zeros(c, x, x->rank, dims);
    if (x->op == OP_PAD) { /* pad (pad x) -> pad x */
        for (int i = 0; i < x->rank; i++) {
            l[i] = idx_add(c, lo[i], x->src[1 + 2 * i]);
            h[i] = idx_add(c, hi[i], x->src[2 + 2 * i]);
        }
        x = x->src[0];
    }
    return with_pairs(c, OP_PAD, x, l, h, dims);
}

/* The cropping half of pad: amounts below zero. */
static Node *pad_crop(Context *c, Node *x, Node *const *lo, Node *const *hi)
{
    Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK], *zero = idx(c, 0);
    bool crops = false;
    for (int i = 0; i < x->rank; i++) {
        Node *end = idx_add(c, x->shape[i], idx_min(c, hi[i], zero));
        begin[i] = idx_max(c, idx_sub(c, zero, lo[i]), zero);
        size[i] = idx_sub(c, end, begin[i]);
        crops |= lo[i]->lo < 0 || hi[i]->lo < 0;
        const bool known = size[i]->op == OP_CONST || size[i]->lo >= 0;
        if (!known &&
            !ingot_require(c, size[i], zero, idx(c, size[i]->hi < 0 ? 0 : size[i]->hi),
                           arena_printf(c->arena, "what negative pads leave of axis %d", i)))
            return c->poison;
    }
    return crops ? ingot_shrink(c, x, begin, size) : x;
}

ingot_tensor *ingot_pad(ingot_context *c, ingot_tensor *x, ingot_dim *const *lo,
                        ingot_dim *const *hi)
{
    Node *l[INGOT_MAX_RANK], *h[INGOT_MAX_RANK], *sum[INGOT_MAX_RANK], *zero = idx(c, 0);
    if (poisoned(x) || !amounts_check(c, "pad", x, lo, hi))
        return c->poison;
    for (int i = 0; i < x->rank; i++)
        sum[i] = idx_add(c, x->shape[i], idx_add(c, lo[i], hi[i]));
    x = pad_crop(c, x, lo, hi);
    if (poisoned(x))
        return x;
    for (int i = 0; i < x->rank; i++) {
        l[i] = idx_max(c, lo[i], zero);
        h[i] = idx_max(c, hi[i], zero);
    }
    x = pad_positive(c, x, l, h);
    /* of amounts of the run, what both halves leave is a number less often than their sum */
    for (int i = 0; i < x->rank && !poisoned(x); i++)
        if (sum[i]->hi > x->shape[i]->hi || sum[i]->lo < x->shape[i]->lo)
            sum[i] = x->shape[i];
    return poisoned(x) ? x : with_shape(c, x, sum);
}

ingot_tensor *ingot_pad_value(ingot_context *c, ingot_tensor *x, ingot_dim *const *lo,
                              ingot_dim *const *hi, ingot_tensor *value)
{
    if (poisoned(x) || poisoned(value))
        return c->poison;
    if (value->dtype != x->dtype)
        return ingot_error(c, INGOT_INVALID, "pad: the value is %s, the tensor %s; they must agree",
                           dtype_info[value->dtype].name, dtype_info[x->dtype].name);
    Node *padded = ingot_pad(c, x, lo, hi), *k = uniform(value);
    if (poisoned(padded) || const_is(k, 0))
        return padded;
    if (k && uniform(x) == k)
        return uniform_make(c, k, x->rank, padded->shape);
    Node *ones = uniform_make(c, node_bool(c, true), x->rank, x->shape);
    Node *inside = ingot_pad(c, ones, lo, hi);
    return ingot_where(c, inside, padded, value);
}

ingot_tensor *ingot_pad_c(ingot_context *c, ingot_tensor *x, const int64_t *lo, const int64_t *hi,
                          double value)
{
    Node *l[INGOT_MAX_RANK], *h[INGOT_MAX_RANK];
    if (poisoned(x))
        return x;
    for (int i = 0; i < x->rank; i++) {
        l[i] = idx(c, lo[i]);
        h[i] = idx(c, hi[i]);
    }
    return ingot_pad_value(c, x, l, h, ingot_like(c, x, value));
}

ingot_tensor *ingot_flip(ingot_context *c, ingot_tensor *x, unsigned axes)
{
    if (poisoned(x))
        return x;
    if (axes >> x->rank)
        return ingot_error(c, INGOT_INVALID, "flip: axes 0x%x of a tensor of rank %d", axes,
                           x->rank);
    if (uniform(x))
        return x;
    if (x->op == OP_FLIP) { /* flip (flip x) -> flip x */
        axes ^= (unsigned)x->arg.i;
        x = x->src[0];
    }
    for (int i = 0; i < x->rank; i++)
        if (idx_is(x->shape[i], 1))
            axes &= ~(1u << i);
    if (axes == 0)
        return x;
    return node_make(c, OP_FLIP, (ingot_dtype)x->dtype, (Arg){.i = axes}, 1, &x, x->rank, x->shape);
}

/* ---- again ----------------------------------------------------------------------------------- */

Node *move_again(Context *c, Node *move, Node *x)
{
    Node *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    for (int i = 0; i < x->rank && (move->op == OP_PAD || move->op == OP_SHRINK); i++) {
        lo[i] = move->src[1 + 2 * i];
        hi[i] = move->src[2 + 2 * i];
    }
    switch (move->op) {
    case OP_RESHAPE: return reshape_checked(c, x, move->rank, move->shape);
    case OP_EXPAND: return broadcast_to(c, x, move->rank, move->shape);
    case OP_PAD: return pad_positive(c, x, lo, hi);
    case OP_SHRINK: return ingot_shrink(c, x, lo, hi);
    case OP_FLIP: return ingot_flip(c, x, (unsigned)move->arg.i);
    case OP_PERMUTE: {
        int perm[INGOT_MAX_RANK];
        for (int i = 0; i < x->rank; i++)
            perm[i] = ((const Perm *)move->arg.ptr)->axis[i];
        return ingot_permute(c, x, perm);
    }
    default: return NULL;
    }
}

int axis_moved(const Node *t, int axis)
{
    const Node *x = t->src[0];
    int64_t below = 1, behind = 1, size;
    switch (t->op) {
    case OP_EXPAND: return t->shape[axis] == x->shape[axis] ? axis : -1;
    case OP_PERMUTE:
        for (int i = 0; i < t->rank; i++)
            if (((const Perm *)t->arg.ptr)->axis[i] == axis)
                return i;
        return -1;
    case OP_RESHAPE:
        for (int i = x->rank; --i > axis;)
            if (!idx_value(x->shape[i], &size))
                return -1;
            else
                below *= size;
        for (int i = t->rank; i-- > 0;) {
            if (behind == below && t->shape[i] == x->shape[axis])
                return i;
            if (!idx_value(t->shape[i], &size))
                return -1;
            behind *= size;
        }
        return -1;
    default: return -1;
    }
}
