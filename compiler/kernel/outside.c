/* outside.c - why a sum of products is not the matrix unit's, or DOT's, though its types would be,
 * for who reads what `ingot compile` prints. */
#include <string.h>

#include "kernel.h"
#include "tc.h"

/* A unit of the core that multiplies such operands, or NULL. */
static const Tc *unit_for(const Machine *m, Node *sum)
{
    Node *term[TC_MOST_TERMS];
    if (sum->op != OP_REDUCE || reduce_size(sum) != 1 || reduce_monoid(sum) != INGOT_REDUCE_ADD ||
        !tc_terms(sum->src[0], term, TC_MOST_TERMS))
        return NULL;
    for (const Tc *u = NULL; (u = tc_next(m, u));)
        if (!u->lanes && sum->dtype == u->acc &&
            tc_reads((ingot_dtype)below_casts(term[0]->src[0])->dtype, u->a) &&
            tc_reads((ingot_dtype)below_casts(term[0]->src[1])->dtype, u->b))
            return u;
    return NULL;
}

/* The terms of one of the sums that TC names are of this axis: "r0.i" of r0. */
static bool is_named(const TcText *tc, const char *axis)
{
    const int length = (int)strlen(axis);
    for (int i = TC_TERMS; i < tc->n; i++)
        if (tc->length[i] >= length && !memcmp(tc->axis[i], axis, (size_t)length) &&
            (tc->length[i] == length || tc->axis[i][length] == '.'))
            return true;
    return false;
}

static bool is_taken(const Kernel *k, const Node *sum)
{
    TcText tc;
    for (int i = 0; i < k->nopt; i++) {
        if (k->opts[i].kind != OPT_TC || !tc_read(k->units, k->opts[i].axis, &tc))
            continue;
        for (uint32_t s = reduce_ranges(sum); s < sum->nsrc; s++)
            for (int j = 0; j < k->naxis; j++)
                if (k->axes[j].range == sum->src[s] && is_named(&tc, k->axes[j].name))
                    return true;
    }
    return false;
}

/* Of the axes that the unit could have the longest columns; the most terms of whole groups; 0: it
 * could have none. */
static bool has_block(const Kernel *k, const Tc *u, Node *sum, int64_t *columns, int64_t *terms)
{
    const View v = kernel_view(k);
    bool any = false;
    for (int i = 0; i < v.nrange; i++)
        for (int j = 0; j < v.nrange; j++)
            for (uint32_t t = reduce_ranges(sum); t < sum->nsrc; t++) {
                Node *range[] = {v.range[i], v.range[j], sum->src[t]};
                const int64_t n = range_extent(range[1]), each = range_extent(range[2]);
                if (i == j || range_extent(range[0]) == 1 || !tc_takes(u, sum, range))
                    continue;
                any = true;
                *columns = n > *columns ? n : *columns;
                *terms = each > *terms && each % u->group == 0 ? each : *terms;
            }
    return any;
}

/* By how many of its terms DOT would take the sum, by the types that it multiplies; 0: by none. */
static int terms_for_dot(const Machine *m, Node *sum)
{
    enum { BYTES = 4, HALVES = 2 };
    Node *product = sum->op == OP_REDUCE ? sum->src[0] : sum;
    if (product->op != OP_MUL || !m->lanes || reduce_monoid(sum) != INGOT_REDUCE_ADD)
        return 0;
    int terms = sum->dtype == INGOT_F32 ? HALVES : sum->dtype == INGOT_I32 ? BYTES : 0;
    for (int i = 0; i < 2; i++) {
        const ingot_dtype d = (ingot_dtype)below_casts(product->src[i])->dtype;
        if (terms == HALVES ? d != INGOT_BF16 : d != INGOT_I8 && d != INGOT_U8)
            terms = 0;
    }
    return machine_dots(m, terms, terms == HALVES) ? terms : 0;
}

static bool has_dot(const Kernel *k, const Node *sum)
{
    for (int i = 0; i < k->nopt; i++)
        for (int j = 0; j < k->naxis && k->opts[i].kind == OPT_DOT; j++)
            for (uint32_t s = reduce_ranges(sum); s < sum->nsrc; s++)
                if (!strcmp(k->axes[j].name, k->opts[i].axis) && k->axes[j].range == sum->src[s])
                    return true;
    return false;
}

/* The axis of an opt is this one, a part of it ("r0.o") or a row of which it is one ("i1_i2"). */
static bool has_axis(const char *opt, const char *axis)
{
    const size_t length = strlen(axis);
    for (const char *at = opt; *at; at += strcspn(at, "._"), at += *at != 0)
        if (strcspn(at, "._") == length && !memcmp(at, axis, length))
            return true;
    return false;
}

/* Lanes are its terms, or results of it. */
static bool has_lanes(const Kernel *k, Node *sum)
{
    for (int i = 0; i < k->nopt; i++)
        for (int j = 0; j < k->naxis && k->opts[i].kind == OPT_VECTOR; j++)
            if (has_axis(k->opts[i].axis, k->axes[j].name) &&
                depends_on(sum->src[0], k->axes[j].range))
                return true;
    return false;
}

int sums_by_element(const Kernel *k)
{
    int n, found = 0;
    Node *const *order = kernel_end_nodes(k, &n);
    for (int i = 0; i < n; i++)
        found += is_sum_of_products(order[i]) && !is_taken(k, order[i]) && !has_dot(k, order[i]) &&
                 !has_lanes(k, order[i]);
    return found;
}

/* Why DOT does not take such a sum. */
static const char *dot_reason(Arena *a, Node *sum, int terms)
{
    const char *what = terms == 2 ? "two products of bf16" : "four products of bytes";
    const char *why = "what it multiplies is computed where it is read, or differs from row to row "
                      "and lane to lane";
    bool whole = false;
    for (uint32_t s = reduce_ranges(sum); s < sum->nsrc; s++)
        whole |= range_extent(sum->src[s]) % terms == 0;
    if (!whole)
        return arena_printf(a, "%s at once: no axis of its terms is a multiple of %d", what, terms);
    if (dot_terms(sum))
        why = "what moves with its lanes is computed when the model runs, and does not lie so";
    return arena_printf(a, "%s at once: %s", what, why);
}

const char *outside_reason(Arena *a, const Kernel *k, const Target *t)
{
    int n;
    Node *const *order = kernel_end_nodes(k, &n);
    for (int i = 0; i < n && !t->gpu && !has_units(&t->machine); i++) {
        const int terms = order[i]->op == OP_REDUCE ? terms_for_dot(&t->machine, order[i]) : 0;
        if (terms && !has_dot(k, order[i]))
            return dot_reason(a, order[i], terms);
    }
    for (int i = 0; i < n; i++) {
        const Tc *u = unit_for(&t->machine, order[i]);
        int64_t columns = 0, terms = 0;
        if (!u || is_taken(k, order[i]))
            continue;
        const char *why = "what it multiplies is computed where it is read, or lies otherwise";
        if (!has_block(k, u, order[i], &columns, &terms))
            why = "its operands share all axes but one, or are computed where they are read: there "
                  "are not rows and columns";
        else if (columns < u->n)
            why = arena_printf(a, "it has %lld columns, the unit %d", (long long)columns, u->n);
        else if (!terms)
            why = arena_printf(a, "its terms are no multiple of %d", u->group);
        else if (kernel_view(k).nstore > 1)
            why = "it makes several results";
        return arena_printf(a, "%s: %s", u->name, why);
    }
    return NULL;
}
