/* hip_stub.c - a libamdhip64.so that writes down what it is asked, a line a call, to $HIP_STUB_LOG,
 * and has the driver of CUDA's that it is linked with do it: cuda_stub.c, which does nothing, or
 * tests/emulator, which runs the kernels. $HIP_STUB_FAIL names a call that fails: always, or the
 * time that $HIP_STUB_AT says, from 1; $HIP_STUB_ERROR is what it returns then. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int called(const char *name)
{
    static int times;
    const char *log = getenv("HIP_STUB_LOG"), *fail = getenv("HIP_STUB_FAIL"),
               *at = getenv("HIP_STUB_AT"), *error = getenv("HIP_STUB_ERROR");
    FILE *f = log ? fopen(log, "a") : NULL;
    if (f) {
        fprintf(f, "%s\n", name);
        fclose(f);
    }
    if (!fail || strcmp(fail, name) != 0 || (at && ++times != atoi(at)))
        return 0;
    return error ? atoi(error) : 999;
}

/* AS(hip's name, parameters; CUDA's name, its parameters, arguments): written down, then done. */
#define AS(name, parameters, by, declared, arguments) \
    int by declared;                                  \
    int name parameters;                              \
    int name parameters                               \
    {                                                 \
        const int e = called(#name);                  \
        return e ? e : by arguments;                  \
    }
/* The same of what lets go, which it does even where it fails. */
#define ENDS(name, parameters, by, declared, arguments)   \
    int by declared;                                      \
    int name parameters;                                  \
    int name parameters                                   \
    {                                                     \
        const int e = called(#name), done = by arguments; \
        return e ? e : done;                              \
    }
/* The same of what is asked before every call, or for a word only: not written down. */
#define QUIETLY(name, parameters, by, declared, arguments) \
    int by declared;                                       \
    int name parameters;                                   \
    int name parameters                                    \
    {                                                      \
        return by arguments;                               \
    }
#define AT(p) ((uint64_t)(uintptr_t)(p))

AS(hipInit, (unsigned flags), cuInit, (unsigned), (flags))
QUIETLY(hipGetDeviceCount, (int *n), cuDeviceGetCount, (int *), (n))
QUIETLY(hipDeviceGetUuid, (unsigned char *uuid, int device), cuDeviceGetUuid,
        (unsigned char *, int), (uuid, device))
AS(hipStreamCreateWithFlags, (void **stream, unsigned flags), cuStreamCreate, (void **, unsigned),
   (stream, flags))
ENDS(hipStreamDestroy, (void *stream), cuStreamDestroy_v2, (void *), (stream))
AS(hipStreamSynchronize, (void *stream), cuStreamSynchronize, (void *), (stream))
AS(hipModuleLoadData, (void **module, const void *image), cuModuleLoadDataEx,
   (void **, const void *, unsigned, int *, void **), (module, image, 0, NULL, NULL))
ENDS(hipModuleUnload, (void *module), cuModuleUnload, (void *), (module))
AS(hipModuleGetFunction, (void **kernel, void *module, const char *name), cuModuleGetFunction,
   (void **, void *, const char *), (kernel, module, name))
ENDS(hipFree, (void *memory), cuMemFree_v2, (uint64_t), (AT(memory)))
AS(hipMemcpyHtoDAsync, (void *to, void *from, size_t bytes, void *stream), cuMemcpyHtoDAsync_v2,
   (uint64_t, const void *, size_t, void *), (AT(to), from, bytes, stream))
AS(hipMemcpyDtoHAsync, (void *to, void *from, size_t bytes, void *stream), cuMemcpyDtoHAsync_v2,
   (void *, uint64_t, size_t, void *), (to, AT(from), bytes, stream))
AS(hipMemcpyDtoDAsync, (void *to, void *from, size_t bytes, void *stream), cuMemcpyDtoDAsync_v2,
   (uint64_t, uint64_t, size_t, void *), (AT(to), AT(from), bytes, stream))
AS(hipMemsetD8Async, (void *to, unsigned char value, size_t bytes, void *stream), cuMemsetD8Async,
   (uint64_t, unsigned char, size_t, void *), (AT(to), value, bytes, stream))
AS(hipModuleLaunchKernel,
   (void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
    unsigned shared, void *stream, void **args, void **extra),
   cuLaunchKernel,
   (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
    void **),
   (kernel, gx, gy, gz, bx, by, bz, shared, stream, args, extra))
AS(hipEventCreateWithFlags, (void **event, unsigned flags), cuEventCreate, (void **, unsigned),
   (event, flags))
AS(hipEventRecord, (void *event, void *stream), cuEventRecord, (void *, void *), (event, stream))
AS(hipEventSynchronize, (void *event), cuEventSynchronize, (void *), (event))
AS(hipEventElapsedTime, (float *ms, void *begin, void *end), cuEventElapsedTime,
   (float *, void *, void *), (ms, begin, end))
ENDS(hipEventDestroy, (void *event), cuEventDestroy_v2, (void *), (event))
AS(hipStreamBeginCapture, (void *stream, int mode), cuStreamBeginCapture_v2, (void *, int),
   (stream, mode))
AS(hipStreamEndCapture, (void *stream, void **graph), cuStreamEndCapture, (void *, void **),
   (stream, graph))
AS(hipGraphInstantiate, (void **ready, void *graph, void **node, char *log, size_t bytes),
   cuGraphInstantiateWithFlags, (void **, void *, uint64_t),
   (ready, graph, (uint64_t)(node || log || bytes)))
AS(hipGraphExecUpdate, (void *ready, void *graph, void **node, int *why), cuGraphExecUpdate,
   (void *, void *, void **, int *), (ready, graph, node, why))
AS(hipGraphLaunch, (void *ready, void *stream), cuGraphLaunch, (void *, void *), (ready, stream))
ENDS(hipGraphExecDestroy, (void *ready), cuGraphExecDestroy, (void *), (ready))
ENDS(hipGraphDestroy, (void *graph), cuGraphDestroy, (void *), (graph))

/* What the thread's calls are of. */
static _Thread_local int current;
int hipSetDevice(int device);
int hipSetDevice(int device)
{
    current = device;
    return 0;
}
int hipGetDevice(int *device);
int hipGetDevice(int *device)
{
    *device = current;
    return called("hipGetDevice");
}

int cuMemAlloc_v2(uint64_t *, size_t);
int hipMalloc(void **memory, size_t bytes);
int hipMalloc(void **memory, size_t bytes)
{
    uint64_t at = 0;
    const int e = called("hipMalloc"), done = e ? e : cuMemAlloc_v2(&at, bytes);
    *memory = (void *)(uintptr_t)at;
    return done;
}
