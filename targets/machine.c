/* machine.c - what a machine's vector registers are, and how a C compiler is told about it. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "targets.h"
#include "tc.h"

typedef struct {
    const char *name, *flags;
    int lanes,
        registers; /* f32 lanes of a vector register, and how many there are; 0: no vector types, and how many
                      registers sums of integers may take */
    bool prefer_ram; /* memory is dearer than time */
    bool dot;        /* it multiplies pairs or fours of narrow integers */
    unsigned units;  /* matrix units: bits by TcId */
    bool any_sign;   /* bytes in lanes, with or without a sign */
} Cpu;

/* clang with wasi-libc. A stack of a megabyte (64 KB is usual), below the data: overrun, it traps. */
#define WASM "--target=wasm32-wasi"
#define WASM_LINK "-Wl,--stack-first -Wl,-z,stack-size=1048576"

#define HALVES "+halves"
#define CACHE "+cache"

#define AMX (1u << TC_AMX_I8 | 1u << TC_AMX_BF16)

static const Cpu machines[] = {
    {"c99", "", 0, 0, true, false, 0, false}, /* any compiler: the standard has no vectors */
    {"x86-64", "-march=x86-64", 4, 16, false, false, 0, false},
    {"x86-64-v2", "-march=x86-64-v2", 4, 16, false, false, 0, false},
    {"x86-64-v3", "-march=x86-64-v3", 8, 16, false, false, 0, false},
    {"x86-64-v4", "-march=x86-64-v4 -mprefer-vector-width=512", 16, 32, false, false, 0, false},
    {"x86-64-v4+vnni", "-march=x86-64-v4 -mavx512vnni -mprefer-vector-width=512", 16, 32, false,
     true, 0, false},
    {"alderlake", "-march=alderlake", 8, 16, false, true, 0, false}, /* AVX-VNNI */
    {"sapphirerapids", "-march=sapphirerapids -mprefer-vector-width=512", 16, 32, false, true, AMX,
     false},
    {"armv8-a", "-march=armv8-a", 4, 32, false, false, 0, false},
    {"armv8.2-a+dotprod", "-march=armv8.2-a+dotprod", 4, 32, false, true, 0, true},
    {"armv8.6-a", "-march=armv8.6-a", 4, 32, false, true, 0, true},
    {"cortex-a53", "-mcpu=cortex-a53", 4, 32, false, false, 0, false},
    {"cortex-a72", "-mcpu=cortex-a72", 4, 32, false, false, 0, false},
    {"cortex-a76", "-mcpu=cortex-a76", 4, 32, false, true, 0, true},
    {"cortex-m0+", "-mthumb -mcpu=cortex-m0plus -mfloat-abi=soft", 0, 5, true, false, 0, false},
    {"cortex-m3", "-mthumb -mcpu=cortex-m3 -mfloat-abi=soft", 0, 9, true, false, 0, false},
    {"cortex-m33", "-mthumb -mcpu=cortex-m33 -mfpu=fpv5-sp-d16 -mfloat-abi=hard", 0, 9, true, true,
     0, false},
    {"cortex-m4", "-mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard", 0, 9, true, true, 0,
     false},
    {"cortex-m4-soft", "-mthumb -mcpu=cortex-m4 -mfloat-abi=soft", 0, 9, true, true, 0, false},
    {"cortex-m55", "-mthumb -mcpu=cortex-m55 -mfloat-abi=hard", 0, 9, true, true, 0, false},
    {"cortex-m7", "-mthumb -mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard", 0, 9, true, true, 0,
     false},
    {"rv32imc", "-march=rv32imc -mabi=ilp32", 0, 9, true, false, 0, false},
    {"rv64gc", "-march=rv64gc", 0, 0, true, false, 0, false},
    {"wasm32", WASM, 0, 9, false, false, 0, false},
    {"wasm32-simd128", WASM " -msimd128", 4, 16, false, false, 0, false},
};
enum { MACHINES = sizeof machines / sizeof *machines };

/* Does the processor that the compiler runs on take vectors of 512 bits as two of 256?  AMD64 Architecture Programmer's Manual,
 * volume 3, CPUID function 8000_001A: the width of its arithmetic. */
static bool in_halves(void)
{
#if defined(__x86_64__)
    enum { FP256 = 1u << 2, FP512 = 1u << 3 };
    const unsigned width = 0x8000001A;
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx512f") && __get_cpuid(width, &a, &b, &c, &d) &&
           (a & (FP256 | FP512)) == FP256;
#else
    return false;
#endif
}

/* Bytes of the largest cache of the processor that the compiler runs on, as CPUID tells it (Intel's function 4, AMD's 8000_001D have
 * one form); 0: it does not. */
static double largest_cache(void)
{
    double most = 0;
#if defined(__x86_64__)
    const unsigned leaf[] = {4, 0x8000001D};
    unsigned a, b, c, d;
    for (unsigned i = 0; i < 8; i++)
        if (__get_cpuid_count(leaf[__builtin_cpu_is("amd") != 0], i, &a, &b, &c, &d) && a & 31) {
            const double ways = (b >> 22) + 1, parts = (b >> 12 & 1023) + 1, line = (b & 4095) + 1,
                         bytes = ways * parts * line * ((double)c + 1);
            most = bytes > most ? bytes : most;
        }
#endif
    return most;
}

/* "native": the processor that the compiler runs on. */
static Cpu native(void)
{
    Cpu m = {.name = "native", .flags = "-march=native", .prefer_ram = true};
#if defined(__x86_64__)
    m.lanes = 4, m.registers = 16, m.prefer_ram = false;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        m.lanes = 8;
    if (__builtin_cpu_supports("avx512f")) {
        m.flags = "-march=native -mprefer-vector-width=512";
        if (in_halves()) /* it loads one vector a cycle; tuned for it, gcc reads one for each of its uses */
            m.flags = "-march=native -mtune=generic -mprefer-vector-width=512";
        m.lanes = 16, m.registers = 32;
    }
    m.dot = __builtin_cpu_supports("avx512vnni") && m.lanes == 16;
    unsigned a, b, c, d = 0; /* compilers of these years do not know the names of these features */
    enum { AMX_BF16 = 1u << 22, AMX_TILE = 1u << 24, AMX_INT8 = 1u << 25, AVX_VNNI = 1u << 4 };
    if (m.lanes == 8 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
        m.dot = a & AVX_VNNI;
    const unsigned all = AMX_BF16 | AMX_TILE | AMX_INT8;
    if (m.lanes == 16 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & all) == all)
        m.units = AMX;
#elif defined(__aarch64__)
    m.flags = "-mcpu=native";
    m.lanes = 4, m.registers = 32, m.prefer_ram = false;
#if defined(__linux__) && defined(HWCAP_ASIMDDP)
    m.dot = m.any_sign = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
#endif
    return m;
}

const char *machine_name(int i)
{
    return !i ? "native" : i <= MACHINES ? machines[i - 1].name : NULL;
}

/* Rates of cores of a kind; two vectors of operations a cycle, which are multiply-adds in a tile, though not all of the time.  Where
 * two halves of a vector are multiplied one after the other, sums have units beside: other operations take as long as elsewhere. */
void target_costs(Target *t, bool halves, bool prefer_ram)
{
    static const Level large[] = {{32 << 10, 64}, {1 << 20, 16}, {16 << 20, 10}, {0, 4.5}},
                       small[] = {{0, 4}};
    int lanes = t->machine.lanes ? t->machine.lanes : 1;
    t->machine.rate[UNIT_SCALAR] = t->machine.lanes ? 2 : 1;
    t->machine.rate[UNIT_VECTOR] = t->machine.lanes ? 2 * lanes : 1;
    t->machine.rate[UNIT_TILE] = t->machine.lanes ? 3. * lanes / (halves ? 2 : 1)
                                 : t->machine.dot ? 4
                                                  : 1;
    memcpy(t->machine.level, t->machine.lanes ? large : small,
           t->machine.lanes ? sizeof large : sizeof small);
    t->machine.line = t->machine.lanes ? 64 : 32;
    t->machine.near = 32 << 10;
    t->machine.far = 1 << 20;
    t->machine.ways = 8;
    t->machine.page = 4096;
    t->machine.pages = 48;
    t->machine.sums = 24;
    t->machine.chains = 10;
    t->machine.spills = 24;
    t->machine.part_ns = 2500;
    t->machine.launch = 500;
    t->machine.byte = prefer_ram ? DEAR : 0;
}

/* pmaddwd, of SSE2 and what came after, where there is no multiplication of bytes. */
static bool has_pairs(const Cpu *m)
{
    bool x86 = strstr(m->flags, "x86-64") != NULL;
#if defined(__x86_64__)
    x86 |= !strcmp(m->name, "native");
#endif
    return x86 && m->lanes && !m->dot;
}

/* The least of "sm_90a+sm_80" or "sm_90a+compute_80": 80; with any other machine, 0. */
static int least_sm(const char *machine)
{
    int least = INT_MAX;
    for (const char *at = machine; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL) {
        const int sm = !strncmp(at, "sm_", 3)        ? atoi(at + 3)
                       : !strncmp(at, "compute_", 8) ? atoi(at + 8)
                                                     : 0;
        least = sm < least ? sm : least;
    }
    return least;
}

int gpu_shared_most(const char *machine)
{
    const int sm = least_sm(machine);
    return (sm >= 100 && sm < 120  ? 227
            : sm == 90             ? 227
            : sm == 80 || sm == 87 ? 163
            : sm > 80              ? 99
                                   : 48)
           << 10;
}

bool gpu_dot(const char *machine)
{
    enum { DP4A = 61 };
    return least_sm(machine) >= DP4A;
}

unsigned gpu_units(const char *machine)
{
    unsigned units = 0;
    const int has = least_sm(machine);
    for (int i = 0; i < TC_COUNT; i++) {
        const char *feature = tc_units[i].feature;
        const bool alone = strspn(feature + 3, "0123456789") != strlen(feature + 3);
        if (!strncmp(feature, "sm_", 3) &&
            (alone ? !strcmp(feature, machine) : atoi(feature + 3) <= has))
            units |= 1u << i;
    }
    return units;
}

/* Has this machine the instructions of the one that the compiler runs on? */
static bool is_of_this_kind(const Cpu *m)
{
#if defined(__x86_64__)
    return strncmp(m->name, "armv", 4) != 0 && strncmp(m->name, "cortex", 6) != 0 &&
           strncmp(m->name, "wasm", 4) != 0;
#elif defined(__aarch64__)
    return !strncmp(m->name, "armv8", 5);
#else
    return false;
#endif
}

/* What "native" is here, as a name that says the same on every machine: "x86-64-v4+vnni+halves+cache260m".  NULL: it has none. */
const char *native_name(Arena *a)
{
    const Cpu m = native();
    enum { KILO = 1 << 10, MEGA = 1 << 20 };
    const double cache = largest_cache();
    const bool whole = fmod(cache, MEGA) == 0;
    for (int i = 0; i < MACHINES; i++) {
        const Cpu *x = &machines[i];
        const bool same = x->lanes == m.lanes && x->registers == m.registers && x->dot == m.dot &&
                          x->units == m.units && x->any_sign == m.any_sign &&
                          x->prefer_ram == m.prefer_ram && has_pairs(x) == has_pairs(&m);
        if (!m.lanes || !same || !is_of_this_kind(x))
            continue;
        StrBuf sb = {0};
        sb_printf(&sb, "%s%s", x->name, in_halves() ? HALVES : "");
        if (cache > 0)
            sb_printf(&sb, CACHE "%.0f%c", cache / (whole ? MEGA : KILO), whole ? 'm' : 'k');
        return sb_take(&sb, a);
    }
    return NULL;
}

/* "x86-64-v4+halves+cache260m": what "native" knows of a machine besides its instructions.  *n: characters of the name before these; false: it is no
 * such name. */
static bool beside_name(const char *machine, size_t *n, bool *halves, double *cache)
{
    const char *at = strstr(machine, CACHE);
    char *end = NULL;
    *cache = 0;
    *n = at ? (size_t)(at - machine) : strlen(machine);
    if (at) {
        *cache = strtod(at + strlen(CACHE), &end) * (1 << 10);
        *cache *= *end == 'm' ? 1 << 10 : 1;
        if (!strchr("0123456789", at[strlen(CACHE)]) || (*end != 'k' && *end != 'm') || end[1])
            return false;
    }
    *halves =
        *n > strlen(HALVES) && !strncmp(machine + *n - strlen(HALVES), HALVES, strlen(HALVES));
    *n -= *halves ? strlen(HALVES) : 0;
    return true;
}

bool target_tune(Target *t, const char *machine)
{
    Cpu m = {0};
    size_t n;
    bool halves;
    double cache;
    if (!beside_name(machine, &n, &halves, &cache))
        return false;
    const bool here = !strcmp(machine, "native");
    if (here)
        m = native();
    for (int i = 0; i < MACHINES; i++)
        if (strlen(machines[i].name) == n && !strncmp(machine, machines[i].name, n))
            m = machines[i];
    t->flags = m.flags;
    if (!strncmp(machine, "cortex-m", 8))
        t->bare = true, t->cc = "arm-none-eabi-gcc", t->ar = "arm-none-eabi-ar";
    if (!strncmp(machine, "rv32", 4))
        t->bare = true, t->cc = "riscv64-unknown-elf-gcc", t->ar = "riscv64-unknown-elf-ar";
    t->machine.lanes = m.lanes;
    t->machine.registers = m.registers;
    t->machine.pairs = m.name && has_pairs(&m);
    t->machine.dot = m.dot || t->machine.pairs;
    t->machine.any_sign = m.any_sign || t->machine.pairs;
    t->machine.units = m.units;
    t->wasm = !strncmp(machine, "wasm", 4);
    if (t->wasm) {
        t->cc = "clang";
        t->ar = "llvm-ar";
        t->link = WASM_LINK;
    }
    t->machine.cache = here ? largest_cache() : cache;
    target_costs(t, here ? in_halves() : halves, m.prefer_ram);
    return m.name != NULL;
}
