/* readers.c - who reads a value, how often, and how: what it would take to compute it there
 * (fusion.c), or whether that can be at all (fuse.c).
 *
 * Readers look through movement: what only moves elements is computed by whoever reads it in
 * turn. */
#include <math.h>

#include "fusion.h"
#include "tc.h"

enum { MAX_MOVES = 8, MAX_STEPS = 16, MAX_ZEROS = 2 };

/* How often t reads each element of n, on average. */
static double readings(Node *n, Node *t)
{
    bool some = t->op == OP_EXPAND || t->op == OP_GATHER || t->op == OP_SHRINK;
    const double all = some && t->src[0] == n ? node_elements(n) : 0;
    return all > 0 ? node_elements(t) / all : 1;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Axes that an EXPAND repeats. */
unsigned expanded_axes(Node *n)
{
    unsigned axes = 0;
    for (int i = 0; i < n->rank; i++)
        if (idx_is(n->src[0]->shape[i], 1) && !idx_is(n->shape[i], 1))
            axes |= 1u << i;
    return axes;
}

/* The last axes, whose loops are innermost in any order of storage that keeps rows together. */
bool is_trailing(Node *n, unsigned axes)
{
    bool inside = true;
    for (int i = n->rank; i-- > 0;) {
        if (idx_is(n->shape[i], 1))
            continue;
        bool in = axes >> i & 1;
        if (in && !inside)
            return false;
        inside = in;
    }
    return axes != 0;
}

/* Rows of a GPU are shared by the items of a group (gpu_reduce.c): there are terms for many, of how
 * many is known. A row along one axis may be as long as a run says: items take so many terms at a
 * time until it ends. */
static bool row_of_group(const Node *n, unsigned axes, const Machine *m)
{
    enum { MOST = 1 << 16 };
    int64_t terms = 1, size;
    for (int i = 0; i < n->rank; i++)
        if (axes >> i & 1) {
            if (!idx_value(n->shape[i], &size) && (axes & (axes - 1) || !m->units))
                return false;
            terms = sat_mul(terms, n->shape[i]->hi);
        }
    return terms >= m->warp && terms <= MOST;
}

/* A reduce over rows, expanded over the same rows, costs one more loop over each row and no memory:
 * softmax and the norms are one kernel.  Is this reader of n such an expansion, or a step on the
 * way to one? */
static bool row_reader(const Sched *s, const Info *i, Node *n, Node *t)
{
    if (!s->fuse_rows || i->rows == ~0u)
        return false;
    if (s->target->gpu &&
        !row_of_group(i->rows ? n : t, i->rows ? i->rows : i->pending, &s->target->machine))
        return false;
    if (op_is_alu(t->op) || t->op == OP_KEEP)
        return true;
    if (t->op == OP_EXPAND)
        return i->pending && !i->rows && expanded_axes(t) == i->pending &&
               is_trailing(t, i->pending);
    if (t->op == OP_REDUCE)
        return i->rows && !i->pending && reduce_axes(t) == i->rows && t->src[0] == n;
    return false;
}

bool goes_along_row(Sched *s, Node *n, Node *reader)
{
    return row_reader(s, info_of(s, n), n, reader);
}

/* The first node behind position `after` that reads one of the region. */
static Node *next_reader(Sched *s, int nregion, Node *const *region, Node *const *uses, int after)
{
    Node *next = NULL;
    for (int k = 0; k < nregion; k++) {
        const Info *r = info_of(s, region[k]);
        int u = 0;
        while (u < r->nuse && info_of(s, uses[r->iuse + u])->order <= after)
            u++;
        Node *t = u < r->nuse ? uses[r->iuse + u] : NULL;
        if (t && (!next || info_of(s, t)->order < info_of(s, next)->order))
            next = t;
    }
    return next;
}

/* Do all readers of n belong to one elementwise region of n's shape that ends in a single node?
 * Then n is computed once by that node's kernel, whatever the number of readers.  (x * sigmoid(x),
 * residual sums.) */
static bool diamond(Sched *s, Node *n, Node *const *uses)
{
    enum { MAX_REGION = 32 };
    Node *region[MAX_REGION];
    int nregion = 0, start = info_of(s, n)->order;
    region[nregion++] = n;
    Node *t = n;
    while (nregion < MAX_REGION &&
           (t = next_reader(s, nregion, region, uses, info_of(s, t)->order)) &&
           info_of(s, t)->order < start + MAX_NODES) {
        if (!op_is_alu(t->op) || t->rank != n->rank)
            return false;
        region[nregion++] = t;
        /* closed when every reader of all but t lies inside */
        bool closed = true;
        for (int k = 0; k + 1 < nregion && closed; k++) {
            Info *r = info_of(s, region[k]);
            if (r->root)
                return false;
            for (int u = 0; u < r->nuse && closed; u++) {
                bool inside = false;
                for (int m = 0; m < nregion && !inside; m++)
                    inside = uses[r->iuse + u] == region[m];
                closed = inside;
            }
        }
        if (closed)
            return true;
    }
    return false;
}

/* ---- how often ------------------------------------------------------------------------------- */

/* Terms of each element of a reduce. */
static double terms_of(const Node *reduce)
{
    return node_elements(reduce->src[0]) / fmax(1, node_elements(reduce));
}

/* Is t a term of a reduce, or is one made of it element by element, in so many steps?  Of how many
 * terms; 0: none is. */
static double terms_above(Sched *s, Node *t, Node *const *uses, int steps)
{
    const Info *i = info_of(s, t);
    double terms = 0;
    for (int u = 0; u < i->nuse && !(terms > 0); u++) {
        const Node *reader = uses[i->iuse + u];
        if (reader->op == OP_REDUCE)
            terms = terms_of(reader);
        else if (op_is_alu(reader->op) && steps)
            terms = terms_above(s, uses[i->iuse + u], uses, steps - 1);
    }
    return terms;
}

/* The one sum that adds n up, or what is made of it by scales and lows; NULL: something else reads
 * it. */
static Node *sum_above(Sched *s, Node *n, Node *const *uses)
{
    enum { STEPS = 6 };
    for (int i = 0; i < STEPS; i++) {
        const Info *info = info_of(s, n);
        Node *t = info->nuse == 1 && !info->root ? uses[info->iuse] : NULL;
        if (!t || t->rank != n->rank)
            return NULL;
        if (t->op == OP_REDUCE)
            return reduce_monoid(t) == INGOT_REDUCE_ADD && t->dtype == INGOT_F32 ? t : NULL;
        if (t->op != OP_ADD && t->op != OP_SUB && t->op != OP_MUL &&
            !(t->op == OP_CAST && t->dtype == INGOT_F32))
            return NULL;
        n = t;
    }
    return NULL;
}

/* The sum of products of bytes that it is made of. */
static Node *bytes_below(Sched *s, Node *n)
{
    while (n && !is_sum_of_bytes(n)) {
        Node *next = NULL;
        for (uint32_t j = 0; j < n->nsrc && op_is_alu(n->op); j++)
            if (n->src[j]->dtype != INGOT_INDEX && is_computed(s, n->src[j]) &&
                info_of(s, n->src[j])->has_reduce)
                next = n->src[j];
        n = next;
    }
    return n;
}

bool is_inner_sum(Sched *s, Node *n, Node *const *uses)
{
    if (s->target->gpu || !s->target->machine.dot || !info_of(s, n)->has_reduce)
        return false;
    const Node *sum = bytes_below(s, n), *outer = sum ? sum_above(s, n, uses) : NULL;
    for (int i = 0; i < 2 && outer; i++) {
        const Node *x = sum->src[0]->src[i];
        for (int d = 0; d < x->rank; d++)
            if ((reduce_axes(outer) >> d & 1) && !idx_is(x->shape[d], 1) && x->op == OP_EXPAND &&
                idx_is(x->src[0]->shape[d], 1))
                return false;
    }
    return outer != NULL;
}

/* Are its last places, those of neighbours, where data says, and not along loops?  A sum of
 * products is no tile there, nor is it in lanes; one whose rows alone are chosen is. */
static bool is_at_places(Sched *s, const Node *t)
{
    Node *last = t->op == OP_GATHER ? t->src[t->nsrc - 1] : NULL;
    return last && index_cost(s, last) > 0 && !uniform(last) && !s->target->gpu;
}

/* Who reads n, or what only moves its elements (so many moves, one behind the other): each of those
 * computes it. */
static void look_through(Sched *s, Node *n, double times, Node *const *uses, int moves, Readers *r)
{
    Info *i = info_of(s, n);
    for (int u = 0; u < i->nuse; u++) {
        Node *t = uses[i->iuse + u];
        double more = times * readings(n, t);
        r->reduced |= i->has_reduce && more <= 1 && is_at_places(s, t);
        if (is_move(t) && !info_of(s, t)->root && moves) {
            look_through(s, t, more, uses, moves - 1, r);
        } else {
            r->times += more;
            r->kernels++;
            /* of what is read several times, less its zero point or not, a product and its sum */
            const double terms = t->op == OP_REDUCE ? terms_of(t)
                                 : more > 1         ? terms_above(s, t, uses, MAX_ZEROS)
                                                    : 0;
            r->reduced |= t->op == OP_REDUCE || terms > 0;
            r->terms = fmax(r->terms, terms);
        }
    }
}

/* The sum of products that n is made of element by element, if that is its only reduce; or NULL. */
static Node *sum_below(Sched *s, Node *n)
{
    while (n->op != OP_REDUCE) {
        Node *next = NULL;
        for (uint32_t j = 0; j < n->nsrc; j++) {
            Node *x = n->src[j];
            if (x->dtype == INGOT_INDEX || !is_computed(s, x) || !info_of(s, x)->has_reduce)
                continue;
            if (next && next != x)
                return NULL;
            next = x;
        }
        if (!next || !(op_is_alu(n->op) || n->op == OP_RESHAPE || n->op == OP_PERMUTE))
            return NULL;
        n = next;
    }
    const Node *terms = n->src[0];
    const bool others = is_computed(s, n->src[0]) && info_of(s, terms)->has_reduce;
    return !others && reduce_monoid(n) == INGOT_REDUCE_ADD && below_casts(n->src[0])->op == OP_MUL
               ? n
               : NULL;
}

/* Is n the only operand with a reduce of all that reads it, which is elementwise, behind axes that
 * are repeated? */
static bool only_repeated(Sched *s, Node *n, Node *const *uses, int moves, bool repeated)
{
    const Info *i = info_of(s, n);
    for (int u = 0; u < i->nuse; u++) {
        Node *t = uses[i->iuse + u];
        if (t->op == OP_EXPAND || t->op == OP_PERMUTE || (t->op == OP_RESHAPE && !repeated)) {
            if (!moves || info_of(s, t)->root ||
                !only_repeated(s, t, uses, moves - 1, repeated || readings(n, t) > 1))
                return false;
            continue;
        }
        if (!op_is_alu(t->op))
            return false;
        for (uint32_t j = 0; j < t->nsrc; j++) {
            Node *x = t->src[j];
            if (x != n && x->dtype != INGOT_INDEX && is_computed(s, x) && info_of(s, x)->has_reduce)
                return false;
        }
    }
    return i->nuse > 0;
}

/* A small sum of products, which elementwise readers repeat along further axes: on a GPU the items
 * of a group share its terms, and walk over what reads it (gpu_reduce.c), if what each loads for it
 * is under way at once.  What is made of the sum each item computes again: on a device that may be
 * a processor's cores (of OpenCL, which tells no units) that takes longer than a kernel. */
static bool is_walked(Sched *s, Node *n, Node *const *uses)
{
    enum { ITEMS = 8 }; /* that share the terms of one sum */
    const bool shares = s->target->gpu && s->target->machine.units;
    Node *sum = shares && info_of(s, n)->has_reduce ? sum_below(s, n) : NULL;
    return sum &&
           node_elements(sum->src[0]) <= ITEMS * s->target->machine.loads * node_elements(sum) &&
           only_repeated(s, n, uses, MAX_MOVES, false);
}

Readers readers_of(Sched *s, Node *n, Node *const *uses)
{
    Info *i = info_of(s, n);
    Readers r = {.rows = i->has_reduce && (i->rows || i->pending)};
    bool steps = true, later = i->nuse == 1; /* what is moved may be stored as it lies then */
    for (int u = 0; u < i->nuse; u++) {
        Node *t = uses[i->iuse + u];
        later &= is_move(t) && t->op != OP_GATHER && readings(n, t) <= 1;
        r.rows &= row_reader(s, i, n, t);
        steps &= op_is_alu(t->op);
    }
    if (later)
        r.times = r.kernels = 1;
    else
        look_through(s, n, 1, uses, MAX_MOVES, &r);
    r.rows &= i->rows || !steps || i->nuse == 1;
    /* a sum over a row is one for all of the row; an element is computed in each loop over the
     * row */
    if (r.rows)
        r.times = i->rows ? i->nuse : 1;
    if (r.rows)
        r.kernels = 1;
    if (i->nuse > 1 && diamond(s, n, uses))
        r.times = r.kernels = 1;
    r.reduced |= r.kernels > 1; /* its operands cannot lie as all of its readers would have them */
    r.walked = r.times > 1 && !r.rows && !r.reduced && is_walked(s, n, uses);
    const bool coordinates = i->constant ? !i->leaves : coord_ops(s, n) != NULL;
    if (coordinates && !coord_cost(s, n)) /* nothing is left of it in a loop */
        r.times = 1;
    return r;
}

/* Is v read by nothing that runs after n's kernel? */
static bool dies_by(Sched *s, Node *v, const Node *n, Node *const *uses, int steps)
{
    const Info *i = info_of(s, v);
    bool dies = !i->root && steps;
    for (int u = 0; u < i->nuse && dies; u++) {
        Node *t = uses[i->iuse + u];
        dies = t == n || (info_of(s, t)->order < info_of(s, n)->order &&
                          (!is_computed(s, t) || dies_by(s, t, n, uses, steps - 1)));
    }
    return dies;
}

/* Is n, of which t is a part, made element by element of a stored value as large, which dies in its
 * kernel? Then it is stored in place of that (memplan.c): in lines that are at hand already, and in
 * no more memory. */
static bool takes_place_at(Sched *s, Node *n, const Node *t, Node *const *uses, int steps)
{
    bool found = false;
    for (uint32_t j = 0;
         j < t->nsrc && (op_is_alu(t->op) || t->op == OP_RESHAPE) && steps && !found; j++) {
        Node *v = t->src[j];
        found = is_computed(s, v)
                    ? takes_place_at(s, n, v, uses, steps - 1)
                    : info_of(s, v)->stored && v->dtype == n->dtype &&
                          node_bytes(v) == node_bytes(n) && dies_by(s, v, n, uses, steps);
    }
    return found;
}

bool takes_place(Sched *s, Node *n, Node *const *uses)
{
    return takes_place_at(s, n, n, uses, MAX_STEPS);
}

/* ---- in sums of products --------------------------------------------------------------------- */

/* A term of a sum of products: there are as many as the sum has operations, and no machine keeps
 * them. */
bool is_term(Sched *s, Node *n, Node *const *uses)
{
    const Info *i = info_of(s, n);
    Node *reader = i->nuse == 1 ? uses[i->iuse] : NULL;
    while (reader && reader->op == OP_ADD && (i = info_of(s, reader))->nuse == 1)
        reader = uses[i->iuse];
    return n->op == OP_MUL && reader && reader->op == OP_REDUCE &&
           reduce_monoid(reader) == INGOT_REDUCE_ADD;
}

/* Do sums of products multiply it, as it is or widened, again and again? */
static bool multiplied_below(Sched *s, Node *n, Node *const *uses, int moves, bool again)
{
    const Info *i = info_of(s, n);
    for (int u = 0; u < i->nuse; u++) {
        Node *t = uses[i->iuse + u];
        bool wider = t->op == OP_CAST && dtype_info[t->dtype].bytes >= dtype_info[n->dtype].bytes;
        if ((is_move(t) || wider) && moves && !info_of(s, t)->root &&
            multiplied_below(s, t, uses, moves - 1, again || readings(n, t) > 1))
            return true;
        if (t->op == OP_MUL && again && is_term(s, t, uses))
            return true;
    }
    return false;
}

bool is_multiplied(Sched *s, Node *n, Node *const *uses)
{
    return multiplied_below(s, n, uses, MAX_MOVES, false);
}
