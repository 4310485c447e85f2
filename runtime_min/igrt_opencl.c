/*
 * igrt_opencl.c - OpenCL 1.2 by dlopen. See igrt_opencl.h.
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "igrt_opencl.h"

#include <dlfcn.h>
#include <string.h>

#include "igrt_device.h"

/* From the specification (and CL/cl.h). */
enum {
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_BUILD_PROGRAM_FAILURE = -11,
    CL_INVALID_BUFFER_SIZE = -61,
    CL_FALSE = 0,
    CL_TRUE = 1,
    CL_DEVICE_IMAGE_SUPPORT = 0x1016,
    CL_RGBA = 0x10b5,
    CL_FLOAT = 0x10de,
    CL_MEM_OBJECT_IMAGE2D = 0x10f1,
    CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
    CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1 << 7,
    CL_DEVICE_VERSION = 0x102f,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_PLATFORM = 0x1031,
    CL_DEVICE_UUID = 0x106A, /* cl_khr_device_uuid */
    CL_CONTEXT_PLATFORM = 0x1084,
    CL_QUEUE_CONTEXT = 0x1090,
    CL_QUEUE_DEVICE = 0x1091,
    CL_QUEUE_PROPERTIES = 0x1093,
    CL_QUEUE_PROFILING_ENABLE = 2,
    CL_MEM_READ_WRITE = 1,
    CL_MEM_READ_ONLY = 4,
    CL_MEM_COPY_HOST_PTR = 32,
    CL_BUFFER_CREATE_TYPE_REGION = 0x1220,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_KERNEL_COMPILE_WORK_GROUP_SIZE = 0x11b1,
    CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE = 0x2033,
    CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103a,
    CL_DEVICE_WARP_SIZE_NV = 0x4003,
    CL_DEVICE_WAVEFRONT_WIDTH_AMD = 0x4043,
    CL_DEVICE_SUB_GROUP_SIZES_INTEL = 0x4108,
    CL_PROFILING_COMMAND_START = 0x1282,
    CL_PROFILING_COMMAND_END = 0x1283
};
#define DEVICE_GPU UINT64_C(4)
#define DEVICE_ALL UINT64_C(0xffffffff)

enum { MAX_PLATFORMS = 16, MAX_DEVICES = 16 /* of each */ };

static igrt_status check(igrt_cl *cl, int32_t error)
{
    if (error == 0)
        return IGRT_OK;
    cl->error = error;
    return IGRT_ERR_DEVICE;
}

/* A handle that came with an error code. */
static igrt_status check_handle(igrt_cl *cl, int32_t error, void **handle)
{
    if (error)
        *handle = NULL;
    return check(cl, error);
}

static int load(igrt_cl *cl)
{
    cl->library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cl->library)
        cl->library = dlopen("libOpenCL.so", RTLD_NOW | RTLD_LOCAL);
    if (!cl->library)
        return 0;
        /* memcpy: ISO C has no conversion from an object pointer to a function pointer */
#define IGRT_X(result, name, parameters)           \
    {                                              \
        void *symbol = dlsym(cl->library, #name);  \
        if (!symbol)                               \
            return 0;                              \
        memcpy(&cl->name, &symbol, sizeof symbol); \
    }
    IGRT_CL_FUNCTIONS(IGRT_X)
#undef IGRT_X
    return 1;
}

/* The device of the type that is asked for, of those of all platforms, or NULL. */
static void *find_device(igrt_cl *cl, uint64_t type, const char *which)
{
    void *platform[MAX_PLATFORMS], *device[MAX_DEVICES];
    uint32_t n = 0, found;
    int number = 0;
    cl->error = cl->clGetPlatformIDs(MAX_PLATFORMS, platform, &n);
    if (cl->error)
        return NULL;
    for (uint32_t i = 0; i < n && i < MAX_PLATFORMS; i++) {
        found = 0;
        cl->error = cl->clGetDeviceIDs(platform[i], type, MAX_DEVICES, device, &found);
        for (uint32_t k = 0; cl->error == 0 && k < found && k < MAX_DEVICES; k++) {
            unsigned char uuid[16] = {0}; /* zeros where the driver has none */
            (void)cl->clGetDeviceInfo(device[k], CL_DEVICE_UUID, sizeof uuid, uuid, NULL);
            if (igrt_is_device(which, number++, uuid))
                return device[k];
        }
    }
    return NULL;
}

static igrt_status take_queue(igrt_cl *cl, void *queue)
{
    uint64_t properties = 0;
    cl->queue = queue;
    int32_t e =
        cl->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(void *), &cl->context, NULL);
    if (!e)
        e = cl->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(void *), &cl->device, NULL);
    if (!e)
        e = cl->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties,
                                      NULL);
    cl->profiling = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
    return check(cl, e);
}

static igrt_status make_queue(igrt_cl *cl, void *device, const char *which, int profile)
{
    int32_t e = 0;
    void *platform = NULL;
    if (!device)
        device = find_device(cl, DEVICE_GPU, which);
    if (!device)
        device = find_device(cl, DEVICE_ALL, which);
    if (!device)
        return IGRT_ERR_DEVICE;
    cl->device = device;
    e = cl->clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(void *), &platform, NULL);
    if (e)
        return check(cl, e);
    const intptr_t properties[3] = {CL_CONTEXT_PLATFORM, (intptr_t)platform, 0};
    cl->owns_queue = 1;
    cl->context = cl->clCreateContext(properties, 1, &device, NULL, NULL, &e);
    if (e)
        return check_handle(cl, e, &cl->context);
    cl->profiling = profile != 0;
    cl->queue =
        cl->clCreateCommandQueue(cl->context, device, profile ? CL_QUEUE_PROFILING_ENABLE : 0, &e);
    return check_handle(cl, e, &cl->queue);
}

igrt_status igrt_cl_open(igrt_cl *cl, void *device, void *queue, const char *which, int profile)
{
    uint32_t align_bits = 0;
    uint64_t arithmetic = 0;
    int32_t error;
    memset(cl, 0, sizeof *cl);
    igrt_status status = load(cl) ? IGRT_OK : IGRT_ERR_DEVICE;
    if (status == IGRT_OK)
        status = queue ? take_queue(cl, queue) : make_queue(cl, device, which, profile);
    if (status == IGRT_OK)
        status = check(cl, cl->clGetDeviceInfo(cl->device, CL_DEVICE_MEM_BASE_ADDR_ALIGN,
                                               sizeof align_bits, &align_bits, NULL));
    if (status == IGRT_OK && align_bits / 8 > IGRT_CL_ALIGN)
        status = IGRT_ERR_DEVICE;
    if (status == IGRT_OK)
        status = check(cl, cl->clGetDeviceInfo(cl->device, CL_DEVICE_SINGLE_FP_CONFIG,
                                               sizeof arithmetic, &arithmetic, NULL));
    cl->exact = (arithmetic & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    if (status != IGRT_OK) {
        error = cl->error;
        igrt_cl_close(cl);
        cl->error = error;
    }
    return status;
}

/* Is the word in the text, between blanks? */
static int has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n)
        if ((at == text || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return 1;
    return 0;
}

int igrt_cl_has(igrt_cl *cl, const char *extension)
{
    char all[1 << 14];
    size_t n = 0;
    uint32_t images = 0;
    if (!strcmp(extension, "images"))
        return !check(cl, cl->clGetDeviceInfo(cl->device, CL_DEVICE_IMAGE_SUPPORT, sizeof images,
                                              &images, NULL)) &&
               images;
    if (check(cl, cl->clGetDeviceInfo(cl->device, CL_DEVICE_EXTENSIONS, sizeof all - 1, all, &n)))
        return 0;
    all[n < sizeof all ? n : sizeof all - 1] = 0;
    return has_word(all, extension);
}

int igrt_cl_subgroup(igrt_cl *cl)
{
    static const uint32_t of_one[] = {CL_DEVICE_WARP_SIZE_NV, CL_DEVICE_WAVEFRONT_WIDTH_AMD};
    size_t several[16], n = 0, most = 0;
    for (int i = 0; i < 2; i++) {
        uint32_t size = 0;
        if (!cl->clGetDeviceInfo(cl->device, of_one[i], sizeof size, &size, NULL) && size)
            return (int)size;
    }
    if (cl->clGetDeviceInfo(cl->device, CL_DEVICE_SUB_GROUP_SIZES_INTEL, sizeof several, several,
                            &n))
        return 0;
    uint32_t width = 0; /* of a processor's vectors */
    (void)cl->clGetDeviceInfo(cl->device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof width, &width,
                              NULL);
    for (size_t i = 0; i < n / sizeof several[0]; i++) {
        if (width > 1 && several[i] == width)
            return (int)width;
        most = several[i] > most ? several[i] : most;
    }
    return (int)most;
}

igrt_status igrt_cl_require(igrt_cl *cl, const char *extension, igrt_fault *fault,
                            const char *lacks)
{
    if (!cl->language) {       /* not asked yet */
        char version[64] = ""; /* "OpenCL 3.0 PoCL" */
        (void)cl->clGetDeviceInfo(cl->device, CL_DEVICE_VERSION, sizeof version - 1, version, NULL);
        cl->language = strncmp(version, "OpenCL 3", 8) ? 1 : 3;
    }
    if (igrt_cl_has(cl, extension))
        return IGRT_OK;
    *fault = (igrt_fault){.what = lacks, .greatest = -1};
    return IGRT_ERR_FEATURE;
}

igrt_status igrt_cl_require_subgroups(igrt_cl *cl, void *kernel, int items, igrt_fault *fault)
{
    int32_t (*info)(void *, void *, uint32_t, size_t, const void *, size_t, void *, size_t *);
    size_t group[3] = {0}, size = 0;
    void *symbol = dlsym(cl->library, "clGetKernelSubGroupInfo");
    if (!symbol)
        symbol = dlsym(cl->library, "clGetKernelSubGroupInfoKHR");
    int32_t e = cl->clGetKernelWorkGroupInfo(kernel, cl->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                             sizeof group, group, NULL);
    if (e || !group[0]) /* its items are apart */
        return check(cl, e);
    memcpy(&info, &symbol, sizeof symbol);
    if (symbol)
        e = info(kernel, cl->device, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, sizeof group[0],
                 group, sizeof size, &size, NULL);
    if (!e && size && size % (size_t)items == 0)
        return IGRT_OK;
    *fault = (igrt_fault){.what = "the size of sub-groups", .value = (int64_t)size};
    fault->least = fault->greatest = items;
    return IGRT_ERR_FEATURE;
}

const char *igrt_cl_why(const igrt_cl *cl)
{
    switch (cl->error) {
    case 0: return "there is no OpenCL (libOpenCL.so.1), no device, or not the one asked for";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_INVALID_BUFFER_SIZE: return "the OpenCL device has too little memory";
    case CL_BUILD_PROGRAM_FAILURE: return "the OpenCL device's compiler refuses the kernels";
    default: return "a call of the OpenCL driver failed";
    }
}

void igrt_cl_close(igrt_cl *cl)
{
    if (cl->owns_queue && cl->queue) {
        cl->clFinish(cl->queue);
        cl->clReleaseCommandQueue(cl->queue);
    }
    if (cl->owns_queue && cl->context)
        cl->clReleaseContext(cl->context);
    /* the library stays: drivers leave threads behind that would lose their code */
    memset(cl, 0, sizeof *cl);
}

static void get_log(igrt_cl *cl, void *program, char *log, size_t log_bytes)
{
    static const char too_long[] = "(the build log does not fit)";
    if (!log || log_bytes == 0)
        return;
    log[0] = 0;
    if (cl->clGetProgramBuildInfo(program, cl->device, CL_PROGRAM_BUILD_LOG, log_bytes, log,
                                  NULL) &&
        log_bytes >= sizeof too_long)
        memcpy(log, too_long, sizeof too_long);
    log[log_bytes - 1] = 0;
}

igrt_status igrt_cl_build(igrt_cl *cl, const char *const *source, int n, const char *options,
                          void **program, char *log, size_t log_bytes)
{
    int32_t e = 0;
    if (log && log_bytes)
        log[0] = 0;
    /* OpenCL's prototype lacks a const; it does not write */
    *program = cl->clCreateProgramWithSource(cl->context, (uint32_t)n,
                                             (const char **)(uintptr_t)source, NULL, &e);
    if (e)
        return check_handle(cl, e, program);
    e = cl->clBuildProgram(*program, 1, &cl->device, options, NULL, NULL);
    if (e == 0)
        return IGRT_OK;
    cl->error = e;
    get_log(cl, *program, log, log_bytes);
    cl->clReleaseProgram(*program);
    *program = NULL;
    return IGRT_ERR_BUILD;
}

igrt_status igrt_cl_kernel(igrt_cl *cl, void *program, const char *name, void **kernel)
{
    int32_t e = 0;
    *kernel = cl->clCreateKernel(program, name, &e);
    return check_handle(cl, e, kernel);
}

igrt_status igrt_cl_buffer(igrt_cl *cl, size_t bytes, const void *data, void **buffer)
{
    int32_t e = 0;
    const uint64_t flags =
        data && bytes ? CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR : CL_MEM_READ_WRITE;
    void *host = data && bytes ? (void *)(uintptr_t)data : NULL; /* only read */
    *buffer = cl->clCreateBuffer(cl->context, flags, bytes ? bytes : 1, host, &e);
    return check_handle(cl, e, buffer);
}

/* Rows of pixels from `row` on; the last one may be a part of one. */
static int32_t write_rows(igrt_cl *cl, void *image, size_t row, size_t width, size_t rows,
                          const float *data)
{
    const size_t from[3] = {0, row, 0}, region[3] = {width, rows, 1};
    return width && rows ? cl->clEnqueueWriteImage(cl->queue, image, CL_TRUE, from, region, 0, 0,
                                                   data, 0, NULL, NULL)
                         : 0;
}

enum { WIDTH = 2048, PIXEL = 4 };

igrt_status igrt_cl_image(igrt_cl *cl, size_t n, const float *data, void **image)
{
    struct {
        uint32_t order, type;
    } format = {CL_RGBA, CL_FLOAT};
    struct {
        uint32_t type;
        size_t width, height, depth, array, pitch, slice;
        uint32_t mips, samples;
        void *buffer;
    } shape = {.type = CL_MEM_OBJECT_IMAGE2D, .width = WIDTH};
    const size_t rows = n / (WIDTH * PIXEL), pixels = n / PIXEL % WIDTH, rest = n % PIXEL;
    float last[PIXEL] = {0};
    int32_t e = 0;
    shape.height = rows + 1;
    *image = cl->clCreateImage(cl->context, CL_MEM_READ_ONLY, &format, &shape, NULL, &e);
    if (e || !data)
        return check_handle(cl, e, image);
    for (size_t i = 0; i < rest; i++)
        last[i] = data[n - rest + i];
    const size_t from[3] = {pixels, rows, 0}, region[3] = {1, 1, 1};
    e = write_rows(cl, *image, 0, WIDTH, rows, data);
    e = e ? e : write_rows(cl, *image, rows, pixels, 1, data + rows * WIDTH * PIXEL);
    if (!e && rest)
        e = cl->clEnqueueWriteImage(cl->queue, *image, CL_TRUE, from, region, 0, 0, last, 0, NULL,
                                    NULL);
    return check(cl, e);
}

static int32_t copy_rows(igrt_cl *cl, void *buffer, size_t offset, void *image, size_t row,
                         size_t width, size_t rows)
{
    const size_t to[3] = {0, row, 0}, region[3] = {width, rows, 1};
    return width && rows ? cl->clEnqueueCopyBufferToImage(cl->queue, buffer, image, offset, to,
                                                          region, 0, NULL, NULL)
                         : 0;
}

igrt_status igrt_cl_fill_image(igrt_cl *cl, void *buffer, size_t offset, size_t n, void *image)
{
    const size_t rows = n / (WIDTH * PIXEL), pixels = n / PIXEL % WIDTH;
    const size_t rest = offset + rows * WIDTH * PIXEL * sizeof(float);
    const int32_t e = copy_rows(cl, buffer, offset, image, 0, WIDTH, rows);
    return check(cl, e ? e : copy_rows(cl, buffer, rest, image, rows, pixels, 1));
}

igrt_status igrt_cl_part(igrt_cl *cl, void *buffer, size_t offset, size_t bytes, void **part)
{
    int32_t e = 0;
    const size_t region[2] = {offset, bytes ? bytes : 1};
    *part = cl->clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, region, &e);
    return check_handle(cl, e, part);
}

igrt_status igrt_cl_arg_buffer(igrt_cl *cl, void *kernel, int i, void *buffer)
{
    return check(cl, cl->clSetKernelArg(kernel, (uint32_t)i, sizeof buffer, &buffer));
}

igrt_status igrt_cl_arg_value(igrt_cl *cl, void *kernel, int i, const void *value, size_t bytes)
{
    return check(cl, cl->clSetKernelArg(kernel, (uint32_t)i, bytes, value));
}

igrt_status igrt_cl_launch(igrt_cl *cl, void *kernel, int dims, const size_t *global,
                           const size_t *local, void **event)
{
    if (event)
        *event = NULL;
    for (int d = 0; d < dims; d++)
        if (global[d] == 0)
            return IGRT_OK;
    return check(cl, cl->clEnqueueNDRangeKernel(cl->queue, kernel, (uint32_t)dims, NULL, global,
                                                local, 0, NULL, event));
}

igrt_status igrt_cl_write(igrt_cl *cl, void *buffer, size_t offset, const void *data, size_t bytes,
                          int wait)
{
    if (bytes == 0)
        return IGRT_OK;
    return check(cl, cl->clEnqueueWriteBuffer(cl->queue, buffer, wait ? CL_TRUE : CL_FALSE, offset,
                                              bytes, data, 0, NULL, NULL));
}

igrt_status igrt_cl_read(igrt_cl *cl, void *buffer, size_t offset, void *data, size_t bytes,
                         int wait)
{
    if (bytes == 0)
        return IGRT_OK;
    return check(cl, cl->clEnqueueReadBuffer(cl->queue, buffer, wait ? CL_TRUE : CL_FALSE, offset,
                                             bytes, data, 0, NULL, NULL));
}

igrt_status igrt_cl_copy(igrt_cl *cl, void *from, size_t from_offset, void *to, size_t to_offset,
                         size_t bytes)
{
    if (bytes == 0)
        return IGRT_OK;
    return check(cl, cl->clEnqueueCopyBuffer(cl->queue, from, to, from_offset, to_offset, bytes, 0,
                                             NULL, NULL));
}

igrt_status igrt_cl_zero(igrt_cl *cl, void *buffer, size_t offset, size_t bytes)
{
    const uint8_t zero = 0;
    if (bytes == 0)
        return IGRT_OK;
    return check(
        cl, cl->clEnqueueFillBuffer(cl->queue, buffer, &zero, 1, offset, bytes, 0, NULL, NULL));
}

igrt_status igrt_cl_finish(igrt_cl *cl)
{
    return check(cl, cl->clFinish(cl->queue));
}

igrt_status igrt_cl_elapsed(igrt_cl *cl, void *event, uint64_t *nanoseconds)
{
    uint64_t begin = 0, end = 0;
    *nanoseconds = 0;
    if (!event)
        return IGRT_OK;
    int32_t e = cl->clWaitForEvents(1, &event);
    if (!e && cl->profiling)
        e = cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, 8, &begin, NULL);
    if (!e && cl->profiling)
        e = cl->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, &end, NULL);
    cl->clReleaseEvent(event);
    if (!e)
        *nanoseconds = end - begin;
    return check(cl, e);
}

void igrt_cl_free_buffer(igrt_cl *cl, void *buffer)
{
    if (buffer)
        cl->clReleaseMemObject(buffer);
}

void igrt_cl_free_kernel(igrt_cl *cl, void *kernel)
{
    if (kernel)
        cl->clReleaseKernel(kernel);
}

void igrt_cl_free_program(igrt_cl *cl, void *program)
{
    if (program)
        cl->clReleaseProgram(program);
}
