/* fat.c - a bundle for several targets: "cuda:sm_90a+c:native" where there is a GPU, and where
 * there is none; "c:x86-64-v2,x86-64-v3" for several machines of C.
 *
 * Each target gets a plan of its own, of the graph as it was imported: what is rewritten for one is
 * none of the other's; of a model of several functions one for each function. Of their weights
 * those that are equal are stored once (place_weights.c). bundle_write_fat() puts all under one
 * interface. */
#include <stdio.h>
#include <string.h>

#include "codegen.h"
#include "decisions.h"
#include "pipeline.h"

/* What the user said, as it is for one of the targets. */
static ingot_options options_of(const ingot_options *o, const TargetName *t)
{
    ingot_options own = *o;
    own.target = t->target;
    if (t->gpu)
        own.max_ram = 0; /* its arena is the GPU's */
    return own;
}

static int functions_of(const Context *c)
{
    return c->nfunction ? c->nfunction : 1;
}

/* --save-sched: each plan's section. */
static bool save_all(Context *c, const ingot_options *o, int n, const FatTarget *of, OutFile *f)
{
    StrBuf all = {0};
    for (int i = 0; i < n && o->save_sched; i++)
        for (int k = 0; k < functions_of(c); k++)
            sb_puts(&all, of[i].plans[k]->saved);
    const bool ok = save_begin(c, f, o->save_sched, all.data);
    sb_free(&all);
    return ok;
}

/* "out: cuda: 9 kernels, on the GPU arena .."; what several read. */
static void fat_summary(Context *c, int n, const FatTarget *of, int64_t shared, const char *dir)
{
    int64_t alone = 0, stored = -shared;
    for (int i = 0; i < n; i++) {
        const Plan *p = of[i].p;
        const bool gpu = of[i].target->gpu;
        char given[64] = "";
        if (gpu)
            snprintf(given, sizeof given, ", inputs and outputs %lld bytes",
                     (long long)plan_given_bytes(p));
        context_report(c, INGOT_NOTE, INGOT_OK,
                       "%s: %s: %d kernels, %sarena %lld bytes, weights %lld bytes%s", dir,
                       of[i].name, p->nkernel, gpu ? "on the GPU " : "", (long long)p->arena_bytes,
                       (long long)of[i].weights, given);
        for (int k = 1; k < functions_of(c); k++)
            context_report(c, INGOT_NOTE, INGOT_OK, "%s: %s: function '%s': %d kernels", dir,
                           of[i].name, c->functions[k].name, of[i].plans[k]->nkernel);
        alone += of[i].weights;
        stored += gpu || !i || of[i - 1].target->gpu ? p->weights_bytes : 0;
    }
    context_report(c, INGOT_NOTE, INGOT_OK,
                   "%s: weights of all %lld bytes; each with its own they would be %lld", dir,
                   (long long)stored, (long long)alone);
}

/* What plans that follow do likewise. */
static void keep_variants(Context *c, const Plan *p)
{
    for (uint32_t id = 0; id < c->nnode; id++) {
        const ValueChoice *v = value_decided(p, c->nodes[id]);
        if (v && v->variant && strcmp(v->variant, "direct") != 0 &&
            !map_get(&c->variants_before, (uint64_t)id + 1))
            map_put(&c->variants_before, (uint64_t)id + 1, (void *)v->variant);
    }
}

/* Can a program ask at its start which of these the processor is? */
static bool targets_go_together(Context *c, const ingot_options *o, int n, const FatTarget *of)
{
    const char *family = NULL;
    for (int i = 0; i < n; i++) {
        const Target *t = of[i].target;
        if (c->nfunction && t->gpu)
            return option_wrong(c,
                                "--target '%s': a model of several functions is for one target, or "
                                "for several machines of C",
                                o->target);
        for (int k = 0; k < i; k++)
            if (!strcmp(of[k].suffix, of[i].suffix))
                return option_wrong(c, "--target '%s': '%s' is named twice", o->target, of[i].name);
        if (i && t->gpu)
            return option_wrong(c, "--target '%s': behind the '+' a target for C is wanted",
                                o->target);
        if (t->gpu || n == 1 + of[0].target->gpu)
            continue;
        const char *own = target_family(t);
        if (!own || t->bare || t->wasm)
            return option_wrong(c,
                                "--target '%s': a bundle chooses among machines of x86-64, "
                                "aarch64 or riscv64; '%s' is none",
                                o->target, of[i].name);
        if (*own && family && strcmp(family, own) != 0)
            return option_wrong(c,
                                "--target '%s': '%s' is of %s, another one of %s: they do not "
                                "run the same programs",
                                o->target, of[i].name, own, family);
        family = *own ? own : family;
    }
    return true;
}

static bool plans_of(Context *c, FatTarget *of, Clock *clock, const GraphRoots *imported)
{
    if (c->nfunction) {
        const bool ready = functions_plan(c, of->target, of->o, clock, imported, of->plans);
        of->p = of->plans[0];
        return ready;
    }
    roots_restore(c, imported);
    of->p = of->plans[0] = pipeline_plan(c, of->target, of->o, clock);
    return of->p && (of->o->no_check || check_plan(of->p, of->target, of->o, clock));
}

/* Those of the function that reads most: the others read the same, nearly all. */
static int64_t own_weights(int n, Plan *const *p)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes = p[i]->weights_bytes > bytes ? p[i]->weights_bytes : bytes;
    return bytes;
}

/* In which order plans are made: the slowest machine has most to lose by a variant that is another
 * one's choice. */
static const int *planned_first(Arena *a, int n, const FatTarget *of)
{
    const Target **t = NEWN(a, const Target *, n);
    for (int i = 0; i < n; i++)
        t[i] = of[i].target;
    return targets_by_speed(a, n, t);
}

/* Of weights that several machines read: a vector of 16 lanes, two of 8, a line of the cache.  By
 * blocks of 64 bert_base took up to 12 % longer than by these. */
enum { WEIGHT_BLOCK = 16 };

ingot_status compile_fat(Context *c, const ingot_options *o, int n, const TargetName *name,
                         const char *dir)
{
    if (o->io_in_arena) {
        option_wrong(c, "--io-in-arena: for one target; each of several has places of its own");
        return c->status;
    }
    if (o->devices > 1) {
        option_wrong(c, "--devices %d: for one target", o->devices);
        return c->status;
    }
    Arena *a = arena_new();
    const int nf = functions_of(c);
    GraphRoots *imported = NEWN(a, GraphRoots, nf);
    for (int k = 0; k < nf; k++) {
        function_select(c, k);
        imported[k] = roots_keep(c, a);
    }
    function_select(c, 0);
    FatTarget *of = NEWN(a, FatTarget, n);
    bool ready = true;
    Clock clock = clock_start(c, o);
    for (int i = 0; i < n && ready; i++) {
        ingot_options *own = NEW(a, ingot_options);
        *own = options_of(o, &name[i]);
        of[i] = (FatTarget){
            .o = own, .plans = NEWN(a, Plan *, nf), .name = name[i].name, .suffix = name[i].suffix};
        Target *t = NEW(a, Target);
        const Target *known = options_check(c, own, a);
        ready = known != NULL;
        if (known)
            *t = *known;
        if (n - name[0].gpu > 1 && !name[i].gpu)
            t->machine.weight_block = WEIGHT_BLOCK;
        of[i].target = t;
    }
    ready = ready && targets_go_together(c, o, n, of);
    const int *planned = ready ? planned_first(a, n, of) : NULL;
    for (int k = 0; k < n && ready; k++) {
        const int i = planned[k];
        ready = plans_of(c, &of[i], &clock, imported);
        of[i].weights = ready ? own_weights(nf, of[i].plans) : 0;
        for (int f = 0; f < nf && ready && !of[i].target->gpu; f++)
            keep_variants(c, of[i].plans[f]);
    }
    const int gpu = ready && of[0].target->gpu;
    const int nplan = (n - gpu) * nf;
    Plan **plans = NEWN(a, Plan *, nplan);
    for (int i = 0; i < nplan; i++)
        plans[i] = of[gpu + i / nf].plans[i % nf];
    if (ready && nplan > 1 && !weights_gather(nplan, plans))
        ready = option_wrong(c, "--target '%s': the weights of all are too large for one file",
                             o->target);
    OutFile saved;
    ready = ready && save_all(c, o, n, of, &saved);
    const int64_t shared = ready && gpu ? weights_join(of[0].p, nplan, plans) : 0;
    ingot_status status = ready ? bundle_write_fat(n, of, shared, o, dir) : pipeline_failure(c);
    if (ready && !save_end(c, &saved, o->save_sched, status == INGOT_OK))
        status = c->status;
    if (ready)
        passed(&clock, "bundle");
    if (status == INGOT_OK && o->summary)
        fat_summary(c, n, of, shared, dir);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < nf; k++)
            plan_free(of[i].plans[k]);
    map_free(&c->variants_before);
    arena_free(a);
    return status;
}
