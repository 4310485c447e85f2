/* random_graph.h - graphs that random_ir.c draws. */
#ifndef RANDOM_GRAPH_H
#define RANDOM_GRAPH_H

#include <stdio.h>

#include "compiler/compiler.h"

enum { GRAPH_MOST_INPUTS = 4, GRAPH_MOST_OUTPUTS = 3 };

/* Builds a graph by random_below(), with values for its inputs, in the arena. */
void random_graph(Context *, Arena *, ingot_value *in, int *n_in, int *n_out);
void graph_print(const Context *, FILE *);

#endif
