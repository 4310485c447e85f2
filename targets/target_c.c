/* target_c.c - C99 for any CPU. Where no machine is named there are vectors of 4 lanes, 16 of them: what
 * x86-64 and aarch64 have without flags, and what gcc and clang make scalars of elsewhere. */
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

extern const Target target_c;
const Target target_c = {
    .name = "c",
    .suffix = ".c",
    .kernel_word = "",
    .global_word = "",
    .restrict_word = "restrict",
    .float_suffix = "f",
    .spelling = c_spelling,
    .machine.lanes = 4,
    .machine.dot = true,
    .machine.any_sign = true,
    .machine.pairs = true,
    .machine.registers = 16,
    .machine.rate = {2, 8, 12},
    .machine.level = {{32 << 10, 64}, {1 << 20, 16}, {16 << 20, 10}, {0, 4.5}},
    .machine.near = 32 << 10,
    .machine.far = 1 << 20,
    .machine.ways = 8,
    .machine.page = 4096,
    .machine.pages = 48,
    .machine.sums = 24,
    .machine.chains = 10,
    .machine.spills = 24,
    .machine.part_ns = 2500,
    .machine.line = 64,
    .machine.launch = 500,
    .machine.byte = 2,
};
