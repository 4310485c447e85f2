/* pad_inputs.c - what a contraction reads beyond its edges is given a border, inputs of the model
 * too.
 *
 * The caller's memory has no halo and lies as the model declares it.  A copy in the arena may have
 * both, and costs one pass over the input; without it every load of a convolution would check its
 * coordinates.  The copy is a kernel like others: layouts.c and the heuristic know nothing of
 * it.  Without lanes (an image of a network for a microcontroller) it has to be worth its bytes. */
#include "choose.h"

enum { MIN_READS = 8 }; /* operations an element, below which a copy does not pay */

/* The argument is read by the contraction at its edges, and by it alone. */
static bool wants_border(const Step *s, const View *v, int arg)
{
    const Buffer *b = s->bufs[arg];
    bool edge = false;
    if (!const_dims(b))
        return false;
    for (int i = 0; i < v->nload; i++)
        if (v->load[i]->src[0]->arg.i == arg) {
            bool factor = false;
            for (int j = 0; j < v->nfactor; j++)
                factor |= v->factor[j] == v->load[i];
            if (!factor)
                return false;
            edge |= reads_beyond(s->kernel, v->load[i]);
        }
    return edge && s->kernel->flops / MIN_READS >= layout_elements(&b->layout, b->rank, b->dims);
}

/* Without lanes: is what the step's sum loses at the edges worth a copy, and its bytes? */
static bool copy_pays(const Lives *lives, int at, const Step *s, const View *v, int arg,
                      const Target *t)
{
    const double bytes = (double)s->bufs[arg]->bytes;
    const double grows = arena_growth(lives, (Life){at, at}, bytes);
    double saved = 0;
    for (int i = 0; i < v->nload; i++)
        if (v->load[i]->src[0]->arg.i == arg)
            saved += cost_at_edges(s, v, v->load[i], t);
    return saved > cost_bytes(2 * bytes, bytes, t) + grows * t->machine.byte;
}

void copy_inputs(Plan *p, const Target *t)
{
    if (!t->machine.lanes && t->gpu) /* a copy is a launch */
        return;
    Arena *a = arena_new();
    Buffer **copy = NEWN(a, Buffer *, p->nbuffer);
    const Lives lives = lives_of(a, p, &p->main);
    Block fresh = {0};
    for (int i = 0; i < p->main.n; i++) {
        Step *s = p->main.step[i];
        View v = {0};
        if (s->kind == STEP_KERNEL)
            v = kernel_view(s->kernel);
        for (int j = 0; j < s->nbuf && v.dot; j++) {
            Buffer *b = s->bufs[j];
            if (b->kind != BUF_INPUT || !wants_border(s, &v, j) ||
                (!t->machine.lanes && !copy_pays(&lives, i, s, &v, j, t)))
                continue;
            if (!copy[b->id]) {
                copy[b->id] = buffer_twin(p, b, BUF_ARENA, &b->layout);
                vec_push(p->arena, fresh.step, fresh.n, copy_step(p, copy[b->id], b, s));
            }
            s->bufs[j] = copy[b->id];
        }
        vec_push(p->arena, fresh.step, fresh.n, s);
    }
    p->main = fresh;
    arena_free(a);
}
