/* precision.c - f32 products of matrices by bf16 or f16, which matrix units multiply many times
 * faster.
 *
 * A number is a sum of numbers of bf16, each the rest that the ones before leave: x = h + l (+
 * 2^-17 x), or h + m + l (+ 2^-25 x). The products of the parts that matter are the terms of one
 * longer sum:
 *
 *     bf16     h h
 *     bf16x3   l h + h h + h l                  Markidis et al., NVIDIA Tensor Core
 *                                               Programmability, Performance & Precision, 2018
 *     bf16x6   l h + m h + m m + h m + h h + h l     Henry, Tang, Heinecke, Leveraging the bfloat16
 *                                                    Artificial Intelligence Datatype, 2019
 *
 *     tf32     x and w without their last 13 bits, as matrix units of GPUs read them
 *     narrow   h h of f16 where x or w is no wider: what one has is not changed, and the other one
 *              is rounded (weights of a language model; its cache of keys)
 *
 * What is summed is a sum of products then, each of two stored parts.  A unit's fragments are used
 * again by the terms that share a part, so these follow each other.  Where products are to have one
 * term (ingot_one_product()) the parts are laid one behind the other along the axis that is
 * summed. */
#include "builder.h"
#include "ops.h"

enum { MOST_PARTS = 3, DEEP = 16 /* nodes that are looked at below an operand */ };
typedef struct {
    ingot_dtype type;
    int parts, n;
    int x[MOST_PRODUCTS], w[MOST_PRODUCTS]; /* which part: 0 is the first */
} SplitTerms;
static const SplitTerms terms_of[] = {
    [INGOT_PRECISION_BF16] = {INGOT_BF16, 1, 1, {0}, {0}},
    [INGOT_PRECISION_F16] = {INGOT_F16, 1, 1, {0}, {0}},
    [INGOT_PRECISION_BF16X3] = {INGOT_BF16, 2, 3, {1, 0, 0}, {0, 0, 1}},
    [INGOT_PRECISION_BF16X6] = {INGOT_BF16, 3, 6, {2, 1, 1, 0, 0, 0}, {0, 0, 1, 1, 0, 2}},
};

static void split(ingot_context *c, ingot_tensor *x, const SplitTerms *t, ingot_tensor **part)
{
    for (int i = 0; i < t->parts; i++) {
        part[i] = ingot_cast(c, x, t->type);
        x = ingot_sub(c, x, ingot_cast(c, part[i], INGOT_F32));
    }
}

static bool moves_only(const Node *n)
{
    return op_arranges(n->op) || n->op == OP_SHRINK;
}

/* What x has been widened from, if that is of this type; NULL: it has not been. */
static Node *narrow_of(Context *c, Node *x, ingot_dtype type, int deep)
{
    if (x->op == OP_CAST)
        return x->src[0]->dtype == type ? x->src[0] : NULL;
    Node *below = deep && moves_only(x) ? narrow_of(c, x->src[0], type, deep - 1) : NULL;
    return below ? move_again(c, x, below) : NULL;
}

/* Is it made of numbers of at most 16 bits, as f16 is, and weights in blocks are? */
static bool is_of_narrow(const Node *n, int deep)
{
    if (n->op == OP_CAST)
        return dtype_info[n->src[0]->dtype].bytes <= 2;
    const bool moves = moves_only(n) || n->op == OP_CONCAT;
    bool any = false,
         all = deep && (moves || n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL);
    for (uint32_t i = 0; i < n->nsrc && all; i++) {
        Node *x = n->src[i];
        if (x->dtype == INGOT_INDEX || (!moves && uniform(x)))
            continue;
        all = is_of_narrow(x, deep - 1);
        any = true;
    }
    return all && any;
}

bool ops_is_of_narrow(const Node *x)
{
    return is_of_narrow(x, DEEP);
}

Node *ops_widened_from(Context *c, Node *x, ingot_dtype type)
{
    return narrow_of(c, x, type, DEEP);
}

/* Rounded to that type, in front of what leaves its rows as they are, so that whoever computes it
 * stores it so. */
static Node *stored_as(Context *c, Node *x, ingot_dtype type)
{
    if (x->op == OP_RESHAPE && x->src[0]->rank &&
        x->src[0]->shape[x->src[0]->rank - 1] == x->shape[x->rank - 1])
        return move_again(c, x, stored_as(c, x->src[0], type));
    return ingot_contiguous(c, ingot_cast(c, x, type));
}

/* Does it lie in memory in any case, below what moves it, or in the order in which it is read? */
static bool lies_ready(const Node *n)
{
    bool turned = false;
    for (; moves_only(n); n = n->src[0])
        turned |= n->op == OP_PERMUTE;
    return !turned || n->op == OP_CONCAT || op_info[n->op].cls == LEAF;
}

ingot_tensor *ops_stored(ingot_context *c, ingot_tensor *x, ingot_dtype type)
{
    const bool lies = !ingot_is_poison(x) && x->dtype == type && lies_ready(x);
    return lies ? x : ingot_contiguous(c, ingot_cast(c, x, type));
}

/* An operand of products of one term: what has been widened from their type is read as it was,
 * and what is computed from few bits is stored (dequantised) once for all rows. */
static Node *one_part(Context *c, Node *x, ingot_dtype type, bool weight)
{
    Node *narrow = narrow_of(c, x, type, DEEP);
    if (narrow)
        return weight || lies_ready(narrow) ? narrow : ingot_contiguous(c, narrow);
    return weight && !is_of_narrow(x, DEEP) ? ingot_cast(c, x, type) : stored_as(c, x, type);
}

/* How many rows there are along the axes that the other operand does not have. */
double ops_rows_beside(const Node *x, const Node *other)
{
    double rows = 1;
    for (int i = 0; i + 1 < x->rank; i++) {
        const int at = i + other->rank - x->rank;
        if (at < 0 || idx_is(other->shape[at], 1))
            rows *= (double)x->shape[i]->hi;
    }
    return rows;
}

/* The precision of products of these: of weights that are narrow, as narrow; bf16 has numbers that
 * f16 has not, so beside it other operands are rounded to it, too. */
static ingot_precision precision_of_products(ingot_context *c, Node *x, Node *w)
{
    ingot_precision p = ingot_precision_here(c);
    const bool poison = ingot_is_poison(x) || ingot_is_poison(w);
    if (p == INGOT_PRECISION_NARROW)
        p = ingot_one_product(c) && !poison && (is_of_narrow(w, DEEP) || is_of_narrow(x, DEEP))
                ? INGOT_PRECISION_F16
                : INGOT_PRECISION_F32;
    if (p == INGOT_PRECISION_F16 && ingot_one_product(c) && !poison &&
        (narrow_of(c, w, INGOT_BF16, DEEP) || narrow_of(c, x, INGOT_BF16, DEEP)))
        return INGOT_PRECISION_BF16;
    return p;
}

bool ops_few_rows(ingot_context *c, ingot_tensor *x, ingot_tensor *w)
{
    enum { FEW = 16, SOME = 2 };
    const ingot_precision p = precision_of_products(c, x, w);
    if ((p != INGOT_PRECISION_F16 && p != INGOT_PRECISION_BF16) || !ingot_one_product(c))
        return false;
    /* weights that lie as units read them are read once for all rows */
    const bool lies = ingot_shared_keys(c) &&
                      (narrow_of(c, w, INGOT_F16, DEEP) || narrow_of(c, w, INGOT_BF16, DEEP));
    return (is_of_narrow(w, DEEP) && ops_rows_beside(x, w) < (lies ? SOME : FEW)) ||
           (is_of_narrow(x, DEEP) && ops_rows_beside(w, x) < FEW);
}

bool ops_shares_keys(ingot_context *c, ingot_tensor *rows, ingot_tensor *kv)
{
    enum { FEW = 16, LEAST = 2 };
    int64_t heads, kv_heads;
    if (!ingot_shared_keys(c) || !ingot_one_product(c) ||
        ingot_precision_here(c) != INGOT_PRECISION_NARROW || ingot_is_poison(rows) ||
        ingot_is_poison(kv) || ingot_rank(rows) != 4 || ingot_rank(kv) != 4 ||
        !ingot_dim_is_const(ingot_shape(rows, 1), &heads) ||
        !ingot_dim_is_const(ingot_shape(kv, 1), &kv_heads) || kv_heads < 1)
        return false;
    const ingot_dtype d = ingot_dtype_of(kv);
    const int64_t per = heads / kv_heads;
    return (d == INGOT_F16 || d == INGOT_BF16) && per >= LEAST && per < FEW &&
           ingot_dim_hi(ingot_shape(rows, 2)) == 1 && !ingot_dim_is_const(ingot_shape(kv, 2), NULL);
}

ingot_tensor *ops_dequantised(ingot_context *c, ingot_tensor *kv)
{
    const bool few_bits = !ingot_is_poison(kv) && ingot_dtype_of(kv) == INGOT_F32 &&
                          !narrow_of(c, kv, INGOT_F16, DEEP) &&
                          !narrow_of(c, kv, INGOT_BF16, DEEP) && is_of_narrow(kv, DEEP);
    const bool units = ingot_one_product(c) && ingot_precision_here(c) == INGOT_PRECISION_NARROW;
    return few_bits && units ? ingot_contiguous(c, ingot_cast(c, kv, INGOT_F16)) : kv;
}

/* The parts that the terms have, one behind the other. */
static ingot_tensor *laid(ingot_context *c, ingot_tensor **part, int axis, const SplitTerms *t,
                          const int *which)
{
    ingot_tensor *all[MOST_PRODUCTS];
    for (int i = 0; i < t->n; i++)
        all[i] = part[which[i]];
    return ingot_concat(c, t->n, all, axis);
}

/* The first 19 bits: what units for tf32 read of a number. */
static ingot_tensor *cut(ingot_context *c, ingot_tensor *x)
{
    ingot_tensor *bits = ingot_bitcast(c, x, INGOT_U32);
    bits = ingot_and(c, bits, ingot_like(c, bits, 0xffffe000));
    return ingot_bitcast(c, bits, INGOT_F32);
}

/* Few products gain nothing: operands have to be split first. Units multiply terms in pairs, fours
 * or eights. */
static bool is_for_unit(ingot_precision p, ingot_tensor *x, ingot_tensor *w, int w_axis)
{
    enum { FEW = 16, STEP = 8 };
    if (p == INGOT_PRECISION_F32 || p == INGOT_PRECISION_1E5 || p == INGOT_PRECISION_Q8 ||
        p == INGOT_PRECISION_Q16 || ingot_is_poison(x) || ingot_is_poison(w) ||
        ingot_dtype_of(x) != INGOT_F32 || ingot_dtype_of(w) != INGOT_F32 ||
        !ingot_dim_is_const(ingot_shape(w, w_axis), NULL))
        return false;
    const int64_t terms = ingot_dim_lo(ingot_shape(w, w_axis));
    return p == INGOT_PRECISION_TF32 || (terms >= FEW && terms % STEP == 0);
}

Products ops_precision(ingot_context *c, ingot_tensor *x, int x_axis, ingot_tensor *w, int w_axis)
{
    Products out = {.x = {x}, .w = {w}, .n = 1};
    const ingot_precision p = precision_of_products(c, x, w);
    if (!is_for_unit(p, x, w, w_axis))
        return out;
    if (p == INGOT_PRECISION_TF32) {
        out.x[0] = cut(c, x);
        out.w[0] = cut(c, w);
        return out;
    }
    const SplitTerms *t = &terms_of[p];
    ingot_tensor *xs[MOST_PARTS], *ws[MOST_PARTS];
    if (ingot_one_product(c) && t->n == 1) {
        out.x[0] = one_part(c, x, t->type, false);
        out.w[0] = one_part(c, w, t->type, true);
        Node *stored = out.x[0];
        for (; stored->op == OP_RESHAPE && x->op == OP_RESHAPE; x = x->src[0])
            stored = stored->src[0]; /* as stored_as() has it */
        if (ingot_rounded_results(c) && stored->op == OP_KEEP)
            ingot_read_as(c, x, stored);
        return out;
    }
    split(c, x, t, xs);
    split(c, w, t, ws);
    if (ingot_one_product(c)) { /* a concat is stored */
        out.x[0] = laid(c, xs, x_axis, t, t->x);
        out.w[0] = laid(c, ws, w_axis, t, t->w);
        return out;
    }
    for (int i = 0; i < t->parts; i++)
        xs[i] = ingot_contiguous(c, xs[i]);
    if (t->parts == 1)
        ingot_read_as(c, x, xs[0]);
    else if (t->parts == 2) /* as many bytes as x itself, which then is not stored */
        ingot_read_as(c, x, ingot_add(c, ops_widen(c, xs[0]), ops_widen(c, xs[1])));
    out.n = t->n;
    for (int i = 0; i < t->n; i++) {
        out.x[i] = xs[t->x[i]];
        out.w[i] = ws[t->w[i]];
    }
    return out;
}

ingot_dtype ops_rounded_dtype(ingot_context *c)
{
    const ingot_precision p = ingot_precision_here(c);
    const bool rounds = p == INGOT_PRECISION_BF16 || p == INGOT_PRECISION_F16;
    return rounds && ingot_one_product(c) ? terms_of[p].type : INGOT_F32;
}

ingot_tensor *ops_result(ingot_context *c, ingot_dtype d, ingot_tensor *y)
{
    if (ingot_rounded_results(c) && d == ops_rounded_dtype(c) && d != INGOT_F32 &&
        !ingot_is_poison(y) && ingot_dtype_of(y) == INGOT_F32)
        y = ingot_cast(c, ingot_cast(c, y, d), INGOT_F32);
    return y;
}

bool ops_takes_parts(ingot_context *c, ingot_tensor *x)
{
    const ingot_precision p = ingot_precision_here(c);
    const bool parts = p == INGOT_PRECISION_BF16 || p == INGOT_PRECISION_F16 ||
                       p == INGOT_PRECISION_BF16X3 || p == INGOT_PRECISION_BF16X6;
    return parts && !ingot_one_product(c) && ingot_dtype_of(x) == INGOT_F32;
}

Products ops_parts(ingot_context *c, ingot_tensor *x, ingot_tensor *w)
{
    const SplitTerms *t = &terms_of[ingot_precision_here(c)];
    ingot_tensor *xs[MOST_PARTS], *ws[MOST_PARTS];
    Products out = {.n = t->n};
    split(c, x, t, xs);
    split(c, w, t, ws);
    for (int i = 0; i < t->n; i++) {
        out.x[i] = ingot_contiguous(c, xs[t->x[i]]);
        out.w[i] = ingot_contiguous(c, ws[t->w[i]]);
    }
    return out;
}

ingot_tensor *ops_products(ingot_context *c, ingot_tensor *sum, ingot_tensor *x, ingot_tensor *w)
{
    ingot_tensor *product = ingot_mul(c, ops_widen(c, x), ops_widen(c, w));
    return sum ? ingot_add(c, sum, product) : product;
}
