/* lowered.c - a kernel is lowered once, and what was made is kept with it (lowered.h).
 *
 * Requires opts that fit the kernel (nest_check()), and for kernel_lowered() that it is not changed
 * any more. */
#include <string.h>

#include "lowered.h"
#include "passes.h"

/* ---- the passes ------------------------------------------------------------------------------ */

const LowerPass lower_pass[LOWER_PASSES] = {
    {"nest_lower", "loop nests, of the opts", NULL, NULL},
    {"decompose", "conversions as the target has them", decompose, NULL},
    {"flatten", "statements: stores, with flat addresses", NULL, flatten},
    {"join_stores", "lanes that are stored two apart", NULL, join_stores},
    {"join_loads", "lanes that lie apart are rows, transposed in registers", NULL, join_loads},
    {"split_lanes", "addresses of lanes as that of the first", NULL, split_lanes},
    {"split_copies", "STAGE .. depth: addresses and gates of copies", NULL, split_copies},
    {"linearize", "loops, and values with names", NULL, linearize},
    {"order_rows", "rows in registers: masks together, loads late", NULL, order_rows},
    {"spread_stores", "sums in turn: stores amid the terms of the next", NULL, spread_stores},
    {"spread_prefetches", "PREFETCH amid the products of a CPU's unit", NULL, spread_prefetches},
    {"keep_fragments", "PREFETCH: products of what was loaded before", NULL, keep_fragments},
    {"pipeline_copies", "STAGE .. depth: copies ahead", NULL, pipeline_copies},
    {"producer", "STAGE .. move tma: an item that has boxes copied", NULL, producer},
    {"cluster_sums", "BIND cluster: groups join their sums", NULL, cluster_sums},
    {"trigger", "when this kernel and the next one begin", NULL, trigger},
    {"bulk_weights", "TRIGGER copied: pieces of weights that come at once", NULL, bulk_weights},
    {"pair_stores", "neighbours are stored together", NULL, pair_stores},
};

int lower_pass_find(const char *name)
{
    for (int i = 0; i < LOWER_PASSES; i++)
        if (!strcmp(lower_pass[i].name, name))
            return i;
    return -1;
}

/* Nodes that a pass has made have no names. */
static void know_nodes(Linear *l, uint32_t n)
{
    bool **const table[] = {&l->named, &l->vector, &l->four};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        bool *more = NEWN(l->arena, bool, n);
        memcpy(more, *table[i], l->nknown * sizeof *more);
        *table[i] = more;
    }
    uint8_t *more = NEWN(l->arena, uint8_t, n);
    memcpy(more, l->fragment, l->nknown * sizeof *more);
    l->fragment = more;
    l->nknown = n;
}

static void verify_statements(const Lowered *l, const char *after)
{
    for (int i = 0; INGOT_VERIFY && i < l->tiles.n; i++) {
        int at;
        Arena *a = arena_new();
        const Linear *s = &l->linear[i];
        const char *wrong =
            s->named ? linear_verify(a, s, l->tiles.k, &at) : stores_verify(a, s, l->tiles.k, &at);
        if (wrong)
            BUG("%s, statement %d after %s: %s", l->tiles.k->name, at, after, wrong);
        arena_free(a);
    }
}

static void run_next(Lowered *l)
{
    const LowerPass *pass = &lower_pass[l->passed];
    const Kernel *k = l->tiles.k;
    bool changed = pass->nests && pass->nests(&l->tiles, l->gpu);
    for (int i = 0; pass->statements && i < l->tiles.n; i++) {
        Linear *s = &l->linear[i];
        changed |= pass->statements(s, k);
        if (s->named && k->c->nnode > s->nknown)
            know_nodes(s, k->c->nnode);
    }
    l->changed[l->passed++] = changed;
    verify_statements(l, pass->name);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* Of stores that may collide: items have the axes along which none does, and run all others in
 * order.  Are there such? */
static bool orders_others(const Tiles *tiles)
{
    bool items = false;
    for (int i = 0; i < tiles->n; i++)
        for (int j = 0; j < tiles->tile[i].naxis; j++) {
            TileAxis *x = &tiles->tile[i].axis[j];
            x->scanned |= !stores_apart(tiles->k, x->range);
            items |= !x->scanned;
        }
    return items;
}

static Lowered *lower_begin(Tiles tiles, int narg, bool gpu)
{
    Lowered *l = NEW(tiles.k->c->arena, Lowered);
    const bool items = gpu && (!tiles.k->serial || orders_others(&tiles));
    *l = (Lowered){.tiles = tiles,
                   .narg = narg,
                   .gpu = gpu,
                   .items = items,
                   .passed = 1,
                   .changed = {true},
                   .linear = NEWN(tiles.k->c->arena, Linear, tiles.n + 1)};
    for (int i = 0; i < tiles.n; i++)
        l->linear[i] =
            (Linear){.arena = tiles.k->c->arena, .tile = &l->tiles.tile[i], .items = l->items};
    return l;
}

static Lowered *lower_upto(Lowered *l, int pass)
{
    while (l->passed <= pass)
        run_next(l);
    return l;
}

Lowered *lower_nest(const Nest *n, bool gpu)
{
    return lower_upto(lower_begin(nest_lower(n), n->k->narg, gpu), LOWER_PASSES - 1);
}

Lowered *lower_kernel(const Kernel *k, bool gpu, int pass)
{
    return lower_upto(lower_begin(kernel_lower(k), k->narg, gpu), pass);
}

Lowered *lower_naive(const Kernel *k)
{
    Kernel naive = *k;
    naive.nopt = 0;
    naive.opts = NULL;
    return lower_kernel(&naive, false, LOWER_PASSES - 1);
}

void lowered_free(Lowered *l)
{
    if (l)
        ingot_context_free(l->tiles.k->c);
}

void kernel_drop_lowered(Kernel *k)
{
    lowered_free(k->lowered);
    k->lowered = NULL;
    k->c->along = NULL;
}

void kernel_lower_pass(Kernel *k, bool gpu, int pass)
{
    Lowered *l = k->lowered;
    const uint64_t of = INGOT_VERIFY ? kernel_hash(k, 0) : 0;
    if (!l) {
        l = k->lowered = lower_begin(kernel_lower(k), k->narg, gpu);
        l->of = of;
        l->nopt = k->nopt;
        k->c->along = l->tiles.k->c;
    }
    if (l->of != of || l->nopt != k->nopt)
        BUG("%s: changed after it was lowered", k->name);
    if (l->gpu != gpu)
        BUG("%s: is a work item's program, and is none", k->name);
    (void)lower_upto(l, pass);
}

const Lowered *kernel_lowered(const Kernel *kernel, bool gpu)
{
    Kernel *k = (Kernel *)(uintptr_t)kernel; /* what it keeps is no part of what it says */
    kernel_lower_pass(k, gpu, LOWER_PASSES - 1);
    return k->lowered;
}
