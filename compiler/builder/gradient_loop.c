/* gradient_loop.c - the adjoint of a loop: a loop from the last iteration to the first.
 *
 *     forward   (c, s_t) = body(t, c)            backward   g_c = body's adjoint at t (g_c, g_s[t])
 *
 * It carries the gradients of what the forward loop carries.  What an iteration's adjoint reads
 * of the forward values is stacked by the forward loop, as further results of it: the carried
 * values, sums and other results that cost time; what is elementwise or movement is computed
 * from those again.
 *
 * What an iteration adds to the gradient of a value that the body captures is carried, and added
 * up. Where it is a sum of products, as of the weights of a recurrent network, both factors are
 * stacked instead, and multiplied once after the loop:
 *
 *     g_r = sum over t of h_t^T g_t     one product over all steps and rows
 *
 * and where it is a scatter (a row of a sequence), it is scattered into what is carried. */
#include <string.h>

#include "clone.h"
#include "gradient.h"

enum { OF_FORWARD = 1, OF_BACKWARD = 2 };
/* It is stacked by the forward loop; it does not change. */
enum { FORWARD_STACK = -1, NO_STACK = -2 };

/* A factor of a product that is summed over all iterations. */
typedef struct {
    Node *base;            /* what is stacked; or does not change: then it is no more than itself */
    Node *move[DEPTH_FEW]; /* from the base to the factor: the last first */
    int nmove;
    int stack; /* number of a stacked result of the backward loop, or FORWARD_STACK, NO_STACK */
} StackedFactor;

typedef struct {
    int target;
    Node *reduce;          /* the sum of products */
    Node *move[DEPTH_FEW]; /* from it to what is added: the last first */
    int nmove;
    StackedFactor factor[2];
} StackedProduct;

typedef struct {
    int target;
    Node *term;  /* what is added to what is carried */
    Node *carry; /* its parameter */
    bool first;  /* of its target */
} CarriedTerm;

typedef struct {
    Backward *b;
    Context *c;
    Arena *a;
    Node *tuple;
    const Loop *loop;
    int nresult;     /* of the forward loop, before it gets more */
    uint8_t *of;     /* by id: what a node of an iteration's adjoint depends on */
    uint32_t n;      /* ids below this have an entry */
    Targets targets; /* parameters and captures */
    Node **out;      /* their gradients, of one iteration */
    int *carried;    /* by target: which carried value it is; -1: a capture */
    ingot_region *body;
    Node *at;     /* the iteration that is gone back over */
    Node **param; /* by carried value: its gradient's parameter, or NULL */
    Node **start, **next;
    int ncarried;
    Node **stack; /* stacked results of the backward loop */
    int nstack;
    Node **outer; /* stacks of the forward loop, that the body captures */
    int nouter;
    StackedProduct *product;
    int nproduct;
    CarriedTerm *term;
    int nterm;
} Reverse;

/* ---- what has a gradient --------------------------------------------------------------------- */

/* A carried value is on a path if its start is, or what the body makes of others that are. */
static void find_targets(Reverse *q)
{
    Node *t = q->tuple;
    const struct Region *body = q->loop->body;
    int nc = q->loop->ncarried;
    uint8_t *path = NEWN(q->a, uint8_t, nc + 1);
    for (int k = 0; k < nc; k++)
        path[k] = q->b->path[t->src[1 + k]->id];
    for (bool changed = true; changed;) {
        changed = false;
        q->targets = targets_new(q->b, nc + (int)t->nsrc);
        for (int k = 0; k < nc; k++)
            targets_add(&q->targets, body->param[2 + k], path[k]);
        for (uint32_t i = 1 + (uint32_t)nc; i < t->nsrc; i++)
            targets_add(&q->targets, t->src[i], q->b->path[t->src[i]->id]);
        for (int k = 0; k < nc; k++) {
            uint8_t now = gradient_path(q->b, body->result[1 + k], &q->targets);
            changed |= now > path[k];
            path[k] = now > path[k] ? now : path[k];
        }
    }
    targets_sort(&q->targets);
    q->carried = NEWN(q->a, int, q->targets.n + 1);
    for (int i = 0; i < q->targets.nfloat; i++) {
        q->carried[i] = -1;
        for (int k = 0; k < nc; k++)
            if (body->param[2 + k] == q->targets.node[i])
                q->carried[i] = k;
    }
}

/* ---- an iteration's adjoint, over the parameters of the forward body ------------------------- */

static bool iteration_adjoint(Reverse *q)
{
    Context *c = q->c;
    const struct Region *body = q->loop->body;
    int nc = q->loop->ncarried, nroot = 0, nresult = q->nresult;
    Node *const *g = q->b->tuple[q->tuple->id];
    Node **root = NEWN(q->a, Node *, nresult + 1), **gr = NEWN(q->a, Node *, nresult + 1);
    q->body = ingot_region_begin(c);
    Node *i = ingot_region_param(c, q->body, INGOT_I64, 0, NULL);
    q->param[nc] = ingot_region_param(c, q->body, INGOT_BOOL, 0, NULL);
    q->at = ingot_sub(c, ingot_add_c(c, ingot_from_dim(c, q->loop->iterations), -1), i);
    for (int k = 0; k < q->targets.nfloat; k++) {
        if (q->carried[k] < 0)
            continue;
        int which = q->carried[k];
        Node *of = q->tuple->src[1 + which];
        q->param[which] = ingot_region_param_like(c, q->body, of);
        q->start[q->ncarried++] = g[which] ? g[which] : gradient_zeros(c, of);
        root[nroot] = body->result[1 + which];
        gr[nroot++] = q->param[which];
    }
    for (int k = nc; k < nresult; k++)
        if (g[k]) {
            root[nroot] = body->result[1 + k];
            gr[nroot++] = gradient_place(c, g[k], q->at, 0);
        }
    return gradient_inside(q->b, nroot, root, gr, &q->targets, q->out);
}

/* What each node of it depends on. */
static void find_dependences(Reverse *q)
{
    int count, n = 0;
    Node **root = NEWN(q->a, Node *, q->targets.nfloat + 1);
    const struct Region *body = q->loop->body;
    q->n = q->c->nnode;
    q->of = NEWN(q->a, uint8_t, q->n + 1);
    for (int i = 0; i < q->targets.nfloat; i++)
        if (q->out[i])
            root[n++] = q->out[i];
    for (int i = 0; i < body->nparam; i++)
        q->of[body->param[i]->id] = OF_FORWARD;
    for (int i = 0; i < q->body->nparam; i++)
        q->of[q->body->param[i]->id] = OF_BACKWARD;
    Node **order = graph_toposort(q->a, n, root, &count);
    for (int i = 0; i < count; i++)
        for (uint32_t k = 0; k < order[i]->nsrc; k++)
            q->of[order[i]->id] |= q->of[order[i]->src[k]->id];
}

/* A forward value that is stacked sooner than computed again. */
static bool is_kept(const Reverse *q, const Node *n)
{
    if (q->of[n->id] != OF_FORWARD)
        return false;
    switch (n->op) {
    case OP_PARAM: return true;
    case OP_PROJ: return n->src[0]->id < q->tuple->id;
    case OP_REDUCE:
    case OP_SCAN:
    case OP_UPDATE: return n->id < q->tuple->id;
    default: return false;
    }
}

/* Its stack, [iterations, ...]. */
static Node *kept_stack(Reverse *q, Node *n)
{
    Node *stack = loop_stacked(q->c, q->tuple, n);
    vec_push(q->a, q->outer, q->nouter, stack);
    return stack;
}

/* ---- what captures get ----------------------------------------------------------------------- */

static bool is_liftable(const Node *n)
{
    return op_arranges(n->op) || (n->op == OP_CAST && !n->arg.i);
}

/* The same movement below a first axis that it leaves alone. */
static Node *lifted(Context *c, Node *move, Node *x)
{
    Node *dims[1 + INGOT_MAX_RANK] = {x->shape[0]};
    int perm[INGOT_MAX_RANK] = {0};
    for (int a = 0; a < move->rank; a++)
        dims[1 + a] = move->shape[a];
    switch (move->op) {
    case OP_RESHAPE: return ingot_reshape(c, x, 1 + move->rank, dims);
    case OP_EXPAND: return ingot_expand(c, x, 1 + move->rank, dims);
    case OP_CAST: return ingot_cast(c, x, (ingot_dtype)move->dtype);
    default:
        for (int a = 0; a < move->rank; a++)
            perm[1 + a] = 1 + ((const Perm *)move->arg.ptr)->axis[a];
        return ingot_permute(c, x, perm);
    }
}

/* Follows movement down to what is worth a stack. */
static bool find_factor(Reverse *q, Node *x, StackedFactor *f)
{
    *f = (StackedFactor){.base = x, .stack = NO_STACK};
    while (q->of[f->base->id] && is_liftable(f->base) && f->nmove < DEPTH_FEW) {
        f->move[f->nmove++] = f->base;
        f->base = f->base->src[0];
    }
    if (q->of[f->base->id])
        f->stack = is_kept(q, f->base) ? FORWARD_STACK : 0;
    return f->base->rank < INGOT_MAX_RANK && x->rank < INGOT_MAX_RANK;
}

static bool find_product(Reverse *q, Node *term, int target)
{
    StackedProduct p = {.target = target};
    Node *n = term;
    while ((op_arranges(n->op) || (n->op == OP_CAST && dtype_is_float(n->src[0]->dtype))) &&
           p.nmove < DEPTH_FEW) {
        p.move[p.nmove++] = n;
        n = n->src[0];
    }
    if (!is_sum_of_products(n) || n->rank >= INGOT_MAX_RANK)
        return false;
    p.reduce = n;
    for (int i = 0; i < 2; i++)
        if (!find_factor(q, n->src[0]->src[i], &p.factor[i]))
            return false;
    if (p.factor[0].stack == NO_STACK && p.factor[1].stack == NO_STACK)
        return false;
    for (int i = 0; i < 2; i++) {
        StackedFactor *f = &p.factor[i];
        if (f->stack != 0)
            continue;
        f->stack = q->nstack;
        vec_push(q->a, q->stack, q->nstack, f->base);
    }
    vec_push(q->a, q->product, q->nproduct, p);
    return true;
}

/* A sum's terms, each by itself. */
static void find_terms(Reverse *q, Node *sum, int target, int *carry)
{
    enum { MOST_TERMS = 64 };
    Node *todo[MOST_TERMS] = {sum};
    for (int n = 1; n > 0;) {
        Node *x = todo[--n];
        if (x->op == OP_ADD && n + 2 <= MOST_TERMS) {
            todo[n++] = x->src[1];
            todo[n++] = x->src[0];
            continue;
        }
        if (find_product(q, x, target))
            continue;
        CarriedTerm t = {.target = target, .term = x, .first = *carry < 0};
        if (t.first) {
            Node *like = q->targets.node[target];
            ingot_dtype wide = dtype_info[like->dtype].compute;
            t.carry = ingot_region_param(q->c, q->body, wide, like->rank, like->shape);
            *carry = q->ncarried;
            q->start[q->ncarried++] =
                uniform_make(q->c, node_const_zero(q->c, wide), like->rank, like->shape);
        }
        vec_push(q->a, q->term, q->nterm, t);
    }
}

/* ---- the backward loop ----------------------------------------------------------------------- */

/* Forward values among what the roots are made of are read from stacks, at the iteration that is
 * gone back over. */
static void read_stacks(Reverse *q, Clone *now, int nroot, Node *const *root)
{
    Node **todo = NULL;
    int n = 0;
    const struct Region *body = q->loop->body;
    uint8_t *seen = NEWN(q->a, uint8_t, q->n + 1);
    clone_set(now, body->param[0], q->at);
    clone_set(now, body->param[1], node_bool(q->c, true));
    for (int i = 0; i < nroot; i++)
        vec_push(q->a, todo, n, root[i]);
    while (n > 0) {
        Node *x = todo[--n];
        if (x->id >= q->n || seen[x->id] || !(q->of[x->id] & OF_FORWARD))
            continue;
        seen[x->id] = 1;
        if (x == body->param[0] || x == body->param[1])
            continue;
        if (is_kept(q, x)) {
            clone_set(now, x, gradient_place(q->c, kept_stack(q, x), q->at, 0));
            continue;
        }
        for (uint32_t i = 0; i < x->nsrc; i++)
            vec_push(q->a, todo, n, x->src[i]);
    }
}

/* Is it v, added to zeros at some places? */
static bool is_scatter(const Node *n)
{
    return n->op == OP_UPDATE && n->arg.i == INGOT_ADD && const_is(uniform(n->src[0]), 0);
}

static Node *added_term(Context *c, const Clone *now, Node *carry, Node *term)
{
    Node *at[INGOT_MAX_RANK];
    ingot_dtype wide = (ingot_dtype)carry->dtype;
    Node *scatter = term->op == OP_CAST ? term->src[0] : term;
    if (!is_scatter(scatter))
        return ingot_add(c, carry, ingot_cast(c, clone_of(now, term), wide));
    for (int a = 0; a < scatter->rank; a++)
        at[a] = clone_of(now, scatter->src[2 + a]);
    Node *v = ingot_cast(c, clone_of(now, scatter->src[1]), wide);
    return ingot_update(c, INGOT_ADD, carry, v, at);
}

/* Everything outside of the body: what was there before it, and the stacks. */
static bool *outside_body(Reverse *q)
{
    bool *outside = region_outside(q->a, q->c, q->nouter, q->outer);
    for (uint32_t i = 0; i < q->body->mark; i++)
        outside[i] = true;
    return outside;
}

/* The results of the backward body, all of which are cloned over the stacks. */
static bool end_body(Reverse *q, int *ncarry)
{
    Context *c = q->c;
    int nroot = 0, n = 0;
    Node **root = NEWN(q->a, Node *, q->targets.nfloat + q->nstack + q->nterm + 1),
         **result = NEWN(q->a, Node *, 1 + q->ncarried + q->nstack);
    for (int i = 0; i < q->targets.nfloat; i++)
        if (q->carried[i] >= 0 && q->out[i])
            root[nroot++] = q->out[i];
    for (int i = 0; i < q->nstack; i++)
        root[nroot++] = q->stack[i];
    for (int i = 0; i < q->nterm; i++)
        root[nroot++] = q->term[i].term;
    Clone now = clone_begin(c, q->a);
    read_stacks(q, &now, nroot, root);
    clone_nodes(&now, nroot, root);
    result[n++] = q->param[q->loop->ncarried];
    for (int i = 0; i < q->targets.nfloat; i++)
        if (q->carried[i] >= 0)
            result[n++] =
                q->out[i] ? clone_of(&now, q->out[i]) : gradient_zeros(c, q->targets.node[i]);
    Node *sum = NULL;
    for (int i = 0; i < q->nterm; i++) {
        sum = added_term(c, &now, q->term[i].first ? q->term[i].carry : sum, q->term[i].term);
        if (i + 1 == q->nterm || q->term[i + 1].first)
            result[n++] = sum;
    }
    *ncarry = n - 1;
    for (int i = 0; i < q->nstack; i++)
        result[n++] = clone_of(&now, q->stack[i]);
    ingot_region_end(c, q->body, n, result);
    if (now.failed)
        gradient_error(q->b, q->tuple, arena_printf(c->arena, "of this loop: %s", now.failed));
    for (int i = 0; i < n; i++)
        q->b->failed |= poisoned(result[i]);
    if (q->b->failed)
        return false;
    region_captures(c, q->body, outside_body(q));
    return true;
}

/* A factor of all iterations in order, or what does not change. */
static Node *whole_factor(Reverse *q, const StackedFactor *f, Node *const *stacks)
{
    if (f->stack == NO_STACK)
        return ingot_unsqueeze(q->c, f->base, 0);
    Node *x = f->stack == FORWARD_STACK ? loop_stacked(q->c, q->tuple, f->base)
                                        : ingot_flip(q->c, stacks[f->stack], 1);
    for (int i = f->nmove; i-- > 0;)
        x = lifted(q->c, f->move[i], x);
    return x;
}

static Node *whole_product(Reverse *q, const StackedProduct *p, Node *const *stacks)
{
    Context *c = q->c;
    Node *n = p->reduce, *two[2];
    for (int i = 0; i < 2; i++)
        two[i] = whole_factor(q, &p->factor[i], stacks);
    Node *x = ingot_sum(c, ingot_mul(c, two[0], two[1]), reduce_axes(n) << 1 | 1, true);
    x = ingot_reshape(c, x, n->rank, n->shape);
    for (int i = p->nmove; i-- > 0;)
        x = p->move[i]->op == OP_CAST ? ingot_cast(c, x, (ingot_dtype)p->move[i]->dtype)
                                      : move_again(c, p->move[i], x);
    return x;
}

static void run_backward(Reverse *q, const int *carry)
{
    Context *c = q->c;
    int ncarry, at = 0;
    if (!end_body(q, &ncarry))
        return;
    Node **got = NEWN(q->a, Node *, ncarry + q->nstack + 1);
    ingot_loop(c, q->loop->iterations, NULL, ncarry, q->start, q->body, q->nstack, got);
    for (int i = 0; i < q->targets.nfloat; i++) {
        int k = q->carried[i];
        if (k >= 0)
            gradient_give(q->b, q->tuple->src[1 + k], got[at++]);
        else if (carry[i] >= 0)
            gradient_give(q->b, q->targets.node[i], got[carry[i]]);
    }
    for (int i = 0; i < q->nproduct; i++)
        gradient_give(q->b, q->targets.node[q->product[i].target],
                      whole_product(q, &q->product[i], got + ncarry));
}

void gradient_loop(Backward *b, Node *t)
{
    Reverse q = {.b = b, .c = b->c, .a = b->arena, .tuple = t, .loop = t->arg.ptr};
    q.nresult = q.loop->ncarried + q.loop->nscan;
    if (!q.loop->trip) {
        gradient_error(b, t, "this loop has no bound on its iterations");
        return;
    }
    find_targets(&q);
    int most = q.loop->ncarried + q.targets.nfloat + 1;
    if (!q.targets.nfloat)
        return;
    if (!q.loop->iterations &&
        q.loop->ncarried) /* how often it ran: it is told with what is stacked */
        (void)loop_stacked(q.c, t, q.loop->body->param[0]);
    q.out = NEWN(q.a, Node *, q.targets.nfloat);
    q.param = NEWN(q.a, Node *, q.loop->ncarried + 1);
    q.start = NEWN(q.a, Node *, most);
    int *carry = NEWN(q.a, int, q.targets.nfloat);
    if (!iteration_adjoint(&q)) {
        b->failed = true;
        ingot_region_end(q.c, q.body, 0, NULL);
        return;
    }
    find_dependences(&q);
    for (int i = 0; i < q.targets.nfloat; i++) {
        carry[i] = -1;
        if (q.carried[i] < 0 && q.out[i])
            find_terms(&q, q.out[i], i, &carry[i]);
    }
    run_backward(&q, carry);
}
