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
#include <string.h>

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
    int32_t reach;             /* |x| is at most this */
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
    int32_t lo, hi;                 /* the bounds of bytes */
    Stair *stair;                   /* by channel */
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
    case OP_DIV:
    case OP_SHL:
    case OP_SHR:
    case OP_SHRR: return is_constant(n->src[1], 0) ? 1 : -1;
    default: return -1;
    }
}

/* 0 < x ? x + k : x - k, for a division that rounds halves away from zero */
static bool goes_away(const Node *n)
{
    if (n->op != OP_WHERE)
        return false;
    const Node *is = n->src[0], *more = n->src[1], *less = n->src[2];
    Node *zero = is->op == OP_LT ? uniform(is->src[0]) : NULL;
    return zero && zero->arg.i == 0 && more->op == OP_ADD && less->op == OP_SUB &&
           more->src[0] == is->src[1] && less->src[0] == is->src[1] &&
           more->src[1] == less->src[1] && is_constant(more->src[1], 0);
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
        } else if (goes_away(n)) {
            s->rounds = true;
            if (!add_step(s, n, OP_WHERE, n->src[1]->src[1]))
                return false;
            n = n->src[1]->src[0];
        } else if (k >= 0) {
            s->rounds |=
                !s->multiplies && (n->op == OP_ADD || (n->op == OP_SHRR && !uniform(n->src[1])));
            s->multiplies |=
                n->op == OP_MULHI || n->op == OP_DIV || (n->op == OP_MUL && n->dtype == INGOT_I64);
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
    s->fails |= step->op == OP_DIV && k < 1;
    if (s->fails)
        return 0;
    switch (step->op) {
    case OP_ADD: return x + k;
    case OP_SUB: return x - k;
    case OP_DIV: return x / k;
    case OP_WHERE: return x > 0 ? x + k : x - k;
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

/* Numbers by channel; count: how many there are, or one for all. NULL: they are none such. */
static const double *channel_numbers(Stairs *s, Node *k, int64_t *count, double *most)
{
    int64_t dims[INGOT_MAX_RANK];
    k = compact_form(s->r, as_result(s, k));
    if (!k || ingot_is_poison(k))
        return NULL;
    for (int i = 0; i < k->rank; i++)
        if (!idx_is(k->shape[i], 1) && i != s->axis)
            return NULL;
    const double *v = constant_numbers(s->r, ingot_cast(s->r->c, k, INGOT_F64), dims, count, most);
    return v && (*count == 1 || *count == s->channels) ? v : NULL;
}

/* How far from 0 the integer may be. A sum of products with weights: of each result these are as
 * large as they are. The greatest one; INFINITY: it may be anything. */
static double find_reach(Stairs *s)
{
    Node *n = s->x;
    const double any = largest_integer(n, 0);
    double all = 0, *reach = NEWN(s->r->a, double, s->channels);
    for (int64_t c = 0; c < s->channels; c++)
        reach[c] = any;
    for (int i = 0; n->op == OP_REDUCE && sums_integers(n) && i < 2; i++) {
        Node *w = n->src[0]->src[i], *x = n->src[0]->src[1 - i];
        int64_t count;
        double lo, hi, most;
        if (!is_weight(w) || !value_range(x, &lo, &hi))
            continue;
        Node *k = compact_form(s->r, w);
        k = k && !ingot_is_poison(k) ? sum_over(s->r, w, ingot_abs(s->r->c, k), reduce_axes(n))
                                     : NULL;
        const double *v =
            k ? channel_numbers(s, ingot_expand(s->r->c, k, n->rank, n->shape), &count, &most)
              : NULL;
        for (int64_t c = 0; v && c < s->channels; c++)
            reach[c] = fmin(reach[c], v[count > 1 ? c : 0] * fmax(-lo, hi));
    }
    for (int64_t c = 0; c < s->channels; c++) {
        all = fmax(all, reach[c]);
        if (all < INT32_MAX / 2)
            s->stair[c].reach = (int32_t)reach[c];
    }
    return all;
}

/* ---- stairs ---------------------------------------------------------------------------------- */

/* The least x above `from` whose value is y or more, where `guess` is near to it. */
static int64_t step_to(Stairs *s, int64_t y, int64_t from, int64_t guess)
{
    int64_t lo = from, hi = guess, ahead = 1; /* below y at lo; not at hi */
    const int64_t reach = s->stair[s->at].reach;
    hi = hi > reach + 1 ? reach + 1 : hi <= lo ? lo + 1 : hi;
    while (hi <= reach && value_of(s, hi) < y && !s->fails) {
        lo = hi;
        hi = hi + ahead > reach ? reach + 1 : hi + ahead;
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
    const int64_t from = value_of(s, -(int64_t)t->reach), to = value_of(s, t->reach);
    int64_t x = -(int64_t)t->reach, apart = 1;
    t->first = (int)from + 1;
    if (s->fails || from < s->lo || to > s->hi)
        return false;
    for (int64_t y = from + 1; y <= to; y++) {
        const int64_t next = step_to(s, y, x > -(int64_t)t->reach ? x - 1 : x, x + apart);
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
        lo = fmax(lo, (t->first - 1) * apart + unit * t->reach);
    if (t->first + t->n <= s->hi)
        hi = fmin(hi, (t->first + t->n) * apart - unit * t->reach);
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
        const int64_t x = i < 0 ? -(int64_t)t->reach : i == t->n ? t->reach + 1 : t->x[i];
        lo = i < t->n && at - x * unit > lo ? at - x * unit : lo;
        hi = i >= 0 && at - 1 - (x - 1) * unit < hi ? at - 1 - (x - 1) * unit : hi;
    }
    *b = (int32_t)(lo + (hi - lo) / 2);
    return lo <= hi && llabs((long long)*b) + unit * t->reach < INT32_MAX;
}

/* The right shift for a step of this length: no multiplier has more than 30 bits. */
static int shift_for(double apart)
{
    enum { MOST = 2 * WORD - CHAR_BIT - 2 };
    int shift;
    (void)frexp(apart, &shift);
    shift += WORD - 3;
    return shift < MOST ? shift : MOST;
}

typedef struct {
    int32_t m, b;
    int shift;
} Line;

/* shift: of all channels, or 0: one of its own. A channel of one byte or two may have a step of any
 * length, the shortest of the others or more. */
static bool find_line(const Stairs *s, const Stair *t, int k, double shortest, int shift, Line *l)
{
    const double most = ldexp(2.0 * t->reach + 2, k);
    double apart = t->apart > 0 ? t->apart : shortest;
    for (;; apart *= 2) {
        l->shift = shift ? shift : shift_for(apart);
        l->m = (int32_t)rint(ldexp(1, l->shift) / apart);
        if (l->shift > WORD && l->m > 0 && exact(s, t, k, l->shift, l->m, &l->b))
            return true;
        if (t->apart > 0 || apart > most)
            return false;
    }
}

/* With the multiplier of the channel that makes most bytes for all, if that gives the same. */
static void share_multiplier(const Stairs *s, int k, Line *line)
{
    Line *shared = NEWN(s->r->a, Line, s->channels);
    int64_t most = 0;
    for (int64_t i = 0; i < s->channels; i++)
        most = s->stair[i].n > s->stair[most].n ? i : most;
    for (int64_t i = 0; i < s->channels; i++) {
        shared[i] = line[most];
        if (!exact(s, &s->stair[i], k, line[most].shift, line[most].m, &shared[i].b))
            return;
    }
    memcpy(line, shared, (size_t)s->channels * sizeof *line);
}

/* Lines of all channels; each: shifts may differ. NULL: one has none. */
static Line *find_lines(const Stairs *s, int k, bool each)
{
    Line *line = NEWN(s->r->a, Line, s->channels);
    double shortest = INFINITY;
    for (int64_t i = 0; i < s->channels; i++)
        shortest = s->stair[i].apart > 0 ? fmin(shortest, s->stair[i].apart) : shortest;
    const int shift = isinf(shortest) || each ? 0 : shift_for(shortest);
    for (int64_t i = 0; i < s->channels; i++)
        if (isinf(shortest) || !find_line(s, &s->stair[i], k, shortest, shift, &line[i]))
            return NULL;
    if (!each)
        share_multiplier(s, k, line);
    return line;
}

static Node *by_channel(const Stairs *s, ingot_dtype d, const void *v)
{
    int64_t dims[INGOT_MAX_RANK];
    for (int i = 0; i < s->rank; i++)
        dims[i] = i == s->axis ? s->channels : 1;
    return ingot_data(s->r->c, NULL, d, s->rank, dims, v);
}

static Node *line_of(Stairs *s, int k)
{
    Context *c = s->r->c;
    const Line *line = find_lines(s, k, false), *each = line ? NULL : find_lines(s, k, true);
    const Line *l = line ? line : each;
    if (!l)
        return NULL;
    int32_t *m = NEWN(c->arena, int32_t, s->channels), *b = NEWN(c->arena, int32_t, s->channels);
    int8_t *shift = NEWN(c->arena, int8_t, s->channels);
    for (int64_t i = 0; i < s->channels; i++) {
        m[i] = l[i].m;
        b[i] = l[i].b;
        shift[i] = (int8_t)(l[i].shift - (WORD - 1));
    }
    const bool one = s->axis < 0;
    Node *x = ingot_mul(c, as_result(s, s->x), node_const_i(c, INGOT_I32, (int64_t)1 << k));
    Node *by = each && !one ? ingot_cast(c, by_channel(s, INGOT_I8, shift), INGOT_I32)
                            : node_const_i(c, INGOT_I32, *shift);
    x = ingot_add(c, x, one ? node_const_i(c, INGOT_I32, *b) : by_channel(s, INGOT_I32, b));
    x = ingot_mulhi(c, x, one ? node_const_i(c, INGOT_I32, *m) : by_channel(s, INGOT_I32, m));
    return ingot_shr(c, x, by);
}

Node *below_clamp(Node *n, int32_t *lo, int32_t *hi)
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
    s.stair = NEWN(r->a, Stair, s.channels);
    const double reach = find_reach(&s);
    int k;
    if (!(reach >= 1 && reach < INT32_MAX / 2))
        return NULL;
    (void)frexp(reach, &k);
    k = WORD - 2 - k; /* a bit is left for what is added */
    if (k < 1)
        return NULL;
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
