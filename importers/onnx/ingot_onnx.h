/* ingot_onnx.h - ONNX models as graphs of the builder API, for who knows that it is one;
 * ingot_model.h has the same for any format.
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

#include "ingot_model.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct ingot_onnx ingot_onnx;

#define INGOT_ONNX_MAX_OPSET 28

/** Maps and reads a model file. NULL on failure. */
ingot_onnx *ingot_onnx_open(ingot_context *, const char *path);
/** Unmaps; to be called after the context is freed. NULL is allowed. */
void ingot_onnx_close(ingot_onnx *);

/** The files that were read: the model is number 0, then its external data as far as it has been
 * used. NULL: no more. They stay until the model is closed. */
const char *ingot_onnx_file(const ingot_onnx *, int i);

/** Inputs that are not initializers, and outputs, in the file's order. */
int ingot_onnx_input_count(const ingot_onnx *);
const ingot_model_io *ingot_onnx_input(const ingot_onnx *, int i);
int ingot_onnx_output_count(const ingot_onnx *);
const ingot_model_io *ingot_onnx_output(const ingot_onnx *, int i);

/** These operators are the user's; to be said before the model is checked. The list is borrowed. */
void ingot_onnx_set_ops(ingot_onnx *, const ingot_model_op *, int n);

/** These inputs and outputs become states: they are no longer among the model's inputs and outputs,
 * whose numbers change. To be said first. The list is borrowed. False after an error. */
bool ingot_onnx_set_states(ingot_onnx *, const ingot_model_state *, int n);

/** Reports every node that no lowering exists for, before any work. True if there is none. Else
 * ingot_onnx_build() fails, and reports what is wrong besides. */
bool ingot_onnx_check(ingot_onnx *);

/** Declares inputs, builds all nodes, declares outputs. A bound input is still declared, so that
 * inputs keep their numbers, but its value is the constant. options may be NULL. */
bool ingot_onnx_build(ingot_onnx *, const ingot_model_options *);

/** "f32" and so on for a TensorProto.DataType; false if there is none. */
bool ingot_onnx_dtype(int32_t onnx, ingot_dtype *out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
