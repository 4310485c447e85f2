/* file.c - files that are written as a whole. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
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

bool file_replace(Arena *a, const char *path, const void *data, size_t bytes)
{
    const char *part = file_part(a, path);
    if (file_write(part, data, bytes) && !rename(part, path))
        return true;
    const int error = errno;
    (void)unlink(part);
    errno = error;
    return false;
}
