/* gpu_pieces.h - what gpu_reduce.c asks of gpu_pieces.c. */
#ifndef GPU_PIECES_H
#define GPU_PIECES_H

#include "choose.h"

enum {
    TOGETHER = 8, /* small ones in the place of one */
    BESIDE = 4    /* rows of a group whose terms lie side by side: memory moves by 32 bytes */
};

/* Terms of one row, rows, and whether they are for results that walk over them. */
typedef struct {
    int64_t terms, rows;
    bool walked;
} ReducedRows;

/* Does some reduce move with it? Else it is the row that all items of a group walk over when they
 * know what they share. */
bool is_of_reduces(const View *, Node *range);
/* The range of results that the reduces do not move with, if there is one. */
Node *walked_range(const View *);
/* Elements in a piece of an item, 1: it cannot. *lanes: items of a row. */
int64_t pieces_of_rows(const Nest *, const View *, const ReducedRows *, int64_t *lanes);
int64_t pieces_of_terms(const Nest *, const View *, const ReducedRows *, int64_t *lanes);
/* The same of columns, along an axis of results. *each: columns' lanes of a group. */
int64_t pieces_of_columns(const Nest *, const View *, const ReducedRows *, int axis, int64_t *each);
/* Items take turns along the terms, of a piece each. */
bool bind_pieces(Nest *, const Node *reduce, int64_t lanes, int64_t run, int64_t warp);

#endif
