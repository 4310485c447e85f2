/* compiler.h - everything the folders compiler/, codegen/ and targets/ share.
 * Data structures first, then the functions, grouped by the file that defines them. */
#ifndef COMPILER_H
#define COMPILER_H

#include <stdarg.h>
#include <stdio.h>

#include "ingot.h"

/* ---- base: arena.c strbuf.c map.c ---------------------------------------------------- */

typedef struct Arena Arena;
Arena *arena_new(void);
void arena_free(Arena *);
void *
arena_alloc(Arena *,
            size_t bytes); /* zeroed, 16-aligned, never NULL: out of memory ends the program */
void *arena_array(Arena *, size_t n, size_t size); /* overflow-checked */
char *arena_strdup(Arena *, const char *);
char *arena_printf(Arena *, const char *, ...) __attribute__((format(printf, 2, 3)));
size_t arena_used(const Arena *);
#define NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define NEWN(a, T, n) ((T *)arena_array((a), (size_t)(n), sizeof(T)))

/* Growing text; data is always terminated. */
typedef struct {
    char *data;
    size_t len, cap;
} StrBuf;
void sb_puts(StrBuf *, const char *);
void sb_write(StrBuf *, const void *, size_t);
void sb_printf(StrBuf *, const char *, ...) __attribute__((format(printf, 2, 3)));
void sb_vprintf(StrBuf *, const char *, va_list);
void sb_free(StrBuf *);

/* Open hash map from a 64-bit key to a pointer (NULL = absent). */
typedef struct {
    uint64_t *key;
    void **value;
    size_t n, cap;
} Map;
void *map_get(const Map *, uint64_t key);
void map_put(Map *, uint64_t key, void *value);
void map_free(Map *);
uint64_t hash_bytes(uint64_t seed, const void *, size_t);

/* Growing array in an arena: vec_push(arena, array, count, item), capacity at powers of two. */
#define vec_push(a, v, n, item)                                 \
    do {                                                        \
        if (((n) & ((n)-1)) == 0)                               \
            (v) = vec_grow((a), (v), (size_t)(n), sizeof *(v)); \
        (v)[(n)++] = (item);                                    \
    } while (0)
void *vec_grow(Arena *, const void *old, size_t n, size_t size); /* room for max(1, 2n) */

/* closer.c: the nearer of two words to what was typed; best is the number of edits to beat, 3 at first. */
const char *closer(const char *typed, const char *word, const char *so_far, int *best);

/* folder.c */
char *temporary_folder(Arena *, const char *what); /* a new one in $TMPDIR; NULL, with errno */
void remove_tree(const char *dir);
bool make_dirs(const char *dir); /* with those above it; false: it is not there */

#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void bug_at(const char *file, int line, const char *, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- nodes --------------------------------------------------------------------------- */

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
} OpInfo;
extern const OpInfo op_info[OP_COUNT];
static inline bool op_is_alu(int op)
{
    return op_info[op].cls >= UNARY && op_info[op].cls <= NARY;
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

/* A run-time integer: one entry of the emitted sym[] table. */
typedef enum { VAR_DIM, VAR_COUNT, VAR_LOOP } VarKind;
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
    void *loaded; /* what run keeps */
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

typedef struct {
    const char *name;
    Node *node;
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
    bool grows; /* some dim of node is a length */
} StateTensor;

struct Context {
    Arena *arena;
    uint32_t number;
    ingot_sink sink;
    void *sink_user;
    int nerror;
    ingot_status status;
    /* interning */
    struct Node *key; /* the node being looked up */
    size_t key_bytes;
    Node **table;
    size_t ntable, captable;
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
    bool keep_subnormals;
    Map memo; /* contents cache and such */
};
typedef struct Context Context;

size_t elem_bytes(ingot_dtype); /* of an element in memory; a string is a pointer */

/* ---- context.c ----------------------------------------------------------------------- */
void context_report(Context *, ingot_level, ingot_status, const char *message);
Context *
context_child(Context *parent); /* a fresh graph for one kernel: same sink and vars, own arena */

/* ---- node.c: interning and the constructors that every level uses ---------------------- */
/* Of whom asked for a node, the first; NULL: none. */
const Origin *node_origin(const Context *, const Node *);
/* Others ask for a node that there is already; so does a rewrite that is being tried. A few hundred of them are kept. */
void origins_add(Context *, const Node *, const OriginList *more);
void making_found(struct Making *, Node *);
Node *node_make(Context *, Op, ingot_dtype, Arg, int nsrc, Node *const *src, int rank,
                Node *const *shape);
Node *node_const_i(Context *, ingot_dtype, int64_t); /* wrapped to the dtype */
Node *node_const_f(Context *, ingot_dtype, double);  /* rounded to the dtype */
Node *node_const_zero(Context *, ingot_dtype);
Node *node_bool(Context *, bool);
double node_float(Node *); /* the value of a float CONST */
bool node_is_const_i(Node *, int64_t);
Node *node_alu(Context *, Op, ingot_dtype, int nsrc,
               Node *const *src); /* elementwise; INDEX/BOOL scalars are simplified */
Node *node_alu1(Context *, Op, ingot_dtype, Node *);
Node *node_alu2(Context *, Op, ingot_dtype, Node *, Node *);
Node *node_where(Context *, Node *, Node *, Node *);
Node *node_cast(Context *, Node *, ingot_dtype); /* from or to INDEX too */
Node *monoid_identity(Context *, ingot_reduce_op, ingot_dtype);
Op monoid_op(ingot_reduce_op);

/* ---- monoid.c: reductions, whatever the size of their state --------------------------------------
 * A REDUCE of a state has the state of one element as its first sources and gives one of its values; what gives the
 * others are its siblings, which share its loops.  A plain reduction is that of a state of one value. */
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
/* Which value of the state it gives. */
static inline int reduce_part(const Node *reduce)
{
    return (int)((uint64_t)reduce->arg.i >> 24);
}
Arg reduce_arg(int monoid, unsigned axes, int part);
int monoid_size(int monoid);
/* How many sources are the state of an element: its ranges come after them.  Of a SCAN too. */
static inline uint32_t reduce_size(const Node *reduce)
{
    return (uint32_t)monoid_size(reduce_monoid(reduce));
}
/* Which source is the first range of a kernel's REDUCE; behind the last for anything else. */
static inline uint32_t reduce_ranges(const Node *n)
{
    return n->op == OP_REDUCE ? reduce_size(n) : n->nsrc;
}
/* The ranges that are its own, of a REDUCE or STAGE of a kernel: what reads it does not depend on them. */
static inline Node *const *own_ranges(const Node *n, int *count)
{
    uint32_t first = n->op == OP_STAGE ? 1 : reduce_ranges(n);
    *count = n->op == OP_STAGE ? (int)n->arg.i : (int)(n->nsrc - first);
    return n->src + first;
}
Node *reduce_sibling(Context *, Node *reduce, int part);
/* The value that its accumulator starts with. */
Node *reduce_identity(Context *, const Node *reduce);
/* What two states are together, in any order. */
void monoid_join(Context *, int monoid, Node *const *a, Node *const *b, Node **out);
/* A state over the elements of a range, made of plain reductions: of lanes, of which each has a state. */
void monoid_block(Context *, int monoid, Node *const *x, Node *range, Node **out);
/* The state after an element of a kernel's REDUCE (of more than one value); before it they are PARAMs with the reduce's sources. */
void reduce_step(Context *, Node *reduce, Node **out);
Node *node_custom(Context *, const CustomUse *, ingot_dtype, int nsrc, Node *const *src);
/* Copy n with other sources, through the simplifying constructors. */
Node *node_with(Context *, Node *n, Node *const *src);
int end_stores(
    const Node *end); /* an END's sources: how many stores it has; the others are ranges */
int first_coord(const Node *access); /* which source of a LOAD or STORE its coordinates start at */

/* ---- custom.c: custom operators ----------------------------------------------------------- */
const CustomParam *custom_param(const CustomOp *, CustomKind, int slot); /* NULL: there is none */
const CustomUse *custom_use(Context *, const CustomOp *, const int64_t *ints, const double *floats);
/* The same as a step of its own: a call of the function on whole tensors. */
Node *custom_call(Context *, Node *custom);

/* ---- gather.c: whether the indices of a GATHER or UPDATE are data, to be checked ----------------- */
typedef enum { INDEX_TRUSTED, INDEX_PLAIN, INDEX_WRAPS } IndexCheck;
IndexCheck index_check_of(Context *, Node *);

/* ---- symbolic.c, divmod.c: integer expressions (dtype INDEX, and BOOL over them) -------
 * Every function returns a simplified node; bounds in Node.lo/hi are sound. */
void symbolic_bounds(Context *, Node *, int64_t *lo, int64_t *hi); /* called by node_make */
Node *idx(Context *, int64_t);
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
bool idx_is(Node *, int64_t);      /* is the constant */
bool idx_value(Node *, int64_t *); /* is a constant */
bool idx_provably_equal(Context *, Node *, Node *);
Node *range_new(Context *, int axis, Node *extent);
/* The integer behind a value of integer dtype: strips casts, pushes through + - * where; NULL if some
 * intermediate might not fit.  So that gathers with computed indices become plain coordinates. */
Node *idx_from_value(Context *, Node *value);
/* e with every `from` node replaced by `to` (n pairs), re-simplified; memo by the caller's Map or NULL. */
Node *substitute(Context *, Node *e, int n, Node *const *from, Node *const *to);
/* e simplified under the assumption that `cond` holds. */
Node *simplify_given(Context *, Node *e, Node *cond);
int64_t sat_add(int64_t, int64_t);
int64_t sat_mul(int64_t, int64_t);

/* ---- movement.c: coordinates of a movement node's source from those of its result ------- */
/* In: coords[n->rank]; out: src_coords[src rank] and *valid (BOOL; ANDed by the caller).  For RESHAPE, PERMUTE,
 * EXPAND, PAD, SHRINK, FLIP, KEEP.  (GATHER needs values, CONCAT chooses a source: their callers handle them.) */
void movement_coords(Context *, Node *n, Node *const *coords, Node **src_coords, Node **valid);

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
/* Whether a dim is decided by this very call, by a count that it reports: the call itself knows no more than its bound. */
bool call_decides(const Call *, const Node *dim);

/* ---- interp.c: the oracle -------------------------------------------------------------- */
typedef struct Interp Interp;
Interp *interp_new(Context *);
void interp_free(Interp *);
/* Values of run-time integers and leaves (INPUT, STATE, PARAM); data is borrowed. */
void interp_set_var(Interp *, int var, int64_t);
void interp_bind(Interp *, Node *leaf, const void *data);
/* Dense row-major value of n; owned by the Interp. NULL (with a report) if it cannot be computed. */
const void *interp_eval(Interp *, Node *n, int64_t *dims);
/* One ALU op on an array of lanes, in the dtypes' storage form: the contract of docs/numerics.md. */
void interp_alu(Node *n, size_t lanes, void *out, const void *const *in);
void interp_to_f64(ingot_dtype, size_t n, double *out,
                   const void *in); /* of any type but strings and complex numbers */

/* ---- the plan ---------------------------------------------------------------------------- */

/* How logical coordinates become a storage offset (in elements): a list of constructors.  An empty list is
 * dense row-major in the buffer's dims. */
typedef enum { LAYOUT_PERMUTE, LAYOUT_SPLIT, LAYOUT_PAD } LayoutKind;
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

typedef enum {
    BUF_INPUT,
    BUF_OUTPUT,
    BUF_WEIGHT,
    BUF_ARENA,
    BUF_STATE,
    BUF_LOCAL /* a variable of the emitted run(): what a check finds */
} BufferKind;
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
    Node *
        node; /* the tensor it holds; for weights the constant expression to evaluate (the recipe) */
    const char *name;
    int64_t offset;    /* memplan.c: in its memory (state included) or in the weights */
    int memory;        /* memplan.c: ARENA and STATE: index in Plan.memories */
    Buffer *base;      /* a view: a slice of another buffer, or NULL */
    bool kept;         /* other buffers point into it: live to the end of the run */
    Node *base_offset; /* in elements (INDEX; may use VARs) */
    int first, last;   /* memplan.c: live from step number to step number (depth-first numbers) */
};
Buffer *buffer_root(
    const Buffer
        *); /* of a view, and of views of views, the buffer that has the memory; else itself */

typedef struct {
    char name[16];
    bool reduced, /* or staged: it is no loop of the stores */
        staged,
        scanned; /* scanned: an axis of outputs whose loop runs in order, inside all others */
    Node *range; /* RANGE in the kernel's context */
} Axis;
typedef enum {
#define OPT(id, ...) OPT_##id,
#include "opts.def"
    OPT_COUNT
} OptKind;
typedef struct {
    OptKind kind;
    const char *axis; /* its name; of ORDER the names, a space between them */
    int64_t amount;   /* of ORDER 0, of BIND a Bound */
} Opt;
/* What the iterations of an axis are where they are no loop. */
typedef enum { BOUND_NOT, BOUND_GRID, BOUND_LANE, BOUND_COUNT } Bound;
extern const char *const bound_name[BOUND_COUNT]; /* "", "grid", "lane" */
Opt opt_copy(Arena *, const Opt *);
typedef struct {
    ingot_dtype dtype;
    int rank;
    Node *const *dims; /* in the kernel's context */
    Layout layout;
    bool read, written;
} KernelArg;
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
    uint64_t
        near; /* of a step: what the file has as the key of that value, after changes of the graph; 0: nothing */
    uint32_t form; /* hash of its axes and arguments */
    bool copy;     /* the step that copies argument copy_arg of that kernel */
    int copy_arg;
    int narg, nopt;
    ArgChoice *arg;
    Opt *opts;
    int *opt_line;
    const char *tried; /* heuristic.c: what was thought of, a line each; NULL: nothing */
    int line;          /* of a file: 1, 2, ...; used: it applies to the model */
    bool used;
} Choice;

/* An argument that is a number, not the same in all steps of its kernel: PARAM i, without sources, in there (share.c). */
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
    int *
        vars; /* numbers of the model's run-time integers it takes, in order: VAR nodes in the kernel have
                     * the same numbers as in the model */
    Scalar *scalars;
    bool serial; /* stores may collide (scatter): iterations run in order, one work item on a GPU */
    uint64_t hash;        /* of its canonical text: equal kernels are emitted once */
    Choice *choice;       /* the record of what is decided for it; NULL where nothing is */
    bool check;           /* of a STEP_INDEX */
    char name[96];        /* k07_conv_1x64x56x56; set by the plan */
    int64_t flops, bytes; /* at the upper bounds */
    int64_t scratch;      /* bytes of the places that a part of it needs, see nest.h */
};

/* What most of a kernel's work is for. */
typedef struct {
    const Origin *origin; /* NULL: none */
    const char *op;       /* of a source node; where there is none, of a node of the graph */
    Node *value;          /* its result, or what the kernel computes of it */
    double operations;
} Heaviest;

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
    const char *name;
    const Origin **origins; /* source nodes, in order, no doubles */
    int norigin;
    Heaviest heaviest; /* KERNEL: of what it computes */
    Node *value;       /* KERNEL: that it stores; merged: of the first of them */
    Node **values;     /* KERNEL: nodes of the model's graph that it computes, oldest first */
    int nvalue;
    /* KERNEL: one per argument.  CALL: inputs then outputs.  COPY: dst, src. */
    int nbuf;
    Buffer **bufs;
    Kernel *kernel; /* shared by equal steps */
    const Choice *
        choice; /* KERNEL, after kernel_share(): the record of this step; NULL where nothing is decided */
    const double *scalars; /* KERNEL: its scalar arguments, Kernel.nscalar of them */
    const Call *call;
    Buffer *scratch;               /* CALL, KERNEL: planned scratch or NULL */
    Node *elements;                /* COPY: number of elements */
    Node *dst_offset, *src_offset; /* COPY: in elements */
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
/* A memory that buffers lie in, the caller's: one of --memory, or the only one, which is called the arena. */
typedef struct {
    const char *name; /* NULL: the arena */
    int64_t limit;    /* its size; 0: as large as it has to be */
    int64_t
        bytes; /* memplan.c: what is used of it.  More than the limit: the plan does not fit (only of the last) */
} Memory;
/* A run-time dim's source: sym[var] = input's dims[axis] (first occurrence sets, later ones check). */
typedef struct {
    int input, axis;
    Node *dim; /* the declared dim: VAR sets, anything else is checked */
} DimSource;
/* What a pass decided about a value, and why: for who reads a plan (inspect.c); no pass reads it. */
typedef struct {
    const char *pass, *what, *why; /* "fuse", "stored", "several kernels read it" */
    Node *node;                    /* of the model's graph, or NULL */
    const Step *step;              /* that did it, or NULL */
    const Buffer *buffer, *other;  /* whose bytes are those of the other one; NULL */
    int64_t operations;            /* for each element, to compute it again; -1: does not matter */
    int64_t bytes;                 /* of it, or saved; -1: does not matter */
    double stored,
        again; /* cycles, of storing it and of computing it in its readers; 0: not asked */
} Note;
struct Values;
typedef struct {
    Context *c;
    Arena *arena;
    struct Values *values; /* what is decided about values (values.c); NULL at -O0 */
    Buffer **buffers;
    int nbuffer;
    Note *notes; /* in order of the passes */
    int nnote;
    Block main;
    int nstep;
    Kernel **kernels; /* distinct ones */
    int nkernel;
    DimSource *dim_sources;
    int ndim_source;
    Memory *memories; /* in order of preference */
    int nmemory;
    int state_memory; /* memplan.c: all states are at the start of this one */
    int64_t arena_bytes, state_bytes,
        weights_bytes; /* memplan.c; the arena: all memories together */
    bool verbose;
    const char *sched_file; /* the decisions that were read from a file, or NULL */
    Choice **given;
    int ngiven;
    Buffer **input, **output,
        **state; /* by slot.  An output that is an input, a weight or another output is copied */
} Plan;

/* ---- compiler/kernel: one kernel, from its expression and opts to loop nests ---------------- */

/* address.c: the roots with every coordinate tuple replaced by one offset in elements. */
void flatten_addresses(Arena *, const Kernel *, int n, Node *const *roots, Node **flat);
/* layout.c */
int64_t layout_elements(const Layout *, int rank,
                        Node *const *dims); /* storage, at the upper bounds */
bool layout_equal(const Layout *, const Layout *);
/* What all halos of a layout are filled with. */
int64_t layout_fill(const Layout *);
void layout_halo(const Layout *, int axis, int64_t *lo,
                 int64_t *hi); /* elements before and behind the axis */
void layout_put_last(Layout *, int rank,
                     int axis); /* that axis innermost, the others as they were, if there is room */
/* dst[layout(coords)] = src[coords] for a dense src of constant dims; dst is zeroed first.  src is read from
 * start to end; read (or NULL) is told now and then how far. */
void layout_pack(const Layout *, int rank, const int64_t *dims, size_t element, const void *src,
                 void *dst, void (*read)(const void *up_to, void *user), void *user);
/* The coordinates of the element that is stored there; false: none is, it is of a border.  For messages: it looks at all. */
bool layout_find(const Layout *, int rank, const int64_t *dims, int64_t offset, int64_t *coords);

/* lanes.c: how a value of this type is held in a lane, "f32" or "i32"; NULL: it cannot be. */
const char *lane_type(ingot_dtype);
int kernel_parts(
    const Kernel *); /* nest.c: that may run on different threads; 0: it cannot be cut */

/* schedule/provenance.c: a kernel that copies a tensor for another step. */
void step_copies(Plan *, Step *, const Buffer *src, const Step *like);
/* inputs.c: inputs that contractions read beyond their edges are copied into the arena. */
void copy_inputs(Plan *);
/* exact.c: whether its results are exact, in any order of sums, if what it reads are small whole numbers. */
bool kernel_is_exact(const Kernel *);
/* plain.c: whether it computes one element after the other, and why. */
bool kernel_is_plain(const Kernel *);
const char *plain_reason(Arena *, const Kernel *);
/* layouts.c: a layout for every buffer of the arena; halos instead of bounds checks. */
struct Target;
void choose_layouts(Plan *, const struct Target *);
/* live.c: bytes of the arena in use, by step of the block; of which steps name a buffer, the first and the last;
 * by how many bytes the greatest of them grows if so many more are in use in these steps. */
double *bytes_live(Arena *, const Plan *, const Block *);
bool steps_with(const Block *, const Buffer *, int *first, int *last);
double arena_growth(const double *live, int n, int first, int last, double bytes);
void buffer_layout_changed(Buffer *); /* its size in bytes again */

/* ---- compiler/rewrite: algebra on the tensor graph, before anything is stored --------------- */

/* The model's outputs and states become those of the rewritten graph.  Doing it again changes nothing.
 * The target says what sums of integers are made of (NULL: of integers).  off: names of rules that are
 * not applied, "a,b"; or NULL.  True if floats are rounded at other places now. */
typedef struct Target Target;
bool graph_rewrite(Context *, const Target *, const char *off);
const char *rewrite_name(int i); /* of the rules; NULL behind the last */
/* control.c: fills the region's captures; outside: by node, whether it is none of the region's. */
void region_captures(Context *, struct Region *, const bool *outside);
/* For languages that cannot call C: elementwise custom operators become steps of their own. */
void graph_custom_calls(Context *);

/* variant.c: the model's roots become those of the graph with the variants that the plan's decisions ask for; then back. */
typedef struct {
    Node **node;
    int n;
} GraphRoots;
void variants_apply(Plan *, GraphRoots *keep);
void roots_restore(Context *, const GraphRoots *);

/* ---- schedule.c, rangeify.c, memplan.c ---------------------------------------------------- */
struct Target;
Plan *plan_new(Context *);
bool plan_schedule(Plan *, int opt_level, const struct Target *); /* false after a reported error */
Plan *schedule(Context *, int opt_level,
               const struct Target *); /* both; NULL after a reported error */
void plan_note(Plan *, Note);          /* schedule.c */
void plan_free(Plan *);
void kernel_share(Plan *);       /* share.c: equal kernels become one, all get names */
void kernel_find_vars(Kernel *); /* kernel.c: vars again, after its addresses changed */
void kernel_accesses(const Kernel *, Arena *,
                     int64_t *count); /* kernel.c: loads and stores of each argument */
bool memplan(Plan *,
             int64_t align); /* offsets, memories, weights_bytes; false after a reported error */
/* Buffers of a memory (-1: of all) that are alive when it is tightest, largest first. */
int memplan_peak(const Plan *, int memory, const Buffer **out, int max);
void kernel_keys(Plan *); /* kernel.c: starts the record: what kernel every step is */
/* The same kernel in a new context: what is emitted follows from its expression, layouts and opts alone, not from what
 * was asked about it on the way.  The old one is freed. */
Kernel *kernel_renew(Kernel *);
Kernel *kernel_copy(const Kernel *);
uint64_t kernel_hash(const Kernel *,
                     uint64_t seed); /* of its canonical text, layouts and opts included */
void plan_print(StrBuf *, Plan *);   /* the whole plan, for people */
void print_dims(StrBuf *, const Context *, int rank, Node *const *dims); /* "[2,n,3]" */
void sched_origin(StrBuf *, const Origin *);                             /* "Conv conv_0" */
/* What is decided about values, once they have their places; about kernels, before equal ones are shared. */
void sched_print_values(StrBuf *, const Plan *, const char *target);
void sched_print_kernels(StrBuf *, const Plan *);
/* The entry of a step after kernel_share(), with these opts and layouts (by argument; NULL: as the record has it); only: for
 * this step, not for every one of its kernel. */
void sched_print_step(StrBuf *, const Plan *, const Step *, bool only, int nopt, const Opt *opts,
                      const Layout *const *layout);
void layout_print(StrBuf *, const Layout *);
extern const char *const opt_name[OPT_COUNT];
void opt_print(StrBuf *, const Opt *); /* "UPCAST oc 4" */
bool sched_parse(Plan *, const char *file,
                 const char *target); /* sched_parse.c: fills Plan.given and values, from the
                                                                 section for this target; false after a reported error */
/* Of a line of the file: it has no effect here. */
void sched_note(const Plan *, int line, const char *, ...) __attribute__((format(printf, 3, 4)));
/* A fault of the file; only the first is told. */
void sched_error(const Plan *, int line, const char *, ...) __attribute__((format(printf, 3, 4)));

/* replay.c: what the file says of a kernel, or NULL; unused entries are errors. */
const Choice *choice_given(const Plan *, const Choice *);
/* Tells of entries that speak of nothing in this model; false, after an error, if none speaks of anything. */
bool choices_report(const Plan *);

/* ---- targets ------------------------------------------------------------------------------ */

/* What a language spells differently; the renderer is one for all. */
typedef enum {
    COMPILE_DONE,
    COMPILE_FAILED,
    COMPILE_ABSENT /* the compiler is not installed */
} CompileStatus;
/* How operations run: one by one, in the lanes of a loop, or as multiply-adds of a tile in registers. */
typedef enum { UNIT_SCALAR, UNIT_VECTOR, UNIT_TILE, UNITS } Unit;
/* A level of memory: how many bytes it holds (0: all that there are), how many it gives in a cycle. */
typedef struct {
    double bytes, rate;
} Level;
struct Target {
    const char *name;
    const char *suffix; /* of kernel files: ".c", ".cl", ".cu" */
    bool gpu;           /* a kernel is one work item's program: output axes come from its number */
    const char *kernel_word; /* before "void": "", "__kernel ", "extern \"C\" __global__ " */
    const char *global_word; /* before a pointer's type: "", "__global " */
    const char *restrict_word;
    const char *group, *item; /* numbers of this item's group, and of it in there */
    const char *local_word;   /* before the declaration of memory that a group shares */
    const char *barrier;      /* statement: all items of a group have come here */
    const char *work_item;    /* number of this work item, a 64-bit integer; NULL without gpu */
    const char *float_suffix; /* of f32 functions: "f" in C */
    const char *const *
        spelling; /* by Op, floats: "exp@($0)", @ stands for float_suffix; NULL: igrt_<op>_<type>() */
    /* What time goes to (schedule/cost.c), in cycles: of one core, or of all of a GPU's. */
    double rate[UNITS];  /* operations a cycle */
    Level level[5];      /* nearest first */
    int line;            /* bytes that move together */
    double launch;       /* of a kernel */
    double byte;         /* that a byte of memory is worth beside; 0: time alone counts */
    const char *flags;   /* for the C compiler: "-march=x86-64-v3"; NULL: none */
    const char *link;    /* for the linker; NULL: none */
    const char *cc, *ar; /* what builds for this machine unless told; NULL: cc and ar */
    bool bare;           /* there is no operating system */
    const char *machine; /* as the compiler of a target file calls it: "arm-none-eabi"; else NULL */
    bool wasm;           /* a program is a module, which run.mjs runs, and has one thread */
    int lanes;           /* f32 lanes of a vector register; 0: no vector types */
    int registers;       /* vector registers */
    bool dot;            /* igrt_dot_*() costs less than four products of bytes */
    /* GPUs only */
    const char *runtime;  /* prefix of its types in runtime_min: "igrt_cl" */
    const char *pragma;   /* the first line of every kernel file, or "" */
    const char *prologue; /* types and constants, where igrt_num.h is not needed */
    /* Kernel source to what its driver loads (or why it did not compile); NULL: the driver takes the source.
     * flush: subnormal numbers are zeros. */
    CompileStatus (*compile)(StrBuf *out, const char *source, const char *machine, bool flush);
};

/* What takes at most 1 / LITTLE of the time of something else may be done to save memory. */
enum { LITTLE = 32 };
enum { DEAR = 4 }; /* cycles that a byte of memory is worth where it is dear */
/* cost.c: cycles of moving bytes where so many are in use; of a kernel, tiled if it can be. */
double cost_bytes(double bytes, double live, const Target *);
double cost_kernel(const Kernel *, const Target *);

/* optimise.c: opts for every kernel, layouts for its weights, copies where an operand is laid out badly. */
void optimise(Plan *, const Target *);

#endif
