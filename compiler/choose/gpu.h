/* gpu.h - a contraction as a product of matrices, for the units of GPUs: what gpu_mma.c and
 * gpu_wgmma.c share. */
#ifndef GPU_H
#define GPU_H

#include "choose.h"

enum {
    MOST_RANGES = 8,
    MMA_MOST_OPERANDS = 3,
    MMA_MOST_NTH = 16,  /* blocks that a tuner may ask for, */
    WGMMA_MOST_NTH = 4, /* and these after them */
    MMA_TURN =
        /* blocks of rows that follow each other before the next columns: what they read is in L2
         * still */
    8
};

/* Numbers of candidates in the order of their times, the least first. */
typedef struct {
    double time[MMA_MOST_NTH];
    int number[MMA_MOST_NTH];
    int n;
} Ranking;

/* What becomes one axis: its name. */
typedef struct {
    Node *range[MOST_RANGES];
    const char *of[MOST_RANGES]; /* their names */
    int n;
    const char *name;
} JoinedAxis;

typedef struct {
    const Tc *unit;
    int64_t arg; /* of an operand */
    JoinedAxis rows, columns, terms, others;
    JoinedAxis copies; /* short axes that no sum moves with: results made of the same sums */
} Product;

/* Its extents. */
typedef struct {
    int64_t rows, columns, terms, others;
    int work;    /* what is made of a result before it is stored, in additions, */
    int read;    /* and how many operands lie as the results do (a residual) */
    int sums;    /* of one operand times so many others, each over all terms, */
    bool few;    /* rows (or columns) of data, beside weights: bytes of these take all the time */
    bool turned; /* then: these are the columns, and rows are the weights' */
    int64_t run; /* a block of columns is within so many (the channels of one tap); 0: anywhere */
} Extents;

/* The most columns of a product of few rows that is turned. */
enum { MMA_TURNED = 8 };
/* Has it so few rows, or columns, and how many is known when compiling? */
bool mma_has_few_rows(const Product *, int64_t rows, int64_t columns);
/* May groups of a cluster share the terms? */
bool mma_can_meet(const Target *, const Tc *);
/* Rows in the order in which they lie in the operand that moves with them: joined, they are lines
 * at one distance then, which boxes can bring. Those of results may lie in another one: only
 * columns are stored side by side. */
void mma_swap_ranges(JoinedAxis *, int i, int j);
void mma_order_rows(const Kernel *, Node *operand, JoinedAxis *rows);
/* By a unit of warpgroups, if that takes less than so many cycles; few rows by one whose columns
 * they are. */
bool mma_wgmma_opts(Nest **, Product, const Extents *, double cycles);
bool mma_few_opts(Nest **, const View *, const Product *, const Extents *);
/* Bytes that places of a group may take. Of few rows two groups fit a processor, of which one is
 * the next kernel's: it asks for what it multiplies while this one still runs. */
int64_t mma_room(const Extents *, const Target *);
/* The extent of an axis; the least and the most that it may have, of one that only the run knows.
 */
int64_t mma_least(const Node *range);
int64_t mma_most(const Node *range);
/* "i0.o" */
const char *mma_part(Nest *, const char *axis, const char *part);
int64_t mma_extent(const Nest *, const char *axis);
/* Groups that can run at once, where so many are a cluster. */
int64_t mma_processors(const Target *, int64_t cluster);
/* Blocks that a processor computes: so many in all, so many of them beside each other, with so many
 * warps; and what one of them is. */
typedef struct {
    double each, beside, warps, products, results; /* products: cycles until its sums are done */
    double stored;                                 /* results in a cycle */
} BlockTurns;
/* Do sums wait for operands from memory before they are stored, one block after the other? */
bool mma_waits(const Extents *, const BlockTurns *);
/* Cycles that products and stores of all these blocks take. */
double mma_blocks_cycles(const Extents *, const BlockTurns *, const Machine *);
/* What an axis is made longer by (MASK), so that it is whole blocks. */
bool mma_mask(Nest *, const char *axis, int64_t block);
/* An axis in blocks, of which the last may be masked: names of what counts them (NULL: there is
 * one) and of what is inside of one. */
bool mma_divide(Nest *, const char *axis, int64_t block, const char **outer, const char **inner);
/* Blocks of rows, if there are enough beside those of columns, in turns of MMA_TURN: names of what
 * counts turns and of what is inside of one (NULL: there are no turns). */
bool mma_turns(Nest *, const char *columns, const char **rows, const char **turn);
/* What the grid counts of a product, outermost first, for ORDER; some of them may be NULL. Of rows
 * whose number a run says all blocks come before the next columns, and so they do if `rows_stay` in
 * L2 and columns do not: these are read once. */
const char *mma_grid_order(Nest *, const char *rows, const char *columns, const char *turn,
                           bool rows_stay);
/* Axes, of which some may be NULL, are what the grid, a group or a cluster counts; so are those
 * that both operands move with. */
bool mma_bind(Nest *, int n, const char *const *axis, int to);
bool mma_bind_others(Nest *, const JoinedAxis *others);
/* What the product's axes are joined from becomes one axis each. */
bool mma_join(Nest *, Product *);
/* What the kernel's sums multiply: an operand that all have in common, and another one of each; 0:
 * they are no such sums. */
int mma_operands(const Kernel *, const View *, Node **operand);
/* All operands are staged at this loop over blocks of terms: ahead, if they lie so that they can
 * be; false: not at all. */
bool mma_stage(Nest **, const char *outer, int64_t depth);

/* One more candidate.  It takes the place of that at position `of`, if it takes less time; of -1 a
 * place of its own, or, if `most` have one each, the last one's.  The number that it has then; -1:
 * it has none. */
int mma_rank(Ranking *, int of, double time, int most);

/* gpu_wgmma.c: the same by a warpgroup's unit, if an estimate finds fewer cycles than those.
 * False: nothing was done. */
bool choose_wgmma_opts(Nest **, const Product *, const Extents *, double cycles);

#endif
