/* attention.c - rows of sums that stay in their kernel: attention in blocks.
 *
 *     s = sum over k of q[i,k] k[j,k]          a row of them for each i
 *     e = exp(s - max over j of s)
 *     y = sum over j of (e / sum over j of e) v[j,d]
 *
 * s is as large as both of its operands are long.  But whoever computes y[i,d], for all d, needs a
 * row of s only, which lies in a place near by, as does the row of e.  What is asked for is the
 * form, not the operators: a sum (s) that is read along its last axis by reduces and by elementwise
 * operations on rows, of which comes one operand of a sum of products over the same axis (y).
 * Nothing between the two is stored: s and what the products read have a place for their rows
 * (STAGE, rangeify.c). */
#include "builder.h"
#include "fusion.h"
#include "rows_again.h"
#include "tc.h"

enum { MAX_MEMBERS = 48 };

typedef enum {
    ROW,   /* an element for each of the row, as s has them */
    ONE,   /* one value for the row */
    MOVED, /* the row's elements, at other coordinates */
} RowKind;

typedef struct {
    Node *n;
    RowKind kind;
    int axis; /* the one that the row lies along */
    int rows; /* that along which rows follow each other, in the order of s */
} RowMember;

typedef struct {
    Sched *s;
    Node *const *order, *const *uses;
    int norder;
    RowMember member[MAX_MEMBERS];
    int nmember;
    Node *sum;     /* y */
    int rows_axis; /* of y: along it rows follow each other; -1: not known */
    bool by_blocks;
    bool again; /* a unit reads operands in places: rows may be made again elsewhere */
} AttentionRows;

static const RowMember *member_of(const AttentionRows *r, const Node *n)
{
    for (int i = 0; i < r->nmember; i++)
        if (r->member[i].n == n)
            return &r->member[i];
    return NULL;
}

static bool is_sum_over(const Node *t, int axis)
{
    int64_t size;
    unsigned axes = reduce_axes(t);
    if (t->op != OP_REDUCE || reduce_monoid(t) != INGOT_REDUCE_ADD || !(axes >> axis & 1))
        return false;
    for (int i = 0; i < t->src[0]->rank; i++)
        if (i != axis && (axes >> i & 1) && !(idx_value(t->src[0]->shape[i], &size) && size == 1))
            return false;
    return true;
}

/* What a reader makes of the row: false if that is nothing that a kernel of rows can hold. */
static bool take(AttentionRows *r, Node *t)
{
    RowMember m = {.n = t, .axis = -1};
    int last = r->member[0].axis;
    bool alu = op_is_alu(t->op) && t->op != OP_CUSTOM, found = false;
    if (info_of(r->s, t)->root && t != r->sum)
        return false;
    for (uint32_t j = 0; j < t->nsrc; j++) {
        const RowMember *x = member_of(r, t->src[j]);
        if (!x)
            continue;
        if (found && (x->kind != m.kind || x->axis != m.axis))
            return false;
        m.kind = x->kind;
        m.axis = x->axis;
        m.rows = x->rows;
        found = true;
    }
    if (t->op == OP_REDUCE && m.kind == ROW) {
        m.kind = ONE;
        if (reduce_axes(t) != 1u << last)
            return false;
    } else if (t->op == OP_REDUCE && m.kind == MOVED) {
        if (r->sum || below_casts(t->src[0])->op != OP_MUL || !is_sum_over(t, m.axis))
            return false;
        r->sum = t;
        r->rows_axis = m.rows;
        return true;
    } else if (t->op == OP_EXPAND && m.kind == ONE) {
        for (int i = 0; i < t->rank; i++)
            if (i != last && t->shape[i] != t->src[0]->shape[i])
                return false;
        m.kind = ROW;
        m.rows = last - 1;
    } else if (op_arranges(t->op) && m.kind != ONE) {
        m.axis = axis_moved(t, m.axis);
        m.rows = m.rows < 0 ? -1 : axis_moved(t, m.rows);
        m.kind = MOVED;
        if (m.axis < 0)
            return false;
    } else if (!alu && !(r->again && t->op == OP_KEEP && m.kind == ROW)) {
        return false;
    }
    if (r->nmember == MAX_MEMBERS)
        return false;
    r->member[r->nmember++] = m;
    return true;
}

static bool all_inside(const AttentionRows *r)
{
    for (int i = 0; i < r->nmember; i++) {
        const Info *f = info_of(r->s, r->member[i].n);
        for (int u = 0; u < f->nuse; u++) {
            const Node *t = r->uses[f->iuse + u];
            if (t != r->sum && !member_of(r, t))
                return false;
        }
    }
    return r->sum != NULL;
}

/* The factors of the products that change along the row: what is the same for all of it leaves the
 * sum (rangeify.c), of rows in blocks also where the operand has been rounded with it. */
static Node *core_of(const AttentionRows *r, Node *n)
{
    for (;;) {
        int one = -1;
        while (r->by_blocks && (n->op == OP_CAST || n->op == OP_KEEP))
            n = n->src[0];
        if (n->op != OP_MUL && n->op != OP_DIV)
            break;
        for (int j = 0; j < 2; j++) {
            const Node *x = n->src[j];
            const RowMember *m = x->op == OP_EXPAND ? member_of(r, x->src[0]) : NULL;
            if (m && m->kind == ONE)
                one = j;
        }
        if (one < 0 || (n->op == OP_DIV && one == 0))
            break;
        n = n->src[1 - one];
    }
    return n;
}

/* The row that the products read: in front of what moves it. */
static Node *operand_of(const AttentionRows *r)
{
    Node *n = r->sum->src[0];
    for (;;) {
        const RowMember *m = member_of(r, n);
        if (m && m->kind == ROW)
            return n;
        uint32_t j = 0;
        while (j + 1 < n->nsrc && !member_of(r, n->src[j]))
            j++;
        n = n->src[j];
    }
}

enum { FEW_ROWS = 4, BLOCK_ROWS = 8 };

/* The sum of products below, which only elementwise operations and movement stand behind. */
static Node *products_below(const AttentionRows *r)
{
    Node *n = r->member[0].n;
    while (n->op != OP_REDUCE) {
        uint32_t j = 0;
        while (j < n->nsrc &&
               !(info_of(r->s, n->src[j])->has_reduce && is_computed(r->s, n->src[j])))
            j++;
        if (j == n->nsrc)
            return NULL;
        n = n->src[j];
    }
    const bool product = below_casts(n->src[0])->op == OP_MUL;
    return product && reduce_monoid(n) == INGOT_REDUCE_ADD ? n : NULL;
}

static double most_along(Node *dim)
{
    return dim->hi < 1 ? 1 : (double)dim->hi;
}

/* The rows of a block, in both of their places, stay near. What all rows of a matrix share, keys *
 * (terms + columns) elements, comes again for each block: that may take as long as the
 * multiply-adds, and what it takes to store the rows and to read them. */
static bool fits(AttentionRows *r, Node *products)
{
    const Target *t = r->s->target;
    Node *s = r->member[0].n, *y = r->sum;
    int axis = r->member[0].axis;
    double bytes = dtype_info[s->dtype].bytes, terms = 1, columns = 1;
    for (int i = 0; i < s->rank; i++)
        if (!idx_value(s->shape[i], NULL))
            return false;
    for (int i = 0; i < products->src[0]->rank; i++)
        terms *= reduce_axes(products) >> i & 1 ? most_along(products->src[0]->shape[i]) : 1;
    for (int i = 0; i < y->rank; i++)
        if (i != r->rows_axis && !idx_is(y->shape[i], 1))
            columns = most_along(y->shape[i]);
    double keys = most_along(s->shape[axis]), rows = most_along(s->shape[axis - 1]);
    double shared = keys * (terms + columns) * bytes,
           again = cost_bytes(rows / BLOCK_ROWS * shared, shared, t),
           tiles = 2 * rows * keys * (terms + columns) / t->machine.rate[UNIT_TILE],
           stored = cost_stored(s, t) + cost_bytes(node_bytes(s), node_bytes(s), t);
    return t->machine.lanes && rows >= FEW_ROWS && keys >= t->machine.lanes &&
           (int64_t)columns % 8 == 0 && 2 * BLOCK_ROWS * keys * bytes <= t->machine.far / 2 &&
           again <= tiles + stored * rows * keys * bytes / node_bytes(s);
}

bool is_rounded_operand(Sched *s, Node *x, Node *const *uses)
{
    return x->op == OP_CAST && dtype_info[x->dtype].bytes < dtype_info[x->src[0]->dtype].bytes &&
           dtype_is_float(x->dtype) && is_multiplied(s, x, uses);
}

/* What an operand is below casts and movement. */
static const Node *base_of(Sched *s, const Node *x, Node *const *uses)
{
    for (;;) {
        if (s->target->gpu && is_rounded_operand(s, (Node *)(uintptr_t)x, uses))
            return x;
        const bool moves = is_move(x) && x->op != OP_GATHER && x->op != OP_PAD;
        if ((!moves && x->op != OP_CAST) || !is_computed(s, (Node *)(uintptr_t)x))
            return x;
        x = x->src[0];
    }
}

/* It is read as it lies, and is of this type. What is behind the scores in order (values beside
 * those of the tokens before) has not been decided on yet, but for what is stored in any case. */
static bool is_read(const AttentionRows *r, const Node *x, ingot_dtype type)
{
    Node *base = (Node *)(uintptr_t)base_of(r->s, x, r->uses);
    return base->dtype == type && !member_of(r, base) &&
           (!is_computed(r->s, base) || must_store(r->s, base, r->uses) ||
            is_rounded_operand(r->s, base, r->uses));
}

/* Rows of each matrix, and what lies along a row (keys), its terms, and the columns of the
 * results. */
typedef struct {
    int64_t rows, keys, terms, columns;
} RowSizes;

/* Rows and keys that only the run counts are as many as there may be. False: not all of the others
 * are known. */
static bool row_sizes(const AttentionRows *r, const Node *products, RowSizes *z)
{
    const Node *s = r->member[0].n, *factors = products->src[0];
    const int axis = r->member[0].axis;
    int64_t size;
    *z = (RowSizes){0};
    if (axis < 1)
        return false;
    z->keys = s->shape[axis]->hi;
    z->rows = s->shape[axis - 1]->hi;
    for (int i = 0; i < factors->rank; i++) {
        if (!(reduce_axes(products) >> i & 1))
            continue;
        if (!idx_value(factors->shape[i], &size) || (z->terms > 1 && size > 1))
            return false;
        z->terms = size > z->terms ? size : z->terms;
    }
    for (int i = 0; i < r->sum->rank; i++) {
        if (!idx_value(r->sum->shape[i], &size))
            size = 0; /* matrices that only the run counts, or so many columns */
        z->columns = size != 1 ? size : z->columns;
    }
    return true;
}

/* The greatest of a row, for all of it, or another number where that is minus infinity. */
static bool is_greatest(const AttentionRows *r, const Node *x)
{
    if (x->op != OP_EXPAND)
        return false;
    x = x->src[0];
    if (x->op == OP_WHERE)
        x = x->src[2];
    if (x->op == OP_BITCAST) /* what no gradient passes */
        x = x->src[0];
    const RowMember *m = member_of(r, x);
    return m && m->kind == ONE && x->op == OP_REDUCE && reduce_monoid(x) == INGOT_REDUCE_MAX;
}

/* Is it made of scores alone, or of what no row has been reduced to? */
static bool is_of_scores(const AttentionRows *r, const Node *x, int *left)
{
    const RowMember *m = member_of(r, x);
    if (!m || x == r->member[0].n)
        return true;
    if (m->kind != ROW || --*left < 0)
        return false;
    bool good = true;
    for (uint32_t i = 0; i < x->nsrc && good; i++)
        good = is_of_scores(r, x->src[i], left);
    return good;
}

/* e^(s - the greatest s) is what rows that are taken by blocks may sum (row_blocks.c). */
static bool is_exponential(const AttentionRows *r, const Node *x)
{
    int left = MAX_NODES;
    x = below_casts((Node *)(uintptr_t)x);
    return x->op == OP_EXP && x->src[0]->op == OP_SUB && is_greatest(r, x->src[0]->src[1]) &&
           is_of_scores(r, x->src[0]->src[0], &left);
}

/* Rows that are longer than registers hold can be taken by blocks. */
static bool goes_by_blocks(AttentionRows *r)
{
    r->by_blocks = true;
    bool good = is_exponential(r, core_of(r, operand_of(r)));
    for (int i = 0; i < r->nmember && good; i++) {
        const Node *x = r->member[i].n;
        int left = MAX_NODES;
        if (x->op == OP_REDUCE)
            good = reduce_monoid(x) == INGOT_REDUCE_MAX ? is_of_scores(r, x->src[0], &left)
                                                        : is_exponential(r, x->src[0]);
    }
    r->by_blocks = good;
    return good;
}

/* Enough of them, for the registers of lanes and the memory of a group.  A warp has rows of
 * MOST_PART; of longer ones a part, or a block after the other. */
static bool sizes_fit(AttentionRows *r, const RowSizes *z, int64_t bytes, const Target *t)
{
    enum { LEAST = 16, PAD = 2 * TC_PIECE, PARTS = 2 };
    enum { MOST_PART = TC_LONG_ROW / PARTS };
    const int64_t line = (z->terms > z->columns ? z->terms : z->columns) * bytes + PAD;
    const int64_t joined = PARTS * LEAST * (z->columns + LEAST) * dtype_info[INGOT_F32].bytes;
    const int64_t part = z->keys < MOST_PART ? z->keys : MOST_PART;
    if (z->rows < LEAST || z->keys < LEAST || z->terms < LEAST || z->columns < LEAST ||
        z->columns % 8)
        return false;
    return (z->keys <= TC_LONG_ROW && part / 2 + z->columns / 2 <= TC_MOST_ROW &&
            (2 * (z->keys + PARTS * LEAST) + LEAST) * line + joined <= t->machine.shared) ||
           (LEAST + z->columns <= TC_MOST_ROW && goes_by_blocks(r));
}

/* How many rows read the same keys, beside those that the scores have side by side: queries of
 * several heads. 0: it is not known. */
static int64_t rows_of_heads(const Node *products)
{
    const Node *product = below_casts(products->src[0]);
    unsigned along = 0, repeated = 0;
    int64_t size, rows = 1;
    for (int i = 0; i < product->rank; i++)
        along |= idx_value(product->shape[i], &size) ? 0 : 1u << i;
    for (int j = 0; j < 2; j++) {
        const Node *x = below_casts(product->src[j]);
        const unsigned axes = x->op == OP_EXPAND ? expanded_axes(x) : 0;
        if (!(axes & along))
            repeated = axes;
    }
    for (int i = 0; i < product->rank && along; i++)
        if (repeated >> i & 1)
            rows = idx_value(product->shape[i], &size) ? rows * size : 0;
    return along ? rows : 0;
}

/* A few rows of keys as many as a run says: groups that meet have parts of them, and their warps
 * (gpu_attention.c). Of fewer keys than all of these take at once, rows that are stored are no
 * slower. */
static bool few_fit(AttentionRows *r, const Node *products, const RowSizes *z, int64_t bytes,
                    const Target *t)
{
    enum { LEAST = 16, STAGES = 2, PAD = TC_PIECE };
    const int64_t warps = t->machine.quarters, block = 2 * LEAST;
    const int64_t line = (z->terms + z->columns) * bytes + 2 * PAD,
                  sums = LEAST * (z->columns + PAD) * dtype_info[INGOT_F32].bytes,
                  keys = STAGES * warps * block + LEAST;
    const int64_t rows = z->rows == 1 ? rows_of_heads(products) : 0;
    const Node *s = r->member[0].n;
    int64_t size, heads = 1; /* of queries, each with a row */
    for (int i = 0; i < s->rank - 1; i++)
        heads = idx_value(s->shape[i], &size) ? sat_mul(heads, size) : INT64_MAX;
    return t->machine.cluster > 1 && 2 * heads <= rows * t->machine.close &&
           t->machine.subgroup >= t->machine.warp && rows > 1 && rows <= LEAST &&
           z->keys > t->machine.cluster * warps * block &&
           keys * line + (warps + 3) * sums <= t->machine.shared && z->terms >= LEAST &&
           z->columns >= LEAST && z->columns % 8 == 0 && LEAST + z->columns <= TC_MOST_ROW &&
           goes_by_blocks(r);
}

static bool has_lanes_unit(const Target *t, ingot_dtype type)
{
    for (const Tc *u = NULL; (u = tc_next(&t->machine, u));)
        if (u->lanes == t->machine.warp && u->a == type)
            return true;
    return false;
}

/* What is reduced along a row, the lanes that have it join: maxima and sums of f32. */
static bool lanes_join(const AttentionRows *r)
{
    for (int m = 0; m < r->nmember; m++) {
        const Node *x = r->member[m].n;
        const int monoid = x->op == OP_REDUCE ? reduce_monoid(x) : INGOT_REDUCE_MAX;
        if ((monoid != INGOT_REDUCE_MAX && monoid != INGOT_REDUCE_ADD) ||
            (x->op == OP_REDUCE && x->dtype != INGOT_F32))
            return false;
    }
    return true;
}

/* On a GPU the rows stay in the registers of lanes that multiply fragments together (tc_rows.c):
 * whatever is made of rows of sums, and of the results.  Operands of both products are read as they
 * lie, but for the row, which is rounded to their type. */
static bool fits_registers(AttentionRows *r, Node *products)
{
    Sched *s = r->s;
    RowSizes z;
    Node *const *inner = below_casts(products->src[0])->src, *const *outer =
                                                                 below_casts(r->sum->src[0])->src;
    const ingot_dtype type = (ingot_dtype)base_of(s, inner[0], r->uses)->dtype;
    const int bytes = dtype_info[type].bytes;
    if (!row_sizes(r, products, &z) ||
        (!sizes_fit(r, &z, bytes, s->target) && !few_fit(r, products, &z, bytes, s->target)) ||
        !has_lanes_unit(s->target, type) || !lanes_join(r))
        return false;
    const Node *row = operand_of(r);
    while (row->op == OP_CAST && dtype_info[row->dtype].bytes > bytes)
        row = row->src[0];
    return row->dtype == type && is_read(r, inner[0], type) && is_read(r, inner[1], type) &&
           is_read(r, outer[0], type) != is_read(r, outer[1], type);
}

static bool is_of_rows(const void *of, const Node *n)
{
    const AttentionRows *r = of;
    return n == r->sum || member_of(r, n);
}

/* Whatever else reads rows makes them again, by a unit of the same type whose operands lie in
 * places; its kernels take rows, and columns, block after block. */
static bool rows_remade(AttentionRows *r, const Node *products)
{
    RowSizes z;
    RowAgain row[MAX_MEMBERS];
    const Node *operand = operand_of(r);
    int n = 0;
    for (int m = 0; m < r->nmember; m++) {
        const RowMember *x = &r->member[m];
        if (x->kind != ONE)
            row[n++] = (RowAgain){x->n, {x->rows, x->axis}};
        const Info *f = info_of(r->s, x->n);
        for (int u = 0; u < f->nuse && x->kind == ONE; u++)
            if (!is_of_rows(r, r->uses[f->iuse + u]))
                return false;
    }
    return r->again && r->by_blocks && row_sizes(r, products, &z) && z.rows > TC_LONG_ROW &&
           z.keys > TC_LONG_ROW && z.terms <= TC_MOST_SUMS && z.columns <= TC_MOST_SUMS &&
           rows_again(r->s, r->uses, (ingot_dtype)operand->dtype, n, row, is_of_rows, r);
}

/* What rows have one of, and their elements are made of, is stored beside the result. */
static void keep_beside(AttentionRows *r)
{
    for (int m = 0; m < r->nmember; m++) {
        Info *f = info_of(r->s, r->member[m].n);
        f->row_of = r->sum;
        for (int u = 0; u < f->nuse && r->member[m].kind == ONE; u++)
            if (r->uses[f->iuse + u]->op == OP_EXPAND) {
                f->kept = true;
                f->beside = r->sum;
            }
    }
}

bool stage_rows(Sched *s, Node *n, int norder, Node *const *order, Node *const *uses)
{
    Info *i = info_of(s, n);
    AttentionRows r = {.s = s, .order = order, .uses = uses, .norder = norder};
    for (const Tc *u = NULL; s->target->gpu && (u = tc_next(&s->target->machine, u));)
        r.again |= tc_in_place(u);
    if (!s->fuse_rows || !i->has_reduce || i->nuse < 2 || i->rows || i->pending || n->rank < 2 ||
        !dtype_is_float(n->dtype))
        return false;
    r.member[r.nmember++] = (RowMember){n, ROW, n->rank - 1, n->rank - 2};
    for (int at = i->order + 1;
         at < norder && at < i->order + MAX_NODES && !all_inside(&r) && !(r.again && r.sum); at++) {
        bool reads = false;
        for (uint32_t j = 0; j < order[at]->nsrc; j++)
            reads |= member_of(&r, order[at]->src[j]) != NULL;
        if (reads && !take(&r, order[at]))
            return false;
    }
    Node *products = products_below(&r);
    bool reduced = false; /* what stays elementwise is stored for little */
    for (int m = 0; m < r.nmember; m++)
        reduced |= r.member[m].kind == ONE;
    const bool inside = all_inside(&r);
    if (!reduced || !products || !r.sum || !(inside || r.again) ||
        !(s->target->gpu ? fits_registers : fits)(&r, products) ||
        !(inside || rows_remade(&r, products)))
        return false;
    if (!inside)
        keep_beside(&r);
    unsigned rows = 1u << r.member[0].axis;
    Node *core = core_of(&r, operand_of(&r));
    for (int m = 0; m < r.nmember; m++) {
        Info *f = info_of(s, r.member[m].n);
        f->in_rows = true;
        bool again = f->nuse > 1 && op_info[r.member[m].n->op].cost >= COST_FUNCTION;
        if (r.member[m].kind == ROW && (!m || again || r.member[m].n == core))
            f->staged = rows;
    }
    info_of(s, r.sum)->by_blocks = r.by_blocks;
    info_of(s, r.sum)->sums_rows = info_of(s, products)->sums_rows = true;
    return true;
}
