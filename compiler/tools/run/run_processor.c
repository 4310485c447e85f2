/* run_processor.c - whether what a compiler makes for a target runs on the processor of this
 * machine: the compiler tells what it takes for granted, as macros. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "run.h"

#include "igrt_cpu.c"

/* The bit of a feature by the name of its macro; 0, it is none. */
static uint64_t feature_of(const char *macro)
{
#define IGRT_X(id, name, text, from, reg, bit, state) {#text, UINT64_C(1) << IGRT_CPU_##id},
    static const struct {
        const char *macro;
        uint64_t bit;
    } all[] = {IGRT_CPU_LIST(IGRT_X){NULL, 0}};
#undef IGRT_X
    for (int i = 0; all[i].macro; i++)
        if (!strcmp(all[i].macro, macro))
            return all[i].bit;
    return 0;
}

bool compiles_for(Arena *a, const char *cc, const char *flags, const char **lacks)
{
    FILE *f = popen(arena_printf(a, "%s %s -dM -E -x c /dev/null 2>/dev/null", cc, flags), "r");
    char line[4096], macro[256];
    uint64_t needs = 0;
    bool emulated = false; /* -DIGRT_EMULATE_AMX */
    *lacks = NULL;
    if (!f)
        return false;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "#define %255s", macro) == 1) {
            needs |= feature_of(macro);
            emulated |= !strcmp(macro, "IGRT_EMULATE_AMX");
        }
    if (pclose(f))
        return false;
    static const char *const amx[] = {"__AMX_TILE__", "__AMX_INT8__", "__AMX_BF16__"};
    for (int i = 0; i < 3 && emulated; i++)
        needs &= ~feature_of(amx[i]);
    const uint64_t missing = igrt_cpu_lacks(needs);
    for (int bit = 0; bit < 64 && !*lacks && missing; bit++)
        if (missing >> bit & 1)
            *lacks = igrt_cpu_name(bit);
    return true;
}
