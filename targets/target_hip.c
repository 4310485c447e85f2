/* target_hip.c - HIP C++ for AMD's GPUs, as hipcc compiles it.
 *
 * Kernels are those of plain CUDA text: no matrix units, no copies that go on by themselves. The
 * text needs no header of HIP's (igrt_amd.h). */
#include <stdlib.h>
#include <string.h>

#include "language_cuda.h"
#include "targets.h"

typedef struct {
    const char *arch;
    int processors;
    double l2, l2_rate, rate;
} HipGpu;

static const HipGpu gpus[] = {
#define HIP(...) {__VA_ARGS__},
#include "hip_gpus.def"
};
enum { GPUS = sizeof gpus / sizeof *gpus };

static const char *hip_name(int i)
{
    return i < GPUS ? gpus[i].arch : NULL;
}

/* 0x90a of "gfx90a"; 0: it is no such name. */
static long hip_number(const char *arch)
{
    enum { FEWEST = 3, MOST = 4 };
    const char *digits = arch + 3;
    const size_t n = strspn(digits, "0123456789abcdef");
    return !strncmp(arch, "gfx", 3) && n >= FEWEST && n <= MOST && !digits[n]
               ? strtol(digits, NULL, 16)
               : 0;
}

static const HipGpu *figures_of(const char *arch)
{
    const HipGpu *best = &gpus[0];
    for (int i = 0; i < GPUS; i++)
        if (hip_number(gpus[i].arch) <= hip_number(arch))
            best = &gpus[i];
    return best;
}

/* Of "gfx90a+gfx1030" the figures of the one with the fewest processors. */
static const char *hip_tune(Target *t, Arena *a, const char *machine, ingot_status *status)
{
    const HipGpu *least = NULL;
    Machine *const m = &t->machine;
    for (const char *at = machine; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL) {
        const char *arch = arena_printf(a, "%.*s", (int)strcspn(at, "+"), at);
        if (!hip_number(arch)) {
            *status = INGOT_USAGE;
            return arena_printf(a, "hip has no GPU '%.40s': give an architecture, hip:%s", arch,
                                gpus[0].arch);
        }
        const HipGpu *g = figures_of(arch);
        if (!least || g->processors < least->processors)
            least = g;
    }
    const double share = (double)least->processors / m->processors;
    for (int i = 0; i < UNITS; i++)
        m->rate[i] *= share;
    m->processors = m->close = least->processors;
    m->cluster = 1;
    m->level[0] = (Level){least->l2 * (1 << 20), least->l2_rate};
    m->level[1] = (Level){0, least->rate};
    t->archs = machine;
    return NULL;
}

static void hip_file(StrBuf *sb, const Target *t, unsigned needs, const char *kernels)
{
    sb_puts(sb, runtime_text("igrt_amd.h"));
    c_file(sb, t, needs, kernels);
}

static const CWords words = {
    CUDA_WORDS("__HIP__"),
    .pragma = "",
};

static const Language hip_language = {
    CUDA_FAMILY,
    .file = hip_file,
    .suffix = ".hip",
    .c = &words,
};

extern const Target target_hip;
const Target target_hip = {
    .name = "hip",
    .language = &hip_language,
    .gpu = true,
    .machine = {GPU_FIGURES, .items = 1024, .shared = 64 << 10, .shared_static = 64 << 10,
                .subgroup = 32},
    .archs = "gfx90a+gfx1030+gfx1100",
    .runtime = "igrt_hip",
    .unrolls = true,
    .records = true,
    .branches = 8,
    .compile = hipcc_compile,
    .tune = hip_tune,
    .machine_name = hip_name,
};
