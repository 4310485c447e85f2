/* custom_op.c - uses of custom operators, one record for equal ones. */
#include "ir.h"
#include <string.h>

const CustomParam *custom_param(const CustomOp *op, CustomKind kind, int slot)
{
    for (int i = 0; i < op->nparam; i++)
        if (op->param[i].kind == kind && op->param[i].slot == slot)
            return &op->param[i];
    return NULL;
}

const CustomUse *custom_use(Context *c, const CustomOp *op, const int64_t *ints,
                            const double *floats)
{
    size_t int_bytes = (size_t)op->nint * sizeof *ints,
           float_bytes = (size_t)op->nfloat * sizeof *floats;
    for (int i = 0; i < c->ncustom_use; i++) {
        const CustomUse *u = c->custom_uses[i];
        if (u->op == op && (!int_bytes || !memcmp(u->ints, ints, int_bytes)) &&
            (!float_bytes || !memcmp(u->floats, floats, float_bytes)))
            return u;
    }
    int64_t *own_ints = arena_alloc(c->arena, int_bytes + 1);
    double *own_floats = arena_alloc(c->arena, float_bytes + 1);
    if (int_bytes)
        memcpy(own_ints, ints, int_bytes);
    if (float_bytes)
        memcpy(own_floats, floats, float_bytes);
    CustomUse *u = NEW(c->arena, CustomUse);
    *u = (CustomUse){op, own_ints, own_floats};
    vec_push(c->arena, c->custom_uses, c->ncustom_use, u);
    return u;
}
