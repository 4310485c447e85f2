/* toy.c - all that the compiler is told of the accelerator: what it can compute, what its unit
 * multiplies, and what that costs. */
#include "toy.h"

#include "targets/targets.h"

/* c[8][8] += a[8][8] b[8][8] of f32, in its own registers: eight blocks, operands and sums. */
const Tc toy_units[] = {{.name = "toy.f32",
                         .feature = "toy",
                         .m = 8,
                         .n = 8,
                         .k = 8,
                         .group = 1,
                         .a = INGOT_F32,
                         .b = INGOT_F32,
                         .acc = INGOT_F32,
                         .tiles = 8,
                         .products = 1,
                         .spelling = "toy"},
                        {.name = NULL}};

static const Op ops[] = {OP_NEG, OP_ABS,   OP_FLOOR,   OP_CEIL,    OP_ADD,    OP_SUB,   OP_MUL,
                         OP_MAX, OP_MIN,   OP_AND,     OP_OR,      OP_LT,     OP_LE,    OP_EQ,
                         OP_NE,  OP_WHERE, OP_RESHAPE, OP_PERMUTE, OP_EXPAND, OP_REDUCE};

static bool is_known_type(int d)
{
    return d == INGOT_F32 || d == INGOT_BOOL;
}

static bool computes(const Node *n)
{
    bool known = false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        known |= ops[i] == n->op;
    if (n->op == OP_REDUCE)
        known = reduce_monoid(n) == INGOT_REDUCE_ADD || reduce_monoid(n) == INGOT_REDUCE_MAX;
    known = known && is_known_type(n->dtype);
    for (uint32_t i = 0; i < n->nsrc && known; i++)
        known = n->src[i]->dtype == INGOT_INDEX || is_known_type(n->src[i]->dtype);
    return known;
}

/* Of a cycle of its own: 64 KB of memory that gives 64 bytes, then what is behind it. */
static const Target accelerator = {
    .name = "toy accelerator",
    .computes = computes,
    .machine = {.rate = {1, 16, 512},
                .level = {{64 << 10, 64}, {0, 16}},
                .near = 32 << 10,
                .far = 64 << 10,
                .launch = 100,
                .link = 8,
                .part_ns = 1e9, /* there is one */
                .line = 64,
                .ways = 8,
                .page = 4096,
                .pages = 48,
                .lanes = 8,
                .registers = 32,
                .sums = 24,
                .chains = 8,
                .spills = 24,
                .own_units = toy_units},
};

const Target *toy_target(void)
{
    static const Target *const beside[] = {&accelerator, NULL};
    static Target host;
    host = *target_find("c");
    host.name = "toy";
    host.devices = beside;
    return &host;
}
