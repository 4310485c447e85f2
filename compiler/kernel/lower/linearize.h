/* linearize.h - what the files of linearize.c share: a tile's nodes in order, with what is known of
 * each by its position there. */
#ifndef LINEARIZE_H
#define LINEARIZE_H

#include "kernel.h"
#include "linear.h"

enum { MAX_TILES = 32 };

/* What has to be above 0 for loops to have an iteration: of a loop over 3 * N, N.  A bit each. */
enum { MOST_SIZES = 64 };
typedef struct {
    Node *size[MOST_SIZES];
    int n;
    /* by range: what it needs; and what it shows where it is open: N / 8, then N too */
    uint64_t needs[64], shows[64];
    /* of a row that ends beside its vectors: what the loop over vectors needs, what that over the
     * end, and what one of the two shows: N / 8, N % 8, N */
    uint64_t vectors, end, row;
} Sizes;

/* Sets of them: a value is wanted where all of one set are above 0.  None contains another one. */
typedef struct {
    uint64_t *set;
    int n;
} LoopSets;

static inline bool is_wanted_in(const LoopSets *w, uint64_t open)
{
    for (int i = 0; i < w->n; i++)
        if (!(w->set[i] & ~open))
            return true;
    return false;
}

/* By loops that are open. */
static inline uint64_t sizes_shown(const Sizes *s, uint64_t open)
{
    uint64_t shown = 0;
    for (int i = 0; open; open >>= 1, i++)
        shown |= open & 1 ? s->shows[i] : 0;
    return shown;
}

/* False: that was known. */
static inline bool want_in(Arena *a, LoopSets *w, uint64_t loops)
{
    int left = 0;
    if (is_wanted_in(w, loops))
        return false;
    for (int i = 0; i < w->n; i++)
        if (loops & ~w->set[i])
            w->set[left++] = w->set[i];
    w->n = left;
    vec_push(a, w->set, w->n, loops);
    return true;
}

typedef struct {
    Context *c;
    const Kernel *k;
    Linear *l;
    /* nstore stores, then the extents that the fused loop is written with, and loads of PREFETCH */
    Node **root;
    int nroot, nstore;
    Node **order;
    int n;
    uint64_t *set; /* by position: ranges the node depends on, lanes apart */
    /* by position: where a value is wanted, and one that has to stay there, since a load may fail
     * elsewhere (linearize_empty.c); which loops were open where that was written */
    Sizes sizes;
    LoopSets *wanted;
    bool *kept;
    uint64_t *within;
    uint64_t *body; /* what its sources depend on: more than set for a reduce */
    int *uses;
    bool *done, *inlined, *vector, *four;
    bool *reads;  /* something out of a place */
    bool *of_one; /* of one result alone, by more than its address */
    /* a load of an argument, for what reads a place: under way while items wait for that */
    bool *early;
    bool *base; /* of an address of what fills a place: a pointer is made of it */
    uint8_t *fragment;
    Map at;        /* node id -> position + 1 */
    uint64_t out;  /* all output ranges */
    uint64_t tail; /* those of the rest of a row */
    /* PREFETCH: loads, and the loops that they stand in */
    Node *ahead[MOST_PREFETCHED * MAX_PREFETCH], *ahead_in[MOST_PREFETCHED * MAX_PREFETCH];
    int nahead;
    /* of a matrix unit: sums that are not stored yet, of which `stored` are; operands by tile, and
     * when they were used */
    Node *sum[MAX_TILES], *held[MAX_TILES];
    int nsum, stored, used[MAX_TILES], turn;
    bool late;     /* what stands before its products is written now */
    bool one_wait; /* several places are filled before the items wait for each other */
    Node *under_way
        /* places whose copies have begun, in this order, and how many of them have been waited
         * for */
        [MAX_TILES];
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
    if (kind == STMT_ACC || kind == STMT_UPDATE)
        s.reduce = reduce_form(q->l, n);
    if (kind == STMT_STORE)
        s.store = store_form(q->l, n, q->vector[lin_position(q, n)]);
    vec_push(q->l->arena, q->l->stmt, q->l->n, s);
    return &q->l->stmt[q->l->n - 1];
}

/* Of work items: by BIND, or else each has an element of its own, and the loop of a scan. */
static inline bool lin_is_item(const Linear *l, const TileAxis *axis)
{
    return l->items && (l->tile->items ? axis->bound != BOUND_NOT : !axis->scanned);
}

/* What never has a name of its own. */
static inline bool is_plain(const Node *n)
{
    return n->op == OP_CONST || n->op == OP_VAR || n->op == OP_RANGE || n->op == OP_BUFFER ||
           n->op == OP_PARAM || n->op == OP_AFTER;
}

/* Can a node be written where these loops are open? In loops that the statements which are written
 * have to move with (must, 0: none) there may be what moves with no loop, and could not stand
 * before this one. */
static inline bool lin_fits(const Lin *q, int i, uint64_t open, uint64_t must)
{
    if (q->set[i] & ~open)
        return false;
    return q->kept[i] ? is_wanted_in(&q->wanted[i], sizes_shown(&q->sizes, open))
                      : !must || q->set[i] & must;
}

/* Its name can be seen to the end of the loops that are open. */
static inline void lin_done(Lin *q, int i, uint64_t open)
{
    q->done[i] = true;
    q->within[i] = q->kept[i] ? open : q->set[i];
}

/* These loops end, and what stood in them with them. */
static inline void lin_forget(Lin *q, uint64_t own)
{
    for (int i = 0; i < q->n; i++)
        if ((q->set[i] | q->within[i]) & own)
            q->done[i] = false;
}

/* A fragment that is loaded where the products want it. */
static inline bool is_operand(const Lin *q, int p)
{
    return q->fragment[p] && q->order[p]->op == OP_LOAD && !q->l->tile->tc->lanes;
}

/* An operand of products without a loop is loaded, or packed, where the first of them wants it:
 * there are many, and few registers. */
static inline bool is_late(const Lin *q, int p)
{
    const Node *n = q->order[p], *along = q->l->tile->along;
    const uint64_t loop = along ? lin_bit(along) : 0;
    return q->l->tile->quad && !q->late && q->fragment[p] &&
           (n->op == OP_LOAD || n->op == OP_PACK) && !(q->set[p] & ~(q->out | loop)) &&
           (!loop || q->set[p] & loop);
}

/* linearize.c: what can stand in these loops; needed: by position, or NULL for all. What the nodes
 * of a group, of which the last stands at `last`, are made of. */
void lin_emit(Lin *, uint64_t open, uint64_t must, const bool *needed, int depth);
bool *lin_needed_by(const Lin *, Arena *, const int *group, int n, int last);

/* Do all groups of a cluster read what it fills? */
static inline bool lin_is_for_ranks(const Lin *q, const Node *fill)
{
    return q->k->args[fill->src[0]->src[0]->arg.i].ranks > 0;
}

/* linearize_rows.c: of a group of sums, by position, the products of rows that lanes have whole;
 * and of blocks of rows.  What can be filled besides `first`, and for the same readers, if groups
 * of a cluster join what they have: how many, by position; 0: they join nothing. */
int lin_ready_fills(const Lin *, int first, uint64_t open, const bool *needed, int *fill);
void lin_add_products_of_rows(Lin *, const int *group, int n, uint64_t open, uint64_t must,
                              int depth);
void lin_add_block_of_rows(Lin *, const int *group, int n, uint64_t open, uint64_t must, int depth);

/* linearize_empty.c: Lin.wanted, Lin.kept. */
void lin_find_kept(Lin *);
void linear_find_sizes(const Tile *, Sizes *);
/* Where the terms of a sum are wanted: where they are added, in a loop that shows these sizes, and
 * the sum is wanted besides. */
LoopSets linear_want_terms(Arena *, const Sizes *, const LoopSets *sum, uint64_t around);

/* linearize_sets.c: fills in the tables that are by position, and what is written inside its
 * users. */
void lin_find_sets(Lin *);
void lin_find_results(Lin *);
void lin_find_unused(Lin *);
void lin_find_inlined(Lin *);

/* linearize_tc.c, of a matrix unit: an accumulator; what fills a place; the products of a group of
 * sums, by position. */
void lin_add_sum(Lin *, Node *sum, int depth);
void lin_add_fill(Lin *, Node *store, bool async, int depth);
void lin_add_products(Lin *, const int *group, int n, int depth);
/* Behind products whose sums are read in this iteration. */
void lin_products_done(Lin *, int depth);
/* Does a place that is filled so hold nothing but fragments of a kernel whose rows stay in
 * registers?  Then its copies go on while what does not read it is computed: they begin, and
 * products wait for those that they need. */
bool lin_is_under_way(const Lin *, Node *fill);
void lin_begin_copies(Lin *, Node *fill, int depth);
void lin_wait_for_copies(Lin *, const bool *needed, int depth);

#endif
