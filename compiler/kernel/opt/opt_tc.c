/* opt_tc.c - TC: a matrix unit takes three axes. */
#include <string.h>

#include "opt.h"

static const char *unit_names(Nest *n, const Machine *m)
{
    const char *all = "";
    for (const Tc *u = NULL; (u = tc_next(m, u));)
        all = arena_printf(n->arena, "%s %s", all, u->name);
    return *all ? all + 1 : "none";
}

/* How many fragments it takes at once: all sums, and of the operands what the order of the copies
 * needs.  The first UPCAST is outermost: of the operand that moves with it one is there at a time,
 * of the other all that are used again. */
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

/* Is the sum in every copy another one?  Its fragments take turns with those of the other sums, so
 * they are as many. */
static bool is_in_copies(const Nest *n, Node *sum)
{
    for (int i = 0; i < n->nsplit; i++)
        if (n->split[i].kind == OPT_UPCAST &&
            !depends_on(sum, n->k->axes[n->axis[n->split[i].axis].root].range))
            return false;
    return true;
}

/* Copies of results whose sums are others. */
static int64_t copies_of_sums(const Nest *n, const Tc *u, const int *axis)
{
    Arena *a = arena_new();
    int count;
    int64_t copies = 1;
    Node *range[TC_AXES], **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < TC_AXES; i++)
        range[i] = n->k->axes[n->axis[axis[i]].root].range;
    for (int i = 0; i < n->nsplit; i++) {
        bool moves = false;
        for (int j = 0; j < count && n->split[i].kind == OPT_UPCAST && !moves; j++)
            moves = tc_takes(u, order[j], range) &&
                    depends_on(order[j], n->k->axes[n->axis[n->split[i].axis].root].range);
        copies = moves ? sat_mul(copies, n->split[i].amount) : copies;
    }
    arena_free(a);
    return copies;
}

/* The sums that the unit would take at once: of each of `n` axes of terms some, one after the
 * other. Why not, if it takes none over one of them. */
static const char *tc_sums(Nest *n, const Opt *o, const Tc *u, const int *axis, int nterms,
                           int *sums)
{
    Arena *a = arena_new();
    int count, of[TC_MOST_REDUCED] = {0}, bad = -1;
    Node *range[TC_AXES], **order = graph_toposort(a, 1, &n->k->sink, &count);
    *sums = 0;
    for (int i = 0; i < TC_TERMS; i++)
        range[i] = n->k->axes[n->axis[axis[i]].root].range;
    for (int j = 0; j < nterms; j++) {
        range[TC_TERMS] = n->k->axes[n->axis[axis[TC_TERMS + j]].root].range;
        for (int i = 0; i < count; i++)
            of[j] += tc_takes(u, order[i], range) && (nterms == 1 || is_in_copies(n, order[i]));
        *sums = of[j] > *sums ? of[j] : *sums;
        bad = of[j] && (of[j] == of[0] || nterms == 1) ? bad : j;
    }
    arena_free(a);
    if (bad < 0)
        return NULL;
    return opt_refuse(
        n,
        "TC %s: no sum over %s is one of products of %s that move with %s, and %s that "
        "move with %s",
        o->axis, n->axis[axis[TC_TERMS + bad]].name,
        u->a == INGOT_I8 ? "bytes" : dtype_info[u->a].name, n->axis[axis[0]].name,
        u->b == INGOT_I8 ? "bytes" : dtype_info[u->b].name, n->axis[axis[1]].name);
}

/* ---- rows of sums that stay in registers ----------------------------------------------------- */

/* What a warp has of an axis along a row: all, or a block, of which the others have one each. */
static int along_row(const Nest *n, int axis)
{
    for (int split; (split = n->axis[axis].split) >= 0 && n->split[split].kind == OPT_SPLIT;)
        axis = n->split[split].inner;
    return axis;
}

/* The axes along which a row of the unit's sums runs: all that places or reduces have, but the
 * terms of these sums. */
static void mark_rows(Nest *n, const Tc *u, const int *axis)
{
    Arena *a = arena_new();
    int count;
    Node *range[TC_AXES], **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < TC_AXES; i++)
        range[i] = n->k->axes[n->axis[axis[i]].root].range;
    for (int i = 0; i < n->k->naxis; i++)
        n->axis[along_row(n, i)].row = n->axis[i].reduced;
    for (int i = 0; i < count; i++)
        for (uint32_t j = 1; tc_takes(u, order[i], range) && j < order[i]->nsrc; j++)
            n->axis[along_row(n, nest_root(n, order[i]->src[j]))].row = false;
    arena_free(a);
}

/* All that the kernel has along rows is of one row, each of the columns of the sums, or why not. */
static const char *rows_refused(Nest *n, const Opt *o, const Tc *u, const int *axis)
{
    const NestAxis *column = &n->axis[axis[TC_COLUMNS]], *row = &n->axis[column->root];
    const char *why = NULL;
    Arena *a = arena_new();
    int count;
    Node *range[TC_AXES], **order = graph_toposort(a, 1, &n->k->sink, &count);
    for (int i = 0; i < TC_AXES; i++)
        range[i] = n->k->axes[n->axis[axis[i]].root].range;
    for (int i = 0; i < count && !why; i++) {
        int own;
        Node *x = order[i], *const *of = own_ranges(x, &own);
        const bool reduce = x->op == OP_REDUCE;
        if ((!reduce && x->op != OP_STAGE && x->op != OP_SCAN) || tc_takes(u, x, range))
            continue;
        const int monoid = reduce ? (int)reduce_monoid(x) : INGOT_REDUCE_ADD;
        bool good = own == 1 && x->op != OP_SCAN && (!reduce || reduce_size(x) == 1) &&
                    (monoid == INGOT_REDUCE_ADD || monoid == INGOT_REDUCE_MAX) &&
                    (!reduce || x->dtype == INGOT_F32);
        const NestAxis *along = good ? &n->axis[nest_root(n, of[0])] : column,
                       *part = &n->axis[along_row(n, along->root)];
        good = good && part->split < 0 && part->extent == column->extent &&
               along->extent == row->extent && along->within == row->within &&
               (reduce || (x->src[2]->op == OP_RANGE && x->src[2] != range[TC_TERMS]));
        if (!good)
            why = opt_refuse(n,
                             "TC %s: what the kernel has along its rows is not all of rows of %lld "
                             "that %s has in registers",
                             o->axis, (long long)column->extent, u->name);
    }
    arena_free(a);
    return why;
}

/* The columns are those of a value that has a place: its rows stay in registers. */
static const char *inner_refused(Nest *n, const Opt *o, const Tc *u, const int *axis)
{
    const NestAxis *row = &n->axis[axis[TC_ROWS]], *column = &n->axis[axis[TC_COLUMNS]],
                   *term = &n->axis[axis[TC_TERMS]];
    if (n->target && !tc_has(&n->target->machine, u))
        return opt_refuse(n, "TC %s: this target has no such unit (it has: %s)", o->axis,
                          unit_names(n, &n->target->machine));
    if (!u->lanes || (tc_in_place(u) && dtype_info[u->a].bytes != 2) || n->inner || n->tc ||
        n->items || n->nstage || n->k->sink->nsrc != 1)
        return opt_refuse(n,
                          "TC %s: rows of a value that has a place are for units whose lanes have "
                          "the sums, before any other TC, BIND to items and STAGE",
                          o->axis);
    if (row->reduced || row->scanned || !term->reduced || term->staged || row->extent != u->m ||
        term->extent != u->k || axis[TC_COLUMNS] != along_row(n, column->root) ||
        column->split >= 0 || column->extent < 0 || column->extent % (u->k > u->n ? u->k : u->n))
        return opt_refuse(n,
                          "TC %s: %s takes %d rows of results, all of a row that is a multiple of "
                          "%d (MASK), and %d terms",
                          o->axis, u->name, u->m, u->k > u->n ? u->k : u->n, u->k);
    if (column->extent * u->m / u->lanes > TC_MOST_SUMS)
        return opt_refuse(n, "TC %s: a lane has room for %d sums, the rows have %lld in each",
                          o->axis, TC_MOST_SUMS, (long long)(column->extent * u->m / u->lanes));
    return rows_refused(n, o, u, axis);
}

static const char *opt_inner(Nest *n, const Opt *o, const Tc *u, const int *axis)
{
    int sums;
    const char *why = n->shared ? inner_refused(n, o, u, axis) : NULL;
    if (!why && n->shared)
        why = tc_sums(n, o, u, axis, 1, &sums);
    if (why)
        return why;
    n->inner = u;
    memcpy(n->inner_axis, axis, sizeof n->inner_axis);
    mark_rows(n, u, axis);
    return NULL;
}

static const char *tc_refused(Nest *n, const Opt *o, const Tc *u, const int *axis)
{
    const NestAxis *row = &n->axis[axis[TC_ROWS]], *column = &n->axis[axis[TC_COLUMNS]],
                   *term = &n->axis[axis[TC_TERMS]];
    if (n->target && !tc_has(&n->target->machine, u))
        return opt_refuse(n, "TC %s: this target has no such unit (it has: %s)", o->axis,
                          unit_names(n, &n->target->machine));
    if (n->tc || n->lanes || n->dots || n->row >= 0 || n->nstage || n->k->sink->nsrc != 1)
        return opt_refuse(
            n,
            "TC %s: it goes with no other TC, nor with VECTOR, DOT and STAGE: the columns "
            "are the lanes",
            o->axis);
    if (row->reduced || row->scanned || row->staged || column->reduced || column->scanned ||
        column->staged || !term->reduced || term->staged)
        return opt_refuse(n, "TC %s: it takes (an axis of results; another; a reduced axis)",
                          o->axis);
    if (n->inner && ((tc_in_place(u) ? !tc_alike(u, n->inner) : u != n->inner) ||
                     axis[TC_ROWS] != n->inner_axis[TC_ROWS] || !term->row))
        return opt_refuse(n,
                          "TC %s: what reads the rows of a TC before it is of the same unit and "
                          "rows, its terms are along them",
                          o->axis);
    for (int i = 0; i < n->naxis && n->inner; i++)
        if ((n->axis[i].row || i == n->inner_axis[TC_TERMS]) &&
            (n->axis[i].split >= 0 || n->axis[i].bound || n->axis[i].form != AXIS_LOOP))
            return opt_refuse(n, "TC %s: axis %s has been changed since the TC before", o->axis,
                              n->axis[i].name);
    const int64_t terms = n->inner ? u->k : term->extent;
    if (u->lanes && (row->extent != u->m || column->extent != u->n || terms != u->k))
        return opt_refuse(n,
                          "TC %s: %s takes %d rows, %d columns and %d terms: these axes have %lld, "
                          "%lld and %lld",
                          o->axis, u->name, u->m, u->n, u->k, (long long)row->extent,
                          (long long)column->extent, (long long)term->extent);
    if (row->extent < 2 || row->extent > u->m || column->extent != u->n || terms < u->group ||
        terms > u->k || terms % u->group)
        return opt_refuse(n,
                          "TC %s: %s takes 2 to %d rows, %d columns, and up to %d terms that are a "
                          "multiple of %d: these axes have %lld, %lld and %lld",
                          o->axis, u->name, u->m, u->n, u->k, u->group, (long long)row->extent,
                          (long long)column->extent, (long long)term->extent);
    for (int i = 0; i < n->naxis && u->lanes; i++)
        if (opt_is_item(n, i))
            return opt_refuse(n, "TC %s: BIND %s comes after it", o->axis, n->axis[i].name);
    if (opt_overlaps(n, axis[TC_COLUMNS]))
        return opt_refuse(n, "TC %s: the columns are lanes, which OVERLAP would store in part",
                          o->axis);
    if (column->root == row->root)
        return opt_refuse(n, "TC %s: rows and columns are parts of one axis", o->axis);
    if (tc_rests(u) && n->copies > 1)
        return opt_refuse(n, "TC %s: the unit keeps the rests of one operand: no copies", o->axis);
    if (u->lanes)
        return NULL;
    if (u->n > lanes_most(n->k, n->k->axes[column->root].range, n->target))
        return opt_refuse(n, "TC %s: the columns are no lanes: this target has at most %d", o->axis,
                          n->target->machine.lanes);
    for (int i = 0; i < n->nsplit; i++)
        if (n->split[i].kind == OPT_UNROLL)
            return opt_refuse(n, "TC %s: it does not go with UNROLL", o->axis);
    if (!opt_in_lanes(n, column->root))
        return opt_refuse(n, "TC %s: some operation or access along %s cannot be done in lanes",
                          o->axis, column->name);
    return NULL;
}

/* The terms of several sums: the unit has fragments of one form, which they take in turn. */
static const char *more_refused(Nest *n, const Opt *o, const Tc *u, const int *axis, int nterms)
{
    if (u->lanes)
        return opt_refuse(n, "TC %s: %s takes the terms of one sum", o->axis, u->name);
    for (int i = 1; i < nterms; i++) {
        const NestAxis *first = &n->axis[axis[TC_TERMS]], *x = &n->axis[axis[TC_TERMS + i]];
        for (int j = 0; j < i; j++)
            if (n->axis[axis[TC_TERMS + j]].root == x->root)
                return opt_refuse(n, "TC %s: %s is of the same axis as %s", o->axis, x->name,
                                  n->axis[axis[TC_TERMS + j]].name);
        if (!x->reduced || x->staged || x->extent != first->extent)
            return opt_refuse(n, "TC %s: %s has to be a reduced axis of %lld terms, as %s is",
                              o->axis, x->name, (long long)first->extent, first->name);
    }
    return NULL;
}

/* What fills no block of columns has one of its own, of which only so many lanes are stored: the
 * second operand has zeros behind its last column (tc_layout()). */
static void part_of_columns(Nest *n, int column)
{
    for (int i = 0; i < n->nsplit; i++) {
        Split *s = &n->split[i];
        if (s->inner != column || s->form != REST_LOOP)
            continue;
        s->form = REST_LANES;
        s->lanes = n->lanes;
        while (s->lanes > 8 && s->lanes / 2 >= s->remaining)
            s->lanes /= 2;
    }
}

const char *opt_tc(Nest *n, const Opt *o)
{
    TcText text;
    int axis[TC_NAMES], sums = 0;
    const Machine any = {.units = UINT64_MAX, .own_units = n->k->units};
    bool good = tc_read(n->k->units, o->axis, &text);
    if (!text.unit)
        return opt_refuse(n, "TC %s: there is no such unit: there are %s", o->axis,
                          unit_names(n, &any));
    if (!good)
        return opt_refuse(n, "TC %s: TC %s (rows; columns; terms) is wanted, an axis each", o->axis,
                          text.unit->name);
    const Tc *u = text.unit;
    const int nterms = text.n - TC_TERMS;
    for (int i = 0; i < text.n; i++) {
        axis[i] = nest_find(n, text.axis[i], (size_t)text.length[i]);
        if (axis[i] < 0)
            return opt_no_axis(n, "TC: ", text.axis[i], (size_t)text.length[i]);
    }
    const char *why = nterms > 1 ? more_refused(n, o, u, axis, nterms) : NULL;
    if (why)
        return why;
    if (n->axis[axis[TC_COLUMNS]].staged)
        return opt_inner(n, o, u, axis);
    why = n->shared ? tc_refused(n, o, u, axis) : NULL;
    if (!why && n->shared)
        why = tc_sums(n, o, u, axis, nterms, &sums);
    if (why)
        return why;
    Nest tried = *n;
    memcpy(tried.tc_axis, axis, sizeof tried.tc_axis);
    int64_t fragments = fragments_at_once(&tried, sums);
    int64_t registers =
        u->lanes ? sat_mul(copies_of_sums(n, u, axis) * sums, tc_per_lane(u, TC_TERMS)) : 0;
    if (registers > TC_MOST_SUMS)
        return opt_refuse(
            n, "TC %s: the copies have %lld sums in each lane: %d have room in registers", o->axis,
            (long long)registers, TC_MOST_SUMS);
    if (!u->lanes && fragments > u->tiles)
        return opt_refuse(
            n,
            "TC %s: the copies need %lld fragments at once, %s has %d: fewer UPCASTs, or "
            "another order of them",
            o->axis, (long long)fragments, u->name, u->tiles);
    n->tc = u;
    memcpy(n->tc_axis, axis, sizeof n->tc_axis);
    n->ntc_more = nterms - 1;
    memcpy(n->tc_more, axis + TC_AXES, sizeof n->tc_more);
    n->lanes = u->lanes ? 0 : u->n;
    n->items = u->lanes;
    for (int i = 0; i < n->naxis && n->inner; i++)
        if (n->axis[i].row || i == n->inner_axis[TC_TERMS])
            n->axis[i].form = AXIS_UNIT;
    if (!u->lanes)
        part_of_columns(n, axis[TC_COLUMNS]);
    for (int i = 0; i < text.n; i++)
        n->axis[axis[i]].form = i == TC_COLUMNS && !u->lanes ? AXIS_LANES : AXIS_UNIT;
    return NULL;
}
