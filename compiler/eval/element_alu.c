/* element_alu.c - elementwise operations of elements on demand: of floats in double, with what
 * rounding may do to them. */
#include "element.h"

#include <math.h>
#include <string.h>

#include "igrt.h"

static bool wide(const Node *n)
{
    return dtype_is_float(n->dtype);
}

/* An operand as double. */
static const double *numbers(Elements *q, const Node *n, int count, const Lanes *l)
{
    if (wide(n))
        return l->v;
    double *d = NEWN(element_arena(q), double, count + 1);
    alu_cast(INGOT_F64, (ingot_dtype)n->dtype, 0, (size_t)count, d, l->v);
    return d;
}

static bool any_error(const Node *n, const Lanes *const *src)
{
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (src[i]->error)
            return true;
    return false;
}

static void errors_of(Elements *q, Node *n, int count, const Lanes *const *src, Lanes *out)
{
    const double *a[3] = {NULL, NULL, NULL}, *e[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < n->nsrc && i < 3; i++) {
        a[i] = numbers(q, n->src[i], count, src[i]);
        e[i] = src[i]->error;
    }
    out->error = NEWN(element_arena(q), double, count + 1);
    element_error(n, count, a, e, numbers(q, n, count, out), out->error);
}

static void cast(Elements *q, Node *n, int count, const Lanes *in, Lanes *out)
{
    const Node *x = n->src[0];
    const ingot_dtype from = wide(x) ? INGOT_F64 : (ingot_dtype)x->dtype,
                      to = (ingot_dtype)n->dtype;
    if (!wide(n)) {
        alu_cast(to, from, n->arg.i, (size_t)count, out->v, in->v);
        return;
    }
    char *stored = arena_alloc(element_arena(q), (size_t)(count + 1) * elem_bytes(to));
    alu_cast(to, from, n->arg.i, (size_t)count, stored, in->v);
    alu_cast(INGOT_F64, to, 0, (size_t)count, out->v, stored);
}

/* Bits are those of the types as they are stored. */
static void bitcast(Elements *q, Node *n, int count, const Lanes *in, Lanes *out)
{
    const Node *x = n->src[0];
    const ingot_dtype from = (ingot_dtype)x->dtype, to = (ingot_dtype)n->dtype;
    const void *bits = in->v;
    if (wide(x)) {
        char *stored = arena_alloc(element_arena(q), (size_t)(count + 1) * elem_bytes(from));
        alu_cast(from, INGOT_F64, 0, (size_t)count, stored, in->v);
        bits = stored;
    }
    if (wide(n))
        alu_cast(INGOT_F64, to, 0, (size_t)count, out->v, bits);
    else
        memcpy(out->v, bits, (size_t)count * elem_bytes(to));
}

/* The user's function, on what is as it is stored. */
static bool custom(Elements *q, Node *n, int count, const Lanes *const *src, Lanes *out)
{
    const CustomUse *use = n->arg.ptr;
    Arena *a = element_arena(q);
    igrt_tensor in[MAX_ALU_SRC], y = {.rank = 1, .dims = {count}};
    const char *why = NULL;
    for (uint32_t i = 0; i < n->nsrc; i++) {
        const ingot_dtype d = (ingot_dtype)n->src[i]->dtype;
        char *stored = arena_alloc(a, (size_t)(count + 1) * elem_bytes(d));
        alu_cast(d, wide(n->src[i]) ? INGOT_F64 : d, 0, (size_t)count, stored, src[i]->v);
        in[i] = (igrt_tensor){.data = stored, .rank = 1, .dims = {count}};
        in[i].dtype = (igrt_dtype)(d + 1);
    }
    y.data = arena_alloc(a, (size_t)(count + 1) * elem_bytes((ingot_dtype)n->dtype));
    y.dtype = (igrt_dtype)(n->dtype + 1);
    if (!use->op->run || use->op->run(use->op, in, (int)n->nsrc, &y, 1, use->ints, use->floats,
                                      NULL, 0, &why) != IGRT_OK)
        return false;
    alu_cast(wide(n) ? INGOT_F64 : (ingot_dtype)n->dtype, (ingot_dtype)n->dtype, 0, (size_t)count,
             out->v, y.data);
    return true;
}

const Lanes *element_alu(Elements *q, Node *n, int count, const Lanes *const *src)
{
    Lanes *out = NEW(element_arena(q), Lanes);
    out->v = arena_alloc(element_arena(q), (size_t)(count + 1) * element_bytes_of(n));
    bool rounds = wide(n) && n->op != OP_WHERE && n->op != OP_CAST && n->op != OP_BITCAST;
    if (n->op == OP_CAST) {
        cast(q, n, count, src[0], out);
    } else if (n->op == OP_BITCAST) {
        bitcast(q, n, count, src[0], out);
    } else if (n->op == OP_CUSTOM) {
        if (!custom(q, n, count, src, out)) {
            q->unknown = true;
            return NULL;
        }
    } else {
        uint8_t types[3] = {0};
        const void *in[3] = {NULL, NULL, NULL};
        for (uint32_t i = 0; i < n->nsrc && i < 3; i++) {
            types[i] = wide(n->src[i]) ? INGOT_F64 : n->src[i]->dtype;
            in[i] = src[i]->v;
        }
        alu_lanes((Op)n->op, n->arg.i, wide(n) ? INGOT_F64 : (ingot_dtype)n->dtype, types,
                  (size_t)count, out->v, in);
    }
    if (rounds || any_error(n, src))
        errors_of(q, n, count, src, out);
    return out;
}
