/* read_as.c - what products round is rounded for all who read it.
 *
 *     conv(bf16(x)) .. + x                x lies in memory as f32 and as bf16
 *         -> conv(bf16(x)) .. + f32(bf16(x))      as bf16 alone: half of the bytes, and no cast by
 * itself
 *
 * The builder says of which values (ingot_read_as()). It is a part of what is asked for, not of how
 * it is computed: the interpreter's graph is changed alike. */
#include "builder.h"
#include "rewrite.h"

/* Is the node that is visited to multiply such numbers? One that a precision leaves out by its name
 * (--precision f32:GLOB) reads what there is. */
static bool is_meant(Context *c, ingot_dtype narrow)
{
    const ingot_precision p = ingot_precision_here(c);
    return p == (narrow == INGOT_BF16 ? INGOT_PRECISION_BF16 : INGOT_PRECISION_F16);
}

/* What t reads in place of its source x, or NULL. */
static Node *read_instead(Rewrite *r, Node *t, Node *x)
{
    Node *narrow = map_get(&r->c->read_as, (uint64_t)x->id + 1);
    if (!narrow || !x->nsrc || !is_meant(r->c, (ingot_dtype)narrow->dtype) ||
        (t->op == OP_CAST && t->dtype == narrow->dtype))
        return NULL;
    Node *now = ingot_cast(r->c, rewritten(r, x), (ingot_dtype)narrow->dtype);
    if (narrow->op == OP_KEEP)
        now = ingot_contiguous(r->c, now);
    return ingot_cast(r->c, now, (ingot_dtype)x->dtype);
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

void graph_read_as(Context *c)
{
    if (!c->read_as.n)
        return;
    Rewrite r = {.c = c, .a = arena_new(), .renew = read_as};
    (void)rewrite_pass(&r);
    arena_free(r.a);
    map_free(&c->read_as);
    c->read_as = (Map){0};
}
