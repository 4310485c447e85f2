/* opencl_device.c - which features of opencl_features.def the OpenCL device has that a bundle would
 * run on here. */
#include "igrt_opencl.h"

#include "targets.h"

const char *opencl_native(Arena *a)
{
    igrt_cl cl;
    const char *all = "", *last = NULL;
    if (igrt_cl_open(&cl, NULL, NULL, NULL, 0) != IGRT_OK)
        return NULL;
    const int subgroup = igrt_cl_subgroup(&cl);
    for (const OpenclFeature *f = opencl_features; f->name; f++) {
        if (!igrt_cl_has(&cl, f->extension) || (f->subgroup && subgroup % f->subgroup))
            continue;
        if (f->subgroup && subgroup < f->subgroup)
            continue;
        if (f->subgroup) /* of several sizes the largest */
            last = f->name;
        else
            all = arena_printf(a, *all ? "%s+%s" : "%s%s", all, f->name);
    }
    igrt_cl_close(&cl);
    return !last ? all : arena_printf(a, *all ? "%s+%s" : "%s%s", all, last);
}
