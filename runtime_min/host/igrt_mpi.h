/*
 * igrt_mpi.h - a communicator for config.comm that is MPI's.
 *
 *     igrt_mpi mpi;
 *     MPI_Init(&argc, &argv);
 *     if (igrt_mpi_begin(&mpi, MPI_COMM_WORLD))
 *         ...
 *     config.comm = &mpi.comm;
 *     ...
 *     igrt_mpi_end(&mpi);
 *
 * Not part of the bundle's library: whoever includes it compiles with mpicc.
 *
 * MPI_Allreduce may add in any order. Here each process adds one part of the values, in the order
 * of ranks (MPI_Alltoall), and all get all parts (MPI_Allgather): the same bits in each process,
 * and in every run, with as many bytes on the way.
 */
#ifndef IGRT_MPI_H
#define IGRT_MPI_H

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "igrt.h"

typedef struct igrt_mpi {
    igrt_comm comm;
    MPI_Comm mpi;
    char *room; /* what is sent, and what comes */
    size_t bytes;
} igrt_mpi;

static inline int igrt_mpi_add(void *to, const void *from, size_t n, igrt_dtype dtype)
{
    if (dtype == IGRT_F32)
        for (size_t i = 0; i < n; i++)
            ((float *)to)[i] += ((const float *)from)[i];
    else if (dtype == IGRT_F64)
        for (size_t i = 0; i < n; i++)
            ((double *)to)[i] += ((const double *)from)[i];
    else
        return 1;
    return 0;
}

/* igrt_comm.all_reduce, of f32 and f64. */
static inline int igrt_mpi_all_reduce(void *user, void *data, size_t count, igrt_dtype dtype)
{
    igrt_mpi *m = user;
    const size_t size = (size_t)m->comm.size, bytes = count * igrt_dtype_bytes(dtype),
                 part = (count + size - 1) / size, part_bytes = part * igrt_dtype_bytes(dtype);
    if (part_bytes > INT_MAX)
        return 1;
    if (m->bytes < 2 * size * part_bytes) {
        char *room = realloc(m->room, 2 * size * part_bytes);
        if (!room)
            return 1;
        m->room = room;
        m->bytes = 2 * size * part_bytes;
    }
    char *out = m->room, *in = out + size * part_bytes;
    memcpy(out, data, bytes);
    memset(out + bytes, 0, size * part_bytes - bytes);
    if (MPI_Alltoall(out, (int)part_bytes, MPI_BYTE, in, (int)part_bytes, MPI_BYTE, m->mpi))
        return 1;
    for (size_t k = 1; k < size; k++)
        if (igrt_mpi_add(in, in + k * part_bytes, part, dtype))
            return 1;
    if (MPI_Allgather(in, (int)part_bytes, MPI_BYTE, out, (int)part_bytes, MPI_BYTE, m->mpi))
        return 1;
    memcpy(data, out, bytes);
    return 0;
}

/* Not 0: MPI failed. */
static inline int igrt_mpi_begin(igrt_mpi *m, MPI_Comm mpi)
{
    memset(m, 0, sizeof *m);
    m->mpi = mpi;
    m->comm.user = m;
    m->comm.all_reduce = igrt_mpi_all_reduce;
    return MPI_Comm_rank(mpi, &m->comm.rank) || MPI_Comm_size(mpi, &m->comm.size);
}

static inline void igrt_mpi_end(igrt_mpi *m)
{
    free(m->room);
    m->room = NULL;
    m->bytes = 0;
}

#endif
