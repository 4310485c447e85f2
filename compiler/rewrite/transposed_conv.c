/* transposed_conv.c - a transposed convolution without the zeros between the elements of x.
 *
 * What is asked for is a convolution of stride 1 whose operand has zeros between its elements
 * (ops_conv.c).  All outputs at a distance of a multiple of the stride, a phase, meet the same
 * weights, and the others meet zeros:
 *
 *     y[stride * q + e] = sum over j of x[q + shift - step * j] * w[first + every * j]
 *
 * That is a convolution of stride 1 with some of the weights, turned around. Neighbouring phases
 * whose weights are as many and neighbours too are the channels of one; the results are laid side
 * by side along an axis of their own behind q. */
#include "ops.h"
#include "rewrite.h"

enum { MAX_SPATIAL = (INGOT_MAX_RANK - 4) / 2 };

/* Neighbouring phases e .. e + n - 1 of an axis; phase e + t has the weights first + t + every *
 * j. */
typedef struct {
    int64_t n, first, taps, shift;
} PhaseRun;
typedef struct {
    int64_t kernel, stride, dilation, pad_lo, pad_hi;
    int64_t every, step; /* from one weight of a phase to the next, and from one element of x */
    int64_t more;        /* q has the size of x and this */
    int64_t cut;         /* elements after the last wanted one */
    PhaseRun *run;
    int nrun;
} Spatial;
typedef struct {
    Node *x, *w;         /* w [G, M/G, C/G, k...] */
    int64_t group, maps; /* of a group */
    Spatial axis[MAX_SPATIAL];
    int n;
    const PhaseRun *at[MAX_SPATIAL]; /* of each axis, while the parts are built */
} Transposed;

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* The phases of an axis in runs. */
static void find_runs(Context *c, Spatial *a)
{
    int64_t pad_lo = a->pad_lo, s = a->stride, d = a->dilation, common = gcd(s, d);
    int64_t after = d * (a->kernel - 1) + 1 - pad_lo -
                    a->pad_hi; /* y has (size of x - 1) * s + after elements */
    a->every = s / common;
    a->step = d / common;
    a->more = -floor_div(-after, s) - 1;
    a->cut = (a->more + 1) * s - after;
    a->run = NEWN(c->arena, PhaseRun, s);
    a->nrun = 0;
    for (int64_t e = 0; e < s; e++) {
        PhaseRun r = {.n = 1};
        while (r.first < a->every && (e + pad_lo - r.first * d) % s)
            r.first++;
        if (r.first < a->every && r.first < a->kernel) {
            r.taps = ceil_div(a->kernel - r.first, a->every);
            r.shift = (e + pad_lo - r.first * d) / s;
        }
        PhaseRun *before = a->nrun ? &a->run[a->nrun - 1] : NULL;
        if (before && before->taps == r.taps &&
            (!r.taps || (before->shift == r.shift && before->first + before->n == r.first)))
            before->n++;
        else
            a->run[a->nrun++] = r;
    }
}

/* The weights of the runs that the parts stand at: [G, M/G, C/G, k...] -> [G * phases... * M/G,
 * C/G, taps...], turned around. */
static Node *run_weights(Context *c, const Transposed *t)
{
    Node *w = t->w;
    int perm[INGOT_MAX_RANK], nperm = 0;
    for (int i = 0; i < t->n; i++) {
        const Spatial *a = &t->axis[i];
        const PhaseRun *r = t->at[i];
        Node *dims[INGOT_MAX_RANK];
        int at = 3 + 2 * i, rank = ops_dims(w, dims);
        int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
        /* k -> taps, every -> taps, n */
        lo[at] = -r->first;
        hi[at] = r->first + r->taps * a->every - a->kernel;
        w = ingot_pad_c(c, w, lo, hi, 0);
        for (int k = rank; k > at; k--)
            dims[k] = dims[k - 1];
        dims[at] = ingot_dim_const(c, r->taps);
        dims[at + 1] = ingot_dim_const(c, a->every);
        lo[at] = hi[at] = 0;
        hi[at + 1] = r->n - a->every;
        w = ingot_flip(c, ingot_pad_c(c, ingot_reshape(c, w, rank + 1, dims), lo, hi, 0), 1u << at);
    }
    perm[nperm++] = 0;
    for (int i = 0; i < t->n; i++)
        perm[nperm++] = 4 + 2 * i;
    perm[nperm++] = 1;
    perm[nperm++] = 2;
    for (int i = 0; i < t->n; i++)
        perm[nperm++] = 3 + 2 * i;
    return ingot_flatten(c, ingot_permute(c, w, perm), 0, 2 + t->n);
}

/* The part of y that the runs of each axis give: [N, G, M/G, q, phases, ...]. */
static Node *run_part(Context *c, const Transposed *t)
{
    int64_t lo[MAX_SPATIAL], hi[MAX_SPATIAL], step[MAX_SPATIAL];
    Node *dims[INGOT_MAX_RANK];
    int perm[INGOT_MAX_RANK], rank = 3 + 2 * t->n;
    bool empty = false;
    dims[0] = ingot_shape(t->x, 0);
    dims[1] = ingot_dim_const(c, t->group);
    dims[2 + t->n] = ingot_dim_const(c, t->maps);
    perm[0] = 0;
    perm[1] = 1;
    perm[2] = 2 + t->n;
    for (int i = 0; i < t->n; i++) {
        const Spatial *a = &t->axis[i];
        const PhaseRun *r = t->at[i];
        empty |= !r->taps;
        step[i] = a->step;
        lo[i] = a->step * (r->taps - 1) - r->shift;
        hi[i] = a->more + r->shift;
        dims[2 + i] = ingot_dim_const(c, r->n);
        dims[3 + t->n + i] =
            ingot_dim_add(c, ingot_shape(t->x, 2 + i), ingot_dim_const(c, a->more));
        perm[3 + 2 * i] = 3 + t->n + i;
        perm[4 + 2 * i] = 2 + i;
    }
    Node *y;
    if (empty)
        y = ingot_expand(c, ingot_scalar_f(c, ingot_dtype_of(t->x), 0), rank, dims);
    else
        y = ingot_reshape(
            c, ingot_conv(c, t->x, run_weights(c, t), NULL, NULL, step, lo, hi, t->group), rank,
            dims);
    return ingot_permute(c, y, perm);
}

/* All phases of the axes from i on, side by side. */
static Node *all_phases(Context *c, Transposed *t, int i)
{
    if (i == t->n)
        return run_part(c, t);
    const Spatial *a = &t->axis[i];
    Node **part = NEWN(c->arena, Node *, a->nrun);
    for (int k = 0; k < a->nrun; k++) {
        t->at[i] = &a->run[k];
        part[k] = all_phases(c, t, i + 1);
    }
    return ingot_concat(c, a->nrun, part, 4 + 2 * i);
}

/* ---- the rule -------------------------------------------------------------------------------- */

/* Zeros behind the elements of some spatial axes, each of which has one of its own behind it. */
static bool puts_zeros(Node *pad, int spatial, int64_t *stride)
{
    bool some = false;
    if (pad->op != OP_PAD || pad->rank != 2 + 2 * spatial || pad->src[0]->op != OP_RESHAPE)
        return false;
    for (int i = 0; i < pad->rank; i++) {
        int64_t n;
        bool behind = i > 2 && i % 2;
        if (!idx_is(pad->src[1 + 2 * i], 0) || !idx_value(pad->src[2 + 2 * i], &n) ||
            (n && !behind) || (behind && !idx_is(pad->src[0]->shape[i], 1)))
            return false;
        if (behind)
            stride[(i - 3) / 2] = n + 1;
        some |= n > 0;
    }
    return some;
}

/* What is added at both ends of the spatial axes; less than nothing is cut. */
static bool add_ends(Context *c, Node *n, int spatial, int64_t *lo, int64_t *hi)
{
    for (int i = 0; i < spatial; i++) {
        Node *before = n->src[5 + 2 * i], *behind = n->src[6 + 2 * i];
        int64_t l, h;
        if (n->op == OP_SHRINK)
            behind = idx_sub(c, idx_sub(c, n->src[0]->shape[2 + i], before), behind);
        if (!idx_value(before, &l) || !idx_value(behind, &h))
            return false;
        lo[i] += n->op == OP_PAD ? l : -l;
        hi[i] += n->op == OP_PAD ? h : -h;
    }
    return true;
}

/* A sum of products of windows of x, with zeros between, and of weights: what is found must give
 * the same node. */
static bool find_transposed(Context *c, Node *n, int side, Transposed *t)
{
    Node *product = n->src[0], *f = product->src[side], *w, *padded = NULL, *dims[INGOT_MAX_RANK];
    int64_t stride[MAX_SPATIAL], dilation[MAX_SPATIAL], lo[MAX_SPATIAL] = {0},
                                                        hi[MAX_SPATIAL] = {0}, apart;
    int spatial = t->n = (product->rank - 4) / 2;
    for (; !puts_zeros(f, spatial, stride); f = f->src[0]) {
        if (!is_move(f))
            return false;
        if (f->rank != 2 + spatial)
            continue;
        padded = padded ? padded : f;
        if ((f->op == OP_PAD || f->op == OP_SHRINK) && !add_ends(c, f, spatial, lo, hi))
            return false;
    }
    if (!padded || !idx_value(product->shape[1], &t->group) ||
        !idx_value(product->shape[2], &t->maps))
        return false;
    for (int i = 0; i < 2; i++)
        dims[i] = f->shape[i];
    for (int i = 0; i < spatial; i++) {
        Spatial *a = &t->axis[i];
        Node *out = product->shape[4 + i];
        dims[2 + i] = f->src[0]->shape[2 + 2 * i];
        if (!idx_value(product->shape[4 + spatial + i], &a->kernel) ||
            !idx_value(idx_sub(c, padded->shape[2 + i], out), &apart))
            return false;
        a->stride = stride[i];
        a->dilation = dilation[i] = a->kernel > 1 ? apart / (a->kernel - 1) : 1;
        a->pad_lo = a->dilation * (a->kernel - 1) - lo[i];
        a->pad_hi = a->dilation * (a->kernel - 1) - hi[i] + 1 - a->stride;
        if (a->dilation < 1)
            return false;
    }
    t->x = ingot_reshape(c, f->src[0], 2 + spatial, dims);
    dims[0] = idx(c, t->group * t->maps);
    dims[1] = product->shape[3];
    for (int i = 0; i < spatial; i++)
        dims[2 + i] = product->shape[4 + spatial + i];
    w = compact_of(product->src[1 - side]);
    for (int i = 0; i < product->rank; i++) /* all of the weights' axes and no other */
        if (i == 0 || (i > 3 && i < 4 + spatial) ? !idx_is(w->shape[i], 1)
                                                 : w->shape[i] != product->shape[i])
            return false;
    t->w = ingot_reshape(c, w, 2 + spatial, dims);
    Node *same = ingot_conv(c, ops_zeros_between(c, t->x, stride), t->w, NULL, NULL, dilation, lo,
                            hi, t->group);
    while (same->op == OP_RESHAPE)
        same = same->src[0];
    return same == n;
}

/* Each part is a kernel. Where there would be many, of large strides with dilations, dilated
 * weights are better. */
enum { MAX_PARTS = 27, MOST_PHASES = 1024 /* of an axis: each is looked at */ };

static int64_t find_parts(Context *c, Transposed *t)
{
    int64_t parts = 1;
    for (int i = 0; i < t->n; i++) {
        find_runs(c, &t->axis[i]);
        parts *= t->axis[i].nrun;
    }
    return parts;
}

static void dilate_weights(Context *c, Transposed *t)
{
    int64_t dilation[MAX_SPATIAL], lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    for (int i = 0; i < t->n; i++) {
        Spatial *a = &t->axis[i];
        dilation[i] = a->dilation;
        hi[2 + i] = 1 - a->dilation;
        a->kernel = a->dilation * (a->kernel - 1) + 1;
        a->dilation = 1;
    }
    t->w = ingot_pad_c(c, ops_zeros_between(c, t->w, dilation), lo, hi, 0);
}

/* w [M, C/G, k...], turned around -> [G, M/G, C/G, k...] */
static void part_weights(Context *c, Transposed *t)
{
    Node *dims[INGOT_MAX_RANK];
    dims[0] = idx(c, t->group);
    dims[1] = idx(c, t->maps);
    for (int i = 1; i < t->w->rank; i++)
        dims[1 + i] = t->w->shape[i];
    t->w = ingot_reshape(c, ingot_flip(c, t->w, ((1u << t->n) - 1) << 2), t->w->rank + 1, dims);
}

Node *phases(Rewrite *r, Node *n)
{
    Context *c = r->c;
    Transposed t = {0};
    Node *product = n->src[0];
    if (!r->settled) /* a scale behind it goes into weights that are one tensor yet */
        return NULL;
    if (!is_sum_of_products(n) || product->rank < 6 || product->rank % 2 ||
        (!find_transposed(c, n, 0, &t) && !find_transposed(c, n, 1, &t)))
        return NULL;
    for (int i = 0; i < t.n; i++)
        if (t.axis[i].stride > MOST_PHASES)
            return NULL;
    if (find_parts(c, &t) > MAX_PARTS) {
        dilate_weights(c, &t);
        (void)find_parts(c, &t);
    }
    part_weights(c, &t);
    Node *y = all_phases(c, &t, 0), *out[INGOT_MAX_RANK];
    /* [N, G, M/G, q, stride, ...] -> [N, M, q * stride, ...] */
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    out[0] = t.x->shape[0];
    out[1] = idx(c, t.group * t.maps);
    for (int i = 0; i < t.n; i++) {
        const Spatial *a = &t.axis[i];
        out[2 + i] = idx_mul(c, idx_add(c, t.x->shape[2 + i], idx(c, a->more)), idx(c, a->stride));
        hi[2 + i] = -a->cut;
    }
    y = ingot_pad_c(c, ingot_reshape(c, y, 2 + t.n, out), lo, hi, 0);
    return ingot_is_poison(y) ? NULL : ingot_reshape(c, y, n->rank, n->shape);
}
