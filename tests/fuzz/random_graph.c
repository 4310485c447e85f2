/* random_graph.c - a random graph of the compiler's own operators. Of each value is known how large
 * its elements may be and into how many parts of a half they are cut, so that sums stay exact. */
#include <math.h>
#include <string.h>

#include "compiler/eval/interp.h"
#include "random_graph.h"
#include "random_models.h"

enum { MOST_VALUES = 64, MOST_ELEMENTS = 8192 };

typedef struct {
    ingot_tensor *t;
    double most; /* no element is larger */
    int parts;   /* elements are multiples of 2^-parts */
} GraphValue;

typedef struct {
    Context *c;
    Arena *a;
    GraphValue v[MOST_VALUES];
    int n;
    ingot_dim *size; /* of the run, from 0 to 9; NULL: there is none */
    int64_t now;     /* what it is */
    int depth;       /* of regions */
} Graph;

static bool chance(uint32_t n)
{
    return random_below(n) == 0;
}

static bool is_float_type(ingot_dtype d)
{
    return d == INGOT_F32 || d == INGOT_F16 || d == INGOT_BF16 || d == INGOT_F64;
}

static bool is_integer(ingot_dtype d)
{
    return !is_float_type(d) && d != INGOT_BOOL;
}

/* The largest number up to which all integers are exact in sums. */
static double room(ingot_dtype d)
{
    switch (d) {
    case INGOT_F16: return 2048;
    case INGOT_BF16: return 256;
    case INGOT_F32: return 1 << 22;
    case INGOT_F64: return 1e12;
    default: return 1e15; /* integers wrap */
    }
}

static int64_t now_of(const Graph *g, ingot_dim *d)
{
    int64_t n;
    return ingot_dim_is_const(d, &n) ? n : d == g->size ? g->now : ingot_dim_hi(d);
}

static int64_t elements(const Graph *g, ingot_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < ingot_rank(t); i++)
        n *= now_of(g, ingot_shape(t, i));
    return n;
}

static void keep(Graph *g, ingot_tensor *t, double most, int parts)
{
    if (!t || ingot_is_poison(t) || g->n >= MOST_VALUES || elements(g, t) > MOST_ELEMENTS)
        return;
    ingot_dtype d = ingot_dtype_of(t);
    if (is_float_type(d) && ldexp(most, parts) > room(d)) { /* makes it small again */
        t = ingot_clamp(g->c, ingot_round(g->c, t), -8, 8);
        most = 8;
        parts = 0;
    }
    g->v[g->n++] = (GraphValue){t, most, parts};
}

/* Some value, more often one of the last. */
static const GraphValue *some(const Graph *g)
{
    int late = g->n < 4 ? g->n : 4;
    return &g->v[g->n - 1 - (int)random_below((uint32_t)(chance(2) ? late : g->n))];
}

/* One of at least this rank; NULL: none was found. */
static const GraphValue *of_rank(const Graph *g, int rank)
{
    for (int i = 0; i < 12; i++) {
        const GraphValue *x = some(g);
        if (ingot_rank(x->t) >= rank)
            return x;
    }
    return NULL;
}

static ingot_dim *number(Graph *g, int64_t n)
{
    return ingot_dim_const(g->c, n);
}

static void dims_of(ingot_tensor *t, ingot_dim **dims)
{
    for (int i = 0; i < ingot_rank(t); i++)
        dims[i] = ingot_shape(t, i);
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static const ingot_dtype types[] = {INGOT_F32,  INGOT_F32, INGOT_F32, INGOT_I32,  INGOT_I64,
                                    INGOT_I8,   INGOT_U8,  INGOT_I16, INGOT_BOOL, INGOT_F16,
                                    INGOT_BF16, INGOT_U32, INGOT_F64};

static ingot_dtype some_type(void)
{
    return types[random_below(sizeof types / sizeof *types)];
}

static double fill(ingot_dtype d, unsigned char *p, int64_t n)
{
    bool any_sign = d != INGOT_U8 && d != INGOT_U32 && d != INGOT_BOOL;
    for (int64_t i = 0; i < n; i++) {
        int v = (int)random_below(13) - (any_sign ? 6 : 0);
        store_int(d, d == INGOT_BOOL ? v & 1 : v, p + (size_t)i * elem_bytes(d));
    }
    return d == INGOT_BOOL ? 1 : any_sign ? 6 : 12;
}

static int some_shape(Graph *g, ingot_dim **dims, int64_t *now)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 0};
    int rank = (int)random_below(5);
    int64_t all = 1;
    for (int i = 0; i < rank; i++) {
        now[i] = sizes[random_below(chance(12) ? 12 : 11)];
        dims[i] = number(g, now[i]);
        if (g->size && chance(3)) {
            now[i] = g->now;
            dims[i] = g->size;
        }
        if (all * now[i] > 600) {
            now[i] = 2;
            dims[i] = number(g, 2);
        }
        all *= now[i];
    }
    return rank;
}

/* NULL: it would be too large. */
static const GraphValue *constant_of(Graph *g, ingot_dtype d, int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    if (n > MOST_ELEMENTS || g->n >= MOST_VALUES)
        return NULL;
    unsigned char *p = arena_alloc(g->a, (size_t)n * elem_bytes(d) + 1);
    double most = fill(d, p, n);
    keep(g, ingot_data(g->c, "k", d, rank, dims, p), most, 0);
    return &g->v[g->n - 1];
}

static void input(Graph *g, ingot_value *in, int k)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    char name[] = "x0";
    ingot_value *v = &in[k];
    int64_t n = 1;
    *v = (ingot_value){.dtype = some_type()};
    v->rank = some_shape(g, dims, v->dims);
    if (!k && g->size && !v->rank)
        v->rank = 1;
    if (!k && g->size) { /* some input tells the run's size */
        v->dims[v->rank - 1] = g->now;
        dims[v->rank - 1] = g->size;
    }
    for (int i = 0; i < v->rank; i++)
        n *= v->dims[i];
    unsigned char *p = arena_alloc(g->a, (size_t)n * elem_bytes(v->dtype) + 1);
    double most = fill(v->dtype, p, n);
    v->data = p;
    name[1] = (char)('0' + k);
    keep(g, ingot_input(g->c, name, v->dtype, v->rank, dims), most, 0);
}

/* ---- elements -------------------------------------------------------------------------------- */

static void unary(Graph *g)
{
    const GraphValue x = *some(g);
    ingot_dtype d = ingot_dtype_of(x.t);
    if (d == INGOT_BOOL) {
        keep(g, ingot_not(g->c, x.t), 1, 0);
        return;
    }
    switch (random_below(is_float_type(d) ? 8 : 5)) {
    case 0: keep(g, ingot_neg(g->c, x.t), x.most, x.parts); break;
    case 1: keep(g, ingot_abs(g->c, x.t), x.most, x.parts); break;
    case 2: keep(g, ingot_sign(g->c, x.t), 1, 0); break;
    case 3: keep(g, ingot_relu(g->c, x.t), x.most, x.parts); break;
    case 4: keep(g, ingot_clamp(g->c, x.t, 0, 3), x.most, x.parts); break;
    case 5: keep(g, ingot_floor(g->c, ingot_mul_c(g->c, x.t, 0.5)), x.most, 0); break;
    case 6: keep(g, ingot_round(g->c, ingot_mul_c(g->c, x.t, 0.25)), x.most, 0); break;
    default:
        if (x.parts < 3)
            keep(g, ingot_mul_c(g->c, x.t, 0.5), x.most, x.parts + 1);
        break;
    }
}

static void with_number(Graph *g)
{
    static const double some_number[] = {0, 1, -1, 2, 3, 0.5, -2, 4, 7, 8};
    const GraphValue x = *some(g);
    ingot_dtype d = ingot_dtype_of(x.t);
    double k = some_number[random_below(10)];
    if (d == INGOT_BOOL)
        return;
    if (!is_float_type(d))
        k = fabs(trunc(k));
    int parts = x.parts + (k == 0.5);
    switch (random_below(is_integer(d) ? 8 : 4)) {
    case 0: keep(g, ingot_add_c(g->c, x.t, k), x.most + fabs(k), parts); break;
    case 1: keep(g, ingot_mul_c(g->c, x.t, k), x.most * (fabs(k) + 1), parts); break;
    case 2: keep(g, ingot_max_c(g->c, x.t, k), x.most + fabs(k), parts); break;
    case 3: keep(g, ingot_min_c(g->c, x.t, k), x.most + fabs(k), parts); break;
    case 4: keep(g, ingot_div(g->c, x.t, ingot_like(g->c, x.t, k + 1)), x.most, 0); break;
    case 5: keep(g, ingot_mod(g->c, x.t, ingot_like(g->c, x.t, k + 1)), k + 1, 0); break;
    case 6: keep(g, ingot_shr(g->c, x.t, ingot_like(g->c, x.t, fmod(k, 4))), x.most, 0); break;
    default: keep(g, ingot_and(g->c, x.t, ingot_like(g->c, x.t, k)), 1e15, 0); break;
    }
}

/* Dims that broadcast: the same, or one of them is 1. */
static bool fits(const GraphValue *x, const GraphValue *y)
{
    int p = ingot_rank(x->t), q = ingot_rank(y->t);
    for (int i = 1; i <= p && i <= q; i++) {
        ingot_dim *a = ingot_shape(x->t, p - i), *b = ingot_shape(y->t, q - i);
        int64_t one;
        if (!ingot_dim_equal(a, b) && !(ingot_dim_is_const(a, &one) && one == 1) &&
            !(ingot_dim_is_const(b, &one) && one == 1))
            return false;
    }
    return true;
}

static ingot_tensor *as_type(Graph *g, const GraphValue *x, ingot_dtype d, double *most, int *parts)
{
    ingot_dtype from = ingot_dtype_of(x->t);
    *most = x->most;
    *parts = x->parts;
    if (from == d)
        return x->t;
    ingot_tensor *t = x->t;
    if (from != INGOT_BOOL && (x->most > 100 || (is_float_type(from) && x->parts)))
        t = ingot_clamp(g->c, is_float_type(from) ? ingot_round(g->c, t) : t, 0, 100);
    if (from != INGOT_BOOL && (d == INGOT_U8 || d == INGOT_U32) && from != INGOT_U8)
        t = ingot_max_c(g->c, t, 0);
    *most = d == INGOT_BOOL ? 1 : x->most > 100 ? 100 : x->most;
    *parts = 0;
    return ingot_cast(g->c, t, d);
}

static void cast(Graph *g)
{
    const GraphValue x = *some(g);
    double most;
    int parts;
    ingot_tensor *t = as_type(g, &x, some_type(), &most, &parts);
    keep(g, t, most, parts);
}

static void binary(Graph *g)
{
    const GraphValue x = *some(g);
    double most;
    int parts;
    for (int i = 0; i < 12; i++) {
        const GraphValue y = *some(g);
        if (!fits(&x, &y))
            continue;
        ingot_dtype d = ingot_dtype_of(x.t);
        ingot_tensor *t = as_type(g, &y, d, &most, &parts);
        int finer = parts > x.parts ? parts : x.parts;
        double large = most > x.most ? most : x.most;
        if (d == INGOT_BOOL) {
            keep(g,
                 chance(3)   ? ingot_and(g->c, x.t, t)
                 : chance(2) ? ingot_or(g->c, x.t, t)
                             : ingot_xor(g->c, x.t, t),
                 1, 0);
            return;
        }
        switch (random_below(9)) {
        case 0:
        case 1: keep(g, ingot_add(g->c, x.t, t), x.most + most, finer); break;
        case 2: keep(g, ingot_sub(g->c, x.t, t), x.most + most, finer); break;
        case 3:
        case 4: keep(g, ingot_mul(g->c, x.t, t), x.most * most + 1, x.parts + parts); break;
        case 5: keep(g, ingot_max(g->c, x.t, t), large, finer); break;
        case 6: keep(g, ingot_min(g->c, x.t, t), large, finer); break;
        case 7:
            keep(g,
                 chance(3)   ? ingot_lt(g->c, x.t, t)
                 : chance(2) ? ingot_eq(g->c, x.t, t)
                             : ingot_ge(g->c, x.t, t),
                 1, 0);
            break;
        default:
            keep(g, ingot_where(g->c, ingot_lt(g->c, x.t, t), t, ingot_like(g->c, x.t, 2)),
                 most + 2, parts);
            break;
        }
        return;
    }
}

/* ---- movement -------------------------------------------------------------------------------- */

static void reshape(Graph *g)
{
    const GraphValue *x = of_rank(g, 1);
    if (!x)
        return;
    int64_t dims[INGOT_MAX_RANK], n = 1, out[3];
    int rank = ingot_rank(x->t), at = (int)random_below((uint32_t)rank);
    if (!ingot_static_shape(x->t, dims) || chance(3)) {
        keep(g,
             chance(2)
                 ? ingot_flatten(g->c, x->t, at, at + 1 + (int)random_below((uint32_t)(rank - at)))
                 : ingot_unsqueeze(g->c, x->t, at),
             x->most, x->parts);
        return;
    }
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    out[0] = out[1] = 1;
    out[2] = n;
    for (int i = 0; i < 2 && n; i++)
        for (int64_t k = 2 + random_below(6); k > 1; k--)
            if (out[2] % k == 0 && out[2] / k) {
                out[i] = k;
                out[2] /= k;
                break;
            }
    keep(g, ingot_reshape_c(g->c, x->t, 3, out), x->most, x->parts);
}

static void permute(Graph *g)
{
    const GraphValue *x = of_rank(g, 2);
    int perm[INGOT_MAX_RANK], rank = x ? ingot_rank(x->t) : 0;
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int j = (int)random_below((uint32_t)i + 1), k = perm[i];
        perm[i] = perm[j];
        perm[j] = k;
    }
    if (x)
        keep(g, ingot_permute(g->c, x->t, perm), x->most, x->parts);
}

static void flip_or_slice(Graph *g)
{
    const GraphValue *x = of_rank(g, 1);
    if (!x)
        return;
    int rank = ingot_rank(x->t), axis = (int)random_below((uint32_t)rank);
    int64_t n;
    if (!ingot_dim_is_const(ingot_shape(x->t, axis), &n) || n < 2 || chance(3)) {
        keep(g, ingot_flip(g->c, x->t, 1 + random_below((1u << rank) - 1)), x->most, x->parts);
        return;
    }
    int64_t begin = random_below((uint32_t)n), step = 1 + random_below(3);
    int64_t count = (n - 1 - begin) / step + 1;
    if (chance(3)) {
        step = -step;
        count = begin / -step + 1;
    }
    count = count > 1 ? 1 + (int64_t)random_below((uint32_t)count) : count;
    keep(g, ingot_slice(g->c, x->t, axis, number(g, begin), number(g, count), step), x->most,
         x->parts);
}

static void pad(Graph *g)
{
    const GraphValue *x = of_rank(g, 1);
    int64_t lo[INGOT_MAX_RANK] = {0}, hi[INGOT_MAX_RANK] = {0}, n;
    if (!x)
        return;
    for (int i = 0; i < ingot_rank(x->t); i++) {
        bool cut = ingot_dim_is_const(ingot_shape(x->t, i), &n) && n > 3 && chance(4);
        lo[i] = chance(2) ? 0 : cut ? -1 : (int64_t)random_below(3);
        hi[i] = chance(2) ? 0 : cut ? -1 : (int64_t)random_below(4);
    }
    double value = chance(2) || ingot_dtype_of(x->t) == INGOT_BOOL ? 0 : random_below(5);
    keep(g, ingot_pad_c(g->c, x->t, lo, hi, value), x->most + value, x->parts);
}

static void expand(Graph *g)
{
    const GraphValue *x = some(g);
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank = ingot_rank(x->t), more = rank < 4 && chance(2);
    int64_t one;
    for (int i = 0; i < more; i++)
        dims[i] = g->size && chance(3) ? g->size : number(g, 1 + random_below(5));
    dims_of(x->t, dims + more);
    for (int i = more; i < rank + more; i++)
        if (ingot_dim_is_const(dims[i], &one) && one == 1)
            dims[i] = g->size && chance(3) ? g->size : number(g, 1 + random_below(9));
    keep(g, ingot_expand(g->c, x->t, rank + more, dims), x->most, x->parts);
}

static void concat(Graph *g)
{
    const GraphValue *x = of_rank(g, 1);
    if (!x)
        return;
    int axis = (int)random_below((uint32_t)ingot_rank(x->t)), n = 1;
    ingot_tensor *part[4] = {x->t};
    double most = x->most;
    int parts = x->parts;
    for (int i = 0; i < 24 && n < 4; i++) {
        const GraphValue *y = some(g);
        bool same =
            ingot_rank(y->t) == ingot_rank(x->t) && ingot_dtype_of(y->t) == ingot_dtype_of(x->t);
        for (int a = 0; same && a < ingot_rank(x->t); a++)
            same = a == axis || ingot_dim_equal(ingot_shape(x->t, a), ingot_shape(y->t, a));
        if (!same)
            continue;
        part[n++] = y->t;
        most = y->most > most ? y->most : most;
        parts = y->parts > parts ? y->parts : parts;
    }
    keep(g, ingot_concat(g->c, n, part, axis), most, parts);
}

/* ---- sums, products, places ------------------------------------------------------------------ */

static void reduce(Graph *g)
{
    static const ingot_reduce_op ops[] = {INGOT_REDUCE_ADD, INGOT_REDUCE_ADD, INGOT_REDUCE_ADD,
                                          INGOT_REDUCE_MAX, INGOT_REDUCE_MIN};
    const GraphValue *x = of_rank(g, 1);
    if (!x)
        return;
    int rank = ingot_rank(x->t);
    int64_t terms = 1;
    unsigned axes = 1 + random_below((1u << rank) - 1);
    bool any = false;
    for (int i = 0; i < rank; i++) {
        terms *= axes >> i & 1 ? now_of(g, ingot_shape(x->t, i)) : 1;
        any |= axes >> i & 1 && ingot_dim_lo(ingot_shape(x->t, i)) < 1;
    }
    if (ingot_dtype_of(x->t) == INGOT_BOOL) {
        keep(g,
             ingot_reduce(g->c, chance(2) ? INGOT_REDUCE_AND : INGOT_REDUCE_OR, x->t, axes,
                          chance(2)),
             1, 0);
        return;
    }
    ingot_reduce_op op = ops[any ? 0 : random_below(5)];
    double most = op == INGOT_REDUCE_ADD ? x->most * (double)(terms + 1) : x->most;
    if (is_float_type(ingot_dtype_of(x->t)) && ldexp(most, x->parts) > room(INGOT_F32))
        return;
    keep(g, ingot_reduce(g->c, op, x->t, axes, chance(2)), most, x->parts);
}

static void extreme(Graph *g)
{
    const GraphValue *x = of_rank(g, 1);
    if (!x || ingot_dtype_of(x->t) == INGOT_BOOL)
        return;
    int axis = (int)random_below((uint32_t)ingot_rank(x->t));
    ingot_dim *n = ingot_shape(x->t, axis);
    if (ingot_dim_lo(n) > 0)
        keep(g,
             chance(2) ? ingot_argmax(g->c, x->t, axis, chance(2), chance(3))
                       : ingot_argmin(g->c, x->t, axis, chance(2), chance(3)),
             (double)ingot_dim_hi(n), 0);
}

static void scan(Graph *g)
{
    const GraphValue *x = of_rank(g, 1);
    if (!x || ingot_dtype_of(x->t) == INGOT_BOOL)
        return;
    int axis = (int)random_below((uint32_t)ingot_rank(x->t));
    double n = (double)now_of(g, ingot_shape(x->t, axis));
    if (is_float_type(ingot_dtype_of(x->t)) &&
        ldexp(x->most * (n + 1), x->parts) > room(ingot_dtype_of(x->t)))
        return;
    bool sum = chance(2);
    keep(g,
         ingot_cumulate(g->c, sum ? INGOT_REDUCE_ADD : INGOT_REDUCE_MAX, x->t, axis,
                        sum && chance(2), chance(2)),
         sum ? x->most * (n + 1) : x->most, x->parts);
}

/* x, or what is drawn, by a matrix of constants or by another value. */
static void product(Graph *g)
{
    const GraphValue x = *some(g);
    ingot_dtype d = ingot_dtype_of(x.t);
    int rank = ingot_rank(x.t);
    int64_t k;
    if (rank < 2 || d == INGOT_BOOL || !ingot_dim_is_const(ingot_shape(x.t, rank - 1), &k) || !k)
        return;
    if (is_float_type(d) && ldexp(x.most * 12 * (double)k, x.parts) > room(INGOT_F32))
        return;
    const GraphValue *w = constant_of(g, d, 2, (int64_t[]){k, 1 + random_below(9)});
    if (w)
        keep(g, ingot_matmul(g->c, x.t, w->t), x.most * 12 * (double)k, x.parts);
}

static void convolution(Graph *g)
{
    const GraphValue x = *some(g);
    ingot_dtype d = ingot_dtype_of(x.t);
    int64_t dims[INGOT_MAX_RANK], k = 1 + random_below(3);
    if (ingot_rank(x.t) != 3 || d == INGOT_BOOL || !ingot_static_shape(x.t, dims) || dims[2] < k ||
        !dims[1] || !dims[0])
        return;
    if (is_float_type(d) && ldexp(x.most * 12 * (double)(k * dims[1]), x.parts) > room(INGOT_F32))
        return;
    const GraphValue *w = constant_of(g, d, 3, (int64_t[]){1 + random_below(4), dims[1], k});
    int64_t stride = 1 + random_below(2), lo = random_below((uint32_t)k), hi = 0, one = 1;
    if (!w)
        return;
    keep(g, ingot_conv(g->c, x.t, w->t, NULL, &stride, &one, &lo, &hi, 1),
         x.most * 12 * (double)(k * dims[1]), x.parts);
}

/* An index for an axis of n > 0, made of a value. */
static ingot_tensor *index_of(Graph *g, const GraphValue *x, ingot_dim *n)
{
    double most;
    int parts;
    ingot_tensor *t = as_type(g, x, INGOT_I64, &most, &parts);
    ingot_tensor *last = ingot_add_c(g->c, ingot_from_dim(g->c, n), -1);
    return ingot_min(g->c, ingot_max_c(g->c, t, 0), last);
}

static void gather(Graph *g)
{
    const GraphValue *x = of_rank(g, 1), *i = some(g);
    if (!x)
        return;
    int axis = (int)random_below((uint32_t)ingot_rank(x->t));
    ingot_dim *n = ingot_shape(x->t, axis);
    if (ingot_dim_lo(n) > 0 && ingot_rank(i->t) + ingot_rank(x->t) < 6)
        keep(g, ingot_take(g->c, x->t, index_of(g, i, n), axis), x->most, x->parts);
}

/* Rows of x that are another's, or are added to; each index once, or sums. */
static void scatter(Graph *g)
{
    const GraphValue x = *some(g);
    int rank = ingot_rank(x.t);
    int64_t dims[INGOT_MAX_RANK];
    if (!rank || !ingot_static_shape(x.t, dims) || !dims[0] || ingot_dtype_of(x.t) == INGOT_BOOL)
        return;
    int64_t rows = 1 + random_below(3);
    ingot_update_op op = chance(2) ? INGOT_ADD : INGOT_MAX;
    int64_t *at = arena_alloc(g->a, (size_t)rows * sizeof *at);
    for (int64_t i = 0; i < rows; i++)
        at[i] = random_below((uint32_t)dims[0]);
    ingot_tensor *index = ingot_data(g->c, "i", INGOT_I64, 2, (int64_t[]){rows, 1}, at);
    dims[0] = rows;
    const GraphValue *v = constant_of(g, ingot_dtype_of(x.t), rank, dims);
    if (v)
        keep(g, ingot_scatter_nd(g->c, op, x.t, index, v->t), x.most + 3 * v->most,
             x.parts > v->parts ? x.parts : v->parts);
}

/* ---- control --------------------------------------------------------------------------------- */

static void draw_node(Graph *g);

/* Values that are drawn in a region are not seen outside of it. */
static const GraphValue *inside(Graph *g, int nodes)
{
    for (int i = 0; i < nodes; i++)
        draw_node(g);
    return &g->v[g->n - 1];
}

static ingot_tensor *some_condition(Graph *g)
{
    const GraphValue *x = some(g);
    double most;
    int parts;
    ingot_tensor *t = as_type(g, x, INGOT_I64, &most, &parts);
    int rank = ingot_rank(t);
    t = rank ? ingot_sum(g->c, t, (1u << rank) - 1, false) : t;
    return ingot_gt(g->c, t, ingot_scalar_i(g->c, INGOT_I64, random_below(5)));
}

static void branch(Graph *g)
{
    const GraphValue x = *some(g);
    int n = g->n;
    ingot_tensor *out = NULL, *c = some_condition(g);
    ingot_region *r[2];
    for (int i = 0; i < 2; i++) {
        r[i] = ingot_region_begin(g->c);
        const GraphValue *y = inside(g, (int)random_below(3));
        double most;
        int parts;
        ingot_tensor *t = x.t;
        if (fits(&x, y) && ingot_rank(y->t) <= ingot_rank(x.t)) {
            ingot_dim *dims[INGOT_MAX_RANK];
            dims_of(x.t, dims);
            ingot_tensor *z = ingot_min_c(g->c, as_type(g, y, INGOT_I32, &most, &parts), 5);
            z = ingot_max_c(g->c, z, -5);
            z = ingot_cast(g->c, z, ingot_dtype_of(x.t));
            bool same = true;
            z = ingot_dtype_of(x.t) == INGOT_BOOL ? ingot_xor(g->c, t, z) : ingot_max(g->c, t, z);
            for (int a = 0; a < ingot_rank(x.t); a++)
                same &= ingot_dim_equal(ingot_shape(z, a), dims[a]);
            t = same ? z : t;
        }
        ingot_region_end(g->c, r[i], 1, &t);
        g->n = n;
    }
    ingot_if(g->c, c, r[0], r[1], 1, &out);
    keep(g, out, x.most + 16, x.parts);
}

/* What a value is after some iterations, and what it was in each. */
static void loop(Graph *g)
{
    const GraphValue x = *some(g);
    int n = g->n;
    ingot_dtype d = ingot_dtype_of(x.t);
    ingot_dim *trip = g->size && chance(2) ? g->size : number(g, random_below(4));
    ingot_tensor *carried = x.t, *out[2], *result[3];
    if (d == INGOT_BOOL)
        return;
    ingot_region *r = ingot_region_begin(g->c);
    ingot_tensor *i = ingot_region_param(g->c, r, INGOT_I64, 0, NULL);
    ingot_tensor *cond = ingot_region_param(g->c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *v = ingot_region_param_like(g->c, r, x.t);
    keep(g, v, 16, 0);
    keep(g, i, 9, 0);
    const GraphValue y = *inside(g, 1 + (int)random_below(3));
    double most;
    int parts;
    ingot_tensor *z =
        ingot_max_c(g->c, ingot_min_c(g->c, as_type(g, &y, INGOT_I32, &most, &parts), 5), 0);
    int rank = ingot_rank(z);
    z = rank ? ingot_reduce(g->c, INGOT_REDUCE_MAX, z, (1u << rank) - 1, false) : z;
    z = ingot_clamp(g->c, z, 0, 5);
    result[0] = cond;
    result[1] = ingot_clamp(g->c, ingot_add(g->c, v, ingot_cast(g->c, z, d)), 0, 16);
    result[2] = ingot_add_c(g->c, v, 1);
    ingot_region_end(g->c, r, 3, result);
    g->n = n;
    ingot_loop(g->c, trip, NULL, 1, &carried, r, 1, out);
    keep(g, out[0], x.most + 16, x.parts);
    keep(g, out[1], x.most + 17, x.parts);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void draw_node(Graph *g)
{
    static void (*const kind[])(Graph *) = {
        unary,   with_number, with_number,   binary,  binary,      binary, cast,    reshape,
        permute, reshape,     flip_or_slice, pad,     expand,      concat, concat,  reduce,
        reduce,  extreme,     scan,          product, convolution, gather, scatter, flip_or_slice};
    if (g->depth < 2 && chance(12)) {
        g->depth++;
        (chance(2) ? branch : loop)(g);
        g->depth--;
        return;
    }
    kind[random_below(sizeof kind / sizeof *kind)](g);
}

void random_graph(Context *c, Arena *a, ingot_value *in, int *n_in, int *n_out)
{
    Graph *g = arena_alloc(a, sizeof *g);
    *g = (Graph){.c = c, .a = a};
    if (chance(3)) {
        static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 8, 9};
        int64_t lo = random_below(2);
        g->size = ingot_dim_var(c, "n", lo, 9);
        g->now = sizes[random_below(8)];
        g->now = g->now < lo ? lo : g->now;
    }
    *n_in = 1 + (int)random_below(GRAPH_MOST_INPUTS);
    for (int i = 0; i < *n_in; i++)
        input(g, in, i);
    for (int i = (int)random_below(3); i > 0; i--)
        constant_of(g, some_type(), 1, (int64_t[]){1 + random_below(9)});
    for (int i = 6 + (int)random_below(24); i > 0 && !ingot_error_count(c); i--)
        draw_node(g);
    *n_out = 1 + (int)random_below(GRAPH_MOST_OUTPUTS);
    for (int i = 0; i < *n_out; i++) {
        char name[] = "y0";
        name[1] = (char)('0' + i);
        ingot_output(c, name, i ? some(g)->t : g->v[g->n - 1].t);
    }
}

void graph_print(const Context *c, FILE *f)
{
    Node *root[GRAPH_MOST_OUTPUTS];
    StrBuf text = {0};
    for (int i = 0; i < c->noutput; i++)
        root[i] = c->outputs[i].node;
    text_print(&text, c->noutput, root);
    fputs(text.data ? text.data : "", f);
    sb_free(&text);
}
