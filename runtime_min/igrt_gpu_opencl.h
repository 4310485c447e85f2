/*
 * igrt_gpu_opencl.h - the few calls that the host code of a GPU bundle is written in, on OpenCL.
 *
 * Emitted host code says igrt_gpu_*; which of the igrt_gpu_<driver>.h it includes decides what runs
 * it. All state is in handles that the model's context keeps. Commands run in order; write and read
 * return when the host's memory may be used again.
 */
#ifndef IGRT_GPU_H
#define IGRT_GPU_H

#include <string.h>

#include "igrt_opencl.h"

typedef igrt_cl igrt_gpu;
typedef igrt_cl_mem igrt_gpu_mem;

static inline igrt_status igrt_gpu_open(igrt_gpu *g, const igrt_config *config)
{
    return igrt_cl_open(g, config->device, config->stream, config->gpu, 0);
}

/* What made init fail, where nothing else has told. */
static inline void igrt_gpu_explain(const igrt_gpu *g, igrt_status status, igrt_fault *fault)
{
    if (!fault->what && (status == IGRT_ERR_DEVICE || status == IGRT_ERR_BUILD))
        *fault = (igrt_fault){.what = igrt_cl_why(g), .value = g->error, .greatest = -1};
}

/* What kernels were written for: an extension; what the fault is where the device lacks it. */
static inline igrt_status igrt_gpu_require(igrt_gpu *g, const char *extension, igrt_fault *fault,
                                           const char *lacks)
{
    return igrt_cl_require(g, extension, fault, lacks);
}

static inline igrt_status igrt_gpu_require_subgroups(igrt_gpu *g, void *kernel, int items,
                                                     igrt_fault *fault)
{
    return igrt_cl_require_subgroups(g, kernel, items, fault);
}

/* The program, as n strings of source; flush: it may take subnormal numbers for zeros. */
static inline igrt_status igrt_gpu_load(igrt_gpu *g, const char *const *text, int n, int flush,
                                        void **program)
{
    const char *const option[] = {g->exact ? " -cl-fp32-correctly-rounded-divide-sqrt" : "",
                                  flush ? " -cl-denorms-are-zero" : "",
                                  g->language == 3 ? " -cl-std=CL3.0" : ""};
    char options[128] = "";
    size_t length = 0;
    for (int i = 0; i < 3; i++) {
        const size_t more = strlen(option[i]);
        memcpy(options + length, option[i], more);
        length += more;
    }
    return igrt_cl_build(g, text, n, options, program, NULL, 0);
}

/* shared: bytes that a launch asks for: none, kernels here say what they need. */
static inline igrt_status igrt_gpu_find(igrt_gpu *g, void *program, const char *name,
                                        unsigned shared, void **kernel)
{
    (void)shared;
    return igrt_cl_kernel(g, program, name, kernel);
}

/* Device memory, filled from data if not NULL. */
static inline igrt_status igrt_gpu_alloc(igrt_gpu *g, size_t bytes, const void *data,
                                         igrt_gpu_mem *mem)
{
    return igrt_cl_buffer(g, bytes, data, mem);
}

/* Weights as an image; data NULL: of what a launch reads, which is copied before it. */
static inline igrt_status igrt_gpu_image(igrt_gpu *g, size_t bytes, const void *data,
                                         igrt_gpu_mem *mem)
{
    return igrt_cl_image(g, bytes / sizeof(float), (const float *)data, mem);
}

static inline igrt_status igrt_gpu_fill_image(igrt_gpu *g, igrt_gpu_mem from, size_t offset,
                                              size_t bytes, igrt_gpu_mem image)
{
    return igrt_cl_fill_image(g, from, offset, bytes / sizeof(float), image);
}

static inline igrt_status igrt_gpu_part(igrt_gpu *g, igrt_gpu_mem whole, size_t offset,
                                        size_t bytes, igrt_gpu_mem *part)
{
    return igrt_cl_part(g, whole, offset, bytes, part);
}

/* Enqueues work items 0..items-1 and some more, which the kernel ignores. args[i] points to
 * argument i: nmem memory handles, nint int64_t, the others of 4 bytes. group: how many items share
 * memory, 0: none do. */
static inline igrt_status igrt_gpu_launch(igrt_gpu *g, void *kernel, int64_t items, int group,
                                          unsigned shared, int nmem, int nint, int n, void **args)
{
    (void)shared;
    const size_t local = group ? (size_t)group : items == 1 ? 1 : 64;
    const size_t global = ((size_t)items + local - 1) / local * local;
    if (items <= 0)
        return IGRT_OK;
    for (int i = 0; i < n; i++) {
        const size_t bytes = i < nmem          ? sizeof(igrt_gpu_mem)
                             : i < nmem + nint ? sizeof(int64_t)
                                               : 4;
        const igrt_status status = igrt_cl_arg_value(g, kernel, i, args[i], bytes);
        if (status != IGRT_OK)
            return status;
    }
    return igrt_cl_launch(g, kernel, 1, &global, &local, NULL);
}

/* Without wait the host's memory stays in use until igrt_gpu_finish. */
static inline igrt_status igrt_gpu_write(igrt_gpu *g, igrt_gpu_mem to, size_t offset,
                                         const void *data, size_t bytes, int wait)
{
    return igrt_cl_write(g, to, offset, data, bytes, wait);
}

static inline igrt_status igrt_gpu_read(igrt_gpu *g, igrt_gpu_mem from, size_t offset, void *data,
                                        size_t bytes, int wait)
{
    return igrt_cl_read(g, from, offset, data, bytes, wait);
}

static inline igrt_status igrt_gpu_copy(igrt_gpu *g, igrt_gpu_mem to, size_t to_offset,
                                        igrt_gpu_mem from, size_t from_offset, size_t bytes)
{
    return igrt_cl_copy(g, from, from_offset, to, to_offset, bytes);
}

static inline igrt_status igrt_gpu_zero(igrt_gpu *g, igrt_gpu_mem mem, size_t bytes)
{
    return igrt_cl_zero(g, mem, 0, bytes);
}

static inline igrt_status igrt_gpu_finish(igrt_gpu *g)
{
    return igrt_cl_finish(g);
}

/* The device's time between the two, in nanoseconds; 0: none, since a queue of the caller's may not
 * tell. End waits. */
static inline igrt_status igrt_gpu_time_begin(igrt_gpu *g)
{
    (void)g;
    return IGRT_OK;
}

static inline igrt_status igrt_gpu_time_end(igrt_gpu *g, uint64_t *nanoseconds)
{
    *nanoseconds = 0;
    return igrt_cl_finish(g);
}

#include "igrt_gpu_asks.h"

/* The handle of memory on the device that is the caller's. */
static inline igrt_gpu_mem igrt_gpu_given(const void *memory)
{
    return (igrt_gpu_mem)(uintptr_t)memory;
}

/* Drivers begin all memory at multiples of more than 16 bytes. */
static inline int igrt_gpu_is_aligned(igrt_gpu_mem mem)
{
    (void)mem;
    return 1;
}

/* Release handles; those that were never made are NULL. */
static inline void igrt_gpu_free(igrt_gpu *g, igrt_gpu_mem mem)
{
    igrt_cl_free_buffer(g, mem);
}

static inline void igrt_gpu_free_part(igrt_gpu *g, igrt_gpu_mem part)
{
    igrt_cl_free_buffer(g, part);
}

static inline void igrt_gpu_free_kernel(igrt_gpu *g, void *kernel)
{
    igrt_cl_free_kernel(g, kernel);
}

static inline void igrt_gpu_close(igrt_gpu *g, void *program)
{
    igrt_cl_free_program(g, program);
    igrt_cl_close(g);
}

#endif
