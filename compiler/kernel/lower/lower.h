/* lower.h - how does a nest become loop nests?  What nest_lower.c, lower_node.c and places*.c
 * share.
 *
 * A nest says for each axis of the kernel what opts made of it; its remainders are loop nests of
 * their own. nest_lower() begins with one Piece, a loop nest in the making, whose axes are the
 * kernel's, and goes through the splits in their order; each that has a remainder makes two of a
 * piece.  Of UPCAST i0 4 on i0 < 37:
 *
 *     one piece       i0 < 37
 *     two pieces      i0 = 4 i0.o + copy, i0.o < 9, 4 copies        i0 = 36
 *
 * Then the stores are built, a copy after the other: lower_node() rebuilds the kernel's expression,
 * with lower_index() in place of each range.  Where the expression has more than indices, others
 * take over, each in a file:
 *
 *     a sum                     lower_terms(): its blocks, then its remainder
 *       of a matrix unit        lower_fragments() (tc_lower.c; rows in registers: tc_rows.c)
 *       that items share        lower_shared() (lower_shares.c)
 *       in blocks of terms      lower_partial() (lower_partial.c)
 *     a load of what is staged  load_through_place(), .._shared(), .._box() (places*.c)
 *     a value that is staged    lower_stage() (places_values.c) */
#ifndef LOWER_H
#define LOWER_H

#include "kernel.h"

/* Tables are by axis of the nest, where nothing else is said. */
typedef struct {
    Tile t;
    Node **at;    /* a range or a constant; NULL: the axis is not here, or taken apart */
    Node **first; /* what the range begins at; NULL: at 0 */
    struct Sum {
        const Split *split; /* NULL: not taken apart here */
        Node *base;         /* base + outer * amount + inner; outer or inner -1: none */
        int outer, inner;
    } * sum;
    struct StoreCopies {
        int axis;
        int64_t n;
    } * copies; /* of stores */
    int ncopies;
    /* by root: its range in the remainder of a reduce (tails of one loop nest share them) */
    Node **fresh;
    TileAxis *tail; /* loops of the remainders of reduces */
    int ntail;
    /* by stage: the ranges of the loops that fill the place, by axis; NULL: nothing is staged
     * here */
    Node ***filled;
    Node **begun;  /* PARTIAL: ranges of the loops that begin the sums of places */
    Node ***added; /* by split: of those that add to them; NULL: there are none yet */
    int row;       /* the axis of the rows that a matrix unit has, or -1 */
    /* of a unit whose products several items have together: which of them this is, or NULL */
    Node *lane;
    int element; /* and which of its elements of a fragment is stored */
    Node *lines; /* with rows of sums in registers a lane is 4 lines + Tile.quad */
    /* of rows of sums in registers: which of the lane's lines, which fragment of the row, which
     * of its columns */
    int line, copy, column;
    int inside; /* of sums along a row: so deep */
    /* blocks of a row that come before all that a mask leaves, and which one an iteration has:
     * left_out + Tile.along; NULL: it begins with the first one */
    Node *left_out, *block;
    struct Made { /* of them, what was made already */
        const Node *of;
        int line, copy, column;
        Node *value;
    } * made;
    int nmade;
    struct SumBlocks { /* sum_blocks.c: of a loop over terms, by blocks of at most so many */
        Node *of, *outer, *inner, *at;
        int64_t most;
    } * blocks;
    int nblocks;
    int next;       /* number of a new range */
    Node *constant; /* all that is stored here is this number; NULL: it is computed */
    /* BIND of a reduced axis: */
    Node *part, *turn; /* the item's part of the terms; the round of the walk, or NULL */
    Node *outer;       /* with Tile.across: part is outer * (its items) + across */
    struct Walk {
        int axis, root; /* an axis that is left of results, a digit of their number in the group */
        int64_t stride; /* in the buffer */
        Node *own; /* the item's, NULL: it has all (copies, or what no shared sum moves with) */
    } * walk;      /* the innermost first */
    int nwalk;
    bool own;     /* what the items themselves have is lowered, not what they walk over */
    Node *walked; /* whether there is such a result, or NULL */
    struct Shared {
        const Node *of;
        Node *filled;
        int *place, nplace, level;
        int64_t parts;
        int64_t
            pitch; /* from group to group of a cluster, whose parts are left; 0: there are none */
        struct Joint { /* what stands before those: parts that the group itself has */
            Node *filled;
            int level;
            int64_t parts;
        } group;
        struct Joined { /* what was read of it, by where it lies */
            Node *at, *state[MAX_STATE];
        } * joined;
        int njoined;
    } * *shared;
    int nshared;
} Piece;

typedef struct {
    Arena *a;
    const Nest *nest;
    const Kernel *k;
    Context *c;
    const Node *end;
    uint32_t known; /* ids below it are the kernel's */
    Piece *piece;
    int n;
    int64_t *place; /* by stage: its elements */
    bool filling;   /* what a place is filled with is lowered */

    struct Staged {
        Node *value; /* and ranges: of a STAGE of the kernel */
        int64_t elements;
        int ranks; /* KernelArg.ranks */
    } * staged;
    int nstaged;
} Lower;

/* What every range stands for, and what was made of nodes so far. */
typedef struct {
    Node **value; /* by root */
    Node **map;   /* by id */
} Env;

/* nest_lower.c: a loop nest that begins as another one. */
Piece piece_copy(Lower *, const Piece *like);
/* The elements that the whole blocks of a split hold. */
Node *lower_whole(Lower *, const Split *);
/* Is there anything that they do not hold? Of run-time sizes that are known to be whole blocks (4 n
 * rows by fours) there is nothing. */
bool lower_has_rest(Lower *, const Split *);

/* ---- lower_node.c ---------------------------------------------------------------------------- */

/* The index along an axis, made of what is left of it in this loop nest. */
Node *lower_index(Lower *, const Piece *, int axis);
/* An environment that knows what the one outside knows (or NULL); values are set, then it is made
 * ready. */
Env env_new(Lower *, const Env *outside);
void env_ready(Lower *, Env *);
/* A node of the kernel as it is in this loop nest. */
Node *lower_node(Lower *, Piece *, Node *, Env *);
/* Whether all axes of a node that MASK rounded up are where the kernel has elements; NULL:
 * always. */
Node *lower_inside(Lower *, Node *, const Env *);
/* All terms of a reduce that are in this loop nest, or the item's: all values of the state. */
void lower_terms(Lower *, Piece *, Node *, const Env *, Node **state);
/* Is the axis a part of a range that the node (a reduce, a STAGE) has of its own? */
bool lower_is_over(const Lower *, const Node *, int axis);
/* The next split of its axes, from *s on, that UNROLL makes here, or NULL. */
const Split *lower_next_unroll(const Lower *, const Piece *, const Node *, int *s);
/* The axes that are left of an axis in this loop nest; and of these the loops: added to leaf,
 * range. */
void lower_leaves(const Piece *, int axis, int *leaf, int *n);
void lower_loops(Lower *, const Piece *, int axis, Node **range, int *n);

/* The whole blocks of a reduce: all values of its state. */
void lower_blocks(Lower *, Piece *, Node *, const Env *, Node **state);

/* A reduce over these ranges, in the order of the nest's loops: all values of its state. */
void lower_reduce_over(Lower *, Piece *, Node *, Node **body, Node **range, int nrange,
                       Node **state);

/* The same of a sum that adds these copies of its terms in turn. */
void lower_sum_over(Lower *, Piece *, Node *, Node *const *copy, int copies, Node **range,
                    int nrange, Node **out);

/* factors.c: of the loops of a sum, in their order, those that are left around it when factors have
 * left those that they do not move with: the others are a sum inside of *body, which is the copies'
 * terms added up if nothing has left. */
int lower_factored(Lower *, Piece *, Node *sum, Node *const *copy, int copies, Node **range,
                   int nrange, Node **body);
/* Terms of a sum, added in turn. */
Node *lower_added(Lower *, const Node *sum, Node *const *term, int n);

/* sum_blocks.c: the same of a sum of many terms, in a graph that has derivatives: each block of
 * them is a sum inside of *body, whose loops change. */
int lower_in_blocks(Lower *, Piece *, Node *sum, Node **body, Node **range, int nrange);

/* In the order of the nest's loops. */
void lower_sort_loops(Lower *, const Piece *, Node **range, int n);

/* mask_bounds.c: made of run-time sizes and of the ranges of results, which no remainder beside
 * them changes? */
bool lower_known_outside(const Lower *, const Node *at);
/* The least or the greatest value of all copies and lanes; NULL: it is not known. */
Node *lower_extreme(Lower *, Piece *, Node *at, bool greatest);
/* The same of all that a group has: its warps and lanes, too. */
Node *lower_extreme_of_group(Lower *, Piece *, Node *at, bool greatest);
/* After all splits: loops over what a mask excludes end where it begins. */
void bound_masked_loops(Lower *, Piece *);
/* masked_stores.c: after all splits: blocks of results that a mask leaves out are a loop nest of
 * their own, without sums. */
void split_masked_stores(Lower *);
/* Groups of warps of whose results a mask leaves nothing (Tile.nothing). */
void find_masked_groups(Lower *, Piece *);
/* pad_bounds.c: loops over a window end, and begin, where that leaves what it slides over. */
void bound_padded_loops(Lower *, Piece *);

/* ---- tc_lower.c ------------------------------------------------------------------------------ */

/* After all splits: does the matrix unit of the nest compute in this loop nest? */
void tc_begin(Lower *, Piece *);
/* The element of sums that is stored now; no more: false. */
bool tc_element_set(Lower *, Piece *, int element);
/* A sum that it takes. */
Node *lower_fragments(Lower *, Piece *, Node *);
/* Which of the copies of a sum this is, and how many there are. */
int64_t tc_copy_number(const Lower *, const Piece *, Node *sum, int64_t *copies);

/* ---- tc_rows.c ------------------------------------------------------------------------------- */

/* Rows of sums stay in registers here: the lanes' ranges, then each axis along a row is where
 * `line`, `copy` and `column` say. */
void rows_begin(Lower *, Piece *);
/* A STAGE, a reduce of a nest that has them. */
/* rows_terms: of a warp's part of the row, if warps share it. */
Node *rows_terms(Lower *, Piece *, Node *);
/* The same of what others join with their parts: of rows in blocks, made to what is known of the
 * whole row. */
Node *rows_part(Lower *, Piece *, Node *);
/* e^(own - all), of a maximum that others have more for; 0 of a part that has nothing. */
Node *rows_factor(Lower *, Node *greatest, Node *own, Node *all);
Node *rows_stage(Lower *, Piece *, Node *);
Node *rows_reduce(Lower *, Piece *, Node *);

/* ---- lower_partial.c ------------------------------------------------------------------------- */

/* Do the sums of this reduce lie in a place (PARTIAL)? What it is then. */
bool lower_is_partial(const Lower *, const Node *);
Node *lower_partial(Lower *, Piece *, Node *, const Env *);
/* Of loops over its terms those that stay inside of what is added to a place, all if there is none:
 * how many. */
int lower_inner_loops(const Lower *, const Piece *, const Node *, Node **range, int n);

/* ---- lower_shares.c -------------------------------------------------------------------------- */

/* Does BIND share the terms of this reduce among the items of a group? What it is then. */
bool lower_is_shared(const Lower *, const Node *);
Node *lower_shared(Lower *, Piece *, Node *);
/* The same of what a group of a cluster has itself. */
Node *lower_shared_group(Lower *, Piece *, Node *);
/* A store that only those items do for which this holds. */
Node *lower_store_only(Lower *, Node *store, Node *only);
/* Before the loops are named; is the axis one that the items walk over; axes become what the walk
 * says. */
void shares_begin(Lower *, Piece *);
bool lower_is_walked(const Piece *, int axis);
void shares_walk(Lower *, Piece *);

/* ---- places.c, places_shared.c, places_bulk.c, places_window.c, places_values.c,
 * places_next.c -------------------------------------------------------------------------------- */

/* Is the argument worth a place in this loop nest? */
bool place_wanted(const Lower *, const Piece *, const Stage *);
/* How many elements of a place an axis that is left takes. */
int64_t place_extent(const Lower *, const Piece *, int axis);
/* A load as the loops that fill its place have it, where these leaves are `as`. It is made of the
 * kernel's anew: the nest's own loop may end at a mask, inside of which a gate holds that does not
 * in all that is filled. */
Node *filling_load(Lower *, Piece *, Node *n, const int *leaf, Node *const *as, int nleaf);
/* places_next.c: PREFETCH of the stage: what fills its place in the next iteration, whose leaves
 * are these, is noted in the tile. */
void place_next(Lower *, Piece *, int stage, Node *n, const int *leaf, int nleaf);
/* A store of what fills place `number` (of the nest's stages, then of the kernel's STAGEs, then of
 * sums). */
Node *place_store(Lower *, int number, Node *gate, Node *value, Node *at);
/* One of what fills it after other loops have. */
Node *place_store_after(Lower *, int number, Node *first, Node *value, Node *at);
/* What fills a place: stores, and behind them the ranges of the loops that they stand in. */
Node *place_fill(Lower *, Node **fill, int nfill);
/* What place `number` has at `at` when all of these have filled it. */
Node *place_load(Lower *, int number, Node **end, int nend, Node *at);
/* A load of the kernel and what it has become in this loop nest: as it is, or out of a place of
 * this loop nest, or out of one that the items of a group share. */
Node *load_through_place(Lower *, Piece *, Node *n, Node *load);
Node *load_through_shared(Lower *, Piece *, Node *n, Node *load);
/* Or out of one that is filled by boxes of the buffer; as it is where the copies do not take it so:
 * the tile's box says why. */
Node *load_through_box(Lower *, Piece *, Node *n, Node *load);
/* places_window.c: the same of a window's positions: all of the box but its elements, and the
 * kernel's axes along which the place goes. */
bool window_box(Lower *, const Piece *, const Stage *, Node *n, Box *, int *rows, int *terms);
/* The part of an axis' value that is inside of a place, or outside, and how far the former goes. */
Node *place_part(Lower *, const Piece *, const Stage *, int axis, bool inside);
int64_t place_size(const Lower *, const Piece *, const Stage *, int axis);
/* Which of the values that have places a node is: a new one if it has none. */
int staged_number(Lower *, Node *value);
/* The number of an item in its group. */
Node *lower_item(Lower *, const Piece *);
/* A STAGE of the kernel: a value that several loops read. */
Node *lower_stage(Lower *, Piece *, Node *, Env *);
/* The places become arguments of the kernel that is lowered, behind its own. */
void add_places(Lower *, Tiles *);

#endif
