/*
 * tflite.h - a strict reader of TensorFlow Lite files (LiteRT, .tflite) in one header.
 *
 * One source file defines INGOT_TFLITE_IMPLEMENTATION before it includes this. C99 and POSIX mmap,
 * nothing more; -std=c99 needs _POSIX_C_SOURCE 200809L there, ahead of all system headers.
 *
 *     char err[256];
 *     ingot_tflite *f = ingot_tflite_open("model.tflite", err, sizeof err);
 *     const ingot_tflite_graph *g = ingot_tflite_graph_get(f, 0);
 *     ... g->ops[0].builtin, ingot_tflite_int(&g->ops[0].options, 1, 4, 1) ...
 *     ingot_tflite_close(f);
 *
 * Files are mapped; texts, lists and data point into them. Fields have the numbers of schema.fbs,
 * version 3. A file is a FlatBuffer: tables and offsets (https://flatbuffers.dev/internals):
 *
 *     u32 offset of the root table, "TFL3"
 *     table    i32 distance back to its vtable, then its fields
 *     vtable   u16 its bytes, u16 bytes of the table, u16 of each field: where in the table it is,
 *              0: it has its default
 *     list     u32 count, elements; a text has a NUL behind it
 *
 * All is checked when the file is opened: offsets inside the file, numbers of tensors, buffers and
 * graphs that are there, as many bytes of data as shape and type say. What a table of options has
 * is asked by number of field, and checked then.
 */
#ifndef INGOT_TFLITE_H
#define INGOT_TFLITE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* X(name, number in files, bits of an element) */
/* clang-format off */
#define INGOT_TFLITE_TYPES(X)                                                                      \
    X(FLOAT32, 0, 32) X(FLOAT16, 1, 16) X(INT32, 2, 32) X(UINT8, 3, 8) X(INT64, 4, 64)             \
    X(STRING, 5, 0) X(BOOL, 6, 8) X(INT16, 7, 16) X(COMPLEX64, 8, 64) X(INT8, 9, 8)                \
    X(FLOAT64, 10, 64) X(COMPLEX128, 11, 128) X(UINT64, 12, 64) X(RESOURCE, 13, 0)                 \
    X(VARIANT, 14, 0) X(UINT32, 15, 32) X(UINT16, 16, 16) X(INT4, 17, 4) X(BFLOAT16, 18, 16)       \
    X(INT2, 19, 2) X(UINT4, 20, 4) X(FLOAT8_E4M3FN, 21, 8) X(FLOAT8_E5M2, 22, 8)
/* clang-format on */
typedef enum ingot_tflite_type {
#define INGOT_TFLITE_X(name, number, bits) INGOT_TFLITE_##name = number,
    INGOT_TFLITE_TYPES(INGOT_TFLITE_X) INGOT_TFLITE_NO_TYPE = 255 /* behind all others */
#undef INGOT_TFLITE_X
} ingot_tflite_type;

/** A table that was checked; file NULL: there is none, and every field has its default. */
typedef struct ingot_tflite_table {
    const unsigned char *file;
    uint64_t len, at, vtable;
    unsigned vtable_bytes, bytes;
} ingot_tflite_table;

/** Elements one behind the other, little-endian and of any alignment. */
typedef struct ingot_tflite_list {
    const unsigned char *at;
    size_t n;
} ingot_tflite_list;

/** A tensor; all pointers live as long as the file is open. */
typedef struct ingot_tflite_tensor {
    const char *name; /**< "" if it has none */
    ingot_tflite_type type;
    ingot_tflite_list shape;     /**< i32, none negative */
    ingot_tflite_list signature; /**< i32, -1 where a size is free; n is 0 or that of the shape */
    const unsigned char *data;   /**< of a constant, else NULL */
    size_t bytes;
    ingot_tflite_list scales, zeros; /**< f32, i64: as many, or no zeros */
    int axis;                        /**< that scales of more than one are along */
    ingot_tflite_table other_scales; /**< those of another kind; .file is NULL: none */
    int other_kind, is_variable;     /**< kind 2: a scale for each block */
    ingot_tflite_table sparsity;     /**< .file is NULL of what is dense */
    uint32_t external;               /**< id of its external buffer (root table, field 9), or 0 */
} ingot_tflite_tensor;

/** An operator of a graph. */
typedef struct ingot_tflite_op {
    int builtin, version;           /**< BuiltinOperator of the schema: 3 is CONV_2D, 32 CUSTOM */
    const char *custom;             /**< name of a custom operator, or "" */
    ingot_tflite_list in, out;      /**< i32: numbers of tensors; -1: not given */
    ingot_tflite_list intermediate; /**< the same, of LSTMs */
    int options_type;               /**< of the union: 0: none */
    ingot_tflite_table options;
    ingot_tflite_list custom_options; /**< bytes (FlexBuffers) */
} ingot_tflite_op;

/** A graph: operators in the order in which they run. */
typedef struct ingot_tflite_graph {
    const char *name;
    ingot_tflite_tensor *tensors;
    ingot_tflite_op *ops;
    size_t n_tensors, n_ops;
    ingot_tflite_list in, out; /**< i32: numbers of tensors */
} ingot_tflite_graph;

/** A name for an input or output of a graph. */
typedef struct ingot_tflite_name {
    const char *name;
    size_t tensor;
} ingot_tflite_name;

/** A signature: a graph that may be called, and names for what it takes and gives. */
typedef struct ingot_tflite_signature {
    const char *key; /**< "serving_default" */
    size_t graph;
    ingot_tflite_name *in, *out;
    size_t n_in, n_out;
} ingot_tflite_signature;

typedef struct ingot_tflite ingot_tflite;
/** Maps and checks a file. NULL: err, unless it is NULL, has a line "PATH: WHAT: WHY". */
ingot_tflite *ingot_tflite_open(const char *path, char *err, size_t errlen);
/** A file in memory, which is not copied and has to stay. name is for messages. */
ingot_tflite *ingot_tflite_open_memory(const char *name, const void *bytes, size_t len, char *err,
                                       size_t errlen);

/** Unmaps and frees. NULL is allowed. */
void ingot_tflite_close(ingot_tflite *);

/** Graph 0 is the model; NULL if i is out of range. */
const ingot_tflite_graph *ingot_tflite_graph_get(const ingot_tflite *, size_t i);
const ingot_tflite_signature *ingot_tflite_signature_get(const ingot_tflite *, size_t i);
/** The table of the model, for what is not read here. */
const ingot_tflite_table *ingot_tflite_root(const ingot_tflite *);
/** That of any FlatBuffer, whose bytes 4 to 8 are `is`; 0: it is none, or broken. */
int ingot_tflite_root_of(const void *bytes, size_t len, const char *is, ingot_tflite_table *);

/** Field of 1, 2, 4 or 8 bytes as a signed integer, or `otherwise` where the table has none. */
int64_t ingot_tflite_int(const ingot_tflite_table *, unsigned field, unsigned bytes,
                         int64_t otherwise);
float ingot_tflite_float(const ingot_tflite_table *, unsigned field, float otherwise);
/** The table in a field, without a .file if there is none; 0: it is broken. */
int ingot_tflite_inner(const ingot_tflite_table *, unsigned field, ingot_tflite_table *);
/** Table i of the list in a field; 0: there are fewer, or it is broken. */
int ingot_tflite_entry(const ingot_tflite_table *, unsigned field, size_t i, ingot_tflite_table *);
/** Field that is a list of elements of so many bytes, or of none. */
ingot_tflite_list ingot_tflite_elements(const ingot_tflite_table *, unsigned field, unsigned bytes);
/** Field that is a text, or "". */
const char *ingot_tflite_text(const ingot_tflite_table *, unsigned field);

int32_t ingot_tflite_i32(const ingot_tflite_list *, size_t i);
int64_t ingot_tflite_i64(const ingot_tflite_list *, size_t i);
float ingot_tflite_f32(const ingot_tflite_list *, size_t i);

/** "INT8" and, if asked for, the bits of an element; NULL: no type has this number. */
const char *ingot_tflite_type_name(int type, unsigned *bits);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* INGOT_TFLITE_H */

#ifdef INGOT_TFLITE_IMPLEMENTATION
#undef INGOT_TFLITE_IMPLEMENTATION

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define INGOT_TFL_U(n) ((unsigned long long)(n)) /* for printf */

enum { INGOT_TFL_MAX_TEXT = 65535, INGOT_TFL_MAX_RANK = 64 };

struct ingot_tflite {
    ingot_tflite_table root;
    const unsigned char *bytes;
    uint64_t len;
    int mapped; /* bytes are ours to unmap */
    ingot_tflite_graph *graphs;
    ingot_tflite_signature *signatures;
    size_t n_graphs, n_signatures;
    void **blocks; /* to be freed: each begins with a pointer to the next */
};

/* A file while it is read. */
typedef struct ingot_tfl_reader {
    ingot_tflite *f;
    const char *path;
    char *err;
    size_t errlen;
    uint64_t room; /* tables may be shared: no more are read than the file has bytes */
    ingot_tflite_list codes, buffers; /* offsets of tables */
} ingot_tfl_reader;

static int ingot_tfl_fail(ingot_tfl_reader *r, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (r->err)
        snprintf(r->err, r->errlen, "%s: %s", r->path, what);
    return 0;
}

/* Zeroed; NULL after a fault. */
static void *ingot_tfl_alloc(ingot_tfl_reader *r, size_t n, size_t size)
{
    void **b = n > (SIZE_MAX - 16) / size ? NULL : (void **)calloc(1, 16 + n * size);
    if (!b) {
        ingot_tfl_fail(r, "out of memory");
        return NULL;
    }
    *b = r->f->blocks;
    r->f->blocks = b;
    return (char *)b + 16;
}

static uint64_t ingot_tfl_le(const unsigned char *at, size_t bytes)
{
    uint64_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | at[bytes];
    return v;
}

int32_t ingot_tflite_i32(const ingot_tflite_list *l, size_t i)
{
    return (int32_t)(uint32_t)ingot_tfl_le(l->at + 4 * i, 4);
}

int64_t ingot_tflite_i64(const ingot_tflite_list *l, size_t i)
{
    return (int64_t)ingot_tfl_le(l->at + 8 * i, 8);
}

float ingot_tflite_f32(const ingot_tflite_list *l, size_t i)
{
    uint32_t bits = (uint32_t)ingot_tfl_le(l->at + 4 * i, 4);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* ---- types ----------------------------------------------------------------------------------- */

const char *ingot_tflite_type_name(int type, unsigned *bits)
{
    static const struct {
        const char *name;
        unsigned bits;
    } types[] = {
#define INGOT_TFLITE_X(name, number, bits) {#name, bits},
        INGOT_TFLITE_TYPES(INGOT_TFLITE_X)
#undef INGOT_TFLITE_X
    };
    if (type < 0 || type >= (int)(sizeof types / sizeof *types))
        return NULL;
    if (bits)
        *bits = types[type].bits;
    return types[type].name;
}

/* ---- tables, lists and texts ----------------------------------------------------------------- */

static int ingot_tfl_table_at(const unsigned char *file, uint64_t len, uint64_t at,
                              ingot_tflite_table *t)
{
    int64_t vtable;
    unsigned i;
    memset(t, 0, sizeof *t);
    if (len < 4 || at > len - 4)
        return 0;
    vtable = (int64_t)at - (int32_t)(uint32_t)ingot_tfl_le(file + at, 4);
    if (vtable < 0 || (uint64_t)vtable > len - 4)
        return 0;
    t->vtable_bytes = (unsigned)ingot_tfl_le(file + vtable, 2);
    t->bytes = (unsigned)ingot_tfl_le(file + vtable + 2, 2);
    if (t->vtable_bytes < 4 || t->vtable_bytes % 2 || t->vtable_bytes > len - (uint64_t)vtable ||
        t->bytes < 4 || t->bytes > len - at)
        return 0;
    for (i = 4; i < t->vtable_bytes; i += 2) {
        const unsigned field = (unsigned)ingot_tfl_le(file + vtable + i, 2);
        if (field && (field < 4 || field >= t->bytes))
            return 0;
    }
    t->file = file;
    t->len = len;
    t->at = at;
    t->vtable = (uint64_t)vtable;
    return 1;
}

int ingot_tflite_root_of(const void *bytes, size_t len, const char *is, ingot_tflite_table *t)
{
    const unsigned char *at = (const unsigned char *)bytes;
    return len >= 8 && !memcmp(at + 4, is, 4) &&
           ingot_tfl_table_at(at, len, ingot_tfl_le(at, 4), t);
}

static uint64_t ingot_tfl_broken(int *bad)
{
    *bad = 1;
    return 0;
}

/* Where a field of so many bytes is; 0: it has its default. *bad: it does not fit. */
static uint64_t ingot_tfl_field(const ingot_tflite_table *t, unsigned field, unsigned bytes,
                                int *bad)
{
    uint64_t slot = 4 + 2 * (uint64_t)field, at;
    if (!t->file || slot + 2 > t->vtable_bytes)
        return 0;
    at = ingot_tfl_le(t->file + t->vtable + slot, 2);
    if (at && at + bytes > t->bytes)
        return ingot_tfl_broken(bad);
    return at ? t->at + at : 0;
}

/* Where the offset in a field leads to; 0: there is none, or *bad. */
static uint64_t ingot_tfl_target(const ingot_tflite_table *t, unsigned field, int *bad)
{
    const uint64_t at = ingot_tfl_field(t, field, 4, bad);
    uint64_t offset;
    if (!at)
        return 0;
    offset = ingot_tfl_le(t->file + at, 4);
    return offset < 4 || offset > t->len - at ? ingot_tfl_broken(bad) : at + offset;
}

static ingot_tflite_list ingot_tfl_list(const ingot_tflite_table *t, unsigned field, unsigned bytes,
                                        int *bad)
{
    ingot_tflite_list l = {NULL, 0};
    const uint64_t at = ingot_tfl_target(t, field, bad),
                   n = at && t->len - at >= 4 ? ingot_tfl_le(t->file + at, 4) : 0;
    if (!at || t->len - at < 4 || n > (t->len - at - 4) / bytes) {
        *bad |= at != 0;
        return l;
    }
    l.at = t->file + at + 4;
    l.n = (size_t)n;
    return l;
}

static const char *ingot_tfl_string(const ingot_tflite_table *t, unsigned field, int *bad)
{
    const ingot_tflite_list l = ingot_tfl_list(t, field, 1, bad);
    if (l.at && (l.n > INGOT_TFL_MAX_TEXT || l.at + l.n >= t->file + t->len || l.at[l.n] ||
                 memchr(l.at, 0, l.n)))
        ingot_tfl_broken(bad);
    return l.at && !*bad ? (const char *)l.at : "";
}

int64_t ingot_tflite_int(const ingot_tflite_table *t, unsigned field, unsigned bytes,
                         int64_t otherwise)
{
    int bad = 0;
    const uint64_t at = ingot_tfl_field(t, field, bytes, &bad);
    const unsigned shift = 64 - 8 * bytes;
    return at ? (int64_t)(ingot_tfl_le(t->file + at, bytes) << shift) >> shift : otherwise;
}

float ingot_tflite_float(const ingot_tflite_table *t, unsigned field, float otherwise)
{
    int bad = 0;
    const uint64_t at = ingot_tfl_field(t, field, 4, &bad);
    const ingot_tflite_list l = {at ? t->file + at : NULL, 1};
    return at ? ingot_tflite_f32(&l, 0) : otherwise;
}

ingot_tflite_list ingot_tflite_elements(const ingot_tflite_table *t, unsigned field, unsigned bytes)
{
    int bad = 0;
    return ingot_tfl_list(t, field, bytes, &bad);
}

const char *ingot_tflite_text(const ingot_tflite_table *t, unsigned field)
{
    int bad = 0;
    return ingot_tfl_string(t, field, &bad);
}

/* Table i of a list of offsets, which is part of the file. */
static int ingot_tfl_table(const unsigned char *file, uint64_t len, const ingot_tflite_list *l,
                           size_t i, ingot_tflite_table *t)
{
    const uint64_t at = (uint64_t)(l->at - file) + 4 * i, offset = ingot_tfl_le(file + at, 4);
    return offset >= 4 && offset <= len - at && ingot_tfl_table_at(file, len, at + offset, t);
}

int ingot_tflite_entry(const ingot_tflite_table *of, unsigned field, size_t i,
                       ingot_tflite_table *t)
{
    const ingot_tflite_list l = ingot_tflite_elements(of, field, 4);
    return i < l.n && ingot_tfl_table(of->file, of->len, &l, i, t);
}

static int ingot_tfl_entry(ingot_tfl_reader *r, const ingot_tflite_list *l, size_t i,
                           const char *what, ingot_tflite_table *t)
{
    if (r->room == 0)
        return ingot_tfl_fail(r, "it has more tables than fit into its %llu bytes",
                              INGOT_TFL_U(r->f->len));
    r->room--;
    return ingot_tfl_table(r->f->bytes, r->f->len, l, i, t) ||
           ingot_tfl_fail(r, "%s %llu: its table is no part of the file", what, INGOT_TFL_U(i));
}

int ingot_tflite_inner(const ingot_tflite_table *of, unsigned field, ingot_tflite_table *t)
{
    int bad = 0;
    const uint64_t at = ingot_tfl_target(of, field, &bad);
    memset(t, 0, sizeof *t);
    return !bad && (!at || ingot_tfl_table_at(of->file, of->len, at, t));
}

static int ingot_tfl_inner(ingot_tfl_reader *r, const ingot_tflite_table *of, unsigned field,
                           const char *what, ingot_tflite_table *t)
{
    return ingot_tflite_inner(of, field, t) ||
           ingot_tfl_fail(r, "%s: its table is no part of the file", what);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Bytes behind 2 GB: `field` says where, the next one how many. 0: they are not in the file. */
static int ingot_tfl_far(ingot_tfl_reader *r, const ingot_tflite_table *t, unsigned field,
                         ingot_tflite_list *data)
{
    const uint64_t offset = (uint64_t)ingot_tflite_int(t, field, 8, 0),
                   size = (uint64_t)ingot_tflite_int(t, field + 1, 8, 0);
    if (offset <= 1)
        return 1;
    if (offset > r->f->len || size > r->f->len - offset || size > SIZE_MAX)
        return 0;
    data->at = r->f->bytes + offset;
    data->n = (size_t)size;
    return 1;
}

static int ingot_tfl_buffer(ingot_tfl_reader *r, uint64_t number, ingot_tflite_list *data)
{
    ingot_tflite_table t;
    int bad = 0;
    memset(data, 0, sizeof *data);
    if (number >= r->buffers.n)
        return ingot_tfl_fail(r, "buffer %llu is asked for, and there are %llu",
                              INGOT_TFL_U(number), INGOT_TFL_U(r->buffers.n));
    r->room++; /* its tensor has been counted */
    if (!ingot_tfl_entry(r, &r->buffers, (size_t)number, "buffer", &t))
        return 0;
    *data = ingot_tfl_list(&t, 0, 1, &bad);
    return (!bad && ingot_tfl_far(r, &t, 1, data)) ||
           ingot_tfl_fail(r, "buffer %llu: its bytes are no part of the file", INGOT_TFL_U(number));
}

static int ingot_tfl_scales(ingot_tfl_reader *r, const ingot_tflite_table *t,
                            ingot_tflite_tensor *x)
{
    ingot_tflite_table q;
    int bad = 0;
    if (!ingot_tfl_inner(r, t, 4, "quantization", &q))
        return 0;
    x->scales = ingot_tfl_list(&q, 2, 4, &bad);
    x->zeros = ingot_tfl_list(&q, 3, 8, &bad);
    /* older converters give biases the axis of the weights */
    x->axis = x->shape.n == 1 ? 0 : (int)ingot_tflite_int(&q, 6, 4, 0);
    x->other_kind = (int)ingot_tflite_int(&q, 4, 1, 0);
    if (bad || (x->other_kind && !ingot_tflite_inner(&q, 5, &x->other_scales)))
        return ingot_tfl_fail(r, "tensor '%.60s': its scales are no part of the file", x->name);
    if (x->zeros.n && x->zeros.n != x->scales.n && x->scales.n)
        return ingot_tfl_fail(r, "tensor '%.60s': it has %llu scales and %llu zero points", x->name,
                              INGOT_TFL_U(x->scales.n), INGOT_TFL_U(x->zeros.n));
    if (x->scales.n > 1 && (x->axis < 0 || (size_t)x->axis >= x->shape.n ||
                            (uint64_t)ingot_tflite_i32(&x->shape, (size_t)x->axis) != x->scales.n))
        return ingot_tfl_fail(r, "tensor '%.60s': it has %llu scales, and no such axis %d", x->name,
                              INGOT_TFL_U(x->scales.n), x->axis);
    return 1;
}

/* Are there as many bytes as shape and type say? */
static int ingot_tfl_size(ingot_tfl_reader *r, const ingot_tflite_tensor *x)
{
    unsigned bits = 0;
    uint64_t n = 1;
    size_t i;
    ingot_tflite_type_name((int)x->type, &bits);
    if (!bits || x->sparsity.file)
        return 1;
    for (i = 0; i < x->shape.n; i++) {
        const uint64_t d = (uint64_t)ingot_tflite_i32(&x->shape, i);
        if (d && n > UINT64_MAX / 256 / d)
            return ingot_tfl_fail(r, "tensor '%.60s': its dims have a product beyond 2^56",
                                  x->name);
        n *= d;
    }
    if (x->data && (n * bits + 7) / 8 != x->bytes)
        return ingot_tfl_fail(r, "tensor '%.60s': its shape and type need %llu bytes, not %llu",
                              x->name, INGOT_TFL_U((n * bits + 7) / 8), INGOT_TFL_U(x->bytes));
    return 1;
}

static int ingot_tfl_tensor(ingot_tfl_reader *r, const ingot_tflite_list *l, size_t number,
                            ingot_tflite_tensor *x)
{
    ingot_tflite_table t;
    ingot_tflite_list data;
    int64_t type;
    size_t i;
    int bad = 0;
    if (!ingot_tfl_entry(r, l, number, "tensor", &t))
        return 0;
    x->name = ingot_tfl_string(&t, 3, &bad);
    x->shape = ingot_tfl_list(&t, 0, 4, &bad);
    x->signature = ingot_tfl_list(&t, 7, 4, &bad);
    if (bad)
        return ingot_tfl_fail(r, "tensor %llu: its name or shape is no part of the file",
                              INGOT_TFL_U(number));
    if (x->shape.n > INGOT_TFL_MAX_RANK)
        return ingot_tfl_fail(r, "tensor '%.60s': it has %llu dims, not up to %d", x->name,
                              INGOT_TFL_U(x->shape.n), INGOT_TFL_MAX_RANK);
    for (i = 0; i < x->shape.n; i++)
        if (ingot_tflite_i32(&x->shape, i) < 0)
            return ingot_tfl_fail(r, "tensor '%.60s': dim %llu is negative", x->name,
                                  INGOT_TFL_U(i));
    if (x->signature.n && x->signature.n != x->shape.n)
        return ingot_tfl_fail(r, "tensor '%.60s': its shape has %llu dims, its signature %llu",
                              x->name, INGOT_TFL_U(x->shape.n), INGOT_TFL_U(x->signature.n));
    type = ingot_tflite_int(&t, 1, 1, 0);
    if (!ingot_tflite_type_name((int)type, NULL))
        return ingot_tfl_fail(r, "tensor '%.60s': its type is number %lld, which is not known",
                              x->name, (long long)type);
    x->type = (ingot_tflite_type)type;
    x->is_variable = ingot_tflite_int(&t, 5, 1, 0) != 0;
    x->external = (uint32_t)ingot_tflite_int(&t, 10, 4, 0);
    if (!ingot_tfl_buffer(r, (uint64_t)ingot_tflite_int(&t, 2, 4, 0) & 0xffffffff, &data))
        return 0;
    x->data = data.n ? data.at : NULL;
    x->bytes = data.n;
    return ingot_tfl_inner(r, &t, 6, "sparsity", &x->sparsity) && ingot_tfl_scales(r, &t, x) &&
           ingot_tfl_size(r, x);
}

/* ---- operators and graphs -------------------------------------------------------------------- */

/* Numbers of tensors; `least` is -1 where one may be missing. */
static int ingot_tfl_numbers(ingot_tfl_reader *r, const ingot_tflite_list *l, size_t n, int least,
                             const char *what)
{
    size_t i;
    if (l->n > r->room)
        return ingot_tfl_fail(r, "%s: there are more than fit into the file", what);
    r->room -= l->n;
    for (i = 0; i < l->n; i++) {
        const int32_t k = ingot_tflite_i32(l, i);
        if (k < least || (k >= 0 && (size_t)k >= n))
            return ingot_tfl_fail(r, "%s: it refers to tensor %d, and there are %llu", what, k,
                                  INGOT_TFL_U(n));
    }
    return 1;
}

/* Operators of up to 127 once had a field of one byte, which old files have alone. */
static int ingot_tfl_code(ingot_tfl_reader *r, size_t number, ingot_tflite_op *op)
{
    ingot_tflite_table t;
    int64_t old;
    int bad = 0;
    if (number >= r->codes.n)
        return ingot_tfl_fail(r, "operator code %llu is asked for, and there are %llu",
                              INGOT_TFL_U(number), INGOT_TFL_U(r->codes.n));
    r->room++; /* the operator has been counted */
    if (!ingot_tfl_entry(r, &r->codes, number, "operator code", &t))
        return 0;
    old = ingot_tflite_int(&t, 0, 1, 0);
    op->builtin = (int)ingot_tflite_int(&t, 3, 4, 0);
    op->builtin = op->builtin > old ? op->builtin : (int)old;
    op->version = (int)ingot_tflite_int(&t, 2, 4, 1);
    op->custom = ingot_tfl_string(&t, 1, &bad);
    return (!bad && op->builtin >= 0) ||
           ingot_tfl_fail(r, "operator code %llu: it is broken", INGOT_TFL_U(number));
}

static int ingot_tfl_op(ingot_tfl_reader *r, const ingot_tflite_list *l, size_t number,
                        size_t n_tensors, ingot_tflite_op *op)
{
    ingot_tflite_table t;
    char what[64];
    int bad = 0;
    snprintf(what, sizeof what, "operator %llu", INGOT_TFL_U(number));
    if (!ingot_tfl_entry(r, l, number, "operator", &t) ||
        !ingot_tfl_code(r, (size_t)(ingot_tflite_int(&t, 0, 4, 0) & 0xffffffff), op))
        return 0;
    op->in = ingot_tfl_list(&t, 1, 4, &bad);
    op->out = ingot_tfl_list(&t, 2, 4, &bad);
    op->intermediate = ingot_tfl_list(&t, 8, 4, &bad);
    op->custom_options = ingot_tfl_list(&t, 5, 1, &bad);
    op->options_type = (int)(ingot_tflite_int(&t, 3, 1, 0) & 0xff);
    if (bad || !ingot_tfl_far(r, &t, 9, &op->custom_options))
        return ingot_tfl_fail(r, "%s: its inputs or options are no part of the file", what);
    return ingot_tfl_inner(r, &t, 4, what, &op->options) &&
           (op->options.file || ingot_tfl_inner(r, &t, 12, what, &op->options) /* newer ones */) &&
           ingot_tfl_numbers(r, &op->in, n_tensors, -1, what) &&
           ingot_tfl_numbers(r, &op->out, n_tensors, -1, what) &&
           ingot_tfl_numbers(r, &op->intermediate, n_tensors, -1, what);
}

static int ingot_tfl_graph(ingot_tfl_reader *r, const ingot_tflite_list *l, size_t number,
                           ingot_tflite_graph *g)
{
    ingot_tflite_table t;
    ingot_tflite_list tensors, ops;
    size_t i;
    int bad = 0;
    if (!ingot_tfl_entry(r, l, number, "graph", &t))
        return 0;
    tensors = ingot_tfl_list(&t, 0, 4, &bad);
    g->in = ingot_tfl_list(&t, 1, 4, &bad);
    g->out = ingot_tfl_list(&t, 2, 4, &bad);
    ops = ingot_tfl_list(&t, 3, 4, &bad);
    g->name = ingot_tfl_string(&t, 4, &bad);
    if (bad)
        return ingot_tfl_fail(r, "graph %llu: its tensors or operators are no part of the file",
                              INGOT_TFL_U(number));
    if (tensors.n > r->room || ops.n > r->room)
        return ingot_tfl_fail(r, "it has more tables than fit into its %llu bytes",
                              INGOT_TFL_U(r->f->len));
    g->tensors = (ingot_tflite_tensor *)ingot_tfl_alloc(r, tensors.n + 1, sizeof *g->tensors);
    g->ops = (ingot_tflite_op *)ingot_tfl_alloc(r, ops.n + 1, sizeof *g->ops);
    if (!g->tensors || !g->ops)
        return 0;
    g->n_tensors = tensors.n;
    g->n_ops = ops.n;
    for (i = 0; i < tensors.n; i++)
        if (!ingot_tfl_tensor(r, &tensors, i, &g->tensors[i]))
            return 0;
    for (i = 0; i < ops.n; i++)
        if (!ingot_tfl_op(r, &ops, i, tensors.n, &g->ops[i]))
            return 0;
    return ingot_tfl_numbers(r, &g->in, tensors.n, 0, "inputs") &&
           ingot_tfl_numbers(r, &g->out, tensors.n, 0, "outputs");
}

/* ---- signatures and the file ----------------------------------------------------------------- */

static int ingot_tfl_names(ingot_tfl_reader *r, const ingot_tflite_table *of, unsigned field,
                           const ingot_tflite_graph *g, ingot_tflite_name **names, size_t *n)
{
    int bad = 0;
    const ingot_tflite_list l = ingot_tfl_list(of, field, 4, &bad);
    ingot_tflite_table t;
    if (bad || l.n > r->room)
        return ingot_tfl_fail(r, "a signature has more names than fit into the file");
    *names = (ingot_tflite_name *)ingot_tfl_alloc(r, l.n + 1, sizeof **names);
    for (*n = 0; *names && *n < l.n; ++*n) {
        if (!ingot_tfl_entry(r, &l, *n, "name", &t))
            return 0;
        (*names)[*n].name = ingot_tfl_string(&t, 0, &bad);
        (*names)[*n].tensor = (size_t)(ingot_tflite_int(&t, 1, 4, 0) & 0xffffffff);
        if (bad || (*names)[*n].tensor >= g->n_tensors)
            return ingot_tfl_fail(r, "a signature has a name for what is no tensor");
    }
    return *names != NULL;
}

static int ingot_tfl_signature(ingot_tfl_reader *r, const ingot_tflite_list *l, size_t number,
                               ingot_tflite_signature *s)
{
    ingot_tflite_table t;
    int bad = 0;
    if (!ingot_tfl_entry(r, l, number, "signature", &t))
        return 0;
    s->key = ingot_tfl_string(&t, 2, &bad);
    s->graph = (size_t)(ingot_tflite_int(&t, 4, 4, 0) & 0xffffffff);
    if (bad || s->graph >= r->f->n_graphs)
        return ingot_tfl_fail(r, "signature %llu: it is broken, or of a graph that is not there",
                              INGOT_TFL_U(number));
    return ingot_tfl_names(r, &t, 0, &r->f->graphs[s->graph], &s->in, &s->n_in) &&
           ingot_tfl_names(r, &t, 1, &r->f->graphs[s->graph], &s->out, &s->n_out);
}

static int ingot_tfl_model(ingot_tfl_reader *r)
{
    ingot_tflite *f = r->f;
    const ingot_tflite_table *t = &f->root;
    ingot_tflite_list graphs, signatures;
    size_t i;
    int bad = 0;
    if (!ingot_tflite_root_of(f->bytes, f->len, "TFL3", &f->root))
        return ingot_tfl_fail(r, "its bytes 4 to 8 are not 'TFL3', or its root is no part of it");
    if (ingot_tflite_int(t, 0, 4, 0) != 3)
        return ingot_tfl_fail(r, "its schema has version %lld, not 3",
                              (long long)ingot_tflite_int(t, 0, 4, 0));
    r->room = f->len;
    r->codes = ingot_tfl_list(t, 1, 4, &bad);
    graphs = ingot_tfl_list(t, 2, 4, &bad);
    r->buffers = ingot_tfl_list(t, 4, 4, &bad);
    signatures = ingot_tfl_list(t, 7, 4, &bad);
    if (bad || !graphs.n)
        return ingot_tfl_fail(r, "it is cut off, or broken: its graphs are no part of it");
    f->graphs = (ingot_tflite_graph *)ingot_tfl_alloc(r, graphs.n, sizeof *f->graphs);
    f->signatures =
        (ingot_tflite_signature *)ingot_tfl_alloc(r, signatures.n + 1, sizeof *f->signatures);
    if (!f->graphs || !f->signatures)
        return 0;
    for (; f->n_graphs < graphs.n; f->n_graphs++)
        if (!ingot_tfl_graph(r, &graphs, f->n_graphs, &f->graphs[f->n_graphs]))
            return 0;
    for (i = 0; i < signatures.n; i++, f->n_signatures++)
        if (!ingot_tfl_signature(r, &signatures, i, &f->signatures[i]))
            return 0;
    return 1;
}

/* bytes are ours from here on, if mapped. */
static ingot_tflite *ingot_tfl_read(const char *path, const void *bytes, size_t len, int mapped,
                                    char *err, size_t errlen)
{
    ingot_tfl_reader r = {NULL, path, err, errlen, 0, {NULL, 0}, {NULL, 0}};
    r.f = (ingot_tflite *)calloc(1, sizeof *r.f);
    if (!r.f) {
        ingot_tfl_fail(&r, "out of memory");
        if (mapped)
            munmap((void *)(uintptr_t)bytes, len);
        return NULL;
    }
    r.f->bytes = (const unsigned char *)bytes;
    r.f->len = len;
    r.f->mapped = mapped;
    if (ingot_tfl_model(&r))
        return r.f;
    ingot_tflite_close(r.f);
    return NULL;
}

ingot_tflite *ingot_tflite_open_memory(const char *name, const void *bytes, size_t len, char *err,
                                       size_t errlen)
{
    return ingot_tfl_read(name, bytes, len, 0, err, errlen);
}

ingot_tflite *ingot_tflite_open(const char *path, char *err, size_t errlen)
{
    struct stat st;
    void *bytes = MAP_FAILED;
    const int fd = open(path, O_RDONLY | O_CLOEXEC), there = fd >= 0 && !fstat(fd, &st),
              good = there && S_ISREG(st.st_mode) && st.st_size >= 8 &&
                     (uint64_t)st.st_size <= SIZE_MAX;
    if (good)
        bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (bytes != MAP_FAILED)
        return ingot_tfl_read(path, bytes, (size_t)st.st_size, 1, err, errlen);
    if (err)
        snprintf(err, errlen, "%s: it %s", path,
                 !there ? "cannot be opened"
                 : good ? "cannot be mapped"
                        : "is no TensorFlow Lite file");
    return NULL;
}

void ingot_tflite_close(ingot_tflite *f)
{
    void **b;
    if (!f)
        return;
    while ((b = f->blocks)) {
        f->blocks = (void **)*b;
        free(b);
    }
    if (f->mapped)
        munmap((void *)(uintptr_t)f->bytes, (size_t)f->len);
    free(f);
}

const ingot_tflite_graph *ingot_tflite_graph_get(const ingot_tflite *f, size_t i)
{
    return i < f->n_graphs ? &f->graphs[i] : NULL;
}

const ingot_tflite_signature *ingot_tflite_signature_get(const ingot_tflite *f, size_t i)
{
    return i < f->n_signatures ? &f->signatures[i] : NULL;
}

const ingot_tflite_table *ingot_tflite_root(const ingot_tflite *f)
{
    return &f->root;
}

#endif /* INGOT_TFLITE_IMPLEMENTATION */
