/* rewrite_test.c - rewrites of networks that are deeper than a rule sees at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/compiler.h"
#include "compiler/ingot_ops.h"

enum { LAYERS = 150, WIDTH = 4 };

/* Layers with a scale behind each product and after each activation: a layer's scale is folded whatever became of the
 * layers below, and a network of any depth comes to rest. */
static void test_deep(void **state)
{
    (void)state;
    float weights[WIDTH * WIDTH], scale[WIDTH];
    Context *c = ingot_context_new(NULL, NULL);
    ingot_tensor *x = ingot_input(
        c, "x", INGOT_F32, 2, (ingot_dim *[]){ingot_dim_const(c, 1), ingot_dim_const(c, WIDTH)});
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < WIDTH * WIDTH; i++)
            weights[i] = (float)(layer + i);
        for (int i = 0; i < WIDTH; i++)
            scale[i] = (float)(2 + layer + i);
        x = ingot_matmul(c, x,
                         ingot_data(c, NULL, INGOT_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights));
        x = ingot_mul(c, x, ingot_data(c, NULL, INGOT_F32, 1, (int64_t[]){WIDTH}, scale));
        x = ingot_relu(c, x);
    }
    ingot_output(c, "y", x);
    assert_true(graph_rewrite(c, NULL, NULL));
    Arena *a = arena_new();
    int n, scaled = 0;
    Node **order = graph_toposort(a, 1, &c->outputs[0].node, &n);
    for (int i = 0; i < n; i++)
        scaled += order[i]->op == OP_MUL && order[i]->rank == 2 && idx_is(order[i]->shape[0], 1);
    assert_int_equal(scaled, 0);
    arena_free(a);
    ingot_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_deep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
