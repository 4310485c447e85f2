/* ops_conv.c - convolution and its transpose, of any number of spatial axes, grouped.
 *
 *     x [N, C, d...] -> pad -> windows [N, G, 1, C/G, o..., k...]
 *     w [M, C/G, k...]      ->         [1, G, M/G, C/G, 1..., k...]
 *     y = sum over (C/G, k...) of the product -> [N, M, o...]
 *
 * The transpose (ONNX ConvTranspose) adds x[i] * w[k] to y[i * stride + k * dilation - pad]. All outputs
 * at a distance of a multiple of the stride, a phase, take the same weights:
 *
 *     y[stride * q + e] = sum over j of x[q + shift - step * j] * w[first + every * j]
 *
 * That is a convolution of stride 1 with some of the weights, turned around. Neighbouring phases whose
 * weights are as many and neighbours too are the channels of one; the results are laid side by side
 * along an axis of their own behind q. No term is a zero that somebody put there. */
#include "ops.h"

enum { MAX_SPATIAL = (INGOT_MAX_RANK - 4) / 2 };

/* Zeros around the spatial axes; negative amounts crop. */
static ingot_tensor *pad_spatial(ingot_context *c, ingot_tensor *x, const int64_t *lo,
                                 const int64_t *hi)
{
    int64_t l[INGOT_MAX_RANK] = {0}, h[INGOT_MAX_RANK] = {0};
    for (int i = 2; i < ingot_rank(x); i++) {
        l[i] = lo ? lo[i - 2] : 0;
        h[i] = hi ? hi[i - 2] : 0;
    }
    return ingot_pad_c(c, x, l, h, 0);
}

/* Are the channels of x and of both sides of w constants? */
static bool channels_known(ingot_tensor *x, ingot_tensor *w)
{
    return ingot_dim_is_const(ingot_shape(x, 1), NULL) &&
           ingot_dim_is_const(ingot_shape(w, 0), NULL) &&
           ingot_dim_is_const(ingot_shape(w, 1), NULL);
}

static bool conv_check(ingot_context *c, const char *what, ingot_tensor *x, ingot_tensor *w,
                       int64_t group)
{
    int rank = ingot_rank(x);
    if (rank < 3 || ingot_rank(w) != rank || rank - 2 > MAX_SPATIAL) {
        ingot_error(c, INGOT_INVALID,
                    "%s: x has rank %d and w rank %d; both must have rank 2 + spatial axes", what,
                    rank, ingot_rank(w));
        return false;
    }
    for (int i = 2; i < rank; i++)
        if (!ingot_dim_is_const(ingot_shape(w, i), NULL)) {
            ingot_error(c, INGOT_UNSUPPORTED,
                        "%s: the sizes of its kernel are not known when compiling", what);
            return false;
        }
    if (group < 1 || group > INT32_MAX) {
        ingot_error(c, INGOT_INVALID, "%s: group %lld; it must be from 1 to %d", what,
                    (long long)group, INT32_MAX);
        return false;
    }
    if (ingot_dtype_of(x) != ingot_dtype_of(w)) {
        ingot_error(c, INGOT_INVALID, "%s: x is %s, w is %s; cast one", what,
                    ingot_dtype_name(ingot_dtype_of(x)), ingot_dtype_name(ingot_dtype_of(w)));
        return false;
    }
    return true;
}

ingot_tensor *ingot_conv(ingot_context *c, ingot_tensor *x, ingot_tensor *w, ingot_tensor *b,
                         const int64_t *strides, const int64_t *dilations, const int64_t *pads_lo,
                         const int64_t *pads_hi, int64_t group)
{
    if (ingot_is_poison(x) || ingot_is_poison(w) || (b && ingot_is_poison(b)) ||
        !conv_check(c, "conv", x, w, group))
        return ingot_poison(c);
    int spatial = ingot_rank(x) - 2;
    ingot_dtype d = ingot_dtype_of(x);
    ingot_dim *per_group = ingot_shape(w, 1), *maps = ingot_shape(w, 0),
              *groups = ingot_dim_const(c, group);
    if (channels_known(x, w)) {
        int64_t channels = ingot_dim_lo(ingot_shape(x, 1)), per = ingot_dim_lo(per_group),
                m = ingot_dim_lo(maps);
        if (per * group != channels || m % group)
            return ingot_error(
                c, INGOT_INVALID,
                "conv: x has %lld channels, w has %lld maps of %lld channels, group is %lld; "
                "channels must be w's times group, and maps a multiple of group",
                (long long)channels, (long long)m, (long long)per, (long long)group);
    } else {
        if (group > 1 && !ingot_dim_is_const(maps, NULL))
            return ingot_error(c, INGOT_UNSUPPORTED,
                               "conv: the maps of its %lld groups are not known when compiling",
                               (long long)group);
        x = ingot_require_size(c, x, 1, ingot_dim_mul(c, per_group, groups),
                               "the number of its channels");
        if (ingot_is_poison(x))
            return x;
    }
    x = pad_spatial(c, ops_widen(c, x), pads_lo, pads_hi);
    for (int i = 0; i < spatial; i++)
        x = ingot_window(c, x, 2 + i, ingot_dim_lo(ingot_shape(w, 2 + i)), strides ? strides[i] : 1,
                         dilations ? dilations[i] : 1);
    if (ingot_is_poison(x))
        return x;

    ingot_dim *xd[INGOT_MAX_RANK], *wd[INGOT_MAX_RANK], *yd[INGOT_MAX_RANK];
    ingot_dim *one = ingot_dim_const(c, 1);
    int rank = 4 + 2 * spatial;
    xd[0] = yd[0] = ingot_shape(x, 0);
    wd[0] = xd[2] = one;
    xd[1] = wd[1] = groups;
    wd[2] = ingot_dim_div(c, maps, groups);
    xd[3] = wd[3] = per_group;
    yd[1] = maps;
    unsigned axes = 1u << 3;
    for (int i = 0; i < spatial; i++) {
        yd[2 + i] = xd[4 + i] = ingot_shape(x, 2 + i);
        wd[4 + i] = one;
        xd[4 + spatial + i] = wd[4 + spatial + i] = ingot_shape(w, 2 + i);
        axes |= 1u << (4 + spatial + i);
    }
    ingot_tensor *product =
        ingot_mul(c, ingot_reshape(c, x, rank, xd), ingot_reshape(c, ops_widen(c, w), rank, wd));
    ingot_tensor *y = ingot_reshape(c, ingot_sum(c, product, axes, false), 2 + spatial, yd);
    if (b)
        y = ingot_add(c, y, ops_channel(c, ops_widen(c, b), 2 + spatial));
    return ingot_cast(c, y, d);
}

/* ---- transposed --------------------------------------------------------------------------------- */

/* Neighbouring phases e .. e + n - 1 of an axis; phase e + t has the weights first + t + every * j. */
typedef struct {
    int64_t n, first, taps, shift;
} Run;
typedef struct {
    int64_t kernel, stride, dilation;
    int64_t every, step; /* from one weight of a phase to the next, and from one element of x */
    int64_t more;        /* q has the size of x and this */
    int64_t cut;         /* elements after the last wanted one */
    Run *run;
    int nrun;
} Axis;
typedef struct {
    ingot_tensor *x, *w; /* w [G, M/G, C/G, k...] */
    int64_t group, maps; /* of a group */
    Axis axis[MAX_SPATIAL];
    int n;
    const Run *at[MAX_SPATIAL]; /* of each axis, while the parts are built */
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
static void find_runs(ingot_context *c, Axis *a, int64_t pad_lo, int64_t pad_hi)
{
    int64_t s = a->stride, d = a->dilation, common = gcd(s, d);
    int64_t after =
        d * (a->kernel - 1) + 1 - pad_lo - pad_hi; /* y has (size of x - 1) * s + after elements */
    a->every = s / common;
    a->step = d / common;
    a->more = -floor_div(-after, s) - 1;
    a->cut = (a->more + 1) * s - after;
    a->run = ingot_alloc(c, (size_t)s * sizeof *a->run);
    a->nrun = 0;
    for (int64_t e = 0; e < s; e++) {
        Run r = {.n = 1};
        while (r.first < a->every && (e + pad_lo - r.first * d) % s)
            r.first++;
        if (r.first < a->every && r.first < a->kernel) {
            r.taps = (a->kernel - r.first + a->every - 1) / a->every;
            r.shift = (e + pad_lo - r.first * d) / s;
        }
        Run *before = a->nrun ? &a->run[a->nrun - 1] : NULL;
        if (before && before->taps == r.taps &&
            (!r.taps || (before->shift == r.shift && before->first + before->n == r.first)))
            before->n++;
        else
            a->run[a->nrun++] = r;
    }
}

/* [.., d, ..] -> [.., (d - 1) * stride + 1, ..] with zeros between; d is known. */
static ingot_tensor *stuff_zeros(ingot_context *c, ingot_tensor *x, int axis, int64_t stride)
{
    int64_t hi[INGOT_MAX_RANK] = {0}, lo[INGOT_MAX_RANK] = {0};
    ingot_dim *dims[INGOT_MAX_RANK];
    if (stride == 1 || ingot_is_poison(x))
        return x;
    int rank = ops_dims(x, dims);
    hi[axis + 1] = stride - 1;
    x = ingot_pad_c(c, ingot_unsqueeze(c, x, axis + 1), lo, hi, 0);
    dims[axis] = ingot_dim_mul(c, dims[axis], ingot_dim_const(c, stride));
    x = ingot_reshape(c, x, rank, dims);
    hi[axis + 1] = 0;
    hi[axis] = 1 - stride;
    return ingot_pad_c(c, x, lo, hi, 0);
}

/* The weights of the runs that the parts stand at: [G, M/G, C/G, k...] -> [G * phases... * M/G, C/G, taps...], turned around. */
static ingot_tensor *run_weights(ingot_context *c, const Transposed *t)
{
    ingot_tensor *w = t->w;
    int perm[INGOT_MAX_RANK], nperm = 0;
    for (int i = 0; i < t->n; i++) {
        const Axis *a = &t->axis[i];
        const Run *r = t->at[i];
        ingot_dim *dims[INGOT_MAX_RANK];
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
static ingot_tensor *run_part(ingot_context *c, const Transposed *t)
{
    int64_t lo[MAX_SPATIAL], hi[MAX_SPATIAL], step[MAX_SPATIAL];
    ingot_dim *dims[INGOT_MAX_RANK];
    int perm[INGOT_MAX_RANK], rank = 3 + 2 * t->n;
    bool empty = false;
    dims[0] = ingot_shape(t->x, 0);
    dims[1] = ingot_dim_const(c, t->group);
    dims[2 + t->n] = ingot_dim_const(c, t->maps);
    perm[0] = 0;
    perm[1] = 1;
    perm[2] = 2 + t->n;
    for (int i = 0; i < t->n; i++) {
        const Axis *a = &t->axis[i];
        const Run *r = t->at[i];
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
    ingot_tensor *y;
    if (empty)
        y = ingot_expand(c, ingot_scalar_f(c, ingot_dtype_of(t->x), 0), rank, dims);
    else
        y = ingot_reshape(
            c, ingot_conv(c, t->x, run_weights(c, t), NULL, NULL, step, lo, hi, t->group), rank,
            dims);
    return ingot_permute(c, y, perm);
}

/* All phases of the axes from i on, side by side. */
static ingot_tensor *phases(ingot_context *c, Transposed *t, int i)
{
    if (i == t->n)
        return run_part(c, t);
    const Axis *a = &t->axis[i];
    ingot_tensor **part = ingot_alloc(c, (size_t)a->nrun * sizeof(ingot_tensor *));
    for (int k = 0; k < a->nrun; k++) {
        t->at[i] = &a->run[k];
        part[k] = phases(c, t, i + 1);
    }
    return ingot_concat(c, a->nrun, part, 4 + 2 * i);
}

/* Each part is a kernel. Where there would be many, of large strides with dilations, dilated weights are better. */
enum { MAX_PARTS = 27 };

ingot_tensor *ingot_conv_transpose(ingot_context *c, ingot_tensor *x, ingot_tensor *w,
                                   ingot_tensor *b, const int64_t *strides,
                                   const int64_t *dilations, const int64_t *pads_lo,
                                   const int64_t *pads_hi, const int64_t *out_pads, int64_t group)
{
    if (ingot_is_poison(x) || ingot_is_poison(w) || (b && ingot_is_poison(b)) ||
        !conv_check(c, "conv_transpose", x, w, group))
        return ingot_poison(c);
    if (!channels_known(x, w))
        return ingot_error(c, INGOT_UNSUPPORTED,
                           "conv_transpose: its channels are not known when compiling");
    int spatial = ingot_rank(x) - 2, perm[INGOT_MAX_RANK];
    int64_t channels = ingot_dim_lo(ingot_shape(x, 1)), maps = ingot_dim_lo(ingot_shape(w, 1));
    if (ingot_dim_lo(ingot_shape(w, 0)) != channels || channels % group)
        return ingot_error(
            c, INGOT_INVALID,
            "conv_transpose: x has %lld channels, w takes %lld, group is %lld; channels "
            "must be equal and a multiple of group",
            (long long)channels, (long long)ingot_dim_lo(ingot_shape(w, 0)), (long long)group);
    ingot_dtype d = ingot_dtype_of(x);
    Transposed t = {
        .x = ops_widen(c, x), .w = ops_widen(c, w), .group = group, .maps = maps, .n = spatial};
    int64_t parts = 1;
    bool dilated = false;
    for (int i = 0; i < spatial; i++) {
        t.axis[i] = (Axis){.kernel = ingot_dim_lo(ingot_shape(w, 2 + i)),
                           .stride = strides ? strides[i] : 1,
                           .dilation = dilations ? dilations[i] : 1};
        find_runs(c, &t.axis[i], pads_lo ? pads_lo[i] : 0,
                  (pads_hi ? pads_hi[i] : 0) - (out_pads ? out_pads[i] : 0));
        parts *= t.axis[i].nrun;
        dilated |= t.axis[i].dilation > 1;
    }
    if (parts > MAX_PARTS && dilated) {
        for (int i = 0; i < spatial; i++)
            t.w = stuff_zeros(c, t.w, 2 + i, t.axis[i].dilation);
        return ingot_conv_transpose(c, x, ingot_cast(c, t.w, d), b, strides, NULL, pads_lo, pads_hi,
                                    out_pads, group);
    }
    /* w [C, M/G, k] -> [G, C/G, M/G, k] -> [G, M/G, C/G, k] */
    ingot_dim *dims[INGOT_MAX_RANK], *out[INGOT_MAX_RANK];
    dims[0] = ingot_dim_const(c, group);
    dims[1] = ingot_dim_const(c, channels / group);
    dims[2] = ingot_dim_const(c, maps);
    for (int i = 0; i < spatial; i++)
        dims[3 + i] = ingot_shape(w, 2 + i);
    for (int i = 0; i < 3 + spatial; i++)
        perm[i] = i == 1 ? 2 : i == 2 ? 1 : i;
    t.w = ingot_permute(c, ingot_reshape(c, t.w, 3 + spatial, dims), perm);
    ingot_tensor *y = phases(c, &t, 0);
    /* [N, G, M/G, q, stride, ...] -> [N, M, q * stride, ...] */
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    out[0] = ingot_shape(x, 0);
    out[1] = ingot_dim_const(c, group * maps);
    for (int i = 0; i < spatial; i++) {
        const Axis *a = &t.axis[i];
        out[2 + i] =
            ingot_dim_mul(c, ingot_dim_add(c, ingot_shape(x, 2 + i), ingot_dim_const(c, a->more)),
                          ingot_dim_const(c, a->stride));
        hi[2 + i] = -a->cut;
    }
    y = ingot_pad_c(c, ingot_reshape(c, y, 2 + spatial, out), lo, hi, 0);
    if (b)
        y = ingot_add(c, y, ops_channel(c, ops_widen(c, b), 2 + spatial));
    return ingot_cast(c, y, d);
}
