/*
 * igrt_comm.h - what the processes of a run have together.
 */
#ifndef IGRT_COMM_H
#define IGRT_COMM_H

#include "igrt.h"

#ifdef IGRT_FUNCTIONS
/* The sum over all processes, or their mean, in place of what this one has; in a run of one process
 * that is it. Means are of f32 or f64. */
igrt_status igrt_comm_reduce(const igrt_config *config, void *data, size_t count, igrt_dtype dtype,
                             int mean);
#endif
#endif
