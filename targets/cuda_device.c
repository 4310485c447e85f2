/* cuda_device.c - what the CUDA driver tells of the first device: for "cuda:native".
 *
 * The driver is opened with declarations of our own, as nvrtc.c does; no context is made. */
#include <dlfcn.h>
#include <string.h>

#include "targets.h"

/* CUdevice_attribute (cuda.h) */
enum {
    MAX_THREADS_PER_BLOCK = 1,
    MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CLOCK_RATE = 13,
    MULTIPROCESSOR_COUNT = 16,
    MEMORY_CLOCK_RATE = 36,
    GLOBAL_MEMORY_BUS_WIDTH = 37,
    L2_CACHE_SIZE = 38,
    COMPUTE_CAPABILITY_MAJOR = 75,
    COMPUTE_CAPABILITY_MINOR = 76,
    MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CLUSTER_LAUNCH = 120
};

typedef struct {
    int (*init)(unsigned flags);
    int (*count)(int *n);
    int (*get)(int *device, int n);
    int (*attribute)(int *value, int which, int device);
} CudaDriver;

static bool driver_open(CudaDriver *c)
{
    void *library =
        dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* stays open: it likes no other end */
    return library && library_find(library, "cuInit", &c->init) &&
           library_find(library, "cuDeviceGetCount", &c->count) &&
           library_find(library, "cuDeviceGet", &c->get) &&
           library_find(library, "cuDeviceGetAttribute", &c->attribute);
}

bool cuda_device(CudaDevice *d)
{
    CudaDriver c;
    int n = 0, device = 0, clusters = 0;
    const struct {
        int which, *value;
    } asked[] = {{COMPUTE_CAPABILITY_MAJOR, &d->major},
                 {COMPUTE_CAPABILITY_MINOR, &d->minor},
                 {MULTIPROCESSOR_COUNT, &d->processors},
                 {MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &d->shared},
                 {MAX_SHARED_MEMORY_PER_BLOCK, &d->shared_static},
                 {MAX_THREADS_PER_BLOCK, &d->items},
                 {MAX_REGISTERS_PER_MULTIPROCESSOR, &d->file},
                 {L2_CACHE_SIZE, &d->l2},
                 {CLOCK_RATE, &d->khz},
                 {MEMORY_CLOCK_RATE, &d->memory_khz},
                 {GLOBAL_MEMORY_BUS_WIDTH, &d->bus_bits},
                 {CLUSTER_LAUNCH, &clusters}};
    memset(d, 0, sizeof *d);
    if (!driver_open(&c) || c.init(0) || c.count(&n) || n < 1 || c.get(&device, 0))
        return false;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int value = 0;
        *asked[i].value = !c.attribute(&value, asked[i].which, device) && value > 0 ? value : 0;
    }
    d->clusters = clusters;
    return d->major > 0 && d->processors > 0;
}
