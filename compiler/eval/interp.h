/* interp.h - what the files of the reference interpreter share.
 *
 * interp.c walks the graph and decides which values are stored; interp_region.c evaluates one
 * stored value (everything between it and other stored values is fused) in chunks of lanes;
 * interp_coord.c gives lanes their coordinates; interp_alu.c and interp_cast.c are the
 * arithmetic; interp_control.c runs loops, branches and library kernels. */
#ifndef INTERP_H
#define INTERP_H

#include "eval.h"
#include "igrt.h"

/* ---- interp_alu.c, interp_cast.c: arithmetic on arrays in storage form ------------------- */

/* out[i] = op(in[0][i], ...).  in_t: dtypes of the operands; arg: Node.arg.i (CAST's flags).
 * out may be one of the operands where element sizes agree. */
void alu_lanes(Op, int64_t arg, ingot_dtype out_t, const uint8_t *in_t, size_t n, void *out,
               const void *const *in);
void alu_cast(ingot_dtype to, ingot_dtype from, int64_t flags, size_t n, void *out, const void *in);
/* acc = op(...op(op(acc, v[0]), v[1])..., v[n-1]), in dtype t, in this order. */
void alu_fold(Op, ingot_dtype t, size_t n, void *acc, const void *v);
/* The value every monoid starts from, in dtype t. */
void alu_identity(ingot_reduce_op, ingot_dtype t, void *out);
void store_int(ingot_dtype, int64_t, void *out); /* integers, bool, INDEX; floats rounded */
int64_t load_int(ingot_dtype, const void *in);   /* integers, bool, INDEX */
void store_const(Node *, void *out);             /* a CONST in storage form */

/* ---- interp_coord.c: coordinates as numbers ------------------------------------------------
 * A Space is the box of root coordinates that a region is evaluated over.  A LinearForm is an exact
 * linear form c + sum k*var over the box's axes and over atoms, where atom = floor(lin / div) mod
 * `mod`, or clamp(lin, 0, mod - 1).  Reshapes make atoms; most of them turn out to be linear and
 * vanish. */
typedef struct {
    int var; /* < rank: an axis; else atom number var - rank */
    int64_t k;
} LinearTerm;
typedef struct {
    int64_t c, lo, hi; /* sound bounds over the whole box */
    uint32_t deps;     /* axes that it depends on */
    int n;
    LinearTerm t[];
} LinearForm;
typedef struct {
    const LinearForm *of, *at; /* at: index into table */
    int64_t div, mod;          /* mod 0: none */
    bool clamp;
    const int64_t *table; /* values over the box of deps, or NULL: computed lane by lane */
    uint32_t deps;
    int64_t lo, hi;
    int use;       /* interp_region.c: of, or at, as lanes */
    int64_t *lane; /* interp_region.c */
} Atom;
typedef struct {
    Arena *arena;
    int rank;
    int64_t ext[INGOT_MAX_RANK];
    int64_t table_limit;
    Atom **atom;
    int natom;
} Space;
const LinearForm *lin_const(Space *, int64_t);
const LinearForm *lin_axis(Space *, int axis);
const LinearForm *lin_sum(Space *, int64_t c, int n, const LinearForm *const *,
                          const int64_t *k); /* c + sum k*lin */
const LinearForm *lin_divmod(Space *, const LinearForm *, int64_t div,
                             int64_t mod);                           /* floor(l / div) mod `mod` */
const LinearForm *lin_clamp(Space *, const LinearForm *, int64_t n); /* to 0 .. n-1; n > 0 */
int64_t atom_apply(const Atom *, int64_t x);

/* ---- values -------------------------------------------------------------------------------- */

typedef struct EvalValue EvalValue;
struct EvalValue {
    const void *data;
    Arena *own; /* freed with the value; NULL: borrowed, or in its scope's arena */
    int rank;
    int64_t dims[INGOT_MAX_RANK];
    int64_t n; /* number of elements */
    ingot_dtype dtype;
    int level; /* scope it belongs to */
    int nelem; /* a tuple: its elements */
    EvalValue **elem;
};

/* A scope is one iteration of a loop: values that depend on it are dropped at its end, others
 * belong to an outer scope and stay. */
typedef struct {
    Arena *arena;    /* small values, value headers */
    uint32_t *trail; /* ids of nodes with a value or an integer of this level */
    size_t ntrail;
} EvalScope;

#define MAX_DEPTH 32

struct Interp {
    Context *c;
    Arena *arena;
    EvalScope scope[MAX_DEPTH + 1];
    int depth;
    bool failed;
    uint64_t shake; /* not 0: rounding at random, from this seed on */
    /* by node id */
    uint32_t cap;
    EvalValue **value;
    int64_t *num; /* integer of a scalar INDEX (or BOOL over INDEX) node */
    uint8_t *has_num;
    uint8_t *level; /* scope depth that the node depends on; valid while it has a value */
    const void **bound;
    uint8_t *bound_level;
    uint32_t *stamp, *slot, epoch; /* planning only */
    /* by run-time integer */
    int nvar;
    int64_t *var;
    uint8_t *var_set;
    uint8_t *var_level;
};

/* interp.c */
bool interp_fail(Interp *, ingot_status, const char *, ...) __attribute__((format(printf, 3, 4)));
/* Evaluate several nodes; their values stay until their scope ends. */
bool eval_roots(Interp *, int n, Node *const *roots);
EvalValue *value_of(Interp *, Node *);
EvalValue *value_new(Interp *, int level, ingot_dtype, int rank, const int64_t *dims); /* zeroed */
void value_drop(EvalValue *); /* what it owns, and what its elements own; NULL: nothing */
void value_set(Interp *, Node *, EvalValue *);
EvalValue *value_need(Interp *, Node *); /* of a root or a source of control flow, constants too */
void *value_data(EvalValue *);
int64_t dim_value(Interp *, Node *); /* of a dim whose variables are known */
void node_dims(Interp *, Node *, int64_t *dims);
void var_assign(Interp *, int var, int64_t, int level);
void scope_clear(Interp *, int depth);

/* interp_region.c: compute one stored value from those it reads. */
bool region_eval(Interp *, Node *, EvalValue *out);
bool update_eval(Interp *, Node *, EvalValue *out);
bool concat_eval(Interp *, Node *, EvalValue *out);

/* interp_shake.c: other bits for floats that were computed (by an ALU op), or given. */
void interp_shake(Interp *, ingot_dtype, int64_t n, void *);
void interp_shake_alu(Interp *, Node *, int64_t lanes, void *);
/* interpret.c: ingot_interpret(), rounded at random from this seed on. */
ingot_status interpret_shaken(Context *, uint64_t seed, int n_in, const ingot_value *in, int n_out,
                              ingot_value *out);

/* interp_control.c */
bool requires_hold(Interp *, const Requires *);
bool call_eval(Interp *, Node *);
bool custom_eval(Interp *, Node *, EvalValue *out);
bool loop_eval(Interp *, Node *);
bool collective_eval(Interp *, Node *, EvalValue *out);
bool if_eval(Interp *, Node *);

/* interp_lib.c: the library kernel of that name, or NULL. */
typedef igrt_status (*LibFn)(const igrt_tensor *in, int nin, igrt_tensor *out, int nout,
                             const int64_t *attr_i, const double *attr_f, void *scratch,
                             size_t scratch_bytes, int64_t *counts);
LibFn lib_find(const char *name);

#endif
