/* update_in_place.c - values that change a few elements of a state, or of what a loop carries, are
 * computed where that lies.
 *
 *     state' = update(... update(state, row, at) ..., row2, at2)
 *
 * If nothing else reads the state, nor what lies between, it dies there: only the rows are written,
 * and who reads state' reads the state's buffer.  Otherwise state' has a buffer of its own, and is
 * copied at the end.
 *
 *     state' = concat(... concat(state, rows) ..., rows2)
 *
 * A state that grows has room for the rows to come, which nobody reads before: whoever else reads
 * the state may. */
#include "schedule.h"

static int count_readers(int n, Node *const *order, Node *x, int nroot, Node *const *roots)
{
    int count = 0;
    for (int i = 0; i < nroot; i++)
        count += roots[i] == x;
    for (int i = 0; i < n; i++)
        for (uint32_t j = 0; j < order[i]->nsrc; j++)
            count += order[i]->src[j] == x;
    return count;
}

bool dies_in_updates(Sched *s, Node *leaf, Node *next, int nroot, Node *const *roots)
{
    if (next->op != OP_UPDATE)
        return false;
    int n, nall = 0;
    Node **all = NEWN(s->arena, Node *, nroot + s->c->nvar), *t = next;
    for (int i = 0; i < nroot; i++)
        all[nall++] = roots[i];
    for (int i = 0; i < s->c->nvar; i++) /* steps that set a run-time integer */
        if (s->c->vars[i].setter)
            all[nall++] = s->c->vars[i].setter;
    Node **order = graph_toposort(s->arena, nall, all, &n);
    while (t->op == OP_UPDATE) {
        t = t->src[0];
        if (count_readers(n, order, t, nroot, roots) != 1)
            return false;
    }
    return t == leaf;
}

bool is_appended_to(const Node *leaf, const Node *next)
{
    const Node *t = next;
    while (t->op == OP_CONCAT && t->arg.i == next->arg.i)
        t = t->src[0];
    return t == leaf && t != next;
}

void place_updates(Sched *s, Node *next, Buffer *b)
{
    for (Node *t = next->src[0]; t->op == next->op; t = t->src[0])
        info_of(s, t)->shared = b;
}
