/*
 * igrt_hip.c - the HIP runtime API by dlopen. See igrt_hip.h.
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "igrt_hip.h"

#include <dlfcn.h>
#include <string.h>

#include "igrt_device.h"

/* From ROCm's header of the runtime API. */
enum {
    HIP_ERROR_OUT_OF_MEMORY = 2,
    HIP_ERROR_NO_DEVICE = 100,
    HIP_ERROR_NO_BINARY_FOR_GPU = 209,
    HIP_STREAM_NON_BLOCKING = 1,
    HIP_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1
};

static void *pointer(igrt_hip_mem at)
{
    return (void *)(uintptr_t)at;
}

static igrt_status check(igrt_hip *hip, int error)
{
    if (error == 0)
        return IGRT_OK;
    hip->error = error;
    return IGRT_ERR_DEVICE;
}

static igrt_status enter(igrt_hip *hip)
{
    return check(hip, hip->hipSetDevice(hip->device));
}

/* The name without a number is there where ROCm's headers are, the others where its programs are.
 */
static int load(igrt_hip *hip)
{
    static const char *const names[] = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                        "libamdhip64.so.5"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !hip->library; i++)
        hip->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!hip->library)
        return 0;
        /* memcpy: ISO C has no conversion from an object pointer to a function pointer */
#define IGRT_X(name, parameters)                    \
    {                                               \
        void *symbol = dlsym(hip->library, #name);  \
        if (!symbol)                                \
            return 0;                               \
        memcpy(&hip->name, &symbol, sizeof symbol); \
    }
    IGRT_HIP_FUNCTIONS(IGRT_X)
#undef IGRT_X
    return 1;
}

static int find_device(igrt_hip *hip, const char *which)
{
    int n = 0, e = hip->hipGetDeviceCount(&n);
    for (int i = 0; i < n && !e; i++) {
        unsigned char uuid[16] = {0};
        e = hip->hipDeviceGetUuid(uuid, i);
        if (!e && igrt_is_device(which, i, uuid)) {
            hip->device = i;
            return 0;
        }
    }
    return e ? e : HIP_ERROR_NO_DEVICE;
}

igrt_status igrt_hip_open(igrt_hip *hip, void *stream, const char *which)
{
    memset(hip, 0, sizeof *hip);
    if (!load(hip)) {
        igrt_hip_close(hip);
        return IGRT_ERR_DEVICE;
    }
    hip->stream = stream;
    int e = hip->hipInit(0);
    if (!e)
        e = stream && !(which && *which) ? hip->hipGetDevice(&hip->device)
                                         : find_device(hip, which);
    if (!e)
        e = hip->hipSetDevice(hip->device);
    if (!e && !stream) {
        e = hip->hipStreamCreateWithFlags(&hip->stream, HIP_STREAM_NON_BLOCKING);
        hip->owns_stream = e == 0;
    }
    if (!e)
        return IGRT_OK;
    igrt_hip_close(hip);
    return check(hip, e);
}

void igrt_hip_close(igrt_hip *hip)
{
    if (hip->begin)
        hip->hipEventDestroy(hip->begin);
    if (hip->end)
        hip->hipEventDestroy(hip->end);
    if (hip->owns_stream)
        hip->hipStreamDestroy(hip->stream);
    /* the library stays: the runtime leaves threads behind */
    memset(hip, 0, sizeof *hip);
}

const char *igrt_hip_why(const igrt_hip *hip)
{
    switch (hip->error) {
    case 0: return "there is no HIP runtime (libamdhip64.so), or one too old";
    case HIP_ERROR_OUT_OF_MEMORY: return "the GPU has too little memory free";
    case HIP_ERROR_NO_DEVICE: return "there is no GPU, or not the one that was asked for";
    case HIP_ERROR_NO_BINARY_FOR_GPU: return "the kernels are not compiled for this GPU (--target)";
    default: return "a call of the HIP runtime failed";
    }
}

igrt_status igrt_hip_module(igrt_hip *hip, const void *image, void **module)
{
    *module = NULL;
    if (enter(hip))
        return IGRT_ERR_DEVICE;
    hip->error = hip->hipModuleLoadData(module, image);
    if (!hip->error)
        return IGRT_OK;
    *module = NULL;
    return IGRT_ERR_BUILD;
}

igrt_status igrt_hip_kernel(igrt_hip *hip, void *module, const char *name, void **kernel)
{
    *kernel = NULL;
    return enter(hip) ? IGRT_ERR_DEVICE
                      : check(hip, hip->hipModuleGetFunction(kernel, module, name));
}

igrt_status igrt_hip_buffer(igrt_hip *hip, size_t bytes, const void *data, igrt_hip_mem *buffer)
{
    void *memory = NULL;
    *buffer = 0;
    if (enter(hip))
        return IGRT_ERR_DEVICE;
    int e = hip->hipMalloc(&memory, bytes ? bytes : 1);
    if (e)
        return check(hip, e);
    *buffer = (igrt_hip_mem)(uintptr_t)memory;
    igrt_status status = data ? igrt_hip_write(hip, *buffer, data, bytes) : IGRT_OK;
    if (status == IGRT_OK && data && bytes)
        status = igrt_hip_finish(hip);
    if (status != IGRT_OK) {
        hip->hipFree(memory);
        *buffer = 0;
    }
    return status;
}

/* ---- what is enqueued -------------------------------------------------------------------- */

igrt_status igrt_hip_launch(igrt_hip *hip, void *kernel, unsigned grid, unsigned block,
                            unsigned shared_bytes, void **args)
{
    if (grid == 0)
        return IGRT_OK;
    return enter(hip)
               ? IGRT_ERR_DEVICE
               : check(hip, hip->hipModuleLaunchKernel(kernel, grid, 1, 1, block, 1, 1,
                                                       shared_bytes, hip->stream, args, NULL));
}

igrt_status igrt_hip_write(igrt_hip *hip, igrt_hip_mem to, const void *data, size_t bytes)
{
    void *from = (void *)(uintptr_t)data; /* it has no const there */
    if (bytes == 0)
        return IGRT_OK;
    return enter(hip) ? IGRT_ERR_DEVICE
                      : check(hip, hip->hipMemcpyHtoDAsync(pointer(to), from, bytes, hip->stream));
}

igrt_status igrt_hip_read(igrt_hip *hip, igrt_hip_mem from, void *data, size_t bytes)
{
    if (bytes == 0)
        return IGRT_OK;
    return enter(hip)
               ? IGRT_ERR_DEVICE
               : check(hip, hip->hipMemcpyDtoHAsync(data, pointer(from), bytes, hip->stream));
}

igrt_status igrt_hip_copy(igrt_hip *hip, igrt_hip_mem from, igrt_hip_mem to, size_t bytes)
{
    if (bytes == 0)
        return IGRT_OK;
    return enter(hip) ? IGRT_ERR_DEVICE
                      : check(hip, hip->hipMemcpyDtoDAsync(pointer(to), pointer(from), bytes,
                                                           hip->stream));
}

igrt_status igrt_hip_zero(igrt_hip *hip, igrt_hip_mem to, size_t bytes)
{
    if (bytes == 0)
        return IGRT_OK;
    return enter(hip) ? IGRT_ERR_DEVICE
                      : check(hip, hip->hipMemsetD8Async(pointer(to), 0, bytes, hip->stream));
}

igrt_status igrt_hip_finish(igrt_hip *hip)
{
    return enter(hip) ? IGRT_ERR_DEVICE : check(hip, hip->hipStreamSynchronize(hip->stream));
}

/* ---- time -------------------------------------------------------------------------------- */

igrt_status igrt_hip_time_begin(igrt_hip *hip)
{
    if (enter(hip))
        return IGRT_ERR_DEVICE;
    int e = hip->begin ? 0 : hip->hipEventCreateWithFlags(&hip->begin, 0);
    if (!e && !hip->end)
        e = hip->hipEventCreateWithFlags(&hip->end, 0);
    return check(hip, e ? e : hip->hipEventRecord(hip->begin, hip->stream));
}

igrt_status igrt_hip_time_end(igrt_hip *hip, uint64_t *nanoseconds)
{
    float ms = 0;
    *nanoseconds = 0;
    if (enter(hip))
        return IGRT_ERR_DEVICE;
    int e = hip->hipEventRecord(hip->end, hip->stream);
    if (!e)
        e = hip->hipEventSynchronize(hip->end);
    if (!e)
        e = hip->hipEventElapsedTime(&ms, hip->begin, hip->end);
    if (!e && ms > 0)
        *nanoseconds = (uint64_t)((double)ms * 1e6);
    return check(hip, e);
}

/* ---- graphs ------------------------------------------------------------------------------ */

igrt_status igrt_hip_capture_begin(igrt_hip *hip, igrt_hip_graph *graph)
{
    if (graph->branches || enter(hip))
        return IGRT_ERR_DEVICE;
    const int e = hip->hipStreamBeginCapture(hip->stream, HIP_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    hip->captures = e ? NULL : graph;
    return check(hip, e);
}

igrt_status igrt_hip_capture_end(igrt_hip *hip)
{
    void *recorded = NULL, *node = NULL;
    int why = 0;
    igrt_hip_graph *const graph = hip->captures;
    hip->captures = NULL;
    if (enter(hip))
        return IGRT_ERR_DEVICE;
    int e = hip->hipStreamEndCapture(hip->stream, &recorded);
    if (e || !graph->ready || hip->hipGraphExecUpdate(graph->ready, recorded, &node, &why)) {
        igrt_hip_free_graph(hip, graph);
        if (!e)
            e = hip->hipGraphInstantiate(&graph->ready, recorded, NULL, NULL, 0);
        if (e)
            graph->ready = NULL;
    }
    if (recorded)
        hip->hipGraphDestroy(recorded);
    return check(hip, e);
}

igrt_status igrt_hip_replay(igrt_hip *hip, const igrt_hip_graph *graph)
{
    return enter(hip) ? IGRT_ERR_DEVICE
                      : check(hip, hip->hipGraphLaunch(graph->ready, hip->stream));
}

void igrt_hip_free_buffer(igrt_hip *hip, igrt_hip_mem buffer)
{
    if (buffer && enter(hip) == IGRT_OK)
        hip->hipFree(pointer(buffer));
}

void igrt_hip_free_module(igrt_hip *hip, void *module)
{
    if (module && enter(hip) == IGRT_OK)
        hip->hipModuleUnload(module);
}

void igrt_hip_free_graph(igrt_hip *hip, igrt_hip_graph *graph)
{
    if (graph->ready && enter(hip) == IGRT_OK)
        hip->hipGraphExecDestroy(graph->ready);
    graph->ready = NULL;
}
