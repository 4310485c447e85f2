/* other_layouts.c - layouts that results could have beside those that layouts.c gave them, for a
 * search.
 *
 * Of each result the other end: what lies otherwise than the model has it could lie as the model
 * has it, and what does lie so could have its longest other axis innermost.  The border stays.
 * What reads it, and how its kernels' loops run, is left to the heuristic. */
#include "kernel.h"
#include "plan.h"

enum { LEAST = 8 }; /* of elements along an axis that may be innermost */

/* The last axis of storage that has more than one element; false: there is none, or blocks are
 * taken apart. */
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
    const Step **step; /* kernels whose choices are recorded */
    int nstep;
    Alternative *out;
    int n;
} Others;

static void gather_steps(Others *x)
{
    int n;
    Step *const *step = kernel_steps(x->p, x->a, &n);
    for (int i = 0; i < n; i++)
        if (step[i]->choice && !step[i]->choice->copy)
            vec_push(x->a, x->step, x->nstep, step[i]);
}

/* Is the layout of this argument its kernel's to choose, and is it this one? */
static bool chooses(const Step *s, int arg, const Layout *l)
{
    const Choice *c = s->choice;
    return arg < c->narg && arg < s->nbuf && c->arg[arg].owned && s->kernel->args[arg].written &&
           s->bufs[arg]->kind == BUF_ARENA && (!l || layout_equal(&c->arg[arg].layout, l));
}

/* For all steps of the kernel, or for each that chooses. */
static char *print_entries(const Others *x, const Step *first, int arg, const Layout *then)
{
    const Layout *now = &first->choice->arg[arg].layout;
    int nchoose = 0;
    StrBuf sb = {0};
    for (int i = 0; i < x->nstep; i++)
        nchoose += x->step[i]->choice->key == first->choice->key && chooses(x->step[i], arg, now);
    const bool all = nchoose == first->choice->of;
    for (int i = 0; i < x->nstep; i++) {
        const Step *s = x->step[i];
        if (all ? s == first : s->choice->key == first->choice->key && chooses(s, arg, now))
            sched_print_layout(&sb, x->p, s, !all, arg, then);
    }
    return sb_take(&sb, x->a);
}

static char *layout_text(Arena *a, const Layout *l)
{
    StrBuf sb = {0};
    layout_print(&sb, l);
    return sb_take(&sb, a) + 1;
}

static void add_layout(Others *x, const Step *s, int arg)
{
    const Layout *now = &s->choice->arg[arg].layout;
    const int axis = other_axis(s->bufs[arg], now);
    if (axis < 0)
        return;
    const Layout then = with_last(s->bufs[arg], now, axis);
    const Alternative one = {.key = s->choice->key,
                             .is = layout_text(x->a, now),
                             .then = layout_text(x->a, &then),
                             .line = print_entries(x, s, arg, &then),
                             .origin = s->norigin ? s->origins[0] : NULL};
    vec_push(x->a, x->out, x->n, one);
}

int plan_other_layouts(Arena *a, const Plan *p, Alternative **out)
{
    Others x = {.a = a, .p = p};
    Map seen = {0}; /* kernels whose argument was looked at, by key */
    gather_steps(&x);
    for (int i = 0; i < x.nstep; i++)
        for (int j = 0; j < x.step[i]->nbuf; j++) {
            const uint64_t key = x.step[i]->choice->key + (uint64_t)j;
            if (!chooses(x.step[i], j, NULL) || map_get(&seen, key))
                continue;
            map_put(&seen, key, (void *)(uintptr_t)x.step[i]);
            add_layout(&x, x.step[i], j);
        }
    map_free(&seen);
    *out = x.out;
    return x.n;
}
