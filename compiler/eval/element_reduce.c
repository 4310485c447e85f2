/* element_reduce.c - elements of reductions, running ones too, and of what is updated: over all
 * terms, so many at a time. */
#include "element.h"

#include <math.h>
#include <string.h>

enum { PIECE = 512 }; /* lanes of terms */

/* What is known of an element so far. */
typedef struct {
    _Alignas(16) char v[16];
    double error, sizes; /* sizes: of the terms of a sum; of a product log2 of those above 1 */
    int64_t last;        /* SCAN: the last of its terms; REDUCE: that of all */
    char index[8];       /* of a state's second value */
} Partial;

static bool is_wide(const Node *n)
{
    return dtype_is_float(n->dtype);
}

/* The type that terms are joined in. */
static ingot_dtype joined_in(const Node *x)
{
    return is_wide(x)                ? INGOT_F64
           : x->dtype == INGOT_INDEX ? INGOT_INDEX
                                     : dtype_info[x->dtype].compute;
}

static void join_floats(Partial *p, int monoid, double v, double e, double eps)
{
    double a, y;
    memcpy(&a, p->v, sizeof a);
    if (monoid == INGOT_REDUCE_ADD) { /* most are sums */
        y = a + v;
        p->error += e;
        p->sizes += fabs(v);
        memcpy(p->v, &y, sizeof y);
        return;
    }
    const uint8_t types[3] = {INGOT_F64, INGOT_F64, INGOT_F64};
    const void *in[3] = {&a, &v, &a};
    alu_lanes(monoid_op((ingot_reduce_op)monoid), 0, INGOT_F64, types, 1, &y, in);
    if (monoid == INGOT_REDUCE_MUL && fabs(v) > 1)
        p->sizes += log2(fabs(v));
    p->error = monoid == INGOT_REDUCE_MUL ? fabs(a) * e + fabs(v) * p->error + eps * fabs(y)
                                          : fmax(p->error, e);
    memcpy(p->v, &y, sizeof y);
}

static void join_others(Partial *p, int monoid, ingot_dtype t, const void *v, double e)
{
    const uint8_t types[3] = {(uint8_t)t, (uint8_t)t, (uint8_t)t};
    const void *in[3] = {p->v, v, p->v};
    alu_lanes(monoid_op((ingot_reduce_op)monoid), 0, t, types, 1, p->v, in);
    if (e > 0 && monoid == INGOT_REDUCE_ADD)
        p->error += e;
    else if (e > 0)
        p->error =
            monoid == INGOT_REDUCE_MAX || monoid == INGOT_REDUCE_MIN ? fmax(p->error, e) : INFINITY;
}

/* Greatest or least, and which it is: unless another one is as near as rounding. */
static void join_state(Partial *p, const Node *n, bool first, double v, double e, const char *index)
{
    const int monoid = reduce_monoid(n);
    const bool greatest = monoid == MONOID_ARGMAX || monoid == MONOID_ARGMAX_LAST,
               later = monoid == MONOID_ARGMAX_LAST || monoid == MONOID_ARGMIN_LAST;
    const ingot_dtype t = (ingot_dtype)n->src[1]->dtype;
    double best;
    memcpy(&best, p->v, sizeof best);
    int order = 1;
    if (!first && (isnan(v) || isnan(best)))
        order = isnan(v) - isnan(best);
    else if (!first)
        order = greatest ? (v > best) - (v < best) : (v < best) - (v > best);
    if (!first && fabs(v - best) <= 4 * (e + p->sizes) && e + p->sizes > 0)
        p->error = INFINITY;
    const int64_t i = load_int(t, index), j = first ? 0 : load_int(t, p->index);
    if (order < 0 || (order == 0 && (later ? i < j : i > j)))
        return;
    memcpy(p->v, &v, sizeof v);
    memcpy(p->index, index, elem_bytes(t));
    p->sizes = e; /* of the best */
}

/* The terms k.. of all elements: coordinates of the source. */
static Batch *terms(Elements *q, Node *n, int count, int64_t *const *at, int64_t k, int nterm)
{
    Node *x = n->src[0];
    const int64_t *s = element_dims(q, x);
    Batch *b = element_batch(q, count * nterm, x->rank);
    const unsigned axes = reduce_axes(n);
    for (int t = 0; t < nterm; t++) {
        int64_t rest = k + t;
        for (int i = x->rank; i-- > 0;) {
            const bool reduced = axes >> i & 1;
            for (int u = 0; u < count; u++)
                b->x[i][t * count + u] = reduced ? rest % s[i] : at[i][u];
            rest /= reduced ? s[i] : 1;
        }
    }
    return b;
}

static void begin(const Node *n, Partial *p)
{
    const int monoid = reduce_monoid(n);
    if (monoid < INGOT_REDUCE_COUNT)
        alu_identity((ingot_reduce_op)monoid, joined_in(n->src[0]), p->v);
}

static bool join_piece(Elements *q, Node *n, int count, Partial *p, const Batch *b, int64_t k,
                       int nterm)
{
    Node *x = n->src[0];
    const bool state = reduce_size(n) > 1, wide = is_wide(x);
    const ingot_dtype t = joined_in(x);
    const Lanes *v = element_value(q, x, b), *index = state ? element_value(q, n->src[1], b) : v;
    if (!v || !index)
        return false;
    const char *from = v->v;
    size_t size = element_bytes_of(x);
    if (!wide && t != (ingot_dtype)x->dtype) {
        char *as = arena_alloc(element_arena(q), (size_t)b->n * elem_bytes(t) + 1);
        alu_cast(t, (ingot_dtype)x->dtype, 0, (size_t)b->n, as, from);
        from = as;
        size = elem_bytes(t);
    }
    const double eps = element_eps((ingot_dtype)x->dtype);
    for (int i = 0, lane = 0, term = 0; i < b->n; i++, lane++) {
        if (lane == count) {
            lane = 0;
            term++;
        }
        Partial *to = &p[lane];
        const double e = v->error ? v->error[i] : 0;
        double d = 0;
        if (k + term > to->last)
            continue;
        if (wide)
            memcpy(&d, from + (size_t)i * size, sizeof d);
        else if (state)
            alu_cast(INGOT_F64, t, 0, 1, &d, from + (size_t)i * size);
        if (state)
            join_state(to, n, k + term == 0, d, e,
                       (char *)index->v + (size_t)i * elem_bytes((ingot_dtype)n->src[1]->dtype));
        else if (wide)
            join_floats(to, reduce_monoid(n), d, e, eps);
        else
            join_others(to, reduce_monoid(n), t, from + (size_t)i * size, e);
    }
    (void)nterm;
    return true;
}

/* The element in the type of the node. */
static void finish(const Node *n, Partial *p, int64_t terms_of_it)
{
    const Node *x = n->src[0];
    const bool wide = is_wide(x);
    if (reduce_size(n) > 1) {
        if (reduce_part(n) == 1) {
            memcpy(p->v, p->index, elem_bytes((ingot_dtype)n->dtype));
            return;
        }
        p->error = p->sizes;
        if (!wide) {
            double d;
            memcpy(&d, p->v, sizeof d);
            alu_cast((ingot_dtype)n->dtype, INGOT_F64, 0, 1, p->v, &d);
        }
        return;
    }
    if (wide && reduce_monoid(n) == INGOT_REDUCE_ADD) {
        double d;
        memcpy(&d, p->v, sizeof d);
        p->error += sqrt((double)terms_of_it) * element_eps((ingot_dtype)n->dtype) * p->sizes +
                    element_eps((ingot_dtype)n->dtype) * fabs(d);
        if (!(p->sizes < element_most((ingot_dtype)n->dtype)))
            p->error = INFINITY;
    }
    if (wide && reduce_monoid(n) == INGOT_REDUCE_MUL) { /* others may multiply in another order */
        const ingot_dtype d = (ingot_dtype)n->dtype;
        p->error += element_least(d) * exp2(p->sizes);
        if (!(p->sizes < log2(element_most(d))))
            p->error = INFINITY;
    }
    if (!wide && joined_in(x) != (ingot_dtype)n->dtype)
        alu_cast((ingot_dtype)n->dtype, joined_in(x), 1, 1, p->v, p->v);
}

static bool reduce_all(Elements *q, Node *n, int count, int64_t *const *at, Partial *p)
{
    Node *x = n->src[0];
    const int64_t *s = element_dims(q, x);
    const unsigned axes = reduce_axes(n);
    int64_t all = 1, most = 0;
    int scanned = 0;
    for (int i = 0; i < x->rank; i++)
        if (axes >> i & 1) {
            all = sat_mul(all, s[i]);
            scanned = i;
        }
    for (int u = 0; u < count; u++) {
        begin(n, &p[u]);
        p[u].last = n->op == OP_SCAN ? at[scanned][u] : all - 1;
        most = p[u].last + 1 > most ? p[u].last + 1 : most;
    }
    int piece = count < PIECE ? PIECE / count : 1;
    if (sat_mul(most, count) > q->left) {
        q->unknown = true;
        return false;
    }
    for (int64_t k = 0; k < most; k += piece) {
        piece = most - k < piece ? (int)(most - k) : piece;
        struct ElementFrame *f = element_begin(q);
        const bool good = join_piece(q, n, count, p, terms(q, n, count, at, k, piece), k, piece);
        element_end(q, f);
        if (!good)
            return false;
    }
    for (int u = 0; u < count; u++)
        finish(n, &p[u], p[u].last + 1);
    return true;
}

/* Each of the same coordinates is computed once. */
const Lanes *element_reduce(Elements *q, Node *n, const Batch *at)
{
    Arena *a = element_arena(q);
    const size_t size = element_bytes_of(n);
    Map *known = element_known(q);
    Partial *p = element_keep(q, (size_t)(at->n + 1) * sizeof *p);
    const Partial **which = NEWN(a, const Partial *, at->n + 1);
    int count = 0;
    int64_t *own[INGOT_MAX_RANK];
    for (int i = 0; i < n->rank; i++)
        own[i] = NEWN(a, int64_t, at->n + 1);
    for (int k = 0; k < at->n; k++) {
        uint64_t key = 1;
        for (int i = 0; i < n->rank; i++)
            key = hash_bytes(key, &at->x[i][k], sizeof(int64_t));
        key = hash_bytes(key, &n->id, sizeof n->id);
        which[k] = map_get(known, key);
        if (which[k])
            continue;
        which[k] = &p[count];
        map_put(known, key, &p[count]);
        for (int i = 0; i < n->rank; i++)
            own[i][count] = at->x[i][k];
        count++;
    }
    if (count && !reduce_all(q, n, count, own, p))
        return NULL;
    Lanes *out = NEW(a, Lanes);
    out->v = arena_alloc(a, (size_t)(at->n + 1) * size);
    out->error = NEWN(a, double, at->n + 1);
    for (int k = 0; k < at->n; k++) {
        memcpy((char *)out->v + (size_t)k * size, which[k]->v, size);
        out->error[k] = which[k]->error;
    }
    return out;
}

/* ---- updates --------------------------------------------------------------------------------- */

/* Of an element that an update writes: v, or what both are together. */
static void combine(const Node *n, size_t size, char *to, double *e, const char *v, double ev)
{
    static const Op how[] = {OP_CAST, OP_ADD, OP_MUL, OP_MAX, OP_MIN};
    if (n->arg.i == INGOT_SET) {
        memcpy(to, v, size);
        *e = ev;
        return;
    }
    const bool wide = is_wide(n);
    const uint8_t t = wide ? INGOT_F64 : n->dtype, types[3] = {t, t, t};
    const void *in[3] = {to, v, to};
    double a = 0, b = 0, y = 0;
    if (wide) {
        memcpy(&a, to, sizeof a);
        memcpy(&b, v, sizeof b);
    }
    _Alignas(16) char out[16];
    alu_lanes(how[n->arg.i], 0, (ingot_dtype)t, types, 1, out, in);
    memcpy(to, out, size);
    if (!wide) {
        *e = *e > 0 || ev > 0 ? INFINITY : 0;
        return;
    }
    memcpy(&y, to, sizeof y);
    const double eps = element_eps((ingot_dtype)n->dtype) * (fabs(y) + fabs(a) + fabs(b));
    *e = n->arg.i == INGOT_MUL ? fabs(a) * ev + fabs(b) * *e + eps : *e + ev + eps;
}

/* The next terms of v: which elements they write, and what. */
static bool update_piece(Elements *q, Node *n, const Batch *at, int64_t k, int count, Lanes *out)
{
    Node *v = n->src[1];
    const int64_t *s = element_dims(q, v);
    const size_t size = element_bytes_of(n);
    Batch *b = element_batch(q, count, v->rank);
    for (int t = 0; t < count; t++) {
        int64_t rest = k + t;
        for (int i = v->rank; i-- > 0; rest /= s[i])
            b->x[i][t] = rest % s[i];
    }
    int64_t *to[INGOT_MAX_RANK];
    for (int i = 0; i < n->rank; i++) {
        const Lanes *index = element_value(q, n->src[2 + i], b);
        if (!index)
            return false;
        to[i] = NEWN(element_arena(q), int64_t, count + 1);
        alu_cast(INGOT_I64, (ingot_dtype)n->src[2 + i]->dtype, 0, (size_t)count, to[i], index->v);
        for (int t = 0; t < count && index->error; t++)
            q->unknown |= index->error[t] > 0;
    }
    const Lanes *value = NULL;
    for (int u = 0; u < at->n && element_work(q, count); u++)
        for (int t = 0; t < count; t++) {
            bool same = true;
            for (int i = 0; i < n->rank && same; i++)
                same = to[i][t] == at->x[i][u];
            if (!same)
                continue;
            if (!value && !(value = element_value(q, v, b)))
                return false;
            combine(n, size, (char *)out->v + (size_t)u * size, &out->error[u],
                    (char *)value->v + (size_t)t * size, value->error ? value->error[t] : 0);
        }
    return !q->unknown;
}

const Lanes *element_update(Elements *q, Node *n, const Batch *at)
{
    Arena *a = element_arena(q);
    const size_t size = element_bytes_of(n), stored = elem_bytes((ingot_dtype)n->dtype);
    Lanes *out = NEW(a, Lanes);
    out->v = arena_alloc(a, (size_t)(at->n + 1) * size);
    out->error = NEWN(a, double, at->n + 1);
    char *old = arena_alloc(a, (size_t)(at->n + 1) * stored);
    if (q->leaf(q->user, n, -1, at->n, at->x, old)) {
        if (is_wide(n))
            alu_cast(INGOT_F64, (ingot_dtype)n->dtype, 0, (size_t)at->n, out->v, old);
        else
            memcpy(out->v, old, (size_t)at->n * stored);
    } else {
        const Lanes *x = element_value(q, n->src[0], at);
        if (!x)
            return NULL;
        memcpy(out->v, x->v, (size_t)at->n * size);
        if (x->error)
            memcpy(out->error, x->error, (size_t)at->n * sizeof(double));
    }
    int64_t all = 1;
    for (int i = 0; i < n->src[1]->rank; i++)
        all = sat_mul(all, element_dims(q, n->src[1])[i]);
    if (all > q->left) {
        q->unknown = true;
        return NULL;
    }
    for (int64_t k = 0; k < all; k += PIECE) {
        struct ElementFrame *f = element_begin(q);
        const bool good = update_piece(q, n, at, k, all - k < PIECE ? (int)(all - k) : PIECE, out);
        element_end(q, f);
        if (!good)
            return NULL;
    }
    return out;
}
