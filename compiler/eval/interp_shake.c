/* interp_shake.c - rounding at random: floats that are computed are off by up to a bit, drawn anew
 * each time. How far results move over several such runs is how far other orders of the same sums
 * may be from them (J. Vignes, A stochastic arithmetic for reliable scientific computation, 1993).
 *
 * Whole numbers stay: they are exact in any order, or were rounded on purpose. */
#include <math.h>

#include "element.h"

static double between(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*seed >> 11) * 0x1p-52 - 1;
}

void interp_shake(Interp *ip, ingot_dtype t, int64_t n, void *v)
{
    if (!ip->shake || !dtype_is_float(t))
        return;
    const double bit = 2 * element_eps(t);
    char *at = v;
    for (int64_t i = 0; i < n; i++, at += elem_bytes(t)) {
        double x;
        alu_cast(INGOT_F64, t, 0, 1, &x, at);
        if (x == rint(x) || !isfinite(x))
            continue;
        x *= 1 + bit * between(&ip->shake);
        alu_cast(t, INGOT_F64, 0, 1, at, &x);
    }
}

void interp_shake_alu(Interp *ip, Node *n, int64_t lanes, void *v)
{
    switch (n->op) {
    case OP_NEG:
    case OP_ABS:
    case OP_MAX:
    case OP_MIN:
    case OP_WHERE:
    case OP_CAST:
    case OP_BITCAST: break; /* what they give is exact */
    default:
        if (!n->numbers)
            interp_shake(ip, (ingot_dtype)n->dtype, lanes, v);
    }
}
