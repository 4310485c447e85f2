/* interpret.c - ingot_interpret: the whole model on given inputs, by the reference interpreter.
 *
 * Run-time integers come from the inputs' dims: a dim that is a plain variable sets it, any other
 * is checked once all are set.  States are as after reset: zero, or what they begin as, or empty if
 * they grow. */
#include "interp.h"

#include <string.h>

static bool input_check(Interp *ip, int i, const ingot_value *v)
{
    const NamedNode *input = &ip->c->inputs[i];
    Node *n = input->node;
    if (!v->data)
        return interp_fail(ip, INGOT_USAGE, "input '%s': no data", input->name);
    if (v->rank != n->rank || v->dtype != (ingot_dtype)n->dtype)
        return interp_fail(ip, INGOT_USAGE, "input '%s': given %s of rank %d; it is %s of rank %d",
                           input->name, dtype_info[v->dtype].name, v->rank,
                           dtype_info[n->dtype].name, n->rank);
    return true;
}

/* Dims that are plain variables. */
static bool dims_set(Interp *ip, int i, const ingot_value *v, bool *set)
{
    const NamedNode *input = &ip->c->inputs[i];
    for (int a = 0; a < v->rank; a++) {
        Node *d = input->node->shape[a];
        if (d->op != OP_VAR || set[d->arg.i])
            continue;
        const Var *var = &ip->c->vars[d->arg.i];
        if (v->dims[a] < var->lo || v->dims[a] > var->hi)
            return interp_fail(ip, INGOT_USAGE,
                               "input '%s': dim %d ('%s') is %lld; it must be in %lld..%lld",
                               input->name, a, var->name, (long long)v->dims[a], (long long)var->lo,
                               (long long)var->hi);
        interp_set_var(ip, (int)d->arg.i, v->dims[a]);
        set[d->arg.i] = true;
    }
    return true;
}

static bool dims_agree(Interp *ip, int i, const ingot_value *v)
{
    const NamedNode *input = &ip->c->inputs[i];
    if (!eval_roots(ip, v->rank, input->node->shape))
        return false;
    for (int a = 0; a < v->rank; a++) {
        const int64_t d = dim_value(ip, input->node->shape[a]);
        if (d != v->dims[a])
            return interp_fail(ip, INGOT_USAGE, "input '%s': dim %d is %lld; it must be %lld",
                               input->name, a, (long long)v->dims[a], (long long)d);
    }
    interp_bind(ip, input->node, v->data);
    return true;
}

static void keep_strings(Context *c, int64_t n, const char **s)
{
    for (int64_t i = 0; i < n; i++)
        s[i] = arena_strdup(c->arena, s[i] ? s[i] : "");
}

static bool interpret(Interp *ip, int n_in, const ingot_value *in, int n_out, ingot_value *out)
{
    Context *c = ip->c;
    if (n_in != c->ninput || n_out > c->noutput)
        return interp_fail(ip, INGOT_USAGE,
                           "the model has %d inputs and %d outputs; %d and %d were given",
                           c->ninput, c->noutput, n_in, n_out);
    bool *set = NEWN(c->arena, bool, c->nvar + 1);
    for (int i = 0; i < c->nvar; i++)
        if ((set[i] = c->vars[i].length))
            interp_set_var(ip, i, 0);
    for (int i = 0; i < n_in; i++)
        if (!input_check(ip, i, &in[i]) || !dims_set(ip, i, &in[i], set))
            return false;
    for (int i = 0; i < n_in; i++)
        if (!dims_agree(ip, i, &in[i]))
            return false;
    if (!requires_hold(ip, &c->require))
        return false;
    Node **roots = NEWN(c->arena, Node *, n_out + 1);
    for (int i = 0; i < n_out; i++)
        roots[i] = c->outputs[i].node;
    if (!eval_roots(ip, n_out, roots))
        return false;
    for (int i = 0; i < n_out; i++) {
        const EvalValue *v = value_need(ip, roots[i]);
        const size_t bytes = (size_t)v->n * elem_bytes(v->dtype);
        void *data = ingot_alloc(c, bytes ? bytes : 1);
        memcpy(data, v->data, bytes);
        if (v->dtype == INGOT_STRING) /* the interpreter's text goes with it */
            keep_strings(c, v->n, data);
        out[i] = (ingot_value){.data = data, .rank = v->rank, .dtype = v->dtype};
        memcpy(out[i].dims, v->dims, sizeof v->dims);
    }
    return true;
}

ingot_status interpret_shaken(Context *c, uint64_t seed, int n_in, const ingot_value *in, int n_out,
                              ingot_value *out)
{
    Interp *ip = interp_new(c);
    ip->shake = seed;
    const bool ok = interpret(ip, n_in, in, n_out, out);
    interp_free(ip);
    if (ok)
        return INGOT_OK;
    return ingot_context_status(c) == INGOT_OK ? INGOT_BUG : ingot_context_status(c);
}

ingot_status ingot_interpret(ingot_context *c, int n_in, const ingot_value *in, int n_out,
                             ingot_value *out)
{
    return interpret_shaken(c, 0, n_in, in, n_out, out);
}
