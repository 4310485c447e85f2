/* lowered.c - a kernel is lowered once, and what was made is kept with it (lowered.h).
 *
 * Requires opts that fit the kernel (nest_check()), and for kernel_lowered() that it is not changed
 * any more. */
#include "lowered.h"
#include "kernel.h"

static Lowered *lower_tiles(Tiles tiles, int narg, bool gpu)
{
    Arena *a = tiles.k->c->arena;
    Lowered *l = NEW(a, Lowered);
    *l = (Lowered){.tiles = tiles, .narg = narg, .gpu = gpu, .items = gpu && !tiles.k->serial};
    decompose(&tiles, gpu);
    l->linear = NEWN(a, Linear, tiles.n + 1);
    for (int i = 0; i < tiles.n; i++) {
        l->linear[i] = (Linear){.arena = a, .items = l->items};
        linearize(&l->linear[i], tiles.k, &tiles.tile[i]);
    }
    return l;
}

Lowered *lower_nest(const Nest *n, bool gpu)
{
    return lower_tiles(nest_lower(n), n->k->narg, gpu);
}

Lowered *lower_naive(const Kernel *k)
{
    Kernel naive = *k;
    naive.nopt = 0;
    naive.opts = NULL;
    return lower_tiles(kernel_lower(&naive), k->narg, false);
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

const Lowered *kernel_lowered(const Kernel *kernel, bool gpu)
{
    Kernel *k = (Kernel *)(uintptr_t)kernel; /* what it keeps is no part of what it says */
    Lowered *l = k->lowered;
    const uint64_t of = INGOT_VERIFY ? kernel_hash(k, 0) : 0;
    if (!l) {
        l = k->lowered = lower_tiles(kernel_lower(k), k->narg, gpu);
        l->of = of;
        l->nopt = k->nopt;
        k->c->along = l->tiles.k->c;
    }
    if (l->of != of || l->nopt != k->nopt)
        BUG("%s: changed after it was lowered", k->name);
    if (l->gpu != gpu)
        BUG("%s: is a work item's program, and is none", k->name);
    return l;
}
