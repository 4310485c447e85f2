/* io_in_arena.c - inputs and outputs lie in the arena (--io-in-arena).
 *
 *     an input     is the caller's up to the first step, and dies at its last read
 *     an output    is born at its first write, and is the caller's behind the last step
 *
 * So what a layer makes may lie on the input, and the output on what an earlier layer had.
 *
 * Requires that layouts are chosen: they stay those of the interface, dense. Leaves buffers of the
 * arena that are `lent`. */
#include "plan.h"

static bool refuse(const Plan *p, const Buffer *b, const NamedNode *io, const char *why)
{
    ingot_error(p->c, INGOT_UNSUPPORTED, "--io-in-arena: %s '%s' %s",
                b->kind == BUF_INPUT ? "input" : "output", io->name, why);
    return false;
}

static bool lend(const Plan *p, Buffer *b, const NamedNode *io, const Node *bound)
{
    if (b->kind != BUF_INPUT && b->kind != BUF_OUTPUT)
        BUG("'%s' is neither an input nor an output", io->name);
    if (b->dtype == INGOT_STRING)
        return refuse(p, b, io, "is of strings, which have no place of fixed size");
    if (!const_dims(b))
        return refuse(p, b, io, "has a size that is known at run time only: give --dim");
    if (io->here)
        return refuse(p, b, io, "may be absent");
    if (bound)
        return refuse(p, b, io, "is bound to a value");
    b->lent = b->kind == BUF_INPUT ? LENT_FIRST : LENT_LAST;
    b->kind = BUF_ARENA;
    return true;
}

bool plan_io_in_arena(Plan *p)
{
    const Context *c = p->c;
    if (c->nfunction || c->ninput_group || c->noutput_group) {
        ingot_error(p->c, INGOT_UNSUPPORTED,
                    "--io-in-arena: not for a model of several functions, sequences or optionals");
        return false;
    }
    bool good = true;
    for (int i = 0; i < c->ninput; i++)
        good &= lend(p, p->input[i], &c->inputs[i], c->bound ? c->bound[i] : NULL);
    for (int i = 0; i < c->noutput; i++)
        good &= lend(p, p->output[i], &c->outputs[i], NULL);
    return good;
}
