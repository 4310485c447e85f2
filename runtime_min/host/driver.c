/*
 * driver.c - ./model IN OUT: reads IN/input_N.npy, runs the model, writes OUT/output_N.npy. POSIX.
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "driver_npy.h"
#include "driver_timeline.h"
#include "igrt_pool.h"
#include "igrt_weights.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

typedef enum Mode { MODE_RUN, MODE_BENCH, MODE_PROFILE, MODE_SELFTEST } Mode;

typedef struct Options {
    Mode mode;
    int threads;
    double seconds;
    unsigned flags;
    int poison;
    uint64_t seed;
    const char *in, *out;
    const char *places, *trace, *follow, *timeline; /* files, or NULL */
} Options;

/* What a step writes, as the file of places tells: bytes of the arena, or of an output. */
typedef struct Place {
    int step, output; /* output -1: the arena */
    size_t offset, bytes;
} Place;

/* --trace: the bytes of each place go to a file after its step; --follow: then others take their place. */
typedef struct Trace {
    FILE *to, *from;
    Place *place;
    int n;
    int failed;
} Trace;

/* Everything the driver holds while it runs. */
typedef struct Session {
    const igrt_model *model;
    const Options *options;
    igrt_pool pool;
    igrt_config config;
    igrt_memory *memory;
    void *ctx, *inputs, *outputs;
    igrt_weights weights;
    igrt_timeline timeline;
    int ready; /* init was done */
    int ran;   /* once at least */
    Trace trace;
} Session;

static const igrt_model *the_model; /* for messages; set once */

int driver_fail(int status, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "%s: ", the_model->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return status;
}

/* ---- members of inputs and outputs --------------------------------------------------------- */

/* The data pointer of an input or output struct; memcpy because its type there is its own. */
static void *get_pointer(const void *base, const igrt_io *io)
{
    void *p;
    memcpy(&p, (const char *)base + io->data_offset, sizeof p);
    return p;
}

static void set_pointer(void *base, const igrt_io *io, void *p)
{
    memcpy((char *)base + io->data_offset, &p, sizeof p);
}

static void get_dims(const void *base, const igrt_io *io, int64_t *dims)
{
    if (io->dims_offset == IGRT_NO_DIMS)
        memcpy(dims, io->max_dims, sizeof io->max_dims);
    else
        memcpy(dims, (const char *)base + io->dims_offset, (size_t)io->rank * sizeof *dims);
}

/* ---- the model --------------------------------------------------------------------------- */

/* Input or output number N of the model: a tensor, or a group of them. */
typedef struct Argument {
    const igrt_group *group; /* NULL: a tensor */
    const igrt_io *io;       /* the tensor, or the group's elements */
    int n;
} Argument;

/* The places in the two lists that the next argument comes from. */
typedef struct Cursor {
    int io, group;
} Cursor;

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

static int next_input(const igrt_model *m, Cursor *at, Argument *a)
{
    return next_argument(m->inputs, m->n_inputs, m->input_groups, m->n_input_groups, at, a);
}

static int next_output(const igrt_model *m, Cursor *at, Argument *a)
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

static int read_input(Session *s, const char *path, const igrt_io *io)
{
    int64_t dims[IGRT_MAX_RANK] = {0};
    void *data;
    const int status = npy_read(path, io, &data, dims);
    if (status != IGRT_EXIT_OK)
        return status;
    set_pointer(s->inputs, io, data);
    if (io->dims_offset != IGRT_NO_DIMS)
        memcpy((char *)s->inputs + io->dims_offset, dims, (size_t)io->rank * sizeof *dims);
    return IGRT_EXIT_OK;
}

/* The files of a sequence's folder, up to the first that is missing. */
static int read_sequence(Session *s, const Argument *a, int number)
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

static int read_inputs(Session *s)
{
    char path[PATH_BYTES];
    Cursor at = {0, 0};
    Argument a;
    for (int i = 0; next_input(s->model, &at, &a); i++) {
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
        if (a.group)
            set_count(s->inputs, a.group->present_offset, 1);
        status = sequence ? read_sequence(s, &a, i) : read_input(s, path, a.io);
        if (status != IGRT_EXIT_OK)
            return status;
    }
    return IGRT_EXIT_OK;
}

static int allocate_outputs(Session *s)
{
    for (int i = 0; i < s->model->n_outputs; i++) {
        const igrt_io *io = &s->model->outputs[i];
        const size_t n = npy_count(io->max_dims, io->rank);
        void *data = driver_allocate(n * igrt_dtype_bytes(io->dtype), 64);
        if (!data)
            return driver_fail(IGRT_EXIT_MEMORY, "no memory for output \"%s\"", io->name);
        set_pointer(s->outputs, io, data);
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

static int write_output(const Session *s, const char *path, const igrt_io *io)
{
    int64_t dims[IGRT_MAX_RANK] = {0};
    get_dims(s->outputs, io, dims);
    return npy_write(path, io->dtype, io->rank, dims, get_pointer(s->outputs, io));
}

/* Into the folder `path`; what an earlier run has left there goes. */
static int write_sequence(const Session *s, const char *path, const Argument *a, int number,
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

static int write_outputs(const Session *s)
{
    char path[PATH_BYTES];
    Cursor at = {0, 0};
    Argument a;
    int status = make_folder(s->options->out);
    for (int i = 0; status == IGRT_EXIT_OK && next_output(s->model, &at, &a); i++) {
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

/* More than that is mapped: other processes then share it. */
enum { MOST_READ = 1 << 30 };

/* The weights file that lies beside the executable. */
static int open_weights(Session *s, const char *argv0)
{
    const igrt_model *m = s->model;
    char path[PATH_BYTES];
    if (!m->weights_file)
        return IGRT_EXIT_OK;
    const size_t name = strlen(m->weights_file) + 1;
#if defined(__wasi__) /* there it would be what runs the module */
    ssize_t n = -1;
#else
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
#endif
    if (n < 0)
        n = snprintf(path, sizeof path, "%s", argv0);
    if (n >= (ssize_t)sizeof path)
        n = 0;
    while (n > 0 && path[n - 1] != '/')
        n--;
    if ((size_t)n + name > sizeof path)
        return driver_fail(IGRT_EXIT_WEIGHTS, "%s: the path is too long", m->weights_file);
    memcpy(path + n, m->weights_file, name);
    const char *why = (m->weights_bytes > MOST_READ ? igrt_weights_open : igrt_weights_read)(
        &s->weights, path, m->weights_bytes);
    if (why)
        return driver_fail(IGRT_EXIT_WEIGHTS, "%s: %s (this program was built for %zu bytes)", path,
                           why, m->weights_bytes);
    s->config.weights = s->weights.data;
    s->config.weights_bytes = s->weights.bytes;
    return IGRT_EXIT_OK;
}

/* The steps of one run, as the profile callback sees them. */
typedef struct Profile {
    int n, room;
    struct {
        const char *name;
        uint64_t best;
    } * step;
} Profile;

static uint64_t now(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void note_step(void *user, int step, const char *name, uint64_t nanoseconds)
{
    Profile *p = user;
    if (step < 0)
        return;
    if (step >= p->room) {
        const int room = step * 2 + 64;
        void *grown = realloc(p->step, (size_t)room * sizeof *p->step);
        if (!grown)
            return;
        p->step = grown;
        p->room = room;
    }
    for (; p->n <= step; p->n++) {
        p->step[p->n].name = "";
        p->step[p->n].best = UINT64_MAX;
    }
    p->step[step].name = name;
    if (nanoseconds < p->step[step].best)
        p->step[step].best = nanoseconds;
}

/* ---- tracing ----------------------------------------------------------------------------- */

/* A line for each place: step, output or -1, offset, bytes. */
static int open_trace(Session *s)
{
    const Options *o = s->options;
    Trace *t = &s->trace;
    FILE *f = fopen(o->places, "r");
    long long at[4];
    while (f && fscanf(f, "%lld %lld %lld %lld", &at[0], &at[1], &at[2], &at[3]) == 4) {
        Place *grown =
            t->n % 64 ? t->place : realloc(t->place, (size_t)(t->n + 64) * sizeof *grown);
        if (!grown)
            break;
        t->place = grown;
        t->place[t->n++] = (Place){(int)at[0], (int)at[1], (size_t)at[2], (size_t)at[3]};
    }
    const int whole = f && feof(f);
    if (f)
        fclose(f);
    if (!whole)
        return driver_fail(IGRT_EXIT_INPUT, "%s: no list of places", o->places);
    t->to = fopen(o->trace, "wb");
    if (!t->to)
        return driver_fail(IGRT_EXIT_OUTPUT, "%s: %s", o->trace, strerror(errno));
    t->from = o->follow ? fopen(o->follow, "rb") : NULL;
    if (o->follow && !t->from)
        return driver_fail(IGRT_EXIT_INPUT, "%s: %s", o->follow, strerror(errno));
    return IGRT_EXIT_OK;
}

static char *place_data(const Session *s, const Place *p)
{
    const igrt_io *io;
    size_t room;
    if (p->output < 0)
        return p->bytes <= s->config.arena_bytes && p->offset <= s->config.arena_bytes - p->bytes
                   ? (char *)s->config.arena + p->offset
                   : NULL;
    if (p->output >= s->model->n_outputs)
        return NULL;
    io = &s->model->outputs[p->output];
    room = npy_count(io->max_dims, io->rank) * igrt_dtype_bytes(io->dtype);
    return p->offset == 0 && p->bytes <= room ? get_pointer(s->outputs, io) : NULL;
}

static void trace_step(void *user, int step, const char *name, uint64_t nanoseconds)
{
    Session *s = user;
    Trace *t = &s->trace;
    (void)name, (void)nanoseconds;
    for (int i = 0; i < t->n && !t->failed; i++) {
        const Place *p = &t->place[i];
        char *data = p->step == step ? place_data(s, p) : NULL;
        if (p->step != step)
            continue;
        t->failed = !data || fwrite(&i, sizeof i, 1, t->to) != 1 ||
                    fwrite(data, 1, p->bytes, t->to) != p->bytes || fflush(t->to) ||
                    (t->from && fread(data, 1, p->bytes, t->from) != p->bytes);
    }
}

/* A block of exactly the bytes that the model asks for: a sanitizer sees what goes beyond. */
static void *allocate_block(const Session *s, size_t bytes)
{
    void *p = driver_allocate(bytes, s->model->arena_align);
    if (!p)
        driver_fail(IGRT_EXIT_MEMORY, "no memory for an arena of %zu bytes", bytes);
    else if (s->options->poison ||
             s->options->trace) /* what no step has written is traced with the rest */
        memset(p, s->options->poison ? 0xff : 0, bytes);
    return p;
}

/* The arena, or the memories that it is divided among. */
static int allocate_arena(Session *s)
{
    const igrt_model *m = s->model;
    if (!m->n_memories) {
        s->config.arena_bytes = m->arena_bytes(s->config.threads);
        s->config.arena = allocate_block(s, s->config.arena_bytes);
        return s->config.arena ? IGRT_EXIT_OK : IGRT_EXIT_MEMORY;
    }
    s->config.memory = s->memory = driver_allocate((size_t)m->n_memories * sizeof *s->memory, 64);
    for (; s->memory && s->config.n_memories < m->n_memories; s->config.n_memories++) {
        igrt_memory *block = &s->memory[s->config.n_memories];
        block->bytes = m->memory_bytes[s->config.n_memories];
        block->data = allocate_block(s, block->bytes);
        if (!block->data)
            return IGRT_EXIT_MEMORY;
    }
    return s->memory ? IGRT_EXIT_OK : driver_fail(IGRT_EXIT_MEMORY, "out of memory");
}

static int start(Session *s, const char *argv0)
{
    const igrt_model *m = s->model;
    int status = open_weights(s, argv0);
    if (status != IGRT_EXIT_OK)
        return status;
    s->config.struct_size = sizeof s->config;
    s->config.flags = s->options->flags;
    s->config.seed = s->options->seed;
    s->config.threads = igrt_pool_start(&s->pool, s->options->threads);
    if (s->config.threads > 1) {
        s->config.parallel_for = igrt_pool_for;
        s->config.parallel_user = &s->pool;
    }
    if (s->options->timeline)
        igrt_timeline_attach(&s->timeline, &s->pool, &s->config);
    status = allocate_arena(s);
    if (status != IGRT_EXIT_OK)
        return status;
    s->ctx = driver_allocate(m->ctx_bytes, 64);
    s->inputs = driver_allocate(m->inputs_bytes, 64);
    s->outputs = driver_allocate(m->outputs_bytes, 64);
    if (!s->ctx || !s->inputs || !s->outputs)
        return driver_fail(IGRT_EXIT_MEMORY, "out of memory");
    const igrt_status ret = m->init(s->ctx, &s->config);
    if (ret != IGRT_OK)
        return driver_fail(ret == IGRT_ERR_WEIGHTS_CHECKSUM ? IGRT_EXIT_WEIGHTS : IGRT_EXIT_MODEL,
                           "init: %s (status %d)", igrt_status_text(ret), (int)ret);
    s->ready = 1;
    return IGRT_EXIT_OK;
}

/* "node 'r' (Range): the size of axis 0 of its result is 7; it has to be 5" */
static int explain(const igrt_fault *f, char *out, size_t room)
{
    const long long value = (long long)f->value, least = (long long)f->least,
                    greatest = (long long)f->greatest;
    if (!f->what)
        return 0;
    if (least < greatest)
        snprintf(out, room, "%s is %lld; it has to be in %lld..%lld", f->what, value, least,
                 greatest);
    else if (least == greatest && (value < least || value > greatest))
        snprintf(out, room, "%s is %lld; it has to be %lld", f->what, value, least);
    else
        snprintf(out, room, "%s", f->what);
    return 1;
}

static int run_once(Session *s)
{
    igrt_status ret = s->model->run(s->ctx, s->inputs, s->outputs);
    char why[512];
    if (ret == IGRT_ERR_DIM && s->ran) { /* states that grow have no room left */
        ret = s->model->reset(s->ctx);
        if (ret == IGRT_OK)
            ret = s->model->run(s->ctx, s->inputs, s->outputs);
    }
    s->ran |= ret == IGRT_OK;
    if (ret == IGRT_OK)
        return IGRT_EXIT_OK;
    if (s->model->fault && explain(s->model->fault(s->ctx), why, sizeof why))
        return driver_fail(IGRT_EXIT_MODEL, "run: %s (status %d): %s", igrt_status_text(ret),
                           (int)ret, why);
    if (ret == IGRT_ERR_DIM)
        for (int i = 0; i < s->model->n_inputs; i++) {
            char has[256], wants[256];
            int64_t dims[IGRT_MAX_RANK] = {0};
            const igrt_io *io = &s->model->inputs[i];
            get_dims(s->inputs, io, dims);
            driver_fail(0, "input \"%s\" is %s, declared %s", io->name,
                        npy_describe_dims(dims, io->rank, has, sizeof has),
                        npy_describe(io, wants, sizeof wants));
        }
    return driver_fail(IGRT_EXIT_MODEL, "run: %s (status %d)", igrt_status_text(ret), (int)ret);
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Inputs and outputs go to the device, or (back: without what is in them) are let go of there. */
static int move_to_device(Session *s, int back)
{
    const igrt_model *m = s->model;
    igrt_status status = IGRT_OK;
    for (int i = 0; i < m->n_inputs + m->n_outputs && status == IGRT_OK; i++) {
        const int input = i < m->n_inputs;
        const igrt_io *io = input ? &m->inputs[i] : &m->outputs[i - m->n_inputs];
        void *base = input ? s->inputs : s->outputs, *host = get_pointer(base, io), *place = host;
        const size_t bytes = npy_count(io->max_dims, io->rank) * igrt_dtype_bytes(io->dtype);
        int64_t dims[IGRT_MAX_RANK] = {0};
        if (!host)
            continue;
        set_pointer(base, io, NULL);
        if (back) {
            status = m->memory(s->ctx, 0, NULL, &place);
            continue;
        }
        get_dims(base, io, dims);
        const size_t used = input ? npy_count(dims, io->rank) * igrt_dtype_bytes(io->dtype) : 0;
        char *whole =
            calloc(bytes ? bytes : 1, 1); /* what is on the device has the size of the bounds */
        if (whole && used)
            memcpy(whole, host, used);
        free(host);
        status = m->memory(s->ctx, bytes ? bytes : 1, whole, &place);
        free(whole);
        if (status == IGRT_OK)
            set_pointer(base, io, place);
    }
    return status == IGRT_OK ? IGRT_EXIT_OK
                             : driver_fail(IGRT_EXIT_MODEL, "memory on the device: %s (status %d)",
                                           igrt_status_text(status), (int)status);
}

static int wait_for_device(Session *s)
{
    const igrt_status status = s->model->wait(s->ctx);
    return status == IGRT_OK ? IGRT_EXIT_OK
                             : driver_fail(IGRT_EXIT_MODEL, "run: %s (status %d)",
                                           igrt_status_text(status), (int)status);
}

enum {
    RUNS_IN_FLIGHT = 20
}; /* of bench, with memory on the device: then the device never waits for the host */

static int bench(Session *s)
{
    const int device = (s->config.flags & IGRT_ON_DEVICE) != 0, runs = device ? RUNS_IN_FLIGHT : 1;
    size_t n = 0, room = 1024;
    double *ms = malloc(room * sizeof *ms), sum = 0;
    int status = ms ? IGRT_EXIT_OK : driver_fail(IGRT_EXIT_MEMORY, "out of memory");
    if (status == IGRT_EXIT_OK && device)
        status = move_to_device(s, 0);
    if (status == IGRT_EXIT_OK)
        status = run_once(s);
    if (status == IGRT_EXIT_OK && device)
        status = wait_for_device(s);
    const uint64_t begin = now(NULL);
    const uint64_t limit = begin + (uint64_t)(s->options->seconds * 1e9);
    for (uint64_t t = begin; status == IGRT_EXIT_OK && (n < 3 || t < limit); n++) {
        if (n == room) {
            double *grown = realloc(ms, 2 * room * sizeof *ms);
            if (!grown)
                break;
            ms = grown;
            room *= 2;
        }
        const uint64_t t0 = now(NULL);
        for (int i = 0; i < runs && status == IGRT_EXIT_OK; i++)
            status = run_once(s);
        if (status == IGRT_EXIT_OK && device)
            status = wait_for_device(s);
        t = now(NULL);
        ms[n] = (double)(t - t0) * 1e-6 / runs;
        sum += ms[n];
    }
    if (status == IGRT_EXIT_OK) {
        qsort(ms, n, sizeof *ms, compare_times);
        const double median = n % 2 ? ms[n / 2] : 0.5 * (ms[n / 2 - 1] + ms[n / 2]);
        printf("{\"model\": \"%s\", \"median_ms\": %.6f, \"min_ms\": %.6f, \"mean_ms\": %.6f, "
               "\"calls\": %zu, \"threads\": %d}\n",
               s->model->name, median, ms[0], sum / (double)n, n * (size_t)runs, s->config.threads);
    }
    free(ms);
    if (device && s->ready) {
        const int gone = move_to_device(s, 1);
        status = status == IGRT_EXIT_OK ? gone : status;
    }
    return status;
}

static int profile(Session *s, const Profile *p)
{
    int status = IGRT_EXIT_OK;
    for (int i = 0; i < 10 && status == IGRT_EXIT_OK; i++)
        status = run_once(s);
    if (status != IGRT_EXIT_OK)
        return status;
    uint64_t total = 0;
    for (int i = 0; i < p->n; i++)
        total += p->step[i].best == UINT64_MAX ? 0 : p->step[i].best;
    printf("step         ms       %%  name   (best of 10 runs)\n");
    for (int i = 0; i < p->n; i++)
        if (p->step[i].best != UINT64_MAX)
            printf("%4d %10.6f  %6.2f  %s\n", i, (double)p->step[i].best * 1e-6,
                   total ? 100.0 * (double)p->step[i].best / (double)total : 0.0, p->step[i].name);
    printf(" sum %10.6f\n", (double)total * 1e-6);
    return IGRT_EXIT_OK;
}

/* The last of three runs, when caches and threads are warm. */
static int timeline(Session *s)
{
    int status = IGRT_EXIT_OK;
    for (int i = 0; i < 3 && status == IGRT_EXIT_OK; i++) {
        s->timeline.recording = i == 2;
        status = run_once(s);
    }
    if (status == IGRT_EXIT_OK &&
        !igrt_timeline_write(&s->timeline, s->model->name, s->options->timeline))
        status = driver_fail(IGRT_EXIT_OUTPUT, "%s: cannot be written", s->options->timeline);
    return status;
}

static int selftest(Session *s)
{
    const igrt_status ret = s->model->selftest ? s->model->selftest(s->ctx) : IGRT_ERR_NO_SELFTEST;
    if (ret == IGRT_ERR_NO_SELFTEST)
        return driver_fail(IGRT_EXIT_NO_SELFTEST, "selftest: %s", igrt_status_text(ret));
    if (ret == IGRT_ERR_SELFTEST)
        return driver_fail(IGRT_EXIT_SELFTEST, "selftest: %s", igrt_status_text(ret));
    if (ret != IGRT_OK)
        return driver_fail(IGRT_EXIT_MODEL, "selftest: %s (status %d)", igrt_status_text(ret),
                           (int)ret);
    printf("selftest: ok\n");
    return IGRT_EXIT_OK;
}

static int work(Session *s, const char *argv0, Profile *p)
{
    const Options *o = s->options;
    if (o->mode == MODE_PROFILE) {
        s->config.clock = now;
        s->config.profile = note_step;
        s->config.user = p;
    }
    if (o->trace) {
        s->config.clock = now;
        s->config.profile = trace_step;
        s->config.user = s;
    }
    int status = o->trace ? open_trace(s) : IGRT_EXIT_OK;
    if (status == IGRT_EXIT_OK)
        status = start(s, argv0);
    if (status != IGRT_EXIT_OK)
        return status;
    if (o->mode == MODE_SELFTEST)
        return selftest(s);
    status = read_inputs(s);
    if (status == IGRT_EXIT_OK)
        status = allocate_outputs(s);
    if (status != IGRT_EXIT_OK)
        return status;
    if (o->timeline)
        return timeline(s);
    if (o->mode == MODE_BENCH)
        return bench(s);
    if (o->mode == MODE_PROFILE)
        return profile(s, p);
    status = run_once(s);
    if (status == IGRT_EXIT_OK && s->trace.failed)
        status = driver_fail(IGRT_EXIT_OUTPUT, "%s: the trace is incomplete", o->trace);
    return status == IGRT_EXIT_OK ? write_outputs(s) : status;
}

static void finish(Session *s)
{
    const igrt_model *m = s->model;
    if (s->ready)
        m->deinit(s->ctx);
    igrt_pool_stop(&s->pool);
    for (int i = 0; s->inputs && i < m->n_inputs; i++)
        free(get_pointer(s->inputs, &m->inputs[i]));
    for (int i = 0; s->outputs && i < m->n_outputs; i++)
        free(get_pointer(s->outputs, &m->outputs[i]));
    igrt_weights_close(&s->weights);
    igrt_timeline_free(&s->timeline);
    if (s->trace.to)
        fclose(s->trace.to);
    if (s->trace.from)
        fclose(s->trace.from);
    free(s->trace.place);
    free(s->config.arena);
    for (int i = 0; i < s->config.n_memories; i++)
        free(s->memory[i].data);
    free(s->memory);
    free(s->ctx);
    free(s->inputs);
    free(s->outputs);
}

/* ---- the command line -------------------------------------------------------------------- */

static void print_argument(FILE *f, const char *what, int number, const Argument *a)
{
    char text[256];
    const igrt_group *g = a->group;
    const int optional = g ? g->present_offset != IGRT_NO_DIMS : a->io->optional;
    fprintf(f, "%s %d: %s", what, number, g ? g->name : a->io->name);
    if (g && g->length_offset != IGRT_NO_DIMS)
        fprintf(f, " sequence of at most %d", a->n);
    for (int k = 0; k < a->n; k++)
        fprintf(f, "%s%s", k ? ", " : " ", npy_describe(&a->io[k], text, sizeof text));
    fprintf(f, "%s\n", optional ? " (optional)" : "");
}

static void print_help(FILE *f, const igrt_model *m, const char *argv0)
{
    fprintf(
        f,
        "usage: %s IN OUT              read IN/input_N.npy, write OUT/output_N.npy\n"
        "       %s --bench SECONDS IN  time it; prints one line of JSON\n"
        "       %s --profile IN        time every step\n"
        "       %s --timeline FILE IN  write when each step and each thread's part of it ran, "
        "as Chrome's trace\n"
        "       %s --selftest          run the golden vectors inside\n"
        "options: -t N       number of threads\n"
        "         --no-checksum  do not check the weights\n"
        "         --seed N   of random numbers; 0 if not given\n"
        "         --on-device  of --bench: inputs and outputs lie on the GPU, and it never waits "
        "for the host\n"
        "         --poison   fill the arena with 0xff first (to find reads of unset memory)\n"
        "         --trace PLACES FILE  after each step write what it wrote to FILE\n"
        "         --follow FILE        and then take it from FILE\n",
        argv0, argv0, argv0, argv0, argv0);
    Cursor in = {0, 0}, out = {0, 0};
    Argument a;
    for (int i = 0; next_input(m, &in, &a); i++)
        print_argument(f, "input ", i, &a);
    for (int i = 0; next_output(m, &out, &a); i++)
        print_argument(f, "output", i, &a);
    fprintf(f, "exit status: 0 ok, 1 usage, 2 input, 3 weights, 4 model, 5 output, 6 selftest, "
               "7 memory, 8 no selftest\n");
}

static int usage_error(const char *argv0, const char *why, const char *what)
{
    return driver_fail(IGRT_EXIT_USAGE, "%s%s (%s --help tells more)", why, what, argv0);
}

static int parse_options(int argc, char **argv, Options *o)
{
    const char *place[2] = {NULL, NULL};
    int n = 0;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        char *end = argv[i];
        if (!strcmp(a, "-t") || !strcmp(a, "--threads")) {
            const long threads = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
            if (threads < 1 || threads > IGRT_POOL_MAX || *end)
                return usage_error(argv[0], "-t needs a number from 1 to 64", "");
            o->threads = (int)threads;
            i++;
        } else if (!strcmp(a, "--bench")) {
            o->mode = MODE_BENCH;
            o->seconds = i + 1 < argc ? strtod(argv[i + 1], &end) : -1;
            if (!(o->seconds >= 0 && o->seconds <= 1e6) || *end || end == argv[i + 1])
                return usage_error(argv[0], "--bench needs a number of seconds", "");
            i++;
        } else if (!strcmp(a, "--profile")) {
            o->mode = MODE_PROFILE;
        } else if (!strcmp(a, "--selftest")) {
            o->mode = MODE_SELFTEST;
        } else if (!strcmp(a, "--no-checksum")) {
            o->flags |= IGRT_SKIP_CHECKSUM;
        } else if (!strcmp(a, "--on-device")) {
            o->flags |= IGRT_ON_DEVICE;
        } else if (!strcmp(a, "--trace") && i + 2 < argc) {
            o->places = argv[++i];
            o->trace = argv[++i];
        } else if (!strcmp(a, "--timeline") && i + 1 < argc) {
            o->timeline = argv[++i];
        } else if (!strcmp(a, "--follow") && i + 1 < argc) {
            o->follow = argv[++i];
        } else if (!strcmp(a, "--seed")) {
            o->seed = i + 1 < argc ? strtoull(argv[i + 1], &end, 0) : 0;
            if (*end || end == argv[i])
                return usage_error(argv[0], "--seed needs a number", "");
            i++;
        } else if (!strcmp(a, "--poison")) {
            o->poison = 1;
        } else if (a[0] == '-' && a[1]) {
            return usage_error(argv[0], "unknown option ", a);
        } else if (n < 2) {
            place[n++] = a;
        } else {
            return usage_error(argv[0], "too many arguments: ", a);
        }
    }
    if ((o->flags & IGRT_ON_DEVICE) && (o->mode != MODE_BENCH || !the_model->memory))
        return usage_error(argv[0], "--on-device is for --bench of a model on a GPU", "");
    const int wanted = o->timeline ? 1 : o->mode == MODE_RUN ? 2 : o->mode == MODE_SELFTEST ? 0 : 1;
    if (n != wanted)
        return usage_error(argv[0], "wrong number of folders", "");
    o->in = place[0];
    o->out = place[1];
    return IGRT_EXIT_OK;
}

int igrt_driver_main(int argc, char **argv, const igrt_model *model)
{
    static Session session; /* large: it holds the pool */
    Options options = {.mode = MODE_RUN, .threads = 1};
    Profile p = {0};
    the_model = model;
    memset(&session, 0, sizeof session);
#if defined(__wasi__) /* starts in /, and is told where its user is */
    const char *here = getenv("PWD");
    if (here && chdir(here))
        return driver_fail(IGRT_EXIT_USAGE, "%s: %s", here, strerror(errno));
#endif
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            print_help(stdout, model, argv[0]);
            return IGRT_EXIT_OK;
        }
    int status = parse_options(argc, argv, &options);
    if (status != IGRT_EXIT_OK)
        return status;
    session.model = model;
    session.options = &options;
    status = work(&session, argv[0], &p);
    finish(&session);
    free(p.step);
    if (fflush(stdout) && status == IGRT_EXIT_OK)
        status = driver_fail(IGRT_EXIT_OUTPUT, "standard output: %s", strerror(errno));
    return status;
}
