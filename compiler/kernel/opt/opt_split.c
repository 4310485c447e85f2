/* opt_split.c - SPLIT, UPCAST, UNROLL and DOT: an axis is taken apart. */
#include <string.h>

#include "opt.h"

static int add_axis(Nest *n, int of, const char *suffix, AxisForm form, int64_t extent,
                    int64_t most)
{
    const NestAxis *whole = &n->axis[of];
    NestAxis x = {.name = arena_printf(n->arena, "%s.%s", whole->name, suffix),
                  .form = form,
                  .reduced = whole->reduced,
                  .staged = whole->staged,
                  .remainder = *suffix == 'r',
                  .inner = *suffix == 'i' || whole->inner,
                  .root = whole->root,
                  .extent = extent,
                  .most = most,
                  .split = -1};
    vec_push(n->arena, n->axis, n->naxis, x);
    return n->naxis - 1;
}

/* In the place of an axis stand its parts that may be loops. */
static void reorder(Nest *n, const Split *s)
{
    const int part[] = {s->outer, s->inner, s->form == REST_LOOP ? s->rest : -1};
    int *order = NULL, norder = 0;
    for (int i = 0; i < n->norder; i++) {
        if (n->order[i] != s->axis)
            vec_push(n->arena, order, norder, n->order[i]);
        for (int j = 0; j < 3 && n->order[i] == s->axis; j++)
            if (part[j] >= 0 && n->axis[part[j]].form == AXIS_LOOP)
                vec_push(n->arena, order, norder, part[j]);
    }
    n->order = order;
    n->norder = norder;
}

/* Is it so many whole blocks?  Of a size that is known at run time only, by what MASK says. */
static bool is_whole(const NestAxis *x, int64_t amount)
{
    return amount > 0 && (x->extent > 0   ? x->extent % amount == 0
                          : x->within < 0 ? x->granule % amount == 0
                                          : false);
}

Split *opt_divide(Nest *n, const Opt *o, int axis, AxisForm inner, RestForm rest)
{
    int64_t extent = n->axis[axis].extent, most = n->axis[axis].most;
    Split s = {.kind = o->kind == OPT_OVERLAP ? OPT_SPLIT : o->kind,
               .axis = axis,
               .rest = -1,
               .amount = o->amount,
               .count = extent < 0 ? -1 : extent / o->amount,
               .remaining = extent < 0 ? (is_whole(&n->axis[axis], o->amount) ? 0 : -1)
                                       : extent % o->amount};
    bool overlaps =
        rest == REST_OVERLAP || (n->axis[axis].staged && s.remaining > 0 && rest != REST_COPIES);
    if (overlaps) {
        s.count++;
        s.remaining = 0;
        most += o->amount - 1;
    }
    bool counted = extent >= 0 || rest == REST_BESIDE; /* or a loop */
    s.form = overlaps ? REST_OVERLAP : !s.remaining ? REST_NONE : counted ? rest : REST_LOOP;
    s.outer = add_axis(n, axis, "o", AXIS_LOOP, s.count, most / o->amount);
    s.inner = add_axis(n, axis, "i", inner, o->amount, o->amount);
    if (s.form == REST_LOOP || s.form == REST_BESIDE)
        s.rest = add_axis(n, axis, "r", AXIS_LOOP, s.remaining,
                          extent < 0 ? o->amount - 1 : s.remaining);
    n->axis[axis].split = n->nsplit;
    reorder(n, &s);
    vec_push(n->arena, n->split, n->nsplit, s);
    return &n->split[n->nsplit - 1];
}

/* A GPU runs one loop nest. */
static const char *rest_on_gpu(Nest *n, const Opt *o, const NestAxis *x)
{
    return opt_refuse(
        n,
        "%s %s %lld: the axis has %lld elements; on a GPU nothing may be left over: MASK "
        "it before",
        opt_name[o->kind], o->axis, (long long)o->amount, (long long)x->most);
}

const char *opt_split(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    const bool whole = is_whole(x, o->amount);
    if (x->reduced && !whole)
        return opt_refuse(
            n,
            "SPLIT %s %lld: the axis is reduced, and has %lld elements, which it has to "
            "divide",
            o->axis, (long long)o->amount, (long long)x->most);
    if (o->amount < 2 || o->amount >= x->most)
        return opt_refuse(n, "SPLIT %s %lld: the axis has %lld elements", o->axis,
                          (long long)o->amount, (long long)x->most);
    const char *why = opt_on_gpu(n) && !whole ? rest_on_gpu(n, o, x) : NULL;
    if (why)
        return why;
    opt_divide(n, o, axis, AXIS_LOOP, REST_LOOP);
    return NULL;
}

const char *opt_overlap(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    if (opt_on_gpu(n) || x->reduced || x->staged || x->extent < 0)
        return opt_refuse(n,
                          "OVERLAP %s %lld: it takes an axis of results of a CPU's kernel, which "
                          "has a constant size",
                          o->axis, (long long)o->amount);
    if (o->amount < 2 || o->amount >= x->extent || x->extent % o->amount == 0)
        return opt_refuse(
            n, "OVERLAP %s %lld: the axis has %lld elements%s", o->axis, (long long)o->amount,
            (long long)x->extent,
            o->amount > 1 && x->extent % o->amount == 0 ? ": SPLIT leaves nothing over" : "");
    opt_divide(n, o, axis, AXIS_LOOP, REST_OVERLAP);
    return NULL;
}

bool opt_overlaps(const Nest *n, int axis)
{
    for (int i = n->nsplit; i-- > 0;) { /* the splits that made it come before */
        const Split *s = &n->split[i];
        if (s->outer != axis && s->inner != axis)
            continue;
        if (s->form == REST_OVERLAP && !n->axis[axis].staged)
            return true;
        axis = s->axis;
    }
    return false;
}

/* Can what is left of an axis that is unrolled be a reduce of its own?  It is the one loop of every
 * reduce over it, and no other UNROLL has such a rest there. */
bool opt_rest_is_alone(const Nest *n, int axis)
{
    Node *range = n->k->axes[n->axis[axis].root].range;
    Arena *a = arena_new();
    int count;
    bool alone = true;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < count; i++)
        for (uint32_t j = reduce_ranges(order[i]); j < order[i]->nsrc; j++)
            alone &= order[i]->src[j] != range || order[i]->nsrc == reduce_ranges(order[i]) + 1;
    arena_free(a);
    for (int i = 0; i < n->nsplit; i++)
        if (n->axis[n->split[i].axis].root == n->axis[axis].root)
            alone &= n->split[i].kind == OPT_VECTOR || n->split[i].kind == OPT_DOT;
    return alone;
}

/* Was the axis, or what it is a part of, unrolled with a rest? */
bool opt_has_rest(const Nest *n, int axis)
{
    for (int i = 0; i < n->nsplit; i++)
        if (n->axis[n->split[i].axis].root == n->axis[axis].root &&
            n->split[i].kind == OPT_UNROLL && n->split[i].remaining)
            return true;
    return false;
}

/* The value that fills a place along this axis of the kernel. */
static Node *filled_along(const Nest *n, Arena *a, int root)
{
    int count;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < count; i++)
        for (int j = 0; order[i]->op == OP_STAGE && j < (int)order[i]->arg.i; j++)
            if (order[i]->src[1 + j] == n->k->axes[root].range)
                return order[i]->src[0];
    BUG("a staged axis without a place");
}

/* How many copies there are of what is stored (place < 0) or of what fills the place along an axis
 * of the kernel, if there were `more` along another: other places have copies of their own, and an
 * axis that the place does not move with makes none of it. Of a sum: those of its terms, without
 * the terms of sums beside it. */
static int64_t copies_of(const Nest *n, int place, Node *sum, int axis, int64_t more)
{
    int64_t copies = 1;
    Arena *a = arena_new();
    Node *value = place >= 0 ? filled_along(n, a, place) : NULL;
    for (int i = 0; i <= n->nsplit; i++) {
        const Split *s = i < n->nsplit ? &n->split[i] : NULL;
        int root = n->axis[s ? s->axis : axis].root;
        Node *range = n->k->axes[root].range;
        if (s && s->kind != OPT_UPCAST && s->kind != OPT_UNROLL)
            continue;
        bool here = root == place;
        if (!n->k->axes[root].staged)
            here = !value || n->axis[root].reduced || moves_with(a, value, range);
        if (sum && n->axis[root].reduced && !n->k->axes[root].staged)
            here = depends_on(sum->src[0], range);
        copies = sat_mul(copies, here ? s ? s->amount : more : 1);
    }
    arena_free(a);
    return copies;
}

/* Of what is stored: the most that there are of the terms of a sum. */
static int64_t copies_stored(const Nest *n, int axis, int64_t more)
{
    const View v = kernel_view(n->k);
    int64_t most = v.nreduce ? 1 : copies_of(n, -1, NULL, axis, more);
    for (int i = 0; i < v.nreduce; i++) {
        const int64_t copies = copies_of(n, -1, v.reduce[i], axis, more);
        most = copies > most ? copies : most;
    }
    return most;
}

static int64_t most_copies(const Nest *n, int axis, int64_t more)
{
    int64_t most = copies_stored(n, axis, more);
    for (int i = 0; i < n->k->naxis; i++) {
        int64_t copies = n->k->axes[i].staged ? copies_of(n, i, NULL, axis, more) : 1;
        most = copies > most ? copies : most;
    }
    return most;
}

bool opt_too_many_copies(const Nest *n, int axis, int64_t more)
{
    return most_copies(n, axis, more) > MAX_COPIES;
}

/* UPCAST of what is stored, UNROLL of what is reduced. */
const char *opt_copies(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    bool unroll = o->kind == OPT_UNROLL,
         whole = !unroll || x->staged || (x->extent > 0 && x->extent % o->amount == 0);
    if (x->reduced != unroll)
        return opt_refuse(n,
                          unroll
                              ? "UNROLL %s %lld: the axis is not reduced: UPCAST makes copies of it"
                              : "UPCAST %s %lld: the axis is reduced: UNROLL makes copies of it",
                          o->axis, (long long)o->amount);
    if (o->amount < 2 || o->amount > x->most)
        return opt_refuse(n, "%s %s %lld: the axis has %lld elements", opt_name[o->kind], o->axis,
                          (long long)o->amount, (long long)x->most);
    if (unroll && opt_has_rest(n, axis))
        return opt_refuse(n, "UNROLL %s: the axis is unrolled already, with a rest", o->axis);
    if (!whole && !opt_rest_is_alone(n, axis))
        return opt_refuse(
            n,
            "UNROLL %s %lld: the axis has %lld elements, which it has to divide where a "
            "reduce runs over others too or the axis has been taken apart",
            o->axis, (long long)o->amount, (long long)x->most);
    const char *why = opt_on_gpu(n) && x->extent % o->amount ? rest_on_gpu(n, o, x) : NULL;
    if (why)
        return why;
    if (opt_too_many_copies(n, axis, o->amount))
        return opt_refuse(
            n, "%s %s %lld: at most %d copies are made of anything, by all opts together",
            opt_name[o->kind], o->axis, (long long)o->amount, MAX_COPIES);
    n->copies = copies_stored(n, axis, o->amount);
    opt_divide(n, o, axis, AXIS_COPIES, unroll && !x->staged ? REST_LOOP : REST_COPIES);
    return NULL;
}

/* ---- DOT ------------------------------------------------------------------------------------- */

/* By how many terms the sums over the axis can be taken, or 0. */
static int terms_along(const Nest *n, int axis)
{
    Arena *a = arena_new();
    View v = kernel_view(n->k);
    bool *free = NEWN(a, bool, n->k->narg); /* how they lie, nest_check() judges */
    memset(free, true, (size_t)n->k->narg * sizeof *free);
    int terms = dot_possible(n->k, &v, n->k->axes[axis].range, free);
    for (int i = 0; i < v.nreduce && terms; i++)
        if (depends_on(v.reduce[i]->src[0], n->k->axes[axis].range) && dot_terms(v.reduce[i]) &&
            dot_has_digits(v.reduce[i]) && (!n->target->machine.lanes || n->target->gpu))
            terms = 0;
    arena_free(a);
    return terms;
}

static const char *number_word(int64_t n)
{
    return n == 2 ? "two" : n == 4 ? "four" : n == 8 ? "eight" : "sixteen";
}

const char *opt_dot(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    if (!x->reduced || axis >= n->k->naxis)
        return opt_refuse(n, "DOT %s: it takes a reduced axis that no other opt has changed",
                          o->axis);
    const Target *t = n->target; /* NULL: opts that another nest has had already */
    const int base = o->amount == 2 ? 2 : 4;
    const int terms = n->shared ? terms_along(n, axis) : base;
    if (o->amount < 2 || (o->amount & (o->amount - 1)))
        return opt_refuse(n, "DOT %s %lld: four products of bytes, or two of bf16, are one",
                          o->axis, (long long)o->amount);
    if (o->amount > 4 && t && (t->machine.lanes || o->amount > t->machine.dot_terms))
        return opt_refuse(n, "DOT %s %lld: this machine takes four products of bytes at once",
                          o->axis, (long long)o->amount);
    if (x->extent % o->amount)
        return opt_refuse(n, "DOT %s %lld: %s terms are taken at once, and the axis has %lld",
                          o->axis, (long long)o->amount, number_word(o->amount),
                          (long long)x->extent);
    for (int i = 0; i < n->naxis; i++)
        if (n->axis[i].form == AXIS_LANES && n->axis[i].reduced)
            return opt_refuse(n, "DOT %s: lanes run along a reduced axis already", o->axis);
    if (terms != base)
        return opt_refuse(n, "DOT %s: what is summed along this axis are not products of two %s",
                          o->axis, base == 4 ? "i8 or u8" : "bf16");
    if (n->dots && n->dots != o->amount)
        return opt_refuse(n, "DOT %s: another sum is taken by %s", o->axis,
                          n->dots == 4   ? "fours"
                          : n->dots == 2 ? "pairs"
                                         : "more");
    if (opt_on_gpu(n) && o->amount == 2)
        return opt_refuse(n, "DOT %s: a GPU takes bytes in groups of four, and bf16 one by one",
                          o->axis);
    opt_divide(n, o, axis, AXIS_FOUR, REST_NONE);
    n->dots = (int)o->amount;
    return NULL;
}
