/* rewrite_control.c - loops and branches whose bodies or sources have been rewritten.
 *
 * A body refers to what it captures by the nodes themselves.  Sources come first, so these have
 * been rewritten when a loop is met; its body then is rewritten against them, and what it captures
 * is found anew: a rule may have looked through a captured value to what that is made of. */
#include <string.h>

#include "rewrite.h"

/* Everything that lies outside: what the captured values are made of, and they themselves. */
static bool *outside_of(Rewrite *r, Node *control)
{
    Node **src = NEWN(r->a, Node *, control->nsrc + 1);
    for (uint32_t i = 0; i < control->nsrc; i++)
        src[i] = rewritten(r, control->src[i]);
    return region_outside(r->a, r->c, (int)control->nsrc, src);
}

/* The region, rewritten; itself if that changes nothing. */
static struct Region *renewed_region(Rewrite *r, struct Region *old, Node *control)
{
    rewrite_below(r, old->nresult, old->result);
    bool same = true;
    for (int i = 0; i < old->nresult; i++)
        same &= rewritten(r, old->result[i]) == old->result[i];
    for (int i = 0; i < old->ncapture; i++)
        same &= rewritten(r, old->capture[i]) == old->capture[i];
    if (same)
        return old;
    struct Region *now = NEW(r->c->arena, struct Region);
    *now = *old;
    now->result = NEWN(r->c->arena, Node *, old->nresult + 1);
    for (int i = 0; i < old->nresult; i++)
        now->result[i] = rewritten(r, old->result[i]);
    region_captures(r->c, now, outside_of(r, control));
    return now;
}

static Node *tuple(Rewrite *r, Node *t, const void *arg, Node **src, int nsrc)
{
    return node_make(r->c, (Op)t->op, (ingot_dtype)t->dtype, (Arg){.ptr = arg}, nsrc, src, t->rank,
                     t->shape);
}

static Node *renewed_loop(Rewrite *r, Node *t)
{
    const Loop *old = t->arg.ptr;
    struct Region *body = renewed_region(r, old->body, t);
    int nsrc = 0, fixed = 1 + old->ncarried;
    bool same = body == old->body;
    Node **src = NULL;
    for (int i = 0; i < fixed; i++) {
        vec_push(r->a, src, nsrc, rewritten(r, t->src[i]));
        same &= src[i] == t->src[i];
    }
    for (int i = 0; i < body->ncapture; i++)
        vec_push(r->a, src, nsrc, body->capture[i]);
    if (same)
        return t;
    Loop *now = NEW(r->c->arena, Loop);
    *now = *old;
    now->body = body;
    return tuple(r, t, now, src, nsrc);
}

static Node *renewed_if(Rewrite *r, Node *t)
{
    const If *old = t->arg.ptr;
    If now = *old;
    now.then_branch = renewed_region(r, old->then_branch, t);
    now.else_branch = renewed_region(r, old->else_branch, t);
    Node *cond = rewritten(r, t->src[0]);
    if (cond == t->src[0] && now.then_branch == old->then_branch &&
        now.else_branch == old->else_branch)
        return t;
    int nsrc;
    Node **src = if_sources(r->a, cond, &now, &nsrc);
    If *made = NEW(r->c->arena, If);
    *made = now;
    return tuple(r, t, made, src, nsrc);
}

Node *renewed_control(Rewrite *r, Node *t)
{
    return t->op == OP_LOOP ? renewed_loop(r, t) : renewed_if(r, t);
}
