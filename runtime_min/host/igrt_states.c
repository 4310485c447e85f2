/*
 * igrt_states.c - states to a .safetensors file and back.
 *
 *     8 bytes    N
 *     N bytes    {"fc.weight":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]},...}, then spaces
 *     the rest   the states, one behind the other, in their order
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "igrt_states.h"

#include <stdio.h>
#include <string.h>

static int failed(char *why, size_t room, const char *path, const char *what)
{
    if (why && room)
        snprintf(why, room, "%.200s: %s", path, what);
    return 0;
}

#if defined(__unix__) || defined(__APPLE__)

#define INGOT_SAFETENSORS_API static inline
#define INGOT_SAFETENSORS_IMPLEMENTATION
#include "safetensors.h"

#include <errno.h>

/* NULL: the format has no name for it, or not this width. */
static const char *type_name(igrt_dtype dtype)
{
    switch (dtype) {
    case IGRT_BOOL: return "BOOL";
    case IGRT_I8: return "I8";
    case IGRT_U8: return "U8";
    case IGRT_I16: return "I16";
    case IGRT_U16: return "U16";
    case IGRT_I32: return "I32";
    case IGRT_U32: return "U32";
    case IGRT_I64: return "I64";
    case IGRT_U64: return "U64";
    case IGRT_F16: return "F16";
    case IGRT_BF16: return "BF16";
    case IGRT_F32: return "F32";
    case IGRT_F64: return "F64";
    case IGRT_C64: return "C64";
    case IGRT_F8E4M3FN: return "F8_E4M3";
    case IGRT_F8E5M2: return "F8_E5M2";
    case IGRT_F8E8M0: return "F8_E8M0";
    default: return NULL;
    }
}

static int failed_state(char *why, size_t room, const char *path, const igrt_state *s,
                        const char *what)
{
    if (why && room)
        snprintf(why, room, "%.200s: '%.100s' %s", path, s->name, what);
    return 0;
}

/* ---- saving ------------------------------------------------------------------------------- */

/* A name as JSON has it. */
static void put_name(FILE *f, const char *name)
{
    fputc('"', f);
    for (; *name; name++)
        if (*name == '"' || *name == '\\')
            fprintf(f, "\\%c", *name);
        else if ((unsigned char)*name < 0x20)
            fprintf(f, "\\u%04x", (unsigned)*name);
        else
            fputc(*name, f);
    fputc('"', f);
}

static void put_header(FILE *f, const igrt_state *state, int n)
{
    unsigned long long at = 0;
    fputc('{', f);
    for (int i = 0; i < n; i++) {
        fputs(i ? "," : "", f);
        put_name(f, state[i].name);
        fprintf(f, ":{\"dtype\":\"%s\",\"shape\":[", type_name(state[i].dtype));
        for (int d = 0; d < state[i].rank; d++)
            fprintf(f, "%s%lld", d ? "," : "", (long long)state[i].dims[d]);
        fprintf(f, "],\"data_offsets\":[%llu,%llu]}", at, at + state[i].bytes);
        at += state[i].bytes;
    }
    fputc('}', f);
}

/* All of the file; false after an error, which errno has. */
static int put_file(FILE *f, const igrt_state *state, int n)
{
    unsigned char length[8] = {0};
    if (fwrite(length, 1, sizeof length, f) != sizeof length)
        return 0;
    put_header(f, state, n);
    long end = ftell(f);
    for (; end > 0 && end % 8; end++) /* the data begins at a multiple of 8 */
        fputc(' ', f);
    for (int i = 0; i < n; i++)
        if (state[i].bytes && fwrite(state[i].data, 1, state[i].bytes, f) != state[i].bytes)
            return 0;
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((unsigned long long)(end - 8) >> 8 * i & 0xff);
    return end > 0 && !fseek(f, 0, SEEK_SET) &&
           fwrite(length, 1, sizeof length, f) == sizeof length && !fflush(f) && !ferror(f) &&
           !fsync(fileno(f));
}

/* A rename lasts when the folder's entry is on the disk. */
static void keep_entry(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = 0;
    const int folder = open(slash ? path : ".", O_RDONLY);
    if (folder >= 0) {
        (void)fsync(folder); /* some file systems cannot */
        close(folder);
    }
}

int igrt_states_save(const char *path, const igrt_state *state, int n, char *why, size_t room)
{
    for (int i = 0; i < n; i++)
        if (!type_name(state[i].dtype))
            return failed_state(why, room, path, &state[i],
                                "has a type that .safetensors files have not");
    const size_t length = strlen(path) + sizeof ".partial";
    char *partial = malloc(length);
    if (!partial)
        return failed(why, room, path, "there is not enough memory");
    snprintf(partial, length, "%s.partial", path);
    FILE *f = fopen(partial, "wb");
    int good = f && put_file(f, state, n);
    int error = good ? 0 : errno;
    if (f && fclose(f) && good) {
        good = 0;
        error = errno;
    }
    if (good && rename(partial, path)) {
        good = 0;
        error = errno;
    }
    if (!good && f)
        remove(partial);
    if (good)
        keep_entry(partial);
    free(partial);
    return good || failed(why, room, path, error ? strerror(error) : "it cannot be written");
}

/* ---- loading ------------------------------------------------------------------------------ */

static int append(char *text, int at, int room, const char *type, int rank, const int64_t *state,
                  const uint64_t *file)
{
    at += snprintf(text + at, (size_t)(room - at), "%s[", type);
    for (int d = 0; d < rank && at < room - 32; d++)
        at += snprintf(text + at, (size_t)(room - at), "%s%lld", d ? "," : "",
                       state ? (long long)state[d] : (long long)file[d]);
    return at + snprintf(text + at, (size_t)(room - at), "]");
}

/* Whether the file's tensor is this state. */
static int fits(const ingot_safetensors_tensor *t, const igrt_state *s, const char *path, char *why,
                size_t room)
{
    const char *type = type_name(s->dtype);
    if (!t)
        return failed_state(why, room, path, s, "is missing");
    const char *found = ingot_safetensors_dtype_name(t->dtype);
    int same = type && !strcmp(found, type) && t->rank == (size_t)s->rank && t->bytes == s->bytes;
    for (int d = 0; same && d < s->rank; d++)
        same = t->shape[d] == (uint64_t)s->dims[d];
    if (same)
        return 1;
    char text[384];
    const int rank = t->rank < 16 ? (int)t->rank : 16;
    int at = snprintf(text, sizeof text, "is ");
    at = append(text, at, 180, found, rank, NULL, t->shape);
    at += snprintf(text + at, sizeof text - (size_t)at, ", and in the model ");
    append(text, at, (int)sizeof text, type ? type : "?", s->rank, s->dims, NULL);
    return failed_state(why, room, path, s, text);
}

static int is_state(const char *name, const igrt_state *state, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(state[i].name, name))
            return 1;
    return 0;
}

static int all_fit(const ingot_safetensors *file, const char *path, const igrt_state *state, int n,
                   char *why, size_t room)
{
    for (int i = 0; i < n; i++)
        if (!fits(ingot_safetensors_find(file, state[i].name), &state[i], path, why, room))
            return 0;
    for (size_t i = 0; i < ingot_safetensors_count(file); i++) {
        const ingot_safetensors_tensor *t = ingot_safetensors_get(file, i);
        if (!is_state(t->name, state, n)) {
            const igrt_state other = {.name = t->name};
            return failed_state(why, room, path, &other, "is no state of this model");
        }
    }
    return 1;
}

int igrt_states_load(const char *path, const igrt_state *state, int n, char *why, size_t room)
{
    ingot_safetensors *file = ingot_safetensors_open(path, why, room);
    if (!file)
        return 0;
    const int good = all_fit(file, path, state, n, why, room);
    for (int i = 0; good && i < n; i++) {
        const ingot_safetensors_tensor *t = ingot_safetensors_find(file, state[i].name);
        if (t->bytes)
            memcpy(state[i].data, t->data, t->bytes);
    }
    ingot_safetensors_close(file);
    return good;
}

#else

int igrt_states_save(const char *path, const igrt_state *state, int n, char *why, size_t room)
{
    (void)state, (void)n;
    return failed(why, room, path, "states are saved where there is POSIX");
}

int igrt_states_load(const char *path, const igrt_state *state, int n, char *why, size_t room)
{
    (void)state, (void)n;
    return failed(why, room, path, "states are loaded where there is POSIX");
}

#endif
