/* verify_model.c - the compiled model against the reference interpreter, kernel by kernel where it
 * has opts. */
#include <string.h>
#include <time.h>

#include "choose.h"
#include "lowered.h"
#include "plan_interp.h"
#include "targets.h"
#include "verify.h"

static ingot_value *values_of(const Session *s)
{
    ingot_value *in = NEWN(s->a, ingot_value, s->nin + 1);
    for (int i = 0; i < s->nin; i++) {
        in[i] =
            (ingot_value){.data = s->in[i].data, .rank = s->in[i].rank, .dtype = s->in[i].dtype};
        memcpy(in[i].dims, s->in[i].dims, sizeof in[i].dims);
    }
    return in;
}

ingot_status verify_interpret(const Session *s, LoadedModel *m, bool rewritten, ingot_value *want,
                              bool *rounds)
{
    ingot_status status = model_build(m, s->o, s->in, s->bound);
    *rounds = false;
    Target t = machine_target(s->a, s->o->compile.target);
    if (status == INGOT_OK)
        graph_read_as(m->c);
    if (status == INGOT_OK && rewritten)
        *rounds = graph_rewrite(m->c, &t, s->o->compile.no_rewrite);
    ingot_value *in = values_of(s);
    if (status != INGOT_OK)
        return status;
    progress_begin("verify, the interpreter", 0);
    m->c->progress = progress_at;
    status = ingot_interpret(m->c, s->nin, in, s->nout, want);
    progress_end();
    return status;
}

/* Sums in the same order: only what is kept in f32 where the interpreter rounds makes a
 * difference. */
static double one_order(ingot_dtype d)
{
    return d == INGOT_F32 || d == INGOT_C64 ? 1e-4 : tolerance_of(d);
}

HostTensor tensor_of(const ingot_value *v)
{
    HostTensor w = {
        .dtype = v->dtype, .rank = v->rank, .count = 1, .data = (void *)(uintptr_t)v->data};
    memcpy(w.dims, v->dims, sizeof w.dims);
    for (int a = 0; a < w.rank; a++)
        w.count *= (size_t)w.dims[a];
    w.bytes = w.count * (size_t)dtype_info[w.dtype].bytes;
    return w;
}

/* Whether a small change of what it is given may make a large one of the result: of a float a step,
 * or a choice between two of them. */
static bool jumps(const Node *n)
{
    const Node *x = n->nsrc ? n->src[0] : NULL;
    if (!x || !dtype_is_float(x->dtype))
        return false;
    switch (n->op) {
    case OP_CAST: /* a step of f8 is large */
        return !dtype_is_float(n->dtype) || dtype_info[n->dtype].bytes == 1;
    case OP_FLOOR:
    case OP_CEIL:
    case OP_TRUNC:
    case OP_ROUND:
    case OP_SIGN:
    case OP_MOD:
    case OP_FMOD:
    case OP_BITCAST:
    case OP_CUSTOM:
    case OP_CALL:
    case OP_QUANTIZE: return true;
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
        return x->op != OP_CONST &&
               n->src[1]->op != OP_CONST; /* that is a border: most are continuous there */
    default: return false;
    }
}

static bool any_jumps(Arena *a, const Context *c)
{
    int n;
    Node **node = graph_nodes(a, c, &n);
    for (int i = 0; i < n; i++)
        if (jumps(node[i]))
            return true;
    return false;
}

/* How far the rewritten graph's outputs are from those of the graph as it is asked for: nowhere, or
 * by other roundings, which are judged unless something in the graph makes much of little. */
static ingot_status compare_graphs(const Session *s, const ingot_value *rewritten, bool rounds)
{
    LoadedModel m;
    bool ignored;
    ingot_value *asked = NEWN(s->a, ingot_value, s->nout + 1);
    ingot_status status = model_open(&m, s->o, true);
    if (status == INGOT_OK)
        status = verify_interpret(s, &m, false, asked, &ignored);
    const bool judge = status == INGOT_OK && !(rounds && any_jumps(s->a, m.c));
    for (int i = 0; i < s->nout && status == INGOT_OK; i++) {
        HostTensor x = tensor_of(&rewritten[i]), y = tensor_of(&asked[i]);
        Difference d = value_compare(s->a, &x, &y, tolerance_of(x.dtype));
        StrBuf sb = {0};
        difference_print(&sb, &d, &x, &y);
        if (judge && !difference_is_good(&d) &&
            !(s->moves && s->explained(s->moves, i, &d, &x, &y)))
            status =
                complain(INGOT_DIFFERS,
                         "%s: output '%s' of the rewritten graph differs from that of the model "
                         "file: %s",
                         s->o->model, s->out_name[i], sb.data);
        else if (rounds)
            printf("%s of the rewritten graph compared with that of the model file: %s\n",
                   s->out_name[i], sb.data);
        sb_free(&sb);
    }
    model_close(&m);
    return status;
}

/* Prints how far the outputs are from the interpreter's.  Numbers are judged if they are to be
 * near; what is nan or infinite on one side only always is. */
static ingot_status compare_outputs(const Session *s, const char *of, const ingot_value *want,
                                    bool judge)
{
    ingot_status status = INGOT_OK;
    for (int i = 0; i < s->nout; i++) {
        HostTensor w = tensor_of(&want[i]);
        Difference d = value_compare(s->a, &s->out[i], &w, one_order(w.dtype));
        StrBuf sb = {0};
        difference_print(&sb, &d, &s->out[i], &w);
        bool good = judge ? difference_is_good(&d) : !d.shape && !d.nan && !d.inf;
        const bool explained = !good && s->moves && s->explained(s->moves, i, &d, &s->out[i], &w);
        if (good || explained)
            printf("%s%s compared with the interpreter's: %s%s\n", s->out_name[i], of, sb.data,
                   explained ? "; other roundings move it as far" : "");
        else
            status = complain(INGOT_DIFFERS, "%s: output '%s'%s differs from the interpreter's: %s",
                              s->o->model, s->out_name[i], of, sb.data);
        sb_free(&sb);
    }
    return status;
}

/* A few results at a time, as many as leave no remainder, and in parts for threads: each sum is as
 * it was, but does not wait for itself alone. Places are planned for the parts of the other kernel:
 * one that has some stays whole. */
static void side_by_side(Kernel *k, const Target *t)
{
    static const int some[] = {4, 5, 6, 7, 8, 3, 2};
    Nest *n = nest_new(k, t);
    bool reduces = false, staged = false, done = false;
    for (int i = 0; i < n->naxis; i++) {
        reduces |= n->axis[i].reduced;
        staged |= n->axis[i].staged;
    }
    for (int i = n->naxis; i-- > 0 && reduces && !done;) {
        const NestAxis *x = &n->axis[i];
        for (size_t j = 0; j < sizeof some / sizeof *some && !x->reduced && !done; j++)
            done = x->extent > 0 && x->extent % some[j] == 0 &&
                   !opt_apply(n, &(Opt){.kind = OPT_UPCAST, .axis = x->name, .amount = some[j]});
    }
    if (!staged)
        choose_threads(n);
    if (!nest_check(n))
        nest_keep(n, k);
    nest_free(n);
}

/* Kernels without opts (but for these), but where and in which layout the others have their
 * operands. */
static void drop_opts(Plan *p, const Target *t)
{
    for (int i = 0; i < p->nkernel; i++) {
        Kernel *k = p->kernels[i];
        const int64_t parts = kernel_parts(k), room = k->scratch * (parts ? parts : 1);
        kernel_drop_lowered(k);
        k->nopt = 0;
        side_by_side(k, t);
        if (room && kernel_scratch(k) > room) /* places of several results at a time */
            k->nopt = 0;
    }
}

/* The plan of the compiled model, and the program of its naive twin in a folder of its own. */
static ingot_status build_twin(const Session *s, LoadedModel *m, Plan **plan, const char *folder)
{
    ingot_options o = s->o->compile;
    o.name = NULL;
    o.no_selftest = true;
    ingot_status status = model_open_again(m, s->o);
    if (status == INGOT_OK)
        status = model_build(m, s->o, s->in, s->bound);
    if (status != INGOT_OK)
        return status;
    *plan = plan_make(m->c, &o);
    if (!*plan)
        return ingot_context_status(m->c);
    const Target t = machine_target(s->a, s->o->compile.target);
    drop_opts(*plan, &t);
    status = bundle_write(*plan, target_find("c"), &o, folder);
    return status == INGOT_OK
               ? build_program(s->a, folder, "model", "c", "-std=c99", false, o.verbose > 1)
               : status;
}

ingot_status verify_beside_naive(const Session *s, const char *out)
{
    LoadedModel m;
    Plan *p = NULL;
    const char *folder = arena_printf(s->a, "%s/twin", s->work);
    ingot_status status = build_twin(s, &m, &p, folder);
    if (status == INGOT_OK)
        status = lockstep(s, p, folder, out);
    plan_free(p);
    model_close(&m);
    return status;
}

/* Every kernel beside its naive form, then the naive forms together beside the interpreter.
 * Differences of rounding in the one are small, and the other has hardly any; so both are judged
 * strictly, however much the network amplifies them. */
static ingot_status verify_kernels(Session *s, const ingot_value *want)
{
    const ingot_status differ = verify_beside_naive(s, "naive");
    if (differ != INGOT_OK && differ != INGOT_DIFFERS)
        return differ;
    Session twin = *s;
    twin.out = NEWN(s->a, HostTensor, s->nout + 1);
    ingot_status status = session_outputs(&twin, "naive");
    if (status == INGOT_OK)
        status = compare_outputs(&twin, " of the naive kernels", want, true);
    return differ == INGOT_OK ? status : differ;
}

/* ---- without a program ----------------------------------------------------------------------- */

/* Every few seconds. */
static void tell_progress(void *user, const Step *step)
{
    static time_t told;
    const time_t now = time(NULL);
    (void)user;
    if (!told)
        told = now;
    if (now - told >= 5) {
        note("interpreting step %d", step->number);
        told = now;
    }
}

enum { MILLION = 1000000, MOST = 20000 };

/* All kernels without opts, one after the other. */
static ingot_status compare_naive(const Session *s, const Plan *p, const ingot_value *want)
{
    ingot_value *out = NEWN(s->a, ingot_value, s->nout + 1);
    PlanInterp x = {.p = p, .naive = true, .most = (int64_t)MOST * MILLION};
    x.before = tell_progress;
    if (!plan_interpret(&x, s->a, values_of(s), out))
        return interpreter_failed(s, &x);
    Session naive = *s;
    naive.out = NEWN(s->a, HostTensor, s->nout + 1);
    for (int i = 0; i < s->nout; i++)
        naive.out[i] = tensor_of(&out[i]);
    return compare_outputs(&naive, " of the naive kernels", want, true);
}

/* The kernels' statements, with opts and without, by the interpreter; then the outputs beside those
 * of the graph's. */
static ingot_status verify_interpreted(Session *s, const ingot_value *want, bool gpu)
{
    LoadedModel m;
    ingot_status status = model_open_again(&m, s->o);
    if (status == INGOT_OK)
        status = model_build(&m, s->o, s->in, s->bound);
    Plan *p = status == INGOT_OK ? plan_make(m.c, &s->o->compile) : NULL;
    if (status == INGOT_OK && !p)
        status = ingot_context_status(m.c);
    ingot_value *out = NEWN(s->a, ingot_value, s->nout + 1);
    PlanInterp x = {.p = p, .gpu = gpu, .most = (int64_t)MOST * MILLION, .before = tell_progress};
    if (status == INGOT_OK)
        status = lockstep_interpreted(s, &x, values_of(s), out);
    if (status == INGOT_OK)
        printf("interpreted for %s: %d steps, %.1f million instructions, no fault\n",
               s->o->compile.target, p->nstep, (double)x.done / MILLION);
    for (int i = 0; i < s->nout && status == INGOT_OK; i++)
        s->out[i] = tensor_of(&out[i]);
    const bool by_kernel = !s->o->compile.naive;
    if (status == INGOT_OK)
        status = compare_outputs(s, "", want, !by_kernel);
    if (status == INGOT_OK && by_kernel)
        status = compare_naive(s, p, want);
    plan_free(p);
    model_close(&m);
    return status;
}

/* Model and inputs alone: nothing is compiled. */
static ingot_status prepare_inputs(Session *s, LoadedModel *m)
{
    if (!s->o->compile.target)
        s->o->compile.target = "c:native";
    ingot_status status = model_open(m, s->o, false);
    return status == INGOT_OK ? session_read(s, m, true) : status;
}

ingot_status command_verify(Options *o)
{
    Session s = {.o = o, .a = o->a, .check = true};
    LoadedModel m;
    const char *target = o->compile.target ? o->compile.target : "c:native";
    TargetName *list;
    const int n = target_list(o->a, target, &list);
    if (n > 1)
        return complain(INGOT_USAGE, "ingot verify: --target %s: give one of them: %s", target,
                        target_list_text(o->a, n, list));
    if (o->train)
        return verify_functions(o);
    const char *elsewhere = o->interpret ? NULL : runs_elsewhere(o->a, target);
    if (elsewhere)
        printf("%s: its kernels are interpreted\n", elsewhere);
    bool interpreted = elsewhere || o->interpret;
    ingot_status status = interpreted ? prepare_inputs(&s, &m) : session_prepare(&s, &m, true);
    const Target t = machine_target(o->a, target);
    if (status == INGOT_OK && !interpreted)
        status = session_run(&s);
    if (s.no_device && t.gpu) {
        printf("there is no such device: its kernels are interpreted\n");
        interpreted = true;
        status = INGOT_OK;
    }
    ingot_value *want = NEWN(s.a, ingot_value, s.nout + 1);
    bool rounds = false;
    if (status == INGOT_OK)
        status = verify_interpret(&s, &m, !o->compile.naive, want, &rounds);
    if (status == INGOT_OK) {
        s.moves = moves_of_narrow(s.a, m.c, values_of(&s), s.nout, want);
        s.explained = moves_explain;
    }
    if (status == INGOT_OK && !o->compile.naive)
        status = compare_graphs(&s, want, rounds);
    const bool narrow = o->nprecision || (o->precision != INGOT_PRECISION_F32 &&
                                          o->precision != INGOT_PRECISION_1E5);
    if (status == INGOT_OK && narrow)
        status = tell_precision(&s, want);
    bool by_kernel = !o->compile.naive && !t.gpu;
    if (status == INGOT_OK && interpreted)
        status = verify_interpreted(&s, want, t.gpu);
    else if (status == INGOT_OK)
        status = compare_outputs(&s, "", want, !by_kernel);
    if (status == INGOT_OK && by_kernel && !interpreted)
        status = verify_kernels(&s, want);
    const bool has_outputs = status == INGOT_OK || (status == INGOT_DIFFERS && !interpreted);
    ingot_status beside = has_outputs ? session_compare(&s) : INGOT_OK;
    if (status == INGOT_OK)
        status = beside;
    session_finish(&s, &m);
    return status;
}
