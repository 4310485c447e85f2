/* linear.h - the linear form of a kernel: statements in order, loops opened and closed. */
#ifndef LINEAR_H
#define LINEAR_H

#include "compiler.h"

typedef enum {
    STMT_LOOP,   /* node: RANGE */
    STMT_END,    /* node: RANGE */
    STMT_LET,    /* a named value */
    STMT_ACC,    /* node: REDUCE; its accumulator gets the identity */
    STMT_UPDATE, /* node: REDUCE; accumulator = combine(accumulator, value) */
    STMT_STORE
} StmtKind;
typedef struct {
    StmtKind kind;
    Node *node;
    int depth;
} Stmt;
typedef struct {
    Arena *arena;
    Stmt *stmt;
    int n;
    Node *out[64]; /* output ranges, outermost first: the first nout loops opened at depth 0.. */
    int nout;
    bool *inlined; /* by node id: written inside its user */
    bool wide;     /* some coordinate needs 64 bits */
} Linear;

void linearize(Linear *, const Kernel *);

#endif
