/* bundle_gpu_together.c - steps that are one launch (together.c) have a kernel for that: the
 * functions of their kernels, and what calls them by the number of the group. */
#include <string.h>

#include "bundle_gpu.h"
#include "language.h"

static bool is_together(const Kernel *k, const Step *s)
{
    bool same = k->ntogether == s->ntogether;
    for (int i = 0; i < k->ntogether && same; i++)
        same = k->together[i] == s->together[i]->kernel;
    return same;
}

static Kernel *together_kernel(Plan *p, const Step *s)
{
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernels[i]->ntogether && is_together(p->kernels[i], s))
            return p->kernels[i];
    Kernel *k = kernel_copy(s->kernel);
    k->ntogether = s->ntogether;
    k->only_together = false;
    k->together = NEWN(p->arena, const Kernel *, s->ntogether);
    for (int i = 0; i < s->ntogether; i++) {
        const char *name = s->together[i]->kernel->name;
        k->together[i] = s->together[i]->kernel;
        if (i)
            snprintf(k->name + strlen(k->name), sizeof k->name - strlen(k->name), "_%.*s",
                     (int)strcspn(name, "_"), name);
        else
            snprintf(k->name, sizeof k->name, "%.60s_with", name);
    }
    vec_push(p->arena, p->kernels, p->nkernel, k);
    return k;
}

/* Those that are launched with others alone are no kernels of the program. */
static void mark_parts(const Plan *p, const Block *b)
{
    for (int i = 0; i < p->nkernel; i++)
        p->kernels[i]->only_together = false;
    for (int i = 0; i < b->n; i++)
        for (int j = 0; j < b->step[i]->ntogether && b->step[i]->ntogether > 1; j++)
            b->step[i]->together[j]->kernel->only_together = true;
}

static void mark_alone(const Block *b)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        if (s->kernel && s->ntogether < 2 && !s->follows)
            s->kernel->only_together = false;
        for (int j = 0; j < s->nway; j++)
            s->way[j]->only_together = false;
        mark_alone(&s->body);
        mark_alone(&s->other);
    }
}

/* A tuner's program: each step is timed, and has kernels of its own. */
static bool has_ways(const Plan *p)
{
    bool ways = false;
    for (int i = 0; i < p->main.n; i++)
        ways |= p->main.step[i]->nway > 0;
    return ways;
}

static void launch_alone(Step *s)
{
    for (int i = 1; i < s->ntogether; i++)
        s->together[i]->follows = false;
    s->ntogether = 1;
}

/* Are these steps what the device does one after the other, whole and without a wait between them,
 * and does none let values cross? */
static bool is_one_launch(const Segments *q, const Step *s)
{
    for (int i = 0; i < s->ntogether; i++)
        if (s->together[i]->kernel->crosses)
            return false;
    for (int i = 0; i < q->n; i++) {
        const Segment *x = &q->segment[i];
        for (int k = 0; k < x->block.n; k++) {
            if (x->block.step[k] != s || x->part[k] != WHOLE_STEP)
                continue;
            bool one = k + s->ntogether <= x->block.n;
            for (int j = 1; j < s->ntogether && one; j++)
                one = x->block.step[k + j] == s->together[j] && x->part[k + j] == WHOLE_STEP;
            return one;
        }
    }
    return false;
}

void gpu_together_kernels(Plan *p)
{
    Arena *a = arena_new();
    const bool ways = has_ways(p);
    const Segments q = p->ndevice > 1 && !ways ? gpu_queues(p, a) : (Segments){0};
    for (int i = 0; i < p->main.n; i++) {
        Step *s = p->main.step[i];
        if (s->ntogether > 1 && (ways || (p->ndevice > 1 && !is_one_launch(&q, s))))
            launch_alone(s);
    }
    arena_free(a);
    mark_parts(p, &p->main);
    mark_alone(&p->main);
    for (int i = 0; i < p->main.n; i++)
        if (p->main.step[i]->ntogether > 1)
            p->main.step[i]->launch = together_kernel(p, p->main.step[i]);
}
