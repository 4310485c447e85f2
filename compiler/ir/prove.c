/* prove.c - proofs that one integer expression never exceeds another.
 *
 * Bounds alone cannot show i * N + j < M * N for i < M, j < N: the extents are symbolic.  Here
 * every range (and run-time integer, remainder, quotient, min, max) that occurs with a factor of
 * known sign is driven to the end that makes the expression smallest, newest first, until the
 * bounds of what is left decide:
 *
 *     M*N - 1 - i*N - j   ->  (j = N-1)  M*N - N - i*N  ->  (i = M-1)  0
 *
 * A replaced occurrence is pointwise no greater than before, so other occurrences of the same
 * range may stay.  The answer "false" means "not shown". */
#include "symbolic.h"

enum { STEPS = 24, DEPTH = 3 };

static bool nonneg(Context *, Node *e, int steps);

static bool mono_has(Node *base, Node *atom, int *times)
{
    Node *f[MONO_FACTORS];
    int n = mono_factors(base, f);
    *times = 0;
    for (int i = 0; i < n; i++)
        *times += f[i] == atom;
    return *times > 0;
}

/* e = with * atom + without; false if the atom occurs squared. */
static bool split_by(Context *c, const Poly *p, Node *atom, Poly *with, Poly *without)
{
    with->n = without->n = 0;
    with->k = 0;
    without->k = p->k;
    for (int i = 0; i < p->n; i++) {
        int times;
        if (!mono_has(p->t[i].base, atom, &times)) {
            without->t[without->n++] = p->t[i];
            continue;
        }
        Node *rest;
        if (times > 1 || !mono_divide(c, p->t[i].base, atom, &rest))
            return false;
        if (!rest)
            with->k = p->t[i].coef; /* the one term that is the atom itself */
        else if (!poly_add_term(with, rest, p->t[i].coef))
            return false;
    }
    return true;
}

static Node *combine(Context *c, const Poly *with, const Poly *without, Node *value)
{
    return idx_add(c, poly_node(c, without), idx_mul(c, poly_node(c, with), value));
}

/* -1, 1: never above, never below zero; 0: unknown. */
static int sign_of(Context *c, const Poly *p, int steps)
{
    int64_t lo, hi;
    poly_bounds(p, &lo, &hi);
    if (lo >= 0)
        return 1;
    if (hi <= 0)
        return -1;
    if (p->n < 2 && p->k == 0)
        return 0;
    if (nonneg(c, poly_node(c, p), steps))
        return 1;
    Poly minus = {0};
    return poly_add_poly(&minus, p, -1) && nonneg(c, poly_node(c, &minus), steps) ? -1 : 0;
}

/* The next expression that is nowhere above e and no longer has the atom where it was; NULL if the
 * atom cannot be driven to an end.  *second: for min and max, another one; *both: both must
 * hold. */
static Node *drive(Context *c, const Poly *p, Node *atom, int steps, Node **second, bool *both)
{
    Poly with, without;
    int64_t d;
    if (!split_by(c, p, atom, &with, &without))
        return NULL;
    int sign = sign_of(c, &with, steps / 4);
    if (sign == 0)
        return NULL;
    switch (atom->op) {
    case OP_RANGE:
        return combine(c, &with, &without,
                       sign > 0 ? idx(c, 0) : idx_sub(c, atom->src[0], idx(c, 1)));
    case OP_VAR:
        if (atom->lo == INT64_MIN || atom->hi == INT64_MAX)
            return NULL;
        return combine(c, &with, &without, idx(c, sign > 0 ? atom->lo : atom->hi));
    case OP_MOD:
        if (atom->src[1]->lo < 1)
            return NULL;
        return combine(c, &with, &without,
                       sign > 0 ? idx(c, 0) : idx_sub(c, atom->src[1], idx(c, 1)));
    case OP_FLOORDIV: /* x - d < x / d * d <= x */
        if (with.n || !idx_value(atom->src[1], &d) || d < 1 || with.k % d != 0)
            return NULL;
        with.k /= d;
        return combine(c, &with, &without,
                       sign > 0 ? idx_sub(c, atom->src[0], idx(c, d - 1)) : atom->src[0]);
    case OP_MIN:
    case OP_MAX:
        *both = (atom->op == OP_MIN) == (sign > 0);
        *second = combine(c, &with, &without, atom->src[1]);
        return combine(c, &with, &without, atom->src[0]);
    default: return NULL;
    }
}

/* Atoms whose end is more than their bounds tell. */
static bool worth_driving(Node *atom, bool product)
{
    int64_t v;
    switch (atom->op) {
    case OP_RANGE: return product || !idx_value(atom->src[0], &v);
    case OP_VAR: return product;
    case OP_MOD: return product || !idx_value(atom->src[1], &v);
    case OP_FLOORDIV:
    case OP_MIN:
    case OP_MAX: return true;
    default: return false;
    }
}

static bool nonneg(Context *c, Node *e, int steps)
{
    Poly p;
    for (; steps > 0; steps--) {
        if (e->lo >= 0)
            return true;
        if (e->hi < 0 || !poly_of(&p, e))
            return false;
        Node *atoms[POLY_TERMS];
        int natom = 0;
        bool product = false;
        for (int i = 0; i < p.n; i++)
            product |= p.t[i].base->op == OP_MUL;
        for (int i = 0; i < p.n; i++) {
            Node *f[MONO_FACTORS];
            int n = mono_factors(p.t[i].base, f);
            for (int j = 0; j < n && natom < POLY_TERMS; j++) {
                int at = natom;
                while (at > 0 && node_order(atoms[at - 1], f[j]) < 0)
                    at--;
                if ((at > 0 && atoms[at - 1] == f[j]) || !worth_driving(f[j], product))
                    continue;
                for (int k = natom++; k > at; k--)
                    atoms[k] = atoms[k - 1];
                atoms[at] = f[j];
            }
        }
        Node *next = NULL, *second = NULL;
        bool both = false;
        for (int i = 0; i < natom && !next; i++)
            next = drive(c, &p, atoms[i], steps, &second, &both);
        if (!next || next == e)
            return false;
        if (second) {
            bool first = nonneg(c, next, steps / 2);
            return first == both ? nonneg(c, second, steps / 2) : first;
        }
        e = next;
    }
    return false;
}

bool prove_nonneg(Context *c, Node *e)
{
    /* Proofs make nodes, and making nodes proves things: stop before that goes deep. */
    static _Thread_local int depth;
    if (e->lo >= 0)
        return true;
    if (e->hi < 0 || depth >= DEPTH)
        return false;
    depth++;
    bool yes = nonneg(c, e, STEPS);
    depth--;
    return yes;
}

bool prove_le(Context *c, Node *e, Node *f)
{
    if (e == f || e->hi <= f->lo)
        return true;
    if (e->lo > f->hi)
        return false;
    return prove_nonneg(c, idx_sub(c, f, e));
}

/* A range that occurs has a value, so its extent is not 0, nor is any factor of the extent. */
static bool range_shows(Node *range, Node *factor)
{
    int times;
    return range->op == OP_RANGE && (range->src[0] == factor ||
                                     (factor->lo >= 0 && mono_has(range->src[0], factor, &times)));
}

static bool evidence_shows(Node *evidence, Node *factor)
{
    Node *stack[32];
    int n = 0;
    stack[n++] = evidence;
    for (int seen = 0; n && seen < 64; seen++) {
        Node *e = stack[--n];
        if (range_shows(e, factor))
            return true;
        bool walk = e->op == OP_ADD || e->op == OP_MUL || e->op == OP_FLOORDIV || e->op == OP_MOD;
        if (walk && n + 2 <= 32) {
            stack[n++] = e->src[0];
            stack[n++] = e->src[1];
        }
    }
    return false;
}

bool prove_positive(Node *d, Node *evidence)
{
    Node *f[MONO_FACTORS];
    if (d->lo >= 1 || evidence_shows(evidence, d))
        return true;
    int n = d->op == OP_MUL ? mono_factors(d, f) : 0;
    for (int i = 0; i < n; i++)
        if (f[i]->lo < 1 && !evidence_shows(evidence, f[i]))
            return false;
    return n > 0;
}
