/* layout.c - how logical coordinates become a storage offset.  A layout is a list of
 * constructors applied in order to the coordinate tuple and its dims; what remains is dense
 * row-major.  Strides follow from dims, so only the outermost dim may be a run-time integer for
 * them to be constants.
 *
 * CUT is a SPLIT into blocks of which the last one is only as long as what is left.  It comes first, what is inside of its blocks stays behind them, and what lies
 * in one follows at once on the one before: an element of block o has strides as if its axis had min(n, size - o n) elements.
 *
 *     f32[10,K] cut(0,4) permute(0,2,1)     [K][4] [K][4] [K][2] */
#include <string.h>

#include "compiler.h"

/* Where the axis inside of the blocks of a CUT is, once op has been done too; -1: there is none. */
static int follow_cut(const LayoutOp *op, int at)
{
    if (op->kind == LAYOUT_CUT)
        return op->axis + 1;
    if (op->kind == LAYOUT_SPLIT)
        return at + (at > op->axis);
    for (int i = 0; op->kind == LAYOUT_PERMUTE && i < op->perm.n && at >= 0; i++)
        if (op->perm.axis[i] == at)
            return i;
    return at;
}

Node *layout_offset(Context *c, const Layout *l, int rank, Node *const *dims, Node *const *coords)
{
    Node *d[INGOT_MAX_RANK * 2], *x[INGOT_MAX_RANK * 2], *size = NULL;
    int cut = -1;
    for (int i = 0; i < rank; i++) {
        d[i] = dims[i];
        x[i] = coords[i];
    }
    for (int i = 0; i < l->n; i++) {
        const LayoutOp *op = &l->op[i];
        cut = follow_cut(op, cut);
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
        case LAYOUT_CUT:
            size = d[op->axis];
            /* fall through */
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
    Node *offset = idx(c, 0), *block = idx(c, 1);
    for (int i = 1; i < rank && cut >= 0; i++)
        block = idx_mul(c, block, d[i]);
    if (cut >= 0) /* as long as this block is */
        d[cut] = idx_min(c, d[cut], idx_sub(c, size, idx_mul(c, x[0], d[cut])));
    for (int i = cut >= 0; i < rank; i++)
        offset = idx_add(c, idx_mul(c, offset, d[i]), x[i]);
    return cut >= 0 ? idx_add(c, idx_mul(c, x[0], block), offset) : offset;
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

/* The storage that constant or upper-bound dims become. */
typedef struct {
    int rank, cut;
    int64_t d[INGOT_MAX_RANK * 2];
    int64_t block, size; /* of a CUT: elements of a whole block, and of the axis */
} Storage;

static Storage storage_of(const Layout *l, int rank, const int64_t *dims)
{
    Storage s = {.rank = rank, .cut = -1, .block = 1};
    memcpy(s.d, dims, (size_t)rank * sizeof *dims);
    for (int i = 0; i < l->n; i++) {
        const LayoutOp *op = &l->op[i];
        int64_t old[INGOT_MAX_RANK * 2];
        memcpy(old, s.d, sizeof old);
        s.cut = follow_cut(op, s.cut);
        switch (op->kind) {
        case LAYOUT_PERMUTE:
            for (int j = 0; j < s.rank; j++)
                s.d[j] = old[op->perm.axis[j]];
            break;
        case LAYOUT_CUT:
            s.size = old[op->axis];
            /* fall through */
        case LAYOUT_SPLIT:
            for (int j = s.rank; j > op->axis + 1; j--)
                s.d[j] = old[j - 1];
            s.d[op->axis] = (old[op->axis] + op->a - 1) / op->a;
            s.d[op->axis + 1] = op->a;
            s.rank++;
            break;
        case LAYOUT_PAD: s.d[op->axis] += op->a + op->b; break;
        }
    }
    for (int i = 1; i < s.rank; i++)
        s.block = sat_mul(s.block, s.d[i]);
    return s;
}

static int64_t storage_elements(const Storage *s)
{
    if (s->cut >= 0)
        return sat_mul(s->block / s->d[s->cut], s->size);
    return s->rank ? sat_mul(s->block, s->d[0]) : 1;
}

int64_t layout_elements(const Layout *l, int rank, Node *const *dims)
{
    int64_t bound[INGOT_MAX_RANK * 2];
    for (int i = 0; i < rank; i++)
        bound[i] = dims[i]->hi < 0 ? 0 : dims[i]->hi;
    const Storage s = storage_of(l, rank, bound);
    return storage_elements(&s);
}

/* Where coordinate x of one axis lies when all others are 0; last: in the last block of a CUT. */
static int64_t axis_offset(const Layout *l, int rank, const Storage *s, bool last, int axis,
                           int64_t value)
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
        } else if (op->kind == LAYOUT_SPLIT || op->kind == LAYOUT_CUT) {
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
    for (int i = 1; i < rank; i++)
        offset = offset * (last && i == s->cut ? s->size % s->d[i] : s->d[i]) + x[i];
    return offset + (rank ? x[0] * s->block : 0);
}

/* Every constructor acts on one axis alone, so an element's offset is a sum with a term for each
 * coordinate; the terms are tabled, those in the last block of a CUT too. */
void layout_pack(const Layout *l, int rank, const int64_t *dims, size_t element, const void *src,
                 void *dst, void (*read)(const void *up_to, void *user), void *user)
{
    enum { PIECE = 1 << 20 };
    const Storage s = storage_of(l, rank, dims);
    int64_t n = 1, begin = 0, one = 0, inner = rank ? dims[rank - 1] : 1;
    int64_t *term[2][INGOT_MAX_RANK + 1], at[INGOT_MAX_RANK + 1] = {0}, origin[2];
    const int cut = l->n && l->op[0].kind == LAYOUT_CUT ? l->op[0].axis : -1;
    if (cut >= 0)
        begin = dims[cut] / l->op[0].a * l->op[0].a;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    memset(dst, 0, (size_t)storage_elements(&s) * element);
    if (!n)
        return;
    Arena *a = arena_new();
    for (int v = 0; v < 2; v++) {
        origin[v] = axis_offset(l, rank, &s, v, 0, 0);
        term[v][0] = &one; /* rank 0 */
        for (int i = 0; i < rank; i++) {
            term[v][i] = NEWN(a, int64_t, dims[i]);
            for (int64_t x = 0; x < dims[i]; x++)
                term[v][i][x] = axis_offset(l, rank, &s, v, i, x) - origin[v];
        }
    }
    const int last = rank ? rank - 1 : 0;
    const unsigned char *from = src, *told = src;
    for (int64_t row = 0; row < n / inner; row++) {
        int64_t base[2] = {origin[0], origin[1]};
        for (int v = 0; v < 2; v++)
            for (int i = 0; i < rank - 1; i++)
                base[v] += term[v][i][at[i]];
        for (int64_t x = 0; x < inner; x++, from += element) {
            const int v = cut >= 0 && (cut == last ? x : at[cut]) >= begin;
            memcpy((unsigned char *)dst + (size_t)(base[v] + term[v][last][x]) * element, from,
                   element);
        }
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
    const Storage s = storage_of(l, rank, dims);
    int64_t n = 1, total = storage_elements(&s), found = 0;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
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
