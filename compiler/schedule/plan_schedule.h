/* plan_schedule.h - from a graph to the steps of a plan. */
#ifndef PLAN_SCHEDULE_H
#define PLAN_SCHEDULE_H

#include "plan.h"

bool plan_schedule(Plan *, int opt_level, const Target *); /* false after a reported error */
/* masked_buffers.c: what kernels know of the elements that a mask has left in what they read. */
void find_masked_buffers(Plan *);
Plan *schedule(Context *, int opt_level, const Target *); /* both; NULL after a reported error */
void kernel_share(Plan *); /* share.c: equal kernels become one, all get names */
/* variants.c: the model's roots become those of the graph with the variants that the plan's
 * decisions ask for, and those that pay on a target (NULL: none); then back. */
typedef struct {
    Node **node;
    int n;
} GraphRoots;
void variants_apply(Plan *, const struct Target *, bool any_ram, GraphRoots *keep);
/* place_devices.c: of a target with several devices, which computes what, and copies between them;
 * layers: in a row, each some of the layers. keep: as above, or empty. False after a fault of the
 * plan's file. */
bool place_on_devices(Plan *, const struct Target *, bool layers, GraphRoots *keep);
/* collectives.c: those of devices, as copies and what each device computes of them. */
void collectives(Context *, const struct Target *);
/* collectives.c: by the devices of its sources (by id), and by what COPY and COLLECTIVE say: that
 * of a node. */
int device_by_graph(const Context *, const Node *, const int *device);
/* place_layers.c: devices, by id, of n nodes, sources first: those that may be anywhere. */
void place_layers(Arena *, const struct Target *, uint32_t nnode, int n, Node *const *node,
                  const bool *may, int ndevice, int *device);
GraphRoots roots_keep(const Context *, Arena *);
void roots_restore(Context *, const GraphRoots *);

#endif
