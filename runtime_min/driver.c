/*
 * driver.c - ./model IN OUT: reads IN/input_N.npy, runs the model, writes OUT/output_N.npy.
 *
 * The .npy format is numpy's (numpy.lib.format, versions 1 to 3). Types that numpy lacks are raw
 * bytes: V2 for bf16, V1 for the 8-bit floats and for everything of less than 8 bits, one element a
 * byte. POSIX.
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "driver.h"
#include "igrt_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if !defined(__wasi__)
#include <sys/mman.h>
#endif
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, HEADER_LIMIT = 1 << 20 };

typedef enum Mode { MODE_RUN, MODE_BENCH, MODE_PROFILE, MODE_SELFTEST } Mode;

typedef struct Options {
    Mode mode;
    int threads;
    double seconds;
    unsigned flags;
    int poison;
    uint64_t seed;
    const char *in, *out;
    const char *places, *trace, *follow; /* files, or NULL */
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
    void *weights; /* mapped */
    int ready;     /* init was done */
    Trace trace;
} Session;

static const igrt_model *the_model; /* for messages; set once */

static int fail(int status, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "%s: ", the_model->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return status;
}

/* ---- types and shapes -------------------------------------------------------------------- */

static const char *dtype_name(igrt_dtype dtype)
{
    switch (dtype) {
#define IGRT_X(name, value, bytes, text) \
    case IGRT_##name: return text;
        IGRT_DTYPE_LIST(IGRT_X)
#undef IGRT_X
    case IGRT_DTYPE_COUNT: break;
    }
    return "?";
}

/* What numpy calls the type, without the byte order; strings are handled apart. */
static const char *dtype_descr(igrt_dtype dtype)
{
    switch (dtype) {
    case IGRT_BOOL: return "b1";
    case IGRT_I8: return "i1";
    case IGRT_U8: return "u1";
    case IGRT_I16: return "i2";
    case IGRT_U16: return "u2";
    case IGRT_I32: return "i4";
    case IGRT_U32: return "u4";
    case IGRT_I64: return "i8";
    case IGRT_U64: return "u8";
    case IGRT_F16: return "f2";
    case IGRT_BF16: return "V2";
    case IGRT_F32: return "f4";
    case IGRT_F64: return "f8";
    case IGRT_C64: return "c8";
    case IGRT_C128: return "c16";
    default: return "V1";
    }
}

/* "f32[1,3,?<=224]" into text. */
static const char *describe(const igrt_io *io, char *text, size_t bytes)
{
    size_t n = (size_t)snprintf(text, bytes, "%s[", dtype_name(io->dtype));
    for (int d = 0; d < io->rank && n < bytes; d++) {
        const int fixed = io->dims_offset == IGRT_NO_DIMS || io->min_dims[d] == io->max_dims[d];
        n += (size_t)snprintf(text + n, bytes - n, "%s%s%lld", d ? "," : "",
                              fixed ? "" : "<=", (long long)io->max_dims[d]);
    }
    if (n < bytes)
        snprintf(text + n, bytes - n, "]");
    return text;
}

static const char *describe_dims(const int64_t *dims, int rank, char *text, size_t bytes)
{
    size_t n = (size_t)snprintf(text, bytes, "[");
    for (int d = 0; d < rank && n < bytes; d++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%lld", d ? "," : "", (long long)dims[d]);
    if (n < bytes)
        snprintf(text + n, bytes - n, "]");
    return text;
}

static size_t count_elements(const int64_t *dims, int rank)
{
    size_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= (size_t)dims[d];
    return n;
}

/* Zeroed memory aligned to 64 bytes or more; never 0 bytes. */
static void *allocate(size_t bytes, size_t align)
{
    void *p = NULL;
    if (bytes == 0)
        bytes = 1;
    if (posix_memalign(&p, align < 64 ? 64 : align, bytes))
        return NULL;
    return memset(p, 0, bytes);
}

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

/* ---- reading .npy ------------------------------------------------------------------------ */

/* A parsed header. */
typedef struct Npy {
    char descr[16]; /* "<f4" */
    int fortran;
    int rank;
    int64_t dims[IGRT_MAX_RANK];
} Npy;

/* Just after the colon of a key of the header's dict; NULL if the key is not there. */
static const char *find_key(const char *header, const char *key)
{
    const size_t n = strlen(key);
    for (const char *p = header; (p = strstr(p, key)) != NULL; p++) {
        if (p == header || (p[-1] != '\'' && p[-1] != '"') || p[n] != p[-1])
            continue;
        p += n + 1;
        p += strspn(p, " ");
        if (*p == ':')
            return p + 1 + strspn(p + 1, " ");
    }
    return NULL;
}

static int bad_header(const char *path, const char *why)
{
    return fail(IGRT_EXIT_INPUT, "%s: not a readable .npy file: %s", path, why);
}

static int parse_header(const char *path, const char *header, Npy *npy)
{
    const char *descr = find_key(header, "descr"), *order = find_key(header, "fortran_order");
    const char *shape = find_key(header, "shape");
    if (!descr || !order || !shape)
        return bad_header(path, "descr, fortran_order or shape is missing");
    if (*descr != '\'' && *descr != '"')
        return bad_header(path, "structured types are not supported");
    const char *end = strchr(descr + 1, *descr);
    if (!end || end - descr - 1 >= (ptrdiff_t)sizeof npy->descr || end - descr < 3)
        return bad_header(path, "malformed descr");
    memcpy(npy->descr, descr + 1, (size_t)(end - descr - 1));
    npy->descr[end - descr - 1] = 0;
    for (const char *p = npy->descr; *p; p++)
        if (*p <= ' ' || *p > '~')
            return bad_header(path, "malformed descr");
    npy->fortran = strncmp(order, "True", 4) == 0;
    if (!npy->fortran && strncmp(order, "False", 5))
        return bad_header(path, "malformed fortran_order");
    if (*shape++ != '(')
        return bad_header(path, "malformed shape");
    for (npy->rank = 0;;) {
        shape += strspn(shape, " ");
        if (*shape == ')')
            return IGRT_EXIT_OK;
        if (*shape < '0' || *shape > '9')
            return bad_header(path, "malformed shape");
        if (npy->rank == IGRT_MAX_RANK)
            return bad_header(path, "more than 8 dims");
        errno = 0;
        char *next;
        npy->dims[npy->rank++] = strtoll(shape, &next, 10);
        if (errno)
            return bad_header(path, "a dim is too large");
        shape = next + strspn(next, " ");
        if (*shape == ',')
            shape++;
        else if (*shape != ')')
            return bad_header(path, "malformed shape");
    }
}

static int read_header(const char *path, FILE *f, Npy *npy)
{
    unsigned char h[12];
    if (fread(h, 1, 10, f) != 10 || memcmp(h, "\x93NUMPY", 6))
        return bad_header(path, "the magic bytes are missing");
    const unsigned version = h[6];
    size_t bytes = h[8] | (size_t)h[9] << 8;
    if (version < 1 || version > 3)
        return bad_header(path, "unknown format version");
    if (version > 1) {
        if (fread(h + 10, 1, 2, f) != 2)
            return bad_header(path, "truncated");
        bytes |= (size_t)h[10] << 16 | (size_t)h[11] << 24;
    }
    if (bytes > HEADER_LIMIT)
        return bad_header(path, "its header is too long");
    char *text = malloc(bytes + 1);
    if (!text)
        return fail(IGRT_EXIT_MEMORY, "%s: out of memory", path);
    int status = IGRT_EXIT_OK;
    if (fread(text, 1, bytes, f) != bytes)
        status = bad_header(path, "truncated");
    text[bytes] = 0;
    if (status == IGRT_EXIT_OK)
        status = parse_header(path, text, npy);
    free(text);
    return status;
}

/* Whether the file's type is the declared one. */
static int same_type(const Npy *npy, igrt_dtype dtype)
{
    const char order = npy->descr[0], *name = npy->descr + 1;
    if (dtype == IGRT_STRING)
        return order == '|' && *name == 'S';
    if (order != '<' && order != '|' && order != '=')
        return order == '>' && igrt_dtype_bytes(dtype) == 1 && !strcmp(name, dtype_descr(dtype));
    if (dtype == IGRT_F8E5M2 && !strcmp(name, "f1")) /* so written by some versions of ml_dtypes */
        return 1;
    return !strcmp(name, dtype_descr(dtype));
}

static int check_shape(const char *path, const Npy *npy, const igrt_io *io)
{
    char has[256], wants[256];
    /* one element is a scalar, whatever its dims */
    int ok = npy->rank == io->rank || (io->rank == 0 && count_elements(npy->dims, npy->rank) == 1);
    for (int d = 0; ok && d < io->rank; d++) {
        const int fixed = io->dims_offset == IGRT_NO_DIMS;
        const int64_t lo = fixed ? io->max_dims[d] : io->min_dims[d];
        ok = npy->dims[d] >= lo && npy->dims[d] <= io->max_dims[d];
    }
    if (ok)
        return IGRT_EXIT_OK;
    return fail(IGRT_EXIT_INPUT, "%s: shape %s does not fit input \"%s\", declared %s", path,
                describe_dims(npy->dims, npy->rank, has, sizeof has), io->name,
                describe(io, wants, sizeof wants));
}

/* Column-major to row-major. */
static void transpose(char *to, const char *from, const Npy *npy, size_t item)
{
    int64_t at[IGRT_MAX_RANK] = {0};
    const size_t n = count_elements(npy->dims, npy->rank);
    for (size_t i = 0; i < n; i++) {
        size_t offset = 0;
        for (int d = npy->rank; d-- > 0;)
            offset = offset * (size_t)npy->dims[d] + (size_t)at[d];
        memcpy(to + i * item, from + offset * item, item);
        for (int d = npy->rank; d-- > 0;) {
            if (++at[d] < npy->dims[d])
                break;
            at[d] = 0;
        }
    }
}

/* Brings bytes to the one form kernels may rely on: bool 0 or 1, small types extended. */
static void canonicalise(igrt_dtype dtype, unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        switch (dtype) {
        case IGRT_BOOL: p[i] = p[i] != 0; break;
        case IGRT_I4: p[i] = (unsigned char)(((p[i] & 15) ^ 8) - 8); break;
        case IGRT_U4:
        case IGRT_F4E2M1: p[i] &= 15; break;
        case IGRT_I2: p[i] = (unsigned char)(((p[i] & 3) ^ 2) - 2); break;
        case IGRT_U2: p[i] &= 3; break;
        default: return;
        }
    }
}

/* Turns n fixed-width byte strings into pointers to terminated ones; frees text. */
static void *string_pointers(char *text, size_t n, size_t width)
{
    char **list = allocate(n * sizeof *list + n * (width + 1), 64);
    if (list) {
        char *p = (char *)(list + n);
        for (size_t i = 0; i < n; i++, p += width + 1) {
            list[i] = p;
            memcpy(p, text + i * width, width); /* numpy pads with zeros */
        }
    }
    free(text);
    return list;
}

/* Reads a tensor into fresh memory; *data stays NULL on failure. */
static int read_npy(const char *path, const igrt_io *io, void **data, int64_t *dims)
{
    char text[256];
    Npy npy = {.rank = 0};
    *data = NULL;
    FILE *f = fopen(path, "rb");
    if (!f)
        return fail(IGRT_EXIT_INPUT, "%s: %s (input \"%s\", %s)", path, strerror(errno), io->name,
                    describe(io, text, sizeof text));
    int status = read_header(path, f, &npy);
    if (status == IGRT_EXIT_OK && !same_type(&npy, io->dtype))
        status =
            fail(IGRT_EXIT_INPUT, "%s: type '%s' is not that of input \"%s\": %s, '%s' in numpy",
                 path, npy.descr, io->name, dtype_name(io->dtype),
                 io->dtype == IGRT_STRING ? "S" : dtype_descr(io->dtype));
    if (status == IGRT_EXIT_OK)
        status = check_shape(path, &npy, io);
    if (status != IGRT_EXIT_OK) {
        fclose(f);
        return status;
    }
    size_t item = igrt_dtype_bytes(io->dtype);
    if (io->dtype == IGRT_STRING)
        item = (size_t)strtoul(npy.descr + 2, NULL, 10);
    const size_t n = count_elements(npy.dims, npy.rank);
    char *p = item && n > SIZE_MAX / item ? NULL : allocate(n * item, 64);
    if (!p) {
        fclose(f);
        return fail(IGRT_EXIT_MEMORY, "%s: no memory for %zu elements", path, n);
    }
    const size_t got = item ? fread(p, item, n, f) : n;
    const int more = got == n && fgetc(f) != EOF;
    fclose(f);
    if (got != n || more) {
        free(p);
        return fail(IGRT_EXIT_INPUT, "%s: %s", path,
                    more ? "there are bytes after the last element" : "the file is truncated");
    }
    if (npy.fortran && npy.rank > 1) {
        char *q = allocate(n * item, 64);
        if (q)
            transpose(q, p, &npy, item);
        free(p);
        p = q;
    }
    if (p && io->dtype == IGRT_STRING)
        p = string_pointers(p, n, item);
    if (!p)
        return fail(IGRT_EXIT_MEMORY, "%s: no memory for %zu elements", path, n);
    canonicalise(io->dtype, (unsigned char *)p, n);
    memcpy(dims, npy.dims, (size_t)npy.rank * sizeof *dims);
    *data = p;
    return IGRT_EXIT_OK;
}

/* ---- writing .npy ------------------------------------------------------------------------ */

/* Length of the longest string, 1 at least. */
static size_t string_width(char *const *list, size_t n)
{
    size_t width = 1;
    for (size_t i = 0; i < n; i++) {
        const size_t length = list[i] ? strlen(list[i]) : 0;
        if (length > width)
            width = length;
    }
    return width;
}

static int write_npy(const char *path, igrt_dtype dtype, int rank, const int64_t *dims,
                     const void *data)
{
    char header[512];
    const size_t count = count_elements(dims, rank);
    size_t item = igrt_dtype_bytes(dtype);
    char descr[32];
    if (dtype == IGRT_STRING) {
        item = string_width(data, count);
        snprintf(descr, sizeof descr, "|S%zu", item);
    } else {
        const char *name = dtype_descr(dtype);
        snprintf(descr, sizeof descr, "%c%s", item == 1 || *name == 'V' ? '|' : '<', name);
    }
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    size_t n = 10;
    n += (size_t)snprintf(header + n, sizeof header - n,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < rank; d++)
        n += (size_t)snprintf(header + n, sizeof header - n, "%s%lld%s", d ? " " : "",
                              (long long)dims[d], d + 1 < rank || rank == 1 ? "," : "");
    n += (size_t)snprintf(header + n, sizeof header - n, "), }");
    while (n % 64 != 63)
        header[n++] = ' ';
    header[n++] = '\n';
    header[8] = (char)((n - 10) & 255);
    header[9] = (char)((n - 10) >> 8);

    FILE *f = fopen(path, "wb");
    if (!f)
        return fail(IGRT_EXIT_OUTPUT, "%s: %s", path, strerror(errno));
    int ok = fwrite(header, 1, n, f) == n;
    if (dtype == IGRT_STRING) {
        char *const *list = data;
        for (size_t i = 0; i < count; i++) {
            const size_t length = list[i] ? strlen(list[i]) : 0;
            ok = ok && (length == 0 || fwrite(list[i], 1, length, f) == length);
            for (size_t k = length; ok && k < item; k++)
                ok = fputc(0, f) != EOF;
        }
    } else {
        ok = ok && (count == 0 || fwrite(data, item, count, f) == count);
    }
    if (fclose(f) || !ok)
        return fail(IGRT_EXIT_OUTPUT, "%s: %s", path, strerror(errno));
    return IGRT_EXIT_OK;
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
    return n < PATH_BYTES ? IGRT_EXIT_OK : fail(IGRT_EXIT_USAGE, "%s: the path is too long", dir);
}

static int read_input(Session *s, const char *path, const igrt_io *io)
{
    int64_t dims[IGRT_MAX_RANK] = {0};
    void *data;
    const int status = read_npy(path, io, &data, dims);
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
            return fail(IGRT_EXIT_INPUT, "%s: input \"%s\" has at most %d elements", path,
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
                return fail(IGRT_EXIT_INPUT, "%s: %s (input \"%s\", a folder)", path,
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
        const size_t n = count_elements(io->max_dims, io->rank);
        void *data = allocate(n * igrt_dtype_bytes(io->dtype), 64);
        if (!data)
            return fail(IGRT_EXIT_MEMORY, "no memory for output \"%s\"", io->name);
        set_pointer(s->outputs, io, data);
    }
    return IGRT_EXIT_OK;
}

/* Creates dir and what is missing above it. */
static int make_folder(const char *dir)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s", dir) >= PATH_BYTES)
        return fail(IGRT_EXIT_OUTPUT, "%s: the path is too long", dir);
    for (char *p = path + 1; *path; p++) {
        if (*p && *p != '/')
            continue;
        const char was = *p;
        *p = 0;
        struct stat st;
        if (mkdir(path, 0777) && (stat(path, &st) || !S_ISDIR(st.st_mode)))
            return fail(IGRT_EXIT_OUTPUT, "%s: cannot create the folder: %s", path,
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
    return write_npy(path, io->dtype, io->rank, dims, get_pointer(s->outputs, io));
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

#if defined(__wasi__) /* has no mapped files: a copy */
static void *map_file(int fd, size_t bytes)
{
    unsigned char *p =
        aligned_alloc(IGRT_ALIGN, (bytes + IGRT_ALIGN - 1) / IGRT_ALIGN * IGRT_ALIGN);
    size_t n = 0;
    ssize_t got = 1;
    while (p && n < bytes && (got = read(fd, p + n, bytes - n)) > 0)
        n += (size_t)got;
    if (p && n < bytes) {
        free(p);
        return NULL;
    }
    return p;
}

static void unmap_file(void *p, size_t bytes)
{
    (void)bytes;
    free(p);
}
#else
static void *map_file(int fd, size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void unmap_file(void *p, size_t bytes)
{
    munmap(p, bytes);
}
#endif

/* Maps the weights file that lies beside the executable. */
static int map_weights(Session *s, const char *argv0)
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
        return fail(IGRT_EXIT_WEIGHTS, "%s: the path is too long", m->weights_file);
    memcpy(path + n, m->weights_file, name);

    struct stat st;
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st)) {
        const int status = fail(IGRT_EXIT_WEIGHTS, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    if ((uint64_t)st.st_size != m->weights_bytes) {
        close(fd);
        return fail(IGRT_EXIT_WEIGHTS, "%s: %lld bytes, but this program was built for %zu", path,
                    (long long)st.st_size, m->weights_bytes);
    }
    if (m->weights_bytes) {
        s->weights = map_file(fd, m->weights_bytes);
        if (!s->weights) {
            close(fd);
            return fail(IGRT_EXIT_WEIGHTS, "%s: %s", path, strerror(errno));
        }
    }
    close(fd);
    s->config.weights = s->weights;
    s->config.weights_bytes = m->weights_bytes;
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
        return fail(IGRT_EXIT_INPUT, "%s: no list of places", o->places);
    t->to = fopen(o->trace, "wb");
    if (!t->to)
        return fail(IGRT_EXIT_OUTPUT, "%s: %s", o->trace, strerror(errno));
    t->from = o->follow ? fopen(o->follow, "rb") : NULL;
    if (o->follow && !t->from)
        return fail(IGRT_EXIT_INPUT, "%s: %s", o->follow, strerror(errno));
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
    room = count_elements(io->max_dims, io->rank) * igrt_dtype_bytes(io->dtype);
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
    void *p = allocate(bytes, s->model->arena_align);
    if (!p)
        fail(IGRT_EXIT_MEMORY, "no memory for an arena of %zu bytes", bytes);
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
    s->config.memory = s->memory = allocate((size_t)m->n_memories * sizeof *s->memory, 64);
    for (; s->memory && s->config.n_memories < m->n_memories; s->config.n_memories++) {
        igrt_memory *block = &s->memory[s->config.n_memories];
        block->bytes = m->memory_bytes[s->config.n_memories];
        block->data = allocate_block(s, block->bytes);
        if (!block->data)
            return IGRT_EXIT_MEMORY;
    }
    return s->memory ? IGRT_EXIT_OK : fail(IGRT_EXIT_MEMORY, "out of memory");
}

static int start(Session *s, const char *argv0)
{
    const igrt_model *m = s->model;
    int status = map_weights(s, argv0);
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
    status = allocate_arena(s);
    if (status != IGRT_EXIT_OK)
        return status;
    s->ctx = allocate(m->ctx_bytes, 64);
    s->inputs = allocate(m->inputs_bytes, 64);
    s->outputs = allocate(m->outputs_bytes, 64);
    if (!s->ctx || !s->inputs || !s->outputs)
        return fail(IGRT_EXIT_MEMORY, "out of memory");
    const igrt_status ret = m->init(s->ctx, &s->config);
    if (ret != IGRT_OK)
        return fail(ret == IGRT_ERR_WEIGHTS_CHECKSUM ? IGRT_EXIT_WEIGHTS : IGRT_EXIT_MODEL,
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
    const igrt_status ret = s->model->run(s->ctx, s->inputs, s->outputs);
    char why[512];
    if (ret == IGRT_OK)
        return IGRT_EXIT_OK;
    if (s->model->fault && explain(s->model->fault(s->ctx), why, sizeof why))
        return fail(IGRT_EXIT_MODEL, "run: %s (status %d): %s", igrt_status_text(ret), (int)ret,
                    why);
    if (ret == IGRT_ERR_DIM)
        for (int i = 0; i < s->model->n_inputs; i++) {
            char has[256], wants[256];
            int64_t dims[IGRT_MAX_RANK] = {0};
            const igrt_io *io = &s->model->inputs[i];
            get_dims(s->inputs, io, dims);
            fail(0, "input \"%s\" is %s, declared %s", io->name,
                 describe_dims(dims, io->rank, has, sizeof has), describe(io, wants, sizeof wants));
        }
    return fail(IGRT_EXIT_MODEL, "run: %s (status %d)", igrt_status_text(ret), (int)ret);
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int bench(Session *s)
{
    size_t n = 0, room = 1024;
    double *ms = malloc(room * sizeof *ms), sum = 0;
    int status = ms ? run_once(s) : fail(IGRT_EXIT_MEMORY, "out of memory");
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
        status = run_once(s);
        t = now(NULL);
        ms[n] = (double)(t - t0) * 1e-6;
        sum += ms[n];
    }
    if (status == IGRT_EXIT_OK) {
        qsort(ms, n, sizeof *ms, compare_times);
        const double median = n % 2 ? ms[n / 2] : 0.5 * (ms[n / 2 - 1] + ms[n / 2]);
        printf("{\"model\": \"%s\", \"median_ms\": %.6f, \"min_ms\": %.6f, \"mean_ms\": %.6f, "
               "\"calls\": %zu, \"threads\": %d}\n",
               s->model->name, median, ms[0], sum / (double)n, n, s->config.threads);
    }
    free(ms);
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

static int selftest(Session *s)
{
    const igrt_status ret = s->model->selftest ? s->model->selftest(s->ctx) : IGRT_ERR_NO_SELFTEST;
    if (ret == IGRT_ERR_NO_SELFTEST)
        return fail(IGRT_EXIT_NO_SELFTEST, "selftest: %s", igrt_status_text(ret));
    if (ret == IGRT_ERR_SELFTEST)
        return fail(IGRT_EXIT_SELFTEST, "selftest: %s", igrt_status_text(ret));
    if (ret != IGRT_OK)
        return fail(IGRT_EXIT_MODEL, "selftest: %s (status %d)", igrt_status_text(ret), (int)ret);
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
    if (o->mode == MODE_BENCH)
        return bench(s);
    if (o->mode == MODE_PROFILE)
        return profile(s, p);
    status = run_once(s);
    if (status == IGRT_EXIT_OK && s->trace.failed)
        status = fail(IGRT_EXIT_OUTPUT, "%s: the trace is incomplete", o->trace);
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
    if (s->weights)
        unmap_file(s->weights, m->weights_bytes);
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
        fprintf(f, "%s%s", k ? ", " : " ", describe(&a->io[k], text, sizeof text));
    fprintf(f, "%s\n", optional ? " (optional)" : "");
}

static void print_help(FILE *f, const igrt_model *m, const char *argv0)
{
    fprintf(f,
            "usage: %s IN OUT              read IN/input_N.npy, write OUT/output_N.npy\n"
            "       %s --bench SECONDS IN  time it; prints one line of JSON\n"
            "       %s --profile IN        time every step\n"
            "       %s --selftest          run the golden vectors inside\n"
            "options: -t N       number of threads\n"
            "         --no-checksum  do not check the weights\n"
            "         --seed N   of random numbers; 0 if not given\n"
            "         --poison   fill the arena with 0xff first (to find reads of unset memory)\n"
            "         --trace PLACES FILE  after each step write what it wrote to FILE\n"
            "         --follow FILE        and then take it from FILE\n",
            argv0, argv0, argv0, argv0);
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
    return fail(IGRT_EXIT_USAGE, "%s%s (%s --help tells more)", why, what, argv0);
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
        } else if (!strcmp(a, "--trace") && i + 2 < argc) {
            o->places = argv[++i];
            o->trace = argv[++i];
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
    const int wanted = o->mode == MODE_RUN ? 2 : o->mode == MODE_SELFTEST ? 0 : 1;
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
        return fail(IGRT_EXIT_USAGE, "%s: %s", here, strerror(errno));
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
        status = fail(IGRT_EXIT_OUTPUT, "standard output: %s", strerror(errno));
    return status;
}
