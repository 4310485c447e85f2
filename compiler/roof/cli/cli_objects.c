/* cli_objects.c - objects of the sources that are alike in every program: the driver and what it stands on, of host/. They are
 * compiled once for a C compiler and its flags, and kept in a folder of the cache; the programs that follow are linked with them.
 *
 * The folder is named by a hash of the compiler, its flags and all these sources: what lies in it is never out of date. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

static bool is_shared(const RuntimeFile *f)
{
    return !strncmp(f->name, "host/", 5) || !strcmp(f->name, "igrt.h");
}

bool object_is_shared(const char *source)
{
    for (const RuntimeFile *f = runtime_files; *f->name; f++)
        if (is_shared(f) && !strcmp(f->name, source))
            return true;
    return false;
}

const char *objects_folder(Arena *a, const char *const *words, int n)
{
    const char *compiler = n ? find_program(a, words[0]) : NULL;
    uint64_t key[2] = {1, 2};
    struct stat st;
    if (!compiler || stat(compiler, &st))
        return NULL;
    const int64_t stamp[] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
    for (int k = 0; k < 2; k++) {
        key[k] = hash_bytes(key[k], stamp, sizeof stamp);
        for (int i = 0; i < n; i++)
            key[k] = hash_bytes(key[k], words[i], strlen(words[i]) + 1);
        for (const RuntimeFile *f = runtime_files; *f->name; f++)
            if (is_shared(f))
                key[k] = hash_bytes(key[k], f->data, f->bytes);
    }
    const char *entry = arena_printf(a, "%s/%016llx%016llx" OBJECTS_SUFFIX, cache_root(a),
                                     (unsigned long long)key[0], (unsigned long long)key[1]);
    char *path = make_dirs(arena_printf(a, "%s/host", entry)) ? realpath(entry, NULL) : NULL;
    if (!path)
        return NULL; /* a cache that cannot be written: every program has its own */
    const char *folder = arena_printf(a, "%s", path);
    free(path);
    cache_used(folder);
    return folder;
}
