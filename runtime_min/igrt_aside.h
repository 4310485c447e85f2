/* SPDX-License-Identifier: MIT-0 */
/*
 * igrt_aside.h - steps that run beside the others (CUDA).
 *
 * While a run is recorded, what stands between begin and end goes to a stream of its own, behind
 * all that was enqueued before: the record becomes a graph with two branches. Outside of a record
 * there is one stream, and all of it in order.
 */
#ifndef IGRT_ASIDE_H
#define IGRT_ASIDE_H

#include "igrt_cuda.h"

/* Cleared: nothing has been aside. */
typedef struct igrt_aside {
    void *stream, *begun, *all; /* events: where they begin, and of all of them */
    void *outside;              /* the stream around them; NULL: they are not being enqueued */
    int (*cuStreamWaitEvent)(void *, void *, unsigned);
} igrt_aside;

#ifdef IGRT_FUNCTIONS
igrt_status igrt_aside_begin(igrt_cu *gpu, igrt_aside *a);
/* mark, if given: what igrt_aside_wait() waits for. */
igrt_status igrt_aside_end(igrt_cu *gpu, igrt_aside *a, void **mark);
/* What comes next begins when all up to the mark is done. */
igrt_status igrt_aside_wait(igrt_cu *gpu, const igrt_aside *a, void *mark);
/* The same of all that was aside; after an error among it, too. */
igrt_status igrt_aside_join(igrt_cu *gpu, igrt_aside *a);
void igrt_aside_free(igrt_cu *gpu, igrt_aside *a, int n, void **mark);
#endif
#endif
