/* ingot.h - the public interface of the compiler: build a graph, compile it, run it.
 *
 * A graph is built lazily: every function below returns at once, and what it returns is a
 * description of a tensor, never its values.  Tensors are immutable and belong to their
 * context; they are never freed one by one.  A tensor is a function from coordinates to a
 * value; its shape is a list of dims, and a dim is an integer expression over run-time
 * integers with bounds (most often just a constant).
 *
 * Errors.  A faulty call reports one message to the context's sink and returns the
 * context's poison tensor; calls given a poison return it silently, so one mistake is one
 * message.  No function returns NULL, prints, or exits, unless its comment says so.
 */
#ifndef INGOT_H
#define INGOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define INGOT_MAX_RANK 16
#if defined(__GNUC__)
#define INGOT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define INGOT_PRINTF(text, first)
#endif

typedef struct Context ingot_context;
typedef const struct Node ingot_tensor; /* a value of any shape */
typedef const struct Node ingot_dim;    /* an integer known at the latest when inputs are */

/* Element types.  The list lives in dtypes.def; docs/numerics.md is its contract. */
typedef enum {
#define DTYPE(id, name, bytes, kind, c_type, compute) INGOT_##id,
#include "dtypes.def"
    INGOT_DTYPE_COUNT
} ingot_dtype;

const char *ingot_version(void); /* "0.1.0" */
const char *ingot_dtype_name(ingot_dtype);
size_t ingot_dtype_bytes(ingot_dtype); /* bytes one element takes in a buffer; 4-bit types take 1 */

/* ---- contexts and diagnostics -------------------------------------------------------- */

typedef enum { INGOT_NOTE, INGOT_WARNING, INGOT_ERROR } ingot_level;

/* Why something was refused; also the exit status of the command line tool. */
typedef enum {
    INGOT_OK = 0,
    INGOT_USAGE = 2,       /* a flag or an argument of an API call is wrong */
    INGOT_INVALID = 3,     /* the model or data file is broken, or breaks the rules of its format */
    INGOT_UNSUPPORTED = 4, /* a valid model that this compiler does not know how to compile */
    INGOT_TOOL = 5,        /* a program we call (cc, make) failed */
    INGOT_IO = 6,          /* a file could not be read or written */
    INGOT_DIFFERS = 7,     /* the model ran, and its results are not the wanted ones */
    INGOT_BUG = 70
} ingot_status;

typedef void (*ingot_sink)(void *user, ingot_level, const char *message);

/* sink may be NULL: messages are dropped; `message` is the sink's during the call only. A context
 * and what belongs to it are for one thread at a time; several contexts know nothing of each
 * other. */
ingot_context *ingot_context_new(ingot_sink, void *user);
/* With all tensors, dims and memory of it. */
void ingot_context_free(ingot_context *);
/* The gravest status reported so far (the first of equals). */
ingot_status ingot_context_status(const ingot_context *);
/* Subnormal numbers are zeros (docs/numerics.md), in the interpreter, in folded constants and in
 * what is emitted, unless they are kept: to be said before the graph is built. */
void ingot_keep_subnormals(ingot_context *, bool keep);
/* What matrix products and convolutions of f32 multiply: f32, or numbers of bf16, f16 or tf32 for
 * machines that multiply those faster; f32 in forms of fewer products whose error may be 1e-5 of
 * the range; or, where weights are integers with scales for blocks of them, bytes,
 * one of a number or two (docs/numerics.md).  FP8: products with weights multiply f8e4m3fn, with a
 * scale for each row of both operands, and all else is as with F16; FP8_FAST: sums are the unit's
 * own.  To be said before the graph is built. */
typedef enum {
    INGOT_PRECISION_F32,
    INGOT_PRECISION_BF16,
    INGOT_PRECISION_BF16X3,
    INGOT_PRECISION_BF16X6,
    INGOT_PRECISION_1E5,
    INGOT_PRECISION_F16,
    INGOT_PRECISION_TF32,
    INGOT_PRECISION_Q8,
    INGOT_PRECISION_Q16,
    INGOT_PRECISION_NARROW,
    INGOT_PRECISION_FP8,
    INGOT_PRECISION_FP8_FAST
} ingot_precision;
void ingot_set_precision(ingot_context *, ingot_precision);
/* The same of nodes with such names alone (ingot_set_origin(); "layer4.*": * and ? as in names of
 * files), or with such names behind that of their module (ingot_set_module(): "MODULE.NAME"); of
 * several that match the last one counts.  Not for INGOT_PRECISION_1E5. */
void ingot_set_precision_of(ingot_context *, const char *nodes, ingot_precision);
/* What products of the node at hand (ingot_set_origin()) multiply; f16 where those with weights
 * multiply f8. */
ingot_precision ingot_precision_here(ingot_context *);
bool ingot_f8_here(ingot_context *);
/* ... or this, in models whose weights are narrow: INGOT_PRECISION_NARROW. */
void ingot_set_beside_f8(ingot_context *, ingot_precision);
/* The number of those, from 0 on, that no product of the graph has matched, or -1. */
int ingot_unused_precision(const ingot_context *);
ingot_precision ingot_precision_of(const ingot_context *);
/* Products of several parts are to be one of longer operands, not a sum of products: units of GPUs
 * take those. */
void ingot_set_one_product(ingot_context *, bool);
bool ingot_one_product(const ingot_context *);
/* How many products of bf16 the machine computes in the time of one of f32. A precision that needs
 * more of them for one product (bf16x3, bf16x6) would be slower than f32, and less exact: such
 * products stay f32. Default: any number. */
void ingot_set_bf16_products(ingot_context *, double);
/* Results of products that --precision rounds the operands of are rounded as these are, for all of
 * their readers, as autocast has it in PyTorch: for training steps where bytes decide. */
void ingot_set_rounded_results(ingot_context *, bool);
bool ingot_rounded_results(const ingot_context *);
/* Few queries that meet keys as many as a run says (a token and those before it) are for units of
 * GPUs, too: groups that meet share the keys.  What such units multiply is rounded as keys are. */
void ingot_set_shared_keys(ingot_context *, bool);
bool ingot_shared_keys(const ingot_context *);
/* Images of narrow floats with few channels are to be stored once more, with their border, as rows
 * whose windows begin at multiples of 16 bytes: units of GPUs multiply those. least: for
 * convolutions of so many multiplications; 0: for none. */
void ingot_set_stored_rows(ingot_context *, int64_t least);
int64_t ingot_stored_rows(const ingot_context *);
/* All nodes of that precision that read x otherwise are to read `instead`, too: a cast of x to bf16
 * or f16, or the sum of its two parts. So x lies in memory once (docs/numerics.md). Outputs and
 * states stay what they are. */
void ingot_read_as(ingot_context *, ingot_tensor *x, ingot_tensor *instead);
/* The same of sums that read x, as the gradient of a bias does; others read x as it is. */
void ingot_summed_as(ingot_context *, ingot_tensor *x, ingot_tensor *instead);
/* How the caller of the compiled model has an input or output, once the graph is whole:
 *   "int8", "uint8"  as what a QuantizeLinear at the input, or a DequantizeLinear at the output,
 * has behind or before it: the caller does that step, or has such numbers anyway "nhwc" with the
 * second axis, the channels, as the last one name: of which; NULL: of each that can be so, and
 * those that cannot stay.  May be said again. False after an error: there is no such tensor, or it
 * cannot be so. */
bool ingot_set_io(ingot_context *, const char *name, const char *form);
int ingot_error_count(const ingot_context *); /* errors reported so far */

/* Name the source of what is built from now on: the model's file, and its node and operator.
 * Messages and emitted comments carry them.  Strings are copied; NULL means none. */
void ingot_set_file(ingot_context *, const char *file);
void ingot_set_origin(ingot_context *, const char *node_name, const char *op_type);
/* The module of that node, "layer.0.attn", or NULL, until the next one; patterns of names may have
 * it (ingot_set_precision_of()).  Borrowed as long as the context. */
void ingot_set_module(ingot_context *, const char *module);
/* A node of the file that a model comes from, for reports; nothing is made of it. Texts are
 * borrowed as long as the context. */
typedef struct {
    const char *name;
    ingot_tensor *tensor; /* NULL: no tensor, or not known */
} ingot_source_value;
typedef struct {
    const char *node, *op; /* as ingot_set_origin() has them */
    const char *domain;    /* of the operator, or "" */
    const char *scope;     /* "layer1/conv": the groups around it, or NULL */
    int inside;            /* the node whose body holds it, or -1 */
    int n_in, n_out, n_attr;
    ingot_source_value *in, *out;
    const char **attr; /* name, text, name, text ... */
} ingot_source_node;
/* Its number; the fields may be filled in later. */
int ingot_source(ingot_context *, ingot_source_node *);
/* Report an error at the current origin: "file: node 'name' (Op): <message>". Returns poison. */
ingot_tensor *ingot_error(ingot_context *, ingot_status, const char *format, ...)
    INGOT_PRINTF(3, 4);
/* Report what may matter but stops nothing, in the same form. */
void ingot_warning(ingot_context *, const char *format, ...) INGOT_PRINTF(2, 3);
ingot_tensor *ingot_poison(ingot_context *);
bool ingot_is_poison(ingot_tensor *);
/* Memory that lives as long as the context; zeroed. */
void *ingot_alloc(ingot_context *, size_t bytes);

/* ---- dims ---------------------------------------------------------------------------- */

/* Arithmetic is exact while bounds fit 64 bits, and saturates beyond. A tensor in place of a dim is
 * an error. */
ingot_dim *ingot_dim_const(ingot_context *, int64_t);
/* A run-time integer with inclusive bounds; equal names are the same integer (bounds must
 * agree). */
ingot_dim *ingot_dim_var(ingot_context *, const char *name, int64_t lo, int64_t hi);
ingot_dim *ingot_dim_add(ingot_context *, ingot_dim *, ingot_dim *);
ingot_dim *ingot_dim_sub(ingot_context *, ingot_dim *, ingot_dim *);
ingot_dim *ingot_dim_mul(ingot_context *, ingot_dim *, ingot_dim *);
/* Rounded down, and what is left then, with the sign of the divisor; by the constant 0 they are
 * errors. */
ingot_dim *ingot_dim_div(ingot_context *, ingot_dim *, ingot_dim *);
ingot_dim *ingot_dim_mod(ingot_context *, ingot_dim *, ingot_dim *);
ingot_dim *ingot_dim_min(ingot_context *, ingot_dim *, ingot_dim *);
ingot_dim *ingot_dim_max(ingot_context *, ingot_dim *, ingot_dim *);
bool ingot_dim_is_const(ingot_dim *, int64_t *value); /* value may be NULL */
bool ingot_dim_equal(ingot_dim *, ingot_dim *);       /* provably equal */
int64_t ingot_dim_lo(ingot_dim *);                    /* sound bounds of its value */
int64_t ingot_dim_hi(ingot_dim *);
/* What only the run can tell.  The emitted model checks it as soon as the integers in it are known,
 * before anything that may rely on it is computed; a run in which it does not hold ends in
 * IGRT_ERR_SHAPE and names the node, `what` and the sizes.  What is known to hold costs nothing;
 * what is known not to hold is an error now.
 * what: a noun phrase for value, like "the size of axis 1 of its result"; copied. */
/* least <= value <= greatest; false after an error. */
bool ingot_require(ingot_context *, ingot_dim *value, ingot_dim *least, ingot_dim *greatest,
                   const char *what);
/* The two are equal; returns the one to go on with (a constant if one is), or poison. */
ingot_dim *ingot_require_equal(ingot_context *, ingot_dim *value, ingot_dim *wanted,
                               const char *what);
/* x has size d along that axis; returns x with that dim. */
ingot_tensor *ingot_require_size(ingot_context *, ingot_tensor *x, int axis, ingot_dim *d,
                                 const char *what);
/* lo <= d <= hi; returns a dim of the same value with those bounds, or poison. */
ingot_dim *ingot_require_bounds(ingot_context *, ingot_dim *d, int64_t lo, int64_t hi,
                                const char *what);

/* ---- tensors: what they are ---------------------------------------------------------- */

ingot_dtype ingot_dtype_of(ingot_tensor *);
int ingot_rank(ingot_tensor *);
ingot_dim *ingot_shape(ingot_tensor *, int axis); /* axis in 0..rank-1 */
bool ingot_static_shape(ingot_tensor *,
                        int64_t *dims); /* false if any dim is symbolic; dims may be NULL */
ingot_dim *ingot_numel(ingot_context *, ingot_tensor *); /* the number of elements */

/* The contents of a small integer (or bool) tensor as integer expressions, found through
 * any chain of shapes, casts, arithmetic, gathers, slices and concats.  Writes at most `max`
 * elements in row-major order and returns their number, or -1 if some element depends on run-time
 * data or there are more than `max`. */
int ingot_contents(ingot_context *, ingot_tensor *, ingot_dim **out, int max);
/* The same where constants are needed: false if any is not a constant. */
bool ingot_const_ints(ingot_context *, ingot_tensor *, int64_t *out, int max, int *n);
/* t as it is where `from`, an input of the same type and shape as `to`, has that value. */
ingot_tensor *ingot_assuming(ingot_context *, ingot_tensor *t, ingot_tensor *from,
                             ingot_tensor *to);
/* One element (the tensor's only one) as a double, if it is a constant. */
bool ingot_const_float(ingot_context *, ingot_tensor *, double *out);
/* True where the tensor depends on no input, state or run-time dim. */
bool ingot_is_const(ingot_tensor *);
/* Evaluate a constant tensor now, dense row-major into `out` (numel * dtype bytes). For small
 * ones. */
bool ingot_const_data(ingot_context *, ingot_tensor *, void *out, size_t bytes);

/* ---- leaves -------------------------------------------------------------------------- */

/* A model input, declared in order; name is kept for the emitted API (copied). No two have the
 * same. */
ingot_tensor *ingot_input(ingot_context *, const char *name, ingot_dtype, int rank,
                          ingot_dim *const *dims);
/* Declare a model output, in order.  The same tensor may be several outputs. */
void ingot_output(ingot_context *, const char *name, ingot_tensor *);
/* What the last axis of that output stands for: the n classes of a model, by name or by number (the
 * other list is NULL). They are told in model.h and in reports. */
void ingot_output_classes(ingot_context *, const char *output, int n, const char *const *name,
                          const int64_t *number);
/* Sequences and optionals of the emitted interface are groups of plain tensors: the next n inputs
 * (or outputs) are the elements of `name`.  length: how many of them are there, 0..n; NULL: no
 * sequence, n is 1.  present: 1 or 0; NULL: no optional.  An input group's length and present are
 * constants, or variables of ingot_dim_var that the caller of the model sets.  An element that may
 * be absent (ingot_group_here is not 1) has that as its first dim, which the interface does not
 * show: its shape is [here, dims...]. */
void ingot_input_group(ingot_context *, const char *name, int n, ingot_dim *length,
                       ingot_dim *present);
void ingot_output_group(ingot_context *, const char *name, int n, ingot_dim *length,
                        ingot_dim *present);
/* 1 where element i of a group is there, else 0. */
ingot_dim *ingot_group_here(ingot_context *, int i, ingot_dim *length, ingot_dim *present);
/* Constant data, dense row-major, little-endian.  The bytes are NOT copied: they must live as
 * long as the context (a mapped file, or ingot_alloc).  name is for comments and may be NULL. */
ingot_tensor *ingot_data(ingot_context *, const char *name, ingot_dtype, int rank,
                         const int64_t *dims, const void *bytes);
/* Constants of rank 0: a number that the type has not is wrapped (integers) or rounded (floats) to
 * it. */
ingot_tensor *ingot_scalar_i(ingot_context *, ingot_dtype, int64_t);
ingot_tensor *ingot_scalar_f(ingot_context *, ingot_dtype, double);
/* A 64-bit signed scalar holding a dim's value (ONNX Shape is a stack of these). */
ingot_tensor *ingot_from_dim(ingot_context *, ingot_dim *);
/* A 1-D i64 tensor holding n dims' values. */
ingot_tensor *ingot_from_dims(ingot_context *, int n, ingot_dim *const *dims);
/* Tensor of the given shape whose value is its coordinate along `axis`, of type i64. */
ingot_tensor *ingot_iota(ingot_context *, int rank, ingot_dim *const *dims, int axis);
/* A scalar integer tensor, known at run time only, as a dim bounded lo..hi; the value is read by
 * a step of the program, and one outside the bounds is an error status of the emitted model.  The
 * same tensor with the same bounds is the same dim. */
ingot_dim *ingot_read_dim(ingot_context *, ingot_tensor *, const char *name, int64_t lo,
                          int64_t hi);
/* A state tensor: lives in the context between runs, zero after reset; updated to `next` at the
 * end of a run by ingot_state_next (same dtype and shape). */
ingot_tensor *ingot_state(ingot_context *, const char *name, ingot_dtype, int rank,
                          const int64_t *dims);
void ingot_state_next(ingot_context *, ingot_tensor *state, ingot_tensor *next);
/* A state that begins as constant data: weights that are to be trained. The same data may be the
 * beginning of several. */
ingot_tensor *ingot_state_from(ingot_context *, const char *name, ingot_tensor *begin);
/* A model may have several functions over the same states and constants: a training step beside
 * inference, a prefill beside the step of a decoder.  What is declared before the first call is
 * <model>_run; inputs, outputs, next values of states and requirements that are declared from now
 * on are those of <model>_<name>, until the next call.  A state that a function gives no next value
 * stays as it is.  Inputs of one function are not to be used in another. */
void ingot_function(ingot_context *, const char *name);
/* May a function have that name? Up to 31 small letters, digits and _, and no name that every
 * bundle has (run, init, state ..). */
int ingot_function_name(const char *name);
/* A state that grows: a dim that is no constant is a variable of ingot_dim_var, from 0 on, its
 * length.  That is 0 after reset, and after a run what the next value has there; several states may
 * share it.  A run in which it is beyond its upper bound ends in IGRT_ERR_DIM.  The memory is that
 * of the longest next value; where the next value is a concat of the state and what is appended,
 * only that is written. */
ingot_tensor *ingot_growing_state(ingot_context *, const char *name, ingot_dtype, int rank,
                                  ingot_dim *const *dims);

/* The model's tokens are of this vocabulary: its bundle has these bytes, as
 * runtime_min/igrt_vocab.h reads them, and functions from text to tokens and back.  They are not
 * copied. */
void ingot_set_vocabulary(ingot_context *, const void *bytes, size_t n);

/* ---- elementwise: broadcasting as numpy does; both operands of one dtype -------------- */

/* clang-format off */
#define INGOT_FUNCTION(V) /* of floats */                                                          \
    V(exp) V(log) V(sin) V(cos) V(tan) V(asin) V(acos) V(atan) V(sinh) V(cosh) V(tanh) V(asinh)  \
    V(acosh) V(atanh) V(erf) V(sqrt)
#define INGOT_UNARY(V)                                                                           \
    INGOT_FUNCTION(V) V(neg) V(abs) V(sign) V(reciprocal) V(floor) V(ceil) V(trunc) V(round)     \
    V(isnan) V(not) V(bitnot)
/* div: IEEE for floats, truncating for integers.  mod: sign of the divisor (Python);
 * fmod: sign of the dividend (C).  Comparisons give bool.  and/or/xor are bitwise (on bool:
 * logical).  Of i32 alone: mulhi: x y / 2^31 to the nearest integer, halves up; shrr: x / 2^y to the
 * nearest integer, halves away from zero. */
#define INGOT_BINARY(V)                                                                          \
    V(add) V(sub) V(mul) V(div) V(mod) V(fmod) V(pow) V(max) V(min) V(and) V(or) V(xor) V(shl)   \
    V(shr) V(mulhi) V(shrr) V(eq) V(ne) V(lt) V(le) V(gt) V(ge)
/* clang-format on */
#define INGOT_DECLARE(name) ingot_tensor *ingot_##name(ingot_context *, ingot_tensor *);
INGOT_UNARY(INGOT_DECLARE)
#undef INGOT_DECLARE
#define INGOT_DECLARE(name) \
    ingot_tensor *ingot_##name(ingot_context *, ingot_tensor *, ingot_tensor *);
INGOT_BINARY(INGOT_DECLARE)
#undef INGOT_DECLARE
/* cond ? a : b, element by element: cond is bool, a and b are of one dtype; all three are broadcast
 * together. */
ingot_tensor *ingot_where(ingot_context *, ingot_tensor *cond, ingot_tensor *a, ingot_tensor *b);
/* Conversion by the rules of docs/numerics.md; saturate matters for float8 destinations only. */
ingot_tensor *ingot_cast(ingot_context *, ingot_tensor *, ingot_dtype);
ingot_tensor *ingot_cast_wrap(ingot_context *, ingot_tensor *,
                              ingot_dtype); /* float8 without saturation */
/* To an integer, whose least number a NaN becomes. */
ingot_tensor *ingot_cast_least(ingot_context *, ingot_tensor *, ingot_dtype);
ingot_tensor *ingot_bitcast(ingot_context *, ingot_tensor *, ingot_dtype); /* same element size */
/* Binary operation with a constant of x's dtype. */
ingot_tensor *ingot_add_c(ingot_context *, ingot_tensor *x, double);
ingot_tensor *ingot_mul_c(ingot_context *, ingot_tensor *x, double);
ingot_tensor *ingot_max_c(ingot_context *, ingot_tensor *x, double);
ingot_tensor *ingot_min_c(ingot_context *, ingot_tensor *x, double);
ingot_tensor *ingot_like(ingot_context *, ingot_tensor *x, double); /* scalar of x's dtype */

/* ---- movement ------------------------------------------------------------------------
 * Arrays have one entry for each axis of x, unless a rank says how many; axes count from 0. */

/* The same elements in row-major order; their number may not change (where only the run knows it,
 * the run checks). */
ingot_tensor *ingot_reshape(ingot_context *, ingot_tensor *, int rank, ingot_dim *const *dims);
ingot_tensor *ingot_reshape_c(ingot_context *, ingot_tensor *, int rank, const int64_t *dims);
/* Axis i of the result is axis perm[i] of x; each comes once. */
ingot_tensor *ingot_permute(ingot_context *, ingot_tensor *, const int *perm);
/* Dims of size 1 (and missing leading ones) are repeated; the others stay as they are. */
ingot_tensor *ingot_expand(ingot_context *, ingot_tensor *, int rank, ingot_dim *const *dims);
/* lo, hi per axis; negative ones crop.  The new elements are zero / `value`. */
ingot_tensor *ingot_pad(ingot_context *, ingot_tensor *, ingot_dim *const *lo,
                        ingot_dim *const *hi);
ingot_tensor *ingot_pad_value(ingot_context *, ingot_tensor *, ingot_dim *const *lo,
                              ingot_dim *const *hi, ingot_tensor *value);
ingot_tensor *ingot_pad_c(ingot_context *, ingot_tensor *, const int64_t *lo, const int64_t *hi,
                          double value);
/* x[begin .. begin+size) per axis, which has to be inside of it. */
ingot_tensor *ingot_shrink(ingot_context *, ingot_tensor *, ingot_dim *const *begin,
                           ingot_dim *const *size);
ingot_tensor *ingot_flip(ingot_context *, ingot_tensor *, unsigned axes); /* bit i: axis i */
/* Composed movement. A new axis of size 1, which is number `axis` of the result; an axis of size 1
 * that goes. */
ingot_tensor *ingot_unsqueeze(ingot_context *, ingot_tensor *, int axis);
ingot_tensor *ingot_squeeze(ingot_context *, ingot_tensor *, int axis);
/* Axes from..to-1 become one; where there are none, one of size 1. */
ingot_tensor *ingot_flatten(ingot_context *, ingot_tensor *, int from, int to);
ingot_tensor *ingot_transpose(ingot_context *, ingot_tensor *, int a, int b); /* two axes swap */
/* x[begin : : step] along one axis, `count` elements; step may be negative. */
ingot_tensor *ingot_slice(ingot_context *, ingot_tensor *, int axis, ingot_dim *begin,
                          ingot_dim *count, int64_t step);
/* n > 0 tensors of one dtype, one behind the other along an axis; their other dims are equal. */
ingot_tensor *ingot_concat(ingot_context *, int n, ingot_tensor *const *, int axis);
/* The same along a new axis of size n, for tensors of one shape. */
ingot_tensor *ingot_stack(ingot_context *, int n, ingot_tensor *const *, int axis);
/* All of x so many times along each axis. */
ingot_tensor *ingot_tile(ingot_context *, ingot_tensor *, ingot_dim *const *repeats);
/* Windows: axis `axis` of size n becomes two axes (out, k) with element x[out*stride + k*dilation];
 * k goes to the end of the shape, out = (n - dilation (k - 1) - 1) / stride + 1.  Padding is the
 * caller's. */
ingot_tensor *ingot_window(ingot_context *, ingot_tensor *, int axis, int64_t k, int64_t stride,
                           int64_t dilation);

/* ---- reduce, gather, scatter --------------------------------------------------------- */

typedef enum {
#define MONOID(id, name, combine) INGOT_REDUCE_##id,
#include "monoids.def"
    INGOT_REDUCE_COUNT
} ingot_reduce_op;

/* axes: bit i is axis i; they are gone from the shape, or, by keepdims, of size 1.  Integers wrap;
 * floats accumulate in docs/numerics.md's type.  An empty reduction gives the monoid's identity. */
ingot_tensor *ingot_reduce(ingot_context *, ingot_reduce_op, ingot_tensor *, unsigned axes,
                           bool keepdims);
/* y[.., i, ..] = x[.., 0, ..] op ... op x[.., i, ..], in this order, along an axis of x (from
 * 0). */
ingot_tensor *ingot_scan(ingot_context *, ingot_reduce_op, ingot_tensor *x, int axis);
ingot_tensor *ingot_sum(ingot_context *, ingot_tensor *, unsigned axes, bool keepdims);
/* The sum by the number of elements. */
ingot_tensor *ingot_mean(ingot_context *, ingot_tensor *, unsigned axes, bool keepdims);
/* Index (i64) of the first (or last) greatest, or least, element along an axis, which has some; a
 * NaN is the extreme. */
ingot_tensor *ingot_argmax(ingot_context *, ingot_tensor *, int axis, bool keepdims, bool last);
ingot_tensor *ingot_argmin(ingot_context *, ingot_tensor *, int axis, bool keepdims, bool last);
/* out[c] = x[i0[c], i1[c], ...]: one integer tensor per axis of x, broadcast together to the
 * result's shape.  Indices are clamped into range (no negative wrap here: ONNX's is in
 * ingot_wrap_index). */
ingot_tensor *ingot_gather(ingot_context *, ingot_tensor *x, ingot_tensor *const *index);
/* Says of a gather or an update that its indices are those of the model: in a bundle that checks,
 * one from data that is out of range ends the run. Those that are known now are checked now, or
 * required to be in range where a size is known to the run only.
 * wraps: they went through ingot_wrap_index. Returns its argument, or poison. */
ingot_tensor *ingot_index_checked(ingot_context *, ingot_tensor *, bool wraps);
/* x gathered along one axis, which becomes the axes of the index, a tensor of integers of any shape
 * (numpy take; negatives wrap). */
ingot_tensor *ingot_take(ingot_context *, ingot_tensor *x, ingot_tensor *index, int axis);
/* x at place i, a scalar, of one axis, which goes away: an iteration's element of what a loop goes
 * over. i is known to be in range and no place from the end. Of an axis without elements, zeros,
 * which nothing reads: the loop has no iterations. */
ingot_tensor *ingot_element(ingot_context *, ingot_tensor *x, ingot_tensor *i, int axis);
ingot_tensor *ingot_wrap_index(ingot_context *, ingot_tensor *index,
                               ingot_dim *size); /* i < 0 ? i + size : i */
typedef enum { INGOT_SET, INGOT_ADD, INGOT_MUL, INGOT_MAX, INGOT_MIN } ingot_update_op;
/* A copy of x in which, for every c in row-major order, out[i0[c], i1[c], ...] is combined with
 * v[c]; v and all indices are broadcast together.  Updates outside x are dropped. */
ingot_tensor *ingot_update(ingot_context *, ingot_update_op, ingot_tensor *x, ingot_tensor *v,
                           ingot_tensor *const *index);
/* Ask that this value be stored rather than recomputed by its readers. */
ingot_tensor *ingot_contiguous(ingot_context *, ingot_tensor *);

/* ---- control flow and library kernels ------------------------------------------------ */

/* A region: nodes built between begin and its end belong to the body; what the body uses from
 * outside is captured by itself.  Regions nest.
 *
 *     ingot_region *r = ingot_region_begin(c);
 *     ingot_tensor *s = ingot_region_param_like(c, r, x);   // a carried value's name inside
 *     ... build ...
 *     ingot_region_end(c, r, n, results);
 */
typedef struct Region ingot_region;
ingot_region *ingot_region_begin(ingot_context *);
ingot_tensor *ingot_region_param(ingot_context *, ingot_region *, ingot_dtype, int rank,
                                 ingot_dim *const *dims);
ingot_tensor *ingot_region_param_like(ingot_context *, ingot_region *, ingot_tensor *);
void ingot_region_end(ingot_context *, ingot_region *, int n, ingot_tensor *const *results);

/* for (i = 0; i < trip && cond; i++) (cond, carried..., scan...) = body(i, cond, carried...)
 * The body's params, in order: i (scalar i64), cond (scalar bool), carried values.  Its results:
 * cond, the carried values' next ones (same dtype and shape), then scan values.
 * trip: a dim (its upper bound sizes the scan outputs), or NULL for "while cond"; then nscan must
 * be 0.
 * cond: scalar bool or NULL for true.  out: ncarried final values, then nscan stacked values of
 * shape [iterations, ...]; `iterations` equals trip when the body never clears cond, else a
 * run-time dim. */
void ingot_loop(ingot_context *, ingot_dim *trip, ingot_tensor *cond, int ncarried,
                ingot_tensor *const *carried, ingot_region *body, int nscan, ingot_tensor **out);
/* out[i] = cond ? then_results[i] : else_results[i], i < n; only the branch taken is run.  cond:
 * scalar bool. The branches are regions without params, with n results each, of equal dtypes and
 * shapes. */
void ingot_if(ingot_context *, ingot_tensor *cond, ingot_region *then_branch,
              ingot_region *else_branch, int n, ingot_tensor **out);

/* A library kernel (runtime_min/lib/NAME.c). Output i has dtype, rank and dims; dims may be
 * run-time integers made by ingot_call_count, which the kernel sets. */
typedef struct {
    ingot_dtype dtype;
    int rank;
    ingot_dim *dims[INGOT_MAX_RANK];
} ingot_call_out;
struct ingot_custom_op;
/* What a call was given and gives, for its gradient (ingot_gradient()): gradient[i] is that of
 * result i, NULL: none. */
typedef struct {
    int n_in, n_out;
    ingot_tensor *const *in, *const *out, *const *gradient;
    const int64_t *ints;
    const double *floats;
    const void *user;
} ingot_call_values;
/* Sets in_gradient[i], of the type and shape of operand i; left NULL, the operand has none. */
typedef void ingot_call_gradient(ingot_context *, const ingot_call_values *,
                                 ingot_tensor **in_gradient);
typedef struct {
    const char *name; /* file runtime_min/lib/<name>.c, function igrt_lib_<name> */
    int n_in, n_out, n_int, n_float, n_count;
    ingot_tensor *const *in;
    const ingot_call_out *out;
    const int64_t *ints;
    const double *floats;
    ingot_dim *const *counts; /* from ingot_call_count, in the order the kernel writes them */
    size_t scratch_bytes;     /* planned in the arena */
    /* the last so many outputs are what others point into: they stay to the end of the run */
    int n_kept;
    const struct ingot_custom_op *custom; /* ingot_custom() sets it; NULL: a library kernel */
    ingot_call_gradient *gradient;        /* NULL: it has none, and a path through it is an error */
    const void *gradient_user;
} ingot_call_desc;
ingot_dim *ingot_call_count(ingot_context *, const char *hint, int64_t lo,
                            int64_t hi); /* a fresh integer */
/* out: n_out tensors, or NULL where there are only counts. */
void ingot_call(ingot_context *, const ingot_call_desc *, ingot_tensor **out);

/* A custom operator: a C function of the user's, whose declaration and comment say what it takes
 * (docs/custom_ops.md).
 * function NULL: the file's only one. The file is read by the first use, which tells what is wrong
 * with it. */
typedef struct ingot_custom_op ingot_custom_op;
typedef struct {
    const char *name;
    enum { INGOT_ATTR_INT, INGOT_ATTR_FLOAT, INGOT_ATTR_OTHER } kind;
    int64_t i;
    double f;
} ingot_attribute;
/* Belongs to the context; the same file and function are the same operator. */
ingot_custom_op *ingot_custom_open(ingot_context *, const char *file, const char *function);
/* The gradient of that input (from 0) is what `gradient` makes of all inputs, all results and the
 * gradients of all results, in this order, with the attributes of the operator that it has
 * parameters for.  An input without one has no gradient: a path through it is an error
 * (ingot_gradient()). */
void ingot_custom_gradient(ingot_context *, ingot_custom_op *, int input,
                           ingot_custom_op *gradient);
/* Attributes are found by their names; out: n_out tensors. */
void ingot_custom(ingot_context *, ingot_custom_op *, int n_in, ingot_tensor *const *in, int n_attr,
                  const ingot_attribute *attr, int n_out, ingot_tensor **out);

/* ---- derivatives (docs/training.md) ---------------------------------------------------- */

/* gx[i]: the gradient of the loss, a float tensor of one element, with respect to x[i], by reverse
 * mode: a tensor of the type and shape of x[i], made of the same operations as any other, which may
 * be differentiated again.  NULL: the loss does not depend on x[i], or only through comparisons;
 * zeros: it does, but is flat (floor, sign).
 *   x[i] are inputs, states, data or anything in between; a tensor whose elements are one constant
 * is refused, since equal constants are one tensor.  An op without a rule between the loss and an
 * x[i], and a path through integers, are errors that name the node; then all gx[i] are poison.
 * Loops on the way get further results, so a graph is differentiated before it is compiled. */
void ingot_gradient(ingot_context *, ingot_tensor *loss, int n, ingot_tensor *const *x,
                    ingot_tensor **gx);
typedef struct {
    size_t struct_size;
    /* ingot_round() and casts to integers have slope 1, not 0 (Bengio et al., arXiv:1308.3432) */
    bool straight_through;
} ingot_gradient_options;
/* The same of the sum over i of the elements of y[i] gy[i], where gy[i] has y[i]'s type and shape;
 * gy, or gy[i], NULL: ones.  options may be NULL. */
void ingot_gradient_of(ingot_context *, const ingot_gradient_options *, int ny,
                       ingot_tensor *const *y, ingot_tensor *const *gy, int nx,
                       ingot_tensor *const *x, ingot_tensor **gx);
/* x, as a constant for ingot_gradient(): no gradient passes. */
ingot_tensor *ingot_stop(ingot_context *, ingot_tensor *x);

#include "ingot_ops.h" /* the op library: convolution, norms, attention... all composition of the above */

/* ---- compile ------------------------------------------------------------------------- */

/* A memory of the device that intermediate tensors may lie in. */
typedef struct {
    const char *name; /* letters and digits; part of C names */
    int64_t bytes;    /* its size; 0, of the last one only: as large as it has to be */
} ingot_memory;

/* A tensor's value: dense, row-major, elements as in igrt.h. */
typedef struct {
    const void *data; /* the caller's as long as it is used, or the context's */
    int64_t dims[INGOT_MAX_RANK];
    int rank;
    ingot_dtype dtype;
} ingot_value;

/* All zeros are the defaults; where anything is set, struct_size has to be. */
typedef struct {
    size_t struct_size;
    const char *name;    /* prefix of everything emitted; a C identifier; NULL = "model" */
    const char *target;  /* "c", "opencl", "cuda" with ":machine", or "cuda+c"; NULL = "c" */
    const char *weights; /* "auto", "array", "blob", "incbin"; NULL = auto */
    int64_t max_ram;     /* bytes; 0 = no limit */
    bool naive;          /* kernels without tiles, lanes and threads */
    bool summary;        /* a note at the end: memory, weights, kernels, and which are slow */
    int verbose;
    const char *source;     /* model file named in comments (its base name is used) */
    const char *sched;      /* a .sched file whose decisions replace the compiler's; NULL = none */
    const char *save_sched; /* where to write the decisions; NULL = nowhere */
    /* in order of preference; a tensor lies in the first one that has room and use for it */
    const ingot_memory *memories;
    int nmemory; /* 0: one memory, the arena */
    /* Golden data of <model>_selftest, by number of input and output; NULL: made by a formula where
     * that is quick. */
    const ingot_value *selftest_in, *selftest_out;
    bool no_selftest; /* none in the bundle */
    /* "auto", "none": every value is stored, "all": in as few kernels as may be; NULL: auto */
    const char *fuse;
    const char *no_rewrite; /* names of graph rewrites that are not done, "a,b"; NULL: all are */
    /* Build files: "cmake", "make", "zephyr", "esp-idf", "arduino", "cmsis"; NULL: cmake and
     * make. */
    const char *package;
    const char *prefer; /* "ram" or "time": what is dear; NULL: as the target has it */
    /* of a .sched file's sections for one target, the one that is for so many; 0: one */
    int threads;
    int64_t max_vram; /* bytes of a GPU's memory; 0 = no limit */
    /* what is written is not looked at before, a few results of each step beside the graph */
    bool no_check;
    bool io_in_arena; /* inputs and outputs have places in the arena, on which others may lie too */
    int devices;      /* that share the work, all alike, each with a memory of its own; 0: one */
    /* how they do: "batch", "tensor" or "layers" (docs/devices.md); NULL: as a .sched file says */
    const char *parallel;
} ingot_options;

/* Write the bundle into `dir` (created; an existing bundle is replaced, a folder that holds
 * something else is not; nothing is left on failure). */
ingot_status ingot_compile(ingot_context *, const ingot_options *, const char *dir);
/* Text of the "graph", the "plan", all "kernels", what a pass of lowering leaves ("linearize";
 * compiler/kernel/lowered.h), or several ("plan,kernels"); free() it. NULL on failure. */
char *ingot_dump(ingot_context *, const ingot_options *, const char *pass);
/* The plan as JSON (arena, weights, steps; docs/report.md); free() it. NULL on failure. */
char *ingot_inspect_json(ingot_context *, const ingot_options *);
/* Reference interpreter: run the graph on given inputs, one value for each in their order.  Outputs
 * are allocated in the context. */
ingot_status ingot_interpret(ingot_context *, int n_in, const ingot_value *in, int n_out,
                             ingot_value *out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
