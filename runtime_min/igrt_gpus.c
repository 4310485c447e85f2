/*
 * igrt_gpus.c - see igrt_gpus.h.
 */
#include "igrt_gpus.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* From cuda.h. */
enum {
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CU_EVENT_DISABLE_TIMING = 2
};

static int gpus_find(const igrt_cu *cu, igrt_gpus *all)
{
    void *const can = dlsym(cu->library, "cuDeviceCanAccessPeer"),
                *const enable = dlsym(cu->library, "cuCtxEnablePeerAccess"),
                *const wait = dlsym(cu->library, "cuStreamWaitEvent");
    if (!can || !enable || !wait)
        return 0;
    memcpy(&all->cuDeviceCanAccessPeer, &can, sizeof can);
    memcpy(&all->cuCtxEnablePeerAccess, &enable, sizeof enable);
    memcpy(&all->cuStreamWaitEvent, &wait, sizeof wait);
    return 1;
}

/* The name of a device in a list, "0,1"; without a list its number. */
static void gpus_name(const char *list, int device, char *name, size_t bytes)
{
    size_t n = 0;
    if (!list || !*list) {
        (void)snprintf(name, bytes, "%d", device);
        return;
    }
    for (; device > 0 && *list; list++)
        device -= *list == ',';
    for (; list[n] && list[n] != ',' && n + 1 < bytes; n++)
        name[n] = list[n];
    name[n] = 0;
    if (!n) /* the list ends: there is no such device */
        (void)snprintf(name, bytes, "none");
}

static igrt_status gpus_fail(igrt_fault *fault, int error, const char *what)
{
    *fault = (igrt_fault){.what = what, .value = error, .greatest = -1};
    return IGRT_ERR_DEVICE;
}

/* Each may read and write what the other one has, where it can. */
static void gpus_join(igrt_gpus *all, igrt_cu *a, const igrt_cu *b)
{
    int can = 0;
    if (a->context == b->context)
        return;
    int e = all->cuDeviceCanAccessPeer(&can, a->device, b->device);
    if (!e && can)
        e = a->cuCtxSetCurrent(a->context);
    if (!e && can)
        e = all->cuCtxEnablePeerAccess(b->context, 0);
    if (!can || (e && e != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED))
        all->hosted = 1;
}

static igrt_cu *gpus_at(igrt_cu *first, igrt_cu *beside, int device)
{
    return device ? &beside[device - 1] : first;
}

/* Device i; where an earlier one is the same GPU, in that one's stream. */
static igrt_status gpus_open(igrt_gpus *all, igrt_cu *first, igrt_cu *beside, int i,
                             const igrt_config *config)
{
    char name[64];
    igrt_cu *const gpu = gpus_at(first, beside, i);
    gpus_name(config->gpu, i, name, sizeof name);
    igrt_status status = igrt_cu_open(gpu, NULL, i ? NULL : config->stream, name);
    for (int j = 0; j < i && status == IGRT_OK; j++) {
        const igrt_cu *const same = gpus_at(first, beside, j);
        if (same->context != gpu->context)
            continue;
        igrt_cu_close(gpu);
        status = igrt_cu_open(gpu, same->context, same->stream, NULL);
        gpu->device = same->device;
        all->shared = 1;
        break;
    }
    return status;
}

igrt_status igrt_gpus_open(igrt_gpus *all, igrt_cu *first, igrt_cu *beside, int n_devices,
                           const igrt_config *config, igrt_fault *fault)
{
    igrt_status status = IGRT_OK;
    memset(all, 0, sizeof *all);
    memset(first, 0, sizeof *first);
    memset(beside, 0, (size_t)(2 * n_devices - 1) * sizeof *beside);
    if (config->device) {
        *fault = (igrt_fault){.what = "a context is of one GPU, and the model is for several: "
                                      "config.gpu has their names",
                              .greatest = -1};
        return IGRT_ERR_CONFIG;
    }
    for (int i = 0; i < n_devices && status == IGRT_OK; i++) {
        status = gpus_open(all, first, beside, i, config);
        const int error = gpus_at(first, beside, i)->error;
        if (status != IGRT_OK && i && error == CUDA_ERROR_NO_DEVICE)
            (void)gpus_fail(fault, error, "there are fewer GPUs than the model is for");
    }
    if (status == IGRT_OK && !gpus_find(first, all))
        return gpus_fail(fault, 0, "the CUDA driver is too old for several GPUs");
    for (int i = 0; i < n_devices * n_devices && status == IGRT_OK; i++)
        gpus_join(all, gpus_at(first, beside, i / n_devices),
                  gpus_at(first, beside, i % n_devices));
    if (all->hosted &&
        (!first->cuMemHostAlloc || !first->cuMemHostGetDevicePointer || !first->cuMemFreeHost))
        return gpus_fail(fault, 0,
                         "the GPUs do not reach each other's memory, and the CUDA driver "
                         "is too old to let them meet in the host's");
    first->unrecorded = all->hosted;
    for (int i = 0; i < n_devices && status == IGRT_OK; i++)
        status = igrt_cu_open(&beside[n_devices - 1 + i], gpus_at(first, beside, i)->context, NULL,
                              NULL);
    return status;
}

const igrt_cu *igrt_gpus_failed(const igrt_cu *first, const igrt_cu *beside, int n_devices)
{
    for (int i = 0; i < 2 * n_devices - 1 && !first->error; i++)
        if (beside[i].error)
            return &beside[i];
    return first;
}

static igrt_status gpus_check(igrt_cu *gpu, int error)
{
    if (!error)
        return IGRT_OK;
    gpu->error = error;
    return IGRT_ERR_DEVICE;
}

/* No GPU is at work on it. Host memory has one address everywhere (unified addressing). */
static igrt_status slot_clear(const igrt_gpus *all, igrt_cu *gpu, igrt_cu_mem slot, size_t bytes)
{
    if (all->hosted) {
        memset((void *)(uintptr_t)slot, 0, bytes);
        return IGRT_OK;
    }
    const igrt_status status = igrt_cu_zero(gpu, slot, bytes);
    return status == IGRT_OK ? igrt_cu_finish(gpu) : status;
}

igrt_status igrt_gpus_slot(const igrt_gpus *all, igrt_cu *gpu, size_t bytes, igrt_cu_mem *slot)
{
    igrt_status status = IGRT_OK;
    if (all->hosted) {
        void *host = NULL;
        igrt_cu_ptr seen = 0;
        int e = gpu->cuCtxSetCurrent(gpu->context);
        if (!e)
            e = gpu->cuMemHostAlloc(&host, bytes,
                                    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
        if (!e)
            e = gpu->cuMemHostGetDevicePointer(&seen, host, 0);
        *slot = (igrt_cu_mem)(uintptr_t)host;
        status = gpus_check(gpu, !e && seen != *slot ? CUDA_ERROR_NOT_SUPPORTED : e);
    } else {
        status = igrt_cu_buffer(gpu, bytes, NULL, slot);
    }
    return status == IGRT_OK ? slot_clear(all, gpu, *slot, bytes) : status;
}

void igrt_gpus_free_slot(const igrt_gpus *all, igrt_cu *gpu, igrt_cu_mem slot)
{
    if (!slot || !gpu->context || gpu->cuCtxSetCurrent(gpu->context))
        return;
    if (all->hosted)
        gpu->cuMemFreeHost((void *)(uintptr_t)slot);
    else
        gpu->cuMemFree(slot);
}

void igrt_gpus_clear(const igrt_gpus *all, igrt_cu *first, igrt_cu *beside, int n_devices,
                     const igrt_cu_mem *slot, const size_t *bytes)
{
    if (first->captures || first->updates) /* nothing has run */
        return;
    for (int i = 0; i < 2 * n_devices; i++)
        (void)igrt_cu_finish(gpus_at(first, beside, i));
    for (int i = 0; i < n_devices; i++)
        if (slot[i])
            (void)slot_clear(all, gpus_at(first, beside, i), slot[i], bytes[i]);
}

void igrt_gpus_close(igrt_cu *beside, int n_devices)
{
    for (int i = 2 * n_devices - 2; i >= 0; i--)
        if (beside[i].library)
            igrt_cu_close(&beside[i]);
}

igrt_cu *igrt_gpus_turn(igrt_cu *from, igrt_cu *to, int timed)
{
    uint64_t none;
    if (from == to)
        return to;
    to->captures = from->captures;
    to->updates = from->updates;
    to->at = from->at;
    to->sizes = from->sizes;
    from->captures = from->updates = NULL;
    if (to->updates) /* a node's kernel is of the context that is current */
        (void)to->cuCtxSetCurrent(to->context);
    if (timed) {
        (void)igrt_cu_time_end(from, &none);
        (void)igrt_cu_time_begin(to);
    }
    return to;
}

igrt_status igrt_gpus_mark(igrt_cu *gpu, void **mark)
{
    if (gpu->updates)
        return IGRT_OK;
    int e = gpu->cuCtxSetCurrent(gpu->context);
    if (!e && !*mark)
        e = gpu->cuEventCreate(mark, CU_EVENT_DISABLE_TIMING);
    if (!e)
        e = gpu->cuEventRecord(*mark, gpu->stream);
    return gpus_check(gpu, e);
}

igrt_status igrt_gpus_wait(const igrt_gpus *all, igrt_cu *gpu, void *mark)
{
    if (gpu->updates)
        return IGRT_OK;
    int e = gpu->cuCtxSetCurrent(gpu->context);
    if (!e)
        e = all->cuStreamWaitEvent(gpu->stream, mark, 0);
    gpu->behind = 1; /* what comes next does not begin beside what the stream has */
    return gpus_check(gpu, e);
}

void igrt_gpus_free_mark(igrt_cu *gpu, void *mark)
{
    if (mark && gpu->context && !gpu->cuCtxSetCurrent(gpu->context))
        gpu->cuEventDestroy(mark);
}

int igrt_gpus_apart(const igrt_gpus *all, const igrt_cu *gpu)
{
    return all->shared || (!gpu->captures && !gpu->updates);
}

igrt_crossings igrt_gpus_crossings(int n, const igrt_crossing *x)
{
    igrt_crossings all = {.x = {{0}}};
    for (int i = 0; i < n; i++)
        all.x[i] = x[i];
    return all;
}

igrt_status igrt_gpus_cross(igrt_cu *gpu, void *kernel, int n, const igrt_crossing *x)
{
    enum { WORD = 8 };
    igrt_crossings all = igrt_gpus_crossings(n, x);
    void *args[] = {&all};
    uint32_t words = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t of = x[i].bytes / WORD + (x[i].bytes % WORD != 0);
        words = words > of ? words : of;
    }
    const unsigned groups = (words + IGRT_CROSSING_ITEMS - 1) / IGRT_CROSSING_ITEMS;
    const unsigned grid[3] = {groups, 1, 1}, block[3] = {IGRT_CROSSING_ITEMS, 1, 1};
    return igrt_cu_launch(gpu, kernel, grid, block, 0, args);
}
