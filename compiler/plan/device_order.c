/* device_order.c - steps in an order in which devices wait least for each other.
 *
 *     a (0), b (0), c (0), shrink x (0), copy (1), d (1)          1 waits for all that 0 does
 *         ->  shrink x (0), copy (1), a (0), d (1), b (0), c (0)
 *
 * Each device goes through its steps in the order of the plan, so a step that another device waits
 * for is to come early. List scheduling: of the steps that have what they need the next is the one
 * that can begin first; of several that can, the one with most work behind it.
 *
 * Requires that buffers have bytes of their own. Leaves the order of the main steps. */
#include "step_order.h"

/* About how long it takes, in operations: a byte is worth four, more between devices. */
static double time_of(const Step *s)
{
    enum { BYTE = 4, LINK = 16, LAUNCH = 1000 };
    if (s->kind == STEP_KERNEL)
        return (double)s->kernel->flops + BYTE * (double)s->kernel->bytes + LAUNCH;
    if (s->kind == STEP_COPY)
        return LINK * (double)s->bufs[0]->bytes + LAUNCH;
    double time = LAUNCH;
    for (int i = 0; i < s->nbuf; i++)
        time += BYTE * (double)s->bufs[i]->bytes;
    return time;
}

typedef struct {
    StepOrder *o;
    const Block *b;
    double *behind; /* by step: time of the longest chain that it begins */
    double *ready;  /* by step: when what it needs is there */
    int *waits;     /* by step: how many it waits for */
    double *clock;  /* by device */
} DeviceOrder;

static double begin_of(const DeviceOrder *x, int i)
{
    const double free = x->clock[x->b->step[i]->device];
    return x->ready[i] > free ? x->ready[i] : free;
}

static bool comes_first(const DeviceOrder *x, int i, int than)
{
    const double a = begin_of(x, i), b = begin_of(x, than);
    if (a < b || a > b)
        return a < b;
    return x->behind[i] > x->behind[than];
}

static void run_step(DeviceOrder *x, int i)
{
    const double end = begin_of(x, i) + time_of(x->b->step[i]);
    int n;
    const int *next = steps_next(x->o, i, &n);
    x->clock[x->b->step[i]->device] = end;
    for (int k = 0; k < n; k++) {
        x->waits[next[k]]--;
        x->ready[next[k]] = x->ready[next[k]] > end ? x->ready[next[k]] : end;
    }
    x->waits[i] = -1;
}

void order_for_devices(Plan *p)
{
    Block *b = &p->main;
    if (!p->peers)
        return;
    Arena *a = arena_new();
    DeviceOrder x = {.o = step_order_new(a, p, b), .b = b};
    x.behind = NEWN(a, double, b->n + 1);
    x.ready = NEWN(a, double, b->n + 1);
    x.waits = NEWN(a, int, b->n + 1);
    x.clock = NEWN(a, double, p->ndevice);
    Step **order = NEWN(p->arena, Step *, b->n + 1);
    for (int i = b->n; i-- > 0;) {
        int n;
        const int *next = steps_next(x.o, i, &n);
        for (int k = 0; k < n; k++) {
            x.waits[next[k]]++;
            x.behind[i] = x.behind[i] > x.behind[next[k]] ? x.behind[i] : x.behind[next[k]];
        }
        x.behind[i] += time_of(b->step[i]);
    }
    for (int n = 0, from = 0; n < b->n; n++) {
        int best = -1;
        while (x.waits[from] < 0)
            from++;
        for (int i = from; i < b->n; i++)
            if (!x.waits[i] && (best < 0 || comes_first(&x, i, best)))
                best = i;
        if (best < 0)
            BUG("steps that wait for each other");
        order[n] = b->step[best];
        run_step(&x, best);
    }
    b->step = order;
    arena_free(a);
}
