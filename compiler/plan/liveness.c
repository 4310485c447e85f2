/* liveness.c - how many bytes of the arena are in use while each step runs, before the memory plan
 * gives them places: what lies there from the first step that names a buffer to the last one.  More
 * bytes cost RAM only where they make the greatest of these sums greater. */
#include "plan.h"

static void live_at(Lives *l, const Buffer *b, int step)
{
    Life *x = &l->of[buffer_root(b)->id];
    x->first = x->first < 0 ? step : x->first;
    x->last = step;
}

static void name_buffers(const Step *s, Lives *l, int step)
{
    if (s->cond)
        live_at(l, s->cond, step);
    for (int i = 0; i < s->nbuf; i++)
        live_at(l, s->bufs[i], step);
    for (int i = 0; i < s->body.n; i++)
        name_buffers(s->body.step[i], l, step);
    for (int i = 0; i < s->other.n; i++)
        name_buffers(s->other.step[i], l, step);
}

Lives lives_of(Arena *a, const Plan *p, const Block *b)
{
    Lives l = {NEWN(a, Life, p->nbuffer + 1), NEWN(a, double, b->n + 1), b->n};
    for (int i = 0; i < p->nbuffer; i++)
        l.of[i].first = -1;
    for (int s = 0; s < b->n; s++)
        name_buffers(b->step[s], &l, s);
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *x = p->buffers[i];
        if (x->kind != BUF_ARENA || x->base || x->takes || l.of[i].first < 0)
            continue;
        l.of[i].first = x->lent == LENT_FIRST ? 0 : l.of[i].first;
        l.of[i].last = x->lent == LENT_LAST ? b->n - 1 : l.of[i].last;
        l.bytes[l.of[i].first] += (double)x->bytes;
        l.bytes[l.of[i].last + 1] -= (double)x->bytes;
    }
    for (int s = 1; s < b->n; s++)
        l.bytes[s] += l.bytes[s - 1];
    return l;
}

double arena_growth(const Lives *l, Life more, double bytes)
{
    double peak = 0, then = 0;
    for (int s = 0; s < l->n; s++)
        peak = l->bytes[s] > peak ? l->bytes[s] : peak;
    for (int s = more.first; s <= more.last; s++)
        then = l->bytes[s] + bytes > then ? l->bytes[s] + bytes : then;
    return then > peak ? then - peak : 0;
}
