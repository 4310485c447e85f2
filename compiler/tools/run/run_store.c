/* run_store.c - the folders of the cache: where they are, how large, which was used last, and which
 * have to go.
 *
 * A folder's time of change is that of its last use. One that was used within the last minutes is
 * left alone: a program may be starting there. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "run.h"

enum { YOUNG = 600 }; /* seconds */

const char *cache_root(Arena *a)
{
    const char *own = getenv("INGOT_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    if (own && *own)
        return own;
    if (xdg && *xdg)
        return arena_printf(a, "%s/ingot", xdg);
    return arena_printf(a, "%s/.cache/ingot", home && *home ? home : "/tmp");
}

void cache_used(const char *entry)
{
    (void)utimensat(AT_FDCWD, entry, NULL, 0); /* a cache of somebody else's cannot be touched */
}

typedef struct {
    const char *path;
    int64_t bytes;
    time_t used;
} StoreEntry;

static int64_t counted; /* nftw() hands its callback nothing */

static int count_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path, (void)ftw;
    if (type == FTW_F)
        counted += (int64_t)st->st_blocks * 512;
    return 0;
}

static int by_use(const void *x, const void *y)
{
    const StoreEntry *a = x, *b = y;
    return a->used != b->used ? (a->used > b->used) - (a->used < b->used)
                              : strcmp(a->path, b->path);
}

/* What lies in the cache and looks as if this program had put it there, least recently used
 * first. */
static StoreEntry *entries(Arena *a, int *n, int64_t *bytes)
{
    StoreEntry *list = NULL;
    const char *root = cache_root(a);
    DIR *d = opendir(root);
    *n = 0;
    *bytes = 0;
    for (struct dirent *f; d && (f = readdir(d));) {
        StoreEntry e = {.path = arena_printf(a, "%s/%s", root, f->d_name)};
        struct stat st;
        if (strspn(f->d_name, "0123456789abcdef") < 32 || lstat(e.path, &st))
            continue;
        counted = 0;
        nftw(e.path, count_file, 16, FTW_PHYS);
        e.bytes = counted;
        e.used = st.st_mtime;
        *bytes += e.bytes;
        vec_push(a, list, *n, e);
    }
    if (d)
        closedir(d);
    if (*n)
        qsort(list, (size_t)*n, sizeof *list, by_use);
    return list;
}

/* Removes the oldest until the limit is kept; what is young only if all are told to go. */
static int64_t shrink(StoreEntry *list, int n, int64_t bytes, int64_t limit, const char *keep,
                      bool young)
{
    time_t now = time(NULL);
    for (int i = 0; i < n && bytes > limit; i++) {
        if ((!young && now - list[i].used < YOUNG) || (keep && !strcmp(list[i].path, keep)))
            continue;
        remove_tree(list[i].path);
        bytes -= list[i].bytes;
        list[i].bytes = 0;
    }
    return bytes;
}

void cache_limit(Arena *a, const char *entry, int64_t limit)
{
    int n;
    int64_t bytes;
    StoreEntry *list = entries(a, &n, &bytes);
    shrink(list, n, bytes, limit, entry, false);
}

ingot_status command_cache(Options *o)
{
    int n, left = 0;
    int64_t bytes;
    StoreEntry *list = entries(o->a, &n, &bytes);
    if (o->clear || o->cache_bytes)
        bytes = shrink(list, n, bytes, o->clear ? 0 : o->cache_bytes, NULL, true);
    for (int i = 0; i < n; i++)
        left += list[i].bytes && !strstr(list[i].path, OBJECTS_SUFFIX);
    printf("%s: %d models, %.1f MB\n", cache_root(o->a), left, (double)bytes / 1e6);
    return INGOT_OK;
}
