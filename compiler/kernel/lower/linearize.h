/* linearize.h - what the files of linearize.c share: a tile's nodes in order, with what is known of each by its position there. */
#ifndef LINEARIZE_H
#define LINEARIZE_H

#include "kernel/kernel.h"
#include "linear.h"

enum { MAX_TILES = 32 };
typedef struct {
    Context *c;
    const Kernel *k;
    Linear *l;
    Node **
        root; /* nstore stores, then the extents that the fused loop is written with, and loads of PREFETCH */
    int nroot, nstore;
    Node **order;
    int n;
    uint64_t *set;  /* by position: ranges the node depends on, lanes apart */
    uint64_t *body; /* what its sources depend on: more than set for a reduce */
    int *uses;
    bool *done, *inlined, *vector, *four;
    bool *reads; /* something out of a place */
    bool *
        early; /* a load of an argument, for what reads a place: under way while items wait for that */
    bool *base; /* of an address of what fills a place: a pointer is made of it */
    bool *
        depends; /* on what was enqueued earlier: it accesses an argument that is not KernelArg.early, or its sources do */
    uint8_t *fragment;
    Map at;                               /* node id -> position + 1 */
    uint64_t out;                         /* all output ranges */
    uint64_t tail;                        /* those of the rest of a row */
    Node *ahead[MAX_PREFETCH], *ahead_in; /* PREFETCH: loads, and the loop that they stand in */
    int nahead;
    /* of a matrix unit: sums that are not stored yet, of which `stored` are; operands by tile, and when they were used */
    Node *sum[MAX_TILES], *held[MAX_TILES];
    int nsum, stored, used[MAX_TILES], turn;
    bool late; /* what stands before its products is written now */
    Node *under_way
        [MAX_TILES]; /* places whose copies have begun, in this order, and how many of them have been waited for */
    int nunder_way, nwaited;
} Lin;

static inline int lin_position(const Lin *q, const Node *n)
{
    return (int)(uintptr_t)map_get(&q->at, (uint64_t)n->id + 1) - 1;
}

static inline uint64_t lin_bit(const Node *range)
{
    if (range->arg.i >= 64)
        BUG("a kernel with more than 64 ranges");
    return UINT64_C(1) << range->arg.i;
}

/* A statement at the end of the list: the caller may set the rest of it. */
static inline Stmt *lin_add(Lin *q, StmtKind kind, Node *n, int depth)
{
    Stmt s = {.kind = kind, .node = n, .depth = depth};
    vec_push(q->l->arena, q->l->stmt, q->l->n, s);
    return &q->l->stmt[q->l->n - 1];
}

/* What never has a name of its own. */
static inline bool is_plain(const Node *n)
{
    return n->op == OP_CONST || n->op == OP_VAR || n->op == OP_RANGE || n->op == OP_BUFFER ||
           n->op == OP_PARAM || n->op == OP_AFTER;
}

/* A fragment that is loaded where the products want it. */
static inline bool is_operand(const Lin *q, int p)
{
    return q->fragment[p] && q->order[p]->op == OP_LOAD && !q->l->tile->tc->lanes;
}

/* An operand of products without a loop is loaded, or packed, where the first of them wants it: there are many, and few registers. */
static inline bool is_late(const Lin *q, int p)
{
    const Node *n = q->order[p];
    return q->l->tile->quad && !q->late && q->fragment[p] &&
           (n->op == OP_LOAD || n->op == OP_PACK) && !(q->set[p] & ~q->out);
}

/* linearize_sets.c: fills in the tables that are by position, and what is written inside its users. */
void lin_find_sets(Lin *);
void lin_find_unused(Lin *);
void lin_find_inlined(Lin *);

/* linearize_tc.c, of a matrix unit: an accumulator; what fills a place; the products of a group of sums, by position. */
void lin_add_sum(Lin *, Node *sum, int depth);
void lin_add_fill(Lin *, Node *store, bool async, int depth);
void lin_add_products(Lin *, const int *group, int n, int depth);
/* Does a place that is filled so hold nothing but fragments of a kernel whose rows stay in registers?  Then its copies go on while what
 * does not read it is computed: they begin, and products wait for those that they need. */
bool lin_is_under_way(const Lin *, Node *fill);
void lin_begin_copies(Lin *, Node *fill, int depth);
void lin_wait_for_copies(Lin *, const bool *needed, int depth);
/* All fragments of these sums, once: zeros, or what has been loaded in this iteration. */
void lin_keep_fragments(Lin *, const int *group, int n, bool loaded, int depth);

#endif
