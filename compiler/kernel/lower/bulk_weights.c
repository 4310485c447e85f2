/* bulk_weights.c - pieces of weights that a group reads whole come at once (TRIGGER copied).
 *
 * The rows that a group of a GPU multiplies lie side by side where it reads all of their terms, and
 * so do their scales.  One copy of each such piece, which an item asks for before the kernel waits
 * for others, brings them to memory that the group shares:
 *
 *     bulk a4 from 16384 g, 16384 bytes             depend
 *     depend                                        loop r
 *     loop r                                            s += f(a4[16384 g + 512 r + item])
 *         s += f(bulk[512 r + item])         <-     end
 *     end
 *
 * The statements stay as they are: what is said is which arguments come so, from where on, and how
 * many bytes (Linear.bulk).  A piece has all that any load of the argument can read, and all pieces
 * together are the argument, so nothing is copied twice.  Sums that have nothing of them, as a
 * norm's, are made first, while they come. */
#include <string.h>

#include "passes.h"

enum { WHOLE = 16 /* bytes: copies begin and end at multiples of these */ };

typedef struct {
    Linear *l;
    const Kernel *k;
    bool *seen; /* by id of a node */
    BulkWeight *piece;
    int n;
    bool *lost;            /* by argument: it has loads that are none of a piece's */
    int64_t *least, *most; /* by argument: elements behind the first load's base */
} WeightPieces;

/* The address where all counters are 0 but the grid's. */
static Node *base_of(const WeightPieces *p, Node *at, bool *grid)
{
    Context *c = p->k->c;
    int n;
    Node **order = graph_toposort(c->arena, 1, &at, &n), *zero = idx(c, 0);
    for (int i = 0; i < n; i++) {
        if (order[i]->op == OP_RANGE && tile_bound(p->l->tile, order[i]) == BOUND_GRID)
            *grid = true;
        else if (order[i]->op == OP_RANGE)
            at = substitute(c, at, 1, &order[i], &zero);
    }
    return at;
}

static bool moves_with_grid(const WeightPieces *p, const Node *at)
{
    for (int i = 0; i < p->l->tile->naxis; i++)
        if (p->l->tile->axis[i].bound == BOUND_GRID && depends_on(at, p->l->tile->axis[i].range))
            return true;
    return false;
}

static void add_load(WeightPieces *p, Node *load)
{
    Context *c = p->k->c;
    const int arg = (int)load->src[0]->arg.i;
    bool grid = false;
    if (load->nsrc != 3 || load->op != OP_LOAD || !node_is_const_i(load->src[1], 1)) {
        p->lost[arg] = true;
        return;
    }
    Node *base = base_of(p, load->src[2], &grid), *own = idx_sub(c, load->src[2], base);
    BulkWeight *piece = NULL;
    for (int i = 0; i < p->n && !piece; i++)
        piece = p->piece[i].arg == arg ? &p->piece[i] : NULL;
    if (!piece) {
        const BulkWeight first = {.arg = arg, .from = base};
        vec_push(c->arena, p->piece, p->n, first);
        piece = &p->piece[p->n - 1];
        p->least[arg] = INT64_MAX;
    }
    int64_t apart;
    if (!grid || moves_with_grid(p, own) || !idx_value(idx_sub(c, base, piece->from), &apart)) {
        p->lost[arg] = true;
        return;
    }
    const int64_t first = sat_add(apart, own->lo), last = sat_add(apart, own->hi);
    p->least[arg] = first < p->least[arg] ? first : p->least[arg];
    p->most[arg] = last > p->most[arg] ? last : p->most[arg];
}

static bool is_weight(const Kernel *k, int arg)
{
    return k->args[arg].early && !k->args[arg].written && k->args[arg].rank;
}

static void find_loads(WeightPieces *p, Node *n)
{
    if (p->seen[n->id])
        return;
    p->seen[n->id] = true;
    if ((n->op == OP_LOAD || n->op == OP_STORE || n->op == OP_AFTER) &&
        n->src[0]->op == OP_BUFFER && n->src[0]->arg.i < p->k->narg &&
        is_weight(p->k, (int)n->src[0]->arg.i))
        add_load(p, n);
    for (uint32_t i = 0; i < n->nsrc; i++)
        find_loads(p, n->src[i]);
}

/* WeightPieces of so many elements, of all groups, are the argument. */
static bool is_divided(const WeightPieces *p, const BulkWeight *piece, int64_t elements)
{
    const KernelArg *arg = &p->k->args[piece->arg];
    const Tile *t = p->l->tile;
    int64_t all = 1, size;
    for (int i = 0; i < arg->rank; i++) {
        if (!idx_value(arg->dims[i], &size))
            return false;
        all = sat_mul(all, size);
    }
    for (int i = 0; i < t->naxis; i++)
        if (t->axis[i].bound == BOUND_GRID && depends_on(piece->from, t->axis[i].range)) {
            if (!idx_value(t->axis[i].range->src[0], &size))
                return false;
            elements = sat_mul(elements, size);
        }
    return elements == all;
}

/* The piece of an argument, if there is such a one. */
static bool settle(WeightPieces *p, BulkWeight *piece)
{
    Context *c = p->k->c;
    const int64_t bytes = dtype_info[p->k->args[piece->arg].dtype].bytes,
                  elements = p->most[piece->arg] - p->least[piece->arg] + 1;
    if (p->lost[piece->arg] || !bytes || WHOLE % bytes || !is_divided(p, piece, elements))
        return false;
    piece->from = idx_add(c, piece->from, idx(c, p->least[piece->arg]));
    piece->bytes = elements * bytes;
    return piece->bytes % WHOLE == 0 && idx_is(idx_mod(c, piece->from, idx(c, WHOLE / bytes)), 0);
}

static bool computes(const Stmt *s)
{
    return s->kind == STMT_LET || s->kind == STMT_UPDATE || s->kind == STMT_STORE;
}

/* What is loaded before the wait does not come so. */
static void before_wait(WeightPieces *p)
{
    for (int i = 0; i < p->l->n && p->l->stmt[i].kind != STMT_DEPEND; i++)
        if (computes(&p->l->stmt[i]))
            find_loads(p, p->l->stmt[i].node);
    for (int i = 0; i < p->n; i++)
        p->lost[p->piece[i].arg] = true;
}

/* Does a sum read no piece, nothing that the kernel writes, and no value that statements from
 * `first` on have named? */
static bool needs_nothing(const WeightPieces *p, const Linear *l, int first, int at, int end)
{
    Arena *a = arena_new();
    Node **root = NEWN(a, Node *, end - at + 1);
    int nroot = 0, n;
    bool good = true;
    for (int i = at; i <= end; i++) {
        if (computes(&l->stmt[i]))
            root[nroot++] = l->stmt[i].node;
        good &= l->stmt[i].kind != STMT_STORE && l->stmt[i].kind != STMT_BARRIER;
    }
    Node **order = graph_toposort(a, nroot, root, &n);
    bool *reads = NEWN(a, bool, p->k->c->nnode + 1);
    for (int i = 0; i < n; i++) {
        reads[order[i]->id] = true;
        if (order[i]->op != OP_BUFFER)
            continue;
        good &= order[i]->arg.i < p->k->narg && !p->k->args[order[i]->arg.i].written;
        for (int j = 0; j < l->nbulk; j++)
            good &= l->bulk[j].arg != order[i]->arg.i;
    }
    for (int i = first; i < at; i++)
        good &= (l->stmt[i].kind != STMT_LET && l->stmt[i].kind != STMT_ACC) ||
                !reads[l->stmt[i].node->id];
    arena_free(a);
    return good && nroot;
}

static void move_up(Linear *l, int from, int n, int to)
{
    Stmt *kept = NEWN(l->arena, Stmt, n);
    memcpy(kept, l->stmt + from, (size_t)n * sizeof *kept);
    memmove(l->stmt + to + n, l->stmt + to, (size_t)(from - to) * sizeof *kept);
    memcpy(l->stmt + to, kept, (size_t)n * sizeof *kept);
}

/* Sums that have nothing of what is on its way come before those that have. */
static void others_first(const WeightPieces *p, Linear *l)
{
    int first = 0, acc = -1;
    while (first < l->n && l->stmt[first].kind != STMT_DEPEND)
        first++;
    for (first++; first < l->n && l->stmt[first].kind == STMT_NEXT; first++)
        ;
    for (int i = first; i < l->n; i++) {
        const Stmt *s = &l->stmt[i];
        acc = s->kind != STMT_ACC ? -1 : acc < 0 ? i : acc;
        if (s->kind != STMT_ACC || i + 1 == l->n || l->stmt[i + 1].kind != STMT_LOOP)
            continue;
        const int end = stmt_end(l->stmt, i + 1);
        if (acc > first && needs_nothing(p, l, first, acc, end)) {
            move_up(l, acc, end + 1 - acc, first);
            first += end + 1 - acc;
        }
        i = end;
        acc = -1;
    }
}

bool bulk_weights(Linear *l, const Kernel *k)
{
    if (!l->items || l->tile->trigger != TRIGGER_COPIED || l->tile->tc)
        return false;
    WeightPieces p = {.l = l,
                      .k = k,
                      .seen = NEWN(l->arena, bool, k->c->nnode + 1),
                      .lost = NEWN(l->arena, bool, k->narg + 1),
                      .least = NEWN(l->arena, int64_t, k->narg + 1),
                      .most = NEWN(l->arena, int64_t, k->narg + 1)};
    const uint32_t known = k->c->nnode;
    before_wait(&p);
    for (int i = 0; i < l->n; i++)
        if (computes(&l->stmt[i]) && l->stmt[i].node->id < known)
            find_loads(&p, l->stmt[i].node);
    for (int i = 0; i < p.n; i++) {
        BulkWeight piece = p.piece[i];
        if (!settle(&p, &piece))
            continue;
        piece.at = l->bulk_bytes;
        l->bulk_bytes += piece.bytes;
        vec_push(l->arena, l->bulk, l->nbulk, piece);
    }
    if (l->nbulk)
        others_first(&p, l);
    return l->nbulk > 0;
}
