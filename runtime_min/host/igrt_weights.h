/*
 * igrt_weights.h - a file of weights in memory, for callers that have an operating system.
 *
 *     igrt_weights w;
 *     const char *why = igrt_weights_open(&w, "model.weights", MODEL_WEIGHTS_BYTES);
 *     config.weights = w.data;
 *     config.weights_bytes = w.bytes;
 *     ...
 *     igrt_weights_close(&w);      after the last context that uses it
 *
 * On POSIX igrt_weights_open() maps the file: pages are read when they are used, and processes
 * share them. igrt_weights_read() reads it, on Linux into memory of huge pages, which costs the
 * process the bytes and saves it looking for pages: where weights come from memory in every run, it
 * is faster; what is more than a quarter of the machine's memory it maps. Elsewhere both read. The
 * checksum is <model>_init's part.
 */
#ifndef IGRT_WEIGHTS_H
#define IGRT_WEIGHTS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct igrt_weights {
    const void *data; /* aligned to 64 bytes or more */
    size_t bytes;
    void *block; /* what close lets go of */
    size_t block_bytes;
} igrt_weights;

/* NULL, or why it could not be had; then w holds nothing. A file of another length is refused. */
const char *igrt_weights_open(igrt_weights *w, const char *path, size_t bytes);
const char *igrt_weights_read(igrt_weights *w, const char *path, size_t bytes);
void igrt_weights_close(igrt_weights *w);

#ifdef __cplusplus
}
#endif
#endif
