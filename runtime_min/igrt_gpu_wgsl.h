/*
 * igrt_gpu_wgsl.h - the few calls that the host code of a GPU bundle is written in, on WebGPU.
 *
 * Emitted host code says igrt_gpu_*; which of the igrt_gpu_<driver>.h it includes decides what runs
 * it. All state is in handles that the model's context keeps. Commands run in order; write and read
 * return when the host's memory may be used again.
 */
#ifndef IGRT_GPU_H
#define IGRT_GPU_H

#include <string.h>

#include "igrt_wgsl.h"

typedef igrt_wg igrt_gpu;
typedef igrt_wg_mem igrt_gpu_mem;

static inline igrt_status igrt_gpu_open(igrt_gpu *g, const igrt_config *config)
{
    return igrt_wg_open(g, config->device, config->stream, config->gpu);
}

/* What made init fail, where nothing else has told. */
static inline void igrt_gpu_explain(const igrt_gpu *g, igrt_status status, igrt_fault *fault)
{
    if (!fault->what && (status == IGRT_ERR_DEVICE || status == IGRT_ERR_BUILD))
        *fault = (igrt_fault){.what = igrt_wg_why(g), .value = 0, .greatest = -1};
}

/* What kernels were written for: a feature; what the fault is where the adapter lacks it. */
static inline igrt_status igrt_gpu_require(igrt_gpu *g, const char *feature, igrt_fault *fault,
                                           const char *lacks)
{
    return igrt_wg_require(g, feature, fault, lacks);
}

static inline igrt_status igrt_gpu_require_subgroups(igrt_gpu *g, igrt_wg_kernel kernel, int items,
                                                     igrt_fault *fault)
{
    (void)kernel;
    if (!g->adapter || (int)g->subgroup >= items)
        return IGRT_OK;
    *fault = (igrt_fault){.what = "items of a sub-group of the adapter",
                          .value = g->subgroup,
                          .least = items,
                          .greatest = 128};
    return IGRT_ERR_FEATURE;
}

/* The program, as n strings of source; flush: devices do as they like. */
static inline igrt_status igrt_gpu_load(igrt_gpu *g, const char *const *text, int n, int flush,
                                        void **program)
{
    (void)flush;
    return igrt_wg_build(g, text, n, program);
}

static inline igrt_status igrt_gpu_find(igrt_gpu *g, void *program, const char *name,
                                        unsigned shared, igrt_wg_kernel *kernel)
{
    (void)shared;
    return igrt_wg_find(g, program, name, kernel);
}

/* Weights of so many bytes will be given to igrt_gpu_alloc(). */
static inline igrt_status igrt_gpu_reserve(igrt_gpu *g, size_t bytes)
{
    return igrt_wg_reserve(g, bytes);
}

/* Device memory, filled from data if not NULL. */
static inline igrt_status igrt_gpu_alloc(igrt_gpu *g, size_t bytes, const void *data,
                                         igrt_gpu_mem *mem)
{
    return igrt_wg_alloc(g, bytes, data, mem);
}

static inline igrt_status igrt_gpu_part(igrt_gpu *g, igrt_gpu_mem whole, size_t offset,
                                        size_t bytes, igrt_gpu_mem *part)
{
    (void)g;
    *part = (igrt_gpu_mem){whole.buffer, whole.offset + offset, bytes, 0};
    return IGRT_OK;
}

/* The first bytes of it. */
static inline igrt_gpu_mem igrt_gpu_first(igrt_gpu_mem mem, size_t bytes)
{
    mem.bytes = bytes;
    return mem;
}

/* Enqueues work items 0..items-1 and some more, which the kernel ignores. args[i] points to
 * argument i: nmem memory handles, nint int64_t, the others of 4 bytes. group: how many items share
 * memory, 0: none do. */
static inline igrt_status igrt_gpu_launch(igrt_gpu *g, igrt_wg_kernel kernel, int64_t items,
                                          int group, unsigned shared, int nmem, int nint, int n,
                                          void **args)
{
    const int64_t local = group ? group : 64;
    (void)shared;
    return igrt_wg_launch(g, &kernel, (items + local - 1) / local, nmem, nint, n, args);
}

/* Without wait the host's memory stays in use until igrt_gpu_finish. */
static inline igrt_status igrt_gpu_write(igrt_gpu *g, igrt_gpu_mem to, size_t offset,
                                         const void *data, size_t bytes, int wait)
{
    (void)wait;
    return igrt_wg_write(g, to, offset, data, bytes);
}

static inline igrt_status igrt_gpu_read(igrt_gpu *g, igrt_gpu_mem from, size_t offset, void *data,
                                        size_t bytes, int wait)
{
    return igrt_wg_read(g, from, offset, data, bytes, wait);
}

static inline igrt_status igrt_gpu_copy(igrt_gpu *g, igrt_gpu_mem to, size_t to_offset,
                                        igrt_gpu_mem from, size_t from_offset, size_t bytes)
{
    return igrt_wg_copy(g, to, to_offset, from, from_offset, bytes);
}

static inline igrt_status igrt_gpu_zero(igrt_gpu *g, igrt_gpu_mem mem, size_t bytes)
{
    return igrt_wg_zero(g, mem, bytes);
}

static inline igrt_status igrt_gpu_finish(igrt_gpu *g)
{
    return igrt_wg_finish(g);
}

/* The device's time between the two, in nanoseconds; 0: none. End waits. */
static inline igrt_status igrt_gpu_time_begin(igrt_gpu *g)
{
    return igrt_wg_time_begin(g);
}

static inline igrt_status igrt_gpu_time_end(igrt_gpu *g, uint64_t *nanoseconds)
{
    return igrt_wg_time_end(g, nanoseconds);
}

#include "igrt_gpu_asks.h"

/* The handle of memory on the device that is the caller's: a WGPUBuffer. */
static inline igrt_gpu_mem igrt_gpu_given(const void *memory)
{
    return (igrt_gpu_mem){(void *)(uintptr_t)memory, 0, 0, 1};
}

static inline void *igrt_gpu_pointer(igrt_gpu_mem mem)
{
    return mem.buffer;
}

static inline int igrt_gpu_is_aligned(igrt_gpu_mem mem)
{
    (void)mem;
    return 1;
}

/* Release handles; those that were never made are NULL. */
static inline void igrt_gpu_free(igrt_gpu *g, igrt_gpu_mem mem)
{
    igrt_wg_free(g, mem);
}

static inline void igrt_gpu_free_part(igrt_gpu *g, igrt_gpu_mem part)
{
    (void)g;
    (void)part;
}

static inline void igrt_gpu_free_kernel(igrt_gpu *g, igrt_wg_kernel kernel)
{
    if (kernel.layout)
        g->BindGroupLayoutRelease(kernel.layout);
    if (kernel.pipeline)
        g->ComputePipelineRelease(kernel.pipeline);
}

static inline void igrt_gpu_close(igrt_gpu *g, void *program)
{
    if (program)
        g->ShaderModuleRelease(program);
    igrt_wg_close(g);
}

#endif
