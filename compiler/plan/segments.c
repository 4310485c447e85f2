/* segments.c - the steps of a plan for several devices, as what each device does between two waits.
 *
 *     step         0  1  2  3  4  5             segments, in an order that one thread can run
 *     device       0  0  1  1  0  0             0: steps 0, 1          device 0
 *     4 reads what 3 has made, 2 what 1 has     1: steps 2, 3          device 1, behind 1 of 0
 *                                               2: steps 4, 5          device 0, behind 1 of 1
 *
 * Devices go on by themselves. A step waits for the latest one of another device that it must not
 * overtake: one that writes bytes which it touches, or reads bytes which it writes. Only copies
 * touch what two devices have, so only they are waited for, or wait; run-time integers are one
 * place more, which all devices have. A wait that follows from others is left out.
 *
 * Requires step numbers and places (memplan.c). Leaves the plan as it is. */
#include <string.h>

#include "segments.h"

/* Bytes of a memory; of what the caller has, all. */
typedef struct {
    int place;
    int64_t from, to;
    bool written;
} Touch;

typedef struct {
    Touch *touch;
    int n;
} Touches;

/* ---- what a step touches --------------------------------------------------------------------- */

/* Memories, then inputs and outputs by their numbers, then run-time integers. */
static int place_of(const Plan *p, const Buffer *root)
{
    const int given = p->nmemory + (root->kind == BUF_OUTPUT ? p->c->ninput : 0);
    return root->kind == BUF_ARENA || root->kind == BUF_STATE ? root->memory : given + root->slot;
}

/* What is done at once: a step, or a half of a copy; and who does it. */
typedef struct {
    Step *step;
    StepPart part;
    int device;
} Item;

static int integers_place(const Plan *p)
{
    return p->nmemory + p->c->ninput + p->c->noutput;
}

static void touch(const Plan *p, Arena *a, Touches *t, const Buffer *b, bool written)
{
    const Buffer *r = buffer_root(b);
    const bool placed = r->kind == BUF_ARENA || r->kind == BUF_STATE;
    if (r->kind == BUF_WEIGHT || r->kind == BUF_LOCAL)
        return;
    vec_push(a, t->touch, t->n,
             ((Touch){place_of(p, r), placed ? r->offset : 0,
                      placed ? r->offset + r->bytes : INT64_MAX, written}));
}

static void touch_integers(const Plan *p, Arena *a, Touches *t, bool written)
{
    vec_push(a, t->touch, t->n, ((Touch){integers_place(p), 0, 1, written}));
}

static void touches_of(const Plan *p, Arena *a, Touches *t, const Step *s)
{
    for (int i = 0; i < s->nbuf; i++) {
        const bool kernel = s->kind == STEP_KERNEL || s->kind == STEP_INDEX;
        const bool written = kernel                 ? s->kernel->args[i].written
                             : s->kind == STEP_CALL ? i >= s->call->n_in
                                                    : i == 0;
        touch(p, a, t, s->bufs[i], written);
    }
    if (s->scratch)
        touch(p, a, t, s->scratch, true);
    if (s->cond)
        touch(p, a, t, s->cond, false);
    if (s->kind == STEP_LOOP || (s->kind == STEP_CALL && s->call->n_count))
        touch_integers(p, a, t, true);
    else if (p->c->nvar)
        touch_integers(p, a, t, false);
    for (int i = 0; i < s->body.n; i++)
        touches_of(p, a, t, s->body.step[i]);
    for (int i = 0; i < s->other.n; i++)
        touches_of(p, a, t, s->other.step[i]);
}

/* May they not change places? */
static bool conflict(const Touches *x, const Touches *y)
{
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < y->n; j++) {
            const Touch *a = &x->touch[i], *b = &y->touch[j];
            if (a->place == b->place && (a->written || b->written) && a->from < b->to &&
                b->from < a->to)
                return true;
        }
    return false;
}

static Touches touches_of_item(Arena *a, const Plan *p, const Item *x)
{
    Touches t = {0};
    if (x->part == WHOLE_STEP)
        touches_of(p, a, &t, x->step);
    else
        touch(p, a, &t, x->step->bufs[x->part == STEP_SENDS], x->part == STEP_TAKES);
    return t;
}

/* ---- waits ----------------------------------------------------------------------------------- */

typedef struct {
    const Plan *p;
    Arena *a;
    int ndevice; /* and queues */
    Item *item;  /* in an order in which all of them can be done */
    int n;
    Touches *touch; /* by item */
    /* by item and device: the last item of that device that is done before this one; -1: none */
    int *behind;
    int *first;           /* the same, of those that it waits for itself */
    bool *waits, *waited; /* by item: it begins a segment, it ends one */
} Waiting;

static int *behind(const Waiting *w, int item)
{
    return w->behind + (size_t)item * (size_t)w->ndevice;
}

static int *waited_for(const Waiting *w, int item)
{
    return w->first + (size_t)item * (size_t)w->ndevice;
}

/* The latest item of a device, after `known`, that item i must not overtake; -1: none. */
static int last_conflict(const Waiting *w, int i, int device, int known)
{
    for (int j = i - 1; j > known; j--)
        if (w->item[j].device == device && conflict(&w->touch[i], &w->touch[j]))
            return j;
    return -1;
}

/* Is there anything that item i could have to wait for? A kernel without run-time integers touches
 * what its device has: of others only their copies do. */
static void wait_for(Waiting *w, int i, int *last)
{
    const int device = w->item[i].device;
    int *own = behind(w, i);
    for (int d = 0; d < w->ndevice; d++) {
        own[d] = last[device] >= 0 ? behind(w, last[device])[d] : -1;
        waited_for(w, i)[d] = -1;
    }
    for (int d = 0; d < w->ndevice; d++) {
        const int j = d == device ? -1 : last_conflict(w, i, d, own[d]);
        if (j < 0)
            continue;
        w->waits[i] = w->waited[j] = true;
        waited_for(w, i)[d] = j;
        for (int e = 0; e < w->ndevice; e++)
            own[e] = own[e] > behind(w, j)[e] ? own[e] : behind(w, j)[e];
        own[d] = own[d] > j ? own[d] : j;
    }
    own[device] = last[device];
    last[device] = i;
}

/* ---- segments -------------------------------------------------------------------------------- */

static Segment *new_segment(Segments *s, Arena *a, int device)
{
    vec_push(a, s->segment, s->n, ((Segment){.device = device}));
    Segment *x = &s->segment[s->n - 1];
    x->waits = NEWN(a, int, s->ndevice);
    return x;
}

static void add_step(Segment *x, Arena *a, const Item *item)
{
    int n = x->block.n;
    vec_push(a, x->part, n, item->part);
    vec_push(a, x->block.step, x->block.n, item->step);
}

static Segments segments_of(Waiting *w)
{
    Arena *a = w->a;
    Segments s = {.ndevice = w->ndevice};
    const int n = w->n;
    int *last = NEWN(a, int, w->ndevice), *open = NEWN(a, int, w->ndevice),
        *count = NEWN(a, int, w->ndevice), *number = NEWN(a, int, n + 1);
    w->behind = NEWN(a, int, (size_t)(n + 1) * (size_t)w->ndevice);
    w->first = NEWN(a, int, (size_t)(n + 1) * (size_t)w->ndevice);
    w->waits = NEWN(a, bool, n + 1);
    w->waited = NEWN(a, bool, n + 1);
    for (int d = 0; d < w->ndevice; d++)
        last[d] = open[d] = -1;
    for (int i = 0; i < n; i++) {
        w->waits[i] |= w->item[i].part == STEP_TAKES;
        w->waited[i] |= w->item[i].part == STEP_SENDS;
        wait_for(w, i, last);
    }
    for (int i = 0; i < n; i++) {
        const int device = w->item[i].device;
        if (open[device] < 0 || w->waits[i]) {
            Segment *x = new_segment(&s, a, device);
            open[device] = s.n - 1;
            count[device]++;
            for (int d = 0; d < w->ndevice; d++)
                if (waited_for(w, i)[d] >= 0)
                    x->waits[d] = number[waited_for(w, i)[d]];
        }
        number[i] = count[device]; /* so many of its device's are done when its own is */
        add_step(&s.segment[open[device]], a, &w->item[i]);
        if (w->waited[i])
            open[device] = -1;
    }
    return s;
}

Segments plan_segments(Arena *a, const Plan *p)
{
    Waiting w = {.p = p, .a = a, .ndevice = p->ndevice, .n = p->main.n};
    w.item = NEWN(a, Item, w.n + 1);
    w.touch = NEWN(a, Touches, w.n + 1);
    for (int i = 0; i < w.n; i++) {
        w.item[i] = (Item){p->main.step[i], WHOLE_STEP, p->main.step[i]->device};
        w.touch[i] = touches_of_item(a, p, &w.item[i]);
    }
    return segments_of(&w);
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* Behind what makes the value. */
static void insert_send(Waiting *w, Step *copy)
{
    const Item item = {copy, STEP_SENDS, buffer_root(copy->bufs[1])->device};
    const Touches reads = touches_of_item(w->a, w->p, &item);
    int at = w->n++;
    for (; at > 0 && !conflict(&reads, &w->touch[at - 1]); at--) {
        w->item[at] = w->item[at - 1];
        w->touch[at] = w->touch[at - 1];
    }
    w->item[at] = item;
    w->touch[at] = reads;
}

Segments plan_queues(Arena *a, const Plan *p, int64_t sent)
{
    Waiting w = {.p = p, .a = a, .ndevice = 2 * p->ndevice};
    w.item = NEWN(a, Item, 2 * p->main.n + 1);
    w.touch = NEWN(a, Touches, 2 * p->main.n + 1);
    for (int i = 0; i < p->main.n; i++) {
        Step *s = p->main.step[i];
        const bool crosses = s->kind == STEP_COPY && buffer_root(s->bufs[1])->device != s->device;
        Item item = {s, WHOLE_STEP, crosses ? p->ndevice + s->device : s->device};
        if (crosses && sat_mul(s->elements->hi, dtype_info[s->bufs[0]->dtype].bytes) <= sent) {
            insert_send(&w, s);
            item = (Item){s, STEP_TAKES, s->device};
        }
        w.item[w.n] = item;
        w.touch[w.n] = touches_of_item(a, p, &item);
        w.n++;
    }
    return segments_of(&w);
}

/* ---- a check by other means ------------------------------------------------------------------ */

/* Which steps are done before a segment begins, by what it and those before it wait for. */
static void done_before(const Segments *s, int k, int *const *done, int *out)
{
    int nth = 0;
    memset(out, 0, (size_t)s->ndevice * sizeof *out);
    for (int i = 0; i < k; i++)
        nth += s->segment[i].device == s->segment[k].device;
    for (int i = 0, of[2 * MOST_DEVICES] = {0}; i < k; i++) {
        const int d = s->segment[i].device;
        of[d]++;
        const int wanted = d == s->segment[k].device ? nth : s->segment[k].waits[d];
        if (of[d] > wanted)
            continue;
        for (int e = 0; e < s->ndevice; e++)
            out[e] = out[e] > done[i][e] ? out[e] : done[i][e];
        out[d] = out[d] > of[d] ? out[d] : of[d];
    }
}

const char *segments_fault(Arena *a, const Plan *p, const Segments *s)
{
    int **done = NEWN(a, int *, s->n + 1), *nth = NEWN(a, int, s->n + 1),
        count[2 * MOST_DEVICES] = {0};
    for (int k = 0; k < s->n; k++) {
        done[k] = NEWN(a, int, s->ndevice);
        done_before(s, k, done, done[k]);
        nth[k] = ++count[s->segment[k].device];
    }
    for (int k = 0; k < s->n; k++)
        for (int i = 0; i < k; i++) {
            const Segment *x = &s->segment[i], *y = &s->segment[k];
            if (x->device == y->device || done[k][x->device] >= nth[i])
                continue;
            for (int m = 0; m < x->block.n; m++)
                for (int n = 0; n < y->block.n; n++) {
                    const Item first = {x->block.step[m], x->part[m], x->device},
                               second = {y->block.step[n], y->part[n], y->device};
                    const Touches t = touches_of_item(a, p, &first),
                                  u = touches_of_item(a, p, &second);
                    if (conflict(&t, &u))
                        return arena_printf(a,
                                            "step %d (%s) on device %d does not wait for step %d "
                                            "(%s) on device %d, and both touch the same bytes",
                                            y->block.step[n]->number, y->block.step[n]->name,
                                            y->device, x->block.step[m]->number,
                                            x->block.step[m]->name, x->device);
                }
        }
    return NULL;
}
