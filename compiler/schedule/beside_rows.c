/* beside_rows.c - what a row has one of, stored by the kernel that goes along the row.
 *
 *     z = (x - mean(x)) i     i = 1 / sqrt(mean((x - mean(x))^2) + eps)
 *
 * A norm's kernel stores z; the kernels of its gradient read z, and i once for each row.  They
 * would read x again, and sum each of its rows twice.  The items of a group that stores z have all
 * sums of its rows, so they store i, too (schedule_store.c): as many bytes as a row has less
 * elements. */
#include "fusion.h"

enum { MOST_MADE = 32, MOST_BESIDE = 2 };

typedef struct {
    Sched *s;
    Node *const *uses;
    Node *on_way[MOST_MADE], *maker[MOST_MADE]; /* computed of the value; kernels that do that */
    int non_way, nmaker;
    bool all; /* there was room for all of them */
} Makers;

static void put(Makers *m, Node **list, int *n, Node *t)
{
    for (int i = 0; i < *n; i++)
        if (list[i] == t)
            return;
    m->all &= *n < MOST_MADE;
    if (*n < MOST_MADE)
        list[(*n)++] = t;
}

/* All kernels that compute v. */
static void find_makers(Makers *m, Node *v)
{
    m->all = true;
    put(m, m->on_way, &m->non_way, v);
    for (int w = 0; w < m->non_way && m->all; w++) {
        const Info *i = info_of(m->s, m->on_way[w]);
        m->all &= !i->root;
        for (int u = 0; u < i->nuse && m->all; u++) {
            Node *t = m->uses[i->iuse + u];
            const Info *f = info_of(m->s, t);
            if (!f->needed)
                continue;
            m->all &= op_info[t->op].cls != CONTROL && !f->beside && !f->in_rows;
            if (f->stored)
                put(m, m->maker, &m->nmaker, t);
            else
                put(m, m->on_way, &m->non_way, t);
        }
    }
}

/* Is z an element of the rows that v is one of, made of them and of sums over rows alone? */
static bool is_along(const Makers *m, const Node *z, const Node *v)
{
    const unsigned rows = info_of(m->s, v)->pending;
    if (!op_is_alu(z->op) || info_of(m->s, z)->rows != rows)
        return false;
    for (int w = 1; w < m->non_way; w++) {
        const Node *t = m->on_way[w];
        const bool repeats = t->op == OP_EXPAND && expanded_axes(m->on_way[w]) == rows;
        if (info_of(m->s, t)->order < info_of(m->s, z)->order && !op_is_alu(t->op) && !repeats &&
            !(t->op == OP_REDUCE && reduce_axes(t) == rows))
            return false;
    }
    return true;
}

/* The first kernel that computes v, if that goes along its rows and others do, too; or NULL. */
static Node *kernel_beside(Sched *s, Node *v, Node *const *uses)
{
    const Info *i = info_of(s, v);
    const ValueChoice *given = value_given(s->plan, v);
    Makers m = {.s = s, .uses = uses};
    if (!i->needed || i->stored || !i->has_reduce || !i->pending || i->in_rows || i->constant ||
        i->root || (given && given->stored == NO) || !dtype_is_float(v->dtype))
        return NULL;
    for (int u = 0; u < i->nuse; u++)
        if (uses[i->iuse + u]->op != OP_EXPAND || !goes_along_row(s, v, uses[i->iuse + u]))
            return NULL;
    find_makers(&m, v);
    Node *first = NULL;
    for (int k = 0; k < m.nmaker; k++)
        if (!first || info_of(s, m.maker[k])->order < info_of(s, first)->order)
            first = m.maker[k];
    return m.all && m.nmaker > 1 && is_along(&m, first, v) ? first : NULL;
}

void store_beside_rows(Sched *s, int n, Node *const *order, Node *const *uses)
{
    if (!s->target->gpu || !s->target->machine.units || !s->fuse_rows)
        return;
    for (int i = n; i-- > 0;) { /* what is stored is not made of others any more */
        if (order[i]->dtype == INGOT_INDEX)
            continue;
        Node *z = kernel_beside(s, order[i], uses);
        int beside = 0;
        for (int j = 0; j < n && z; j++)
            beside += order[j]->dtype != INGOT_INDEX && info_of(s, order[j])->beside == z;
        if (!z || beside == MOST_BESIDE)
            continue;
        Info *v = info_of(s, order[i]);
        v->stored = v->kept = true;
        v->beside = z;
        v->why = "a row has one of it: the kernel that goes along the row stores it";
    }
}
