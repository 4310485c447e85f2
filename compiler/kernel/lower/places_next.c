/* places_next.c - PREFETCH of what is staged: while a place is read, the lines that it is filled
 * with next are on their way.
 *
 *     STAGE i.o 2 . PREFETCH i.o 2
 *
 *     for i.o < 64                                  blocks of 48 columns
 *         for r < 768                               the place is filled: rows, 12 KB apart,
 *             a4[48 r ..] = a2[3072 r + 48 i.o ..]  of three lines each
 *         for j < 32                                32 times for 6 blocks of terms it is read:
 *             for r.o < 6                           12 lines at a time
 *                 ask for 12 of the 2304 lines of block i.o + 1
 *                 for r.b < 128 ...
 *
 * What is filled is a box of the buffer.  Its lines are numbered, those that lie one behind the
 * other first, and the tile keeps where line number `line` of the next box lies; prefetch.c puts
 * the number in, when the loops are known. */
#include "lower.h"

enum { MOST_SIDES = 8 };

/* Sides of a box with more than one element, the one with the shortest stride first. */
typedef struct {
    int64_t size[MOST_SIDES], stride[MOST_SIDES];
    int n;
} Sides;

static bool add_side(Sides *s, int64_t size, int64_t stride)
{
    int to = s->n;
    if (size < 2)
        return true;
    if (s->n == MOST_SIDES || stride < 1)
        return false;
    for (s->n++; to > 0 && s->stride[to - 1] > stride; to--) {
        s->size[to] = s->size[to - 1];
        s->stride[to] = s->stride[to - 1];
    }
    s->size[to] = size;
    s->stride[to] = stride;
    return true;
}

/* Sides that go on where the one before ends are one. */
static void join_sides(Sides *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (n && s->stride[i] == s->stride[n - 1] * s->size[n - 1]) {
            s->size[n - 1] *= s->size[i];
        } else {
            s->size[n] = s->size[i];
            s->stride[n++] = s->stride[i];
        }
    s->n = n;
}

/* Where the load reads if its leaves are `as`. */
static Node *address(Lower *q, Piece *p, Node *n, const int *leaf, Node *const *as, int nleaf)
{
    const KernelArg *a = &q->k->args[n->src[0]->arg.i];
    Node *load = filling_load(q, p, n, leaf, as, nleaf);
    return layout_offset(q->c, &a->layout, a->rank, a->dims, load->src + first_coord(load));
}

static bool find_sides(Lower *q, Piece *p, Node *n, const int *leaf, int nleaf, Sides *s)
{
    Node **as = NEWN(q->a, Node *, nleaf + 1);
    for (int i = 0; i < nleaf; i++)
        as[i] = range_new(q->c, p->next + i, idx(q->c, place_extent(q, p, leaf[i])));
    Node *at = address(q, p, n, leaf, as, nleaf);
    for (int i = 0; i < nleaf; i++) {
        const int64_t size = place_extent(q, p, leaf[i]);
        int64_t stride = 0;
        if ((size > 1 && !range_stride(q->c, at, as[i], &stride)) || !add_side(s, size, stride))
            return false;
    }
    join_sides(s);
    return s->n && s->stride[0] == 1;
}

/* Is the loop whose next place is asked for that of the STAGE, and known in length? */
static bool is_asked_for(const Piece *p, const Stage *s)
{
    const Node *loop = tile_prefetch(&p->t, s->arg);
    int64_t extent;
    return loop && p->at[s->axis] == loop && !p->t.tc && !p->t.items &&
           idx_value(loop->src[0], &extent);
}

void place_next(Lower *q, Piece *p, int stage, Node *n, const int *leaf, int nleaf)
{
    const Stage *s = &q->nest->stage[stage];
    Sides box = {0};
    Panel panel = {.arg = s->arg};
    for (int i = 0; i < p->t.npanel; i++)
        if (p->t.panel[i].arg == s->arg)
            return;
    if (!is_asked_for(p, s))
        return;
    if (node_is_const_i(n->src[1], 1) && find_sides(q, p, n, leaf, nleaf, &box)) {
        Context *c = q->c;
        const int64_t line = LOWERED_LINE / (int64_t)dtype_info[n->dtype].bytes;
        Node **as = NEWN(q->a, Node *, nleaf + 2), *loop = p->at[s->axis], *left;
        int *all = NEWN(q->a, int, nleaf + 2);
        for (int i = 0; i < nleaf; i++) {
            all[i] = leaf[i];
            as[i] = idx(c, 0);
        }
        all[nleaf] = s->axis;
        as[nleaf] = idx_min(c, idx_add(c, loop, idx(c, 1)), idx(c, loop->hi));
        panel.at = address(q, p, n, all, as, nleaf + 1);
        panel.lines = ceil_div(box.size[0], line);
        for (int i = 1; i < box.n; i++)
            panel.lines = sat_mul(panel.lines, box.size[i]);
        panel.line = left = range_new(c, p->next++, idx(c, panel.lines));
        box.size[0] = ceil_div(box.size[0], line);
        box.stride[0] = line;
        for (int i = 0; i < box.n; i++) {
            Node *digit = idx_mod(c, left, idx(c, box.size[i]));
            panel.at = idx_add(c, panel.at, idx_mul(c, digit, idx(c, box.stride[i])));
            left = idx_div(c, left, idx(c, box.size[i]));
        }
    }
    p->t.panel[p->t.npanel++] = panel;
}
