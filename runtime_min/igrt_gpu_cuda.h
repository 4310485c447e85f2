/*
 * igrt_gpu_cuda.h - the few calls that the host code of a GPU bundle is written in, on CUDA.
 *
 * Emitted host code says igrt_gpu_*; which of the igrt_gpu_<driver>.h it includes decides what runs
 * it. All state is in handles that the model's context keeps. Commands run in order.
 */
#ifndef IGRT_GPU_H
#define IGRT_GPU_H

#include "igrt_cuda.h"

typedef igrt_cu igrt_gpu;
typedef igrt_cu_mem igrt_gpu_mem;

static inline igrt_status igrt_gpu_open(igrt_gpu *g, const igrt_config *config)
{
    return igrt_cu_open(g, config->device, config->stream, config->gpu);
}

/* What made init fail, where nothing else has told. */
static inline void igrt_gpu_explain(const igrt_gpu *g, igrt_status status, igrt_fault *fault)
{
    if (!fault->what && (status == IGRT_ERR_DEVICE || status == IGRT_ERR_BUILD))
        *fault = (igrt_fault){.what = igrt_cu_why(g), .value = g->error, .greatest = -1};
}

/* The program: the first of n images (cubins, PTX) that is for this device. What becomes of
 * subnormal numbers they say themselves. */
static inline igrt_status igrt_gpu_load(igrt_gpu *g, const char *const *image, int n, int flush,
                                        void **program)
{
    igrt_status status = IGRT_ERR_BUILD;
    (void)flush;
    for (int i = 0; i < n && status == IGRT_ERR_BUILD; i++)
        status = igrt_cu_module(g, image[i], program, NULL, 0);
    if (status == IGRT_OK)
        g->error = 0; /* those before it were for others */
    return status;
}

/* shared: bytes that a launch asks for, for each group.  With IGRT_EVENLY: a processor's memory is
 * divided among groups and the first cache as for all who say so, since it has to be empty before
 * it is divided otherwise. */
#define IGRT_EVENLY 0x80000000u
static inline igrt_status igrt_gpu_find(igrt_gpu *g, void *program, const char *name,
                                        unsigned shared, void **kernel)
{
    enum { PREFERRED_SHARED_MEMORY_CARVEOUT = 9, SHARE = 70 }; /* %, of 228 KB 164 */
    const igrt_status status = igrt_cu_kernel(g, program, name, shared & ~IGRT_EVENLY, kernel);
    if (!status && shared & IGRT_EVENLY) /* a hint */
        (void)g->cuFuncSetAttribute(*kernel, PREFERRED_SHARED_MEMORY_CARVEOUT, SHARE);
    return status;
}

/* Device memory, filled from data if not NULL. */
static inline igrt_status igrt_gpu_alloc(igrt_gpu *g, size_t bytes, const void *data,
                                         igrt_gpu_mem *mem)
{
    return igrt_cu_buffer(g, bytes, data, mem);
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
    const unsigned block[3] = {group ? (unsigned)group : items == 1 ? 1 : 128, 1, 1};
    const int64_t groups = (items + block[0] - 1) / block[0];
    const unsigned grid[3] = {(unsigned)groups, 1, 1};
    (void)nmem;
    (void)nint;
    (void)n;
    if (items <= 0)
        return IGRT_OK;
    if (groups > INT32_MAX)
        return IGRT_ERR_DEVICE;
    return igrt_cu_launch(g, kernel, grid, block, shared, args);
}

/* What boxes of memory are taken out of: of so many axes, the first of which lies side by side,
 * extents in elements of 2 bytes, strides in bytes. A launch takes it as an argument. */
typedef igrt_cu_map igrt_gpu_map;
static inline igrt_status igrt_gpu_make_map(igrt_gpu *g, igrt_gpu_map *map, igrt_gpu_mem mem,
                                            size_t offset, int bytes, int rank,
                                            const uint64_t *extent, const uint64_t *stride,
                                            const uint64_t *box)
{
    if (mem)
        return igrt_cu_make_map(g, map, mem + offset, bytes, rank, extent, stride, box);
    /* the caller has not said yet where its memory is: what is recorded before that does not run */
    *map = (igrt_gpu_map){{0}};
    return IGRT_OK;
}

/* The same for windows: box has the elements of the first axis, and how many positions; low, high,
 * step by axis between the first and the last one. */
static inline igrt_status igrt_gpu_make_window_map(igrt_gpu *g, igrt_gpu_map *map, igrt_gpu_mem mem,
                                                   size_t offset, int bytes, int rank,
                                                   const uint64_t *extent, const uint64_t *stride,
                                                   const uint64_t *box, const int *low,
                                                   const int *high, const int *step)
{
    if (mem)
        return igrt_cu_make_window_map(g, map, mem + offset, bytes, rank, extent, stride, box, low,
                                       high, step);
    *map = (igrt_gpu_map){{0}};
    return IGRT_OK;
}

static inline igrt_status igrt_gpu_finish(igrt_gpu *g)
{
    return igrt_cu_finish(g);
}

/* Without wait the host's memory stays in use until igrt_gpu_finish. */
static inline igrt_status igrt_gpu_write(igrt_gpu *g, igrt_gpu_mem to, size_t offset,
                                         const void *data, size_t bytes, int wait)
{
    const igrt_status status = igrt_cu_write(g, to + offset, data, bytes);
    return status == IGRT_OK && bytes && wait ? igrt_gpu_finish(g) : status;
}

static inline igrt_status igrt_gpu_read(igrt_gpu *g, igrt_gpu_mem from, size_t offset, void *data,
                                        size_t bytes, int wait)
{
    const igrt_status status = igrt_cu_read(g, from + offset, data, bytes);
    return status == IGRT_OK && bytes && wait ? igrt_gpu_finish(g) : status;
}

static inline igrt_status igrt_gpu_copy(igrt_gpu *g, igrt_gpu_mem to, size_t to_offset,
                                        igrt_gpu_mem from, size_t from_offset, size_t bytes)
{
    return igrt_cu_copy(g, from + from_offset, to + to_offset, bytes);
}

static inline igrt_status igrt_gpu_zero(igrt_gpu *g, igrt_gpu_mem mem, size_t bytes)
{
    return igrt_cu_zero(g, mem, bytes);
}

/* The device's time between the two, in nanoseconds; 0 if there is none. End waits. */
static inline igrt_status igrt_gpu_time_begin(igrt_gpu *g)
{
    return igrt_cu_time_begin(g);
}

static inline igrt_status igrt_gpu_time_end(igrt_gpu *g, uint64_t *nanoseconds)
{
    return igrt_cu_time_end(g, nanoseconds);
}

/* What is enqueued between begin and end does not run, but becomes a record, which play enqueues as
 * one launch. One that there is already is of the same steps: between update's begin and end it
 * gets what has changed in them; where end fails, it is to be recorded anew. */
typedef igrt_cu_graph igrt_gpu_record;
static inline igrt_status igrt_gpu_record_begin(igrt_gpu *g, igrt_gpu_record *record)
{
    return igrt_cu_capture_begin(g, record);
}

static inline igrt_status igrt_gpu_record_end(igrt_gpu *g)
{
    return igrt_cu_capture_end(g);
}

static inline igrt_status igrt_gpu_update_begin(igrt_gpu *g, igrt_gpu_record *record, int sizes)
{
    g->sizes = sizes;
    return igrt_cu_update_begin(g, record);
}

/* Does the record have the next launch already?  Where sizes alone have changed (sizes of
 * update_begin), and it depends on none. */
static inline int igrt_gpu_keeps(igrt_gpu *g)
{
    if (!g->updates || !g->sizes)
        return 0;
    g->at = g->at < 0 || g->at == g->updates->nodes ? -1 : g->at + 1;
    return 1;
}

static inline igrt_status igrt_gpu_update_end(igrt_gpu *g)
{
    return igrt_cu_update_end(g);
}

static inline int igrt_gpu_is_recorded(const igrt_gpu_record *record)
{
    return record->ready != NULL;
}

static inline igrt_status igrt_gpu_play(igrt_gpu *g, const igrt_gpu_record *record)
{
    return igrt_cu_replay(g, record);
}

static inline void igrt_gpu_free_record(igrt_gpu *g, igrt_gpu_record *record)
{
    igrt_cu_free_graph(g, record);
}

/* Steps behind a condition, a byte of mem: igrt_cu_if() and its like. */
static inline igrt_status igrt_gpu_if(igrt_gpu *g, igrt_gpu_mem mem, size_t offset, int both,
                                      unsigned char *holds)
{
    return igrt_cu_if(g, mem + offset, both, holds);
}

static inline igrt_status igrt_gpu_else(igrt_gpu *g, unsigned char *holds)
{
    return igrt_cu_else(g, holds);
}

static inline igrt_status igrt_gpu_end_if(igrt_gpu *g)
{
    return igrt_cu_end_if(g);
}

static inline igrt_status igrt_gpu_while(igrt_gpu *g, igrt_gpu_mem mem, size_t offset, int64_t i,
                                         unsigned char *holds)
{
    return igrt_cu_while(g, mem + offset, i, holds);
}

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
    igrt_cu_free_buffer(g, mem);
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
    igrt_cu_free_module(g, program);
    igrt_cu_close(g);
}

#endif
