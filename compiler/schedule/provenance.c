/* provenance.c - which nodes of the model a kernel computes, and which of them it is named after.
 *
 * A node of the graph may have been asked for by several nodes of the model: two convolutions pad
 * the same tensor, two branches take the same sum.  In a kernel that computes the one convolution,
 * the padding is of that one: a node is of those among its origins that what reads it there is of
 * too.  Where they have none in common, a node of the model ends, and it is the result of all its
 * origins.  And where a kernel ends within a convolution, having moved elements for it and nothing
 * else, it computes nothing of it. */
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

enum { NAME_WORD = 24, NAME_BYTES = 60 };

/* A node of a kernel's region, and what it is of there. */
typedef struct {
    Node *n;
    const OriginList *of; /* of those that read it; then of itself */
} RegionMember;

typedef struct {
    Sched *s;
    Arena *a;
    RegionMember *member; /* sources first */
    int nmember;
    Node **seen; /* what has a place: Info.member */
    int nseen;
} Members;

/* Few kernels ask: it is done when the first one does. */
static void find_readers(Sched *s)
{
    Context *c = s->c;
    s->last_reader = NEWN(s->arena, uint32_t, s->ngraph + 1);
    vec_push(s->arena, s->readers, s->nreader, ((Reader){0, 0})); /* behind all */
    for (uint32_t i = 0; i < s->ngraph; i++) {
        const Node *t = c->nodes[i];
        for (uint32_t k = 0; k < t->nsrc && c->origins[i]; k++) {
            const Node *src = t->src[k];
            if (src->dtype == INGOT_INDEX || op_info[src->op].cls == LEAF)
                continue;
            vec_push(s->arena, s->readers, s->nreader, ((Reader){i, s->last_reader[src->id]}));
            s->last_reader[src->id] = s->nreader - 1;
        }
    }
}

/* ---- origins of a step ----------------------------------------------------------------------- */

void step_origins(Sched *s, Step *step, const Node *n)
{
    step_origin_list(s->arena, step, s->c->origins[n->id]);
}

/* ---- members of a region --------------------------------------------------------------------- */

static bool is_read(Sched *s, const Node *t)
{
    const Info *f = info_of(s, (Node *)t);
    return f->buffer || f->stored || op_info[t->op].cls == LEAF || f->foldable ||
           op_info[t->op].cls == CONTROL || t->dtype == INGOT_INDEX;
}

/* Oldest first, and so sources before what reads them: Shell's sort, for they were found nearly in
 * the other order. */
static void sort_by_id(RegionMember *m, int n)
{
    for (int i = 0, j = n - 1; i < j; i++, j--) {
        const RegionMember x = m[i];
        m[i] = m[j];
        m[j] = x;
    }
    int gap = 1;
    while (gap < n / 5)
        gap = 5 * gap + 2;
    for (; gap; gap /= 5)
        for (int i = gap; i < n; i++) {
            const RegionMember x = m[i];
            int j = i;
            for (; j >= gap && m[j - gap].n->id > x.n->id; j -= gap)
                m[j] = m[j - gap];
            m[j] = x;
        }
}

/* Its place among the members + 1; 0: not seen, -1: none of them. */
static int *place_of(const Members *m, const Node *n)
{
    return &info_of(m->s, n)->member;
}

/* Everything between the root and what the kernel reads. */
static void find_members(Members *m, Node *root)
{
    *place_of(m, root) = -1;
    vec_push(m->a, m->seen, m->nseen, root);
    for (int i = 0; i < m->nseen; i++) { /* grows on the way */
        Node *t = m->seen[i];
        if (t != root && is_read(m->s, t))
            continue;
        vec_push(m->a, m->member, m->nmember, ((RegionMember){t, NULL}));
        for (uint32_t k = 0; k < t->nsrc; k++) {
            int *place = t->src[k]->dtype == INGOT_INDEX ? NULL : place_of(m, t->src[k]);
            if (!place || *place)
                continue;
            *place = -1;
            vec_push(m->a, m->seen, m->nseen, t->src[k]);
        }
    }
    sort_by_id(m->member, m->nmember);
    for (int i = 0; i < m->nmember; i++)
        *place_of(m, m->member[i].n) = i + 1;
}

static bool has(const OriginList *list, const Origin *o)
{
    while (list && list->origin != o)
        list = list->rest;
    return list;
}

static const OriginList *with_one(Arena *a, const OriginList *list, const Origin *o)
{
    if (has(list, o))
        return list;
    OriginList *l = NEW(a, OriginList);
    *l = (OriginList){o, list};
    return l;
}

static const OriginList *with(Arena *a, const OriginList *list, const OriginList *more)
{
    if (!list && more && !more->rest)
        return more;
    for (; more && more != list; more = more->rest)
        list = with_one(a, list, more->origin);
    return list;
}

/* Readers before what they read. */
static void find_origins(Members *m)
{
    for (int i = m->nmember - 1; i >= 0; i--) {
        RegionMember *x = &m->member[i];
        const OriginList *all = m->s->c->origins[x->n->id], *both = NULL;
        for (const OriginList *l = all; l; l = l->rest)
            if (has(x->of, l->origin))
                both = all->rest ? with_one(m->a, both, l->origin) : all;
        if (!all) /* of a rewrite for nobody: as what reads it */
            both = x->of;
        x->of = both ? both : all;
        if (x->n->numbers && i < m->nmember - 1)
            x->of = NULL;
        for (uint32_t k = 0; k < x->n->nsrc; k++) {
            const Node *src = x->n->src[k];
            int at = src->dtype == INGOT_INDEX ? 0 : *place_of(m, src);
            if (at > 0)
                m->member[at - 1].of = with(m->a, m->member[at - 1].of, x->of);
        }
    }
}

/* Whether what reads the root goes on with a node of the model. */
static bool goes_on(Sched *s, const Node *root, const Origin *o)
{
    if (!s->readers)
        find_readers(s);
    for (uint32_t i = s->last_reader[root->id]; i; i = s->readers[i].before)
        if (has(s->c->origins[s->readers[i].node], o))
            return true;
    return false;
}

/* Does the kernel, whose root is the last member, do more for it than to move elements? */
static bool is_computed_here(const Members *m, const Origin *o)
{
    for (int i = 0; i < m->nmember; i++)
        if (op_info[m->member[i].n->op].cls != MOVE && has(m->member[i].of, o))
            return true;
    return !goes_on(m->s, m->member[m->nmember - 1].n, o);
}

/* Leaves out what is not computed here, unless that is all there is. */
static void drop_others(Members *m)
{
    const OriginList *all = NULL, *computed = NULL, *last = NULL, *left = NULL;
    for (int i = 0; i < m->nmember; i++)
        if (i == 0 || m->member[i].of != m->member[i - 1].of) /* most share a list */
            all = with(m->a, all, m->member[i].of);
    for (const OriginList *l = all; l; l = l->rest)
        if (is_computed_here(m, l->origin))
            computed = with_one(m->a, computed, l->origin);
    for (int i = 0; i < m->nmember && computed; i++) {
        if (m->member[i].of != last) {
            last = m->member[i].of;
            left = NULL;
            for (const OriginList *l = last; l; l = l->rest)
                if (has(computed, l->origin))
                    left = with_one(m->a, left, l->origin);
        }
        m->member[i].of = left;
    }
}

/* ---- the heaviest ---------------------------------------------------------------------------- */

/* Operations of one node; movement is a little, so that what only moves has a name too. */
static double operations_of(const Node *n)
{
    const Node *over = op_info[n->op].cls == REDUCE && n->nsrc ? n->src[0] : n;
    double elements = (double)dims_bound(over->rank, over->shape);
    return elements * (op_info[n->op].cls == MOVE ? 1e-3 : 1 + op_info[n->op].cost);
}

/* Each member's operations are those of all that it is of. */
static void find_heaviest(Members *m, Step *step)
{
    Map at = {0}; /* an origin, or a node without one -> its place + 1 */
    Heaviest *sum = NULL;
    int nsum = 0, best = 0;
    for (int i = m->nmember - 1; i >= 0; i--) {
        const RegionMember *x = &m->member[i];
        const OriginList *l = x->of;
        do {
            uint64_t key = (uint64_t)(uintptr_t)(l ? (const void *)l->origin : (const void *)x->n);
            int k = (int)(uintptr_t)map_get(&at, key);
            if (!k) {
                vec_push(m->a, sum, nsum,
                         ((Heaviest){l ? l->origin : NULL,
                                     l ? l->origin->op : op_info[x->n->op].text, x->n, 0}));
                map_put(&at, key, (void *)(uintptr_t)(k = nsum));
            }
            sum[k - 1].operations += operations_of(x->n);
            l = l ? l->rest : NULL;
        } while (l);
    }
    for (int i = 1; i < nsum; i++)
        if (sum[i].operations > sum[best].operations)
            best = i;
    if (nsum)
        step->heaviest = sum[best];
    map_free(&at);
}

void step_computes(Sched *s, Step *step, Node *root)
{
    Members m = {.s = s, .a = arena_new()};
    find_members(&m, root);
    find_origins(&m);
    drop_others(&m);
    step->values = NEWN(s->arena, Node *, m.nmember + 1);
    for (int i = 0; i < m.nmember; i++) {
        step->values[step->nvalue++] = m.member[i].n;
        step_origin_list(s->arena, step, m.member[i].of);
    }
    find_heaviest(&m, step);
    for (int i = 0; i < m.nseen; i++)
        *place_of(&m, m.seen[i]) = 0;
    arena_free(m.a);
}

void step_join(Arena *a, Step *into, const Step *from)
{
    for (int i = 0; i < from->norigin; i++)
        step_origin(a, into, from->origins[i]);
    Node **values = NEWN(a, Node *, into->nvalue + from->nvalue + 1);
    memcpy((void *)values, into->values, (size_t)into->nvalue * sizeof *values);
    memcpy((void *)(values + into->nvalue), from->values, (size_t)from->nvalue * sizeof *values);
    into->values = values;
    into->nvalue += from->nvalue;
    Stored *stored = NEWN(a, Stored, into->nstored + from->nstored);
    memcpy(stored, into->stored, (size_t)into->nstored * sizeof *stored);
    memcpy(stored + into->nstored, from->stored, (size_t)from->nstored * sizeof *stored);
    into->stored = stored;
    into->nstored += from->nstored;
    if (from->heaviest.operations > into->heaviest.operations)
        into->heaviest = from->heaviest;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void lower_word(StrBuf *sb, const char *word)
{
    size_t end = sb->len + NAME_WORD;
    for (; *word && sb->len < end; word++)
        if ((*word >= 'a' && *word <= 'z') || (*word >= '0' && *word <= '9'))
            sb_write(sb, word, 1);
        else if (*word >= 'A' && *word <= 'Z')
            sb_write(sb, &(char){(char)(*word - 'A' + 'a')}, 1);
}

/* The node's output, if that is what the kernel computes of it, in whatever shape. */
static const Node *output_of(const Context *c, const Heaviest *h)
{
    for (int i = 0; i < c->nsource && h->origin; i++) {
        const ingot_source_node *s = c->source[i];
        const Node *out = s->n_out ? (const Node *)s->out[0].tensor : NULL;
        if (out && out->op != OP_POISON && !strcmp(s->node, h->origin->node) &&
            !strcmp(s->op, h->origin->op) &&
            dims_bound(out->rank, out->shape) == dims_bound(h->value->rank, h->value->shape))
            return out;
    }
    return h->value;
}

/* k07_conv_1x64x56x56: number, operator and shape of what most of its work is for; n: known at run
 * time. */
void kernel_name(const Context *c, Kernel *k, int number, const Step *step)
{
    StrBuf sb = {0};
    sb_printf(&sb, "k%02d", number);
    if (step->heaviest.op) {
        sb_puts(&sb, "_");
        lower_word(&sb, step->heaviest.op);
    }
    const Node *v = step->heaviest.value ? output_of(c, &step->heaviest) : NULL;
    for (int i = 0; v && i < v->rank; i++) {
        int64_t size;
        StrBuf dim = {0};
        if (idx_value(v->shape[i], &size))
            sb_printf(&dim, "%lld", (long long)size);
        else
            sb_puts(&dim, "n");
        if (sb.len + dim.len < NAME_BYTES)
            sb_printf(&sb, "%s%s", i ? "x" : "_", dim.data);
        sb_free(&dim);
    }
    snprintf(k->name, sizeof k->name, "%s", sb.data);
    sb_free(&sb);
}
