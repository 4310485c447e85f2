/* split_copies.c - the accesses of what fills a matrix unit's places for later iterations:
 * addresses as a base and the way from there, gates as bits.
 *
 *     a1[m*128 + (ahead % 3)*128 + (ahead / 3)*3584 - 3712]
 *         -> (a1 + m*128)[(ahead % 3)*128 + (ahead / 3)*3584 - 3712]
 *
 * The base is what does not move in the loops that fill a place, or that it is filled ahead of: it
 * is known before them, and in straight-line code what is left is a number in the instruction.
 *
 *     1 <= y + ahead / 3 && y + ahead / 3 < 29 && ...
 *         -> bits & 1 << ahead,   bits = (1 <= y ? 511 : 504) & (y < 27 ? 511 : 63) & ...
 *
 * A copy for a later iteration is behind a gate that differs with the place in a window, of which
 * there are few: what each is, is computed before the loop.  Most conditions hold for all places
 * but those at an edge, so there are few of those, too.
 *
 * Where an item multiplies more than once its registers are all in use: there it stays as it is.
 * Requires flat addresses. */
#include "kernel.h"
#include "passes.h"

enum { BITS = 32, CONDITIONS = 8 };

/* Does it move with a loop that fills, or that is filled for ahead? */
static bool in_fill(const Tile *t, Node *e)
{
    bool moves = false;
    for (int i = 0; i < t->nfill && !moves; i++)
        moves = depends_on(e, t->fill[i].range);
    return moves;
}

Node *copy_base(const Tile *t, const Node *load)
{
    if (!copies_apart(t->tc) || !t->ahead || t->box || load->op != OP_LOAD ||
        load->src[0]->op != OP_BUFFER)
        return NULL;
    const Node *at = load->src[2];
    return at->op == OP_ADD && at->src[0]->op != OP_CONST && !in_fill(t, at->src[0]) &&
                   in_fill(t, at->src[1])
               ? at->src[0]
               : NULL;
}

/* The terms of a sum: those that move in fills, and numbers, behind the others. */
static void part_sum(Context *c, const Tile *t, Node *at, Node **base, Node **way)
{
    if (at->op == OP_ADD) {
        part_sum(c, t, at->src[0], base, way);
        part_sum(c, t, at->src[1], base, way);
        return;
    }
    Node **to = at->op == OP_CONST || in_fill(t, at) ? way : base;
    *to = idx_add(c, *to, at);
}

static Node *split_base(Context *c, const Tile *t, Node *load)
{
    Node *part[2] = {idx(c, 0), idx(c, 0)};
    part_sum(c, t, load->src[2], &part[0], &part[1]);
    if (part[0]->op == OP_CONST || part[1]->op == OP_CONST)
        return load;
    return node_with_source(c, load, 2,
                            node_make(c, OP_ADD, INGOT_INDEX, (Arg){0}, 2, part, 0, NULL));
}

/* Conditions, each with the iterations in which the gate needs it. */
typedef struct {
    Node *condition[CONDITIONS];
    uint32_t needed[CONDITIONS], never;
    int n;
    bool many; /* more than are kept */
} Gates;

static void need(Gates *g, Node *condition, uint32_t bits)
{
    int i = 0;
    if (condition->op == OP_CONST) {
        g->never |= condition->arg.i ? 0 : bits;
        return;
    }
    if (condition->op == OP_AND) {
        need(g, condition->src[0], bits);
        need(g, condition->src[1], bits);
        return;
    }
    while (i < g->n && g->condition[i] != condition)
        i++;
    if (i == CONDITIONS) {
        g->many = true;
        return;
    }
    if (i == g->n)
        g->condition[g->n++] = condition;
    g->needed[i] |= bits;
}

/* The gate as a bit for each of the n iterations that it is filled for, or NULL. */
static Node *gate_bits(Context *c, const Tile *t, Node *gate, int64_t n)
{
    const uint32_t all = (uint32_t)((UINT64_C(1) << n) - 1);
    Gates g = {0};
    for (int i = 0; i < n && !g.many; i++) {
        Node *at = idx(c, i);
        need(&g, substitute(c, gate, 1, (Node *const *)&t->ahead, &at), UINT32_C(1) << i);
    }
    Node *some = node_const_i(c, INGOT_U32, all & ~g.never), *bits = NULL;
    for (int i = 0; i < g.n; i++) {
        Node *without = node_const_i(c, INGOT_U32, all & ~g.never & ~g.needed[i]);
        Node *own = node_where(c, g.condition[i], some, without);
        bits = bits ? node_alu2(c, OP_AND, INGOT_U32, bits, own) : own;
    }
    return g.many ? NULL : bits;
}

/* How many of its conditions move with the iteration that is filled for? */
static int moving_conditions(const Tile *t, Node *gate)
{
    return gate->op == OP_AND
               ? moving_conditions(t, gate->src[0]) + moving_conditions(t, gate->src[1])
               : depends_on(gate, t->ahead);
}

static Node *test_bit(Context *c, const Tile *t, Node *load)
{
    int64_t n;
    Node *gate = load->src[1], *bits;
    if (moving_conditions(t, gate) < 2 || !idx_value(t->ahead->src[0], &n) || n > BITS)
        return load; /* one comparison is no more than a bit's test */
    for (int i = 0; i < t->nfill; i++)
        if (t->fill[i].range != t->ahead && depends_on(gate, t->fill[i].range))
            return load;
    if (!(bits = gate_bits(c, t, gate, n)))
        return load;
    Node *bit = node_alu2(c, OP_SHL, INGOT_U32, node_const_i(c, INGOT_U32, 1),
                          node_cast(c, t->ahead, INGOT_U32));
    return node_with_source(c, load, 1,
                            node_cast(c, node_alu2(c, OP_AND, INGOT_U32, bits, bit), INGOT_BOOL));
}

static Node *split_copy(Context *c, const Tile *t, Node *x)
{
    const bool copied =
        x->op == OP_LOAD && x->nsrc == 3 && x->src[0]->op == OP_BUFFER && in_fill(t, x->src[2]);
    return copied ? split_base(c, t, test_bit(c, t, x)) : x;
}

bool split_copies(Linear *l, const Kernel *k)
{
    const Tile *t = l->tile;
    return copies_apart(t->tc) && t->ahead && !t->box && change_accesses(l, k->c, split_copy);
}
