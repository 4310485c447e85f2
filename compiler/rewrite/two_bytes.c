/* two_bytes.c - a byte that is made of one or two others by multipliers in fixed point, each
 * rounded, is computed as a sum of products that is shifted once.
 *
 *     cast<i8>(clamp(shrr(mulhi(shrr(mulhi((a - 3) << 20, m1), n1) + .., m), n) + z, lo, hi))
 *         ->  cast<i8>(clamp((a A + b B + C) >> K, lo, hi))
 *
 * So quantised additions are, and changes of scale.  The expression is evaluated for all pairs of
 * bytes; then A, B and C are sought that give the same for each of them, so nothing is rounded
 * otherwise.  A pair says between which numbers its sum has to be: for some A and B these are
 * bounds of C, and the pairs with the greatest lower and the least upper one say in which direction
 * A and B are to be changed until there is a number between the two.  Where there is none, all
 * stays. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "igrt_num.h"
#include "rewrite.h"

enum { MOST_NODES = 4 * DEPTH_SOME, VALUES = UINT8_MAX + 1, WORD = CHAR_BIT * sizeof(int32_t) };

/* An operation on earlier values; below 0: byte -1 - at. */
typedef struct {
    Op op;
    int x, y; /* y of a constant: unused */
    bool number;
    int32_t k;
} ByteStep;

typedef struct {
    Node *byte[2]; /* as i32 */
    int32_t least[2];
    Node *of[MOST_NODES]; /* the node of each step */
    ByteStep step[MOST_NODES];
    int nbyte, n;
    bool rounds;
    int32_t lo, hi;
    int16_t (*f)[VALUES]; /* of both bytes less their least ones */
} OfBytes;

/* ---- the expression -------------------------------------------------------------------------- */

/* A byte as i32, moved or not, of a kind that the run computes; its type, or NULL. */
static const Node *byte_below(Node *n)
{
    while (is_move(n))
        n = n->src[0];
    if (n->op != OP_CAST || n->dtype != INGOT_I32 || is_constant(n, 0))
        return NULL;
    n = n->src[0];
    return n->dtype == INGOT_I8 || n->dtype == INGOT_U8 ? n : NULL;
}

static bool takes(const Node *n)
{
    switch (n->op) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_SHL:
    case OP_SHR:
    case OP_SHRR:
    case OP_MULHI: return n->dtype == INGOT_I32;
    default: return false;
    }
}

static bool find_step(OfBytes *m, Node *n, int depth, int *at)
{
    const Node *byte = byte_below(n);
    for (int i = 0; i < m->nbyte; i++)
        if (m->byte[i] == n) {
            *at = -1 - i;
            return true;
        }
    if (byte && m->nbyte < 2) {
        m->byte[m->nbyte] = n;
        m->least[m->nbyte] = byte->dtype == INGOT_I8 ? INT8_MIN : 0;
        *at = -1 - m->nbyte++;
        return true;
    }
    for (int i = 0; i < m->n; i++)
        if (m->of[i] == n) {
            *at = i;
            return true;
        }
    if (byte || !takes(n) || depth == 2 * DEPTH_SOME)
        return false;
    ByteStep s = {.op = n->op};
    Node *left = n->src[0], *right = n->src[1], *k = uniform(right);
    if (!k && n->op == OP_ADD && (k = uniform(left)) != NULL)
        left = right;
    s.number = k != NULL;
    s.k = k ? (int32_t)k->arg.i : 0;
    const bool sum = n->op == OP_ADD || n->op == OP_SUB;
    if ((!k && !sum) || !find_step(m, left, depth + 1, &s.x) ||
        (!k && !find_step(m, right, depth + 1, &s.y)) || m->n == MOST_NODES)
        return false;
    m->rounds |= n->op == OP_MULHI || n->op == OP_SHRR;
    m->of[m->n] = n;
    m->step[m->n] = s;
    *at = m->n++;
    return true;
}

static int32_t stepped(const ByteStep *s, int32_t x, int32_t y)
{
    switch (s->op) {
    case OP_ADD: return igrt_add_i32(x, y);
    case OP_SUB: return igrt_sub_i32(x, y);
    case OP_MUL: return igrt_mul_i32(x, y);
    case OP_SHL: return igrt_shl_i32(x, y);
    case OP_SHR: return igrt_shr_i32(x, y);
    case OP_SHRR: return igrt_shrr_i32(x, y);
    default: return igrt_mulhi_i32(x, y);
    }
}

static int32_t value_of(const OfBytes *m, const int32_t *byte)
{
    int32_t v[MOST_NODES];
    for (int i = 0; i < m->n; i++) {
        const ByteStep *s = &m->step[i];
        const int32_t x = s->x < 0 ? byte[-1 - s->x] : v[s->x];
        const int32_t y = s->number ? s->k : s->y < 0 ? byte[-1 - s->y] : v[s->y];
        v[i] = stepped(s, x, y);
    }
    return v[m->n - 1];
}

/* The same without rounding. */
static double real_of(const OfBytes *m, double a, double b)
{
    double v[MOST_NODES] = {0};
    for (int i = 0; i < m->n; i++) {
        const ByteStep *s = &m->step[i];
        const double x = s->x < 0 ? (s->x == -1 ? a : b) : v[s->x];
        const double y = s->number ? s->k : s->y < 0 ? (s->y == -1 ? a : b) : v[s->y];
        v[i] = s->op == OP_ADD     ? x + y
               : s->op == OP_SUB   ? x - y
               : s->op == OP_MUL   ? x * y
               : s->op == OP_SHL   ? ldexp(x, (int)y)
               : s->op == OP_MULHI ? ldexp(x * y, 1 - WORD)
                                   : ldexp(x, -(int)y);
    }
    return v[m->n - 1];
}

static int count_of(const OfBytes *m, int i)
{
    return i < m->nbyte ? VALUES : 1;
}

static void evaluate(OfBytes *m)
{
    for (int i = 0; i < VALUES; i++)
        for (int j = 0; j < count_of(m, 1); j++) {
            const int32_t byte[] = {m->least[0] + i, m->least[1] + j}, y = value_of(m, byte);
            m->f[i][j] = (int16_t)(y < m->lo ? m->lo : y > m->hi ? m->hi : y);
        }
}

/* ---- the line -------------------------------------------------------------------------------- */

/* What C may be with these A and B, from lo to hi; of which pairs. */
typedef struct {
    int64_t lo, hi;
    int at_lo[2], at_hi[2];
} PlaneBounds;

static PlaneBounds bounds_of(const OfBytes *m, int64_t a, int64_t b, int k)
{
    PlaneBounds r = {.lo = INT64_MIN, .hi = INT64_MAX};
    for (int i = 0; i < VALUES; i++)
        for (int j = 0; j < count_of(m, 1); j++) {
            const int64_t x = (m->least[0] + i) * a + (m->least[1] + j) * b, y = m->f[i][j];
            const int64_t from = y * ((int64_t)1 << k) - x, to = from + ((int64_t)1 << k) - 1;
            if (y > m->lo && from > r.lo) {
                r.lo = from;
                r.at_lo[0] = i;
                r.at_lo[1] = j;
            }
            if (y < m->hi && to < r.hi) {
                r.hi = to;
                r.at_hi[0] = i;
                r.at_hi[1] = j;
            }
        }
    return r;
}

typedef struct {
    int64_t a, b, c;
    int k;
} Plane;

/* The greatest number that a x + b y + c becomes, without its sign. */
static double largest(const OfBytes *m, double a, double b, double c)
{
    return fabs(a) * (m->least[0] ? -INT8_MIN : UINT8_MAX) +
           fabs(b) * (m->least[1] ? -INT8_MIN : UINT8_MAX) + fabs(c);
}

/* With this shift; a, b: what is near. */
static bool find_plane(const OfBytes *m, Plane *p, double a, double b)
{
    enum { TRIES = 32 };
    for (int i = 0; i < TRIES; i++) {
        p->a = llrint(a);
        p->b = llrint(b);
        const PlaneBounds r = bounds_of(m, p->a, p->b, p->k);
        if (r.lo == INT64_MIN || r.hi == INT64_MAX) /* one byte */
            return false;
        p->c = r.lo + (r.hi - r.lo) / 2;
        if (r.lo <= r.hi)
            return largest(m, (double)p->a, (double)p->b, (double)p->c) < INT32_MAX;
        const double da = r.at_lo[0] - r.at_hi[0], db = r.at_lo[1] - r.at_hi[1],
                     far = da * da + db * db, apart = (double)(r.lo - r.hi);
        if (apart > ldexp(1, p->k) || !(far > 0))
            return false;
        a += (apart + VALUES) / far * da;
        b += (apart + VALUES) / far * db;
    }
    return false;
}

static bool find_sum(const OfBytes *m, Plane *p)
{
    const double zero = real_of(m, 0, 0), a = real_of(m, 1, 0) - zero, b = real_of(m, 0, 1) - zero;
    int k;
    (void)frexp(largest(m, a, b, zero) + 1, &k);
    for (p->k = WORD - 1 - k; p->k > WORD - 3 - k; p->k--)
        if (p->k >= CHAR_BIT && p->k < WORD && find_plane(m, p, ldexp(a, p->k), ldexp(b, p->k)))
            return true;
    return false;
}

static Node *times(Context *c, Node *x, int64_t k)
{
    return ingot_mul(c, x, node_const_i(c, INGOT_I32, k));
}

Node *two_bytes(Rewrite *r, Node *n)
{
    Context *c = r->c;
    const bool sign = n->dtype == INGOT_I8;
    OfBytes m = {.lo = INT32_MIN, .hi = INT32_MAX};
    Plane p;
    int at;
    if (!r->settled || (!sign && n->dtype != INGOT_U8) || n->src[0]->dtype != INGOT_I32)
        return NULL;
    Node *top = below_clamp(n->src[0], &m.lo, &m.hi);
    if (m.lo < (sign ? INT8_MIN : 0) || m.hi > (sign ? INT8_MAX : UINT8_MAX) || m.lo >= m.hi ||
        !find_step(&m, top, 0, &at) || !m.rounds)
        return NULL;
    m.f = arena_array(r->a, VALUES, sizeof *m.f);
    evaluate(&m);
    if (!find_sum(&m, &p))
        return NULL;
    Node *y = times(c, m.byte[0], p.a);
    if (m.nbyte > 1)
        y = ingot_add(c, y, times(c, m.byte[1], p.b));
    y = ingot_add(c, y, node_const_i(c, INGOT_I32, p.c));
    y = ingot_shr(c, y, node_const_i(c, INGOT_I32, p.k));
    y = ingot_min(c, ingot_max(c, y, node_const_i(c, INGOT_I32, m.lo)),
                  node_const_i(c, INGOT_I32, m.hi));
    return ingot_is_poison(y) ? NULL : ingot_cast(c, y, (ingot_dtype)n->dtype);
}
