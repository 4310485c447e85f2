/* ways_cuda.h - what tune_ways.c asks of a CUDA device: the network is recorded as one launch, and
 * the records run in turns. */
#ifndef WAYS_CUDA_H
#define WAYS_CUDA_H

#include "../igrt_gpu_cuda.h"

/* One group at a time, since what is timed is the whole: launches overlap, and a kernel has no time
 * of its own. */
enum {
    AT_ONCE = 1,
    BY_STEP = 0,
    TURNS = 11,
    RUNS = 10,
    LEAST_RUNS = 3,
    HANGS = 20,
    RECORD_RUNS = 2
};
static const double run_us = 2500;      /* of one record, before the other one's turn */
static const double slow_us = INFINITY; /* a run of the network: turns are as many for all */
static const double gain = 0.0015, lost = 0.003;
static const double least_share = 0; /* of the network: what has less is not tried */

typedef igrt_cu_graph Record;

static void device_swap(model_ctx *ctx, Record *other)
{
    const Record mine = ctx->record;
    ctx->record = *other;
    *other = mine;
}

/* The next run records anew; after two of them the record is no longer stale. */
static void device_stale(model_ctx *ctx, int stale)
{
    ctx->stale = stale;
}

static void device_free(model_ctx *ctx, Record *r)
{
    igrt_cu_free_graph(&ctx->gpu, r);
}

/* Loads the program of a kernel, unless that was done; it stays until the process ends. */
static int device_load(model_ctx *ctx, int kernel)
{
    const int way = kernel - MODEL_OWN_KERNELS;
    const int begin = model_way_part[way], n = model_way_part[way + 1] - begin;
    void *program = NULL;
    if (ctx->kernel[kernel])
        return 1;
    return igrt_gpu_load(&ctx->gpu, model_way_program + begin, n, MODEL_FLUSH, &program) ==
               IGRT_OK &&
           igrt_gpu_find(&ctx->gpu, program, model_kernel_name[kernel], model_way_shared[way],
                         &ctx->kernel[kernel]) == IGRT_OK;
}

#endif
