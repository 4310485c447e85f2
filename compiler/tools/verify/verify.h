/* verify.h - a program beside its naive form and beside the interpreter. */
#ifndef VERIFY_H
#define VERIFY_H

#include "plan_interp.h"
#include "run.h"

ingot_status command_verify(Options *);    /* verify_model.c */
HostTensor tensor_of(const ingot_value *); /* verify_model.c */
/* verify_model.c: what the interpreter makes of the inputs: of the graph as it was asked for, or
 * rewritten as it is compiled; rounds: whether that rounds at other places. */
ingot_status verify_interpret(const Session *, LoadedModel *, bool rewritten, ingot_value *want,
                              bool *rounds);
/* verify_precision.c: --precision: how far the outputs are from those of the model whose products
 * are all of f32, and which node adds most to that. Nothing judges it: it is what was asked for. */
ingot_status tell_precision(const Session *, const ingot_value *narrow);
/* Each kernel of the session's program beside its naive form, step by step (lockstep());
 * INGOT_DIFFERS if one differs. */
ingot_status verify_beside_naive(const Session *, const char *out);
/* rounding_bound.c: how far an element of a step's result may be from what another order of the
 * same sums gives, or 0. */
typedef struct Rounding Rounding;
Rounding *rounding_new(const Session *, const Plan *, Arena *);
void rounding_free(Rounding *);
/* Run-time integers as they are now; NULL: those that the inputs show, and no others are known. */
void rounding_sizes(Rounding *, struct Interp *);
/* The step wrote these bytes there; before it is asked about. */
void rounding_wrote(Rounding *, const Step *, const Buffer *, int64_t offset, const char *bytes);
double rounding_bound(Rounding *, const Step *, const Buffer *, size_t element);
/* side_by_side.c: runs the program beside its naive twin (the same plan without opts, in a folder
 * of its own) on the same inputs, step by step; tells the steps that differ, or with -v all.
 * INGOT_DIFFERS if one does. The outputs of the twin are left in a folder `out` in work. */
ingot_status lockstep(const Session *, const Plan *, const char *twin, const char *out);
ingot_status interpreter_failed(const Session *, const struct PlanInterp *); /* after a message */
ingot_status lockstep_interpreted(const Session *, struct PlanInterp *, const ingot_value *in,
                                  ingot_value *out);
/* verify_moves.c: how far each number of the results moves by rounding, which is found out once
 * that is asked. The context is borrowed; want: the results. */
struct Moves *moves_new(Arena *, Context *, const ingot_value *in, int nout,
                        const ingot_value *want);
/* The same of a network that computes in types narrower than f32: each node rounds to its type, and
 * a kernel of several nodes once. NULL: it computes in none. */
struct Moves *moves_of_narrow(Arena *, Context *, const ingot_value *in, int nout,
                              const ingot_value *want);
/* Whether the numbers of result i are no further apart than that explains. */
bool moves_explain(struct Moves *, int i, const Difference *, const HostTensor *got,
                   const HostTensor *want);
/* verify_functions.c: all functions of a model that is trained, interpreted. */
ingot_status verify_functions(Options *);

#endif
