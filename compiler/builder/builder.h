/* builder.h - what the files of the builder share: checks, text for messages, uniform tensors.
 *
 * A uniform tensor is one scalar CONST under RESHAPE and EXPAND.  The builder keeps every tensor
 * whose elements are provably one constant in that form, so that uniform() finds the constant in
 * a few steps and algebra (x * 1 -> x) is a look at one operand. */
#ifndef BUILDER_H
#define BUILDER_H

#include "ir.h"

#define MAX_ELEMENTS (INT64_C(1) << 47)

/* ---- dims.c */
Var *var_new(Context *, VarKind, const char *name, int64_t lo, int64_t hi);
/* Are these dims of a tensor?  Reports negative ones and sizes past MAX_ELEMENTS. */
bool shape_check(Context *, const char *what, int rank, Node *const *dims);
bool shape_same(Context *, int rank, Node *const *a, Node *const *b);
Node *shape_numel(Context *, int rank, Node *const *dims);
bool shape_is_empty(int rank, Node *const *dims);               /* some dim is the constant 0 */
const char *shape_text(Context *, int rank, Node *const *dims); /* "[2, n, 3]", in the arena */
const char *dim_text(Context *, Node *);

/* ---- index_bounds.c: what the indices of a GATHER or UPDATE require of the sizes that they go
 * into; false after an error. *never: no run comes further than to here (never_place()). */
bool index_places(Context *, Node *x, bool wraps, bool *never);
/* A place that is outside of an axis for certain. False: that is an error; but a region, of a
 * branch or a loop, need not be run: there it is a requirement which no run has, and what is made
 * of it may be anything. */
bool never_place(Context *, Node *place, const Node *source, int axis, bool wraps);
/* An axis of this size has elements wherever a shape has some. */
bool require_place(Context *, Node *size, int rank, Node *const *dims, const char *what);

/* ---- require.c, control.c */
/* What no run of this region can have: one that does not come to it goes on. */
void require_or_skip(Context *, Node *value, Node *least, Node *greatest, const char *what);
void requires_move(Context *, Requires *to, const Requires *from);
Node *dim_copy(Context *, Node *d, const char *what, int64_t lo,
               int64_t hi); /* a run-time integer of its own */

/* (move.c) x, whose sizes are these: they have been required to be. */
Node *with_shape(Context *, Node *x, Node *const *dims);

/* ---- leaves.c */
/* groups.c: whether input or output `slot`, x, is an element that may be absent: its first dim, or
 * NULL. */
Node *group_here(Context *, const IoGroup *, int ngroup, int slot, Node *x);
Node *uniform_make(Context *, Node *scalar, int rank, Node *const *dims);
/* A rank-0 operation on CONSTs as a CONST, evaluated as the interpreter would; else n itself. */
Node *fold_scalar(Context *, Node *n);
bool const_is(Node *scalar,
              double value); /* a CONST equal to value, bit for bit where value is 0 */

/* ---- move.c */
Node *broadcast_to(Context *, Node *x, int rank, Node *const *dims); /* checked already */
/* The same movement of another x of the same shape; NULL: not of this op (GATHER, CONCAT, KEEP). */
Node *move_again(Context *, Node *move, Node *x);
/* Where an axis of the source of a RESHAPE, PERMUTE or EXPAND is in its result; -1: it is there no
 * more. */
int axis_moved(const Node *t, int axis);
/* reduce.c: a sum over many elements in one chain loses digits: rows first, then their sums. */
Node *sum_rows(Context *, Node *x, unsigned axes, bool keepdims);
/* (elementwise.c) The common shape of n tensors by numpy's rules. Reports; false if there is
 * none. */
bool broadcast_shape(Context *, const char *what, int n, Node *const *x, int *rank, Node **dims);

static inline bool poisoned(Node *x)
{
    return x->op == OP_POISON;
}

/* control.c: result i of a CALL, LOOP or IF. */
Node *tuple_result(Context *, Node *tuple, int i);
/* (control.c) What a value of the body was in each iteration of a LOOP, stacked: [iterations,
 * ...].  The loop gives one more result than before, the last, which has no number yet that
 * anybody knows. It has a bound on its iterations. */
Node *loop_stacked(Context *, Node *loop, Node *inside);
/* (control.c) The counter of a copy of the loop. */
Node *loop_counter(Context *, const Loop *);

/* control.c: fills the region's captures; outside: by node, whether it is none of the region's. */
void region_captures(Context *, struct Region *, const bool *outside);
/* loop_parts.c: counts from 0 below n, in a loop that is made later. */
Node *parts_counter(Context *, int64_t n);
/* loop_parts.c: x with a part of it, of v's size along an axis and from there on, taken from v. */
Node *part_update(Context *, Node *x, Node *v, int axis, Node *from);
/* loop_parts.c: tensors that a loop makes part by part, from updates of anything by each part: they
 * take the place of these. */
void loop_parts(Context *, Node *counter, int n, Node *const *update, Node **out);
/* (control.c) By node: all that these roots are made of, and they themselves, which lie outside of
 * a region that reads them. */
bool *region_outside(Arena *, const Context *, int nroot, Node *const *root);
/* (control.c) The sources of an IF: the condition, and what its branches capture, once each. */
Node **if_sources(Arena *, Node *cond, const If *, int *n);

#endif
