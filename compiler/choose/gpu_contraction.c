/* gpu_contraction.c - opts without search, for GPUs.
 *
 * A contraction's results are cut into blocks, one for a group of items: columns, along which the
 * results lie side by side, and rows, over which the columns' operand is used again.  Each item has
 * a tile of accumulators.  Blocks of both operands go through memory that the group shares, some
 * terms of the sum at a time.  What fills no block is masked.
 *
 * Where that would be too few groups, gpu_reduce.c divides the terms among the items instead. */
#include <string.h>

#include "choose.h"

enum {
    ITEMS = 16,      /* of a group, along rows and along columns */
    MOST_COPIES = 8, /* of an item, along each */
    TERMS = ITEMS,   /* of a sum that a block has */
    LEAST_WORK = 1 << 20,
    LEAST_PARTS = 1 << 14,
    LEAST_ROWS = 4,
    SIDE = 4, /* copies along each, of a tile whose operands are worth a place */
    FULL = 4  /* groups for each processor */
};

static int64_t blocks(int64_t extent, int64_t copies)
{
    return ceil_div(extent, ITEMS * copies);
}

/* An axis in blocks: which of them is the group's, and in a block first copies, then items; columns
 * are taken by `side` neighbours each. */
static bool block_axis(Nest *n, int axis, int64_t copies, int64_t side)
{
    int64_t block = ITEMS * copies, extent = n->axis[axis].extent;
    int at = axis;
    if (extent % block && !nest_opt(n, OPT_MASK, n->axis[axis].name, block))
        return false;
    if (extent > block) {
        if (!nest_opt(n, OPT_SPLIT, n->axis[axis].name, block))
            return false;
        const Split *s = nest_last_split(n);
        int outer = s->outer;
        at = s->inner;
        if (!nest_opt(n, OPT_BIND, n->axis[outer].name, BOUND_GRID))
            return false;
    }
    if (side > 1) {
        if (!nest_opt(n, OPT_UPCAST, n->axis[at].name, side))
            return false;
        at = nest_last_split(n)->outer;
    }
    if (copies > side) { /* the copies are far apart: the items of a row read neighbours */
        if (!nest_opt(n, OPT_SPLIT, n->axis[at].name, ITEMS))
            return false;
        int far = nest_last_split(n)->outer, near = nest_last_split(n)->inner;
        if (!nest_opt(n, OPT_UPCAST, n->axis[far].name, copies / side))
            return false;
        at = near;
    }
    return nest_opt(n, OPT_BIND, n->axis[at].name, BOUND_LANE);
}

/* fours: of the axis whose terms are taken by fours (DOT) what is left, or -1. */
static bool contraction(Nest *n, const View *v, int rows, int columns, int fours)
{
    int64_t nr = 1, nc = 1, others = 1;
    for (int i = 0; i < v->nrange; i++) {
        int axis = nest_root(n, v->range[i]);
        if (axis != rows && axis != columns)
            others = sat_mul(others, n->axis[axis].most);
    }
    while (nr < MOST_COPIES && 2 * nr * ITEMS <= n->axis[rows].extent)
        nr *= 2;
    while (nc < MOST_COPIES && 2 * nc * ITEMS <= n->axis[columns].extent)
        nc *= 2;
    while ((nr > 1 || nc > 1) &&
           others * blocks(n->axis[rows].extent, nr) * blocks(n->axis[columns].extent, nc) <
               n->target->machine.processors) {
        if (nr >= nc)
            nr /= 2;
        else
            nc /= 2;
    }
    /* the longest axis that is summed, some terms at a time */
    int sum = fours, outer = -1;
    for (uint32_t i = 1; i < v->dot->nsrc && fours < 0; i++) {
        int axis = nest_root(n, v->dot->src[i]);
        if (n->axis[axis].extent > 0 && (sum < 0 || n->axis[axis].extent > n->axis[sum].extent))
            sum = axis;
    }
    if (sum < 0)
        return false;
    if (n->axis[sum].extent > TERMS) {
        if (n->axis[sum].extent % TERMS &&
            (fours >= 0 || !nest_opt(n, OPT_MASK, n->axis[sum].name, TERMS)))
            return false;
        if (!nest_opt(n, OPT_SPLIT, n->axis[sum].name, TERMS))
            return false;
        outer = nest_last_split(n)->outer;
    }
    if (!block_axis(n, rows, nr, nr < 4 ? nr : 4) || !block_axis(n, columns, nc, nc < 4 ? nc : 4))
        return false;
    for (int i = 0; i < v->nrange; i++) {
        int axis = nest_root(n, v->range[i]);
        if (axis != rows && axis != columns && n->axis[axis].extent != 1 &&
            !nest_opt(n, OPT_BIND, n->axis[axis].name, BOUND_GRID))
            return false;
    }
    const char *order = "";
    for (uint32_t i = 1; i < v->dot->nsrc; i++) { /* inside of all others, the terms of a block */
        int axis = nest_root(n, v->dot->src[i]);
        if (axis != n->axis[sum].root && n->axis[axis].extent != 1)
            order = nest_and_name(n, order, axis);
    }
    if (outer >= 0)
        order = nest_and_name(n, order, outer);
    if (*order)
        nest_opt(n, OPT_ORDER, order, 0);
    for (int i = 0; i < v->nfactor && outer >= 0; i++)
        nest_opt(n, OPT_STAGE, n->axis[outer].name, v->factor[i]->src[0]->arg.i);
    return true;
}

/* The two ranges are read by the same factors. */
static bool alike(const View *v, Node *a, Node *b)
{
    for (int i = 0; i < v->nfactor; i++)
        if (depends_on(v->factor[i], a) != depends_on(v->factor[i], b))
            return false;
    return true;
}

/* Columns are as many axes as lie side by side, one after the other, and are read alike: a row of
 * pixels is continued by the next. */
bool join_columns(Nest *n, const View *v)
{
    const Kernel *k = n->k;
    const char *names = "";
    Node *last = NULL;
    int64_t stride, want = 1;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < v->nrange && !more; i++) {
            Node *r = v->range[i];
            int64_t extent = n->axis[nest_root(n, r)].extent;
            if (extent < 2 || r == last || !access_stride(k, v->store[0], r, &stride) ||
                stride != want || (last && !alike(v, r, last)))
                continue;
            names = arena_printf(n->arena, *names ? "%s %s" : "%s%s", k->axes[nest_root(n, r)].name,
                                 names);
            want = sat_mul(want, extent);
            last = r;
            more = true;
        }
    }
    return strchr(names, ' ') && nest_opt(n, OPT_JOIN, names, 0);
}

/* The terms of a window are one loop, all of which is straight-line code then: of two, a C compiler
 * takes the bounds check of the outer one for a reason to branch, and loads of different rows wait
 * for each other. */
static void join_window(Nest *n)
{
    enum { MOST = 32 };
    const View v = kernel_view(n->k);
    const char *names = "";
    int64_t terms = 1;
    for (uint32_t i = reduce_ranges(v.dot); i < v.dot->nsrc; i++) {
        const int axis = nest_root(n, v.dot->src[i]);
        terms = n->axis[axis].extent < 0 ? INT64_MAX : sat_mul(terms, n->axis[axis].extent);
        if (n->axis[axis].extent == 1)
            continue;
        if (!view_slides(&v, v.dot->src[i]))
            return;
        names = nest_and_name(n, names, axis);
    }
    if (terms <= MOST && strchr(names, ' '))
        nest_opt(n, OPT_JOIN, names, 0);
}

/* Does the axis of `outer` go on in all factors where that of `inner` ends? */
static bool continues(const Kernel *k, const View *v, Node *outer, Node *inner)
{
    bool good = outer != inner && range_extent(outer) > 1 && range_extent(inner) > 1;
    for (int i = 0; i < v->nfactor && good; i++) {
        int64_t far, near;
        good = access_stride(k, v->factor[i], outer, &far) &&
               access_stride(k, v->factor[i], inner, &near) && near > 0 &&
               far == sat_mul(near, range_extent(inner));
    }
    return good;
}

/* Terms along two axes, of which one continues the other in both operands, are one row, of which
 * more items can have a part. False: there are none. */
static bool join_terms(Nest *n, const View *v)
{
    const Node *sum = v->dot;
    for (uint32_t i = reduce_ranges(sum); i < sum->nsrc; i++)
        for (uint32_t j = reduce_ranges(sum); j < sum->nsrc; j++)
            if (continues(n->k, v, sum->src[i], sum->src[j])) {
                const char *outer = nest_and_name(n, "", nest_root(n, sum->src[i]));
                return nest_opt(n, OPT_JOIN, nest_and_name(n, outer, nest_root(n, sum->src[j])), 0);
            }
    return false;
}

/* Too few groups of tiles whose operands are worth a place: a GPU would not be full. */
static bool is_small(const Nest *n, const View *v, int rows, int columns)
{
    int64_t others = 1;
    for (int i = 0; i < v->nrange; i++) {
        int axis = nest_root(n, v->range[i]);
        if (axis != rows && axis != columns)
            others = sat_mul(others, n->axis[axis].most);
    }
    int64_t down = rows < 0 ? 1 : blocks(n->axis[rows].extent, SIDE);
    return sat_mul(others, down * blocks(n->axis[columns].extent, SIDE)) <
           FULL * n->target->machine.processors;
}

/* A vector of results, along this range: of few of them, too, the terms can be divided. */
static bool is_vector(const Nest *n, const View *v, Node *range)
{
    for (int i = 0; i < v->nrange; i++)
        if (v->range[i] != range && n->axis[nest_root(n, v->range[i])].extent != 1)
            return false;
    return n->axis[nest_root(n, range)].extent > 1;
}

/* Are there operations, or terms of one sum that an item adds one after the other while all others
 * wait, that are worth the wait of items for each other? */
static bool worth_parts(const Nest *n, const View *v)
{
    int64_t terms = 1;
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        terms = sat_mul(terms, n->axis[nest_root(n, v->dot->src[i])].most);
    return n->k->flops >= LEAST_PARTS || terms >= 2 * n->target->machine.warp;
}

/* What was tried is kept if it could be done. */
static bool keep(Nest **nest, Nest *tried, bool done)
{
    nest_free(done ? *nest : tried);
    if (done)
        *nest = tried;
    return done;
}

/* One item for each element: neighbours for neighbours. The axis that was put last, or -1. */
static int order_as_stored(Nest *n, const View *v)
{
    int64_t stride;
    const char *names = "", *last = NULL;
    int axis = -1;
    for (int i = 0; i < v->nrange; i++) {
        int at = nest_root(n, v->range[i]);
        const char *name = n->axis[at].name;
        if (!last && i + 1 < v->nrange && range_extent(v->range[i]) > 1 &&
            access_stride(n->k, v->store[0], v->range[i], &stride) && stride == 1) {
            last = name;
            axis = at;
        } else {
            names = arena_printf(n->arena, *names ? "%s %s" : "%s%s", names, name);
        }
    }
    if (last && nest_opt(n, OPT_ORDER, arena_printf(n->arena, "%s %s", names, last), 0))
        return axis;
    return -1;
}

/* Results in tiles, or their terms shared. */
static bool tiles(Nest **tiled, const View *v, const Buffer *const *bufs, int rows, int columns,
                  int fours, Layout *want)
{
    const bool small = is_small(*tiled, v, rows, columns);
    bool done = false;
    int items = (*tiled)->target->machine.items;
    for (; small && worth_parts(*tiled, v) && !done && items >= 2 * (*tiled)->target->machine.warp;
         items /= 2) {
        Nest *one = nest_clone(*tiled); /* fewer, if their parts do not fit */
        done = parts_contraction(one, v, rows, columns, items, fours) && !nest_fits(one);
        (void)keep(tiled, one, done);
    }
    if (done && fours < 0) /* fours_laid_out() has said how bytes lie */
        parts_layouts(*tiled, v, bufs, rows, columns, want);
    else if (!done && !small && rows >= 0 && (*tiled)->axis[rows].extent >= ITEMS &&
             (*tiled)->k->flops >= LEAST_WORK)
        done = contraction(*tiled, v, rows, columns, fours);
    return done;
}

/* The same of products of bytes, four at once; of what is no tile an item has a result. False:
 * there are no such products. */
static bool dots_of_tiles(Nest **dots, const View *v, const Buffer *const *bufs, int rows,
                          int columns, Layout *want)
{
    Node *four;
    const int fours = fours_taken(*dots, v, bufs, &four);
    if (fours < 0 || !fours_laid_out(*dots, v, bufs, (*dots)->k->axes[columns].range, four, want))
        return false;
    Nest *tiled = nest_clone(*dots);
    const bool done = tiles(&tiled, v, bufs, rows, columns, fours, want);
    (void)keep(dots, tiled, done);
    return true;
}

/* The terms of rows in the lanes of a warp, or of a group. */
static bool rows_opts(Nest **nest, const View *v)
{
    const Target *t = (*nest)->target;
    bool done = false;
    for (int warp = t->machine.joins_subgroups ? t->machine.subgroup : 1; warp && !done;
         warp = warp > 1) {
        Nest *rows = nest_clone(*nest);
        done = keep(nest, rows, parts_rows(rows, v, warp) && !nest_fits(rows));
    }
    return done;
}

/* Does each result of a sum of products have factors of its own?  Then nothing is used again, and
 * memory decides: it is a reduce of rows as others are. */
static bool is_of_own_factors(const View *v)
{
    for (int i = 0; i < v->nfactor; i++)
        for (int j = 0; j < v->nrange; j++)
            if (range_extent(v->range[j]) != 1 && depends_on(v->dot, v->range[j]) &&
                !depends_on(v->factor[i], v->range[j]))
                return false;
    return v->nfactor > 0;
}

/* What is no sum of products: a warp for each row, sums of the same loads by one item, terms in
 * parts that stand the other way round, or items as the results are stored. */
static void choose_plain_opts(Nest **nest, const View *v, const Buffer *const *bufs)
{
    const Target *t = (*nest)->target;
    bool done = rows_opts(nest, v);
    if (!done && t->machine.units) {
        Nest *joint = nest_clone(*nest);
        done = keep(nest, joint, choose_joint_sums(joint, bufs) && !nest_fits(joint));
    }
    if (!done && t->machine.units) {
        Nest *turned = nest_clone(*nest);
        done = keep(nest, turned, parts_turned(turned, v) && !nest_fits(turned));
    }
    if (!done && t->machine.units)
        (void)order_as_stored(*nest, v);
}

/* The axes of a tile: columns lie side by side in the result, along rows some factor is used
 * again; -1: there is none. */
static void tile_axes(const Nest *n, const View *v, int *rows, int *columns)
{
    const Kernel *k = n->k;
    *rows = *columns = -1;
    int64_t stride;
    for (int i = 0; i < v->nrange; i++) {
        int axis = nest_root(n, v->range[i]);
        if ((n->axis[axis].extent >= ITEMS || is_vector(n, v, v->range[i])) &&
            access_stride(k, v->store[0], v->range[i], &stride) && stride == 1)
            *columns = axis;
    }
    for (int i = 0; i < v->nrange && *columns >= 0; i++) {
        int axis = nest_root(n, v->range[i]);
        Node *c = k->axes[*columns].range;
        if (axis != *columns && n->axis[axis].extent >= LEAST_ROWS &&
            view_reuses(v, c, v->range[i]) &&
            (*rows < 0 || n->axis[axis].extent > n->axis[*rows].extent))
            *rows = axis;
    }
}

/* Results of few groups leave room for the next kernel, which may wait in its turn.  Where sizes
 * are a run's: a decoder's kernels between its products, each of which takes no longer than it
 * takes to begin. */
static void let_next_begin(Nest *n)
{
    const Machine *m = &n->target->machine;
    int64_t results = 1, groups = 1;
    bool bound = false;
    for (int i = 0; i < n->norder; i++) {
        const NestAxis *x = &n->axis[n->order[i]];
        results = x->reduced ? results : sat_mul(results, x->most);
        groups = x->bound == BOUND_GRID ? sat_mul(groups, x->most) : groups;
        bound |= x->bound != BOUND_NOT;
    }
    if (n->target->triggers && m->units && !n->tc && n->trigger == TRIGGER_NOT && n->k->nvar &&
        (bound ? groups : results / (m->group / 8)) <= m->processors / 2)
        (void)nest_opt(n, OPT_TRIGGER, "waited", 0);
}

/* Several results, all of which lie as the first one does: what an optimizer makes of a gradient.
 */
static bool stores_alike(const Nest *n, const View *v)
{
    bool alike = v->nstore == 1 || !v->nreduce;
    for (int i = 1; i < v->nstore && alike; i++)
        for (int j = 0; j < v->nrange && alike; j++) {
            int64_t first, stride;
            alike = v->store[i]->dtype == v->store[0]->dtype &&
                    access_stride(n->k, v->store[0], v->range[j], &first) &&
                    access_stride(n->k, v->store[i], v->range[j], &stride) && first == stride;
        }
    return alike;
}

/* Several sums of a row, or several results of each element: a group has the row, whatever it is
 * that a sum multiplies (the gradient of a norm). */
static bool choose_along_rows(Nest **nest, const View *v)
{
    return v->nreduce + v->nstore > 2 && goes_along_rows((*nest)->k, &(*nest)->target->machine) &&
           rows_opts(nest, v);
}

static bool has_rows_staged(const Kernel *k)
{
    bool staged = false;
    for (int i = 0; i < k->naxis; i++)
        staged |= k->axes[i].staged;
    return staged;
}

static void choose_form(Arena *a, Nest **nest, const Buffer *const *bufs, bool may_copy,
                        Layout *want)
{
    View v = kernel_view((*nest)->k);
    if (has_rows_staged((*nest)->k)) {
        (void)choose_rows_opts(nest);
        return;
    }
    if ((*nest)->target->machine.core_lanes) {
        if (v.nstore == 1)
            choose_core_opts(nest);
        return;
    }
    if (choose_along_rows(nest, &v) || !stores_alike(*nest, &v) ||
        choose_mma_opts(a, nest, bufs, may_copy, want))
        return;
    if (v.dot && (*nest)->target->unrolls) {
        Nest *sized = nest_clone(*nest);
        for (View s = v; join_terms(sized, &s);)
            s = kernel_view(sized->k);
        if (keep(nest, sized, choose_run_time_opts(sized) && !nest_fits(sized)))
            return;
    }
    if (v.dot && (*nest)->target->unrolls) {
        join_window(*nest);
        v = kernel_view((*nest)->k);
    }
    if ((*nest)->target->unrolls) {
        Nest *runs = nest_clone(*nest);
        if (keep(nest, runs, choose_run_opts(runs, bufs, want) && !nest_fits(runs)))
            return;
        memset(want, 0, (size_t)(*nest)->k->narg * sizeof *want);
    }
    if (!v.dot) {
        Nest *weighed = nest_clone(*nest);
        if (!keep(nest, weighed, choose_weighed_opts(weighed) && !nest_fits(weighed)))
            choose_plain_opts(nest, &v, bufs);
        return;
    }
    Nest *tiled = nest_clone(*nest);
    int rows, columns = tiled->target->machine.units ? parts_walked(tiled) : -1;
    if (keep(nest, tiled, columns >= 0 && !nest_fits(tiled))) {
        v = kernel_view((*nest)->k);
        parts_layouts(*nest, &v, bufs, -1, columns, want);
        return;
    }
    if ((*nest)->target->machine.units && is_of_own_factors(&v) && rows_opts(nest, &v))
        return;
    tiled = nest_clone(*nest);
    while (join_terms(tiled, &v))
        v = kernel_view(tiled->k);
    (void)join_columns(tiled, &v);
    const Kernel *k = tiled->k;
    v = kernel_view(k);
    tile_axes(tiled, &v, &rows, &columns);
    if (columns >= 0 && rows < 0) {
        Nest *one = nest_clone(tiled);
        if (keep(&tiled, one, parts_vector(one, &v, bufs, columns, want) && !nest_fits(one))) {
            (void)keep(nest, tiled, true);
            return;
        }
        memset(want, 0, (size_t)(*nest)->k->narg * sizeof *want);
    }
    Nest *dots = nest_clone(tiled);
    bool done = columns >= 0 && dots_of_tiles(&dots, &v, bufs, rows, columns, want);
    if (keep(nest, dots, done)) {
        nest_free(tiled);
        return;
    }
    memset(want, 0, (size_t)k->narg * sizeof *want);
    done = columns >= 0 && tiles(&tiled, &v, bufs, rows, columns, -1, want);
    if (keep(nest, tiled, done) || !(*nest)->target->machine.units)
        return;
    v = kernel_view((*nest)->k);
    int last = order_as_stored(*nest, &v);
    if (last >= 0)
        parts_layouts(*nest, &v, bufs, -1, last, want);
}

enum { PIXEL = 4 };

/* Has an item copies along that axis, or a part of it? */
static bool copies_along(const Opt *o, const Axis *x)
{
    const size_t root = o->kind == OPT_UPCAST ? strcspn(o->axis, ".") : 0;
    return root && strlen(x->name) == root && !memcmp(x->name, o->axis, root);
}

/* Has an item copies, by fours, along an axis of results that the factor moves with, and do they
 * read neighbours?  Weights are laid out so that they do. */
static bool reads_fours(const Nest *n, Node *factor, bool laid_out)
{
    int64_t stride;
    for (int i = 0; i < n->nopt; i++) {
        const Opt *o = &n->opts[i];
        for (int j = 0; o->amount % PIXEL == 0 && j < n->k->naxis; j++) {
            const Axis *x = &n->k->axes[j];
            if (x->reduced || !copies_along(o, x))
                continue;
            if (laid_out ? depends_on(factor, x->range)
                         : !strstr(o->axis, ".o") &&
                               access_stride(n->k, factor, x->range, &stride) && stride == 1)
                return true;
        }
    }
    return false;
}

static bool is_staged(const Nest *n, int64_t arg)
{
    for (int i = 0; i < n->nopt; i++)
        if (n->opts[i].kind == OPT_STAGE && n->opts[i].amount == arg)
            return true;
    return false;
}

/* Is it worth a copy that others of its elements are read in whole pixels, often? A copy is a read
 * and a write. */
static bool is_worth_pixels(const Nest *n, Node *factor)
{
    enum { COPY = 2, OFTEN = 4 };
    const Kernel *k = n->k;
    const KernelArg *arg = &k->args[factor->src[0]->arg.i];
    int64_t elements = 1, reads = 1, size, stride, along = 0;
    for (int i = 0; i < arg->rank; i++) {
        if (!idx_value(arg->dims[i], &size))
            return false;
        elements *= size;
    }
    for (int i = 0; i < k->naxis; i++) {
        size = range_extent(k->axes[i].range);
        if (size < 0 || !access_stride(k, factor, k->axes[i].range, &stride))
            return false;
        along += stride == 1;
        if (stride != 1 && stride % PIXEL)
            return false;
        reads = sat_mul(reads, size);
    }
    for (int i = 0; i < n->nopt; i++) /* an item reads it once for some results */
        for (int j = 0; j < k->naxis; j++)
            if (copies_along(&n->opts[i], &k->axes[j]) && !depends_on(factor, k->axes[j].range))
                reads /= n->opts[i].amount;
    return along == 1 && elements % PIXEL == 0 && elements > 0 && reads / elements >= COPY * OFTEN;
}

/* Weights that lie as a tile reads them, four by four, and what else is read so. */
static void make_images(Arena *a, Nest *n, const Buffer *const *bufs, const Layout *want)
{
    const View v = kernel_view(n->k);
    for (int i = 0; i < v.nfactor && n->target->machine.images; i++) {
        const int64_t arg = v.factor[i]->src[0]->arg.i;
        const bool weight = bufs[arg]->kind == BUF_WEIGHT;
        if (reads_fours(n, v.factor[i], weight) &&
            (weight ? want[arg].n : !is_staged(n, arg) && is_worth_pixels(n, v.factor[i])))
            (void)nest_opt(n, OPT_IMAGE, arena_printf(a, "%lld", (long long)arg), 0);
    }
}

void choose_gpu_opts(Arena *a, Nest **nest, const Buffer *const *bufs, bool may_copy, Layout *want)
{
    choose_form(a, nest, bufs, may_copy, want);
    make_images((*nest)->arena, *nest, bufs, want);
    let_next_begin(*nest);
}
