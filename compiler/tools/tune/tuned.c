/* tuned.c - the outcome of a search as a .sched file (docs/sched.md): only what differs from the
 * heuristic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune_run.h"

/* Whether every step of this key is one of the kernel's, so that one entry speaks of all. */
static bool speaks_for_all(const TuneKernel *k, const Choice *c)
{
    int n = 0;
    for (int i = 0; i < k->nstep; i++) {
        const Choice *o = k->step[i]->choice;
        n += o->key == c->key && o->copy == c->copy && o->copy_arg == c->copy_arg;
    }
    return n == c->of;
}

static void print_kernel(StrBuf *sb, const Tuning *t, const TuneKernel *k)
{
    const Candidate *best = k->candidate[k->best];
    sb_printf(sb, "# %s: %.4g us for %.4g us, in its own loop\n", k->step[0]->name, best->ns * 1e-3,
              best->base_ns * 1e-3);
    for (int i = 0; i < k->nstep; i++) {
        const Choice *c = k->step[i]->choice;
        bool all = speaks_for_all(k, c), said = false;
        for (int j = 0; j < i && all && !said; j++) {
            const Choice *o = k->step[j]->choice;
            said = o->key == c->key && o->copy == c->copy && o->copy_arg == c->copy_arg;
        }
        if (!said)
            sched_print_step(sb, t->p, k->step[i], !all, best->nopt, best->opts, best->layout);
    }
}

/* Whether an entry was written for the kernels that this one speaks of: "KEY [only I of N] ..". */
static bool is_said(const Tuning *t, const char *entry)
{
    char *end;
    const uint64_t key = strtoull(entry, &end, 16);
    int nth = -1;
    bool said = false;
    (void)sscanf(end, " only %d", &nth);
    for (int i = 0; i < t->n && !said; i++)
        for (int j = 0; j < t->kernel[i]->nstep && t->kernel[i]->best && !said; j++) {
            const Choice *c = t->kernel[i]->step[j]->choice;
            said = c->key == key && !c->copy && (c->nth == nth || speaks_for_all(t->kernel[i], c));
        }
    return said;
}

/* Decisions that the plan was made with, but those about kernels whose own entries say the same. */
static void print_decisions(StrBuf *sb, const Tuning *t)
{
    static const char kernel[] = "kernel ";
    const size_t n = sizeof kernel - 1;
    bool said = false;
    for (const char *at = t->values ? t->values : ""; *at;) {
        const size_t length = strcspn(at, "\n") + 1;
        said = *at == ' ' ? said : !strncmp(at, kernel, n) && is_said(t, at + n);
        if (!said)
            sb_write(sb, at, length);
        at += length;
    }
}

void tuned_print(StrBuf *sb, const Tuning *t, const char *section, const Host *m)
{
    sb_printf(sb, "sched 2\ntarget %s\n# tuned on %s, with %s\n", section, m->cpu, m->compiler);
    print_decisions(sb, t);
    for (int i = 0; i < t->n; i++)
        if (t->kernel[i]->best)
            print_kernel(sb, t, t->kernel[i]);
}
