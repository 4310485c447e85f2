/* run_bench.c - bench --per-kernel: every step's time beside what this machine could do.
 *
 * The roofline is that of one core (machine_peak.c); of GPUs rates are told, and no share of a
 * roof.  A step's bound is the larger of its operations over the multiply-adds (of dots of bytes a
 * lane does four at once, a matrix unit has a rate of its own) and its bytes over the bandwidth
 * (Williams, Waterman, Patterson: Roofline, CACM 2009). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inspect.h"
#include "run.h"
#include "tc.h"

enum { PROFILES = 3 };

typedef struct {
    int step;
    const char *name;
    double ms, gflops, gbytes, share, roof; /* the last two in per cent */
    double flops, bytes, rounds;            /* of a run: inside a loop, of all its rounds */
    /* so many times the multiply-adds of lanes a dot makes (of bytes, bf16), or a matrix unit; 0:
     * neither does the step */
    double dots;
    bool unit;
    const char *level; /* what the roof is: operations, or the bandwidth of a level of memory */
} BenchLine;

/* What the unit of `TC unit (..)` makes beside lanes: a row of a product, n columns of k terms, in
 * each cycle, where lanes make two multiply-adds. */
static double unit_times(const Target *t, const char *opt)
{
    TcText text;
    return tc_read(t->machine.own_units, opt, &text) && t->machine.lanes
               ? (double)text.unit->n * text.unit->k / (2.0 * t->machine.lanes)
               : 0;
}

/* What of the machine its opts say that a step uses. */
static void read_opts(BenchLine *line, const Kernel *k, const Target *t)
{
    for (int i = 0; i < k->nopt; i++) {
        const Opt *o = &k->opts[i];
        if (o->kind == OPT_DOT)
            line->dots = (double)o->amount;
        if (o->kind != OPT_TC || t->gpu)
            continue;
        line->dots = unit_times(t, o->axis);
        line->unit = true;
    }
}

/* Operations and bytes of every step of the plan. */
static void read_plan(const Session *s, const Plan *p, BenchLine *line, int n)
{
    const Target target = machine_target(s->a, s->o->compile.target);
    Step **steps = plan_steps(p, s->a);
    const int64_t *rounds = plan_rounds(p, s->a);
    for (int i = 0; i < n; i++)
        if (line[i].step >= 0 && line[i].step < p->nstep) {
            const Step *t = steps[line[i].step];
            line[i].rounds = (double)rounds[line[i].step];
            line[i].flops = line[i].rounds * (double)step_flops(t);
            line[i].bytes = line[i].rounds * (double)step_bytes(t);
            if (t->kind == STEP_KERNEL)
                read_opts(&line[i], t->kernel, &target);
        }
}

/* The same of a training step, whose plan is made together with that of run(). */
static bool read_train_step(const Session *s, BenchLine *line, int n)
{
    LoadedModel m;
    Inspection x = {0};
    bool made = model_open(&m, s->o, true) == INGOT_OK;
    if (made) {
        m.functions = true;
        made = model_build(&m, s->o, s->in, s->bound) == INGOT_OK &&
               inspection_make(m.c, &s->o->compile, &x) && inspection_select(m.c, &x, TRAIN_STEP);
    }
    if (made)
        read_plan(s, x.p, line, n);
    if (x.arena)
        inspection_free(&x);
    model_close(&m);
    return made;
}

static bool read_steps(const Session *s, BenchLine *line, int n)
{
    if (s->o->train)
        return read_train_step(s, line, n);
    LoadedModel m;
    Plan *p = session_plan(s, &m, s->bound);
    const bool made = p != NULL;
    if (made)
        read_plan(s, p, line, n);
    plan_free(p);
    model_close(&m);
    return made;
}

/* The driver's table: "step ms % name". Keeps the best of several. */
static int read_profile(Arena *a, char *text, BenchLine **line, int n)
{
    for (char *at = text; at && *at;) {
        char *end = strchr(at, '\n'), name[256];
        if (end)
            *end++ = 0;
        int step, i;
        double ms, share;
        if (sscanf(at, "%d %lf %lf %255s", &step, &ms, &share, name) == 4) {
            for (i = 0; i < n && (*line)[i].step != step; i++)
                ;
            BenchLine l = {.step = step, .name = arena_strdup(a, name), .ms = ms};
            if (i == n)
                vec_push(a, *line, n, l);
            else if (ms < (*line)[i].ms)
                (*line)[i].ms = ms;
        }
        at = end;
    }
    return n;
}

static int slowest_first(const void *a, const void *b)
{
    const BenchLine *x = a, *y = b;
    return x->ms != y->ms ? (x->ms < y->ms ? 1 : -1) : x->step - y->step;
}

/* The level that holds so many bytes: of its size twice over, since the levels around it are 16
 * times as large. */
static double level_of(const Roof *r, double bytes, int threads, const char **name)
{
    static const char *const names[] = {"L1", "L2", "L3", "memory"};
    const double rates[] = {r->near * threads, r->cache * threads, r->far * threads, r->memory},
                 size[] = {1 << 15, 1 << 19, 1 << 23};
    int i = 0;
    while (i < 3 && bytes > size[i])
        i++;
    *name = names[i];
    return rates[i];
}

/* r: NULL of a GPU, whose roof is not known. */
static void rate(BenchLine *line, int n, const Roof *r, int threads)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += line[i].ms;
    for (int i = 0; i < n; i++) {
        BenchLine *l = &line[i];
        double ms = l->ms > 0 ? l->ms : 1e-6;
        l->gflops = l->flops / ms * 1e-6;
        l->gbytes = l->bytes / ms * 1e-6;
        l->share = sum > 0 ? 100 * l->ms / sum : 0;
        if (!r)
            continue;
        double bytes = level_of(r, l->bytes / fmax(1, l->rounds), threads, &l->level);
        double compute = l->flops / (r->flops * threads * (l->dots > 0 ? l->dots : 1)),
               traffic = l->bytes / bytes;
        const char *what = l->unit ? "unit" : l->dots > 0 ? "dots" : "operations";
        l->level = compute <= traffic ? l->level : what;
        l->roof = 100e3 * (compute > traffic ? compute : traffic) / ms;
    }
    qsort(line, (size_t)n, sizeof *line, slowest_first);
}

static void print_table(const BenchLine *line, int n, const Roof *r)
{
    if (r)
        printf(
            "one core: %.1f GFLOP/s of f32 multiply-adds, reads GB/s: %.1f of 16 KB (L1), %.1f of "
            "256 KB "
            "(L2), %.1f of 4 MB (L3), %.1f of memory\n",
            r->flops * 1e-9, r->near * 1e-9, r->cache * 1e-9, r->far * 1e-9, r->memory * 1e-9);
    printf("step         ms       %%   GFLOP/s      GB/s  %sname\n",
           r ? "% of roof of          " : "");
    for (int i = 0; i < n; i++) {
        printf("%4d %10.6f  %6.2f  %8.2f  %8.2f  ", line[i].step, line[i].ms, line[i].share,
               line[i].gflops, line[i].gbytes);
        if (r)
            printf("%9.1f %-11s ", line[i].roof, line[i].level);
        printf("%s\n", line[i].name);
    }
}

/* The driver's line, and what was measured here at its end. */
static void print_json(const char *told, const BenchLine *line, int n, const Roof *r,
                       const char *target)
{
    printf("%.*s, \"target\": \"%s\", ", (int)strcspn(told, "}\n"), told, target);
    if (r)
        printf("\"peak_gflops\": %.2f, \"cache_gbps\": %.2f, \"memory_gbps\": %.2f, ",
               r->flops * 1e-9, r->cache * 1e-9, r->memory * 1e-9);
    printf("\"kernels\": [");
    for (int i = 0; i < n; i++) {
        printf("%s{\"step\": %d, \"name\": \"%s\", \"ms\": %.6f, \"percent\": %.2f, \"gflops\": "
               "%.3f, \"gbps\": %.3f",
               i ? ", " : "", line[i].step, line[i].name, line[i].ms, line[i].share, line[i].gflops,
               line[i].gbytes);
        if (r)
            printf(", \"roof_percent\": %.2f, \"roof\": \"%s\"", line[i].roof, line[i].level);
        printf("}");
    }
    printf("]}\n");
}

int bench_kernels(Session *s, const char *const *profile, const char *const *bench)
{
    const char *out = arena_printf(s->a, "%s/told.txt", s->work);
    BenchLine *line = NULL;
    Roof roof;
    int n = 0;
    progress_begin("bench, every step", 0);
    for (int i = 0; i < PROFILES; i++) {
        progress_at((double)i / PROFILES);
        int code = process_run_to(profile, out);
        char *text = code ? NULL : read_text(s->a, out);
        if (!text)
            return code ? code : 1;
        n = read_profile(s->a, text, &line, n);
    }
    const bool gpu = machine_target(s->a, s->o->compile.target).gpu;
    const Roof *r = gpu ? NULL : &roof;
    progress_begin("bench, what this machine can do", 0);
    const char *dir = arena_printf(s->a, "%s/roof", s->work);
    if ((r && (!roof_build(s->a, dir, s->o->compile.target) || !roof_measure(s->a, dir, &roof))) ||
        !read_steps(s, line, n)) {
        complain(INGOT_TOOL, "%s: this machine's peak cannot be measured", s->o->model);
        return 1;
    }
    progress_end();
    rate(line, n, r, s->o->threads);
    if (!s->o->json)
        print_table(line, n, r);
    progress_begin("bench, all of it", s->o->seconds);
    int code = process_run_to(bench, out);
    progress_end();
    const char *told = code ? NULL : read_text(s->a, out);
    if (told)
        print_json(told, line, n, r, s->o->compile.target);
    return told ? 0 : code ? code : 1;
}
