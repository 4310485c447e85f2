/* cpu.h - what the files that choose opts for CPUs share. */
#ifndef CPU_H
#define CPU_H

#include "choose.h"

/* Rows of a tile in registers; threads that work is divided for. */
enum { MAX_ROWS = 16, MAX_THREADS = 16 };

/* ---- cpu_lanes.c ---------------------------------------------------------------------------- */

/* lanes_along() for an extent that is given, and is not that of run time: 0 if it has no vector of
 * 4. */
int64_t lanes_for(const Kernel *, const Target *, Node *range, int64_t extent);
/* How many rows of a tile may be taken along a range. */
int64_t rows_of(Node *range);
/* So little is computed along a range that it may be copied; there is a function along it, of which
 * a vector takes a fraction of the time. */
bool is_short(Arena *, const Kernel *, Node *range);
bool has_function(Arena *, const Kernel *, Node *range);

/* ---- cpu_contraction.c ----------------------------------------------------------------------- */

/* By argument: may this kernel choose how it lies? It is a weight that is loaded in one place. */
void find_free(const Kernel *, const View *, const Buffer *const *bufs, bool *free);

/* ---- cpu_elementwise.c ----------------------------------------------------------------------- */

/* A loop on its way to its place in the nest. */
typedef struct {
    Node *range;
    int level;  /* how many reduces it lies inside of */
    bool inner; /* the inner part of a block */
    double key;
} LoopPlace;

/* Outermost first: by level, then by key, the greatest first. */
void sort_places(LoopPlace *, int n);
/* Elements between neighbours along a range, or more than any stride where that is not known. */
double storage_stride(const Kernel *, Node *access, Node *range);
void order_opt(Nest *, const LoopPlace *, int n);
/* SPLIT of a range's loop: the axes of both parts; of parts of one iteration there is nothing to
 * split, and inner is -1. */
typedef struct {
    int outer, inner;
} LoopParts;
bool split_loop(Nest *, Node *range, int64_t amount, LoopParts *);
/* What is no contraction. */
void plain_opts(Arena *, Nest *, const View *);
/* Sums over rows, of products too, that are read whole (PARTIAL); false: the nest is of no use. */
bool whole_rows_opts(Arena *, Nest *, const View *);

/* ---- cpu_reduce.c -------------------------------------------------------------------------- */

/* Vectors side by side, at most `most`, that leave as many parts as what the sums read is worth:
 * caches give it as fast in narrow strips. */
int64_t vectors_for_parts(const Nest *, const View *, const LoopPlace *, int n, int64_t lanes,
                          int64_t most);
/* SPLIT, ORDER and PARTIAL of sums over rows in lanes; false: nothing was done.  *at_once: of how
 * many vectors side by side registers hold the sums, which becomes a whole row where this is
 * better, and one of at most `most`. */
bool partial_opts(Arena *, Nest *, const View *, const LoopPlace *, int n, int64_t lanes,
                  int64_t most, int64_t *at_once);

/* ---- cpu_long_sum.c ------------------------------------------------------------------------- */

/* The opts of a product of very many terms, by blocks of them; gives the range of its lanes. NULL:
 * it is none, and nothing was done. free: find_free(). */
Node *long_sum_opts(Arena *, Nest **, const View *, const bool *free);

/* ---- cpu_tile.c ----------------------------------------------------------------------------- */

/* The results of a contraction that are in registers at a time.  C compilers write out a loop of so
 * many products: gcc's 200 instructions. */
enum { MAX_FOUR = 4, WRITTEN_OUT = 64 };
typedef struct {
    Node *lanes, *rows; /* rows: NULL if no axis reuses the lanes' operand */
    /* or NULL; where the lanes are a reduced axis, outputs over which the rows' operand is reused;
     * where they are stored two apart, what lies between */
    Node *columns;
    int64_t width, vectors, nrows, ncolumns;
    int moves;            /* operands that have to be copied first */
    Node *four[MAX_FOUR]; /* DOT: the reduced axes that are taken by fours, or pairs, */
    int nfour, terms;     /* namely so many */
    Node *taps; /* a reduced axis that is written out: rows share what they load; or NULL */
    bool apart; /* the lanes are stored two apart */
    bool reuse; /* some operand does not move with the lanes */
    bool waits; /* it has fewer sums than keep a core busy, since L2 holds no block of more */
    Node *wide; /* the operand that lies as 16 bits in a place (STAGE), or NULL */
    double score;
} RegisterTile;

/* Does the operand that the lanes move, of which there are panels, move along r too? */
bool moves_lanes_operand(const View *, Node *lanes, Node *r);

/* Of the operands that the lanes move, or of the others. */
double operand_bytes(const Kernel *, const View *, Node *lanes, bool moved);

/* Is an iteration of r a block of rows (an image, a sentence) that uses all panels of weights often
 * enough to have them come for it alone?
 *
 *     panels outermost    W of weights comes once, X of rows with each panel
 *     blocks outermost    W comes with each block, whose rows stay near; its few tiles leave room
 *                         to ask for the next panel meanwhile
 *
 * Where L2 holds either operand there is nothing to gain. */
bool is_block_of_rows(const Kernel *, const View *, Node *lanes, Node *rows, Node *r,
                      const Target *);

/* What so many multiply-adds for every load are worth: below ENOUGH the loads are what takes time;
 * beyond, up to PLENTY, some of them wait for a cache, and the fewer there are the less. */
double flow_of(double each, bool lanes);
/* pair: what is interleaved with the lanes, or NULL; terms: by how many reduced axes are taken
 * (DOT), or 0; moves: operands that have to be copied first, for these lanes. */
RegisterTile pick_tile(const Kernel *, const View *, const Buffer *const *bufs, Node *lanes,
                       Node *pair, int terms, int moves, const Target *);
/* Other tiles with the same lanes, where the score knows too little: of windows that take steps
 * what is loaded once follows from how a C compiler writes out the window; whether sums wait for
 * each other or for a cache is to be weighed. So many; cost_nest() tells which is best. */
enum { WINDOW_TILES = 16 };
int other_tiles(const Kernel *, const View *, const Buffer *const *bufs, const RegisterTile *,
                const Target *, RegisterTile *out);
RegisterTile pick_dot_tile(Arena *, const View *, const Kernel *, const bool *free, const Target *);
/* How far a row is from the one before it, in taps, which lie so far apart; 0: they have none in
 * common, or it falls between taps. */
int64_t step_in_taps(int64_t step, int64_t apart, int64_t taps);

/* ---- cpu_row_blocks.c ----------------------------------------------------------------------- */

/* The nest of a tile, before anything is staged, with its rows in blocks that stay in L2 while all
 * panels go by; NULL: they do not come from memory again and again. */
Nest *row_blocks(const Nest *, const View *, const RegisterTile *);

/* ---- cpu_prefetch.c -------------------------------------------------------------------------- */

/* Is what is loaded of that kind, and more than the first cache holds? */
bool is_large(const Kernel *, const Buffer *const *bufs, const Node *load, BufferKind,
              const Target *);
/* The weights of a network come from memory in every run, panel after panel: the next one is asked
 * for while the rows of results use this one, where it has lines enough for their loops. Few
 * weights are there before much of the kernel has run; sums that come in turn are so short that
 * asking takes as long as it saves. */
void prefetch_opts(Nest *, const View *, const Buffer *const *bufs, const RegisterTile *);
/* What a run reads once of a state, a cache of keys or values, comes from memory: it is asked for
 * ahead, in the innermost loop that goes from line to line of it. outputs: the lanes are along
 * results. */
void prefetch_states(Nest *, const View *, const Buffer *const *bufs, bool outputs);

/* ---- cpu_join.c ------------------------------------------------------------------------------ */

/* A nest in which axes of results that are one in all accesses have become one; NULL: there are
 * none. */
Nest *joined_results(const Nest *);

/* ---- cpu_digits.c ---------------------------------------------------------------------------- */

/* Does r say which bits of a word are taken, by the amount of a shift? */
bool takes_digits(const Node *, Node *r);
/* UNROLL of loops over the dots of a block, and over blocks whose digits share a word. */
void unroll_digits(Nest *, const View *, const RegisterTile *, const LoopPlace *, int n);
void unroll_digits_of_blocks(Nest *, const View *);

/* ---- cpu_turns.c ---------------------------------------------------------------------------- */

/* A tile of short sums of dots becomes one whose sums come in turn, where that is faster. */
void take_turns(const Kernel *, const View *, const Target *, RegisterTile *);

/* ---- cpu_dots.c ----------------------------------------------------------------------------- */

/* A tile of DOT without lanes, of weights that lie as it wants them; without lanes: there is
 * none. */
RegisterTile pick_scalar_tile(const Kernel *, const View *, const bool *free, Node *const *four,
                              int nfour, int terms, const Target *);

/* STAGE for the tile's wide operand, if it has one, in the innermost loop that moves it. */
void stage_wide(Nest *, const RegisterTile *);

/* cpu_pairs.c: of a sum whose pairs DOT could take, what may be copied for that counts as free;
 * whether there is any. */
bool free_pairs(const Kernel *, const View *, const Buffer *const *, const Target *, bool *free);
/* Copies for the opts of such a tile; false: they do not pay, or something lies otherwise. Takes
 * layouts of what is computed out of want. */
bool copy_pairs(Arena *, Nest *, const View *, const Buffer *const *, const RegisterTile *,
                Layout *want);

#endif
