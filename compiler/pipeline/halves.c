/* halves.c - a bundle for two targets, "cuda:sm_90a+c:native": where there is a GPU, and where
 * there is none.
 *
 * Each target gets a plan of its own, of the graph as it was imported: what is rewritten for one is
 * none of the other's. Of their weights those that are equal are stored once (place_weights.c).
 * bundle_write_halves() puts both under one interface. */
#include "codegen.h"
#include "pipeline.h"

/* What the user said, as it is for one half. */
static ingot_options half_options(const ingot_options *o, const char *target, bool gpu)
{
    ingot_options half = *o;
    half.target = target;
    if (gpu)
        half.max_ram = 0; /* its arena is the GPU's */
    return half;
}

/* --save-sched: each plan's section. */
static bool save_both(Context *c, const ingot_options *o, const Half *half, OutFile *f)
{
    StrBuf both = {0};
    if (o->save_sched)
        sb_printf(&both, "%s%s", half[0].p->saved, half[1].p->saved);
    const bool ok = save_begin(c, f, o->save_sched, both.data);
    sb_free(&both);
    return ok;
}

/* "out: cuda: 9 kernels, on the GPU arena .."; what both read. */
static void halves_summary(Context *c, const Half *half, int64_t shared, const char *dir)
{
    const Plan *gpu = half[0].p, *cpu = half[1].p;
    context_report(c, INGOT_NOTE, INGOT_OK,
                   "%s: %s: %d kernels, on the GPU arena %lld bytes, weights %lld bytes, inputs "
                   "and outputs %lld bytes",
                   dir, half[0].target->name, gpu->nkernel, (long long)gpu->arena_bytes,
                   (long long)gpu->weights_bytes, (long long)plan_given_bytes(gpu));
    context_report(c, INGOT_NOTE, INGOT_OK,
                   "%s: %s: %d kernels, arena %lld bytes, weights %lld bytes", dir,
                   half[1].target->name, cpu->nkernel, (long long)cpu->arena_bytes,
                   (long long)cpu->weights_bytes);
    context_report(
        c, INGOT_NOTE, INGOT_OK, "%s: weights of both %lld bytes, of which both read %lld", dir,
        (long long)(gpu->weights_bytes + cpu->weights_bytes - shared), (long long)shared);
}

ingot_status compile_halves(Context *c, const ingot_options *o, const char *const name[2],
                            const char *dir)
{
    Arena *a = arena_new();
    const GraphRoots imported = roots_keep(c, a);
    ingot_options option[2] = {half_options(o, name[0], true), half_options(o, name[1], false)};
    Half half[2] = {{.o = &option[0]}, {.o = &option[1]}};
    bool ready = true;
    Clock k = clock_start(c, o);
    for (int i = 0; i < 2 && ready; i++) {
        half[i].target = options_check(c, half[i].o, a);
        if (i && half[i].target && half[i].target->gpu) {
            context_report(c, INGOT_ERROR, INGOT_USAGE,
                           "--target '%s': behind the '+' a target for C is wanted", o->target);
            half[i].target = NULL;
        }
        roots_restore(c, &imported);
        half[i].p = half[i].target ? pipeline_plan(c, half[i].target, half[i].o, &k) : NULL;
        ready = half[i].p != NULL &&
                (o->no_check || check_plan(half[i].p, half[i].target, half[i].o, &k));
    }
    OutFile saved;
    ready = ready && save_both(c, o, half, &saved);
    const int64_t shared = ready ? weights_join(half[0].p, half[1].p) : 0;
    ingot_status status = ready ? bundle_write_halves(half, shared, o, dir) : pipeline_failure(c);
    if (ready && !save_end(c, &saved, o->save_sched, status == INGOT_OK))
        status = c->status;
    if (ready)
        passed(&k, "bundle");
    if (status == INGOT_OK && o->summary)
        halves_summary(c, half, shared, dir);
    for (int i = 0; i < 2; i++)
        plan_free(half[i].p);
    arena_free(a);
    return status;
}
