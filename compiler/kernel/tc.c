/* tc.c - matrix units: the table of units.def, and what can be asked about their operands. */
#include <string.h>

#include "kernel.h"
#include "tc.h"

const Tc tc_units[TC_COUNT] = {
#define UNIT(id, name, feature, m, n, k, group, a, b, acc, tiles, spelling) \
    [TC_##id] = {name, feature, m, n, k, group, INGOT_##a, INGOT_##b, INGOT_##acc, tiles, spelling},
#include "units.def"
};

/* name (a; b; c) */
bool tc_read(const char *text, TcText *out)
{
    size_t n = strcspn(text, " (");
    *out = (TcText){0};
    for (int i = 0; i < TC_COUNT; i++)
        if (strlen(tc_units[i].name) == n && !memcmp(tc_units[i].name, text, n))
            out->unit = &tc_units[i];
    const char *at = text + n + strspn(text + n, " ");
    for (int i = 0; i < TC_AXES; i++) {
        if (*at != (i ? ';' : '('))
            return false;
        at++;
        at += strspn(at, " ");
        out->axis[i] = at;
        out->length[i] = (int)strcspn(at, " ;()");
        at += out->length[i];
        at += strspn(at, " ");
        if (!out->length[i])
            return false;
    }
    return at[0] == ')' && !at[1];
}

int tc_terms(Node *body, Node **term, int most)
{
    if (body->op == OP_ADD) {
        int n = tc_terms(body->src[0], term, most);
        int more = n ? tc_terms(body->src[1], term + n, most - n) : 0;
        return more ? n + more : 0;
    }
    if (body->op != OP_MUL || most < 1)
        return 0;
    *term = body;
    return 1;
}

static bool is_of(ingot_dtype load, ingot_dtype wanted)
{
    return load == wanted || (wanted == INGOT_I8 && load == INGOT_U8);
}

static Node *load_below(Node *n)
{
    while (n->op == OP_CAST)
        n = n->src[0];
    return n->op == OP_LOAD && node_is_const_i(n->src[1], 1) ? n : NULL;
}

bool tc_turned(Node *term, Node *const *range)
{
    return depends_on(term->src[1], range[TC_ROWS]);
}

bool tc_operands(const Tc *u, Node *term, Node *const *range, Node **a, Node **b)
{
    Node *x = load_below(term->src[0]), *y = load_below(term->src[1]);
    if (!x || !y || term->dtype != u->acc)
        return false;
    bool turned = tc_turned(term, range);
    *a = turned ? y : x;
    *b = turned ? x : y;
    return is_of((*a)->dtype, u->a) && is_of((*b)->dtype, u->b) && depends_on(*a, range[TC_ROWS]) &&
           !depends_on(*a, range[TC_COLUMNS]) && depends_on(*b, range[TC_COLUMNS]) &&
           !depends_on(*b, range[TC_ROWS]) && depends_on(*a, range[TC_TERMS]) &&
           depends_on(*b, range[TC_TERMS]);
}

bool tc_takes(const Tc *u, Node *r, Node *const *range)
{
    Node *term[TC_MOST_TERMS], *a, *b;
    bool over = false;
    if (r->op != OP_REDUCE || reduce_monoid(r) != INGOT_REDUCE_ADD || r->dtype != u->acc)
        return false;
    for (uint32_t i = reduce_ranges(r); i < r->nsrc; i++)
        over |= r->src[i] == range[TC_TERMS];
    int n = over ? tc_terms(r->src[0], term, TC_MOST_TERMS) : 0;
    for (int i = 0; i < n; i++)
        if (!tc_operands(u, term[i], range, &a, &b))
            return false;
    return n > 0;
}

bool tc_fragment(Context *c, const Tc *u, Node *const *range, Node *load, Node **first,
                 int64_t *pitch)
{
    enum { FRESH = 1 << 20 }; /* beyond the number of any range */
    Node *at = load->src[first_coord(load)], *zero = idx(c, 0);
    bool a = depends_on(at, range[TC_ROWS]);
    *first = substitute(c, at, 3, range, (Node *[]){zero, zero, zero});
    int64_t step, along;
    *pitch = 0;
    if (a)
        return range_stride(c, at, range[TC_ROWS], pitch) &&
               range_stride(c, at, range[TC_TERMS], &step) && step == 1;
    int64_t terms = range[TC_TERMS]->hi + 1;
    Node *line = range_new(c, FRESH, idx(c, terms / u->group));
    Node *inside = range_new(c, FRESH + 1, idx(c, u->group));
    Node *both = idx_add(c, idx_mul(c, line, idx(c, u->group)), inside);
    at = substitute(c, at, 1, &range[TC_TERMS], &both);
    return range_stride(c, at, inside, &step) && step == 1 &&
           range_stride(c, at, range[TC_COLUMNS], &along) && along == u->group &&
           (line->op != OP_RANGE || range_stride(c, at, line, pitch));
}
