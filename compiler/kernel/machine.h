/* machine.h - what a machine can do, and at which cost: all that a pass knows of the machine that it plans for.
 *
 * A figure of a machine stands here and nowhere else: passes ask `target->machine`. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdbool.h>

/* How operations run: one by one, in the lanes of a loop, or as multiply-adds of a tile in registers. */
typedef enum { UNIT_SCALAR, UNIT_VECTOR, UNIT_TILE, UNITS } Unit;
/* A level of memory: how many bytes it holds (0: all that there are), how many it gives in a cycle. */
typedef struct {
    double bytes, rate;
} Level;

typedef struct {
    /* What time goes to (cost.c), in cycles: of one core, or of all of a GPU's. */
    double rate[UNITS]; /* operations a cycle */
    Level level[5];     /* nearest first */
    double cache;       /* bytes of the largest cache of this very machine; 0: not known */
    double launch;      /* of a kernel */
    double byte;        /* that a byte of memory is worth beside; 0: time alone counts */
    int line;           /* bytes that move together */
    int lanes;          /* f32 lanes of a vector register; 0: no vector types */
    int registers;      /* vector registers */
    unsigned units;     /* matrix units: bits by TcId */
    bool dot;           /* igrt_dot_*() costs less than four products of bytes */
    bool any_sign;      /* in lanes it multiplies bytes of any sign, not only those without one with
                           others */
    bool pairs;         /* namely pairs of i16 that are made of them */
    /* GPUs only */
    bool joins_subgroups; /* rows are reduced so unless a plan says otherwise */
    bool takes_fours;     /* products of bytes are summed by DOT unless a plan says otherwise */
    int items, shared;    /* that a group may have; and bytes of memory that they share */
    int shared_static;    /* of these, what a launch need not ask for */
    int subgroup; /* neighbours in a group that hand each other values without memory; 0: none do */
} Machine;

#endif
