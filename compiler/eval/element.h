/* element.h - single elements of a value of the graph, on demand: what a step is to give, of which
 * a check asks for a few.
 *
 * An element is computed down to what lies in memory, which whoever asks knows.  Floats are
 * computed in double, with a bound of how far rounding may move whoever computes the same in the
 * graph's types, in whatever order. */
#ifndef ELEMENT_H
#define ELEMENT_H

#include "interp.h"

typedef struct Elements Elements;
struct Elements {
    Context *c;
    Interp *ip; /* that knows the run-time integers */
    /* A value that lies in memory, in storage form, at so many coordinates; false: it does not.
     * part: of CALL, LOOP, IF.  -1: what lies where the UPDATE n is stored, before it is. */
    bool (*leaf)(void *user, Node *n, int part, int lanes, int64_t *const *at, void *out);
    /* A value that is a run-time integer, or NULL. */
    Node *(*integer)(void *user, Node *n);
    void *user;
    int64_t left; /* operations that may still be done */
    bool unknown; /* there is something that cannot be computed here, or none are left */
    struct ElementFrame *frame;
    struct ElementState *state;
};

/* Floats as double, anything else in storage form; error: by lane, or NULL: it is exact; INFINITY:
 * nothing is known. */
typedef struct {
    void *v;
    double *error;
} Lanes;

Elements *elements_new(Arena *, Context *, Interp *);
void elements_free(Elements *);
/* The value n at so many coordinates: root: where it is computed, though it may lie in memory.
 * False: unknown.  What it gives lives until the next call. */
bool elements_of(Elements *, Node *n, bool root, int lanes, int64_t *const *at, Lanes *out);

/* ---- for element_*.c ------------------------------------------------------------------------- */

/* Coordinates that values are wanted at. */
typedef struct {
    uint32_t number; /* no two have one */
    int n;
    int64_t *x[INGOT_MAX_RANK];
} Batch;

const Lanes *element_value(Elements *, Node *, const Batch *);
const Lanes *element_reduce(Elements *, Node *, const Batch *); /* REDUCE, SCAN */
const Lanes *element_update(Elements *, Node *, const Batch *);
const Lanes *element_alu(Elements *, Node *, int n, const Lanes *const *src);
const int64_t *element_dims(Elements *, Node *);
Arena *element_arena(Elements *); /* of the values that are being computed */
Batch *element_batch(Elements *, int n, int rank);
/* What is kept until the next call of elements_of(); by node and coordinates. */
void *element_keep(Elements *, size_t bytes);
Map *element_known(Elements *);
/* So many operations are about to be done; false: none are left. */
bool element_work(Elements *, int64_t operations);
/* Values inside live until the end: gives what to end. */
struct ElementFrame *element_begin(Elements *);
void element_end(Elements *, struct ElementFrame *);
static inline size_t element_bytes_of(const Node *n)
{
    return dtype_is_float(n->dtype) ? sizeof(double) : elem_bytes((ingot_dtype)n->dtype);
}
/* element_error.c: how far the result y may be off, of operands a that may be off by ea (NULL:
 * exact); all as double. */
void element_error(const Node *, int n, const double *const *a, const double *const *ea,
                   const double *y, double *e);
double element_eps(ingot_dtype);
double element_most(ingot_dtype);  /* the greatest finite number */
double element_least(ingot_dtype); /* below it there are fewer digits, or zeros */

#endif
