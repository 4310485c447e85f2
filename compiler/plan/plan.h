/* plan.h - a plan: the steps of a run, the buffers that they read and write, and where these lie.
 *
 * schedule/ makes it of a graph, choose/ decides on layouts and opts, memplan.c gives every buffer
 * its place; what is emitted, explained, saved and replayed is read from here. */
#ifndef PLAN_H
#define PLAN_H

#include "target.h"

/* ---- buffers, steps -------------------------------------------------------------------------- */

typedef enum {
    BUF_INPUT,
    BUF_OUTPUT,
    BUF_WEIGHT,
    BUF_ARENA,
    BUF_STATE,
    BUF_LOCAL /* a variable of the emitted run(): what a check finds */
} BufferKind;
/* io_in_arena.c: of an input or output in the arena, when its bytes are the caller's: before the
 * first step, or behind the last one. */
typedef enum { LENT_NOT, LENT_FIRST, LENT_LAST } Lent;
typedef struct Buffer Buffer;
struct Buffer {
    int id; /* index in Plan.buffers */
    BufferKind kind;
    ingot_dtype dtype;
    int rank;
    Node *const *dims; /* in the model's context */
    Layout layout;
    int64_t bytes; /* at the upper bounds of all run-time dims */
    int slot;      /* input / output / state number */
    Node *node; /* the tensor that it holds; of a weight the expression to evaluate (the recipe) */
    const char *name;
    int64_t offset; /* memplan.c: in its memory (state included) or in the weights */
    int memory;     /* memplan.c: ARENA and STATE: index in Plan.memories */
    int device;     /* in whose memory it lies; 0: the host's, or that of the only device */
    Buffer *base;   /* a view: a slice of another buffer, or NULL */
    Lent lent;
    bool kept;         /* other buffers point into it: live to the end of the run */
    Node *base_offset; /* in elements (INDEX; may use VARs) */
    Beyond beyond; /* masked_buffers.c: what a mask has left in it; `from` in the model's context */
    Buffer *takes; /* state_in_place.c: the state whose next value this is, on its bytes; or NULL */
    int first, last; /* memplan.c: live from step number to step number (depth-first numbers) */
};
/* Of a view, and of views of views, the buffer that has the memory; else itself. */
Buffer *buffer_root(const Buffer *);
/* Whose bytes a buffer has: of a state's next value on its bytes (Buffer.takes) the state. */
const Buffer *buffer_memory(const Buffer *);

/* What most of a kernel's work is for. */
typedef struct {
    const Origin *origin; /* NULL: none */
    const char *op;       /* of a source node; where there is none, of a node of the graph */
    Node *value;          /* its result, or what the kernel computes of it */
    double operations;
} Heaviest;

/* A value that a kernel stores. */
typedef struct {
    Node *node;
    bool copy; /* it lies in memory already, elsewhere */
    /* where it is stored, and where in there it begins, by axis; NULL: it is all of it */
    Buffer *buffer;
    Node *const *at;
} Stored;

/* Where a value of the graph lies once a step has put it there: as a rule, in a buffer, of which it
 * may be a part. */
typedef struct {
    Node *node; /* of several values at once (CALL, LOOP, IF) what gives them, */
    int part;   /* and which of them */
    const Buffer
        *buffer;   /* NULL: a loop's number of iterations, or its condition, which are integers, */
    Node *integer; /* this one */
    Node *const *at; /* where it begins, by axis; NULL: it is all of it */
} Placement;

typedef enum {
    STEP_KERNEL,
    STEP_CALL,
    STEP_COPY,
    STEP_IF,
    STEP_LOOP,
    STEP_CHECK,
    STEP_INDEX /* only in a bundle that checks: indices from data are in range */
} StepKind;
typedef struct Step Step;
typedef struct {
    int n;
    Step **step;
} Block;
struct Step {
    StepKind kind;
    int number;                  /* depth-first, from 0 */
    int first_inner, last_inner; /* numbers of the steps inside (IF, LOOP) */
    int device; /* that runs it, on buffers of its own; COPY: that it brings something to */
    const char *name;
    const Origin **origins; /* source nodes, in order, no doubles */
    int norigin;
    Heaviest heaviest; /* KERNEL: of what it computes */
    Node *value;       /* KERNEL: that it stores; merged: of the first of them */
    Stored *stored;    /* KERNEL: all that it stores */
    int nstored;
    Node **values; /* KERNEL: nodes of the model's graph that it computes, oldest first */
    int nvalue;
    /* KERNEL: one per argument.  CALL: inputs then outputs.  COPY: dst, src. */
    int nbuf;
    Buffer **bufs;
    Kernel *kernel;        /* shared by equal steps */
    const Choice *choice;  /* KERNEL, after kernel_share(): its record; NULL: nothing is decided */
    const double *scalars; /* KERNEL: its scalar arguments, Kernel.nscalar of them */
    /* KERNEL, of a tuner's program for a GPU: the same by other opts. Which of them runs,
     * <model>_way[number] says: 0 the kernel, 1 the first of these. */
    Kernel **way;
    int nway;
    /* KERNEL of a GPU: the steps that are one launch with this one, from it on (together.c); or it
     * is part of that of a step before. */
    Step **together;
    int ntogether;
    bool follows;
    bool aside;     /* KERNEL of a GPU: beside the longest chain of steps (asides.c) */
    Kernel *launch; /* of several: theirs (bundle_gpu_together.c) */
    const Call *call;
    Buffer *scratch;               /* CALL, KERNEL: planned scratch or NULL */
    Node *elements;                /* COPY: number of elements */
    Node *dst_offset, *src_offset; /* COPY: in elements */
    Node *collective;       /* COPY: what the processes of the run make of it is copied; or NULL */
    Buffer *cond;           /* IF; LOOP: scalar bool, tested before each iteration, or NULL */
    Node *trip;             /* LOOP: dim or NULL */
    Node *counter;          /* LOOP: VAR of i */
    Node *iterations;       /* LOOP: VAR to set to the number of iterations, or NULL */
    const Require *require; /* CHECK: its integers are known by now */
    Node *size;             /* INDEX: of the axis */
    int axis;          /* INDEX: its kernel stores an index that is out of range, or INT64_MIN */
    bool wraps;        /* INDEX: what was below zero counts from the end already */
    Block body, other; /* LOOP body or IF then; IF else */
};
/* A memory that buffers lie in, the caller's: one of --memory, or the only one of its device, which
 * is called the arena. */
typedef struct {
    const char *name; /* NULL: the arena */
    int device;       /* which steps alone reach it; those of device 0 come first */
    int64_t limit;    /* its size; 0: as large as it has to be */
    /* memplan.c: what is used of it.  More than the limit: the plan does not fit (only of the
     * last). */
    int64_t bytes;
    int64_t states; /* memplan.c: bytes of states, at its start */
} Memory;
/* A run-time dim's source: sym[var] = input's dims[axis] (first occurrence sets, later ones
 * check). */
typedef struct {
    int input, axis;
    Node *dim; /* the declared dim: VAR sets, anything else is checked */
} DimSource;
/* Cycles of the two ways to have something: in a kernel of its own, and in another one. 0: not
 * asked. */
typedef struct {
    double apart, together;
} Fusion;
/* What a pass decided about a value, and why: for who reads a plan (inspect.c); no pass reads
 * it. */
typedef struct {
    const char *pass, *what, *why; /* "fuse", "stored", "several kernels read it" */
    Node *node;                    /* of the model's graph, or NULL */
    const Step *step;              /* that did it, or NULL */
    const Buffer *buffer, *other;  /* whose bytes are those of the other one; NULL */
    int64_t operations;            /* for each element, to compute it again; -1: does not matter */
    int64_t bytes;                 /* of it, or saved; -1: does not matter */
    Fusion cost; /* of storing it, of computing it in its readers; of two kernels */
} Note;
struct Values;
/* What a plan is made by, where --max-ram asks for less than the usual one takes, or a file for
 * such a plan. */
typedef struct {
    double byte; /* cycles that a byte of the arena is worth, 0: as the target has it */
    double hold; /* bytes that a run holds beside the states, for which values are made again; 0 */
} PlanRam;
typedef struct {
    Context *c;
    Arena *arena;
    PlanRam ram;
    struct Values *values; /* what is decided about values (decisions.c); NULL at -O0 */
    Buffer **buffers;
    int nbuffer;
    Placement *placed; /* in the order of the steps; a value may have several */
    int nplaced;
    Note *notes; /* in order of the passes */
    int nnote;
    Block main;
    int nstep;
    Kernel **kernels; /* distinct ones */
    int nkernel;
    DimSource *dim_sources;
    int ndim_source;
    Memory *memories; /* by device, and in order of preference */
    int nmemory;
    int ndevice;      /* at least 1 */
    bool peers;       /* all devices are alike: kernels of one are those of another */
    int state_memory; /* memplan.c: all states are at the start of this one */
    /* memplan.c; the arena: all memories of device 0 */
    int64_t arena_bytes, state_bytes, weights_bytes;
    bool verbose;
    const char *saved;      /* the text of --save-sched, or NULL */
    const char *sched_file; /* the decisions that were read from a file, or NULL */
    Choice **given;
    int ngiven;
    /* By slot.  An output that is an input, a weight or another output is copied. */
    Buffer **input, **output, **state;
    Buffer **begin; /* by state: the weight that it is filled with, or NULL; no step reads it */
} Plan;

/* ---- from a graph to a plan ------------------------------------------------------------------ */

Plan *plan_new(Context *);
void plan_note(Plan *, Note);
void plan_free(Plan *);
/* Offsets, memories, weights_bytes; false after a reported error. */
bool memplan(Plan *, int64_t align);
/* place_weights.c: of a plan, and of others of the same graph that have one file
 * (weights_gather()), whose weights are to lie in one: those that are equal come last in the first
 * plan's and first in the others', in one order.  How many bytes these are. */
int64_t weights_join(Plan *first, int n, Plan *const *second);
/* The same of n plans that each read the whole file: what is new in a plan lies behind what those
 * before it have.  All get its length. */
bool weights_gather(int n, Plan *const *);
/* plan.c: does some step exchange values with other processes? */
bool plan_of_processes(const Plan *);
/* Of which device a kernel for this one is: one text for all that are alike. */
static inline int kernel_device(const Plan *p, int device)
{
    return p->peers ? 0 : device;
}
/* Of a device the first of its memories, and the one behind its last. */
int memories_from(const Plan *, int device);
int memories_end(const Plan *, int device);
/* devices.c: why some step reads or writes what another device has, and does more than copy it;
 * NULL: none does. */
const char *devices_fault(Arena *, const Plan *);
/* The bytes of all inputs and outputs. */
int64_t plan_given_bytes(const Plan *);
/* Buffers of a memory (-1: of all) that are alive when it is tightest, largest first. */
int memplan_peak(const Plan *, int memory, const Buffer **out, int max);
void kernel_keys(Plan *); /* kernel_keys.c: starts the record: what kernel every step is */
/* plan.c: the steps that are kernels, in order, those inside of others too. */
Step **kernel_steps(const Plan *, Arena *, int *n);
void plan_print(StrBuf *, Plan *);           /* the whole plan, for people */
void sched_origin(StrBuf *, const Origin *); /* "Conv conv_0" */
/* What is decided about values, once they have their places; about kernels, before equal ones are
 * shared. */
void sched_print_values(StrBuf *, const Plan *, const char *target);
const char *sched_target(Arena *, const char *target); /* one word, for the line of a section */
void sched_print_kernels(StrBuf *, const Plan *);
/* The entry of a step after kernel_share(), with these opts and layouts (by argument; NULL: as the
 * record has it); only: for this step, not for every one of its kernel. */
void sched_print_step(StrBuf *, const Plan *, const Step *, bool only, int nopt, const Opt *opts,
                      const Layout *const *layout);
/* An entry that says this layout of an argument, and leaves the rest to the compiler; only: as
 * above. */
void sched_print_layout(StrBuf *, const Plan *, const Step *, bool only, int arg, const Layout *);
/* decisions.c: values of the graph that can be computed in another way than the graph has it. */
typedef struct {
    Node *node;
    uint64_t key;
    const char *now; /* variants.def, or "direct" */
    const Origin *origin;
} VariantOf;
int plan_variants(Arena *, const Plan *, VariantOf **out);
/* A line of a file that says how. */
void plan_print_variant(StrBuf *, const Plan *, const VariantOf *, const char *variant);
/* A decision that could be another one. */
typedef struct {
    uint64_t key;          /* of the value, or the kernel's */
    const char *is, *then; /* "stored", "recomputed" */
    const char *line;      /* of a file, by which it is so */
    Fusion cost;           /* where that was estimated */
    const Origin *origin;  /* or NULL */
} Alternative;
/* alternatives.c: what is stored or merged, where neither way was estimated to take more than
 * `factor` times what the other takes; equal values once. */
int plan_alternatives(Arena *, const Plan *, double factor, Alternative **out);
/* other_layouts.c: layouts of what kernels write; equal kernels once. */
int plan_other_layouts(Arena *, const Plan *, Alternative **out);
/* sched_parse.c: fills Plan.given and values, from the section for this target, which has another
 * name too ("c:native"); false after a reported error. */
bool sched_parse(Plan *, const char *file, const char *target, const char *also, int threads);
/* What the file says of --max-ram, before any other line is read: p->ram. */
bool sched_parse_ram(Plan *, const char *file, const char *target, const char *also, int threads);
/* One constructor of a layout, "split(1,16)"; false: it is none. */
bool sched_layout_op(const char *word, LayoutOp *);
/* Of a line of the file: it has no effect here. */
void sched_note(const Plan *, int line, const char *, ...) __attribute__((format(printf, 3, 4)));
/* A fault of the file; only the first is told. */
void sched_error(const Plan *, int line, const char *, ...) __attribute__((format(printf, 3, 4)));

/* sched_apply.c: what the file says of a kernel, or NULL; unused entries are errors. */
const Choice *choice_given(const Plan *, const Choice *);
/* The same, if it says more than layouts of results. */
const Choice *choice_of_opts(const Plan *, const Choice *);
/* Tells of entries that speak of nothing in this model; false, after an error, if none speaks of
 * anything. */
bool choices_report(const Plan *);

/* ---- compiler/kernel: layouts and opts for its kernels --------------------------------------- */

/* liveness.c: of the steps of a block the first and the last that name a buffer; first < 0: none
 * does. */
typedef struct {
    int first, last;
} Life;
/* Those of all buffers that have bytes of their own, by id, and how many bytes of the arena are in
 * use in each of n steps. */
typedef struct {
    Life *of;
    double *bytes;
    int n;
} Lives;
Lives lives_of(Arena *, const Plan *, const Block *);
/* By how many bytes the greatest of them grows if so many more are in use in these steps. */
double arena_growth(const Lives *, Life more, double bytes);
/* early.c: steps that free more than they take come early, where the arena gets smaller by that. */
void run_early(Plan *);
/* device_order.c: steps that other devices wait for come early. */
void order_for_devices(Plan *);
/* One of two kernels writes what the other one reads or writes. */
bool steps_conflict(const Step *, const Step *);
/* stages.c: kernels of a GPU that do not need each other stand side by side. */
void order_in_stages(Plan *);
/* asides.c: which steps of a GPU the longest chain of them does not need. */
void find_asides(Plan *);
/* together.c: which steps of a GPU are one launch. */
void find_together(Plan *, const Target *);
/* backward.c: which kernels of a GPU go through their blocks backward. */
void find_backward(Plan *, const Target *);
/* settled.c: may they have bytes in common? */
bool share_bytes(const Buffer *, const Buffer *);
/* together.c: does one of two kernels write what the other one touches, where all lies now? */
bool steps_meet(const Step *, const Step *);
/* settled.c: what a GPU's kernels read before those before them are done (KernelArg.settled). */
void find_settled(Plan *);
/* io_in_arena.c: inputs and outputs lie in the arena; false after a reported error. */
bool plan_io_in_arena(Plan *);
/* state_in_place.c: next values of states lie on their bytes. */
void states_in_place(Plan *);
/* Why some step uses a state that is no more; NULL: none does. */
const char *states_fault(Arena *, const Plan *);
void buffer_layout_changed(Buffer *); /* its size in bytes again */

/* ---- compiler/rewrite: algebra on the tensor graph, before anything is stored --------------- */

/* sched_apply.c: what a .sched file says takes the place of the heuristic's choice; faults go to
 * sched_error(). */
Choice *choice_copy(Plan *, const Kernel *of,
                    int arg); /* a record for the step that copies its argument */
const Layout **replay_layouts(const Plan *, Arena *, Step *const *kernel, int n, const bool *fixed);
bool replay_args(const Plan *, const Step *, const Choice *, bool may_copy);
bool replay_opts(const Plan *, Kernel *, const Target *, const Choice *);
/* copies.c: a buffer like another but for its kind and layout, of weights one that exists if there
 * is; a step that copies one of constant dims, for a step like `like`. */
Buffer *buffer_twin(Plan *, Buffer *, BufferKind, const Layout *);
Step *copy_step(Plan *, Buffer *dst, Buffer *src, const Step *like);
/* copies.c: a step that does the same, with lists, a kernel and inner steps of its own; the twin of
 * a buffer in the memory that the buffer is placed in. */
Step *step_twin(Plan *, const Step *);
void place_with(Plan *, const Buffer *, const Buffer *twin);
bool const_dims(const Buffer *); /* copies.c: no size is known at run time only */
/* copies.c: whether the store writes every element. */
bool covers(const Kernel *, Node *store);

/* provenance.c: another source node of a step, unless it is known; those of a node. */
void step_origin(Arena *, Step *, const Origin *);
/* The same of all in a list. */
void step_origin_list(Arena *, Step *, const OriginList *);
/* The step of a kernel that copies (`name`) a tensor for another step: its arguments are `src`, or
 * `dst` and `src`. */
Step *step_copies(Plan *, Kernel *, const char *name, Buffer *dst, Buffer *src, const Step *like);

#endif
