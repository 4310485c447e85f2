/* graphs.h - what is recorded instead of running: to the streams that are captured (graphs.cpp). */
#ifndef EMULATOR_GRAPHS_H
#define EMULATOR_GRAPHS_H

#include <functional>

#include "cuda.h"

namespace gpu
{

/* A kernel, or anything else, in the order in which it was recorded. */
struct Node {
    std::function<void()> run;
    const Entry *entry = NULL; /* a kernel: what an update may change */
    void **args = NULL;
    unsigned grid = 0, items = 0;
    size_t shared = 0;
    void *queue = NULL; /* the stream: its nodes run one after the other */
    size_t number = 0;  /* in the graph */
    long after = -1;    /* of another queue's, which is done before; -1: none */
    bool done = false;
};

/* The node that something enqueued in the stream becomes; NULL: it runs now. */
Node *record(void *stream);

extern void *context;      /* the current one */
extern unsigned long sent; /* words, to another device, or taken */
extern const Entry decide; /* the runtime's, which it has as PTX */

} // namespace gpu

#endif
