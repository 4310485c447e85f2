/* inspect_dot.c - a plan for Graphviz: steps in boxes, with the tensors that go from one to the
 * next. */
#include <string.h>

#include "inspect.h"

static void label(StrBuf *sb, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            sb_puts(sb, "\\");
        sb_write(sb, *text >= ' ' && *text <= '~' ? text : "?", 1);
    }
}

static void dot_step(StrBuf *sb, const Inspection *x, const Step *s)
{
    static const char *const shapes[] = {
        [STEP_KERNEL] = "box", [STEP_CALL] = "component",     [STEP_COPY] = "cds",
        [STEP_IF] = "diamond", [STEP_LOOP] = "doubleoctagon", [STEP_CHECK] = "note",
        [STEP_INDEX] = "note"};
    (void)x;
    sb_printf(sb, "  s%d [shape=%s label=\"%d ", s->number, shapes[s->kind], s->number);
    label(sb, s->kind == STEP_KERNEL ? s->kernel->name : s->name);
    for (int i = 0; i < s->norigin && i < 4; i++) {
        sb_puts(sb, "\\n");
        label(sb, s->origins[i]->op);
        sb_puts(sb, " ");
        label(sb, s->origins[i]->node);
    }
    sb_puts(sb, "\"];\n");
}

/* An edge from who wrote it last, or from the caller. */
static void dot_reads(StrBuf *sb, const Inspection *x, const Step *s, const int *writer)
{
    for (int i = 0; i < s->nbuf; i++) {
        const Buffer *b = s->bufs[i], *root = buffer_root(b);
        if (!step_reads(s, i) || root->kind == BUF_WEIGHT)
            continue;
        if (writer[root->id] < 0 && root->kind != BUF_INPUT && root->kind != BUF_STATE)
            continue;
        if (writer[root->id] >= 0)
            sb_printf(sb, "  s%d -> s%d [label=\"", writer[root->id], s->number);
        else
            sb_printf(sb, "  t%d -> s%d [label=\"", root->id, s->number);
        StrBuf type = {0};
        print_shape(&type, x->p->c, b->dtype, b->rank, b->dims);
        label(sb, type.data);
        sb_free(&type);
        sb_puts(sb, "\"];\n");
    }
}

static void dot_end(StrBuf *sb, const Buffer *b)
{
    sb_printf(sb, "  t%d [shape=ellipse label=\"", b->id);
    label(sb, b->name ? b->name : "");
    sb_puts(sb, "\"];\n");
}

void inspect_dot(StrBuf *sb, const Inspection *x)
{
    const Plan *p = x->p;
    Arena *a = arena_new();
    Step **steps = plan_steps(p, a);
    int *writer = NEWN(a, int, p->nbuffer + 1);
    for (int i = 0; i < p->nbuffer; i++)
        writer[i] = -1;
    sb_puts(sb, "digraph plan {\n  node [fontname=\"Helvetica\" fontsize=10];\n  edge "
                "[fontname=\"Helvetica\" fontsize=9];\n");
    for (int i = 0; i < p->c->ninput; i++)
        dot_end(sb, p->input[i]);
    for (int i = 0; i < p->c->noutput; i++)
        dot_end(sb, p->output[i]);
    for (int i = 0; i < p->c->nstate; i++)
        dot_end(sb, p->state[i]);
    for (int n = 0; n < p->nstep; n++) {
        const Step *s = steps[n];
        if (s->kind == STEP_INDEX)
            continue;
        dot_step(sb, x, s);
        dot_reads(sb, x, s, writer);
        for (int i = 0; i < s->nbuf; i++)
            if (step_writes(s, i))
                writer[buffer_root(s->bufs[i])->id] = n;
    }
    for (int i = 0; i < p->c->noutput; i++)
        if (writer[p->output[i]->id] >= 0)
            sb_printf(sb, "  s%d -> t%d;\n", writer[p->output[i]->id], p->output[i]->id);
    sb_puts(sb, "}\n");
    arena_free(a);
}
