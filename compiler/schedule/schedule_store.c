/* schedule_store.c - stored values become kernels that write their places: in a buffer of their
 * own, in their home, or where an update or a concat has them. */
#include <string.h>

#include "kernel.h"
#include "schedule_scope.h"

static Node *store_node(StoreNest *k, StoredPlace out, Node *gate, Node *value, Node *const *coords)
{
    Buffer *b = out.buffer;
    Node *src[INGOT_MAX_RANK + 3] = {nest_buffer(k, b), gate, value};
    for (int i = 0; i < b->rank; i++)
        src[3 + i] = out.at ? idx_add(k->s->c, coords[i], out.at[i]) : coords[i];
    return node_make(k->s->c, OP_STORE, b->dtype, (Arg){0}, 3 + b->rank, src, 0, NULL);
}

/* The ranges that a value depends on: those of its own reduces not among them. */
static int free_ranges(Arena *a, Node *value, Node **out, int max)
{
    int n, count = 0;
    Node **order = graph_toposort(a, 1, &value, &n);
    for (int i = 0; i < n; i++) {
        bool reduced = false;
        for (int j = 0; j < n && order[i]->op == OP_RANGE; j++)
            reduced |= owns_range(order[j], order[i]);
        if (order[i]->op == OP_RANGE && !reduced && count < max)
            out[count++] = order[i];
    }
    return count;
}

/* Has one of these ranges this size? */
static bool has_extent(int nrange, Node *const *range, const Node *size)
{
    bool found = false;
    for (int i = 0; i < nrange && !found; i++)
        found = range[i]->src[0] == size;
    return found;
}

/* 1, or 0 where there is no index in this run: some axis is empty that is not among the ranges of
 * the index. A row of at most one element has the place 0, whether there is one or not. */
static Node *any_index(const StoreNest *user, const IndexUse *u, int nrange, Node *const *range)
{
    Context *c = user->s->c;
    const Node *each = u->t->op == OP_UPDATE ? u->t->src[1] : u->t;
    Node *any = idx(c, 1), *one = any;
    for (int i = 0; i < user->nrange + each->rank; i++) {
        Node *size = i < user->nrange ? user->ranges[i]->src[0] : each->shape[i - user->nrange];
        if (size->lo < 1 && !has_extent(nrange, range, size))
            any = idx_min(c, idx_mul(c, any, size), one);
    }
    return any;
}

/* A step before the kernel that uses the index: the greatest one that is out of range, or
 * INT64_MIN. */
static void check_step(BlockScope *at, const StoreNest *user, const IndexUse *u)
{
    Sched *s = at->s;
    Context *c = s->c;
    Node *yes = node_bool(c, true), *none = node_const_i(c, INGOT_I64, INT64_MIN);
    Node *fits = bool_and(c, idx_le(c, idx(c, 0), u->index), idx_lt(c, u->index, u->size));
    Node *bad = bool_and(c, u->gate, bool_not(c, fits));
    StoreNest *k = NEW(s->scratch, StoreNest);
    k->s = s;
    k->device = user->device;
    memcpy(k->bufs, user->bufs, sizeof k->bufs);
    k->nbuf = user->nbuf;
    Node *src[2 + 4 * INGOT_MAX_RANK] = {
        node_where(c, bad, node_cast(c, u->index, INGOT_I64), none)};
    int n = free_ranges(s->arena, src[0], src + 1, 4 * INGOT_MAX_RANK);
    Node *any = any_index(user, u, n, src + 1);
    if (!idx_is(any, 1))
        src[1 + n++] = range_new(c, s->naxis++, any);
    Node *worst =
        n ? node_make(c, OP_REDUCE, INGOT_I64, (Arg){.i = INGOT_REDUCE_MAX}, 1 + n, src, 0, NULL)
          : src[0];
    k->store =
        store_node(k, (StoredPlace){buffer_new(s, BUF_LOCAL, INGOT_I64, 0, NULL, u->t), NULL}, yes,
                   worst, NULL);
    Step *step = schedule_step(at, STEP_INDEX);
    Buffer **bufs;
    step->name = "check";
    step_origins(s, step, u->t);
    step->size = u->size;
    step->axis = u->axis;
    step->wraps = index_check_of(c, u->t) == INDEX_WRAPS;
    step->kernel = kernel_finish(k, &bufs, &n);
    step->kernel->check = true;
    step->device = k->device;
    schedule_step_bufs(s, step, n, bufs);
}

/* One for the whole row: the first iteration of what it does not move with. */
static Node *stored_once(StoreNest *k, Node *store)
{
    Context *c = k->s->c;
    Node *src[INGOT_MAX_RANK + 3];
    memcpy((void *)src, (void *)store->src, store->nsrc * sizeof *src);
    for (int i = 0; i < k->nrange; i++) {
        bool moves = false;
        for (uint32_t j = 3; j < store->nsrc; j++)
            moves |= depends_on(src[j], k->ranges[i]);
        if (!moves)
            src[1] = bool_and(c, src[1], idx_eq(c, k->ranges[i], idx(c, 0)));
    }
    return node_make(c, OP_STORE, store->dtype, store->arg, (int)store->nsrc, src, 0, NULL);
}

/* What rows have one of, each in a buffer of its own: stores of this kernel, too. */
static void store_beside(BlockScope *at, StoreNest *k, Step *step, Stored *all)
{
    Node *store[1 + INGOT_MAX_RANK] = {k->store};
    for (int i = 0; i < k->nbeside; i++) {
        Node *t = k->beside[i], *yes = node_bool(at->s->c, true);
        StoredPlace out = schedule_place_of(at, t);
        store[1 + i] =
            store_node(k, out, yes, lower_value(k, t, k->beside_at[i], yes), k->beside_at[i]);
        schedule_set_place(at, t, out);
        all[step->nstored++] = (Stored){.node = t, .buffer = out.buffer};
    }
    if (k->nbeside)
        k->store =
            node_make(at->s->c, OP_END, INGOT_BOOL, (Arg){0}, 1 + k->nbeside, store, 0, NULL);
}

static void nest_end(BlockScope *at, StoreNest *k, Node *origin, StoredPlace out)
{
    for (int i = 0; i < k->nuse; i++)
        check_step(at, k, &k->use[i]);
    Step *step = schedule_step(at, STEP_KERNEL);
    Buffer **bufs;
    int n;
    step->value = origin;
    step->device = k->device;
    step->stored = NEWN(at->s->arena, Stored, 1 + k->nbeside);
    step->stored[step->nstored++] =
        (Stored){.node = origin,
                 .copy = origin != k->root && !is_computed(at->s, origin),
                 .buffer = out.buffer,
                 .at = out.at ? vec_of(at->s->arena, (const void *)out.at, (size_t)origin->rank,
                                       sizeof(Node *))
                              : NULL};
    step_computes(at->s, step, origin);
    store_beside(at, k, step, step->stored);
    if (at->s->opt_level) {
        nest_split(k);
        nest_share_sums(k);
        nest_join_terms(k);
        nest_part_operands(k);
    }
    if (k->nbeside) {
        Node *store[1 + INGOT_MAX_RANK];
        for (int i = 0; i <= k->nbeside; i++)
            store[i] = i ? stored_once(k, k->store->src[i]) : k->store->src[0];
        k->store =
            node_make(at->s->c, OP_END, INGOT_BOOL, (Arg){0}, 1 + k->nbeside, store, 0, NULL);
    }
    step->kernel = kernel_finish(k, &bufs, &n);
    schedule_step_bufs(at->s, step, n, bufs);
    map_free(&k->memo);
}

static void nest_ranges(StoreNest *k, int rank, Node *const *dims, Node **coords)
{
    Context *c = k->s->c;
    for (int i = 0; i < rank; i++) {
        coords[i] = idx_is(dims[i], 1) ? idx(c, 0) : range_new(c, k->s->naxis++, dims[i]);
        if (coords[i]->op == OP_RANGE)
            k->ranges[k->nrange++] = coords[i];
    }
}

/* One kernel: out = t. */
void schedule_store(BlockScope *at, Node *t, Node *root, StoredPlace out)
{
    Sched *s = at->s;
    if (dims_bound(t->rank, t->shape) == 0)
        return;
    StoreNest *k = NEW(s->scratch, StoreNest);
    k->s = s;
    k->root = root;
    k->device = out.buffer->device;
    Node *coords[INGOT_MAX_RANK], *yes = node_bool(s->c, true);
    nest_ranges(k, t->rank, t->shape, coords);
    Node *value = lower_value(k, t, coords, yes);
    k->store = store_node(k, out, yes, value, coords);
    nest_end(at, k, t, out);
}

static Op update_op(int64_t how)
{
    switch (how) {
    case INGOT_ADD: return OP_ADD;
    case INGOT_MUL: return OP_MUL;
    case INGOT_MAX: return OP_MAX;
    default: return OP_MIN;
    }
}

/* Does each element of v have a place of its own, as far from the first one's as it is in v? */
static bool is_slice(Context *c, const Node *t, Node *const *coords, Node *const *to)
{
    bool all = t->arg.i == INGOT_SET && t->src[1]->rank == t->rank;
    for (int i = 0; i < t->rank && all; i++)
        all = is_loop_free(idx_sub(c, to[i], coords[i]));
    return all;
}

/* Is a place chosen by data? */
static bool is_by_data(Arena *a, Node *at)
{
    int n;
    Node **order = graph_toposort(a, 1, &at, &n);
    bool loads = false;
    for (int i = 0; i < n; i++)
        loads |= order[i]->op == OP_LOAD;
    return loads;
}

/* Stores that may meet are run in order, all of them by the same item of a GPU. An owner of each of
 * n parts of the places runs through all of them instead, and leaves out those of others:
 *
 *     for i:  out[at[i]] += v[i]     for w < n:  for i:  if (at[i] % n == w)  out[at[i]] += v[i]
 *
 * Places of an owner are w, n + w, 2 n + w .., so that none meets another's. 1: there is one. */
static int64_t owners_of(const StoreNest *k, const Node *t, Node *const *to, int *axis)
{
    enum { MANY = 8 };
    const Target *target = k->s->target;
    const Node *x = t->src[0];
    int64_t rows, n = target->gpu && k->s->opt_level ? (int64_t)target->machine.processors : 1;
    for (*axis = 0; *axis < x->rank && !is_by_data(k->s->scratch, to[*axis]);)
        ++*axis;
    if (*axis == x->rank || !k->serial || !idx_value(x->shape[*axis], &rows))
        return 1;
    int64_t stores = 1; /* that may meet */
    for (int i = 0; i < k->nrange; i++)
        stores = depends_on(to[*axis], k->ranges[i]) ? sat_mul(stores, k->ranges[i]->src[0]->hi)
                                                     : stores;
    n = stores < n ? stores : n;
    int64_t twos = 1; /* whose remainder takes one instruction */
    while (2 * twos <= n && rows % (2 * twos) == 0)
        twos *= 2;
    while (n > 1 && rows % n)
        n--;
    return n <= MANY * twos ? twos : n;
}

/* Runs through the owners, outermost: `gate` and `at` become one's. */
static void own_places(StoreNest *k, int64_t n, Node *rows, Node **gate, Node **at)
{
    Context *c = k->s->c;
    Node *owners = idx(c, n), *own = range_new(c, k->s->naxis++, owners),
         *inside = idx_max(c, idx(c, 0), idx_min(c, *at, idx_add(c, rows, idx(c, -1))));
    for (int i = k->nrange++; i > 0; i--)
        k->ranges[i] = k->ranges[i - 1];
    k->ranges[0] = own;
    *gate = bool_and(c, *gate, idx_eq(c, idx_mod(c, inside, owners), own));
    *at = idx_add(c, idx_mul(c, idx_div(c, inside, owners), owners), own);
}

/* Where an owner is one item, a warp of items that run in step looks for it: they look at as many
 * places together (render_loops.c), and the first one stores. */
static Node *look_by_warp(StoreNest *k, Node *gate, int rank, Node *const *to, int axis)
{
    const int warp = k->s->target->machine.warp;
    int64_t looks;
    for (int i = 0; i < k->nrange; i++) {
        bool apart = false;
        for (int a = 0; a < rank; a++)
            apart |= a != axis && depends_on(to[a], k->ranges[i]);
        if (apart && !depends_on(to[axis], k->ranges[i]))
            return gate;
    }
    if (!k->s->target->votes || !idx_value(k->ranges[k->nrange - 1]->src[0], &looks) ||
        looks % warp)
        return gate;
    Node *item = range_new(k->s->c, k->s->naxis++, idx(k->s->c, warp));
    k->ranges[k->nrange++] = item;
    return bool_and(k->s->c, gate, idx_eq(k->s->c, item, idx(k->s->c, 0)));
}

/* out = x; then, in order, out[index] = v (or combined with what is there). */
static void store_update(BlockScope *at, Node *t, StoredPlace out)
{
    Sched *s = at->s;
    Context *c = s->c;
    Node *x = t->src[0], *v = t->src[1];
    const Info *there = info_of(s, x);
    bool in_place = there->buffer == out.buffer && there->at == out.at;
    if (!in_place)
        schedule_store(at, x, t, out);
    if (dims_bound(v->rank, v->shape) == 0 || dims_bound(x->rank, x->shape) == 0)
        return;
    StoreNest *k = NEW(s->scratch, StoreNest);
    k->s = s;
    k->root = t;
    k->device = out.buffer->device;
    Node *coords[INGOT_MAX_RANK], *to[INGOT_MAX_RANK], *gate = node_bool(c, true);
    nest_ranges(k, v->rank, v->shape, coords);
    for (int i = 0; i < x->rank; i++) {
        to[i] =
            node_cast(c, lower_value(k, t->src[2 + i], coords, node_bool(c, true)), INGOT_INDEX);
        note_index(k, t, i, to[i], node_bool(c, true));
        gate = bool_and(c, gate, idx_le(c, idx(c, 0), to[i]));
        gate = bool_and(c, gate, idx_lt(c, to[i], x->shape[i]));
    }
    k->serial = !is_slice(c, t, coords, to);
    int axis;
    const int64_t owners = owners_of(k, t, to, &axis);
    if (owners > 1) {
        own_places(k, owners, x->shape[axis], &gate, &to[axis]);
        gate = look_by_warp(k, gate, x->rank, to, axis);
    }
    Node *value = lower_value(k, v, coords, owners > 1 ? gate : node_bool(c, true));
    if (t->arg.i != INGOT_SET) {
        Node *old = load_value(k, out.buffer, out.at, to, gate);
        value = node_alu2(c, update_op(t->arg.i), t->dtype, old, value);
    }
    k->store = store_node(k, out, gate, value, to);
    nest_end(at, k, t, out);
}

/* Is t, a stored value or a slice of one, at that place already? */
static bool lies_at(Sched *s, Node *t, StoredPlace place)
{
    Node *at[INGOT_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        at[i] = idx(s->c, 0);
    for (; t->op == OP_SHRINK && !info_of(s, t)->buffer; t = t->src[0])
        for (int i = 0; i < t->rank; i++)
            at[i] = idx_add(s->c, at[i], t->src[1 + 2 * i]);
    Info *f = info_of(s, t);
    bool same = f->buffer == place.buffer;
    for (int i = 0; i < t->rank && same; i++)
        same =
            idx_provably_equal(s->c, f->at ? idx_add(s->c, at[i], f->at[i]) : at[i], place.at[i]);
    return same;
}

static void store_concat(BlockScope *at, Node *t, StoredPlace out)
{
    Context *c = at->s->c;
    int axis = (int)t->arg.i;
    Node *to[INGOT_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        to[i] = out.at ? out.at[i] : idx(c, 0);
    for (uint32_t i = 0; i < t->nsrc; i++) {
        StoredPlace part = {out.buffer, to};
        if (!lies_at(at->s, t->src[i], part))
            schedule_store(at, t->src[i], t, part);
        to[axis] = idx_add(c, to[axis], t->src[i]->shape[axis]);
    }
}

/* What a COPY brings, where that is all of a value or some of its rows, of one that is stored
 * anyway; and where these begin, in elements. */
Node *copied_value(Sched *s, Node *copy, Node **from)
{
    Context *c = s->c;
    Node *x = copy->src[0], *of = x->op == OP_SHRINK ? x->src[0] : x, *stored = of;
    Node *begin = idx(c, 0);
    while (stored->op == OP_RESHAPE)
        stored = stored->src[0];
    bool rows = of != x && (stored->op == OP_INPUT || stored->op == OP_KEEP), several = false;
    for (int i = 0; i < x->rank && rows; i++) {
        rows = !several || x->shape[i] == of->shape[i];
        several |= !idx_is(x->shape[i], 1);
        begin = idx_add(c, idx_mul(c, begin, of->shape[i]), x->src[1 + 2 * i]);
    }
    *from = rows ? begin : idx(c, 0);
    return rows ? stored : x;
}

/* Where the place begins in its buffer, in elements. */
static Node *first_element(Context *c, StoredPlace place)
{
    Node *first = idx(c, 0);
    for (int i = 0; place.at && i < place.buffer->rank; i++)
        first = idx_add(c, idx_mul(c, first, place.buffer->dims[i]), place.at[i]);
    return first;
}

static void store_copy(BlockScope *at, Node *t, StoredPlace out)
{
    Node *from, *of = copied_value(at->s, t, &from);
    Step *step =
        schedule_copy(at, out.buffer, first_element(at->s->c, out), schedule_buffer(at, of));
    step->src_offset = from;
    step->collective = t->op == OP_COLLECTIVE ? t : NULL;
    step->elements = idx(at->s->c, 1);
    for (int i = 0; i < t->rank; i++)
        step->elements = idx_mul(at->s->c, step->elements, t->shape[i]);
}

/* Compute t into `out` with kernels of its own. */
void schedule_into(BlockScope *at, Node *t, StoredPlace out)
{
    Info *i = info_of(at->s, t);
    if (i->buffer || i->foldable) {
        schedule_store(at, t, NULL, out); /* a copy */
        return;
    }
    if (t->op == OP_COPY || t->op == OP_COLLECTIVE)
        store_copy(at, t, out);
    else if (t->op == OP_UPDATE)
        store_update(at, t, out);
    else if (t->op == OP_CONCAT)
        store_concat(at, t, out);
    else
        schedule_store(at, t, t, out);
}

void schedule_placed(Sched *s, Node *t, int n, const StoredPlace *tuple)
{
    for (int i = 0; i < n; i++)
        vec_push(s->arena, s->plan->placed, s->plan->nplaced,
                 ((Placement){.node = t, .part = i, .buffer = tuple[i].buffer, .at = tuple[i].at}));
}

void schedule_set_place(BlockScope *at, Node *t, StoredPlace place)
{
    Plan *p = at->s->plan;
    vec_push(p->arena, p->placed, p->nplaced,
             ((Placement){.node = t, .buffer = place.buffer, .at = place.at}));
    info_of(at->s, t)->buffer = place.buffer;
    info_of(at->s, t)->at = place.at;
    vec_push(at->s->arena, at->made, at->nmade, t);
}

void schedule_set_buffer(BlockScope *at, Node *t, Buffer *b)
{
    schedule_set_place(at, t, (StoredPlace){b, NULL});
}

Buffer *schedule_arena(BlockScope *at, Node *t)
{
    return buffer_new(at->s, BUF_ARENA, t->dtype, t->rank, t->shape, t);
}

StoredPlace schedule_place_of(BlockScope *at, Node *t)
{
    Sched *s = at->s;
    Node **shift = NULL;
    int rank = t->rank;
    Info *i = info_of(s, t);
    for (; !i->buffer && i->home; t = i->home, i = info_of(s, t)) {
        if (!shift) {
            shift = NEWN(s->arena, Node *, rank + 1);
            for (int d = 0; d < rank; d++)
                shift[d] = idx(s->c, 0);
        }
        for (int d = 0; d < rank; d++)
            shift[d] = idx_add(s->c, shift[d], i->home_at[d]);
    }
    for (int d = 0; d < rank && shift && i->buffer && i->at; d++)
        shift[d] = idx_add(s->c, shift[d], i->at[d]);
    if (!i->buffer && !i->shared)
        i->shared = schedule_arena(at, t);
    return (StoredPlace){i->buffer ? i->buffer : i->shared, shift};
}

/* Is it all of the buffer? A state that grows, and what is in its home, are not. */
static bool fills(Sched *s, Node *t, const Buffer *b)
{
    bool all = !info_of(s, t)->at;
    for (int d = 0; d < t->rank && all; d++)
        all = idx_provably_equal(s->c, t->shape[d], b->dims[d]);
    return all;
}

/* A buffer that holds t and nothing else, for steps that read memory (calls, conditions). */
Buffer *schedule_buffer(BlockScope *at, Node *t)
{
    Info *i = info_of(at->s, t);
    if (i->buffer && fills(at->s, t, i->buffer))
        return i->buffer;
    if (i->buffer) {
        Buffer *copy = schedule_arena(at, t);
        schedule_store(at, t, NULL, (StoredPlace){copy, NULL});
        return copy;
    }
    if (t->op == OP_PROJ && info_of(at->s, t->src[0])->tuple)
        return info_of(at->s, t->src[0])->tuple[t->arg.i].buffer;
    if (t->op == OP_DATA || i->foldable)
        return weight_buffer(at->s, t);
    StoredPlace place = schedule_place_of(at, t);
    schedule_into(at, t, place);
    schedule_set_place(at, t, place);
    return place.buffer;
}
