/* dot.c - which reduced axes of contractions of bytes can be taken by fours (DOT).
 *
 * A sum of products of two loads of i8 or u8, each widened to i32, whose terms along the axis lie
 * side by side in memory, or may be laid so: then four of them are one operation of igrt_dot.h. */
#include "kernel.h"

static bool is_byte(Node *n)
{
    Node *load = n->op == OP_CAST ? n->src[0] : NULL;
    return load && load->op == OP_LOAD && (load->dtype == INGOT_I8 || load->dtype == INGOT_U8) &&
           node_is_const_i(load->src[1], 1);
}

static bool is_bytes(Node *reduce)
{
    Node *product = reduce->src[0];
    return reduce->dtype == INGOT_I32 && reduce->arg.i == INGOT_REDUCE_ADD &&
           product->op == OP_MUL && is_byte(product->src[0]) && is_byte(product->src[1]);
}

/* Four neighbours along the range lie side by side, or the layout is free. */
static bool lies_well(const Kernel *k, Node *load, Node *range, const bool *free)
{
    int64_t stride;
    Move m = access_move(k->c, load, range);
    if (m.kind != MOVE_AXIS || m.stride != 1)
        return false;
    return free[load->src[0]->arg.i] || (access_stride(k, load, range, &stride) && stride == 1);
}

/* Is every sum over the range one that can be taken by fours along it? */
bool dot_possible(const Kernel *k, const View *v, Node *range, const bool *free)
{
    int64_t extent;
    if (!idx_value(range->src[0], &extent) || extent < 4 || extent % 4)
        return false;
    for (int j = 0; j < v->nreduce; j++) {
        Node *r = v->reduce[j];
        bool over = false;
        for (uint32_t s = 1; s < r->nsrc; s++)
            over |= r->src[s] == range;
        if (!over && !depends_on(r->src[0], range))
            continue;
        if (!over || !is_bytes(r) || !lies_well(k, r->src[0]->src[0]->src[0], range, free) ||
            !lies_well(k, r->src[0]->src[1]->src[0], range, free))
            return false;
    }
    return true;
}

int dot_axes(const Kernel *k, const View *v, const bool *free, Node **axis, int max)
{
    int n = 0;
    for (int j = 0; j < v->nreduce && n < max; j++) {
        Node *r = v->reduce[j], *best = NULL;
        bool done = false;
        for (uint32_t s = 1; s < r->nsrc; s++) {
            for (int i = 0; i < n; i++)
                done |= axis[i] == r->src[s];
            if (dot_possible(k, v, r->src[s], free) && (!best || r->src[s]->hi > best->hi))
                best = r->src[s];
        }
        if (best && !done)
            axis[n++] = best;
    }
    return n;
}
