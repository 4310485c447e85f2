/* file.c - files that are written as a whole. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "compiler.h"

bool file_write(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    bool good = f && (!bytes || fwrite(data, 1, bytes, f) == bytes);
    if (f)
        good &= fclose(f) == 0;
    return good;
}

/* Processes in two containers that share a folder may have the same number. */
const char *file_part(Arena *a, const char *path)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return arena_printf(a, "%s.partial-%ld-%llx%08lx", path, (long)getpid(),
                        (unsigned long long)now.tv_sec, (unsigned long)now.tv_nsec);
}

/* The file behind links, which stay. */
static const char *behind_links(Arena *a, const char *path)
{
    char *real = realpath(path, NULL);
    const char *file = real ? arena_strdup(a, real) : path;
    free(real);
    return file;
}

bool file_replace(Arena *a, const char *path, const void *data, size_t bytes)
{
    struct stat st;
    if (!stat(path, &st) && !S_ISREG(st.st_mode)) /* a device or a pipe: it is written to */
        return file_write(path, data, bytes);
    const char *to = behind_links(a, path), *part = file_part(a, to);
    if (file_write(part, data, bytes) && !rename(part, to))
        return true;
    const int error = errno;
    (void)unlink(part);
    errno = error;
    return false;
}
