/* keys.h - what a value of a graph is known by in another version of the same graph. */
#ifndef KEYS_H
#define KEYS_H

#include "plan.h"

enum { KEY_NEAR = 5 };
/* Hashes of a node's neighbourhood: what it is made of and what is made of it, six operations far
 * in both directions; then less and less of that, for neighbourhoods that have changed: 4, 2 and 1
 * both ways, 3 down alone, 3 up alone. */
typedef struct {
    uint64_t full; /* 0: none */
    uint32_t near[KEY_NEAR];
} Key;

/* Of these nodes, by node id; one of them or none per tensor. Names, numbers of inputs, the order
 * of nodes and the contents of weights do not count. */
Key *graph_keys(Arena *, const Context *, int n, Node *const *,
                uint32_t *nkey); /* nkey: of ids below it */
/* By id, of those of n nodes (sources first) that a variant made (they have a root) and that have
 * no known key: what each is made of, down to others and those with known keys, whatever those
 * are. */
uint64_t *inner_hashes(Arena *, const Context *, int n, Node *const *node, Node *const *root,
                       const Key *known);
/* Of a value that a variant of the node with key `of` makes on its way, by its inner hash. */
uint64_t name_hash(const char *variant);
Key key_inside(const Key *of, uint64_t name_hash, uint64_t inner);

/* Which of `saved` stands for each of `present`, -1: none; both in the order of their graphs.  What
 * has a full key in common is the same; what then stands for nothing is paired by the weaker ones,
 * in order. */
void keys_align(Arena *, int nsaved, const Key *saved, int npresent, const Key *present, int *to);

#endif
