/* run_group.c - sequences and optionals in files: in one that an importer knows (.pb), or as the
 * driver of bundles has them: a folder of .npy files, and no file for what is absent. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

bool value_is_group(const HostTensor *v)
{
    return v->sequence || v->absent;
}

static bool wrong(const char *path, const char *what, ingot_status *status)
{
    *status = complain(INGOT_INVALID, "%s: %s", path, what);
    return false;
}

/* ---- reading ----------------------------------------------------------------------------- */

bool group_read(Arena *a, const char *stem, const ingot_model_io *io, HostTensor *v, bool *npy,
                ingot_status *status)
{
    const char *one_file = value_file(a, stem), *file = arena_printf(a, "%s.npy", stem);
    *v = (HostTensor){.sequence = io->sequence, .dtype = io->dtype};
    *npy = !one_file;
    if (one_file)
        return value_read_as(a, one_file, io, v, status);
    if (access(io->sequence ? stem : file, F_OK)) {
        v->absent = true;
        return io->kind == INGOT_MODEL_OPTIONAL ||
               wrong(stem, arena_printf(a, "there is no such folder, and %s", value_forms(a, "")),
                     status);
    }
    if (!io->sequence)
        return value_read(a, file, v, status);
    for (;;) {
        HostTensor one;
        const char *path = arena_printf(a, "%s/%d.npy", stem, v->nitem);
        if (access(path, F_OK))
            return true;
        if (!value_read(a, path, &one, status))
            return false;
        vec_push(a, v->item, v->nitem, one);
    }
}

/* ---- writing ----------------------------------------------------------------------------- */

bool group_write_npy(Arena *a, const char *stem, const HostTensor *v, ingot_status *status)
{
    if (v->absent)
        return true;
    if (!v->sequence)
        return value_write(a, arena_printf(a, "%s.npy", stem), NULL, v, status);
    if (!make_dirs(stem)) {
        *status = complain(INGOT_IO, "%s: %s", part_shown(a, stem), strerror(errno));
        return false;
    }
    for (int i = 0; i < v->nitem; i++)
        if (!value_write(a, arena_printf(a, "%s/%d.npy", stem, i), NULL, &v->item[i], status))
            return false;
    return true;
}
