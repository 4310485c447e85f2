/* linear.h - what does a loop nest do, in which order?
 *
 * A tile (nest.h) has stores, which are expressions of its axes, and says which of these are loops.
 * Its linear form is a list of statements: loops that are opened and closed, values with names,
 * accumulators. Renderers write a line or so for each.  Of a row of 8 sums, in vectors of 4 lanes:
 *
 *     a tile    for i0 < 2, reduce r0 < 32, 4 lanes:
 *               a0[4 i0 + lane] = max(sum(r0: a1[r0] * a2[8 r0 + 4 i0 + lane]), 0)
 *
 *     loop i0 < 2                          STMT_LOOP
 *       v0 = i0 * 4                        STMT_LET
 *       s1 = 0                             STMT_ACC
 *       loop r0 < 32                       STMT_LOOP
 *         s1 = s1 + a1[r0] * a2[r0 * 8 + v0 + lane]    STMT_UPDATE
 *       end                                STMT_END
 *       a0[v0 + lane] = max(s1, 0)         STMT_STORE, of the form STORE_LANES
 *     end                                  STMT_END
 *
 * (`ingot inspect --dump linearize` prints it so.)  The list begins as the stores alone, which
 * passes change before the loops are opened and values get names (lower/passes.h).  Two kinds of
 * nodes are spelled in several ways: a REDUCE may be a loop with an accumulator or one operation,
 * and a STORE one element or many. Which of these it is follows from the ranges of the tile that it
 * goes over; reduce_form() and store_form() are the two places that look, and a statement says it
 * of itself. */
#ifndef LINEAR_H
#define LINEAR_H

#include "nest.h"

typedef enum {
    /* node: RANGE, no loop: the number of the work item says which iteration this is; they come
     * first, the innermost of all */
    STMT_ITEM,
    STMT_LOOP,   /* node: RANGE */
    STMT_PARTS,  /* node: NULL; the loop over the tile's fused axes, from part begin to part end */
    STMT_END,    /* node: RANGE, or NULL of STMT_PARTS */
    STMT_LET,    /* a named value */
    STMT_ACC,    /* node: REDUCE or SCAN; its accumulator gets the identity */
    STMT_UPDATE, /* node: REDUCE or SCAN; accumulator = combine(accumulator, value) */
    STMT_STORE,
    /* node: LOAD, a fragment, which is in `term`: for the products of the next iteration (last), or
     * zeros before the first one */
    STMT_KEEP,
    STMT_PREFETCH, /* node: LOAD, whose line is asked for; STORE of a box: its lines are */
    STMT_COMMIT,   /* the copies since the last one are a group */
    STMT_WAIT,     /* until all but the last `count` groups of the item's copies are done */
    /* node: RANGE, `from` its value; to its END: what fills places for that iteration, when all
     * items have come here, and before any goes on. Passes make copies ahead of it
     * (lower/passes.h) */
    STMT_FILL,
    /* to its END: what one more item of the group does, and it alone; then it leaves */
    STMT_LOADER,
    STMT_CLAIM,  /* node: RANGE; the places of this iteration are free: boxes begin to fill them */
    STMT_FILLED, /* node: RANGE; the places of this iteration are filled */
    /* node: RANGE; the warp's products of the iteration before are done, and its places free; NULL:
     * all its products are done */
    STMT_RELEASE,
    /* attention, operands in places: node: RANGE; the warp's products so far are done: their sums
     * may be read */
    STMT_DONE,
    STMT_SCALE, /* node: REDUCE; its lines are scaled (MONOID_SCALED_LINES), and it meets registers
                 * that products read */
    STMT_OVERLAP, /* what is said where blocks of attention overlap (render_overlap.c) */
    /* node: REDUCE; each group of a cluster has then what all have summed of its share
     * (Tile.share); several follow each other */
    STMT_JOIN,
    /* what was enqueued before the kernel is done: before that nothing is accessed but what is
     * KernelArg.early */
    STMT_DEPEND,
    STMT_NEXT, /* the kernel that is enqueued behind this one may begin, and wait in its turn */
    /* all items of a group have come here, and see what the others have written to its places */
    STMT_BARRIER
} StmtKind;
/* What a REDUCE is, by what it goes over. */
typedef enum {
    REDUCE_LOOP,     /* any other range: an accumulator and loops, s = s + x */
    REDUCE_PRODUCTS, /* the terms of a matrix unit: as well, but x is a product of fragments */
    REDUCE_DOT,      /* Tile.four: one operation that adds four products of bytes (DOT) */
    REDUCE_LANES,    /* Tile.lane: the lanes of a vector */
    REDUCE_QUAD,     /* Tile.quad: the four lanes that have a row of a unit's sums together */
    REDUCE_ACROSS    /* Tile.across: neighbours among the items of a group, without memory */
} ReduceForm;
enum { MOST_APART = 4 }; /* vectors that are stored in turn */
/* What a STORE writes at once. */
typedef enum {
    STORE_ONE,     /* an element */
    STORE_LANES,   /* those of all lanes */
    STORE_IN_TURN, /* those of two or four vectors in turn: src[4] .. are the others (join_stores.c)
                    */
    STORE_FRAGMENT, /* a unit's sums, of a tile */
    STORE_CHUNK,    /* neighbours of a buffer, into a place (store_chunk()) */
    STORE_BOX       /* a box of a buffer, into a place (box_of()) */
} StoreForm;
typedef struct {
    StmtKind kind;
    ReduceForm reduce; /* of an ACC, an UPDATE and a JOIN */
    StoreForm store;   /* of a STORE, from linearize() on */
    Node *node;
    int depth;
    /* Where a matrix unit computes: of a LET, ACC or STORE of a fragment the tile that it is in; of
     * an UPDATE those of the sums and of both operands. */
    int8_t tile[3];
    /* Of an UPDATE that adds a term of several: which product of fragments, or dot; the last one is
     * the last of an iteration. */
    Node *term;
    bool last;
    bool kept; /* of an UPDATE: its fragments are those that were kept */
    /* Of a LOOP: where it begins and ends, or NULL: 0, the range's extent.  With a `from` that is
     * no constant it has one iteration or none. */
    Node *from, *upto;
    Node *zero; /* then none unless this is 0, or NULL */
    int count;
    bool meets; /* of a BARRIER: all items of all groups of the cluster have come here */
    bool alone; /* of a BARRIER: it suffices that all items of the warp have (Tile.together) */
    bool async; /* of a STORE: a copy that is under way until it is waited for */
} Stmt;
/* A piece of a weight that is copied to what a group shares, before the kernel waits
 * (bulk_weights.c): so many bytes of the argument, from element `from` on. */
typedef struct {
    int arg;
    Node *from;
    int64_t bytes, at; /* at: where it lies among the others */
} BulkWeight;
typedef struct {
    Arena *arena;
    const Tile *tile;
    bool items;  /* said before: each work item has its iterations of the loops over outputs */
    Node *fused; /* iterations of the one loop over the tile's fused axes, NULL if there are none */
    Node **inner;  /* by fused axis: the iterations of those after it */
    bool *counted; /* by fused axis: something is written with its counter */
    Stmt *stmt;
    int n;
    uint32_t nknown; /* ids below it have entries in the tables */
    bool *named;     /* by node id: has a name; anything else is written inside its users */
    bool *vector;    /* by node id: has a value in every lane */
    bool *four;      /* by node id: is four values, of a dot */
    /* of a matrix unit: tiles of sums, and of the operand that moves with rows, behind them: most
     * that are wanted at once; do sums over other terms want as many? */
    int nsum, nrows;
    bool one_split, splits_differ;
    /* by node id: moves with rows, columns, terms of a matrix unit: bits 1 << TC_ROWS... */
    uint8_t *fragment;
    bool wide;    /* some coordinate needs 64 bits */
    bool in_turn; /* some sums come after others over the same terms */
    BulkWeight *bulk;
    int nbulk;
    int64_t bulk_bytes; /* of all */
} Linear;

/* pair_stores.c: whether b is the element behind a, and both can be stored together. */
bool are_neighbours(Context *, const Node *a, const Node *b);
/* What is loaded from or stored to: a place also once it is filled. */
static inline const Node *linear_buffer(const Node *access)
{
    const Node *b = access->src[0];
    return b->op == OP_AFTER ? b->src[0] : b;
}
/* linearize_empty.c: may a run's sizes leave the loop without an iteration? */
bool linear_may_be_empty(const Node *range);
/* Does a load (of flat addresses) of `count` neighbours lie in its buffer wherever the counters
 * that it moves with have values? False: not proved. */
bool linear_is_within(const Kernel *, const Tile *, const Node *load, int64_t count);
/* stores_verify.c: of the stores that there are before linearize(), each is what its tile and the
 * passes so far make possible; NULL, or what is wrong, with statement *at. */
const char *stores_verify(Arena *, const Linear *, const Kernel *, int *at);
/* linear_verify.c: no load stands outside of a loop that may have no iteration, of which it has not
 * been proved that it may; NULL, or what is wrong, with statement *at. */
const char *linear_verify(Arena *, const Linear *, const Kernel *, int *at);
static inline Bound tile_bound(const Tile *t, const Node *range)
{
    for (int i = 0; i < t->naxis; i++)
        if (t->axis[i].range == range)
            return t->axis[i].bound;
    return BOUND_NOT;
}

/* A load of rows (join_loads.c), whose vectors are its PROJs. */
static inline bool is_rows(const Node *n)
{
    return n->op == OP_LOAD && n->nsrc == 4;
}

static inline ReduceForm reduce_form(const Linear *l, const Node *n)
{
    const Tile *t = l->tile;
    const Node *over = n->op == OP_REDUCE ? n->src[n->nsrc - 1] : NULL;
    if (over && t->tc && over == t->fragment[TC_TERMS])
        return REDUCE_PRODUCTS;
    if (!over || n->nsrc != 2)
        return REDUCE_LOOP;
    return over == t->four     ? REDUCE_DOT
           : over == t->lane   ? REDUCE_LANES
           : over == t->across ? REDUCE_ACROSS
           : over == t->quad   ? REDUCE_QUAD
                               : REDUCE_LOOP;
}
/* How many terms a dot has: four bytes, two of bf16. */
static inline int tile_dot(const Tile *t)
{
    return (int)t->four->hi + 1;
}
/* REDUCE over the products of a dot. */
static inline bool is_dot(const Linear *l, const Node *n)
{
    return reduce_form(l, n) == REDUCE_DOT;
}
/* Over neighbours among the items of a group. */
static inline bool is_quad(const Linear *l, const Node *n)
{
    return reduce_form(l, n) == REDUCE_QUAD || reduce_form(l, n) == REDUCE_ACROSS;
}
/* A sum that a matrix unit takes. */
static inline bool is_products(const Linear *l, const Node *n)
{
    return reduce_form(l, n) == REDUCE_PRODUCTS;
}
/* A REDUCE that is a loop. */
static inline bool is_loop(const Linear *l, const Node *n)
{
    return n->op == OP_REDUCE && reduce_form(l, n) <= REDUCE_PRODUCTS;
}

enum { MAX_TERMS = 64 };

/* What an iteration adds to a sum, first to last: dots (UNROLL), or products of floats, of which
 * there are several in dx = dq wq + dk wk + dv wv. Gives how many more than the n that are there; 0
 * if it is anything else, or there are too many. */
static inline int terms_of(const Linear *l, Node *body, bool dots, Node **term, int n)
{
    if (dots ? is_dot(l, body) : body->op == OP_MUL && dtype_is_float((ingot_dtype)body->dtype)) {
        if (n < MAX_TERMS)
            term[n] = body;
        return n < MAX_TERMS;
    }
    if (body->op != OP_ADD || (dots && !l->tile->four))
        return 0;
    const int one = terms_of(l, body->src[0], dots, term, n),
              more = one ? terms_of(l, body->src[1], dots, term, n + one) : 0;
    return more ? one + more : 0;
}

/* What an UPDATE adds. */
static inline Node *update_value(const Stmt *s)
{
    return s->term ? s->term : s->node->src[0];
}

/* The ranges of a REDUCE or an END that have loops: the terms that a matrix unit takes at once have
 * none. */
static inline Node *const *loops_of(const Linear *l, Node *n, int *count)
{
    int first = n->op == OP_END ? end_stores(n) : (int)reduce_ranges(n);
    *count = (int)n->nsrc - first;
    if (*count && l->tile->tc && n->src[n->nsrc - 1] == l->tile->fragment[TC_TERMS])
        --*count;
    if (*count && l->tile->ahead && n->src[n->nsrc - 1] == l->tile->ahead)
        --*count;
    return n->src + first;
}

/* Are the fragments of the next iteration loaded before the products of this one? */
static inline bool keeps_fragments(const Linear *l, Node *n)
{
    bool over = false;
    for (uint32_t i = reduce_ranges(n); n->op == OP_REDUCE && i < n->nsrc; i++)
        over |= tile_asks_at(l->tile, n->src[i]);
    return over && is_products(l, n) && l->tile->tc->lanes;
}

/* How many neighbours a store of a place brings there at once, from where they lie in the
 * buffer. */
static inline int64_t store_chunk(const Node *n)
{
    return n->op == OP_STORE && n->arg.i > 1 ? n->arg.i : 1;
}

/* How many of them there are in the buffer, the others are zeros; NULL: all. */
static inline Node *store_whole(const Node *n)
{
    return store_chunk(n) > 1 && n->nsrc > 4 ? n->src[4] : NULL;
}

/* The vectors that a store of lanes writes in turn: the lanes of each lie so far apart. */
static inline int store_turns(const Node *n)
{
    return store_chunk(n) > 1 ? 1 : (int)n->nsrc - 3;
}

/* A store that fills a place with a box of a buffer: src[2] is that. */
static inline const Box *box_of(const Linear *l, const Node *n)
{
    if (n->op != OP_STORE || n->src[2]->op != OP_BUFFER || !l->tile->box)
        return NULL;
    const Box *b = l->tile->box;
    while (b->place != n->src[0]->arg.i)
        b++;
    return b;
}

/* vector: of the lanes of a vector. */
static inline StoreForm store_form(const Linear *l, const Node *n, bool vector)
{
    if (vector)
        return n->nsrc > 4 ? STORE_IN_TURN : STORE_LANES;
    if (box_of(l, n))
        return STORE_BOX;
    if (store_chunk(n) > 1)
        return STORE_CHUNK;
    return is_products(l, n->src[2]) ? STORE_FRAGMENT : STORE_ONE;
}

/* Loops that fill a place. */
static inline bool is_fill(Node *n)
{
    return n->op == OP_END;
}

/* That are opened ahead of the loop which reads it. */
static inline bool is_fill_ahead(const Linear *l, Node *n)
{
    return is_fill(n) && l->tile->ahead && n->src[n->nsrc - 1] == l->tile->ahead;
}

/* What has an accumulator. */
static inline bool is_accumulated(const Linear *l, Node *n)
{
    return n->op == OP_SCAN || is_loop(l, n);
}

/* What is ended by a STMT_END; the END of such a statement, or another statement itself. */
bool stmt_opens(const Stmt *);
int stmt_end(const Stmt *, int at);

#endif
