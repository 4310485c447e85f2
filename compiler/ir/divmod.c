/* divmod.c - floor division and remainder of integer expressions.
 *
 * Both divide the same way, so that quotient and remainder of one expression keep the same
 * numerator and meet again (recombine.c).  For a constant divisor d:
 *
 *   1  split off the multiples:    (a*d + r) / d -> a + r/d,          (a*d + r) % d -> r % d
 *      with r shifted into [0, d) from below where its lower bound is known, so that the
 *      numerator is not negative and C's division is right
 *   2  r in one bucket of d:        r/d -> 0,                          r % d -> r
 *   3  congruence:                  coefficients c and c - d are the same for %
 *   4  a common divisor g of d and some terms, the rest r in [0, g):
 *                        (A*g + r) / d -> A / (d/g),       (A*g + r) % d -> A % (d/g) * g + r
 *   5  nests:   (x/a + k)/d -> (x + k*a)/(a*d),   x%(a*d)/d -> x/d%a,   x%(a*d)%d -> x%d
 *
 * For a symbolic divisor D the multiples come from polynomial division, and r in [0, D) from a
 * proof over the extents (prove.c).  x / 0 = 0 and x % 0 = 0, so rules need D >= 1 where that
 * matters; a range over an extent with factor D shows it. */
#include "symbolic.h"

static Node *divmod(Context *, Node *a, Node *b, bool mod);

static Node *divmod_node(Context *c, Node *a, Node *b, bool mod)
{
    return idx_make(c, mod ? OP_MOD : OP_FLOORDIV, a, b);
}

static int64_t gcd64(int64_t a, int64_t b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

void poly_split(const Poly *p, int64_t g, Poly *high, Poly *low)
{
    high->n = low->n = 0;
    for (int i = 0; i < p->n; i++) {
        int64_t q = p->t[i].coef / g, r = p->t[i].coef % g;
        if (q)
            high->t[high->n++] = (Term){p->t[i].base, q};
        if (r)
            low->t[low->n++] = (Term){p->t[i].base, r};
    }
    high->k = floor_div(p->k, g);
    low->k = floor_mod(p->k, g);
}

bool poly_in_bucket(const Poly *p, int64_t d, int64_t *q)
{
    int64_t lo, hi, v;
    poly_bounds(p, &lo, &hi);
    if (lo == INT64_MIN || hi == INT64_MAX)
        return false;
    *q = floor_div(lo, d);
    return *q == floor_div(hi, d) && !__builtin_mul_overflow(*q, d, &v) &&
           !__builtin_sub_overflow(p->k, v, &v);
}

/* p = rem + d * quot, |coefficients of rem| < d, and the least value of rem (if known) in [0,
 *     d). */
static bool split_multiples(const Poly *p, int64_t d, Poly *quot, Poly *rem)
{
    poly_split(p, d, quot, rem);
    int64_t lo, hi, shift;
    poly_bounds(rem, &lo, &hi);
    if (lo == INT64_MIN || lo == INT64_MAX)
        return true;
    int64_t q = floor_div(lo, d);
    return !__builtin_mul_overflow(q, d, &shift) &&
           !__builtin_sub_overflow(rem->k, shift, &rem->k) &&
           !__builtin_add_overflow(quot->k, q, &quot->k);
}

/* x % (a*d) is congruent to x modulo d: drop such inner remainders. */
static bool drop_inner_mods(Poly *p, int64_t d)
{
    for (int i = 0; i < p->n; i++) {
        Term t = p->t[i];
        int64_t e, ce;
        if (t.base->op != OP_MOD || !idx_value(t.base->src[1], &e) || e <= 0 ||
            __builtin_mul_overflow(t.coef, e, &ce) || ce % d != 0)
            continue;
        Poly q = *p;
        if (!poly_add_term(&q, t.base, -t.coef) || !poly_add(&q, t.base->src[0], t.coef))
            continue;
        *p = q;
        return true;
    }
    return false;
}

/* Rule 3: with coefficients nearest to zero modulo d, the numerator may fit one bucket; then
 * r % d is linear, and so is r / d = (r - r % d) / d. */
static Node *congruent(Context *c, const Poly *r, int64_t d, bool mod)
{
    Poly s = {.k = r->k}, q = {0};
    bool changed = false;
    for (int i = 0; i < r->n; i++) {
        int64_t coef = r->t[i].coef;
        if (coef > 0 && coef > d - coef) {
            coef -= d;
            changed = true;
        } else if (coef < 0 && -coef > d + coef) {
            coef += d;
            changed = true;
        }
        s.t[s.n++] = (Term){r->t[i].base, coef};
        if (coef != r->t[i].coef)
            q.t[q.n++] = (Term){r->t[i].base, r->t[i].coef > 0 ? 1 : -1};
    }
    int64_t bucket;
    if (!changed || !poly_in_bucket(&s, d, &bucket))
        return NULL;
    s.k -= bucket * d;
    q.k = bucket;
    return poly_node(c, mod ? &s : &q);
}

/* One term with two values only: a line through both results. */
static Node *two_points(Context *c, const Poly *r, int64_t d, bool mod)
{
    if (r->n != 1)
        return NULL;
    Node *x = r->t[0].base;
    int64_t coef = r->t[0].coef, v0, v1, f0, f1;
    if (x->lo == INT64_MIN || x->hi == INT64_MAX || x->hi - 1 != x->lo)
        return NULL;
    if (__builtin_mul_overflow(coef, x->lo, &v0) || __builtin_add_overflow(v0, r->k, &v0) ||
        __builtin_add_overflow(v0, coef, &v1))
        return NULL;
    f0 = mod ? floor_mod(v0, d) : floor_div(v0, d);
    f1 = mod ? floor_mod(v1, d) : floor_div(v1, d);
    Node *step = idx_mul(c, idx_sub(c, x, idx(c, x->lo)), idx(c, f1 - f0));
    return idx_add(c, step, idx(c, f0));
}

/* p = g * high + low with high no constant and low in [0, g). */
static bool split_bucket(const Poly *p, int64_t g, Poly *high, Poly *low)
{
    int64_t bucket;
    poly_split(p, g, high, low);
    if (high->n == 0 || !poly_in_bucket(low, g, &bucket) ||
        __builtin_add_overflow(high->k, bucket, &high->k))
        return false;
    low->k -= bucket * g;
    return true;
}

/* Rule 4 for one g. */
static Node *split_factor(Context *c, const Poly *r, int64_t d, int64_t g, bool mod)
{
    Poly high, low;
    if (!split_bucket(r, g, &high, &low))
        return NULL;
    Node *inner = divmod(c, poly_node(c, &high), idx(c, d / g), mod);
    if (!mod)
        return inner;
    return idx_add(c, idx_mul(c, inner, idx(c, g)), poly_node(c, &low));
}

static Node *common_factor(Context *c, const Poly *r, int64_t d, bool mod)
{
    int64_t last = d;
    for (;;) { /* each distinct gcd(coefficient, d), greatest first */
        int64_t g = 1;
        for (int i = 0; i < r->n; i++) {
            int64_t h = gcd64(r->t[i].coef, d);
            if (h > g && h < last)
                g = h;
        }
        if (g == 1)
            return NULL;
        Node *n = split_factor(c, r, d, g, mod);
        if (n)
            return n;
        last = g;
    }
}

/* Rule 5 for a quotient: the numerator is itself one quotient or remainder. */
static Node *nested_div(Context *c, const Poly *r, int64_t d)
{
    if (r->n != 1 || r->t[0].coef != 1)
        return NULL;
    Node *x = r->t[0].base;
    int64_t e;
    if (x->op == OP_FLOORDIV && x->src[1]->lo >= 1) {
        int64_t v;
        if (idx_value(x->src[1], &e) && __builtin_mul_overflow(e, d, &v))
            return NULL;
        Node *shift = idx_mul(c, x->src[1], idx(c, r->k));
        return idx_div(c, idx_add(c, x->src[0], shift), idx_mul(c, x->src[1], idx(c, d)));
    }
    if (x->op == OP_MOD && r->k == 0 && idx_value(x->src[1], &e) && e > 0 && e % d == 0)
        return idx_mod(c, idx_div(c, x->src[0], idx(c, d)), idx(c, e / d));
    return NULL;
}

static Node *divmod_const(Context *c, Node *a, int64_t d, bool mod)
{
    Poly p, quot, r;
    Node *b = idx(c, d);
    if (!poly_of(&p, a) || !split_multiples(&p, d, &quot, &r))
        return divmod_node(c, a, b, mod);
    while (mod && drop_inner_mods(&r, d)) {
        p = r;
        if (!split_multiples(&p, d, &quot, &r))
            return divmod_node(c, a, b, mod);
    }
    int64_t q;
    Node *part;
    if (poly_in_bucket(&r, d, &q)) {
        r.k -= q * d;
        part = mod ? poly_node(c, &r) : idx(c, q);
    } else {
        part = congruent(c, &r, d, mod);
        if (!part)
            part = two_points(c, &r, d, mod);
        if (!part)
            part = common_factor(c, &r, d, mod);
        if (!part && !mod)
            part = nested_div(c, &r, d);
        if (!part)
            part = divmod_node(c, poly_node(c, &r), b, mod);
    }
    return mod ? part : idx_add(c, poly_node(c, &quot), part);
}

/* ---- symbolic divisors ------------------------------------------------------------------- */

/* The term of highest degree, the newest of equals: what polynomial division looks for. */
static int leading(const Poly *d)
{
    int best = -1, degree = 0;
    for (int i = 0; i < d->n; i++) {
        Node *f[MONO_FACTORS];
        int n = mono_factors(d->t[i].base, f);
        if (n >= degree) {
            best = i;
            degree = n;
        }
    }
    return best;
}

/* a = d * quot + rem, by cancelling terms of a that the leading term of d divides. */
static bool poly_divide(Context *c, const Poly *a, const Poly *d, Poly *quot, Poly *rem)
{
    int lead = leading(d);
    *rem = *a;
    quot->n = 0;
    quot->k = 0;
    if (lead < 0)
        return false;
    for (int step = 0; step < POLY_TERMS; step++) {
        Node *m = NULL;
        int64_t q = 0;
        for (int i = 0; i < rem->n && q == 0; i++)
            if (rem->t[i].coef % d->t[lead].coef == 0 &&
                mono_divide(c, rem->t[i].base, d->t[lead].base, &m))
                q = rem->t[i].coef / d->t[lead].coef;
        if (q == 0)
            return true;
        /* rem -= q * m * d */
        if (m ? !poly_add_term(quot, m, q) : __builtin_add_overflow(quot->k, q, &quot->k))
            return false;
        if (!m) {
            if (!poly_add_poly(rem, d, -q))
                return false;
            continue;
        }
        int64_t v;
        if (__builtin_mul_overflow(d->k, -q, &v) || !poly_add_term(rem, m, v))
            return false;
        for (int j = 0; j < d->n; j++) {
            Node *product = mono_mul(c, m, d->t[j].base);
            if (!product || __builtin_mul_overflow(d->t[j].coef, -q, &v) ||
                !poly_add_term(rem, product, v))
                return false;
        }
    }
    return false;
}

static bool within(Context *c, Node *r, Node *d)
{
    return prove_nonneg(c, r) && prove_le(c, idx_add(c, r, idx(c, 1)), d);
}

/* (A*M + r) / (B*M) -> A / B and (A*M + r) % (B*M) -> A % B * M + r for r in [0, M). */
static Node *cancel_factor(Context *c, const Poly *a, Node *d, Node *m, bool mod)
{
    Poly pm, pd, high, low, rest, none;
    if (!poly_of(&pm, m) || !poly_of(&pd, d) || !poly_divide(c, &pd, &pm, &rest, &none) || none.n ||
        none.k || !poly_divide(c, a, &pm, &high, &low) || (high.n == 0 && high.k == 0))
        return NULL;
    Node *r = poly_node(c, &low), *by = poly_node(c, &rest);
    if (!within(c, r, m) || (by->lo < mod && !prove_positive(by, poly_node(c, a))))
        return NULL;
    Node *inner = divmod(c, poly_node(c, &high), by, mod);
    return mod ? idx_add(c, idx_mul(c, inner, m), r) : inner;
}

static Node *cancel_constant(Context *c, const Poly *a, Node *d, bool mod)
{
    int64_t g;
    Poly high, low;
    if (d->op != OP_MUL || !idx_value(d->src[1], &g) || g < 2 || !split_bucket(a, g, &high, &low))
        return NULL;
    Node *by = d->src[0];
    if (by->lo < mod && !prove_positive(by, poly_node(c, a)))
        return NULL;
    Node *inner = divmod(c, poly_node(c, &high), by, mod);
    return mod ? idx_add(c, idx_mul(c, inner, idx(c, g)), poly_node(c, &low)) : inner;
}

static Node *cancel_factors(Context *c, const Poly *a, Node *d, bool mod)
{
    Node *f[MONO_FACTORS], *n = cancel_constant(c, a, d, mod);
    Poly pd;
    if (n || !poly_of(&pd, d) || pd.n != 1 || pd.k != 0)
        return n;
    int nf = mono_factors(pd.t[0].base, f);
    for (int i = 0; i < nf && nf > 1; i++) { /* all but one factor, then one factor */
        Node *m;
        if (mono_divide(c, pd.t[0].base, f[i], &m) && m && (n = cancel_factor(c, a, d, m, mod)))
            return n;
    }
    for (int i = 0; i < nf && (nf > 1 || pd.t[0].coef != 1); i++)
        if ((n = cancel_factor(c, a, d, f[i], mod)))
            return n;
    return NULL;
}

/* Rule 5 with a symbolic divisor. */
static Node *nested_symbolic(Context *c, Node *a, Node *d, bool mod)
{
    if (a->op == OP_FLOORDIV && !mod && a->src[1]->lo >= 0 && d->lo >= 0)
        return idx_div(c, a->src[0], idx_mul(c, a->src[1], d));
    Poly pe, pd, quot, rem;
    if (a->op != OP_MOD || a->src[1] == d || !poly_of(&pe, a->src[1]) || !poly_of(&pd, d) ||
        !poly_divide(c, &pe, &pd, &quot, &rem) || rem.n || rem.k)
        return NULL;
    Node *e = poly_node(c, &quot); /* x % (e*d) */
    if (d->lo < 1 || e->lo < 1)
        return NULL;
    return mod ? idx_mod(c, a->src[0], d) : idx_mod(c, idx_div(c, a->src[0], d), e);
}

static Node *divmod_symbolic(Context *c, Node *a, Node *d, bool mod)
{
    Poly pa, pd, quot, rem;
    if (within(c, a, d))
        return mod ? a : idx(c, 0);
    Node *n = nested_symbolic(c, a, d, mod);
    if (n)
        return n;
    if (!poly_of(&pa, a) || !poly_of(&pd, d) || !poly_divide(c, &pa, &pd, &quot, &rem))
        return divmod_node(c, a, d, mod);
    bool multiple = quot.n || quot.k;
    Node *q = poly_node(c, &quot), *r = poly_node(c, &rem);
    for (int shift = 0; shift < 3; shift++) { /* r, r + d, r - d */
        int64_t s = shift == 2 ? -1 : shift;
        if (!multiple && s == 0)
            continue;
        Node *shifted = idx_add(c, r, idx_mul(c, d, idx(c, s)));
        if (within(c, shifted, d))
            return mod ? shifted : idx_sub(c, q, idx(c, s));
    }
    n = cancel_factors(c, &pa, d, mod);
    if (n)
        return n;
    if (!multiple || !prove_positive(d, a))
        return divmod_node(c, a, d, mod);
    return mod ? divmod(c, r, d, true) : idx_add(c, q, divmod(c, r, d, false));
}

static Node *divmod(Context *c, Node *a, Node *b, bool mod)
{
    int64_t x, d;
    bool fixed = idx_fixed(b, &d);
    if (fixed && idx_fixed(a, &x))
        return idx(c, mod ? floor_mod(x, d) : floor_div(x, d));
    if (idx_is(a, 0) || (fixed && d == 0))
        return idx(c, 0);
    if (!fixed)
        return divmod_symbolic(c, a, b, mod);
    if (d == 1)
        return mod ? idx(c, 0) : a;
    if (d == INT64_MIN)
        return divmod_node(c, a, idx(c, d), mod);
    if (d < 0) { /* a / -d = -a / d;  a % -d = -(-a % d) */
        Node *minus = idx(c, -1), *n = divmod(c, idx_mul(c, a, minus), idx(c, -d), mod);
        return mod ? idx_mul(c, n, minus) : n;
    }
    return divmod_const(c, a, d, mod);
}

Node *idx_div(Context *c, Node *a, Node *b)
{
    return divmod(c, a, b, false);
}

Node *idx_mod(Context *c, Node *a, Node *b)
{
    return divmod(c, a, b, true);
}
