/* linearize_rows.c - products of rows that stay in registers (tc_rows.c), in their order. */
#include "linearize.h"

/* A cluster's groups wait for each other where they join what they have, which takes as long as a
 * few hundred instructions: all that can be joined is, at once.  It needs no place that is to be
 * filled yet. */
int lin_ready_fills(const Lin *q, int first, uint64_t open, const bool *needed, int *fill)
{
    const bool ranks = lin_is_for_ranks(q, q->order[first]);
    Arena *a = arena_new();
    int n = 0;
    for (int i = first; i < q->n && q->l->tile->ranks; i++) {
        Node *t = q->order[i];
        bool ready = is_fill(t) && !q->done[i] && (!needed || needed[i]) &&
                     lin_fits(q, i, open, 0) && !is_fill_ahead(q->l, t) &&
                     !lin_is_under_way(q, t) && lin_is_for_ranks(q, t) == ranks;
        const bool *from = ready ? lin_needed_by(q, a, &i, 1, i) : NULL;
        for (int j = 0; j < i && ready; j++)
            ready =
                !from[j] || q->done[j] || !is_fill(q->order[j]) || is_fill_ahead(q->l, q->order[j]);
        if (ready)
            fill[n++] = i;
        else if (i == first)
            break;
    }
    arena_free(a);
    return n;
}

/* Products without a loop, those of the first operands of all sums first: before them stands what
 * they want. */
void lin_add_products_of_rows(Lin *q, const int *group, int n, uint64_t open, uint64_t must,
                              int depth)
{
    for (int j = 0, left = 1; left; j++) {
        Arena *a = arena_new();
        Node *term[TC_MOST_TERMS], **now = NEWN(a, Node *, n);
        bool *last = NEWN(a, bool, n);
        int *at = NEWN(a, int, n), end = 0, nat = 0;
        left = 0;
        for (int i = 0; i < n; i++) {
            const int nterm = tc_terms(q->order[group[i]]->src[0], term, TC_MOST_TERMS);
            now[i] = j < nterm ? term[j] : NULL;
            last[i] = j == nterm - 1;
            left += j + 1 < nterm;
            if (!now[i])
                continue;
            at[nat++] = lin_position(q, now[i]);
            end = at[nat - 1] > end ? at[nat - 1] : end;
        }
        q->late = true;
        lin_emit(q, open, must, lin_needed_by(q, a, at, nat, end), depth);
        q->late = false;
        for (int i = 0; i < n; i++) {
            if (!now[i])
                continue;
            Stmt *s = lin_add(q, STMT_UPDATE, q->order[group[i]], depth);
            s->term = now[i];
            s->last = last[i];
        }
        arena_free(a);
    }
}

/* Of a unit that multiplies what lies in places, the sums of the group that go on for all blocks of
 * a row: all is packed, their lines are scaled, then come the products, for one block of terms of
 * all sums after the other. */
void lin_add_block_of_rows(Lin *q, const int *group, int n, uint64_t open, uint64_t must, int depth)
{
    Arena *a = arena_new();
    Node *term[TC_MOST_TERMS];
    int *sum = NEWN(a, int, n + 1), nsum = 0, most = 0;
    for (int i = 0; i < n; i++)
        if (is_products(q->l, q->order[group[i]]))
            sum[nsum++] = group[i];
    if (nsum) {
        q->late = true;
        lin_emit(q, open, must, lin_needed_by(q, a, sum, nsum, sum[nsum - 1]), depth);
        q->late = false;
    }
    for (int i = 0; i < nsum; i++)
        lin_add(q, STMT_SCALE, q->order[sum[i]], depth);
    for (int j = 0; j == 0 || j < most; j++)
        for (int i = 0; i < nsum; i++) {
            const int nterm = tc_terms(q->order[sum[i]]->src[0], term, TC_MOST_TERMS);
            most = nterm > most ? nterm : most;
            if (j >= nterm)
                continue;
            Stmt *s = lin_add(q, STMT_UPDATE, q->order[sum[i]], depth);
            s->term = term[j];
            s->last = j == nterm - 1;
        }
    if (nsum)
        lin_products_done(q, depth);
    arena_free(a);
}
