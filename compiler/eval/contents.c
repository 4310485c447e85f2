/* contents.c - what small integer tensors hold, as expressions over run-time integers.
 *
 * Models compute shapes with tensors: Shape, Gather, Concat, arithmetic, Reshape.  One element of
 * such a tensor is followed through the graph down to dims and constants.  Elements are memoised
 * per (node, number of the element) in Context.memo, for the life of the context, and the walk
 * keeps its own stack, so a question asked for every Reshape of a large model costs what is new in
 * it.
 *
 * An element is an INDEX node (integers, and whole numbers as floats that hold them exactly), a
 * BOOL node, or a CONST (other floats).  The context's poison stands for "depends on data". */
#include "interp.h"

#include <math.h>
#include <string.h>

#include "igrt_num.h"

/* Reductions over more elements, and constant tensors of more, are not followed. */
enum { MAX_FOLLOW = 4096 };
#define MAX_NUMEL (INT64_C(1) << 24)

typedef struct {
    Node *n;
    int64_t at;
} ElementAt;
typedef struct {
    Context *c;
    Arena *arena;
    ElementAt *stack;
    int depth, room;
} ContentsSearch;

static uint64_t memo_key(Node *n, int64_t at)
{
    return context_key(MEMO_CONTENTS, (uint64_t)n->id << 24 | (uint64_t)at);
}

static bool known_dims(Node *n, int64_t *dims, int64_t *numel)
{
    *numel = 1;
    for (int i = 0; i < n->rank; i++) {
        if (!idx_value(n->shape[i], &dims[i]))
            return false;
        *numel = sat_mul(*numel, dims[i]);
    }
    return *numel <= MAX_NUMEL;
}

static void unravel(int rank, const int64_t *dims, int64_t at, int64_t *x)
{
    for (int i = rank - 1; i >= 0; i--) {
        x[i] = at % dims[i];
        at /= dims[i];
    }
}

static int64_t ravel(int rank, const int64_t *dims, const int64_t *x)
{
    int64_t at = 0;
    for (int i = 0; i < rank; i++)
        at = at * dims[i] + x[i];
    return at;
}

/* A constant element from its storage form. */
static Node *element_from(Context *c, ingot_dtype t, const void *p)
{
    if (t == INGOT_BOOL)
        return node_bool(c, load_int(t, p) != 0);
    if (dtype_is_int(t) || t == INGOT_INDEX)
        return idx(c, load_int(t, p));
    if (!dtype_is_float(t))
        return c->poison;
    double d;
    alu_cast(INGOT_F64, t, 0, 1, &d, p);
    return node_const_f(c, t, d);
}

static bool element_store(ingot_dtype t, Node *e, void *p)
{
    if (e->op != OP_CONST)
        return false;
    if (dtype_is_float(t))
        store_const(e, p);
    else
        store_int(t, (int64_t)e->arg.bits, p);
    return true;
}

static Node *element_const(Context *c, Node *n)
{
    _Alignas(16) uint8_t p[16];
    store_const(n, p);
    return element_from(c, (ingot_dtype)n->dtype, p);
}

/* The element if it is known, else NULL, and it will be found before the asker is asked again. */
static Node *need(ContentsSearch *s, Node *n, int64_t at)
{
    if (n->op == OP_CONST)
        return element_const(s->c, n);
    if (n->dtype == INGOT_INDEX && n->rank == 0)
        return n;
    Node *known = map_get(&s->c->memo, memo_key(n, at));
    if (known)
        return known;
    if (s->depth == s->room) {
        ElementAt *room = NEWN(s->arena, ElementAt, 2 * s->room + 64);
        if (s->depth)
            memcpy(room, s->stack, (size_t)s->depth * sizeof *room);
        s->stack = room;
        s->room = 2 * s->room + 64;
    }
    s->stack[s->depth++] = (ElementAt){n, at};
    return NULL;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* The operation on constants, exactly as at run time. */
static Node *fold(Context *c, Node *n, Node *const *x)
{
    _Alignas(16) uint8_t in[3][16], out[16];
    uint8_t t[3] = {0};
    const void *p[3] = {in[0], in[1], in[2]};
    for (uint32_t i = 0; i < n->nsrc; i++) {
        t[i] = n->src[i]->dtype;
        if (!element_store((ingot_dtype)t[i], x[i], in[i]))
            return c->poison;
    }
    alu_lanes((Op)n->op, n->arg.i, (ingot_dtype)n->dtype, t, 1, out, p);
    return element_from(c, (ingot_dtype)n->dtype, out);
}

static bool fits(ingot_dtype t, Node *e)
{
    int64_t lo, hi;
    switch (t) {
    case INGOT_I64:
    case INGOT_INDEX: return true;
    case INGOT_U64: lo = 0, hi = INT64_MAX; break;
    case INGOT_I32:
    case INGOT_U32:
    case INGOT_I16:
    case INGOT_U16:
    case INGOT_I8:
    case INGOT_U8: lo = dtype_least(t), hi = (int64_t)dtype_most(t); break;
    case INGOT_F64: lo = -(INT64_C(1) << 53), hi = -lo; break;
    case INGOT_F32: lo = -(INT64_C(1) << 24), hi = -lo; break;
    case INGOT_F16: lo = -(INT64_C(1) << 11), hi = -lo; break;
    case INGOT_BF16: lo = -(INT64_C(1) << 8), hi = -lo; break;
    default: return false;
    }
    return e->lo >= lo && e->hi <= hi;
}

static Node *int_alu(Context *c, Node *n, Node *const *x)
{
    Node *a = x[0], *b = n->nsrc > 1 ? x[1] : NULL;
    switch (n->op) {
    case OP_NEG: return idx_sub(c, idx(c, 0), a);
    case OP_ABS: return a->lo >= 0 ? a : idx_max(c, a, idx_sub(c, idx(c, 0), a));
    case OP_SIGN: return idx_max(c, idx_min(c, a, idx(c, 1)), idx(c, -1));
    case OP_FLOOR:
    case OP_CEIL:
    case OP_TRUNC:
    case OP_ROUND: return a;
    case OP_ADD: return idx_add(c, a, b);
    case OP_SUB: return idx_sub(c, a, b);
    case OP_MUL: return idx_mul(c, a, b);
    case OP_DIV: /* truncates: floor where neither is negative */
        return a->lo >= 0 && b->lo > 0 ? idx_div(c, a, b) : NULL;
    case OP_FLOORDIV: return b->lo > 0 ? idx_div(c, a, b) : NULL;
    case OP_MOD: return b->lo > 0 ? idx_mod(c, a, b) : NULL;
    case OP_FMOD: return a->lo >= 0 && b->lo > 0 ? idx_mod(c, a, b) : NULL;
    case OP_MAX: return idx_max(c, a, b);
    case OP_MIN: return idx_min(c, a, b);
    case OP_EQ: return idx_eq(c, a, b);
    case OP_NE: return bool_not(c, idx_eq(c, a, b));
    case OP_LT: return idx_lt(c, a, b);
    case OP_LE: return idx_le(c, a, b);
    case OP_MULACC: return idx_add(c, idx_mul(c, a, b), x[2]);
    default: return NULL;
    }
}

static Node *bool_alu(Context *c, Node *n, Node *const *x)
{
    switch (n->op) {
    case OP_NOT: return bool_not(c, x[0]);
    case OP_AND:
    case OP_MIN:
    case OP_MUL: return bool_and(c, x[0], x[1]);
    case OP_OR:
    case OP_MAX:
    case OP_ADD: return bool_or(c, x[0], x[1]);
    case OP_XOR:
    case OP_NE:
        return bool_or(c, bool_and(c, x[0], bool_not(c, x[1])),
                       bool_and(c, bool_not(c, x[0]), x[1]));
    case OP_EQ:
        return bool_or(c, bool_and(c, x[0], x[1]),
                       bool_and(c, bool_not(c, x[0]), bool_not(c, x[1])));
    default: return NULL;
    }
}

static Node *bool_to_int(Context *c, Node *b)
{
    return b->op == OP_CONST ? idx(c, b->arg.i != 0) : node_where(c, b, idx(c, 1), idx(c, 0));
}

static Node *cast_element(Context *c, Node *n, Node *x)
{
    const ingot_dtype from = (ingot_dtype)n->src[0]->dtype, to = (ingot_dtype)n->dtype;
    if (to == INGOT_BOOL)
        return from == INGOT_BOOL ? x : bool_not(c, idx_eq(c, x, idx(c, 0)));
    return from == INGOT_BOOL ? bool_to_int(c, x) : x;
}

/* The whole number that a float is; NULL: it is none. */
static Node *whole(Context *c, Node *e)
{
    const double most = (double)(INT64_C(1) << 53);
    if (e->op != OP_CONST || !dtype_is_float(e->dtype))
        return e;
    const double v = node_float(e);
    return v == floor(v) && fabs(v) <= most ? idx(c, (int64_t)v) : NULL;
}

/* Of floats that are whole numbers. */
static Node *float_alu(Context *c, Node *n, Node *const *x)
{
    Node *y[3];
    if (n->op == OP_DIV || n->op == OP_FLOORDIV || n->op == OP_MOD || n->op == OP_FMOD)
        return NULL;
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (!(y[i] = whole(c, x[i])))
            return NULL;
    return int_alu(c, n, y);
}

static Node *alu_element(ContentsSearch *s, Node *n, int64_t at)
{
    Context *c = s->c;
    Node *x[3];
    bool all_const = true;
    for (uint32_t i = 0; i < n->nsrc; i++) {
        x[i] = need(s, n->src[i], at);
        if (!x[i] || x[i] == c->poison)
            return x[i];
        all_const &= x[i]->op == OP_CONST;
        if (n->op == OP_WHERE && i == 0 && x[0]->op == OP_CONST)
            return need(s, n->src[x[0]->arg.i ? 1 : 2], at);
    }
    if (all_const)
        return fold(c, n, x);
    Node *r = NULL;
    const ingot_dtype t = (ingot_dtype)n->src[0]->dtype;
    if (n->op == OP_CAST)
        r = cast_element(c, n, x[0]);
    else if (n->op == OP_WHERE)
        r = dtype_is_int(n->dtype) ? node_where(c, x[0], x[1], x[2]) : NULL;
    else if (t == INGOT_BOOL)
        r = bool_alu(c, n, x);
    else if (dtype_is_int(t))
        r = int_alu(c, n, x);
    else if (dtype_is_float(t))
        r = float_alu(c, n, x);
    if (r && r->op == OP_CONST && dtype_is_float(n->dtype))
        return node_const_f(c, (ingot_dtype)n->dtype, (double)r->arg.i);
    if (!r || (n->dtype != INGOT_BOOL && !fits((ingot_dtype)n->dtype, r)))
        return c->poison;
    return r;
}

/* ---- movement, gather, reduce, update -------------------------------------------------------- */

static Node *pad_element(ContentsSearch *s, Node *n, const int64_t *sd, int64_t *x)
{
    for (int i = 0; i < n->rank; i++) {
        int64_t lo;
        if (!idx_value(n->src[1 + 2 * i], &lo))
            return s->c->poison;
        x[i] -= lo;
        if (x[i] >= 0 && x[i] < sd[i])
            continue;
        _Alignas(16) const uint8_t zero[16] = {0};
        return element_from(s->c, (ingot_dtype)n->dtype, zero);
    }
    return need(s, n->src[0], ravel(n->rank, sd, x));
}

static Node *concat_element(ContentsSearch *s, Node *n, const int64_t *d, int64_t *x)
{
    const int axis = (int)n->arg.i;
    for (uint32_t k = 0; k < n->nsrc; k++) {
        int64_t sd[INGOT_MAX_RANK];
        memcpy(sd, d, sizeof sd);
        if (!idx_value(n->src[k]->shape[axis], &sd[axis]))
            return s->c->poison;
        if (x[axis] < sd[axis])
            return need(s, n->src[k], ravel(n->rank, sd, x));
        x[axis] -= sd[axis];
    }
    return s->c->poison;
}

static Node *gather_element(ContentsSearch *s, Node *n, const int64_t *sd, int64_t at)
{
    int64_t x[INGOT_MAX_RANK];
    const int rank = n->src[0]->rank;
    for (int i = 0; i < rank; i++) {
        Node *e = need(s, n->src[1 + i], at);
        if (!e || e == s->c->poison)
            return e;
        if (!idx_value(e, &x[i]) || sd[i] <= 0)
            return s->c->poison;
        x[i] = x[i] < 0 ? 0 : x[i] >= sd[i] ? sd[i] - 1 : x[i];
    }
    return need(s, n->src[0], ravel(rank, sd, x));
}

static Node *combine(Context *c, Op op, ingot_dtype t, Node *a, Node *b)
{
    Node *x[2] = {a, b}, *r = NULL;
    if (t == INGOT_BOOL)
        r = op == OP_AND || op == OP_MIN || op == OP_MUL  ? bool_and(c, a, b)
            : op == OP_OR || op == OP_MAX || op == OP_ADD ? bool_or(c, a, b)
                                                          : NULL;
    else if (op == OP_ADD)
        r = idx_add(c, x[0], x[1]);
    else if (op == OP_MUL)
        r = idx_mul(c, x[0], x[1]);
    else if (op == OP_MAX)
        r = idx_max(c, x[0], x[1]);
    else if (op == OP_MIN)
        r = idx_min(c, x[0], x[1]);
    return r && (t == INGOT_BOOL || fits(t, r)) ? r : c->poison;
}

static Node *reduce_element(ContentsSearch *s, Node *n, const int64_t *sd, const int64_t *x)
{
    Context *c = s->c;
    const ingot_dtype t = (ingot_dtype)n->dtype;
    const unsigned axes = reduce_axes(n);
    const int rank = n->rank;
    int64_t y[INGOT_MAX_RANK], count = 1;
    for (int i = 0; i < rank; i++)
        if (axes >> i & 1)
            count *= sd[i];
    if (count > MAX_FOLLOW || (!dtype_is_int(t) && t != INGOT_BOOL) || reduce_size(n) > 1)
        return c->poison;
    _Alignas(16) uint8_t identity[16];
    alu_identity((ingot_reduce_op)reduce_monoid(n), t, identity);
    Node *acc = element_from(c, t, identity), *e = NULL;
    bool missing = false;
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = k;
        for (int i = rank - 1; i >= 0; i--) {
            y[i] = x[i];
            if (axes >> i & 1) {
                y[i] = rest % sd[i];
                rest /= sd[i];
            }
        }
        e = need(s, n->src[0], ravel(rank, sd, y));
        if (e == c->poison)
            return e;
        missing |= !e;
        if (!missing)
            acc = k == 0 ? e : combine(c, monoid_op((ingot_reduce_op)reduce_monoid(n)), t, acc, e);
    }
    return missing ? NULL : acc;
}

static Node *update_element(ContentsSearch *s, Node *n, const int64_t *d, int64_t at)
{
    Context *c = s->c;
    static const Op ops[] = {OP_CAST, OP_ADD, OP_MUL, OP_MAX, OP_MIN};
    int64_t vd[INGOT_MAX_RANK], count, x[INGOT_MAX_RANK];
    if (!known_dims(n->src[1], vd, &count) || count > MAX_FOLLOW ||
        (!dtype_is_int(n->dtype) && n->arg.i != INGOT_SET))
        return c->poison;
    Node *r = need(s, n->src[0], at);
    bool missing = !r;
    for (int64_t k = 0; k < count; k++) {
        bool inside = true;
        for (int a = 0; a < n->rank; a++) {
            Node *e = need(s, n->src[2 + a], k);
            if (e == c->poison || (e && !idx_value(e, &x[a])))
                return c->poison;
            missing |= !e;
            inside &= e && x[a] >= 0 && x[a] < d[a];
        }
        if (!inside || ravel(n->rank, d, x) != at)
            continue;
        Node *v = need(s, n->src[1], k);
        missing |= !v;
        if (missing)
            continue;
        if (n->arg.i == INGOT_SET)
            r = v;
        else if (r != c->poison)
            r = v == c->poison ? v : combine(c, ops[n->arg.i], (ingot_dtype)n->dtype, r, v);
    }
    return missing ? NULL : r;
}

/* A constant that cannot be followed element by element: the interpreter evaluates all of it. */
static Node *evaluate(ContentsSearch *s, Node *n, int64_t numel, int64_t at)
{
    if (n->op == OP_POISON || numel > MAX_FOLLOW || dtype_info[n->dtype].kind == 's' ||
        !ingot_is_const(n))
        return s->c->poison;
    Interp *ip = interp_new(s->c);
    const uint8_t *data = interp_eval(ip, n, NULL);
    for (int64_t i = 0; data && i < numel; i++)
        map_put(
            &s->c->memo, memo_key(n, i),
            (void *)(uintptr_t)element_from(s->c, (ingot_dtype)n->dtype,
                                            data + (size_t)i * elem_bytes((ingot_dtype)n->dtype)));
    interp_free(ip);
    Node *e = map_get(&s->c->memo, memo_key(n, at));
    return e ? e : s->c->poison;
}

static Node *element(ContentsSearch *s, Node *n, int64_t at)
{
    Context *c = s->c;
    int64_t d[INGOT_MAX_RANK] = {0}, sd[INGOT_MAX_RANK] = {0}, x[INGOT_MAX_RANK], numel, count;
    if (op_is_alu(n->op) && n->op != OP_CUSTOM)
        return alu_element(s, n, at);
    if (!known_dims(n, d, &numel) || numel <= at)
        return c->poison;
    if (n->op == OP_DATA) {
        const ingot_dtype t = (ingot_dtype)n->dtype;
        const size_t size = elem_bytes(t);
        _Alignas(16) uint8_t p[16];
        if (dtype_info[t].kind == 's')
            return c->poison;
        memcpy(p, ((const Data *)n->arg.ptr)->bytes + (size_t)at * size, size);
        return element_from(c, t, p);
    }
    unravel(n->rank, d, at, x);
    if (n->op == OP_IOTA)
        return idx(c, x[n->arg.i]);
    if (op_info[n->op].cls != MOVE && n->op != OP_REDUCE && n->op != OP_UPDATE)
        return evaluate(s, n, numel, at);
    if (n->op == OP_CONCAT)
        return concat_element(s, n, d, x);
    Node *src = n->src[0], *r;
    if (!known_dims(src, sd, &count))
        return c->poison;
    switch (n->op) {
    case OP_RESHAPE:
    case OP_KEEP:
    case OP_COPY: return need(s, src, at);
    case OP_PAD: return pad_element(s, n, sd, x);
    case OP_GATHER: return gather_element(s, n, sd, at);
    case OP_REDUCE:
        r = reduce_element(s, n, sd, x);
        return r == c->poison ? evaluate(s, n, numel, at) : r;
    case OP_UPDATE:
        r = update_element(s, n, d, at);
        return r == c->poison ? evaluate(s, n, numel, at) : r;
    default: break;
    }
    int64_t y[INGOT_MAX_RANK] = {0};
    for (int i = 0; i < n->rank; i++) {
        int64_t begin = 0;
        if (n->op == OP_PERMUTE)
            y[((const Perm *)n->arg.ptr)->axis[i]] = x[i];
        else if (n->op == OP_EXPAND)
            y[i] = sd[i] == 1 ? 0 : x[i];
        else if (n->op == OP_FLIP)
            y[i] = n->arg.i >> i & 1 ? d[i] - 1 - x[i] : x[i];
        else if (n->op != OP_SHRINK || !idx_value(n->src[1 + 2 * i], &begin))
            return c->poison;
        else
            y[i] = x[i] + begin;
    }
    return need(s, src, ravel(src->rank, sd, y));
}

/* The element, or poison. */
static Node *find(Context *c, Node *n, int64_t at)
{
    ContentsSearch s = {.c = c, .arena = arena_new()};
    Node *r = need(&s, n, at);
    while (s.depth > 0) {
        const ElementAt top = s.stack[s.depth - 1];
        const int depth = s.depth;
        Node *e = map_get(&c->memo, memo_key(top.n, top.at));
        if (!e) {
            e = element(&s, top.n, top.at);
            if (!e)
                continue; /* what it needs lies above it on the stack */
            map_put(&c->memo, memo_key(top.n, top.at), (void *)(uintptr_t)e);
        }
        s.depth = depth - 1; /* also drops what it asked for and did not need in the end */
    }
    arena_free(s.arena);
    return r ? r : map_get(&c->memo, memo_key(n, at));
}

/* ---- the public questions -------------------------------------------------------------------- */

int ingot_contents(ingot_context *c, ingot_tensor *x, ingot_dim **out, int max)
{
    int64_t dims[INGOT_MAX_RANK], n;
    if (x->op == OP_POISON || !known_dims(x, dims, &n) || n > max)
        return -1;
    if (!dtype_is_int(x->dtype) && x->dtype != INGOT_BOOL && x->dtype != INGOT_INDEX)
        return -1;
    for (int64_t i = 0; i < n; i++) {
        Node *e = find(c, x, i);
        if (e == c->poison)
            return -1;
        out[i] = e->dtype == INGOT_BOOL ? bool_to_int(c, e) : e;
    }
    return (int)n;
}

bool ingot_const_ints(ingot_context *c, ingot_tensor *x, int64_t *out, int max, int *n)
{
    int64_t dims[INGOT_MAX_RANK], count;
    if (x->op == OP_POISON || !known_dims(x, dims, &count) || count > max)
        return false;
    if (!dtype_is_int(x->dtype) && x->dtype != INGOT_BOOL && x->dtype != INGOT_INDEX)
        return false;
    for (int64_t i = 0; i < count; i++) {
        Node *e = find(c, x, i);
        if (e == c->poison || e->op != OP_CONST)
            return false;
        out[i] = e->dtype == INGOT_BOOL ? e->arg.i != 0 : e->arg.i;
    }
    *n = (int)count;
    return true;
}

bool ingot_const_float(ingot_context *c, ingot_tensor *x, double *out)
{
    int64_t dims[INGOT_MAX_RANK], count;
    if (x->op == OP_POISON || !known_dims(x, dims, &count) || count != 1)
        return false;
    Node *e = find(c, x, 0);
    if (e == c->poison || e->op != OP_CONST)
        return false;
    *out = dtype_is_float(e->dtype) ? node_float(e) : (double)e->arg.i;
    return true;
}

/* Nodes that are still to be looked at. */
typedef struct {
    Arena *a;
    uint64_t *seen; /* a bit each, by id */
    uint32_t most;  /* the largest id */
    Node **stack;
    int n, room;
} ConstWalk;

static bool seen_now(ConstWalk *w, const Node *n)
{
    const bool seen = n->id > w->most || w->seen[n->id / 64] >> (n->id % 64) & 1;
    if (!seen)
        w->seen[n->id / 64] |= UINT64_C(1) << (n->id % 64);
    return seen;
}

static void look_at(ConstWalk *w, Node *n)
{
    if (w->n == w->room) {
        Node **more = NEWN(w->a, Node *, 2 * w->room);
        memcpy((void *)more, (const void *)w->stack, (size_t)w->n * sizeof *more);
        w->room *= 2;
        w->stack = more;
    }
    w->stack[w->n++] = n;
}

/* What a loop's or branch's results are made of, besides its sources; its own parameters are made
 * of those. */
static void look_inside(ConstWalk *w, const Node *n)
{
    const Loop *l = n->op == OP_LOOP ? n->arg.ptr : NULL;
    const If *f = n->op == OP_IF ? n->arg.ptr : NULL;
    const struct Region *body[] = {l ? l->body : f->then_branch, f ? f->else_branch : NULL};
    if (l && l->trip)
        look_at(w, l->trip);
    if (l && l->iterations && l->iterations != l->trip) /* the loop tells it */
        (void)seen_now(w, l->iterations);
    if (l && l->counter)
        (void)seen_now(w, l->counter);
    for (int i = 0; i < 2 && body[i]; i++) {
        for (int k = 0; k < body[i]->nparam; k++)
            (void)seen_now(w, body[i]->param[k]);
        for (int k = 0; k < body[i]->nresult; k++)
            look_at(w, body[i]->result[k]);
    }
}

bool ingot_is_const(ingot_tensor *x)
{
    ConstWalk w = {.a = arena_new(), .most = x->id, .room = 64};
    bool constant = true;
    w.seen = NEWN(w.a, uint64_t, x->id / 64 + 1);
    w.stack = NEWN(w.a, Node *, w.room);
    look_at(&w, x);
    while (w.n > 0 && constant) {
        Node *top = w.stack[--w.n];
        if (seen_now(&w, top))
            continue;
        constant = top->op != OP_INPUT && top->op != OP_STATE && top->op != OP_VAR &&
                   top->op != OP_PARAM && top->op != OP_POISON && top->op != OP_RANGE &&
                   top->dtype != INGOT_STRING; /* pointers differ from run to run */
        if (top->op == OP_LOOP || top->op == OP_IF)
            look_inside(&w, top);
        for (uint32_t i = top->nsrc; i > 0; i--) /* the first source, most often the data, first */
            look_at(&w, top->src[i - 1]);
    }
    arena_free(w.a);
    return constant;
}

bool ingot_const_data(ingot_context *c, ingot_tensor *x, void *out, size_t bytes)
{
    int64_t dims[INGOT_MAX_RANK] = {0}, n = 1;
    if (!ingot_static_shape(x, dims) || !ingot_is_const(x))
        return false;
    for (int i = 0; i < x->rank; i++)
        n = sat_mul(n, dims[i]);
    if (sat_mul(n, (int64_t)elem_bytes((ingot_dtype)x->dtype)) != (int64_t)bytes)
        return false;
    if (x->op == OP_DATA) {
        if (bytes)
            memcpy(out, ((const Data *)x->arg.ptr)->bytes, bytes);
        return true;
    }
    Interp *ip = interp_new(c);
    const void *data = interp_eval(ip, x, NULL);
    if (data && bytes)
        memcpy(out, data, bytes);
    interp_free(ip);
    return data != NULL;
}

ingot_tensor *ingot_assuming(ingot_context *c, ingot_tensor *t, ingot_tensor *from,
                             ingot_tensor *to)
{
    if (t == c->poison || from == c->poison || to == c->poison)
        return c->poison;
    return substitute(c, t, 1, &from, &to);
}
