/* choose.h - what the files of compiler/choose share: layouts and opts that kernels get without
 * search. */
#ifndef CHOOSE_H
#define CHOOSE_H

#include "cost.h"
#include "kernel.h"
#include "optimise.h"

/* decided.c: what was decided for a kernel, and holds for any other that says the same; a new one
 * has no kernel yet. */
typedef struct Decided {
    struct Decided *next;
    StrBuf says;
    const Layout *want;
    const Kernel *k;
} Decided;
Decided *decided(Map *known, Arena *keep, const Step *, bool may_copy);
void forget_decided(Map *known);
/* pitch.c: rows of what matrix units read and write begin where this is fast, but for buffers that
 * are kept as they are. */
void choose_pitches(Plan *, Step *const *kernel, int n, const bool *kept, const Target *);
/* halo_in_place.c: where memory is dear, results that could lie on an operand get its halo. */
void share_halos(Plan *, Step *const *kernel, int n, const bool *kept, const Target *);
/* The same of a weight that a GPU's unit reads, behind what its layout does already. */
void pitch_weight(const Buffer *, const Target *, Layout *);
/* sized_axes.c: by buffer, whether products read it that boxes may bring; the axis whose size only
 * a run knows outermost, but `last` innermost (or -1). False: there is none, or several, or it lies
 * so. */
bool *find_boxed(Arena *, const Plan *, Step *const *kernel, int n, const Target *);
bool put_size_first(Buffer *, int last);
/* layouts.c: whether it reads beyond the edges of its buffer by a little, and is zero there. */
bool reads_beyond(const Kernel *, Node *load);
/* layouts.c: cycles that a load's gate takes, and those that a sum of bytes takes more under it:
 * by ones, for fours without lanes lie under none. */
double cost_at_edges(const Step *, const View *, Node *load, const Target *);
/* choose.c: whether copies may lay its buffers out for these lanes. */
bool can_lay_out(const Kernel *, const View *, const Buffer *const *bufs, const bool *free,
                 Node *lanes);
/* tc_layout.c: of the operand that moves with the columns of the nest's matrix unit; false: it
 * cannot be laid out for it. */
bool tc_layout(const Nest *, Node *load, Layout *);
/* cpu_amx.c: opts and layouts of a contraction that a matrix unit of the target takes; false:
 * nothing was done. */
bool choose_tc_opts(Arena *, Nest **, const View *, const Buffer *const *bufs, bool may_copy,
                    Layout *want, Node **lanes);
/* gpu_mma.c: of a contraction whose fragments the items of a warp multiply together; false: nothing
 * was done. */
bool choose_mma_opts(Arena *, Nest **, const Buffer *const *bufs, bool may_copy, Layout *want);
/* gpu_attention.c: of one whose operands are rows of other sums; false: nothing was done. */
bool choose_rows_opts(Nest **nest);
/* gpu_contraction.c: opts on a GPU; the weights of a contraction may get a layout, in want[], by
 * argument, and other operands copies (Choice). */
void choose_gpu_opts(Arena *, Nest **, const Buffer *const *bufs, bool may_copy, Layout *want);
/* gpu_reduce.c: opts by which the items of a group share sums: of a contraction (rows: or -1; with
 * at most so many items), and how it wants its weights;
 * of a reduce of rows.  False: the nest is of no use. */
bool parts_contraction(Nest *, const View *, int rows, int columns, int items, int fours);
/* gpu_dot.c: DOT of an axis of terms, where the target has that and they are products of bytes:
 * what is left of the axis, or -1. */
int fours_taken(Nest *, const View *, const Buffer *const *bufs, Node **four);
/* Weights are wanted so that four terms lie side by side, and fours so along the columns; false: an
 * operand lies otherwise. */
bool fours_laid_out(const Nest *, const View *, const Buffer *const *bufs, Node *columns,
                    Node *four, Layout *want);
/* Blocks of an axis are the grid's; gives what is inside of a block, or -1. */
int in_grid(Nest *, int axis, int64_t block);
/* The axis of the reduce that is divided: the longest one, or -1. */
int longest(const Nest *, const Node *reduce);
/* Inside of a block: copies of an item along the axis, beside each other or as far apart as there
 * are lanes, and lanes. */
int lanes_of(Nest *, int axis, int64_t lanes, int64_t copies, bool near);
/* gpu_vector.c: opts of a matrix times a vector, rows of which lie along the terms or may be laid
 * so, and how it wants its weights; false: the nest is of no use. */
bool parts_vector(Nest *, const View *, const Buffer *const *bufs, int results, Layout *want);
void parts_layouts(const Nest *, const View *, const Buffer *const *bufs, int rows, int columns,
                   Layout *want);
bool parts_rows(Nest *, const View *, int64_t warp);
/* Of a matrix that is turned, in copies that memory bounds: neighbours store neighbours, and each
 * item has all of a sector of what it reads.  Where caches hold all of it, more items are worth
 * more. */
bool parts_turned(Nest *, const View *);
/* Of a sum of products that results along further axes share, which the items walk over: the axis
 * of its lanes, or -1. */
int parts_walked(Nest *);
/* candidates.c: cycles of a kernel with the opts of a nest, by cost_nest(); of the kernel as it was
 * before the nest had any (JOIN changes its copy). want: layouts of its arguments that are others
 * than now, or NULL. */
double nest_cycles(const Kernel *, const Nest *, const Layout *want);
#define CLEARLY 0.97 /* of the cycles of what comes before it in a list: it is better */
/* gpu_items.c: opts of items that share no memory, with so many copies along rows and columns of
 * results, and of the terms of a sum; false: it cannot be done. */
typedef struct {
    int rows, columns, terms;
    bool joined; /* columns are all axes that lie side by side */
    enum {
        ITEMS_ALONG_ROW, /* neighbours along the columns are a group */
        ITEMS_NUMBERED,  /* items are numbered through, and no group has a shape */
        ITEMS_ALONE      /* each is a group */
    } groups;
} ItemShape;
bool item_tile(Nest *, const ItemShape *);
/* gpu_runs.c: opts of what memory decides, by accesses of 16 bytes, and how it wants its weights;
 * false: the nest is of no use. */
bool choose_run_opts(Nest *, const Buffer *const *bufs, Layout *want);
/* Does the load go along the range element by element, from a multiple of `run` on? Weights may be
 * laid so (*lay_out). */
bool goes_along(const Nest *, Node *load, Node *range, int64_t run, bool *lay_out);
/* gradient_layout.c: along which axis the result of s lies as its only reader wants it, or -1.
 * fixed, weight: by buffer, whose layouts are given, and which weights are. */
int axis_of_reader(Step *const *kernel, int n, const bool *fixed, const bool *weight,
                   const Step *s);
/* The same of several sums of the same loads, along an axis of their own. */
bool choose_joint_sums(Nest *, const Buffer *const *bufs);
/* gpu_reduce.c: along this axis lie few results, which are made of the same loads. */
bool is_of_same_loads(const Nest *, const View *, const Node *range);
/* gpu_reduce.c: the parts of terms are items, of which so many neighbours are a warp that joins
 * what it has; 1 or less: none do. */
bool bind_lanes(Nest *, int axis, int64_t warp);
/* gpu_run_time.c: opts of few rows times a matrix whose size a run says; false: the nest is of no
 * use. */
bool choose_run_time_opts(Nest *);
/* The same of rows that are computed, of reduces along the same terms. */
bool choose_weighed_opts(Nest *);
/* gpu_contraction.c: columns are as many axes as lie side by side; false: they are one. */
bool join_columns(Nest *, const View *);
/* gpu_cores.c: opts for a device whose processors are cores of a CPU. */
void choose_core_opts(Nest **);
/* cpu_contraction.c: whether a sum walks through many pages as it reads one term after the
 * other. */
enum { PANEL = 4 }; /* rows that are copied into panels are so many, or some times as many */
/* f32 lanes of the widest vectors. */
enum { WIDEST = 16 };
bool walks_pages(const Kernel *, const View *, Node *load, const Target *);
/* tried: NULL, or gets a line for each choice of lanes, for who reads a report. */
void choose_opts(Arena *, Nest **, const Buffer *const *bufs, bool may_copy, StrBuf *tried,
                 Layout *want, Node **lanes, int *nlanes);
enum { MAX_LANES = 8 };
/* cpu_attention.c: false: the kernel has no sum over rows that it keeps in places. */
bool staged_rows_opts(Arena *, Nest *, const Buffer *const *bufs, bool may_copy, Layout *want,
                      Node **lanes, int *nlanes);
int64_t lanes_along(const Kernel *, const Target *, Node *range);
/* As many elements as lanes are chosen by: of a size of run time, which may be far below its bound,
 * a quarter of that. */
int64_t lanes_extent(const Node *range);
/* share_weights.c: of what kernels want for their weights, what an earlier function of the model
 * has. */
void agree_on_weights(const Context *, const Nest *, const Buffer *const *bufs, Layout *want);
/* packing.c: the order in which loops read a weight; false, and *l as it was, if its axes are not
 * those of the loops. */
typedef struct {
    Node *lanes;   /* the range that is in lanes */
    int64_t block; /* elements of it that one iteration takes */
    bool reuse; /* some factor does not move with the lanes: blocks of the weight are read again */
    Node *const *loop; /* ranges, outermost first */
    int nloop;
    Node *const *four; /* reduced ranges that are taken by fours, or pairs (DOT) */
    int nfour, terms;  /* namely so many */
    int shared;        /* Machine.weight_block */
} Packing;
bool packing_layout(const Kernel *, Node *load, const Packing *, Layout *l);
/* threads.c: THREAD after all other opts, where it is worth it. */
void choose_threads(Nest *);
/* slices.c */
void point_at_slices(Plan *, Step *);

#endif
