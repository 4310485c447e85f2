/* SPDX-License-Identifier: MIT-0 */
/*
 * igrt_aside.c - see igrt_aside.h.
 */
#include "igrt_aside.h"

#include <dlfcn.h>
#include <string.h>

/* From cuda.h. */
enum { CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DISABLE_TIMING = 2 };

static igrt_status aside_check(igrt_cu *gpu, int error)
{
    if (!error)
        return IGRT_OK;
    gpu->error = error;
    return IGRT_ERR_DEVICE;
}

static int aside_record(igrt_cu *gpu, void **event, void *stream)
{
    const int e = *event ? 0 : gpu->cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    return e ? e : gpu->cuEventRecord(*event, stream);
}

/* Is there a stream for them?  Where the driver has no such waits there is none. */
static int aside_ready(igrt_cu *gpu, igrt_aside *a)
{
    if (a->stream)
        return 1;
    void *const wait = dlsym(gpu->library, "cuStreamWaitEvent");
    if (!wait || gpu->cuStreamCreate(&a->stream, CU_STREAM_NON_BLOCKING)) {
        a->stream = NULL;
        return 0;
    }
    memcpy(&a->cuStreamWaitEvent, &wait, sizeof wait);
    return 1;
}

igrt_status igrt_aside_begin(igrt_cu *gpu, igrt_aside *a)
{
    if (!gpu->captures || gpu->cuCtxSetCurrent(gpu->context) || !aside_ready(gpu, a))
        return IGRT_OK;
    int e = aside_record(gpu, &a->begun, gpu->stream);
    if (!e)
        e = a->cuStreamWaitEvent(a->stream, a->begun, 0);
    if (e)
        return aside_check(gpu, e);
    a->outside = gpu->stream;
    gpu->stream = a->stream;
    gpu->behind = 1; /* what comes next does not begin beside what the stream has */
    return IGRT_OK;
}

igrt_status igrt_aside_end(igrt_cu *gpu, igrt_aside *a, void **mark)
{
    if (!a->outside)
        return IGRT_OK;
    const int e = mark ? aside_record(gpu, mark, a->stream) : 0;
    gpu->stream = a->outside;
    a->outside = NULL;
    return aside_check(gpu, e);
}

igrt_status igrt_aside_wait(igrt_cu *gpu, const igrt_aside *a, void *mark)
{
    if (!gpu->captures || !mark)
        return IGRT_OK;
    gpu->behind = 1;
    return aside_check(gpu, a->cuStreamWaitEvent(gpu->stream, mark, 0));
}

igrt_status igrt_aside_join(igrt_cu *gpu, igrt_aside *a)
{
    const igrt_status ended = igrt_aside_end(gpu, a, NULL);
    if (!gpu->captures || !a->stream || ended)
        return ended;
    const int e = aside_record(gpu, &a->all, a->stream);
    return e ? aside_check(gpu, e) : igrt_aside_wait(gpu, a, a->all);
}

void igrt_aside_free(igrt_cu *gpu, igrt_aside *a, int n, void **mark)
{
    if (!a->stream || gpu->cuCtxSetCurrent(gpu->context))
        return;
    for (int i = 0; i < n; i++)
        if (mark[i])
            gpu->cuEventDestroy(mark[i]);
    if (a->begun)
        gpu->cuEventDestroy(a->begun);
    if (a->all)
        gpu->cuEventDestroy(a->all);
    gpu->cuStreamDestroy(a->stream);
}
