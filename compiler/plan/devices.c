/* devices.c - does every step work on what its device has?
 *
 *     run  k0 b2 b0 device 1      b2 and b0 are of device 1
 *     copy b1 b2                  the one step that may know two devices, here from 1 to 0
 *
 * Requires Buffer.device and Step.device; with one device there is nothing to ask. */
#include "plan.h"

static const char *buffer_fault(Arena *a, const Step *s, const Buffer *b)
{
    const Buffer *root = buffer_root(b);
    if (b->device == s->device && root->device == b->device)
        return NULL;
    return arena_printf(a,
                        "step %d (%s) runs on device %d and uses buffer b%d of device %d: a copy "
                        "to device %d is wanted before it",
                        s->number, s->name, s->device, b->id, root->device, s->device);
}

static const char *step_fault(Arena *a, const Plan *p, const Step *s)
{
    const char *why = NULL;
    if (s->device < 0 || s->device >= p->ndevice)
        return arena_printf(a, "step %d (%s) runs on device %d: there are devices 0 to %d",
                            s->number, s->name, s->device, p->ndevice - 1);
    if (s->kind == STEP_COPY) /* brings something from anywhere */
        return buffer_fault(a, s, s->bufs[0]);
    for (int i = 0; i < s->nbuf && !why; i++)
        if (s->bufs[i]->kind != BUF_LOCAL)
            why = buffer_fault(a, s, s->bufs[i]);
    if (!why && s->scratch)
        why = buffer_fault(a, s, s->scratch);
    if (!why && s->cond)
        why = buffer_fault(a, s, s->cond);
    return why;
}

static const char *block_fault(Arena *a, const Plan *p, const Block *b)
{
    const char *why = NULL;
    for (int i = 0; i < b->n && !why; i++) {
        why = step_fault(a, p, b->step[i]);
        if (!why)
            why = block_fault(a, p, &b->step[i]->body);
        if (!why)
            why = block_fault(a, p, &b->step[i]->other);
    }
    return why;
}

const char *devices_fault(Arena *a, const Plan *p)
{
    const char *why = NULL;
    for (int i = 0; i < p->nbuffer && !why; i++) {
        const Buffer *b = p->buffers[i];
        const bool given = b->kind == BUF_INPUT || b->kind == BUF_OUTPUT || b->kind == BUF_STATE;
        const int wanted = b->kind == BUF_STATE ? p->c->states[b->slot].device : 0;
        if (given && b->device != wanted) /* the caller's memory, and what lives between runs */
            why = arena_printf(a, "buffer b%d, which the caller has, is of device %d", b->id,
                               b->device);
    }
    return why ? why : block_fault(a, p, &p->main);
}
