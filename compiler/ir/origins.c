/* origins.c - what a rule makes is of the nodes of the model that it replaces.
 *
 *     round((a * s + b) / t)
 *         -> round(a * (s / t) + b / t)        round, /: QuantizeLinear; +: Add; *:
 *            DequantizeLinear
 *
 * A new node takes the origins of those that are gone, of the same op and made of the same things:
 * the new sum is of Add.  What has no like is of what the result was of; and the result is of those
 * that are gone without a like. */
#include "ir.h"

enum { MAX_NODES = 192, MAX_READ = 64, SLOT_BITS = 10, SLOTS = 1 << SLOT_BITS };

/* Nodes, and which of those that old and new ones read they are made of, a bit each. */
typedef struct {
    Node *node[MAX_NODES];
    uint64_t of[MAX_NODES];
    int n;
    uint8_t slot[SLOTS]; /* place + 1; linear probing */
} NodeTable;

static unsigned slot_of(const NodeTable *s, const Node *t)
{
    unsigned at = (t->id * 0x9E3779B1u) >> (32 - SLOT_BITS); /* by Fibonacci's hash */
    while (s->slot[at] && s->node[s->slot[at] - 1] != t)
        at = (at + 1) % SLOTS;
    return at;
}

static int place(const NodeTable *s, const Node *t)
{
    return s->slot[slot_of(s, t)] - 1;
}

static bool counts(const Node *t)
{
    return t->dtype != INGOT_INDEX && op_info[t->op].cls != LEAF && !t->numbers;
}

static void add(NodeTable *s, Node *t)
{
    unsigned at = slot_of(s, t);
    if (s->n == MAX_NODES || s->slot[at])
        return;
    s->node[s->n++] = t;
    s->slot[at] = (uint8_t)s->n;
}

/* Which bits they are made of, until none changes any more; where a source stands is looked up
 * once. */
static void find_bits(NodeTable *s, const NodeTable *read)
{
    Arena *a = arena_new();
    int **inside = NEWN(a, int *, s->n + 1);
    for (int i = 0; i < s->n; i++) {
        const Node *t = s->node[i];
        inside[i] = NEWN(a, int, t->nsrc + 1);
        for (uint32_t k = 0; k < t->nsrc; k++) {
            int from = place(read, t->src[k]);
            inside[i][k] = place(s, t->src[k]);
            if (inside[i][k] < 0 && from >= 0 && from < MAX_READ)
                s->of[i] |= UINT64_C(1) << from;
        }
    }
    for (bool again = true; again;) {
        again = false;
        for (int i = s->n; i-- > 0;) { /* sources stand behind, but for a few */
            uint64_t of = s->of[i];
            for (uint32_t k = 0; k < s->node[i]->nsrc; k++)
                of |= inside[i][k] >= 0 ? s->of[inside[i][k]] : 0;
            again |= of != s->of[i];
            s->of[i] = of;
        }
    }
    arena_free(a);
}

void making_begin(Making *m, Context *c)
{
    m->c = c;
    m->before = c->nnode;
    m->nfound = 0;
    c->making = m;
}

void making_found(Making *m, Node *n)
{
    if (m->nfound < MAX_FOUND)
        m->found[m->nfound++] = n;
}

/* What was asked for and is part of the result: new nodes, and those that there were, but not below
 * the old one. */
static void find_made(const Making *m, const NodeTable *below, Node *now, NodeTable *made)
{
    NodeTable found = {.n = 0};
    for (int i = 0; i < m->nfound; i++)
        if (place(below, m->found[i]) < 0)
            add(&found, m->found[i]);
    if (now->id >= m->before || place(&found, now) >= 0)
        add(made, now);
    for (int i = 0; i < made->n; i++)
        for (uint32_t k = 0; k < made->node[i]->nsrc; k++) {
            Node *s = made->node[i]->src[k];
            if (counts(s) && (s->id >= m->before || place(&found, s) >= 0))
                add(made, s);
        }
}

static void walk(NodeTable *s, const NodeTable *end)
{
    for (int i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->node[i]->nsrc; k++)
            if (counts(s->node[i]->src[k]) && (!end || place(end, s->node[i]->src[k]) < 0))
                add(s, s->node[i]->src[k]);
}

void making_end(Making *m, Node *old, Node *now)
{
    Context *c = m->c;
    c->making = NULL;
    if (now == old)
        return;
    NodeTable below = {.n = 0}, made = {.n = 0}, read = {.n = 0}, gone = {.n = 0};
    add(&below, old);
    if (m->nfound)
        walk(&below, NULL);
    find_made(m, &below, now, &made);
    for (int i = 0; i < made.n; i++)
        for (uint32_t k = 0; k < made.node[i]->nsrc; k++)
            if (counts(made.node[i]->src[k]) && place(&made, made.node[i]->src[k]) < 0)
                add(&read, made.node[i]->src[k]);
    if (made.n == MAX_NODES ||
        read.n == MAX_NODES) { /* a form of many parts is of what it replaces */
        for (uint32_t i = m->before; i < c->nnode; i++)
            if (counts(c->nodes[i]))
                c->origins[i] = c->origins[old->id];
        return;
    }
    if (place(&read, old) < 0) { /* else it stays, below what is made */
        add(&gone, old);
        walk(&gone, &read);
    }
    find_bits(&made, &read);
    find_bits(&gone, &read);
    bool taken[MAX_NODES] = {false};
    for (int i = 0; i < made.n; i++) {
        Node *n = made.node[i];
        const OriginList *own = c->origins[old->id];
        if (n->id >= m->before)
            c->origins[n->id] = NULL;
        bool like = false;
        for (int k = 0; k < gone.n; k++)
            if (gone.node[k]->op == n->op &&
                (gone.of[k] == made.of[i] || gone.of[k] & made.of[i])) {
                origins_add(c, n, c->origins[gone.node[k]->id]);
                like = taken[k] = true;
            }
        if (!like)
            origins_add(c, n, own);
    }
    for (int k = 0; k < gone.n && made.n; k++)
        if (!taken[k] && op_info[gone.node[k]->op].cls != MOVE)
            origins_add(c, made.node[0], c->origins[gone.node[k]->id]);
}
