/* layout.c - how logical coordinates become a storage offset.  A layout is a list of
 * constructors applied in order to the coordinate tuple and its dims; what remains is dense
 * row-major.  Strides follow from dims, so only the outermost dim may be a run-time integer for
 * them to be constants. */
#include <string.h>

#include "compiler.h"

Node *layout_offset(Context *c, const Layout *l, int rank, Node *const *dims, Node *const *coords)
{
    Node *d[INGOT_MAX_RANK * 2], *x[INGOT_MAX_RANK * 2];
    for (int i = 0; i < rank; i++) {
        d[i] = dims[i];
        x[i] = coords[i];
    }
    for (int i = 0; i < l->n; i++) {
        const LayoutOp *op = &l->op[i];
        switch (op->kind) {
        case LAYOUT_PERMUTE: {
            Node *dd[INGOT_MAX_RANK * 2], *xx[INGOT_MAX_RANK * 2];
            for (int j = 0; j < rank; j++) {
                dd[j] = d[op->perm.axis[j]];
                xx[j] = x[op->perm.axis[j]];
            }
            for (int j = 0; j < rank; j++) {
                d[j] = dd[j];
                x[j] = xx[j];
            }
            break;
        }
        case LAYOUT_SPLIT: /* axis -> (axis / a, axis % a) */
            for (int j = rank; j > op->axis + 1; j--) {
                d[j] = d[j - 1];
                x[j] = x[j - 1];
            }
            x[op->axis + 1] = idx_mod(c, x[op->axis], idx(c, op->a));
            d[op->axis + 1] = idx(c, op->a);
            x[op->axis] = idx_div(c, x[op->axis], idx(c, op->a));
            d[op->axis] = idx_div(c, idx_add(c, d[op->axis], idx(c, op->a - 1)), idx(c, op->a));
            rank++;
            break;
        case LAYOUT_PAD: /* a elements before, b after: a halo */
            x[op->axis] = idx_add(c, x[op->axis], idx(c, op->a));
            d[op->axis] = idx_add(c, d[op->axis], idx(c, op->a + op->b));
            break;
        }
    }
    Node *offset = idx(c, 0);
    for (int i = 0; i < rank; i++)
        offset = idx_add(c, idx_mul(c, offset, d[i]), x[i]);
    return offset;
}

bool layout_equal(const Layout *a, const Layout *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++) {
        const LayoutOp *x = &a->op[i], *y = &b->op[i];
        if (x->kind != y->kind || x->axis != y->axis || x->a != y->a || x->b != y->b ||
            x->fill != y->fill || x->perm.n != y->perm.n)
            return false;
        for (int j = 0; j < x->perm.n; j++)
            if (x->perm.axis[j] != y->perm.axis[j])
                return false;
    }
    return true;
}

void layout_halo(const Layout *l, int axis, int64_t *lo, int64_t *hi)
{
    *lo = *hi = 0;
    for (int i = 0; i < l->n && l->op[i].kind == LAYOUT_PAD; i++) /* pads come first */
        if (l->op[i].axis == axis) {
            *lo = l->op[i].a;
            *hi = l->op[i].b;
        }
}

int64_t layout_fill(const Layout *l)
{
    return l->n && l->op[0].kind == LAYOUT_PAD ? l->op[0].fill : 0;
}

void layout_put_last(Layout *l, int rank, int axis)
{
    if (l->n == sizeof l->op / sizeof *l->op)
        return;
    LayoutOp *op = &l->op[l->n++];
    *op = (LayoutOp){.kind = LAYOUT_PERMUTE, .perm = {.n = rank}};
    int n = 0;
    for (int i = 0; i < rank; i++)
        if (i != axis)
            op->perm.axis[n++] = (int8_t)i;
    op->perm.axis[n] = (int8_t)axis;
}

/* The storage dims that constant or upper-bound dims become. */
static int storage_dims(const Layout *l, int rank, const int64_t *dims, int64_t *d)
{
    for (int i = 0; i < rank; i++)
        d[i] = dims[i];
    for (int i = 0; i < l->n; i++) {
        const LayoutOp *op = &l->op[i];
        int64_t old[INGOT_MAX_RANK * 2];
        for (int j = 0; j < rank; j++)
            old[j] = d[j];
        if (op->kind == LAYOUT_PERMUTE) {
            for (int j = 0; j < rank; j++)
                d[j] = old[op->perm.axis[j]];
        } else if (op->kind == LAYOUT_SPLIT) {
            for (int j = rank; j > op->axis + 1; j--)
                d[j] = old[j - 1];
            d[op->axis] = (old[op->axis] + op->a - 1) / op->a;
            d[op->axis + 1] = op->a;
            rank++;
        } else {
            d[op->axis] += op->a + op->b;
        }
    }
    return rank;
}

int64_t layout_elements(const Layout *l, int rank, Node *const *dims)
{
    int64_t bound[INGOT_MAX_RANK * 2], d[INGOT_MAX_RANK * 2], n = 1;
    for (int i = 0; i < rank; i++)
        bound[i] = dims[i]->hi < 0 ? 0 : dims[i]->hi;
    rank = storage_dims(l, rank, bound, d);
    for (int i = 0; i < rank; i++)
        n = sat_mul(n, d[i]);
    return n;
}

/* Where coordinate x of one axis lies when all others are 0; d: storage dims. */
static int64_t axis_offset(const Layout *l, int rank, const int64_t *d, int axis, int64_t value)
{
    int64_t x[INGOT_MAX_RANK * 2] = {0}, y[INGOT_MAX_RANK * 2];
    x[axis] = value;
    for (int i = 0; i < l->n; i++) {
        const LayoutOp *op = &l->op[i];
        if (op->kind == LAYOUT_PERMUTE) {
            for (int j = 0; j < rank; j++)
                y[j] = x[op->perm.axis[j]];
            for (int j = 0; j < rank; j++)
                x[j] = y[j];
        } else if (op->kind == LAYOUT_SPLIT) {
            for (int j = rank; j > op->axis + 1; j--)
                x[j] = x[j - 1];
            x[op->axis + 1] = x[op->axis] % op->a;
            x[op->axis] /= op->a;
            rank++;
        } else {
            x[op->axis] += op->a;
        }
    }
    int64_t offset = 0;
    for (int i = 0; i < rank; i++)
        offset = offset * d[i] + x[i];
    return offset;
}

/* Every constructor acts on one axis alone, so an element's offset is a sum with a term for each
 * coordinate; the terms are tabled. */
void layout_pack(const Layout *l, int rank, const int64_t *dims, size_t element, const void *src,
                 void *dst, void (*read)(const void *up_to, void *user), void *user)
{
    enum { PIECE = 1 << 20 };
    int64_t d[INGOT_MAX_RANK * 2], n = 1, total = 1;
    int64_t *term[INGOT_MAX_RANK + 1], at[INGOT_MAX_RANK + 1] = {0};
    int storage = storage_dims(l, rank, dims, d);
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    for (int i = 0; i < storage; i++)
        total *= d[i];
    memset(dst, 0, (size_t)total * element);
    if (!n)
        return;
    Arena *a = arena_new();
    int64_t origin = axis_offset(l, rank, d, 0, 0), one = 0, inner = rank ? dims[rank - 1] : 1;
    term[0] = &one; /* rank 0 */
    for (int i = 0; i < rank; i++) {
        term[i] = NEWN(a, int64_t, dims[i]);
        for (int64_t x = 0; x < dims[i]; x++)
            term[i][x] = axis_offset(l, rank, d, i, x) - origin;
    }
    const int64_t *last = term[rank ? rank - 1 : 0];
    const unsigned char *from = src, *told = src;
    for (int64_t row = 0; row < n / inner; row++) {
        int64_t base = origin;
        for (int i = 0; i < rank - 1; i++)
            base += term[i][at[i]];
        for (int64_t x = 0; x < inner; x++, from += element)
            memcpy((unsigned char *)dst + (size_t)(base + last[x]) * element, from, element);
        for (int i = rank - 1; i-- > 0;) {
            if (++at[i] < dims[i])
                break;
            at[i] = 0;
        }
        if (read && from - told >= PIECE) {
            read(from, user);
            told = from;
        }
    }
    arena_free(a);
}

bool layout_find(const Layout *l, int rank, const int64_t *dims, int64_t offset, int64_t *coords)
{
    int64_t d[INGOT_MAX_RANK * 2], n = 1, total = 1, found = 0;
    int storage = storage_dims(l, rank, dims, d);
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    for (int i = 0; i < storage; i++)
        total *= d[i];
    Arena *a = arena_new();
    int64_t *number = NEWN(a, int64_t, n + 1), *stored = NEWN(a, int64_t, total + 1);
    for (int64_t i = 0; i < n; i++)
        number[i] = i + 1;
    layout_pack(l, rank, dims, sizeof *number, number, stored, NULL, NULL);
    if (offset >= 0 && offset < total)
        found = stored[offset];
    arena_free(a);
    for (int i = 0; i < rank && found; i++) {
        n /= dims[i];
        coords[i] = (found - 1) / n % dims[i];
    }
    return found != 0;
}
