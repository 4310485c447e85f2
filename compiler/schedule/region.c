/* region.c - what it takes to run a region of the graph as one kernel, before there is a loop nest.
 *
 * A region is a node and all below it that no kernel has stored.  It is walked as the kernel will
 * be: a node at certain coordinates is computed once, however many read it there, and again
 * wherever the coordinates are others.  So each axis has a symbol: a loop of the result, a loop of
 * a reduce, or something made of those by a movement.
 *
 *     y[i,j] = x[i,j] / sum over k of x[i,k]        i, j: loops of y;  k: one of the reduce
 *
 * reads x at (i,j) and at (i,k); the sum depends on i alone, so that it is computed outside of j: I
 * times, of K terms.
 *
 * Time, in cycles, is that of memory or that of arithmetic, whichever is longer:
 *
 *     max(bytes, each once / bandwidth of the level that holds them all, operations / rate, by
 *         unit) + launch
 *
 * Which of several values an element is may follow from a coordinate: where(i == 0, a, where(i ==
 * 1, b, ..)), the rows of Winograd's matrices.  In a kernel without sums each copy of that loop is
 * one of them alone, and each value is computed for its part of the elements; in the tile of a sum
 * all are, for each.
 *
 * Operations are weighed by ops.def and counted at the upper bounds of run-time sizes.  Sums of
 * products are tiled for registers, or are a matrix unit's where a kernel stores one value; beside
 * another reduce they run element by element, as does a reduce inside of another one's loop. */
#include <string.h>

#include "fusion.h"
#include "rewrite.h"
#include "tc.h"

enum { CONSTANT = 0 };

typedef struct {
    uint64_t name;  /* equal coordinates have equal names; CONSTANT: it is 0 */
    uint64_t loops; /* that it depends on, a bit each */
} Coord;

/* A node at coordinates, within loops. */
typedef struct {
    Node *n;
    uint64_t around; /* the loops; what begins later is further inside */
    int reduces;     /* how many of them belong to reduces, one inside of the other */
    bool product;    /* it is a term of a sum of products, */
    bool matrix;     /* and of one that a matrix unit takes */
    bool bf16;       /* or DOT, by pairs of bf16, */
    bool bytes;      /* or by fours of bytes */
    double part;     /* of the elements around it that it is computed for, in a kernel of cases */
    Coord at[INGOT_MAX_RANK];
} RegionItem;

typedef struct {
    Sched *s;
    Arena *a;
    RegionWork *out;
    double extent[MAX_LOOPS];
    int nloop, noutput; /* the first ones are the result's */
    Map seen, read;
    RegionItem *stack;
    int nstack, room, nitem, most; /* items that compute; how many of them are followed */
    int nmove; /* and those that move elements: coordinates, of which nothing is left to run */
    double products, matrix; /* operations of sums of products; of those that a unit takes */
    int nother;              /* reduces that are none */
} RegionWalk;

/* What a coordinate is named after, beside nodes. */
enum { OF_ALL = 1, OF_LOOP, OF_VALUE, OF_INDEX };

static double size_of(Node *dim)
{
    return dim->hi < 1 ? 1 : (double)dim->hi;
}

static Coord new_loop(RegionWalk *w, Node *dim)
{
    if (idx_is(dim, 1))
        return (Coord){CONSTANT, 0};
    if (w->nloop == MAX_LOOPS) {
        w->out->huge = true;
        return (Coord){CONSTANT, 0};
    }
    int i = w->nloop++;
    w->extent[i] = size_of(dim);
    return (Coord){hash_join(OF_LOOP, (uint64_t)i) | 1, UINT64_C(1) << i};
}

/* ---- coordinates ----------------------------------------------------------------------------- */

static Coord derived(Coord x, uint64_t how, uint64_t what)
{
    x.name = hash_join(hash_join(x.name, how), what) | 1;
    return x;
}

/* Axes that a reshape joins or takes apart depend on all of their group; the others stay. */
static void reshaped(Node *t, const Coord *at, Coord *to)
{
    Node *x = t->src[0];
    for (int i = 0, j = 0; i < x->rank || j < t->rank;) {
        int first = i, begin = j;
        double below = 1, above = 1;
        do {
            if ((below <= above && i < x->rank) || j == t->rank)
                below *= size_of(x->shape[i++]);
            else
                above *= size_of(t->shape[j++]);
        } while ((below != above && (i < x->rank || j < t->rank)) || (i == first && i < x->rank));
        while (below == above && i < x->rank && idx_is(x->shape[i], 1))
            i++;
        while (below == above && j < t->rank && idx_is(t->shape[j], 1))
            j++;
        Coord all = {hash_join(OF_ALL, 1), 0}, one = {CONSTANT, 0};
        int nfrom = 0, nto = 0;
        for (int k = begin; k < j; k++) {
            all.loops |= at[k].loops;
            all.name = hash_join(hash_join(all.name, at[k].name), (uint64_t)t->shape[k]->id);
            if (!idx_is(t->shape[k], 1))
                one = at[k], nfrom++;
        }
        for (int k = first; k < i; k++)
            nto += !idx_is(x->shape[k], 1);
        for (int k = first; k < i; k++) {
            if (idx_is(x->shape[k], 1))
                to[k] = (Coord){CONSTANT, 0};
            else if (nfrom == 1 && nto == 1)
                to[k] = one;
            else
                to[k] = (Coord){
                    hash_join(hash_join(all.name, (uint64_t)x->shape[k]->id), (uint64_t)k) | 1,
                    all.loops};
        }
    }
}

static void moved_coords(Node *t, const Coord *at, Coord *to)
{
    Node *x = t->src[0];
    if (t->op == OP_RESHAPE) {
        reshaped(t, at, to);
        return;
    }
    for (int i = 0; i < t->rank; i++)
        switch (t->op) {
        case OP_PERMUTE: to[((const Perm *)t->arg.ptr)->axis[i]] = at[i]; break;
        case OP_EXPAND: to[i] = idx_is(x->shape[i], 1) ? (Coord){CONSTANT, 0} : at[i]; break;
        case OP_SHRINK: /* of what has one element left, too: each is another one */
        case OP_PAD: {
            Node *by = t->src[1 + 2 * i];
            to[i] = idx_is(by, 0) ? at[i] : derived(at[i], t->op, by->id);
            break;
        }
        case OP_FLIP: to[i] = t->arg.i >> i & 1 ? derived(at[i], OP_FLIP, 0) : at[i]; break;
        default: to[i] = at[i]; break;
        }
}

/* ---- the walk -------------------------------------------------------------------------------- */

static void push(RegionWalk *w, const RegionItem *from, Node *n, const Coord *at)
{
    if (w->nstack == w->room) {
        RegionItem *more = NEWN(w->a, RegionItem, 2 * w->room);
        memcpy(more, w->stack, (size_t)w->nstack * sizeof *more);
        w->stack = more;
        w->room *= 2;
    }
    RegionItem *x = &w->stack[w->nstack++];
    x->n = n;
    x->around = from->around;
    x->reduces = from->reduces;
    x->product = from->product;
    x->matrix = from->matrix;
    x->bf16 = from->bf16;
    x->part = from->part;
    x->bytes = from->bytes;
    memcpy(x->at, at, (size_t)n->rank * sizeof *at);
}

static uint64_t loops_of(const RegionItem *x)
{
    uint64_t loops = 0;
    for (int i = 0; i < x->n->rank; i++)
        loops |= x->at[i].loops;
    return loops;
}

/* The loops that something runs in which depends on these: those around it, up to the innermost one
 * of them.  A work item has all loops of the result. */
static uint64_t inside_of(const RegionWalk *w, const RegionItem *x, uint64_t loops)
{
    uint64_t on = loops & x->around, below = 0;
    if (!w->s->fuse_rows || w->s->target->gpu)
        on |= x->around & ((UINT64_C(1) << w->noutput) - 1);
    for (int i = w->nloop; i-- > 0 && !below;)
        if (on >> i & 1)
            below = i == MAX_LOOPS - 1 ? ~UINT64_C(0) : (UINT64_C(1) << (i + 1)) - 1;
    return x->around & below;
}

static uint64_t inside(const RegionWalk *w, const RegionItem *x)
{
    return inside_of(w, x, loops_of(x));
}

static double iterations(const RegionWalk *w, uint64_t loops)
{
    double n = 1;
    for (int i = 0; i < w->nloop; i++)
        if (loops >> i & 1)
            n *= w->extent[i];
    return n;
}

static bool is_known(RegionWalk *w, const RegionItem *x)
{
    uint64_t key = hash_join(x->n->id, OF_VALUE);
    if (x->n->op == OP_REDUCE && reduce_size(x->n) > 1) /* its siblings are computed with it */
        key = hash_join(hash_join(x->n->src[0]->id, x->n->src[1]->id),
                        (uint64_t)reduce_arg(reduce_monoid(x->n), reduce_axes(x->n), 0).i);
    for (int i = 0; i < x->n->rank; i++)
        key = hash_join(key, x->at[i].name);
    key |= 1;
    if (map_get(&w->seen, key))
        return true;
    map_put(&w->seen, key, (void *)1);
    return false;
}

static void count_ops(RegionWalk *w, const RegionItem *x, double ops)
{
    w->out->cases += (1 - x->part) * ops;
    enum { BYTES_AT_ONCE = 4 };
    if (x->reduces > 1 && x->bytes)
        w->products += ops / BYTES_AT_ONCE;
    else if (x->reduces > 1)
        w->out->ops[UNIT_SCALAR] += ops;
    else if (x->product)
        *(x->matrix ? &w->matrix : &w->products) +=
            x->bf16 ? ops / w->s->target->machine.dot_bf16 : ops;
    else
        w->out->ops[UNIT_VECTOR] += ops;
}

/* What is stored: of it no more than there is, each element once. */
static void read_stored(RegionWalk *w, const RegionItem *x)
{
    double all = node_bytes(x->n),
           some = iterations(w, inside(w, x)) * dtype_info[x->n->dtype].bytes;
    const double again = (1 - x->part) * iterations(w, inside(w, x)); /* loads for other cases */
    w->out->cases += again;
    w->out->ops[UNIT_VECTOR] += again;
    if (map_get(&w->read, (uint64_t)x->n->id + 1) || x->n->op == OP_CONST || x->n->op == OP_IOTA)
        return;
    map_put(&w->read, (uint64_t)x->n->id + 1, (void *)1);
    w->out->bytes += some < all ? some : all;
    w->out->buffers++;
    const Info *i = info_of(w->s, x->n);
    w->out->shared += i->constant && i->several && some < all ? all : 0;
}

static bool is_product(Node *t)
{
    Node *term[TC_MOST_TERMS];
    return reduce_monoid(t) == INGOT_REDUCE_ADD &&
           tc_terms(below_casts(t->src[0]), term, TC_MOST_TERMS) > 0;
}

bool is_sum_of_bytes(const Node *n)
{
    bool wide = false; /* one of them was stored as i16 (wide_bytes.c) */
    if (n->op != OP_REDUCE || n->dtype != INGOT_I32 || reduce_size(n) != 1 ||
        reduce_monoid(n) != INGOT_REDUCE_ADD || n->src[0]->op != OP_MUL)
        return false;
    for (int i = 0; i < 2; i++) {
        const Node *x = n->src[0]->src[i];
        while (is_move(x))
            x = x->src[0];
        const ingot_dtype d = x->op == OP_CAST ? (ingot_dtype)x->src[0]->dtype : INGOT_F32;
        if (d != INGOT_I8 && d != INGOT_U8 && (d != INGOT_I16 || wide))
            return false;
        wide |= d == INGOT_I16;
    }
    return true;
}

static bool has_axes(Node *sum, const Tc *u)
{
    Node *from = sum->src[0];
    const unsigned axes = reduce_axes(sum);
    int rows = 0, columns = 0, terms = 0;
    for (int i = 0; i < from->rank; i++) {
        const int64_t n = from->shape[i]->hi;
        if (axes >> i & 1) {
            terms += n % u->group == 0 && n >= u->group;
        } else {
            rows += n > 1;
            columns += n >= u->n && n % u->n == 0;
        }
    }
    return terms && columns && rows > 1;
}

/* What a term multiplies; NULL: it is stored as it is. A zero point may leave and come again, as a
 * border of x has it: pad(x - z) + z. */
static Node *narrow_operand(Node *term, int i)
{
    Node *x = term->src[i], *z = NULL;
    for (;; x = x->src[0]) {
        const bool adds = x->dtype == INGOT_I32 && (x->op == OP_ADD || x->op == OP_SUB);
        Node *number = adds ? one_number(x->src[1]) : NULL;
        if (number && x->op == OP_ADD && !z)
            z = number;
        else if (number && x->op == OP_SUB && number == z)
            z = NULL;
        else if (!is_move(x))
            break;
    }
    return x->op == OP_CAST && !z ? x->src[0] : NULL;
}

/* Does DOT take it by pairs of bf16, faster than terms of f32? */
static bool is_for_dot_bf16(const Sched *s, Node *sum)
{
    Node *x = sum->src[0];
    if (s->target->gpu || !machine_dots(&s->target->machine, 2, true) || x->op != OP_MUL)
        return false;
    for (int i = 0; i < 2; i++) {
        const Node *narrow = narrow_operand(x, i);
        if (!narrow || narrow->dtype != INGOT_BF16)
            return false;
    }
    return true;
}

/* Does a matrix unit of the core multiply such operands, along axes that are long enough? */
static bool is_for_matrix_unit(const Sched *s, Node *sum)
{
    Node *term[TC_MOST_TERMS], *side[2];
    if (s->target->gpu || !has_units(&s->target->machine) ||
        !tc_terms(sum->src[0], term, TC_MOST_TERMS))
        return false;
    for (int i = 0; i < 2; i++)
        if (!(side[i] = narrow_operand(term[0], i)))
            return false;
    for (const Tc *u = NULL; (u = tc_next(&s->target->machine, u));)
        if (tc_reads((ingot_dtype)side[0]->dtype, u->a) &&
            tc_reads((ingot_dtype)side[1]->dtype, u->b) && sum->dtype == u->acc && has_axes(sum, u))
            return true;
    return false;
}

static void visit_reduce(RegionWalk *w, RegionItem *x)
{
    Node *t = x->n, *from = t->src[0];
    unsigned axes = reduce_axes(t);
    Coord at[INGOT_MAX_RANK];
    x->around = inside(w, x);
    x->reduces++;
    for (int i = 0; i < from->rank; i++) {
        at[i] = x->at[i];
        if (axes >> i & 1) {
            at[i] = new_loop(w, from->shape[i]);
            x->around |= at[i].loops;
        }
    }
    x->product = is_product(t);
    x->matrix = x->product && is_for_matrix_unit(w->s, t);
    x->bf16 = x->product && !x->matrix && is_for_dot_bf16(w->s, t);
    x->bytes = w->s->target->machine.dot && is_sum_of_bytes(t);
    w->out->units += x->matrix;
    w->nother += !x->product;
    count_ops(w, x, (x->product ? 1 : op_info[OP_REDUCE].cost) * iterations(w, x->around));
    for (uint32_t i = 0; i < t->nsrc; i++)
        push(w, x, t->src[i], at);
}

int index_cost(Sched *s, Node *index)
{
    enum { CLAMP = 2 };
    return index->op == OP_IOTA || (coord_ops(s, index) && !coord_cost(s, index)) ? 0 : CLAMP;
}

/* The loops that an index runs in: what is expanded depends on fewer than its reader does. */
static uint64_t index_loops(const RegionWalk *w, RegionItem x, Node *index)
{
    Coord at[INGOT_MAX_RANK];
    x.n = index;
    while (op_info[x.n->op].cls == MOVE && x.n->op != OP_CONCAT && x.n->op != OP_GATHER &&
           is_computed(w->s, x.n)) {
        moved_coords(x.n, x.at, at);
        x.n = x.n->src[0];
        memcpy(x.at, at, (size_t)x.n->rank * sizeof *at);
    }
    return inside_of(w, &x, loops_of(&x));
}

static void visit_gather(RegionWalk *w, const RegionItem *x)
{
    Node *t = x->n, *from = t->src[0];
    Coord at[INGOT_MAX_RANK];
    uint64_t name = hash_join(t->id, OF_INDEX);
    for (int i = 0; i < t->rank; i++)
        name = hash_join(name, x->at[i].name);
    for (int i = 0; i < from->rank; i++) {
        Node *index = t->src[1 + i];
        if (index->op == OP_IOTA) {
            at[i] = x->at[index->arg.i];
            continue;
        }
        push(w, x, index, x->at);
        count_ops(w, x, index_cost(w->s, index) * iterations(w, index_loops(w, *x, index)));
        at[i] = (Coord){hash_join(name, (uint64_t)i) | 1, loops_of(x)};
    }
    push(w, x, from, at);
}

/* What is made of coordinates is simplified with the loops: some of it stays (index_cost.c). */
static void visit_coordinates(RegionWalk *w, const RegionItem *x, const CoordOps *ops)
{
    for (int i = 0; i < ops->n; i++) {
        uint64_t loops = 0;
        for (int axis = 0; axis < x->n->rank; axis++)
            if (ops->op[i].axes >> axis & 1)
                loops |= x->at[axis].loops;
        count_ops(w, x, ops->op[i].cost * iterations(w, inside_of(w, x, loops)));
    }
}

static const Node *below_moves(const Node *x)
{
    while (is_move(x) || x->op == OP_CAST)
        x = x->src[0];
    return x;
}

/* Of a choice by a coordinate how many values there are; 1: it is none. */
static double cases_of(const Node *t)
{
    enum { MOST = 8 }; /* copies, of cpu_elementwise.c */
    const Node *eq = t->op == OP_WHERE ? below_moves(t->src[0]) : t;
    if (eq->op != OP_EQ || eq == t || below_moves(eq->src[1])->op != OP_CONST)
        return 1;
    const Node *at = below_moves(eq->src[0]);
    const double n = at->op == OP_IOTA ? size_of(at->shape[at->arg.i]) : 1;
    return n > MOST ? 1 : n;
}

/* The operands of an elementwise op at the same coordinates. */
static void push_operands(RegionWalk *w, RegionItem *x)
{
    Node *t = x->n;
    const double cases = cases_of(t), part = x->part;
    for (uint32_t j = 0; j < t->nsrc; j++) {
        const bool one = j > 0 && cases_of(t->src[j]) == 1; /* and not the choice among the rest */
        x->part = one ? part / cases : part;
        push(w, x, t->src[j], x->at);
    }
}

static void visit(RegionWalk *w, Node *root)
{
    const RegionItem *top = &w->stack[--w->nstack];
    Node *t = top->n;
    RegionItem x;
    memcpy(&x, top, offsetof(RegionItem, at) + (size_t)t->rank * sizeof *x.at);
    Coord at[INGOT_MAX_RANK];
    if (t->dtype == INGOT_INDEX || t->op == OP_CONST || is_known(w, &x))
        return;
    if (t != root && !is_computed(w->s, t)) {
        read_stored(w, &x);
        return;
    }
    const CoordOps *ops = coord_ops(w->s, t);
    if (ops) {
        visit_coordinates(w, &x, ops);
        return;
    }
    bool moves = op_info[t->op].cls == MOVE && t->op != OP_GATHER && t->op != OP_CONCAT;
    w->nitem += !moves;
    w->nmove += moves;
    w->out->huge |= w->nitem == w->most || w->nitem + w->nmove == 2 * w->most;
    if (t->op == OP_REDUCE) {
        visit_reduce(w, &x);
    } else if (t->op == OP_GATHER) {
        visit_gather(w, &x);
    } else if (op_is_alu(t->op)) {
        count_ops(w, &x, op_info[t->op].cost * iterations(w, inside(w, &x)));
        push_operands(w, &x);
    } else if (op_info[t->op].cls == MOVE && t->op != OP_CONCAT) {
        moved_coords(t, x.at, at);
        push(w, &x, t->src[0], at);
    } else {
        if (t->op == OP_SCAN)
            count_ops(w, &x, op_info[t->op].cost * iterations(w, inside(w, &x)));
        for (uint32_t j = 0; j < t->nsrc; j++)
            if (t->src[j]->rank == t->rank)
                push(w, &x, t->src[j], x.at);
    }
}

static RegionWork walk_region(Sched *s, int n, const Stored *stored, int most)
{
    RegionWork r = {0};
    RegionItem some[32];
    const int room = sizeof some / sizeof *some;
    RegionWalk w = {.s = s, .a = arena_new(), .out = &r, .stack = some, .room = room, .most = most};
    for (int k = 0; k < n && !r.huge; k++) {
        Node *root = stored[k].node;
        RegionItem outside = {.n = root, .part = 1};
        Coord at[INGOT_MAX_RANK];
        for (int i = 0; i < root->rank; i++) {
            at[i] = new_loop(&w, root->shape[i]);
            outside.around |= at[i].loops;
        }
        w.noutput = w.nloop;
        push(&w, &outside, root, at);
        while (w.nstack && !r.huge)
            visit(&w, stored[k].copy ? NULL : root);
    }
    r.cases *= !s->target->gpu && !w.nother && w.products + w.matrix <= 0;
    r.ops[UNIT_VECTOR] -= r.cases;
    r.ops[w.nother ? UNIT_SCALAR : UNIT_TILE] += w.products;
    /* the sums of several values would need more fragments than there are */
    r.ops[w.nother ? UNIT_SCALAR : n > 1 && r.units > 1 ? UNIT_TILE : UNIT_MATRIX] += w.matrix;
    r.nodes = w.nitem;
    r.loops = w.nloop;
    map_free(&w.seen);
    map_free(&w.read);
    arena_free(w.a);
    return r;
}

RegionWork region_of_all(Sched *s, int n, const Stored *stored)
{
    enum { MAX_ITEMS = 4 * MAX_NODES };
    return walk_region(s, n, stored, MAX_ITEMS);
}

RegionWork region_of(Sched *s, Node *root)
{
    return region_of_all(s, 1, &(Stored){.node = root});
}

RegionWork region_to_fit(Sched *s, Node *root)
{
    return walk_region(s, 1, &(Stored){.node = root}, MAX_NODES + 1);
}

bool region_fits(const RegionWork *r)
{
    return !r->huge && r->nodes <= MAX_NODES && r->buffers <= MAX_BUFFERS;
}

/* ---- the estimate ---------------------------------------------------------------------------- */

double cost_ops(const RegionWork *r, const Target *t)
{
    double cycles = 0;
    for (int i = 0; i < UNITS; i++)
        if (r->ops[i] > 0) /* without such a unit there is no rate */
            cycles += r->ops[i] / t->machine.rate[i];
    return cycles;
}

double cost_region(const RegionWork *r, const Target *t)
{
    double memory = cost_bytes(r->bytes, r->bytes, t), arithmetic = cost_ops(r, t);
    return (memory > arithmetic ? memory : arithmetic) + t->machine.launch;
}
