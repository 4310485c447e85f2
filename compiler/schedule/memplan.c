/* memplan.c - gives every byte its place: offsets in the arena and in the weights.
 *
 *   1. accesses   which steps read and write each buffer, by depth-first step number; a view counts
 *                 for its base
 *   2. liveness   [first, last] of its accesses, stretched over every loop that it enters or leaves;
 *                 to the end where strings point into it
 *   3. in place   a result takes the bytes of an operand that dies in the same step, where the
 *                 kernel reads that operand only at the element it writes
 *   4. packing    states first, never shared; then greedy best fit in several orders (the packing of
 *                 rectangles time x bytes is NP-hard; greedy by size comes close to the lower bound),
 *                 each again with what ended highest in front; the best of all is kept
 *   5. memories   of several, each but the last takes what gains most by lying there: accesses
 *                 to each of its bytes, by how long it is held; what finds no room goes on to the next. What a file
 *                 says of a value counts before that
 *   6. weights    in the order of their first use; equal constants are stored once
 *
 * Requires step numbers, Buffer.bytes, and the memories' limits. Leaves memory, offset, first, last of
 * all buffers, and the sizes in the plan. Inputs and outputs belong to the caller and have no place. */
#include <stdlib.h>
#include <string.h>

#include "values.h"

enum { WEIGHT_ALIGN = 64 };
#define MAX_TENSOR_BYTES (INT64_C(1) << 40) /* no machine that this is for has more */

typedef struct {
    int step;
    bool read;
} Access;
typedef struct {
    Access *access; /* in order of step number */
    int naccess;
} Usage;

/* What gets an offset: one buffer, or a chain of buffers that succeed one another in place. */
typedef struct {
    int64_t bytes, offset;
    int memory;
    int wanted, line; /* the memory that a file says, and where; -1: none */
    double gain;      /* bytes accessed, by bytes held and steps that they are held for */
    int first, last;
    int id;     /* of its first buffer: makes every order total */
    int leader; /* of the chain; itself if it leads */
} Group;

typedef struct {
    Plan *p;
    Arena *a;
    int64_t align;
    Usage *use;
    Group *group; /* by buffer */
    Step **loops;
    int nloop;
    Group **placed;  /* of the packing at work, in order of offset */
    Buffer **weight; /* in order of first use */
    int nweight;
} Memplan;

/* ---- accesses and liveness --------------------------------------------------------------- */

static void touch(Memplan *m, Buffer *b, int step, bool read)
{
    b = buffer_root(b);
    Usage *u = &m->use[b->id];
    if (b->kind == BUF_WEIGHT && !u->naccess)
        vec_push(m->a, m->weight, m->nweight, b);
    vec_push(m->a, u->access, u->naccess, ((Access){step, read}));
}

static void touch_block(Memplan *m, const Block *block);

static void touch_step(Memplan *m, Step *s)
{
    switch (s->kind) {
    case STEP_KERNEL:
        for (int i = 0; i < s->nbuf; i++)
            if (s->kernel->args[i].read)
                touch(m, s->bufs[i], s->number, true);
        for (int i = 0; i < s->nbuf; i++)
            if (s->kernel->args[i].written)
                touch(m, s->bufs[i], s->number, false);
        if (s->scratch)
            touch(m, s->scratch, s->number, false);
        break;
    case STEP_INDEX:
        for (int i = 0; i < s->nbuf; i++)
            if (s->kernel->args[i].read)
                touch(m, s->bufs[i], s->number, true);
        break;
    case STEP_CALL:
        for (int i = 0; i < s->nbuf; i++)
            touch(m, s->bufs[i], s->number, i < s->call->n_in);
        if (s->scratch)
            touch(m, s->scratch, s->number, false);
        break;
    case STEP_COPY:
        touch(m, s->bufs[1], s->number, true);
        touch(m, s->bufs[0], s->number, false);
        break;
    case STEP_IF:
        touch(m, s->cond, s->number, true);
        touch_block(m, &s->body);
        touch_block(m, &s->other);
        break;
    case STEP_LOOP:
        vec_push(m->a, m->loops, m->nloop, s);
        if (s->cond)
            touch(m, s->cond, s->number, true);
        touch_block(m, &s->body);
        if (s->cond) /* asked again after every iteration */
            touch(m, s->cond, s->last_inner, true);
        break;
    case STEP_CHECK: break;
    }
}

static void touch_block(Memplan *m, const Block *block)
{
    for (int i = 0; i < block->n; i++)
        touch_step(m, block->step[i]);
}

/* A buffer that is used on both sides of a loop's edge, or that is read in the loop before it is
 * written there (so it carries a value around), has to survive the whole loop. */
static void stretch(const Usage *u, const Step *loop, int *first, int *last)
{
    bool inside = false, outside = false, carried = false;
    for (int i = 0; i < u->naccess; i++) {
        const Access *x = &u->access[i];
        if (x->step < loop->first_inner || x->step > loop->last_inner) {
            outside = true;
        } else {
            carried |= !inside && x->read;
            inside = true;
        }
    }
    if (!inside || (!outside && !carried))
        return;
    *first = *first < loop->number ? *first : loop->number;
    *last = *last > loop->last_inner ? *last : loop->last_inner;
}

static void liveness(Memplan *m)
{
    for (int i = 0; i < m->p->nbuffer; i++) {
        Buffer *b = m->p->buffers[i];
        const Usage *u = &m->use[i];
        b->first = 0;
        b->last = -1;
        if (!u->naccess)
            continue;
        b->first = u->access[0].step;
        for (int k = 0; k < u->naccess; k++)
            b->last = b->last > u->access[k].step ? b->last : u->access[k].step;
        for (int k = 0; k < m->nloop; k++)
            stretch(u, m->loops[k], &b->first, &b->last);
    }
    int end = 0;
    for (int i = 0; i < m->p->nbuffer; i++)
        end = end > m->p->buffers[i]->last ? end : m->p->buffers[i]->last;
    for (int i = 0; i < m->p->nbuffer; i++)
        if (m->p->buffers[i]->kept)
            m->p->buffers[i]->last = end;
    for (int i = 0; i < m->p->nbuffer; i++) {
        Buffer *b = m->p->buffers[i];
        b->first = buffer_root(b)->first;
        b->last = buffer_root(b)->last;
    }
}

/* ---- in place ---------------------------------------------------------------------------- */

/* Where in its argument's memory an access lies, in elements; NULL: in one with a halo, which has an owner who clears it. */
static Node *offset_of(const Kernel *k, int arg, Node *const *coords)
{
    const KernelArg *a = &k->args[arg];
    for (int i = 0; i < a->layout.n; i++)
        if (a->layout.op[i].kind == LAYOUT_PAD)
            return NULL;
    return layout_offset(k->c, &a->layout, a->rank, a->dims, coords);
}

/* Every load of argument `in` reads exactly the bytes that the kernel's only store writes to
 * argument `out`. Then each element is read before it is overwritten, in whatever order. */
static bool reads_what_it_writes(Arena *a, const Kernel *k, int in, int out)
{
    if (k->serial || k->sink->nsrc != 1 || k->args[in].dtype != k->args[out].dtype)
        return false;
    Node *store = k->sink->src[0]->src[0]; /* buffer, gate, value, coordinates */
    if (store->src[0]->arg.i != out)
        return false;
    Node *there = offset_of(k, out, store->src + 3);
    int n;
    Node **order = graph_toposort(a, 1, &k->sink, &n);
    for (int i = 0; i < n && there; i++) {
        Node *load = order[i]; /* buffer, gate, coordinates */
        if (load->op != OP_LOAD || load->src[0]->arg.i != in)
            continue;
        Node *here = offset_of(k, in, load->src + 2);
        if (!here || !idx_provably_equal(k->c, here, there))
            return false;
    }
    return there;
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
    if (result->kind != BUF_ARENA || result->base || result->first != s->number)
        return -1;
    for (int i = 0; i < s->nbuf; i++) {
        Buffer *b = s->bufs[i];
        if (i == *out || b->kind != BUF_ARENA || b->base || b->last != s->number ||
            b->first == s->number || b->bytes != result->bytes || !fresh_in_loops(m, b, s->number))
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
 * and written. (Two that alias would break `restrict`.) What it reads there is what its store names. */
static void merge_args(Arena *a, Kernel *k, int in, int out)
{
    Node *store = k->sink->src[0]->src[0];
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

static int leader(const Memplan *m, int i)
{
    while (m->group[i].leader != i)
        i = m->group[i].leader;
    return i;
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
static void in_place(Memplan *m, Step **steps, int nstep)
{
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

static void kernel_steps(Memplan *m, const Block *block, Step ***steps, int *n)
{
    for (int i = 0; i < block->n; i++) {
        Step *s = block->step[i];
        if (s->kind == STEP_KERNEL)
            vec_push(m->a, *steps, *n, s);
        kernel_steps(m, &s->body, steps, n);
        kernel_steps(m, &s->other, steps, n);
    }
}

/* ---- what is accessed most ----------------------------------------------------------------- */

/* Adds the bytes that the steps load and store, by buffer. A kernel does so as its expression says, for each element
 * that it computes; other steps touch each byte once. */
static void count_accesses(Memplan *m, const Block *block, double times, double *bytes)
{
    for (int i = 0; i < block->n; i++) {
        const Step *s = block->step[i];
        int64_t *count = NEWN(m->a, int64_t, s->nbuf + 1);
        if (s->kind == STEP_KERNEL)
            kernel_accesses(s->kernel, m->a, count);
        for (int j = 0; s->kind != STEP_INDEX && j < s->nbuf; j++) {
            const Buffer *b = s->bufs[j];
            double each = s->kind == STEP_KERNEL ? (double)count[j] * dtype_info[b->dtype].bytes
                                                 : (double)b->bytes;
            bytes[buffer_root(s->bufs[j])->id] += times * each;
        }
        if (s->scratch)
            bytes[s->scratch->id] += times * (double)s->scratch->bytes;
        double again = s->kind == STEP_LOOP && s->trip ? (double)s->trip->hi : 1;
        count_accesses(m, &s->body, times * again, bytes);
        count_accesses(m, &s->other, times, bytes);
    }
}

static void find_gains(Memplan *m)
{
    const Plan *p = m->p;
    double *bytes = NEWN(m->a, double, p->nbuffer + 1);
    count_accesses(m, &p->main, 1, bytes);
    for (int i = 0; i < p->nbuffer; i++) {
        Group *g = &m->group[leader(m, i)];
        g->gain += bytes[i] / ((double)(g->bytes ? g->bytes : 1) * (g->last - g->first + 1));
    }
}

/* ---- packing ------------------------------------------------------------------------------- */

static bool align_up(int64_t *x, int64_t align)
{
    if (*x > INT64_MAX - align)
        return false;
    *x = (*x + align - 1) / align * align;
    return true;
}

static int by_size(const void *x, const void *y)
{
    const Group *a = *(Group *const *)x, *b = *(Group *const *)y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static int by_time(const void *x, const void *y)
{
    const Group *a = *(Group *const *)x, *b = *(Group *const *)y;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return by_size(x, y);
}

static int by_duration(const void *x, const void *y)
{
    const Group *a = *(Group *const *)x, *b = *(Group *const *)y;
    int da = a->last - a->first, db = b->last - b->first;
    if (da != db)
        return da > db ? -1 : 1;
    return by_size(x, y);
}

static int by_gain(const void *x, const void *y)
{
    const Group *a = *(Group *const *)x, *b = *(Group *const *)y;
    if (a->gain != b->gain)
        return a->gain > b->gain ? -1 : 1;
    return by_size(x, y);
}

static int by_offset(const void *x, const void *y)
{
    const Group *a = *(Group *const *)x, *b = *(Group *const *)y;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Places the groups in the order given, each into the tightest gap between those already placed that
 * live at the same time, else on top. What would end above `room` is not placed but moved to the start of
 * `order`; *left counts it. Returns the height. */
static int64_t place(Memplan *m, Group **order, int n, int64_t room, int *left)
{
    int64_t height = 0;
    int nplaced = 0;
    *left = 0;
    for (int i = 0; i < n; i++) {
        Group *g = order[i];
        int64_t end = 0, best = -1, best_gap = INT64_MAX;
        for (int k = 0; k < nplaced; k++) {
            const Group *o = m->placed[k];
            if (o->last < g->first || o->first > g->last)
                continue;
            int64_t gap = o->offset - end;
            if (gap >= g->bytes && gap < best_gap) {
                best = end;
                best_gap = gap;
            }
            int64_t top = o->offset + o->bytes;
            end = top > end ? top : end;
        } /* bytes are multiples of the alignment, so offsets are */
        int64_t offset = best >= 0 ? best : end;
        if (offset > room - g->bytes) {
            order[(*left)++] = g;
            continue;
        }
        g->offset = offset;
        int64_t top = g->offset + g->bytes;
        height = top > height ? top : height;
        int at = nplaced++;
        for (; at > 0 && by_offset(&m->placed[at - 1], &g) > 0; at--)
            m->placed[at] = m->placed[at - 1];
        m->placed[at] = g;
    }
    return height;
}

/* What no placement can stay below: the most bytes that are alive at once. */
static int64_t most_alive(const Plan *p, Group *const *group, int n)
{
    int64_t most = 0;
    for (int step = 0; step < p->nstep; step++) {
        int64_t sum = 0;
        for (int i = 0; i < n; i++)
            if (group[i]->first <= step && step <= group[i]->last)
                sum = sat_add(sum, group[i]->bytes);
        most = sum > most ? sum : most;
    }
    return most;
}

/* Moves what stands at `at` to the front, where it finds its place earlier. */
static void raise_group(Group **order, int at)
{
    Group *first = order[at];
    memmove(order + 1, order, (size_t)at * sizeof *order);
    *order = first;
}

static int highest(Group *const *order, int n)
{
    int at = 0;
    for (int i = 1; i < n; i++)
        if (order[i]->offset + order[i]->bytes > order[at]->offset + order[at]->bytes)
            at = i;
    return at;
}

/* Places all n groups in one memory, as low as can be found. Returns the height; above MAX_TENSOR_BYTES: it cannot be. */
static int64_t pack(Memplan *m, Group *const *group, int n)
{
    static int (*const orders[])(const void *, const void *) = {by_size, by_time, by_duration};
    enum { ROUNDS = 30 };
    Group **order = NEWN(m->a, Group *, n + 1);
    int64_t *offset = NEWN(m->a, int64_t, m->p->nbuffer + 1);
    int64_t best = MAX_TENSOR_BYTES + 1, bound = most_alive(m->p, group, n);
    for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++) {
        memcpy(order, group, (size_t)n * sizeof *order);
        qsort(order, (size_t)n, sizeof order[0], orders[k]);
        for (int round = 0; round < ROUNDS && best != bound; round++) {
            int left;
            int64_t height = place(m, order, n, MAX_TENSOR_BYTES, &left);
            if (left)
                break;
            if (height < best) {
                best = height;
                for (int i = 0; i < n; i++)
                    offset[order[i]->id] = order[i]->offset;
            }
            raise_group(order, highest(order, n));
        }
    }
    for (int i = 0; i < n; i++)
        group[i]->offset = offset[group[i]->id];
    return best;
}

/* ---- memories ------------------------------------------------------------------------------ */

/* What memory k has for the groups, beside the states. */
static int64_t room(const Plan *p, int k)
{
    int64_t limit = p->memories[k].limit ? p->memories[k].limit : MAX_TENSOR_BYTES;
    return k == p->state_memory ? limit - p->state_bytes : limit;
}

/* Each memory takes those that come first in `order`, as far as it has room; the last one takes what is left, and as
 * soon as all that is left goes into one, it goes there. Fills the memories' heights. */
static void fill_memories(Memplan *m, Group *const *order, int n, int64_t *height)
{
    const Plan *p = m->p;
    Group **rest = NEWN(m->a, Group *, n + 1), **here = NEWN(m->a, Group *, n + 1);
    memcpy(rest, order, (size_t)n * sizeof *rest);
    for (int k = 0; k < p->nmemory; k++) {
        bool last = k + 1 == p->nmemory, all = last || most_alive(p, rest, n) <= room(p, k);
        int left = 0, nhere = 0, nrest = 0;
        for (int i = 0; i < n; i++) {
            bool may = last || rest[i]->wanted < 0 || rest[i]->wanted == k;
            rest[i]->memory = may ? k : -1;
            if (may)
                here[nhere++] = rest[i];
        }
        height[k] = all ? pack(m, here, nhere) : INT64_MAX;
        if (!last && height[k] > room(p, k))
            height[k] = place(m, here, nhere, room(p, k), &left);
        for (int i = 0; i < left; i++)
            here[i]->memory = -1;
        for (int i = 0; i < n; i++)
            if (rest[i]->memory < 0)
                rest[nrest++] = rest[i];
        n = nrest;
    }
}

/* The group of the last memory that ends highest among those which are small enough for another one; -1: there is none. */
static int to_move(const Plan *p, Group *const *order, int n)
{
    int at = -1;
    for (int i = 0; i < n; i++) {
        const Group *g = order[i];
        bool other = false;
        for (int k = 0; k + 1 < p->nmemory; k++)
            other |= g->bytes <= room(p, k);
        if (other && g->wanted < 0 && g->memory == p->nmemory - 1 &&
            (at < 0 || g->offset + g->bytes > order[at]->offset + order[at]->bytes))
            at = i;
    }
    return at;
}

/* Shares the groups out by gain; where the last memory does not hold what is left then, by whatever order works, each tried
 * again with what was too much in front. */
static bool share_out(Memplan *m, Group **order, int n)
{
    static int (*const orders[])(const void *, const void *) = {by_gain, by_size, by_time,
                                                                by_duration};
    enum { ROUNDS = 10 };
    Plan *p = m->p;
    int last = p->nmemory - 1;
    Group *best = NEWN(m->a, Group, p->nbuffer + 1);
    int64_t *height = NEWN(m->a, int64_t, p->nmemory), most = INT64_MAX;
    for (size_t k = 0; k < sizeof orders / sizeof orders[0]; k++) {
        qsort(order, (size_t)n, sizeof order[0], orders[k]);
        for (int round = 0, at = 0; round < ROUNDS && at >= 0 && most > room(p, last); round++) {
            fill_memories(m, order, n, height);
            if (height[last] < most) {
                most = height[last];
                for (int i = 0; i < n; i++)
                    best[order[i]->id] = *order[i];
                for (int i = 0; i <= last; i++)
                    p->memories[i].bytes = height[i];
            }
            at = to_move(p, order, n);
            if (at >= 0)
                raise_group(order, at);
        }
    }
    for (int i = 0; i < n; i++)
        *order[i] = best[order[i]->id];
    return most <= MAX_TENSOR_BYTES - p->state_bytes;
}

static bool place_all(Memplan *m)
{
    Plan *p = m->p;
    Group **order = NEWN(m->a, Group *, p->nbuffer + 1);
    m->placed = NEWN(m->a, Group *, p->nbuffer + 1);
    int n = 0;
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        if (b->kind == BUF_ARENA && !b->base && b->last >= 0 && m->group[i].leader == i)
            order[n++] = &m->group[i];
    }
    if (p->nmemory > 1)
        find_gains(m);
    if (!share_out(m, order, n))
        return false;
    p->memories[p->state_memory].bytes += p->state_bytes;
    p->arena_bytes = 0;
    for (int k = 0; k < p->nmemory; k++)
        p->arena_bytes = sat_add(p->arena_bytes, p->memories[k].bytes);
    for (int i = 0; i < p->nbuffer; i++) {
        Buffer *b = p->buffers[i];
        if (b->kind != BUF_ARENA || b->base)
            continue;
        const Group *g = &m->group[leader(m, i)];
        b->memory = g->memory;
        b->offset = (g->memory == p->state_memory ? p->state_bytes : 0) + g->offset;
    }
    return true;
}

/* All in one memory: the first that is large enough, or the last. */
static bool place_states(Memplan *m)
{
    Plan *p = m->p;
    int64_t at = 0;
    for (int i = 0; i < p->nbuffer; i++) {
        Buffer *b = p->buffers[i];
        if (b->kind != BUF_STATE || b->base)
            continue;
        b->offset = at;
        if (b->bytes > MAX_TENSOR_BYTES - at)
            return false;
        at += b->bytes;
        if (!align_up(&at, m->align))
            return false;
    }
    p->state_bytes = at;
    while (p->state_memory + 1 < p->nmemory && p->memories[p->state_memory].limit < at)
        p->state_memory++;
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffers[i]->kind == BUF_STATE)
            p->buffers[i]->memory = p->state_memory;
    return true;
}

/* What a file says of the value that a buffer holds; copies of it, which come later, are free. False after a fault. */
static bool find_wanted(Memplan *m)
{
    Plan *p = m->p;
    Map seen = {0};
    bool good = true;
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        const ValueChoice *given = b->kind == BUF_ARENA && b->node ? value_given(p, b->node) : NULL;
        Group *g = &m->group[leader(m, i)];
        if (!given || !given->memory || map_get(&seen, (uint64_t)b->node->id + 1))
            continue;
        map_put(&seen, (uint64_t)b->node->id + 1, m);
        int k = 0;
        while (k < p->nmemory &&
               (!p->memories[k].name || strcmp(p->memories[k].name, given->memory) != 0))
            k++;
        if (k == p->nmemory) {
            sched_error(p, given->line, "there is no memory '%s': --memory says which there are",
                        given->memory);
            good = false;
        } else if (g->wanted < 0) {
            g->wanted = k;
            g->line = given->line;
        }
    }
    map_free(&seen);
    return good;
}

/* Whether each value lies where the file wants it; of several memories, where each lies by now. */
static bool note_memories(Memplan *m)
{
    Plan *p = m->p;
    Map seen = {0};
    bool good = true;
    for (int i = 0; i < p->nbuffer && p->nmemory > 1; i++) {
        const Buffer *b = p->buffers[i];
        if (b->kind != BUF_ARENA || b->base || b->last < 0 || !b->node ||
            map_get(&seen, (uint64_t)b->node->id + 1))
            continue;
        map_put(&seen, (uint64_t)b->node->id + 1, m);
        value_note_memory(p, b->node, p->memories[b->memory].name);
        const Group *g = &m->group[leader(m, i)];
        if (g->wanted < 0 || g->memory == g->wanted || !good)
            continue;
        sched_error(p, g->line, "memory '%s' has no room for this value",
                    p->memories[g->wanted].name);
        good = false;
    }
    map_free(&seen);
    return good;
}

/* ---- weights ----------------------------------------------------------------------------- */

/* Equal constants: the same recipe, or data of equal bytes, in the same layout. */
static bool same_weight(const Buffer *a, const Buffer *b)
{
    if (a->bytes != b->bytes || a->dtype != b->dtype || !layout_equal(&a->layout, &b->layout))
        return false;
    if (a->layout.n) { /* the same place for each element */
        if (a->rank != b->rank)
            return false;
        for (int i = 0; i < a->rank; i++)
            if (a->dims[i] != b->dims[i])
                return false;
    }
    if (a->node == b->node)
        return true;
    if (!a->node || !b->node || a->node->op != OP_DATA || b->node->op != OP_DATA)
        return false;
    const Data *x = a->node->arg.ptr, *y = b->node->arg.ptr;
    return x->nbytes == y->nbytes &&
           (x->bytes == y->bytes || !memcmp(x->bytes, y->bytes, x->nbytes));
}

/* Only the start of the data is hashed: that tells nearly all apart without reading the whole file. */
static uint64_t weight_key(const Buffer *b)
{
    uint64_t h = hash_bytes((uint64_t)b->dtype, &b->bytes, sizeof b->bytes);
    if (!b->node || b->node->op != OP_DATA)
        return hash_bytes(h, &b->node, sizeof b->node);
    const Data *d = b->node->arg.ptr;
    return hash_bytes(h, d->bytes, d->nbytes < 4096 ? d->nbytes : 4096);
}

static bool place_weights(Memplan *m)
{
    Map seen = {0};
    int64_t at = 0;
    bool fits = true;
    for (int i = 0; i < m->nweight && fits; i++) {
        Buffer *b = m->weight[i];
        uint64_t key = weight_key(b);
        const Buffer *same = map_get(&seen, key);
        if (same && same_weight(same, b)) {
            b->offset = same->offset;
            continue;
        }
        map_put(&seen, key, b);
        b->offset = at;
        fits = b->bytes <= MAX_TENSOR_BYTES - at;
        if (fits) {
            at += b->bytes;
            fits = align_up(&at, WEIGHT_ALIGN);
        }
    }
    map_free(&seen);
    m->p->weights_bytes = at;
    return fits;
}

/* ------------------------------------------------------------------------------------------ */

static bool too_large(Plan *p, const char *what, const char *name)
{
    char message[256];
    snprintf(message, sizeof message, "%s: %s%s%s%s more than 2^40 bytes of memory",
             p->c->file ? p->c->file : "model", what, name ? " '" : "", name ? name : "",
             name ? "' needs" : " need");
    context_report(p->c, INGOT_ERROR, INGOT_UNSUPPORTED, message);
    return false;
}

bool memplan(Plan *p, int64_t align)
{
    Memplan m = {.p = p, .a = p->arena, .align = align};
    if (!p->nmemory)
        vec_push(p->arena, p->memories, p->nmemory, ((Memory){.name = NULL}));
    m.use = NEWN(m.a, Usage, p->nbuffer + 1);
    m.group = NEWN(m.a, Group, p->nbuffer + 1);
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffers[i]->bytes < 0 || p->buffers[i]->bytes > MAX_TENSOR_BYTES)
            return too_large(p, "tensor", p->buffers[i]->name ? p->buffers[i]->name : "?");
    touch_block(&m, &p->main);
    liveness(&m);
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        m.group[i] = (Group){.bytes = b->bytes,
                             .first = b->first,
                             .last = b->last,
                             .id = i,
                             .leader = i,
                             .wanted = -1};
        (void)align_up(&m.group[i].bytes, align); /* bytes are far from overflow */
    }
    Step **steps = NULL;
    int nstep = 0;
    kernel_steps(&m, &p->main, &steps, &nstep);
    in_place(&m, steps, nstep);
    if (!find_wanted(&m))
        return false;
    if (!place_states(&m) || !place_all(&m))
        return too_large(p, "the intermediate tensors", NULL);
    if (!note_memories(&m))
        return false;
    if (!place_weights(&m))
        return too_large(p, "the weights", NULL);
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffers[i]->base) {
            p->buffers[i]->offset = buffer_root(p->buffers[i])->offset;
            p->buffers[i]->memory = buffer_root(p->buffers[i])->memory;
        }
    return true;
}

static bool in_memory(const Buffer *b, int memory)
{
    return (b->kind == BUF_ARENA || b->kind == BUF_STATE) && !b->base &&
           (memory < 0 || b->memory == memory);
}

/* The tensors alive at the step that needs the most of a memory, largest first: who to blame. */
int memplan_peak(const Plan *p, int memory, const Buffer **out, int max)
{
    int64_t worst = -1;
    int at = 0, n = 0;
    for (int s = 0; s < p->nstep; s++) {
        int64_t sum = 0;
        for (int i = 0; i < p->nbuffer; i++) {
            const Buffer *b = p->buffers[i];
            if (in_memory(b, memory) && b->kind == BUF_ARENA && b->first <= s && s <= b->last)
                sum = sat_add(sum, b->bytes);
        }
        if (sum > worst) {
            worst = sum;
            at = s;
        }
    }
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        if (!in_memory(b, memory) || (b->kind == BUF_ARENA && (at < b->first || b->last < at)))
            continue;
        int k = n < max ? n++ : max;
        for (; k > 0 && out[k - 1]->bytes < b->bytes; k--)
            if (k < max)
                out[k] = out[k - 1];
        if (k < max)
            out[k] = b;
    }
    return n;
}
