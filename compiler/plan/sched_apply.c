/* sched_apply.c - what a .sched file says is checked and takes the place of the heuristic's choice.
 *
 * An entry decides everything of its kernel: a layout that it does not name is dense, an opt that
 * it does not name is not done.  Of an `auto` entry what it does not name is the heuristic's, as
 * are kernels without an entry.  What may be chosen is what the heuristic may choose: the layout of
 * a buffer that the kernel is the first to write, of its weights, and of copies of its operands. */
#include <string.h>

#include "decisions.h"
#include "kernel.h"

enum { MAX_PAD = 16, MAX_PITCH = 256 };

/* An entry for this very step, for its kernel, or for one that stored the same value with the same
 * loops and arguments before the graph changed. */
const Choice *choice_given(const Plan *p, const Choice *c)
{
    Choice *best = NULL;
    int best_rank = 0;
    for (int i = 0; c && i < p->ngiven; i++) {
        Choice *g = p->given[i];
        bool own = g->key == c->key && (!g->of || (g->of == c->of && g->nth == c->nth));
        bool like = !g->of && g->at && g->at == c->near && g->form == c->form;
        int rank = own && g->of ? 3 : own ? 2 : like ? 1 : 0;
        if (rank > best_rank && g->copy == c->copy && g->copy_arg == c->copy_arg) {
            best = g;
            best_rank = rank;
        }
    }
    if (best)
        best->used = true;
    return best;
}

const Choice *choice_of_opts(const Plan *p, const Choice *c)
{
    const Choice *g = choice_given(p, c);
    return g && !g->automatic ? g : NULL;
}

/* A file of which less than one line in so many applies is another model's: what two networks have
 * in common are a few small kernels. */
enum { LEAST_SHARE = 8 };

bool choices_report(const Plan *p)
{
    int lines = 0, applied = 0;
    if (p->c->nerror)
        return false;
    values_report(p, &lines, &applied);
    for (int i = 0; i < p->ngiven; i++) {
        const Choice *g = p->given[i];
        lines++;
        applied += g->used;
        if (!g->used && p->verbose)
            sched_note(p, g->line, "the model has no such kernel: left to the compiler");
    }
    if (lines && !applied)
        sched_error(p, 1, "none of its %d entries is for this model", lines);
    else if (applied * LEAST_SHARE < lines)
        sched_error(p, 1,
                    "only %d of its %d entries are for this model: it was written for another one",
                    applied, lines);
    else if (p->verbose && lines)
        sched_note(p, 0, "%d of %d entries apply", applied, lines);
    else if (applied < lines)
        sched_note(p, 0,
                   "%d of its %d entries are for nothing in this model: the compiler decides there "
                   "(-v lists them)",
                   lines - applied, lines);
    return !p->c->nerror;
}

Choice *choice_copy(Plan *p, const Kernel *of, int arg)
{
    Choice *c = NEW(p->arena, Choice);
    *c = *of->choice;
    c->copy = true;
    c->copy_arg = arg;
    c->narg = 2;
    c->arg = NEWN(p->arena, ArgChoice, 2);
    return c;
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* What the ops of a layout so far have made of the axes. */
typedef struct {
    const Plan *p;
    const Layout *l;
    int line;
    int rank, dense;    /* axes, and those of the buffer */
    int blocks, inside; /* where those of a cut are; -1: there is none */
    bool cut_first, padded[INGOT_MAX_RANK], known[2 * INGOT_MAX_RANK];
    int64_t size[2 * INGOT_MAX_RANK];
} Shaped;

static bool permute_fits(Shaped *q, const LayoutOp *op)
{
    const Shaped was = *q;
    if (op->perm.n != q->rank) {
        sched_error(q->p, q->line, "permute names %d axes, here are %d", op->perm.n, q->rank);
        return false;
    }
    for (int j = 0; j < q->rank; j++) {
        q->blocks = op->perm.axis[j] == was.blocks ? j : q->blocks;
        q->inside = op->perm.axis[j] == was.inside ? j : q->inside;
        q->known[j] = was.known[op->perm.axis[j]];
        q->size[j] = was.size[op->perm.axis[j]];
    }
    return true;
}

static bool pad_fits(Shaped *q, int i, bool may_pad)
{
    const LayoutOp *op = &q->l->op[i];
    bool first = q->rank == q->dense && !q->padded[op->axis];
    for (int j = 0; j < i; j++)
        first &= q->l->op[j].kind == LAYOUT_PAD;
    if (!may_pad || !first || op->a > MAX_PAD || op->b > MAX_PAD) {
        sched_error(q->p, q->line,
                    may_pad ? "pad of axis %d: pads come first, one an axis, of at most %d elements"
                            : "pad of axis %d: only what a kernel is the first to write has a "
                              "border, and copies of what has none",
                    op->axis, MAX_PAD);
        return false;
    }
    q->padded[op->axis] = true;
    q->size[op->axis] += op->a + op->b;
    return true;
}

static bool pitch_fits(Shaped *q, int i)
{
    const LayoutOp *op = &q->l->op[i];
    const int64_t size = q->size[op->axis];
    bool last = q->blocks < 0;
    for (int j = i + 1; j < q->l->n; j++)
        last &= q->l->op[j].kind == LAYOUT_PITCH && q->l->op[j].axis != op->axis;
    if (!last || op->a < size || op->a > 2 * size + MAX_PITCH) {
        sched_error(q->p, q->line,
                    "pitch of axis %d: %lld, where there are %lld elements; pitches come "
                    "last, one an axis, of no more than %d above twice the elements, and "
                    "not next to a cut",
                    op->axis, (long long)op->a, (long long)size, MAX_PITCH);
        return false;
    }
    q->size[op->axis] = op->a;
    return true;
}

/* A split or a cut: an axis becomes two. */
static bool split_fits(Shaped *q, int i, const char *what)
{
    const LayoutOp *op = &q->l->op[i];
    const bool cut = op->kind == LAYOUT_CUT;
    if (op->a > q->size[op->axis] || q->rank >= INGOT_MAX_RANK) {
        sched_error(q->p, q->line, "%s of axis %d by %lld: it has %lld elements", what, op->axis,
                    (long long)op->a, (long long)q->size[op->axis]);
        return false;
    }
    q->blocks = cut ? op->axis : q->blocks + (q->blocks > op->axis);
    q->inside = cut ? op->axis + 1 : q->inside + (q->inside > op->axis);
    q->cut_first &= !cut || i == 0;
    for (int j = q->rank; j > op->axis + 1; j--) {
        q->size[j] = q->size[j - 1];
        q->known[j] = q->known[j - 1];
    }
    q->size[op->axis] = ceil_div(q->size[op->axis], op->a);
    q->size[op->axis + 1] = op->a;
    q->known[op->axis + 1] = true;
    q->rank++;
    return true;
}

static bool op_fits(Shaped *q, int i, bool may_pad)
{
    const LayoutOp *op = &q->l->op[i];
    if (op->kind == LAYOUT_PERMUTE)
        return permute_fits(q, op);
    const char *what = op->kind == LAYOUT_SPLIT ? "split"
                       : op->kind == LAYOUT_CUT ? "cut"
                       : op->kind == LAYOUT_PAD ? "pad"
                                                : "pitch";
    if (op->axis >= q->rank || !q->known[op->axis]) {
        sched_error(
            q->p, q->line,
            "%s of axis %d: here are %d axes, and only those of constant size may be changed", what,
            op->axis, q->rank);
        return false;
    }
    return op->kind == LAYOUT_PAD     ? pad_fits(q, i, may_pad)
           : op->kind == LAYOUT_PITCH ? pitch_fits(q, i)
                                      : split_fits(q, i, what);
}

static bool layout_fits(const Plan *p, const Buffer *b, const Layout *l, int line, bool may_pad)
{
    Shaped q = {.p = p,
                .l = l,
                .line = line,
                .rank = b->rank,
                .dense = b->rank,
                .blocks = -1,
                .inside = -1,
                .cut_first = true};
    for (int i = 0; i < b->rank; i++)
        q.known[i] = idx_value(b->dims[i], &q.size[i]);
    for (int i = 0; i < l->n; i++)
        if (!op_fits(&q, i, may_pad))
            return false;
    if (q.blocks <= q.inside && q.cut_first)
        return true;
    sched_error(p, line, "a cut comes first, and what is inside of its blocks stays behind them");
    return false;
}

/* Layouts of arena buffers, by buffer; NULL where the file does not speak of them. */
const Layout **replay_layouts(const Plan *p, Arena *a, Step *const *kernel, int n,
                              const bool *fixed)
{
    static const Layout dense;
    const Layout **layout = NEWN(a, const Layout *, p->nbuffer);
    bool *written = NEWN(a, bool, p->nbuffer);
    for (int i = 0; i < n; i++) {
        const Step *s = kernel[i];
        const Choice *g = choice_given(p, s->kernel->choice);
        if (g && g->narg > s->nbuf) {
            for (int j = s->nbuf; j < g->narg; j++)
                if (g->arg[j].line || g->arg[j].copy_line)
                    sched_error(p, g->arg[j].line ? g->arg[j].line : g->arg[j].copy_line,
                                "argument %d: the kernel has %d", j, s->nbuf);
        }
        for (int j = 0; j < s->nbuf; j++) {
            const Buffer *b = s->bufs[j];
            const ArgChoice *arg = g && j < g->narg ? &g->arg[j] : NULL;
            bool owned = s->kernel->args[j].written && !written[b->id] && !fixed[b->id];
            written[b->id] |= s->kernel->args[j].written;
            if (g && owned && !(g->automatic && !(arg && arg->owned)))
                layout[b->id] =
                    arg && layout_fits(p, b, &arg->layout, arg->line, true) ? &arg->layout : &dense;
            else if (g && g->automatic && arg && arg->copied)
                sched_error(p, arg->copy_line, "auto: copies are the compiler's");
            else if (arg && arg->owned && (b->kind != BUF_WEIGHT || g->automatic) &&
                     g->key == s->kernel->choice->key && !values_changed(p))
                sched_error(p, arg->line, "argument %d: its layout is not chosen here: it is %s", j,
                            b->kind == BUF_WEIGHT ? "a weight, which auto has as the loops read it"
                            : fixed[b->id] ? "an input, an output, or of a step that is no kernel"
                                           : "that of the kernel which writes it first");
        }
    }
    return layout;
}

/* ---- a kernel -------------------------------------------------------------------------------- */

/* The argument is not written, or whole. */
static bool covered(const Kernel *k, int arg)
{
    const Node *end = k->sink->src[0];
    for (int i = 0; i < end_stores(end); i++)
        if (end->src[i]->src[0]->arg.i == arg && !covers(k, end->src[i]))
            return false;
    return true;
}

/* Layouts of weights and copies, by argument; false after an error. */
bool replay_args(const Plan *p, const Step *s, const Choice *g, bool may_copy)
{
    Kernel *k = s->kernel;
    for (int i = 0; i < s->nbuf && i < g->narg; i++) {
        const ArgChoice *from = &g->arg[i];
        ArgChoice *to = &k->choice->arg[i];
        const Buffer *b = s->bufs[i];
        bool constant = const_dims(b);
        if (from->owned && b->kind == BUF_WEIGHT) {
            char last =
                dtype_info[b->dtype].name[1]; /* of i4, u2 and f4e2m1, whose elements share bytes */
            bool whole = b->dtype != INGOT_STRING && last != '2' && last != '4';
            if (!layout_fits(p, b, &from->layout, from->line, false))
                return false;
            if (from->layout.n && (!whole || !constant)) {
                sched_error(p, from->line, "argument %d: weights of this type stay dense", i);
                return false;
            }
            to->layout = from->layout;
        }
        if (from->copied) {
            bool good = may_copy && constant && b->kind != BUF_WEIGHT && b->rank > 0 &&
                        !k->serial && k->sink->nsrc == 1 &&
                        !(k->args[i].read && k->args[i].written) && covered(k, i);
            if (!good)
                sched_error(p, from->copy_line,
                            "argument %d cannot be copied: it is a weight, has sizes of run time, "
                            "or is only changed in part",
                            i);
            int pads = 0;
            while (pads < b->layout.n && b->layout.op[pads].kind == LAYOUT_PAD)
                pads++;
            if (pads + from->copy.n > (int)(sizeof from->copy.op / sizeof *from->copy.op))
                sched_error(p, from->copy_line,
                            "with the border of argument %d these are too many constructors", i);
            /* columns of a matrix unit are filled up by a border, if the buffer has none */
            if (p->c->nerror || !layout_fits(p, b, &from->copy, from->copy_line, !pads))
                return false;
            to->copied = true;
            to->copy = from->copy;
        }
    }
    return true;
}

/* False: the entry was for another kernel, and does not do for this one. */
bool replay_opts(const Plan *p, Kernel *k, const Target *t, const Choice *g)
{
    Nest *n = nest_new(k, t);
    const char *why = NULL;
    int line = 0;
    for (int i = 0; i < g->nopt && !why; i++) {
        why = opt_apply(n, &g->opts[i]);
        line = why || g->opts[i].kind == OPT_VECTOR ? g->opt_line[i] : line;
    }
    why = why ? why : nest_check(n);
    bool own = g->key == k->choice->key && !values_changed(p);
    if (!why)
        nest_keep(n, k);
    else if (own)
        sched_error(p, line, "%s", why);
    nest_free(n);
    return !why || own;
}
