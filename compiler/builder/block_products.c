/* block_products.c - products of weights in blocks, as sums of products of bytes.
 *
 * Weights of few bits are integers with scales that the terms of a block share (and lows), as the
 * graph says of whatever file they come from. With --precision q8 the other operand becomes bytes
 * with a scale for each block, too, and what is added within a block are integers:
 *
 *     sum over k of x[m,k] * (s[n,b] * (u[n,k] - z) + l[n,b])                  k = (b, j)
 *
 *         x[m,k] ~ d[m,b] q[m,k]        d = the block's greatest |x| / 127, q = round(x / d) as i8;
 *                                       of blocks of 32 it is rounded to f16, as in llama.cpp,
 *                                       where f16 has 11 bits for it
 *
 *         -> sum over b of  s[n,b] d[m,b] (f32)(sum over j of q u  -  z sum over j of q)
 *                           + l[n,b] d[m,b] (sum over j of q)
 *
 * With q16 x[m,k] ~ d (256 h + l), d = greatest / 32639, and h and l are rows of bytes of their
 * own, of 256 d and d: there are twice as many products, of which two are added in the end.
 *
 * d is multiplied once for all parts of its block that have scales of their own, or that is left to
 * whoever adds them up.
 *
 * Sums over j are exact, and those of q alone belong to x: all outputs share them. A block of x is
 * what lies behind the first axis that the terms are taken apart into: of weights with a scale for
 * each 32, [rows, 8, 32], these 32; of [rows, 2, 8, 32], whose 8 small scales have one in common,
 * it is 256. Nothing here asks how the numbers are packed. */
#include "builder.h"
#include "ops.h"

/* w = scale * (u - zero) + low, in axes [N.., blocks, .., terms] of which the scale (and low) do
 * not vary along the last `inner`. */
typedef struct {
    Node *u;           /* u8 */
    Node *scale, *low; /* f32, of size 1 where they do not vary; low may be NULL */
    int64_t zero;
    int first, inner; /* axes of the terms: from first on; of these the last ones are summed as
                         integers */
} BlockWeight;

enum {
    DIGIT = 8, /* bits of a byte of q */
    MOST_LEVEL = 127,
    ROUNDED_BLOCK = 32, /* whose scale has 16 bits */
};

/* How many bytes a number of x becomes; 0: products are of f32. */
static int bytes_here(Context *c)
{
    const ingot_precision p = ingot_precision_here(c);
    return p == INGOT_PRECISION_Q8 ? 1 : p == INGOT_PRECISION_Q16 ? 2 : 0;
}

/* ---- what a weight is made of -----------------------------------------------------------------
 */

static Node *compact(Node *n)
{
    while (n->op == OP_EXPAND && n->src[0]->rank == n->rank)
        n = n->src[0];
    return n;
}

static bool is_byte_cast(const Node *n)
{
    return n->op == OP_CAST && n->dtype == INGOT_F32 &&
           (n->src[0]->dtype == INGOT_U8 || n->src[0]->dtype == INGOT_I8);
}

/* (f32)u, u of bytes, less a number. */
static bool integers(Context *c, Node *n, BlockWeight *w)
{
    Node *k = n->op == OP_ADD || n->op == OP_SUB ? uniform(n->src[1]) : NULL;
    double z = k && k->op == OP_CONST && k->dtype == INGOT_F32 ? node_float(k) : 0;
    if (k && z != (double)(int64_t)z)
        return false;
    w->zero = (int64_t)(k && n->op == OP_ADD ? -z : z);
    n = k ? n->src[0] : n;
    const bool moved = n->op == OP_RESHAPE;
    const Node *cast = moved ? n->src[0] : n;
    if (!is_byte_cast(cast))
        return false;
    w->u = moved ? ingot_reshape(c, cast->src[0], n->rank, n->shape) : cast->src[0];
    if (w->u->dtype == INGOT_I8) { /* as u + 128, without a sign */
        enum { HALF = 128 };
        w->u = ingot_bitcast(c, w->u, INGOT_U8);
        w->u = ingot_xor(c, w->u, ingot_scalar_i(c, INGOT_U8, HALF));
        w->zero += HALF;
    }
    return true;
}

static bool scaled(Context *c, Node *n, BlockWeight *w)
{
    for (int i = 0; i < 2 && n->op == OP_MUL; i++)
        if (integers(c, n->src[i], w)) {
            w->scale = compact(n->src[1 - i]);
            return true;
        }
    for (int i = 0; i < 2 && n->op == OP_MUL; i++) { /* less a number of each block */
        Node *u = n->src[i];
        if (u->op != OP_SUB || !integers(c, u->src[0], w) || w->zero)
            continue;
        w->scale = compact(n->src[1 - i]);
        w->low = ingot_neg(c, ingot_mul(c, w->scale, compact(u->src[1])));
        return true;
    }
    return false;
}

static bool with_low(Context *c, Node *n, BlockWeight *w)
{
    if (scaled(c, n, w))
        return true;
    *w = (BlockWeight){0};
    for (int i = 0; i < 2 && (n->op == OP_ADD || (n->op == OP_SUB && !i)); i++)
        if (scaled(c, n->src[i], w) && !w->low) {
            w->low = compact(n->src[1 - i]);
            w->low = n->op == OP_SUB ? ingot_neg(c, w->low) : w->low;
            return true;
        }
    return false;
}

/* From which axis on does n have so many elements? -1: none. */
static int axis_of_terms(const Node *n, const Node *terms)
{
    int64_t k, d, size = 1;
    int axis = n->rank;
    if (!idx_value(terms, &k))
        return -1;
    while (size < k && axis > 0 && idx_value(n->shape[axis - 1], &d)) {
        size *= d;
        axis--;
    }
    return size == k && k > 1 ? axis : -1;
}

/* How many of the last axes a compact factor does not vary along. */
static int shared_axes(const Node *n)
{
    int i = 0;
    while (i < n->rank && idx_is(n->shape[n->rank - 1 - i], 1))
        i++;
    return i;
}

static bool block_weight(Context *c, Node *n, BlockWeight *w)
{
    *w = (BlockWeight){0};
    Node *blocks = n->op == OP_RESHAPE ? n->src[0] : n;
    if (n->dtype != INGOT_F32 || !ingot_is_const(n) || !with_low(c, blocks, w))
        return false;
    w->first = axis_of_terms(blocks, n->shape[n->rank - 1]);
    w->inner = shared_axes(w->scale);
    if (w->low && shared_axes(w->low) < w->inner)
        w->inner = shared_axes(w->low);
    bool whole = w->first > 0 && w->scale->rank == blocks->rank && w->inner > 0 &&
                 w->first + w->inner < blocks->rank && (!w->low || w->low->rank == blocks->rank);
    for (int i = 0; i < w->first && whole; i++)
        whole = w->scale->shape[i] == blocks->shape[i] &&
                (!w->low || w->low->shape[i] == blocks->shape[i]);
    if (whole)
        w->u = ops_block_digits(c, w->u);
    return whole;
}

/* ---- what lies in memory ----------------------------------------------------------------------
 */

static bool only_moves(Node *n)
{
    while (op_info[n->op].cls == MOVE && n->op != OP_CONCAT && n->op != OP_KEEP)
        n = n->src[0];
    return n->op == OP_DATA;
}

/* n, of whose parts those that `at` names are stored as they are: f16, bytes. */
static Node *stored_narrow(Context *c, Node *n, bool digits)
{
    const bool here = digits ? only_moves(n) : n->op == OP_CAST && n->dtype == INGOT_F32;
    if (n->op == OP_KEEP)
        return n;
    if (here && digits)
        return n->op == OP_DATA ? n : ingot_contiguous(c, n);
    if (here)
        return ingot_cast(c, ingot_contiguous(c, n->src[0]), INGOT_F32);
    if (!op_is_alu(n->op) && op_info[n->op].cls != MOVE)
        return n;
    Node **src = NEWN(c->arena, Node *, n->nsrc + 1);
    const uint32_t operands = op_is_alu(n->op) || n->op == OP_CONCAT ? n->nsrc : 1;
    for (uint32_t i = 0; i < n->nsrc; i++)
        src[i] = i < operands ? stored_narrow(c, n->src[i], digits) : n->src[i];
    return node_make(c, (Op)n->op, (ingot_dtype)n->dtype, n->arg, (int)n->nsrc, src, n->rank,
                     n->shape);
}

Node *ops_block_weight(Context *c, Node *w)
{
    BlockWeight b;
    if (!bytes_here(c) || ingot_is_poison(w) || !block_weight(c, w, &b))
        return w;
    Node *u = ingot_cast(c, stored_narrow(c, b.u, true), INGOT_F32);
    u = b.zero ? ingot_add_c(c, u, (double)-b.zero) : u;
    u = ingot_mul(c, stored_narrow(c, b.scale, false), u);
    u = b.low ? ingot_add(c, u, stored_narrow(c, b.low, false)) : u;
    if (c->origins && !ingot_is_poison(u))
        origins_add(c, u, c->origins[(w->op == OP_RESHAPE ? w->src[0] : w)->id]);
    return ingot_reshape(c, u, w->rank, w->shape);
}

/* ---- the product ------------------------------------------------------------------------------
 */

/* The last axis of x becomes those of the terms: of their sizes, or of 1 from `ones` on. */
static Node *by_blocks(Context *c, Node *x, const Node *blocks, int first, int ones)
{
    Node *dims[INGOT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank - 1; i++)
        dims[rank++] = x->shape[i];
    for (int i = first; i < blocks->rank; i++)
        dims[rank++] = i < ones ? blocks->shape[i] : idx(c, 1);
    return ingot_reshape(c, x, rank, dims);
}

/* A factor of the weights: the axes in front of its terms become those of w. */
static Node *beside(Context *c, Node *f, const Node *w, int first)
{
    Node *dims[INGOT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < w->rank - 1; i++)
        dims[rank++] = w->shape[i];
    for (int i = first; i < f->rank; i++)
        dims[rank++] = f->shape[i];
    return ingot_reshape(c, f, rank, dims);
}

typedef struct {
    Node *q, *d, *sum; /* i8; f32, of size 1 within a block; sum of q over the inner axes, i32 */
} ByteBlocks;

/* A number for each of two bytes, the high one first, along an axis in front of x's. It is made of
 * the coordinate: whoever wants the same has the same node. */
static Node *for_each_byte(Context *c, const Node *x, double high, double low)
{
    Node *dims[INGOT_MAX_RANK] = {idx(c, 2)};
    for (int i = 0; i < x->rank; i++)
        dims[1 + i] = idx(c, 1);
    Node *byte = ingot_iota(c, 1 + x->rank, dims, 0);
    return ingot_where(c, ingot_eq(c, byte, ingot_like(c, byte, 0)), ingot_like(c, x, high),
                       ingot_like(c, x, low));
}

/* n = 256 high + low, both with a sign: [2, ...]. high is floor(n / 256 + 1/2), exact in f32, and
 * low what a byte has of n. */
static Node *two_bytes(Context *c, Node *n)
{
    const double per = 1.0 / (1 << DIGIT);
    Node *part =
        ingot_add(c, ingot_mul(c, n, for_each_byte(c, n, per, 1)), for_each_byte(c, n, 0.5, 0));
    part = ingot_cast_least(c, ingot_floor(c, part), INGOT_I32);
    return ingot_cast(c, part, INGOT_I8);
}

/* A scale as f16 has it; of fewer digits than usual (or none) or beyond its range: as it is. */
static Node *rounded_scale(Context *c, Node *d)
{
    const double least = 0x1p-14, most = 65504;
    Node *usual = ingot_eq(c, ingot_min_c(c, ingot_max_c(c, d, least), most), d);
    return ingot_where(c, usual, ingot_cast(c, ingot_cast(c, d, INGOT_F16), INGOT_F32), d);
}

/* Bytes of x, of two along an axis in front. */
static ByteBlocks byte_blocks(Context *c, Node *x, const Node *blocks, const BlockWeight *w)
{
    const bool two = bytes_here(c) > 1;
    const int last = x->rank - 1, most_level = MOST_LEVEL + (two ? MOST_LEVEL << DIGIT : 0);
    int64_t size = 1, n;
    for (int i = w->first + 1; i < blocks->rank; i++)
        size *= idx_value(blocks->shape[i], &n) ? n : 1;
    Node *dims[INGOT_MAX_RANK], **rows = dims + two;
    dims[0] = idx(c, 2);
    for (int i = 0; i < last; i++)
        rows[i] = x->shape[i];
    rows[last] = blocks->shape[w->first];
    rows[last + 1] = idx(c, size);
    Node *b = ingot_reshape(c, x, last + 2, rows);
    Node *most = ingot_reduce(c, INGOT_REDUCE_MAX, ingot_abs(c, b), 1u << (last + 1), true);
    most = ingot_contiguous(c, most);
    Node *per = ingot_div(c, ingot_like(c, most, most_level), most);
    Node *q = ingot_round(c, ingot_mul(c, b, per)),
         *d = ingot_div(c, most, ingot_like(c, most, most_level));
    if (!two && size == ROUNDED_BLOCK)
        d = rounded_scale(c, d);
    q = ingot_min_c(c, ingot_max_c(c, q, -most_level), most_level);
    q = two ? two_bytes(c, q) : ingot_cast_least(c, q, INGOT_I8);
    d = two ? ingot_mul(c, d, for_each_byte(c, d, 1 << DIGIT, 1)) : d;
    d = ingot_reshape(c, d, last + 1 + two, dims);
    rows[last] = x->shape[last];
    q = ingot_reshape(c, ingot_contiguous(c, q), last + 1 + two, dims);
    ByteBlocks out = {.q = by_blocks(c, q, blocks, w->first, blocks->rank),
                      .d = by_blocks(c, d, blocks, w->first, w->first + 1)};
    unsigned inner = 0;
    for (int i = 0; i < w->inner; i++)
        inner |= 1u << (out.q->rank - 1 - i);
    out.sum = ingot_reduce(c, INGOT_REDUCE_ADD, ingot_cast(c, out.q, INGOT_I32), inner, true);
    return out;
}

/* With axes of 1 in front, as many as a tensor beside it has. */
static Node *of_rank(Context *c, Node *x, int rank)
{
    Node *dims[INGOT_MAX_RANK];
    const int more = rank > x->rank ? rank - x->rank : 0;
    for (int i = 0; i < more; i++)
        dims[i] = idx(c, 1);
    for (int i = 0; i < x->rank; i++)
        dims[more + i] = x->shape[i];
    return ingot_reshape(c, x, more + x->rank, dims);
}

ingot_tensor *ops_block_product(ingot_context *c, ingot_tensor *x, ingot_tensor *w)
{
    BlockWeight b;
    const int bytes = bytes_here(c);
    if (!bytes || ingot_is_poison(x) || ingot_is_poison(w) || x->dtype != INGOT_F32 ||
        !block_weight(c, w, &b))
        return NULL;
    const Node *blocks = w->op == OP_RESHAPE ? w->src[0] : w;
    const int more = blocks->rank - b.first - 1;
    if (x->rank + more + bytes > INGOT_MAX_RANK + 1 || w->rank + more + bytes > INGOT_MAX_RANK + 1)
        return NULL;
    x = bytes > 1 ? of_rank(c, x, w->rank) : x;
    ByteBlocks a = byte_blocks(c, x, blocks, &b);
    Node *u = beside(c, stored_narrow(c, b.u, true), w, b.first),
         *scale = beside(c, stored_narrow(c, b.scale, false), w, b.first);
    Node *sum = ingot_mul(c, ingot_cast(c, a.q, INGOT_I32), ingot_cast(c, u, INGOT_I32));
    if (ingot_is_poison(sum))
        return sum;
    unsigned inner = 0, outer = 0;
    for (int i = 0; i < b.inner; i++)
        inner |= 1u << (sum->rank - 1 - i);
    for (int i = b.inner; i < blocks->rank - b.first; i++)
        outer |= 1u << (sum->rank - 1 - i);
    sum = ingot_reduce(c, INGOT_REDUCE_ADD, sum, inner, true);
    if (b.zero) {
        Node *z = ingot_mul(c, a.sum, node_const_i(c, INGOT_I32, -b.zero));
        sum = ingot_add(c, sum, ingot_contiguous(c, z));
    }
    sum = ingot_cast(c, sum, INGOT_F32);
    const bool parts = b.first + 1 + b.inner < blocks->rank; /* several share one d */
    sum = ingot_mul(c, sum, parts ? scale : ingot_mul(c, scale, a.d));
    if (b.low) {
        Node *low = beside(c, stored_narrow(c, b.low, false), w, b.first);
        Node *all = ingot_cast(c, a.sum, INGOT_F32);
        all = parts ? all : ingot_mul(c, all, a.d);
        sum = ingot_add(c, sum, ingot_mul(c, low, ingot_contiguous(c, all)));
    }
    sum = parts ? ingot_mul(c, sum, a.d) : sum;
    if (ingot_is_poison(sum))
        return sum;
    sum = ingot_sum(c, sum, inner | outer, false);
    return bytes > 1 ? ingot_sum(c, ingot_contiguous(c, sum), 1u << 0, false) : sum;
}
