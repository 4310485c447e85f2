/*
 * driver_timeline.c - records the steps of a run by the hooks of igrt_config and of the pool, and
 * writes them for a viewer.
 *
 * Steps come from the profile hook, after each of them, and the parts of a step that is shared out
 * from the pool, before and after each. Each thread writes to a row of its own, so nothing is
 * locked.
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "driver_timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The clock of the steps, which is read last where a step ends. */
static uint64_t step_clock(void *user)
{
    igrt_timeline *t = user;
    t->last = now();
    return t->last;
}

static igrt_span *add_span(igrt_timeline_row *row)
{
    if (row->n == row->room) {
        const size_t room = row->room ? 2 * row->room : 256;
        igrt_span *grown = realloc(row->span, room * sizeof *grown);
        if (!grown)
            return NULL;
        row->span = grown;
        row->room = room;
    }
    return &row->span[row->n++];
}

static void watch_task(void *user, int64_t i, int worker, int end)
{
    igrt_timeline *t = user;
    igrt_timeline_row *row = &t->row[worker];
    if (!end) {
        row->begin = now();
        return;
    }
    const uint64_t moment = now();
    igrt_span *span = t->recording ? add_span(row) : NULL;
    if (span)
        *span = (igrt_span){"", -1, i, row->begin, moment};
}

/* After a step: the parts that have been timed since the last one are its own. */
static void step_done(void *user, int step, const char *name, uint64_t nanoseconds)
{
    igrt_timeline *t = user;
    const uint64_t end = t->last; /* not now: its parts would begin before it */
    if (!t->recording)
        return;
    for (int w = 0; w < IGRT_POOL_MAX; w++) {
        igrt_timeline_row *row = &t->row[w];
        for (; row->open < row->n; row->open++) {
            row->span[row->open].name = name;
            row->span[row->open].step = step;
        }
    }
    igrt_span *span = add_span(&t->row[0]);
    t->failed |= !span;
    if (span)
        *span = (igrt_span){name, step, -1, end - nanoseconds, end};
    t->row[0].open = t->row[0].n;
}

void igrt_timeline_attach(igrt_timeline *t, igrt_pool *pool, igrt_config *config)
{
    config->clock = step_clock;
    config->profile = step_done;
    config->user = t;
    pool->watch_user = t;
    pool->watch = watch_task;
}

static uint64_t first_moment(const igrt_timeline *t)
{
    uint64_t first = UINT64_MAX;
    for (int w = 0; w < IGRT_POOL_MAX; w++)
        for (size_t i = 0; i < t->row[w].n; i++)
            if (t->row[w].span[i].begin < first)
                first = t->row[w].span[i].begin;
    return first;
}

/* Threads count from 1: Perfetto takes 0 for the thread whose number is the process's. */
int igrt_timeline_write(const igrt_timeline *t, const char *model, const char *path)
{
    const uint64_t first = first_moment(t);
    FILE *f = fopen(path, "w");
    if (!f)
        return 0;
    fprintf(f,
            "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
            "{\"ph\": \"M\", \"pid\": 1, \"tid\": 1, \"name\": \"process_name\", \"args\": "
            "{\"name\": \"%s\"}}",
            model);
    for (int w = 0; w < IGRT_POOL_MAX; w++) {
        const igrt_timeline_row *row = &t->row[w];
        if (row->n)
            fprintf(f,
                    ",\n{\"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"name\": \"thread_name\", "
                    "\"args\": {\"name\": \"thread %d\"}}",
                    w + 1, w);
        for (size_t i = 0; i < row->n; i++) {
            const igrt_span *s = &row->span[i];
            fprintf(f,
                    ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, "
                    "\"cat\": \"%s\", \"name\": \"%s\", "
                    "\"args\": {\"step\": %d",
                    w + 1, (double)(s->begin - first) * 1e-3, (double)(s->end - s->begin) * 1e-3,
                    s->part < 0 ? "step" : "part", s->name, s->step);
            if (s->part >= 0)
                fprintf(f, ", \"part\": %lld", (long long)s->part);
            fprintf(f, "}}");
        }
    }
    fprintf(f, "\n]}\n");
    const int ok = !ferror(f);
    return !fclose(f) && ok && !t->failed;
}

void igrt_timeline_free(igrt_timeline *t)
{
    for (int w = 0; w < IGRT_POOL_MAX; w++)
        free(t->row[w].span);
}
