/* variant.c - algebraic variants: the graph with those that a plan's decisions ask for.
 *
 * They come last, on the canonical graph, and belong to one plan: variants_apply() keeps the model's roots, and
 * roots_restore() gives them back, so that the next plan starts from the same graph. */
#include <math.h>
#include <string.h>

#include "../schedule/values.h"
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
    Node **root; /* by id of a new node: whose variant made it */
    const char **name;
    uint32_t cap;
} Made;

static void note_made(Made *m, uint32_t from, uint32_t to, Node *of, const char *name)
{
    if (to > m->cap) {
        uint32_t cap = 2 * to;
        Node **root = NEWN(m->a, Node *, cap);
        const char **names = NEWN(m->a, const char *, cap);
        if (m->cap) {
            memcpy((void *)root, m->root, m->cap * sizeof *root);
            memcpy((void *)names, m->name, m->cap * sizeof *names);
        }
        m->root = root;
        m->name = names;
        m->cap = cap;
    }
    for (uint32_t i = from; i < to; i++) {
        m->root[i] = of;
        m->name[i] = name;
    }
}

/* The variant of a node that its decision asks for, or the fastest one; NULL: it stays. *any: there are some. */
static const Variant *chosen(const Made *m, Rewrite *r, Node *n, bool *any)
{
    const double MUCH_FASTER = 5. / 6;
    const ValueChoice *given = value_given(m->p, r->visiting);
    const char *name = given ? given->variant : NULL;
    const Variant *best = NULL;
    double least = MUCH_FASTER;
    *any = false;
    for (int i = 0; i < NVARIANT; i++) {
        const Variant *v = &variants[i];
        if (v->op != n->op || !v->make(r, n, true))
            continue;
        *any = true;
        if (name && !strcmp(name, v->name))
            best = v;
        double time = name || !v->time ? INFINITY : v->time(r, n);
        if (time < least) {
            least = time;
            best = v;
        }
    }
    return best;
}

static Node *apply_variant(Rewrite *r, Node *n)
{
    Made *m = r->user;
    Node *old = r->visiting, *made;
    bool any;
    const Variant *v = chosen(m, r, n, &any);
    uint32_t before = r->c->nnode;
    if (any)
        value_record(m->p, old)->variant = v ? v->name : "direct";
    if (any && !v)
        return n;
    made = v ? v->make(r, n, false) : in_strips(r, n);
    if (!made)
        made = joined_elementwise(r, n);
    if (made)
        note_made(m, before, r->c->nnode, old, v ? v->name : "matmul");
    return made ? made : n;
}

/* The parts of strips are stored: what stood for a node of the first graph, and what was made, has become another one. */
static void keep_parts(Rewrite *r, Made *m)
{
    Context *c = r->c;
    Rewrite then = {.c = c, .a = m->a, .apply = kept_part};
    int n;
    Node **nodes = graph_nodes(m->a, c, &n);
    strip_parts(r, n, nodes, &then.strips);
    (void)rewrite_pass(&then);
    note_made(m, then.nnode, c->nnode, NULL, NULL);
    for (uint32_t id = r->nnode; id < then.nnode; id++) {
        const Node *now = then.now[id];
        if (now && now->id >= then.nnode)
            note_made(m, now->id, now->id + 1, m->root[id], "strips");
    }
    for (uint32_t id = 0; id < r->nnode; id++)
        if (r->now[id])
            r->now[id] = rewritten(&then, r->now[id]);
    map_free(&then.strips);
}

void variants_apply(Plan *p, const Target *t, bool any_ram, GraphRoots *keep)
{
    Context *c = p->c;
    *keep = (GraphRoots){.node = NEWN(p->arena, Node *, c->noutput + c->nstate + c->nvar + 1)};
    for (int i = 0; i < c->noutput; i++)
        keep->node[keep->n++] = c->outputs[i].node;
    for (int i = 0; i < c->nstate; i++)
        keep->node[keep->n++] = c->states[i].next;
    for (int i = 0; i < c->nvar; i++)
        keep->node[keep->n++] = c->vars[i].setter;
    Arena *a = arena_new();
    Made m = {.p = p, .a = a};
    Rewrite r = {.c = c, .a = a, .apply = apply_variant, .user = &m, .target = t};
    int n;
    Node **nodes = graph_nodes(a, c, &n);
    for (int i = 0; i < n; i++)
        r.ram = any_ram ? INFINITY : fmax(r.ram, product_ram(nodes[i]));
    if (rewrite_pass(&r)) {
        note_made(&m, c->nnode, c->nnode, NULL, NULL);
        if (m.cap < c->nnode)
            note_made(&m, m.cap, c->nnode + 1, NULL, NULL);
        if (r.strips.n)
            keep_parts(&r, &m);
        values_follow(p, r.nnode, r.now, m.root, m.name);
    }
    map_free(&r.strips);
    arena_free(a);
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
