/* gpu_axes.c - axes of a product of matrices in blocks: what gpu_mma.c, gpu_wgmma.c and
 * gpu_attention.c have in common.
 *
 * An axis whose size only a run knows is made whole blocks of (MASK), which the grid counts, or a
 * loop; elements beyond its end are zeros where they are read, and are not stored. */
#include <string.h>

#include "gpu.h"

bool mma_has_few_rows(const Product *p, int64_t rows, int64_t columns)
{
    const JoinedAxis *few = rows < columns ? &p->rows : &p->columns;
    bool counted = true;
    for (int i = 0; i < few->n; i++)
        counted &= range_extent(few->range[i]) > 0;
    return counted && tc_few_rows(rows < columns ? rows : columns);
}

bool mma_can_meet(const Target *t, const Tc *u)
{
    return t->machine.units >> TC_WGMMA64_F16 & 1 && u->products == 1 && u->acc == INGOT_F32;
}

int64_t mma_room(const Extents *e, const Target *t)
{
    return e->few && t->triggers ? t->machine.shared / 2 - 8 * TC_RUN /* the device's own */
                                 : t->machine.shared;
}

int64_t mma_extent(const Nest *n, const char *name)
{
    int axis = nest_find(n, name, strlen(name));
    return axis < 0 ? -1 : n->axis[axis].extent;
}

int64_t mma_most(const Node *range)
{
    return range->hi + 1;
}

int64_t mma_least(const Node *range)
{
    const int64_t extent = range_extent(range), least = range->src[0]->lo;
    return extent >= 0 ? extent : least > 1 ? least : 1;
}

const char *mma_part(Nest *n, const char *axis, const char *part)
{
    return arena_printf(n->arena, "%s.%s", axis, part);
}

bool mma_mask(Nest *n, const char *axis, int64_t block)
{
    const int at = nest_find(n, axis, strlen(axis));
    const bool whole =
        at >= 0 && (n->axis[at].extent < 0 ? n->axis[at].within && n->axis[at].granule % block == 0
                                           : n->axis[at].extent % block == 0);
    return whole || nest_opt(n, OPT_MASK, axis, block);
}

bool mma_divide(Nest *n, const char *axis, int64_t block, const char **outer, const char **inner)
{
    *outer = NULL;
    *inner = axis;
    if (!mma_mask(n, axis, block))
        return false;
    if (mma_extent(n, axis) == block)
        return true;
    *outer = mma_part(n, axis, "o");
    *inner = mma_part(n, axis, "i");
    return nest_opt(n, OPT_SPLIT, axis, block);
}

bool mma_turns(Nest *n, const char *columns, const char **rows, const char **turn)
{
    *turn = NULL;
    if (!*rows || !columns || mma_extent(n, *rows) % MMA_TURN)
        return true;
    const char *blocks = *rows;
    return mma_extent(n, blocks) == MMA_TURN || mma_divide(n, blocks, MMA_TURN, rows, turn);
}

const char *mma_grid_order(Nest *n, const char *rows, const char *columns, const char *turn,
                           bool rows_stay)
{
    const bool sized = rows && ((rows_stay && !turn) || mma_extent(n, rows) < 0);
    const char *order = "", *const outer = sized ? columns : rows,
               *const inner = sized ? rows : columns;
    const char *const axis[] = {outer, inner, turn};
    for (int i = 0; i < 3; i++)
        if (axis[i])
            order = arena_printf(n->arena, *order ? "%s %s" : "%s%s", order, axis[i]);
    return order;
}

bool mma_bind(Nest *n, int count, const char *const *axis, int to)
{
    for (int i = 0; i < count; i++)
        if (axis[i] && !nest_opt(n, OPT_BIND, axis[i], to))
            return false;
    return true;
}

bool mma_bind_others(Nest *n, const JoinedAxis *others)
{
    for (int i = 0; i < others->n; i++)
        if (range_extent(others->range[i]) != 1 &&
            !nest_opt(n, OPT_BIND, others->of[i], BOUND_GRID))
            return false;
    return true;
}

int mma_operands(const Kernel *k, const View *v, Node **operand)
{
    int n = v->nfactor == 2 ? 2 : 0;
    for (int i = 0; i < n; i++)
        operand[i] = v->factor[i];
    for (int i = 0; i < v->nreduce && n; i++) {
        const View o = view_of_sum(k, v->reduce[i]);
        bool alike = o.nfactor == 2 && n < MMA_MOST_OPERANDS && o.dot->nsrc == v->dot->nsrc;
        if (v->reduce[i] == v->dot)
            continue;
        for (uint32_t j = 1; j < v->dot->nsrc && alike; j++)
            alike = o.dot->src[j] == v->dot->src[j];
        const int shared = alike && (o.factor[1] == operand[0] || o.factor[1] == operand[1]);
        Node *x = o.factor[shared], *y = o.factor[!shared];
        alike = alike && (x == operand[0] || x == operand[1]);
        for (int j = 0; j < v->nrange && alike; j++)
            alike = depends_on(y, v->range[j]) == depends_on(operand[x == operand[0]], v->range[j]);
        if (!alike)
            return 0;
        operand[n++] = y;
    }
    return n;
}

bool mma_stage(Nest **nest, const char *outer, int64_t depth)
{
    const View v = kernel_view((*nest)->k);
    const bool boxes = tc_in_place((*nest)->tc), gather = !depth && !boxes;
    Node *operand[MMA_MOST_OPERANDS];
    const int noperand = mma_operands((*nest)->k, &v, operand);
    for (; depth >= 2 || (gather && !depth); depth--) {
        Nest *tried = nest_clone(*nest);
        bool good = noperand > 0;
        for (int i = 0; i < noperand && good; i++) {
            Opt o = {.kind = OPT_STAGE,
                     .axis = outer,
                     .amount = operand[i]->src[0]->arg.i,
                     .depth = depth,
                     .tma = boxes};
            good = !opt_apply(tried, &o);
        }
        good = good && !nest_check(tried);
        nest_free(good ? *nest : tried);
        if (good)
            *nest = tried;
        if (good)
            return true;
    }
    return false;
}

void mma_swap_ranges(JoinedAxis *p, int i, int j)
{
    Node *r = p->range[i];
    const char *name = p->of[i];
    p->range[i] = p->range[j];
    p->of[i] = p->of[j];
    p->range[j] = r;
    p->of[j] = name;
}

void mma_order_rows(const Kernel *k, Node *x, JoinedAxis *rows)
{
    int64_t stride[MOST_RANGES];
    for (int i = 0; i < rows->n; i++)
        if (!access_stride(k, x, rows->range[i], &stride[i]) || stride[i] < 1)
            return;
    for (int i = 1; i < rows->n; i++)
        for (int j = i; j > 0 && stride[j - 1] < stride[j]; j--) {
            const int64_t s = stride[j];
            stride[j] = stride[j - 1];
            stride[j - 1] = s;
            mma_swap_ranges(rows, j - 1, j);
        }
}
