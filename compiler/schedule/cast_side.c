/* cast_side.c - on which side of a cast a value is stored, and what of constants is computed in
 * every run: bytes against operations.
 *
 * What lies in memory is as narrow as it can be where bytes are dear (Target.byte) or where narrow
 * numbers are what is multiplied (bytes of a dot, halves of a matrix unit).  Elsewhere a byte
 * counts as long as it takes to fetch it. */
#include <math.h>

#include "fusion.h"
#include "tc.h"

/* A dot multiplies bytes: integers that are widened, for its sum, are best as narrow as they are.
 * So are the floats that a matrix unit multiplies. */
bool is_for_dot(const Sched *s, Node *wide)
{
    if (dtype_is_int(wide->dtype))
        return s->target->machine.dot;
    for (; is_move(wide); wide = wide->src[0])
        ;
    return tc_widens(&s->target->machine, wide);
}

/* Is what a cast widens stored before the cast? Where bytes are dear, or are what is multiplied. */
bool keeps_narrow(const Sched *s, Node *wide)
{
    return s->target->machine.byte > 0 || is_for_dot(s, wide);
}

/* Is it worth so many operations whenever an element is read, to have it in memory as this one and
 * not as that? A byte less has not to be fetched, and may be worth something by itself. */
bool narrow_pays(const Sched *s, Node *narrow, Node *wide, int cost)
{
    const Target *t = s->target;
    double saved = dtype_info[wide->dtype].bytes - dtype_info[narrow->dtype].bytes;
    return is_for_dot(s, wide) || cost / t->machine.rate[UNIT_VECTOR] <=
                                      saved * (cost_bytes(1, INFINITY, t) + t->machine.byte);
}

/* What n is made of by casts and little arithmetic with numbers, where that has fewer bytes: the
 * narrow side. */
Node *narrow_side(Sched *s, Node *n)
{
    Node *best = n, *wide = n;
    for (int cost = 0; node_bytes(n) >= node_bytes(wide) || narrow_pays(s, n, wide, cost);) {
        if (node_bytes(n) < node_bytes(best))
            best = n;
        Info *i = info_of(s, n);
        bool number = (n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL) && uniform(n->src[1]);
        bool same = n->op == OP_RESHAPE || n->op == OP_PERMUTE || n->op == OP_FLIP;
        if (i->stored || is_leaf(s, n) || (n->op != OP_CAST && !number && !same) || i->root)
            break;
        cost += op_info[n->op].cost;
        n = n->src[0];
    }
    return best;
}

/* Nothing but a stored value of fewer bytes, widened where it is read. */
bool is_widened(Sched *s, Node *n, int cost)
{
    Node *narrow = n;
    if (!n->nsrc || (n->op != OP_CAST && !info_of(s, n->src[0])->widened))
        return false;
    while (narrow->nsrc && (info_of(s, narrow)->widened || narrow == n))
        narrow = narrow->src[0];
    if (!narrow_pays(s, narrow, n, cost))
        return false;
    Info *below = info_of(s, n->src[0]);
    bool number = (n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL) && uniform(n->src[1]);
    if (n->op == OP_CAST && dtype_info[n->dtype].bytes > dtype_info[n->src[0]->dtype].bytes)
        return below->widened || (below->stored && keeps_narrow(s, n)) || is_leaf(s, n->src[0]) ||
               (is_move(n->src[0]) && !below->cost && below->loads == 1);
    return (is_move(n) || number || n->op == OP_CAST) && below->widened;
}

/* Is a constant that grows when it is folded read faster than it is computed, each time? Beside
 * others it has half of a level of memory. */
bool fold_pays(Sched *s, Node *n, double bytes, double leaves)
{
    const Target *t = s->target;
    if (is_for_dot(s, n))
        return false;
    RegionWork r = region_of(s, n);
    return cost_bytes(bytes, 2 * bytes, t) + (bytes - leaves) * t->machine.byte <
           cost_bytes(leaves, 2 * leaves, t) + cost_ops(&r, t);
}

/* Is a constant made of fewer bytes computed where it is read, rather than in every run
 * beforehand? */
bool unpacking_pays(Sched *s, Node *n, double bytes, double leaves)
{
    const Target *t = s->target;
    double saved = (bytes - leaves) / node_elements(n);
    return info_of(s, n)->cost / t->machine.rate[UNIT_VECTOR] <=
           saved * (cost_bytes(1, INFINITY, t) + t->machine.byte);
}
