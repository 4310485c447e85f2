/* bench.h - a graph to be timed, and what builds it. */
#ifndef BENCH_H
#define BENCH_H

#include "compiler/tools/run/run.h"

enum { MAX_INPUTS = 4 };

/* The graph of one case while it is built. */
typedef struct {
    ingot_context *c;
    Arena *a;
    HostTensor in[MAX_INPUTS];
    int nin;
    double bytes; /* inputs and weights, each once */
    double scale; /* of the random numbers, f32 ones; 0: 1 */
} BenchGraph;

/* What is scarce: a share of the multiply-adds of one core (of f32, of f64: half as many, of
 * bytes), or of its bandwidth from memory; or the time that the case before took, of which this
 * one's is judged. */
typedef enum { OF_FLOPS, OF_DOUBLES, OF_DOTS, OF_BYTES, AS_BEFORE } Scarce;

/* p: the case's numbers.  Declares one output; gives the floating-point operations. */
typedef double BuildCase(BenchGraph *, const int64_t *p);
typedef struct {
    const char *name;
    BuildCase *build;
    int64_t p[10];
    Scarce of;
    double bar; /* least share, in per cent; 0: none */
} BenchCase;
extern const BenchCase cases[]; /* ended by a NULL name */

#endif
