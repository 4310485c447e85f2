/*
 * igrt_gpu_opencl.h - the few calls that the host code of a GPU bundle is written in, on OpenCL.
 *
 * Emitted host code says igrt_gpu_*; which header is beside it decides what runs it. All state is in
 * igrt_gpu and in handles that the model's context keeps.
 */
#ifndef IGRT_GPU_H
#define IGRT_GPU_H

#include "igrt_opencl.h"

#define IGRT_GPU_ALIGN IGRT_CL_ALIGN

typedef struct igrt_gpu {
    igrt_cl cl;
    void *program;
} igrt_gpu;
typedef void *igrt_gpu_mem;    /* device memory, or a part of it */
typedef void *igrt_gpu_kernel; /* a kernel, ready to launch */

/* One kernel argument: the address and size of an igrt_gpu_mem or of a value. */
typedef struct igrt_gpu_arg {
    const void *p;
    size_t bytes;
} igrt_gpu_arg;

static inline igrt_status igrt_gpu_open(igrt_gpu *g, void *device, void *stream, int profile)
{
    g->program = NULL;
    return igrt_cl_open(&g->cl, device, stream, profile);
}

/* The program, as n strings of source. */
static inline igrt_status igrt_gpu_load(igrt_gpu *g, const char *const *source, int n)
{
    return igrt_cl_build(&g->cl, source, n, "", &g->program, NULL, 0);
}

static inline igrt_status igrt_gpu_find(igrt_gpu *g, const char *name, igrt_gpu_kernel *kernel)
{
    return igrt_cl_kernel(&g->cl, g->program, name, kernel);
}

/* Device memory, filled from data if not NULL. */
static inline igrt_status igrt_gpu_alloc(igrt_gpu *g, size_t bytes, const void *data,
                                         igrt_gpu_mem *mem)
{
    return igrt_cl_buffer(&g->cl, bytes, data, mem);
}

static inline igrt_status igrt_gpu_part(igrt_gpu *g, igrt_gpu_mem whole, size_t offset,
                                        size_t bytes, igrt_gpu_mem *part)
{
    return igrt_cl_part(&g->cl, whole, offset, bytes, part);
}

/* Enqueue `items` work items, in groups of 64; the kernel ignores those beyond. */
static inline igrt_status igrt_gpu_launch(igrt_gpu *g, igrt_gpu_kernel kernel, int64_t items, int n,
                                          const igrt_gpu_arg *args)
{
    const size_t local = items == 1 ? 1 : 64, global = ((size_t)items + local - 1) / local * local;
    int i;
    for (i = 0; i < n; i++) {
        const igrt_status s = igrt_cl_arg_value(&g->cl, kernel, i, args[i].p, args[i].bytes);
        if (s != IGRT_OK)
            return s;
    }
    return items > 0 ? igrt_cl_launch(&g->cl, kernel, 1, &global, &local, NULL) : IGRT_OK;
}

static inline igrt_status igrt_gpu_write(igrt_gpu *g, igrt_gpu_mem to, const void *data,
                                         size_t bytes)
{
    return bytes ? igrt_cl_write(&g->cl, to, 0, data, bytes) : IGRT_OK;
}

static inline igrt_status igrt_gpu_read(igrt_gpu *g, igrt_gpu_mem from, void *data, size_t bytes)
{
    return bytes ? igrt_cl_read(&g->cl, from, 0, data, bytes) : IGRT_OK;
}

static inline igrt_status igrt_gpu_copy(igrt_gpu *g, igrt_gpu_mem to, size_t to_offset,
                                        igrt_gpu_mem from, size_t from_offset, size_t bytes)
{
    return bytes ? igrt_cl_copy(&g->cl, from, from_offset, to, to_offset, bytes) : IGRT_OK;
}

static inline igrt_status igrt_gpu_zero(igrt_gpu *g, igrt_gpu_mem mem, size_t bytes)
{
    return bytes ? igrt_cl_zero(&g->cl, mem, 0, bytes) : IGRT_OK;
}

static inline igrt_status igrt_gpu_finish(igrt_gpu *g)
{
    return igrt_cl_finish(&g->cl);
}

static inline void igrt_gpu_free(igrt_gpu *g, igrt_gpu_mem mem)
{
    igrt_cl_free_buffer(&g->cl, mem);
}

static inline void igrt_gpu_drop(igrt_gpu *g, igrt_gpu_kernel kernel)
{
    igrt_cl_free_kernel(&g->cl, kernel);
}

static inline void igrt_gpu_close(igrt_gpu *g)
{
    igrt_cl_free_program(&g->cl, g->program);
    igrt_cl_close(&g->cl);
}

#endif
