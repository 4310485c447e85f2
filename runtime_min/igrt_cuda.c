/*
 * igrt_cuda.c - the CUDA driver API by dlopen. See igrt_cuda.h.
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "igrt_cuda.h"

#include <dlfcn.h>
#include <string.h>

#include "igrt_device.h"

/* From cuda.h. */
enum {
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CU_STREAM_NON_BLOCKING = 1,
    CU_STREAM_WAIT_VALUE_GEQ = 0,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1,
    CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
    CU_GRAPH_COND_TYPE_IF = 0,
    CU_GRAPH_COND_TYPE_WHILE = 1,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
    CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
    CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2,
    CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
    CU_TENSOR_MAP_SWIZZLE_32B = 1, /* 64 follow, and 128: a box's lines are swizzled whole */
    CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0
};
enum {
    SHARED_DEFAULT = 48 * 1024,
    WAITS_SINCE = 90,
    DRIVER_RECORDS = 12030,
    BRANCHES_SINCE = 12040
};

/* From cuda.h: CUlaunchAttribute, CUlaunchConfig. */
typedef struct {
    int id;
    union {
        int is;
        unsigned char all[64];
        uint64_t aligned;
    } value;
} LaunchAttribute;
typedef struct {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    LaunchAttribute *attribute;
    unsigned n;
} LaunchConfig;

/* From cuda.h: CUDA_KERNEL_NODE_PARAMS. */
typedef struct {
    void *kernel;
    unsigned grid[3], block[3], shared_bytes;
    void **args, **extra;
    void *other_kernel, *context;
} KernelNode;

/* From cuda.h: CUgraphNodeParams, with CUDA_CONDITIONAL_NODE_PARAMS. */
typedef struct {
    int type, reserved[3];
    union {
        struct {
            uint64_t handle;
            int type;
            unsigned graphs;
            void **graph;
            void *context;
        } is;
        uint64_t all[29];
    } of;
    uint64_t zero;
} NodeParams;

/* What waits at the gate (time, below) goes on. */
static void open_gate(igrt_cu *cu)
{
    if (cu->gate)
        *cu->gate = cu->gate_value;
}

/* After an error nothing is left waiting there. */
static igrt_status check(igrt_cu *cu, int error)
{
    if (error == 0)
        return IGRT_OK;
    open_gate(cu);
    cu->error = error;
    return IGRT_ERR_DEVICE;
}

static igrt_status enter(igrt_cu *cu)
{
    return check(cu, cu->cuCtxSetCurrent(cu->context));
}

static int load(igrt_cu *cu)
{
    cu->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cu->library)
        cu->library = dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
    if (!cu->library)
        return 0;
        /* memcpy: ISO C has no conversion from an object pointer to a function pointer */
#define IGRT_X(name, text, parameters)             \
    {                                              \
        void *symbol = dlsym(cu->library, text);   \
        if (!symbol)                               \
            return 0;                              \
        memcpy(&cu->name, &symbol, sizeof symbol); \
    }
    IGRT_CU_FUNCTIONS(IGRT_X)
#undef IGRT_X
#define IGRT_X(name, text, parameters)                 \
    {                                                  \
        void *symbol = dlsym(cu->library, text);       \
        if (symbol)                                    \
            memcpy(&cu->name, &symbol, sizeof symbol); \
    }
    IGRT_CU_NEWER(IGRT_X)
#undef IGRT_X
    return 1;
}

static int find_device(igrt_cu *cu, const char *which)
{
    int n = 0, e = cu->cuDeviceGetCount(&n);
    for (int i = 0; i < n && !e; i++) {
        unsigned char uuid[16] = {0};
        e = cu->cuDeviceGet(&cu->device, i);
        if (!e)
            e = cu->cuDeviceGetUuid(uuid, cu->device);
        if (!e && igrt_is_device(which, i, uuid))
            return 0;
    }
    return e ? e : CUDA_ERROR_NO_DEVICE;
}

static igrt_status take_context(igrt_cu *cu, void *context, const char *which)
{
    int e = cu->cuInit(0);
    cu->context = context;
    if (!e && !context) {
        e = find_device(cu, which);
        if (!e)
            e = cu->cuDevicePrimaryCtxRetain(&cu->context, cu->device);
        cu->owns_context = e == 0;
    }
    return e ? check(cu, e) : enter(cu);
}

igrt_status igrt_cu_open(igrt_cu *cu, void *context, void *stream, const char *which)
{
    memset(cu, 0, sizeof *cu);
    igrt_status status = load(cu) ? take_context(cu, context, which) : IGRT_ERR_DEVICE;
    cu->stream = stream;
    if (status == IGRT_OK && !stream) {
        status = check(cu, cu->cuStreamCreate(&cu->stream, CU_STREAM_NON_BLOCKING));
        cu->owns_stream = status == IGRT_OK;
    }
    if (status == IGRT_OK && cu->cuLaunchKernelEx) {
        int driver = 0;
        cu->early = !cu->cuDriverGetVersion(&driver) && driver >= DRIVER_RECORDS;
    }
    if (status != IGRT_OK) {
        const int error = cu->error;
        igrt_cu_close(cu);
        cu->error = error;
    }
    return status;
}

const char *igrt_cu_why(const igrt_cu *cu)
{
    switch (cu->error) {
    case 0: return "there is no CUDA driver (libcuda.so.1), or one too old";
    case CUDA_ERROR_OUT_OF_MEMORY: return "the GPU has too little memory free";
    case CUDA_ERROR_NO_DEVICE: return "there is no GPU, or not the one that was asked for";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        return "the kernels are not compiled for this GPU (--target)";
    default: return "a call of the CUDA driver failed";
    }
}

/* ---- time -------------------------------------------------------------------------------- */

/* Where the driver has no such waits, or the device no such memory, times have the host's share in
 * them. */
static void make_gate(igrt_cu *cu)
{
    void *word = NULL;
    if (cu->gate || !cu->cuMemHostAlloc || !cu->cuMemHostGetDevicePointer || !cu->cuMemFreeHost ||
        !cu->cuStreamWaitValue32 ||
        cu->cuMemHostAlloc(&word, sizeof *cu->gate, CU_MEMHOSTALLOC_DEVICEMAP))
        return;
    if (cu->cuMemHostGetDevicePointer(&cu->gate_at, word, 0)) {
        cu->cuMemFreeHost(word);
        return;
    }
    cu->gate = word;
    *cu->gate = cu->gate_value = 0;
}

/* Before the first of what is timed. All that might wait for the device opens the gate first. */
static int begin_time(igrt_cu *cu)
{
    if (!cu->begins)
        return 0;
    cu->begins = 0;
    open_gate(cu);
    if (cu->gate && cu->cuStreamWaitValue32(cu->stream, cu->gate_at, cu->gate_value + 1,
                                            CU_STREAM_WAIT_VALUE_GEQ) == 0)
        cu->gate_value++;
    return cu->cuEventRecord(cu->begin, cu->stream);
}

void igrt_cu_close(igrt_cu *cu)
{
    if (cu->context)
        cu->cuCtxSetCurrent(cu->context);
    if (cu->gate) {
        open_gate(cu);
        cu->cuStreamSynchronize(cu->stream);
        cu->cuMemFreeHost((void *)(uintptr_t)cu->gate);
    }
    if (cu->begin)
        cu->cuEventDestroy(cu->begin);
    if (cu->end)
        cu->cuEventDestroy(cu->end);
    if (cu->branching)
        cu->cuModuleUnload(cu->branching);
    if (cu->owns_stream)
        cu->cuStreamDestroy(cu->stream);
    if (cu->owns_context)
        cu->cuDevicePrimaryCtxRelease(cu->device);
    /* the library stays: the driver leaves threads behind */
    memset(cu, 0, sizeof *cu);
}

igrt_status igrt_cu_module(igrt_cu *cu, const void *image, void **module, char *log,
                           size_t log_bytes)
{
    int option[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *value[2] = {log, (void *)(uintptr_t)log_bytes};
    const int with_log = log && log_bytes;
    *module = NULL;
    if (with_log)
        log[0] = 0;
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    const int e = cu->cuModuleLoadDataEx(module, image, with_log ? 2 : 0, option, value);
    if (e == 0)
        return IGRT_OK;
    if (with_log)
        log[log_bytes - 1] = 0;
    *module = NULL;
    cu->error = e;
    return IGRT_ERR_BUILD;
}

/* Does the kernel wait for those before it, and can the driver begin it before they have ended? */
static int waits(igrt_cu *cu, void *kernel)
{
    int compiled = 0;
    return cu->early && !cu->cuFuncGetAttribute(&compiled, CU_FUNC_ATTRIBUTE_PTX_VERSION, kernel) &&
           compiled >= WAITS_SINCE;
}

igrt_status igrt_cu_kernel(igrt_cu *cu, void *module, const char *name, unsigned shared_bytes,
                           void **kernel)
{
    *kernel = NULL;
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    int e = cu->cuModuleGetFunction(kernel, module, name);
    if (!e && shared_bytes > SHARED_DEFAULT)
        e = cu->cuFuncSetAttribute(*kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   (int)shared_bytes);
    if (!e)
        cu->overlaps = waits(cu, *kernel);
    return check(cu, e);
}

static const int map_type[] = {[1] = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                               [2] = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                               [4] = CU_TENSOR_MAP_DATA_TYPE_UINT32};

igrt_status igrt_cu_make_map(igrt_cu *cu, igrt_cu_map *map, igrt_cu_ptr memory, int bytes, int rank,
                             const uint64_t *extent, const uint64_t *stride, const uint64_t *box)
{
    const unsigned step[5] = {1, 1, 1, 1, 1};
    unsigned size[5];
    if (!cu->cuTensorMapEncodeTiled || rank < 2 || rank > 5)
        return IGRT_ERR_DEVICE;
    for (int i = 0; i < rank; i++)
        size[i] = (unsigned)box[i];
    return check(cu, cu->cuTensorMapEncodeTiled(
                         map->word, map_type[bytes], (unsigned)rank, (void *)(uintptr_t)memory,
                         extent, stride + 1, size, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         CU_TENSOR_MAP_SWIZZLE_32B + bytes * (int)box[0] / 64,
                         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

igrt_status igrt_cu_make_window_map(igrt_cu *cu, igrt_cu_map *map, igrt_cu_ptr memory, int bytes,
                                    int rank, const uint64_t *extent, const uint64_t *stride,
                                    const uint64_t *box, const int *low, const int *high,
                                    const int *step)
{
    const unsigned steps[5] = {1, (unsigned)step[0], rank > 3 ? (unsigned)step[1] : 1,
                               rank > 4 ? (unsigned)step[2] : 1, 1};
    if (!cu->cuTensorMapEncodeIm2col || rank < 3 || rank > 5)
        return IGRT_ERR_DEVICE;
    return check(cu, cu->cuTensorMapEncodeIm2col(
                         map->word, map_type[bytes], (unsigned)rank, (void *)(uintptr_t)memory,
                         extent, stride + 1, low, high, (unsigned)box[0], (unsigned)box[1], steps,
                         CU_TENSOR_MAP_INTERLEAVE_NONE,
                         CU_TENSOR_MAP_SWIZZLE_32B + bytes * (int)box[0] / 64,
                         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

igrt_status igrt_cu_buffer(igrt_cu *cu, size_t bytes, const void *data, igrt_cu_ptr *buffer)
{
    *buffer = 0;
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    open_gate(cu);
    int e = cu->cuMemAlloc(buffer, bytes ? bytes : 1);
    if (!e && data && bytes) {
        e = cu->cuMemcpyHtoDAsync(*buffer, data, bytes, cu->stream);
        if (!e)
            e = cu->cuStreamSynchronize(cu->stream);
        if (e) {
            cu->cuMemFree(*buffer);
            *buffer = 0;
        }
    }
    return check(cu, e);
}

/* ---- launches ---------------------------------------------------------------------------- */

/* The kernel that the capture has last: what the stream's next one would wait for. */
static void note_node(igrt_cu *cu)
{
    void *const *last = NULL;
    const void *edges = NULL;
    size_t n = 0;
    int capturing = 0;
    igrt_cu_graph *const graph = cu->captures;
    if (!graph || graph->ready || cu->at < 0)
        return; /* those of the first capture are what an update speaks of */
    if (cu->at == graph->nodes || !cu->cuStreamGetCaptureInfo ||
        cu->cuStreamGetCaptureInfo(cu->stream, &capturing, NULL, NULL, &last, &edges, &n) || n != 1)
        cu->at = -1;
    else
        graph->node[cu->at++] = last[0];
}

static void update_node(igrt_cu *cu, void *kernel, const unsigned grid[3], const unsigned block[3],
                        unsigned shared_bytes, void **args)
{
    const KernelNode to = {kernel,
                           {grid[0], grid[1], grid[2]},
                           {block[0], block[1], block[2]},
                           shared_bytes,
                           args,
                           NULL,
                           NULL,
                           NULL};
    const igrt_cu_graph *const graph = cu->updates;
    const int known = cu->at >= 0 && cu->at < graph->nodes &&
                      !cu->cuGraphExecKernelNodeSetParams(graph->ready, graph->node[cu->at], &to);
    cu->at = known ? cu->at + 1 : -1;
}

/* A copy, or a kernel without groups: no update knows it, and no kernel may begin beside it. */
static igrt_status no_kernel(igrt_cu *cu)
{
    cu->behind = 1;
    cu->at = -1;
    return IGRT_OK;
}

igrt_status igrt_cu_launch(igrt_cu *cu, void *kernel, const unsigned grid[3],
                           const unsigned block[3], unsigned shared_bytes, void **args)
{
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0)
        return no_kernel(cu);
    if (cu->updates) {
        update_node(cu, kernel, grid, block, shared_bytes, args);
        return IGRT_OK;
    }
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    int e = begin_time(cu);
    if (!e && cu->overlaps && !cu->behind) {
        LaunchAttribute early = {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, {1}};
        const LaunchConfig how = {{grid[0], grid[1], grid[2]},
                                  {block[0], block[1], block[2]},
                                  shared_bytes,
                                  cu->stream,
                                  &early,
                                  1};
        e = cu->cuLaunchKernelEx(&how, kernel, args, NULL);
    } else if (!e) {
        e = cu->cuLaunchKernel(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                               shared_bytes, cu->stream, args, NULL);
    }
    cu->behind = 0;
    note_node(cu);
    return check(cu, e);
}

igrt_status igrt_cu_write(igrt_cu *cu, igrt_cu_ptr to, const void *data, size_t bytes)
{
    if (bytes == 0)
        return IGRT_OK;
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    open_gate(cu);
    return check(cu, cu->cuMemcpyHtoDAsync(to, data, bytes, cu->stream));
}

igrt_status igrt_cu_read(igrt_cu *cu, igrt_cu_ptr from, void *data, size_t bytes)
{
    if (bytes == 0)
        return IGRT_OK;
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    open_gate(cu);
    return check(cu, cu->cuMemcpyDtoHAsync(data, from, bytes, cu->stream));
}

igrt_status igrt_cu_copy(igrt_cu *cu, igrt_cu_ptr from, igrt_cu_ptr to, size_t bytes)
{
    if (bytes == 0 || cu->updates || (cu->captures && (!from || !to)))
        return no_kernel(cu);
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    int e = begin_time(cu);
    if (!e)
        e = cu->cuMemcpyDtoDAsync(to, from, bytes, cu->stream);
    return check(cu, e);
}

igrt_status igrt_cu_zero(igrt_cu *cu, igrt_cu_ptr to, size_t bytes)
{
    if (bytes == 0 || cu->updates)
        return no_kernel(cu);
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    int e = begin_time(cu);
    if (!e)
        e = cu->cuMemsetD8Async(to, 0, bytes, cu->stream);
    return check(cu, e);
}

igrt_status igrt_cu_finish(igrt_cu *cu)
{
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    open_gate(cu);
    cu->timed = cu->begin != NULL;
    return check(cu, cu->cuStreamSynchronize(cu->stream));
}

igrt_status igrt_cu_time_begin(igrt_cu *cu)
{
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    int e = cu->begin ? 0 : cu->cuEventCreate(&cu->begin, 0);
    if (!e && !cu->end)
        e = cu->cuEventCreate(&cu->end, 0);
    if (!e && cu->timed)
        make_gate(cu);
    cu->begins = e == 0;
    return check(cu, e);
}

igrt_status igrt_cu_time_end(igrt_cu *cu, uint64_t *nanoseconds)
{
    float ms = 0;
    *nanoseconds = 0;
    if (cu->begins) { /* the device had nothing to do */
        cu->begins = 0;
        return IGRT_OK;
    }
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    int e = cu->cuEventRecord(cu->end, cu->stream);
    open_gate(cu);
    if (!e)
        e = cu->cuEventSynchronize(cu->end);
    if (!e)
        e = cu->cuEventElapsedTime(&ms, cu->begin, cu->end);
    if (!e && ms > 0)
        *nanoseconds = (uint64_t)((double)ms * 1e6);
    return check(cu, e);
}

/* ---- branches ---------------------------------------------------------------------------- */

/*
 * The kernel that tells a graph what a condition is: of one branch, or of both. What it calls is
 * the driver's own, as printf is: a module with it is not one of the model's, for an older driver
 * would not load it.
 */
static const char decide[] =
    ".version 7.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    ".visible .entry decide(.param .u64 then, .param .u64 other, .param .u64 condition, "
    ".param .u32 both)\n"
    "{\n"
    "    .reg .pred %p<3>;\n"
    "    .reg .b32 %r<5>;\n"
    "    .reg .b64 %d<5>;\n"
    "    .param .b64 handle;\n"
    "    .param .b32 value;\n"
    "    ld.param.u64 %d1, [then];\n"
    "    ld.param.u64 %d2, [other];\n"
    "    ld.param.u64 %d3, [condition];\n"
    "    ld.param.u32 %r1, [both];\n"
    "    cvta.to.global.u64 %d4, %d3;\n"
    "    ld.global.u8 %r2, [%d4];\n"
    "    setp.ne.u32 %p1, %r2, 0;\n"
    "    selp.u32 %r3, 1, 0, %p1;\n"
    "    st.param.b64 [handle], %d1;\n"
    "    st.param.b32 [value], %r3;\n"
    "    call.uni cudaGraphSetConditional, (handle, value);\n"
    "    setp.eq.u32 %p2, %r1, 0;\n"
    "    @%p2 bra done;\n"
    "    selp.u32 %r4, 0, 1, %p1;\n"
    "    st.param.b64 [handle], %d2;\n"
    "    st.param.b32 [value], %r4;\n"
    "    call.uni cudaGraphSetConditional, (handle, value);\n"
    "done:\n"
    "    ret;\n"
    "}\n";

/* Has the driver conditional nodes (12.4)? Then the kernel is there. */
static int can_branch(igrt_cu *cu)
{
    int driver = 0;
    if (cu->decide)
        return 1;
    if (!cu->cuStreamGetCaptureInfo || !cu->cuStreamUpdateCaptureDependencies ||
        !cu->cuStreamBeginCaptureToGraph || !cu->cuGraphConditionalHandleCreate ||
        !cu->cuGraphAddNode || cu->cuDriverGetVersion(&driver) || driver < BRANCHES_SINCE)
        return 0;
    if (!cu->branching && cu->cuModuleLoadDataEx(&cu->branching, decide, 0, NULL, NULL))
        cu->branching = NULL;
    if (cu->branching && cu->cuModuleGetFunction(&cu->decide, cu->branching, "decide"))
        cu->decide = NULL;
    return cu->decide != NULL;
}

/* What the capture has last, and its graph. */
static int last_node(igrt_cu *cu, void **graph, void *const **last, size_t *n)
{
    const void *edges = NULL;
    int capturing = 0;
    return cu->cuStreamGetCaptureInfo(cu->stream, &capturing, NULL, graph, last, &edges, n);
}

static int ask(igrt_cu *cu, uint64_t then, uint64_t other, igrt_cu_ptr condition, unsigned both)
{
    void *args[] = {&then, &other, &condition, &both};
    return cu->cuLaunchKernel(cu->decide, 1, 1, 1, 1, 1, 1, 0, cu->stream, args, NULL);
}

/* A node behind what the capture has, and it is the last one now; the graph of what it decides
 * about. */
static int add_branch(igrt_cu *cu, int type, uint64_t handle, void **body)
{
    void *graph = NULL, *node = NULL, **bodies;
    void *const *last = NULL;
    size_t n = 0;
    NodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    params.of.is.handle = handle;
    params.of.is.type = type;
    params.of.is.graphs = 1;
    params.of.is.context = cu->context;
    int e = last_node(cu, &graph, &last, &n);
    if (!e)
        e = cu->cuGraphAddNode(&node, graph, last, n, &params);
    bodies = params.of.is.graph;
    if (!e)
        e = cu->cuStreamUpdateCaptureDependencies(cu->stream, &node, 1,
                                                  CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    *body = e ? NULL : bodies[0];
    cu->behind = 1;
    return e;
}

/* What is enqueued from here on is recorded in that graph. */
static int enter_branch(igrt_cu *cu, void *body)
{
    void *aside = NULL;
    int e = cu->cuStreamCreate(&aside, CU_STREAM_NON_BLOCKING);
    if (!e)
        e = cu->cuStreamBeginCaptureToGraph(aside, body, NULL, NULL, 0,
                                            CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (e) {
        if (aside)
            cu->cuStreamDestroy(aside);
        return e;
    }
    cu->branch[cu->branches++].outside = cu->stream;
    cu->stream = aside;
    cu->behind = 1;
    return 0;
}

static int leave_branch(igrt_cu *cu)
{
    void *body = NULL;
    const int e = cu->cuStreamEndCapture(cu->stream, &body);
    cu->cuStreamDestroy(cu->stream);
    cu->stream = cu->branch[--cu->branches].outside;
    cu->behind = 1;
    return e;
}

/* The host asks. */
static igrt_status read_condition(igrt_cu *cu, igrt_cu_ptr condition, unsigned char *holds)
{
    const igrt_status status = igrt_cu_read(cu, condition, holds, 1);
    return status == IGRT_OK ? igrt_cu_finish(cu) : status;
}

static int new_handle(igrt_cu *cu, uint64_t *handle)
{
    void *graph = NULL;
    void *const *last = NULL;
    size_t n = 0;
    const int e = last_node(cu, &graph, &last, &n);
    return e ? e : cu->cuGraphConditionalHandleCreate(handle, graph, cu->context, 0, 0);
}

igrt_status igrt_cu_if(igrt_cu *cu, igrt_cu_ptr condition, int both, unsigned char *holds)
{
    uint64_t then = 0, other = 0;
    void *body = NULL;
    igrt_cu_branch *const b = &cu->branch[cu->branches];
    if (!cu->captures)
        return read_condition(cu, condition, holds);
    if (cu->branches == IGRT_CU_BRANCHES)
        return IGRT_ERR_DEVICE;
    b->other = NULL;
    *holds = 1;
    int e = new_handle(cu, &then);
    if (!e && both)
        e = new_handle(cu, &other);
    if (!e)
        e = ask(cu, then, other, condition, both != 0);
    if (!e)
        e = add_branch(cu, CU_GRAPH_COND_TYPE_IF, then, &body);
    if (!e && both)
        e = add_branch(cu, CU_GRAPH_COND_TYPE_IF, other, &b->other);
    return check(cu, e ? e : enter_branch(cu, body));
}

igrt_status igrt_cu_else(igrt_cu *cu, unsigned char *holds)
{
    if (!cu->captures)
        return IGRT_OK;
    void *const other = cu->branch[cu->branches - 1].other;
    const int e = leave_branch(cu);
    *holds = 0;
    return check(cu, e ? e : enter_branch(cu, other));
}

igrt_status igrt_cu_end_if(igrt_cu *cu)
{
    return cu->captures ? check(cu, leave_branch(cu)) : IGRT_OK;
}

igrt_status igrt_cu_while(igrt_cu *cu, igrt_cu_ptr condition, int64_t i, unsigned char *holds)
{
    void *body = NULL;
    uint64_t handle = 0;
    if (!cu->captures)
        return read_condition(cu, condition, holds);
    *holds = i == 0;
    if (i) { /* the steps are recorded: does it go on? */
        handle = cu->branch[cu->branches - 1].handle;
        const int e = ask(cu, handle, 0, condition, 0), left = leave_branch(cu);
        return check(cu, e ? e : left);
    }
    if (cu->branches == IGRT_CU_BRANCHES)
        return IGRT_ERR_DEVICE;
    int e = new_handle(cu, &handle);
    cu->branch[cu->branches].handle = handle;
    if (!e)
        e = ask(cu, handle, 0, condition, 0);
    if (!e)
        e = add_branch(cu, CU_GRAPH_COND_TYPE_WHILE, handle, &body);
    return check(cu, e ? e : enter_branch(cu, body));
}

igrt_status igrt_cu_capture_begin(igrt_cu *cu, igrt_cu_graph *graph)
{
    if (cu->unrecorded || enter(cu) || (graph->branches && !can_branch(cu)))
        return IGRT_ERR_DEVICE;
    open_gate(cu);
    const int e = cu->cuStreamBeginCapture(cu->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    cu->captures = e ? NULL : graph;
    cu->at = 0;
    return check(cu, e);
}

igrt_status igrt_cu_capture_end(igrt_cu *cu)
{
    void *recorded = NULL, *node = NULL;
    int why = 0;
    igrt_cu_graph *const graph = cu->captures;
    cu->captures = NULL;
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    while (cu->branches) /* after an error inside of them */
        leave_branch(cu);
    int e = cu->cuStreamEndCapture(cu->stream, &recorded);
    if (!e && graph->ready && cu->cuGraphExecUpdate(graph->ready, recorded, &node, &why) == 0) {
        cu->cuGraphDestroy(recorded);
        return IGRT_OK;
    }
    if (cu->at != graph->nodes || graph->ready)
        graph->nodes = 0; /* no update */
    igrt_cu_free_graph(cu, graph);
    if (!e)
        e = cu->cuGraphInstantiate(&graph->ready, recorded, 0);
    if (e)
        graph->ready = NULL;
    if (!e && graph->nodes)
        graph->recorded = recorded; /* an update names its nodes */
    else if (recorded)
        cu->cuGraphDestroy(recorded);
    return check(cu, e);
}

igrt_status igrt_cu_update_begin(igrt_cu *cu, igrt_cu_graph *graph)
{
    if (!graph->ready || !graph->nodes || !cu->cuGraphExecKernelNodeSetParams || enter(cu))
        return IGRT_ERR_DEVICE;
    cu->updates = graph;
    cu->at = 0;
    return IGRT_OK;
}

igrt_status igrt_cu_update_end(igrt_cu *cu)
{
    const int whole = cu->at == cu->updates->nodes;
    cu->updates = NULL;
    return whole ? IGRT_OK : IGRT_ERR_DEVICE;
}

igrt_status igrt_cu_replay(igrt_cu *cu, const igrt_cu_graph *graph)
{
    if (enter(cu))
        return IGRT_ERR_DEVICE;
    open_gate(cu);
    return check(cu, cu->cuGraphLaunch(graph->ready, cu->stream));
}

void igrt_cu_free_buffer(igrt_cu *cu, igrt_cu_ptr buffer)
{
    open_gate(cu);
    if (buffer && enter(cu) == IGRT_OK)
        cu->cuMemFree(buffer);
}

void igrt_cu_free_module(igrt_cu *cu, void *module)
{
    if (module && enter(cu) == IGRT_OK)
        cu->cuModuleUnload(module);
}

void igrt_cu_free_graph(igrt_cu *cu, igrt_cu_graph *graph)
{
    if (graph->ready && enter(cu) == IGRT_OK)
        cu->cuGraphExecDestroy(graph->ready);
    if (graph->recorded)
        cu->cuGraphDestroy(graph->recorded);
    graph->ready = graph->recorded = NULL;
}
