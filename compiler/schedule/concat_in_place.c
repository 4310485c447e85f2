/* concat_in_place.c - the kernel that makes a part of a concat writes it right there.
 *
 * A stored value may have a home: a place in the buffer of another one.  Its kernel writes there
 * and its readers read there, so that nothing is left to be copied.  The last concat first, since
 * it may be the longest:
 *
 *   - a concat whose parts lie side by side in one buffer already is a view of it: those of a dense
 *     block, each longer than the one before, are all in the last one
 *   - else what it contains whole, as one part or as several (a split that is joined again), has
 *     its home in it
 *
 * Results of a block and what calls and control steps read have buffers of their own.  A value in
 * several concats has its home in one of them; the others get a copy (schedule_store.c).
 *
 * Requires fuse(). Leaves Info.home and Info.home_at. */
#include "fusion.h"

typedef struct {
    Sched *s;
    int n;
    Node **order;
} Homes;

/* Where a slice begins in a stored value. */
typedef struct {
    Node *of;
    Node *at[INGOT_MAX_RANK];
} SliceSpot;

/* By a kernel, or by those of a loop, part by part. */
static bool is_made_here(const Homes *h, Node *t)
{
    Info *i = info_of(h->s, t);
    if (i->order >= h->n || h->order[i->order] != t)
        return false;
    if (t->op == OP_PROJ)
        return is_overwritten(h->s->c, t->src[0], 1 + (uint32_t)t->arg.i);
    return i->stored && op_info[t->op].cls != CONTROL;
}

/* False unless t is a stored value or a slice of one. */
static bool locate(const Homes *h, Node *t, bool at_home, SliceSpot *x)
{
    Context *c = h->s->c;
    int rank = t->rank;
    for (int d = 0; d < rank; d++)
        x->at[d] = idx(c, 0);
    for (;;) {
        bool made = is_made_here(h, t);
        Info *i = info_of(h->s, t);
        if (made && !(at_home && i->home)) {
            x->of = t;
            return true;
        }
        if (!made && t->op != OP_SHRINK)
            return false;
        for (int d = 0; d < rank; d++)
            x->at[d] = idx_add(c, x->at[d], made ? i->home_at[d] : t->src[1 + 2 * d]);
        t = made ? i->home : t->src[0];
    }
}

static bool same_spot(const Homes *h, const SliceSpot *x, const SliceSpot *y)
{
    bool same = x->of == y->of;
    for (int d = 0; d < x->of->rank && same; d++)
        same = idx_provably_equal(h->s->c, x->at[d], y->at[d]);
    return same;
}

/* The number of parts from `first` on that lie side by side, at *x. */
static uint32_t run(const Homes *h, Node *concat, uint32_t first, bool at_home, SliceSpot *x)
{
    Context *c = h->s->c;
    int axis = (int)concat->arg.i;
    if (!locate(h, concat->src[first], at_home, x))
        return 1;
    SliceSpot end = *x, next;
    uint32_t i = first + 1;
    for (; i < concat->nsrc; i++) {
        end.at[axis] = idx_add(c, end.at[axis], concat->src[i - 1]->shape[axis]);
        if (!locate(h, concat->src[i], at_home, &next) || !same_spot(h, &end, &next))
            break;
    }
    return i - first;
}

static bool stays_alone(const Plan *p, Node *t)
{
    const ValueChoice *given = value_given(p, t);
    return fusion_wanted(p, given ? given->aliased : UNSAID) == NO;
}

static void set_home(const Homes *h, Node *t, Node *home, Node *const *at)
{
    Info *i = info_of(h->s, t);
    if (h->s->plan->values) {
        ValueChoice *record = value_record(h->s->plan, t);
        record->aliased = stays_alone(h->s->plan, t) ? NO : YES;
        if (record->aliased == NO)
            return;
        record->in = value_key(h->s->plan, home);
    }
    plan_note(h->s->plan,
              (Note){.pass = "homes",
                     .what = "in place",
                     .why = t->op == OP_CONCAT ? "its parts lie side by side in a buffer already"
                                               : "it is written where the concat has it",
                     .node = t,
                     .operations = -1,
                     .bytes = sat_mul(dims_bound(t->rank, t->shape), dtype_info[t->dtype].bytes)});
    i->home = home;
    i->home_at = NEWN(h->s->arena, Node *, t->rank + 1);
    for (int d = 0; d < t->rank; d++)
        i->home_at[d] = at[d];
}

/* Not a dim that some step of the model sets: the parts would have to know where to write before it
 * is known. */
static bool known_early(Context *c, Node *dim)
{
    bool known = dim->op != OP_VAR || !c->vars[dim->arg.i].setter;
    for (uint32_t i = 0; i < dim->nsrc && known; i++)
        known = known_early(c, dim->src[i]);
    return known;
}

static bool whole(const Homes *h, Node *t, const SliceSpot *x, Node *const *size)
{
    bool all = true;
    for (int d = 0; d < t->rank && all; d++)
        all = idx_is(x->at[d], 0) && idx_provably_equal(h->s->c, t->shape[d], size[d]);
    return all;
}

/* Is a part of it one run of elements, as a COPY brings it? */
static bool is_run(Node *part, int axis)
{
    bool run = true;
    for (int d = 0; d < axis; d++)
        run &= idx_is(part->shape[d], 1);
    return run;
}

static void take_in(const Homes *h, Node *concat)
{
    Context *c = h->s->c;
    int axis = (int)concat->arg.i;
    Node *at[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    for (int d = 0; d < concat->rank; d++) {
        at[d] = idx(c, 0);
        size[d] = concat->shape[d];
    }
    for (uint32_t i = 0, n; i < concat->nsrc; i += n) {
        SliceSpot x = {0};
        n = run(h, concat, i, false, &x);
        size[axis] = idx(c, 0);
        for (uint32_t j = i; j < i + n; j++)
            size[axis] = idx_add(c, size[axis], concat->src[j]->shape[axis]);
        Info *f = x.of ? info_of(h->s, x.of) : NULL;
        const bool lies = f && (f->brought ? is_run(x.of, axis) : !f->root);
        if (lies && !f->home && whole(h, x.of, &x, size))
            set_home(h, x.of, concat, at);
        at[axis] = idx_add(c, at[axis], size[axis]);
    }
}

void find_homes(Sched *s, int n, Node **order)
{
    Homes h = {s, n, order};
    for (int i = 0; i < n; i++) {
        Info *f = info_of(s, order[i]);
        f->home = NULL;
        f->shared = NULL;
    }
    for (int i = n; i-- > 0;) {
        Node *t = order[i];
        if (t->op != OP_CONCAT || !is_made_here(&h, t) || info_of(s, t)->root)
            continue;
        bool early = true;
        for (int d = 0; d < t->rank && early; d++)
            early = known_early(s->c, t->shape[d]);
        SliceSpot x;
        if (!info_of(s, t)->home && run(&h, t, 0, true, &x) == t->nsrc && x.of != t)
            set_home(&h, t, x.of, x.at);
        else if (early)
            take_in(&h, t);
    }
}
