/* takeover.c - a result takes the bytes of an operand that dies in the step that makes it, where
 * the kernel reads each element just where it writes: the addresses count, not the shapes or
 * layouts that lead to them.
 *
 * Requires Buffer.first and .last. Leaves the groups of such buffers in one chain, and one argument
 * of their kernel for both. */
#include "memplan.h"

static bool has_halo(const Kernel *k, int arg)
{
    const Layout *l = &k->args[arg].layout;
    bool any = false;
    for (int i = 0; i < l->n; i++)
        any |= l->op[i].kind == LAYOUT_PAD;
    return any;
}

/* Where in its argument's memory an access lies, in elements. */
static Node *offset_of(const Kernel *k, int arg, Node *const *coords)
{
    const KernelArg *a = &k->args[arg];
    return layout_offset(k->c, &a->layout, a->rank, a->dims, coords);
}

/* Both have no halo, or the same: the kernel clears that of its result (halos.c), which lies where
 * it loads nothing if it loads just what it writes. */
static bool halos_agree(const Kernel *k, int in, int out)
{
    const KernelArg *a = &k->args[in], *b = &k->args[out];
    if (!has_halo(k, in) && !has_halo(k, out))
        return true;
    bool same = a->rank == b->rank && layout_equal(&a->layout, &b->layout);
    for (int d = 0; same && d < a->rank; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

/* The only store to argument `out` but for what clears its halo, or NULL. */
static Node *only_store(const Kernel *k, int out)
{
    const bool clears = has_halo(k, out);
    Node *found = NULL;
    for (uint32_t i = 0; i < k->sink->nsrc; i++) {
        const Node *end = k->sink->src[i];
        for (int j = 0; j < end_stores(end); j++) {
            if (end->src[j]->src[0]->arg.i != out ||
                (clears && end->src[j]->src[2]->op == OP_CONST))
                continue;
            if (found)
                return NULL;
            found = end->src[j];
        }
    }
    return found;
}

/* Do the stores but one leave argument `in` alone, or use of it what that store beside them uses,
 * too? Of an optimizer's step, m' = f(m, g) and w' = h(w, m'): the loop loads m once for both. */
static bool read_by_others(Arena *a, const Kernel *k, const Node *store, int in)
{
    int n;
    Node **order = graph_toposort(a, 1, (Node *const *)&store, &n);
    bool *used = NEWN(a, bool, k->c->nnode + 1);
    for (int i = 0; i < n; i++)
        used[order[i]->id] = true;
    for (uint32_t i = 0; i < k->sink->nsrc; i++) {
        const Node *end = k->sink->src[i];
        bool beside = false;
        for (int j = 0; j < end_stores(end); j++)
            beside |= end->src[j] == store;
        for (int j = 0; j < end_stores(end); j++) {
            Node *other = end->src[j];
            order = graph_toposort(a, other != store, &other, &n);
            for (int l = 0; l < n; l++)
                if (order[l]->op == OP_LOAD && order[l]->src[0]->arg.i == in &&
                    !(beside && used[order[l]->id]))
                    return true;
        }
    }
    return false;
}

/* Every load of argument `in` reads exactly the bytes that the kernel's only store to argument
 * `out` writes, for what that store writes.  Then each element is read before it is overwritten, in
 * whatever order. */
bool reads_what_it_writes(Arena *a, const Kernel *k, int in, int out)
{
    Node *store = only_store(k, out); /* buffer, gate, value, coordinates */
    if (k->serial || !store || k->args[in].dtype != k->args[out].dtype || !halos_agree(k, in, out))
        return false;
    Node *there = offset_of(k, out, store->src + 3);
    int n;
    Node **order = graph_toposort(a, 1, &store, &n);
    for (int i = 0; i < n && there; i++) {
        Node *load = order[i]; /* buffer, gate, coordinates */
        if (load->op != OP_LOAD || load->src[0]->arg.i != in)
            continue;
        Node *here = offset_of(k, in, load->src + 2);
        if (!here || !idx_provably_equal(k->c, here, there))
            return false;
    }
    return there && !read_by_others(a, k, store, in);
}

/* Whether b is made anew in every iteration of all loops around the step. */
static bool fresh_in_loops(const Memplan *m, const Buffer *b, int step)
{
    for (int i = 0; i < m->nloop; i++) {
        const Step *l = m->loops[i];
        if (step >= l->first_inner && step <= l->last_inner && b->first < l->first_inner)
            return false;
    }
    return true;
}

/* The operand of step s that its result may take over, or -1. */
static int takeover(Memplan *m, const Step *s, int *out)
{
    const Kernel *k = s->kernel;
    *out = -1;
    for (int i = 0; i < s->nbuf; i++)
        if (k->args[i].written)
            *out = *out == -1 && !k->args[i].read ? i : -2;
    if (*out < 0)
        return -1;
    Buffer *result = s->bufs[*out];
    if (result->kind != BUF_ARENA || result->base || result->takes || result->first != s->number)
        return -1;
    for (int i = 0; i < s->nbuf; i++) {
        Buffer *b = s->bufs[i];
        if (i == *out || b->kind != BUF_ARENA || b->base || b->takes || b->last != s->number ||
            (b->first == s->number && b->lent != LENT_FIRST) || b->bytes != result->bytes ||
            !fresh_in_loops(m, b, s->number))
            continue;
        int uses = 0;
        for (int j = 0; j < s->nbuf; j++)
            uses += buffer_root(s->bufs[j]) == b;
        if (uses == 1 && reads_what_it_writes(m->a, k, i, *out))
            return i;
    }
    return -1;
}

/* The kernel as it is when argument `in` is the same memory as argument `out`: one parameter, read
 * and written. (Two that alias would break `restrict`.) What it reads there is what its store
 * names. */
void merge_args(Arena *a, Kernel *k, int in, int out)
{
    Node *store = only_store(k, out);
    int n, nload = 0;
    Node **order = graph_toposort(a, 1, &k->sink, &n), **from = NEWN(a, Node *, n),
         **to = NEWN(a, Node *, n);
    for (int i = 0; i < n; i++) {
        Node *load = order[i], *src[INGOT_MAX_RANK + 2];
        if (load->op != OP_LOAD || load->src[0]->arg.i != in)
            continue;
        src[0] = store->src[0];
        src[1] = load->src[1];
        memcpy((void *)(src + 2), store->src + 3, (store->nsrc - 3) * sizeof *src);
        from[nload] = load;
        to[nload++] =
            node_make(k->c, OP_LOAD, load->dtype, load->arg, (int)store->nsrc - 1, src, 0, NULL);
    }
    k->sink = substitute(k->c, k->sink, nload, from, to);
    k->args[in].read = false;
    k->args[out].read = true;
}

/* Chains are joined in any order, so both ends may be chains already. */
static void join(Memplan *m, Buffer *operand, Buffer *result)
{
    Group *g = &m->group[leader(m, operand->id)], *r = &m->group[leader(m, result->id)];
    r->leader = g->id;
    g->first = g->first < r->first ? g->first : r->first;
    g->last = g->last > r->last ? g->last : r->last;
}

/* A kernel's text is shared by all steps that run it, so either all of them work in place, on the
 * same arguments, or none. */
void take_over(Memplan *m)
{
    int nstep;
    Step **steps = kernel_steps(m->p, m->a, &nstep);
    Kernel **done = NEWN(m->a, Kernel *, nstep + 1);
    int ndone = 0;
    for (int i = 0; i < nstep; i++) {
        Kernel *k = steps[i]->kernel;
        bool seen = false;
        for (int j = 0; j < ndone && !seen; j++)
            seen = done[j] == k;
        if (seen)
            continue;
        done[ndone++] = k;
        int out, in = takeover(m, steps[i], &out);
        bool all = in >= 0;
        for (int j = i + 1; j < nstep && all; j++)
            if (steps[j]->kernel == k)
                all = takeover(m, steps[j], &(int){0}) == in;
        if (!all)
            continue;
        for (int j = i; j < nstep; j++) {
            if (steps[j]->kernel != k)
                continue;
            const Buffer *result = steps[j]->bufs[out];
            join(m, steps[j]->bufs[in], steps[j]->bufs[out]);
            plan_note(m->p,
                      (Note){.pass = "memplan",
                             .what = "in place",
                             .why = "its operand dies in the step that makes it, which reads each "
                                    "element just where it writes",
                             .node = result->node,
                             .step = steps[j],
                             .buffer = result,
                             .other = steps[j]->bufs[in],
                             .operations = -1,
                             .bytes = result->bytes});
        }
        merge_args(m->a, k, in, out);
    }
}
