/*
 * driver_timeline.h - one run as a timeline: when each step ran, and each part of it in which
 * thread.
 */
#ifndef IGRT_DRIVER_TIMELINE_H
#define IGRT_DRIVER_TIMELINE_H

#include "igrt_pool.h"

/* A step, or a part of one. */
typedef struct igrt_span {
    const char *name;
    int step;
    int64_t part; /* -1: the whole step */
    uint64_t begin, end;
} igrt_span;

/* What one thread has done. */
typedef struct igrt_timeline_row {
    igrt_span *span;
    uint64_t begin;       /* of the task that is running */
    size_t n, room, open; /* open: the first part whose step is not known yet */
} igrt_timeline_row;

typedef struct igrt_timeline {
    int recording, failed; /* failed: there was no memory for all of it */
    uint64_t last;         /* moment of the clock of steps */
    igrt_timeline_row row[IGRT_POOL_MAX];
} igrt_timeline;

/* Sets clock and profile of a config, and watches its pool, which has been started. */
void igrt_timeline_attach(igrt_timeline *t, igrt_pool *pool, igrt_config *config);

/* Writes what was recorded as Chrome's trace events (chrome://tracing, ui.perfetto.dev); 0 if that
 * failed. */
int igrt_timeline_write(const igrt_timeline *t, const char *model, const char *path);
void igrt_timeline_free(igrt_timeline *t);

#endif
