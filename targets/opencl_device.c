/* opencl_device.c - which features of opencl_features.def the OpenCL device has that a bundle
 * would run on here, and which figures. */
#include <string.h>

#include "igrt_opencl.h"

#include "targets.h"

/* CL_DEVICE_.. (cl.h) */
enum {
    DEVICE_TYPE = 0x1000,
    MAX_COMPUTE_UNITS = 0x1002,
    DEVICE_NAME = 0x102B,
    MAX_WORK_GROUP_SIZE = 0x1004,
    NATIVE_VECTOR_WIDTH_FLOAT = 0x103A,
    GLOBAL_MEM_CACHELINE_SIZE = 0x101D,
    GLOBAL_MEM_CACHE_SIZE = 0x101E,
    LOCAL_MEM_SIZE = 0x1023
};
/* A bit of DEVICE_TYPE. */
enum { TYPE_CPU = 2 };

/* A number of 4 or of 8 bytes; 0: the driver does not tell it. */
static int64_t ask(igrt_cl *cl, uint32_t what, bool wide)
{
    uint32_t small = 0;
    uint64_t large = 0;
    const int32_t e = wide ? cl->clGetDeviceInfo(cl->device, what, sizeof large, &large, NULL)
                           : cl->clGetDeviceInfo(cl->device, what, sizeof small, &small, NULL);
    return e ? 0 : wide ? (int64_t)large : (int64_t)small;
}

/* Its first level of cache is for images alone. */
static bool is_adreno(igrt_cl *cl)
{
    char name[128] = "";
    (void)cl->clGetDeviceInfo(cl->device, DEVICE_NAME, sizeof name - 1, name, NULL);
    return strstr(name, "Adreno") != NULL;
}

const char *opencl_native(Arena *a, OpenclDevice *device)
{
    igrt_cl cl;
    const char *all = "", *last = NULL;
    if (igrt_cl_open(&cl, NULL, NULL, NULL, 0) != IGRT_OK)
        return NULL;
    const int subgroup = igrt_cl_subgroup(&cl);
    for (const OpenclFeature *f = opencl_features; f->name; f++) {
        if (!igrt_cl_has(&cl, f->extension) || (f->subgroup && subgroup % f->subgroup))
            continue;
        if ((f->subgroup && subgroup < f->subgroup) || (f->images && !is_adreno(&cl)))
            continue;
        if (f->subgroup) /* of several sizes the largest */
            last = f->name;
        else
            all = arena_printf(a, *all ? "%s+%s" : "%s%s", all, f->name);
    }
    const bool cpu = ask(&cl, DEVICE_TYPE, true) & TYPE_CPU;
    if (device)
        *device = (OpenclDevice){.core_lanes = cpu ? ask(&cl, NATIVE_VECTOR_WIDTH_FLOAT, false) : 0,
                                 .processors = ask(&cl, MAX_COMPUTE_UNITS, false),
                                 .items = ask(&cl, MAX_WORK_GROUP_SIZE, sizeof(size_t) == 8),
                                 .shared = ask(&cl, LOCAL_MEM_SIZE, true),
                                 .cache = ask(&cl, GLOBAL_MEM_CACHE_SIZE, true),
                                 .line = ask(&cl, GLOBAL_MEM_CACHELINE_SIZE, false)};
    igrt_cl_close(&cl);
    return !last ? all : arena_printf(a, *all ? "%s+%s" : "%s%s", all, last);
}
