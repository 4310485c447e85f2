/*
 * driver_io.c - a model's inputs from files, its outputs to files; of a sequence a folder of them.
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "driver_session.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The data pointer of an input or output struct; memcpy because its type there is its own. */
void *driver_pointer(const void *base, const igrt_io *io)
{
    void *p;
    memcpy(&p, (const char *)base + io->data_offset, sizeof p);
    return p;
}

void driver_set_pointer(void *base, const igrt_io *io, void *p)
{
    memcpy((char *)base + io->data_offset, &p, sizeof p);
}

void driver_dims(const void *base, const igrt_io *io, int64_t *dims)
{
    if (io->dims_offset == IGRT_NO_DIMS)
        memcpy(dims, io->max_dims, sizeof io->max_dims);
    else
        memcpy(dims, (const char *)base + io->dims_offset, (size_t)io->rank * sizeof *dims);
}

static int next_argument(const igrt_io *list, int n, const igrt_group *groups, int n_groups,
                         Cursor *at, Argument *a)
{
    const igrt_group *g =
        at->group < n_groups && groups[at->group].first == at->io ? &groups[at->group] : NULL;
    if (!g && at->io >= n)
        return 0;
    *a = (Argument){g, list + at->io, g ? g->n : 1};
    at->group += g != NULL;
    at->io += a->n;
    return 1;
}

int driver_next_input(const igrt_model *m, Cursor *at, Argument *a)
{
    return next_argument(m->inputs, m->n_inputs, m->input_groups, m->n_input_groups, at, a);
}

int driver_next_output(const igrt_model *m, Cursor *at, Argument *a)
{
    return next_argument(m->outputs, m->n_outputs, m->output_groups, m->n_output_groups, at, a);
}

static int64_t get_count(const void *base, size_t offset)
{
    int64_t n;
    memcpy(&n, (const char *)base + offset, sizeof n);
    return n;
}

static void set_count(void *base, size_t offset, int64_t n)
{
    if (offset != IGRT_NO_DIMS)
        memcpy((char *)base + offset, &n, sizeof n);
}

/* dir/stem_N.npy, of a sequence the folder dir/stem_N, of its elements dir/stem_N/i.npy. */
static int tensor_path(char *path, const char *dir, const char *stem, int number, int folder,
                       int element)
{
    int n = snprintf(path, PATH_BYTES, "%s/%s_%d%s", dir, stem, number, folder ? "" : ".npy");
    if (n < PATH_BYTES && element >= 0)
        n += snprintf(path + n, (size_t)(PATH_BYTES - n), "/%d.npy", element);
    return n < PATH_BYTES ? IGRT_EXIT_OK
                          : driver_fail(IGRT_EXIT_USAGE, "%s: the path is too long", dir);
}

static int read_input(DriverSession *s, const char *path, const igrt_io *io)
{
    int64_t dims[IGRT_MAX_RANK] = {0};
    void *data;
    const int status = npy_read(path, io, &data, dims);
    if (status != IGRT_EXIT_OK)
        return status;
    driver_set_pointer(s->inputs, io, data);
    if (io->dims_offset != IGRT_NO_DIMS)
        memcpy((char *)s->inputs + io->dims_offset, dims, (size_t)io->rank * sizeof *dims);
    return IGRT_EXIT_OK;
}

/* Of the largest size. */
static int zeros_for_input(DriverSession *s, const igrt_io *io)
{
    const size_t bytes = npy_count(io->max_dims, io->rank) * igrt_dtype_bytes(io->dtype);
    void *data = driver_allocate(bytes, 64);
    if (!data)
        return driver_fail(IGRT_EXIT_MEMORY, "no memory for input \"%s\"", io->name);
    memset(data, 0, bytes);
    driver_set_pointer(s->inputs, io, data);
    if (io->dims_offset != IGRT_NO_DIMS)
        memcpy((char *)s->inputs + io->dims_offset, io->max_dims,
               (size_t)io->rank * sizeof *io->max_dims);
    return IGRT_EXIT_OK;
}

/* The files of a sequence's folder, up to the first that is missing. */
static int read_sequence(DriverSession *s, const Argument *a, int number)
{
    char path[PATH_BYTES];
    int64_t length = 0;
    for (;; length++) {
        int status = tensor_path(path, s->options->in, "input", number, 1, (int)length);
        if (status != IGRT_EXIT_OK)
            return status;
        if (access(path, F_OK))
            break;
        if (length == a->n)
            return driver_fail(IGRT_EXIT_INPUT, "%s: input \"%s\" has at most %d elements", path,
                               a->group->name, a->n);
        status = read_input(s, path, &a->io[length]);
        if (status != IGRT_EXIT_OK)
            return status;
    }
    set_count(s->inputs, a->group->length_offset, length);
    return IGRT_EXIT_OK;
}

int driver_read_inputs(DriverSession *s)
{
    char path[PATH_BYTES];
    Cursor at = {0, 0};
    Argument a;
    for (int i = 0; driver_next_input(s->model, &at, &a); i++) {
        const int sequence = a.group && a.group->length_offset != IGRT_NO_DIMS;
        const int optional = a.group ? a.group->present_offset != IGRT_NO_DIMS : a.io->optional;
        int status = tensor_path(path, s->options->in, "input", i, sequence, -1);
        if (status != IGRT_EXIT_OK)
            return status;
        if (access(path, F_OK) && (optional || sequence)) {
            if (!optional)
                return driver_fail(IGRT_EXIT_INPUT, "%s: %s (input \"%s\", a folder)", path,
                                   strerror(errno), a.group->name);
            continue;
        }
        const int timed =
            s->options->function && (s->options->mode != MODE_RUN || s->options->timeline);
        if (a.group)
            set_count(s->inputs, a.group->present_offset, 1);
        if (timed && !a.group && access(path, F_OK))
            status = zeros_for_input(s, a.io);
        else
            status = sequence ? read_sequence(s, &a, i) : read_input(s, path, a.io);
        if (status != IGRT_EXIT_OK)
            return status;
    }
    return IGRT_EXIT_OK;
}

int driver_allocate_outputs(DriverSession *s)
{
    for (int i = 0; i < s->model->n_outputs; i++) {
        const igrt_io *io = &s->model->outputs[i];
        const size_t n = npy_count(io->max_dims, io->rank);
        void *data = driver_allocate(n * igrt_dtype_bytes(io->dtype), 64);
        if (!data)
            return driver_fail(IGRT_EXIT_MEMORY, "no memory for output \"%s\"", io->name);
        driver_set_pointer(s->outputs, io, data);
    }
    return IGRT_EXIT_OK;
}

/* Creates dir and what is missing above it. */
static int make_folder(const char *dir)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s", dir) >= PATH_BYTES)
        return driver_fail(IGRT_EXIT_OUTPUT, "%s: the path is too long", dir);
    for (char *p = path + 1; *path; p++) {
        if (*p && *p != '/')
            continue;
        const char was = *p;
        *p = 0;
        struct stat st;
        if (mkdir(path, 0777) && (stat(path, &st) || !S_ISDIR(st.st_mode)))
            return driver_fail(IGRT_EXIT_OUTPUT, "%s: cannot create the folder: %s", path,
                               strerror(errno));
        *p = was;
        if (!was)
            break;
    }
    return IGRT_EXIT_OK;
}

void driver_drop(const char *path)
{
    struct stat st;
    if (!lstat(path, &st) && S_ISREG(st.st_mode))
        unlink(path);
}

static int write_output(const DriverSession *s, const char *path, const igrt_io *io)
{
    int64_t dims[IGRT_MAX_RANK] = {0};
    driver_dims(s->outputs, io, dims);
    const int status = npy_write(path, io->dtype, io->rank, dims, driver_pointer(s->outputs, io));
    if (status != IGRT_EXIT_OK)
        driver_drop(path);
    return status;
}

/* Into the folder `path`; what an earlier run has left there goes. */
static int write_sequence(const DriverSession *s, const char *path, const Argument *a, int number,
                          int absent)
{
    char file[PATH_BYTES];
    const int64_t length = absent ? 0 : get_count(s->outputs, a->group->length_offset);
    int status = absent ? IGRT_EXIT_OK : make_folder(path);
    for (int k = 0; k < 1 << 20 && status == IGRT_EXIT_OK; k++) {
        status = tensor_path(file, s->options->out, "output", number, 1, k);
        if (status == IGRT_EXIT_OK && k < length)
            status = write_output(s, file, &a->io[k]);
        else if (status == IGRT_EXIT_OK && unlink(file))
            break;
    }
    if (absent)
        rmdir(path);
    return status;
}

int driver_write_outputs(const DriverSession *s)
{
    char path[PATH_BYTES];
    Cursor at = {0, 0};
    Argument a;
    int status = make_folder(s->options->out);
    for (int i = 0; status == IGRT_EXIT_OK && driver_next_output(s->model, &at, &a); i++) {
        const int sequence = a.group && a.group->length_offset != IGRT_NO_DIMS;
        const int absent = a.group && a.group->present_offset != IGRT_NO_DIMS &&
                           !get_count(s->outputs, a.group->present_offset);
        status = tensor_path(path, s->options->out, "output", i, sequence, -1);
        if (status != IGRT_EXIT_OK)
            break;
        if (sequence)
            status = write_sequence(s, path, &a, i, absent);
        else if (absent)
            unlink(path); /* of an earlier run */
        else
            status = write_output(s, path, a.io);
    }
    return status;
}
