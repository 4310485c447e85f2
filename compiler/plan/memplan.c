/* memplan.c - gives every byte its place: offsets in the arena and in the weights.
 *
 *   1. accesses   which steps read and write each buffer, by depth-first step number; a view counts
 *                 for its base
 *   2. liveness   [first, last] of its accesses, stretched over every loop that it enters or
 *                 leaves; to the end where strings point into it
 *   3. in place   a result takes the bytes of an operand that dies in the same step, where the
 *                 kernel reads that operand only at the element it writes
 *   4. packing    states first, never shared; then greedy best fit in several orders (the packing
 *                 of rectangles time x bytes is NP-hard; greedy by size comes close to the lower
 *                 bound), each again with what ended highest in front; the best of all is kept
 *   5. memories   of several, each but the last takes what gains most by lying there: accesses
 *                 to each of its bytes, by how long it is held; what finds no room goes on to the
 *                 next. What a file says of a value counts before that
 *   6. weights    place_weights.c
 *
 * Requires step numbers, Buffer.bytes, and the memories' limits. Leaves memory, offset, first, last
 * of all buffers, and the sizes in the plan. Inputs and outputs belong to the caller and have no
 * place, but for those that are lent (io_in_arena.c). */
#include <string.h>

#include "memplan.h"

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

/* What runs aside may fall behind (asides.c): nobody takes the bytes that it still needs. */
static void hold(Memplan *m, const Step *s)
{
    enum { BEHIND = 128 }; /* steps: those of some layers */
    for (int i = 0; i < s->nbuf; i++) {
        Usage *u = &m->use[buffer_root(s->bufs[i])->id];
        u->held = s->number + BEHIND;
    }
}

static void touch_block(Memplan *m, const Block *block)
{
    for (int i = 0; i < block->n; i++) {
        touch_step(m, block->step[i]);
        if (block->step[i]->aside)
            hold(m, block->step[i]);
    }
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
        if (b->lent)
            b->last = 0; /* it has a place, whoever reads it */
        if (!u->naccess)
            continue;
        b->first = b->lent == LENT_FIRST ? 0 : u->access[0].step;
        for (int k = 0; k < u->naccess; k++)
            b->last = b->last > u->access[k].step ? b->last : u->access[k].step;
        for (int k = 0; k < m->nloop; k++)
            stretch(u, m->loops[k], &b->first, &b->last);
    }
    int end = 0;
    for (int i = 0; i < m->p->nbuffer; i++)
        end = end > m->p->buffers[i]->last ? end : m->p->buffers[i]->last;
    for (int i = 0; i < m->p->nbuffer; i++) {
        Buffer *b = m->p->buffers[i];
        const int held = m->use[i].held < end ? m->use[i].held : end;
        if (m->use[i].held && b->last < held)
            b->last = held;
        if (b->kept || b->lent == LENT_LAST)
            b->last = end;
    }
    for (int i = 0; i < m->p->nbuffer; i++) {
        Buffer *b = m->p->buffers[i];
        b->first = buffer_root(b)->first;
        b->last = buffer_root(b)->last;
    }
}

/* ---- what is accessed most ----------------------------------------------------------------- */

/* Adds the bytes that the steps load and store, by buffer. A kernel does so as its expression says,
 * for each element that it computes; other steps touch each byte once. */
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

/* ---- placing --------------------------------------------------------------------------------- */

static bool align_up(int64_t *x, int64_t align)
{
    if (*x > INT64_MAX - align)
        return false;
    *x = ceil_div(*x, align) * align;
    return true;
}

int memories_from(const Plan *p, int device)
{
    int k = 0;
    while (k < p->nmemory && p->memories[k].device < device)
        k++;
    return k;
}

int memories_end(const Plan *p, int device)
{
    return memories_from(p, device + 1);
}

/* All that lies on a device, in its memories: those of another one it does not reach. */
static bool place_on(Memplan *m, int device, Group **order)
{
    const Plan *p = m->p;
    int n = 0;
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        if (b->kind == BUF_ARENA && !b->base && !b->takes && b->last >= 0 &&
            m->group[i].leader == i && b->device == device)
            order[n++] = &m->group[i];
    }
    m->from = memories_from(p, device);
    m->end = memories_end(p, device);
    return share_out(m, order, n);
}

static bool place_all(Memplan *m)
{
    Plan *p = m->p;
    Group **order = NEWN(m->a, Group *, p->nbuffer + 1);
    m->placed = NEWN(m->a, Group *, p->nbuffer + 1);
    if (p->nmemory > 1)
        find_gains(m);
    for (int device = 0; device < p->ndevice; device++)
        if (!place_on(m, device, order))
            return false;
    for (int k = 0; k < p->nmemory; k++)
        p->memories[k].bytes += p->memories[k].states;
    p->arena_bytes = 0;
    for (int k = 0; k < memories_end(p, 0); k++)
        p->arena_bytes = sat_add(p->arena_bytes, p->memories[k].bytes);
    for (int i = 0; i < p->nbuffer; i++) {
        Buffer *b = p->buffers[i];
        if (b->kind != BUF_ARENA || b->base)
            continue;
        if (b->takes) {
            b->memory = b->takes->memory;
            b->offset = b->takes->offset;
            continue;
        }
        const Group *g = &m->group[leader(m, i)];
        b->memory = g->memory;
        b->offset = p->memories[g->memory].states + g->offset;
    }
    return true;
}

/* Of a state that devices have in parts (rewrite/shard_states.c), which has no bytes itself. */
static bool lies_in_parts(const Plan *p, const Buffer *b)
{
    return b->slot < p->c->nstate && p->c->states[b->slot].part && p->c->states[b->slot].axis >= 0;
}

/* Bytes of the states of a device. */
static bool place_states_of(Memplan *m, int device, int64_t *bytes)
{
    Plan *p = m->p;
    int64_t at = 0;
    for (int i = 0; i < p->nbuffer; i++) {
        Buffer *b = p->buffers[i];
        if (b->kind != BUF_STATE || b->base || b->device != device)
            continue;
        b->offset = at;
        if (lies_in_parts(p, b))
            continue;
        if (b->bytes > MAX_TENSOR_BYTES - at)
            return false;
        at += b->bytes;
        if (!align_up(&at, m->align))
            return false;
    }
    *bytes = at;
    return true;
}

/* All of a device in one memory: the first that is large enough, or the last. */
static bool place_states(Memplan *m)
{
    Plan *p = m->p;
    for (int d = 0; d < p->ndevice; d++) {
        int64_t bytes = 0;
        int memory = memories_from(p, d);
        if (!place_states_of(m, d, &bytes))
            return false;
        while (memory + 1 < memories_end(p, d) && p->memories[memory].limit < bytes)
            memory++;
        p->memories[memory].states = bytes;
        p->state_bytes = d ? p->state_bytes : bytes;
        p->state_memory = d ? p->state_memory : memory;
        for (int i = 0; i < p->nbuffer; i++)
            if (p->buffers[i]->kind == BUF_STATE && p->buffers[i]->device == d)
                p->buffers[i]->memory = memory;
    }
    return true;
}

/* What a file says of the value that a buffer holds; copies of it, which come later, are free.
 * False after a fault. */
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
        } else if (p->memories[k].device != b->device) {
            sched_error(p, given->line, "memory '%s' is not of device %d, where this value lies",
                        given->memory, b->device);
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
        if (memories_end(p, b->device) - memories_from(p, b->device) > 1)
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

int64_t plan_given_bytes(const Plan *p)
{
    int64_t given = 0;
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        if (!b->base && (b->kind == BUF_INPUT || b->kind == BUF_OUTPUT))
            given = sat_add(given, b->bytes);
    }
    return given;
}

/* ------------------------------------------------------------------------------------------ */

static bool too_large(Plan *p, const char *what, const char *name)
{
    context_report(p->c, INGOT_ERROR, INGOT_UNSUPPORTED,
                   "%s: %s%s%s%s more than 2^40 bytes of memory", p->c->file ? p->c->file : "model",
                   what, name ? " '" : "", name ? name : "", name ? "' needs" : " need");
    return false;
}

bool memplan(Plan *p, int64_t align)
{
    Memplan m = {.p = p, .a = p->arena, .align = align};
    for (int device = 0; device < p->ndevice; device++)
        if (memories_from(p, device) == memories_end(p, device))
            vec_push(p->arena, p->memories, p->nmemory, ((Memory){.device = device}));
    m.use = NEWN(m.a, Usage, p->nbuffer + 1);
    m.group = NEWN(m.a, Group, p->nbuffer + 1);
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffers[i]->bytes < 0 || p->buffers[i]->bytes > MAX_TENSOR_BYTES)
            return too_large(p, "tensor", p->buffers[i]->name ? p->buffers[i]->name : "?");
    touch_block(&m, &p->main);
    for (int i = 0; p->begin && i < p->c->nstate; i++)
        if (p->begin[i])
            touch(&m, p->begin[i], 0, true);
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
    take_over(&m);
    if (!find_wanted(&m))
        return false;
    if (!place_states(&m) || !place_all(&m))
        return too_large(p, "the intermediate tensors", NULL);
    if (!note_memories(&m))
        return false;
    if (!weights_place(p, m.nweight, m.weight))
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
    return (b->kind == BUF_ARENA || b->kind == BUF_STATE) && !b->base && !b->takes &&
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
