/* byte_table.c - a byte that is made of another one by much arithmetic is read from a table.
 *
 *     q(d(x) * q'(erf(d(x) / 1.41)) ..)  ->  table[x + 128]         d: x less a zero point, times a
 *                                                                  scale; q: back to bytes
 *
 * Networks with QuantizeLinear and DequantizeLinear around each operator have such functions of one
 * byte: GELU takes 110 operations of lanes, three of them divisions. The table is what the graph
 * makes of all 256 bytes, bit by bit. */
#include <string.h>

#include "eval.h"
#include "rewrite.h"

enum { VALUES = UINT8_MAX + 1 };
/* Of an element: a table takes about as long as so many exponentials. */
enum { EXPONENTIALS = 3 };

typedef struct {
    Rewrite *r;
    Node *byte; /* all is made of it; NULL: not yet known */
    int cost, left;
} OfByte;

static bool is_byte_type(const Node *n)
{
    return n->dtype == INGOT_I8 || n->dtype == INGOT_U8;
}

static bool is_table(const Node *n)
{
    return n->op == OP_GATHER && n->src[0]->op == OP_DATA && n->src[0]->rank == 1;
}

/* Is n made of one byte alone, and of numbers?  A byte that is made of several things is that one.
 */
static bool is_of_byte(OfByte *q, Node *n)
{
    if (uniform(n))
        return true;
    if (q->left <= 0)
        return false;
    q->left--;
    bool good = is_table(n) || (op_is_alu(n->op) && n->op != OP_CUSTOM);
    Node *byte = q->byte;
    const int cost = q->cost;
    for (uint32_t i = is_table(n); i < n->nsrc && good; i++)
        good = is_of_byte(q, n->src[i]);
    if (good) {
        q->cost += is_table(n) ? 0 : op_info[n->op].cost;
        return true;
    }
    q->byte = byte;
    q->cost = cost;
    if (!is_byte_type(n) || (q->byte && q->byte != n))
        return false;
    q->byte = n;
    return true;
}

/* n of other bytes, one after the other. */
static Node *made_again_of(OfByte *q, Node *n, Node *bytes)
{
    Context *c = q->r->c;
    Node *src[4], *number = uniform(n);
    if (n == q->byte)
        return bytes;
    if (number)
        return ingot_expand(c, number, 1, bytes->shape);
    if (is_table(n)) {
        src[0] = made_again_of(q, n->src[1], bytes);
        return src[0] ? ingot_gather(c, n->src[0], src) : NULL;
    }
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (n->nsrc > 4 || !(src[i] = made_again_of(q, n->src[i], bytes)))
            return NULL;
    return node_make(c, (Op)n->op, (ingot_dtype)n->dtype, n->arg, (int)n->nsrc, src, 1,
                     bytes->shape);
}

Node *byte_table(Rewrite *r, Node *n)
{
    enum { NODES = 8 * VALUES };
    Context *c = r->c;
    OfByte q = {.r = r, .left = NODES};
    if (!r->tables || !is_byte_type(n) || n->src[0]->dtype != INGOT_F32 ||
        !is_of_byte(&q, n->src[0]) || !q.byte || q.cost < EXPONENTIALS * op_info[OP_EXP].cost)
        return NULL;
    const bool with_sign = q.byte->dtype == INGOT_I8;
    const int64_t dims[] = {VALUES};
    uint8_t *all = NEWN(c->arena, uint8_t, VALUES), *made = NEWN(c->arena, uint8_t, VALUES);
    for (int i = 0; i < VALUES; i++)
        all[i] = (uint8_t)(with_sign ? i - VALUES / 2 : i);
    Node *y = made_again_of(&q, n, ingot_data(c, NULL, (ingot_dtype)q.byte->dtype, 1, dims, all));
    if (!y || ingot_is_poison(y))
        return NULL;
    Interp *ip = interp_new(c);
    int64_t got_dims[INGOT_MAX_RANK];
    const void *got = interp_eval(ip, y, got_dims);
    if (got)
        memcpy(made, got, VALUES);
    interp_free(ip);
    if (!got)
        return NULL;
    Node *table = ingot_data(c, NULL, (ingot_dtype)n->dtype, 1, dims, made);
    Node *at = ingot_cast(c, ingot_contiguous(c, q.byte), INGOT_I32);
    if (with_sign)
        at = ingot_add(
            c, at, uniform_make(c, node_const_i(c, INGOT_I32, VALUES / 2), at->rank, at->shape));
    return ingot_gather(c, table, &at);
}
