/* one_shift.c - on a core without lanes, bytes that a sum of integers becomes by multipliers in
 * fixed point, rounded more than once, are computed with one multiplication and one shift.
 *
 *     cast<i8>(min(max(shrr(mulhi(s + b, m), n) + z, lo), hi))
 *         ->  cast<i8>(min(max(mulhi(s 2^k + B, M) >> K, lo), hi))
 *
 * As a function of s, a channel's bytes are stairs: at most 255 integers where they become one
 * greater.  These are found by evaluating the expression; then M and B are sought whose stairs are
 * the same, all of them, for every s that the weights leave possible.  So nothing is rounded
 * otherwise.  Where halves go away from zero, stairs below zero lie farther apart from those above
 * it than one M makes them, unless one side is cut off: by a ReLU, usually.  Where a channel has no
 * M and B, all stay.
 *
 * k is as large as i32 leaves room for, because B is an integer. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "igrt_num.h"
#include "rewrite.h"

enum { MOST_STEPS = UINT8_MAX, MOST_DONE = 2 * DEPTH_SOME, WORD = CHAR_BIT * sizeof(int32_t) };

/* What is done to an integer, with a constant by channel (n = 1: of all; 0: a CAST). */
typedef struct {
    Op op;
    bool word, lowers; /* makes an i32; adds itself, shifted */
    const double *v;
    int64_t n;
} Done;

typedef struct {
    int32_t x[MOST_STEPS + 1]; /* the least integer that makes `first` + i, or `beyond` it */
    int first, n;
    double apart; /* 2^k times what is between two of them; 0: any */
} Stair;

typedef struct {
    Rewrite *r;
    Node *x, *moves[DEPTH_SOME];    /* the integer; what moves it, from the result on */
    Done step[MOST_DONE];           /* from the result on, too */
    int nsteps, nmoves, rank, axis; /* of the result; of the channels, or -1 */
    int64_t channels, at;
    bool multiplies, rounds, fails; /* rounds: more is done to the product than a shift */
    int32_t reach, lo, hi;          /* |x| is at most reach; the bounds of bytes */
    Stair *stair;
} Stairs;

/* ---- the expression -------------------------------------------------------------------------- */

/* In the shape of the result. */
static Node *as_result(Stairs *s, Node *n)
{
    for (int i = s->nmoves; i-- > 0;)
        n = moved(s->r->c, s->moves[i], n);
    return n;
}

/* A step, of the constant k if it is not NULL. */
static bool add_step(Stairs *s, const Node *n, Op op, Node *k)
{
    int64_t dims[INGOT_MAX_RANK], count;
    double most;
    if (s->nsteps == MOST_DONE)
        return false;
    Done *step = &s->step[s->nsteps++];
    *step = (Done){.op = op, .word = n->dtype == INGOT_I32, .lowers = op != n->op};
    if (!k)
        return true;
    k = compact_form(s->r, as_result(s, k));
    if (!k || ingot_is_poison(k))
        return false;
    for (int i = 0; i < k->rank; i++) {
        if (idx_is(k->shape[i], 1))
            continue;
        if (s->axis >= 0 && s->axis != i)
            return false;
        s->axis = i;
    }
    step->v = constant_numbers(s->r, ingot_cast(s->r->c, k, INGOT_F64), dims, &count, &most);
    if (!step->v || !(most < (double)UINT32_MAX * UINT16_MAX) ||
        (count > 1 && s->channels > 1 && count != s->channels))
        return false;
    s->channels = count > s->channels ? count : s->channels;
    step->n = count;
    return true;
}

/* Which source of a step is constant, of steps that never fall where the other one rises (if no
 * multiplier is negative); -1: it is none. */
static int constant_side(const Node *n)
{
    switch (n->op) {
    case OP_ADD:
    case OP_MUL:
    case OP_MULHI:
    case OP_MAX:
    case OP_MIN:
        if (is_constant(n->src[0], 0))
            return 0;
        return is_constant(n->src[1], 0) ? 1 : -1;
    case OP_SUB:
    case OP_SHL:
    case OP_SHR:
    case OP_SHRR: return is_constant(n->src[1], 0) ? 1 : -1;
    default: return -1;
    }
}

/* x + (x >> 63): one less below zero */
static bool is_lowered(const Node *n)
{
    return n->op == OP_ADD && n->src[1]->op == OP_SHR && n->src[1]->src[0] == n->src[0] &&
           is_constant(n->src[1]->src[1], 0);
}

static bool is_integer(const Node *n)
{
    return n->dtype == INGOT_I32 || n->dtype == INGOT_I64;
}

/* Down to the integer that all is made of. */
static bool find_x(Stairs *s, Node *n)
{
    for (int depth = 0; depth < 2 * DEPTH_SOME && is_integer(n); depth++) {
        const int k = constant_side(n);
        if (n->op == OP_CAST && is_integer(n->src[0])) {
            if (!add_step(s, n, OP_CAST, NULL))
                return false;
            n = n->src[0];
        } else if (op_arranges(n->op)) {
            if (s->nmoves == DEPTH_SOME)
                return false;
            s->moves[s->nmoves++] = n;
            n = n->src[0];
        } else if (is_lowered(n)) {
            s->rounds = true;
            if (!add_step(s, n, OP_SHR, n->src[1]->src[1]))
                return false;
            n = n->src[0];
        } else if (k >= 0) {
            s->rounds |=
                !s->multiplies && (n->op == OP_ADD || (n->op == OP_SHRR && !uniform(n->src[1])));
            s->multiplies |= n->op == OP_MULHI || (n->op == OP_MUL && n->dtype == INGOT_I64);
            if (!add_step(s, n, n->op, n->src[k]))
                return false;
            n = n->src[1 - k];
        } else {
            s->x = n;
            return s->multiplies && s->rounds && n->dtype == INGOT_I32;
        }
    }
    return false;
}

static int64_t stepped(Stairs *s, const Done *step, int64_t x)
{
    const int width = step->word ? WORD : 2 * WORD;
    const int64_t k = (int64_t)step->v[step->n > 1 ? s->at : 0];
    const bool shifts = step->op == OP_SHL || step->op == OP_SHR || step->op == OP_SHRR;
    s->fails |= shifts && (k < 0 || k >= width);
    s->fails |= (step->op == OP_MUL || step->op == OP_MULHI) && k < 0;
    if (s->fails)
        return 0;
    switch (step->op) {
    case OP_ADD: return x + k;
    case OP_SUB: return x - k;
    case OP_MAX: return x > k ? x : k;
    case OP_MIN: return x < k ? x : k;
    case OP_SHR: return x >> k;
    case OP_SHRR: return igrt_shrr_i32((int32_t)x, (int32_t)k);
    case OP_MULHI: return igrt_mulhi_i32((int32_t)x, (int32_t)k);
    default: break;
    }
    const int64_t by = step->op == OP_SHL ? (int64_t)1 << (k < WORD ? k : WORD) : k;
    s->fails |=
        !(fabs((double)x * (double)by) < (double)INT64_MAX / 4) || (step->op == OP_SHL && k > WORD);
    return s->fails ? 0 : x * by;
}

/* What the expression is of this integer; nothing may wrap. */
static int64_t value_of(Stairs *s, int64_t x)
{
    for (int i = s->nsteps; i-- > 0 && !s->fails;) {
        const Done *step = &s->step[i];
        if (step->n)
            x = stepped(s, step, x) + (step->lowers ? x : 0);
        s->fails |= step->word && (x > INT32_MAX || x <= INT32_MIN);
    }
    return s->fails ? 0 : x;
}

/* ---- bounds of the integer ------------------------------------------------------------------- */

/* A sum of products with weights: of each result these are as large as they are. */
static double reach_of(Stairs *s, Node *n)
{
    Rewrite *r = s->r;
    double least = INFINITY;
    for (int i = 0; n->op == OP_REDUCE && sums_integers(n) && i < 2; i++) {
        Node *w = n->src[0]->src[i], *x = n->src[0]->src[1 - i], *all = NULL;
        int64_t dims[INGOT_MAX_RANK], count;
        double lo, hi, most;
        if (!is_weight(w) || !value_range(x, &lo, &hi))
            continue;
        Node *k = compact_form(r, w);
        if (k && !ingot_is_poison(k))
            all = sum_over(r, w, ingot_abs(r->c, k), reduce_axes(n));
        if (all && constant_numbers(r, ingot_cast(r->c, all, INGOT_F64), dims, &count, &most))
            least = fmin(least, most * fmax(-lo, hi));
    }
    return fmin(least, largest_integer(n, 0));
}

/* ---- stairs ---------------------------------------------------------------------------------- */

/* The least x above `from` whose value is y or more, where `guess` is near to it. */
static int64_t step_to(Stairs *s, int64_t y, int64_t from, int64_t guess)
{
    int64_t lo = from, hi = guess, ahead = 1; /* below y at lo; not at hi */
    hi = hi > s->reach + 1 ? s->reach + 1 : hi <= lo ? lo + 1 : hi;
    while (hi <= s->reach && value_of(s, hi) < y && !s->fails) {
        lo = hi;
        hi = hi + ahead > s->reach ? s->reach + 1 : hi + ahead;
        ahead *= 2;
    }
    for (ahead = 1; hi - ahead > lo && hi - lo > 2 * ahead && !s->fails; ahead *= 2)
        if (value_of(s, hi - ahead) < y) {
            lo = hi - ahead;
            break;
        }
    while (hi - lo > 1 && !s->fails) {
        const int64_t middle = lo + (hi - lo) / 2;
        *(value_of(s, middle) < y ? &lo : &hi) = middle;
    }
    return hi;
}

static bool find_stair(Stairs *s)
{
    Stair *t = &s->stair[s->at];
    const int64_t from = value_of(s, -(int64_t)s->reach), to = value_of(s, s->reach);
    int64_t x = -(int64_t)s->reach, apart = 1;
    *t = (Stair){.first = (int)from + 1};
    if (s->fails || from < s->lo || to > s->hi)
        return false;
    for (int64_t y = from + 1; y <= to; y++) {
        const int64_t next = step_to(s, y, x > -(int64_t)s->reach ? x - 1 : x, x + apart);
        apart = next - x;
        t->x[t->n++] = (int32_t)(x = next);
    }
    return !s->fails;
}

/* Numbers of 2^k steps: those that B may be, where a step is so long. */
static double room(const Stairs *s, const Stair *t, double apart, int k)
{
    double lo = -INFINITY, hi = INFINITY;
    const double unit = ldexp(1, k);
    for (int i = 0; i < t->n; i++) {
        const double b = (t->first + i) * apart - unit * t->x[i];
        lo = b > lo ? b : lo;
        hi = b + unit < hi ? b + unit : hi;
    }
    /* the first and the last byte are not left, but where a clamp holds them */
    if (t->first - 1 > s->lo)
        lo = fmax(lo, (t->first - 1) * apart + unit * s->reach);
    if (t->first + t->n <= s->hi)
        hi = fmin(hi, (t->first + t->n) * apart - unit * s->reach);
    return hi - lo;
}

/* The length of a step that leaves most room, which is a concave function of it. */
static bool fit(const Stairs *s, Stair *t, int k)
{
    if (t->n < 2) /* a channel that is one byte, or two */
        return true;
    const double mean = ldexp((double)t->x[t->n - 1] - t->x[0], k) / (t->n - 1);
    double lo = mean * (1 - 2.0 / t->n), hi = mean * (1 + 2.0 / t->n);
    for (int i = 0; i < 2 * WORD; i++) {
        const double a = lo + (hi - lo) / 3, b = hi - (hi - lo) / 3;
        if (room(s, t, a, k) < room(s, t, b, k))
            lo = a;
        else
            hi = b;
    }
    t->apart = (lo + hi) / 2;
    return room(s, t, t->apart, k) >= 1 && t->apart >= 1;
}

/* ---- the line -------------------------------------------------------------------------------- */

/* x / y upward */
static int64_t upward(int64_t x, int64_t y)
{
    return x / y + (x % y > 0);
}

/* The least factor of m whose product, rounded and shifted, is y or more. */
static int64_t least_factor(int64_t y, int shift, int32_t m)
{
    enum { HIGH = WORD - 1 }; /* MULHI */
    const int64_t one = (int64_t)1 << (shift - HIGH), half = (int64_t)1 << (HIGH - 1);
    return upward(y * one * ((int64_t)1 << HIGH) - half, m);
}

/* B, whose bytes are those of the stairs with this M, exactly; false: there is none. */
static bool exact(const Stairs *s, const Stair *t, int k, int shift, int32_t m, int32_t *b)
{
    int64_t lo = INT32_MIN, hi = INT32_MAX;
    const int64_t unit = (int64_t)1 << k;
    for (int i = -1; i <= t->n; i++) {
        const int64_t y = t->first + i;
        if ((i < 0 && y <= s->lo) || (i == t->n && y > s->hi))
            continue;
        const int64_t at = least_factor(y, shift, m);
        const int64_t x = i < 0 ? -(int64_t)s->reach : i == t->n ? s->reach + 1 : t->x[i];
        lo = i < t->n && at - x * unit > lo ? at - x * unit : lo;
        hi = i >= 0 && at - 1 - (x - 1) * unit < hi ? at - 1 - (x - 1) * unit : hi;
    }
    *b = (int32_t)(lo + (hi - lo) / 2);
    return lo <= hi && llabs((long long)*b) + unit * s->reach < INT32_MAX;
}

static Node *by_channel(const Stairs *s, const int32_t *v)
{
    int64_t dims[INGOT_MAX_RANK];
    for (int i = 0; i < s->rank; i++)
        dims[i] = 1;
    if (s->axis < 0)
        return node_const_i(s->r->c, INGOT_I32, v[0]);
    dims[s->axis] = s->channels;
    return ingot_data(s->r->c, NULL, INGOT_I32, s->rank, dims, v);
}

static Node *line_of(Stairs *s, int k)
{
    Rewrite *r = s->r;
    Context *c = r->c;
    int32_t *m = NEWN(c->arena, int32_t, s->channels), *b = NEWN(c->arena, int32_t, s->channels);
    double shortest = INFINITY;
    int shift = 0;
    for (int64_t i = 0; i < s->channels; i++)
        shortest = s->stair[i].apart > 0 ? fmin(shortest, s->stair[i].apart) : shortest;
    if (isinf(shortest))
        return NULL;
    (void)frexp(shortest, &shift);
    shift += WORD - 3; /* no m has more than 30 bits */
    if (shift <= WORD || shift > 2 * WORD - CHAR_BIT - 2)
        return NULL;
    for (int64_t i = 0; i < s->channels; i++) {
        const double apart = s->stair[i].apart > 0 ? s->stair[i].apart : shortest;
        m[i] = (int32_t)rint(ldexp(1, shift) / apart);
        if (!exact(s, &s->stair[i], k, shift, m[i], &b[i]))
            return NULL;
    }
    Node *x = ingot_mul(c, as_result(s, s->x), node_const_i(c, INGOT_I32, (int64_t)1 << k));
    x = ingot_mulhi(c, ingot_add(c, x, by_channel(s, b)), by_channel(s, m));
    Node *by = node_const_i(c, INGOT_I32, shift - (WORD - 1));
    return ingot_shr(c, x, by);
}

/* Bounds of the outer MAX and MIN; what is below them. */
static Node *below_clamp(Node *n, int32_t *lo, int32_t *hi)
{
    while (n->op == OP_MAX || n->op == OP_MIN) {
        Node *k = uniform(n->src[1]);
        if (!k || k->dtype != INGOT_I32)
            break;
        if (n->op == OP_MAX && k->arg.i > *lo)
            *lo = (int32_t)k->arg.i;
        if (n->op == OP_MIN && k->arg.i < *hi)
            *hi = (int32_t)k->arg.i;
        n = n->src[0];
    }
    return n;
}

Node *one_shift(Rewrite *r, Node *n)
{
    Context *c = r->c;
    Node *top = n->src[0];
    const bool sign = n->dtype == INGOT_I8;
    Stairs s = {
        .r = r, .rank = n->rank, .axis = -1, .channels = 1, .lo = INT32_MIN, .hi = INT32_MAX};
    if (!r->scalar || !r->settled || (!sign && n->dtype != INGOT_U8) || top->dtype != INGOT_I32)
        return NULL;
    (void)below_clamp(top, &s.lo, &s.hi);
    if (s.lo < (sign ? INT8_MIN : 0) || s.hi > (sign ? INT8_MAX : UINT8_MAX) || !find_x(&s, top))
        return NULL;
    const double reach = reach_of(&s, s.x);
    int k;
    if (!(reach >= 1 && reach < INT32_MAX / 2))
        return NULL;
    s.reach = (int32_t)reach;
    (void)frexp(reach, &k);
    k = WORD - 2 - k; /* a bit is left for what is added */
    if (k < 1)
        return NULL;
    s.stair = NEWN(r->a, Stair, s.channels);
    for (s.at = 0; s.at < s.channels; s.at++)
        if (!find_stair(&s) || !fit(&s, &s.stair[s.at], k))
            return NULL;
    Node *y = line_of(&s, k);
    if (!y || ingot_is_poison(y))
        return NULL;
    y = ingot_min(c, ingot_max(c, y, node_const_i(c, INGOT_I32, s.lo)),
                  node_const_i(c, INGOT_I32, s.hi));
    return ingot_cast(c, y, (ingot_dtype)n->dtype);
}
