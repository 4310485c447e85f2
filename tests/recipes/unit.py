"""Add a unit: 8 rows by 4 columns of bytes, whose instructions are a loop in C."""

import numpy as np
from checks import compilers

HEADINGS = ("Add a unit",)
PROGRAMS = ("ingot",)

HEADER = r"""/*
 * igrt_spare_unit.h - a unit of 8 tiles of up to 8 rows of 64 bytes: c[8][4] += a[8][32] b[8][4][4].
 */
#ifndef IGRT_SPARE_UNIT_H
#define IGRT_SPARE_UNIT_H

#include "igrt_num.h"

typedef struct igrt_spare_unit_tiles {
    uint8_t at[8][8][64];
    int lines[8], bytes[8];
} igrt_spare_unit_tiles;

IGRT_INLINE void igrt_spare_unit_begin(igrt_spare_unit_tiles *t, int sums, int a, int rows, int terms)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < 8; i++) {
        t->lines[i] = i < sums + a ? rows : terms / 4;
        t->bytes[i] = i >= sums && i < sums + a ? terms : 16;
    }
}

IGRT_INLINE void igrt_spare_unit_end(igrt_spare_unit_tiles *t)
{
    (void)t;
}

IGRT_INLINE void igrt_spare_unit_load(igrt_spare_unit_tiles *t, int n, const void *p, int64_t pitch)
{
    for (int i = 0; i < t->lines[n]; i++)
        memcpy(t->at[n][i], (const char *)p + i * pitch, (size_t)t->bytes[n]);
}

IGRT_INLINE void igrt_spare_unit_store(const igrt_spare_unit_tiles *t, int n, void *p, int64_t pitch)
{
    for (int i = 0; i < t->lines[n]; i++)
        memcpy((char *)p + i * pitch, t->at[n][i], (size_t)t->bytes[n]);
}

IGRT_INLINE void igrt_spare_unit_zero(igrt_spare_unit_tiles *t, int n)
{
    memset(t->at[n], 0, sizeof t->at[n]);
}

#define IGRT_SPARE_DOT(X, W)                                                                              \
    IGRT_INLINE void igrt_spare_unit_dot_##X##_##W(igrt_spare_unit_tiles *t, int c, int a, int b)         \
    {                                                                                                     \
        for (int m = 0; m < t->lines[c]; m++)                                                             \
            for (int n = 0; n < 4; n++) {                                                                \
                int32_t sum;                                                                              \
                memcpy(&sum, t->at[c][m] + 4 * n, 4);                                                     \
                for (int k = 0; k < t->bytes[a]; k++)                                                     \
                    sum += IGRT_SPARE_##X(t->at[a][m][k]) * IGRT_SPARE_##W(t->at[b][k / 4][4 * n + k % 4]); \
                memcpy(t->at[c][m] + 4 * n, &sum, 4);                                                     \
            }                                                                                             \
    }
#define IGRT_SPARE_i8(x) ((x) - ((x)&128) * 2)
#define IGRT_SPARE_u8(x) (int)(x)
IGRT_SPARE_DOT(i8, i8)
IGRT_SPARE_DOT(i8, u8)
IGRT_SPARE_DOT(u8, i8)
IGRT_SPARE_DOT(u8, u8)

#endif
"""


def write(tree):
    tree.insert(
        "compiler/kernel/units.def",
        'UNIT(AMX_BF16, "amx.bf16"',
        'UNIT(SPARE, "spare.i8", "spare", 8, 4, 32, 4, I8, I8, I32, 8, 0, 1, 0, "igrt_spare_unit")',
    )
    tree.new("runtime_min/igrt_spare_unit.h", HEADER)
    tree.insert(
        "codegen/render/codegen.h",
        "NEED_AMX = 1 << 18,",
        "    NEED_SPARE = 1 << 21, /* igrt_spare_unit.h */",
    )
    tree.insert(
        "codegen/render/runtime_text.c",
        '{"igrt_amx.h", NEED_AMX, NEED_NUM},',
        '    {"igrt_spare_unit.h", NEED_SPARE, NEED_NUM},',
    )
    tree.insert(
        "targets/machines.def",
        'MACHINE("sapphirerapids"',
        'MACHINE("spare", "", application, 4, 16, false, true, 1u << TC_SPARE, false, 0)',
    )


def check(tried):
    random = np.random.default_rng(4)
    x = random.integers(-128, 128, (40, 96)).astype(np.int8)
    w = random.integers(-128, 128, (96, 64)).astype(np.int8)
    product = x.astype(np.int32) @ w.astype(np.int32)
    nodes = [("MatMulInteger", ["x", "w"], ["y"])]
    model, data = tried.model("unit", nodes, {"x": x}, {"y": product}, [("w", w)])
    saved = tried.work / "unit.sched"
    tried.compile(model, "c:spare", "--save-sched", saved)
    assert "TC spare.i8" in saved.read_text(), saved.read_text()
    tried.verify(model, "--target", "c:spare")
    for cc in compilers():
        assert tried.run(model, data, "c:spare", cc, 0, "--sched", saved)
    return "TC spare.i8"
