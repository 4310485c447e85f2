/* weight_layout.c - weights as the loops of a nest read them (packing.c), whatever opts made it. */
#include "weight_layout.h"
#include "choose.h"

bool weight_layout(const Nest *n, int arg, Layout *l)
{
    const Kernel *k = n->k;
    Arena *a = arena_new();
    View v = kernel_view(k);
    Packing p = {.block = 1};
    Node *load = NULL, **loop = NEWN(a, Node *, k->naxis + 1), *four[4];
    bool *seen = NEWN(a, bool, k->naxis + 1);
    p.loop = loop;
    p.four = four;
    for (int i = 0; i < n->nsplit; i++) {
        Node *range = k->axes[n->axis[n->split[i].axis].root].range;
        if (n->split[i].kind == OPT_VECTOR)
            p.lanes = range;
        if (n->split[i].kind == OPT_DOT && p.nfour < 4)
            four[p.nfour++] = range;
        if (n->split[i].kind == OPT_DOT)
            p.terms = (int)n->split[i].amount;
    }
    for (int i = 0; i < n->nsplit; i++) {
        const Split *s = &n->split[i];
        if (k->axes[n->axis[s->axis].root].range == p.lanes &&
            (s->kind == OPT_VECTOR || s->kind == OPT_UPCAST))
            p.block *= s->amount;
    }
    for (int i = 0; i < n->norder; i++) {
        int root = n->axis[n->order[i]].root;
        if (!seen[root])
            loop[p.nloop++] = k->axes[root].range;
        seen[root] = true;
    }
    for (int i = 0; i < v.nload; i++)
        load = v.load[i]->src[0]->arg.i == arg ? v.load[i] : load;
    for (int i = 0; i < v.nfactor && p.lanes; i++)
        p.reuse |= !depends_on(v.factor[i], p.lanes);
    bool good =
        load && p.lanes && idx_value(p.lanes->src[0], NULL) && packing_layout(k, load, &p, l);
    arena_free(a);
    return good;
}
