/* share_weights.c - a weight that one kernel multiplies and another one looks up is stored once.
 *
 * A contraction stores its constant operand in the order in which its loops read it.  A kernel that
 * reads the same constant element by element, as an embedding is looked up whose transpose gives
 * the logits, can read it there too, each element from a line of its own.  It does where that takes
 * little beside the contraction, or is worth the bytes; else it has a copy that lies as it reads.
 *
 * And one that kernels of two functions multiply (docs/functions.md): the later one reads it where
 * the earlier one has it, in blocks of another size, if its vectors do not cross them.
 *
 * Requires the layouts of everything else. Leaves the layout in the arguments of such kernels and
 * in their records. */
#include <math.h>

#include "choose.h"

typedef struct {
    Arena *a;
    const Context *c;
    const Target *t;
    Step **step;
    int n;
    Layout *layout; /* by buffer: as the largest contraction wants it */
    double *cost;   /* of that contraction; 0: there is none */
    double run;     /* of all kernels */
} Weights;

static bool is_contraction(const Step *s)
{
    return kernel_view(s->kernel).dot != NULL;
}

/* The axis whose elements lie side by side, so many in a block; -1: the layout is of another
 * form. */
static int axis_of_lanes(const Layout *l, const Buffer *b, int64_t *block)
{
    const int blocks = l->n && (l->op[0].kind == LAYOUT_SPLIT || l->op[0].kind == LAYOUT_CUT);
    if (l->n != 1 + blocks || l->op[blocks].kind != LAYOUT_PERMUTE)
        return -1;
    const Perm *p = &l->op[blocks].perm;
    const int last = p->axis[p->n - 1], axis = blocks ? l->op[0].axis : last;
    if (blocks)
        *block = l->op[0].a;
    else if (!idx_value(b->dims[axis], block))
        return -1;
    return last == axis + blocks ? axis : -1;
}

void agree_on_weights(const Context *c, const Nest *nest, const Buffer *const *bufs, Layout *want)
{
    int64_t lanes = 1, there, block, size;
    for (int i = 0; i < nest->nsplit; i++)
        if (nest->split[i].kind == OPT_VECTOR && nest->split[i].amount > lanes)
            lanes = nest->split[i].amount;
    for (int i = 0; i < nest->k->narg; i++) {
        const Buffer *b = bufs[i];
        const Layout *l = b->kind == BUF_WEIGHT && b->node && want[i].n
                              ? map_get(&c->weight_layouts, (uint64_t)b->node->id + 1)
                              : NULL;
        const int axis = l ? axis_of_lanes(l, b, &there) : -1;
        if (axis >= 0 && axis == axis_of_lanes(&want[i], b, &block) &&
            idx_value(b->dims[axis], &size) && there % lanes == 0 && size % lanes == 0)
            want[i] = *l;
    }
}

/* The layouts that a contraction wants for its weights. */
static void ask(Weights *w, const Step *s)
{
    const Kernel *k = s->kernel;
    if (k->serial || k->sink->nsrc != 1)
        return;
    Nest *nest = nest_new(k, w->t);
    Layout *want = NEWN(w->a, Layout, k->narg);
    Node *lanes[MAX_LANES];
    int nlanes;
    choose_opts(w->a, &nest, (const Buffer *const *)s->bufs, false, NULL, want, lanes, &nlanes);
    agree_on_weights(w->c, nest, (const Buffer *const *)s->bufs, want);
    double cost = cost_kernel(k, w->t);
    for (int i = 0; i < k->narg; i++) {
        int id = s->bufs[i]->id;
        if (s->bufs[i]->kind == BUF_WEIGHT && want[i].n && cost > w->cost[id]) {
            w->layout[id] = want[i];
            w->cost[id] = cost;
        }
    }
    nest_free(nest);
}

enum { LITTLE_OF_RUN = 8 * LITTLE };

/* A line for each element that is read, beside the elements alone: little beside the contraction,
 * or beside the run? */
static bool pays(const Weights *w, const Step *s, int arg)
{
    const Buffer *b = s->bufs[arg];
    int64_t *count = NEWN(w->a, int64_t, s->kernel->narg);
    kernel_accesses(s->kernel, w->a, count);
    double more = (double)count[arg] * (double)(w->t->machine.line - (int)elem_bytes(b->dtype)),
           bytes = (double)b->bytes;
    const double little = fmax(w->cost[b->id] / LITTLE, w->run / LITTLE_OF_RUN);
    return cost_bytes(more, bytes, w->t) <= little + bytes * w->t->machine.byte;
}

void share_weights(Plan *p, const Target *t)
{
    Weights w = {.a = arena_new(), .c = p->c, .t = t};
    w.step = kernel_steps(p, w.a, &w.n);
    w.layout = NEWN(w.a, Layout, p->nbuffer);
    w.cost = NEWN(w.a, double, p->nbuffer);
    bool *looked_up = NEWN(w.a, bool, p->nbuffer);
    for (int i = 0; i < w.n; i++)
        for (int j = 0; j < w.step[i]->nbuf && !is_contraction(w.step[i]); j++)
            looked_up[w.step[i]->bufs[j]->id] |= w.step[i]->bufs[j]->kind == BUF_WEIGHT;
    for (int i = 0; i < w.n; i++) {
        bool shared = false;
        for (int j = 0; j < w.step[i]->nbuf; j++)
            shared |= looked_up[w.step[i]->bufs[j]->id];
        if (shared && is_contraction(w.step[i]))
            ask(&w, w.step[i]);
    }
    for (int i = 0; i < w.n; i++)
        w.run += cost_kernel(w.step[i]->kernel, t);
    for (int i = 0; i < w.n; i++) {
        Step *s = w.step[i];
        for (int j = 0; j < s->nbuf; j++) {
            int id = s->bufs[j]->id;
            if (!(w.cost[id] > 0) || is_contraction(s) || !pays(&w, s, j))
                continue;
            s->kernel->args[j].layout = s->kernel->choice->arg[j].layout = w.layout[id];
            plan_note(p, (Note){.pass = "weights",
                                .what = "shared",
                                .why = "it is read where a product has it: it is stored once",
                                .node = s->bufs[j]->node,
                                .step = s,
                                .operations = -1,
                                .bytes = s->bufs[j]->bytes});
        }
    }
    arena_free(w.a);
}
