/* symbolic.h - what the files of the integer simplifier share.
 *
 * An INDEX expression is kept as a polynomial with integer coefficients over *atoms*: nodes that
 * are no sum, no product and no constant (VAR, RANGE, FLOORDIV, MOD, MIN, MAX, WHERE, CAST, ...).
 * Poly is that view of a node, on the stack; poly_node() turns it back into the one canonical
 * node.  A sum too long, or with a coefficient beyond 64 bits, stays one opaque atom. */
#ifndef SYMBOLIC_H
#define SYMBOLIC_H

#include "ir.h"

#define POLY_TERMS 48
#define MONO_FACTORS 12

typedef struct {
    Node *base; /* an atom, or a product of atoms: MUL(MUL(a, b), c), in node_order() */
    int64_t coef;
} Term;
typedef struct {
    int n;
    int64_t k; /* the constant */
    Term t[POLY_TERMS];
} Poly;

/* p += scale * e.  False, and p is useless, where it does not fit. */
bool poly_add(Poly *p, Node *e, int64_t scale);
bool poly_add_term(Poly *p, Node *base, int64_t coef);
bool poly_add_poly(Poly *p, const Poly *q, int64_t scale);
bool poly_of(Poly *p, Node *e);
Node *poly_node(Context *, const Poly *);
/* p = g * high + low: coefficients of low are less than g, its constant is in [0, g). */
void poly_split(const Poly *p, int64_t g, Poly *high, Poly *low);
/* All of p lies in one bucket [q*d, (q+1)*d), and p->k - q*d fits. */
bool poly_in_bucket(const Poly *, int64_t d, int64_t *q);
/* Bounds of the terms and the constant, each term taken as independent. */
void poly_bounds(const Poly *, int64_t *lo, int64_t *hi);
/* Atoms of a product, in node_order(); -1 if there are too many. */
int mono_factors(Node *base, Node **factor);
/* The product without the factors in `by`; false if `by` does not divide it.  *out NULL stands for
 * 1. */
bool mono_divide(Context *, Node *base, Node *by, Node **out);
Node *mono_mul(Context *, Node *a, Node *b); /* NULL stands for 1; NULL if too long */

/* Interned node, or the constant if its bounds leave one value. */
Node *idx_make(Context *, Op, Node *a, Node *b);
/* The value if only one is possible. */
/* The sum with x/c*c + x%c put together again, or false if there is nothing to do. */
bool poly_recombine(Context *, Poly *);

/* e >= 0 at every point, found by bounds or by driving each range to the end of its extent. */
bool prove_nonneg(Context *, Node *e);
bool prove_le(Context *, Node *e, Node *f);
/* d >= 1 wherever `evidence` has a value (its ranges are not empty there). */
bool prove_positive(Node *d, Node *evidence);

/* condition.c: what a comparison (or NOT of one) says about a sum of terms without constant. */
typedef struct {
    Node *terms;
    int64_t lo, hi;
} Literal;
bool literal_bounds(Context *, Node *, Literal *);
/* The operands of a left-nested AND or OR; -1 if there are more than max, or it nests otherwise. */
int bool_list(Node *, Op, Node **list, int max);

/* interval.c: INT64_MIN as a lower and INT64_MAX as an upper bound stand for "none". */
int64_t lo_add(int64_t, int64_t);
int64_t hi_add(int64_t, int64_t);
int64_t bound_mul(int64_t, int64_t);
int64_t floor_div(int64_t, int64_t); /* x / 0 = 0 */
int64_t floor_mod(int64_t, int64_t); /* x % 0 = 0 */

#endif
