/* batches.c - a batch whose values no cache holds is computed some rows at a time.
 *
 *     f(x)   ->   concat(f(x[0:2]), f(x[2:4]), f(x[4:6]), f(x[6:8]))
 *
 * A layer of eight images writes what the next one reads from memory again; of two images it is in
 * the cache.  What a network makes of a part of the rows of its inputs, dead_elements.c finds;
 * parts have equal kernels, whose text is there once, and take the same memory one after the other.
 * Weights are read for each part, and a part keeps fewer cores busy: parts are as large as the
 * cache allows, and there are none where less than half of the bytes stays away from memory.
 *
 * Requires results whose first axes have one size.  Leaves concats of results. */
#include <math.h>

#include "cost.h"
#include "rewrite.h"

/* Rows that all results have along the first axis; 0: they differ, or the run knows them. */
static int64_t rows_of_results(const Context *c)
{
    int64_t rows = 0, n;
    for (int i = 0; i < c->noutput; i++) {
        const Node *y = c->outputs[i].node;
        if (!y->rank || !idx_value(y->shape[0], &n) || (rows && n != rows))
            return 0;
        rows = n;
    }
    return rows;
}

typedef struct {
    /* bytes of values that a later sum reads; of weights, and of inputs that all rows share */
    double *value, *weight;
    int nvalue, nweight;
} Traffic;

static Traffic traffic_of(Arena *a, const Context *c, int n, Node *const *order, int64_t rows)
{
    Traffic f = {0};
    bool *summed = NEWN(a, bool, c->nnode + 1);
    for (int i = n; i-- > 0;) {
        const Node *t = order[i];
        for (uint32_t k = 0; k < t->nsrc; k++)
            summed[t->src[k]->id] |= t->op == OP_REDUCE || summed[t->id];
        const bool shared = t->op == OP_INPUT && (!t->rank || t->shape[0]->hi != rows);
        if (t->op == OP_REDUCE && summed[t->id])
            vec_push(a, f.value, f.nvalue, node_bytes(order[i]));
        if (t->op == OP_DATA || shared)
            vec_push(a, f.weight, f.nweight, node_bytes(order[i]));
    }
    return f;
}

/* Bytes that come from memory where rows are computed in so many parts: values that are written and
 * read, unless a cache has them by then, and weights. */
static double from_memory(const Traffic *f, int64_t parts, double cache)
{
    double values = 0, weights = 0;
    for (int i = 0; i < f->nvalue; i++)
        values += 2 * f->value[i] / (double)parts > cache ? 2 * f->value[i] : 0;
    for (int i = 0; i < f->nweight; i++)
        weights += f->weight[i];
    return values + weights * (weights > cache ? (double)parts : 1);
}

/* How many parts leave the least, no more than half of what there is without; the fewest of
 * these. */
static int64_t best_parts(const Traffic *f, int64_t rows, double cache)
{
    int64_t best = 1;
    double least = from_memory(f, 1, cache) / 2;
    for (int64_t parts = 2; parts <= rows && parts <= MOST_PIECES; parts++) {
        const double bytes = rows % parts ? INFINITY : from_memory(f, parts, cache);
        if (bytes < least) {
            least = bytes;
            best = parts;
        }
    }
    return best;
}

bool batches(Context *c, const Target *t)
{
    const double room = t->machine.cache * 3 / 4; /* beside what else is in use */
    const int64_t rows = c->nstate || c->noutput_group || t->gpu ? 0 : rows_of_results(c);
    if (rows < 2 || !room || !t->machine.lanes || t->machine.byte >= DEAR)
        return false;
    Arena *a = arena_new();
    int nroot, n;
    Node **roots = rewrite_roots(c, a, &nroot), **order = graph_toposort(a, nroot, roots, &n);
    const Traffic f = traffic_of(a, c, n, order, rows);
    const int64_t parts = nroot == c->noutput ? best_parts(&f, rows, room) : 1;
    Node **part = NEWN(a, Node *, parts * nroot);
    bool all = parts > 1;
    for (int64_t i = 0; i < parts && all; i++) {
        const GraphPart p = {
            .lo = i * (rows / parts), .hi = (i + 1) * (rows / parts), .share = 1. / (double)parts};
        all = roots_part(c, a, nroot, roots, &p, part + i * nroot);
    }
    for (int k = 0; k < nroot && all; k++) {
        Node *of[MOST_PIECES];
        for (int64_t i = 0; i < parts; i++)
            of[i] = part[i * nroot + k];
        c->outputs[k].node = concat_of(c, (int)parts, of, 0);
    }
    arena_free(a);
    return all;
}
