/* substitute.c - rebuilding expressions: with nodes replaced, under an assumption, or from the
 * integer values they came from.
 *
 * All three rebuild bottom-up in the order of graph_toposort() through the simplifying
 * constructors; a side table indexed by id holds what became of every node. */
#include "symbolic.h"

/* Axis numbers of ranges that stand in for a sum while an assumption about it is used. */
enum { FAKE_AXIS = -1000, FACTS = 32 };

/* keep_ranges: a range stays itself, whatever its extent's expression becomes. */
static Node *substitute_in(Context *c, Arena *a, Node *e, int n, Node *const *from, Node *const *to,
                           bool keep_ranges)
{
    int count;
    Node **order = graph_toposort(a, 1, &e, &count);
    Node **map = NEWN(a, Node *, e->id + 1);
    for (int i = 0; i < n; i++)
        if (from[i]->id <= e->id)
            map[from[i]->id] = to[i];
    for (int i = 0; i < count; i++) {
        Node *x = order[i];
        if (map[x->id])
            continue;
        if (x->op != OP_RANGE)
            map[x->id] = node_rebuilt(c, x, map);
        else if (keep_ranges || map[x->src[0]->id] == x->src[0])
            map[x->id] = x;
        else
            map[x->id] = range_new(c, (int)x->arg.i, map[x->src[0]->id]);
    }
    return map[e->id];
}

Node *substitute(Context *c, Node *e, int n, Node *const *from, Node *const *to)
{
    Arena *a = arena_new();
    Node *r = substitute_in(c, a, e, n, from, to, false);
    arena_free(a);
    return r;
}

/* ---- simplify_given ---------------------------------------------------------------------- */

/* Nodes, where a division counts as four. */
static int cost(Arena *a, Node *e)
{
    int n, sum = 0;
    Node **order = graph_toposort(a, 1, &e, &n);
    for (int i = 0; i < n; i++)
        sum += order[i]->op == OP_FLOORDIV || order[i]->op == OP_MOD ? 4 : 1;
    return sum;
}

/* Facts about the same sum meet.  False: they contradict each other. */
static bool fact_add(Literal *facts, int *n, Literal f)
{
    int i = 0;
    while (i < *n && facts[i].terms != f.terms)
        i++;
    if (i == FACTS)
        return true;
    if (i == *n)
        facts[(*n)++] = (Literal){f.terms, f.terms->lo, f.terms->hi};
    if (f.lo > facts[i].lo)
        facts[i].lo = f.lo;
    if (f.hi < facts[i].hi)
        facts[i].hi = f.hi;
    return facts[i].lo <= facts[i].hi;
}

/* The sum as a stand-in: a constant, or lo + a fresh range as long as the bounds allow. */
static Node *stand_in(Context *c, const Literal *f, int number, Node **fake)
{
    int64_t extent;
    *fake = NULL;
    if (f->lo == INT64_MIN || f->hi == INT64_MAX ||
        (f->lo == f->terms->lo && f->hi == f->terms->hi) ||
        __builtin_sub_overflow(f->hi, f->lo, &extent) || extent == INT64_MAX)
        return NULL;
    Node *lo = idx(c, f->lo);
    if (extent == 0)
        return lo;
    *fake = range_new(c, FAKE_AXIS - number, idx(c, extent + 1));
    return idx_add(c, *fake, lo);
}

/* One fact used on e: an atom of the sum becomes stand-in minus the other terms; simplify; and
 * back.  Kept only if the result is smaller: elsewhere the atom's own bounds may be lost. */
static Node *use_fact(Context *c, Arena *a, Node *e, const Literal *f, int number)
{
    Node *fake, *in = stand_in(c, f, number, &fake), *best = e;
    Poly p;
    if (!in || !poly_of(&p, f->terms))
        return e;
    for (int i = 0; i < p.n; i++) {
        int64_t k = p.t[i].coef;
        Node *atom = p.t[i].base;
        if ((k != 1 && k != -1) || atom->op == OP_MUL)
            continue;
        /* k * atom + rest = in */
        Node *rest = idx_sub(c, f->terms, idx_mul(c, atom, idx(c, k)));
        Node *value = idx_mul(c, idx_sub(c, in, rest), idx(c, k));
        Node *r = substitute_in(c, a, e, 1, &atom, &value, true);
        if (fake) {
            Node *back = idx_sub(c, f->terms, idx(c, f->lo));
            r = substitute_in(c, a, r, 1, &fake, &back, true);
        }
        if (cost(a, r) < cost(a, best))
            best = r;
    }
    return best;
}

Node *simplify_given(Context *c, Node *e, Node *cond)
{
    Node *list[FACTS];
    Literal facts[FACTS], f;
    int nfact = 0, n = bool_list(cond, OP_AND, list, FACTS);
    if (n < 0 || cond->lo == cond->hi)
        return e;
    Arena *a = arena_new();
    Node *from[FACTS] = {0}, *to[FACTS] = {0};
    for (int i = 0; i < n; i++) {
        bool inverted = list[i]->op == OP_NOT;
        from[i] = inverted ? list[i]->src[0] : list[i];
        to[i] = node_bool(c, !inverted);
    }
    Node *r = substitute_in(c, a, e, n, from, to, true);
    bool possible = true;
    for (int i = 0; i < n && possible; i++)
        if (literal_bounds(c, list[i], &f))
            possible = fact_add(facts, &nfact, f);
    /* A fact about one range may let another apply: single atoms first. */
    for (int round = 0; round < 2 && possible; round++)
        for (int i = 0; i < nfact; i++)
            if ((facts[i].terms->op == OP_ADD) == (round == 1))
                r = use_fact(c, a, r, &facts[i], i);
    arena_free(a);
    return r;
}

/* ---- idx_from_value ---------------------------------------------------------------------- */

static bool fits(Node *n, int dtype)
{
    int bytes = dtype_info[dtype].bytes;
    bool sub_byte =
        dtype == INGOT_I4 || dtype == INGOT_U4 || dtype == INGOT_I2 || dtype == INGOT_U2;
    if (n->lo == INT64_MIN || n->hi == INT64_MAX || sub_byte)
        return false;
    if (dtype_info[dtype].kind == 'u')
        return n->lo >= 0 && (bytes == 8 || n->hi <= (int64_t)((UINT64_C(1) << (bytes * 8)) - 1));
    int64_t top = bytes == 8 ? INT64_MAX : (INT64_C(1) << (bytes * 8 - 1)) - 1;
    return n->lo >= -top - 1 && n->hi <= top;
}

/* An integer that cannot be seen through: its own dtype bounds it. */
static Node *opaque(Context *c, Node *n)
{
    if (n->dtype == INGOT_U64 || !(dtype_is_int(n->dtype) || n->dtype == INGOT_BOOL))
        return NULL;
    return node_make(c, OP_CAST, INGOT_INDEX, (Arg){0}, 1, &n, 0, NULL);
}

static bool is_integer(Node *n)
{
    return dtype_is_int(n->dtype) || n->dtype == INGOT_INDEX;
}

/* BOOL over values: comparisons become comparisons of coordinates where both sides are known. */
static Node *condition_from(Context *c, Node *n, Node *const *s)
{
    Node *a = n->nsrc > 0 ? s[0] : NULL, *b = n->nsrc > 1 ? s[1] : NULL;
    bool integers = n->nsrc == 2 && a && b && is_integer(n->src[0]);
    bool bools = a && n->src[0]->dtype == INGOT_BOOL && (n->nsrc < 2 || b);
    switch (n->op) {
    case OP_LT: return integers ? idx_lt(c, a, b) : n;
    case OP_LE: return integers ? idx_le(c, a, b) : n;
    case OP_EQ: return integers ? idx_eq(c, a, b) : n;
    case OP_NE: return integers ? bool_not(c, idx_eq(c, a, b)) : n;
    case OP_AND: return bools ? bool_and(c, a, b) : n;
    case OP_OR: return bools ? bool_or(c, a, b) : n;
    case OP_NOT: return bools ? bool_not(c, a) : n;
    default: return n;
    }
}

static Node *integer_from(Context *c, Node *n, Node *const *s)
{
    Node *a = n->nsrc > 0 ? s[0] : NULL, *b = n->nsrc > 1 ? s[1] : NULL;
    switch (n->op) {
    case OP_CONST: return n->dtype == INGOT_U64 && n->arg.i < 0 ? NULL : idx(c, n->arg.i);
    case OP_CAST:
        if (n->src[0]->dtype == INGOT_BOOL)
            return a ? node_where(c, a, idx(c, 1), idx(c, 0)) : NULL;
        return is_integer(n->src[0]) ? a : opaque(c, n);
    case OP_ADD: return a && b ? idx_add(c, a, b) : NULL;
    case OP_SUB: return a && b ? idx_sub(c, a, b) : NULL;
    case OP_MUL: return a && b ? idx_mul(c, a, b) : NULL;
    case OP_NEG: return a ? idx_sub(c, idx(c, 0), a) : NULL;
    case OP_MIN: return a && b ? idx_min(c, a, b) : NULL;
    case OP_MAX: return a && b ? idx_max(c, a, b) : NULL;
    case OP_ABS: return a ? idx_max(c, a, idx_sub(c, idx(c, 0), a)) : NULL;
    case OP_FLOORDIV: return a && b ? idx_div(c, a, b) : NULL;
    case OP_MOD: return a && b ? idx_mod(c, a, b) : NULL;
    case OP_DIV: return a && b && a->lo >= 0 && b->lo >= 0 ? idx_div(c, a, b) : NULL;
    case OP_FMOD: return a && b && a->lo >= 0 && b->lo >= 0 ? idx_mod(c, a, b) : NULL;
    case OP_WHERE: return a && b && s[2] ? node_where(c, a, b, s[2]) : NULL;
    default: return opaque(c, n);
    }
}

/* A node through which the integer may be seen: scalar arithmetic.  All others are leaves. */
static bool transparent(Node *n)
{
    if (n->rank != 0 || n->dtype == INGOT_INDEX || !op_is_alu(n->op) || n->op == OP_BITCAST ||
        n->op == OP_CUSTOM)
        return false;
    return is_integer(n) || n->dtype == INGOT_BOOL;
}

/* Where n is, or would be, among nodes that are sorted by id. */
static int place_by_id(Node *const *node, int n, const Node *x)
{
    int first = 0;
    while (n > 0) {
        const int half = n / 2;
        const bool behind = node[first + half]->id < x->id;
        first += behind ? half + 1 : 0;
        n = behind ? n - half - 1 : half;
    }
    return first;
}

enum { FEW_NODES = 32 };

Node *idx_from_value(Context *c, Node *value)
{
    if (value->rank != 0)
        return NULL;
    if (value->dtype == INGOT_INDEX)
        return value;
    if (value->op == OP_CAST && dtype_is_int(value->dtype) && value->src[0]->dtype == INGOT_INDEX)
        return fits(value->src[0], value->dtype) ? value->src[0] : NULL;
    Arena *a = NULL;
    Node *few[FEW_NODES], **done = few, *as[FEW_NODES], **integer = as; /* sources first: by id */
    int ndone = 1, room = FEW_NODES;
    done[0] = value;
    /* What is reachable through transparent nodes: those with the greatest ids have been looked
     * through. */
    for (int left = 1; left > 0;) {
        Node *n = done[--left];
        for (uint32_t i = 0; i < n->nsrc && transparent(n); i++) {
            int at = place_by_id(done, left, n->src[i]);
            if (at < left && done[at] == n->src[i])
                continue;
            if (ndone == room) {
                a = a ? a : arena_new();
                done = vec_grow(a, (void *)done, (size_t)room, sizeof *done);
                room *= 2;
            }
            memmove((void *)(done + at + 1), (void *)(done + at),
                    (size_t)(ndone++ - at) * sizeof *done);
            done[at] = n->src[i];
            left++;
        }
    }
    if (ndone > FEW_NODES)
        integer = NEWN(a, Node *, ndone);
    for (int i = 0; i < ndone; i++) {
        Node *n = done[i], *s[3] = {0}, *r;
        bool open = transparent(n) && n->nsrc <= 3;
        for (uint32_t j = 0; j < n->nsrc && open; j++)
            s[j] = integer[place_by_id(done, i, n->src[j])];
        integer[i] = NULL;
        if (n->rank != 0)
            continue;
        if (n->dtype == INGOT_INDEX)
            r = n;
        else if (n->dtype == INGOT_BOOL)
            r = open ? condition_from(c, n, s) : n;
        else if (dtype_is_int(n->dtype) && (open || n->op == OP_CONST))
            r = integer_from(c, n, s);
        else
            r = dtype_is_int(n->dtype) ? opaque(c, n) : NULL;
        /* What wraps in its dtype is not that integer; a leaf of 64 bits is in range by itself. */
        bool leaf = r && (r->op == OP_CAST || r->op == OP_CONST) && r->dtype == INGOT_INDEX;
        if (r && dtype_is_int(n->dtype) && !leaf && !fits(r, n->dtype))
            r = NULL;
        if (leaf && open && !fits(r, n->dtype))
            r = NULL;
        integer[i] = r;
    }
    Node *r = integer[ndone - 1];
    if (r && r->dtype == INGOT_BOOL)
        r = node_where(c, r, idx(c, 1), idx(c, 0));
    arena_free(a);
    return r;
}

/* An INDEX expression of the model, rebuilt in the kernel's context (shapes of arguments). */
Node *import_index(Context *c, Arena *a, Node *e)
{
    int n;
    if (!e->nsrc)
        return node_make(c, e->op, e->dtype, e->arg, 0, NULL, 0, NULL);
    Node **order = graph_toposort(a, 1, &e, &n), **copy = NEWN(a, Node *, n);
    Map at = {0};
    for (int i = 0; i < n; i++) {
        enum { MAX_SRC = 64 };
        Node *src[MAX_SRC];
        for (uint32_t j = 0; j < order[i]->nsrc && j < MAX_SRC; j++)
            src[j] = copy[(uintptr_t)map_get(&at, (uint64_t)order[i]->src[j]->id + 1) - 1];
        copy[i] = order[i]->nsrc ? node_with(c, order[i], src)
                                 : node_make(c, order[i]->op, order[i]->dtype, order[i]->arg, 0,
                                             NULL, 0, NULL);
        map_put(&at, (uint64_t)order[i]->id + 1, (void *)(uintptr_t)(i + 1));
    }
    map_free(&at);
    return copy[n - 1];
}

bool is_loop_free(const Node *n)
{
    bool all = n->op != OP_RANGE && n->op != OP_LOAD;
    for (uint32_t i = 0; i < n->nsrc && all; i++)
        all = is_loop_free(n->src[i]);
    return all;
}
