/* winograd.h - what the files of convolutions in fewer products share. */
#ifndef WINOGRAD_H
#define WINOGRAD_H

#include "rewrite.h"

enum { TAPS = 3, MAX_TILE = 4, MAX_POINTS = MAX_TILE + TAPS - 1, MAX_WINDOWS = 2 };

typedef struct {
    int tile, points; /* m and m + 2 */
    int windows;      /* so many are transformed; the taps of another one are summed as they are */
    double b[MAX_POINTS][MAX_POINTS], g[MAX_POINTS][TAPS], a[MAX_TILE][MAX_POINTS];
} WinogradForm;

extern const WinogradForm form2, form4, form2x1; /* winograd.c */

typedef enum {
    BATCH, /* both operands move with it */
    ROW,   /* x alone */
    OUT,   /* x alone, in a window; the taps of OUT i are TAP i */
    SUM,   /* both, and it is summed */
    TAP,   /* both, it is summed, and in a window */
    ONE,   /* neither */
    MAP,   /* w alone */
    GROUPS
} AxisGroup;

/* The axes of the product, by what moves with them. */
typedef struct ProductAxes {
    Node *x, *w; /* its operands, of size 1 along axes that they do not move with */
    int axis[GROUPS][INGOT_MAX_RANK], n[GROUPS];
} ProductAxes;

/* winograd_axes.c: of a REDUCE; NULL: it is no sum of products over windows of three. */
const ProductAxes *winograd_axes(Rewrite *, Node *reduce);
/* winograd_axes.c: along a window, how many results and rows of tiles. */
int64_t results_of(const ProductAxes *, int window);
int64_t rows_of_tiles(const ProductAxes *, const WinogradForm *, int window);
/* winograd_axes.c: how many windows are transformed; results of a tile along a window. */
int transformed_windows(const ProductAxes *, const WinogradForm *);
int tile_along(const WinogradForm *, int window);
/* winograd_axes.c: this product is one of those that a form consists of. */
void no_window(Rewrite *, Node *reduce);

/* winograd_time.c: how many rows of tiles are made at once. */
int64_t rows_of_strip(const Rewrite *, Node *reduce, const ProductAxes *, const WinogradForm *);

#endif
