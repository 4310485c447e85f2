/* clone.c - a part of a graph again, over other values: what a body computes, of other
 * parameters.
 *
 * now[] starts with what stands for some nodes; all that is made of those is made again.  A loop
 * or branch among them gets regions of its own, a loop's with parameters of their own. */
#include <string.h>

#include "clone.h"

Clone clone_begin(Context *c, Arena *a)
{
    return (Clone){.c = c, .arena = a, .n = c->nnode, .now = NEWN(a, Node *, c->nnode + 1)};
}

void clone_set(Clone *q, Node *old, Node *now)
{
    q->now[old->id] = now;
}

Node *clone_of(const Clone *q, Node *n)
{
    return n->id < q->n && q->now[n->id] ? q->now[n->id] : n;
}

/* What lies outside of a control node's regions: all that its sources have become is made of. */
static bool *outside_regions(Clone *q, Node *control)
{
    Node **src = NEWN(q->arena, Node *, control->nsrc + 1);
    for (uint32_t i = 0; i < control->nsrc; i++)
        src[i] = clone_of(q, control->src[i]);
    return region_outside(q->arena, q->c, (int)control->nsrc, src);
}

static struct Region *cloned_region(Clone *q, const struct Region *old, Node *control)
{
    Context *c = q->c;
    struct Region *r = NEW(c->arena, struct Region);
    *r = *old;
    r->param = NEWN(c->arena, Node *, old->nparam + 1);
    for (int i = 0; i < old->nparam; i++) {
        Node *p = old->param[i];
        r->param[i] = node_make(c, OP_PARAM, (ingot_dtype)p->dtype, (Arg){.i = c->nparam++},
                                p->rank, p->shape, p->rank, p->shape);
        clone_set(q, p, r->param[i]);
    }
    clone_nodes(q, old->nresult, old->result);
    r->result = NEWN(c->arena, Node *, old->nresult + 1);
    for (int i = 0; i < old->nresult; i++)
        r->result[i] = clone_of(q, old->result[i]);
    region_captures(c, r, outside_regions(q, control));
    return r;
}

static Node *cloned_tuple(Clone *q, Node *t, const void *arg, Node **src, int nsrc)
{
    return node_make(q->c, (Op)t->op, (ingot_dtype)t->dtype, (Arg){.ptr = arg}, nsrc, src, 0, NULL);
}

static Node *cloned_loop(Clone *q, Node *t)
{
    Loop *now = NEW(q->c->arena, Loop);
    *now = *(const Loop *)t->arg.ptr;
    if (now->iterations && now->iterations->op == OP_VAR &&
        q->c->vars[now->iterations->arg.i].setter == t)
        q->failed = "a loop in it ends by a condition";
    now->body = cloned_region(q, now->body, t);
    now->counter = loop_counter(q->c, now);
    int nsrc = 0, fixed = 1 + now->ncarried;
    Node **src = NEWN(q->arena, Node *, fixed + now->body->ncapture);
    for (int i = 0; i < fixed; i++)
        src[nsrc++] = clone_of(q, t->src[i]);
    for (int i = 0; i < now->body->ncapture; i++)
        src[nsrc++] = now->body->capture[i];
    return cloned_tuple(q, t, now, src, nsrc);
}

static Node *cloned_if(Clone *q, Node *t)
{
    If *now = NEW(q->c->arena, If);
    *now = *(const If *)t->arg.ptr;
    now->then_branch = cloned_region(q, now->then_branch, t);
    now->else_branch = cloned_region(q, now->else_branch, t);
    int nsrc;
    Node **src = if_sources(q->arena, clone_of(q, t->src[0]), now, &nsrc);
    return cloned_tuple(q, t, now, src, nsrc);
}

static Node *cloned(Clone *q, Node *n)
{
    bool changed = false;
    for (uint32_t i = 0; i < n->nsrc; i++)
        changed |= q->now[n->src[i]->id] != n->src[i];
    if (!changed)
        return n;
    if (n->op == OP_CALL && ((const Call *)n->arg.ptr)->n_count)
        q->failed = "the size of a value in it is decided by data";
    if (n->op == OP_LOOP)
        return cloned_loop(q, n);
    return n->op == OP_IF ? cloned_if(q, n) : node_rebuilt(q->c, n, q->now);
}

void clone_nodes(Clone *q, int nroot, Node *const *root)
{
    int count, n = 0;
    Node **old = NEWN(q->arena, Node *, nroot + 1);
    for (int i = 0; i < nroot; i++)
        if (root[i]->id < q->n)
            old[n++] = root[i];
    Node **order = graph_toposort(q->arena, n, old, &count);
    for (int i = 0; i < count; i++)
        if (!q->now[order[i]->id])
            q->now[order[i]->id] = cloned(q, order[i]);
}
