/* gradient_gather.c - the adjoints of reading and writing at computed places.
 *
 *     y = gather x at i           g_x = zeros, to which g_y is added at i
 *     y = x, set to v at i        g_v = g_y at i,  g_x = g_y with zeros at i
 *     y = x, v added at i         g_v = g_y at i,  g_x = g_y
 *
 * A gather clamps its indices, an update drops what is outside: their adjoints must do the same. */
#include "gradient.h"

static bool places_inside(Context *c, Node *x, Node *const *index)
{
    AffineView v;
    return view_of_places(c, x, index, &v) && view_is_inside(c, &v);
}

/* No two elements of the indices are the same place. */
static bool places_distinct(Context *c, Node *x, Node *const *index)
{
    AffineView v;
    unsigned used = 0;
    int axis[2];
    if (!view_of_places(c, x, index, &v))
        return false;
    for (int a = 0; a < x->rank; a++) {
        int n = view_terms(&v, a, axis);
        if (n > 1)
            return false;
        used |= n ? 1u << axis[0] : 0;
    }
    for (int k = 0; k < v.rank; k++)
        if (!(used >> k & 1) && !idx_is(v.dims[k], 1))
            return false;
    return true;
}

/* 0..size-1, and the index of each axis within that. */
static void clamped(Context *c, Node *x, Node *const *index, Node **at)
{
    bool inside = places_inside(c, x, index);
    for (int a = 0; a < x->rank; a++) {
        Node *last = idx_sub(c, x->shape[a], idx(c, 1));
        Node *most = ingot_cast(c, ingot_from_dim(c, last), (ingot_dtype)index[a]->dtype);
        at[a] = inside ? index[a] : ingot_min(c, ingot_max_c(c, index[a], 0), most);
    }
}

/* Whether the places of an update are in x; NULL: all are. */
static Node *is_inside(Context *c, Node *x, Node *const *index)
{
    Node *all = NULL, *zero;
    if (places_inside(c, x, index))
        return NULL;
    for (int a = 0; a < x->rank; a++) {
        Node *size = ingot_cast(c, ingot_from_dim(c, x->shape[a]), (ingot_dtype)index[a]->dtype);
        zero = ingot_like(c, index[a], 0);
        Node *in = ingot_and(c, ingot_ge(c, index[a], zero), ingot_lt(c, index[a], size));
        all = all ? ingot_and(c, all, in) : in;
    }
    return all;
}

/* g added at places of zeros: of narrow floats in f32. */
static Node *scattered(Context *c, Node *x, Node *g, Node *const *at)
{
    ingot_dtype d = (ingot_dtype)x->dtype, wide = dtype_info[d].compute;
    Node *zeros = uniform_make(c, node_const_zero(c, wide), x->rank, x->shape);
    return ingot_cast(c, ingot_update(c, INGOT_ADD, zeros, ingot_cast(c, g, wide), at), d);
}

/* Windows of windows of x are one view: all are folded at once.  False: it is none that folds. */
static bool find_view(const Backward *b, Node *gather, AffineView *v)
{
    Context *c = b->c;
    AffineView next;
    if (!view_of_places(c, gather->src[0], gather->src + 1, v) || !view_is_inside(c, v))
        return false;
    bool found = view_folds(v);
    for (next = *v; next.x->op == OP_GATHER || next.x->op == OP_RESHAPE;) {
        bool through = next.x->op == OP_GATHER;
        if (b->target[next.x->id] || !view_deeper(c, &next))
            break;
        if (through && view_folds(&next)) {
            *v = next;
            found = true;
        }
    }
    return found;
}

Node *gradient_gather(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    AffineView v;
    Node *x = n->src[i], *at[INGOT_MAX_RANK];
    if (find_view(b, n, &v)) {
        gradient_give(b, v.x, view_adjoint(c, &v, g));
        return NULL;
    }
    clamped(c, x, n->src + 1, at);
    return scattered(c, x, g, at);
}

/* ---- update ---------------------------------------------------------------------------------- */

/* What of an update's value has an effect: NULL: all of it. */
static Node *masked(Context *c, Node *mask, Node *g)
{
    return mask ? ingot_where(c, mask, g, ingot_like(c, g, 0)) : g;
}

/* Of several values that are set at one place the last one stays: each place is told who was
 * there last. */
static Node *is_last_there(Context *c, Node *x, Node *v, Node *const *index, Node *const *at)
{
    if (places_distinct(c, x, index))
        return NULL;
    Node *count = shape_numel(c, v->rank, v->shape);
    Node *number = ingot_reshape(c, ingot_iota(c, 1, &count, 0), v->rank, v->shape);
    Node *nobody = uniform_make(c, node_const_i(c, INGOT_I64, -1), x->rank, x->shape);
    Node *last = ingot_update(c, INGOT_SET, nobody, number, index);
    return ingot_eq(c, ingot_gather(c, last, at), number);
}

static Node *set_gradient(Context *c, Node *n, Node *g, int i, Node *const *at)
{
    Node *x = n->src[0], *v = n->src[1], *const *index = n->src + 2;
    if (i == 0)
        return ingot_update(c, INGOT_SET, g, gradient_zeros(c, v), index);
    Node *inside = is_inside(c, x, index), *last = is_last_there(c, x, v, index, at);
    return masked(c, inside, masked(c, last, ingot_gather(c, g, at)));
}

/* What a gradient of multiplied_gradient() was made of. */
typedef struct {
    Node *n, *g;
} Multiplied;

/* By element of v the product of what came before it at its place, from the first element on or
 * from the last one back; x: what each place begins as.  All are lists. */
static Node *running_products(Context *c, Node *x, Node *v, Node *const *index, bool back)
{
    Node *n = v->shape[0], *out[2], *results[3], *at[INGOT_MAX_RANK], *inside[INGOT_MAX_RANK];
    ingot_region *r = ingot_region_begin(c);
    Node *i = ingot_region_param(c, r, INGOT_I64, 0, NULL);
    results[0] = ingot_region_param(c, r, INGOT_BOOL, 0, NULL);
    Node *now = ingot_region_param_like(c, r, x);
    if (back)
        i = ingot_sub(c, ingot_from_dim(c, idx_sub(c, n, idx(c, 1))), i);
    for (int a = 0; a < x->rank; a++)
        at[a] = ingot_gather(c, index[a], (Node *const[]){i});
    clamped(c, x, at, inside);
    results[2] = ingot_gather(c, now, inside);
    Node *next = ingot_mul(c, results[2], ingot_gather(c, v, (Node *const[]){i}));
    results[1] = ingot_update(c, INGOT_SET, now, next, at);
    ingot_region_end(c, r, 3, results);
    ingot_loop(c, n, NULL, 1, &x, r, 1, out);
    return back ? ingot_flip(c, out[1], 1) : out[1];
}

static Node *listed(Context *c, Node *x, int rank, Node *const *shape)
{
    Node *n = shape_numel(c, rank, shape);
    return ingot_reshape(c, ingot_expand(c, x, rank, shape), 1, &n);
}

/* g v's others = g (all before v at its place) (all behind it): one element after the other, and
 * right wherever factors are zero, its own gradient too. */
static Node *multiplied_in_turn(Context *c, Node *n, Node *x, Node *v, Node *g)
{
    Node *const *index = n->src + 2, *list[INGOT_MAX_RANK], *at[INGOT_MAX_RANK];
    Node *ones = uniform_make(c, ingot_like(c, x, 1), x->rank, x->shape);
    for (int a = 0; a < x->rank; a++)
        list[a] = listed(c, index[a], v->rank, v->shape);
    clamped(c, x, index, at);
    Node *all = listed(c, v, v->rank, v->shape);
    Node *others = ingot_mul(c, running_products(c, x, all, list, false),
                             running_products(c, ones, all, list, true));
    others = ingot_reshape(c, others, v->rank, v->shape);
    return masked(c, is_inside(c, x, index), ingot_mul(c, ingot_gather(c, g, at), others));
}

bool gradient_again(Backward *b, const Node *made, Node *g)
{
    const Multiplied *m = map_get(&b->c->rederived, (uint64_t)made->id + 1);
    if (!m)
        return false;
    Context *c = b->c;
    Node *of[3] = {m->n->src[0], m->n->src[1], m->g}, *leaf[3], *out[3] = {0};
    Targets targets = targets_new(b, 3);
    for (int i = 0; i < 3; i++) {
        leaf[i] = ingot_stop(c, of[i]); /* one that nothing else is made of */
        if (leaf[i] != of[i] && has_gradient(b, of[i]))
            targets_add(&targets, leaf[i], PATH_FLOAT);
    }
    Node *form = multiplied_in_turn(c, m->n, leaf[0], leaf[1], leaf[2]);
    if (!gradient_inside(b, 1, &form, &g, &targets, out)) {
        b->failed = true;
        return true;
    }
    for (int i = 0, k = 0; i < 3; i++)
        if (k < targets.n && targets.node[k] == leaf[i] && has_gradient(b, of[i])) {
            if (out[k])
                gradient_give(b, of[i], out[k]);
            k++;
        }
    return true;
}

/* y = x times all v at its place: g times the product of the others.  Of v, factors that are zero
 * are counted, and left out of the product: with one of them only its own gradient is not zero,
 * with two none is.  What that does not say is how the gradient changes where a factor is zero: for
 * its own gradient it stands for multiplied_in_turn(). */
static Node *multiplied_gradient(Context *c, Node *n, Node *g, int i, Node *const *at)
{
    Node *x = n->src[0], *v = n->src[1], *const *index = n->src + 2;
    Node *zero = ingot_like(c, x, 0), *one = ingot_like(c, x, 1);
    if (i == 0) {
        Node *ones = uniform_make(c, one, x->rank, x->shape);
        return ingot_mul(c, g, ingot_update(c, INGOT_MUL, ones, v, index));
    }
    Node *xz = ingot_eq(c, x, zero), *vz = ingot_eq(c, v, zero);
    Node *product =
        ingot_update(c, INGOT_MUL, ingot_where(c, xz, one, x), ingot_where(c, vz, one, v), index);
    Node *zeros = ingot_update(c, INGOT_ADD, ingot_cast(c, xz, INGOT_I32),
                               ingot_cast(c, vz, INGOT_I32), index);
    Node *others = ingot_div(c, ingot_gather(c, product, at), ingot_where(c, vz, one, v));
    Node *some = ingot_eq(c, ingot_gather(c, zeros, at), ingot_cast(c, vz, INGOT_I32));
    Node *made = ingot_where(c, some, ingot_mul(c, ingot_gather(c, g, at), others), zero);
    made = masked(c, is_inside(c, x, index), made);
    Multiplied *m = NEW(c->arena, Multiplied);
    *m = (Multiplied){n, g};
    map_put(&c->rederived, (uint64_t)made->id + 1, m);
    return made;
}

/* y is the extreme of x and all v at its place: all that equal it share g. */
static Node *extreme_gradient(Context *c, Node *n, Node *g, int i, Node *const *at)
{
    Node *x = n->src[0], *v = n->src[1], *const *index = n->src + 2;
    Node *inside = is_inside(c, x, index), *zero = ingot_like(c, g, 0);
    Node *of_x = ingot_eq(c, x, n), *of_v = ingot_eq(c, v, ingot_gather(c, n, at));
    of_v = inside ? ingot_and(c, of_v, inside) : of_v;
    ingot_dtype d = (ingot_dtype)x->dtype;
    Node *count = ingot_update(c, INGOT_ADD, ingot_cast(c, of_x, d), ingot_cast(c, of_v, d), index);
    Node *share = ingot_div(c, g, count);
    return i ? ingot_where(c, of_v, ingot_gather(c, share, at), zero)
             : ingot_where(c, of_x, share, zero);
}

Node *gradient_update(Backward *b, Node *n, Node *g, int i)
{
    Context *c = b->c;
    Node *at[INGOT_MAX_RANK];
    clamped(c, n->src[0], n->src + 2, at);
    switch ((ingot_update_op)n->arg.i) {
    case INGOT_SET: return set_gradient(c, n, g, i, at);
    case INGOT_ADD:
        return i ? masked(c, is_inside(c, n->src[0], n->src + 2), ingot_gather(c, g, at)) : g;
    case INGOT_MUL: return multiplied_gradient(c, n, g, i, at);
    default: return extreme_gradient(c, n, g, i, at);
    }
}
