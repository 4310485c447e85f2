/* threads.c - which loops of a kernel several threads share.
 *
 * Only loops over outputs are cut, between two iterations, and how often is decided here: nothing that is computed
 * depends on how many threads there are.  The outermost loop is the best: what the loops inside of it use again and again
 * (a block of weights, a row) stays with one thread.  Where it is short it is taken together with the next ones,
 * so that consecutive parts still share a block.  Small kernels stay whole. */
#include "kernel.h"

enum {
    PART_NS = 2500, /* the least that is worth handing to another thread */
    ENOUGH = 32,    /* iterations to divide: every one of 2..16 threads gets several */
    MAX_PARTS = 64,
    FEW_PARTS = 8, /* where each has places of its own, of so many bytes in all: */
    PLACES = 3 << 19
};

/* Nanoseconds on one core, very roughly: half of its multiply-adds, and caches that give 8 bytes. */
static double estimate(const Kernel *k, const Target *t)
{
    return (double)k->flops / (t->lanes ? 2.0 * t->lanes : 2.0) + (double)k->bytes / 8;
}

/* Would loop `i` of those over outputs, if it is one with those outside of it, repeat a reduce that stands between them? */
static bool repeats(const Nest *nest, const int *loop, int nloop, int i)
{
    int n;
    Node *const *order = kernel_end_nodes(nest->k, &n);
    for (int j = 0; j < n; j++) {
        bool inside = order[j]->op != OP_REDUCE;
        for (int l = i; l < nloop && !inside; l++)
            inside = depends_on(order[j], nest->k->axes[nest->axis[loop[l]].root].range);
        if (!inside)
            return true;
    }
    return false;
}

/* What one part writes, no other may read: then only views of other elements share memory with it. */
bool can_be_cut(const Kernel *k)
{
    for (int i = 0; i < k->narg; i++)
        if (k->args[i].read && k->args[i].written)
            return false;
    return !k->serial;
}

/* How many parts may have places of their own. */
static int64_t parts_with_places(const Nest *nest)
{
    bool staged = nest->partial;
    for (int i = 0; i < nest->k->naxis; i++)
        staged |= nest->k->axes[i].staged;
    if (!staged)
        return MAX_PARTS;
    Tiles t = nest_lower(nest);
    int64_t bytes = place_offset(t.k, nest->k->narg, t.k->narg);
    tiles_free(&t);
    if (places_are_local(bytes, nest->target))
        return MAX_PARTS;
    int64_t n = PLACES / bytes;
    return n < FEW_PARTS ? FEW_PARTS : n;
}

/* As many as there is work for, and memory; of the same length if that is possible. */
static int64_t count_parts(int64_t iterations, double ns, int64_t most)
{
    if (ns / PART_NS < (double)most)
        most = (int64_t)(ns / PART_NS);
    if (most > MAX_PARTS)
        most = MAX_PARTS;
    if (iterations <= most)
        return iterations;
    for (int64_t n = most; 2 * n > most; n--)
        if (iterations % n == 0)
            return n;
    return most;
}

void choose_threads(Nest *nest)
{
    const Kernel *k = nest->k;
    double ns = estimate(k, nest->target);
    if (ns < 2 * PART_NS || !can_be_cut(k))
        return;
    Arena *a = arena_new();
    int *loop = NEWN(a, int, nest->norder), nloop = 0, n = 0;
    for (int i = 0; i < nest->norder; i++) {
        const NestAxis *x = &nest->axis[nest->order[i]];
        if (!x->reduced && !x->remainder && x->extent != 1 &&
            !nest_in_partial(nest, nest->order[i]))
            loop[nloop++] = nest->order[i];
    }
    int row = nest->row < 0 ? -1 : nest_loop(nest, nest->row);
    int64_t iterations = 1;
    int staged = nloop; /* loops down to the first that a place is filled in */
    for (int s = 0; s < nest->nstage; s++)
        for (int i = 0; i < staged; i++)
            if (loop[i] == nest->stage[s].axis)
                staged = i + 1;
    while (n < staged && loop[n] != row && !nest->axis[loop[n]].scanned && iterations < ENOUGH &&
           !repeats(nest, loop, nloop, n)) {
        const NestAxis *x = &nest->axis[loop[n++]];
        iterations = sat_mul(iterations, x->most);
    }
    Opt o = {.kind = OPT_THREAD, .amount = count_parts(iterations, ns, parts_with_places(nest))};
    if (n)
        o.axis = nest->axis[loop[n - 1]].name;
    if (o.amount >= 2)
        (void)opt_apply(nest, &o);
    arena_free(a);
}
