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

/* A row of machines.def. */
typedef struct {
    const char *name, *flags;
    const Machine *core;
    int lanes, registers;
    bool prefer_ram;
    int dot;
    unsigned units;
    bool any_sign;
    double dot_bf16;
} Cpu;

#define CORE(name, ...) static const Machine name = {__VA_ARGS__};
#include "machines.def"

/* clang with wasi-libc. A stack of a megabyte (64 KB is usual), below the data: overrun, it
 * traps. */
#define WASM "--target=wasm32-wasi"
#define WASM_LINK "-Wl,--stack-first -Wl,-z,stack-size=1048576"

#define HALVES "+halves"

#define AMX (1u << TC_AMX_I8 | 1u << TC_AMX_BF16)

static const Cpu machines[] = {
#define MACHINE(name, flags, core, ...) {name, flags, &core, __VA_ARGS__},
#include "machines.def"
};
enum { MACHINES = sizeof machines / sizeof *machines };

/* Does the processor that the compiler runs on take vectors of 512 bits as two of 256?  AMD64
 * Architecture Programmer's Manual, volume 3, CPUID function 8000_001A: the width of its
 * arithmetic. */
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

#if defined(__x86_64__)
/* Products of bf16 in the time of one of f32, of the processor that the compiler runs on: AMD's
 * make two of a pair as fast as one (vdpbf16ps; Zen 4, Zen 5), Intel's take four times as long for
 * it as for a multiply-add (Sapphire Rapids: 112 GFLOP/s where f32 has 215). 0: it has no such
 * instruction. */
static double rate_of_bf16(int lanes)
{
    enum { AVX512_BF16 = 1u << 5 };
    unsigned a, b, c, d;
    if (lanes != 16 || !__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & AVX512_BF16))
        return 0;
    return __builtin_cpu_is("amd") ? 2 : 0.5;
}
#endif

/* "native": the processor that the compiler runs on. */
static Cpu native(void)
{
    Cpu m = {.name = "native", .flags = "-march=native", .core = &small, .prefer_ram = true};
#if defined(__x86_64__)
    m.core = &application, m.lanes = 4, m.registers = 16, m.prefer_ram = false;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        m.lanes = 8;
    /* tuned for AMD's processors, gcc reads a shared vector from memory for each of its uses: a
     * tile of 4 x 24 sums then loads 16 vectors for 12 products and not 7, and they load two in a
     * cycle, or one of 512 bits */
    const bool amd = __builtin_cpu_is("amd");
    if (amd)
        m.flags = "-march=native -mtune=generic";
    if (__builtin_cpu_supports("avx512f")) {
        m.flags = amd ? "-march=native -mtune=generic -mprefer-vector-width=512"
                      : "-march=native -mprefer-vector-width=512";
        m.lanes = 16, m.registers = 32;
    }
    m.dot = __builtin_cpu_supports("avx512vnni") && m.lanes == 16;
    m.dot_bf16 = rate_of_bf16(m.lanes);
    unsigned a, b, c, d = 0; /* compilers of these years do not know the names of these features */
    enum { AMX_BF16 = 1u << 22, AMX_TILE = 1u << 24, AMX_INT8 = 1u << 25, AVX_VNNI = 1u << 4 };
    if (m.lanes == 8 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
        m.dot = a & AVX_VNNI;
    const unsigned all = AMX_BF16 | AMX_TILE | AMX_INT8;
    if (m.lanes == 16 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & all) == all)
        m.units = AMX;
#elif defined(__aarch64__)
    m.flags = "-mcpu=native";
    m.core = &application, m.lanes = 4, m.registers = 32, m.prefer_ram = false;
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

/* Two vectors of operations a cycle, which are multiply-adds in a tile, though not all of the
 * time. */
void core_rates(Machine *m, int lanes)
{
    m->rate[UNIT_SCALAR] = 2;
    m->rate[UNIT_VECTOR] = 2 * lanes;
    m->rate[UNIT_TILE] = 3. * lanes;
}

/* Rates of cores of a kind.  Where two halves of a vector are multiplied one after the other, sums
 * have units beside: other operations take as long as elsewhere. */
static void machine_rates(Machine *m, bool halves, bool prefer_ram)
{
    /* AMX on bf16: a product of 16 x 16 x 32 in 16 cycles is 64 for each lane; loads of fragments
     * leave it less than half of the time */
    enum { MATRIX_PRODUCTS = 25 };
    const int lanes = m->lanes ? m->lanes : 1;
    m->rate[UNIT_SCALAR] = m->rate[UNIT_VECTOR] = 1;
    m->rate[UNIT_TILE] = m->dot ? 4 : 1;
    if (m->lanes)
        core_rates(m, lanes);
    m->rate[UNIT_TILE] /= m->lanes && halves ? 2 : 1;
    m->rate[UNIT_MATRIX] = MATRIX_PRODUCTS * lanes;
    m->byte = prefer_ram ? DEAR : 0;
}

void target_costs(Target *t, bool halves, bool prefer_ram)
{
    const Machine was = t->machine;
    t->machine = was.lanes ? application : small;
    t->machine.lanes = was.lanes;
    t->machine.registers = was.registers;
    t->machine.dot = was.dot;
    t->machine.dot_terms = was.dot_terms;
    t->machine.any_sign = was.any_sign;
    t->machine.pairs = was.pairs;
    t->machine.asks = was.asks;
    t->machine.tables = was.tables;
    t->machine.soft_floats = was.soft_floats;
    t->machine.dot_bf16 = was.dot_bf16;
    t->machine.dot_i16 = was.dot_i16;
    machine_rates(&t->machine, halves, prefer_ram);
}

static bool is_x86(const Cpu *m)
{
#if defined(__x86_64__)
    if (!strcmp(m->name, "native"))
        return true;
#endif
    static const char *const of_others[] = {"native", "armv", "cortex", "rv", "wasm"};
    bool x86 = m->lanes > 0;
    for (size_t i = 0; i < sizeof of_others / sizeof *of_others; i++)
        x86 &= strncmp(m->name, of_others[i], strlen(of_others[i])) != 0;
    return x86;
}

/* pmaddwd, of SSE2 and what came after, where there is no multiplication of bytes; WebAssembly's
 * dot_i16x8 is the same. */
static bool has_pairs(const Cpu *m)
{
    return (is_x86(m) || strstr(m->flags, "-msimd128")) && m->lanes && !m->dot;
}

/* A load widens bytes (pmovsxbw of SSE4.1): weights that are used once are not taken apart. */
static bool widens_bytes(const Cpu *m)
{
    return strcmp(m->name, "x86-64") != 0;
}

/* Products of pairs of i16 in the time of one of f32: with pmaddwd, and the additions behind it, 95
 * and 59 GMAC/s on a core of a Zen 4, in vectors of 256 bits; vpdpwssd, of all with VNNI,
 * multiplies and adds two in the time of one. */
static double rate_of_pairs(const Cpu *m)
{
    const double MADD = 1.6, VNNI = 2;
    return has_pairs(m) ? (widens_bytes(m) ? MADD : 0) : is_x86(m) && m->dot ? VNNI : 0;
}

/* Vectors of bytes are looked up in a table (igrt_table.h): AVX2, aarch64. */
static bool has_tables(const Cpu *m)
{
    bool arm64 = m->lanes && (!strncmp(m->name, "armv", 4) || !strncmp(m->name, "cortex", 6));
#if defined(__aarch64__)
    arm64 |= !strcmp(m->name, "native");
#endif
    return is_x86(m) ? m->lanes >= 8 : arm64;
}

/* Intel's cores with vectors of 512 bits: their own prefetchers stop at pages of 4 KB (an answer of
 * a 1B model in Q8_0, Granite Rapids: 10.7 tokens/s by them, 12.1 asked for). */
static bool asks_memory(const Cpu *m)
{
    return is_x86(m) && m->lanes == 16 && m->dot_bf16 <= 1;
}

/* By what the C compiler is told of it. */
static bool has_soft_floats(const Cpu *m)
{
    return m->name && (strstr(m->flags, "-mfloat-abi=soft") || strstr(m->flags, "-mabi=ilp32")) &&
           !strstr(m->flags, "-mabi=ilp32f");
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

/* ---- what is behind a name ------------------------------------------------------------------- */

/* What "native" knows of a machine besides its instructions, as far as it is not what the table
 * has: 0; third: -1. */
typedef struct {
    bool halves;
    double first, second, third, cache; /* bytes; third: 0 where there is no such level */
    double ways, line;
} Extras;

/* In the order in which a name has them: "x86-64-v4+halves+first48k+ways12+second2m+cache260m". */
static const struct {
    const char *word;
    size_t at;
    bool bytes;
} beside_words[] = {
    {"+first", offsetof(Extras, first), true}, {"+ways", offsetof(Extras, ways), false},
    {"+line", offsetof(Extras, line), false},  {"+second", offsetof(Extras, second), true},
    {"+third", offsetof(Extras, third), true}, {"+cache", offsetof(Extras, cache), true},
};
enum { BESIDE_WORDS = sizeof beside_words / sizeof *beside_words };
static const Extras as_in_table = {.third = -1};

/* What of the caches of this machine is not as the table says.  Of a third level, which cores
 * share, there is no more to one of them than the table says. */
static Extras beside_native(const Machine *core)
{
    const Caches c = native_caches();
    Extras b = as_in_table;
    b.halves = in_halves();
    b.cache = c.most;
    if (!core->level[0].bytes || !c.bytes[0] || !c.bytes[1])
        return b;
    b.first = c.bytes[0] != core->level[0].bytes ? c.bytes[0] : 0;
    b.second = c.bytes[1] != core->level[1].bytes ? c.bytes[1] : 0;
    b.third = c.bytes[2] < core->level[2].bytes ? c.bytes[2] : -1;
    b.ways = c.ways && c.ways != core->ways ? c.ways : 0;
    b.line = c.line && c.line != core->line ? c.line : 0;
    return b;
}

static void beside_print(StrBuf *sb, const Extras *b)
{
    enum { KILO = 1 << 10, MEGA = 1 << 20 };
    sb_puts(sb, b->halves ? HALVES : "");
    for (int i = 0; i < BESIDE_WORDS; i++) {
        double x, none;
        memcpy(&x, (const char *)b + beside_words[i].at, sizeof x);
        memcpy(&none, (const char *)&as_in_table + beside_words[i].at, sizeof none);
        if (x == none)
            continue;
        if (!beside_words[i].bytes)
            sb_printf(sb, "%s%.0f", beside_words[i].word, x);
        else if (fmod(x, MEGA) == 0 && x)
            sb_printf(sb, "%s%.0fm", beside_words[i].word, x / MEGA);
        else
            sb_printf(sb, "%s%.0fk", beside_words[i].word, x / KILO);
    }
}

/* The same read: *n is how many characters of the name are before it; false: it is no such name. */
static bool beside_read(const char *name, size_t *n, Extras *b)
{
    const char *at = name + strlen(name);
    *b = as_in_table;
    for (int i = 0; i < BESIDE_WORDS; i++) {
        const char *found = strstr(name, beside_words[i].word);
        at = found && found < at ? found : at;
    }
    const char *end = at;
    for (int i = 0; i < BESIDE_WORDS; i++) {
        const size_t word = strlen(beside_words[i].word);
        if (strncmp(end, beside_words[i].word, word) != 0)
            continue;
        end += word;
        if (*end < '0' || *end > '9')
            return false;
        char *next;
        double x = strtod(end, &next);
        if (beside_words[i].bytes) {
            if (*next != 'k' && *next != 'm')
                return false;
            x *= *next == 'm' ? 1 << 20 : 1 << 10;
            next++;
        }
        memcpy((char *)b + beside_words[i].at, &x, sizeof x);
        end = next;
    }
    *n = (size_t)(at - name);
    b->halves = *n > strlen(HALVES) && !strncmp(at - strlen(HALVES), HALVES, strlen(HALVES));
    *n -= b->halves ? strlen(HALVES) : 0;
    return !*end;
}

/* Loops are blocked for what a cache holds, where that is less than what they are blocked for
 * elsewhere. */
static void take_beside(Machine *m, const Extras *b)
{
    m->cache = b->cache;
    if (!m->level[0].bytes)
        return;
    if (b->first > 0)
        m->level[0].bytes = b->first;
    if (b->second > 0)
        m->level[1].bytes = b->second;
    if (b->third > 0)
        m->level[2].bytes = b->third;
    if (b->third == 0) { /* behind the second is memory */
        m->level[2] = m->level[3];
        m->level[3] = (Level){0};
    }
    m->near = fmin(m->near, m->level[0].bytes);
    m->far = fmin(m->far, m->level[1].bytes);
    if (b->ways > 0)
        m->ways = (int)b->ways;
    if (b->line > 0)
        m->line = (int)b->line;
}

/* What "native" is here, as a name that says the same on every machine:
 * "x86-64-v4+vnni+halves+cache32m".  NULL: it has none. */
const char *native_name(Arena *a)
{
    const Cpu m = native();
    for (int i = 0; i < MACHINES; i++) {
        const Cpu *x = &machines[i];
        const bool same = x->lanes == m.lanes && x->registers == m.registers && x->dot == m.dot &&
                          x->units == m.units && x->any_sign == m.any_sign &&
                          x->prefer_ram == m.prefer_ram && has_pairs(x) == has_pairs(&m) &&
                          (x->dot_bf16 > 1) == (m.dot_bf16 > 1);
        if (!m.lanes || !same || !is_of_this_kind(x))
            continue;
        StrBuf sb = {0};
        const Extras beside = beside_native(m.core);
        sb_puts(&sb, x->name);
        beside_print(&sb, &beside);
        return sb_take(&sb, a);
    }
    return NULL;
}

/* Who builds for machines without an operating system, by how their names begin: the last one that
 * fits. */
static const struct {
    const char *name, *cc, *ar;
} bare[] = {
    {"cortex-m", "arm-none-eabi-gcc", "arm-none-eabi-ar"},
    {"cortex-r", "arm-none-eabi-gcc", "arm-none-eabi-ar"},
    {"rv32", "riscv64-unknown-elf-gcc", "riscv64-unknown-elf-ar"},
    {"esp32", "xtensa-esp32-elf-gcc", "xtensa-esp32-elf-ar"},
    {"esp32s", "xtensa-esp32s3-elf-gcc", "xtensa-esp32s3-elf-ar"},
    {"esp32c", "riscv32-esp-elf-gcc", "riscv32-esp-elf-ar"},
    {"esp32p", "riscv32-esp-elf-gcc", "riscv32-esp-elf-ar"},
};

bool target_tune(Target *t, const char *machine)
{
    Cpu m = {0};
    Extras beside;
    size_t n;
    if (!beside_read(machine, &n, &beside))
        return false;
    const bool here = !strcmp(machine, "native");
    if (here) {
        m = native();
        beside = beside_native(m.core);
    }
    for (int i = 0; i < MACHINES; i++)
        if (strlen(machines[i].name) == n && !strncmp(machine, machines[i].name, n))
            m = machines[i];
    t->flags = m.flags;
    for (size_t i = 0; i < sizeof bare / sizeof *bare; i++)
        if (!strncmp(machine, bare[i].name, strlen(bare[i].name)))
            t->bare = true, t->cc = bare[i].cc, t->ar = bare[i].ar;
    t->machine = m.core ? *m.core : small;
    t->machine.lanes = m.lanes;
    t->machine.registers = m.registers;
    t->machine.pairs = m.name && has_pairs(&m);
    t->machine.dot = m.dot || t->machine.pairs;
    t->machine.dot_terms = m.dot > 1 ? m.dot : 0;
    t->machine.any_sign = m.any_sign || t->machine.pairs;
    t->machine.units = m.units;
    t->machine.soft_floats = has_soft_floats(&m);
    t->machine.dot_bf16 = m.dot_bf16;
    t->machine.asks = m.name && asks_memory(&m);
    t->machine.tables = m.name && has_tables(&m);
    t->machine.dot_i16 = m.name ? rate_of_pairs(&m) : 0;
    t->wasm = !strncmp(machine, "wasm", 4);
    if (t->wasm) {
        t->cc = "clang";
        t->ar = "llvm-ar";
        t->link = WASM_LINK;
    }
    take_beside(&t->machine, &beside);
    machine_rates(&t->machine, beside.halves, m.prefer_ram);
    return m.name != NULL;
}
