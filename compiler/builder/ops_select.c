/* ops_select.c - what needs a library kernel: sorting, and results whose size the data decides.
 * runtime_min/lib/<name>.c describes each kernel's operands and attributes. */
#include "ops.h"

/* An upper bound on the elements of x, for the bound of a count. */
static int64_t most_elements(ingot_context *c, ingot_tensor *x)
{
    int64_t hi = ingot_dim_hi(ingot_numel(c, x));
    return hi < 0 ? 0 : hi;
}

ingot_tensor *ingot_nonzero(ingot_context *c, ingot_tensor *x)
{
    ingot_tensor *out;
    if (ingot_is_poison(x))
        return x;
    if (ingot_rank(x) == 0)
        x = ingot_unsqueeze(c, x, 0);
    ingot_dim *n = ingot_call_count(c, "nonzero", 0, most_elements(c, x));
    ingot_call_out to = {INGOT_I64, 2, {ingot_dim_const(c, ingot_rank(x)), n}};
    ingot_call(c,
               &(ingot_call_desc){.name = "nonzero",
                                  .n_in = 1,
                                  .in = &x,
                                  .n_out = 1,
                                  .out = &to,
                                  .n_count = 1,
                                  .counts = &n},
               &out);
    return out;
}

/* With a constant condition the places are known; NULL without. */
static ingot_tensor *compress_known(ingot_context *c, ingot_tensor *x, ingot_tensor *condition,
                                    int axis)
{
    int64_t n, size;
    if (ingot_rank(condition) != 1 || !ingot_is_const(condition))
        return NULL;
    ingot_dim *all = axis < 0 ? ingot_numel(c, x) : ingot_shape(x, axis);
    if (!ingot_dim_is_const(ingot_shape(condition, 0), &n) || !ingot_dim_is_const(all, &size) ||
        n > size || !size)
        return NULL;
    ingot_tensor *places = ingot_nonzero(c, condition);
    ingot_dim *count = ingot_shape(places, 1);
    if (!ingot_dim_is_const(count, NULL))
        return NULL;
    if (axis < 0)
        x = ingot_reshape(c, x, 1, &all);
    return ingot_take(c, x, ingot_reshape(c, places, 1, &count), axis < 0 ? 0 : axis);
}

ingot_tensor *ingot_compress(ingot_context *c, ingot_tensor *x, ingot_tensor *condition, int axis)
{
    ingot_tensor *in[2] = {x, condition}, *out;
    if (ingot_is_poison(x) || ingot_is_poison(condition))
        return ingot_poison(c);
    if (axis >= ingot_rank(x))
        return ingot_error(c, INGOT_INVALID, "compress: axis %d of a tensor of rank %d", axis,
                           ingot_rank(x));
    ingot_tensor *taken = compress_known(c, x, condition, axis);
    if (taken)
        return taken;
    int64_t most = axis < 0 ? most_elements(c, x) : ingot_dim_hi(ingot_shape(x, axis));
    ingot_dim *n = ingot_call_count(c, "compress", 0, most);
    ingot_call_out to = {ingot_dtype_of(x), 1, {n}};
    if (axis >= 0) {
        to.rank = ops_dims(x, to.dims);
        to.dims[axis] = n;
    }
    int64_t ints[1] = {axis < 0 ? -1 : axis};
    ingot_call(c,
               &(ingot_call_desc){.name = "compress",
                                  .n_in = 2,
                                  .in = in,
                                  .n_out = 1,
                                  .out = &to,
                                  .n_int = 1,
                                  .ints = ints,
                                  .n_count = 1,
                                  .counts = &n},
               &out);
    return out;
}

/* What is taken gets its gradient back, by the indices; all others zero. */
static void topk_gradient(ingot_context *c, const ingot_call_values *v, ingot_tensor **in_gradient)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_tensor *x = v->in[0], *g = v->gradient[0];
    if (!g)
        return;
    ingot_tensor *zeros = ingot_expand(c, ingot_like(c, x, 0), ops_dims(x, dims), dims);
    in_gradient[0] = ingot_scatter_elements(c, INGOT_ADD, zeros, v->out[1], g, (int)v->ints[0]);
}

void ingot_topk(ingot_context *c, ingot_tensor *x, ingot_dim *k, int axis, bool largest,
                ingot_tensor *out[2])
{
    out[0] = out[1] = ingot_poison(c);
    if (ingot_is_poison(x) || ingot_is_poison(k) || (axis = ops_axis(c, "topk", x, axis)) < 0)
        return;
    int64_t limit = ingot_dim_hi(ingot_shape(x, axis)), hi = ingot_dim_hi(k);
    if (ingot_dim_lo(k) > limit || hi < 0) {
        ingot_error(c, INGOT_INVALID, "topk: k is %lld, axis %d has at most %lld elements",
                    (long long)ingot_dim_lo(k), axis, (long long)limit);
        return;
    }
    /* A k that fits is the size of the result, so that it is known to equal other sizes. */
    bool known = ingot_dim_lo(k) >= 0 && hi <= limit;
    ingot_tensor *in[2] = {x, known ? NULL : ingot_from_dim(c, k)};
    hi = hi < limit ? hi : limit;
    ingot_dim *n = known ? k : ingot_call_count(c, "topk", 0, hi);
    ingot_call_out to[2];
    for (int i = 0; i < 2; i++) {
        to[i].dtype = i ? INGOT_I64 : ingot_dtype_of(x);
        to[i].rank = ops_dims(x, to[i].dims);
        to[i].dims[axis] = n;
    }
    int64_t ints[2] = {axis, largest};
    ingot_call(c,
               &(ingot_call_desc){.name = "topk",
                                  .n_in = known ? 1 : 2,
                                  .in = in,
                                  .n_out = 2,
                                  .out = to,
                                  .n_int = 2,
                                  .ints = ints,
                                  .n_count = known ? 0 : 1,
                                  .counts = &n,
                                  .scratch_bytes = (size_t)hi * 16,
                                  .gradient = topk_gradient},
               out);
}

void ingot_unique(ingot_context *c, ingot_tensor *x, int axis, bool sorted, ingot_tensor *out[4])
{
    for (int i = 0; i < 4; i++)
        out[i] = ingot_poison(c);
    if (ingot_is_poison(x))
        return;
    if (axis >= ingot_rank(x)) {
        ingot_error(c, INGOT_INVALID, "unique: axis %d of a tensor of rank %d", axis,
                    ingot_rank(x));
        return;
    }
    ingot_dim *m = axis < 0 ? ingot_numel(c, x) : ingot_shape(x, axis);
    ingot_dim *n = ingot_call_count(c, "unique", 0, ingot_dim_hi(m));
    ingot_call_out to[4] = {
        {ingot_dtype_of(x), 1, {n}}, {INGOT_I64, 1, {n}}, {INGOT_I64, 1, {m}}, {INGOT_I64, 1, {n}}};
    if (axis >= 0) {
        to[0].rank = ops_dims(x, to[0].dims);
        to[0].dims[axis] = n;
    }
    int64_t ints[2] = {axis < 0 ? -1 : axis, sorted};
    ingot_call(c,
               &(ingot_call_desc){.name = "unique",
                                  .n_in = 1,
                                  .in = &x,
                                  .n_out = 4,
                                  .out = to,
                                  .n_int = 2,
                                  .ints = ints,
                                  .n_count = 1,
                                  .counts = &n,
                                  .scratch_bytes = (size_t)ingot_dim_hi(m) * 24},
               out);
}

ingot_tensor *ingot_nms(ingot_context *c, ingot_tensor *boxes, ingot_tensor *scores,
                        ingot_tensor *most_per_class, ingot_tensor *iou, ingot_tensor *least_score,
                        bool centered)
{
    ingot_tensor *in[5] = {boxes, scores, most_per_class, iou, least_score}, *out;
    if (!in[2])
        return ingot_expand(c, ingot_scalar_i(c, INGOT_I64, 0), 2, /* none are asked for */
                            (ingot_dim *[]){ingot_dim_const(c, 0), ingot_dim_const(c, 3)});
    if (!in[3])
        in[3] = ingot_scalar_f(c, INGOT_F32, 0);
    int n_in = in[4] ? 5 : 4;
    for (int i = 0; i < n_in; i++)
        if (ingot_is_poison(in[i]))
            return in[i];
    if (ingot_rank(boxes) != 3 || ingot_rank(scores) != 3 || ingot_dtype_of(boxes) != INGOT_F32 ||
        ingot_dtype_of(scores) != INGOT_F32)
        return ingot_error(
            c, INGOT_INVALID,
            "nms: boxes must be f32 [batch, n, 4] and scores f32 [batch, classes, n]");
    for (int i = 2; i < n_in; i++)
        in[i] = ingot_reshape(c, in[i], 0, NULL);
    int64_t n = ingot_dim_hi(ingot_shape(boxes, 1)), per_class = n, known;
    int count;
    if (ingot_const_ints(c, in[2], &known, 1, &count) && known < per_class)
        per_class = known < 0 ? 0 : known;
    ingot_dim *classes = ingot_dim_mul(c, ingot_shape(scores, 0), ingot_shape(scores, 1));
    ingot_dim *most = ingot_dim_mul(c, classes, ingot_dim_const(c, per_class));
    ingot_dim *found = ingot_call_count(c, "nms", 0, ingot_dim_hi(most));
    ingot_call_out to = {INGOT_I64, 2, {found, ingot_dim_const(c, 3)}};
    int64_t ints[1] = {centered};
    ingot_call(c,
               &(ingot_call_desc){.name = "nms",
                                  .n_in = n_in,
                                  .in = in,
                                  .n_out = 1,
                                  .out = &to,
                                  .n_int = 1,
                                  .ints = ints,
                                  .n_count = 1,
                                  .counts = &found,
                                  .scratch_bytes = (size_t)n * 16},
               &out);
    return out;
}

ingot_tensor *ingot_det(ingot_context *c, ingot_tensor *x)
{
    ingot_tensor *out;
    if (ingot_is_poison(x))
        return x;
    int rank = ingot_rank(x);
    if (rank < 2 || !ingot_dim_equal(ingot_shape(x, rank - 1), ingot_shape(x, rank - 2)))
        return ingot_error(c, INGOT_INVALID, "det: x must be [..., n, n]");
    ingot_dtype d = ingot_dtype_of(x);
    ingot_tensor *wide = ops_widen(c, x);
    ingot_call_out to = {ops_wide(d), 0, {NULL}};
    ops_dims(x, to.dims);
    to.rank = rank - 2;
    int64_t n = ingot_dim_hi(ingot_shape(x, rank - 1));
    ingot_call(c,
               &(ingot_call_desc){.name = "det",
                                  .n_in = 1,
                                  .in = &wide,
                                  .n_out = 1,
                                  .out = &to,
                                  .scratch_bytes = (size_t)n * (size_t)n * 8},
               &out);
    return ingot_cast(c, out, d);
}
