/* block_digits.c - digits of weights, packed as units that multiply four bytes at once read them.
 *
 * A word of four bytes has digits of four neighbours at each of its places, so that a shift and a
 * mask make the four bytes of one product. Files that put neighbours into one byte are packed
 * anew, in as many bytes; here of 4 bits, in a block of 32 (the fifth bits of Q5_0, MatMulNBits):
 *
 *     file     | 1 0 | 3 2 | 5 4 | 7 6 | ..          here   | 16 0 | 17 1 | 18 2 | 19 3 | ..
 *
 * What is stored is an expression over the file's bytes, evaluated when the model is compiled.
 * Numbers of 3, 5, 6 or 7 bits are digits of 4, 2 and 1 of them, each in bytes of their own. */
#include "builder.h"
#include "ops.h"

enum { BYTE = 8, UNIT = 4 }; /* bits; bytes of a word */

static bool last_is_fours(const Node *n)
{
    int64_t d;
    return n->rank > 0 && idx_value(n->shape[n->rank - 1], &d) && d % UNIT == 0;
}

/* Are four neighbours along the last axis digits at the same place of four neighbouring bytes? */
static bool in_words(const Node *n)
{
    if (!last_is_fours(n))
        return false;
    const int last = n->rank - 1;
    switch (n->op) {
    case OP_DATA:
    case OP_KEEP: return true;
    case OP_RESHAPE:
    case OP_BITCAST:
    case OP_SHRINK: return in_words(n->src[0]);
    case OP_EXPAND: return n->src[0]->shape[last] == n->shape[last] && in_words(n->src[0]);
    case OP_PERMUTE: return ((const Perm *)n->arg.ptr)->axis[last] == last && in_words(n->src[0]);
    default: break;
    }
    if (!op_is_alu(n->op) && n->op != OP_CONCAT)
        return false;
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (n->src[i]->dtype != INGOT_INDEX && !uniform(n->src[i]) && !in_words(n->src[i]))
            return false;
    return true;
}

/* How many bits numbers of u8 have at most, as the masks say that they are made with. */
static int bits_of(Node *n)
{
    int64_t k;
    int most = 0;
    Node *by = n->nsrc > 1 ? uniform(n->src[1]) : NULL;
    switch (n->op) {
    case OP_RESHAPE:
    case OP_KEEP:
    case OP_SHRINK:
    case OP_EXPAND:
    case OP_PERMUTE: return bits_of(n->src[0]);
    case OP_CONCAT:
    case OP_OR:
        for (uint32_t i = 0; i < n->nsrc; i++)
            if (n->src[i]->dtype == INGOT_U8 && bits_of(n->src[i]) > most)
                most = bits_of(n->src[i]);
        return most;
    case OP_AND:
        k = by && by->op == OP_CONST ? (int64_t)by->arg.bits : BYTE;
        while (most < BYTE && k >> most)
            most++;
        return most;
    case OP_SHL:
    case OP_SHR:
        k = by && by->op == OP_CONST ? (int64_t)by->arg.bits : 0;
        most = bits_of(n->src[0]) + (int)(n->op == OP_SHL ? k : -k);
        return most > BYTE ? BYTE : most < 0 ? 0 : most;
    default: return BYTE;
    }
}

static Node *shifted(Context *c, Node *n, int left)
{
    Node *by = node_const_i(c, INGOT_U8, left < 0 ? -left : left);
    return !left ? n : left > 0 ? ingot_shl(c, n, by) : ingot_shr(c, n, by);
}

static Node *digit(Context *c, Node *n, int from, int bits)
{
    return ingot_and(c, shifted(c, n, -from), node_const_i(c, INGOT_U8, (1 << bits) - 1));
}

/* Bits from .. from + bits - 1 of u [.., K], out of bytes that hold them of elements K bits / 8
 * apart. */
static Node *packed_digits(Context *c, Node *u, int from, int bits)
{
    const int parts = BYTE / bits, last = u->rank - 1;
    int64_t count;
    Node *bytes = NULL, *part[BYTE], *dims[INGOT_MAX_RANK];
    idx_value(u->shape[last], &count);
    count /= parts;
    for (int i = 0; i < parts; i++) {
        Node *d = ingot_slice(c, u, last, idx(c, i * count), idx(c, count), 1);
        d = shifted(c, digit(c, d, from, bits), i * bits);
        bytes = bytes ? ingot_or(c, bytes, d) : d;
    }
    bytes = ingot_contiguous(c, bytes);
    for (int i = 0; i < parts; i++)
        part[i] = digit(c, bytes, i * bits, bits);
    for (int i = 0; i <= last; i++)
        dims[i] = u->shape[i];
    return shifted(c, ingot_reshape(c, ingot_stack(c, parts, part, last), last + 1, dims), from);
}

Node *ops_block_digits(Context *c, Node *u)
{
    int64_t count;
    const int bits = bits_of(u);
    if (bits >= BYTE - 1 || in_words(u) || u->rank + 1 > INGOT_MAX_RANK ||
        !idx_value(u->shape[u->rank - 1], &count))
        return u;
    Node *all = NULL;
    for (int from = 0, width = BYTE / 2; from < bits; width /= 2) {
        while (width > bits - from && width > 1)
            width /= 2;
        if (count % (UNIT * BYTE / width) != 0)
            return u;
        Node *d = packed_digits(c, u, from, width);
        all = all ? ingot_or(c, all, d) : d;
        from += width;
    }
    return all ? all : u;
}
