/*
 * igrt_cpu.c - what the processor has: compiled for any machine, and called before anything else.
 */
#include "igrt_cpu.h"

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
enum { EAX, EBX, ECX, EDX };
enum { F1, F7, F7_1, F81, FUNCTIONS };

/* What the system saves of a thread, as bits of XCR0: without that an instruction faults, whatever
 * CPUID says of it. ZMM: masks, the upper halves of 512 bits, and registers 16 to 31. */
enum { XMM, YMM, ZMM, TILES, APX, STATES };
static const uint32_t saved_as[STATES] = {0, 6, 0xe6, 0x60000, 0x80000};

#ifndef IGRT_CPU_FAKE /* tests have a table of their own */
IGRT_CPU_ANY static void igrt_cpu_id(uint32_t function, uint32_t sub, uint32_t reg[4])
{
#if defined(__x86_64__)
    __asm__ __volatile__("cpuid"
                         : "=a"(reg[EAX]), "=b"(reg[EBX]), "=c"(reg[ECX]), "=d"(reg[EDX])
                         : "a"(function), "c"(sub));
#else /* ebx may be the one that points to the data */
    __asm__ __volatile__("xchgl %%ebx, %1\n\tcpuid\n\txchgl %%ebx, %1"
                         : "=a"(reg[EAX]), "=&r"(reg[EBX]), "=c"(reg[ECX]), "=d"(reg[EDX])
                         : "a"(function), "c"(sub));
#endif
}

IGRT_CPU_ANY static uint64_t igrt_cpu_xcr0(void)
{
    uint32_t low, high;
    __asm__ __volatile__(".byte 0x0f, 0x01, 0xd0" /* xgetbv */
                         : "=a"(low), "=d"(high)
                         : "c"(0));
#if defined(__APPLE__) /* it saves those of AVX-512 from a thread's first use on */
    low |= 0xe0;
#endif
    return (uint64_t)high << 32 | low;
}

/* arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA) */
IGRT_CPU_ANY static int igrt_cpu_tiles(void)
{
#if defined(__linux__) && defined(__x86_64__)
    long result;
    __asm__ __volatile__("syscall"
                         : "=a"(result)
                         : "a"(158L), "D"(0x1023L), "S"(18L)
                         : "rcx", "r11", "memory");
    return result == 0;
#else
    return 1;
#endif
}
#endif

static const struct {
    uint8_t reg, bit; /* 4 * function + register; 8 * bit + state */
} features[] = {
#define IGRT_X(id, name, macro, function, reg, bit, state) {function * 4 + reg, bit * 8 + state},
    IGRT_CPU_LIST(IGRT_X)
#undef IGRT_X
};

/* Functions above the greatest one that there is answer as if they were another. */
IGRT_CPU_ANY static void read_all(uint32_t reg[4 * FUNCTIONS])
{
    static const uint32_t function[FUNCTIONS] = {1, 7, 7, 0x80000001u};
    for (int i = 0; i < FUNCTIONS; i++) {
        uint32_t *const to = reg + i * 4;
        igrt_cpu_id(function[i] & 0x80000000u, 0, to);
        if ((to[EAX] ^ function[i]) >> 31 || to[EAX] < function[i] ||
            (i == F7_1 && !reg[F7 * 4 + EAX])) /* the greatest subfunction */
            to[EAX] = to[EBX] = to[ECX] = to[EDX] = 0;
        else
            igrt_cpu_id(function[i], i == F7_1, to);
    }
}

uint64_t igrt_cpu_features(void)
{
    enum { OSXSAVE = 1 << 27 };
    uint32_t reg[4 * FUNCTIONS];
    uint64_t mask = 0;
    read_all(reg);
    const uint64_t saved = reg[F1 * 4 + ECX] & OSXSAVE ? igrt_cpu_xcr0() : 0;
    for (int i = 0; i < IGRT_CPU_COUNT; i++) {
        const uint64_t state = saved_as[features[i].bit % 8];
        if (reg[features[i].reg] >> features[i].bit / 8 & 1 && (saved & state) == state)
            mask |= UINT64_C(1) << i;
    }
    return mask;
}

uint64_t igrt_cpu_lacks(uint64_t wanted)
{
    const uint64_t tiles = UINT64_C(1) << IGRT_CPU_AMX_TILE;
    uint64_t lacks = wanted ? wanted & ~igrt_cpu_features() : 0;
    if (!lacks && wanted & tiles && !igrt_cpu_tiles())
        lacks = tiles;
    return lacks;
}
#elif (defined(__aarch64__) || (defined(__riscv_xlen) && __riscv_xlen == 64)) && defined(__linux__)
unsigned long
getauxval(unsigned long); /* of the C libraries of Linux: what the kernel has told the program */

#ifndef IGRT_CPU_FAKE
static uint64_t ask_hwcap(int which)
{
    return getauxval(which ? 26 : 16); /* AT_HWCAP2, AT_HWCAP */
}

#if defined(__aarch64__)
/* Bytes of a vector of SVE: rdvl x0, 1. */
static uint64_t igrt_cpu_vector_bytes(void)
{
    uint64_t bytes;
    __asm__ __volatile__(".inst 0x04bf5020\n\tmov %0, x0" : "=r"(bytes) : : "x0");
    return bytes;
}
#else
/* Bytes of a vector of V: csrr a0, vlenb. */
static uint64_t igrt_cpu_vector_bytes(void)
{
    uint64_t bytes;
    __asm__ __volatile__(".4byte 0xc2202573\n\tmv %0, a0" : "=r"(bytes) : : "a0");
    return bytes;
}
#endif
#endif

/* Are vectors of this many bytes what code for so many can take? That of SVE is for one size, that
 * of V for all that are as long at least. */
static int suits(uint64_t bytes, uint64_t built)
{
#if defined(__aarch64__)
    return bytes == built;
#else
    return bytes >= built;
#endif
}

enum { HWCAP, HWCAP2 };
static const uint8_t features[][3] = {
#define IGRT_X(id, name, macro, from, bytes, bit, state) {from, bit, bytes},
    IGRT_CPU_LIST(IGRT_X)
#undef IGRT_X
};

uint64_t igrt_cpu_features(void)
{
    uint64_t mask = 0;
    for (int i = 0; i < IGRT_CPU_COUNT; i++) {
        const uint64_t has = ask_hwcap(features[i][0]) >> features[i][1] & 1;
        const uint8_t bytes = features[i][2];
        mask |= (has && (!bytes || suits(igrt_cpu_vector_bytes(), bytes)) ? has : 0) << i;
    }
    return mask;
}

uint64_t igrt_cpu_lacks(uint64_t wanted)
{
    return wanted ? wanted & ~igrt_cpu_features() : 0;
}
#else
uint64_t igrt_cpu_features(void)
{
    return ~UINT64_C(0);
}

uint64_t igrt_cpu_lacks(uint64_t wanted)
{
    (void)wanted;
    return 0;
}
#endif
