/* split_operands.c - queries, keys and values that lie in one buffer are arguments of their own of
 * the kernel that multiplies them.
 *
 * A place is filled with what a kernel reads of an argument (STAGE).  Where operands of matrix
 * units come from one buffer, each at coordinates of its own, they are read as if there were one
 * for each. */
#include "schedule.h"
#include "tc.h"

static Node *operand(Node *n)
{
    n = below_casts(n);
    return n->op == OP_LOAD && n->src[0]->op == OP_BUFFER ? n : NULL;
}

/* The first operand of a product that lies in the buffer of another one before it, or NULL. */
static Node *operand_beside(Arena *a, Node *store)
{
    enum { MOST = 16 };
    int n, known = 0;
    Node *seen[MOST], **order = graph_toposort(a, 1, &store, &n);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        if (!is_sum_of_products(t))
            continue;
        Node *x[] = {operand(t->src[0]->src[0]), operand(t->src[0]->src[1])};
        for (int j = 0; j < 2 && known < MOST; j++) {
            bool beside = false, again = !x[j];
            for (int l = 0; l < known && x[j]; l++) {
                again |= seen[l] == x[j];
                beside |= seen[l]->src[0] == x[j]->src[0];
            }
            if (beside && !again)
                return x[j];
            if (!again)
                seen[known++] = x[j];
        }
    }
    return NULL;
}

void nest_part_operands(StoreNest *k)
{
    Sched *s = k->s;
    Context *c = s->c;
    int room = (int)(sizeof k->bufs / sizeof *k->bufs);
    bool lanes = false;
    for (const Tc *u = NULL; s->target && (u = tc_next(&s->target->machine, u));)
        lanes |= u->lanes > 0;
    if (!lanes)
        return;
    Arena *a = arena_new();
    Node *y, *src[4 * INGOT_MAX_RANK];
    while (k->nbuf < room && (y = operand_beside(a, k->store)) &&
           y->nsrc <= sizeof src / sizeof *src) {
        for (uint32_t j = 0; j < y->nsrc; j++)
            src[j] = y->src[j];
        k->bufs[k->nbuf] = k->bufs[y->src[0]->arg.i];
        src[0] = node_make(c, OP_BUFFER, y->src[0]->dtype, (Arg){.i = k->nbuf++}, 0, NULL, 0, NULL);
        Node *apart =
            node_make(c, OP_LOAD, (ingot_dtype)y->dtype, y->arg, (int)y->nsrc, src, 0, NULL);
        k->store = substitute(c, k->store, 1, &y, &apart);
    }
    arena_free(a);
}
