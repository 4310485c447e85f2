/* tune_ways.c - which kernel of several computes each step of a network on a GPU: timed where it
 * runs, among all others.
 *
 * In the place of driver_bench.c, in a bundle whose steps have several kernels each (Step.way):
 * ./model --bench SECONDS IN. Begins with the compiler's kernels. One group of equal steps after
 * the other, or several at once (ways_device.h: AT_ONCE), takes another kernel, and the network
 * with these and that without run in turns: what is faster in most turns stays, and the next one is
 * tried beside it. So launches that overlap, and what is in the caches, are as they will be.  What
 * has more of the network's time is tried in more ways before the others are tried in a second;
 * where a step has no time of its own (not BY_STEP), all groups count the same.
 *
 * What is particular to a driver is in ways_device.h, which is ways_cuda.h or ways_opencl.h.
 *
 * times.json, in the folder where it runs, gets a line before and after each: a run that was cut
 * off, or ended by a kernel that is at fault, goes on behind what is there.  A line that was cut
 * off counts as none.
 *
 *     {"try": [sweep, group, way]}
 *     {"done": [sweep, group, way], "verdict": "runs"}     by itself, to its end (BY_STEP): it is
 *                                                          not timed yet
 *     {"done": [sweep, group, way], "verdict": "taken", "us": 240.1, "was_us": 242.8}
 *     {"network_us": 236.0, "was_us": 249.2, "low": 0.0412, "turns": 15}
 *
 * Verdicts are "taken", "left" (not faster), "slow" (so much so by itself that its results were not
 * looked at), "wrong" and "failed".
 * us: of a run of the network, or (BY_STEP) of the group's steps in it; low: what three of four
 * turns gain at least, as a share. */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#define driver_bench driver_bench_alone
#include "driver_bench.h"
#undef driver_bench

#include "../model_igrt.h"

#include "../model.h"
#include "../model_kernels.h"
#include "../ways.h" /* STEPS, GROUPS, step_group[], group_ways[], way_kernel[], MOST_WAYS, TOLERANCE */

#include <math.h>
#include <stdarg.h>
#include <unistd.h>

#include "ways_device.h"
#include "ways_results.h"

enum { SWEEPS = 2, SHORT_TURNS = 3, LAST_TURNS = 15, AGAIN = 3 };
/* Times that a way ran and was not timed, since the process ended: once maybe by another one of its
 * set, then by itself. */
enum { MOST_BROKEN = 2 };
static const double turn_us = 1000; /* what takes less is not judged by one run */
#define TOO_SLOW 1.5

typedef struct {
    int way[GROUPS]; /* that run; below zero: none does */
    Record record;
} NetworkForm;

/* A group beside another form of the network: medians; of what is gained in a turn, as a share, the
 * lower quartile and the median. */
typedef struct {
    double us, was, low, mid;
} GroupGain;

typedef struct {
    int group, way;
    int open; /* it may still win */
    GroupGain b;
    int steps; /* of the group, for each that was timed */
} Try;

typedef struct {
    DriverSession *s;
    model_ctx *ctx;
    void *device_in, *device_out; /* the structs, with memory on the device */
    void **wanted;                /* outputs of the compiler's kernels */
    NetworkForm now;              /* what runs; its record is the context's */
    const char *only;             /* by group: its steps are all that run; NULL: every step does */
    int one;                      /* then: of each group one step, since a run takes long */
    int taken[GROUPS];            /* ways */
    double ratio[GROUPS]
                [MOST_WAYS]; /* to what was there then; by step: to the compiler's; 0: not known */
    char tried[SWEEPS][GROUPS][MOST_WAYS], broken[GROUPS][MOST_WAYS];
    int ntried[GROUPS];     /* in the first sweep */
    double share[GROUPS];   /* of the network's time; of equal numbers all have as much */
    double us;              /* of a run */
    double step_us[GROUPS]; /* of a group's steps, by what the model tells of them */
    double base_us[GROUPS]; /* the same of what was taken so far */
    FILE *log;
} Chain;

extern int model_way[];
int driver_bench(DriverSession *);

/* ---- the clock ------------------------------------------------------------------------------- */

/* Where $INGOT_CLOCK says "steps" (docs/tune.md), what is tried is counted in the place of seconds,
 * and times are made up from the names of ways: what is found is the same on every machine, however
 * busy. */
enum { OF_A_TRY = 100000000 /* nanoseconds */, PATIENT = 40 };
static uint64_t counted;

static int counts_steps(void)
{
    const char *said = getenv("INGOT_CLOCK");
    return said && !strcmp(said, "steps");
}

static uint64_t ways_now(void)
{
    return counts_steps() ? counted : driver_now(NULL);
}

/* 8 to 15 microseconds for each step that runs, by a hash (FNV-1a) of its group's number and its
 * way. */
static double made_up_us(int step)
{
    const unsigned part[] = {(unsigned)step_group[step], (unsigned)model_way[step], 0};
    uint32_t h = 2166136261u;
    for (int i = 0; i < 3; i++)
        h = (h ^ part[i]) * 16777619u;
    return step_group[step] < 0 || model_way[step] < 0 ? 0 : 8 + (h >> 16) % 8;
}

static void tell(Chain *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(c->log, format, args);
    va_end(args);
    fflush(c->log);
}

static void set_ways(const Chain *c)
{
    char ran[GROUPS] = {0};
    for (int i = 0; i < STEPS; i++) {
        const int g = step_group[i];
        const int out = g >= 0 && c->only && (!c->only[g] || (c->one && ran[g]));
        model_way[i] = g < 0 ? 0 : out ? -1 : c->now.way[g];
        if (g >= 0)
            ran[g] = 1;
    }
}

static int count_steps(int g)
{
    int n = 0;
    for (int i = 0; i < STEPS; i++)
        n += step_group[i] == g;
    return n;
}

static void note_done(Chain *c, int sweep, int g, int w, const char *verdict, double us, double was)
{
    if (us > 0 && was > 0)
        c->ratio[g][w] = us / was * (BY_STEP ? c->ratio[g][c->taken[g]] : 1);
    if (!strcmp(verdict, "taken"))
        c->taken[g] = w;
    c->ntried[g] += !sweep && !c->tried[sweep][g][w];
    c->tried[sweep][g][w] = 1;
}

/* It ran by itself: unless a line says what came of it, the process ended before it was timed, and
 * it is tried again. */
static void note_runs(Chain *c, int sweep, int g, int w)
{
    if (++c->broken[g][w] >= MOST_BROKEN || !c->tried[sweep][g][w])
        return;
    c->tried[sweep][g][w] = 0;
    c->ntried[g] -= !sweep;
}

/* What there is already; true: the last line was cut off. */
static int read_log(Chain *c)
{
    FILE *f = fopen("times.json", "r");
    char line[512], verdict[32];
    int k, g, w, cut_off = 0;
    double us, was;
    while (f && fgets(line, sizeof line, f)) {
        int end = 0;
        cut_off = !strchr(line, '\n');
        const int n = sscanf(
            line,
            "{\"done\": [%d, %d, %d], \"verdict\": \"%31[a-z]\", \"us\": %lf, \"was_us\": %lf}%n",
            &k, &g, &w, verdict, &us, &was, &end);
        const int done = n == 6 && end, runs = n == 4 && !strcmp(verdict, "runs");
        if (!done && !runs && sscanf(line, "{\"try\": [%d, %d, %d]", &k, &g, &w) != 3)
            continue;
        if (k < 0 || k >= SWEEPS || g < 0 || g >= GROUPS || w < 0 || w >= group_ways[g])
            continue;
        if (done)
            c->broken[g][w] = 0;
        if (runs)
            note_runs(c, k, g, w);
        else
            note_done(c, k, g, w, done ? verdict : "", done ? us : 0, done ? was : 0);
    }
    if (f)
        fclose(f);
    return cut_off;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* The process is ended unless the next of these comes before a kernel that hangs would. */
static void watch(const Chain *c)
{
    alarm((HANGS + (unsigned)(c->us * 1e-6 * RUNS)) * (counts_steps() ? PATIENT : 1));
}

static int run_on_device(Chain *c)
{
    return c->s->model->run(c->s->ctx, c->device_in, c->device_out) == IGRT_OK;
}

static int wait_for(Chain *c)
{
    return c->s->model->wait(c->s->ctx) == IGRT_OK;
}

static void note_step(void *user, int step, const char *name, uint64_t nanoseconds)
{
    (void)name;
    Chain *c = user;
    if (step >= 0 && step < STEPS && step_group[step] >= 0)
        c->step_us[step_group[step]] += (double)nanoseconds * 1e-3;
}

static double make_up_times(Chain *c)
{
    double all = 0;
    memset(c->step_us, 0, sizeof c->step_us);
    for (int i = 0; i < STEPS; i++) {
        all += made_up_us(i);
        if (step_group[i] >= 0)
            c->step_us[step_group[i]] += made_up_us(i);
    }
    return all;
}

/* Microseconds of a run, of some that follow each other; < 0: it failed. by_step: what each group
 * has of it goes to step_us too. */
static double time_runs(Chain *c, int runs, int by_step)
{
    const void *user = c->ctx->config.user;
    memset(c->step_us, 0, sizeof c->step_us);
    if (by_step) {
        c->ctx->config.user = c;
        c->ctx->config.clock = driver_now;
        c->ctx->config.profile = note_step;
    }
    watch(c);
    int good = 1;
    const uint64_t begin = ways_now();
    for (int i = 0; i < runs && good; i++)
        good = run_on_device(c);
    good = good && wait_for(c);
    double us = (double)(ways_now() - begin) * 1e-3 / runs;
    if (by_step) {
        c->ctx->config.profile = NULL;
        c->ctx->config.user = (void *)(uintptr_t)user;
    }
    for (int i = 0; i < GROUPS; i++)
        c->step_us[i] /= runs;
    if (counts_steps())
        us = make_up_times(c);
    return good ? us : -1;
}

static void swap_forms(Chain *c, NetworkForm *other)
{
    const NetworkForm mine = c->now;
    memcpy(c->now.way, other->way, sizeof c->now.way);
    memcpy(other->way, mine.way, sizeof other->way);
    device_swap(c->ctx, &other->record);
    set_ways(c);
}

/* Records the network by these ways, and runs it where that takes a run; what ran before goes to
 * *was. */
static int record_ways(Chain *c, const int *ways, NetworkForm *was)
{
    memset(was, 0, sizeof *was);
    memcpy(was->way, ways, sizeof was->way);
    swap_forms(c, was);
    device_stale(c->ctx, 1);
    watch(c);
    int good = 1;
    for (int i = 0; i < RECORD_RUNS && good; i++)
        good = run_on_device(c);
    good = good && wait_for(c);
    device_stale(c->ctx, 0);
    return good;
}

/* Runs with the host's memory: outputs come back. */
static int run_on_host(Chain *c)
{
    c->ctx->config.flags &= ~(unsigned)IGRT_ON_DEVICE;
    const igrt_status status = c->s->model->run(c->s->ctx, c->s->inputs, c->s->outputs);
    c->ctx->config.flags |= IGRT_ON_DEVICE;
    return status == IGRT_OK;
}

/* Beside the compiler's kernels. */
static int is_right(Chain *c)
{
    return run_on_host(c) && results_agree(c->s, c->wanted);
}

/* ---- one beside the other -------------------------------------------------------------------- */

static double sorted_at(const double *x, int n, int at)
{
    double sorted[LAST_TURNS];
    memcpy(sorted, x, (size_t)n * sizeof *x);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_times);
    return sorted[at];
}

static GroupGain beside_of(const double *us, const double *base, int n)
{
    double gained[LAST_TURNS];
    for (int i = 0; i < n; i++)
        gained[i] = 1 - us[i] / base[i];
    return (GroupGain){sorted_at(us, n, n / 2), sorted_at(base, n, n / 2),
                       sorted_at(gained, n, n / 4), sorted_at(gained, n, n / 2)};
}

/* After few turns: nothing is left that may win, or all of it wins by so much that more turns tell
 * nothing new. */
static int is_decided(Try *t, int n)
{
    int open = 0, clear = BY_STEP;
    for (int i = 0; i < n; i++) {
        t[i].open = t[i].open && t[i].b.mid >= -lost;
        open += t[i].open;
        clear &= !t[i].open || t[i].b.low > 5 * lost;
    }
    return !open || clear;
}

static int count_runs(const Chain *c, double us)
{
    const int runs = (int)(run_us / (us > 1 ? us : 1)), least = c->us > slow_us ? 1 : LEAST_RUNS;
    return counts_steps() || runs < least ? least : runs > RUNS ? RUNS : runs;
}

/* What runs, and *was, in turns: at least `few` of them, and `most` unless it is clear before.
 * False: a run failed. by_step: by the times of each one's group, else by that of the whole. */
static int in_turns(Chain *c, NetworkForm *was, int few, int most, int by_step, Try *t, int n)
{
    double us[AT_ONCE][LAST_TURNS], base[AT_ONCE][LAST_TURNS], about = c->us;
    for (int i = 0; i < n; i++)
        t[i].open = 1;
    for (int turn = 0; turn < most; turn++) {
        const int runs = count_runs(c, about);
        for (int side = 0; side < 2; side++) {
            double(*to)[LAST_TURNS] = side ? us : base;
            if (!side)
                swap_forms(c, was);
            const double all = time_runs(c, runs, by_step);
            if (!side)
                swap_forms(c, was);
            if (all <= 0)
                return 0;
            about = by_step ? all : about;
            for (int i = 0; i < n; i++)
                to[i][turn] = by_step ? c->step_us[t[i].group] : all;
        }
        for (int i = 0; i < n; i++)
            if (t[i].open)
                t[i].b = beside_of(us[i], base[i], turn + 1);
        if (turn + 1 == few && is_decided(t, n))
            break;
    }
    return 1;
}

/* ---- a few at once --------------------------------------------------------------------------- */

static const char *verdict_of(const Try *t)
{
    return t->b.us > 0 && t->b.low > 0 && t->b.mid > gain ? "taken" : "left";
}

static void tell_verdict(Chain *c, int sweep, const Try *t, const char *verdict)
{
    if (!strcmp(verdict, "taken") && BY_STEP) {
        const double saved = (t->b.was - t->b.us) * t->steps;
        c->base_us[t->group] = t->b.us * t->steps;
        c->share[t->group] *= t->b.us / t->b.was;
        c->us -= saved < 0.9 * c->us ? saved : 0.9 * c->us;
    }
    note_done(c, sweep, t->group, t->way, verdict, t->b.us, t->b.was);
    tell(c, "{\"done\": [%d, %d, %d], \"verdict\": \"%s\", \"us\": %.3f, \"was_us\": %.3f}\n",
         sweep, t->group, t->way, verdict, t->b.us, t->b.was);
}

/* The network with all of these runs, and gives what the compiler's gives. What ran before is in
 * *was then, whatever came of it. */
static const char *form_of(Chain *c, const Try *t, int n, NetworkForm *was)
{
    int ways[GROUPS];
    memcpy(ways, c->taken, sizeof ways);
    for (int i = 0; i < n; i++)
        ways[t[i].group] = t[i].way;
    if (!record_ways(c, ways, was))
        return "failed";
    watch(c);
    return is_right(c) ? NULL : "wrong";
}

/* What ran before runs again. False: the device does not do any more. */
static int run_form_before(Chain *c, NetworkForm *was, int failed)
{
    swap_forms(c, was);
    device_free(c->ctx, &was->record);
    return !failed || (run_on_device(c) && wait_for(c));
}

/* A step's kernel is there, and, where steps have times of their own, runs by itself to its end:
 * NULL. Its results are looked at later, together with those of others, unless it is far too
 * slow. */
static const char *fault_alone(Chain *c, Try *t)
{
    char only[GROUPS] = {0};
    const int was = c->now.way[t->group];
    only[t->group] = 1;
    watch(c);
    if (!device_load(c->ctx, way_kernel[t->group][t->way]))
        return "failed";
    if (!BY_STEP)
        return NULL;
    c->only = only;
    c->now.way[t->group] = t->way;
    set_ways(c);
    t->steps = c->one ? count_steps(t->group) : 1;
    const double base = c->base_us[t->group] / t->steps;
    int good = run_on_device(c) && wait_for(c), slow = 1;
    double us = INFINITY; /* the least of a few runs: others may have had the device in one */
    for (int i = 0; i < SHORT_TURNS && good && slow; i++) {
        good = time_runs(c, 1, 1) > 0;
        us = c->step_us[t->group] < us ? c->step_us[t->group] : us;
        slow = us >= TOO_SLOW * base && us >= base + turn_us;
    }
    c->only = NULL;
    c->now.way[t->group] = was;
    set_ways(c);
    if (!good || !slow)
        return good ? NULL : "failed";
    t->b = (GroupGain){.us = us, .was = base};
    return "slow";
}

/* False: the device does not do any more. */
static int try_all(Chain *c, int sweep, Try *t, int n)
{
    char only[GROUPS] = {0};
    NetworkForm was;
    int won = 0;
    const char *fault = form_of(c, t, n, &was);
    for (int i = 0; i < n && BY_STEP && !sweep; i++)
        only[t[i].group] = 1;
    c->only = BY_STEP && !sweep ? only : NULL;
    for (int i = 0; i < n; i++)
        t[i].steps = c->only && c->one ? count_steps(t[i].group) : 1;
    set_ways(c);
    if (!fault && !in_turns(c, &was, SHORT_TURNS, c->us > slow_us ? 7 : TURNS, BY_STEP, t, n))
        fault = "failed";
    c->only = NULL;
    if (fault && n > 1) { /* which of them? */
        int good = run_form_before(c, &was, fault[0] == 'f');
        for (int i = 0; i < n && good; i++)
            good = try_all(c, sweep, &t[i], 1);
        return good;
    }
    for (int i = 0; i < n && !fault; i++)
        won += verdict_of(&t[i])[0] == 't';
    if (won == n && !fault) { /* then this is what runs from now on */
        device_free(c->ctx, &was.record);
        if (!BY_STEP)
            c->us = t->b.us;
    } else if (!run_form_before(c, &was, fault && fault[0] == 'f')) {
        return 0;
    }
    for (int i = 0; i < n; i++)
        tell_verdict(c, sweep, &t[i], fault ? fault : verdict_of(&t[i]));
    memcpy(c->now.way, c->taken, sizeof c->now.way);
    set_ways(c);
    return 1;
}

/* False: the device does not do any more. */
static int try_set(Chain *c, int sweep, Try *t, int n, uint64_t deadline)
{
    int left = 0, good = 1;
    c->one = BY_STEP && c->us > slow_us;
    for (int i = 0; i < n && good && (!left || ways_now() < deadline); i++) {
        tell(c, "{\"try\": [%d, %d, %d]}\n", sweep, t[i].group, t[i].way);
        counted += OF_A_TRY;
        const char *fault = t[i].way ? fault_alone(c, &t[i]) : NULL;
        if (!fault) {
            if (BY_STEP)
                tell(c, "{\"done\": [%d, %d, %d], \"verdict\": \"runs\"}\n", sweep, t[i].group,
                     t[i].way);
            t[left++] = t[i];
            continue;
        }
        tell_verdict(c, sweep, &t[i], fault);
        if (fault[0] == 'f')
            good = run_on_device(c) && wait_for(c);
    }
    good = good && (!left || try_all(c, sweep, t, left));
    alarm(0);
    return good;
}

/* ---- which ----------------------------------------------------------------------------------- */

/* Of those that were close, once more beside what the others have become; and the compiler's. */
static int is_again(const Chain *c, int g, int w)
{
    const double beside = BY_STEP ? c->ratio[g][c->taken[g]] : 1;
    int better = 0;
    if (w == c->taken[g])
        return 0;
    if (!w)
        return 1;
    for (int i = 1; i < group_ways[g]; i++)
        better += i != c->taken[g] && c->ratio[g][i] > 0 && c->ratio[g][i] < c->ratio[g][w];
    return c->ratio[g][w] > 0 && c->ratio[g][w] < beside * (1 + 2 * lost) && better < AGAIN;
}

static int is_in(const Try *t, int n, int g)
{
    for (int i = 0; i < n; i++)
        if (t[i].group == g)
            return 1;
    return 0;
}

/* Of each group the first way that was not tried; groups by what they have of the network for each
 * way that was (D'Hondt). One that ran when the process ended is tried alone: so the others of a
 * set are not lost by one that is at fault. */
static int next_new(const Chain *c, Try *t)
{
    int n = 0;
    for (; n < AT_ONCE; n++) {
        double most = 0;
        Try best = {.group = -1};
        for (int g = 0; g < GROUPS; g++) {
            int w = 1;
            while (w < group_ways[g] && c->tried[0][g][w])
                w++;
            const double hope = c->share[g] / (c->ntried[g] + (is_in(t, n, g) ? 2 : 1));
            if (w < group_ways[g] && c->share[g] >= least_share && hope > most * (1 + 1e-9)) {
                most = hope;
                best = (Try){.group = g, .way = w};
            }
        }
        if (best.group < 0 ||
            is_in(t, n, best.group)) /* its second way is worth more than another's first */
            break;
        if (n && c->broken[best.group][best.way])
            break;
        t[n] = best;
        if (c->broken[best.group][best.way])
            return 1;
    }
    return n;
}

static int next_again(const Chain *c, Try *t)
{
    int n = 0;
    for (int w = 0; w < MOST_WAYS; w++)
        for (int g = 0; g < GROUPS && n < AT_ONCE; g++)
            if (w < group_ways[g] && !c->tried[1][g][w] && is_again(c, g, w) && !is_in(t, n, g) &&
                !(n && c->broken[g][w])) {
                t[n++] = (Try){.group = g, .way = w};
                if (c->broken[g][w])
                    return n;
            }
    return n;
}

static int search(Chain *c, uint64_t deadline)
{
    Try t[AT_ONCE];
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int n; (n = sweep ? next_again(c, t) : next_new(c, t)) > 0;) {
            if (ways_now() > deadline)
                return IGRT_EXIT_OK;
            if (!try_set(c, sweep, t, n, deadline))
                return driver_fail(IGRT_EXIT_MODEL, "the device failed with way %d of group %d",
                                   t->way, t->group);
        }
    return IGRT_EXIT_OK;
}

/* All that was taken beside the compiler's, in turns. */
static int time_all_taken(Chain *c)
{
    static const int none[GROUPS];
    Try all = {.open = 1};
    NetworkForm was;
    const int turns = c->us > slow_us ? 7 : LAST_TURNS;
    if (BY_STEP && !memcmp(c->taken, none, sizeof none))
        return IGRT_EXIT_OK;
    if (!record_ways(c, none, &was))
        return driver_fail(IGRT_EXIT_MODEL, "the network does not run any more");
    swap_forms(c, &was);
    const int good = in_turns(c, &was, BY_STEP ? SHORT_TURNS : turns, turns, 0, &all, 1);
    alarm(0);
    device_free(c->ctx, &was.record);
    if (!good)
        return driver_fail(IGRT_EXIT_MODEL, "the network does not run any more");
    tell(c, "{\"network_us\": %.3f, \"was_us\": %.3f, \"low\": %.4f, \"turns\": %d}\n", all.b.us,
         all.b.was, all.b.low, turns);
    return IGRT_EXIT_OK;
}

/* ---- begin ----------------------------------------------------------------------------------- */

/* Structs like the driver's, with memory on the device: inputs are there. */
static int make_device_io(Chain *c)
{
    DriverSession *s = c->s;
    const igrt_model *m = s->model;
    c->device_in = calloc(1, m->inputs_bytes);
    c->device_out = calloc(1, m->outputs_bytes);
    if (!c->device_in || !c->device_out)
        return driver_fail(IGRT_EXIT_MEMORY, "out of memory");
    memcpy(c->device_in, s->inputs, m->inputs_bytes);
    memcpy(c->device_out, s->outputs, m->outputs_bytes);
    for (int i = 0; i < m->n_inputs + m->n_outputs; i++) {
        const int input = i < m->n_inputs;
        const igrt_io *io = input ? &m->inputs[i] : &m->outputs[i - m->n_inputs];
        void *base = input ? c->device_in : c->device_out, *host = driver_pointer(base, io),
             *place = NULL;
        const size_t bytes = npy_count(io->max_dims, io->rank) * igrt_dtype_bytes(io->dtype);
        if (!host)
            continue;
        if (m->memory(s->ctx, bytes ? bytes : 1, input ? host : NULL, &place) != IGRT_OK)
            return driver_fail(IGRT_EXIT_MODEL, "memory on the device");
        driver_set_pointer(base, io, place);
    }
    return IGRT_EXIT_OK;
}

/* What a run takes, and what each group has of it. */
static int take_shares(Chain *c)
{
    double all = 0;
    watch(c);
    if (!run_on_device(c) ||
        !wait_for(c)) /* what the driver does at the first run counts for nobody */
        return 0;
    c->us = time_runs(c, 1, BY_STEP);
    if (c->us > 0 && c->us < slow_us && time_runs(c, 2 * SHORT_TURNS, BY_STEP) > 0) {
        memcpy(c->base_us, c->step_us, sizeof c->base_us);
        c->us = time_runs(c, 10, 0);
    } else {
        memcpy(c->base_us, c->step_us, sizeof c->base_us);
    }
    for (int g = 0; g < GROUPS; g++)
        all += c->base_us[g];
    for (int g = 0; g < GROUPS; g++)
        c->share[g] = BY_STEP ? c->base_us[g] / (all > 0 ? all : 1) : 1;
    alarm(0);
    return c->us > 0;
}

/* What was taken in runs before is built again. */
static int load_taken(Chain *c)
{
    for (int g = 0; g < GROUPS; g++)
        if (c->taken[g] && !device_load(c->ctx, way_kernel[g][c->taken[g]]))
            return 0;
    return 1;
}

int driver_bench(DriverSession *s)
{
    static Chain chain;
    Chain *c = &chain;
    NetworkForm was;
    const uint64_t deadline = ways_now() + (uint64_t)(s->options->seconds * 1e9);
    *c = (Chain){.s = s, .ctx = s->ctx};
    for (int g = 0; g < GROUPS; g++)
        c->ratio[g][0] = BY_STEP;
    const int cut_off = read_log(c);
    c->log = fopen("times.json", "a");
    if (!c->log)
        return driver_fail(IGRT_EXIT_OUTPUT, "times.json cannot be written");
    if (cut_off)
        tell(c, "\n");
    int status = run_on_host(c) ? keep_results(s, &c->wanted) : driver_fail(IGRT_EXIT_MODEL, "run");
    if (status == IGRT_EXIT_OK)
        status = make_device_io(c);
    if (status != IGRT_EXIT_OK)
        return status;
    s->config.flags |= IGRT_ON_DEVICE;
    if (!load_taken(c) || !record_ways(c, c->taken, &was))
        return driver_fail(IGRT_EXIT_MODEL, "run on the device");
    device_free(c->ctx, &was.record);
    if (!take_shares(c))
        return driver_fail(IGRT_EXIT_MODEL, "run on the device");
    const double last_s = 2 * SHORT_TURNS * c->us * 1e-6, most_s = s->options->seconds / 3;
    status = search(c, deadline - (uint64_t)((last_s < most_s ? last_s : most_s) * 1e9));
    if (status == IGRT_EXIT_OK)
        status = time_all_taken(c);
    fclose(c->log);
    return status;
}
