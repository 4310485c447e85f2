/* stored_rows_test.c - images with few channels that are stored once more, as rows whose windows
 * begin at multiples of 16 bytes: the same sums, for borders, steps, taps apart and windows of
 * several sizes; where that is no gain, the usual form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/eval/eval.h"
#include "compiler/ingot_ops.h"
#include "compiler/ir/ir.h"

typedef struct {
    int64_t channels, size[2], taps[2], step[2], apart[2], before[2], behind[2];
    bool stored;
} RowsCase;

static const RowsCase cases[] = {
    {3, {20, 22}, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}, true},
    {3, {9, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, true},
    {1, {9, 17}, {5, 5}, {1, 4}, {1, 1}, {2, 0}, {0, 2}, true},
    {4, {8, 11}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, true},
    {3, {12, 12}, {4, 4}, {4, 4}, {1, 1}, {0, 0}, {0, 0}, true},
    {5, {12, 10}, {3, 2}, {1, 1}, {2, 1}, {2, 0}, {2, 0}, true}, /* eight channels */
    {3, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, false},  /* from 8 bytes on */
    {3, {9, 9}, {3, 3}, {2, 2}, {1, 2}, {1, 1}, {1, 1}, false},
    {16, {9, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, false},
};
enum { MAPS = 16 };

static ingot_tensor *halves(Context *c, const int64_t *size, unsigned seed)
{
    static const uint16_t number[] = {0, 0x3c00, 0xbc00, 0x3800, 0x4000, 0xb800, 0x3400};
    const int64_t n = size[0] * size[1] * size[2] * size[3];
    uint16_t *data = NEWN(c->arena, uint16_t, n);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = number[(seed >> 16) % (sizeof number / sizeof *number)];
    }
    return ingot_data(c, NULL, INGOT_F16, 4, size, data);
}

static const Node *sum_of(const Node *n)
{
    while (n->op != OP_REDUCE)
        n = n->src[0];
    return n;
}

static void same_sums(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const RowsCase *t = &cases[i];
        Context *c = ingot_context_new(NULL, NULL);
        Interp *ip = interp_new(c);
        const int64_t image[] = {2, t->channels, t->size[0], t->size[1]},
                      window[] = {MAPS, t->channels, t->taps[0], t->taps[1]};
        ingot_tensor *x = halves(c, image, 1), *w = halves(c, window, 2), *y[2];
        int64_t dims[2][INGOT_MAX_RANK], n = 2;
        const void *bytes[2];
        for (int j = 0; j < 2; j++) {
            ingot_set_stored_rows(c, j);
            y[j] = ingot_conv(c, x, w, NULL, t->step, t->apart, t->before, t->behind, 1);
            bytes[j] = interp_eval(ip, y[j], dims[j]);
            assert_non_null(bytes[j]);
        }
        if ((sum_of(y[0])->src[0]->rank != sum_of(y[1])->src[0]->rank) != t->stored)
            fail_msg("case %zu: %s", i, t->stored ? "the usual form" : "stored rows");
        for (int j = 0; j < 4; j++) {
            assert_int_equal(dims[0][j], dims[1][j]);
            n *= dims[0][j];
        }
        assert_memory_equal(bytes[0], bytes[1], (size_t)n);
        interp_free(ip);
        ingot_context_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
