/* passes.h - what the passes from statements to statements share (lowered.h lists them).
 *
 * The first statements of a loop nest are its stores alone, one behind the other; what they store
 * are expressions, and the loops around them are the tile's.  What is to be loaded, stored and
 * addressed otherwise is changed there, where nothing has a name yet.  Of y[j, i] = x[i, j] in four
 * lanes along i, and four copies along j:
 *
 *     flatten      a0[lane] = a1[4 lane]          join_loads   a0[lane] = row 0 of a1[4 lane]
 *                  a0[lane + 4] = a1[4 lane + 1]               a0[lane + 4] = row 1 of a1[4 lane]
 *                  ..                                          ..
 *
 * linearize() opens the loops, and gives names to values: it says what a kernel computes, in the
 * order in which one item could do it.  What a GPU's matrix units want besides is done to these
 * statements, a pass each.  For a sum of products whose operands are staged:
 *
 *     s = 0                                  s = 0
 *     loop r                                 barrier
 *         fill ahead = r                     loop ahead < 3                  the first copies begin
 *             store a7[ahead] = a1[..]           store async a7[ahead] = a1[..]
 *         end                                    commit
 *         let v = a7[r]                 ->   end
 *         s += v * ..                        loop r
 *     end                                        wait 2, barrier             those of r are done
 *                                                loop ahead = r + 3          those of r + 3 begin
 *                                                    ..
 *                                                let v = a7[r]
 *                                                s += v * ..
 *                                            end
 *
 * Each file of a pass has such a picture. */
#ifndef PASSES_H
#define PASSES_H

#include "kernel.h"
#include "linear.h"

/* ---- statements.c ---------------------------------------------------------------------------- */

/* n statements stand before statement `at` from now on; n of them are gone. */
void stmt_insert(Linear *, int at, const Stmt *, int n);
void stmt_remove(Linear *, int at, int n);
/* Before linearize(): the stores; these are all of them; each load and store of theirs becomes what
 * `change` makes of it, false: nothing was changed. */
Node **stores_of(const Linear *, Arena *, int *n);
void set_stores(Linear *, int n, Node *const *store);
bool change_accesses(Linear *, Context *, Node *(*change)(Context *, const Tile *, Node *));
/* n statements with another depth: they stand in a block that is opened at `depth`, and are copies
 * for which somebody has to wait, where they can be. */
void stmt_put_async(Stmt *, int n, int depth);

/* The loops of a unit's sums of products, and where what stands around them begins and ends. */
typedef struct {
    int first;  /* the sums' accumulators, and zeros for what is kept */
    int loop;   /* the outermost LOOP ... */
    int end;    /* ... and its END */
    int behind; /* behind the last products, which are done */
} SumLoops;
/* The next ones from a statement on; false: there are none. */
bool sum_loops(const Linear *, int from, SumLoops *);

/* By node id, of all nodes of the statements: is it made of what was enqueued earlier, so that the
 * kernel before has to be done?  any: or of what is settled. */
bool *depends_on_earlier(Arena *, const Linear *, const Kernel *, bool any);

/* ---- the passes, in their order: has it changed anything? ------------------------------------ */

/* The tile's stores, with flat addresses. */
bool flatten(Linear *, const Kernel *);
/* Each two stores that write every other element become one, with a second value behind its
 * address: y[2 q] = a, y[2 q + 1] = b store the vectors a and b interleaved. */
bool join_stores(Linear *, const Kernel *);
/* Loads of lanes that lie apart (x[i, lane] of a row-major x[lane, i]) become, with those of their
 * neighbours, loads of rows that are transposed in registers. */
bool join_loads(Linear *, const Kernel *);
/* Addresses become that of the first lane, and the way from there to the others. */
bool split_lanes(Linear *, const Kernel *);
/* What fills the places of a GPU's matrix unit for later iterations gets its addresses as a base,
 * known before the loop, and the way from there, its gates as bits of one number. */
bool split_copies(Linear *, const Kernel *);
bool linearize(Linear *, const Kernel *);
/* Of rows in registers: choices by a mask come one after the other, and loads behind products. */
bool order_rows(Linear *, const Kernel *);
/* Results of sums that come in turn are stored amid the terms of the next ones. */
bool spread_stores(Linear *, const Kernel *);
/* What is asked for stands amid a matrix unit's products, not before them all. */
bool spread_prefetches(Linear *, const Kernel *);
bool keep_fragments(Linear *, const Kernel *);
bool pipeline_copies(Linear *, const Kernel *);
bool producer(Linear *, const Kernel *);
bool cluster_sums(Linear *, const Kernel *);
bool trigger(Linear *, const Kernel *);
/* TRIGGER copied: weights of which each group has a piece come before the wait. */
bool bulk_weights(Linear *, const Kernel *);
/* Neighbours that can be stored together (are_neighbours()) stand one after the other. */
bool pair_stores(Linear *, const Kernel *);

#endif
