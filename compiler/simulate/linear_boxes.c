/* linear_boxes.c - boxes of buffers that one item has copied while the warps of its group multiply
 * what has come.
 *
 * Tokens say who may go on: places are claimed, filled and released.  A copy may be done as soon as
 * it has begun, and a product reads until it has been waited for: whoever comes too early is
 * told. */
#include <string.h>

#include "linear_thread.h"

/* Which element of the buffer a box has as its number e, of a window: of the position so many
 * behind the first one. */
static bool window_element(const Thread *t, const Do *d, int64_t e, int64_t *from)
{
    const Box *b = d->box;
    const int64_t run = b->elements / b->count; /* channels of one are outermost */
    int64_t carry = e % run / b->size[0];
    bool inside = true;
    *from = b->offset;
    for (int i = 0; i < b->rank; i++) {
        int64_t at = *integer(t, d->operand[i]);
        if (i) {
            const int64_t low = i + 1 < b->rank ? b->low[i] : 0,
                          position = (at - low) / b->step[i] + carry;
            carry = i + 1 < b->rank ? position / b->many[i] : 0;
            at = low + (i + 1 < b->rank ? position % b->many[i] : position) * b->step[i];
        } else {
            at += e % b->size[0] + e / run * b->size[0];
        }
        at += *integer(t, d->operand[b->rank + i]);
        *from += at * b->stride[i];
        inside &= at >= 0 && at < b->extent[i];
    }
    return inside;
}

/* The same of a box along the buffer's axes. */
static bool box_element(const Thread *t, const Do *d, int64_t e, int64_t *from)
{
    const Box *b = d->box;
    int64_t rest = e;
    bool inside = true;
    *from = b->offset;
    for (int i = 0; i < b->rank; i++) { /* the runs of the first axis are outermost */
        int64_t at = *integer(t, d->operand[i]) + rest % b->size[i];
        at += i ? 0 : e / (b->elements / b->count) * b->size[0];
        rest /= b->size[i];
        *from += at * b->stride[i];
        inside &= at < (b->end[i] ? *integer(t, d->operand[b->rank + i]) : b->extent[i]);
    }
    return inside;
}

enum { ONCE = -1 }; /* in place of the iteration */

/* What the copy takes of a box: zero beyond the ends. */
bool thread_box(Thread *t, const Do *d)
{
    const Box *b = d->box;
    const LinearArg *of = &t->arg[b->arg], *to = &t->arg[d->arg];
    const int64_t size = d->stored, place = *integer(t, d->in[0]);
    Do read = *d;
    read.arg = b->arg;
    if (!thread_access(t, d, place, b->elements, true))
        return false;
    unsigned char *data = arena_alloc(t->a, (size_t)(b->elements * size));
    memset(data, 0, (size_t)(b->elements * size));
    for (int64_t e = 0; e < b->elements; e++) {
        int64_t from;
        if (!(b->window ? window_element : box_element)(t, d, e, &from))
            continue;
        if (!thread_access(t, &read, from, 1, false))
            return false;
        memcpy(data + e * size, of->memory->bytes + of->at + from * size, (size_t)size);
    }
    struct Landing l = {to->memory, to->at + place * size, b->elements * size,
                        b->once ? ONCE : t->boxes->claimed - 1, data};
    vec_push(t->a, t->boxes->landing, t->boxes->nlanding, l);
    return true;
}

/* Copies may be done as soon as they have begun, and no later than when somebody has waited for
 * them. */
static void land(Boxes *b, int64_t upto)
{
    int left = 0;
    for (int i = 0; i < b->nlanding; i++) {
        const struct Landing *l = &b->landing[i];
        if (l->iteration > upto || (l->iteration == ONCE) != (upto == ONCE)) {
            b->landing[left++] = *l;
            continue;
        }
        memcpy(l->to->bytes + l->at, l->data, (size_t)l->bytes);
        shadow_landed(l->to, l->at, l->bytes);
    }
    b->nlanding = left;
}

/* The warp's products are done, but for the last so many groups. */
static void use_done(Boxes *b, int warp, int but)
{
    int left = 0;
    for (int i = 0; i < b->nuse; i++) {
        const struct ProductUse *u = &b->use[i];
        if (u->warp == warp && u->group < b->groups[warp] - but)
            shadow_used(u->of, u->at, u->bytes);
        else
            b->use[left++] = *u;
    }
    b->nuse = left;
}

bool thread_use(const Thread *t, const Do *d, int arg, int64_t at, int64_t n)
{
    const LinearArg *a = &t->arg[arg];
    const int warp = thread_warp(t);
    Do read = *d;
    read.arg = arg;
    int64_t where = 0;
    if (at < 0 || at + n > a->size)
        return thread_fault_at(t, &read, "reads", at, ", outside of the buffer");
    struct ProductUse u = {a->memory, a->at + at * d->stored, n * d->stored, warp,
                           t->boxes->groups[warp]};
    const AccessFault how = shadow_use(u.of, u.at, u.bytes, &where);
    if (how != ACCESS_GOOD)
        return thread_fault_at(t, &read, "reads", (where - a->at) / d->stored,
                               how == ACCESS_UNWRITTEN
                                   ? ", which nothing has written"
                                   : ", to which a copy is under way that has not been waited for");
    vec_push(t->a, t->boxes->use, t->boxes->nuse, u);
    return true;
}

/* Can the loader go on, or the warp of this item? What that changes. */
bool thread_pass(Thread *t)
{
    enum { LAG = 1 }; /* groups of products that go on behind a release */
    const Do *d = &t->c->code[t->pc - 1];
    Boxes *b = t->boxes;
    const bool once = d->in[0] < 0;
    const int64_t iteration = once ? 0 : *integer(t, d->in[0]);
    const int warp = t->loader ? 0 : thread_warp(t);
    switch (d->kind) {
    case DO_CLAIM:
        b->once |= once;
        if (once)
            return true;
        for (int i = 0; i < t->lk->group / t->lk->tc->lanes; i++)
            if (b->released[i] < iteration - d->arg + 1)
                return false;
        b->claimed = iteration + 1;
        return true;
    case DO_FILLED:
        if (once ? !b->once : b->claimed <= iteration)
            return false;
        land(b, once ? ONCE : iteration);
        return true;
    case DO_DONE:
        b->groups[warp]++;
        use_done(b, warp, 0);
        return true;
    default: /* DO_RELEASE */
        b->groups[warp]++;
        use_done(b, warp, d->in[0] < 0 ? 0 : LAG);
        b->released[warp] = d->in[0] < 0 ? b->released[warp] : iteration;
        return true;
    }
}
