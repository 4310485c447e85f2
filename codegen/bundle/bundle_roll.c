/* bundle_roll.c - steps that are the same but for where their tensors lie are written once, in a
 * loop.
 *
 *     transform(strip at arena + 0)        for (int i = 0; i < 24; i++) {
 *     multiply(...)                            transform(strip at arena + 101376*i)
 *     transform(strip at arena + 101376)       multiply(...)
 *     multiply(...)                        }
 *     ...
 *
 * The plan has them one by one: whatever reads it (the interpreter, .sched files, the profile)
 * knows of no loops. What a step differs by are numbers; where each of them grows by the same from
 * step to step, that is a loop. Loops of few steps are found first, and are steps of the longer
 * ones. A loop of the plan (a layer's attention, some heads at a time) is a step with the numbers
 * of all that it repeats. Weights that are arrays of C lie as the plan has them in its blob: which
 * of them an iteration takes, a table says (bundle_steps.c). */
#include <limits.h>
#include <string.h>

#include "bundle_writer.h"

enum { LONGEST = 256 }; /* steps of a loop */

static const double COST_LOOP = 0.5; /* of the text of a loop, in steps */

/* ---- of one step ---------------------------------------------------------------------------- */

/* Is it known later how often the loop has run? */
static bool has_count(const Step *loop)
{
    return loop->iterations && loop->iterations->op == OP_VAR && loop->iterations != loop->trip;
}

/* Kernels, and loops of the plan that run a known number of times: what else there is comes once.
 * The size of a string is the target's. */
static bool can_roll(const Bundle *b, const Step *s)
{
    for (int i = 0; i < s->nbuf; i++)
        if (s->bufs[i]->dtype == INGOT_STRING)
            return false;
    if (s->kind == STEP_LOOP)
        return !b->gpu && s->trip && !s->cond && !has_count(s);
    return s->kind == STEP_KERNEL && !b->gpu;
}

static bool has_offset(const Buffer *r)
{
    return r->kind == BUF_ARENA || r->kind == BUF_STATE || r->kind == BUF_WEIGHT;
}

static int64_t first_byte(const Buffer *buffer)
{
    const Buffer *r = buffer_root(buffer);
    return known_offset(buffer) + (has_offset(r) ? r->offset : 0);
}

/* A loop of the plan: its own number, then those of its steps. */
static Rolled of_loop(const Bundle *b, const Step *s)
{
    Rolled r = {.step = s, .count = 1, .cost = COST_LOOP, .key = 3, .nnumber = 1};
    r.body = roll_steps(b, &s->body, &r.nbody);
    for (int i = 0; i < r.nbody; i++) {
        const Rolled *x = &r.body[i];
        r.nnumber += x->nnumber;
        r.cost += x->cost;
        r.depth = x->depth > r.depth ? x->depth : r.depth;
        r.key = hash_bytes(r.key, &x->key, sizeof x->key);
    }
    r.number = NEWN(b->a, int64_t, r.nnumber);
    r.number[0] = s->number;
    for (int i = 0, at = 1; i < r.nbody; i++)
        for (int k = 0; k < r.body[i].nnumber; k++)
            r.number[at++] = r.body[i].number[k];
    return r;
}

static Rolled of_step(const Bundle *b, const Step *s)
{
    Rolled r = {.step = s, .count = 1, .cost = 1, .key = 1};
    if (s->kind == STEP_LOOP)
        return of_loop(b, s);
    if (!can_roll(b, s))
        return r;
    r.number = NEWN(b->a, int64_t, s->nbuf + 2);
    r.number[r.nnumber++] = s->number;
    r.key = hash_bytes(r.key, &s->kernel, sizeof s->kernel);
    for (int i = 0; i < s->nbuf; i++) {
        r.number[r.nnumber++] = kernel_has_param(s->kernel, i) ? first_byte(s->bufs[i]) : 0;
        int kind = buffer_root(s->bufs[i])->kind;
        r.key = hash_bytes(r.key, &kind, sizeof kind);
    }
    r.number[r.nnumber++] = s->scratch ? s->scratch->offset : 0;
    return r;
}

/* The same memory, and the same run-time offsets in it. */
static bool same_place(const Buffer *x, const Buffer *y)
{
    const Buffer *rx = buffer_root(x), *ry = buffer_root(y);
    bool same = has_offset(rx) ? has_offset(ry) && rx->memory == ry->memory &&
                                     (rx->kind == BUF_WEIGHT) == (ry->kind == BUF_WEIGHT)
                               : rx == ry;
    if (!same || x->dtype != y->dtype)
        return false;
    for (; x->base && y->base; x = x->base, y = y->base) {
        const Node *ox = x->base_offset, *oy = y->base_offset;
        if (ox != oy && (!ox || !oy || ox->op != OP_CONST || oy->op != OP_CONST))
            return false;
    }
    while (x->base && (!x->base_offset || x->base_offset->op == OP_CONST))
        x = x->base;
    while (y->base && (!y->base_offset || y->base_offset->op == OP_CONST))
        y = y->base;
    return !x->base && !y->base;
}

/* But for their bodies, if they are loops. */
static bool same_steps(const Bundle *b, const Step *x, const Step *y)
{
    if (!can_roll(b, x) || !can_roll(b, y) || x->kind != y->kind)
        return false;
    if (x->kind == STEP_LOOP)
        return x->trip == y->trip && x->counter == y->counter;
    if (x->kernel != y->kernel || !x->scratch != !y->scratch)
        return false;
    if (x->scratch && x->scratch->memory != y->scratch->memory)
        return false;
    for (int i = 0; i < x->kernel->nscalar; i++)
        if (x->scalars[i] != y->scalars[i])
            return false;
    for (int i = 0; i < x->nbuf; i++)
        if (kernel_has_param(x->kernel, i) && !same_place(x->bufs[i], y->bufs[i]))
            return false;
    return true;
}

/* ---- loops ---------------------------------------------------------------------------------- */

static bool same(const Bundle *b, const Rolled *x, const Rolled *y)
{
    if (x->key != y->key || x->count != y->count || x->nbody != y->nbody ||
        x->nnumber != y->nnumber || !x->step != !y->step)
        return false;
    if (x->step && !same_steps(b, x->step, y->step))
        return false;
    if (!x->step && memcmp(x->stride, y->stride, (size_t)x->nnumber * sizeof *x->stride) != 0)
        return false;
    for (int i = 0; i < x->nbody; i++)
        if (!same(b, &x->body[i], &y->body[i]))
            return false;
    return true;
}

/* Whether every number grows from y to z as it does from x to y. */
static bool even(const Rolled *x, const Rolled *y, const Rolled *z)
{
    for (int i = 0; i < x->nnumber; i++)
        if (y->number[i] - x->number[i] != z->number[i] - y->number[i])
            return false;
    return true;
}

static Rolled loop_of(const Bundle *b, const Rolled *item, int period, int count)
{
    Rolled r = {.count = count, .body = item, .nbody = period, .cost = COST_LOOP, .key = 2};
    for (int i = 0; i < period; i++) {
        r.nnumber += item[i].nnumber;
        r.cost += item[i].cost;
        r.depth = item[i].depth >= r.depth ? item[i].depth + 1 : r.depth;
        r.key = hash_bytes(r.key, &item[i].key, sizeof item[i].key);
    }
    r.number = NEWN(b->a, int64_t, r.nnumber);
    r.stride = NEWN(b->a, int64_t, r.nnumber);
    for (int i = 0, at = 0; i < period; i++)
        for (int k = 0; k < item[i].nnumber; k++, at++) {
            r.number[at] = item[i].number[k];
            r.stride[at] = item[i + period].number[k] - item[i].number[k];
        }
    return r;
}

/* The way to write what begins at an item: it alone, or so many iterations of so many items. */
typedef struct {
    double cost; /* of all from here to the end */
    int period, count;
} RollChoice;

/* With loops of at most `longest` items where they are shorter; of at most `most` iterations where
 * there is no loop in them. */
static const Rolled *roll_once(const Bundle *b, const Rolled *item, int *n, int longest, int most)
{
    RollChoice *way = NEWN(b->a, RollChoice, *n + 1);
    int *equal = NEWN(b->a, int,
                      (size_t)longest + 1), /* by period: items from here on that come again */
        *evenly = NEWN(b->a, int, (size_t)longest + 1); /* and once more, as far away */
    for (int i = *n - 1; i >= 0; i--) {
        way[i] = (RollChoice){item[i].cost + way[i + 1].cost, 1, 1};
        double body = 0;
        int depth = 0;
        for (int p = 1; p <= longest && i + p < *n; p++) {
            const Rolled *x = &item[i], *y = x + p, *last = x + p - 1;
            body += last->cost;
            depth = last->depth > depth ? last->depth : depth;
            equal[p] = same(b, x, y) ? equal[p] + 1 : 0;
            evenly[p] = equal[p] > p && even(x, y, y + p) ? evenly[p] + 1 : 0;
            int count = equal[p] / p + 1, steady = evenly[p] / p + 2;
            count = count < steady ? count : steady;
            count = depth || count < most ? count : most;
            double cost = body + COST_LOOP;
            if (count < 2 || depth >= MAX_ROLLED || body * (count - 1) < 2)
                continue;
            cost += way[i + p * count].cost;
            if (cost < way[i].cost || (most < INT_MAX && !(cost > way[i].cost)))
                way[i] = (RollChoice){cost, p, count};
        }
    }
    Rolled *out = NEWN(b->a, Rolled, *n);
    int nout = 0;
    for (int i = 0; i < *n; i += way[i].period * way[i].count)
        out[nout++] =
            way[i].count > 1 ? loop_of(b, &item[i], way[i].period, way[i].count) : item[i];
    *n = nout;
    return out;
}

/* Items that are the body of the loop once more, where its numbers go on. */
static bool goes_on(const Bundle *b, const Rolled *loop, const Rolled *item)
{
    for (int i = 0, at = 0; i < loop->nbody; i++) {
        if (!same(b, &loop->body[i], &item[i]))
            return false;
        for (int k = 0; k < item[i].nnumber; k++, at++)
            if (item[i].number[k] != loop->number[at] + loop->stride[at] * loop->count)
                return false;
    }
    return true;
}

/* What follows a loop of few iterations and is one more of it becomes a part of it. */
static const Rolled *grow_loops(const Bundle *b, const Rolled *item, int *n)
{
    Rolled *out = NEWN(b->a, Rolled, *n);
    int nout = 0;
    for (int i = 0; i < *n; nout++) {
        Rolled *r = &out[nout];
        *r = item[i++];
        while (r->count > 1 && i + r->nbody <= *n && goes_on(b, r, &item[i])) {
            r->count++;
            i += r->nbody;
        }
    }
    *n = nout;
    return out;
}

/* Rolled in loops that are as long as they can be, or of few iterations, to be parts of longer
 * ones:
 *
 *     A A A B B A B B A B B A A A     A for 2, (A, B for 2) for 3, A for 3
 */
static const Rolled *roll_all(const Bundle *b, const Rolled *item, int *n, int most, double *cost)
{
    for (int longest = 1; longest <= LONGEST && longest < *n; longest *= 2)
        item = roll_once(b, item, n, longest, most);
    item = grow_loops(b, item, n);
    *cost = 0;
    for (int i = 0; i < *n; i++)
        *cost += item[i].cost;
    return item;
}

const Rolled *roll_steps(const Bundle *b, const Block *steps, int *n)
{
    static const int most[] = {INT_MAX, 2, 3};
    const Rolled *best = NULL;
    double least = 0;
    Rolled *item = NEWN(b->a, Rolled, steps->n);
    for (int i = 0; i < steps->n; i++)
        item[i] = of_step(b, steps->step[i]);
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        int count = steps->n;
        double cost;
        const Rolled *rolled = roll_all(b, item, &count, most[i], &cost);
        if (best && cost >= least)
            continue;
        best = rolled;
        least = cost;
        *n = count;
    }
    return best;
}
