/*
 * tflite_blocks.c - weights in which each block of a row has a scale of its own.
 *
 *     w [O, I] of 8, 4 or 2 bits, blocks of k; scales s [O, I / k], another tensor of the file
 *
 * A product makes bytes of what it multiplies (tflite_hybrid.c, asymmetric, whatever the operator's
 * option says, as LiteRT does), and sums each block in i32:
 *
 *     y[m, o] = scale of x[m] * sum of b: s[o, b] * sum of i in b: q[m, i] * w[o, i]
 */
#include "tflite_hybrid.h"

enum { TFL_BLOCKS = 2 }; /* a kind of scales, in the schema */

bool tfl_has_blocks(const ingot_tflite_tensor *t)
{
    return t && t->other_kind == TFL_BLOCKS;
}

/* The scales of input w in f32, [rows, blocks], and the size of a block; NULL after a fault. */
static ingot_tensor *block_scales(TfliteNode *n, int w, int64_t *size)
{
    const ingot_tflite_tensor *t = n->ti[w];
    const ingot_tflite_graph *g = n->s->g;
    const int64_t at = ingot_tflite_int(&t->other_scales, 0, 4, 0);
    int64_t rows, columns, have[2];
    *size = ingot_tflite_int(&t->other_scales, 2, 4, 0);
    if (ingot_tflite_int(&t->other_scales, 1, 4, 0) > 0)
        return tfl_unsupported(n, "its blocks have zero points"), NULL;
    if (at < 0 || (uint64_t)at >= g->n_tensors)
        return tfl_fault(n, "there is no tensor %lld, which has the scales of its blocks",
                         (long long)at),
               NULL;
    if (t->shape.n != 2)
        return tfl_fault(n, "its weights have blocks, and rank %zu, not 2", t->shape.n), NULL;
    if (*size < 1)
        return tfl_fault(n, "its weights have blocks of %lld", (long long)*size), NULL;
    rows = ingot_tflite_i32(&t->shape, 0);
    columns = ingot_tflite_i32(&t->shape, 1);
    ingot_tensor *s = tflite_read_constant(n, (size_t)at);
    if (ingot_is_poison(s))
        return NULL;
    if (columns % *size || !tfl_is_float(s) || ingot_rank(s) != 2 ||
        !ingot_dim_is_const(ingot_shape(s, 0), &have[0]) ||
        !ingot_dim_is_const(ingot_shape(s, 1), &have[1]) || have[0] != rows ||
        have[1] != columns / *size)
        return tfl_fault(n,
                         "its weights are %lld rows of %lld in blocks of %lld, and their scales no "
                         "floats of that shape",
                         (long long)rows, (long long)columns, (long long)*size),
               NULL;
    return ingot_cast(n->c, s, INGOT_F32);
}

/* The last axis as blocks of so many, with `between` axes of 1 in front of them. */
static ingot_tensor *in_blocks(TfliteNode *n, ingot_tensor *x, int64_t size, int between)
{
    const int rank = ingot_rank(x), last = rank - 1;
    ingot_dim *dims[INGOT_MAX_RANK + 2];
    for (int i = 0; i < last; i++)
        dims[i] = ingot_shape(x, i);
    for (int i = 0; i < between; i++)
        dims[last + i] = tfl_dim(n, 1);
    dims[last + between] = ingot_dim_div(n->c, ingot_shape(x, last), tfl_dim(n, size));
    dims[last + between + 1] = tfl_dim(n, size);
    return ingot_reshape(n->c, x, rank + between + 1, dims);
}

ingot_tensor *tfl_blocks_linear(TfliteNode *n, ingot_tensor *x, int w)
{
    int64_t size;
    TfliteBytes b;
    ingot_tensor *scales = block_scales(n, w, &size), *weights = tfl_byte_weights(n, w);
    if (!scales || ingot_is_poison(x) || ingot_is_poison(weights))
        return ingot_poison(n->c);
    const int rank = ingot_rank(x);
    if (rank < 1 || rank + 2 > INGOT_MAX_RANK)
        return tfl_unsupported(n, "an input of rank %d and weights in blocks", rank);
    if (!tfl_bytes(n, x, 1u << (rank - 1), true, &b))
        return ingot_poison(n->c);
    ingot_tensor *y = ingot_mul(n->c, in_blocks(n, b.q, size, 1), in_blocks(n, weights, size, 0));
    y = ingot_reduce(n->c, INGOT_REDUCE_ADD, y, 1u << (rank + 1), false);
    y = ingot_mul(n->c, ingot_cast(n->c, y, INGOT_F32), scales);
    y = ingot_reduce(n->c, INGOT_REDUCE_ADD, y, 1u << rank, false);
    return ingot_mul(n->c, y, b.scale);
}

ingot_tensor *tfl_blocks_rows(TfliteNode *n, ingot_tensor *rows, int w)
{
    int64_t size;
    ingot_tensor *scales = block_scales(n, w, &size);
    if (!scales)
        return ingot_poison(n->c);
    ingot_tensor *y = in_blocks(n, ingot_take(n->c, tfl_byte_weights(n, w), rows, 0), size, 0);
    scales = ingot_take(n->c, scales, rows, 0);
    if (ingot_is_poison(y) || ingot_is_poison(scales))
        return ingot_poison(n->c);
    const int last = ingot_rank(y) - 1;
    y = ingot_mul(n->c, ingot_cast(n->c, y, INGOT_F32), ingot_unsqueeze(n->c, scales, last));
    return ingot_flatten(n->c, y, last - 1, last + 1);
}
