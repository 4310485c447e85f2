/* replay.c - what a .sched file says is checked and takes the place of the heuristic's choice.
 *
 * An entry decides everything of its kernel: a layout that it does not name is dense, an opt that
 * it does not name is not done; kernels without an entry are left to the heuristic.  What may be
 * chosen is what the heuristic may choose: the layout of a buffer that the kernel is the first to
 * write, of its weights, and of copies of its operands. */
#include <string.h>

#include "kernel.h"

enum {
    MAX_PAD = 8,
    MAX_COPIES = 64 /* of a store, by UPCAST */,
    MAX_RANGES = 64,
    MAX_PARTS = 1 << 16
};

const Choice *choice_given(const Plan *p, const Choice *c)
{
    for (int i = 0; c && i < p->ngiven; i++) {
        Choice *g = p->given[i];
        if (g->key == c->key && g->nth == c->nth && g->copy == c->copy &&
            g->copy_arg == c->copy_arg) {
            g->used = true;
            return g;
        }
    }
    return NULL;
}

bool choices_all_used(const Plan *p)
{
    for (int i = 0; i < p->ngiven; i++) {
        const Choice *g = p->given[i];
        if (g->used)
            continue;
        if (!g->copy)
            sched_error(
                p, g->line,
                "the model has no kernel %016llx %d: the file is of another model or compiler",
                (unsigned long long)g->key, g->nth);
        else
            sched_error(p, g->line, "kernel %016llx %d has no step that copies argument %d",
                        (unsigned long long)g->key, g->nth, g->copy_arg);
    }
    return !p->c->nerror;
}

Choice *choice_copy(Plan *p, const Kernel *of, int arg)
{
    Choice *c = NEW(p->arena, Choice);
    *c = (Choice){
        .key = of->choice->key, .nth = of->choice->nth, .copy = true, .copy_arg = arg, .narg = 2};
    c->arg = NEWN(p->arena, ArgChoice, 2);
    return c;
}

/* ---- layouts ------------------------------------------------------------------------------------- */

static bool layout_fits(const Plan *p, const Buffer *b, const Layout *l, int line, bool may_pad)
{
    int rank = b->rank;
    bool padded[INGOT_MAX_RANK] = {false}, known[2 * INGOT_MAX_RANK];
    int64_t size[2 * INGOT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        known[i] = idx_value(b->dims[i], &size[i]);
    for (int i = 0; i < l->n; i++) {
        const LayoutOp *op = &l->op[i];
        if (op->kind == LAYOUT_PERMUTE) {
            if (op->perm.n != rank) {
                sched_error(p, line, "permute names %d axes, here are %d", op->perm.n, rank);
                return false;
            }
            bool was_known[2 * INGOT_MAX_RANK];
            int64_t was[2 * INGOT_MAX_RANK];
            memcpy(was_known, known, sizeof was_known);
            memcpy(was, size, sizeof was);
            for (int j = 0; j < rank; j++) {
                known[j] = was_known[op->perm.axis[j]];
                size[j] = was[op->perm.axis[j]];
            }
            continue;
        }
        const char *what = op->kind == LAYOUT_SPLIT ? "split" : "pad";
        if (op->axis >= rank || !known[op->axis]) {
            sched_error(
                p, line,
                "%s of axis %d: here are %d axes, and only those of constant size may be changed",
                what, op->axis, rank);
            return false;
        }
        if (op->kind == LAYOUT_PAD) {
            bool first = rank == b->rank && !padded[op->axis];
            for (int j = 0; j < i; j++)
                first &= l->op[j].kind == LAYOUT_PAD;
            if (!may_pad || !first || op->a > MAX_PAD || op->b > MAX_PAD) {
                sched_error(
                    p, line,
                    may_pad
                        ? "pad of axis %d: pads come first, one an axis, of at most %d elements"
                        : "pad of axis %d: only what a kernel is the first to write has a border",
                    op->axis, MAX_PAD);
                return false;
            }
            padded[op->axis] = true;
            size[op->axis] += op->a + op->b;
            continue;
        }
        if (op->a > size[op->axis] || rank >= INGOT_MAX_RANK) {
            sched_error(p, line, "split of axis %d by %lld: it has %lld elements", op->axis,
                        (long long)op->a, (long long)size[op->axis]);
            return false;
        }
        for (int j = rank; j > op->axis + 1; j--) {
            size[j] = size[j - 1];
            known[j] = known[j - 1];
        }
        size[op->axis] = (size[op->axis] + op->a - 1) / op->a;
        size[op->axis + 1] = op->a;
        known[op->axis + 1] = true;
        rank++;
    }
    return true;
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
            if (g && owned)
                layout[b->id] =
                    arg && layout_fits(p, b, &arg->layout, arg->line, true) ? &arg->layout : &dense;
            else if (arg && arg->owned && b->kind != BUF_WEIGHT)
                sched_error(p, arg->line, "argument %d: its layout is not chosen here: it is %s", j,
                            fixed[b->id] ? "an input, an output, or of a step that is no kernel"
                                         : "that of the kernel which writes it first");
        }
    }
    return layout;
}

/* ---- opts ---------------------------------------------------------------------------------------- */

typedef struct {
    char name[24];
    Node *range;    /* of an axis that no opt has touched */
    int64_t extent; /* -1: known at run time; 0: no loop is left of it */
    bool reduced;
} OptAxis;
typedef struct {
    const Plan *p;
    Arena *a;
    const Kernel *k;
    const Target *t;
    OptAxis axis[MAX_RANGES];
    int n;
    Node *lane[MAX_RANGES]; /* ranges that have become lanes */
    int nlane;
    bool lane_reduced;
    int64_t lanes, copies;
    bool cut; /* THREAD has been seen */
} Check;

static void add_axis(Check *q, const char *name, Node *range, int64_t extent, bool reduced)
{
    OptAxis *x = &q->axis[q->n++];
    *x = (OptAxis){.range = range, .extent = extent, .reduced = reduced};
    snprintf(x->name, sizeof x->name, "%s", name);
}

/* Does e read `range` other than through a reduce over it? */
static bool reads(Arena *a, Node *e, Node *range)
{
    int n;
    Node **order = graph_toposort(a, 1, &e, &n);
    bool *on = NEWN(a, bool, e->id + 1);
    for (int i = 0; i < n; i++) {
        Node *t = order[i];
        on[t->id] = t == range;
        bool own = false;
        for (uint32_t j = 1; t->op == OP_REDUCE && j < t->nsrc; j++)
            own |= t->src[j] == range;
        for (uint32_t j = 0; j < t->nsrc && !own; j++)
            on[t->id] |= on[t->src[j]->id];
    }
    return on[e->id];
}

/* A value would run over two ranges of lanes. */
static bool two_dimensional(Check *q, Node *range)
{
    int n;
    Node **order = graph_toposort(q->a, 1, &q->k->sink->src[0], &n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < q->nlane; j++)
            if (order[i]->dtype != INGOT_INDEX && order[i]->op != OP_END &&
                reads(q->a, order[i], range) && reads(q->a, order[i], q->lane[j]))
                return true;
    return false;
}

static bool vector_fits(Check *q, const Opt *o, OptAxis *x, int line)
{
    if (!q->t->lanes || o->amount > q->t->lanes ||
        (o->amount != 4 && o->amount != 8 && o->amount != 16))
        sched_error(
            q->p, line,
            q->t->lanes
                ? "VECTOR %s %lld: a vector has 4, 8 or 16 lanes, of this target at most %d"
                : "VECTOR %s %lld: this target has no vectors (%d lanes); --target c:native may",
            o->axis, (long long)o->amount, q->t->lanes);
    else if (!x->range)
        sched_error(q->p, line,
                    "VECTOR %s: only an axis that no other opt has changed can become lanes",
                    o->axis);
    else if (x->extent < o->amount)
        sched_error(q->p, line, "VECTOR %s %lld: the axis has %lld elements", o->axis,
                    (long long)o->amount, (long long)x->extent);
    else if (q->nlane && (!x->reduced || q->lanes != o->amount || two_dimensional(q, x->range)))
        sched_error(q->p, line, "VECTOR %s: the kernel has lanes already", o->axis);
    else if (!lanes_possible(q->a, q->k, x->range))
        sched_error(q->p, line,
                    "VECTOR %s: some operation or access along this axis cannot be done in lanes",
                    o->axis);
    else
        return true;
    return false;
}

/* What is left of an axis after VECTOR or UPCAST is named .o */
static void split_axis(OptAxis *x, int64_t amount)
{
    size_t len = strlen(x->name);
    if (len + 3 < sizeof x->name)
        memcpy(x->name + len, ".o", 3);
    x->range = NULL;
    x->extent = x->extent / amount > 1 ? x->extent / amount : 0;
}

static OptAxis *find_axis(Check *q, const char *name, size_t len)
{
    for (int i = 0; i < q->n; i++)
        if (strlen(q->axis[i].name) == len && !memcmp(q->axis[i].name, name, len))
            return &q->axis[i];
    return NULL;
}

static bool order_fits(Check *q, const Opt *o, int line)
{
    bool named[MAX_RANGES] = {false};
    for (const char *at = o->order; *at;) {
        size_t len = strcspn(at, " ");
        OptAxis *x = find_axis(q, at, len);
        if (!x || named[x - q->axis]) {
            sched_error(q->p, line, "ORDER: %s axis '%.*s'", x ? "twice the" : "no", (int)len, at);
            return false;
        }
        named[x - q->axis] = true;
        at += len + (at[len] == ' ');
    }
    return true;
}

static bool thread_fits(Check *q, const Opt *o, int line)
{
    OptAxis *x = find_axis(q, o->axis, strlen(o->axis));
    q->cut = true;
    if (!x || !x->extent || x->reduced)
        sched_error(q->p, line,
                    !x           ? "the kernel has no axis '%s'"
                    : x->reduced ? "THREAD %s: the axis is reduced"
                                 : "no loop is left of axis '%s'",
                    o->axis);
    else if (o->amount < 2 || o->amount > MAX_PARTS)
        sched_error(q->p, line, "THREAD %s: 2 to %d parts are possible", o->axis, MAX_PARTS);
    else if (!can_be_cut(q->k))
        sched_error(q->p, line, "THREAD %s: the kernel reads what it writes", o->axis);
    else
        return true;
    return false;
}

static bool opt_fits(Check *q, const Opt *o, int line)
{
    if (q->cut) {
        sched_error(q->p, line, "THREAD comes last");
        return false;
    }
    if (o->kind == OPT_ORDER)
        return order_fits(q, o, line);
    if (o->kind == OPT_THREAD)
        return thread_fits(q, o, line);
    if (o->kind != OPT_VECTOR && o->kind != OPT_UPCAST && o->kind != OPT_SPLIT &&
        o->kind != OPT_UNROLL) {
        sched_error(q->p, line,
                    "only SPLIT, VECTOR, UPCAST, UNROLL, ORDER and THREAD are carried out yet");
        return false;
    }
    OptAxis *x = find_axis(q, o->axis, strlen(o->axis));
    if (!x || x->extent < 1) {
        sched_error(q->p, line,
                    !x           ? "the kernel has no axis '%s'"
                    : !x->extent ? "no loop is left of axis '%s'"
                                 : "the size of axis '%s' is known at run time only",
                    o->axis);
        return false;
    }
    if (o->kind == OPT_VECTOR) {
        if (!vector_fits(q, o, x, line))
            return false;
        q->lane[q->nlane++] = x->range;
        q->lane_reduced |= x->reduced;
        q->lanes = o->amount;
    } else if (o->kind == OPT_UNROLL) {
        q->copies *= o->amount;
        if (!x->reduced || o->amount < 2 || x->extent % o->amount || q->copies > MAX_COPIES) {
            sched_error(
                q->p, line,
                !x->reduced
                    ? "UNROLL %s %lld: the axis is not reduced"
                    : "UNROLL %s %lld: the axis has %lld elements, and at most %d copies are made",
                o->axis, (long long)o->amount, (long long)x->extent, MAX_COPIES);
            return false;
        }
    } else if (o->kind == OPT_SPLIT) {
        if (x->reduced || o->amount < 2 || o->amount >= x->extent) {
            sched_error(q->p, line,
                        x->reduced ? "SPLIT %s %lld: the axis is reduced"
                                   : "SPLIT %s %lld: the axis has %lld elements",
                        o->axis, (long long)o->amount, (long long)x->extent);
            return false;
        }
        char inner[sizeof x->name];
        snprintf(inner, sizeof inner, "%.16s.i", x->name);
        add_axis(q, inner, NULL, o->amount, false);
    } else {
        q->copies *= o->amount;
        if (x->reduced || o->amount < 2 || o->amount > x->extent || q->copies > MAX_COPIES) {
            sched_error(
                q->p, line,
                x->reduced
                    ? "UPCAST %s %lld: the axis is reduced"
                    : "UPCAST %s %lld: the axis has %lld elements, and at most %d copies are made",
                o->axis, (long long)o->amount, (long long)x->extent, MAX_COPIES);
            return false;
        }
    }
    split_axis(x, o->amount);
    return true;
}

/* Strides are looked at when all opts are known: in every tile, what moves with the lanes moves by one element a lane,
 * or two are interleaved. */
static int strided_arg(Check *q)
{
    Context *c = q->k->c;
    Tiles tiles = kernel_expand(q->a, q->k);
    for (int i = 0; i < tiles.n; i++) {
        const Tile *t = &tiles.tile[i];
        if (!t->lane)
            continue;
        Node **flat = NEWN(q->a, Node *, t->nstore);
        flatten_addresses(q->a, q->k, t->nstore, t->store, flat);
        int n, nstore = join_stores(c, t, flat);
        Node **order = graph_toposort(q->a, nstore, flat, &n);
        for (int j = 0; j < n; j++) {
            if (order[j]->op != OP_LOAD && order[j]->op != OP_STORE)
                continue;
            Node *at = order[j]->src[first_coord(order[j])], *zero = idx(c, 0);
            if (!depends_on(at, t->lane))
                continue;
            Node *base = substitute(c, at, 1, &t->lane, &zero);
            bool two = order[j]->op == OP_STORE && order[j]->nsrc > 4;
            Node *step = two ? idx_mul(c, t->lane, idx(c, 2)) : t->lane;
            if (!idx_provably_equal(c, idx_sub(c, at, base), step))
                return (int)order[j]->src[0]->arg.i;
        }
    }
    return -1;
}

/* The opts of k, which have been taken from the file. */
static void check_opts(const Plan *p, Arena *a, const Kernel *k, const Target *t, const Choice *g)
{
    Check q = {.p = p, .a = a, .k = k, .t = t, .copies = 1};
    if (g->nopt && (k->serial || k->sink->nsrc != 1 || k->naxis + 3 * g->nopt >= MAX_RANGES)) {
        sched_error(p, g->opt_line[0], "%s",
                    k->naxis + 3 * g->nopt >= MAX_RANGES
                        ? "too many axes and opts"
                        : "this kernel takes no opts: it has several loop nests, or runs in order");
        return;
    }
    for (int i = 0; i < k->naxis; i++) {
        int64_t extent;
        if (!idx_value(k->axes[i].range->src[0], &extent))
            extent = -1;
        add_axis(&q, k->axes[i].name, k->axes[i].range, extent, k->axes[i].kind == AXIS_REDUCE);
    }
    int vector = 0;
    for (int i = 0; i < g->nopt; i++) {
        if (!opt_fits(&q, &g->opts[i], g->opt_line[i]))
            return;
        if (g->opts[i].kind == OPT_VECTOR)
            vector = g->opt_line[i];
    }
    int arg = q.nlane ? strided_arg(&q) : -1;
    if (arg >= 0)
        sched_error(p, vector,
                    "VECTOR: argument %d does not lie contiguously along this axis: choose another "
                    "layout for it",
                    arg);
}

/* ---- a kernel -------------------------------------------------------------------------------------- */

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
            if (p->c->nerror || !layout_fits(p, b, &from->copy, from->copy_line, false))
                return false;
            to->copied = true;
            to->copy = from->copy;
        }
    }
    return true;
}

void replay_opts(const Plan *p, Arena *a, Kernel *k, const Target *t, const Choice *g)
{
    k->opts = NULL;
    k->nopt = 0;
    for (int i = 0; i < g->nopt; i++)
        vec_push(k->c->arena, k->opts, k->nopt, g->opts[i]);
    check_opts(p, a, k, t, g);
    if (p->c->nerror)
        k->nopt = 0;
}
