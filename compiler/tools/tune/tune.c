/* tune.c - `ingot tune`: time is divided among kernels by what they take in the network, each is
 * searched, what wins is confirmed in the network, and the outcome is written as a .sched file. */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "targets.h"
#include "tune_command.h"

enum { WIDTH = 12 };
/* Of the network: what takes less is not searched, nor are the cheapest that together take no more
 * than REST. */
#define SMALL 0.002
#define REST 0.05

static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

/* ---- the database ---------------------------------------------------------------------------- */

static const char *database_file(const Options *o)
{
    const char *own = getenv("INGOT_TUNE");
    return o->database   ? o->database
           : own && *own ? own
                         : arena_printf(o->a, "%s/tune.db", cache_root(o->a));
}

static ingot_status open_database(const Options *o, Database **d)
{
    const char *file = database_file(o), *why;
    if (!o->database && !make_dirs(cache_root(o->a)))
        return complain(INGOT_IO, "%s: %s", cache_root(o->a), strerror(errno));
    *d = database_open(o->a, file, &why);
    if (*d)
        return INGOT_OK;
    bool absent = strstr(why, "without SQLite") != NULL;
    return complain(absent ? INGOT_UNSUPPORTED : INGOT_IO, "%s%s", absent ? "ingot tune: " : "",
                    why);
}

static ingot_status export_database(const Options *o, Database *d)
{
    StrBuf lines = {0};
    ingot_status status = INGOT_OK;
    if (!database_export(d, &lines))
        status = complain(INGOT_IO, "%s", database_error(d));
    else if (!file_replace(o->a, o->export_to, lines.data, lines.len))
        status = complain(INGOT_IO, "%s: %s", o->export_to, strerror(errno));
    sb_free(&lines);
    return status;
}

static ingot_status import_database(const Options *o, Database *d)
{
    const char *text = read_text(o->a, o->import), *why;
    struct stat st;
    int n;
    if (!text)
        return complain(INGOT_IO, "%s: cannot be read", o->import);
    if (!stat(o->import, &st) && S_ISREG(st.st_mode) && strlen(text) < (size_t)st.st_size)
        return complain(INGOT_INVALID, "%s: no text: it has bytes of zero", o->import);
    if (!database_import(d, o->a, text, &n, &why))
        return why ? complain(INGOT_INVALID, "%s: %s", o->import, why)
                   : complain(INGOT_IO, "%s", database_error(d));
    note("  %d entries", n);
    return INGOT_OK;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

bool step_matches(const Step *s, const char *pattern)
{
    bool found = !pattern || !fnmatch(pattern, s->name, 0);
    for (int j = 0; j < s->norigin && !found; j++)
        found = !fnmatch(pattern, s->origins[j]->node, 0);
    return found;
}

static bool kernel_matches(const TuneKernel *k, const char *pattern)
{
    bool found = !pattern;
    for (int i = 0; i < k->nstep && !found; i++)
        found = step_matches(k->step[i], pattern);
    return found;
}

static int dearest_first(const void *a, const void *b)
{
    const TuneKernel *x = *(TuneKernel *const *)a, *y = *(TuneKernel *const *)b;
    if (x->ms != y->ms)
        return x->ms > y->ms ? -1 : 1;
    return strcmp(x->hash, y->hash);
}

/* Searched are the dearest of those that are asked for; of the others the file says what the
 * database knows. */
static ingot_status choose_kernels(Tune *t)
{
    double all = 0, so_far = 0;
    t->order = NEWN(t->a, TuneKernel *, t->t.n + 1);
    for (int i = 0; i < t->t.n; i++)
        all += t->t.kernel[i]->ms;
    for (int i = 0; i < t->t.n; i++)
        if (kernel_matches(t->t.kernel[i], t->o->kernels))
            t->order[t->nasked++] = t->t.kernel[i];
    qsort(t->order, (size_t)t->nasked, sizeof *t->order, dearest_first);
    while (t->n < t->nasked &&
           (t->o->kernels || (t->order[t->n]->ms >= SMALL * all && so_far < (1 - REST) * all)))
        so_far += t->order[t->n++]->ms;
    if (!t->n && t->o->kernels)
        return complain(INGOT_USAGE,
                        "%s: no kernel that can be tuned matches '%.200s': it has %d, the first "
                        "is %s",
                        t->o->model, t->o->kernels, t->t.n,
                        t->t.n ? t->t.kernel[0]->step[0]->name : "none");
    return INGOT_OK;
}

/* ---- the model ------------------------------------------------------------------------------- */

static ingot_status check_target(Tune *t)
{
    ingot_status status;
    Options *o = t->o;
    if (!o->compile.target)
        o->compile.target = "c:native";
    const char *word = sched_target(t->a, target_everywhere(t->a, o->compile.target));
    t->section = o->threads > 1 ? arena_printf(t->a, "%s threads %d", word, o->threads) : word;
    const char *why = target_make(&t->target, t->a, o->compile.target, &status);
    if (why)
        return complain(status, "--target '%.80s': %s", o->compile.target, why);
    if (!t->target.gpu && o->compile.sched)
        return complain(INGOT_USAGE,
                        "ingot tune: --target %s: --sched is for GPUs; for a CPU, the database "
                        "remembers earlier results",
                        o->compile.target);
    if (t->target.gpu && !driver_compiles(&t->target) && !t->target.machine.units)
        return complain(
            INGOT_USAGE,
            "ingot tune: --target %s: only GPUs with matrix units are tuned: cuda:sm_80 and later",
            o->compile.target);
    if (t->target.gpu && o->measure && (o->kernels || o->compile.sched))
        return complain(INGOT_USAGE,
                        "ingot tune: --target %s: pass --kernels and --sched with --prepare, which "
                        "builds the candidates",
                        o->compile.target);
    if (t->target.gpu && (o->remote || o->ncount > 1))
        return complain(INGOT_USAGE,
                        "ingot tune: --target %s: a GPU is tuned on its own machine (--prepare, "
                        "--measure): --remote and several --threads are not supported",
                        o->compile.target);
    return INGOT_OK;
}

ingot_status tune_plan(Tune *t, const char *sched, const char *values)
{
    ingot_options silent = t->o->compile;
    silent.verbose = 0;
    silent.sched = sched ? sched : silent.sched;
    Plan *p = plan_make(t->m.c, &silent);
    if (!p)
        return ingot_context_status(t->m.c);
    tune_free(&t->t);
    plan_free(t->plan);
    t->plan = p;
    tune_kernels(&t->t, t->plan, &t->target, values);
    for (int i = 0; i < t->t.n; i++) { /* until it is measured */
        TuneKernel *k = t->t.kernel[i];
        k->ms = k->nstep * candidate_estimate(k, k->candidate[0])->cycles;
    }
    return INGOT_OK;
}

ingot_status plan_anew(const Tune *t, const char *sched, int nth, LoadedModel *m, Plan **p)
{
    ingot_options o = t->o->compile;
    o.sched = sched ? sched : o.sched;
    o.verbose = 0;
    ingot_status status = model_open(m, t->o, true);
    if (status == INGOT_OK)
        status = model_build(m, t->o, t->s.in, t->s.bound);
    *p = status == INGOT_OK ? plan_make_nth(m->c, &o, nth) : NULL;
    return status == INGOT_OK && !*p ? ingot_context_status(m->c) : status;
}

static ingot_status open_model(Tune *t)
{
    ingot_status status = model_open(&t->m, t->o, t->s.in != NULL);
    return status == INGOT_OK ? model_build(&t->m, t->o, t->s.in, t->s.bound) : status;
}

static ingot_status make_scratch(Tune *t)
{
    const char *dir = temporary_folder(t->a, "tune");
    if (!dir)
        return complain(INGOT_IO, "ingot: no folder of its own in $TMPDIR, else /tmp: %s",
                        strerror(errno));
    t->dir = dir;
    t->measure = (Measure){
        .cc = compiler_words(t->a, t->o->compile.target), .remote = t->o->remote, .seconds = 0.4};
    return INGOT_OK;
}

/* " -O1 -m32" of "ccache gcc -O1 -m32". */
static const char *compiler_flags(Arena *a, const char *words)
{
    StrBuf sb = {0};
    while (*words) {
        const size_t skip = strspn(words, " "), len = strcspn(words + skip, " ");
        if (words[skip] == '-')
            sb_printf(&sb, " %.*s", (int)len, words + skip);
        words += skip + len;
    }
    return sb_take(&sb, a);
}

/* The program of candidates tells what it runs on: that which was prepared, or one without any. */
static ingot_status find_machine(Tune *t)
{
    Measure *m = &t->measure;
    const char *prepared = t->o->measure, *dir = prepared ? prepared : t->dir;
    if (prepared && !tune_prepared(t, prepared))
        return INGOT_IO;
    if ((!prepared && !measure_build(m, &t->t, dir, NULL, 0)) ||
        !measure_run(m, &t->t, dir, NULL, 0, true) || !m->cpu || !m->compiler)
        return complain(INGOT_TOOL, "ingot tune: %s",
                        m->why ? m->why : "the machine is not described");
    t->machine = (Host){
        arena_printf(t->a, "%s %s", t->o->compile.target, t->target.flags ? t->target.flags : ""),
        arena_strdup(t->a, m->cpu),
        arena_printf(t->a, "%s%s", m->compiler,
                     prepared || m->remote ? "" : compiler_flags(t->a, c_compiler()))};
    if (!database_machine(t->d, &t->machine))
        return complain(INGOT_IO, "%s", database_error(t->d));
    return INGOT_OK;
}

/* ---- the search ------------------------------------------------------------------------------ */

static double gain_of(const TuneKernel *k)
{
    const Candidate *best = k->candidate[k->best];
    return k->best && best->base_ns > 0 ? best->ns / best->base_ns : 1;
}

static double network_gain(const Tune *t)
{
    double was = 0, is = 0;
    for (int i = 0; i < t->t.n; i++) {
        was += t->t.kernel[i]->ms;
        is += t->t.kernel[i]->ms * gain_of(t->t.kernel[i]);
    }
    return is > 0 ? was / is : 1;
}

static void print_progress(Tune *t, const TuneKernel *k, int done, bool end)
{
    double left = t->deadline - seconds_now();
    const Candidate *best = k->candidate[k->best];
    StrBuf sb = {0};
    if (progress_is_quiet())
        return;
    sb_printf(&sb, "%d of %d done  %s: ", done, t->n, k->step[0]->name);
    if (k->at_roof || k->known)
        sb_puts(&sb, k->at_roof ? "at the roof" : "known");
    else
        sb_printf(&sb, "%d timed", k->tried);
    if (k->best)
        sb_printf(&sb, ", %.4g us for %.4g us", best->ns * 1e-3, best->base_ns * 1e-3);
    sb_printf(&sb, "; all: %.3f times as fast, %.0f s left", network_gain(t), left > 0 ? left : 0);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%-100.100s%s", sb.data, end ? "\n" : "");
    else if (end)
        note("  %s", sb.data);
    sb_free(&sb);
}

typedef struct {
    Tune *t;
    int done;
} Progress;

static void progress(void *user, const TuneKernel *k)
{
    Progress *p = user;
    p->done += k->done;
    print_progress(p->t, k, p->done, k->done);
}

/* Seconds in which the candidates of one kernel are timed: a dozen rounds of each are to fit. */
static double round_seconds(const Tune *t)
{
    double each = t->n ? (t->deadline - seconds_now()) / (24.0 * t->n) : 0;
    return each < 0.1 ? 0.1 : each > 0.8 ? 0.8 : each;
}

static ingot_status search_all(Tune *t)
{
    Progress p = {t, 0};
    Search s = {.t = &t->t,
                .m = &t->measure,
                .d = t->d,
                .dir = t->dir,
                .beam = t->o->beam,
                .width = WIDTH,
                .deadline = t->deadline,
                .all = t->o->why,
                .stopped = &stopped,
                .progress = progress,
                .user = &p};
    const ingot_status status = tune_hopes(t);
    if (status != INGOT_OK)
        return status;
    t->measure.seconds = round_seconds(t);
    bool good = search_kernels(&s, t->order, t->n);
    for (int i = t->n; i < t->nasked && good; i++)
        good = search_known(&s, t->order[i]);
    if (database_error(t->d))
        return complain(INGOT_IO, "%s", database_error(t->d));
    if (!good)
        return complain(INGOT_TOOL, "%s: %s", t->o->model,
                        t->measure.why ? t->measure.why : "the search failed");
    for (int i = 0; i < t->n; i++)
        if (!t->order[i]->done && (t->order[i]->tried || t->order[i]->best))
            print_progress(t, t->order[i], p.done, true);
    if (t->o->compile.verbose)
        note("  estimates %.1f s (%.1f s of all cores), compiling candidates %.1f s (%.1f s), "
             "running them %.1f s (%.1f s)",
             t->measure.estimating.seconds, t->measure.estimating.cpu, t->measure.building.seconds,
             t->measure.building.cpu, t->measure.running.seconds, t->measure.running.cpu);
    return INGOT_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

static ingot_status write_file(const Options *o, const StrBuf *text)
{
    return file_replace(o->a, o->output, text->data, text->len)
               ? INGOT_OK
               : complain(INGOT_IO, "%s: %s", o->output, strerror(errno));
}

/* Told before hours of search rather than after them. */
static ingot_status check_output(const Options *o)
{
    struct stat st;
    const char *file = o->output;
    if (!file)
        return INGOT_OK;
    const bool there = !stat(file, &st);
    if (there && S_ISDIR(st.st_mode))
        return complain(INGOT_IO, "%s: %s", file, strerror(EISDIR));
    const char *part = there ? NULL : part_file(o->a, file);
    if (part)
        part_discard(part);
    if (part || (there && !access(file, W_OK)))
        return INGOT_OK;
    return complain(INGOT_IO, "%s: %s", file, strerror(errno));
}

static ingot_status finish(Tune *t)
{
    ingot_status status = INGOT_OK;
    int won = 0;
    const Spent began = spent_now();
    if (t->o->output)
        status = network_confirm(t, t->text);
    spent_add(&t->confirming, began);
    for (int i = 0; i < t->t.n; i++)
        won += t->t.kernel[i]->best > 0;
    if (status == INGOT_OK && t->o->compile.verbose)
        note("  building and profiling the network %.1f s (%.1f s), ways to compute values %.1f s "
             "(%.1f s), decisions of the plan %.1f s (%.1f s; %d plans), confirming the winners "
             "%.1f s (%.1f s)",
             t->preparing.seconds, t->preparing.cpu, t->variants.seconds, t->variants.cpu,
             t->decisions.seconds, t->decisions.cpu, t->nplan, t->confirming.seconds,
             t->confirming.cpu);
    if (status == INGOT_OK && t->o->output)
        note("  %s: %d of %d kernels differ from the compiler's choice", t->o->output, won, t->t.n);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static ingot_status check_usage(const Options *o)
{
    bool apart = o->prepare || o->measure;
    if (clock_unknown())
        return complain(INGOT_USAGE, "ingot tune: INGOT_CLOCK=%.80s: 'steps' is wanted, or nothing",
                        clock_unknown());
    if (o->prepare && o->measure)
        return complain(INGOT_USAGE, "ingot tune: --prepare and --measure are two runs, the second "
                                     "may be on another day");
    if (!o->model && !o->export_to && !o->import)
        return complain(INGOT_USAGE, "ingot tune: the model file is missing");
    if (o->model && !o->output && !apart && !o->why)
        return complain(INGOT_USAGE,
                        "ingot tune: -o FILE is missing: it gets the decisions (or use --explain)");
    if (o->prepare && (o->output || o->why))
        return complain(INGOT_USAGE, "ingot tune: --prepare times nothing: there is nothing for -o "
                                     "or --explain yet");
    if (apart && o->ncount > 1)
        return complain(INGOT_USAGE, "ingot tune: --threads with several numbers is for networks "
                                     "that run here: without --prepare, --measure");
    return INGOT_OK;
}

/* Candidates that were prepared are timed, and that is all, but for what --explain tells of them:
 * no compiler is wanted. */
static bool measures_only(const Tune *t)
{
    return t->o->measure && !t->o->output && !t->target.gpu;
}

/* Of all kernels what the database knows; of the network nothing is. */
static ingot_status explain_measured(Tune *t)
{
    Search s = {.t = &t->t, .d = t->d, .all = true};
    t->n = t->nasked;
    for (int i = 0; i < t->n; i++)
        if (!search_known(&s, t->order[i]))
            return complain(INGOT_IO, "%s", database_error(t->d));
    tune_explain(t);
    return INGOT_OK;
}

/* Is the network run here? */
static bool runs_network(const Tune *t)
{
    const Options *o = t->o;
    return !o->remote && !o->prepare && !measures_only(t) &&
           !(t->target.gpu && o->measure && o->budget <= 0);
}

static ingot_status tune_model(Tune *t)
{
    Options *o = t->o;
    ingot_status status = check_target(t);
    const char *why =
        status == INGOT_OK && runs_network(t) ? runs_elsewhere(t->a, o->compile.target) : NULL;
    if (why)
        return complain(INGOT_TOOL,
                        "ingot tune: %s; with --remote CMD, candidates are timed on another "
                        "machine (docs/tune.md)",
                        why);
    if (status == INGOT_OK && t->target.gpu)
        status = make_scratch(t);
    if (status == INGOT_OK && t->target.gpu && o->measure)
        status = tune_gpu_prepared(t, o->measure);
    if (status == INGOT_OK && runs_network(t))
        status = session_prepare(&t->s, &t->opened, true);
    else if (status == INGOT_OK && (o->data || o->ninput)) { /* they decide dims */
        status = model_open(&t->opened, o, true);
        if (status == INGOT_OK)
            status = session_read(&t->s, &t->opened, false);
    }
    if (status == INGOT_OK)
        status = open_model(t);
    if (status == INGOT_OK && t->target.gpu)
        return tune_on_gpu(t);
    if (status == INGOT_OK)
        status = tune_plan(t, NULL, NULL);
    if (status == INGOT_OK)
        status = make_scratch(t);
    if (status == INGOT_OK && !(o->prepare && o->remote))
        status = find_machine(t);
    if (status == INGOT_OK && runs_network(t))
        status = network_profile(t);
    spent_add(&t->preparing, t->began);
    const Spent before = spent_now();
    t->building = before.seconds - t->began.seconds - t->profiling;
    set_deadline(t);
    if (status == INGOT_OK && !o->remote && !o->prepare && !o->measure && !o->kernels)
        status = network_variants(t);
    spent_add(&t->variants, before);
    const Spent decided = spent_now();
    if (status == INGOT_OK && !o->remote && !o->prepare && !o->measure && !o->kernels)
        status = network_decisions(t);
    spent_add(&t->decisions, decided);
    if (status == INGOT_OK)
        status = choose_kernels(t);
    if (status != INGOT_OK)
        return status;
    if (o->prepare)
        return tune_prepare(t, o->prepare);
    if (o->measure) {
        t->deadline = seconds_now() + o->budget;
        status = tune_measure(t, o->measure, &stopped);
        t->deadline = seconds_now();
    }
    if (measures_only(t))
        return status == INGOT_OK && o->why ? explain_measured(t) : status;
    if (status == INGOT_OK)
        status = search_all(t);
    if (status == INGOT_OK && o->why)
        tune_explain(t);
    return status == INGOT_OK ? finish(t) : status;
}

/* A section of the file: the network run by so many threads.  said: the section that was written
 * just now, where what is known of it is to be said; what has to be confirmed for that may take
 * until then. */
static ingot_status tune_for(Options o, int threads, const char *said, double until, Database *d,
                             StrBuf *text)
{
    o.threads = o.compile.threads = threads;
    Tune t = {.o = &o,
              .a = o.a,
              .s = {.o = &o, .a = o.a},
              .d = d,
              .text = text,
              .stopped = &stopped,
              .again = said != NULL,
              .said = said,
              .until = until,
              .began = spent_now()};
    if (o.ncount > 1)
        note("  threads: %d%s", threads, o.budget > 0 ? "" : ", by what is known");
    const ingot_status status = tune_model(&t);
    if (t.dir)
        remove_tree(t.dir);
    if (t.s.work)
        remove_tree(t.s.work);
    tune_free(&t.t);
    plan_free(t.plan);
    model_close(&t.m);
    model_close(&t.opened);
    return status;
}

/* All sections; with time to search, the file is written after each.  *said: what was written of
 * each; not NULL: a second time, by what is known. */
static ingot_status tune_sections(const Options *all, double budget, const char ***said,
                                  double until, bool explain, Database *d)
{
    const char **was = *said, **is = NEWN(all->a, const char *, all->ncount + 1);
    Options o = *all;
    StrBuf text = {0};
    ingot_status status = INGOT_OK;
    o.budget = budget / o.ncount;
    o.why = explain;
    for (int i = 0; i < o.ncount && status == INGOT_OK; i++) {
        const size_t from = text.len;
        status = tune_for(o, o.count[i], was ? was[i] : NULL, until, d, &text);
        is[i] = arena_strdup(o.a, text.data ? text.data + from : "");
        if (status == INGOT_OK && o.output && (budget > 0 || i + 1 == o.ncount))
            status = write_file(&o, &text);
    }
    sb_free(&text);
    *said = is;
    return status;
}

/* What is timed for one section, those before it know only afterwards: the file is what the
 * database says in the end. */
static ingot_status tune_all(const Options *o, Database *d)
{
    struct sigaction act = {.sa_handler = stop};
    const bool twice = o->ncount > 1 && o->budget > 0;
    sigaction(SIGINT, &act, NULL); /* what was found so far is written */
    sigaction(SIGTERM, &act, NULL);
    const char **said = NULL;
    const double until = seconds_now() + o->budget;
    const ingot_status status = tune_sections(o, o->budget, &said, until, o->why && !twice, d);
    return status == INGOT_OK && twice ? tune_sections(o, 0, &said, until, o->why, d) : status;
}

ingot_status command_tune(Options *o)
{
    Database *d = NULL;
    ingot_status status = check_usage(o);
    if (status == INGOT_OK)
        status = check_output(o);
    if (status == INGOT_OK)
        status = open_database(o, &d);
    if (status == INGOT_OK && o->import)
        status = import_database(o, d);
    if (status == INGOT_OK && o->model)
        status = tune_all(o, d);
    if (status == INGOT_OK && o->export_to)
        status = export_database(o, d);
    database_close(d);
    return status;
}
