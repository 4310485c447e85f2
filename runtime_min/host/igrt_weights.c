/*
 * igrt_weights.c - maps a file of weights, or reads it where there is no mmap.
 */
#if !defined(_POSIX_C_SOURCE)
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

const char *igrt_weights_open(igrt_weights *w, const char *path, size_t bytes)
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
    if (!why && bytes) {
        void *p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            why = strerror(errno);
        else
            w->data = w->block = p;
    }
    close(fd);
    w->bytes = why ? 0 : bytes;
    return why;
}

void igrt_weights_close(igrt_weights *w)
{
    if (w->block)
        munmap(w->block, w->bytes);
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
    w->bytes = bytes;
    return NULL;
}

void igrt_weights_close(igrt_weights *w)
{
    free(w->block);
    memset(w, 0, sizeof *w);
}

#endif
