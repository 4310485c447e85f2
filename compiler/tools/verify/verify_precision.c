/* verify_precision.c - what --precision costs: how far each output is from that of the same model
 * whose products are all of f32, and which node's products add most to that.
 *
 *     y beside that of products of f32 (--precision): ... largest error 0.0041 of the range
 *     '/fc/Gemm' adds most: 0.0031 of the range with its products alone, 0.0019 without them
 *
 * Which node that is, is asked by halves: of all nodes with narrow products one half stays, then
 * the other; the half that leaves more of the error is halved again. So many nodes take twice
 * their logarithm in runs of the interpreter, and not a run each. Errors of many nodes add up at
 * random, so what counts of an error is the mean of its squares. */
#include <math.h>
#include <string.h>

#include "verify.h"

typedef struct {
    const Session *s;
    const ingot_value *exact; /* outputs of the model in f32 */
    const char **node;        /* whose products are narrow */
    int n;
} PrecisionSearch;

/* How far outputs are from the exact ones, as shares of these: all together, and the largest. */
typedef struct {
    double mean, largest;
} OutputError;

/* ---- one run --------------------------------------------------------------------------------- */

static OutputError error_of(const Session *s, const ingot_value *got, const ingot_value *exact)
{
    OutputError e = {0, 0};
    for (int i = 0; i < s->nout; i++) {
        const HostTensor x = tensor_of(&got[i]), y = tensor_of(&exact[i]);
        if (x.dtype != INGOT_F32 || y.dtype != INGOT_F32 || x.count != y.count)
            continue;
        const float *a = x.data, *b = y.data;
        double off = 0, all = 0, most = 0, range = 0;
        for (size_t k = 0; k < x.count; k++) {
            const double d = (double)a[k] - b[k];
            off += d * d;
            all += (double)b[k] * b[k];
            most = fmax(most, fabs(d));
            range = fmax(range, fabs((double)b[k]));
        }
        e.mean += all > 0 ? off / all : off;
        e.largest = fmax(e.largest, range > 0 ? most / range : most);
    }
    return e;
}

/* A pattern that this name alone matches. */
static const char *pattern_of(Arena *a, const char *name)
{
    char *text = arena_alloc(a, 2 * strlen(name) + 1), *at = text;
    for (; *name; name++) {
        if (strchr("*?[\\", *name))
            *at++ = '\\';
        *at++ = *name;
    }
    *at = 0;
    return text;
}

/* The outputs with these options; they are the model's, which the caller closes. */
static ingot_status run_with(const Session *s, const Options *o, LoadedModel *m, ingot_value *out)
{
    Session other = *s;
    bool ignored;
    other.o = (Options *)o;
    const ingot_status status = model_open(m, o, true);
    return status == INGOT_OK ? verify_interpret(&other, m, false, out, &ignored) : status;
}

/* The error of the model whose nodes lo <= i < hi are as they are and the others in f32; or, if
 * `rest`, the other way round. */
static ingot_status error_with(const PrecisionSearch *f, int lo, int hi, bool rest, OutputError *e)
{
    const Session *s = f->s;
    Options o = *s->o;
    o.precisions = NEWN(s->a, NodePrecision, o.nprecision + f->n + 1);
    if (o.nprecision)
        memcpy(o.precisions, s->o->precisions, (size_t)o.nprecision * sizeof *o.precisions);
    for (int i = 0; i < f->n; i++)
        if ((i >= lo && i < hi) == rest)
            o.precisions[o.nprecision++] =
                (NodePrecision){pattern_of(s->a, f->node[i]), INGOT_PRECISION_F32};
    LoadedModel m;
    ingot_value *out = NEWN(s->a, ingot_value, s->nout + 1);
    const ingot_status status = run_with(s, &o, &m, out);
    if (status == INGOT_OK)
        *e = error_of(s, out, f->exact);
    model_close(&m);
    return status;
}

/* ---- the node that adds most ----------------------------------------------------------------- */

static ingot_status search(const PrecisionSearch *f)
{
    int lo = 0, hi = f->n;
    OutputError alone = {0, 0}, without;
    ingot_status status = INGOT_OK;
    while (hi - lo > 1 && status == INGOT_OK) {
        const int half = lo + (hi - lo) / 2;
        OutputError first, second;
        status = error_with(f, lo, half, false, &first);
        if (status == INGOT_OK)
            status = error_with(f, half, hi, false, &second);
        if (status != INGOT_OK)
            return status;
        const bool later = second.mean > first.mean;
        *(later ? &lo : &hi) = half;
        alone = later ? second : first;
    }
    status = error_with(f, lo, hi, true, &without);
    if (status == INGOT_OK)
        printf("'%s' adds most: %.3g of the range with its products alone, %.3g without them "
               "(--precision f32:%s)\n",
               f->node[lo], alone.largest, without.largest, pattern_of(f->s->a, f->node[lo]));
    return status;
}

/* Millions of terms that the sums of a run add. */
static double run_terms(Arena *a, const Context *c)
{
    int n;
    double terms = 0;
    Node **node = graph_nodes(a, c, &n);
    for (int i = 0; i < n; i++) {
        double size = node[i]->op == OP_REDUCE ? 1e-6 : 0;
        for (int k = 0; size > 0 && k < node[i]->src[0]->rank; k++)
            size *= (double)node[i]->src[0]->shape[k]->hi;
        terms += size;
    }
    return terms;
}

/* Of the model with narrow products: names of their nodes, and what a run takes. */
static ingot_status narrow_nodes(PrecisionSearch *f, double *terms)
{
    LoadedModel m;
    const Session *s = f->s;
    ingot_status status = model_open(&m, s->o, true);
    if (status == INGOT_OK)
        status = model_build(&m, s->o, s->in, s->bound);
    f->node = NEWN(s->a, const char *, m.c->nnarrowed + 1);
    for (int i = 0; i < m.c->nnarrowed && status == INGOT_OK; i++)
        if (*m.c->narrowed[i])
            f->node[f->n++] = arena_strdup(s->a, m.c->narrowed[i]);
    *terms = status == INGOT_OK ? run_terms(s->a, m.c) : 0;
    model_close(&m);
    return status;
}

static ingot_status tell_most(const Session *s, const ingot_value *exact)
{
    enum { MANY = 25000 }; /* millions of terms, of all runs; more than a minute */
    PrecisionSearch f = {.s = s, .exact = exact};
    double terms;
    ingot_status status = narrow_nodes(&f, &terms);
    int runs = 1;
    for (int n = f.n; n > 1; n = (n + 1) / 2)
        runs += 2;
    if (status != INGOT_OK || f.n < 2)
        return status;
    if (runs * terms > MANY && !s->o->compile.verbose) {
        printf("which of %d nodes adds most to that takes %d runs of the interpreter: -v\n", f.n,
               runs);
        return INGOT_OK;
    }
    return search(&f);
}

ingot_status tell_precision(const Session *s, const ingot_value *narrow)
{
    Options o = *s->o;
    o.precision = INGOT_PRECISION_F32;
    o.precision_said = true;
    o.nprecision = 0;
    LoadedModel m;
    ingot_value *exact = NEWN(s->a, ingot_value, s->nout + 1);
    ingot_status status = run_with(s, &o, &m, exact);
    for (int i = 0; i < s->nout && status == INGOT_OK; i++) {
        const HostTensor x = tensor_of(&narrow[i]), y = tensor_of(&exact[i]);
        const Difference d = value_compare(s->a, &x, &y, tolerance_of(x.dtype));
        StrBuf sb = {0};
        difference_print(&sb, &d, &x, &y);
        printf("%s compared with that of products of f32 (--precision): %s\n", s->out_name[i],
               sb.data);
        sb_free(&sb);
    }
    if (status == INGOT_OK)
        status = tell_most(s, exact);
    model_close(&m);
    return status;
}
