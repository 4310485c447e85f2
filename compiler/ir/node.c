/* node.c - making nodes.  A node is immutable and hash-consed inside its context: equal nodes
 * are the same pointer, so structural equality is ==.  Everything that makes nodes ends in
 * node_make(). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "igrt_num.h"
#include "ir.h"

/* clang-format off */
#define V (-1)
const OpInfo op_info[OP_COUNT] = {
#define OP(id, text, nsrc, cls, arg, cost, lanes) [OP_##id] = {text, nsrc, cls, ARG_##arg, cost, lanes},
#include "ops.def"
};
#undef V
const DtypeInfo dtype_info[INGOT_DTYPE_COUNT] = {
#define DTYPE(id, name, bytes, kind, c_type, compute) [INGOT_##id] = {name, bytes, kind, c_type, INGOT_##compute},
#include "dtypes.def"
};
/* clang-format on */

Op op_named(const char *text)
{
    for (int op = 0; op < OP_COUNT; op++)
        if (!strcmp(op_info[op].text, text))
            return (Op)op;
    BUG("ops.def has no '%s'", text);
}

const char *ingot_dtype_name(ingot_dtype d)
{
    return dtype_info[d].name;
}

size_t ingot_dtype_bytes(ingot_dtype d)
{
    return (size_t)dtype_info[d].bytes;
}

/* ---- interning ------------------------------------------------------------------------- */

static inline uint64_t hash_of(Op op, ingot_dtype dtype, Arg arg, uint32_t nsrc, Node *const *src)
{
    uint64_t h = (uint64_t)op << 32 | (uint64_t)dtype << 24 | nsrc;
    h = (h ^ arg.bits) * 0xFF51AFD7ED558CCDu;
    for (uint32_t i = 0; i < nsrc; i++)
        h = ((h ^ (h >> 31)) + src[i]->id) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

static uint64_t node_hash(const struct Node *n)
{
    return hash_of((Op)n->op, (ingot_dtype)n->dtype, n->arg, n->nsrc, n->src);
}

static inline bool is_node(const struct Node *n, Op op, ingot_dtype dtype, Arg arg, uint32_t nsrc,
                           Node *const *src, int rank)
{
    bool same = n->op == (uint16_t)op && n->dtype == (uint8_t)dtype && n->nsrc == nsrc &&
                n->arg.bits == arg.bits && n->rank == (uint8_t)rank;
    for (uint32_t i = 0; i < nsrc && same; i++)
        same = n->src[i] == src[i];
    return same;
}

static void table_grow(Context *c)
{
    size_t cap = c->captable ? c->captable * 2 : 256;
    Node **table = calloc(cap, sizeof *table);
    Node **nodes = realloc((void *)c->nodes, cap * sizeof *nodes);
    const OriginList **origins = realloc((void *)c->origins, cap * sizeof *origins);
    if (!table || !nodes || !origins)
        BUG("out of memory");
    for (size_t i = 0; i < c->captable; i++)
        if (c->table[i]) {
            size_t j = node_hash(c->table[i]) & (cap - 1);
            while (table[j])
                j = (j + 1) & (cap - 1);
            table[j] = c->table[i];
        }
    free((void *)c->table);
    c->table = table;
    c->nodes = nodes;
    c->origins = origins;
    c->captable = cap;
}

enum {
    MAX_ORIGINS = 256
}; /* of a node: a file of a few lines can name the same value a million times */

void origins_add(Context *c, const Node *n, const OriginList *more)
{
    const OriginList *list = c->origins[n->id];
    for (; more; more = more->rest) {
        const OriginList *at = list;
        int count = 0;
        for (; at && at->origin != more->origin; at = at->rest)
            count++;
        if (at || count >= MAX_ORIGINS)
            continue;
        OriginList *first = NEW(c->arena, OriginList), *second = NULL;
        if (list) {
            second = NEW(c->arena, OriginList);
            *second = (OriginList){more->origin, list->rest};
        }
        *first = (OriginList){list ? list->origin : more->origin, second};
        list = first;
    }
    c->origins[n->id] = list;
}

const Origin *node_origin(const Context *c, const Node *n)
{
    return c->origins[n->id] ? c->origins[n->id]->origin : NULL;
}

static bool of_numbers(Op op, int nsrc, Node *const *src)
{
    if (op_info[op].cls == LEAF)
        return op == OP_CONST || op == OP_IOTA || op == OP_VAR || op == OP_RANGE;
    bool all = op_info[op].cls != MEMORY && op_info[op].cls != CONTROL;
    for (int i = 0; i < nsrc && all; i++)
        all = src[i]->numbers;
    return all;
}

/* What node_order() goes by. */
static void find_place(struct Node *n)
{
    n->last_range = n->op == OP_RANGE ? (int32_t)n->arg.i : INT32_MIN;
    for (uint32_t i = 0; i < n->nsrc; i++) {
        const Node *s = n->src[i];
        if (s->last_range > n->last_range)
            n->last_range = s->last_range;
        if (s->depth >= n->depth)
            n->depth = s->depth < UINT16_MAX ? s->depth + 1 : UINT16_MAX;
    }
}

int node_order(const Node *a, const Node *b)
{
    if (a == b)
        return 0;
    if (a->last_range != b->last_range)
        return a->last_range < b->last_range ? -1 : 1;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    if (a->op != b->op)
        return a->op < b->op ? -1 : 1;
    if (a->op == OP_CONST && a->arg.i != b->arg.i)
        return a->arg.i < b->arg.i ? -1 : 1;
    for (uint32_t i = 0; i < a->nsrc && i < b->nsrc; i++)
        if (a->src[i] != b->src[i])
            return node_order(a->src[i], b->src[i]);
    return a->id < b->id ? -1 : 1;
}

Node *node_make(Context *c, Op op, ingot_dtype dtype, Arg arg, int nsrc, Node *const *src, int rank,
                Node *const *shape)
{
    if (c->ntable * 2 >= c->captable)
        table_grow(c);
    size_t i = hash_of(op, dtype, arg, (uint32_t)nsrc, src) & (c->captable - 1);
    for (; c->table[i]; i = (i + 1) & (c->captable - 1))
        if (is_node(c->table[i], op, dtype, arg, (uint32_t)nsrc, src, rank)) {
            if (op_info[op].cls == LEAF || dtype == INGOT_INDEX)
                ;
            else if (c->making)
                making_found(c->making, c->table[i]);
            else
                origins_add(c, c->table[i], c->at);
            return c->table[i];
        }
    struct Node *n = arena_alloc(c->arena, sizeof *n + (size_t)nsrc * sizeof *src);
    *n = (struct Node){.op = (uint16_t)op,
                       .dtype = (uint8_t)dtype,
                       .rank = (uint8_t)rank,
                       .nsrc = (uint32_t)nsrc,
                       .context = c->number,
                       .numbers = of_numbers(op, nsrc, src),
                       .arg = arg,
                       .lo = INT64_MIN,
                       .hi = INT64_MAX};
    if (nsrc)
        memcpy((void *)n->src, src, (size_t)nsrc * sizeof *src);
    find_place(n);
    if (rank) {
        Node **dims = NEWN(c->arena, Node *, rank);
        memcpy((void *)dims, shape, (size_t)rank * sizeof *dims);
        n->shape = dims;
    }
    n->id = c->nnode;
    if (rank == 0 && (dtype == INGOT_INDEX || dtype == INGOT_BOOL))
        symbolic_bounds(c, n, &n->lo, &n->hi);
    c->nodes[c->nnode] = n;
    c->origins[c->nnode] = c->at;
    c->nnode++;
    c->table[i] = n;
    c->ntable++;
    return n;
}

/* ---- constants ------------------------------------------------------------------------- */

static int64_t wrap_int(ingot_dtype d, int64_t v)
{
    switch (d) {
    case INGOT_BOOL: return v != 0;
    case INGOT_I8: return (int8_t)(uint8_t)(uint64_t)v;
    case INGOT_U8: return (uint8_t)v;
    case INGOT_I16: return (int16_t)(uint16_t)(uint64_t)v;
    case INGOT_U16: return (uint16_t)v;
    case INGOT_I32: return (int32_t)(uint32_t)(uint64_t)v;
    case INGOT_U32: return (uint32_t)v;
    case INGOT_I4: return ((v & 15) ^ 8) - 8;
    case INGOT_U4: return v & 15;
    case INGOT_I2: return ((v & 3) ^ 2) - 2;
    case INGOT_U2: return v & 3;
    default: return v;
    }
}

Node *node_const_i(Context *c, ingot_dtype d, int64_t v)
{
    if (dtype_is_float(d))
        return node_const_f(c, d, (double)v);
    return node_make(c, OP_CONST, d, (Arg){.i = wrap_int(d, v)}, 0, NULL, 0, NULL);
}

static double round_float(ingot_dtype d, double v)
{
    switch (d) {
    case INGOT_F32: return (double)(float)v;
    case INGOT_F16: return (double)igrt_f16_to_f32(igrt_f64_to_f16(v));
    case INGOT_BF16: return (double)igrt_bf16_to_f32(igrt_f32_to_bf16((float)v));
    case INGOT_F8E4M3FN: return (double)igrt_f8e4m3fn_to_f32(igrt_f32_to_f8e4m3fn((float)v, 1));
    case INGOT_F8E4M3FNUZ:
        return (double)igrt_f8e4m3fnuz_to_f32(igrt_f32_to_f8e4m3fnuz((float)v, 1));
    case INGOT_F8E5M2: return (double)igrt_f8e5m2_to_f32(igrt_f32_to_f8e5m2((float)v, 1));
    case INGOT_F8E5M2FNUZ:
        return (double)igrt_f8e5m2fnuz_to_f32(igrt_f32_to_f8e5m2fnuz((float)v, 1));
    case INGOT_F8E8M0: return (double)igrt_f8e8m0_to_f32(igrt_f32_to_f8e8m0((float)v, 1, 0));
    case INGOT_F4E2M1: return (double)igrt_f4e2m1_to_f32(igrt_f32_to_f4e2m1((float)v));
    default: return v;
    }
}

Node *node_const_f(Context *c, ingot_dtype d, double v)
{
    if (!dtype_is_float(d) && isinf(v)) /* the greatest or least number that there is */
        return node_const_i(c, d, v > 0 ? (int64_t)dtype_most(d) : dtype_least(d));
    if (!dtype_is_float(d))
        return node_const_i(c, d,
                            isnan(v)       ? 0
                            : v >= 9.2e18  ? INT64_MAX
                            : v <= -9.2e18 ? INT64_MIN
                                           : (int64_t)v);
    v = round_float(d, v);
    Arg arg = {0};
    memcpy(&arg.bits, &v, sizeof v);
    return node_make(c, OP_CONST, d, arg, 0, NULL, 0, NULL);
}

Node *node_const_zero(Context *c, ingot_dtype d)
{
    return node_make(c, OP_CONST, d, (Arg){0}, 0, NULL, 0, NULL);
}

Node *node_bool(Context *c, bool v)
{
    if (!c->truth[v])
        c->truth[v] = node_make(c, OP_CONST, INGOT_BOOL, (Arg){.i = v}, 0, NULL, 0, NULL);
    return c->truth[v];
}

double node_float(Node *n)
{
    double v;
    memcpy(&v, &n->arg.bits, sizeof v);
    return v;
}

bool node_is_const_i(Node *n, int64_t v)
{
    return n->op == OP_CONST && !dtype_is_float(n->dtype) && n->arg.i == v;
}

Op monoid_op(ingot_reduce_op m)
{
    static const Op op[] = {
#define MONOID(id, text, combine) [INGOT_REDUCE_##id] = OP_##combine,
#include "monoids.def"
    };
    return op[m];
}

Node *monoid_identity(Context *c, ingot_reduce_op m, ingot_dtype d)
{
    switch (m) {
    case INGOT_REDUCE_ADD:
    case INGOT_REDUCE_OR:
    case INGOT_REDUCE_XOR: return node_const_zero(c, d);
    case INGOT_REDUCE_MUL: return node_const_f(c, d, 1);
    case INGOT_REDUCE_AND: return node_const_i(c, d, -1);
    case INGOT_REDUCE_MAX: return node_const_f(c, d, -INFINITY);
    case INGOT_REDUCE_MIN: return node_const_f(c, d, INFINITY);
    default: BUG("no identity for monoid %d", (int)m);
    }
}

/* ---- elementwise ------------------------------------------------------------------------- */

/* Integer arithmetic on coordinates and dims goes to the simplifier. */
static Node *alu_index(Context *c, Op op, Node *const *s)
{
    switch (op) {
    case OP_ADD: return idx_add(c, s[0], s[1]);
    case OP_SUB: return idx_sub(c, s[0], s[1]);
    case OP_NEG: return idx_sub(c, idx(c, 0), s[0]);
    case OP_MUL: return idx_mul(c, s[0], s[1]);
    case OP_FLOORDIV: return idx_div(c, s[0], s[1]);
    case OP_MOD: return idx_mod(c, s[0], s[1]);
    case OP_MIN: return idx_min(c, s[0], s[1]);
    case OP_MAX: return idx_max(c, s[0], s[1]);
    case OP_LT: return idx_lt(c, s[0], s[1]);
    case OP_LE: return idx_le(c, s[0], s[1]);
    case OP_EQ: return idx_eq(c, s[0], s[1]);
    case OP_NE: return bool_not(c, idx_eq(c, s[0], s[1]));
    default: return NULL;
    }
}

static Node *alu_bool(Context *c, Op op, Node *const *s)
{
    switch (op) {
    case OP_AND: return bool_and(c, s[0], s[1]);
    case OP_OR: return bool_or(c, s[0], s[1]);
    case OP_NOT: return bool_not(c, s[0]);
    default: return NULL;
    }
}

/* Sums with numbers, modulo 2^32 (or 2^64): (x - a) + b, and the same behind a choice, (g ? x : a)
 * + b. */
static Node *alu_number(Context *c, Op op, ingot_dtype d, Node *x, Node *k)
{
    bool sum = op == OP_ADD || op == OP_SUB;
    if (!sum || (d != INGOT_I32 && d != INGOT_I64) || k->op != OP_CONST)
        return NULL;
    uint64_t b = op == OP_ADD ? (uint64_t)k->arg.i : 0 - (uint64_t)k->arg.i;
    bool own = (x->op == OP_ADD || x->op == OP_SUB) && x->src[1]->op == OP_CONST;
    if (own) {
        uint64_t a = (uint64_t)x->src[1]->arg.i;
        b += x->op == OP_ADD ? a : 0 - a;
        x = x->src[0];
    } else if (x->op == OP_WHERE && x->src[2]->op == OP_CONST) {
        Node *other = node_const_i(c, d, (int64_t)((uint64_t)x->src[2]->arg.i + b));
        return node_where(c, x->src[0], node_alu2(c, op, d, x->src[1], k), other);
    } else {
        return NULL;
    }
    Node *number = node_const_i(c, d, (int64_t)b);
    return number->arg.i ? node_alu2(c, OP_ADD, d, x, number) : x;
}

Node *node_alu(Context *c, Op op, ingot_dtype d, int nsrc, Node *const *s)
{
    bool scalar = s[0]->rank == 0;
    if (scalar && nsrc == 2 && s[0]->dtype == d) {
        Node *n = alu_number(c, op, d, s[0], s[1]);
        if (n)
            return n;
    }
    bool numbers = scalar && nsrc == 2 && s[0]->op == OP_CONST && s[1]->op == OP_CONST;
    if (numbers && op == OP_EQ && dtype_is_int(s[0]->dtype))
        return node_bool(c, s[0]->arg.i == s[1]->arg.i);
    if (scalar && s[nsrc - 1]->dtype == INGOT_INDEX && op != OP_CAST && op != OP_WHERE) {
        Node *n = alu_index(c, op, s);
        if (n)
            return n;
    }
    if (scalar && s[0]->dtype == INGOT_BOOL && d == INGOT_BOOL) {
        Node *n = alu_bool(c, op, s);
        if (n)
            return n;
    }
    if (op == OP_WHERE) {
        if (s[0]->op == OP_CONST)
            return s[0]->arg.i ? s[1] : s[2];
        if (s[1] == s[2])
            return s[1];
        if (scalar && d == INGOT_BOOL && s[1]->op == OP_CONST && s[2]->op == OP_CONST)
            return s[1]->arg.i ? s[0] : bool_not(c, s[0]);
    }
    /* Loop-level operands have rank 0; tensors all have the shape of the result. */
    Node *widest = s[0];
    for (int i = 1; i < nsrc; i++)
        if (s[i]->rank > widest->rank)
            widest = s[i];
    return node_make(c, op, d, (Arg){0}, nsrc, s, widest->rank, widest->shape);
}

Node *node_alu1(Context *c, Op op, ingot_dtype d, Node *a)
{
    return node_alu(c, op, d, 1, &a);
}

Node *node_alu2(Context *c, Op op, ingot_dtype d, Node *a, Node *b)
{
    return node_alu(c, op, d, 2, (Node *[]){a, b});
}

Node *node_where(Context *c, Node *cond, Node *a, Node *b)
{
    return node_alu(c, OP_WHERE, a->dtype, 3, (Node *[]){cond, a, b});
}

/* Is every number of type d one of type wide? */
static bool float_holds(ingot_dtype wide, ingot_dtype d)
{
    return wide == INGOT_F64 ? d == INGOT_F32 || d == INGOT_F16 || d == INGOT_BF16
                             : wide == INGOT_F32 && (d == INGOT_F16 || d == INGOT_BF16);
}

Node *node_cast(Context *c, Node *n, ingot_dtype d)
{
    if (n->dtype == d)
        return n;
    /* a coordinate's low bits, whether or not it was a wider number before */
    if (n->rank == 0 && n->op == OP_CAST && n->src[0]->dtype == INGOT_INDEX &&
        n->dtype == INGOT_I64 && dtype_is_int(d))
        return node_cast(c, n->src[0], d);
    if (n->rank == 0 && n->op == OP_CAST && !n->arg.i && n->src[0]->dtype == d &&
        float_holds((ingot_dtype)n->dtype, d))
        return n->src[0];
    if (n->rank == 0 && n->op == OP_CONST) {
        if (dtype_is_int(n->dtype) || n->dtype == INGOT_INDEX || n->dtype == INGOT_BOOL) {
            if (!dtype_is_float(d) && d != INGOT_BOOL && dtype_info[d].kind != 'c' &&
                n->dtype != INGOT_U64)
                return node_const_i(c, d, n->arg.i);
            if (d == INGOT_BOOL)
                return node_bool(c, n->arg.i != 0);
            if ((d == INGOT_F32 || d == INGOT_F64) && n->dtype != INGOT_U64 &&
                llabs(n->arg.i) < (1 << 24))
                return node_const_f(c, d, (double)n->arg.i);
        } else if (dtype_is_float(n->dtype) && (d == INGOT_F64 || d == INGOT_F32)) {
            return node_const_f(c, d, node_float(n));
        }
    }
    if (d == INGOT_INDEX) { /* the integer behind a value, where it can be seen */
        Node *i = n->rank == 0 ? idx_from_value(c, n) : NULL;
        if (i)
            return i;
    }
    return node_make(c, OP_CAST, d, (Arg){0}, 1, &n, n->rank, n->shape);
}

Node *node_custom(Context *c, const CustomUse *use, ingot_dtype d, int nsrc, Node *const *s)
{
    return node_make(c, OP_CUSTOM, d, (Arg){.ptr = use}, nsrc, s, s[0]->rank, s[0]->shape);
}

Node *node_fraction(Context *c, Op op, int64_t known, Node *const *src)
{
    Node *y = node_alu(c, op, INGOT_I32, 2, src);
    return y->op == op && y->arg.i != known
               ? node_make(c, op, INGOT_I32, (Arg){.i = known}, 2, src, y->rank, y->shape)
               : y;
}

Node *node_with(Context *c, Node *n, Node *const *src)
{
    if (n->op == OP_CAST && n->arg.i == 0)
        return node_cast(c, src[0], n->dtype);
    if (n->op == OP_CUSTOM)
        return node_custom(c, n->arg.ptr, (ingot_dtype)n->dtype, (int)n->nsrc, src);
    if (n->op == OP_MULHI || n->op == OP_SHRR)
        return node_fraction(c, n->op, n->arg.i, src);
    if (op_is_alu(n->op) && op_info[n->op].arg == ARG_NONE)
        return node_alu(c, n->op, n->dtype, (int)n->nsrc, src);
    return node_make(c, n->op, n->dtype, n->arg, (int)n->nsrc, src, n->rank, n->shape);
}

Node *node_with_source(Context *c, Node *n, int i, Node *x)
{
    Node *src[INGOT_MAX_RANK * 4];
    if (n->nsrc > sizeof src / sizeof *src)
        BUG("%s has %u sources", op_info[n->op].text, (unsigned)n->nsrc);
    memcpy((void *)src, (void *)n->src, (size_t)n->nsrc * sizeof *src);
    src[i] = x;
    return node_with(c, n, src);
}

Node *node_rebuilt(Context *c, Node *n, Node *const *now)
{
    bool changed = false;
    for (uint32_t i = 0; i < n->nsrc; i++)
        changed |= now[n->src[i]->id] != n->src[i];
    if (!changed)
        return n;
    Node *few[16], **src = few;
    Arena *a = n->nsrc > sizeof few / sizeof *few ? arena_new() : NULL;
    if (a)
        src = NEWN(a, Node *, n->nsrc);
    for (uint32_t i = 0; i < n->nsrc; i++)
        src[i] = now[n->src[i]->id];
    Node *made = node_with(c, n, src);
    arena_free(a);
    return made;
}

Node *below_casts(Node *n)
{
    while (n->op == OP_CAST)
        n = n->src[0];
    return n;
}

int end_stores(const Node *end)
{
    int n = 0;
    while (n < (int)end->nsrc && end->src[n]->op == OP_STORE)
        n++;
    return n;
}

int first_coord(const Node *access)
{
    return access->op == OP_STORE ? 3 : 2;
}
