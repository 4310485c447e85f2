/*
 * igrt_gpu_asks.h - steps behind a condition, on a device whose host asks for the condition's
 * value.
 *
 * For an igrt_gpu_<driver>.h to include, behind its igrt_gpu_read(). */
#ifndef IGRT_GPU_ASKS_H
#define IGRT_GPU_ASKS_H

/* Steps behind a condition, a byte of mem: *holds is set where they, and not those of else, are to
 * be enqueued. The host asks, and waits. */
static inline igrt_status igrt_gpu_if(igrt_gpu *g, igrt_gpu_mem mem, size_t offset, int both,
                                      unsigned char *holds)
{
    (void)both;
    return igrt_gpu_read(g, mem, offset, holds, 1, 1);
}

static inline igrt_status igrt_gpu_else(igrt_gpu *g, unsigned char *holds)
{
    (void)g;
    (void)holds;
    return IGRT_OK;
}

static inline igrt_status igrt_gpu_end_if(igrt_gpu *g)
{
    (void)g;
    return IGRT_OK;
}

static inline igrt_status igrt_gpu_while(igrt_gpu *g, igrt_gpu_mem mem, size_t offset, int64_t i,
                                         unsigned char *holds)
{
    (void)i;
    return igrt_gpu_read(g, mem, offset, holds, 1, 1);
}

#endif
