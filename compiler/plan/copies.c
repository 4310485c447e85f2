/* copies.c - a buffer like another one, the step that copies one into the other, and a step like
 * another. */
#include "kernel.h"
#include "plan.h"
#include <string.h>

/* A buffer like b with another layout: for weights an existing one if there is. */
Buffer *buffer_twin(Plan *p, Buffer *b, BufferKind kind, const Layout *l)
{
    for (int i = 0; i < p->nbuffer && kind == BUF_WEIGHT; i++) {
        Buffer *o = p->buffers[i];
        if (o->kind == BUF_WEIGHT && o->node == b->node && o->device == b->device &&
            layout_equal(&o->layout, l))
            return o;
    }
    Buffer *n = NEW(p->arena, Buffer);
    *n = *b;
    n->kind = kind;
    n->layout = *l;
    n->slot = -1;
    n->base = NULL;
    n->id = p->nbuffer;
    buffer_layout_changed(n);
    vec_push(p->arena, p->buffers, p->nbuffer, n);
    return n;
}

/* dst = src, of the same dims. */
Step *copy_step(Plan *p, Buffer *dst, Buffer *src, const Step *like)
{
    Context *c = context_child(p->c);
    Kernel *k = NEW(c->arena, Kernel);
    k->c = c;
    k->narg = 2;
    k->device = kernel_device(p, like->device);
    k->args = NEWN(c->arena, KernelArg, 2);
    Node **dims = NEWN(c->arena, Node *, src->rank);
    Node *store[INGOT_MAX_RANK + 3], *load[INGOT_MAX_RANK + 2], *end[INGOT_MAX_RANK + 1];
    k->axes = NEWN(c->arena, Axis, src->rank);
    int nr = 1;
    for (int i = 0; i < src->rank; i++) {
        dims[i] = import_index(c, p->arena, src->dims[i]);
        Node *at = load[2 + i] = store[3 + i] = range_new(c, k->naxis, dims[i]);
        if (at->op == OP_RANGE) {
            Axis *a = &k->axes[k->naxis];
            snprintf(a->name, sizeof a->name, "i%d", k->naxis++);
            a->range = end[nr++] = at;
        }
    }
    for (int i = 0; i < 2; i++)
        k->args[i] = (KernelArg){.dtype = src->dtype,
                                 .rank = src->rank,
                                 .dims = dims,
                                 .layout = (i ? src : dst)->layout,
                                 .read = i == 1,
                                 .written = i == 0};
    load[0] = node_make(c, OP_BUFFER, src->dtype, (Arg){.i = 1}, 0, NULL, 0, NULL);
    load[1] = store[1] = node_bool(c, true);
    store[0] = node_make(c, OP_BUFFER, src->dtype, (Arg){.i = 0}, 0, NULL, 0, NULL);
    store[2] = node_make(c, OP_LOAD, src->dtype, (Arg){0}, 2 + src->rank, load, 0, NULL);
    end[0] = node_make(c, OP_STORE, src->dtype, (Arg){0}, 3 + src->rank, store, 0, NULL);
    Node *e = node_make(c, OP_END, INGOT_BOOL, (Arg){0}, nr, end, 0, NULL);
    k->sink = node_make(c, OP_SINK, INGOT_BOOL, (Arg){0}, 1, &e, 0, NULL);
    k->bytes = src->bytes + dst->bytes;
    return step_copies(p, k, "copy", dst, src, like);
}

bool const_dims(const Buffer *b)
{
    for (int i = 0; i < b->rank; i++)
        if (!idx_value(b->dims[i], NULL))
            return false;
    return true;
}

/* Does e count from 0 to size - 1? A range does, and the digits of a number: 16 i + j with j <
 * 16. */
static bool counts(const Kernel *k, Node *e, Node *size)
{
    int64_t n, digit = 1, step, extent;
    if (e->op == OP_RANGE)
        return e->src[0] == size;
    if (!idx_value(size, &n) || e->lo)
        return false;
    for (bool more = true; more && digit < n;) {
        more = false;
        for (int i = 0; i < k->naxis && !more; i++) {
            Node *r = k->axes[i].range;
            more = depends_on(e, r) && idx_value(r->src[0], &extent) &&
                   range_stride(k->c, e, r, &step) && step == digit;
        }
        digit *= more ? extent : 1;
    }
    return digit == n && e->hi == n - 1;
}

bool covers(const Kernel *k, Node *store)
{
    const KernelArg *a = &k->args[store->src[0]->arg.i];
    for (int i = 0; i < a->rank; i++)
        if (!counts(k, store->src[3 + i], a->dims[i]))
            return false;
    return true;
}

static Block block_twin(Plan *p, const Block *b)
{
    Block out = {.n = b->n, .step = NEWN(p->arena, Step *, b->n + 1)};
    for (int i = 0; i < b->n; i++)
        out.step[i] = step_twin(p, b->step[i]);
    return out;
}

Step *step_twin(Plan *p, const Step *s)
{
    Step *copy = NEW(p->arena, Step);
    *copy = *s;
    copy->kernel = s->kernel ? kernel_copy(s->kernel) : NULL;
    copy->bufs = vec_of(p->arena, s->bufs, (size_t)s->nbuf, sizeof *s->bufs);
    copy->stored = vec_of(p->arena, s->stored, (size_t)s->nstored, sizeof *s->stored);
    copy->body = block_twin(p, &s->body);
    copy->other = block_twin(p, &s->other);
    return copy;
}

void place_with(Plan *p, const Buffer *b, const Buffer *twin)
{
    for (int i = 0, n = p->nplaced; i < n; i++)
        if (p->placed[i].buffer == b) {
            Placement there = p->placed[i];
            there.buffer = twin;
            vec_push(p->arena, p->placed, p->nplaced, there);
        }
}
