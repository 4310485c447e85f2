/* opt_stage.c - STAGE and PREFETCH: where what is read lies before it is used. */
#include "opt.h"

bool kernel_has_boxes(const Kernel *k)
{
    bool boxes = false;
    for (int i = 0; i < k->nopt; i++)
        boxes |= k->opts[i].tma;
    return boxes;
}

/* A loop over results inside of the axis reads the same again. */
static bool reads_again(const Nest *n, Node *load, int axis)
{
    for (int i = nest_position(n, axis) + 1; i < n->norder; i++) {
        const NestAxis *x = &n->axis[n->order[i]];
        if (!x->reduced && x->extent != 1 && !depends_on(load, n->k->axes[x->root].range))
            return true;
    }
    return false;
}

/* Some item or copy inside of the axis reads what another one does. */
static bool shared_by_items(const Nest *n, Node *load)
{
    for (int i = 0; i < n->naxis; i++)
        if ((opt_is_item(n, i) || n->axis[i].form == AXIS_COPIES || n->axis[i].form == AXIS_UNIT) &&
            !depends_on(load, n->k->axes[n->axis[i].root].range))
            return true;
    return false;
}

/* Is it a factor of the dots, byte by byte, with nothing beyond an edge? */
static bool is_dot_operand(const Nest *n, Node *load)
{
    enum { BYTES = 4 };
    const View v = kernel_view(n->k);
    bool factor = false, terms = false, masked = false;
    for (int i = 0; i < v.nfactor; i++)
        factor |= v.factor[i] == load;
    for (int i = 0; i < n->naxis; i++)
        terms |= n->axis[i].form == AXIS_FOUR && v.dot &&
                 depends_on(load, n->k->axes[n->axis[i].root].range);
    for (int i = 0; i < n->k->naxis; i++)
        masked |= n->axis[i].within && depends_on(load, n->k->axes[i].range);
    return factor && terms && !masked && n->dots == BYTES && !n->lanes && !dot_has_digits(v.dot) &&
           node_is_const_i(load->src[1], 1);
}

/* Does a place that is filled at a loop move with an axis whose size only a run knows? Blocks of
 * one (MASK, SPLIT) have a constant size: the grid counts them, or that loop. */
static bool has_open_size(const Nest *n, int axis, int loop)
{
    const NestAxis *x = &n->axis[axis];
    if (x->extent >= 0 || x->bound == BOUND_GRID || axis == loop)
        return false;
    if (x->split < 0)
        return true;
    const Split *s = &n->split[x->split];
    return s->remaining || has_open_size(n, s->outer, loop) || has_open_size(n, s->inner, loop);
}

static const char *stage_refused(Nest *n, const Opt *o, int axis, Arena *a)
{
    if (!n->shared) /* judged before */
        return NULL;
    Node *load = only_load(a, n->k->sink, o->amount);
    if (opt_on_gpu(n) && (opt_is_item(n, axis) || n->items < 2))
        return opt_refuse(
            n,
            "STAGE %s %lld: it takes a loop, or an axis of the grid, of a kernel whose "
            "items are bound to lanes",
            o->axis, (long long)o->amount);
    if (!opt_on_gpu(n) && (n->axis[axis].reduced || !opt_is_output(n, axis)))
        return opt_refuse(n, "STAGE %s %lld: the axis is not one of the results", o->axis,
                          (long long)o->amount);
    if (!load || n->k->args[o->amount].written)
        return opt_refuse(n, "STAGE %s %lld: argument %lld is not one that is read in one place",
                          o->axis, (long long)o->amount, (long long)o->amount);
    if (nest_stage(n, o->amount) >= 0)
        return opt_refuse(n, "STAGE %s %lld: argument %lld is staged already", o->axis,
                          (long long)o->amount, (long long)o->amount);
    int64_t fill;
    if (n->tc && n->tc->lanes && !tc_fill(n->k, load, &fill))
        return opt_refuse(n,
                          "STAGE %s %lld: what the kernel takes for it beyond its edges is not one "
                          "number, which a place could have there",
                          o->axis, (long long)o->amount);
    if (n->dots && !opt_on_gpu(n) && !is_dot_operand(n, load))
        return opt_refuse(
            n,
            "STAGE %s %lld: with a CPU's DOT it takes an operand of a sum of bytes by "
            "fours, without lanes and without bounds that are checked",
            o->axis, (long long)o->amount);
    if (n->row >= 0 || (n->sharing && !n->tc) || n->k->sink->nsrc != 1)
        return opt_refuse(n,
                          "STAGE %s %lld: it cannot be combined with a remainder of its row, or "
                          "with sums that items "
                          "share",
                          o->axis, (long long)o->amount);
    for (int i = 0; i < n->k->naxis; i++)
        if (opt_has_rest(n, i))
            return opt_refuse(n, "STAGE %s %lld: the reduced axis %s is unrolled with a rest",
                              o->axis, (long long)o->amount, n->axis[i].name);
    for (int i = 0; i < n->naxis; i++)
        if (n->axis[i].form == AXIS_LANES && n->axis[i].reduced)
            return opt_refuse(n, "STAGE %s %lld: lanes run along a reduced axis", o->axis,
                              (long long)o->amount);
    for (int i = 0; i < n->k->naxis; i++)
        if (has_open_size(n, i, axis) && depends_on(load, n->k->axes[i].range))
            return opt_refuse(
                n,
                "STAGE %s %lld: the size of axis %s, along which it is read, is known at "
                "run time only",
                o->axis, (long long)o->amount, n->axis[i].name);
    if (opt_on_gpu(n) ? !shared_by_items(n, load) : !reads_again(n, load, axis))
        return opt_refuse(n, "STAGE %s %lld: no loop inside of the axis reads the same again",
                          o->axis, (long long)o->amount);
    return NULL;
}

static bool is_of_blocks(const Nest *n, int axis)
{
    bool blocks = false;
    for (int i = 0; i < n->nsplit; i++)
        blocks |= n->split[i].outer == axis && nest_has_row(n, n->split[i].inner);
    return blocks;
}

/* Of a row that is taken by blocks: what a block reads is filled ahead of it, whichever of the axes
 * along the row says so; what is the same for all blocks is not. */
static bool blocks_alike(const Nest *n, const Opt *o, int axis)
{
    bool good = true;
    for (int i = 0; i < n->nstage && good; i++)
        good = !o->depth || !n->stage[i].depth ||
               (n->stage[i].depth == o->depth && is_of_blocks(n, axis) &&
                is_of_blocks(n, n->stage[i].axis));
    return good;
}

/* All places of a kernel are filled ahead of one loop, or none is. */
static const char *depth_refused(Nest *n, const Opt *o, int axis)
{
    enum { MOST = 8 };
    const Stage *first = n->nstage ? &n->stage[0] : NULL;
    if (first && !(n->inner && blocks_alike(n, o, axis)) &&
        (first->depth != o->depth || first->tma != o->tma || (o->depth && first->axis != axis)))
        return opt_refuse(
            n, "STAGE %s %lld: all of a kernel have one depth, axis and move, if any has one",
            o->axis, (long long)o->amount);
    if (o->tma != tc_in_place(n->tc))
        return opt_refuse(
            n,
            o->tma ? "STAGE %s %lld move tma: it is for operands that a matrix unit reads where "
                     "they lie (TC wgmma)"
                   : "STAGE %s %lld: %s reads its operands where they lie: move tma is wanted",
            o->axis, (long long)o->amount, n->tc ? n->tc->name : "");
    if (!o->depth)
        return NULL;
    if (!n->tc || !n->tc->lanes)
        return opt_refuse(
            n,
            "STAGE %s %lld depth %lld: it is for operands of a matrix unit whose items "
            "copy while they compute",
            o->axis, (long long)o->amount, (long long)o->depth);
    /* those of boxes may be of several blocks (STAY): as many as there is room for */
    const int64_t room =
                      o->tma && n->target ? n->target->machine.shared / (n->tc->m * n->tc->run) : 0,
                  most = room > MOST ? room : MOST;
    if (o->depth < 2 || o->depth > most || !n->axis[axis].reduced)
        return opt_refuse(n, "STAGE %s %lld depth %lld: 2 to %lld places, of a loop over terms",
                          o->axis, (long long)o->amount, (long long)o->depth, (long long)most);
    if (!o->tma || n->inner)
        return NULL;
    if (n->sharing)
        return opt_refuse(n, "STAGE %s %lld move tma: it does not go with terms that warps share",
                          o->axis, (long long)o->amount);
    for (int i = 0; i < n->norder && n->order[i] != axis; i++) {
        const NestAxis *x = &n->axis[n->order[i]];
        if (!x->bound && x->form == AXIS_LOOP && x->extent != 1)
            return opt_refuse(n,
                              "STAGE %s %lld move tma: the loop over %s is outside of it: BIND it",
                              o->axis, (long long)o->amount, x->name);
    }
    return NULL;
}

const char *opt_stage(Nest *n, const Opt *o, int axis)
{
    if (n->tc && !n->tc->lanes)
        return opt_refuse(n, "STAGE %s: operands of %s are loaded into its tiles", o->axis,
                          n->tc->name);
    Arena *a = arena_new();
    const char *why = stage_refused(n, o, axis, a);
    arena_free(a);
    if (!why)
        why = opt_no_room(n, o, opt_counts_rounds(n) ? 1 : n->norder + 1);
    if (!why && n->shared)
        why = depth_refused(n, o, axis);
    if (why)
        return why;
    Stage s = {axis, (int)o->amount, (int)o->depth, o->tma};
    vec_push(n->arena, n->stage, n->nstage, s);
    return NULL;
}

/* ---- PREFETCH -------------------------------------------------------------------------------- */

/* Of operands whose fragments items have in registers: those of the next step. */
static const char *prefetch_fragments(Nest *n, const Opt *o, int axis)
{
    bool innermost = n->axis[axis].reduced;
    for (int i = nest_position(n, axis) + 1; i < n->norder; i++) {
        const NestAxis *x = &n->axis[n->order[i]];
        innermost &= x->bound || x->form != AXIS_LOOP || x->extent == 1;
    }
    Arena *a = arena_new();
    const bool reads = !n->shared || only_load(a, n->k->sink, o->amount);
    arena_free(a);
    if (!innermost)
        return opt_refuse(n, "PREFETCH %s %lld: of a GPU it takes the innermost loop over terms",
                          o->axis, (long long)o->amount);
    if (!reads || n->nstage)
        return opt_refuse(n, "PREFETCH %s %lld: it is of an operand of the unit, before STAGE",
                          o->axis, (long long)o->amount);
    n->prefetched[0] = (Prefetch){axis, (int)o->amount, NULL};
    n->nprefetched = 1;
    return NULL;
}

const char *opt_prefetch(Nest *n, const Opt *o, int axis)
{
    if (n->tc && n->tc->lanes && !tc_in_place(n->tc))
        return prefetch_fragments(n, o, axis);
    const NestAxis *x = &n->axis[axis];
    Arena *a = arena_new();
    const Node *load = n->shared ? only_load(a, n->k->sink, o->amount) : NULL;
    bool moves = load && depends_on(load, n->k->axes[x->root].range);
    arena_free(a);
    if (opt_on_gpu(n) || (n->shared && !n->target->machine.lanes))
        return opt_refuse(n,
                          "PREFETCH %s %lld: it is for targets with vectors, and for units whose "
                          "operands the items of a GPU have in registers",
                          o->axis, (long long)o->amount);
    if (x->form != AXIS_LOOP || n->row >= 0)
        return opt_refuse(
            n,
            "PREFETCH %s %lld: it takes a loop, in a kernel without a remainder of its "
            "row",
            o->axis, (long long)o->amount);
    if (n->shared && (!moves || n->k->args[o->amount].written))
        return opt_refuse(
            n,
            "PREFETCH %s %lld: argument %lld is not one that is read in one place, which "
            "moves with the axis",
            o->axis, (long long)o->amount, (long long)o->amount);
    bool good = n->nprefetched < MOST_PREFETCHED && nest_stage(n, o->amount) < 0;
    for (int i = 0; i < n->nprefetched; i++)
        good &= n->prefetched[i].arg != o->amount;
    if (!good)
        return opt_refuse(n,
                          "PREFETCH %s %lld: up to %d arguments can be asked for, once each, "
                          "which are not staged",
                          o->axis, (long long)o->amount, MOST_PREFETCHED);
    n->prefetched[n->nprefetched++] = (Prefetch){axis, (int)o->amount, NULL};
    return NULL;
}
