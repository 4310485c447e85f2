/* threads.c - which loops of a kernel several threads share.
 *
 * Only loops over outputs are cut, between two iterations, and how often is decided here: nothing
 * that is computed depends on how many threads there are.  The outermost loop is the best: what the
 * loops inside of it use again and again (a block of weights, a row) stays with one thread.  Where
 * it is short it is taken together with the next ones, so that consecutive parts still share a
 * block, but no further than to equal shares.  Small kernels stay whole.
 *
 * What a thread reads that others have written comes from their caches, line by line, and so do
 * weights that all read.  Where panels of weights are the outermost loop, both cuts are possible (W
 * bytes of weights, X of the other operand, R of results, T threads):
 *
 *     panels     each thread reads all of X, and what it makes of each row goes to other threads: R
 *                / T
 *     rows       each thread has its rows in all layers, and reads all of W
 *
 * so the loops over rows are cut, inside of those over panels, where (T - 1) W < (T - 1) X + R.
 * Where rows are outermost it is the other way round, but for blocks of them that each go over all
 * panels.  In one thread nothing changes. */
#include "cpu.h"

enum {
    ENOUGH =
        /* iterations to divide: the shares of 2..16 threads differ by a seventh at most */
    7 * MAX_THREADS,
    MAX_PARTS = 8 * MAX_THREADS,
    THREADS = 8,  /* that bytes and shares are counted for */
    FEW_PARTS = 8 /* where each has places of its own, of so many bytes of L2 in all: */
};
static const double PLACES = 1.5;

/* Nanoseconds on one core, very roughly: half of its multiply-adds, and caches that give 8
 * bytes. */
static double estimate(const Kernel *k, const Target *t)
{
    return (double)k->flops / (t->machine.lanes ? 2.0 * t->machine.lanes : 2.0) +
           (double)k->bytes / 8;
}

/* Would loop `i` of those over outputs, if it is one with those outside of it, repeat a reduce that
 * stands between them? */
static bool repeats(const Nest *nest, const int *loop, int nloop, int i)
{
    int n;
    Node *const *order = kernel_end_nodes(nest->k, &n);
    for (int j = 0; j < n; j++) {
        bool inside = order[j]->op != OP_REDUCE;
        for (int l = i; l < nloop && !inside; l++)
            inside = depends_on(order[j], nest->k->axes[nest->axis[loop[l]].root].range);
        if (!inside)
            return true;
    }
    return false;
}

static int64_t argument_bytes(const Kernel *k, int i)
{
    int64_t bytes = dtype_info[k->args[i].dtype].bytes;
    for (int j = 0; j < k->args[i].rank; j++)
        bytes = sat_mul(bytes, k->args[i].dims[j]->hi);
    return bytes;
}

/* How many parts there is work for, and memory where they have places of their own. */
static int64_t most_parts(const Nest *nest, double ns)
{
    const double parts = ns / nest->target->machine.part_ns;
    const int64_t most = parts < MAX_PARTS ? (int64_t)parts : MAX_PARTS;
    bool staged = nest->partial;
    for (int i = 0; i < nest->k->naxis; i++)
        staged |= nest->k->axes[i].staged;
    if (!staged)
        return most;
    Tiles t = nest_lower(nest);
    int64_t bytes = place_offset(t.k, nest->k->narg, t.k->narg);
    tiles_free(&t);
    if (places_are_local(bytes, nest->target))
        return most;
    const int64_t room = (int64_t)(nest->target->machine.far * PLACES) / bytes,
                  places = room < FEW_PARTS ? FEW_PARTS : room;
    return places < most ? places : most;
}

/* As many as are possible; of the same length if that is possible. */
static int64_t count_parts(int64_t iterations, int64_t most)
{
    if (iterations <= most)
        return iterations;
    for (int64_t n = most; 2 * n > most; n--)
        if (iterations % n == 0)
            return n;
    return most;
}

/* Loops over results, outermost first; those that are one, from .. end - 1, and how often it
 * runs. */
typedef struct {
    const Nest *nest;
    int *loop, nloop;
    /* so many may be cut: down to the first that a place is filled in, and not what runs in
     * order */
    int most;
    int from, end;
    int64_t iterations;
    int64_t parts; /* that are possible */
} ThreadCut;

static const NestAxis *loop_axis(const ThreadCut *c, int i)
{
    return &c->nest->axis[c->loop[i]];
}

static bool has_loop_of_root(const ThreadCut *c, int root, int from, int end)
{
    bool has = false;
    for (int i = from; i < end; i++)
        has |= loop_axis(c, i)->root == root;
    return has;
}

/* Would one more loop only cost? Of those that are one, all but the first are divided for, and what
 * does not depend on the inner ones is computed for each of their iterations. */
static bool is_enough(const ThreadCut *c)
{
    const int64_t parts = count_parts(c->iterations, c->parts);
    return c->iterations >= ENOUGH ||
           (c->from == 0 && c->iterations >= c->parts && c->iterations % parts == 0 &&
            (parts == c->parts || parts % THREADS == 0));
}

/* From this loop on, as many as it takes. */
static void cut_from(ThreadCut *c, int from)
{
    c->from = c->end = from;
    c->iterations = 1;
    while (c->end < c->most && !is_enough(c) && !repeats(c->nest, c->loop, c->nloop, c->end) &&
           !has_loop_of_root(c, loop_axis(c, c->end)->root, 0, from))
        c->iterations = sat_mul(c->iterations, loop_axis(c, c->end++)->most);
}

/* Do 2, 4, 8 and 16 threads have as much to do as the first of them, but for a sixteenth? */
static bool is_balanced(int64_t iterations)
{
    bool balanced = true;
    for (int64_t threads = 2; threads <= MAX_THREADS; threads *= 2)
        balanced &=
            MAX_THREADS * iterations >= (MAX_THREADS - 1) * threads * ceil_div(iterations, threads);
    return balanced;
}

/* Bytes of the arguments that are read, of which these loops do not say where. */
static int64_t bytes_beside(const ThreadCut *c, int from, int end)
{
    const Kernel *k = c->nest->k;
    int n;
    int64_t sum = 0;
    Node *const *order = kernel_end_nodes(k, &n);
    for (int i = 0; i < k->narg; i++) {
        bool apart = false, read = false;
        for (int j = 0; j < n && !apart; j++)
            if (order[j]->op == OP_LOAD && order[j]->src[0]->arg.i == i) {
                read = true;
                for (int l = from; l < end; l++)
                    apart |= depends_on(order[j], k->axes[loop_axis(c, l)->root].range);
            }
        if (read && !apart)
            sum = sat_add(sum, argument_bytes(k, i));
    }
    return sum;
}

/* How far apart the first results are that two iterations of the widest of these loops write. */
static double result_stride(const ThreadCut *c, int from, int end)
{
    const Kernel *k = c->nest->k;
    double most = 0;
    int n;
    Node *const *order = kernel_end_nodes(k, &n);
    for (int i = 0; i < n; i++)
        for (int l = from; l < end && order[i]->op == OP_STORE; l++) {
            Node *range = k->axes[loop_axis(c, l)->root].range;
            const double stride = storage_stride(k, order[i], range);
            most = stride > most ? stride : most;
        }
    return most;
}

static int64_t result_bytes(const Kernel *k)
{
    int64_t bytes = 0;
    for (int i = 0; i < k->narg; i++)
        bytes = sat_add(bytes, k->args[i].written ? argument_bytes(k, i) : 0);
    return bytes;
}

/* Does an iteration have a loop over terms, beside which it costs nothing to find out where it is
 * along each loop that is cut? */
static bool has_loop_over_terms(const Nest *n)
{
    for (int i = 0; i < n->norder; i++)
        if (n->axis[n->order[i]].reduced)
            return true;
    return false;
}

/* Are the outermost loops over blocks of rows, of which each goes over panels of the other operand
 * (is_block_of_rows())? What a block reads then stays with the thread that has it. */
static bool has_blocks_of_rows(const ThreadCut *c, int from)
{
    const Kernel *k = c->nest->k;
    Node *block = k->axes[loop_axis(c, 0)->root].range, *lanes = NULL;
    for (int i = 0; i < c->nest->naxis; i++)
        if (c->nest->axis[i].form == AXIS_LANES)
            lanes = k->axes[c->nest->axis[i].root].range;
    if (!lanes || lanes == block)
        return false;
    bool panels = false, rows = false;
    int n;
    Node *const *order = kernel_end_nodes(k, &n);
    for (int i = from; i < c->nloop; i++) {
        Node *r = k->axes[loop_axis(c, i)->root].range;
        panels |= r == lanes;
        for (int j = 0; j < n && panels && r != lanes; j++)
            rows |= order[j]->op == OP_LOAD && !depends_on(order[j], lanes) &&
                    depends_on(order[j], block) && depends_on(order[j], r);
    }
    return rows;
}

/* The loops inside of the outermost ones, those over another axis, if that moves fewer bytes. */
static bool cut_inside(ThreadCut *c)
{
    const Nest *n = c->nest;
    int from = 0;
    if (!has_loop_over_terms(n))
        return false;
    while (from < c->most && loop_axis(c, from)->root == loop_axis(c, 0)->root)
        from++;
    if (from == c->most || n->tc || n->nprefetched /* panels that come from memory */ ||
        has_blocks_of_rows(c, from))
        return false;
    cut_from(c, from);
    for (int i = 0; i < c->end; i++)
        if (loop_axis(c, i)->extent < 0)
            return false;
    const double inner = result_stride(c, from, c->end), outer = result_stride(c, 0, from);
    const int64_t results = result_bytes(n->k), others = THREADS - 1;
    return c->end > from && is_balanced(c->iterations) &&
           sat_add(sat_mul(others, bytes_beside(c, from, c->end)), inner < outer ? results : 0) <
               sat_add(sat_mul(others, bytes_beside(c, 0, from)), inner > outer ? results : 0);
}

static int loops_to_cut(const Nest *nest, const int *loop, int nloop)
{
    const int row = nest->row < 0 ? -1 : nest_loop(nest, nest->row);
    int most = nloop;
    for (int s = 0; s < nest->nstage; s++)
        for (int i = 0; i < most; i++)
            if (loop[i] == nest->stage[s].axis)
                most = i + 1;
    for (int i = 0; i < most; i++)
        if (loop[i] == row || nest->axis[loop[i]].scanned)
            most = i;
    return most;
}

void choose_threads(Nest *nest)
{
    const Kernel *k = nest->k;
    double ns = estimate(k, nest->target);
    if (ns < 2 * nest->target->machine.part_ns || !can_be_cut(k))
        return;
    Arena *a = arena_new();
    int *loop = NEWN(a, int, nest->norder), nloop = 0;
    for (int i = 0; i < nest->norder; i++) {
        const NestAxis *x = &nest->axis[nest->order[i]];
        if (!x->reduced && !x->remainder && x->extent != 1 && x->form == AXIS_LOOP &&
            !nest_in_partial(nest, nest->order[i]))
            loop[nloop++] = nest->order[i];
    }
    ThreadCut c = {.nest = nest,
                   .loop = loop,
                   .nloop = nloop,
                   .most = loops_to_cut(nest, loop, nloop),
                   .parts = most_parts(nest, ns)};
    if (!cut_inside(&c))
        cut_from(&c, 0);
    Opt o = {.kind = OPT_THREAD, .amount = count_parts(c.iterations, c.parts)};
    if (c.end > c.from)
        o.axis = loop_axis(&c, c.end - 1)->name;
    if (c.from)
        o.axis = arena_printf(nest->arena, "%s..%s", loop_axis(&c, c.from)->name, o.axis);
    if (o.amount >= 2)
        (void)opt_apply(nest, &o);
    arena_free(a);
}
