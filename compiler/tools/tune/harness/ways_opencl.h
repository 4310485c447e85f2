/* ways_opencl.h - what tune_ways.c asks of an OpenCL device: kernels are enqueued one by one, and
 * each step has a time of its own.
 *
 * So many groups can take another kernel at once, and each is judged by the time of its own steps.
 * The driver compiles: a kernel is a program of its own, built when it is tried, and one that the
 * driver refuses is no fault of the others. */
#ifndef WAYS_OPENCL_H
#define WAYS_OPENCL_H

#include "../igrt_gpu_opencl.h"

enum {
    AT_ONCE = 8,
    BY_STEP = 1,
    TURNS = 11,
    RUNS = 100,
    LEAST_RUNS = 1,
    HANGS = 60,
    RECORD_RUNS = 0
};
static const double run_us = 20000;
static const double slow_us = 50000; /* a run of the network: then turns are fewer */
static const double gain = 0.01, lost = 0.03;
static const double least_share = 0.002;

typedef char Record; /* there is none: which kernels run is all that is to be swapped */

static void device_swap(model_ctx *ctx, Record *other)
{
    (void)ctx;
    (void)other;
}

static void device_stale(model_ctx *ctx, int stale)
{
    (void)ctx;
    (void)stale;
}

static void device_free(model_ctx *ctx, Record *r)
{
    (void)ctx;
    (void)r;
}

/* Builds the program of a kernel, unless that was done; it stays until the process ends. */
static int device_load(model_ctx *ctx, int kernel)
{
    const int way = kernel - MODEL_OWN_KERNELS;
    const int begin = model_way_part[way], n = model_way_part[way + 1] - begin;
    void *program = NULL;
    if (ctx->kernel[kernel])
        return 1;
    const char **text = malloc((size_t)(MODEL_PROGRAM_HEAD + n) * sizeof *text);
    if (!text)
        return 0;
    memcpy(text, model_program, MODEL_PROGRAM_HEAD * sizeof *text);
    memcpy(text + MODEL_PROGRAM_HEAD, model_way_program + begin, (size_t)n * sizeof *text);
    igrt_status status = igrt_gpu_load(&ctx->gpu, (const char *const *)text, MODEL_PROGRAM_HEAD + n,
                                       MODEL_FLUSH, &program);
    free(text);
    if (status == IGRT_OK)
        status =
            igrt_gpu_find(&ctx->gpu, program, model_kernel_name[kernel], 0, &ctx->kernel[kernel]);
    if (status != IGRT_OK || !model_way_subgroup[way])
        return status == IGRT_OK;
    status = igrt_gpu_require_subgroups(&ctx->gpu, ctx->kernel[kernel], model_way_subgroup[way],
                                        &ctx->fault);
    if (status == IGRT_OK)
        return 1;
    igrt_gpu_free_kernel(&ctx->gpu, ctx->kernel[kernel]);
    ctx->kernel[kernel] = NULL; /* or it would count as built the next time */
    return 0;
}

#endif
