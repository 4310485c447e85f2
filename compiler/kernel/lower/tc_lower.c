/* tc_lower.c - a sum that a matrix unit takes (TC): its fragments fill a place, from which it is
 * read row by row.
 *
 *     LOAD(AFTER(place, END(STORE(place, REDUCE(products, loops..., terms), [row][column]))),
 *          [row of the loop][lane])
 *
 * Of a unit whose products several items have together each item has some elements, as values that
 * its stores take:
 *
 *     PROJ(REDUCE(products, loops..., terms), element)
 *
 * Inside of the REDUCE the axes that the unit has are its ranges; outside the rows are the
 * innermost loop, the columns lanes. */
#include <string.h>

#include "lower.h"

/* The axis that the rows are in this loop nest: what fills no block has fewer of them. */
static int row_axis(const Lower *q, const Piece *p)
{
    const Nest *n = q->nest;
    int rows = n->tc_axis[TC_ROWS];
    for (int i = 0; i < n->nsplit && !p->at[rows]; i++)
        if (n->split[i].inner == rows && n->split[i].rest >= 0)
            rows = n->split[i].rest;
    return p->at[rows] && p->at[rows]->op == OP_RANGE && p->at[rows]->hi < n->tc->m ? rows : -1;
}

/* Rows and columns are what the item has of a fragment of sums: copies, so many as it has
 * elements. */
bool tc_element_set(Lower *q, Piece *p, int element)
{
    const Nest *n = q->nest;
    if (!p->lane || element >= tc_per_lane(n->tc, TC_TERMS))
        return false;
    p->element = element;
    p->line = element / 2 % 2;
    tc_sum_element(q->c, n->tc, p->lane, element, &p->at[n->tc_axis[TC_ROWS]],
                   &p->at[n->tc_axis[TC_COLUMNS]]);
    return true;
}

static void begin_lanes(Lower *q, Piece *p)
{
    const Nest *n = q->nest;
    const int extent[] = {n->tc->m, n->tc->n, n->tc->k};
    p->t.tc = n->tc;
    for (int i = 0; i < TC_AXES; i++)
        p->t.fragment[i] = range_new(q->c, p->next++, idx(q->c, extent[i]));
    if (n->inner && n->inner != n->tc) {
        p->t.inner = n->inner;
        p->t.inner_columns = range_new(q->c, p->next++, idx(q->c, n->inner->n));
    }
    if (n->inner)
        rows_begin(q, p);
    else
        p->lane = range_new(q->c, p->next++, idx(q->c, n->tc->lanes));
    (void)tc_element_set(q, p, 0);
    p->element = -1;
}

void tc_begin(Lower *q, Piece *p)
{
    const Nest *n = q->nest;
    p->row = -1;
    p->element = -1;
    if (!n->tc)
        return;
    if (n->tc->lanes) {
        begin_lanes(q, p);
        return;
    }
    int column = n->tc_axis[TC_COLUMNS], term = n->tc_axis[TC_TERMS], row = row_axis(q, p);
    bool here = row >= 0 && p->at[column] && p->at[term];
    for (int i = 0; i < n->ntc_more; i++)
        here = here && p->at[n->tc_more[i]];
    if (!here)
        return;
    p->row = row;
    p->t.tc = n->tc;
    const int axis[] = {row, column, term};
    const int lanes = p->t.lane ? p->t.lanes : n->tc->n; /* a part of the columns */
    for (int i = 0; i < TC_AXES; i++)
        p->t.fragment[i] = range_new(
            q->c, p->next++, idx(q->c, i == TC_COLUMNS ? n->tc->n : p->at[axis[i]]->hi + 1));
    p->t.lanes = lanes;
    p->t.lane = p->at[column] = range_new(q->c, p->next++, idx(q->c, lanes));
}

int64_t tc_copy_number(const Lower *q, const Piece *p, Node *sum, int64_t *copies)
{
    int64_t number = 0;
    *copies = 1;
    for (int i = 0; i < p->ncopies; i++) {
        int axis = p->copies[i].axis;
        if (!moves_with(q->a, sum, q->k->axes[q->nest->axis[axis].root].range))
            continue;
        number = number * p->copies[i].n + p->at[axis]->arg.i;
        *copies *= p->copies[i].n;
    }
    return number;
}

/* The sum as fragments: all axes of results anew, for the unit's ranges are in place of three. */
static Node *fragment_sum(Lower *q, Piece *p, Node *n)
{
    const int row = p->lane ? q->nest->tc_axis[TC_ROWS] : p->row;
    const int axis[] = {row, q->nest->tc_axis[TC_COLUMNS], nest_tc_terms(q->nest, q->k, n)};
    Node *kept[TC_AXES], **src = NEWN(q->a, Node *, (int)n->nsrc + 3 * q->nest->nsplit + 2);
    int nrange = 0, kept_range = 0;
    for (int i = 0; i < TC_AXES; i++) {
        kept[i] = p->at[axis[i]];
        p->at[axis[i]] = p->t.fragment[i];
    }
    Env in = env_new(q, NULL);
    for (int i = 0; i < q->k->naxis; i++)
        if (!q->nest->axis[i].reduced && (p->at[i] || p->sum[i].split))
            in.value[i] = lower_index(q, p, i);
    for (uint32_t i = 1; i < n->nsrc; i++) {
        int root = nest_root_of(q->k, n->src[i]);
        in.value[root] = lower_index(q, p, root);
        lower_loops(q, p, root, src + 1, &nrange);
    }
    for (int i = 0; i < nrange; i++)
        if (src[1 + i] != p->t.fragment[TC_TERMS])
            src[1 + kept_range++] = src[1 + i];
    env_ready(q, &in);
    src[0] = lower_node(q, p, n->src[0], &in);
    if (p->lane)
        src[0] = tc_bare(q->c, src[0]);
    lower_sort_loops(q, p, src + 1, kept_range);
    src[1 + kept_range] = p->t.fragment[TC_TERMS];
    for (int i = 0; i < TC_AXES; i++)
        p->at[axis[i]] = kept[i];
    return node_make(q->c, OP_REDUCE, n->dtype, n->arg, 2 + kept_range, src, 0, NULL);
}

Node *lower_fragments(Lower *q, Piece *p, Node *n)
{
    Context *c = q->c;
    const Tc *u = p->t.tc;
    if (p->lane) { /* one of what the item has in registers */
        Node *sum = fragment_sum(q, p, n);
        return node_make(c, OP_PROJ, n->dtype, (Arg){.i = p->element}, 1, &sum, 0, NULL);
    }
    int64_t copies, first = tc_copy_number(q, p, n, &copies) * u->m * u->n;
    int number = staged_number(q, n);
    if (q->staged[number].elements < copies * u->m * u->n)
        q->staged[number].elements = copies * u->m * u->n;
    Node *row = p->at[p->row], *pitch = idx(c, u->n), *at = idx(c, first), *to;
    to = idx_add(c, idx_add(c, at, idx_mul(c, p->t.fragment[TC_ROWS], pitch)),
                 p->t.fragment[TC_COLUMNS]);
    at = idx_add(c, idx_add(c, at, idx_mul(c, row, pitch)), p->t.lane);
    number += q->nest->nstage;
    Node *fill = place_store(q, number, node_bool(c, true), fragment_sum(q, p, n), to);
    fill = place_fill(q, &fill, 1);
    return place_load(q, number, &fill, 1, at);
}
