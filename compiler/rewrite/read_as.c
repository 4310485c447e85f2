/* read_as.c - what products round is rounded for all who read it.
 *
 *     conv(bf16(x)) .. + x                x lies in memory as f32 and as bf16
 *         -> conv(bf16(x)) .. + f32(bf16(x))      as bf16 alone: half of the bytes, and no cast by
 * itself
 *
 *     conv(h, l) .. + x                   two parts, h = bf16(x) and l = bf16(x - h)
 *         -> conv(h, l) .. + (f32(h) + f32(l))    4 bytes in place of 8
 *
 * The builder says of which values (ingot_read_as()). It is a part of what is asked for, not of how
 * it is computed: the interpreter's graph is changed alike. */
#include "builder.h"
#include "rewrite.h"

/* Is the node that is visited to multiply such numbers? One that a precision leaves out by its name
 * (--precision f32:GLOB) reads what there is. */
static bool is_meant(Context *c, const Node *instead)
{
    const ingot_precision p = ingot_precision_here(c);
    return p == (instead->dtype == INGOT_BF16  ? INGOT_PRECISION_BF16
                 : instead->dtype == INGOT_F16 ? INGOT_PRECISION_F16
                                               : INGOT_PRECISION_BF16X3);
}

/* Is t a part of what stands for x: of the sum of its parts, or the cast? What is older than x is
 * not made of it. */
static bool makes(const Node *instead, const Node *x, const Node *t)
{
    if (instead == t)
        return true;
    bool any = false;
    for (uint32_t i = 0; i < instead->nsrc && instead->id > x->id && !any; i++)
        any = makes(instead->src[i], x, t);
    return any;
}

/* What stands for x, of what x has become. */
static Node *made_of(Rewrite *r, Node *instead, const Node *x)
{
    if (instead->id <= x->id)
        return rewritten(r, instead);
    if (!instead->nsrc)
        return instead;
    Node **src = NEWN(r->a, Node *, instead->nsrc);
    for (uint32_t i = 0; i < instead->nsrc; i++)
        src[i] = made_of(r, instead->src[i], x);
    return made_again(r, instead, src);
}

/* What t reads in place of its source x, or NULL. */
static Node *read_instead(Rewrite *r, Node *t, Node *x)
{
    Node *instead = map_get(&r->c->read_as, (uint64_t)x->id + 1);
    if (!instead && t->op == OP_REDUCE)
        instead = map_get(&r->c->summed_as, (uint64_t)x->id + 1);
    if (!instead || !x->nsrc || !is_meant(r->c, instead) || makes(instead, x, t))
        return NULL;
    return ingot_cast(r->c, made_of(r, instead, x), (ingot_dtype)x->dtype);
}

static Node *read_as(Rewrite *r, Node *t)
{
    if (t->op == OP_LOOP || t->op == OP_IF)
        return NULL;
    Node **src = NEWN(r->a, Node *, t->nsrc + 1);
    bool any = false;
    for (uint32_t i = 0; i < t->nsrc; i++) {
        Node *other = read_instead(r, t, t->src[i]);
        src[i] = other ? other : rewritten(r, t->src[i]);
        any |= other != NULL;
    }
    return any ? made_again(r, t, src) : NULL;
}

/* What has been told is of all functions of the model: each is rewritten when its turn comes. What
 * reads the widened number already is left as it is. */
void graph_read_as(Context *c)
{
    if (!c->read_as.n && !c->summed_as.n)
        return;
    Rewrite r = {.c = c, .a = arena_new(), .renew = read_as};
    (void)rewrite_pass(&r);
    arena_free(r.a);
}
