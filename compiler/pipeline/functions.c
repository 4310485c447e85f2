/* functions.c - a bundle of several functions over the same states (docs/functions.md).
 *
 * Each function gets a plan of its own, by the passes that a model of one function takes.  What
 * they have in common falls out of how plans are made, or is joined here:
 *
 *     states       first in the arena, in the order of their declaration: at the same place in all
 *     scratch      behind the states, one function at a time: the arena is that of the greediest
 *     weights      one file; what is equal lies there once, and what a later function multiplies is
 *                  laid out as the first one that does so has it, where its loops read that as well
 *     kernels      equal text is one kernel (bundle_functions.c)
 *     decisions    a section of the .sched file each */
#include <math.h>
#include <string.h>

#include "codegen.h"
#include "language.h"
#include "pipeline.h"
#include "rewrite.h"

/* What a function reads has to be its own: another one's inputs are not there when it runs. */
static bool inputs_own(Context *c)
{
    Arena *a = arena_new();
    int n;
    Node **nodes = graph_nodes(a, c, &n);
    bool good = true;
    for (int i = 0; i < n && good; i++)
        if (nodes[i]->op == OP_INPUT && !input_name(c, nodes[i])) {
            const int of = (int)(nodes[i]->arg.i / FUNCTION_INPUTS),
                      number = (int)(nodes[i]->arg.i % FUNCTION_INPUTS);
            ingot_error(c, INGOT_INVALID, "function '%s' reads input '%s' of function '%s'",
                        c->functions[c->function].name, c->functions[of].inputs[number].name,
                        c->functions[of].name);
            good = false;
        }
    arena_free(a);
    return good;
}

/* Scratch is shared, and states lie alike: anything else is a fault of the compiler. */
static void share_memory(int n, Plan *const *p)
{
    for (int i = 1; i < n; i++) {
        for (int k = 0; k < p[i]->c->nstate; k++)
            if ((!p[i]->c->states[k].part || p[i]->c->states[k].axis < 0) && /* parts have places */
                (p[i]->state[k]->offset != p[0]->state[k]->offset ||
                 p[i]->state[k]->bytes != p[0]->state[k]->bytes ||
                 p[i]->state[k]->memory != p[0]->state[k]->memory ||
                 !layout_equal(&p[i]->state[k]->layout, &p[0]->state[k]->layout)))
                BUG("functions with two places for state '%s'", p[i]->c->states[k].name);
        for (int k = 0; k < p[0]->nmemory; k++)
            if (p[i]->memories[k].bytes > p[0]->memories[k].bytes)
                p[0]->memories[k].bytes = p[i]->memories[k].bytes;
    }
    p[0]->arena_bytes = 0;
    for (int k = 0; k < memories_end(p[0], 0); k++)
        p[0]->arena_bytes = sat_add(p[0]->arena_bytes, p[0]->memories[k].bytes);
    for (int i = 1; i < n; i++) {
        memcpy(p[i]->memories, p[0]->memories, (size_t)p[0]->nmemory * sizeof *p[0]->memories);
        p[i]->arena_bytes = p[0]->arena_bytes;
    }
}

/* --save-sched: each plan's section. */
static bool save_all(Context *c, const ingot_options *o, int n, Plan *const *p, OutFile *f)
{
    StrBuf all = {0};
    for (int i = 0; i < n && o->save_sched; i++)
        sb_puts(&all, p[i]->saved);
    const bool ok = save_begin(c, f, o->save_sched, all.data);
    sb_free(&all);
    return ok;
}

static void functions_summary(Context *c, int n, Plan *const *p, const char *dir)
{
    for (int i = 0; i < n; i++)
        context_report(c, INGOT_NOTE, INGOT_OK, "%s: function '%s': %d kernels", dir,
                       c->functions[i].name, p[i]->nkernel);
    context_report(c, INGOT_NOTE, INGOT_OK,
                   "%s: arena %lld bytes, of which states %lld bytes, weights %lld bytes", dir,
                   (long long)p[0]->arena_bytes, (long long)p[0]->state_bytes,
                   (long long)p[0]->weights_bytes);
}

/* Those after it read its weights where they lie, if their loops can (share_weights.c). */
static void keep_layouts(Context *c, const Plan *p)
{
    for (int i = 0; p && i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        if (b->kind == BUF_WEIGHT && !b->base && b->last >= 0 && b->layout.n &&
            !map_get(&c->weight_layouts, (uint64_t)b->node->id + 1))
            map_put(&c->weight_layouts, (uint64_t)b->node->id + 1, &p->buffers[i]->layout);
    }
}

static Plan *plan_of(Context *c, const Target *t, const ingot_options *o, Clock *k)
{
    Plan *p = inputs_own(c) ? pipeline_plan(c, t, o, k) : NULL;
    keep_layouts(c, p);
    if (!p || o->no_check || check_plan(p, t, o, k))
        return p;
    plan_free(p);
    return NULL;
}

/* How many states it has a next value of. */
static int states_made(const Context *c)
{
    int n = 0;
    for (int i = 0; i < c->nstate; i++)
        n += c->states[i].next != NULL;
    return n;
}

static double products_time(Context *c, const Target *t)
{
    Arena *a = arena_new();
    int n;
    Node **nodes = graph_nodes(a, c, &n);
    double time = 0;
    for (int j = 0; j < n; j++)
        time += is_sum_of_products(nodes[j]) ? product_time(t, nodes[j]) : 0;
    arena_free(a);
    return time;
}

/* The function that is planned first. Where several devices share states by what they compute, that
 * is the one with the least work, which a token or a frame at a time comes most often: to split its
 * states among them pays there, or nowhere. Where they share the batch, it is the one that makes
 * most states: the step of a training. */
static int planned_first(Context *c, const Target *t, const ingot_options *o)
{
    int first = 0, most = 0;
    double least = INFINITY;
    const bool tensor = t->peers && o->parallel && !strcmp(o->parallel, "tensor"),
               batch = t->peers && o->parallel && !strcmp(o->parallel, "batch");
    for (int i = 0; i < c->nfunction && (tensor || batch); i++) {
        function_select(c, i);
        const double time = tensor ? products_time(c, t) : 0;
        const int made = states_made(c);
        first = (tensor ? time < least : made > most) ? i : first;
        least = fmin(least, time);
        most = made > most ? made : most;
    }
    return first;
}

bool functions_plan(Context *c, const Target *t, const ingot_options *o, Clock *k,
                    const GraphRoots *roots, Plan **p)
{
    const int first = planned_first(c, t, o);
    int made = 0;
    for (bool good = true; made < c->nfunction && good;) {
        const int i = !made ? first : made - (made <= first);
        function_select(c, i);
        if (roots)
            roots_restore(c, &roots[i]);
        good = (p[i] = plan_of(c, t, o, k)) != NULL;
        made += good;
    }
    function_select(c, 0);
    map_free(&c->weight_layouts);
    c->weight_layouts = (Map){0};
    if (made == c->nfunction)
        share_memory(made, p);
    return made == c->nfunction;
}

bool functions_inspect(Context *c, Inspection *x, Clock *k)
{
    const int n = c->nfunction;
    OutFile saved;
    x->plans = NEWN(x->arena, Plan *, n);
    x->nplan = n;
    return functions_plan(c, x->t, x->o, k, NULL, x->plans) && weights_gather(n, x->plans) &&
           save_all(c, x->o, n, x->plans, &saved) && save_end(c, &saved, x->o->save_sched, true);
}

ingot_status compile_functions(Context *c, const Target *t, const ingot_options *o, const char *dir)
{
    const int n = c->nfunction;
    if ((target_ndevice(t) > 1 && !t->peers) || t->language->binds) {
        ingot_error(c, INGOT_UNSUPPORTED,
                    "--target '%s': a model of several functions (%s, %s ..) is for C, CUDA "
                    "and OpenCL on one device so far",
                    t->name, c->functions[0].name, c->functions[1].name);
        return c->status;
    }
    Clock k = clock_start(c, o);
    Plan **p = NEWN(c->arena, Plan *, n);
    OutFile saved;
    bool ready = functions_plan(c, t, o, &k, NULL, p);
    if (ready && !weights_gather(n, p)) {
        ingot_error(c, INGOT_UNSUPPORTED, "the weights of all functions need more than 2^40 bytes");
        ready = false;
    }
    ready = ready && save_all(c, o, n, p, &saved);
    ingot_status status = ready ? bundle_write_functions(n, p, t, o, dir) : pipeline_failure(c);
    if (ready && !save_end(c, &saved, o->save_sched, status == INGOT_OK))
        status = c->status;
    if (ready)
        passed(&k, "bundle");
    if (status == INGOT_OK && o->summary)
        functions_summary(c, n, p, dir);
    for (int i = 0; i < n; i++)
        plan_free(p[i]);
    return status;
}
