/* variant.c - algebraic variants: the graph with those that a plan's decisions ask for.
 *
 * They come last, on the canonical graph, and belong to one plan: variants_apply() keeps the model's roots, and
 * roots_restore() gives them back, so that the next plan starts from the same graph. */
#include <string.h>

#include "../schedule/values.h"
#include "rewrite.h"

typedef struct {
    const char *name;
    Op op;
    Node *(*make)(Rewrite *, Node *, bool try);
} Variant;

static const Variant variants[] = {
#define VARIANT(name, op, function) {name, OP_##op, function},
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

static Node *apply_variant(Rewrite *r, Node *n)
{
    Made *m = r->user;
    Node *old = r->visiting;
    bool any = false;
    const ValueChoice *given = value_given(m->p, old);
    for (int i = 0; i < NVARIANT; i++) {
        if (variants[i].op != n->op || !variants[i].make(r, n, true))
            continue;
        any = true;
        if (!given || !given->variant || strcmp(given->variant, variants[i].name))
            continue;
        value_record(m->p, old)->variant = variants[i].name;
        uint32_t before = r->c->nnode;
        Node *made = variants[i].make(r, n, false);
        note_made(m, before, r->c->nnode, old, variants[i].name);
        return made;
    }
    if (any) {
        value_record(m->p, old)->variant = "direct";
        return n;
    }
    uint32_t before = r->c->nnode;
    Node *joined = joined_elementwise(r, n);
    if (joined)
        note_made(m, before, r->c->nnode, old, "matmul");
    return joined ? joined : n;
}

void variants_apply(Plan *p, GraphRoots *keep)
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
    Rewrite r = {.c = c, .a = a, .apply = apply_variant, .user = &m};
    if (rewrite_pass(&r)) {
        note_made(&m, c->nnode, c->nnode, NULL, NULL);
        if (m.cap < c->nnode)
            note_made(&m, m.cap, c->nnode + 1, NULL, NULL);
        values_follow(p, r.nnode, r.now, m.root, m.name);
    }
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
