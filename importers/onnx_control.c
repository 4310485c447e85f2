/*
 * onnx_control.c - ONNX operators with subgraphs: If, Loop, Scan.
 *
 * A condition that is known now chooses its branch now, and the branches may then differ in every
 * way. Otherwise branches and bodies become regions, which capture what they use of the graph
 * around them.
 *
 * What a Loop carries has to keep its type and shape. A loop that carries something else (a tensor
 * that grows, a sequence) is unrolled, if the number of its iterations is known. Sequences and
 * optionals are carried and chosen tensor by tensor, in a form that is the same everywhere (onnx_form.c).
 */
#include <stdio.h>
#include <string.h>

#include "onnx.h"

enum {
    MAX_UNROLLED = 1024, /* iterations of a loop whose body is written out */
    MAX_SCANNED = 256    /* inputs of Scan */
};

/* ---- values as lists of tensors -------------------------------------------------------------- */

/* Appends the tensors v is made of to list, if there is one. Their number. */
static int leaves_of(ingot_context *c, const Value *v, ingot_tensor **list)
{
    int count = 0;
    if (v->kind == VALUE_TENSOR) {
        if (list)
            list[0] = v->tensor;
        return 1;
    }
    if (v->packed) {
        const Packed *p = v->packed;
        if (list) {
            list[0] = p->rows;
            list[1] = ingot_from_dim(c, p->length);
            list[2] = p->sizes;
        }
        return p->sizes ? 3 : 2;
    }
    if (v->present) {
        if (list)
            list[0] = ingot_from_dim(c, v->present);
        count = 1;
    }
    for (int i = 0; (v->kind == VALUE_SEQUENCE || v->kind == VALUE_OPTIONAL) && i < v->n; i++)
        count += leaves_of(c, v->item[i], list ? list + count : NULL);
    return count;
}

/* A value of v's structure made of other tensors, taken from *leaf on. */
static Value *value_from(Lowering *n, const Value *v, ingot_tensor ***leaf)
{
    if (v->kind == VALUE_TENSOR)
        return value_tensor(n->c, *(*leaf)++);
    Value *copy = ingot_alloc(n->c, sizeof *copy);
    *copy = *v;
    if (v->packed) {
        Packed *p = copy->packed = ingot_alloc(n->c, sizeof *p);
        *p = *v->packed;
        p->rows = *(*leaf)++;
        p->length = ingot_read_dim(n->c, *(*leaf)++, "length", 0, v->n);
        p->sizes = p->sizes ? *(*leaf)++ : NULL;
        return copy;
    }
    if (v->kind != VALUE_SEQUENCE && v->kind != VALUE_OPTIONAL)
        return copy;
    if (v->present)
        copy->present = ingot_read_dim(n->c, *(*leaf)++, "present", 0, 1);
    copy->item = ingot_alloc(n->c, (size_t)(v->n + 1) * sizeof *copy->item);
    for (int i = 0; i < v->n; i++)
        copy->item[i] = value_from(n, v->item[i], leaf);
    return copy;
}

static bool same_structure(const Value *a, const Value *b)
{
    if (a->kind != b->kind || a->n != b->n || !a->packed != !b->packed ||
        !a->present != !b->present)
        return false;
    if (a->packed)
        return form_equal(a, b);
    for (int i = 0; i < a->n; i++)
        if (!same_structure(a->item[i], b->item[i]))
            return false;
    return true;
}

static int all_leaves(ingot_context *c, int count, Value *const *v, ingot_tensor **list)
{
    int total = 0;
    for (int i = 0; i < count; i++)
        total += leaves_of(c, v[i], list ? list + total : NULL);
    return total;
}

static bool same_type(ingot_tensor *a, ingot_tensor *b)
{
    bool same = ingot_dtype_of(a) == ingot_dtype_of(b) && ingot_rank(a) == ingot_rank(b);
    for (int i = 0; same && i < ingot_rank(a); i++)
        same = ingot_dim_equal(ingot_shape(a, i), ingot_shape(b, i));
    return same;
}

static bool any_poison(int count, ingot_tensor *const *x)
{
    for (int i = 0; i < count; i++)
        if (ingot_is_poison(x[i]))
            return true;
    return false;
}

/* The values become the node's outputs. */
static ingot_tensor *give(Lowering *n, int count, Value **v)
{
    for (int i = 0; i < count && i < n->n_out; i++)
        n->out_value[i] = v[i];
    return n->failed ? ingot_poison(n->c) : NULL;
}

static ingot_tensor *fail(Lowering *n)
{
    n->failed = true;
    return ingot_poison(n->c);
}

/* ---- If -------------------------------------------------------------------------------------- */

/* The larger upper bound of two dims. */
static ingot_dim *room(Lowering *n, ingot_dim *a, ingot_dim *b)
{
    int64_t hi = ingot_dim_hi(a) > ingot_dim_hi(b) ? ingot_dim_hi(a) : ingot_dim_hi(b);
    return dim(n, hi);
}

/* x with each dim that is not that of `other` padded to a bound of both; the dims it has are
 * appended to list as scalars. Their number. */
static int pad_like(Lowering *n, ingot_tensor **x, ingot_tensor *other, ingot_tensor **list)
{
    ingot_dim *lo[INGOT_MAX_RANK], *hi[INGOT_MAX_RANK];
    int count = 0;
    for (int a = 0; a < ingot_rank(*x); a++) {
        ingot_dim *d = ingot_shape(*x, a), *e = ingot_shape(other, a);
        lo[a] = hi[a] = dim(n, 0);
        if (ingot_dim_equal(d, e))
            continue;
        hi[a] = ingot_dim_sub(n->c, room(n, d, e), d);
        list[count++] = ingot_from_dim(n->c, d);
    }
    if (count)
        *x = ingot_pad(n->c, *x, lo, hi);
    return count;
}

/* One branch as a region whose results are the leaves of *out, values of those forms; NULL after an error. With `other`,
 * the leaves of the other branch, they are padded and followed by their dims. */
static ingot_region *branch_region(Lowering *n, const Onnx__GraphProto *g, Value *const *form,
                                   Value **out, ingot_tensor *const *other)
{
    ingot_region *r = ingot_region_begin(n->c);
    ingot_tensor **leaf = NULL;
    int count = 0;
    bool ok = subgraph(n, g, 0, NULL, out);
    for (size_t i = 0; ok && i < g->n_output; i++)
        if (form[i] && form[i]->kind == VALUE_TENSOR)
            out[i] = value_tensor(n->c, align_axis(n, reshape_scalar(n, out[i]->tensor), 0,
                                                   ingot_rank(form[i]->tensor)));
        else if (form[i])
            out[i] = form_take(n->c, out[i], form[i]);
    if (ok) {
        int leaves = count = all_leaves(n->c, (int)g->n_output, out, NULL);
        leaf = ingot_alloc(n->c, ((size_t)count * (INGOT_MAX_RANK + 1) + 1) * sizeof *leaf);
        all_leaves(n->c, (int)g->n_output, out, leaf);
        ok = !any_poison(count, leaf);
        for (int i = 0; ok && other && i < leaves; i++)
            count += pad_like(n, &leaf[i], other[i], leaf + count);
    }
    ingot_region_end(n->c, r, ok ? count : 0, leaf);
    return ok ? r : NULL;
}

/* Where the branches' results differ in their dims only: each is padded to a common bound, and
 * what is left of it after the branch is as long as the branch says. */
static bool if_with_dims(Lowering *n, const Onnx__GraphProto *const *g, Value *const *form,
                         Value ***out, int leaves, ingot_tensor **result)
{
    ingot_region *r[2];
    size_t bytes = ((size_t)leaves * (INGOT_MAX_RANK + 1) + 1) * sizeof *result;
    ingot_tensor **leaf[2], **all = ingot_alloc(n->c, bytes);
    for (int b = 0; b < 2; b++) {
        leaf[b] = ingot_alloc(n->c, bytes);
        all_leaves(n->c, (int)g[b]->n_output, out[b], leaf[b]);
    }
    int count = leaves;
    for (int i = 0; i < leaves; i++)
        for (int a = 0; a < ingot_rank(leaf[0][i]); a++) {
            ingot_dim *d = ingot_shape(leaf[0][i], a), *e = ingot_shape(leaf[1][i], a);
            count += !ingot_dim_equal(d, e);
            if (!ingot_dim_equal(d, e) && ingot_dim_hi(room(n, d, e)) > INT32_MAX) {
                unsupported(n, "output %d has another shape in each branch, without bounds", i);
                return false;
            }
        }
    for (int b = 0; b < 2; b++)
        if (!(r[b] = branch_region(n, g[b], form, out[b], leaf[1 - b])))
            return false;
    ingot_if(n->c, n->in[0], r[0], r[1], count, all);
    if (any_poison(count, all))
        return false;
    int next = leaves;
    for (int i = 0; i < leaves; i++) {
        ingot_dim *begin[INGOT_MAX_RANK], *size[INGOT_MAX_RANK];
        for (int a = 0; a < ingot_rank(all[i]); a++) {
            ingot_dim *d = ingot_shape(leaf[0][i], a), *e = ingot_shape(leaf[1][i], a);
            begin[a] = dim(n, 0);
            size[a] = ingot_dim_equal(d, e) ? d
                                            : ingot_read_dim(n->c, all[next++], "branch_dim", 0,
                                                             ingot_dim_hi(room(n, d, e)));
        }
        result[i] = ingot_shrink(n->c, all[i], begin, size);
    }
    return !any_poison(leaves, result);
}

static bool same_dims(Lowering *n, int leaves, const Onnx__GraphProto *const *g, Value ***out)
{
    ingot_tensor **leaf[2];
    bool same = true;
    for (int b = 0; b < 2; b++) {
        leaf[b] = ingot_alloc(n->c, (size_t)(leaves + 1) * sizeof **leaf);
        all_leaves(n->c, (int)g[b]->n_output, out[b], leaf[b]);
    }
    for (int i = 0; i < leaves; i++)
        same = same && (same_type(leaf[0][i], leaf[1][i]) ||
                        ingot_dtype_of(leaf[0][i]) != ingot_dtype_of(leaf[1][i]) ||
                        ingot_rank(leaf[0][i]) != ingot_rank(leaf[1][i]));
    return same;
}

/* One element in each branch, in tensors of different rank: the one of more axes; else NULL. */
static Value *one_element(Value *a, Value *b)
{
    Value *v[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        if (v[i]->kind != VALUE_TENSOR)
            return NULL;
        for (int k = 0; k < ingot_rank(v[i]->tensor); k++)
            if (!dim_is(ingot_shape(v[i]->tensor, k), 1))
                return NULL;
    }
    int ranks[2] = {ingot_rank(a->tensor), ingot_rank(b->tensor)};
    return ranks[0] == ranks[1] ? NULL : v[ranks[1] > ranks[0]];
}

ingot_tensor *onnx_if(Lowering *n)
{
    static const char *const names[2] = {"then_branch", "else_branch"};
    const Onnx__GraphProto *g[2];
    Value **out[2];
    const int64_t *known;
    for (int b = 0; b < 2; b++) {
        g[b] = attr_graph(n, names[b]);
        if (!g[b])
            return ingot_poison(n->c);
        if (g[b]->n_output < (size_t)n->n_out || g[b]->n_output != g[0]->n_output)
            return fault(n, "its %s has %zu outputs, which does not fit", names[b], g[b]->n_output);
        out[b] = ingot_alloc(n->c, (g[b]->n_output + 1) * sizeof **out);
    }
    int count = (int)g[0]->n_output;
    if (ints_known(n, 0, &known) == 1) {
        int b = known[0] ? 0 : 1;
        return subgraph(n, g[b], 0, NULL, out[b]) ? give(n, count, out[b]) : fail(n);
    }
    ingot_region *r[2];
    Value **form = ingot_alloc(n->c, (size_t)(count + 1) * sizeof *form);
    bool same = true;
    for (int b = 0; b < 2; b++)
        if (!(r[b] = branch_region(n, g[b], form, out[b], NULL)))
            return fail(n);
    for (int i = 0; i < count; i++) {
        if ((form[i] = one_element(out[0][i], out[1][i]))) {
            same = false;
            continue;
        }
        if (same_structure(out[0][i], out[1][i]))
            continue;
        form[i] = form_join(n->c, form_of(n->c, out[0][i]), form_of(n->c, out[1][i]));
        same = false;
        if (!form[i])
            return unsupported(n, "output %d has another structure in each branch", i);
    }
    for (int b = 0; b < 2 && !same; b++) /* once more, in the forms that fit both */
        if (!(r[b] = branch_region(n, g[b], form, out[b], NULL)))
            return fail(n);
    int leaves = all_leaves(n->c, count, out[0], NULL);
    ingot_tensor **leaf = ingot_alloc(n->c, (size_t)(leaves + 1) * sizeof *leaf);
    if (!same_dims(n, leaves, g, out)) {
        if (!if_with_dims(n, g, form, out, leaves, leaf))
            return fail(n);
    } else {
        ingot_if(n->c, n->in[0], r[0], r[1], leaves, leaf);
        if (any_poison(leaves, leaf))
            return fail(n);
    }
    for (int i = 0; i < count; i++)
        out[0][i] = value_from(n, out[0][i], &leaf);
    return give(n, count, out[0]);
}

/* ---- Loop ------------------------------------------------------------------------------------ */

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

/* l->trip, of a loop that its condition ends: in an iteration that is known, or after it at most where nothing else is asked
 * for: the size of a stacked output is, the bound of a slice is not. */
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
            return fail(n);
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
    return give(n, n_out - 1, out + 1);
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

/* Sequences and optionals get forms that hold before and after each iteration: tried until nothing changes. False
 * after an error. */
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

/* A run fails whose loop would go on after the bound of its iterations. last: the condition after the
 * last one; stacked: an output. */
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

/* Carried value i begins with the rank that the body gives one element. What is not read before it is written may begin as
 * anything: of the type that the body gives, where that is known outside and the first iteration runs. Whether it is
 * another one now. */
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
        same_type(given->tensor, l->carried[i]->tensor) || loop_reads(l->body, i) ||
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

/* A region if every carried value keeps its structure and types, else unrolled. */
static ingot_tensor *loop_region(Lowering *n, LoopNode *l)
{
    int n_in = 2 + l->n_carried, n_out = 1 + l->n_carried + l->n_scan;
    int leaves = all_leaves(n->c, l->n_carried, l->carried, NULL), extra = l->cut;
    Value **in = ingot_alloc(n->c, (size_t)n_in * sizeof *in);
    Value **out = ingot_alloc(n->c, (size_t)n_out * sizeof *out);
    ingot_tensor **carried = ingot_alloc(n->c, (size_t)(leaves + 1) * sizeof *carried);
    ingot_tensor **param = ingot_alloc(n->c, (size_t)(leaves + 1) * sizeof *param), **next = param;
    all_leaves(n->c, l->n_carried, l->carried, carried);
    /* of a loop that a bound cuts, the last condition is one more carried value */
    carried[leaves] = l->cond ? as(n, l->cond, INGOT_BOOL) : ingot_scalar_i(n->c, INGOT_BOOL, 1);

    ingot_region *r = ingot_region_begin(n->c);
    in[0] = value_tensor(n->c, loop_counter(n, l, r));
    in[1] = value_tensor(n->c, ingot_region_param(n->c, r, INGOT_BOOL, 0, NULL));
    for (int i = 0; i < leaves; i++)
        param[i] = ingot_region_param_like(n->c, r, carried[i]);
    if (extra)
        (void)ingot_region_param_like(n->c, r, carried[leaves]);
    for (int i = 0; i < l->n_carried; i++) {
        in[2 + i] = value_from(n, l->carried[i], &next);
        if (l->step[i] && slices(l->body))
            in[2 + i] = value_tensor(n->c, loop_counts(n, l, i, in[0]->tensor));
    }
    bool ok = loop_body(n, l, in, out), same = true;
    ok = ok && out[0]->kind == VALUE_TENSOR;
    for (int i = 0; ok && i < l->n_scan; i++)
        ok = out[1 + l->n_carried + i]->kind == VALUE_TENSOR;
    if (!ok) {
        ingot_region_end(n->c, r, 0, NULL);
        return fail(n);
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
        ok = !any_poison(results - extra, result);
        if (ok)
            result[0] = l->counted ? true_scalar(n) : reshape_scalar(n, result[0]);
        if (extra) {
            memmove(result + 2 + leaves, result + 1 + leaves, (size_t)l->n_scan * sizeof *result);
            result[1 + leaves] = result[0];
        }
        for (int i = 0; ok && i < leaves; i++)
            same &= same_type(result[1 + i], carried[i]);
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
        return fail(n);
    if (!structure)
        return unsupported(n, "what it carries changes its structure");
    ingot_tensor **final = ingot_alloc(n->c, (size_t)results * sizeof *final);
    ingot_loop(n->c, l->trip, l->cond, leaves + extra, carried, r, l->n_scan, final);
    if (any_poison(results - 1, final) ||
        (extra && !loop_ended(n, l, final[leaves], final[leaves + 1])))
        return fail(n);
    for (int i = 0; i < l->n_carried; i++) {
        out[1 + i] = value_from(n, l->carried[i], &final);
        if (out[1 + i]->packed)
            out[1 + i]->packed->full = false;
    }
    final += extra;
    for (int i = 0; i < l->n_scan; i++)
        out[1 + l->n_carried + i] = value_tensor(n->c, *final++);
    return give(n, n_out - 1, out + 1);
}

/* Which of the carried values stay as they are, and which count. from: the number that each had in the file. */
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
    for (int i = 0; i < l->n_carried; i++)
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
        return fail(n);
    bool known = bool_known(n, l.cond, &run) && l.trip && ingot_dim_is_const(l.trip, &trip);
    l.form = ingot_alloc(n->c, (size_t)(l.n_carried + 1) * sizeof *l.form);
    ingot_tensor *result = NULL;
    if (sequences && known && trip <= MAX_UNROLLED)
        result = loop_unroll(n, &l);
    else
        result = sequences && !loop_forms(n, &l) ? fail(n) : loop_region(n, &l);
    return loop_outputs(n, result, l.n_carried, from);
}

/* ---- Scan ------------------------------------------------------------------------------------ */

typedef struct {
    const Onnx__GraphProto *body;
    int n_state, n_scan, n_stacked;
    ingot_tensor **state, **x; /* initial states; scanned tensors */
    int axis[MAX_SCANNED];
    bool reverse[MAX_SCANNED];
    ingot_dim *trip;
    ingot_tensor *length; /* of this sequence, a scalar; NULL: trip */
} ScanNode;

/* x at place i of one axis, which goes away. */
static ingot_tensor *element(Lowering *n, ingot_tensor *x, ingot_tensor *i, int axis)
{
    ingot_tensor *index[INGOT_MAX_RANK];
    ingot_dim *dims[INGOT_MAX_RANK];
    int rank = ingot_rank(x) - 1;
    for (int a = 0; a < rank; a++)
        dims[a] = ingot_shape(x, a + (a >= axis));
    for (int a = 0; a <= rank; a++)
        index[a] = a == axis ? i : ingot_iota(n->c, rank, dims, a - (a > axis));
    return ingot_gather(n->c, x, index);
}

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
            value_tensor(n->c, element(n, s->x[k], s->reverse[k] ? back : i, s->axis[k]));
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
    return !any_poison(n_out, out);
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
        one.state[k] = element(n, s->state[k], b, 0);
    for (int k = 0; k < s->n_scan; k++)
        one.x[k] = element(n, s->x[k], b, 0);
    one.length = lengths ? element(n, as(n, lengths, INGOT_I64), b, 0) : NULL;
    bool ok = scan_run(n, &one, result + 1);
    ingot_region_end(n->c, r, ok ? 1 + n_out : 0, result);
    if (!ok)
        return fail(n);
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
        return fail(n);
    for (int k = 0; k < n->n_out; k++) {
        int i = k - s.n_state;
        n->out[k] = i < 0 ? out[k] : place_axis(n, out[k], out_axes[i], out_reverse[i] != 0);
    }
    return n->n_out ? n->out[0] : ingot_poison(n->c);
}
