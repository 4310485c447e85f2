/*
 * tflite_control.c - branches, loops, and variables that live from run to run.
 *
 *     IF     cond, x..   ->  graph `then` or `else` of x..
 *     WHILE  x..         ->  x.. = body(x..) as long as cond(x..)
 *
 * A variable is a resource: VAR_HANDLE gives its number, as a constant, READ_VARIABLE its value as
 * it is by then, ASSIGN_VARIABLE another one. It is a state of the graph that comes out; what the
 * graph of CALL_ONCE assigns is what it begins as, else zeros.
 */
#include <stdio.h>
#include <string.h>

#include "tflite_model.h"

enum { MOST_DEEP = 16, MOST_CALLS = 10000 }; /* graphs in graphs; calls of all of them */

bool tflite_calls(const ingot_tflite_op *op, size_t i, int64_t *graph)
{
    static const struct {
        int builtin;
        size_t n;
        unsigned first; /* field */
    } callers[] = {
        {TFL_IF, 2, 0}, {TFL_WHILE, 2, 0}, {TFL_CALL_ONCE, 1, 0}, {TFL_STABLEHLO_COMPOSITE, 1, 1}};
    if (op->builtin == TFL_STABLEHLO_CASE) {
        const ingot_tflite_list l = ingot_tflite_elements(&op->options, 0, 4);
        *graph = i < l.n ? ingot_tflite_i32(&l, i) : -1;
        return i < l.n;
    }
    for (int k = 0; k < TFL_COUNT(callers); k++)
        if (callers[k].builtin == op->builtin && i < callers[k].n) {
            *graph = ingot_tflite_int(&op->options, callers[k].first + (unsigned)i, 4, -1);
            return true;
        }
    return false;
}

void *tfl_more(TfliteModel *m, const void *list, int n, size_t size)
{
    void *more = ingot_alloc(m->c, ((size_t)n + 1) * size);
    return n ? memcpy(more, list, (size_t)n * size) : more;
}

/* Results of a graph that is called; false after a fault. */
static bool called(TfliteNode *n, int64_t graph, int n_in, ingot_tensor *const *in, int n_out,
                   ingot_tensor **out)
{
    TfliteModel *m = n->s->m;
    const ingot_tflite_graph *g = graph < 0 ? NULL : ingot_tflite_graph_get(m->file, (size_t)graph);
    if (!g || (int)g->in.n != n_in || (n_out >= 0 && (int)g->out.n != n_out)) {
        tfl_fault(n, "it calls graph %lld, which is not there, or takes or gives others",
                  (long long)graph);
        return false;
    }
    if (m->depth >= MOST_DEEP || ++m->n_calls > MOST_CALLS) {
        tfl_fault(n, "its graphs call each other more than %d deep, or more than %d times",
                  MOST_DEEP, MOST_CALLS);
        return false;
    }
    m->depth++;
    const bool good = tflite_build_graph(m, (size_t)graph, in, out);
    m->depth--;
    tflite_origin(n);
    return good;
}

static ingot_tensor *condition(TfliteNode *n, ingot_tensor *c)
{
    while (!ingot_is_poison(c) && ingot_rank(c) > 0)
        c = ingot_squeeze(n->c, c, 0);
    return c;
}

static ingot_tensor **tensors(TfliteNode *n, int count)
{
    return ingot_alloc(n->c, ((size_t)count + 1) * sizeof(ingot_tensor *));
}

/* ---- variables that branches and loops assign --------------------------------------------------
 */

static bool made(TfliteNode *n, TfliteVariable *v, ingot_dtype dtype, int rank,
                 const int64_t *dims);
static int number_of(TfliteModel *m, const ingot_tflite_op *op);

/* Their numbers. A branch gives them beside its results; a loop carries them. */
typedef struct {
    int n;
    int *at;
    int visits; /* of graphs, to find them */
} TfliteAssigned;

static void add_assigned(TfliteNode *n, TfliteAssigned *a, int number,
                         const ingot_tflite_tensor *value)
{
    TfliteModel *m = n->s->m;
    int64_t dims[INGOT_MAX_RANK];
    ingot_dtype dtype;
    for (int i = 0; i < a->n; i++)
        if (a->at[i] == number)
            return;
    if (!tflite_dtype(value->type, &dtype) || value->shape.n > INGOT_MAX_RANK)
        return;
    for (size_t i = 0; i < value->shape.n; i++)
        dims[i] = ingot_tflite_i32(&value->shape, i);
    made(n, &m->variables[number], dtype, (int)value->shape.n, dims);
    a->at = tfl_more(m, a->at, a->n, sizeof *a->at);
    a->at[a->n++] = number;
}

/* Those of a graph and of the graphs that it calls. given: the variable that each of its inputs is,
 * or -1. */
static void find_assigned(TfliteNode *n, int64_t graph, const int *given, size_t n_given,
                          TfliteAssigned *a, int depth)
{
    TfliteModel *m = n->s->m;
    int64_t inner;
    const ingot_tflite_graph *g = graph < 0 ? NULL : ingot_tflite_graph_get(m->file, (size_t)graph);
    if (!g || g->in.n != n_given || depth > MOST_DEEP || ++a->visits > MOST_CALLS)
        return;
    int *is = ingot_alloc(m->c, (g->n_tensors + 1) * sizeof *is);
    for (size_t i = 0; i < g->n_tensors; i++)
        is[i] = -1;
    for (size_t i = 0; i < n_given; i++)
        is[ingot_tflite_i32(&g->in, i)] = given[i];
    for (size_t i = 0; i < g->n_ops; i++) {
        const ingot_tflite_op *op = &g->ops[i];
        int *of = ingot_alloc(m->c, (op->in.n + 1) * sizeof *of);
        for (size_t k = 0; k < op->in.n; k++) {
            const int32_t at = ingot_tflite_i32(&op->in, k);
            of[k] = at < 0 ? -1 : is[at];
        }
        if (op->builtin == TFL_VAR_HANDLE && op->out.n && ingot_tflite_i32(&op->out, 0) >= 0)
            is[ingot_tflite_i32(&op->out, 0)] = number_of(m, op);
        if (op->builtin == TFL_ASSIGN_VARIABLE && op->in.n == 2 && of[0] >= 0 &&
            ingot_tflite_i32(&op->in, 1) >= 0)
            add_assigned(n, a, of[0], &g->tensors[ingot_tflite_i32(&op->in, 1)]);
        const size_t first = op->builtin == TFL_IF || op->builtin == TFL_STABLEHLO_CASE;
        for (size_t k = 0; op->in.n >= first && tflite_calls(op, k, &inner); k++)
            find_assigned(n, inner, of + first, op->in.n - first, a, depth + 1);
    }
}

/* Those of the graphs that an operator calls with its inputs from number `first` on. */
static TfliteAssigned assigned_by(TfliteNode *n, int first)
{
    TfliteAssigned a = {0};
    int64_t graph, number;
    int got;
    int *given = ingot_alloc(n->c, ((size_t)n->n_in + 1) * sizeof *given);
    for (int i = 0; i < n->n_in; i++)
        given[i] = n->ti[i] && n->ti[i]->type == INGOT_TFLITE_RESOURCE &&
                           ingot_const_ints(n->c, n->in[i], &number, 1, &got) && got == 1
                       ? (int)number
                       : -1;
    for (size_t k = 0; !n->s->m->once && tflite_calls(n->op, k, &graph); k++)
        find_assigned(n, graph, given + first, (size_t)(n->n_in - first), &a, 0);
    return a;
}

/* The values of these variables now; what they are from now on. */
static void read_assigned(TfliteNode *n, const TfliteAssigned *a, ingot_tensor **now)
{
    for (int i = 0; i < a->n; i++)
        now[i] = n->s->m->variables[a->at[i]].now;
}

static void write_assigned(TfliteNode *n, const TfliteAssigned *a, ingot_tensor *const *now)
{
    for (int i = 0; i < a->n; i++)
        n->s->m->variables[a->at[i]].now = now[i];
}

/* ---- branches ----------------------------------------------------------------------------------
 */

/* Results of branch i, and behind them the variables that it may assign, which are as before
 * then. */
static bool one_branch(TfliteNode *n, size_t i, const TfliteAssigned *a, ingot_tensor **out)
{
    int64_t graph;
    ingot_tensor **before = tensors(n, a->n);
    tflite_calls(n->op, i, &graph);
    read_assigned(n, a, before);
    const bool good = called(n, graph, n->n_in - 1, n->in + 1, n->n_out, out);
    read_assigned(n, a, out + n->n_out);
    write_assigned(n, a, before);
    return good;
}

/* Branches from number i on, of which one is taken; the last is taken for all other numbers. */
static bool branch_from(TfliteNode *n, ingot_tensor *which, size_t i, const TfliteAssigned *a,
                        ingot_tensor **out)
{
    int64_t next;
    ingot_region *branch[2];
    const int all = n->n_out + a->n;
    if (!tflite_calls(n->op, i + 1, &next))
        return one_branch(n, i, a, out);
    ingot_tensor **of = tensors(n, all), *here = which;
    if (!ingot_is_poison(which) && ingot_dtype_of(which) != INGOT_BOOL)
        here = ingot_eq(n->c, which, ingot_like(n->c, which, (double)i));
    for (int k = 0; k < 2; k++) {
        branch[k] = ingot_region_begin(n->c);
        const bool good = k ? branch_from(n, which, i + 1, a, of) : one_branch(n, i, a, of);
        for (int o = 0; o < all && !good; o++)
            of[o] = ingot_poison(n->c);
        ingot_region_end(n->c, branch[k], all, of);
        if (!good)
            return false;
    }
    ingot_if(n->c, here, branch[0], branch[1], all, out);
    return true;
}

/* Of IF the first is taken where the condition is true, of STABLEHLO_CASE where the number is 0. */
static ingot_tensor *branches(TfliteNode *n)
{
    const TfliteAssigned a = assigned_by(n, 1);
    ingot_tensor **out = tensors(n, n->n_out + a.n);
    if (!branch_from(n, condition(n, n->in[0]), 0, &a, out))
        return ingot_poison(n->c);
    write_assigned(n, &a, out + n->n_out);
    for (int i = 0; i < n->n_out; i++)
        n->out[i] = out[i];
    return n->n_out ? out[0] : ingot_poison(n->c);
}

ingot_tensor *tflite_if(TfliteNode *n)
{
    return branches(n);
}

ingot_tensor *tflite_case(TfliteNode *n)
{
    enum { MOST_BRANCHES = 64 };
    int64_t graph;
    if (!tflite_calls(n->op, 0, &graph) || tflite_calls(n->op, MOST_BRANCHES, &graph))
        return tfl_unsupported(n, "it has no branches, or more than %d", MOST_BRANCHES);
    return branches(n);
}

/* An operator that a graph stands for. */
ingot_tensor *tflite_composite(TfliteNode *n)
{
    ingot_tensor **out = tensors(n, n->n_out);
    if (!called(n, tfl_int(n, 1, 4, -1), n->n_in, n->in, n->n_out, out) || !n->n_out)
        return ingot_poison(n->c);
    for (int i = 0; i < n->n_out; i++)
        n->out[i] = out[i];
    return out[0];
}

/* ---- loops -------------------------------------------------------------------------------------
 */

/* Handles of variables are the same in all turns, and are not carried. */
static bool is_handle(TfliteNode *n, int i)
{
    return n->ti[i] && n->ti[i]->type == INGOT_TFLITE_RESOURCE;
}

/* carried: inputs, then variables. */
ingot_tensor *tflite_while(TfliteNode *n)
{
    const int count = n->n_in;
    const int64_t cond = tfl_int(n, 0, 4, -1), body = tfl_int(n, 1, 4, -1);
    if (n->n_out != count)
        return tfl_fault(n, "it has %d inputs and %d outputs", count, n->n_out);
    const TfliteAssigned a = assigned_by(n, 0);
    ingot_tensor *go, **x = tensors(n, count), **y = tensors(n, count),
                      **carried = tensors(n, count + a.n), **next = tensors(n, count + a.n + 1),
                      **before = tensors(n, a.n);
    int n_carried = 0, k = 0;
    if (!called(n, cond, count, n->in, 1, &go))
        return ingot_poison(n->c);
    for (int i = 0; i < count; i++)
        if (!is_handle(n, i))
            carried[n_carried++] = n->in[i];
    read_assigned(n, &a, before);
    for (int i = 0; i < a.n; i++)
        carried[n_carried++] = before[i];
    ingot_region *r = ingot_region_begin(n->c);
    ingot_region_param(n->c, r, INGOT_I64, 0, NULL);
    ingot_region_param(n->c, r, INGOT_BOOL, 0, NULL);
    for (int i = 0; i < count; i++)
        x[i] = is_handle(n, i) ? n->in[i] : ingot_region_param_like(n->c, r, n->in[i]);
    for (int i = 0; i < a.n; i++)
        next[i] = ingot_region_param_like(n->c, r, before[i]);
    write_assigned(n, &a, next);
    const bool good = called(n, body, count, x, count, y) && called(n, cond, count, y, 1, &next[0]);
    for (int i = 0; i < count && good; i++)
        if (!is_handle(n, i))
            next[++k] = y[i];
    read_assigned(n, &a, next + 1 + k);
    for (int i = 0; i <= n_carried && !good; i++)
        next[i] = ingot_poison(n->c);
    next[0] = condition(n, next[0]);
    ingot_region_end(n->c, r, n_carried + 1, next);
    write_assigned(n, &a, before);
    if (!good)
        return ingot_poison(n->c);
    ingot_tensor **out = tensors(n, n_carried);
    ingot_loop(n->c, NULL, condition(n, go), n_carried, carried, r, 0, out);
    write_assigned(n, &a, out + k);
    k = 0;
    for (int i = 0; i < count; i++)
        n->out[i] = is_handle(n, i) ? n->in[i] : out[k++];
    return n->out[0];
}

/* ---- variables ------------------------------------------------------------------------------- */

/* Its number, which is found again by its name. */
static int number_of(TfliteModel *m, const ingot_tflite_op *op)
{
    const char *box = ingot_tflite_text(&op->options, 0),
               *name = ingot_tflite_text(&op->options, 1);
    const size_t room = strlen(box) + strlen(name) + sizeof "/variable";
    char *full = ingot_alloc(m->c, room);
    snprintf(full, room, "%s%s%s", box, box[0] ? "/" : "", name[0] ? name : "variable");
    for (int i = 0; i < m->n_variables; i++)
        if (!strcmp(m->variables[i].name, full))
            return i;
    m->variables = tfl_more(m, m->variables, m->n_variables, sizeof *m->variables);
    m->variables[m->n_variables] = (TfliteVariable){.name = full};
    return m->n_variables++;
}

ingot_tensor *tflite_var_handle(TfliteNode *n)
{
    return ingot_scalar_i(n->c, INGOT_I32, number_of(n->s->m, n->op));
}

static TfliteVariable *variable_of(TfliteNode *n)
{
    int64_t number;
    TfliteModel *m = n->s->m;
    if (!tfl_one_int(n, 0, &number) || number < 0 || number >= m->n_variables)
        return NULL;
    return &m->variables[number];
}

/* The state, as the first who reads or writes it says what it is. */
static bool made(TfliteNode *n, TfliteVariable *v, ingot_dtype dtype, int rank, const int64_t *dims)
{
    if (v->state)
        return true;
    if (v->begin) {
        v->state = ingot_state_from(n->c, v->name, v->begin);
    } else {
        v->state = ingot_state(n->c, v->name, dtype, rank, dims);
    }
    v->now = v->state;
    return !ingot_is_poison(v->state);
}

ingot_tensor *tflite_read_variable(TfliteNode *n)
{
    int64_t dims[INGOT_MAX_RANK];
    TfliteVariable *v = variable_of(n);
    const ingot_tflite_tensor *t = n->to[0];
    if (!v || t->shape.n > INGOT_MAX_RANK)
        return ingot_poison(n->c);
    for (size_t i = 0; i < t->shape.n; i++)
        dims[i] = ingot_tflite_i32(&t->shape, i);
    return made(n, v, tfl_out_dtype(n), (int)t->shape.n, dims) ? v->now : ingot_poison(n->c);
}

/* What it begins as is a constant, evaluated now. */
static ingot_tensor *begin_of(TfliteNode *n, ingot_tensor *x)
{
    int64_t dims[INGOT_MAX_RANK];
    size_t bytes = ingot_dtype_bytes(ingot_dtype_of(x));
    if (!ingot_is_const(x) || !ingot_static_shape(x, dims))
        return tfl_unsupported(n, "what a variable begins as is no constant");
    for (int i = 0; i < ingot_rank(x); i++)
        bytes *= (size_t)dims[i];
    void *data = ingot_alloc(n->c, bytes + 1);
    if (!ingot_const_data(n->c, x, data, bytes))
        return tfl_unsupported(n, "what a variable begins as cannot be evaluated");
    bool zeros = true;
    for (size_t i = 0; i < bytes; i++)
        zeros &= !((const char *)data)[i];
    return zeros ? NULL : ingot_data(n->c, NULL, ingot_dtype_of(x), ingot_rank(x), dims, data);
}

ingot_tensor *tflite_assign_variable(TfliteNode *n)
{
    int64_t dims[INGOT_MAX_RANK];
    TfliteModel *m = n->s->m;
    TfliteVariable *v = variable_of(n);
    ingot_tensor *x = n->in[1];
    if (!v || !ingot_static_shape(x, dims))
        return tfl_unsupported(n, "a variable whose shape is not known is not supported");
    if (m->once) {
        if (v->state)
            return tfl_unsupported(n, "a variable is read before it begins");
        v->begin = begin_of(n, x);
        return ingot_poison(n->c);
    }
    if (made(n, v, ingot_dtype_of(x), ingot_rank(x), dims))
        v->now = x;
    return ingot_poison(n->c);
}

ingot_tensor *tflite_call_once(TfliteNode *n)
{
    TfliteModel *m = n->s->m;
    const bool outer = m->once;
    const int64_t graph = tfl_int(n, 0, 4, -1);
    for (int i = 0; i < m->n_begun; i++)
        if (m->begun[i] == graph)
            return ingot_poison(n->c);
    m->begun = tfl_more(m, m->begun, m->n_begun, sizeof graph);
    m->begun[m->n_begun++] = graph;
    m->once = true;
    called(n, graph, 0, NULL, -1, NULL);
    m->once = outer;
    return ingot_poison(n->c);
}

void tflite_begin_variables(TfliteModel *m)
{
    for (int i = 0; i < m->n_variables; i++)
        m->variables[i].now = m->variables[i].state;
}

void tflite_end_variables(TfliteModel *m)
{
    for (int i = 0; i < m->n_variables; i++) {
        const TfliteVariable *v = &m->variables[i];
        if (v->state && v->now != v->state && !ingot_is_poison(v->now))
            ingot_state_next(m->c, v->state, v->now);
    }
}
