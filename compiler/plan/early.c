/* early.c - a step that frees more bytes of the arena than it takes runs early, where that makes
 * the arena smaller.
 *
 *     gates = ...         2 KB                 gates = ...
 *     h = f(gates)                             h = f(gates)
 *     y = ...h...         a peak here    ->    c = g(gates)     gates end here
 *     c = g(gates)        gates end here       y = ...h...
 *
 * The order of steps is that in which the results need them, which says nothing of memory.  A
 * kernel moves in front of others that neither write what it reads or writes nor read what it
 * writes.
 *
 * Requires the final sizes of all buffers, and no step numbers yet. Leaves the order of the main
 * steps. */
#include "plan.h"

bool steps_conflict(const Step *s, const Step *t)
{
    for (int i = 0; i < s->nbuf; i++)
        for (int j = 0; j < t->nbuf; j++)
            if ((s->kernel->args[i].written || t->kernel->args[j].written) &&
                buffer_memory(s->bufs[i]) == buffer_memory(t->bufs[j]))
                return true;
    return false;
}

/* Bytes that are held after step i and not before it. */
static double held(const Block *b, const Lives *lives, int i)
{
    const Step *s = b->step[i];
    double bytes = 0;
    for (int j = 0; j < s->nbuf; j++) {
        const Buffer *x = buffer_root(s->bufs[j]);
        const Life life = lives->of[x->id];
        bool counted = x->kind != BUF_ARENA || x->kept || x->takes;
        for (int k = 0; k < j; k++)
            counted |= buffer_root(s->bufs[k]) == x;
        if (counted)
            continue;
        bytes += life.first == i && life.last > i ? (double)x->bytes : 0;
        bytes -= life.first < i && life.last == i ? (double)x->bytes : 0;
    }
    return bytes;
}

static void move_step(Block *b, int from, int to)
{
    Step *s = b->step[from];
    for (int i = from; i > to; i--)
        b->step[i] = b->step[i - 1];
    for (int i = from; i < to; i++)
        b->step[i] = b->step[i + 1];
    b->step[to] = s;
}

/* The greatest of the bytes in use, and the first and the last step that needs them. */
static double peak_of(const Lives *l, Life *at)
{
    double peak = 0;
    *at = (Life){0, 0};
    for (int i = 0; i < l->n; i++) {
        if (l->bytes[i] > peak)
            at->first = i;
        peak = l->bytes[i] > peak ? l->bytes[i] : peak;
        if (!(l->bytes[i] < peak))
            at->last = i;
    }
    return peak;
}

static double peak_if_moved(const Plan *p, Block *b, int from, int to)
{
    Arena *a = arena_new();
    Life at;
    move_step(b, from, to);
    const Lives moved = lives_of(a, p, b);
    double peak = peak_of(&moved, &at);
    move_step(b, to, from);
    arena_free(a);
    return peak;
}

void run_early(Plan *p)
{
    Block *b = &p->main;
    Arena *a = arena_new();
    Lives lives = lives_of(a, p, b);
    Life at;
    double peak = peak_of(&lives, &at);
    for (int i = 1; i < b->n; i++) {
        int to = i;
        while (to > 0 && b->step[i]->kind == STEP_KERNEL && b->step[to - 1]->kind == STEP_KERNEL &&
               !steps_conflict(b->step[i], b->step[to - 1]))
            to--;
        if (to > at.first || i <= at.last || held(b, &lives, i) >= 0)
            continue;
        /* in front of the peak; or as early as may be, where that helps more */
        double then = peak_if_moved(p, b, i, at.first), earliest = peak_if_moved(p, b, i, to);
        if (then >= peak && earliest >= peak)
            continue;
        move_step(b, i, earliest < then ? to : at.first);
        arena_free(a);
        a = arena_new();
        lives = lives_of(a, p, b);
        peak = peak_of(&lives, &at);
    }
    arena_free(a);
}
