/* ingot_onnx.h - ONNX models as graphs of the builder API.
 *
 *     ingot_onnx *m = ingot_onnx_open(c, "model.onnx");
 *     for (int i = 0; i < ingot_onnx_input_count(m); i++)
 *         ... look at ingot_onnx_input(m, i) and choose dims and binds ...
 *     bool ok = ingot_onnx_check(m) && ingot_onnx_build(m, &options);
 *     ... compile ...
 *     ingot_context_free(c);
 *     ingot_onnx_close(m);     after the context: weights stay in the mapped file
 *
 * Faults go to the context's sink; a function that fails has told why.
 */
#ifndef INGOT_ONNX_H
#define INGOT_ONNX_H

#include "ingot.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct ingot_onnx ingot_onnx;

#define INGOT_ONNX_MAX_OPSET 28
#define INGOT_ONNX_STRING_BYTES 256

typedef enum {
    INGOT_ONNX_TENSOR,
    INGOT_ONNX_SEQUENCE,
    INGOT_ONNX_OPTIONAL,
    INGOT_ONNX_OTHER
} ingot_onnx_kind;

/** A model input or output as the file declares it. */
typedef struct {
    const char *name;  /* of an output that the file lists again another one: "y_2" */
    const char *value; /* the file's name */
    ingot_onnx_kind kind;
    bool sequence;                /* of tensors; kind OPTIONAL: an optional one */
    ingot_dtype dtype;            /* of the tensor, or of a sequence's or optional's tensors */
    int rank;                     /* -1: not declared */
    int64_t dims[INGOT_MAX_RANK]; /* -1: free */
    const char *dim_names[INGOT_MAX_RANK]; /* of the free ones: the file's name, else "x_0" by
                                            * input and axis; NULL for the others */
} ingot_onnx_io;

/** What a free dim is: lo == hi fixes it at compile time; same_as: that of another free dim.
 * By name also bounds of any integer tensor's value ("n") and of any tensor's size ("y_0": that of
 * 'y' along axis 0), which the model checks when it runs; free dims of inputs come first. */
typedef struct {
    const char *name;
    int64_t lo, hi;
    const char *same_as; /* or NULL */
} ingot_onnx_dim;

/** An input whose value is known at compile time. Everything is borrowed as long as the context. */
typedef struct {
    const char *name;
    ingot_dtype dtype;
    int rank;
    const int64_t *dims;
    const void *bytes; /* dense, row-major; strings: pointers to them */
} ingot_onnx_bind;

typedef struct {
    size_t struct_size;
    const ingot_onnx_dim *dims;
    int n_dims;
    const ingot_onnx_bind *binds;
    int n_binds;
    /* room for the text of each string that the model makes, on average; 0:
     * INGOT_ONNX_STRING_BYTES */
    int64_t string_bytes;
} ingot_onnx_options;

/** An operator that a function of the user's computes: "acme.com:Swish"; without a domain, the
 * standard's. */
typedef struct {
    const char *name;
    ingot_custom_op *op;
} ingot_onnx_op;

/** An input and an output that are one tensor in the context, which lives from run to run: zero at
 * first, then what the run before has made of it. */
typedef struct {
    const char *input, *output;
} ingot_onnx_state;

/** Maps and reads a model file. NULL on failure. */
ingot_onnx *ingot_onnx_open(ingot_context *, const char *path);
/** Unmaps; to be called after the context is freed. NULL is allowed. */
void ingot_onnx_close(ingot_onnx *);

/** The files that were read: the model is number 0, then its external data as far as it has been
 * used. NULL: no more. They stay until the model is closed. */
const char *ingot_onnx_file(const ingot_onnx *, int i);

/** Inputs that are not initializers, and outputs, in the file's order. */
int ingot_onnx_input_count(const ingot_onnx *);
const ingot_onnx_io *ingot_onnx_input(const ingot_onnx *, int i);
int ingot_onnx_output_count(const ingot_onnx *);
const ingot_onnx_io *ingot_onnx_output(const ingot_onnx *, int i);

/** These operators are the user's; to be said before the model is checked. The list is borrowed. */
void ingot_onnx_set_ops(ingot_onnx *, const ingot_onnx_op *, int n);

/** These inputs and outputs become states: they are no longer among the model's inputs and outputs,
 * whose numbers change. To be said first. The list is borrowed. False after an error. */
bool ingot_onnx_set_states(ingot_onnx *, const ingot_onnx_state *, int n);

/** Reports every node that no lowering exists for, before any work. True if there is none. */
bool ingot_onnx_check(ingot_onnx *);

/** Declares inputs, builds all nodes, declares outputs. A bound input is still declared, so that
 * inputs keep their numbers, but its value is the constant. options may be NULL. */
bool ingot_onnx_build(ingot_onnx *, const ingot_onnx_options *);

/** "f32" and so on for a TensorProto.DataType; false if there is none. */
bool ingot_onnx_dtype(int32_t onnx, ingot_dtype *out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
