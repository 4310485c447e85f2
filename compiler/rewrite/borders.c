/* borders.c - values that all of a network goes through: what comes later is made of such a one
 * alone.  Between two of them a piece of the network can be computed part by part (tile_graph.c,
 * patches.c). */
#include "rewrite.h"

Borders find_borders(Context *c, Arena *a, int nroot, Node *const *roots)
{
    Borders b = {0};
    b.order = graph_toposort(a, nroot, roots, &b.n);
    int *place = NEWN(a, int, c->nnode + 1), reach = 0;
    b.run = NEWN(a, bool, c->nnode + 1);
    b.summed = NEWN(a, bool, c->nnode + 1);
    b.result = NEWN(a, bool, c->nnode + 1);
    b.last = NEWN(a, int, b.n + 1);
    for (int i = 0; i < nroot; i++)
        b.result[roots[i]->id] = true;
    for (int i = 0; i < b.n; i++) {
        Node *t = b.order[i];
        place[t->id] = i;
        b.run[t->id] = t->op == OP_INPUT;
        for (uint32_t k = 0; k < t->nsrc; k++) {
            const Node *x = t->src[k];
            b.run[t->id] |= b.run[x->id];
            b.summed[x->id] |= t->op == OP_REDUCE && x->op == OP_MUL;
            if (b.run[x->id])
                b.last[place[x->id]] = i;
        }
        if (t->op == OP_LOOP || t->op == OP_IF)
            b.last[0] = i; /* bodies may read all that there is */
    }
    for (int i = 0; i < b.n; i++) { /* of what was there before this one */
        const int own = b.last[i];
        b.last[i] = reach;
        reach = own > reach ? own : reach;
    }
    return b;
}

bool is_border(const Borders *b, int i)
{
    const Node *t = b->order[i];
    return b->run[t->id] && b->last[i] <= i && !b->summed[t->id] && t->rank > 2 &&
           (op_is_alu(t->op) || t->op == OP_REDUCE || t->op == OP_CONCAT || t->op == OP_INPUT);
}

typedef struct {
    Node *from, *to;
} Exchange;

static Node *exchanged(Rewrite *r, Node *t)
{
    const Exchange *e = r->user;
    return t == e->from ? e->to : NULL;
}

bool exchange_border(Context *c, Arena *a, Node *from, Node *to)
{
    Exchange e = {from, to};
    Rewrite r = {.c = c, .a = a, .renew = exchanged, .user = &e};
    return rewrite_pass(&r);
}
