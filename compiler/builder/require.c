/* require.c - what only the run can tell about sizes: checks that become steps of the program.
 *
 * Where the rules of a model make two sizes equal that are different expressions to us (the batch
 * of one input and that of another, which are added), there is nothing to prove: one is taken for
 * the other and the program checks it.  A requirement belongs to the region in which it is stated:
 * that of a branch is checked when the branch is taken. */
#include <limits.h>
#include <string.h>

#include "builder.h"

static const char *bounds_text(Context *c, Node *least, Node *greatest)
{
    if (least == greatest)
        return dim_text(c, least);
    return arena_printf(c->arena, "in %s..%s", dim_text(c, least), dim_text(c, greatest));
}

static bool stated(const Requires *r, Node *value, Node *least, Node *greatest)
{
    for (int i = 0; i < r->n; i++)
        if (r->item[i]->value == value && r->item[i]->least == least &&
            r->item[i]->greatest == greatest)
            return true;
    return false;
}

/* Here, or around the regions that are open. */
static bool stated_around(const Context *c, Node *value, Node *least, Node *greatest)
{
    for (const struct Region *r = c->region; r; r = r->outer)
        if (stated(&r->require, value, least, greatest))
            return true;
    return stated(&c->require, value, least, greatest);
}

void require_or_skip(Context *c, Node *value, Node *least, Node *greatest, const char *what)
{
    Requires *all = c->region ? &c->region->require : &c->require;
    Require *r = NEW(c->arena, Require);
    *r = (Require){value, least, greatest, arena_strdup(c->arena, what),
                   c->at ? c->at->origin : NULL};
    vec_push(c->arena, all->item, all->n, r);
}

bool ingot_require(ingot_context *c, ingot_dim *value, ingot_dim *least, ingot_dim *greatest,
                   const char *what)
{
    if (poisoned(value) || poisoned(least) || poisoned(greatest))
        return false;
    if (value->dtype != INGOT_INDEX || least->dtype != INGOT_INDEX ||
        greatest->dtype != INGOT_INDEX) {
        ingot_error(c, INGOT_INVALID,
                    "a requirement on a tensor; ingot_read_dim turns a tensor into a dim");
        return false;
    }
    Node *low = idx_le(c, least, value), *high = idx_le(c, value, greatest);
    bool equal = least == greatest && idx_provably_equal(c, value, least);
    if (equal || (node_is_const_i(low, 1) && node_is_const_i(high, 1)) ||
        stated_around(c, value, least, greatest))
        return true;
    bool never = node_is_const_i(low, 0) || node_is_const_i(high, 0);
    if (least == greatest) {
        Node *same = idx_eq(c, value, least);
        never |= node_is_const_i(same, 0);
    }
    if (never) {
        ingot_error(c, INGOT_INVALID, "%s is %s; it has to be %s", what, dim_text(c, value),
                    bounds_text(c, least, greatest));
        return false;
    }
    require_or_skip(c, value, least, greatest, what);
    return true;
}

/* Which of two equal dims says more? */
static bool is_better(const Context *c, Node *a, Node *b)
{
    if ((a->op == OP_CONST) != (b->op == OP_CONST))
        return a->op == OP_CONST;
    if (a->hi != b->hi) /* buffers have room for the bound */
        return a->hi < b->hi;
    if ((a->op == OP_VAR) != (b->op == OP_VAR))
        return a->op == OP_VAR;
    bool known =
        a->op == OP_VAR && c->vars[a->arg.i].kind == VAR_DIM; /* known before the first step */
    if (a->op == OP_VAR && known != (c->vars[b->arg.i].kind == VAR_DIM))
        return known;
    return a->lo != b->lo ? a->lo > b->lo : a->id < b->id;
}

ingot_dim *ingot_require_equal(ingot_context *c, ingot_dim *value, ingot_dim *wanted,
                               const char *what)
{
    if (value == wanted)
        return value;
    if (!ingot_require(c, value, wanted, wanted, what))
        return c->poison;
    return is_better(c, value, wanted) ? value : wanted;
}

ingot_tensor *ingot_require_size(ingot_context *c, ingot_tensor *x, int axis, ingot_dim *d,
                                 const char *what)
{
    Node *dims[INGOT_MAX_RANK];
    if (poisoned(x) || poisoned(d))
        return c->poison;
    if (axis < 0 || axis >= x->rank)
        return ingot_error(c, INGOT_INVALID, "a size of axis %d of a tensor of rank %d", axis,
                           x->rank);
    if (!ingot_require(c, x->shape[axis], d, d, what))
        return c->poison;
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == axis ? d : x->shape[i];
    return with_shape(c, x, dims);
}

ingot_dim *ingot_require_bounds(ingot_context *c, ingot_dim *d, int64_t lo, int64_t hi,
                                const char *what)
{
    if (poisoned(d) || (d->lo >= lo && d->hi <= hi))
        return d;
    if (d->lo > hi || d->hi < lo)
        return ingot_error(c, INGOT_INVALID, "%s is %s; it has to be %s", what, dim_text(c, d),
                           bounds_text(c, idx(c, lo), idx(c, hi)));
    /* an integer of its own, for its bounds are those of all its uses */
    return dim_copy(c, d, what, lo > d->lo ? lo : d->lo, hi < d->hi ? hi : d->hi);
}

void requires_move(Context *c, Requires *to, const Requires *from)
{
    for (int i = 0; i < from->n; i++)
        vec_push(c->arena, to->item, to->n, from->item[i]);
}
