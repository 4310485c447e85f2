/* fusion.h - the question that fuse.c and merge.c ask, and what its answer is made of. */
#ifndef FUSION_H
#define FUSION_H

#include "decisions.h"
#include "schedule.h"

/* Who reads a value (readers.c). */
typedef struct {
    double times; /* how often each element is computed if it is not stored */
    double kernels;
    double terms;       /* of the reduce that has most, of those that it is a term of */
    bool rows, reduced; /* all of them go along the rows; one of them is a reduce */
    bool walked;        /* a GPU's group has each element once for some of its results */
} Readers;

/* fusion.c: what the plan's file says about something (YES: together), or else the preset; UNSAID:
 * what takes less time. */
Said fusion_wanted(const Plan *, Said file);
bool fusion_pays(const Fusion *);
/* Why a kernel has to store n, whatever a preset or a file says; NULL: its readers may compute
 * it. */
const char *must_store(Sched *, Node *n, Node *const *uses);
/* fuse.c: is there a way from n to x: any, or one that leads through what has to be stored? */
bool is_made_of(Sched *, Node *x, const Node *n, Node *const *uses, bool stored);
/* Of a value that its readers compute, and of a sum of products that would stand beside another
 * reduce of its reader's. */
bool fusion_of_value(Sched *, Node *, Node *const *uses, const Readers *, Fusion *);
bool fusion_of_company(Sched *, Node *sum, Node *reader, Fusion *);
/* Of the kernels of steps `into` and, later, `from`, in which so many others run meanwhile. */
Fusion fusion_of_steps(Sched *, Arena *, const Block *, int into, int from, const RegionWork *both);
RegionWork region_of_steps(Sched *, Arena *, const Step *, const Step *);

/* readers.c: of a value. uses: consumers of the nodes of the block, Info.iuse.. */
Readers readers_of(Sched *, Node *, Node *const *uses);
/* Axes that an EXPAND repeats. */
unsigned expanded_axes(Node *);
/* The last axes, whose loops are innermost in any order of storage that keeps rows together. */
bool is_trailing(Node *, unsigned axes);
/* Is it made element by element of a stored value as large, which dies in its kernel? */
bool takes_place(Sched *, Node *, Node *const *uses);
/* Does this reader of n take a sum of a row along the row, or what is made of such sums? */
bool goes_along_row(Sched *, Node *n, Node *reader);
/* A term of a sum of products. */
bool is_term(Sched *, Node *, Node *const *uses);
/* Is it a sum of products of bytes, or made of one, and a term of one other sum along which both
 * factors move: that of a block of weights with a scale of its own? One nest has both. */
bool is_inner_sum(Sched *, Node *, Node *const *uses);
/* A sum of products of bytes as integers. */
bool is_sum_of_bytes(const Node *);
/* Do sums of products multiply it, as it is or widened, again and again? */
bool is_multiplied(Sched *, Node *, Node *const *uses);
/* Sums of products that a GPU's groups divide among them. */
bool is_for_groups(Sched *, Node *);

/* vector_sums.c: a norm of the one vector that sums of products with weights multiply, on GPUs:
 * each of their kernels computes it. */
bool is_vector_of_sums(Sched *, Node *, Node *const *uses);
/* Such a sum, or what is made of it, of which pairs of neighbours are turned: one kernel has both
 * (turned_sums.c). */
bool is_turned_sum(Sched *, Node *, Node *const *uses);
/* Two such sums over one vector, of which n is the later one or made of it, that meet in their
 * reader: one kernel has both. */
bool are_vector_sums(Sched *, Node *n, const Node *reader);
/* beside_sums.c: two products of matrices with one operand in common that meet in their reader, n
 * being one of them, or made of it: one kernel has both. */
bool are_sums_beside(Sched *, Node *n, const Node *reader);
/* Is n one such product, or made of it? */
bool is_sum_for_boxes(Sched *, Node *n);
/* vector_sums.c: two such sums of digits, of which each multiplies the same elements of one vector
 * in its turn: one loop has both. */
bool walk_alike(Sched *, Node *sum, Node *other);
/* Computed from what a run looks up, and the vector of such sums: the items of each group would do
 * so again, and do not walk along what lies elsewhere. */
bool is_found_vector(Sched *, Node *n, Node *const *uses);

/* few_rows.c: few rows that weigh a matrix whose size a run says, or what moves or multiplies them,
 * on GPUs: the sum behind computes them. */
bool is_row_of_few(Sched *, Node *, Node *const *uses);

/* beside_rows.c: on GPUs, what a row has one of and several kernels compute is stored by the first
 * one. */
void store_beside_rows(Sched *, int n, Node *const *order, Node *const *uses);
/* May a kernel that goes along its rows store it for readers that do not? */
bool is_made_by_row(Sched *, Node *, Node *const *uses);

/* cast_side.c: of a value and what it is widened to. */
bool is_for_dot(const Sched *, Node *wide);
bool keeps_narrow(const Sched *, Node *wide);
bool narrow_pays(const Sched *, Node *narrow, Node *wide, int cost);
Node *narrow_side(Sched *, Node *);
bool is_widened(Sched *, Node *, int cost);
bool fold_pays(Sched *, Node *, double bytes, double leaves);
bool unpacking_pays(Sched *, Node *, double bytes, double leaves);

#endif
