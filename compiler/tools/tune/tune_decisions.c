/* tune_decisions.c - decisions of the plan that are tried the other way round in the network: what
 * is stored or merged where that was close (plan/alternatives.c), and how results lie
 * (other_layouts.c).
 *
 * Both are decided before there are kernels.  Of each:
 *
 *     the plan with the decision the other way round, beside the plan as it is: the kernels that it
 *     takes away, and puts there
 *     cost_nest() of both           what it puts there takes FAR longer: not built
 *     into one network              decisions that change other kernels each; its steps are timed
 *                                   in turns with those of the network as it is
 *     layouts that go together      by the times of each alone (tune_chains.c): one decision
 *     what is faster, by more       goes into the network together: its kernels are compared with
 *                                   their naive form, and the network has to
 *     than the noise                be faster as a whole
 *
 * Then again, from the plan that this gives: of decisions that change the same kernels the best is
 * taken first. The database knows both sets of kernels and their times: equal places are timed
 * once, in whatever network, and a search that was cut off goes on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inspect.h"
#include "tune_command.h"

enum { TURNS = 3, ROUNDS = 4 }; /* an even and an odd one each */
#define CLOSE 4.0               /* times: how far apart two estimates may be */
#define FAR 1.6                 /* by the estimate of kernels, as in search.c */
#define GAIN 0.03               /* of these kernels: less is noise */
#define WORTH 0.0005            /* of the network: less is not seen in it */
#define SHARE 0.25              /* of the budget */
#define ESTIMATING 10 /* seconds, where the file is to say what is known: of what that is */
#define TELL 5        /* seconds between two lines of progress */

/* ---- what could be otherwise ----------------------------------------------------------------- */

static double sum_taken(const Decision *d, const double *ms)
{
    double sum = 0;
    for (int i = 0; i < d->ntaken; i++)
        sum += ms[d->taken[i]];
    return sum;
}

/* "Conv conv_0: recomputed, not stored" */
static const char *words_of(Arena *a, const Alternative *x)
{
    StrBuf sb = {0};
    if (x->origin)
        sched_origin(&sb, x->origin);
    const char *text =
        arena_printf(a, "%s: %s, not %s", sb.data ? sb.data : "a value", x->then, x->is);
    sb_free(&sb);
    return text;
}

/* What it changes, once that is known. */
static void add_decision(const Steps *base, Decision d)
{
    Tune *t = base->t;
    d.far = d.after > FAR * d.before;
    d.was = sum_taken(&d, base->ms);
    if (d.ntaken && d.was > WORTH * t->network_ms)
        vec_push(t->a, t->decision, t->ndecision, d);
}

/* Lines that make no plan, since it has no such value any more, are none to try.  What the database
 * does not know takes a plan: after the end none is made, *cut is true then. */
static ingot_status look_at(const Steps *base, Decision d, double end, bool *cut)
{
    const Known known = changes_known(base, &d);
    bool good = known == KNOWN;
    ingot_status status = INGOT_OK;
    if (known == NOT_KNOWN && (seconds_now() >= end || *base->t->stopped))
        *cut = true;
    else if (known == NOT_KNOWN)
        status = changes_find(base, &d, &good);
    if (status == INGOT_OK && good)
        add_decision(base, d);
    return status;
}

/* Does the plan's file speak of it already? */
static bool is_said(const Tune *t, const Alternative *x)
{
    const char *head = arena_printf(t->a, "%.*s %016llx ", (int)strcspn(x->line, " "), x->line,
                                    (unsigned long long)x->key);
    return t->t.values && strstr(t->t.values, head);
}

static ingot_status find_decisions(const Steps *base, double end)
{
    Tune *t = base->t;
    Alternative *of[2];
    const int n[2] = {plan_alternatives(t->a, t->plan, CLOSE, &of[0]),
                      plan_other_layouts(t->a, t->plan, &of[1])};
    double told = seconds_now();
    bool cut = false;
    ingot_status status = INGOT_OK;
    for (int i = 0; i < n[0] + n[1] && status == INGOT_OK; i++) {
        const bool layout = i >= n[0];
        const Alternative *x = layout ? &of[1][i - n[0]] : &of[0][i];
        const Decision d = {.what = words_of(t->a, x),
                            .line = x->line,
                            .about = x->key,
                            .cost = x->cost,
                            .layout = layout};
        if (!is_said(t, x))
            status = look_at(base, d, end, &cut);
        if (seconds_now() < told + TELL)
            continue;
        told = seconds_now();
        note("  decisions of the plan: %d of %d estimated the other way round", i + 1, n[0] + n[1]);
    }
    if (cut)
        note("  decisions of the plan: there was no time to estimate all %d", n[0] + n[1]);
    return status;
}

/* "together: Conv a: dense, not permute(0,2,3,1); Conv b: .." */
static const char *words_of_chain(const Tune *t, const char *lines)
{
    StrBuf sb = {0};
    sb_puts(&sb, "layouts together");
    for (int i = t->ndecided, n = 0; i < t->ndecision; i++)
        if (t->decision[i].layout && strstr(lines, t->decision[i].line))
            sb_printf(&sb, "%s%s", n++ ? "; " : ": ", t->decision[i].what);
    return sb_take(&sb, t->a);
}

static ingot_status add_chains(const Steps *base, double end)
{
    static const char blank[] = "\n\n";
    Tune *t = base->t;
    char *lines;
    bool cut = false;
    ingot_status status = find_chains(base, end, &lines);
    const int first = t->ndecision;
    for (char *at = lines; status == INGOT_OK && at && *at;) {
        char *stop = strstr(at, blank);
        if (!stop)
            break;
        stop[1] = 0;
        const Decision d = {.what = words_of_chain(t, at), .line = at, .about = 1};
        status = look_at(base, d, end, &cut);
        at = stop + strlen(blank);
    }
    for (int i = first; i < t->ndecision; i++)
        t->decision[i].about = (uint64_t)i; /* of many kernels */
    return status;
}

/* ---- in the network -------------------------------------------------------------------------- */

static bool meet(const Decision *a, const Decision *b)
{
    bool common = a->about == b->about;
    for (int i = 0; i < a->ntaken; i++)
        for (int j = 0; j < b->ntaken; j++)
            common |= a->taken[i] == b->taken[j];
    return common;
}

static char *lines_of(const Tune *t, Decision *const *d, int n)
{
    StrBuf sb = {0};
    for (int i = 0; i < n; i++)
        sb_puts(&sb, d[i]->line);
    return sb_take(&sb, t->a);
}

static bool puts_all(const Decision *d, const Decision *sum)
{
    for (int i = 0; i < d->nput; i++) {
        int j = 0;
        while (j < sum->nput && sum->put[j] != d->put[i])
            j++;
        if (j == sum->nput)
            return false;
    }
    return true;
}

/* How many of them, which are put first, change together what each of them changes. */
static int go_together(const Steps *base, const Steps *all, Decision **d, int n)
{
    Decision sum = {0};
    int taken = 0, put = 0, good = 0;
    find_changes(base, all, &sum);
    for (int i = 0; i < n; i++) {
        Decision *one = d[i];
        if (!puts_all(one, &sum))
            continue;
        taken += one->ntaken;
        put += one->nput;
        d[i] = d[good];
        d[good++] = one;
    }
    return good == n && (taken != sum.ntaken || put != sum.nput) ? 0 : good;
}

static double sum_put(const Decision *d, const Steps *of, const double *ms)
{
    double sum = 0;
    for (int i = 0; i < d->nput; i++)
        for (int j = 0; j < of->n; j++)
            sum += steps_id(of, j) == d->put[i] ? ms[j] : 0;
    return sum;
}

/* Two times of one thing: the noise. */
static double share_apart(const double *two)
{
    const double least = two[0] < two[1] ? two[0] : two[1];
    return least > 0 ? fabs(two[0] - two[1]) / least : 1;
}

/* Of all steps of two programs, which run in turns: the least of even and of odd ones. */
typedef struct {
    double *was[2], *is[2];
} Turns;

static Turns no_turns(Tune *t, int nwas, int nis)
{
    Turns of;
    for (int i = 0; i < 2; i++) {
        of.was[i] = NEWN(t->a, double, nwas + 1);
        of.is[i] = NEWN(t->a, double, nis + 1);
    }
    return of;
}

/* An even and an odd one more. */
static ingot_status run_turns(Tune *t, int nwas, const char *entry, int nis, Turns *of)
{
    const int lock = database_lock(t->d); /* tuners take turns at timing */
    bool good = true;
    for (int i = 0; i < 2 && good; i++)
        good = network_times(t, t->s.entry, of->was[i], nwas) &&
               network_times(t, entry, of->is[i], nis);
    database_unlock(t->d, lock);
    return good ? INGOT_OK : complain(INGOT_TOOL, "%s: the compiled model failed", t->o->model);
}

/* Times of it; whether further turns may show that it wins. */
static bool compare_turns(Decision *d, const Steps *all, const Turns *of)
{
    const double a[] = {sum_taken(d, of->was[0]), sum_taken(d, of->was[1])},
                 b[] = {sum_put(d, all, of->is[0]), sum_put(d, all, of->is[1])};
    d->was = fmin(a[0], a[1]);
    d->is = fmin(b[0], b[1]);
    d->noise = fmax(share_apart(a), share_apart(b));
    return d->is < d->was * (1 - GAIN / 2 + d->noise);
}

static ingot_status time_decisions(const Steps *base, const Steps *all, const char *entry,
                                   Decision *const *d, int n)
{
    Tune *t = base->t;
    Turns of = no_turns(t, base->n, all->n);
    ingot_status status = INGOT_OK;
    bool open = true;
    for (int turn = 0; turn < TURNS && open && status == INGOT_OK; turn++) {
        status = run_turns(t, base->n, entry, all->n, &of);
        open = false;
        for (int i = 0; i < n && status == INGOT_OK; i++)
            open |= compare_turns(d[i], all, &of);
    }
    for (int i = 0; i < n && status == INGOT_OK; i++)
        if (!database_keep_region(t->d, d[i]->key, d[i]->what, d[i]->was * 1e6, d[i]->is * 1e6,
                                  d[i]->noise))
            return complain(INGOT_IO, "%s", database_error(t->d));
    return status;
}

/* One network with as many of them as go together; *n: how many. */
static ingot_status try_some(const Steps *base, Decision **d, int *n)
{
    Tune *t = base->t;
    const char *file = decisions_file(t), *entry;
    ingot_status status = INGOT_OK;
    for (int i = 0; i < *n && status == INGOT_OK; i++)
        status = changes_complete(base, d[i]);
    for (int was = 0; was != *n && status == INGOT_OK;) {
        Plan *p = plan_with(t, lines_of(t, d, *n));
        if (!p)
            return ingot_context_status(t->m.c);
        const Steps all = steps_of(t, p);
        was = *n;
        if (was > 1) /* what several of them change is another kernel together */
            *n = go_together(base, &all, d, was);
        *n = *n ? *n : 1;
        if (was == *n)
            status = network_build(t, file, &entry);
        if (was == *n && status == INGOT_OK)
            status = time_decisions(base, &all, entry, d, *n);
        plan_free(p);
    }
    return status;
}

static bool is_timed(Tune *t, Decision *d)
{
    double was, is;
    if (d->is > 0 || !database_region(t->d, d->key, &was, &is, &d->noise))
        return d->is > 0;
    d->was = was * 1e-6;
    d->is = is * 1e-6;
    return true;
}

/* Which are to be timed, and do not meet; each region once. */
static int pick(Tune *t, Decision **out)
{
    int n = 0;
    for (int i = t->ndecided; i < t->ndecision; i++) {
        Decision *d = &t->decision[i];
        bool free = !d->far && !is_timed(t, d);
        for (int j = 0; j < n && free; j++)
            free = strcmp(out[j]->key, d->key) != 0 && !meet(out[j], d);
        if (free)
            out[n++] = d;
    }
    return n;
}

/* By the estimate. */
static int hopeful_first(const void *a, const void *b)
{
    const Decision *x = a, *y = b;
    const double p = x->before - x->after, q = y->before - y->after;
    return p != q ? (p < q) - (p > q) : strcmp(x->line, y->line);
}

static ingot_status time_all(const Steps *base, double end)
{
    Tune *t = base->t;
    Decision **now = NEWN(t->a, Decision *, t->ndecision + 1);
    double longest = 4 * t->profiling; /* of a slow network turns are what takes time */
    int done = 0, all = 0;
    for (int i = t->ndecided; i < t->ndecision; i++)
        all += !t->decision[i].far && !is_timed(t, &t->decision[i]);
    for (int n; (n = pick(t, now)) > 0 && t->o->budget > 0 && !*t->stopped;) {
        const double from = seconds_now();
        if (from + longest > end)
            break;
        const ingot_status status = try_some(base, now, &n);
        if (status != INGOT_OK)
            return status;
        done += n;
        longest = fmax(longest, seconds_now() - from);
        set_deadline(t);
        note("  decisions of the plan: %d of %d timed the other way round, %.0f s left", done, all,
             fmax(0, t->deadline - seconds_now()));
    }
    return INGOT_OK;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static int most_gained_first(const void *a, const void *b)
{
    const Decision *x = *(Decision *const *)a, *y = *(Decision *const *)b;
    const double p = x->was - x->is, q = y->was - y->is;
    return p != q ? (p < q) - (p > q) : strcmp(x->line, y->line);
}

static int winners(Tune *t, Decision **out)
{
    int n = 0, kept = 0;
    for (int i = t->ndecided; i < t->ndecision; i++) {
        Decision *d = &t->decision[i];
        d->won = is_timed(t, d) && d->is < d->was * (1 - fmax(GAIN, d->noise)) &&
                 d->was - d->is > WORTH * t->network_ms;
        if (d->won)
            out[n++] = d;
    }
    qsort(out, (size_t)n, sizeof *out, most_gained_first);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < kept; j++)
            out[i]->dropped |= meet(out[j], out[i]);
        if (!out[i]->dropped)
            out[kept++] = out[i];
    }
    return kept;
}

static double sum_of(const double *ms, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += ms[i];
    return sum;
}

/* Faster as a whole?  The sum of all steps, each at its best, tells a thousandth, which whole runs
 * do not on a machine that others use. */
static ingot_status compare_sums(Tune *t, const char *entry, int nstep, bool *faster)
{
    const int n = t->plan->nstep;
    Turns of = no_turns(t, n, nstep);
    ingot_status status = INGOT_OK;
    for (int i = 0; i < TURNS && status == INGOT_OK; i++)
        status = run_turns(t, n, entry, nstep, &of);
    if (status != INGOT_OK)
        return status;
    const double a[] = {sum_of(of.was[0], n), sum_of(of.was[1], n)},
                 b[] = {sum_of(of.is[0], nstep), sum_of(of.is[1], nstep)};
    const double was = fmin(a[0], a[1]), is = fmin(b[0], b[1]),
                 noise = fmax(share_apart(a), share_apart(b));
    *faster = is < was * (1 - fmax(WORTH, noise));
    note("  decisions of the plan: the steps take %.4g ms for %.4g ms, noise %.4f%s", is, was,
         noise, *faster ? "" : ": left as the compiler decided");
    return INGOT_OK;
}

/* Right, and faster? */
static ingot_status confirm(Tune *t, const char *lines, bool *good)
{
    const char *file = decisions_file(t);
    Options o = *t->o;
    Session s = t->s;
    Plan *p = plan_with(t, lines);
    if (!p)
        return ingot_context_status(t->m.c);
    const int nstep = p->nstep;
    plan_free(p);
    ingot_status status = network_build(t, file, &s.entry);
    o.compile.sched = file;
    o.compile.verbose = 0;
    s.o = &o;
    if (status == INGOT_OK)
        status = verify_beside_naive(&s, "naive");
    if (status == INGOT_OK)
        status = network_right(t, s.entry);
    return status == INGOT_OK ? compare_sums(t, s.entry, nstep, good) : status;
}

static const char *with_comments(const Tune *t, Decision *const *d, int n)
{
    StrBuf sb = {0};
    for (int i = 0; i < n; i++)
        sb_printf(&sb, "# %s: %.4g us for %.4g us, in the network\n%s", d[i]->what, d[i]->is * 1e3,
                  d[i]->was * 1e3, d[i]->line);
    return sb_take(&sb, t->a);
}

/* Whether the winners, if there are any, stand as a whole; what the database knows of it is not
 * timed again. */
static ingot_status take_winners(Tune *t, bool *took)
{
    static const char kept[] = "# decisions that stand", none[] = "# decisions that do not";
    Decision **won = NEWN(t->a, Decision *, t->ndecision + 1);
    const int n = winners(t, won);
    if (!n)
        return INGOT_OK;
    const char *lines = lines_of(t, won, n), *key = network_key(t, "decisions, ", lines),
               *known = network_known(t, key);
    const bool late = network_late(t);
    ingot_status status = INGOT_OK;
    *took = known && !strcmp(known, kept);
    if (!known && !late)
        status = confirm(t, lines, took);
    if (!known && status == INGOT_OK)
        status = network_keep(t, key, *took ? kept : none, !late);
    for (int i = 0; i < n; i++)
        won[i]->dropped = !*took;
    if (status != INGOT_OK || !*took)
        return status;
    return network_take(
        t, arena_printf(t->a, "%s%s", t->t.values ? t->t.values : "", with_comments(t, won, n)));
}

/* Of the rounds before, what was decided so is told at the end. */
static void forget_others(Tune *t)
{
    int n = 0;
    for (int i = 0; i < t->ndecision; i++)
        if (t->decision[i].won && !t->decision[i].dropped)
            t->decision[n++] = t->decision[i];
    t->ndecided = t->ndecision = n;
}

/* From the plan as it is now; *took: it became another one. */
static ingot_status search_round(Tune *t, double end, bool *took)
{
    Steps base = steps_of(t, t->plan);
    base.ms = NEWN(t->a, double, base.n + 1);
    forget_others(t);
    if (!network_times(t, t->s.entry, base.ms, base.n))
        return complain(INGOT_TOOL, "%s: the compiled model failed", t->o->model);
    ingot_status status = find_decisions(&base, end);
    const int n = t->ndecision - t->ndecided;
    if (status == INGOT_OK && n) {
        qsort(t->decision + t->ndecided, (size_t)n, sizeof *t->decision, hopeful_first);
        status = time_all(&base, end);
    }
    if (status == INGOT_OK && n)
        status = add_chains(&base, end);
    if (status == INGOT_OK && t->ndecision - t->ndecided > n)
        status = time_all(&base, end);
    return status == INGOT_OK ? take_winners(t, took) : status;
}

ingot_status network_decisions(Tune *t)
{
    const double began = seconds_now(), known = t->again ? 0 : ESTIMATING,
                 end = began + (t->o->budget > 0 ? SHARE * (t->deadline - began) : known);
    ingot_status status = INGOT_OK;
    bool took = true;
    for (int i = 0; i < ROUNDS && took && status == INGOT_OK; i++) {
        took = false;
        status = search_round(t, end, &took);
    }
    return status;
}

/* ---- --explain ------------------------------------------------------------------------------- */

void explain_decisions(const Tune *t)
{
    if (t->ndecision)
        printf("%d decisions of the plan, the other way round:\n", t->ndecision);
    for (int i = 0; i < t->ndecision; i++) {
        const Decision *d = &t->decision[i];
        printf("  %s\n    ", d->what);
        if (d->cost.apart > 0)
            printf("estimated: %.3g cycles apart, %.3g together; ", d->cost.apart,
                   d->cost.together);
        printf("its %d kernels: %.3g cycles, %d in their place: %.3g\n", d->ntaken, d->before,
               d->nput, d->after);
        if (d->far)
            printf("    not built: its kernels would take far longer\n");
        else if (d->is <= 0)
            printf("    not timed yet: the search goes on with more --budget\n");
        else
            printf(
                "    in the network %.4g us for %.4g us, noise %.3f: %s\n", d->is * 1e3,
                d->was * 1e3, d->noise,
                !d->won ? "it stays as the compiler decided"
                : d->dropped
                    ? "faster alone, but not together with the others, or not in the whole network"
                    : "decided so");
    }
}
