/*
 * igrt_comm_cuda.c - see igrt_comm_cuda.h.
 */
#include "igrt_comm_cuda.h"

igrt_status igrt_cu_all_reduce(igrt_cu *cu, const igrt_comm *comm, igrt_cu_ptr data, size_t count,
                               igrt_dtype dtype, int mean)
{
    if (!comm || comm->size < 2 || !count)
        return IGRT_OK;
    if (cu->captures && !data) /* recorded before it is known where the caller has it: not run */
        return IGRT_OK;
    if (cu->updates) /* the copy has told that this graph is to be recorded anew */
        return IGRT_OK;
    if (!comm->all_reduce_in ||
        comm->all_reduce_in(comm->user, (void *)(uintptr_t)data, count, dtype, mean, cu->stream))
        return IGRT_ERR_COMM;
    return IGRT_OK;
}
