/* patches.c - a network computed patch by patch, where its values take more memory than there is.
 *
 *     y = g(f(x))
 *         -> concat(g(f(x[rows 0..])), g(f(x[rows k - 1..])), ...)
 *
 * Between two values that all goes through (borders.c) a piece of the network takes x, y and what
 * lies between them.  Of that, one patch is there at a time: rows and columns of y, or maps of y
 * where each is made of all of x and of no other map (a pointwise convolution and a depthwise one).
 * What windows of two patches share is computed twice.  Such pieces follow each other, and which
 * ones, and in how many patches, is a shortest path: pieces that fit into the memory are edges, as
 * long as what is computed twice.  A piece that fits as it is takes nothing.
 *
 *     x --- a --- b --- c --- y        x..b in 4 x 4 patches, b..c as it is, c..y in 2 x 1
 *
 * What will be stored is an estimate here: the narrowest value in front of each sum, with the
 * border that its readers want.
 *
 * Leaves concats of what is stored. */
#include <math.h>

#include "builder.h"
#include "cost.h"
#include "rewrite.h"

enum {
    MOST_ALONG = MOST_PIECES / 2, /* patches along an axis */
    MOST_PATCHES = 2 * MOST_PIECES,
    MOST_BORDERS = MOST_PIECES / 2 /* that a piece goes over */
};

/* What is stored, from when it is computed until it is last read, by place in the order. */
typedef struct {
    Node *node, *padded; /* what its readers see of it, with a border; or NULL */
    int first, last;
} StoredValue;

typedef struct {
    Context *c;
    const Target *t;
    Arena *a;
    Borders of;
    int *place;  /* of a node in the order, by id */
    int *border; /* places of borders */
    int n;
    double room;
} Patches;

/* Between two borders, x first. */
typedef struct {
    Node *x, *y;
    int from, to;
    StoredValue *value;
    int n;
    double sums, launches; /* products; sums */
    bool whole;            /* it has results of the model inside, or nothing */
} PatchPiece;

/* Patches along one axis, and along another one across. */
typedef struct {
    int axis, across;
    int64_t n, m;
    double cost; /* cycles of what is computed twice */
} Patching;

/* ---- what is stored -------------------------------------------------------------------------- */

static Node *only_run_source(const Patches *p, const Node *n)
{
    Node *only = NULL;
    for (uint32_t k = 0; k < n->nsrc; k++) {
        Node *x = n->src[k];
        if (!p->of.run[x->id] || x == only)
            continue;
        if (only)
            return NULL;
        only = x;
    }
    return only;
}

static bool narrower(const Node *n, const Node *than)
{
    return !than || dtype_info[n->dtype].bytes < dtype_info[than->dtype].bytes;
}

/* What a sum reads as n, as it is stored: x, or the narrowest value in front of another sum. */
static Node *stored_as(const Patches *p, const Node *x, Node *n, Node **padded)
{
    Node *best = NULL, *below;
    *padded = NULL;
    for (; n != x; n = below) {
        if (op_is_alu(n->op) && narrower(n, best))
            best = n;
        if (n->op == OP_PAD && !*padded)
            *padded = n;
        below = n->op == OP_REDUCE ? NULL : only_run_source(p, n);
        if (!below)
            return best ? best : n;
    }
    return narrower(n, best) || !narrower(best, n) ? n : best;
}

static void add_value(const Patches *p, PatchPiece *s, Node *node, Node *padded)
{
    for (int i = 0; i < s->n; i++)
        if (s->value[i].node == node) {
            Node **wide = &s->value[i].padded;
            if (padded && (!*wide || node_elements(padded) > node_elements(*wide)))
                *wide = padded;
            return;
        }
    const int at = p->place[node->id];
    const StoredValue v = {
        .node = node, .padded = padded, .first = node == s->x ? -1 : at, .last = at};
    vec_push(p->a, s->value, s->n, v);
}

static void add_operands(const Patches *p, PatchPiece *s, Node *sum)
{
    Node *x = sum->src[0], *padded;
    for (uint32_t k = 0; k < (x->op == OP_MUL ? x->nsrc : 1); k++) {
        Node *operand = x->op == OP_MUL ? x->src[k] : x;
        if (!p->of.run[operand->id])
            continue;
        Node *stored = stored_as(p, s->x, operand, &padded);
        add_value(p, s, stored, padded);
    }
}

/* Who reads a value that is not stored does so where what it is part of is computed. */
static void find_last(const Patches *p, PatchPiece *s)
{
    int *last = NEWN(p->a, int, s->to + 1); /* by place */
    for (int i = s->to; i > s->from; i--) {
        const Node *t = p->of.order[i];
        int when = i == s->to ? i : last[i];
        for (int k = 0; k < s->n; k++)
            if (s->value[k].node == t) {
                s->value[k].last = when > i ? when : i;
                when = i;
            }
        for (uint32_t k = 0; k < t->nsrc; k++) {
            const int at = p->place[t->src[k]->id];
            if (at <= s->to && at >= s->from && last[at] < when)
                last[at] = when;
        }
    }
    s->value[0].last = last[s->from];
}

static PatchPiece piece_of(const Patches *p, int first, int end)
{
    PatchPiece s = {.from = p->border[first], .to = p->border[end]};
    s.x = p->of.order[s.from];
    s.y = p->of.order[s.to];
    add_value(p, &s, s.x, NULL);
    for (int i = s.from + 1; i <= s.to; i++) {
        Node *t = p->of.order[i];
        s.whole |= i < s.to && p->of.result[t->id];
        if (t->op != OP_REDUCE || !p->of.run[t->id])
            continue;
        add_operands(p, &s, t);
        s.sums += node_elements(t->src[0]);
        s.launches++;
    }
    add_value(p, &s, s.y, NULL);
    find_last(p, &s);
    s.whole |= !s.launches;
    return s;
}

/* Elements of a value, all of them or, by id, those of a part. */
static double bytes_of(const StoredValue *v, const double *part)
{
    const double own = part ? part[v->node->id] : node_elements(v->node),
                 wide = !v->padded ? 0
                        : part     ? part[v->padded->id]
                                   : node_elements(v->padded);
    return fmax(own, wide) * dtype_info[v->node->dtype].bytes;
}

/* The most that is there at a time; of a part of y: besides all of x and y. */
static double peak_of(const PatchPiece *s, const double *part)
{
    double most = 0;
    for (int i = 1; i < s->n; i++) {
        const int now = s->value[i].first;
        double bytes = part ? bytes_of(&s->value[0], NULL) + node_bytes(s->y) : 0;
        for (int k = 0; k < s->n; k++) {
            const StoredValue *v = &s->value[k];
            if (part && (v->node == s->x || v->node == s->y))
                continue;
            bytes += v->first <= now && now <= v->last ? bytes_of(v, part) : 0;
        }
        most = fmax(most, bytes);
    }
    return most;
}

/* ---- in how many patches --------------------------------------------------------------------- */

static GraphPart part_along(const PatchPiece *s, int axis, int64_t i, int64_t n,
                            const GraphPart *across)
{
    const int64_t size = s->y->shape[axis]->hi / n;
    return (GraphPart){.axis = axis,
                       .lo = i * size,
                       .hi = (i + 1) * size,
                       .kept = s->x,
                       .share = 1,
                       .across = across};
}

/* Whether a patch in the middle fits; then what all of them cost. */
static bool patch_fits(const Patches *p, const PatchPiece *s, Patching *w)
{
    Arena *a = arena_new();
    const GraphPart other = part_along(s, w->across, w->m / 2, w->m, NULL),
                    part = part_along(s, w->axis, w->n / 2, w->n, w->m > 1 ? &other : NULL);
    const double *elements = part_elements(p->c, a, 1, &s->y, &part);
    const bool fits = elements && peak_of(s, elements) <= p->room;
    double sums = 0;
    for (int i = s->from + 1; fits && i <= s->to; i++) {
        const Node *t = p->of.order[i];
        sums += t->op == OP_REDUCE && p->of.run[t->id] ? elements[t->src[0]->id] : 0;
    }
    const double n = (double)(w->n * w->m);
    w->cost = 2 * fmax(sums * n - s->sums, 0) / p->t->machine.rate[UNIT_TILE] +
              n * s->launches * p->t->machine.launch;
    arena_free(a);
    return fits;
}

/* The fewest patches along an axis that fit, where there are so many across. */
static void try_axis(const Patches *p, const PatchPiece *s, int axis, int across, int64_t m,
                     Patching *best)
{
    int64_t size;
    if (axis >= s->y->rank || !idx_value(s->y->shape[axis], &size))
        return;
    for (int64_t n = m > 1 ? 1 : 2; n <= size && n <= MOST_ALONG && n * m <= MOST_PATCHES; n++) {
        Patching w = {.axis = axis, .across = across, .n = n, .m = m};
        if (size % n || !patch_fits(p, s, &w))
            continue;
        if (w.cost < best->cost)
            *best = w;
        return;
    }
}

static Patching patching_of(const Patches *p, const PatchPiece *s)
{
    enum { MAPS = 1, ROWS, COLUMNS };
    Patching best = {.cost = INFINITY};
    int64_t size;
    if (s->whole || bytes_of(&s->value[0], NULL) + node_bytes(s->y) > p->room)
        return best;
    try_axis(p, s, MAPS, 0, 1, &best);
    try_axis(p, s, ROWS, 0, 1, &best);
    if (s->y->rank <= COLUMNS || !idx_value(s->y->shape[COLUMNS], &size))
        return best;
    for (int64_t m = 2; m <= size && m <= MOST_ALONG; m++)
        if (size % m == 0)
            try_axis(p, s, ROWS, COLUMNS, m, &best);
    return best;
}

/* ---- which pieces ---------------------------------------------------------------------------- */

/* Of values between two sums the narrowest is the border. */
static void list_borders(Patches *p)
{
    int best = -1;
    for (int i = 0; i <= p->of.n; i++) {
        Node *t = i < p->of.n ? p->of.order[i] : NULL;
        if (best >= 0 && (!t || (t->op == OP_REDUCE && p->of.run[t->id]))) {
            vec_push(p->a, p->border, p->n, best);
            best = -1;
        }
        if (t && is_border(&p->of, i) &&
            (best < 0 || node_bytes(t) <= node_bytes(p->of.order[best])))
            best = i;
    }
}

/* The shortest path from the first border to the last; by border, where its piece begins, and in
 * which patches it is. Bytes that are too many come before cycles. */
static bool shortest_path(const Patches *p, int *before, Patching *way)
{
    double *cost = NEWN(p->a, double, p->n), *over = NEWN(p->a, double, p->n);
    int *large = NEWN(p->a, int, p->n); /* pieces so far that do not fit as they are */
    bool any = false;
    for (int j = 1; j < p->n; j++) {
        const PatchPiece one = piece_of(p, j - 1, j);
        const double more = fmax(peak_of(&one, NULL) - p->room, 0);
        large[j] = large[j - 1] + (more > 0);
        before[j] = j - 1;
        way[j] = (Patching){.n = 1, .m = 1};
        cost[j] = cost[j - 1];
        over[j] = over[j - 1] + more;
        for (int i = j - 1; i >= 0 && i >= j - MOST_BORDERS; i--) {
            if (large[j] == large[i] || over[i] > over[j])
                continue;
            const PatchPiece s = piece_of(p, i, j);
            const Patching w = patching_of(p, &s);
            if (w.cost == INFINITY || (over[i] == over[j] && cost[i] + w.cost >= cost[j]))
                continue;
            cost[j] = cost[i] + w.cost;
            over[j] = over[i];
            before[j] = i;
            way[j] = w;
        }
    }
    for (int j = p->n - 1; j > 0; j = before[j])
        any |= way[j].n * way[j].m > 1;
    return any;
}

/* ---- the graph in patches -------------------------------------------------------------------- */

static Node *in_patches(const Patches *p, const PatchPiece *s, const Patching *w)
{
    Node *row[MOST_ALONG], *one[MOST_ALONG];
    for (int64_t i = 0; i < w->n; i++) {
        for (int64_t j = 0; j < w->m; j++) {
            const GraphPart other = part_along(s, w->across, j, w->m, NULL),
                            part = part_along(s, w->axis, i, w->n, w->m > 1 ? &other : NULL);
            if (!roots_part(p->c, p->a, 1, &s->y, &part, &one[j]))
                return NULL;
            one[j] = ingot_contiguous(p->c, one[j]);
        }
        row[i] = w->m > 1 ? concat_of(p->c, (int)w->m, one, w->across) : *one;
    }
    return w->n > 1 ? concat_of(p->c, (int)w->n, row, w->axis) : *row;
}

bool patches(Context *c, const Target *t, double room)
{
    if (c->nstate || c->noutput_group || t->gpu)
        return false;
    Patches p = {.c = c, .t = t, .a = arena_new(), .room = room};
    int nroot;
    Node **roots = rewrite_roots(c, p.a, &nroot);
    p.of = find_borders(c, p.a, nroot, roots);
    p.place = NEWN(p.a, int, c->nnode + 1);
    for (int i = 0; i < p.of.n; i++)
        p.place[p.of.order[i]->id] = i;
    list_borders(&p);
    int *before = NEWN(p.a, int, p.n + 1);
    Patching *way = NEWN(p.a, Patching, p.n + 1);
    bool any = p.n > 1 && shortest_path(&p, before, way);
    for (int j = p.n - 1; j > 0 && any; j = before[j]) { /* the last first: x stays as it is */
        if (way[j].n * way[j].m <= 1)
            continue;
        const PatchPiece s = piece_of(&p, before[j], j);
        Node *whole = in_patches(&p, &s, &way[j]);
        any = whole && exchange_border(c, p.a, s.y, whole);
    }
    arena_free(p.a);
    return any;
}
