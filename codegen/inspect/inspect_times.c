/* inspect_times.c - what the steps of a plan take: measured by `ingot bench`, or what a roof
 * allows.
 *
 * The roof of a step is the larger of its operations over the multiply-adds a second and its bytes
 * over the bandwidth (Williams, Waterman, Patterson: Roofline, CACM 2009).  Without measurements
 * the machine is a nominal one: good for the shares of a whole, not for milliseconds. */
#include <string.h>

#include "inspect.h"

enum { CACHED_BYTES = 1 << 19 }; /* what a step touches is in cache, up to here */

Times times_nominal(const Target *t)
{
    if (t->gpu)
        return (Times){.threads = 1, .gflops = 10000, .cache_gbps = 2000, .memory_gbps = 500};
    if (!t->machine.lanes)
        return (Times){.threads = 1, .gflops = 1, .cache_gbps = 2, .memory_gbps = 1};
    return (Times){
        .threads = 1, .gflops = 12.0 * t->machine.lanes, .cache_gbps = 60, .memory_gbps = 10};
}

double times_roof_ms(const Times *m, double flops, double bytes)
{
    double compute = flops / (m->gflops * m->threads);
    double traffic = bytes / (bytes <= CACHED_BYTES ? m->cache_gbps * m->threads : m->memory_gbps);
    return 1e-6 * (compute > traffic ? compute : traffic);
}

static bool take_steps(Times *m, const Plan *p, const Json *list, Arena *a, const char **why)
{
    Step **steps = plan_steps(p, a);
    m->ms = NEWN(a, double, p->nstep + 1);
    for (int i = 0; i < p->nstep; i++)
        m->ms[i] = -1;
    for (const Json *k = list->item; k; k = k->next) {
        double step = json_number(json_member(k, "step"), -1),
               ms = json_number(json_member(k, "ms"), -1);
        const char *name = json_text(json_member(k, "name"), "");
        if (!(step >= 0 && step < p->nstep) || !(ms >= 0) || !(ms < 1e12)) {
            *why = "a step has no number in the plan, or no time";
            return false;
        }
        const Step *s = steps[(int)step];
        if (strcmp(name, s->name) != 0) {
            *why = arena_printf(a,
                                "its step %d is %.100s, here it is %.100s: it is of another model, "
                                "target, .sched or --dim",
                                (int)step, name, s->name);
            return false;
        }
        m->ms[(int)step] = ms;
    }
    return true;
}

bool times_read(Times *m, const Plan *p, const char *target, const char *text, Arena *a,
                const char **why)
{
    const char *line = strstr(text, "{\""); /* a table for people may come before */
    const Json *told = line ? json_read(a, line, why) : NULL;
    const Json *list = json_member(told, "kernels");
    if (!told || !list || list->kind != JSON_LIST) {
        if (!line || told)
            *why = "this is not what `ingot bench --per-kernel --json` prints";
        return false;
    }
    const char *theirs = json_text(json_member(told, "target"), target);
    if (strcmp(theirs, target) != 0) {
        *why = arena_printf(a, "it is of the target %.80s, here it is %.80s", theirs, target);
        return false;
    }
    m->threads = (int)json_number(json_member(told, "threads"), 1);
    m->gflops = json_number(json_member(told, "peak_gflops"), 0);
    m->cache_gbps = json_number(json_member(told, "cache_gbps"), 0);
    m->memory_gbps = json_number(json_member(told, "memory_gbps"), 0);
    m->measured = true;
    if (!(m->gflops > 0) || !(m->cache_gbps > 0) || !(m->memory_gbps > 0) || m->threads < 1 ||
        m->threads > 1024) {
        *why = "the machine's peaks are missing";
        return false;
    }
    return take_steps(m, p, list, a, why);
}
