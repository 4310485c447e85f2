/* winograd.h - what the files of convolutions in fewer products share. */
#ifndef WINOGRAD_H
#define WINOGRAD_H

#include "rewrite.h"

enum { TAPS = 3, MAX_TILE = 4, MAX_POINTS = MAX_TILE + TAPS - 1, MAX_WINDOWS = 2 };

typedef struct WinogradForm {
    const struct WinogradForm *exact; /* that of integers in place of this one; or NULL */
    int tile, points;                 /* m and m + 2 */
    int windows; /* so many are transformed; the taps of another one are summed as they are */
    int scale;   /* of integers: along each window results come out so many times as large; or 0 */
    double b[MAX_POINTS][MAX_POINTS], g[MAX_POINTS][TAPS], a[MAX_TILE][MAX_POINTS];
} WinogradForm;

extern const WinogradForm form2, form4, form2x1;    /* winograd.c */
extern const WinogradForm exact2, exact4, exact2x1; /* winograd_exact.c: of integers */
extern const WinogradForm form_taps;                /* winograd_taps.c */

/* What tiles of 2 and of 4 have in common: points 0, 1, -1, (2, -2,) infinity. */
#define TILE_OF_2 \
    .tile = 2, .points = 4, .b = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}
#define TILE_OF_4                                                           \
    .tile = 4, .points = 6,                                                 \
    .b = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0}, \
          {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}}

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
    double *largest; /* sum of integers; below 0: not yet known */
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

/* winograd_exact.c: nothing that the form computes of integers is lost in 16 and 32 bits. */
bool is_exact(Context *, const ProductAxes *, const WinogradForm *);
/* winograd_exact.c: a transform, as numbers of 16 bits in memory. */
Node *as_pairs(Context *, Node *);
/* winograd_exact.c: results that are `scale` times as large along each window. */
Node *unscaled(Context *, const ProductAxes *, const WinogradForm *, Node *y);

/* winograd.c: the form that a sum of these products takes, of floats or of integers; NULL: none. */
const WinogradForm *winograd_form(const Rewrite *, const Node *reduce, const ProductAxes *,
                                  const WinogradForm *);

/* winograd_time.c: how many rows of tiles are made at once. */
int64_t rows_of_strip(Rewrite *, Node *reduce, const ProductAxes *, const WinogradForm *);

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
