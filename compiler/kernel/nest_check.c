/* nest_check.c - does everything lie as the opts of a nest want it?  Asked once all of them are
 * known. */
#include "lower/passes.h"
#include "opt.h"

/* Does each access move so, one by one?  (Of two that are interleaved, neither does.) */
static bool each_contiguous(const Kernel *k, const Tile *t, Arena *a)
{
    int n;
    Node **order = graph_toposort(a, t->nstore, t->store, &n);
    for (int i = 0; i < n; i++) {
        Node *x = order[i];
        if (x->op != OP_LOAD && x->op != OP_STORE)
            continue;
        bool lane = false, four = false;
        for (uint32_t j = (uint32_t)first_coord(x); j < x->nsrc; j++) {
            lane |= t->lane && depends_on(x->src[j], t->lane);
            four |= t->four && depends_on(x->src[j], t->four);
        }
        int64_t stride;
        if ((lane && (!access_stride(k, x, t->lane, &stride) ||
                      (!(x->op == OP_LOAD && !four) && stride != (four ? tile_dot(t) : 1)))) ||
            (four && (!access_stride(k, x, t->four, &stride) || stride != 1)))
            return false;
    }
    return true;
}

/* In every loop nest, what moves with the lanes moves by one element a lane, or two are
 * interleaved; what a dot reads are four neighbours (two of bf16), those of the next lane behind
 * them. */
static int strided_arg(const Tiles *tiles, Arena *a)
{
    Context *c = tiles->k->c;
    for (int i = 0; i < tiles->n; i++) {
        const Tile *t = &tiles->tile[i];
        if ((!t->lane && !t->four) || each_contiguous(tiles->k, t, a))
            continue;
        Linear l = {.arena = a, .tile = t};
        (void)flatten(&l, tiles->k);
        (void)join_stores(&l, tiles->k);
        int n, nstore;
        Node **flat = stores_of(&l, a, &nstore);
        Node **order = graph_toposort(a, nstore, flat, &n);
        for (int j = 0; j < n; j++) {
            if (order[j]->op != OP_LOAD && order[j]->op != OP_STORE)
                continue;
            Node *at = order[j]->src[first_coord(order[j])];
            bool lane = t->lane && depends_on(at, t->lane),
                 four = t->four && depends_on(at, t->four);
            if (!lane && !four)
                continue;
            /* x[step lane], y[lane], y[2 lane] with what lies between, x[4 lane + four] */
            bool load = order[j]->op == OP_LOAD && !four;
            int64_t stride, want = four                       ? tile_dot(t)
                                   : order[j]->op == OP_STORE ? store_turns(order[j])
                                                              : 1;
            if ((lane && (!range_stride(c, at, t->lane, &stride) || (!load && stride != want))) ||
                (four && (!range_stride(c, at, t->four, &stride) || stride != 1)))
                return (int)order[j]->src[0]->arg.i;
        }
    }
    return -1;
}

/* The unit reads whole blocks of columns, of which the last may have fewer: what lies behind these
 * is the operand's too. */
static bool has_block(const Kernel *k, const Tile *t, Node *load)
{
    const KernelArg *arg = &k->args[load->src[0]->arg.i];
    Node *all = range_new(k->c, RANGE_ADDED, idx(k->c, t->tc->n));
    Node *at = substitute(k->c, load->src[first_coord(load)], 1, &t->fragment[TC_COLUMNS], &all);
    return t->tc->lanes || at->hi < layout_elements(&arg->layout, arg->rank, arg->dims);
}

/* What a unit reads lies as it takes it. */
static const char *fragments_apart(const Nest *n, const Tiles *tiles, Arena *a)
{
    for (int i = 0; i < tiles->n; i++) {
        const Tile *t = &tiles->tile[i];
        int count;
        Node **flat = NEWN(a, Node *, t->nstore), *first;
        int64_t pitch;
        if (!t->tc)
            continue;
        flatten_addresses(a, tiles->k, t->nstore, t->store, flat);
        Node **order = graph_toposort(a, t->nstore, flat, &count);
        for (int j = 0; j < count; j++) {
            Node *x = order[j];
            bool rows = x->op == OP_LOAD && depends_on(x, t->fragment[TC_ROWS]),
                 columns = x->op == OP_LOAD && depends_on(x, t->fragment[TC_COLUMNS]);
            if (rows == columns)
                continue;
            if (tc_fragment(tiles->k->c, t->tc, t->fragment, x, &first, &pitch)) {
                if (rows || has_block(tiles->k, t, x))
                    continue;
                return arena_printf(n->arena,
                                    "TC: %s reads %d columns at once, and argument %d ends before: "
                                    "its layout has no zeros there",
                                    t->tc->name, t->tc->n, (int)x->src[0]->arg.i);
            }
            const char *term = n->axis[n->tc_axis[TC_TERMS]].name,
                       *other = n->axis[n->tc_axis[rows ? TC_ROWS : TC_COLUMNS]].name;
            return rows ? arena_printf(n->arena,
                                       "TC: argument %d does not lie as %s takes it: %s side by "
                                       "side, %s at any distance",
                                       (int)x->src[0]->arg.i, t->tc->name, term, other)
                        : arena_printf(
                              n->arena,
                              "TC: argument %d does not lie as %s takes it: [%s / %d][%s][%d], "
                              "the lines at any distance",
                              (int)x->src[0]->arg.i, t->tc->name, term, t->tc->group, other,
                              t->tc->group);
        }
    }
    return NULL;
}

/* The places of a group have to fit into the memory that it shares. */
static const char *places_fit(const Nest *n)
{
    Tiles tiles = nest_lower(n);
    const int64_t bytes = n->target->machine.place_word
                              ? places_in_words(tiles.k, n->k->narg, n->target->machine.place_word)
                              : place_offset(tiles.k, n->k->narg, tiles.k->narg);
    tiles_free(&tiles);
    return bytes <= n->target->machine.shared
               ? NULL
               : arena_printf(n->arena, "the items of a group share %lld bytes: there are %d",
                              (long long)bytes, n->target->machine.shared);
}

/* A product of a warpgroup has all of its sums in registers, or its compiler gives up: an item's
 * share of the processor's, which are given by eights to warpgroups of items, has to hold them with
 * what else the product takes. */
static const char *sums_fit(const Nest *n, const Tile *t)
{
    enum { EACH = 8, OTHERS = 26 };
    const int64_t items = ceil_div(tile_group(t), t->tc->lanes) * t->tc->lanes;
    const int64_t registers = tile_gives_registers(t)
                                  ? tc_registers(t->items / t->tc->lanes)
                                  : n->target->machine.file / items / EACH * EACH;
    const int sums = tile_sums(t);
    return sums + OTHERS <= registers
               ? NULL
               : arena_printf(n->arena,
                              "TC: %s has %d sums in each item, and takes %d registers more: of "
                              "%lld items each has %lld",
                              t->tc->name, sums, OTHERS, (long long)items, (long long)registers);
}

/* Is it, or an index that is made of it, the number of a place: that of a block of keys? */
static bool numbers_place(const Tile *t, const Node *x)
{
    if (x->op == OP_MOD && x->src[0] == t->along)
        return true;
    for (uint32_t i = 0; i < x->nsrc && x->op != OP_LOAD && x->op != OP_REDUCE; i++)
        if (numbers_place(t, x->src[i]))
            return true;
    return false;
}

/* Rows of attention: the places of groups that stay are those of all their blocks, so what is
 * written as a place's number is one (render_stay.c). */
static const char *rows_may_stay(const Nest *n, const Tile *t)
{
    Arena *a = arena_new();
    const char *why = NULL;
    int count;
    Node **order = graph_toposort(a, t->nstore, t->store, &count);
    if (!tile_rows_in_place(t) || t->ahead_of->src[0]->hi <= t->depth)
        why = "rows of more blocks than there are places for are wanted";
    for (int i = 0; i < count && !why; i++) {
        const Node *x = order[i];
        const bool place = (x->op == OP_LOAD || x->op == OP_STORE) &&
                           (x->src[0]->op == OP_AFTER || x->src[0]->arg.i >= n->k->narg);
        for (uint32_t j = 0; j < x->nsrc && !place && x->dtype != INGOT_INDEX && !why; j++)
            if (x->src[j]->dtype == INGOT_INDEX && numbers_place(t, x->src[j]))
                why = "what is read or computed wants the number of a block's place";
    }
    arena_free(a);
    return why;
}

/* Do groups that stay have whole turns through their places, or whole blocks in them, by loaders of
 * their own? */
static const char *may_stay(const Nest *n, const Tile *t)
{
    int64_t steps;
    const char *why = NULL;
    if (!t->box || t->cluster || t->tc->products > 1 || t->items <= t->tc->lanes)
        why = "sums of one product by several warpgroups that no cluster shares are wanted";
    else if (t->along)
        why = rows_may_stay(n, t);
    else if (!idx_value(t->ahead_of->src[0], &steps) || (steps % t->depth && t->depth % steps))
        why = "the loop over terms is no whole turns through its places, and they are not those of "
              "whole loops";
    return why ? arena_printf(n->arena, "STAY: %s", why) : NULL;
}

/* What lanes read together lies in places of theirs, lines at a pitch of whole chunks. */
static const char *lane_fragments(const Nest *n)
{
    const char *why = NULL;
    Arena *a = arena_new();
    Tiles tiles = nest_lower(n);
    const Tile *t = tiles.tile;
    int count;
    Node **flat = NEWN(a, Node *, t->nstore);
    flatten_addresses(a, tiles.k, t->nstore, t->store, flat);
    Node **order = graph_toposort(a, t->nstore, flat, &count);
    for (int i = 0; i < n->nstage && t->box && !why; i++)
        why = t->box[i].why ? arena_strdup(n->arena, t->box[i].why) : NULL;
    for (int i = 0; i < count && !why; i++) {
        LaneFragment f;
        Node *x = order[i];
        const bool staged = x->op == OP_STORE && x->src[0]->arg.i >= n->k->narg &&
                            x->src[0]->arg.i < n->k->narg + n->nstage;
        if (staged && t->depth && store_chunk(x) < 2)
            why = arena_printf(
                n->arena,
                "STAGE: argument %d is not copied by 4, 8 or 16 bytes that lie side by "
                "side: it can have no depth",
                n->stage[x->src[0]->arg.i - n->k->narg].arg);
        if (x->op != OP_LOAD || !depends_on(x->src[first_coord(x)], t->fragment[TC_TERMS]))
            continue;
        int arg = (int)x->src[0]->arg.i;
        if (x->src[0]->op != OP_AFTER)
            why = arena_printf(n->arena,
                               "TC: %s takes operands out of places of the group: STAGE "
                               "argument %d",
                               n->tc->name, arg);
        else if (tc_in_place(n->tc) ? !tc_place_fragment(tiles.k->c, tile_unit(t, x).tc,
                                                         tile_unit(t, x).fragment, x, &f)
                                    : !tc_lane_fragment(tiles.k->c, t->fragment, x, &f))
            why = arena_printf(n->arena,
                               "TC: argument %d does not lie as %s takes it: rows "
                               "(columns) or terms side by side",
                               n->stage[arg - n->k->narg].arg, n->tc->name);
    }
    if (!why && tc_in_place(t->tc))
        why = sums_fit(n, t);
    if (!why && n->stay)
        why = may_stay(n, t);
    tiles_free(&tiles);
    arena_free(a);
    return why;
}

const char *nest_fits(const Nest *n)
{
    return n->items && (n->sharing || n->nstage) ? places_fit(n) : NULL;
}

/* Blocks of a row are what warps have, or come one after the other, if what is made of the row can
 * be; either way all that is along it is taken so. */
static const char *blocks_of_rows(const Nest *n)
{
    int warps = 0, loops = 0, ranks = 0, rows = 0;
    for (int i = 0; i < n->naxis; i++)
        rows += n->axis[i].row;
    for (int i = 0; i < n->nsplit; i++) {
        const NestAxis *blocks = &n->axis[n->split[i].outer];
        if (!nest_has_row(n, n->split[i].inner))
            continue;
        warps += blocks->bound == BOUND_WARP;
        ranks += blocks->bound == BOUND_CLUSTER;
        loops += blocks->bound == BOUND_NOT && blocks->split < 0;
    }
    if (tc_in_place(n->inner) && (loops != rows || warps || ranks))
        return "TC: rows of a unit that reads operands in places come block after block (SPLIT)";
    if (warps + loops + ranks == 0 || (warps == rows && !loops && !ranks))
        return NULL;
    if (loops != rows || (warps && warps != rows) || (ranks && (ranks != rows || !warps)))
        return "SPLIT: blocks of a row are for warps (BIND), or one after the other, of all axes "
               "along it; groups of a cluster have some of both";
    return rows_go_by_blocks(n)
               ? NULL
               : "SPLIT: blocks of a row are for warps (BIND): what is made of this row needs all "
                 "of it";
}

const char *nest_check(const Nest *n)
{
    if (n->inner && !n->tc)
        return "TC: what reads the rows of a unit's sums is to be taken by the unit too";
    const char *rows = n->inner ? blocks_of_rows(n) : NULL;
    if (rows)
        return rows;
    const char *why = opt_on_gpu(n) && n->tc ? lane_fragments(n) : NULL;
    if (why)
        return why;
    if (opt_on_gpu(n) && (why = nest_fits(n)))
        return why;
    if (!n->dots && (opt_on_gpu(n) || !n->lanes))
        return NULL;
    Arena *a = arena_new();
    Tiles tiles = nest_lower(n);
    int arg = strided_arg(&tiles, a);
    const char *fragment = n->tc && !opt_on_gpu(n) ? fragments_apart(n, &tiles, a) : NULL;
    tiles_free(&tiles);
    arena_free(a);
    if (fragment)
        return fragment;
    return arg < 0 ? NULL
                   : arena_printf(n->arena,
                                  "%s: argument %d does not lie contiguously along this axis: "
                                  "choose another layout for it",
                                  n->dots ? "DOT" : "VECTOR", arg);
}
