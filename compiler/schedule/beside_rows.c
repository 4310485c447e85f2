/* beside_rows.c - what a row has one of, stored by the kernel that goes along the row.
 *
 *     z = (x - mean(x)) i     i = 1 / sqrt(mean((x - mean(x))^2) + eps)
 *
 * A norm's kernel stores z; the kernels of its gradient read z, and i once for each row.  They
 * would read x again, and sum each of its rows twice.  The items of a group that stores z have all
 * sums of its rows, so they store i, too (schedule_store.c): as many bytes as a row has less
 * elements.
 *
 *     loss = log(l) + m - x[label]     m = max(x)     l = sum of e^(x - m)
 *     dx = g e^(x - m) / l - ..
 *
 * Scores have one m and one l a row.  Their gradient goes along the row, so its kernel makes both,
 * stores them for the loss, which is computed behind it, and reads the row once (Info.of_row). */
#include "fusion.h"

enum { MOST_MADE = 32, MOST_BESIDE = 2 };

/* What is made of a value that a row has one of: such values, and elements of the row. */
typedef struct {
    Node *node[MOST_MADE];
    bool row[MOST_MADE];
    int n;
} MadeOfOne;

static void put_made(MadeOfOne *m, Node *t, bool row)
{
    for (int i = 0; i < m->n; i++)
        if (m->node[i] == t)
            return;
    if (m->n == MOST_MADE)
        return;
    m->row[m->n] = row;
    m->node[m->n++] = t;
}

/* Nothing is known yet of what follows it: is there an element of its rows that will be stored? */
bool is_made_by_row(Sched *s, Node *v, Node *const *uses)
{
    const unsigned axes = info_of(s, v)->pending;
    const ValueChoice *given = value_given(s->plan, v);
    const bool rows = s->target->gpu && s->target->machine.units && s->fuse_rows &&
                      v->op == OP_REDUCE && dtype_is_float(v->dtype) && axes &&
                      2 * node_elements(v) >= s->target->machine.processors;
    MadeOfOne m = {.node = {v}, .n = 1};
    if (!rows || info_of(s, v)->root || (given && given->stored))
        return false;
    for (int w = 0; w < m.n; w++) {
        const Info *i = info_of(s, m.node[w]);
        if (m.row[w] && (i->root || is_multiplied(s, m.node[w], uses)))
            return true;
        for (int u = 0; u < i->nuse; u++) {
            Node *t = uses[i->iuse + u];
            if (m.row[w] && t->op == OP_KEEP)
                return true;
            if (op_is_alu(t->op))
                put_made(&m, t, m.row[w]);
            else if (m.row[w] ? t->op == OP_REDUCE && reduce_axes(t) == axes
                              : t->op == OP_EXPAND && expanded_axes(t) == axes &&
                                    is_trailing(t, axes) && goes_along_row(s, v, t))
                put_made(&m, t, !m.row[w]);
        }
    }
    return false;
}

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
            m->all &= op_info[t->op].cls != CONTROL && !f->in_rows && (!f->beside || f->of_row);
            if (f->stored && !f->beside)
                put(m, m->maker, &m->nmaker, t);
            else
                put(m, m->on_way, &m->non_way, t);
        }
    }
}

/* Is z an element of the rows that v is one of, made of them and of sums over rows alone? */
static bool is_along(const Makers *m, Node *z, const Node *v)
{
    const unsigned rows = info_of(m->s, v)->pending;
    const Node *element = z->op == OP_KEEP && info_of(m->s, v)->of_row ? z->src[0] : z;
    if (!op_is_alu(element->op) || info_of(m->s, element)->rows != rows)
        return false;
    for (int w = 1; w < m->non_way; w++) {
        const Node *t = m->on_way[w];
        const bool repeats = t->op == OP_EXPAND && expanded_axes(m->on_way[w]) == rows;
        if (info_of(m->s, t)->order < info_of(m->s, z)->order && !op_is_alu(t->op) && !repeats &&
            !(t->op == OP_REDUCE && reduce_axes(t) == rows) &&
            !(info_of(m->s, v)->of_row && !is_made_of(m->s, z, t, m->uses, false)))
            return false;
    }
    return true;
}

/* Is it made of nothing that other kernels make of v? They read what its kernel stores. */
static bool is_first(const Makers *m, Node *z)
{
    bool first = true;
    for (int k = 0; k < m->nmaker && first; k++)
        first = m->maker[k] == z || !is_made_of(m->s, z, m->maker[k], m->uses, false);
    return first;
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
    for (int u = 0; u < i->nuse && !i->of_row; u++)
        if (uses[i->iuse + u]->op != OP_EXPAND || !goes_along_row(s, v, uses[i->iuse + u]))
            return NULL;
    find_makers(&m, v);
    Node *first = NULL;
    for (int k = 0; k < m.nmaker; k++)
        if ((!first || info_of(s, m.maker[k])->order < info_of(s, first)->order) &&
            (!i->of_row || (is_along(&m, m.maker[k], v) && is_first(&m, m.maker[k]))))
            first = m.maker[k];
    return m.all && m.nmaker > 1 && first && is_along(&m, first, v) ? first : NULL;
}

void store_beside_rows(Sched *s, int n, Node *const *order, Node *const *uses)
{
    if (!s->target->gpu || !s->target->machine.units || !s->fuse_rows)
        return;
    for (int i = n; i-- > 0;) { /* what is stored is not made of others any more */
        if (order[i]->dtype == INGOT_INDEX)
            continue;
        Node *z = kernel_beside(s, order[i], uses);
        Info *v = info_of(s, order[i]);
        int beside = 0;
        for (int j = 0; j < n && z; j++)
            beside += order[j]->dtype != INGOT_INDEX && info_of(s, order[j])->beside == z;
        if (!z || beside == MOST_BESIDE) {
            if (v->of_row && v->needed && !v->stored) {
                v->stored = true;
                v->why = "a reduce that would be computed again where it is read";
            }
            continue;
        }
        v->stored = v->kept = true;
        v->beside = z;
        v->why = "a row has one of it: the kernel that goes along the row stores it";
    }
}

/* What z is made of, by position. */
static void mark_sources(Sched *s, Node *const *order, const Node *z, bool *marked)
{
    for (int i = info_of(s, z)->order; i >= 0; i--)
        for (uint32_t j = 0; j < order[i]->nsrc && (order[i] == z || marked[i]); j++) {
            const int at = info_of(s, order[i]->src[j])->order;
            if (at < i && order[at] == order[i]->src[j])
                marked[at] = true;
        }
}

/* What reads what z's kernel stores of its rows comes behind z. Gives how many that are: -1 if one
 * of them is a step that others may wait for in another way. */
static int find_late(Sched *s, Node *const *order, const Node *z, bool *late)
{
    const int end = info_of(s, z)->order;
    bool *of_z = NEWN(s->scratch, bool, end + 1), *made = NEWN(s->scratch, bool, end + 1);
    int n = 0;
    mark_sources(s, order, z, of_z);
    for (int i = 0; i < end; i++) {
        for (uint32_t j = 0; j < order[i]->nsrc && !made[i]; j++) {
            const Node *x = order[i]->src[j];
            const Info *f = info_of(s, order[i]->src[j]);
            made[i] = f->order < i && order[f->order] == x &&
                      ((f->of_row && f->beside == z) || made[f->order]);
        }
        late[i] = made[i] && !of_z[i];
        n += late[i];
        if (late[i] && (op_info[order[i]->op].cls == CONTROL || order[i]->dtype == INGOT_INDEX))
            return -1;
    }
    return n;
}

/* Did anything move? */
static bool order_behind(Sched *s, Node **order, const Node *z)
{
    const int end = info_of(s, z)->order;
    bool *late = NEWN(s->scratch, bool, end + 1);
    Node **behind = NEWN(s->scratch, Node *, end + 1);
    const int nlate = find_late(s, order, z, late);
    for (int i = 0; i < end && nlate < 0; i++) /* kernels of their own */
        if (info_of(s, order[i])->of_row && info_of(s, order[i])->beside == z)
            info_of(s, order[i])->beside = NULL;
    int n = 0, left = 0;
    for (int i = 0; i <= end && nlate > 0; i++)
        if (i < end && late[i])
            behind[left++] = order[i];
        else
            order[n++] = order[i];
    for (int i = 0; i < left; i++)
        order[n++] = behind[i];
    for (int i = 0; i < n; i++)
        info_of(s, order[i])->order = i;
    return left > 0;
}

void order_beside_rows(Sched *s, int n, Node **order)
{
    const Node **maker = NEWN(s->scratch, const Node *, n + 1);
    int nmaker = 0;
    for (int i = 0; i < n; i++) {
        const Info *x = order[i]->dtype == INGOT_INDEX ? NULL : info_of(s, order[i]);
        bool known = !x || !x->of_row || !x->beside;
        for (int k = 0; k < nmaker && !known; k++)
            known = maker[k] == x->beside;
        if (!known)
            maker[nmaker++] = x->beside;
    }
    bool moved = true; /* a kernel that moves leaves what reads its own rows before it: again */
    for (int pass = 0; moved && pass < nmaker; pass++) {
        moved = false;
        for (int k = 0; k < nmaker; k++)
            moved |= order_behind(s, order, maker[k]);
    }
}
