/* movement.c - movement nodes as arithmetic on coordinates.
 *
 * A tensor is a function from coordinates to a value; a movement node only rewrites the
 * coordinates.  Given those of its result, movement_coords() gives those of its source, and for
 * PAD the condition under which there is one.
 *
 * RESHAPE cuts both shapes into the smallest groups of dims with equal products, so that a dim
 * that stays keeps its coordinate; only within a group that is really merged or split is there a
 * flat offset, taken apart again by / and %:
 *
 *     [2, 3, 8] -> [6, 2, 4]:   {2,3 | 6}  {8 | 2,4} */
#include "symbolic.h"

/* The coordinates of one group: through the flat offset, innermost dim first. */
static void regroup(Context *c, int nout, Node *const *out_dims, Node *const *coords, int nin,
                    Node *const *in_dims, Node **in_coords)
{
    Node *flat = idx_flat(c, nout, out_dims, coords);
    for (int i = nin - 1; i > 0; i--) {
        in_coords[i] = idx_mod(c, flat, in_dims[i]);
        flat = idx_div(c, flat, in_dims[i]);
    }
    if (nin)
        in_coords[0] = flat;
}

/* The products of the prefixes; false: some dim is known at run time only. */
static bool known_products(int n, Node *const *dims, int64_t *product)
{
    product[0] = 1;
    for (int i = 0; i < n; i++) {
        int64_t size;
        if (!idx_fixed(dims[i], &size))
            return false;
        product[i + 1] = sat_mul(product[i], size);
    }
    return true;
}

/* Lengths of the first group: the shortest prefixes with equal products, else all that is left. */
static void first_group(Context *c, int nin, Node *const *in, int nout, Node *const *out, int *gin,
                        int *gout)
{
    int64_t known_in[INGOT_MAX_RANK + 1], known_out[INGOT_MAX_RANK + 1];
    *gin = nin;
    *gout = nout;
    if (known_products(nin, in, known_in) && known_products(nout, out, known_out)) {
        for (int total = 2; total <= nin + nout; total++)
            for (int i = 1; i < total && i <= nin; i++)
                if (total - i <= nout && known_in[i] == known_out[total - i]) {
                    *gin = i;
                    *gout = total - i;
                    return;
                }
        return;
    }
    Node *pin[INGOT_MAX_RANK + 1], *pout[INGOT_MAX_RANK + 1];
    pin[0] = pout[0] = idx(c, 1);
    for (int i = 0; i < nin; i++)
        pin[i + 1] = idx_mul(c, pin[i], in[i]);
    for (int i = 0; i < nout; i++)
        pout[i + 1] = idx_mul(c, pout[i], out[i]);
    for (int total = 2; total <= nin + nout; total++)
        for (int i = 1; i < total && i <= nin; i++) {
            if (total - i <= nout && idx_provably_equal(c, pin[i], pout[total - i])) {
                *gin = i;
                *gout = total - i;
                return;
            }
        }
}

static void reshape_coords(Context *c, Node *n, Node *const *coords, Node **src_coords)
{
    Node *x = n->src[0], *in[INGOT_MAX_RANK], *out[INGOT_MAX_RANK], *at[INGOT_MAX_RANK];
    Node *result[INGOT_MAX_RANK];
    int nin = 0, nout = 0, axis[INGOT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        src_coords[i] = idx(c, 0);
        if (idx_is(x->shape[i], 1))
            continue;
        axis[nin] = i;
        in[nin++] = x->shape[i];
    }
    for (int i = 0; i < n->rank; i++)
        if (!idx_is(n->shape[i], 1)) {
            out[nout] = n->shape[i];
            at[nout++] = coords[i];
        }
    for (int i = 0, o = 0, gin, gout; i < nin || o < nout; i += gin, o += gout) {
        first_group(c, nin - i, in + i, nout - o, out + o, &gin, &gout);
        if (gin == 1 && gout == 1)
            result[i] = at[o];
        else
            regroup(c, gout, out + o, at + o, gin, in + i, result + i);
    }
    for (int i = 0; i < nin; i++)
        src_coords[axis[i]] = result[i];
}

void movement_coords(Context *c, Node *n, Node *const *coords, Node **src_coords, Node **valid)
{
    Node *x = n->src[0];
    *valid = node_bool(c, true);
    switch (n->op) {
    case OP_RESHAPE: reshape_coords(c, n, coords, src_coords); return;
    case OP_PERMUTE: {
        const Perm *perm = n->arg.ptr;
        for (int i = 0; i < n->rank; i++)
            src_coords[perm->axis[i]] = coords[i];
        return;
    }
    case OP_EXPAND:
        for (int i = 0; i < n->rank; i++)
            src_coords[i] = idx_is(x->shape[i], 1) ? idx(c, 0) : coords[i];
        return;
    case OP_PAD:
        for (int i = 0; i < n->rank; i++) {
            Node *lo = n->src[1 + 2 * i];
            src_coords[i] = idx_sub(c, coords[i], lo);
            *valid = bool_and(c, *valid, idx_le(c, lo, coords[i]));
            *valid = bool_and(c, *valid, idx_lt(c, coords[i], idx_add(c, lo, x->shape[i])));
        }
        return;
    case OP_SHRINK:
        for (int i = 0; i < n->rank; i++)
            src_coords[i] = idx_add(c, coords[i], n->src[1 + 2 * i]);
        return;
    case OP_FLIP:
        for (int i = 0; i < n->rank; i++) {
            Node *last = idx_sub(c, x->shape[i], idx(c, 1));
            src_coords[i] = n->arg.i >> i & 1 ? idx_sub(c, last, coords[i]) : coords[i];
        }
        return;
    case OP_KEEP:
    case OP_COPY:
        for (int i = 0; i < n->rank; i++)
            src_coords[i] = coords[i];
        return;
    default: BUG("%s does not move coordinates", op_info[n->op].text);
    }
}

Node *movement_repeated(Node *n)
{
    while (n->op == OP_EXPAND || n->op == OP_RESHAPE)
        n = n->src[0];
    return n;
}

Node *uniform(Node *n)
{
    n = movement_repeated(n);
    return n->op == OP_CONST ? n : NULL;
}

Node *node_kept(Context *c, Node *x)
{
    return node_make(c, OP_KEEP, (ingot_dtype)x->dtype, (Arg){0}, 1, &x, x->rank, x->shape);
}
