/* schedule.h - what the files of compiler/schedule share. */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "cost.h"
#include "plan_schedule.h"

/* Operations of a tensor made of coordinates alone that stay once its index expression is
 * simplified. */
typedef struct {
    int n;
    struct {
        unsigned axes; /* of the tensor, which it depends on */
        int cost;      /* weighed as ops.def says */
    } op[32];
} CoordOps;

/* How large a region is: the nodes that it computes, the buffers that it reads, the loops of its
 * reduces. */
typedef struct {
    int nodes, buffers, loops;
    const Node *one; /* what it reads, if that is one value alone */
} Extent;

/* Where a value lies: in this buffer, from these coordinates on (NULL: it is all of it). */
typedef struct {
    Buffer *buffer;
    Node *const *at;
} StoredPlace;

/* What the scheduler knows of a tensor node, by node id. */
typedef struct {
    CoordOps *coords; /* index_cost.c: of a tensor that is one of coordinates, once asked for */
    Buffer *buffer;   /* where its value is, once a step has put it there */
    Node *const *at;  /* and where it begins in that buffer, by axis; NULL: it is all of it */
    Node *home;       /* concat_in_place.c: the stored node whose buffer it shall lie in, or NULL */
    Node **home_at;   /* and where, by axis */
    Buffer *shared;   /* of a node that is home to others, once one of them needs it */
    StoredPlace *tuple; /* CALL, LOOP, IF: where the elements are */
    Node *scalar;       /* PARAM standing for a loop counter: the INDEX expression */
    bool stored;        /* fuse.c: to be stored by a kernel of its own */
    bool constant;      /* depends on nothing but constants */
    bool placeless;     /* on nothing but constants and sizes: each device can compute it */
    bool foldable;      /* constant, and worth evaluating at compile time: a weight recipe */
    bool cut;           /* a slice of a constant of which nothing but slices is read */
    bool several;       /* more than one node reads it, or what is made of this constant alone */
    bool looked_up;     /* a constant of which nothing but rows that indices name is read */
    const char *why;    /* fuse.c: why it is stored, or folded */
    Fusion cost_of;     /* what it takes to store it, and to compute it in its readers */
    bool has_reduce;    /* its fused expression holds a REDUCE */
    bool widened;       /* a stored value of fewer bytes, cast where it is read */
    bool needed;        /* some kernel of the block reads it */
    bool root;        /* a result of the block, or what a control step reads: never inlined only */
    bool brought;     /* a COPY, and a root for that alone: it may lie in a concat */
    unsigned pending; /* axes that a REDUCE below has made 1 and nothing has expanded yet */
    /* axes over which such a result has been expanded again: it is the same for a whole row */
    unsigned rows;
    unsigned staged; /* its row lies in a place of its kernel: these axes of it, 0: none do */
    bool in_rows;    /* attention.c: it stays in the kernel of a sum over its rows, */
    bool by_blocks; /* rows of it come block after block: no factor of all of one is in its terms */
    bool sums_rows; /* and this is that sum, or the one that the row is made of */
    /* rows_again.c: a sum of products that makes rows again; the operand that it has of them; what
     * they have one of is stored; and by whose kernel, beside its own result */
    bool sums_again, again, kept;
    const Node *row_of, *beside;
    bool of_row;  /* beside_rows.c: the kernel of elements of its row shall store it for others */
    bool spared;  /* --fuse all: it would be stored otherwise */
    bool instead; /* what it is made of was stored in its place */
    bool once;    /* and some kernel computes it already */
    int cost;     /* operations per element of its fused expression */
    int along;    /* the same without what is computed once for a row */
    int loads;    /* buffers its fused expression reads */
    Extent most;  /* what its region has at most */
    int depth;
    int device; /* that computes it: of a COPY arg.i, else that of what it is made of; of constants
                   0 */
    int nuse, iuse; /* consumers inside the block: Sched.uses[iuse..iuse+nuse) */
    int order;      /* position in the block's topological order */
    int reader;     /* that of the last consumer that was counted */
    int member;     /* provenance.c: its place in the kernel that is looked at */
    double leaves;  /* bytes of the constant tensors below it */
} Info;

enum { INFO_CHUNK = 1024 };

typedef struct {
    uint32_t node, before; /* id; the reader before it, 0: none */
} Reader;

typedef struct {
    Context *c;
    Arena *arena;   /* the plan's */
    Arena *scratch; /* what is asked of nodes: gone when they are scheduled */
    Plan *plan;
    Info **info; /* by node id, in chunks; use info_of() */
    uint32_t ninfo;
    int opt_level;
    bool check; /* indices from data get steps that check them */
    /* reduces over rows may be repeated by their readers: not where each element is a work item */
    bool fuse_rows;
    const Target *target;
    double operations; /* fuse.c: of the block so far, each value computed once */
    double repeated;   /* recompute_limit.c: and what its kernels compute beyond these */
    double constants;  /* fuse.c: bytes of the tensors that the model has as data */
    int naxis;         /* RANGE numbers used so far */
    /* provenance.c: by node id the last reader, of the nodes that there were when the schedule
     * began */
    Reader *readers;
    uint32_t *last_reader, nreader, ngraph;
} Sched;

void info_grow(Sched *, uint32_t chunk); /* so that there is this one */

/* Chunks, so that pointers stay valid while the graph grows. */
static inline Info *info_of(Sched *s, const Node *n)
{
    const uint32_t chunk = n->id / INFO_CHUNK;
    if (chunk >= s->ninfo)
        info_grow(s, chunk);
    return &s->info[chunk][n->id % INFO_CHUNK];
}

/* fuse.c: of the `n` nodes of a block in topological order, mark those to store. */
void fuse(Sched *, int n, Node **order);
/* beside_rows.c: what reads a value that the kernel of a later one stores comes behind that. */
void order_beside_rows(Sched *, int n, Node **order);

/* attention.c: are rows of this sum, and all that is made of them up to another sum, to stay in the
 * kernel of the latter? */
bool stage_rows(Sched *, Node *, int norder, Node *const *order, Node *const *uses);

bool is_computed(Sched *, Node *); /* by its readers: it lies in no memory */
bool is_leaf(Sched *, Node *);     /* in memory before any kernel of the block runs */

/* recompute_limit.c: operations of a node by itself; what the kernel that stores root has to leave
 * to another one, or NULL. */
double node_operations(Sched *, Node *);
Node *repeats_too_much(Sched *, Node *root, Node *const *uses);
Node *before_moves(Sched *, Node *);

/* region.c: what a kernel would be that computes values from what lies in memory: its work, without
 * the bytes that it writes. */
typedef struct {
    double ops[UNITS]; /* weighed as ops.def says, at the upper bounds of run-time sizes */
    double bytes;      /* that it reads, each once */
    int nodes, buffers, loops;
    /* of ops: what goes where each copy of a loop has a value of its own (cases), if none sums */
    double cases;
    int units;     /* sums of products of a kind that a matrix unit of the core takes */
    double shared; /* bytes of constants of which it reads a part, and others read all */
    bool huge;     /* more than was followed */
} RegionWork;
RegionWork region_of(Sched *, Node *root);
RegionWork region_to_fit(Sched *,
                         Node *root); /* huge where it cannot fit: for region_fits() alone */
/* The same of several values, none of which is made of another: what all of them read is read
 * once. */
RegionWork region_of_all(Sched *, int n, const Stored *);
/* What one kernel may hold: it is to stay readable, and its loops are bits of a set. */
enum { MAX_NODES = 384, MAX_BUFFERS = 24, MAX_LOOPS = 64 };
bool region_fits(const RegionWork *);
/* fits.c: the most that n's region has, by what its sources have; whether it is sure to fit. */
Extent extent_most(Sched *, Node *);
bool extent_fits(Sched *, Node *);
/* Cycles: of the operations alone, of the kernel. */
double cost_ops(const RegionWork *, const Target *);
double cost_region(const RegionWork *, const Target *);
int index_cost(Sched *, Node *index); /* operations to keep a gather's index inside */

/* index_cost.c: NULL if n is not made of coordinates alone; their sum. */
const CoordOps *coord_ops(Sched *, Node *);
int coord_cost(Sched *, Node *);

/* concat_in_place.c: what of it lies in whose buffer. */
void find_homes(Sched *, int n, Node **order);

/* update_in_place.c: whether next is an UPDATE of leaf, or several, and nothing else that the roots
 * need reads leaf or what lies between; then those in between are to lie where leaf lies. */
bool dies_in_updates(Sched *, Node *leaf, Node *next, int nroot, Node *const *roots);
/* Whether next is leaf with something behind it, along one axis. */
bool is_appended_to(const Node *leaf, const Node *next);
void place_updates(Sched *, Node *next, Buffer *);

/* rangeify.c */
typedef struct {
    Node *index, *size;
    Node *gate; /* loop-level expressions of the nest; the index before it is clamped */
    Node *t;    /* GATHER or UPDATE */
    int axis;
} IndexUse;

/* A value in a place: the same for all readers with these coordinates of its other axes. */
typedef struct StagedValue {
    struct StagedValue *next;
    Node *t, *stage[1 + INGOT_MAX_RANK]; /* the value, then its ranges */
    int n;
    Node *at[INGOT_MAX_RANK];
} StagedValue;

/* A sum of products, and the coordinates of its terms: those that it runs along are its ranges. */
typedef struct SumWalk {
    struct SumWalk *next;
    Node *sum, *at[INGOT_MAX_RANK];
} SumWalk;

typedef struct {
    StagedValue *staged;
    SumWalk *walk;     /* of a vector and digits */
    Node *store;       /* in the model's context */
    Buffer *bufs[512]; /* by BUFFER number */
    int nbuf;
    bool serial;
    Map memo;
    Node *ranges[2 * INGOT_MAX_RANK];
    int nrange;
    Sched *s;
    IndexUse *use; /* indices from data, to be checked */
    int nuse;
    Node *root; /* the node being computed: its own buffer is not read */
    /* rows that are made again: what the sum of products runs along, its terms' own range; and what
     * is stored beside the root, with its coordinates */
    Node *along, *terms;
    Node *beside[INGOT_MAX_RANK], *beside_at[INGOT_MAX_RANK][INGOT_MAX_RANK];
    int nbeside;
    int device; /* whose kernel it is */
} StoreNest;
/* The value of t at coords where gate holds, as a loop-level expression. */
Node *lower_value(StoreNest *, Node *t, Node *const *coords, Node *gate);
Node *nest_buffer(StoreNest *, Buffer *); /* a weight: the nest's device has its own */
/* A load from buffer b of a value that begins there at `at`; NULL: at its first element. */
/* schedule_control.c: is a source of a LOOP what a carried value begins with, of which the body
 * writes all, part by part, before anybody reads it? */
bool is_overwritten(Context *, const Node *loop, uint32_t src);
Node *load_value(StoreNest *, Buffer *b, Node *const *at, Node *const *coords, Node *gate);
/* Notes an index of t's source for a check, if it is data that may be out of range. */
void note_index(StoreNest *, Node *t, int axis, Node *index, Node *gate);
/* A weight, stored once per node. */
Buffer *weight_buffer(Sched *, Node *);
Buffer *buffer_new(Sched *, BufferKind, ingot_dtype, int rank, Node *const *dims, Node *node);

/* split.c: ranges that its expression divides by a constant become two each. */
void nest_split(StoreNest *);
/* split_operands.c: both operands of a sum of products are arguments of their own, of one buffer
 * too. */
void nest_part_operands(StoreNest *);
/* turned_sums.c: sums that the elements along a short axis have in common do not move with it. */
void nest_share_sums(StoreNest *);
/* The sum over the ranges of another one, where they are as long; or NULL. */
Node *sum_over_ranges(Context *, Node *sum, const Node *of);
/* beside_sums.c: both of them along one axis of terms. */
void nest_join_terms(StoreNest *);

void step_origins(Sched *, Step *, const Node *);
/* The nodes that a kernel computes of a value that it stores, and what they are for. */
void step_computes(Sched *, Step *, Node *root);
/* What is computed by `from`, by `into` too. */
void step_join(Arena *, Step *into, const Step *from);

/* k07_conv_1x64x56x56 */
void kernel_name(const Context *, Kernel *, int number, const Step *);

/* merge.c: kernels that read the same operand in the same loops become one. */
void merge_kernels(Sched *);

/* kernel_finish.c: the finished nest, copied into a context of its own. */
Kernel *kernel_finish(StoreNest *, Buffer ***bufs, int *nbuf);

#endif
