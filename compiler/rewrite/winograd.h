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
extern const WinogradForm form_taps;             /* winograd_taps.c */

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

/* The axes of the product, by what moves with them.  Of the gradient of a weight OUT and the other
 * axes that are summed (ROW) are those of both operands, and TAP and SUM those of x alone, which
 * are results. */
typedef struct ProductAxes {
    Node *x, *w; /* its operands, of size 1 along axes that they do not move with */
    int axis[GROUPS][INGOT_MAX_RANK], n[GROUPS];
} ProductAxes;

/* winograd_axes.c: of a REDUCE; NULL: it is no sum of products over windows of three. */
const ProductAxes *winograd_axes(Rewrite *, Node *reduce);
/* winograd_axes.c: the same of the gradient of a weight, whose results are the taps. */
const ProductAxes *winograd_taps_axes(Rewrite *, Node *reduce);
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

/* ---- winograd.c: what both are made of ------------------------------------------------------- */

/* The terms of a row at first, first + step .. times a sign. */
Node *row_terms(Context *, int n, Node *const *d, const double *row, int first, int step,
                double sign);
/* The same of a whole row, shared by rows of p and of -p. */
Node *point_row(Context *, int n, Node *const *d, const double *row);
/* Which one of the rows the coordinate along an axis says. */
Node *chosen_row(Context *, int axis, int n, Node *const *row);
Node *group_size(Context *, const ProductAxes *, Node *x, AxisGroup);
/* All axes, group after group; gives how many there are. */
int axes_in_order(const ProductAxes *, const AxisGroup *order, int *perm);
enum { WHOLE = -1 };
/* Elements at[axis] along axes, which stay as those of size 1; the other axes are WHOLE. */
Node *elements_at(Context *, Node *x, const int64_t *at);
/* x as [B, R, tiles, m.., C, taps..]. */
Node *tiled_x(Rewrite *, const ProductAxes *, const WinogradForm *);
/* v [points.., B, R, tiles.., C] of tiled_x(). */
Node *transformed_x(Context *, const ProductAxes *, const WinogradForm *, Node *x);

#endif
