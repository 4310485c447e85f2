/* onnx_if.c - If: a branch that is chosen when compiling, or two regions. */

#include "onnx_control.h"

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

/* One branch as a region whose results are the leaves of *out, values of those forms; NULL after an
 * error. With `other`, the leaves of the other branch, they are padded and followed by their
 * dims. */
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
        ok = !control_poisoned(count, leaf);
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
    if (control_poisoned(count, all))
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
    return !control_poisoned(leaves, result);
}

/* Whether the results of both branches have the same shapes, in *same. False after an error: other
 * ranks, which no padding makes alike. */
static bool compare_dims(Lowering *n, int leaves, const Onnx__GraphProto *const *g, Value ***out,
                         bool *same)
{
    ingot_tensor **leaf[2];
    *same = true;
    for (int b = 0; b < 2; b++) {
        leaf[b] = ingot_alloc(n->c, (size_t)(leaves + 1) * sizeof **leaf);
        all_leaves(n->c, (int)g[b]->n_output, out[b], leaf[b]);
    }
    for (int i = 0; i < leaves; i++) {
        int rank[2] = {ingot_rank(leaf[0][i]), ingot_rank(leaf[1][i])};
        if (rank[0] != rank[1]) {
            unsupported(n,
                        "output %d has rank %d in one branch and rank %d in the other, and only "
                        "the run decides between them: --bind gives what decides it a value",
                        i, rank[0], rank[1]);
            return false;
        }
        *same = *same && (control_same_type(leaf[0][i], leaf[1][i]) ||
                          ingot_dtype_of(leaf[0][i]) != ingot_dtype_of(leaf[1][i]));
    }
    return true;
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
        return subgraph(n, g[b], 0, NULL, out[b]) ? control_give(n, count, out[b])
                                                  : control_fail(n);
    }
    ingot_region *r[2];
    Value **form = ingot_alloc(n->c, (size_t)(count + 1) * sizeof *form);
    bool same = true;
    for (int b = 0; b < 2; b++)
        if (!(r[b] = branch_region(n, g[b], form, out[b], NULL)))
            return control_fail(n);
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
            return control_fail(n);
    int leaves = all_leaves(n->c, count, out[0], NULL);
    ingot_tensor **leaf = ingot_alloc(n->c, (size_t)(leaves + 1) * sizeof *leaf);
    if (!compare_dims(n, leaves, g, out, &same))
        return control_fail(n);
    if (!same) {
        if (!if_with_dims(n, g, form, out, leaves, leaf))
            return control_fail(n);
    } else {
        ingot_if(n->c, n->in[0], r[0], r[1], leaves, leaf);
        if (control_poisoned(leaves, leaf))
            return control_fail(n);
    }
    for (int i = 0; i < count; i++)
        out[0][i] = value_from(n, out[0][i], &leaf);
    return control_give(n, count, out[0]);
}
