/* cli_tune_gpu.c - `ingot tune` for a GPU: which kernel of several computes each step is found out in the network.
 *
 * What a kernel takes by itself tells little where it runs for microseconds between others, with what they leave in the caches and, on CUDA, while
 * theirs are launched. So one program has the network with several kernels for each step (cli_tune_ways.c), and tries them where they are:
 * on CUDA one in the whole network, on OpenCL those of several groups, each by the time of its own steps (harness/tune_ways.c). It is built without a
 * device, and goes on where it was cut off:
 *
 *     ways.json     the target, and the file that the user named; then a line a group of equal steps: its name, and entries of the file, first
 *                   that of what is there: the compiler's choice, or the file's ("stays": it is written though nothing won)
 *     times.json    what the program has found out so far
 *     model         the program; its weights are those of the model as it is compiled where the device is */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_tune_ways.h"
#include "json.h"
#include "targets.h"

enum { MOST_ENDS = 30 /* of the program, by kernels that are at fault */ };
static const char list_name[] = "ways.json", times_name[] = "times.json";

static const char *in_folder(const Tune *t, const char *dir, const char *name)
{
    return arena_printf(t->a, "%s/%s", dir, name);
}

/* ---- the program --------------------------------------------------------------------------------- */

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
static ingot_status write_table(const Ways *w, const char *dir)
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
    return write_text(w->t, in_folder(w->t, dir, "ways.h"), &sb);
}

static ingot_status write_list(const Ways *w, const char *dir)
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
    return write_text(w->t, in_folder(w->t, dir, list_name), &sb);
}

static const RuntimeFile *ways_file(const char *name)
{
    const RuntimeFile *f = ways_files;
    while (*f->name && strcmp(f->name, name))
        f++;
    return f;
}

/* The driver's way to time a model becomes a part of the tuner's, beside what is particular to the target. */
static ingot_status put_harness(const Tune *t, const char *dir)
{
    const char *from = in_folder(t, dir, "host/driver_bench.c"),
               *to = in_folder(t, dir, "host/driver_bench.h");
    const struct {
        const char *as, *name;
    } part[] = {{"host/tune_ways.c", "tune_ways.c"},
                {"host/ways_results.h", "ways_results.h"},
                {"host/ways_device.h", arena_printf(t->a, "ways_%s.h", t->target.name)}};
    if (rename(from, to))
        return complain(INGOT_IO, "%s: %s", to, strerror(errno));
    for (int i = 0; i < (int)(sizeof part / sizeof *part); i++) {
        const RuntimeFile *f = ways_file(part[i].name);
        const char *path = in_folder(t, dir, part[i].as);
        if (!file_write(path, f->data, f->bytes))
            return complain(INGOT_IO, "%s: %s", path, strerror(errno));
    }
    return INGOT_OK;
}

static ingot_status write_program(Ways *w, const ingot_options *o, const char *dir)
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

/* One launch of kernels, which can be recorded: nothing of it is the host's, or of a size that the run knows. */
static bool is_recorded(const Plan *p)
{
    bool good = !p->c->nvar;
    for (int i = 0; i < p->main.n; i++)
        good &= p->main.step[i]->kind == STEP_KERNEL || p->main.step[i]->kind == STEP_COPY;
    return good;
}

/* Beside the compiler's own. */
static int count_ways(const Ways *w)
{
    int n = 0;
    for (int i = 0; i < w->ngroup; i++)
        n += w->group[i].nway - 1;
    return n;
}

ingot_status tune_gpu_prepare(Tune *t, const char *dir)
{
    Ways w = {.t = t};
    ingot_options o = t->o->compile;
    o.name = NULL;
    o.no_selftest = true;
    int all = 0;
    if (!access(in_folder(t, dir, list_name), F_OK))
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

/* ---- on the device ----------------------------------------------------------------------------------- */

/* The weights of the model as it is compiled here take the place of those that did not travel. */
static ingot_status link_weights(const Tune *t, const char *dir)
{
    const char *from = in_folder(t, t->s.entry, "model.weights"),
               *to = in_folder(t, dir, "model.weights");
    if (access(from, R_OK))
        return INGOT_OK; /* they are in the program */
    (void)unlink(to);
    char *real = realpath(from, NULL);
    const bool good = real && !symlink(real, to);
    free(real);
    return good ? INGOT_OK : complain(INGOT_IO, "%s: %s", to, strerror(errno));
}

/* Other weights of these shapes do as well: what is compared are results of the same. */
static ingot_status run_program(const Tune *t, const char *dir)
{
    const char *file = in_folder(t, dir, times_name);
    char *in = realpath(arena_printf(t->a, "%s/in", t->s.work), NULL);
    const char *before = NULL;
    int code = 1;
    for (int i = 0; in && code && i < MOST_ENDS && !*t->stopped; i++) {
        const double left = t->deadline - seconds_now();
        const char *argv[] = {"./model", "--no-checksum",
                              "--bench", arena_printf(t->a, "%.3f", left > 0 ? left : 0),
                              in,        NULL};
        code = process_wait(process_start_in(argv, dir));
        const char *now = read_text(t->a, file);
        if (code && (!now || (before && !strcmp(before, now))))
            break; /* it does not get anywhere */
        before = now;
    }
    free(in);
    return code && !*t->stopped
               ? complain(INGOT_TOOL, "%s: the program of %s failed", dir, list_name)
               : INGOT_OK;
}

/* ---- what came of it ----------------------------------------------------------------------------------- */

/* The next line of a file of ours, or NULL; at is behind it then. */
static const Json *next_line(const Tune *t, const char **at)
{
    const char *why;
    const size_t length = strcspn(*at, "\n");
    const Json *j = json_read(t->a, arena_printf(t->a, "%.*s", (int)length, *at), &why);
    *at += length + ((*at)[length] == '\n');
    return j;
}

/* What came of the ways of a group. */
typedef enum { WAY_TAKEN, WAY_LEFT, WAY_SLOW, WAY_WRONG, WAY_FAILED, WAY_VERDICTS } WayVerdict;
static const char *const way_verdict[] = {"taken", "left", "slow", "wrong", "failed"};
enum { WAY_UNTRIED = -1, WAY_BEGUN = -2 /* the program ended while it ran */ };
typedef struct {
    int taken;    /* the way that was taken last */
    int *verdict; /* by way; below zero: it was not tried to the end */
    double *
        ratio; /* by way: its time to that of what was there when it was tried last; 0: not known */
} GroupTimes;
/* By group; and the network's times, 0 if they are not known: it is faster in three of four turns (low: by so much). */
typedef struct {
    GroupTimes *group;
    int tried;
    double us, was, low;
} Times;

enum { WAYS_ROOM = MOST_TILE_WAYS };

static void note_way(GroupTimes *g, int way, const Json *j)
{
    const char *said = json_text(json_member(j, "verdict"), "");
    const double us = json_number(json_member(j, "us"), 0),
                 was = json_number(json_member(j, "was_us"), 0);
    int verdict = 0;
    while (verdict < WAY_VERDICTS && strcmp(said, way_verdict[verdict]))
        verdict++;
    if (verdict == WAY_VERDICTS) /* it runs, and was not timed yet */
        return;
    if (verdict == WAY_TAKEN)
        g->taken = way;
    g->verdict[way] = verdict;
    g->ratio[way] = was > 0 ? us / was : 0;
}

/* [sweep, group, way]: false, there is none of them. */
static bool read_numbers(const Json *j, int ngroup, int *g, int *way)
{
    const Json *x[3] = {j && j->kind == JSON_LIST ? j->item : NULL};
    for (int i = 1; i < 3; i++)
        x[i] = x[i - 1] ? x[i - 1]->next : NULL;
    *g = (int)json_number(x[1], -1);
    *way = (int)json_number(x[2], -1);
    return *g >= 0 && *g < ngroup && *way >= 0 && *way < WAYS_ROOM;
}

static bool read_times(const Tune *t, const char *dir, int ngroup, Times *x)
{
    const char *text = read_text(t->a, in_folder(t, dir, times_name));
    *x = (Times){.group = NEWN(t->a, GroupTimes, ngroup + 1)};
    for (int g = 0; g < ngroup; g++) {
        x->group[g].verdict = NEWN(t->a, int, WAYS_ROOM);
        x->group[g].ratio = NEWN(t->a, double, WAYS_ROOM);
        for (int i = 0; i < WAYS_ROOM; i++)
            x->group[g].verdict[i] = WAY_UNTRIED;
    }
    for (const char *at = text; at && *at;) {
        const Json *j = next_line(t, &at), *done = json_member(j, "done");
        int g, way;
        x->tried += done && strcmp(json_text(json_member(j, "verdict"), ""), "runs");
        if (read_numbers(json_member(j, "try"), ngroup, &g, &way) &&
            x->group[g].verdict[way] == WAY_UNTRIED)
            x->group[g].verdict[way] = WAY_BEGUN;
        if (read_numbers(done, ngroup, &g, &way))
            note_way(&x->group[g], way, j);
        if (json_member(j, "network_us")) {
            x->us = json_number(json_member(j, "network_us"), 0);
            x->was = json_number(json_member(j, "was_us"), 0);
            x->low = json_number(json_member(j, "low"), x->was - x->us);
        }
    }
    return text != NULL;
}

static const char *way_text(const Json *group, int way)
{
    const Json *list = json_member(group, "ways"), *one = list ? list->item : NULL;
    for (; one && way > 0; way--)
        one = one->next;
    return json_text(one, NULL);
}

static bool is_faster(const Times *x)
{
    return x->us <= 0 || (x->us < x->was && x->low > 0);
}

/* Entries of one step each (only) have the same opts: those of the first do. */
static void explain_entry(const char *what, const char *entry)
{
    int nkernel = 0;
    printf("  %s:\n", what);
    for (const char *at = entry; at && *at;) {
        const size_t length = strcspn(at, "\n");
        nkernel += !strncmp(at, "kernel", 6);
        if (nkernel > 1)
            return;
        if (strncmp(at, "kernel", 6) && at[strspn(at, " ")] != '#')
            printf("  %.*s\n", (int)length, at);
        at += length + (at[length] == '\n');
    }
}

/* What stands in a folder: what is there (the compiler's choice, or that of a file), and what was found out. */
typedef struct {
    const Json **group;
    int n;
    const char *rest; /* of the user's file */
    Times times;
} Folder;

static int count_texts(const Json *group)
{
    int n = 0;
    for (const Json *one = json_member(group, "ways")->item; one; one = one->next)
        n++;
    return n < WAYS_ROOM ? n : WAYS_ROOM;
}

/* The way that was taken of a group, if the folder has it; 0: none was. */
static int way_taken(const Folder *f, int group)
{
    const int way = f->times.group[group].taken;
    return way && way_text(f->group[group], way) ? way : 0;
}

/* --explain: what was tried of each group, what came of it, and what won. */
static void explain_group(const Folder *f, int group)
{
    const Json *j = f->group[group];
    const GroupTimes *g = &f->times.group[group];
    const char *own = f->rest                   ? "the file's choice"
                      : json_member(j, "stays") ? "the choice of the round before"
                                                : "the compiler's choice";
    const int n = count_texts(j), taken = way_taken(f, group);
    int untried = 0, begun = 0, of[WAY_VERDICTS] = {0};
    double best = 0;
    for (int i = 1; i < n; i++) {
        untried += g->verdict[i] == WAY_UNTRIED;
        begun += g->verdict[i] == WAY_BEGUN;
        if (g->verdict[i] < 0)
            continue;
        of[g->verdict[i]]++;
        if (g->verdict[i] <= WAY_LEFT && g->ratio[i] > 0 && (best <= 0 || g->ratio[i] < best))
            best = g->ratio[i];
    }
    printf("%s\n  %d steps; tried: %d right, %d far too slow, %d wrong, %d failed, %d begun; %d "
           "untried\n",
           json_text(json_member(j, "name"), ""), (int)json_number(json_member(j, "steps"), 0),
           of[WAY_TAKEN] + of[WAY_LEFT], of[WAY_SLOW], of[WAY_WRONG], of[WAY_FAILED], begun,
           untried);
    if (taken && !is_faster(&f->times))
        printf("  %s stays: another took %.3f of its time, but the network with all that won is "
               "not faster\n",
               own, g->ratio[taken]);
    else if (taken)
        printf("  won: %.3f of the time of what was there before it\n", g->ratio[taken]);
    else if (best > 0)
        printf("  %s stays: the best of the others takes %.3f of its time\n", own, best);
    if (taken) {
        explain_entry(own, way_text(j, 0));
        explain_entry("the fastest", way_text(j, taken));
    }
}

static ingot_status read_folder(const Tune *t, const char *dir, Folder *f)
{
    const char *path = in_folder(t, dir, list_name);
    *f = (Folder){0};
    for (const char *at = read_text(t->a, path); at && *at;) {
        const Json *j = next_line(t, &at), *ways = json_member(j, "ways");
        if (ways && ways->kind == JSON_LIST)
            vec_push(t->a, f->group, f->n, j);
        else if (j && json_member(j, "rest"))
            f->rest = json_text(json_member(j, "rest"), NULL);
    }
    if (!f->n)
        return complain(INGOT_IO, "%s: cannot be read: `ingot tune --prepare %s` writes it", path,
                        dir);
    if (!read_times(t, dir, f->n, &f->times))
        note("  %s: nothing was timed yet", dir);
    return INGOT_OK;
}

/* The section of the file: entries of what is otherwise than the compiler has it; beside a file of the user's, all that it says. */
static void print_section(const Tune *t, const Folder *f, StrBuf *text, int *won)
{
    *won = 0;
    sb_printf(text, "sched 2\ntarget %s\n%s", t->section, f->rest ? f->rest : "");
    for (int i = 0; i < f->n; i++) {
        const int way = is_faster(&f->times) ? way_taken(f, i) : 0;
        const bool said = way || f->rest || json_member(f->group[i], "stays");
        const char *entry = said ? way_text(f->group[i], way) : NULL;
        if (entry)
            sb_puts(text, entry);
        *won += way > 0;
    }
}

/* A build with the file has these kernels: what it says can be done, and all of it is said of this model. */
static ingot_status check_file(const Tune *t, const char *dir, const StrBuf *text)
{
    const char *file = in_folder(t, dir, "best.sched");
    Model m;
    Plan *p = NULL;
    ingot_status status = network_write(file, text);
    if (status != INGOT_OK)
        return status;
    status = plan_anew(t, file, 0, &m, &p);
    plan_free(p);
    model_close(&m);
    return status;
}

ingot_status tune_gpu_collect(Tune *t, const char *dir, StrBuf *text, int *won, int *untried)
{
    Folder f;
    ingot_status status = read_folder(t, dir, &f);
    *won = *untried = 0;
    if (status != INGOT_OK)
        return status;
    const Times *x = &f.times;
    bool taken = false;
    for (int i = 0; i < f.n; i++)
        taken |= way_taken(&f, i) > 0;
    if (x->us > 0)
        note("  the network: %.4g ms for %.4g ms, %.3f times as fast; %d kernels tried",
             x->us * 1e-3, x->was * 1e-3, x->was / x->us, x->tried);
    else if (x->tried)
        note("  %d kernels tried; %s", x->tried,
             taken ? "the network with those that were faster was not timed yet"
                   : "none of them is faster");
    for (int i = 0; i < f.n; i++) {
        for (int way = 1; way < count_texts(f.group[i]); way++)
            *untried += x->group[i].verdict[way] == WAY_UNTRIED;
        if (t->o->why)
            explain_group(&f, i);
    }
    print_section(t, &f, text, won);
    if (*won)
        status = check_file(t, dir, text);
    if (status == INGOT_OK)
        note("  %d of %d kernels otherwise than %s", *won, f.n,
             t->o->compile.sched ? "before" : "the compiler chose");
    return status;
}

ingot_status tune_gpu_prepared(Tune *t, const char *dir)
{
    const char *path = in_folder(t, dir, list_name), *text = read_text(t->a, path);
    const Json *first = text ? next_line(t, &text) : NULL;
    const char *own = json_text(json_member(first, "sched"), NULL);
    if (!first)
        return complain(INGOT_IO, "%s: cannot be read: `ingot tune --prepare %s` writes it", path,
                        dir);
    if (!own)
        return INGOT_OK;
    const char *file = in_folder(t, t->dir, "own.sched");
    t->o->compile.sched = file;
    return file_write(file, own, strlen(own)) ? INGOT_OK
                                              : complain(INGOT_IO, "%s: %s", file, strerror(errno));
}

ingot_status tune_gpu_measure(Tune *t, const char *dir)
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
ingot_status tune_gpu_confirm(Tune *t, const StrBuf *text)
{
    const char *file = in_folder(t, t->dir, "tuned.sched"), *entry;
    ingot_status status = network_write(file, text);
    if (status == INGOT_OK)
        status = network_build(t, file, &entry);
    return status == INGOT_OK ? network_right(t, entry) : status;
}
