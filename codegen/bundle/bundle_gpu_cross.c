/* bundle_gpu_cross.c - a kernel whose own groups let values cross before they begin: it is then the
 * one launch of an exchange between GPUs and of what is made of it (runtime_min/igrt_cross.h).
 *
 *     x  = a Wa               term of this device        item i of the sum has element i alone:
 *     send x, take y          a launch                   its group sends those elements of x that
 *     h  = h + (x + y)        a launch                   it has, and waits for those of y
 *
 * So it is where each item has the same elements of all that is sent, taken and stored. */
#include <string.h>

#include "bundle_gpu.h"

/* The element that an item of an elementwise kernel has, in order; NULL: it is no such kernel. */
static Node *element_of(const Kernel *k, int64_t *elements)
{
    Node *extent[INGOT_MAX_RANK], *at[INGOT_MAX_RANK];
    int64_t size;
    *elements = 1;
    if (k->naxis > INGOT_MAX_RANK || k->serial || k->scratch || k->nvar)
        return NULL;
    for (int i = 0; i < k->naxis; i++) {
        at[i] = k->axes[i].range;
        extent[i] = at[i]->src[0];
        if (k->axes[i].reduced || k->axes[i].scanned || !idx_value(extent[i], &size))
            return NULL;
        *elements = sat_mul(*elements, size);
    }
    return layout_offset(k->c, &(Layout){0}, k->naxis, extent, at);
}

/* All stores, and all loads of what arrives, are of that element. */
static bool has_own_elements(const Kernel *k, const bool *arrives, Node *element)
{
    Arena *a = arena_new();
    Node *sink;
    int n;
    flatten_addresses(a, k, 1, &k->sink, &sink);
    Node **order = graph_toposort(a, 1, &sink, &n);
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        const Node *t = order[i];
        if (t->op == OP_STORE || (t->op == OP_LOAD && arrives[t->src[0]->arg.i]))
            good = t->src[first_coord(t)] == element;
    }
    arena_free(a);
    return good;
}

/* The copy's bytes are elements of this buffer, in order. */
static bool is_whole(const Step *copy, int which, int64_t elements)
{
    Node *offset = which ? copy->src_offset : copy->dst_offset;
    return idx_is(copy->elements, elements) && (!offset || idx_is(offset, 0)) &&
           !copy->bufs[which]->layout.n;
}

/* An item's stores leave what other items send. */
static bool keeps_sent(const Step *s, const Step *copy)
{
    const Buffer *from = copy->bufs[1];
    for (int i = 0; i < s->nbuf; i++) {
        const Buffer *x = buffer_root(s->bufs[i]), *y = buffer_root(from);
        if (!s->kernel->args[i].written || x->kind != y->kind || x->memory != y->memory)
            continue;
        const bool apart = x->offset >= y->offset + y->bytes || y->offset >= x->offset + x->bytes,
                   alike = x->offset == y->offset && s->bufs[i] == x && from == y &&
                           x->dtype == y->dtype;
        if (!apart && !alike)
            return false;
    }
    return true;
}

/* Bytes that each item has of every value that crosses; 0: there are no such. */
static int item_bytes(const Step *s, const Crossing *x, int n)
{
    Arena *a = arena_new();
    const Kernel *k = s->kernel;
    bool *arrives = NEWN(a, bool, k->narg + 1);
    int64_t elements = 0, bytes = n ? element_bytes(x[0].step->bufs[0]->dtype) : 0;
    /* without opts an item has one element, and groups share nothing */
    Node *element = k->nopt || s->nway ? NULL : element_of(k, &elements);
    bool good = element != NULL;
    for (int i = 0; i < n && good; i++) {
        const Step *copy = x[i].step;
        const bool takes = x[i].part == STEP_TAKES;
        bool found = false;
        for (int j = 0; j < s->nbuf && takes; j++)
            if (s->bufs[j] == copy->bufs[0])
                arrives[j] = found = true;
        good = element_bytes(copy->bufs[0]->dtype) == bytes && is_whole(copy, !takes, elements) &&
               (takes ? found : keeps_sent(s, copy));
    }
    good = good && has_own_elements(k, arrives, element);
    arena_free(a);
    return good ? (int)bytes : 0;
}

Kernel *gpu_crossing_kernel(Plan *p, const Step *s, const Crossing *x, int n)
{
    const int bytes = s->kind == STEP_KERNEL ? item_bytes(s, x, n) : 0;
    if (!bytes)
        return NULL;
    const char *name = arena_printf(p->arena, "%.80s_cross", s->kernel->name);
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernels[i]->crosses == bytes && !strcmp(p->kernels[i]->name, name))
            return p->kernels[i];
    Kernel *k = kernel_copy(s->kernel);
    k->crosses = bytes;
    snprintf(k->name, sizeof k->name, "%s", name);
    vec_push(p->arena, p->kernels, p->nkernel, k);
    return k;
}
