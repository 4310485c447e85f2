/* render_together.c - a kernel as text: a function, or of a launch of several kernels one for each
 * of them and what calls them (together.c). */
#include "lowered.h"
#include "render.h"

int64_t kernel_groups(const Kernel *k)
{
    const Tile *t = &kernel_lowered(k, true)->tiles.tile[0];
    int64_t n = 1, extent;
    for (int i = 0; i < t->naxis; i++)
        if (t->axis[i].bound == BOUND_GRID && idx_value(t->axis[i].range->src[0], &extent))
            n = sat_mul(n, extent);
    return n;
}

bool kernel_is_counted(const Kernel *k)
{
    const Tile *t = &kernel_lowered(k, true)->tiles.tile[0];
    bool counted = !t->items;
    for (int i = 0; i < t->naxis; i++)
        counted |= t->axis[i].bound == BOUND_GRID && !idx_value(t->axis[i].range->src[0], NULL);
    return counted;
}

/* Kernels that are one launch, as functions, and what calls them. */
static unsigned render_together(StrBuf *sb, const Target *t, const Kernel *k,
                                const char *function_name)
{
    Arena *a = arena_new();
    Render r = {.arena = a, .sb = sb, .t = t, .lang = t->language};
    int64_t *end = NEWN(a, int64_t, k->ntogether), first = 0;
    for (int i = 0; i < k->ntogether; i++) {
        const bool counted = kernel_is_counted(k->together[i]);
        const char *from = counted ? "first" : arena_printf(a, "%lld", (long long)first);
        const char *group = arena_printf(a, "%s - %s", t->language->group, from);
        r.needs |= render_one(sb, t, k->together[i], first || counted ? group : t->language->group,
                              arena_printf(a, "%s_%d", function_name, i));
        put(&r, "\n");
        end[i] = first += kernel_groups(k->together[i]);
    }
    t->language->together(&r, k, end, function_name);
    put(&r, t->language->end);
    arena_free(a);
    return r.needs;
}

unsigned render_kernel(StrBuf *sb, const Target *t, const Kernel *k, const char *function_name)
{
    t = target_device(t, k->device);
    return k->ntogether ? render_together(sb, t, k, function_name)
                        : render_one(sb, t, k, NULL, function_name);
}

int64_t gpu_shared(const Kernel *lowered, int narg, const Target *t)
{
    int64_t bytes = t->gpu ? place_offset(lowered, narg, lowered->narg) : 0;
    return bytes > t->machine.shared_static ? bytes : 0;
}

bool gpu_bulk(const Kernel *k)
{
    const Lowered *l = kernel_lowered(k->ntogether ? k->together[0] : k, true);
    return l->tiles.n && l->linear[0].nbulk;
}

int64_t gpu_asked(const Kernel *k, const Target *t)
{
    int64_t most = 0;
    for (int i = 0; i < (k->ntogether ? k->ntogether : 1); i++) {
        const Kernel *one = k->ntogether ? k->together[i] : k;
        const Lowered *l = kernel_lowered(one, true);
        const int64_t bytes =
            gpu_shared(l->tiles.k, one->narg, t) + (l->tiles.n ? l->linear[0].bulk_bytes : 0);
        most = bytes > most ? bytes : most;
    }
    return most;
}
