/* verify.c - the spec of the graph, checked between passes in debug builds.
 *
 * Level 0 is the tensor graph: shapes, dtypes and sources of every op as ops.def says.  Level 1 is
 * a kernel: rank 0 throughout, coordinates INDEX, gates BOOL.  A node that breaks a rule is our
 * fault, so it ends in BUG with the node, the pass and the text of what it is made of.  Dims are
 * compared as far as their bounds can tell: a proof that two symbolic dims are equal would need
 * new nodes. */
#include <string.h>

#include "ir.h"

typedef struct {
    int level;
    const char *after;
} Check;

enum { DUMP_BYTES = 4000 };

/* The end of the dump is what is nearest to the node. */
static _Noreturn void broken(const Check *v, Node *n, const char *rule)
{
    StrBuf sb = {0};
    text_print(&sb, 1, &n);
    const char *dump = sb.len > DUMP_BYTES ? sb.data + sb.len - DUMP_BYTES : sb.data;
    BUG("after %s: %s of node %u: %s\n%s", v->after ? v->after : "?", op_info[n->op].text, n->id,
        rule, dump);
}

#define RULE(condition, text)   \
    do {                        \
        if (!(condition))       \
            broken(v, n, text); \
    } while (0)

static bool is_integer(int dtype)
{
    return dtype_is_int(dtype) || dtype == INGOT_INDEX || dtype == INGOT_BOOL;
}

/* Not shown to be different. */
static bool dims_agree(Node *a, Node *b)
{
    return a == b || (a->lo <= b->hi && b->lo <= a->hi);
}

static bool shapes_agree(Node *a, Node *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!dims_agree(a->shape[i], b->shape[i]))
            return false;
    return true;
}

static bool is_dim(Node *n)
{
    return n->dtype == INGOT_INDEX && n->rank == 0;
}

/* The sources from `first` on are the shape. */
static bool shape_follows(Node *n, uint32_t first)
{
    if (n->nsrc != first + n->rank)
        return false;
    for (int i = 0; i < n->rank; i++)
        if (n->src[first + (uint32_t)i] != n->shape[i])
            return false;
    return true;
}

/* -1 if a dim is symbolic or the product does not fit. */
static int64_t elements(Node *n)
{
    int64_t product = 1;
    for (int i = 0; i < n->rank; i++) {
        int64_t d;
        if (!idx_value(n->shape[i], &d) || d < 0)
            return -1;
        product = sat_mul(product, d);
    }
    return product == INT64_MAX ? -1 : product;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static void check_leaf(const Check *v, Node *n)
{
    switch (n->op) {
    case OP_CONST: RULE(n->rank == 0, "a constant is a scalar"); return;
    case OP_VAR: RULE(is_dim(n) && n->arg.i >= 0, "a run-time integer is an INDEX scalar"); return;
    case OP_RANGE:
        RULE(v->level == 1, "a loop counter outside a kernel");
        RULE(is_dim(n) && is_dim(n->src[0]), "a range and its extent are INDEX scalars");
        return;
    case OP_PARAM:
        if (v->level == 1) {
            RULE(n->rank == 0 && n->nsrc == 0 && n->arg.i >= 0,
                 "an argument of a kernel that is no buffer is a number");
            return;
        }
        break;
    default: break;
    }
    RULE(v->level == 0, "a tensor inside a kernel");
    RULE(shape_follows(n, 0), "the sources of a leaf are its dims");
    if (n->op == OP_IOTA)
        RULE(n->dtype == INGOT_I64 && n->arg.i >= 0 && n->arg.i < n->rank,
             "iota counts along one of its axes in i64");
    if (n->op == OP_DATA) {
        const Data *d = n->arg.ptr;
        int64_t count = elements(n);
        RULE(count >= 0, "data has constant dims");
        bool sized = dtype_info[n->dtype].bytes > 0;
        RULE(!sized || d->nbytes == (size_t)count * (size_t)dtype_info[n->dtype].bytes,
             "as many bytes as elements");
    }
}

/* ---- elementwise ----------------------------------------------------------------------------- */

static bool all_of(Node *n, uint32_t from, int dtype)
{
    for (uint32_t i = from; i < n->nsrc; i++)
        if (n->src[i]->dtype != dtype)
            return false;
    return true;
}

static void check_alu(const Check *v, Node *n)
{
    Node *const *s = n->src;
    for (uint32_t i = 0; i < n->nsrc; i++)
        RULE(shapes_agree(n, s[i]), "elementwise sources have the shape of the result");
    switch (n->op) {
    case OP_CAST: return;
    case OP_BITCAST:
        RULE(dtype_info[n->dtype].bytes == dtype_info[s[0]->dtype].bytes,
             "a bitcast keeps the element size");
        return;
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
        RULE(n->dtype == INGOT_BOOL, "a comparison is bool");
        RULE(s[0]->dtype == s[1]->dtype, "a comparison is of one dtype");
        return;
    case OP_ISNAN:
        RULE(n->dtype == INGOT_BOOL && dtype_is_float(s[0]->dtype), "isnan asks floats");
        return;
    case OP_CUSTOM: {
        const CustomOp *op = ((const CustomUse *)n->arg.ptr)->op;
        RULE((int)n->nsrc == op->nin && op->elementwise, "a custom function has its operands");
        for (int i = 0; i < op->nin; i++)
            RULE((ingot_dtype)s[i]->dtype == custom_param(op, CUSTOM_INPUT, i)->dtype,
                 "operands have the types of the function's parameters");
        return;
    }
    case OP_WHERE:
        RULE(s[0]->dtype == INGOT_BOOL, "the condition of where is bool");
        RULE(all_of(n, 1, n->dtype), "both choices of where have its dtype");
        return;
    default: break;
    }
    RULE(all_of(n, 0, n->dtype), "operands have the dtype of the result");
    if (n->op == OP_AND || n->op == OP_OR || n->op == OP_XOR || n->op == OP_NOT ||
        n->op == OP_SHL || n->op == OP_SHR || n->op == OP_FLOORDIV)
        RULE(is_integer(n->dtype), "an op on integers");
    if (n->op == OP_MULHI || n->op == OP_SHRR)
        RULE(n->dtype == INGOT_I32, "an op on i32");
}

/* ---- movement -------------------------------------------------------------------------------- */

static void check_pad(const Check *v, Node *n)
{
    Node *x = n->src[0];
    RULE(n->nsrc == 1u + 2u * x->rank && n->rank == x->rank, "two amounts for every axis");
    for (int i = 0; i < n->rank; i++) {
        Node *a = n->src[1 + 2 * i], *b = n->src[2 + 2 * i];
        int64_t size, old, lo, hi;
        RULE(is_dim(a) && is_dim(b), "amounts are INDEX scalars");
        if (n->op == OP_SHRINK) {
            RULE(dims_agree(n->shape[i], b), "shrink has the sizes it says");
            if (idx_value(a, &lo) && idx_value(b, &size) && idx_value(x->shape[i], &old))
                RULE(lo >= 0 && size >= 0 && lo + size <= old, "shrink stays within its source");
            continue;
        }
        RULE(a->hi >= 0 && b->hi >= 0, "padding is not negative");
        if (idx_value(n->shape[i], &size) && idx_value(x->shape[i], &old) && idx_value(a, &lo) &&
            idx_value(b, &hi))
            RULE(size == old + lo + hi, "pad adds its amounts");
    }
}

static void check_concat(const Check *v, Node *n)
{
    int64_t sum = 0, size = 0, d;
    bool known = n->nsrc > 0 && n->arg.i >= 0 && n->arg.i < n->rank;
    RULE(known, "concat joins parts along one of its axes");
    for (uint32_t i = 0; i < n->nsrc; i++) {
        Node *x = n->src[i];
        RULE(x->dtype == n->dtype && x->rank == n->rank, "parts are of one dtype and rank");
        for (int k = 0; k < n->rank; k++)
            RULE(k == n->arg.i || dims_agree(x->shape[k], n->shape[k]),
                 "parts differ along one axis only");
        known &= idx_value(x->shape[n->arg.i], &d);
        sum += known ? d : 0;
    }
    if (known && idx_value(n->shape[n->arg.i], &size))
        RULE(sum == size, "concat is as long as its parts");
}

/* Index tensors, one for each axis of x; they have the shape of `like`. */
static void check_indices(const Check *v, Node *n, uint32_t first, Node *x, Node *like)
{
    RULE(n->nsrc == first + x->rank, "one index for every axis");
    for (uint32_t i = first; i < n->nsrc; i++) {
        RULE(is_integer(n->src[i]->dtype), "indices are integers");
        RULE(shapes_agree(n->src[i], like), "indices have one shape");
    }
}

static void check_move(const Check *v, Node *n)
{
    Node *x = n->nsrc ? n->src[0] : NULL;
    RULE(v->level == 0, "movement inside a kernel");
    RULE(x != NULL && x->dtype == n->dtype, "movement keeps the dtype");
    switch (n->op) {
    case OP_RESHAPE:
        RULE(shape_follows(n, 1), "reshape has the dims it says");
        RULE(elements(x) < 0 || elements(n) < 0 || elements(x) == elements(n),
             "reshape keeps the elements");
        return;
    case OP_EXPAND:
        RULE(shape_follows(n, 1) && n->rank == x->rank, "expand has the dims it says");
        for (int i = 0; i < n->rank; i++)
            RULE(idx_is(x->shape[i], 1) || dims_agree(x->shape[i], n->shape[i]),
                 "only dims of 1 are repeated");
        return;
    case OP_PERMUTE: {
        const Perm *p = n->arg.ptr;
        unsigned seen = 0;
        RULE(p->n == n->rank && x->rank == n->rank, "a permutation of all axes");
        for (int i = 0; i < n->rank; i++) {
            RULE(p->axis[i] >= 0 && p->axis[i] < n->rank && !(seen >> p->axis[i] & 1),
                 "each axis once");
            seen |= 1u << p->axis[i];
            RULE(dims_agree(n->shape[i], x->shape[p->axis[i]]), "permuted dims");
        }
        return;
    }
    case OP_PAD:
    case OP_SHRINK: check_pad(v, n); return;
    case OP_FLIP:
        RULE(shapes_agree(n, x), "flip keeps the shape");
        RULE(n->arg.i >= 0 && n->arg.i < INT64_C(1) << n->rank, "flip of its own axes");
        return;
    case OP_GATHER: check_indices(v, n, 1, x, n); return;
    case OP_CONCAT: check_concat(v, n); return;
    case OP_COPY: RULE(n->arg.i >= 0, "a copy names a device"); /* fall through */
    default: RULE(shapes_agree(n, x), "keep and copy keep the shape"); return;
    }
}

/* ---- reduce, memory -------------------------------------------------------------------------- */

static void check_reduce(const Check *v, Node *n)
{
    RULE(reduce_monoid(n) < MONOID_COUNT, "a known monoid");
    uint32_t size = reduce_size(n);
    RULE(reduce_part(n) < (int)size, "one of the values of the state");
    RULE(n->nsrc >= size && n->src[reduce_part(n)]->dtype == n->dtype,
         "a reduction keeps the dtype");
    if (v->level == 1) {
        for (uint32_t i = size; i < n->nsrc; i++)
            RULE(is_dim(n->src[i]), "a kernel reduces over ranges");
        return;
    }
    Node *x = n->src[0];
    RULE(n->nsrc == size && n->rank == x->rank, "a reduction keeps the rank");
    for (uint32_t i = 1; i < size; i++)
        RULE(shapes_agree(x, n->src[i]), "the values of a state have one shape");
    for (int i = 0; i < n->rank; i++) {
        bool reduced = reduce_axes(n) >> i & 1;
        RULE(reduced ? idx_is(n->shape[i], 1) : dims_agree(n->shape[i], x->shape[i]),
             "reduced axes become 1");
    }
    RULE(reduce_axes(n) < 1u << n->rank, "a reduction of its own axes");
}

static void check_scan(const Check *v, Node *n)
{
    RULE((n->arg.i & 0xFF) < INGOT_REDUCE_COUNT, "a known monoid");
    RULE(n->nsrc >= 1 && n->src[0]->dtype == n->dtype, "a scan keeps the dtype");
    if (v->level == 1) {
        RULE(n->nsrc == 2 && n->src[1]->op == OP_RANGE, "a kernel scans along one range");
        return;
    }
    int64_t axes = n->arg.i >> 8;
    RULE(n->nsrc == 1 && shapes_agree(n, n->src[0]), "a scan keeps the shape");
    RULE(axes > 0 && !(axes & (axes - 1)) && axes < INT64_C(1) << n->rank,
         "a scan of one axis of its own");
}

static void check_coordinates(const Check *v, Node *n, uint32_t first)
{
    RULE(n->nsrc >= first && (n->src[0]->op == OP_BUFFER || n->src[0]->op == OP_AFTER),
         "a buffer first");
    RULE(n->src[1]->dtype == INGOT_BOOL, "the gate is bool");
    for (uint32_t i = first; i < n->nsrc; i++)
        RULE(is_dim(n->src[i]), "coordinates are INDEX scalars");
}

static void check_memory(const Check *v, Node *n)
{
    if (n->op == OP_UPDATE) {
        RULE(v->level == 0, "update inside a kernel");
        RULE(n->nsrc >= 2, "update takes x, values and indices");
        Node *x = n->src[0], *value = n->src[1];
        RULE(n->dtype == x->dtype && n->dtype == value->dtype && shapes_agree(n, x),
             "update keeps x's type");
        RULE(n->arg.i >= INGOT_SET && n->arg.i <= INGOT_MIN, "a known way to update");
        check_indices(v, n, 2, x, value);
        return;
    }
    RULE(v->level == 1, "memory outside a kernel");
    switch (n->op) {
    case OP_BUFFER: RULE(n->arg.i >= 0, "a buffer has a number"); return;
    case OP_STAGE:
        RULE(n->nsrc == 1 + 2 * (uint32_t)n->arg.i && n->src[0]->dtype == n->dtype,
             "a staged value, its ranges, and as many coordinates");
        for (int i = 0; i < (int)n->arg.i; i++)
            RULE(n->src[1 + i]->op == OP_RANGE && is_dim(n->src[1 + n->arg.i + i]),
                 "ranges and coordinates of a staged value");
        return;
    case OP_PACK: return;
    case OP_AFTER:
        RULE(n->nsrc > 1 && n->src[0]->op == OP_BUFFER, "a buffer and what fills it");
        for (uint32_t i = 1; i < n->nsrc; i++)
            RULE(n->src[i]->op == OP_END, "a buffer is filled by loops");
        RULE(n->arg.i == n->src[0]->arg.i, "it has the number of its buffer");
        return;
    case OP_LOAD:
        check_coordinates(v, n, 2);
        RULE(n->dtype == n->src[0]->dtype, "a load has the dtype of its buffer");
        return;
    case OP_STORE:
        check_coordinates(v, n, 3);
        RULE(n->src[2]->dtype == n->src[0]->dtype, "a stored value has the dtype of its buffer");
        return;
    case OP_END: {
        uint32_t stores = (uint32_t)end_stores(n);
        RULE(stores >= 1, "an end closes the loops of stores");
        for (uint32_t i = stores; i < n->nsrc; i++)
            RULE(n->src[i]->op == OP_RANGE, "an end's loops are ranges");
        return;
    }
    default:
        for (uint32_t i = 0; i < n->nsrc; i++)
            RULE(n->src[i]->op == OP_END, "a sink holds ends");
        return;
    }
}

/* ---- control --------------------------------------------------------------------------------- */

static int tuple_size(Node *n)
{
    switch (n->op) {
    case OP_CALL: return ((const Call *)n->arg.ptr)->n_out;
    case OP_LOOP: return ((const Loop *)n->arg.ptr)->ncarried + ((const Loop *)n->arg.ptr)->nscan;
    case OP_IF: return ((const If *)n->arg.ptr)->n;
    default: return -1;
    }
}

static void check_collective(const Check *v, Node *n)
{
    const Collective x = collective_of(n);
    const bool same = x.kind == ALL_REDUCE || x.processes;
    int64_t sum = 0, size;
    RULE(x.kind < COLLECTIVE_KINDS && n->nsrc > 0, "a known collective, of some values");
    RULE(x.kind == ALL_GATHER || x.monoid < INGOT_REDUCE_COUNT, "a monoid of one value");
    RULE(same || x.axis < n->rank, "along one of its axes");
    RULE(x.processes ? n->nsrc == 1 && (x.kind == ALL_REDUCE || x.kind == ALL_MEAN)
                     : x.kind != ALL_MEAN && x.receiver < (int)n->nsrc,
         "one of the group gets it");
    for (uint32_t i = 0; i < n->nsrc; i++) {
        Node *s = n->src[i];
        RULE(s->dtype == n->dtype && s->rank == n->rank, "values are of one dtype and rank");
        for (int k = 0; k < n->rank; k++)
            RULE((!same && k == x.axis) || dims_agree(s->shape[k], n->shape[k]),
                 "values have the shape of the result, along other axes at least");
        if (same)
            continue;
        if (!idx_value(s->shape[x.axis], &size))
            return;
        sum = x.kind == ALL_GATHER ? sum + size : size;
    }
    if (!same && idx_value(n->shape[x.axis], &size))
        RULE(sum == (x.kind == ALL_GATHER ? size : size * n->nsrc),
             "gathered values are as long as all of them, scattered ones are equal parts");
}

static void check_control(const Check *v, Node *n)
{
    RULE(v->level == 0, "control inside a kernel");
    RULE(n->op != OP_POISON, "a value whose construction failed");
    switch (n->op) {
    case OP_CALL:
        RULE(((const Call *)n->arg.ptr)->n_in == (int)n->nsrc, "a call has the inputs it says");
        return;
    case OP_LOOP: {
        const Loop *loop = n->arg.ptr;
        const struct Region *r = loop->body;
        RULE(n->nsrc >= 1u + (uint32_t)loop->ncarried && n->src[0]->dtype == INGOT_BOOL &&
                 n->src[0]->rank == 0,
             "a loop takes a condition and its carried values");
        RULE(r->nparam == 2 + loop->ncarried && r->nresult == 1 + loop->ncarried + loop->nscan,
             "a body has i, cond and carried values, and gives cond, carried and stacked ones");
        for (int i = 0; i < loop->ncarried; i++) {
            Node *first = n->src[1 + i], *param = r->param[2 + i], *next = r->result[1 + i];
            RULE(first->dtype == param->dtype && param->dtype == next->dtype &&
                     shapes_agree(first, param) && shapes_agree(param, next),
                 "a carried value keeps its type");
        }
        return;
    }
    case OP_IF: {
        const If *branch = n->arg.ptr;
        RULE(n->nsrc >= 1 && n->src[0]->dtype == INGOT_BOOL && n->src[0]->rank == 0,
             "if takes a bool scalar");
        RULE(branch->then_branch->nresult == branch->n && branch->else_branch->nresult == branch->n,
             "both branches give every result");
        return;
    }
    case OP_COLLECTIVE: check_collective(v, n); return;
    default:
        RULE(n->nsrc >= 1 && n->arg.i >= 0 && n->arg.i < tuple_size(n->src[0]),
             "proj takes an element of a tuple");
        RULE(shape_follows(n, 1), "the further sources of proj are its dims");
        return;
    }
}

/* ---- all nodes ------------------------------------------------------------------------------- */

static void check_node(const Check *v, Node *n)
{
    RULE(n->op < OP_COUNT && n->dtype < INGOT_DTYPE_COUNT && n->rank <= INGOT_MAX_RANK,
         "a node of this compiler");
    RULE(op_info[n->op].nsrc < 0 || op_info[n->op].nsrc == (int)n->nsrc,
         "as many sources as the op has");
    RULE(v->level == 0 || n->rank == 0, "kernels work on scalars");
    RULE(n->lo <= n->hi, "bounds are in order");
    for (uint32_t i = 0; i < n->nsrc; i++) {
        RULE(n->src[i]->id < n->id, "sources are older");
        RULE(n->src[i]->context == n->context, "sources are of the same context");
        bool tuple = tuple_size(n->src[i]) >= 0;
        RULE(!tuple || n->op == OP_PROJ, "only proj reads a tuple");
    }
    for (int i = 0; i < n->rank; i++)
        RULE(is_dim(n->shape[i]) && n->shape[i]->context == n->context,
             "dims are INDEX scalars of the same context");
    switch (op_info[n->op].cls) {
    case LEAF: check_leaf(v, n); return;
    case UNARY:
    case BINARY:
    case TERNARY:
    case NARY: check_alu(v, n); return;
    case MOVE: check_move(v, n); return;
    case REDUCE: (n->op == OP_SCAN ? check_scan : check_reduce)(v, n); return;
    case MEMORY: check_memory(v, n); return;
    case CONTROL: check_control(v, n); return;
    }
}

/* Regions nest as deep as the model's control flow, so one walk at a time: a list of roots. */
void verify(int nroot, Node *const *roots, int level, const char *after)
{
    Check check = {level, after};
    Arena *a = arena_new();
    const struct Region **todo = NULL;
    int ntodo = 0, n;
    Map seen = {0};
    for (int next = -1; next < ntodo; next++) {
        Node *const *from = next < 0 ? roots : todo[next]->result;
        Node **order = graph_toposort(a, next < 0 ? nroot : todo[next]->nresult, from, &n);
        for (int i = 0; i < n; i++) {
            Node *x = order[i];
            if (map_get(&seen, (uint64_t)x->id + 1))
                continue;
            map_put(&seen, (uint64_t)x->id + 1, &check);
            check_node(&check, x);
            if (x->op == OP_LOOP)
                vec_push(a, todo, ntodo, ((const Loop *)x->arg.ptr)->body);
            if (x->op == OP_IF) {
                vec_push(a, todo, ntodo, ((const If *)x->arg.ptr)->then_branch);
                vec_push(a, todo, ntodo, ((const If *)x->arg.ptr)->else_branch);
            }
        }
    }
    map_free(&seen);
    arena_free(a);
}
