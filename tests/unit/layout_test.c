/* layout_test.c - where elements are written (layout_pack) and where kernels look for them
 * (layout_offset) is one place for each, inside of the storage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/compiler.h"
#include "compiler/ingot.h"

enum { RANK = 3, MOST = 4096 };

static LayoutOp permute(int n, int a, int b, int c, int d)
{
    LayoutOp op = {.kind = LAYOUT_PERMUTE, .perm = {.n = n}};
    const int axis[] = {a, b, c, d};
    for (int i = 0; i < n; i++)
        op.perm.axis[i] = (int8_t)axis[i];
    return op;
}

/* What lies side by side from an element on grows along one axis: where the last one is, if it is
 * one, says where those between are. */
static void judge_beside(const Layout *l, const int64_t *dims, int64_t offset)
{
    const LayoutStorage s = layout_storage_of(l, RANK, dims);
    int64_t first[RANK], last[RANK], between[RANK];
    const int64_t n = layout_beside(&s, offset);
    assert_in_range(n, 1, s.all - offset);
    if (!layout_find(l, RANK, dims, offset, first) ||
        !layout_find(l, RANK, dims, offset + n - 1, last))
        return;
    for (int64_t i = 1; i < n - 1; i++) {
        assert_true(layout_find(l, RANK, dims, offset + i, between));
        for (int j = 0; j < RANK; j++)
            assert_int_equal((between[j] - first[j]) * (n - 1), (last[j] - first[j]) * i);
    }
}

/* Gives how many elements are stored. */
static int64_t judge(ingot_context *c, const Layout *l, const int64_t *dims)
{
    Node *d[RANK], *x[RANK];
    int64_t n = 1, dense[MOST], stored[MOST], at[RANK], found[RANK];
    for (int i = 0; i < RANK; i++) {
        d[i] = idx(c, dims[i]);
        n *= dims[i];
    }
    const int64_t total = layout_elements(l, RANK, d);
    assert_true(n <= total && total <= MOST);
    for (int64_t i = 0; i < n; i++)
        dense[i] = i + 1;
    layout_pack(l, RANK, dims, sizeof *dense, dense, stored, NULL, NULL);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = RANK, rest = i; j-- > 0; rest /= dims[j])
            x[j] = idx(c, at[j] = rest % dims[j]);
        int64_t offset = -1;
        assert_true(idx_value(layout_offset(c, l, RANK, d, x), &offset));
        assert_in_range(offset, 0, total - 1);
        assert_int_equal(stored[offset], i + 1);
        assert_true(layout_find(l, RANK, dims, offset, found));
        for (int j = 0; j < RANK; j++)
            assert_int_equal(found[j], at[j]);
    }
    for (int64_t i = 0; i < total; i++)
        judge_beside(l, dims, i);
    return total;
}

static void blocks(void **state)
{
    (void)state;
    ingot_context *c = ingot_context_new(NULL, NULL);
    const int64_t dims[] = {10, 3, 8};
    for (int axis = 0; axis < RANK; axis++)
        for (int64_t n = 1; n <= dims[axis]; n++)
            for (int four = 0; four < 2; four++)
                for (int cut = 0; cut < 2; cut++) {
                    Layout l = {.n = 2};
                    l.op[0] = (LayoutOp){
                        .kind = cut ? LAYOUT_CUT : LAYOUT_SPLIT, .axis = (int8_t)axis, .a = n};
                    /* blocks first, what is inside of them last */
                    l.op[1] = axis == 0   ? permute(4, 0, 3, 2, 1)
                              : axis == 1 ? permute(4, 1, 0, 3, 2)
                                          : permute(4, 2, 1, 0, 3);
                    if (four) { /* and fours of another axis behind it */
                        l.op[2] = (LayoutOp){.kind = LAYOUT_SPLIT, .axis = 1, .a = 2};
                        l.op[3] = (LayoutOp){.kind = LAYOUT_PERMUTE,
                                             .perm = {.n = 5, .axis = {0, 1, 3, 4, 2}}};
                        l.n = 4;
                    }
                    const int64_t total = judge(c, &l, dims), other = axis == 0   ? 8
                                                                      : axis == 1 ? 10
                                                                                  : 3;
                    const int64_t whole = (dims[axis] + n - 1) / n * n;
                    const int64_t padded =
                        four ? (other + other % 2) * (240 / dims[axis] / other) : 240 / dims[axis];
                    assert_int_equal(total, (cut ? dims[axis] : whole) * padded);
                }
    ingot_context_free(c);
}

/* Of each of several matrices the blocks. */
static void blocks_inside(void **state)
{
    (void)state;
    ingot_context *c = ingot_context_new(NULL, NULL);
    const int64_t dims[] = {3, 10, 8};
    for (int64_t n = 1; n <= dims[1]; n++)
        for (int first = 0; first < 2;
             first++) { /* a matrix after the other; by their other axis */
            Layout l = {.n = 2, .op = {{.kind = LAYOUT_CUT, .axis = 1, .a = n}}};
            l.op[1] = first ? permute(4, 3, 1, 0, 2) : permute(4, 0, 1, 3, 2);
            assert_int_equal(judge(c, &l, dims), 240);
        }
    ingot_context_free(c);
}

/* A loop over whole blocks has strides that are constants, and so has what is left. */
static void strides(void **state)
{
    (void)state;
    ingot_context *c = ingot_context_new(NULL, NULL);
    const Layout l = {.n = 2,
                      .op = {{.kind = LAYOUT_CUT, .axis = 0, .a = 4}, permute(4, 0, 2, 3, 1)}};
    Node *d[] = {idx(c, 10), idx(c, 3), idx(c, 8)};
    Node *block = range_new(c, 0, idx(c, 2)), *lane = range_new(c, 1, idx(c, 4)),
         *rest = range_new(c, 2, idx(c, 2)), *term = range_new(c, 3, idx(c, 8));
    Node *whole = idx_add(c, idx_mul(c, block, idx(c, 4)), lane),
         *last = idx_add(c, rest, idx(c, 8));
    Node *in = layout_offset(c, &l, RANK, d, (Node *[]){whole, idx(c, 1), term});
    Node *behind = layout_offset(c, &l, RANK, d, (Node *[]){last, idx(c, 1), term});
    Node *want_in = idx_add(c, idx_mul(c, block, idx(c, 96)),
                            idx_add(c, lane, idx_add(c, idx_mul(c, term, idx(c, 4)), idx(c, 32)))),
         *want_behind =
             idx_add(c, rest, idx_add(c, idx_mul(c, term, idx(c, 2)), idx(c, 2 * 96 + 16)));
    assert_ptr_equal(in, want_in);
    assert_ptr_equal(behind, want_behind);
    ingot_context_free(c);
}

/* Rows begin farther apart than they are long; what is behind them belongs to no element. */
static void pitches(void **state)
{
    (void)state;
    ingot_context *c = ingot_context_new(NULL, NULL);
    const int64_t dims[] = {3, 10, 7};
    int64_t size[2 * INGOT_MAX_RANK], found[RANK];
    Layout l = {.n = 1, .op = {{.kind = LAYOUT_PITCH, .axis = 2, .a = 8}}};
    assert_int_equal(judge(c, &l, dims), 3 * 10 * 8);
    assert_false(layout_find(&l, RANK, dims, 7, found));
    l = (Layout){.n = 2,
                 .op = {permute(3, 2, 0, 1, 0), {.kind = LAYOUT_PITCH, .axis = 2, .a = 16}}};
    assert_int_equal(judge(c, &l, dims), 7 * 3 * 16);
    assert_int_equal(layout_storage(&l, RANK, dims, size), 3);
    assert_int_equal(size[2], 16);
    l = (Layout){.n = 4,
                 .op = {{.kind = LAYOUT_PAD, .axis = 1, .a = 1, .b = 2},
                        {.kind = LAYOUT_SPLIT, .axis = 2, .a = 4},
                        permute(4, 0, 2, 1, 3),
                        {.kind = LAYOUT_PITCH, .axis = 2, .a = 15}}};
    assert_int_equal(judge(c, &l, dims), 3 * 2 * 15 * 4);
    /* a row is a multiple of the pitch, whatever its number */
    l = (Layout){.n = 1, .op = {{.kind = LAYOUT_PITCH, .axis = 2, .a = 8}}};
    Node *d[] = {idx(c, 3), idx(c, 10), idx(c, 7)};
    Node *row = range_new(c, 0, idx(c, 10));
    Node *at = layout_offset(c, &l, RANK, d, (Node *[]){idx(c, 1), row, idx(c, 0)});
    assert_true(idx_is(idx_mod(c, at, idx(c, 8)), 0));
    ingot_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks),
        cmocka_unit_test(blocks_inside),
        cmocka_unit_test(strides),
        cmocka_unit_test(pitches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
