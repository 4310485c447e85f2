/* live.c - how many bytes of the arena are in use while each step runs, before the memory plan gives them places: what lies
 * there from the first step that names a buffer to the last one.  More bytes cost RAM only where they make the greatest
 * of these sums greater. */
#include "schedule.h"

static bool names_buffer(const Step *s, const Buffer *b)
{
    bool found = s->cond && buffer_root(s->cond) == b;
    for (int i = 0; i < s->nbuf && !found; i++)
        found = buffer_root(s->bufs[i]) == b;
    for (int i = 0; i < s->body.n + s->other.n && !found; i++)
        found = names_buffer(i < s->body.n ? s->body.step[i] : s->other.step[i - s->body.n], b);
    return found;
}

bool steps_with(const Block *b, const Buffer *x, int *first, int *last)
{
    *first = 0;
    *last = b->n - 1;
    while (*first < b->n && !names_buffer(b->step[*first], x))
        ++*first;
    while (*last > *first && !names_buffer(b->step[*last], x))
        --*last;
    return *first < b->n;
}

double *bytes_live(Arena *a, const Plan *p, const Block *b)
{
    double *live = NEWN(a, double, b->n + 1);
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *x = p->buffers[i];
        int first, last;
        if (x->kind != BUF_ARENA || x->base || !steps_with(b, x, &first, &last))
            continue;
        for (int s = first; s <= last; s++)
            live[s] += (double)x->bytes;
    }
    return live;
}

double arena_growth(const double *live, int n, int first, int last, double bytes)
{
    double peak = 0, then = 0;
    for (int s = 0; s < n; s++)
        peak = live[s] > peak ? live[s] : peak;
    for (int s = first; s <= last; s++)
        then = live[s] + bytes > then ? live[s] + bytes : then;
    return then > peak ? then - peak : 0;
}
