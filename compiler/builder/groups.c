/* groups.c - sequences and optionals of the emitted interface: groups of inputs or outputs.
 *
 * The graph knows plain tensors only.  A group says which of them are the elements of one sequence,
 * and how many are there; the bundle makes an array of pointers of it.  An element that may be
 * absent has a first dim of 1 or 0, so that nothing of it is read or written when it is not
 * there. */
#include "builder.h"

ingot_dim *ingot_group_here(ingot_context *c, int i, ingot_dim *length, ingot_dim *present)
{
    if (!length)
        return present ? present : idx(c, 1);
    return idx_max(c, idx_min(c, idx_sub(c, length, idx(c, i)), idx(c, 1)), idx(c, 0));
}

static bool settable(Context *c, const Node *d)
{
    return !d || d->op == OP_CONST || (d->op == OP_VAR && c->vars[d->arg.i].kind == VAR_DIM);
}

static bool group_check(Context *c, const char *name, int n, Node *length, Node *present)
{
    if (!name) {
        ingot_error(c, INGOT_INVALID, "a group of tensors needs a name");
        return false;
    }
    if (n < 0 || (!length && n != 1) || (length && (length->lo < 0 || length->hi > n)) ||
        (present && (present->lo < 0 || present->hi > 1))) {
        ingot_error(c, INGOT_INVALID, "group '%s': %d tensors do not fit its length or presence",
                    name, n);
        return false;
    }
    return true;
}

void ingot_input_group(ingot_context *c, const char *name, int n, ingot_dim *length,
                       ingot_dim *present)
{
    if ((length && poisoned(length)) || (present && poisoned(present)) ||
        !group_check(c, name, n, length, present))
        return;
    if (!settable(c, length) || !settable(c, present)) {
        ingot_error(c, INGOT_INVALID, "group '%s': its length or presence is never set", name);
        return;
    }
    IoGroup g = {arena_strdup(c->arena, name), c->ninput, n, length, present};
    vec_push(c->arena, c->input_groups, c->ninput_group, g);
}

void ingot_output_group(ingot_context *c, const char *name, int n, ingot_dim *length,
                        ingot_dim *present)
{
    if ((length && poisoned(length)) || (present && poisoned(present)) ||
        !group_check(c, name, n, length, present))
        return;
    IoGroup g = {arena_strdup(c->arena, name), c->noutput, n, length, present};
    vec_push(c->arena, c->output_groups, c->noutput_group, g);
}

Node *group_here(Context *c, const IoGroup *group, int ngroup, int slot, Node *x)
{
    for (int i = 0; i < ngroup; i++) {
        const IoGroup *g = &group[i];
        if (slot < g->first || slot >= g->first + g->n)
            continue;
        Node *here = ingot_group_here(c, slot - g->first, g->length, g->present);
        if (idx_is(here, 1))
            return NULL;
        if (x->rank && x->shape[0] == here)
            return here;
        ingot_error(c, INGOT_INVALID,
                    "group '%s': the first dim of element %d is not whether it is there", g->name,
                    slot - g->first);
        return NULL;
    }
    return NULL;
}
