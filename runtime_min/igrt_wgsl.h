/*
 * igrt_wgsl.h - what the host side of a WGSL bundle calls.
 *
 * A library of WebGPU in C, wgpu-native or Dawn, is opened at run time with declarations of our
 * own, so a bundle needs neither headers nor a library to build. IGRT_WEBGPU in the environment is
 * its path; else it is looked for by its usual names. The functions changed until 2025: of
 * wgpu-native version 25 or later is taken, of Dawn what has the same functions. Handles are those
 * of the library, as void pointers.
 *
 * What is enqueued is recorded and handed to the device together, when somebody waits. All state
 * is in igrt_wg and in handles that the caller keeps. Every function that returns a status returns
 * IGRT_OK, IGRT_ERR_DEVICE, IGRT_ERR_BUILD or IGRT_ERR_FEATURE; igrt_wg_why() then has why. An
 * igrt_wg does not move in memory while it is open; it belongs to one thread at a time.
 */
#ifndef IGRT_WGSL_H
#define IGRT_WGSL_H

#include "igrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bindings begin at multiples of this. */
#define IGRT_WG_ALIGN 256
/* Arguments that a kernel may have in memory. */
#define IGRT_WG_ARGS 64
/* Ranges that are read before the host waits. */
#define IGRT_WG_READS 64

/* WebGPU in C: a text; a structure that others hang on; a callback and its two values. */
typedef struct igrt_wg_text {
    const char *data;
    size_t length;
} igrt_wg_text;
typedef struct igrt_wg_call {
    const void *next;
    int mode; /* 2: from within ProcessEvents */
    void (*function)(void);
    void *to, *with;
} igrt_wg_call;

/* X(result, name, parameters): the entry points, as there, behind "wgpu". */
#define IGRT_WG_FUNCTIONS(X)                                                                       \
    X(void *, CreateInstance, (const void *))                                                      \
    X(uint64_t, InstanceRequestAdapter, (void *, const void *, igrt_wg_call))                      \
    X(void, InstanceProcessEvents, (void *))                                                       \
    X(uint32_t, AdapterGetLimits, (void *, void *))                                                \
    X(uint32_t, AdapterGetInfo, (void *, void *))                                                  \
    X(uint32_t, AdapterHasFeature, (void *, int))                                                  \
    X(uint64_t, AdapterRequestDevice, (void *, const void *, igrt_wg_call))                        \
    X(uint32_t, DeviceGetLimits, (void *, void *))                                                 \
    X(uint32_t, DeviceHasFeature, (void *, int))                                                   \
    X(void *, DeviceCreateQuerySet, (void *, const void *))                                        \
    X(void *, DeviceGetQueue, (void *))                                                            \
    X(void *, DeviceCreateShaderModule, (void *, const void *))                                    \
    X(void *, DeviceCreateComputePipeline, (void *, const void *))                                 \
    X(void *, ComputePipelineGetBindGroupLayout, (void *, uint32_t))                               \
    X(void *, DeviceCreateBuffer, (void *, const void *))                                          \
    X(void *, DeviceCreateBindGroup, (void *, const void *))                                       \
    X(void *, DeviceCreateCommandEncoder, (void *, const void *))                                  \
    X(void *, CommandEncoderBeginComputePass, (void *, const void *))                              \
    X(void, ComputePassEncoderSetPipeline, (void *, void *))                                       \
    X(void, ComputePassEncoderSetBindGroup, (void *, uint32_t, void *, size_t, const uint32_t *))  \
    X(void, ComputePassEncoderDispatchWorkgroups, (void *, uint32_t, uint32_t, uint32_t))          \
    X(void, ComputePassEncoderEnd, (void *))                                                       \
    X(void, CommandEncoderCopyBufferToBuffer,                                                      \
      (void *, void *, uint64_t, void *, uint64_t, uint64_t))                                      \
    X(void, CommandEncoderClearBuffer, (void *, void *, uint64_t, uint64_t))                       \
    X(void, CommandEncoderResolveQuerySet, (void *, void *, uint32_t, uint32_t, void *, uint64_t)) \
    X(void *, CommandEncoderFinish, (void *, const void *))                                        \
    X(void, QueueSubmit, (void *, size_t, void *const *))                                          \
    X(void, QueueWriteBuffer, (void *, void *, uint64_t, const void *, size_t))                    \
    X(uint64_t, BufferMapAsync, (void *, uint64_t, size_t, size_t, igrt_wg_call))                  \
    X(const void *, BufferGetConstMappedRange, (void *, size_t, size_t))                           \
    X(void, BufferUnmap, (void *))                                                                 \
    X(void, InstanceRelease, (void *))                                                             \
    X(void, AdapterRelease, (void *))                                                              \
    X(void, DeviceRelease, (void *))                                                               \
    X(void, QueueRelease, (void *))                                                                \
    X(void, BufferRelease, (void *))                                                               \
    X(void, QuerySetRelease, (void *))                                                             \
    X(void, BindGroupRelease, (void *))                                                            \
    X(void, BindGroupLayoutRelease, (void *))                                                      \
    X(void, ComputePipelineRelease, (void *))                                                      \
    X(void, ShaderModuleRelease, (void *))                                                         \
    X(void, ComputePassEncoderRelease, (void *))                                                   \
    X(void, CommandEncoderRelease, (void *))                                                       \
    X(void, CommandBufferRelease, (void *))

/* A range of a buffer; given: the buffer is the caller's. */
typedef struct igrt_wg_mem {
    void *buffer;
    uint64_t offset, bytes, given;
} igrt_wg_mem;

/* What the host is to have when it waits: bytes that will be at an offset of the staging buffer. */
typedef struct igrt_wg_reading {
    void *data;
    uint64_t at;
    size_t bytes;
} igrt_wg_reading;

/* The device's clock: two times, of the first pass and of the last one between begin and end. */
typedef struct igrt_wg_clock {
    void *set;         /* NULL: none was made */
    igrt_wg_mem times; /* what the set is written to */
    int passes;        /* since begin; -1: nobody asks */
} igrt_wg_clock;

/* A pipeline; entry is what stands behind its name: "0,1,1,2#" are the bindings of its arguments,
 * and that it wants to know how many groups there are. */
typedef struct igrt_wg_kernel {
    void *pipeline, *layout;
    const char *entry;
} igrt_wg_kernel;

typedef struct igrt_wg {
    void *library, *instance, *adapter, *device, *queue;
    int owns_device, native;
    void *encoder, *pass;        /* of what is recorded, or NULL */
    void *last;                  /* pipeline of the pass */
    uint32_t recorded;           /* launches */
    int busy;                    /* something was handed over that nobody has waited for */
    struct igrt_wg_bound *bound; /* bind groups */
    igrt_wg_reading reading[IGRT_WG_READS];
    int readings;
    uint64_t reading_bytes;
    void *weights;
    uint64_t weight_bytes, weight_used;
    igrt_wg_mem spare, staging; /* for copies within a buffer; for the host to read */
    igrt_wg_kernel bytes;       /* copies byte by byte */
    igrt_wg_clock clock;
    uint64_t binding_bytes, buffer_bytes; /* limits */
    uint32_t bindings, subgroup, items;   /* of a group, at most */
    int failed;
    const char *why; /* it failed */
    /* wgpu-native's, or NULL */
    uint32_t (*DevicePoll)(void *, uint32_t, const void *);
    void *(*DeviceCreateShaderModuleTrusted)(void *, const void *, uint64_t);
    float (*QueueGetTimestampPeriod)(void *);
#define IGRT_X(result, name, parameters) result(*name) parameters;
    IGRT_WG_FUNCTIONS(IGRT_X)
#undef IGRT_X
} igrt_wg;

/* Opens the library and takes the given device with its queue, or the adapter that the library
 * prefers, with all of its limits. On failure nothing stays open. */
igrt_status igrt_wg_open(igrt_wg *wg, void *device, void *queue, const char *which);

/* What made the first call fail, or NULL. */
const char *igrt_wg_why(const igrt_wg *wg);

/* Has the adapter a feature ("shader-f16", "subgroups")?  IGRT_ERR_FEATURE, and fault->what is
 * lacks, if it has not. */
igrt_status igrt_wg_require(igrt_wg *wg, const char *feature, igrt_fault *fault, const char *lacks);

void igrt_wg_close(igrt_wg *wg);

/* n strings, which are one module. */
igrt_status igrt_wg_build(igrt_wg *wg, const char *const *text, int n, void **module);
/* "name:0,1,1,2#" of it. */
igrt_status igrt_wg_find(igrt_wg *wg, void *module, const char *name, igrt_wg_kernel *kernel);

/* From now on memory that has contents is part of one buffer, of so many bytes. */
igrt_status igrt_wg_reserve(igrt_wg *wg, uint64_t bytes);
igrt_status igrt_wg_alloc(igrt_wg *wg, uint64_t bytes, const void *data, igrt_wg_mem *mem);
void igrt_wg_free(igrt_wg *wg, igrt_wg_mem mem);

/* args[i]: nmem igrt_wg_mem, nint int64_t, the others of 4 bytes. */
igrt_status igrt_wg_launch(igrt_wg *wg, const igrt_wg_kernel *kernel, int64_t groups, int nmem,
                           int nint, int n, void **args);
igrt_status igrt_wg_write(igrt_wg *wg, igrt_wg_mem to, uint64_t offset, const void *data,
                          size_t bytes);
/* Without wait the bytes come in igrt_wg_finish(). */
igrt_status igrt_wg_read(igrt_wg *wg, igrt_wg_mem from, uint64_t offset, void *data, size_t bytes,
                         int wait);
igrt_status igrt_wg_copy(igrt_wg *wg, igrt_wg_mem to, uint64_t to_offset, igrt_wg_mem from,
                         uint64_t from_offset, uint64_t bytes);
igrt_status igrt_wg_zero(igrt_wg *wg, igrt_wg_mem mem, uint64_t bytes);
/* Hands over what is recorded. */
void igrt_wg_submit(igrt_wg *wg);
/* The device's time of what is enqueued between the two, in nanoseconds; 0: it has no clock, or
 * nothing ran. End waits. */
igrt_status igrt_wg_time_begin(igrt_wg *wg);
igrt_status igrt_wg_time_end(igrt_wg *wg, uint64_t *nanoseconds);
/* And waits for it. */
igrt_status igrt_wg_finish(igrt_wg *wg);

#ifdef __cplusplus
}
#endif
#endif
