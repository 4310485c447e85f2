/* inspect_form.c - of a step the form in which it computes (winograd, depthwise, attention ...) and
 * the layer of the model that it belongs to.
 *
 * An algebraic variant (variants.def) is several kernels, whose loops alone do not tell it: its
 * name was recorded for the value that it computes, and steps know that value by the model's node.
 */
#include <stdlib.h>
#include <string.h>

#include "inspect.h"

static bool same_node(const Origin *a, const Origin *b)
{
    return a && b && (a == b || (!strcmp(a->node, b->node) && !strcmp(a->op, b->op)));
}

/* The variant by which a node of the model is computed; NULL: directly. */
static const char *variant_of_node(const StepForms *f, const Origin *o)
{
    for (int i = 0; o && i < f->nvariant; i++)
        if (strcmp(f->variant[i].now, "direct") != 0 && same_node(f->variant[i].origin, o))
            return f->variant[i].now;
    return NULL;
}

static bool is_product(Arena *a, const Step *s)
{
    const char *form = s->kind == STEP_KERNEL ? kernel_form(a, s->kernel) : "";
    return strstr(form, "product") || strstr(form, "convolution");
}

StepForms step_forms(const Plan *p, Arena *a)
{
    StepForms f = {.p = p, .a = a, .steps = plan_steps(p, a)};
    f.nvariant = plan_variants(a, p, &f.variant);
    f.product = NEWN(a, bool, p->nstep + 1);
    for (int i = 0; i < p->nstep; i++)
        f.product[i] = is_product(a, f.steps[i]);
    return f;
}

/* "winograd4" and "winograd2x1" as the field writes them, F(4x4) and F(2x1): tiles of so many
 * results. */
static const char *winograd_words(Arena *a, const char *variant)
{
    const char *tile = variant + strlen("winograd");
    if (*tile < '0' || *tile > '9')
        return "Winograd";
    return strchr(tile, 'x') ? arena_printf(a, "Winograd F(%s)", tile)
                             : arena_printf(a, "Winograd F(%sx%s)", tile, tile);
}

/* A variant's products stand between what prepares them and what is made of them. */
static const char *part_of_variant(const StepForms *f, const Step *s, const char *variant)
{
    bool before = false;
    for (int i = 0; i < s->number && !f->product[s->number]; i++)
        before |= f->product[i] && same_node(f->steps[i]->heaviest.origin, s->heaviest.origin);
    return arena_printf(f->a, "%s %s", winograd_words(f->a, variant),
                        f->product[s->number] ? "products"
                        : before              ? "output transform"
                                              : "input transform");
}

/* Of a convolution of the file: "3x3" of weights f32[64,1,3,3]; NULL: not known. */
static const char *window_of_node(const StepForms *f, const Origin *o, int64_t *size)
{
    for (int i = 0; o && i < f->p->c->nsource; i++) {
        const ingot_source_node *n = f->p->c->source[i];
        const int weights = !strcmp(n->op, "QLinearConv") ? 3 : 1;
        if (strcmp(n->node, o->node) != 0 || strcmp(n->op, o->op) != 0 || !strstr(n->op, "Conv") ||
            weights >= n->n_in || !n->in[weights].tensor)
            continue;
        const Node *w = (const Node *)n->in[weights].tensor;
        const char *text = "";
        *size = 1;
        for (int d = 2; w->op != OP_POISON && d < w->rank; d++) {
            text =
                arena_printf(f->a, "%s%s%lld", text, d > 2 ? "x" : "", (long long)w->shape[d]->hi);
            *size *= w->shape[d]->hi;
        }
        return *text ? text : NULL;
    }
    return NULL;
}

/* A window that was rounded up for a unit of bytes (pad_dot.c) has the file's size in its form. */
static const char *as_in_file(const StepForms *f, const Step *s, const char *form)
{
    int64_t of_file, own = 1;
    const char *window = strstr(form, "convolution") && *form >= '0' && *form <= '9'
                             ? window_of_node(f, s->heaviest.origin, &of_file)
                             : NULL;
    const size_t n = strcspn(form, " ");
    for (const char *at = form; window && at < form + n; at += strspn(at, "0123456789") + 1)
        own *= strtoll(at, NULL, 10);
    return !window || own <= of_file || own >= 2 * of_file
               ? form
               : arena_printf(f->a, "%s%s as %.*s", window, form + n, (int)n, form);
}

const char *step_form(const StepForms *f, const Step *s)
{
    if (s->kind == STEP_CALL)
        return s->call->name;
    if (s->kind != STEP_KERNEL)
        return step_kind(s);
    const char *variant = variant_of_node(f, s->heaviest.origin);
    if (variant && !strncmp(variant, "winograd", strlen("winograd")))
        return part_of_variant(f, s, variant);
    return as_in_file(f, s, kernel_form(f->a, s->kernel));
}

/* Where the last part of a path is the operator, numbered or not: "conv1/Conv", "Relu_2". */
static bool is_operator(const char *part, size_t n, const char *op)
{
    const size_t length = strlen(op);
    if (n < length || strncmp(part, op, length) != 0)
        return false;
    return n == length ||
           (part[length] == '_' && strspn(part + length + 1, "0123456789") == n - length - 1);
}

/* "/layer4/layer4.0/conv2/Conv" of a Conv is layer4.0/conv2: of two parts of which one begins with
 * the other, the longer one. */
const char *layer_of(Arena *a, const Origin *o)
{
    StrBuf sb = {0};
    for (const char *at = o->node; *at;) {
        const size_t n = strcspn(at, "/");
        const char *next = at + n + strspn(at + n, "/");
        const bool again = *next && n && !strncmp(next, at, n) && next[n] == '.';
        const bool last = !*next && sb.len && is_operator(at, n, o->op);
        if (n && !again && !last) {
            sb_puts(&sb, sb.len ? "/" : "");
            sb_write(&sb, at, n);
        }
        at = next;
    }
    const char *layer = arena_strdup(a, sb.len ? sb.data : o->node);
    sb_free(&sb);
    return layer;
}

const char *step_layer(const StepForms *f, const Step *s)
{
    const Origin *o = s->heaviest.origin ? s->heaviest.origin
                      : s->norigin       ? s->origins[s->norigin - 1]
                                         : NULL;
    return o ? layer_of(f->a, o) : NULL;
}
