/* merge.c - kernels that read the same operand in the same loops become one with several stores.
 *
 * The query, key and value projections of attention are three contractions of one matrix: in one
 * kernel each element of it is loaded once for all three, and their sums fill the registers
 * together.  Elementwise kernels over one operand read it once.  Which loop of one is which of the
 * other follows from the accesses to that operand, whatever order their results are stored in.
 *
 * That is fusion sideways, as fuse.c is along the edges of the graph, and fusion.c answers both:
 * this file says which kernels are candidates, what forbids it, and how two become one.  It comes
 * after lowering since three things are known by then only: which loops two kernels have in common
 * (coordinates that were simplified), what runs between them, and in which buffers their results
 * lie.
 *
 * What a kernel of products writes and another one rounds to narrower numbers, element by element,
 * both do at once (carry()): the parts that a matrix unit multiplies next.
 *
 *     x = products; h = bf16(x); l = bf16(x - h)     as one kernel, which stores x if others read
 * it
 *
 * What is legal is more than what pays: kernels that do not wait for each other and store results
 * of the same extents may share their loops over these, whatever they read and reduce (--fuse
 * all). */
#include <string.h>

#include "fusion.h"
#include "kernel.h"
#include "tc.h"

enum {
    REACH = 16,     /* how far behind a kernel others are looked for */
    MAX_STORES = 3, /* sums whose tiles are to fit in the registers together */
    MAX_AXES = 4 * INGOT_MAX_RANK,
    /* of a kernel that is merged for the sake of it */
    ALL_STORES = 8,
    ALL_AXES = 24
};

typedef struct {
    Arena *a;
    const Step *into, *from;
    int to[MAX_AXES];     /* axis of `from` -> axis of `into`, or -1: a reduce of its own */
    bool taken[MAX_AXES]; /* axes of `into` */
    int operand_bytes;    /* of an element of what both read */
    int ncarried;         /* what `into` stores and `from` loads, and where */
    Node *carried[ALL_STORES];
    const Buffer *where[ALL_STORES];
} Match;

/* ---- what may be exchanged ------------------------------------------------------------------- */

/* Must s run before `late`? */
static bool ordered(const Step *s, const Step *late)
{
    if (s->kind != STEP_KERNEL && s->kind != STEP_COPY)
        return true;
    for (int i = 0; i < s->nbuf; i++)
        for (int j = 0; j < late->nbuf; j++)
            if (buffer_root(s->bufs[i]) == buffer_root(late->bufs[j]) &&
                ((s->kind == STEP_COPY ? !i : s->kernel->args[i].written) ||
                 late->kernel->args[j].written))
                return true;
    return false;
}

/* ---- which loop is which --------------------------------------------------------------------- */

static int axis_of(const Kernel *k, const Node *range)
{
    int i = 0;
    while (i < k->naxis && k->axes[i].range != range)
        i++;
    return i;
}

static bool pair_axes(Match *m, int from, int into)
{
    const Axis *a = &m->into->kernel->axes[into], *b = &m->from->kernel->axes[from];
    if (m->to[from] >= 0)
        return m->to[from] == into;
    int64_t n, o;
    bool same = idx_value(a->range->src[0], &n) && idx_value(b->range->src[0], &o)
                    ? n == o
                    : a->range->src[0]->op == OP_VAR && b->range->src[0]->op == OP_VAR &&
                          a->range->src[0]->arg.i == b->range->src[0]->arg.i;
    if (m->taken[into] || a->reduced != b->reduced || a->staged != b->staged || !same)
        return false;
    m->to[from] = into;
    m->taken[into] = true;
    return true;
}

/* Are the expressions equal, if their ranges are the same? */
static bool unify(Match *m, const Node *into, const Node *from)
{
    if (into->op != from->op || into->nsrc != from->nsrc || into->dtype != from->dtype)
        return false;
    if (into->op == OP_RANGE)
        return pair_axes(m, axis_of(m->from->kernel, from), axis_of(m->into->kernel, into));
    if (into->op == OP_BUFFER)
        return m->into->bufs[into->arg.i] == m->from->bufs[from->arg.i];
    if (into->arg.bits != from->arg.bits)
        return false;
    for (uint32_t i = 0; i < into->nsrc; i++)
        if (!unify(m, into->src[i], from->src[i]))
            return false;
    return true;
}

static int collect(Arena *a, const Kernel *k, int op, Node ***out)
{
    int n, count = 0;
    Node *const *order = kernel_nodes(k, &n);
    *out = NEWN(a, Node *, n);
    for (int i = 0; i < n; i++)
        if ((int)order[i]->op == op)
            (*out)[count++] = order[i];
    return count;
}

/* By id: equal for expressions that are equal but for their ranges, and for which buffers they
 * read. */
static uint64_t *forms_of(Arena *a, const Kernel *k)
{
    int n;
    Node *const *order = kernel_nodes(k, &n);
    uint64_t *form = NEWN(a, uint64_t, k->c->nnode);
    for (int i = 0; i < n; i++) {
        const Node *t = order[i];
        const bool range = t->op == OP_RANGE, any = range || t->op == OP_BUFFER;
        const uint64_t own[] = {(uint64_t)t->op << 8 | t->dtype, t->nsrc, any ? 0 : t->arg.bits};
        uint64_t h = hash_bytes(0, own, sizeof own);
        for (uint32_t j = 0; j < t->nsrc && !range; j++)
            h = hash_bytes(h, &form[t->src[j]->id], sizeof h);
        form[t->id] = h;
    }
    return form;
}

/* May two loads have the same condition and coordinates? Forms: NULL where that was not asked. */
static bool may_unify(const uint64_t *my_form, const Node *mine, const uint64_t *its_form,
                      const Node *its)
{
    if (!my_form)
        return true;
    bool same = mine->nsrc == its->nsrc;
    for (uint32_t i = 1; i < mine->nsrc && same; i++)
        same = my_form[mine->src[i]->id] == its_form[its->src[i]->id];
    return same;
}

static bool unify_loads(Match *m, const Node *mine, const Node *its)
{
    bool same = mine->nsrc == its->nsrc;
    for (uint32_t s = 1; s < mine->nsrc && same; s++)
        same = unify(m, mine->src[s], its->src[s]);
    return same;
}

/* Has a kernel loads of what both read that the other one has not, in the loops that are paired? */
static bool reads_elsewhere(const Match *m, int n, Node *const *load, int o, Node *const *other,
                            bool is_from)
{
    const Step *own = is_from ? m->from : m->into, *its = is_from ? m->into : m->from;
    for (int i = 0; i < n; i++) {
        bool both = false, found = false;
        for (int j = 0; j < o && !found; j++) {
            Match trial = *m;
            if (own->bufs[load[i]->src[0]->arg.i] != its->bufs[other[j]->src[0]->arg.i])
                continue;
            both = true;
            found = unify_loads(&trial, is_from ? other[j] : load[i], is_from ? load[i] : other[j]);
        }
        if (both && !found)
            return true;
    }
    return false;
}

/* Strips of one value share the rows at their border, and each has rows of its own besides: in one
 * kernel its text would be there twice, and they would not be near any more when they are read. */
static bool are_strips(const Match *m)
{
    Node **mine, **its;
    const int n = collect(m->a, m->into->kernel, OP_LOAD, &mine),
              o = collect(m->a, m->from->kernel, OP_LOAD, &its);
    return reads_elsewhere(m, n, mine, o, its, false) && reads_elsewhere(m, o, its, n, mine, true);
}

/* The largest variable that both read alike decides which loop is which; gives its elements, or
 * 0. */
static int64_t pair_by_operand(Match *m)
{
    Node **mine, **its;
    int n = collect(m->a, m->into->kernel, OP_LOAD, &mine),
        o = collect(m->a, m->from->kernel, OP_LOAD, &its);
    enum { MANY = 16 }; /* pairs, of which nearly all are found to be different late */
    const uint64_t *my_form = n * o > MANY ? forms_of(m->a, m->into->kernel) : NULL,
                   *its_form = my_form ? forms_of(m->a, m->from->kernel) : NULL;
    int64_t best = 0;
    Match start = *m;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < o; j++) {
            const Buffer *b = m->into->bufs[mine[i]->src[0]->arg.i];
            if (b->kind == BUF_WEIGHT || b != m->from->bufs[its[j]->src[0]->arg.i] ||
                !may_unify(my_form, mine[i], its_form, its[j]))
                continue;
            const int64_t size = dims_bound(b->rank, b->dims);
            if (size <= best)
                continue;
            Match trial = start;
            if (unify_loads(&trial, mine[i], its[j])) {
                *m = trial;
                m->operand_bytes = dtype_info[b->dtype].bytes;
                best = size;
            }
        }
    return best;
}

/* Whether both go along what they share: a contraction along its terms, too, or its tile would hold
 * two sums that have nothing in common but the registers. */
static bool moves_along(const Match *m, bool contraction)
{
    bool moves = false;
    for (int i = 0; i < m->from->kernel->naxis; i++)
        moves |= m->to[i] >= 0 && (!contraction || m->from->kernel->axes[i].reduced);
    return moves;
}

/* Can each loop have another one? all: those of reduces need not. */
static bool equally_many(const Match *m, bool all)
{
    const Kernel *into = m->into->kernel, *from = m->from->kernel;
    int outputs = 0;
    for (int i = 0; i < into->naxis; i++)
        outputs += !into->axes[i].reduced;
    for (int i = 0; i < from->naxis; i++)
        outputs -= !from->axes[i].reduced;
    return !outputs && (all || into->naxis == from->naxis);
}

/* The other loops, of which there are equally many: by extent, in order. */
static bool pair_others(Match *m, bool all)
{
    const Kernel *into = m->into->kernel, *from = m->from->kernel;
    for (int i = 0; i < from->naxis; i++)
        for (int j = 0; j < into->naxis && m->to[i] < 0; j++)
            (void)pair_axes(m, i, j);
    for (int i = 0; i < from->naxis; i++)
        if (m->to[i] < 0 && !(all && from->axes[i].reduced))
            return false;
    return true;
}

static void unpair(Match *m)
{
    for (int x = 0; x < MAX_AXES; x++) {
        m->to[x] = -1;
        m->taken[x] = false;
    }
    m->operand_bytes = 0;
}

/* ---- what is worth it ------------------------------------------------------------------------ */

/* One END. */
static bool ends_once(const Step *s)
{
    bool once = s->kind == STEP_KERNEL && !s->kernel->serial && s->kernel->sink->nsrc == 1 &&
                s->kernel->naxis <= MAX_AXES;
    for (int i = 0; once && i < s->kernel->naxis; i++)
        once = !s->kernel->axes[i].scanned;
    return once;
}

/* One END and plain stores: that much is needed. Worth it: for each store at most one sum of
 * products. */
static bool mergeable(Arena *a, const Step *s, bool all, bool *contraction)
{
    if (!ends_once(s))
        return false;
    const Kernel *k = s->kernel;
    int nstore = end_stores(k->sink->src[0]);
    for (int i = 0; i < nstore; i++)
        if (!node_is_const_i(k->sink->src[0]->src[i]->src[1], 1))
            return false;
    Node **reduce;
    int n = collect(a, k, OP_REDUCE, &reduce);
    *contraction = n > 0;
    if (all)
        return k->naxis <= ALL_AXES;
    for (int i = 0; i < n; i++)
        if (reduce[i]->arg.i != INGOT_REDUCE_ADD || reduce[i]->src[0]->op != OP_MUL ||
            reduce[i]->nsrc != reduce[0]->nsrc)
            return false;
    return n == 0 || n == nstore;
}

/* A variable that both access: without one they have no operand in common. */
static bool meet(const Step *into, const Step *from)
{
    for (int i = 0; i < into->nbuf; i++)
        for (int j = 0; j < from->nbuf; j++)
            if (into->bufs[i] == from->bufs[j] && into->bufs[i]->kind != BUF_WEIGHT)
                return true;
    return false;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* The store of m->into whose value stands for what m->from loads of a buffer, or NULL. */
static Node *carried_to(const Match *m, const Buffer *b)
{
    for (int i = 0; i < m->ncarried; i++)
        if (m->where[i] == b)
            return m->carried[i];
    return NULL;
}

/* An expression of m->from, in the context of m->into. */
static Node *import(const Match *m, Node *root, const int *arg)
{
    Kernel *k = m->into->kernel;
    int n;
    Node **order = graph_toposort(m->a, 1, &root, &n), **now = NEWN(m->a, Node *, root->id + 1);
    for (int i = 0; i < n; i++) {
        Node *t = order[i], **src = NEWN(m->a, Node *, t->nsrc + 1);
        for (uint32_t j = 0; j < t->nsrc; j++)
            src[j] = now[t->src[j]->id];
        if (t->op == OP_RANGE) {
            now[t->id] = k->axes[m->to[axis_of(m->from->kernel, t)]].range;
            continue;
        }
        if (t->op == OP_REDUCE) { /* the loops as the other reduces nest them */
            int count = (int)reduce_size(t);
            for (int x = 0; x < k->naxis; x++)
                for (uint32_t j = reduce_size(t); j < t->nsrc; j++)
                    if (now[t->src[j]->id] == k->axes[x].range)
                        src[count++] = k->axes[x].range;
        }
        Node *carried = t->op == OP_LOAD ? carried_to(m, m->from->bufs[t->src[0]->arg.i]) : NULL;
        if (carried)
            now[t->id] = carried->src[2];
        else if (t->op == OP_BUFFER)
            now[t->id] =
                node_make(k->c, OP_BUFFER, t->dtype, (Arg){.i = arg[t->arg.i]}, 0, NULL, 0, NULL);
        else
            now[t->id] = node_with(k->c, t, src);
    }
    return now[root->id];
}

/* The loops of reduces and of places that m->into does not have yet. */
static void add_axes(Match *m)
{
    Kernel *k = m->into->kernel;
    const Kernel *from = m->from->kernel;
    Axis *axes = NEWN(k->c->arena, Axis, k->naxis + from->naxis);
    int named[2] = {0, 0}; /* r0, r1, ..; p0, p1, .. */
    for (int i = 0; i < k->naxis; i++) {
        axes[i] = k->axes[i];
        named[axes[i].staged] += axes[i].reduced;
    }
    k->axes = axes;
    for (int i = 0; i < from->naxis; i++) {
        if (m->to[i] >= 0)
            continue;
        Axis *x = &axes[m->to[i] = k->naxis];
        *x = (Axis){.reduced = true, .staged = from->axes[i].staged};
        x->range = range_new(k->c, k->naxis++, import(m, from->axes[i].range->src[0], NULL));
        snprintf(x->name, sizeof x->name, "%c%d", "rp"[x->staged], named[x->staged]++);
    }
}

/* The arguments of both; arg[]: where those of m->from are now. */
static void join_args(Match *m, Plan *p, int *arg)
{
    Step *s = (Step *)m->into;
    Kernel *k = s->kernel;
    const Kernel *from = m->from->kernel;
    KernelArg *args = NEWN(k->c->arena, KernelArg, k->narg + from->narg);
    Buffer **bufs = NEWN(p->arena, Buffer *, k->narg + from->narg);
    memcpy(args, k->args, (size_t)k->narg * sizeof *args);
    memcpy((void *)bufs, s->bufs, (size_t)k->narg * sizeof *bufs);
    for (int i = 0; i < from->narg; i++) {
        int at = arg[i] = 0;
        if (carried_to(m, m->from->bufs[i])) /* it is not loaded any more */
            continue;
        while (at < k->narg && bufs[at] != m->from->bufs[i])
            at++;
        arg[i] = at;
        const KernelArg *b = &from->args[i];
        if (at < k->narg) {
            args[at].read |= b->read;
            args[at].written |= b->written;
            continue;
        }
        Node **dims = NEWN(k->c->arena, Node *, b->rank);
        for (int d = 0; d < b->rank; d++)
            dims[d] = import(m, b->dims[d], NULL);
        args[at] = *b;
        args[at].dims = dims;
        bufs[at] = m->from->bufs[i];
        k->narg++;
    }
    k->args = args;
    s->bufs = bufs;
    s->nbuf = k->narg;
}

static void join(Match *m, Plan *p)
{
    Kernel *k = m->into->kernel;
    const Node *end = k->sink->src[0], *its_end = m->from->kernel->sink->src[0];
    int *arg = NEWN(m->a, int, m->from->kernel->narg), nstore = end_stores(end),
        more = end_stores(its_end);
    add_axes(m);
    join_args(m, p, arg);
    Node **src = NEWN(m->a, Node *, end->nsrc + (uint32_t)more);
    memcpy((void *)src, end->src, (size_t)nstore * sizeof *src);
    for (int i = 0; i < more; i++)
        src[nstore + i] = import(m, its_end->src[i], arg);
    memcpy((void *)(src + nstore + more), end->src + nstore,
           (end->nsrc - (uint32_t)nstore) * sizeof *src);
    Node *both = node_make(k->c, OP_END, INGOT_BOOL, (Arg){0}, (int)end->nsrc + more, src, 0, NULL);
    k->sink = node_make(k->c, OP_SINK, INGOT_BOOL, (Arg){0}, 1, &both, 0, NULL);
    k->flops = sat_add(k->flops, m->from->kernel->flops);
    k->bytes = kernel_bytes(k);
    kernel_find_vars(k);
    Step *into = (Step *)m->into;
    step_join(p->arena, into, m->from);
    ingot_context_free(m->from->kernel->c);
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* What the file says: whether they are one kernel. */
static Said said_of(const Plan *p, const ValueChoice *given, const Step *into)
{
    if (!given || !given->merged)
        return UNSAID;
    int with = into->value ? value_match(p, into->value) : -1;
    return given->merged == YES && with >= 0 && value_given_key(p, with) == given->with ? YES : NO;
}

/* What would be merged, with its figures; of several kernels to be merged with, with the best. */
static void note_cost(Plan *p, const Match *m, const Fusion *cost)
{
    Node *value = m->from->value;
    const ValueChoice *known = value ? value_decided(p, value) : NULL;
    if (!known || !m->into->value)
        return;
    const Fusion *was = &known->merges;
    if (known->beside && was->apart - was->together >= cost->apart - cost->together)
        return;
    ValueChoice *c = value_record(p, value);
    c->merges = *cost;
    c->beside = value_key(p, m->into->value);
}

/* Parts of the same nodes of the model, of which the first one's results are read before the second
 * one runs: where memory is dear, one kernel would hold both at once. */
static bool one_after_the_other(const Sched *q, const Block *b, int i, int j)
{
    const Step *into = b->step[i], *from = b->step[j];
    bool same = q->target->machine.byte >= DEAR && into->norigin == from->norigin, read = false;
    for (int k = 0; k < into->norigin && same; k++)
        same = into->origins[k] == from->origins[k];
    for (int s = i + 1; s < j && same; s++)
        for (int x = 0; x < b->step[s]->nbuf; x++)
            for (int y = 0; y < into->nbuf; y++)
                read |= into->kernel->args[y].written &&
                        buffer_root(into->bufs[y]) == buffer_root(b->step[s]->bufs[x]);
    return read;
}

/* Does step j of the block become part of step i? */
static bool merge(Sched *q, Arena *a, const Block *b, int i, int j)
{
    Plan *p = q->plan;
    Match m = {.a = a, .into = b->step[i], .from = b->step[j]};
    bool contraction, other, all = values_preset(p) == PRESET_ALL;
    const ValueChoice *given = m.from->value ? value_given(p, m.from->value) : NULL;
    Said wanted = fusion_wanted(p, said_of(p, given, m.into));
    if (given && given->merged == NO)
        value_record(p, m.from->value)->merged = NO;
    if (m.into->device != m.from->device)
        return false;
    if (wanted == NO || (!all && !meet(m.into, m.from)) ||
        !mergeable(a, m.into, all, &contraction) || !mergeable(a, m.from, all, &other) ||
        (contraction != other && !all) || !equally_many(&m, all))
        return false;
    int nstore =
        end_stores(m.into->kernel->sink->src[0]) + end_stores(m.from->kernel->sink->src[0]);
    if (wanted == UNSAID && nstore > MAX_STORES)
        return false;
    if (all && nstore > ALL_STORES)
        return false;
    for (int s = i; s < j; s++)
        if (ordered(b->step[s], m.from))
            return false;
    unpair(&m);
    int64_t shared = pair_by_operand(&m);
    bool paired = shared && moves_along(&m, contraction) && pair_others(&m, all);
    if (!paired && all) { /* nothing in common but the extents */
        unpair(&m);
        shared = 0;
        paired = pair_others(&m, all);
    }
    bool asked = given && given->merged == YES; /* by the file: it may be as large as one likes */
    if (!paired || (wanted == UNSAID && (are_strips(&m) || one_after_the_other(q, b, i, j))))
        return false;
    RegionWork both = region_of_steps(q, a, m.into, m.from);
    if (!asked && !region_fits(&both))
        return false;
    Fusion cost = {0, 0};
    if (wanted == UNSAID) {
        cost = fusion_of_steps(q, a, b, i, j, &both);
        note_cost(p, &m, &cost);
        if (!fusion_pays(&cost))
            return false;
    }
    Note note = {.pass = "merge",
                 .what = "merged",
                 .why = shared ? "it reads in the same loops what the kernel reads already: loaded "
                                 "once for both"
                               : "its results have the extents of the kernel's: one launch for "
                                 "both",
                 .step = m.into,
                 .node = m.from->nvalue ? m.from->values[m.from->nvalue - 1] : NULL,
                 .operations = -1,
                 .bytes = sat_mul(shared, m.operand_bytes),
                 .cost = cost};
    if (p->values && m.from->value && m.into->value) {
        ValueChoice *record = value_record(p, m.from->value);
        record->merged = YES;
        record->merges = cost;
        record->with = value_key(p, m.into->value);
    }
    join(&m, p);
    plan_note(p, note);
    return true;
}

/* ---- what is made of results, where they are ------------------------------------------------- */

/* Another step reads or writes what lies there, or the caller does. */
static bool used_beside(const Plan *p, const Block *b, const Buffer *x, const Step *one,
                        const Step *two)
{
    bool used = b != &p->main || x->kind != BUF_ARENA || x->base || x->kept;
    for (int i = 0; i < p->nbuffer && !used; i++)
        used = p->buffers[i]->base == x;
    for (int i = 0; i < b->n && !used; i++) {
        const Step *s = b->step[i];
        used = s->kind == STEP_IF || s->kind == STEP_LOOP;
        for (int j = 0; j < s->nbuf && s != one && s != two; j++)
            used |= buffer_root(s->bufs[j]) == x;
        used |= s->cond == x || s->scratch == x;
    }
    return used;
}

/* Does m->from load what the store writes, and if so, each element where it stores something?  The
 * loops are paired then. */
static bool loads_alike(Match *m, Node *store, bool *any)
{
    Node **load;
    const int n = collect(m->a, m->from->kernel, OP_LOAD, &load);
    const Buffer *b = m->into->bufs[store->src[0]->arg.i];
    *any = false;
    for (int i = 0; i < n; i++) {
        const Node *x = load[i];
        if (m->from->bufs[x->src[0]->arg.i] != b)
            continue;
        *any = x->nsrc - 2 == store->nsrc - 3 && node_is_const_i(x->src[1], 1) &&
               node_is_const_i(store->src[1], 1) && x->dtype == store->src[2]->dtype;
        for (uint32_t d = 3; d < store->nsrc && *any; d++)
            *any = unify(m, store->src[d], x->src[d - 1]);
        if (!*any)
            return false;
    }
    return true;
}

/* The widest store of m->into that m->from loads, to store something narrower at each of its
 * elements; NULL: it is none, or loads it elsewhere. */
static Node *carried_store(Match *m)
{
    const Node *end = m->into->kernel->sink->src[0], *its = m->from->kernel->sink->src[0];
    Node *widest = NULL;
    bool any;
    for (int i = 0; i < end_stores(end); i++) {
        Node *store = end->src[i];
        if (!loads_alike(m, store, &any))
            return NULL;
        if (!any)
            continue;
        m->carried[m->ncarried] = store;
        m->where[m->ncarried++] = m->into->bufs[store->src[0]->arg.i];
        if (!widest || elem_bytes(store->src[2]->dtype) > elem_bytes(widest->src[2]->dtype))
            widest = store;
    }
    for (int i = 0; i < end_stores(its) && widest; i++)
        if (elem_bytes(its->src[i]->src[2]->dtype) >= elem_bytes(widest->src[2]->dtype))
            return NULL;
    for (int i = 0; i < m->from->kernel->naxis && widest; i++)
        if (m->to[i] < 0)
            return NULL;
    return widest;
}

/* A store of m->into that is not needed any more, and its argument: what m->from stores first
 * takes both. */
static void take_argument(Match *m, const Node *store)
{
    Step *into = (Step *)m->into;
    Kernel *k = into->kernel;
    const Node *its = m->from->kernel->sink->src[0];
    const int64_t arg = store->src[0]->arg.i, from = its->src[0]->src[0]->arg.i;
    Node **dims = NEWN(k->c->arena, Node *, m->from->kernel->args[from].rank);
    for (int d = 0; d < m->from->kernel->args[from].rank; d++)
        dims[d] = import(m, m->from->kernel->args[from].dims[d], NULL);
    k->args[arg] = m->from->kernel->args[from];
    k->args[arg].dims = dims;
    into->bufs[arg] = m->from->bufs[from];
    int n = 0;
    Node *end = k->sink->src[0], **src = NEWN(m->a, Node *, end->nsrc);
    for (uint32_t i = 0; i < end->nsrc; i++)
        if (end->src[i] != store)
            src[n++] = end->src[i];
    end = node_make(k->c, OP_END, INGOT_BOOL, (Arg){0}, n, src, 0, NULL);
    k->sink = node_make(k->c, OP_SINK, INGOT_BOOL, (Arg){0}, 1, &end, 0, NULL);
}

/* Nobody asks any more where this lies. */
static void forget_buffer(Plan *p, Step *s, const Buffer *x)
{
    int n = 0;
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffers[i] != x) {
            p->buffers[n] = p->buffers[i];
            p->buffers[n]->id = n;
            n++;
        }
    p->nbuffer = n;
    n = 0;
    for (int i = 0; i < p->nplaced; i++)
        if (p->placed[i].buffer != x)
            p->placed[n++] = p->placed[i];
    p->nplaced = n;
    n = 0;
    for (int i = 0; i < s->nstored; i++)
        if (s->stored[i].buffer != x)
            s->stored[n++] = s->stored[i];
    s->nstored = n;
}

/* Does step j become part of step i, whose results it makes narrower? */
static bool carry(Sched *q, Arena *a, const Block *b, int i, int j)
{
    enum { MOST = 4 };
    Plan *p = q->plan;
    Match m = {.a = a, .into = b->step[i], .from = b->step[j]};
    const ValueChoice *given = m.from->value ? value_given(p, m.from->value) : NULL;
    bool sums;
    if (fusion_wanted(p, said_of(p, given, m.into)) == NO || m.into->device != m.from->device ||
        !meet(m.into, m.from) || !mergeable(a, m.from, true, &sums) || sums ||
        !(q->target->gpu
              ? ends_once(m.into) && goes_along_rows(m.into->kernel, &q->target->machine)
              : mergeable(a, m.into, true, &sums) && tc_is_of_products(m.into->kernel)) ||
        end_stores(m.into->kernel->sink->src[0]) + end_stores(m.from->kernel->sink->src[0]) > MOST)
        return false;
    for (int s = i + 1; s < j; s++)
        if (ordered(b->step[s], m.from))
            return false;
    unpair(&m);
    Node *store = carried_store(&m);
    if (!store)
        return false;
    Step *into = (Step *)m.into;
    Buffer *x = into->bufs[store->src[0]->arg.i];
    const bool dies =
        !into->kernel->args[store->src[0]->arg.i].read && !used_beside(p, b, x, into, m.from);
    if (dies)
        take_argument(&m, store);
    join(&m, p);
    if (dies)
        forget_buffer(p, into, x);
    return true;
}

/* ---- updates of states ------------------------------------------------------------------------
 */

/* Sums that an item has all terms of under way at once. */
static bool adds_little(Arena *a, const Step *s, const Machine *m)
{
    Node **reduce;
    int64_t terms = 1;
    const int n = collect(a, s->kernel, OP_REDUCE, &reduce);
    for (int i = 0; i < n; i++)
        for (uint32_t j = reduce_ranges(reduce[i]); j < reduce[i]->nsrc; j++)
            terms = sat_mul(terms, reduce[i]->src[j]->hi + 1);
    return !n || terms <= m->loads;
}

/* Does all that a step writes become the next value of a state? */
static bool updates_states(Arena *a, const Block *b, const Step *s, const Machine *m)
{
    Node **scan;
    bool any, all = mergeable(a, s, true, &any) && !collect(a, s->kernel, OP_SCAN, &scan) &&
                    adds_little(a, s, m);
    for (int i = 0; i < s->nbuf && all; i++) {
        bool state = !s->kernel->args[i].written;
        for (int j = b->n; j-- > 0 && !state;)
            state = b->step[j]->kind == STEP_COPY && b->step[j]->bufs[1] == s->bufs[i] &&
                    b->step[j]->bufs[0]->kind == BUF_STATE;
        all &= state;
    }
    return all;
}

/* Does step j become part of step i? An optimizer's moments are made of the same gradient, and the
 * weight of the moments, element by element: what is read, once, and what is made of it, is in
 * registers then. */
static bool join_updates(Sched *q, Arena *a, const Block *b, int i, int j)
{
    Match m = {.a = a, .into = b->step[i], .from = b->step[j]};
    const Node *end = m.into->kernel->sink->src[0], *its = m.from->kernel->sink->src[0];
    const ValueChoice *given = m.from->value ? value_given(q->plan, m.from->value) : NULL;
    if (m.into->device != m.from->device || !meet(m.into, m.from) || !equally_many(&m, true) ||
        end_stores(end) + end_stores(its) > ALL_STORES ||
        fusion_wanted(q->plan, said_of(q->plan, given, m.into)) == NO)
        return false;
    for (int s = i + 1; s < j; s++)
        if (ordered(b->step[s], m.from))
            return false;
    unpair(&m);
    for (int k = 0; k < end_stores(end); k++) {
        bool any;
        if (!loads_alike(&m, end->src[k], &any))
            return false;
        if (any) {
            m.carried[m.ncarried] = end->src[k];
            m.where[m.ncarried++] = m.into->bufs[end->src[k]->src[0]->arg.i];
        }
    }
    if (!m.ncarried && !pair_by_operand(&m))
        return false;
    for (int k = 0; k < m.from->kernel->naxis; k++)
        if (m.to[k] < 0 && !m.from->kernel->axes[k].reduced)
            return false;
    join(&m, q->plan);
    return true;
}

static void join_all_updates(Sched *q, Block *b)
{
    Arena *a = arena_new();
    bool *update = NEWN(a, bool, b->n + 1);
    for (int i = 0; i < b->n; i++)
        update[i] = updates_states(a, b, b->step[i], &q->target->machine);
    for (int i = 0; i < b->n; i++)
        for (int j = i + 1; j < b->n && update[i]; j++)
            if (update[j] && join_updates(q, a, b, i, j)) {
                memmove(b->step + j, b->step + j + 1, (size_t)(b->n - j - 1) * sizeof *b->step);
                memmove(update + j, update + j + 1, (size_t)(b->n - j - 1) * sizeof *update);
                b->n--;
                j--;
            }
    arena_free(a);
}

static void merge_block(Sched *q, Block *b)
{
    for (int i = 0; i < b->n; i++) {
        merge_block(q, &b->step[i]->body);
        merge_block(q, &b->step[i]->other);
        int reach = values_preset(q->plan) == PRESET_ALL ? b->n : REACH;
        Arena *a = arena_new();
        for (int j = i + 1; j < b->n && j <= i + reach; j++)
            if ((!q->target->gpu && merge(q, a, b, i, j)) || carry(q, a, b, i, j)) {
                memmove(b->step + j, b->step + j + 1, (size_t)(b->n - j - 1) * sizeof *b->step);
                b->n--;
                j--;
            }
        arena_free(a);
    }
}

void merge_kernels(Sched *q)
{
    merge_block(q, &q->plan->main);
    join_all_updates(q, &q->plan->main);
}
