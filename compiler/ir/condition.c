/* condition.c - comparisons of integer expressions, and the algebra of conditions.
 *
 * A comparison is brought to  terms < terms + constant  with positive coefficients, divided by
 * their gcd, the newest term on the left; a <= b becomes a < b + 1, or NOT of the opposite where
 * that puts the newest term on the left.  So
 *
 *     lo <= i   ->   not(i < lo)          4*i + j < 8 with j in 0..3   ->   i < 2
 *
 * and both bounds of one sum are seen to be about the same thing, whoever made them.  AND and OR
 * are left-nested lists in node_order(); NOT goes inwards. */
#include "symbolic.h"

enum { LIST = 32 };

static Node *bool_make(Context *c, Op op, Node *a, Node *b)
{
    Node *n = node_make(c, op, INGOT_BOOL, (Arg){0}, b ? 2 : 1, (Node *[]){a, b}, 0, NULL);
    return n->lo == n->hi ? node_bool(c, n->lo != 0) : n;
}

static bool is_bool(Node *n, bool v)
{
    return n->lo == n->hi && n->lo == v;
}

/* ---- comparisons ------------------------------------------------------------------------- */

static int64_t poly_gcd(const Poly *p)
{
    int64_t g = 0;
    for (int i = 0; i < p->n; i++) {
        int64_t a = p->t[i].coef < 0 ? -p->t[i].coef : p->t[i].coef;
        while (a) {
            int64_t t = g % a;
            g = a;
            a = t;
        }
    }
    return g;
}

static bool negate(Poly *p, int64_t add)
{
    Poly q = {.k = add};
    if (!poly_add_poly(&q, p, -1))
        return false;
    *p = q;
    return true;
}

/* p = g * high + low with low in [0, g), for some g > 1; or (equal) such that p = 0 exactly where
 * high = 0 and low = 0. */
static bool split_low(const Poly *p, Poly *high, Poly *low, bool equal)
{
    for (int i = 0; i < p->n; i++) {
        int64_t g = p->t[i].coef < 0 ? -p->t[i].coef : p->t[i].coef, bucket;
        if (g == 1)
            continue;
        poly_split(p, g, high, low);
        if (equal)
            low->k = 0;
        if (low->n == 0 || !poly_in_bucket(low, g, &bucket) ||
            __builtin_add_overflow(high->k, bucket, &high->k))
            continue;
        low->k -= bucket * g;
        if (equal && p->k % g != 0) { /* low must be what the constant lacks to a multiple of g */
            low->k -= g - floor_mod(p->k, g);
            high->k = sat_add(high->k, 1);
        }
        return true;
    }
    return false;
}

/* Positive terms on the left; the others and the constant, with their sign turned, on the right. */
static Node *compare_node(Context *c, Op op, const Poly *p)
{
    Poly left, right;
    left.n = right.n = 0;
    left.k = 0;
    for (int i = 0; i < p->n; i++)
        if (p->t[i].coef > 0)
            left.t[left.n++] = p->t[i];
        else
            right.t[right.n++] = (Term){p->t[i].base, -p->t[i].coef};
    right.k = -p->k;
    return bool_make(c, op, poly_node(c, &left), poly_node(c, &right));
}

static bool symbolic(const Poly *p)
{
    for (int i = 0; i < p->n; i++)
        if (p->t[i].base->op != OP_RANGE || p->t[i].base->src[0]->op != OP_CONST)
            return true;
    return false;
}

/* p < 0 */
static Node *compare_lt(Context *c, Poly p)
{
    Poly high, low;
    int64_t lo, hi, d;
    for (;;) {
        poly_bounds(&p, &lo, &hi);
        if (hi < 0 || lo >= 0)
            return node_bool(c, hi < 0);
        int64_t g = poly_gcd(&p);
        for (int i = 0; i < p.n && g > 1; i++)
            p.t[i].coef /= g;
        if (g > 1)
            p.k = floor_div(p.k, g);
        if (split_low(&p, &high, &low, false)) {
            p = high;
            continue;
        }
        /* x / d < k -> x < k * d */
        Node *x = p.t[0].base;
        if (p.n == 1 && p.t[0].coef == 1 && x->op == OP_FLOORDIV && idx_value(x->src[1], &d) &&
            d > 0 && !__builtin_mul_overflow(p.k, d, &p.k)) {
            int64_t k = p.k;
            if (!poly_of(&p, x->src[0]) || __builtin_add_overflow(p.k, k, &p.k))
                return bool_make(c, OP_LT, x->src[0], idx(c, sat_mul(k, -1)));
            continue;
        }
        break;
    }
    if (symbolic(&p)) {
        Poly minus = p;
        if (prove_nonneg(c, poly_node(c, &p)))
            return node_bool(c, false);
        if (negate(&minus, -1) && prove_nonneg(c, poly_node(c, &minus)))
            return node_bool(c, true);
    }
    if (p.k == INT64_MIN) /* a sum of 64 bits is below 2^63 */
        return node_bool(c, true);
    if (p.t[p.n - 1].coef < 0) { /* p < 0 -> not(-p - 1 < 0) */
        if (!negate(&p, -1))
            BUG("a comparison out of range");
        return bool_not(c, compare_lt(c, p));
    }
    return compare_node(c, OP_LT, &p);
}

Node *idx_lt(Context *c, Node *a, Node *b)
{
    Poly p;
    if (a == b)
        return node_bool(c, false);
    if (!poly_of(&p, a) || !poly_add(&p, b, -1) || p.k <= INT64_MIN + 1 || p.k == INT64_MAX)
        return bool_make(c, OP_LT, a, b);
    return compare_lt(c, p);
}

Node *idx_le(Context *c, Node *a, Node *b)
{
    return bool_not(c, idx_lt(c, b, a));
}

Node *idx_eq(Context *c, Node *a, Node *b)
{
    Poly p, high, low;
    int64_t lo, hi;
    if (a == b)
        return node_bool(c, true);
    if (!poly_of(&p, a) || !poly_add(&p, b, -1) || p.k == INT64_MIN)
        return bool_make(c, OP_EQ, node_order(a, b) < 0 ? b : a, node_order(a, b) < 0 ? a : b);
    poly_bounds(&p, &lo, &hi);
    if (lo > 0 || hi < 0)
        return node_bool(c, false);
    if (lo == 0 && hi == 0)
        return node_bool(c, true);
    int64_t g = poly_gcd(&p);
    if (p.n == 0 || p.k % g != 0)
        return node_bool(c, p.n == 0 && p.k == 0);
    for (int i = 0; i < p.n; i++)
        p.t[i].coef /= g;
    p.k /= g;
    if (split_low(&p, &high, &low, true)) /* 4*i + j = 5 -> i = 1 and j = 1, for j in 0..3 */
        return bool_and(c, idx_eq(c, poly_node(c, &high), idx(c, 0)),
                        idx_eq(c, poly_node(c, &low), idx(c, 0)));
    if (p.t[p.n - 1].coef < 0 && !negate(&p, 0))
        BUG("a comparison out of range");
    if (symbolic(&p)) {
        Poly minus = p, plus = p;
        plus.k = sat_add(plus.k, -1);
        if (prove_nonneg(c, poly_node(c, &plus)))
            return node_bool(c, false);
        if (negate(&minus, -1) && prove_nonneg(c, poly_node(c, &minus)))
            return node_bool(c, false);
    }
    return compare_node(c, OP_EQ, &p);
}

/* ---- the algebra of conditions ----------------------------------------------------------- */

bool literal_bounds(Context *c, Node *n, Literal *out)
{
    bool inverted = n->op == OP_NOT;
    Node *cmp = inverted ? n->src[0] : n;
    Poly p;
    if ((cmp->op != OP_LT && cmp->op != OP_EQ) || cmp->src[0]->dtype != INGOT_INDEX ||
        (inverted && cmp->op == OP_EQ) || !poly_of(&p, cmp->src[0]) ||
        !poly_add(&p, cmp->src[1], -1) || p.n == 0 || p.k == INT64_MIN)
        return false;
    int64_t k = -p.k;
    p.k = 0;
    out->terms = poly_node(c, &p);
    out->lo = inverted || cmp->op == OP_EQ ? k : INT64_MIN;
    out->hi = cmp->op == OP_EQ ? k : inverted ? INT64_MAX : k - 1;
    return true;
}

int bool_list(Node *n, Op op, Node **list, int max)
{
    int count = 0;
    while (n->op == (int)op) {
        if (count + 1 >= max)
            return -1;
        list[count++] = n->src[1];
        n = n->src[0];
        if (list[count - 1]->op == (int)op)
            return -1;
    }
    list[count++] = n;
    return count;
}

static bool list_insert(Node **list, int *n, Node *item)
{
    int at = *n;
    while (at > 0 && node_order(list[at - 1], item) > 0)
        at--;
    if (at > 0 && list[at - 1] == item)
        return true;
    if (*n == LIST)
        return false;
    for (int i = (*n)++; i > at; i--)
        list[i] = list[i - 1];
    list[at] = item;
    return true;
}

static void list_remove(Node **list, int *n, int at)
{
    (*n)--;
    for (int i = at; i < *n; i++)
        list[i] = list[i + 1];
}

/* What a pair of literals says together: 0 nothing new, 1 drop a, 2 drop b, 3 the pair is the
 * absorbing value (false for AND, true for OR). */
static int pair_says(Context *c, Op op, Node *a, Node *b)
{
    Literal x, y;
    if ((a->op == OP_NOT && a->src[0] == b) || (b->op == OP_NOT && b->src[0] == a))
        return 3;
    Node *part[LIST];
    for (int swap = 0; swap < 2; swap++) { /* x and (x or y) -> x */
        Node *whole = swap ? b : a, *other = swap ? a : b;
        int n = whole->op == (op == OP_AND ? OP_OR : OP_AND)
                    ? bool_list(whole, (Op)whole->op, part, LIST)
                    : 0;
        for (int i = 0; i < n; i++)
            if (part[i] == other)
                return swap ? 2 : 1;
    }
    if (!literal_bounds(c, a, &x) || !literal_bounds(c, b, &y) || x.terms != y.terms)
        return 0;
    bool x_in_y = x.lo >= y.lo && x.hi <= y.hi, y_in_x = y.lo >= x.lo && y.hi <= x.hi;
    if (op == OP_AND) {
        if (x.lo > y.hi || y.lo > x.hi)
            return 3;
        return x_in_y ? 2 : y_in_x ? 1 : 0;
    }
    if (x_in_y || y_in_x)
        return x_in_y ? 1 : 2;
    bool covers = (x.lo == INT64_MIN && y.hi == INT64_MAX && y.lo <= sat_add(x.hi, 1)) ||
                  (y.lo == INT64_MIN && x.hi == INT64_MAX && x.lo <= sat_add(y.hi, 1));
    return covers ? 3 : 0;
}

static Node *combine(Context *c, Op op, Node *a, Node *b)
{
    bool absorbing = op == OP_OR;
    if (is_bool(a, absorbing) || is_bool(b, absorbing))
        return node_bool(c, absorbing);
    if (is_bool(a, !absorbing) || a == b)
        return b;
    if (is_bool(b, !absorbing))
        return a;
    Node *la[LIST], *lb[LIST], *list[LIST];
    int na = bool_list(a, op, la, LIST), nb = bool_list(b, op, lb, LIST), n = 0;
    bool fits = na > 0 && nb > 0;
    for (int i = 0; i < na && fits; i++)
        fits = list_insert(list, &n, la[i]);
    for (int i = 0; i < nb && fits; i++)
        fits = list_insert(list, &n, lb[i]);
    if (!fits)
        return bool_make(c, op, a, b);
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            int says = pair_says(c, op, list[i], list[j]);
            if (says == 3)
                return node_bool(c, absorbing);
            if (says == 2)
                list_remove(list, &n, j--);
            if (says == 1) {
                list_remove(list, &n, i--);
                break;
            }
        }
    Node *all = list[0];
    for (int i = 1; i < n; i++)
        all = bool_make(c, op, all, list[i]);
    return all;
}

Node *bool_and(Context *c, Node *a, Node *b)
{
    return combine(c, OP_AND, a, b);
}

Node *bool_or(Context *c, Node *a, Node *b)
{
    return combine(c, OP_OR, a, b);
}

Node *bool_not(Context *c, Node *n)
{
    if (n->lo == n->hi)
        return node_bool(c, n->lo == 0);
    if (n->op == OP_NOT)
        return n->src[0];
    if (n->op != OP_AND && n->op != OP_OR)
        return bool_make(c, OP_NOT, n, NULL);
    /* not(a and b) -> not a or not b */
    Node *list[LIST];
    int count = bool_list(n, (Op)n->op, list, LIST);
    if (count < 0)
        return bool_make(c, OP_NOT, n, NULL);
    Node *all = bool_not(c, list[0]);
    for (int i = 1; i < count; i++)
        all = combine(c, n->op == OP_AND ? OP_OR : OP_AND, all, bool_not(c, list[i]));
    return all;
}
