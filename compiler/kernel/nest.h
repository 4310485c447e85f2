/* nest.h - which loops does a kernel have?
 *
 * A kernel says what is computed, for all values of its ranges. A Nest is the kernel and what opts
 * make of these ranges; a Tile is one loop nest that comes of it. Nothing changes the kernel's
 * expression.
 *
 *     the kernel      y[i0, i1] = sum over r0 of a[i0, r0] * b[r0, i1]
 *                     i0 < 37, i1 < 50, r0 < 64
 *     opts            UPCAST i0 4, VECTOR i1 16, ORDER i1.o i0.o r0
 *
 * Every range is the root of a tree of axes. A split takes an axis apart: the blocks (.o), what is
 * inside of one (.i), and the remainder (.r), what is behind the last whole block:
 *
 *     i0 -> i0.o < 9     i0.i: 4 copies of the code         i0.r: the 37th
 *     i1 -> i1.o < 3     i1.i: 16 lanes of a vector         i1.r: the last 2
 *     r0                 a loop: no opt took it apart
 *
 * The leaves of the trees are what is left to be run: loops, lanes, copies, and for some units
 * blocks without a loop. Opts name axes, so a list of opts can be read and replayed.
 *
 *     a kernel's opts --opt_apply()--> Nest      nest_check(): does it fit the layouts?
 *                     --nest_lower()--> Tiles    --linearize()--> statements (lowered.h)
 *
 * opt_apply() is the one place that carries out an opt. nest_lower() puts the leaves in place of
 * the ranges, once: i0 becomes 4 i0.o + copy, and each remainder a Tile of its own behind the
 * others.
 *
 * A nest works on a copy of its kernel in a context of its own, which clones share: candidates that
 * are tried and dropped leave nothing in the kernel. */
#ifndef NEST_H
#define NEST_H

#include "target.h"
#include "tc.h"

/* What the iterations of an axis are in the text, if nothing takes it apart further. */
/* PREFETCH: an argument, and the axis whose next iteration's part of it is asked for; of a tile its
 * RANGE, which is NULL where there is no such loop. */
enum { MOST_PREFETCHED = 4 };
typedef struct {
    int axis, arg;
    Node *range;
} Prefetch;
typedef enum {
    AXIS_LOOP,
    AXIS_LANES,  /* VECTOR: elements of a vector */
    AXIS_COPIES, /* UPCAST, UNROLL: straight-line code */
    AXIS_FOUR,   /* DOT: the four products of one operation */
    AXIS_UNIT    /* TC: rows, columns or terms of a matrix unit's block */
} AxisForm;
/* One node of a tree. The kernel's own axes come first, by the number of their ranges; parts are
 * behind them. */
typedef struct {
    const char *name; /* i0; its parts are i0.o and i0.i, what remains is i0.r */
    AxisForm form;
    bool reduced;   /* a loop over terms, not over results */
    bool staged;    /* of a value in a staging buffer (p0): its last vector begins earlier */
    bool scanned;   /* of a SCAN: runs in order, inside all other loops over results */
    bool remainder; /* no opt can name it */
    bool inner;     /* the .i of a split, or a part of one */
    bool row;       /* attention on GPUs: along a row of sums that stay in registers (Nest.inner) */
    int root;       /* which of the kernel's axes it is a part of */
    int64_t extent; /* iterations; 1: no loop is left; -1: known at run time only */
    int64_t most;   /* their upper bound */
    int64_t within; /* MASK rounded it up: where it really ends; 0: it is not masked; -1: at its
                     * extent, which is known at run time only */
    int64_t granule; /* MASK: the multiple of this that it was rounded up to */
    Bound bound;     /* BIND: its iterations are groups or items, not a loop */
    int split;       /* which split takes it apart (Nest.split), or -1: it is a leaf */
} NestAxis;

/* What becomes of a remainder?  Of VECTOR i 16 on i < 27, whose remainder has 11 elements:
 *
 *     REST_LANES      one vector more, of which 11 lanes are loaded and stored
 *     REST_LOOP       for (i.r < 11), one element after the other
 *     REST_BESIDE     the same loop, behind the vectors but inside all others: a row's reduce is
 *                     done once for both
 *     REST_OVERLAP    a vector from 11 to 26: elements 11 to 15 are computed twice, and equal
 *
 * and of UPCAST i 4 on i < 27 REST_COPIES: the code for all three that are left, without a loop. */
typedef enum {
    REST_NONE,    /* there is no remainder */
    REST_OVERLAP, /* the last block begins earlier; of results its first ones are stored before */
    REST_LOOP,    /* results: a loop nest of its own; terms: a sum of their own, which is added */
    REST_COPIES,  /* a loop nest of its own; what fills a staging buffer: stores of its own */
    REST_LANES,   /* a loop nest of its own */
    REST_BESIDE   /* in the same loop nest (Tile.tail) */
} RestForm;
/* extent = count * amount + remaining, of which outer counts the blocks and inner what is inside of
 * one. */
typedef struct {
    OptKind kind;
    int axis, outer, inner; /* numbers in Nest.axis */
    int rest;               /* the axis of the remainder; -1: it has none, or none that is a loop */
    int64_t amount, count, remaining; /* -1: known at run time only */
    RestForm form;
    int lanes; /* REST_LANES: of the narrower vector that holds the remainder */
} Split;

/* STAGE: what the loops inside of an axis read of an argument is copied before them, to a staging
 * buffer (in the code: a place). */
typedef struct {
    int axis, arg;
    int depth; /* pipeline stages: all but one are filled ahead; 0: one, filled when it is read */
    bool tma;  /* filled by boxes of the buffer, for which an item of its own asks */
} Stage;

/* TRIGGER: when may the kernel that is enqueued behind this one begin, other than at its end? */
typedef enum {
    TRIGGER_NOT,
    TRIGGER_WAITED, /* when this one has waited for those before it */
    TRIGGER_COPIED, /* at once; its weights are asked for before it waits (bulk_weights.c) */
    TRIGGER_SUMMED  /* when its sums of products are done */
} Trigger;

typedef struct NestKernel NestKernel;
typedef struct {
    Arena *arena;
    NestKernel *shared;   /* what clones have in common */
    Kernel *k;            /* the copy: its nodes are not those of the kernel that the nest is of */
    const Target *target; /* what vectors, units and groups there are */
    /* The trees. */
    NestAxis *axis; /* the kernel's first, in their order */
    int naxis;
    Split *split; /* in the order in which they were made */
    int nsplit;
    int *order; /* leaves that are loops, outermost first; over terms: inside of all others */
    int norder;
    bool ordered; /* by ORDER: then the loops of reduces are sorted too */
    /* What was done, for what may come after it. */
    int row;      /* the axis whose remainder is REST_BESIDE, or -1 */
    int lanes;    /* of the vectors, 0: none */
    int dots;     /* DOT was done: by so many terms (four bytes, two of bf16), or 0 */
    bool partial; /* PARTIAL was done */
    bool full;    /* the last opt was refused, since there would be too many loops */
    /* TC: which unit, and which axes are the rows, columns and terms of its blocks; or NULL. */
    const Tc *tc;
    int tc_axis[TC_AXES];
    int tc_more[TC_MOST_REDUCED - 1], ntc_more; /* terms of other sums that it takes */
    /* A second TC, of attention: its sums stay in registers and are an operand of the other's
     * products. */
    const Tc *inner;
    int inner_axis[TC_AXES];
    /* Staging buffers: place i is argument narg + i of the kernel that is lowered. */
    Stage *stage;
    int nstage;
    Prefetch prefetched[MOST_PREFETCHED];
    int nprefetched;
    /* GPUs: BIND, TRIGGER. */
    int items;   /* of a group; 0: nothing is bound */
    int sharing; /* of these, how many have parts of the same sums (split-K in a group); 0: none */
    Trigger trigger; /* when the next kernel may begin */
    int64_t stay;    /* STAY */
    /* An axis of terms that neighbours join without memory, or -1; all such have one extent. */
    int warp;
    int cluster; /* the axis of terms that groups of a cluster share, or -1 */
    /* THREAD: the loops from thread_from (-1: the outermost) to thread are one, cut into `parts`
     * chunks (0: none). */
    int thread;
    int thread_from;
    int parts;
    int64_t copies; /* of a store and of a reduce's terms, by UPCAST and UNROLL */
    Kernel *joined; /* JOIN: of what kernel_lower() makes: a kernel of its own, or NULL */
    Opt *opts;      /* what made the nest, in order */
    int nopt;
} Nest;

Nest *nest_new(const Kernel *, const Target *);
Nest *nest_clone(const Nest *);
void nest_free(Nest *);
/* Does what the opt says, or gives the reason why not: then the nest is as it was. The reason lives
 * as long as it. */
const char *opt_apply(Nest *, const Opt *);
/* The same without the sentence, false: it cannot be done. For an axis by its name (of an opt that
 * takes a list: the list), or for the loop that is left of a range of nest->k. */
bool nest_opt(Nest *, OptKind, const char *axis, int64_t amount);
bool nest_opt_range(Nest *, OptKind, Node *range, int64_t amount);
/* Why the nest cannot be computed with the layouts that the kernel's arguments have, or NULL. For
 * when all opts are known: lanes may be stored two apart, if a later opt makes copies of what lies
 * between. */
const char *nest_check(const Nest *);
/* Copies of a store by UPCAST, and of the terms of a sum by UNROLL, that opts take. */
enum { MAX_COPIES = 64 };
/* The part of nest_check() that asks nothing of layouts: on a GPU places have room. */
const char *nest_fits(const Nest *);
/* The kernel's opts become those of the nest. */
void nest_keep(const Nest *, Kernel *);
/* The axis of this name, or -1. */
int nest_find(const Nest *, const char *name, size_t length);
/* The loop that is left of an axis: itself, or the outermost part. */
int nest_loop(const Nest *, int axis);
/* The name of the loop that is left of a range of nest->k. */
const char *nest_loop_name(const Nest *, Node *range);
/* "i0 i1" and the axis r0: "i0 i1 r0", for an opt that takes a list. */
const char *nest_and_name(Nest *, const char *names, int axis);
/* Where an axis stands in the order of those that are left; behind all of them if it is not among
 * them. */
int nest_position(const Nest *, int axis);
/* Does a loop over results run for each block of terms of a sum (PARTIAL)? */
bool nest_in_partial(const Nest *, int axis);
/* What the last opt that took an axis apart made of it. */
const Split *nest_last_split(const Nest *);
/* The axis of the terms of a sum that the unit of the nest takes, or -1: it takes it not. The sum
 * is of nest->k or of a copy. */
int nest_tc_terms(const Nest *, const Kernel *, Node *sum);
/* row_blocks.c, of rows that stay in registers (Nest.inner): can they be taken block after block?
 * Then, of the terms of a sum along them, the maximum that their exponentials are less, which is
 * another one with each block; NULL: there is none. k: the nest's kernel, or a copy. */
bool rows_go_by_blocks(const Nest *);
Node *row_shift(const Nest *, const Kernel *k, Node *term, bool *good);
/* Which STAGE is that of an argument, or -1. */
int nest_stage(const Nest *, int64_t arg);
/* The same of what a load reads: where its argument has none, that of another argument of its
 * buffer whose boxes have the same, block after block. below: all that the kernel computes. */
int nest_place(const Nest *, const Kernel *, const Node *below, Node *load);
/* Do places have the bytes of dots as 16 bits, and what type has the place of a STAGE? */
bool stage_is_wide(const Nest *);
ingot_dtype stage_dtype(const Nest *, int stage);
/* What is innermost of an axis: itself, or of what it is split into. */
int nest_innermost(const Nest *, int axis);
/* Is it a block of a row that stays in registers, or made of such blocks? */
bool nest_has_row(const Nest *, int axis);
/* The axis that stands for a range of nest->k. */
int nest_root(const Nest *, Node *range);

/* ---- lowered: loop nests one after the other ------------------------------------------------- */

/* A loop of a loop nest. */
typedef struct {
    const char *name;
    Node *range;
    Bound bound;
    bool scanned; /* carries the accumulators of SCANs from one iteration to the next */
} TileAxis;
/* STAGE .. move tma: the piece of a buffer that one copy brings into a place.
 *
 *     of a[1000][512] in f16, rows 64 i to 64 i + 63 and terms 128 r to 128 r + 127:
 *     at = {128 r, 64 i}   extent = {512, 1000}   stride = {1, 512}   size = {64, 64}   count = 2
 *
 * Axes are counted from the one that lies side by side. A line has 128 bytes, here 64 elements, so
 * two boxes are asked for. */
enum { MAX_BOX = 5, BOX_LINE = 16, BOX_MOST = 256, BOX_MOST_STEP = 8 };
typedef struct {
    int rank, arg, place;
    Node *at[MAX_BOX]; /* where it begins: counters of iterations, each times a constant */
    int64_t extent[MAX_BOX], stride[MAX_BOX]; /* of the buffer, in elements; beyond it are zeros */
    Node *end[MAX_BOX];    /* an extent that only a run knows, where zeros beyond it are summed */
    int64_t size[MAX_BOX]; /* of the box; the first one of a run of 128 bytes ... */
    int64_t count;         /* ... so many times, one box after the other */
    int64_t offset;        /* of the buffer's first element */
    int64_t elements;      /* of all */
    /* Of windows (places_window.c): size[1] counts positions from `at` on, `many` along an axis of
     * the image, the first one at `low`, which then run on along the next axis; `tap` is added to
     * each. */
    bool once; /* before all iterations, not for each */
    bool window;
    Node *tap[MAX_BOX];
    int64_t low[MAX_BOX], step[MAX_BOX], many[MAX_BOX];
    const char *why; /* it cannot be done so, or NULL */
} Box;
/* Where positions along an axis end, counted from the buffer's last element: as far as a window's
 * first tap comes, and less than a step more. */
static inline int64_t box_high(const Box *b, int i)
{
    return b->low[i] + b->many[i] * b->step[i] - b->extent[i];
}
/* What a place is filled with next (PREFETCH of what is staged): lines of the argument, of which
 * number `line`, a RANGE that is no loop, lies `at`; NULL: they do not lie so. */
typedef struct {
    int arg;
    Node *at, *line;
    int64_t lines;
} Panel;
/* A loop nest: loops over results, inside of them loops over terms, and stores, of which UPCAST
 * made straight-line copies. (A tile in the field's sense, the results that are computed together,
 * is what its copies and lanes cover.)
 *
 *     for axis[0] .. axis[naxis - 1]            over results
 *         for fill[..]                          what fills a place, before it is read
 *         for reduce[0] .. reduce[nreduce - 1]  over terms
 *         store[0] .. store[nstore - 1]         the copies */
typedef struct {
    Node **store;
    int nstore;
    TileAxis *axis; /* over results, outermost first */
    int naxis;
    TileAxis *reduce; /* over terms */
    int nreduce;
    TileAxis *fill; /* that fill places */
    int nfill;
    /* What is no loop: RANGEs that stand for all of their values at once, or NULL. */
    Node *lane; /* over the lanes of a vector */
    Node *four; /* over four terms of a sum (DOT) */
    int lanes;  /* of the vector */
    /* The matrix unit that computes here, or NULL: then over the rows, columns and terms of its
     * fragments.  Its rows are the innermost loop of the stores too. */
    const Tc *tc;
    Node *fragment[TC_AXES];
    /* Attention whose two products have other columns: the unit of the inner one, and over its
     * columns; or NULL. */
    const Tc *inner;
    Node *inner_columns;
    /* Over the four lanes that share a row of sums, if rows stay in registers (attention); and the
     * loop over blocks of a row, of which a warp has one at a time, or NULL: it has all. */
    Node *quad, *along;
    int row_sums, rows; /* of a row, or of a block of it, that a lane has: of each of so many */
    /* BIND warp of terms: over the items, neighbours, that join their parts without memory. */
    Node *across;
    int part; /* only the first so many lanes are loaded and stored (REST_LANES); 0: all */
    /* REST_BESIDE: the end of a row that fills no vector. The stores from `ntail` on run in a loop
     * of their own beside the innermost one (which then is the last axis if tail_beside), inside
     * all others. 0: there is none. */
    int ntail;
    bool tail_beside;
    TileAxis tail; /* range NULL: one element, no loop */
    /* THREAD: `fused` axes, inside of the first `uncut` ones, are one loop, of which parts
     * begin..end of `parts` are run; without any the last part runs all. parts 0: no THREAD. */
    int uncut, fused, parts;
    Prefetch prefetched[MOST_PREFETCHED];
    int nprefetched;
    Panel panel[MOST_PREFETCHED]; /* ... those that are staged */
    int npanel;
    /* STAGE with depth: iteration i of ahead_of reads what copies have filled, while those of
     * iteration `ahead`, depth - 1 later, begin; NULL: nothing is ahead. */
    Node *ahead_of, *ahead;
    bool together; /* some of these places have parts that one warp fills and another one reads */
    int depth;
    /* BIND cluster, split-K between groups: the RANGE of the groups that have parts of the same
     * sums, or NULL; then ... */
    Node *cluster;
    int share;   /* ... each stores so many of an item's sums, the first group the first; and */
    Node *ranks; /* the same of rows in registers (attention): their parts are joined in places */
    int joined;  /* ... of which this place has what the others have summed */
    int items;   /* BIND: of a group, which share the tile's places; 0: nothing is bound */
    /* Of all results of a group a mask leaves nothing, if `nothing` holds: each is `instead`; or
     * NULL: no mask is known. */
    Node *nothing, *instead;
    /* STAGE .. move tma, by STAGE: the boxes; NULL: nothing is moved by boxes. Then one more item,
     * the loader, asks for them. */
    Box *box;
    int nbox;
    int tokens;      /* the place with two tokens (mbarriers) a stage: filled, and free again */
    Trigger trigger; /* TRIGGER */
    int64_t stay;    /* STAY: so many groups are launched; 0: each block has one */
    int rests;       /* the place for what products in three need of columns besides (tc_rests()) */
} Tile;
/* The unit that takes a sum or a product of the tile, and its fragments' ranges. */
typedef struct {
    const Tc *tc;
    Node *fragment[TC_AXES];
} TileUnit;
TileUnit tile_unit(const Tile *, const Node *of);
/* Rows of attention whose operands lie in places: what is read there of one block. */
static inline bool tile_rows_in_place(const Tile *t)
{
    return t->along && t->box;
}
/* In such rows, of the choice `whole ? x : mask ? x : lowest` what is asked first: does the mask
 * leave all of a warpgroup's block?  NULL: it is no such choice. */
Node *tile_whole_block(const Tile *, const Node *choice);
/* Sums of an item: of attention, of both products, and what is packed of the one for the other. */
static inline int tile_sums(const Tile *t)
{
    const int own = (int)tc_sums_of(t->tc, (int64_t)t->tc->m * t->tc->n);
    return tile_rows_in_place(t) ? own + t->rows * t->row_sums + t->row_sums / 2 : own;
}
/* Is the loader a whole warpgroup, which leaves its registers to the others?  Where several
 * warpgroups have more sums than what they are launched with has room for: 192x192, or f32 in three
 * products, of which an item has two sums for each result. Where groups stay, too, and where blocks
 * of rows overlap: what lasts from block to block takes some. */
static inline bool tile_gives_registers(const Tile *t)
{
    return t->box && t->items > t->tc->lanes &&
           (tc_rests(t->tc) || t->stay || (tile_rows_in_place(t) && t->depth > 2) ||
            tile_sums(t) + tc_beside(t->tc) > tc_launched(t->items / t->tc->lanes));
}
/* Groups that stay: are the places those of several blocks, one after the other? */
static inline bool tile_has_some_places(const Tile *t)
{
    return t->box && !t->along && t->ahead_of->src[0]->hi < t->depth;
}
/* Is the loader one of the tile's items?  It waits for nobody where each iteration has a place of
 * its own. */
static inline bool tile_loads_itself(const Tile *t)
{
    return t->box && !t->along && !tile_gives_registers(t) && t->ahead_of->src[0]->hi <= t->depth;
}
/* Items that are launched for a group: those of the tile, and the loader. */
static inline int tile_group(const Tile *t)
{
    const bool more = t->box && !tile_loads_itself(t);
    return t->items + (tile_gives_registers(t) ? t->tc->lanes : more);
}
/* Items of a group, of kernels that have an item for each element, if they are one launch with
 * others. */
enum { TILE_LOOSE = 256 };
static inline int tile_group_together(const Tile *t)
{
    return t->items ? tile_group(t) : TILE_LOOSE;
}
/* Groups that are a cluster; 1: they form none. */
static inline int tile_cluster(const Tile *t)
{
    const Node *cluster = t->cluster ? t->cluster : t->ranks;
    return cluster ? (int)cluster->hi + 1 : 1;
}
typedef struct {
    Kernel *k; /* a copy in whose context the stores are */
    Tile *tile;
    int n;
} Tiles;
Tiles nest_lower(const Nest *);
/* Do the opts go with the loops that clear halos?  The nest that took them did not have these:
 * there may be more loops than there may be, or axes joined in a kernel of several stores. */
bool kernel_has_room(const Kernel *);
/* The RANGE at which PREFETCH asks for this argument, or NULL; and whether it is a loop over terms,
 * so that the argument is read once. */
Node *tile_prefetch(const Tile *, int arg);
bool tile_streams(const Tile *, int arg);
/* Does PREFETCH ask for anything at this RANGE? */
bool tile_asks_at(const Tile *, const Node *range);
void tiles_free(Tiles *);
/* decompose.c: conversions become single nodes where the target has one function or instruction:
 * cast(clamp(round(x) + z)) becomes QUANTIZE. */
bool decompose(const Tiles *, bool gpu);
/* Where argument `arg` of a lowered kernel lies in the memory of its places, in bytes: each begins
 * a line of cache. Of the number of its arguments: all bytes. narg: of the kernel itself. */
int64_t place_offset(const Kernel *, int narg, int arg);
/* Bytes of all of them where an element takes a word at least. */
int64_t places_in_words(const Kernel *, int narg, int word);
/* Bytes of a cache's line, where statements go by one. What a kernel and its opts come to is the
 * same for every target (a plan, a report and the interpreter have it without one), so this is no
 * figure of a Machine: it is the line of all CPUs with vectors that we know. On one with lines of
 * 128 bytes each is asked for twice, and rows begin at halves of one. */
enum { LOWERED_LINE = 64 };
/* Bytes that its places need, for each part that may run beside others. */
int64_t kernel_scratch(const Kernel *);
/* Are so many bytes of places variables of the kernel? Then each thread has them once; else they
 * lie in the arena, once for each part. */
bool places_are_local(int64_t bytes, const Target *);
/* split_copies.c: does what fills places for later iterations have its addresses as a base, known
 * before the loop, and the way from there? */
static inline bool copies_apart(const Tc *u)
{
    return u && u->lanes && u->products == 1;
}
/* That base, or NULL. */
Node *copy_base(const Tile *, const Node *load);
/* access.c: by how much e grows when range advances by one; false if that is no constant. */
bool range_stride(Context *, Node *e, Node *range, int64_t *stride);
/* mask_bounds.c: elements of the range from there on add nothing to the reduce, as a mask of
 * coordinates leaves them out; NULL: there is no such. */
Node *mask_limit(const Kernel *, Node *reduce, Node *range);
/* The same from the end: only so many elements, the last ones, add anything. */
Node *mask_rest(Arena *, const Kernel *, Node *reduce, Node *range);
/* The same of a value: the constant that it is from the limit on, or NULL. */
Node *mask_value(const Kernel *, Node *value, Node *range, Node **limit);
/* Of a WHERE, whatever its other side is. */
Node *mask_constant(const Kernel *, Node *where, Node *range, Node **limit);
/* Is a value the identity from the end of the range on, or from before, by a mask of the kernel's
 * own? */
bool mask_is_within(const Kernel *, Node *value, Node *range, const Node *identity);

#endif
