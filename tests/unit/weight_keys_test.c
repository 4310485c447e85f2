/* weight_keys_test.c - constants that are equal have one place in the file, and those that differ
 * in anything have two: a row for each property. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/plan/memplan.h"

enum { WORDS = 2048 }; /* more than is hashed of one */

typedef struct {
    const char *what;
    bool same; /* as the plain one */
    ingot_dtype dtype;
    int rank;
    int64_t dims[2];
    int at; /* of the word that is another one; 0: none */
    Layout layout;
    bool recipe; /* not what lies in the model's file, but what is made of it */
} WeightKeyRow;

#define PLAIN .dtype = INGOT_F32, .rank = 2, .dims = {32, 64}
#define SPLIT(size) .layout = {.n = 1, .op = {{LAYOUT_SPLIT, .axis = 1, .a = size}}}

static const WeightKeyRow rows[] = {
    {"plain", true, PLAIN},
    {"other extents", true, .dtype = INGOT_F32, .rank = 2, .dims = {64, 32}},
    {"another rank", true, .dtype = INGOT_F32, .rank = 1, .dims = {WORDS}},
    {"another type", false, .dtype = INGOT_I32, .rank = 2, .dims = {32, 64}},
    {"longer", false, .dtype = INGOT_F32, .rank = 2, .dims = {32, 65}},
    {"shorter", false, .dtype = INGOT_F32, .rank = 2, .dims = {32, 63}},
    {"the sign of a zero", false, PLAIN, .at = 1},
    {"a word behind what is hashed", false, PLAIN, .at = WORDS - 1},
    {"a layout", false, PLAIN, SPLIT(16)},
    {"a recipe", false, PLAIN, .recipe = true},
};
/* Beside the one with a layout. */
static const WeightKeyRow laid_out[] = {
    {"the same layout", true, PLAIN, SPLIT(16)},
    {"another one", false, PLAIN, SPLIT(8)},
    {"of another shape", false, .dtype = INGOT_F32, .rank = 2, .dims = {64, 32}, SPLIT(16)},
    {"of none", false, PLAIN},
    {"a word", false, PLAIN, SPLIT(16), .at = 1},
};

static float words[WORDS * 2];

static Buffer *weight(Context *c, const WeightKeyRow *r)
{
    Buffer *b = NEW(c->arena, Buffer);
    Node **dims = NEWN(c->arena, Node *, 2);
    float *own = NEWN(c->arena, float, WORDS * 2);
    memcpy(own, words, sizeof words);
    if (r->at)
        own[r->at] = -own[r->at];
    *b = (Buffer){.kind = BUF_WEIGHT, .dtype = r->dtype, .rank = r->rank, .layout = r->layout};
    b->bytes = (int64_t)sizeof *own;
    for (int i = 0; i < r->rank; i++) {
        dims[i] = idx(c, r->dims[i]);
        b->bytes *= r->dims[i];
    }
    b->dims = dims;
    b->node = ingot_data(c, r->what, r->dtype, r->rank, r->dims, own);
    if (r->recipe)
        b->node = ingot_neg(c, b->node);
    return b;
}

static void compare(const WeightKeyRow *plain, const WeightKeyRow *other, int n)
{
    for (int i = 0; i < n; i++) {
        Context *c = ingot_context_new(NULL, NULL);
        Plan *p = plan_new(c);
        Buffer *both[] = {weight(c, plain), weight(c, &other[i])};
        assert_true(weights_place(p, 2, both));
        if ((both[0]->offset == both[1]->offset) != other[i].same)
            fail_msg("%s: %s", other[i].what, other[i].same ? "two places" : "one place");
        plan_free(p);
        ingot_context_free(c);
    }
}

static void test_places(void **state)
{
    (void)state;
    for (int i = 0; i < WORDS * 2; i++)
        words[i] = i == 1 ? 0 : (float)i;
    compare(rows, rows, sizeof rows / sizeof *rows);
    compare(laid_out, laid_out, sizeof laid_out / sizeof *laid_out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
