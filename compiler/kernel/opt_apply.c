/* opt_apply.c - what an opt means, and when it cannot be done.
 *
 * Heuristic, .sched files and whoever else chooses opts all come here.  An opt changes the nest's
 * axes and their order, nothing else; a refusal changes nothing and is a sentence for whoever wrote
 * the opt. */
#include <limits.h>
#include <string.h>

#include "kernel.h"

enum {
    MAX_COPIES = 64, /* of a store by UPCAST, and of the terms of a sum by UNROLL */
    MAX_PARTS = 1 << 16,
    MAX_RANGES = 64 /* of a loop nest: linearize() counts them in the bits of a word */
};

static const char *refuse(Nest *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *refuse(Nest *n, const char *format, ...)
{
    StrBuf sb = {0};
    va_list ap;
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    const char *why = arena_strdup(n->arena, sb.data);
    sb_free(&sb);
    return why;
}

/* What can be named. */
static const char *names(Nest *n)
{
    const char *all = "";
    for (int i = 0; i < n->norder; i++)
        if (!n->axis[n->order[i]].remainder)
            all = arena_printf(n->arena, "%s %s", all, n->axis[n->order[i]].name);
    return *all ? all + 1 : "none";
}

static const char *no_axis(Nest *n, const char *what, const char *name, size_t length)
{
    return refuse(n, "%sthe kernel has no axis '%.*s': it has %s", what, (int)length, name,
                  names(n));
}

/* ---- axes are taken apart ------------------------------------------------------------------------ */

static int add_axis(Nest *n, int of, const char *suffix, AxisForm form, int64_t extent,
                    int64_t most)
{
    const NestAxis *whole = &n->axis[of];
    NestAxis x = {.name = arena_printf(n->arena, "%s.%s", whole->name, suffix),
                  .form = form,
                  .reduced = whole->reduced,
                  .staged = whole->staged,
                  .remainder = *suffix == 'r',
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

static Split *divide(Nest *n, const Opt *o, int axis, AxisForm inner, RestForm rest)
{
    int64_t extent = n->axis[axis].extent, most = n->axis[axis].most;
    Split s = {.kind = o->kind,
               .axis = axis,
               .rest = -1,
               .amount = o->amount,
               .count = extent < 0 ? -1 : extent / o->amount,
               .remaining = extent < 0 ? -1 : extent % o->amount};
    bool overlaps = n->axis[axis].staged && s.remaining > 0;
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

/* Numbers of ranges that a loop nest may need. */
static int ranges(const Nest *n)
{
    int sum = n->k->naxis, reduced = 0;
    for (int i = 0; i < n->k->naxis; i++)
        reduced += n->axis[i].reduced;
    for (int i = 0; i < n->nsplit; i++)
        sum += 3 + (n->split[i].kind == OPT_VECTOR && n->axis[n->split[i].axis].reduced &&
                            n->split[i].remaining /* terms with loops of their own */
                        ? reduced
                        : 0);
    return sum + n->nstage * (n->norder + 1);
}

/* ---- MASK, BIND --------------------------------------------------------------------------------------- */

static bool on_gpu(const Nest *n)
{
    return n->target && n->target->gpu;
}

/* A GPU runs one loop nest. */
static const char *rest_on_gpu(Nest *n, const Opt *o, const NestAxis *x)
{
    return refuse(n,
                  "%s %s %lld: the axis has %lld elements; on a GPU nothing may be left over: MASK "
                  "it before",
                  opt_name[o->kind], o->axis, (long long)o->amount, (long long)x->most);
}

/* A reduce with a state of several values runs over the axis. */
static bool in_state(const Nest *n, int axis)
{
    Arena *a = arena_new();
    int count;
    bool found = false;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < count; i++)
        found |= order[i]->op == OP_REDUCE && reduce_size(order[i]) > 1 &&
                 depends_on(order[i]->src[0], n->k->axes[axis].range);
    arena_free(a);
    return found;
}

static const char *apply_mask(Nest *n, const Opt *o, int axis)
{
    NestAxis *x = &n->axis[axis];
    if (n->shared && !on_gpu(n))
        return refuse(n, "MASK %s: this target has loops of their own for what is left over",
                      o->axis);
    if (axis >= n->k->naxis || x->within || x->extent < 0 || o->amount < 2)
        return refuse(n,
                      "MASK %s %lld: it takes an axis of constant size that no other opt has "
                      "changed, and a multiple of 2 or more",
                      o->axis, (long long)o->amount);
    if (n->shared && in_state(n, axis))
        return refuse(n, "MASK %s: a reduce along it has a state of several values", o->axis);
    x->within = x->extent;
    x->extent = x->most = (x->extent + o->amount - 1) / o->amount * o->amount;
    return NULL;
}

/* Of the reduce that has most: how many items of a group have a part of its terms each. */
static int64_t items_of_reduces(const Nest *n, Arena *a)
{
    int count;
    int64_t most = 1;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < count; i++) {
        int64_t items = 1;
        for (int j = 0; j < n->naxis && order[i]->op == OP_REDUCE; j++) {
            const NestAxis *x = &n->axis[j];
            bool over = false;
            for (uint32_t s = reduce_ranges(order[i]); s < order[i]->nsrc; s++)
                over |= order[i]->src[s] == n->k->axes[x->root].range;
            if (over && x->reduced && x->bound)
                items = sat_mul(items, x->extent);
        }
        most = items > most ? items : most;
    }
    return most;
}

/* Some reduce over the axis is computed anew in the loops of another one. */
static bool in_other_reduce(const Nest *n, int root, Arena *a)
{
    int count;
    Node **order = graph_toposort(a, 1, &n->k->sink, &count), *range = n->k->axes[root].range;
    for (int i = 0; i < count; i++) {
        bool over = false;
        for (uint32_t s = 1; s < order[i]->nsrc && order[i]->op == OP_REDUCE; s++)
            over |= order[i]->src[s] == range;
        for (int j = 0; over && j < n->k->naxis; j++)
            if (n->axis[j].reduced && moves_with(a, order[i], n->k->axes[j].range))
                return true;
    }
    return false;
}

static bool has_place(const Nest *n)
{
    for (int i = 0; i < n->k->naxis; i++)
        if (n->axis[i].staged || n->axis[i].scanned)
            return true;
    return n->nstage > 0;
}

/* Items share the terms of a sum. */
static const char *bind_reduced_refused(Nest *n, const Opt *o, int axis, Arena *a)
{
    const NestAxis *x = &n->axis[axis];
    if (o->amount != BOUND_LANE)
        return refuse(n,
                      "BIND %s grid: the groups of a grid do not meet: only the items of one "
                      "group share what is reduced",
                      o->axis);
    if (n->shared && has_place(n))
        return refuse(n, "BIND %s lane: the kernel has values in places, or a scan", o->axis);
    if (n->shared && in_other_reduce(n, x->root, a))
        return refuse(n, "BIND %s lane: what is reduced along it moves with another reduced axis",
                      o->axis);
    return NULL;
}

static const char *apply_bind(Nest *n, const Opt *o, int axis)
{
    const int most = n->target ? n->target->items : INT_MAX;
    NestAxis *x = &n->axis[axis];
    const char *why = NULL;
    if (n->shared && !on_gpu(n))
        return refuse(n, "BIND %s: this target has no grid: THREAD shares loops among threads",
                      o->axis);
    if (x->bound || (n->shared && n->k->sink->nsrc != 1))
        return refuse(n, "BIND %s: it takes a loop that is not bound already", o->axis);
    Arena *a = arena_new();
    if (x->reduced)
        why = bind_reduced_refused(n, o, axis, a);
    int64_t items = 1, sharing = 1;
    x->bound = (Bound)o->amount;
    for (int i = 0; i < n->naxis; i++)
        if (n->axis[i].bound == BOUND_LANE && !n->axis[i].reduced)
            items = n->axis[i].extent < 0 ? INT64_MAX : sat_mul(items, n->axis[i].extent);
    if (n->sharing || x->reduced)
        sharing = items_of_reduces(n, a);
    arena_free(a);
    if (!why && o->amount == BOUND_LANE && (x->extent < 0 || sat_mul(items, sharing) > most))
        why = refuse(n, "BIND %s lane: a group has at most %d items, this axis %lld", o->axis, most,
                     (long long)x->extent);
    if (why) {
        x->bound = BOUND_NOT;
        return why;
    }
    n->sharing = sharing > 1 ? (int)sharing : n->sharing;
    if (o->amount == BOUND_LANE)
        n->items = (int)(items * sharing);
    return NULL;
}

/* ---- SPLIT, UPCAST, UNROLL ------------------------------------------------------------------------ */

static const char *apply_split(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    bool whole = x->extent > 0 && x->extent % o->amount == 0;
    if (x->reduced && !whole)
        return refuse(n,
                      "SPLIT %s %lld: the axis is reduced, and has %lld elements, which it has to "
                      "divide",
                      o->axis, (long long)o->amount, (long long)x->most);
    if (o->amount < 2 || o->amount >= x->most)
        return refuse(n, "SPLIT %s %lld: the axis has %lld elements", o->axis, (long long)o->amount,
                      (long long)x->most);
    const char *why = on_gpu(n) && !whole ? rest_on_gpu(n, o, x) : NULL;
    if (why)
        return why;
    divide(n, o, axis, AXIS_LOOP, REST_LOOP);
    return NULL;
}

/* Can what is left of an axis that is unrolled be a reduce of its own?  It is the one loop of every reduce over it, and no other
 * UNROLL has such a rest there. */
static bool rest_is_alone(const Nest *n, int axis)
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
static bool has_rest(const Nest *n, int axis)
{
    for (int i = 0; i < n->nsplit; i++)
        if (n->axis[n->split[i].axis].root == n->axis[axis].root &&
            n->split[i].kind == OPT_UNROLL && n->split[i].remaining)
            return true;
    return false;
}

/* UPCAST of what is stored, UNROLL of what is reduced. */
static const char *apply_copies(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    bool unroll = o->kind == OPT_UNROLL,
         whole = !unroll || x->staged || (x->extent > 0 && x->extent % o->amount == 0);
    if (x->reduced != unroll)
        return refuse(n,
                      unroll ? "UNROLL %s %lld: the axis is not reduced: UPCAST makes copies of it"
                             : "UPCAST %s %lld: the axis is reduced: UNROLL makes copies of it",
                      o->axis, (long long)o->amount);
    if (o->amount < 2 || o->amount > x->most)
        return refuse(n, "%s %s %lld: the axis has %lld elements", opt_name[o->kind], o->axis,
                      (long long)o->amount, (long long)x->most);
    if (unroll && has_rest(n, axis))
        return refuse(n, "UNROLL %s: the axis is unrolled already, with a rest", o->axis);
    if (!whole && !rest_is_alone(n, axis))
        return refuse(n,
                      "UNROLL %s %lld: the axis has %lld elements, which it has to divide where a "
                      "reduce runs over others too or the axis has been taken apart",
                      o->axis, (long long)o->amount, (long long)x->most);
    const char *why = on_gpu(n) && x->extent % o->amount ? rest_on_gpu(n, o, x) : NULL;
    if (why)
        return why;
    if (sat_mul(n->copies, o->amount) > MAX_COPIES)
        return refuse(n, "%s %s %lld: at most %d copies are made of anything, by all opts together",
                      opt_name[o->kind], o->axis, (long long)o->amount, MAX_COPIES);
    n->copies *= o->amount;
    divide(n, o, axis, AXIS_COPIES, unroll ? REST_LOOP : REST_COPIES);
    return NULL;
}

/* ---- DOT ---------------------------------------------------------------------------------------------- */

static bool sums_bytes(const Nest *n, int axis)
{
    Arena *a = arena_new();
    View v = kernel_view(a, n->k);
    bool *free = NEWN(a, bool, n->k->narg); /* how they lie, nest_check() judges */
    memset(free, true, (size_t)n->k->narg * sizeof *free);
    bool possible = dot_possible(n->k, &v, n->k->axes[axis].range, free);
    arena_free(a);
    return possible;
}

static const char *apply_dot(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    if (!x->reduced || axis >= n->k->naxis)
        return refuse(n, "DOT %s: it takes a reduced axis that no other opt has changed", o->axis);
    if (o->amount != 4 || x->extent % 4)
        return refuse(n, "DOT %s %lld: four terms are taken at once, and the axis has %lld",
                      o->axis, (long long)o->amount, (long long)x->extent);
    for (int i = 0; i < n->naxis; i++)
        if (n->axis[i].form == AXIS_LANES && n->axis[i].reduced)
            return refuse(n, "DOT %s: lanes run along a reduced axis already", o->axis);
    if (n->shared && !sums_bytes(n, axis))
        return refuse(n, "DOT %s: what is summed along this axis are not products of two i8 or u8",
                      o->axis);
    divide(n, o, axis, AXIS_FOUR, REST_NONE);
    n->dots = true;
    return NULL;
}

/* ---- VECTOR --------------------------------------------------------------------------------------- */

/* Some value would run over two ranges of lanes. */
static bool two_dimensional(const Nest *n, int axis)
{
    Arena *a = arena_new();
    int count;
    Node **order = graph_toposort(a, 1, &n->k->sink->src[0], &count);
    const bool *on = moving(a, order, count, n->k->axes[axis].range);
    bool both = false;
    for (int i = 0; i < n->naxis && !both; i++) {
        if (n->axis[i].form != AXIS_LANES)
            continue;
        const bool *other = moving(a, order, count, n->k->axes[n->axis[i].root].range);
        for (int j = 0; j < count && !both; j++)
            both = order[j]->dtype != INGOT_INDEX && order[j]->op != OP_END && on[order[j]->id] &&
                   other[order[j]->id];
    }
    arena_free(a);
    return both;
}

static bool in_lanes(const Nest *n, int axis)
{
    int8_t *known = &n->shared->in_lanes[axis];
    if (!*known) {
        Arena *a = arena_new();
        *known = lanes_possible(a, n->k, n->k->axes[axis].range) ? 1 : -1;
        arena_free(a);
    }
    return *known > 0;
}

/* Are there reduces, and none that depends on the range? A loop nest of its own for a remainder would repeat them. */
static bool shares_rows(const Nest *n, int axis)
{
    Arena *a = arena_new();
    int count;
    Node **order = graph_toposort(a, 1, &n->k->sink->src[0], &count);
    bool any = false, shared = true;
    for (int i = 0; i < count && shared; i++)
        if (order[i]->op == OP_REDUCE) {
            any = true;
            shared = !depends_on(order[i], n->k->axes[axis].range);
        }
    arena_free(a);
    return any && shared;
}

/* Is it of the kernel's own loop nest, not of one that clears a halo? */
static bool is_output(const Nest *n, int axis)
{
    const Node *end = n->k->sink->src[0];
    for (int i = end_stores(end); i < (int)end->nsrc; i++)
        if (end->src[i] == n->k->axes[n->axis[axis].root].range)
            return true;
    return false;
}

/* The innermost loop over outputs. */
static int innermost(const Nest *n)
{
    int last = -1;
    for (int i = 0; i < n->norder; i++) {
        const NestAxis *x = &n->axis[n->order[i]];
        if (!x->reduced && !x->remainder && x->extent != 1 && is_output(n, n->order[i]))
            last = n->order[i];
    }
    return last;
}

/* What fills no vector: of 8 elements and more a part of a vector, the smallest that holds it: 27 = 16 + the first 11 of 16,
 * 21 = 16 + the first 5 of 8; of one element, or beside vectors of 4, a loop. */
static RestForm rest_of_vector(const Nest *n, const Opt *o, int axis, int *lanes)
{
    const NestAxis *x = &n->axis[axis];
    int64_t left = x->extent < 0 ? -1 : x->extent % o->amount;
    if (x->reduced)
        return REST_LOOP;
    if (axis == innermost(n) && axis < n->k->naxis && shares_rows(n, axis))
        return REST_BESIDE;
    if (left < 2 || o->amount < 8) /* of run time: -1 */
        return REST_LOOP;
    for (*lanes = (int)o->amount; *lanes > 8 && *lanes / 2 >= left;)
        *lanes /= 2;
    return REST_LANES;
}

static const char *vector_refused(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    if (!n->shared) /* judged before */
        return NULL;
    int most = n->target->lanes;
    if (!most)
        return refuse(n,
                      "VECTOR %s %lld: this target has no vectors (0 lanes); --target c:native may",
                      o->axis, (long long)o->amount);
    Node *range = n->k->axes[x->root].range;
    most = lanes_most(n->k, range, n->target);
    if (o->amount > most || (o->amount != 4 && o->amount != 8 && o->amount != 16))
        return refuse(
            n,
            "VECTOR %s %lld: a vector has 4, 8 or 16 lanes, of this target at most %d for "
            "values of %d bits",
            o->axis, (long long)o->amount, most, 8 * lane_bytes(n->k, range));
    if (x->reduced && axis >= n->k->naxis)
        return refuse(n,
                      "VECTOR %s: of what is reduced only an axis that no other opt has changed "
                      "can become lanes",
                      o->axis);
    if (x->most < o->amount)
        return refuse(n, "VECTOR %s %lld: the axis has %lld elements", o->axis,
                      (long long)o->amount, (long long)x->most);
    if (n->lanes && !x->reduced)
        return refuse(n, "VECTOR %s: the kernel has lanes already", o->axis);
    if (n->dots && x->reduced)
        return refuse(n, "VECTOR %s: lanes along a reduced axis do not go with DOT", o->axis);
    if (n->lanes && n->lanes != o->amount)
        return refuse(n, "VECTOR %s %lld: the kernel has vectors of %d lanes already", o->axis,
                      (long long)o->amount, n->lanes);
    if (n->lanes && two_dimensional(n, x->root))
        return refuse(n, "VECTOR %s: what runs along it is in the lanes of another axis already",
                      o->axis);
    if (!in_lanes(n, x->root))
        return refuse(n,
                      "VECTOR %s: some operation or access along this axis cannot be done in lanes",
                      o->axis);
    return NULL;
}

static const char *apply_vector(Nest *n, const Opt *o, int axis)
{
    const char *why = vector_refused(n, o, axis);
    if (why)
        return why;
    int lanes = 0;
    RestForm rest = rest_of_vector(n, o, axis, &lanes);
    Split *s = divide(n, o, axis, AXIS_LANES, rest);
    s->lanes = s->form == REST_LANES ? lanes : 0;
    n->lanes = (int)o->amount;
    if (s->form == REST_BESIDE)
        n->row = axis;
    return NULL;
}

/* ---- TC ----------------------------------------------------------------------------------------------- */

static const char *unit_names(Nest *n, unsigned of)
{
    const char *all = "";
    for (int i = 0; i < TC_COUNT; i++)
        if (of >> i & 1)
            all = arena_printf(n->arena, "%s %s", all, tc_units[i].name);
    return *all ? all + 1 : "none";
}

/* How many fragments it takes at once: all sums, and of the operands what the order of the copies needs.  The first UPCAST is
 * outermost: of the operand that moves with it one is there at a time, of the other all that are used again. */
static int64_t fragments_at_once(const Nest *n, int sums)
{
    int64_t copies[2] = {1, 1}, all = 1;
    int outer = -1;
    for (int i = 0; i < n->nsplit; i++) {
        const Split *s = &n->split[i];
        if (s->kind != OPT_UPCAST)
            continue;
        all *= s->amount;
        for (int j = 0; j < 2; j++) {
            if (n->axis[s->axis].root != n->axis[n->tc_axis[j]].root)
                continue;
            copies[j] *= s->amount;
            outer = outer < 0 ? j : outer;
        }
    }
    int64_t inner = outer < 0 ? 1 : copies[1 - outer];
    return sums * all + 1 + (outer >= 0 && copies[outer] > 1 ? inner : 1);
}

/* The sums that the unit would take; why not, if it takes none, or if some other sum runs over the same terms in copies. */
static const char *tc_sums(Nest *n, const Opt *o, const Tc *u, const int *axis, int *sums)
{
    Arena *a = arena_new();
    int count;
    Node *range[TC_AXES], **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < TC_AXES; i++)
        range[i] = n->k->axes[n->axis[axis[i]].root].range;
    *sums = 0;
    for (int i = 0; i < count; i++)
        *sums += tc_takes(u, order[i], range);
    arena_free(a);
    if (*sums)
        return NULL;
    return refuse(n,
                  "TC %s: no sum over %s is one of products of %s that move with %s, and %s that "
                  "move with %s",
                  o->axis, n->axis[axis[2]].name,
                  u->a == INGOT_I8 ? "bytes" : dtype_info[u->a].name, n->axis[axis[0]].name,
                  u->b == INGOT_I8 ? "bytes" : dtype_info[u->b].name, n->axis[axis[1]].name);
}

static const char *tc_refused(Nest *n, const Opt *o, const Tc *u, const int *axis)
{
    const NestAxis *row = &n->axis[axis[TC_ROWS]], *column = &n->axis[axis[TC_COLUMNS]],
                   *term = &n->axis[axis[TC_TERMS]];
    if (n->target && !(n->target->units >> (u - tc_units) & 1))
        return refuse(n, "TC %s: this target has no such unit (it has: %s)", o->axis,
                      unit_names(n, n->target->units));
    if (n->tc || n->lanes || n->dots || n->row >= 0 || n->nstage || n->k->sink->nsrc != 1)
        return refuse(
            n,
            "TC %s: it goes with no other TC, nor with VECTOR, DOT and STAGE: the columns "
            "are the lanes",
            o->axis);
    if (row->reduced || row->scanned || row->staged || column->reduced || column->scanned ||
        column->staged || !term->reduced || term->staged)
        return refuse(n, "TC %s: it takes (an axis of results; another; a reduced axis)", o->axis);
    if (row->extent < 2 || row->extent > u->m || column->extent != u->n ||
        term->extent < u->group || term->extent > u->k || term->extent % u->group)
        return refuse(n,
                      "TC %s: %s takes 2 to %d rows, %d columns, and up to %d terms that are a "
                      "multiple of %d: these axes have %lld, %lld and %lld",
                      o->axis, u->name, u->m, u->n, u->k, u->group, (long long)row->extent,
                      (long long)column->extent, (long long)term->extent);
    if (column->root == row->root ||
        u->n > lanes_most(n->k, n->k->axes[column->root].range, n->target))
        return refuse(n, "TC %s: the columns are no lanes: this target has at most %d", o->axis,
                      n->target->lanes);
    for (int i = 0; i < n->nsplit; i++)
        if (n->split[i].kind == OPT_UNROLL)
            return refuse(n, "TC %s: it does not go with UNROLL", o->axis);
    if (!in_lanes(n, column->root))
        return refuse(n, "TC %s: some operation or access along %s cannot be done in lanes",
                      o->axis, column->name);
    return NULL;
}

static const char *apply_tc(Nest *n, const Opt *o)
{
    TcText text;
    int axis[TC_AXES], sums = 0;
    bool good = tc_read(o->axis, &text);
    if (!text.unit)
        return refuse(n, "TC %s: there is no such unit: there are %s", o->axis, unit_names(n, ~0u));
    if (!good)
        return refuse(n, "TC %s: TC %s (rows; columns; terms) is wanted, an axis each", o->axis,
                      text.unit->name);
    const Tc *u = text.unit;
    for (int i = 0; i < TC_AXES; i++) {
        axis[i] = nest_find(n, text.axis[i], (size_t)text.length[i]);
        if (axis[i] < 0)
            return no_axis(n, "TC: ", text.axis[i], (size_t)text.length[i]);
    }
    const char *why = n->shared ? tc_refused(n, o, u, axis) : NULL;
    if (!why && n->shared)
        why = tc_sums(n, o, u, axis, &sums);
    if (why)
        return why;
    Nest tried = *n;
    memcpy(tried.tc_axis, axis, sizeof axis);
    int64_t fragments = fragments_at_once(&tried, sums);
    if (fragments > u->tiles)
        return refuse(n,
                      "TC %s: the copies need %lld fragments at once, %s has %d: fewer UPCASTs, or "
                      "another order of them",
                      o->axis, (long long)fragments, u->name, u->tiles);
    n->tc = u;
    memcpy(n->tc_axis, axis, sizeof axis);
    n->lanes = u->n;
    for (int i = 0; i < TC_AXES; i++)
        n->axis[axis[i]].form = i == TC_COLUMNS ? AXIS_LANES : AXIS_UNIT;
    return NULL;
}

/* ---- STAGE ------------------------------------------------------------------------------------------ */

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
        if ((n->axis[i].bound == BOUND_LANE || n->axis[i].form == AXIS_COPIES) &&
            !depends_on(load, n->k->axes[n->axis[i].root].range))
            return true;
    return false;
}

static const char *stage_refused(Nest *n, const Opt *o, int axis, Arena *a)
{
    if (!n->shared) /* judged before */
        return NULL;
    Node *load = only_load(a, n->k->sink, o->amount);
    if (on_gpu(n) && (n->axis[axis].bound == BOUND_LANE || n->items < 2))
        return refuse(n,
                      "STAGE %s %lld: it takes a loop, or an axis of the grid, of a kernel whose "
                      "items are bound to lanes",
                      o->axis, (long long)o->amount);
    if (!on_gpu(n) && (n->axis[axis].reduced || !is_output(n, axis)))
        return refuse(n, "STAGE %s %lld: the axis is not one of the results", o->axis,
                      (long long)o->amount);
    if (!load || n->k->args[o->amount].written)
        return refuse(n, "STAGE %s %lld: argument %lld is not one that is read in one place",
                      o->axis, (long long)o->amount, (long long)o->amount);
    if (nest_stage(n, o->amount) >= 0)
        return refuse(n, "STAGE %s %lld: argument %lld is staged already", o->axis,
                      (long long)o->amount, (long long)o->amount);
    if (n->dots || n->row >= 0 || n->sharing || n->k->sink->nsrc != 1)
        return refuse(n,
                      "STAGE %s %lld: it does not go with DOT, with a rest beside its row, nor "
                      "with sums that items share",
                      o->axis, (long long)o->amount);
    for (int i = 0; i < n->k->naxis; i++)
        if (has_rest(n, i))
            return refuse(n, "STAGE %s %lld: the reduced axis %s is unrolled with a rest", o->axis,
                          (long long)o->amount, n->axis[i].name);
    for (int i = 0; i < n->naxis; i++)
        if (n->axis[i].form == AXIS_LANES && n->axis[i].reduced)
            return refuse(n, "STAGE %s %lld: lanes run along a reduced axis", o->axis,
                          (long long)o->amount);
    for (int i = 0; i < n->k->naxis; i++)
        if (n->axis[i].extent < 0 && depends_on(load, n->k->axes[i].range))
            return refuse(n,
                          "STAGE %s %lld: the size of axis %s, along which it is read, is known at "
                          "run time only",
                          o->axis, (long long)o->amount, n->axis[i].name);
    if (ranges(n) + n->norder + 1 > MAX_RANGES)
        return refuse(n, "STAGE %s %lld: the kernel would have more than %d loops", o->axis,
                      (long long)o->amount, MAX_RANGES);
    if (on_gpu(n) ? !shared_by_items(n, load) : !reads_again(n, load, axis))
        return refuse(n, "STAGE %s %lld: no loop inside of the axis reads the same again", o->axis,
                      (long long)o->amount);
    return NULL;
}

static const char *apply_stage(Nest *n, const Opt *o, int axis)
{
    Arena *a = arena_new();
    const char *why = stage_refused(n, o, axis, a);
    arena_free(a);
    if (why)
        return why;
    Stage s = {axis, (int)o->amount};
    vec_push(n->arena, n->stage, n->nstage, s);
    return NULL;
}

/* ---- PREFETCH ------------------------------------------------------------------------------------------ */

static const char *apply_prefetch(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    Arena *a = arena_new();
    const Node *load = n->shared ? only_load(a, n->k->sink, o->amount) : NULL;
    bool moves = load && depends_on(load, n->k->axes[x->root].range);
    arena_free(a);
    if (on_gpu(n) || (n->shared && !n->target->lanes))
        return refuse(n, "PREFETCH %s %lld: it is for targets with vectors", o->axis,
                      (long long)o->amount);
    if (x->reduced || x->extent < 0 || n->row >= 0)
        return refuse(
            n,
            "PREFETCH %s %lld: it takes a loop over results of constant size, in a kernel "
            "without a rest beside its row",
            o->axis, (long long)o->amount);
    if (n->shared && (!moves || n->k->args[o->amount].written))
        return refuse(n,
                      "PREFETCH %s %lld: argument %lld is not one that is read in one place, which "
                      "moves with the axis",
                      o->axis, (long long)o->amount, (long long)o->amount);
    if (n->prefetch >= 0 || nest_stage(n, o->amount) >= 0)
        return refuse(n, "PREFETCH %s %lld: one argument can be asked for, which is not staged",
                      o->axis, (long long)o->amount);
    n->prefetch = axis;
    n->prefetched = (int)o->amount;
    return NULL;
}

/* ---- JOIN --------------------------------------------------------------------------------------------- */

static const char *apply_join(Nest *n, const Opt *o)
{
    int axis[INGOT_MAX_RANK], count = join_axes(n->k, o->axis, axis, INGOT_MAX_RANK);
    for (int i = 0; i < n->nopt; i++)
        if (n->opts[i].kind != OPT_JOIN)
            return refuse(n, "JOIN %s: it comes before all other opts", o->axis);
    if (n->shared && !on_gpu(n))
        return refuse(n, "JOIN %s: loops of this target keep their axes apart", o->axis);
    if (count < 2 || n->k->sink->nsrc != 1)
        return refuse(n, "JOIN %s: two axes or more are wanted, each once: it has %s", o->axis,
                      names(n));
    for (int i = 0; i < count; i++) {
        const NestAxis *x = &n->axis[axis[i]];
        if (x->reduced || x->scanned || x->extent < 0 || !is_output(n, axis[i]))
            return refuse(n, "JOIN %s: %s is no axis of results of constant size", o->axis,
                          x->name);
    }
    nest_replace(n, kernel_join(n->k, axis, count));
    return NULL;
}

/* ---- ORDER, THREAD --------------------------------------------------------------------------------- */

static const char *apply_order(Nest *n, const Opt *o)
{
    int *order = NULL, norder = 0, row = n->row < 0 ? -1 : nest_loop(n, n->row);
    bool *named = NEWN(n->arena, bool, n->naxis);
    row = row >= 0 && n->axis[row].extent == 1 ? -1 : row;
    for (const char *at = o->axis; *at;) {
        size_t length = strcspn(at, " ");
        int x = nest_find(n, at, length);
        if (x < 0)
            return no_axis(n, "ORDER: ", at, length);
        if (named[x])
            return refuse(n, "ORDER: axis '%.*s' stands there twice", (int)length, at);
        if (row >= 0 && named[row] && !n->axis[x].reduced)
            return refuse(n,
                          "ORDER: %s stays innermost, for what remains of %s is computed beside it",
                          n->axis[row].name, n->axis[n->row].name);
        named[x] = true;
        if (x != row)
            vec_push(n->arena, order, norder, x);
        at += length + (at[length] == ' ');
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n->norder; i++) {
            int x = n->order[i];
            if ((pass && x == row) || (!pass && !named[x] && x != row))
                vec_push(n->arena, order, norder, x);
        }
    const NestAxis *scan = NULL;
    for (int i = 0; i < norder; i++) {
        const NestAxis *x = &n->axis[order[i]];
        if (x->scanned)
            scan = x;
        else if (scan && !x->reduced)
            return refuse(n,
                          "ORDER: %s stays inside of %s: its loop runs in order, each element "
                          "continues the last",
                          scan->name, x->name);
    }
    n->order = order;
    n->norder = norder;
    n->ordered = true;
    return NULL;
}

static const char *apply_thread(Nest *n, const Opt *o, int axis)
{
    const NestAxis *x = &n->axis[axis];
    if (x->reduced)
        return refuse(n, "THREAD %s: the axis is reduced", o->axis);
    if (n->row >= 0 && axis == nest_loop(n, n->row))
        return refuse(
            n, "THREAD %s: what remains of %s is computed beside this loop: name one outside",
            o->axis, n->axis[n->row].name);
    if (o->amount < 2 || o->amount > MAX_PARTS)
        return refuse(n, "THREAD %s: 2 to %d parts are possible", o->axis, MAX_PARTS);
    if (n->shared && !can_be_cut(n->k))
        return refuse(n, "THREAD %s: the kernel reads what it writes", o->axis);
    for (int i = 0; i < n->nstage; i++)
        if (nest_position(n, axis) > nest_position(n, n->stage[i].axis))
            return refuse(n, "THREAD %s: argument %d is staged outside of this axis", o->axis,
                          n->stage[i].arg);
    n->thread = axis;
    n->parts = (int)o->amount;
    return NULL;
}

/* ---- all -------------------------------------------------------------------------------------------- */

static const char *apply(Nest *n, const Opt *o)
{
    if (n->k->serial)
        return refuse(n, "this kernel takes no opts: its iterations run in order");
    if (n->parts)
        return refuse(n, "THREAD comes last");
    if (n->prefetch >= 0 && o->kind != OPT_STAGE && o->kind != OPT_THREAD)
        return refuse(n, "%s %s: after PREFETCH come only STAGE and THREAD", opt_name[o->kind],
                      o->axis);
    if (n->nstage && o->kind != OPT_STAGE && o->kind != OPT_THREAD)
        return refuse(n, "%s %s: after STAGE come only other STAGEs and THREAD", opt_name[o->kind],
                      o->axis);
    if (o->kind == OPT_ORDER)
        return apply_order(n, o);
    if (o->kind == OPT_JOIN)
        return apply_join(n, o);
    if (o->kind == OPT_TC)
        return apply_tc(n, o);
    if (n->tc && o->kind != OPT_THREAD)
        return refuse(n, "%s %s: after TC come only ORDER and THREAD", opt_name[o->kind], o->axis);
    bool done = o->kind == OPT_VECTOR || o->kind == OPT_UPCAST || o->kind == OPT_SPLIT ||
                o->kind == OPT_UNROLL || o->kind == OPT_DOT || o->kind == OPT_THREAD ||
                o->kind == OPT_STAGE || o->kind == OPT_MASK || o->kind == OPT_BIND ||
                o->kind == OPT_PREFETCH;
    if (!done)
        return refuse(
            n,
            "%s: only JOIN, MASK, SPLIT, VECTOR, UPCAST, UNROLL, DOT, TC, ORDER, PREFETCH, STAGE, "
            "BIND and THREAD are carried out yet",
            opt_name[o->kind]);
    int axis = nest_find(n, o->axis, strlen(o->axis));
    if (axis < 0)
        return no_axis(n, "", o->axis, strlen(o->axis));
    if (n->axis[axis].scanned)
        return refuse(
            n,
            "%s %s: the axis is scanned: its loop runs in order, each element continues the last",
            opt_name[o->kind], o->axis);
    if (n->axis[axis].extent == 1)
        return refuse(n, "no loop is left of axis '%s'", o->axis);
    if (n->axis[axis].bound && o->kind != OPT_STAGE)
        return refuse(n, "%s %s: the axis is bound: its iterations are no loop", opt_name[o->kind],
                      o->axis);
    if (o->kind == OPT_THREAD)
        return on_gpu(n) ? refuse(n, "THREAD %s: a GPU has BIND", o->axis)
                         : apply_thread(n, o, axis);
    if (o->kind == OPT_MASK)
        return apply_mask(n, o, axis);
    if (o->kind == OPT_BIND)
        return apply_bind(n, o, axis);
    if (o->kind == OPT_PREFETCH)
        return apply_prefetch(n, o, axis);
    if (o->kind == OPT_STAGE)
        return apply_stage(n, o, axis);
    if (n->row >= 0 && !n->axis[axis].reduced)
        return refuse(
            n,
            "%s %s: what remains of %s is computed beside its vectors: no axis of results "
            "is taken apart after that",
            opt_name[o->kind], o->axis, n->axis[n->row].name);
    if (ranges(n) + 6 > MAX_RANGES)
        return refuse(n, "%s %s: the kernel would have more than %d loops", opt_name[o->kind],
                      o->axis, MAX_RANGES);
    switch (o->kind) {
    case OPT_VECTOR: return apply_vector(n, o, axis);
    case OPT_DOT: return apply_dot(n, o, axis);
    case OPT_SPLIT: return apply_split(n, o, axis);
    default: return apply_copies(n, o, axis);
    }
}

const char *opt_apply(Nest *n, const Opt *o)
{
    const char *why = apply(n, o);
    if (!why)
        vec_push(n->arena, n->opts, n->nopt, opt_copy(n->arena, o));
    return why;
}

/* In every loop nest, what moves with the lanes moves by one element a lane, or two are interleaved; what a dot reads are four
 * neighbours, those of the next lane behind them. */
static int strided_arg(const Tiles *tiles, Arena *a)
{
    Context *c = tiles->k->c;
    for (int i = 0; i < tiles->n; i++) {
        const Tile *t = &tiles->tile[i];
        if (!t->lane && !t->four)
            continue;
        Node **flat = NEWN(a, Node *, t->nstore);
        flatten_addresses(a, tiles->k, t->nstore, t->store, flat);
        int n, nstore = join_stores(c, t, flat);
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
            bool load = order[j]->op == OP_LOAD && !four, two = order[j]->nsrc > 4;
            int64_t stride, want = four ? 4 : two ? 2 : 1;
            if ((lane && (!range_stride(c, at, t->lane, &stride) || (!load && stride != want))) ||
                (four && (!range_stride(c, at, t->four, &stride) || stride != 1)))
                return (int)order[j]->src[0]->arg.i;
        }
    }
    return -1;
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
            if (rows == columns || tc_fragment(tiles->k->c, t->tc, t->fragment, x, &first, &pitch))
                continue;
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
    int64_t bytes = place_offset(tiles.k, n->k->narg, tiles.k->narg);
    tiles_free(&tiles);
    return bytes <= n->target->shared
               ? NULL
               : arena_printf(n->arena, "the items of a group share %lld bytes: there are %d",
                              (long long)bytes, n->target->shared);
}

const char *nest_check(const Nest *n)
{
    if (on_gpu(n))
        return n->items && (n->sharing || n->nstage) ? places_fit(n) : NULL;
    if (!n->lanes && !n->dots)
        return NULL;
    Arena *a = arena_new();
    Tiles tiles = nest_lower(n);
    int arg = strided_arg(&tiles, a);
    const char *fragment = n->tc ? fragments_apart(n, &tiles, a) : NULL;
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
