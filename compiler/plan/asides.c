/* asides.c - steps of a GPU whose results the longest chain of steps does not need run beside it.
 *
 *     dy = ...                 dy = ...
 *     dw = dy xT               dx = dy w     |  dw = dy xT
 *     w -= rate dw             dz = f(dx)    |  w -= rate dw
 *     dx = dy w            ->  ...
 *     dz = f(dx)
 *
 * Of a training step these are the weights' gradients and the optimizer.  They have a queue of
 * their own: a kernel of few groups leaves processors to those of the other one, and nobody waits
 * for small ones.  What they read and write keeps its bytes for some steps more, so that they may
 * fall behind before a step of the chain has to wait for them (bundle_gpu_asides.c).
 *
 * So have steps that need nothing but what there is before the first one: weights and states that
 * are rounded, or laid in another order. They run aside some steps before somebody reads their
 * results, several of them together, for a wait costs about as much as one of them.
 *
 * Requires the order of the main steps. Leaves Step.aside, and an order in which such steps are
 * early. */
#include <stdlib.h>

#include "plan.h"

enum { EARLY = 24, BATCH = 16 }; /* steps of the chain between batches of those that need nothing */

/* Of steps that read what others write the longest chain ends here. */
static int end_of_chain(const Plan *p, Arena *a)
{
    const Block *b = &p->main;
    int *made = NEWN(a, int, p->nbuffer + 1); /* by memory: steps of the chain up to what it has */
    int longest = 0, end = 0;
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        int before = 0;
        for (int j = 0; j < s->nbuf; j++)
            if (s->kernel->args[j].read && made[buffer_memory(s->bufs[j])->id] > before)
                before = made[buffer_memory(s->bufs[j])->id];
        for (int j = 0; j < s->nbuf; j++)
            if (s->kernel->args[j].written && made[buffer_memory(s->bufs[j])->id] <= before)
                made[buffer_memory(s->bufs[j])->id] = before + 1;
        if (before + 1 > longest) {
            longest = before + 1;
            end = i;
        }
    }
    return end;
}

static bool only_kernels(const Block *b)
{
    for (int i = 0; i < b->n; i++)
        if (b->step[i]->kind != STEP_KERNEL || b->step[i]->scratch || b->step[i]->nway)
            return false;
    return b->n > 0;
}

static void find_chain(const Plan *p, Arena *a)
{
    const Block *b = &p->main;
    bool *needed = NEWN(a, bool, p->nbuffer + 1);
    const int end = end_of_chain(p, a);
    for (int i = b->n - 1; i >= 0; i--) {
        Step *s = b->step[i];
        bool needs = i == end;
        for (int j = 0; j < s->nbuf && i < end && !needs; j++)
            needs = s->kernel->args[j].written && needed[buffer_memory(s->bufs[j])->id];
        s->aside = !needs;
        for (int j = 0; j < s->nbuf && needs; j++)
            needed[buffer_memory(s->bufs[j])->id] |= s->kernel->args[j].read;
    }
}

/* ---- what needs nothing ---------------------------------------------------------------------- */

/* A step of the chain that needs nothing: where it is, and how many of the chain that need
 * something stand before the first that reads its result. */
typedef struct {
    int at, use;
} Early;

static int in_order_of_use(const void *x, const void *y)
{
    const Early *a = x, *b = y;
    return a->use != b->use ? a->use - b->use : a->at - b->at;
}

/* made: memories that other steps write. */
static bool is_source(const Step *s, const bool *made)
{
    bool source = !s->aside;
    for (int j = 0; j < s->nbuf; j++) {
        const Buffer *root = buffer_root(s->bufs[j]);
        const bool own = root->kind == BUF_ARENA && !root->takes && !s->kernel->args[j].read;
        source &= s->kernel->args[j].written
                      ? own
                      : root->kind != BUF_INPUT && !made[buffer_memory(root)->id];
    }
    return source;
}

/* In the order in which they are needed; n of them. *source: by step, is it one? */
static Early *find_sources(const Plan *p, Arena *a, bool **source, int *n)
{
    const Block *b = &p->main;
    bool *made = NEWN(a, bool, p->nbuffer + 1);
    int *use = NEWN(a, int, p->nbuffer + 1), chain = 0;
    Early *list = NULL;
    *source = NEWN(a, bool, b->n + 1);
    *n = 0;
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        (*source)[i] = is_source(s, made);
        for (int j = 0; j < s->nbuf && !(*source)[i]; j++)
            made[buffer_memory(s->bufs[j])->id] |= s->kernel->args[j].written;
        chain += !(*source)[i] && !s->aside;
    }
    for (int i = b->n - 1, left = chain; i >= 0; i--) {
        const Step *s = b->step[i];
        int own = chain;
        left -= !(*source)[i] && !s->aside;
        for (int j = 0; j < s->nbuf && (*source)[i]; j++)
            if (s->kernel->args[j].written && use[buffer_memory(s->bufs[j])->id] < own)
                own = use[buffer_memory(s->bufs[j])->id];
        for (int j = 0; j < s->nbuf; j++)
            if (s->kernel->args[j].read)
                use[buffer_memory(s->bufs[j])->id] = (*source)[i] ? own : left;
        if ((*source)[i])
            vec_push(a, list, *n, ((Early){i, own}));
    }
    if (*n)
        qsort(list, (size_t)*n, sizeof *list, in_order_of_use);
    return list;
}

typedef struct {
    const Early *list;
    int n, next;
    bool *waits; /* by memory: a source that writes it has no place yet */
    Step **order;
    int norder;
} EarlyPlaces;

static void place_step(EarlyPlaces *x, Step *s)
{
    for (int j = 0; j < s->nbuf; j++)
        if (s->kernel->args[j].written)
            x->waits[buffer_memory(s->bufs[j])->id] = false;
    x->order[x->norder++] = s;
}

/* In front of step i, before which so many steps of the chain stand: of those of the list the next
 * ones whose results are needed later. */
static void place_batch(const Block *b, EarlyPlaces *x, int i, int chain)
{
    for (int taken = 0; x->next < x->n && taken < BATCH; x->next++) {
        const Early *source = &x->list[x->next];
        Step *s = b->step[source->at];
        bool may = source->at > i && source->use >= chain + EARLY;
        for (int j = 0; j < s->nbuf; j++)
            may &= !s->kernel->args[j].read || !x->waits[buffer_memory(s->bufs[j])->id];
        if (!may)
            continue;
        s->aside = true;
        place_step(x, s);
        taken++;
    }
}

static void place_sources(Plan *p, Arena *a)
{
    Block *b = &p->main;
    bool *source;
    EarlyPlaces x = {.waits = NEWN(a, bool, p->nbuffer + 1), .order = NEWN(a, Step *, b->n + 1)};
    x.list = find_sources(p, a, &source, &x.n);
    for (int i = 0; i < b->n; i++)
        for (int j = 0; j < b->step[i]->nbuf && source[i]; j++)
            x.waits[buffer_memory(b->step[i]->bufs[j])->id] |= b->step[i]->kernel->args[j].written;
    for (int i = 0, chain = 0; i < b->n; i++) {
        Step *s = b->step[i];
        const bool counts = !source[i] && !s->aside;
        if (counts && chain % EARLY == 0)
            place_batch(b, &x, i, chain);
        chain += counts;
        if (!source[i] || !s->aside)
            place_step(&x, s);
    }
    for (int i = 0; i < b->n; i++)
        b->step[i] = x.order[i];
}

void find_asides(Plan *p)
{
    if (p->ndevice > 1 || !only_kernels(&p->main))
        return;
    Arena *a = arena_new();
    find_chain(p, a);
    place_sources(p, a);
    arena_free(a);
}
