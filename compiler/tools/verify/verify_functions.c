/* verify_functions.c - a model that is trained: each of its functions, run() and train_step(), by
 * the interpreter of plans beside that of graphs.
 *
 *     a plan's kernels with opts     beside the same without, step by step
 *     those without, all together    outputs, and what each state is after the run, beside the
 * graph as it was asked for
 *
 * A graph has no values of states after a run: where it is interpreted, next values are outputs.
 *
 * Inputs that no data are given for are drawn. Data are numbered (input_N) as the model's inputs,
 * then what a step has beside them, in its order: target, rate. */
#include <string.h>

#include "choose.h"
#include "interp.h"
#include "verify.h"

/* Inputs of all functions, by the number that data have. */
typedef struct {
    int n;
    const char **name, **file; /* NULL: it is drawn */
} DataFiles;

/* One function under way. */
typedef struct {
    Options *o;
    const DataFiles *data;
    Arena *a;
    LoadedModel asked, built; /* the graph as it is asked for; that of the plan */
    Session s;                /* its inputs and outputs; then its states */
    ingot_value *in, *want;
    int nout; /* without states */
} FunctionCheck;

static const char *name_of(const FunctionCheck *f)
{
    return function_name(f->asked.c);
}

static ingot_status open_selected(LoadedModel *m, const Options *o, int function, bool again)
{
    ingot_status status = again ? model_open_again(m, o) : model_open(m, o, false);
    if (status == INGOT_OK)
        status = model_build(m, o, NULL, NULL);
    if (status == INGOT_OK)
        function_select(m->c, function);
    return status;
}

/* The sizes of an input where each free dim has its greatest: one that is computed of them has what
 * they give, which may be less than its bound. */
static void greatest_sizes(Interp *ip, const Node *input, int64_t *dims)
{
    const bool known = eval_roots(ip, input->rank, input->shape);
    for (int a = 0; a < input->rank; a++)
        dims[a] = known ? dim_value(ip, input->shape[a]) : input->shape[a]->hi;
}

static void draw(FunctionCheck *f, int i)
{
    HostTensor *v = &f->s.in[i];
    value_random(f->a, v, (uint64_t)i + 1);
    f->in[i] = (ingot_value){.data = v->data, .rank = v->rank, .dtype = v->dtype};
    memcpy(f->in[i].dims, v->dims, sizeof v->dims);
}

static const char *file_for(const FunctionCheck *f, const char *input)
{
    for (int k = 0; k < f->data->n; k++)
        if (!strcmp(f->data->name[k], input))
            return f->data->file[k];
    return NULL;
}

/* The integers that sizes of inputs have to be, which only a step of the run tells. */
static Node **told_sizes(Context *c, Arena *a, int *n, Node ***told)
{
    Node **size = NULL;
    *n = 0;
    *told = NULL;
    for (int i = 0; i < c->require.n; i++) {
        const Require *r = c->require.item[i];
        if (r->value->op != OP_VAR || r->least != r->greatest)
            continue;
        int count = *n;
        vec_push(a, size, count, r->value);
        vec_push(a, *told, *n, r->least);
    }
    return size;
}

/* Inputs whose sizes a step tells are drawn again, with these: the others decide them. */
static ingot_status draw_told(FunctionCheck *f)
{
    Context *c = f->asked.c;
    const Requires all = c->require;
    const int nout = c->noutput;
    int n;
    Node **told, **size = told_sizes(c, f->a, &n, &told);
    if (!n)
        return INGOT_OK;
    ingot_value *is = NEWN(f->a, ingot_value, nout + n);
    for (int i = 0; i < n; i++)
        ingot_output(c, arena_printf(f->a, "told %d", i), ingot_from_dim(c, told[i]));
    c->require = (Requires){0};
    const ingot_status status = ingot_interpret(c, f->s.nin, f->in, c->noutput, is);
    c->require = all;
    c->noutput = nout;
    for (int i = 0; i < f->s.nin && status == INGOT_OK; i++)
        for (int k = 0; k < n; k++)
            for (int a = 0; a < f->s.in[i].rank; a++)
                if (c->inputs[i].node->shape[a] == size[k] && !file_for(f, c->inputs[i].name)) {
                    f->s.in[i].dims[a] = *(const int64_t *)is[nout + k].data;
                    draw(f, i);
                }
    return status;
}

static ingot_status read_input(FunctionCheck *f, int i, const char *file)
{
    const Node *input = f->asked.c->inputs[i].node;
    ingot_model_io io = {.name = f->asked.c->inputs[i].name,
                         .dtype = (ingot_dtype)input->dtype,
                         .rank = input->rank};
    for (int a = 0; a < io.rank; a++) {
        io.dims[a] = input->shape[a]->lo == input->shape[a]->hi ? input->shape[a]->lo : -1;
        io.dim_names[a] = arena_printf(f->a, "%s_%d", io.name, a);
    }
    ingot_status status = INGOT_OK;
    HostTensor *v = &f->s.in[i];
    if (!value_read_as(f->a, file, &io, v, &status) || !data_fits(&f->s, &io, i, v, &status))
        return status;
    f->in[i] = (ingot_value){.data = v->data, .rank = v->rank, .dtype = v->dtype};
    memcpy(f->in[i].dims, v->dims, sizeof v->dims);
    return INGOT_OK;
}

/* Values for all inputs of the function: those that are given, and random ones. */
static ingot_status make_inputs(FunctionCheck *f)
{
    Context *c = f->asked.c;
    Interp *ip = interp_new(c);
    ingot_status status = INGOT_OK;
    for (int i = 0; i < c->nvar; i++)
        interp_set_var(ip, i, c->vars[i].length ? 0 : c->vars[i].hi);
    f->s.nin = c->ninput;
    f->s.in = NEWN(f->a, HostTensor, c->ninput + 1);
    f->in = NEWN(f->a, ingot_value, c->ninput + 1);
    for (int i = 0; i < c->ninput && status == INGOT_OK; i++) {
        const Node *input = c->inputs[i].node;
        const char *file = file_for(f, c->inputs[i].name);
        HostTensor *v = &f->s.in[i];
        if (file) {
            status = read_input(f, i, file);
            continue;
        }
        *v = (HostTensor){.dtype = (ingot_dtype)input->dtype, .rank = input->rank};
        greatest_sizes(ip, input, v->dims);
        draw(f, i);
    }
    interp_free(ip);
    return status == INGOT_OK ? draw_told(f) : status;
}

/* Next values become outputs behind the others, of states that the function changes. */
static void name_outputs(FunctionCheck *f)
{
    Context *c = f->asked.c;
    f->nout = c->noutput;
    for (int i = 0; i < c->nstate; i++)
        if (c->states[i].next)
            ingot_output(c, arena_printf(f->a, "state %s", c->states[i].name), c->states[i].next);
    f->s.nout = c->noutput;
    f->s.out = NEWN(f->a, HostTensor, c->noutput + 1);
    f->s.out_name = NEWN(f->a, const char *, c->noutput + 1);
    for (int i = 0; i < c->noutput; i++)
        f->s.out_name[i] = c->outputs[i].name;
    f->want = NEWN(f->a, ingot_value, c->noutput + 1);
}

static HostTensor tensor_at(const ingot_value *like, const void *data)
{
    HostTensor t = {.dtype = like->dtype, .rank = like->rank, .count = 1};
    memcpy(t.dims, like->dims, sizeof t.dims);
    for (int a = 0; a < t.rank; a++)
        t.count *= (size_t)t.dims[a];
    t.bytes = t.count * (size_t)dtype_info[t.dtype].bytes;
    t.data = (void *)(uintptr_t)data;
    return t;
}

/* Result i of the naive kernels beside the graph's. */
static ingot_status compare_result(const FunctionCheck *f, int i, const void *data,
                                   struct Moves *moves)
{
    HostTensor got = tensor_at(&f->want[i], data), want = tensor_at(&f->want[i], f->want[i].data);
    const Difference d = value_compare(f->a, &got, &want, tolerance_of(want.dtype));
    ingot_status status = INGOT_OK;
    const bool near = difference_is_good(&d),
               rounded = !near && moves_explain(moves, i, &d, &got, &want), good = near || rounded;
    StrBuf sb = {0};
    difference_print(&sb, &d, &got, &want);
    if (!good)
        status =
            complain(INGOT_DIFFERS, "%s: function '%s': '%s' differs from the interpreter's: %s",
                     f->o->model, name_of(f), f->s.out_name[i], sb.data);
    else if (i < f->nout || rounded || f->o->compile.verbose)
        printf("%s: %s%s compared with the interpreter's: %s%s\n", name_of(f), f->s.out_name[i],
               want.dtype == INGOT_F32 && want.count == 1
                   ? arena_printf(f->a, " is %.6g;", (double)*(const float *)want.data)
                   : "",
               sb.data, rounded ? "; other roundings move it as far" : "");
    sb_free(&sb);
    return status;
}

/* Outputs and states of the naive kernels beside the graph's. */
static ingot_status compare_results(const FunctionCheck *f, const ingot_value *out,
                                    const unsigned char *const *state)
{
    const Context *c = f->asked.c;
    ingot_status status = INGOT_OK;
    struct Moves *moves = moves_new(f->a, f->asked.c, f->in, f->s.nout, f->want);
    for (int i = 0, k = 0; i < f->s.nout; i++) {
        const void *data = i < f->nout ? out[i].data : NULL;
        if (i >= f->nout) {
            while (!c->states[k].next)
                k++;
            data = state[k++];
        }
        const ingot_status one = compare_result(f, i, data, moves);
        status = one == INGOT_OK ? status : one;
    }
    return status;
}

static ingot_status run_plan(FunctionCheck *f, Plan *p)
{
    const int64_t most = INT64_C(20000) * 1000000;
    ingot_value *out = NEWN(f->a, ingot_value, f->nout + 1);
    const unsigned char **state = NEWN(f->a, const unsigned char *, p->c->nstate + 1);
    const bool gpu = machine_target(f->a, f->o->compile.target).gpu;
    PlanInterp lockstep = {.p = p, .gpu = gpu, .most = most};
    ingot_status status = lockstep_interpreted(&f->s, &lockstep, f->in, out);
    PlanInterp naive = {.p = p, .naive = true, .most = most, .state = state};
    if (status != INGOT_OK)
        return status;
    if (!plan_interpret(&naive, f->a, f->in, out))
        return interpreter_failed(&f->s, &naive);
    printf("%s: %d steps, %d states, no kernel differs\n", name_of(f), p->nstep, p->c->nstate);
    return compare_results(f, out, state);
}

static ingot_status check_function(FunctionCheck *f)
{
    ingot_status status = make_inputs(f);
    name_outputs(f);
    if (status == INGOT_OK)
        status = ingot_interpret(f->asked.c, f->s.nin, f->in, f->s.nout, f->want);
    Plan *p = status == INGOT_OK ? plan_make(f->built.c, &f->o->compile) : NULL;
    if (status == INGOT_OK)
        status = p ? run_plan(f, p) : ingot_context_status(f->built.c);
    plan_free(p);
    return status;
}

/* The names of all inputs, and the files that are given for them. */
static ingot_status find_data(DataFiles *d, Options *o, const LoadedModel *m)
{
    Session s = {.o = o, .a = o->a};
    Context *c = m->c;
    const int function = c->function;
    d->n = ingot_model_input_count(m->file);
    d->name = model_input_names(&s, m);
    for (int k = 0; k < d->n; k++)
        d->name[k] = arena_strdup(o->a, d->name[k]);
    for (int i = 0; i < c->nfunction; i++) {
        function_select(c, i);
        for (int k = 0; k < c->ninput; k++) {
            int at = 0;
            while (at < d->n && strcmp(d->name[at], c->inputs[k].name))
                at++;
            if (at < d->n)
                continue;
            const char **more = NEWN(o->a, const char *, d->n + 1);
            memcpy(more, d->name, (size_t)d->n * sizeof *more);
            more[d->n++] = arena_strdup(o->a, c->inputs[k].name);
            d->name = more;
        }
    }
    function_select(c, function);
    d->file = NEWN(o->a, const char *, d->n + 1);
    if (!data_is_there(&s))
        return INGOT_IO;
    if (o->ninput > d->n)
        return complain(INGOT_USAGE, "%s: %d inputs are given, the functions have %d", o->model,
                        o->ninput, d->n);
    if (o->ninput && !order_inputs(&s, d->n, d->name))
        return INGOT_USAGE;
    for (int k = 0; k < d->n && (o->data || o->ninput); k++) {
        bool npy;
        d->file[k] = o->ninput ? o->input[k] : data_file(&s, "input", k, &npy);
        if (!d->file[k])
            note("no data for input %d, '%s': random ones", k, d->name[k]);
    }
    return INGOT_OK;
}

ingot_status verify_functions(Options *o)
{
    ingot_status status = INGOT_OK;
    DataFiles data = {0};
    if (!o->compile.target)
        o->compile.target = "c:native";
    for (int i = 0, n = 1; i < n && status == INGOT_OK; i++) {
        FunctionCheck f = {.o = o, .a = o->a, .data = &data};
        f.s = (Session){.o = o, .a = o->a};
        status = open_selected(&f.asked, o, i, i > 0);
        n = f.asked.c->nfunction;
        if (status == INGOT_OK && i == 0)
            status = find_data(&data, o, &f.asked);
        if (status == INGOT_OK) {
            status = open_selected(&f.built, o, i, true);
            if (status == INGOT_OK)
                status = check_function(&f);
            model_close(&f.built);
        }
        model_close(&f.asked);
    }
    return status;
}
