/* nest.h - how a kernel is computed: a kernel and what opts make of its loops.
 *
 * A Nest never changes the kernel's expression.  Every range of the kernel is the root of a tree of
 * axes; a split takes an axis apart,
 *
 *     i = (i.o * amount + i.i)  for i < whole,  then the remainder, whole <= i < extent
 *
 * and what no split took apart is a loop, the lanes of a vector, straight-line copies, or the four terms of a dot.  Opts name
 * axes and build the trees; opt_apply() is the only place that knows what an opt means.  nest_lower()
 * puts the trees' expressions in place of the ranges, once.
 *
 * A nest works on a copy of its kernel in a context of its own, which clones share: candidates that
 * are tried and dropped leave nothing in the kernel. */
#ifndef NEST_H
#define NEST_H

#include "target.h"
#include "tc.h"

typedef enum { AXIS_LOOP, AXIS_LANES, AXIS_COPIES, AXIS_FOUR, AXIS_UNIT } AxisForm;
typedef struct {
    const char *name; /* i0; its parts are i0.o and i0.i, what remains is i0.r */
    AxisForm form;
    bool reduced;
    bool staged;    /* of a value in a place, reduced too: what fills no vector begins earlier */
    bool scanned;   /* stays a loop, inside all others over outputs */
    bool remainder; /* no opt can name it */
    bool inner;     /* of a split's block, or a part of one */
    bool row;       /* along a row of sums that stay in the registers of lanes (Nest.inner) */
    int root;       /* the kernel's axis that it is a part of */
    int64_t extent; /* of 1: no loop is left; -1: known at run time only */
    int64_t most;   /* its upper bound */
    int64_t within; /* MASK: of a kernel's axis, where it ends; 0: it is not masked */
    Bound bound;
    int split; /* which takes it apart, or -1 */
} NestAxis;

/* How what fills no whole block is computed. */
typedef enum {
    REST_NONE,
    REST_OVERLAP, /* none: the last block begins earlier, and computes some elements again */
    REST_LOOP,    /* a loop nest of its own that counts through it; of a sum: terms of their own */
    REST_COPIES, /* a loop nest of its own with copies for all of it; of what fills a place: stores of its own */
    REST_LANES, /* a loop nest of its own with `lanes` lanes, of which the remainder's are used */
    REST_BESIDE /* a loop beside the vectors, inside all others: a reduce that both use is done once */
} RestForm;
typedef struct {
    OptKind kind;
    int axis, outer, inner;
    int rest; /* the axis of what remains, -1: none that can be a loop */
    int64_t amount, count,
        remaining; /* extent = amount * count + remaining; -1: known at run time only */
    RestForm form;
    int lanes; /* REST_LANES */
} Split;

/* What the loops inside of an axis read of an argument lies in a place of its own. */
typedef struct {
    int axis, arg;
    int depth; /* 0, or so many places, of which all but one are filled ahead */
    bool tma;  /* by boxes of the buffer, which a thread of its own asks for */
} Stage;

/* TRIGGER: when the kernel that is enqueued behind this one may begin, other than at its end. */
typedef enum { TRIGGER_NOT, TRIGGER_WAITED, TRIGGER_SUMMED } Trigger;

typedef struct NestKernel NestKernel;
typedef struct {
    Arena *arena;
    NestKernel *shared;
    Kernel *k; /* the copy: its nodes are not those of the kernel that the nest is of */
    const Target *target;
    NestAxis *axis; /* the kernel's first, in their order */
    int naxis;
    Split *split; /* in the order in which they were made */
    int nsplit;
    int *order; /* of axes that are not taken apart, outermost first */
    int norder;
    bool ordered; /* by an opt: then the loops of reduces are sorted too */
    int row;      /* the axis whose remainder is beside it, or -1 */
    int lanes;    /* of the vectors, 0: none */
    bool dots;    /* DOT was done */
    bool partial; /* PARTIAL was done */
    bool
        full; /* the last opt that asked for more loops was refused, since there would be too many */
    const Tc *tc; /* TC was done, or NULL: with these axes */
    int tc_axis[TC_AXES];
    const Tc
        *inner; /* TC of the sums that the other's operand is made of, or NULL: with these axes */
    int inner_axis[TC_AXES];
    Stage *stage; /* place i is argument narg + i of the kernel that is lowered */
    int nstage;
    int prefetch, prefetched; /* PREFETCH: the axis, or -1; the argument */
    int items;                /* of a group, by BIND; 0: nothing is bound */
    int sharing;              /* of these, how many have parts of the same sums; 0: none */
    Trigger trigger;          /* TRIGGER: when the next kernel may begin */
    int warp; /* BIND: an axis of terms whose parts neighbours join without memory, or -1; all such have one extent */
    int cluster;     /* BIND: the axis of terms that groups of a cluster share, or -1 */
    int thread;      /* the innermost axis of those that threads share, or -1 */
    int thread_from; /* the outermost of them, or -1: that of all loops */
    int parts;       /* that they are cut into, 0: none */
    int64_t copies;  /* of a store and of a reduce's terms */
    Kernel *joined;  /* of what kernel_lower() makes: a kernel of its own, or NULL */
    Opt *opts;       /* what made it */
    int nopt;
} Nest;

Nest *nest_new(const Kernel *, const Target *);
Nest *nest_clone(const Nest *);
void nest_free(Nest *);
/* Does what the opt says, or gives the reason why not: then the nest is as it was. The reason lives as long as it. */
const char *opt_apply(Nest *, const Opt *);
/* The same for an axis by its name (of an opt that takes a list: the list), or the loop that is left of a range of nest->k; false:
 * it cannot be done. */
bool nest_opt(Nest *, OptKind, const char *axis, int64_t amount);
bool nest_opt_range(Nest *, OptKind, Node *range, int64_t amount);
/* Why the nest cannot be computed with the layouts that the kernel's arguments have, or NULL.  For when all opts are known:
 * lanes may be stored two apart, if a later opt makes copies of what lies between. */
const char *nest_check(const Nest *);
/* Of it what does not hang on how arguments lie: on a GPU places have room. */
const char *nest_fits(const Nest *);
/* The kernel's opts become those of the nest. */
void nest_keep(const Nest *, Kernel *);
/* The axis of this name, or -1. */
int nest_find(const Nest *, const char *name, size_t length);
/* The loop that is left of an axis: itself, or the outermost part. */
int nest_loop(const Nest *, int axis);
/* Its name, of a range of nest->k. */
const char *nest_loop_name(const Nest *, Node *range);
/* A list of names for an opt that takes one, with that of the axis behind. */
const char *nest_and_name(Nest *, const char *names, int axis);
/* Where an axis stands in the order of those that are left; behind all of them if it is not among them. */
int nest_position(const Nest *, int axis);
/* Does a loop over results run for each block of terms of a sum (PARTIAL)? */
bool nest_in_partial(const Nest *, int axis);
/* What the last opt that took an axis apart made of it. */
const Split *nest_last_split(const Nest *);
/* Which STAGE is that of an argument, or -1. */
int nest_stage(const Nest *, int64_t arg);
/* The axis that stands for a range of nest->k. */
int nest_root(const Nest *, Node *range);

/* ---- lowered: loop nests one after the other ------------------------------------------------- */

typedef struct {
    const char *name;
    Node *range;
    Bound bound;
    bool scanned; /* carries the accumulators of SCANs from one iteration to the next */
} TileAxis;
/* What fills a place at once (STAGE .. move tma): a box of the buffer, in which the first axis lies side by side. */
enum { MAX_BOX = 5 };
typedef struct {
    int rank, arg, place;
    Node *at[MAX_BOX]; /* where it begins: counters of iterations, each times a constant */
    int64_t extent[MAX_BOX], stride[MAX_BOX]; /* of the buffer; what is beyond is zero */
    int64_t size[MAX_BOX];                    /* the first one of a run of 128 bytes ... */
    int64_t count;                            /* ... so many times, one box after the other */
    int64_t offset;                           /* of the buffer's first element */
    int64_t elements;                         /* of all */
    const char *why;                          /* it cannot be done so, or NULL */
} Box;
/* A loop nest.  Its stores are straight-line copies of the kernel's; they share the loops. */
typedef struct {
    Node **store;
    int nstore;
    TileAxis *axis; /* output loops, outermost first */
    int naxis;
    TileAxis *reduce;
    int nreduce;
    TileAxis *fill; /* loops that fill places */
    int nfill;
    Node *lane; /* RANGE over the lanes of a vector, or NULL */
    Node *four; /* RANGE over four terms of a sum (DOT), or NULL */
    int lanes;
    const Tc *tc; /* a matrix unit computes here, or NULL: */
    Node *fragment
        [TC_AXES]; /* RANGEs over the rows, columns and terms of its fragments; the rows are the innermost loop too */
    Node *
        quad; /* RANGE over the four lanes that share a row of sums, if rows of them stay in registers; or NULL */
    Node *
        across; /* BIND warp of what is reduced: RANGE over the items, neighbours, that join their parts without memory; or NULL */
    int part;   /* only the first so many lanes are loaded and stored; 0: all */
    /* The end of a row that fills no vector: the stores from `ntail` on run in a loop of their own beside the innermost
     * one (which then is the last axis if tail_beside), inside all others.  0: none. */
    int ntail;
    bool tail_beside;
    TileAxis tail; /* range NULL: one element, no loop */
    /* THREAD: `fused` axes, inside of the first `uncut` ones, are one loop, of which parts begin..end of `parts` are run; without
     * any the last part runs all.  parts 0: no THREAD. */
    int uncut, fused, parts;
    Node *
        prefetch; /* PREFETCH: the RANGE whose next iteration's part of this argument is asked for, or NULL */
    int prefetched;
    /* STAGE with depth: the RANGE whose iterations read what copies have filled, that of the iteration which is filled for (depth - 1
     * later), or NULL */
    Node *ahead_of, *ahead;
    int depth;
    Node *
        cluster; /* BIND: RANGE of the groups that have parts of the same sums, or NULL; then ... */
    int share; /* ... so many of an item's sums are stored by each, the first of them by the first */
    int joined; /* ... of which this place has what the others have summed */
    int items;  /* BIND: of a group, which share the tile's places; 0: nothing is bound */
    Box *
        box; /* by STAGE, or NULL: nothing is moved by boxes; then one more item asks for them, and ... */
    int nbox;
    int tokens; /* ... this place has two tokens for each of `depth` places: filled, and free again */
    Trigger trigger; /* TRIGGER */
    int rests; /* where a unit that reads operands in places keeps what it needs of them besides (tc_rests()) */
} Tile;
/* Do several warpgroups have products in three? Then those of loaders are a warpgroup, which leaves its registers to them: a result has two sums. */
static inline bool tile_gives_registers(const Tile *t)
{
    return t->box && tc_rests(t->tc) && t->items > t->tc->lanes;
}
/* Items that are launched for a group. */
static inline int tile_group(const Tile *t)
{
    return t->items + (tile_gives_registers(t) ? t->tc->lanes : t->box != NULL);
}
typedef struct {
    Kernel *k; /* a copy in whose context the stores are */
    Tile *tile;
    int n;
} Tiles;
Tiles nest_lower(const Nest *);
/* Of the nest that the kernel's own opts make, which were applied before: nothing is asked of the kernel again. */
Tiles kernel_lower(const Kernel *);
/* False: by its opts, which a nest without the loops that clear halos has taken, it would have more loops than there may be. */
bool kernel_has_room(const Kernel *);
/* What PREFETCH of this tile asks for is read once: by a loop over terms. */
bool tile_streams(const Tile *);
void tiles_free(Tiles *);
/* decompose.c: conversions become nodes of what the target has one function or instruction for. */
void decompose(const Tiles *, bool gpu);
/* Where argument `arg` of a lowered kernel lies in the memory of its places, in bytes: each begins a line of cache.  Of the
 * number of its arguments: all bytes.  narg: of the kernel itself. */
int64_t place_offset(const Kernel *, int narg, int arg);
/* Bytes that its places need, for each part that may run beside others. */
int64_t kernel_scratch(const Kernel *);
/* Are so many bytes of places variables of the kernel? Then each thread has them once; else they lie in the arena, once for
 * each part. */
bool places_are_local(int64_t bytes, const Target *);
/* interleave.c: of a tile's stores, with flat addresses, each two that write every other element between them become one,
 * with a second value behind its address; gives how many are left. */
int join_stores(Context *, const Tile *, Node **store);
/* rows.c: loads of lanes that lie apart, together with their neighbours, become loads of rows. */
void join_loads(Context *, const Tile *, int nstore, Node **store);
/* first_lane.c: addresses of flat accesses as that of the first lane and the way to the others; roots: loads, stores. */
void split_lanes(Arena *, const Kernel *, Node *lane, int nroot, Node **roots);
/* copies.c: of what fills the places of a GPU's matrix unit for later iterations addresses as a base and the way from there, gates as bits; roots: flat stores. */
void split_copies(Arena *, const Kernel *, const Tile *, int nroot, Node **roots);
/* Where that is done: */
static inline bool copies_apart(const Tc *u)
{
    return u && u->lanes && u->products == 1;
}
/* That base, or NULL. */
Node *copy_base(const Tile *, const Node *load);
/* access.c: by how much e grows when range advances by one; false if that is no constant. */
bool range_stride(Context *, Node *e, Node *range, int64_t *stride);

#endif
