/* bundle_gpu_bind.c - which arguments of a kernel share a binding, where arguments are no pointers
 * but ranges of buffers (WebGPU; Language.binds).
 *
 * Two ranges may not overlap if one of them is written: a kernel that works in place has one
 * binding for both.  Devices have to have eight bindings and often have no more: of kernels with
 * more arguments those that are weights share one, then those in the arena.  And in a launch a
 * buffer is written or it is read: what lies in the arena is bound as one that is written wherever
 * the kernel writes something there.
 *
 * A kernel is emitted once for all of its steps, so what holds for one of them holds for it. */
#include "bundle_gpu.h"

enum {
    MOST_BINDINGS = 8, /* of buffers */
    BINDING = 256      /* bytes; they begin at multiples */
};

static bool in_arena(const Buffer *b)
{
    const BufferKind kind = buffer_root(b)->kind;
    return kind == BUF_ARENA || kind == BUF_STATE;
}

/* The first of those that share a binding with it. */
static int first_of(const Kernel *k, int arg)
{
    return k->args[arg].with ? k->args[arg].with - 1 : arg;
}

/* From now on both, and those that share with either of them, have one binding. */
static void bind_together(Kernel *k, int x, int y)
{
    const int a = first_of(k, x), b = first_of(k, y), first = a < b ? a : b;
    for (int i = 0; i < k->narg; i++)
        if (kernel_has_param(k, i) && (first_of(k, i) == a || first_of(k, i) == b))
            k->args[i].with = first + 1;
}

static bool overlap(const Buffer *x, const Buffer *y)
{
    const Buffer *a = buffer_root(x), *b = buffer_root(y);
    if (in_arena(a) && in_arena(b))
        return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    return a->kind == b->kind && a->kind == BUF_OUTPUT && a->slot == b->slot;
}

static void bind_step(Kernel *k, Buffer *const *bufs)
{
    bool writes_arena = false;
    for (int i = 0; i < k->narg; i++) {
        if (!kernel_has_param(k, i))
            continue;
        writes_arena |= k->args[i].written && in_arena(bufs[i]);
        for (int j = 0; j < i; j++)
            if (kernel_has_param(k, j) && (k->args[i].written || k->args[j].written) &&
                overlap(bufs[i], bufs[j]))
                bind_together(k, j, i);
    }
    for (int i = 0; i < k->narg; i++)
        k->args[i].writable |= writes_arena && in_arena(bufs[i]);
}

/* Do it to every launch of a kernel in the plan. */
typedef void BindLaunch(Kernel *, Buffer *const *bufs);

static void each_launch(const Block *steps, BindLaunch *f)
{
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        if (s->kind == STEP_KERNEL)
            f(s->kernel, s->bufs);
        for (int j = 0; j < s->nway; j++)
            f(s->way[j], s->bufs);
        each_launch(&s->body, f);
        each_launch(&s->other, f);
    }
}

static int count_bindings(const Kernel *k)
{
    int n = 0;
    for (int i = 0; i < k->narg; i++)
        n += kernel_has_param(k, i) && first_of(k, i) == i;
    return n;
}

/* Arguments in memory of one kind share a binding, if there are too many of them all. */
static void fewer(Kernel *k, Buffer *const *bufs, bool (*is)(const Buffer *))
{
    int first = -1;
    if (count_bindings(k) <= MOST_BINDINGS)
        return;
    for (int i = 0; i < k->narg; i++) {
        if (!kernel_has_param(k, i) || !is(bufs[i]))
            continue;
        if (first >= 0)
            bind_together(k, first, i);
        else
            first = i;
    }
}

static bool is_weight(const Buffer *b)
{
    return buffer_root(b)->kind == BUF_WEIGHT;
}

static void fewer_weights(Kernel *k, Buffer *const *bufs)
{
    fewer(k, bufs, is_weight);
}

static void fewer_in_arena(Kernel *k, Buffer *const *bufs)
{
    fewer(k, bufs, in_arena);
}

void gpu_bind(Bundle *b)
{
    each_launch(&b->p->main, bind_step);
    each_launch(&b->p->main, fewer_weights);
    each_launch(&b->p->main, fewer_in_arena);
}

int64_t gpu_weight_bytes(const Bundle *b)
{
    const Gpu *g = b->gpu;
    int64_t bytes = 0;
    for (int i = 0; i < g->nmem; i++)
        if (g->mem[i].kind == BUF_WEIGHT)
            bytes = sat_add(bytes, (g->mem[i].bytes + BINDING - 1) / BINDING * BINDING);
    return bytes;
}
