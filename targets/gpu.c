/* gpu.c - figures of GPUs of NVIDIA's, by their architecture or by name, or as the driver tells
 * them of a device. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "targets.h"
#include "tc.h"

/* A row of gpus.def. */
typedef struct {
    const char *name, *arch;
    int processors, close, cluster, shared, l2;
    double l2_rate, rate;
} GpuModel;

static const GpuModel gpus[] = {
#define GPU(...) {__VA_ARGS__},
#include "gpus.def"
};
enum { GPUS = sizeof gpus / sizeof *gpus };

const char *gpu_name(int i)
{
    return !i ? "native" : i <= GPUS ? gpus[i - 1].name : NULL;
}

static const GpuModel *find_gpu(const char *name, size_t n)
{
    for (int i = 0; i < GPUS; i++)
        if (strlen(gpus[i].name) == n && !strncmp(gpus[i].name, name, n))
            return &gpus[i];
    return NULL;
}

const char *gpu_arch(const char *name)
{
    const GpuModel *g = find_gpu(name, strlen(name));
    return g ? g->arch : name;
}

/* "sm_90a" and "compute_90": 90; any other: 0. */
static int number_of(const char *arch)
{
    return !strncmp(arch, "sm_", 3)        ? atoi(arch + 3)
           : !strncmp(arch, "compute_", 8) ? atoi(arch + 8)
                                           : 0;
}

/* Is it a GPU's name, or an architecture's: "sm_90", "sm_90a", "compute_90"? */
static bool is_gpu(const char *name)
{
    const char *digits = strchr(name, '_');
    const size_t n = digits ? strspn(digits + 1, "0123456789") : 0;
    return find_gpu(name, strlen(name)) ||
           (n > 1 && number_of(name) && (!digits[1 + n] || !digits[2 + n]));
}

const char *gpu_fault(Arena *a, const char *machine)
{
    for (const char *at = machine; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL) {
        const char *name = arena_printf(a, "%.*s", (int)strcspn(at, "+"), at), *near = NULL;
        int best = 3;
        if (is_gpu(name) || (at != machine && !strcmp(name, "ptx"))) /* text for later ones */
            continue;
        for (int i = 0; i < GPUS; i++)
            near = closer(name, gpus[i].name, near, &best);
        return near ? arena_printf(a,
                                   "cuda has no GPU '%.40s'; did you mean cuda:%s? `ingot targets` "
                                   "lists them",
                                   name, near)
                    : arena_printf(a,
                                   "cuda has no GPU '%.40s': give an architecture, as cuda:sm_90; "
                                   "`ingot targets` lists them",
                                   name);
    }
    return NULL;
}

/* The architecture whose figures one of such a number has: the last of them that is not later. */
static const GpuModel *class_of(int sm)
{
    const GpuModel *best = &gpus[0];
    for (int i = 0; i < GPUS; i++)
        if (!strcmp(gpus[i].name, gpus[i].arch) && number_of(gpus[i].arch) <= sm)
            best = &gpus[i];
    return best;
}

/* Matrix units that all of "sm_90a+sm_80" have, whose least number is that. */
static uint64_t units_of(const char *arch, int least)
{
    uint64_t units = 0;
    for (int i = 0; i < TC_COUNT; i++) {
        const char *feature = tc_units[i].feature;
        if (strncmp(feature, "sm_", 3) != 0)
            continue;
        const bool alone = strspn(feature + 3, "0123456789") != strlen(feature + 3);
        if (alone ? !strcmp(feature, arch) : number_of(feature) <= least)
            units |= UINT64_C(1) << i;
    }
    return units;
}

static void take_figures(Machine *m, const GpuModel *g)
{
    const int known = m->processors;
    for (int i = 0; i < UNITS; i++)
        m->rate[i] = m->rate[i] * g->processors / known;
    m->processors = g->processors;
    m->close = g->close;
    m->cluster = g->cluster;
    m->shared = g->shared << 10;
    m->level[0] = (Level){g->l2 << 20, g->l2_rate};
    m->level[1] = (Level){0, g->rate};
}

void gpu_tune(Machine *m, Arena *a, const char *machine)
{
    enum { DP4A = 61 }; /* products of bytes by fours */
    const char *arch = "";
    const GpuModel *least = NULL;
    int sm = INT_MAX;
    for (const char *at = machine; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL) {
        const char *name = arena_printf(a, "%.*s", (int)strcspn(at, "+"), at),
                   *own = gpu_arch(name);
        const GpuModel *known = find_gpu(name, strlen(name));
        arch = arena_printf(a, *arch ? "%s+%s" : "%s%s", arch, own);
        if (number_of(own) < sm) {
            sm = number_of(own);
            least = known ? known : class_of(sm);
        }
    }
    take_figures(m, least);
    m->units = units_of(arch, sm);
    m->dot = m->takes_fours = sm >= DP4A;
}

/* ---- the device that is here ----------------------------------------------------------------- */

/* "sm_89"; of an architecture whose units are its own alone the name that has them: "sm_90a". */
static const char *arch_of(Arena *a, const CudaDevice *d)
{
    const char *name = arena_printf(a, "sm_%d%d", d->major, d->minor);
    const char *own = arena_printf(a, "%sa", name);
    for (int i = 0; i < TC_COUNT; i++)
        if (!strcmp(tc_units[i].feature, own))
            return own;
    return name;
}

/* The GPU of gpus.def that has what the driver tells; NULL: none of them has. */
static const GpuModel *row_of(const CudaDevice *d, const char *arch)
{
    for (int i = 0; i < GPUS; i++)
        if (strcmp(gpus[i].name, gpus[i].arch) != 0 && !strcmp(gpus[i].arch, arch) &&
            gpus[i].processors == d->processors && gpus[i].shared == d->shared >> 10 &&
            gpus[i].l2 == d->l2 >> 20)
            return &gpus[i];
    return NULL;
}

const char *gpu_device_name(Arena *a, const CudaDevice *d)
{
    const GpuModel *g = row_of(d, arch_of(a, d));
    return g ? g->name : NULL;
}

/* What is told is the device's; what is not is that of its architecture, by processors where all
 * of them have a part in it. */
const char *gpu_device_tune(Machine *m, Arena *a, const CudaDevice *d)
{
    const char *arch = arch_of(a, d), *known = gpu_device_name(a, d);
    gpu_tune(m, a, known ? known : arch);
    if (known)
        return known;
    const double share = (double)d->processors / m->processors;
    /* of the bytes of a data sheet, by kernels of all kinds: an H100's 700 of 1700 */
    const double reached = 0.41;
    const bool clusters = d->clusters && m->cluster > 1;
    for (int i = 0; i < UNITS; i++)
        m->rate[i] *= share;
    m->close = clusters ? (int)(m->close * share) : d->processors;
    m->cluster = clusters ? m->cluster : 1;
    m->processors = d->processors;
    m->level[0] = (Level){d->l2 ? d->l2 : m->level[0].bytes, m->level[0].rate * share};
    m->level[1].rate = d->memory_khz && d->bus_bits && d->khz
                           ? reached * 2 * d->memory_khz * (d->bus_bits / 8.) / d->khz
                           : m->level[1].rate * share;
    m->shared = d->shared ? d->shared : m->shared;
    m->shared_static = d->shared_static ? d->shared_static : m->shared_static;
    m->file = d->file ? d->file : m->file;
    m->items = d->items && d->items < m->items ? d->items : m->items;
    return arch;
}

const char *gpu_native_name(Arena *a)
{
    CudaDevice d;
    return cuda_device(&d) ? gpu_device_name(a, &d) : NULL;
}
