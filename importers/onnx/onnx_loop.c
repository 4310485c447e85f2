/*
 * onnx_loop.c - Loop.
 *
 * What it carries has to keep its type and shape. A loop that carries something else (a tensor that
 * grows, a sequence) is unrolled, if the number of its iterations is known.
 */
#include <string.h>

#include "onnx_control.h"

enum { MAX_UNROLLED = 1024 }; /* iterations of a loop whose body is written out */

typedef struct {
    const Onnx__GraphProto *body;
    int n_carried, n_scan; /* carried values, which may be sequences; stacked outputs */
    int stacked;           /* the node's first stacked output */
    Value **carried;       /* and after them, n_same that stay as they are */
    int n_same;
    ingot_tensor *count, *cond; /* inputs M and cond, scalars; NULL: not limited */
    ingot_dim *trip;            /* NULL: until cond is false */
    Value **form;  /* of the carried values that are no tensors and change; else NULL */
    bool cut;      /* trip is a bound; a run that would go on after it fails */
    bool counted;  /* trip is when the condition of the body ends it */
    int again;     /* how often the body was built once more, for other beginnings */
    int64_t *step; /* of carried values that count iterations; else 0 */
} LoopNode;

/* What --dim or the file says of the first axis of a stacked output bounds the iterations. */
static bool declared_trip(Lowering *n, const LoopNode *l, int64_t *trip)
{
    int64_t dims[INGOT_MAX_RANK], lo;
    int rank;
    for (int i = 0; i < l->n_scan; i++)
        if (size_bounds(n, l->stacked + i, 0, -1, &lo, trip))
            return true;
    for (int i = 0; i < l->n_scan; i++)
        if (declared_shape(n, l->stacked + i, &rank, dims) && rank > 0) {
            *trip = dims[0];
            return true;
        }
    for (int i = 0; i < l->n_scan; i++)
        for (rank = 1; rank <= INGOT_MAX_RANK; rank++) {
            *trip = implied_size(n, l->stacked + i, 0, rank);
            if (*trip >= 0)
                return true;
        }
    *trip = INT32_MAX;
    return false;
}

static bool bool_known(Lowering *n, ingot_tensor *t, bool *value)
{
    int64_t v;
    int count;
    if (!t) {
        *value = true;
        return true;
    }
    if (!ingot_const_ints(n->c, t, &v, 1, &count) || count != 1)
        return false;
    *value = v != 0;
    return true;
}

/* Whether the body has operators that want to know integers, not tensors. */
static bool slices(const Onnx__GraphProto *g)
{
    static const char *const names[] = {"Slice", "Range", "Split", "Tile", "Expand"};
    for (size_t i = 0; i < g->n_node; i++)
        for (int k = 0; k < COUNT(names); k++)
            if (strcmp(g->node[i]->op_type, names[k]) == 0)
                return true;
    return false;
}

/* l->trip, of a loop that its condition ends: in an iteration that is known, or after it at most
 * where nothing else is asked for: the size of a stacked output is, the bound of a slice is not. */
static bool loop_counted(Lowering *n, LoopNode *l)
{
    ingot_dim *most = NULL, *count;
    bool runs, exact;
    if (!l->cond || (!l->n_scan && !slices(l->body)) ||
        (l->count && ingot_contents(n->c, l->count, &most, 1) != 1))
        return false;
    count = loop_count(n, l->body, l->n_carried, l->carried, l->step, &exact);
    exact = exact && bool_known(n, l->cond, &runs) && runs;
    if (!count || (l->n_scan && !exact))
        return false;
    l->trip = most ? ingot_dim_min(n->c, most, count) : count;
    l->counted = exact;
    if (exact)
        l->cond = NULL;
    return true;
}

/* Sets l->trip. False after an error. */
static bool loop_trip(Lowering *n, LoopNode *l)
{
    int64_t bound = INT32_MAX;
    if (loop_counted(n, l))
        return true;
    bool declared = declared_trip(n, l, &bound);
    if (!l->count) {
        l->trip = declared ? dim(n, bound) : NULL;
        l->cut = declared;
        if (!l->n_scan || declared)
            return true;
    } else if (ingot_contents(n->c, l->count, &l->trip, 1) == 1) {
        if (!l->n_scan || ingot_dim_hi(l->trip) <= INT32_MAX)
            return true;
        l->trip = dim(n, bound);
        l->cut = true;
        if (declared)
            return true;
    } else if (!l->n_scan || declared) {
        ingot_tensor *m = ingot_max_c(n->c, l->count, 0);
        l->cut = declared && l->cond; /* a greater count is fine if cond ends the loop before */
        if (l->cut || !declared)
            m = ingot_min(n->c, m, ingot_scalar_i(n->c, INGOT_I64, bound));
        l->trip = ingot_read_dim(n->c, m, "the number of its iterations", 0, bound);
        return !ingot_is_poison(l->trip);
    }
    unsupported(n,
                "no bound of its iterations is known when compiling, but they decide the size of "
                "an output; --bind gives the input '%s' a value, and --dim %s_0=0..N bounds them",
                l->count ? n->proto->input[0] : "M", n->proto->output[l->stacked]);
    return false;
}

static ingot_tensor *true_scalar(Lowering *n)
{
    return ingot_scalar_i(n->c, INGOT_BOOL, 1);
}

/* The body, evaluated once: in: the iteration's number, the condition, what is carried. */
static bool loop_body(Lowering *n, const LoopNode *l, Value *const *in, Value **out)
{
    int known = 2 + l->n_carried;
    Value **all = ingot_alloc(n->c, (size_t)(known + l->n_same) * sizeof *all);
    memcpy(all, in, (size_t)known * sizeof *all);
    memcpy(all + known, l->carried + l->n_carried, (size_t)l->n_same * sizeof *all);
    return subgraph(n, l->body, known + l->n_same, all, out);
}

/* Writes the iterations out. */
static ingot_tensor *loop_unroll(Lowering *n, LoopNode *l)
{
    int64_t trip = MAX_UNROLLED;
    bool run;
    int n_in = 2 + l->n_carried, n_out = 1 + l->n_carried + l->n_scan, done = 0;
    if ((l->trip && !ingot_dim_is_const(l->trip, &trip)) || !bool_known(n, l->cond, &run))
        return unsupported(n,
                           "what it carries changes its shape, and the number of its iterations is "
                           "not known when compiling");
    Value **in = ingot_alloc(n->c, (size_t)n_in * sizeof *in);
    Value **out = ingot_alloc(n->c, (size_t)n_out * sizeof *out);
    ingot_tensor ***scan = ingot_alloc(n->c, (size_t)(l->n_scan + 1) * sizeof *scan);
    for (int i = 0; i < l->n_scan; i++)
        scan[i] = ingot_alloc(n->c, MAX_UNROLLED * sizeof **scan);
    for (int i = 0; i < l->n_carried; i++)
        out[1 + i] = l->carried[i];
    for (; run && done < trip; done++) {
        if (done == MAX_UNROLLED)
            return unsupported(n, "what it carries changes its shape in more than %d iterations",
                               MAX_UNROLLED);
        in[0] = value_tensor(n->c, ingot_scalar_i(n->c, INGOT_I64, done));
        in[1] = value_tensor(n->c, true_scalar(n));
        memcpy(in + 2, out + 1, (size_t)l->n_carried * sizeof *in);
        if (!loop_body(n, l, in, out) || out[0]->kind != VALUE_TENSOR ||
            ingot_is_poison(out[0]->tensor))
            return control_fail(n);
        for (int i = 0; i < l->n_scan; i++)
            scan[i][done] = out[1 + l->n_carried + i]->tensor;
        if (!bool_known(n, out[0]->tensor, &run))
            return unsupported(n,
                               "what it carries changes its shape, and its condition is not known "
                               "when compiling");
    }
    for (int i = 0; i < l->n_scan; i++) {
        if (done == 0)
            return unsupported(n,
                               "it has no iterations, so that the shape of an output is not known");
        out[1 + l->n_carried + i] = value_tensor(n->c, ingot_stack(n->c, done, scan[i], 0));
    }
    return control_give(n, n_out - 1, out + 1);
}

/* The number of the iteration. As a dim it can be the bound of a slice, at the price of a step that
 * reads it. */
static ingot_tensor *loop_counter(Lowering *n, const LoopNode *l, ingot_region *r)
{
    ingot_tensor *i = ingot_region_param(n->c, r, INGOT_I64, 0, NULL);
    int64_t most = l->trip ? ingot_dim_hi(l->trip) - 1 : INT32_MAX;
    if (!slices(l->body) || most < 0)
        return i;
    return ingot_from_dim(n->c, ingot_read_dim(n->c, i, "i", 0, most));
}

/* The body once, to see what becomes of what it carries: a form of each; false after an error. */
static bool loop_trial(Lowering *n, const LoopNode *l, Value **form)
{
    int n_in = 2 + l->n_carried, n_out = 1 + l->n_carried + l->n_scan;
    Value **in = ingot_alloc(n->c, (size_t)n_in * sizeof *in);
    Value **out = ingot_alloc(n->c, (size_t)n_out * sizeof *out);
    ingot_region *r = ingot_region_begin(n->c);
    in[0] = value_tensor(n->c, loop_counter(n, l, r));
    in[1] = value_tensor(n->c, ingot_region_param(n->c, r, INGOT_BOOL, 0, NULL));
    for (int i = 0; i < l->n_carried; i++) {
        Value *v = l->form[i] ? form_take(n->c, l->carried[i], l->form[i]) : l->carried[i];
        int leaves = leaves_of(n->c, v, NULL);
        ingot_tensor **leaf = ingot_alloc(n->c, (size_t)(leaves + 1) * sizeof *leaf), **next = leaf;
        leaves_of(n->c, v, leaf);
        for (int k = 0; k < leaves; k++)
            leaf[k] = ingot_region_param_like(n->c, r, leaf[k]);
        in[2 + i] = value_from(n, v, &next);
    }
    bool ok = loop_body(n, l, in, out);
    for (int i = 0; ok && i < l->n_carried; i++)
        form[i] = l->form[i] ? form_of(n->c, out[1 + i]) : NULL;
    ingot_region_end(n->c, r, 0, NULL);
    return ok;
}

/* The length that a sequence has at most, if it grows as much in each iteration. */
static bool form_extend(Lowering *n, const LoopNode *l, Value *form, int from, int to)
{
    int64_t trips = l->trip ? ingot_dim_hi(l->trip) : INT32_MAX;
    if (to <= from)
        return true;
    if (trips > ONNX_MAX_LIST || from + (to - from) * trips > ONNX_MAX_LIST) {
        unsupported(
            n,
            "a sequence grows in each iteration, and no small bound of their number is known when "
            "compiling; --bind gives the input '%s' a value",
            l->count ? n->proto->input[0] : "M");
        return false;
    }
    form->n = from + (int)((to - from) * trips);
    if (form->packed)
        form->packed->full = true;
    return true;
}

static Value *inner_sequence(Value *v)
{
    Value *s = v->kind == VALUE_OPTIONAL && v->n ? v->item[0] : v;
    return s->kind == VALUE_SEQUENCE ? s : NULL;
}

/* Sequences and optionals get forms that hold before and after each iteration: tried until nothing
 * changes. False after an error. */
static bool loop_forms(Lowering *n, LoopNode *l)
{
    enum { TRIALS = 6 };
    Value **after = ingot_alloc(n->c, (size_t)(l->n_carried + 1) * sizeof *after);
    for (int i = 0; i < l->n_carried; i++) {
        if (l->carried[i]->kind == VALUE_TENSOR)
            continue;
        l->form[i] = form_of(n->c, l->carried[i]);
        if (!l->form[i]) {
            unsupported(n, "input %d is a sequence of tensors of several ranks", i + 2);
            return false;
        }
    }
    for (int trial = 0; trial < TRIALS; trial++) {
        bool changed = false;
        if (!loop_trial(n, l, after))
            return false;
        for (int i = 0; i < l->n_carried; i++) {
            if (!l->form[i])
                continue;
            Value *joined = form_join(n->c, l->form[i], after[i]);
            if (!joined) {
                unsupported(n, "what it carries as input %d changes its type", i + 2);
                return false;
            }
            Value *s = inner_sequence(joined), *old = inner_sequence(l->form[i]);
            if (s && !s->packed->full && !form_extend(n, l, s, old ? old->n : 0, s->n))
                return false;
            changed |= !form_equal(joined, l->form[i]);
            l->form[i] = joined;
        }
        if (changed)
            continue;
        Value **taken = ingot_alloc(n->c, (size_t)(l->n_carried + l->n_same + 1) * sizeof *taken);
        for (int i = 0; i < l->n_carried; i++)
            taken[i] = l->form[i] ? form_take(n->c, l->carried[i], l->form[i]) : l->carried[i];
        memcpy(taken + l->n_carried, l->carried + l->n_carried, (size_t)l->n_same * sizeof *taken);
        l->carried = taken;
        return true;
    }
    unsupported(n, "the elements of a sequence that it carries grow in each iteration");
    return false;
}

/* A run fails whose loop would go on after the bound of its iterations. last: the condition after
 * the last one; stacked: an output. */
static bool loop_ended(Lowering *n, const LoopNode *l, ingot_tensor *last, ingot_tensor *stacked)
{
    ingot_tensor *trip = ingot_from_dim(n->c, l->trip);
    ingot_tensor *all = ingot_eq(n->c, ingot_from_dim(n->c, ingot_shape(stacked, 0)), trip);
    ingot_tensor *more = ingot_and(n->c, last, all);
    if (l->count)
        more = ingot_and(n->c, more, ingot_gt(n->c, l->count, trip));
    return value_is(n, more, dim(n, 0),
                    "whether it goes on after the bound of its iterations (1: yes)");
}

/* Carried value i, as the number of the iteration gives it. */
static ingot_tensor *loop_counts(Lowering *n, const LoopNode *l, int i, ingot_tensor *iteration)
{
    ingot_tensor *first = l->carried[i]->tensor;
    ingot_tensor *k = as(n, iteration, ingot_dtype_of(first));
    return ingot_add(n->c, first, ingot_mul(n->c, k, ingot_like(n->c, k, (double)l->step[i])));
}

enum { MAX_AGAIN = 4 };

/* Carried value i begins with the rank that the body gives one element. What is not read before it
 * is written may begin as anything: of the type that the body gives, where that is known outside
 * and the first iteration runs. Whether it is another one now. */
static bool loop_begin_as(Lowering *n, LoopNode *l, int i, Value *given)
{
    int64_t dims[INGOT_MAX_RANK];
    bool runs;
    if (one_element(l->carried[i], given) && l->again < MAX_AGAIN) {
        l->carried[i] = value_tensor(n->c, align_axis(n, reshape_scalar(n, l->carried[i]->tensor),
                                                      0, ingot_rank(given->tensor)));
        return true;
    }
    if (l->carried[i]->kind != VALUE_TENSOR || given->kind != VALUE_TENSOR ||
        control_same_type(given->tensor, l->carried[i]->tensor) || loop_reads(l->body, i) ||
        !bool_known(n, l->cond, &runs) || !runs || (l->trip && ingot_dim_lo(l->trip) < 1))
        return false;
    int rank = ingot_rank(given->tensor);
    ingot_dim *d[INGOT_MAX_RANK];
    for (int a = 0; a < rank; a++) {
        if (!ingot_dim_is_const(ingot_shape(given->tensor, a), &dims[a]))
            return false;
        d[a] = dim(n, dims[a]);
    }
    ingot_tensor *zero = reshape_scalar(n, ingot_like(n->c, given->tensor, 0));
    l->carried[i] = value_tensor(n->c, ingot_expand(n->c, align_axis(n, zero, 0, rank), rank, d));
    return true;
}

/* What the body reads: the counter, the condition, carried values as parameters of the region like
 * `carried`. */
static void loop_params(Lowering *n, LoopNode *l, ingot_region *r, int leaves,
                        ingot_tensor *const *carried, Value **in)
{
    ingot_tensor **param = ingot_alloc(n->c, (size_t)(leaves + 1) * sizeof *param), **next = param;
    in[0] = value_tensor(n->c, loop_counter(n, l, r));
    in[1] = value_tensor(n->c, ingot_region_param(n->c, r, INGOT_BOOL, 0, NULL));
    for (int i = 0; i < leaves; i++)
        param[i] = ingot_region_param_like(n->c, r, carried[i]);
    if (l->cut)
        (void)ingot_region_param_like(n->c, r, carried[leaves]);
    for (int i = 0; i < l->n_carried; i++) {
        in[2 + i] = value_from(n, l->carried[i], &next);
        if (l->step[i] && slices(l->body))
            in[2 + i] = value_tensor(n->c, loop_counts(n, l, i, in[0]->tensor));
    }
}

/* The loop over the region, whose results are the node's: carried values in leaves, what is
 * scanned. */
static ingot_tensor *loop_close(Lowering *n, LoopNode *l, ingot_region *r, int leaves,
                                ingot_tensor **carried, Value **out)
{
    const int extra = l->cut, results = leaves + extra + l->n_scan;
    ingot_tensor **final = ingot_alloc(n->c, (size_t)(results + 1) * sizeof *final);
    ingot_loop(n->c, l->trip, l->cond, leaves + extra, carried, r, l->n_scan, final);
    if (control_poisoned(results, final) ||
        (extra && !loop_ended(n, l, final[leaves], final[leaves + 1])))
        return control_fail(n);
    for (int i = 0; i < l->n_carried; i++) {
        out[i] = value_from(n, l->carried[i], &final);
        if (out[i]->packed)
            out[i]->packed->full = false;
    }
    final += extra;
    for (int i = 0; i < l->n_scan; i++)
        out[l->n_carried + i] = value_tensor(n->c, *final++);
    return control_give(n, l->n_carried + l->n_scan, out);
}

/* A region if every carried value keeps its structure and types, else unrolled. */
static ingot_tensor *loop_region(Lowering *n, LoopNode *l)
{
    int n_in = 2 + l->n_carried, n_out = 1 + l->n_carried + l->n_scan;
    int leaves = all_leaves(n->c, l->n_carried, l->carried, NULL), extra = l->cut;
    Value **in = ingot_alloc(n->c, (size_t)n_in * sizeof *in);
    Value **out = ingot_alloc(n->c, (size_t)n_out * sizeof *out);
    ingot_tensor **carried = ingot_alloc(n->c, (size_t)(leaves + 1) * sizeof *carried);
    all_leaves(n->c, l->n_carried, l->carried, carried);
    /* of a loop that a bound cuts, the last condition is one more carried value */
    carried[leaves] = l->cond ? as(n, l->cond, INGOT_BOOL) : ingot_scalar_i(n->c, INGOT_BOOL, 1);

    ingot_region *r = ingot_region_begin(n->c);
    loop_params(n, l, r, leaves, carried, in);
    bool ok = loop_body(n, l, in, out), same = true;
    ok = ok && out[0]->kind == VALUE_TENSOR;
    for (int i = 0; ok && i < l->n_scan; i++)
        ok = out[1 + l->n_carried + i]->kind == VALUE_TENSOR;
    if (!ok) {
        ingot_region_end(n->c, r, 0, NULL);
        return control_fail(n);
    }
    for (int i = 0; same && i < l->n_carried; i++) {
        if (l->form[i])
            out[1 + i] = form_take(n->c, out[1 + i], l->form[i]);
        same = same_structure(out[1 + i], l->carried[i]);
    }
    int results = 1 + leaves + extra + l->n_scan;
    ingot_tensor **result = ingot_alloc(n->c, (size_t)(results + 1) * sizeof *result);
    bool structure = same;
    if (same) {
        all_leaves(n->c, n_out, out, result);
        ok = !control_poisoned(results - extra, result);
        if (ok)
            result[0] = l->counted ? true_scalar(n) : reshape_scalar(n, result[0]);
        if (extra) {
            memmove(result + 2 + leaves, result + 1 + leaves, (size_t)l->n_scan * sizeof *result);
            result[1 + leaves] = result[0];
        }
        for (int i = 0; ok && i < leaves; i++)
            same &= control_same_type(result[1 + i], carried[i]);
    }
    bool run, again = false;
    for (int i = 0; ok && !same && i < l->n_carried; i++)
        again |= loop_begin_as(n, l, i, out[1 + i]);
    if (again && l->again++ < MAX_AGAIN) {
        ingot_region_end(n->c, r, 0, NULL);
        return loop_region(n, l);
    }
    if (ok && !same && (!l->trip || ingot_dim_is_const(l->trip, NULL)) &&
        bool_known(n, l->cond, &run)) {
        ingot_region_end(n->c, r, 0, NULL);
        return loop_unroll(n, l);
    }
    ingot_region_end(n->c, r, ok && structure ? results : 0, result);
    if (!ok)
        return control_fail(n);
    if (!structure)
        return unsupported(n, "what it carries changes its structure");
    return loop_close(n, l, r, leaves, carried, out + 1);
}

/* Which of the carried values stay as they are, and which count. from: the number that each had in
 * the file. */
static void loop_vars(Lowering *n, LoopNode *l, int *from)
{
    const int all = l->n_carried;
    l->body = loop_sorted(n, l->body, &l->n_carried, from);
    l->n_same = all - l->n_carried;
    Value **carried = ingot_alloc(n->c, (size_t)(all + 1) * sizeof *carried);
    l->step = ingot_alloc(n->c, (size_t)(all + 1) * sizeof *l->step);
    for (int i = 0; i < all; i++)
        carried[i] = l->carried[from[i]];
    l->carried = carried;
    for (int i = 0; i < l->n_carried && (l->n_scan || slices(l->body)); i++) /* else nobody asks */
        if (carried[i]->kind == VALUE_TENSOR)
            l->step[i] = loop_step(n, l->body, i, carried);
}

/* The outputs are those of a loop that carries less: each takes its place. */
static ingot_tensor *loop_outputs(Lowering *n, ingot_tensor *result, int n_kept, const int *from)
{
    const int carried = n->n_in > 2 ? n->n_in - 2 : 0;
    Value **given = ingot_alloc(n->c, (size_t)(n->n_out + 1) * sizeof *given);
    memcpy(given, n->out_value, (size_t)n->n_out * sizeof *given);
    for (int i = 0; i < n->n_out; i++)
        n->out_value[i] = i < carried ? n->value[2 + i] : given[n_kept + i - carried];
    for (int k = 0; k < n_kept && from[k] < n->n_out; k++)
        n->out_value[from[k]] = given[k];
    return result;
}

ingot_tensor *onnx_loop(Lowering *n)
{
    LoopNode l = {.body = attr_graph(n, "body"), .n_carried = n->n_in > 2 ? n->n_in - 2 : 0};
    int64_t trip = MAX_UNROLLED;
    bool sequences = false, run;
    if (!l.body)
        return ingot_poison(n->c);
    l.carried = n->value + 2;
    l.n_scan = (int)l.body->n_output - 1 - l.n_carried;
    if (l.n_scan < 0 || n->n_out > l.n_carried + l.n_scan)
        return fault(n, "its body has %zu outputs, which does not fit", l.body->n_output);
    if (l.body->n_input != 2 + (size_t)l.n_carried)
        return fault(n, "its subgraph '%s' has %zu inputs, not %d", l.body->name, l.body->n_input,
                     2 + l.n_carried);
    for (int i = 0; i < l.n_carried; i++) {
        if (!l.carried[i])
            return fault(n, "input %d is missing", i + 2);
        sequences |= l.carried[i]->kind != VALUE_TENSOR;
    }
    for (int i = 0; i < 2 && i < n->n_in; i++)
        if (n->value[i] && !n->in[i])
            return fault(n, "input %d has to be a tensor", i);
    if (n->n_in > 0 && n->in[0])
        l.count = as(n, reshape_scalar(n, n->in[0]), INGOT_I64);
    if (n->n_in > 1 && n->in[1])
        l.cond = reshape_scalar(n, n->in[1]);
    int *from = ingot_alloc(n->c, (size_t)(l.n_carried + 1) * sizeof *from);
    l.stacked = l.n_carried;
    loop_vars(n, &l, from);
    if (!loop_trip(n, &l))
        return control_fail(n);
    bool known = bool_known(n, l.cond, &run) && l.trip && ingot_dim_is_const(l.trip, &trip);
    l.form = ingot_alloc(n->c, (size_t)(l.n_carried + 1) * sizeof *l.form);
    ingot_tensor *result = NULL;
    if (sequences && known && trip <= MAX_UNROLLED)
        result = loop_unroll(n, &l);
    else
        result = sequences && !loop_forms(n, &l) ? control_fail(n) : loop_region(n, &l);
    return loop_outputs(n, result, l.n_carried, from);
}
