/*
 * igrt_comm.c - see igrt_comm.h.
 */
#include "igrt_comm.h"

igrt_status igrt_comm_reduce(const igrt_config *config, void *data, size_t count, igrt_dtype dtype,
                             int mean)
{
    const igrt_comm *comm = config->comm;
    if (!comm || comm->size < 2)
        return IGRT_OK;
    if (!comm->all_reduce || (mean && dtype != IGRT_F32 && dtype != IGRT_F64))
        return IGRT_ERR_COMM;
    if (comm->all_reduce(comm->user, data, count, dtype))
        return IGRT_ERR_COMM;
    for (size_t i = 0; i < count && mean && dtype == IGRT_F32; i++)
        ((float *)data)[i] /= (float)comm->size;
    for (size_t i = 0; i < count && mean && dtype == IGRT_F64; i++)
        ((double *)data)[i] /= comm->size;
    return IGRT_OK;
}
