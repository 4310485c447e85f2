/*
 * gguf.h - a strict reader of GGUF files (language models as llama.cpp keeps them) in one header.
 *
 * In one source file:
 *
 *     #define INGOT_GGUF_IMPLEMENTATION
 *     #include "gguf.h"
 *
 * and the plain #include everywhere else. C99 and POSIX mmap, nothing more; a strict -std=c99
 * needs _POSIX_C_SOURCE 200809L defined before the first system header of that source file.
 *
 *     char err[256];
 *     ingot_gguf *g = ingot_gguf_open("model.gguf", err, sizeof err);
 *     const ingot_gguf_tensor *w = ingot_gguf_find(g, "blk.0.attn_q.weight");
 *     ... w->type, w->rank, w->dims, w->data, w->bytes ...
 *     const ingot_gguf_value *v = ingot_gguf_key(g, "general.architecture");
 *     ... v->type, v->count, ingot_gguf_text(v, 0) ...
 *     ingot_gguf_close(g);
 *
 * Files are mapped; tensors and texts point into them. Versions 2 and 3, little-endian
 * (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md):
 *
 *     "GGUF", u32 version, u64 number of tensors, u64 number of keys
 *     keys     of each: text, u32 type, value (array: u32 type of elements, u64 count, elements)
 *     tensors  of each: text, u32 rank, u64 dims (innermost first), u32 type, u64 offset
 *     padding to general.alignment (32), then the data, where offsets count from
 *
 * A text is its length (u64) and bytes. NAME-00001-of-00003.gguf is the first of three files that
 * are one model: all are opened, and have their tensors together.
 *
 * Refused are: a key or tensor that is there twice, a type that is not known, data outside of the
 * file, that overlap or are not aligned, an array in an array, and a row of half a block.
 */
#ifndef INGOT_GGUF_H
#define INGOT_GGUF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define INGOT_GGUF_MAX_RANK 4

/* X(name, number in files, elements of a block, bytes of a block) */
/* clang-format off */
#define INGOT_GGUF_TYPES(X)                                                                        \
    X(F32, 0, 1, 4) X(F16, 1, 1, 2) X(Q4_0, 2, 32, 18) X(Q4_1, 3, 32, 20) X(Q5_0, 6, 32, 22)       \
    X(Q5_1, 7, 32, 24) X(Q8_0, 8, 32, 34) X(Q8_1, 9, 32, 36) X(Q2_K, 10, 256, 84)                  \
    X(Q3_K, 11, 256, 110) X(Q4_K, 12, 256, 144) X(Q5_K, 13, 256, 176) X(Q6_K, 14, 256, 210)        \
    X(Q8_K, 15, 256, 292) X(IQ2_XXS, 16, 256, 66) X(IQ2_XS, 17, 256, 74) X(IQ3_XXS, 18, 256, 98)   \
    X(IQ1_S, 19, 256, 50) X(IQ4_NL, 20, 32, 18) X(IQ3_S, 21, 256, 110) X(IQ2_S, 22, 256, 82)       \
    X(IQ4_XS, 23, 256, 136) X(I8, 24, 1, 1) X(I16, 25, 1, 2) X(I32, 26, 1, 4) X(I64, 27, 1, 8)     \
    X(F64, 28, 1, 8) X(IQ1_M, 29, 256, 56) X(BF16, 30, 1, 2) X(TQ1_0, 34, 256, 54)                 \
    X(TQ2_0, 35, 256, 66) X(MXFP4, 39, 32, 17)
/* clang-format on */

/** Types of tensors, by their numbers in files. */
typedef enum ingot_gguf_type {
#define INGOT_GGUF_X(name, number, block, bytes) INGOT_GGUF_##name = number,
    INGOT_GGUF_TYPES(INGOT_GGUF_X) INGOT_GGUF_TYPE_LIMIT /**< above all of them */
#undef INGOT_GGUF_X
} ingot_gguf_type;

/** Types of the values of keys, by their numbers in files (where an array is 9, and tells its
 * elements'). */
/* clang-format off */
typedef enum ingot_gguf_value_type {
    INGOT_GGUF_U8_VALUE, INGOT_GGUF_I8_VALUE, INGOT_GGUF_U16_VALUE, INGOT_GGUF_I16_VALUE,
    INGOT_GGUF_U32_VALUE, INGOT_GGUF_I32_VALUE, INGOT_GGUF_F32_VALUE, INGOT_GGUF_BOOL_VALUE,
    INGOT_GGUF_TEXT_VALUE, INGOT_GGUF_ARRAY_VALUE, INGOT_GGUF_U64_VALUE, INGOT_GGUF_I64_VALUE,
    INGOT_GGUF_F64_VALUE
} ingot_gguf_value_type;
/* clang-format on */

/** Bytes in the file, without a NUL behind them. */
typedef struct ingot_gguf_bytes {
    const char *at;
    size_t len;
} ingot_gguf_bytes;

/** A key and its value. All pointers live as long as the file is open. */
typedef struct ingot_gguf_value {
    const char *key;
    ingot_gguf_value_type type; /**< of each element */
    int is_array;
    size_t count;                  /**< 1 unless it is an array */
    const void *data;              /**< elements, little-endian, unaligned; texts: see there */
    const ingot_gguf_bytes *texts; /**< of type TEXT: count of them */
} ingot_gguf_value;

/** One tensor. */
typedef struct ingot_gguf_tensor {
    const char *name;
    ingot_gguf_type type;
    int rank;                           /**< 1 to 4 */
    uint64_t dims[INGOT_GGUF_MAX_RANK]; /**< innermost first; those beyond the rank are 1 */
    const void *data;                   /**< blocks of a row one behind the other */
    size_t bytes;
} ingot_gguf_tensor;

typedef struct ingot_gguf ingot_gguf;

/**
 * Maps and checks a file, and those that it says are the rest of it. On failure returns NULL and
 * puts one line, "PATH: WHAT: WHY", into err (which may be NULL; errlen counts the NUL).
 */
ingot_gguf *ingot_gguf_open(const char *path, char *err, size_t errlen);

/** One file in memory, which is not copied and has to stay. name is for messages. */
ingot_gguf *ingot_gguf_open_memory(const char *name, const void *bytes, size_t len, char *err,
                                   size_t errlen);

/** Unmaps and frees. NULL is allowed. */
void ingot_gguf_close(ingot_gguf *g);

/** The paths that were mapped, in their order; NULL if i is out of range. */
const char *ingot_gguf_file(const ingot_gguf *g, size_t i);

/** Number of tensors; the i-th in the order of the file, or NULL; that of a name, or NULL. */
size_t ingot_gguf_count(const ingot_gguf *g);
const ingot_gguf_tensor *ingot_gguf_get(const ingot_gguf *g, size_t i);
const ingot_gguf_tensor *ingot_gguf_find(const ingot_gguf *g, const char *name);

/** The i-th key of the (first) file, in the order of their names; that of a name; or NULL. */
const ingot_gguf_value *ingot_gguf_key_get(const ingot_gguf *g, size_t i);
const ingot_gguf_value *ingot_gguf_key(const ingot_gguf *g, const char *key);

/** Element i, of numbers and bools; 0 without writing to out if it is none, or no whole number that
 * fits. */
int ingot_gguf_integer(const ingot_gguf_value *v, size_t i, int64_t *out);
int ingot_gguf_number(const ingot_gguf_value *v, size_t i, double *out);
/** Element i of texts; {NULL, 0} if it is none. */
ingot_gguf_bytes ingot_gguf_text(const ingot_gguf_value *v, size_t i);

/** "Q4_0", with the elements and bytes of a block where the pointers are not NULL; NULL: no type
 * has this number. */
const char *ingot_gguf_type_name(int type, unsigned *block, unsigned *bytes);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* INGOT_GGUF_H */

#ifdef INGOT_GGUF_IMPLEMENTATION
#undef INGOT_GGUF_IMPLEMENTATION

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define INGOT_GG_U(n) ((unsigned long long)(n)) /* for printf */
#define INGOT_GG_LEFT(r) ((size_t)((r)->end - (r)->at))

enum { INGOT_GG_MAX_NAME = 64, INGOT_GG_MAX_KEY = 65535, INGOT_GG_MAX_PARTS = 99999 };
typedef struct ingot_gg_part {
    char *path;
    const unsigned char *bytes;
    size_t len;
    int mapped; /* bytes are ours to unmap */
} ingot_gg_part;

/* What is allocated while files are read, to be freed with them. */
typedef struct ingot_gg_block {
    struct ingot_gg_block *next;
} ingot_gg_block;

struct ingot_gguf {
    ingot_gg_part *parts;
    size_t n_parts;
    size_t n_keys; /* of the first part */
    const void **keys_by_name;
    ingot_gguf_tensor *tensors;
    size_t n_tensors;
    const void **by_name;
    ingot_gg_block *blocks;
};

/* One part while it is read. */
typedef struct ingot_gg_reader {
    ingot_gguf *g;
    const char *path;
    const unsigned char *start, *at, *end;
    char *err;
    size_t errlen;
    uint64_t n_tensors, n_keys;
    size_t alignment;
    const void **keys_by_name;
} ingot_gg_reader;

static void ingot_gg_say(ingot_gg_reader *r, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (r->err)
        snprintf(r->err, r->errlen, "%s: %s", r->path, what);
}
#define ingot_gg_fail(...) (ingot_gg_say(__VA_ARGS__), 0)

/* Zeroed; NULL after a fault. */
static void *ingot_gg_alloc(ingot_gg_reader *r, size_t n, size_t size)
{
    ingot_gg_block *b = NULL;
    if (size == 0 || n <= (SIZE_MAX - sizeof *b - 16) / size)
        b = (ingot_gg_block *)calloc(1, sizeof *b + 16 + n * size);
    if (!b)
        return ingot_gg_say(r, "out of memory"), (void *)b;
    b->next = r->g->blocks;
    r->g->blocks = b;
    return (char *)b + 16;
}

/* ---- types ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int number;
    unsigned block, bytes;
} ingot_gg_types[] = {
#define INGOT_GGUF_X(name, number, block, bytes) {#name, number, block, bytes},
    INGOT_GGUF_TYPES(INGOT_GGUF_X)
#undef INGOT_GGUF_X
};

static int ingot_gg_type_at(int64_t number)
{
    int i, n = (int)(sizeof ingot_gg_types / sizeof *ingot_gg_types);
    for (i = 0; i < n; i++)
        if (ingot_gg_types[i].number == number)
            return i;
    return -1;
}

const char *ingot_gguf_type_name(int type, unsigned *block, unsigned *bytes)
{
    int i = ingot_gg_type_at(type);
    if (i >= 0 && block)
        *block = ingot_gg_types[i].block;
    if (i >= 0 && bytes)
        *bytes = ingot_gg_types[i].bytes;
    return i < 0 ? NULL : ingot_gg_types[i].name;
}

/* Bytes of a value's element; 0 for texts, arrays and what is no type. */
static size_t ingot_gg_value_bytes(uint32_t type)
{
    static const unsigned char bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < sizeof bytes ? bytes[type] : 0;
}

/* ---- numbers and texts of a file ------------------------------------------------------------- */

static uint64_t ingot_gg_le(const unsigned char *at, size_t bytes)
{
    uint64_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | at[bytes];
    return v;
}

static int ingot_gg_read(ingot_gg_reader *r, size_t bytes, uint64_t *v)
{
    if (INGOT_GG_LEFT(r) < bytes)
        return ingot_gg_fail(r, "it is cut off: its header goes on beyond its %llu bytes",
                             INGOT_GG_U(r->end - r->start));
    *v = ingot_gg_le(r->at, bytes);
    r->at += bytes;
    return 1;
}

static int ingot_gg_bytes(ingot_gg_reader *r, ingot_gguf_bytes *text)
{
    uint64_t len;
    if (!ingot_gg_read(r, 8, &len))
        return 0;
    if (len > INGOT_GG_LEFT(r))
        return ingot_gg_fail(r, "it is cut off: a text of %llu bytes goes on beyond its end",
                             INGOT_GG_U(len));
    text->at = (const char *)r->at;
    text->len = (size_t)len;
    r->at += len;
    return 1;
}

/* A name, NUL-terminated, of printable characters; kind: "key", "tensor". NULL after a fault. */
static const char *ingot_gg_name(ingot_gg_reader *r, const char *kind, size_t most)
{
    ingot_gguf_bytes text;
    char *name = NULL;
    size_t i, bad = 0;
    if (!ingot_gg_bytes(r, &text))
        return NULL;
    for (i = 0; i < text.len && i <= most; i++)
        bad += (unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f;
    if (text.len == 0 || text.len > most)
        ingot_gg_say(r, "the name of a %s has %llu bytes, not 1 to %llu", kind,
                     INGOT_GG_U(text.len), INGOT_GG_U(most));
    else if (bad)
        ingot_gg_say(r, "the name of a %s has a control character", kind);
    else
        name = (char *)ingot_gg_alloc(r, text.len + 1, 1);
    return name ? (const char *)memcpy(name, text.at, text.len) : NULL;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static int ingot_gg_texts(ingot_gg_reader *r, ingot_gguf_value *v)
{
    size_t i;
    ingot_gguf_bytes *texts;
    texts = (ingot_gguf_bytes *)ingot_gg_alloc(r, v->count, sizeof *texts);
    if (!texts)
        return 0;
    for (i = 0; i < v->count; i++)
        if (!ingot_gg_bytes(r, &texts[i]))
            return 0;
    v->texts = texts;
    return 1;
}

static int ingot_gg_value(ingot_gg_reader *r, ingot_gguf_value *v)
{
    uint64_t type, count = 1;
    size_t bytes, i;
    if (!ingot_gg_read(r, 4, &type))
        return 0;
    if (type == INGOT_GGUF_ARRAY_VALUE) {
        v->is_array = 1;
        if (!ingot_gg_read(r, 4, &type) || !ingot_gg_read(r, 8, &count))
            return 0;
        if (type == INGOT_GGUF_ARRAY_VALUE)
            return ingot_gg_fail(r, "key '%s': an array of arrays is not supported", v->key);
    }
    if (type > INGOT_GGUF_F64_VALUE)
        return ingot_gg_fail(r, "key '%s': its value has type %llu, which is not known", v->key,
                             INGOT_GG_U(type));
    v->type = (ingot_gguf_value_type)type;
    bytes = ingot_gg_value_bytes((uint32_t)type);
    if (count > INGOT_GG_LEFT(r) / (bytes ? bytes : 8))
        return ingot_gg_fail(r, "key '%s': %llu elements do not fit into the file", v->key,
                             INGOT_GG_U(count));
    v->count = (size_t)count;
    v->data = r->at;
    if (!bytes)
        return ingot_gg_texts(r, v);
    for (i = 0; v->type == INGOT_GGUF_BOOL_VALUE && i < v->count; i++)
        if (r->at[i] > 1)
            return ingot_gg_fail(r, "key '%s': a bool is %d, not 0 or 1", v->key, r->at[i]);
    r->at += v->count * bytes;
    return 1;
}

/* Keys and tensors are lists of structs that begin with a name: pointers to them, sorted by it. */
static int ingot_gg_by_name(const void *a, const void *b)
{
    return strcmp(**(const char *const *const *)a, **(const char *const *const *)b);
}

/* Sorts; the name that is there twice, or NULL. */
static const char *ingot_gg_sort(const void **list, size_t n)
{
    size_t i;
    if (n)
        qsort((void *)list, n, sizeof *list, ingot_gg_by_name);
    for (i = 1; i < n; i++)
        if (!ingot_gg_by_name(&list[i - 1], &list[i]))
            return *(const char *const *)list[i];
    return NULL;
}

static const void *ingot_gg_find(const void *const *list, size_t n, const char *name)
{
    const char *const *key = &name;
    const void *const *found =
        n ? (const void *const *)bsearch(&key, list, n, sizeof *list, ingot_gg_by_name) : NULL;
    return found ? *found : NULL;
}

static int ingot_gg_keys(ingot_gg_reader *r)
{
    size_t i, n = (size_t)r->n_keys;
    const char *twice;
    ingot_gguf_value *keys = (ingot_gguf_value *)ingot_gg_alloc(r, n, sizeof *keys);
    r->keys_by_name = (const void **)ingot_gg_alloc(r, n, sizeof *r->keys_by_name);
    if (!keys || !r->keys_by_name)
        return 0;
    for (i = 0; i < n; i++) {
        keys[i].key = ingot_gg_name(r, "key", INGOT_GG_MAX_KEY);
        if (!keys[i].key || !ingot_gg_value(r, &keys[i]))
            return 0;
        r->keys_by_name[i] = &keys[i];
    }
    twice = ingot_gg_sort(r->keys_by_name, n);
    return twice ? ingot_gg_fail(r, "key '%s' is there twice", twice) : 1;
}

/* A whole number of a part's keys; `none`: it has none. -1: it is something else. */
static int64_t ingot_gg_count_key(const ingot_gg_reader *r, const char *key, int64_t none)
{
    const ingot_gguf_value *v =
        (const ingot_gguf_value *)ingot_gg_find(r->keys_by_name, (size_t)r->n_keys, key);
    return !v ? none : v->is_array || !ingot_gguf_integer(v, 0, &none) ? -1 : none;
}

static int ingot_gg_alignment(ingot_gg_reader *r)
{
    int64_t n = ingot_gg_count_key(r, "general.alignment", 32);
    r->alignment = (size_t)n;
    return (n >= 1 && n <= 1 << 20 && !(n & (n - 1))) ||
           ingot_gg_fail(r, "key 'general.alignment': it is no power of two up to 2^20");
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* What its dims and type say: bytes. */
static int ingot_gg_size(ingot_gg_reader *r, ingot_gguf_tensor *t, int type)
{
    const unsigned block = ingot_gg_types[type].block;
    uint64_t bytes = ingot_gg_types[type].bytes;
    int i;
    if (t->dims[0] % block)
        return ingot_gg_fail(
            r, "tensor '%s': a row of %llu elements is no whole number of blocks of %u (%s)",
            t->name, INGOT_GG_U(t->dims[0]), block, ingot_gg_types[type].name);
    for (i = 0; i < t->rank; i++) { /* dims may be anything: no product may overflow */
        uint64_t n = i ? t->dims[i] : t->dims[i] / block;
        if (n > INT64_MAX / bytes)
            return ingot_gg_fail(r, "tensor '%s': its dims have a product beyond 2^63", t->name);
        bytes *= n;
    }
    if (bytes > SIZE_MAX)
        return ingot_gg_fail(r, "tensor '%s': its bytes cannot be addressed", t->name);
    t->bytes = (size_t)bytes;
    return 1;
}

/* One entry of the list. */
static int ingot_gg_tensor(ingot_gg_reader *r, ingot_gguf_tensor *t, uint64_t *offset)
{
    uint64_t rank, type;
    int i, known;
    t->name = ingot_gg_name(r, "tensor", INGOT_GG_MAX_NAME);
    if (!t->name || !ingot_gg_read(r, 4, &rank))
        return 0;
    if (rank < 1 || rank > INGOT_GGUF_MAX_RANK)
        return ingot_gg_fail(r, "tensor '%s': it has %llu dims, not 1 to %d", t->name,
                             INGOT_GG_U(rank), INGOT_GGUF_MAX_RANK);
    t->rank = (int)rank;
    for (i = 0; i < INGOT_GGUF_MAX_RANK; i++) {
        t->dims[i] = 1;
        if (i < t->rank && !ingot_gg_read(r, 8, &t->dims[i]))
            return 0;
        if (t->dims[i] == 0)
            return ingot_gg_fail(r, "tensor '%s': dim %d is 0", t->name, i);
    }
    if (!ingot_gg_read(r, 4, &type) || !ingot_gg_read(r, 8, offset))
        return 0;
    known = ingot_gg_type_at((int64_t)type);
    if (known < 0)
        return ingot_gg_fail(r, "tensor '%s': its type is number %llu, which is not known", t->name,
                             INGOT_GG_U(type));
    t->type = (ingot_gguf_type)type;
    if (*offset % r->alignment)
        return ingot_gg_fail(r, "tensor '%s': its offset %llu is no multiple of the alignment %llu",
                             t->name, INGOT_GG_U(*offset), INGOT_GG_U(r->alignment));
    return ingot_gg_size(r, t, known);
}

static int ingot_gg_by_place(const void *a, const void *b)
{
    const char *x = (const char *)(*(const ingot_gguf_tensor *const *)a)->data;
    const char *y = (const char *)(*(const ingot_gguf_tensor *const *)b)->data;
    return x < y ? -1 : x > y;
}

static int ingot_gg_tensors(ingot_gg_reader *r)
{
    size_t i, n = (size_t)r->n_tensors, had = r->g->n_tensors, begin, room;
    ingot_gguf_tensor *all = (ingot_gguf_tensor *)ingot_gg_alloc(r, had + n, sizeof *all);
    uint64_t *offset = (uint64_t *)ingot_gg_alloc(r, n, sizeof *offset);
    if (!all || !offset)
        return 0;
    if (had)
        memcpy(all, r->g->tensors, had * sizeof *all);
    for (i = 0; i < n; i++)
        if (!ingot_gg_tensor(r, &all[had + i], &offset[i]))
            return 0;
    begin = (size_t)(r->at - r->start);
    begin = (begin + r->alignment - 1) / r->alignment * r->alignment;
    room = (size_t)(r->end - r->start);
    room = begin < room ? room - begin : 0;
    for (i = 0; i < n; i++) {
        ingot_gguf_tensor *t = &all[had + i];
        if (offset[i] > room || t->bytes > room - offset[i])
            return ingot_gg_fail(r,
                                 "tensor '%s': it is cut off: its %llu bytes of data at %llu end "
                                 "beyond the file's %llu",
                                 t->name, INGOT_GG_U(t->bytes), INGOT_GG_U(begin + offset[i]),
                                 INGOT_GG_U(r->end - r->start));
        t->data = r->start + begin + offset[i];
    }
    r->g->tensors = all;
    r->g->n_tensors = had + n;
    return 1;
}

/* Of all tensors: none overlaps another one, and none is there twice. */
static int ingot_gg_together(ingot_gg_reader *r)
{
    ingot_gguf *g = r->g;
    const char *twice;
    size_t i, n = g->n_tensors;
    g->by_name = (const void **)ingot_gg_alloc(r, n, sizeof *g->by_name);
    if (!g->by_name)
        return 0;
    for (i = 0; i < n; i++)
        g->by_name[i] = &g->tensors[i];
    if (n)
        qsort((void *)g->by_name, n, sizeof *g->by_name, ingot_gg_by_place);
    for (i = 1; i < n; i++) {
        const ingot_gguf_tensor *a = (const ingot_gguf_tensor *)g->by_name[i - 1],
                                *b = (const ingot_gguf_tensor *)g->by_name[i];
        if ((const char *)a->data + a->bytes > (const char *)b->data)
            return ingot_gg_fail(r, "tensor '%s': its data overlap those of '%s'", b->name,
                                 a->name);
    }
    twice = ingot_gg_sort(g->by_name, n);
    return twice ? ingot_gg_fail(r, "tensor '%s' is there twice", twice) : 1;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int ingot_gg_header(ingot_gg_reader *r)
{
    uint64_t version;
    if (INGOT_GG_LEFT(r) < 4 || memcmp(r->at, "GGUF", 4))
        return ingot_gg_fail(r, "not a GGUF file: it does not begin with \"GGUF\"");
    r->at += 4;
    if (!ingot_gg_read(r, 4, &version) || !ingot_gg_read(r, 8, &r->n_tensors) ||
        !ingot_gg_read(r, 8, &r->n_keys))
        return 0;
    if (version != 2 && version != 3)
        return ingot_gg_fail(r, "it is GGUF of version %llu%s, not 2 or 3", INGOT_GG_U(version),
                             version & 0xffff ? "" : " (big-endian, it seems)");
    /* a key takes 13 bytes at least, a tensor 32, so the file bounds what is allocated for them */
    if (r->n_keys > INGOT_GG_LEFT(r) / 13 || r->n_tensors > INGOT_GG_LEFT(r) / 32)
        return ingot_gg_fail(r, "it is cut off: %llu keys and %llu tensors do not fit into it",
                             INGOT_GG_U(r->n_keys), INGOT_GG_U(r->n_tensors));
    return ingot_gg_keys(r) && ingot_gg_alignment(r);
}

/* Reads part i (from 0) of the files so far. */
static int ingot_gg_part_read(ingot_gg_reader *r, size_t i, int64_t *parts, int64_t *tensors)
{
    ingot_gg_part *p = &r->g->parts[i];
    int64_t no;
    r->path = p->path;
    r->start = r->at = p->bytes;
    r->end = p->bytes + p->len;
    if (!ingot_gg_header(r))
        return 0;
    if (i == 0) {
        r->g->n_keys = (size_t)r->n_keys;
        r->g->keys_by_name = r->keys_by_name;
        *parts = ingot_gg_count_key(r, "split.count", 0);
        *tensors = ingot_gg_count_key(r, "split.tensors.count", 0);
    }
    no = ingot_gg_count_key(r, "split.no", 0);
    if (no != (int64_t)i)
        return ingot_gg_fail(r, "it is file %lld of a model in several, not file %lld",
                             (long long)no + 1, (long long)i + 1);
    return ingot_gg_tensors(r);
}

static int ingot_gg_map(ingot_gg_reader *r, ingot_gg_part *p)
{
    struct stat info;
    void *at = MAP_FAILED;
    int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int file = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    r->path = p->path;
    if (file && info.st_size > 0 && (uintmax_t)info.st_size <= PTRDIFF_MAX)
        at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return ingot_gg_fail(r, fd < 0              ? "cannot be opened"
                                : !file             ? "is not a regular file"
                                : info.st_size == 0 ? "not a GGUF file: it is empty"
                                                    : "cannot be mapped");
    p->bytes = (const unsigned char *)at;
    p->len = (size_t)info.st_size;
    p->mapped = 1;
    return 1;
}

/* A path of part i of n after that of the first; NULL: it does not end as it should. */
static char *ingot_gg_part_path(ingot_gg_reader *r, const char *first, size_t i, size_t n)
{
    char ending[64];
    size_t len = strlen(first), m;
    char *path;
    snprintf(ending, sizeof ending, "-%05u-of-%05u.gguf", 1u, (unsigned)n);
    m = strlen(ending);
    if (len < m || strcmp(first + len - m, ending)) {
        ingot_gg_say(r, "it is the first of %u files, and its name does not end in \"%s\"",
                     (unsigned)n, ending);
        return NULL;
    }
    path = (char *)ingot_gg_alloc(r, len + 1, 1);
    if (path) {
        snprintf(ending, sizeof ending, "-%05u-of-%05u.gguf", (unsigned)i + 1, (unsigned)n);
        memcpy(path, first, len - m);
        memcpy(path + len - m, ending, m + 1);
    }
    return path;
}

/* Part 0 is there; the others are opened after it. */
static int ingot_gg_parts(ingot_gg_reader *r)
{
    int64_t parts = 0, tensors = 0, i;
    ingot_gg_part first = r->g->parts[0];
    if (!ingot_gg_part_read(r, 0, &parts, &tensors))
        return 0;
    if (parts < 0 || parts > INGOT_GG_MAX_PARTS || (parts > 1 && !first.mapped))
        return ingot_gg_fail(r, "it is the first of %lld files", (long long)parts);
    if (parts > 1) {
        ingot_gg_part *all = (ingot_gg_part *)ingot_gg_alloc(r, (size_t)parts, sizeof first);
        if (!all)
            return 0;
        all[0] = first;
        r->g->parts = all;
    }
    for (i = 1; i < parts; i++) {
        ingot_gg_part *p = &r->g->parts[i];
        p->path = ingot_gg_part_path(r, first.path, (size_t)i, (size_t)parts);
        if (!p->path || !ingot_gg_map(r, p))
            return 0;
        r->g->n_parts++;
        if (!ingot_gg_part_read(r, (size_t)i, NULL, NULL))
            return 0;
    }
    r->path = first.path;
    if (parts > 1 && tensors != (int64_t)r->g->n_tensors)
        return ingot_gg_fail(r, "its %lld files have %llu tensors, not %lld (split.tensors.count)",
                             (long long)parts, INGOT_GG_U(r->g->n_tensors), (long long)tensors);
    return ingot_gg_together(r);
}

static ingot_gguf *ingot_gg_open(const char *name, const void *bytes, size_t len, char *err,
                                 size_t errlen)
{
    ingot_gg_reader r;
    ingot_gg_part *p;
    memset(&r, 0, sizeof r);
    r.path = name;
    r.err = err;
    r.errlen = errlen;
    r.g = (ingot_gguf *)calloc(1, sizeof *r.g);
    if (!r.g)
        return ingot_gg_say(&r, "out of memory"), r.g;
    p = (ingot_gg_part *)ingot_gg_alloc(&r, 1, sizeof *p);
    if (p)
        p->path = (char *)ingot_gg_alloc(&r, strlen(name) + 1, 1);
    if (p && p->path) {
        memcpy(p->path, name, strlen(name) + 1);
        p->bytes = (const unsigned char *)bytes;
        p->len = len;
        r.g->parts = p;
        r.g->n_parts = 1;
        if ((bytes || ingot_gg_map(&r, p)) && ingot_gg_parts(&r))
            return r.g;
    }
    ingot_gguf_close(r.g);
    return NULL;
}

ingot_gguf *ingot_gguf_open(const char *path, char *err, size_t errlen)
{
    return ingot_gg_open(path, NULL, 0, err, errlen);
}

ingot_gguf *ingot_gguf_open_memory(const char *name, const void *bytes, size_t len, char *err,
                                   size_t errlen)
{
    return ingot_gg_open(name, bytes ? bytes : "", bytes ? len : 0, err, errlen);
}

void ingot_gguf_close(ingot_gguf *g)
{
    size_t i;
    if (!g)
        return;
    for (i = 0; i < g->n_parts; i++)
        if (g->parts[i].mapped)
            munmap((void *)(uintptr_t)g->parts[i].bytes, g->parts[i].len);
    while (g->blocks) {
        ingot_gg_block *b = g->blocks;
        g->blocks = b->next;
        free(b);
    }
    free(g);
}

/* ---- what is asked --------------------------------------------------------------------------- */

const char *ingot_gguf_file(const ingot_gguf *g, size_t i)
{
    return i < g->n_parts ? g->parts[i].path : NULL;
}

size_t ingot_gguf_count(const ingot_gguf *g)
{
    return g->n_tensors;
}

const ingot_gguf_tensor *ingot_gguf_get(const ingot_gguf *g, size_t i)
{
    return i < g->n_tensors ? &g->tensors[i] : NULL;
}

const ingot_gguf_tensor *ingot_gguf_find(const ingot_gguf *g, const char *name)
{
    return (const ingot_gguf_tensor *)ingot_gg_find(g->by_name, g->n_tensors, name);
}

const ingot_gguf_value *ingot_gguf_key_get(const ingot_gguf *g, size_t i)
{
    return i < g->n_keys ? (const ingot_gguf_value *)g->keys_by_name[i] : NULL;
}

const ingot_gguf_value *ingot_gguf_key(const ingot_gguf *g, const char *key)
{
    return (const ingot_gguf_value *)ingot_gg_find(g->keys_by_name, g->n_keys, key);
}

int ingot_gguf_integer(const ingot_gguf_value *v, size_t i, int64_t *out)
{
    size_t bytes = ingot_gg_value_bytes((uint32_t)v->type);
    uint64_t u, sign;
    const int is_float = v->type == INGOT_GGUF_F32_VALUE || v->type == INGOT_GGUF_F64_VALUE;
    if (!bytes || i >= v->count || is_float)
        return 0;
    u = ingot_gg_le((const unsigned char *)v->data + i * bytes, bytes);
    sign = (uint64_t)1 << (8 * bytes - 1);
    if (v->type == INGOT_GGUF_I8_VALUE || v->type == INGOT_GGUF_I16_VALUE ||
        v->type == INGOT_GGUF_I32_VALUE || v->type == INGOT_GGUF_I64_VALUE)
        *out = u & sign ? -(int64_t)(~(u | ~(sign | (sign - 1)))) - 1 : (int64_t)u;
    else if (u <= INT64_MAX)
        *out = (int64_t)u;
    else
        return 0;
    return 1;
}

int ingot_gguf_number(const ingot_gguf_value *v, size_t i, double *out)
{
    const unsigned char *data = (const unsigned char *)v->data;
    int64_t n;
    uint64_t u;
    uint32_t u32;
    float f;
    double d;
    if (ingot_gguf_integer(v, i, &n))
        return (*out = (double)n, 1);
    if (i >= v->count || (v->type != INGOT_GGUF_F32_VALUE && v->type != INGOT_GGUF_F64_VALUE))
        return 0;
    u = ingot_gg_le(data + i * (v->type == INGOT_GGUF_F32_VALUE ? 4 : 8),
                    v->type == INGOT_GGUF_F32_VALUE ? 4 : 8);
    u32 = (uint32_t)u;
    memcpy(&f, &u32, 4);
    memcpy(&d, &u, 8);
    *out = v->type == INGOT_GGUF_F32_VALUE ? f : d;
    return 1;
}

ingot_gguf_bytes ingot_gguf_text(const ingot_gguf_value *v, size_t i)
{
    ingot_gguf_bytes none = {NULL, 0};
    return v && v->texts && i < v->count ? v->texts[i] : none;
}

#endif /* INGOT_GGUF_IMPLEMENTATION */
