/* native_caches.c - what caches the processor has that the compiler runs on: by CPUID, else by
 * what Linux tells in /sys.
 *
 *     CPUID    Intel's function 4, AMD's 8000_001D: one form, a cache for each number from 0
 *     /sys     devices/system/cpu/cpu0/cache/index0: level, type, size ("32K"),
 *              ways_of_associativity, coherency_line_size
 *
 * With INGOT_SYS in the environment its folder is read in place of both, so that a test, or
 * whoever compiles for another machine, gives what /sys has there. Where cores differ, each level
 * is the largest one's: long runs are put there. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "targets.h"

enum { DATA = 1, UNIFIED = 3, MAX_CACHES = 8, MAX_CPUS = 1024 };

static void take_cache(Caches *c, int level, double bytes, int ways, int line)
{
    if (bytes <= 0)
        return;
    c->most = bytes > c->most ? bytes : c->most;
    if (level < 1 || level > CACHES || bytes <= c->bytes[level - 1])
        return;
    c->bytes[level - 1] = bytes;
    if (level == 1) {
        c->ways = ways;
        c->line = line;
    }
}

#if defined(__x86_64__)
static void ask_cpuid(Caches *found)
{
    const unsigned leaf = __builtin_cpu_is("amd") ? 0x8000001D : 4;
    unsigned a, b, c, d;
    for (unsigned i = 0; i < MAX_CACHES; i++) {
        if (!__get_cpuid_count(leaf, i, &a, &b, &c, &d) || !(a & 31))
            break;
        const int kind = (int)(a & 31), level = (int)(a >> 5 & 7), ways = (int)(b >> 22) + 1,
                  line = (int)(b & 4095) + 1;
        const double parts = (b >> 12 & 1023) + 1, sets = (double)c + 1;
        if (kind == DATA || kind == UNIFIED)
            take_cache(found, level, ways * parts * line * sets, ways, line);
    }
}
#endif

/* A file of a line, without its end; "": there is none. */
static const char *read_line(Arena *a, const char *path)
{
    char text[256] = "";
    FILE *f = fopen(path, "r");
    if (f && !fgets(text, sizeof text, f))
        *text = 0;
    if (f)
        fclose(f);
    text[strcspn(text, "\n")] = 0;
    return arena_strdup(a, text);
}

/* "32K" */
static double size_of(const char *text)
{
    char *end;
    const double n = strtod(text, &end);
    return *end == 'K' ? n * (1 << 10) : *end == 'M' ? n * (1 << 20) : n;
}

static bool read_cache(Caches *c, Arena *a, const char *folder)
{
    const char *level = read_line(a, arena_printf(a, "%s/level", folder)),
               *type = read_line(a, arena_printf(a, "%s/type", folder));
    if (!*level)
        return false;
    if (strcmp(type, "Instruction") != 0)
        take_cache(c, atoi(level), size_of(read_line(a, arena_printf(a, "%s/size", folder))),
                   atoi(read_line(a, arena_printf(a, "%s/ways_of_associativity", folder))),
                   atoi(read_line(a, arena_printf(a, "%s/coherency_line_size", folder))));
    return true;
}

static void read_sys(Caches *c, const char *sys)
{
    Arena *a = arena_new();
    for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
        int i = 0;
        while (i < MAX_CACHES &&
               read_cache(
                   c, a, arena_printf(a, "%s/devices/system/cpu/cpu%d/cache/index%d", sys, cpu, i)))
            i++;
        if (!i && cpu) /* some cores may be off, but not as many as there are */
            break;
    }
    arena_free(a);
}

/* "0-1,4": 3 */
static int count_list(const char *text)
{
    int n = 0;
    while (isdigit((unsigned char)*text)) {
        char *end;
        const long from = strtol(text, &end, 10),
                   to = *end == '-' ? strtol(end + 1, &end, 10) : from;
        n += to >= from && to - from < MAX_CPUS ? (int)(to - from) + 1 : 0;
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

Caches native_caches(void)
{
    Caches c = {0};
    Arena *a = arena_new();
    const char *told = getenv("INGOT_SYS"), *sys = told && *told ? told : "/sys";
#if defined(__x86_64__)
    if (sys != told)
        ask_cpuid(&c);
#endif
    if (c.most <= 0)
        read_sys(&c, sys);
    c.cores = count_list(read_line(a, arena_printf(a, "%s/devices/system/cpu/online", sys)));
    arena_free(a);
    return c;
}
