/* inspect_kernels.c - the kernels of a plan as JSON: what each computes, its loops, and its text
 * after every pass. */
#include <string.h>

#include "inspect.h"
#include "lowered.h"

const char *const instr_kind_name[INSTR_KINDS] = {
    [INSTR_MULTIPLY_ADD] = "multiply-add",
    [INSTR_ARITHMETIC] = "arithmetic",
    [INSTR_LOAD] = "load",
    [INSTR_STORE] = "store",
    [INSTR_SHUFFLE] = "shuffle",
    [INSTR_CONVERT] = "convert",
    [INSTR_ADDRESS] = "integer",
    [INSTR_BRANCH] = "branch",
};

static void text_of(StrBuf *sb, const char *name, StrBuf *text)
{
    sb_printf(sb, ",\n     \"%s\": ", name);
    json_string(sb, text->data ? text->data : "");
    sb_free(text);
    *text = (StrBuf){0};
}

static void steps_of(StrBuf *sb, const Block *b, const Kernel *k, const char **comma)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        if (s->kind == STEP_KERNEL && s->kernel == k) {
            sb_printf(sb, "%s%d", *comma, s->number);
            *comma = ", ";
        }
        steps_of(sb, &s->body, k, comma);
        steps_of(sb, &s->other, k, comma);
    }
}

static void axes(StrBuf *sb, const Kernel *k)
{
    sb_puts(sb, ",\n     \"axes\": [");
    for (int i = 0; i < k->naxis; i++) {
        StrBuf extent = {0};
        print_dim(&extent, k->c, k->axes[i].range->src[0]);
        sb_printf(sb, "%s{\"name\": \"%s\", \"kind\": \"%s\", \"extent\": ", i ? ", " : "",
                  k->axes[i].name, k->axes[i].reduced ? "reduce" : "loop");
        if (k->axes[i].range->src[0]->op == OP_CONST)
            sb_puts(sb, extent.data);
        else
            json_string(sb, extent.data);
        sb_puts(sb, "}");
        sb_free(&extent);
    }
    sb_puts(sb, "]");
}

static void args(StrBuf *sb, const Kernel *k)
{
    sb_puts(sb, ",\n     \"args\": [");
    for (int i = 0; i < k->narg; i++) {
        StrBuf text = {0};
        const KernelArg *a = &k->args[i];
        print_shape(&text, k->c, a->dtype, a->rank, a->dims);
        sb_puts(sb, i ? ", {\"type\": " : "{\"type\": ");
        json_string(sb, text.data);
        sb_free(&text);
        text = (StrBuf){0};
        layout_print(&text, &a->layout);
        sb_puts(sb, ", \"layout\": ");
        json_string(sb, text.data + strspn(text.data, " "));
        sb_free(&text);
        sb_printf(sb, ", \"read\": %s, \"written\": %s}", a->read ? "true" : "false",
                  a->written ? "true" : "false");
    }
    sb_puts(sb, "]");
}

void inspect_opts(StrBuf *sb, const Kernel *k)
{
    sb_puts(sb, ", \"opts\": [");
    for (int i = 0; k && i < k->nopt; i++) {
        StrBuf one = {0};
        opt_print(&one, &k->opts[i]);
        sb_puts(sb, i ? ", " : "");
        json_string(sb, one.data);
        sb_free(&one);
    }
    sb_puts(sb, "]");
}

/* Of its sums of products, those that no unit has. */
static void sums(StrBuf *sb, const Inspection *x, const Kernel *k)
{
    Arena *a = arena_new();
    const char *why = outside_reason(a, k, x->t);
    if (!x->t->gpu)
        sb_printf(sb, ", \"by_element\": %d", sums_by_element(k));
    if (why) {
        sb_puts(sb, ", \"outside\": ");
        json_string(sb, why);
    }
    arena_free(a);
}

/* Lines as a list. */
static void tried(StrBuf *sb, const Kernel *k)
{
    Arena *a = arena_new();
    const char *comma = "";
    sb_puts(sb, ", \"tried\": [");
    for (const char *p = k->choice ? k->choice->tried : NULL; p && *p;) {
        size_t n = strcspn(p, "\n");
        sb_puts(sb, comma);
        json_string(sb, arena_printf(a, "%.*s", (int)n, p));
        comma = ", ";
        p += n + (p[n] == '\n');
    }
    sb_puts(sb, "]");
    arena_free(a);
}

static void assembly(StrBuf *sb, const Assembly *s)
{
    sb_puts(sb, ",\n     \"assembly\": {\"compiler\": ");
    json_string(sb, s->compiler);
    sb_puts(sb, ", \"loop\": ");
    json_string(sb, s->text);
    sb_printf(sb, ", \"instructions\": %d, \"from_memory\": %d, \"function\": %d, \"count\": {",
              s->total, s->from_memory, s->function);
    for (int i = 0; i < INSTR_KINDS; i++)
        sb_printf(sb, "%s\"%s\": %d", i ? ", " : "", instr_kind_name[i], s->count[i]);
    sb_puts(sb, "}}");
}

/* What --sched calls it: the line "kernel KEY NTH" of a record. */
static void sched_key(StrBuf *sb, const Kernel *k)
{
    if (k->choice)
        sb_printf(sb, ", \"sched\": \"%016llx %d%s\"", (unsigned long long)k->choice->key,
                  k->choice->nth, k->choice->copy ? " copy" : "");
}

/* Which of the passes of its lowering changed something. */
static void passes(StrBuf *sb, const Lowered *l)
{
    const char *comma = "";
    sb_puts(sb, ",\n     \"passes\": [");
    for (int i = 0; i < LOWER_PASSES; i++) {
        if (!l->changed[i])
            continue;
        sb_printf(sb, "%s\"%s\"", comma, lower_pass[i].name);
        comma = ", ";
    }
    sb_puts(sb, "]");
}

static void kernel(StrBuf *sb, const Inspection *x, const Kernel *k)
{
    const char *comma = "";
    StrBuf text = {0};
    sb_puts(sb, "{\"name\": ");
    json_string(sb, k->name);
    sb_printf(sb, ", \"hash\": \"%016llx\"", (unsigned long long)k->hash);
    sched_key(sb, k);
    sb_puts(sb, ", \"steps\": [");
    steps_of(sb, &x->p->main, k, &comma);
    sb_printf(sb, "], \"flops\": %lld, \"bytes\": %lld, \"parts\": %d, \"serial\": %s",
              (long long)k->flops, (long long)k->bytes, kernel_parts(k),
              k->serial ? "true" : "false");
    axes(sb, k);
    inspect_opts(sb, k);
    sums(sb, x, k);
    tried(sb, k);
    args(sb, k);
    kernel_expression(&text, k);
    text_of(sb, "expression", &text);
    text_print_names(&text, k->c, 1, &k->sink);
    text_of(sb, "ir", &text);
    kernel_nest(&text, k, x->t->gpu);
    text_of(sb, "nest", &text);
    passes(sb, kernel_lowered(k, x->t->gpu));
    kernel_linear(&text, k, x->t->gpu);
    text_of(sb, "linear", &text);
    render_kernel(&text, x->t, k, k->name);
    text_of(sb, "code", &text);
    for (int i = 0; i < x->p->nkernel && x->assembly; i++)
        if (x->p->kernels[i] == k && x->assembly[i])
            assembly(sb, x->assembly[i]);
    sb_puts(sb, "}");
}

void inspect_kernels(StrBuf *sb, const Inspection *x)
{
    const char *comma = "\n    ";
    sb_puts(sb, "  \"kernel_list\": [");
    for (int i = 0; i < x->p->nkernel; i++) {
        if (x->p->kernels[i]->check)
            continue;
        sb_puts(sb, comma);
        kernel(sb, x, x->p->kernels[i]);
        comma = ",\n    ";
    }
    sb_puts(sb, "\n  ]\n");
}
