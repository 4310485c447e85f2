/* gradient_control.c - the adjoints of branches and of library kernels.
 *
 * The gradient of an IF is an IF with the same condition: each branch gives the gradients of all
 * that either of them captures, zeros where it does not use it, and computes what it needs of
 * its forward values itself.
 *
 * A CALL says how its gradient is computed (ingot_call_desc.gradient), or has none, which is an
 * error. */
#include "gradient.h"

/* ---- branches -------------------------------------------------------------------------------- */

/* All that lies outside of a branch's gradient: what the IF is made of, and the gradients of its
 * results. */
static bool *outside_branch(Backward *b, Node *t, Node *const *g, int n)
{
    int nroot = 0;
    Node **root = NEWN(b->arena, Node *, t->nsrc + (uint32_t)n + 1);
    for (uint32_t i = 0; i < t->nsrc; i++)
        root[nroot++] = t->src[i];
    for (int i = 0; i < n; i++)
        if (g[i])
            root[nroot++] = g[i];
    return region_outside(b->arena, b->c, nroot, root);
}

static ingot_region *branch_gradient(Backward *b, Node *t, const struct Region *branch,
                                     const Targets *of)
{
    Context *c = b->c;
    Node *const *g = b->tuple[t->id], **root = NEWN(b->arena, Node *, branch->nresult + 1),
                **gr = NEWN(b->arena, Node *, branch->nresult + 1),
                **out = NEWN(b->arena, Node *, of->n + 1);
    int nroot = 0;
    ingot_region *r = ingot_region_begin(c);
    for (int i = 0; i < branch->nresult; i++)
        if (g[i]) {
            root[nroot] = branch->result[i];
            gr[nroot++] = g[i];
        }
    b->failed |= !gradient_inside(b, nroot, root, gr, of, out);
    for (int i = 0; i < of->nfloat; i++)
        out[i] = out[i] ? out[i] : gradient_zeros(c, of->node[i]);
    ingot_region_end(c, r, of->nfloat, out);
    if (!b->failed)
        region_captures(c, r, outside_branch(b, t, g, branch->nresult));
    return r;
}

static void gradient_if(Backward *b, Node *t)
{
    const If *f = t->arg.ptr;
    Targets of = targets_new(b, (int)t->nsrc);
    for (uint32_t i = 1; i < t->nsrc; i++)
        targets_add(&of, t->src[i], b->path[t->src[i]->id]);
    targets_sort(&of);
    if (!of.nfloat)
        return;
    Node **out = NEWN(b->arena, Node *, of.nfloat);
    ingot_region *then_branch = branch_gradient(b, t, f->then_branch, &of);
    ingot_region *else_branch = branch_gradient(b, t, f->else_branch, &of);
    if (b->failed)
        return;
    ingot_if(b->c, t->src[0], then_branch, else_branch, of.nfloat, out);
    for (int i = 0; i < of.nfloat; i++)
        gradient_give(b, of.node[i], out[i]);
}

/* ---- library kernels ------------------------------------------------------------------------- */

static bool fits_operand(Backward *b, Node *t, Node *x, Node *g, int i)
{
    Context *c = b->c;
    if (poisoned(g)) {
        b->failed = true;
        return false;
    }
    if (g->dtype == x->dtype && g->rank == x->rank && shape_same(c, x->rank, g->shape, x->shape))
        return true;
    gradient_error(b, t,
                   arena_printf(c->arena, "that of operand %d of '%s' is %s %s; it must be %s %s",
                                i, ((const Call *)t->arg.ptr)->name, dtype_info[g->dtype].name,
                                shape_text(c, g->rank, g->shape), dtype_info[x->dtype].name,
                                shape_text(c, x->rank, x->shape)));
    return false;
}

/* in[]: the gradients of the operands */
static void call_gradient(Backward *b, Node *t, Node *const *out, Node **in)
{
    const Call *call = t->arg.ptr;
    if (call->custom) {
        CustomUse use = {call->custom, call->ints, call->floats};
        for (int i = 0; i < call->custom->nin; i++)
            if (has_gradient(b, t->src[i]))
                in[i] = custom_gradient(b, t, &use, out, b->tuple[t->id], i);
        return;
    }
    if (!call->gradient) {
        gradient_no_rule(b, t, call->name);
        return;
    }
    ingot_call_values v = {.n_in = call->n_in, .n_out = call->n_out};
    v.in = t->src;
    v.out = out;
    v.gradient = b->tuple[t->id];
    v.ints = call->ints;
    v.floats = call->floats;
    v.user = call->gradient_user;
    call->gradient(b->c, &v, in);
}

static void gradient_call(Backward *b, Node *t)
{
    const Call *call = t->arg.ptr;
    Node **in = NEWN(b->arena, Node *, call->n_in + 1), **out = NEWN(b->arena, Node *, call->n_out);
    for (int i = 0; i < call->n_out; i++)
        out[i] = tuple_result(b->c, t, i);
    call_gradient(b, t, out, in);
    for (int i = 0; i < call->n_in; i++)
        if (in[i] && has_gradient(b, t->src[i]) && fits_operand(b, t, t->src[i], in[i], i))
            gradient_give(b, t->src[i], in[i]);
}

void gradient_control(Backward *b, Node *t)
{
    if (t->op == OP_IF)
        gradient_if(b, t);
    else
        gradient_call(b, t);
}
