/* rewrite.c - the rules of rewrites.def, applied to a model's graph from its leaves up until none
 * applies any more.
 *
 * A rewritten graph asks for the same function; where its arithmetic is another one,
 * docs/numerics.md has the rule. A node whose sources changed is made again: movement through the
 * builder, which joins two of a kind; a loop or branch with bodies that have been rewritten too
 * (rewrite_control.c). */
#include <string.h>

#include "builder.h"
#include "rewrite.h"
#include "tc.h"

typedef struct {
    const char *name;
    Op op;
    Node *(*apply)(Rewrite *, Node *);
    bool rounds;
} RewriteRule;

static const RewriteRule rules[] = {
#define REWRITE(name, op, function, rounds) {name, OP_##op, function, rounds},
#include "rewrites.def"
};
enum { NRULE = sizeof rules / sizeof rules[0] };

/* What is done of the whole graph; the last one for CPUs with matrix units, the three before it for
 * GPUs with them. */
static const char *const of_graph[] = {"demand",        "batches",   "bands",    "scale-products",
                                       "join-products", "join-sums", "sum-parts"};
enum { DEMAND, BATCHES, BANDS, SCALE_PRODUCTS, JOIN_PRODUCTS, JOIN_SUMS, SUM_PARTS, NGRAPH };

const char *rewrite_name(int i)
{
    for (int k = 0; k < NRULE; k++)
        if (!k || strcmp(rules[k].name, rules[k - 1].name))
            if (!i--)
                return rules[k].name;
    return i < NGRAPH ? of_graph[i] : NULL;
}

/* "a,b": is it one of these names? */
static bool is_named(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && !strncmp(at, name, n))
            return true;
    return false;
}

static Node *apply_rules(Rewrite *r, Node *n)
{
    if (r->custom_calls)
        return n->op == OP_CUSTOM ? custom_call(r->c, n) : n;
    for (int i = 0; i < NRULE; i++) {
        if (rules[i].op != n->op || n->dtype == INGOT_INDEX || is_named(r->off, rules[i].name))
            continue;
        Node *other = rules[i].apply(r, n);
        if (!other || other == n)
            continue;
        r->rounds |= rules[i].rounds;
        return other;
    }
    return n;
}

Node *rewritten(const Rewrite *r, Node *n)
{
    return n->id < r->nnode && r->now[n->id] ? r->now[n->id] : n;
}

static Node *renewed(Rewrite *r, Node *t)
{
    bool changed = false;
    for (uint32_t i = 0; i < t->nsrc && !changed; i++)
        changed = rewritten(r, t->src[i]) != t->src[i];
    if (t->op == OP_LOOP || t->op == OP_IF)
        return renewed_control(r, t);
    if (!changed)
        return t;
    Node **src = NEWN(r->a, Node *, t->nsrc + 1);
    for (uint32_t i = 0; i < t->nsrc; i++)
        src[i] = rewritten(r, t->src[i]);
    return made_again(r, t, src);
}

Node *made_again(Rewrite *r, Node *t, Node **src)
{
    bool one = true; /* of its sources, the first alone is another one */
    for (uint32_t i = 1; i < t->nsrc; i++)
        one &= src[i] == t->src[i];
    Node *moved = one && op_info[t->op].cls == MOVE ? move_again(r->c, t, src[0]) : NULL;
    if (moved)
        return moved;
    return node_make(r->c, (Op)t->op, (ingot_dtype)t->dtype, t->arg, (int)t->nsrc, src, t->rank,
                     t->shape);
}

/* How often each node of the graph before this pass is read, up to 2. */
static void count_reads(Rewrite *r, int nroot, Node *const *roots, bool *seen)
{
    int n;
    Node **order = graph_toposort(r->a, nroot, roots, &n);
    for (int i = 0; i < nroot; i++)
        r->reads[roots[i]->id] += r->reads[roots[i]->id] < 2;
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        if (seen[t->id])
            continue;
        seen[t->id] = true;
        for (uint32_t j = 0; j < t->nsrc; j++)
            r->reads[t->src[j]->id] += r->reads[t->src[j]->id] < 2;
        const Loop *loop = t->op == OP_LOOP ? t->arg.ptr : NULL;
        const If *branch = t->op == OP_IF ? t->arg.ptr : NULL;
        const struct Region *body[] = {loop     ? loop->body
                                       : branch ? branch->then_branch
                                                : NULL,
                                       branch ? branch->else_branch : NULL};
        for (int k = 0; k < 2; k++)
            if (body[k])
                count_reads(r, body[k]->nresult, body[k]->result, seen);
    }
}

static void reads_counted(Rewrite *r)
{
    if (r->reads)
        return;
    r->reads = NEWN(r->a, uint8_t, r->nnode + 1);
    count_reads(r, r->nroot, r->roots, NEWN(r->a, bool, r->nnode + 1));
}

/* Ids do not tell: of what this pass makes, the context may have had a node before. */
Node *node_before(Rewrite *r, Node *n)
{
    reads_counted(r);
    if (n->id < r->nnode && r->reads[n->id])
        return n;
    const intptr_t old = (intptr_t)map_get(&r->replaced, (uint64_t)n->id + 1);
    return old > 0 ? r->c->nodes[old - 1] : NULL;
}

bool read_once(Rewrite *r, Node *n)
{
    const Node *was = node_before(r, n);
    const bool also = was == n && map_get(&r->replaced, (uint64_t)n->id + 1);
    return was && !also && r->reads[was->id] == 1;
}

/* What stands for t from now on. */
static void replace(Rewrite *r, Node *t, Node *now)
{
    r->now[t->id] = now;
    if (now == t)
        return;
    r->changed = true;
    const uint64_t key = (uint64_t)now->id + 1;
    map_put(&r->replaced, key,
            (void *)(map_get(&r->replaced, key) ? (intptr_t)-1 : (intptr_t)t->id + 1));
}

void rewrite_below(Rewrite *r, int nroot, Node *const *roots)
{
    int n;
    Node **order = graph_toposort(r->a, nroot, roots, &n);
    const OriginList *at = r->c->at;
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        if (t->id >= r->nnode || r->now[t->id])
            continue;
        r->c->at = r->c->origins[t->id];
        r->visiting = t;
        Node *part = r->renew ? r->renew(r, t) : NULL, *same = part ? part : renewed(r, t);
        Making making;
        making_begin(&making, r->c);
        replace(r, t, r->apply ? r->apply(r, same) : same);
        making_end(&making, same, r->now[t->id]);
    }
    r->c->at = at;
}

Node **rewrite_roots(Context *c, Arena *a, int *nroot)
{
    Node **roots = NULL;
    int n = 0;
    for (int i = 0; i < c->noutput; i++)
        vec_push(a, roots, n, c->outputs[i].node);
    for (int i = 0; i < c->nstate; i++)
        if (c->states[i].next)
            vec_push(a, roots, n, c->states[i].next);
    for (int i = 0; i < c->nvar; i++)
        if (c->vars[i].setter)
            vec_push(a, roots, n, c->vars[i].setter);
    *nroot = n;
    return roots;
}

bool rewrite_pass(Rewrite *r)
{
    Context *c = r->c;
    int nroot;
    Node **roots = rewrite_roots(c, r->a, &nroot);
    r->nnode = c->nnode;
    r->now = NEWN(r->a, Node *, c->nnode + 1);
    r->changed = false;
    r->replaced = (Map){0};
    r->roots = roots;
    r->nroot = nroot;
    r->reads = NULL;
    rewrite_below(r, nroot, roots);
    for (int i = 0; i < c->noutput; i++)
        c->outputs[i].node = rewritten(r, c->outputs[i].node);
    for (int i = 0; i < c->nstate; i++)
        if (c->states[i].next)
            c->states[i].next = rewritten(r, c->states[i].next);
    for (int i = 0; i < c->nvar; i++)
        if (c->vars[i].setter)
            c->vars[i].setter = rewritten(r, c->vars[i].setter);
    map_free(&r->replaced);
    return r->changed;
}

/* Whether a rule applied that rounds otherwise. */
static bool rewrite(Rewrite r)
{
    const uint32_t most =
        DEPTH_ANY + r.c->nnode; /* what waits for what is below it takes a pass each */
    for (uint32_t i = 0; i < most; i++) {
        r.a = arena_new();
        bool again = rewrite_pass(&r);
        arena_free(r.a);
        if (!again && r.settled) {
            map_free(&r.signless);
            return r.rounds;
        }
        r.settled |= !again;
    }
    BUG("rewriting does not end");
}

/* A function of all nodes, once. */
static bool pass_of(Context *c, const Target *t, Node *(*apply)(Rewrite *, Node *))
{
    Rewrite r = {.c = c, .a = arena_new(), .target = t, .apply = apply};
    bool any = rewrite_pass(&r);
    arena_free(r.a);
    return any;
}

/* One instruction multiplies and adds numbers of 16 bits, and what widens bytes is done beside. */
static bool takes_shorts(const Target *t)
{
    const Machine *m = &t->machine;
    return !t->gpu && m->lanes && !m->pairs && machine_dots(m, 2, false) && machine_in_halves(m) &&
           m->byte < DEAR;
}

bool graph_rewrite(Context *c, const Target *t, const char *off)
{
    /* matrix units take bytes of any sign, and where memory is dear no input is stored again */
    const bool one_sign = t && t->machine.lanes && t->machine.dot && !t->machine.any_sign &&
                          !t->machine.units && t->machine.byte < DEAR;
    const bool halves = t && !t->gpu && t->machine.lanes && t->machine.pairs &&
                        t->machine.dot_i16 > 1 && t->machine.byte < DEAR;
    const Rewrite rules_of = {.c = c,
                              .float_sums = t && t->machine.lanes,
                              .dot = t && t->machine.dot,
                              .fours =
                                  t && !t->gpu && t->machine.dot && (!t->machine.pairs || halves),
                              .soft_floats = t && t->machine.soft_floats,
                              .scalar = t && !t->gpu && !t->machine.lanes,
                              .words = t && t->machine.lanes >= 16,
                              .tables = t && t->machine.tables,
                              .f8 = t && tc_has_f8(&t->machine),
                              .one_sign = one_sign,
                              .halves = halves,
                              .shorts = t && takes_shorts(t),
                              .off = off,
                              .apply = apply_rules};
    bool rounds = rewrite(rules_of), units = t && t->gpu && t->machine.units, batched = false;
    if (!is_named(off, of_graph[DEMAND]) && demand(c))
        rounds |= rewrite(rules_of);
    if (t && !is_named(off, of_graph[BATCHES]))
        batched = batches(c, t);
    if (t && !batched && !is_named(off, of_graph[BANDS]))
        (void)bands(c, t);
    if (units && !is_named(off, of_graph[SCALE_PRODUCTS]))
        rounds |= pass_of(c, t, scale_products);
    if (units && !is_named(off, of_graph[JOIN_PRODUCTS]) && join_products(c))
        rounds |= rewrite(rules_of);
    if (units && !is_named(off, of_graph[JOIN_SUMS]) && join_sums(c))
        rounds |= rewrite(rules_of);
    if (t && !t->gpu && t->machine.units && !is_named(off, of_graph[SUM_PARTS]))
        rounds |= pass_of(c, t, sum_parts);
    return rounds;
}

void graph_custom_calls(Context *c)
{
    (void)rewrite((Rewrite){.c = c, .custom_calls = true, .settled = true, .apply = apply_rules});
}
