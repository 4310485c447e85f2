/* tune_gpu_candidates.c - by which opts the kernels of a network on a GPU could be computed
 * otherwise: what a tuner tries.
 *
 * Where the driver compiles (OpenCL) those of tune_tiles.c.  Where ingot does (CUDA), of a
 * contraction the blocks that come next in the order of the estimate (Target.nth), of which those
 * of a warpgroup's unit have an order of their own; and neighbours of the compiler's choice, which
 * differ from it in one opt: when the next kernel may begin, how many copies are on their way,
 * fragments loaded ahead or not, an amount doubled or halved.  Layouts stay: so all of them work on
 * the same memory, and any kernel of one step can stand beside any of another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "inspect.h"
#include "tune_gpu_candidates.h"

enum { BLOCKS = 9 /* of the order of the estimate, of those that warps multiply */, DEEPER = 2 };
#define SMALL 0.004 /* of the network's work: what has less is tried in fewer ways */
enum { FEW_WAYS = 6 };

/* ---- groups ---------------------------------------------------------------------------------- */

static bool can_have_ways(const Step *s)
{
    return s && s->kind == STEP_KERNEL && s->choice && !s->kernel->serial && !s->kernel->check &&
           s->kernel->sink->nsrc == 1 && !s->scratch;
}

/* One entry of a file speaks of both, unless it says "only". */
static bool same_entry(const Choice *a, const Choice *b)
{
    return a->key == b->key && a->copy == b->copy && a->copy_arg == b->copy_arg;
}

static bool is_of(const WayGroup *g, const Step *s)
{
    return same_entry(g->step[0]->choice, s->choice) && g->step[0]->kernel == s->kernel;
}

/* Does a file have an entry for it? */
static bool has_entry(const char *text, const Choice *c)
{
    for (const char *at = text; at && (at = strstr(at, "kernel ")); at++) {
        char *end;
        int nth, of, arg = 0, n = 0;
        const uint64_t key = strtoull(at + strlen("kernel "), &end, 16);
        if (sscanf(end, " only %d of %d%n", &nth, &of, &n) == 2)
            end += n;
        const bool copy = sscanf(end, " copy %d", &arg) == 1;
        if (key == c->key && copy == c->copy && (!copy || arg == c->copy_arg))
            return true;
    }
    return false;
}

static void find_groups(GpuCandidates *w)
{
    Arena *a = w->t->a;
    for (int i = 0; i < w->plan->main.n; i++) {
        Step *s = w->plan->main.step[i];
        int at = 0;
        if (!can_have_ways(s))
            continue;
        while (at < w->ngroup && !is_of(&w->group[at], s))
            at++;
        if (at == w->ngroup) {
            WayGroup g = {0};
            vec_push(a, w->group, w->ngroup, g);
        }
        vec_push(a, w->group[at].step, w->group[at].nstep, s);
    }
    for (int i = 0; i < w->ngroup; i++) /* another kernel with this key has other layouts */
        for (int j = 0; j < w->plan->main.n; j++) {
            const Step *s = w->plan->main.step[j];
            w->group[i].only |= s->choice && s->choice->key == w->group[i].step[0]->choice->key &&
                                !is_of(&w->group[i], s);
        }
}

/* What all of its steps have to do, */
static double work_of(const WayGroup *g)
{
    const Kernel *k = g->step[0]->kernel;
    return (double)g->nstep * (double)(k->flops + 16 * k->bytes);
}

/* as the network's share. */
static double share_of(const GpuCandidates *w, const WayGroup *g)
{
    double all = 0;
    for (int i = 0; i < w->ngroup; i++)
        all += work_of(&w->group[i]);
    return work_of(g) / all;
}

/* ---- a way ----------------------------------------------------------------------------------- */

/* The kernel by these opts; NULL: it cannot be done. */
static Kernel *kernel_by(const Kernel *k, const Target *t, int nopt, const Opt *opts)
{
    Kernel *copy = kernel_copy(k);
    copy->nopt = 0;
    copy->opts = NULL;
    Nest *n = nest_new(copy, t);
    bool good = true;
    for (int i = 0; i < nopt && good; i++)
        good = !opt_apply(n, &opts[i]);
    good = good && !nest_check(n);
    if (good)
        nest_keep(n, copy);
    nest_free(n);
    if (good)
        return copy;
    ingot_context_free(copy->c);
    return NULL;
}

static const char *entry_of(const GpuCandidates *w, const WayGroup *g, int nopt, const Opt *opts)
{
    StrBuf sb = {0};
    for (int i = 0; i < (g->only ? g->nstep : 1); i++)
        sched_print_step(&sb, w->plan, g->step[i], g->only, nopt, opts, NULL);
    return sb_take(&sb, w->t->a);
}

static void put_into_plan(Plan *p, WayGroup *g, Kernel *k)
{
    snprintf(k->name, sizeof k->name, "%.80s_w%d", g->step[0]->kernel->name, g->nway - 1);
    vec_push(p->arena, p->kernels, p->nkernel, k);
    for (int i = 0; i < g->nstep; i++)
        vec_push(p->arena, g->step[i]->way, g->step[i]->nway, k);
}

void ways_add(GpuCandidates *w, WayGroup *g, int nopt, const Opt *opts)
{
    const Kernel *k = g->step[0]->kernel;
    if (g->nway == g->most)
        return;
    const char *entry = entry_of(w, g, nopt, opts);
    for (int i = 0; i < g->nway; i++)
        if (!strcmp(g->way[i], entry))
            return;
    Kernel *made = g->nway ? kernel_by(k, &w->t->target, nopt, opts) : NULL;
    if (g->nway && !made)
        return;
    vec_push(w->t->a, g->way, g->nway, entry);
    vec_push(w->t->a, g->kernel, g->nkernel, made);
    if (made)
        put_into_plan(w->plan, g, made);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

static int copy_opts(const Kernel *k, OptKind but, Opt *out)
{
    int n = 0;
    for (int i = 0; i < k->nopt; i++)
        if (k->opts[i].kind != but)
            out[n++] = k->opts[i];
    return n;
}

static void try_triggers(GpuCandidates *w, WayGroup *g)
{
    static const char *const when[] = {NULL, "waited", "summed"};
    const Kernel *k = g->step[0]->kernel;
    Opt *o = NEWN(w->t->a, Opt, k->nopt + 2);
    for (int i = 0; i < 3; i++) {
        int n = copy_opts(k, OPT_TRIGGER, o);
        if (when[i])
            o[n++] = (Opt){.kind = OPT_TRIGGER, .axis = when[i]};
        ways_add(w, g, n, o);
    }
}

/* More or fewer copies on their way; fragments are loaded ahead, or not. */
static void try_depths(GpuCandidates *w, WayGroup *g)
{
    const Kernel *k = g->step[0]->kernel;
    Opt *o = NEWN(w->t->a, Opt, k->nopt + 1);
    for (int by = -1; by <= DEEPER; by++) {
        const int n = copy_opts(k, OPT_COUNT, o);
        bool any = false;
        for (int i = 0; i < n && by; i++)
            if (o[i].kind == OPT_STAGE && o[i].depth && o[i].depth + by >= 2) {
                o[i].depth += by;
                any = true;
            }
        if (any)
            ways_add(w, g, n, o);
    }
    ways_add(w, g, copy_opts(k, OPT_PREFETCH, o), o);
}

static void try_amounts(GpuCandidates *w, WayGroup *g)
{
    const Kernel *k = g->step[0]->kernel;
    Opt *o = NEWN(w->t->a, Opt, k->nopt + 1);
    for (int i = 0; i < k->nopt; i++)
        for (int up = 0; up < 2; up++) {
            const int n = copy_opts(k, OPT_COUNT, o);
            if ((o[i].kind != OPT_SPLIT && o[i].kind != OPT_UPCAST) || (!up && o[i].amount % 2))
                continue;
            o[i].amount = up ? 2 * o[i].amount : o[i].amount / 2;
            if (o[i].amount > 1)
                ways_add(w, g, n, o);
        }
}

/* ---- blocks of the estimate's order ---------------------------------------------------------- */

static bool same_layouts(const Step *a, const Step *b)
{
    bool same = a->kernel->narg == b->kernel->narg;
    for (int i = 0; i < a->kernel->narg && same; i++)
        same = layout_equal(&a->kernel->args[i].layout, &b->kernel->args[i].layout);
    return same;
}

/* What the plan with the nth of all blocks has for these steps. */
static ingot_status try_plan(GpuCandidates *w, int nth)
{
    Tune *t = w->t;
    LoadedModel m;
    Plan *p;
    const ingot_status status = plan_anew(t, NULL, nth, &m, &p);
    for (int i = 0; i < w->ngroup && p; i++) {
        const Step *own = w->group[i].step[0], *s = NULL;
        for (int j = 0; j < p->main.n && !s; j++)
            if (p->main.step[j]->number == own->number)
                s = p->main.step[j];
        if (s && can_have_ways(s) && s->choice->key == own->choice->key && same_layouts(own, s)) {
            Opt *opts = NEWN(t->a, Opt, s->kernel->nopt + 1);
            for (int j = 0; j < s->kernel->nopt; j++)
                opts[j] = opt_copy(t->a, &s->kernel->opts[j]);
            ways_add(w, &w->group[i], s->kernel->nopt, opts);
        }
    }
    plan_free(p);
    model_close(&m);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Of matrix units, and of launches that overlap. */
static ingot_status try_units(GpuCandidates *w)
{
    ingot_status status = INGOT_OK;
    for (int i = 0; i < w->ngroup; i++)
        try_triggers(w, &w->group[i]);
    for (int i = 1; i <= WGMMA_MOST_NTH && status == INGOT_OK; i++)
        status = try_plan(w, MMA_MOST_NTH + i);
    for (int i = 1; i <= BLOCKS && status == INGOT_OK; i++)
        status = try_plan(w, i);
    for (int i = 0; i < w->ngroup; i++) {
        try_depths(w, &w->group[i]);
        try_amounts(w, &w->group[i]);
    }
    return status;
}

/* Is a kernel asked for (--kernels)? */
static bool is_asked(const GpuCandidates *w, const WayGroup *g)
{
    bool asked = false;
    for (int i = 0; i < g->nstep; i++)
        asked |= step_matches(g->step[i], w->t->o->kernels);
    return asked;
}

static bool is_grouped(const GpuCandidates *w, const Step *s)
{
    bool grouped = false;
    for (int i = 0; i < w->ngroup && !grouped; i++)
        grouped = is_of(&w->group[i], s);
    return grouped;
}

/* What the user's file says beside the groups' kernels: it stays.  Of steps with one key and
 * several kernels each has an entry of its own. */
static void keep_rest(GpuCandidates *w)
{
    StrBuf sb = {0}, values = {0};
    sched_print_values(&values, w->plan, w->t->o->compile.target);
    const char *line = strchr(values.data, '\n'); /* behind "sched 2" and "target .." */
    sb_puts(&sb, strchr(line + 1, '\n') + 1);
    sb_free(&values);
    for (int i = 0; i < w->plan->main.n; i++) {
        const Step *s = w->plan->main.step[i];
        bool only = false, said = false;
        if (!s->choice || is_grouped(w, s))
            continue;
        for (int j = 0; j < w->plan->main.n; j++) {
            const Step *other = w->plan->main.step[j];
            const bool same = other->choice && same_entry(other->choice, s->choice);
            only |= same && other->kernel != s->kernel;
            said |= same && j < i;
        }
        if (only || !said)
            sched_print_step(&sb, w->plan, s, only, s->kernel->nopt, s->kernel->opts, NULL);
    }
    w->rest = sb_take(&sb, w->t->a);
}

ingot_status ways_make(GpuCandidates *w)
{
    const bool tiles = driver_compiles(&w->t->target);
    int asked = 0;
    find_groups(w);
    for (int i = 0; i < w->ngroup; i++) {
        WayGroup *g = &w->group[i];
        const bool of_these = is_asked(w, g);
        const int most = tiles ? MOST_TILE_WAYS : MOST_WAYS;
        g->stays = has_entry(w->t->found, g->step[0]->choice);
        g->most = !of_these ? 1 : share_of(w, g) < SMALL ? FEW_WAYS : most;
        asked += of_these;
        ways_add(w, g, g->step[0]->kernel->nopt, g->step[0]->kernel->opts);
    }
    if (!asked && w->t->o->kernels)
        return complain(INGOT_USAGE,
                        "%s: no kernel that can be tuned matches '%.200s': it has %d, the first "
                        "is %s",
                        w->t->o->model, w->t->o->kernels, w->ngroup,
                        w->ngroup ? w->group[0].step[0]->name : "none");
    if (w->t->o->compile.sched && !w->t->found)
        keep_rest(w);
    if (!tiles)
        return try_units(w);
    for (int i = 0; i < w->ngroup; i++)
        ways_of_tiles(w, &w->group[i]);
    return INGOT_OK;
}

static bool still_has(const Step *s, const Kernel *way)
{
    bool has = !way;
    for (int i = 0; i < s->nway; i++)
        has |= s->way[i] == way;
    return has;
}

void ways_keep_written(GpuCandidates *w)
{
    for (int i = 0; i < w->ngroup; i++) {
        WayGroup *g = &w->group[i];
        int n = 0;
        for (int j = 0; j < g->nway; j++)
            if (still_has(g->step[0], g->kernel[j])) {
                g->way[n] = g->way[j];
                g->kernel[n++] = g->kernel[j];
            }
        g->nway = g->nkernel = n;
    }
}
