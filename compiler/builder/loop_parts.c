/* loop_parts.c - tensors that a loop makes part by part.
 *
 *     y = zeros; for (i = 0; i < n; i++) y[k i ..] = part(i)
 *
 * A part is an expression in which the counter stands, a run-time integer: slices begin at what it
 * says.  All of y is written by n parts, which may overlap where they are equal (the last one
 * begins earlier, where k does not divide what there is), so what y begins with is read by none.
 * Movement of what does not depend on the counter is part of the body, as coordinates; everything
 * else that does not is there before the loop. */
#include <string.h>

#include "builder.h"

/* One for all loops of so many parts: none of them is in another one. */
Node *parts_counter(Context *c, int64_t n)
{
    const uint64_t key = context_key(MEMO_PART, (uint64_t)n);
    Node *counter = (Node *)(uintptr_t)map_get(&c->memo, key);
    if (!counter) {
        const char *name = arena_printf(c->arena, "part_of_%lld", (long long)n);
        counter = var_new(c, VAR_PART, name, 0, n - 1)->node;
        map_put(&c->memo, key, (void *)(uintptr_t)counter);
    }
    return counter;
}

Node *part_update(Context *c, Node *x, Node *v, int axis, Node *from)
{
    Node *index[INGOT_MAX_RANK];
    for (int d = 0; d < v->rank; d++) {
        index[d] = ingot_iota(c, v->rank, v->shape, d);
        if (d == axis)
            index[d] = ingot_add(c, index[d], ingot_from_dim(c, from));
    }
    return ingot_update(c, INGOT_SET, x, v, index);
}

/* Movement, but for what takes axes of size 1 from a result or gives it some: it is stored like
 * that. */
static bool is_movement(const Node *t)
{
    if (op_info[t->op].cls != MOVE || t->op == OP_CONCAT || t->op == OP_KEEP)
        return false;
    int n = 0;
    const Node *x = t->src[0];
    if (t->op != OP_RESHAPE || x->op != OP_REDUCE)
        return true;
    for (int i = 0; i < x->rank; i++) {
        if (n < t->rank && t->shape[n] == x->shape[i])
            n++;
        else if (!idx_is(x->shape[i], 1))
            return true;
    }
    return n < t->rank;
}

/* Which nodes are computed before the loop, by id. */
static bool *before_loop(Arena *a, Context *c, const Node *counter, int n, Node *const *part)
{
    int norder;
    Node **order = graph_toposort(a, n, part, &norder);
    bool *inside = NEWN(a, bool, c->nnode + 1), *data = NEWN(a, bool, c->nnode + 1),
         *before = NEWN(a, bool, c->nnode + 1);
    for (int i = 0; i < norder; i++) {
        Node *t = order[i];
        inside[t->id] = t == counter;
        data[t->id] = t->op == OP_INPUT || t->op == OP_DATA || t->op == OP_STATE ||
                      t->op == OP_PARAM || op_info[t->op].cls == CONTROL;
        for (uint32_t k = 0; k < t->nsrc; k++) {
            inside[t->id] |= inside[t->src[k]->id];
            data[t->id] |= data[t->src[k]->id];
        }
        before[t->id] =
            (data[t->id] || dtype_is_float(t->dtype)) && !inside[t->id] && !is_movement(t);
    }
    return before;
}

static Node *param(Context *c, ingot_dtype d, int rank, Node *const *dims)
{
    return node_make(c, OP_PARAM, d, (Arg){.i = c->nparam++}, rank, dims, rank, dims);
}

static Node *make_loop(Context *c, Node *counter, int n, Node *const *update)
{
    Arena *a = arena_new();
    struct Region *body = NEW(c->arena, struct Region);
    Loop *loop = NEW(c->arena, Loop);
    Node **part = NEWN(a, Node *, n), **src = NULL;
    int nsrc = 0;
    vec_push(c->arena, body->param, body->nparam, param(c, INGOT_I64, 0, NULL));
    vec_push(c->arena, body->param, body->nparam, param(c, INGOT_BOOL, 0, NULL));
    vec_push(c->arena, body->result, body->nresult, body->param[1]);
    vec_push(a, src, nsrc, node_bool(c, true));
    for (int i = 0; i < n; i++) {
        Node *y = update[i], *old = param(c, (ingot_dtype)y->dtype, y->rank, y->shape),
             *now[2 + INGOT_MAX_RANK];
        for (uint32_t k = 0; k < y->nsrc; k++)
            now[k] = k ? y->src[k] : old;
        part[i] = y->src[1];
        vec_push(c->arena, body->param, body->nparam, old);
        vec_push(c->arena, body->result, body->nresult, node_with(c, y, now));
        vec_push(a, src, nsrc,
                 uniform_make(c, node_const_zero(c, (ingot_dtype)y->dtype), y->rank, y->shape));
    }
    region_captures(c, body, before_loop(a, c, counter, n, part));
    for (int i = 0; i < body->ncapture; i++)
        vec_push(a, src, nsrc, body->capture[i]);
    *loop = (Loop){.trip = idx(c, counter->hi + 1),
                   .body = body,
                   .ncarried = n,
                   .iterations = idx(c, counter->hi + 1),
                   .counter = counter};
    Node *tuple = node_make(c, OP_LOOP, INGOT_U8, (Arg){.ptr = loop}, nsrc, src, 0, NULL);
    arena_free(a);
    return tuple;
}

/* A loop that was made before; nodes of a context are made once, however many plans need them. */
typedef struct PartsLoop {
    struct PartsLoop *next;
    int n;
    Node **update, *tuple;
} PartsLoop;

void loop_parts(Context *c, Node *counter, int n, Node *const *update, Node **out)
{
    const size_t bytes = (size_t)n * sizeof *update;
    const uint64_t key = context_key(MEMO_PARTS_LOOP, update[0]->id);
    PartsLoop *first = map_get(&c->memo, key), *made = first;
    while (made && (made->n != n || memcmp((void *)made->update, (const void *)update, bytes) != 0))
        made = made->next;
    if (!made) {
        made = NEW(c->arena, PartsLoop);
        *made = (PartsLoop){.next = first, .n = n, .tuple = make_loop(c, counter, n, update)};
        made->update = vec_of(c->arena, (const void *)update, (size_t)n, sizeof *update);
        map_put(&c->memo, key, made);
    }
    for (int i = 0; i < n; i++)
        out[i] = tuple_result(c, made->tuple, i);
}
