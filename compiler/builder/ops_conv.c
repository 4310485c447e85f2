/* ops_conv.c - convolution and its transpose, of any number of spatial axes, grouped.
 *
 *     x [N, C, d...] -> pad -> windows [N, G, 1, C/G, o..., k...]
 *     w [M, C/G, k...]      ->         [1, G, M/G, C/G, 1..., k...]
 *     y = sum over (C/G, k...) of the product -> [N, M, o...]
 *
 * The transpose (ONNX ConvTranspose) adds x[i] * w[k] to y[i * stride + k * dilation - pad]: a
 * convolution of x with stride - 1 zeros between its elements, with the weights turned around. That
 * says what it is; how it is computed, without the zeros, is for rewrite/phases.c. */
#include <string.h>

#include "eval.h"
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

/* Is x at the tap for one of the results, the first of which finds it at `at`? */
static bool tap_used(int64_t size, int64_t results, int64_t at, int64_t stride)
{
    const int64_t first = at < 0 ? (-at + stride - 1) / stride : 0;
    return first < results && at + first * stride < size;
}

/* A tap that lies beside x for each result adds nothing (a dilated window that is wider than the
 * image): the first and the last ones that do not go out of the weights, and what is around x is as
 * much smaller. */
static ingot_tensor *without_unused_taps(ingot_context *c, ingot_tensor *x, ingot_tensor *w,
                                         const int64_t *strides, const int64_t *dilations,
                                         int64_t *lo, int64_t *hi)
{
    for (int i = 0; i < ingot_rank(x) - 2; i++) {
        ingot_dim *dim = ingot_shape(x, 2 + i);
        const int64_t taps = ingot_dim_lo(ingot_shape(w, 2 + i)), size = ingot_dim_lo(dim),
                      stride = strides ? strides[i] : 1, apart = dilations ? dilations[i] : 1,
                      room = size + lo[i] + hi[i] - apart * (taps - 1) - 1;
        if (!ingot_dim_is_const(dim, NULL) || room < 0 || stride < 1 || apart < 1)
            continue;
        int64_t first = 0, last = taps - 1;
        while (first < taps && !tap_used(size, room / stride + 1, first * apart - lo[i], stride))
            first++;
        if (first == taps) /* no result has any of x: nothing of it would be left to crop */
            continue;
        while (last > first && !tap_used(size, room / stride + 1, last * apart - lo[i], stride))
            last--;
        if (last - first == taps - 1)
            continue;
        lo[i] -= first * apart;
        hi[i] -= (taps - 1 - last) * apart;
        w = ingot_slice(c, w, 2 + i, ingot_dim_const(c, first),
                        ingot_dim_const(c, last - first + 1), 1);
    }
    return w;
}

/* Images have too few channels for the terms of a unit. Those of all taps along a row lie side by
 * side, if the channels are innermost, and have zeros behind them until they are pairs. Of three
 * channels and 7 taps in steps of two, 28 terms, and a step is 8 elements:
 *
 *     x [N, 3, h, w]   ->  [N, h, w * 4]
 *     w [M, 3, 7, 7]   ->  [M, 7, 7 * 4]
 *
 * NULL: no precision asks for it, or there are channels enough. */
static ingot_tensor *sum_along_rows(ingot_context *c, ingot_tensor *x, ingot_tensor *w,
                                    const int64_t *strides, const int64_t *dilations,
                                    const int64_t *lo, const int64_t *hi)
{
    enum { FEW = 16, LEAST_TERMS = 8, LEAST_MAPS = 16 };
    const int rank = ingot_rank(x), last = rank - 1, spatial = rank - 2;
    if (!channels_known(x, w) || !ops_takes_parts(c, x) ||
        (dilations && dilations[spatial - 1] != 1))
        return NULL;
    const int64_t channels = ingot_dim_lo(ingot_shape(w, 1)),
                  maps = ingot_dim_lo(ingot_shape(w, 0)), taps = ingot_dim_lo(ingot_shape(w, last));
    int64_t room = channels, zeros[INGOT_MAX_RANK] = {0}, behind[INGOT_MAX_RANK] = {0};
    while (room * taps % 2 || room == 3)
        room++;
    if (channels >= FEW || taps * room < LEAST_TERMS || maps < LEAST_MAPS)
        return NULL;
    behind[1] = room - channels;
    int perm[INGOT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i == 0 ? 0 : i == last ? 1 : i + 1;
    ingot_tensor *row[] = {ingot_pad_c(c, x, zeros, behind, 0),
                           ingot_pad_c(c, w, zeros, behind, 0)};
    for (int k = 0; k < 2; k++) {
        row[k] = ingot_flatten(c, ingot_permute(c, row[k], perm), rank - 2, rank);
        if (ingot_is_poison(row[k]))
            return row[k];
    }
    behind[1] = 0;
    for (int i = 0; i < spatial; i++) {
        const int64_t side = i == spatial - 1 ? room : 1;
        zeros[1 + i] = side * lo[i];
        behind[1 + i] = side * hi[i];
    }
    Products p = ops_parts(c, row[0], row[1]);
    for (int k = 0; k < p.n; k++) {
        p.x[k] = ingot_pad_c(c, p.x[k], zeros, behind, 0);
        for (int i = 0; i < spatial; i++) {
            const int64_t side = i == spatial - 1 ? room : 1, step = strides ? strides[i] : 1;
            p.x[k] = ingot_window(c, p.x[k], 1 + i, ingot_dim_lo(ingot_shape(row[1], 1 + i)),
                                  step * side, dilations ? dilations[i] : 1);
        }
        if (ingot_is_poison(p.x[k]))
            return p.x[k];
    }
    x = p.x[0];
    /* x [N, o.., k..], w [M, k..] -> [N, M, o.., k..] */
    ingot_dim *xd[INGOT_MAX_RANK], *wd[INGOT_MAX_RANK], *one = ingot_dim_const(c, 1);
    unsigned axes = 0;
    xd[0] = ingot_shape(x, 0);
    wd[1] = ingot_shape(w, 0);
    wd[0] = xd[1] = one;
    for (int i = 0; i < spatial; i++) {
        xd[2 + i] = ingot_shape(x, 1 + i);
        wd[2 + i] = one;
        xd[2 + spatial + i] = wd[2 + spatial + i] = ingot_shape(row[1], 1 + i);
        axes |= 1u << (2 + spatial + i);
    }
    const int all = 2 + 2 * spatial;
    ingot_tensor *product = NULL;
    for (int k = 0; k < p.n; k++)
        product = ops_products(c, product, ingot_reshape(c, p.x[k], all, xd),
                               ingot_reshape(c, p.w[k], all, wd));
    return ingot_sum(c, product, axes, false);
}

/* What is made of a constant, as a constant. */
static ingot_tensor *now(ingot_context *c, const char *name, ingot_tensor *x)
{
    int64_t dims[INGOT_MAX_RANK], bytes = dtype_info[x->dtype].bytes;
    Interp *ip = interp_new(c);
    const void *from = interp_eval(ip, x, dims);
    for (int i = 0; i < x->rank; i++)
        bytes *= dims[i];
    void *to = from ? ingot_alloc(c, (size_t)bytes) : NULL;
    if (from)
        memcpy(to, from, (size_t)bytes);
    interp_free(ip);
    return from ? ingot_data(c, name, (ingot_dtype)x->dtype, (int)x->rank, dims, to) : x;
}

/* The same for a GPU's units, which read 16 bytes of terms at a time: narrow floats are stored once
 * more, channels innermost and with their border, so that all that a row of taps reads lies side by
 * side from a multiple of 16 bytes on.  Of three channels of f16 and 7 taps in steps of two:
 *
 *     x [N, 3, 224, 224]   ->  [N, 230, 232 * 4]      3 zeros before, then 3 and 2 more
 *     w [M, 3, 7, 7]       ->  [M, 7, 8 * 4]          a tap and a channel of zeros
 *
 * A kernel more: for as many products as take a GPU longer than that. NULL: it is no such. */
static ingot_tensor *sum_along_stored_rows(ingot_context *c, ingot_tensor *x, ingot_tensor *w,
                                           const int64_t *strides, const int64_t *dilations,
                                           const int64_t *lo, const int64_t *hi)
{
    enum { FEW = 8, LEAST_MAPS = 16, PIECE = 8 /* of 16 bytes */ };
    const bool rounded = ingot_dtype_of(x) == INGOT_F32;
    const ingot_dtype d = rounded ? ops_rounded_dtype(c) : ingot_dtype_of(x);
    if (!ingot_stored_rows(c) || !channels_known(x, w) || ingot_rank(x) != 4 ||
        (!rounded && w->op != OP_DATA) || (d != INGOT_F16 && d != INGOT_BF16) ||
        (dilations && dilations[1] != 1))
        return NULL;
    int64_t size[4], taps[4], out[2], step[2], all;
    for (int i = 0; i < 4; i++) {
        size[i] = ingot_dim_lo(ingot_shape(x, i));
        taps[i] = ingot_dim_lo(ingot_shape(w, i));
        if (!ingot_dim_is_const(ingot_shape(x, i), NULL))
            return NULL;
    }
    all = size[0] * taps[0] * taps[1] * taps[2] * taps[3];
    for (int i = 0; i < 2; i++) {
        const int64_t apart = dilations ? dilations[i] : 1;
        step[i] = strides ? strides[i] : 1;
        out[i] = (size[2 + i] + lo[i] + hi[i] - apart * (taps[2 + i] - 1) - 1) / step[i] + 1;
        if (lo[i] < 0 || hi[i] < 0 || step[i] < 1 || out[i] < 1)
            return NULL;
        all *= out[i];
    }
    int64_t room = 2;
    while (room < taps[1])
        room *= 2;
    if (taps[1] >= FEW || taps[3] < 2 || taps[0] < LEAST_MAPS || all < ingot_stored_rows(c) ||
        step[1] * room % PIECE)
        return NULL;
    int64_t more = 0, behind[4] = {0}, zeros[4] = {0};
    while ((taps[3] + more) * room % PIECE)
        more++;
    behind[1] = room - taps[1];
    behind[3] = more;
    const char *name = w->op == OP_DATA ? ((const Data *)w->arg.ptr)->name : NULL;
    w = ingot_pad_c(c, w, zeros, behind, 0);
    const int64_t row = ((out[1] - 1) * step[1] + taps[3] + more) * room;
    int64_t wide = size[3] + lo[1] + hi[1];
    while (wide * room < row || wide * room % PIECE)
        wide++;
    behind[2] = hi[0];
    behind[3] = wide - size[3] - lo[1];
    zeros[2] = lo[0];
    zeros[3] = lo[1];
    x = ingot_pad_c(c, x, zeros, behind, 0);
    static const int perm[] = {0, 2, 3, 1};
    x = ingot_contiguous(c, ingot_cast(c, ingot_flatten(c, ingot_permute(c, x, perm), 2, 4), d));
    w = ingot_cast(c, ingot_flatten(c, ingot_permute(c, w, perm), 2, 4), d);
    w = name ? now(c, name, w) : ingot_contiguous(c, w);
    x = ingot_slice(c, x, 2, ingot_dim_const(c, 0), ingot_dim_const(c, row), 1);
    x = ingot_window(c, x, 1, taps[2], step[0], dilations ? dilations[0] : 1);
    x = ingot_window(c, x, 2, (taps[3] + more) * room, step[1] * room, 1);
    if (ingot_is_poison(x))
        return x;
    /* x [N, o, o, k, k'], w [M, k, k'] -> [N, M, o, o, k, k'] */
    ingot_dim *one = ingot_dim_const(c, 1), *k = ingot_shape(w, 1), *line = ingot_shape(w, 2);
    ingot_dim *xd[] = {ingot_shape(x, 0), one, ingot_shape(x, 1), ingot_shape(x, 2), k, line},
              *wd[] = {one, ingot_shape(w, 0), one, one, k, line};
    ingot_tensor *product =
        ops_products(c, NULL, ingot_reshape(c, x, 6, xd), ingot_reshape(c, w, 6, wd));
    return ingot_sum(c, product, 1u << 4 | 1u << 5, false);
}

static ingot_tensor *with_bias(ingot_context *c, ingot_tensor *y, ingot_tensor *b, ingot_dtype d)
{
    if (b && !ingot_is_poison(y))
        y = ingot_add(c, y, ops_channel(c, ops_widen(c, b), ingot_rank(y)));
    return ingot_cast(c, y, d);
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
    LowRank l;
    if (group == 1 && ops_low_rank(c, w, &l))
        return ops_low_rank_conv(c, x, &l, b, strides, dilations, pads_lo, pads_hi);
    int64_t lo[MAX_SPATIAL] = {0}, hi[MAX_SPATIAL] = {0};
    for (int i = 0; i < spatial; i++) {
        lo[i] = pads_lo ? pads_lo[i] : 0;
        hi[i] = pads_hi ? pads_hi[i] : 0;
    }
    w = without_unused_taps(c, x, w, strides, dilations, lo, hi);
    ingot_tensor *y = group == 1 ? sum_along_rows(c, x, w, strides, dilations, lo, hi) : NULL;
    if (!y && group == 1)
        y = sum_along_stored_rows(c, x, w, strides, dilations, lo, hi);
    if (y)
        return ops_result(c, ops_rounded_dtype(c), with_bias(c, y, b, d));
    Products p = {.x = {x}, .w = {w}, .n = 1};
    if (group == 1)
        p = ops_precision(c, x, 1, w, 1);
    per_group = ingot_shape(p.w[0], 1);
    for (int i = 0; i < p.n; i++) {
        p.x[i] = pad_spatial(c, ops_widen(c, p.x[i]), lo, hi);
        for (int j = 0; j < spatial; j++)
            p.x[i] = ingot_window(c, p.x[i], 2 + j, ingot_dim_lo(ingot_shape(w, 2 + j)),
                                  strides ? strides[j] : 1, dilations ? dilations[j] : 1);
        if (ingot_is_poison(p.x[i]))
            return p.x[i];
    }
    x = p.x[0];
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
    ingot_tensor *product = NULL;
    for (int i = 0; i < p.n; i++)
        product = ops_products(c, product, ingot_reshape(c, p.x[i], rank, xd),
                               ingot_reshape(c, p.w[i], rank, wd));
    y = ingot_reshape(c, ingot_sum(c, product, axes, false), 2 + spatial, yd);
    return ops_result(c, ingot_dtype_of(p.w[0]), with_bias(c, y, b, d));
}

/* ---- transposed ------------------------------------------------------------------------------ */

/* [N, C, d...] -> [N, C, d, 1, ...] -> [N, C, d, stride, ...] -> [N, C, d * stride, ...]: zeros
 * behind each element */
ingot_tensor *ops_zeros_between(ingot_context *c, ingot_tensor *x, const int64_t *strides)
{
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0};
    ingot_dim *apart[INGOT_MAX_RANK], *joined[INGOT_MAX_RANK];
    int rank = ingot_rank(x), n = 2;
    for (int i = 0; i < 2; i++)
        apart[i] = joined[i] = ingot_shape(x, i);
    for (int i = 2; i < rank; i++) {
        apart[n++] = ingot_shape(x, i);
        hi[n] = strides[i - 2] - 1;
        apart[n++] = ingot_dim_const(c, 1);
        joined[i] = ingot_dim_mul(c, ingot_shape(x, i), ingot_dim_const(c, strides[i - 2]));
    }
    return ingot_reshape(c, ingot_pad_c(c, ingot_reshape(c, x, n, apart), lo, hi, 0), rank, joined);
}

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
    int64_t stride[MAX_SPATIAL], lo[MAX_SPATIAL], hi[MAX_SPATIAL];
    ingot_dim *dims[INGOT_MAX_RANK];
    /* w [C, M/G, k] -> [G, C/G, M/G, k] -> [G, M/G, C/G, k] -> [M, C/G, k], turned around */
    dims[0] = ingot_dim_const(c, group);
    dims[1] = ingot_dim_const(c, channels / group);
    dims[2] = ingot_dim_const(c, maps);
    for (int i = 0; i < spatial; i++) {
        int64_t taps = ingot_dim_lo(ingot_shape(w, 2 + i)), along = dilations ? dilations[i] : 1;
        stride[i] = strides ? strides[i] : 1;
        lo[i] = along * (taps - 1) - (pads_lo ? pads_lo[i] : 0);
        hi[i] = along * (taps - 1) - (pads_hi ? pads_hi[i] : 0) + (out_pads ? out_pads[i] : 0) + 1 -
                stride[i];
        dims[3 + i] = ingot_shape(w, 2 + i);
    }
    for (int i = 0; i < 3 + spatial; i++)
        perm[i] = i == 1 ? 2 : i == 2 ? 1 : i;
    w = ingot_permute(c, ingot_reshape(c, ops_widen(c, w), 3 + spatial, dims), perm);
    w = ingot_flip(c, ingot_flatten(c, w, 0, 2), ((1u << spatial) - 1) << 2);
    x = ops_zeros_between(c, ops_widen(c, x), stride);
    ingot_tensor *y = ingot_conv(c, x, w, NULL, NULL, dilations, lo, hi, group);
    return with_bias(c, y, b, d);
}
