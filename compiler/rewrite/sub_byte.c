/* sub_byte.c - weights of 4 or 2 bits lie two or four in a byte, and bytes four in a word.
 *
 * A constant has an element a byte. What a sum of products reads of it along the axis of the sum is
 * packed:
 *
 *     (float)w[k, n]
 *         -> (float)(p[k / 2, n] >> 4 (k % 2) & 15) - 8        p[k, n] = w[2 k, n] + 8 | w[2 k + 1,
 *            n] + 8 << 4
 *
 * so that a byte is read once for two terms, and what lies side by side across the sum still does:
 * those are lanes.  The 8 makes signed numbers digits; of unsigned ones there is none.  The numbers
 * are the same, bit by bit.
 *
 * Bytes with a sign that are multiplied once each (a matrix times a vector) take longer to become
 * floats than to come from memory: a load that widens them is two operations for each vector.
 * Words are loaded as they are, and one operation brings a byte to the top of its word, where it is
 * worth 2^24 times as much:
 *
 *     (float)w[k, n]  ->  (float)(p[k / 4, n] << 8 (k % 4) & 0xff000000) * 2^-24
 *
 * The number is the same again, and the factor leaves the sum. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "builder.h"
#include "rewrite.h"

enum { TOP = 3 * CHAR_BIT }; /* where the first byte of a word begins */

/* How constants of a type are packed: digits of so many bits, in words of a type. No bits: not at
 * all. Of a word of 32 bits digits are taken with their sign, at the top. */
typedef struct {
    int bits;
    ingot_dtype word;
} Digits;

static Digits digits_of(int d)
{
    const int bits = d == INGOT_I4 || d == INGOT_U4   ? 4
                     : d == INGOT_I2 || d == INGOT_U2 ? 2
                     : d == INGOT_I8                  ? 8
                                                      : 0;
    return (Digits){bits, bits == 8 ? INGOT_I32 : INGOT_U8};
}

static int digits_per_word(Digits d)
{
    return 8 * dtype_info[d.word].bytes / d.bits;
}

/* Elements behind an axis that one step along it passes; -1: known at run time only. */
static int64_t step_of(Node *n, int axis)
{
    int64_t step = 1, d;
    for (int i = axis + 1; i < n->rank; i++) {
        if (!idx_value(n->shape[i], &d))
            return -1;
        step *= d;
    }
    return step;
}

/* The words: `outer` times `count` elements along the axis, of which each is `inner` numbers; a
 * word's first byte has its lowest bits, and the first digit is the lowest of a byte, and the
 * highest of a longer word. */
static const void *packed(Context *c, const int8_t *from, Digits d, int bias, int64_t outer,
                          int64_t count, int64_t inner)
{
    const int per = digits_per_word(d), bytes = dtype_info[d.word].bytes;
    uint8_t *to = NEWN(c->arena, uint8_t, outer * count * inner / per * bytes);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < count; k++)
            for (int64_t i = 0; i < inner; i++) {
                const unsigned digit = (unsigned)(from[(o * count + k) * inner + i] + bias);
                const int digit_at = (int)(k % per) * d.bits,
                          at = bytes > 1 ? 8 * bytes - d.bits - digit_at : digit_at;
                to[((o * (count / per) + k / per) * inner + i) * bytes + at / 8] |=
                    (uint8_t)((digit & ((1u << d.bits) - 1)) << at % 8);
            }
    return to;
}

/* The bytes of words, each of which is there once for each of its bytes, in the shape of w and
 * times 2^24. */
static Node *top_bytes(Context *c, Node *words, Node *byte, Node *w)
{
    Node *x = ingot_shl(c, words, ingot_cast(c, ingot_mul_c(c, byte, 8), INGOT_I32));
    return ingot_reshape(c, ingot_and(c, x, ingot_like(c, x, -(1 << TOP))), w->rank, w->shape);
}

/* cast(w) for a constant w */
static Node *unpacked(Context *c, Node *cast, int axis)
{
    Node *w = cast->src[0];
    const Digits d = digits_of(w->dtype);
    const int per = digits_per_word(d), rank = w->rank + 1;
    bool is_signed = dtype_info[w->dtype].kind == 'i';
    int64_t dims[INGOT_MAX_RANK + 1], count, inner = step_of(w, axis), outer = 1;
    if (rank > INGOT_MAX_RANK || dtype_info[cast->dtype].kind == 'u' || cast->dtype == INGOT_BOOL)
        return NULL;
    for (int i = 0; i < w->rank; i++)
        if (!idx_value(w->shape[i], &dims[i < axis ? i : i + 1]))
            return NULL;
    for (int i = 0; i < axis; i++)
        outer *= dims[i];
    count = dims[axis + 1];
    if (count % per)
        return NULL;
    const Data *data = w->arg.ptr;
    const bool top = d.word == INGOT_I32;
    const int half = is_signed && !top ? 1 << (d.bits - 1) : 0;
    dims[axis] = count / per;
    dims[axis + 1] = 1;
    Node *x = ingot_data(c, data->name, d.word, rank, dims,
                         packed(c, (const int8_t *)data->bytes, d, half, outer, count, inner));
    Node *shape[INGOT_MAX_RANK + 1];
    for (int i = 0; i < rank; i++)
        shape[i] = idx(c, i == axis + 1 ? per : dims[i]);
    Node *digit = ingot_iota(c, rank, shape, axis + 1);
    x = ingot_expand(c, x, rank, shape);
    if (top)
        return top_bytes(c, x, digit, w);
    x = ingot_shr(c, x, ingot_cast(c, ingot_mul_c(c, digit, d.bits), d.word));
    x = ingot_and(c, x, ingot_like(c, x, (1 << d.bits) - 1));
    x = ingot_cast(c, ingot_reshape(c, x, w->rank, w->shape), (ingot_dtype)cast->dtype);
    return half ? ingot_add_c(c, x, -half) : x;
}

int axis_below(Node *reshape, int axis)
{
    Node *x = reshape->src[0];
    int64_t step = step_of(reshape, axis);
    for (int i = x->rank; i-- > 0 && step > 0;)
        if (step_of(x, i) == step && !idx_is(x->shape[i], 1))
            return i;
    return -1;
}

/* What is known on the way from a sum to a constant. */
typedef struct {
    bool once;   /* numbers of f32 are multiplied, and nothing reads one again */
    bool floats; /* what is below is moved, and then cast to f32 */
    bool top;    /* it became bytes at the top of words */
} PathFacts;

/* n is the cast of a constant: is that one of digits, or of bytes that are multiplied once, as
 * floats? */
static bool is_packed(const PathFacts *way, const Node *n)
{
    const Node *w = n->op == OP_CAST ? n->src[0] : NULL;
    if (!w || w->op != OP_DATA || !digits_of(w->dtype).bits)
        return false;
    return w->dtype != INGOT_I8 ||
           (way->floats && (n->dtype == INGOT_F32 || n->dtype == INGOT_I32));
}

/* Whether this is asked for the first time: what was asked before has no such constant below it,
 * or the walk would have ended there. A value that is computed with twice, and so are those below
 * it, would be looked at once for each of many paths. */
static bool is_new_place(Map *seen, const Node *n, int axis, const PathFacts *way)
{
    const int facts[4] = {(int)n->id, axis, way->once, way->floats};
    const uint64_t key = hash_bytes(0, facts, sizeof facts);
    if (map_get(seen, key))
        return false;
    map_put(seen, key, seen);
    return true;
}

/* n with a constant below it packed along the axis, or NULL. */
static Node *repacked(Rewrite *r, Node *n, int axis, PathFacts *way, int depth, Map *seen)
{
    if (depth > DEPTH_ANY || axis < 0 || idx_is(n->shape[axis], 1) ||
        !is_new_place(seen, n, axis, way))
        return NULL;
    const bool floats = n->op == OP_CAST && n->dtype == INGOT_F32;
    way->floats = floats ? way->once && r->words : way->floats && (is_move(n) || n->op == OP_CAST);
    if (is_packed(way, n)) {
        way->top = n->src[0]->dtype == INGOT_I8;
        Node *x = unpacked(r->c, n, axis);
        return x && way->top ? ingot_cast(r->c, x, (ingot_dtype)n->dtype) : x;
    }
    bool through = op_is_alu(n->op) || n->op == OP_EXPAND;
    way->once &= n->op == OP_MUL || (is_move(n) && n->op != OP_EXPAND);
    if (n->op == OP_PERMUTE)
        axis = ((const Perm *)n->arg.ptr)->axis[axis];
    else if (n->op == OP_RESHAPE)
        axis = axis_below(n, axis);
    else if (!through)
        return NULL;
    Node **src = NEWN(r->a, Node *, n->nsrc + 1);
    memcpy((void *)src, n->src, n->nsrc * sizeof *src);
    uint32_t operands = op_is_alu(n->op) ? n->nsrc : 1;
    for (uint32_t i = 0; i < operands; i++) {
        PathFacts below = *way;
        Node *x = repacked(r, n->src[i], axis, &below, depth + 1, seen);
        if (!x || ingot_is_poison(x))
            continue;
        way->top = below.top;
        src[i] = x;
        return node_make(r->c, (Op)n->op, (ingot_dtype)n->dtype, n->arg, (int)n->nsrc, src, n->rank,
                         n->shape);
    }
    return NULL;
}

Node *sub_byte(Rewrite *r, Node *n)
{
    int axis = n->rank;
    if (reduce_monoid(n) != INGOT_REDUCE_ADD)
        return NULL;
    while (axis-- > 0 && (!(reduce_axes(n) >> axis & 1) || idx_is(n->src[0]->shape[axis], 1)))
        continue;
    if (below_casts(n->src[0])->op != OP_MUL)
        return NULL;
    PathFacts way = {.once = n->dtype == INGOT_F32 && n->src[0]->op == OP_MUL};
    Map seen = {0};
    Node *x = repacked(r, n->src[0], axis, &way, 0, &seen);
    map_free(&seen);
    x = x ? node_make(r->c, OP_REDUCE, (ingot_dtype)n->dtype, n->arg, 1, &x, n->rank, n->shape)
          : NULL;
    return x && way.top ? ingot_mul_c(r->c, x, ldexp(1, -TOP)) : x;
}
