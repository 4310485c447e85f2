/* linear_code.c - statements of linear IR as instructions; what they cannot mean in any run is
 * found here.
 *
 * The rules are those of the text that render.c writes: a name can be seen from the statement that
 * makes it to the end of the loop that it stands in, the counter of a loop inside of it. */
#include <string.h>

#include "linear_build.h"

enum { MAX_TILES = 32 };

static void name(Build *q, Node *n, Operand o)
{
    q->at[n->id] = o.at;
    vec_push(q->a, q->seen, q->nseen, n->id);
}

static void let(Build *q, Node *n)
{
    q->self = n;
    Operand o = code_value(q, n);
    q->self = NULL;
    if (code_knows(q, n))
        name(q, n, o);
}

static void open_counter(Build *q, Node *range, const char *text, int at)
{
    OpenLoop *o = NEW(q->a, OpenLoop);
    *o = (OpenLoop){text, at, q->open};
    q->open = o;
    if (range && range->arg.i >= 0 && range->arg.i < MAX_RANGES)
        q->counter[range->arg.i] = at;
}

/* Does it count through outputs, of which each iteration computes its own? */
static bool is_apart(const Tile *t, const Node *range)
{
    for (int i = 0; i < t->naxis; i++)
        if (t->axis[i].range == range)
            return !t->axis[i].scanned && range != t->cluster && range != t->ranks;
    return t->tail.range && t->tail.range == range;
}

/* A loop from what the counter is by now; its counter is not open yet. */
static OpenBlock *open_loop(Build *q, Node *node, Operand at, Operand extent)
{
    const Tile *t = q->l->tile;
    OpenBlock b = {.node = node, .nseen = q->nseen, .open = q->open, .counter = at.at};
    b.extent = extent.at;
    b.outside = q->c->n;
    b.one = !node || is_apart(t, node);
    for (int i = 0; i < t->fused && !node; i++)
        b.one &= !t->axis[t->uncut + i].scanned;
    code_add_from(q, DO_LOOP, at, extent)->one = b.one;
    b.start = q->c->n;
    vec_push(q->a, q->block, q->nblock, b);
    return &q->block[q->nblock - 1];
}

static bool is_fill_range(const Build *q, const Node *range)
{
    const Tile *t = q->l->tile;
    for (int i = 0; i < t->nfill; i++)
        if (t->fill[i].range == range)
            return true;
    return false;
}

/* The loops that fill a place begin: what it had before is not to be read again, if they alone
 * write it. */
static void forget_places(Build *q, const Stmt *s)
{
    const Linear *l = q->l;
    int depth = 0, first = (int)(s - l->stmt), end = first;
    for (; end < l->n; end++) {
        depth += l->stmt[end].kind == STMT_LOOP || l->stmt[end].kind == STMT_PARTS;
        depth -= l->stmt[end].kind == STMT_END;
        if (!depth)
            break;
    }
    for (int place = q->lk->narg; place < q->lk->k->narg; place++) {
        int inside = 0, outside = 0;
        for (int i = 0; i < l->n; i++)
            if (l->stmt[i].kind == STMT_STORE && l->stmt[i].node->op == OP_STORE &&
                l->stmt[i].node->src[0]->arg.i == place)
                ++*(i > first && i < end ? &inside : &outside);
        if (inside && !outside && !q->lk->group) /* of a group all items fill it */
            code_add(q, DO_FORGET, (Operand){0, 0, INGOT_INDEX})->arg = place;
    }
}

static void loop(Build *q, const Stmt *s)
{
    Node *range = s->node;
    if (linear_range_name(q->l->tile, range) == NO_AXIS)
        code_fault(q, "counts through %s", NO_AXIS);
    if (is_fill_range(q, range) && !(q->nblock && q->block[q->nblock - 1].node &&
                                     is_fill_range(q, q->block[q->nblock - 1].node)))
        forget_places(q, s);
    Operand at = code_room(q, INGOT_INDEX, 1),
            extent = code_value(q, s->upto ? s->upto : range->src[0]);
    if (s->from && s->zero) {
        Operand is = code_value(q, idx_min(q->lk->k->c, s->zero, idx(q->lk->k->c, 1)));
        code_add_from(q, DO_COPY, at, extent);
        const int skip = q->c->n;
        code_add_from(q, DO_SKIP_IF, is, is);
        code_add_from(q, DO_COPY, at, code_value(q, s->from));
        q->c->code[skip].to = q->c->n;
    } else if (s->from) {
        code_add_from(q, DO_COPY, at, code_value(q, s->from));
    } else {
        code_add(q, DO_ZERO, at);
    }
    open_loop(q, range, at, extent);
    open_counter(q, range, linear_range_name(q->l->tile, range), at.at);
}

static void parts(Build *q)
{
    const Tile *t = q->l->tile;
    Operand at = code_room(q, INGOT_INDEX, 1), end = code_room(q, INGOT_INDEX, 1);
    if (!t->fused) {
        OpenBlock b = {.nseen = q->nseen, .open = q->open, .counter = -1, .outside = q->c->n};
        code_add(q, DO_LAST_PART, at)->arg = t->parts;
        vec_push(q->a, q->block, q->nblock, b);
        return;
    }
    Operand extent = code_value(q, q->l->fused);
    code_add_from(q, DO_FIRST, at, extent)->arg = t->parts;
    code_add_from(q, DO_LAST, end, extent)->arg = t->parts;
    open_loop(q, NULL, at, end);
    if (t->fused == 1) {
        open_counter(q, t->axis[t->uncut].range, t->axis[t->uncut].name, at.at);
        return;
    }
    for (int i = 0; i < t->fused; i++) {
        const TileAxis *fused = &t->axis[t->uncut + i];
        if (!q->l->counted[i])
            continue;
        Operand x = code_room(q, INGOT_INDEX, 1), inner = code_value(q, q->l->inner[i]),
                axis = {-1, 1, 0};
        if (i)
            axis = code_value(q, fused->range->src[0]);
        Do *d = code_add_from(q, DO_AXIS, x, at);
        d->in[1] = inner.at;
        d->in[2] = axis.at;
        open_counter(q, fused->range, fused->name, x.at);
    }
}

static void close_counter(Build *q, Node *range)
{
    if (range && code_is_open(q, range))
        q->counter[range->arg.i] = -1;
}

static void end(Build *q, Node *node)
{
    if (!q->nblock || q->block[q->nblock - 1].node != node) {
        code_fault(q, "ends a loop that is not the innermost one");
        return;
    }
    const OpenBlock b = q->block[--q->nblock];
    const Tile *t = q->l->tile;
    if (!node && t->box)
        code_add(q, DO_LEAVE, (Operand){0, 1, INGOT_INDEX});
    if (b.counter >= 0) {
        Do *d = code_add(q, DO_NEXT, (Operand){b.counter, 1, INGOT_INDEX});
        d->in[0] = b.extent;
        d->to = b.start;
        d->one = b.one;
    }
    q->c->code[b.outside].to = q->c->n;
    close_counter(q, node);
    for (int i = 0; !node && i < t->fused; i++)
        close_counter(q, t->axis[t->uncut + i].range);
    q->open = b.open;
    for (; q->nseen > b.nseen; q->nseen--)
        q->at[q->seen[q->nseen - 1]] = -1;
}

/* Is every loop open that decides what it sums? */
static bool loops_are_open(Build *q, Node *n)
{
    Map memo = {0};
    uint64_t set = code_ranges_of(q, n, &memo);
    map_free(&memo);
    const Tile *t = q->l->tile;
    const TileAxis *const all[] = {t->axis, t->reduce, t->fill, &t->tail};
    const int count[] = {t->naxis, t->nreduce, t->nfill, t->tail.range != NULL};
    for (int pass = 0; pass < 4; pass++) {
        const TileAxis *axes = all[pass];
        const int naxis = count[pass];
        for (int i = 0; i < naxis; i++) {
            Node *r = axes[i].range;
            bool own = n->op == OP_SCAN && r == n->src[1];
            if (own || !(set >> (r->arg.i & 63) & 1) || code_is_open(q, r))
                continue;
            code_fault(
                q, "the accumulator starts outside of the loop over %s, which decides what it sums",
                axes[i].name);
            return false;
        }
    }
    return true;
}

static void start(Build *q, Node *n)
{
    if (!is_accumulated(q->l, n)) {
        code_fault(q, "%s has no accumulator", op_info[n->op].text);
        return;
    }
    if (!loops_are_open(q, n))
        return;
    Context *c = q->lk->k->c;
    Node *terms = idx(c, 1);
    for (uint32_t i = reduce_ranges(n); n->op == OP_REDUCE && i < n->nsrc; i++)
        if (!is_fragment_range(q->l->tile, n->src[i]))
            terms = idx_mul(c, terms, n->src[i]->src[0]);
    q->again = true;
    Operand want = code_value(q, terms);
    q->again = false;
    Operand first = code_constant(q, reduce_identity(c, n), code_width(q, n));
    Operand out = code_room(q, code_type(n->dtype), code_width(q, n));
    Operand count = code_room(q, INGOT_INDEX, 2); /* so far, wanted */
    Do *d = code_add_from(q, DO_START, out, first);
    d->in[1] = want.at;
    d->count = q->count[n->id] = count.at;
    name(q, n, out);
}

/* Of operands that are read where they lie: their values are where that is; or what lanes have
 * packed. */
static void products_in_place(Build *q, const Stmt *s, Node *a, Node *b, Operand x, Operand y)
{
    Node *n = s->node;
    const TileUnit u = tile_unit(q->l->tile, s->term);
    const bool packed = a->op == OP_PACK;
    Do *d = code_add_from(q, DO_PRODUCTS_IN_PLACE,
                          (Operand){q->at[n->id], code_width(q, n), code_type(n->dtype)}, x);
    d->in[1] = y.at;
    d->arg = packed ? -1 : linear_buffer(a)->arg.i;
    d->from = (int)linear_buffer(b)->arg.i;
    d->part = u.tc->n;
    d->stored = (int)elem_bytes(q->lk->k->args[d->from].dtype);
    if (!packed)
        (void)tc_place_fragment(q->lk->k->c, u.tc, u.fragment, a, &d->place[0]);
    (void)tc_place_fragment(q->lk->k->c, u.tc, u.fragment, b, &d->place[1]);
    if (s->last)
        code_add(q, DO_COUNT, (Operand){0, 1, INGOT_INDEX})->count = q->count[n->id];
}

/* A fragment for the next iteration's products; before the first one there is none, and it is
 * zero. */
static void keep(Build *q, const Stmt *s)
{
    Node *n = s->node;
    if (!code_knows(q, n) || !q->l->tile->tc || (s->last && q->kept[n->id] < 0)) {
        code_fault(q, "keeps what is no fragment, or has not been kept before");
        return;
    }
    if (!s->last) {
        Operand is = code_room(q, INGOT_INDEX, 1),
                x = code_room(q, code_type(s->term->dtype), code_width(q, n));
        q->holds[n->id] = is.at;
        q->kept[n->id] = x.at;
        code_add(q, DO_ZERO, is);
        code_add(q, DO_ZERO, x);
        return;
    }
    Operand x = code_value(q, s->term), is = {q->holds[n->id], 1, INGOT_INDEX};
    code_add_from(q, DO_COPY, (Operand){q->kept[n->id], x.n, x.type}, x);
    code_add_from(q, DO_COPY, is, code_value(q, idx(q->lk->k->c, 1)));
}

/* One product of a sum that a matrix unit takes. */
static void products(Build *q, const Stmt *s)
{
    Node *a, *b, *n = s->node;
    const Tile *t = q->l->tile;
    const TileUnit u = s->term ? tile_unit(t, s->term) : (TileUnit){0};
    if (!code_knows(q, n) || q->at[n->id] < 0 || !s->term ||
        !tc_operands(u.tc, s->term, u.fragment, &a, &b)) {
        code_fault(q, "there is no form for this product of fragments");
        return;
    }
    if (!t->tc->lanes) {
        code_tile(q, DO_HELD, s->tile[0], n);
        code_tile(q, DO_HELD, s->tile[1], a);
        code_tile(q, DO_HELD, s->tile[2], b);
    }
    bool turned = tc_turned(s->term, u.fragment);
    Operand x, y;
    if (tc_in_place(t->tc)) { /* where they lie is no value that a cast would change */
        x = code_value(q, a->op == OP_PACK ? s->term->src[turned] : a);
        products_in_place(q, s, a, b, x, code_value(q, b));
        return;
    }
    if (s->kept && (q->kept[a->id] < 0 || q->kept[b->id] < 0)) {
        code_fault(q, "multiplies fragments that were not kept");
        return;
    }
    if (s->kept) {
        x = (Operand){q->kept[a->id], code_width(q, a), code_type(s->term->dtype)};
        y = (Operand){q->kept[b->id], code_width(q, b), code_type(s->term->dtype)};
    } else {
        x = code_value(q, s->term->src[turned]);
        y = code_value(q, s->term->src[1 - turned]);
    }
    Operand acc = {q->at[n->id], code_width(q, n), code_type(n->dtype)};
    if (x.type != acc.type || y.type != acc.type)
        code_fault(q, "there is no form for a product of these types");
    Do *d = code_add_from(q, t->tc->lanes ? DO_PRODUCTS_OF_LANES : DO_PRODUCTS, acc, x);
    d->in[1] = y.at;
    d->part = code_fragment_extent(q, n, TC_ROWS);
    d->count = code_fragment_extent(q, n, TC_COLUMNS);
    d->from = (int)t->fragment[TC_TERMS]->hi + 1;
    const int skip = q->c->n;
    if (s->last && s->kept) {
        Operand is = {q->holds[a->id], 1, INGOT_INDEX};
        code_add_from(q, DO_SKIP, is, is);
    }
    if (s->last)
        code_add(q, DO_COUNT, acc)->count = q->count[n->id];
    if (s->last && s->kept)
        q->c->code[skip].to = q->c->n;
}

static void scale(Build *q, const Stmt *s)
{
    Node *n = s->node;
    if (!code_knows(q, n) || q->at[n->id] < 0 || (reduce_size(n) != 3 && reduce_size(n) != 1)) {
        code_fault(q, "scales what is no such sum, or has not been started here");
        return;
    }
    if (reduce_size(n) == 1) /* it is as it was */
        return;
    const Operand even = code_value(q, n->src[1]), odd = code_value(q, n->src[2]),
                  acc = {q->at[n->id], code_width(q, n), code_type(n->dtype)};
    code_add_from(q, DO_SCALE, acc, even)->in[1] = odd.at;
}

static void store_fragment(Build *q, const Stmt *s)
{
    Node *n = s->node, *zero = idx(q->lk->k->c, 0), *first;
    const Tile *t = q->l->tile;
    int64_t pitch, step;
    if (!code_buffer_is_known(q, n))
        return;
    code_tile(q, DO_HELD, s->tile[0], n->src[2]);
    bool good = range_stride(q->lk->k->c, n->src[3], t->fragment[TC_ROWS], &pitch) &&
                range_stride(q->lk->k->c, n->src[3], t->fragment[TC_COLUMNS], &step) && step == 1;
    if (!good)
        code_fault(q, "there is no form for a fragment that lies so");
    first = substitute(q->lk->k->c, n->src[3], TC_AXES, t->fragment, (Node *[]){zero, zero, zero});
    q->again = true;
    Operand at = code_value(q, first);
    q->again = false;
    Operand x = code_value(q, n->src[2]);
    Do *d = code_add_from(q, DO_STORE_TILE, x, at);
    d->in[1] = x.at;
    d->node = n;
    d->arg = linear_buffer(n)->arg.i;
    d->stored = (int)elem_bytes(q->lk->k->args[d->arg].dtype);
    d->step = pitch;
    d->count = code_fragment_extent(q, n->src[2], TC_ROWS);
}

static void update(Build *q, const Stmt *s)
{
    Node *n = s->node;
    if (!is_accumulated(q->l, n) || !code_knows(q, n) || q->at[n->id] < 0) {
        code_fault(q, "adds to an accumulator that has not been started here");
        return;
    }
    Operand acc = {q->at[n->id], code_width(q, n), code_type(n->dtype)};
    if (reduce_size(n) > 1) {
        Node *next[MAX_STATE];
        reduce_step(q->lk->k->c, n, next);
        Operand whole = code_spread(q, code_value(q, next[reduce_part(n)]), acc.n);
        code_add_from(q, DO_COPY, acc, whole);
        code_add(q, DO_COUNT, acc)->count = q->count[n->id];
        return;
    }
    Node *dot = update_value(s);
    const bool named = code_knows(q, dot) && q->l->named[dot->id];
    if (is_dot(q->l, dot) && !named && code_width(q, dot) == acc.n) {
        Operand terms = code_value(q, dot->src[0]);
        code_dots(q, dot, acc, terms, true);
        if (!s->term || s->last)
            code_add(q, DO_COUNT, acc)->count = q->count[n->id];
        return;
    }
    Operand x = code_spread(q, code_value(q, dot), acc.n);
    if (n->op == OP_SCAN) {
        Do *d = code_add_from(q, DO_TERM, acc, code_counter(q, n->src[1]));
        d->node = n;
        d->count = q->count[n->id];
    }
    Do *d = code_add_from(q, DO_UPDATE, acc, x);
    d->op = monoid_op((ingot_reduce_op)reduce_monoid(n));
    d->node = n;
    if (!s->term || s->last)
        code_add(q, DO_COUNT, acc)->count = q->count[n->id];
}

/* A chunk from a buffer to a place. */
static void bring(Build *q, Node *n, bool async)
{
    Node *from = n->src[2];
    if (from->op != OP_LOAD || from->nsrc != 3 || !code_buffer_is_known(q, from)) {
        code_fault(q, "there is no form for what is brought to a place");
        return;
    }
    int gate = node_is_const_i(from->src[1], 1) ? -1 : code_value(q, from->src[1]).at;
    const int whole = store_whole(n) ? code_value(q, store_whole(n)).at : -1;
    Operand to = code_value(q, n->src[3]), at = code_value(q, from->src[2]);
    Do *d = code_add_from(q, DO_BRING, (Operand){0, (int)store_chunk(n), code_type(n->dtype)}, to);
    d->in[1] = at.at;
    d->in[2] = gate;
    d->in[3] = whole;
    d->arg = linear_buffer(n)->arg.i;
    d->from = (int)linear_buffer(from)->arg.i;
    d->part = async;
    d->step = from->arg.i;
    d->stored = (int)elem_bytes(q->lk->k->args[d->arg].dtype);
}

/* Where the box begins is computed here: no statement says it. */
static void box(Build *q, Node *n, const Box *b)
{
    int *at = NEWN(q->a, int, 2 * b->rank); /* and the taps, or ends */
    q->again = true;
    for (int i = 0; i < b->rank; i++) {
        at[i] = code_value(q, b->at[i]).at;
        if (b->window || b->end[i])
            at[b->rank + i] = code_value(q, b->window ? b->tap[i] : b->end[i]).at;
    }
    Operand to = code_value(q, n->src[3]);
    q->again = false;
    Do *d = code_add_from(q, DO_BOX, (Operand){0, 1, code_type(n->dtype)}, to);
    d->operand = at;
    d->box = b;
    d->arg = b->place;
    d->stored = (int)elem_bytes(q->lk->k->args[d->arg].dtype);
}

static void loader(Build *q)
{
    OpenBlock b = {.nseen = q->nseen, .open = q->open, .counter = -1, .outside = q->c->n};
    code_add(q, DO_LOADER, (Operand){0, 1, INGOT_INDEX});
    vec_push(q->a, q->block, q->nblock, b);
}

/* Those that give end behind the last one. */
static void join(Build *q, const Stmt *s)
{
    Node *n = s->node;
    const Stmt *first = s;
    while (first > q->l->stmt && first[-1].kind == STMT_JOIN)
        first--;
    const bool last = s + 1 == q->l->stmt + q->l->n || s[1].kind != STMT_JOIN;
    if (!code_knows(q, n) || q->at[n->id] < 0 || !q->l->tile->cluster) {
        code_fault(q, "joins sums that have not been started here");
        return;
    }
    Do *d =
        code_add_from(q, DO_JOIN, (Operand){q->at[n->id], code_width(q, n), code_type(n->dtype)},
                      code_counter(q, q->l->tile->cluster));
    d->part = last;
    d->arg = (s - first) * d->n;
    d->from = q->l->tile->share;
}

static void token(Build *q, DoKind kind, Node *iteration)
{
    Operand none = {-1, 1, INGOT_INDEX};
    Operand at = iteration ? code_value(q, iteration) : none;
    code_add_from(q, kind, (Operand){0, 1, INGOT_INDEX}, at)->arg = q->l->tile->depth;
}

static void store(Build *q, const Stmt *s)
{
    const Tile *t = q->l->tile;
    Node *n = s->node;
    if (s->store == STORE_BOX) {
        box(q, n, box_of(q->l, n));
        return;
    }
    const bool turns = s->store == STORE_IN_TURN, lanes = turns || s->store == STORE_LANES;
    int skip = -1, w = lanes ? t->lanes : 1;
    if (!code_buffer_is_known(q, n))
        return;
    if (!q->lk->k->args[linear_buffer(n)->arg.i].written) {
        code_fault(q, "writes to an argument that the kernel only reads");
        return;
    }
    if ((turns && (store_turns(n) > MOST_APART || t->part)) || n->nsrc < 4) {
        code_fault(q, "there is no form for this store");
        return;
    }
    if (!node_is_const_i(n->src[1], 1)) {
        Operand gate = code_value(q, n->src[1]);
        if (gate.n > 1) {
            code_fault(q, "there is no form for a store with a gate of each lane");
            return;
        }
        skip = q->c->n;
        code_add_from(q, DO_SKIP, gate, gate);
    }
    if (s->store == STORE_CHUNK) {
        bring(q, n, s->async);
        if (skip >= 0)
            q->c->code[skip].to = q->c->n;
        return;
    }
    Operand at = code_address(q, n->src[3], lanes, false),
            x = code_spread(q, code_value(q, n->src[2]), w);
    int *values = turns ? NEWN(q->a, int, MOST_APART) : NULL;
    for (int i = 1; turns && i < store_turns(n); i++)
        values[i] = code_spread(q, code_value(q, n->src[3 + i]), w).at;
    Do *d = code_add_from(q, turns ? DO_STORE_IN_TURN : DO_STORE, x, at);
    d->in[1] = x.at;
    d->count = turns ? store_turns(n) : 1;
    d->operand = values;
    if (turns)
        values[0] = x.at;
    d->node = n;
    d->arg = linear_buffer(n)->arg.i;
    d->stored = (int)elem_bytes(q->lk->k->args[d->arg].dtype);
    d->part = lanes && t->part ? t->part : w;
    if (skip >= 0)
        q->c->code[skip].to = q->c->n;
}

static void statement(Build *q, const Stmt *s)
{
    Node *n = s->node;
    bool wanted = s->kind != STMT_PARTS && s->kind != STMT_END && s->kind != STMT_BARRIER &&
                  s->kind != STMT_PREFETCH && s->kind != STMT_COMMIT && s->kind != STMT_WAIT &&
                  s->kind != STMT_LOADER && s->kind != STMT_RELEASE && s->kind != STMT_DEPEND &&
                  s->kind != STMT_NEXT;
    bool counts = s->kind == STMT_LOOP || s->kind == STMT_CLAIM || s->kind == STMT_FILLED ||
                  s->kind == STMT_DONE;
    wanted = wanted && (n || (s->kind != STMT_CLAIM && s->kind != STMT_FILLED));
    if (wanted &&
        (!n || counts != (n->op == OP_RANGE) || (s->kind == STMT_STORE) != (n->op == OP_STORE))) {
        code_fault(q, "there is no form for this statement");
        return;
    }
    switch (s->kind) {
    case STMT_ITEM: return; /* work_item() */
    case STMT_LOOP: loop(q, s); return;
    case STMT_PARTS: parts(q); return;
    case STMT_END: end(q, n); return;
    case STMT_LET:
        let(q, n);
        if (code_knows(q, n) && q->l->fragment[n->id] && !q->l->tile->tc->lanes)
            code_tile(q, DO_TAKE, s->tile[0], n);
        return;
    case STMT_ACC:
        start(q, n);
        if (s->reduce == REDUCE_PRODUCTS && !q->l->tile->tc->lanes)
            code_tile(q, DO_TAKE, s->tile[0], n);
        return;
    case STMT_UPDATE:
        if (s->reduce == REDUCE_PRODUCTS)
            products(q, s);
        else
            update(q, s);
        return;
    case STMT_KEEP: keep(q, s); return;
    case STMT_STORE:
        if (s->store == STORE_FRAGMENT)
            store_fragment(q, s);
        else
            store(q, s);
        return;
    case STMT_PREFETCH: return; /* nothing is read */
    case STMT_NEXT: return;     /* whenever it begins, it waits */
    case STMT_DEPEND: code_add(q, DO_DEPEND, (Operand){0, 1, INGOT_INDEX}); return;
    case STMT_COMMIT: code_add(q, DO_COMMIT, (Operand){0, 1, INGOT_INDEX}); return;
    case STMT_WAIT: code_add(q, DO_WAIT, (Operand){0, 1, INGOT_INDEX})->arg = s->count; return;
    case STMT_BARRIER: {
        Do *d = code_add(q, DO_BARRIER, (Operand){0, 1, INGOT_INDEX});
        d->part = s->meets;
        d->arg = s->alone;
        return;
    }
    case STMT_JOIN: join(q, s); return;
    case STMT_FILL: /* passes have taken it */
    case STMT_OVERLAP: break;
    case STMT_LOADER: loader(q); return;
    case STMT_CLAIM: token(q, DO_CLAIM, n); return;
    case STMT_FILLED: token(q, DO_FILLED, n); return;
    case STMT_RELEASE: token(q, DO_RELEASE, n); return;
    case STMT_DONE: token(q, DO_DONE, NULL); return;
    case STMT_SCALE: scale(q, s); return;
    }
    code_fault(q, "there is no form for statements of kind %d", (int)s->kind);
}

/* ---- work items ------------------------------------------------------------------------------ */

/* The number of a work item is taken apart, the innermost axis first. */
static void work_item(Build *q)
{
    const Linear *l = q->l;
    q->c->nitem = 1;
    for (int i = 0; i < l->n && l->stmt[i].kind == STMT_ITEM; i++) {
        Node *range = l->stmt[i].node;
        q->again = true; /* before the statements, one of which may give the extent a name */
        Operand at = code_room(q, INGOT_INDEX, 1), extent = code_value(q, range->src[0]);
        q->again = false;
        const Bound bound = tile_bound(l->tile, range);
        code_add_from(q, DO_ITEM, at, extent)->one =
            is_apart(l->tile, range) &&
            (!q->lk->group || bound == BOUND_GRID || bound == BOUND_NOT);
        open_counter(q, range, linear_range_name(l->tile, range), at.at);
        q->c->nitem = sat_mul(q->c->nitem, range->src[0]->hi);
    }
    code_add(q, DO_ITEM_IS, (Operand){0, 1, INGOT_INDEX});
}

/* ---- kernels --------------------------------------------------------------------------------- */

static void loop_nest(Build *q, int number)
{
    const Linear *l = q->l = &q->lk->tile[number];
    q->tile = number;
    q->at = NEWN(q->a, int, l->nknown + 1);
    q->count = NEWN(q->a, int, l->nknown + 1);
    q->kept = NEWN(q->a, int, l->nknown + 1);
    q->holds = NEWN(q->a, int, l->nknown + 1);
    memset(q->at, -1, (l->nknown + 1) * sizeof *q->at);
    memset(q->kept, -1, (l->nknown + 1) * sizeof *q->kept);
    memset(q->counter, -1, sizeof q->counter);
    q->nseen = q->nblock = 0;
    q->open = NULL;
    int at = 0;
    const char *wrong = linear_verify(q->a, l, q->lk->k, &at);
    for (int i = -1; i < l->n && !q->c->fault; i++) {
        StmtPlace p = {.stmt = i < 0 ? NULL : &l->stmt[i], .tile = number, .number = i};
        q->stmt = q->c->nplace;
        p.open = q->open;
        vec_push(q->a, q->c->place, q->c->nplace, p);
        if (wrong && i == at)
            code_fault(q, "%s", wrong);
        if (i < 0) {
            if (q->lk->items && number)
                code_fault(q, "a work item's program has several loop nests");
            if (q->lk->items)
                work_item(q);
        } else if (l->stmt[i].kind != STMT_ITEM) {
            statement(q, &l->stmt[i]);
            q->c->place[q->stmt].open = q->open;
        }
    }
    if (q->nblock)
        code_fault(q, "a loop is not ended");
}

LinearCode *linear_code(Arena *a, const LinearKernel *lk)
{
    LinearCode *c = NEW(a, LinearCode);
    Build q = {.a = a, .lk = lk, .c = c};
    c->var = code_room(&q, INGOT_INDEX, 2 * lk->k->nvar + 2).at;
    c->scalar = code_room(&q, INGOT_F32, 4 * lk->k->nscalar + 4).at;
    c->tiles = code_room(&q, INGOT_INDEX, MAX_TILES).at;
    c->begin = code_room(&q, INGOT_INDEX, 1).at;
    c->end = code_room(&q, INGOT_INDEX, 1).at;
    c->number = code_room(&q, INGOT_INDEX, 1).at;
    for (int i = 0; i < lk->n && !c->fault; i++)
        loop_nest(&q, i);
    c->frame = arena_alloc(a, (size_t)c->bytes);
    for (int i = 0; i < q.nconstant; i++) {
        const struct Constant *k = &q.constant[i];
        ingot_dtype d = k->node->dtype, h = code_type(d);
        unsigned char *to = c->frame + k->at, stored[16];
        store_const(k->node, stored);
        for (int j = 0; j < k->n; j++)
            alu_cast(h, d, 0, 1, to + (size_t)j * elem_bytes(h), stored);
    }
    return c;
}

LinearKernel *linear_kernel(Arena *a, const Lowered *l)
{
    const Tiles *tiles = &l->tiles;
    LinearKernel *lk = NEW(a, LinearKernel);
    *lk = (LinearKernel){
        .arena = a, .k = tiles->k, .n = tiles->n, .narg = l->narg, .items = l->items};
    lk->tile = NEWN(a, Linear, tiles->n + 1);
    for (int i = 0; i < tiles->n; i++) {
        lk->tile[i] = l->linear[i];
        lk->group = lk->items ? tiles->tile[i].items : 0;
        const Node *across = tiles->tile[i].across;
        lk->warp = across ? (int)across->hi + 1 : 1;
        lk->tc = lk->group && tiles->tile[i].tc ? tiles->tile[i].tc : NULL;
        lk->warp = lk->tc ? lk->tc->lanes : lk->warp;
        lk->loader = lk->group && tiles->tile[i].box;
        lk->cluster = lk->group ? tile_cluster(&tiles->tile[i]) : 1;
        lk->ranks = lk->group && tiles->tile[i].ranks;
        lk->parts = tiles->tile[i].parts > lk->parts ? tiles->tile[i].parts : lk->parts;
    }
    return lk;
}
