/*
 * onnx.h - what the ONNX lowering shares: the model under way, scopes of names, one node under
 * way, and the readers of its attributes and inputs.
 *
 * A lowering is a function from a node to its first output; further outputs are stored in
 * n->out[i]. It reports faults with fault() or unsupported(), which return poison, and need not
 * look for poison among its inputs: a node with a poisoned input is never lowered. Attribute
 * readers report a wrong type themselves and set n->failed; the node's outputs are then poison.
 */
#ifndef INGOT_IMPORTERS_ONNX_H
#define INGOT_IMPORTERS_ONNX_H

#include "base.h"
#include "ingot_onnx.h"
#include "onnx_read.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

enum {
    ONNX_MAX_NESTING = 48,    /* subgraphs and functions inside each other */
    ONNX_MAX_NODES = 1 << 18, /* evaluated in all, function bodies counted at each call */
    ONNX_AHEAD = 4,      /* opsets above INGOT_ONNX_MAX_OPSET that are tried: about two years */
    ONNX_MAX_LIST = 4096 /* elements of an integer list input (axes, shapes, splits) */
};

/* ---- names ---------------------------------------------------------------------------------- */

/* Open hash map from names (borrowed) to pointers. */
typedef struct Names {
    const char **key;
    void **value;
    size_t n, cap;
} Names;
void *names_get(const Names *, const char *key);
void names_put(ingot_context *, Names *, const char *key, void *value);

/* What a name stands for. */
typedef enum { VALUE_ABSENT, VALUE_TENSOR, VALUE_SEQUENCE, VALUE_OPTIONAL } ValueKind;
typedef struct Value Value;
typedef struct Packed Packed;
/* What the columns of a tensor stand for, by name or by number (ZipMap). */
typedef struct {
    int n;
    const char *const *name;
    const int64_t *number;
} ValueClasses;

struct Value {
    ValueKind kind;
    ingot_tensor *tensor;
    const ValueClasses *classes;           /* of a tensor, or NULL */
    const Onnx__TensorProto *proto;        /* an initializer that nobody has used yet */
    const Onnx__SparseTensorProto *sparse; /* the same, sparse */
    int n;                                 /* sequence: length; optional: 0 or 1 */
    Value **item;
    ingot_dtype item_dtype; /* of an empty sequence or optional */
    ingot_dim *present;     /* optional that only the run knows of: 1 or 0, and n is 1; else NULL */
    Packed *packed; /* sequence whose length only the run knows: n is its bound, item is NULL */
};

/* The elements of a sequence whose length the run knows: rows of one tensor. */
struct Packed {
    int rank;                    /* of an element */
    int64_t box[INGOT_MAX_RANK]; /* the greatest dims of an element */
    bool equal[INGOT_MAX_RANK];  /* every element has this dim: box */
    ingot_tensor *rows;          /* [n, box...], each element in the corner of its row */
    ingot_tensor *sizes;         /* i64[n, rank], of each element; NULL where all are equal */
    ingot_dim *length;           /* 0..n; what lies beyond is anything, its sizes within the box */
    bool full;                   /* n is final: what is inserted finds room, or the run fails */
};

/* The names visible to a list of nodes. A subgraph sees the names around it, a function does
 * not. */
typedef struct Scope Scope;
struct Scope {
    Scope *outer;
    Names values;                  /* Value */
    Names declared;                /* Onnx__ValueInfoProto */
    const struct Lowering *caller; /* of the function whose body this is, or NULL */
    const Onnx__FunctionProto *function;
    const struct Lowering *branch_of; /* the If whose branch this is, or NULL */
    const Onnx__GraphProto *graph;    /* NULL: a function */
    size_t n_node;                    /* in the order in which they are evaluated */
    Onnx__NodeProto **node;
    size_t n_opset;
    Onnx__OperatorSetIdProto **opset;
};

/* ---- the model and a node under way --------------------------------------------------------- */

typedef struct OnnxArtifacts OnnxArtifacts;

struct ingot_onnx {
    ingot_context *c;
    OnnxFile *file; /* malloc'd, and so is this struct: both outlive the context */
    const ingot_model_options *options;
    const ingot_model_op *ops;
    int n_ops;
    ingot_model_io *inputs, *outputs;
    int n_inputs, n_outputs; /* of the function that is built: a step may have more */
    int run_inputs, run_outputs, step_inputs, step_outputs;
    OnnxArtifacts *artifacts;  /* onnx_artifacts.c, or NULL; malloc'd */
    ImportedTraining own;      /* onnx_own_step.c, */
    ingot_value *first_values; /* by initialization_binding */
    ingot_model_state *states; /* onnx_state.c: inputs and outputs, none of those above */
    ingot_model_io *state_inputs;
    ingot_tensor **state_tensors;
    int n_states;
    ingot_tensor **weights; /* onnx_training.c: states that stand in place of initializers */
    int n_weights;
    Names integers; /* that are trained: the node that first reads each */
    bool *dim_used; /* by option */
    int nesting;
    Map refused;   /* nodes that the check has told of, by address */
    bool hopeless; /* it has told of what is no node */
    size_t evaluated;
    int inside; /* ingot_source_node whose body is evaluated, plus 1 */
};
typedef struct ingot_onnx Model;
/* Has the check told of it? Then it fails without a word. */
bool is_refused(const Model *, const Onnx__NodeProto *);

typedef struct Lowering Lowering;
struct Lowering {
    ingot_context *c;
    Model *model;
    const Onnx__NodeProto *proto;
    Scope *scope;
    int version;        /* the imported opset of its domain */
    int n_in, n_out;    /* trailing ones left out are not counted */
    ingot_tensor **in;  /* NULL: left out, or no tensor */
    Value **value;      /* inputs again, of any kind; NULL: left out */
    ingot_tensor **out; /* out[0] is what the lowering returns */
    Value **out_value;  /* instead of out[i], for what is no tensor */
    bool failed;        /* an error has been reported */
};

typedef ingot_tensor *LowerFn(Lowering *);

/* One line of onnx_ops.def. */
typedef struct {
    const char *domain, *name;
    int since;
    int min_in, max_in; /* -1: any number */
    int max_out;
    bool any_value; /* takes sequences or optionals; otherwise inputs are tensors */
    LowerFn *lower;
} OpEntry;
const OpEntry *onnx_op_find(const char *domain, const char *name);

#define ONNX_OP(domain, name, since, min_in, max_in, max_out, flags, lower) LowerFn onnx_##lower;
#include "onnx_ops.def"

/* onnx_source.c: what reports tell of a node; its tensors are filled in when they are known. */
ingot_source_node *onnx_source(Model *, const Onnx__NodeProto *);
/* The module of PyTorch that the node was made of, "layer.0.attn"; NULL: the file does not say. */
const char *onnx_module(ingot_context *, const Onnx__NodeProto *);

/* ---- onnx_node.c: faults, attributes, inputs ------------------------------------------------ */

ingot_tensor *fault(Lowering *, const char *format, ...) IMPORT_PRINTF(2, 3);
ingot_tensor *unsupported(Lowering *, const char *format, ...) IMPORT_PRINTF(2, 3);

bool attr_has(Lowering *, const char *name);
/* The attribute as an operator of the user's takes it. */
void attr_number(Lowering *, const char *name, ingot_attribute *out);
int64_t attr_int(Lowering *, const char *name, int64_t otherwise);
double attr_float(Lowering *, const char *name, double otherwise);
/* Terminated, in the context's memory. */
const char *attr_string(Lowering *, const char *name, const char *otherwise);
bool attr_is(Lowering *, const char *name, const char *otherwise, const char *value);
/* The number of entries, -1 if the attribute is missing. */
int attr_ints(Lowering *, const char *name, const int64_t **out);
/* A list with `count` entries from `least` to INT32_MAX, one for each axis of a window, say; all
 * `otherwise` if it is missing. False after an error. */
bool attr_each(Lowering *, const char *name, int count, int64_t otherwise, int64_t least,
               int64_t *out);
int attr_floats(Lowering *, const char *name, const float **out);
int attr_strings(Lowering *, const char *name, const char *const **out);
ingot_tensor *attr_tensor(Lowering *, const char *name);       /* NULL if missing */
ingot_tensor *attr_sparse(Lowering *, const char *name);       /* made dense; poison if missing */
const OnnxTensor *attr_elements(Lowering *, const char *name); /* the same, not yet a constant */
const Onnx__GraphProto *attr_graph(Lowering *, const char *name); /* NULL and an error if missing */

/* A negative axis counts from the end. False after an error. */
bool axis_in(Lowering *, int64_t axis, int rank, int *out);
/* n axes as a set of bits. */
bool axes_in(Lowering *, const int64_t *axes, int n, int rank, unsigned *out);

/* NULL if it is left out. */
ingot_tensor *optional_in(const Lowering *, int input);
/* False and an error where an input of the list is left out: one that is needed after others that
 * are not. */
bool inputs_needed(Lowering *, int count, const int *list);

/* The input as integers that are known now: their number, or -1 after an error. Lists of up to
 * ONNX_MAX_LIST elements; *out is in the context's memory. */
int ints_in(Lowering *, int input, const int64_t **out);
/* The same where run-time dims may take part. */
int dims_in(Lowering *, int input, ingot_dim *const **out);
/* Floating-point (or integer) constants of any float type. */
int floats_in(Lowering *, int input, const double **out);
/* What ints_in does, but -1 without an error. */
int ints_known(Lowering *, int input, const int64_t **out);
/* An integer list that is an attribute before opset `since` and an input from it on: its number,
 * -1 if it is left out, -2 after an error. */
int ints_attr_or_in(Lowering *, const char *attr, int input, int since, const int64_t **out);
/* One constant integer or float; false after an error. */
bool int_in(Lowering *, int input, int64_t *out);
bool float_in(Lowering *, int input, double *out);
/* What the file declares a value of that rank to be, -1 where it is no number. False: nothing. */
bool declared_dims(const Scope *, const char *name, int rank, int64_t *dims);
/* What the file declares output i to be, if all of its dims are numbers. */
bool declared_shape(Lowering *, int output, int *rank, int64_t *dims);

/* ---- onnx_group.c: sequences and optionals as inputs and outputs of the model ---------------- */

/* NULL after an error. */
Value *group_input(Model *, const ingot_model_io *);
bool group_output(Model *, const ingot_model_io *, const Value *);
/* What the options say of a free dim; NULL and an error if they do not tell. */
const ingot_model_dim *free_bounds(Model *, const char *input, const char *name);
/* onnx_dims.c: that dim; NULL and an error if the options do not tell. */
ingot_dim *free_dim(Model *, const char *input, const char *name);

/* ---- onnx_packed.c: sequences whose length only the run knows -------------------------------- */

/* A list of `count` items, still to be filled in. */
Value *value_sequence(ingot_context *, int count, ingot_dtype);
/* The elements of an input: x[i] is [here[i], dims...], or [dims...] where here[i] is 1. list:
 * their type and number. */
Value *packed_input(ingot_context *, const Value *list, ingot_tensor *const *x,
                    ingot_dim *const *here, ingot_dim *length, int rank, const int64_t *lo,
                    const int64_t *hi);
/* Element i < n, whether it is there or not. */
ingot_tensor *packed_element(ingot_context *, const Value *, int i);
/* A list of tensors of that rank as rows. */
Value *packed_from_list(ingot_context *, const Value *list, int rank);
/* The same elements with room for more: n rows, each in a box. */
Value *packed_grow(ingot_context *, const Value *, int n, const int64_t *box, const bool *equal);
/* The element at a place, a scalar i64 that counts from the end where it is negative. */
ingot_tensor *packed_at(ingot_context *, const Value *, ingot_tensor *place);
/* x before that place; NULL: at the end. */
Value *packed_insert(ingot_context *, const Value *, ingot_tensor *x, ingot_tensor *place);
/* Integers of x i64[count] that the run knows, as dims of 0..hi[k], or 0..most where hi is NULL;
 * others end the run. */
void packed_read_dims(ingot_context *, ingot_tensor *x, int count, const int64_t *hi, int64_t most,
                      ingot_dim **out);
/* All elements along one axis, or stacked at a new one. */
ingot_tensor *packed_concat(ingot_context *, const Value *, int axis, bool new_axis);
/* x in pieces of `step` elements along an axis, which is least..most (NULL: 1), and a rest. NULL
 * after an error. */
Value *packed_split(ingot_context *, ingot_tensor *x, int axis, ingot_tensor *step, int64_t least,
                    int64_t most, bool keep);
/* i64[n, rank] */
ingot_tensor *packed_sizes(ingot_context *, const Value *);
/* n rows like those of `like`, of which there are `length`. */
Value *packed_from_rows(ingot_context *, const Value *like, int n, ingot_tensor *rows,
                        ingot_tensor *sizes, ingot_dim *length);
/* Without the element at that place; NULL: the last. */
Value *packed_erase(ingot_context *, const Value *, ingot_tensor *place);

/* ---- onnx_form.c: what a value is in both branches, or in all iterations --------------------- */

/* The form of a value; NULL if a sequence has none. */
Value *form_of(ingot_context *, const Value *);
/* One that both fit in; NULL if there is none. */
Value *form_join(ingot_context *, const Value *, const Value *);
bool form_equal(const Value *, const Value *);
/* The value in that form. */
Value *form_take(ingot_context *, Value *, const Value *form);

/* ---- onnx_size.c: sizes that only the run knows ---------------------------------------------- */

/* What --dim says of that name, or NULL. */
const ingot_model_dim *dim_option(Model *, const char *name);
/* t, with the bounds that --dim gives its value and its sizes. */
ingot_tensor *bounded(Model *, const char *name, ingot_tensor *t);
/* What the file declares for an axis of output i, whose rank is known; -1: no number. */
int64_t declared_size(Lowering *, int output, int axis, int rank);
/* The bounds of that size by --dim, or what is declared; false: there are none. */
bool size_bounds(Lowering *, int output, int axis, int rank, int64_t *lo, int64_t *hi);
/* That size, which is `value` (one integer) when the model runs; most: a bound by the nature of the
 * operator, or -1. NULL: no bound is known. What --dim and the file say is checked by the run. */
ingot_dim *size_at_run_time(Lowering *, int output, int axis, int rank, ingot_tensor *value,
                            int64_t most);
/* The same without what is declared further down (onnx_implied.c). */
ingot_dim *own_size_at_run_time(Lowering *, int output, int axis, int rank, ingot_tensor *value,
                                int64_t most);
/* A run in which it is not d fails. False after an error. */
bool size_is(Lowering *, int output, int axis, ingot_tensor *value, ingot_dim *d);
ingot_tensor *unbounded_size(Lowering *, int output, int axis); /* the error */
/* The dims that an input lists, as far as they are known; NULL: entry k is decided by the data.
 * False after an error. */
bool entries_in(Lowering *, int input, int *rank, ingot_dim **dims);
/* Every dim has to be at least 0; false and an error where one is not. */
bool dims_positive(Lowering *, int rank, ingot_dim *const *dims);
/* One integer as a dim with these bounds; the constant if they are equal. A run in which it has
 * another value fails, and says that of `what`. */
ingot_dim *value_within(Lowering *, ingot_tensor *value, int64_t lo, int64_t hi, const char *what);
bool value_is(Lowering *, ingot_tensor *value, ingot_dim *, const char *what);
/* Entry k of a list input if it is known as a dim, else NULL. */
ingot_dim *entry_dim(Lowering *, int input, int64_t k);
/* The number of entries of a list of sizes; -1 after an error. */
int list_size(Lowering *, int input);

/* ---- onnx_implied.c: what the file says of a size further down ------------------------------- */

/* What is declared for a value that has the size of output i, of that rank, along an axis; -1:
 * nothing. */
int64_t implied_size(Lowering *, int output, int axis, int rank);

/* ---- onnx_told.c: what the declared outputs tell of the values of inputs --------------------- */

/* value, computed from inputs that have the values which the outputs' shapes tell. */
ingot_tensor *as_told(Lowering *, ingot_tensor *value);

/* ---- onnx_runtime.c: what only the run knows ------------------------------------------------ */

/* Entry k of a list input, a scalar i64; `otherwise` if the list is left out. */
ingot_tensor *list_entry(Lowering *, int input, int64_t k, int64_t otherwise);
/* Slice and Pad whose bounds or axes the data decide. */
ingot_tensor *slice_at_run_time(Lowering *);
ingot_tensor *pad_at_run_time(Lowering *, ingot_tensor *value, const char *mode);
/* The place in an axis of `size` elements that place i of its padded form reads. */
ingot_tensor *pad_place(Lowering *, ingot_tensor *i, ingot_tensor *size, const char *mode);
/* fn of the axis that an input holds, out of all axes. */
ingot_tensor *axis_at_run_time(Lowering *, int input, ingot_tensor *(*fn)(Lowering *, int axis));
/* A run whose axes in input 1 are others fails, axes of size 1 aside. False after an error. */
bool axes_are(Lowering *, unsigned axes);
/* One reduction over a set of axes, kept as 1; that of the axes in input 1. */
typedef ingot_tensor *ReduceFn(Lowering *, ingot_tensor *x, unsigned axes);
ingot_tensor *reduce_at_run_time(Lowering *, ReduceFn *, bool keep);

/* ---- onnx_random.c --------------------------------------------------------------------------- */

/* Numbers in [0, 1) of x's shape, of the node's attribute `seed` if it has one. */
ingot_tensor *uniform_like(Lowering *, ingot_tensor *x, ingot_dtype);

/* ---- onnx_attention.c ------------------------------------------------------------------------ */

/* [batch, sequence, heads size] -> [batch, heads, sequence, size]; NULL after an error. */
ingot_tensor *split_heads(Lowering *, ingot_tensor *x, int64_t heads);
/* 1 / sqrt(size), in f32, of a size that only the run knows. */
ingot_tensor *inverse_root(Lowering *, ingot_dim *size);

/* ---- onnx_nn.c ------------------------------------------------------------------------------- */

/* (a - zero) (b - zero) in i32; zero points may be NULL, one number, or a vector of a's rows, of
 * b's columns. */
ingot_tensor *integer_product(Lowering *, ingot_tensor *a, ingot_tensor *b, ingot_tensor *zero_a,
                              ingot_tensor *zero_b);

/* ---- onnx_ml_linear.c ------------------------------------------------------------------------ */

/* Scores [N, classes] after the post_transform of that name. */
ingot_tensor *ml_transformed(Lowering *, ingot_tensor *y, const char *how);
/* How many labels the node has: the list of integers of that name, or classlabels_strings. -1:
 * neither. */
int ml_label_count(Lowering *, const char *ints);
/* The label of the class that each row is of; the number of the class if there are none. */
ingot_tensor *ml_labels(Lowering *, const char *ints, ingot_tensor *which);
/* The input as rows of f32: a vector is one row. NULL after an error. */
ingot_tensor *ml_rows(Lowering *);
/* A list attribute as [rows, columns]; one of the two may be -1, and follows. NULL after an
 * error. */
ingot_tensor *ml_matrix(Lowering *, const char *name, int64_t rows, int64_t columns);
/* One score of two classes: [1 - s, s], or the logistic function of [-s, s]. */
ingot_tensor *ml_second_class(Lowering *, ingot_tensor *s, const char *how);

/* ---- onnx_quant.c ---------------------------------------------------------------------------- */

/* Scale and zero point (or NULL) broadcast to x; dequantized numbers are f32. */
ingot_tensor *quantized(Lowering *, ingot_tensor *x, ingot_tensor *scale, ingot_tensor *zero,
                        ingot_dtype to);
ingot_tensor *dequantized(Lowering *, ingot_tensor *x, ingot_tensor *scale, ingot_tensor *zero);
/* u8 by the range of all of x, as DynamicQuantizeLinear does it. */
ingot_tensor *quantized_by_range(Lowering *, ingot_tensor *x, ingot_tensor **scale,
                                 ingot_tensor **zero);
/* The nearest integer (halves to even) of that type's range; x is f32, or f64 for types of 32 bits
 * and more. */
ingot_tensor *rounded_to_integer(Lowering *, ingot_tensor *x, ingot_dtype to);
/* One entry for `block` elements of x along the axis: each is repeated, the last block may be
 * short. */
ingot_tensor *spread_blocks(Lowering *, ingot_tensor *p, ingot_tensor *x, int axis, int64_t block);

/* ---- onnx_ms_quant.c ------------------------------------------------------------------------- */

/* One element as a scalar, more as they are. */
ingot_tensor *scalar_or_row(Lowering *, ingot_tensor *);

/* ---- onnx_ms_fused.c ------------------------------------------------------------------------- */

/* [N, spatial.., C] -> [N, C, spatial..] and back. */
ingot_tensor *channels_first(Lowering *, ingot_tensor *);
ingot_tensor *channels_last(Lowering *, ingot_tensor *);

/* ---- shorthands ----------------------------------------------------------------------------- */

ingot_dim *dim(Lowering *, int64_t);
/* All dims of x. */
void shape_of(ingot_tensor *x, ingot_dim **dims);
bool dim_is(ingot_dim *, int64_t value);
/* Whether an axis from the third on has no elements for certain: all that is sampled is outside. */
bool has_no_pixels(ingot_tensor *image);
/* x as [1, .., dims of x.., 1] with its axes starting at `axis` of `rank`. */
ingot_tensor *align_axis(Lowering *, ingot_tensor *x, int axis, int rank);
ingot_tensor *reshape_scalar(Lowering *, ingot_tensor *);
/* The scalar v expanded to x's dtype and rank 0. */
ingot_tensor *like(Lowering *, ingot_tensor *x, double v);
/* Copies into the context, as a constant tensor. */
ingot_tensor *const_i64(Lowering *, int rank, const int64_t *dims, const int64_t *v);
ingot_tensor *const_f64(Lowering *, ingot_dtype, int rank, const int64_t *dims, const double *v);
bool is_float(ingot_tensor *);
bool is_signed(ingot_tensor *);
/* 16 bits and less: f32, and back. */
ingot_tensor *widen(Lowering *, ingot_tensor *);
ingot_tensor *as(Lowering *, ingot_tensor *x, ingot_dtype);

/* ---- onnx_custom.c -------------------------------------------------------------------------- */

/* The user's operator that the node names; NULL: none. */
ingot_custom_op *custom_find(const Model *, const Onnx__NodeProto *);
void call_custom(Lowering *, ingot_custom_op *);

/* ---- onnx_schema.c -------------------------------------------------------------------------- */

/* What its inputs may be, "float i64": words of onnx_schemas.def; "": that is not known. */
const char *schema_inputs(const char *domain, const char *name);
bool schema_knows(const char *domain, const char *name);
/* False and an error: an attribute that the standard does not know, or one given twice. */
bool schema_attributes(Model *, const Onnx__NodeProto *);
/* False and an error: an input of a type that the operator takes in no version. */
bool schema_types(Lowering *);

/* ---- onnx_graph.c --------------------------------------------------------------------------- */

/* Evaluates a subgraph attribute in the open region. in: its inputs; out: its outputs (room for
 * g->n_output). False after an error. */
bool subgraph(Lowering *, const Onnx__GraphProto *, int n_in, Value **in, Value **out);
Value *value_tensor(ingot_context *, ingot_tensor *);
/* The strings of a tensor, ended by zeros; NULL and an error if one holds a zero. */
const char *const *strings_of(Model *, const OnnxTensor *, const char *where);
/* A TensorProto as a tensor; where names it for messages. Poison after an error. */
ingot_tensor *proto_tensor(Model *, const Onnx__TensorProto *, const char *where);
/* The same of a sparse one, made dense. */
ingot_tensor *sparse_tensor(Model *, const Onnx__SparseTensorProto *, const char *where);
bool build_graph(Model *, Scope *, const Onnx__GraphProto *);
bool declare_states(Model *, Scope *); /* onnx_state.c: before and after all nodes */
bool update_states(Model *, Scope *);
Value *scope_find(Model *, Scope *, const char *name);
bool scope_define(Model *, Scope *, const char *name, Value *);
const ingot_model_bind *find_bind(const Model *, const char *name); /* onnx_import.c */

/* ---- onnx_training.c: a model that is to be trained ----------------------------------------- */

/* Asks for what stands in place of each weight. False after an error. */
bool take_weights(Model *, Scope *, const Onnx__GraphProto *);
/* What nodes use each name for, as bits of onnx_training.c: unsigned; what an initializer of rank
 * `rank` that is used so is as a weight, which are of these types. */
Names onnx_weight_uses(Model *, const Onnx__GraphProto *);
ingot_model_weight onnx_weight(const char *name, unsigned use, int rank);
/* Of a node and a graph as the file has them. */
int64_t int_attribute(const Onnx__NodeProto *, const char *name, int64_t otherwise);
Onnx__TensorProto *initializer_named(const Onnx__GraphProto *, const char *name); /* or NULL */
bool onnx_weight_type(ingot_dtype);
bool onnx_integer_weight_type(ingot_dtype); /* --quantised: integers that are trained as floats */
bool is_training(const Model *);      /* it is built for inference and for steps of training, */
bool is_training_step(const Model *); /* now for a step */
/* The node reads an initializer of the main graph, as the file has it. */
bool is_main_initializer(const Lowering *, int input);
bool is_own_training(const Model *); /* the same, by a step that the file has: as that says */
bool is_trained_weight(const Model *, ingot_tensor *); /* it stands in place of one, as a state */

/* ---- onnx_artifacts.c: ONNX Runtime's artifacts ---------------------------------------------- */

/* Is it the training model of such? */
bool is_training_artifact(const OnnxFile *);
/* Puts the model that they were made of in place of m->file. False after an error. */
bool artifacts_open(Model *);
void artifacts_close(Model *); /* before m->file */
/* The graph has its nodes for a step, with the loss, or only those for inference. */
void artifacts_select(Model *, bool step);
int artifacts_inputs(const Model *); /* those for inference, which come first */
int artifacts_outputs(const Model *);
const char *artifacts_path(const Model *); /* of the file that was given */
const ImportedTraining *artifacts_training(const Model *);
/* Whether the weight is one that they train. */
void artifacts_wish(const Model *, ingot_model_weight *);
/* Names of all that lie beside a file of that name. */
void artifacts_mention(const char *own, void (*each)(void *user, Span location), void *user);

/* ---- onnx_own_step.c: a step that the file has (TrainingInfoProto) --------------------------- */

/* The graph of its step; NULL: none. */
const Onnx__GraphProto *own_step(const Model *);
/* States in place of initializers that the step gives new values, of both graphs. False after an
 * error. */
bool take_updated(Model *, Scope *);
/* Nodes and outputs of the step, behind those of the model's graph; new values. False after an
 * error. */
bool build_own_step(Model *, Scope *);

/* ---- onnx_dims.c ----------------------------------------------------------------------------- */

/* Is that the name of a free dim of an input? */
bool is_free_dim(const Model *, const char *name);
/* Every --dim can mean something; every free dim is told. False and an error for each that is
 * not. */
bool dim_options_good(Model *);
bool free_dims_given(Model *, ingot_status fault);
/* The sizes of a bound input are those that --dim gives its free dims; false and an error. */
bool bind_fits_dims(Model *, const ingot_model_io *, const ingot_model_bind *);
/* After all: every --dim was used. */
bool dim_options_used(Model *);
bool is_state_dim(const Model *, const char *name); /* onnx_state.c: of an input that is a state */
bool scope_initializers(Model *, Scope *, const Onnx__GraphProto *);
/* Tells of initializers that the file declares otherwise (onnx_declared.c). */
void declared_initializers(Model *);
const Onnx__FunctionProto *function_find(const Model *, const Onnx__NodeProto *);
/* The imported version of a domain, 0 if there is none. */
int scope_opset(const Scope *, const char *domain);
const char *domain_text(const char *domain);
const char *node_label(const Onnx__NodeProto *);

#endif
