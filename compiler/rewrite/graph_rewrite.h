/* graph_rewrite.h - algebra on the tensor graph, before anything is stored. */
#ifndef GRAPH_REWRITE_H
#define GRAPH_REWRITE_H

#include "target.h"

/* The model's outputs and states become those of the rewritten graph.  Doing it again changes
 * nothing. The target says what sums of integers are made of (NULL: of integers).  off: names of
 * rules that are not applied, "a,b"; or NULL.  True if floats are rounded at other places now. */
bool graph_rewrite(Context *, const Target *, const char *off);
/* patches.c: values that take more than this room, in bytes, in patches; whether there were any. */
bool patches(Context *, const Target *, double room);
/* read_as.c: what ingot_read_as() was told, of a graph that is whole. */
void graph_read_as(Context *);
/* io_forms.c: a value of an input or output as the model's file has it, or as it is by now, in the
 * form that it has by now; the elements are the arena's. */
ingot_value io_value(Arena *, const NamedNode *, const ingot_value *);
const char *rewrite_name(int i); /* of the rules; NULL behind the last */
/* For languages that cannot call C: elementwise custom operators become steps of their own. */
void graph_custom_calls(Context *);

/* shards.c: the model's graph as what each of several devices computes of it; false: nothing of it
 * can be split so. */
typedef enum { PARALLEL_BATCH, PARALLEL_TENSOR } Parallel;
bool shards(Context *, const struct Target *, Parallel, int devices);

#endif
