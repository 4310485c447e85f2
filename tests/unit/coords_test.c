/* coords_test.c - movement as arithmetic on coordinates, against moving real arrays.
 *
 * Random chains of reshape, permute, pad, shrink, flip and expand: at every point of the result,
 * the coordinates that movement_coords() gives must name the element that the chain puts there,
 * or be invalid exactly where padding is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "points.h"

/* A real array: elements are 1 + their number in the source, 0 where padded. */
typedef struct {
    int rank;
    int64_t dim[INGOT_MAX_RANK], n;
    int *at;
} Array;

static Array array_new(Arena *m, int rank, const int64_t *dim)
{
    Array a = {.rank = rank, .n = 1};
    for (int i = 0; i < rank; i++)
        a.n *= a.dim[i] = dim[i];
    a.at = NEWN(m, int, a.n + 1);
    return a;
}

static void unravel(const Array *a, int64_t k, int64_t *at)
{
    for (int i = a->rank; i-- > 0; k /= a->dim[i])
        at[i] = k % a->dim[i];
}

static int element(const Array *a, const int64_t *at)
{
    int64_t k = 0;
    for (int i = 0; i < a->rank; i++) {
        if (at[i] < 0 || at[i] >= a->dim[i])
            return 0;
        k = k * a->dim[i] + at[i];
    }
    return a->at[k];
}

static Node *move_node(PointSpace *s, Op op, Arg arg, Node *x, int nextra, const int64_t *extra,
                       int rank, const int64_t *dim)
{
    Node *src[1 + 2 * INGOT_MAX_RANK] = {x}, *shape[INGOT_MAX_RANK];
    for (int i = 0; i < nextra; i++)
        src[1 + i] = idx(s->c, extra[i]);
    for (int i = 0; i < rank; i++)
        shape[i] = idx(s->c, dim[i]);
    return node_make(s->c, op, INGOT_F32, arg, 1 + nextra, src, rank, shape);
}

/* Cuts n into dims at random: factors, with some ones between. */
static int random_dims(int64_t n, int64_t *dim)
{
    int rank = 0;
    while (n > 1 && rank < 5) {
        int64_t f = 2 + pick((int)(n > 12 ? 12 : n));
        if (pick(6) == 0)
            dim[rank++] = 1;
        if (f > n || n % f != 0)
            f = pick(3) ? 1 : n;
        if (f > 1)
            dim[rank++] = f;
        n /= f;
    }
    if (n > 1)
        dim[rank++] = n;
    return rank;
}

static Node *random_move(PointSpace *s, Node *x, const Array *a, Array *out)
{
    int64_t dim[INGOT_MAX_RANK], extra[2 * INGOT_MAX_RANK] = {0}, at[INGOT_MAX_RANK],
                                           from[INGOT_MAX_RANK];
    int rank = a->rank, kind = pick(6);
    Arg arg = {0};
    memcpy(dim, a->dim, sizeof dim);
    if (kind == 0) {
        rank = random_dims(a->n, dim);
        *out = array_new(s->m, rank, dim);
        memcpy(out->at, a->at, (size_t)a->n * sizeof *a->at);
        return move_node(s, OP_RESHAPE, arg, x, rank, dim, rank, dim);
    }
    if (kind == 1) {
        Perm *p = NEW(s->m, Perm);
        p->n = rank;
        for (int i = 0; i < rank; i++)
            p->axis[i] = (int8_t)i;
        for (int i = rank - 1; i > 0; i--) {
            int j = pick(i + 1);
            int8_t t = p->axis[i];
            p->axis[i] = p->axis[j];
            p->axis[j] = t;
        }
        for (int i = 0; i < rank; i++)
            dim[i] = a->dim[p->axis[i]];
        *out = array_new(s->m, rank, dim);
        for (int64_t k = 0; k < out->n; k++) {
            unravel(out, k, at);
            for (int i = 0; i < rank; i++)
                from[p->axis[i]] = at[i];
            out->at[k] = element(a, from);
        }
        arg.ptr = p;
        return move_node(s, OP_PERMUTE, arg, x, 0, NULL, rank, dim);
    }
    Op op = kind == 2 ? OP_PAD : kind == 3 ? OP_SHRINK : kind == 4 ? OP_FLIP : OP_EXPAND;
    int64_t mask = pick(1 << rank);
    for (int i = 0; i < rank; i++) {
        extra[2 * i] = op == OP_SHRINK ? pick((int)dim[i]) : pick(3) ? 0 : pick(3);
        if (op == OP_PAD) {
            extra[2 * i + 1] = pick(3) ? 0 : pick(3);
            dim[i] += extra[2 * i] + extra[2 * i + 1];
        }
        if (op == OP_SHRINK)
            dim[i] = extra[2 * i + 1] = 1 + pick((int)(dim[i] - extra[2 * i]));
        if (op == OP_EXPAND && dim[i] == 1)
            dim[i] = 1 + pick(3);
        if (op == OP_EXPAND)
            extra[i] = dim[i];
    }
    *out = array_new(s->m, rank, dim);
    for (int64_t k = 0; k < out->n; k++) {
        unravel(out, k, at);
        for (int i = 0; i < rank; i++)
            from[i] = op == OP_PAD      ? at[i] - extra[2 * i]
                      : op == OP_SHRINK ? at[i] + extra[2 * i]
                      : op == OP_FLIP   ? (mask >> i & 1 ? dim[i] - 1 - at[i] : at[i])
                      : a->dim[i] == 1  ? 0
                                        : at[i];
        out->at[k] = element(a, from);
    }
    arg.i = op == OP_FLIP ? mask : 0;
    int nextra = op == OP_FLIP ? 0 : op == OP_EXPAND ? rank : 2 * rank;
    return move_node(s, op, arg, x, nextra, extra, rank, dim);
}

static void random_movement(void **unused)
{
    (void)unused;
    static const int64_t sizes[] = {1, 2, 3, 4, 6, 8, 7, 12};
    for (int seed = 0; seed < 6000; seed++) {
        state = (uint64_t)seed * 49979687 + 11;
        PointSpace s = space_new();
        int64_t dim[4];
        int rank = 1 + pick(3);
        for (int i = 0; i < rank; i++)
            dim[i] = sizes[pick(8)];
        Array a = array_new(s.m, rank, dim), source = a;
        for (int64_t k = 0; k < a.n; k++)
            a.at[k] = (int)k + 1;
        Node *shape[4], *x;
        for (int i = 0; i < rank; i++)
            shape[i] = idx(s.c, dim[i]);
        x = node_make(s.c, OP_INPUT, INGOT_F32, (Arg){0}, rank, shape, rank, shape);
        for (int i = 0, n = 1 + pick(6); i < n; i++) {
            Array next;
            Node *y = random_move(&s, x, &a, &next);
            if (next.n > 3000 || next.rank > 6)
                continue;
            a = next;
            x = y;
        }
        Node *at[INGOT_MAX_RANK], *from[INGOT_MAX_RANK], *valid = node_bool(s.c, true);
        for (int i = 0; i < a.rank; i++)
            at[i] = range(&s, idx(s.c, a.dim[i]));
        int n = x->rank;
        for (Node *y = x; y->op != OP_INPUT; y = y->src[0]) {
            Node *v;
            movement_coords(s.c, y, at, from, &v);
            valid = bool_and(s.c, valid, v);
            n = y->src[0]->rank;
            memcpy((void *)at, (void *)from, (size_t)n * sizeof *at);
        }
        from[n] = valid;
        memcpy((void *)from, (void *)at, (size_t)n * sizeof *at);
        Program p = program(&s, n + 1, from);
        int64_t k = 0;
        for (bool more = first(&s); more; more = advance(&s), k++) {
            run(&s, &p);
            int64_t point[INGOT_MAX_RANK];
            for (int i = 0; i < n; i++)
                point[i] = p.v[from[i]->id];
            if (p.v[valid->id] && element(&source, point) == 0)
                fail_msg("seed %d: a valid coordinate outside the source", seed);
            if ((p.v[valid->id] ? element(&source, point) : 0) != a.at[k])
                fail_msg("seed %d: the wrong element", seed);
        }
        space_free(&s);
    }
}

/* ---- symbolic shapes ------------------------------------------------------------------------- */

enum { CHAIN = 6 };
/* The dims of x in another grouping: neighbours joined at random, ones put in. */
static int regroup(PointSpace *s, Node *x, Node **dim)
{
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (rank && pick(2))
            dim[rank - 1] = idx_mul(s->c, dim[rank - 1], x->shape[i]);
        else
            dim[rank++] = x->shape[i];
        if (pick(5) == 0)
            dim[rank++] = idx(s->c, 1);
    }
    return rank;
}

static Node *symbolic_move(PointSpace *s, Node *x, int original, Node *const *dims)
{
    Context *c = s->c;
    Node *src[1 + 2 * INGOT_MAX_RANK] = {x}, *dim[INGOT_MAX_RANK];
    int rank = x->rank, kind = pick(5);
    if (kind < 3) {
        rank = kind == 2 && original ? original : regroup(s, x, dim);
        for (int i = 0; i < rank; i++)
            src[1 + i] = dim[i] = kind == 2 && original ? dims[i] : dim[i];
        return node_make(c, OP_RESHAPE, INGOT_F32, (Arg){0}, 1 + rank, src, rank, dim);
    }
    if (kind == 3)
        return node_make(c, OP_FLIP, INGOT_F32, (Arg){.i = pick(1 << rank)}, 1, src, rank,
                         x->shape);
    for (int i = 0; i < rank; i++) {
        src[1 + 2 * i] = idx(c, pick(2));
        src[2 + 2 * i] = idx(c, pick(2));
        dim[i] = idx_add(c, x->shape[i], idx_add(c, src[1 + 2 * i], src[2 + 2 * i]));
    }
    return node_make(c, OP_PAD, INGOT_F32, (Arg){0}, 1 + 2 * rank, src, rank, dim);
}

/* One step back by the definition, on numbers; false where it is padding. */
static bool step_back(Node *y, const int64_t *v, int64_t *at)
{
    Node *x = y->src[0];
    int64_t flat = 0;
    for (int i = 0; i < y->rank; i++) {
        flat = flat * v[y->shape[i]->id] + at[i];
        if (y->op == OP_FLIP && y->arg.i >> i & 1)
            at[i] = v[y->shape[i]->id] - 1 - at[i];
        if (y->op == OP_PAD)
            at[i] -= v[y->src[1 + 2 * i]->id];
        if (y->op == OP_PAD && (at[i] < 0 || at[i] >= v[x->shape[i]->id]))
            return false;
    }
    for (int i = x->rank; y->op == OP_RESHAPE && i-- > 0;) {
        at[i] = flat % v[x->shape[i]->id];
        flat /= v[x->shape[i]->id];
    }
    return true;
}

static void symbolic_chains(void **unused)
{
    (void)unused;
    for (int seed = 0; seed < 3000; seed++) {
        state = (uint64_t)seed * 6700417 + 17;
        PointSpace s = space_new();
        Context *c = s.c;
        Node *vars[] = {var(&s, pick(2), 3), var(&s, pick(2), 2)}, *dims[3], *at[INGOT_MAX_RANK];
        int rank = 2 + pick(2), n = 0, nroot = 0;
        for (int i = 0; i < rank; i++)
            dims[i] = pick(2) ? vars[pick(2)] : idx(c, 1 + pick(4));
        Node *x = node_make(c, OP_INPUT, INGOT_F32, (Arg){0}, rank, dims, rank, dims),
             *from[INGOT_MAX_RANK];
        Node *roots[256], *valid = node_bool(c, true);
        bool padded = false;
        for (int i = 1 + pick(CHAIN); i > 0 && x->rank < 6; i--) {
            x = symbolic_move(&s, x, padded ? 0 : rank, dims);
            padded |= x->op == OP_PAD;
        }
        if (x->rank > LEAVES - 2) {
            space_free(&s);
            continue;
        }
        for (int i = 0; i < x->rank; i++)
            at[i] = range(&s, x->shape[i]);
        for (Node *y = x; y->op != OP_INPUT; y = y->src[0]) {
            Node *v;
            movement_coords(c, y, at, from, &v);
            valid = bool_and(c, valid, v);
            memcpy((void *)at, (void *)from, sizeof at);
        }
        for (Node *y = x; y; y = y->op == OP_INPUT ? NULL : y->src[0]) {
            for (int i = 0; i < y->rank; i++)
                roots[nroot++] = y->shape[i];
            for (uint32_t i = 1; i < y->nsrc && y->op == OP_PAD; i++)
                roots[nroot++] = y->src[i];
        }
        for (n = 0; n < rank; n++)
            roots[nroot++] = at[n];
        roots[nroot++] = valid;
        Program p = program(&s, nroot, roots);
        for (bool more = first(&s); more; more = advance(&s)) {
            run(&s, &p);
            int64_t want[INGOT_MAX_RANK];
            bool inside = true;
            for (int i = 0; i < x->rank; i++)
                want[i] = s.value[2 + i];
            for (Node *y = x; y->op != OP_INPUT && inside; y = y->src[0])
                inside = step_back(y, p.v, want);
            if (inside != (p.v[valid->id] != 0))
                fail_msg("seed %d: validity", seed);
            for (int i = 0; i < rank && inside; i++)
                if (p.v[at[i]->id] != want[i])
                    fail_msg("seed %d: coordinate %d is %lld, not %lld", seed, i,
                             (long long)p.v[at[i]->id], (long long)want[i]);
        }
        space_free(&s);
    }
}

static void reshape_there_and_back(void **unused)
{
    (void)unused;
    PointSpace s = space_new();
    Context *c = s.c;
    Node *n = var(&s, 1, 9);
    Node *dims[] = {n, idx(c, 2), idx(c, 3), idx(c, 8), idx(c, 1)},
         *merged[] = {idx_mul(c, n, idx(c, 6)), idx(c, 2), idx(c, 4)};
    Node *src[6], *at[5], *mid[3], *back[5], *valid;
    Node *x = node_make(c, OP_INPUT, INGOT_F32, (Arg){0}, 5, dims, 5, dims);
    src[0] = x;
    memcpy((void *)(src + 1), (void *)merged, sizeof merged);
    Node *y = node_make(c, OP_RESHAPE, INGOT_F32, (Arg){0}, 4, src, 3, merged);
    src[0] = y;
    memcpy((void *)(src + 1), (void *)dims, sizeof dims);
    Node *z = node_make(c, OP_RESHAPE, INGOT_F32, (Arg){0}, 6, src, 5, dims);
    for (int i = 0; i < 5; i++)
        at[i] = range_new(c, i, dims[i]);
    movement_coords(c, z, at, mid, &valid);
    movement_coords(c, y, mid, back, &valid);
    for (int i = 0; i < 5; i++)
        assert_ptr_equal(back[i], at[i]);
    for (int i = 0; i < 3; i++)
        at[i] = range_new(c, i, merged[i]);
    movement_coords(c, y, at, back, &valid);
    movement_coords(c, z, back, mid, &valid);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(mid[i], at[i]);
    space_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshape_there_and_back),
        cmocka_unit_test(random_movement),
        cmocka_unit_test(symbolic_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
