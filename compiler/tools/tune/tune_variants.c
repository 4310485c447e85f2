/* tune_variants.c - in which way values are computed (rewrite/variants.def): measured in the
 * network.
 *
 * A variant is other kernels, other buffers and other neighbours, so it is no matter of one
 * kernel.  The network is built once for each way, with all values that can be done so, and
 * profiled; the steps whose work is for a node of the model are what its value takes.  Each value
 * takes the way that was the fastest, and the network with all of these has to be faster than
 * without.
 *
 * The database knows what each way took of the time of the kernels that compute the value now, so
 * equal layers of another network are not timed again. */
#include <stdlib.h>
#include <string.h>

#include "tune_command.h"

/* What a build tries for all values at once, in this order as far as there is time. */
static const char *const way_name[] = {
    "direct",
#define VARIANT(name, op, function, time) name,
#include "variants.def"
};
enum { NWAY = sizeof way_name / sizeof *way_name, TURNS = 3 };
#define GAIN 0.03  /* of what the value takes: less is noise */
#define WORTH 0.01 /* of the network */

/* Values that are decided together: with one key, or of one node of the model. */
typedef struct {
    const VariantOf *first;
    double ms[NWAY + 1]; /* in the network as it is, and in each way; 0: not tried */
} DecisionGroup;

typedef struct {
    Tune *t;
    VariantOf *value;
    int n;
    int *group;        /* by value: the number of the first one that is decided with it */
    DecisionGroup *of; /* by value; of the first of each */
} VariantChoices;

/* Tiles of 4 results are less exact, and are for those who ask for them. */
static bool is_exact_enough(const Tune *t, int way)
{
    return strcmp(way_name[way], "winograd4") != 0 || t->o->precision == INGOT_PRECISION_1E5;
}

static bool go_together(const VariantOf *a, const VariantOf *b)
{
    return a->key == b->key || (a->origin && a->origin == b->origin);
}

static void find_groups(VariantChoices *w)
{
    w->group = NEWN(w->t->a, int, w->n + 1);
    w->of = NEWN(w->t->a, DecisionGroup, w->n + 1);
    for (int i = 0; i < w->n; i++) {
        int first = i;
        for (int j = 0; j < i; j++)
            if (go_together(&w->value[i], &w->value[j]))
                first = w->group[j] < first ? w->group[j] : first;
        for (int j = 0; j < i; j++) /* what was two so far */
            if (go_together(&w->value[i], &w->value[j]))
                for (int k = 0, old = w->group[j]; k < i; k++)
                    w->group[k] = w->group[k] == old ? first : w->group[k];
        w->group[i] = first;
        w->of[i].first = &w->value[i];
    }
}

/* Of the last of the values: what several have in common (a transform's matrices, a padded operand)
 * is the first one's too. */
static int value_of(const VariantChoices *w, const Step *s)
{
    for (int i = w->n; i-- > 0;)
        for (int j = 0; j < s->norigin; j++)
            if (s->origins[j] == w->value[i].origin)
                return i;
    return -1;
}

static void add_steps(VariantChoices *w, const Block *b, const double *ms, int way)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        int value = s->kernel ? value_of(w, s) : -1;
        if (value >= 0)
            w->of[w->group[value]].ms[way] += ms[s->number];
        add_steps(w, &s->body, ms, way);
        add_steps(w, &s->other, ms, way);
    }
}

/* Can further turns show that one of these values gains by this way? */
static bool is_open(const VariantChoices *w, const bool *of, int way)
{
    bool open = false;
    for (int i = 0; i < w->n; i++)
        open |= of[i] && w->of[i].ms[way] < w->of[i].ms[0] * (1 - GAIN / 2);
    return open;
}

/* of: the values that are computed so; NULL: of the network as it is. */
static ingot_status add_times(VariantChoices *w, const Plan *p, const char *entry, const bool *of,
                              int way)
{
    double *ms = NEWN(w->t->a, double, p->nstep + 1);
    for (int i = 0; i < TURNS && (!i || !of || is_open(w, of, way)); i++) {
        if (!network_times(w->t, entry, ms, p->nstep))
            return complain(INGOT_TOOL, "%s: the compiled model failed", w->t->o->model);
        for (int j = 0; j < w->n; j++)
            w->of[j].ms[way] = 0;
        add_steps(w, &p->main, ms, way);
    }
    return INGOT_OK;
}

/* ---- remembered ------------------------------------------------------------------------------ */

/* By value that others are decided with: hashes of the kernels that compute them. */
static void add_kernels(const VariantChoices *w, const Block *b, StrBuf *of)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        const int value = s->kernel ? value_of(w, s) : -1;
        if (value >= 0)
            sb_printf(&of[w->group[value]], "%016llx\n",
                      (unsigned long long)kernel_hash(s->kernel, 1));
        add_kernels(w, &s->body, of);
        add_kernels(w, &s->other, of);
    }
}

/* By which the database knows what each value takes by the kernels of this plan in the place of
 * those of the network as it is. */
static const char **way_keys(const VariantChoices *w, const Plan *p)
{
    StrBuf *of = NEWN(w->t->a, StrBuf, w->n + 1);
    const char **key = NEWN(w->t->a, const char *, w->n + 1);
    add_kernels(w, &w->t->plan->main, of);
    for (int i = 0; i < w->n; i++)
        sb_puts(&of[i], "then\n");
    add_kernels(w, &p->main, of);
    for (int i = 0; i < w->n; i++) {
        key[i] = text_key(w->t, "variant, ", of[i].data);
        sb_free(&of[i]);
    }
    return key;
}

/* Whether the database knows this way of all these values, as a share of what they take as they
 * are. */
static bool read_times(VariantChoices *w, const bool *of, const char *const *key, int way)
{
    for (int i = 0; i < w->n; i++) {
        double was, is, noise;
        if (!of[i])
            continue;
        if (!database_region(w->t->d, key[i], &was, &is, &noise) || was <= 0)
            return false;
        w->of[i].ms[way] = w->of[i].ms[0] * is / was;
    }
    return true;
}

static ingot_status keep_times(const VariantChoices *w, const bool *of, const char *const *key,
                               int way)
{
    for (int i = 0; i < w->n; i++) {
        const DecisionGroup *u = &w->of[i];
        const char *name = arena_printf(w->t->a, "%s: %s, not %s",
                                        u->first->origin ? u->first->origin->node : "a value",
                                        way_name[way - 1], u->first->now);
        if (of[i] && u->ms[0] > 0 &&
            !database_keep_region(w->t->d, key[i], name, u->ms[0] * 1e6, u->ms[way] * 1e6, 0))
            return complain(INGOT_IO, "%s", database_error(w->t->d));
    }
    return INGOT_OK;
}

/* ---- a way ----------------------------------------------------------------------------------- */

/* Lines that give values a way: of each group its own, NULL for what the compiler chooses. */
static char *lines_of(const VariantChoices *w, const char *const *way)
{
    StrBuf sb = {0};
    Map said = {0};
    for (int i = 0; i < w->n; i++) {
        const VariantOf *v = &w->value[i];
        const char *name = way[w->group[i]];
        if (!name || !strcmp(name, v->now) || map_get(&said, v->key))
            continue;
        map_put(&said, v->key, (void *)(uintptr_t)v);
        plan_print_variant(&sb, w->t->plan, v, name);
    }
    map_free(&said);
    return sb_take(&sb, w->t->a);
}

/* What a value came to be computed as; the context is the same, and so are its nodes. */
static bool took(Arena *a, const Plan *p, const VariantChoices *w, const char *name, bool *of)
{
    VariantOf *now;
    bool any = false;
    int n = plan_variants(a, p, &now);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < w->n; j++)
            if (now[i].node == w->value[j].node && !strcmp(now[i].now, name) &&
                strcmp(name, w->value[j].now) != 0)
                any = of[w->group[j]] = true;
    return any;
}

/* The network with all that can be done in this way. */
static ingot_status try_way(VariantChoices *w, int way)
{
    Tune *t = w->t;
    const char **name = NEWN(t->a, const char *, w->n + 1), *entry,
               *file = arena_printf(t->a, "%s/way.sched", t->dir);
    bool *of = NEWN(t->a, bool, w->n + 1);
    for (int i = 0; i < w->n; i++)
        name[i] = way_name[way];
    const char *lines = lines_of(w, name);
    if (!*lines)
        return INGOT_OK;
    ingot_options o = t->o->compile;
    o.verbose = 0;
    o.sched = file;
    ingot_status status = network_write_lines(t, file, lines);
    Plan *p = status == INGOT_OK ? plan_make(t->m.c, &o) : NULL;
    if (status == INGOT_OK && !p)
        return ingot_context_status(t->m.c);
    const bool any = status == INGOT_OK && took(t->a, p, w, way_name[way], of);
    const char **key = any ? way_keys(w, p) : NULL;
    if (any && !read_times(w, of, key, way + 1)) {
        status = network_build(t, file, &entry);
        if (status == INGOT_OK)
            status = add_times(w, p, entry, of, way + 1);
        if (status == INGOT_OK)
            status = keep_times(w, of, key, way + 1);
    }
    plan_free(p);
    for (int i = 0; i < w->n; i++)
        if (!of[i])
            w->of[i].ms[way + 1] = 0;
    return status;
}

/* The fastest way of each group, where that is worth it. */
static char *choose_ways(const VariantChoices *w)
{
    const Tune *t = w->t;
    const char **name = NEWN(t->a, const char *, w->n + 1);
    double gain = 0;
    for (int i = 0; i < w->n; i++) {
        const DecisionGroup *u = &w->of[i];
        double least = u->ms[0] * (1 - GAIN);
        if (w->group[i] != i)
            continue;
        for (int j = 0; j < NWAY; j++)
            if (u->ms[j + 1] > 0 && u->ms[j + 1] < least) {
                least = u->ms[j + 1];
                name[i] = way_name[j];
            }
        gain += name[i] ? u->ms[0] - least : 0;
        if (t->o->compile.verbose) {
            note("  %s %s: %s %.4g ms", u->first->origin ? u->first->origin->op : "",
                 u->first->origin ? u->first->origin->node : "", u->first->now, u->ms[0]);
            for (int j = 0; j < NWAY; j++)
                if (u->ms[j + 1] > 0)
                    note("    %s %.4g ms", way_name[j], u->ms[j + 1]);
        }
    }
    return gain > WORTH * t->network_ms ? lines_of(w, name) : NULL;
}

/* Lines of the file, "" if the compiler's choices stay; *all: there was time for every way. */
static ingot_status search_ways(Tune *t, const char **lines, bool *all)
{
    VariantChoices w = {.t = t};
    const char *file = arena_printf(t->a, "%s/variants.sched", t->dir), *entry;
    double was, is, began = seconds_now(), built = t->profiling;
    *lines = "";
    *all = true;
    w.n = plan_variants(t->a, t->plan, &w.value);
    find_groups(&w);
    ingot_status status = w.n ? add_times(&w, t->plan, t->s.entry, NULL, 0) : INGOT_OK;
    for (int i = 0; i < NWAY && w.n && status == INGOT_OK; i++) {
        if (!is_exact_enough(t, i))
            continue;
        *all = !i || seconds_now() + 2 * built <= began + (t->deadline - began) / 2;
        if (!*all)
            break; /* the other half is for kernels */
        double from = seconds_now();
        status = try_way(&w, i);
        built = seconds_now() - from > built ? seconds_now() - from : built;
    }
    const char *chosen = w.n && status == INGOT_OK ? choose_ways(&w) : NULL;
    if (!chosen)
        return status;
    status = network_write_lines(t, file, chosen);
    if (status == INGOT_OK)
        status = network_build(t, file, &entry);
    if (status == INGOT_OK)
        status = network_right(t, entry);
    if (status == INGOT_OK)
        status = network_compare(t, entry, &was, &is);
    if (status != INGOT_OK)
        return status;
    bool faster = is < was * (1 - WORTH);
    note("  variants: %.4g ms a run, before %.4g ms%s", is, was,
         faster ? "" : ": the compiler's choice is kept");
    *lines = faster ? chosen : "";
    return status;
}

ingot_status network_variants(Tune *t)
{
    const char *key = network_key(t, "variants, ", ""), *lines = network_known(t, key);
    ingot_status status = INGOT_OK;
    if (!lines && t->o->budget > 0) {
        bool all;
        status = search_ways(t, &lines, &all);
        set_deadline(t);
        if (status == INGOT_OK)
            status = network_keep(t, key, lines, all || *lines);
    }
    if (status != INGOT_OK || !lines || !*lines)
        return status;
    return network_take(t, lines);
}
