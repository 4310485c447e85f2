/* tune_tiles.c - what a tuner tries of a kernel for a GPU without matrix units.
 *
 * Tiles: an item has so many copies along the rows of results and along their columns (neighbours
 * in memory), and no memory is shared; of rows, items are neighbours in a group. It is what a
 * device with caches and vectors of its own may like better than groups that share their operands;
 * the compiler's choice is made for one with many small processors.
 *
 * Neighbours of the compiler's choice: one opt otherwise.  An amount doubled, halved or gone (with
 * what is said of the blocks that it makes), an operand that is no longer copied, or that is; two
 * loops the other way round; items of a group as groups. */
#include <string.h>

#include "choose.h"
#include "tune_gpu_candidates.h"

/* ---- lists of opts --------------------------------------------------------------------------- */

/* Names of a list with what is said of axis `of` changed: of.GONE and its parts are named no more,
 * of.KEPT is called as the axis was. */
static const char *rename_parts(Arena *a, const char *names, const char *of, const char *gone,
                                const char *kept)
{
    StrBuf sb = {0};
    const size_t n = strlen(of);
    while (*names) {
        const size_t length = strcspn(names, " ");
        const char *part = names + n + 1;
        const bool is_part = length > n + 1 && !strncmp(names, of, n) && names[n] == '.';
        const bool ends = is_part && (length == n + 2 || part[1] == '.');
        if (!(ends && gone && *part == *gone)) {
            sb_puts(&sb, sb.len ? " " : "");
            if (ends && kept && *part == *kept)
                sb_printf(&sb, "%s%.*s", of, (int)(length - n - 2), part + 1);
            else
                sb_write(&sb, names, length);
        }
        names += length + (names[length] == ' ');
    }
    return sb.len ? sb_take(&sb, a) : "";
}

/* Without opt i, which takes an axis apart: blocks of a SPLIT are the whole, of an UPCAST's copies
 * one is left. */
static int without_split(Arena *a, const Kernel *k, int i, Opt *out)
{
    const Opt *o = &k->opts[i];
    const bool split = o->kind == OPT_SPLIT;
    int n = 0;
    for (int j = 0; j < k->nopt; j++) {
        if (j == i)
            continue;
        out[n] = k->opts[j];
        if (j > i)
            out[n].axis =
                rename_parts(a, k->opts[j].axis, o->axis, split ? "o" : NULL, split ? "i" : "o");
        const bool one_loop = out[n].kind == OPT_ORDER && !strchr(out[n].axis, ' ');
        n += *out[n].axis && !one_loop;
    }
    return n;
}

static bool takes_apart(const Opt *o)
{
    return o->kind == OPT_SPLIT || o->kind == OPT_UPCAST || o->kind == OPT_UNROLL;
}

/* A MASK of an axis is for the blocks that it is split into. */
static bool is_mask_of(const Opt *mask, const Opt *o)
{
    return mask->kind == OPT_MASK && mask->amount == o->amount && !strcmp(mask->axis, o->axis);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

typedef struct {
    GpuCandidates *w;
    const Kernel *k; /* the compiler's */
    Opt *o;          /* room for one list */
    struct OptList {
        Opt *opts;
        int n;
    } * list;
    int n;
} Neighbours;

static void add_neighbour(Neighbours *x, int n)
{
    struct OptList list = {NEWN(x->w->t->a, Opt, n + 1), n};
    for (int i = 0; i < n; i++)
        list.opts[i] = x->o[i];
    vec_push(x->w->t->a, x->list, x->n, list);
}

static int copy_own_opts(Neighbours *x)
{
    for (int i = 0; i < x->k->nopt; i++)
        x->o[i] = x->k->opts[i];
    return x->k->nopt;
}

static void find_amounts(Neighbours *x)
{
    for (int i = 0; i < x->k->nopt; i++)
        for (int how = 0; how < 3 && takes_apart(&x->k->opts[i]); how++) {
            if (how == 2) {
                add_neighbour(x, without_split(x->w->t->a, x->k, i, x->o));
                continue;
            }
            const int n = copy_own_opts(x);
            const int64_t now = x->k->opts[i].amount, next = how ? now / 2 : 2 * now;
            for (int j = 0; j < i; j++)
                if (is_mask_of(&x->o[j], &x->k->opts[i]))
                    x->o[j].amount = next;
            x->o[i].amount = next;
            if (next > 1 && (!how || now % 2 == 0))
                add_neighbour(x, n);
        }
}

/* Twice the copies along one axis, half of them along another. */
static void find_exchanges(Neighbours *x)
{
    for (int i = 0; i < x->k->nopt; i++)
        for (int j = 0; j < x->k->nopt; j++) {
            const Opt *up = &x->k->opts[i], *down = &x->k->opts[j];
            if (i == j || up->kind != OPT_UPCAST || down->kind != OPT_UPCAST || down->amount < 4 ||
                down->amount % 2)
                continue;
            const int n = copy_own_opts(x);
            x->o[i].amount *= 2;
            x->o[j].amount /= 2;
            add_neighbour(x, n);
        }
}

static void find_binds(Neighbours *x)
{
    for (int i = 0; i < x->k->nopt; i++) {
        const Opt *o = &x->k->opts[i];
        if (o->kind != OPT_BIND || (o->amount != BOUND_LANE && o->amount != BOUND_GRID))
            continue;
        const int n = copy_own_opts(x);
        x->o[i].amount = o->amount == BOUND_LANE ? BOUND_GRID : BOUND_LANE;
        add_neighbour(x, n);
    }
}

static void find_orders(Neighbours *x)
{
    for (int i = 0; i < x->k->nopt; i++) {
        const char *names = x->k->opts[i].axis;
        if (x->k->opts[i].kind != OPT_ORDER)
            continue;
        for (const char *at = names, *space; (space = strchr(at, ' ')); at = space + 1) {
            const int n = copy_own_opts(x);
            x->o[i].axis = arena_printf(x->w->t->a, "%.*s%.*s %.*s%s", (int)(at - names), names,
                                        (int)strcspn(space + 1, " "), space + 1, (int)(space - at),
                                        at, space + 1 + strcspn(space + 1, " "));
            add_neighbour(x, n);
        }
    }
}

/* No operand is copied to memory that a group shares; or one more is, at a loop over terms. */
static void find_stages(Neighbours *x)
{
    Arena *a = x->w->t->a;
    int staged = 0, n = 0;
    for (int i = 0; i < x->k->nopt; i++)
        staged += x->k->opts[i].kind == OPT_STAGE;
    if (staged) {
        for (int i = 0; i < x->k->nopt; i++)
            if (x->k->opts[i].kind != OPT_STAGE)
                x->o[n++] = x->k->opts[i];
        add_neighbour(x, n);
        return;
    }
    Kernel *copy = kernel_copy(x->k);
    copy->nopt = 0;
    Nest *nest = nest_new(copy, &x->w->t->target);
    for (int i = 0; i < x->k->nopt; i++)
        (void)opt_apply(nest, &x->k->opts[i]);
    for (int i = 0; i < nest->norder; i++) {
        const NestAxis *axis = &nest->axis[nest->order[i]];
        if (!axis->reduced || axis->bound || axis->extent < 2)
            continue;
        for (int arg = 0; arg < x->k->narg; arg++)
            if (!x->k->args[arg].written) {
                n = copy_own_opts(x);
                x->o[n++] =
                    (Opt){.kind = OPT_STAGE, .axis = arena_strdup(a, axis->name), .amount = arg};
                add_neighbour(x, n);
            }
    }
    nest_free(nest);
    ingot_context_free(copy->c);
}

static Neighbours find_neighbours(GpuCandidates *w, const WayGroup *g)
{
    Neighbours x = {.w = w, .k = g->step[0]->kernel};
    x.o = NEWN(w->t->a, Opt, x.k->nopt + 2);
    find_amounts(&x);
    find_exchanges(&x);
    find_binds(&x);
    find_orders(&x);
    find_stages(&x);
    return x;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Copies of an item along rows and columns, and of the terms of a sum; joined: columns are all axes
 * that lie side by side. */
typedef struct {
    int rows, columns, terms;
    bool joined, apart; /* apart: items are numbered through, and no group has a shape */
} ItemShape;
static const ItemShape shapes[] = {
    {16, 1, 1, 0, 0}, {1, 16, 1, 0, 0}, {16, 4, 1, 0, 0}, {8, 1, 1, 0, 0},  {8, 8, 1, 0, 0},
    {16, 1, 1, 0, 1}, {4, 16, 1, 0, 0}, {16, 2, 1, 1, 0}, {1, 8, 1, 0, 0},  {32, 2, 1, 0, 0},
    {1, 1, 8, 0, 0},  {32, 1, 1, 0, 0}, {16, 4, 1, 1, 0}, {4, 4, 1, 0, 0},  {1, 1, 1, 0, 1},
    {1, 32, 1, 0, 0}, {4, 16, 1, 1, 0}, {8, 4, 1, 0, 0},  {2, 16, 1, 0, 0}, {16, 2, 1, 0, 1},
    {64, 1, 1, 0, 0}, {1, 16, 1, 0, 1}, {4, 1, 8, 0, 0},  {1, 4, 1, 0, 0},  {1, 1, 1, 0, 0},
    {8, 8, 1, 1, 0},  {1, 64, 1, 0, 0},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, LANES = 64 };

/* What divides the extent: not more than wanted, and more than half of it; 0: nothing does. */
static int64_t divisor_near(int64_t extent, int64_t want)
{
    for (int64_t d = want < extent ? want : extent; 2 * d > want; d--)
        if (extent % d == 0)
            return d;
    return extent < want ? extent : 0;
}

/* What is left of the axis where so many of it are copies; -1: it cannot be. */
static int copies_of(Nest *n, int axis, int64_t want, OptKind kind)
{
    if (axis < 0 || want < 2 || n->axis[axis].extent < 2)
        return axis;
    int64_t amount = divisor_near(n->axis[axis].extent, want);
    if (amount < 2 && !nest_opt(n, OPT_MASK, n->axis[axis].name, amount = want))
        return -1;
    return nest_opt(n, kind, n->axis[axis].name, amount) ? nest_last_split(n)->outer : -1;
}

/* Neighbours of this axis are items of a group; all else is the grid's. */
static bool bind_items(Nest *n, const View *v, int axis)
{
    const int64_t extent = n->axis[axis].extent, lanes = divisor_near(extent, LANES);
    if (extent > LANES && lanes) {
        if (!nest_opt(n, OPT_SPLIT, n->axis[axis].name, lanes))
            return false;
        axis = nest_last_split(n)->inner;
    }
    if (n->axis[axis].extent > 1 && !nest_opt(n, OPT_BIND, n->axis[axis].name, BOUND_LANE))
        return false;
    for (int i = 0; i < v->nrange; i++) {
        const NestAxis *x = &n->axis[nest_loop(n, nest_root(n, v->range[i]))];
        if (x->form == AXIS_LOOP && x->extent != 1 && !x->bound &&
            !nest_opt(n, OPT_BIND, x->name, BOUND_GRID))
            return false;
    }
    return true;
}

/* The axis along which results lie side by side, else the last one. */
static int columns_of(const Nest *n, const View *v)
{
    int64_t stride;
    int last = -1;
    for (int i = 0; i < v->nrange; i++)
        if (range_extent(v->range[i]) > 1)
            last = nest_root(n, v->range[i]);
    for (int i = 0; i < v->nrange; i++)
        if (range_extent(v->range[i]) > 1 &&
            access_stride(n->k, v->store[0], v->range[i], &stride) && stride == 1)
            return nest_root(n, v->range[i]);
    return last;
}

/* The longest other axis, of those along which an operand is used again, where there are such; -1:
 * there is none. */
static int rows_of(const Nest *n, const View *v, int columns)
{
    int best = -1;
    bool reuses = false;
    for (int i = 0; i < v->nrange; i++) {
        const int axis = nest_root(n, v->range[i]);
        if (axis == columns || n->axis[axis].extent < 2)
            continue;
        const bool again = v->dot && view_reuses(v, n->k->axes[columns].range, v->range[i]);
        if (best < 0 || again > reuses ||
            (again == reuses && n->axis[axis].extent > n->axis[best].extent)) {
            best = axis;
            reuses = again;
        }
    }
    return best;
}

/* The longest axis of the first reduce, or -1. */
static int terms_of(const Nest *n, const View *v)
{
    const Node *r = v->dot ? v->dot : v->nreduce ? v->reduce[0] : NULL;
    int best = -1;
    for (uint32_t i = r ? reduce_ranges(r) : 0; r && i < r->nsrc; i++) {
        const int axis = nest_root(n, r->src[i]);
        if (best < 0 || n->axis[axis].extent > n->axis[best].extent)
            best = axis;
    }
    return best;
}

/* Axes of results that the compiler has joined are one here too. */
static bool join_columns(Nest *n, const Kernel *of)
{
    bool any = false;
    for (int i = 0; i < of->nopt; i++)
        any |= of->opts[i].kind == OPT_JOIN && !opt_apply(n, &of->opts[i]);
    return any;
}

static bool make_tile(Nest *n, const Kernel *of, const ItemShape *s)
{
    if (s->joined && !join_columns(n, of))
        return false;
    const View v = kernel_view(n->k);
    int columns = v.nstore == 1 ? columns_of(n, &v) : -1;
    if (columns < 0)
        return false;
    int rows = rows_of(n, &v, columns);
    const int terms = s->terms > 1 ? terms_of(n, &v) : -1;
    if ((s->rows > 1 && rows < 0) || (s->terms > 1 && terms < 0))
        return false;
    if (s->terms > 1 && copies_of(n, terms, s->terms, OPT_UNROLL) < 0)
        return false;
    rows = copies_of(n, rows, s->rows, OPT_UPCAST);
    columns = copies_of(n, columns, s->columns, OPT_UPCAST);
    if (columns < 0 || (rows < 0 && s->rows > 1))
        return false;
    return s->apart || bind_items(n, &v, n->axis[columns].extent > 1 || rows < 0 ? columns : rows);
}

static void add_tile(GpuCandidates *w, WayGroup *g, const ItemShape *s)
{
    Kernel *copy = kernel_copy(g->step[0]->kernel);
    copy->nopt = 0;
    copy->opts = NULL;
    Nest *n = nest_new(copy, &w->t->target);
    if (make_tile(n, g->step[0]->kernel, s)) {
        Opt *opts = NEWN(w->t->a, Opt, n->nopt + 1);
        for (int i = 0; i < n->nopt; i++)
            opts[i] = opt_copy(w->t->a, &n->opts[i]);
        ways_add(w, g, n->nopt, opts);
    }
    nest_free(n);
    ingot_context_free(copy->c);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Beside what the compiler chose, two tiles for each of its neighbours; beside what a file says,
 * which was found so, all neighbours first. */
void ways_of_tiles(GpuCandidates *w, WayGroup *g)
{
    if (g->nway == g->most)
        return;
    const Neighbours x = find_neighbours(w, g);
    const int first = w->t->o->compile.sched ? x.n : 0;
    for (int i = 0; i < first && g->nway < g->most; i++)
        ways_add(w, g, x.list[i].n, x.list[i].opts);
    for (int i = 0, next = first; (i < SHAPES || next < x.n) && g->nway < g->most; i++) {
        if (i < SHAPES)
            add_tile(w, g, &shapes[i]);
        if (next < x.n && (i % 2 || i >= SHAPES)) {
            ways_add(w, g, x.list[next].n, x.list[next].opts);
            next++;
        }
    }
}
