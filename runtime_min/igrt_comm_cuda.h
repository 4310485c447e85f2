/*
 * igrt_comm_cuda.h - what the processes of a run have together, each in the memory of its GPU.
 */
#ifndef IGRT_COMM_CUDA_H
#define IGRT_COMM_CUDA_H

#include "igrt.h"
#include "igrt_cuda.h"

#ifdef IGRT_FUNCTIONS
/* Enqueued behind a copy to `data`: the sum over all processes, or their mean, in its place; in a
 * run of one process that is it. */
igrt_status igrt_cu_all_reduce(igrt_cu *cu, const igrt_comm *comm, igrt_cu_ptr data, size_t count,
                               igrt_dtype dtype, int mean);
#endif
#endif
