/*
 * igrt_weights.c - a file of weights, mapped or read; read where there is no mmap.
 */
#if defined(__linux__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* madvise() */
#elif !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "igrt_weights.h"

#include <errno.h>
#include <string.h>

#if defined(__unix__) || defined(__APPLE__)

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *map_file(igrt_weights *w, int fd, size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return strerror(errno);
    w->data = w->block = p;
    w->block_bytes = bytes;
    return NULL;
}

#ifdef MADV_HUGEPAGE
enum { HUGE_PAGE = 2 << 20 };

/* 0: the file is no longer as long as that, or cannot be read. */
static int read_whole(int fd, unsigned char *data, size_t bytes)
{
    const size_t most = (size_t)1 << 30; /* of one call */
    while (bytes) {
        const ssize_t n = read(fd, data, bytes < most ? bytes : most);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return 0;
        data += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return 1;
}

/* A mapped file may leave memory again, what was read may not. */
static int has_room(size_t bytes)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 && bytes / (size_t)page <= (size_t)pages / 4;
}

static const char *read_file(igrt_weights *w, int fd, size_t bytes)
{
    const size_t room = bytes + HUGE_PAGE;
    void *block = bytes < HUGE_PAGE || !has_room(bytes) ? MAP_FAILED
                                                        : mmap(NULL, room, PROT_READ | PROT_WRITE,
                                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return map_file(w, fd, bytes);
    unsigned char *data = block;
    data += (HUGE_PAGE - (uintptr_t)data % HUGE_PAGE) % HUGE_PAGE;
    (void)madvise(data, bytes, MADV_HUGEPAGE); /* a kernel that has none of these refuses */
    w->block = block;
    w->block_bytes = room;
    w->data = data;
    return read_whole(fd, data, bytes) ? NULL : "it cannot be read";
}
#else
static const char *read_file(igrt_weights *w, int fd, size_t bytes)
{
    return map_file(w, fd, bytes);
}
#endif

static const char *open_with(igrt_weights *w, const char *path, size_t bytes,
                             const char *(*get)(igrt_weights *, int fd, size_t bytes))
{
    struct stat st;
    const char *why = NULL;
    memset(w, 0, sizeof *w);
    const int fd = open(path, O_RDONLY);
    if (fd < 0)
        return strerror(errno);
    if (fstat(fd, &st))
        why = strerror(errno);
    else if ((uint64_t)st.st_size != bytes)
        why = "the file has another length";
    else if (bytes)
        why = get(w, fd, bytes);
    close(fd);
    w->bytes = bytes;
    if (why)
        igrt_weights_close(w);
    return why;
}

const char *igrt_weights_open(igrt_weights *w, const char *path, size_t bytes)
{
    return open_with(w, path, bytes, map_file);
}

const char *igrt_weights_read(igrt_weights *w, const char *path, size_t bytes)
{
    return open_with(w, path, bytes, read_file);
}

void igrt_weights_close(igrt_weights *w)
{
    if (w->block)
        munmap(w->block, w->block_bytes);
    memset(w, 0, sizeof *w);
}

#else

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

const char *igrt_weights_open(igrt_weights *w, const char *path, size_t bytes)
{
    const char *why = NULL;
    memset(w, 0, sizeof *w);
    FILE *f = fopen(path, "rb");
    if (!f)
        return strerror(errno);
    unsigned char *block = malloc(bytes + 64), *data = block;
    if (!block) {
        why = "there is not enough memory";
    } else {
        data += (64 - (uintptr_t)data % 64) % 64;
        if (fread(data, 1, bytes, f) != bytes || fgetc(f) != EOF)
            why = "the file has another length";
    }
    fclose(f);
    if (why) {
        free(block);
        return why;
    }
    w->data = data;
    w->block = block;
    w->block_bytes = bytes + 64;
    w->bytes = bytes;
    return NULL;
}

const char *igrt_weights_read(igrt_weights *w, const char *path, size_t bytes)
{
    return igrt_weights_open(w, path, bytes);
}

void igrt_weights_close(igrt_weights *w)
{
    free(w->block);
    memset(w, 0, sizeof *w);
}

#endif
