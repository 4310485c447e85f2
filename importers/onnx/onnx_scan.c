/* onnx_scan.c - Scan. */
#include <stdio.h>

#include "onnx_control.h"

enum { MAX_SCANNED = 256 }; /* inputs */

typedef struct {
    const Onnx__GraphProto *body;
    int n_state, n_scan, n_stacked;
    ingot_tensor **state, **x; /* initial states; scanned tensors */
    int axis[MAX_SCANNED];
    bool reverse[MAX_SCANNED];
    ingot_dim *trip;
    ingot_tensor *length; /* of this sequence, a scalar; NULL: trip */
} ScanNode;

/* One sequence: out gets n_state final states and n_stacked outputs, stacked at axis 0 in the order
 * of the iterations. Past the length states stay and outputs are zero. False after an error. */
static bool scan_run(Lowering *n, const ScanNode *s, ingot_tensor **out)
{
    int n_in = s->n_state + s->n_scan, n_out = s->n_state + s->n_stacked;
    Value **in = ingot_alloc(n->c, (size_t)(n_in + 1) * sizeof *in);
    Value **got = ingot_alloc(n->c, (size_t)(n_out + 1) * sizeof *got);
    ingot_tensor **result = ingot_alloc(n->c, (size_t)(n_out + 1) * sizeof *result);
    ingot_region *r = ingot_region_begin(n->c);
    ingot_tensor *i = ingot_region_param(n->c, r, INGOT_I64, 0, NULL), *back = i;
    result[0] = ingot_region_param(n->c, r, INGOT_BOOL, 0, NULL);
    ingot_tensor *length = s->length ? s->length : ingot_from_dim(n->c, s->trip);
    back = ingot_sub(n->c, ingot_add_c(n->c, length, -1), i);
    for (int k = 0; k < s->n_state; k++)
        in[k] = value_tensor(n->c, ingot_region_param_like(n->c, r, s->state[k]));
    for (int k = 0; k < s->n_scan; k++)
        in[s->n_state + k] =
            value_tensor(n->c, ingot_element(n->c, s->x[k], s->reverse[k] ? back : i, s->axis[k]));
    bool ok = subgraph(n, s->body, n_in, in, got);
    ingot_tensor *inside = s->length ? ingot_lt(n->c, i, s->length) : NULL;
    for (int k = 0; ok && k < n_out; k++) {
        ok = got[k]->kind == VALUE_TENSOR && !ingot_is_poison(got[k]->tensor);
        if (!ok)
            break;
        ingot_tensor *t = got[k]->tensor;
        ingot_tensor *otherwise = k < s->n_state ? in[k]->tensor : like(n, t, 0);
        result[1 + k] = inside ? ingot_where(n->c, inside, t, otherwise) : t;
    }
    ingot_region_end(n->c, r, ok ? 1 + n_out : 0, result);
    if (!ok)
        return false;
    ingot_loop(n->c, s->trip, NULL, s->n_state, s->state, r, s->n_stacked, out);
    return !control_poisoned(n_out, out);
}

/* A list attribute of one entry for each of `count`, 0 if it is missing. NULL after an error. */
static const int64_t *flags(Lowering *n, const char *name, int count)
{
    const int64_t *v;
    int given = attr_ints(n, name, &v);
    if (n->failed)
        return NULL;
    if (given >= 0 && given != count) {
        fault(n, "its attribute '%s' has %d entries, not %d", name, given, count);
        return NULL;
    }
    return given < 0 ? ingot_alloc(n->c, (size_t)(count + 1) * sizeof *v) : v;
}

/* Opset 8: every tensor has a batch axis 0 that the body does not see, time is axis 1. */
static ingot_tensor *scan_batched(Lowering *n, ScanNode *s, ingot_tensor *lengths)
{
    ScanNode one = *s;
    int n_out = s->n_state + s->n_stacked;
    ingot_tensor *outside = s->n_state ? s->state[0] : s->x[0];
    if (ingot_rank(outside) < 1)
        return fault(n, "its inputs need a batch axis");
    ingot_tensor **result = ingot_alloc(n->c, (size_t)(n_out + 1) * sizeof *result);
    ingot_tensor **out = ingot_alloc(n->c, (size_t)(n_out + 1) * sizeof *out);
    one.state = ingot_alloc(n->c, (size_t)(s->n_state + 1) * sizeof *one.state);
    one.x = ingot_alloc(n->c, (size_t)(s->n_scan + 1) * sizeof *one.x);
    ingot_region *r = ingot_region_begin(n->c);
    ingot_tensor *b = ingot_region_param(n->c, r, INGOT_I64, 0, NULL);
    result[0] = ingot_region_param(n->c, r, INGOT_BOOL, 0, NULL);
    for (int k = 0; k < s->n_state; k++)
        one.state[k] = ingot_element(n->c, s->state[k], b, 0);
    for (int k = 0; k < s->n_scan; k++)
        one.x[k] = ingot_element(n->c, s->x[k], b, 0);
    one.length = lengths ? ingot_element(n->c, as(n, lengths, INGOT_I64), b, 0) : NULL;
    bool ok = scan_run(n, &one, result + 1);
    ingot_region_end(n->c, r, ok ? 1 + n_out : 0, result);
    if (!ok)
        return control_fail(n);
    ingot_loop(n->c, ingot_shape(outside, 0), NULL, 0, NULL, r, n_out, out);
    for (int k = 0; k < n_out && k < n->n_out; k++)
        n->out[k] = out[k];
    return out[0];
}

/* Stacked outputs put the new axis where it belongs. */
static ingot_tensor *place_axis(Lowering *n, ingot_tensor *x, int64_t given, bool reverse)
{
    int perm[INGOT_MAX_RANK], axis, rank = ingot_rank(x);
    if (!axis_in(n, given, rank, &axis))
        return ingot_poison(n->c);
    if (reverse)
        x = ingot_flip(n->c, x, 1);
    for (int a = 0; a < rank; a++)
        perm[a] = a == axis ? 0 : a < axis ? a + 1 : a;
    return ingot_permute(n->c, x, perm);
}

static bool scan_inputs(Lowering *n, ScanNode *s, int first, const int64_t *axes,
                        const int64_t *reverse)
{
    for (int k = 0; k < s->n_scan; k++) {
        int batch = n->version < 9;
        if (!axis_in(n, axes[k], ingot_rank(s->x[k]) - batch, &s->axis[k]))
            return false;
        s->reverse[k] = reverse[k] != 0;
        ingot_dim *size = ingot_shape(s->x[k], s->axis[k] + batch);
        s->trip = k ? s->trip : size;
        char what[160];
        snprintf(what, sizeof what, "the length of its input '%.100s'", n->proto->input[first + k]);
        if (!ingot_require(n->c, size, s->trip, s->trip, what))
            return false;
    }
    return true;
}

ingot_tensor *onnx_scan(Lowering *n)
{
    ScanNode s = {.body = attr_graph(n, "body")};
    int64_t count = attr_int(n, "num_scan_inputs", 0);
    int batch = n->version < 9, given = n->n_in - batch;
    if (!s.body)
        return ingot_poison(n->c);
    if (count < 1 || count > given || count > MAX_SCANNED)
        return fault(n, "its attribute 'num_scan_inputs' is %lld", (long long)count);
    s.n_scan = (int)count;
    s.n_state = given - s.n_scan;
    s.n_stacked = (int)s.body->n_output - s.n_state;
    s.state = n->in + batch;
    s.x = s.state + s.n_state;
    if (s.n_stacked < 0 || n->n_out > s.n_state + s.n_stacked)
        return fault(n, "its body has %zu outputs, which does not fit", s.body->n_output);
    for (int i = 0; i < given; i++)
        if (!s.state[i])
            return fault(n, "input %d is missing", i + batch);
    const int64_t *axes = flags(n, batch ? "" : "scan_input_axes", s.n_scan);
    const int64_t *reverse = flags(n, batch ? "directions" : "scan_input_directions", s.n_scan);
    const int64_t *out_axes = flags(n, "scan_output_axes", s.n_stacked);
    const int64_t *out_reverse = flags(n, "scan_output_directions", s.n_stacked);
    if (n->failed || !scan_inputs(n, &s, s.n_state + batch, axes, reverse))
        return ingot_poison(n->c);
    if (batch)
        return scan_batched(n, &s, n->in[0]);
    ingot_tensor **out = ingot_alloc(n->c, (size_t)(s.n_state + s.n_stacked + 1) * sizeof *out);
    if (!scan_run(n, &s, out))
        return control_fail(n);
    for (int k = 0; k < n->n_out; k++) {
        int i = k - s.n_state;
        n->out[k] = i < 0 ? out[k] : place_axis(n, out[k], out_axes[i], out_reverse[i] != 0);
    }
    return n->n_out ? n->out[0] : ingot_poison(n->c);
}
