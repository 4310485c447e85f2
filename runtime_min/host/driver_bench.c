/*
 * driver_bench.c - how long the model takes: as a whole, step by step, and as a timeline of its
 * threads.
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "driver_session.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t driver_now(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void driver_note_step(void *user, int step, const char *name, uint64_t nanoseconds)
{
    Profile *p = user;
    if (step < 0)
        return;
    if (step >= p->room) {
        const int room = step * 2 + 64;
        void *grown = realloc(p->step, (size_t)room * sizeof *p->step);
        if (!grown)
            return;
        p->step = grown;
        p->room = room;
    }
    for (; p->n <= step; p->n++) {
        p->step[p->n].name = "";
        p->step[p->n].best = UINT64_MAX;
        p->step[p->n].sum = p->step[p->n].calls = 0;
    }
    p->step[step].name = name;
    p->step[step].sum += nanoseconds;
    p->step[step].calls++;
}

/* After a run: a step inside a loop has been called in each of its rounds. */
static void note_run(Profile *p)
{
    for (int i = 0; i < p->n; i++) {
        if (p->step[i].calls && p->step[i].sum < p->step[i].best)
            p->step[i].best = p->step[i].sum;
        p->step[i].sum = p->step[i].calls = 0;
    }
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Inputs and outputs go to the device, or (back: without what is in them) are let go of there. */
static int move_to_device(DriverSession *s, int back)
{
    const igrt_model *m = s->model;
    igrt_status status = IGRT_OK;
    for (int i = 0; i < m->n_inputs + m->n_outputs && status == IGRT_OK; i++) {
        const int input = i < m->n_inputs;
        const igrt_io *io = input ? &m->inputs[i] : &m->outputs[i - m->n_inputs];
        void *base = input ? s->inputs : s->outputs, *host = driver_pointer(base, io),
             *place = host;
        const size_t bytes = npy_count(io->max_dims, io->rank) * igrt_dtype_bytes(io->dtype);
        int64_t dims[IGRT_MAX_RANK] = {0};
        if (!host)
            continue;
        driver_set_pointer(base, io, NULL);
        if (back) {
            status = m->memory(s->ctx, 0, NULL, &place);
            continue;
        }
        driver_dims(base, io, dims);
        const size_t used = input ? npy_count(dims, io->rank) * igrt_dtype_bytes(io->dtype) : 0;
        char *whole =
            calloc(bytes ? bytes : 1, 1); /* what is on the device has the size of the bounds */
        if (whole && used)
            memcpy(whole, host, used);
        free(host);
        status = m->memory(s->ctx, bytes ? bytes : 1, whole, &place);
        free(whole);
        if (status == IGRT_OK)
            driver_set_pointer(base, io, place);
    }
    return status == IGRT_OK ? IGRT_EXIT_OK
                             : driver_fail(IGRT_EXIT_MODEL, "memory on the device: %s (status %d)",
                                           igrt_status_text(status), (int)status);
}

static int wait_for_device(DriverSession *s)
{
    const igrt_status status = s->model->wait(s->ctx);
    return status == IGRT_OK ? IGRT_EXIT_OK
                             : driver_fail(IGRT_EXIT_MODEL, "run: %s (status %d)",
                                           igrt_status_text(status), (int)status);
}

enum {
    RUNS_IN_FLIGHT = 20
}; /* of bench, with memory on the device: then the device never waits for the host */

int driver_bench(DriverSession *s)
{
    const int device = (s->config.flags & IGRT_ON_DEVICE) != 0, runs = device ? RUNS_IN_FLIGHT : 1;
    size_t n = 0, room = 1024;
    double *ms = malloc(room * sizeof *ms), sum = 0;
    int status = ms ? IGRT_EXIT_OK : driver_fail(IGRT_EXIT_MEMORY, "out of memory");
    if (status == IGRT_EXIT_OK && device)
        status = move_to_device(s, 0);
    if (status == IGRT_EXIT_OK)
        status = driver_run(s);
    if (status == IGRT_EXIT_OK && device)
        status = wait_for_device(s);
    const uint64_t begin = driver_now(NULL);
    const uint64_t limit = begin + (uint64_t)(s->options->seconds * 1e9);
    for (uint64_t t = begin; status == IGRT_EXIT_OK && (n < 3 || t < limit); n++) {
        if (n == room) {
            double *grown = realloc(ms, 2 * room * sizeof *ms);
            if (!grown)
                break;
            ms = grown;
            room *= 2;
        }
        const uint64_t t0 = driver_now(NULL);
        for (int i = 0; i < runs && status == IGRT_EXIT_OK; i++)
            status = driver_run(s);
        if (status == IGRT_EXIT_OK && device)
            status = wait_for_device(s);
        t = driver_now(NULL);
        ms[n] = (double)(t - t0) * 1e-6 / runs;
        sum += ms[n];
    }
    if (status == IGRT_EXIT_OK) {
        qsort(ms, n, sizeof *ms, compare_times);
        const char *target = s->model->target ? s->model->target(s->ctx) : NULL;
        const char *function = s->options->function;
        const double median = n % 2 ? ms[n / 2] : 0.5 * (ms[n / 2 - 1] + ms[n / 2]);
        printf("{\"model\": \"%s\", \"median_ms\": %.6f, \"min_ms\": %.6f, \"mean_ms\": %.6f, "
               "\"calls\": %zu, \"threads\": %d%s%s%s%s%s%s}\n",
               s->model->name, median, ms[0], sum / (double)n, n * (size_t)runs, s->config.threads,
               target ? ", \"target\": \"" : "", target ? target : "", target ? "\"" : "",
               function ? ", \"function\": \"" : "", function ? function : "",
               function ? "\"" : "");
    }
    free(ms);
    if (device && s->ready) {
        const int gone = move_to_device(s, 1);
        status = status == IGRT_EXIT_OK ? gone : status;
    }
    return status;
}

/* Of a model that is slow fewer runs tell as much: what disturbs one of its steps is short beside
 * it. */
int driver_profile(DriverSession *s)
{
    enum { LEAST_RUNS = 3, MOST_RUNS = 10 };
    Profile *p = &s->profile;
    int status = IGRT_EXIT_OK, n = 0;
    const uint64_t enough = driver_now(NULL) + 500000000u;
    for (; n < MOST_RUNS && (n < LEAST_RUNS || driver_now(NULL) < enough) && status == IGRT_EXIT_OK;
         n++) {
        status = driver_run(s);
        note_run(p);
    }
    if (status != IGRT_EXIT_OK)
        return status;
    uint64_t total = 0;
    for (int i = 0; i < p->n; i++)
        total += p->step[i].best == UINT64_MAX ? 0 : p->step[i].best;
    printf("step         ms       %%  name   (best of %d runs)\n", n);
    for (int i = 0; i < p->n; i++)
        if (p->step[i].best != UINT64_MAX)
            printf("%4d %10.6f  %6.2f  %s\n", i, (double)p->step[i].best * 1e-6,
                   total ? 100.0 * (double)p->step[i].best / (double)total : 0.0, p->step[i].name);
    printf(" sum %10.6f\n", (double)total * 1e-6);
    return IGRT_EXIT_OK;
}

/* The last of three runs, when caches and threads are warm. */
int driver_timeline(DriverSession *s)
{
    int status = IGRT_EXIT_OK;
    for (int i = 0; i < 3 && status == IGRT_EXIT_OK; i++) {
        s->timeline.recording = i == 2;
        status = driver_run(s);
    }
    if (status == IGRT_EXIT_OK &&
        !igrt_timeline_write(&s->timeline, s->model->name, s->options->timeline)) {
        driver_drop(s->options->timeline);
        status = driver_fail(IGRT_EXIT_OUTPUT, "%s: cannot be written", s->options->timeline);
    }
    return status;
}
