/* cli_verify.c - the compiled model against the reference interpreter, kernel by kernel where it has opts. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "targets.h"

static double element(const Value *v, size_t i)
{
    const uint8_t *p = v->data;
    float f;
    double d;
    if (v->dtype == INGOT_F32) {
        memcpy(&f, p + 4 * i, 4);
        return (double)f;
    }
    memcpy(&d, p + 8 * i, 8);
    return d;
}

/* Floats: largest difference over the largest magnitude; others: equal or not. */
static double difference(const Value *got, const ingot_value *want)
{
    Value w = {.dtype = want->dtype, .data = (void *)(uintptr_t)want->data};
    if (got->dtype != want->dtype || got->rank != want->rank ||
        memcmp(got->dims, want->dims, (size_t)got->rank * sizeof got->dims[0]))
        return INFINITY;
    if (got->dtype != INGOT_F32 && got->dtype != INGOT_F64)
        return got->bytes && memcmp(got->data, want->data, got->bytes) ? INFINITY : 0;
    double worst = 0, scale = 0;
    for (size_t i = 0; i < got->count; i++) {
        double a = element(got, i), b = element(&w, i);
        if (a == b || (a != a && b != b))
            continue;
        if (!(fabs(a - b) <= INFINITY) || isinf(a) || isinf(b))
            return INFINITY;
        worst = fmax(worst, fabs(a - b));
    }
    for (size_t i = 0; i < got->count; i++)
        if (isfinite(element(&w, i)))
            scale = fmax(scale, fabs(element(&w, i)));
    return scale > 0 ? worst / scale : worst;
}

/* What the interpreter makes of the inputs. */
static ingot_status interpret(const Session *s, Model *m, ingot_value *want)
{
    ingot_status status = model_build(m, s->o, s->in, s->bound);
    ingot_value *in = NEWN(s->a, ingot_value, s->nin + 1);
    for (int i = 0; i < s->nin; i++) {
        in[i] =
            (ingot_value){.data = s->in[i].data, .rank = s->in[i].rank, .dtype = s->in[i].dtype};
        memcpy(in[i].dims, s->in[i].dims, sizeof in[i].dims);
    }
    return status == INGOT_OK ? ingot_interpret(m->c, s->nin, in, s->nout, want) : status;
}

/* Prints how far the outputs are from the wanted ones; judges if they are to be near. */
static ingot_status compare_outputs(const Session *s, const char *of, const ingot_value *want,
                                    bool judge)
{
    ingot_status status = INGOT_OK;
    for (int i = 0; i < s->nout; i++) {
        double d = difference(&s->out[i], &want[i]);
        printf("%s%s: largest difference from the interpreter %g of the range\n", s->out_name[i],
               of, d);
        if (judge && !(d <= 1e-4))
            status = complain(INGOT_TOOL, "%s: output '%s'%s differs from the interpreter's",
                              s->o->model, s->out_name[i], of);
    }
    return status;
}

/* Kernels without opts, but where and in which layout the others have their operands. */
static void drop_opts(Plan *p)
{
    for (int i = 0; i < p->nkernel; i++)
        p->kernels[i]->nopt = 0;
}

/* The plan of the compiled model, and the program of its naive twin in a folder of its own. */
static ingot_status build_twin(const Session *s, Model *m, Plan **plan, const char *folder)
{
    ingot_options o = s->o->compile;
    o.name = NULL;
    ingot_status status = model_open(m, s->o, true);
    if (status == INGOT_OK)
        status = model_build(m, s->o, s->in, s->bound);
    if (status != INGOT_OK)
        return status;
    *plan = plan_make(m->c, &o);
    if (!*plan)
        return ingot_context_status(m->c);
    drop_opts(*plan);
    status = bundle_write(*plan, target_find("c"), &o, folder);
    return status == INGOT_OK ? build_program(s->a, folder, "model", "c", "-std=c99", o.verbose > 1)
                              : status;
}

/* Every kernel beside its naive form, then the naive forms together beside the interpreter. Differences of rounding in
 * the one are small, and the other has hardly any; so both are judged strictly, however much the network amplifies them. */
static ingot_status verify_kernels(Session *s, const ingot_value *want)
{
    Model m;
    Plan *p = NULL;
    const char *folder = arena_printf(s->a, "%s/twin", s->work);
    ingot_status status = build_twin(s, &m, &p, folder), differ = INGOT_OK;
    if (status == INGOT_OK)
        differ = lockstep(s, p, folder);
    Session twin = *s;
    twin.entry = folder;
    twin.out = NEWN(s->a, Value, s->nout + 1);
    if (status == INGOT_OK)
        status = session_run(&twin);
    if (status == INGOT_OK)
        status = compare_outputs(&twin, " of the naive kernels", want, true);
    plan_free(p);
    model_close(&m);
    return differ == INGOT_OK ? status : differ;
}

ingot_status command_verify(Options *o)
{
    Session s = {.o = o, .a = o->a};
    Model m;
    ingot_status status = session_prepare(&s, &m, true);
    if (status == INGOT_OK)
        status = session_run(&s);
    ingot_value *want = NEWN(s.a, ingot_value, s.nout + 1);
    if (status == INGOT_OK)
        status = interpret(&s, &m, want);
    bool by_kernel = o->compile.opt_level > 0 && !target_find(o->compile.target)->gpu;
    if (status == INGOT_OK)
        status = compare_outputs(&s, "", want, !by_kernel);
    if (status == INGOT_OK && by_kernel)
        status = verify_kernels(&s, want);
    session_finish(&s, &m);
    return status;
}
