/* kernel.h - what the files of compiler/kernel share. */
#ifndef KERNEL_H
#define KERNEL_H

#include "compiler.h"
#include "nest.h"

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
    Node *factor[MAX_ACCESS]; /* the loads below it */
    int nfactor;
} View;

/* Iterations of a RANGE; -1: known at run time only. */
int64_t range_extent(const Node *range);
bool depends_on(Node *e, Node *range);
/* Whether a value differs along a range: what a reduce makes of it depends on its range, but does not move with it.  moving():
 * of all nodes of an order in which sources come first, by id. */
bool moves_with(Arena *, Node *value, Node *range);
bool *moving(Arena *, Node *const *order, int n, Node *range);
Move access_move(Context *, Node *access, Node *range);
bool access_stride(const Kernel *, Node *access, Node *range, int64_t *stride);
/* Or that of neighbours in a block, where the layout has the range in blocks of whole vectors of so many lanes. */
bool vector_stride(const Kernel *, Node *access, Node *range, int64_t lanes, int64_t *stride);
/* access.c: the only access to an argument below a node, if it is read once there, or NULL. */
Node *only_load(Arena *, const Node *below, int64_t arg);
View kernel_view(const Kernel *);
/* Some factor of the sum moves with one range, but not with the other (or NULL): it is used again along that. */
bool view_reuses(const View *, Node *moves, Node *stays);
/* Some factor is read where a coordinate of the results and the range are added up: it is one of a window. */
bool view_slides(const View *, Node *range);

/* decided.c: what was decided for a kernel, and holds for any other that says the same; a new one has no kernel yet. */
typedef struct Decided {
    struct Decided *next;
    StrBuf says;
    const Layout *want;
    const Kernel *k;
} Decided;
Decided *decided(Map *known, Arena *keep, const Step *, bool may_copy);
void forget_decided(Map *known);

bool lane_op(const Node *); /* lanes.c: can it be computed in lanes, if its operands are? */
/* lanes.c: of the widest value that moves with the range, 4 or 8; how many lanes it may therefore have. */
int lane_bytes(const Kernel *, Node *range);
int lanes_most(const Kernel *, Node *range, const Target *);
/* lanes.c: does a coordinate advance by as much from each lane to the next, within 32 bits? */
bool lane_ramp(Context *, Node *e, Node *range, int64_t *step);
/* pitch.c: rows of what matrix units read and write begin where this is fast, but for buffers that are kept as they are. */
void choose_pitches(Plan *, Step *const *kernel, int n, const bool *kept, const Target *);
/* The same of a weight that a GPU's unit reads, behind what its layout does already. */
void pitch_weight(const Buffer *, const Target *, Layout *);
/* layouts.c: whether it reads beyond the edges of its buffer by a little, and is zero there. */
bool reads_beyond(const Kernel *, Node *load);
/* optimise.c: a buffer like another but for its kind and layout, of weights one that exists if there is; a step that copies
 * one of constant dims, for a step like `like`. */
Buffer *buffer_twin(Plan *, Buffer *, BufferKind, const Layout *);
Step *copy_step(Plan *, Buffer *dst, Buffer *src, const Step *like);
bool can_lay_out(const Kernel *, const View *, const Buffer *const *bufs, const bool *free,
                 Node *lanes);

bool const_dims(const Buffer *); /* optimise.c: no size is known at run time only */
/* optimise.c: whether the store writes every element. */
bool covers(const Kernel *, Node *store);
/* interleave.c: the axis of two elements that lie between those of range as the store writes them, or NULL. */
Node *interleaved(const Kernel *, Node *store, Node *range);
/* dot.c: of every sum that DOT can take by fours the longest such axis; gives how many. */
bool dot_possible(const Kernel *, const View *, Node *range, const bool *free);
int dot_axes(const Kernel *, const View *, const bool *free, Node **axis, int max);
/* tc_layout.c: of the operand that moves with the columns of the nest's matrix unit; false: it cannot be laid out for it. */
bool tc_layout(const Nest *, Node *load, Layout *);
/* replay.c: what a .sched file says takes the place of the heuristic's choice; faults go to sched_error(). */
Choice *choice_copy(Plan *, const Kernel *of,
                    int arg); /* a record for the step that copies its argument */
const Layout **replay_layouts(const Plan *, Arena *, Step *const *kernel, int n, const bool *fixed);
bool replay_args(const Plan *, const Step *, const Choice *, bool may_copy);
bool replay_opts(const Plan *, Kernel *, const Target *, const Choice *);

/* weights.c: kernels that look up what another one multiplies read it as that one has it. */
void share_weights(Plan *, const Target *);

/* halos.c: the kernels that write a buffer with a halo first zero it, beside their own loops. */
void clear_halos(Plan *);

/* slices.c */
void point_at_slices(Plan *, Step *);

/* heuristic_lanes.c: whether all that depends on range can be computed in its lanes, if only the buffers lie as this needs. */
bool lanes_possible(Arena *, const Kernel *, Node *range);
/* heuristic.c: opts for a kernel whose buffers have their layouts; the weights of a contraction get
 * theirs (in want[], by argument); *lanes is the range of the nest's kernel that became lanes, or NULL. */
/* join.c: the axes with these names, a space between them: how many, or -1; the kernel in which they are one. */
int join_axes(const Kernel *, const char *names, int *axis, int most);
Kernel *kernel_join(const Kernel *, const int *axis, int n);
/* nest.c: the nest is one of this kernel from now on, a copy that it owns; no opt but JOINs was done. */
void nest_replace(Nest *, Kernel *);
/* heuristic_tc.c: opts and layouts of a contraction that a matrix unit of the target takes; false: nothing was done. */
bool choose_tc_opts(Arena *, Nest **, const View *, const Buffer *const *bufs, bool may_copy,
                    Layout *want, Node **lanes);
/* heuristic_mma.c: of a contraction whose fragments the items of a warp multiply together; false: nothing was done. */
bool choose_mma_opts(Arena *, Nest **, const Buffer *const *bufs, bool may_copy, Layout *want);
/* heuristic_mma_rows.c: of one whose operands are rows of other sums; false: nothing was done. */
bool choose_rows_opts(Nest **nest);
/* heuristic_gpu.c: opts on a GPU; the weights of a contraction may get a layout, in want[], by argument, and other operands copies (Choice). */
void choose_gpu_opts(Arena *, Nest **, const Buffer *const *bufs, bool may_copy, Layout *want);
/* heuristic_parts.c: opts by which the items of a group share sums: of a contraction (rows: or -1; with at most so many items), and how it wants its weights;
 * of a reduce of rows.  False: the nest is of no use. */
bool parts_contraction(Nest *, const View *, int rows, int columns, int items, int fours);
/* heuristic_fours.c: DOT of an axis of terms, where the target has that and they are products of bytes: what is left of the axis, or -1. */
int fours_taken(Nest *, const View *, const Buffer *const *bufs, Node **four);
/* Weights are wanted so that four terms lie side by side, and fours so along the columns; false: an operand lies otherwise. */
bool fours_laid_out(const Nest *, const View *, const Buffer *const *bufs, Node *columns,
                    Node *four, Layout *want);
/* The same of a matrix times a vector, rows of which lie along the terms or may be laid so: the axis of its terms, or -1. */
int parts_vector(Nest *, const View *, const Buffer *const *bufs, int results);
void parts_layouts(const Nest *, const View *, const Buffer *const *bufs, int rows, int columns,
                   Layout *want);
bool parts_rows(Nest *, const View *, int64_t warp);
/* Of a matrix that is turned, in copies that memory bounds: neighbours store neighbours, and each item has all of a sector of what it reads.  Where
 * caches hold all of it, more items are worth more. */
bool parts_turned(Nest *, const View *);
/* Of a sum of products that results along further axes share, which the items walk over: the axis of its lanes, or -1. */
int parts_walked(Nest *);
/* heuristic.c: whether a sum walks through many pages as it reads one term after the other. */
enum { PANEL = 4 }; /* rows that are copied into panels are so many, or some times as many */
bool walks_pages(const Kernel *, const View *, Node *load);
/* tried: NULL, or gets a line for each choice of lanes, for who reads a report. */
void choose_opts(Arena *, Nest **, const Buffer *const *bufs, bool may_copy, StrBuf *tried,
                 Layout *want, Node **lanes, int *nlanes);
enum { MAX_LANES = 8 };
/* heuristic_rows.c: false: the kernel has no sum over rows that it keeps in places. */
bool staged_rows_opts(Arena *, Nest *, const Buffer *const *bufs, bool may_copy, Layout *want,
                      Node **lanes, int *nlanes);
bool fits_lanes(Arena *, const Kernel *, Node *range, int64_t lanes, const bool *free, int *moves,
                int64_t *apart);
int64_t lanes_along(const Kernel *, const Target *, Node *range);

/* packing.c: the order in which loops read a weight; false, and *l as it was, if its axes are not those of the loops. */
typedef struct {
    Node *lanes;   /* the range that is in lanes */
    int64_t block; /* elements of it that one iteration takes */
    bool reuse; /* some factor does not move with the lanes: blocks of the weight are read again */
    Node *const *loop; /* ranges, outermost first */
    int nloop;
    Node *const *four; /* reduced ranges that are taken by fours (DOT) */
    int nfour;
} Packing;
bool packing_layout(const Kernel *, Node *load, const Packing *, Layout *l);

/* threads.c: THREAD after all other opts, where it is worth it. */
void choose_threads(Nest *);
bool can_be_cut(const Kernel *);

/* nest.c: what clones of a nest share: their copy of the kernel, and what was found out about it. */
struct NestKernel {
    int users;
    int8_t *in_lanes; /* by axis: 1: it can become lanes, -1: it cannot, 0: not asked yet */
};
int nest_root_of(const Kernel *, Node *range);

/* ---- prefetch.c ---------------------------------------------------------------------------------- */

enum { MAX_PREFETCH = 4 };
/* What the tile asks for in each iteration of the innermost of the loops that the argument is read in: loads with flat addresses, of
 * which the values are of no use. */
int prefetch_loads(Arena *, const Kernel *, const Tile *, int nroot, Node *const *root, Node **out,
                   Node **innermost);

#endif
