/* graph.c - walking graphs of any depth: an explicit stack, never recursion. */
#include <string.h>

#include "compiler.h"

/* Depth-first post-order over sources.  Ids are dense within a context, so "seen" is a bit array
 * as long as the greatest id of the roots: sources have smaller ids than their users. */
Node **graph_toposort(Arena *a, int nroot, Node *const *roots, int *n)
{
    typedef struct {
        Node *node;
        uint32_t next;
    } Frame;
    uint32_t top = 0;
    for (int i = 0; i < nroot; i++)
        if (roots[i]->id >= top)
            top = roots[i]->id + 1;
    /* most graphs are a kernel's: a few hundred nodes, walked thousands of times */
    Frame some[64], *stack = some;
    uint64_t bits[32], *seen = bits;
    size_t words = (size_t)top / 64 + 1, cap = sizeof some / sizeof *some, depth = 0;
    Arena *scratch = NULL;
    if (words > sizeof bits / sizeof *bits) {
        scratch = arena_new();
        seen = NEWN(scratch, uint64_t, words);
    } else {
        memset(bits, 0, words * sizeof *bits);
    }
    Node *first[256], **order = first; /* until it is known how many there are */
    size_t room = sizeof first / sizeof *first;
    *n = 0;
    for (int i = 0; i < nroot; i++) {
        if (seen[roots[i]->id / 64] >> (roots[i]->id % 64) & 1)
            continue;
        seen[roots[i]->id / 64] |= UINT64_C(1) << (roots[i]->id % 64);
        stack[depth++] = (Frame){roots[i], 0};
        while (depth) {
            Frame *f = &stack[depth - 1];
            Node *t = f->node;
            uint32_t next = f->next;
            while (next < t->nsrc && seen[t->src[next]->id / 64] >> (t->src[next]->id % 64) & 1)
                next++;
            if (next == t->nsrc) {
                if ((size_t)*n == room) {
                    scratch = scratch ? scratch : arena_new();
                    order = vec_grow(scratch, (void *)order, room, sizeof *order);
                    room *= 2;
                }
                order[(*n)++] = t;
                depth--;
                continue;
            }
            Node *s = t->src[next];
            f->next = next + 1;
            seen[s->id / 64] |= UINT64_C(1) << (s->id % 64);
            if (depth == cap) {
                scratch = scratch ? scratch : arena_new();
                Frame *grown = NEWN(scratch, Frame, cap * 2);
                memcpy((void *)grown, (void *)stack, cap * sizeof *stack);
                stack = grown;
                cap *= 2;
            }
            stack[depth++] = (Frame){s, 0};
        }
    }
    Node **all = vec_of(a, (void *)order, (size_t)*n, sizeof *order);
    arena_free(scratch);
    return all;
}

bool call_decides(const Call *call, const Node *dim)
{
    for (int i = 0; i < call->n_count; i++)
        if (dim == call->counts[i])
            return true;
    for (uint32_t i = 0; i < dim->nsrc; i++)
        if (call_decides(call, dim->src[i]))
            return true;
    return false;
}
