/* machine.h - what a machine can do, and at which cost: all that a pass knows of the machine that
 * it plans for.
 *
 * A figure of a machine stands here and nowhere else: passes ask `target->machine`. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* How operations run: one by one, in the lanes of a loop, as multiply-adds of a tile in registers,
 * or as those of a core's matrix unit. */
typedef enum { UNIT_SCALAR, UNIT_VECTOR, UNIT_TILE, UNIT_MATRIX, UNITS } Unit;
enum { LEVELS = 4 }; /* of memory, at most */
/* A level of memory: how many bytes it holds (0: all that there are), how many it gives in a
 * cycle. */
typedef struct {
    double bytes, rate;
} Level;

/* Cycles of products of matrices whose fragments a warp multiplies (choose/gpu_mma.c). */
typedef struct {
    double iteration;     /* of the loop over blocks of terms, */
    double step;          /* and of one of its steps, whatever is multiplied there */
    double product;       /* that a warp waits for a product of fragments */
    double product3;      /* for the three of tf32x3 */
    double split;         /* an element of a fragment, into the two that those multiply */
    double flow;          /* bytes that items copy into one processor in a cycle */
    double gather, issue; /* an element that an item gathers: the wait for it, of some that are on
                                their way together; the instructions that it takes */
    double meet, member;  /* groups of a cluster, twice, and for each of them */
    double crowded;       /* groups of a cluster that are not close to each other */
    double given;         /* bytes of sums that a group gives or takes in a cycle */
    double join;          /* warps that have parts of the same sums meet */
    double stored;        /* results in a cycle */
    double address;       /* computed in each iteration, where terms are of several axes */
    double registers;     /* of an item, beside its sums and fragments: addresses and counters */
} WarpProducts;

/* The same of those that the items of four warps multiply together (choose/gpu_wgmma.c). */
typedef struct {
    double rate; /* products of 16 bits that a processor makes in a cycle */
    /* operands of products in three are taken apart: a line of terms, and each column */
    double apart, column;
    double begin3;  /* what these take beside, to begin and to end */
    double fill;    /* until the first boxes have come */
    double latency; /* of one box */
    double flow,
        flow_all;  /* bytes of boxes that come into one processor in a cycle, and into all */
    double stored; /* results in a cycle, */
    double given;  /* and those that groups of clusters give or take, all over the GPU */
    double finish; /* additions in a cycle, in what is made of results */
    double group;  /* a further warpgroup begins and ends */
} GroupProducts;

/* The same of rows of attention that stay in registers between two products
 * (choose/gpu_attention.c). */
typedef struct {
    double flow;              /* bytes that come into one processor in a cycle, copied ahead */
    double product, product3; /* instructions of a product: of one, and of three, of fragments */
    double wait, wait3;       /* until its result is there */
    double others, waited;    /* beside products, for eight keys: instructions, and waiting */
    double made, alone;       /* the same of rows that warpgroups multiply, */
    double rate;              /* products of 16 bits that a processor makes of them in a cycle, */
    double begin;             /* and until each warpgroup has begun and ended */
    /* the same where a block's results come with the next block's scores: what is made, products,
     * and until each warpgroup has ended a block of rows and begun the next one */
    double made_overlapped, rate_overlapped, next;
    double join;      /* of each part of a row */
    double registers; /* of an item: of more of them, others are read anew */
} RowProducts;

typedef struct {
    /* What time goes to (cost.c), in cycles: of one core, or of all of a GPU's. */
    double rate[UNITS];  /* operations a cycle */
    Level level[LEVELS]; /* nearest first */
    double cache;        /* bytes of the largest cache of this very machine; 0: not known */
    double near, far; /* bytes that loops are blocked for, so that what they read again stays in the
                           first and in the second level */
    double launch;    /* of a kernel */
    double link;      /* of a device beside the first: bytes of a copy there or back in a cycle */
    double part_ns;   /* nanoseconds of work, the least that is worth handing to another thread */
    double byte;      /* that a byte of memory is worth beside; 0: time alone counts */

    /* GPUs only */
    /* cycles that a kernel takes which only copies a value for another one, but for its bytes */
    double turned;
    double start;       /* until a group multiplies, and after it */
    double shared_rate; /* bytes that the memory of a group gives in a cycle */
    /* results, and operands that lie as they do, that a warp brings to memory or has from there in
     * a cycle, where blocks of them follow each other */
    double warp_stored;
    WarpProducts warp_products;
    GroupProducts group_products;
    RowProducts row_products;

    /* matrix units that no table has, beside `units`: records of its own (tc.h), ended by one
     * without a name; NULL: none */
    const struct Tc *own_units;
    uint64_t units; /* matrix units: bits by TcId */

    int line;         /* bytes that move together */
    int ways;         /* lines of a set of the first level */
    int page, pages;  /* bytes; and how many of them a core finds without looking far */
    int lanes;        /* f32 lanes of a vector register; 0: no vector types */
    int registers;    /* vector registers */
    int weight_block; /* of a bundle for several machines: weights lie in blocks of so many lanes,
                         which suit all; 0: as the loops read them */
    int sums;         /* that a tile may have without vector registers */
    int chains;       /* sums that keep a core busy while each waits for its last product */
    int spills;       /* of so many sums of a long tile one may leave its register */

    /* GPUs only */
    int processors;     /* groups that run at once, where each has one of its own */
    int close;          /* the same of groups of clusters of more than two */
    int cluster;        /* groups of a cluster, at most */
    int quarters;       /* of a processor, which each issue an instruction a cycle */
    int warp;           /* items that run in step */
    int file;           /* registers of a processor, */
    int item_registers; /* and those that an item may have */
    int group;          /* items of a group that leaves a processor little to wait for */
    int loads;          /* of an item that are under way at once: more wait for these */
    int access, sector; /* bytes of one load, at most; that memory brings at least */
    int items, shared;  /* that a group may have; and bytes of memory that they share */
    int shared_static;  /* of these, what a launch need not ask for */
    int place_word;     /* bytes that an element takes there at least; 0: as many as anywhere */
    int subgroup; /* neighbours in a group that hand each other values without memory; 0: none do */
    /* f32 lanes of the vector registers of a processor that is a core of a CPU, where memory of a
     * group is memory like any other, and items run one after the other; 0: it is none */
    int core_lanes;

    /* products of bytes that a dot without lanes takes at most: 8 or 16 where an instruction sums
     * the products of a vector (Helium); less: 4 */
    int dot_terms;

    /* products of bf16 that DOT takes in the time of one of f32 in a tile; at most 1: it is not
     * worth it, or there is no such instruction */
    double dot_bf16;
    /* the same of i16, which bytes are then stored as that sums read again and again */
    double dot_i16;

    bool soft_floats; /* it has no unit for floats: each operation is a function */
    bool dot;         /* igrt_dot_*() costs less than four products of bytes */
    /* in lanes it multiplies bytes of any sign, not only those without one with others */
    bool any_sign;
    /* what is read once is asked for, too, where a line of it is one product: memory brings more at
     * a time than the core looks ahead */
    bool asks;
    bool tables;          /* bytes that a table makes of bytes are made in vectors */
    bool pairs;           /* namely pairs of i16 that are made of them */
    bool joins_subgroups; /* GPUs: rows are reduced so unless a plan says otherwise */
    bool images;          /* GPUs: what is read by fours is an image unless a plan says otherwise */
    bool takes_fours; /* GPUs: products of bytes are summed by DOT unless a plan says otherwise */
} Machine;

/* Is DOT by so many terms worth it: of bytes; of two, bf16 if sums are floats, or i16? */
static inline bool machine_dots(const Machine *m, int terms, bool floats)
{
    return terms == 4 ? m->dot : terms == 2 && (floats ? m->dot_bf16 : m->dot_i16) > 1;
}

/* Are vectors multiplied as two halves, one after the other?  The rates say so. Other operations
 * are done beside. */
static inline bool machine_in_halves(const Machine *m)
{
    const double PRODUCTS = 1.5; /* rates of tiles by those of vectors, where both have all */
    return m->rate[UNIT_TILE] < PRODUCTS * m->rate[UNIT_VECTOR];
}

/* Terms of a sum of bytes, so many of them, that one dot takes: as many as divide them. */
static inline int machine_dot_terms(const Machine *m, int64_t extent)
{
    int terms = m->dot && m->dot_terms > 4 && !m->lanes ? m->dot_terms : 4;
    while (terms > 4 && extent % terms)
        terms /= 2;
    return terms;
}

static inline bool has_units(const Machine *m)
{
    return m->units || m->own_units;
}

/* Which of two machines is the faster one, as far as that is known without a kernel: by matrix
 * units, then lanes, then products of narrow types. */
static inline int machine_speed(const Machine *m)
{
    return has_units(m) << 8 | m->lanes << 2 | machine_dots(m, 4, false) << 1 |
           machine_dots(m, 2, true);
}

#endif
