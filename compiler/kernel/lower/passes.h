/* passes.h - what the passes from statements to statements share (lowered.h lists them).
 *
 * linearize() says what a kernel computes, in the order in which one item could do it.  What a
 * GPU's matrix units want besides is done to these statements, a pass each.  For a sum of products
 * whose operands are staged:
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
/* What is ended by a STMT_END; the END of such a statement, or another statement itself. */
bool stmt_opens(const Stmt *);
int stmt_end(const Stmt *, int at);
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
 * kernel before has to be done? */
bool *depends_on_earlier(Arena *, const Linear *, const Kernel *);

/* ---- the passes, in their order -------------------------------------------------------------- */

void keep_fragments(Linear *, const Kernel *);
void pipeline_copies(Linear *, const Kernel *);
void producer(Linear *, const Kernel *);
void cluster_sums(Linear *, const Kernel *);
void trigger(Linear *, const Kernel *);

#endif
