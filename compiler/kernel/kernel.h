/* kernel.h - what the files of compiler/kernel share. */
#ifndef KERNEL_H
#define KERNEL_H

#include "compiler.h"

/* How one access moves with a range. */
typedef enum { MOVE_NONE, MOVE_AXIS, MOVE_MIXED } MoveKind;
typedef struct {
    MoveKind kind;
    int axis;       /* the one axis of the buffer that moves */
    int64_t stride; /* by how many elements of that axis */
} Move;

enum { MAX_ACCESS = 64 };
/* A kernel of one store, taken apart. */
typedef struct {
    Node *end, *store;
    Node *load[MAX_ACCESS];
    int nload;
    Node *reduce[MAX_ACCESS];
    int nreduce;
    Node *dot; /* its largest sum of products, or NULL: then it is a contraction */
    Node *factor[MAX_ACCESS]; /* the loads below it */
    int nfactor;
} View;

bool depends_on(Node *e, Node *range);
int first_coord(Node *access);
Move access_move(Context *, Node *access, Node *range);
bool access_stride(const Kernel *, Node *access, Node *range, int64_t *stride);
View kernel_view(Arena *, const Kernel *);

/* optimise.c */
bool can_lay_out(const Kernel *, const View *, const Buffer *const *bufs, const bool *free, Node *lanes);

/* heuristic.c: opts for a kernel whose buffers have their layouts; the weights of a contraction get
 * theirs (in want[], by argument); *lanes is the range that became lanes, or NULL. */
void choose_opts(Arena *, Kernel *, const Buffer *const *bufs, const Target *, bool may_copy, Layout *want, Node **lanes);

#endif
