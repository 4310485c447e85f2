/* linear_access.c - loads, stores and copies of a thread: each is looked up in the shadow of its
 * buffer's memory first, which knows what was written, by whom, and what is under way. */
#include <string.h>

#include "interp.h"
#include "linear_thread.h"

bool thread_access(const Thread *t, const Do *d, int64_t first, int64_t n, bool write)
{
    const LinearArg *a = &t->arg[d->arg];
    const int64_t size = d->stored;
    int64_t where = 0;
    if (first < 0 || first + n > a->size)
        return thread_fault_at(t, d, write ? "writes" : "reads",
                               first < 0 || first >= a->size ? first : a->size,
                               ", outside of the buffer");
    if (write && t->joins && d->arg < t->lk->narg)
        return thread_fault_at(t, d, "writes", first,
                               ", before the other groups' parts of its sums are joined");
    const KernelArg *arg = &t->lk->k->args[d->arg];
    if (!t->depended && !arg->early && (write || !arg->settled))
        return thread_fault_at(t, d, write ? "writes" : "reads", first,
                               ", before what was enqueued earlier is done");
    int64_t at = a->at + first * size;
    const bool place = t->lk->group && d->arg >= t->lk->narg;
    const bool ranked = place && arg->ranks;
    if (ranked && write && t->met < t->meets) /* it has written the same, before they met */
        return true;
    const Epoch now = ranked  ? (Epoch)(t->met + 2) << 32 | (uint32_t)t->now
                      : place ? t->shared
                              : t->now;
    const uint64_t within = place ? 0 : t->within;
    const bool begins = write && ((d->kind == DO_BRING && d->part) || d->kind == DO_BOX);
    const LinearSample *sample = d->arg < t->lk->narg ? t->m->sample : NULL;
    if (sample && write && sample->wrote)
        sample->wrote(sample->user, (int)d->arg, first, n);
    AccessFault how = begins  ? shadow_begin(a->memory, at, n * size, now, &where)
                      : write ? shadow_write(a->memory, at, n * size, now, within, &where)
                              : shadow_read(a->memory, at, n * size, now, within, &where);
    if (how == ACCESS_UNWRITTEN && sample && sample->draw(sample->user, (int)d->arg, first, n))
        how = shadow_read(a->memory, at, n * size, now, within, &where);
    if (how == ACCESS_GOOD)
        return true;
    const int64_t element = (where - a->at) / size;
    switch (how) {
    case ACCESS_GOOD: break;
    case ACCESS_UNWRITTEN:
        return thread_fault_at(t, d, "reads", element, ", which nothing has written");
    case ACCESS_RACE:
        return thread_fault_at(t, d, write ? "a race: writes" : "a race: reads", element,
                               t->lk->items ? ", which another work item writes"
                                            : ", which another part writes");
    case ACCESS_UNDER_WAY:
        return thread_fault_at(t, d, write ? "writes" : "reads", element,
                               ", to which a copy is under way that has not been waited for");
    case ACCESS_BUSY:
        return thread_fault_at(t, d, "a race: writes", element,
                               ", which is read by a product that has not been waited for");
    case ACCESS_READ_RACE:
        return thread_fault_at(t, d, "a race: writes", element,
                               t->lk->items ? ", which another work item reads"
                                            : ", which another part reads");
    }
    return false;
}

/* One by one: what the gate of a lane refuses is zero. */
static bool load_apart(const Thread *t, const Do *d, int64_t first, ingot_dtype stored)
{
    const size_t size = (size_t)d->stored, held = (size_t)d->size;
    memset(t->f + d->out, 0, (size_t)(d->count * d->n) * held);
    for (int row = 0; row < d->count; row++)
        for (int i = 0; i < d->part; i++) {
            const int64_t at = first + row + i * d->step;
            if (d->in[1] >= 0 && !t->f[d->in[1] + i])
                continue;
            if (!thread_access(t, d, at, 1, false))
                return false;
            alu_cast((ingot_dtype)d->type, stored, 0, 1,
                     t->f + d->out + (size_t)(row * d->n + i) * held,
                     t->arg[d->arg].memory->bytes + t->arg[d->arg].at + at * (int64_t)size);
        }
    return true;
}

bool thread_load(const Thread *t, const Do *d)
{
    const int64_t first = *integer(t, d->in[0]);
    const ingot_dtype stored = t->lk->k->args[d->arg].dtype;
    const size_t size = (size_t)d->stored, held = (size_t)d->size;
    if (d->step != 1 || d->in[1] >= 0 || d->count > 1)
        return load_apart(t, d, first, stored);
    if (!thread_access(t, d, first, d->part, false))
        return false;
    const unsigned char *from =
        t->arg[d->arg].memory->bytes + t->arg[d->arg].at + first * (int64_t)size;
    unsigned char *to = t->f + d->out;
    if (stored == d->type && d->n == 1 && size == 4)
        memcpy(to, from, 4);
    else if (stored == d->type)
        memcpy(to, from, (size_t)d->part * size);
    else
        alu_cast(d->type, stored, 0, (size_t)d->part, to, from);
    if (d->part < d->n)
        memset(to + (size_t)d->part * held, 0, (size_t)(d->n - d->part) * held);
    return true;
}

bool thread_store(const Thread *t, const Do *d)
{
    const int64_t first = *integer(t, d->in[0]);
    const ingot_dtype stored = t->lk->k->args[d->arg].dtype;
    const int turns = d->kind == DO_STORE_IN_TURN ? d->count : 1;
    if (!thread_access(t, d, first, turns * d->part, true))
        return false;
    const size_t size = (size_t)d->stored, held = (size_t)d->size;
    unsigned char *to = t->arg[d->arg].memory->bytes + t->arg[d->arg].at + first * (int64_t)size;
    if (turns == 1 && stored == d->type) {
        memcpy(to, t->f + d->in[1], (size_t)d->part * size);
        return true;
    }
    for (int i = 0; i < d->part; i++) /* arithmetic does not saturate; casts have done so already */
        for (int j = 0; j < turns; j++, to += size) {
            const int from = turns > 1 ? d->operand[j] : d->in[1];
            alu_cast(stored, d->type, 1, 1, to, t->f + from + (size_t)i * held);
        }
    return true;
}

/* Lines of a fragment, in each of which the elements lie side by side, or a group of lines does. */
bool thread_load_tile(const Thread *t, const Do *d)
{
    const int64_t first = *integer(t, d->in[0]);
    const ingot_dtype stored = t->lk->k->args[d->arg].dtype;
    const int width = d->n / d->count;
    for (int line = 0; line < d->count / d->part; line++) {
        const int64_t at = first + line * d->step;
        if (!thread_access(t, d, at, width * d->part, false))
            return false;
        for (int i = 0; i < width * d->part; i++)
            alu_cast((ingot_dtype)d->type, stored, 0, 1,
                     t->f + d->out +
                         (size_t)((line * d->part + i % d->part) * width + i / d->part) *
                             (size_t)d->size,
                     t->arg[d->arg].memory->bytes + t->arg[d->arg].at + (at + i) * d->stored);
    }
    return true;
}

bool thread_store_tile(const Thread *t, const Do *d)
{
    const int64_t first = *integer(t, d->in[0]);
    const int width = d->n / d->count;
    for (int line = 0; line < d->count; line++) {
        const int64_t at = first + line * d->step;
        if (!thread_access(t, d, at, width, true))
            return false;
        memcpy(t->arg[d->arg].memory->bytes + t->arg[d->arg].at + at * d->stored,
               t->f + d->in[1] + (size_t)(line * width) * (size_t)d->size,
               (size_t)width * (size_t)d->size);
    }
    return true;
}

void thread_wait(Thread *t, int but)
{
    int left = 0;
    for (int i = 0; i < t->nflight; i++) {
        const struct Flight *f = &t->flight[i];
        if (f->group >= t->groups - but) {
            t->flight[left++] = *f;
            continue;
        }
        memcpy(f->to->bytes + f->at, f->data, (size_t)f->bytes);
        shadow_done(f->to, f->at, f->bytes, t->shared);
    }
    t->nflight = left;
}

bool thread_bring(Thread *t, const Do *d)
{
    const int64_t to = *integer(t, d->in[0]), from = *integer(t, d->in[1]);
    const LinearArg *at = &t->arg[d->arg], *of = &t->arg[d->from];
    const bool zero = d->in[2] >= 0 && !t->f[d->in[2]];
    const size_t bytes = (size_t)d->n * (size_t)d->stored;
    const int64_t whole = zero ? 0 : d->in[3] >= 0 ? *integer(t, d->in[3]) : d->n;
    Do read = *d;
    read.arg = d->from;
    if (!zero && (whole < 1 || whole > d->n))
        return thread_fault(t, d, "brings %lld of %d elements", (long long)whole, d->n);
    if (!zero && !thread_access(t, &read, from, (int)whole, false))
        return false;
    if (!thread_access(t, d, to, d->n, true))
        return false;
    unsigned char *p = at->memory->bytes + at->at + to * d->stored;
    if ((to * d->stored) % (int64_t)bytes || (!zero && (from * d->stored) % (int64_t)bytes))
        return thread_fault(t, d, "brings %zu bytes that do not begin at a multiple of that",
                            bytes);
    if (d->part) {
        struct Flight f = {at->memory, at->at + to * d->stored, t->groups, (int)bytes, {0}};
        memset(f.data, zero ? (int)(uint8_t)d->step : 0, bytes);
        if (!zero)
            memcpy(f.data, of->memory->bytes + of->at + from * d->stored,
                   (size_t)(whole * d->stored));
        vec_push(t->a, t->flight, t->nflight, f);
        return true;
    }
    memset(p, zero ? (int)(uint8_t)d->step : 0, bytes);
    if (!zero)
        memcpy(p, of->memory->bytes + of->at + from * d->stored, (size_t)(whole * d->stored));
    return true;
}

bool thread_load_lane(const Thread *t, const Do *d)
{
    const int64_t first = *integer(t, d->in[0]);
    const ingot_dtype stored = t->lk->k->args[d->arg].dtype;
    const int lane = (int)(uint32_t)t->now % t->lk->tc->lanes;
    for (int i = 0; i < d->n; i++) {
        const TcElement e = tc_element(t->lk->tc, d->from, lane, i);
        const int line = tc_lane_line(t->lk->tc, d->part, e.line);
        const int64_t at = first + line * d->step + (int64_t)e.at * d->count;
        if (!thread_access(t, d, at, 1, false))
            return false;
        alu_cast((ingot_dtype)d->type, stored, 0, 1, t->f + d->out + i * d->size,
                 t->arg[d->arg].memory->bytes + t->arg[d->arg].at + at * d->stored);
    }
    return true;
}
