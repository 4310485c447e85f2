/* keys.c - keys of values that outlive changes of their graph.
 *
 *     down(n, r) = H(op, argument, type, dims, down(source i, r - 1)...)
 *     up(n, r)   = H(the sorted set of (user's op, operand number, up(user, r - 1)))
 *     key(n)     = H(down(n, 6), up(n, 6))
 *
 * Movement costs no radius: it comes and goes with the way a network is written down.  Run-time
 * dims count by their bounds, weights by type and shape, scalar constants by their bits.  Two
 * places of a network with one key are equal as far as anyone sees from there, and what is decided
 * for one holds for both. */
#include <stdlib.h>
#include <string.h>

#include "keys.h"

enum { RADIUS = 6, RADII = RADIUS + 1 };

typedef struct {
    uint64_t down[RADII], up[RADII];
} Hashes;

static uint64_t mix(uint64_t h, uint64_t x)
{
    return hash_bytes(h, &x, sizeof x);
}

/* ---- all nodes ------------------------------------------------------------------------------- */

/* ---- hashes ---------------------------------------------------------------------------------- */

/* What is hashed again and again. */
typedef struct {
    uint64_t op[OP_COUNT]; /* by name: the numbers of ops are another compiler's */
    uint64_t *h; /* by node id: of dims that have been asked for; tensors share few. 0: not yet */
} Hashed;

static Hashed hashed_new(Arena *a, uint32_t nnode)
{
    Hashed of = {.h = NEWN(a, uint64_t, nnode + 1)};
    for (int i = 0; i < OP_COUNT; i++)
        of.op[i] = hash_bytes(1, op_info[i].text, strlen(op_info[i].text));
    return of;
}

static uint64_t dim_hash(const Hashed *of, Node *d)
{
    uint64_t h = of->h[d->id];
    if (h)
        return h;
    h = mix(of->op[d->op], d->op == OP_CONST ? (uint64_t)d->arg.i : 0);
    if (d->op == OP_VAR)
        h = mix(mix(h, (uint64_t)d->lo), (uint64_t)d->hi);
    for (uint32_t i = 0; i < d->nsrc && d->op != OP_VAR; i++)
        h = mix(h, dim_hash(of, d->src[i]));
    return of->h[d->id] = h;
}

static uint64_t numbers_hash(uint64_t h, int nint, const int64_t *ints, int nfloat,
                             const double *floats)
{
    h = nint ? hash_bytes(h, ints, (size_t)nint * sizeof *ints) : h;
    return nfloat ? hash_bytes(mix(h, (uint64_t)nint), floats, (size_t)nfloat * sizeof *floats) : h;
}

static uint64_t call_hash(uint64_t h, const Call *call)
{
    h = hash_bytes(h, call->name, strlen(call->name));
    return numbers_hash(h, call->n_int, call->ints, call->n_float, call->floats);
}

static uint64_t custom_hash(uint64_t h, const CustomUse *use)
{
    h = hash_bytes(h, use->op->name, strlen(use->op->name));
    return numbers_hash(h, use->op->nint, use->ints, use->op->nfloat, use->floats);
}

static uint64_t loop_hash(uint64_t h, const Loop *loop)
{
    h = mix(h, (uint64_t)loop->ncarried);
    return loop->has_cond || loop->nscan ? mix(mix(h, (uint64_t)loop->nscan), loop->has_cond) : h;
}

/* What a node is, its sources aside. */
static uint64_t own_hash(const Hashed *dims, Node *n)
{
    uint64_t h = mix(mix(dims->op[n->op], n->dtype), n->rank);
    for (int i = 0; i < n->rank; i++)
        h = mix(h, dim_hash(dims, n->shape[i]));
    switch (n->op) {
    case OP_CONST: return mix(h, n->arg.bits);
    case OP_IOTA:
    case OP_FLIP:
    case OP_CONCAT:
    case OP_REDUCE:
    case OP_SCAN:
    case OP_UPDATE:
    case OP_COLLECTIVE:
    case OP_CAST: return mix(h, (uint64_t)n->arg.i);
    case OP_CUSTOM: return custom_hash(h, n->arg.ptr);
    case OP_PERMUTE: return hash_bytes(h, n->arg.ptr, sizeof(Perm));
    case OP_PROJ: return mix(h, (uint64_t)n->arg.i);
    case OP_CALL: return call_hash(h, n->arg.ptr);
    case OP_LOOP: return loop_hash(h, n->arg.ptr);
    case OP_IF: return mix(h, (uint64_t)((const If *)n->arg.ptr)->n);
    default: return h;
    }
}

static bool costs_nothing(Node *n)
{
    return op_info[n->op].cls == MOVE && n->op != OP_GATHER && n->op != OP_CONCAT;
}

/* What a loop or branch captures has no order that anybody chose. */
static bool unordered(Node *n)
{
    return n->op == OP_LOOP || n->op == OP_IF;
}

static void hash_down(const Hashed *dims, Hashes *h, Node *n)
{
    uint64_t own = own_hash(dims, n);
    Hashes *me = &h[n->id];
    for (int r = 0; r < RADII; r++) {
        uint64_t sum = 0, all = own;
        int below = costs_nothing(n) ? r : r - 1;
        for (uint32_t i = 0; i < n->nsrc; i++) {
            uint64_t x = n->src[i]->dtype == INGOT_INDEX ? dim_hash(dims, n->src[i])
                         : below < 0                     ? 0
                                                         : h[n->src[i]->id].down[below];
            if (unordered(n))
                sum += mix(1, x);
            else
                all = mix(all, x);
        }
        me->down[r] = mix(all, sum);
    }
}

/* In whatever order users come: a sum. */
static void add_user(const Hashed *dims, Hashes *src, const Hashes *user, Node *n, uint32_t operand)
{
    uint64_t edge = mix(dims->op[n->op], unordered(n) ? 1 : operand);
    for (int r = 0; r < RADII; r++) {
        int above = costs_nothing(n) ? r : r - 1;
        src->up[r] += above < 0 ? 0 : mix(edge, user->up[above]);
    }
}

Key *graph_keys(Arena *a, const Context *c, int n, Node *const *node, uint32_t *nkey)
{
    Arena *scratch = arena_new();
    *nkey = 0;
    for (int i = 0; i < n; i++) /* the context may hold what other plans made */
        *nkey = node[i]->id >= *nkey ? node[i]->id + 1 : *nkey;
    Hashes *h = NEWN(scratch, Hashes, *nkey + 1);
    Key *key = NEWN(a, Key, *nkey + 1);
    Hashed dims = hashed_new(scratch, c->nnode);
    for (int i = 0; i < n; i++)
        if (node[i]->dtype != INGOT_INDEX)
            hash_down(&dims, h, node[i]);
    for (int i = n; i-- > 0;) {
        Node *t = node[i];
        const struct Region *r[2];
        int nregion = node_regions(t, r);
        for (int k = 0; k < nregion; k++)
            for (int j = 0; j < r[k]->nresult; j++)
                for (int x = 0; x < RADII; x++)
                    h[r[k]->result[j]->id].up[x] += mix((uint64_t)k + 2, (uint64_t)j);
    }
    for (int i = n; i-- > 0;)
        for (uint32_t j = 0; j < node[i]->nsrc && node[i]->dtype != INGOT_INDEX; j++)
            if (node[i]->src[j]->dtype != INGOT_INDEX)
                add_user(&dims, &h[node[i]->src[j]->id], &h[node[i]->id], node[i], j);
    static const int near[KEY_NEAR][2] = {{4, 4}, {2, 2}, {1, 1}, {3, -1}, {-1, 3}};
    for (int i = 0; i < n; i++) {
        const Hashes *x = &h[node[i]->id];
        Key *k = &key[node[i]->id];
        if (node[i]->dtype == INGOT_INDEX)
            continue;
        k->full = mix(x->down[RADIUS], x->up[RADIUS]) | 1;
        for (int j = 0; j < KEY_NEAR; j++)
            k->near[j] =
                (uint32_t)mix(near[j][0] < 0 ? own_hash(&dims, node[i]) : x->down[near[j][0]],
                              near[j][1] < 0 ? (uint64_t)j : x->up[near[j][1]]);
    }
    arena_free(scratch);
    return key;
}

uint64_t *inner_hashes(Arena *a, const Context *c, int n, Node *const *node, Node *const *root,
                       const Key *known)
{
    uint64_t *h = NEWN(a, uint64_t, c->nnode + 1);
    Hashed dims = hashed_new(a, c->nnode);
    for (int k = 0; k < n; k++) {
        Node *t = node[k];
        if (!root[t->id] || known[t->id].full)
            continue;
        uint64_t all = own_hash(&dims, t);
        for (uint32_t i = 0; i < t->nsrc; i++) {
            Node *x = t->src[i];
            bool outside = !root[x->id] || known[x->id].full;
            all = mix(all, x->dtype == INGOT_INDEX ? dim_hash(&dims, x) : outside ? 0 : h[x->id]);
        }
        h[t->id] = all;
    }
    return h;
}

uint64_t name_hash(const char *variant)
{
    return hash_bytes(0, variant, strlen(variant));
}

Key key_inside(const Key *of, uint64_t name, uint64_t inner)
{
    Key k;
    uint64_t h = mix(name, inner);
    k.full = mix(h, of->full) | 1;
    for (int i = 0; i < KEY_NEAR; i++)
        k.near[i] = (uint32_t)mix(h, of->near[i]);
    return k;
}

/* ---- alignment ------------------------------------------------------------------------------- */

static uint64_t key_at(const Key *k, int level)
{
    return level ? mix((uint64_t)level, k->near[level - 1]) | 1 : k->full;
}

/* Saved keys with equal hashes of a level, in order. */
typedef struct Same {
    struct Same *next;
    int saved;
} Same;

void keys_align(Arena *a, int nsaved, const Key *saved, int npresent, const Key *present, int *to)
{
    bool *taken = NEWN(a, bool, nsaved + 1);
    for (int i = 0; i < npresent; i++)
        to[i] = -1;
    for (int level = 0; level <= KEY_NEAR; level++) {
        Map same = {0};
        for (int i = nsaved; i-- > 0;) {
            Same *s = NEW(a, Same);
            *s = (Same){map_get(&same, key_at(&saved[i], level)), i};
            map_put(&same, key_at(&saved[i], level), s);
        }
        for (int i = 0; i < npresent; i++) {
            if (to[i] >= 0 || !present[i].full)
                continue;
            Same *s = map_get(&same, key_at(&present[i], level));
            while (s && taken[s->saved])
                s = s->next;
            if (!s)
                continue;
            to[i] = s->saved;
            taken[s->saved] = true;
        }
        map_free(&same);
    }
}
