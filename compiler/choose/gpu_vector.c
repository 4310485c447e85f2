/* gpu_vector.c - opts for GPUs of a matrix times a vector: memory decides how long that takes.
 *
 * Each element of the matrix is read once, 16 bytes at a time.  Items of a group run along the
 * terms, so that what neighbours read lies side by side; each has some rows, for which it reads the
 * vector once, and items further down have rows of their own:
 *
 *     f16 [8192, 2048]     16 bytes are 8 terms: 256 items along a row, 8 rows each
 *
 *     SPLIT r0 8  SPLIT i0 8  BIND i0.o grid  BIND r0.o (8 x 32) lane, warp  UPCAST i0.i 8
 *
 * Weights of a few bits lie in blocks of terms, with a scale for each.  What decides there is how
 * often caches are asked for the vector: neighbours read 16 bytes of it side by side, so they have
 * 4 digits each, and more rows.  The scale is multiplied once (factors.c):
 *
 *     u8 [2048, 64, 16], f16 [2048, 64]     of 64 blocks, r0, of 16 bytes, r2, which have 2 digits
 *                                           each, r1: 256 items along a row, 8 rows each
 *
 *     JOIN r0 r2  SPLIT r0_r2 4  SPLIT i0 8  BIND i0.o grid  BIND r0_r2.o (8 x 32) lane, warp
 *     UPCAST i0.i 8  ORDER .. r1 r0_r2.i
 *
 * Parts of neighbours are joined by the hardware where it can, without a place or a wait.
 *
 * A kernel may have several such sums over one vector (a gate and what it opens), and a sum over
 * the vector alone (of squares, for a norm): all of them go along their terms alike.  Those of
 * digits have their axes in common (vector_sums.c): what is done to one's is done to the other's.
 */
#include "choose.h"

enum {
    MOST_COPIES = 4, /* rows of an item */
    LONG_ROWS = 8,   /* the same if a group has them whole: its weights are under way together */
    MOST_SUMS = 4,   /* of a kernel */
    DIGIT_ROWS = 8,  /* the same of digits, of which it takes ... */
    WORD = 4,        /* ... so many bytes of each */
    MOST_TURNS = 4,  /* along a row of digits, which are then under way together */
    WAVES = 3,       /* how often groups of twice as many words fill a GPU at least */
    MANY_WAVES = 8,  /* groups follow each other */
    LEAST_WARPS = 4  /* of a group that has rows of digits */
};

/* Rows are as long as the items of a group, or some times as long; how many of them an item has,
 * for which it reads the vector once. */
typedef struct {
    int64_t along, down, rows;
} Stream;

/* The operands of a sum, and its axes. */
typedef struct {
    Node *matrix; /* the largest that moves with the results; NULL: a sum over the vector alone */
    int scales;   /* that do too, block by block */
    int blocks;   /* the axis of terms that items share */
    Node *digits; /* of several axes the one along which bytes of the matrix lie side by side, or
                   * the innermost one; NULL: there is one axis */
    int turn;     /* the axis of turns, or -1 */
    int items;    /* the axis of the items */
    int like;     /* the number of an earlier sum whose axes it has, or -1 */
    int64_t run;  /* run_of(): nodes are those of the kernel before its axes were joined */
} VectorProduct;

static double bytes_along(const View *v, const Node *load)
{
    double n = dtype_info[load->dtype].bytes;
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++)
        if (depends_on(load, v->dot->src[i]))
            n *= (double)(v->dot->src[i]->hi + 1);
    return n;
}

/* What is made of the sums has several elements for each, and no sum moves along it: the items walk
 * over these, too (turned_sums.c). */
static bool is_made_of_sums(const Nest *n, const View *v, Node *range)
{
    bool moves = n->axis[nest_root(n, range)].extent < 2 || !n->target->machine.units;
    for (int i = 0; i < v->nreduce && !moves; i++)
        moves = depends_on(v->reduce[i], range);
    return !moves;
}

/* How many results there are; 0: it is no matrix times a vector.  They may be of several axes, as
 * where heads of a cache are far apart: all but one are the grid's. */
static int64_t results_of(const Nest *n, const View *v, int results)
{
    Node *const along = n->k->axes[results].range;
    int64_t all = 1;
    for (int i = 0; i < v->nrange; i++) {
        const int64_t extent = n->axis[nest_root(n, v->range[i])].extent;
        bool alike = extent > 0;
        if (v->range[i] != along && is_made_of_sums(n, v, v->range[i]))
            continue;
        for (int k = 0; k < v->nfactor && extent != 1; k++)
            alike &= depends_on(v->factor[k], v->range[i]) == depends_on(v->factor[k], along);
        if (!alike || (extent > 1 && v->range[i] != along && !n->target->machine.units))
            return 0;
        all = sat_mul(all, extent);
    }
    return all;
}

static bool bind_other_results(Nest *n, const View *v, int results)
{
    for (int i = 0; i < v->nrange; i++) {
        const int axis = nest_root(n, v->range[i]);
        if (axis != results && n->axis[axis].extent != 1 && !is_made_of_sums(n, v, v->range[i]) &&
            !nest_opt(n, OPT_BIND, n->axis[axis].name, BOUND_GRID))
            return false;
    }
    return true;
}

/* Are elements of the matrix along the axis side by side? */
static bool lies_along(const Nest *n, const Node *matrix, Node *range)
{
    int64_t stride;
    return matrix && range && access_stride(n->k, matrix, range, &stride) && stride == 1;
}

/* The axis of terms that scales move with; without any the longest one. */
static int blocks_of(const Nest *n, const View *v, Node *along, const Node *matrix)
{
    int blocks = -1;
    for (int k = 0; k < v->nfactor; k++)
        for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++) {
            const int axis = nest_root(n, v->dot->src[i]);
            if (v->factor[k] != matrix && depends_on(v->factor[k], along) &&
                depends_on(v->factor[k], v->dot->src[i]) &&
                (blocks < 0 || n->axis[axis].extent > n->axis[blocks].extent))
                blocks = axis;
        }
    return blocks >= 0 ? blocks : longest(n, v->dot);
}

/* One vector (or several that are multiplied), and one matrix that moves with all terms, with
 * scales that do not. */
static bool find_operands(const Nest *n, const View *v, int results, VectorProduct *p)
{
    Node *const along = n->k->axes[results].range;
    int vectors = 0, axes = 0;
    *p = (VectorProduct){.turn = -1, .like = -1};
    for (int i = 0; i < v->nfactor; i++) {
        Node *f = v->factor[i];
        vectors += !depends_on(f, along);
        if (depends_on(f, along) && (!p->matrix || bytes_along(v, f) > bytes_along(v, p->matrix)))
            p->matrix = f;
    }
    p->scales = v->nfactor - vectors - (p->matrix != NULL);
    p->blocks = blocks_of(n, v, along, p->matrix);
    for (uint32_t i = reduce_ranges(v->dot); i < v->dot->nsrc; i++) {
        const int axis = nest_root(n, v->dot->src[i]);
        if (n->axis[axis].extent == 1)
            continue;
        axes++;
        if (axis != p->blocks && !lies_along(n, p->matrix, p->digits))
            p->digits = v->dot->src[i];
        for (int k = 0; k < v->nfactor && axis != p->blocks; k++) /* scales are of blocks */
            if (v->factor[k] != p->matrix && depends_on(v->factor[k], along) &&
                depends_on(v->factor[k], v->dot->src[i]))
                return false;
    }
    if (axes == 1)
        p->digits = NULL;
    const bool several = vectors > 1 && !n->target->machine.units;
    return vectors && !several && p->blocks >= 0 && (axes == 1) == (p->scales == 0);
}

/* Items that a GPU has at once if each has twice as many words in registers, and as many registers
 * besides. */
static int64_t items_of_twice(const Machine *m)
{
    return (int64_t)m->processors * (m->file / (2 * 2 * DIGIT_ROWS * MOST_TURNS));
}

/* Has a group's row more than half of its items? */
static bool is_whole(const Stream *s, const Machine *m)
{
    return 2 * s->along > half_group(m);
}

/* Bytes of rows with their scales. words: of a row; digits: sums. */
static int64_t piece_bytes(int64_t rows, int64_t words, int digits)
{
    enum { SCALES = 8 /* the digits have so many times their bytes */ };
    const int64_t row = digits * words * WORD;
    return rows * (row + row / SCALES);
}

/* Rows of digits that come to a group as a piece: so many that an item has words enough, and the
 * group bytes enough, for what it makes of the vector to be little beside; but groups, and items,
 * for each processor, and room for three groups on it.  words: of a row; digits: sums. */
static Stream copied_stream(int64_t results, int64_t in, int64_t words, const Machine *m,
                            int digits)
{
    enum { TURNS = 2, FEW = 8, GROUPS = 3, SHARES = 8 };
    Stream s = {2 * half_group(m), 1, 1};
    const int64_t row = digits * words * WORD, most = m->shared / GROUPS,
                  full = items_at_once(m) - items_at_once(m) / SHARES;
    if (words < TURNS * s.along)
        s.along = half_group(m);
    while (s.along > m->warp && words % s.along)
        s.along /= 2;
    while (s.rows * digits * words < DIGIT_ROWS * MOST_TURNS * s.along ||
           s.rows * row < m->shared / SHARES)
        s.rows *= 2;
    while (s.rows > 1 && piece_bytes(s.rows, words, digits) > most)
        s.rows /= 2;
    while (s.rows > 1 &&
           (in % s.rows || results * s.along / s.rows < (s.rows > FEW ? full : full / 2)))
        s.rows /= 2;
    return s;
}

/* Are its bytes two digits each, along an axis of their own, whose factors may be rounded?  They
 * are multiplied as they come then (render_digits.c). */
static bool has_halves(const Nest *n, const View *v, const VectorProduct *p)
{
    enum { HALVES = 2 };
    bool halves = p->digits == NULL;
    for (int k = 0; k < v->nreduce; k++)
        for (uint32_t i = reduce_ranges(v->reduce[k]); i < v->reduce[k]->nsrc; i++)
            halves |= range_extent(v->reduce[k]->src[i]) == HALVES && p->matrix &&
                      !depends_on(p->matrix, v->reduce[k]->src[i]);
    return halves && n->target->triggers && n->target->rounds &&
           machine_copies(&n->target->machine);
}

/* results: all of them; in: that of the axis that a group has some of; digits: sums over matrices
 * of digits, 0: they are none. */
static Stream stream_of(int64_t results, int64_t in, int64_t blocks, const Machine *m, int digits)
{
    Stream s = {half_group(m), 1, digits ? DIGIT_ROWS : MOST_COPIES};
    /* Of digits arithmetic counts, of which joining sums is a part: as few items along a row as
     * leave each processor its warps. */
    while (digits && s.along > LEAST_WARPS * m->warp &&
           results / s.rows * s.along > items_at_once(m) && 2 * blocks <= MOST_TURNS * s.along)
        s.along /= 2;
    const int64_t most = s.along;
    while (s.along > 1 && blocks % s.along)
        s.along /= 2;
    for (int64_t warps = most; !digits && m->units && warps > most / 2; warps -= m->warp)
        if (blocks % warps == 0 && blocks > most && s.along < warps)
            s.along = warps;
    if (is_whole(&s, m) && !digits)
        s.rows = LONG_ROWS;
    /* words of all sums that are under way to an item */
    while (s.rows > 1 && digits * s.rows * blocks > DIGIT_ROWS * MOST_TURNS * s.along)
        s.rows /= 2;
    while (s.rows > 1 && (in % s.rows || results / s.rows < m->processors))
        s.rows /= 2;
    /* What each group makes of the vector is for more rows: where so many groups follow each other
     * that some wait for words while others multiply. */
    const int64_t twice = 2 * s.rows;
    if (digits && in % twice == 0 && results / twice * s.along >= WAVES * items_of_twice(m))
        s.rows = twice;
    /* of short rows several are a warp's */
    for (; digits && s.along * s.down < m->warp; s.down *= 2)
        s.rows = s.rows > 1 ? s.rows / 2 : 1;
    while (digits < 2 && 2 * s.along * s.down <= m->group / 2 && in % (2 * s.down * s.rows) == 0 &&
           results / (2 * s.down * s.rows) >= m->processors)
        s.down *= 2;
    return s;
}

/* Does memory decide how long it takes to read the matrix, and can it be read along the terms? */
static bool streams(const Nest *n, const Buffer *matrix, const VectorProduct *p)
{
    int64_t stride;
    const Machine *m = &n->target->machine;
    if (matrix->kind == BUF_WEIGHT && !p->digits) {
        /* rows that a group has whole: with fewer items along one, others are quicker in caches */
        const int64_t turn = stream_turn(m, dtype_info[p->matrix->dtype].bytes);
        const bool whole = m->units && n->axis[p->blocks].extent % turn == 0;
        return whole ? stream_is_long(m, (double)matrix->bytes, false)
                     : (double)matrix->bytes >= m->level[0].bytes / 2;
    }
    Node *const terms = p->digits ? p->digits : n->k->axes[p->blocks].range;
    return access_stride(n->k, p->matrix, terms, &stride) && stride == 1 &&
           (!p->digits || m->units);
}

/* Along the terms items take turns; what is left inside of a turn is an item's. */
static bool split_along(Nest *n, VectorProduct *p, int64_t along)
{
    int at = p->blocks;
    if (n->axis[at].extent % (along * p->run))
        return false;
    if (n->axis[at].extent > along * p->run) {
        if (!nest_opt(n, OPT_SPLIT, n->axis[at].name, along * p->run))
            return false;
        p->turn = nest_last_split(n)->outer;
        at = nest_last_split(n)->inner;
    }
    if (!nest_opt(n, OPT_SPLIT, n->axis[at].name, p->run))
        return false;
    p->items = nest_last_split(n)->outer;
    return true;
}

/* A matrix whose terms lie side by side as it is stays dense: other functions read it so. */
static void forget_same(const Nest *n, Layout *want)
{
    for (int i = 0; i < n->k->narg; i++) {
        const LayoutOp *op = want[i].op;
        bool same = want[i].n == 1 && op->kind == LAYOUT_PERMUTE;
        for (int k = 0; same && k < op->perm.n; k++)
            same = op->perm.axis[k] == k;
        if (same)
            want[i] = (Layout){0};
    }
}

/* Blocks and the digits in them are one axis. */
static bool join_digits(Nest *n, const VectorProduct *p, int *joined)
{
    const char *names = nest_and_name(n, "", p->blocks);
    names = nest_and_name(n, names, nest_root(n, p->digits));
    const int before = p->blocks;
    if (!nest_opt(n, OPT_JOIN, names, 0))
        return false;
    *joined = before; /* in the place of the first of them */
    return n->axis[before].reduced;
}

static int64_t bytes_of(const Nest *n, const Node *load)
{
    return dtype_info[n->k->args[load->src[0]->arg.i].dtype].bytes;
}

/* Elements along its blocks that an item has at once, of a sum over the vector alone as of the
 * first sum, of which it is; 0: they are no whole accesses. */
static int64_t run_of(const Nest *n, const VectorProduct *p, const VectorProduct *first)
{
    const Machine *m = &n->target->machine;
    if (p->digits)
        return bytes_of(n, p->matrix) == 1 && range_extent(p->digits) % WORD == 0 ? WORD : 0;
    if (p->matrix || !first->digits)
        p = first;
    return m->access / (p->matrix ? bytes_of(n, p->matrix) : WORD);
}

static bool have_same_ranges(const Node *a, const Node *b)
{
    const uint32_t own = reduce_ranges(a);
    return a->nsrc == b->nsrc && reduce_ranges(b) == own &&
           !memcmp((const void *)(a->src + own), (const void *)(b->src + own),
                   (a->nsrc - own) * sizeof *a->src);
}

/* Its axes are those of an earlier sum of digits, which are joined: its matrix moves with each of
 * their elements, its scales do not. */
static bool go_along(const Nest *n, const View *v, VectorProduct *p, const VectorProduct *other,
                     int number)
{
    Node *const along = n->k->axes[other->blocks].range;
    Node *matrix = NULL;
    int64_t stride;
    for (int i = 0; i < v->nfactor && other->digits; i++)
        if (p->matrix && bytes_of(n, v->factor[i]) == bytes_of(n, other->matrix) &&
            access_stride(n->k, v->factor[i], along, &stride) && stride == 1)
            matrix = v->factor[i];
    if (!matrix)
        return false;
    p->matrix = matrix;
    p->like = number;
    p->blocks = other->blocks;
    p->digits = other->digits;
    p->run = other->run;
    return true;
}

/* All sums of the kernel, the one of products first; how many, 0: they are not such.  Blocks and
 * digits of the matrices become one axis. */
static int find_sums(Nest *n, const Buffer *const *bufs, int results, VectorProduct *p,
                     int64_t *all)
{
    View v = kernel_view(n->k);
    const int nsum = v.nreduce;
    if (nsum > MOST_SUMS || (nsum > 1 && !n->target->machine.units))
        return 0;
    int which[MOST_SUMS];
    for (int i = 0, first = 0; i < nsum; i++) {
        v = kernel_view(n->k);
        first = i ? first : -1;
        for (int k = 0; k < nsum && first < 0; k++)
            first = v.reduce[k] == v.dot ? k : -1;
        const int at = i == 0 ? first : i <= first ? i - 1 : i;
        const View one = view_of_sum(n->k, v.reduce[at]);
        if (reduce_monoid(one.dot) != INGOT_REDUCE_ADD || !find_operands(n, &one, results, &p[i]))
            return 0;
        const int64_t here = p[i].matrix || i == 0 ? results_of(n, &one, results) : *all;
        which[i] = at;
        bool along = false;
        for (int k = 0; k < i && !along; k++)
            along = have_same_ranges(v.reduce[at], v.reduce[which[k]]) &&
                    go_along(n, &one, &p[i], &p[k], k);
        p[i].run = along ? p[i].run : run_of(n, &p[i], &p[0]);
        if (!here || (i && here != *all) || p[i].run < 2 ||
            (i == 0 && (!p[0].matrix || !streams(n, bufs[p[0].matrix->src[0]->arg.i], &p[0]))))
            return 0;
        *all = here;
        if (p[i].digits && !along &&
            (p[i].blocks > nest_root(n, p[i].digits) || !n->target->machine.units ||
             !join_digits(n, &p[i], &p[i].blocks)))
            return 0;
    }
    return nsum;
}

/* Items, turns, what is inside of one, a run last; but for the axis at the front of `order`. */
static bool order_terms(Nest *n, const VectorProduct *p, int nsum, const char *order)
{
    for (int pass = 0; pass < 4; pass++)
        for (int i = 0; i < n->norder; i++) {
            const NestAxis *x = &n->axis[n->order[i]];
            int when = x->bound ? 0 : 2;
            for (int k = 0; k < nsum && !x->bound; k++)
                when = p[k].like >= 0                         ? when
                       : n->order[i] == p[k].turn             ? 1
                       : x->root == n->axis[p[k].blocks].root ? 3
                                                              : when;
            if (x->reduced && x->extent != 1 && when == pass)
                order = nest_and_name(n, order, n->order[i]);
        }
    return nest_opt(n, OPT_ORDER, order, 0);
}

/* Words of constants that an item has of each of its rows, or, if not, of what the vector is
 * multiplied by. */
static int64_t constant_words(const Nest *n, const Buffer *const *bufs, const VectorProduct *p,
                              int results, int64_t along, bool of_rows)
{
    const View v = kernel_view(n->k);
    int64_t bytes = 0;
    for (int i = 0; i < v.nfactor; i++) {
        const Node *f = v.factor[i];
        if (f->op == OP_LOAD && depends_on(f, n->k->axes[results].range) == of_rows &&
            bufs[f->src[0]->arg.i]->kind == BUF_WEIGHT)
            bytes += p->run * bytes_of(n, f);
    }
    return bytes / WORD * ceil_div(n->axis[p->blocks].extent, p->run * along);
}

/* Where a group could hold its rows whole before it waits for others (render_held.c), but for what
 * multiplies the vector, it has half of them: loads of the last rows would be waited for once more.
 * So it is where groups follow each other (H200, 32,768 rows of 4,096 f16 terms behind a norm:
 * 61.5 us for 72.3); few groups have theirs while others end. */
static int64_t held_rows(const Nest *n, const Buffer *const *bufs, const VectorProduct *p,
                         int results, const Stream *s, int64_t all)
{
    const int64_t row = constant_words(n, bufs, p, results, s->along, true),
                  vector = constant_words(n, bufs, p, results, s->along, false);
    const bool many =
        2 * all / s->rows * s->along >= MANY_WAVES * items_at_once(&n->target->machine);
    const bool crowded = s->rows * row <= HELD_WORDS && s->rows * row + vector > HELD_WORDS;
    return many && crowded && s->rows > 1 ? s->rows / 2 : s->rows;
}

/* A warp's items are along one row; of digits at least as many as read what memory brings. */
static bool has_items(const Stream *s, const Machine *m, int digits)
{
    return digits ? s->along * WORD >= 2 * m->access && s->along * s->down >= m->warp
                  : s->along >= m->warp;
}

bool parts_vector(Nest *n, const View *given, const Buffer *const *bufs, int results, Layout *want)
{
    VectorProduct p[MOST_SUMS];
    const Machine *m = &n->target->machine;
    int64_t all = 0;
    const int nsum = results_of(n, given, results) ? find_sums(n, bufs, results, p, &all) : 0;
    if (!nsum)
        return false;
    const View v = kernel_view(n->k);
    int digits = 0, products = 0;
    bool copied = p[0].digits != NULL;
    for (int i = 0; i < nsum; i++) {
        digits += p[i].digits != NULL;
        products += p[i].matrix != NULL;
        copied &= has_halves(n, &v, &p[i]);
    }
    const int64_t accesses = n->axis[p[0].blocks].extent / p[0].run;
    copied &= piece_bytes(1, accesses, digits) <= m->shared && accesses % m->warp == 0;
    Stream s = copied ? copied_stream(all, n->axis[results].extent, accesses, m, digits)
                      : stream_of(all, n->axis[results].extent, accesses, m, digits);
    /* of shorter rows a group waits for little, and is done soon */
    const bool whole = m->units && m->subgroup && (p[0].digits || is_whole(&s, m));
    if (whole && products == 1 && !digits)
        s.rows = held_rows(n, bufs, &p[0], results, &s, all);
    for (int i = 0; i < nsum; i++)
        if (p[i].like < 0 && (!has_items(&s, m, digits) || !split_along(n, &p[i], s.along)))
            return false;
    if (!bind_other_results(n, &v, results))
        return false;
    int at = in_grid(n, results, s.rows * s.down);
    for (int i = 0; i < nsum && at >= 0; i++)
        if (p[i].like < 0 && !bind_lanes(n, p[i].items, whole ? m->subgroup : 1))
            return false;
    if (at < 0 || (at = lanes_of(n, at, s.down, s.rows, true)) < 0)
        return false;
    if (!order_terms(n, p, nsum, s.down > 1 ? nest_and_name(n, "", at) : ""))
        return false;
    for (int i = 0; i < nsum; i++) {
        const View one = view_of_sum(n->k, v.reduce[i]);
        if (!p[0].digits)
            parts_layouts(n, &one, bufs, -1, p[0].blocks, want);
    }
    forget_same(n, want);
    if (n->target->triggers && whole)
        (void)nest_opt(n, OPT_TRIGGER, copied ? "copied" : "waited", 0);
    return true;
}
