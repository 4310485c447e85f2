/* kernels.h - a kernel: an expression with its arguments, how they lie in memory, and the opts that
 * its loops get.
 *
 * A kernel is an expression of the loop level in a context of its own: SINK of ENDs, which hold
 * stores and the ranges that they loop over.  Nothing changes it; nest.h is what opts make of its
 * loops. */
#ifndef KERNELS_H
#define KERNELS_H

#include "ir.h"

/* ---- layouts ------------------------------------------------------------------------------ */

/* How logical coordinates become a storage offset (in elements): a list of constructors.  An empty
 * list is dense row-major in the buffer's dims. */
typedef enum { LAYOUT_PERMUTE, LAYOUT_SPLIT, LAYOUT_CUT, LAYOUT_PAD, LAYOUT_PITCH } LayoutKind;
typedef struct {
    LayoutKind kind;
    int8_t axis;
    int64_t a, b;
    int64_t fill; /* PAD: what lies there, of integers; floats have zeros */
    Perm perm;
} LayoutOp;
typedef struct {
    int n;
    LayoutOp op[8];
} Layout;
Node *layout_offset(Context *, const Layout *, int rank, Node *const *dims, Node *const *coords);
/* layout.c: elements of storage, at the upper bounds of the dims. */
int64_t layout_elements(const Layout *, int rank, Node *const *dims);
bool layout_equal(const Layout *, const Layout *);
/* What all halos of a layout are filled with. */
int64_t layout_fill(const Layout *);
/* Elements of the halo before and behind the axis. */
void layout_halo(const Layout *, int axis, int64_t *lo, int64_t *hi);
/* Which axes of the storage the blocks of a CUT are, and the elements inside of one; -1: there is
 * none. */
typedef struct {
    int blocks, inside;
} LayoutCut;
/* The storage that constant or upper-bound dims become. */
typedef struct {
    int rank;
    int64_t d[INGOT_MAX_RANK * 2];
    LayoutCut cut;
    int64_t size; /* of a CUT: elements of the axis */
    int64_t row;  /* and what there is for each of them in a block */
    int64_t all;  /* elements of storage */
} LayoutStorage;
LayoutStorage layout_storage_of(const Layout *, int rank, const int64_t *dims);
/* Axes of storage, and how many elements each has there, for dims that are constants. */
int layout_storage(const Layout *, int rank, const int64_t *dims, int64_t *storage);
/* That axis innermost, the others as they were, if there is room. */
void layout_put_last(Layout *, int rank, int axis);
/* Every `stride`-th element of that axis innermost, where it has whole parts of so many. */
void layout_put_last_by(Layout *, int rank, int axis, int64_t stride);
/* dst[layout(coords)] = src[coords] for a dense src of constant dims; what is of no element is
 * zero. rows (or NULL) gives the elements of one coordinate after the other of the first axis, in
 * place of src; all of them at once for 0 if there are no axes besides it. */
void layout_pack(const Layout *, int rank, const int64_t *dims, size_t element, const void *src,
                 void *dst, const void *(*rows)(int64_t first, void *user), void *user);
/* The coordinates of the element that is stored there; false: none is, it is of a border.  For
 * messages: it looks at all. */
int64_t layout_at(const Layout *, int rank, const int64_t *dims, const int64_t *coords);
bool layout_find(const Layout *, int rank, const int64_t *dims, int64_t offset, int64_t *coords);
/* The same for many elements: the storage is that of the layout and the dims. */
bool layout_find_in(const Layout *, const LayoutStorage *, int rank, const int64_t *dims,
                    int64_t offset, int64_t *coords);
/* How many elements, from the one at this offset on, differ in the innermost axis of storage
 * alone. */
int64_t layout_beside(const LayoutStorage *, int64_t offset);
void layout_print(StrBuf *, const Layout *);

/* ---- opts ---------------------------------------------------------------------------------- */

typedef enum {
#define OPT(id, ...) OPT_##id,
#include "opts.def"
    OPT_COUNT
} OptKind;
typedef struct {
    OptKind kind;
    /* its name; of ORDER the names, a space between them; of TC the unit and its axes (tc.h) */
    const char *axis;
    int64_t amount; /* of ORDER 0, of BIND a Bound */
    /* of STAGE: so many buffers, which copies fill ahead; 0: one, that is filled when it is read */
    int64_t depth;
    bool tma; /* "move tma": a thread of its own has boxes of the argument copied at once */
} Opt;
/* Its text is all names, without an amount. */
static inline bool opt_is_list(OptKind k)
{
    return k == OPT_ORDER || k == OPT_JOIN || k == OPT_TC || k == OPT_TRIGGER || k == OPT_IMAGE ||
           k == OPT_STAY;
}
/* Words of constants that an item of a GPU holds before its kernel waits for others: so many leave
 * it its registers (render_held.c). */
enum { HELD_WORDS = 64 };

/* What the iterations of an axis are where they are no loop. */
typedef enum { BOUND_NOT, BOUND_GRID, BOUND_LANE, BOUND_WARP, BOUND_CLUSTER, BOUND_COUNT } Bound;
extern const char *const bound_name[BOUND_COUNT]; /* "", "grid", "lane", "warp", "cluster" */
Opt opt_copy(Arena *, const Opt *);
extern const char *const opt_name[OPT_COUNT];
extern const char *const opt_form[OPT_COUNT];  /* what follows it in a line */
extern const char *const opt_after[OPT_COUNT]; /* words: which may come after it; or "any" */
void opt_print(StrBuf *, const Opt *);         /* "UPCAST oc 4" */
/* The opt that a text of words with a space between them is; it points into the arena.  false: it
 * has not the form of opt_form[o->kind], or, with OPT_COUNT, is none. */
bool opt_read(Arena *, const char *text, Opt *);

/* ---- what was decided for a kernel ----------------------------------------------------------- */

/* What was decided for one kernel step, by the heuristic or by a .sched file. */
typedef struct {
    bool owned;  /* its layout is decided here: a weight, or what no step before has written */
    bool copied; /* the kernel works on a copy of it, laid out as `copy` */
    Layout layout, copy;
    int line, copy_line; /* of a file: where they stand */
} ArgChoice;
typedef struct {
    uint64_t key; /* kernel_key(); of a copy: of the kernel that it serves */
    int nth, of;  /* which of how many steps of this key, in order; of a file: of 0, every one */
    uint64_t at;  /* key of the value that it stores; 0: none */
    /* Of a step: what the file has as the key of that value, after changes of the graph; 0:
     * nothing. */
    uint64_t near;
    uint32_t form; /* hash of its axes and arguments */
    bool copy;     /* the step that copies argument copy_arg of that kernel */
    int copy_arg;
    int narg, nopt;
    ArgChoice *arg;
    Opt *opts;
    int *opt_line;
    const char *tried; /* cpu_contraction.c: what was thought of, a line each; NULL: nothing */
    int line;          /* of a file: 1, 2, ...; used: it applies to the model */
    bool automatic;    /* of a file: what it does not say is left to the compiler */
    bool used;
} Choice;

/* ---- kernels ------------------------------------------------------------------------------- */

typedef struct {
    char name[16];
    bool reduced, staged; /* staged ones are reduced too: no loop of the stores */
    bool scanned;         /* an axis of outputs whose loop runs in order, inside all others */
    Node *range;          /* RANGE in the kernel's context */
} Axis;
/* Elements whose coordinate along `axis` is that along `row` plus `from`, or more, are `value` (row
 * < 0: from `from` on); from NULL: of none is that known. */
typedef struct {
    int axis, row;
    Node *from; /* of run-time sizes alone */
    double value;
} Beyond;
typedef struct {
    ingot_dtype dtype;
    int rank;
    Node *const *dims; /* in the kernel's context */
    Layout layout;
    bool read, written;
    Beyond beyond; /* masked_buffers.c: of what is read, what its writer's mask has left there */
    /* a constant in all steps, or a place: accessed before what was enqueued earlier is done */
    bool early;
    bool moved; /* in some step it begins inside of what its dims are those of (slices.c) */
    /* The first argument of the same buffer, plus 1, where that is another one
     * (split_operands.c). */
    int same;
    /* Of a place that each of so many groups of a cluster has and all of them read: element i of
     * the group of rank r is number r * size + i; 0: it is the group's own. */
    int ranks;
    /* what it reads there no kernel writes that may still run when this one begins (settled.c) */
    bool settled;
    /* Where a GPU's arguments are bindings (Language.binds): the first of those that share one
     * binding, plus 1; 0: it has one of its own.  It is one that is written, whether by this
     * argument or by another one of the same memory. */
    int with;
    bool writable;
} KernelArg;
/* An argument that is a number, not the same in all steps of its kernel: PARAM i, without sources,
 * in there (share.c). */
typedef struct {
    ingot_dtype dtype; /* of the PARAM: i32, f32, or what is held as that */
    double lo, hi;     /* the least and the greatest of the steps */
    bool whole;        /* all are integers */
} Scalar;
static inline bool is_scalar_argument(const Node *n)
{
    return n->op == OP_PARAM && !n->nsrc;
}
typedef struct Kernel Kernel;
struct Kernel {
    Context *c; /* its own */
    Node *sink;
    int narg, naxis, nopt, nvar, nscalar;
    KernelArg *args;
    Axis *axes; /* output axes outermost first, then reduce axes */
    Opt *opts;
    /* Numbers of the run-time integers that it takes, in order: VARs have the same numbers here as
     * in the model. */
    int *vars;
    Scalar *scalars;
    bool any_sign;          /* of its target: see there */
    const struct Tc *units; /* the same: Machine.own_units */
    bool items;             /* the same: a GPU, whose work items stand for loops over results */
    int device;             /* that runs it (Step.device) */
    bool serial; /* stores may collide (scatter): iterations run in order, on a GPU too but for axes
                    along which none does (stores_apart()) */
    uint64_t hash;  /* of its canonical text: equal kernels are emitted once */
    Choice *choice; /* the record of what is decided for it; NULL where nothing is */
    bool check;     /* of a STEP_INDEX */
    /* Bytes that each item has of what crosses between GPUs before the kernel begins, which its own
     * groups see to (bundle_gpu_cross.c); 0: nothing does. */
    int crosses;
    /* Or it is a launch of several kernels, this one and others (bundle_gpu_together.c): those. */
    const Kernel **together;
    int ntogether;
    bool only_together;      /* it is launched with others alone */
    bool backward;           /* its groups go through blocks from the last to the first one */
    char name[96];           /* k07_conv_1x64x56x56; set by the plan */
    int64_t flops, bytes;    /* at the upper bounds */
    int64_t scratch;         /* bytes of the places that a part of it needs, see nest.h */
    struct Lowered *lowered; /* its statements, once they were asked for (lowered.h), or NULL */
};
/* IMAGE: is this argument one? */
bool kernel_takes_image(const Kernel *, int64_t arg);
/* Do boxes bring operands (STAGE .. move tma)? */
bool kernel_has_boxes(const Kernel *);

/* flatten.c: the roots with every coordinate tuple replaced by one offset in elements. */
void flatten_addresses(Arena *, const Kernel *, int n, Node *const *roots, Node **flat);
/* lanes.c: how a value of this type is held in a lane, "f32" or "i32"; NULL: it cannot be. */
const char *lane_type(ingot_dtype);
/* lanes.c: whether custom functions take or give values of this type in lanes. */
bool lane_custom(ingot_dtype);
/* nest.c: how many parts of it may run on different threads; 0: it cannot be cut. */
int kernel_parts(const Kernel *);
/* exact.c: whether its results are exact, in any order of sums, if what it reads are small whole
 * numbers. */
bool kernel_is_exact(const Kernel *);
/* plain.c: whether it computes one element after the other, and why. */
bool kernel_is_plain(const Kernel *);
const char *plain_reason(Arena *, const Kernel *);
/* form.c: "3x3 convolution", "attention", "softmax" ...: by its loops. */
const char *kernel_form(Arena *, const Kernel *);
/* outside.c: the matrix unit of the core that has the types of a sum of the kernel's but does not
 * take it, and why ("amx.bf16: it has 8 columns, the unit 16"); NULL: there is no such sum. */
const char *outside_reason(Arena *, const Kernel *, const struct Target *);
/* outside.c: how many of its sums of products neither a unit, nor DOT, nor lanes take: by CPUs. */
int sums_by_element(const Kernel *);

/* kernel.c: what it computes, sources first: the sink is the last. What lies below its END alone
 * are the first ones. */
Node *const *kernel_nodes(const Kernel *, int *n);
Node *const *kernel_end_nodes(const Kernel *, int *n);
/* kernel.c: vars again, after its addresses changed; loads and stores of each argument. */
void kernel_find_vars(Kernel *);
void kernel_accesses(const Kernel *, Arena *, int64_t *count);
/* Are all run-time integers of an index parameters of the kernel already? */
bool kernel_has_sizes(const Kernel *, Node *);
/* The same kernel in a new context: what is emitted follows from its expression, layouts and opts
 * alone, not from what was asked about it on the way.  The old one is freed. */
Kernel *kernel_renew(Kernel *);
Kernel *kernel_copy(const Kernel *);
/* schedule/kernel_text.c: of its canonical text, layouts and opts included, of bounds of run-time
 * sizes, and of functions of the user's: what a kernel is known by beside those of other models. */
uint64_t kernel_hash(const Kernel *, uint64_t seed);
/* Everything that the emitted text depends on within one plan, in canonical order; not decided:
 * what is computed, without layouts and opts.  blank: the numbers of these nodes, by id, are left
 * out, and that they are; or NULL. */
void kernel_text(StrBuf *, Arena *, const Kernel *, bool decided, const bool *blank);

int64_t kernel_bytes(const Kernel *); /* that it reads or writes, each element once; upper bounds */

void print_dims(StrBuf *, const Context *, int rank, Node *const *dims); /* "[2,n,3]" */
/* A dim in a key: its expression. */
void dim_key(StrBuf *, Node *dim);
/* kernel.c: how often each of its n nodes is computed, at the upper bounds of run-time dims. */
int64_t *kernel_iterations(const Kernel *, Arena *, int n, Node *const *order);
/* "n*2+1" */
void print_index(StrBuf *, const Context *, Node *);
/* A name of the model, which may hold any bytes: one line of ASCII, the beginning of a long one. */
void print_name(StrBuf *, const char *name);

#endif
