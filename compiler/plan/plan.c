/* plan.c - the record of a plan: its buffers, its notes, its kernels in order. */
#include "plan.h"
#include "decisions.h"
#include <string.h>

static void gather_kernels(Arena *a, const Block *b, Step ***out, int *n)
{
    for (int i = 0; i < b->n; i++) {
        Step *s = b->step[i];
        if (s->kind == STEP_KERNEL)
            vec_push(a, *out, *n, s);
        gather_kernels(a, &s->body, out, n);
        gather_kernels(a, &s->other, out, n);
    }
}

Step **kernel_steps(const Plan *p, Arena *a, int *n)
{
    Step **out = NULL;
    *n = 0;
    gather_kernels(a, &p->main, &out, n);
    return out;
}

Buffer *buffer_root(const Buffer *b)
{
    while (b->base)
        b = b->base;
    return (Buffer *)(uintptr_t)b;
}

const Buffer *buffer_memory(const Buffer *b)
{
    const Buffer *root = buffer_root(b);
    return root->takes ? root->takes : root;
}

void step_origin(Arena *a, Step *step, const Origin *o)
{
    int at = step->norigin;
    for (int i = 0; i < step->norigin; i++)
        if (step->origins[i] == o)
            return;
    vec_push(a, step->origins, step->norigin, o);
    for (; at > 0 && step->origins[at - 1]->number > o->number; at--)
        step->origins[at] = step->origins[at - 1];
    step->origins[at] = o;
}

void step_origin_list(Arena *a, Step *step, const OriginList *list)
{
    for (; list; list = list->rest)
        step_origin(a, step, list->origin);
}

Step *step_copies(Plan *p, Kernel *k, const char *name, Buffer *dst, Buffer *src, const Step *like)
{
    Step *step = NEW(p->arena, Step);
    *step = (Step){.kind = STEP_KERNEL, .name = name, .device = like->device, .kernel = k};
    step->bufs = NEWN(p->arena, Buffer *, 2);
    if (dst)
        step->bufs[step->nbuf++] = dst;
    step->bufs[step->nbuf++] = src;
    if (src->node)
        step_origin_list(p->arena, step, p->c->origins[src->node->id]);
    if (!step->norigin && like->heaviest.origin)
        step_origin(p->arena, step, like->heaviest.origin);
    step->heaviest = (Heaviest){NULL, name, src->node, 0};
    return step;
}

void buffer_layout_changed(Buffer *b)
{
    b->bytes =
        sat_mul(layout_elements(&b->layout, b->rank, b->dims), (int64_t)elem_bytes(b->dtype));
}

void plan_note(Plan *p, Note note)
{
    vec_push(p->arena, p->notes, p->nnote, note);
}

Plan *plan_new(Context *c)
{
    Arena *a = arena_new();
    Plan *p = NEW(a, Plan);
    p->c = c;
    p->arena = a;
    p->ndevice = 1;
    return p;
}

/* Kernels that were not shared yet belong to their steps. */
static void free_kernels(Block *b)
{
    for (int i = 0; i < b->n; i++) {
        if (b->step[i]->kernel)
            ingot_context_free(b->step[i]->kernel->c);
        free_kernels(&b->step[i]->body);
        free_kernels(&b->step[i]->other);
    }
}

void plan_free(Plan *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->nkernel; i++)
        ingot_context_free(p->kernels[i]->c);
    if (!p->nkernel)
        free_kernels(&p->main);
    values_free(p);
    arena_free(p->arena);
}

bool plan_of_processes(const Plan *p)
{
    for (int i = 0; i < p->main.n; i++)
        if (p->main.step[i]->collective)
            return true;
    return false;
}
