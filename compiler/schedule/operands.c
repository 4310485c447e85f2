/* operands.c - queries and keys that lie in one buffer are two arguments of the kernel that multiplies them.
 *
 * A place is filled with what a kernel reads of an argument (STAGE).  Where both operands of a matrix unit come from one buffer, each at
 * coordinates of its own, they are read as if they were two. */
#include "schedule.h"
#include "tc.h"

static Node *operand(Node *n)
{
    while (n->op == OP_CAST)
        n = n->src[0];
    return n->op == OP_LOAD && n->src[0]->op == OP_BUFFER ? n : NULL;
}

void nest_part_operands(Nest *k)
{
    Sched *s = k->s;
    Context *c = s->c;
    int n, room = (int)(sizeof k->bufs / sizeof *k->bufs);
    bool lanes = false;
    for (int i = 0; i < TC_COUNT; i++)
        lanes |= s->target && (s->target->units >> i & 1) && tc_units[i].lanes;
    if (!lanes)
        return;
    Arena *a = arena_new();
    Node **order = graph_toposort(a, 1, &k->store, &n);
    for (int i = 0; i < n; i++) {
        Node *t = order[i], *product = t->op == OP_REDUCE ? t->src[0] : NULL;
        if (!product || product->op != OP_MUL || (t->arg.i & 255) != INGOT_REDUCE_ADD)
            continue;
        Node *x = operand(product->src[0]), *y = operand(product->src[1]), *src[4 * INGOT_MAX_RANK];
        if (!x || !y || x == y || x->src[0] != y->src[0] || k->nbuf == room ||
            y->nsrc > sizeof src / sizeof *src)
            continue;
        for (uint32_t j = 0; j < y->nsrc; j++)
            src[j] = y->src[j];
        k->bufs[k->nbuf] = k->bufs[y->src[0]->arg.i];
        src[0] = node_make(c, OP_BUFFER, y->src[0]->dtype, (Arg){.i = k->nbuf++}, 0, NULL, 0, NULL);
        Node *apart =
            node_make(c, OP_LOAD, (ingot_dtype)y->dtype, y->arg, (int)y->nsrc, src, 0, NULL);
        k->store = substitute(c, k->store, 1, &y, &apart);
        break;
    }
    arena_free(a);
}
