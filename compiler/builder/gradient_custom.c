/* gradient_custom.c - the gradient of a C function of the user's, which is another one.
 *
 *     y = f(x0, x1)      g_x1 = f's function for input 1, of (x0, x1, y, g_y) and f's attributes */
#include "gradient.h"

void ingot_custom_gradient(ingot_context *c, ingot_custom_op *op, int input,
                           ingot_custom_op *gradient)
{
    enum { MOST_INPUTS = 1024 };
    if (input < 0 || input >= MOST_INPUTS) {
        ingot_error(c, INGOT_INVALID, "gradient of a custom operator: there is no input %d", input);
        return;
    }
    if (input >= op->ngradient) {
        CustomOp **more = NEWN(c->arena, CustomOp *, input + 1);
        for (int i = 0; i < op->ngradient; i++)
            more[i] = op->gradient[i];
        op->gradient = more;
        op->ngradient = input + 1;
    }
    op->gradient[input] = gradient;
}

/* The attributes by their names. */
static ingot_attribute *named_attributes(Arena *a, const CustomOp *op, const int64_t *ints,
                                         const double *floats, int *n)
{
    ingot_attribute *attr = NEWN(a, ingot_attribute, op->nint + op->nfloat + 1);
    *n = 0;
    for (int i = 0; i < op->nparam; i++) {
        const CustomParam *p = &op->param[i];
        if (p->kind == CUSTOM_INT)
            attr[(*n)++] = (ingot_attribute){p->name, INGOT_ATTR_INT, ints[p->slot], 0};
        if (p->kind == CUSTOM_FLOAT)
            attr[(*n)++] = (ingot_attribute){p->name, INGOT_ATTR_FLOAT, 0, floats[p->slot]};
    }
    return attr;
}

Node *custom_gradient(Backward *b, Node *n, const CustomUse *use, Node *const *out, Node *const *g,
                      int i)
{
    const CustomOp *op = use->op;
    CustomOp *f = i < op->ngradient ? op->gradient[i] : NULL;
    Node **in = NEWN(b->arena, Node *, op->nin + 2 * op->nout), *gx;
    int nin = 0, nattr;
    if (!f)
        return gradient_no_rule(b, n, op->function);
    for (int k = 0; k < op->nin; k++)
        in[nin++] = n->src[k];
    for (int k = 0; k < op->nout; k++)
        in[nin++] = out[k];
    for (int k = 0; k < op->nout; k++)
        in[nin++] = g[k] ? g[k] : gradient_zeros(b->c, out[k]);
    ingot_attribute *attr = named_attributes(b->arena, op, use->ints, use->floats, &nattr);
    ingot_custom(b->c, f, nin, in, nattr, attr, 1, &gx);
    return gx;
}

Node *gradient_custom(Backward *b, Node *n, Node *g, int i)
{
    return custom_gradient(b, n, n->arg.ptr, &n, &g, i);
}
