/* tune_gpu.c - `ingot tune` for a GPU: which kernel of several computes each step is found out in
 * the network.
 *
 * What a kernel takes by itself tells little where it runs for microseconds between others, with
 * what they leave in the caches and, on CUDA, while theirs are launched. So one program has the
 * network with several kernels for each step (tune_gpu_candidates.c), and tries them where they
 * are: on CUDA one in the whole network, on OpenCL those of several groups, each by the time of its
 * own steps (harness/tune_ways.c). It is built without a device, and goes on where it was cut off:
 *
 *     ways.json     the target, and the file that the user named; then a line a group of equal
 *                   steps: its name, and entries of the file, first that of what is there: the
 *                   compiler's choice, or the file's ("stays": it is written though nothing won)
 *     times.json    what the program has found out so far (tune_times.c)
 *     model         the program; its weights are those of the model as it is compiled where the
 *                   device is */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "targets.h"
#include "tune_gpu_candidates.h"

enum { MOST_ENDS = 30 /* of the program, by kernels that are at fault */ };
const char ways_list[] = "ways.json", ways_times[] = "times.json";

const char *ways_path(const Tune *t, const char *dir, const char *name)
{
    return arena_printf(t->a, "%s/%s", dir, name);
}

/* ---- the program ----------------------------------------------------------------------------- */

static ingot_status write_text(const Tune *t, const char *path, StrBuf *text)
{
    const bool good = file_replace(t->a, path, text->data ? text->data : "", text->len);
    sb_free(text);
    return good ? INGOT_OK : complain(INGOT_IO, "%s: %s", path, strerror(errno));
}

/* Where a kernel is among those of the plan. */
static int kernel_number(const Plan *p, const Kernel *k)
{
    int i = 0;
    while (i < p->nkernel && p->kernels[i] != k)
        i++;
    return i;
}

/* ways.h: which steps are a group, how many ways each has, and by which kernel of the context. */
static ingot_status write_table(const GpuCandidates *w, const char *dir)
{
    StrBuf sb = {0};
    int *group = NEWN(w->t->a, int, w->plan->nstep + 1);
    double tolerance = 0;
    for (int i = 0; i < w->plan->nstep; i++)
        group[i] = -1;
    for (int i = 0; i < w->ngroup; i++)
        for (int j = 0; j < w->group[i].nstep; j++)
            group[w->group[i].step[j]->number] = i;
    for (int i = 0; i < w->plan->c->noutput; i++) {
        const double x = tolerance_of(w->plan->output[i]->dtype);
        tolerance = x > tolerance ? x : tolerance;
    }
    const int most = driver_compiles(&w->t->target) ? MOST_TILE_WAYS : MOST_WAYS;
    sb_printf(&sb, "enum { STEPS = %d, GROUPS = %d, MOST_WAYS = %d };\n", w->plan->nstep, w->ngroup,
              most);
    sb_printf(&sb, "#define TOLERANCE %g\nstatic const int step_group[] = {", 2 * tolerance);
    for (int i = 0; i < w->plan->nstep; i++)
        sb_printf(&sb, "%s%d", i ? ", " : "", group[i]);
    sb_puts(&sb, "};\nstatic const int group_ways[] = {");
    for (int i = 0; i < w->ngroup; i++)
        sb_printf(&sb, "%s%d", i ? ", " : "", w->group[i].nway);
    sb_puts(&sb, "};\nstatic const short way_kernel[GROUPS][MOST_WAYS] = {\n");
    for (int i = 0; i < w->ngroup; i++) {
        const WayGroup *g = &w->group[i];
        sb_printf(&sb, "    {%d", kernel_number(w->plan, g->step[0]->kernel));
        for (int j = 1; j < g->nway; j++)
            sb_printf(&sb, ", %d", kernel_number(w->plan, g->kernel[j]));
        sb_puts(&sb, "},\n");
    }
    sb_puts(&sb, "};\n");
    return write_text(w->t, ways_path(w->t, dir, "ways.h"), &sb);
}

static ingot_status write_list(const GpuCandidates *w, const char *dir)
{
    StrBuf sb = {0};
    const char *own = w->rest ? read_text(w->t->a, w->t->o->compile.sched) : NULL;
    sb_puts(&sb, "{\"target\": ");
    json_string(&sb, w->t->section);
    if (own) {
        sb_puts(&sb, ", \"sched\": ");
        json_string(&sb, own);
    }
    if (w->rest) {
        sb_puts(&sb, ", \"rest\": ");
        json_string(&sb, w->rest);
    }
    sb_puts(&sb, "}\n");
    for (int i = 0; i < w->ngroup; i++) {
        const WayGroup *g = &w->group[i];
        sb_puts(&sb, "{\"name\": ");
        json_string(&sb, g->step[0]->name);
        sb_printf(&sb, ", \"steps\": %d, %s\"ways\": [", g->nstep,
                  g->stays ? "\"stays\": true, " : "");
        for (int j = 0; j < g->nway; j++) {
            sb_puts(&sb, j ? ", " : "");
            json_string(&sb, g->way[j]);
        }
        sb_puts(&sb, "]}\n");
    }
    return write_text(w->t, ways_path(w->t, dir, ways_list), &sb);
}

static const RuntimeFile *ways_file(const char *name)
{
    const RuntimeFile *f = ways_files;
    while (*f->name && strcmp(f->name, name))
        f++;
    return f;
}

/* The driver's way to time a model becomes a part of the tuner's, beside what is particular to the
 * target. */
static ingot_status put_harness(const Tune *t, const char *dir)
{
    const char *from = ways_path(t, dir, "host/driver_bench.c"),
               *to = ways_path(t, dir, "host/driver_bench.h");
    const struct {
        const char *as, *name;
    } part[] = {{"host/tune_ways.c", "tune_ways.c"},
                {"host/ways_results.h", "ways_results.h"},
                {"host/ways_device.h", arena_printf(t->a, "ways_%s.h", t->target.name)}};
    if (rename(from, to))
        return complain(INGOT_IO, "%s: %s", to, strerror(errno));
    for (int i = 0; i < (int)(sizeof part / sizeof *part); i++) {
        const RuntimeFile *f = ways_file(part[i].name);
        const char *path = ways_path(t, dir, part[i].as);
        if (!file_write(path, f->data, f->bytes))
            return complain(INGOT_IO, "%s: %s", path, strerror(errno));
    }
    return INGOT_OK;
}

static ingot_status write_program(GpuCandidates *w, const ingot_options *o, const char *dir)
{
    ingot_status status = plan_write(w->plan, o, dir);
    ways_keep_written(w);
    if (status == INGOT_OK)
        status = put_harness(w->t, dir);
    if (status == INGOT_OK)
        status = write_table(w, dir);
    if (status == INGOT_OK)
        status = build_program(w->t->a, dir, "model", w->t->o->compile.target, "-std=c99", false,
                               w->t->o->compile.verbose > 1);
    return status == INGOT_OK ? write_list(w, dir) : status;
}

/* One launch of kernels, which can be recorded: nothing of it is the host's, or of a size that the
 * run knows. */
static bool is_recorded(const Plan *p)
{
    bool good = !p->c->nvar;
    for (int i = 0; i < p->main.n; i++)
        good &= p->main.step[i]->kind == STEP_KERNEL || p->main.step[i]->kind == STEP_COPY;
    return good;
}

/* Beside the compiler's own. */
static int count_ways(const GpuCandidates *w)
{
    int n = 0;
    for (int i = 0; i < w->ngroup; i++)
        n += w->group[i].nway - 1;
    return n;
}

static ingot_status prepare_ways(Tune *t, const char *dir)
{
    GpuCandidates w = {.t = t};
    ingot_options o = t->o->compile;
    o.name = NULL;
    o.no_selftest = true;
    int all = 0;
    if (!access(ways_path(t, dir, ways_list), F_OK))
        remove_tree(dir); /* of another time */
    w.plan = plan_make(t->m.c, &o);
    ingot_status status = w.plan ? INGOT_OK : ingot_context_status(t->m.c);
    if (w.plan && !is_recorded(w.plan))
        status = complain(INGOT_UNSUPPORTED,
                          "%s: only networks of fixed sizes, of which no step is the host's, are "
                          "tuned for a GPU",
                          t->o->model);
    if (status == INGOT_OK)
        status = ways_make(&w);
    all = count_ways(&w);
    if (status == INGOT_OK && !all)
        status = complain(INGOT_UNSUPPORTED, "%s: no kernel of it can be computed otherwise",
                          t->o->model);
    if (status == INGOT_OK)
        status = write_program(&w, &o, dir);
    all = count_ways(&w); /* some may not have compiled */
    if (status == INGOT_OK)
        note("  %s%s%d other kernels for %d of %d", t->o->prepare ? dir : "",
             t->o->prepare ? ": " : "", all, w.ngroup, w.plan->nkernel - all);
    plan_free(w.plan);
    return status;
}

/* ---- on the device --------------------------------------------------------------------------- */

/* The weights of the model as it is compiled here take the place of those that did not travel. */
static ingot_status link_weights(const Tune *t, const char *dir)
{
    const char *from = ways_path(t, t->s.entry, "model.weights"),
               *to = ways_path(t, dir, "model.weights");
    if (access(from, R_OK))
        return INGOT_OK; /* they are in the program */
    (void)unlink(to);
    char *real = realpath(from, NULL);
    const bool good = real && !symlink(real, to);
    free(real);
    return good ? INGOT_OK : complain(INGOT_IO, "%s: %s", to, strerror(errno));
}

/* Other weights of these shapes do as well: what is compared are results of the same. */
#define ENDED 0.1 /* seconds of one that came to no end, where steps are counted */

static ingot_status run_program(const Tune *t, const char *dir)
{
    const char *file = ways_path(t, dir, ways_times);
    char *in = realpath(arena_printf(t->a, "%s/in", t->s.work), NULL);
    const char *before = NULL;
    int code = 1;
    for (int i = 0; in && code && i < MOST_ENDS && !*t->stopped; i++) {
        const double left = t->deadline - seconds_now();
        const char *argv[] = {"./model", "--no-checksum",
                              "--bench", arena_printf(t->a, "%.3f", left > 0 ? left : 0),
                              in,        NULL};
        code = process_wait(process_start_in(argv, dir));
        clock_pass(code ? ENDED : fmax(left, 0));
        const char *now = read_text(t->a, file);
        if (code && (!now || (before && !strcmp(before, now))))
            break; /* it does not get anywhere */
        before = now;
    }
    free(in);
    return code && !*t->stopped
               ? complain(INGOT_TOOL, "%s: the program of %s failed", dir, ways_list)
               : INGOT_OK;
}

static ingot_status measure_ways(Tune *t, const char *dir)
{
    ingot_status status = link_weights(t, dir);
    const int lock = database_lock(t->d); /* tuners take turns at timing */
    t->deadline = seconds_now() + t->o->budget;
    if (status == INGOT_OK)
        status = run_program(t, dir);
    database_unlock(t->d, lock);
    return status;
}

/* What came of it, as the file has it, beside the network as it is: its results have to agree. */
static ingot_status confirm_file(Tune *t, const StrBuf *text)
{
    const char *file = ways_path(t, t->dir, "tuned.sched"), *entry;
    ingot_status status = network_write(file, text);
    if (status == INGOT_OK)
        status = network_build(t, file, &entry);
    return status == INGOT_OK ? network_right(t, entry) : status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Other kernels beside what the file says (t->o->compile.sched), on this machine, for so many
 * seconds.  Where none of them won and there are more, they go on until `left` is over: neighbours
 * of what won are only for who has winners.  *spent: how long was measured. */
static ingot_status tune_round(Tune *t, const char *dir, double seconds, double left, StrBuf *text,
                               int *won, double *spent)
{
    int untried = 0;
    *spent = 0;
    ingot_status status = prepare_ways(t, dir);
    for (bool more = true; more && status == INGOT_OK;) {
        const double began = seconds_now();
        t->o->budget = seconds;
        if (!*t->stopped) /* while it was built */
            status = measure_ways(t, dir);
        *spent += seconds_now() - began;
        sb_free(text);
        if (status == INGOT_OK)
            status = tune_gpu_collect(t, dir, text, won, &untried);
        more = !*t->stopped && seconds < left && *spent < left && !*won && untried;
        seconds = left = left - *spent;
    }
    return status;
}

/* All of it here: candidates, their times, and, where the driver compiles them, which leaves time
 * for few, neighbours of what has won: half of the time is for them, and what the first round has
 * left of its own.  If a second round fails, or is stopped, what the first has found stays. */
static ingot_status tune_here(Tune *t, int *won)
{
    const char *own = t->o->compile.sched;
    const double budget = t->o->budget;
    const int rounds = driver_compiles(&t->target) ? 2 : 1;
    ingot_status status = INGOT_OK;
    double left = budget, spent;
    int now = 1;
    *won = 0;
    for (int i = 0; i < rounds && status == INGOT_OK && now && !*t->stopped; i++) {
        const char *dir = arena_printf(t->a, "%s/ways%d", t->dir, i);
        const double seconds = left / (rounds - i);
        StrBuf text = {0};
        now = 0;
        if (i)
            note("  neighbours of what has won");
        if (t->o->why && rounds > 1)
            printf("%s round: other kernels than %s\n", i ? "second" : "first",
                   i     ? "the first has found"
                   : own ? "the file says"
                         : "the compiler chose");
        status = tune_round(t, dir, seconds, left, &text, &now, &spent);
        left = left > spent ? left - spent : 0;
        if (status == INGOT_OK && text.len && (now || !i)) {
            sb_free(t->text);
            sb_puts(t->text, text.data);
            *won += now;
        } else if (i && (status != INGOT_OK || *t->stopped)) {
            note("  the second round came to no end: what the first has found stays");
            status = INGOT_OK;
        }
        sb_free(&text);
        if (status != INGOT_OK || !now || i + 1 == rounds)
            break;
        t->found = own ? NULL : arena_strdup(t->a, t->text->data);
        t->o->compile.sched = arena_printf(t->a, "%s/won%d.sched", t->dir, i);
        status = network_write(t->o->compile.sched, t->text);
    }
    t->o->budget = budget;
    t->o->compile.sched = own;
    t->found = NULL;
    return status;
}

/* All of it here, or a part of it: --prepare wants no device, nor does what came of times that were
 * taken (--measure with a budget of 0). */
ingot_status tune_on_gpu(Tune *t)
{
    const Options *o = t->o;
    int won = 0, untried;
    if (o->prepare)
        return prepare_ways(t, o->prepare);
    ingot_status status = o->measure ? INGOT_OK : tune_here(t, &won);
    if (o->measure && t->s.entry)
        status = measure_ways(t, o->measure);
    if (status == INGOT_OK && o->measure)
        status = tune_gpu_collect(t, o->measure, t->text, &won, &untried);
    if (status == INGOT_OK && won && !o->measure)
        status = confirm_file(t, t->text);
    return status;
}
