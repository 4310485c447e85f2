/* ops.h - small helpers that the files of the op library share.  Only ingot.h is used: the op
 * library is written as any user of the builder could write it. */
#ifndef OPS_H
#define OPS_H

#include "ingot.h"

/* The dtype that sums and statistics of d are computed in: f32 for the narrow floats. */
ingot_dtype ops_wide(ingot_dtype d);
/* x in that dtype. */
ingot_tensor *ops_widen(ingot_context *, ingot_tensor *x);
bool ops_is_float(ingot_tensor *);
/* A possibly negative axis as 0..rank-1; reports and gives -1 if it is neither. */
int ops_axis(ingot_context *, const char *what, ingot_tensor *, int axis);
/* The dims of x, written to dims[]; returns its rank. */
int ops_dims(ingot_tensor *x, ingot_dim **dims);
/* x [C] (any dims) as [1, C, 1, ...] of rank `rank`: for per-channel operands. */
ingot_tensor *ops_channel(ingot_context *, ingot_tensor *x, int rank);
/* reshape with the shape of another tensor */
ingot_tensor *ops_reshape_like(ingot_context *, ingot_tensor *x, ingot_tensor *like);
/* (precision.c) Operands of the products whose sum over an axis of each stands for one of f32, as
 * the context's precision has them; and one more of such products, in the wide dtype (sum: NULL, or
 * those before). */
enum { MOST_PRODUCTS = 6 };
typedef struct {
    ingot_tensor *x[MOST_PRODUCTS], *w[MOST_PRODUCTS];
    int n;
} Products;
Products ops_precision(ingot_context *, ingot_tensor *x, int x_axis, ingot_tensor *w, int w_axis);
/* (f8_products.c) The same of weights and what they are multiplied by, over the last axis of each,
 * where --precision fp8 has it so; false: it does not. */
bool ops_f8_product(ingot_context *, ingot_tensor *x, ingot_tensor *w, Products *);
/* (precision.c) How many rows of x there are along the axes that the other operand does not have;
 * is x made of numbers of at most 16 bits? What it has been widened from, if that is of this type,
 * or NULL. */
double ops_rows_beside(const ingot_tensor *x, const ingot_tensor *other);
bool ops_is_of_narrow(const ingot_tensor *x);
ingot_tensor *ops_widened_from(ingot_context *, ingot_tensor *x, ingot_dtype);
/* (precision.c) A sum of products of numbers of this type: rounded to it for all who read it, where
 * that is asked for (ingot_set_rounded_results()). */
ingot_tensor *ops_result(ingot_context *, ingot_dtype, ingot_tensor *y);
/* (precision.c) What the node that is built rounds both operands of f32 to, as one product; or
 * f32. */
ingot_dtype ops_rounded_dtype(ingot_context *);
/* (precision.c) Have products whose sum over the last axis is wanted so few rows, beside an operand
 * of f16 or of blocks, that a matrix unit has nothing to do? Bytes of that operand are what takes
 * the time, and numbers of the other one stay as exact as they are. */
bool ops_few_rows(ingot_context *, ingot_tensor *x, ingot_tensor *w);
/* (precision.c) Few queries [batch, heads, rows, size] beside keys, or shares beside values, of
 * f16 or bf16 [batch, kv_heads, t, size], where a run says t: are both for units of groups that
 * meet (ingot_set_shared_keys())? */
bool ops_shares_keys(ingot_context *, ingot_tensor *rows, ingot_tensor *kv);
/* (precision.c) Keys or values that are computed from few bits (bytes and scales of blocks), where
 * units multiply f16: stored as f16, once for all rows, so that they are read as f16 is. */
ingot_tensor *ops_dequantised(ingot_context *, ingot_tensor *kv);
/* x of that type in memory: as it is, or below what moves it, if it is stored there anyhow. */
ingot_tensor *ops_stored(ingot_context *, ingot_tensor *x, ingot_dtype type);
/* (precision.c) Does the node that is built multiply parts of x, and not x as it is? */
bool ops_takes_parts(ingot_context *, ingot_tensor *x);
/* (precision.c) Then these: stored, whatever there are of terms. */
Products ops_parts(ingot_context *, ingot_tensor *x, ingot_tensor *w);
/* (block_products.c) The sum over the last axis of x w, of a constant w whose blocks have scales,
 * by products of bytes where the precision says so; NULL: it does not, or w has none. */
ingot_tensor *ops_block_product(ingot_context *, ingot_tensor *x, ingot_tensor *w);
/* (block_digits.c) u8, packed so that four neighbours are at one place of four bytes. */
ingot_tensor *ops_block_digits(ingot_context *, ingot_tensor *u);
/* (block_products.c) w, made of what such a product stores: rows that are looked up in an embedding
 * lie in memory once with the head that is multiplied. w itself where there is no such product. */
ingot_tensor *ops_block_weight(ingot_context *, ingot_tensor *w);
ingot_tensor *ops_products(ingot_context *, ingot_tensor *sum, ingot_tensor *x, ingot_tensor *w);
/* (low_rank.c) Is w, or what it is a transposition of, the result of ingot_low_rank()? Then, as
 * that has them: w + p q. */
typedef struct {
    ingot_tensor *w, *p, *q;
} LowRank;
bool ops_low_rank(ingot_context *, ingot_tensor *w, LowRank *);
/* (low_rank.c) The convolution with such a weight, of one group; otherwise as ingot_conv(). */
ingot_tensor *ops_low_rank_conv(ingot_context *, ingot_tensor *x, const LowRank *, ingot_tensor *b,
                                const int64_t *strides, const int64_t *dilations,
                                const int64_t *pads_lo, const int64_t *pads_hi);
/* (ops_conv.c) x [N, C, d...] with strides[i] - 1 zeros behind each element along spatial axis
 * i. */
ingot_tensor *ops_zeros_between(ingot_context *, ingot_tensor *x, const int64_t *strides);
/* A checked, shared constant: i64 table of n entries, copied. */
ingot_tensor *ops_table_i(ingot_context *, int64_t n, const int64_t *);
ingot_tensor *ops_table_f(ingot_context *, int64_t n, const double *, ingot_dtype);

/* The greatest, whose gradient goes to the first element that equals it, as in the max pools of
 * other frameworks; that of ingot_reduce() goes to all of them in equal parts. */
ingot_tensor *ingot_max_first(ingot_context *, ingot_tensor *, unsigned axes, bool keepdims);

#endif
