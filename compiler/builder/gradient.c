/* gradient.c - reverse mode: from a loss to its gradients, as tensors of the same graph.
 *
 * The graph is walked once, from the loss to what it is made of, and each node hands its
 * gradient on by its op's rule (gradients.def; the formulas are in gradient_*.c).  Linnainmaa,
 * "The representation of the cumulative rounding error of an algorithm as a Taylor expansion of
 * the local rounding errors", 1970; Griewank and Walther, "Evaluating Derivatives", 2008.
 *
 *     y = tanh(x w)      g_y is given
 *                        g_(x w) = g_y (1 - y^2)        tanh's rule
 *                        g_w = x^T g_(x w)              those of the product and of the sum
 *
 * What the rules make are tensors like any others: they are rewritten, fused and scheduled as if
 * they had been written by hand, and have gradients in turn.  A tensor that two others read gets
 * the sum of what both hand on.
 *
 * What was rounded to a narrower float has a gradient as wide as what was rounded: rounding has the
 * slope 1. Gradients are rounded where they are multiplied, as the products of the forward pass
 * have them (precision.c, gradient_reduce.c).
 *
 * Nothing is left out in silence.  A path through an op without a rule, or through integers, is
 * an error with that op's node. */
#include <string.h>

#include "gradient.h"

static GradientRule *const rule_of[OP_COUNT] = {
#define GRADIENT(op, rule) [OP_##op] = gradient_##rule,
#include "gradients.def"
};

Node *gradient_flat(Backward *b, Node *n, Node *g, int i)
{
    (void)b, (void)n, (void)g, (void)i;
    return NULL;
}

Node *gradient_same(Backward *b, Node *n, Node *g, int i)
{
    (void)b, (void)n, (void)i;
    return g;
}

Node *gradient_zeros(Context *c, Node *like)
{
    return uniform_make(c, node_const_zero(c, (ingot_dtype)like->dtype), like->rank, like->shape);
}

/* Is it repeated along an axis, as the operands of a product of matrices are? */
static bool is_repeated(const Node *x)
{
    while (x->op == OP_CAST || x->op == OP_RESHAPE || x->op == OP_PERMUTE)
        x = x->src[0];
    return x->op == OP_EXPAND;
}

/* A GPU has few groups for few sums of products, of very many terms each (the gradient of few
 * weights of a convolution): those of each image are many, and then added. Not of windows of
 * channels, which are copied pixel after pixel through all images (gpu_wgmma.c). */
static bool sums_images_first(const Node *x, unsigned axes)
{
    enum { FEW = 1 << 17, MANY = 1 << 14, IMAGES = 8 };
    int64_t images, size, sums = 1, terms = 1, taps = 1;
    int before = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!idx_value(x->shape[i], &size))
            return false;
        const bool summed = axes >> i & 1, behind = axes & ((1u << i) - 1) & ~1u;
        *(summed ? &terms : &sums) *= size;
        taps *= !summed && behind ? size : 1;
        before += !summed && !behind && size > 1;
    }
    return axes & 1 && x->rank > 4 && idx_value(x->shape[0], &images) && images >= IMAGES &&
           sums < FEW && terms / images * IMAGES >= MANY && (taps == 1 || before < 2);
}

/* A GPU has few groups for the sums of few channels: those of rows are many. */
Node *gradient_sum(Context *c, Node *x, unsigned axes)
{
    ingot_dtype d = (ingot_dtype)x->dtype;
    Node *wide = dtype_is_float(d) ? ingot_cast(c, x, dtype_info[d].compute) : x;
    const bool product = x->op == OP_MUL && (is_repeated(x->src[0]) || is_repeated(x->src[1]));
    if (!axes)
        return x;
    if (product && ingot_one_product(c) && dtype_is_float(d) && sums_images_first(x, axes))
        return ingot_cast(c, ingot_sum(c, ingot_sum(c, wide, axes & ~1u, true), 1, true), d);
    return ingot_cast(c,
                      ingot_one_product(c) && dtype_is_float(d) && !product
                          ? sum_rows(c, wide, axes, true)
                          : ingot_sum(c, wide, axes, true),
                      d);
}

Node *gradient_place(Context *c, Node *x, Node *t, int axis)
{
    Node *dims[INGOT_MAX_RANK], *at[INGOT_MAX_RANK];
    for (int a = 0, k = 0; a < x->rank; a++)
        if (a != axis)
            dims[k++] = x->shape[a];
    for (int a = 0; a < x->rank; a++)
        at[a] = a == axis ? t : ingot_iota(c, x->rank - 1, dims, a - (a > axis));
    return ingot_gather(c, x, at);
}

Node *gradient_error(Backward *b, Node *n, const char *why)
{
    b->failed = true;
    if (op_info[n->op].cls == CONTROL)
        return ingot_error(b->c, INGOT_UNSUPPORTED, "gradient: %s", why);
    return ingot_error(b->c, INGOT_UNSUPPORTED, "gradient: %s (of %s %s)", why,
                       dtype_info[n->dtype].name, shape_text(b->c, n->rank, n->shape));
}

Node *gradient_no_rule(Backward *b, Node *n, const char *what)
{
    return gradient_error(b, n, arena_printf(b->c->arena, "there is no rule for '%s'", what));
}

static ingot_dtype gradient_dtype(const Backward *b, const Node *x)
{
    return b->rounded[x->id] ? dtype_info[x->dtype].compute : (ingot_dtype)x->dtype;
}

void gradient_give(Backward *b, Node *x, Node *g)
{
    if (!g || !has_gradient(b, x))
        return;
    if (poisoned(g)) {
        b->failed = true;
        return;
    }
    if (dtype_is_float(x->dtype)) /* those of integers are floats (straight_through) */
        g = ingot_cast(b->c, g, gradient_dtype(b, x));
    Node **sum = &b->grad[x->id];
    if (!*sum || const_is(uniform(*sum), 0))
        *sum = g;
    else if (!const_is(uniform(g), 0))
        *sum = ingot_add(b->c, *sum, ingot_cast(b->c, g, (ingot_dtype)(*sum)->dtype));
}

/* ---- which tensors are on a path ------------------------------------------------------------- */

/* Its sources from which a derivative comes: indices and conditions choose, they are no part of
 * what is computed. */
static uint32_t differentiable_sources(const Node *n, uint32_t *first)
{
    *first = n->op == OP_WHERE ? 1 : 0;
    switch (n->op) {
    case OP_GATHER: return 1;
    case OP_UPDATE: return 2;
    default: return n->nsrc;
    }
}

/* The float whose last bits are cut off by a mask (precision.c): rounding, as a cast to a
 * narrower float is; or NULL. */
static Node *cut_float(const Node *n)
{
    if (n->op != OP_BITCAST || n->src[0]->op != OP_AND || !uniform(n->src[0]->src[1]))
        return NULL;
    Node *bits = n->src[0]->src[0];
    return bits->op == OP_BITCAST && bits->src[0]->dtype == n->dtype ? bits->src[0] : NULL;
}

/* With straight_through a rounded number has the gradient of what was rounded, as long as it is
 * computed with. */
static bool rounds_straight(const Backward *b, const Node *n)
{
    return b->straight && dtype_is_int(n->dtype) && n->op != OP_BITCAST &&
           (op_is_alu(n->op) || op_info[n->op].cls == MOVE);
}

static uint8_t path_of(const Backward *b, const Node *n)
{
    bool stop = n->op == OP_BITCAST && n->dtype == n->src[0]->dtype;
    bool tuple = n->op == OP_CALL || n->op == OP_LOOP || n->op == OP_IF;
    uint32_t first, end = differentiable_sources(n, &first);
    uint8_t path = PATH_NONE;
    if (stop || n->dtype == INGOT_BOOL || n->dtype == INGOT_INDEX)
        return PATH_NONE;
    if (cut_float(n))
        return b->path[cut_float(n)->id];
    for (uint32_t i = first; i < end; i++)
        if (b->path[n->src[i]->id] > path)
            path = b->path[n->src[i]->id];
    if (path == PATH_NONE || dtype_is_float(n->dtype) || tuple)
        return path ? PATH_FLOAT : PATH_NONE;
    return path == PATH_FLOAT && rounds_straight(b, n) ? PATH_FLOAT : PATH_INTEGER;
}

/* A wider float, rounded, and perhaps moved. */
static bool is_rounded_copy(const Backward *b, const Node *n)
{
    if (!dtype_is_float(n->dtype) || !n->nsrc || !dtype_is_float(n->src[0]->dtype))
        return false;
    const Node *x = n->src[0];
    switch (n->op) {
    case OP_CAST: return elem_bytes((ingot_dtype)x->dtype) > elem_bytes((ingot_dtype)n->dtype);
    case OP_RESHAPE:
    case OP_PERMUTE:
    case OP_EXPAND:
    case OP_PAD:
    case OP_SHRINK:
    case OP_FLIP:
    case OP_KEEP: return b->rounded[x->id];
    default: return false;
    }
}

static void find_paths(Backward *b, int count, Node *const *order)
{
    for (int i = 0; i < count; i++) {
        Node *n = order[i];
        b->rounded[n->id] = is_rounded_copy(b, n);
        if (b->path[n->id] == PATH_NONE)
            b->path[n->id] = path_of(b, n);
    }
}

static Backward backward_begin(Context *c, bool straight, bool stops)
{
    Backward b = {.c = c, .arena = arena_new(), .n = c->nnode};
    b.straight = straight;
    b.stops = stops;
    b.path = NEWN(b.arena, uint8_t, b.n + 1);
    b.grad = NEWN(b.arena, Node *, b.n + 1);
    b.tuple = NEWN(b.arena, Node **, b.n + 1);
    b.reader = NEWN(b.arena, Node *, b.n + 1);
    b.target = NEWN(b.arena, bool, b.n + 1);
    b.live = NEWN(b.arena, bool, b.n + 1);
    b.rounded = NEWN(b.arena, bool, b.n + 1);
    return b;
}

/* ---- targets --------------------------------------------------------------------------------- */

Targets targets_new(Backward *b, int most)
{
    Targets t = {.node = NEWN(b->arena, Node *, most + 1)};
    t.path = NEWN(b->arena, uint8_t, most + 1);
    return t;
}

void targets_add(Targets *t, Node *x, uint8_t path)
{
    for (int i = 0; i < t->n; i++)
        if (t->node[i] == x)
            return;
    if (path == PATH_NONE)
        return;
    t->node[t->n] = x;
    t->path[t->n++] = path;
}

void targets_sort(Targets *t)
{
    t->nfloat = 0;
    for (int i = 0; i < t->n; i++) {
        Node *x = t->node[i];
        uint8_t path = t->path[i];
        if (path != PATH_FLOAT)
            continue;
        t->node[i] = t->node[t->nfloat];
        t->path[i] = t->path[t->nfloat];
        t->node[t->nfloat] = x;
        t->path[t->nfloat++] = path;
    }
}

static void set_targets(Backward *b, const Targets *t)
{
    for (int i = 0; i < t->n; i++) {
        b->path[t->node[i]->id] = t->path[i];
        b->target[t->node[i]->id] = t->path[i] == PATH_FLOAT;
    }
}

uint8_t gradient_path(const Backward *outer, Node *root, const Targets *of)
{
    Backward b = backward_begin(outer->c, outer->straight, true);
    int count;
    Node **order = graph_toposort(b.arena, 1, &root, &count);
    set_targets(&b, of);
    find_paths(&b, count, order);
    uint8_t path = b.path[root->id];
    arena_free(b.arena);
    return path;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static int tuple_results(const Node *t)
{
    switch (t->op) {
    case OP_CALL: return ((const Call *)t->arg.ptr)->n_out;
    case OP_LOOP: return ((const Loop *)t->arg.ptr)->ncarried + ((const Loop *)t->arg.ptr)->nscan;
    default: return ((const If *)t->arg.ptr)->n;
    }
}

/* A result's gradient waits at its tuple, which all results come from. */
static void pass_result(Backward *b, Node *proj, Node *g)
{
    Node *t = proj->src[0];
    if (!b->tuple[t->id])
        b->tuple[t->id] = NEWN(b->arena, Node *, tuple_results(t) + 1);
    b->tuple[t->id][proj->arg.i] = g;
}

/* The sum of what several readers of a value give it, where they read it rounded
 * (ingot_set_rounded_results()): as narrow as the value, like all that products give. */
static Node *rounded_sum(const Backward *b, const Node *n, Node *g)
{
    Context *c = b->c;
    const Node *read = map_get(&c->read_as, (uint64_t)n->id + 1);
    if (!ingot_rounded_results(c) || g->op != OP_ADD || !read || read->dtype == g->dtype ||
        (read->dtype != INGOT_BF16 && read->dtype != INGOT_F16))
        return g;
    return ingot_cast(c, ingot_cast(c, g, (ingot_dtype)read->dtype), (ingot_dtype)g->dtype);
}

static void pass_node(Backward *b, Node *n, Node *g)
{
    GradientRule *rule = rule_of[n->op];
    g = rounded_sum(b, n, g);
    uint32_t first, end = differentiable_sources(n, &first);
    for (uint32_t i = first; i < end; i++) {
        Node **reader = &b->reader[n->src[i]->id];
        *reader = *reader ? b->c->poison : n;
    }
    if (n->op == OP_PROJ) {
        pass_result(b, n, g);
        return;
    }
    if (gradient_again(b, n, g) || gradient_normalised(b, n, g) || gradient_softmax(b, n, g))
        return;
    if (!rule) {
        gradient_no_rule(b, n, op_info[n->op].text);
        return;
    }
    if (cut_float(n)) {
        gradient_give(b, cut_float(n), g);
        return;
    }
    for (uint32_t i = first; i < end; i++) {
        Node *x = n->src[i];
        if (b->path[x->id] == PATH_INTEGER)
            gradient_error(b, n,
                           "the loss depends on it through integers, which change in steps; "
                           "ingot_stop() says that this does not matter");
        else if (b->path[x->id] == PATH_FLOAT)
            gradient_give(b, x, rule(b, n, g, (int)i));
    }
}

/* Which sources are on a path from the roots: whoever asks for one gets zeros if no gradient
 * comes. */
static void pass_on(Backward *b, const Node *n)
{
    uint32_t first, end = differentiable_sources(n, &first);
    if (cut_float(n))
        b->live[cut_float(n)->id] = true;
    for (uint32_t i = first; i < end; i++)
        b->live[n->src[i]->id] = true;
}

/* Users before what they use: when a node's turn comes, all of its gradient is there. */
static void walk_backward(Backward *b, int count, Node *const *order)
{
    const OriginList *at = b->c->at;
    for (int i = count - 1; i >= 0; i--) {
        Node *n = order[i];
        bool tuple = b->tuple[n->id] != NULL;
        if (b->live[n->id] && has_gradient(b, n))
            pass_on(b, n);
        if (!has_gradient(b, n) || (!b->grad[n->id] && !tuple) || (b->target[n->id] && b->stops))
            continue;
        b->c->at = b->c->origins[n->id]; /* what is made, and what goes wrong, is of that node */
        if (tuple && n->op == OP_LOOP)
            gradient_loop(b, n);
        else if (tuple)
            gradient_control(b, n);
        else if (n->nsrc && op_info[n->op].cls != LEAF)
            pass_node(b, n, b->grad[n->id]);
    }
    b->c->at = at;
}

/* The gradient of a target, of its type. */
static Node *found_gradient(const Backward *b, const Node *x)
{
    Node *g = b->grad[x->id];
    return g ? ingot_cast(b->c, g, (ingot_dtype)x->dtype) : NULL;
}

static void backward_run(Backward *b, int nroot, Node *const *root, Node *const *g,
                         const Targets *of, Node **out)
{
    int count;
    Node **order = graph_toposort(b->arena, nroot, root, &count);
    set_targets(b, of);
    find_paths(b, count, order);
    if (ingot_rounded_results(b->c))
        gradient_round_results(b, count, order);
    for (int i = 0; i < nroot; i++) {
        gradient_give(b, root[i], g[i]);
        b->live[root[i]->id] = true;
    }
    walk_backward(b, count, order);
    for (int i = 0; i < of->n && of->path[i] == PATH_FLOAT; i++)
        out[i] = b->failed ? b->c->poison : found_gradient(b, of->node[i]);
}

bool gradient_inside(const Backward *outer, int nroot, Node *const *root, Node *const *g,
                     const Targets *of, Node **out)
{
    Backward b = backward_begin(outer->c, outer->straight, true);
    backward_run(&b, nroot, root, g, of, out);
    arena_free(b.arena);
    return !b.failed;
}

/* ---- the public functions -------------------------------------------------------------------- */

static bool is_gradient_target(Context *c, Node *x, int i)
{
    if (poisoned(x))
        return false;
    if (!dtype_is_float(x->dtype))
        ingot_error(c, INGOT_INVALID, "gradient: tensor %d is %s; only floats have a gradient", i,
                    dtype_info[x->dtype].name);
    else if (uniform(x))
        ingot_error(c, INGOT_INVALID,
                    "gradient: tensor %d is the constant %g, which is one tensor wherever it is "
                    "used; make a state or an input of what is to change",
                    i, node_float(uniform(x)));
    else
        return true;
    return false;
}

/* The gradient that a root starts with. */
static Node *seed_of(Context *c, Node *y, Node *g, int i)
{
    if (poisoned(y) || (g && poisoned(g)))
        return NULL;
    if (!dtype_is_float(y->dtype)) {
        ingot_error(c, INGOT_INVALID, "gradient: result %d is %s; only floats have a gradient", i,
                    dtype_info[y->dtype].name);
        return NULL;
    }
    if (!g)
        return uniform_make(c, node_const_f(c, (ingot_dtype)y->dtype, 1), y->rank, y->shape);
    if (g->dtype == y->dtype && g->rank == y->rank && shape_same(c, y->rank, g->shape, y->shape))
        return g;
    ingot_error(c, INGOT_INVALID,
                "gradient: result %d is %s %s, what is given for its gradient %s %s; both must "
                "agree",
                i, dtype_info[y->dtype].name, shape_text(c, y->rank, y->shape),
                dtype_info[g->dtype].name, shape_text(c, g->rank, g->shape));
    return NULL;
}

void ingot_gradient_of(ingot_context *c, const ingot_gradient_options *o, int ny,
                       ingot_tensor *const *y, ingot_tensor *const *gy, int nx,
                       ingot_tensor *const *x, ingot_tensor **gx)
{
    bool ok = true;
    Node **seed = NEWN(c->arena, Node *, ny + 1);
    for (int i = 0; i < nx; i++) {
        gx[i] = c->poison;
        ok &= is_gradient_target(c, x[i], i);
    }
    for (int i = 0; i < ny; i++) {
        seed[i] = seed_of(c, y[i], gy ? gy[i] : NULL, i);
        ok &= seed[i] != NULL;
    }
    if (!ok)
        return;
    c->sums_in_blocks = true;
    Backward b = backward_begin(c, o && o->straight_through, false);
    Targets of = targets_new(&b, nx);
    Node **out = NEWN(b.arena, Node *, nx + 1);
    for (int i = 0; i < nx; i++)
        targets_add(&of, x[i], PATH_FLOAT);
    backward_run(&b, ny, y, seed, &of, out);
    for (int i = 0; i < nx && !b.failed; i++) {
        gx[i] = found_gradient(&b, x[i]);
        if (!gx[i] && b.live[x[i]->id]) /* flat all the way: zero, which is not independent */
            gx[i] = gradient_zeros(c, x[i]);
    }
    arena_free(b.arena);
}

void ingot_gradient(ingot_context *c, ingot_tensor *loss, int n, ingot_tensor *const *x,
                    ingot_tensor **gx)
{
    for (int i = 0; i < n; i++)
        gx[i] = c->poison;
    if (poisoned(loss))
        return;
    Node *count = shape_numel(c, loss->rank, loss->shape);
    if (!idx_is(count, 1)) {
        ingot_error(c, INGOT_INVALID,
                    "gradient: the loss has shape %s; it must be one number (a sum or a mean)",
                    shape_text(c, loss->rank, loss->shape));
        return;
    }
    ingot_gradient_of(c, NULL, 1, &loss, NULL, n, x, gx);
}

ingot_tensor *ingot_stop(ingot_context *c, ingot_tensor *x)
{
    if (poisoned(x) || !dtype_is_float(x->dtype) || uniform(x) ||
        (x->op == OP_BITCAST && x->dtype == x->src[0]->dtype))
        return x;
    return node_make(c, OP_BITCAST, (ingot_dtype)x->dtype, (Arg){0}, 1, &x, x->rank, x->shape);
}
