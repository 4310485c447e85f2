/*
 * igrt_wgsl_time.c - the device's clock. See igrt_wgsl_time.h.
 */
#include "igrt_wgsl_time.h"

enum { TIMESTAMP = 2, NONE = -1, BEGIN = 0, END = 1, TIMES = 2 };

static void make_clock(igrt_wg *wg)
{
    const WgQueries queries = {.type = TIMESTAMP, .count = TIMES};
    const WgBuffer buffer = {.usage = WG_QUERY | WG_COPY_SRC, .bytes = IGRT_WG_ALIGN};
    if (!wg->DeviceHasFeature(wg->device, WG_TIMESTAMPS))
        return;
    wg->clock.times.buffer = wg->DeviceCreateBuffer(wg->device, &buffer);
    wg->clock.times.bytes = IGRT_WG_ALIGN;
    if (wg->clock.times.buffer)
        wg->clock.set = wg->DeviceCreateQuerySet(wg->device, &queries);
}

void igrt_wg_free_clock(igrt_wg *wg)
{
    if (wg->clock.set)
        wg->QuerySetRelease(wg->clock.set);
    if (wg->clock.times.buffer)
        wg->BufferRelease(wg->clock.times.buffer);
    wg->clock.set = wg->clock.times.buffer = NULL;
}

void *igrt_wg_begin_pass(igrt_wg *wg, void *encoder)
{
    const int first = wg->clock.passes == 0;
    const WgTimes times = {
        .set = wg->clock.set, .begin = first ? BEGIN : (uint32_t)NONE, .end = END};
    const WgPass asked = {.times = &times};
    const int is_asked = wg->clock.passes >= 0;
    wg->clock.passes += is_asked;
    return wg->CommandEncoderBeginComputePass(encoder, is_asked ? &asked : NULL);
}

igrt_status igrt_wg_time_begin(igrt_wg *wg)
{
    if (!wg->clock.times.buffer)
        make_clock(wg);
    igrt_wg_submit(wg); /* ends the pass */
    wg->clock.passes = wg->clock.set ? 0 : -1;
    return IGRT_OK;
}

igrt_status igrt_wg_time_end(igrt_wg *wg, uint64_t *nanoseconds)
{
    uint64_t time[TIMES];
    const int passes = wg->clock.passes;
    *nanoseconds = 0;
    wg->clock.passes = -1;
    if (passes <= 0)
        return igrt_wg_finish(wg);
    igrt_wg_submit(wg);
    void *encoder = wg->DeviceCreateCommandEncoder(wg->device, NULL);
    wg->CommandEncoderResolveQuerySet(encoder, wg->clock.set, 0, TIMES, wg->clock.times.buffer, 0);
    void *commands = wg->CommandEncoderFinish(encoder, NULL);
    wg->QueueSubmit(wg->queue, 1, &commands);
    wg->CommandBufferRelease(commands);
    wg->CommandEncoderRelease(encoder);
    const igrt_status status = igrt_wg_read(wg, wg->clock.times, 0, time, sizeof time, 1);
    const double tick = wg->QueueGetTimestampPeriod ? wg->QueueGetTimestampPeriod(wg->queue) : 1;
    if (status == IGRT_OK && time[END] > time[BEGIN])
        *nanoseconds = (uint64_t)((double)(time[END] - time[BEGIN]) * tick);
    return status;
}
