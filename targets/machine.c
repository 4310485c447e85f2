/* machine.c - what a machine's vector registers are.  Named machines are in a table; "native" asks
 * the processor that the compiler runs on. */
#include <string.h>

#include "targets.h"

typedef struct {
    const char *name;
    int lanes, registers;
} Machine;
static const Machine machines[] = {
    {"x86-64", 4, 16},     {"x86-64-v2", 4, 16},  {"x86-64-v3", 8, 16}, {"x86-64-v4", 16, 32},
    {"armv8-a", 4, 32},    {"cortex-a53", 4, 32}, {"cortex-a72", 4, 32},
};

static Machine native(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return (Machine){"native", 16, 32};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (Machine){"native", 8, 16};
    return (Machine){"native", 4, 16};
#elif defined(__aarch64__)
    return (Machine){"native", 4, 32};
#else
    return (Machine){"native", 0, 0};
#endif
}

void target_tune(Target *t, const char *machine)
{
    Machine m = {0};
    if (!strcmp(machine, "native"))
        m = native();
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (!strcmp(machine, machines[i].name))
            m = machines[i];
    t->lanes = m.lanes;
    t->registers = m.registers;
}
