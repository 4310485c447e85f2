/*
 * driver_npy.h - tensors in .npy files, for the driver.
 */
#ifndef IGRT_DRIVER_NPY_H
#define IGRT_DRIVER_NPY_H

#include "driver.h"

/* One line on standard error, which begins with the model's name; returns status. */
int driver_fail(int status, const char *format, ...);

/* Zeroed memory aligned to 64 bytes or more; never 0 bytes. */
void *driver_allocate(size_t bytes, size_t align);

const char *npy_dtype_name(igrt_dtype dtype);
size_t npy_count(const int64_t *dims, int rank); /* elements */

/* "f32[1,3,?<=224]", "[1,3]" into text, which is returned. */
const char *npy_describe(const igrt_io *io, char *text, size_t bytes);
const char *npy_describe_dims(const int64_t *dims, int rank, char *text, size_t bytes);

/* Reads a tensor into fresh memory; *data stays NULL on failure. Exit statuses. */
int npy_read(const char *path, const igrt_io *io, void **data, int64_t *dims);
int npy_write(const char *path, igrt_dtype dtype, int rank, const int64_t *dims, const void *data);

#endif
