/* bundle_gpu_asides.c - steps of a GPU bundle that run beside the others (plan/asides.c), on a
 * stream of their own (igrt_aside.h).
 *
 *     TRY(igrt_aside_begin(gpu, &ctx->aside));             behind all that came before
 *     TRY(igrt_gpu_launch(gpu, ..));
 *     TRY(igrt_aside_end(gpu, &ctx->aside, &ctx->mark[3]));
 *     ..
 *     TRY(igrt_aside_wait(gpu, &ctx->aside, ctx->mark[3]));  takes bytes that it reads or writes
 *
 * A step beside the others begins behind all that stand before it. One of the others waits for
 * those that touch what it writes, or write what it touches; all wait for the last ones. */
#include "bundle_gpu.h"

/* Steps that stand together and are all aside, or none of them. */
typedef struct {
    int first, end;
    bool aside;
    int mark; /* of those aside: its number, from 1; 0: nobody waits for it */
} AsideRun;

typedef struct {
    AsideRun *run;
    int n, nmark;
    int *wait; /* by step: the run that it waits for, or -1 */
} Asides;

/* Of the runs aside from `from` up to `end` the last one that step i must not run beside; -1. */
static int last_met(const Block *b, const Asides *x, int i, int from, int end)
{
    for (int r = end - 1; r >= from; r--)
        for (int j = x->run[r].first; x->run[r].aside && j < x->run[r].end; j++)
            if (steps_meet(b->step[i], b->step[j]))
                return r;
    return -1;
}

static Asides find_runs(Arena *a, const Block *b)
{
    Asides x = {.wait = NEWN(a, int, b->n + 1)};
    for (int i = 0, end; i < b->n; i = end) {
        for (end = i + 1; end < b->n && b->step[end]->aside == b->step[i]->aside;)
            end++;
        vec_push(a, x.run, x.n, ((AsideRun){i, end, b->step[i]->aside, 0}));
    }
    for (int r = 0, done = 0; r < x.n; r++) /* done: runs that somebody has waited for */
        for (int i = x.run[r].first; i < x.run[r].end; i++) {
            x.wait[i] = x.run[r].aside ? -1 : last_met(b, &x, i, done, r);
            if (x.wait[i] < 0)
                continue;
            done = x.wait[i] + 1;
            x.run[x.wait[i]].mark = x.nmark += 1;
        }
    return x;
}

static bool has_asides(const Bundle *b)
{
    for (int i = 0; i < b->p->main.n; i++)
        if (b->p->main.step[i]->aside)
            return true;
    return false;
}

bool gpu_steps_aside(const Bundle *b)
{
    return b->gpu && b->gpu->records && has_asides(b);
}

/* Of all functions the most. */
int gpu_aside_marks(const Bundle *b)
{
    Arena *a = arena_new();
    int most = 0;
    for (int f = 0; f <= b->nfunction; f++) {
        const Bundle *of = f ? &b->function[f - 1] : b;
        const int n = gpu_steps_aside(of) ? find_runs(a, &of->p->main).nmark + 1 : 0;
        most = n > most ? n : most;
    }
    arena_free(a);
    return most;
}

static void some_steps(Writer *w, const Block *b, int first, int end)
{
    const Block some = {.step = b->step + first, .n = end - first};
    if (end > first)
        run_steps(w, &some);
}

static void aside(Writer *w, const Block *b, const AsideRun *r)
{
    w->depth = 1;
    line(w, "TRY(igrt_aside_begin(gpu, &ctx->aside));");
    w->depth = 0;
    some_steps(w, b, r->first, r->end);
    w->depth = 1;
    if (r->mark)
        line(w, "TRY(igrt_aside_end(gpu, &ctx->aside, &ctx->mark[%d]));", r->mark);
    else
        line(w, "TRY(igrt_aside_end(gpu, &ctx->aside, NULL));");
    w->depth = 0;
}

void gpu_asides_steps(Writer *w)
{
    const Block *b = &w->b->p->main;
    Arena *a = arena_new();
    const Asides x = find_runs(a, b);
    w->b->needs |= NEED_GPU;
    for (int r = 0; r < x.n; r++) {
        if (x.run[r].aside) {
            aside(w, b, &x.run[r]);
            continue;
        }
        int from = x.run[r].first;
        for (int i = from; i < x.run[r].end; i++) {
            if (x.wait[i] < 0)
                continue;
            some_steps(w, b, from, i);
            from = i;
            w->depth = 1;
            line(w, "TRY(igrt_aside_wait(gpu, &ctx->aside, ctx->mark[%d]));",
                 x.run[x.wait[i]].mark);
            w->depth = 0;
        }
        some_steps(w, b, from, x.run[r].end);
    }
    arena_free(a);
}

/* Around the steps of a run. */
void gpu_asides_enqueue(StrBuf *sb, const Bundle *b)
{
    sb_printf(sb,
              "\nstatic igrt_status enqueue(%s_ctx *ctx)\n{\n"
              "    const igrt_status status = enqueue_steps(ctx);\n"
              "    const igrt_status joined = igrt_aside_join(&ctx->gpu, &ctx->aside);\n"
              "    return status == IGRT_OK ? joined : status;\n}\n",
              b->name);
}
