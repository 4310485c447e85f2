/*
 * igrt_opencl.h - what the host side of an OpenCL bundle calls.
 *
 * The ICD loader (libOpenCL.so.1) is opened at run time with declarations of our own, so a bundle
 * needs neither headers nor a library to build. All state is in igrt_cl and in handles that the
 * caller keeps; nothing is allocated on the host. OpenCL 1.2. Handles are the cl_... handles, as
 * void pointers.
 *
 * Every function that returns a status returns IGRT_OK, IGRT_ERR_DEVICE, IGRT_ERR_BUILD or
 * IGRT_ERR_FEATURE; igrt_cl.error then has the cl_int. One igrt_cl belongs to one thread at a time.
 */
#ifndef IGRT_OPENCL_H
#define IGRT_OPENCL_H

#include "igrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Offsets of sub-buffers are multiples of this: the largest CL_DEVICE_MEM_BASE_ADDR_ALIGN met. */
#define IGRT_CL_ALIGN 512

/* X(result, name, parameters): the entry points, as in the Khronos headers. */
#define IGRT_CL_FUNCTIONS(X)                                                                      \
    X(int32_t, clGetPlatformIDs, (uint32_t, void **, uint32_t *))                                 \
    X(int32_t, clGetDeviceIDs, (void *, uint64_t, uint32_t, void **, uint32_t *))                 \
    X(int32_t, clGetDeviceInfo, (void *, uint32_t, size_t, void *, size_t *))                     \
    X(void *, clCreateContext,                                                                    \
      (const intptr_t *, uint32_t, void *const *,                                                 \
       void (*)(const char *, const void *, size_t, void *), void *, int32_t *))                  \
    X(int32_t, clReleaseContext, (void *))                                                        \
    X(void *, clCreateCommandQueue, (void *, void *, uint64_t, int32_t *))                        \
    X(int32_t, clGetCommandQueueInfo, (void *, uint32_t, size_t, void *, size_t *))               \
    X(int32_t, clReleaseCommandQueue, (void *))                                                   \
    X(void *, clCreateProgramWithSource,                                                          \
      (void *, uint32_t, const char **, const size_t *, int32_t *))                               \
    X(int32_t, clBuildProgram,                                                                    \
      (void *, uint32_t, void *const *, const char *, void (*)(void *, void *), void *))          \
    X(int32_t, clGetProgramBuildInfo, (void *, void *, uint32_t, size_t, void *, size_t *))       \
    X(int32_t, clReleaseProgram, (void *))                                                        \
    X(void *, clCreateKernel, (void *, const char *, int32_t *))                                  \
    X(int32_t, clGetKernelWorkGroupInfo, (void *, void *, uint32_t, size_t, void *, size_t *))    \
    X(int32_t, clReleaseKernel, (void *))                                                         \
    X(int32_t, clSetKernelArg, (void *, uint32_t, size_t, const void *))                          \
    X(void *, clCreateBuffer, (void *, uint64_t, size_t, void *, int32_t *))                      \
    X(void *, clCreateImage, (void *, uint64_t, const void *, const void *, void *, int32_t *))   \
    X(int32_t, clEnqueueWriteImage,                                                               \
      (void *, void *, uint32_t, const size_t *, const size_t *, size_t, size_t, const void *,    \
       uint32_t, void *const *, void **))                                                         \
    X(void *, clCreateSubBuffer, (void *, uint64_t, uint32_t, const void *, int32_t *))           \
    X(int32_t, clReleaseMemObject, (void *))                                                      \
    X(int32_t, clEnqueueWriteBuffer,                                                              \
      (void *, void *, uint32_t, size_t, size_t, const void *, uint32_t, void *const *, void **)) \
    X(int32_t, clEnqueueReadBuffer,                                                               \
      (void *, void *, uint32_t, size_t, size_t, void *, uint32_t, void *const *, void **))       \
    X(int32_t, clEnqueueCopyBuffer,                                                               \
      (void *, void *, void *, size_t, size_t, size_t, uint32_t, void *const *, void **))         \
    X(int32_t, clEnqueueCopyBufferToImage,                                                        \
      (void *, void *, void *, size_t, const size_t *, const size_t *, uint32_t, void *const *,   \
       void **))                                                                                  \
    X(int32_t, clEnqueueFillBuffer,                                                               \
      (void *, void *, const void *, size_t, size_t, size_t, uint32_t, void *const *, void **))   \
    X(int32_t, clEnqueueNDRangeKernel,                                                            \
      (void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,        \
       void *const *, void **))                                                                   \
    X(int32_t, clFlush, (void *))                                                                 \
    X(int32_t, clFinish, (void *))                                                                \
    X(int32_t, clWaitForEvents, (uint32_t, void *const *))                                        \
    X(int32_t, clGetEventProfilingInfo, (void *, uint32_t, size_t, void *, size_t *))             \
    X(int32_t, clReleaseEvent, (void *))

typedef void *igrt_cl_mem; /* a buffer, or a part of one */

typedef struct igrt_cl {
    void *library, *device, *context, *queue;
    int owns_queue; /* the context too */
    int profiling;  /* events have times */
    int exact;      /* f32 division and square root can be correctly rounded */
    /* what kernels are compiled as: 3 is OpenCL C 3.0, of which what was required may be a feature;
     * else as the driver does */
    int language;
    int32_t error; /* of the last call that failed; 0 if the loader itself is missing */
#define IGRT_X(result, name, parameters) result(*name) parameters;
    IGRT_CL_FUNCTIONS(IGRT_X)
#undef IGRT_X
} igrt_cl;

/*
 * Opens the loader and takes, in this order: the given in-order queue with its device and context;
 * the given device; of the GPUs of all platforms that which igrt_config.gpu says; the same of
 * devices of any kind. With profile set a queue made here has times. On failure nothing stays open.
 */
igrt_status igrt_cl_open(igrt_cl *cl, void *device, void *queue, const char *which, int profile);

/* Does the device tell of an extension of this name? */
int igrt_cl_has(igrt_cl *cl, const char *extension);

/* How many items a sub-group has, by what drivers tell of a device: of several sizes that of its
 * vectors, else the most; 0: they do not tell. */
int igrt_cl_subgroup(igrt_cl *cl);

/* Kernels are to be compiled with this extension. IGRT_ERR_FEATURE, and fault->what is lacks, if
 * the device does not have it. */
igrt_status igrt_cl_require(igrt_cl *cl, const char *extension, igrt_fault *fault,
                            const char *lacks);

/* The same if sub-groups of the kernel, of which the work-group size is fixed, are not of a
 * multiple of so many items. */
igrt_status igrt_cl_require_subgroups(igrt_cl *cl, void *kernel, int items, igrt_fault *fault);

/* Releases what igrt_cl_open made; harmless on a cleared struct. */
void igrt_cl_close(igrt_cl *cl);

/* What the error of the last call that failed says of the device, in words. */
const char *igrt_cl_why(const igrt_cl *cl);

/* Compiles n strings as one source. If it fails, *program is NULL and log (if given) has why. */
igrt_status igrt_cl_build(igrt_cl *cl, const char *const *source, int n, const char *options,
                          void **program, char *log, size_t log_bytes);

igrt_status igrt_cl_kernel(igrt_cl *cl, void *program, const char *name, void **kernel);

/* Device memory, at least one byte; filled from data, if not NULL, and then read-only for
 * kernels. */
igrt_status igrt_cl_buffer(igrt_cl *cl, size_t bytes, const void *data, void **buffer);

/* n numbers as an image of pixels of four, in rows of 2,048 (igrt_image.h); data NULL: what comes
 * of them by the other function, which copies them, whole pixels, from a buffer (from no part of
 * one: PoCL 3.1 cannot do that). */
igrt_status igrt_cl_image(igrt_cl *cl, size_t n, const float *data, void **image);
igrt_status igrt_cl_fill_image(igrt_cl *cl, void *buffer, size_t offset, size_t n, void *image);

/* A part of a buffer. offset is a multiple of IGRT_CL_ALIGN; parts may overlap. */
igrt_status igrt_cl_part(igrt_cl *cl, void *buffer, size_t offset, size_t bytes, void **part);

/* Kernel argument i: a buffer, or a value of some bytes. */
igrt_status igrt_cl_arg_buffer(igrt_cl *cl, void *kernel, int i, void *buffer);
igrt_status igrt_cl_arg_value(igrt_cl *cl, void *kernel, int i, const void *value, size_t bytes);

/* Enqueues; global[d] must be a multiple of local[d], local may be NULL. event, if not NULL, is to
 * be handed to igrt_cl_elapsed. A global size of 0 enqueues nothing (and *event is NULL). */
igrt_status igrt_cl_launch(igrt_cl *cl, void *kernel, int dims, const size_t *global,
                           const size_t *local, void **event);

/* Enqueued in order; with wait write returns when data may be reused, read when it is filled, else
 * igrt_cl_finish has to come first. */
igrt_status igrt_cl_write(igrt_cl *cl, void *buffer, size_t offset, const void *data, size_t bytes,
                          int wait);
igrt_status igrt_cl_read(igrt_cl *cl, void *buffer, size_t offset, void *data, size_t bytes,
                         int wait);
igrt_status igrt_cl_copy(igrt_cl *cl, void *from, size_t from_offset, void *to, size_t to_offset,
                         size_t bytes);
igrt_status igrt_cl_zero(igrt_cl *cl, void *buffer, size_t offset, size_t bytes);

/* Waits until all that was enqueued is done. */
igrt_status igrt_cl_finish(igrt_cl *cl);

/* Waits for the event, gives the nanoseconds it ran, and releases it. NULL gives 0. */
igrt_status igrt_cl_elapsed(igrt_cl *cl, void *event, uint64_t *nanoseconds);

/* Release handles; NULL is allowed. */
void igrt_cl_free_buffer(igrt_cl *cl, void *buffer);
void igrt_cl_free_kernel(igrt_cl *cl, void *kernel);
void igrt_cl_free_program(igrt_cl *cl, void *program);

#ifdef __cplusplus
}
#endif
#endif
