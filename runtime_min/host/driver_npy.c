/*
 * driver_npy.c - tensors in .npy files.
 *
 * The format is numpy's (numpy.lib.format, versions 1 to 3). Types that numpy lacks are raw
 * bytes: V2 for bf16, V1 for the 8-bit floats and for everything of less than 8 bits, one element a
 * byte.
 */
#if defined(__linux__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* madvise() */
#elif !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "driver_npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum { HEADER_LIMIT = 1 << 20, HUGE_PAGE = 2 << 20 };

/* ---- types and shapes -------------------------------------------------------------------- */

const char *npy_dtype_name(igrt_dtype dtype)
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
const char *npy_describe(const igrt_io *io, char *text, size_t bytes)
{
    size_t n = (size_t)snprintf(text, bytes, "%s[", npy_dtype_name(io->dtype));
    for (int d = 0; d < io->rank && n < bytes; d++) {
        const int fixed = io->dims_offset == IGRT_NO_DIMS || io->min_dims[d] == io->max_dims[d];
        n += (size_t)snprintf(text + n, bytes - n, "%s%s%lld", d ? "," : "",
                              fixed ? "" : "<=", (long long)io->max_dims[d]);
    }
    if (n < bytes)
        snprintf(text + n, bytes - n, "]");
    return text;
}

const char *npy_describe_dims(const int64_t *dims, int rank, char *text, size_t bytes)
{
    size_t n = (size_t)snprintf(text, bytes, "[");
    for (int d = 0; d < rank && n < bytes; d++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%lld", d ? "," : "", (long long)dims[d]);
    if (n < bytes)
        snprintf(text + n, bytes - n, "]");
    return text;
}

size_t npy_count(const int64_t *dims, int rank)
{
    size_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= (size_t)dims[d];
    return n;
}

/* Zeroed memory aligned to 64 bytes or more; never 0 bytes. */
void *driver_allocate(size_t bytes, size_t align)
{
    void *p = NULL;
    if (bytes == 0)
        bytes = 1;
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE && align < HUGE_PAGE)
        align = HUGE_PAGE;
#endif
    if (posix_memalign(&p, align < 64 ? 64 : align, bytes))
        return NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >=
        HUGE_PAGE) /* fewer pages to look for; whole ones alone, what is behind is not ours */
        (void)madvise(p, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return memset(p, 0, bytes);
}

/* ---- reading .npy ------------------------------------------------------------------------ */

/* A parsed header. */
typedef struct NpyHeader {
    char descr[16]; /* "<f4" */
    int fortran;
    int rank;
    int64_t dims[IGRT_MAX_RANK];
} NpyHeader;

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
    return driver_fail(IGRT_EXIT_INPUT, "%s: not a readable .npy file: %s", path, why);
}

static int parse_header(const char *path, const char *header, NpyHeader *npy)
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

static int read_header(const char *path, FILE *f, NpyHeader *npy)
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
        return driver_fail(IGRT_EXIT_MEMORY, "%s: out of memory", path);
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
static int same_type(const NpyHeader *npy, igrt_dtype dtype)
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

static int check_shape(const char *path, const NpyHeader *npy, const igrt_io *io)
{
    char has[256], wants[256];
    /* one element is a scalar, whatever its dims */
    int ok = npy->rank == io->rank || (io->rank == 0 && npy_count(npy->dims, npy->rank) == 1);
    for (int d = 0; ok && d < io->rank; d++) {
        const int fixed = io->dims_offset == IGRT_NO_DIMS;
        const int64_t lo = fixed ? io->max_dims[d] : io->min_dims[d];
        ok = npy->dims[d] >= lo && npy->dims[d] <= io->max_dims[d];
    }
    if (ok)
        return IGRT_EXIT_OK;
    return driver_fail(IGRT_EXIT_INPUT, "%s: shape %s does not fit input \"%s\", declared %s", path,
                       npy_describe_dims(npy->dims, npy->rank, has, sizeof has), io->name,
                       npy_describe(io, wants, sizeof wants));
}

/* Column-major to row-major. */
static void transpose(char *to, const char *from, const NpyHeader *npy, size_t item)
{
    int64_t at[IGRT_MAX_RANK] = {0};
    const size_t n = npy_count(npy->dims, npy->rank);
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
    char **list = driver_allocate(n * sizeof *list + n * (width + 1), 64);
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
int npy_read(const char *path, const igrt_io *io, void **data, int64_t *dims)
{
    char text[256];
    NpyHeader npy = {.rank = 0};
    *data = NULL;
    FILE *f = fopen(path, "rb");
    if (!f)
        return driver_fail(IGRT_EXIT_INPUT, "%s: %s (input \"%s\", %s)", path, strerror(errno),
                           io->name, npy_describe(io, text, sizeof text));
    int status = read_header(path, f, &npy);
    if (status == IGRT_EXIT_OK && !same_type(&npy, io->dtype))
        status = driver_fail(IGRT_EXIT_INPUT,
                             "%s: type '%s' is not that of input \"%s\": %s, '%s' in numpy", path,
                             npy.descr, io->name, npy_dtype_name(io->dtype),
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
    const size_t n = npy_count(npy.dims, npy.rank);
    char *p = item && n > SIZE_MAX / item ? NULL : driver_allocate(n * item, 64);
    if (!p) {
        fclose(f);
        return driver_fail(IGRT_EXIT_MEMORY, "%s: no memory for %zu elements", path, n);
    }
    const size_t got = item ? fread(p, item, n, f) : n;
    const int more = got == n && fgetc(f) != EOF;
    fclose(f);
    if (got != n || more) {
        free(p);
        return driver_fail(IGRT_EXIT_INPUT, "%s: %s", path,
                           more ? "there are bytes after the last element"
                                : "the file is truncated");
    }
    if (npy.fortran && npy.rank > 1) {
        char *q = driver_allocate(n * item, 64);
        if (q)
            transpose(q, p, &npy, item);
        free(p);
        p = q;
    }
    if (p && io->dtype == IGRT_STRING)
        p = string_pointers(p, n, item);
    if (!p)
        return driver_fail(IGRT_EXIT_MEMORY, "%s: no memory for %zu elements", path, n);
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

int npy_write(const char *path, igrt_dtype dtype, int rank, const int64_t *dims, const void *data)
{
    char header[512];
    const size_t count = npy_count(dims, rank);
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
        return driver_fail(IGRT_EXIT_OUTPUT, "%s: %s", path, strerror(errno));
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
        return driver_fail(IGRT_EXIT_OUTPUT, "%s: %s", path, strerror(errno));
    return IGRT_EXIT_OK;
}
