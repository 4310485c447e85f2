/*
 * onnx_form.c - the form that a value has in both branches of an If, or in all iterations of a
 * Loop.
 *
 * A branch may give a sequence of two tensors, the other an empty one or one of a length that the
 * run decides; an optional may be there in one of them only. Their common form has room for the
 * longest sequence and the largest element, and a presence that is known at run time. A form is a
 * Value whose tensors do not matter; a sequence's has rows, its rank is -1 as long as nothing is
 * known of its elements.
 */
#include <string.h>

#include "onnx.h"

static Value *new_form(ingot_context *c, const Value *like)
{
    Value *f = ingot_alloc(c, sizeof *f);
    *f = *like;
    return f;
}

Value *form_of(ingot_context *c, const Value *v)
{
    Value *f = new_form(c, v);
    if (v->kind == VALUE_OPTIONAL && v->n) {
        f->item = ingot_alloc(c, sizeof *f->item);
        f->item[0] = form_of(c, v->item[0]);
    }
    if (v->kind != VALUE_SEQUENCE || v->packed)
        return f;
    for (int i = 0; i < v->n; i++)
        if (v->item[i]->kind != VALUE_TENSOR || ingot_is_poison(v->item[i]->tensor) ||
            ingot_rank(v->item[i]->tensor) != ingot_rank(v->item[0]->tensor))
            return NULL;
    if (v->n)
        return packed_from_list(c, v, ingot_rank(v->item[0]->tensor));
    f->packed = ingot_alloc(c, sizeof *f->packed);
    f->packed->rank = -1;
    return f;
}

static Value *join_sequences(ingot_context *c, const Value *a, const Value *b)
{
    const Packed *p = a->packed, *q = b->packed;
    if (p->rank < 0 || q->rank < 0) {
        Value *f = new_form(c, p->rank < 0 ? b : a);
        f->n = a->n > b->n ? a->n : b->n;
        return f;
    }
    if (p->rank != q->rank || a->item_dtype != b->item_dtype)
        return NULL;
    Value *f = new_form(c, a);
    f->n = a->n > b->n ? a->n : b->n;
    f->packed = ingot_alloc(c, sizeof *f->packed);
    *f->packed = *p;
    for (int i = 0; i < p->rank; i++) {
        f->packed->box[i] = p->box[i] > q->box[i] ? p->box[i] : q->box[i];
        f->packed->equal[i] = p->equal[i] && q->equal[i] && p->box[i] == q->box[i];
    }
    return f;
}

Value *form_join(ingot_context *c, const Value *a, const Value *b)
{
    if (!a || !b)
        return NULL;
    if (a->kind == VALUE_OPTIONAL || b->kind == VALUE_OPTIONAL) {
        const Value *x = a->kind != VALUE_OPTIONAL ? a : a->n ? a->item[0] : NULL;
        const Value *y = b->kind != VALUE_OPTIONAL ? b : b->n ? b->item[0] : NULL;
        Value *f = new_form(c, a->kind == VALUE_OPTIONAL ? a : b);
        f->n = x || y;
        f->item = ingot_alloc(c, sizeof *f->item);
        f->item[0] = x && y ? form_join(c, x, y) : new_form(c, x ? x : y ? y : f);
        return f->n && !f->item[0] ? NULL : f;
    }
    if (a->kind != b->kind || (a->kind != VALUE_SEQUENCE && a->kind != VALUE_TENSOR))
        return NULL;
    return a->kind == VALUE_SEQUENCE ? join_sequences(c, a, b) : new_form(c, a);
}

bool form_equal(const Value *a, const Value *b)
{
    const Packed *p = a->packed, *q = b->packed;
    if (a->kind != b->kind || a->n != b->n)
        return false;
    if (a->kind == VALUE_OPTIONAL)
        return !a->n || form_equal(a->item[0], b->item[0]);
    if (a->kind != VALUE_SEQUENCE)
        return true;
    bool same = p->rank == q->rank && a->item_dtype == b->item_dtype;
    for (int i = 0; same && i < p->rank; i++)
        same = p->box[i] == q->box[i] && p->equal[i] == q->equal[i];
    return same;
}

/* What stands where an optional is absent. */
static Value *absent(ingot_context *c, const Value *form)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    if (form->kind == VALUE_SEQUENCE)
        return form_take(c, value_sequence(c, 0, form->item_dtype), form);
    ingot_tensor *zero =
        ingot_cast(c, ingot_scalar_i(c, INGOT_I32, 0), ingot_dtype_of(form->tensor));
    int rank = ingot_rank(form->tensor);
    for (int a = 0; a < rank; a++)
        dims[a] = ingot_dim_const(c, ingot_dim_hi(ingot_shape(form->tensor, a)));
    return value_tensor(c, rank ? ingot_expand(c, zero, rank, dims) : zero);
}

static Value *take_optional(ingot_context *c, Value *v, const Value *form)
{
    Value *out = new_form(c, form);
    const Value *inner = v->kind != VALUE_OPTIONAL ? v : v->n ? v->item[0] : NULL;
    out->present =
        v->kind == VALUE_OPTIONAL && v->present ? v->present : ingot_dim_const(c, inner != NULL);
    if (!form->n)
        return out;
    out->item = ingot_alloc(c, sizeof *out->item);
    out->item[0] = inner ? form_take(c, v->kind != VALUE_OPTIONAL ? v : v->item[0], form->item[0])
                         : absent(c, form->item[0]);
    return out;
}

Value *form_take(ingot_context *c, Value *v, const Value *form)
{
    if (form->kind == VALUE_OPTIONAL)
        return take_optional(c, v, form);
    if (form->kind != VALUE_SEQUENCE || form->packed->rank < 0)
        return v;
    Value *list = value_sequence(c, v->n, form->item_dtype);
    if (!v->packed)
        list->item = v->item;
    Value *p = v->packed ? v : packed_from_list(c, list, form->packed->rank);
    Value *out = packed_grow(c, p, form->n, form->packed->box, form->packed->equal);
    out->packed->full = form->packed->full;
    return out;
}
