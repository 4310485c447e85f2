/* ir.h - nodes, the context that they are interned in, and what makes, asks, walks and evaluates
 * them.
 *
 * One type for both levels (docs/architecture.md): tensors without memory, and the loops, loads and
 * stores of a kernel.  Equal nodes are the same pointer; sources have smaller ids than what they
 * are sources of. */
#ifndef IR_H
#define IR_H

#include "base.h"

typedef enum {
#define OP(id, ...) OP_##id,
#include "ops.def"
    OP_COUNT
} Op;
typedef enum { LEAF, UNARY, BINARY, TERNARY, NARY, MOVE, REDUCE, MEMORY, CONTROL } OpClass;
typedef enum { ARG_NONE, ARG_INT, ARG_BITS, ARG_PTR } ArgKind;
typedef struct {
    const char *text;
    int nsrc; /* -1: varies */
    OpClass cls;
    ArgKind arg;
    int cost;
    int lanes; /* bits of the widest float */
} OpInfo;
/* An op of so high a cost, beside 1 of an addition, is a function: vectors take a fraction of its
 * time, and it is not computed again lightly. */
enum { COST_FUNCTION = 16 };
/* How deep a pass looks below a node: as deep as a graph ever is between what ends a search; where
 * each level is looked at again for what reads it. */
enum { DEPTH_ANY = 64, DEPTH_SOME = 24, DEPTH_FEW = 16 };
extern const OpInfo op_info[OP_COUNT];
Op op_named(const char *text); /* which has to be one */
static inline bool op_is_alu(int op)
{
    return op_info[op].cls >= UNARY && op_info[op].cls <= NARY;
}
/* Is each element of the source in the result, and nothing else, in the source's direction along
 * each axis? */
static inline bool op_arranges(int op)
{
    return op == OP_RESHAPE || op == OP_PERMUTE || op == OP_EXPAND;
}

enum { MAX_ALU_SRC = 16 };

typedef struct {
    const char *name;
    int bytes;
    char kind;
    const char *c_type;
    ingot_dtype compute;
} DtypeInfo;
extern const DtypeInfo dtype_info[INGOT_DTYPE_COUNT];
static inline bool dtype_is_float(int d)
{
    return dtype_info[d].kind == 'f';
}
static inline bool dtype_is_int(int d)
{
    return dtype_info[d].kind == 'i' || dtype_info[d].kind == 'u';
}
static inline int dtype_bits(int d)
{
    return d == INGOT_I4 || d == INGOT_U4   ? 4
           : d == INGOT_I2 || d == INGOT_U2 ? 2
                                            : 8 * dtype_info[d].bytes;
}
/* Of an integer type, or bool. */
static inline uint64_t dtype_most(int d)
{
    return d == INGOT_BOOL ? 1 : UINT64_MAX >> (64 - dtype_bits(d) + (dtype_info[d].kind != 'u'));
}
static inline int64_t dtype_least(int d)
{
    return d == INGOT_BOOL || dtype_info[d].kind == 'u' ? 0 : -(int64_t)dtype_most(d) - 1;
}

typedef const struct Node Node; /* immutable once made: equal nodes are the same pointer */
typedef union {
    int64_t i;
    uint64_t bits;
    const void *ptr;
} Arg;
struct Node {
    uint16_t op;
    uint8_t dtype;
    uint8_t rank;
    uint32_t nsrc;
    uint32_t id; /* dense, in order of creation; sources have smaller ids; indexes side tables */
    uint32_t context; /* for asserts: number of the context that made it */
    /* made of numbers and coordinates alone: what needed it first says nothing of who else does */
    bool numbers;
    uint16_t depth;     /* of what it is made of, up to UINT16_MAX; a leaf's is 0 */
    int32_t last_range; /* greatest number of a RANGE that it is made of; INT32_MIN: of none */
    Arg arg;
    int64_t lo, hi;     /* sound inclusive bounds of INDEX and BOOL scalars; else INT64_MIN..MAX */
    Node *const *shape; /* rank dims */
    Node *src[];
};

typedef struct {
    const uint8_t *bytes;
    size_t nbytes;
    const char *name;
    uint64_t hash; /* of contents, filled by data_hash() when first asked */
} Data;
typedef struct {
    int n;
    int8_t axis[INGOT_MAX_RANK];
} Perm;

/* Whose keys of Context.memo they are, beside those that are hashes. */
typedef enum {
    MEMO_NO_WINDOW = 0xA7,
    MEMO_PART,
    MEMO_PARTS_LOOP,
    MEMO_MAX_FIRST,
    MEMO_CONTENTS = 0xC0,
    MEMO_CHECKED
} MemoKind;
static inline uint64_t context_key(MemoKind kind, uint64_t of)
{
    return (uint64_t)kind << 56 | of;
}

/* A run-time integer: one entry of the emitted sym[] table. */
typedef enum {
    VAR_DIM,
    VAR_COUNT,
    VAR_LOOP,
    VAR_PART /* of a loop that the compiler made: loop_parts.c */
} VarKind;
typedef struct {
    const char *name;
    const char *what; /* VAR_COUNT: that it is, for messages; or NULL */
    VarKind kind;
    int64_t lo, hi;
    Node *node;
    bool used;    /* set by the scheduler */
    bool folded;  /* VAR_COUNT: known by now, and in no expression */
    Node *setter; /* VAR_COUNT: the CALL or LOOP tuple that sets it; else NULL */
    bool length;  /* VAR_DIM: of states that grow; lives in the context from run to run */
    Node *next;   /* of a length: what it is after a run, once that is known */
} Var;

typedef struct {
    const char *name;
    int n_in, n_out, n_int, n_float, n_count;
    const ingot_call_out *out;
    const int64_t *ints;
    const double *floats;
    Node *const *counts; /* VAR nodes */
    size_t scratch_bytes;
    int n_kept;                           /* of the last outputs */
    const struct ingot_custom_op *custom; /* NULL: a library kernel */
    ingot_call_gradient *gradient;        /* NULL: it has none */
    const void *gradient_user;
} Call;

struct igrt_tensor;
struct Context;

/* A parameter of a custom operator's function, and what is passed. */
typedef enum {
    CUSTOM_INPUT,
    CUSTOM_OUTPUT,
    CUSTOM_STATE, /* the last inputs and outputs of the call */
    CUSTOM_SCRATCH,
    CUSTOM_SCRATCH_BYTES,
    CUSTOM_COUNT, /* n_x */
    CUSTOM_DIM,   /* x_dim0 */
    CUSTOM_INT,   /* attributes */
    CUSTOM_FLOAT
} CustomKind;
typedef struct {
    CustomKind kind;
    const char *name, *type; /* as C has them */
    int line, bytes;         /* of an integer */
    ingot_dtype dtype;       /* of a tensor's elements */
    int slot;                /* its number among the inputs, outputs, states, ints or floats */
    int of, axis;            /* COUNT, DIM: of which parameter */
} CustomParam;

/* A line of the comment above the function: "out[y] = in[x]". */
typedef struct {
    enum { CUSTOM_OUT_RULE, CUSTOM_STATE_RULE, CUSTOM_SCRATCH_RULE, CUSTOM_DEFAULT_RULE } kind;
    const char *name, *text; /* y; in[x] */
    int line;
} CustomRule;

struct ingot_custom_op {
    const char *file;     /* as the user gave it */
    const char *function; /* NULL: not yet known */
    bool unnamed;         /* the function is the file's only one */
    const char *name;     /* op_swish: one of its own in the context */
    const char *text;     /* of the file */
    size_t bytes;
    const char **external; /* names that other files could see */
    int nexternal;
    const char **internal, **macro; /* other names of the file's, and what it defines */
    int ninternal, nmacro;
    CustomParam *param;
    int nparam, line;
    CustomRule *rule;
    int nrule;
    int nin, nout, nstate, nint, nfloat;
    bool returns_int; /* 0, or the run fails */
    bool elementwise; /* the function takes and returns one element: output 0 */
    enum { CUSTOM_UNREAD, CUSTOM_READ, CUSTOM_BROKEN } stage;
    bool (*read)(struct Context *, struct ingot_custom_op *); /* false after an error */
    /* Calls it as a bundle would: an igrt_status, or -1 and why it could not be called. */
    int (*run)(const struct ingot_custom_op *, const struct igrt_tensor *in, int nin,
               struct igrt_tensor *out, int nout, const int64_t *ints, const double *floats,
               void *scratch, size_t scratch_bytes, const char **why);
    void *loaded;                      /* what run keeps */
    struct ingot_custom_op **gradient; /* by input: what computes its gradient, or NULL */
    int ngradient;
};
typedef struct ingot_custom_op CustomOp;

/* A function of one element with its attributes; one of a kind in a context. */
typedef struct {
    const CustomOp *op;
    const int64_t *ints;
    const double *floats;
} CustomUse;

/* Where nodes came from. */
typedef struct {
    const char *node, *op;
    int number; /* in order of the model's nodes */
} Origin;
typedef struct OriginList OriginList;
struct OriginList {
    const Origin *origin;
    const OriginList *rest;
};

/* --precision WHAT:GLOB. */
typedef struct {
    const char *nodes;
    ingot_precision precision;
    bool used;
} PrecisionRule;

/* What has to hold when the model runs: least <= value <= greatest; otherwise the run ends. */
typedef struct {
    Node *value, *least, *greatest; /* INDEX */
    const char *what;               /* that value is, for whoever reads the message */
    const Origin *origin;           /* NULL: none */
} Require;
typedef struct {
    int n;
    Require **item;
} Requires;

struct Region {
    uint32_t mark; /* nodes with smaller ids are outside */
    int nparam, nresult, ncapture;
    Node **param, **result;
    Node **capture; /* outer nodes that are not constants or dims, used inside; found at the end */
    Requires require; /* whenever the body runs */
    struct Region *outer;
};
typedef struct {
    Node *trip; /* dim or NULL */
    struct Region *body;
    int ncarried, nscan;
    Node *iterations; /* dim: trip itself, or a VAR that the loop sets */
    Node *counter;    /* VAR (VAR_LOOP) holding i inside the body */
    bool has_cond;    /* the body's cond result is not constant true */
} Loop;
typedef struct {
    struct Region *then_branch, *else_branch;
    int n;
} If;

/* What the columns of an output stand for: n names, or n numbers (the other is NULL). */
typedef struct {
    int n;
    const char **name;
    int64_t *number;
} Classes;

/* How the caller has an input or output that is not as the model's file has it (io_forms.c). */
typedef struct {
    bool quantised; /* an element q stands for (q - zero) * scale */
    bool last;      /* its channels come last */
    float scale;
    int zero;
    ingot_dtype dtype; /* of the file */
    int64_t dims[INGOT_MAX_RANK];
    int rank;
} IoForm;

typedef struct {
    const char *name;
    Node *node;
    const Classes *classes; /* of an output, or NULL */
    const IoForm *form;     /* NULL: as in the file */
    Node *here; /* an element of a group that may be absent: 1 or 0, its first dim; else NULL */
} NamedNode;    /* an input or output */

/* A sequence or an optional of the emitted interface: inputs (outputs) first..first+n-1. */
typedef struct {
    const char *name;
    int first, n;
    Node *length;  /* of a sequence; NULL: it is none */
    Node *present; /* of an optional; NULL: it is none */
} IoGroup;
typedef struct {
    const char *name;
    Node *node, *next;
    bool grows;  /* some dim of node is a length */
    Node *begin; /* what it holds after reset, DATA; NULL: zeros */
    /* rewrite/shard_states.c: where it lies. Of one that several devices have in parts: these, by
     * device, and along which axis; it has no room itself. Of such a part: its room, by axis. Of
     * one that each device has: theirs, the first is its own, and axis -1. */
    int device, axis;
    Node **part;
    int64_t *room;
} StateTensor;

/* function.c: what a function of the model has of its own while another one is selected.  Functions
 * share states, constants and run-time integers. */
typedef struct {
    const char *name;
    NamedNode *inputs, *outputs;
    Node **bound;
    int ninput, noutput;
    IoGroup *input_groups, *output_groups;
    int ninput_group, noutput_group;
    Node **next; /* by state */
    int nstate;
    Node **length, **setter; /* by variable: Var.next, Var.setter */
    int nvar;
    Requires require;
} ModelFunction;

enum { FEW_IDX = 64 };
struct Context {
    Arena *arena;
    uint32_t number;
    ingot_sink sink;
    void *sink_user;
    int nerror;
    ingot_status status;
    /* interning */
    Node **table;
    size_t ntable, captable;
    Node *few[FEW_IDX]; /* idx(c, 0), idx(c, 1), ..: what is asked for most */
    Node *truth[2];     /* node_bool() of false, of true */
    Node *walked;       /* a kernel's: its sink, when kernel_nodes() looked last, */
    Node **walk;        /* and what is below it, sources first */
    int nwalk;
    Node *viewed; /* the same for kernel_view() */
    void *view;
    Node **nodes;               /* by id */
    const OriginList **origins; /* by id: who asked for the node, in order; may be NULL */
    uint32_t nnode;
    /* the model */
    const char *file;
    const OriginList *at;  /* what is being built, or rewritten */
    struct Making *making; /* a rewrite that is being tried: what it asks for may come to nothing */
    int norigin;
    ingot_source_node **source; /* the file's nodes, in order */
    int nsource;
    NamedNode *inputs, *outputs;
    Node *
        *bound; /* NULL, or by input: the constant (DATA) that it must equal at run time, or NULL */
    int ninput, noutput;
    IoGroup *input_groups, *output_groups; /* by first */
    int ninput_group, noutput_group;
    StateTensor *states;
    int nstate;
    /* The first is "run"; inputs, outputs, next values and requirements are the selected one's. */
    ModelFunction *functions;
    int nfunction, function; /* 0, or more than one */
    const void *vocabulary;  /* the bytes of <model>.vocab, or NULL */
    size_t vocabulary_bytes;
    Node *random; /* the state that random numbers come from (random.c), or NULL */
    int nrandom;  /* draws without a seed of their own */
    CustomOp **customs;
    int ncustom;
    const CustomUse **custom_uses;
    int ncustom_use;
    Var *vars;
    int nvar, nparam;
    struct Region *region;          /* innermost open one */
    void (*progress)(double share); /* of the interpreter, or NULL */
    Requires require;               /* what has to hold in every run */
    Node *poison;
    struct Context *along; /* freed with this one: that of what a kernel was lowered to; or NULL */
    bool keep_subnormals;
    ingot_precision precision;
    ingot_precision beside_f8; /* INGOT_PRECISION_F32: as f16 */
    const char *module;        /* of the node at hand, or NULL */
    PrecisionRule *precisions; /* of nodes with such names; the last one counts */
    int nprecision;
    const char **narrowed; /* nodes whose products --precision narrows */
    int nnarrowed;
    double bf16_products; /* in the time of one of f32; 0: not known */
    bool stays_f32;       /* a product, since that is faster: it has been said */
    bool one_product;     /* of what --precision splits */
    bool rounded_results; /* of products of rounded numbers */
    bool shared_keys;     /* of few queries, by groups that meet */
    bool sums_in_blocks;  /* it has derivatives: kernel/lower/sum_blocks.c */
    int64_t stored_rows;  /* of images with few channels: from so many multiplications on, or 0 */
    Map memo;             /* contents cache and such */
    Map rederived;        /* gradients whose own gradient is that of another form, by id */
    Map weight_layouts;   /* of constants that an earlier function reads: by id + 1 */
    /* Variants of nodes, by id + 1, that earlier plans of this graph have, for other targets of the
     * same bundle: a plan does likewise where that takes hardly longer, so that weights of several
     * are the same. */
    Map variants_before;
    Map low_rank;                  /* ingot_low_rank(): LowRank, by id + 1 */
    Map read_as;                   /* ingot_read_as(): by id + 1 */
    Map summed_as;                 /* ingot_summed_as(): likewise */
    const struct Target **targets; /* kernel/target.c: those from outside the tree */
    int ntarget;
    Map shard_parts; /* rewrite/shard_constants.c: parts of constants that devices have */
    bool
        states_split; /* rewrite/shard_states.c: a function has decided which states are in parts */
};
typedef struct Context Context;

size_t elem_bytes(ingot_dtype); /* of an element in memory; a string is a pointer */

/* ---- context.c ----------------------------------------------------------------------- */
void context_report(Context *, ingot_level, ingot_status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void context_vreport(Context *, ingot_level, ingot_status, const char *format, va_list)
    __attribute__((format(printf, 4, 0)));
/* What a context has, and back to it: nodes that were made since are forgotten, and what has to do
 * with them, plans too, has to be gone. From then on it grows in that arena (NULL: its own), which
 * may be freed behind the next rewind. */
typedef struct ContextMark ContextMark;
ContextMark *context_mark(Context *, Arena *);
void context_rewind(Context *, const ContextMark *, Arena *);
void context_mark_free(ContextMark *); /* what is not in the arena; NULL: nothing */
Context *
context_child(Context *parent); /* a fresh graph for one kernel: same sink and vars, own arena */

/* ---- node.c: interning and the constructors that every level uses ---------------------- */
/* Of whom asked for a node, the first; NULL: none. */
const Origin *node_origin(const Context *, const Node *);
/* Of all nodes, or of some. */
bool precision_wanted(const Context *, ingot_precision);
/* Others ask for a node that there is already; so does a rewrite that is being tried. A few hundred
 * of them are kept. */
void origins_add(Context *, const Node *, const OriginList *more);
void making_found(struct Making *, Node *);
/* < 0: a stands before b in sums, products and conditions.  By what they are (the last loop that
 * they need, how deep they are, then what is computed, from the sources up) and not by which was
 * made first: a context that has seen other plans, or another part of this one, gives the same
 * order. */
int node_order(const Node *a, const Node *b);
Node *node_make(Context *, Op, ingot_dtype, Arg, int nsrc, Node *const *src, int rank,
                Node *const *shape);
Node *node_const_i(Context *, ingot_dtype, int64_t); /* wrapped to the dtype */
Node *node_const_f(Context *, ingot_dtype, double);  /* rounded to the dtype */
Node *node_const_zero(Context *, ingot_dtype);
Node *node_bool(Context *, bool);
double node_float(Node *); /* the value of a float CONST */
bool node_is_const_i(Node *, int64_t);
enum { FACTOR_HALF = 1, FACTOR_LOW = 2, FACTOR_SHIFT = 1 };  /* Args of MULHI, SHRR; ops.def */
enum { CAST_WRAP = 1, CAST_WITHIN = 256, CAST_LEAST = 512 }; /* Arg of a CAST; ops.def */
/* Arg of a QUANTIZE, and what it holds. */
static inline int64_t quantize_bounds(int lo, int hi)
{
    return (int64_t)lo * 65536 * 4 + hi;
}
static inline int quantize_most(int64_t arg)
{
    return (int)((arg & 0x3ffff) ^ 0x20000) - 0x20000;
}
static inline int quantize_least(int64_t arg)
{
    return (int)((arg - quantize_most(arg)) / (65536 * 4));
}
/* Arg of a DIGIT, and what it holds: a mask of the lowest bits, 16 at most, and a number of 20 bits
 * and a sign. */
static inline int64_t digit_arg(int mask, int less)
{
    return (int64_t)less * 65536 + mask;
}
static inline int digit_mask(int64_t arg)
{
    return (int)(arg & 0xffff);
}
static inline int digit_less(int64_t arg)
{
    return (int)((arg - digit_mask(arg)) / 65536);
}
Node *node_alu(Context *, Op, ingot_dtype, int nsrc,
               Node *const *src); /* elementwise; INDEX/BOOL scalars are simplified */
Node *node_alu1(Context *, Op, ingot_dtype, Node *);
Node *node_alu2(Context *, Op, ingot_dtype, Node *, Node *);
Node *node_where(Context *, Node *, Node *, Node *);
Node *node_cast(Context *, Node *, ingot_dtype); /* from or to INDEX too */
Node *monoid_identity(Context *, ingot_reduce_op, ingot_dtype);
Op monoid_op(ingot_reduce_op);

/* ---- monoid.c: reductions, whatever the size of their state -------------------------------------
 * A REDUCE of a state has the state of one element as its first sources and gives one of its
 * values; what gives the others are its siblings, which share its loops.  A plain reduction is that
 * of a state of one value. */
enum { MAX_STATE = 4 };
typedef enum {
    MONOID_PLAIN_ = INGOT_REDUCE_COUNT - 1,
#define MONOID(...)
#define STATE(id, name, size) MONOID_##id,
#include "monoids.def"
    MONOID_COUNT
} Monoid; /* beyond ingot_reduce_op */
static inline int reduce_monoid(const Node *reduce)
{
    return (int)(reduce->arg.i & 0xFF);
}
static inline unsigned reduce_axes(const Node *reduce)
{
    return (unsigned)((uint64_t)reduce->arg.i >> 8) & 0xFFFF;
}
/* sum of x * y, as MUL has them, over whatever axes */
static inline bool is_sum_of_products(const Node *n)
{
    return n->op == OP_REDUCE && reduce_monoid(n) == INGOT_REDUCE_ADD && n->src[0]->op == OP_MUL;
}
/* Which value of the state it gives. */
static inline int reduce_part(const Node *reduce)
{
    return (int)((uint64_t)reduce->arg.i >> 24);
}
Arg reduce_arg(int monoid, unsigned axes, int part);
int monoid_size(int monoid);
/* How many of them have accumulators. */
int monoid_values(int monoid);
/* How many sources are the state of an element: its ranges come after them.  Of a SCAN too. */
static inline uint32_t reduce_size(const Node *reduce)
{
    return (uint32_t)monoid_size(reduce_monoid(reduce));
}
static inline int reduce_values(const Node *reduce)
{
    return monoid_values(reduce_monoid(reduce));
}
/* Which source is the first range of a kernel's REDUCE; behind the last for anything else. */
static inline uint32_t reduce_ranges(const Node *n)
{
    return n->op == OP_REDUCE ? reduce_size(n) : n->nsrc;
}
/* The ranges that are its own, of a REDUCE or STAGE of a kernel: what reads it does not depend on
 * them. */
static inline Node *const *own_ranges(const Node *n, int *count)
{
    uint32_t first = n->op == OP_STAGE ? 1 : reduce_ranges(n);
    *count = n->op == OP_STAGE ? (int)n->arg.i : (int)(n->nsrc - first);
    return n->src + first;
}
static inline bool owns_range(const Node *n, const Node *range)
{
    int count;
    Node *const *own = own_ranges(n, &count);
    for (int i = 0; i < count; i++)
        if (own[i] == range)
            return true;
    return false;
}
Node *reduce_sibling(Context *, Node *reduce, int part);

/* ---- collective.c: what a group makes of one value of each member ---------------------------- */
enum { MOST_DEVICES = 16 };
typedef enum {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_MEAN, /* of processes */
    COLLECTIVE_KINDS
} CollectiveKind;
extern const char *const collective_text[COLLECTIVE_KINDS];
typedef struct {
    CollectiveKind kind;
    int monoid;     /* of one value; of ALL_GATHER 0 */
    int axis;       /* of ALL_REDUCE 0 */
    int receiver;   /* the member that gets it: of devices, which number has it */
    bool processes; /* the group is not the devices: each process has the value by itself */
} Collective;
Arg collective_arg(const Collective *);
Collective collective_of(const Node *);
/* x, which is to be stored: KEEP. */
Node *node_kept(Context *, Node *x);
/* x on another device. */
Node *device_copy(Context *, Node *x, int device);
/* n sources, in the order of the members. */
Node *collective_make(Context *, const Collective *, int n, Node *const *src);
/* The value that its accumulator starts with. */
Node *reduce_identity(Context *, const Node *reduce);
/* What two states are together, in any order. */
void monoid_join(Context *, int monoid, Node *const *a, Node *const *b, Node **out);
/* A state over the elements of a range, made of plain reductions: of lanes, of which each has a
 * state. */
void monoid_block(Context *, int monoid, Node *const *x, Node *range, Node **out);
/* The state after an element of a kernel's REDUCE (of more than one value); before it they are
 * PARAMs with the reduce's sources. */
void reduce_step(Context *, Node *reduce, Node **out);
Node *node_custom(Context *, const CustomUse *, ingot_dtype, int nsrc, Node *const *src);
/* Copy n with other sources, through the simplifying constructors. */
Node *node_with(Context *, Node *n, Node *const *src);
/** OP_MULHI or OP_SHRR with its arg. */
Node *node_fraction(Context *, Op, int64_t known, Node *const *src);
/* With x as its source i; of accesses, and what else has no more sources. */
Node *node_with_source(Context *, Node *n, int i, Node *x);
/* n over what its sources became, `now` by id; n itself where that is what they were. */
Node *node_rebuilt(Context *, Node *n, Node *const *now);
int end_stores(
    const Node *end);      /* an END's sources: how many stores it has; the others are ranges */
Node *below_casts(Node *); /* what a chain of CASTs, or of none, converts */
int first_coord(const Node *access); /* which source of a LOAD or STORE its coordinates start at */

/* ---- custom.c: custom operators ----------------------------------------------------------- */
const CustomParam *custom_param(const CustomOp *, CustomKind, int slot); /* NULL: there is none */
const CustomUse *custom_use(Context *, const CustomOp *, const int64_t *ints, const double *floats);
/* The same as a step of its own: a call of the function on whole tensors. */
Node *custom_call(Context *, Node *custom);

/* ---- gather.c: whether the indices of a GATHER or UPDATE are data, to be checked ------------- */
typedef enum { INDEX_TRUSTED, INDEX_PLAIN, INDEX_WRAPS } IndexCheck;
IndexCheck index_check_of(Context *, Node *);

/* ---- symbolic.c, divmod.c: integer expressions (dtype INDEX, and BOOL over them) -------
 * Every function returns a simplified node; bounds in Node.lo/hi are sound. */
void symbolic_bounds(Context *, Node *, int64_t *lo, int64_t *hi); /* called by node_make */
Node *idx_number(Context *, int64_t);
static inline Node *idx(Context *c, int64_t v)
{
    const bool few = v >= 0 && v < FEW_IDX;
    return few && c->few[v] ? c->few[v] : idx_number(c, v);
}
Node *idx_add(Context *, Node *, Node *);
Node *idx_sub(Context *, Node *, Node *);
Node *idx_mul(Context *, Node *, Node *);
Node *idx_div(Context *, Node *, Node *); /* floor */
Node *idx_mod(Context *, Node *, Node *); /* floor */
Node *idx_min(Context *, Node *, Node *);
Node *idx_max(Context *, Node *, Node *);
Node *idx_lt(Context *, Node *, Node *);
Node *idx_le(Context *, Node *, Node *);
Node *idx_eq(Context *, Node *, Node *);
Node *bool_and(Context *, Node *, Node *);
Node *bool_or(Context *, Node *, Node *);
Node *bool_not(Context *, Node *);
/* It is a constant, or has one possible value. */
static inline bool idx_fixed(const Node *n, int64_t *value)
{
    if (n->op != OP_CONST && (n->lo != n->hi || n->lo == INT64_MIN || n->lo == INT64_MAX))
        return false;
    *value = n->op == OP_CONST ? n->arg.i : n->lo;
    return true;
}
static inline bool idx_is(const Node *n, int64_t value) /* is the constant */
{
    int64_t v = 0;
    return n->dtype == INGOT_INDEX && idx_fixed(n, &v) && v == value;
}
bool idx_value(const Node *, int64_t *); /* is a constant; the value may be asked for by NULL */
bool idx_provably_equal(Context *, Node *, Node *);
/* The number of the element at these coordinates, row-major: ((at[0] dims[1] + at[1]) dims[2] +
 * at[2]) .. */
Node *idx_flat(Context *, int n, Node *const *dims, Node *const *at);
/* Numbers that no loop of a kernel has: of ranges that stand for one while something is found out,
 * or replaced, and of those that lowering adds. */
enum {
    RANGE_ADDED = 1 << 20,
    RANGE_TURN = 1 << 21,
    RANGE_INDEX = 1 << 24, /* schedule/index_cost.c */
    RANGE_ASKED = 1 << 25  /* where does an element lie? */
};
Node *range_new(Context *, int axis, Node *extent);
/* The integer behind a value of integer dtype: strips casts, pushes through + - * where; NULL if
 * some intermediate might not fit.  So that gathers with computed indices become plain
 * coordinates. */
Node *idx_from_value(Context *, Node *value);
/* Does an integer depend on run-time integers alone, on no loop and no memory? */
bool is_loop_free(const Node *);
/* An integer of another context's graph. */
Node *import_index(Context *, Arena *scratch, Node *);
/* e with every `from` node replaced by `to` (n pairs), re-simplified; memo by the caller's Map or
 * NULL. */
Node *substitute(Context *, Node *e, int n, Node *const *from, Node *const *to);
/* e simplified under the assumption that `cond` holds. */
Node *simplify_given(Context *, Node *e, Node *cond);
static inline int64_t sat_add(int64_t a, int64_t b)
{
    int64_t r;
    if (!__builtin_add_overflow(a, b, &r))
        return r;
    return a < 0 ? INT64_MIN : INT64_MAX;
}
static inline int64_t sat_mul(int64_t a, int64_t b)
{
    int64_t r;
    if (!__builtin_mul_overflow(a, b, &r))
        return r;
    return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}
/* How many blocks, the last of which may be no whole one, an extent has. */
static inline int64_t ceil_div(int64_t extent, int64_t block)
{
    return (extent + block - 1) / block;
}

/* ---- movement.c: coordinates of a movement node's source from those of its result ------- */
/* In: coords[n->rank]; out: src_coords[src rank] and *valid (BOOL; ANDed by the caller).  For
 * RESHAPE, PERMUTE, EXPAND, PAD, SHRINK, FLIP, KEEP.  (GATHER needs values, CONCAT chooses a
 * source: their callers handle them.) */
void movement_coords(Context *, Node *n, Node *const *coords, Node **src_coords, Node **valid);
/* Is n its first source at other coordinates: a movement or a GATHER, but for what marks a place in
 * a plan? */
static inline bool is_move(const Node *n)
{
    return op_info[n->op].cls == MOVE && n->op != OP_CONCAT && n->op != OP_KEEP && n->op != OP_COPY;
}
/* What n repeats: n without EXPAND and RESHAPE before it. */
Node *movement_repeated(Node *n);
/* The scalar CONST behind a tensor whose elements are all the same; NULL: it is none. */
Node *uniform(Node *n);

/* ---- text.c, verify.c ------------------------------------------------------------------ */
void text_print(StrBuf *, int nroot,
                Node *const *roots); /* one node a line: %3 = add f32 [2,3] %1 %2 */
/* The same with the names of run-time integers, which only their context knows. */
void text_print_names(StrBuf *, const Context *, int nroot, Node *const *roots);
/* Parse what text_print printed into a context; roots in the arena; NULL + message on error. */
Node **text_parse(Context *, const char *text, int *nroot, char *error, size_t error_bytes);
/* The spec: BUG with a dump if a node breaks it. level 0: tensor graph, 1: kernel. */
void verify(int nroot, Node *const *roots, int level, const char *after);
/* Post-order walk without recursion: every node reachable from roots, sources first. In arena. */
Node **graph_toposort(Arena *, int nroot, Node *const *roots, int *n);
/* Whether a dim is decided by this very call, by a count that it reports: the call itself knows no
 * more than its bound. */
bool call_decides(const Call *, const Node *dim);

/* ---- function.c: several functions of one model -----------------------------------------------
 */

/* Inputs of further functions have numbers of their own, so that no two are one node. */
enum { FUNCTION_INPUTS = 1 << 16 };
/* What the context has of inputs, outputs and next values is that function's from now on; 0 is what
 * there is if there are no others. */
void function_select(Context *, int);
/* A next one, which has nothing yet, selected. */
void function_begin(Context *, const char *name);
const char *function_name(const Context *);                 /* of the selected one */
const char *input_name(const Context *, const Node *input); /* of the selected function, or NULL */
/* The greatest bound that a next value of any function has along an axis of a state. */
int64_t state_room_along(const Context *, int state, int axis);

/* ---- interp.c: the oracle -------------------------------------------------------------- */

/* origins.c: what a rule makes is of the nodes of the model that it replaces. */
enum { MAX_FOUND = 64 };
typedef struct Making {
    Context *c;
    uint32_t before;        /* the first node that is made */
    Node *found[MAX_FOUND]; /* what was asked for and there already */
    int nfound;
} Making;
void making_begin(Making *, Context *);
void making_end(Making *, Node *old, Node *now);

/* All nodes of the model's graph, bodies of loops and branches among them, sources first. */
Node **graph_nodes(Arena *, const Context *, int *n);

int64_t dims_bound(int rank, Node *const *dims); /* product of upper bounds, saturating */
/* The regions of a LOOP (one) or IF (two); gives how many. */
int node_regions(Node *, const struct Region **);

#endif
