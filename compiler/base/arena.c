/* arena.c - memory by lifetime: an arena only grows, and is freed as a whole.
 * The only file that calls free() for compiler data.  Running out of memory ends the program:
 * a compiler has nothing better to do, and no caller needs to check. */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base.h"

typedef struct Block_ {
    struct Block_ *next;
    size_t size, used;
    size_t mapped; /* bytes, header included, that are pages of their own; 0: they are the heap's */
    _Alignas(16) unsigned char bytes[];
} ArenaBlock;
struct Arena {
    ArenaBlock *chunk; /* the first one lies behind the arena: most passes need no other */
    size_t total;
};
enum { OUT_OF_MEMORY = 71 }; /* exit status */
enum { FIRST_CHUNK = 928, SECOND_CHUNK = 4096, GREATEST_CHUNK = 1 << 20 };

static void *must(void *p)
{
    if (p)
        return p;
    fputs("ingot: out of memory\n", stderr);
    exit(OUT_OF_MEMORY);
}

static ArenaBlock *first_chunk(Arena *a)
{
    return (ArenaBlock *)(void *)(a + 1);
}

Arena *arena_new(void)
{
    Arena *a = must(malloc(sizeof *a + sizeof *a->chunk + FIRST_CHUNK));
    *a = (Arena){.chunk = first_chunk(a), .total = FIRST_CHUNK};
    *a->chunk = (ArenaBlock){.size = FIRST_CHUNK};
    return a;
}

void arena_free(Arena *a)
{
    if (!a)
        return;
    for (ArenaBlock *c = a->chunk; c;) {
        ArenaBlock *next = c->next;
        if (c->mapped)
            (void)munmap(c, c->mapped);
        else if (c != first_chunk(a))
            free(c);
        c = next;
    }
    free(a);
}

void *arena_alloc(Arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        must(NULL);
    bytes = (bytes + 15) & ~(size_t)15;
    ArenaBlock *c = a->chunk;
    if (c->size - c->used < bytes) {
        /* Chunks double up to 1 MiB, so that a kernel's small arena stays small. */
        size_t size = c->size < SECOND_CHUNK ? SECOND_CHUNK : c->size * 2;
        if (size > GREATEST_CHUNK)
            size = GREATEST_CHUNK;
        if (size < bytes)
            size = bytes;
        ArenaBlock *fresh = must(malloc(sizeof *fresh + size));
        *fresh = (ArenaBlock){.size = size};
        a->total += size;
        if (bytes > size / 2 && c->size - c->used > size / 8) { /* keep the roomier one in front */
            fresh->next = c->next;
            c->next = fresh;
            fresh->used = bytes;
            return memset(fresh->bytes, 0, bytes);
        }
        fresh->next = c;
        a->chunk = c = fresh;
    }
    void *p = c->bytes + c->used; /* zeros where it is used: the rest of a chunk costs nothing */
    c->used += bytes;
    return memset(p, 0, bytes);
}

void *arena_sparse(Arena *a, size_t bytes)
{
    if (bytes < GREATEST_CHUNK / 16 || bytes > SIZE_MAX / 2)
        return arena_alloc(a, bytes);
    const size_t all = sizeof(ArenaBlock) + bytes;
    ArenaBlock *c =
        mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (c == MAP_FAILED)
        return arena_alloc(a, bytes);
    *c = (ArenaBlock){.next = a->chunk->next, .size = bytes, .used = bytes, .mapped = all};
    a->chunk->next = c; /* behind the one in front, which has room */
    return c->bytes;
}

void *arena_array(Arena *a, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / 2 / size)
        must(NULL);
    return arena_alloc(a, n * size);
}

char *arena_strdup(Arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(arena_alloc(a, n), s, n);
}

char *arena_printf(Arena *a, const char *format, ...)
{
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    if (n < 0)
        BUG("bad format '%s'", format);
    char *s = arena_alloc(a, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, format, again);
    va_end(again);
    return s;
}

size_t arena_used(const Arena *a)
{
    return a->total;
}

void *vec_grow(Arena *a, const void *old, size_t n, size_t size)
{
    void *fresh = arena_array(a, n ? n * 2 : 1, size);
    if (n)
        memcpy(fresh, old, n * size);
    return fresh;
}

void *vec_of(Arena *a, const void *items, size_t n, size_t size)
{
    size_t room = 1;
    while (room < n)
        room *= 2;
    return n ? memcpy(arena_array(a, room, size), items, n * size) : NULL;
}

/* ---- text and maps live on the C heap: they grow a lot and die early ------------------- */

char *sb_room(StrBuf *sb, size_t n)
{
    if (sb->len + n + 1 > sb->cap) {
        sb->cap = (sb->len + n + 1) * 2;
        sb->data = must(realloc(sb->data, sb->cap));
    }
    return sb->data + sb->len;
}

void sb_number(StrBuf *sb, int64_t v)
{
    enum { DIGITS = 20 };
    char text[DIGITS], *at = text + DIGITS;
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (v < 0)
        *--at = '-';
    sb_write(sb, at, (size_t)(text + DIGITS - at));
}

void sb_write(StrBuf *sb, const void *bytes, size_t n)
{
    (void)sb_room(sb, n);
    if (n)
        memcpy(sb->data + sb->len, bytes, n);
    sb->len += n;
    sb->data[sb->len] = 0;
}

void sb_puts(StrBuf *sb, const char *s)
{
    sb_write(sb, s, strlen(s));
}

void sb_vprintf(StrBuf *sb, const char *format, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    const size_t room = sb->cap - sb->len;
    int n = vsnprintf(room ? sb->data + sb->len : NULL, room, format, again);
    va_end(again);
    if (n < 0)
        BUG("bad format '%s'", format);
    if ((size_t)n >= room) { /* there was no room for it */
        sb->cap = (sb->len + (size_t)n + 1) * 2;
        sb->data = must(realloc(sb->data, sb->cap));
        vsnprintf(sb->data + sb->len, (size_t)n + 1, format, ap);
    }
    sb->len += (size_t)n;
}

void sb_printf(StrBuf *sb, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    sb_vprintf(sb, format, ap);
    va_end(ap);
}

void sb_free(StrBuf *sb)
{
    free(sb->data);
    *sb = (StrBuf){0};
}

char *sb_take(StrBuf *sb, Arena *a)
{
    char *text = arena_strdup(a, sb->data ? sb->data : "");
    sb_free(sb);
    return text;
}

void map_put(Map *m, uint64_t key, void *value)
{
    if (!value)
        BUG("a map holds no NULL");
    if (m->n * 2 >= m->cap) {
        Map bigger = {.cap = m->cap ? m->cap * 4 : 16};
        bigger.value = must(malloc(bigger.cap * (sizeof *bigger.value + sizeof *bigger.key)));
        memset((void *)bigger.value, 0, bigger.cap * sizeof *bigger.value);
        bigger.key = (uint64_t *)(void *)(bigger.value + bigger.cap); /* behind them */
        for (size_t i = 0; i < m->cap; i++)
            if (m->value[i]) {
                size_t j = map_slot(&bigger, m->key[i]);
                bigger.key[j] = m->key[i];
                bigger.value[j] = m->value[i];
            }
        bigger.n = m->n;
        map_free(m);
        *m = bigger;
    }
    size_t i = map_slot(m, key);
    m->n += !m->value[i];
    m->key[i] = key;
    m->value[i] = value;
}

void map_free(Map *m)
{
    free((void *)m->value);
    *m = (Map){0};
}

Map map_copy(const Map *m)
{
    Map copy = {.n = m->n, .cap = m->cap};
    const size_t bytes = m->cap * (sizeof *m->value + sizeof *m->key);
    if (!m->cap)
        return copy;
    copy.value = must(malloc(bytes));
    memcpy((void *)copy.value, (const void *)m->value, bytes);
    copy.key = (uint64_t *)(void *)(copy.value + copy.cap); /* behind them */
    return copy;
}

_Noreturn void bug_at(const char *file, int line, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fprintf(stderr, "ingot: internal error at %s:%d: ", file, line);
    vfprintf(stderr, format, ap);
    fputs("\nThis is a fault of the compiler, not of your model; please report it.\n", stderr);
    va_end(ap);
    fflush(NULL);
    exit(INGOT_BUG);
}
