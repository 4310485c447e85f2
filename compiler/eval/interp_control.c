/* interp_control.c - loops, branches and library kernels in the interpreter.
 *
 * All three give a tuple, whose elements are copies: what a body computed is dropped with its
 * scope.  Sources (condition, carried values, captures, inputs) have been evaluated before. */
#include "interp.h"

#include <string.h>

static bool truth(Interp *ip, Node *n)
{
    return load_int(INGOT_BOOL, value_need(ip, n)->data) != 0;
}

static EvalValue *copy_of(Interp *ip, int level, const EvalValue *v)
{
    EvalValue *r = value_new(ip, level, v->dtype, v->rank, v->dims);
    memcpy(value_data(r), v->data, (size_t)v->n * elem_bytes(v->dtype));
    return r;
}

static EvalValue *tuple_new(Interp *ip, Node *n, int nelem)
{
    EvalValue *t = value_new(ip, ip->level[n->id], INGOT_BOOL, 0, NULL);
    t->nelem = nelem;
    t->elem = NEWN(ip->scope[t->level].arena, EvalValue *, nelem + 1);
    return t;
}

bool requires_hold(Interp *ip, const Requires *r)
{
    for (int i = 0; i < r->n; i++) {
        const Require *q = r->item[i];
        if (!eval_roots(ip, 3, (Node *[]){q->value, q->least, q->greatest}))
            return false;
        const int64_t value = dim_value(ip, q->value), least = dim_value(ip, q->least),
                      greatest = dim_value(ip, q->greatest);
        if (value >= least && value <= greatest)
            continue;
        const char *node = q->origin ? q->origin->node : "", *op = q->origin ? q->origin->op : "";
        if (least == greatest)
            return interp_fail(ip, INGOT_INVALID,
                               "interpreter: node '%s' (%s): %s is %lld; it has to be %lld", node,
                               op, q->what, (long long)value, (long long)least);
        return interp_fail(ip, INGOT_INVALID,
                           "interpreter: node '%s' (%s): %s is %lld; it has to be in %lld..%lld",
                           node, op, q->what, (long long)value, (long long)least,
                           (long long)greatest);
    }
    return true;
}

/* ---- if -------------------------------------------------------------------------------------- */

bool if_eval(Interp *ip, Node *n)
{
    const If *branch = n->arg.ptr;
    const struct Region *r = truth(ip, n->src[0]) ? branch->then_branch : branch->else_branch;
    if (!requires_hold(ip, &r->require) || !eval_roots(ip, r->nresult, r->result))
        return false;
    EvalValue *tuple = tuple_new(ip, n, r->nresult);
    for (int i = 0; i < r->nresult; i++)
        tuple->elem[i] = copy_of(ip, tuple->level, value_need(ip, r->result[i]));
    value_set(ip, n, tuple);
    return true;
}

/* ---- loop ------------------------------------------------------------------------------------ */

/* Append one iteration's value to a stacked one, which has room for `most`. */
static void stack_push(Interp *ip, EvalValue **stack, int level, const EvalValue *v, int64_t i,
                       int64_t most)
{
    if (!*stack) {
        int64_t dims[INGOT_MAX_RANK];
        dims[0] = most;
        for (int a = 0; a < v->rank; a++)
            dims[a + 1] = v->dims[a];
        *stack = value_new(ip, level, v->dtype, v->rank + 1, dims);
    }
    const size_t bytes = (size_t)v->n * elem_bytes(v->dtype);
    memcpy((char *)value_data(*stack) + (size_t)i * bytes, v->data, bytes);
}

/* A stacked value of no iterations. */
static EvalValue *stack_empty(Interp *ip, int level, Node *result)
{
    int64_t dims[INGOT_MAX_RANK] = {0};
    if (eval_roots(ip, result->rank, result->shape))
        node_dims(ip, result, dims + 1);
    return value_new(ip, level, (ingot_dtype)result->dtype, result->rank + 1, dims);
}

bool loop_eval(Interp *ip, Node *n)
{
    const Loop *loop = n->arg.ptr;
    const struct Region *body = loop->body;
    const int outer = ip->depth, nc = loop->ncarried;
    const int64_t trip = loop->trip ? dim_value(ip, loop->trip) : INT64_MAX;
    bool go = truth(ip, n->src[0]);
    if (outer == MAX_DEPTH)
        return interp_fail(ip, INGOT_UNSUPPORTED, "interpreter: loops are nested more than %d deep",
                           MAX_DEPTH);
    EvalValue *tuple = tuple_new(ip, n, nc + loop->nscan);
    EvalValue **now = tuple->elem, **next = NEWN(ip->scope[outer].arena, EvalValue *, nc + 1);
    for (int k = 0; k < nc; k++) {
        now[k] = copy_of(ip, outer, value_need(ip, n->src[1 + k]));
        next[k] = copy_of(ip, outer, now[k]);
    }
    int64_t i = 0;
    for (; i < trip && go && !ip->failed; i++) {
        const uint8_t cond = go;
        ip->depth = outer + 1;
        interp_bind(ip, body->param[0], &i);
        interp_bind(ip, body->param[1], &cond);
        for (int k = 0; k < nc; k++)
            interp_bind(ip, body->param[2 + k], now[k]->data);
        if (loop->counter)
            var_assign(ip, (int)loop->counter->arg.i, i, outer + 1);
        if (requires_hold(ip, &body->require) && eval_roots(ip, body->nresult, body->result)) {
            go = truth(ip, body->result[0]);
            for (int k = 0; k < nc; k++) {
                const EvalValue *v = value_need(ip, body->result[1 + k]);
                if (v->n != next[k]->n) {
                    interp_fail(ip, INGOT_INVALID,
                                "interpreter: carried value %d of a loop changes its shape", k);
                    break;
                }
                memcpy(value_data(next[k]), v->data, (size_t)v->n * elem_bytes(v->dtype));
            }
            for (int k = 0; k < loop->nscan; k++)
                stack_push(ip, &tuple->elem[nc + k], outer,
                           value_need(ip, body->result[1 + nc + k]), i, trip);
        }
        for (int k = 0; k < nc; k++) {
            EvalValue *v = now[k];
            now[k] = next[k];
            next[k] = v;
        }
        for (int k = 0; k < body->nparam; k++)
            ip->bound[body->param[k]->id] = NULL;
        scope_clear(ip, outer + 1);
        ip->depth = outer;
    }
    for (int k = 0; k < nc; k++)
        value_drop(next[k]);
    if (ip->failed) {
        value_drop(tuple);
        return false;
    }
    for (int k = 0; k < loop->nscan; k++) {
        EvalValue **s = &tuple->elem[nc + k];
        if (!*s)
            *s = stack_empty(ip, outer, body->result[1 + nc + k]);
        if ((*s)->dims[0] > 0)
            (*s)->n = (*s)->n / (*s)->dims[0] * i;
        (*s)->dims[0] = i;
    }
    if (loop->iterations && loop->iterations->op == OP_VAR &&
        ip->c->vars[loop->iterations->arg.i].setter == n)
        var_assign(ip, (int)loop->iterations->arg.i, i, tuple->level);
    value_set(ip, n, tuple);
    return true;
}

/* ---- library kernels ------------------------------------------------------------------------- */

static bool describe(Interp *ip, const char *name, const EvalValue *v, igrt_tensor *t)
{
    if (v->rank > IGRT_MAX_RANK)
        return interp_fail(ip, INGOT_UNSUPPORTED, "interpreter: %s on a tensor of rank %d", name,
                           v->rank);
    *t = (igrt_tensor){.data = value_data((EvalValue *)(uintptr_t)v), .rank = v->rank};
    t->dtype = (igrt_dtype)(v->dtype + 1); /* both lists have one order; igrt_dtype starts at 1 */
    for (int i = 0; i < v->rank; i++)
        t->dims[i] = v->dims[i];
    return true;
}

static bool function_run(Interp *ip, const CustomOp *op, const igrt_tensor *in, int nin,
                         igrt_tensor *out, int nout, const int64_t *ints, const double *floats,
                         void *scratch, size_t scratch_bytes)
{
    const char *why = NULL;
    int code = op->run(op, in, nin, out, nout, ints, floats, scratch, scratch_bytes, &why);
    return code == IGRT_OK ||
           interp_fail(ip, why ? INGOT_TOOL : INGOT_INVALID, "%s: custom operator '%s': %s",
                       op->file, op->function, why ? why : igrt_status_text((igrt_status)code));
}

/* OP_CUSTOM: its elements in a row, whatever the rank. */
bool custom_eval(Interp *ip, Node *n, EvalValue *out)
{
    const CustomUse *use = n->arg.ptr;
    igrt_tensor in[MAX_ALU_SRC], to;
    for (uint32_t k = 0; k <= n->nsrc; k++) {
        EvalValue row = k < n->nsrc ? *value_need(ip, n->src[k]) : *out;
        row.rank = 1;
        row.dims[0] = row.n;
        describe(ip, use->op->name, &row, k < n->nsrc ? &in[k] : &to);
    }
    return function_run(ip, use->op, in, (int)n->nsrc, &to, 1, use->ints, use->floats, NULL, 0);
}

/* In a run of one process, what all of them make of a value is the value. */
bool collective_eval(Interp *ip, Node *n, EvalValue *out)
{
    const Collective x = collective_of(n);
    const size_t size = elem_bytes((ingot_dtype)n->dtype);
    const uint8_t types[2] = {n->dtype, n->dtype};
    size_t after = size, rows = 1, at = 0; /* bytes of what is inside the axis; how many outside */
    for (int i = x.axis + 1; i < n->rank; i++)
        after *= (size_t)out->dims[i];
    for (int i = 0; i < x.axis; i++)
        rows *= (size_t)out->dims[i];
    const size_t row = n->rank ? (size_t)out->dims[x.axis] * after : size;
    for (uint32_t k = 0; k < n->nsrc; k++) {
        const EvalValue *v = value_need(ip, n->src[k]);
        const size_t from = n->rank ? (size_t)v->dims[x.axis] * after : size;
        const char *src = v->data;
        char *dst = value_data(out);
        if (x.kind == REDUCE_SCATTER)
            src += (size_t)x.receiver * row;
        const size_t bytes = x.kind == ALL_GATHER ? from : row;
        for (size_t r = 0; r < rows; r++) {
            char *to = dst + r * row + at;
            if (k && x.kind != ALL_GATHER)
                alu_lanes(monoid_op((ingot_reduce_op)x.monoid), 0, (ingot_dtype)n->dtype, types,
                          bytes / size, to, (const void *const[]){to, src + r * from});
            else if (bytes)
                memcpy(to, src + r * from, bytes);
        }
        at += x.kind == ALL_GATHER ? from : 0;
    }
    return true;
}

static bool call_run(Interp *ip, Node *n, const Call *call, EvalValue *const *out, int64_t *counts)
{
    Arena *a = ip->scope[ip->depth].arena;
    const LibFn fn = call->custom ? NULL : lib_find(call->name);
    if (!fn && !call->custom)
        return interp_fail(ip, INGOT_UNSUPPORTED, "interpreter: no library kernel '%s'",
                           call->name);
    igrt_tensor *in_t = NEWN(a, igrt_tensor, call->n_in + 1),
                *out_t = NEWN(a, igrt_tensor, call->n_out + 1);
    for (int k = 0; k < call->n_in; k++)
        if (!describe(ip, call->name, value_need(ip, n->src[k]), &in_t[k]))
            return false;
    for (int k = 0; k < call->n_out; k++)
        if (!describe(ip, call->name, out[k], &out_t[k]))
            return false;
    void *scratch = call->scratch_bytes ? arena_alloc(a, call->scratch_bytes) : NULL;
    if (call->custom)
        return function_run(ip, call->custom, in_t, call->n_in, out_t, call->n_out, call->ints,
                            call->floats, scratch, call->scratch_bytes);
    const igrt_status status = fn(in_t, call->n_in, out_t, call->n_out, call->ints, call->floats,
                                  scratch, call->scratch_bytes, counts);
    if (status != IGRT_OK)
        return interp_fail(ip, INGOT_INVALID, "interpreter: library kernel '%s': %s", call->name,
                           igrt_status_text(status));
    return true;
}

bool call_eval(Interp *ip, Node *n)
{
    const Call *call = n->arg.ptr;
    EvalValue *tuple = tuple_new(ip, n, call->n_out);
    const int level = tuple->level;
    int64_t *counts = NEWN(ip->scope[level].arena, int64_t, call->n_count + 1);
    for (int k = 0; k < call->n_count; k++) /* buffers have room for the greatest counts */
        var_assign(ip, (int)call->counts[k]->arg.i, ip->c->vars[call->counts[k]->arg.i].hi, level);
    for (int k = 0; k < call->n_out; k++) {
        int64_t dims[INGOT_MAX_RANK];
        for (int i = 0; i < call->out[k].rank; i++)
            dims[i] = dim_value(ip, call->out[k].dims[i]);
        tuple->elem[k] = value_new(ip, level, call->out[k].dtype, call->out[k].rank, dims);
    }
    if (!call_run(ip, n, call, tuple->elem, counts)) {
        value_drop(tuple);
        return false;
    }
    for (int k = 0; k < call->n_count; k++) {
        const Var *v = &ip->c->vars[call->counts[k]->arg.i];
        if (counts[k] < v->lo || counts[k] > v->hi)
            return interp_fail(ip, INGOT_INVALID, "interpreter: %s = %lld is not in %lld..%lld",
                               v->name, (long long)counts[k], (long long)v->lo, (long long)v->hi);
        var_assign(ip, (int)call->counts[k]->arg.i, counts[k], level);
    }
    for (int k = 0; k < call->n_out; k++) {
        EvalValue *v = tuple->elem[k];
        v->n = 1;
        for (int i = 0; i < v->rank; i++) {
            v->dims[i] = dim_value(ip, call->out[k].dims[i]);
            v->n *= v->dims[i];
        }
    }
    value_set(ip, n, tuple);
    return true;
}
