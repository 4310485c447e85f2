/* gradient_layout.c - how the gradient of a weight lies on a GPU.
 *
 * Its product has two operands that are computed, with their terms outermost, and units multiply
 * them with either one's elements as columns.  So it lies as the one kernel that reads it has the
 * rest: an optimizer's, whose states lie as the model declares them.  That kernel moves 16 bytes at
 * a time then, and turns nothing. */
#include "choose.h"

/* The axis of a buffer along which all that a kernel without sums writes lies, if that is fixed;
 * -1.
 */
static int read_along(const Step *s, const Buffer *b, const bool *fixed)
{
    const View v = kernel_view(s->kernel);
    int along = -1;
    for (int i = 0; i < v.nrange && !v.nreduce; i++) {
        bool good = range_extent(v.range[i]) > 1 && v.nstore > 0;
        int64_t stride;
        int axis = -1;
        for (int j = 0; j < v.nstore && good; j++)
            good = fixed[s->bufs[v.store[j]->src[0]->arg.i]->id] &&
                   access_stride(s->kernel, v.store[j], v.range[i], &stride) && stride == 1;
        for (int j = 0; j < v.nload && good; j++) {
            const Move m = access_move(s->kernel->c, v.load[j], v.range[i]);
            if (s->bufs[v.load[j]->src[0]->arg.i] == b && m.kind == MOVE_AXIS && m.stride == 1)
                axis = m.axis;
        }
        along = good && axis >= 0 ? axis : along;
    }
    return along;
}

int axis_of_reader(Step *const *kernel, int n, const bool *fixed, const bool *weight, const Step *s)
{
    const View v = kernel_view(s->kernel);
    const Buffer *b = s->bufs[v.store[0]->src[0]->arg.i];
    int along = -1, readers = 0;
    bool computed = v.nstore == 1 && v.nfactor == 2 && !fixed[b->id];
    for (int j = 0; j < v.nfactor && computed; j++)
        computed = !weight[s->bufs[v.factor[j]->src[0]->arg.i]->id];
    for (int i = 0; i < n && computed; i++)
        for (int j = 0; j < kernel[i]->nbuf; j++)
            if (kernel[i] != s && kernel[i]->bufs[j] == b) {
                along = read_along(kernel[i], b, fixed);
                readers++;
            }
    return readers == 1 ? along : -1;
}
