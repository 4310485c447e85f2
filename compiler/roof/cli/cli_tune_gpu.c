/* cli_tune_gpu.c - `ingot tune` for a GPU: blocks of contractions are tried in the network.
 *
 * What a kernel takes by itself tells little where it runs for microseconds between others, and a program of many candidates is
 * dear to build.  So the network is built once for each place in the order of the estimate, with all of its contractions by the block
 * that has this place (Target.nth), and every step is timed by the device.  Each kernel takes the block that was the fastest; what
 * does not stay faster beside the network as it is keeps the compiler's choice, and the network has to be faster as a whole. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_tune.h"
#include "inspect.h"
#include "kernel/heuristic_mma.h"

enum { PLANS = 1 + MMA_MOST_NTH + WGMMA_MOST_NTH, TURNS = 2, CONFIRMED = 4 };
#define GAIN 0.02  /* of what the kernel takes: less is noise */
#define STAYS 0.01 /* beside the network as it is */

/* Steps that one entry of the file speaks of. */
typedef struct {
    const Choice *choice;
    int *step, nstep;
    int best;   /* of the plans */
    double was; /* us of all steps, by the compiler's choice, */
    double is;  /* and by the best */
} Group;

typedef struct {
    Tune *t;
    Model model[PLANS]; /* each plan has a graph of its own */
    Plan *plan[PLANS];
    Step **step[PLANS]; /* by number */
    const char *entry[PLANS];
    double *ms[PLANS];
    Group *group;
    int ngroup, n; /* steps */
} Blocks;

static bool tells(const Choice *a, const Choice *b)
{
    return a->key == b->key && a->copy == b->copy && a->copy_arg == b->copy_arg;
}

static void find_groups(Blocks *b)
{
    Arena *a = b->t->a;
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[0][i];
        int at = 0;
        if (!s || s->kind != STEP_KERNEL || !s->kernel->choice)
            continue;
        while (at < b->ngroup && !tells(b->group[at].choice, s->choice))
            at++;
        if (at == b->ngroup) {
            Group g = {.choice = s->choice};
            vec_push(a, b->group, b->ngroup, g);
        }
        vec_push(a, b->group[at].step, b->group[at].nstep, i);
    }
}

static void print_group(StrBuf *sb, const Blocks *b, const Group *g, int plan)
{
    const Step *s = b->step[plan][g->step[0]];
    sched_print_step(sb, b->plan[plan], s, false, s->kernel->nopt, s->kernel->opts, NULL);
}

/* The file by which each group is built as in its best plan; only: those that differ, with what was gained. */
static void print_file(StrBuf *sb, const Blocks *b, bool only)
{
    sb_printf(sb, "sched 2\ntarget %s\n", b->t->section);
    if (only && b->t->machine.cpu)
        sb_printf(sb, "# tuned on %s\n", b->t->machine.cpu);
    for (int i = 0; i < b->ngroup; i++) {
        const Group *g = &b->group[i];
        if (only && !g->best)
            continue;
        if (only)
            sb_printf(sb, "# %s: %.4g us for %.4g us, in the network\n",
                      b->step[0][g->step[0]]->name, g->is * 1e3 / g->nstep,
                      g->was * 1e3 / g->nstep);
        print_group(sb, b, g, g->best);
    }
}

static ingot_status write_plan(const Blocks *b, const char *file, bool only)
{
    StrBuf sb = {0};
    print_file(&sb, b, only);
    ingot_status status = network_write(file, &sb);
    sb_free(&sb);
    return status;
}

static const char *plan_file(const Blocks *b, int i)
{
    return arena_printf(b->t->a, "%s/%d.sched", b->t->dir, i);
}

static bool same_text(Arena *a, const char *x, const char *y)
{
    const char *s = read_text(a, x), *t = read_text(a, y);
    return s && t && !strcmp(s, t);
}

/* A plan for each place in the order, and the file that makes the program of it; the same one twice is none. */
static ingot_status make_plans(Blocks *b)
{
    Tune *t = b->t;
    ingot_options o = t->o->compile;
    o.verbose = 0;
    for (int i = 0; i < PLANS; i++) {
        ingot_status status = model_open(&b->model[i], t->o, true);
        if (status == INGOT_OK)
            status = model_build(&b->model[i], t->o, t->s.in, t->s.bound);
        b->plan[i] = status == INGOT_OK ? plan_make_nth(b->model[i].c, &o, i) : NULL;
        if (!b->plan[i])
            return status == INGOT_OK ? ingot_context_status(b->model[i].c) : status;
        b->step[i] = plan_steps(b->plan[i], t->a);
        if (!i) {
            b->n = b->plan[0]->nstep;
            find_groups(b);
        }
        for (int j = 0; j < b->ngroup; j++)
            b->group[j].best = i;
        bool same = b->plan[i]->nstep != b->n;
        status = write_plan(b, plan_file(b, i), false);
        if (status != INGOT_OK)
            return status;
        for (int j = 0; j < i && !same; j++)
            same = b->plan[j] && same_text(t->a, plan_file(b, i), plan_file(b, j));
        if (same) {
            plan_free(b->plan[i]);
            b->plan[i] = NULL;
        }
    }
    return INGOT_OK;
}

/* On all cores: processes of their own fill the cache. */
static void build_ahead(const Blocks *b)
{
    int running = 0, most = cores();
    for (int i = 1; i < PLANS; i++) {
        if (!b->plan[i])
            continue;
        if (running == most && wait(NULL) > 0)
            running--;
        const pid_t child = fork();
        const char *entry;
        if (!child)
            _exit(network_build(b->t, plan_file(b, i), &entry) == INGOT_OK ? 0 : 1);
        running += child > 0;
    }
    while (running > 0 && wait(NULL) > 0)
        running--;
}

static ingot_status build_all(Blocks *b)
{
    build_ahead(b);
    b->entry[0] = b->t->s.entry;
    for (int i = 1; i < PLANS; i++)
        if (b->plan[i] && network_build(b->t, plan_file(b, i), &b->entry[i]) != INGOT_OK)
            b->entry[i] = NULL; /* a block that its compiler refuses is none */
    return INGOT_OK;
}

static double sum_of(const Group *g, const double *ms)
{
    double sum = 0;
    for (int i = 0; i < g->nstep; i++)
        sum += ms[g->step[i]];
    return sum;
}

static ingot_status time_all(Blocks *b)
{
    Tune *t = b->t;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < PLANS && (!turn || seconds_now() < t->deadline); i++) {
            if (!b->entry[i])
                continue;
            if (!b->ms[i])
                b->ms[i] = NEWN(t->a, double, b->n + 1);
            if (network_times(t, b->entry[i], b->ms[i], b->n))
                continue;
            if (!i)
                return complain(INGOT_TOOL, "%s: the compiled model failed", t->o->model);
            b->entry[i] = NULL;
            b->ms[i] = NULL;
        }
    return INGOT_OK;
}

/* In a line: time and opts. */
static void tell(const Blocks *b, const Group *g, int plan)
{
    StrBuf sb = {0};
    print_group(&sb, b, g, plan);
    for (char *at = sb.data; at && *at; at++)
        *at = *at == '\n' ? ';' : *at;
    say("  %s %d %.4g us: %s", b->step[plan][g->step[0]]->name, plan,
        sum_of(g, b->ms[plan]) * 1e3 / g->nstep, sb.data);
    sb_free(&sb);
}

static void choose(Blocks *b)
{
    for (int i = 0; i < b->ngroup; i++) {
        Group *g = &b->group[i];
        g->was = g->is = sum_of(g, b->ms[0]);
        g->best = 0;
        for (int j = 0; j < PLANS; j++) {
            if (!b->ms[j])
                continue;
            if (b->t->o->compile.verbose)
                tell(b, g, j);
            const double took = sum_of(g, b->ms[j]);
            if (took < g->is && took < g->was * (1 - GAIN)) {
                g->is = took;
                g->best = j;
            }
        }
    }
}

static int winners(const Blocks *b)
{
    int n = 0;
    for (int i = 0; i < b->ngroup; i++)
        n += b->group[i].best > 0;
    return n;
}

/* Beside the network as it is, in turns. */
static ingot_status drop_losers(Blocks *b, const char *entry)
{
    Tune *t = b->t;
    double *was = NEWN(t->a, double, b->n + 1), *is = NEWN(t->a, double, b->n + 1);
    for (int i = 0; i < CONFIRMED; i++)
        if (!network_times(t, t->s.entry, was, b->n) || !network_times(t, entry, is, b->n))
            return complain(INGOT_TOOL, "%s: the tuned model failed", t->o->model);
    for (int i = 0; i < b->ngroup; i++) {
        Group *g = &b->group[i];
        g->was = sum_of(g, was);
        g->is = sum_of(g, is);
        g->best = g->is < g->was * (1 - STAYS) ? g->best : 0;
    }
    return INGOT_OK;
}

static ingot_status confirm(Blocks *b)
{
    Tune *t = b->t;
    const char *file = arena_printf(t->a, "%s/best.sched", t->dir), *entry;
    double was, is;
    for (int i = 0; i < 2 && winners(b); i++) { /* with all of them, then without those that lost */
        ingot_status status = write_plan(b, file, false);
        if (status == INGOT_OK)
            status = network_build(t, file, &entry);
        if (status == INGOT_OK && !i)
            status = drop_losers(b, entry);
        else if (status == INGOT_OK)
            status = network_compare(t, entry, &was, &is);
        if (status != INGOT_OK)
            return status;
    }
    if (!winners(b))
        return INGOT_OK;
    const ingot_status right = network_right(t, entry);
    if (right != INGOT_OK)
        return right;
    say("  the network: %.4g ms for %.4g ms, %.3f times as fast", is, was, was / is);
    if (is >= was) /* no faster as a whole: it stays what it is */
        for (int i = 0; i < b->ngroup; i++)
            b->group[i].best = 0;
    return INGOT_OK;
}

ingot_status tune_gpu(Tune *t, StrBuf *text, int *won, int *all)
{
    Blocks b = {.t = t};
    ingot_status status = make_plans(&b);
    if (status == INGOT_OK)
        status = build_all(&b);
    const int lock = database_lock(t->d); /* tuners take turns at timing */
    t->deadline = seconds_now() + t->o->budget;
    if (status == INGOT_OK)
        status = time_all(&b);
    if (status == INGOT_OK) {
        choose(&b);
        status = confirm(&b);
    }
    database_unlock(t->d, lock);
    if (status == INGOT_OK)
        print_file(text, &b, true);
    *won = winners(&b);
    *all = b.ngroup;
    for (int i = 0; i < PLANS; i++) {
        plan_free(b.plan[i]);
        model_close(&b.model[i]);
    }
    return status;
}
