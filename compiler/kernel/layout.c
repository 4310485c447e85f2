/* layout.c - how logical coordinates become a storage offset.  A layout is a list of
 * constructors applied in order to the coordinate tuple and its dims; what remains is dense
 * row-major.  Strides follow from dims, so only the outermost dim may be a run-time integer for
 * them to be constants. */
#include "compiler.h"

Node *layout_offset(Context *c, const Layout *l, int rank, Node *const *dims, Node *const *coords)
{
    Node *d[INGOT_MAX_RANK * 2], *x[INGOT_MAX_RANK * 2];
    for (int i = 0; i < rank; i++) {
        d[i] = dims[i];
        x[i] = coords[i];
    }
    for (int i = 0; i < l->n; i++) {
        const LayoutOp *op = &l->op[i];
        switch (op->kind) {
        case LAYOUT_PERMUTE: {
            Node *dd[INGOT_MAX_RANK * 2], *xx[INGOT_MAX_RANK * 2];
            for (int j = 0; j < rank; j++) {
                dd[j] = d[op->perm.axis[j]];
                xx[j] = x[op->perm.axis[j]];
            }
            for (int j = 0; j < rank; j++) {
                d[j] = dd[j];
                x[j] = xx[j];
            }
            break;
        }
        case LAYOUT_SPLIT: /* axis -> (axis / a, axis % a) */
            for (int j = rank; j > op->axis + 1; j--) {
                d[j] = d[j - 1];
                x[j] = x[j - 1];
            }
            x[op->axis + 1] = idx_mod(c, x[op->axis], idx(c, op->a));
            d[op->axis + 1] = idx(c, op->a);
            x[op->axis] = idx_div(c, x[op->axis], idx(c, op->a));
            d[op->axis] = idx_div(c, idx_add(c, d[op->axis], idx(c, op->a - 1)), idx(c, op->a));
            rank++;
            break;
        case LAYOUT_PAD: /* a elements before, b after: a halo */
            x[op->axis] = idx_add(c, x[op->axis], idx(c, op->a));
            d[op->axis] = idx_add(c, d[op->axis], idx(c, op->a + op->b));
            break;
        }
    }
    Node *offset = idx(c, 0);
    for (int i = 0; i < rank; i++)
        offset = idx_add(c, idx_mul(c, offset, d[i]), x[i]);
    return offset;
}
