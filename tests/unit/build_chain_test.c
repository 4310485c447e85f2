/* build_chain_test.c - random chains of movement, gathers, reductions and sums, built with the
 * builder (which merges and simplifies them) and computed by plain loops over dense arrays at the
 * same time; the interpreter must give the same integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ingot.h"

enum { MAX_RANK = 5, MAX_ELEMENTS = 4000, CHAINS = 3000, MAX_STEPS = 9 };

typedef struct {
    int rank;
    int64_t dim[MAX_RANK + 1];
    int64_t *v;
} DenseArray;

static ingot_context *c;
static char trail[2048], last[1024];
static uint64_t seed;

static void sink(void *user, ingot_level level, const char *text)
{
    (void)user, (void)level;
    strncpy(last, text, sizeof last - 1);
}

static int64_t pick(int64_t lo, int64_t hi) /* inclusive */
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((seed >> 33) % (uint64_t)(hi - lo + 1));
}

static int64_t numel(const DenseArray *a)
{
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++)
        n *= a->dim[i];
    return n;
}

static void allocate(DenseArray *a)
{
    a->v = ingot_alloc(c, (size_t)numel(a) * sizeof *a->v + 8);
}

/* i as coordinates; and back */
static void unflatten(const DenseArray *a, int64_t i, int64_t *at)
{
    for (int k = a->rank; k-- > 0; i /= a->dim[k])
        at[k] = i % a->dim[k];
}

static int64_t flatten(const DenseArray *a, const int64_t *at)
{
    int64_t i = 0;
    for (int k = 0; k < a->rank; k++)
        i = i * a->dim[k] + at[k];
    return i;
}

static void note(const char *format, ...)
{
    size_t n = strlen(trail);
    va_list ap;
    va_start(ap, format);
    vsnprintf(trail + n, sizeof trail - n, format, ap);
    va_end(ap);
}

static void dims_of(const int64_t *v, int n, ingot_dim **out)
{
    for (int i = 0; i < n; i++)
        out[i] = ingot_dim_const(c, v[i]);
}

/* ---- the steps: each changes the array and the tensor alike ---------------------------------- */

static ingot_tensor *step_reshape(DenseArray *a, ingot_tensor *x)
{
    int64_t n = numel(a);
    a->rank = 0;
    while (n > 1 && a->rank < MAX_RANK - 1) {
        int64_t d = pick(1, 6);
        if (n % d)
            continue;
        a->dim[a->rank++] = d;
        n /= d;
    }
    a->dim[a->rank++] = n;
    return ingot_reshape_c(c, x, a->rank, a->dim);
}

static ingot_tensor *step_permute(DenseArray *a, ingot_tensor *x)
{
    DenseArray b = *a;
    int perm[MAX_RANK];
    for (int i = 0; i < a->rank; i++)
        perm[i] = i;
    for (int i = a->rank - 1; i > 0; i--) {
        int j = (int)pick(0, i), t = perm[i];
        perm[i] = perm[j];
        perm[j] = t;
    }
    for (int i = 0; i < a->rank; i++)
        b.dim[i] = a->dim[perm[i]];
    allocate(&b);
    for (int64_t i = 0; i < numel(&b); i++) {
        int64_t at[MAX_RANK] = {0}, from[MAX_RANK] = {0};
        unflatten(&b, i, at);
        for (int k = 0; k < a->rank; k++)
            from[perm[k]] = at[k];
        b.v[i] = a->v[flatten(a, from)];
    }
    *a = b;
    return ingot_permute(c, x, perm);
}

static ingot_tensor *step_pad(DenseArray *a, ingot_tensor *x)
{
    DenseArray b = *a;
    int64_t lo[MAX_RANK], hi[MAX_RANK], value = pick(0, 1) * 7;
    for (int i = 0; i < a->rank; i++) {
        lo[i] = pick(-1, 2);
        hi[i] = pick(-1, 2);
        if (a->dim[i] + (lo[i] < 0 ? lo[i] : 0) + (hi[i] < 0 ? hi[i] : 0) < 1)
            lo[i] = hi[i] = 0;
        b.dim[i] = a->dim[i] + lo[i] + hi[i];
    }
    if (numel(&b) > MAX_ELEMENTS)
        return x;
    allocate(&b);
    for (int64_t i = 0; i < numel(&b); i++) {
        int64_t at[MAX_RANK] = {0};
        unflatten(&b, i, at);
        bool inside = true;
        for (int k = 0; k < a->rank; k++) {
            at[k] -= lo[k];
            inside &= at[k] >= 0 && at[k] < a->dim[k];
        }
        b.v[i] = inside ? a->v[flatten(a, at)] : value;
    }
    *a = b;
    return ingot_pad_c(c, x, lo, hi, (double)value);
}

/* x[begin::step] along each axis; covers shrink and flip */
static ingot_tensor *step_slice(DenseArray *a, ingot_tensor *x)
{
    int axis = (int)pick(0, a->rank - 1);
    int64_t n = a->dim[axis], begin = pick(0, n - 1), step = pick(1, 3) * (pick(0, 1) * 2 - 1);
    int64_t most = step > 0 ? (n - 1 - begin) / step + 1 : begin / -step + 1;
    DenseArray b = *a;
    b.dim[axis] = pick(1, most);
    allocate(&b);
    for (int64_t i = 0; i < numel(&b); i++) {
        int64_t at[MAX_RANK] = {0};
        unflatten(&b, i, at);
        at[axis] = begin + at[axis] * step;
        b.v[i] = a->v[flatten(a, at)];
    }
    *a = b;
    return ingot_slice(c, x, axis, ingot_dim_const(c, begin), ingot_dim_const(c, b.dim[axis]),
                       step);
}

static ingot_tensor *step_flip(DenseArray *a, ingot_tensor *x)
{
    unsigned axes = (unsigned)pick(0, (1 << a->rank) - 1);
    DenseArray b = *a;
    allocate(&b);
    for (int64_t i = 0; i < numel(&b); i++) {
        int64_t at[MAX_RANK] = {0};
        unflatten(&b, i, at);
        for (int k = 0; k < a->rank; k++)
            at[k] = axes >> k & 1 ? a->dim[k] - 1 - at[k] : at[k];
        b.v[i] = a->v[flatten(a, at)];
    }
    *a = b;
    return ingot_flip(c, x, axes);
}

static ingot_tensor *step_tile(DenseArray *a, ingot_tensor *x)
{
    int64_t repeats[MAX_RANK];
    ingot_dim *r[MAX_RANK];
    DenseArray b = *a;
    for (int i = 0; i < a->rank; i++) {
        repeats[i] = pick(1, 2);
        b.dim[i] *= repeats[i];
    }
    if (numel(&b) > MAX_ELEMENTS)
        return x;
    allocate(&b);
    for (int64_t i = 0; i < numel(&b); i++) {
        int64_t at[MAX_RANK] = {0};
        unflatten(&b, i, at);
        for (int k = 0; k < a->rank; k++)
            at[k] %= a->dim[k];
        b.v[i] = a->v[flatten(a, at)];
    }
    dims_of(repeats, a->rank, r);
    *a = b;
    return ingot_tile(c, x, r);
}

static ingot_tensor *step_concat(DenseArray *a, ingot_tensor *x)
{
    int axis = (int)pick(0, a->rank - 1);
    DenseArray b = *a;
    b.dim[axis] *= 2;
    if (numel(&b) > MAX_ELEMENTS)
        return x;
    allocate(&b);
    for (int64_t i = 0; i < numel(&b); i++) {
        int64_t at[MAX_RANK] = {0};
        unflatten(&b, i, at);
        bool second = at[axis] >= a->dim[axis];
        at[axis] -= second ? a->dim[axis] : 0;
        b.v[i] = a->v[flatten(a, at)] * (second ? -1 : 1);
    }
    *a = b;
    return ingot_concat(c, 2, (ingot_tensor *[]){x, ingot_neg(c, x)}, axis);
}

static ingot_tensor *step_take(DenseArray *a, ingot_tensor *x)
{
    int axis = (int)pick(0, a->rank - 1);
    int64_t n = pick(1, 4), *index = ingot_alloc(c, (size_t)n * sizeof *index);
    DenseArray b = *a;
    b.dim[axis] = n;
    for (int64_t i = 0; i < n; i++)
        index[i] = pick(-a->dim[axis], a->dim[axis] - 1);
    allocate(&b);
    for (int64_t i = 0; i < numel(&b); i++) {
        int64_t at[MAX_RANK] = {0};
        unflatten(&b, i, at);
        at[axis] = index[at[axis]] + (index[at[axis]] < 0 ? a->dim[axis] : 0);
        b.v[i] = a->v[flatten(a, at)];
    }
    *a = b;
    return ingot_take(c, x, ingot_data(c, NULL, INGOT_I64, 1, &n, index), axis);
}

static ingot_tensor *step_window(DenseArray *a, ingot_tensor *x)
{
    int axis = (int)pick(0, a->rank - 1);
    int64_t k = pick(1, 3), stride = pick(1, 3), dilation = pick(1, 2);
    int64_t room = a->dim[axis] - dilation * (k - 1) - 1;
    DenseArray b = *a;
    if (room < 0 || a->rank == MAX_RANK)
        return x;
    b.dim[axis] = room / stride + 1;
    b.dim[b.rank++] = k;
    allocate(&b);
    for (int64_t i = 0; i < numel(&b); i++) {
        int64_t at[MAX_RANK] = {0};
        unflatten(&b, i, at);
        at[axis] = at[axis] * stride + at[a->rank] * dilation;
        b.v[i] = a->v[flatten(a, at)];
    }
    *a = b;
    return ingot_window(c, x, axis, k, stride, dilation);
}

static ingot_tensor *step_reduce(DenseArray *a, ingot_tensor *x)
{
    unsigned axes = (unsigned)pick(0, (1 << a->rank) - 1);
    bool max = pick(0, 1), keep = pick(0, 1);
    DenseArray b = *a;
    for (int i = 0; i < a->rank; i++)
        if (axes >> i & 1)
            b.dim[i] = 1;
    allocate(&b);
    for (int64_t i = 0; i < numel(&b); i++)
        b.v[i] = max ? INT64_MIN : 0;
    for (int64_t i = 0; i < numel(a); i++) {
        int64_t at[MAX_RANK] = {0};
        unflatten(a, i, at);
        for (int k = 0; k < a->rank; k++)
            at[k] = axes >> k & 1 ? 0 : at[k];
        int64_t *to = &b.v[flatten(&b, at)];
        *to = max ? (a->v[i] > *to ? a->v[i] : *to) : (int64_t)((uint64_t)*to + (uint64_t)a->v[i]);
    }
    int rank = 0;
    for (int i = 0; i < a->rank; i++)
        if (keep || !(axes >> i & 1))
            b.dim[rank++] = b.dim[i];
    b.rank = rank;
    *a = b;
    return ingot_reduce(c, max ? INGOT_REDUCE_MAX : INGOT_REDUCE_ADD, x, axes, keep);
}

/* x + iota, with one axis broadcast */
static ingot_tensor *step_add(DenseArray *a, ingot_tensor *x)
{
    ingot_dim *dims[MAX_RANK];
    int axis = (int)pick(0, a->rank - 1);
    DenseArray b = *a;
    allocate(&b);
    for (int64_t i = 0; i < numel(a); i++) {
        int64_t at[MAX_RANK] = {0};
        unflatten(a, i, at);
        b.v[i] = (int64_t)((uint64_t)a->v[i] + (uint64_t)at[axis]);
    }
    *a = b;
    for (int i = 0; i < a->rank; i++)
        dims[i] = ingot_dim_const(c, i == axis ? a->dim[i] : 1);
    return ingot_add(c, x, ingot_iota(c, a->rank, dims, axis));
}

static const struct {
    const char *name;
    ingot_tensor *(*run)(DenseArray *, ingot_tensor *);
} steps[] = {
    {"reshape", step_reshape}, {"permute", step_permute}, {"pad", step_pad},
    {"slice", step_slice},     {"flip", step_flip},       {"tile", step_tile},
    {"take", step_take},       {"window", step_window},   {"reduce", step_reduce},
    {"add", step_add},         {"concat", step_concat},
};

static void test_chains(void **state)
{
    (void)state;
    for (int chain = 0; chain < CHAINS; chain++) {
        c = ingot_context_new(sink, NULL);
        seed = (uint64_t)chain * 977;
        trail[0] = last[0] = 0;
        DenseArray a = {.rank = (int)pick(1, 3)};
        for (int i = 0; i < a.rank; i++)
            a.dim[i] = pick(1, 5);
        allocate(&a);
        for (int64_t i = 0; i < numel(&a); i++)
            a.v[i] = pick(-99, 99);
        ingot_tensor *x = ingot_data(c, NULL, INGOT_I64, a.rank, a.dim, a.v);
        for (int64_t n = pick(1, MAX_STEPS); n > 0; n--) {
            size_t s = (size_t)pick(0, (int64_t)(sizeof steps / sizeof *steps) - 1);
            if (a.rank == 0)
                s = 0;
            x = steps[s].run(&a, x);
            note(" %s[", steps[s].name);
            for (int i = 0; i < a.rank; i++)
                note(i ? ",%d" : "%d", (int)a.dim[i]);
            note("]");
            if (ingot_is_poison(x))
                fail_msg("chain %d:%s: %s", chain, trail, last);
        }
        ingot_value y;
        ingot_output(c, "y", x);
        if (ingot_interpret(c, 0, NULL, 1, &y) != INGOT_OK)
            fail_msg("chain %d:%s: %s", chain, trail, last);
        assert_int_equal(y.rank, a.rank);
        for (int i = 0; i < a.rank; i++)
            assert_int_equal(y.dims[i], a.dim[i]);
        const int64_t *got = y.data;
        for (int64_t i = 0; i < numel(&a); i++)
            if (got[i] != a.v[i])
                fail_msg("chain %d:%s: element %d is %lld, must be %lld", chain, trail, (int)i,
                         (long long)got[i], (long long)a.v[i]);
        ingot_context_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
