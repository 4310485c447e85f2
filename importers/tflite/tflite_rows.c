/*
 * tflite_rows.c - a row of a tensor that is replaced at a place that only the run knows, as
 * TensorFlow's converter writes lists of tensors in loops (LSTM and GRU of Keras):
 *
 *     CONCATENATION(SLICE(x, [0, 0 ..], [i, -1 ..]), row, SLICE(x, [i + 1, 0 ..], [-1, -1 ..]))
 *
 * The slices have sizes of the run, which are not built: what is concatenated is x, with `row`
 * where its first axis is i.
 */
#include "tflite_model.h"

struct TfliteRows {
    const ingot_tflite_graph *g;
    const ingot_tflite_op **by; /* of each tensor: who makes it, or NULL */
    int *uses;                  /* operators and outputs that read it */
};

TfliteRows *tflite_rows(TfliteModel *m, const ingot_tflite_graph *g)
{
    TfliteRows *r = ingot_alloc(m->c, sizeof *r);
    *r = (TfliteRows){g, ingot_alloc(m->c, (g->n_tensors + 1) * sizeof *r->by),
                      ingot_alloc(m->c, (g->n_tensors + 1) * sizeof *r->uses)};
    for (size_t i = 0; i < g->n_ops; i++) {
        for (size_t k = 0; k < g->ops[i].out.n; k++)
            if (ingot_tflite_i32(&g->ops[i].out, k) >= 0)
                r->by[ingot_tflite_i32(&g->ops[i].out, k)] = &g->ops[i];
        for (size_t k = 0; k < g->ops[i].in.n; k++)
            if (ingot_tflite_i32(&g->ops[i].in, k) >= 0)
                r->uses[ingot_tflite_i32(&g->ops[i].in, k)]++;
    }
    for (size_t i = 0; i < g->out.n; i++)
        r->uses[ingot_tflite_i32(&g->out, i)]++;
    return r;
}

static const ingot_tflite_op *made_by(const TfliteRows *r, int32_t tensor, int builtin, size_t n_in)
{
    const ingot_tflite_op *op = tensor < 0 ? NULL : r->by[tensor];
    return op && op->builtin == builtin && op->in.n == n_in ? op : NULL;
}

/* Is it a constant of integers that are all v? */
static bool all_are(const TfliteRows *r, int32_t tensor, int32_t v)
{
    const ingot_tflite_tensor *t = tensor < 0 ? NULL : &r->g->tensors[tensor];
    if (!t || !t->data || t->type != INGOT_TFLITE_INT32)
        return false;
    const ingot_tflite_list all = {t->data, t->bytes / 4};
    for (size_t i = 0; i < all.n; i++)
        if (ingot_tflite_i32(&all, i) != v)
            return false;
    return all.n > 0;
}

/* [i, rest, rest ..] of a number i: its tensor, or -1 */
static int32_t first_of(const TfliteRows *r, int32_t list, int32_t rest)
{
    const ingot_tflite_op *joined = made_by(r, list, TFL_CONCATENATION, 2);
    const ingot_tflite_op *one =
        joined ? made_by(r, ingot_tflite_i32(&joined->in, 0), TFL_RESHAPE, 2) : NULL;
    if (!one || !all_are(r, ingot_tflite_i32(&joined->in, 1), rest))
        return -1;
    return ingot_tflite_i32(&one->in, 0);
}

/* j is i + 1 */
static bool follows(const TfliteRows *r, int32_t i, int32_t j)
{
    const ingot_tflite_op *sum = made_by(r, j, TFL_ADD, 2);
    if (!sum || ingot_tflite_int(&sum->options, 0, 1, 0))
        return false;
    const int32_t a = ingot_tflite_i32(&sum->in, 0), b = ingot_tflite_i32(&sum->in, 1);
    return (a == i && all_are(r, b, 1)) || (b == i && all_are(r, a, 1));
}

int32_t tflite_row_at(const TfliteRows *r, const ingot_tflite_op *op)
{
    if (op->builtin != TFL_CONCATENATION || op->in.n != 3 || op->out.n != 1 ||
        ingot_tflite_i32(&op->out, 0) < 0 || ingot_tflite_i32(&op->in, 1) < 0 ||
        ingot_tflite_int(&op->options, 0, 4, 0) || ingot_tflite_int(&op->options, 1, 1, 0))
        return -1;
    const int32_t front = ingot_tflite_i32(&op->in, 0), behind = ingot_tflite_i32(&op->in, 2);
    const ingot_tflite_op *a = made_by(r, front, TFL_SLICE, 3),
                          *b = made_by(r, behind, TFL_SLICE, 3);
    if (!a || !b || r->uses[front] != 1 || r->uses[behind] != 1 ||
        ingot_tflite_i32(&a->in, 0) != ingot_tflite_i32(&b->in, 0) ||
        !all_are(r, ingot_tflite_i32(&a->in, 1), 0) || !all_are(r, ingot_tflite_i32(&b->in, 2), -1))
        return -1;
    const int32_t i = first_of(r, ingot_tflite_i32(&a->in, 2), -1),
                  j = first_of(r, ingot_tflite_i32(&b->in, 1), 0);
    return i >= 0 && follows(r, i, j) ? i : -1;
}

bool tflite_is_part_of_row(const TfliteRows *r, const ingot_tflite_op *op)
{
    const int32_t out = op->builtin == TFL_SLICE && op->out.n ? ingot_tflite_i32(&op->out, 0) : -1;
    for (size_t i = 0; out >= 0 && r->uses[out] == 1 && i < r->g->n_ops; i++) {
        const ingot_tflite_op *to = &r->g->ops[i];
        if (to->builtin == TFL_CONCATENATION && to->in.n == 3 &&
            (ingot_tflite_i32(&to->in, 0) == out || ingot_tflite_i32(&to->in, 2) == out))
            return tflite_row_at(r, to) >= 0;
    }
    return false;
}

ingot_tensor *tflite_with_row(TfliteModel *m, ingot_tensor *x, ingot_tensor *i, ingot_tensor *row)
{
    ingot_dim *dims[INGOT_MAX_RANK];
    if (ingot_is_poison(x) || ingot_is_poison(i) || ingot_is_poison(row))
        return ingot_poison(m->c);
    const int rank = ingot_rank(x);
    int64_t one;
    if (ingot_rank(row) != rank || !ingot_dim_is_const(ingot_shape(row, 0), &one) || one != 1)
        return ingot_error(m->c, INGOT_INVALID, "what is put in place of a row is none");
    for (int a = 0; a < rank; a++)
        dims[a] = a ? ingot_dim_const(m->c, 1) : ingot_shape(x, 0);
    ingot_tensor *at = ingot_cast(m->c, ingot_iota(m->c, rank, dims, 0), INGOT_I32);
    return ingot_where(m->c, ingot_eq(m->c, at, i), row, x);
}
