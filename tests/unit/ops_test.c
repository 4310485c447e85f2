/* ops_test.c - what ops.def promises of an op is there: its form in lanes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codegen/render/render.h"

static void has_function(Op op, int bits)
{
    char function[64];
    if (!lane_form(op, bits, function))
        fail_msg("ops.def: %s has a form in lanes of f%d, but no igrt_vec*.h has %sxN()",
                 op_info[op].text, bits, function);
}

static void lanes(void **state)
{
    (void)state;
    for (int op = 0; op < OP_COUNT; op++) {
        if (op_info[op].lanes >= 32)
            has_function((Op)op, 32);
        if (op_info[op].lanes >= 64)
            has_function((Op)op, 64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lanes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
