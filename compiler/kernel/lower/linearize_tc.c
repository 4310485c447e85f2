/* linearize_tc.c - fragments of a matrix unit among the statements.
 *
 * A sum has a tile until it is stored. An operand is loaded where the products want it, into the
 * tile that has not been used for the longest time. A tile's shape stays the same in the whole
 * kernel: where sums over other terms want another split into sums and operands, the statements are
 * made again, all of them with that of most sums (Linear.one_split). Where the items of a warp have
 * fragments in registers (lanes), these are values with names. */
#include <string.h>

#include "linearize.h"

/* An accumulator; a fragment has a tile until it is stored. */
void lin_add_sum(Lin *q, Node *sum, int depth)
{
    Stmt *s = lin_add(q, STMT_ACC, sum, depth);
    if (!is_products(q->l, sum) || q->l->tile->tc->lanes)
        return;
    s->tile[0] = (int8_t)q->nsum;
    q->sum[q->nsum++] = sum;
}

static int tile_of(const Lin *q, const Node *fragment)
{
    for (int i = 0; i < q->nsum; i++)
        if (q->sum[i] == fragment)
            return i;
    for (int i = 0; i < q->l->tile->tc->tiles; i++)
        if (q->held[i] == fragment)
            return i;
    return -1;
}

void lin_add_fill(Lin *q, Node *store, bool async, int depth)
{
    Stmt *s = lin_add(q, STMT_STORE, store, depth);
    s->async = store_chunk(store) > 1 && async;
    if (s->store != STORE_FRAGMENT)
        return;
    s->tile[0] = (int8_t)tile_of(q, store->src[2]);
    q->stored++;
    if (q->stored == q->nsum) /* their tiles are free again */
        q->stored = q->nsum = 0;
}

bool lin_is_under_way(const Lin *q, Node *fill)
{
    bool good = q->l->tile->quad && q->nunder_way < MAX_TILES;
    for (int i = 0; i < end_stores(fill); i++)
        good = good && store_chunk(fill->src[i]) > 1;
    for (int i = 0; i < q->n && good; i++) {
        const Node *x = q->order[i], *place = x->nsrc ? x->src[0] : NULL;
        if (place && place->op == OP_AFTER && place->src[1] == fill)
            good = x->op == OP_LOAD && q->fragment[i];
    }
    return good;
}

void lin_begin_copies(Lin *q, Node *fill, int depth)
{
    lin_add(q, STMT_COMMIT, NULL, depth);
    q->under_way[q->nunder_way++] = fill;
}

/* Copies are done in their order; the items of a group have copied for each other. */
void lin_wait_for_copies(Lin *q, const bool *needed, int depth)
{
    int last = 0;
    for (int p = 0; p < q->n; p++)
        for (int i = 0; i < q->nunder_way && needed[p] && q->order[p]->op == OP_AFTER; i++)
            if (q->order[p]->src[1] == q->under_way[i] && i >= last)
                last = i + 1;
    if (last <= q->nwaited)
        return;
    lin_add(q, STMT_WAIT, NULL, depth)->count = q->nunder_way - last;
    lin_add(q, STMT_BARRIER, NULL, depth);
    q->nwaited = last;
}

/* Operands have tiles behind the sums': some for those that move with rows, some for the others,
 * for a tile's shape stays. */
typedef struct {
    int first, n;
} Pool;

/* Loads a fragment unless some tile has it still; the one that has not been used for the longest
 * time gives its tile. */
static int operand_tile(Lin *q, const Pool *pool, Node *load, int depth)
{
    int at = pool->first;
    for (int i = pool->first; i < pool->first + pool->n; i++) {
        if (q->held[i] == load) {
            q->used[i] = ++q->turn;
            return i;
        }
        at = q->used[i] < q->used[at] ? i : at;
    }
    lin_add(q, STMT_LET, load, depth)->tile[0] = (int8_t)at;
    q->held[at] = load;
    q->used[at] = ++q->turn;
    return at;
}

/* Of fragments that have names. */
static void add_lane_products(Lin *q, const int *group, int n, int depth)
{
    for (int i = 0; i < n; i++) {
        Node *sum = q->order[group[i]], *term[TC_MOST_TERMS];
        int nterm = tc_terms(sum->src[0], term, TC_MOST_TERMS);
        for (int j = 0; j < nterm; j++) {
            Stmt *s = lin_add(q, STMT_UPDATE, sum, depth);
            s->term = term[j];
            s->last = j == nterm - 1;
        }
    }
}

void lin_products_done(Lin *q, int depth)
{
    if (tile_rows_in_place(q->l->tile))
        lin_add(q, STMT_DONE, q->l->tile->along, depth);
}

/* Fragments are loaded where they are wanted. */
static void add_tile_product(Lin *q, Node *sum, Node *term, bool last, const Pool *pool, int depth)
{
    Node *a, *b;
    (void)tc_operands(q->l->tile->tc, term, q->l->tile->fragment, &a, &b);
    int x = operand_tile(q, &pool[TC_ROWS], a, depth),
        y = operand_tile(q, &pool[TC_COLUMNS], b, depth);
    Stmt *s = lin_add(q, STMT_UPDATE, sum, depth);
    s->tile[0] = (int8_t)tile_of(q, sum);
    s->tile[1] = (int8_t)x;
    s->tile[2] = (int8_t)y;
    s->term = term;
    s->last = last;
}

/* The products of a step, in the order that loads least. */
static void add_tile_products(Lin *q, const int *group, int n, int depth)
{
    const Tile *t = q->l->tile;
    int most = 0, nterm[MAX_TILES];
    Node *term[MAX_TILES][TC_MOST_TERMS];
    for (int i = 0; i < n; i++) {
        nterm[i] = tc_terms(q->order[group[i]]->src[0], term[i], TC_MOST_TERMS);
        most = nterm[i] > most ? nterm[i] : most;
    }
    TcPair pair[MAX_TILES * TC_MOST_TERMS] = {{0}};
    TcStep step;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < nterm[i]; j++) {
            Node *a, *b;
            (void)tc_operands(t->tc, term[i][j], t->fragment, &a, &b);
            pair[i * most + j] = (TcPair){a, b};
        }
    Linear *l = q->l;
    const int sums = l->one_split ? l->nsum : q->nsum;
    if (!tc_step(pair, n, most, t->tc->tiles - sums, &step))
        BUG("%d fragments of sums leave no room for operands", sums);
    const int na = l->one_split ? l->nrows : step.tiles[TC_ROWS],
              nb = l->one_split ? t->tc->tiles - sums - na : step.tiles[TC_COLUMNS];
    const Pool pool[] = {{sums, na}, {sums + na, nb}};
    l->splits_differ |= l->nsum && (l->nsum != sums || l->nrows != na);
    if (sums > l->nsum) {
        l->nsum = sums;
        l->nrows = na;
    }
    memset((void *)q->held, 0, sizeof q->held);
    for (int first = 0; first < n; first += step.together)
        for (int j = 0; j < most; j++)
            for (int i = first; i < first + step.together; i++)
                if (j < nterm[i])
                    add_tile_product(q, q->order[group[i]], term[i][j], j == nterm[i] - 1, pool,
                                     depth);
}

void lin_add_products(Lin *q, const int *group, int n, int depth)
{
    if (q->l->tile->tc->lanes)
        add_lane_products(q, group, n, depth);
    else
        add_tile_products(q, group, n, depth);
}
