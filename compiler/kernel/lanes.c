/* lanes.c - what can be computed in the lanes of vectors.
 *
 * A lane has 32 bits: f32, which also holds the smaller floats, or i32, which also holds the
 * smaller integers; or 64: f64 and i64, of which a register holds half as many.  A condition is a
 * mask of i32, and a byte of 0 or 1 in memory (decompose.c).  What is narrower in memory is widened
 * by the load and rounded or wrapped by the store, as it is outside of lanes. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

const char *lane_type(ingot_dtype d)
{
    switch (d) {
    case INGOT_F32:
    case INGOT_F16:
    case INGOT_BF16: return "f32";
    case INGOT_I32:
    case INGOT_I16:
    case INGOT_U16:
    case INGOT_I8:
    case INGOT_U8: return "i32";
    case INGOT_F64: return "f64";
    case INGOT_I64: return "i64";
    default: return NULL;
    }
}

static bool is_lane_float(ingot_dtype d)
{
    return lane_type(d) && dtype_is_float(d);
}

/* Bounds of a number made of coordinates: false if it is made of something else. */
static bool coordinate_bounds(const Node *n, int64_t *lo, int64_t *hi)
{
    int64_t l, h;
    switch (n->op) {
    case OP_CONST: *lo = *hi = n->arg.i; return !dtype_is_float(n->dtype);
    case OP_CAST:
        if (n->src[0]->dtype != INGOT_INDEX)
            return coordinate_bounds(n->src[0], lo, hi);
        *lo = n->src[0]->lo;
        *hi = n->src[0]->hi;
        return true;
    case OP_ADD:
    case OP_MUL:
        if (!coordinate_bounds(n->src[0], lo, hi) || !coordinate_bounds(n->src[1], &l, &h) ||
            *lo < 0 || l < 0)
            return false;
        *lo = n->op == OP_ADD ? sat_add(*lo, l) : sat_mul(*lo, l);
        *hi = n->op == OP_ADD ? sat_add(*hi, h) : sat_mul(*hi, h);
        return true;
    default: return false;
    }
}

/* An amount to shift by that is known to be less than the width. */
static bool small_shift(const Node *n)
{
    int64_t lo, hi;
    return coordinate_bounds(n->src[1], &lo, &hi) && lo >= 0 && hi < 8 * dtype_info[n->dtype].bytes;
}

/* Of a digit: what is shifted is still a byte. */
static bool stays_byte(const Node *n)
{
    const Node *x = n->src[0], *by = n->src[1];
    return n->dtype == INGOT_U8 && x->op == OP_AND && x->src[1]->op == OP_CONST &&
           by->op == OP_CONST && by->arg.i >= 0 && by->arg.i < 8 &&
           x->src[1]->arg.i << by->arg.i <= UINT8_MAX;
}

int lane_bytes(const Kernel *k, Node *range)
{
    Arena *a = arena_new();
    int n, bytes = 4;
    Node *const *order = kernel_end_nodes(k, &n);
    const bool *on = moving(a, order, n, range);
    for (int i = 0; i < n && bytes < 8; i++) {
        const Node *t = order[i];
        bool value = t->dtype != INGOT_INDEX && t->op != OP_BUFFER && t->op != OP_END;
        if (value && on[t->id] && dtype_info[t->dtype].bytes == 8)
            bytes = 8;
    }
    arena_free(a);
    return bytes;
}

int lanes_most(const Kernel *k, Node *range, const Target *t)
{
    int n = t->machine.lanes * 4 / lane_bytes(k, range);
    return t->machine.lanes && n < 4 ? 4 : n; /* two registers */
}

/* Integers: what stays within the type, and on all 32 or 64 bits what wraps. */
static bool int_op(const Node *n)
{
    switch (n->op) {
    case OP_AND: return true;
    case OP_OR:
    case OP_XOR: return n->dtype == INGOT_U8;
    case OP_SHL: return (n->dtype == INGOT_I32 || stays_byte(n)) && small_shift(n);
    case OP_SHR:
        return (dtype_info[n->dtype].kind == 'u' || n->dtype == INGOT_I32) && small_shift(n);
    case OP_MAX:
    case OP_MIN:
    case OP_MULHI:
    case OP_SHRR:
    case OP_WHERE: return true;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL: return n->dtype == INGOT_I32 || n->dtype == INGOT_I64;
    default: return false;
    }
}

static bool cast_op(const Node *n)
{
    ingot_dtype from = n->src[0]->dtype, to = n->dtype;
    if (from == INGOT_BOOL)
        return true;
    if (from == INGOT_INDEX) /* counts in lanes of i32 */
        return lane_type(to) && (!dtype_is_float(to) || dtype_info[to].bytes >= 4);
    /* i32 -> f16 would be rounded twice, and f64 -> f16 */
    bool once = from == INGOT_F64 ? to == INGOT_F32 || to == INGOT_F64
                                  : is_lane_float(from) || to == INGOT_F32 || to == INGOT_F64 ||
                                        dtype_info[from].bytes == 1;
    return lane_type(from) && (!dtype_is_float(to) || once);
}

bool lane_ramp(Context *c, Node *e, Node *range, int64_t *step)
{
    return e->lo >= INT32_MIN && e->hi <= INT32_MAX && range_stride(c, e, range, step) &&
           *step >= INT32_MIN && *step <= INT32_MAX;
}

bool lane_custom(ingot_dtype d)
{
    return d == INGOT_BOOL || (lane_type(d) && dtype_info[d].bytes <= 4);
}

/* A function of the user's is called lane by lane, in a loop that the C compiler makes vectors of
 * if it can. */
static bool custom_op(const Node *n)
{
    bool good = lane_custom(n->dtype);
    for (uint32_t i = 0; i < n->nsrc; i++)
        good &= lane_custom(n->src[i]->dtype);
    return good;
}

bool lane_op(const Node *n)
{
    if (n->op == OP_CUSTOM)
        return custom_op(n);
    if (n->op == OP_STAGE)
        return lane_type(n->dtype) != NULL;
    if (n->op == OP_REDUCE && reduce_size(n) > 1) {
        bool good = true;
        for (uint32_t i = 0; i < reduce_size(n); i++)
            good &= lane_type(n->src[i]->dtype) != NULL;
        return good;
    }
    if (n->op == OP_REDUCE || n->op == OP_SCAN)
        return n->arg.i <= INGOT_REDUCE_MIN &&
               (is_lane_float(n->dtype) || n->dtype == INGOT_I32 || n->dtype == INGOT_I64);
    if (n->dtype == INGOT_BOOL) {
        bool compare = n->op >= OP_EQ && n->op <= OP_LE;
        if (compare)
            return n->src[0]->dtype == INGOT_INDEX || lane_type(n->src[0]->dtype);
        if (n->op == OP_ISNAN)
            return is_lane_float(n->src[0]->dtype);
        return n->op == OP_AND || n->op == OP_OR || n->op == OP_NOT;
    }
    if (!lane_type(n->dtype))
        return false;
    if (n->op == OP_CAST)
        return cast_op(n);
    if (!dtype_is_float(n->dtype))
        return int_op(n);
    return op_info[n->op].lanes >= (n->dtype == INGOT_F64 ? 64 : 32);
}

/* A function of coordinates: these may be what is compared, or become numbers, if they advance
 * evenly along the lanes. */
static bool takes_ramps(const Kernel *k, Node *t, Node *range)
{
    bool ramps = t->op == OP_CAST || (t->op >= OP_EQ && t->op <= OP_LE);
    int64_t step;
    for (uint32_t j = 0; j < t->nsrc; j++)
        if (t->src[j]->dtype == INGOT_INDEX && t->op != OP_REDUCE && t->op != OP_SCAN &&
            depends_on(t->src[j], range) && !(ramps && lane_ramp(k->c, t->src[j], range, &step)))
            return false;
    return true;
}

bool moves_by_parts(const Kernel *k, const Node *access, Move m)
{
    const KernelArg *a = &k->args[access->src[0]->arg.i];
    int64_t size;
    return m.kind == MOVE_AXIS && m.stride > 1 && a->rank < INGOT_MAX_RANK &&
           idx_value(a->dims[m.axis], &size) && size % m.stride == 0;
}

/* Whether all that depends on range can be computed in its lanes.  Conditions in memory are so
 * beside floats; what is made of conditions and integers alone C compilers do by bytes.  Buffers in
 * `free` (by argument) may be laid out as this needs, and `moves` counts other accesses whose
 * stride is not 1: can_lay_out() knows whether they can be copied. lanes: how many, 0: not known.
 * apart: NULL, or what is loaded may lie apart; becomes the greatest such stride.  In a
 * contraction, whose loads are to be vectors, it may not, nor may a gate differ from lane to lane.
 */
bool fits_lanes(Arena *a, const Kernel *k, Node *range, int64_t lanes, const bool *free, int *moves,
                int64_t *apart)
{
    int n;
    Node **order = graph_toposort(a, 1, &k->sink->src[0], &n);
    *moves = 0;
    bool floats = false, conditions = false; /* that are loaded or stored */
    const bool *on = moving(a, order, n, range);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        if (owns_range(t, range) && !lane_op(t))
            return false;
        if (t == range || t->dtype == INGOT_INDEX || t->op == OP_BUFFER || t->op == OP_END ||
            !on[t->id])
            continue;
        if (t->op == OP_STAGE) { /* lies side by side along its last range */
            Node *last = t->src[t->nsrc - 1];
            int64_t step;
            for (uint32_t j = 1 + (uint32_t)t->arg.i; j + 1 < t->nsrc; j++)
                if (depends_on(t->src[j], range))
                    return false;
            if (!lane_op(t) ||
                (depends_on(last, range) && !(lane_ramp(k->c, last, range, &step) && step == 1)))
                return false;
            continue;
        }
        if (t->op != OP_LOAD && t->op != OP_STORE) {
            if (!takes_ramps(k, t, range) || !lane_op(t))
                return false;
            continue;
        }
        if ((!lane_type(t->dtype) && t->dtype != INGOT_BOOL) ||
            (t->op == OP_STORE && !node_is_const_i(t->src[1], 1)) ||
            (depends_on(t->src[1], range) && free && !apart))
            return false;
        Move m = access_move(k->c, t, range);
        int64_t stride;
        if (m.kind == MOVE_MIXED && !(access_stride(k, t, range, &stride) && stride == 1))
            return false;
        if (m.kind == MOVE_NONE ||
            m.kind == MOVE_MIXED) /* of several axes that are stored as one */
            continue;
        if (free && free[t->src[0]->arg.i] && !(apart && t->op == OP_LOAD)) {
            if (m.stride != 1 && !interleaved(k, t, range) &&
                !(t->op == OP_STORE && moves_by_parts(k, t, m)))
                return false;
            continue;
        }
        bool known = vector_stride(k, t, range, lanes, &stride);
        if (apart && t->op == OP_LOAD && (free && free[t->src[0]->arg.i] ? m.stride : known)) {
            *apart = known && llabs(stride) > *apart ? llabs(stride) : *apart;
            continue;
        }
        if ((known && stride == 1) || (free && interleaved(k, t, range)))
            continue;
        if (!free || (m.stride != 1 && !(t->op == OP_STORE && moves_by_parts(k, t, m))))
            return false;
        ++*moves;
    }
    return floats || !conditions;
}

bool moves_conditions(const Kernel *k, Node *range)
{
    int n;
    Node *const *order = kernel_end_nodes(k, &n);
    for (int i = 0; i < n; i++)
        if ((order[i]->op == OP_LOAD || order[i]->op == OP_STORE) &&
            order[i]->dtype == INGOT_BOOL && access_move(k->c, order[i], range).kind != MOVE_NONE)
            return true;
    return false;
}

bool lanes_possible(Arena *a, const Kernel *k, Node *range)
{
    bool *free = NEWN(a, bool, k->narg);
    int moves;
    memset(free, true, (size_t)k->narg * sizeof *free);
    int64_t apart = 0;
    return fits_lanes(a, k, range, 0, free, &moves, &apart);
}
