/* tiling.c - cuts of axes and an order of loops, that are changed one at a time.
 *
 * Opts name axes as the opts before have left them (i0.o.o), so that a list of opts with one left
 * out means nothing.  A tiling says the same by what loops are part of; the names come from the
 * nest when it is applied. */
#include <string.h>

#include "choose.h"
#include "tune.h"

/* ---- between nests and tilings --------------------------------------------------------------- */

static int axis_of(const Nest *n, LoopRef l)
{
    return nest_loop(n, l.of ? n->split[l.of - 1].inner : l.root);
}

bool tiling_of(const Nest *n, Tiling *t)
{
    Arena *a = arena_new();
    LoopRef *ref = NEWN(a, LoopRef, n->naxis + 1);
    *t = (Tiling){.ordered = n->ordered};
    bool fits = n->nsplit <= MAX_CUTS && n->norder <= MAX_LOOPS;
    for (int i = 0; i < n->k->naxis; i++)
        ref[i] = (LoopRef){i, 0};
    for (int i = 0; i < n->nsplit && fits; i++) {
        const Split *s = &n->split[i];
        ref[s->outer] = ref[s->axis];
        if (s->kind == OPT_PARTIAL) { /* comes after the order, which no cut does */
            fits = t->nplaced < MAX_PLACED;
            if (fits)
                t->placed[t->nplaced++] = (Placed){OPT_PARTIAL, ref[s->axis], s->amount};
            continue;
        }
        t->cut[t->ncut++] = (Cut){s->kind, ref[s->axis], s->amount};
        ref[s->inner] = (LoopRef){n->axis[s->axis].root, i + 1};
    }
    for (int i = 0; i < n->norder && fits; i++)
        if (!n->axis[n->order[i]].remainder)
            t->order[t->norder++] = ref[n->order[i]];
    fits = fits && t->nplaced + n->nstage + n->nprefetched <= MAX_PLACED;
    for (int i = 0; i < n->nprefetched && fits; i++)
        t->placed[t->nplaced++] =
            (Placed){OPT_PREFETCH, ref[n->prefetched[i].axis], n->prefetched[i].arg};
    for (int i = 0; i < n->nstage && fits; i++)
        t->placed[t->nplaced++] = (Placed){OPT_STAGE, ref[n->stage[i].axis], n->stage[i].arg};
    arena_free(a);
    return fits;
}

/* The loops as the tiling has them, if they run otherwise now. */
static bool apply_order(Nest *n, const Tiling *t)
{
    Opt o = {.kind = OPT_ORDER, .axis = ""};
    int named = 0, at = 0;
    bool same = !t->ordered;
    for (int i = 0; i < t->norder; i++) {
        int axis = axis_of(n, t->order[i]);
        if (n->axis[axis].form != AXIS_LOOP || n->axis[axis].remainder)
            continue;
        while (at < n->norder && n->axis[n->order[at]].remainder)
            at++;
        same &= at < n->norder && n->order[at++] == axis;
        o.axis = arena_printf(n->arena, named++ ? "%s %s" : "%s%s", o.axis, n->axis[axis].name);
    }
    return same || named < 2 || !opt_apply(n, &o);
}

/* PREFETCH and PARTIAL come before STAGE; what these loops make impossible is left out. */
static void apply_placed(Nest *n, const Tiling *t)
{
    for (int stage = 0; stage < 2; stage++)
        for (int i = 0; i < t->nplaced; i++) {
            const Placed *p = &t->placed[i];
            int axis = axis_of(n, p->loop);
            Opt o = {.kind = p->kind, .axis = n->axis[axis].name, .amount = p->arg};
            if ((p->kind == OPT_STAGE) == stage && n->axis[axis].form == AXIS_LOOP)
                (void)opt_apply(n, &o);
        }
}

Nest *tiling_apply(const Nest *base, const Tiling *t)
{
    Nest *n = nest_clone(base);
    bool good = true;
    for (int i = 0; i < t->ncut && good; i++) {
        const Cut *c = &t->cut[i];
        int axis = axis_of(n, c->loop);
        Opt o = {.kind = c->kind, .axis = n->axis[axis].name, .amount = c->amount};
        good = n->axis[axis].form == AXIS_LOOP && !opt_apply(n, &o);
    }
    good = good && apply_order(n, t);
    if (good) {
        apply_placed(n, t);
        choose_threads(n);
        return n;
    }
    nest_free(n);
    return NULL;
}

/* ---- neighbours ------------------------------------------------------------------------------ */

typedef struct {
    Arena *a;
    const Nest *base;
    const Tiling *from;
    Tiling *out;
    int n;
} TilingChange;

static void add_tiling(TilingChange *c, const Tiling *t)
{
    vec_push(c->a, c->out, c->n, *t);
}

static bool refers(LoopRef l, int cut)
{
    return l.of == cut + 1;
}

/* Without cut i; what spoke of its inner part goes too. */
static Tiling without(const Tiling *t, int i)
{
    Tiling r = *t;
    r.ncut = r.norder = r.nplaced = 0;
    int moved[MAX_CUTS];
    for (int j = 0; j < t->ncut; j++) {
        Cut c = t->cut[j];
        int of = c.loop.of - 1;
        moved[j] = -1;
        if (j == i || refers(c.loop, i) || (of >= 0 && moved[of] < 0))
            continue;
        c.loop.of = of < 0 ? 0 : moved[of] + 1;
        moved[j] = r.ncut;
        r.cut[r.ncut++] = c;
    }
    for (int j = 0; j < t->norder; j++) {
        LoopRef l = t->order[j];
        if (l.of && moved[l.of - 1] < 0)
            continue;
        l.of = l.of ? moved[l.of - 1] + 1 : 0;
        r.order[r.norder++] = l;
    }
    for (int j = 0; j < t->nplaced; j++) {
        Placed p = t->placed[j];
        if (p.loop.of && moved[p.loop.of - 1] < 0)
            continue;
        p.loop.of = p.loop.of ? moved[p.loop.of - 1] + 1 : 0;
        r.placed[r.nplaced++] = p;
    }
    return r;
}

/* With a cut before cut `at`. */
static bool with(const Tiling *t, int at, Cut c, Tiling *r)
{
    if (t->ncut == MAX_CUTS || t->norder == MAX_LOOPS)
        return false;
    *r = *t;
    memmove(r->cut + at + 1, r->cut + at, (size_t)(t->ncut - at) * sizeof *r->cut);
    r->cut[at] = c;
    r->ncut++;
    for (int j = 0; j < r->ncut; j++)
        if (j != at && r->cut[j].loop.of > at)
            r->cut[j].loop.of++;
    for (int j = 0; j < r->norder; j++)
        if (r->order[j].of > at)
            r->order[j].of++;
    for (int j = 0; j < r->nplaced; j++)
        if (r->placed[j].loop.of > at)
            r->placed[j].loop.of++;
    return true;
}

static int find_cut(const Tiling *t, OptKind kind, int root)
{
    for (int i = 0; i < t->ncut; i++)
        if (t->cut[i].kind == kind && t->cut[i].loop.root == root && !t->cut[i].loop.of)
            return i;
    return -1;
}

static const int64_t copies[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 0},
                     terms[] = {2, 3, 4, 5, 6, 7, 8, 9, 0}, lanes[] = {4, 8, 16, 0},
                     blocks[] = {2, 4, 7, 8, 14, 16, 28, 32, 56, 64, 128, 256, 0};

static const int64_t *amounts(OptKind kind)
{
    return kind == OPT_UPCAST   ? copies
           : kind == OPT_UNROLL ? terms
           : kind == OPT_VECTOR ? lanes
                                : blocks;
}

static void change_amounts(TilingChange *c)
{
    for (int i = 0; i < c->from->ncut; i++) {
        const Cut *cut = &c->from->cut[i];
        for (const int64_t *n = amounts(cut->kind); *n && cut->kind != OPT_DOT; n++) {
            Tiling t = *c->from;
            t.cut[i].amount = *n;
            if (*n != cut->amount)
                add_tiling(c, &t);
        }
        Tiling less = without(c->from, i);
        add_tiling(c, &less);
    }
}

/* Two amounts of copies at once: a register tile has two sides. */
static void change_tiles(TilingChange *c)
{
    for (int i = 0; i < c->from->ncut; i++)
        for (int j = i + 1; j < c->from->ncut; j++) {
            if (c->from->cut[i].kind != OPT_UPCAST || c->from->cut[j].kind != OPT_UPCAST)
                continue;
            for (const int64_t *n = copies; *n; n++)
                for (const int64_t *m = copies; *m; m++) {
                    Tiling t = *c->from;
                    t.cut[i].amount = *n;
                    t.cut[j].amount = *m;
                    if (*n != c->from->cut[i].amount && *m != c->from->cut[j].amount &&
                        *n * *m <= 64)
                        add_tiling(c, &t);
                }
        }
}

/* Copies of an axis that has none yet, blocks of one that has no more than one size of them. */
static void add_cuts(TilingChange *c)
{
    const Kernel *k = c->base->k;
    for (int root = 0; root < k->naxis; root++) {
        if (k->axes[root].scanned)
            continue;
        OptKind kind = k->axes[root].reduced ? OPT_UNROLL : OPT_UPCAST;
        Tiling t;
        for (const int64_t *n = amounts(kind); *n && find_cut(c->from, kind, root) < 0; n++)
            if (with(c->from, c->from->ncut, (Cut){kind, {root, 0}, *n}, &t))
                add_tiling(c, &t);
        for (const int64_t *n = blocks;
             *n && !k->axes[root].reduced && find_cut(c->from, OPT_SPLIT, root) < 0; n++) {
            /* after all other cuts: its inner loop is inside of what was outermost so far */
            if (!with(c->from, c->from->ncut, (Cut){OPT_SPLIT, {root, 0}, *n}, &t))
                continue;
            LoopRef inner = {root, t.ncut};
            for (int at = 0; at <= c->from->norder;
                 at++) { /* everywhere inside of its outer loop */
                int outer = 0, last = 0;
                for (int i = 0; i < c->from->norder; i++) {
                    LoopRef l = c->from->order[i];
                    outer = l.root == root && !l.of ? i : outer;
                    last = !k->axes[l.root].reduced ? i + 1 : last;
                }
                if (at <= outer || at > last)
                    continue;
                Tiling u = t;
                memmove(u.order + at + 1, u.order + at, (size_t)(u.norder - at) * sizeof *u.order);
                u.order[at] = inner;
                u.norder++;
                add_tiling(c, &u);
            }
        }
    }
}

/* Lanes along another axis, of all widths; the copies of the axes stay. */
static void move_lanes(TilingChange *c)
{
    const Kernel *k = c->base->k;
    int now = -1;
    for (int i = 0; i < c->from->ncut; i++)
        now = c->from->cut[i].kind == OPT_VECTOR ? i : now;
    Tiling less = now < 0 ? *c->from : without(c->from, now);
    for (int root = 0; root < k->naxis; root++)
        for (const int64_t *n = lanes; *n; n++) {
            Tiling t;
            int at = 0;
            while (at < less.ncut && less.cut[at].kind == OPT_DOT)
                at++;
            if (now >= 0 && c->from->cut[now].loop.root == root)
                continue;
            if (with(&less, at, (Cut){OPT_VECTOR, {root, 0}, *n}, &t))
                add_tiling(c, &t);
        }
}

/* Each loop elsewhere; loops over outputs and over terms stay apart. */
static void change_order(TilingChange *c)
{
    const Kernel *k = c->base->k;
    for (int from = 0; from < c->from->norder; from++)
        for (int to = 0; to < c->from->norder; to++) {
            LoopRef l = c->from->order[from];
            if (from == to || k->axes[l.root].reduced != k->axes[c->from->order[to].root].reduced)
                continue;
            if (to == from + 1) /* the same as the one after moving before it */
                continue;
            Tiling t = *c->from;
            t.ordered = true;
            memmove(t.order + from, t.order + from + 1,
                    (size_t)(t.norder - from - 1) * sizeof *t.order);
            memmove(t.order + to + 1, t.order + to, (size_t)(t.norder - 1 - to) * sizeof *t.order);
            t.order[to] = l;
            add_tiling(c, &t);
        }
}

/* One less, one at another loop, one of another argument. */
static void change_places(TilingChange *c)
{
    const Kernel *k = c->base->k;
    for (int i = 0; i < c->from->nplaced; i++) {
        Tiling t = *c->from;
        t.placed[i] = t.placed[--t.nplaced];
        add_tiling(c, &t);
        for (int at = 0; at < c->from->norder; at++) {
            LoopRef l = c->from->order[at];
            if (k->axes[l.root].reduced)
                continue;
            t = *c->from;
            t.placed[i].loop = l;
            add_tiling(c, &t);
        }
    }
    for (int arg = 0; arg < k->narg && c->from->nplaced < MAX_PLACED; arg++)
        for (int at = 0; at < c->from->norder && !k->args[arg].written; at++)
            for (int stage = 0; stage < 2; stage++) {
                Tiling t = *c->from;
                t.placed[t.nplaced++] =
                    (Placed){stage ? OPT_STAGE : OPT_PREFETCH, c->from->order[at], arg};
                if (!k->axes[c->from->order[at].root].reduced)
                    add_tiling(c, &t);
            }
}

/* A loop over terms outside of one over results, by so many terms at a time; or by others. */
static void add_partials(TilingChange *c)
{
    static const int64_t rows[] = {4, 8, 16, 0};
    const Tiling *t = c->from;
    for (const int64_t *n = rows; *n; n++) {
        for (int i = 0; i < t->nplaced; i++)
            if (t->placed[i].kind == OPT_PARTIAL && t->placed[i].arg != *n) {
                Tiling other = *t;
                other.placed[i].arg = (int)*n;
                add_tiling(c, &other);
            }
        for (int from = 1; from < t->norder && !t->nplaced; from++)
            for (int to = 0; to < from && c->base->k->axes[t->order[from].root].reduced; to++) {
                Tiling more = *t;
                if (c->base->k->axes[t->order[to].root].reduced)
                    break;
                more.ordered = true;
                memmove(more.order + to + 1, more.order + to,
                        (size_t)(from - to) * sizeof *more.order);
                more.order[to] = t->order[from];
                more.placed[more.nplaced++] = (Placed){OPT_PARTIAL, t->order[from], (int)*n};
                add_tiling(c, &more);
            }
    }
}

int tiling_neighbours(Arena *a, const Nest *base, const Tiling *from, Tiling **out)
{
    TilingChange c = {.a = a, .base = base, .from = from};
    change_amounts(&c);
    change_tiles(&c);
    add_cuts(&c);
    move_lanes(&c);
    change_order(&c);
    change_places(&c);
    add_partials(&c);
    *out = c.out;
    return c.n;
}
