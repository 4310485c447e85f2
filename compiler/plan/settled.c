/* settled.c - what a kernel of a GPU reads before those before it are done: what none of them, as
 * far as they may still run, writes.
 *
 *     h = norm(x)
 *     q = h Wq     waits for norm, then lets the next one begin (TRIGGER)
 *     k = h Wk     begins: norm is done, so h is settled; waits for q before it stores
 *     v = h Wv     begins beside both, for k lets it, too
 *     s = q kT     reads what is not settled: waits first
 *
 * A kernel that triggers has waited before.  So whoever begins behind it finds all done but this
 * one.  A kernel that reads what is settled triggers before it waits: what may run beside it may
 * run beside the next one too; so does one that has asked for its weights (TRIGGER copied).  No
 * kernel stores before it has waited, and each waits: whoever has waited for the one before it has
 * waited for all.
 *
 * Steps that are one launch (together.c) begin together.  The queue of those that run aside
 * (asides.c) is one of its own: the first of some that stand together begins when all before it is
 * done, and none writes what one of the others reads.
 *
 * Requires the places of all buffers, and which steps are one launch.  Leaves KernelArg.settled,
 * which holds for all steps of a kernel. */
#include <string.h>

#include "plan.h"

/* The first step of the launch that a step belongs to. */
static int launch_of(const Block *b, int i)
{
    while (i && b->step[i]->follows)
        i--;
    return i;
}

/* Of a kernel, before its arguments are asked one by one; NULL: it does not trigger. */
static const Opt *trigger_of(const Kernel *k)
{
    for (int i = 0; i < k->nopt; i++)
        if (k->opts[i].kind == OPT_TRIGGER)
            return &k->opts[i];
    return NULL;
}

/* Of a kernel that triggers: before it waits, whatever it reads? */
static bool begins_others(const Kernel *k)
{
    return !strcmp(trigger_of(k)->axis, "copied");
}

/* Some step of the launch reads something before it waits. */
static bool is_ahead(const Step *first)
{
    for (int s = 0; s < (first->ntogether ? first->ntogether : 1); s++) {
        const Kernel *k = first->ntogether ? first->together[s]->kernel : first->kernel;
        for (int i = 0; i < k->narg; i++)
            if (k->args[i].settled)
                return true;
    }
    return false;
}

bool share_bytes(const Buffer *a, const Buffer *b)
{
    const Buffer *x = buffer_root(a), *y = buffer_root(b);
    const bool placed = x->kind == BUF_ARENA || x->kind == BUF_STATE;
    if (x == y)
        return true;
    if (!placed || (y->kind != BUF_ARENA && y->kind != BUF_STATE) || x->memory != y->memory)
        return false;
    return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

static bool writes(const Step *s, const Buffer *b)
{
    for (int i = 0; i < s->nbuf; i++)
        if (s->kernel->args[i].written && share_bytes(s->bufs[i], b))
            return true;
    return s->scratch && share_bytes(s->scratch, b);
}

/* at: the first step of its launch. */
static void settle_step(const Block *b, const Step *s, int at, int first)
{
    for (int j = 0; j < s->nbuf; j++) {
        KernelArg *arg = &s->kernel->args[j];
        for (int i = first; i < at && arg->settled; i++)
            arg->settled = !writes(b->step[i], s->bufs[j]);
        arg->settled &= first < at;
    }
}

/* The launch before one in its queue; -1: none. */
static int launch_before(const Block *b, int begin)
{
    const bool aside = b->step[begin]->aside;
    int i = begin - 1;
    while (i >= 0 && b->step[i]->aside && !aside)
        i--;
    return i < 0 || b->step[i]->aside != aside ? -1 : launch_of(b, i);
}

/* Of which steps some may run when a step begins: from `first` on.  Where nobody knows, as behind a
 * loop, nothing is settled.  known: what reads ahead is decided. */
static void settle_block(const Block *b, bool known)
{
    int of[2] = {0, 0}; /* by queue */
    for (int i = 0; i < b->n; i++) {
        const int begin = launch_of(b, i), last = launch_before(b, begin);
        const Step *s = b->step[i], *before = last < 0 ? NULL : b->step[last];
        int *first = &of[s->aside];
        if (s->kind == STEP_KERNEL) {
            if (!before || before->kind != STEP_KERNEL || before->device != s->device ||
                !trigger_of(before->kernel))
                *first = begin;
            else if (!begins_others(before->kernel) && (!known || !is_ahead(before)))
                *first = last;
            settle_step(b, s, begin, *first);
        }
        settle_block(&s->body, known);
        settle_block(&s->other, known);
    }
}

void find_settled(Plan *p)
{
    for (int i = 0; i < p->nkernel; i++) {
        Kernel *k = p->kernels[i];
        for (int j = 0; j < k->narg; j++)
            k->args[j].settled = !k->args[j].written && !k->args[j].early && !k->serial;
    }
    settle_block(&p->main, false);
    settle_block(&p->main, true);
}
