/*
 * igrt_devices.c - see igrt_devices.h.
 *
 * Each thread runs what is ready of any device, its own first, so all segments are run however many
 * threads there are at the moment: no thread has to be there for another one to get on. A device is
 * one thread's at a time.
 */
#include "igrt_devices.h"

#if defined(__GNUC__) && (defined(__unix__) || defined(__APPLE__))
#include <sched.h>

typedef struct DevicesTask {
    const igrt_devices *d;
    const void *arg;
    uint64_t fp_mode;
    int status;
    /* by device: taken by a thread; its next segment's number; how many are done */
    int busy[IGRT_MAX_DEVICES], next[IGRT_MAX_DEVICES], done[IGRT_MAX_DEVICES];
} DevicesTask;

static int devices_get(const int *x)
{
    return __atomic_load_n(x, __ATOMIC_ACQUIRE);
}

static void devices_set(int *x, int to)
{
    __atomic_store_n(x, to, __ATOMIC_RELEASE);
}

/* The number of the device's next segment, from the one at hand; n: none is left. */
static int devices_next(const igrt_devices *d, int device, int from)
{
    while (from < d->n && d->device[from] != device)
        from++;
    return from;
}

static int devices_ready(const DevicesTask *t, int segment)
{
    const int *waits = t->d->waits + (size_t)segment * (size_t)t->d->n_devices;
    for (int i = 0; i < t->d->n_devices; i++)
        if (devices_get(&t->done[i]) < waits[i])
            return 0;
    return 1;
}

/* Runs what is ready of a device that no other thread has; whether there was anything. */
static int devices_advance(DevicesTask *t, int device)
{
    int moved = 0, segment;
    if (__atomic_exchange_n(&t->busy[device], 1, __ATOMIC_ACQUIRE))
        return 0;
    while ((segment = t->next[device]) < t->d->n && !devices_get(&t->status) &&
           devices_ready(t, segment)) {
        const igrt_status status = t->d->run(t->arg, segment);
        if (status != IGRT_OK)
            devices_set(&t->status, (int)status);
        devices_set(&t->next[device], devices_next(t->d, device, segment + 1));
        devices_set(&t->done[device], t->done[device] + 1);
        moved = 1;
    }
    devices_set(&t->busy[device], 0);
    return moved;
}

static void devices_work(void *task, int64_t i, int worker)
{
    DevicesTask *t = task;
    const int n = t->d->n_devices;
    const uint64_t before = igrt_fp_mode();
    int left = 1, idle = 0;
    (void)worker;
    igrt_fp_restore(t->fp_mode);
    while (left && !devices_get(&t->status)) {
        int moved = 0;
        left = 0;
        for (int k = 0; k < n && !moved; k++)
            moved = devices_advance(t, (int)((i + k) % n));
        for (int k = 0; k < n; k++)
            left |= devices_get(&t->next[k]) < t->d->n;
        idle = moved ? 0 : idle + 1;
        if (idle > 1000) /* there may be fewer cores than threads */
            (void)sched_yield();
    }
    igrt_fp_restore(before);
}

static igrt_status devices_threads(const igrt_config *config, const igrt_devices *d,
                                   const void *arg)
{
    DevicesTask t = {.d = d, .arg = arg, .fp_mode = igrt_fp_mode()};
    const int threads = config->threads < d->n_devices ? config->threads : d->n_devices;
    for (int i = 0; i < d->n_devices; i++)
        t.next[i] = devices_next(d, i, 0);
    config->parallel_for(config->parallel_user, devices_work, &t, threads);
    return (igrt_status)t.status;
}
#else
static igrt_status devices_threads(const igrt_config *config, const igrt_devices *d,
                                   const void *arg)
{
    (void)config;
    for (int i = 0; i < d->n; i++) {
        const igrt_status status = d->run(arg, i);
        if (status != IGRT_OK)
            return status;
    }
    return IGRT_OK;
}
#endif

igrt_status igrt_devices_run(const igrt_config *config, const igrt_devices *d, const void *arg)
{
    if (config->threads > 1 && !config->profile && !config->stop)
        return devices_threads(config, d, arg);
    for (int i = 0; i < d->n; i++) {
        const igrt_status status = d->run(arg, i);
        if (status != IGRT_OK)
            return status;
    }
    return IGRT_OK;
}
