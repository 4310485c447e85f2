/* inspect_verbose.c - what -v, -vv, -vvv and -vvvv tell of a plan, as notes: its steps; its
 * kernels; what was decided and thought of; the nodes and statements of kernels. */
#include <string.h>

#include "inspect.h"

/* Each line of the text as a note of its own, and without it. */
static void tell(Context *c, StrBuf *sb)
{
    for (char *p = sb->data; p && *p;) {
        size_t n = strcspn(p, "\n");
        char last = p[n];
        p[n] = 0;
        context_report(c, INGOT_NOTE, INGOT_OK, "%s", p);
        p += n + (last != 0);
    }
    sb->len = 0;
    if (sb->data)
        *sb->data = 0;
}

static void tell_steps(const Plan *p, Step *const *steps)
{
    StrBuf sb = {0};
    sb_printf(&sb, "arena %lld bytes, weights %lld bytes, %d steps, %d kernels\n",
              (long long)p->arena_bytes, (long long)p->weights_bytes, p->nstep, p->nkernel);
    for (int i = 0; i < p->nstep; i++) {
        const Step *s = steps[i];
        if (s->kind == STEP_INDEX)
            continue;
        sb_printf(&sb, "%4d %-9s %s", i, step_kind(s), s->name);
        for (int j = 0; j < s->nbuf; j++)
            if (step_writes(s, j)) {
                sb_puts(&sb, " ");
                print_shape(&sb, p->c, s->bufs[j]->dtype, s->bufs[j]->rank, s->bufs[j]->dims);
            }
        sb_printf(&sb, ", %lld flops, %lld bytes\n", (long long)step_flops(s),
                  (long long)step_bytes(s));
    }
    tell(p->c, &sb);
    sb_free(&sb);
}

static void tell_notes(const Plan *p)
{
    StrBuf sb = {0};
    for (int i = 0; i < p->nnote; i++) {
        const Note *n = &p->notes[i];
        const Origin *o = n->node ? node_origin(p->c, n->node) : NULL;
        sb_printf(&sb, "%s: %s %s", n->pass, n->what, n->node ? op_info[n->node->op].text : "");
        if (o)
            sb_printf(&sb, " of '%s' (%s)", o->node, o->op);
        sb_printf(&sb, ": %s", n->why);
        if (n->cost.apart > 0 || n->cost.together > 0)
            sb_printf(&sb,
                      n->step ? "; %.4g cycles apart, %.4g together"
                              : "; %.4g cycles stored, %.4g computed again",
                      n->cost.apart, n->cost.together);
        sb_puts(&sb, "\n");
    }
    tell(p->c, &sb);
    sb_free(&sb);
}

static void tell_kernel(const Plan *p, const Kernel *k, bool gpu, int verbose)
{
    StrBuf sb = {0};
    sb_printf(&sb, "%s\n", k->name);
    kernel_expression(&sb, k);
    for (int i = 0; i < k->nopt; i++) {
        sb_puts(&sb, i ? ", " : "opts: ");
        opt_print(&sb, &k->opts[i]);
    }
    sb_puts(&sb, k->nopt ? "\n" : "");
    kernel_nest(&sb, k, gpu);
    if (verbose >= 3 && k->choice && k->choice->tried)
        sb_puts(&sb, k->choice->tried);
    if (verbose >= 4) {
        text_print_names(&sb, k->c, 1, &k->sink);
        kernel_linear(&sb, k, gpu);
    }
    tell(p->c, &sb);
    sb_free(&sb);
}

void plan_tell(const Plan *p, bool gpu, int verbose)
{
    if (!verbose)
        return;
    Arena *a = arena_new();
    tell_steps(p, plan_steps(p, a));
    if (verbose >= 3)
        tell_notes(p);
    for (int i = 0; i < p->nkernel && verbose >= 2; i++)
        if (!p->kernels[i]->check)
            tell_kernel(p, p->kernels[i], gpu, verbose);
    arena_free(a);
}
