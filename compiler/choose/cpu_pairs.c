/* cpu_pairs.c - operands of bf16 that the model computes, for DOT, which takes two terms at a time.
 *
 * The gradient of a weight is a sum over rows, which lie apart in both operands, and a weight that
 * a step of training changes lies as its file has it.  Copies bring their pairs together:
 *
 *     [terms / 2][lanes][2]    what the lanes move, in the order in which the loops read it
 *     [..][terms]              what they do not move
 *
 * It pays where many results read what is copied once. */
#include <string.h>

#include "cpu.h"

/* Cycles of a byte that is copied element by element. */
static const double COPY_CYCLES = 1;

bool free_pairs(const Kernel *k, const View *v, const Buffer *const *bufs, const Target *t,
                bool *free)
{
    enum { HALVES = 2 };
    bool any = false;
    if (!t->machine.lanes || dot_terms(v->dot) != HALVES || v->dot->dtype != INGOT_F32 ||
        !machine_dots(&t->machine, HALVES, true))
        return false;
    for (int i = 0; i < v->nfactor; i++) {
        const int arg = (int)v->factor[i]->src[0]->arg.i;
        int uses = 0;
        for (int j = 0; j < v->nload; j++)
            uses += v->load[j]->src[0]->arg.i == arg;
        if (bufs[arg]->kind != BUF_WEIGHT && uses == 1 && !k->args[arg].written &&
            const_dims(bufs[arg]))
            any = free[arg] = true;
    }
    return any;
}

/* Do pairs save more time than their copies take? */
static bool pays(const Nest *nest, const View *v, const Buffer *const *bufs, const Layout *want)
{
    const Kernel *k = nest->k;
    const Machine *m = &nest->target->machine;
    double products = 1, bytes = 0;
    for (int i = 0; i < v->nrange; i++)
        products *= (double)v->range[i]->hi + 1;
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        products *= (double)v->dot->src[i]->hi + 1;
    for (int i = 0; i < k->narg; i++)
        if (want[i].n && bufs[i]->kind != BUF_WEIGHT)
            bytes += (double)layout_elements(&(Layout){0}, k->args[i].rank, k->args[i].dims) *
                     dtype_info[k->args[i].dtype].bytes;
    return 2 * products / m->rate[UNIT_TILE] * (1 - 1 / m->dot_bf16) > COPY_CYCLES * bytes;
}

/* Do all lie so then? */
static bool fits(Arena *a, const Nest *nest, const Layout *want)
{
    Kernel *k = nest->k;
    Layout *was = NEWN(a, Layout, k->narg);
    for (int i = 0; i < k->narg; i++) {
        was[i] = k->args[i].layout;
        if (want[i].n)
            k->args[i].layout = want[i];
    }
    const bool good = !nest_check(nest);
    for (int i = 0; i < k->narg; i++)
        k->args[i].layout = was[i];
    return good;
}

bool copy_pairs(Arena *a, Nest *nest, const View *v, const Buffer *const *bufs,
                const RegisterTile *tile, Layout *want)
{
    const Kernel *k = nest->k;
    for (int i = 0; i < v->nfactor; i++) {
        Node *load = v->factor[i];
        const int arg = (int)load->src[0]->arg.i;
        const Move m = access_move(k->c, load, tile->four[0]);
        int64_t stride;
        if (!depends_on(load, tile->lanes) && m.kind == MOVE_AXIS &&
            !(access_stride(k, load, tile->four[0], &stride) && stride == 1))
            layout_put_last(&want[arg], k->args[arg].rank, m.axis);
    }
    if (!pays(nest, v, bufs, want) || !fits(a, nest, want))
        return false;
    for (int i = 0; i < k->narg; i++)
        if (want[i].n && bufs[i]->kind != BUF_WEIGHT) {
            k->choice->arg[i].copied = true;
            k->choice->arg[i].copy = want[i];
            want[i] = (Layout){0};
        }
    return true;
}
