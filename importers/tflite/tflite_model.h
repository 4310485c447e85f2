/*
 * tflite_model.h - what the files of this importer share: a model, the graph that is being built,
 * and the operator at hand.
 *
 *     tflite_importer.c   the record: inputs, outputs, entries, options
 *     tflite_graph.c      operators in order; tflite_ops.def says who makes what of each
 *     tflite_<kind>.c     ingot_tensor *tflite_<operator>(TfliteNode *)
 *
 * Images are [N, H, W, C] in these files and in the graph that comes out: a convolution permutes
 * the coordinates of what it reads and of its result, which costs nothing, for movement is
 * arithmetic on coordinates.
 */
#ifndef TFLITE_MODEL_H
#define TFLITE_MODEL_H

#include "importer.h"
#include "ingot_ops.h"
#include "tflite.h"

#define TFL_COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* Numbers of operators, as in the schema. */
enum {
#define TFLITE_OP(name, number, ...) TFL_##name = number,
#include "tflite_ops.def"
#undef TFLITE_OP
    TFL_CUSTOM = 32
};

/* A network of the file: a signature, or the first graph. */
typedef struct {
    const char *name, *function;
    size_t graph;
    const ingot_tflite_signature *names; /* or NULL */
    ingot_model_io *in, *out;            /* NULL: not described yet */
    int n_in, n_out;
} TfliteEntry;

/* A resource variable: a state that has a name. */
typedef struct {
    const char *name;
    ingot_tensor *begin;       /* a constant, or NULL: zeros */
    ingot_tensor *state, *now; /* as the run found it, and as it is by now */
} TfliteVariable;

/* A table that is searched: keys in order, and what belongs to each; NULL: it is not filled yet. */
typedef struct {
    int64_t id, count;
    ingot_tensor *keys, *values;
} TfliteTable;

/* A tensor of a graph that is variable, and its state. */
typedef struct {
    const ingot_tflite_tensor *tensor;
    ingot_tensor *state;
} TfliteState;

typedef struct {
    ingot_context *c;
    char *path; /* malloc'd */
    ingot_tflite *file;
    ExternalFile *external;
    TfliteEntry *entries;
    int n_entries, chosen;
    bool alone;                /* the chosen one was named: others are not functions */
    const ingot_model_op *ops; /* of the user's */
    int n_ops;
    TfliteVariable *variables;
    TfliteTable *tables;
    TfliteState *states;
    int64_t *begun; /* graphs of CALL_ONCE that have been built */
    int n_variables, n_tables, n_states, n_begun;
    ingot_rounding rounding;
    int64_t string_bytes; /* room for each string that is made, on average */
    int depth, n_calls;   /* of graphs in graphs */
    bool once;            /* in the graph of CALL_ONCE */
} TfliteModel;

/* A graph that is being built: what each of its tensors is, NULL: not known yet. */
typedef struct {
    TfliteModel *m;
    const ingot_tflite_graph *g;
    ingot_tensor **value;
} TfliteScope;

/* The operator at hand. */
typedef struct {
    ingot_context *c;
    TfliteScope *s;
    const ingot_tflite_op *op;
    int n_in, n_out;
    ingot_tensor **in, **out;             /* NULL: not given; out[0] is what the function returns */
    const ingot_tflite_tensor **ti, **to; /* the same, as the file describes them */
} TfliteNode;

#define TFLITE_OP(name, number, least, most, version, types, lower) \
    ingot_tensor *tflite_##lower(TfliteNode *);
#include "tflite_ops.def"
#undef TFLITE_OP
#define TFLITE_QUANT(name, lower) ingot_tensor *tflite_q_##lower(TfliteNode *);
#include "tflite_quant.def"
#undef TFLITE_QUANT
#define TFLITE_HYBRID(name, weights, blocks, lower) ingot_tensor *tflite_h_##lower(TfliteNode *);
#include "tflite_hybrid.def"
#undef TFLITE_HYBRID

typedef ingot_tensor *TfliteLower(TfliteNode *);

/** A function of the user's for this operator, or NULL (tflite_custom.c). */
ingot_custom_op *tflite_user_op(TfliteModel *, const ingot_tflite_op *);
ingot_tensor *tflite_call_user(TfliteNode *, ingot_custom_op *);
/** Of custom operators that are known: who makes what of it, else NULL. */
TfliteLower *tflite_known_custom(const ingot_tflite_op *);

/* ---- tflite_graph.c -------------------------------------------------------------------------- */

/** "CONV_2D"; a custom operator's own name; "operator 300" of one that is not known. */
const char *tflite_op_name(TfliteModel *, const ingot_tflite_op *);
/** Number i of the operators that there are; false: no more. */
bool tflite_op_at(int i, ImportedOp *);
/** Reports all operators of these networks that are not supported; true if there are none. */
bool tflite_check(TfliteModel *);
/** Builds a graph; n_in inputs are given. Results go to out, one for each of its outputs. */
bool tflite_build_graph(TfliteModel *, size_t graph, ingot_tensor *const *in, ingot_tensor **out);
/** Is network i to be built, or only the chosen one? */
bool tflite_wanted(const TfliteModel *, int i);
/** What is built from now on is this operator's. */
void tflite_origin(TfliteNode *);
/** Of variables, in each function: they are as the run finds them; what the next run finds
 * (tflite_control.c). */
void tflite_begin_variables(TfliteModel *);
void tflite_end_variables(TfliteModel *);
/** Graph i of those that an operator calls; false: it calls no more. */
bool tflite_calls(const ingot_tflite_op *, size_t i, int64_t *graph);
/** `list` of n elements with room for another one. */
void *tfl_more(TfliteModel *, const void *list, int n, size_t size);

/** A constant of the operator's graph, by its number. */
ingot_tensor *tflite_read_constant(TfliteNode *, size_t number);
/** INGOT_F32 of FLOAT32 and so on; false if there is none. */
bool tflite_dtype(ingot_tflite_type, ingot_dtype *out);
/** A constant of the file. */
ingot_tensor *tflite_constant(TfliteModel *, const ingot_tflite_tensor *);
/** The strings of a constant that has so many (tflite_text.c); NULL after a fault. */
const char **tflite_strings(TfliteModel *, const ingot_tflite_tensor *, int64_t count);

/* ---- tflite_rows.c --------------------------------------------------------------------------- */

typedef struct TfliteRows TfliteRows;
/** What of a graph replaces a row of a tensor. */
TfliteRows *tflite_rows(TfliteModel *, const ingot_tflite_graph *);
/** The tensor that says which row this operator replaces, or -1. */
int32_t tflite_row_at(const TfliteRows *, const ingot_tflite_op *);
/** Is it a slice that such an operator alone reads? */
bool tflite_is_part_of_row(const TfliteRows *, const ingot_tflite_op *);
/** x with `row` in place of row i (i32). */
ingot_tensor *tflite_with_row(TfliteModel *, ingot_tensor *x, ingot_tensor *i, ingot_tensor *row);

/* ---- tflite_complex.c ------------------------------------------------------------------------ */

/** Is input i complex? */
bool tfl_is_complex(TfliteNode *, int i);
/** An operator that only moves the elements of its input 0, which are complex. */
ingot_tensor *tflite_by_parts(TfliteNode *, TfliteLower *);

/* ---- tflite_sparse.c ------------------------------------------------------------------------- */

/** A sparse constant as a dense one; false after a fault. */
bool tflite_dense(TfliteModel *, const ingot_tflite_tensor *, ingot_tflite_tensor *is);

/* ---- tflite_external.c ----------------------------------------------------------------------- */

/** A tensor with an external buffer, and its bytes; false after a fault. */
bool tflite_external(TfliteModel *, const ingot_tflite_tensor *, ingot_tflite_tensor *is);
/** As Importer.mentions. */
bool tflite_mentions(const MapFile *, const char *dir, const char *own,
                     void (*each)(void *user, Span location), void *user);

/* ---- helpers of operators (tflite_node.c) ---------------------------------------------------- */

#define tfl_fault(n, ...) ingot_error((n)->c, INGOT_INVALID, __VA_ARGS__)
#define tfl_unsupported(n, ...) ingot_error((n)->c, INGOT_UNSUPPORTED, __VA_ARGS__)

ingot_dim *tfl_dim(TfliteNode *, int64_t);
/** Input i, or NULL where it is not given. */
ingot_tensor *tfl_in(TfliteNode *, int i);
/** Options of the operator. */
int64_t tfl_int(TfliteNode *, unsigned field, unsigned bytes, int64_t otherwise);
/** Elements of input i as dims, which may be known to the run only; their number, -1 after a
 * fault. */
int tfl_dims(TfliteNode *, int i, ingot_dim **out, int most);
/** The same where constants are needed. */
int tfl_ints(TfliteNode *, int i, int64_t *out, int most);
/** Input i as one number that is known now; false after a fault. */
bool tfl_one_int(TfliteNode *, int i, int64_t *out);
/** An axis of so many, negative ones from the end; false after a fault. */
bool tfl_axis(TfliteNode *, int64_t given, int rank, int *axis);
/** Input i as a set of axes of a tensor of that rank. */
bool tfl_axes(TfliteNode *, int i, int rank, unsigned *axes);
ingot_tensor *tfl_cast(TfliteNode *, ingot_tensor *, ingot_dtype);
/** Sizes of x. */
void tfl_shape(ingot_tensor *x, ingot_dim **dims);
/** x in a shape of `rank` with ones in front. */
ingot_tensor *tfl_rank(TfliteNode *, ingot_tensor *x, int rank);
/** [N, spatial.., C] to [N, C, spatial..] and back. */
ingot_tensor *tfl_channels_first(TfliteNode *, ingot_tensor *x);
ingot_tensor *tfl_channels_last(TfliteNode *, ingot_tensor *x);
/** A function of ActivationFunctionType, of floats. */
ingot_tensor *tfl_activate(TfliteNode *, ingot_tensor *x, int64_t function);
/** The type of output 0. */
ingot_dtype tfl_out_dtype(TfliteNode *);
bool tfl_is_float(ingot_tensor *);
bool tfl_is_bool(ingot_tensor *);
/** x with so many new elements between any two along an axis (tflite_shape.c). */
ingot_tensor *tfl_spread(TfliteNode *, ingot_tensor *x, int axis, int64_t between,
                         ingot_tensor *value);
/** A dim of the operator's option is from 1 to a billion; false after a fault. */
bool tfl_positive(TfliteNode *, const char *what, int64_t v);

/* ---- quantised tensors (tflite_quant.c) ------------------------------------------------------ */

/** Has it integers that stand for real numbers? */
bool tfl_quantized(const ingot_tflite_tensor *);
/** Has each block of a row a scale (tflite_blocks.c)? */
bool tfl_has_blocks(const ingot_tflite_tensor *);
/** Is that so of output 0 (and then of the operator)? */
bool tfl_is_quantized(TfliteNode *);
/** Integers of both inputs that can be compared; false if they stand for themselves. */
bool tfl_comparable(TfliteNode *, ingot_tensor *x[2]);
float tfl_scale(const ingot_tflite_tensor *);
int32_t tfl_zero(const ingot_tflite_tensor *);

#endif
