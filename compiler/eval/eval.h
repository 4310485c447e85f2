/* eval.h - the reference interpreter of graphs: the oracle of tests, and what folds constants. */
#ifndef EVAL_H
#define EVAL_H

#include "ir.h"

typedef struct Interp Interp;
Interp *interp_new(Context *);
void interp_free(Interp *);
/* Values of run-time integers and leaves (INPUT, STATE, PARAM); data is borrowed. */
void interp_set_var(Interp *, int var, int64_t);
void interp_bind(Interp *, Node *leaf, const void *data);
/* Dense row-major value of n; owned by the Interp. NULL (with a report) if it cannot be
 * computed. */
const void *interp_eval(Interp *, Node *n, int64_t *dims);
/* One ALU op on an array of lanes, in the dtypes' storage form: the contract of
 * docs/numerics.md. */
void interp_alu(Node *n, size_t lanes, void *out, const void *const *in);
void interp_to_f64(ingot_dtype, size_t n, double *out,
                   const void *in); /* of any type but strings and complex numbers */

#endif
