/* cpu_prefetch.c - what a contraction asks memory for ahead.
 *
 *     weights, of panels    the next panel, while the rows of results use this one
 *     weights, read once    some kilobytes ahead: nothing waits behind them
 *     states, read once     a cache of keys or values, the same
 *
 * What is read again is in a cache by then, and a core looks a few lines ahead by itself. */
#include "cpu.h"

bool is_large(const Kernel *k, const Buffer *const *bufs, const Node *load, BufferKind kind,
              const Target *t)
{
    const int arg = (int)load->src[0]->arg.i;
    double bytes = (double)dtype_info[load->dtype].bytes;
    int64_t size;
    for (int d = 0; d < k->args[arg].rank; d++)
        bytes *= idx_value(k->args[arg].dims[d], &size) ? (double)size : 0;
    return bufs[arg]->kind == kind && bytes > t->machine.level[0].bytes;
}

static bool is_four(const RegisterTile *tile, const Node *range)
{
    for (int i = 0; i < tile->nfour; i++)
        if (tile->four[i] == range)
            return true;
    return false;
}

/* Of the dots, be they of the first sum or of one beside it (gates beside what they gate). */
static bool is_operand(const View *v, const RegisterTile *tile, Node *load)
{
    for (int j = 0; j < v->nfactor; j++)
        if (v->factor[j] == load)
            return true;
    for (int i = 0; i < tile->nfour; i++)
        if (depends_on(load, tile->four[i]))
            return true;
    return false;
}

/* The innermost loop over terms that the load moves with, and the bytes that an iteration reads;
 * within: of loops over the dots of a block alone. NULL: there is none. */
static const NestAxis *loop_of_stream(const Nest *nest, const RegisterTile *tile, Node *load,
                                      bool within, double *bytes)
{
    const NestAxis *terms = NULL;
    *bytes = (double)(tile->width * tile->vectors * dtype_info[load->dtype].bytes);
    for (int i = 0; i < nest->k->naxis; i++) {
        Node *range = nest->k->axes[i].range;
        if (nest->k->axes[i].reduced && depends_on(load, range) &&
            (!within || is_four(tile, range)))
            *bytes *= (double)range->hi + 1;
    }
    for (int i = 0; i < nest->norder; i++) {
        const NestAxis *x = &nest->axis[nest->order[i]];
        Node *range = nest->k->axes[x->root].range;
        if (x->reduced && x->form == AXIS_LOOP && x->extent != 1 && depends_on(load, range) &&
            (!within || is_four(tile, range))) {
            terms = x;
            *bytes /= (double)x->extent;
        }
    }
    return terms;
}

/* What a vector's product reads once has nothing to wait behind: it is asked for some kilobytes
 * ahead. Where a line is one product, most cores themselves are as far ahead; and asking takes as
 * long as it saves where it is for few lines at a time; a line of which several dots are made of
 * pairs takes long enough. Dots that are no pairs: digits that are terms of several dots, by the
 * loop over the dots of their block, or over the parts of a block whose dots are written out. */
static bool prefetch_stream(Nest *nest, const RegisterTile *tile, Node *load)
{
    const Machine *m = &nest->target->machine;
    const int lines = m->pairs ? 1 : 2, arg = (int)load->src[0]->arg.i;
    const bool dots = tile->nfour && !m->pairs;
    double bytes, uses = 1;
    for (int i = 0; i < nest->k->naxis; i++) {
        Node *range = nest->k->axes[i].range;
        if (nest->k->axes[i].reduced && !depends_on(load, range))
            uses *= (double)range->hi + 1;
    }
    for (int i = 0; i < nest->norder; i++) {
        const NestAxis *x = &nest->axis[nest->order[i]];
        if (!x->reduced && x->extent != 1 && !depends_on(load, nest->k->axes[x->root].range))
            return false;
    }
    const NestAxis *terms = loop_of_stream(nest, tile, load, tile->nfour > 0, &bytes);
    if (!terms && tile->nfour)
        terms = loop_of_stream(nest, tile, load, false, &bytes);
    if ((tile->nfour && bytes < lines * m->line) || (dots && uses < 2 && !m->asks))
        return false;
    return terms && nest_opt(nest, OPT_PREFETCH, terms->name, arg);
}

void prefetch_opts(Nest *nest, const View *v, const Buffer *const *bufs, const RegisterTile *tile)
{
    const Kernel *k = nest->k;
    /* outside of the first: contractions side by side, each with weights of its own, or blocks of
     * rows */
    int first = 0;
    while (first + 1 < nest->norder &&
           k->axes[nest->axis[nest->order[first]].root].range != tile->lanes)
        first++;
    const NestAxis *outer = &nest->axis[nest->order[first]];
    int64_t times = 1;
    bool asks = false;
    for (int j = 0; j < v->nload; j++)
        if (is_operand(v, tile, v->load[j]) &&
            is_large(k, bufs, v->load[j], BUF_WEIGHT, nest->target) &&
            v->load[j]->dtype != v->dot->dtype && depends_on(v->load[j], tile->lanes))
            asks |= prefetch_stream(nest, tile, v->load[j]);
    if (asks)
        return;
    const int64_t sums = tile->vectors * tile->nrows * tile->ncolumns;
    if (!tile->rows || (tile->nfour && tile->width <= 1) ||
        (tile->nfour && tile->terms == 4 && sums > nest->target->machine.registers) ||
        k->axes[outer->root].range != tile->lanes)
        return;
    for (int i = 0; i < first; i++) {
        Node *outside = k->axes[nest->axis[nest->order[i]].root].range;
        for (int j = 0; j < v->nfactor && moves_lanes_operand(v, tile->lanes, outside); j++)
            if (!depends_on(v->factor[j], outside))
                return;
    }
    for (int i = first + 1; i < nest->norder; i++) {
        const NestAxis *x = &nest->axis[nest->order[i]];
        times = x->reduced || x->remainder ? times : sat_mul(times, x->extent);
    }
    for (int j = 0; j < v->nfactor; j++) {
        if (!is_large(k, bufs, v->factor[j], BUF_WEIGHT, nest->target) ||
            !depends_on(v->factor[j], tile->lanes) || times < 2 ||
            times > tile->vectors * tile->width)
            continue;
        nest_opt(nest, OPT_PREFETCH, outer->name, (int)v->factor[j]->src[0]->arg.i);
        return;
    }
}

void prefetch_states(Nest *nest, const View *v, const Buffer *const *bufs, bool outputs)
{
    const Kernel *k = nest->k;
    for (int j = 0; j < v->nfactor; j++) {
        Node *load = v->factor[j];
        bool once = is_large(k, bufs, load, BUF_STATE, nest->target);
        const NestAxis *lines = NULL;
        for (int i = 0; i < nest->norder && once; i++) {
            const NestAxis *x = &nest->axis[nest->order[i]];
            const bool moves = depends_on(load, k->axes[x->root].range);
            if (x->remainder || x->form != AXIS_LOOP || x->extent == 1)
                continue;
            once = moves || x->reduced;
            lines = moves && x->reduced == outputs ? x : lines;
        }
        if (once && lines)
            nest_opt(nest, OPT_PREFETCH, lines->name, (int)load->src[0]->arg.i);
    }
}
