/* verify_moves.c - how far results move by rounding alone: a graph is interpreted again, rounded at
 * random.
 *
 *     g = sum(dy) - sum(dy)     0 but for rounding: 1e-10 in one order of terms, -3e-10 in another
 *     w' = w - rate g / |g|     a whole step, forwards or back
 *
 * No order of g's terms is the right one, and who divides by g gives a number that says nothing. */
#include <math.h>

#include "element.h"
#include "verify.h"

enum { RUNS = 8 };

/* A complex number is two; strings are none. */
static size_t numbers_of(const ingot_value *v)
{
    const char kind = dtype_info[v->dtype].kind;
    return v->dtype == INGOT_STRING ? 0 : tensor_of(v).count * (kind == 'c' ? 2 : 1);
}

static ingot_dtype part_of(ingot_dtype d)
{
    return d == INGOT_C64 ? INGOT_F32 : d == INGOT_C128 ? INGOT_F64 : d;
}

/* most[i] = max(most[i], |out[i] - want[i]|); other shapes: nothing is known of it. */
static void add_moves(Arena *a, const ingot_value *out, const ingot_value *want, double *most)
{
    const size_t n = numbers_of(want);
    const ingot_dtype part = part_of(want->dtype);
    if (!n || numbers_of(out) != n)
        return;
    double *x = NEWN(a, double, n), *y = NEWN(a, double, n);
    interp_to_f64(part, n, x, out->data);
    interp_to_f64(part, n, y, want->data);
    for (size_t i = 0; i < n; i++)
        most[i] = fmax(most[i], fabs(x[i] - y[i]));
}

static ingot_status results_move(Context *c, Arena *a, const ingot_value *in, int nout,
                                 const ingot_value *want, double **moves)
{
    ingot_value *out = NEWN(a, ingot_value, nout + 1);
    ingot_status status = INGOT_OK;
    for (int i = 0; i < nout; i++)
        moves[i] = NEWN(a, double, numbers_of(&want[i]) + 1);
    for (int run = 1; run <= RUNS && status == INGOT_OK; run++) {
        status = interpret_shaken(c, (uint64_t)run, c->ninput, in, nout, out);
        for (int i = 0; i < nout && status == INGOT_OK; i++)
            add_moves(a, &out[i], &want[i], moves[i]);
    }
    return status;
}

enum { FARTHER = 4 }; /* what was seen in RUNS runs is not the most that rounding does */

static bool difference_is_rounding(Arena *a, const Difference *d, const HostTensor *got,
                                   const HostTensor *want, const double *moves)
{
    const ingot_dtype part = part_of(want->dtype);
    if (d->shape || d->strings || d->nan || d->inf)
        return false;
    double *x = NEWN(a, double, d->count + 1), *y = NEWN(a, double, d->count + 1);
    interp_to_f64(part, d->count, x, got->data);
    interp_to_f64(part, d->count, y, want->data);
    for (size_t i = 0; i < d->count; i++) {
        const double apart = fabs(x[i] - y[i]);
        if (apart > d->limit && !(apart <= FARTHER * moves[i]))
            return false;
    }
    return true;
}

/* ---- once a difference asks for it ----------------------------------------------------------- */

struct Moves {
    Arena *a;
    Context *c;
    const ingot_value *in, *want;
    int nout;
    double **of; /* by result; NULL: it has not been asked for */
};

static bool computes_narrow(Arena *a, const Context *c)
{
    int n;
    Node **node = graph_nodes(a, c, &n);
    for (int i = 0; i < n; i++) {
        const bool computed = (op_is_alu(node[i]->op) && node[i]->op != OP_CAST) ||
                              node[i]->op == OP_REDUCE || node[i]->op == OP_SCAN;
        if (computed && dtype_is_float(node[i]->dtype) && dtype_info[node[i]->dtype].bytes < 4)
            return true;
    }
    return false;
}

struct Moves *moves_new(Arena *a, Context *c, const ingot_value *in, int nout,
                        const ingot_value *want)
{
    struct Moves *m = NEW(a, struct Moves);
    *m = (struct Moves){.a = a, .c = c, .in = in, .want = want, .nout = nout};
    return m;
}

struct Moves *moves_of_narrow(Arena *a, Context *c, const ingot_value *in, int nout,
                              const ingot_value *want)
{
    return computes_narrow(a, c) ? moves_new(a, c, in, nout, want) : NULL;
}

bool moves_explain(struct Moves *m, int i, const Difference *d, const HostTensor *got,
                   const HostTensor *want)
{
    if (!m->of) {
        m->of = NEWN(m->a, double *, m->nout + 1);
        if (results_move(m->c, m->a, m->in, m->nout, m->want, m->of) != INGOT_OK)
            return false;
    }
    return difference_is_rounding(m->a, d, got, want, m->of[i]);
}
