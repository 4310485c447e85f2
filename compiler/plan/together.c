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
 * So are those whose groups form clusters of one size (attention of a token, of each slot). Kernels
 * that have an item for each element have groups of TILE_LOOSE items then, which a run counts.
 *
 * Of several devices the steps of each are such a list. What crosses between these may part a
 * launch again (bundle_gpu_together.c).
 *
 * Requires the places of all buffers. Leaves Step.together, Step.follows. */
#include <string.h>

#include "kernel.h"
#include "plan.h"
#include "target.h"

/* Kernels of a launch, and bytes of its parameters. */
enum { MOST = 64, MOST_BYTES = 4096, WORD = 8, BOX_MAP = 128 };

/* What a kernel's launch is, where it may be one with others. */
typedef struct {
    int items;     /* of a group; 0: it may not */
    int64_t bytes; /* that a group's items share; 0: more than come without being asked for */
    int cluster;   /* groups that are one */
    int given;     /* bytes of parameters */
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

static bool has_cluster(const Kernel *k)
{
    bool has = false;
    for (int i = 0; i < k->nopt; i++)
        has |= k->opts[i].kind == OPT_BIND && k->opts[i].amount == BOUND_CLUSTER;
    return has;
}

static bool counts_groups(const Tile *t)
{
    for (int i = 0; i < t->naxis; i++)
        if (t->axis[i].bound == BOUND_GRID && !idx_value(t->axis[i].range->src[0], NULL))
            return false;
    return true;
}

/* With those of boxes, and where its groups begin. */
static int bytes_given(const Kernel *k)
{
    int n = k->narg + k->nvar + 2, boxes = 0;
    for (int i = 0; i < k->nopt; i++)
        boxes += k->opts[i].kind == OPT_STAGE && k->opts[i].tma;
    return n * WORD + boxes * BOX_MAP;
}

static LaunchForm form_of(const Step *s, const Machine *m)
{
    const Kernel *k = s->kernel;
    LaunchForm f = {0};
    const bool early = s->kind == STEP_KERNEL && waits_early(k);
    if (s->kind != STEP_KERNEL || k->serial || k->scratch || k->nscalar || k->crosses || s->nway ||
        !(early || kernel_has_boxes(k) || has_cluster(k)))
        return f;
    const Tiles tiles = kernel_lower(k);
    const Tile *t = &tiles.tile[0];
    const int64_t bytes = place_offset(tiles.k, k->narg, tiles.k->narg);
    const bool alone = bytes > m->shared_static, loose = early && !t->items && t->lanes < 2;
    const int cluster = tile_cluster(t);
    const bool boxes = alone && !t->stay && (t->box ? !t->quad : cluster > 1);
    if (tiles.n == 1 &&
        (loose ||
         (t->items && (boxes || (early && !t->box && cluster == 1 && counts_groups(t) && !alone)))))
        f = (LaunchForm){.items = tile_group_together(t),
                         .bytes = boxes ? 0 : bytes,
                         .cluster = cluster,
                         .given = bytes_given(k),
                         .boxes = boxes,
                         .counted = loose || !counts_groups(t),
                         .trigger = boxes ? t->trigger : TRIGGER_WAITED};
    ingot_context_free(tiles.k->c);
    return f;
}

/* The only access that a kernel has to the argument: a store; or NULL. */
static Node *only_store(Arena *a, const Kernel *k, int arg)
{
    int n;
    Node *store = NULL, **order = graph_toposort(a, 1, (Node *const *)&k->sink, &n);
    for (int i = 0; i < n; i++) {
        const bool of = order[i]->op == OP_LOAD || order[i]->op == OP_STORE;
        if (!of || order[i]->src[0]->arg.i != arg)
            continue;
        if (order[i]->op == OP_LOAD || store)
            return NULL;
        store = order[i];
    }
    return store;
}

/* Do both store parts of one buffer, as those of a concat, and never the same element? */
static bool are_parts(const Step *s, int i, const Step *t, int j)
{
    enum { COORDINATES = 3 };
    if (s->bufs[i] != t->bufs[j])
        return false;
    Arena *a = arena_new();
    Node *x = only_store(a, s->kernel, i), *y = only_store(a, t->kernel, j);
    bool apart = false;
    for (uint32_t d = COORDINATES; x && y && d < x->nsrc && d < y->nsrc; d++)
        apart |= x->src[d]->hi < y->src[d]->lo || y->src[d]->hi < x->src[d]->lo;
    arena_free(a);
    return apart;
}

/* Does one of them write what the other one touches? */
bool steps_meet(const Step *s, const Step *t)
{
    for (int i = 0; i < s->nbuf; i++)
        for (int j = 0; j < t->nbuf; j++)
            if ((s->kernel->args[i].written || t->kernel->args[j].written) &&
                share_bytes(s->bufs[i], t->bufs[j]) && !are_parts(s, i, t, j))
                return true;
    return false;
}

static bool may_follow(const Block *b, int first, int at, const LaunchForm *f, const Machine *m)
{
    bool good = at < b->n && at - first < MOST && f[at].items == f[first].items &&
                f[at].cluster == f[first].cluster && f[at].boxes == f[first].boxes &&
                f[at].counted == f[first].counted && f[at].trigger == f[first].trigger &&
                b->step[at]->aside == b->step[first]->aside;
    int64_t bytes = good ? f[at].bytes : 0, given = good ? f[at].given : 0;
    for (int i = first; i < at && good; i++) {
        bytes += f[i].bytes;
        given += f[i].given;
        good = !steps_meet(b->step[i], b->step[at]);
    }
    return good && bytes <= m->shared_static && given <= MOST_BYTES;
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
