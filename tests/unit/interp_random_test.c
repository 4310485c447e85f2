/* interp_random_test.c - random graphs in the reference interpreter against a plain recursive
 * "value at these coordinates". */
#include "interp_test.h"

static uint64_t seed;

static int rnd(int n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int)((seed >> 33) % (uint64_t)n);
}

static int64_t dim(Node *n, int i)
{
    int64_t v = 0;
    assert_true(ingot_dim_is_const(n->shape[i], &v));
    return v;
}

static int64_t arg_dim(Node *n, int i)
{
    int64_t v = 0;
    assert_true(ingot_dim_is_const(n->src[i], &v));
    return v;
}

static int64_t at(Node *n, const int64_t *x);

/* Of a REDUCE: over all elements of its source whose other coordinates are x. */
static int64_t reduced_at(Node *n, const int64_t *x)
{
    Node *s = n->src[0];
    int64_t y[INGOT_MAX_RANK] = {0}, acc = 0, count = 1;
    const int64_t axes = n->arg.i >> 8;
    for (int i = 0; i < s->rank; i++)
        count *= axes >> i & 1 ? dim(s, i) : 1;
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = k;
        for (int i = s->rank - 1; i >= 0; i--) {
            y[i] = x[i];
            if (axes >> i & 1) {
                y[i] = rest % dim(s, i);
                rest /= dim(s, i);
            }
        }
        const int64_t v = at(s, y);
        acc = (n->arg.i & 0xff) == INGOT_REDUCE_ADD ? acc + v : k == 0 || v > acc ? v : acc;
    }
    return acc;
}

/* All test values are i64. */
static int64_t at(Node *n, const int64_t *x)
{
    int64_t y[INGOT_MAX_RANK] = {0}, flat = 0;
    Node *s = n->nsrc ? n->src[0] : NULL;
    switch (n->op) {
    case OP_CONST: return n->arg.i;
    case OP_DATA: {
        for (int i = 0; i < n->rank; i++)
            flat = flat * dim(n, i) + x[i];
        int64_t v;
        memcpy(&v, ((const Data *)n->arg.ptr)->bytes + flat * 8, sizeof v);
        return v;
    }
    case OP_IOTA: return x[n->arg.i];
    case OP_CAST: return s->dtype == INGOT_INDEX ? arg_dim(n, 0) : at(s, x);
    case OP_NEG: return -at(s, x);
    case OP_ADD: return at(s, x) + at(n->src[1], x);
    case OP_SUB: return at(s, x) - at(n->src[1], x);
    case OP_MUL: return at(s, x) * at(n->src[1], x);
    case OP_MAX: return at(s, x) > at(n->src[1], x) ? at(s, x) : at(n->src[1], x);
    case OP_LT: return at(s, x) < at(n->src[1], x);
    case OP_WHERE: return at(s, x) ? at(n->src[1], x) : at(n->src[2], x);
    case OP_RESHAPE:
        for (int i = 0; i < n->rank; i++)
            flat = flat * dim(n, i) + x[i];
        for (int i = s->rank - 1; i >= 0; i--) {
            y[i] = flat % dim(s, i);
            flat /= dim(s, i);
        }
        return at(s, y);
    case OP_PERMUTE:
        for (int i = 0; i < n->rank; i++)
            y[((const Perm *)n->arg.ptr)->axis[i]] = x[i];
        return at(s, y);
    case OP_EXPAND:
        for (int i = 0; i < n->rank; i++)
            y[i] = dim(s, i) == 1 ? 0 : x[i];
        return at(s, y);
    case OP_SHRINK:
        for (int i = 0; i < n->rank; i++)
            y[i] = x[i] + arg_dim(n, 1 + 2 * i);
        return at(s, y);
    case OP_FLIP:
        for (int i = 0; i < n->rank; i++)
            y[i] = n->arg.i >> i & 1 ? dim(n, i) - 1 - x[i] : x[i];
        return at(s, y);
    case OP_KEEP: return at(s, x);
    case OP_PAD:
        for (int i = 0; i < n->rank; i++) {
            y[i] = x[i] - arg_dim(n, 1 + 2 * i);
            if (y[i] < 0 || y[i] >= dim(s, i))
                return 0;
        }
        return at(s, y);
    case OP_GATHER:
        for (int i = 0; i < s->rank; i++) {
            y[i] = at(n->src[1 + i], x);
            y[i] = y[i] < 0 ? 0 : y[i] >= dim(s, i) ? dim(s, i) - 1 : y[i];
        }
        return at(s, y);
    case OP_CONCAT:
        memcpy(y, x, sizeof(int64_t) * n->rank);
        for (uint32_t k = 0; k < n->nsrc; k++) {
            if (y[n->arg.i] < dim(n->src[k], (int)n->arg.i))
                return at(n->src[k], y);
            y[n->arg.i] -= dim(n->src[k], (int)n->arg.i);
        }
        break;
    case OP_REDUCE: return reduced_at(n, x);
    default: break;
    }
    fail_msg("op %s in a random graph", op_info[n->op].text);
    return 0;
}

static void random_dims(int rank, int64_t *d)
{
    for (int i = 0; i < rank; i++)
        d[i] = 1 + rnd(4);
}

static ingot_tensor *random_data(ingot_context *c, int rank, const int64_t *d)
{
    int64_t n = 1, *v;
    for (int i = 0; i < rank; i++)
        n *= d[i];
    v = ingot_alloc(c, (size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = rnd(19) - 9;
    return ingot_data(c, NULL, INGOT_I64, rank, d, v);
}

/* x with its elements in another shape: split or merge at random. */
static ingot_tensor *random_reshape(ingot_context *c, ingot_tensor *x)
{
    int64_t d[INGOT_MAX_RANK], n = 1, out[INGOT_MAX_RANK];
    int rank = 0;
    ingot_static_shape(x, d);
    for (int i = 0; i < ingot_rank(x); i++)
        n *= d[i];
    while (rank < 4 && n > 1) {
        int64_t f = 1 + rnd(6);
        while (n % f)
            f--;
        out[rank++] = f;
        n /= f;
    }
    if (n > 1 || rank == 0)
        out[rank++] = n;
    return ingot_reshape_c(c, x, rank, out);
}

static ingot_tensor *random_step(ingot_context *c, ingot_tensor *x)
{
    int64_t d[INGOT_MAX_RANK], numel = 1;
    ingot_dim *p[INGOT_MAX_RANK], *q[INGOT_MAX_RANK];
    ingot_tensor *idx_t[INGOT_MAX_RANK];
    const int rank = ingot_rank(x);
    assert_true(ingot_static_shape(x, d));
    for (int i = 0; i < rank; i++)
        numel *= d[i];
    int perm[INGOT_MAX_RANK];
    switch (rnd(14)) {
    case 0:
    case 1: return random_reshape(c, x);
    case 2:
        for (int i = 0; i < rank; i++)
            perm[i] = i;
        for (int i = rank - 1; i > 0; i--) {
            const int j = rnd(i + 1), t = perm[i];
            perm[i] = perm[j];
            perm[j] = t;
        }
        return ingot_permute(c, x, perm);
    case 3:
        for (int i = 0; i < rank; i++)
            p[i] = ingot_dim_const(c, d[i] == 1 && numel < 200 ? 1 + rnd(3) : d[i]);
        return ingot_expand(c, x, rank, p);
    case 4:
        for (int i = 0; i < rank; i++) {
            p[i] = ingot_dim_const(c, numel < 300 ? rnd(3) : 0);
            q[i] = ingot_dim_const(c, numel < 300 ? rnd(2) : 0);
        }
        return ingot_pad(c, x, p, q);
    case 5:
        for (int i = 0; i < rank; i++) {
            const int b = rnd((int)d[i]);
            p[i] = ingot_dim_const(c, b);
            q[i] = ingot_dim_const(c, 1 + rnd((int)d[i] - b));
        }
        return ingot_shrink(c, x, p, q);
    case 6: return ingot_flip(c, x, (unsigned)rnd(1 << rank));
    case 7:
        return rank ? ingot_reduce(c, rnd(2) ? INGOT_REDUCE_ADD : INGOT_REDUCE_MAX, x,
                                   (unsigned)rnd(1 << rank), rnd(2))
                    : x;
    case 8: { /* gather with data-dependent and linear indices mixed */
        int64_t g[2] = {1 + rnd(4), 1 + rnd(4)};
        ingot_dim *gd[2] = {ingot_dim_const(c, g[0]), ingot_dim_const(c, g[1])};
        for (int i = 0; i < rank; i++)
            idx_t[i] = rnd(2) ? random_data(c, 2, g)
                              : ingot_add_c(c, ingot_mul_c(c, ingot_iota(c, 2, gd, rnd(2)), rnd(3)),
                                            rnd(3) - 1);
        return rank ? ingot_gather(c, x, idx_t) : x;
    }
    case 9:
        if (rank && numel < 300) {
            ingot_tensor *parts[3] = {x, ingot_flip(c, x, 1), ingot_neg(c, x)};
            return ingot_concat(c, 3, parts, rnd(rank));
        }
        return x;
    case 10:
        for (int i = 0; i < rank; i++)
            if (d[i] >= 3 && numel < 300)
                return ingot_window(c, x, i, 2, 1 + rnd(2), 1);
        return x;
    case 11: return ingot_where(c, ingot_lt(c, x, ingot_like(c, x, 1)), ingot_mul_c(c, x, 3), x);
    case 12: return ingot_add(c, x, random_data(c, rank, d));
    default: return ingot_max(c, ingot_neg(c, x), x);
    }
}

/* One axis more, somewhere: so long that there are thousands of elements, which are computed block
 * by block. */
static ingot_tensor *random_copies(ingot_context *c, ingot_tensor *x)
{
    const int rank = ingot_rank(x), place = rnd(rank + 1);
    int64_t n = 1;
    int perm[INGOT_MAX_RANK];
    ingot_dim *d[INGOT_MAX_RANK] = {ingot_dim_const(c, 1)};
    for (int i = 0; i < rank; i++) {
        d[i + 1] = ingot_shape(x, i);
        n *= dim(x, i);
    }
    x = ingot_reshape(c, x, rank + 1, d);
    d[0] = ingot_dim_const(c, 1 + 3000 / (n + 1) + rnd(3));
    x = ingot_expand(c, x, rank + 1, d);
    for (int i = 0; i <= rank; i++)
        perm[i] = i == place ? 0 : i < place ? i + 1 : i;
    return ingot_permute(c, x, perm);
}

static void random_graphs(void **state)
{
    for (int round = 0; round < 600; round++) {
        ingot_context *c = ingot_context_new(keep, NULL);
        seed = (uint64_t)round * 77 + 5;
        int64_t d[INGOT_MAX_RANK];
        const int rank = 1 + rnd(3);
        random_dims(rank, d);
        ingot_tensor *x = random_data(c, rank, d);
        for (int k = 0, steps = 2 + rnd(9); k < steps && ingot_rank(x) < 7; k++)
            x = random_step(c, x);
        if (round % 4 == 3 && ingot_rank(x) < 7)
            x = random_step(c, random_copies(c, x));
        if (ingot_is_poison(x))
            fail_msg("round %d: %s", round, last_message);
        Interp *ip = interp_new(c);
        int64_t dims[INGOT_MAX_RANK], n = 1;
        const int64_t *r = interp_eval(ip, x, dims);
        assert_non_null(r);
        for (int i = 0; i < ingot_rank(x); i++) {
            assert_int_equal(dims[i], dim(x, i));
            n *= dims[i];
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t y[INGOT_MAX_RANK], rest = i;
            for (int k = ingot_rank(x) - 1; k >= 0; k--) {
                y[k] = rest % dims[k];
                rest /= dims[k];
            }
            const int64_t e = at(x, y);
            if (r[i] != e)
                fail_msg("round %d, element %lld: %lld, not %lld", round, (long long)i,
                         (long long)r[i], (long long)e);
        }
        /* the same, element by element, by contents() */
        if (n <= 64) {
            int64_t v[64];
            int count = 0;
            assert_true(ingot_const_ints(c, x, v, 64, &count));
            assert_int_equal(count, n);
            assert_memory_equal(v, r, (size_t)n * 8);
        }
        interp_free(ip);
        ingot_context_free(c);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
