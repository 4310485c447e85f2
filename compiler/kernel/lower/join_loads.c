/* join_loads.c - lanes that lie apart, of which the neighbours are loaded too: rows that are
 * transposed in registers.
 *
 *     y[j, i] = x[i, j], i in lanes, j by copies:
 *         x[i, j] x[i, j + 1] x[i, j + 2] ...   loads of lane 0
 *         x[i + 1, j] ...                       loads of lane 1
 *
 * Copy by copy these would be elements from as many lines of cache as there are lanes, again for
 * every copy.  Together they are rows, a vector for every lane, and their transpose is what was
 * wanted: one load that gives a vector for every copy, LOAD(buffer, gate, offset, copies), and a
 * PROJ of it where each of them was. */
#include <stdlib.h>

#include "kernel.h"
#include "passes.h"

typedef struct {
    Node *load; /* NULL: taken */
    int64_t step;
} Apart;

static bool same_rows(Context *c, const Apart *a, const Apart *b, int64_t *distance)
{
    return b->load && a->load->src[0] == b->load->src[0] && a->step == b->step &&
           idx_value(idx_sub(c, b->load->src[2], a->load->src[2]), distance);
}

/* Which of them is first + distance? */
static int neighbour(Context *c, const Apart *all, int n, const Apart *first, int64_t distance)
{
    int64_t d;
    for (int i = 0; i < n; i++)
        if (same_rows(c, first, &all[i], &d) && d == distance)
            return i;
    return -1;
}

/* The loads that are rows, each as its PROJ, in by[], by node. */
static bool find_rows(Context *c, Arena *a, const Tile *t, Node *const *order, int n, Node **by)
{
    Apart *all = NULL;
    int nall = 0;
    bool any = false;
    for (int i = 0; i < n; i++) {
        Apart x = {order[i], 0};
        bool apart = x.load->op == OP_LOAD && x.load->nsrc == 3 &&
                     node_is_const_i(x.load->src[1], 1) &&
                     range_stride(c, x.load->src[2], t->lane, &x.step) && llabs(x.step) > 1;
        if (apart)
            vec_push(a, all, nall, x);
    }
    for (int i = 0; i < nall; i++) {
        if (!all[i].load || neighbour(c, all, nall, &all[i], -1) >= 0)
            continue; /* taken, or not the first */
        for (Apart first = all[i]; first.load;) {
            Node *row[64];
            int count = 0, next = neighbour(c, all, nall, &first, 0);
            for (; next >= 0 && count < t->lanes; next = neighbour(c, all, nall, &first, count)) {
                row[count++] = all[next].load;
                all[next].load = NULL;
            }
            Node *src[] = {first.load->src[0], first.load->src[1], first.load->src[2],
                           idx(c, count)};
            Node *rows = node_make(c, OP_LOAD, first.load->dtype, (Arg){0}, 4, src, 0, NULL);
            for (int j = 0; j < count && count > 1; j++, any = true)
                by[row[j]->id] =
                    node_make(c, OP_PROJ, rows->dtype, (Arg){.i = j}, 1, &rows, 0, NULL);
            first = next >= 0 ? all[next] : (Apart){0};
        }
    }
    return any;
}

bool join_loads(Linear *l, const Kernel *k)
{
    const Tile *t = l->tile;
    Context *c = k->c;
    if (!t->lane || t->four)
        return false;
    Arena *a = arena_new();
    int n, nstore;
    Node **store = stores_of(l, a, &nstore), **order = graph_toposort(a, nstore, store, &n),
         **by = NEWN(a, Node *, c->nnode);
    const bool found = find_rows(c, a, t, order, n, by);
    for (int i = 0; i < n && found; i++) {
        Node *from = order[i];
        if (!by[from->id])
            by[from->id] = node_rebuilt(c, from, by);
    }
    for (int i = 0; i < nstore && found; i++)
        store[i] = by[store[i]->id];
    set_stores(l, nstore, store);
    arena_free(a);
    return found;
}
