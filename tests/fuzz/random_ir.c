/* random_ir.c - random graphs of the compiler's own operators, below all importers: what the
 * reference interpreter says of them, of what the rewrites make of them, and of their kernels.
 *
 *     random_ir --n GRAPHS --seed S [--first K] [--show] [--target T] [--fuse PRESET]
 *
 * Graph K of a seed is always the same: 6 to 29 nodes that calculate, choose, move, join, sum,
 * scan, gather and scatter, with loops and branches, over values of twelve types; some sizes are a
 * run's. Each number is a multiple of 1/16 and small enough that its sums are exact in any order,
 * so everything has to be equal. Three builds of a graph are compared: as it is drawn, rewritten
 * (graph_rewrite()), and as the kernels of a plan for a drawn target, preset and number of threads
 * (plan_interpret()). What is wrong is told with the flags, and for each rewrite whether the graph
 * is right without it; --show prints the graphs. Exit status 1 when there was a fault. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/inspect/inspect.h"
#include "compiler/eval/interp.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/rewrite/graph_rewrite.h"
#include "compiler/simulate/plan_interp.h"
#include "random_graph.h"
#include "random_models.h"
#include "targets/targets.h"

enum { MESSAGE = 600 };

typedef struct {
    char message[MESSAGE];
} GraphTold;

static void hear(void *user, ingot_level level, const char *message)
{
    GraphTold *t = user;
    if (level == INGOT_ERROR && !*t->message)
        snprintf(t->message, MESSAGE, "%s", message);
}

/* What is done to a graph before its results are looked at. */
typedef struct {
    enum { AS_DRAWN, REWRITTEN, PLANNED } how;
    const char *target, *fuse, *without;
    int threads;
    bool naive, steps; /* tell the step that is at fault */
} Way;

/* The first step that writes something else than its kernel without opts. */
typedef struct {
    const Step *step;
    char text[MESSAGE];
} FirstStep;

static void wrote(void *user, const Step *s, const Buffer *b, const unsigned char *got,
                  const unsigned char *naive)
{
    FirstStep *f = user;
    if (f->step || !b->bytes || !memcmp(got, naive, (size_t)b->bytes))
        return;
    StrBuf text = {0};
    Arena *a = arena_new();
    kernel_text(&text, a, s->kernel, true, NULL);
    f->step = s;
    snprintf(f->text, MESSAGE, "step %d, %s", s->number, s->kernel->name);
    printf("    %s is not as without opts:\n%s", f->text, text.data);
    sb_free(&text);
    arena_free(a);
}

typedef struct {
    Context *c;
    Arena *a;
    ingot_value in[GRAPH_MOST_INPUTS], out[GRAPH_MOST_OUTPUTS];
    int n_in, n_out;
    GraphTold told;
} GraphRun;

static void run_free(GraphRun *r)
{
    ingot_context_free(r->c);
    arena_free(r->a);
    free(r);
}

static uint64_t number_seed(uint64_t seed, uint64_t k)
{
    return (seed * 1000003 + k) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

/* False: what is wrong is in the message; true with a message: it was refused. */
static bool run(GraphRun *r, uint64_t seed, const Way *w)
{
    r->c = ingot_context_new(hear, &r->told);
    r->a = arena_new();
    random_seed(seed);
    random_graph(r->c, r->a, r->in, &r->n_in, &r->n_out);
    if (ingot_error_count(r->c))
        return true;
    const Target *t = target_find(w->target);
    if (w->how == REWRITTEN)
        (void)graph_rewrite(r->c, t, w->without);
    if (w->how != PLANNED)
        return ingot_interpret(r->c, r->n_in, r->in, r->n_out, r->out) == INGOT_OK;
    const ingot_options o = {.struct_size = sizeof o,
                             .target = w->target,
                             .fuse = w->fuse,
                             .threads = w->threads,
                             .no_rewrite = w->without,
                             .naive = w->naive,
                             .no_check = true};
    Plan *p = plan_make(r->c, &o);
    if (!p)
        return true;
    if (w->steps) {
        StrBuf text = {0};
        plan_print(&text, p);
        fputs(text.data, stdout);
        sb_free(&text);
    }
    PlanInterp x = {.p = p, .gpu = t->gpu, .most = INT64_C(1) << 32};
    FirstStep first = {0};
    if (w->steps) {
        x.wrote = wrote;
        x.user = &first;
    }
    const bool good = plan_interpret(&x, r->a, r->in, r->out);
    if (!good)
        snprintf(r->told.message, MESSAGE, "%.590s", x.fault);
    plan_free(p);
    return good;
}

/* "" or how they differ. */
static void compare(const ingot_value *x, const ingot_value *y, int k, char *text)
{
    int64_t n = 1;
    double *f[2];
    const ingot_value *v[] = {x, y};
    if (x->rank != y->rank || x->dtype != y->dtype ||
        (x->rank && memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims))) {
        snprintf(text, MESSAGE, "output %d has another type or shape", k);
        return;
    }
    for (int i = 0; i < x->rank; i++)
        n *= x->dims[i];
    for (int i = 0; i < 2; i++) {
        f[i] = calloc((size_t)n + 1, sizeof *f[i]);
        if (!f[i])
            exit(2);
        interp_to_f64(x->dtype, (size_t)n, f[i], v[i]->data);
    }
    for (int64_t i = 0; i < n && !*text; i++)
        if (f[0][i] != f[1][i] && !(isnan(f[0][i]) && isnan(f[1][i])))
            snprintf(text, MESSAGE, "output %d, element %lld of %lld is %.9g, wanted %.9g", k,
                     (long long)i, (long long)n, f[1][i], f[0][i]);
    free(f[0]);
    free(f[1]);
}

typedef enum { RIGHT, WRONG, REFUSED } GraphVerdict;

static GraphVerdict judge(const GraphRun *want, uint64_t seed, const Way *w, char *text)
{
    GraphRun *r = calloc(1, sizeof *r);
    if (!r)
        exit(2);
    *text = 0;
    GraphVerdict v = run(r, seed, w) ? RIGHT : WRONG;
    snprintf(text, MESSAGE, "%s", r->told.message);
    if (v == RIGHT && *text)
        v = REFUSED;
    for (int i = 0; v == RIGHT && i < want->n_out && !*text; i++)
        compare(&want->out[i], &r->out[i], i, text);
    if (v == RIGHT && *text)
        v = WRONG;
    run_free(r);
    return v;
}

static void bisect(const GraphRun *want, uint64_t seed, const Way *wrong)
{
    char text[MESSAGE];
    const char *rule;
    Way w = *wrong;
    StrBuf all = {0};
    for (int i = 0; (rule = rewrite_name(i)); i++)
        sb_printf(&all, i ? ",%s" : "%s", rule);
    w.without = all.data;
    printf("    without any rewrite: %s\n", judge(want, seed, &w, text) == RIGHT ? "right" : text);
    sb_free(&all);
    w = *wrong;
    if (w.how == PLANNED) {
        w.naive = true;
        printf("    without rewrites and opts: %s\n",
               judge(want, seed, &w, text) == RIGHT ? "right" : text);
        w.naive = false;
        w.threads = 1;
        w.steps = true;
        printf("    one thread: %s\n", judge(want, seed, &w, text) == RIGHT ? "right" : text);
    }
    w = *wrong;
    for (int i = 0; (rule = rewrite_name(i)); i++) {
        w.without = rule;
        if (judge(want, seed, &w, text) == RIGHT)
            printf("    right without %s\n", rule);
    }
}

static const char *const machines[] = {
    "c",         "c:x86-64-v2",      "c:x86-64-v3",  "c:x86-64-v4", "c:sapphirerapids",
    "c:armv8-a", "c:cortex-m4",      "c:cortex-m55", "c:cortex-m3", "c:armv8.2-a+dotprod",
    "c:rv32imc", "c:wasm32-simd128", "cuda:sm_80",   "opencl",      "wgsl"};
static const char *const presets[] = {"auto", "auto", "none", "all"};

static Way drawn_way(uint64_t seed, const char *target, const char *fuse)
{
    random_seed(seed ^ 0x5bd1e995);
    Way w = {.how = PLANNED,
             .target = machines[random_below(sizeof machines / sizeof *machines)],
             .fuse = presets[random_below(4)],
             .threads = random_below(3) ? 1 : 2 + (int)random_below(3)};
    w.target = target ? target : w.target;
    w.fuse = fuse ? fuse : w.fuse;
    return w;
}

int main(int argc, char **argv)
{
    uint64_t seed = 0, first = 0, n = 100, count[3] = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool show = false;
    const char *target = NULL, *fuse = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--show"))
            show = true;
        else if (!strcmp(argv[i], "--n"))
            n = strtoull(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--seed"))
            seed = strtoull(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--first"))
            first = strtoull(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--target"))
            target = value, i++;
        else if (!strcmp(argv[i], "--fuse"))
            fuse = value, i++;
        else
            return fprintf(stderr, "random_ir: %s?\n", argv[i]), 2;
    }
    for (uint64_t k = first; k < first + n; k++) {
        char text[MESSAGE];
        const uint64_t s = number_seed(seed, k);
        GraphRun *want = calloc(1, sizeof *want);
        if (!want)
            exit(2);
        const Way drawn = {.how = AS_DRAWN, .target = "c"};
        if (show)
            printf("%llu/%llu\n", (unsigned long long)seed, (unsigned long long)k), fflush(stdout);
        if (!run(want, s, &drawn) || *want->told.message) {
            printf("refused %llu/%llu: as drawn: %s\n", (unsigned long long)seed,
                   (unsigned long long)k, want->told.message);
            count[REFUSED]++;
            run_free(want);
            continue;
        }
        if (show)
            graph_print(want->c, stdout);
        Way w[] = {{.how = REWRITTEN}, drawn_way(s, target, fuse)};
        w[0].target = w[1].target;
        GraphVerdict v = RIGHT;
        for (int i = 0; i < 2 && v == RIGHT; i++) {
            v = judge(want, s, &w[i], text);
            if (v == RIGHT)
                continue;
            printf("%s %llu/%llu (%s --target %s --fuse %s --threads %d): %s\n",
                   v == WRONG ? "wrong" : "refused", (unsigned long long)seed,
                   (unsigned long long)k, i ? "planned" : "rewritten", w[1].target, w[1].fuse,
                   w[1].threads, text);
            if (v == WRONG)
                bisect(want, s, &w[i]);
            fflush(stdout);
        }
        count[v]++;
        run_free(want);
    }
    printf("seed %llu: %llu graphs: %llu right, %llu refused, %llu wrong\n",
           (unsigned long long)seed, (unsigned long long)n, (unsigned long long)count[RIGHT],
           (unsigned long long)count[REFUSED], (unsigned long long)count[WRONG]);
    return count[WRONG] != 0;
}
