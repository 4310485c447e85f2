/* other_layouts.c - layouts that results could have beside those that layouts.c gave them, for a search.
 *
 * Of each result the other end: what lies otherwise than the model has it could lie as the model has it, and what does lie so could have its
 * longest other axis innermost.  The border stays.  What reads it, and how its kernels' loops run, is left to the heuristic. */
#include "kernel.h"

enum { LEAST = 8 }; /* of elements along an axis that may be innermost */

/* The last axis of storage that has more than one element; false: there is none, or blocks are taken apart. */
static bool innermost_axis(const Buffer *b, const Layout *l, int *axis)
{
    const Perm *perm = NULL;
    for (int i = 0; i < l->n; i++) {
        if (l->op[i].kind == LAYOUT_SPLIT || l->op[i].kind == LAYOUT_CUT)
            return false;
        perm = l->op[i].kind == LAYOUT_PERMUTE ? &l->op[i].perm : perm;
    }
    for (int i = b->rank; i-- > 0;) {
        *axis = perm ? perm->axis[i] : i;
        if (!idx_is(b->dims[*axis], 1))
            return true;
    }
    return false;
}

/* Which one could be instead, or -1. */
static int other_axis(const Buffer *b, const Layout *l)
{
    int now, model;
    if (!innermost_axis(b, l, &now) || !innermost_axis(b, &(Layout){0}, &model))
        return -1;
    int best = -1;
    int64_t most = LEAST - 1, size;
    for (int i = 0; i < b->rank; i++)
        if (i != now && (now == model || i == model) && idx_value(b->dims[i], &size) &&
            size > most) {
            best = i;
            most = size;
        }
    return best;
}

static Layout with_last(const Buffer *b, const Layout *l, int axis)
{
    Layout out = {0};
    bool last = true;
    for (int i = 0; i < l->n && l->op[i].kind == LAYOUT_PAD; i++)
        out.op[out.n++] = l->op[i];
    for (int i = axis + 1; i < b->rank; i++)
        last &= idx_is(b->dims[i], 1);
    if (!last)
        layout_put_last(&out, b->rank, axis);
    return out;
}

typedef struct {
    Arena *a;
    const Plan *p;
    Map seen; /* kernels by key */
    Alternative *out;
    int n;
} Others;

static void add_layout(Others *x, const Step *s, int arg)
{
    const Layout *now = &s->choice->arg[arg].layout;
    const int axis = other_axis(s->bufs[arg], now);
    if (axis < 0)
        return;
    const Layout then = with_last(s->bufs[arg], now, axis);
    StrBuf sb = {0}, was = {0}, is = {0};
    sched_print_layout(&sb, x->p, s, arg, &then);
    layout_print(&was, now);
    layout_print(&is, &then);
    Alternative one = {.key = s->choice->key,
                       .is = arena_strdup(x->a, was.data + 1),
                       .then = arena_strdup(x->a, is.data + 1),
                       .line = arena_strdup(x->a, sb.data),
                       .origin = s->norigin ? s->origins[0] : NULL};
    vec_push(x->a, x->out, x->n, one);
    sb_free(&sb);
    sb_free(&was);
    sb_free(&is);
}

static void add_block(Others *x, const Block *b)
{
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        const Choice *c = s->kernel ? s->choice : NULL;
        const bool fresh = c && !c->copy && !map_get(&x->seen, c->key);
        if (fresh)
            map_put(&x->seen, c->key, (void *)(uintptr_t)s);
        for (int j = 0; fresh && j < c->narg && j < s->nbuf; j++)
            if (c->arg[j].owned && s->kernel->args[j].written && s->bufs[j]->kind == BUF_ARENA)
                add_layout(x, s, j);
        add_block(x, &s->body);
        add_block(x, &s->other);
    }
}

int plan_other_layouts(Arena *a, const Plan *p, Alternative **out)
{
    Others x = {.a = a, .p = p};
    add_block(&x, &p->main);
    map_free(&x.seen);
    *out = x.out;
    return x.n;
}
