/* cuda_stub.c - a libcuda.so.1 that does nothing and writes down what it is asked, a line a call,
 * to $CUDA_STUB_LOG: what the host side of a bundle does, and in which order, without a GPU. Memory
 * is the host's. $CUDA_STUB_FAIL names a call that fails: always, or the time that $CUDA_STUB_AT
 * says, from 1; $CUDA_STUB_ERROR is what it returns then. With $CUDA_STUB_US, and loaded before all
 * others ($LD_PRELOAD), it keeps the clock: time is what graphs take, each kernel of them 1 to 16
 * times so many microseconds by a hash of its name. $CUDA_STUB_CRASH names a kernel that ends the
 * process when it is recorded. */
#define _GNU_SOURCE
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int fails(const char *name)
{
    static int times;
    const char *fail = getenv("CUDA_STUB_FAIL"), *at = getenv("CUDA_STUB_AT"),
               *error = getenv("CUDA_STUB_ERROR");
    if (!fail || strncmp(fail, name, strlen(fail)))
        return 0;
    return at && ++times != atoi(at) ? 0 : error ? atoi(error) : 999;
}

static int called(const char *name)
{
    const char *log = getenv("CUDA_STUB_LOG");
    FILE *f = log ? fopen(log, "a") : NULL;
    if (f) {
        fprintf(f, "%s\n", name);
        fclose(f);
    }
    return fails(name);
}

/* CALL(symbol, parameters): does nothing. */
#define CALL(symbol, ...)       \
    int symbol(__VA_ARGS__);    \
    int symbol(__VA_ARGS__)     \
    {                           \
        return called(#symbol); \
    }
/* MAKE: gives a handle through its first parameter. */
#define MAKE(symbol, ...)                  \
    int symbol(void **handle __VA_ARGS__); \
    int symbol(void **handle __VA_ARGS__)  \
    {                                      \
        static char some;                  \
        const int e = called(#symbol);     \
        *handle = e ? NULL : &some;        \
        return e;                          \
    }
#define AND ,

CALL(cuInit, unsigned flags)
/* NVRTC asks for it where it finds the driver, and does without. */
int cuGetExportTable(const void **table, const void *id);
int cuGetExportTable(const void **table, const void *id)
{
    *table = NULL;
    return 999;
}
int cuDeviceGet(int *device, int n);
int cuDeviceGet(int *device, int n)
{
    *device = n;
    return called("cuDeviceGet");
}
int cuDeviceGetCount(int *n);
int cuDeviceGetCount(int *n) /* not written down, as the next one */
{
    *n = 3;
    return 0;
}
int cuDeviceGetUuid(unsigned char *uuid, int device);
int cuDeviceGetUuid(unsigned char *uuid, int device) /* GPU-d0d1d2d3-d4.., where d is the device */
{
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(device << 4 | i);
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    static char some[16]; /* one of each device */
    char text[40];
    snprintf(text, sizeof text, "cuDevicePrimaryCtxRetain %d", device);
    *context = &some[device & 15];
    return called(text);
}
CALL(cuDevicePrimaryCtxRelease_v2, int device)
int cuCtxSetCurrent(void *context);
int cuCtxSetCurrent(void *context) /* before every call: not written down */
{
    (void)context;
    return 0;
}
MAKE(cuStreamCreate, AND unsigned flags)
CALL(cuStreamDestroy_v2, void *stream)
CALL(cuStreamSynchronize, void *stream)
MAKE(cuModuleLoadDataEx, AND const void *image AND unsigned n AND int *option AND void **value)
CALL(cuModuleUnload, void *module)
/* A kernel's handle is its name. */
int cuModuleGetFunction(void **handle, void *module, const char *name);
int cuModuleGetFunction(void **handle, void *module, const char *name)
{
    *handle = (void *)(uintptr_t)name;
    return called("cuModuleGetFunction");
}
CALL(cuFuncSetAttribute, void *function, int what, int value)
int cuFuncGetAttribute(int *value, int what, void *function);
int cuFuncGetAttribute(int *value, int what,
                       void *function) /* $CUDA_STUB_PTX: what it is compiled for */
{
    const char *ptx = getenv("CUDA_STUB_PTX");
    *value = what == 5 && ptx ? atoi(ptx) : 0;
    return 0;
}
int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    const char *driver = getenv("CUDA_STUB_DRIVER"); /* 12030: one of CUDA 12.3 */
    *version = driver ? atoi(driver) : 13000;
    return 0;
}

int cuMemAlloc_v2(uint64_t *memory, size_t bytes);
int cuMemAlloc_v2(uint64_t *memory, size_t bytes)
{
    char text[60]; /* written down with the bytes */
    snprintf(text, sizeof text, "cuMemAlloc_v2 %zu", bytes);
    const int e = called(text);
    *memory = e ? 0 : (uint64_t)(uintptr_t)malloc(bytes);
    return e;
}
int cuMemFree_v2(uint64_t memory);
int cuMemFree_v2(uint64_t memory)
{
    free((void *)(uintptr_t)memory);
    return called("cuMemFree_v2");
}
CALL(cuMemcpyHtoDAsync_v2, uint64_t to, const void *data, size_t bytes, void *stream)
CALL(cuMemcpyDtoHAsync_v2, void *data, uint64_t from, size_t bytes, void *stream)
CALL(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t bytes, void *stream)
CALL(cuMemsetD8Async, uint64_t to, unsigned char value, size_t bytes, void *stream)
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *memory, const uint64_t *extent,
                           const uint64_t *stride, const unsigned *box, const unsigned *step,
                           int interleave, int swizzle, int promotion, int fill);
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *memory, const uint64_t *extent,
                           const uint64_t *stride, const unsigned *box, const unsigned *step,
                           int interleave, int swizzle, int promotion, int fill)
{
    const int e = called("cuTensorMapEncodeTiled");
    return memory ? e : 1;
}
int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *memory,
                            const uint64_t *extent, const uint64_t *stride, const int *low,
                            const int *high, unsigned channels, unsigned positions,
                            const unsigned *step, int interleave, int swizzle, int promotion,
                            int fill);
int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *memory,
                            const uint64_t *extent, const uint64_t *stride, const int *low,
                            const int *high, unsigned channels, unsigned positions,
                            const unsigned *step, int interleave, int swizzle, int promotion,
                            int fill)
{
    const int e = called("cuTensorMapEncodeIm2col");
    return memory ? e : 1;
}
static double recorded_us; /* of what is recorded */
static void record(const char *kernel)
{
    const char *unit = getenv("CUDA_STUB_US"), *crash = getenv("CUDA_STUB_CRASH");
    unsigned hash = 2166136261u;
    for (const char *c = kernel; unit && *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    if (crash && !strcmp(kernel, crash))
        abort();
    recorded_us += unit ? ((hash >> 16) % 16 + 1) * atof(unit) : 0;
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **args, void **extra);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
    record(f);
    return called("cuLaunchKernel");
}
/* Written down as early if it may begin before what is enqueued ends. */
int cuLaunchKernelEx(const void *config, void *f, void **args, void **extra);
int cuLaunchKernelEx(const void *config, void *f, void **args, void **extra)
{
    const struct {
        unsigned grid[3], block[3], shared;
        void *stream;
        const int *attribute;
        unsigned n;
    } *c = config;
    const int early =
        c->grid[0] && c->block[0] && c->n == 1 && c->attribute[0] == 6 && c->attribute[2] == 1;
    record(f);
    return called(early ? "cuLaunchKernelEx early" : "cuLaunchKernelEx");
}
MAKE(cuEventCreate, AND unsigned flags)
CALL(cuEventRecord, void *event, void *stream)
CALL(cuEventSynchronize, void *event)
CALL(cuEventElapsedTime, float *ms, void *begin, void *end)
CALL(cuEventDestroy_v2, void *event)
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamBeginCapture_v2(void *stream, int mode)
{
    recorded_us = 0;
    return called("cuStreamBeginCapture_v2");
}
/* A node for each question: the bundle asks after each launch. Not written down. */
int cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph,
                              void *const **last, const void **edges, size_t *n);
int cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph,
                              void *const **last, const void **edges, size_t *n)
{
    static uintptr_t asked;
    static void *node[1];
    node[0] = (void *)++asked;
    *last = node;
    *n = 1;
    return fails("cuStreamGetCaptureInfo_v3");
}
/* Of what is recorded behind a condition: how deep, and the graphs, which nobody reads. */
static int inside;
int cuStreamBeginCaptureToGraph(void *stream, void *graph, void *const *last, const void *edges,
                                size_t n, int mode);
int cuStreamBeginCaptureToGraph(void *stream, void *graph, void *const *last, const void *edges,
                                size_t n, int mode)
{
    const int e = called("cuStreamBeginCaptureToGraph");
    inside += e == 0;
    return e;
}
CALL(cuStreamUpdateCaptureDependencies, void *stream, void **last, size_t n, unsigned flags)
int cuGraphConditionalHandleCreate(uint64_t *handle, void *graph, void *context, unsigned first,
                                   unsigned flags);
int cuGraphConditionalHandleCreate(uint64_t *handle, void *graph, void *context, unsigned first,
                                   unsigned flags)
{
    *handle = 1;
    return called("cuGraphConditionalHandleCreate");
}
/* Written down as what it is. */
int cuGraphAddNode(void **node, void *graph, void *const *last, size_t n, void *parameters);
int cuGraphAddNode(void **node, void *graph, void *const *last, size_t n, void *parameters)
{
    static void *body[1];
    struct {
        int node, reserved[3];
        uint64_t handle;
        int type;
        unsigned bodies;
        void **body;
    } *p = parameters;
    body[0] = *node = p;
    p->body = body;
    return p->node != 13 || p->bodies != 1 || n != 1 ? 1
           : p->type                                 ? called("cuGraphAddNode while")
                                                     : called("cuGraphAddNode if");
}
/* Written down with the node, and its groups. */
int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, const void *parameters);
int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, const void *parameters)
{
    const struct {
        void *kernel;
        unsigned grid[3];
    } *p = parameters;
    char text[80];
    snprintf(text, sizeof text, "cuGraphExecKernelNodeSetParams %d, %u groups",
             (int)(uintptr_t)node, p->grid[0]);
    return called(text);
}
int cuStreamEndCapture(void *stream, void **graph);
int cuStreamEndCapture(void *stream, void **graph)
{
    const int e = called(inside ? "cuStreamEndBody" : "cuStreamEndCapture");
    inside -= inside > 0;
    *graph = e ? NULL : stream;
    return e;
}
/* Its handle has what it takes. */
int cuGraphInstantiateWithFlags(void **handle, void *graph, uint64_t flags);
int cuGraphInstantiateWithFlags(void **handle, void *graph, uint64_t flags)
{
    double *us = malloc(sizeof *us);
    const int e = called("cuGraphInstantiateWithFlags");
    *us = recorded_us;
    *handle = e ? NULL : us;
    if (e)
        free(us);
    return e;
}
CALL(cuGraphExecUpdate, void *exec, void *graph, void **node, int *why)
static int64_t clock_ns; /* since the first question: it goes by what was launched */
int cuGraphLaunch(void *exec, void *stream);
int cuGraphLaunch(void *exec, void *stream)
{
    clock_ns += 1 + (exec ? (int64_t)(*(const double *)exec * 1e3) : 0);
    return called("cuGraphLaunch");
}
int clock_gettime(clockid_t which, struct timespec *t)
{
    static int64_t since;
    const long e = syscall(SYS_clock_gettime, which, t);
    if (e || which != CLOCK_MONOTONIC || !getenv("CUDA_STUB_US"))
        return (int)e;
    since = since ? since : t->tv_sec * 1000000000 + t->tv_nsec;
    t->tv_sec = (since + clock_ns) / 1000000000;
    t->tv_nsec = (since + clock_ns) % 1000000000;
    return 0;
}
int cuGraphExecDestroy(void *exec);
int cuGraphExecDestroy(void *exec)
{
    free(exec);
    return called("cuGraphExecDestroy");
}
CALL(cuGraphDestroy, void *graph)
