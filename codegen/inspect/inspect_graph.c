/* inspect_graph.c - the graph as JSON: the nodes of the model's file, and those of the compiler as
 * they were imported and rewritten.  Nodes never change, so that a number is the same node in both
 * graphs. */
#include <math.h>
#include <string.h>

#include "inspect.h"
#include "text.h"

/* ---- the file's nodes ------------------------------------------------------------------------ */

static void source_values(StrBuf *sb, const Context *c, const char *what,
                          const ingot_source_value *v, int n)
{
    sb_printf(sb, ", \"%s\": [", what);
    for (int i = 0; i < n; i++) {
        sb_puts(sb, i ? ", {\"name\": " : "{\"name\": ");
        json_string(sb, v[i].name);
        Node *t = (Node *)v[i].tensor;
        if (t && t->op != OP_POISON) {
            StrBuf type = {0};
            print_shape(&type, c, (ingot_dtype)t->dtype, t->rank, t->shape);
            sb_puts(sb, ", \"type\": ");
            json_string(sb, type.data);
            sb_free(&type);
            if (t->op == OP_DATA || t->op == OP_CONST)
                sb_puts(sb, ", \"constant\": true");
            else
                sb_printf(sb, ", \"node\": %u", t->id);
        }
        sb_puts(sb, "}");
    }
    sb_puts(sb, "]");
}

static void source_nodes(StrBuf *sb, const Context *c)
{
    sb_puts(sb, "  \"source\": [");
    for (int i = 0; i < c->nsource; i++) {
        const ingot_source_node *s = c->source[i];
        sb_puts(sb, i ? ",\n    {\"node\": " : "\n    {\"node\": ");
        json_string(sb, s->node);
        sb_puts(sb, ", \"op\": ");
        json_string(sb, s->op);
        if (*s->domain) {
            sb_puts(sb, ", \"domain\": ");
            json_string(sb, s->domain);
        }
        sb_puts(sb, ", \"scope\": ");
        json_string(sb, s->scope ? s->scope : "");
        if (s->inside >= 0)
            sb_printf(sb, ", \"inside\": %d", s->inside);
        source_values(sb, c, "inputs", s->in, s->n_in);
        source_values(sb, c, "outputs", s->out, s->n_out);
        sb_puts(sb, ", \"attributes\": {");
        for (int k = 0; k < s->n_attr; k++) {
            sb_puts(sb, k ? ", " : "");
            json_string(sb, s->attr[2 * k]);
            sb_puts(sb, ": ");
            json_string(sb, s->attr[2 * k + 1]);
        }
        sb_puts(sb, "}}");
    }
    sb_puts(sb, c->nsource ? "\n  ],\n" : "],\n");
}

/* ---- the compiler's -------------------------------------------------------------------------- */

typedef struct {
    const Inspection *x;
    Arena *a;
    bool *seen; /* by id */
    Node **node;
    int *inside; /* the loop or branch whose body holds it: an id, or -1 */
    int n, ninside;
    Map origin; /* hash of an origin's text -> its number + 1 */
    const Origin **origins;
    int norigin;
} ModelGraph;

static void collect(ModelGraph *g, int nroot, Node *const *roots, int inside);

static void collect_region(ModelGraph *g, const struct Region *r, int inside)
{
    collect(g, r->nresult, r->result, inside);
}

/* Depth is bounded by that of the file's messages. */
static void collect(ModelGraph *g, int nroot, Node *const *roots, int inside)
{
    int n;
    Node **order = graph_toposort(g->a, nroot, roots, &n);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        if (g->seen[t->id] || t->dtype == INGOT_INDEX)
            continue;
        g->seen[t->id] = true;
        vec_push(g->a, g->node, g->n, t);
        vec_push(g->a, g->inside, g->ninside, inside);
        if (t->op == OP_LOOP) {
            collect_region(g, ((const Loop *)t->arg.ptr)->body, (int)t->id);
        } else if (t->op == OP_IF) {
            collect_region(g, ((const If *)t->arg.ptr)->then_branch, (int)t->id);
            collect_region(g, ((const If *)t->arg.ptr)->else_branch, (int)t->id);
        }
    }
}

static int origin_number(ModelGraph *g, const Origin *o)
{
    uint64_t key = hash_bytes(hash_bytes(1, o->node, strlen(o->node)), o->op, strlen(o->op));
    int at = (int)(intptr_t)map_get(&g->origin, key);
    if (!at) {
        vec_push(g->a, g->origins, g->norigin, o);
        at = g->norigin;
        map_put(&g->origin, key, (void *)(intptr_t)at);
    }
    return at - 1;
}

static void arg_text(StrBuf *sb, const Context *c, Node *n)
{
    switch (n->op) {
    case OP_CONST:
        if (dtype_is_float(n->dtype))
            sb_printf(sb, "%.9g", node_float(n));
        else
            sb_printf(sb, "%lld", (long long)n->arg.i);
        return;
    case OP_DATA: {
        const Data *d = n->arg.ptr;
        sb_puts(sb, d->name ? d->name : "");
        return;
    }
    case OP_CALL: sb_puts(sb, ((const Call *)n->arg.ptr)->name); return;
    case OP_REDUCE:
    case OP_SCAN:
        sb_puts(sb, text_monoid[reduce_monoid(n)]);
        if (reduce_size(n) > 1)
            sb_printf(sb, ".%d", reduce_part(n));
        for (int i = 0; i < INGOT_MAX_RANK; i++)
            if (n->arg.i >> (8 + i) & 1)
                sb_printf(sb, " %d", i);
        return;
    case OP_UPDATE: sb_puts(sb, text_update[n->arg.i]); return;
    case OP_PERMUTE: {
        const Perm *perm = n->arg.ptr;
        for (int i = 0; i < perm->n; i++)
            sb_printf(sb, i ? " %d" : "%d", perm->axis[i]);
        return;
    }
    case OP_INPUT:
        if (input_name(c, n))
            sb_puts(sb, input_name(c, n));
        return;
    case OP_IF:
    case OP_LOOP: return;
    default:
        if (op_info[n->op].arg == ARG_INT)
            sb_printf(sb, "%lld", (long long)n->arg.i);
        return;
    }
}

/* Operations as the graph says it, before anything is fused or done another way: one for each
 * element that is computed, one for each that is reduced; at the upper bounds of run-time dims. */
static int64_t node_flops(const Node *n)
{
    const Node *of = n->op == OP_REDUCE ? n->src[0] : n;
    int64_t elements = n->op == OP_REDUCE || (op_is_alu(n->op) && n->op != OP_CAST);
    for (int d = 0; d < of->rank; d++)
        elements = sat_mul(elements, of->shape[d]->hi);
    return elements;
}

static void graph_node(StrBuf *sb, ModelGraph *g, Node *n, int inside)
{
    const Context *c = g->x->p->c;
    sb_printf(sb, "{\"id\": %u, \"op\": \"%s\", \"type\": ", n->id, op_info[n->op].text);
    StrBuf text = {0};
    print_shape(&text, c, (ingot_dtype)n->dtype, n->rank, n->shape);
    json_string(sb, text.data);
    sb_free(&text);
    text = (StrBuf){0};
    arg_text(&text, c, n);
    int before = text_before_dims(n->op), nsrc = before >= 0 ? before : (int)n->nsrc;
    nsrc = nsrc < (int)n->nsrc ? nsrc : (int)n->nsrc;
    for (int i = 0; i < nsrc; i++)
        if (n->src[i]->dtype == INGOT_INDEX) { /* amounts of padding and the like */
            sb_puts(&text, text.len ? " " : "");
            print_dim(&text, c, n->src[i]);
        }
    if (text.len) {
        sb_puts(sb, ", \"arg\": ");
        json_string(sb, text.data);
    }
    sb_free(&text);
    sb_puts(sb, ", \"src\": [");
    const char *comma = "";
    for (int i = 0; i < nsrc; i++)
        if (n->src[i]->dtype != INGOT_INDEX) {
            sb_printf(sb, "%s%u", comma, n->src[i]->id);
            comma = ", ";
        }
    sb_puts(sb, "]");
    if (node_flops(n))
        sb_printf(sb, ", \"flops\": %lld", (long long)node_flops(n));
    if (c->origins[n->id])
        sb_printf(sb, ", \"origin\": %d", origin_number(g, node_origin(c, n)));
    const OriginList *more = c->origins[n->id] ? c->origins[n->id]->rest : NULL;
    for (const OriginList *l = more; l; l = l->rest)
        sb_printf(sb, "%s%d", l == more ? ", \"also\": [" : ", ", origin_number(g, l->origin));
    sb_puts(sb, more ? "]" : "");
    if (inside >= 0)
        sb_printf(sb, ", \"inside\": %d", inside);
    sb_puts(sb, "}");
}

static Node **results(const Inspection *x, Arena *a, int *n)
{
    const Context *c = x->p->c;
    Node **roots = NULL;
    *n = 0;
    for (int i = 0; i < c->noutput; i++)
        vec_push(a, roots, *n, c->outputs[i].node);
    for (int i = 0; i < c->nstate; i++)
        if (c->states[i].next)
            vec_push(a, roots, *n, c->states[i].next);
    return roots;
}

/* The nodes below the results, as numbers. */
static void graph(StrBuf *sb, const Inspection *x, ModelGraph *all, const char *pass, int nroot,
                  Node *const *roots)
{
    ModelGraph g = {.x = x, .a = all->a, .seen = NEWN(all->a, bool, x->p->c->nnode + 1)};
    collect(&g, nroot, roots, -1);
    sb_printf(sb, "    {\"pass\": \"%s\", \"results\": [", pass);
    for (int i = 0; i < nroot; i++)
        sb_printf(sb, i ? ", %u" : "%u", roots[i]->id);
    sb_puts(sb, "], \"nodes\": [");
    for (int i = 0; i < g.n; i++)
        sb_printf(sb, i ? ", %u" : "%u", g.node[i]->id);
    sb_puts(sb, "]}");
    for (int i = 0; i < g.n; i++)
        if (!all->seen[g.node[i]->id]) {
            all->seen[g.node[i]->id] = true;
            vec_push(all->a, all->node, all->n, g.node[i]);
            vec_push(all->a, all->inside, all->ninside, g.inside[i]);
        }
}

void inspect_graphs(StrBuf *sb, const Inspection *x)
{
    Context *c = x->p->c;
    Arena *a = arena_new();
    ModelGraph g = {.x = x, .a = a, .seen = NEWN(a, bool, c->nnode + 1)};
    const struct Imported before = x->imported[c->function];
    int n;
    Node **now = results(x, a, &n);
    source_nodes(sb, c);
    sb_puts(sb, "  \"graphs\": [\n");
    graph(sb, x, &g, "imported", before.n, before.node);
    sb_puts(sb, ",\n");
    graph(sb, x, &g, "rewritten", n, now);
    sb_puts(sb, "\n  ],\n  \"nodes\": [");
    for (int i = 0; i < g.n; i++) {
        sb_puts(sb, i ? ",\n    " : "\n    ");
        graph_node(sb, &g, g.node[i], g.inside[i]);
    }
    sb_puts(sb, "\n  ],\n  \"origins\": [");
    for (int i = 0; i < g.norigin; i++) {
        sb_puts(sb, i ? ",\n    {\"node\": " : "\n    {\"node\": ");
        json_string(sb, g.origins[i]->node);
        sb_puts(sb, ", \"op\": ");
        json_string(sb, g.origins[i]->op);
        sb_puts(sb, "}");
    }
    sb_puts(sb, "\n  ],\n");
    map_free(&g.origin);
    arena_free(a);
}
