/* gradient_check.c - gradients of ONNX models of doubles, beside differences.
 *
 *     gradient_check [--write] NAME...    reads NAME.onnx, and NAME.in: the bytes of its inputs, in
 *                                         their order; --write: NAME.out becomes the bytes of the
 *                                         loss, and of the gradients of the inputs of doubles
 *
 * The loss is the sum of the elements of all float outputs, each with a weight of its own; along
 * some directions of all float inputs the gradient has to be what differences of the loss say.  For
 * each model a line: "NAME: right", "NAME: wrong, ..", or "NAME: error: .." with what was told. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/ir/ir.h"
#include "importers/onnx/ingot_onnx.h"

enum { MOST = 16, TURNS = 3 };

static char told[2000];

static void keep(void *user, ingot_level level, const char *text)
{
    (void)user;
    if (level == INGOT_ERROR && !told[0])
        snprintf(told, sizeof told, "%s", text);
}

static uint32_t noise_state;

static double noise(void)
{
    noise_state = noise_state * 1664525u + 1013904223u;
    return (double)(int32_t)noise_state / 2147483648.0;
}

static int64_t count_of(const ingot_value *v)
{
    int64_t n = 1;
    for (int a = 0; a < v->rank; a++)
        n *= v->dims[a];
    return n;
}

/* Each element times 1 to 2, by its place. */
static ingot_tensor *weighted(ingot_context *c, ingot_tensor *y)
{
    ingot_dim *n = ingot_numel(c, y);
    ingot_tensor *place = ingot_cast(c, ingot_iota(c, 1, &n, 0), INGOT_F64);
    ingot_tensor *w = ingot_sin(c, ingot_add_c(c, ingot_mul_c(c, place, 1.7), 0.4));
    w = ingot_add_c(c, ingot_mul_c(c, w, 0.5), 1.5);
    ingot_tensor *flat = ingot_cast(c, ingot_reshape(c, y, 1, &n), INGOT_F64);
    return ingot_sum(c, ingot_mul(c, flat, w), 1, false);
}

static ingot_tensor *loss_of(Context *c)
{
    ingot_tensor *sum = NULL;
    for (int i = 0; i < c->noutput; i++) {
        ingot_tensor *y = c->outputs[i].node;
        if (dtype_is_float(y->dtype))
            sum = sum ? ingot_add(c, sum, weighted(c, y)) : weighted(c, y);
    }
    return sum;
}

typedef struct {
    Context *c;
    ingot_value in[MOST], at[MOST];
    ingot_tensor *x[MOST], *g[MOST];
    int number[MOST], n; /* of each x: which input */
} ModelCheck;

static bool read_inputs(ModelCheck *q, const char *name)
{
    char path[1000];
    snprintf(path, sizeof path, "%s.in", name);
    FILE *f = fopen(path, "rb");
    bool ok = f != NULL;
    for (int i = 0; ok && i < q->c->ninput; i++) {
        ingot_tensor *x = q->c->inputs[i].node;
        q->in[i] = (ingot_value){.rank = x->rank, .dtype = (ingot_dtype)x->dtype};
        ok = ingot_static_shape(x, q->in[i].dims);
        size_t bytes = ok ? (size_t)count_of(&q->in[i]) * dtype_info[x->dtype].bytes : 0;
        q->in[i].data = ingot_alloc(q->c, bytes + 1);
        ok = ok && fread((void *)(uintptr_t)q->in[i].data, 1, bytes, f) == bytes;
        q->at[i] = q->in[i];
        if (x->dtype != INGOT_F64)
            continue;
        q->at[i].data = ingot_alloc(q->c, bytes + 1);
        q->number[q->n] = i;
        q->x[q->n++] = x;
    }
    if (f)
        fclose(f);
    return ok;
}

/* Along a direction: the loss beyond in the direction, less before it. */
static bool is_right(ModelCheck *q)
{
    const double h = 1e-6;
    ingot_value out[1 + MOST], side[1 + MOST];
    if (ingot_interpret(q->c, q->c->ninput, q->in, 1 + q->n, out) != INGOT_OK)
        return false;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        double slope = 0, size = 1, loss[2];
        for (int s = 0; s < 2; s++) {
            noise_state = 77 + turn;
            for (int i = 0; i < q->n; i++)
                for (int64_t k = 0; k < count_of(&q->in[q->number[i]]); k++) {
                    double d = noise(), *to = (double *)(uintptr_t)q->at[q->number[i]].data;
                    double term = ((const double *)out[1 + i].data)[k] * d;
                    to[k] = ((const double *)q->in[q->number[i]].data)[k] + (s ? -h : h) * d;
                    slope += s ? 0 : term;
                    size += s ? 0 : fabs(term);
                }
            if (ingot_interpret(q->c, q->c->ninput, q->at, 1 + q->n, side) != INGOT_OK)
                return false;
            loss[s] = *(const double *)side[0].data;
        }
        double want = (loss[0] - loss[1]) / (2 * h);
        if (!(fabs(slope - want) <= 1e-6 * (size + fabs(loss[0])))) {
            snprintf(told, sizeof told, "wrong, %.10g, by differences %.10g", slope, want);
            return false;
        }
    }
    return true;
}

/* The loss and all gradients, as bytes. */
static bool write_gradients(ModelCheck *q, const char *name)
{
    char path[1000];
    ingot_value out[1 + MOST];
    snprintf(path, sizeof path, "%s.out", name);
    if (ingot_interpret(q->c, q->c->ninput, q->in, 1 + q->n, out) != INGOT_OK)
        return false;
    FILE *f = fopen(path, "wb");
    bool ok = f != NULL;
    for (int i = 0; ok && i <= q->n; i++) {
        const size_t n = (size_t)count_of(&out[i]);
        ok = fwrite(out[i].data, sizeof(double), n, f) == n;
    }
    return f && !fclose(f) && ok;
}

static bool build_check(ModelCheck *q)
{
    char name[32];
    ingot_tensor *loss = loss_of(q->c);
    if (!loss || !q->n)
        return false;
    ingot_gradient(q->c, loss, q->n, q->x, q->g);
    q->c->noutput = 0;
    ingot_output(q->c, "loss", loss);
    for (int i = 0; i < q->n; i++) {
        snprintf(name, sizeof name, "gradient_%d", i);
        if (!q->g[i])
            q->g[i] = ingot_mul_c(q->c, q->x[i], 0);
        if (ingot_is_poison(q->g[i]))
            return false;
        ingot_output(q->c, name, q->g[i]);
    }
    return true;
}

static bool check_model(const char *name, bool writes)
{
    char path[1000];
    ingot_model_options o = {.struct_size = sizeof o};
    ModelCheck q = {.c = ingot_context_new(keep, NULL)};
    told[0] = 0;
    snprintf(path, sizeof path, "%s.onnx", name);
    ingot_onnx *m = ingot_onnx_open(q.c, path);
    bool ok = m && ingot_onnx_check(m) && ingot_onnx_build(m, &o) && read_inputs(&q, name) &&
              build_check(&q) && is_right(&q) && (!writes || write_gradients(&q, name));
    if (!ok && !told[0])
        snprintf(told, sizeof told, "nothing to differentiate");
    bool wrong = !strncmp(told, "wrong", 5);
    printf("%s: %s%s\n", name, ok ? "right" : wrong ? "" : "error: ", ok ? "" : told);
    ingot_context_free(q.c);
    if (m)
        ingot_onnx_close(m);
    return ok;
}

int main(int argc, char **argv)
{
    const bool writes = argc > 1 && !strcmp(argv[1], "--write");
    for (int i = 1 + writes; i < argc; i++)
        check_model(argv[i], writes);
    return 0;
}
