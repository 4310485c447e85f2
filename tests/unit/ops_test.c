/* ops_test.c - what ops.def promises of an op is there: its form in lanes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/render.h"

static const char *header(const char *name)
{
    for (const RuntimeFile *f = runtime_files; *f->name; f++)
        if (!strcmp(f->name, name))
            return (const char *)f->data;
    fail_msg("no %s in the compiler", name);
    return "";
}

/* igrt_<op>_f32xN, in a macro that has the type as an argument, or of one that has the name as an argument. */
static void has_function(Op op, const char *type, const char *file)
{
    const char *name = lane_spelling[op] ? lane_spelling[op] : op_info[op].text,
               *text = header(file);
    char function[64], typed[64], argument[64];
    snprintf(function, sizeof function, "igrt_%s_%s", name, type);
    snprintf(typed, sizeof typed, "igrt_%s_##T##x", name);
    snprintf(argument, sizeof argument, ", %s,", name);
    if (!strchr(name, '$') && !strstr(text, function) && !strstr(text, typed) &&
        !strstr(text, argument))
        fail_msg("ops.def: %s has a form in lanes of %s, but %s has no %sxN()", op_info[op].text,
                 type, file, function);
}

static void lanes(void **state)
{
    (void)state;
    for (int op = 0; op < OP_COUNT; op++) {
        if (op_info[op].lanes >= 32)
            has_function((Op)op, "f32", "igrt_vec.h");
        if (op_info[op].lanes >= 64)
            has_function((Op)op, "f64", "igrt_vec64.h");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lanes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
