/* onnx_control.c - values as lists of tensors, as regions take and give them. */
#include "onnx_control.h"

int leaves_of(ingot_context *c, const Value *v, ingot_tensor **list)
{
    int count = 0;
    if (v->kind == VALUE_TENSOR) {
        if (list)
            list[0] = v->tensor;
        return 1;
    }
    if (v->packed) {
        const Packed *p = v->packed;
        if (list) {
            list[0] = p->rows;
            list[1] = ingot_from_dim(c, p->length);
            list[2] = p->sizes;
        }
        return p->sizes ? 3 : 2;
    }
    if (v->present) {
        if (list)
            list[0] = ingot_from_dim(c, v->present);
        count = 1;
    }
    for (int i = 0; (v->kind == VALUE_SEQUENCE || v->kind == VALUE_OPTIONAL) && i < v->n; i++)
        count += leaves_of(c, v->item[i], list ? list + count : NULL);
    return count;
}

Value *value_from(Lowering *n, const Value *v, ingot_tensor ***leaf)
{
    if (v->kind == VALUE_TENSOR)
        return value_tensor(n->c, *(*leaf)++);
    Value *copy = ingot_alloc(n->c, sizeof *copy);
    *copy = *v;
    if (v->packed) {
        Packed *p = copy->packed = ingot_alloc(n->c, sizeof *p);
        *p = *v->packed;
        p->rows = *(*leaf)++;
        p->length = ingot_read_dim(n->c, *(*leaf)++, "length", 0, v->n);
        p->sizes = p->sizes ? *(*leaf)++ : NULL;
        return copy;
    }
    if (v->kind != VALUE_SEQUENCE && v->kind != VALUE_OPTIONAL)
        return copy;
    if (v->present)
        copy->present = ingot_read_dim(n->c, *(*leaf)++, "present", 0, 1);
    copy->item = ingot_alloc(n->c, (size_t)(v->n + 1) * sizeof *copy->item);
    for (int i = 0; i < v->n; i++)
        copy->item[i] = value_from(n, v->item[i], leaf);
    return copy;
}

bool same_structure(const Value *a, const Value *b)
{
    if (a->kind != b->kind || a->n != b->n || !a->packed != !b->packed ||
        !a->present != !b->present)
        return false;
    if (a->packed)
        return form_equal(a, b);
    for (int i = 0; i < a->n; i++)
        if (!same_structure(a->item[i], b->item[i]))
            return false;
    return true;
}

int all_leaves(ingot_context *c, int count, Value *const *v, ingot_tensor **list)
{
    int total = 0;
    for (int i = 0; i < count; i++)
        total += leaves_of(c, v[i], list ? list + total : NULL);
    return total;
}

bool control_same_type(ingot_tensor *a, ingot_tensor *b)
{
    bool same = ingot_dtype_of(a) == ingot_dtype_of(b) && ingot_rank(a) == ingot_rank(b);
    for (int i = 0; same && i < ingot_rank(a); i++)
        same = ingot_dim_equal(ingot_shape(a, i), ingot_shape(b, i));
    return same;
}

bool control_poisoned(int count, ingot_tensor *const *x)
{
    for (int i = 0; i < count; i++)
        if (ingot_is_poison(x[i]))
            return true;
    return false;
}

ingot_tensor *control_give(Lowering *n, int count, Value **v)
{
    for (int i = 0; i < count && i < n->n_out; i++)
        n->out_value[i] = v[i];
    return n->failed ? ingot_poison(n->c) : NULL;
}

ingot_tensor *control_fail(Lowering *n)
{
    n->failed = true;
    return ingot_poison(n->c);
}

Value *one_element(Value *a, Value *b)
{
    Value *v[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        if (v[i]->kind != VALUE_TENSOR)
            return NULL;
        for (int k = 0; k < ingot_rank(v[i]->tensor); k++)
            if (!dim_is(ingot_shape(v[i]->tensor, k), 1))
                return NULL;
    }
    int ranks[2] = {ingot_rank(a->tensor), ingot_rank(b->tensor)};
    return ranks[0] == ranks[1] ? NULL : v[ranks[1] > ranks[0]];
}
