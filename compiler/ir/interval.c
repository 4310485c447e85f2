/* interval.c - sound bounds of integer expressions.
 *
 * Node.lo and Node.hi are 64-bit and saturate: INT64_MIN as a lower bound and INT64_MAX as an upper
 * one mean "unknown", every other value is a true bound.  Bounds are exact for sums of distinct
 * ranges and for one division or remainder by a constant; elsewhere they may be wide. */
#include "symbolic.h"

/* An unknown side stays unknown whatever is added to it. */
int64_t lo_add(int64_t a, int64_t b)
{
    return a == INT64_MIN || b == INT64_MIN ? INT64_MIN : sat_add(a, b);
}

int64_t hi_add(int64_t a, int64_t b)
{
    return a == INT64_MAX || b == INT64_MAX ? INT64_MAX : sat_add(a, b);
}

/* A corner of a product: unknown * 0 is 0, unknown * x is unknown on the side of the sign. */
int64_t bound_mul(int64_t a, int64_t b)
{
    if (a == 0 || b == 0)
        return 0;
    if (a == INT64_MIN || a == INT64_MAX || b == INT64_MIN || b == INT64_MAX)
        return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
    return sat_mul(a, b);
}

int64_t floor_div(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (b == -1)
        return a == INT64_MIN ? INT64_MAX : -a;
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t floor_mod(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

typedef struct {
    int64_t lo, hi;
} Bounds;

static Bounds join(Bounds a, Bounds b)
{
    return (Bounds){min64(a.lo, b.lo), max64(a.hi, b.hi)};
}

static Bounds bounds_neg(Bounds a)
{
    return (Bounds){a.hi == INT64_MAX   ? INT64_MIN
                    : a.hi == INT64_MIN ? INT64_MAX
                                        : -a.hi,
                    a.lo == INT64_MIN ? INT64_MAX : -a.lo};
}

static Bounds bounds_mul(Bounds a, Bounds b)
{
    int64_t w = bound_mul(a.lo, b.lo), x = bound_mul(a.lo, b.hi);
    int64_t y = bound_mul(a.hi, b.lo), z = bound_mul(a.hi, b.hi);
    return (Bounds){min64(min64(w, x), min64(y, z)), max64(max64(w, x), max64(y, z))};
}

/* a / d for 1 <= d.lo: the quotient is monotone in a, and in d on each side of zero. */
static Bounds div_positive(Bounds a, Bounds d)
{
    Bounds r;
    r.lo = a.lo == INT64_MIN ? INT64_MIN : floor_div(a.lo, a.lo < 0 ? d.lo : d.hi);
    r.hi = a.hi == INT64_MAX ? INT64_MAX : floor_div(a.hi, a.hi < 0 ? d.hi : d.lo);
    return r;
}

static Bounds mod_positive(Bounds a, Bounds d)
{
    if (a.lo >= 0 && a.hi < d.lo)
        return a;
    if (d.lo == d.hi && d.hi != INT64_MAX && a.lo != INT64_MIN && a.hi != INT64_MAX &&
        floor_div(a.lo, d.lo) == floor_div(a.hi, d.lo))
        return (Bounds){floor_mod(a.lo, d.lo), floor_mod(a.hi, d.lo)};
    int64_t top = d.hi == INT64_MAX ? INT64_MAX : d.hi - 1;
    return (Bounds){0, a.lo >= 0 ? min64(a.hi, top) : top};
}

/* Divisors of either sign: one interval for the positive ones, one for the negative ones
 * (a / d = -a / -d and a % d = -(-a % -d)), and 0 where the divisor may be zero. */
static Bounds bounds_divmod(Bounds a, Bounds d, bool mod)
{
    Bounds r = {INT64_MAX, INT64_MIN};
    if (d.lo <= 0 && d.hi >= 0)
        r = join(r, (Bounds){0, 0});
    if (d.hi >= 1) {
        Bounds p = {max64(d.lo, 1), d.hi};
        r = join(r, mod ? mod_positive(a, p) : div_positive(a, p));
    }
    if (d.lo <= -1) {
        Bounds p = bounds_neg((Bounds){d.lo, min64(d.hi, -1)});
        r = join(r,
                 mod ? bounds_neg(mod_positive(bounds_neg(a), p)) : div_positive(bounds_neg(a), p));
    }
    return r;
}

static Bounds of(Node *n)
{
    return (Bounds){n->lo, n->hi};
}

/* Every value of an integer dtype; unsigned 64-bit ones do not fit and have no upper bound. */
static Bounds dtype_bounds(int d)
{
    if (d != INGOT_BOOL && (!dtype_is_int(d) || dtype_bits(d) == 64))
        return (Bounds){INT64_MIN, INT64_MAX};
    return (Bounds){dtype_least(d), (int64_t)dtype_most(d)};
}

/* |e| is max(e, -e), and what reflects at an edge is min(e, k - e): of two terms with a constant
 * sum one is at most half of it, the other one at least. */
static bool fixed_sum(Node *a, Node *b, int64_t *sum)
{
    Poly p;
    if (!poly_of(&p, a) || !poly_add(&p, b, 1) || p.n || p.k == INT64_MIN)
        return false;
    *sum = p.k;
    return true;
}

static Bounds bounds_index(Context *c, Node *n)
{
    Node *const *s = n->src;
    int64_t sum;
    switch (n->op) {
    case OP_CONST: return (Bounds){n->arg.i, n->arg.i};
    case OP_VAR:
        if (n->arg.i >= 0 && n->arg.i < c->nvar)
            return (Bounds){c->vars[n->arg.i].lo, c->vars[n->arg.i].hi};
        return (Bounds){INT64_MIN, INT64_MAX};
    /* of a loop that may not run, nothing is known before it does: its counter is no constant */
    case OP_RANGE:
        return (Bounds){0, s[0]->hi == INT64_MAX ? INT64_MAX
                                                 : max64(s[0]->hi, 1 + (s[0]->lo < 1)) - 1};
    case OP_ADD: return (Bounds){lo_add(s[0]->lo, s[1]->lo), hi_add(s[0]->hi, s[1]->hi)};
    case OP_SUB: {
        Bounds b = bounds_neg(of(s[1]));
        return (Bounds){lo_add(s[0]->lo, b.lo), hi_add(s[0]->hi, b.hi)};
    }
    case OP_NEG: return bounds_neg(of(s[0]));
    case OP_MUL: {
        Bounds b = bounds_mul(of(s[0]), of(s[1]));
        if (s[0] == s[1])
            b.lo = max64(b.lo, 0);
        return b;
    }
    case OP_FLOORDIV: return bounds_divmod(of(s[0]), of(s[1]), false);
    case OP_MOD: return bounds_divmod(of(s[0]), of(s[1]), true);
    case OP_MIN: {
        Bounds b = {min64(s[0]->lo, s[1]->lo), min64(s[0]->hi, s[1]->hi)};
        if (fixed_sum(s[0], s[1], &sum))
            b.hi = min64(b.hi, div_positive((Bounds){sum, sum}, (Bounds){2, 2}).hi);
        return b;
    }
    case OP_MAX: {
        Bounds b = {max64(s[0]->lo, s[1]->lo), max64(s[0]->hi, s[1]->hi)};
        if (fixed_sum(s[0], s[1], &sum))
            b.lo = max64(b.lo, -div_positive((Bounds){-sum, -sum}, (Bounds){2, 2}).hi);
        return b;
    }
    case OP_WHERE: return join(of(s[1]), of(s[2]));
    case OP_CAST:
        return s[0]->dtype == INGOT_BOOL && s[0]->rank == 0 ? of(s[0]) : dtype_bounds(s[0]->dtype);
    default: return (Bounds){INT64_MIN, INT64_MAX};
    }
}

static bool over_index(Node *n)
{
    return n->nsrc == 2 && n->src[0]->dtype == INGOT_INDEX;
}

static Bounds bounds_bool(Node *n)
{
    Node *const *s = n->src;
    Bounds any = {0, 1};
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (n->src[i]->dtype != INGOT_BOOL && n->src[i]->dtype != INGOT_INDEX)
            return any;
    switch (n->op) {
    case OP_CONST: return (Bounds){n->arg.i != 0, n->arg.i != 0};
    case OP_LT:
        if (!over_index(n))
            return any;
        return (Bounds){s[0]->hi < s[1]->lo, s[0]->lo < s[1]->hi};
    case OP_LE:
        if (!over_index(n))
            return any;
        return (Bounds){s[0]->hi <= s[1]->lo, s[0]->lo <= s[1]->hi};
    case OP_EQ:
        if (!over_index(n))
            return any;
        return (Bounds){0, s[0]->lo <= s[1]->hi && s[1]->lo <= s[0]->hi};
    case OP_AND: return (Bounds){min64(s[0]->lo, s[1]->lo), min64(s[0]->hi, s[1]->hi)};
    case OP_OR: return (Bounds){max64(s[0]->lo, s[1]->lo), max64(s[0]->hi, s[1]->hi)};
    case OP_NOT: return (Bounds){1 - s[0]->hi, 1 - s[0]->lo};
    case OP_WHERE: return join(of(s[1]), of(s[2]));
    default: return any;
    }
}

/* Called by node_make for INDEX and BOOL scalars before they are interned; makes no nodes. */
void symbolic_bounds(Context *c, Node *n, int64_t *lo, int64_t *hi)
{
    Bounds b = n->dtype == INGOT_BOOL ? bounds_bool(n) : bounds_index(c, n);
    *lo = b.lo;
    *hi = b.hi;
}
