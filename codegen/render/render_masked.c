/* render_masked.c - a group of whose results a mask leaves nothing stores what stands there
 * instead, and ends.
 *
 *     dz[i,j] = where(j <= i, p[i,j] (sum over d of g[i,d] v[j,d] - s[i]), 0)
 *
 *     if (i1_o*128 + 128 <= i2_o*128) {
 *         igrt_row_16(a0 + .., 1, 0, 0, 0, 0);
 *         return;
 *     }
 *
 * Of a causal mask these are nearly half of all groups.  They load nothing, and multiply nothing.
 */
#include "render.h"

enum { SOURCES = 4 }; /* of an element's store: buffer, gate, value, place */

static Node *store_of(Render *r, const Node *store)
{
    Node *src[SOURCES] = {store->src[0], store->src[1], r->l.tile->instead, store->src[3]};
    return node_make(r->k->c, OP_STORE, (ingot_dtype)store->dtype, store->arg, SOURCES, src, 0,
                     NULL);
}

/* Behind the wait for kernels before this one, where no item has anything else to do. */
void render_masked_group(Render *r, const Stmt *wait)
{
    const Tile *t = r->l.tile;
    if (!t->nothing || wait->depth || t->box || t->cluster || !r->lang->begin)
        return;
    Stmt *store = NEWN(r->arena, Stmt, r->l.n + 1);
    int n = 0;
    for (int i = 0; i < r->l.n; i++) {
        const Stmt *s = &r->l.stmt[i];
        if (s->kind != STMT_STORE || s->node->src[0]->op != OP_BUFFER ||
            s->node->src[0]->arg.i >= r->narg)
            continue;
        if (s->depth || s->node->op != OP_STORE || s->node->nsrc != SOURCES)
            return;
        store[n] = *s;
        store[n].depth = wait->depth + 1;
        store[n++].node = store_of(r, s->node);
    }
    put(r, "    if (");
    render_bare(r, t->nothing);
    put(r, ") {\n");
    for (int i = 0, rows; i < n; i += rows) {
        rows = render_rows_of_stores(r, &store[i], n - i);
        if (!rows && render_two_stores(r, &store[i], n - i))
            rows = 2;
        if (!rows) {
            render_indent(r, store[i].depth);
            render_store(r, &store[i]);
            rows = 1;
        }
    }
    put(r, "        return;\n    }\n");
}
