/* decompose.c - conversions as the targets have them, on lowered loop nests, before they become
 * statements.
 *
 *     cast.i8 least(min(max(add(round(x), zero), -128), 127))
 *         -> quantize(x, zero), which holds it within -128..127
 *     cast.f32(sub(cast.i32(quantize(x, zero)), zero))     (in lanes)
 *         -> quantize.f32(x, zero), which has never been an integer
 *     cast.i8 least(min(max(x, -128), 127))
 *         -> the cast of min(where(-128 < x, x, -128), 127), which is no NaN
 *     cast.i8(min(max(x, 0), 100))
 *         -> the cast, marked: its operand is within the type
 *     add(cast.f32(and(shr(x, s), 15)), -8)                ->    digit(x, s), with mask 15, less 8
 *     cast.f32(and(shl(x, s), 0xff000000))                 ->    top-byte(x, s)
 *     shl(and(shr(x, 2), 3), 4) of bytes                   ->    and(shl(x, 2), 48)
 *     max.f16(cast.f16(x), 0)                              ->    cast.f16(max.f32(x, 0))  (on GPUs)
 *     load.bool, store.bool in lanes                       ->    those of bytes, 0 or 1
 *
 * A renderer writes these nodes and the interpreter of linear IR runs them: neither looks for what
 * they are made of. */
#include <math.h>
#include <string.h>

#include "kernel.h"

/* Is the float x clamped to what an integer of up to 16 bits holds, or NaN? */
static bool is_clamped(Node *x, ingot_dtype to)
{
    const DtypeInfo *info = &dtype_info[to];
    double lo = 1, hi = -1, bits = 8.0 * info->bytes;
    bool narrow = to == INGOT_I4 || to == INGOT_U4 || to == INGOT_I2 || to == INGOT_U2;
    if (!dtype_is_int(to) || narrow || bits > 16 || dtype_info[x->dtype].compute != INGOT_F32)
        return false;
    for (int i = 0; i < 2 && (x->op == OP_MIN || x->op == OP_MAX); i++, x = x->src[0])
        if (x->src[1]->op == OP_CONST)
            *(x->op == OP_MIN ? &hi : &lo) = node_float(x->src[1]);
    bool is_signed = info->kind == 'i';
    return lo <= hi && lo >= (is_signed ? -ldexp(1, (int)bits - 1) : 0) &&
           hi <= ldexp(1, (int)bits - is_signed) - 1;
}

/* A zero point: whole, and so small that its sum with what is clamped is exact. */
static bool is_zero_point(const Kernel *k, Node *n)
{
    enum { MOST = 65536 };
    if (n->op == OP_CONST)
        return node_float(n) == rint(node_float(n)) && fabs(node_float(n)) <= MOST;
    n = n->op == OP_CAST ? n->src[0] : n;
    const Scalar *s = is_scalar_argument(n) ? &k->scalars[n->arg.i] : NULL;
    return s && s->whole && s->lo >= -MOST && s->hi <= MOST;
}

typedef struct {
    const Kernel *k;
    bool gpu;
    Node *lane;   /* of the tile */
    int *uses;    /* by id: how many nodes read it */
    Node **fresh; /* by id: what stands for it */
} Decompose;

/* clamp(round(x) + zero, lo, hi) of f32, cast to an integer, of which nothing else reads what is
 * between: one node, or NULL. */
static Node *quantize(const Decompose *q, Node *cast)
{
    Context *c = q->k->c;
    Node *x = cast->src[0], *least = NULL, *most = NULL, *zero = NULL;
    if (q->gpu || x->dtype != INGOT_F32 || cast->arg.i != CAST_LEAST)
        return NULL;
    for (; (x->op == OP_MIN || x->op == OP_MAX) && q->uses[x->id] == 1; x = x->src[0])
        *(x->op == OP_MIN ? &most : &least) = x->src[1];
    if (x->op == OP_ADD && q->uses[x->id] == 1 && is_zero_point(q->k, x->src[1])) {
        zero = x->src[1];
        x = x->src[0];
    }
    if (!least || !most || least->op != OP_CONST || most->op != OP_CONST || x->op != OP_ROUND ||
        q->uses[x->id] != 1)
        return NULL;
    double lo = node_float(least), hi = node_float(most);
    if (lo != (double)dtype_least(cast->dtype) || hi != rint(hi))
        return NULL;
    Node *src[] = {q->fresh[x->src[0]->id], zero ? zero : node_const_f(c, INGOT_F32, 0)};
    Arg bounds = {.i = quantize_bounds((int)lo, (int)hi)};
    return node_make(c, OP_QUANTIZE, cast->dtype, bounds, 2, src, 0, NULL);
}

static Node *alu(Context *c, Op op, Node *of, Node *a, Node *b, Node *d)
{
    ingot_dtype dtype = op == OP_LT || op == OP_EQ ? INGOT_BOOL : (ingot_dtype)of->dtype;
    return node_make(c, op, dtype, (Arg){0}, d ? 3 : 2, (Node *[]){a, b, d}, 0, NULL);
}

/* Is it a number that all lanes share? */
static bool is_number(const Node *n)
{
    return n->op == OP_CONST || is_scalar_argument(n);
}

/* What is taken away from x as f32. */
static Node *as_f32(Context *c, Node *x)
{
    return x->op == OP_CONST ? node_const_f(c, INGOT_F32, (double)x->arg.i)
                             : node_cast(c, x, INGOT_F32);
}

/* The f32 of what has just been quantised, moved by a number or not: without the integer between;
 * or NULL. */
static Node *dequantize(const Decompose *q, Node *cast)
{
    Context *c = q->k->c;
    Node *x = cast->src[0], *moved = NULL;
    if (q->gpu || !q->lane || cast->dtype != INGOT_F32)
        return NULL;
    if ((x->op == OP_ADD || x->op == OP_SUB) && x->dtype == INGOT_I32 && is_number(x->src[1])) {
        moved = x;
        x = x->src[0];
    }
    while (x->op == OP_CAST && dtype_is_int(x->src[0]->dtype) && q->uses[x->id] == 1 &&
           elem_bytes(x->dtype) > elem_bytes(x->src[0]->dtype))
        x = x->src[0];
    const Node *whole = q->fresh[x->id];
    if (x->op != OP_CAST || q->uses[x->id] != 1 || whole->op != OP_QUANTIZE)
        return NULL;
    Node *y = node_make(c, OP_QUANTIZE, INGOT_F32, whole->arg, 2, whole->src, 0, NULL);
    Node *by = moved ? as_f32(c, moved->src[1]) : node_const_f(c, INGOT_F32, 0);
    if (moved && moved->op == OP_SUB && by == whole->src[1])
        return y;
    by = alu(c, moved && moved->op == OP_SUB ? OP_SUB : OP_ADD, y, whole->src[1], by, NULL);
    return alu(c, OP_ADD, y, y, by, NULL);
}

/* The operand of a cast, with the type's least number in the place of NaN: by the comparison that a
 * lower bound is in any case. */
static Node *without_nan(const Decompose *q, Node *cast)
{
    Context *c = q->k->c;
    Node *n = cast->src[0], *max = n->op == OP_MIN ? n->src[0] : n;
    const double lo = (double)dtype_least(cast->dtype);
    Node *least = node_const_f(c, (ingot_dtype)n->dtype, lo);
    bool bounded =
        max->op == OP_MAX && max->src[1]->op == OP_CONST && node_float(max->src[1]) == lo;
    Node *x = q->fresh[(bounded ? max->src[0] : n)->id];
    if (!bounded && lo == 0) /* which a NaN becomes in any case */
        return x;
    Node *test = bounded ? alu(c, OP_LT, x, least, x, NULL) : alu(c, OP_EQ, x, x, x, NULL);
    x = alu(c, OP_WHERE, x, test, x, least);
    return bounded && n != max ? alu(c, OP_MIN, x, x, q->fresh[n->src[1]->id], NULL) : x;
}

/* A cast, whose operand is rebuilt already. */
static Node *decompose_cast(const Decompose *q, Node *n)
{
    Node *x = n->src[0];
    if (!dtype_is_float(x->dtype))
        return dequantize(q, n);
    Node *whole = quantize(q, n);
    if (whole)
        return whole;
    const bool clamped = is_clamped(x, (ingot_dtype)n->dtype), least = n->arg.i == CAST_LEAST;
    if (!clamped && !least)
        return NULL;
    x = least ? without_nan(q, n) : q->fresh[x->id];
    return node_make(q->k->c, OP_CAST, n->dtype, (Arg){.i = clamped ? CAST_WITHIN : 0}, 1, &x, 0,
                     NULL);
}

/* x + k, x - k of a constant whole k, of which nothing else reads what is below: x, and *less
 * becomes k taken away; else n. */
static Node *without_number(const Decompose *q, Node *n, double *less)
{
    Node *k = n->op == OP_ADD || n->op == OP_SUB ? n->src[1] : NULL;
    if (!k || k->op != OP_CONST || (n->dtype != INGOT_F32 && n->dtype != INGOT_I32) ||
        q->uses[n->src[0]->id] != 1)
        return n;
    double v = dtype_is_float(k->dtype) ? node_float(k) : (double)k->arg.i;
    *less += n->op == OP_ADD ? -v : v;
    return n->src[0];
}

/* Bits of an integer without a sign, less a number, as f32; n is that, or NULL is given. */
static Node *digit(const Decompose *q, Node *n)
{
    enum { MOST = 1 << 20 };
    Context *c = q->k->c;
    double less = 0;
    Node *x = without_number(q, n, &less);
    if (q->gpu || n->dtype != INGOT_F32 || x->op != OP_CAST || x->dtype != INGOT_F32)
        return NULL;
    x = without_number(q, x->src[0], &less);
    while (x->op == OP_CAST && dtype_is_int(x->dtype) && dtype_is_int(x->src[0]->dtype) &&
           elem_bytes(x->dtype) >= elem_bytes(x->src[0]->dtype))
        x = x->src[0];
    const bool bits = dtype_info[x->dtype].kind == 'u' && x->op == OP_AND &&
                      x->src[1]->op == OP_CONST && elem_bytes(x->dtype) <= 4;
    const int64_t mask = bits ? x->src[1]->arg.i : 0;
    if (mask < 1 || mask > 0xffff || (mask & (mask + 1)) || less != rint(less) || fabs(less) > MOST)
        return NULL;
    const bool shifted = x->src[0]->op == OP_SHR;
    Node *of = shifted ? x->src[0]->src[0] : x->src[0], *shift = shifted ? x->src[0]->src[1] : NULL;
    if (shift && q->lane && depends_on(shift, q->lane))
        return NULL;
    Node *src[] = {q->fresh[of->id],
                   shift ? q->fresh[shift->id] : node_const_i(c, (ingot_dtype)x->dtype, 0)};
    Arg arg = {.i = digit_arg((int)mask, (int)less)};
    return node_make(c, OP_DIGIT, INGOT_F32, arg, 2, src, 0, NULL);
}

/* A byte of a word at its top, as f32; n is that, or NULL is given. */
static Node *top_byte(const Decompose *q, Node *n)
{
    const Node *x = n->op == OP_CAST && n->dtype == INGOT_F32 ? n->src[0] : NULL;
    if (q->gpu || !x || x->op != OP_AND || x->dtype != INGOT_I32 || x->src[0]->op != OP_SHL ||
        x->src[1]->op != OP_CONST || (uint32_t)x->src[1]->arg.i != 0xff000000u)
        return NULL;
    Node *word = x->src[0]->src[0], *shift = x->src[0]->src[1];
    if (q->lane && depends_on(shift, q->lane))
        return NULL;
    Node *src[] = {q->fresh[word->id], q->fresh[shift->id]};
    return node_make(q->k->c, OP_TOP_BYTE, INGOT_F32, (Arg){0}, 2, src, 0, NULL);
}

/* The number of bits of a shift that is known, as that of a digit is where its loop is written
 * out; -1: it is not. */
static int64_t known_shift(const Node *n)
{
    enum { MOST = 63 };
    int64_t a = 0, b = 1;
    if (n->op == OP_CONST)
        return dtype_is_float(n->dtype) || n->arg.i > MOST ? -1 : n->arg.i;
    if (n->op == OP_CAST || n->op == OP_MUL)
        a = known_shift(n->src[0]);
    if (n->op == OP_MUL)
        b = known_shift(n->src[1]);
    return (n->op == OP_CAST || n->op == OP_MUL) && a >= 0 && b >= 0 && a * b <= MOST ? a * b : -1;
}

/* Bits of an integer without a sign that are moved by a number that is known, n, or NULL is given:
 * those that are taken from one place and put into another are moved once, or not at all. */
static Node *moved_bits(const Decompose *q, const Node *n)
{
    Context *c = q->k->c;
    const ingot_dtype type = (ingot_dtype)n->dtype;
    if ((n->op != OP_SHL && n->op != OP_SHR) || dtype_info[type].kind != 'u' ||
        elem_bytes(type) > 4)
        return NULL;
    const int64_t by = known_shift(n->src[1]), bits = 8 * elem_bytes(type),
                  all = (INT64_C(1) << bits) - 1;
    const Node *some = n->src[0], *from = some->op == OP_AND ? some->src[0] : NULL;
    Node *x = q->fresh[some->id];
    if (by <= 0 || by >= bits)
        return by ? NULL : x;
    const int64_t at = n->op == OP_SHL && from && from->op == OP_SHR && q->uses[some->id] == 1 &&
                               some->src[1]->op == OP_CONST
                           ? known_shift(from->src[1])
                           : -1;
    if (at < 0 || at >= bits)
        return alu(c, (Op)n->op, x, x, node_const_i(c, type, by), NULL);
    const int64_t mask = ((some->src[1]->arg.i & (all >> at)) << by) & all;
    x = q->fresh[from->src[0]->id];
    if (at != by)
        x = alu(c, by > at ? OP_SHL : OP_SHR, x, x,
                node_const_i(c, type, by > at ? by - at : at - by), NULL);
    return alu(c, OP_AND, x, x, node_const_i(c, type, mask), NULL);
}

/* The greater or lesser of a rounded number and of one that rounding leaves as it is (a ReLU, a
 * Clip), n, or NULL is given: it is rounded afterwards, with what is to be stored, to the same
 * bits. (What is rounded to -0 is lesser than 0 before, but is not then.) */
static Node *rounded_last(const Decompose *q, const Node *n)
{
    Context *c = q->k->c;
    const bool narrow = n->dtype == INGOT_F16 || n->dtype == INGOT_BF16;
    if (!q->gpu || !narrow || (n->op != OP_MAX && n->op != OP_MIN) || n->src[1]->op != OP_CONST ||
        q->uses[n->src[0]->id] != 1)
        return NULL;
    const Node *cast = q->fresh[n->src[0]->id];
    const double bound = node_float(n->src[1]);
    if (cast->op != OP_CAST || cast->arg.i || cast->src[0]->dtype != INGOT_F32 ||
        !isfinite(bound) || (bound == 0 && (n->op == OP_MIN || signbit(bound))))
        return NULL;
    Node *x = cast->src[0];
    x = alu(c, (Op)n->op, x, x, node_const_f(c, INGOT_F32, bound), NULL);
    return node_make(c, OP_CAST, (ingot_dtype)n->dtype, (Arg){0}, 1, &x, 0, NULL);
}

/* A condition in memory is a byte, in lanes a mask: n, rebuilt, loads or stores it. */
static Node *byte_of_condition(const Decompose *q, Node *n)
{
    Context *c = q->k->c;
    Node *src[INGOT_MAX_RANK + 3];
    if (q->gpu || !q->lane || n->dtype != INGOT_BOOL || (n->op != OP_LOAD && n->op != OP_STORE) ||
        access_move(c, n, q->lane).kind == MOVE_NONE)
        return n;
    memcpy((void *)src, n->src, n->nsrc * sizeof *src);
    if (n->op == OP_STORE)
        src[2] = node_cast(c, n->src[2], INGOT_U8);
    Node *byte = node_make(c, n->op, INGOT_U8, n->arg, (int)n->nsrc, src, 0, NULL);
    if (n->op == OP_STORE)
        return byte;
    src[0] = byte;
    src[1] = node_const_i(c, INGOT_U8, 0);
    return node_make(c, OP_NE, INGOT_BOOL, (Arg){0}, 2, src, 0, NULL);
}

static Node *rebuilt(const Decompose *q, Arena *a, Node *n)
{
    Node **src = NEWN(a, Node *, n->nsrc + 1);
    bool changed = false;
    for (uint32_t i = 0; i < n->nsrc; i++) {
        src[i] = q->fresh[n->src[i]->id];
        changed |= src[i] != n->src[i];
    }
    if (!changed)
        return n;
    if (n->dtype == INGOT_INDEX) /* coordinates stay simplified */
        return node_with(q->k->c, n, src);
    return node_make(q->k->c, n->op, n->dtype, n->arg, (int)n->nsrc, src, 0, NULL);
}

static void decompose_tile(Arena *a, const Kernel *k, bool gpu, Tile *tile)
{
    int n;
    Node **order = graph_toposort(a, tile->nstore, tile->store, &n);
    Decompose q = {.k = k,
                   .gpu = gpu,
                   .lane = tile->lane,
                   .uses = NEWN(a, int, k->c->nnode),
                   .fresh = NEWN(a, Node *, k->c->nnode)};
    for (int i = 0; i < n; i++)
        for (uint32_t j = 0; j < order[i]->nsrc; j++)
            q.uses[order[i]->src[j]->id]++;
    for (int i = 0; i < n; i++) {
        Node *x = order[i], *made = x->op == OP_CAST ? decompose_cast(&q, x) : NULL;
        made = made ? made : digit(&q, x);
        made = made ? made : top_byte(&q, x);
        made = made ? made : moved_bits(&q, x);
        made = made ? made : rounded_last(&q, x);
        q.fresh[x->id] = made ? made : byte_of_condition(&q, rebuilt(&q, a, x));
    }
    for (int i = 0; i < tile->nstore; i++)
        tile->store[i] = q.fresh[tile->store[i]->id];
}

bool decompose(const Tiles *tiles, bool gpu)
{
    Arena *a = arena_new();
    const uint32_t n = tiles->k->c->nnode;
    for (int i = 0; i < tiles->n; i++)
        decompose_tile(a, tiles->k, gpu, &tiles->tile[i]);
    arena_free(a);
    return tiles->k->c->nnode > n;
}
