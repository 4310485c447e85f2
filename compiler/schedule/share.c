/* share.c - equal kernels become one, and so do kernels that are equal but for numbers that they
 * compute with.
 *
 *     y = quantize(sum * 0.0209863f + b)      y = quantize(sum * c0 + b), called with c0 =
 *                                             0.0209863f
 *     y = quantize(sum * 0.0585613f + b)                                  and with c0 = 0.0585613f
 *
 * These numbers (the scales and zero points of a quantised network, the slopes and offsets of
 * others) become the scalar arguments of the one kernel, a PARAM without sources each.  What the
 * text of a kernel, its opts or its lanes may follow from is none of them: bounds, zeros, what a
 * division by which is a product, what coordinates are made of. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "schedule.h"

/* The text of a kernel of this plan: with what its nodes say nothing of. */
static uint64_t add_text(StrBuf *text, Arena *a, const Kernel *k, const bool *blank)
{
    kernel_text(text, a, k, true, blank);
    uint64_t hash = hash_bytes(k->serial, text->data, text->len) | 1;
    const bool own[] = {k->serial, k->check};
    sb_write(text, own, sizeof own);
    return hash;
}

typedef struct Twin {
    struct Twin *next;
    Kernel *k;
    StrBuf text;
    uint64_t hash;
} Twin;

static void forget_twins(Map *known)
{
    for (size_t i = 0; i < known->cap; i++)
        for (Twin *t = known->value[i]; t; t = t->next)
            sb_free(&t->text);
    map_free(known);
}

static Twin *twin_of(Plan *p, const Kernel *k)
{
    Arena *scratch = arena_new();
    Twin *t = NEW(p->arena, Twin);
    t->hash = add_text(&t->text, scratch, k, NULL);
    arena_free(scratch);
    return t;
}

/* The kernel of this text, or NULL. */
static Kernel *find_twin(const Map *known, const Twin *of)
{
    for (const Twin *t = map_get(known, of->hash); t; t = t->next)
        if (t->text.len == of->text.len && !memcmp(t->text.data, of->text.data, of->text.len))
            return t->k;
    return NULL;
}

static void keep_twin(Map *known, Twin *t, Kernel *k)
{
    t->k = k;
    t->next = map_get(known, t->hash);
    map_put(known, t->hash, t);
}

/* The kernel with its loops numbered as they nest. They have numbers by first use, which a gate
 * that only the first of some strips has may be; terms of integer sums stand in the order of these.
 *
 *     strip 0: i is range 0, j is range 1: i*28 + j
 *     strip 1: j is range 0, i is range 1: j + i*28
 */
static Kernel *with_usual_ranges(const Kernel *of)
{
    Kernel *k = kernel_copy(of);
    Node **from = NEWN(k->c->arena, Node *, k->naxis), **to = NEWN(k->c->arena, Node *, k->naxis);
    for (int i = 0; i < k->naxis; i++) {
        from[i] = k->axes[i].range;
        to[i] = k->axes[i].range = range_new(k->c, i, from[i]->src[0]);
    }
    k->sink = substitute(k->c, k->sink, k->naxis, from, to);
    return k;
}

static Kernel *unique(Plan *p, Map *known, Kernel *k)
{
    Twin *t = twin_of(p, k), *usual = NULL;
    Kernel *same = find_twin(known, t);
    if (!same) {
        Kernel *renumbered = with_usual_ranges(k);
        usual = twin_of(p, renumbered);
        same = find_twin(known, usual);
        ingot_context_free(renumbered->c);
    }
    if (same) {
        sb_free(&t->text);
        if (usual)
            sb_free(&usual->text);
        ingot_context_free(k->c);
        return same;
    }
    k->hash = t->hash;
    k = kernel_renew(k); /* without what was tried on the way */
    keep_twin(known, t, k);
    keep_twin(known, usual, k);
    vec_push(p->arena, p->kernels, p->nkernel, k);
    return k;
}

static void share_block(Plan *p, Map *known, Block *b)
{
    for (int i = 0; i < b->n; i++) {
        Step *s = b->step[i];
        if (s->kernel) {
            s->choice = s->kernel->choice;
            for (int j = 0; j < s->kernel->narg; j++) {
                int *same = &s->kernel->args[j].same;
                *same = *same && s->bufs[*same - 1] == s->bufs[j] ? *same : 0;
            }
            s->kernel = unique(p, known, s->kernel);
        }
        share_block(p, known, &s->body);
        share_block(p, known, &s->other);
    }
}

/* ---- equal but for numbers ------------------------------------------------------------------- */

/* Kernels of one form: with the same text, once the numbers that may be arguments are left out. */
typedef struct KernelForm {
    struct KernelForm *next;
    StrBuf text;
    Kernel **kernel;
    int n;
} KernelForm;

static double number_value(Node *k)
{
    return dtype_is_float(k->dtype) ? node_float(k) : (double)k->arg.i;
}

/* What may be one: of integers the zero point of a byte that is widened. */
static bool is_number(const Node *k)
{
    return k->op == OP_CONST &&
           (k->dtype == INGOT_I32 || (dtype_is_float(k->dtype) && k->dtype != INGOT_F64));
}

/* A constant operand that what computes with it is not chosen by. */
static bool takes_any(const Node *user, uint32_t operand)
{
    Node *k = user->src[operand];
    double v = number_value(k);
    int exponent;
    if (k->dtype == INGOT_I32) {
        const Node *x = user->nsrc == 2 ? user->src[1 - operand] : NULL;
        return (user->op == OP_ADD || user->op == OP_SUB) && x->op == OP_CAST &&
               dtype_is_int(x->src[0]->dtype) && dtype_info[x->src[0]->dtype].bytes == 1 &&
               fabs(v) <= UINT8_MAX;
    }
    if (!isfinite(v) || fabs(v) < FLT_MIN)
        return false;
    switch (user->op) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL: return true;
    case OP_DIV: return operand == 1 && fabs(frexp(v, &exponent)) != 0.5;
    default: return false;
    }
}

/* The constants of a kernel that may be arguments, in the order of its text; blank: which nodes
 * they are. */
static Node **numbers_of(Arena *a, const Kernel *k, bool *blank, int *count)
{
    int n;
    Node *const *order = kernel_nodes(k, &n), **number = NULL;
    bool *fixed = NEWN(a, bool, k->c->nnode);
    *count = 0;
    for (int i = 0; i < n; i++)
        for (uint32_t j = 0; j < order[i]->nsrc; j++) {
            Node *t = order[i]->src[j];
            if (is_number(t))
                fixed[t->id] |= !takes_any(order[i], j);
        }
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        blank[t->id] = is_number(t) && !fixed[t->id];
        if (blank[t->id])
            vec_push(a, number, *count, t);
    }
    return number;
}

static void find_form(Arena *a, Map *forms, KernelForm ***list, int *nlist, Kernel *k)
{
    StrBuf text = {0};
    bool *blank = NEWN(a, bool, k->c->nnode);
    int n;
    (void)numbers_of(a, k, blank, &n);
    if (!n)
        return;
    uint64_t hash = add_text(&text, a, k, blank);
    KernelForm *first = map_get(forms, hash), *f = first;
    while (f && (f->text.len != text.len || memcmp(f->text.data, text.data, text.len) != 0))
        f = f->next;
    if (f) {
        sb_free(&text);
    } else {
        f = NEW(a, KernelForm);
        *f = (KernelForm){.next = first, .text = text};
        map_put(forms, hash, f);
        vec_push(a, *list, *nlist, f);
    }
    vec_push(a, f->kernel, f->n, k);
}

/* A constant of a kernel, and which of its arguments stands for it. */
typedef struct {
    const Node *constant;
    int scalar;
} Replaced;

/* The argument, as the type of what it stands for. */
static Node *argument_for(Context *c, const Replaced *r, const Scalar *scalars)
{
    Node *x =
        node_make(c, OP_PARAM, scalars[r->scalar].dtype, (Arg){.i = r->scalar}, 0, NULL, 0, NULL);
    return x->dtype == r->constant->dtype ? x : node_cast(c, x, (ingot_dtype)r->constant->dtype);
}

/* The kernel with PARAMs in place of these constants, of which there may be more. */
static Kernel *with_scalars(const Kernel *of, int n, const Scalar *scalars, int nreplaced,
                            const Replaced *replaced)
{
    Kernel *k = kernel_copy(of);
    Arena *a = arena_new();
    int count, total;
    Node *const *order = kernel_nodes(of, &total), **copy = NEWN(a, Node *, of->c->nnode);
    k->nscalar = n;
    k->scalars = NEWN(k->c->arena, Scalar, n);
    memcpy(k->scalars, scalars, (size_t)n * sizeof *scalars);
    for (int i = 0; i < total; i++) {
        Node *t = order[i], **src = NEWN(a, Node *, t->nsrc + 1);
        for (uint32_t j = 0; j < t->nsrc; j++)
            src[j] = copy[t->src[j]->id];
        for (count = 0; count < nreplaced && replaced[count].constant != t; count++) {
        }
        copy[t->id] = count < nreplaced ? argument_for(k->c, &replaced[count], scalars)
                                        : node_make(k->c, (Op)t->op, (ingot_dtype)t->dtype, t->arg,
                                                    (int)t->nsrc, src, 0, NULL);
    }
    k->sink = copy[of->sink->id];
    arena_free(a);
    k = kernel_renew(k);
    StrBuf text = {0};
    a = arena_new();
    k->hash = add_text(&text, a, k, NULL);
    sb_free(&text);
    arena_free(a);
    return k;
}

/* What becomes of a kernel. */
typedef struct {
    Kernel *into;
    const double *scalars;
} Merged;

/* Number j has one value in all kernels of a form. */
static bool is_alike(Node ***number, const KernelForm *f, int j)
{
    for (int i = 1; i < f->n; i++)
        if (number_value(number[i][j]) != number_value(number[0][j]))
            return false;
    return true;
}

/* An integer among the n arguments that the float j equals in all of them: a zero point that is
 * added and taken away again; -1: there is none. */
static int same_as(Node ***number, const KernelForm *f, int j, int n, const int *at)
{
    for (int s = 0; s < n && dtype_is_float(number[0][j]->dtype); s++) {
        bool same = !dtype_is_float(number[0][at[s]]->dtype);
        for (int i = 0; i < f->n && same; i++)
            same = number_value(number[i][j]) == number_value(number[i][at[s]]);
        if (same)
            return s;
    }
    return -1;
}

/* The numbers that differ, and no others, are arguments. */
static void merge_form(Plan *p, Arena *a, Map *merged, const KernelForm *f)
{
    Node ***number = NEWN(a, Node **, f->n);
    int n = 0, nscalar = 0, nreplaced = 0;
    for (int i = 0; i < f->n; i++) {
        int count;
        number[i] = numbers_of(a, f->kernel[i], NEWN(a, bool, f->kernel[i]->c->nnode), &count);
        if (i && count != n)
            BUG("kernels of one text with %d and %d numbers that may be arguments", n, count);
        n = count;
    }
    Scalar *scalars = NULL;
    Replaced *replaced = NULL;
    int *at = NEWN(a, int, n);
    for (int j = 0; j < 2 * n; j++) { /* integers first */
        const int number_at = j % n, whole = !dtype_is_float(number[0][number_at]->dtype);
        if (whole != (j < n) || is_alike(number, f, number_at))
            continue;
        const int as = same_as(number, f, number_at, nscalar, at);
        const Replaced r = {number[0][number_at], as >= 0 ? as : nscalar};
        vec_push(a, replaced, nreplaced, r);
        if (as >= 0)
            continue;
        Scalar s = {.dtype = (ingot_dtype)r.constant->dtype, .lo = INFINITY, .hi = -INFINITY};
        s.whole = true;
        for (int i = 0; i < f->n; i++) {
            double v = number_value(number[i][number_at]);
            s.whole &= v == rint(v);
            s.lo = fmin(s.lo, v);
            s.hi = fmax(s.hi, v);
        }
        at[nscalar] = number_at;
        vec_push(a, scalars, nscalar, s);
    }
    Kernel *into = with_scalars(f->kernel[0], nscalar, scalars, nreplaced, replaced);
    for (int i = 0; i < f->n; i++) {
        double *value = NEWN(p->arena, double, nscalar);
        for (int j = 0; j < nscalar; j++)
            value[j] = number_value(number[i][at[j]]);
        Merged *m = NEW(a, Merged);
        *m = (Merged){into, value};
        map_put(merged, (uint64_t)(uintptr_t)f->kernel[i], m);
    }
}

static void replace_block(const Map *merged, Block *b)
{
    for (int i = 0; i < b->n; i++) {
        Step *s = b->step[i];
        const Merged *m = s->kernel ? map_get(merged, (uint64_t)(uintptr_t)s->kernel) : NULL;
        if (m) {
            s->kernel = m->into;
            s->scalars = m->scalars;
        }
        replace_block(merged, &s->body);
        replace_block(merged, &s->other);
    }
}

static void share_forms(Plan *p)
{
    Arena *a = arena_new();
    Map forms = {0}, merged = {0}, known = {0};
    KernelForm **form = NULL;
    int nform = 0;
    for (int i = 0; i < p->nkernel; i++)
        find_form(a, &forms, &form, &nform, p->kernels[i]);
    for (int i = 0; i < nform; i++)
        if (form[i]->n > 1)
            merge_form(p, a, &merged, form[i]);
    replace_block(&merged, &p->main);
    int n = p->nkernel;
    Kernel **old = p->kernels;
    p->kernels = NULL;
    p->nkernel = 0;
    for (int i = 0; i < n; i++) {
        const Merged *m = map_get(&merged, (uint64_t)(uintptr_t)old[i]);
        Kernel *k = m ? m->into : old[i];
        if (map_get(&known, (uint64_t)(uintptr_t)k))
            continue;
        map_put(&known, (uint64_t)(uintptr_t)k, k);
        vec_push(p->arena, p->kernels, p->nkernel, k);
    }
    for (int i = 0; i < n; i++)
        if (map_get(&merged, (uint64_t)(uintptr_t)old[i]))
            ingot_context_free(old[i]->c);
    for (int i = 0; i < nform; i++)
        sb_free(&form[i]->text);
    map_free(&forms);
    map_free(&merged);
    map_free(&known);
    arena_free(a);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void number_block(Plan *p, Block *b, int *kernels)
{
    for (int i = 0; i < b->n; i++) {
        Step *step = b->step[i];
        step->number = p->nstep++;
        if (step->kernel) {
            if (!*step->kernel->name && step->kernel->check)
                snprintf(step->kernel->name, sizeof step->kernel->name, "check%02d", step->number);
            else if (!*step->kernel->name)
                kernel_name(p->c, step->kernel, (*kernels)++, step);
            step->name = step->kernel->name;
        }
        step->first_inner = p->nstep;
        number_block(p, &step->body, kernels);
        number_block(p, &step->other, kernels);
        step->last_inner = p->nstep - 1;
    }
}

/* An argument is a constant where all steps of its kernel have one there, and moved where one has
 * a part of another buffer. */
static void find_early(Plan *p)
{
    Arena *a = arena_new();
    int n;
    Step *const *step = kernel_steps(p, a, &n);
    for (int i = 0; i < p->nkernel; i++)
        for (int j = 0; j < p->kernels[i]->narg; j++) {
            p->kernels[i]->args[j].early = true;
            p->kernels[i]->args[j].moved = false;
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < step[i]->kernel->narg; j++) {
            const Buffer *b = step[i]->bufs[j];
            step[i]->kernel->args[j].early &= b->kind == BUF_WEIGHT;
            step[i]->kernel->args[j].moved |= b->base && !idx_is(b->base_offset, 0);
        }
    arena_free(a);
}

/* Equal kernels become one; steps and kernels get their numbers and names. */
void kernel_share(Plan *p)
{
    Map known = {0};
    share_block(p, &known, &p->main);
    forget_twins(&known);
    share_forms(p);
    find_early(p);
    int kernels = 0;
    number_block(p, &p->main, &kernels);
}
