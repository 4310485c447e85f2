/* opt_image.c - IMAGE: what is only read is an image of pixels of four elements.
 *
 * Nothing changes but how they are read: four neighbours are one read of the texture unit. Adreno
 * has a first level of cache for that alone. */
#include <stdlib.h>
#include <string.h>

#include "opt.h"

bool kernel_takes_image(const Kernel *k, int64_t arg)
{
    for (int i = 0; i < k->nopt; i++)
        if (k->opts[i].kind == OPT_IMAGE && atoi(k->opts[i].axis) == arg)
            return true;
    return false;
}

const char *opt_image(Nest *n, const Opt *o)
{
    const int arg = atoi(o->axis);
    if (n->shared && !(n->target && n->target->images))
        return opt_refuse(n, "IMAGE %s: this target has no images", o->axis);
    if (o->axis[strspn(o->axis, "0123456789")] || arg >= n->k->narg || arg < 0)
        return opt_refuse(n, "IMAGE %s: the kernel has no such argument", o->axis);
    const KernelArg *a = &n->k->args[arg];
    if (a->dtype != INGOT_F32 || a->written || !a->read)
        return opt_refuse(n, "IMAGE %s: it is for f32 that the kernel reads and does not write",
                          o->axis);
    for (int i = 0; i < n->nopt; i++)
        if (n->opts[i].kind == OPT_IMAGE && atoi(n->opts[i].axis) == arg)
            return opt_refuse(n, "IMAGE %s: it is said already", o->axis);
    return NULL;
}
