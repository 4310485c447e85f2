/* places_bulk.c - places that bulk copies fill (STAGE .. move tma): a box of the buffer at once, as
 * its axes say.
 *
 * Such a place has runs of 128 bytes (Tc.run: some units 64), of the axis that lies side by side in
 * the buffer:
 *
 *     [its runs][the other axes, that with the longest stride outermost][run]
 *
 * What lies beyond the end of an axis is zero, so MASK needs no gate.  In a run the copies swap its
 * eight chunks of 16 bytes (the swizzle of 128 bytes), and the matrix unit swaps them back: nobody
 * else reads there, and addresses here do not say so. */
#include "lower.h"

typedef struct {
    Box b;
    int root[MAX_BOX], n;
} BoxAxes;

static const char *refuse(Lower *q, const Box *b, const char *what)
{
    return arena_printf(q->a, "STAGE move tma: argument %d %s", b->arg, what);
}

/* The kernel's axes that the load moves with, and how far they go in the buffer: that which lies
 * side by side is first. */
static const char *find_axes(Lower *q, const Piece *p, Node *n, BoxAxes *m)
{
    const KernelArg *a = &q->k->args[m->b.arg];
    Node *at = layout_offset(q->c, &a->layout, a->rank, a->dims, n->src + first_coord(n));
    Node *zero = idx(q->c, 0), *first = at;
    if (!node_is_const_i(n->src[1], 1))
        return refuse(q, &m->b, "is not read everywhere");
    for (int i = 0; i < q->k->naxis; i++) {
        Node *range = q->k->axes[i].range;
        int64_t stride, extent = range->src[0]->hi; /* of run time: at most */
        if ((!p->at[i] && !p->sum[i].split) || !depends_on(n, range))
            continue;
        first = substitute(q->c, first, 1, &range, &zero);
        if (extent == 1)
            continue;
        if (!range_stride(q->c, at, range, &stride) || stride < 1)
            return refuse(q, &m->b, "has no constant stride along each axis");
        if (m->n == MAX_BOX)
            return refuse(q, &m->b, "moves with too many axes");
        int to = m->n++;
        for (; to > 0 && m->b.stride[to - 1] > stride; to--) {
            m->b.stride[to] = m->b.stride[to - 1];
            m->b.extent[to] = m->b.extent[to - 1];
            m->root[to] = m->root[to - 1];
        }
        m->b.stride[to] = stride;
        m->b.extent[to] = extent;
        m->root[to] = i;
    }
    for (int i = 0; i < m->n; i++) {
        const Axis *axis = &q->k->axes[m->root[i]];
        if ((axis->reduced || axis->staged) && range_extent(axis->range) < 0)
            m->b.end[i] = idx_max(q->c, axis->range->src[0], idx(q->c, 1)); /* drivers refuse 0 */
    }
    m->b.rank = m->n;
    return idx_value(first, &m->b.offset) ? NULL : refuse(q, &m->b, "begins nowhere");
}

/* What the copies take: lines of 16 bytes, boxes of 256 elements along an axis. */
static const char *judge(Lower *q, const BoxAxes *m, int64_t bytes)
{
    const Box *b = &m->b;
    if (b->rank < 2 || b->stride[0] != 1)
        return refuse(q, b, "has no axis that lies side by side, or no other");
    if (b->size[0] * bytes % q->nest->tc->run)
        return refuse(q, b, arena_printf(q->a, "is no whole runs of %d bytes", q->nest->tc->run));
    if (b->offset * bytes % BOX_LINE)
        return refuse(q, b, "does not begin at a multiple of 16 bytes");
    for (int i = 1; i < b->rank; i++)
        if (b->stride[i] * bytes % BOX_LINE || b->size[i] > BOX_MOST)
            return refuse(q, b, "has lines that are no multiple of 16 bytes, or too many of them");
    return NULL;
}

/* Of a load that reads another argument's place: the block that it moves with. */
static Stage stage_of(const Lower *q, const Piece *p, Node *n, int number)
{
    const Nest *nest = q->nest;
    Stage s = nest->stage[number];
    const Node *block = p->at[s.axis];
    for (int i = 0; i < nest->naxis && n->src[0]->arg.i != s.arg; i++)
        if (p->at[i] == block && depends_on(n, q->k->axes[nest->axis[i].root].range))
            s.axis = i;
    return s;
}

static bool boxes_alike(const Box *x, const Box *y)
{
    bool alike = x->rank == y->rank && x->offset == y->offset && x->count == y->count &&
                 x->elements == y->elements && x->once == y->once && !x->window && !y->window;
    for (int i = 0; i < x->rank && alike; i++)
        alike = x->at[i] == y->at[i] && x->end[i] == y->end[i] && x->extent[i] == y->extent[i] &&
                x->stride[i] == y->stride[i] && x->size[i] == y->size[i];
    return alike;
}

Node *load_through_box(Lower *q, Piece *p, Node *n, Node *load)
{
    const int number = nest_place(q->nest, q->k, q->end, n);
    if (number < 0 || !p->t.ahead)
        return load;
    const Stage of = stage_of(q, p, n, number), *s = &of;
    BoxAxes m = {.b = {.arg = s->arg, .place = q->nest->k->narg + number}};
    const char *why = find_axes(q, p, n, &m);
    Box *b = &m.b;
    for (int i = 0; i < m.n; i++)
        b->size[i] = place_size(q, p, s, m.root[i]);
    why = why ? why : judge(q, &m, dtype_info[n->dtype].bytes);
    if (why) {
        BoxAxes w = {.b = {.arg = b->arg, .place = b->place}, .n = 2};
        if (window_box(q, p, s, n, &w.b, &w.root[1], &w.root[0])) {
            m = w;
            why = NULL;
        }
    }
    if (why) {
        p->t.box[number].why = why;
        return load;
    }
    const int64_t elements = tc_run(q->nest->tc);
    Node *run = idx(q->c, elements), *own = place_part(q, p, s, m.root[0], true), *at;
    int64_t pitch = elements;
    at = idx_mod(q->c, own, run);
    for (int i = 1; i < m.n; i++) {
        Node *x = place_part(q, p, s, m.root[i], true);
        at = idx_add(q->c, at, idx_mul(q->c, x, idx(q->c, pitch)));
        pitch = sat_mul(pitch, b->size[i]);
    }
    b->count = b->size[0] / elements;
    b->size[0] = elements;
    b->elements = sat_mul(pitch, b->count);
    at = idx_add(q->c, at, idx_mul(q->c, idx_div(q->c, own, run), idx(q->c, pitch)));
    Node *reads = p->at[s->axis], *depth = idx(q->c, p->t.depth), *slot = idx(q->c, b->elements);
    b->once = !s->depth;
    if (!b->once) {
        const bool begun = p->block && reads == p->block;
        Node *iteration = begun ? p->t.along : reads;
        at = idx_add(q->c, at, idx_mul(q->c, idx_mod(q->c, iteration, depth), slot));
        p->at[s->axis] = begun ? idx_add(q->c, p->left_out, p->t.ahead) : p->t.ahead;
    }
    for (int i = 0; i < m.n && !b->window; i++)
        b->at[i] = place_part(q, p, s, m.root[i], false);
    if (b->window) { /* for the iteration that is filled */
        (void)window_box(q, p, s, n, b, &m.root[1], &m.root[0]);
        b->size[0] = elements;
    }
    p->at[s->axis] = reads;
    const Box *made = &p->t.box[number];
    if (made->elements && n->src[0]->arg.i != s->arg && !boxes_alike(made, b)) {
        p->t.box[number].why = refuse(q, b, "has not what another one of its buffer reads");
        return load;
    }
    p->t.box[number] = *b;
    q->place[number] = sat_mul(b->elements, b->once ? 1 : p->t.depth);
    Arg arg = {.i = b->arg};
    Node *buffer = node_make(q->c, OP_BUFFER, n->dtype, arg, 0, NULL, 0, NULL);
    Node *to = b->once ? idx(q->c, 0) : idx_mul(q->c, idx_mod(q->c, p->t.ahead, depth), slot);
    Node *end[] = {place_store(q, number, node_bool(q->c, true), buffer, to), p->t.ahead};
    end[0] = node_make(q->c, OP_STORE, end[0]->dtype, (Arg){.i = b->elements}, (int)end[0]->nsrc,
                       end[0]->src, 0, NULL);
    Node *filled = place_fill(q, end, b->once ? 1 : 2);
    return place_load(q, number, &filled, 1, at);
}
