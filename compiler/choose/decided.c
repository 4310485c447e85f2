/* decided.c - equal kernels of a plan are decided once: the layers of a network repeat.
 *
 * What a kernel says is its text with its layouts, the names of its loops, and of what kind its
 * buffers are; opts, wanted layouts and copies follow from that and the target alone. */
#include <string.h>

#include "choose.h"

/* All that decisions follow from. */
static void says(StrBuf *sb, Arena *a, const Step *s, bool may_copy)
{
    const Kernel *k = s->kernel;
    kernel_text(sb, a, k, true, NULL);
    const int64_t of_kernel[] = {may_copy, k->serial, k->flops, k->bytes};
    sb_write(sb, of_kernel, sizeof of_kernel);
    for (int i = 0; i < k->naxis; i++) {
        const Axis *x = &k->axes[i];
        const bool of_axis[] = {x->reduced, x->staged, x->scanned};
        sb_write(sb, x->name, strlen(x->name) + 1);
        sb_write(sb, of_axis, sizeof of_axis);
    }
    for (int i = 0; i < s->nbuf; i++) {
        const int of_buffer[] = {(int)s->bufs[i]->kind, s->bufs[i]->rank};
        sb_write(sb, of_buffer, sizeof of_buffer);
    }
}

Decided *decided(Map *known, Arena *keep, const Step *s, bool may_copy)
{
    StrBuf text = {0};
    Arena *a = arena_new();
    says(&text, a, s, may_copy);
    arena_free(a);
    uint64_t hash = hash_bytes(0, text.data, text.len) | 1;
    Decided *first = map_get(known, hash), *d = first;
    while (d && (d->says.len != text.len || memcmp(d->says.data, text.data, text.len) != 0))
        d = d->next;
    if (d) {
        sb_free(&text);
        return d;
    }
    d = NEW(keep, Decided);
    *d = (Decided){.next = first, .says = text};
    map_put(known, hash, d);
    return d;
}

void forget_decided(Map *known)
{
    for (size_t i = 0; i < known->cap; i++)
        for (Decided *d = known->value[i]; d; d = d->next)
            sb_free(&d->says);
    map_free(known);
}
