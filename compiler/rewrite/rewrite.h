/* rewrite.h - what the files of compiler/rewrite share: algebra on the tensor graph, before anything is stored. */
#ifndef REWRITE_H
#define REWRITE_H

#include "compiler.h"

typedef struct {
    Context *c;
    Arena *a;
    bool float_sums;
} Rewrite;

/* A rule gives what stands for a node, or NULL: it stays.  Its sources have been rewritten. */
Node *integer_sum(Rewrite *, Node *reduce); /* integer_sum.c */

/* zero_point.c: of a REDUCE of i32. */
Node *zero_points(Rewrite *, Node *reduce);

/* integer_sum.c: it only moves elements (of its first source). */
bool is_move(Node *);
/* integer_sum.c: what is moved, with the axes of n: along each it has n's size, or 1 if it does not vary there; NULL if
 * it cannot be brought into that form. */
Node *compact_form(Rewrite *, Node *n);

/* value_range.c: bounds of all elements of an integer tensor; false: none are known. */
bool value_range(Node *, double *lo, double *hi);

#endif
