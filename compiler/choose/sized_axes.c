/* sized_axes.c - where the axis lies whose size only a run knows.
 *
 *     q[4][n][128]   ->   q[n][4][128]
 *
 * A box (STAGE .. move tma) has constant strides along all axes, so what products read by boxes has
 * that axis outermost: queries of a prompt. */
#include "choose.h"

/* Has the target a unit that boxes bring such operands to? */
static bool takes_boxes(const Target *t, int dtype)
{
    for (const Tc *u = NULL; (u = tc_next(&t->machine, u));)
        if (tc_in_place(u) && tc_reads((ingot_dtype)dtype, u->a))
            return true;
    return false;
}

bool *find_boxed(Arena *a, const Plan *p, Step *const *kernel, int n, const Target *t)
{
    bool *boxed = NEWN(a, bool, p->nbuffer);
    for (int i = 0; i < n; i++) {
        const View v = kernel_view(kernel[i]->kernel);
        for (int j = 0; j < v.nreduce; j++)
            for (int k = 0; k < 2 && is_sum_of_products(v.reduce[j]); k++) {
                const Node *load = below_casts(v.reduce[j]->src[0]->src[k]);
                if (load->op == OP_LOAD && takes_boxes(t, load->dtype))
                    boxed[kernel[i]->bufs[load->src[0]->arg.i]->id] = true;
            }
    }
    return boxed;
}

bool put_size_first(Buffer *b, int last)
{
    LayoutOp op = {.kind = LAYOUT_PERMUTE, .perm = {.n = b->rank}};
    int sized = -1, before = 0, n = 1;
    for (int i = 0; i < b->rank; i++) {
        int64_t size;
        if (idx_value(b->dims[i], &size)) {
            before += size > 1 && sized < 0;
            continue;
        }
        if (sized >= 0)
            return false;
        sized = i;
    }
    if (sized < 0 || sized == last || !before || b->layout.n)
        return false;
    op.perm.axis[0] = (int8_t)sized;
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < b->rank; i++)
            if (i != sized && (i == last) == which)
                op.perm.axis[n++] = (int8_t)i;
    b->layout.op[b->layout.n++] = op;
    return true;
}
