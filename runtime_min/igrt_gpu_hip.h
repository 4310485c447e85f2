/*
 * igrt_gpu_hip.h - the few calls that the host code of a GPU bundle is written in, on HIP.
 *
 * Emitted host code says igrt_gpu_*; which of the igrt_gpu_<driver>.h it includes decides what runs
 * it. All state is in handles that the model's context keeps. Commands run in order.
 */
#ifndef IGRT_GPU_H
#define IGRT_GPU_H

#include "igrt_hip.h"

typedef igrt_hip igrt_gpu;
typedef igrt_hip_mem igrt_gpu_mem;

static inline igrt_status igrt_gpu_open(igrt_gpu *g, const igrt_config *config)
{
    return igrt_hip_open(g, config->stream, config->gpu);
}

/* What made init fail, where nothing else has told. */
static inline void igrt_gpu_explain(const igrt_gpu *g, igrt_status status, igrt_fault *fault)
{
    if (!fault->what && (status == IGRT_ERR_DEVICE || status == IGRT_ERR_BUILD))
        *fault = (igrt_fault){.what = igrt_hip_why(g), .value = g->error, .greatest = -1};
}

/* The program: the first of n code objects that is for this device. What becomes of subnormal
 * numbers they say themselves. */
static inline igrt_status igrt_gpu_load(igrt_gpu *g, const char *const *image, int n, int flush,
                                        void **program)
{
    igrt_status status = IGRT_ERR_BUILD;
    (void)flush;
    for (int i = 0; i < n && status == IGRT_ERR_BUILD; i++)
        status = igrt_hip_module(g, image[i], program);
    return status;
}

/* shared: bytes that a launch asks for, for each group. */
static inline igrt_status igrt_gpu_find(igrt_gpu *g, void *program, const char *name,
                                        unsigned shared, void **kernel)
{
    (void)shared;
    return igrt_hip_kernel(g, program, name, kernel);
}

/* Device memory, filled from data if not NULL. */
static inline igrt_status igrt_gpu_alloc(igrt_gpu *g, size_t bytes, const void *data,
                                         igrt_gpu_mem *mem)
{
    return igrt_hip_buffer(g, bytes, data, mem);
}

static inline igrt_status igrt_gpu_part(igrt_gpu *g, igrt_gpu_mem whole, size_t offset,
                                        size_t bytes, igrt_gpu_mem *part)
{
    (void)g;
    (void)bytes;
    *part = whole + offset;
    return IGRT_OK;
}

/* Enqueues work items 0..items-1 and some more, which the kernel ignores. args[i] points to
 * argument i: nmem memory handles, nint int64_t, the others of 4 bytes. group: how many items share
 * memory, 0: none do; shared: bytes of it that the kernel has not asked for itself. */
static inline igrt_status igrt_gpu_launch(igrt_gpu *g, void *kernel, int64_t items, int group,
                                          unsigned shared, int nmem, int nint, int n, void **args)
{
    const unsigned block = group ? (unsigned)group : items == 1 ? 1 : 128;
    const int64_t groups = (items + block - 1) / block;
    (void)nmem;
    (void)nint;
    (void)n;
    if (items <= 0)
        return IGRT_OK;
    if (groups > INT32_MAX / 256) /* a grid has 2^31 items */
        return IGRT_ERR_DEVICE;
    return igrt_hip_launch(g, kernel, (unsigned)groups, block, shared, args);
}

static inline igrt_status igrt_gpu_finish(igrt_gpu *g)
{
    return igrt_hip_finish(g);
}

/* Without wait the host's memory stays in use until igrt_gpu_finish. */
static inline igrt_status igrt_gpu_write(igrt_gpu *g, igrt_gpu_mem to, size_t offset,
                                         const void *data, size_t bytes, int wait)
{
    const igrt_status status = igrt_hip_write(g, to + offset, data, bytes);
    return status == IGRT_OK && bytes && wait ? igrt_gpu_finish(g) : status;
}

static inline igrt_status igrt_gpu_read(igrt_gpu *g, igrt_gpu_mem from, size_t offset, void *data,
                                        size_t bytes, int wait)
{
    const igrt_status status = igrt_hip_read(g, from + offset, data, bytes);
    return status == IGRT_OK && bytes && wait ? igrt_gpu_finish(g) : status;
}

static inline igrt_status igrt_gpu_copy(igrt_gpu *g, igrt_gpu_mem to, size_t to_offset,
                                        igrt_gpu_mem from, size_t from_offset, size_t bytes)
{
    return igrt_hip_copy(g, from + from_offset, to + to_offset, bytes);
}

static inline igrt_status igrt_gpu_zero(igrt_gpu *g, igrt_gpu_mem mem, size_t bytes)
{
    return igrt_hip_zero(g, mem, bytes);
}

/* The device's time between the two, in nanoseconds; 0 if there is none. End waits. */
static inline igrt_status igrt_gpu_time_begin(igrt_gpu *g)
{
    return igrt_hip_time_begin(g);
}

static inline igrt_status igrt_gpu_time_end(igrt_gpu *g, uint64_t *nanoseconds)
{
    return igrt_hip_time_end(g, nanoseconds);
}

/* What is enqueued between begin and end does not run, but becomes a record, which play enqueues as
 * one launch. One that there is already becomes the new one; there is no update of a part. */
typedef igrt_hip_graph igrt_gpu_record;
static inline igrt_status igrt_gpu_record_begin(igrt_gpu *g, igrt_gpu_record *record)
{
    return igrt_hip_capture_begin(g, record);
}

static inline igrt_status igrt_gpu_record_end(igrt_gpu *g)
{
    return igrt_hip_capture_end(g);
}

static inline igrt_status igrt_gpu_update_begin(igrt_gpu *g, igrt_gpu_record *record, int sizes)
{
    (void)g;
    (void)record;
    (void)sizes;
    return IGRT_ERR_DEVICE;
}

static inline igrt_status igrt_gpu_update_end(igrt_gpu *g)
{
    (void)g;
    return IGRT_ERR_DEVICE;
}

static inline int igrt_gpu_keeps(igrt_gpu *g)
{
    (void)g;
    return 0;
}

static inline int igrt_gpu_is_recorded(const igrt_gpu_record *record)
{
    return record->ready != NULL;
}

static inline igrt_status igrt_gpu_play(igrt_gpu *g, const igrt_gpu_record *record)
{
    return igrt_hip_replay(g, record);
}

static inline void igrt_gpu_free_record(igrt_gpu *g, igrt_gpu_record *record)
{
    igrt_hip_free_graph(g, record);
}

#include "igrt_gpu_asks.h"

/* The handle of memory on the device that is the caller's. */
static inline igrt_gpu_mem igrt_gpu_given(const void *memory)
{
    return (igrt_gpu_mem)(uintptr_t)memory;
}

/* Kernels move 16 bytes at once. */
static inline int igrt_gpu_is_aligned(igrt_gpu_mem mem)
{
    return mem % 16 == 0;
}

/* Release handles; those that were never made are NULL or 0. */
static inline void igrt_gpu_free(igrt_gpu *g, igrt_gpu_mem mem)
{
    igrt_hip_free_buffer(g, mem);
}

static inline void igrt_gpu_free_part(igrt_gpu *g, igrt_gpu_mem part)
{
    (void)g;
    (void)part;
}

static inline void igrt_gpu_free_kernel(igrt_gpu *g, void *kernel)
{
    (void)g;
    (void)kernel;
}

static inline void igrt_gpu_close(igrt_gpu *g, void *program)
{
    igrt_hip_free_module(g, program);
    igrt_hip_close(g);
}

#endif
