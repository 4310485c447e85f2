/* together.c - kernels of a GPU that do not need each other are one launch.
 *
 *     q = h Wq    256 groups            groups 0 to 255: q, 256 to 511: k, 512 to 767: v
 *     k = h Wk    256 groups      ->
 *     v = h Wv    256 groups
 *
 * Each launch is prepared, begins and ends: where kernels are small that takes longer than what
 * they do.  So are steps that stand side by side (stages.c), whose groups have equally many items
 * and leave room for those of others (TRIGGER waited), and of which none writes what another one
 * touches.  They stay steps, of kernels of their own: the bundle launches them as one
 * (bundle_gpu_together.c).
 *
 * So are products whose operands come by boxes.  A group has a processor for itself, and what the
 * last groups of a launch leave idle is the next kernel's:
 *
 *     q: 256 groups of 132 processors' two rounds, k: 128, v: 128      2, 1 and 1 rounds
 *     one launch: groups of k and v are half as long as q's            3
 *
 * Of several devices the steps of each are such a list. What crosses between these may part a
 * launch again (bundle_gpu_together.c).
 *
 * Requires the places of all buffers. Leaves Step.together, Step.follows. */
#include <string.h>

#include "kernel.h"
#include "plan.h"
#include "target.h"

enum { MOST = 4 }; /* kernels of a launch */

/* What a kernel's launch is, where it may be one with others. */
typedef struct {
    int items;     /* of a group; 0: it may not */
    int64_t bytes; /* that a group's items share; 0: more than come without being asked for */
    bool boxes;    /* a group has a processor for itself: ... */
    bool counted;  /* ... there may be as many as a run says */
    Trigger trigger;
} LaunchForm;

static bool waits_early(const Kernel *k)
{
    bool waited = false;
    for (int i = 0; i < k->nopt; i++) {
        waited |= k->opts[i].kind == OPT_TRIGGER && strcmp(k->opts[i].axis, "summed") != 0;
        if (k->opts[i].tma || k->opts[i].kind == OPT_TC)
            return false;
    }
    return waited;
}

static bool counts_groups(const Tile *t)
{
    for (int i = 0; i < t->naxis; i++)
        if (t->axis[i].bound == BOUND_GRID && !idx_value(t->axis[i].range->src[0], NULL))
            return false;
    return true;
}

static LaunchForm form_of(const Step *s, const Machine *m)
{
    const Kernel *k = s->kernel;
    LaunchForm f = {0};
    const bool early = s->kind == STEP_KERNEL && waits_early(k);
    if (s->kind != STEP_KERNEL || k->serial || k->scratch || k->nscalar || k->crosses || s->nway ||
        !(early || kernel_has_boxes(k)))
        return f;
    const Tiles tiles = kernel_lower(k);
    const Tile *t = &tiles.tile[0];
    const int64_t bytes = place_offset(tiles.k, k->narg, tiles.k->narg);
    const bool alone = bytes > m->shared_static, boxes = t->box && alone && !t->quad && !t->stay;
    if (tiles.n == 1 && t->items && !t->cluster && !t->ranks &&
        (boxes || (early && !t->box && counts_groups(t) && !alone)))
        f = (LaunchForm){.items = tile_group(t),
                         .bytes = boxes ? 0 : bytes,
                         .boxes = boxes,
                         .counted = !counts_groups(t),
                         .trigger = boxes ? t->trigger : TRIGGER_WAITED};
    ingot_context_free(tiles.k->c);
    return f;
}

/* Does one of them write what the other one touches? */
bool steps_meet(const Step *s, const Step *t)
{
    for (int i = 0; i < s->nbuf; i++)
        for (int j = 0; j < t->nbuf; j++)
            if ((s->kernel->args[i].written || t->kernel->args[j].written) &&
                share_bytes(s->bufs[i], t->bufs[j]))
                return true;
    return false;
}

static bool may_follow(const Block *b, int first, int at, const LaunchForm *f, const Machine *m)
{
    bool good = at < b->n && at - first < MOST && f[at].items == f[first].items &&
                f[at].boxes == f[first].boxes && f[at].counted == f[first].counted &&
                f[at].trigger == f[first].trigger && b->step[at]->aside == b->step[first]->aside;
    int64_t bytes = good ? f[at].bytes : 0;
    for (int i = first; i < at && good; i++) {
        bytes += f[i].bytes;
        good = !steps_meet(b->step[i], b->step[at]);
    }
    return good && bytes <= m->shared_static;
}

/* b: the steps of a device. known: forms of kernels. */
static void find_launches(Plan *p, const Block *b, Map *known, const Machine *m)
{
    Arena *a = arena_new();
    LaunchForm *f = NEWN(a, LaunchForm, b->n + 1);
    for (int i = 0; i < b->n; i++) {
        const Kernel *k = b->step[i]->kernel;
        LaunchForm *of = k ? map_get(known, (uint64_t)(uintptr_t)k) : NULL;
        if (k && !of) {
            of = NEW(p->arena, LaunchForm);
            *of = form_of(b->step[i], m);
            map_put(known, (uint64_t)(uintptr_t)k, of);
        }
        f[i] = of ? *of : form_of(b->step[i], m);
    }
    for (int i = 0, end; i < b->n; i = end) {
        for (end = i + 1; f[i].items && may_follow(b, i, end, f, m);)
            end++;
        b->step[i]->together =
            vec_of(p->arena, (const void *)(b->step + i), (size_t)(end - i), sizeof *b->step);
        b->step[i]->ntogether = end - i;
        b->step[i]->follows = false;
        for (int j = i + 1; j < end; j++)
            b->step[j]->follows = true;
    }
    arena_free(a);
}

void find_together(Plan *p, const Target *t)
{
    Arena *a = arena_new();
    Map known = {0};
    for (int d = 0; d < p->ndevice; d++) {
        Block of = {.step = NEWN(a, Step *, p->main.n + 1)};
        for (int i = 0; i < p->main.n; i++)
            if (p->main.step[i]->device == d)
                of.step[of.n++] = p->main.step[i];
        find_launches(p, &of, &known, &t->machine);
    }
    map_free(&known);
    arena_free(a);
}
