/* file.c - files that are written as a whole. */
#include <errno.h>
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

bool file_replace(Arena *a, const char *path, const void *data, size_t bytes)
{
    const char *part = arena_printf(a, "%s.%ld", path, (long)getpid());
    if (file_write(part, data, bytes) && !rename(part, path))
        return true;
    const int error = errno;
    (void)unlink(part);
    errno = error;
    return false;
}
