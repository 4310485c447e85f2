/*
 * gguf_weights.c - weights of any type, as expressions over the bytes in the file.
 *
 * A row of K weights is K / 32 (or 256) blocks of so many bytes, with numbers of few bits and
 * scales that they share:
 *
 *     Q4_0  | d f16 | 16 bytes |        w[i] = d (u[i] - 8),  u[i]: low digit of byte i, i < 16
 *                                                             u[i + 16]: high digit of byte i
 *     Q4_K  | d f16 | low f16 | 8 scales, 8 lows, of 6 bits | 128 bytes |
 *
 * Nothing is unpacked here but digits that stand for numbers of a list: each field is a slice of
 * the file's bytes [rows, blocks, bytes], read as the type that it has, and the arithmetic between
 * is nodes like any others. So what lies in memory is the compiler's decision (unpack.c, fuse.c),
 * and no copy of the weights as floats is made. Layouts of blocks:
 * https://github.com/ggml-org/ggml.
 */
#include <string.h>

#include "gguf_model.h"

/* A matrix as blocks. */
typedef struct {
    ingot_context *c;
    const char *name;
    const void *data;
    int64_t rows, blocks, bytes; /* bytes of a block */
} WeightBlocks;

/* `count` elements of a type from byte `at` of each block on: [rows, blocks, count]. WeightBlocks
 * have an even number of bytes, and their halves lie at even places. */
static ingot_tensor *field(const WeightBlocks *b, ingot_dtype d, int64_t at, int64_t count)
{
    const int64_t width = (int64_t)ingot_dtype_bytes(d),
                  dims[] = {b->rows, b->blocks, b->bytes / width};
    ingot_tensor *x = ingot_data(b->c, b->name, d, 3, dims, b->data);
    return ingot_slice(b->c, x, 2, ingot_dim_const(b->c, at / width), ingot_dim_const(b->c, count),
                       1);
}

/* [rows, blocks, d...] */
static ingot_tensor *shaped(const WeightBlocks *b, ingot_tensor *x, int n, const int64_t *d)
{
    int64_t dims[INGOT_MAX_RANK] = {b->rows, b->blocks};
    for (int i = 0; i < n; i++)
        dims[2 + i] = d[i];
    return ingot_reshape_c(b->c, x, 2 + n, dims);
}
#define SHAPED(b, x, ...)                                                 \
    shaped(b, x, (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), \
           (const int64_t[]){__VA_ARGS__})

static ingot_tensor *shifted(const WeightBlocks *b, ingot_tensor *x, int by)
{
    return by ? ingot_shr(b->c, x, ingot_scalar_i(b->c, INGOT_U8, by)) : x;
}

static ingot_tensor *masked(const WeightBlocks *b, ingot_tensor *x, int mask)
{
    return ingot_and(b->c, x, ingot_scalar_i(b->c, INGOT_U8, mask));
}

/* The digits of bytes, lowest first, along a new axis. */
static ingot_tensor *digits(const WeightBlocks *b, ingot_tensor *x, int bits, int axis)
{
    ingot_tensor *part[8];
    for (int i = 0; i < 8 / bits; i++)
        part[i] = masked(b, shifted(b, x, i * bits), (1 << bits) - 1);
    return ingot_stack(b->c, 8 / bits, part, axis);
}

/* low | high << bits, bytes both */
static ingot_tensor *joined(const WeightBlocks *b, ingot_tensor *low, ingot_tensor *high, int bits)
{
    return ingot_or(b->c, low, ingot_shl(b->c, high, ingot_scalar_i(b->c, INGOT_U8, bits)));
}

static ingot_tensor *wide(const WeightBlocks *b, ingot_tensor *x)
{
    return ingot_cast(b->c, x, INGOT_F32);
}

/* An f16 of each block: f32 [rows, blocks, 1]. */
static ingot_tensor *half(const WeightBlocks *b, int64_t at)
{
    return wide(b, field(b, INGOT_F16, at, 1));
}

/* ---- blocks of 32 ------------------------------------------------------------------------------
 */

/* 16 bytes: the low digits of all, then the high ones: u8 [rows, blocks, 32] */
static ingot_tensor *nibbles(const WeightBlocks *b, int64_t at)
{
    return SHAPED(b, digits(b, field(b, INGOT_U8, at, 16), 4, 2), 32);
}

/* Bit i of 4 bytes belongs to element i. */
static ingot_tensor *fifth_bits(const WeightBlocks *b, int64_t at, ingot_tensor *low)
{
    ingot_tensor *bits = SHAPED(b, digits(b, field(b, INGOT_U8, at, 4), 1, 3), 32);
    return joined(b, low, bits, 4);
}

static ingot_tensor *q4_0(const WeightBlocks *b)
{
    return ingot_mul(b->c, half(b, 0), ingot_add_c(b->c, wide(b, nibbles(b, 2)), -8));
}

static ingot_tensor *q4_1(const WeightBlocks *b)
{
    return ingot_add(b->c, ingot_mul(b->c, half(b, 0), wide(b, nibbles(b, 4))), half(b, 2));
}

static ingot_tensor *q5_0(const WeightBlocks *b)
{
    ingot_tensor *u = fifth_bits(b, 2, nibbles(b, 6));
    return ingot_mul(b->c, half(b, 0), ingot_add_c(b->c, wide(b, u), -16));
}

static ingot_tensor *q5_1(const WeightBlocks *b)
{
    ingot_tensor *u = fifth_bits(b, 4, nibbles(b, 8));
    return ingot_add(b->c, ingot_mul(b->c, half(b, 0), wide(b, u)), half(b, 2));
}

static ingot_tensor *q8_0(const WeightBlocks *b)
{
    return ingot_mul(b->c, half(b, 0), wide(b, field(b, INGOT_I8, 2, 32)));
}

/* ---- blocks of 256, whose parts have small scales ---------------------------------------------
 */

/* Scales and lows of 8 parts, 6 bits each, in 12 bytes: of the first four parts in bytes 0..3
 * (4..7: lows); of the others the low 4 bits in bytes 8..11 (lows: the high digits), the high 2
 * above the first ones'. [rows, blocks, 8] */
static ingot_tensor *small_scales(const WeightBlocks *b, int64_t at, bool lows)
{
    ingot_tensor *first = field(b, INGOT_U8, at + 4 * lows, 4), *part[2];
    part[0] = masked(b, first, 63);
    part[1] = masked(b, shifted(b, field(b, INGOT_U8, at + 8, 4), 4 * lows), 15);
    part[1] = joined(b, part[1], shifted(b, first, 6), 4);
    return wide(b, ingot_concat(b->c, 2, part, 2));
}

/* d scale u - low m, of 8 parts of 32 numbers u [rows, blocks, 4, 2, 32] */
static ingot_tensor *k_parts(const WeightBlocks *b, ingot_tensor *u)
{
    ingot_tensor *scale = ingot_mul(b->c, half(b, 0), small_scales(b, 4, false));
    ingot_tensor *low = ingot_mul(b->c, half(b, 2), small_scales(b, 4, true));
    u = ingot_mul(b->c, SHAPED(b, scale, 4, 2, 1), wide(b, u));
    return ingot_sub(b->c, u, SHAPED(b, low, 4, 2, 1));
}

/* 128 bytes: 32 of them have the low digits of a part and the high ones of the next. */
static ingot_tensor *k_nibbles(const WeightBlocks *b, int64_t at)
{
    return digits(b, SHAPED(b, field(b, INGOT_U8, at, 128), 4, 32), 4, 3);
}

static ingot_tensor *q4_k(const WeightBlocks *b)
{
    return k_parts(b, k_nibbles(b, 16));
}

static ingot_tensor *q5_k(const WeightBlocks *b)
{
    ingot_tensor *bits = digits(b, field(b, INGOT_U8, 16, 32), 1, 2); /* bit i: part i */
    return k_parts(b, joined(b, k_nibbles(b, 48), SHAPED(b, bits, 4, 2, 32), 4));
}

/* Two halves of 128: of 64 bytes the low digits are 64 numbers, the high ones the next; two bits
 * above them lie in 32 bytes, of four numbers each. 16 scales with a sign. */
static ingot_tensor *q6_k(const WeightBlocks *b)
{
    ingot_tensor *low = digits(b, SHAPED(b, field(b, INGOT_U8, 0, 128), 2, 64), 4, 3);
    ingot_tensor *high = digits(b, SHAPED(b, field(b, INGOT_U8, 128, 64), 2, 32), 2, 3);
    ingot_tensor *u = joined(b, SHAPED(b, low, 16, 16), SHAPED(b, high, 16, 16), 4);
    ingot_tensor *scale = ingot_mul(b->c, half(b, 208), wide(b, field(b, INGOT_I8, 192, 16)));
    return ingot_mul(b->c, SHAPED(b, scale, 16, 1), ingot_add_c(b->c, wide(b, u), -32));
}

/* 64 bytes hold 256 numbers of 2 bits: of each half of them digit j is numbers 32 j .. 32 j + 31.
 */
static ingot_tensor *k_pairs(const WeightBlocks *b, int64_t at)
{
    return digits(b, SHAPED(b, field(b, INGOT_U8, at, 64), 2, 32), 2, 3);
}

static ingot_tensor *q2_k(const WeightBlocks *b)
{
    ingot_tensor *small = field(b, INGOT_U8, 0, 16), *u = SHAPED(b, k_pairs(b, 16), 16, 16);
    ingot_tensor *scale = ingot_mul(b->c, half(b, 80), wide(b, masked(b, small, 15)));
    ingot_tensor *low = ingot_mul(b->c, half(b, 82), wide(b, shifted(b, small, 4)));
    u = ingot_mul(b->c, SHAPED(b, scale, 16, 1), wide(b, u));
    return ingot_sub(b->c, u, SHAPED(b, low, 16, 1));
}

/* The third bit is bit 4 h + j of 32 bytes. Scales: low digits in bytes 0..7, then the high ones;
 * two bits above them in bytes 8..11; 32 is none. */
static ingot_tensor *q3_k(const WeightBlocks *b)
{
    ingot_tensor *top = SHAPED(b, digits(b, field(b, INGOT_U8, 0, 32), 1, 2), 2, 4, 32);
    ingot_tensor *u = SHAPED(b, joined(b, k_pairs(b, 32), top, 2), 16, 16);
    ingot_tensor *low = SHAPED(b, digits(b, field(b, INGOT_U8, 96, 8), 4, 2), 16);
    ingot_tensor *high = SHAPED(b, digits(b, field(b, INGOT_U8, 104, 4), 2, 2), 16);
    ingot_tensor *scale = ingot_add_c(b->c, wide(b, joined(b, low, high, 4)), -32);
    scale = ingot_mul(b->c, half(b, 108), scale);
    return ingot_mul(b->c, SHAPED(b, scale, 16, 1), ingot_add_c(b->c, wide(b, u), -4));
}

/* ---- numbers of a table -----------------------------------------------------------------------
 */

/* A digit of 4 bits stands for one of 16 bytes. From byte `at` of each block on there are parts of
 * 32 digits, each like nibbles(): i8 [rows, blocks, parts, 32]. These alone are unpacked here: no
 * product of bytes looks numbers up, and it would have to for each token. */
static ingot_tensor *listed(const WeightBlocks *b, const int8_t list[16], int64_t at, int64_t parts)
{
    const int64_t blocks = b->rows * b->blocks, dims[] = {b->rows, b->blocks, parts, 32};
    int8_t *out = ingot_alloc(b->c, (size_t)(blocks * parts * 32)), *next = out;
    for (int64_t i = 0; i < blocks; i++) {
        const uint8_t *digit = (const uint8_t *)b->data + i * b->bytes + at;
        for (int64_t p = 0; p < parts; p++, digit += 16)
            for (int k = 0; k < 32; k++)
                *next++ = list[k < 16 ? digit[k] & 15 : digit[k - 16] >> 4];
    }
    return ingot_data(b->c, b->name, INGOT_I8, 4, dims, out);
}

/* Of IQ4_NL and IQ4_XS: the nearer to 0, the nearer to each other. */
static const int8_t dense[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};
/* Of MXFP4: floats of 4 bits (1 sign, 2 exponent, 1 fraction), doubled. */
static const int8_t fp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static ingot_tensor *iq4_nl(const WeightBlocks *b)
{
    return ingot_mul(b->c, half(b, 0), SHAPED(b, wide(b, listed(b, dense, 2, 1)), 32));
}

/* 8 parts of 32 numbers; their scales, less 32, have low digits in 4 bytes and the high 2 bits, all
 * 16 of them, before that. */
static ingot_tensor *iq4_xs(const WeightBlocks *b)
{
    ingot_tensor *high = SHAPED(b, digits(b, field(b, INGOT_U8, 2, 2), 2, 3), 8);
    ingot_tensor *low = SHAPED(b, digits(b, field(b, INGOT_U8, 4, 4), 4, 3), 8);
    ingot_tensor *scale = ingot_add_c(b->c, wide(b, joined(b, low, high, 4)), -32);
    scale = ingot_mul(b->c, half(b, 0), scale);
    return ingot_mul(b->c, SHAPED(b, scale, 8, 1), wide(b, listed(b, dense, 8, 8)));
}

/* A byte e of each block stands for 2^(e - 128): of the bits of an f32 the exponent, and 1 less for
 * the doubled numbers; e below 2 is none of those that are written so. */
static ingot_tensor *mxfp4(const WeightBlocks *b)
{
    ingot_tensor *e = ingot_cast(b->c, field(b, INGOT_U8, 0, 1), INGOT_I32);
    ingot_tensor *one = ingot_scalar_i(b->c, INGOT_I32, 1),
                 *bits = ingot_scalar_i(b->c, INGOT_I32, 23);
    e = ingot_shl(b->c, ingot_sub(b->c, ingot_max(b->c, e, one), one), bits);
    ingot_tensor *scale = ingot_bitcast(b->c, e, INGOT_F32);
    return ingot_mul(b->c, scale, SHAPED(b, wide(b, listed(b, fp4, 1, 1)), 32));
}

/* ---- all types ---------------------------------------------------------------------------------
 */

static const struct {
    ingot_gguf_type type;
    ingot_dtype dtype; /* of plain numbers */
    ingot_tensor *(*values)(
        const WeightBlocks *); /* f32 [rows, blocks, ...]; NULL: plain numbers */
} types[] = {
    {INGOT_GGUF_F32, INGOT_F32, NULL},     {INGOT_GGUF_F16, INGOT_F16, NULL},
    {INGOT_GGUF_BF16, INGOT_BF16, NULL},   {INGOT_GGUF_Q4_0, INGOT_U8, q4_0},
    {INGOT_GGUF_Q4_1, INGOT_U8, q4_1},     {INGOT_GGUF_Q5_0, INGOT_U8, q5_0},
    {INGOT_GGUF_Q5_1, INGOT_U8, q5_1},     {INGOT_GGUF_Q8_0, INGOT_U8, q8_0},
    {INGOT_GGUF_Q2_K, INGOT_U8, q2_k},     {INGOT_GGUF_Q3_K, INGOT_U8, q3_k},
    {INGOT_GGUF_Q4_K, INGOT_U8, q4_k},     {INGOT_GGUF_Q5_K, INGOT_U8, q5_k},
    {INGOT_GGUF_Q6_K, INGOT_U8, q6_k},     {INGOT_GGUF_IQ4_NL, INGOT_U8, iq4_nl},
    {INGOT_GGUF_IQ4_XS, INGOT_U8, iq4_xs}, {INGOT_GGUF_MXFP4, INGOT_U8, mxfp4},
};

enum { TYPES = sizeof types / sizeof *types };

static int type_index(int type)
{
    for (int i = 0; i < TYPES; i++)
        if ((int)types[i].type == type)
            return i;
    return -1;
}

bool gguf_type_known(int type)
{
    return type_index(type) >= 0;
}

static ingot_tensor *weight_of(GgufModel *m, const ingot_gguf_tensor *t)
{
    const int i = type_index(t->type);
    const int64_t dims[] = {(int64_t)t->dims[1], (int64_t)t->dims[0]};
    unsigned block = 1, bytes = 1;
    ingot_tensor *w;
    ingot_set_origin(m->c, t->name, ingot_gguf_type_name(t->type, &block, &bytes));
    if (i < 0)
        return ingot_error(m->c, INGOT_UNSUPPORTED, "weights of this type are not supported");
    const void *data = m->data ? m->data(m, t) : t->data;
    if (!data)
        return ingot_error(m->c, INGOT_IO, "out of memory");
    if (types[i].values) {
        const WeightBlocks b = {m->c, t->name, data, dims[0], dims[1] / block, bytes};
        w = types[i].values(&b);
    } else {
        w = ingot_data(m->c, t->name, types[i].dtype, 2, dims, data);
        w = ingot_cast(m->c, w, INGOT_F32);
    }
    ingot_set_origin(m->c, NULL, NULL);
    return ingot_reshape_c(m->c, w, 2, dims);
}

ingot_tensor *gguf_weight(GgufModel *m, const ingot_gguf_tensor *t)
{
    ingot_tensor **w = &m->weights[t - m->tensors];
    if (!*w)
        *w = weight_of(m, t);
    return *w;
}

ingot_tensor *gguf_vector(GgufModel *m, const ingot_gguf_tensor *t)
{
    const int64_t n = (int64_t)t->dims[0];
    return ingot_reshape_c(m->c, gguf_weight(m, t), 1, &n);
}
