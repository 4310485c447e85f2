/* rewrite.c - the rules, in a table by op, applied to a model's graph from its leaves up.
 *
 * A rewritten graph asks for the same function; where its arithmetic is another one, docs/numerics.md has the rule.
 * What control flow captures is left alone, since the nodes of its bodies refer to it. */
#include "rewrite.h"

static Node *(*const rule[OP_COUNT])(Rewrite *, Node *) = {
    [OP_REDUCE] = integer_sum,
};

/* The nodes that a loop or branch reads, and everything below them. */
static bool *captured(Rewrite *r, int n, Node *const *order, uint32_t nnode)
{
    bool *keep = NEWN(r->a, bool, nnode);
    for (int i = n; i-- > 0;)
        if (keep[order[i]->id] || order[i]->op == OP_LOOP || order[i]->op == OP_IF)
            for (uint32_t j = 0; j < order[i]->nsrc; j++)
                keep[order[i]->src[j]->id] = true;
    return keep;
}

static Node *renewed(Context *c, Node *t, Node *const *src)
{
    for (uint32_t i = 0; i < t->nsrc; i++)
        if (src[i] != t->src[i])
            return node_make(c, (Op)t->op, (ingot_dtype)t->dtype, t->arg, (int)t->nsrc, src,
                             t->rank, t->shape);
    return t;
}

void graph_rewrite(Context *c, bool float_sums)
{
    Rewrite r = {c, arena_new(), float_sums};
    int nroot = 0, n;
    Node **roots = NULL;
    for (int i = 0; i < c->noutput; i++)
        vec_push(r.a, roots, nroot, c->outputs[i].node);
    for (int i = 0; i < c->nstate; i++)
        if (c->states[i].next)
            vec_push(r.a, roots, nroot, c->states[i].next);
    Node **order = graph_toposort(r.a, nroot, roots, &n);
    uint32_t nnode = c->nnode;
    const bool *keep = captured(&r, n, order, nnode);
    Node **now = NEWN(r.a, Node *, nnode);
    const Origin *at = c->at;
    for (int i = 0; i < n; i++) {
        Node *t = order[i], **src = NEWN(r.a, Node *, t->nsrc + 1);
        for (uint32_t j = 0; j < t->nsrc; j++)
            src[j] = now[t->src[j]->id];
        c->at = c->origin[t->id];
        bool stays = keep[t->id] || op_info[t->op].cls == CONTROL;
        Node *x = stays ? t : renewed(c, t, src);
        Node *other = rule[t->op] && !stays ? rule[t->op](&r, x) : NULL;
        now[t->id] = other ? other : x;
    }
    c->at = at;
    for (int i = 0; i < c->noutput; i++)
        c->outputs[i].node = now[c->outputs[i].node->id];
    for (int i = 0; i < c->nstate; i++)
        if (c->states[i].next)
            c->states[i].next = now[c->states[i].next->id];
    arena_free(r.a);
}
