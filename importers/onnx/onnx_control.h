/*
 * onnx_control.h - what the operators with subgraphs share: If (onnx_if.c), Loop (onnx_loop.c),
 * Scan (onnx_scan.c).
 *
 * A condition that is known now chooses its branch now, and the branches may then differ in every
 * way. Otherwise branches and bodies become regions, which capture what they use of the graph
 * around them. Sequences and optionals are carried and chosen tensor by tensor, in a form that is
 * the same everywhere (onnx_form.c).
 */
#ifndef ONNX_CONTROL_H
#define ONNX_CONTROL_H

#include "onnx.h"

/* Appends the tensors v is made of to list, if there is one. Their number. */
int leaves_of(ingot_context *c, const Value *v, ingot_tensor **list);
/* A value of v's structure made of other tensors, taken from *leaf on. */
Value *value_from(Lowering *n, const Value *v, ingot_tensor ***leaf);
bool same_structure(const Value *a, const Value *b);
int all_leaves(ingot_context *c, int count, Value *const *v, ingot_tensor **list);
bool control_same_type(ingot_tensor *a, ingot_tensor *b);
bool control_poisoned(int count, ingot_tensor *const *x);
/* The values become the node's outputs. */
ingot_tensor *control_give(Lowering *n, int count, Value **v);
ingot_tensor *control_fail(Lowering *n);
/* One element in each branch, in tensors of different rank: the one of more axes; else NULL. */
Value *one_element(Value *a, Value *b);

/* onnx_loop_vars.c. The body of a Loop with its carried inputs in another order: last, and without
 * an output, those that it hands on as they are. from: the number that each had; n_carried: becomes
 * the number of the others. */
const Onnx__GraphProto *loop_sorted(Lowering *, const Onnx__GraphProto *body, int *n_carried,
                                    int *from);
/* Whether the body reads a carried value at all. */
bool loop_reads(const Onnx__GraphProto *body, int i_carried);
/* By how much a carried integer grows in each iteration; 0: nothing of the kind. */
int64_t loop_step(Lowering *, const Onnx__GraphProto *body, int i_carried, Value *const *carried);
/* How many iterations run until the condition is false that the body gives, if the first one runs,
 * or if not *exact, how many run at most; NULL: not known. carried: and after them, what stays as
 * it is. */
ingot_dim *loop_count(Lowering *, const Onnx__GraphProto *body, int n_carried,
                      Value *const *carried, const int64_t *step, bool *exact);

#endif
