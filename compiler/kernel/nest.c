/* nest.c - nests are made, cloned and asked. */
#include <string.h>

#include "kernel.h"
#include "lowered.h"

static NestKernel *shared_new(Kernel *k)
{
    NestKernel *s = NEW(k->c->arena, NestKernel);
    *s = (NestKernel){.users = 1, .in_lanes = NEWN(k->c->arena, int8_t, k->naxis + 1)};
    return s;
}

static void take_axes(Nest *n)
{
    const Kernel *k = n->k;
    Arena *a = n->arena;
    n->axis = NULL;
    n->order = NULL;
    n->naxis = n->norder = 0;
    for (int i = 0; i < k->naxis; i++) {
        int64_t extent;
        NestAxis x = {.name = arena_strdup(a, k->axes[i].name),
                      .reduced = k->axes[i].reduced,
                      .staged = k->axes[i].staged,
                      .scanned = k->axes[i].scanned,
                      .root = i,
                      .extent = idx_value(k->axes[i].range->src[0], &extent) ? extent : -1,
                      .most = k->axes[i].range->hi + 1,
                      .split = -1};
        vec_push(a, n->axis, n->naxis, x);
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < k->naxis; i++)
            if (pass == k->axes[i].scanned)
                vec_push(a, n->order, n->norder, i);
}

static Nest *nest_begin(Kernel *k, const Target *t, bool own)
{
    Arena *a = arena_new();
    Nest *n = NEW(a, Nest);
    *n = (Nest){.arena = a,
                .k = k,
                .target = t,
                .row = -1,
                .thread = -1,
                .thread_from = -1,
                .cluster = -1,
                .warp = -1,
                .copies = 1};
    if (own)
        n->shared = shared_new(k);
    take_axes(n);
    return n;
}

Nest *nest_new(const Kernel *k, const Target *t)
{
    return nest_begin(kernel_copy(k), t, true);
}

void nest_replace(Nest *n, Kernel *k)
{
    if (n->shared && !--n->shared->users)
        ingot_context_free(n->k->c);
    if (n->shared)
        n->shared = shared_new(k);
    else if (n->joined)
        ingot_context_free(n->joined->c);
    n->joined = n->shared ? NULL : k;
    n->k = k;
    take_axes(n);
}

/* With its opts, which were judged before; *why: of one that is refused all the same. */
static Nest *nest_again(const Kernel *k, const char **why)
{
    Nest *n = nest_begin((Kernel *)(uintptr_t)k, NULL, false);
    *why = NULL;
    for (int i = 0; i < k->nopt && !*why; i++)
        *why = opt_apply(n, &k->opts[i]);
    return n;
}

bool kernel_has_room(const Kernel *k)
{
    const char *why;
    Nest *n = nest_again(k, &why);
    if (why && !n->full && n->k->sink->nsrc == 1) /* axes of a kernel of one store are joined */
        BUG("%s: %s", k->name, why);
    nest_free(n);
    return !why;
}

Tiles kernel_lower(const Kernel *k)
{
    const char *why;
    Nest *n = nest_again(k, &why);
    if (why)
        BUG("%s: %s", k->name, why);
    Tiles tiles = nest_lower(n);
    nest_free(n);
    return tiles;
}

/* Names live in the arena of the nest that made them. */
Nest *nest_clone(const Nest *from)
{
    Arena *a = arena_new();
    Nest *n = NEW(a, Nest);
    *n = *from;
    n->arena = a;
    n->axis = vec_of(a, from->axis, (size_t)n->naxis, sizeof *n->axis);
    n->split = vec_of(a, from->split, (size_t)n->nsplit, sizeof *n->split);
    n->order = vec_of(a, from->order, (size_t)n->norder, sizeof *n->order);
    n->opts = vec_of(a, from->opts, (size_t)n->nopt, sizeof *n->opts);
    n->stage = vec_of(a, from->stage, (size_t)n->nstage, sizeof *n->stage);
    for (int i = 0; i < n->naxis; i++)
        n->axis[i].name = arena_strdup(a, n->axis[i].name);
    for (int i = 0; i < n->nopt; i++)
        n->opts[i] = opt_copy(a, &n->opts[i]);
    if (n->shared)
        n->shared->users++;
    return n;
}

void nest_free(Nest *n)
{
    if (n && n->shared && !--n->shared->users)
        ingot_context_free(n->k->c);
    if (n && n->joined)
        ingot_context_free(n->joined->c);
    if (n)
        arena_free(n->arena);
}

Opt opt_copy(Arena *a, const Opt *o)
{
    Opt copy = *o;
    copy.axis = arena_strdup(a, o->axis);
    return copy;
}

void nest_keep(const Nest *n, Kernel *k)
{
    kernel_drop_lowered(k);
    k->opts = NULL;
    k->nopt = 0;
    for (int i = 0; i < n->nopt; i++)
        vec_push(k->c->arena, k->opts, k->nopt, opt_copy(k->c->arena, &n->opts[i]));
}

int nest_find(const Nest *n, const char *name, size_t length)
{
    for (int i = 0; i < n->naxis; i++) {
        const NestAxis *x = &n->axis[i];
        if (x->split < 0 && x->form == AXIS_LOOP && !x->remainder && strlen(x->name) == length &&
            !memcmp(x->name, name, length))
            return i;
    }
    return -1;
}

int nest_loop(const Nest *n, int axis)
{
    while (n->axis[axis].split >= 0)
        axis = n->split[n->axis[axis].split].outer;
    return axis;
}

const char *nest_loop_name(const Nest *n, Node *range)
{
    return n->axis[nest_loop(n, nest_root(n, range))].name;
}

const char *nest_and_name(Nest *n, const char *names, int axis)
{
    return arena_printf(n->arena, "%s%s%s", names, *names ? " " : "", n->axis[axis].name);
}

int nest_position(const Nest *n, int axis)
{
    for (int i = 0; i < n->norder; i++)
        if (n->order[i] == axis)
            return i;
    return n->norder;
}

bool nest_in_partial(const Nest *n, int axis)
{
    for (int i = 0; i < n->nsplit; i++)
        if (n->split[i].kind == OPT_PARTIAL &&
            nest_position(n, axis) > nest_position(n, n->split[i].outer))
            return true;
    return false;
}

const Split *nest_last_split(const Nest *n)
{
    return &n->split[n->nsplit - 1];
}

int nest_stage(const Nest *n, int64_t arg)
{
    for (int i = 0; i < n->nstage; i++)
        if (n->stage[i].arg == arg)
            return i;
    return -1;
}

int nest_place(const Nest *n, const Kernel *k, const Node *below, Node *load)
{
    Arena *a = arena_new();
    int place = nest_stage(n, load->src[0]->arg.i);
    for (int i = 0; i < n->nstage && place < 0; i++) {
        const Stage *s = &n->stage[i];
        Node *other = s->tma && s->depth ? only_load(a, below, s->arg) : NULL;
        if (other && reads_same_box(k, other, load))
            place = i;
    }
    arena_free(a);
    return place;
}

bool stage_is_wide(const Nest *n)
{
    return n->dots && !n->tc && !(n->target && n->target->gpu);
}

ingot_dtype stage_dtype(const Nest *n, int stage)
{
    return stage_is_wide(n) ? INGOT_I16 : n->k->args[n->stage[stage].arg].dtype;
}

int nest_root_of(const Kernel *k, Node *range)
{
    for (int i = 0; i < k->naxis; i++)
        if (k->axes[i].range == range)
            return i;
    BUG("a range without an axis");
}

int nest_innermost(const Nest *n, int axis)
{
    while (n->axis[axis].split >= 0)
        axis = n->split[n->axis[axis].split].inner;
    return axis;
}

bool nest_has_row(const Nest *n, int axis)
{
    return n->axis[nest_innermost(n, axis)].row;
}

int nest_root(const Nest *n, Node *range)
{
    return nest_root_of(n->k, range);
}

int nest_tc_terms(const Nest *n, const Kernel *k, Node *sum)
{
    Node *range[TC_AXES];
    for (int i = 0; i < TC_TERMS; i++)
        range[i] = k->axes[n->axis[n->tc_axis[i]].root].range;
    for (int i = 0; i <= n->ntc_more; i++) {
        const int axis = i ? n->tc_more[i - 1] : n->tc_axis[TC_TERMS];
        range[TC_TERMS] = k->axes[n->axis[axis].root].range;
        if (tc_takes(n->tc, sum, range))
            return axis;
    }
    return -1;
}

int kernel_parts(const Kernel *k)
{
    for (int i = 0; i < k->nopt; i++)
        if (k->opts[i].kind == OPT_THREAD)
            return (int)k->opts[i].amount;
    return 0;
}

/* Not what is packed: that is made of other sums. */
static bool reads_along(Node *n, Node *range)
{
    if (n->op == OP_LOAD)
        return depends_on(n->src[first_coord(n)], range);
    bool found = false;
    const uint32_t sources = n->op == OP_REDUCE ? 1 : n->nsrc;
    for (uint32_t i = 0; n->op != OP_PACK && i < sources && !found; i++)
        found = reads_along(n->src[i], range);
    return found;
}

TileUnit tile_unit(const Tile *t, const Node *of)
{
    TileUnit u = {.tc = t->tc};
    memcpy((void *)u.fragment, (const void *)t->fragment, sizeof u.fragment);
    if (t->inner && reads_along((Node *)(uintptr_t)of, t->inner_columns)) {
        u.tc = t->inner;
        u.fragment[TC_COLUMNS] = t->inner_columns;
    }
    return u;
}

Node *tile_whole_block(const Tile *t, const Node *choice)
{
    const Node *rest = choice->op == OP_WHERE ? choice->src[2] : NULL;
    return rest && tile_rows_in_place(t) && rest->op == OP_WHERE &&
                   rest->src[1] == choice->src[1] && rest->src[2]->op == OP_CONST
               ? choice->src[0]
               : NULL;
}
