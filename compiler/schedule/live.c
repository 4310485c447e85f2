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

/* Steps of a block, `first` to `last`; first < 0: none. */
typedef struct {
    int first, last;
} Life;

static void live_at(Life *life, const Buffer *b, int step)
{
    Life *x = &life[buffer_root(b)->id];
    x->first = x->first < 0 ? step : x->first;
    x->last = step;
}

static void names_all(const Step *s, Life *life, int step)
{
    if (s->cond)
        live_at(life, s->cond, step);
    for (int i = 0; i < s->nbuf; i++)
        live_at(life, s->bufs[i], step);
    for (int i = 0; i < s->body.n; i++)
        names_all(s->body.step[i], life, step);
    for (int i = 0; i < s->other.n; i++)
        names_all(s->other.step[i], life, step);
}

double *bytes_live(Arena *a, const Plan *p, const Block *b)
{
    Arena *scratch = arena_new();
    Life *life = NEWN(scratch, Life, p->nbuffer + 1);
    double *live = NEWN(a, double, b->n + 1);
    for (int i = 0; i < p->nbuffer; i++)
        life[i].first = -1;
    for (int s = 0; s < b->n; s++)
        names_all(b->step[s], life, s);
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *x = p->buffers[i];
        if (x->kind != BUF_ARENA || x->base || life[i].first < 0)
            continue;
        live[life[i].first] += (double)x->bytes;
        live[life[i].last + 1] -= (double)x->bytes;
    }
    for (int s = 1; s < b->n; s++)
        live[s] += live[s - 1];
    arena_free(scratch);
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
