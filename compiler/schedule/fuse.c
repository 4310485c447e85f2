/* fuse.c - decide what is stored.  Everything not stored is recomputed inside each kernel that
 * reads it; so a value is stored where that costs more than a kernel of its own, a write and its
 * reads (region.c). Whatever that costs, these are stored:
 *
 *   - what a control step, a library kernel or the caller reads;
 *   - what is written in parts or in place;
 *   - a running sum, whose loop is one over its own results, and a reduce that one reads;
 *   - what is read beyond its edges, for its buffer gets a halo;
 *   - a sum over rows whose readers do not go along the rows: no loop nest has both;
 *   - what would make a kernel huge.
 *
 * One forward walk: when a node is visited, its sources are decided and its consumers known. */
#include <math.h>

#include "fusion.h"
#include "tc.h"

/* Of one kernel: expressions are lowered by recursion. */

void info_grow(Sched *s, uint32_t chunk)
{
    while (s->ninfo <= chunk)
        vec_push(s->scratch, s->info, s->ninfo, NEWN(s->scratch, Info, INFO_CHUNK));
}

/* A known dim or coordinate: nothing is to be decided about it. */
static bool is_known(const Node *n)
{
    return n->dtype == INGOT_INDEX && n->op == OP_CONST;
}

bool is_leaf(Sched *s, Node *n)
{
    Info *i = info_of(s, n);
    return i->buffer || op_info[n->op].cls == LEAF || n->op == OP_PROJ || i->foldable;
}

bool is_computed(Sched *s, Node *n)
{
    return !info_of(s, n)->stored && !is_leaf(s, n);
}

/* A part of a constant that others multiply: a kernel of its own can read it in whatever layout
 * those want (share_weights.c), where that takes little beside reading all constants, as a run
 * does. */
static bool is_looked_up(Sched *s, Node *n)
{
    const Target *t = s->target;
    RegionWork r = region_of(s, n);
    return r.shared > 0 && cost_region(&r, t) + cost_stored(n, t) <=
                               cost_bytes(s->constants, s->constants, t) / LITTLE;
}

/* An operand of a matrix unit whose items copy it as it lies: so it has to lie somewhere. */
static bool is_copied(Sched *s, Node *n, Node *const *uses)
{
    bool lanes = false;
    for (const Tc *u = NULL; (u = tc_next(&s->target->machine, u));)
        lanes |= u->lanes > 0;
    bool wider =
        n->op == OP_CAST && dtype_info[n->dtype].bytes >= dtype_info[n->src[0]->dtype].bytes;
    return lanes && dtype_is_float(n->dtype) && !wider && !is_move(n) && is_multiplied(s, n, uses);
}

enum { MOVE_OPS = 4 }; /* that take the time of a store or a load, and its part of a loop */

/* Is a row of it computed once, into a place of the kernel that stays near, rather than in each
 * loop over the row that reads it? */
static bool stage_pays(Sched *s, Node *n)
{
    const Info *i = info_of(s, n);
    const Target *t = s->target;
    int64_t size;
    double row = dtype_info[n->dtype].bytes;
    for (int d = 0; d < n->rank; d++) {
        if (!idx_value(n->shape[d], &size))
            return false;
        row *= i->rows >> d & 1 ? (double)size : 1;
    }
    const int readers = i->nuse; /* d * d is one */
    double operation = node_elements(n) / t->machine.rate[UNIT_VECTOR], moves = 1 + readers,
           again = (readers - 1) * i->along * operation,
           bytes = cost_bytes(moves * node_bytes(n), row, t);
    return is_trailing(n, i->rows) && 2 * row <= t->machine.far &&
           moves * MOVE_OPS * operation < again && bytes < again;
}

/* Is it looked up by what a run says, in a table, and computed from what is found there? */
static bool is_from_table(Sched *s, Node *n)
{
    while (is_computed(s, n) && n->op != OP_GATHER && (op_is_alu(n->op) || is_move(n)))
        n = n->src[0];
    return n->op == OP_GATHER && n->src[0]->rank == 1 && !info_of(s, n->src[1])->constant;
}

/* Windows that are made of less, each of whose elements is read about once, as where they are
 * folded into what they are windows of (the gradient of a pool): checks of edges cost less than to
 * write and read it. Bytes that are only widened are no more than they were; and lanes cannot look
 * numbers up: what did that in each window would have none. */
static bool is_spread(Sched *s, Node *n, Node *const *uses)
{
    enum { TIMES = 2 };
    if (info_of(s, n)->has_reduce || (s->target->machine.lanes && is_from_table(s, n)))
        return false;
    const RegionWork r = region_of(s, n);
    const double bytes = node_bytes(keeps_narrow(s, n) ? narrow_side(s, n) : n);
    return TIMES * r.bytes <= bytes && readers_of(s, n, uses).times < TIMES;
}

/* Bytes of a constant that lies packed: whoever reads them unpacks those that it needs. */
static bool is_unpacked(const Node *n, const Info *i)
{
    return i->constant && i->leaves > 0 && !i->has_reduce && dtype_info[n->dtype].bytes == 1;
}

bool is_made_of(Sched *s, Node *x, const Node *n, Node *const *uses, bool stored)
{
    enum { MOST = 1 << 10 };
    Node *node[MOST] = {x};
    Map seen = {0};
    int count = 1;
    bool found = false;
    for (int i = 0; i < count && !found; i++) {
        if (stored && must_store(s, node[i], uses)) {
            found = is_made_of(s, node[i], n, uses, false);
            continue;
        }
        for (uint32_t j = 0; j < node[i]->nsrc && !found; j++) {
            Node *of = node[i]->src[j];
            found = of == n && !stored;
            if (count == MOST || of->dtype == INGOT_INDEX || of == n ||
                info_of(s, of)->order < info_of(s, n)->order ||
                map_get(&seen, (uint64_t)of->id + 1))
                continue;
            map_put(&seen, (uint64_t)of->id + 1, (void *)1);
            node[count++] = of;
        }
    }
    map_free(&seen);
    return found;
}

/* A sum that goes on beside what is made of it, as residual sums do: norms read its rows, and the
 * next sum reads it again, once other devices have sent what they made of the norms. If none is
 * stored, all that come later compute it. Not what is made of a single value that is stored (less a
 * mean of it): to read that is no more. */
static bool goes_on(Sched *s, Node *n, Node *const *uses)
{
    const double more = 1.5;
    const Info *i = info_of(s, n);
    bool later = false;
    if (!i->has_reduce && region_of(s, n).bytes < more * node_bytes(n))
        return false;
    for (int u = 0; u < i->nuse && !later && i->nuse > 1; u++) {
        const Node *t = uses[i->iuse + u];
        for (uint32_t j = 0; j < t->nsrc && op_is_alu(t->op) && !later; j++)
            later = t->src[j] != n && t->src[j]->dtype != INGOT_INDEX &&
                    is_made_of(s, t->src[j], n, uses, true);
    }
    return later;
}

/* The one value of a row that t, an element of it, is made of beside what is stored, no more of
 * that than t itself. NULL: there is more. */
static Node *one_of_row(Sched *s, Node *t)
{
    const unsigned rows = info_of(s, t)->rows;
    Node *one = NULL;
    double bytes = 0;
    for (uint32_t i = 0; i < t->nsrc; i++) {
        Node *x = t->src[i];
        if (x->dtype == INGOT_INDEX || uniform(x))
            continue;
        Node *stored = x; /* which may be widened */
        while (stored->op == OP_CAST && is_computed(s, stored))
            stored = stored->src[0];
        if (!is_computed(s, stored))
            bytes += node_bytes(x);
        else if (one || x->op != OP_EXPAND || expanded_axes(x) != rows)
            return NULL;
        else
            one = x->src[0];
    }
    return s->target->gpu && op_is_alu(t->op) && rows && one && one->op == OP_REDUCE &&
                   bytes <= node_bytes(t)
               ? one
               : NULL;
}

/* A GPU's kernels that read t read the row and that value, if no cache has t anyway. */
static Node *reduced_of_row(Sched *s, Node *t)
{
    return node_bytes(t) > s->target->machine.level[0].bytes ? one_of_row(s, t) : NULL;
}

/* It is, or is made of, what the kernel that goes along the row stores for readers that do not. */
static bool leaves_to_row(Sched *s, Node *n, Node *const *uses)
{
    Node *one = n->op == OP_REDUCE ? n : one_of_row(s, n);
    if (!one || !is_made_by_row(s, one, uses))
        return false;
    info_of(s, one)->of_row = true;
    return true;
}

/* Why n is stored; NULL: its readers compute it. */
static const char *should_store(Sched *s, Node *const *order, int norder, Node *n,
                                Node *const *uses)
{
    Info *i = info_of(s, n);
    if (is_leaf(s, n) || n->dtype == INGOT_INDEX)
        return NULL;
    const char *must = must_store(s, n, uses);
    if (must)
        return must;
    const char *looked_up = "it is looked up in a constant that others read too: one kernel alone "
                            "reads it there";
    if (i->widened && !i->constant && is_looked_up(s, n) && readers_of(s, n, uses).kernels > 1)
        return looked_up;
    if (is_found_vector(s, n, uses))
        return "the vector of products with weights, which is looked up once";
    if (i->kept)
        return "rows that are made again have one of it";
    if (i->widened || i->in_rows || is_unpacked(n, i))
        return NULL;
    if (i->depth > DEPTH_ANY)
        return "one kernel would become huge";
    if ((i->loads > MAX_BUFFERS || i->cost > MAX_NODES) && !extent_fits(s, n))
        return "one kernel would become huge";
    /* what is padded is stored without its padding: readers get a halo (layouts.c) */
    for (int u = 0; u < i->nuse; u++)
        if (uses[i->iuse + u]->op == OP_PAD && (i->has_reduce || i->cost > 0) && i->loads &&
            !is_spread(s, n, uses))
            return "it is read beyond its edges: its buffer gets a halo";
    if ((!i->cost && !i->has_reduce) || (is_move(n) && node_bytes(n) > node_bytes(n->src[0])))
        return NULL;
    if (stage_rows(s, n, norder, order, uses))
        return NULL;
    if (is_inner_sum(s, n, uses) || is_vector_of_sums(s, n, uses) || is_row_of_few(s, n, uses) ||
        is_turned_sum(s, n, uses))
        return NULL;
    Readers r = readers_of(s, n, uses);
    if (i->has_reduce && i->rows && !r.rows)
        return leaves_to_row(s, n, uses)
                   ? NULL
                   : "a reduce over rows, with readers that do not go along the rows";
    i->staged =
        !s->target->gpu && r.rows && i->rows && r.times > 1 && stage_pays(s, n) ? i->rows : 0;
    if (i->staged)
        r.times = 1;
    if (r.reduced && !(r.rows && i->rows) && is_for_groups(s, n))
        return "a sum of products inside of another reduce";
    if (is_copied(s, n, uses))
        return "a matrix unit multiplies it";
    bool again = r.times > 1 || r.kernels > 1 || (i->has_reduce && r.reduced);
    if (s->target->gpu && again && goes_on(s, n, uses))
        return "what is made of it is added to it";
    if (s->target->gpu && r.rows) /* a group goes along the row once its items share its sums */
        again = false;
    if (again && !fusion_of_value(s, n, uses, &r, &i->cost_of))
        return n->op == OP_REDUCE && leaves_to_row(s, n, uses) ? NULL
               : i->has_reduce ? "a reduce that would be computed again where it is read"
                               : "computing it again where it is read costs more than memory";
    if (r.kernels > 1 && is_looked_up(s, n))
        return looked_up;
    const bool of_row = s->target->gpu && r.rows && i->rows; /* its sums are those of the row */
    for (int u = 0; u < i->nuse && i->has_reduce && !of_row; u++)
        if (!fusion_of_company(s, n, uses[i->iuse + u], &i->cost_of))
            return "a sum of products whose reader has another reduce";
    return NULL;
}

/* --fuse all: computed again wherever it is read, if a kernel can be that large; a reduce too, as
 * long as recompute_limit.c finds that bearable. */
static bool stays_inlined(Sched *s, Node *n, Node *const *uses)
{
    Info *i = info_of(s, n);
    if (i->depth > DEPTH_ANY || !extent_fits(s, n))
        return false;
    for (int u = 0; u < i->nuse && i->has_reduce; u++)
        if (uses[i->iuse + u]->op == OP_CONCAT) /* there it takes a kernel in any case */
            return false;
    i->spared = true;
    return true;
}

/* The same, after what the file or the preset says. */
static const char *decide(Sched *s, Node *const *order, int norder, Node *n, Node *const *uses)
{
    const char *why = should_store(s, order, norder, n, uses);
    const Info *i = info_of(s, n);
    const ValueChoice *given = value_given(s->plan, n);
    const Said file = !given || !given->stored ? UNSAID
                      : given->stored == YES   ? NO
                                               : YES,
               wanted = fusion_wanted(s->plan, file);
    if (wanted == UNSAID || is_leaf(s, n) || n->dtype == INGOT_INDEX || i->constant)
        return why;
    if (wanted == NO && file)
        return why ? why : "the plan's file says so";
    const char *must = must_store(s, n, uses);
    if (wanted == YES && file) {
        if (must)
            sched_error(s->plan, given->line, "this value has to be stored: %s", must);
        return NULL;
    }
    if (must)
        return why;
    bool computes = op_is_alu(n->op) || n->op == OP_REDUCE;
    if (wanted == NO)
        return computes && !i->widened && !is_term(s, n, uses) ? "nothing is fused" : why;
    return why && !stays_inlined(s, n, uses) ? why : NULL;
}

/* Memory moves by lines. */
static double lines(const Sched *s, double bytes)
{
    return ceil(bytes / s->target->machine.line);
}

/* Whether n is evaluated when the model is compiled, or stored wider than it is; compute: more than
 * movement is saved. Readers see through movement; steps that read memory do not. Of what is looked
 * up, few rows are computed, and all would be stored. */
static void analyse_constant(Sched *s, Node *n, bool compute)
{
    Info *i = info_of(s, n);
    const bool stored = i->root || n->op == OP_KEEP;
    bool may_fold = i->constant && (compute || stored) && i->leaves > 0 && n->op != OP_CONST &&
                    n->dtype != INGOT_INDEX;
    const double bytes = may_fold ? node_bytes(n) : 0;
    may_fold &= bytes > 0;
    bool shrinks = may_fold && lines(s, bytes) <= lines(s, i->leaves);
    const bool rows = i->looked_up && i->cost < COST_FUNCTION;
    bool unpacked = may_fold && !i->has_reduce && (rows || unpacking_pays(s, n, bytes, i->leaves));
    i->foldable =
        may_fold && (shrinks || ((!unpacked || 2 * bytes <= s->target->machine.level[0].bytes) &&
                                 fold_pays(s, n, bytes, i->leaves)));
    i->widened = !i->has_reduce && (is_widened(s, n, i->cost) || (unpacked && !i->foldable));
    if (i->foldable)
        i->why = shrinks ? "a constant, and no larger than what it is made of"
                         : "a small constant that takes longer to compute than to read";
    if (i->foldable && bytes < i->leaves)
        i->leaves = bytes; /* what is made of it is compared with it */
}

/* What the caller, an iteration or a branch gives. */
static bool is_given(const Node *n)
{
    return n->op == OP_INPUT || n->op == OP_STATE || n->op == OP_PARAM ||
           op_info[n->op].cls == CONTROL;
}

/* Depends on nothing but constants. */
static bool of_constants(Sched *s, const Node *n)
{
    bool yes = !is_given(n) && n->op != OP_VAR && n->op != OP_RANGE;
    for (uint32_t j = 0; j < n->nsrc && yes; j++)
        yes = is_known(n->src[j]) || info_of(s, n->src[j])->constant;
    return yes;
}

/* On nothing but these and sizes. */
static bool is_placeless(Sched *s, const Node *n)
{
    bool yes = !is_given(n) && n->op != OP_UPDATE;
    for (uint32_t j = 0; j < n->nsrc && yes; j++)
        yes = n->src[j]->dtype == INGOT_INDEX || info_of(s, n->src[j])->placeless;
    return yes;
}

/* What n's fused expression costs, given that its sources are decided. */
static void analyse(Sched *s, Node *n)
{
    Info *i = info_of(s, n);
    int cost = op_info[n->op].cls == REDUCE ? 0 : op_info[n->op].cost, loads = 0, depth = 0;
    unsigned pending = 0, rows = 0;
    if (n->op == OP_WHERE && info_of(s, n->src[0])->constant && !info_of(s, n->src[0])->leaves)
        cost = 0; /* inside or outside of a padded tensor: a question of coordinates */
    int along = cost;
    bool reduce = n->op == OP_REDUCE;
    double leaves = n->op == OP_DATA ? node_bytes(n) : 0;
    bool integers = !dtype_is_float(n->dtype) && op_is_alu(n->op); /* it may be such itself */
    bool compute = i->cut || cost > 0 || reduce || n->op == OP_SCAN || n->op == OP_GATHER ||
                   n->op == OP_UPDATE || n->op == OP_CONCAT;
    for (uint32_t j = 0; j < n->nsrc; j++) {
        if (is_known(n->src[j]))
            continue;
        Info *f = info_of(s, n->src[j]);
        leaves += f->leaves;
        if (n->src[j]->dtype == INGOT_INDEX)
            continue;
        if (n->op == OP_GATHER && j > 0)
            cost += index_cost(s, n->src[j]);
        /* another kernel than the one that goes along its row reads it from memory */
        const bool of_row = f->of_row && (n->op == OP_RESHAPE ||
                                          (n->op == OP_EXPAND && expanded_axes(n) != f->pending));
        if (f->stored || of_row || is_leaf(s, n->src[j])) {
            loads += n->src[j]->op != OP_CONST && n->src[j]->op != OP_IOTA;
            continue;
        }
        /* of what is made of coordinates, a part is left in the loops that read it */
        bool coordinates = n->op == OP_GATHER && j > 0 && !f->loads;
        coordinates |= f->constant ? !f->leaves && !dtype_is_float(n->src[j]->dtype)
                                   : coord_ops(s, n->src[j]) != NULL;
        cost += !coordinates ? f->cost : integers ? 0 : coord_cost(s, n->src[j]);
        along += coordinates ? 0 : f->along;
        pending |= f->pending;
        if (f->rows)
            rows = !rows || rows == f->rows ? f->rows : ~0u;
        loads += f->loads;
        depth = f->depth > depth ? f->depth : depth;
        reduce |= f->has_reduce;
        compute |= f->constant && f->cost > 0;
    }
    if (n->op == OP_EXPAND && pending && expanded_axes(n) == pending) {
        rows = pending;
        pending = along = 0;
    } else if (n->op == OP_REDUCE) {
        pending |= reduce_axes(n);
        rows = 0;
    } else if (!op_is_alu(n->op)) { /* other coordinates: rows are rows no more */
        rows = rows ? ~0u : 0;
        pending = 0;
    }
    i->pending = pending;
    i->rows = rows;
    i->leaves = leaves;
    enum { MANY = 1 << 20 }; /* what is shared counts for each use: it may double with each node */
    i->cost = cost > MANY ? MANY : cost;
    i->along = along > MANY ? MANY : along;
    i->loads = loads > MANY ? MANY : loads;
    i->most = extent_most(s, n);
    i->depth = depth + 1;
    i->has_reduce = reduce;
    analyse_constant(s, n, compute);
}

/* What is stored, and of what could have been: reduces, what several readers compute, that of which
 * another is stored in its place (which would be in memory when a file is read, and tell
 * otherwise), and what the file speaks of. */
static void record(Sched *s, Node *n)
{
    const Info *i = info_of(s, n);
    bool choice =
        n->op == OP_REDUCE || (op_is_alu(n->op) && i->nuse > 1 && i->cost > 0 && i->loads);
    const ValueChoice *given = value_given(s->plan, n);
    choice |= i->instead || (given && given->stored);
    if (!s->plan->values || op_info[n->op].cls == CONTROL || n->dtype == INGOT_INDEX || i->constant)
        return;
    if (i->beside && !i->in_rows) /* the kernel that goes along its row stores it again */
        return;
    if (!i->stored && !(choice && i->needed))
        return;
    ValueChoice *c = value_record(s->plan, n);
    c->stored = i->stored ? YES : NO;
    c->stores = i->cost_of;
}

/* Not a step that reads memory. */
static bool is_kernel(Node *n)
{
    return op_info[n->op].cls != CONTROL && op_info[n->op].cls != LEAF;
}

/* Now n is stored: what up to position `last` is made of it costs less. */
static void store_as(Sched *s, Node *const *order, Node *n, int last, const char *why)
{
    Info *i = info_of(s, n);
    i->stored = !is_leaf(s, n);
    i->spared = false;
    i->why = why;
    for (int j = i->order + 1; j <= last; j++)
        analyse(s, order[j]);
}

/* A kernel that stores t repeats more than it should: values of it get kernels of their own, which
 * may do so again. */
static void bound_repeats(Sched *s, Node *const *order, Node *t, Node *const *uses)
{
    Node **kernel = NULL, *root = t;
    int n = 0;
    vec_push(s->arena, kernel, n, root);
    while (n) {
        Node *apart = repeats_too_much(s, kernel[n - 1], uses);
        if (!apart) {
            n--;
            continue;
        }
        store_as(s, order, apart, info_of(s, t)->order,
                 "computing it again where it is read would repeat too much of the network");
        vec_push(s->arena, kernel, n, apart);
    }
}

/* Of the computed operands of a term that which is made of most. */
static Node *largest_operand(Sched *s, Node *term)
{
    Node *most = NULL;
    for (uint32_t j = 0; j < term->nsrc; j++) {
        Node *x = term->src[j];
        const Info *i = info_of(s, x), *m = most ? info_of(s, most) : NULL;
        if (is_computed(s, x) && i->loads &&
            (!m || i->has_reduce > m->has_reduce ||
             (i->has_reduce == m->has_reduce && i->cost > m->cost)))
            most = x;
    }
    return most;
}

/* What t is made of fits into one kernel each, but not together: the largest is stored. */
static void bound_size(Sched *s, Node *const *order, Node *t)
{
    while (region_to_fit(s, t).huge) {
        Node *x = largest_operand(s, t->op == OP_REDUCE ? t->src[0] : t);
        x = x ? before_moves(s, x) : NULL;
        if (!x || info_of(s, x)->stored)
            return;
        store_as(s, order, x, info_of(s, t)->order, "one kernel would become huge");
    }
}

/* What is stored where t would be: what is narrow; what t repeats the elements of; an operand of a
 * term of a sum. */
static Node *stored_for(Sched *s, Node *t, Node *const *uses)
{
    if (info_of(s, t)->root || info_of(s, t)->kept)
        return t;
    if (keeps_narrow(s, t) && narrow_side(s, t) != t)
        return narrow_side(s, t);
    const ValueChoice *given = value_given(s->plan, t);
    if (given && given->stored == YES) /* what the file says is said of no other */
        return t;
    if (reduced_of_row(s, t))
        return reduced_of_row(s, t);
    Node *operand = is_term(s, t, uses) ? largest_operand(s, t) : NULL,
         *least = before_moves(s, operand ? operand : t);
    given = value_given(s->plan, least);
    const bool recomputed = given && given->stored == NO; /* the file says so */
    return !recomputed && (operand || node_bytes(least) < node_bytes(t)) ? least : t;
}

/* Is t, at this position, stored, or else what it is made of? */
static void settle(Sched *s, Node *const *order, int norder, int at, Node *const *uses)
{
    Node *t = order[at];
    for (bool again = true; again;) {
        const char *why = decide(s, order, norder, t, uses);
        if (!why) {
            info_of(s, t)->stored = false;
            return;
        }
        Node *n = stored_for(s, t, uses);
        info_of(s, t)->instead |= n != t;
        again = n != t && is_term(s, t, uses); /* another operand may be too much, too */
        store_as(s, order, n, at, why);
        if (values_preset(s->plan) == PRESET_ALL && is_kernel(n)) {
            bound_size(s, order, n);
            bound_repeats(s, order, n, uses);
        }
    }
}

/* Whether x is a value of the block: its consumers are counted. */
static bool is_inside(const Info *f, const Node *x, int n, Node *const *order)
{
    return f->order < n && order[f->order] == x;
}

/* The consumers of each node, each named once: Info.iuse, Info.nuse. */
static Node **find_uses(Sched *s, int n, Node *const *order)
{
    int total = 0;
    for (int i = 0; i < n; i++) {
        Info *f = info_of(s, order[i]);
        f->nuse = 0;
        f->order = i;
    }
    Node **uses = NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++) {
            Node *t = order[i];
            for (uint32_t j = 0; j < t->nsrc; j++) {
                Node *x = t->src[j];
                Info *f = is_known(x) ? NULL : info_of(s, x);
                if (!f || (f->nuse && f->reader == i) || !is_inside(f, x, n, order))
                    continue;
                if (pass)
                    uses[f->iuse + f->nuse] = t;
                f->reader = i;
                f->nuse++;
                total += !pass;
            }
        }
        if (pass)
            return uses;
        uses = NEWN(s->scratch, Node *, total + 1);
        for (int i = 0, at = 0; i < n; i++) {
            Info *f = info_of(s, order[i]);
            f->iuse = at;
            at += f->nuse;
            f->nuse = 0;
        }
    }
    return uses;
}

/* A constant that is read in slices alone, no more of it than there is, lies in memory as these:
 * each in a layout of its own, and what none of them has is nowhere.
 *
 *     bytes [rows, blocks, 18] of a file:  [.., 0:2] the scale of 32 numbers, [.., 2:18] these */
static void cut(Sched *s, Node *data, Node *const *slice, int n)
{
    double bytes = 0;
    for (int i = 0; i < n; i++) {
        if (slice[i]->op != OP_SHRINK || slice[i]->src[0] != data)
            return;
        for (uint32_t j = 1; j < slice[i]->nsrc; j++)
            if (!is_known(slice[i]->src[j]))
                return;
        bytes += node_bytes(slice[i]);
    }
    for (int i = 0; i < n && bytes <= node_bytes(data); i++)
        info_of(s, slice[i])->cut = true;
}

/* What is known of constants before anything is decided. */
static void find_constants(Sched *s, int n, Node *const *order, Node *const *uses)
{
    for (int i = 0; i < n; i++) {
        Info *x = info_of(s, order[i]);
        x->constant = of_constants(s, order[i]);
        x->placeless = is_placeless(s, order[i]);
        if (order[i]->op == OP_DATA && !x->root)
            cut(s, order[i], uses + x->iuse, x->nuse);
    }
    s->constants = 0;
    for (int i = 0; i < n; i++) {
        const Info *x = info_of(s, order[i]);
        const bool apart = order[i]->op == OP_DATA && x->nuse && info_of(s, uses[x->iuse])->cut;
        s->constants += x->cut || (order[i]->op == OP_DATA && !apart) ? node_bytes(order[i]) : 0;
    }
    for (int i = n; i-- > 0;) { /* of what is made of a constant alone, element by element */
        Info *x = info_of(s, order[i]);
        const Node *user = x->nuse == 1 ? uses[x->iuse] : NULL;
        const bool same = user && info_of(s, user)->constant && user->op != OP_REDUCE;
        x->several = x->nuse > 1 || (same && info_of(s, user)->several);
        x->looked_up = x->constant && x->nuse && !x->root;
        for (int u = 0; u < x->nuse && x->looked_up; u++) {
            const Node *t = uses[x->iuse + u];
            const Info *of = info_of(s, t);
            x->looked_up = t->op == OP_GATHER ? t->src[0] == order[i] && !of->constant
                                              : of->constant && of->looked_up;
        }
    }
}

/* A row of which a part is stored after all, or whose sum nobody needs, has no kernel that makes
 * all of it: what it has one of is stored by one of its own. */
static void whole_rows(Sched *s, int n, Node *const *order)
{
    for (int i = 0; i < n; i++) {
        const Info *x = info_of(s, order[i]);
        if (x->row_of && x->stored && !x->beside)
            info_of(s, x->row_of)->by_blocks = false;
    }
    for (int i = 0; i < n; i++) {
        Info *x = info_of(s, order[i]);
        const Info *sum = x->beside ? info_of(s, x->beside) : NULL;
        if (sum && (!sum->by_blocks || !sum->needed))
            x->beside = NULL;
    }
}

void fuse(Sched *s, int n, Node **order)
{
    const bool bounded = values_preset(s->plan) == PRESET_ALL;
    s->operations = s->repeated = 0;
    for (int i = 0; i < n; i++) {
        Info *f = info_of(s, order[i]);
        f->needed = f->in_rows = f->sums_rows = f->by_blocks = f->spared = f->once = f->instead =
            false;
        f->sums_again = f->again = f->kept = f->of_row = false;
        f->row_of = f->beside = NULL;
        f->cut = f->several = f->looked_up = false;
    }
    Node *const *uses = find_uses(s, n, order);
    find_constants(s, n, order, uses);
    for (int i = 0; i < n; i++) {
        analyse(s, order[i]);
        if (is_known(order[i]))
            continue;
        if (bounded)
            s->operations += node_operations(s, order[i]);
        settle(s, order, n, i, uses);
    }
    /* what only foldable constants read is evaluated with them, at compile time */
    for (int i = n; i-- > 0;) {
        Info *f = info_of(s, order[i]);
        f->needed |= f->root;
        f->stored &= f->needed;
        const uint32_t read = f->needed && !f->foldable ? order[i]->nsrc : 0;
        for (uint32_t j = 0; j < read; j++)
            info_of(s, order[i]->src[j])->needed = true;
    }
    whole_rows(s, n, order);
    store_beside_rows(s, n, order, uses);
    for (int i = 0; i < n; i++) {
        if (is_known(order[i]))
            continue;
        Info *f = info_of(s, order[i]);
        bool folded = f->foldable && f->needed,
             again = !f->stored && f->needed && f->cost_of.together > 0 && !is_leaf(s, order[i]);
        record(s, order[i]);
        if (!folded && !f->stored && !again)
            continue;
        plan_note(s->plan,
                  (Note){.pass = "fuse",
                         .what = folded  ? "folded"
                                 : again ? "not stored"
                                         : "stored",
                         .why = again ? "computing it where it is read costs less than a kernel, a "
                                        "write and the reads"
                                      : f->why,
                         .node = order[i],
                         .operations = f->cost,
                         .bytes = (int64_t)node_bytes(order[i]),
                         .cost = folded ? (Fusion){0, 0} : f->cost_of});
    }
}
