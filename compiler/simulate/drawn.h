/* drawn.h - what buffers hold when a step is checked by itself: numbers that follow from the value
 * and the element, wherever it lies. */
#ifndef DRAWN_H
#define DRAWN_H

#include "interp.h"
#include "plan.h"

/* What numbers are drawn: floats in -1..1 and integers of all that a byte holds; floats above 0, so
 * that no sum cancels; below 0; all of them small, so that little saturates. */
typedef enum { DRAW_SIGNED, DRAW_POSITIVE, DRAW_NEGATIVE, DRAW_SMALL } DrawRange;

typedef struct {
    Arena *a;
    const Plan *p;
    Interp *ip; /* that knows the run-time integers */
    uint64_t seed;
    DrawRange range;
    struct Content **content; /* by buffer */
} Drawn;
Drawn *drawn_new(Arena *, const Plan *, Interp *);
/* n elements that are stored side by side in a buffer, counted in elements of storage; one of a
 * border holds what that does. */
void drawn_stored(Drawn *, const Buffer *, int64_t at, int64_t n, void *out);
/* The element with these coordinates in the buffer; those of n lanes, whose coordinates along axis
 * i are first[i] + at[i][lane]; of a value that lies nowhere. */
void drawn_element(Drawn *, const Buffer *, const int64_t *coord, void *out);
void drawn_elements(Drawn *, const Buffer *, int n, int64_t *const *at, const int64_t *first,
                    void *out);
void drawn_node(Drawn *, const Node *, const int64_t *dims, const int64_t *coord, void *out);
/* The buffer that has the memory of a view, and how many elements of it are before the view. */
const Buffer *drawn_root(const Drawn *, const Buffer *, int64_t *from);
/* The dims of a buffer in this run. */
const int64_t *drawn_dims(Drawn *, const Buffer *);

#endif
