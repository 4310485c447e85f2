/* vector_sums.c - what kernels of a vector times weights have beside their sum, on GPUs.
 *
 * A decoder's token is one vector, and memory decides how long a product of it takes: each kernel
 * less is a begin and an end less.  All items of a group walk along the vector once, and with it
 * they can have what a kernel of its own would make before, or beside:
 *
 *     h = x / rms(x) * gain              y[i] = 1 / rms(x) * sum of x[k] gain[k] w[i,k]
 *     y = w h                       ->   rms(x) by the items of each group
 *
 *     y = silu(gate h) * (up h)     ->   both sums in one kernel
 *
 * Of digits what decides is how often caches are asked for the vector, and what is computed of its
 * elements: such sums have one loop, in which an element is there for all of them.
 *
 * The rule asks what gpu_vector.c asks (cost/stream.c): weights so large that memory decides, rows
 * that the items of a group have whole. */
#include "fusion.h"

enum { FEW = 6 };

/* Weights that are streamed: of so many columns, this many bytes. */
static bool streams(const Machine *m, double bytes, int64_t columns, double results)
{
    const double element = bytes / ((double)columns * results);
    return stream_is_long(m, bytes, element < 1) && columns % stream_turn(m, element) == 0;
}

/* A constant, or the caller's, as it lies. */
static bool is_matrix(Sched *s, const Node *n)
{
    while (!info_of(s, (Node *)(uintptr_t)n)->constant && n->op != OP_INPUT &&
           (n->op == OP_CAST || (is_move(n) && n->op != OP_GATHER)))
        n = n->src[0];
    return n->op == OP_INPUT || info_of(s, (Node *)(uintptr_t)n)->constant;
}

/* Has one of these the same data?  Blocks are read as scales and as digits. */
static bool is_again(Node *const *order, int count, const Node *n)
{
    for (int i = 0; i < count; i++)
        if (order[i]->op == OP_DATA &&
            ((const Data *)order[i]->arg.ptr)->bytes == ((const Data *)n->arg.ptr)->bytes)
            return true;
    return false;
}

/* Bytes of the data that it is made of, as they lie in the file. */
static double data_bytes(Sched *s, Node *n)
{
    enum { WIDEST = 4 };
    double bytes = 0;
    int count;
    Node **order = graph_toposort(s->scratch, 1, &n, &count);
    for (int i = 0; i < count; i++)
        if (order[i]->op == OP_INPUT || (order[i]->op == OP_DATA && !is_again(order, i, order[i])))
            bytes += node_bytes(order[i]);
    const double most = WIDEST * node_elements(before_moves(s, n));
    return bytes < most ? bytes : most;
}

/* The vector of so many elements that is repeated for each result; NULL: it is none. */
static Node *repeated_vector(Node *x, double columns)
{
    Node *n = x;
    while (op_arranges(n->op) && node_elements(n) > columns)
        n = n->src[0];
    return n != x && !(node_elements(n) < columns) && !(node_elements(n) > columns) ? n : NULL;
}

/* The vector that the sum multiplies weights by, if it is such a sum; or NULL. Gives the bytes of
 * the weights. */
static Node *multiplied_by(Sched *s, Node *sum, double *bytes)
{
    const Machine *m = &s->target->machine;
    if (!s->target->gpu || !s->target->unrolls || !m->units || sum->op != OP_REDUCE ||
        sum->nsrc != 1 || reduce_monoid(sum) != INGOT_REDUCE_ADD || sum->dtype != INGOT_F32 ||
        sum->src[0]->op != OP_MUL)
        return NULL;
    const Node *term = sum->src[0];
    for (int i = 0; i < term->rank; i++)
        if (!idx_value(term->shape[i], NULL))
            return NULL;
    const double results = node_elements(sum), columns = node_elements(term) / results;
    for (int i = 0; i < 2; i++) {
        Node *x = repeated_vector(term->src[i], columns), *w = term->src[1 - i];
        *bytes = x && is_matrix(s, w) ? data_bytes(s, w) : 0;
        if (*bytes > 0 && streams(m, *bytes, (int64_t)columns, results))
            return x;
    }
    return NULL;
}

static Node *vector_of(Sched *s, Node *sum)
{
    double bytes;
    return multiplied_by(s, sum, &bytes);
}

/* Of each element of such weights less than a byte. */
static bool are_digits(Node *sum, double bytes)
{
    return bytes < node_elements(sum->src[0]);
}

bool walk_alike(Sched *s, Node *sum, Node *other)
{
    double bytes, others;
    Node *x = multiplied_by(s, sum, &bytes);
    if (!x || !are_digits(sum, bytes) || multiplied_by(s, other, &others) != x ||
        !are_digits(other, others) || reduce_axes(sum) != reduce_axes(other) ||
        sum->src[0]->rank != other->src[0]->rank)
        return false;
    for (int i = 0; i < sum->src[0]->rank; i++)
        if (reduce_axes(sum) >> i & 1 && sum->src[0]->shape[i] != other->src[0]->shape[i])
            return false;
    return true;
}

/* Do such sums multiply it, behind what moves its elements, and does nothing else read it?  Said of
 * them: factors leave them. */
static bool only_multiplied(Sched *s, Node *n, Node *const *uses, int moves, bool say)
{
    const Info *i = info_of(s, n);
    for (int u = 0; u < i->nuse; u++) {
        Node *t = uses[i->iuse + u];
        if (is_move(t) && moves && !info_of(s, t)->root) {
            if (!only_multiplied(s, t, uses, moves - 1, say))
                return false;
            continue;
        }
        const Info *term = info_of(s, t);
        Node *sum = t->op == OP_MUL && term->nuse == 1 && !term->root ? uses[term->iuse] : NULL;
        if (!sum || !vector_of(s, sum))
            return false;
        if (say)
            info_of(s, sum)->sums_rows = true;
    }
    return i->nuse > 0 && !i->root;
}

/* Of a row of x, known in one piece, that times sums of it: x / rms(x) * gain; or what moves that,
 * or multiplies weights by it. */
bool is_vector_of_sums(Sched *s, Node *n, Node *const *uses)
{
    const Info *term = info_of(s, n);
    if (n->op == OP_MUL && term->nuse == 1 && !term->root && vector_of(s, uses[term->iuse]))
        return info_of(s, uses[term->iuse])->sums_rows;
    while (is_move(n) && n->op != OP_GATHER && is_computed(s, n->src[0]))
        n = n->src[0];
    const Info *i = info_of(s, n);
    double row = 1;
    if (!s->target->gpu || !i->has_reduce || !i->rows || i->rows == ~0u || !op_is_alu(n->op) ||
        n->dtype != INGOT_F32)
        return false;
    for (int d = 0; d < n->rank; d++)
        row *= i->rows >> d & 1 ? (double)n->shape[d]->hi : 1;
    if (node_elements(n) > row || !only_multiplied(s, n, uses, FEW, false))
        return false;
    return only_multiplied(s, n, uses, FEW, true);
}

/* Is it looked up, of what a run says which, and computed from what is found there? */
static bool is_found(Sched *s, const Node *n, int steps)
{
    bool found = n->op == OP_GATHER && !info_of(s, n->src[1])->constant;
    for (uint32_t j = 0; j < n->nsrc && steps && !found; j++)
        found = n->src[j]->dtype != INGOT_INDEX && is_computed(s, n->src[j]) &&
                is_found(s, n->src[j], steps - 1);
    return found;
}

/* Do such sums multiply weights by it, or by what is made of it element by element? */
static bool is_multiplied_by(Sched *s, Node *n, double elements, Node *const *uses, int steps)
{
    const Info *i = info_of(s, n);
    bool is = false;
    for (int u = 0; u < i->nuse && !is; u++) {
        Node *t = uses[i->iuse + u];
        const Info *term = info_of(s, t);
        is =
            (t->op == OP_MUL && term->nuse == 1 && !term->root && vector_of(s, uses[term->iuse])) ||
            (steps &&
             (is_move(t) || (op_is_alu(t->op) && !(node_elements(t) < elements) &&
                             !(node_elements(t) > elements))) &&
             is_multiplied_by(s, t, elements, uses, steps - 1));
    }
    return is;
}

bool is_found_vector(Sched *s, Node *n, Node *const *uses)
{
    const Info *i = info_of(s, n);
    return s->target->gpu && i->nuse > 1 && i->cost && !i->has_reduce && n->dtype == INGOT_F32 &&
           is_found(s, n, FEW) && is_multiplied_by(s, n, node_elements(n), uses, 2 * FEW);
}

/* It has the elements of its source in another order. */
static bool turns(const Node *n)
{
    return n->op == OP_RESHAPE || n->op == OP_PERMUTE || n->op == OP_FLIP;
}

/* The sum of a vector times weights that n is made of, element by element, and no other; NULL:
 * there is none, or more. */
static Node *sum_of(Sched *s, Node *n, int steps)
{
    Node *sum = NULL;
    if (n->op == OP_REDUCE)
        return vector_of(s, n) ? n : NULL;
    for (uint32_t j = 0; j < n->nsrc; j++) {
        Node *x = n->src[j];
        if (x->dtype == INGOT_INDEX || !is_computed(s, x) || !info_of(s, x)->has_reduce)
            continue;
        Node *one = steps && (op_is_alu(n->op) || turns(n)) ? sum_of(s, x, steps - 1) : NULL;
        if (!one || (sum && sum != one))
            return NULL;
        sum = one;
    }
    return sum;
}

/* Is it flipped along a short axis alone? */
static bool flips_pairs(const Node *n)
{
    enum { MOST = 4 };
    bool is = n->op == OP_FLIP;
    for (int i = 0; i < n->rank && is; i++)
        is = !(n->arg.i >> i & 1) || n->shape[i]->hi <= MOST;
    return is;
}

/* Is all that reads n, behind what turns its elements, made of it element by element, and some of
 * it of its neighbours? */
static bool only_turned(Sched *s, Node *n, Node *const *uses, int moves, bool *flipped)
{
    const Info *i = info_of(s, n);
    for (int u = 0; u < i->nuse; u++) {
        Node *t = uses[i->iuse + u];
        *flipped |= flips_pairs(t);
        if (info_of(s, t)->root || !(turns(t) ? moves && (t->op != OP_FLIP || flips_pairs(t)) &&
                                                    only_turned(s, t, uses, moves - 1, flipped)
                                              : op_is_alu(t->op)))
            return false;
    }
    return i->nuse > 0 && !i->root;
}

bool is_turned_sum(Sched *s, Node *n, Node *const *uses)
{
    bool flipped = false;
    return info_of(s, n)->has_reduce && (sum_of(s, n, 2 * FEW) || is_sum_for_boxes(s, n)) &&
           only_turned(s, n, uses, FEW, &flipped) && flipped;
}

bool are_vector_sums(Sched *s, Node *n, const Node *reader)
{
    Node *sum = op_is_alu(reader->op) ? sum_of(s, n, 2 * FEW) : NULL;
    if (!sum || reader->nsrc != 2 || node_elements(sum) != node_elements(reader))
        return false;
    for (uint32_t j = 0; j < reader->nsrc; j++) {
        Node *x = reader->src[j], *other = x == n ? NULL : sum_of(s, x, 2 * FEW);
        if (other && vector_of(s, other) == vector_of(s, sum) &&
            node_elements(other) == node_elements(sum))
            return true;
    }
    return false;
}
