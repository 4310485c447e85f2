/* join_products.c - products of one operand by several weights are one product.
 *
 *     x wq + bq,  x wk + bk,  x wv + bv
 *         -> x [wq wk wv] + [bq bk bv], of which each is a part
 *
 * Where a kernel takes as long to begin as to compute, and more columns keep more processors at
 * work, one product is done before three are.  What follows on all of them alike (a bias, a cast)
 * is done of the whole.  Nothing else may be computed of one alone: its results would have to be
 * stored once more before a matrix unit multiplies them. */
#include <string.h>

#include "keys.h"
#include "rewrite.h"

enum { MOST = 8 };

/* A sum of products by weights that vary along `axis` of the products, where the other operand does
 * not. */
typedef struct {
    Node *sum, *x, *w; /* operands: as large as they are along each axis, or 1 */
    int axis, side;    /* which factor w is */
    Node *end;         /* what follows on it, as on the others */
    int end_axis;
    int group, first; /* which result of the joint axis is its first */
} JointProduct;

typedef struct {
    Node *end; /* what became of it; NULL: not yet */
} JointGroup;

typedef struct {
    Context *c;
    Arena *a;
    Node **user; /* of node id: from first[id] on */
    int *first, *count;
    JointProduct *part;
    int npart, ngroup;
    JointGroup *group;
    Map of; /* id + 1 of an end -> place in part, + 1 */
} Join;

static Node *const *users(const Join *q, const Node *n, int *count)
{
    *count = q->count[n->id];
    return q->user + q->first[n->id];
}

static void find_users(Join *q, int n, Node *const *nodes)
{
    uint32_t most = q->c->nnode;
    int all = 0;
    q->first = NEWN(q->a, int, most + 1);
    q->count = NEWN(q->a, int, most + 1);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < n; i++)
            for (uint32_t j = 0; j < nodes[i]->nsrc; j++) {
                const uint32_t id = nodes[i]->src[j]->id;
                if (turn)
                    q->user[q->first[id] + q->count[id]] = nodes[i];
                q->count[id]++;
            }
        if (turn)
            break;
        for (uint32_t id = 0; id < most; id++) {
            q->first[id] = all;
            all += q->count[id];
            q->count[id] = 0;
        }
        q->user = NEWN(q->a, Node *, all + 1);
    }
}

static bool is_product_sum(const Node *n)
{
    return n->nsrc == 1 && is_sum_of_products(n);
}

/* The only axis of results along which w varies and x does not; -1: there are several, or none. */
static int free_axis(const Node *product, const Node *x, const Node *w, unsigned reduced)
{
    int axis = -1;
    if (x->rank != product->rank || w->rank != product->rank)
        return -1;
    for (int i = 0; i < product->rank; i++) {
        if (reduced >> i & 1 || idx_is(w->shape[i], 1))
            continue;
        if (axis >= 0 || !idx_is(x->shape[i], 1) || !idx_value(w->shape[i], NULL))
            return -1;
        axis = i;
    }
    return axis;
}

static void find_sums(Join *q, int n, Node *const *nodes)
{
    for (int i = 0; i < n; i++) {
        Node *t = nodes[i], *product = t->nsrc ? t->src[0] : NULL;
        int count;
        if (!is_product_sum(t) || !dtype_is_float(t->dtype) ||
            (users(q, product, &count), count > 1))
            continue;
        for (int side = 0; side < 2; side++) {
            JointProduct p = {.sum = t, .end = t, .side = side, .group = -1};
            p.x = compact_of(product->src[1 - side]);
            p.w = compact_of(product->src[side]);
            if (!is_constant(p.w, 0) || is_constant(p.x, 0))
                continue;
            p.axis = p.end_axis = free_axis(product, p.x, p.w, reduce_axes(t));
            if (p.axis >= 0)
                vec_push(q->a, q->part, q->npart, p);
        }
    }
}

/* Are they of the same form, but for their sizes along the axis? */
static bool alike(const Node *a, const Node *b, int axis)
{
    bool same = a->op == b->op && a->dtype == b->dtype && a->rank == b->rank && a->nsrc == b->nsrc;
    for (int i = 0; i < a->rank && same; i++)
        same = i == axis ? idx_value(b->shape[i], NULL) : a->shape[i] == b->shape[i];
    return same;
}

static Node *size_before(Context *c, const Node *n, int axis)
{
    Node *size = idx(c, 1);
    for (int i = 0; i < axis; i++)
        size = idx_mul(c, size, n->shape[i]);
    return size;
}

/* Which axis of b is this one of a, where one is the other reshaped; -1: none. */
static int same_axis(Context *c, const Node *a, int axis, const Node *b)
{
    Node *before = size_before(c, a, axis);
    for (int i = 0; i < b->rank; i++)
        if (b->shape[i] == a->shape[axis] && size_before(c, b, i) == before)
            return i;
    return -1;
}

/* Which operand of an elementwise node follows on `from`, where the other one is constant; -1:
 * none. */
static int followed(const Node *n, const Node *from)
{
    if (n->nsrc != 2 ||
        (n->op != OP_ADD && n->op != OP_SUB && n->op != OP_MUL && n->op != OP_DIV) ||
        n->src[0] == n->src[1])
        return -1;
    int at = n->src[1] == from;
    return is_constant(n->src[1 - at], 0) ? at : -1;
}

/* The next node that follows on all parts of a group alike becomes their end. */
static bool follow(Join *q, JointProduct *const *part, int n)
{
    Node *next[MOST];
    int axis = -1, at = -1;
    for (int i = 0; i < n; i++) {
        int count;
        Node *const *user = users(q, part[i]->end, &count);
        if (count != 1)
            return false;
        next[i] = user[0];
    }
    const Node *t = next[0];
    if (t->op == OP_CAST && !t->arg.i)
        axis = part[0]->end_axis;
    else if (t->op == OP_RESHAPE)
        axis = same_axis(q->c, part[0]->end, part[0]->end_axis, t);
    else if ((at = followed(t, part[0]->end)) >= 0)
        axis = part[0]->end_axis;
    if (axis < 0)
        return false;
    for (int i = 0; i < n; i++) {
        if (!alike(t, next[i], axis) ||
            next[i]->arg.bits != (t->op == OP_RESHAPE ? next[i]->arg.bits : t->arg.bits))
            return false;
        if (t->op == OP_RESHAPE &&
            same_axis(q->c, part[i]->end, part[i]->end_axis, next[i]) != axis)
            return false;
        if (at >= 0 && followed(next[i], part[i]->end) != at)
            return false;
        const Node *k = at >= 0 ? compact_of(next[i]->src[1 - at]) : NULL;
        const Node *same = at >= 0 ? compact_of(t->src[1 - at]) : NULL;
        for (int d = 0; k && d < k->rank; d++)
            if (k->rank != t->rank || same->rank != t->rank ||
                (d != axis && k->shape[d] != same->shape[d]))
                return false;
    }
    for (int i = 0; i < n; i++) {
        part[i]->end = next[i];
        part[i]->end_axis = axis;
    }
    return true;
}

/* Moved and cast it is multiplied, as an operand of sums, and nothing else. */
static bool only_multiplied(const Join *q, const Node *n, int depth)
{
    int count, more;
    Node *const *user = users(q, n, &count);
    if (!count || depth > DEPTH_FEW)
        return false;
    for (int i = 0; i < count; i++) {
        Node *t = user[i];
        if (is_move(t) || t->op == OP_CAST) {
            if (!only_multiplied(q, t, depth + 1))
                return false;
            continue;
        }
        /* a scale that is the same for all leaves the sum, or is stored anyway */
        if (t->op == OP_MUL && (uniform(t->src[0]) || uniform(t->src[1]))) {
            if (!only_multiplied(q, t, depth + 1))
                return false;
            continue;
        }
        Node *const *of = t->op == OP_MUL ? users(q, t, &more) : NULL;
        if (!of || more != 1 || !is_product_sum(of[0]))
            return false;
    }
    return true;
}

static void find_groups(Join *q)
{
    for (int i = 0; i < q->npart; i++) {
        JointProduct *p = &q->part[i], *member[MOST];
        int n = 0, at = 0;
        if (p->group >= 0)
            continue;
        for (int j = i; j < q->npart && n < MOST; j++) {
            JointProduct *o = &q->part[j];
            bool known = o->group >= 0;
            for (int m = 0; m < n; m++)
                known |= member[m]->sum == o->sum;
            if (!known && o->x == p->x && o->axis == p->axis && o->side == p->side &&
                o->sum->arg.bits == p->sum->arg.bits &&
                alike(p->sum->src[0], o->sum->src[0], p->axis) && alike(p->w, o->w, p->axis))
                member[n++] = o;
        }
        if (n < 2)
            continue;
        while (follow(q, member, n))
            ;
        bool good = true;
        for (int m = 0; m < n; m++)
            good &= only_multiplied(q, member[m]->end, 0);
        for (int m = 0; m < n; m++) {
            int64_t size = 0;
            if (!good) { /* as if it had not been tried */
                member[m]->end = member[m]->sum;
                member[m]->end_axis = member[m]->axis;
                continue;
            }
            (void)idx_value(member[m]->w->shape[p->axis], &size);
            member[m]->group = q->ngroup;
            member[m]->first = at;
            at += (int)size;
            map_put(&q->of, (uint64_t)member[m]->end->id + 1,
                    (void *)(uintptr_t)(member[m] - q->part + 1));
        }
        if (good)
            vec_push(q->a, q->group, q->ngroup, ((JointGroup){NULL}));
    }
}

/* ---- what becomes of them -------------------------------------------------------------------- */

/* Constants one after the other, in front of what moves and widens all of them alike. */
static Node *concat_constants(Context *c, int n, Node *const *k, int axis)
{
    Node *below[MOST], *dims[INGOT_MAX_RANK];
    const Node *t = k[0];
    bool same = (t->op == OP_CAST && !t->arg.i) || t->op == OP_RESHAPE || t->op == OP_PERMUTE;
    int before = axis;
    if (t->op == OP_PERMUTE)
        before = ((const Perm *)t->arg.ptr)->axis[axis];
    for (int i = 0; i < n && same; i++) {
        same = k[i]->op == t->op && k[i]->dtype == t->dtype && k[i]->nsrc == t->nsrc;
        below[i] = same ? k[i]->src[0] : NULL;
        if (same && t->op == OP_RESHAPE) {
            const int at = same_axis(c, k[i], axis, below[i]);
            before = i ? before : at;
            same = at >= 0 && at == before;
        }
        same = same && alike(below[0], below[i], before) &&
               (t->op == OP_RESHAPE || k[i]->arg.bits == t->arg.bits);
    }
    if (!same)
        return ingot_concat(c, n, (ingot_tensor *const *)k, axis);
    Node *joint = concat_constants(c, n, below, before);
    if (t->op == OP_CAST)
        return ingot_cast(c, joint, (ingot_dtype)t->dtype);
    if (t->op == OP_PERMUTE) {
        int perm[INGOT_MAX_RANK];
        for (int i = 0; i < t->rank; i++)
            perm[i] = ((const Perm *)t->arg.ptr)->axis[i];
        return ingot_permute(c, joint, perm);
    }
    for (int i = 0; i < t->rank; i++)
        dims[i] = i == axis ? joint->shape[before] : t->shape[i];
    return ingot_reshape(c, joint, t->rank, dims);
}

static Node *spread(Context *c, Node *n, const Node *like, int axis, Node *size)
{
    Node *dims[INGOT_MAX_RANK];
    for (int i = 0; i < like->rank; i++)
        dims[i] = i == axis ? size : like->shape[i];
    return ingot_expand(c, n, like->rank, dims);
}

/* What follows on all sums, of the joint one. */
static Node *joint_end(Join *q, Node *y, JointProduct *const *part, int n, const Node *end,
                       int *axis)
{
    Context *c = q->c;
    if (end == part[0]->sum) {
        *axis = part[0]->axis;
        return y;
    }
    /* the nodes between the sum and its end, as found before */
    Node *at[MOST];
    int from = part[0]->axis;
    for (int i = 0; i < n; i++)
        at[i] = part[i]->sum;
    while (at[0] != end) {
        int count;
        Node *next[MOST], *k[MOST];
        for (int i = 0; i < n; i++)
            next[i] = users(q, at[i], &count)[0];
        const Node *t = next[0];
        if (t->op == OP_CAST) {
            y = ingot_cast(c, y, (ingot_dtype)t->dtype);
        } else if (t->op == OP_RESHAPE) {
            Node *dims[INGOT_MAX_RANK];
            const int to = same_axis(c, at[0], from, t);
            for (int i = 0; i < t->rank; i++)
                dims[i] = i == to ? y->shape[from] : t->shape[i];
            y = ingot_reshape(c, y, t->rank, dims);
            from = to;
        } else {
            const int side = followed(t, at[0]);
            bool varies = false;
            for (int i = 0; i < n; i++) {
                k[i] = compact_of(next[i]->src[1 - side]);
                varies |= !idx_is(k[i]->shape[from], 1) || k[i] != k[0];
            }
            for (int i = 0; i < n && varies; i++)
                if (idx_is(k[i]->shape[from], 1) && !idx_is(next[i]->shape[from], 1))
                    k[i] = spread(c, k[i], k[i], from, next[i]->shape[from]);
            Node *both[2] = {y, y};
            both[1 - side] =
                spread(c, varies ? concat_constants(c, n, k, from) : k[0], y, from, y->shape[from]);
            y = node_make(c, (Op)t->op, (ingot_dtype)t->dtype, t->arg, 2, both, y->rank, y->shape);
        }
        for (int i = 0; i < n; i++)
            at[i] = next[i];
    }
    *axis = from;
    return y;
}

static Node *joint_product(Rewrite *r, Join *q, int group)
{
    Context *c = q->c;
    JointProduct *part[MOST] = {NULL};
    Node *w[MOST], *both[2];
    int n = 0, axis;
    for (int i = 0; i < q->npart; i++)
        if (q->part[i].group == group)
            part[n++] = &q->part[i];
    const JointProduct *p = part[0];
    for (int i = 0; i < n; i++)
        w[i] = rewritten(r, part[i]->w);
    Node *weights = concat_constants(c, n, w, p->axis), *x = rewritten(r, p->x);
    both[p->side] = spread(c, weights, p->sum->src[0], p->axis, weights->shape[p->axis]);
    both[1 - p->side] = spread(c, x, p->sum->src[0], p->axis, weights->shape[p->axis]);
    Node *y = ingot_reduce(c, INGOT_REDUCE_ADD, ingot_mul(c, both[0], both[1]), reduce_axes(p->sum),
                           true);
    return joint_end(q, y, part, n, p->end, &axis);
}

static Node *joined_part(Rewrite *r, Node *n)
{
    Join *q = r->user;
    const int at = (int)(uintptr_t)map_get(&q->of, (uint64_t)r->visiting->id + 1);
    if (!at)
        return n;
    const JointProduct *p = &q->part[at - 1];
    JointGroup *g = &q->group[p->group];
    if (!g->end)
        g->end = joint_product(r, q, p->group);
    Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    for (int i = 0; i < n->rank; i++) {
        begin[i] = idx(q->c, i == p->end_axis ? p->first : 0);
        size[i] = n->shape[i];
    }
    Node *y = ingot_shrink(q->c, g->end, begin, size);
    return ingot_is_poison(y) ? n : y;
}

bool join_products(Context *c)
{
    Join q = {.c = c, .a = arena_new()};
    int n;
    Node **nodes = graph_nodes(q.a, c, &n);
    find_users(&q, n, nodes);
    find_sums(&q, n, nodes);
    find_groups(&q);
    Rewrite r = {.c = c, .a = q.a, .apply = joined_part, .user = &q};
    bool any = q.ngroup && rewrite_pass(&r);
    map_free(&q.of);
    arena_free(q.a);
    return any;
}
