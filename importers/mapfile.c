/*
 * mapfile.c - maps regular files read-only, and finds external data without leaving a folder.
 *
 * A location that comes out of a model is opened one component at a time with openat and
 * O_NOFOLLOW. So a symbolic link anywhere inside is refused, whatever it points to, and nothing
 * can be swapped between a check and the open, as it could be with realpath.
 *
 * O_NONBLOCK keeps the open of a FIFO from waiting for ever; fstat then refuses what is no file.
 */
#define _POSIX_C_SOURCE 200809L
#include "importer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, MAX_COMPONENT = 255 };

static const uint8_t empty_file[1];

static const char *open_failed(void)
{
    switch (errno) {
    case ENOENT: return "no such file";
    case EACCES: return "permission denied";
    case ELOOP: return "it is, or passes through, a symbolic link";
    case ENOTDIR: return "a part of its path is a symbolic link or not a folder";
    case EMFILE:
    case ENFILE: return "too many open files";
    default: return "cannot be opened";
    }
}

/* Maps and closes fd. */
static const char *map_descriptor(MapFile *map, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        close(fd);
        return "cannot be examined";
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return S_ISDIR(st.st_mode) ? "is a folder" : "is not a regular file";
    }
    if (st.st_size == 0) {
        close(fd);
        map->data = empty_file;
        return NULL;
    }
    if ((uintmax_t)st.st_size > PTRDIFF_MAX) {
        close(fd);
        return "is too large to map";
    }
    void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return "cannot be mapped";
    map->data = at;
    map->len = (size_t)st.st_size;
    return NULL;
}

const char *mapfile_open(MapFile *map, const char *path)
{
    *map = (MapFile){0};
    int fd = open(path, OPEN_FLAGS);
    return fd < 0 ? open_failed() : map_descriptor(map, fd);
}

const char *mapfile_open_within(MapFile *map, const char *dir, const char *location)
{
    *map = (MapFile){0};
    if (location[0] == '\0')
        return "is empty";
    if (location[0] == '/' || location[0] == '\\' || strchr(location, ':'))
        return "is not relative to the model's folder";

    int at = open(dir, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (at < 0)
        return "the model's folder cannot be opened";
    for (const char *part = location;;) {
        const char *slash = strchr(part, '/');
        size_t len = slash ? (size_t)(slash - part) : strlen(part);
        char name[MAX_COMPONENT + 1];
        const char *why = NULL;
        if (len > MAX_COMPONENT)
            why = "a part of its path is too long";
        else if (len == 2 && part[0] == '.' && part[1] == '.')
            why = "leaves the model's folder ('..')";
        else if (!slash && len == 0)
            why = "names a folder";
        if (why) {
            close(at);
            return why;
        }
        memcpy(name, part, len);
        name[len] = '\0';
        if (!slash) {
            int fd = openat(at, name, OPEN_FLAGS | O_NOFOLLOW);
            why = fd < 0 ? open_failed() : NULL;
            close(at);
            return why ? why : map_descriptor(map, fd);
        }
        if (len > 0) { /* "a//b" is "a/b" */
            int next = openat(at, name, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW);
            why = next < 0 ? open_failed() : NULL;
            close(at);
            if (why)
                return why;
            at = next;
        }
        part = slash + 1;
    }
}

void mapfile_close(MapFile *map)
{
    if (map->len > 0)
        munmap((void *)(uintptr_t)map->data, map->len);
    *map = (MapFile){0};
}
