/* strips.c - a value that is made in strips along one axis, of which each is finished before the
 * next begins.
 *
 *     relu(concat(a, b) + c)   ->   concat(relu(a + c[first rows]), relu(b + c[other rows]))
 *
 * What it takes to make a strip stays near while it is made; the same memory serves the next one.
 * Elementwise readers, and what only names the axes otherwise, go into the strips: what is stored
 * are their results, in one buffer, each as soon as it can be. */
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

Node *strips(Rewrite *r, int n, Node *const *part, int axis)
{
    Node *y = n > 1 ? concat_of(r->c, n, part, axis) : part[0];
    if (n > 1)
        map_put(&r->strips, (uint64_t)y->id + 1, (void *)1);
    return y;
}

static bool is_strips(const Rewrite *r, const Node *n)
{
    return n->op == OP_CONCAT && map_get(&r->strips, (uint64_t)n->id + 1);
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

static Node *moved_strip(Context *c, const Node *move, Node *x, int axis)
{
    Node *dims[INGOT_MAX_RANK];
    int perm[INGOT_MAX_RANK];
    for (int i = 0; i < move->rank; i++) {
        perm[i] = move->op == OP_PERMUTE ? ((const Perm *)move->arg.ptr)->axis[i] : i;
        dims[i] = move->shape[i];
    }
    if (move->op == OP_PERMUTE)
        return ingot_permute(c, x, perm);
    dims[axis] = x->shape[(int)move->src[0]->arg.i];
    return ingot_reshape(c, x, move->rank, dims);
}

/* x where the strips of y from part i on lie. */
static Node *strip_of(Rewrite *r, Node *x, const Node *y, uint32_t i, Node *from)
{
    Node *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
    int axis = (int)y->arg.i;
    bool same = is_strips(r, x) && x->arg.i == axis && x->nsrc == y->nsrc;
    for (uint32_t k = 0; k < y->nsrc && same; k++)
        same = x->src[k]->shape[axis] == y->src[k]->shape[axis];
    if (same)
        return x->src[i];
    for (int d = 0; d < x->rank; d++) {
        begin[d] = d == axis ? from : idx(r->c, 0);
        size[d] = d == axis ? y->src[i]->shape[axis] : x->shape[d];
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

static bool is_summed(const Rewrite *r, const Node *n)
{
    intptr_t id =
        n->id < r->nnode ? n->id + 1 : (intptr_t)map_get(&r->replaced, (uint64_t)n->id + 1);
    return id > 0 && map_get(&r->summed, (uint64_t)id);
}

static bool cone_has_summed(const Rewrite *r, const Node *n, Map *seen)
{
    bool any = false;
    for (uint32_t i = 0; i < n->nsrc && !any; i++) {
        const Node *x = n->src[i];
        if (map_get(seen, (uint64_t)x->id + 1))
            continue;
        map_put(seen, (uint64_t)x->id + 1, (void *)1);
        any = is_summed(r, x) ||
              ((op_is_alu(x->op) || op_info[x->op].cls == MOVE) && cone_has_summed(r, x, seen));
    }
    return any;
}

bool reads_summed(const Rewrite *r, const Node *n)
{
    Map seen = {0};
    bool any = cone_has_summed(r, n, &seen);
    map_free(&seen);
    return any;
}

/* What a sum reads too is there as a whole before its other readers begin. */
static bool comes_in_strips(const Rewrite *r, const Node *n, uint32_t i)
{
    return is_strips(r, n->src[i]) && !map_get(&r->summed, (uint64_t)r->visiting->src[i]->id + 1);
}

Node *in_strips(Rewrite *r, Node *n)
{
    Context *c = r->c;
    bool moves = n->op == OP_RESHAPE || n->op == OP_PERMUTE;
    bool alu = op_is_alu(n->op) && n->op != OP_CUSTOM && n->dtype != INGOT_INDEX;
    Node *x = NULL, *src[MAX_ALU_SRC], *from = idx(c, 0);
    for (uint32_t i = 0; i < n->nsrc && (moves || alu) && !x; i++)
        x = comes_in_strips(r, n, i) ? n->src[i] : NULL;
    if (!x || n->nsrc > MAX_ALU_SRC)
        return NULL;
    int axis = moves ? axis_after(c, n, (int)x->arg.i) : (int)x->arg.i;
    if (axis < 0)
        return NULL;
    Node **part = NEWN(r->a, Node *, x->nsrc);
    for (uint32_t i = 0; i < x->nsrc; i++) {
        if (moves) {
            part[i] = moved_strip(c, n, x->src[i], axis);
        } else {
            for (uint32_t k = 0; k < n->nsrc; k++)
                src[k] = strip_of(r, n->src[k], x, i, from);
            part[i] = node_make(c, (Op)n->op, (ingot_dtype)n->dtype, n->arg, (int)n->nsrc, src,
                                n->rank, src[0]->shape);
        }
        from = idx_add(c, from, x->src[i]->shape[(int)x->arg.i]);
    }
    return strips(r, (int)x->nsrc, part, axis);
}

/* ---- stored one after the other -------------------------------------------------------------- */

void strip_parts(const Rewrite *r, int n, Node *const *nodes, Map *parts)
{
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < nodes[i]->nsrc && is_strips(r, nodes[i]); k++)
            map_put(parts, (uint64_t)nodes[i]->src[k]->id + 1, (void *)1);
}

Node *kept_part(Rewrite *r, Node *n)
{
    bool part = map_get(&r->strips, (uint64_t)r->visiting->id + 1);
    return part ? ingot_contiguous(r->c, n) : n;
}
