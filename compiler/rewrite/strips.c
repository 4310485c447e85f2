/* strips.c - a value that is made in strips along one axis, of which each is finished before the
 * next begins.
 *
 *     relu(y + c), y[first(i)..] = a(i)   ->   z, z[first(i)..] = relu(a(i) + c[first(i)..])
 *
 * What it takes to make a strip stays near while it is made; the same memory serves the next one.
 * Elementwise readers, and what only names the axes otherwise, go into the strips: what is stored
 * are their results, in one buffer, each as soon as it can be.
 *
 * Until all readers are known, such a value stands in the graph as an update of zeros by one strip,
 * in which a counter stands that nothing counts yet.  In the end those that are made together, and
 * that are still read, become the results of a loop (loop_parts.c). */
#include <string.h>

#include "rewrite.h"

Node *concat_of(Context *c, int n, Node *const *part, int axis)
{
    Node *dims[INGOT_MAX_RANK];
    for (int i = 0; i < part[0]->rank; i++)
        dims[i] = part[0]->shape[i];
    for (int i = 1; i < n; i++)
        dims[axis] = idx_add(c, dims[axis], part[i]->shape[axis]);
    return node_make(c, OP_CONCAT, (ingot_dtype)part[0]->dtype, (Arg){.i = axis}, n, part,
                     part[0]->rank, dims);
}

Node *strips(Rewrite *r, const Strips *s)
{
    Context *c = r->c;
    Node *dims[INGOT_MAX_RANK], *part = s->part;
    for (int i = 0; i < part->rank; i++)
        dims[i] = i == s->axis ? s->size : part->shape[i];
    const ingot_dtype d = (ingot_dtype)part->dtype;
    Node *zeros = uniform_make(c, node_const_zero(c, d), part->rank, dims),
         *y = part_update(c, zeros, part, s->axis, s->first);
    Strips *kept = NEW(r->a, Strips);
    *kept = *s;
    kept->oldest = s->oldest ? s->oldest : y->id;
    map_put(&r->strips, (uint64_t)y->id + 1, kept);
    return y;
}

static const Strips *strips_of(const Rewrite *r, const Node *n)
{
    return n->op == OP_UPDATE ? map_get(&r->strips, (uint64_t)n->id + 1) : NULL;
}

static Node *size_before(Context *c, const Node *n, int axis)
{
    Node *size = idx(c, 1);
    for (int i = 0; i < axis; i++)
        size = idx_mul(c, size, n->shape[i]);
    return size;
}

/* Which axis of what is moved the strips lie along; -1: none. */
static int axis_after(Context *c, const Node *move, int axis)
{
    const Node *x = move->src[0];
    Node *before = size_before(c, x, axis);
    for (int i = 0; i < move->rank; i++) {
        if (move->op == OP_PERMUTE && ((const Perm *)move->arg.ptr)->axis[i] == axis)
            return i;
        if (move->op == OP_RESHAPE && move->shape[i] == x->shape[axis] &&
            size_before(c, move, i) == before)
            return i;
    }
    return -1;
}

static Node *moved_strip(Context *c, const Node *move, Node *x, int axis, Node *size)
{
    Node *dims[INGOT_MAX_RANK];
    int perm[INGOT_MAX_RANK];
    for (int i = 0; i < move->rank; i++) {
        perm[i] = move->op == OP_PERMUTE ? ((const Perm *)move->arg.ptr)->axis[i] : i;
        dims[i] = move->shape[i];
    }
    if (move->op == OP_PERMUTE)
        return ingot_permute(c, x, perm);
    dims[axis] = size;
    return ingot_reshape(c, x, move->rank, dims);
}

/* x where a strip lies. */
static Node *strip_of(const Rewrite *r, Node *x, const Strips *s)
{
    Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    const Strips *own = strips_of(r, x);
    if (own && own->oldest == s->oldest && own->axis == s->axis)
        return own->part;
    for (int d = 0; d < x->rank; d++) {
        begin[d] = d == s->axis ? s->first : idx(r->c, 0);
        size[d] = d == s->axis ? s->part->shape[d] : x->shape[d];
    }
    return ingot_shrink(r->c, x, begin, size);
}

void find_summed(Rewrite *r, int n, Node *const *nodes)
{
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; nodes[i]->op == OP_REDUCE && k < reduce_size(nodes[i]); k++)
            for (const Node *x = nodes[i]->src[k]; x; x = x->src[0]) {
                map_put(&r->summed, (uint64_t)x->id + 1, (void *)1);
                if (op_info[x->op].cls != MOVE || x->op == OP_CONCAT)
                    break;
            }
}

static bool is_summed(Rewrite *r, Node *n)
{
    const Node *was = node_before(r, n);
    return was && map_get(&r->summed, (uint64_t)was->id + 1);
}

static bool cone_has_summed(Rewrite *r, const Node *n, Map *seen)
{
    bool any = false;
    for (uint32_t i = 0; i < n->nsrc && !any; i++) {
        Node *x = n->src[i];
        if (map_get(seen, (uint64_t)x->id + 1))
            continue;
        map_put(seen, (uint64_t)x->id + 1, (void *)1);
        any = is_summed(r, x) ||
              ((op_is_alu(x->op) || op_info[x->op].cls == MOVE) && cone_has_summed(r, x, seen));
    }
    return any;
}

bool reads_summed(Rewrite *r, const Node *n)
{
    Map seen = {0};
    bool any = cone_has_summed(r, n, &seen);
    map_free(&seen);
    return any;
}

/* What a sum reads too is there as a whole before its other readers begin. */
static const Strips *comes_in_strips(const Rewrite *r, const Node *n, uint32_t i)
{
    const bool whole = map_get(&r->summed, (uint64_t)r->visiting->src[i]->id + 1);
    return whole ? NULL : strips_of(r, n->src[i]);
}

/* Is it made of all strips of this loop? Then it cannot be made in the loop. */
static bool reads_all(const Rewrite *r, Node *n, const Strips *s, Map *seen)
{
    const Strips *own = strips_of(r, n);
    if (own && own->oldest == s->oldest)
        return true;
    if (n->id < s->oldest || map_get(seen, (uint64_t)n->id + 1))
        return false;
    map_put(seen, (uint64_t)n->id + 1, (void *)1);
    bool any = false;
    for (uint32_t i = 0; i < n->nsrc && !any; i++)
        any = reads_all(r, n->src[i], s, seen);
    return any;
}

/* The newest of the strips that n reads, which those before it are there for as a whole; NULL:
 * there are none, or not all of n can be made with them. */
static const Strips *strips_below(const Rewrite *r, const Node *n)
{
    const Strips *s = NULL;
    Map seen = {0};
    for (uint32_t i = 0, id = 0; i < n->nsrc; i++) {
        const Strips *own = comes_in_strips(r, n, i);
        if (own && n->src[i]->id >= id) {
            s = own;
            id = n->src[i]->id;
        }
    }
    for (uint32_t i = 0; i < n->nsrc && s; i++) {
        const Strips *own = strips_of(r, n->src[i]);
        const bool same = own && own->oldest == s->oldest && own->axis == s->axis;
        if (n->src[i]->dtype != INGOT_INDEX && !same && reads_all(r, n->src[i], s, &seen))
            s = NULL;
    }
    map_free(&seen);
    return s;
}

Node *in_strips(Rewrite *r, Node *n)
{
    Context *c = r->c;
    const bool moves = n->op == OP_RESHAPE || n->op == OP_PERMUTE;
    const bool alu = op_is_alu(n->op) && n->op != OP_CUSTOM && n->dtype != INGOT_INDEX;
    const Strips *s = (moves || alu) && n->nsrc ? strips_below(r, n) : NULL;
    Node *src[MAX_ALU_SRC];
    if (!s || (alu && n->nsrc > MAX_ALU_SRC))
        return NULL;
    Strips now = *s;
    now.axis = moves ? axis_after(c, n, s->axis) : s->axis;
    if (now.axis < 0)
        return NULL;
    if (moves) {
        now.part = moved_strip(c, n, s->part, now.axis, s->part->shape[s->axis]);
    } else {
        for (uint32_t k = 0; k < n->nsrc; k++)
            src[k] = strip_of(r, n->src[k], s);
        now.part = node_make(c, (Op)n->op, (ingot_dtype)n->dtype, n->arg, (int)n->nsrc, src,
                             n->rank, src[0]->shape);
    }
    return strips(r, &now);
}

/* ---- the loops ------------------------------------------------------------------------------- */

/* All values that are made together. */
typedef struct {
    int n;
    Node **update, **made; /* made: NULL: not yet */
} StripLoop;

void strip_loops(const Rewrite *r, int n, Node *const *nodes, Map *loops)
{
    Map of = {0}; /* by their first value */
    for (int i = 0; i < n; i++) {
        const Strips *s = strips_of(r, nodes[i]);
        if (!s)
            continue;
        StripLoop *loop = map_get(&of, s->oldest);
        if (!loop) {
            loop = NEW(r->a, StripLoop);
            map_put(&of, s->oldest, loop);
        }
        vec_push(r->a, loop->update, loop->n, nodes[i]);
        map_put(loops, (uint64_t)nodes[i]->id + 1, loop);
    }
    map_free(&of);
}

Node *strip_loop(Rewrite *r, Node *n)
{
    StripLoop *loop = map_get(&r->strips, (uint64_t)n->id + 1);
    if (!loop)
        return NULL;
    const Rewrite *of = r->user;
    if (!loop->made) {
        Node **update = NEWN(r->a, Node *, loop->n);
        for (int i = 0; i < loop->n; i++) {
            const Node *y = loop->update[i];
            Node *src[2 + INGOT_MAX_RANK];
            rewrite_below(r, (int)y->nsrc, y->src);
            for (uint32_t k = 0; k < y->nsrc; k++)
                src[k] = rewritten(r, y->src[k]);
            update[i] = node_with(r->c, loop->update[i], src);
        }
        loop->made = NEWN(r->a, Node *, loop->n);
        loop_parts(r->c, strips_of(of, n)->counter, loop->n, update, loop->made);
    }
    int i = 0;
    while (loop->update[i] != n)
        i++;
    return loop->made[i];
}
