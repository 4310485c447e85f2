/* dot.c - which reduced axes of contractions can be taken by DOT: bytes by fours, bf16 and i16 by
 * pairs.
 *
 * A sum of products of two loads of i8 or u8, each widened to i32, or of bf16 to f32, or of i16 and
 * i16 or a byte to i32, whose terms
 * along the axis lie side by side in memory, or may be laid so: then four (two) of them are one
 * operation of igrt_dot.h.
 *
 * In lanes a byte may be made of others where it is read, bit by bit: a digit of a packed one,
 * x >> 4 & 15. Four of them are made at once, in the word that four bytes are there. */
#include "kernel.h"

enum { MOST_OPERANDS = 4 }; /* of a digit: what has its low bits, and what has those above */

/* Loads that bytes without a sign are made of, as bits of a word are: how many; -1: they are not.
 */
static int bits_of(Node *n, Node **load, int count)
{
    if (n->op == OP_LOAD) {
        if (n->dtype != INGOT_U8 || !node_is_const_i(n->src[1], 1) || count == MOST_OPERANDS)
            return -1;
        load[count] = n;
        return count + 1;
    }
    if (n->dtype != INGOT_U8)
        return -1;
    switch (n->op) {
    case OP_SHL:
    case OP_SHR: return lane_op(n) ? bits_of(n->src[0], load, count) : -1;
    case OP_AND:
    case OP_OR:
    case OP_XOR:
        count = bits_of(n->src[0], load, count);
        return count < 0 || n->src[1]->op == OP_CONST ? count : bits_of(n->src[1], load, count);
    default: return -1;
    }
}

/* What a factor loads of a type that is multiplied; 0: it is no such factor. */
static int loads_of(Node *n, Node **load, ingot_dtype *type)
{
    Node *x = n->op == OP_CAST ? n->src[0] : NULL;
    *type = INGOT_INDEX;
    if (x && x->op == OP_LOAD && node_is_const_i(x->src[1], 1)) {
        *type = (ingot_dtype)x->dtype;
        load[0] = x;
        return 1;
    }
    const int count = x && n->dtype == INGOT_I32 ? bits_of(x, load, 0) : -1;
    if (count > 0)
        *type = INGOT_U8;
    return count > 0 ? count : 0;
}

static ingot_dtype loaded(Node *n)
{
    Node *load[MOST_OPERANDS];
    ingot_dtype type;
    (void)loads_of(n, load, &type);
    return type;
}

bool dot_has_digits(const Node *reduce)
{
    for (int i = 0; i < 2; i++) {
        Node *f = reduce->src[0]->src[i];
        if (f->op == OP_CAST && f->src[0]->op != OP_LOAD)
            return true;
    }
    return false;
}

static bool is_byte(ingot_dtype d)
{
    return d == INGOT_I8 || d == INGOT_U8;
}

/* A factor that is a byte in memory, and no digit of one. */
static bool is_plain_byte(const Node *reduce, int side)
{
    const Node *x = reduce->src[0]->src[side];
    return x->op == OP_CAST && x->src[0]->op == OP_LOAD && is_byte((ingot_dtype)x->src[0]->dtype);
}

int dot_terms(const Node *reduce)
{
    enum { BYTES = 4, HALVES = 2 };
    Node *product = reduce->src[0];
    if (reduce->op != OP_REDUCE || reduce_size(reduce) != 1 ||
        reduce_monoid(reduce) != INGOT_REDUCE_ADD || product->op != OP_MUL)
        return 0;
    const ingot_dtype x = loaded(product->src[0]), w = loaded(product->src[1]);
    if (reduce->dtype == INGOT_I32 && is_byte(x) && is_byte(w))
        return BYTES;
    const bool halves = (x == INGOT_I16 && (w == INGOT_I16 || is_plain_byte(reduce, 1))) ||
                        (w == INGOT_I16 && is_plain_byte(reduce, 0));
    if (reduce->dtype == INGOT_I32 && halves)
        return HALVES;
    return reduce->dtype == INGOT_F32 && x == INGOT_BF16 && w == INGOT_BF16 ? HALVES : 0;
}

/* Does nothing but what is loaded move with the range: neither which bits are taken? */
static bool only_loads_move(Node *n, Node *range)
{
    if (n->op == OP_LOAD)
        return true;
    if (!op_is_alu(n->op))
        return !depends_on(n, range);
    if (n->op == OP_CAST && n->src[0]->dtype == INGOT_INDEX)
        return !depends_on(n, range);
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (!only_loads_move(n->src[i], range))
            return false;
    return true;
}

/* Neighbours along the range lie side by side, or the layout is free. */
static bool lies_well(const Kernel *k, Node *factor, Node *range, const bool *free)
{
    Node *load[MOST_OPERANDS];
    ingot_dtype type;
    const int n = loads_of(factor, load, &type);
    for (int i = 0; i < n; i++) {
        int64_t stride;
        Move m = access_move(k->c, load[i], range);
        if (m.kind != MOVE_AXIS || m.stride != 1 ||
            (!free[load[i]->src[0]->arg.i] &&
             !(access_stride(k, load[i], range, &stride) && stride == 1)))
            return false;
    }
    return n > 0 && only_loads_move(factor, range);
}

/* Not only inside of a sum over the range. */
static bool moves(Node *value, Node *range)
{
    Arena *a = arena_new();
    const bool with = moves_with(a, value, range);
    arena_free(a);
    return with;
}

int dot_possible(const Kernel *k, const View *v, Node *range, const bool *free)
{
    int64_t extent;
    int terms = 0;
    if (!idx_value(range->src[0], &extent))
        return 0;
    for (int j = 0; j < v->nreduce; j++) {
        Node *r = v->reduce[j];
        bool over = false;
        for (uint32_t s = 1; s < r->nsrc; s++)
            over |= r->src[s] == range;
        if (!over && (!depends_on(r->src[0], range) || !moves(r->src[0], range)))
            continue;
        const int at_once = over ? dot_terms(r) : 0;
        if (!at_once || (terms && at_once != terms) || extent < at_once || extent % at_once ||
            !lies_well(k, r->src[0]->src[0], range, free) ||
            !lies_well(k, r->src[0]->src[1], range, free))
            return 0;
        terms = at_once;
    }
    return terms;
}

/* Is this the better axis: more of its terms are one dot, or it is longer? */
static bool takes_more(const Machine *m, const Node *r, const Node *than)
{
    const int terms = machine_dot_terms(m, r->hi + 1), of = machine_dot_terms(m, than->hi + 1);
    return terms != of ? terms > of : r->hi > than->hi;
}

int dot_axes(const Kernel *k, const View *v, const bool *free, const Machine *m, Node **axis,
             int max, int *terms)
{
    int n = 0;
    *terms = 0;
    for (int j = 0; j < v->nreduce && n < max; j++) {
        Node *r = v->reduce[j], *best = NULL;
        const int at_once = dot_terms(r);
        bool done = !machine_dots(m, at_once, dtype_is_float(r->dtype)) ||
                    (*terms && *terms != at_once) || (at_once && !m->lanes && dot_has_digits(r));
        for (uint32_t s = 1; s < r->nsrc && !done; s++) {
            for (int i = 0; i < n; i++)
                done |= axis[i] == r->src[s];
            if (dot_possible(k, v, r->src[s], free) && (!best || takes_more(m, r->src[s], best)))
                best = r->src[s];
        }
        if (best && !done) {
            axis[n++] = best;
            *terms = at_once;
        }
    }
    int most = *terms;
    for (int i = 0; i < n && *terms == 4; i++) {
        const int each = machine_dot_terms(m, axis[i]->hi + 1);
        most = !i || each < most ? each : most;
    }
    *terms = most;
    return n;
}
