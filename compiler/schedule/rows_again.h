/* rows_again.h - rows of sums that are made again by what is made of them. */
#ifndef ROWS_AGAIN_H
#define ROWS_AGAIN_H

#include "schedule.h"

/* attention.c: it is rounded for products, whose units read it from memory: it will be stored,
 * whether that is known by now or not. */
bool is_rounded_operand(Sched *, Node *, Node *const *uses);
/* Of rows, the first of the list and what is made of its elements by a kernel: is all that reads
 * them, outside of it, made of them again by sums of products? Then Info says so of these.
 * `inside`: is it a part of that kernel? */
typedef struct {
    Node *n;
    int axis[2]; /* its rows and its columns; below 0: it has none */
} RowAgain;
bool rows_again(Sched *, Node *const *uses, ingot_dtype type, int nrow, const RowAgain *row,
                bool (*inside)(const void *of, const Node *), const void *of);

#endif
