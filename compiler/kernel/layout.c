/* layout.c - how logical coordinates become a storage offset.  A layout is a list of
 * constructors applied in order to the coordinate tuple and its dims; what remains is dense
 * row-major.  Strides follow from dims, so only the outermost dim may be a run-time integer for
 * them to be constants.
 *
 * CUT is a SPLIT into blocks of which the last one is only as long as what is left.  It comes
 * first, and what is inside of its blocks stays behind them.  A block follows at once on the one
 * before: an element of block o has strides as if its axis had min(n, size - o n) elements.
 *
 *     f32[10,K] cut(0,4) permute(0,2,1)     [K][4] [K][4] [K][2]
 *
 * PITCH says how many elements an axis has in memory, of which those behind its own belong to
 * nobody: nothing clears them, and nothing but whole vectors of a row may reach into them.
 *
 *     f16[5,197] pitch(1,200)               [5][197 and 3 more] */
#include <string.h>

#include "target.h"

/* Where an axis is once op has been done too. */
static int follow(const LayoutOp *op, int at)
{
    if (op->kind == LAYOUT_SPLIT || op->kind == LAYOUT_CUT)
        return at + (at > op->axis);
    for (int i = 0; op->kind == LAYOUT_PERMUTE && i < op->perm.n; i++)
        if (op->perm.axis[i] == at)
            return i;
    return at;
}

static LayoutCut cut_of(const Layout *l)
{
    LayoutCut cut = {-1, -1};
    if (!l->n || l->op[0].kind != LAYOUT_CUT)
        return cut;
    cut = (LayoutCut){l->op[0].axis, l->op[0].axis + 1};
    for (int i = 1; i < l->n; i++)
        cut = (LayoutCut){follow(&l->op[i], cut.blocks), follow(&l->op[i], cut.inside)};
    return cut;
}

Node *layout_offset(Context *c, const Layout *l, int rank, Node *const *dims, Node *const *coords)
{
    Node *d[INGOT_MAX_RANK * 2], *x[INGOT_MAX_RANK * 2], *size = NULL;
    const LayoutCut cut = cut_of(l);
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
        case LAYOUT_PITCH: d[op->axis] = idx(c, op->a); break;
        }
    }
    if (!size)
        return idx_flat(c, rank, d, x);
    Node *offset = idx(c, 0), *row = idx(c, 1), *first = offset;
    for (int i = cut.blocks + 1; i < rank; i++)
        row = i == cut.inside ? row : idx_mul(c, row, d[i]);
    for (int i = 0; i < rank; i++) {
        if (i == cut.blocks) { /* from here on as long as this block is */
            Node *begin = idx_mul(c, x[i], d[cut.inside]);
            first = idx_mul(c, row, idx_add(c, idx_mul(c, offset, size), begin));
            d[cut.inside] = idx_min(c, d[cut.inside], idx_sub(c, size, begin));
            offset = idx(c, 0);
        } else {
            offset = idx_add(c, idx_mul(c, offset, d[i]), x[i]);
        }
    }
    return idx_add(c, first, offset);
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

void layout_put_last_by(Layout *l, int rank, int axis, int64_t stride)
{
    if (stride == 1 || l->n + 2 > (int)(sizeof l->op / sizeof *l->op)) {
        layout_put_last(l, rank, axis);
        return;
    }
    l->op[l->n++] = (LayoutOp){.kind = LAYOUT_SPLIT, .axis = (int8_t)axis, .a = stride};
    layout_put_last(l, rank + 1, axis);
}

static int64_t storage_elements(const LayoutStorage *s)
{
    const bool cut = s->cut.blocks >= 0;
    int64_t n = cut ? sat_mul(s->size, s->row) : 1;
    for (int i = 0; i < (cut ? s->cut.blocks : s->rank); i++)
        n = sat_mul(n, s->d[i]);
    return n;
}

LayoutStorage layout_storage_of(const Layout *l, int rank, const int64_t *dims)
{
    LayoutStorage s = {.rank = rank, .cut = cut_of(l), .row = 1};
    memcpy(s.d, dims, (size_t)rank * sizeof *dims);
    for (int i = 0; i < l->n; i++) {
        const LayoutOp *op = &l->op[i];
        int64_t old[INGOT_MAX_RANK * 2];
        memcpy(old, s.d, sizeof old);
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
            s.d[op->axis] = ceil_div(old[op->axis], op->a);
            s.d[op->axis + 1] = op->a;
            s.rank++;
            break;
        case LAYOUT_PAD: s.d[op->axis] += op->a + op->b; break;
        case LAYOUT_PITCH: s.d[op->axis] = op->a; break;
        }
    }
    for (int i = s.cut.blocks + 1; i < s.rank && s.size; i++)
        s.row = i == s.cut.inside ? s.row : sat_mul(s.row, s.d[i]);
    s.all = storage_elements(&s);
    return s;
}

int layout_storage(const Layout *l, int rank, const int64_t *dims, int64_t *storage)
{
    const LayoutStorage s = layout_storage_of(l, rank, dims);
    memcpy(storage, s.d, (size_t)s.rank * sizeof *storage);
    return s.rank;
}

int64_t layout_elements(const Layout *l, int rank, Node *const *dims)
{
    int64_t bound[INGOT_MAX_RANK * 2];
    for (int i = 0; i < rank; i++)
        bound[i] = dims[i]->hi < 0 ? 0 : dims[i]->hi;
    const LayoutStorage s = layout_storage_of(l, rank, bound);
    return s.all;
}

/* Where the element with these coordinates lies; last: in the last block of a CUT. */
static int64_t offset_of(const Layout *l, int rank, const LayoutStorage *s, bool last,
                         const int64_t *coords)
{
    int64_t x[INGOT_MAX_RANK * 2] = {0}, y[INGOT_MAX_RANK * 2];
    memcpy(x, coords, (size_t)rank * sizeof *x);
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
        } else if (op->kind == LAYOUT_PAD) {
            x[op->axis] += op->a;
        }
    }
    int64_t offset = 0, first = 0;
    for (int i = 0; i < rank; i++) {
        if (i == s->cut.blocks) {
            first = s->row * (offset * s->size + x[i] * s->d[s->cut.inside]);
            offset = 0;
        } else {
            offset = offset * (last && i == s->cut.inside ? s->size % s->d[i] : s->d[i]) + x[i];
        }
    }
    return first + offset;
}

/* The same of coordinate `value` of one axis, when all others are 0. */
static int64_t axis_offset(const Layout *l, int rank, const LayoutStorage *s, bool last, int axis,
                           int64_t value)
{
    int64_t coords[INGOT_MAX_RANK + 1] = {0};
    coords[axis] = value;
    return offset_of(l, rank, s, last, coords);
}

static int64_t element_at(const Layout *l, const LayoutStorage *s, int rank, const int64_t *dims,
                          const int64_t *coords)
{
    const LayoutOp *cut = l->n && l->op[0].kind == LAYOUT_CUT ? &l->op[0] : NULL;
    const bool last = cut && coords[cut->axis] >= dims[cut->axis] / cut->a * cut->a;
    return offset_of(l, rank, s, last, coords);
}

int64_t layout_at(const Layout *l, int rank, const int64_t *dims, const int64_t *coords)
{
    const LayoutStorage s = layout_storage_of(l, rank, dims);
    return element_at(l, &s, rank, dims, coords);
}

/* Elements that lie side by side go where their terms say. */
static void put_row(unsigned char *to, const int64_t *term, const unsigned char *from, int64_t n,
                    size_t element)
{
    switch (element) { /* of these sizes a copy is one instruction */
    case 1:
        for (int64_t x = 0; x < n; x++)
            to[term[x]] = from[x];
        return;
    case 2:
        for (int64_t x = 0; x < n; x++)
            memcpy(to + 2 * term[x], from + 2 * x, 2);
        return;
    case 4:
        for (int64_t x = 0; x < n; x++)
            memcpy(to + 4 * term[x], from + 4 * x, 4);
        return;
    default:
        for (int64_t x = 0; x < n; x++)
            memcpy(to + term[x] * (int64_t)element, from + x * (int64_t)element, element);
    }
}

/* Every constructor acts on one axis alone, so an element's offset is a sum with a term for each
 * coordinate; the terms are tabled, those in the last block of a CUT too. */
void layout_pack(const Layout *l, int rank, const int64_t *dims, size_t element, const void *src,
                 void *dst, const void *(*rows)(int64_t first, void *user), void *user)
{
    const LayoutStorage s = layout_storage_of(l, rank, dims);
    int64_t n = 1, begin = 0, one = 0;
    int64_t *term[2][INGOT_MAX_RANK + 1], at[INGOT_MAX_RANK + 1] = {0}, origin[2];
    const int cut = l->n && l->op[0].kind == LAYOUT_CUT ? l->op[0].axis : -1;
    if (cut >= 0)
        begin = dims[cut] / l->op[0].a * l->op[0].a;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    if (s.all != n) /* of borders and padding */
        memset(dst, 0, (size_t)s.all * element);
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
    int last = rank ? rank - 1 : 0;
    while (last > 0 && dims[last] == 1 && last != cut) /* an axis of one element takes no room */
        last--;
    const int64_t inner = rank ? dims[last] : 1;
    const unsigned char *from = src;
    int64_t there = -1; /* along the first axis */
    for (int64_t row = 0; row < n / inner; row++) {
        if (rows && at[0] != there)
            from = rows(there = at[0], user);
        const bool within = cut >= 0 && cut != last && at[cut] >= begin; /* the last block */
        const int64_t whole = cut != last ? inner : begin;
        for (int part = 0; part < 2; part++) { /* of a row that is cut: what is before, and in it */
            const int64_t x = part ? whole : 0, count = part ? inner - whole : whole;
            const int v = part || within;
            int64_t base = origin[v];
            for (int i = 0; i < last && count; i++)
                base += term[v][i][at[i]];
            put_row((unsigned char *)dst + base * (int64_t)element, term[v][last] + x, from, count,
                    element);
            from += count * (int64_t)element;
        }
        for (int i = last; i-- > 0;) {
            if (++at[i] < dims[i])
                break;
            at[i] = 0;
        }
    }
    arena_free(a);
}

/* offset as a number whose digits, of these sizes, are the coordinates of axes from..to - 1. */
static void take_apart(int64_t offset, const int64_t *size, int from, int to, int64_t *x)
{
    for (int i = to; i-- > from; offset /= size[i] ? size[i] : 1)
        x[i] = size[i] ? offset % size[i] : 0;
}

/* Coordinates of storage; of a CUT as offset_of() puts them together. */
static void storage_coords(const LayoutStorage *s, int64_t offset, int64_t *x)
{
    const int blocks = s->cut.blocks, inside = s->cut.inside;
    if (blocks < 0) {
        take_apart(offset, s->d, 0, s->rank, x);
        return;
    }
    LayoutStorage block = *s;
    const int64_t all = s->size * s->row, one = s->d[inside] * s->row, rest = offset % all;
    x[blocks] = rest / one;
    if (x[blocks] == s->size / s->d[inside])
        block.d[inside] = s->size % s->d[inside];
    take_apart(offset / all, s->d, 0, blocks, x);
    take_apart(rest % one, block.d, blocks + 1, s->rank, x);
}

int64_t layout_beside(const LayoutStorage *s, int64_t offset)
{
    const int innermost = s->rank - 1, blocks = s->cut.blocks, inside = s->cut.inside;
    if (innermost < 0)
        return 1;
    int64_t size = s->d[innermost];
    if (blocks >= 0) {
        const int64_t rest = offset % (s->size * s->row), one = s->d[inside] * s->row;
        if (inside == innermost && rest / one == s->size / s->d[inside])
            size = s->size % s->d[inside];
        offset = rest % one;
    }
    return size > 0 ? size - offset % size : 1;
}

bool layout_find(const Layout *l, int rank, const int64_t *dims, int64_t offset, int64_t *coords)
{
    const LayoutStorage s = layout_storage_of(l, rank, dims);
    return layout_find_in(l, &s, rank, dims, offset, coords);
}

bool layout_find_in(const Layout *l, const LayoutStorage *s, int rank, const int64_t *dims,
                    int64_t offset, int64_t *coords)
{
    int64_t x[INGOT_MAX_RANK * 2 + 1] = {0}, y[INGOT_MAX_RANK * 2];
    if (offset < 0 || offset >= s->all)
        return false;
    storage_coords(s, offset, x);
    int n = s->rank;
    for (int i = l->n; i-- > 0;) { /* what the constructors did, undone */
        const LayoutOp *op = &l->op[i];
        if (op->kind == LAYOUT_PERMUTE) {
            for (int j = 0; j < n; j++)
                y[op->perm.axis[j]] = x[j];
            memcpy(x, y, (size_t)n * sizeof *x);
        } else if (op->kind == LAYOUT_SPLIT || op->kind == LAYOUT_CUT) {
            x[op->axis] = x[op->axis] * op->a + x[op->axis + 1];
            n--;
            for (int j = op->axis + 1; j < n; j++)
                x[j] = x[j + 1];
        } else if (op->kind == LAYOUT_PAD) {
            x[op->axis] -= op->a;
        }
    }
    for (int i = 0; i < rank; i++) {
        coords[i] = x[i];
        if (x[i] < 0 || x[i] >= dims[i])
            return false;
    }
    return element_at(l, s, rank, dims, coords) == offset;
}
