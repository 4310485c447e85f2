/* tune_network.c - kernels within their network: what each takes there, before and after.
 *
 * A candidate that wins in a loop of its own may lose among the others.  Both programs, with the
 * compiler's own choices and with the winners, run in turns, and of each kernel the times of its
 * steps are compared. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune_command.h"

enum { TURNS = 3, BENCHES = 6 };
#define BENCH 0.25       /* seconds of each */
#define FOR_KERNELS 0.25 /* of the budget, at least */
#define CONFIRMING 0.25  /* of it, at most */
#define NOISE 0.01
/* Where steps are counted, that a network takes to be built, and to be profiled. */
#define BUILDING 0.5
#define PROFILING 0.05

bool network_times(Tune *t, const char *entry, double *ms, int n)
{
    const double began = seconds_now();
    const char *out = arena_printf(t->a, "%s/profile.txt", t->dir);
    const char *argv[] = {arena_printf(t->a, "%s/model", entry),   "-t",
                          arena_printf(t->a, "%d", t->o->threads), "--profile",
                          arena_printf(t->a, "%s/in", t->s.work),  NULL};
    char *text = process_run_to(argv, out) ? NULL : read_text(t->a, out);
    clock_pass(PROFILING);
    if (text && clock_is_steps())
        network_estimates(t, entry, ms, n);
    for (char *at = clock_is_steps() ? NULL : text; at && *at;) {
        char *end = strchr(at, '\n');
        int step;
        double took;
        if (end)
            *end++ = 0;
        if (sscanf(at, "%d %lf", &step, &took) == 2 && step >= 0 && step < n &&
            (ms[step] <= 0 || took < ms[step]))
            ms[step] = took;
        at = end;
    }
    t->profiling = seconds_now() - began;
    return text != NULL;
}

static double sum_of(const TuneKernel *k, const double *ms)
{
    double sum = 0;
    for (int i = 0; i < k->nstep; i++)
        sum += ms[k->step[i]->number];
    return sum;
}

ingot_status network_profile(Tune *t)
{
    int n = t->plan->nstep;
    double *ms = NEWN(t->a, double, n + 1);
    if (!network_times(t, t->s.entry, ms, n))
        return complain(INGOT_TOOL, "%s: the compiled model failed", t->o->model);
    t->network_ms = 0;
    for (int i = 0; i < n; i++)
        t->network_ms += ms[i];
    for (int i = 0; i < t->t.n; i++)
        t->t.kernel[i]->ms = sum_of(t->t.kernel[i], ms);
    return INGOT_OK;
}

/* ---- can it be replayed? --------------------------------------------------------------------- */

ingot_status network_write(const char *file, const StrBuf *text)
{
    return file_write(file, text->data, text->len)
               ? INGOT_OK
               : complain(INGOT_IO, "%s: %s", file, strerror(errno));
}

static ingot_status write_try(const Tune *t, const char *file)
{
    StrBuf text = {0};
    tuned_print(&text, &t->t, t->section, &t->machine);
    ingot_status status = network_write(file, &text);
    sb_free(&text);
    return status;
}

/* By step: a hash of the kernel that the file is to give. */
static uint64_t *wanted_hashes(const Tune *t)
{
    uint64_t *want = NEWN(t->a, uint64_t, t->plan->nstep + 1);
    for (int i = 0; i < t->t.n; i++) {
        const TuneKernel *k = t->t.kernel[i];
        Kernel *copy = candidate_kernel(k, k->candidate[k->best]);
        for (int j = 0; j < k->nstep; j++)
            want[k->step[j]->number] = kernel_hash(copy, 1);
        ingot_context_free(copy->c);
    }
    return want;
}

static bool same_steps(const Block *b, const uint64_t *want, int n)
{
    bool same = true;
    for (int i = 0; i < b->n && same; i++) {
        const Step *s = b->step[i];
        same = s->number < n;
        if (same && s->kernel && want[s->number])
            same = kernel_hash(s->kernel, 1) == want[s->number];
        same = same && same_steps(&s->body, want, n) && same_steps(&s->other, want, n);
    }
    return same;
}

/* Whether a build with the file gives these kernels and leaves the others alone. */
static bool replays(Tune *t, const char *file)
{
    LoadedModel m;
    Plan *p;
    if (write_try(t, file) != INGOT_OK)
        return false;
    (void)plan_anew(t, file, 0, &m, &p);
    bool same = p && p->nstep == t->plan->nstep && same_steps(&p->main, wanted_hashes(t), p->nstep);
    plan_free(p);
    model_close(&m);
    return same;
}

/* Each by itself, where they do not go together. */
static void drop_unreplayed(Tune *t, const char *file)
{
    if (replays(t, file))
        return;
    int *best = NEWN(t->a, int, t->t.n + 1);
    for (int i = 0; i < t->t.n; i++) {
        best[i] = t->t.kernel[i]->best;
        t->t.kernel[i]->best = 0;
    }
    for (int i = 0; i < t->t.n; i++) {
        TuneKernel *k = t->t.kernel[i];
        if (!best[i])
            continue;
        k->best = best[i];
        if (replays(t, file))
            continue;
        note("  %s: left as the compiler chose: its opts do not stand a replay", k->step[0]->name);
        k->best = 0;
    }
}

/* ---- is it faster? --------------------------------------------------------------------------- */

ingot_status network_build(Tune *t, const char *file, const char **entry)
{
    Options o = *t->o;
    Session s = t->s;
    o.compile.sched = file;
    o.compile.verbose = 0;
    s.o = &o;
    const double began = seconds_now();
    clock_pass(BUILDING);
    ingot_status status = session_find_entry(&s, &t->opened);
    *entry = s.entry;
    if (status == INGOT_OK && clock_is_steps())
        status = network_note(t, file, s.entry);
    t->building = fmax(t->building, seconds_now() - began);
    return status;
}

/* The program with the winners. */
static ingot_status build_tuned(Tune *t, const char *file, const char **entry)
{
    ingot_status status = write_try(t, file);
    return status == INGOT_OK ? network_build(t, file, entry) : status;
}

static int winners(const Tune *t)
{
    int n = 0;
    for (int i = 0; i < t->t.n; i++)
        n += t->t.kernel[i]->best > 0;
    return n;
}

static bool bench(Tune *t, const char *entry, double *ms)
{
    const bool steps = clock_is_steps();
    const char *out = arena_printf(t->a, "%s/bench.txt", t->dir);
    const char *argv[] = {
        arena_printf(t->a, "%s/model", entry),       "-t",
        arena_printf(t->a, "%d", t->o->threads),     "--bench",
        arena_printf(t->a, "%g", steps ? 0 : BENCH), arena_printf(t->a, "%s/in", t->s.work),
        t->target.gpu ? "--on-device" : NULL,        NULL};
    const char *text = process_run_to(argv, out) ? NULL : read_text(t->a, out);
    const char *at = text ? strstr(text, "\"min_ms\": ") : NULL;
    double took = at ? strtod(at + 10, NULL) : 0;
    clock_pass(BENCH);
    if (steps && took > 0)
        took = network_estimate(t, entry);
    if (took > 0 && (*ms <= 0 || took < *ms))
        *ms = took;
    return took > 0;
}

/* When confirming is to end.  With a budget of 0 all that is known is confirmed, however long that
 * takes. */
static double end_of(const Tune *t)
{
    return t->again ? t->until : t->o->budget <= 0 ? INFINITY : t->began.seconds + t->o->budget;
}

ingot_status network_compare(Tune *t, const char *entry, double *was, double *is)
{
    enum { LEAST = 2 };
    *was = *is = 0;
    for (int i = 0; i < BENCHES && (i < LEAST || seconds_now() < end_of(t)); i++)
        if (!bench(t, t->s.entry, was) || !bench(t, entry, is))
            return complain(INGOT_TOOL, "%s: the tuned model failed", t->o->model);
    return INGOT_OK;
}

ingot_status network_right(const Tune *t, const char *entry)
{
    enum {
        WIDER = 8
    }; /* than what one network is from what is wanted: kernels that are at fault are far off */
    Session was = t->s, is = t->s;
    bool good = true;
    is.entry = entry;
    is.out = NEWN(t->a, HostTensor, is.nout + 1);
    ingot_status status = session_run(&was);
    if (status == INGOT_OK)
        status = session_run(&is);
    if (status != INGOT_OK)
        return status;
    for (int i = 0; i < was.nout && good; i++) {
        const HostTensor *x = &is.out[i], *y = &was.out[i];
        const Difference d = value_compare(t->a, x, y, WIDER * tolerance_of(y->dtype));
        good = value_is_group(y) || difference_is_good(&d);
    }
    return good ? INGOT_OK
                : complain(INGOT_DIFFERS,
                           "%s: with what was the fastest its results are others: this is a fault "
                           "of ingot, please report it",
                           t->o->model);
}

ingot_status network_write_lines(const Tune *t, const char *file, const char *lines)
{
    StrBuf sb = {0};
    sb_printf(&sb, "sched 2\ntarget %s\n%s", t->section, lines);
    ingot_status status = network_write(file, &sb);
    sb_free(&sb);
    return status;
}

ingot_status network_take(Tune *t, const char *lines)
{
    t->sched = arena_printf(t->a, "%s/values.sched", t->dir);
    ingot_status status = network_write_lines(t, t->sched, lines);
    if (status == INGOT_OK)
        status = network_build(t, t->sched, &t->s.entry);
    if (status == INGOT_OK)
        status = tune_plan(t, t->sched, lines);
    return status == INGOT_OK ? network_profile(t) : status;
}

/* Drops what was not faster in an earlier network; true if all that is left was. */
static bool drop_known_losers(Tune *t)
{
    bool all = true;
    for (int i = 0; i < t->t.n; i++) {
        TuneKernel *k = t->t.kernel[i];
        double was, is, noise;
        if (!k->best)
            continue;
        if (!database_region(t->d, winner_key(t, k), &was, &is, &noise))
            all = false;
        else if (is >= was * (1 - NOISE))
            k->best = 0;
    }
    return all;
}

/* Drops what is not faster; true if anything was. */
static ingot_status drop_losers(Tune *t, const char *entry, bool *dropped)
{
    int n = t->plan->nstep;
    double *was = NEWN(t->a, double, n + 1), *is = NEWN(t->a, double, n + 1);
    for (int i = 0; i < TURNS && (!i || seconds_now() < end_of(t)); i++)
        if (!network_times(t, t->s.entry, was, n) || !network_times(t, entry, is, n))
            return complain(INGOT_TOOL, "%s: the tuned model failed", t->o->model);
    for (int i = 0; i < t->t.n; i++) {
        TuneKernel *k = t->t.kernel[i];
        double a = sum_of(k, was), b = sum_of(k, is);
        if (!k->best)
            continue;
        if (t->o->compile.verbose)
            note("  %s: in the network %.4g ms for %.4g ms", k->step[0]->name, b, a);
        if (!database_keep_region(t->d, winner_key(t, k), k->step[0]->name, a * 1e6, b * 1e6, 0))
            return complain(INGOT_IO, "%s", database_error(t->d));
        if (b < a * (1 - NOISE))
            continue;
        k->best = 0;
        *dropped = true;
    }
    return INGOT_OK;
}

/* Is there time to build the network once more, and to run it beside the other? */
static bool has_time(const Tune *t)
{
    return seconds_now() + t->building + 2 * BENCHES * fmax(BENCH, t->profiling / 2) <= end_of(t);
}

/* *whole: the network with all winners was compared, which is not done where that is a second build
 * for which there is no time. */
static ingot_status confirm(Tune *t, StrBuf *text, bool *whole)
{
    const char *file = arena_printf(t->a, "%s/try.sched", t->dir), *entry = NULL;
    bool dropped = false;
    ingot_status status = INGOT_OK;
    const bool known = !t->o->remote && drop_known_losers(t);
    if (winners(t))
        drop_unreplayed(t, file);
    if (winners(t) && !t->o->remote) {
        status = build_tuned(t, file, &entry);
        if (status == INGOT_OK && !known)
            status = drop_losers(t, entry, &dropped);
    }
    *whole = !dropped || !winners(t) || has_time(t);
    if (!*whole)
        note("  the network with the %d that won there is not compared: there is no time",
             winners(t));
    if (status == INGOT_OK && winners(t) && !t->o->remote && *whole) {
        double was, is;
        if (dropped)
            status = build_tuned(t, file, &entry);
        if (status == INGOT_OK)
            status = network_compare(t, entry, &was, &is);
        if (status == INGOT_OK)
            note("  the network: %.4g ms for %.4g ms, %.3f times as fast", is, was, was / is);
        for (int i = 0; i < t->t.n && status == INGOT_OK && is > was * (1 + 2 * NOISE); i++)
            t->t.kernel[i]->best = 0;
    }
    tuned_print(text, &t->t, t->section, &t->machine);
    return status;
}

void set_deadline(Tune *t)
{
    const double budget = t->o->budget,
                 confirming = 2 * t->building + 2 * TURNS * t->profiling +
                              2 * BENCHES * fmax(BENCH, t->profiling / 2),
                 end = t->began.seconds + budget - fmin(confirming, CONFIRMING * budget);
    t->deadline = fmax(end, seconds_now() + FOR_KERNELS * budget);
}

/* ---- remembered ------------------------------------------------------------------------------ */

const char *text_key(const Tune *t, const char *what, const char *text)
{
    StrBuf sb = {0};
    sb_printf(&sb, "%sthreads %d\n%s", what, t->o->threads, text);
    const char *key =
        arena_printf(t->a, "%016llx%016llx", (unsigned long long)hash_bytes(1, sb.data, sb.len),
                     (unsigned long long)hash_bytes(2, sb.data, sb.len));
    sb_free(&sb);
    return key;
}

const char *network_key(const Tune *t, const char *what, const char *more)
{
    StrBuf sb = {0};
    for (int i = 0; i < t->t.n; i++)
        sb_printf(&sb, "%s %d\n", t->t.kernel[i]->hash, t->t.kernel[i]->nstep);
    sb_puts(&sb, more);
    const char *key = text_key(t, what, sb.data ? sb.data : "");
    sb_free(&sb);
    return key;
}

const char *winner_key(const Tune *t, const TuneKernel *k)
{
    return text_key(t, "winner, ",
                    arena_printf(t->a, "%s\n%s\n%s\n", k->hash, k->candidate[0]->text,
                                 k->candidate[k->best]->text));
}

/* By what the kernels came to by themselves. */
static const char *outcome_key(const Tune *t)
{
    StrBuf tuned = {0};
    tuned_print(&tuned, &t->t, t->section, &t->machine);
    const char *key = network_key(t, "", tuned.data ? tuned.data : "");
    sb_free(&tuned);
    return key;
}

/* Winners that the text does not speak of are none. */
static void take_outcome(const Tune *t, const char *text)
{
    for (int i = 0; i < t->t.n; i++) {
        TuneKernel *k = t->t.kernel[i];
        if (!strstr(text, arena_printf(t->a, "\n# %s: ", k->step[0]->name)))
            k->best = 0;
    }
}

bool network_late(const Tune *t)
{
    return t->again && seconds_now() > t->until;
}

/* What was found with too little time to compare all is remembered beside what was compared: it
 * counts where no time is given. */
static const char *short_key(const Tune *t, const char *key)
{
    return text_key(t, "in a short time, ", key);
}

const char *network_known(const Tune *t, const char *key)
{
    const char *known = database_outcome(t->d, t->a, key);
    const bool no_time = t->again ? network_late(t) : t->o->budget <= 0;
    return known || !no_time ? known : database_outcome(t->d, t->a, short_key(t, key));
}

ingot_status network_keep(const Tune *t, const char *key, const char *text, bool whole)
{
    if (database_keep_outcome(t->d, whole ? key : short_key(t, key), text))
        return INGOT_OK;
    return complain(INGOT_IO, "%s", database_error(t->d));
}

ingot_status network_confirm(Tune *t, StrBuf *text)
{
    bool whole;
    if (t->o->remote)
        return confirm(t, text, &whole);
    const char *key = outcome_key(t), *known = network_known(t, key);
    if (known || network_late(t)) { /* what was found since the section is for another day */
        const char *taken = known ? known : t->said;
        take_outcome(t, taken);
        sb_puts(text, taken);
        return known ? INGOT_OK : network_keep(t, key, taken, false);
    }
    StrBuf section = {0};
    ingot_status status = confirm(t, &section, &whole);
    if (status == INGOT_OK)
        status = network_keep(t, key, section.data, whole);
    if (status == INGOT_OK)
        sb_write(text, section.data, section.len);
    sb_free(&section);
    return status;
}
