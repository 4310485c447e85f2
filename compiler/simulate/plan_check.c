/* plan_check.c - all steps of a plan beside the graph, with some choices of its run-time
 * integers. */
#include "plan_check.h"

#include "step_check.h"

/* Operations for a model, and for a step; how many choices of its run-time integers. */
enum { MOST = 24 * 1000 * 1000, MOST_OF_STEP = 1000 * 1000, CHOICES = 3 };

static bool has_custom(const Kernel *k)
{
    int n;
    Node *const *node = kernel_nodes(k, &n);
    for (int i = 0; i < n; i++)
        if (node[i]->op == OP_CUSTOM || dtype_info[node[i]->dtype].kind == 'c' ||
            node[i]->dtype == INGOT_STRING)
            return true;
    return false;
}

static CheckedKernel *checked(Checker *x, const Kernel *k)
{
    CheckedKernel *ck = map_get(&x->lowered, (uint64_t)(uintptr_t)k);
    if (ck)
        return ck;
    Arena *a = arena_new();
    ck = NEW(a, CheckedKernel);
    ck->a = a;
    ck->known = !has_custom(k);
    map_put(&x->lowered, (uint64_t)(uintptr_t)k, ck);
    return ck;
}

/* ---- sizes that fit each other --------------------------------------------------------------- */

static int64_t product(int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n = sat_mul(n, dims[i]);
    return n;
}

/* Along one axis, with the sources' sizes s and the node's own d. */
static bool axis_fits(Checker *x, Node *n, int axis, const int64_t *d, const int64_t *s)
{
    switch (n->op) {
    case OP_SHRINK: {
        const int64_t begin = dim_value(x->ip, n->src[1 + 2 * axis]);
        return begin >= 0 && begin + d[axis] <= s[axis];
    }
    case OP_PAD: {
        const int64_t lo = dim_value(x->ip, n->src[1 + 2 * axis]),
                      hi = dim_value(x->ip, n->src[2 + 2 * axis]);
        return lo >= 0 && hi >= 0 && lo + s[axis] + hi == d[axis];
    }
    case OP_EXPAND: return s[axis] == 1 || s[axis] == d[axis];
    case OP_PERMUTE: return s[((const Perm *)n->arg.ptr)->axis[axis]] == d[axis];
    case OP_CONCAT: return axis == (int)n->arg.i || s[axis] == d[axis];
    case OP_REDUCE: return reduce_axes(n) >> axis & 1 || s[axis] == d[axis];
    default: return s[axis] == d[axis];
    }
}

static bool node_fits(Checker *x, Node *n)
{
    const int64_t *d = element_dims(x->elements, n);
    int64_t joined = 0;
    for (int i = 0; i < n->rank; i++)
        if (d[i] < 0)
            return false;
    if (n->op == OP_RESHAPE)
        return product(n->rank, d) ==
               product(n->src[0]->rank, element_dims(x->elements, n->src[0]));
    const bool first = op_info[n->op].cls == MOVE && n->op != OP_CONCAT;
    for (uint32_t i = 0; i < (first ? 1 : n->nsrc) && n->op != OP_GATHER && n->op != OP_UPDATE;
         i++) {
        Node *src = n->src[i];
        if (src->rank != n->rank || src->dtype == INGOT_INDEX)
            continue;
        const int64_t *s = element_dims(x->elements, src);
        for (int axis = 0; axis < n->rank; axis++)
            if (!axis_fits(x, n, axis, d, s))
                return false;
        joined += n->op == OP_CONCAT ? s[n->arg.i] : 0;
    }
    return n->op != OP_CONCAT || joined == d[n->arg.i];
}

/* Integers that the data decide are drawn each by itself, and may be what no data can make of
 * them. */
static bool sizes_fit(Checker *x, const Step *s)
{
    for (int i = 0; i < s->nvalue && x->p->c->nvar; i++)
        if (!node_fits(x, s->values[i]))
            return false;
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Twice its share of what is left, for most take less. */
static bool check_kernel(Checker *x, const Step *s)
{
    CheckedKernel *ck = checked(x, s->kernel);
    const int64_t before = x->check->operations;
    int64_t share = 2 * x->left / (x->nstep > 0 ? x->nstep : 1);
    share = share < MOST_OF_STEP ? share : MOST_OF_STEP;
    x->check->nstep++;
    x->nstep--;
    const bool good = !ck->known || !sizes_fit(x, s) || step_check(x, s, ck, share);
    x->left -= x->check->operations - before;
    return good;
}

static bool met(Interp *ip, const Require *q)
{
    const int64_t v = dim_value(ip, q->value);
    return v >= dim_value(ip, q->least) && v <= dim_value(ip, q->greatest);
}

static bool check_block(Checker *x, const Block *b)
{
    bool good = true;
    for (int i = 0; i < b->n && good; i++) {
        const Step *s = b->step[i];
        if (s->kind == STEP_CHECK && !met(x->ip, s->require))
            break; /* what follows does not run with these sizes */
        if (s->kind == STEP_KERNEL)
            good = check_kernel(x, s);
        if (s->kind == STEP_LOOP && s->trip && dim_value(x->ip, s->trip) <= 0)
            continue;
        good = good && check_block(x, &s->body) && check_block(x, &s->other);
    }
    return good;
}

/* ---- run-time integers ----------------------------------------------------------------------- */

static int64_t choice(const Var *v, int which)
{
    if (which == 0)
        return v->hi;
    if (which == 1)
        return v->lo;
    return v->lo + (v->hi - v->lo) / 2;
}

static bool holds(Interp *ip, const Requires *all)
{
    for (int i = 0; i < all->n; i++)
        if (!met(ip, all->item[i]))
            return false;
    return true;
}

/* What has to be equal is made so, if it is an integer by itself. */
static bool agree(Interp *ip, const Context *c)
{
    for (int round = 0; round < 4 && !holds(ip, &c->require); round++)
        for (int i = 0; i < c->require.n; i++) {
            const Require *q = c->require.item[i];
            const int64_t v = dim_value(ip, q->value), lo = dim_value(ip, q->least),
                          hi = dim_value(ip, q->greatest);
            if (q->value->op == OP_VAR && (v < lo || v > hi))
                interp_set_var(ip, (int)q->value->arg.i, v < lo ? lo : hi);
        }
    for (int i = 0; i < c->nvar; i++) {
        const int64_t v = dim_value(ip, c->vars[i].node);
        if (v < c->vars[i].lo || v > c->vars[i].hi)
            return false;
    }
    return holds(ip, &c->require);
}

static int count_kernels(const Block *b)
{
    int n = 0;
    for (int i = 0; i < b->n; i++)
        n += (b->step[i]->kind == STEP_KERNEL) + count_kernels(&b->step[i]->body) +
             count_kernels(&b->step[i]->other);
    return n;
}

static bool check_with(Checker *x, int which)
{
    Context *c = x->p->c;
    x->a = arena_new();
    x->ip = interp_new(c);
    for (int i = 0; i < c->nvar; i++)
        interp_set_var(x->ip, i, choice(&c->vars[i], which));
    x->drawn = drawn_new(x->a, x->p, x->ip);
    x->elements = elements_new(x->a, c, x->ip);
    for (size_t i = 0; i < x->lowered.cap; i++)
        if (x->lowered.value[i])
            ((CheckedKernel *)x->lowered.value[i])->seen = false;
    const bool good = !agree(x->ip, c) || check_block(x, &x->p->main);
    elements_free(x->elements);
    interp_free(x->ip);
    arena_free(x->a);
    return good;
}

bool plan_check(const Plan *p, bool gpu, PlanCheck *check)
{
    *check = (PlanCheck){0};
    Checker x = {.p = p, .check = check, .gpu = gpu, .left = MOST};
    Arena *a = arena_new();
    x.next = NEWN(a, int, p->nplaced + 1);
    for (int i = p->nplaced; i-- > 0;) { /* the first ones in front */
        const uint64_t key = (uint64_t)p->placed[i].node->id + 1;
        x.next[i] = (int)(uintptr_t)map_get(&x.placed, key);
        map_put(&x.placed, key, (void *)(uintptr_t)(i + 1));
    }
    bool good = true;
    const int choices = p->c->nvar ? CHOICES : 1;
    for (int i = 0; i < choices && good; i++) {
        x.nstep = (choices - i) * count_kernels(&p->main);
        good = check_with(&x, i);
    }
    for (size_t i = 0; i < x.lowered.cap; i++)
        if (x.lowered.value[i]) {
            CheckedKernel *ck = x.lowered.value[i];
            lowered_free(ck->form.own);
            lowered_free(ck->plain.own);
            arena_free(ck->a);
        }
    map_free(&x.lowered);
    map_free(&x.placed);
    arena_free(a);
    return good;
}
