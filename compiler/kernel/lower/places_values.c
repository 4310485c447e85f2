/* places_values.c - values that several loops of a kernel read, each in a place of its own (STAGE
 * of the kernel's expression).
 *
 * Loops over the STAGE's own ranges fill the place, wherever all that the value depends on is
 * known. */
#include "lower.h"

int staged_number(Lower *q, Node *value)
{
    int i = 0;
    while (i < q->nstaged && q->staged[i].value != value)
        i++;
    struct Staged s = {value, 1, 0};
    if (i == q->nstaged)
        vec_push(q->a, q->staged, q->nstaged, s);
    return i;
}

/* Rows of a place that several copies of a store fill begin at lines of the cache, an odd number of
 * them apart: those of a multiple of 4 KB would all lie in one set. */
static Node *pitch_of(Lower *q, Node *n, Node *size)
{
    int64_t bytes = dtype_info[n->dtype].bytes, row;
    if (!idx_value(size, &row) || row * bytes < LOWERED_LINE)
        return size;
    return idx(q->c, (ceil_div(row * bytes, LOWERED_LINE) | 1) * LOWERED_LINE / bytes);
}

/* Where an element lies in its place: copies of stores, then its own ranges, then the lanes of
 * another axis. */
static Node *offset_in_place(Lower *q, Piece *p, Node *n, Node *const *at, int64_t *elements)
{
    Node *offset = idx(q->c, 0);
    *elements = 1;
    for (int i = 0; i < p->ncopies; i++) {
        int axis = p->copies[i].axis;
        if (!moves_with(q->a, n->src[0], q->k->axes[q->nest->axis[axis].root].range))
            continue;
        offset = idx_add(q->c, idx_mul(q->c, offset, idx(q->c, p->copies[i].n)), p->at[axis]);
        *elements = sat_mul(*elements, p->copies[i].n);
    }
    for (int i = 0; i < (int)n->arg.i; i++) {
        Node *size = n->src[1 + i]->src[0];
        if (i == (int)n->arg.i - 1 && *elements > 1)
            size = pitch_of(q, n, size);
        offset = idx_add(q->c, idx_mul(q->c, offset, size), at[i]);
        *elements = sat_mul(*elements, size->hi);
    }
    for (int i = 0; i < q->nest->naxis && p->t.lane; i++)
        if (p->at[i] == p->t.lane && !q->nest->axis[i].reduced &&
            moves_with(q->a, n->src[0], q->k->axes[q->nest->axis[i].root].range)) {
            offset = idx_add(q->c, idx_mul(q->c, offset, idx(q->c, p->t.lanes)), p->t.lane);
            *elements = sat_mul(*elements, p->t.lanes);
            break;
        }
    return offset;
}

/* What fills the place: a store for each copy that UNROLL makes along its ranges. */
static void fill_stores(Lower *q, Piece *p, Node *n, const Env *e, int s, int number, Node **store,
                        int *nstore)
{
    const Split *u = lower_next_unroll(q, p, n, &s);
    if (u) {
        bool rest = p->sum[u->axis].outer < 0;
        for (int64_t i = 0; i < (rest ? u->remaining : u->amount); i++) {
            p->at[u->inner] = idx(q->c, i);
            fill_stores(q, p, n, e, s + 1, number, store, nstore);
        }
        return;
    }
    Env in = env_new(q, e);
    Node *at[INGOT_MAX_RANK];
    int64_t elements;
    for (int i = 0; i < (int)n->arg.i; i++) {
        int root = nest_root_of(q->k, n->src[1 + i]);
        at[i] = in.value[root] = lower_index(q, p, root);
    }
    env_ready(q, &in);
    Node *body = lower_node(q, p, n->src[0], &in);
    store[(*nstore)++] = place_store(q, number, node_bool(q->c, true), body,
                                     offset_in_place(q, p, n, at, &elements));
}

enum { MOST_STORES = 64, MOST_FILLS = 8 };

/* Loops over the whole blocks fill the place, then those of what is left by split s or by one
 * behind it. */
static void fills_of(Lower *q, Piece *p, Node *n, const Env *e, int s, int number, Node **fill,
                     int *nfill)
{
    Node *end[MOST_STORES + 4 * INGOT_MAX_RANK];
    int nend = 0;
    const Split *u = lower_next_unroll(q, p, n, &s);
    if (u) {
        fills_of(q, p, n, e, s + 1, number, fill, nfill);
        if (!u->remaining)
            return;
        struct Sum blocks = p->sum[u->axis];
        p->sum[u->axis] = (struct Sum){u, lower_whole(q, u), -1, u->inner};
        fills_of(q, p, n, e, s + 1, number, fill, nfill);
        p->sum[u->axis] = blocks;
        return;
    }
    if (*nfill == MOST_FILLS)
        BUG("a place is filled by more than %d loops", MOST_FILLS);
    fill_stores(q, p, n, e, 0, number, end, &nend);
    for (int i = 0; i < (int)n->arg.i; i++)
        lower_loops(q, p, nest_root_of(q->k, n->src[1 + i]), end, &nend);
    fill[(*nfill)++] = place_fill(q, end, nend);
}

/* A value that several read: loops fill its place, wherever all that it depends on is known. */
Node *lower_stage(Lower *q, Piece *p, Node *n, Env *e)
{
    if (p->t.quad)
        return rows_stage(q, p, n);
    int staged = staged_number(q, n->src[0]), number = q->nest->nstage + staged;
    int nfill = 0, own = (int)n->arg.i;
    Node *fill[MOST_FILLS], *at[INGOT_MAX_RANK];
    fills_of(q, p, n, e, 0, number, fill, &nfill);
    for (int i = 0; i < own; i++)
        at[i] = lower_node(q, p, n->src[1 + own + i], e);
    int64_t elements;
    Node *offset = offset_in_place(q, p, n, at, &elements);
    if (elements > q->staged[staged].elements)
        q->staged[staged].elements = elements;
    return place_load(q, number, fill, nfill, offset);
}
