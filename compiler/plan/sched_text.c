/* sched_text.c - the plan as text, in the grammars of docs/sched.md: the whole of it for people,
 * and the record of what was decided, which sched_parse.c reads back. */
#include <string.h>

#include "decisions.h"
#include "plan.h"

static void print_buffer(StrBuf *sb, const Plan *p, const Buffer *b)
{
    static const char *const kind[] = {"input", "output", "weight", "arena", "state"};
    sb_printf(sb, "buffer b%d %s %s", b->id, kind[b->kind], dtype_info[b->dtype].name);
    print_dims(sb, p->c, b->rank, b->dims);
    if (b->kind == BUF_ARENA || b->kind == BUF_STATE || b->kind == BUF_WEIGHT)
        sb_printf(sb, " at %lld", (long long)b->offset);
    else
        sb_printf(sb, " slot %d", b->slot);
    const char *memory = p->memories[b->memory].name;
    if (memory && (b->kind == BUF_ARENA || b->kind == BUF_STATE))
        sb_printf(sb, " in %s", memory);
    if (b->device)
        sb_printf(sb, " device %d", b->device);
    sb_puts(sb, " layout");
    layout_print(sb, &b->layout);
    sb_puts(sb, "\n");
}

static void print_axes(StrBuf *sb, const Kernel *k)
{
    sb_puts(sb, "axes");
    for (int i = 0; i < k->naxis; i++) {
        Node *extent = k->axes[i].range->src[0];
        sb_printf(sb, " %s%s:", k->axes[i].reduced ? "+" : "", k->axes[i].name);
        print_index(sb, k->c, extent);
    }
    sb_puts(sb, "\n");
}

static void print_opts(StrBuf *sb, int n, const Opt *opts)
{
    for (int i = 0; i < n; i++) {
        sb_puts(sb, "  ");
        opt_print(sb, &opts[i]);
        sb_puts(sb, "\n");
    }
}

static void print_kernel(StrBuf *sb, const Kernel *k)
{
    sb_printf(sb, "kernel %s %016llx\n  ", k->name, (unsigned long long)k->hash);
    print_axes(sb, k);
    print_opts(sb, k->nopt, k->opts);
}

static void print_block(StrBuf *sb, const Context *c, const Block *b, int depth)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        static const char *const kind[] = {"run", "call", "copy", "if", "loop", "check", "index"};
        for (int j = 0; j < depth; j++)
            sb_puts(sb, "  ");
        sb_printf(sb, "%s", kind[s->kind]);
        if (s->kernel || s->kind == STEP_CALL)
            sb_printf(sb, " %s", s->name);
        for (int j = 0; j < s->nbuf; j++)
            sb_printf(sb, " b%d", s->bufs[j]->id);
        for (int j = 0; s->kernel && j < s->kernel->nscalar; j++)
            sb_printf(sb, " %.9g", s->scalars[j]);
        if (s->cond)
            sb_printf(sb, " while b%d", s->cond->id);
        if (s->trip) {
            sb_puts(sb, " trip ");
            print_index(sb, c, s->trip);
        }
        if (s->require) {
            Node *part[] = {s->require->least, s->require->value, s->require->greatest};
            for (int j = 0; j < 3; j++) {
                sb_puts(sb, j ? " <= " : " ");
                print_index(sb, c, part[j]);
            }
        }
        if (s->device)
            sb_printf(sb, " device %d", s->device);
        sb_puts(sb, "\n");
        print_block(sb, c, &s->body, depth + 1);
        if (s->other.n) {
            for (int j = 0; j < depth; j++)
                sb_puts(sb, "  ");
            sb_puts(sb, "else\n");
            print_block(sb, c, &s->other, depth + 1);
        }
    }
}

void plan_print(StrBuf *sb, Plan *p)
{
    sb_puts(sb, "plan 1\n");
    sb_printf(sb, "arena %lld weights %lld\n", (long long)p->arena_bytes,
              (long long)p->weights_bytes);
    for (int i = 0; i < p->nmemory; i++)
        if (p->memories[i].name)
            sb_printf(sb, "memory %s %lld\n", p->memories[i].name, (long long)p->memories[i].bytes);
        else if (p->memories[i].device)
            sb_printf(sb, "device %d arena %lld\n", p->memories[i].device,
                      (long long)p->memories[i].bytes);
    for (int i = 0; i < p->nbuffer; i++)
        print_buffer(sb, p, p->buffers[i]);
    for (int i = 0; i < p->nkernel; i++)
        print_kernel(sb, p->kernels[i]);
    sb_puts(sb, "steps\n");
    print_block(sb, p->c, &p->main, 1);
}

/* ---- the record ------------------------------------------------------------------------------ */

/* In one line, whatever the names of the model's nodes are. */
void sched_origin(StrBuf *sb, const Origin *o)
{
    print_name(sb, o->op);
    sb_puts(sb, " ");
    print_name(sb, o->node);
}

static void print_origins(StrBuf *sb, const Step *s)
{
    for (int i = 0; i < s->norigin && i < 4; i++) {
        sb_puts(sb, i ? ", " : "  # ");
        sched_origin(sb, s->origins[i]);
    }
    sb_puts(sb, "\n");
}

/* The kernel that the choice is for, one: of a single step. */
static void print_choice_head(StrBuf *sb, const Step *s, const Choice *ch, bool one)
{
    sb_printf(sb, "kernel %016llx", (unsigned long long)ch->key);
    if (one)
        sb_printf(sb, " only %d of %d", ch->nth, ch->of);
    if (ch->copy)
        sb_printf(sb, " copy %d", ch->copy_arg);
    if (ch->at && !one)
        sb_printf(sb, " at %016llx form %08x", (unsigned long long)ch->at, (unsigned)ch->form);
    print_origins(sb, s);
    sb_puts(sb, "  # ");
    print_axes(sb, s->kernel);
}

static void print_arg(StrBuf *sb, const Context *c, const Step *s, int i, bool copy,
                      const Layout *l)
{
    const Buffer *b = s->bufs[i];
    sb_printf(sb, "  arg %d %s", i, copy ? "copy" : "layout");
    layout_print(sb, l);
    sb_printf(sb, "  # %s", dtype_info[b->dtype].name);
    print_dims(sb, c, b->rank, b->dims);
    sb_puts(sb, b->kind == BUF_WEIGHT ? " weight\n" : "\n");
}

/* layout: by argument, NULL: as the record has it. */
static void print_args(StrBuf *sb, const Context *c, const Step *s, const Choice *ch,
                       const Layout *const *layout)
{
    for (int i = 0; i < ch->narg; i++) {
        const ArgChoice *a = &ch->arg[i];
        if (a->owned)
            print_arg(sb, c, s, i, false, layout && layout[i] ? layout[i] : &a->layout);
        if (a->copied)
            print_arg(sb, c, s, i, true, &a->copy);
    }
}

void sched_print_step(StrBuf *sb, const Plan *p, const Step *s, bool only, int nopt,
                      const Opt *opts, const Layout *const *layout)
{
    print_choice_head(sb, s, s->choice, only);
    print_args(sb, p->c, s, s->choice, layout);
    print_opts(sb, nopt, opts);
}

void sched_print_layout(StrBuf *sb, const Plan *p, const Step *s, bool only, int arg,
                        const Layout *l)
{
    print_choice_head(sb, s, s->choice, only);
    print_arg(sb, p->c, s, arg, false, l);
    sb_puts(sb, "  auto\n");
}

/* What has been said of all steps of a kernel: the text of its first step's choice. */
typedef struct Printed {
    struct Printed *next;
    const Choice *choice;
    const char *text;
} Printed;

static void print_choices(StrBuf *sb, Arena *a, Map *known, const Context *c, const Block *b)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        if (s->kind == STEP_KERNEL && s->kernel->choice) {
            const Choice *ch = s->kernel->choice;
            StrBuf text = {0};
            print_args(&text, c, s, ch, NULL);
            print_opts(&text, s->kernel->nopt, s->kernel->opts);
            Printed *done = map_get(known, ch->key), *first = done;
            while (done &&
                   (done->choice->copy != ch->copy || done->choice->copy_arg != ch->copy_arg))
                done = done->next;
            const char *body = text.data ? text.data : "";
            if (!done || strcmp(done->text, body)) {
                print_choice_head(sb, s, ch, done != NULL);
                sb_puts(sb, body);
            }
            if (!done) {
                done = NEW(a, Printed);
                *done = (Printed){first, ch, arena_strdup(a, body)};
                map_put(known, ch->key, done);
            }
            sb_free(&text);
        }
        print_choices(sb, a, known, c, &s->body);
        print_choices(sb, a, known, c, &s->other);
    }
}

/* Whatever folder a target file lies in, and whatever its name has that ends a word of a line. */
const char *sched_target(Arena *a, const char *target)
{
    const char *slash = strrchr(target, '/');
    char *word = arena_strdup(a, slash ? slash + 1 : target);
    for (char *at = word; (at = strpbrk(at, " \t\r\n#"));)
        *at = '_';
    return word;
}

void sched_print_values(StrBuf *sb, const Plan *p, const char *target)
{
    sb_printf(sb, "sched 2\ntarget %s", sched_target(p->arena, target));
    if (p->c->function)
        sb_printf(sb, " function %s", function_name(p->c));
    sb_puts(sb, "\n");
    if (p->ram.byte > 0 || p->ram.hold > 0)
        sb_printf(sb, "ram byte %.17g hold %.17g\n", p->ram.byte, p->ram.hold);
    values_print(sb, p);
}

void sched_print_kernels(StrBuf *sb, const Plan *p)
{
    Arena *a = arena_new();
    Map known = {0};
    print_choices(sb, a, &known, p->c, &p->main);
    map_free(&known);
    arena_free(a);
}
