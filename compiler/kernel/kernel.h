/* kernel.h - what the files of compiler/kernel share. */
#ifndef KERNEL_H
#define KERNEL_H

#include "nest.h"
#include "target.h"

/* How one access moves with a range. */
typedef enum { MOVE_NONE, MOVE_AXIS, MOVE_MIXED } MoveKind;
typedef struct {
    MoveKind kind;
    int axis;       /* the one axis of the buffer that moves */
    int64_t stride; /* by how many elements of that axis */
} Move;

enum { MAX_ACCESS = 64 };
/* A kernel, taken apart: its first END, whose stores share their loops. */
typedef struct {
    Node *const *store, *const *range; /* the output ranges, outermost first */
    int nstore, nrange;
    Node *load[MAX_ACCESS];
    int nload;
    Node *reduce[MAX_ACCESS];
    int nreduce;
    Node *dot;                /* its largest sum of products, or NULL: then it is a contraction */
    int ndot;                 /* how many sums run in its loops */
    Node *outer;              /* a sum that it is a term of, block by block, or NULL */
    Node *factor[MAX_ACCESS]; /* the loads below it */
    int nfactor;
} View;

/* Iterations of a RANGE; -1: known at run time only. */
int64_t range_extent(const Node *range);
bool depends_on(Node *e, Node *range);
/* Whether a value differs along a range: what a reduce makes of it depends on its range, but does
 * not move with it.  moving(): of all nodes of an order in which sources come first, by id. */
bool moves_with(Arena *, Node *value, Node *range);
bool *moving(Arena *, Node *const *order, int n, Node *range);
Move access_move(Context *, Node *access, Node *range);
bool access_stride(const Kernel *, Node *access, Node *range, int64_t *stride);
/* lanes.c: does it move from part to part of an axis, which has whole ones (channels of results
 * whose channels and pixels are one axis)?  layout_put_last_by() lays these side by side. */
bool moves_by_parts(const Kernel *, const Node *access, Move);
/* Or that of neighbours in a block, where the layout has the range in blocks of whole vectors of so
 * many lanes. */
bool vector_stride(const Kernel *, Node *access, Node *range, int64_t lanes, int64_t *stride);
/* Does a load read the same of the same buffer as another one does, but for the ranges that it
 * does so by: k[j][d] and, of ranges as long as these, k[l][e]? */
bool reads_same_box(const Kernel *, Node *, Node *);
/* access.c: the only access to an argument below a node, if it is read once there, or NULL. */
Node *only_load(Arena *, const Node *below, int64_t arg);
View kernel_view(const Kernel *);
/* Has it results that go along rows, whose sums the items of a GPU's group share? */
bool goes_along_rows(const Kernel *, const Machine *);
/* The same with another of its sums as that of products. */
View view_of_sum(const Kernel *, Node *sum);
/* Some factor of the sum moves with one range, but not with the other (or NULL): it is used again
 * along that. */
bool view_reuses(const View *, Node *moves, Node *stays);
/* The load, or some factor, is read where a coordinate of the results and the range are added up:
 * it is one of a window. */
bool load_slides(const View *, const Node *load, Node *range);
bool view_slides(const View *, Node *range);

bool lane_op(const Node *); /* lanes.c: can it be computed in lanes, if its operands are? */
/* lanes.c: of the widest value that moves with the range, 4 or 8; how many lanes it may therefore
 * have. */
int lane_bytes(const Kernel *, Node *range);
int lanes_most(const Kernel *, Node *range, const Target *);
/* lanes.c: does a coordinate advance by as much from each lane to the next, within 32 bits? */
bool lane_ramp(Context *, Node *e, Node *range, int64_t *step);

/* join_stores.c: the axis of two or four elements that lie between those of range as the store
 * writes them, or NULL. */
Node *interleaved(const Kernel *, Node *store, Node *range);
/* dot.c: how many terms of such a sum DOT takes at once, if they lie side by side: four products
 * of bytes, two of bf16; 0: it is none. */
int dot_terms(const Node *reduce);
/* Are some of its factors digits of bytes, and not bytes as they lie in memory? Lanes make them. */
bool dot_has_digits(const Node *reduce);
/* The same of all sums over the range; 0: not each of them can be taken so along it. */
int dot_possible(const Kernel *, const View *, Node *range, const bool *free);
/* Of every sum that the machine takes by so many terms the longest such axis; gives how many. */
int dot_axes(const Kernel *, const View *, const bool *free, const Machine *, Node **axis, int max,
             int *terms);

/* lanes.c: whether all that depends on range can be computed in its lanes, if only the buffers lie
 * as this needs. */
bool lanes_possible(Arena *, const Kernel *, Node *range);
/* lanes.c: conditions are loaded or stored along it: bytes, which only CPUs have in lanes. */
bool moves_conditions(const Kernel *, Node *range);
/* join.c: the axes with these names, a space between them: how many, or -1; the kernel in which
 * they are one. */
int join_axes(const Kernel *, const char *names, int *axis, int most);
Kernel *kernel_join(const Kernel *, const int *axis, int n);
/* nest.c: the nest is one of this kernel from now on, a copy that it owns; no opt but JOINs was
 * done. */
void nest_replace(Nest *, Kernel *);
bool fits_lanes(Arena *, const Kernel *, Node *range, int64_t lanes, const bool *free, int *moves,
                int64_t *apart);

bool can_be_cut(const Kernel *);
bool is_of_one(const Node *gate, const Node *range);
bool stores_apart(const Kernel *, Node *range);

/* nest.c: what clones of a nest share: their copy of the kernel, and what was found out about
 * it. */
struct NestKernel {
    int users;
    int8_t *in_lanes; /* by axis: 1: it can become lanes, -1: it cannot, 0: not asked yet */
};
int nest_root_of(const Kernel *, Node *range);
/* nest.c: the loop nests of a kernel with its opts, which are replayed, and must have been applied
 * before.  lowered.h has what is kept of them. */
Tiles kernel_lower(const Kernel *);

/* ---- prefetch.c ------------------------------------------------------------------------------ */

enum { MAX_PREFETCH = 16 };
/* What the tile asks for in each iteration of the innermost of the loops that an argument is read
 * in: loads with flat addresses, of which the values are of no use, and this loop of each. */
int prefetch_loads(Arena *, const Kernel *, const Tile *, int nroot, Node *const *root, Node **out,
                   Node **loop);

bool fits_lanes(Arena *, const Kernel *, Node *range, int64_t lanes, const bool *free, int *moves,
                int64_t *apart);

#endif
