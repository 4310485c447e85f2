/* inspect_explain.c - one node, kernel or tensor in some 40 lines: where it went, what it costs,
 * why it was stored or not. */
#include <stdlib.h>
#include <string.h>

#include "inspect.h"

enum { MAX_LINES = 40, MAX_NAMES = 6, WIDTH = 108 };

typedef struct {
    StrBuf *sb;
    const Inspection *x;
    Arena *a;
    Step **steps;
    StepForms forms;
    const int64_t *rounds; /* by step: of its loops */
    double total;          /* ms */
    int lines, most, dropped;
    int verbose;
} Explain;

/* ---- lines --------------------------------------------------------------------------------- */

/* "word        text": the text in lines of WIDTH, as far as there is room. */
static void say_line(Explain *e, const char *word, const char *text)
{
    bool first = true;
    do {
        size_t n = strcspn(text, "\n"), room = WIDTH - 12;
        if (n > room && !e->verbose) {
            for (n = room; n > room / 2 && text[n] != ' ';)
                n--;
            n = n > room / 2 ? n : room;
        }
        if (e->lines >= e->most) {
            e->dropped++;
        } else {
            sb_printf(e->sb, "%-11s %.*s\n", first ? word : "", (int)n, text);
            e->lines++;
        }
        first = false;
        text += n;
        text += *text == '\n' || *text == ' ';
    } while (*text);
}

static void say_format(Explain *e, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say_format(Explain *e, const char *word, const char *format, ...)
{
    StrBuf sb = {0};
    va_list ap;
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    say_line(e, word, sb.data);
    sb_free(&sb);
}

static const char *bytes_text(Arena *a, double n)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB"};
    int i = 0;
    for (; n >= 1024 && i < 3; i++)
        n /= 1024;
    return arena_printf(a, i ? "%.3g %s" : "%.0f %s", n, unit[i]);
}

static const char *count_text(Arena *a, double n)
{
    static const char *const unit[] = {"", " k", " M", " G", " T"};
    int i = 0;
    for (; n >= 1000 && i < 4; i++)
        n /= 1000;
    return arena_printf(a, "%.3g%s", n, unit[i]);
}

static const char *ms_text(Arena *a, double ms)
{
    return ms >= 1 ? arena_printf(a, "%.3g ms", ms) : arena_printf(a, "%.3g us", ms * 1000);
}

static double step_ms(const Explain *e, const Step *s)
{
    const Times *t = &e->x->times;
    if (t->ms && t->ms[s->number] >= 0)
        return t->ms[s->number];
    return (double)e->rounds[s->number] *
           times_roof_ms(t, (double)step_flops(s), (double)step_bytes(s));
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void say_note(Explain *e, const Note *n)
{
    StrBuf sb = {0};
    if (n->node) { /* its value */
        sb_printf(&sb, "%s ", op_info[n->node->op].text);
        print_shape(&sb, e->x->p->c, (ingot_dtype)n->node->dtype, n->node->rank, n->node->shape);
        sb_puts(&sb, ": ");
    }
    sb_puts(&sb, n->why);
    if (n->bytes >= 0)
        sb_printf(&sb, "; %s", bytes_text(e->a, (double)n->bytes));
    if (n->cost.apart > 0 || n->cost.together > 0)
        sb_printf(&sb,
                  n->step ? "; estimated: %s cycles apart, %s together"
                          : "; estimated: %s cycles stored, %s computed where it is read",
                  count_text(e->a, n->cost.apart), count_text(e->a, n->cost.together));
    if (n->other)
        sb_printf(&sb, "; it takes the bytes of tensor b%d", n->other->id);
    say_line(e, n->what, sb.data);
    sb_free(&sb);
}

static int say_notes_of(Explain *e, Node *node)
{
    int said = 0;
    for (int i = 0; i < e->x->p->nnote; i++)
        if (e->x->p->notes[i].node == node) {
            say_note(e, &e->x->p->notes[i]);
            said++;
        }
    return said;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static const char *buffer_name(Arena *a, const Context *c, const Buffer *b)
{
    const Origin *o = b->node ? node_origin(c, b->node) : NULL;
    const Data *d = b->node && b->node->op == OP_DATA ? b->node->arg.ptr : NULL;
    return b->name        ? b->name
           : d && d->name ? d->name
           : o ? arena_printf(a, "%s of %s", b->kind == BUF_WEIGHT ? "constant" : "result",
                              printable(a, o->node))
               : arena_printf(a, "b%d", b->id);
}

static void say_buffer(Explain *e, const char *word, const Buffer *b)
{
    StrBuf sb = {0};
    const Plan *p = e->x->p;
    sb_printf(&sb, "%s ", buffer_name(e->a, p->c, b));
    print_shape(&sb, p->c, b->dtype, b->rank, b->dims);
    sb_printf(&sb, ", %s", bytes_text(e->a, (double)b->bytes));
    if (b->kind == BUF_ARENA || b->kind == BUF_STATE)
        sb_printf(&sb, " at %lld of %s, steps %d to %d", (long long)b->offset,
                  p->memories[b->memory].name ? p->memories[b->memory].name : "the arena", b->first,
                  b->last);
    if (b->device)
        sb_printf(&sb, ", device %d", b->device);
    if (b->layout.n) {
        sb_puts(&sb, ", layout");
        layout_print(&sb, &b->layout);
    }
    say_line(e, word, sb.data);
    sb_free(&sb);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A text of lines, which is used up. */
static void say_text(Explain *e, const char *word, StrBuf *sb)
{
    while (sb->len && sb->data[sb->len - 1] == '\n')
        sb->data[--sb->len] = 0;
    say_line(e, word, sb->data ? sb->data : "");
    sb_free(sb);
    *sb = (StrBuf){0};
}

static void say_opts(Explain *e, const Kernel *k)
{
    StrBuf sb = {0};
    for (int i = 0; i < k->nopt; i++) {
        sb_puts(&sb, i ? ", " : "");
        opt_print(&sb, &k->opts[i]);
    }
    say_line(e, "opts", sb.len ? sb.data : "none");
    sb_free(&sb);
    Arena *a = arena_new();
    const char *why = outside_reason(a, k, e->x->t);
    if (why)
        say_line(e, "outside of", why);
    arena_free(a);
    if (k->choice && k->choice->tried && e->verbose >= 3)
        say_line(e, "tried", k->choice->tried);
}

static void say_kernel(Explain *e, const Kernel *k)
{
    const bool gpu = e->x->t->gpu;
    StrBuf sb = {0};
    kernel_expression(&sb, k);
    say_text(e, "computes", &sb);
    say_opts(e, k);
    if (k->choice)
        say_format(e, ".sched", "kernel %016llx %d", (unsigned long long)k->choice->key,
                   k->choice->nth);
    if (e->verbose >= 1) {
        kernel_nest(&sb, k, gpu);
        say_text(e, "loops", &sb);
    }
    if (e->verbose >= 2) {
        kernel_linear(&sb, k, gpu);
        say_text(e, "statements", &sb);
    }
    if (e->verbose >= 3) {
        render_kernel(&sb, e->x->t, k, k->name);
        say_text(e, "code", &sb);
    }
    if (e->verbose >= 4) {
        text_print_names(&sb, k->c, 1, &k->sink);
        say_text(e, "ir", &sb);
    }
}

static void say_origins(Explain *e, const Step *s)
{
    StrBuf sb = {0};
    for (int i = 0; i < s->norigin && i < MAX_NAMES; i++)
        sb_printf(&sb, "%s%s '%s'", i ? ", " : "", printable(e->a, s->origins[i]->op),
                  printable(e->a, s->origins[i]->node));
    if (s->norigin > MAX_NAMES)
        sb_printf(&sb, " and %d more", s->norigin - MAX_NAMES);
    if (sb.len)
        say_line(e, "of", sb.data);
    sb_free(&sb);
}

static void say_step(Explain *e, const Step *s)
{
    const double rounds = (double)e->rounds[s->number];
    double ms = step_ms(e, s), flops = rounds * (double)step_flops(s),
           bytes = rounds * (double)step_bytes(s);
    bool measured = e->x->times.ms && e->x->times.ms[s->number] >= 0;
    say_format(e, "step", "%d of %d, %s %s", s->number, e->x->p->nstep,
               s->kind == STEP_KERNEL ? "kernel" : step_kind(s), s->name);
    say_line(e, "form", step_form(&e->forms, s));
    say_origins(e, s);
    if (rounds > 1)
        say_format(e, "loop", "it runs %.0f times", rounds);
    /* a nominal machine's milliseconds are nobody's */
    say_format(e, "costs", "%s operations, %s, %.3g flops per byte: %s, %.2g %% of the run",
               count_text(e->a, flops), bytes_text(e->a, bytes), bytes > 0 ? flops / bytes : 0.0,
               measured ? arena_printf(e->a, "measured %s", ms_text(e->a, ms)) : "estimated",
               e->total > 0 ? 100 * ms / e->total : 0.0);
    if (s->kind == STEP_KERNEL)
        say_kernel(e, s->kernel);
    for (int i = 0; i < s->nbuf; i++)
        if (step_writes(s, i))
            say_buffer(e, "writes", s->bufs[i]);
    for (int i = 0; i < s->nbuf; i++)
        if (step_reads(s, i) && !step_writes(s, i))
            say_buffer(e, "reads", s->bufs[i]);
}

/* The last names of a path that fit: "layer4.1/conv2" of "resnet/stages/layer4.1/conv2". */
static const char *path_tail(Arena *a, const char *path, size_t room)
{
    for (const char *slash; strlen(path) > room && (slash = strchr(path, '/'));)
        path = slash + 1;
    size_t n = strlen(path);
    if (n <= room)
        return path;
    for (n = room - 2; n && ((unsigned char)path[n] & 0xc0) == 0x80;) /* within a letter of UTF-8 */
        n--;
    return arena_printf(a, "%.*s..", (int)n, path);
}

static const char *name_of(const Step *s)
{
    return s->kind == STEP_KERNEL ? s->kernel->name : s->name;
}

/* A line for each step, and of columns that are as wide as these steps need. */
static void say_table(Explain *e, int n, Step *const *steps)
{
    enum { FIXED = 15, LEAST = 16 }; /* letters of number and share; of the layer */
    size_t name = 0, form = 0;
    for (int i = 0; i < n; i++) {
        const size_t a = strlen(name_of(steps[i])), b = strlen(step_form(&e->forms, steps[i]));
        name = a > name ? a : name;
        form = b > form ? b : form;
    }
    const size_t used = FIXED + name + form + 4, room = WIDTH - 12;
    say_line(e, "steps", "share of the run, kernel, form, layer");
    for (int i = 0; i < n; i++) {
        const char *layer = step_layer(&e->forms, steps[i]);
        say_format(e, "", "%4d  %5.1f %%  %-*s  %-*s  %s", steps[i]->number,
                   e->total > 0 ? 100 * step_ms(e, steps[i]) / e->total : 0.0, (int)name,
                   name_of(steps[i]), (int)form, step_form(&e->forms, steps[i]),
                   layer ? path_tail(e->a, printable(e->a, layer),
                                     used + LEAST < room ? room - used : LEAST)
                         : "-");
    }
}

/* One line a step, and the one that takes longest in full. */
static void say_steps(Explain *e, int n, Step *const *steps)
{
    const Step *most = NULL;
    if (n > 1)
        say_table(e, n, steps);
    for (int i = 0; i < n; i++)
        if (!most || step_ms(e, steps[i]) > step_ms(e, most))
            most = steps[i];
    if (most)
        say_step(e, most);
}

static bool computes(const Step *s, Node *n)
{
    for (int i = 0; i < s->nvalue; i++)
        if (s->values[i] == n)
            return true;
    return false;
}

/* ---- a node of the file ---------------------------------------------------------------------- */

static bool same_origin(const Origin *o, const ingot_source_node *s)
{
    return o && !strcmp(o->node, s->node) && !strcmp(o->op, s->op);
}

static void say_values(Explain *e, const char *word, const ingot_source_value *v, int n)
{
    StrBuf sb = {0};
    for (int i = 0; i < n && i < MAX_NAMES; i++) {
        Node *t = (Node *)v[i].tensor;
        sb_printf(&sb, "%s%s ", i ? ", " : "",
                  *v[i].name ? printable(e->a, v[i].name) : "(left out)");
        if (t && t->op != OP_POISON)
            print_shape(&sb, e->x->p->c, (ingot_dtype)t->dtype, t->rank, t->shape);
    }
    if (n > MAX_NAMES)
        sb_printf(&sb, " and %d more", n - MAX_NAMES);
    if (sb.len)
        say_line(e, word, sb.data);
    sb_free(&sb);
}

static void say_source(Explain *e, const ingot_source_node *s)
{
    const Context *c = e->x->p->c;
    StrBuf attributes = {0};
    say_format(e, "node", "%s, %s%s%s", printable(e->a, s->node), printable(e->a, s->domain),
               *s->domain ? ":" : "", printable(e->a, s->op));
    say_values(e, "inputs", s->in, s->n_in);
    say_values(e, "outputs", s->out, s->n_out);
    for (int i = 0; i < s->n_attr; i++)
        sb_printf(&attributes, "%s%s = %s", i ? "; " : "", printable(e->a, s->attr[2 * i]),
                  printable(e->a, s->attr[2 * i + 1]));
    if (attributes.len)
        say_line(e, "attributes", attributes.data);
    sb_free(&attributes);
    int n, nstep = 0, said = 0;
    Node **roots = NEWN(e->a, Node *, c->noutput + c->nstate + 1);
    int nroot = 0;
    for (int i = 0; i < c->noutput; i++)
        roots[nroot++] = c->outputs[i].node;
    for (int i = 0; i < c->nstate; i++)
        if (c->states[i].next)
            roots[nroot++] = c->states[i].next;
    Node **order = graph_toposort(e->a, nroot, roots, &n);
    for (int i = 0; i < n; i++)
        for (const OriginList *l = c->origins[order[i]->id]; l; l = l->rest)
            if (same_origin(l->origin, s)) {
                said += say_notes_of(e, order[i]);
                break;
            }
    Step **ours = NEWN(e->a, Step *, e->x->p->nstep + 1);
    for (int i = 0; i < e->x->p->nstep; i++) {
        bool here = false;
        for (int j = 0; j < e->steps[i]->norigin && !here; j++)
            here = same_origin(e->steps[i]->origins[j], s);
        if (here && e->steps[i]->kind != STEP_INDEX)
            ours[nstep++] = e->steps[i];
    }
    say_steps(e, nstep, ours);
    if (!nstep && said)
        say_line(e, "became", "a constant, computed at compile time");
    else if (!nstep)
        say_line(e, "became",
                 "no step: what reads it addresses what it is made of, or nothing needs it");
    else if (!said)
        say_line(
            e, "not stored",
            "it is computed inside of the kernels above, for no reader would gain from memory");
}

/* ---- what is meant --------------------------------------------------------------------------- */

static bool holds(const char *text, const char *word)
{
    return strstr(text, word) != NULL;
}

/* The names that hold the word, or what there is. */
static void suggest(Explain *e, const char *word, StrBuf *near)
{
    const Context *c = e->x->p->c;
    int n = 0;
    for (int pass = 0; pass < 2 && !n; pass++)
        for (int i = 0; i < c->nsource && n < MAX_NAMES; i++)
            if (pass || holds(c->source[i]->node, word) || holds(c->source[i]->op, word))
                sb_printf(near, "%s'%s' (%s)",
                          n++    ? ", "
                          : pass ? "there are "
                                 : "did you mean ",
                          c->source[i]->node, c->source[i]->op);
    if (!n)
        sb_puts(near, "this model has no file; kernels have names like k00");
}

/* The whole model. */
static void explain_all(Explain *e)
{
    int n = 0;
    Step **all = NEWN(e->a, Step *, e->x->p->nstep + 1);
    for (int i = 0; i < e->x->p->nstep; i++)
        if (e->steps[i]->kind != STEP_INDEX)
            all[n++] = e->steps[i];
    e->most = 1 << 20; /* a line a step is what is asked for */
    say_steps(e, n, all);
}

static bool explain_what(Explain *e, const char *what)
{
    const Plan *p = e->x->p;
    size_t n = strlen(what);
    int found = 0;
    for (int i = 0; i < p->c->nsource; i++)
        if (!strcmp(p->c->source[i]->node, what)) {
            say_source(e, p->c->source[i]);
            found++;
        }
    for (int i = 0; i < p->nstep && !found; i++) {
        const Step *s = e->steps[i];
        bool number = strspn(what, "0123456789") == n && s->number == (int)strtol(what, NULL, 10);
        bool name = s->kind != STEP_INDEX && !strncmp(s->name, what, n) &&
                    (!s->name[n] || s->name[n] == '_');
        if (number || name) {
            say_step(e, s);
            for (int k = 0; k < p->nnote; k++)
                if (p->notes[k].node && computes(s, p->notes[k].node))
                    say_note(e, &p->notes[k]);
            found++;
            break;
        }
    }
    for (int i = 0; i < p->nbuffer && !found; i++) {
        const Buffer *b = p->buffers[i];
        if (strcmp(buffer_name(e->a, p->c, b), what) != 0 || b->last < b->first)
            continue;
        say_buffer(e, "tensor", b);
        if (b->node)
            say_notes_of(e, b->node);
        for (int k = 0; k < p->nstep; k++)
            for (int j = 0; j < e->steps[k]->nbuf; j++)
                if (e->steps[k]->bufs[j] == b)
                    say_format(e, step_writes(e->steps[k], j) ? "written by" : "read by",
                               "step %d, %s", k, e->steps[k]->name);
        found++;
    }
    return found > 0;
}

bool explain(StrBuf *sb, const Inspection *x, const char *what, int verbose, StrBuf *near)
{
    Explain e = {.sb = sb,
                 .x = x,
                 .a = arena_new(),
                 .most = verbose ? 1 << 20 : MAX_LINES - 1,
                 .verbose = verbose};
    e.steps = plan_steps(x->p, e.a);
    e.rounds = plan_rounds(x->p, e.a);
    e.forms = step_forms(x->p, e.a);
    for (int i = 0; i < x->p->nstep; i++)
        e.total += e.steps[i]->kind == STEP_INDEX ? 0 : step_ms(&e, e.steps[i]);
    bool found = !what || explain_what(&e, what);
    if (!what)
        explain_all(&e);
    if (!found)
        suggest(&e, what, near);
    if (e.dropped)
        sb_printf(sb, "%-11s %d more lines: -v\n", "", e.dropped);
    arena_free(e.a);
    return found;
}
