/* bundle_gpu.h - what the device of a bundle has: what the files of bundle_gpu.c share. */
#ifndef BUNDLE_GPU_H
#define BUNDLE_GPU_H

#include "bundle_writer.h"

/* A place in ctx->mem. */
typedef struct {
    BufferKind kind; /* states are in the arena too */
    int64_t key;     /* offset, or number of the input or output */
    int64_t bytes;
    const Buffer *b; /* the first one there */
} Mem;

struct Gpu {
    bool *used;           /* by buffer: the device touches it */
    Mem *mem;             /* [0] is the arena, its parts follow */
    int nmem, npart, nio; /* after the parts come the inputs and outputs */
    int64_t host_bytes;   /* of the arena that host steps use */
    int nline;            /* strings of program text */
    bool apart;           /* no step of a run needs the host's memory */
    bool records;         /* and what a run enqueues is recorded, for the next one; */
    bool sized;           /* it depends on sizes of run time */
    bool branches;        /* some steps the data decides about */
    bool copies;          /* some step is neither a kernel nor a loop of them */
    int64_t launches;     /* of kernels, in a run; at most */
    bool shared;          /* some kernel's groups share what has to be asked for: */
    int64_t *asked;       /* bytes, by kernel */
    bool *across;         /* by kernel: neighbours join what they have */
    int nown; /* kernels of the program; behind them those that are programs of their own (bundle_gpu_kernels.c: ways), or none */
    int nhead; /* then: of the strings of program text, those above the kernels */
};

/* bundle_gpu.c: whether a buffer has memory on the device; what its place in ctx->mem is called, and by number. */
bool gpu_on_device(const Bundle *, const Buffer *);
const char *gpu_mem_of(Bundle *, const Buffer *);
const char *gpu_mem_name(const Bundle *, int i);

/* bundle_gpu_kernels.c: how many kernels are in the program that init loads. */
int gpu_own_kernels(const Bundle *);

#endif
