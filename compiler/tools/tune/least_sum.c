/* least_sum.c - two ways each for many things, so that a sum over steps is least, where what a step
 * takes depends on few of them.
 *
 * Dynamic programming in the order of the steps: a state is the way of each thing that steps before
 * and behind have in common, and a thing is decided once no step behind depends on it: for each
 * state of the others its better way is kept.  (Bellman 1957;
 * elimination of variables: Bertele and Brioschi, Nonserial Dynamic Programming, 1972.)  So the
 * result is the least of all 2^n, at a cost of steps * 2^(things in common).  Where more than
 * MOST_LIVE things are in common, those that weigh least stay as they are. */
#include <string.h>

#include "tune.h"

enum { MOST_LIVE = 12 };

typedef struct {
    const LeastSum *sum;
    Arena *a;
    int *first, *last; /* by thing: steps that depend on it; last < 0: it stays as it is */
    int live[MOST_LIVE], nlive;
    double *least; /* by state, bit i of which is the way of live[i]: of all steps so far */
    bool *way;
} Table;

/* One that is decided: its better way by the ways of those beside it. */
typedef struct {
    int thing, beside[MOST_LIVE], nbeside;
    bool *better;
} SettledThing;

static void find_spans(Table *t)
{
    const LeastSum *s = t->sum;
    t->first = NEWN(t->a, int, s->n + 1);
    t->last = NEWN(t->a, int, s->n + 1);
    for (int i = 0; i < s->n; i++) {
        t->last[i] = -1;
        for (int step = 0; step < s->nstep; step++)
            if (s->changes[i][step]) {
                t->first[i] = t->last[i] < 0 ? step : t->first[i];
                t->last[i] = step;
            }
    }
}

static void limit_live(Table *t)
{
    const LeastSum *s = t->sum;
    for (int step = 0; step < s->nstep; step++)
        for (;;) {
            int live = 0, least = -1;
            for (int i = 0; i < s->n; i++) {
                if (t->last[i] < 0 || t->first[i] > step || t->last[i] < step)
                    continue;
                live++;
                if (least < 0 || s->weight[i] < s->weight[least])
                    least = i;
            }
            if (live <= MOST_LIVE)
                break;
            t->last[least] = -1;
        }
}

static uint32_t with_bit(uint32_t state, int bit, bool set)
{
    const uint32_t below = (1u << bit) - 1;
    return (state & below) | (uint32_t)set << bit | (state & ~below) << 1;
}

static void decide(Table *t, int bit, SettledThing *out)
{
    out->thing = t->live[bit];
    for (int i = bit; i + 1 < t->nlive; i++)
        t->live[i] = t->live[i + 1];
    t->nlive--;
    out->nbeside = t->nlive;
    memcpy(out->beside, t->live, sizeof t->live);
    out->better = NEWN(t->a, bool, (size_t)1 << t->nlive);
    for (uint32_t s = 0; s < 1u << t->nlive; s++) { /* in place: what is read lies at s or behind */
        const double zero = t->least[with_bit(s, bit, false)],
                     one = t->least[with_bit(s, bit, true)];
        out->better[s] = one < zero;
        t->least[s] = one < zero ? one : zero;
    }
}

static void add_step(Table *t, int step)
{
    const LeastSum *sum = t->sum;
    for (int i = 0; i < sum->n; i++)
        if (t->last[i] >= 0 && t->first[i] == step) {
            memcpy(t->least + (1u << t->nlive), t->least, sizeof *t->least << t->nlive);
            t->live[t->nlive++] = i;
        }
    for (uint32_t s = 0; s < 1u << t->nlive; s++) {
        for (int i = 0; i < t->nlive; i++)
            t->way[t->live[i]] = s >> i & 1;
        t->least[s] += sum->cost(sum->user, step, t->way);
    }
    for (int i = 0; i < t->nlive; i++)
        t->way[t->live[i]] = false;
}

double least_sum(const LeastSum *sum, bool *way)
{
    Table t = {.sum = sum, .a = arena_new(), .way = way};
    t.least = NEWN(t.a, double, (size_t)1 << MOST_LIVE);
    SettledThing *done = NEWN(t.a, SettledThing, sum->n + 1);
    int ndone = 0;
    memset(way, 0, (size_t)sum->n * sizeof *way);
    find_spans(&t);
    limit_live(&t);
    for (int step = 0; step < sum->nstep; step++) {
        add_step(&t, step);
        for (int i = t.nlive; i-- > 0;)
            if (t.last[t.live[i]] == step)
                decide(&t, i, &done[ndone++]);
    }
    while (ndone-- > 0) { /* those beside it were decided later, and are known */
        const SettledThing *d = &done[ndone];
        uint32_t state = 0;
        for (int i = 0; i < d->nbeside; i++)
            state |= (uint32_t)way[d->beside[i]] << i;
        way[d->thing] = d->better[state];
    }
    const double least = t.least[0];
    arena_free(t.a);
    return least;
}
