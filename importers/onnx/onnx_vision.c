/*
 * onnx_vision.c - ONNX operators on images and boxes: Col2Im, RoiAlign, DeformConv, Det,
 * NonMaxSuppression. (GridSample and its like are in onnx_sample.c.)
 */
#include <math.h>
#include <string.h>

#include "onnx.h"
#include "onnx_window.h"

#define X n->in[0]

static ingot_tensor *input(Lowering *n, int i)
{
    return i < n->n_in ? n->in[i] : NULL;
}

static ingot_tensor *i64(Lowering *n, int64_t v)
{
    return ingot_scalar_i(n->c, INGOT_I64, v);
}

/* ---- Col2Im ---------------------------------------------------------------------------------- */

enum { MAX_IMAGE_RANK = 6, MAX_BLOCKS = 16, MAX_BLOCK_SIZE = 1024 };

typedef struct {
    int rank;
    int64_t image[MAX_IMAGE_RANK], block[MAX_IMAGE_RANK], stride[MAX_IMAGE_RANK];
    int64_t dilation[MAX_IMAGE_RANK], lo[MAX_IMAGE_RANK], hi[MAX_IMAGE_RANK];
    int64_t channels, columns; /* columns: places of the block, from the input's shape */
    int64_t found[MAX_BLOCKS][MAX_IMAGE_RANK];
    int n_found;
} Col2Im;

/* Places of a block along one axis. */
static int64_t places(const Col2Im *s, int i)
{
    int64_t room = s->image[i] + s->lo[i] + s->hi[i] - s->dilation[i] * (s->block[i] - 1) - 1;
    return room < 0 ? 0 : room / s->stride[i] + 1;
}

/* Whether as many blocks as the input has fit the image. */
static bool columns_fit(const Col2Im *s)
{
    int64_t columns = 1;
    for (int i = 0; i < s->rank && columns <= s->columns; i++)
        columns *= places(s, i);
    return columns == s->columns;
}

/* The sum of what blocks put on pixel o: of element k of the block at place
 * (o + pad - k dilation) / stride, where there is one. */
static ingot_tensor *col2im(Lowering *n, const Col2Im *s)
{
    ingot_dim *dims[2 + 2 * MAX_IMAGE_RANK], *out[2 + 2 * MAX_IMAGE_RANK];
    ingot_tensor *index[2 + 2 * MAX_IMAGE_RANK], *valid = NULL;
    int rank = 2 + 2 * s->rank;
    unsigned axes = 0;
    dims[0] = out[0] = ingot_shape(X, 0);
    dims[1] = out[1] = dim(n, s->channels);
    for (int i = 0; i < s->rank; i++) {
        dims[2 + i] = out[2 + s->rank + i] = dim(n, s->block[i]);
        dims[2 + s->rank + i] = dim(n, places(s, i));
        out[2 + i] = dim(n, s->image[i]);
        axes |= 1u << (2 + s->rank + i);
    }
    index[0] = ingot_iota(n->c, rank, out, 0);
    index[1] = ingot_iota(n->c, rank, out, 1);
    for (int i = 0; i < s->rank; i++) {
        ingot_tensor *k = ingot_iota(n->c, rank, out, 2 + s->rank + i),
                     *stride = i64(n, s->stride[i]);
        ingot_tensor *at = ingot_add(n->c, ingot_iota(n->c, rank, out, 2 + i), i64(n, s->lo[i]));
        at = ingot_sub(n->c, at, ingot_mul(n->c, k, i64(n, s->dilation[i])));
        ingot_tensor *place = ingot_div(n->c, at, stride);
        ingot_tensor *ok = ingot_ge(n->c, at, i64(n, 0));
        if (s->stride[i] > 1)
            ok = ingot_and(n->c, ok, ingot_eq(n->c, ingot_mod(n->c, at, stride), i64(n, 0)));
        ok = ingot_and(n->c, ok, ingot_lt(n->c, place, i64(n, places(s, i))));
        valid = valid ? ingot_and(n->c, valid, ok) : ok;
        index[2 + i] = k;
        index[2 + s->rank + i] = place;
    }
    ingot_tensor *x = ingot_gather(n->c, ingot_reshape(n->c, X, rank, dims), index);
    x = ingot_where(n->c, valid, x, like(n, x, 0));
    return ingot_reduce(n->c, ingot_dtype_of(x) == INGOT_BOOL ? INGOT_REDUCE_OR : INGOT_REDUCE_ADD,
                        x, axes, false);
}

/* All shapes of a block of `size` elements, from axis i on, that fit the number of columns. */
static void find_blocks(Col2Im *s, int i, int64_t size)
{
    if (i < s->rank) {
        for (int64_t k = 1; k <= size; k++)
            if (size % k == 0) {
                s->block[i] = k;
                find_blocks(s, i + 1, size / k);
            }
        return;
    }
    if (size != 1 || !columns_fit(s))
        return;
    if (s->n_found < MAX_BLOCKS)
        memcpy(s->found[s->n_found], s->block, sizeof s->block);
    s->n_found++;
}

/* The run tells the block's shape: one of those that fit the shapes declared. */
static ingot_tensor *col2im_any(Lowering *n, Col2Im *s, int64_t size)
{
    ingot_tensor *y = NULL, *block = as(n, n->in[2], INGOT_I64);
    if (size <= MAX_BLOCK_SIZE)
        find_blocks(s, 0, size);
    if (s->n_found == 0 || s->n_found > MAX_BLOCKS)
        return unsupported(n,
                           "its block_shape is not known when compiling; --bind gives '%s' a value",
                           n->proto->input[2]);
    for (int f = 0; f < s->n_found; f++) {
        memcpy(s->block, s->found[f], sizeof s->block);
        int64_t dims[1] = {s->rank};
        ingot_tensor *same = ingot_eq(n->c, block, const_i64(n, 1, dims, s->block));
        same = ingot_reduce(n->c, INGOT_REDUCE_AND, same, 1, false);
        ingot_tensor *this = col2im(n, s);
        y = y ? ingot_where(n->c, same, this, y) : this;
    }
    return y;
}

ingot_tensor *onnx_col2im(Lowering *n)
{
    const int64_t *v;
    int64_t dims[INGOT_MAX_RANK], pads[2 * MAX_IMAGE_RANK], rows, size = 1;
    int rank, known = ints_known(n, 1, &v);
    Col2Im s = {.rank = known};
    if (known < 0 && declared_shape(n, 0, &rank, dims)) {
        s.rank = rank - 2;
        v = dims + 2;
    }
    if (ingot_rank(X) != 3 || s.rank < 1 || s.rank > MAX_IMAGE_RANK ||
        !ingot_dim_is_const(ingot_shape(X, 1), &rows) ||
        !ingot_dim_is_const(ingot_shape(X, 2), &s.columns))
        return unsupported(n,
                           "its image_shape or the shape of its input is not known when compiling");
    for (int i = 0; known < 0 && i < s.rank; i++)
        if (!size_is(n, 0, i + 2, list_entry(n, 1, i, 0), dim(n, v[i])))
            return ingot_poison(n->c);
    memcpy(s.image, v, (size_t)s.rank * sizeof *v);
    for (int i = 0; i < s.rank; i++)
        if (v[i] < 0 || v[i] > INT32_MAX)
            return fault(n, "its image_shape has the entry %lld", (long long)v[i]);
    if (!attr_each(n, "strides", s.rank, 1, 1, s.stride) ||
        !attr_each(n, "dilations", s.rank, 1, 1, s.dilation) ||
        !attr_each(n, "pads", 2 * s.rank, 0, 0, pads))
        return ingot_poison(n->c);
    memcpy(s.lo, pads, (size_t)s.rank * sizeof *pads);
    memcpy(s.hi, pads + s.rank, (size_t)s.rank * sizeof *pads);
    int blocks = ints_known(n, 2, &v);
    if (blocks < 0 && known < 0 && dims[1] > 0 && rows % dims[1] == 0) {
        s.channels = dims[1];
        ingot_tensor *all = ingot_scalar_i(n->c, INGOT_I64, 1);
        for (int i = 0; i < s.rank; i++)
            all = ingot_mul(n->c, all, list_entry(n, 2, i, 0));
        if (!value_is(n, all, dim(n, rows / dims[1]), "the number of elements of its block_shape"))
            return ingot_poison(n->c);
        return col2im_any(n, &s, rows / dims[1]);
    }
    if (blocks < 0 && ints_in(n, 2, &v) < 0)
        return ingot_poison(n->c);
    for (int i = 0; i < blocks && i < s.rank; i++) {
        if (v[i] < 1 || v[i] > INT32_MAX)
            return fault(n, "its block_shape has the entry %lld", (long long)v[i]);
        s.block[i] = v[i];
        size = size > rows ? size : size * s.block[i];
    }
    if (blocks != s.rank || rows % size || !columns_fit(&s))
        return fault(n, "its block_shape and image_shape do not fit its input");
    s.channels = rows / size;
    return col2im(n, &s);
}

/* ---- sampling between pixels ----------------------------------------------------------------- */

/* The four pixels around a place and their weights; index: [.., y, x] of the pixels. */
typedef struct {
    ingot_tensor *weight[4], *y[4], *x[4];
} PixelCorners;

/* floor(at) and at - floor(at) */
static ingot_tensor *split_at(Lowering *n, ingot_tensor *at, ingot_tensor **fraction)
{
    ingot_tensor *low = ingot_floor(n->c, at);
    *fraction = ingot_sub(n->c, at, low);
    return as(n, low, INGOT_I64);
}

static ingot_tensor *rest_of(Lowering *n, ingot_tensor *x)
{
    return ingot_sub(n->c, like(n, x, 1), x);
}

static PixelCorners corners(Lowering *n, ingot_tensor *y, ingot_tensor *x)
{
    ingot_tensor *fy, *fx, *y0 = split_at(n, y, &fy), *x0 = split_at(n, x, &fx);
    ingot_tensor *wy[2] = {rest_of(n, fy), fy}, *wx[2] = {rest_of(n, fx), fx};
    ingot_tensor *py[2] = {y0, ingot_add_c(n->c, y0, 1)}, *px[2] = {x0, ingot_add_c(n->c, x0, 1)};
    PixelCorners c;
    for (int i = 0; i < 4; i++) {
        c.weight[i] = ingot_mul(n->c, wy[i / 2], wx[i % 2]);
        c.y[i] = py[i / 2];
        c.x[i] = px[i % 2];
    }
    return c;
}

static ingot_tensor *within(Lowering *n, ingot_tensor *i, ingot_dim *size)
{
    return ingot_and(n->c, ingot_ge(n->c, i, i64(n, 0)),
                     ingot_lt(n->c, i, ingot_from_dim(n->c, size)));
}

/* ---- RoiAlign -------------------------------------------------------------------------------- */

typedef struct {
    ingot_tensor *start, *bin, *samples; /* per region [R, 1, 1]; samples in a bin, a float */
    /* Per bin [R, bins, 1]: the first sample that may be in the image, where the region says how
     * many there are; those before it, and behind the most that may be in any, are outside. */
    ingot_tensor *first;
    int64_t bins;
    ingot_dim *most;
} RoiAxis;

/* One corner coordinate of all regions, in pixels, [R, 1, 1]. */
static ingot_tensor *roi_edge(Lowering *n, int column, double scale, double offset)
{
    ingot_tensor *edge = ingot_slice(n->c, widen(n, n->in[1]), 1, dim(n, column), dim(n, 1), 1);
    edge = ingot_add_c(n->c, ingot_mul_c(n->c, edge, scale), -offset);
    return ingot_unsqueeze(n->c, edge, 2);
}

/* Of a region that is larger than the image most samples are outside: a bin has two in a pixel at
 * most, and reaches from -1 to the image's size. */
static void samples_inside(Lowering *n, int axis, RoiAxis *a)
{
    enum { ENDS = 3 };
    ingot_dim *size = ingot_shape(X, 2 + axis);
    ingot_dim *dims[3] = {ingot_shape(n->in[1], 0), dim(n, a->bins), dim(n, 1)};
    const ingot_dtype dtype = ingot_dtype_of(a->bin);
    ingot_tensor *one = like(n, a->bin, 1), *bin = as(n, ingot_iota(n->c, 3, dims, 1), dtype);
    ingot_tensor *step = ingot_div(n->c, a->bin, ingot_max(n->c, a->samples, one));
    step = ingot_where(n->c, ingot_gt(n->c, a->bin, like(n, a->bin, 0)), step, one);
    ingot_tensor *begin = ingot_add(n->c, a->start, ingot_mul(n->c, bin, a->bin));
    begin = ingot_div(n->c, ingot_sub(n->c, like(n, begin, -1), begin), step);
    a->first = ingot_max_c(n->c, ingot_floor(n->c, ingot_add_c(n->c, begin, -0.5)), 0);
    ingot_tensor *inside = ingot_add_c(n->c, as(n, ingot_from_dim(n->c, size), dtype), 1);
    inside = ingot_add_c(n->c, ingot_floor(n->c, ingot_div(n->c, inside, step)), ENDS);
    inside = ingot_min(n->c, ingot_sub(n->c, a->samples, a->first), inside);
    inside = as(n, ingot_reduce(n->c, INGOT_REDUCE_MAX, ingot_max_c(n->c, inside, 0), 7, false),
                INGOT_I64);
    const int64_t most = 2 * (ingot_dim_hi(size) + 1) + ENDS;
    a->most = ingot_read_dim(n->c, ingot_max_c(n->c, inside, 0), "samples of a bin", 0, most);
}

/* axis 0: y, 1: x. */
static RoiAxis roi_axis(Lowering *n, int axis, int64_t bins, bool half_pixel)
{
    double scale = attr_float(n, "spatial_scale", 1), offset = half_pixel ? 0.5 : 0;
    int64_t ratio = attr_int(n, "sampling_ratio", 0);
    RoiAxis a = {.bins = bins, .start = roi_edge(n, 1 - axis, scale, offset)};
    ingot_tensor *size = ingot_sub(n->c, roi_edge(n, 3 - axis, scale, offset), a.start);
    if (!half_pixel)
        size = ingot_max_c(n->c, size, 1);
    a.bin = ingot_div(n->c, size, like(n, size, (double)bins));
    if (ratio > 0) {
        a.samples = like(n, size, (double)ratio);
        a.most = dim(n, ratio);
        return a;
    }
    a.samples = ingot_ceil(n->c, a.bin); /* as many as pixels in a bin */
    if (!ingot_is_poison(a.bin))
        samples_inside(n, axis, &a);
    return a;
}

/* Which samples of their bins they are, [R, bins, most]. */
static ingot_tensor *roi_numbers(Lowering *n, const RoiAxis *a, ingot_dim *const *dims)
{
    ingot_tensor *i = as(n, ingot_iota(n->c, 3, dims, 2), ingot_dtype_of(a->bin));
    return a->first ? ingot_add(n->c, i, a->first) : i;
}

/* Places of the samples, [R, bins, most]. */
static ingot_tensor *roi_places(Lowering *n, const RoiAxis *a)
{
    ingot_dim *dims[3] = {ingot_shape(n->in[1], 0), dim(n, a->bins), a->most};
    ingot_dtype dtype = ingot_dtype_of(a->bin);
    ingot_tensor *bin = as(n, ingot_iota(n->c, 3, dims, 1), dtype);
    ingot_tensor *i = ingot_add_c(n->c, roi_numbers(n, a, dims), 0.5);
    ingot_tensor *within_bin = ingot_div(n->c, ingot_mul(n->c, i, a->bin), a->samples);
    return ingot_add(n->c, ingot_add(n->c, a->start, ingot_mul(n->c, bin, a->bin)), within_bin);
}

/* [R, bins, most] -> [R, 1, bins, 1, most, 1] for axis 0, [R, 1, 1, bins, 1, most] for axis 1 */
static ingot_tensor *roi_spread(Lowering *n, ingot_tensor *x, int axis)
{
    ingot_dim *one = dim(n, 1), *dims[6] = {ingot_shape(x, 0), one, one, one, one, one};
    dims[2 + axis] = ingot_shape(x, 1);
    dims[4 + axis] = ingot_shape(x, 2);
    return ingot_reshape(n->c, x, 6, dims);
}

/* Samples clamped to the image. ok: at most a pixel outside; has: the region has the sample. */
static ingot_tensor *roi_clamp(Lowering *n, const RoiAxis *a, int axis, ingot_tensor **ok,
                               ingot_tensor **has)
{
    ingot_tensor *at = roi_places(n, a), *size = ingot_from_dim(n->c, ingot_shape(X, 2 + axis));
    ingot_dim *dims[3] = {ingot_shape(at, 0), ingot_shape(at, 1), ingot_shape(at, 2)};
    size = as(n, size, ingot_dtype_of(at));
    *ok = ingot_and(n->c, ingot_ge(n->c, at, like(n, at, -1)), ingot_le(n->c, at, size));
    *ok = roi_spread(n, *ok, axis);
    *has = roi_spread(n, ingot_lt(n->c, roi_numbers(n, a, dims), a->samples), axis);
    at = ingot_min(n->c, ingot_max_c(n->c, at, 0), ingot_add_c(n->c, size, -1));
    return roi_spread(n, at, axis);
}

/* A bin with samples that are not looked at, for they are outside, has a 0 among those of which the
 * greatest is asked for. */
static ingot_tensor *with_outside(Lowering *n, const RoiAxis *a, int axis, ingot_tensor *y)
{
    if (!a->first)
        return y;
    ingot_dim *one = dim(n, 1), *dims[4] = {ingot_shape(n->in[1], 0), one, one, one};
    dims[2 + axis] = dim(n, a->bins);
    ingot_tensor *most = as(n, ingot_from_dim(n->c, a->most), ingot_dtype_of(a->bin));
    ingot_tensor *last = ingot_add(n->c, a->first, most), *none = like(n, a->first, 0);
    ingot_tensor *some =
        ingot_or(n->c, ingot_gt(n->c, a->first, none), ingot_gt(n->c, a->samples, last));
    return ingot_where(n->c, ingot_reshape(n->c, some, 4, dims), ingot_max_c(n->c, y, 0), y);
}

ingot_tensor *onnx_roi_align(Lowering *n)
{
    const char *mode = attr_string(n, "mode", "avg");
    bool half_pixel = n->version >= 16 &&
                      attr_is(n, "coordinate_transformation_mode", "half_pixel", "half_pixel");
    int64_t height = attr_int(n, "output_height", 1), width = attr_int(n, "output_width", 1);
    bool max = strcmp(mode, "max") == 0;
    if (ingot_rank(X) != 4 || ingot_rank(n->in[1]) != 2 || ingot_rank(n->in[2]) != 1 ||
        height < 1 || width < 1 || (!max && strcmp(mode, "avg") != 0))
        return fault(n, "its inputs have to have ranks 4, 2 and 1, its mode avg or max");
    if (n->failed)
        return ingot_poison(n->c);
    ingot_dim *out[4] = {ingot_shape(n->in[1], 0), ingot_shape(X, 1), dim(n, height),
                         dim(n, width)};
    if (has_no_pixels(X))
        return ingot_expand(n->c, like(n, X, 0), 4, out);
    RoiAxis h = roi_axis(n, 0, height, half_pixel), w = roi_axis(n, 1, width, half_pixel);
    if (ingot_is_poison(h.bin) || ingot_is_poison(w.bin))
        return ingot_poison(n->c);
    ingot_tensor *ok[2], *has[2], *x = widen(n, X), *y = NULL;
    ingot_tensor *at_y = roi_clamp(n, &h, 0, &ok[0], &has[0]);
    ingot_tensor *at_x = roi_clamp(n, &w, 1, &ok[1], &has[1]);
    PixelCorners c = corners(n, at_y, at_x);
    ingot_tensor *index[4] = {align_axis(n, as(n, n->in[2], INGOT_I64), 0, 6), NULL, NULL, NULL};
    ingot_dim *channels = ingot_shape(X, 1);
    index[1] = align_axis(n, ingot_iota(n->c, 1, &channels, 0), 1, 6);
    for (int i = 0; i < 4; i++) {
        index[2] = c.y[i];
        index[3] = c.x[i];
        ingot_tensor *v =
            ingot_mul(n->c, as(n, c.weight[i], ingot_dtype_of(x)), ingot_gather(n->c, x, index));
        y = !y ? v : max ? ingot_max(n->c, y, v) : ingot_add(n->c, y, v);
    }
    y = ingot_where(n->c, ingot_and(n->c, ok[0], ok[1]), y, like(n, y, 0));
    y = ingot_where(n->c, ingot_and(n->c, has[0], has[1]), y, like(n, y, max ? -INFINITY : 0));
    y = ingot_reduce(n->c, max ? INGOT_REDUCE_MAX : INGOT_REDUCE_ADD, y, 3u << 4, false);
    y = max ? with_outside(n, &w, 1, with_outside(n, &h, 0, y)) : y;
    ingot_tensor *samples = as(n, ingot_mul(n->c, h.samples, w.samples), ingot_dtype_of(y));
    if (ingot_rank(samples))
        samples = ingot_unsqueeze(n->c, samples, 3);
    if (max)
        y = ingot_where(n->c, ingot_gt(n->c, samples, like(n, samples, 0)), y, like(n, y, 0));
    else
        y = ingot_div(n->c, y, ingot_max_c(n->c, samples, 1));
    return as(n, y, ingot_dtype_of(X));
}

/* ---- DeformConv ------------------------------------------------------------------------------ */

typedef struct {
    Window win;
    int64_t group, offset_group;
    ingot_dim *out[2]; /* height and width of the result */
} Deform;

/* Where the kernel reads, [N, offset group, kh, kw, oh, ow]; axis 0: y, 1: x. */
static ingot_tensor *deform_places(Lowering *n, const Deform *d, ingot_tensor *offset, int axis)
{
    ingot_dim *dims[6];
    int64_t lo = d->win.lo[axis];
    offset = ingot_slice(n->c, offset, 4, dim(n, axis), dim(n, 1), 1);
    offset = ingot_squeeze(n->c, offset, 4);
    shape_of(offset, dims);
    ingot_tensor *k =
        ingot_mul(n->c, ingot_iota(n->c, 6, dims, 2 + axis), i64(n, d->win.dilation[axis]));
    ingot_tensor *o =
        ingot_mul(n->c, ingot_iota(n->c, 6, dims, 4 + axis), i64(n, d->win.stride[axis]));
    ingot_tensor *at = ingot_add(n->c, ingot_add(n->c, k, o), i64(n, -lo));
    return ingot_add(n->c, as(n, at, ingot_dtype_of(offset)), offset);
}

/* [N, G, ..] -> [N, G, 1, ..] */
static ingot_tensor *per_channel(Lowering *n, ingot_tensor *x)
{
    return ingot_unsqueeze(n->c, x, 2);
}

/* x read between its pixels, zero outside: [N, offset group, C / offset group, kh, kw, oh, ow] */
static ingot_tensor *deform_read(Lowering *n, const Deform *d, ingot_tensor *x,
                                 ingot_tensor *offset)
{
    ingot_dim *dims[5] = {ingot_shape(x, 0), dim(n, d->offset_group)}, *seven[3];
    ingot_tensor *index[5], *y = NULL;
    dims[2] = ingot_dim_div(n->c, ingot_shape(x, 1), dims[1]);
    dims[3] = ingot_shape(x, 2);
    dims[4] = ingot_shape(x, 3);
    x = ingot_reshape(n->c, x, 5, dims);
    memcpy(seven, dims, sizeof seven);
    for (int a = 0; a < 3; a++)
        index[a] = align_axis(n, ingot_iota(n->c, 1, &seven[a], 0), a, 7);
    PixelCorners c = corners(n, deform_places(n, d, offset, 0), deform_places(n, d, offset, 1));
    for (int i = 0; i < 4; i++) {
        ingot_tensor *ok = ingot_and(n->c, within(n, c.y[i], dims[3]), within(n, c.x[i], dims[4]));
        ingot_tensor *weight = ingot_where(n->c, ok, c.weight[i], like(n, c.weight[i], 0));
        index[3] = per_channel(n, c.y[i]);
        index[4] = per_channel(n, c.x[i]);
        ingot_tensor *v = ingot_mul(n->c, ingot_gather(n->c, x, index), per_channel(n, weight));
        y = y ? ingot_add(n->c, y, v) : v;
    }
    return y;
}

static bool deform_shapes(Lowering *n, Deform *d, ingot_tensor *offset, ingot_tensor *mask)
{
    int64_t c, m, per, taps = d->win.kernel[0] * d->win.kernel[1];
    if (!ingot_dim_is_const(ingot_shape(X, 1), NULL) ||
        !ingot_dim_is_const(ingot_shape(n->in[1], 0), NULL) ||
        !ingot_dim_is_const(ingot_shape(n->in[1], 1), NULL)) {
        unsupported(n, "its channels are not known when compiling");
        return false;
    }
    bool ok = ingot_dim_is_const(ingot_shape(X, 1), &c) &&
              ingot_dim_is_const(ingot_shape(n->in[1], 0), &m) &&
              ingot_dim_is_const(ingot_shape(n->in[1], 1), &per);
    ok = ok && d->group > 0 && c % d->group == 0 && c / d->group == per && m % d->group == 0 &&
         d->offset_group > 0 && d->offset_group <= c && c % d->offset_group == 0 &&
         ingot_rank(offset) == 4 && dim_is(ingot_shape(offset, 1), 2 * taps * d->offset_group) &&
         ingot_dim_equal(ingot_shape(offset, 0), ingot_shape(X, 0)) &&
         (!mask || (ingot_rank(mask) == 4 && dim_is(ingot_shape(mask, 1), taps * d->offset_group)));
    for (int i = 0; ok && i < 2; i++) {
        ingot_dim *room =
            ingot_dim_add(n->c, ingot_shape(X, 2 + i), dim(n, d->win.lo[i] + d->win.hi[i]));
        room = ingot_dim_sub(n->c, room, dim(n, window_extent(&d->win, i)));
        d->out[i] =
            ingot_dim_add(n->c, ingot_dim_div(n->c, room, dim(n, d->win.stride[i])), dim(n, 1));
        ok = ingot_dim_equal(d->out[i], ingot_shape(offset, 2 + i));
    }
    if (!ok)
        fault(n, "the shapes of its inputs and its groups do not fit");
    return ok;
}

/* A convolution whose kernel reads x at places moved by `offset`, weighted by `mask`. */
ingot_tensor *onnx_deform_conv(Lowering *n)
{
    ingot_tensor *w = n->in[1], *offset = n->in[2], *bias = input(n, 3), *mask = input(n, 4);
    Deform d = {.group = attr_int(n, "group", 1), .offset_group = attr_int(n, "offset_group", 1)};
    if (ingot_rank(X) != 4 || ingot_rank(w) != 4)
        return unsupported(n, "only images with two axes are supported");
    if (!window_read(n, X, w, &d.win) || !window_fits(n, X, &d.win) ||
        !deform_shapes(n, &d, offset, mask))
        return ingot_poison(n->c);
    ingot_dim *og = dim(n, d.offset_group), *kh = dim(n, d.win.kernel[0]),
              *kw = dim(n, d.win.kernel[1]);
    ingot_dim *seven[7] = {ingot_shape(X, 0), og, kh, kw, dim(n, 2), d.out[0], d.out[1]};
    offset = ingot_reshape(n->c, widen(n, offset), 7, seven);
    if (ingot_is_poison(offset))
        return offset;
    ingot_tensor *x = widen(n, X), *y = deform_read(n, &d, x, offset);
    if (mask) {
        ingot_dim *six[6] = {ingot_shape(X, 0), og, kh, kw, d.out[0], d.out[1]};
        mask = ingot_reshape(n->c, as(n, mask, ingot_dtype_of(y)), 6, six);
        y = ingot_mul(n->c, y, per_channel(n, mask));
    }
    if (ingot_is_poison(y))
        return y;
    /* [N, group, C/group kh kw, oh ow] times [group, M/group, C/group kh kw] */
    ingot_dim *group = dim(n, d.group), *m = ingot_shape(w, 0);
    ingot_dim *rows = ingot_dim_mul(n->c, ingot_shape(w, 1), ingot_dim_mul(n->c, kh, kw));
    ingot_dim *plane = ingot_dim_mul(n->c, d.out[0], d.out[1]);
    y = ingot_reshape(n->c, ingot_contiguous(n->c, y), 4,
                      (ingot_dim *[]){ingot_shape(X, 0), group, rows, plane});
    w = ingot_reshape(n->c, as(n, w, ingot_dtype_of(y)), 3,
                      (ingot_dim *[]){group, ingot_dim_div(n->c, m, group), rows});
    y = ingot_reshape(n->c, ingot_matmul(n->c, w, y), 4,
                      (ingot_dim *[]){ingot_shape(X, 0), m, d.out[0], d.out[1]});
    if (bias)
        y = ingot_add(n->c, y, align_axis(n, as(n, bias, ingot_dtype_of(y)), 1, 4));
    return as(n, y, ingot_dtype_of(X));
}

/* ---- library kernels ------------------------------------------------------------------------- */

ingot_tensor *onnx_det(Lowering *n)
{
    return ingot_det(n->c, X);
}

ingot_tensor *onnx_non_max_suppression(Lowering *n)
{
    ingot_tensor *most = input(n, 2);
    return ingot_nms(n->c, X, n->in[1], most ? as(n, most, INGOT_I64) : NULL, input(n, 3),
                     input(n, 4), attr_int(n, "center_point_box", 0) != 0);
}

/* ---- images of the first versions ----------------------------------------------------------- */

/* scale x + bias[c] (experimental, gone after opset 9) */
ingot_tensor *onnx_image_scaler(Lowering *n)
{
    const float *bias;
    int count = attr_floats(n, "bias", &bias), rank = ingot_rank(X);
    int64_t size = count;
    double *v = ingot_alloc(n->c, (size_t)(count < 0 ? 0 : count) * sizeof *v + 1);
    ingot_tensor *y = ingot_mul_c(n->c, X, attr_float(n, "scale", 1));
    if (count <= 0)
        return y;
    if (rank != 4 || !(count == 1 || dim_is(ingot_shape(X, 1), count)))
        return fault(n, "its bias has %d entries, its input rank %d", count, rank);
    for (int i = 0; i < count; i++)
        v[i] = (double)bias[i];
    return ingot_add(n->c, y, align_axis(n, const_f64(n, ingot_dtype_of(X), 1, &size, v), 1, rank));
}

/* alpha x + beta (experimental, the same) */
ingot_tensor *onnx_affine(Lowering *n)
{
    return ingot_add_c(n->c, ingot_mul_c(n->c, X, attr_float(n, "alpha", 1)),
                       attr_float(n, "beta", 0));
}

/* Cuts a border off, or with `scale` a piece of height, width from (top, left) on. */
ingot_tensor *onnx_crop(Lowering *n)
{
    const int64_t *border, *scale;
    int count = attr_ints(n, "border", &border), scaled = attr_ints(n, "scale", &scale);
    ingot_tensor *y = X;
    if (n->failed || ingot_rank(X) != 4 || count != 4 || (scaled >= 0 && scaled != 2))
        return fault(n, "it needs an input of rank 4, a border of 4 and a scale of 2 entries");
    for (int i = 0; i < 2; i++) { /* border: left, top, right, bottom */
        int64_t lo = border[1 - i], hi = border[3 - i];
        ingot_dim *size = ingot_shape(X, 2 + i);
        int64_t least = ingot_dim_lo(size), piece = scaled < 0 ? 0 : scale[i];
        if (lo < 0 || hi < 0 || piece < 0 || lo > least || hi > least - lo || piece > least - lo)
            return fault(n, "it cuts more off axis %d than there is", 2 + i);
        ingot_dim *rest = scaled < 0 ? ingot_dim_sub(n->c, size, dim(n, lo + hi)) : dim(n, piece);
        y = ingot_slice(n->c, y, 2 + i, dim(n, lo), rest, 1);
    }
    return y;
}
