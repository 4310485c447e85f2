/* tune_case.h - kernels with several candidates for how they are computed, as tune_main.c runs
 * them. */
#ifndef TUNE_CASE_H
#define TUNE_CASE_H

#include <stddef.h>

typedef void TunePack(void *stored, const void *dense);
typedef void TuneRun(void *const *arg);

/* An argument of a kernel.  A weight may be stored in several ways, one of which each candidate
 * reads. */
typedef struct {
    /* of an element: f f32, d f64, h f16, B bf16, b bool, q 8-bit float, i signed, u unsigned */
    char kind;
    int size; /* its bytes */
    int read, written, weight;
    int fill;              /* what lies in the borders */
    size_t dense;          /* elements, in the order of their coordinates */
    int variants;          /* ways to store it */
    const size_t *stored;  /* by variant: elements */
    TunePack *const *pack; /* by variant; NULL: as it is */
} TuneArg;

typedef struct {
    TuneRun *run;
    const unsigned char *variant; /* by argument */
} TuneCandidate;

typedef struct {
    const char *name;
    const TuneArg *arg;
    int narg, n;
    const TuneCandidate *const *candidate; /* [0]: the one to beat */
    TuneRun *naive;
    int exact;    /* with small integers its results do not depend on the order of its sums */
    int rounds;   /* to integers: few may fall to the other side */
    int sets;     /* of data to compare on */
    double span;  /* bytes that the network touches between two runs of this kernel */
    double arena; /* of these, what all operands and results share */
} TuneCase;

extern const TuneCase *const tune_cases[];
extern const int tune_ncase;

#endif
