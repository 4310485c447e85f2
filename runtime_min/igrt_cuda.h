/*
 * igrt_cuda.h - what the host side of a CUDA bundle calls.
 *
 * The driver (libcuda.so.1) is opened at run time with declarations of our own: a bundle needs no
 * CUDA toolkit to build or run. All state is in igrt_cu and in handles that the caller keeps;
 * nothing is allocated on the host. Device memory is a plain number, so a planned buffer is a sum.
 *
 * Every function returns IGRT_OK, IGRT_ERR_DEVICE or IGRT_ERR_BUILD; igrt_cu.error then has the
 * CUresult. Each call makes the context current in its thread first and restores nothing; one
 * igrt_cu belongs to one thread at a time.
 */
#ifndef IGRT_CUDA_H
#define IGRT_CUDA_H

#include "igrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cuMemAlloc aligns to this; planned buffers may too. */
#define IGRT_CU_ALIGN 256

typedef uint64_t igrt_cu_ptr;    /* CUdeviceptr */
typedef igrt_cu_ptr igrt_cu_mem; /* memory, or a place in it */

/* Kernels, copies and the order between them, to be launched as one; cleared: there is none. node
 * has room for as many kernels as there will be, for igrt_cu_update_begin(); NULL: there is no
 * update. */
typedef struct igrt_cu_graph {
    void *ready, *recorded; /* CUgraphExec, and the CUgraph that it was made of */
    void **node;
    int nodes;
    int branches; /* it has some: where the driver cannot record these, there is no graph */
} igrt_cu_graph;

/* Steps that a graph has behind a condition, while they are recorded: to a stream of their own. */
typedef struct igrt_cu_branch {
    /* the stream around them; the graph of the steps where the condition does not hold, or
     * NULL */
    void *outside, *other;
    uint64_t handle; /* of what says whether a loop goes on */
} igrt_cu_branch;
enum { IGRT_CU_BRANCHES = 8 }; /* inside one another, at most */

/* X(name, symbol, parameters): the entry points; all return CUresult. */
#define IGRT_CU_FUNCTIONS(X)                                                                       \
    X(cuInit, "cuInit", (unsigned))                                                                \
    X(cuDeviceGet, "cuDeviceGet", (int *, int))                                                    \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int *))                                               \
    X(cuDeviceGetUuid, "cuDeviceGetUuid", (unsigned char *, int))                                  \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **, int))                        \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int))                            \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (void *))                                                \
    X(cuStreamCreate, "cuStreamCreate", (void **, unsigned))                                       \
    X(cuStreamDestroy, "cuStreamDestroy_v2", (void *))                                             \
    X(cuStreamSynchronize, "cuStreamSynchronize", (void *))                                        \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx", (void **, const void *, unsigned, int *, void **)) \
    X(cuModuleUnload, "cuModuleUnload", (void *))                                                  \
    X(cuModuleGetFunction, "cuModuleGetFunction", (void **, void *, const char *))                 \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", (void *, int, int))                                \
    X(cuFuncGetAttribute, "cuFuncGetAttribute", (int *, int, void *))                              \
    X(cuDriverGetVersion, "cuDriverGetVersion", (int *))                                           \
    X(cuMemAlloc, "cuMemAlloc_v2", (igrt_cu_ptr *, size_t))                                        \
    X(cuMemFree, "cuMemFree_v2", (igrt_cu_ptr))                                                    \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (igrt_cu_ptr, const void *, size_t, void *))      \
    X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *, igrt_cu_ptr, size_t, void *))            \
    X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (igrt_cu_ptr, igrt_cu_ptr, size_t, void *))       \
    X(cuMemsetD8Async, "cuMemsetD8Async", (igrt_cu_ptr, unsigned char, size_t, void *))            \
    X(cuLaunchKernel, "cuLaunchKernel",                                                            \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,       \
       void **, void **))                                                                          \
    X(cuEventCreate, "cuEventCreate", (void **, unsigned))                                         \
    X(cuEventRecord, "cuEventRecord", (void *, void *))                                            \
    X(cuEventSynchronize, "cuEventSynchronize", (void *))                                          \
    X(cuEventElapsedTime, "cuEventElapsedTime", (float *, void *, void *))                         \
    X(cuEventDestroy, "cuEventDestroy_v2", (void *))                                               \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (void *, int))                              \
    X(cuStreamEndCapture, "cuStreamEndCapture", (void *, void **))                                 \
    X(cuGraphInstantiate, "cuGraphInstantiateWithFlags", (void **, void *, uint64_t))              \
    X(cuGraphExecUpdate, "cuGraphExecUpdate", (void *, void *, void **, int *))                    \
    X(cuGraphLaunch, "cuGraphLaunch", (void *, void *))                                            \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", (void *))                                          \
    X(cuGraphDestroy, "cuGraphDestroy", (void *))

/* Entry points of drivers since 12.0: NULL where there are none. */
#define IGRT_CU_NEWER(X)                                                                    \
    X(cuLaunchKernelEx, "cuLaunchKernelEx", (const void *, void *, void **, void **))       \
    X(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo_v3",                                  \
      (void *, int *, uint64_t *, void **, void *const **, const void **, size_t *))        \
    X(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams_v2",                  \
      (void *, void *, const void *))                                                       \
    X(cuStreamUpdateCaptureDependencies, "cuStreamUpdateCaptureDependencies",               \
      (void *, void **, size_t, unsigned))                                                  \
    X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph",                           \
      (void *, void *, void *const *, const void *, size_t, int))                           \
    X(cuGraphConditionalHandleCreate, "cuGraphConditionalHandleCreate",                     \
      (uint64_t *, void *, void *, unsigned, unsigned))                                     \
    X(cuGraphAddNode, "cuGraphAddNode", (void **, void *, void *const *, size_t, void *))   \
    X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                     \
      (void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *, \
       const unsigned *, int, int, int, int))                                               \
    X(cuTensorMapEncodeIm2col, "cuTensorMapEncodeIm2col",                                   \
      (void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const int *,      \
       const int *, unsigned, unsigned, const unsigned *, int, int, int, int))              \
    X(cuMemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned))                        \
    X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                            \
      (igrt_cu_ptr *, void *, unsigned))                                                    \
    X(cuMemFreeHost, "cuMemFreeHost", (void *))                                             \
    X(cuStreamWaitValue32, "cuStreamWaitValue32_v2", (void *, igrt_cu_ptr, uint32_t, unsigned))

typedef struct igrt_cu {
    void *library, *context, *stream;
    void *begin, *end; /* events of igrt_cu_time_begin and igrt_cu_time_end */
    int begins;        /* time does, at what is enqueued next */
    /* What is timed waits on the device until all of it is enqueued: for this word, seen from there
     * at gate_at, to be gate_value. */
    volatile uint32_t *gate;
    igrt_cu_ptr gate_at;
    uint32_t gate_value;
    int timed; /* a run has been: kernels are loaded, for which a driver may wait for the device */
    struct igrt_cu_graph *captures, *updates; /* what is enqueued now */
    int at;                                   /* kernels so far; -1: not each of them is known */
    int sizes;                                /* updates: of sizes alone */
    int device, owns_context, owns_stream;
    int unrecorded; /* no graph is made: not of these steps */
    int early;      /* the driver can begin a kernel before those before it have ended */
    int overlaps;   /* kernels wait for what was enqueued before them: a launch need not */
    int behind;     /* what is enqueued last is no kernel: a launch waits for it */
    void *branching, *decide; /* the module and the kernel that tell a graph what a condition is */
    igrt_cu_branch branch[IGRT_CU_BRANCHES];
    int branches; /* that what is enqueued now is in */
    int error;    /* CUresult of the last call that failed; 0 if the driver itself is missing */
#define IGRT_X(name, symbol, parameters) int(*name) parameters;
    IGRT_CU_FUNCTIONS(IGRT_X)
    IGRT_CU_NEWER(IGRT_X)
#undef IGRT_X
} igrt_cu;

/* What a kernel takes boxes of memory out of: CUtensorMap. */
typedef struct {
    uint64_t word[16];
} __attribute__((aligned(64))) igrt_cu_map;

/* Boxes of elements of 2 or 4 bytes, zero beyond the ends; the first axis lies side by side, the
 * others so many bytes apart. Its 128 or 64 bytes in a box are swizzled. IGRT_ERR_DEVICE, too,
 * where the driver has no such maps. */
igrt_status igrt_cu_make_map(igrt_cu *cu, igrt_cu_map *map, igrt_cu_ptr memory, int bytes, int rank,
                             const uint64_t *extent, const uint64_t *stride, const uint64_t *box);

/* Positions of windows: box has the elements of the first axis and the number of positions, which
 * go along all axes but the first and the last one from `low` to the last element and `high`, so
 * many elements apart. */
igrt_status igrt_cu_make_window_map(igrt_cu *cu, igrt_cu_map *map, igrt_cu_ptr memory, int bytes,
                                    int rank, const uint64_t *extent, const uint64_t *stride,
                                    const uint64_t *box, const int *low, const int *high,
                                    const int *step);

/* Opens the driver. context NULL: the primary context of a device, which one as igrt_config.gpu
 * says it; stream NULL: a stream of our own. On failure nothing stays open. */
igrt_status igrt_cu_open(igrt_cu *cu, void *context, void *stream, const char *which);

/* Releases what igrt_cu_open made; harmless on a cleared struct. */
void igrt_cu_close(igrt_cu *cu);

/* What the error of the last call that failed says of the device, in words. */
const char *igrt_cu_why(const igrt_cu *cu);

/* Loads a cubin, fatbin or zero-terminated PTX. If it fails, *module is NULL and log, if given, has
 * the text of the PTX compiler. */
igrt_status igrt_cu_module(igrt_cu *cu, const void *image, void **module, char *log,
                           size_t log_bytes);

/* A kernel; shared_bytes of dynamic shared memory beyond 48 KB are allowed for here. One that is
 * compiled for sm_90 or later begins with griddepcontrol.wait: from now on launches begin when the
 * kernel before ends, not when its end is known (programmatic dependent launch), where the driver
 * records that (12.3 and later). */
igrt_status igrt_cu_kernel(igrt_cu *cu, void *module, const char *name, unsigned shared_bytes,
                           void **kernel);

/* Device memory, at least one byte, filled from data if not NULL. */
igrt_status igrt_cu_buffer(igrt_cu *cu, size_t bytes, const void *data, igrt_cu_ptr *buffer);

/* Enqueues; args[i] points to argument i. A grid size of 0 enqueues nothing. */
igrt_status igrt_cu_launch(igrt_cu *cu, void *kernel, const unsigned grid[3],
                           const unsigned block[3], unsigned shared_bytes, void **args);

/* Enqueued in order; data of write and read must stay until igrt_cu_finish. */
igrt_status igrt_cu_write(igrt_cu *cu, igrt_cu_ptr to, const void *data, size_t bytes);
igrt_status igrt_cu_read(igrt_cu *cu, igrt_cu_ptr from, void *data, size_t bytes);
/* Not recorded where one is 0: the caller has not said yet where it is, and nothing runs. */
igrt_status igrt_cu_copy(igrt_cu *cu, igrt_cu_ptr from, igrt_cu_ptr to, size_t bytes);
igrt_status igrt_cu_zero(igrt_cu *cu, igrt_cu_ptr to, size_t bytes);

/* Waits until all that was enqueued is done. */
igrt_status igrt_cu_finish(igrt_cu *cu);

/* Device time between the two calls, without that of enqueuing it where the driver can; end waits.
 * Not inside a capture. */
igrt_status igrt_cu_time_begin(igrt_cu *cu);
igrt_status igrt_cu_time_end(igrt_cu *cu, uint64_t *nanoseconds);

/* What is enqueued between the two becomes a graph instead of running; it may replay any number of
 * times. One that there is becomes the new one, in place where the driver can. */
igrt_status igrt_cu_capture_begin(igrt_cu *cu, igrt_cu_graph *graph);
igrt_status igrt_cu_capture_end(igrt_cu *cu);

/* The same kernels again, with other arguments and other numbers of groups: what is enqueued
 * between the two does not run, but is what the graph's kernels do from now on. End fails where it
 * was not the same kernels, or the driver cannot: then it is to be captured anew. */
igrt_status igrt_cu_update_begin(igrt_cu *cu, igrt_cu_graph *graph);
igrt_status igrt_cu_update_end(igrt_cu *cu);
igrt_status igrt_cu_replay(igrt_cu *cu, const igrt_cu_graph *graph);

/* Steps behind a condition, a byte on the device: where *holds is set, they are to be enqueued
 * next. Inside a capture they become a part of the graph, which asks itself each time it runs; else
 * the host asks, and waits for the answer.
 *
 *     if (condition) A; else B    igrt_cu_if(.., both, &holds); if (holds) A; igrt_cu_else(..,
 *                                 &holds); if (!holds) B; igrt_cu_end_if(..)
 *     while (condition) A         for (i = 0;; i++) { igrt_cu_while(.., i, &holds); if (!holds)
 *                                 break; A; }
 *
 * Inside a capture both A and B are enqueued, once each. Without B, both is 0 and there is no
 * igrt_cu_else. */
igrt_status igrt_cu_if(igrt_cu *cu, igrt_cu_ptr condition, int both, unsigned char *holds);
igrt_status igrt_cu_else(igrt_cu *cu, unsigned char *holds);
igrt_status igrt_cu_end_if(igrt_cu *cu);
igrt_status igrt_cu_while(igrt_cu *cu, igrt_cu_ptr condition, int64_t i, unsigned char *holds);

/* Release handles; NULL and 0, and a graph that is none, are allowed. */
void igrt_cu_free_buffer(igrt_cu *cu, igrt_cu_ptr buffer);
void igrt_cu_free_module(igrt_cu *cu, void *module);
void igrt_cu_free_graph(igrt_cu *cu, igrt_cu_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
