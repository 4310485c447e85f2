/* target_c.c - C99 for any CPU. Where no machine is named there are vectors of 4 lanes, 16 of them:
 * what x86-64 and aarch64 have without flags, and what gcc and clang make scalars of elsewhere. */
#include "language_c.h"
#include "targets.h"

/* clang-format off */
const char *const c_spelling[OP_COUNT] = {
    [OP_NEG] = "(-$0)",          [OP_ABS] = "fabs@($0)",     [OP_EXP] = "exp@($0)",
    [OP_SIN] = "sin@($0)",       [OP_COS] = "cos@($0)",      [OP_TAN] = "tan@($0)",     [OP_ASIN] = "asin@($0)",
    [OP_ACOS] = "acos@($0)",     [OP_ATAN] = "atan@($0)",    [OP_SINH] = "sinh@($0)",   [OP_COSH] = "cosh@($0)",
    [OP_TANH] = "tanh@($0)",     [OP_ASINH] = "asinh@($0)",  [OP_ACOSH] = "acosh@($0)", [OP_ATANH] = "atanh@($0)",
    [OP_SQRT] = "sqrt@($0)",     [OP_FLOOR] = "floor@($0)",  [OP_CEIL] = "ceil@($0)",   [OP_TRUNC] = "trunc@($0)",
    [OP_ISNAN] = "($0 != $0)",   [OP_ADD] = "($0 + $1)",     [OP_SUB] = "($0 - $1)",    [OP_MUL] = "($0 * $1)",
    [OP_DIV] = "($0 / $1)",
};
/* clang-format on */

static const CWords words = {.kernel_word = "", .global_word = "", .restrict_word = "restrict"};

static const Language c_language = {
    C_FAMILY,
    .suffix = ".c",
    .type = c_value_type,
    .float_suffix = "f",
    .parts = c_parts,
    .each_part = "    for (int64_t part = begin; part < end; part++) {\n"
                 "        const int64_t next = part + 1;\n",
    .end_part = "    }\n",
    .c = &words,
};

extern const Target target_c;
const Target target_c = {
    .name = "c",
    .language = &c_language,
    .machine = {CORE_APPLICATION, .lanes = 4, .registers = 16, .dot = true, .any_sign = true,
                .pairs = true, .rate = {2, 8, 12, 100}, .byte = 2},
    .machine_name = machine_name,
};
