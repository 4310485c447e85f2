/* unpack.c - what is unpacked from the bits of one value, digit by digit, is one expression of the
 * digit's number.
 *
 *     stack of (x & 15), (x >> 4 & 15)  ->  x >> 4 i & 15, at i = 0, 1
 *
 * Weights of 4 bits come as bytes that the graph takes apart so, since most formats have no smaller
 * type.  A stack is stored, or folded into a byte an element; the expression leaves in memory what
 * the file has, and is computed where the weights are read. */
#include "builder.h"
#include "rewrite.h"

typedef struct {
    Node *x; /* unsigned */
    int64_t shift, mask;
} Digit;

static bool number_of(Node *n, int64_t *value)
{
    Node *k = uniform(n);
    *value = k && k->op == OP_CONST ? k->arg.i : -1;
    return *value >= 0;
}

/* part = reshape(x >> shift & mask), which may lack either. */
static bool digit_of(Node *part, Digit *d)
{
    Node *n = part;
    int bits = 8 * dtype_info[n->dtype].bytes;
    if (dtype_info[n->dtype].kind != 'u' || n->dtype == INGOT_U4 || n->dtype == INGOT_U2 ||
        dtype_info[n->dtype].bytes > (int)sizeof(uint32_t))
        return false;
    while (n->op == OP_RESHAPE)
        n = n->src[0];
    int64_t all = (INT64_C(1) << bits) - 1;
    *d = (Digit){n, 0, all};
    if (n->op == OP_AND && number_of(n->src[1], &d->mask))
        n = n->src[0];
    if (n->op == OP_SHR && number_of(n->src[1], &d->shift))
        n = n->src[0];
    if (d->shift >= bits)
        return false;
    d->x = n;
    d->mask &= all >> d->shift;
    return true;
}

Node *digits(Rewrite *r, Node *n)
{
    Context *c = r->c;
    Digit first = {0}, d;
    int64_t step = 0;
    int axis = (int)n->arg.i;
    if (n->nsrc < 2)
        return NULL;
    for (uint32_t i = 0; i < n->nsrc; i++) {
        Node *part = n->src[i];
        if (!idx_is(part->shape[axis], 1) || !digit_of(part, &d))
            return NULL;
        if (!i)
            first = d;
        if (i == 1)
            step = d.shift - first.shift;
        if (d.x != first.x || d.mask != first.mask || d.shift != first.shift + step * (int64_t)i)
            return NULL;
    }
    if (!step)
        return NULL;
    Node *x = ingot_reshape(c, first.x, n->rank, n->src[0]->shape);
    Node *number = ingot_iota(c, n->rank, n->shape, axis);
    Node *shift = ingot_add_c(c, ingot_mul_c(c, number, (double)step), (double)first.shift);
    x = ingot_shr(c, ingot_expand(c, x, n->rank, n->shape), ingot_cast(c, shift, n->dtype));
    x = ingot_and(c, x, ingot_like(c, x, (double)first.mask));
    return ingot_is_poison(x) ? NULL : x;
}
