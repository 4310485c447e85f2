/* points.h - for tests that evaluate integer expressions at every point: a seeded generator, a
 * space of ranges and run-time integers, and the value of every node at the present point. */
#ifndef POINTS_H
#define POINTS_H

#include "compiler/compiler.h"

static uint64_t state;

static inline uint64_t random64(void)
{
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline int pick(int n)
{
    return (int)(random64() % (uint64_t)n);
}

static inline int64_t floordiv(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static inline int64_t floormod(int64_t a, int64_t b)
{
    return b == 0 ? 0 : a - b * floordiv(a, b);
}

enum { LEAVES = 8 };
typedef struct {
    Context *c;
    Arena *m;
    int n;
    Node *leaf[LEAVES];
    int64_t value[LEAVES];
} PointSpace;

static inline int64_t node_value(Node *n, const int64_t *v)
{
    int64_t a = n->nsrc > 0 ? v[n->src[0]->id] : 0, b = n->nsrc > 1 ? v[n->src[1]->id] : 0;
    switch (n->op) {
    case OP_CONST: return n->arg.i;
    case OP_ADD: return a + b;
    case OP_MUL: return a * b;
    case OP_FLOORDIV: return floordiv(a, b);
    case OP_MOD: return floormod(a, b);
    case OP_MIN: return a < b ? a : b;
    case OP_MAX: return a > b ? a : b;
    case OP_LT: return a < b;
    case OP_EQ: return a == b;
    case OP_AND: return a && b;
    case OP_OR: return a || b;
    case OP_NOT: return !a;
    case OP_WHERE: return a ? b : v[n->src[2]->id];
    default: fail_msg("%s left in an expression", op_info[n->op].text); return 0;
    }
}

typedef struct {
    Node **order;
    int n;
    int64_t *v; /* by id */
} Program;

static inline Program program(PointSpace *s, int nroot, Node *const *roots)
{
    Program p;
    p.order = graph_toposort(s->m, nroot, roots, &p.n);
    p.v = NEWN(s->m, int64_t, s->c->nnode);
    return p;
}

/* Values of all nodes at the present point, checked against their bounds. */
static inline void run(PointSpace *s, Program *p)
{
    for (int i = 0; i < s->n; i++)
        p->v[s->leaf[i]->id] = s->value[i];
    for (int i = 0; i < p->n; i++) {
        Node *n = p->order[i];
        if (n->op != OP_RANGE && n->op != OP_VAR)
            p->v[n->id] = node_value(n, p->v);
        int64_t v = p->v[n->id];
        if (v < n->lo || v > n->hi)
            fail_msg("%s has the value %lld outside its bounds %lld..%lld", op_info[n->op].text,
                     (long long)v, (long long)n->lo, (long long)n->hi);
    }
}

static inline Node *var(PointSpace *s, int64_t lo, int64_t hi)
{
    Context *c = s->c;
    Var v = {.name = arena_printf(c->arena, "n%d", c->nvar), .lo = lo, .hi = hi};
    vec_push(c->arena, c->vars, c->nvar, v);
    Node *n = node_make(c, OP_VAR, INGOT_INDEX, (Arg){.i = c->nvar - 1}, 0, NULL, 0, NULL);
    c->vars[c->nvar - 1].node = n;
    return s->leaf[s->n++] = n;
}

/* A RANGE node even where range_new would give the constant 0. */
static inline Node *range(PointSpace *s, Node *extent)
{
    Node *r = node_make(s->c, OP_RANGE, INGOT_INDEX, (Arg){.i = s->n}, 1, &extent, 0, NULL);
    return s->leaf[s->n++] = r;
}

static inline int64_t extent_value(PointSpace *s, int leaf)
{
    if (s->leaf[leaf]->src[0]->op == OP_CONST)
        return s->leaf[leaf]->src[0]->arg.i;
    int n;
    Arena *m = arena_new();
    Node *e = s->leaf[leaf]->src[0], **order = graph_toposort(m, 1, &e, &n);
    int64_t *v = NEWN(m, int64_t, e->id + 1), r;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < leaf; j++)
            if (s->leaf[j] == order[i])
                v[order[i]->id] = s->value[j];
        if (order[i]->op != OP_VAR)
            v[order[i]->id] = node_value(order[i], v);
    }
    r = v[e->id];
    arena_free(m);
    return r;
}

/* Odometer: sets leaf i (to its next value if `step`) and all after it; false when there is no
 * further point.  An extent over earlier VARs may be 0, which sends it back. */
static inline bool turn(PointSpace *s, int i, bool step)
{
    while (i < s->n) {
        bool is_var = s->leaf[i]->op == OP_VAR;
        s->value[i] = step ? s->value[i] + 1 : is_var ? s->leaf[i]->lo : 0;
        int64_t last = is_var ? s->leaf[i]->hi : extent_value(s, i) - 1;
        step = s->value[i] > last;
        i += step ? -1 : 1;
        if (i < 0)
            return false;
    }
    return true;
}

static inline bool first(PointSpace *s)
{
    return turn(s, 0, false);
}

static inline bool advance(PointSpace *s)
{
    return s->n > 0 && turn(s, s->n - 1, true);
}

static inline PointSpace space_new(void)
{
    PointSpace s = {.c = ingot_context_new(NULL, NULL), .m = arena_new()};
    return s;
}

static inline void space_free(PointSpace *s)
{
    arena_free(s->m);
    ingot_context_free(s->c);
}

#endif
