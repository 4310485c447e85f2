/* What the processor has, by a table in place of CPUID (of HWCAP): no feature without its bit, none
 * that the system does not save. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define IGRT_CPU_FAKE
#include "igrt_cpu.h"

#if defined(__x86_64__)
/* Registers of functions 0, 1, 7.0, 7.1, 0x80000000, 0x80000001; beyond the greatest one a
 * processor repeats another's. */
static struct {
    uint32_t basic, extended, subs; /* the greatest ones */
    uint32_t one[4], seven[2][4], more[4];
    uint64_t xcr0;
    int tiles; /* does the system give them? */
} fake;

static void igrt_cpu_id(uint32_t function, uint32_t sub, uint32_t reg[4])
{
    const uint32_t greatest[2] = {fake.basic, fake.extended}, high = function >> 31;
    static const uint32_t all[4] = {~0u, ~0u, ~0u, ~0u};
    const uint32_t *from = all;
    if (!(function & 0x7fffffff)) {
        memset(reg, 0, 4 * sizeof *reg);
        reg[0] = greatest[high];
        return;
    }
    if (function == 1 && fake.basic >= 1)
        from = fake.one;
    if (function == 7 && fake.basic >= 7 && sub < 2)
        from = fake.seven[sub];
    if (function == 0x80000001u && fake.extended >= function)
        from = fake.more;
    memcpy(reg, from, 4 * sizeof *reg);
    if (function == 7 && !sub)
        reg[0] = fake.subs;
}

static uint64_t igrt_cpu_xcr0(void)
{
    return fake.xcr0;
}

static int igrt_cpu_tiles(void)
{
    return fake.tiles;
}

#include "igrt_cpu.c"

#define BIT(id) (UINT64_C(1) << IGRT_CPU_##id)
enum { EVERYTHING = 0xff | 0x60000 | 0x80000 };

static void everything(void)
{
    memset(&fake, 0xff, sizeof fake);
    fake.basic = 7, fake.extended = 0x80000008u, fake.subs = 1;
    fake.xcr0 = EVERYTHING;
}

static void all_and_nothing(void **state)
{
    (void)state;
    everything();
    const uint64_t all = (UINT64_C(1) << IGRT_CPU_COUNT) - 1;
    assert_true(igrt_cpu_features() == all);
    assert_true(igrt_cpu_lacks(all) == 0);
    memset(&fake, 0, sizeof fake);
    fake.xcr0 = EVERYTHING;
    assert_true(igrt_cpu_features() == 0);
    assert_true(igrt_cpu_lacks(all) == all);
    assert_true(igrt_cpu_lacks(0) == 0);
}

/* Each feature has a bit of its own, whose absence takes that one away. */
static void one_by_one(void **state)
{
    (void)state;
    uint32_t *const from[FUNCTIONS] = {fake.one, fake.seven[0], fake.seven[1], fake.more};
    for (int i = 0; i < IGRT_CPU_COUNT; i++) {
        everything();
        from[features[i].reg / 4][features[i].reg % 4] &= ~(1u << features[i].bit / 8);
        assert_true(igrt_cpu_features() ==
                    (((UINT64_C(1) << IGRT_CPU_COUNT) - 1) & ~(UINT64_C(1) << i)));
        assert_non_null(igrt_cpu_name(i));
    }
    assert_null(igrt_cpu_name(IGRT_CPU_COUNT));
    assert_null(igrt_cpu_name(-1));
}

static void what_the_system_saves(void **state)
{
    (void)state;
    everything();
    fake.xcr0 = 3; /* no upper halves */
    assert_true(!(igrt_cpu_features() &
                  (BIT(AVX) | BIT(AVX2) | BIT(FMA) | BIT(F16C) | BIT(AVX512F) | BIT(AMX_TILE))));
    assert_true(igrt_cpu_features() & BIT(BMI2));
    assert_true(igrt_cpu_features() & BIT(SSE4_2));
    fake.xcr0 = 7; /* no registers of 512 bits */
    assert_true(igrt_cpu_features() & BIT(AVX_VNNI));
    assert_true(!(igrt_cpu_features() & (BIT(AVX512F) | BIT(AVX512_VNNI))));
    fake.xcr0 = 0xe7;
    assert_true(igrt_cpu_features() & BIT(AVX512_BF16));
    assert_true(!(igrt_cpu_features() & BIT(AMX_INT8)));
    fake.one[2] &= ~(1u << 27); /* XGETBV must not be asked */
    assert_true(!(igrt_cpu_features() & BIT(AVX)));
}

/* Functions that an old processor does not have answer with anything. */
static void older(void **state)
{
    (void)state;
    everything();
    fake.basic = 1;
    assert_true(!(igrt_cpu_features() & (BIT(AVX2) | BIT(BMI1) | BIT(AVX512F) | BIT(AVX_VNNI))));
    assert_true(igrt_cpu_features() & BIT(FMA));
    everything();
    fake.subs = 0;
    assert_true(igrt_cpu_features() & BIT(AVX2));
    assert_true(!(igrt_cpu_features() & (BIT(AVX_VNNI) | BIT(AVX512_BF16))));
    everything();
    fake.extended = 0;
    assert_true(!(igrt_cpu_features() & BIT(LZCNT)));
}

static void told(void **state)
{
    (void)state;
    igrt_fault fault;
    everything();
    assert_int_equal(igrt_cpu_check(BIT(AVX2) | BIT(FMA), &fault), IGRT_OK);
    assert_null(fault.what);
    fake.seven[0][2] &= ~(1u << 11);
    assert_int_equal(igrt_cpu_check(BIT(AVX512F) | BIT(AVX512_VNNI), &fault), IGRT_ERR_FEATURE);
    assert_string_equal(fault.what, "avx512_vnni");
    assert_true((uint64_t)fault.value == BIT(AVX512_VNNI));
    assert_true(fault.least > fault.greatest);
    everything();
    fake.tiles = 0; /* there, but the system keeps them */
    assert_int_equal(igrt_cpu_check(BIT(AVX512F), &fault), IGRT_OK);
    assert_int_equal(igrt_cpu_check(BIT(AVX512F) | BIT(AMX_TILE) | BIT(AMX_INT8), &fault),
                     IGRT_ERR_FEATURE);
    assert_string_equal(fault.what, "amx_tile");
}

/* What the compiler defines here is what the mask has. */
static void built(void **state)
{
    (void)state;
    uint64_t want = 0;
#ifdef __SSE4_2__
    want |= BIT(SSE4_2);
#endif
#ifdef __AVX2__
    want |= BIT(AVX2);
#endif
#ifdef __AVX512F__
    want |= BIT(AVX512F);
#endif
    assert_true((IGRT_CPU_BUILT & (BIT(SSE4_2) | BIT(AVX2) | BIT(AVX512F))) == want);
#define ON 1
#define OTHER 200
    assert_int_equal(IGRT_CPU_FLAG(ON), 1);
    assert_int_equal(IGRT_CPU_FLAG(OTHER), 0);
    assert_int_equal(IGRT_CPU_FLAG(not_defined), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_and_nothing),
                                       cmocka_unit_test(one_by_one),
                                       cmocka_unit_test(what_the_system_saves),
                                       cmocka_unit_test(older),
                                       cmocka_unit_test(told),
                                       cmocka_unit_test(built)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#elif defined(__aarch64__) && defined(__linux__)
static uint64_t fake[2];

static uint64_t ask_hwcap(int which)
{
    return fake[which];
}

#include "igrt_cpu.c"

static void one_by_one(void **state)
{
    (void)state;
    for (int i = 0; i < IGRT_CPU_COUNT; i++) {
        fake[0] = fake[1] = ~UINT64_C(0);
        fake[features[i][0]] &= ~(UINT64_C(1) << features[i][1]);
        assert_true(igrt_cpu_features() ==
                    (((UINT64_C(1) << IGRT_CPU_COUNT) - 1) & ~(UINT64_C(1) << i)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_by_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return 0;
}
#endif
