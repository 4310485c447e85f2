/* base.h - what everything stands on: arenas, growing text and arrays, a hash map, files.
 *
 * Memory belongs to arenas by lifetime (a model's, a pass', a kernel's), which are freed as a
 * whole. */
#ifndef BASE_H
#define BASE_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "ingot.h"

typedef struct Arena Arena;
Arena *arena_new(void);
void arena_free(Arena *);
/* Zeroed, 16-aligned, never NULL: out of memory ends the program. */
void *arena_alloc(Arena *, size_t bytes);
/* The same, much of it at once, of which little will be touched: the rest costs nothing. */
void *arena_sparse(Arena *, size_t bytes);
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
Map map_copy(const Map *);
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

/* The same of one number more. */
static inline uint64_t hash_join(uint64_t h, uint64_t v)
{
    h = (h ^ v ^ h >> 29) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
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
/* What a terminal shows: one line, with '?' for control characters and what is no UTF-8; in place,
 * and a copy. */
char *hide_unprintable(char *);
const char *printable(Arena *, const char *);

/* closer.c: the nearer of two words to what was typed; best is the number of edits to beat, 3 at
 * first. */
const char *closer(const char *typed, const char *word, const char *so_far, int *best);

/* file.c: files that have their name when they are complete; what was there is replaced, or stays
   (links and devices do in any case).
   False, or NULL, with errno: then nothing is left. */
typedef struct {
    FILE *out;
    const char *path;
    const char *part; /* where it is written; NULL: it is a device, written to as it is */
    int error;        /* the first one's errno */
} OutFile;
bool output_begin(OutFile *, Arena *, const char *path);
bool output_put(OutFile *, const void *data, size_t bytes);
bool output_end(OutFile *);
/* The end in two steps, where several files are kept or none is: it is written and closed; it gets
 * its name. Or it goes. */
bool output_written(OutFile *);
bool output_keep(OutFile *);
void output_drop(OutFile *);
bool file_replace(Arena *, const char *path, const void *data, size_t bytes);
/* The same of what others write: an empty file, or a folder, beside path, where nobody else makes
 * anything; then one of the other two. */
const char *part_file(Arena *, const char *path);
const char *part_folder(Arena *, const char *path);
bool part_keep(const char *part, const char *path);
void part_discard(const char *part);
/* The path that a part, or what lies in it, is to have: for messages. */
const char *part_shown(Arena *, const char *path);
/* Removes what processes that were killed have left of this path; all: of any in its folder. */
void parts_clean(Arena *, const char *path, bool all);
/* A file inside of a part or of a temporary folder. */
bool file_write(const char *path, const void *data, size_t bytes);
/* A descriptor that holds the lock of a file or folder; -1 with errno: EWOULDBLOCK, another one
 * does. */
int lock_path(const char *path);

/* folder.c */
/* A new one in $TMPDIR, which those of processes that were killed leave; NULL, with errno. */
char *temporary_folder(Arena *, const char *what);
void remove_tree(const char *dir); /* or a file; it is no longer pending */
bool make_dirs(const char *dir);   /* with those above it; false, with errno: it is not there */
/* How many characters of dir are folders that are there: what make_dirs() does not make. */
size_t folders_there(const char *dir);
void remove_empty(const char *dir, size_t there); /* those that it has made and that are empty */
/* Moves what lies in a part into a folder that is there, in place of what has these names; then the
 * part is gone. */
bool part_move(Arena *, const char *part, const char *dir);

/* pending.c: what a signal that ends the process removes: a path, with the descriptor of its lock,
   or -1; and folders that are empty, down to so many characters. And the programs that it ends. If
   a mapped file becomes shorter, the process says so and ends with the status if_shorter. */
void pending_add(const char *path, int lock);
void pending_folders(const char *dir, size_t keep);
void pending_drop(const char *path);
void pending_folders_drop(const char *dir);
void pending_program(pid_t);
void pending_program_ended(pid_t);
void pending_signals(int if_shorter); /* from now on; of a program, not of a library */
void pending_hold(void);              /* a signal waits */
void pending_release(void);

#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void bug_at(const char *file, int line, const char *, ...)
    __attribute__((format(printf, 3, 4)));

/* Debug and sanitized builds look at what passes have made. */
#ifndef INGOT_VERIFY
#define INGOT_VERIFY 0
#endif

#endif
