/* gpu_dot.c - DOT on GPUs: four terms of a sum of products of bytes at once, and how the bytes lie
 * for that. */
#include "cpu.h"

int fours_taken(Nest *n, const View *v, const Buffer *const *bufs, Node **four)
{
    if (!n->target->machine.takes_fours)
        return -1;
    bool *free = NEWN(n->arena, bool, n->k->narg);
    find_free(n->k, v, bufs, free);
    int terms;
    if (!dot_axes(n->k, v, free, &n->target->machine, four, 1, &terms) ||
        !nest_opt_range(n, OPT_DOT, *four, terms))
        return -1;
    return nest_last_split(n)->outer;
}

/* Neighbours in the lanes read fours that are neighbours. */
bool fours_laid_out(const Nest *n, const View *v, const Buffer *const *bufs, Node *columns,
                    Node *four, Layout *want)
{
    Node *loop[INGOT_MAX_RANK * 4];
    int nloop = 0;
    for (int i = 0; i < v->nrange; i++)
        loop[nloop++] = v->range[i];
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        loop[nloop++] = v->dot->src[i];
    const Packing packing = {.lanes = columns,
                             .block = columns->hi + 1,
                             .loop = loop,
                             .nloop = nloop,
                             .four = &four,
                             .nfour = 1,
                             .terms = n->dots};
    for (int i = 0; i < v->nfactor; i++) {
        const int arg = (int)v->factor[i]->src[0]->arg.i;
        const bool weight = bufs[arg]->kind == BUF_WEIGHT && depends_on(v->factor[i], columns);
        int64_t stride;
        if (weight ? !packing_layout(n->k, v->factor[i], &packing, &want[arg])
                   : !access_stride(n->k, v->factor[i], four, &stride) || stride != 1)
            return false;
    }
    return true;
}
