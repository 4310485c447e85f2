/* dot.c - which reduced axes of contractions can be taken by DOT: bytes by fours, bf16 by pairs.
 *
 * A sum of products of two loads of i8 or u8, each widened to i32, or of bf16 to f32, whose terms
 * along the axis lie side by side in memory, or may be laid so: then four (two) of them are one
 * operation of igrt_dot.h. */
#include "kernel.h"

static ingot_dtype loaded(Node *n)
{
    Node *load = n->op == OP_CAST ? n->src[0] : NULL;
    bool plain = load && load->op == OP_LOAD && node_is_const_i(load->src[1], 1);
    return plain ? (ingot_dtype)load->dtype : INGOT_INDEX;
}

static bool is_byte(ingot_dtype d)
{
    return d == INGOT_I8 || d == INGOT_U8;
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
    return reduce->dtype == INGOT_F32 && x == INGOT_BF16 && w == INGOT_BF16 ? HALVES : 0;
}

/* Neighbours along the range lie side by side, or the layout is free. */
static bool lies_well(const Kernel *k, Node *load, Node *range, const bool *free)
{
    int64_t stride;
    Move m = access_move(k->c, load, range);
    if (m.kind != MOVE_AXIS || m.stride != 1)
        return false;
    return free[load->src[0]->arg.i] || (access_stride(k, load, range, &stride) && stride == 1);
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
        if (!over && !depends_on(r->src[0], range))
            continue;
        const int at_once = over ? dot_terms(r) : 0;
        if (!at_once || (terms && at_once != terms) || extent < at_once || extent % at_once ||
            !lies_well(k, r->src[0]->src[0]->src[0], range, free) ||
            !lies_well(k, r->src[0]->src[1]->src[0], range, free))
            return 0;
        terms = at_once;
    }
    return terms;
}

int dot_axes(const Kernel *k, const View *v, const bool *free, const Machine *m, Node **axis,
             int max, int *terms)
{
    int n = 0;
    *terms = 0;
    for (int j = 0; j < v->nreduce && n < max; j++) {
        Node *r = v->reduce[j], *best = NULL;
        const int at_once = dot_terms(r);
        bool done = !machine_dots(m, at_once) || (*terms && *terms != at_once);
        for (uint32_t s = 1; s < r->nsrc && !done; s++) {
            for (int i = 0; i < n; i++)
                done |= axis[i] == r->src[s];
            if (dot_possible(k, v, r->src[s], free) && (!best || r->src[s]->hi > best->hi))
                best = r->src[s];
        }
        if (best && !done) {
            axis[n++] = best;
            *terms = at_once;
        }
    }
    return n;
}
