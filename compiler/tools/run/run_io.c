/* run_io.c - tensors in files: .npy (numpy.lib.format 1 to 3), and what importers have (.pb).
 *
 * In .npy files types that numpy lacks are raw bytes, as the driver of bundles has them: V2 for
 * bf16, V1 for 8-bit floats and for everything of less than 8 bits, one element a byte. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

static bool ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && !strcmp(s + n - m, suffix);
}

static bool fault(ingot_status *status, ingot_status why, const char *path, const char *what)
{
    *status = complain(why, "%s: %s", path, what);
    return false;
}

/* ---- .npy -------------------------------------------------------------------------------- */

static const char *npy_type(ingot_dtype d)
{
    static const char *const name[INGOT_DTYPE_COUNT] = {
        [INGOT_BOOL] = "|b1", [INGOT_I8] = "|i1",  [INGOT_U8] = "|u1",   [INGOT_I16] = "<i2",
        [INGOT_U16] = "<u2",  [INGOT_I32] = "<i4", [INGOT_U32] = "<u4",  [INGOT_I64] = "<i8",
        [INGOT_U64] = "<u8",  [INGOT_F16] = "<f2", [INGOT_BF16] = "|V2", [INGOT_F32] = "<f4",
        [INGOT_F64] = "<f8",  [INGOT_C64] = "<c8", [INGOT_C128] = "<c16"};
    return name[d] ? name[d] : "|V1";
}

/* The value of a key in the header's dict. */
static const char *npy_key(const char *header, const char *key)
{
    const char *p = strstr(header, key);
    p = p ? strchr(p, ':') : NULL;
    return p ? p + 1 + strspn(p + 1, " ") : NULL;
}

/* A file of the format: where its header is, and its elements. */
typedef struct {
    const char *descr, *order, *shape;
    const char *data;
    size_t bytes, width; /* of all elements, and of one */
} NpyFile;

static bool npy_shape(const char *p, HostTensor *v)
{
    v->rank = 0;
    v->count = 1;
    if (*p++ != '(')
        return false;
    for (;;) {
        p += strspn(p, " ,");
        if (*p == ')')
            return true;
        char *end;
        errno = 0;
        long long n = strtoll(p, &end, 10);
        if (end == p || errno || n < 0 || v->rank == INGOT_MAX_RANK ||
            (n && v->count > SIZE_MAX / 32 / (size_t)n))
            return false;
        v->dims[v->rank++] = n;
        v->count *= (size_t)n;
        p = end;
    }
}

/* Strings of n bytes padded with zeros become char pointers. */
static void unpack_strings(Arena *a, HostTensor *v, const char *text, size_t width)
{
    char **list = NEWN(a, char *, v->count + 1);
    for (size_t i = 0; i < v->count; i++) {
        list[i] = arena_alloc(a, width + 1);
        memcpy(list[i], text + i * width, width);
    }
    v->data = (void *)list;
    v->bytes = v->count * sizeof *list;
}

/* Elements that lie column-major, the first axis innermost. */
static void *row_major(Arena *a, const HostTensor *v, const char *from, size_t width)
{
    char *to = arena_array(a, v->count + 1, width ? width : 1);
    int64_t at[INGOT_MAX_RANK] = {0};
    for (size_t i = 0; i < v->count; i++) {
        size_t offset = 0;
        for (int d = v->rank; d-- > 0;)
            offset = offset * (size_t)v->dims[d] + (size_t)at[d];
        memcpy(to + i * width, from + offset * width, width);
        for (int d = v->rank; d-- > 0 && ++at[d] == v->dims[d];)
            at[d] = 0;
    }
    return to;
}

static const char *npy_header(Arena *a, const MapFile *map, NpyFile *npy)
{
    const uint8_t *h = map->data;
    if (map->len < 10 || memcmp(h, "\x93NUMPY", 6))
        return "not a .npy file";
    if (h[6] < 1 || h[6] > 3)
        return arena_printf(a, "version %d of the format is not known, only 1 to 3", h[6]);
    const size_t at = h[6] > 1 ? 12 : 10;
    if (map->len < at)
        return "the file is truncated";
    size_t n = h[8] | (size_t)h[9] << 8;
    if (h[6] > 1)
        n |= (size_t)h[10] << 16 | (size_t)h[11] << 24;
    if (n > 1 << 20)
        return "its header is too long";
    if (n > map->len - at)
        return "the file is truncated: its header does not end";
    const char *header = arena_printf(a, "%.*s", (int)n, (const char *)h + at);
    npy->descr = npy_key(header, "descr");
    npy->order = npy_key(header, "fortran_order");
    npy->shape = npy_key(header, "shape");
    npy->data = (const char *)h + at + n;
    npy->bytes = map->len - at - n;
    if (!npy->descr || !npy->order || !npy->shape)
        return arena_printf(a, "its header has no '%s'",
                            !npy->descr   ? "descr"
                            : !npy->order ? "fortran_order"
                                          : "shape");
    if (strncmp(npy->order, "True", 4) && strncmp(npy->order, "False", 5))
        return "'fortran_order' of its header is neither True nor False";
    return NULL;
}

/* The element type that the header names; its width with it. */
static bool npy_element(NpyFile *npy, HostTensor *v)
{
    const char *descr = npy->descr;
    if (!strncmp(descr, "'|S", 3)) {
        v->dtype = INGOT_STRING;
        npy->width = strtoul(descr + 3, NULL, 10);
        return npy->width <= 1 << 20;
    }
    for (int d = 0; d < INGOT_INDEX; d++) {
        const char *name = npy_type((ingot_dtype)d);
        const size_t n = strlen(name);
        if (d == INGOT_STRING || strncmp(descr + 1, name, n) || descr[1 + n] != *descr)
            continue;
        v->dtype = (ingot_dtype)d;
        v->raw = name[1] == 'V';
        npy->width = (size_t)dtype_info[d].bytes;
        return true;
    }
    return false;
}

static bool npy_parse(Arena *a, const MapFile *map, const char *path, HostTensor *v,
                      ingot_status *status)
{
    NpyFile npy = {0};
    const char *why = npy_header(a, map, &npy);
    if (why)
        return fault(status, INGOT_INVALID, path, why);
    if (!npy_shape(npy.shape, v))
        return fault(status, INGOT_INVALID, path,
                     "'shape' of its header is no list of sizes, at most 8 that memory can hold");
    if (!npy_element(&npy, v))
        return fault(status, INGOT_UNSUPPORTED, path,
                     arena_printf(a,
                                  "elements of type %.*s are not supported: little-endian numbers, "
                                  "bool, |S, |V1 and |V2 are",
                                  (int)strcspn(npy.descr, ",}"), npy.descr));
    if (npy.width && v->count > npy.bytes / npy.width)
        return fault(status, INGOT_INVALID, path,
                     arena_printf(a,
                                  "the file is truncated: %zu elements of %zu bytes are wanted, "
                                  "and %zu bytes are there",
                                  v->count, npy.width, npy.bytes));
    v->bytes = v->count * npy.width;
    if (npy.bytes > v->bytes)
        return fault(status, INGOT_INVALID, path, "there are bytes after the last element");
    v->data = arena_alloc(a, v->bytes + 1);
    memcpy(v->data, npy.data, v->bytes);
    if (*npy.order == 'T' && v->rank > 1)
        v->data = row_major(a, v, v->data, npy.width);
    if (v->dtype == INGOT_STRING)
        unpack_strings(a, v, v->data, npy.width);
    return true;
}

static bool npy_read(Arena *a, const char *path, HostTensor *v, ingot_status *status)
{
    MapFile map;
    const char *why = mapfile_open(&map, path);
    if (why)
        return fault(status, INGOT_IO, path, why);
    const bool ok = npy_parse(a, &map, path, v, status);
    mapfile_close(&map);
    return ok;
}

static size_t string_width(const HostTensor *v)
{
    size_t width = 1;
    char *const *list = v->data;
    for (size_t i = 0; i < v->count; i++)
        width = strlen(list[i]) > width ? strlen(list[i]) : width;
    return width;
}

static bool npy_write(Arena *a, const char *path, const HostTensor *v, ingot_status *status)
{
    StrBuf sb = {0};
    bool strings = v->dtype == INGOT_STRING;
    size_t width = strings ? string_width(v) : 0;
    sb_write(&sb, "\x93NUMPY\1\0\0\0", 10);
    if (strings)
        sb_printf(&sb, "{'descr': '|S%zu'", width);
    else
        sb_printf(&sb, "{'descr': '%s'", npy_type(v->dtype));
    sb_puts(&sb, ", 'fortran_order': False, 'shape': (");
    for (int i = 0; i < v->rank; i++)
        sb_printf(&sb,
                  i + 1 < v->rank ? "%lld, "
                  : v->rank == 1  ? "%lld,"
                                  : "%lld",
                  (long long)v->dims[i]);
    sb_puts(&sb, "), }");
    while ((sb.len + 1) % 64)
        sb_puts(&sb, " ");
    sb_puts(&sb, "\n");
    sb.data[8] = (char)((sb.len - 10) & 255);
    sb.data[9] = (char)((sb.len - 10) >> 8);
    for (size_t i = 0; strings && i < v->count; i++) {
        const char *s = ((char *const *)v->data)[i];
        sb_puts(&sb, s);
        memset(sb_room(&sb, width - strlen(s)), 0, width - strlen(s));
        sb.len += width - strlen(s);
    }
    FILE *f = fopen(path, "wb");
    int error = f ? 0 : errno;
    if (f && fwrite(sb.data, 1, sb.len, f) != sb.len)
        error = errno;
    if (f && !error && !strings && v->bytes && fwrite(v->data, 1, v->bytes, f) != v->bytes)
        error = errno;
    if (f && fclose(f) && !error)
        error = errno;
    sb_free(&sb);
    return !error || fault(status, INGOT_IO, part_shown(a, path), strerror(error));
}

/* ---- forms of importers ------------------------------------------------------------------ */

typedef struct {
    Arena *a;
    ingot_status *status;
} ValueCaller;

static void *value_alloc(void *user, size_t bytes)
{
    return arena_alloc(((ValueCaller *)user)->a, bytes);
}

static void value_fault(void *user, ingot_status why, const char *message)
{
    *((ValueCaller *)user)->status = complain(why, "%s", message);
}

/* The nth of all; NULL: no more. */
static const DataForm *data_form(int nth)
{
    for (int i = 0; importers[i]; i++)
        for (const DataForm *f = importers[i]->data; f && f->ending; f++)
            if (!nth--)
                return f;
    return NULL;
}

static const DataForm *form_of(const char *path)
{
    const DataForm *f;
    for (int i = 0; (f = data_form(i)); i++)
        if (ends_with(path, f->ending))
            return f;
    return NULL;
}

const char *value_file(Arena *a, const char *stem)
{
    const DataForm *f;
    for (int i = 0; (f = data_form(i)); i++) {
        const char *path = arena_printf(a, "%s%s", stem, f->ending);
        if (!access(path, F_OK))
            return path;
    }
    return NULL;
}

const char *value_forms(Arena *a, const char *stem)
{
    const DataForm *f;
    const char *list = "neither ";
    for (int i = 0; (f = data_form(i)); i++)
        list =
            arena_printf(a, "%s%s%s%s%s", list, i ? ", " : "", *stem ? "an " : "", stem, f->ending);
    return arena_printf(a, "%s nor %s%s.npy", list, *stem ? "an " : "", stem);
}

/* ---- both -------------------------------------------------------------------------------- */

bool value_read_as(Arena *a, const char *path, const ingot_model_io *like, HostTensor *v,
                   ingot_status *status)
{
    ValueCaller caller = {a, status};
    const DataForm *f = form_of(path);
    *v = (HostTensor){0};
    if (access(path, R_OK))
        return fault(status, INGOT_IO, path, strerror(errno));
    if (f)
        return f->read(&(ValueUser){value_alloc, value_fault, &caller}, path, like, v);
    return ends_with(path, ".npy")
               ? npy_read(a, path, v, status)
               : fault(status, INGOT_USAGE, path,
                       arena_printf(a, "the name ends in %s", value_forms(a, "")));
}

bool value_read(Arena *a, const char *path, HostTensor *v, ingot_status *status)
{
    return value_read_as(a, path, NULL, v, status);
}

bool value_write(Arena *a, const char *path, const ingot_model_io *like, const HostTensor *v,
                 ingot_status *status)
{
    ValueCaller caller = {a, status};
    const DataForm *f = form_of(path);
    return f ? f->write(&(ValueUser){value_alloc, value_fault, &caller}, path, part_shown(a, path),
                        like, v)
             : npy_write(a, path, v, status);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void value_random(Arena *a, HostTensor *v, uint64_t seed)
{
    int width = dtype_info[v->dtype].bytes;
    v->count = 1;
    for (int i = 0; i < v->rank; i++)
        v->count *= (size_t)v->dims[i];
    v->bytes = v->count * (size_t)width;
    uint8_t *p = v->data = arena_alloc(a, v->bytes + 1);
    for (size_t i = 0; i < v->count; i++, p += width) {
        double x = (double)(next_random(&seed) >> 11) * 0x1p-53; /* 0..1 */
        float f = (float)(2 * x - 1);
        double d = 2 * x - 1;
        int64_t n = (int64_t)(x * 2); /* 0, 1: valid as indices and masks nearly everywhere */
        if (v->dtype == INGOT_F32)
            memcpy(p, &f, 4);
        else if (v->dtype == INGOT_F64)
            memcpy(p, &d, 8);
        else if (v->dtype == INGOT_F16 || v->dtype == INGOT_BF16)
            memcpy(p, &(uint16_t){(uint16_t)(v->dtype == INGOT_F16 ? 0x3800 : 0x3f00)},
                   2); /* 0.5 */
        else
            memcpy(p, &n, (size_t)(width < 8 ? width : 8)); /* little-endian */
    }
}
