/* ops_einsum.c - Einstein summation: "bij,bjk->bik", with "...", repeated labels (diagonals) and
 * implicit output (labels that come once, in alphabetical order; numpy.einsum).
 *
 * Operands are contracted from left to right.  For each pair both tensors are brought to a common
 * order of labels, [kept..., summed...], with size 1 where a label is missing; then multiplied and
 * summed over the tail.  A label is summed as soon as neither the output nor a later operand has
 * it. */
#include <ctype.h>
#include <string.h>

#include "ops.h"

enum { ELLIPSIS = 128, LABELS = ELLIPSIS + INGOT_MAX_RANK };

typedef struct {
    ingot_tensor *x;
    int n;
    int label[2 * INGOT_MAX_RANK]; /* characters, or ELLIPSIS + i counted from the last axis */
} EinsumTerm;

/* Parses one term up to ',', '-' or the end.  rank: of the operand, or -1 for the output, whose
 * "..." stands for `dots` axes.  Returns the number of axes behind "...", or -1 on a bad term. */
static int parse_term(const char **at, int rank, int dots, EinsumTerm *t)
{
    const char *s = *at;
    int named = 0, seen = 0;
    for (const char *p = s; *p && *p != ',' && *p != '-'; p++)
        named += isalpha((unsigned char)*p) != 0;
    if (rank >= 0)
        dots = rank - named;
    t->n = 0;
    for (; *s && *s != ',' && *s != '-'; s++) {
        if (*s == ' ')
            continue;
        if (isalpha((unsigned char)*s)) {
            if (t->n == INGOT_MAX_RANK)
                return -1;
            t->label[t->n++] = *s;
            continue;
        }
        if (strncmp(s, "...", 3) != 0 || seen++ || dots < 0 || t->n + dots > INGOT_MAX_RANK)
            return -1;
        for (int i = dots; i-- > 0;)
            t->label[t->n++] = ELLIPSIS + i;
        s += 2;
    }
    *at = s;
    if (rank >= 0 && t->n != rank)
        return -1;
    return seen ? dots : 0;
}

static int find(const EinsumTerm *t, int label)
{
    for (int i = 0; i < t->n; i++)
        if (t->label[i] == label)
            return i;
    return -1;
}

/* x[.., i, .., i, ..] -> the diagonal, with the label once. */
static void take_diagonals(ingot_context *c, EinsumTerm *t)
{
    EinsumTerm u = {.n = 0};
    ingot_dim *dims[INGOT_MAX_RANK];
    ingot_tensor *index[INGOT_MAX_RANK];
    for (int i = 0; i < t->n; i++)
        if (find(&u, t->label[i]) < 0) {
            dims[u.n] = ingot_shape(t->x, i);
            u.label[u.n++] = t->label[i];
        }
    if (u.n == t->n)
        return;
    for (int i = 0; i < t->n; i++) {
        int at = find(&u, t->label[i]);
        if (!ingot_require(c, ingot_shape(t->x, i), dims[at], dims[at],
                           "einsum: the size of an axis whose label comes twice")) {
            t->x = ingot_poison(c);
            return;
        }
        index[i] = ingot_iota(c, u.n, dims, at);
    }
    u.x = ingot_gather(c, t->x, index);
    *t = u;
}

/* t's axes in the order of `order`, size 1 where it has no such label. */
static ingot_tensor *align(ingot_context *c, const EinsumTerm *t, int n, const int *order)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    int perm[INGOT_MAX_RANK], k = 0;
    for (int i = 0; i < n; i++) {
        int at = find(t, order[i]);
        dims[i] = at < 0 ? ingot_dim_const(c, 1) : ingot_shape(t->x, at);
        if (at >= 0)
            perm[k++] = at;
    }
    return ingot_reshape(c, ingot_permute(c, t->x, perm), n, dims);
}

/* a * b (b may be NULL), summed over the labels for which keep[] is false. */
static bool contract(ingot_context *c, const EinsumTerm *a, const EinsumTerm *b, const bool *keep,
                     EinsumTerm *out)
{
    int order[4 * INGOT_MAX_RANK], n = 0, kept = 0;
    bool seen[LABELS] = {false};
    for (int pass = 0; pass < 2; pass++) { /* the kept ones, then the summed ones */
        for (int side = 0; side < 2; side++) {
            const EinsumTerm *t = side ? b : a;
            for (int i = 0; t && i < t->n; i++) {
                int label = t->label[i];
                if (keep[label] != (pass == 0) || seen[label])
                    continue;
                seen[label] = true;
                order[n++] = label;
            }
        }
        if (pass == 0)
            kept = n;
    }
    if (n > INGOT_MAX_RANK) {
        ingot_error(c, INGOT_UNSUPPORTED, "einsum: %d labels in one product", n);
        return false;
    }
    unsigned axes = ((1u << n) - 1) & ~((1u << kept) - 1);
    ingot_tensor *p = align(c, a, n, order);
    if (b)
        p = ingot_mul(c, p, align(c, b, n, order));
    out->x = ingot_sum(c, p, axes, false);
    out->n = kept;
    memcpy(out->label, order, (size_t)kept * sizeof *order);
    return !ingot_is_poison(out->x);
}

static void implicit_output(const EinsumTerm *t, int n, int dots, EinsumTerm *out)
{
    int count[LABELS] = {0};
    out->n = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < t[i].n; k++)
            count[t[i].label[k]]++;
    for (int i = dots; i-- > 0;)
        out->label[out->n++] = ELLIPSIS + i;
    for (int l = 0; l < ELLIPSIS && out->n < INGOT_MAX_RANK; l++)
        if (count[l] == 1)
            out->label[out->n++] = l;
}

ingot_tensor *ingot_einsum(ingot_context *c, const char *equation, int n,
                           ingot_tensor *const *operands)
{
    const char *at = equation;
    if (n < 1)
        return ingot_error(c, INGOT_INVALID, "einsum '%s' of no operands", equation);
    EinsumTerm *t = ingot_alloc(c, (size_t)n * sizeof *t), out = {.n = 0};
    int dots = 0;
    for (int i = 0; i < n; i++) {
        if (ingot_is_poison(operands[i]))
            return operands[i];
        int d = parse_term(&at, ingot_rank(operands[i]), 0, &t[i]);
        if (d < 0 || (i + 1 < n ? *at++ != ',' : *at == ','))
            return ingot_error(
                c, INGOT_INVALID,
                "einsum '%s': term %d does not fit its operand of rank %d, or there are "
                "not %d terms",
                equation, i, ingot_rank(operands[i]), n);
        dots = d > dots ? d : dots;
        t[i].x = ops_widen(c, operands[i]);
    }
    if (strncmp(at, "->", 2) == 0) {
        at += 2;
        if (parse_term(&at, -1, dots, &out) < 0 || *at)
            return ingot_error(c, INGOT_INVALID, "einsum '%s': bad output term", equation);
    } else if (*at) {
        return ingot_error(c, INGOT_INVALID, "einsum '%s': '%s' is no output term", equation, at);
    } else {
        implicit_output(t, n, dots, &out);
    }
    for (int i = 0; i < n; i++) {
        take_diagonals(c, &t[i]);
        if (ingot_is_poison(t[i].x))
            return t[i].x;
    }
    EinsumTerm acc = t[0];
    for (int i = n == 1 ? 0 : 1; i < n; i++) {
        bool keep[LABELS] = {false};
        EinsumTerm next;
        for (int k = 0; k < out.n; k++)
            keep[out.label[k]] = true;
        for (int j = i + 1; j < n; j++)
            for (int k = 0; k < t[j].n; k++)
                keep[t[j].label[k]] = true;
        if (!contract(c, &acc, n == 1 ? NULL : &t[i], keep, &next))
            return ingot_poison(c);
        acc = next;
    }
    for (int k = 0; k < out.n; k++)
        if (find(&acc, out.label[k]) < 0)
            return ingot_error(c, INGOT_INVALID, "einsum '%s': an output label is in no operand",
                               equation);
    if (out.n != acc.n)
        return ingot_error(c, INGOT_INVALID, "einsum '%s': a label comes twice in the output",
                           equation);
    return ingot_cast(c, align(c, &acc, out.n, out.label), ingot_dtype_of(operands[0]));
}
