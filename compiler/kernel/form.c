/* form.c - what kind of computation a kernel is, in the words of the field: a convolution, a
 * depthwise one, attention, a softmax ... for who reads a report.
 *
 * It is told by the loops, not by the names of the model's operators: a sum of products whose
 * reduced loops slide over an operand is a convolution; without loops that only one factor follows
 * it is depthwise.  Requires nothing; the kernel stays as it is. */
#include "kernel.h"

/* What the loops of one reduce are. */
typedef struct {
    int64_t window[INGOT_MAX_RANK]; /* extents of loops that slide, outermost first */
    int nwindow;
    bool channels; /* another reduced loop of more than one iteration */
} ReducedLoops;

/* Is this loop of the reduce one over a window? */
static bool slides_over(const Node *reduce, const View *v, Node *range)
{
    bool slides = false;
    for (int i = 0; i < v->nload && !slides; i++)
        slides = load_slides(v, v->load[i], range);
    return slides && depends_on((Node *)reduce->src[0], range);
}

static ReducedLoops loops_of(const Node *reduce, const View *v)
{
    ReducedLoops l = {.nwindow = 0};
    for (uint32_t i = reduce_ranges(reduce); i < reduce->nsrc; i++) {
        const int64_t extent = range_extent(reduce->src[i]);
        if (extent == 1)
            continue;
        if (!slides_over(reduce, v, reduce->src[i]))
            l.channels = true;
        else if (l.nwindow < INGOT_MAX_RANK)
            l.window[l.nwindow++] = extent;
    }
    return l;
}

/* "3x3 " */
static const char *window_text(Arena *a, const ReducedLoops *l)
{
    const char *text = "";
    for (int i = 0; i < l->nwindow; i++)
        text = l->window[i] < 0
                   ? ""
                   : arena_printf(a, "%s%s%lld", text, i ? "x" : "", (long long)l->window[i]);
    return *text && l->nwindow == 1 ? arena_printf(a, "%s-wide ", text)
           : *text                  ? arena_printf(a, "%s ", text)
                                    : "";
}

/* A loop of the results that all factors follow, as the channels of a depthwise convolution. */
static bool has_batch(const View *v)
{
    for (int i = 0; i < v->nrange; i++) {
        int follow = 0;
        for (int j = 0; j < v->nfactor; j++)
            follow += depends_on(v->factor[j], v->range[i]);
        if (follow == v->nfactor && range_extent(v->range[i]) != 1)
            return true;
    }
    return false;
}

/* One factor is the same for all results but those of the other's loops: a vector. */
static bool has_vector(const View *v)
{
    for (int j = 0; j < v->nfactor; j++) {
        bool follows = false;
        for (int i = 0; i < v->nrange; i++)
            follows |= range_extent(v->range[i]) != 1 && depends_on(v->factor[j], v->range[i]);
        if (!follows)
            return true;
    }
    return false;
}

/* Weights of a convolution whose window is one element: f32[64,256,1,1]. */
static bool has_unit_window(const Kernel *k, const View *v)
{
    for (int j = 0; j < v->nfactor; j++) {
        const KernelArg *arg = &k->args[v->factor[j]->src[0]->arg.i];
        bool unit = arg->rank >= 3 && arg->dims[0]->lo * arg->dims[1]->lo > 1;
        for (int d = 2; d < arg->rank; d++)
            unit &= arg->dims[d]->hi == 1;
        if (unit)
            return true;
    }
    return false;
}

static const char *product_form(Arena *a, const Kernel *k, const View *v)
{
    const ReducedLoops l = loops_of(v->dot, v);
    const bool batch = has_batch(v);
    if (l.nwindow)
        return arena_printf(a, "%s%s", window_text(a, &l),
                            !batch       ? "convolution"
                            : l.channels ? "grouped convolution"
                                         : "depthwise convolution");
    if (has_vector(v))
        return "matrix-vector product";
    return has_unit_window(k, v) ? "1x1 convolution"
           : batch               ? "batched matrix product"
                                 : "matrix product";
}

/* What its nodes are, for kernels that are no product. */
typedef struct {
    bool max, sum, several, exp, root, scan, gathers, scatters, computes, casts;
    const Node *reduce; /* the last one */
    int products;       /* sums of products */
} KernelNodes;

static KernelNodes count_nodes(const Kernel *k)
{
    KernelNodes x = {.max = false};
    int n;
    Node *const *order = kernel_nodes(k, &n);
    Arena *a = arena_new();
    bool *data = NEWN(a, bool, k->c->nnode + 1); /* by id: it is made of what is loaded */
    for (int i = 0; i < n; i++) {
        const Node *t = order[i];
        for (uint32_t s = 0; s < t->nsrc; s++)
            data[t->id] |= t->src[s]->op == OP_LOAD || data[t->src[s]->id];
        const bool access = t->op == OP_LOAD || t->op == OP_STORE;
        for (uint32_t s = access ? (uint32_t)first_coord(t) : t->nsrc; s < t->nsrc; s++) {
            x.gathers |= t->op == OP_LOAD && data[t->src[s]->id];
            x.scatters |= t->op == OP_STORE && data[t->src[s]->id];
        }
        x.exp |= t->op == OP_EXP;
        x.root |= t->op == OP_SQRT;
        x.scan |= t->op == OP_SCAN;
        x.casts |= t->op == OP_CAST && t->dtype != INGOT_INDEX;
        x.computes |= op_is_alu(t->op) && t->op != OP_CAST && t->dtype != INGOT_INDEX &&
                      t->dtype != INGOT_BOOL && t->op != OP_WHERE;
        if (t->op != OP_REDUCE)
            continue;
        x.reduce = t;
        x.several |= reduce_size(t) > 1;
        x.max |= reduce_size(t) == 1 && reduce_monoid(t) == INGOT_REDUCE_MAX;
        x.sum |= reduce_size(t) == 1 && reduce_monoid(t) == INGOT_REDUCE_ADD;
        x.products += is_sum_of_products(t);
    }
    arena_free(a);
    return x;
}

const char *kernel_form(Arena *a, const Kernel *k)
{
    const View v = kernel_view(k);
    const KernelNodes x = count_nodes(k);
    if (v.dot && x.exp && (x.several || (x.max && x.products > 1)))
        return "attention";
    if (v.dot)
        return product_form(a, k, &v);
    if (x.exp && (x.several || (x.max && x.sum)))
        return "softmax";
    if (x.sum && x.root)
        return "normalisation";
    if (x.scan)
        return "scan";
    if (x.reduce) {
        const ReducedLoops l = loops_of(x.reduce, &v);
        return l.nwindow ? arena_printf(a, "%s%s", window_text(a, &l), "pooling") : "reduction";
    }
    return x.scatters || k->serial ? "scatter"
           : x.gathers             ? "gather"
           : !v.nload              ? "fill"
           : x.computes            ? "elementwise"
           : x.casts               ? "cast"
                                   : "copy";
}
