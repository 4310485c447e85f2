/* cpu_join.c - axes of results that are one.
 *
 * What is stored as its reader has it, in blocks of 32 say, has an axis of blocks and one inside of
 * them, though the product that makes it reads rows which know nothing of these:
 *
 *     y[q, b, c] = sum over j of p[q, j] * x[j, 32 * b + c]        c = 0..31
 *
 * Its lanes would be along c, 32 at most, and each b would read another piece of every row of x, a
 * second time through memory.  Where one axis goes on in all that is read and stored where another
 * ends, both become one (JOIN), and whole rows are read in one piece. */
#include "cpu.h"

static bool goes_on(const Kernel *k, Node *const *access, int n, Node *outer, Node *inner)
{
    for (int i = 0; i < n; i++) {
        int64_t far, near;
        if (!access_stride(k, access[i], outer, &far) || !access_stride(k, access[i], inner, &near))
            return false;
        if (far != sat_mul(near, range_extent(inner)))
            return false;
    }
    return true;
}

/* The axis that goes on where inner ends, along which results lie side by side; or NULL. */
static Node *outer_part(const Kernel *k, const View *v, Node *inner)
{
    int64_t stride;
    if (range_extent(inner) < 2 || !access_stride(k, v->store[0], inner, &stride) || stride != 1)
        return NULL;
    for (int i = 0; i < v->nrange; i++) {
        Node *outer = v->range[i];
        if (outer != inner && range_extent(outer) > 1 &&
            goes_on(k, v->store, v->nstore, outer, inner) &&
            goes_on(k, v->load, v->nload, outer, inner))
            return outer;
    }
    return NULL;
}

static bool join_one(Nest *n)
{
    const View v = kernel_view(n->k);
    for (int i = 0; i < v.nrange; i++) {
        Node *outer = outer_part(n->k, &v, v.range[i]);
        if (!outer)
            continue;
        const char *names = nest_and_name(n, "", nest_root(n, outer));
        return nest_opt(n, OPT_JOIN, nest_and_name(n, names, nest_root(n, v.range[i])), 0);
    }
    return false;
}

Nest *joined_results(const Nest *n)
{
    Nest *joined = nest_clone(n);
    int joins = 0;
    while (join_one(joined))
        joins++;
    if (joins)
        return joined;
    nest_free(joined);
    return NULL;
}
