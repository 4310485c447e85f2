/* state_in_place.c - a state's next value is written where the state lies.
 *
 *     next = w - rate * g              next, on w's bytes, = w - rate * g
 *     ... = x * w               ->     (x * w has run before)
 *     copy w = next
 *
 * May be, where the step that makes `next` reads each element of the state just where it writes
 * (or not at all), and all others who read the state can run before it.  Who reads `next` reads it
 * there.  So steps get another order, in which every such state has its own edges: its readers
 * come before its writer.  Where there are several orders, the one that holds the fewest bytes at
 * its worst is taken: a gradient is used up as soon as it is there, and what it was made of dies.
 *
 * An update of a few rows begins with a copy of the state, which is left out.
 *
 * Requires the final sizes and layouts of all buffers, kernels that no two steps share, and no step
 * numbers yet.  Leaves Buffer.takes, and the order of the main steps. */
#include <stdlib.h>
#include <string.h>

#include "memplan.h"
#include "step_order.h"

typedef struct {
    Buffer *state, *next;
    int copy;     /* step that brings it back */
    int writer;   /* the first that writes it */
    bool is_copy; /* and does no more than to copy the state */
    int from, to; /* arguments of the writer: the state (-1: not read), the next value */
} StateUpdate;

/* ---- which states may be --------------------------------------------------------------- */

/* The state that a step copies a value to, at the end of a run. */
static bool copies_back(const Step *s, StateUpdate *u)
{
    int64_t zero;
    if (s->kind != STEP_COPY || s->bufs[0]->kind != BUF_STATE || s->bufs[1]->kind != BUF_ARENA)
        return false;
    *u = (StateUpdate){.state = s->bufs[0], .next = s->bufs[1], .writer = -1, .from = -1, .to = -1};
    return !u->next->base && !u->next->kept && !u->next->takes && !u->state->base &&
           u->next->bytes == u->state->bytes && u->next->dtype == u->state->dtype &&
           layout_equal(&u->next->layout, &u->state->layout) && idx_value(s->dst_offset, &zero) &&
           !zero && idx_value(s->src_offset, &zero) && !zero;
}

/* Whether a kernel copies argument `from` to argument `to` as it lies, all of it, and does nothing
 * else. */
static bool is_plain_copy(const Kernel *k, int from, int to)
{
    const Node *end = k->sink->src[0];
    if (k->sink->nsrc != 1 || end_stores(end) != 1)
        return false;
    Node *store = end->src[0], *value = store->src[2];
    return value->op == OP_LOAD && value->src[0]->arg.i == from && store->src[0]->arg.i == to &&
           node_is_const_i(value->src[1], 1) && node_is_const_i(store->src[1], 1) &&
           covers(k, store);
}

static bool find_writer(Arena *a, const Block *b, StateUpdate *u)
{
    for (int i = 0; i < b->n && u->writer < 0; i++)
        if (step_touches(b->step[i], u->next) & TOUCH_WRITES)
            u->writer = i;
    if (u->writer < 0 || b->step[u->writer]->kind != STEP_KERNEL)
        return false;
    const Step *s = b->step[u->writer];
    const Kernel *k = s->kernel;
    for (int i = 0; i < s->nbuf; i++) {
        const Buffer *root = buffer_root(s->bufs[i]);
        if (root != u->state && root != u->next)
            continue;
        int *arg = root == u->state ? &u->from : &u->to;
        if (*arg >= 0 || s->bufs[i] != root || (root == u->next) != k->args[i].written ||
            (root == u->next && k->args[i].read))
            return false;
        *arg = i;
    }
    u->is_copy = u->from >= 0 && is_plain_copy(k, u->from, u->to);
    return u->from < 0 || reads_what_it_writes(a, k, u->from, u->to);
}

/* ---- the order ------------------------------------------------------------------------- */

/* Whether all readers of the state can come before its writer; if so, they do. */
static bool can_be_in_place(StepOrder *o, const Block *b, const StateUpdate *u)
{
    bool *after = steps_after(o, u->writer);
    for (int i = 0; i < b->n; i++)
        if (i != u->writer && i != u->copy && after[i] && step_touches(b->step[i], u->state))
            return false;
    for (int i = 0; i < b->n; i++)
        if (i != u->writer && i != u->copy && (step_touches(b->step[i], u->state) & TOUCH_READS))
            step_before(o, i, u->writer);
    return true;
}

static int by_bytes(const void *a, const void *b)
{
    const StateUpdate *x = a, *y = b;
    if (x->state->bytes != y->state->bytes)
        return x->state->bytes < y->state->bytes ? 1 : -1;
    return x->copy - y->copy;
}

static void put_in_place(Plan *p, Step *s, const StateUpdate *u)
{
    u->next->takes = u->state;
    u->next->kept = true;
    plan_note(p, (Note){.pass = "states",
                        .what = "in place",
                        .why = "all that read the state run before its next value is made",
                        .node = u->next->node,
                        .step = s,
                        .buffer = u->next,
                        .other = u->state,
                        .operations = -1,
                        .bytes = u->next->bytes});
    if (u->from >= 0 && !u->is_copy)
        merge_args(p->arena, s->kernel, u->from, u->to);
}

static void drop_steps(Block *b, const bool *dropped, const int *order)
{
    Step **kept = NULL;
    Arena *a = arena_new();
    int n = 0;
    for (int i = 0; i < b->n; i++) {
        Step *s = b->step[order[i]];
        if (!dropped[order[i]])
            vec_push(a, kept, n, s);
        else if (s->kernel) /* no other step has it */
            ingot_context_free(s->kernel->c);
    }
    memcpy(b->step, kept, (size_t)n * sizeof *kept);
    b->n = n;
    arena_free(a);
}

void states_in_place(Plan *p)
{
    Block *b = &p->main;
    Arena *a = arena_new();
    StateUpdate *u = NULL, one;
    int n = 0, nplaced = 0;
    for (int i = 0; i < b->n; i++)
        if (copies_back(b->step[i], &one) && (one.copy = i, find_writer(a, b, &one)))
            vec_push(a, u, n, one);
    if (n) {
        qsort(u, (size_t)n, sizeof *u, by_bytes);
        bool *dropped = NEWN(a, bool, b->n);
        StepOrder *o = step_order_new(a, p, b);
        for (int i = 0; i < n; i++)
            if (can_be_in_place(o, b, &u[i])) {
                put_in_place(p, b->step[u[i].writer], &u[i]);
                dropped[u[i].copy] = true;
                dropped[u[i].writer] = u[i].is_copy;
                nplaced++;
            }
        if (nplaced)
            drop_steps(b, dropped, step_order_best(o));
    }
    arena_free(a);
}

const char *states_fault(Arena *a, const Plan *p)
{
    const Block *b = &p->main;
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *next = p->buffers[i], *state = next->takes;
        bool written = false;
        for (int k = 0; k < b->n && state; k++) {
            if (written && step_touches(b->step[k], state))
                return arena_printf(a, "step %d uses state '%s', whose next value lies there", k,
                                    state->name);
            written |= (step_touches(b->step[k], next) & TOUCH_WRITES) != 0;
        }
    }
    return NULL;
}
