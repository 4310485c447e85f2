/* variants.c - algebraic variants: the graph with those that a plan's decisions ask for.
 *
 * They come last, on the canonical graph, and belong to one plan: variants_apply() keeps the
 * model's roots, and roots_restore() gives them back, so that the next plan starts from the same
 * graph. */
#include <math.h>
#include <string.h>

#include "decisions.h"
#include "plan_schedule.h"
#include "rewrite.h"

typedef struct {
    const char *name;
    Op op;
    Node *(*make)(Rewrite *, Node *, bool try);
    double (*time)(Rewrite *, Node *);
} Variant;

static const Variant variants[] = {
#define VARIANT(name, op, function, time) {name, OP_##op, function, time},
#include "variants.def"
};
enum { NVARIANT = sizeof variants / sizeof variants[0] };

typedef struct {
    Plan *p;
    Arena *a;
    /* by id, with room for `cap` */
    bool *outside; /* nodes of the canonical graph, and what stands for them */
    Node **root;   /* of what lies between: whose variant made it first */
    const char **name;
    Node **stack;
    uint32_t cap;
} VariantNodes;

static void make_room(VariantNodes *m, uint32_t n)
{
    enum { MORE = 1024 };
    if (n <= m->cap)
        return;
    const VariantNodes old = *m;
    m->cap = n + n / 8 + MORE;
    m->outside = NEWN(m->a, bool, m->cap);
    m->root = NEWN(m->a, Node *, m->cap);
    m->name = NEWN(m->a, const char *, m->cap);
    m->stack = NEWN(m->a, Node *, m->cap);
    if (old.cap) {
        memcpy(m->outside, old.outside, old.cap * sizeof *m->outside);
        memcpy((void *)m->root, old.root, old.cap * sizeof *m->root);
        memcpy((void *)m->name, old.name, old.cap * sizeof *m->name);
    }
}

static void set_outside(VariantNodes *m, const Node *n)
{
    make_room(m, n->id + 1);
    m->outside[n->id] = true;
}

/* Of the variant, for the first time? */
static bool note_node(VariantNodes *m, const Node *t, Node *of, const char *name)
{
    if (t->dtype == INGOT_INDEX || m->root[t->id] || m->outside[t->id])
        return false;
    m->root[t->id] = of;
    m->name[t->id] = name;
    return true;
}

/* All from here down to the graph is of the variant, whether the context has had it before or
 * not. */
static void note_made(VariantNodes *m, const Context *c, Node *made, Node *of, const char *name)
{
    int n = 0;
    make_room(m, c->nnode);
    if (note_node(m, made, of, name))
        m->stack[n++] = made;
    while (n) {
        Node *t = m->stack[--n];
        for (uint32_t i = 0; i < t->nsrc; i++)
            if (note_node(m, t->src[i], of, name))
                m->stack[n++] = t->src[i];
    }
}

/* The variant of a node that its decision asks for, or the fastest one, or one that hardly takes
 * longer and that another target's plan has; NULL: it stays. *any: there are some. */
static const Variant *chosen(const VariantNodes *m, Rewrite *r, Node *n, bool *any)
{
    const double MUCH_FASTER = 5. / 6, HARDLY = 1.08;
    /* what is faster takes more kernels, and is made in strips so that it stays near what reads it
     * next */
    const bool as_it_is = values_preset(m->p) != PRESET_AUTO;
    const ValueChoice *given = value_given(m->p, r->visiting);
    const char *name = given ? given->variant : NULL;
    const char *before = map_get(&r->c->variants_before, (uint64_t)r->visiting->id + 1);
    const Variant *best = NULL, *like = NULL;
    double least = MUCH_FASTER, alike = INFINITY;
    *any = false;
    for (int i = 0; i < NVARIANT; i++) {
        const Variant *v = &variants[i];
        if (v->op != n->op || !v->make(r, n, true))
            continue;
        *any = true;
        if (name && !strcmp(name, v->name))
            best = v;
        double time = name || as_it_is || !v->time ? INFINITY : v->time(r, n);
        if (time < least) {
            least = time;
            best = v;
        }
        if (before && !strcmp(before, v->name)) {
            like = v;
            alike = time;
        }
    }
    return like && alike < MUCH_FASTER && alike <= HARDLY * least ? like : best;
}

static Node *variant_of(Rewrite *r, Node *n)
{
    VariantNodes *m = r->user;
    Node *old = r->visiting, *made;
    bool any;
    const Variant *v = chosen(m, r, n, &any);
    if (any)
        value_record(m->p, old)->variant = v ? v->name : "direct";
    if (any && !v)
        return n;
    made = v ? v->make(r, n, false) : in_strips(r, n);
    if (!made)
        made = joined_elementwise(r, n);
    if (made)
        note_made(m, r->c, made, old, v ? v->name : "matmul");
    return made ? made : n;
}

static Node *apply_variant(Rewrite *r, Node *n)
{
    Node *now = variant_of(r, n);
    set_outside(r->user, now);
    return now;
}

/* The loops of strips: what stood for a node of the first graph, and what was made, has become
 * another one. */
static void make_loops(Rewrite *r, VariantNodes *m)
{
    Context *c = r->c;
    Rewrite then = {.c = c, .a = m->a, .renew = strip_loop, .user = r};
    int n;
    Node **nodes = graph_nodes(m->a, c, &n);
    strip_loops(r, n, nodes, &then.strips);
    (void)rewrite_pass(&then);
    make_room(m, c->nnode);
    for (uint32_t id = 0; id < then.nnode; id++) {
        const Node *now = then.now[id];
        if (now && m->root[id] && !m->root[now->id]) {
            m->root[now->id] = m->root[id];
            m->name[now->id] = "strips";
        }
    }
    for (uint32_t id = 0; id < r->nnode; id++)
        if (r->now[id])
            r->now[id] = rewritten(&then, r->now[id]);
    map_free(&then.strips);
}

void variants_apply(Plan *p, const Target *t, bool any_ram, GraphRoots *keep)
{
    Context *c = p->c;
    *keep = roots_keep(c, p->arena);
    Arena *a = arena_new();
    VariantNodes m = {.p = p, .a = a};
    make_room(&m, c->nnode);
    Rewrite r = {.c = c, .a = a, .apply = apply_variant, .user = &m, .target = t};
    int n;
    Node *const *nodes = values_nodes(p, &n);
    for (int i = 0; i < n; i++)
        set_outside(&m, nodes[i]);
    for (int i = 0; i < n; i++)
        r.ram = any_ram ? INFINITY : fmax(r.ram, product_ram(&r, nodes[i]));
    find_summed(&r, n, nodes);
    if (rewrite_pass(&r)) {
        if (r.strips.n)
            make_loops(&r, &m);
        make_room(&m, c->nnode + 1);
        values_follow(p, r.nnode, r.now, m.root, m.name);
    }
    map_free(&r.strips);
    map_free(&r.summed);
    map_free(&r.constants);
    arena_free(a);
}

GraphRoots roots_keep(const Context *c, Arena *a)
{
    GraphRoots keep = {.node = NEWN(a, Node *, c->noutput + c->nstate + c->nvar + 1)};
    for (int i = 0; i < c->noutput; i++)
        keep.node[keep.n++] = c->outputs[i].node;
    for (int i = 0; i < c->nstate; i++)
        keep.node[keep.n++] = c->states[i].next;
    for (int i = 0; i < c->nvar; i++)
        keep.node[keep.n++] = c->vars[i].setter;
    return keep;
}

void roots_restore(Context *c, const GraphRoots *keep)
{
    int n = 0;
    for (int i = 0; i < c->noutput && n < keep->n; i++)
        c->outputs[i].node = keep->node[n++];
    for (int i = 0; i < c->nstate && n < keep->n; i++)
        c->states[i].next = keep->node[n++];
    for (int i = 0; i < c->nvar && n < keep->n; i++)
        c->vars[i].setter = keep->node[n++];
}
