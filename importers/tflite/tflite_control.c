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
#include <string.h>

#include "tflite_model.h"

enum { MOST_DEEP = 16 }; /* graphs in graphs */

int tflite_calls(const ingot_tflite_op *op, int64_t graphs[2])
{
    static const struct {
        int builtin, n;
        unsigned first; /* field */
    } callers[] = {
        {TFL_IF, 2, 0}, {TFL_WHILE, 2, 0}, {TFL_CALL_ONCE, 1, 0}, {TFL_STABLEHLO_COMPOSITE, 1, 1}};
    for (int i = 0; i < TFL_COUNT(callers); i++)
        if (callers[i].builtin == op->builtin) {
            for (int k = 0; k < callers[i].n; k++)
                graphs[k] = ingot_tflite_int(&op->options, callers[i].first + (unsigned)k, 4, -1);
            return callers[i].n;
        }
    return 0;
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
    if (m->depth >= MOST_DEEP) {
        tfl_fault(n, "its graphs call each other more than %d deep", MOST_DEEP);
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

ingot_tensor *tflite_if(TfliteNode *n)
{
    ingot_region *branch[2];
    ingot_tensor **out = tensors(n, n->n_out);
    for (int i = 0; i < 2; i++) {
        branch[i] = ingot_region_begin(n->c);
        const bool good =
            called(n, tfl_int(n, (unsigned)i, 4, -1), n->n_in - 1, n->in + 1, n->n_out, out);
        for (int k = 0; k < n->n_out && !good; k++)
            out[k] = ingot_poison(n->c);
        ingot_region_end(n->c, branch[i], n->n_out, out);
        if (!good)
            return ingot_poison(n->c);
    }
    ingot_if(n->c, condition(n, n->in[0]), branch[0], branch[1], n->n_out, n->out);
    return n->n_out ? n->out[0] : ingot_poison(n->c);
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

ingot_tensor *tflite_while(TfliteNode *n)
{
    const int count = n->n_in;
    const int64_t cond = tfl_int(n, 0, 4, -1), body = tfl_int(n, 1, 4, -1);
    ingot_tensor *go, **x = tensors(n, count), **y = tensors(n, count + 1);
    if (n->n_out != count)
        return tfl_fault(n, "it has %d inputs and %d outputs", count, n->n_out);
    if (!called(n, cond, count, n->in, 1, &go))
        return ingot_poison(n->c);
    ingot_region *r = ingot_region_begin(n->c);
    ingot_region_param(n->c, r, INGOT_I64, 0, NULL);
    ingot_region_param(n->c, r, INGOT_BOOL, 0, NULL);
    for (int i = 0; i < count; i++)
        x[i] = ingot_region_param_like(n->c, r, n->in[i]);
    const bool good =
        called(n, body, count, x, count, y + 1) && called(n, cond, count, y + 1, 1, &y[0]);
    for (int i = 0; i <= count && !good; i++)
        y[i] = ingot_poison(n->c);
    y[0] = condition(n, y[0]);
    ingot_region_end(n->c, r, count + 1, y);
    if (!good)
        return ingot_poison(n->c);
    ingot_loop(n->c, NULL, condition(n, go), count, n->in, r, 0, n->out);
    return n->out[0];
}

/* ---- variables ------------------------------------------------------------------------------- */

/* Its number, which is found again by its name. */
ingot_tensor *tflite_var_handle(TfliteNode *n)
{
    TfliteModel *m = n->s->m;
    const char *box = ingot_tflite_text(&n->op->options, 0),
               *name = ingot_tflite_text(&n->op->options, 1);
    const size_t room = strlen(box) + strlen(name) + 2;
    char *full = ingot_alloc(n->c, room);
    strcpy(full, box);
    strcat(full, box[0] ? "/" : "");
    strcat(full, name[0] ? name : "variable");
    for (int i = 0; i < m->n_variables; i++)
        if (!strcmp(m->variables[i].name, full))
            return ingot_scalar_i(n->c, INGOT_I32, i);
    m->variables = tfl_more(m, m->variables, m->n_variables, sizeof *m->variables);
    m->variables[m->n_variables] = (TfliteVariable){.name = full};
    return ingot_scalar_i(n->c, INGOT_I32, m->n_variables++);
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
    if (m->depth)
        return tfl_unsupported(n, "in a branch or loop it is not supported");
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
