/*
 * igrt_hip.h - what the host side of a HIP bundle calls, on AMD's GPUs.
 *
 * ROCm's runtime (libamdhip64.so) is opened at run time with declarations of our own: a bundle
 * needs no ROCm to build. All state is in igrt_hip and in handles that the caller keeps; nothing is
 * allocated on the host. Device memory is a plain number, so a planned buffer is a sum.
 *
 * Every function returns IGRT_OK, IGRT_ERR_DEVICE or IGRT_ERR_BUILD; igrt_hip.error then has the
 * hipError_t. Each call makes the device current in its thread first and restores nothing; one
 * igrt_hip belongs to one thread at a time.
 */
#ifndef IGRT_HIP_H
#define IGRT_HIP_H

#include "igrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* hipMalloc aligns to this; planned buffers may too. */
#define IGRT_HIP_ALIGN 256

typedef uint64_t igrt_hip_mem; /* hipDeviceptr_t: memory, or a place in it */

/* Kernels, copies and the order between them, to be launched as one; cleared: there is none. */
typedef struct igrt_hip_graph {
    void *ready; /* hipGraphExec_t */
    void **node; /* for an update of kernels one by one, which there is none of */
    int nodes;
    int branches; /* it has some: then it cannot be recorded, the host asks for each */
} igrt_hip_graph;

/* X(name, parameters): the entry points; all return hipError_t. */
#define IGRT_HIP_FUNCTIONS(X)                                                                     \
    X(hipInit, (unsigned))                                                                        \
    X(hipGetDeviceCount, (int *))                                                                 \
    X(hipGetDevice, (int *))                                                                      \
    X(hipSetDevice, (int))                                                                        \
    X(hipDeviceGetUuid, (unsigned char *, int))                                                   \
    X(hipStreamCreateWithFlags, (void **, unsigned))                                              \
    X(hipStreamDestroy, (void *))                                                                 \
    X(hipStreamSynchronize, (void *))                                                             \
    X(hipModuleLoadData, (void **, const void *))                                                 \
    X(hipModuleUnload, (void *))                                                                  \
    X(hipModuleGetFunction, (void **, void *, const char *))                                      \
    X(hipMalloc, (void **, size_t))                                                               \
    X(hipFree, (void *))                                                                          \
    X(hipMemcpyHtoDAsync, (void *, void *, size_t, void *))                                       \
    X(hipMemcpyDtoHAsync, (void *, void *, size_t, void *))                                       \
    X(hipMemcpyDtoDAsync, (void *, void *, size_t, void *))                                       \
    X(hipMemsetD8Async, (void *, unsigned char, size_t, void *))                                  \
    X(hipModuleLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                              unsigned, void *, void **, void **))                                \
    X(hipEventCreateWithFlags, (void **, unsigned))                                               \
    X(hipEventRecord, (void *, void *))                                                           \
    X(hipEventSynchronize, (void *))                                                              \
    X(hipEventElapsedTime, (float *, void *, void *))                                             \
    X(hipEventDestroy, (void *))                                                                  \
    X(hipStreamBeginCapture, (void *, int))                                                       \
    X(hipStreamEndCapture, (void *, void **))                                                     \
    X(hipGraphInstantiate, (void **, void *, void **, char *, size_t))                            \
    X(hipGraphExecUpdate, (void *, void *, void **, int *))                                       \
    X(hipGraphLaunch, (void *, void *))                                                           \
    X(hipGraphExecDestroy, (void *))                                                              \
    X(hipGraphDestroy, (void *))

typedef struct igrt_hip {
    void *library, *stream;
    void *begin, *end;        /* events of igrt_hip_time_begin and igrt_hip_time_end */
    igrt_hip_graph *captures; /* what is enqueued now */
    int device, owns_stream;
    int error; /* hipError_t of the last call that failed; 0 if the runtime itself is missing */
#define IGRT_X(name, parameters) int(*name) parameters;
    IGRT_HIP_FUNCTIONS(IGRT_X)
#undef IGRT_X
} igrt_hip;

/* Opens the runtime. stream NULL: one of our own, on the device that igrt_config.gpu asks for; else
 * it is of that device or, without a word of it, of the one that is current in this thread. On
 * failure nothing stays open. */
igrt_status igrt_hip_open(igrt_hip *hip, void *stream, const char *which);

/* Releases what igrt_hip_open made; harmless on a cleared struct. */
void igrt_hip_close(igrt_hip *hip);

/* What the error of the last call that failed says of the device, in words. */
const char *igrt_hip_why(const igrt_hip *hip);

/* Loads a code object, or a bundle of some; IGRT_ERR_BUILD: it is for another device. */
igrt_status igrt_hip_module(igrt_hip *hip, const void *image, void **module);
igrt_status igrt_hip_kernel(igrt_hip *hip, void *module, const char *name, void **kernel);

/* Device memory, at least one byte, filled from data if not NULL. */
igrt_status igrt_hip_buffer(igrt_hip *hip, size_t bytes, const void *data, igrt_hip_mem *buffer);

/* Enqueues; args[i] points to argument i. A grid of 0 enqueues nothing. */
igrt_status igrt_hip_launch(igrt_hip *hip, void *kernel, unsigned grid, unsigned block,
                            unsigned shared_bytes, void **args);

/* Enqueued in order; data of write and read must stay until igrt_hip_finish. */
igrt_status igrt_hip_write(igrt_hip *hip, igrt_hip_mem to, const void *data, size_t bytes);
igrt_status igrt_hip_read(igrt_hip *hip, igrt_hip_mem from, void *data, size_t bytes);
igrt_status igrt_hip_copy(igrt_hip *hip, igrt_hip_mem from, igrt_hip_mem to, size_t bytes);
igrt_status igrt_hip_zero(igrt_hip *hip, igrt_hip_mem to, size_t bytes);

/* Waits until all that was enqueued is done. */
igrt_status igrt_hip_finish(igrt_hip *hip);

/* Device time between the two calls; end waits. Not inside a capture. */
igrt_status igrt_hip_time_begin(igrt_hip *hip);
igrt_status igrt_hip_time_end(igrt_hip *hip, uint64_t *nanoseconds);

/* What is enqueued between the two becomes a graph instead of running; it may replay any number of
 * times. One that there is becomes the new one, in place where the runtime can. */
igrt_status igrt_hip_capture_begin(igrt_hip *hip, igrt_hip_graph *graph);
igrt_status igrt_hip_capture_end(igrt_hip *hip);
igrt_status igrt_hip_replay(igrt_hip *hip, const igrt_hip_graph *graph);

/* Release handles; NULL and 0, and a graph that is none, are allowed. */
void igrt_hip_free_buffer(igrt_hip *hip, igrt_hip_mem buffer);
void igrt_hip_free_module(igrt_hip *hip, void *module);
void igrt_hip_free_graph(igrt_hip *hip, igrt_hip_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
