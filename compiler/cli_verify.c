/* cli_verify.c - the compiled model against the reference interpreter. */
#include <math.h>
#include <string.h>

#include "cli.h"

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
    if (got->dtype != want->dtype || got->rank != want->rank || memcmp(got->dims, want->dims, (size_t)got->rank * sizeof got->dims[0]))
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

ingot_status command_verify(Options *o)
{
    Session s = {.o = o, .a = o->a};
    Model m;
    ingot_status status = session_prepare(&s, &m, true);
    if (status == INGOT_OK)
        status = session_run(&s);
    if (status == INGOT_OK)
        status = model_build(&m, o, s.in, s.bound);
    if (status == INGOT_OK) {
        ingot_value *in = NEWN(s.a, ingot_value, s.nin + 1), *want = NEWN(s.a, ingot_value, s.nout + 1);
        for (int i = 0; i < s.nin; i++) {
            in[i] = (ingot_value){.data = s.in[i].data, .rank = s.in[i].rank, .dtype = s.in[i].dtype};
            memcpy(in[i].dims, s.in[i].dims, sizeof in[i].dims);
        }
        status = ingot_interpret(m.c, s.nin, in, s.nout, want);
        for (int i = 0; i < s.nout && status == INGOT_OK; i++) {
            double d = difference(&s.out[i], &want[i]);
            printf("%s: largest difference from the interpreter %g of the range\n", s.out_name[i], d);
            if (!(d <= 1e-4))
                status = complain(INGOT_TOOL, "%s: output '%s' differs from the interpreter's", o->model, s.out_name[i]);
        }
    }
    session_finish(&s, &m);
    return status;
}
