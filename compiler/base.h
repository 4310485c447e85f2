/* base.h - what everything stands on: arenas, growing text and arrays, a hash map, files.
 *
 * Memory belongs to arenas by lifetime (a model's, a pass', a kernel's), which are freed as a whole. */
#ifndef BASE_H
#define BASE_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ingot.h"

typedef struct Arena Arena;
Arena *arena_new(void);
void arena_free(Arena *);
/* Zeroed, 16-aligned, never NULL: out of memory ends the program. */
void *arena_alloc(Arena *, size_t bytes);
void *arena_array(Arena *, size_t n, size_t size); /* overflow-checked */
char *arena_strdup(Arena *, const char *);
char *arena_printf(Arena *, const char *, ...) __attribute__((format(printf, 2, 3)));
size_t arena_used(const Arena *);
#define NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define NEWN(a, T, n) ((T *)arena_array((a), (size_t)(n), sizeof(T)))

/* Growing text; data is always terminated. */
typedef struct {
    char *data;
    size_t len, cap;
} StrBuf;
void sb_puts(StrBuf *, const char *);
void sb_write(StrBuf *, const void *, size_t);
void sb_number(StrBuf *, int64_t); /* as %lld has it, sooner */
char *sb_room(StrBuf *,
              size_t n); /* where n more bytes may be written: then .len is one's own affair */
void sb_printf(StrBuf *, const char *, ...) __attribute__((format(printf, 2, 3)));
void sb_vprintf(StrBuf *, const char *, va_list);
void sb_free(StrBuf *);
char *sb_take(StrBuf *, Arena *); /* its text, in the arena; it is empty then */

/* Open hash map from a 64-bit key to a pointer (NULL = absent). */
typedef struct {
    uint64_t *key;
    void **value;
    size_t n, cap;
} Map;
/* Linear probing; key 0 is stored as ~0 would be, by keeping values non-NULL. */
static inline size_t map_slot(const Map *m, uint64_t key)
{
    size_t i = (size_t)((key * 0x9E3779B97F4A7C15u) >> 20) & (m->cap - 1);
    while (m->value[i] && m->key[i] != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}
static inline void *map_get(const Map *m, uint64_t key)
{
    return m->cap ? m->value[map_slot(m, key)] : NULL;
}
void map_put(Map *, uint64_t key, void *value);
void map_free(Map *);
/* Here, for most of what is hashed is a number: then it takes a few instructions. */
static inline uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t h = seed ^ (n * 0x9E3779B97F4A7C15u);
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        h = (h ^ w) * 0xFF51AFD7ED558CCDu;
        h ^= h >> 32;
    }
    uint64_t tail = 0;
    if (n)
        memcpy(&tail, p, n);
    h = (h ^ tail) * 0xC4CEB9FE1A85EC53u;
    return h ^ (h >> 29);
}

/* Growing array in an arena: vec_push(arena, array, count, item), capacity at powers of two. */
#define vec_push(a, v, n, item)                                 \
    do {                                                        \
        if (((n) & ((n)-1)) == 0)                               \
            (v) = vec_grow((a), (v), (size_t)(n), sizeof *(v)); \
        (v)[(n)++] = (item);                                    \
    } while (0)
void *vec_grow(Arena *, const void *old, size_t n, size_t size); /* room for max(1, 2n) */
/* n items as vec_push() would have left them; NULL: none. */
void *vec_of(Arena *, const void *items, size_t n, size_t size);

/* utf8.c: bytes of the UTF-8 sequence of two or more that begins here; 0: none does. */
int utf8_bytes(const char *);
/* What a terminal shows: one line, without control characters and what is no UTF-8. */
const char *printable(Arena *, const char *);

/* closer.c: the nearer of two words to what was typed; best is the number of edits to beat, 3 at first. */
const char *closer(const char *typed, const char *word, const char *so_far, int *best);

/* file.c: where a file or a folder is made that gets this name when it is complete: nobody else makes anything there. */
const char *file_part(Arena *, const char *path);
/* A file of these bytes; false, with errno. The second has its name when it is complete: what was there is replaced, or stays
   (links and devices do in any case). */
bool file_write(const char *path, const void *data, size_t bytes);
bool file_replace(Arena *, const char *path, const void *data, size_t bytes);

/* folder.c */
/* A new one in $TMPDIR, which those of processes that were killed leave; NULL, with errno. */
char *temporary_folder(Arena *, const char *what);
void remove_tree(const char *dir);
bool make_dirs(const char *dir); /* with those above it; false: it is not there */

#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void bug_at(const char *file, int line, const char *, ...)
    __attribute__((format(printf, 3, 4)));

/* Debug and sanitized builds look at what passes have made. */
#ifndef INGOT_VERIFY
#define INGOT_VERIFY 0
#endif

#endif
