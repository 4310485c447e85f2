/*
 * safetensors.h - a strict reader of .safetensors files in one header.
 *
 * In one source file:
 *
 *     #define INGOT_SAFETENSORS_IMPLEMENTATION
 *     #include "safetensors.h"
 *
 * and the plain #include everywhere else; or, where one file alone uses it, without names that the
 * linker sees, after #define INGOT_SAFETENSORS_API static inline. C99 and POSIX mmap, nothing more;
 * a strict -std=c99 needs _POSIX_C_SOURCE 200809L defined before the first system header of that
 * source file.
 *
 *     char err[256];
 *     ingot_safetensors *st = ingot_safetensors_open("model.safetensors", err, sizeof err);
 *     const ingot_safetensors_tensor *w = ingot_safetensors_find(st, "fc1.weight");
 *     ... w->dtype, w->rank, w->shape, w->data, w->bytes ...
 *     ingot_safetensors_close(st);
 *
 * The file is mapped; tensors point into it and are not aligned. A file is refused unless it is
 * exactly what the format describes (https://huggingface.co/docs/safetensors):
 *
 *     8 bytes    N, little-endian
 *     N bytes    JSON: { "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
 *                        "__metadata__": {"key": "value", ...} }, then spaces
 *     the rest   the data; the tensors cover it without overlap and without a hole
 *
 * Besides: N is at most 100 MB, no key is there twice, names are UTF-8 without NUL.
 */
#ifndef INGOT_SAFETENSORS_H
#define INGOT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#ifndef INGOT_SAFETENSORS_API
#define INGOT_SAFETENSORS_API
#endif

/** Element types. Sub-byte types are packed, low bits first. */
typedef enum ingot_safetensors_dtype {
    INGOT_ST_BOOL,
    INGOT_ST_U8,
    INGOT_ST_I8,
    INGOT_ST_U16,
    INGOT_ST_I16,
    INGOT_ST_U32,
    INGOT_ST_I32,
    INGOT_ST_U64,
    INGOT_ST_I64,
    INGOT_ST_F16,
    INGOT_ST_BF16,
    INGOT_ST_F32,
    INGOT_ST_F64,
    INGOT_ST_C64,
    INGOT_ST_F8_E4M3,
    INGOT_ST_F8_E5M2,
    INGOT_ST_F8_E8M0,
    INGOT_ST_F8_E4M3FNUZ,
    INGOT_ST_F8_E5M2FNUZ,
    INGOT_ST_F4,
    INGOT_ST_F6_E2M3,
    INGOT_ST_F6_E3M2,
    INGOT_ST_N_DTYPES
} ingot_safetensors_dtype;

/** One tensor. All pointers live as long as the file is open. */
typedef struct ingot_safetensors_tensor {
    const char *name;
    ingot_safetensors_dtype dtype;
    size_t rank;
    const uint64_t *shape; /**< rank dims, outermost first */
    const void *data;      /**< little-endian, row-major, unaligned, never NULL */
    size_t bytes;
} ingot_safetensors_tensor;

typedef struct ingot_safetensors ingot_safetensors;

/**
 * Maps and checks a file. On failure returns NULL and puts one line, "PATH: WHAT: WHY", into err
 * (which may be NULL; errlen counts the NUL).
 */
INGOT_SAFETENSORS_API ingot_safetensors *ingot_safetensors_open(const char *path, char *err,
                                                                size_t errlen);

/** As above from memory, which is not copied and has to stay. name is for messages. */
INGOT_SAFETENSORS_API ingot_safetensors *ingot_safetensors_open_memory(const char *name,
                                                                       const void *bytes,
                                                                       size_t len, char *err,
                                                                       size_t errlen);

/** Unmaps and frees. NULL is allowed. */
INGOT_SAFETENSORS_API void ingot_safetensors_close(ingot_safetensors *st);

/** Number of tensors. */
INGOT_SAFETENSORS_API size_t ingot_safetensors_count(const ingot_safetensors *st);

/** The i-th tensor in the order of the data; NULL if i is out of range. */
INGOT_SAFETENSORS_API const ingot_safetensors_tensor *
ingot_safetensors_get(const ingot_safetensors *st, size_t i);

/** The tensor of that name, or NULL. */
INGOT_SAFETENSORS_API const ingot_safetensors_tensor *
ingot_safetensors_find(const ingot_safetensors *st, const char *name);

/** The value of a key of __metadata__, or NULL. */
INGOT_SAFETENSORS_API const char *ingot_safetensors_metadata(const ingot_safetensors *st,
                                                             const char *key);

/** "F32" */
INGOT_SAFETENSORS_API const char *ingot_safetensors_dtype_name(ingot_safetensors_dtype dtype);

/** Bits of one element. */
INGOT_SAFETENSORS_API unsigned ingot_safetensors_dtype_bits(ingot_safetensors_dtype dtype);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* INGOT_SAFETENSORS_H */

#ifdef INGOT_SAFETENSORS_IMPLEMENTATION
#undef INGOT_SAFETENSORS_IMPLEMENTATION

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define INGOT_ST_MAX_HEADER 100000000u

static const struct {
    const char *name;
    unsigned bits;
} ingot_st_dtypes[INGOT_ST_N_DTYPES] = {
    {"BOOL", 8},    {"U8", 8},      {"I8", 8},          {"U16", 16},        {"I16", 16},
    {"U32", 32},    {"I32", 32},    {"U64", 64},        {"I64", 64},        {"F16", 16},
    {"BF16", 16},   {"F32", 32},    {"F64", 64},        {"C64", 64},        {"F8_E4M3", 8},
    {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},
    {"F6_E2M3", 6}, {"F6_E3M2", 6},
};

typedef struct ingot_st_pair {
    const char *key, *value;
} ingot_st_pair;

struct ingot_safetensors {
    const unsigned char *file;
    size_t file_len;
    int mapped;                        /* file is ours to unmap */
    char *strings;                     /* all names, keys and values, unescaped */
    uint64_t *shapes;                  /* all dims */
    ingot_safetensors_tensor *tensors; /* by data offset */
    size_t n_tensors;
    const ingot_safetensors_tensor **by_name;
    ingot_st_pair *metadata; /* by key */
    size_t n_metadata;
};

/* A tensor while the header is read: shapes still move, data is an offset. */
typedef struct ingot_st_entry {
    const char *name;
    ingot_safetensors_dtype dtype;
    size_t rank, shape_at;
    uint64_t begin, end;
} ingot_st_entry;

typedef struct ingot_st_parser {
    const unsigned char *at, *end;
    const char *why; /* set once, at the first fault */
    const char *who; /* the tensor at fault, if one is */
    char *strings;   /* as large as the header; unescaping never lengthens */
    size_t strings_len;
    uint64_t *shapes;
    size_t n_shapes, cap_shapes;
    ingot_st_entry *entries;
    size_t n_entries, cap_entries;
    ingot_st_pair *metadata;
    size_t n_metadata, cap_metadata;
    int has_metadata;
} ingot_st_parser;

static int ingot_st_fail(ingot_st_parser *p, const char *why)
{
    if (!p->why)
        p->why = why;
    return 0;
}

/* Room for one more element. */
static int ingot_st_grow(ingot_st_parser *p, void *array, size_t n, size_t *cap, size_t size)
{
    void *old, *grown;
    size_t more;
    if (n < *cap)
        return 1;
    more = *cap ? *cap * 2 : 16;
    memcpy(&old, array, sizeof old);
    grown = more > SIZE_MAX / 2 / size ? NULL : realloc(old, more * size);
    if (!grown)
        return ingot_st_fail(p, "out of memory");
    memcpy(array, &grown, sizeof grown);
    *cap = more;
    return 1;
}

/* ---- JSON, as much of it as a header has --------------------------------------------------- */

static void ingot_st_space(ingot_st_parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

/* Skips space, then takes c if it is next. */
static int ingot_st_take(ingot_st_parser *p, char c)
{
    ingot_st_space(p);
    if (p->at == p->end || *p->at != (unsigned char)c)
        return 0;
    p->at++;
    return 1;
}

static int ingot_st_expect(ingot_st_parser *p, char c, const char *why)
{
    return ingot_st_take(p, c) || ingot_st_fail(p, why);
}

/* Length of the UTF-8 sequence at s (shortest form, no surrogates, up to U+10FFFF), or 0. */
static size_t ingot_st_utf8(const unsigned char *s, const unsigned char *end)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : (*s & 0xf0) == 0xe0 ? 3 : 4, i;
    uint32_t c;
    if (n == 1)
        return 1;
    if ((n == 4 && (*s < 0xf0 || *s > 0xf4)) || (size_t)(end - s) < n)
        return 0;
    c = *s & (0x7fu >> n);
    for (i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    return c < least[n] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0 : n;
}

/* The four hex digits of \uXXXX; -1 if they are not. */
static int32_t ingot_st_hex4(ingot_st_parser *p)
{
    int32_t v = 0;
    int i;
    if (p->end - p->at < 4)
        return -1;
    for (i = 0; i < 4; i++) {
        int c = *p->at++;
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

/* A character as UTF-8; at most as many bytes as its escape had. */
static char *ingot_st_put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xe0 | c >> 12);
        } else {
            *to++ = (char)(0xf0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (c & 0x3f));
    return to;
}

/* What follows a backslash. */
static char *ingot_st_escape(ingot_st_parser *p, char *to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *found;
    int32_t c, low;
    if (p->at == p->end)
        return NULL;
    if (*p->at != 'u') {
        found = *p->at ? strchr(from, *p->at) : NULL;
        if (!found)
            return NULL;
        p->at++;
        *to++ = into[found - from];
        return to;
    }
    p->at++;
    c = ingot_st_hex4(p);
    if (c <= 0 || (c >= 0xdc00 && c < 0xe000))
        return NULL;
    if (c >= 0xd800 && c < 0xdc00) {
        if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u')
            return NULL;
        p->at += 2;
        low = ingot_st_hex4(p);
        if (low < 0xdc00 || low >= 0xe000)
            return NULL;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    return ingot_st_put_utf8(to, (uint32_t)c);
}

/* A string, unescaped and NUL-terminated in p->strings; NULL at a fault. */
static const char *ingot_st_string(ingot_st_parser *p)
{
    char *start = p->strings + p->strings_len, *to = start;
    if (!ingot_st_expect(p, '"', "a string is missing"))
        return NULL;
    while (p->at < p->end && *p->at != '"') {
        size_t n;
        if (*p->at == '\\') {
            p->at++;
            to = ingot_st_escape(p, to);
            if (!to) {
                ingot_st_fail(p, "a string has an invalid escape");
                return NULL;
            }
            continue;
        }
        n = *p->at < 0x20 ? 0 : ingot_st_utf8(p->at, p->end);
        if (n == 0) {
            ingot_st_fail(p, "a string has a control character or is not UTF-8");
            return NULL;
        }
        memcpy(to, p->at, n);
        to += n;
        p->at += n;
    }
    if (p->at == p->end) {
        ingot_st_fail(p, "a string does not end");
        return NULL;
    }
    p->at++;
    *to++ = '\0';
    p->strings_len = (size_t)(to - p->strings);
    return start;
}

/* An unsigned integer without sign, fraction, exponent or leading zero. */
static int ingot_st_integer(ingot_st_parser *p, uint64_t *v)
{
    const unsigned char *digits;
    ingot_st_space(p);
    digits = p->at;
    *v = 0;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') {
        uint64_t d = (uint64_t)(*p->at++ - '0');
        if (*v > (UINT64_MAX - d) / 10)
            return ingot_st_fail(p, "a number is too large");
        *v = *v * 10 + d;
    }
    if (p->at == digits || (*digits == '0' && p->at - digits > 1))
        return ingot_st_fail(p, "a whole number is missing");
    if (p->at < p->end && (*p->at == '.' || *p->at == 'e' || *p->at == 'E'))
        return ingot_st_fail(p, "a number is not whole");
    return 1;
}

/* ---- the header's structure --------------------------------------------------------------- */

/* After an element of an object or list: 1 another follows, 0 closed, -1 fault. */
static int ingot_st_more(ingot_st_parser *p, char close)
{
    if (ingot_st_take(p, ','))
        return 1;
    return ingot_st_take(p, close) ? 0 : ingot_st_fail(p, "a comma or bracket is missing") - 1;
}

static int ingot_st_shape(ingot_st_parser *p, ingot_st_entry *e)
{
    int more;
    e->shape_at = p->n_shapes;
    if (!ingot_st_expect(p, '[', "shape is not a list"))
        return 0;
    if (ingot_st_take(p, ']'))
        return 1;
    do {
        if (!ingot_st_grow(p, &p->shapes, p->n_shapes, &p->cap_shapes, sizeof *p->shapes) ||
            !ingot_st_integer(p, &p->shapes[p->n_shapes]))
            return 0;
        p->n_shapes++;
        more = ingot_st_more(p, ']');
    } while (more > 0);
    e->rank = p->n_shapes - e->shape_at;
    return more == 0;
}

static int ingot_st_dtype(ingot_st_parser *p, ingot_st_entry *e)
{
    const char *name = ingot_st_string(p);
    int i;
    for (i = 0; name && i < INGOT_ST_N_DTYPES; i++) {
        if (strcmp(name, ingot_st_dtypes[i].name) == 0) {
            e->dtype = (ingot_safetensors_dtype)i;
            return 1;
        }
    }
    return ingot_st_fail(p, "its dtype is not known");
}

static int ingot_st_offsets(ingot_st_parser *p, ingot_st_entry *e)
{
    return ingot_st_expect(p, '[', "data_offsets is not a list") &&
           ingot_st_integer(p, &e->begin) &&
           ingot_st_expect(p, ',', "data_offsets is not two numbers") &&
           ingot_st_integer(p, &e->end) &&
           ingot_st_expect(p, ']', "data_offsets is not two numbers");
}

static int ingot_st_tensor(ingot_st_parser *p, const char *name)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
    ingot_st_entry e;
    unsigned seen = 0, bit;
    int more;
    memset(&e, 0, sizeof e);
    e.name = p->who = name;
    if (!ingot_st_expect(p, '{', "is not an object"))
        return 0;
    do {
        size_t keep = p->strings_len;
        const char *key = ingot_st_string(p);
        if (!key)
            return 0;
        bit = strcmp(key, "dtype") == 0          ? DTYPE
              : strcmp(key, "shape") == 0        ? SHAPE
              : strcmp(key, "data_offsets") == 0 ? OFFSETS
                                                 : 0;
        if (!bit)
            return ingot_st_fail(p, "has a key other than dtype, shape and data_offsets");
        if (seen & bit)
            return ingot_st_fail(p, "has a key twice");
        seen |= bit;
        if (!ingot_st_expect(p, ':', "a colon is missing") ||
            !(bit == DTYPE   ? ingot_st_dtype(p, &e)
              : bit == SHAPE ? ingot_st_shape(p, &e)
                             : ingot_st_offsets(p, &e)))
            return 0;
        p->strings_len = keep;
        more = ingot_st_more(p, '}');
    } while (more > 0);
    if (more < 0)
        return 0;
    if (seen != (DTYPE | SHAPE | OFFSETS))
        return ingot_st_fail(p, "lacks dtype, shape or data_offsets");
    if (!ingot_st_grow(p, &p->entries, p->n_entries, &p->cap_entries, sizeof *p->entries))
        return 0;
    p->entries[p->n_entries++] = e;
    p->who = NULL;
    return 1;
}

static int ingot_st_metadata(ingot_st_parser *p)
{
    int more;
    if (p->has_metadata)
        return ingot_st_fail(p, "__metadata__ is there twice");
    p->has_metadata = 1;
    if (!ingot_st_expect(p, '{', "__metadata__ is not an object"))
        return 0;
    if (ingot_st_take(p, '}'))
        return 1;
    do {
        ingot_st_pair *pair;
        if (!ingot_st_grow(p, &p->metadata, p->n_metadata, &p->cap_metadata, sizeof *p->metadata))
            return 0;
        pair = &p->metadata[p->n_metadata];
        pair->key = ingot_st_string(p);
        if (!pair->key || !ingot_st_expect(p, ':', "a colon is missing"))
            return 0;
        pair->value = ingot_st_string(p);
        if (!pair->value)
            return 0;
        p->n_metadata++;
        more = ingot_st_more(p, '}');
    } while (more > 0);
    return more == 0;
}

static int ingot_st_header(ingot_st_parser *p)
{
    int more = 0;
    if (p->at == p->end || *p->at != '{')
        return ingot_st_fail(p, "the header does not start with '{'");
    p->at++;
    if (!ingot_st_take(p, '}')) {
        do {
            const char *name = ingot_st_string(p);
            if (!name || !ingot_st_expect(p, ':', "a colon is missing"))
                return 0;
            if (!(strcmp(name, "__metadata__") == 0 ? ingot_st_metadata(p)
                                                    : ingot_st_tensor(p, name)))
                return 0;
            more = ingot_st_more(p, '}');
        } while (more > 0);
    }
    if (more < 0)
        return 0;
    ingot_st_space(p);
    return p->at == p->end || ingot_st_fail(p, "something follows the header's last bracket");
}

/* ---- checks over all tensors -------------------------------------------------------------- */

static int ingot_st_by_offset(const void *a, const void *b)
{
    const ingot_st_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int ingot_st_by_name(const void *a, const void *b)
{
    const ingot_safetensors_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int ingot_st_by_key(const void *a, const void *b)
{
    const ingot_st_pair *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* Bytes of a tensor by its shape. 0: overflow, or it ends inside a byte. */
static int ingot_st_bytes(const ingot_st_parser *p, const ingot_st_entry *e, uint64_t *bytes)
{
    uint64_t bits = ingot_st_dtypes[e->dtype].bits;
    size_t i;
    for (i = 0; i < e->rank; i++) {
        uint64_t dim = p->shapes[e->shape_at + i];
        if (dim != 0 && bits > UINT64_MAX / dim)
            return 0;
        bits *= dim;
    }
    *bytes = bits / 8;
    return bits % 8 == 0;
}

/* Sorts the entries and checks that they tile the data. */
static int ingot_st_tile(ingot_st_parser *p, uint64_t data_len)
{
    uint64_t at = 0, bytes = 0;
    size_t i;
    if (p->n_entries)
        qsort(p->entries, p->n_entries, sizeof *p->entries, ingot_st_by_offset);
    for (i = 0; i < p->n_entries; i++) {
        const ingot_st_entry *e = &p->entries[i];
        p->who = e->name;
        if (e->begin > e->end || e->end > data_len)
            return ingot_st_fail(p, "its data_offsets are outside the file");
        if (e->begin < at)
            return ingot_st_fail(p, "its data overlaps another tensor's");
        if (e->begin > at)
            return ingot_st_fail(p, "there is a hole before its data");
        if (!ingot_st_bytes(p, e, &bytes) || bytes != e->end - e->begin)
            return ingot_st_fail(p, "its data_offsets do not fit its shape and dtype");
        at = e->end;
    }
    p->who = NULL;
    return at == data_len || ingot_st_fail(p, "data follows the last tensor");
}

/* Turns entries into tensors, whose pointers are final, and the sorted tables. */
static int ingot_st_finish(ingot_st_parser *p, ingot_safetensors *st, const unsigned char *data)
{
    size_t i, n = p->n_entries;
    st->tensors = malloc((n + 1) * sizeof *st->tensors);
    st->by_name = malloc((n + 1) * sizeof *st->by_name);
    if (!st->tensors || !st->by_name)
        return ingot_st_fail(p, "out of memory");
    st->n_tensors = n;
    for (i = 0; i < n; i++) {
        const ingot_st_entry *e = &p->entries[i];
        ingot_safetensors_tensor *t = &st->tensors[i];
        t->name = e->name;
        t->dtype = e->dtype;
        t->rank = e->rank;
        t->shape = e->rank ? p->shapes + e->shape_at : NULL;
        t->data = data + e->begin;
        t->bytes = (size_t)(e->end - e->begin);
        st->by_name[i] = t;
    }
    if (n)
        qsort(st->by_name, n, sizeof *st->by_name, ingot_st_by_name);
    for (i = 1; i < n; i++) {
        if (strcmp(st->by_name[i - 1]->name, st->by_name[i]->name) == 0) {
            p->who = st->by_name[i]->name;
            return ingot_st_fail(p, "is there twice");
        }
    }
    if (p->n_metadata)
        qsort(p->metadata, p->n_metadata, sizeof *p->metadata, ingot_st_by_key);
    for (i = 1; i < p->n_metadata; i++)
        if (strcmp(p->metadata[i - 1].key, p->metadata[i].key) == 0)
            return ingot_st_fail(p, "__metadata__ has a key twice");
    return 1;
}

static int ingot_st_parse(ingot_st_parser *p, ingot_safetensors *st)
{
    uint64_t n = 0;
    size_t data_len;
    int i, ok;
    if (st->file_len < 8)
        return ingot_st_fail(p, "it is shorter than 8 bytes");
    for (i = 0; i < 8; i++)
        n |= (uint64_t)st->file[i] << (8 * i);
    if (n > INGOT_ST_MAX_HEADER)
        return ingot_st_fail(p, "its header is longer than 100 MB");
    if (n > st->file_len - 8)
        return ingot_st_fail(p, "its header is longer than the file");
    data_len = st->file_len - 8 - (size_t)n;
    p->at = st->file + 8;
    p->end = p->at + n;
    p->strings = malloc((size_t)n + 1);
    if (!p->strings)
        return ingot_st_fail(p, "out of memory");
    ok = ingot_st_header(p) && ingot_st_tile(p, data_len) && ingot_st_finish(p, st, p->end);
    st->strings = p->strings; /* owned by st from here, also after a fault */
    st->shapes = p->shapes;
    st->metadata = p->metadata;
    st->n_metadata = p->n_metadata;
    free(p->entries);
    return ok;
}

/* ---- the API ------------------------------------------------------------------------------ */

static ingot_safetensors *ingot_st_open(const char *path, ingot_safetensors *st, char *err,
                                        size_t errlen)
{
    ingot_st_parser p;
    char *c;
    memset(&p, 0, sizeof p);
    if (ingot_st_parse(&p, st))
        return st;
    if (err && errlen) {
        if (p.who)
            snprintf(err, errlen, "%s: tensor '%.100s': %s", path, p.who, p.why);
        else
            snprintf(err, errlen, "%s: not a safetensors file: %s", path, p.why);
        for (c = err; *c; c++) /* names may hold anything */
            if ((unsigned char)*c < 0x20 || *c == 0x7f)
                *c = '?';
    }
    ingot_safetensors_close(st);
    return NULL;
}

static ingot_safetensors *ingot_st_cannot(const char *path, const char *why, char *err,
                                          size_t errlen)
{
    if (err && errlen)
        snprintf(err, errlen, "%s: cannot be read: %s", path, why);
    return NULL;
}

INGOT_SAFETENSORS_API ingot_safetensors *ingot_safetensors_open_memory(const char *name,
                                                                       const void *bytes,
                                                                       size_t len, char *err,
                                                                       size_t errlen)
{
    ingot_safetensors *st = calloc(1, sizeof *st);
    if (!st)
        return ingot_st_cannot(name, "out of memory", err, errlen);
    st->file = bytes;
    st->file_len = len;
    return ingot_st_open(name, st, err, errlen);
}

INGOT_SAFETENSORS_API ingot_safetensors *ingot_safetensors_open(const char *path, char *err,
                                                                size_t errlen)
{
    ingot_safetensors *st;
    struct stat info;
    void *at = NULL;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return ingot_st_cannot(path, "it cannot be opened", err, errlen);
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return ingot_st_cannot(path, "it is not a regular file", err, errlen);
    }
    if (info.st_size > 0 && (uintmax_t)info.st_size <= SIZE_MAX)
        at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (info.st_size == 0)
        return ingot_safetensors_open_memory(path, "", 0, err, errlen);
    if (!at || at == MAP_FAILED)
        return ingot_st_cannot(path, "it cannot be mapped", err, errlen);
    st = calloc(1, sizeof *st);
    if (!st) {
        munmap(at, (size_t)info.st_size);
        return ingot_st_cannot(path, "out of memory", err, errlen);
    }
    st->file = at;
    st->file_len = (size_t)info.st_size;
    st->mapped = 1;
    return ingot_st_open(path, st, err, errlen);
}

INGOT_SAFETENSORS_API void ingot_safetensors_close(ingot_safetensors *st)
{
    if (!st)
        return;
    if (st->mapped)
        munmap((void *)(uintptr_t)st->file, st->file_len);
    free(st->strings);
    free(st->shapes);
    free(st->tensors);
    free((void *)st->by_name);
    free(st->metadata);
    free(st);
}

INGOT_SAFETENSORS_API size_t ingot_safetensors_count(const ingot_safetensors *st)
{
    return st->n_tensors;
}

INGOT_SAFETENSORS_API const ingot_safetensors_tensor *
ingot_safetensors_get(const ingot_safetensors *st, size_t i)
{
    return i < st->n_tensors ? &st->tensors[i] : NULL;
}

INGOT_SAFETENSORS_API const ingot_safetensors_tensor *
ingot_safetensors_find(const ingot_safetensors *st, const char *name)
{
    size_t low = 0, high = st->n_tensors;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(name, st->by_name[mid]->name);
        if (order == 0)
            return st->by_name[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

INGOT_SAFETENSORS_API const char *ingot_safetensors_metadata(const ingot_safetensors *st,
                                                             const char *key)
{
    size_t i;
    for (i = 0; i < st->n_metadata; i++)
        if (strcmp(st->metadata[i].key, key) == 0)
            return st->metadata[i].value;
    return NULL;
}

INGOT_SAFETENSORS_API const char *ingot_safetensors_dtype_name(ingot_safetensors_dtype dtype)
{
    return dtype < INGOT_ST_N_DTYPES ? ingot_st_dtypes[dtype].name : "?";
}

INGOT_SAFETENSORS_API unsigned ingot_safetensors_dtype_bits(ingot_safetensors_dtype dtype)
{
    return dtype < INGOT_ST_N_DTYPES ? ingot_st_dtypes[dtype].bits : 0;
}

#endif /* INGOT_SAFETENSORS_IMPLEMENTATION */
