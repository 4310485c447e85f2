/* compile.c - what the public interface makes of a model: a bundle, a plan to look at, text.
 *
 *     graph --pipeline.c--> plan --bundle_write--> a folder of source
 *
 * The top: the only library that sees the compiler, the code generator and the targets. */
#include <stdlib.h>
#include <string.h>

#include "codegen.h"
#include "inspect.h"
#include "lowered.h"
#include "pipeline.h"
#include "segments.h"

const char *ingot_version(void)
{
    return INGOT_VERSION; /* CMake's */
}

Plan *plan_make_nth(Context *c, const ingot_options *options, int nth)
{
    ingot_options o = options_complete(c, options);
    Arena *a = arena_new(); /* a plan does not refer to its target */
    const Target *t = options_check(c, &o, a);
    Target own = t ? *t : (Target){0};
    own.nth = nth;
    Clock k = clock_start(c, &o);
    Plan *p = t ? plan_saved(pipeline_plan(c, &own, &o, &k), &o) : NULL;
    arena_free(a);
    return p;
}

Plan *plan_make(Context *c, const ingot_options *options)
{
    return plan_make_nth(c, options, 0);
}

ingot_status plan_write(Plan *p, const ingot_options *options, const char *dir)
{
    ingot_options o = options_complete(p->c, options);
    Arena *a = arena_new();
    const Target *t = options_check(p->c, &o, a);
    const ingot_status status = t ? bundle_write(p, t, &o, dir) : ingot_context_status(p->c);
    arena_free(a);
    return status;
}

/* What a kernel has to do: operations, or bytes to move where it computes nothing. */
static double work_of(const Kernel *k)
{
    return (double)(k->flops > k->bytes ? k->flops : k->bytes);
}

static int heaviest_first(const void *x, const void *y)
{
    const Kernel *a = *(const Kernel *const *)x, *b = *(const Kernel *const *)y;
    double p = work_of(a), q = work_of(b);
    return p != q ? (p < q ? 1 : -1) : strcmp(a->name, b->name);
}

/* The heaviest kernels with a sum that the core's matrix unit, or DOT, could have by its types. */
static void tell_outside(Context *c, Arena *a, const Plan *p, const Target *t, const char *dir)
{
    enum { TOLD = 3 };
    const Kernel **outside = NEWN(a, const Kernel *, p->nkernel + 1);
    int n = 0;
    double all = 0;
    for (int i = 0; i < p->nkernel; i++) {
        const Kernel *k = p->kernels[i];
        all += k->check ? 0 : work_of(k);
        if (!k->check && outside_reason(a, k, t))
            outside[n++] = k;
    }
    qsort((void *)outside, (size_t)n, sizeof *outside, heaviest_first);
    for (int i = 0; i < n && i < TOLD; i++)
        context_report(c, INGOT_NOTE, INGOT_OK, "%s: %s, %.1f %% of the work, is outside of %s",
                       dir, outside[i]->name, 100 * work_of(outside[i]) / all,
                       outside_reason(a, outside[i], t));
    if (n > TOLD)
        context_report(c, INGOT_NOTE, INGOT_OK, "%s: so are %d more kernels", dir, n - TOLD);
}

/* "out: 7 kernels, arena 7296 bytes, weights 39552 bytes"; then the heaviest kernels that have no
 * fast form, and why. */
static void summary(Context *c, const Plan *p, const Target *t, const ingot_options *o,
                    const char *dir)
{
    enum { TOLD = 3 };
    Arena *a = arena_new();
    context_report(c, INGOT_NOTE, INGOT_OK, "%s: %d kernels, arena %lld bytes, weights %lld bytes",
                   dir, p->nkernel, (long long)p->arena_bytes, (long long)p->weights_bytes);
    for (int d = 0; d < p->ndevice && p->peers; d++)
        context_report(
            c, INGOT_NOTE, INGOT_OK, "%s: device %d: arena %lld bytes, weights %lld bytes", dir, d,
            (long long)p->memories[memories_from(p, d)].bytes, (long long)device_weights(p, d));
    const Kernel **plain = NEWN(a, const Kernel *, p->nkernel + 1);
    int n = 0, told = 0;
    double all = 0, rest = 0;
    for (int i = 0; i < p->nkernel && !o->naive && !t->gpu && t->machine.lanes; i++) {
        const Kernel *k = p->kernels[i];
        all += k->check ? 0 : work_of(k);
        if (!k->check && kernel_is_plain(k))
            plain[n++] = k;
    }
    qsort((void *)plain, (size_t)n, sizeof *plain, heaviest_first);
    n = all > 0 ? n : 0; /* what only moves has no share of the work */
    for (; told < n && told < TOLD && work_of(plain[told]) >= 0.01 * all; told++)
        context_report(c, INGOT_NOTE, INGOT_OK, "%s: %s, %.0f %% of the work, uses no vectors: %s",
                       dir, plain[told]->name, 100 * work_of(plain[told]) / all,
                       plain_reason(a, plain[told]));
    for (int i = told; i < n; i++)
        rest += work_of(plain[i]);
    if (rest >= 0.01 * all && n > told)
        context_report(c, INGOT_NOTE, INGOT_OK,
                       "%s: neither do %d more kernels, %.0f %% of the work", dir, n - told,
                       100 * rest / all);
    const bool dots = machine_dots(&t->machine, 2, true) || (machine_dots(&t->machine, 4, false) &&
                                                             t->machine.lanes && !t->machine.pairs);
    if (!o->naive && !t->gpu && (has_units(&t->machine) || dots))
        tell_outside(c, a, p, t, dir);
    arena_free(a);
}

ingot_status pipeline_failure(const Context *c)
{
    return c->status == INGOT_OK ? INGOT_BUG : c->status;
}

ingot_status ingot_compile(ingot_context *c, const ingot_options *options, const char *dir)
{
    ingot_options o = options_complete(c, options);
    Arena *a = arena_new();
    TargetName *of;
    const int n = target_list(a, o.target ? o.target : "c", &of);
    if (n > 1) {
        ingot_status status = compile_fat(c, &o, n, of, dir);
        arena_free(a);
        return status;
    }
    const Target *t = options_check(c, &o, a);
    if (t && c->nfunction) {
        ingot_status status = compile_functions(c, t, &o, dir);
        arena_free(a);
        return status;
    }
    Clock k = clock_start(c, &o);
    Plan *p = t ? pipeline_plan(c, t, &o, &k) : NULL;
    OutFile saved;
    const bool good = p && (o.no_check || check_plan(p, t, &o, &k)),
               ready = good && save_begin(c, &saved, o.save_sched, p->saved);
    ingot_status status = ready ? bundle_write(p, t, &o, dir) : pipeline_failure(c);
    if (ready && !save_end(c, &saved, o.save_sched, status == INGOT_OK))
        status = pipeline_failure(c);
    if (good)
        passed(&k, "bundle");
    if (status == INGOT_OK && o.summary)
        summary(c, p, t, &o, dir);
    if (status == INGOT_OK && o.summary && !o.target && !o.naive)
        context_report(
            c, INGOT_NOTE, INGOT_OK,
            "%s: for any processor, with vectors of 4 elements. On a recent one, --target "
            "c:native is two to three times as fast; for several, use c:x86-64-v2,x86-64-v3,"
            "x86-64-v4 (docs/shipping.md)",
            dir);
    plan_free(p);
    arena_free(a);
    return status;
}

static struct Imported results_of(Arena *a, const Context *c)
{
    struct Imported r = {0};
    for (int i = 0; i < c->noutput; i++)
        vec_push(a, r.node, r.n, c->outputs[i].node);
    for (int i = 0; i < c->nstate; i++)
        if (c->states[i].next)
            vec_push(a, r.node, r.n, c->states[i].next);
    return r;
}

bool inspection_make(Context *c, const ingot_options *options, Inspection *x)
{
    Arena *a = arena_new();
    ingot_options *o = NEW(a, ingot_options);
    *o = options_complete(c, options);
    *x = (Inspection){.arena = a, .o = o, .t = options_check(c, o, a)};
    if (!x->t)
        return false;
    Clock k = clock_start(c, o);
    x->times = times_nominal(x->t);
    x->imported = NEWN(a, struct Imported, (size_t)c->nfunction + 1);
    for (int f = 0; f < c->nfunction || f == 0; f++) {
        function_select(c, f);
        x->imported[f] = results_of(a, c);
    }
    function_select(c, 0);
    if (c->nfunction) {
        o->no_check = true;
        return functions_inspect(c, x, &k) && inspection_select(c, x, c->functions[0].name);
    }
    x->p = plan_saved(pipeline_plan(c, x->t, o, &k), o);
    return x->p != NULL;
}

bool inspection_select(Context *c, Inspection *x, const char *function)
{
    StrBuf known = {0};
    for (int i = 0; i < x->nplan; i++) {
        if (!strcmp(c->functions[i].name, function)) {
            sb_free(&known);
            function_select(c, i);
            x->p = x->plans[i];
            x->assembly = NULL;
            return true;
        }
        sb_printf(&known, "%s%s", i ? ", " : "", c->functions[i].name);
    }
    if (x->nplan)
        option_wrong(c, "--function '%.80s': the model's functions are %s", function, known.data);
    else
        option_wrong(c, "--function '%.80s': the model has no functions but run", function);
    sb_free(&known);
    return false;
}

void inspection_free(Inspection *x)
{
    for (int i = 0; i < x->nplan; i++)
        plan_free(x->plans[i]);
    if (!x->nplan)
        plan_free(x->p);
    arena_free(x->arena);
    x->p = NULL;
    x->arena = NULL;
}

char *ingot_inspect_json(ingot_context *c, const ingot_options *options)
{
    Inspection x;
    StrBuf sb = {0};
    if (inspection_make(c, options, &x))
        inspect_json(&sb, &x);
    inspection_free(&x);
    return sb.data;
}

enum { DUMP_GRAPH, DUMP_PLAN, DUMP_PASS, DUMP_KERNELS = DUMP_PASS + LOWER_PASSES };

const char *dump_name(int i)
{
    return i == DUMP_GRAPH     ? "graph"
           : i == DUMP_PLAN    ? "plan"
           : i < DUMP_KERNELS  ? lower_pass[i - DUMP_PASS].name
           : i == DUMP_KERNELS ? "kernels"
                               : NULL;
}

static int dump_find(Context *c, const char *what, size_t length)
{
    StrBuf known = {0};
    for (int i = 0; dump_name(i); i++) {
        if (strlen(dump_name(i)) == length && !strncmp(what, dump_name(i), length)) {
            sb_free(&known);
            return i;
        }
        sb_printf(&known, "%s%s", i == DUMP_KERNELS ? " or " : i ? ", " : "", dump_name(i));
    }
    option_wrong(c, "--dump '%.*s': choose %s", (int)(length < 80 ? length : 80), what, known.data);
    sb_free(&known);
    return -1;
}

/* What `passes`, names with commas between them, are; how many: 0 if there is one that is none. */
static int dump_list(Context *c, const char *passes, int *what)
{
    int n = 0;
    do {
        const size_t length = strcspn(passes, ",");
        what[n] = dump_find(c, passes, length);
        if (what[n++] < 0)
            return 0;
        passes += length;
    } while (*passes++);
    return n;
}

static void dump_graph(StrBuf *sb, Context *c)
{
    Node **roots = NEWN(c->arena, Node *, c->noutput + 1);
    for (int i = 0; i < c->noutput; i++)
        roots[i] = c->outputs[i].node;
    text_print(sb, c->noutput, roots);
}

static void dump_planned(StrBuf *sb, const Target *t, Plan *p, int what)
{
    if (what == DUMP_PLAN)
        plan_print(sb, p);
    for (int i = 0; i < p->nkernel && what >= DUMP_PASS; i++) {
        if (what == DUMP_KERNELS)
            render_kernel(sb, t, p->kernels[i], p->kernels[i]->name);
        else
            kernel_after(sb, p->kernels[i], t->gpu, what - DUMP_PASS);
    }
}

/* What: "graph" (as built), "plan" (docs/sched.md), "kernels" (as they are emitted), or what one of
 * the passes of lowering leaves, by its name (lowered.h); several with commas, of one plan. */
char *ingot_dump(ingot_context *c, const ingot_options *options, const char *passes)
{
    StrBuf sb = {0};
    Arena *a = arena_new();
    int *what = NEWN(a, int, strlen(passes) + 1);
    const int n = dump_list(c, passes, what);
    bool planned = false;
    for (int i = 0; i < n; i++)
        planned |= what[i] != DUMP_GRAPH;
    const Target *t = NULL;
    Plan *p = NULL;
    if (planned) {
        ingot_options o = options_complete(c, options);
        t = options_check(c, &o, a);
        Clock k = clock_start(c, &o);
        p = t ? plan_saved(pipeline_plan(c, t, &o, &k), &o) : NULL;
    }
    for (int i = 0; i < n && (p || !planned); i++) {
        if (what[i] == DUMP_GRAPH)
            dump_graph(&sb, c);
        else
            dump_planned(&sb, t, p, what[i]);
    }
    plan_free(p);
    arena_free(a);
    return sb.data;
}
