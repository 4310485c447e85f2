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

static const ItemShape shapes[] = {
    {16, 1, 1, 0, 0}, {1, 16, 1, 0, 0}, {16, 4, 1, 0, 0}, {8, 1, 1, 0, 0},  {8, 8, 1, 0, 0},
    {16, 1, 1, 0, 1}, {4, 16, 1, 0, 0}, {16, 2, 1, 1, 0}, {1, 8, 1, 0, 0},  {32, 2, 1, 0, 0},
    {1, 1, 8, 0, 0},  {32, 1, 1, 0, 0}, {16, 4, 1, 1, 0}, {4, 4, 1, 0, 0},  {1, 1, 1, 0, 1},
    {1, 32, 1, 0, 0}, {4, 16, 1, 1, 0}, {8, 4, 1, 0, 0},  {2, 16, 1, 0, 0}, {16, 2, 1, 0, 1},
    {64, 1, 1, 0, 0}, {1, 16, 1, 0, 1}, {4, 1, 8, 0, 0},  {1, 4, 1, 0, 0},  {1, 1, 1, 0, 0},
    {8, 8, 1, 1, 0},  {1, 64, 1, 0, 0},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void add_tile(GpuCandidates *w, WayGroup *g, const ItemShape *s)
{
    Kernel *copy = kernel_copy(g->step[0]->kernel);
    copy->nopt = 0;
    copy->opts = NULL;
    Nest *n = nest_new(copy, &w->t->target);
    if (item_tile(n, s)) {
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
