/*
 * onnx_ms_bits.c - com.microsoft: weights of 2 to 8 bits in blocks, packed in bytes.
 *
 *     weight[n, k] = (packed[n, k] - zero[n, k / block]) scale[n, k / block]
 *
 * A byte holds its first element in the lowest bits (MatMulBnb4: in the highest). The weights are
 * unpacked by arithmetic on the constants, so how they are kept is the compiler's business.
 */
#include "onnx.h"

#define X n->in[0]

static bool bits_known(Lowering *n, int64_t bits)
{
    if (bits == 2 || bits == 4 || bits == 8)
        return true;
    unsupported(n, "weights of %lld bits are not supported, only 2, 4 and 8", (long long)bits);
    return false;
}

static bool block_known(Lowering *n, int64_t block)
{
    if (block >= 2 && block <= 1 << 24)
        return true;
    fault(n, "its block_size is %lld", (long long)block);
    return false;
}

/* u8 [.., bytes] -> u8 [.., 8 / bits bytes] */
static ingot_tensor *unpacked(Lowering *n, ingot_tensor *x, int bits)
{
    ingot_tensor *part[4];
    int count = 8 / bits, rank = ingot_rank(x);
    if (count == 1 || ingot_is_poison(x))
        return x;
    for (int i = 0; i < count; i++) {
        part[i] = i ? ingot_shr(n->c, x, ingot_scalar_i(n->c, INGOT_U8, i * bits)) : x;
        part[i] = ingot_and(n->c, part[i], ingot_scalar_i(n->c, INGOT_U8, (1 << bits) - 1));
    }
    x = ingot_stack(n->c, count, part, rank);
    return ingot_is_poison(x) ? x : ingot_flatten(n->c, x, rank - 1, rank + 1);
}

/* The first `count` elements of the last axis. */
static ingot_tensor *cut(Lowering *n, ingot_tensor *x, int64_t count)
{
    if (ingot_is_poison(x) || dim_is(ingot_shape(x, ingot_rank(x) - 1), count))
        return x;
    return ingot_slice(n->c, x, ingot_rank(x) - 1, dim(n, 0), dim(n, count), 1);
}

static ingot_tensor *matrix(Lowering *n, ingot_tensor *x, int64_t rows, int64_t columns)
{
    return ingot_reshape_c(n->c, x, 2, (int64_t[]){rows, columns});
}

/* ---- MatMulNBits ---------------------------------------------------------------------------- */

ingot_tensor *onnx_ms_matmul_nbits(Lowering *n)
{
    enum { A, B, SCALES, ZEROS, GROUPS, BIAS };
    int64_t k = attr_int(n, "K", 0), rows = attr_int(n, "N", 0), bits = attr_int(n, "bits", 4);
    int64_t block = attr_int(n, "block_size", 0);
    ingot_tensor *zero = optional_in(n, ZEROS), *scale = n->in[SCALES],
                 *groups = optional_in(n, GROUPS);
    if (!bits_known(n, bits) || !block_known(n, block) || n->failed)
        return ingot_poison(n->c);
    if (k < 1 || rows < 1 || k > INT32_MAX || rows > INT32_MAX || block * bits % 8)
        return fault(n, "its K, N and block_size are %lld, %lld, %lld", (long long)k,
                     (long long)rows, (long long)block);
    if (attr_int(n, "weight_prepacked", 0))
        return unsupported(n,
                           "weights in the order of one GPU (weight_prepacked) are not supported");
    int64_t blocks = (k + block - 1) / block, bytes = (blocks * bits + 7) / 8;
    ingot_tensor *w = matrix(n, n->in[B], rows, blocks * (block * bits / 8));
    w = as(n, cut(n, unpacked(n, w, (int)bits), k), INGOT_F32);
    scale = widen(n, matrix(n, scale, rows, blocks));
    if (zero && ingot_dtype_of(zero) == INGOT_U8)
        zero =
            as(n, cut(n, unpacked(n, matrix(n, zero, rows, bytes), (int)bits), blocks), INGOT_F32);
    else if (zero)
        zero = widen(n, matrix(n, zero, rows, blocks));
    ingot_tensor *p[2] = {scale, zero};
    const bool whole = !groups && k == blocks * block;
    if (whole && !ingot_is_poison(w))
        w = ingot_reshape_c(n->c, w, 3, (int64_t[]){rows, blocks, block});
    for (int i = 0; i < 2; i++)
        if (p[i] && !ingot_is_poison(p[i]) && !ingot_is_poison(w))
            p[i] = whole    ? ingot_reshape_c(n->c, p[i], 3, (int64_t[]){rows, blocks, 1})
                   : groups ? ingot_take(n->c, p[i], groups, 1)
                            : spread_blocks(n, p[i], w, 1, block);
    w = p[1] ? ingot_sub(n->c, w, p[1]) : ingot_add_c(n->c, w, -(double)(1 << (bits - 1)));
    w = ingot_mul(n->c, w, p[0]);
    if (ingot_is_poison(w))
        return w;
    w = matrix(n, w, rows, k);
    return ingot_is_poison(w)
               ? w
               : ingot_linear(n->c, X, as(n, w, ingot_dtype_of(X)), optional_in(n, BIAS));
}

/* ---- MatMulBnb4 ----------------------------------------------------------------------------- */

/* The values of 4 bits: 0 is FP4 (a sign, two bits of exponent, one of mantissa), 1 is NF4,
 * quantiles of the normal distribution (Dettmers et al., QLoRA, 2023). */
static const double bnb4_values[2][16] = {
    {0, 0.005208333333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25, 0, -0.005208333333,
     -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25},
    {-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
     -0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725,
     0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
     0.7229568362236023, 1},
};

ingot_tensor *onnx_ms_matmul_bnb4(Lowering *n)
{
    int64_t k = attr_int(n, "K", 0), rows = attr_int(n, "N", 0),
            block = attr_int(n, "block_size", 0);
    int64_t type = attr_int(n, "quant_type", 0), sixteen = 16;
    if (!block_known(n, block) || n->failed)
        return ingot_poison(n->c);
    if (k < 1 || rows < 1 || k > INT32_MAX || rows > INT32_MAX || type < 0 || type > 1)
        return fault(n, "its K, N and quant_type are %lld, %lld, %lld", (long long)k,
                     (long long)rows, (long long)type);
    int64_t count = k * rows, blocks = (count + block - 1) / block;
    ingot_tensor *b = ingot_reshape_c(n->c, n->in[1], 1, (int64_t[]){(count + 1) / 2}), *half[2];
    half[0] = ingot_shr(n->c, b, ingot_scalar_i(n->c, INGOT_U8, 4));
    half[1] = ingot_and(n->c, b, ingot_scalar_i(n->c, INGOT_U8, 15));
    b = ingot_stack(n->c, 2, half, 1);
    if (ingot_is_poison(b))
        return b;
    b = cut(n, ingot_flatten(n->c, b, 0, 2), count);
    ingot_tensor *w = ingot_take(n->c, const_f64(n, INGOT_F32, 1, &sixteen, bnb4_values[type]),
                                 as(n, b, INGOT_I64), 0);
    ingot_tensor *scale = widen(n, ingot_reshape_c(n->c, n->in[2], 1, &blocks));
    if (ingot_is_poison(w) || ingot_is_poison(scale))
        return ingot_poison(n->c);
    w = matrix(n, ingot_mul(n->c, w, spread_blocks(n, scale, w, 0, block)), rows, k);
    w = ingot_is_poison(w) ? w : as(n, w, ingot_dtype_of(X));
    return attr_int(n, "transB", 1) ? ingot_linear(n->c, X, w, NULL) : ingot_matmul(n->c, X, w);
}

/* ---- GatherBlockQuantized ------------------------------------------------------------------- */

/* data, scales and zero points of the same blocks -> numbers */
static ingot_tensor *block_values(Lowering *n, ingot_tensor *x, ingot_tensor *scale,
                                  ingot_tensor *zero, double usual, int axis, int64_t block)
{
    if (ingot_is_poison(x) || ingot_is_poison(scale) || (zero && ingot_is_poison(zero)))
        return ingot_poison(n->c);
    ingot_dtype to = ingot_dtype_of(scale);
    int64_t size;
    if (!block && ingot_dim_is_const(ingot_shape(x, axis), &size))
        block = size;
    x = as(n, x, INGOT_F32);
    if (zero)
        x = ingot_sub(n->c, x, spread_blocks(n, as(n, zero, INGOT_F32), x, axis, block));
    else if (usual != 0)
        x = ingot_add_c(n->c, x, -usual);
    return as(n, ingot_mul(n->c, x, spread_blocks(n, widen(n, scale), x, axis, block)), to);
}

ingot_tensor *onnx_ms_gather_block_quantized(Lowering *n)
{
    ingot_tensor *data = X, *at = n->in[1], *scale = n->in[2], *zero = optional_in(n, 3);
    int64_t bits = attr_int(n, "bits", 4), block = attr_int(n, "block_size", 128), blocks;
    int gather, quantize, rank = ingot_rank(data);
    bool packed = ingot_dtype_of(data) == INGOT_U8;
    if (!axis_in(n, attr_int(n, "gather_axis", 0), rank, &gather) ||
        !axis_in(n, attr_int(n, "quantize_axis", 1), rank, &quantize) ||
        (block && !block_known(n, block)) || (packed && !bits_known(n, bits)))
        return ingot_poison(n->c);
    if (ingot_rank(scale) != rank || (zero && ingot_rank(zero) != rank))
        return fault(n, "its scales and zero points do not have the rank of its data");
    if (block == 0 && !is_float(data))
        return fault(n, "its block_size is 0");
    double usual = packed ? (double)(1 << (bits - 1)) : 0;
    if (gather == quantize) {
        if (packed)
            return fault(n, "it gathers along the axis of its blocks");
        return ingot_take(n->c, block_values(n, data, scale, zero, usual, quantize, block), at,
                          gather);
    }
    data = ingot_take(n->c, data, at, gather);
    scale = ingot_take(n->c, scale, at, gather);
    zero = zero ? ingot_take(n->c, zero, at, gather) : NULL;
    if (ingot_is_poison(data) || ingot_is_poison(scale))
        return ingot_poison(n->c);
    quantize += quantize > gather ? ingot_rank(at) - 1 : 0;
    if (packed) {
        int last = ingot_rank(scale) - 1;
        data = unpacked(n, data, (int)bits);
        if (!ingot_dim_is_const(ingot_shape(scale, last), &blocks))
            return unsupported(n, "the last dim of its scales is not known when compiling");
        zero = zero ? cut(n, unpacked(n, zero, (int)bits), blocks) : NULL;
    }
    return block_values(n, data, scale, zero, usual, quantize, block);
}
