/* masked_buffers.c - what a mask has left in a stored value, its readers know.
 *
 *     s[i,j] = where(j <= i + past, sum over k of q[i,k] k[j,k], -inf)     stored
 *     e[i,j] = exp(s[i,j] - max over j of s) / sum                         stored, 0 beyond
 *     y[i,d] = sum over j of e[i,j] v[j,d]
 *
 * In one kernel, loops over j end where the mask does (kernel/lower/mask_bounds.c).  A kernel that
 * reads s or e has no mask in its expression; what is known of the elements stands beside its
 * argument (KernelArg.beyond), and its loops end there, too.
 *
 * A buffer counts that one kernel writes, as a whole, and that readers behind it in the same list
 * of steps, or in a loop's there, read.  Nothing changes in memory. */
#include <string.h>

#include "kernel.h"
#include "schedule.h"

typedef struct {
    Plan *p;
    Arena *a;
    int *writers;         /* by buffer */
    const Buffer **known; /* here */
    int nknown;
} MaskedBuffers;

static void count_writers(MaskedBuffers *q, const Block *b)
{
    enum { SEVERAL = 2 };
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        const bool kernel = s->kind == STEP_KERNEL;
        for (int j = 0; j < s->nbuf; j++)
            q->writers[s->bufs[j]->id] += !kernel ? SEVERAL : s->kernel->args[j].written;
        count_writers(q, &s->body);
        count_writers(q, &s->other);
    }
}

/* Is it made of run-time sizes alone? */
static bool is_of_sizes(const MaskedBuffers *q, Node *from)
{
    int n;
    bool good = true;
    Node **order = graph_toposort(q->a, 1, &from, &n);
    for (int i = 0; i < n && good; i++)
        good = order[i]->op != OP_RANGE && order[i]->op != OP_LOAD && order[i]->op != OP_REDUCE;
    return good;
}

/* limit = the coordinate along some axis + sizes, or sizes. */
static bool beyond_of(const MaskedBuffers *q, const Kernel *k, Node *const *at, int rank, int axis,
                      Node *limit, Beyond *b)
{
    Node *zero = idx(k->c, 0);
    int64_t stride;
    *b = (Beyond){.axis = axis, .row = -1, .from = limit};
    for (int i = 0; i < rank && b->row < 0; i++)
        if (i != axis && at[i]->op == OP_RANGE && depends_on(limit, at[i])) {
            if (!range_stride(k->c, limit, at[i], &stride) || stride != 1)
                return false;
            b->row = i;
            b->from = substitute(k->c, limit, 1, &at[i], &zero);
        }
    return is_of_sizes(q, b->from);
}

/* Each coordinate of the store is a loop of its own over the whole axis. */
static bool stores_all(const KernelArg *arg, Node *const *at)
{
    for (int i = 0; i < arg->rank; i++) {
        const bool loop = at[i]->op == OP_RANGE && at[i]->src[0] == arg->dims[i];
        if (!loop && !(idx_is(arg->dims[i], 1) && idx_is(at[i], 0)))
            return false;
        for (int j = 0; j < i && loop; j++)
            if (at[j] == at[i])
                return false;
    }
    return true;
}

static void note_stored(MaskedBuffers *q, const Step *s)
{
    enum { VALUE = 2 };
    const Kernel *k = s->kernel;
    const Node *end = k->sink->src[0], *store = end->src[0];
    if (k->sink->nsrc != 1 || end_stores(end) != 1 || k->serial ||
        !node_is_const_i(store->src[1], 1))
        return;
    const int arg = (int)store->src[0]->arg.i;
    Buffer *b = s->bufs[arg];
    Node *const *at = store->src + first_coord(store);
    if (b->kind != BUF_ARENA || b->base || b->kept || q->writers[b->id] != 1 || k->args[arg].read ||
        !stores_all(&k->args[arg], at))
        return;
    for (int axis = b->rank; axis-- > 0;) {
        Node *limit, *value = at[axis]->op == OP_RANGE
                                  ? mask_value(k, store->src[VALUE], at[axis], &limit)
                                  : NULL;
        Beyond beyond;
        if (!value || !beyond_of(q, k, at, b->rank, axis, limit, &beyond))
            continue;
        b->beyond = beyond;
        b->beyond.from = import_index(q->p->c, q->a, beyond.from);
        b->beyond.value = node_float(value);
        vec_push(q->a, q->known, q->nknown, b);
        return;
    }
}

static void tell_reader(MaskedBuffers *q, const Step *s)
{
    Kernel *k = s->kernel;
    for (int j = 0; j < s->nbuf; j++)
        for (int i = 0; i < q->nknown; i++) {
            const Buffer *b = q->known[i];
            if (b != s->bufs[j] || k->args[j].written || !kernel_has_sizes(k, b->beyond.from))
                continue;
            k->args[j].beyond = b->beyond;
            k->args[j].beyond.from = import_index(k->c, q->a, b->beyond.from);
        }
}

static void walk(MaskedBuffers *q, const Block *b)
{
    const int known = q->nknown;
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        if (s->kind == STEP_KERNEL) {
            tell_reader(q, s);
            note_stored(q, s);
        }
        walk(q, &s->body);
        walk(q, &s->other);
    }
    q->nknown = known;
}

void find_masked_buffers(Plan *p)
{
    MaskedBuffers q = {.p = p, .a = arena_new()};
    q.writers = NEWN(q.a, int, p->nbuffer + 1);
    count_writers(&q, &p->main);
    for (int i = 0; i < p->nbuffer; i++) /* a part of it is another buffer */
        if (p->buffers[i]->base)
            q.writers[buffer_root(p->buffers[i])->id] = 0;
    walk(&q, &p->main);
    arena_free(q.a);
}
